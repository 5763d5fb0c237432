/* layer 4 (test) property: endpoints that keep the rules are never accused: seeded conversations in one process.
 *
 *     property [--seed N] [--count N]     play conversations N, N + 1, ... and judge each at three taps, with what
 *                                         captures lack
 *     property N...                       the same for these conversations
 *     property --rounds R ...             each conversation is captured and cut R times more, in ways drawn anew
 *     property --harsh ...                other conversations, in which what is rare is often
 *     property --seed N --write DIR       the same for one conversation, and write what was judged to DIR
 *     property --matrix [--write DIR]     commit every fault, and print what is found of it at which tap
 *
 * SIGTERM ends it behind the conversation at hand, with the line of totals. */
#include "tests/property/play.h"
#include "tests/property/sweep.h"

#include <getopt.h>
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* What was done. */
struct totals {
    uint64_t conversations, traces, frames, accused, gave_up, unfinished;
};

struct options {
    uint64_t seed, count;
    uint64_t cuts;   /* how many more times the captures of each conversation are cut */
    uint64_t rounds; /* how many more times each conversation is captured in all the ways */
    const char *dir; /* for captures; NULL: none */
    bool matrix;
    bool progress;
};

/* Findings that accuse no endpoint: packets that the network corrupted. */
static bool permitted(const struct play *p, const struct finding *f)
{
    if (f->result != V_FAIL || f->severity == SEV_I)
        return true;
    if (p->truncates &&
        (f->rule == RULE_FMT_06 || f->rule == RULE_FMT_07 || f->rule == RULE_FMT_18 || f->rule == RULE_FMT_19))
        return true;
    return f->rule == RULE_FMT_01 && p->corrupts;
}

static void show(const struct play *p, const struct findings *r, const struct finding *f, const char *how)
{
    printf("FAILED: seed %llu, %s: %s frame", (unsigned long long)p->sim.seed, how, rule_str((enum rule)f->rule));
    for (unsigned i = 0; i < f->n_frames; i++)
        printf(" %llu", (unsigned long long)f->frames[i]);
    for (unsigned i = 0; i < f->n_causes; i++)
        printf("%s %llu", i ? "," : " because of", (unsigned long long)f->causes[i]);
    printf(": expected %s, seen %s. %s\n  %s\n", findings_string(r, f->expected), findings_string(r, f->seen),
           findings_string(r, f->text), p->about);
}

/* The fast path of usual packets leads to the same findings as the slow path. */
static bool is_same_thoroughly(const struct trace *t, const struct judge_opts *o, const struct findings *r)
{
    const struct findings_opts all = {.assumptions = ""};
    struct judge_opts thorough = *o;
    struct buf a = {0}, b = {0};
    struct judge *j;
    bool same;

    thorough.thorough = true;
    j = trace_judge(t, &thorough);
    findings_json(r, &all, &a);
    findings_json(judge_findings(j), &all, &b);
    same = strcmp(buf_str(&a), buf_str(&b)) == 0;
    judge_free(j);
    buf_free(&a);
    buf_free(&b);
    return same;
}

/* Judge one trace. */
static void judge_one(const struct play *p, const struct trace *t, const struct judge_opts *o, const char *how,
                      struct totals *n)
{
    struct judge *j = trace_judge(t, o);
    const struct findings *r = judge_findings(j);
    bool bad = false;

    n->traces++;
    n->frames += t->n;
    for (size_t i = 0; i < findings_n(r); i++) {
        if (permitted(p, findings_at(r, i)))
            continue;
        if (!bad)
            show(p, r, findings_at(r, i), how);
        bad = true;
    }
    if (p->sim.seed % 4 == 0 && !is_same_thoroughly(t, o, r)) {
        printf("FAILED: seed %llu, %s: the report is another when every packet is judged thoroughly\n  %s\n",
               (unsigned long long)p->sim.seed, how, p->about);
        bad = true;
    }
    n->accused += bad;
    judge_free(j);
}

/* Whether both hosts send requests. */
static bool both_request(const struct play *p)
{
    return p->traffic.bidirectional || traffic_lends(&p->traffic);
}

