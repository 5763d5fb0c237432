/* layer 3 (judge): packets of somebody else: PSNs, queue pair numbers and R_Keys that are tried one after another, and
 * data that was taken for that of the requester; and whether what hosts choose can be guessed. */
#include "grow.h"
#include "src/conn/copies.h"
#include "src/judge/judge_impl.h"
#include "steps.h"

#include <stdlib.h>

#define SWEEP_MANY   64                /* so many PSNs or queue pair numbers ... */
#define SWEEP_WITHIN NS_PER_S          /* ... in this time are a sweep */
#define SWEEP_NEAR   0x20000           /* PSNs; requests and responses of a connection are no further apart */
#define SWEEP_HOME   2                 /* so many packets show that the connection goes on where it was */
#define PROBE_MOST   3                 /* packets to a queue pair that is only tried */
#define PROBE_WAITS  (100 * NS_PER_MS) /* a responder answers within this time */
#define REFUSED_IN   (60 * NS_PER_S)

/* --- PSNs ------------------------------------------------------------------------------------- */

static struct psn_sweep *sweep_of(struct judge *j, uint32_t flow)
{
    return &j->psn_sweep[j->flows[flow].owner];
}

static bool is_near(const struct psn_sweep *w, uint32_t psn)
{
    int32_t d = psn_diff(psn, w->home);

    return d > -SWEEP_NEAR && d < SWEEP_NEAR;
}

static void end_sweep(struct judge *j, struct psn_sweep *w)
{
    j->n_sweeps -= w->frame != 0;
    w->frame = 0;
}

static bool is_sweep(const struct psn_sweep *w)
{
    return w->tries >= SWEEP_MANY && w->home_packets >= SWEEP_HOME;
}

/* True if the connection certainly goes on where it was: it has sent a new request there, and the responder has
 * answered there. */
static bool goes_on(const struct psn_sweep *w)
{
    return w->asked && w->answered;
}

/* `p`: the packet that proves it; NULL: the time is over. */
static void report_sweep(struct judge *j, const struct pkt *p, struct psn_sweep *w)
{
    struct found f = found_of(RULE_SEC_02, w->flow);

    f.frame = w->frame;
    f.cause = w->home_frame;
    f.has = w->paired && goes_on(w) ? N_RSP | N_PAIRED : 0;
    f.wrong = "somebody tries one PSN after another: {seen}, expected {expected}";
    f.expected = say(j, "PSNs near %u", w->start);
    f.seen = say(j, "%u PSNs far from it within %.3f ms", w->tries, (double)(w->last_ts - w->ts) / 1e6);
    f.text =
        "The connection goes on where it was, so no new connection has begun on this queue pair. Whoever hits the PSN "
        "that the responder expects puts its own data in place of the next message.";
    j->at_ts = w->ts;
    judge_found(j, p, f);
    j->at_ts = 0;
    end_sweep(j, w);
}

/* Nothing more will tell whether it is a sweep. */
static void settle_sweep(struct judge *j, struct psn_sweep *w)
{
    if (is_sweep(w))
        report_sweep(j, NULL, w);
    else
        end_sweep(j, w);
}

/* Begin to watch: the request is far from all that the connection has sent. */
static void begin_sweep(struct judge *j, const struct judged *a, struct psn_sweep *w)
{
    int32_t d = psn_diff(a->p->bth.psn, a->h->next);

    if (!a->h->have_next || a->h->service == SVC_UC || (d > -SWEEP_NEAR && d < SWEEP_NEAR))
        return;
    j->n_sweeps += w->frame == 0;
    *w = (struct psn_sweep){.flow = a->flow,
                            .frame = frame_u32(a->p),
                            .start = a->h->next,
                            .home = a->h->next,
                            .last = a->p->bth.psn,
                            .tries = 1,
                            .ts = a->p->frame->ts,
                            .last_ts = a->p->frame->ts,
                            .paired = a->h->from_start};
}

/* A packet of the connection, where it was. */
static void is_at_home(struct judge *j, const struct pkt *p, struct psn_sweep *w)
{
    w->home_packets++;
    w->home_frame = frame_u32(p);
    if (is_sweep(w) && goes_on(w))
        report_sweep(j, p, w);
}

