/* layer 3 (conform): a test is run: the scenario with the device as host b, its capture, and what the judge says. */
#include "gen/conform/conform.h"
#include "clock.h"
#include "gen/conform/battery/known.h"
#include "gen/conform/measures/in_time.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define TRIES 5 /* of a test in which frames are lost at this side, or this side is late */
/* If it passes, but has measured too little: at most so many more, begun in the time that an expectation may take. */
#define MORE 20

/* Append what a scenario has reported about `id`, "ID:LINE: TEXT" a line, as one line. */
static void put_reason(struct buf *b, const char *id, const char *text)
{
    size_t skip = strlen(id) + 1, n;

    for (; *text; text += n + (text[n] == '\n')) {
        n = strcspn(text, "\n");
        size_t own = strncmp(text, id, skip - 1) == 0 && n > skip ? skip : 0;
        if (b->len && own) /* of the same line: its number stands there already */
            own += strcspn(text + own, " ") + 1;
        buf_puts(b, b->len ? "; " : own ? "line " : "");
        for (size_t i = own; i < n; i++)
            if (text[i] != ' ' || i + 1 >= n || text[i + 1] != ' ')
                buf_printable(b, text + i, 1);
    }
}

/* The file of the capture: in r->keep, "nak/gap" as "nak-gap.pcapng". False: the name is too long. */
static bool name_file(const struct conform_run *r, const struct conform_test *t, const char *end, char *to, size_t size)
{
    int n = snprintf(to, size, "%s/%s%s", r->keep, t->id, end);

    if (n < 0 || (size_t)n >= size)
        return false;
    for (char *p = to + strlen(r->keep) + 1; *p; p++)
        *p = *p == '/' ? '-' : *p;
    return true;
}

/* Name a file beside the capture: "psn-gap.rdma" beside "psn-gap.pcapng". */
static void name_beside(const struct conform_outcome *o, const char *end, char *to, size_t size)
{
    const char *dot = strrchr(o->capture, '.');

    snprintf(to, size, "%.*s%s", dot ? (int)(dot - o->capture) : 0, o->capture, end);
}

/* Write a text to a file. */
static int write_text(const char *path, const char *text, size_t len)
{
    FILE *f = fopen(path, "w");
    int e = f ? 0 : -errno;

    if (f && fwrite(text, 1, len, f) != len)
        e = -EIO;
    if (f && fclose(f) != 0)
        e = -errno;
    return e;
}

/* Keep a text beside the capture. */
static int keep_text(const struct conform_outcome *o, const char *end, const char *text, size_t len)
{
    char path[sizeof o->capture + 16];

    name_beside(o, end, path, sizeof path);
    return write_text(path, text, len);
}

/* --- The capture ------------------------------------------------------------------------------ */

static const struct script_middle *middle_of(const struct conform_run *r)
{
    return r->live ? r->live->middle : NULL;
}

/* How late this side is on a real network; NULL: time is virtual. */
static struct late *late_of(const struct conform_run *r)
{
    const struct script_middle *between = middle_of(r);

    return between ? between->late(between->user) : r->live ? &r->live->live->late : NULL;
}

/* The time of a frame of the capture that is sent at live_now() 0. */
static ns_t epoch_of(const struct conform_run *r)
{
    const struct script_middle *between = middle_of(r);
    ns_t least = NS_NEVER;

    for (unsigned i = 0; i < 4; i++) { /* the host may be busy between the two readings */
        ns_t now = live_now(), epoch = clock_ns(CLOCK_REALTIME) - now;
        least = epoch < least ? epoch : least;
    }
    return between ? between->epoch(between->user) : least;
}

/* How long this side waited with nothing to do; NULL: time is virtual. */
static struct idle *idle_of(const struct conform_run *r)
{
    const struct script_middle *between = middle_of(r);

    return between ? between->idle(between->user) : r->live ? &r->live->live->idle : NULL;
}