/* Whether a mutation may take away all that tells who opened a connection. */
static bool hides_opener(const struct play *p, enum mutation m)
{
    return m == CUT || (p->traffic.type == QPT_XRC_INI && (m == DROPPED || m == ONE_WAY));
}

/* Whether the network has lost each REQ of the host that is meant by "requester" before the tap at `place`, in an XRC
 * conversation in both directions: there, all that opens a connection is the other host, and what the option says of
 * the tap is wrong. */
static bool lacks_opener(const struct play *p, unsigned place)
{
    return p->traffic.type == QPT_XRC_INI && !trace_opens(&p->tap[place], &p->sim.ep[0].addr);
}

/* Where connection management was not captured, the requester is the end whose request was captured first; here, at
 * the tap at `place`, it may be either. XRC in both directions has initiators at both hosts: the judge must see that,
 * or that it cannot know. */
static bool either_opens(const struct play *p, unsigned place, enum mutation first, enum mutation second)
{
    return both_request(p) && (p->sim.no_cm || lacks_opener(p, place) || hides_opener(p, first) ||
                               hides_opener(p, second) || (p->traffic.type == QPT_UC && first));
}

/* Where CM does not tell the ends apart, and both send requests, the requester may be either. */
static void forget_taps(struct judge_opts *o, bool either)
{
    for (unsigned i = 0; i < JUDGE_TAPS && either; i++)
        o->tap[i] = TAP_UNKNOWN;
}

#define SNAP_LEAST 40 /* bytes of a frame that are kept */
#define SNAPS      81 /* lengths from there on */

/* The snap length of one conversation in eight; 0: none. */
static unsigned snap_of(uint64_t seed)
{
    return seed % 8 ? 0 : SNAP_LEAST + (unsigned)(seed / 8 % SNAPS);
}

/* The capture as if only the first bytes of its frames had been kept. Without their ICRCs nobody knows which ones were
 * damaged; without the rest of its REQ which end opened a connection in which both send requests. */
static void judge_snapped(const struct play *p, struct trace *t, struct judge_opts o, unsigned snap, struct totals *n)
{
    char how[100];

    if (!snap || p->corrupts || p->truncates)
        return;
    t->snap = snap;
    forget_taps(&o, both_request(p));
    snprintf(how, sizeof how, "%u bytes of each frame, --tap %s%s", t->snap, tap_str(o.tap[0]),
             o.complete ? " --complete" : "");
    judge_one(p, t, &o, how, n);
    t->snap = 0;
}

/* One tap: the capture is changed, first by `first` unless that is AS_IT_WAS, and judged as taken there and as taken
 * anywhere; and once more with `snap` bytes of each frame, unless that is 0. */
static void judge_tap(const struct options *opt, const struct play *p, unsigned place, enum mutation first,
                      struct prng *r, unsigned snap, struct totals *n)
{
    struct trace t = {0};
    struct judge_opts o = play_judge_opts(p, (enum tap_place)place);
    enum mutation m[2] = {AS_IT_WAS, AS_IT_WAS};
    char how[200], path[300];

    trace_copy(&t, &p->tap[place]);
    o.complete = true;
    for (unsigned i = 0; i < 2 && prng_below(r, 100) < (i ? 30 : first ? 100 : 70); i++) {
        m[i] = !i && first ? first : (enum mutation)(1 + prng_below(r, MUTATIONS - 1));
        trace_mutate(&t, m[i], r);
        /* which cuts within the reordered part */
        o.complete &= mutation_is_complete(m[i]) && !(m[0] == DISORDERED && m[i] == CUT);
    }
    for (unsigned unknown = either_opens(p, place, m[0], m[1]); unknown < 2; unknown++) {
        for (unsigned i = 0; i < JUDGE_TAPS && unknown; i++)
            o.tap[i] = TAP_UNKNOWN;
        snprintf(how, sizeof how, "tap %s, %s, %s, --tap %s%s", tap_place_str((enum tap_place)place),
                 mutation_str(m[0]), mutation_str(m[1]), tap_str(o.tap[0]), o.complete ? " --complete" : "");
        judge_one(p, &t, &o, how, n);
        judge_snapped(p, &t, o, snap, n);
    }
    if (opt->dir) {
        snprintf(path, sizeof path, "%s/%s.pcapng", opt->dir, tap_place_str((enum tap_place)place));
        if (!trace_write(&t, path))
            exit(2);
    }
    trace_free(&t);
}

