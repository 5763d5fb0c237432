/* layer 2b (account): where the time of each direction of requests went: requests and responses as they pass. */
#include "dissect/pkt.h"
#include "fetch.h"
#include "src/account/timeline_impl.h"
#include "src/conn/packet.h"

#include <stdlib.h>

/* --- Episodes --------------------------------------------------------------------------------- */

static void on_bill(void *user, uint32_t episode, enum time_state state, ns_t ns)
{
    struct timeline *t = user;

    t->episodes[episode].bill += ns;
    t->episodes[episode].states[state] += ns;
}

struct episode *episode_at(struct timeline *t, uint32_t n)
{
    return n == NO_EPISODE ? NULL : &t->episodes[n];
}

/* Room for one more; false if there is none, or no memory. */
static bool make_room(struct timeline *t)
{
    uint32_t cap = t->cap ? t->cap * 2 : 256;
    struct episode *more;

    if (t->n < t->cap)
        return true;
    if (t->n >= EPISODES_MAX)
        return false;
    more = realloc(t->episodes, cap * sizeof *more);
    if (!more)
        return false;
    t->episodes = more;
    t->cap = cap;
    return true;
}

uint32_t episode_new(struct timeline *t, uint32_t flow, enum trouble why, uint32_t psn, ns_t now)
{
    const struct flow *f = conn_flow_at(observer_conns(t->observer), flow);

    if (!make_room(t))
        return NO_EPISODE;
    t->episodes[t->n] = (struct episode){.why = (uint8_t)why,
                                         .flow = flow,
                                         .conn = f->conn,
                                         .tap = f->tap,
                                         .psn = psn,
                                         .root = t->n,
                                         .start = now,
                                         .end = now};
    return t->n++;
}

void timeline_claim(struct timeline *t, struct direction *d, ns_t from, ns_t to, uint32_t over, enum time_state state,
                    uint32_t ep)
{
    struct episode *e = episode_at(t, ep);

    if (!e)
        return;
    spans_change(&d->spans, from, to, over, state, ep);
    if (from < e->start)
        e->start = from;
    if (to > e->end)
        e->end = to;
}

void timeline_bill(struct timeline *t, struct direction *d, ns_t to, enum time_state state, uint32_t ep)
{
    struct episode *e = episode_at(t, ep);
    ns_t from = d->spans.at;

    spans_add(&d->spans, to, e ? state : TIME_NOT_KNOWN, ep);
    if (!e)
        return;
    if (from < e->start)
        e->start = from;
    if (to > e->end)
        e->end = to;
}

/* --- Directions ------------------------------------------------------------------------------- */

#define SETUP_LONG                                                                                                     \
    NS_PER_S /* so long after the REQ, the REP shows no round trip: one was retransmitted, or waited for */

/* Time begins with the REQ, if there was one, else with the first request. */
static void begin(struct timeline *t, struct direction *d, uint32_t flow, ns_t now)
{
    const struct conn_params *c = &conn_flow_at(observer_conns(t->observer), flow)->params;
    bool setup = c->req_ts && c->req_ts <= c->rep_ts && c->rep_ts <= now;

    spans_init(&d->spans, setup ? c->req_ts : now, on_bill, t);
    if (!setup)
        return;
    spans_add(&d->spans, c->rep_ts, TIME_CM, NO_EPISODE);
    spans_add(&d->spans, now, TIME_IDLE, NO_EPISODE);
    if (!c->passive && c->rep_ts - c->req_ts < SETUP_LONG)
        d->usual = d->by_rep = c->rep_ts - c->req_ts;
}

static struct direction *direction_of(struct timeline *t, uint32_t flow, ns_t now)
{
    struct direction *d = t->dirs[flow];

    if (LIKELY(d != NULL))
        return d;
    d = t->dirs[flow] = malloc(sizeof *d);
    if (!d)
        return NULL;
    direction_reset(d);
    if (UNLIKELY(t->n_damaged))
        now = timeline_early_damaged(t, d, flow, now);
    begin(t, d, flow, now);
    return d;
}

void direction_reset(struct direction *d)
{
    struct spans *s = &d->spans;

    memset((char *)d + sizeof *s, 0, sizeof *d - sizeof *s);
    d->nak.ep = d->rnr.ep = d->resend.ep = d->row = d->refused = NO_EPISODE;
    d->stop_ep = NO_EPISODE;
    d->pause_ep = d->cnp.ep = d->depth.ep = d->credit.ep = NO_EPISODE;
}