static int begin_capture(const struct conform_run *r, const struct conform_outcome *o, struct tap_set *tap)
{
    const struct tap_opts opts = {.snaplen = o->test->snaplen};
    const struct script_middle *between = middle_of(r);
    struct live_error live_err;
    struct cap_error err;

    if (between)
        return between->record(between->user, o->capture, opts.snaplen);
    return r->live ? live_record_to(r->live->live, o->capture, opts.snaplen, &live_err)
                   : tap_open(tap, o->capture, LINK_ETHERNET, &opts, &err);
}

/* *lost: frames that this side was too slow to take, or could not send. */
static int end_capture(const struct conform_run *r, struct tap_set *tap, uint64_t *lost)
{
    struct live *l = r->live ? r->live->live : NULL;
    const struct script_middle *between = middle_of(r);
    struct cap_error err;

    if (between)
        return between->record_end(between->user, lost);

    if (!l)
        return tap_close(tap, &err);
    live_record_end(l);
    *lost = backend_stats(l->backend)->dropped - l->dropped_from + l->unsent;
    l->unsent = 0;
    return l->record_err;
}

/* --- Running ---------------------------------------------------------------------------------- */

/* The device in a run of a test: its addresses, and what its agent said of its counters before and behind it. */
struct device_seen {
    uint8_t mac[6], gid[16];
    struct buf before, after;
    struct buf log; /* what was said to its agent, and what that answered */
};

/* What a scenario tells. */
struct taken {
    struct metrics metrics;         /* of this run of the test */
    const struct late *late;        /* how late this side is; NULL: time is virtual */
    const struct script_live *live; /* with it: its time 0 */
    struct identities *identities;  /* of all tests; NULL: nobody asks */
};

static void measured(void *user, const struct token *name, ns_t time, ns_t from, ns_t to, bool timer)
{
    struct taken *t = user;
    ns_t start = t->late ? t->live->start : 0;

    if (!t->late || (timer ? in_time_at_ends(t->late, start + from, start + to)
                           : in_time_during(t->late, start + from, start + to, time)))
        metrics_add(&t->metrics, name, METRIC_NS, time);
    else
        metrics_leave_out(&t->metrics, name, METRIC_NS);
}

static void chosen(void *user, enum script_chosen kind, uint32_t value)
{
    const struct taken *t = user;

    if (t->identities)
        identities_add(t->identities, kind, value);
}

/* `m`: for what the scenario tells; NULL: nothing. 0, or a negative errno: the device is not reached. */
static int configure(const struct conform_run *r, struct script_opts *o, struct tap_set *tap, struct taken *m)
{
    struct ep_config *device = &o->sim.ep[1];
    struct script_live *v = r->live;

    sim_config_init(&o->sim, r->seed);
    o->sim.events = event_list_new();
    o->sim.taps[TAP_AT_RESPONDER] = v ? NULL : tap;
    o->dut[0] = r->requester;
    o->dut[1] = r->dut;
    o->measured = m ? measured : NULL;
    o->chosen = m ? chosen : NULL;
    o->user = m;
    device->congestion = (struct ep_congestion){.cnps = true, .np = np_config_default()};
    device->faults = r->faults;
    device->n_faults = r->n_faults;
    device->flaws = r->flaws;
    device->no_self_check = r->n_faults > 0;
    if (!v)
        return 0;
    v->control.fd = -1;
    v->limit = r->limit;
    return script_live_init(v, o);
}

/* What it is that a test of this level did not see. */
static enum conform_result missed(unsigned level)
{
    static const uint8_t by_level[CONFORM_LEVELS] = {CONFORM_FAIL, CONFORM_WEAK, CONFORM_INFO};

    return by_level[level];
}

/* What script_run() returned, as a result. */
static enum conform_result result_of(enum script_result r, unsigned level)
{
    switch (r) {
    case SCRIPT_OK:
        return CONFORM_PASS;
    case SCRIPT_FAILED:
        return missed(level);
    case SCRIPT_UNSUPPORTED:
        return CONFORM_UNSUPPORTED;
    default:
        return CONFORM_ERROR;
    }
}