/* Judge a capture as `o` says, and, with a tap named there, as taken anywhere. */
static void judge_capture(const struct options *opt, const struct play *p, const struct trace *t, struct judge_opts o,
                          bool complete, const char *how, struct totals *n)
{
    char path[300];

    o.complete = complete;
    for (unsigned unknown = 0; unknown < 2; unknown++) {
        judge_one(p, t, &o, how, n);
        for (unsigned i = 0; i < JUDGE_TAPS; i++)
            o.tap[i] = TAP_UNKNOWN;
    }
    if (!opt->dir)
        return;
    snprintf(path, sizeof path, "%s/more.pcapng", opt->dir);
    if (!trace_write(t, path))
        exit(2);
}

/* One tap, whose capture lacks connection management. */
static void judge_without_cm(const struct options *opt, const struct play *p, struct prng *r, struct totals *n)
{
    enum tap_place place = (enum tap_place)prng_below(r, TAP_PLACES);
    struct judge_opts o = play_judge_opts(p, place);
    struct trace t = {0};

    trace_copy(&t, &p->tap[place]);
    trace_drop_cm(&t);
    forget_taps(&o, both_request(p));
    judge_capture(opt, p, &t, o, true, "without CM --complete", n);
    trace_free(&t);
}

/* One tap, whose time stamps are rounded, or missing. */
static void judge_times(const struct options *opt, const struct play *p, struct prng *r, struct totals *n)
{
    static const ns_t steps[] = {0, 100, NS_PER_US, NS_PER_US, NS_PER_MS};
    enum tap_place place = (enum tap_place)prng_below(r, TAP_PLACES);
    struct judge_opts o = play_judge_opts(p, place);
    ns_t step = steps[prng_below(r, ARRAY_LEN(steps))];
    enum mutation m = (enum mutation)prng_below(r, MUTATIONS);
    struct trace t = {0};
    char how[100];

    trace_copy(&t, &p->tap[place]);
    t.untimed = step == 0;
    if (step)
        trace_round(&t, step);
    else if (m == DISORDERED)
        m = AS_IT_WAS; /* nothing would show the order */
    trace_mutate(&t, m, r);
    if (step)
        trace_round(&t, step); /* those of copies, too */
    forget_taps(&o, either_opens(p, place, m, AS_IT_WAS));
    snprintf(how, sizeof how, "times of %llu ns, %s, tap %s", (unsigned long long)step, mutation_str(m),
             tap_place_str(place));
    judge_capture(opt, p, &t, o, mutation_is_complete(m), how, n);
    trace_free(&t);
}

/* One tap, whose clock is set back by at least a second, once or twice, with --complete all the same. */
static void judge_set_back(const struct options *opt, const struct play *p, struct prng *r, struct totals *n)
{
    enum tap_place place = (enum tap_place)prng_below(r, TAP_PLACES);
    struct judge_opts o = play_judge_opts(p, place);
    struct trace t = {0};
    char how[100];

    trace_copy(&t, &p->tap[place]);
    for (unsigned times = 1 + prng_below(r, 2); times && t.n > 1; times--)
        trace_set_back(&t, 1 + prng_below(r, (uint32_t)t.n - 1), 60 * NS_PER_S + prng_below(r, NS_PER_S));
    forget_taps(&o, either_opens(p, place, AS_IT_WAS, AS_IT_WAS));
    snprintf(how, sizeof how, "clock set back, tap %s", tap_place_str(place));
    judge_capture(opt, p, &t, o, true, how, n);
    trace_free(&t);
}