void judge_sweep_request(struct judge *j, const struct judged *a)
{
    struct psn_sweep *w = sweep_of(j, a->flow);
    uint32_t psn = a->p->bth.psn;

    if (w->frame && (w->flow != a->flow || a->p->frame->ts - w->ts > SWEEP_WITHIN))
        settle_sweep(j, w);
    if (!w->frame) {
        begin_sweep(j, a, w);
    } else if (is_near(w, psn)) {
        w->asked |= psn_diff(psn, w->start) >= 0;
        w->home = psn;
        is_at_home(j, a->p, w);
    } else if (psn != w->last) {
        w->last = psn;
        w->last_ts = a->p->frame->ts;
        w->tries++;
    }
}

void judge_sweep_response(struct judge *j, const struct pkt *p, uint32_t flow)
{
    struct psn_sweep *w = flow == FLOW_NONE ? NULL : sweep_of(j, flow);

    if (!w || !w->frame || w->flow != flow)
        return;
    if (p->frame->ts - w->ts > SWEEP_WITHIN) {
        settle_sweep(j, w);
    } else if (!is_near(w, p->bth.psn)) {
        end_sweep(j, w); /* the responder is there, too: another connection has begun */
    } else {
        w->answered |= w->asked && psn_diff(p->bth.psn, w->start) >= 0;
        is_at_home(j, p, w);
    }
}

void judge_sweep_end(struct judge *j, uint32_t flow, bool forget)
{
    struct psn_sweep *w = sweep_of(j, flow);

    if (w->flow != flow || !w->frame)
        return;
    if (forget)
        end_sweep(j, w);
    else
        settle_sweep(j, w);
}

/* --- R_Keys ----------------------------------------------------------------------------------- */

/* Time of the first packet of the connection of `flow`, or of its REQ if its queue pairs were used before. */
static ns_t connected_at(const struct judge *j, uint32_t flow)
{
    ns_t first = j->flows[flow].first_ts, req = j->flow[flow].params.req_ts;

    return first > req ? first : req;
}

/* A refusal ends its connection: whoever tries keys or addresses opens another one for the next. Queue pairs that were
 * open at the refusal before have the same stale key, or learn of theirs at the same time. */
void judge_refused(struct judge *j, const struct judged *a)
{
    const struct flow *c = &j->flow[a->flow];
    const struct sent *s = req_dir_sent(a->h, a->p->bth.psn);
    uint64_t key = (load_le64(c->src.b + 8) ^ load_le64(c->dst.b + 8) << 1 ^ c->tap) * HASH_MULTIPLIER;
    struct refuser *r = &j->refuser[j->flows[a->flow].owner];
    struct found f = found_of(RULE_SEC_02, FLOW_NONE);

    if (aeth_value(a->p->aeth.syndrome) != NAK_REMOTE_ACCESS || !s || !s->reth)
        return;
    if (r->key != key || a->p->frame->ts - r->ts > REFUSED_IN)
        *r = (struct refuser){.key = key, .ts = a->p->frame->ts, .frame = frame_u32(a->p)};
    else if (connected_at(j, a->flow) <= r->last_ts)
        return;
    for (unsigned i = 0; i < r->n; i++)
        if (r->reth[i] == s->reth || r->n == REFUSED_MANY)
            return;
    r->reth[r->n++] = s->reth;
    r->last_ts = a->p->frame->ts;
    if (r->n < REFUSED_MANY)
        return;
    f.cause = r->frame;
    f.wrong = "somebody tries one R_Key or address after another: {seen}, expected {expected}";
    f.expected = "keys that the responder has given";
    f.seen = say(j, "%u keys or addresses were refused within %.3f s", r->n, (double)(a->p->frame->ts - r->ts) / 1e9);
    f.text = "Each costs a connection. Whoever hits a key that is valid reads or writes the memory behind it.";
    judge_found(j, a->p, f);
}

/* --- Queue pair numbers ------------------------------------------------------------------------ */

/* A queue pair that got requests of one sender and answered none; or one that has answered. */
struct probe {
    uint32_t flow, frame;
    ns_t ts;
    bool answers; /* sorted behind those that do not */
};

static int by_pair(const struct flow *x, const struct flow *y)
{
    int d = x->tap != y->tap ? (x->tap < y->tap ? -1 : 1) : memcmp(&x->src, &y->src, sizeof x->src);

    return d ? d : memcmp(&x->dst, &y->dst, sizeof x->dst);
}