/* Whether the judge found a rule broken that the test is about. */
static bool is_about(struct conform_outcome *o)
{
    for (unsigned i = 0; i < o->test->n_rules; i++)
        if (strstr(buf_str(&o->judge), rule_str(o->test->rules[i])))
            return true;
    return false;
}

static void says_nothing(struct conform_outcome *o, enum conform_result r, const char *why)
{
    o->result = (uint8_t)r;
    o->reason.len = 0;
    buf_puts(&o->reason, why);
}

/* Have the capture judged, with the counters of the device at `gid`, if it told them; without them if they are none. */
static int judge(struct conform_outcome *o, const struct conform_run *r, const struct device_seen *d)
{
    char before[sizeof o->capture + 16], after[sizeof before];
    struct buf option = {0};
    int e = 0;

    if (d->before.len && d->after.len) {
        name_beside(o, ".before", before, sizeof before);
        name_beside(o, ".after", after, sizeof after);
        e = write_text(before, d->before.p, d->before.len);
        if (e == 0)
            e = write_text(after, d->after.p, d->after.len);
        buf_ipv6(&option, d->gid);
        buf_printf(&option, "=%s,%s", before, after);
    }
    if (e == 0)
        e = conform_judge(r->judge, o->capture, d->mac, option.len ? buf_str(&option) : NULL, &o->judge, &o->counters);
    if (e == -EPROTO && option.len) {
        o->judge.len = o->counters.len = 0;
        e = conform_judge(r->judge, o->capture, d->mac, NULL, &o->judge, &o->counters);
    }
    if (option.len) {
        unlink(before);
        unlink(after);
    }
    buf_free(&option);
    return e;
}

/* The judge sees the same capture. A rule that the test is about, and that only the judge found broken, is a
 * disagreement; any other one is the device's failure. */
static void weigh(struct conform_outcome *o, const struct conform_run *r, const struct device_seen *d)
{
    int e = r->judge ? judge(o, r, d) : 0;

    if (e < 0 && o->result != CONFORM_ERROR) {
        says_nothing(o, CONFORM_ERROR, "the capture cannot be judged: ");
        buf_puts(&o->reason, strerror(-e));
    } else if (o->judge.len && o->result == CONFORM_PASS) {
        o->judge_alone = true;
        o->result = (uint8_t)(is_about(o) ? CONFORM_ERROR : missed(o->test->level));
        buf_puts(&o->reason,
                 o->result == CONFORM_ERROR ? "the test passes, but the judge disagrees" : "all expectations are met");
    }
    if (r->known)
        known_weigh(r->known, o);
}

/* Play a scenario: its result, with what it reports in *out, and what it measures in *m (NULL: nothing); the device in
 * *d. */
static enum script_result play(const struct conform_run *r, const char *id, const char *text, struct tap_set *tap,
                               struct buf *out, struct device_seen *d, struct taken *m)
{
    struct script_opts script = {0};
    int e = configure(r, &script, tap, m);

    memcpy(d->mac, script.sim.ep[1].addr.mac, 6);
    memcpy(d->gid, script.sim.ep[1].addr.gid, 16);
    script.counters[0] = m ? &d->before : NULL;
    script.counters[1] = m ? &d->after : NULL;
    script.agent_log = m ? &d->log : NULL;
    if (e == 0) {
        enum script_result result = script_run(id, text, &script, out);
        if (middle_of(r))
            memcpy(d->mac, r->live->macs[1], 6);
        return result;
    }
    event_list_free(script.sim.events);
    buf_printf(out, "%s: %s", id, e == -EINTR ? "interrupted" : strerror(-e));
    return SCRIPT_BROKEN;
}