/* One tap that stamps the frames of one direction up to 3 us later than those of the other one. */
static void judge_skewed(const struct options *opt, const struct play *p, struct prng *r, struct totals *n)
{
    enum tap_place place = (enum tap_place)prng_below(r, TAP_PLACES);
    struct judge_opts o = play_judge_opts(p, place);
    ns_t by = 1 + prng_below(r, 3 * NS_PER_US);
    struct trace t = {0};
    char how[100];

    trace_copy(&t, &p->tap[place]);
    trace_skew(&t, by, r);
    if (prng_below(r, 2))
        trace_drop_cm(&t);
    forget_taps(&o, both_request(p));
    /* with --complete about one conversation in 15000 is accused: a response that is stamped before its request may
     * seem to count, or to repeat, what was not asked for yet */
    snprintf(how, sizeof how, "one direction %llu ns later, tap %s", (unsigned long long)by, tap_place_str(place));
    judge_capture(opt, p, &t, o, false, how, n);
    trace_free(&t);
}

/* A change by chance, or none. */
static enum mutation mutation_of(bool change, struct prng *r)
{
    return change ? (enum mutation)(1 + prng_below(r, MUTATIONS - 1)) : AS_IT_WAS;
}

/* The three taps as interfaces of one capture, which is changed by `m`. */
static void judge_all_taps(const struct options *opt, const struct play *p, enum mutation m, struct prng *r,
                           struct totals *n)
{
    char how[100];
    const struct trace *const in[TAP_PLACES] = {&p->tap[0], &p->tap[1], &p->tap[2]};
    struct judge_opts o = play_judge_opts(p, TAP_AT_REQUESTER);
    struct store store = {0};
    bool either = false;
    struct trace t;

    trace_merge(&t, &store, in, TAP_PLACES, true);
    for (unsigned i = 0; i < TAP_PLACES; i++) {
        o.tap[i] = play_judge_opts(p, (enum tap_place)i).tap[0];
        either |= either_opens(p, i, m, AS_IT_WAS);
    }
    trace_mutate(&t, m, r);
    forget_taps(&o, either);
    snprintf(how, sizeof how, "three taps, %s", mutation_str(m));
    judge_capture(opt, p, &t, o, mutation_is_complete(m), how, n);
    trace_free(&t);
    free(store.b);
}

/* What the judge is to know of a capture of two conversations. */
static struct judge_opts opts_of_both(const struct play *p, const struct play *q, enum tap_place place, enum mutation m)
{
    struct judge_opts o = play_judge_opts(p, place), o2 = play_judge_opts(q, place);

    if (o.profile == PROFILE_STRICT)
        o.profile = o2.profile;
    if (o.ack_timeout != o2.ack_timeout)
        o.ack_timeout = -1;
    if (o.retry_cnt != o2.retry_cnt)
        o.retry_cnt = -1;
    forget_taps(&o, either_opens(p, place, m, AS_IT_WAS) || either_opens(q, place, m, AS_IT_WAS));
    return o;
}

/* Whether something tells that the queue pair numbers are used anew: CM, whose communication ids a host does not use
 * again so soon, or PSNs that are far from the old ones. */
static bool can_be_told(const struct play *p, const struct play *q, enum tap_place place, enum mutation m)
{
    if (mutation_is_complete(m) && (!p->sim.no_cm || !q->sim.no_cm))
        return !p->sim.no_cm && !q->sim.no_cm && !trace_cm_ids_meet(&p->tap[place], &q->tap[place]);
    return trace_psns_differ(&p->tap[place], &q->tap[place]);
}

#define TIME_WAIT (3 * NS_PER_S) /* above the ACK timeouts of the REQs: up to code 19 */

/* Settings by which a conversation differs from another one of the same hosts. */
static void set_apart(struct play *q)
{
    uint64_t by = q->sim.seed / 10; /* judge_more() chooses by the rest */

    for (unsigned h = 0; h < NET_HOSTS; h++) {
        struct ep_config *c = &q->sim.ep[h];
        c->policies.qpn_arg += 0x1000;
        c->pkey = by & 1 && q->sim.no_cm ? 0x9234 : 0; /* the REQ would state another one */
        c->migreq = by & 2 && !q->conn.alternate;      /* which has a migration state */
        q->conn.peer[h].av.tclass |= by & 4 ? 26 << 2 : 0;
    }
}

/* Another conversation of the same hosts: at the same time, or (`later`) behind the first one with the same queue pair
 * numbers; the capture is changed if `change`. */