static void keep_row(struct timeline *t, uint32_t flow)
{
    const struct flow *f = conn_flow_at(observer_conns(t->observer), flow);
    const struct direction *d = t->dirs[flow];
    struct timeline_row *r;

    if (t->n_rows == t->rows_cap) {
        size_t cap = t->rows_cap ? t->rows_cap * 2 : 64;
        struct timeline_row *more = realloc(t->rows, cap * sizeof *more);
        if (!more)
            return;
        t->rows = more;
        t->rows_cap = cap;
    }
    r = &t->rows[t->n_rows++];
    *r = (struct timeline_row){.conn = f->conn,
                               .tap = f->tap,
                               .flow = flow,
                               .src = f->src,
                               .dst = f->dst,
                               .dqpn = f->dqpn,
                               .sqpn = f->sqpn,
                               .have_sqpn = f->have_sqpn,
                               .first = d->spans.first,
                               .last = d->spans.at};
    if (!r->have_sqpn && f->peer != FLOW_NONE) {
        r->sqpn = conn_flow_at(observer_conns(t->observer), f->peer)->dqpn;
        r->have_sqpn = true;
    }
    spans_total(&d->spans, r->states);
}

static void on_over(void *user, uint32_t flow, bool restart)
{
    struct timeline *t = user;

    (void)restart;
    if (t->dirs[flow])
        keep_row(t, flow);
    free(t->dirs[flow]);
    t->dirs[flow] = NULL;
    t->seen[flow] = (struct flow_times){0};
}

/* What requests and responses change without any trouble. */
static void on_fetch(void *user, uint32_t flow)
{
    const struct timeline *t = user;
    const struct direction *d = t->dirs[flow];

    fetch_to_write(&t->seen[flow], sizeof t->seen[flow]);
    if (!d)
        return;
    fetch_to_write(d, offsetof(struct spans, span));
    fetch_to_write(&d->nak, sizeof d->nak);
    fetch_to_write(&d->have_first, CACHE_LINE);
    fetch_to_write(&d->row, CACHE_LINE);
    fetch_to_write(&d->tail, 2 * CACHE_LINE);
    fetch_to_write(&d->early_rtt, sizeof *d - offsetof(struct direction, early_rtt));
}

static void note_seen(struct timeline *t, uint32_t flow, ns_t now)
{
    struct flow_times *s = &t->seen[flow];

    if (!s->any)
        *s = (struct flow_times){.any = true, .last = now};
    else if (now > s->last)
        s->last = now;
}

/* --- What the time up to a packet was --------------------------------------------------------- */

uint32_t timeline_reads(const struct direction *d, const struct req_dir *h)
{
    uint32_t n = 0;

    for (uint32_t at = h->reads_at; d->have_rsp && at > d->reads_from && h->reads_at - at < h->read_slots; at--) {
        const struct read_req *a = req_dir_latest_read(h, h->reads_at - at + 1);
        if (a->again)
            continue;
        if (psn_diff(psn_add(a->psn, a->span), d->rsp_next) <= 0)
            break;
        n++;
    }
    return n;
}

bool timeline_outstanding(const struct direction *d, const struct req_dir *h)
{
    if (UNLIKELY(d->again.on))
        return psn_diff(d->again.next, d->again.una) > 0;
    if (!h->have_next || h->service == SVC_UC)
        return false;
    return !h->have_una || psn_diff(h->next, h->una) > 0 || (h->reads_at && timeline_reads(d, h));
}

void timeline_pass(struct timeline *t, struct direction *d, const struct req_dir *h, ns_t now, bool response)
{
    if (UNLIKELY(is_resending(d)))
        timeline_bill(t, d, now, d->dead ? TIME_PEER_DEAD : TIME_LOSS_RESEND, d->resend.ep);
    else if (!timeline_outstanding(d, h) && d->between) {
        if (!response)
            timeline_note_rest(d, now - d->spans.at);
        spans_add(&d->spans, now, TIME_IDLE, NO_EPISODE);
    } else
        spans_add(&d->spans, now, response && d->waits ? TIME_RESPONSE : TIME_TRANSFER, NO_EPISODE);
}

/* --- Requests --------------------------------------------------------------------------------- */