/* Whether the device still serves a queue pair; if not, that is the worst that a test can show. */
static void check_alive(const struct conform_run *r, struct conform_outcome *o)
{
    static const char text[] = "qp 1 rc\nmem a.src 64 fill=seq\nmem b.dst 64\nb post recv 1 dst\na post send 1 src\n"
                               "b wc 1 SUCCESS RECV len=64\nb mem dst == a.src\na wc 1 SUCCESS SEND\n";
    struct buf out = {0}, why = {0};
    struct device_seen d = {.mac = {0}};
    bool good = play(r, "alive", text, NULL, &out, &d, NULL) == SCRIPT_OK;

    if (!good && !live_stopped()) {
        o->result = CONFORM_CRASH;
        put_reason(&why, "alive", buf_str(&out));
        buf_printf(&o->reason, "%s" CONFORM_SERVES_NOTHING "%s", o->reason.len ? "; " : "", buf_str(&why));
    }
    buf_free(&out);
    buf_free(&why);
}

/* Run the test and fill *o, but for the judge's opinion; *m: what it measures. */
static int run_script(const struct conform_run *r, const char *text, struct conform_outcome *o, struct device_seen *d,
                      struct taken *m)
{
    struct tap_set tap = {.place = TAP_AT_RESPONDER};
    struct buf out = {0};
    uint64_t lost = 0;
    int e = begin_capture(r, o, &tap), closed;

    if (late_of(r)) {
        late_begin(late_of(r));
        idle_begin(idle_of(r));
    }
    if (e == 0)
        e = keep_text(o, ".rdma", text, strlen(text));
    if (e == 0) {
        o->result = (uint8_t)result_of(play(r, o->test->id, text, &tap, &out, d, m), o->test->level);
        put_reason(&o->reason, o->test->id, buf_str(&out));
        if (d->log.len)
            e = keep_text(o, ".agent.log", d->log.p, d->log.len);
    }
    buf_free(&out);
    closed = end_capture(r, &tap, &lost);
    if (lost)
        says_nothing(o, CONFORM_INCONCLUSIVE, "frames were lost at this side, which was too slow, in every try");
    return e ? e : closed;
}

/* Without an agent, what the peer's program was told, and its memory, are not seen. */
static void tell_passed_over(struct script_live *v, struct conform_outcome *o)
{
    if (v->passed_over && o->result == CONFORM_PASS)
        buf_printf(&o->reason, "by its packets; without an agent, %s of the test not asked",
                   v->passed_over == 1 ? "a line is" : "some lines are");
    v->passed_over = 0;
}

/* The tester was late, as far as the test is concerned: that shows nothing about the device. */
static void was_late(struct conform_outcome *o, const struct late *l)
{
    struct buf saw = o->reason;

    o->reason = (struct buf){0};
    o->result = CONFORM_INCONCLUSIVE;
    o->judge_alone = false;
    buf_printf(&o->reason, "not measured: in every try this side was late, now by %.1f ms, as its host is busy",
               (double)l->most / NS_PER_MS);
    if (saw.len)
        buf_printf(&o->reason, "; it saw: %s", buf_str(&saw));
    buf_free(&saw);
}

/* Whether an expectation, or the judge alone, may have been let down by a tester that was so late. */
static bool may_be_late(const struct conform_outcome *o, const char *text, const struct late *l)
{
    bool missed_one =
        conform_is_missed((enum conform_result)o->result) || (o->result == CONFORM_ERROR && o->judge_alone);

    return l && missed_one && l->most >= in_time_least(text);
}

/* What all tries of a test have measured together. */
struct measured {
    struct metrics metrics;
    unsigned runs; /* that have measured something */
};

/* Add what the test has measured in *m, and what its capture shows, to *all. It has measured nothing yet if this side
 * was late in most of that. `epoch`: that of the capture when it began. */
static int measure(const struct conform_run *r, struct conform_outcome *o, const struct device_seen *d,
                   struct metrics *m, ns_t epoch, struct measured *all)
{
    const struct conform_test *t = o->test;
    const struct late *l = late_of(r);
    struct measure_tester *tester = l && t->n_measures ? malloc(sizeof *tester) : NULL;
    ns_t now = epoch_of(r); /* not the same if the clock was set, or runs faster or slower */
    int e = 0;