static int by_pair_and_time(const void *x, const void *y, void *user)
{
    const struct flow *flow = user;
    const struct probe *a = x, *b = y;
    int d = by_pair(&flow[a->flow], &flow[b->flow]);

    d = d ? d : a->answers - b->answers;
    return d ? d : (a->ts > b->ts) - (a->ts < b->ts);
}

/* True if nothing but a few requests of this flow was seen, long before the end, and nothing is known of its queue
 * pair. */
static bool is_probe(const struct judge *j, uint32_t i)
{
    const struct flow *c = &j->flow[i];
    const struct jflow *f = &j->flows[i];
    bool alone = c->peer == FLOW_NONE && c->paired_by == PAIR_NONE && !f->has_rsp && !c->have_sqpn;

    return alone && f->dir && f->dir->service == SVC_RC && f->packets <= PROBE_MOST && !f->dir->rsp_packets &&
           stamps_go_on(&j->stamps, c->tap, f->dir->last_ts, PROBE_WAITS + 1);
}

/* The first SWEEP_MANY of `n` probes of one sender that came within SWEEP_WITHIN. */
static void find_sweep(struct judge *j, const struct probe *p, uint32_t n)
{
    struct found f = found_of(RULE_SEC_02, FLOW_NONE);
    uint32_t i = 0;

    while (i + SWEEP_MANY <= n && p[i + SWEEP_MANY - 1].ts - p[i].ts > SWEEP_WITHIN)
        i++;
    if (i + SWEEP_MANY > n)
        return;
    j->file = (uint16_t)(j->flow[p->flow].tap >> 16);
    f.needs = N_COMPLETE;
    f.has = N_RSP;
    f.frame = p[i].frame;
    f.cause = p[i + SWEEP_MANY - 1].frame;
    f.wrong = "somebody tries one queue pair number after another: {seen}, expected {expected}";
    f.expected = "requests to queue pairs that there are";
    f.seen = say(j, "%u queue pairs without an answer, %u of them within %.3f ms", n, SWEEP_MANY,
                 (double)(p[i + SWEEP_MANY - 1].ts - p[i].ts) / 1e6);
    f.text = "The responder answers the same sender on another connection, and none of these requests.";
    judge_found(j, NULL, f);
}

/* Among `n` queue pairs of one sender, sorted: if the responder answers it on some, do the others get a sweep? */
static void look_at_pair(struct judge *j, const struct probe *p, uint32_t n)
{
    uint32_t silent = 0;

    while (silent < n && !p[silent].answers)
        silent++;
    if (silent < n && silent >= SWEEP_MANY)
        find_sweep(j, p, silent);
}

void judge_qpn_sweeps(struct judge *j)
{
    struct conn_counts c = conn_counts(j->conns);
    struct probe *p = judge_wants(j, RULE_SEC_02) && c.flows >= SWEEP_MANY ? malloc(c.flows * sizeof *p) : NULL;
    uint32_t n = 0;

    for (uint32_t i = 0; p && i < c.flows; i++) {
        const struct req_dir *h = j->flows[i].dir;
        bool answers = h && h->rsp_packets;
        if (answers || is_probe(j, i))
            p[n++] = (struct probe){i, h->first_frame, h->first_ts, answers};
    }
    if (n)
        qsort_r(p, n, sizeof *p, by_pair_and_time, j->flow);
    for (uint32_t i = 0, k; i < n; i = k) {
        for (k = i + 1; k < n && by_pair(&j->flow[p[k].flow], &j->flow[p[i].flow]) == 0; k++)
            continue;
        look_at_pair(j, p + i, k - i);
    }
    free(p);
}

/* --- Data of another sender --------------------------------------------------------------------- */

bool judge_forged(struct judge *j, const struct judged *a, struct found *f)
{
    const struct sent *s = a->forged;
    bool acked = s && copy_was_executed(a->h, s);

    if (LIKELY(!s) || a->f->kind[KIND_REQ].path_changed)
        return false; /* with several paths its own sender has several addresses */
    f->frame = s->last;
    f->cause = a->p->frame->number;
    f->needs = acked ? 0 : N_COMPLETE | N_TAP_RSP;
    f->expected = say(j, "%s as in frame %llu", a->p->op->name, (unsigned long long)a->p->frame->number);
    f->seen = say(j, "%s", copy_has_same_headers(a->p, s) ? "other bytes" : opcode_name(s->opcode));
    f->text =
        say(j,
            "It came with another TTL or source MAC address than the requests beside it and the packet of the same "
            "PSN, %u, behind it. %s: what the requester sent then is taken for a duplicate.",
            a->p->bth.psn, acked ? "The responder has acknowledged it" : "The responder executes what comes first");
    return true;
}