/* End the retransmission of requests once everything sent before the go-back-N was retransmitted. */
static void settle_requests(struct direction *d, const struct event *e)
{
    uint32_t end = psn_add(e->p->bth.psn, req_dir_span(e->h, e->p));

    if (psn_diff(end, d->resend.psn) >= 0)
        d->resend.requests = false;
}

static void note_gap(struct direction *d, const struct event *e, ns_t now)
{
    d->gap.psn = e->h->next;
    d->gap.ts = now;
    d->gap.frame = frame_u32(e->p);
}

/* A request is retransmitted: keep when its copy before was sent. */
static void note_copy(struct direction *d, const struct event *e)
{
    const struct sent *s = req_dir_sent(e->h, e->p->bth.psn);

    if (s)
        d->copies[d->n_copies++ % COPIES] = (struct copy){.psn = s->psn, .ts = s->ts};
}

/* Whether the latest sequence NAK is for request `e`, of which neither the first copy nor the retransmission passed,
 * and only the ACK timer brought this one about.
 *
 *   request  4 5 6 .... 4 5 6 ............... 3 4 5 6        3 was lost, or damaged, twice
 *   response       NAK 3
 */
static bool is_still_asked(const struct timeline *t, const struct direction *d, const struct event *e, ns_t now)
{
    const struct flow *f = conn_flow_at(observer_conns(t->observer), e->flow);
    bool asked = e->h->seq_naks && e->h->seq.psn == e->p->bth.psn && !e->h->seq.resent;

    return asked && e->h->have_una && e->h->una == e->p->bth.psn && timeline_is_silence(f, d, now - d->spans.at);
}

static void on_request(struct timeline *t, const struct event *e)
{
    struct direction *d = direction_of(t, e->flow, e->p->frame->ts);
    ns_t now = e->p->frame->ts;
    bool late_answer, again;
    ns_t over;

    if (!d)
        return;
    over = timeline_latest_over(d);
    if (UNLIKELY(e->as == SEEN_RESTART)) {
        spans_add(&d->spans, now, TIME_IDLE, NO_EPISODE);
        direction_reset(d);
    }
    if (UNLIKELY(d->damaged.on))
        timeline_came_damaged(t, d, e, now);
    again = e->why != BACK_NONE && timeline_begins_again(t, d, e, now);
    late_answer = e->as == SEEN_LATE && ((d->nak.open && d->nak.psn == e->p->bth.psn) || is_still_asked(t, d, e, now));
    if (UNLIKELY(again))
        timeline_again(d, e, now);
    else if (UNLIKELY(late_answer))
        timeline_late(t, d, e, now);
    else if (UNLIKELY(e->why != BACK_NONE || (d->rnr.open && timeline_ends_rnr(t, d, e, now))))
        timeline_back(t, d, e, now);
    else
        timeline_request(t, d, e, now);
    if (UNLIKELY(t->n_pauses || t->silences || !d->classed)) {
        timeline_note_class(t, d, e->p);
        timeline_paused(t, d, e->flow, over, now);
    }
    if (UNLIKELY(e->as == SEEN_GAP))
        note_gap(d, e, now);
    if (UNLIKELY(d->resend.requests))
        settle_requests(d, e);
    timeline_note_request(d, e);
    if (UNLIKELY(e->as == SEEN_AGAIN))
        note_copy(d, e);
    if (UNLIKELY(e->as != SEEN_NEW))
        timeline_turn(t, d, e, now);
    d->waits = true;
    d->between = e->p->op->flags & OPF_END;
}

/* --- Responses -------------------------------------------------------------------------------- */

/* A response that acknowledges more than the retransmitted packet ends the row of episodes about that packet. Nothing
 * passed for `quiet` between the latest request and it. */
static void end_row(struct timeline *t, struct direction *d, const struct event *e, ns_t quiet)
{
    struct episode *x = episode_at(t, d->row);

    if (psn_diff(response_proves(e->p), x->psn) <= 0)
        return;
    if (x->why == TROUBLE_TIMEOUT && x->root == d->row && timeline_is_long(quiet, d->usual))
        x->slow = quiet;
    x->answer = x->answer ? x->answer : frame_u32(e->p);
    d->row = NO_EPISODE;
}

/* Whether response `e` acknowledges `psn`, and is no NAK. */
static bool is_acknowledged(const struct event *e, uint32_t psn)
{
    bool nak = e->p->op->flags & OPF_ACK && response_type(e->p) != AETH_ACK;

    return !nak && psn_diff(response_proves(e->p), psn) > 0;
}