    if (tester) {
        late_on_clock(l, epoch < now ? epoch : now, epoch > now ? epoch : now, &tester->late);
        tester->idle = idle_of(r);
        tester->epoch = now;
    }
    if (t->n_measures)
        e = l && !tester ? -ENOMEM : measure_capture(o->capture, d->mac, t->measures, t->n_measures, tester, m);
    free(tester);
    metrics_gather(&all->metrics, m);
    all->runs++;
    if (e == 0 && o->result == CONFORM_PASS && !in_time_enough(&all->metrics, all->runs))
        was_late(o, l);
    return e;
}

/* What the test expects of ratio `t` is not met by `r`, or nothing is known of it: that is its result. */
static void weigh_ratio(const struct conform_run *r, struct conform_outcome *o, const struct conform_ratio *t,
                        struct metric_ratio is)
{
    uint32_t bound = t->least ? t->least : t->most;
    bool beyond = is.above && is.permille > bound; /* what chance may do is not beyond it */

    if (!is.permille) {
        says_nothing(o, CONFORM_INCONCLUSIVE, "not measured: too few samples of a ratio");
        return;
    }
    if (beyond == (t->least != 0))
        return;
    o->result = (uint8_t)missed(o->test->level);
    buf_printf(&o->reason, "expected %.*s at %s %.3f, actual %.3f%s", (int)t->name.len, t->name.p,
               t->least ? "least" : "most", bound / 1000.0, (double)is.permille / 1000,
               t->least && is.permille > bound ? ", which may be chance" : "");
    if (r->known)
        known_weigh(r->known, o);
}

/* Compute the ratios of what was measured. The first one that is not as expected is the result of a test that passed
 * up to here. */
static void compute_ratios(const struct conform_run *r, struct conform_outcome *o, struct metrics *m)
{
    for (unsigned i = 0; i < o->test->n_ratios; i++) {
        const struct conform_ratio *t = &o->test->ratios[i];
        struct metric_ratio is = metrics_ratio(m, &t->name, &t->of, &t->over);
        if ((t->least || t->most) && o->result == CONFORM_PASS)
            weigh_ratio(r, o, t, is);
    }
}

/* Hand over what was measured, and say what is left out of it. */
static void hand_over(const struct conform_run *r, struct conform_outcome *o, struct measured *all)
{
    struct in_time_sum n = in_time_sum(&all->metrics);

    compute_ratios(r, o, &all->metrics);
    if (n.left_out)
        buf_printf(&o->reason, "%sof %s in %u %s, %u are left out, as this side was late meanwhile",
                   o->reason.len ? "; " : "", count_str(n.there + n.left_out, "sample"), all->runs,
                   all->runs == 1 ? "try" : "tries", n.left_out);
    metrics_move(r->metrics, &all->metrics);
}

static bool shows_device(const struct conform_outcome *o)
{
    return o->result == CONFORM_PASS || o->result == CONFORM_KNOWN;
}

/* Run the test once, the `number`th time; what it measures is added to *all. */
static int run_once(const struct conform_run *r, unsigned number, const char *text, struct conform_outcome *o,
                    struct measured *all)
{
    struct conform_run once = *r;
    struct taken taken = {.late = late_of(r), .live = r->live, .identities = r->identities};
    char end[32] = ".pcapng";
    struct device_seen d = {.mac = {0}};
    const struct late *l = late_of(r);
    ns_t epoch = epoch_of(r);
    int e;