static void judge_two(const struct options *opt, struct play *p, bool later, bool change, struct prng *r,
                      struct totals *n)
{
    enum mutation m = mutation_of(change, r);
    char how[100];
    enum tap_place place = (enum tap_place)prng_below(r, TAP_PLACES);
    const struct trace *in[2] = {&p->tap[place]};
    struct play *q = malloc(sizeof *q);
    struct store store = {0};
    struct trace t;

    if (!q)
        exit(2);
    play_random(q, p->sim.seed + 1);
    for (unsigned h = 0; h < NET_HOSTS && ((p->nv && q->rxe) || (p->rxe && q->nv)); h++) {
        q->sim.ep[h].profile = EP_STRICT; /* the judge has one profile: q's is p's then */
        q->sim.ep[h].congestion.cnps |= q->conn.peer[h].av.tclass == ECN_CAPABLE; /* soft-RoCE sends none */
    }
    if (!later && !p->sim.no_cm) /* their communication ids may be the same, as those of one host are not */
        q->sim.no_cm = true;
    if (!later)
        set_apart(q);
    if (!play_run(q))
        exit(2);
    in[1] = &q->tap[place];
    p->corrupts |= q->corrupts;
    p->truncates |= q->truncates;
    if (in[0]->linktype == in[1]->linktype && in[0]->n && (!later || can_be_told(p, q, place, m))) {
        /* the same queue pair and PSNs only after time-wait */
        trace_delay(&q->tap[place], later ? in[0]->shot[in[0]->n - 1].ts + TIME_WAIT + prng_below(r, NS_PER_S) : 0);
        trace_merge(&t, &store, in, 2, false);
        trace_mutate(&t, m, r);
        snprintf(how, sizeof how, "another one %s, %s", later ? "later" : "beside it", mutation_str(m));
        judge_capture(opt, p, &t, opts_of_both(p, q, place, m), mutation_is_complete(m), how, n);
        trace_free(&t);
    }
    free(store.b);
    play_free(q);
    free(q);
}

/* Nine of ten conversations are captured in one more way. */
static void judge_more(const struct options *opt, struct play *p, uint64_t seed, struct totals *n)
{
    struct prng r;

    prng_seed(&r, seed * 13 + 7);
    switch (prng_below(&r, 10)) {
    case 0:
        judge_without_cm(opt, p, &r, n);
        break;
    case 1:
        judge_all_taps(opt, p, AS_IT_WAS, &r, n);
        break;
    case 2:
        judge_two(opt, p, false, false, &r, n);
        break;
    case 3:
        judge_two(opt, p, true, false, &r, n);
        break;
    case 4:
        judge_times(opt, p, &r, n);
        break;
    case 6:
        judge_all_taps(opt, p, mutation_of(true, &r), &r, n);
        break;
    case 7:
        judge_set_back(opt, p, &r, n);
        break;
    case 5:
        judge_two(opt, p, prng_below(&r, 2), true, &r, n);
        break;
    case 8:
        judge_skewed(opt, p, &r, n);
        break;
    default:
        break;
    }
}

/* Cut the captures once more: captures begin and end anywhere. */
static void judge_cuts(const struct options *opt, const struct play *p, struct totals *n)
{
    struct prng r;

    prng_seed(&r, p->sim.seed * 17 + 3);
    for (uint64_t i = 0; i < opt->cuts; i++) {
        for (unsigned place = 0; place < TAP_PLACES; place++)
            judge_tap(opt, p, place, CUT, &r, snap_of(p->sim.seed), n);
        judge_all_taps(opt, p, CUT, &r, n);
    }
}

/* All of that again, drawn anew; every capture of one tap also with frames that are cut. */
static void judge_rounds(const struct options *opt, struct play *p, struct totals *n)
{
    struct prng r;

    prng_seed(&r, p->sim.seed * 19 + 11);
    for (uint64_t i = 0; i < opt->rounds; i++) {
        for (unsigned place = 0; place < TAP_PLACES; place++)
            judge_tap(opt, p, place, AS_IT_WAS, &r, SNAP_LEAST + prng_below(&r, SNAPS), n);
        judge_more(opt, p, prng_next(&r), n);
    }
}