/* What the requester knows to be delivered: a response that skips an earlier one is dropped. */
static void note_taken(struct direction *d, const struct event *e)
{
    uint32_t proved = response_proves(e->p);

    if ((d->have_taken && psn_diff(proved, d->taken) <= 0) || (d->have_rsp && timeline_skips(d, e)))
        return;
    d->have_taken = true;
    d->taken = proved;
}

static void on_response(struct timeline *t, const struct event *e)
{
    struct direction *d = t->dirs[e->flow];
    ns_t now = e->p->frame->ts;
    ns_t from, over, quiet;

    if (!d)
        return;
    from = d->spans.at;
    quiet = d->waits ? now - from : 0;
    over = timeline_latest_over(d);
    if (UNLIKELY(d->n_blind))
        timeline_sees_responses(t, d, e->flow);
    if (UNLIKELY(t->have_cnps && !d->last_rsp))
        timeline_early_cnps(t, d, e);
    timeline_pass_response(t, d, e, now);
    if (UNLIKELY(t->n_pauses || t->silences))
        timeline_paused(t, d, e->flow, over, now);
    if (d->have_rsp)
        timeline_pass_others(d, e);
    note_taken(d, e);
    timeline_response(t, d, e, from, now);
    timeline_answer_turn(t, d, e, now);
    if (e->h->reads_at)
        timeline_note_skip(d, e, now);
    timeline_note_response(t, d, e);
    if (UNLIKELY(d->resend.responses && psn_diff(response_proves(e->p), d->resend.rsp) > 0 &&
                 !req_dir_is_under_way(e->h, e->p) && !timeline_skips(d, e)))
        d->resend.responses = false; /* the requester accepts the response to a later request: it misses none before */
    if (UNLIKELY(d->rnr.open) && is_acknowledged(e, d->rnr.psn) && !timeline_skips(d, e))
        timeline_rnr_over(t, d, now);
    d->waits = d->dead = false;
    d->tail = 0;
    d->last_rsp = d->spans.at;
    if (UNLIKELY(d->row != NO_EPISODE))
        end_row(t, d, e, quiet);
    if (!(e->p->op->flags & OPF_ACK)) {
        timeline_note_read_response(d, e);
        return;
    }
    timeline_nak(t, d, e, now);
}

/* --- Packets ---------------------------------------------------------------------------------- */

/* Learn the resolution of the time stamps. */
static void note_tick(struct timeline *t, const struct frame *f)
{
    uint32_t tap = conn_tap_of(f);
    struct ts_step *s = &t->ticks[((tap >> 16) * 8 + tap) % TICK_TAPS];

    if (!s->owner)
        *s = ts_step_new(tap + 1, f->ts);
    if (s->owner != tap + 1 || ts_step_is_settled(s))
        return;
    ts_step_learn(s, f->ts);
    while (f->ts % t->tick)
        t->tick /= 10;
}

static void on_early(void *user, const struct pkt *p)
{
    struct timeline *t = user;

    if (UNLIKELY(t->tick > 1))
        note_tick(t, p->frame);
}

static void on_before(void *user, const struct event *e)
{
    struct timeline *t = user;
    ns_t now = e->p->frame->ts, *last = timeline_last(t, conn_tap_of(e->p->frame));

    if (now > *last)
        *last = now;
    if (LIKELY(e->own != FLOW_NONE))
        note_seen(t, e->own, now);
    if (e->kind == EVENT_REQUEST && e->h)
        on_request(t, e);
    else if (e->kind == EVENT_RESPONSE && e->h)
        on_response(t, e);
    else if (e->kind == EVENT_CNP)
        timeline_cnp(t, e);
    else if (e->kind == EVENT_BAD_ICRC)
        timeline_damaged(t, e);
    else if (e->kind == EVENT_OTHER && e->p->addr_len)
        timeline_other(t, e->p);
    else if (e->kind == EVENT_OTHER)
        timeline_pause(t, e->p);
}

/* Whether the requester knows that all PSNs before `psn` were delivered. No response tells it so
 * while an earlier READ response is missing: it drops all later ones. */
static bool knows_delivered(const struct direction *d, const struct req_dir *h, uint32_t psn)
{
    if (!d->have_taken || psn_diff(d->taken, psn) < 0)
        return false;
    return !h->reads_at || !timeline_reads(d, h) || psn_diff(d->rsp_next, psn) >= 0;
}