    once.seed += number;
    once.limit *= o->test->is_long ? 10 : 1;
    if (r->repeat > 1)
        snprintf(end, sizeof end, "-%u.pcapng", number + 1);
    if (!name_file(r, o->test, end, o->capture, sizeof o->capture))
        return -ENAMETOOLONG;
    e = run_script(&once, text, o, &d, &taken);
    if (e == 0)
        weigh(o, r, &d);
    if (e == 0 && may_be_late(o, text, l))
        was_late(o, l);
    if (e == 0 && r->metrics && shows_device(o))
        e = measure(r, o, &d, &taken.metrics, epoch, all);
    metrics_free(&taken.metrics);
    buf_free(&d.before);
    buf_free(&d.after);
    buf_free(&d.log);
    if (e == 0 && r->live && r->live->lenient)
        tell_passed_over(r->live, o);
    if (e == 0 && r->live && !r->live->lenient)
        check_alive(&once, o);
    return e == 0 && live_stopped() ? -EINTR : e; /* its judge, too, may have met the signal */
}

/* Likewise, and again if frames were lost at this side, or this side was late, which says nothing about the device; and
 * more often as long as samples are missing. */
static int run_conclusive(const struct conform_run *r, unsigned number, const char *text, struct conform_outcome *o)
{
    struct measured all = {.runs = 0};
    ns_t end = r->live ? live_now() + r->live->patience : 0;
    int e = run_once(r, number, text, o, &all);

    for (unsigned again = 1; e == 0 && o->result == CONFORM_INCONCLUSIVE; again++) {
        bool adds_up = all.runs && live_now() < end;
        if (again >= TRIES + (adds_up ? min_u32(all.runs, MORE) : 0))
            break;
        conform_outcome_free(o);
        *o = (struct conform_outcome){.test = o->test};
        e = run_once(r, number, text, o, &all);
    }
    if (e == 0 && r->metrics && shows_device(o) && in_time_enough(&all.metrics, all.runs))
        hand_over(r, o, &all);
    metrics_free(&all.metrics);
    return e;
}

/* How bad a result is: the higher, the worse. */
static unsigned badness(const struct conform_outcome *o)
{
    static const uint8_t rank[CONFORM_RESULTS] = {
        [CONFORM_UNSUPPORTED] = 1, [CONFORM_KNOWN] = 2, [CONFORM_INFO] = 3,  [CONFORM_INCONCLUSIVE] = 4,
        [CONFORM_WEAK] = 5,        [CONFORM_FAIL] = 6,  [CONFORM_ERROR] = 7, [CONFORM_CRASH] = 8};

    return rank[o->result];
}

/* Keep the worse of two outcomes of a test in *o; the other one is freed, with its files. */
static void keep_worse(struct conform_outcome *o, struct conform_outcome *now)
{
    unsigned runs = o->runs + 1, good = o->good + (now->result == CONFORM_PASS);
    bool worse = runs == 1 || badness(now) > badness(o);
    struct conform_outcome kept = worse ? *now : *o, *other = worse ? o : now;

    conform_forget(other);
    conform_outcome_free(other);
    *o = kept;
    o->runs = runs;
    o->good = good;
}

int conform_run(const struct conform_run *r, const struct conform_test *t, struct conform_outcome *o)
{
    unsigned runs = r->repeat ? r->repeat : 1;
    struct buf script = {0};
    ns_t begin = live_now();
    int e;

    conform_script(t, &script);
    e = script.err ? -ENOMEM : 0;
    *o = (struct conform_outcome){.test = t};
    for (unsigned i = 0; i < runs && e == 0 && o->result != CONFORM_CRASH; i++) {
        struct conform_outcome now = {.test = t};
        e = run_conclusive(r, i, buf_str(&script), &now);
        keep_worse(o, &now);
    }
    o->took = live_now() - begin;
    buf_free(&script);
    return e;
}

void conform_forget(struct conform_outcome *o)
{
    static const char *const ends[] = {".pcapng", ".rdma", ".agent.log"};
    char path[sizeof o->capture + 16];

    for (unsigned i = 0; *o->capture && i < ARRAY_LEN(ends); i++) {
        name_beside(o, ends[i], path, sizeof path);
        unlink(path);
    }
    *o->capture = '\0';
}

void conform_outcome_free(struct conform_outcome *o)
{
    buf_free(&o->reason);
    buf_free(&o->judge);
    buf_free(&o->known);
    buf_free(&o->counters);
}