static void converse(const struct options *opt, uint64_t seed, struct totals *n)
{
    struct play *p = malloc(sizeof *p);
    struct prng r;

    if (!p)
        exit(2);
    play_random(p, seed);
    prng_seed(&r, seed * 31 + 5);
    if (!play_run(p))
        exit(2);
    n->conversations++;
    n->gave_up += p->result.gave_up;
    n->unfinished += p->result.gave_up || p->result.failed || p->result.conn_failed;
    if (p->own_failures || p->result.mismatches) {
        printf("FAILED: seed %llu: %llu checks of the endpoints' own failed, %llu mismatches\n  %s\n",
               (unsigned long long)seed, (unsigned long long)p->own_failures, (unsigned long long)p->result.mismatches,
               p->about);
        n->accused++;
    }
    if (opt->dir)
        printf("%s\n", p->about);
    for (unsigned place = 0; place < TAP_PLACES; place++)
        judge_tap(opt, p, place, AS_IT_WAS, &r, snap_of(seed), n);
    judge_cuts(opt, p, n); /* before a second conversation changes what is permitted */
    judge_more(opt, p, seed, n);
    judge_rounds(opt, p, n);
    play_free(p);
    free(p);
}

static uint64_t number(const char *s)
{
    char *end;
    uint64_t v = strtoull(s, &end, 0);

    if (!*s || *end) {
        fprintf(stderr, "property: '%s' is no number\n", s);
        exit(2);
    }
    return v;
}

static volatile sig_atomic_t ended; /* the signal that ended it; 0: none */

static void on_signal(int sig)
{
    ended = sig;
}

/* The seeds that the command line names or counts, until a signal ends it. */
static void converse_all(const struct options *opt, char **seeds, struct totals *n)
{
    for (uint64_t i = 0; i < opt->count && !ended; i++) {
        converse(opt, seeds ? number(seeds[i]) : opt->seed + i, n);
        if (opt->progress && (n->conversations % 100 == 0 || n->conversations == 1))
            fprintf(stderr, "\r%llu conversations, %llu accused %s", (unsigned long long)n->conversations,
                    (unsigned long long)n->accused, n->conversations % 10000 ? "" : "\n");
    }
    if (opt->progress)
        fputs("\r\33[K", stderr);
    printf("%llu conversations (%llu not finished, %llu given up), %llu traces of %llu frames judged, %llu wrongly\n",
           (unsigned long long)n->conversations, (unsigned long long)n->unfinished, (unsigned long long)n->gave_up,
           (unsigned long long)n->traces, (unsigned long long)n->frames, (unsigned long long)n->accused);
}

int main(int argc, char **argv)
{
    static const struct option longs[] = {
        {"seed", required_argument, NULL, 's'}, {"count", required_argument, NULL, 'n'},
        {"cuts", required_argument, NULL, 'c'}, {"rounds", required_argument, NULL, 'r'},
        {"harsh", no_argument, NULL, 'h'},      {"write", required_argument, NULL, 'w'},
        {"matrix", no_argument, NULL, 'm'},     {0}};
    struct options opt = {.seed = 1, .count = 1, .progress = isatty(STDERR_FILENO)};
    struct totals n = {0};
    int c;

    /* judges come and go: let them keep their pages, which the kernel would have to clear each time */
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
        if (c == '?')
            return 2;
        if (c == 's')
            opt.seed = number(optarg);
        if (c == 'n')
            opt.count = number(optarg);
        if (c == 'c')
            opt.cuts = number(optarg);
        if (c == 'r')
            opt.rounds = number(optarg);
        if (c == 'w')
            opt.dir = optarg;
        if (c == 'h')
            play_harshly();
        opt.matrix |= c == 'm';
    }
    if (opt.matrix)
        return sweep(opt.dir) ? 1 : 0;
    if (optind < argc)
        opt.count = (uint64_t)(argc - optind);
    setvbuf(stdout, NULL, _IOLBF, 0); /* what was found is there, however it ends */
    sigaction(SIGTERM, &(struct sigaction){.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND | SA_RESTART}, NULL);
    converse_all(&opt, optind < argc ? argv + optind : NULL, &n);
    if (ended)
        raise(ended);
    return n.accused || !n.conversations ? 1 : 0;
}