static void on_after(void *user, const struct event *e)
{
    struct timeline *t = user;
    struct direction *d = t->dirs[e->flow];

    if (d) {
        d->least = e->h->rtt;
        d->least_first = e->h->rtt_first;
    }
    if (UNLIKELY(d && d->resend.requests))
        d->resend.requests = d->again.on ? timeline_outstanding(d, e->h) : !knows_delivered(d, e->h, d->resend.psn);
}

void timeline_unheard(struct timeline *t, uint32_t flow)
{
    struct direction *d = t->dirs[flow];

    if (!d || !d->n_blind)
        return;
    d->unheard = true;
    d->tail = d->n_blind;
    timeline_sees_responses(t, d, flow);
}

/* --- From start to end ------------------------------------------------------------------------ */

static void release(struct timeline *t)
{
    for (uint32_t i = 0; i < conn_counts(observer_conns(t->observer)).flows; i++)
        free(t->dirs[i]);
    free(t->dirs);
    free(t->seen);
    free(t->episodes);
    free(t->rows);
    free(t->silences);
    timeline_ports_free(t);
    free(t);
}

struct timeline *timeline_of(struct observer *o)
{
    struct timeline *t = observer_timeline(o);
    struct observer_sub s = {
        .over = on_over, .fetch = on_fetch, .early = on_early, .before = on_before, .after = on_after};

    if (t)
        return t;
    t = s.user = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->observer = o;
    t->tick = NS_PER_S;
    t->dirs = calloc(observer_flows(o), sizeof(struct direction *));
    t->seen = calloc(observer_flows(o), sizeof *t->seen);
    if (!t->dirs || !t->seen || !observer_subscribe(o, &s)) {
        free(t);
        return NULL;
    }
    observer_set_timeline(o, t, release);
    return t;
}

static int by_number(const void *a, const void *b)
{
    const struct timeline_row *x = a, *y = b;

    if (x->conn != y->conn)
        return x->conn < y->conn ? -1 : 1;
    if (x->tap != y->tap)
        return x->tap < y->tap ? -1 : 1;
    return x->first != y->first ? (x->first < y->first ? -1 : 1) : 0;
}

/* Connections whose two directions were recognised late have another number than when it was noted. */
static void use_final_numbers(struct timeline *t)
{
    struct conn_table *conns = observer_conns(t->observer);

    for (size_t i = 0; i < t->n_rows; i++)
        t->rows[i].conn = conn_number_now(conns, t->rows[i].conn);
    for (uint32_t i = 0; i < t->n; i++)
        t->episodes[i].conn = conn_number_now(conns, t->episodes[i].conn);
}

void timeline_end(struct timeline *t)
{
    if (t->ended)
        return;
    t->ended = true;
    for (uint32_t i = 0; i < conn_counts(observer_conns(t->observer)).flows; i++)
        if (t->dirs[i]) {
            timeline_finish(t, i);
            keep_row(t, i);
        }
    use_final_numbers(t);
    if (t->n_rows)
        qsort(t->rows, t->n_rows, sizeof *t->rows, by_number);
}

size_t timeline_n(const struct timeline *t)
{
    return t->n_rows;
}
const struct timeline_row *timeline_row(const struct timeline *t, size_t i)
{
    return &t->rows[i];
}
uint32_t timeline_episodes(const struct timeline *t)
{
    return t->n;
}
const struct episode *timeline_episode(const struct timeline *t, uint32_t i)
{
    return &t->episodes[i];
}

bool timeline_so_far(const struct timeline *t, uint32_t flow, ns_t states[TIME_STATES])
{
    const struct direction *d = flow < observer_flows(t->observer) ? t->dirs[flow] : NULL;

    if (d)
        spans_total(&d->spans, states);
    return d != NULL;
}

void timeline_between(const struct timeline *t, uint32_t flow, ns_t from, ns_t to, ns_t states[TIME_STATES])
{
    const struct direction *d = flow < observer_flows(t->observer) ? t->dirs[flow] : NULL;

    if (d) {
        spans_between(&d->spans, from, to, states);
        return;
    }
    memset(states, 0, TIME_STATES * sizeof *states);
    states[TIME_NOT_KNOWN] = to > from ? to - from : 0;
}