/* --- What hosts choose: R_Keys, queue pair numbers, starting PSNs ---------------------------------- */

#define CHOSEN_MOST  1024 /* values that are kept of each owner of pairs of addresses */
#define CHOSEN_AGAIN 16   /* an R_Key is used again and again: one of so many latest values is not new */
#define CHOSEN_LEAST 8    /* values of a host below which nothing is said */

/* By enum chosen. */
static const struct {
    const char *name;
    uint32_t mask;
} kinds[] = {[CHOSE_RKEY] = {"R_Keys", UINT32_MAX},
             [CHOSE_QPN] = {"queue pair numbers", PSN_MASK},
             [CHOSE_PSN] = {"starting PSNs", PSN_MASK}};

static bool is_same_host(const struct choice *a, const struct choice *b)
{
    return a->what == b->what && a->tap == b->tap && conn_addr_eq(&a->by, &b->by);
}

void judge_chosen(struct judge *j, uint32_t tap, const struct conn_addr *by, enum chosen what, uint32_t value)
{
    uint32_t *last = &j->last_choice[j->owner], k = *last;
    struct choice c = {.tap = tap, .what = what, .value = value, .number = j->n_choices, .before = *last, .by = *by};

    c.ts = j->now->ts;
    c.file = j->now->file;
    c.frame = j->now->number;
    for (uint32_t i = 1; what == CHOSE_RKEY && i <= CHOSEN_AGAIN && k; i++, k = j->choices[k - 1].before)
        if (j->choices[k - 1].value == value && is_same_host(&j->choices[k - 1], &c))
            return;
    if (j->silent || j->choices_of[j->owner] == CHOSEN_MOST)
        return;
    if (!grow((void **)&j->choices, j->n_choices, sizeof *j->choices))
        return;
    j->choices[j->n_choices++] = c;
    *last = j->n_choices;
    j->choices_of[j->owner]++;
}

static int by_host(const void *x, const void *y)
{
    const struct choice *a = x, *b = y;
    int d = a->what != b->what ? (a->what < b->what ? -1 : 1) : a->tap != b->tap ? (a->tap < b->tap ? -1 : 1) : 0;

    d = d ? d : memcmp(&a->by, &b->by, sizeof a->by);
    return d ? d : (a->number > b->number) - (a->number < b->number);
}

/* The values of a host without those that come again, if R_Keys; their number. */
static unsigned values_of(const struct choice *c, unsigned n, uint32_t *v)
{
    unsigned many = 0;

    for (unsigned i = 0, k; i < n; i++) {
        for (k = 0; c->what == CHOSE_RKEY && k < many && v[k] != c[i].value; k++)
            continue;
        if (c->what != CHOSE_RKEY || k == many)
            v[many++] = c[i].value;
    }
    return many;
}

static void note_host(struct judge *j, const struct choice *c, unsigned n, uint32_t *v)
{
    struct buf host = {0};
    struct steps s;

    n = values_of(c, n, v);
    if (n < CHOSEN_LEAST)
        return;
    steps_of(v, n, kinds[c->what].mask, &s);
    if (s.share < 0.5)
        return;
    conn_addr_put(&host, &c->by);
    j->file = (uint16_t)(c->tap >> 16);
    judge_note(j, RULE_SEC_01, FLOW_NONE, 0,
               say(j, "%s of %s: %s 0x%x, %u of %u times", kinds[c->what].name, buf_str(&host),
                   s.step ? "the next one is the last one plus" : "always", s.step ? s.step : v[n - 1], s.times, n - 1),
               "Who has seen one can guess others.");
    buf_free(&host);
}

void judge_chosen_end(struct judge *j)
{
    uint32_t *v = j->n_choices ? malloc(j->n_choices * sizeof *v) : NULL;

    if (v)
        qsort(j->choices, j->n_choices, sizeof *j->choices, by_host);
    for (uint32_t i = 0, k; v && i < j->n_choices; i = k) {
        for (k = i + 1; k < j->n_choices && is_same_host(&j->choices[k], &j->choices[i]); k++)
            continue;
        note_host(j, &j->choices[i], k - i, v);
    }
    free(v);
}
