/* layer 3 (measure): measurements: rows from their start to their end, intervals, order. */
#include "dissect/pkt.h"
#include "src/account/timeline.h"
#include "src/measure/meter_impl.h"
#include "src/measure/rows_part.h"
#include "src/transport/verbs.h"

#include <stdlib.h>

/* --- Rows ------------------------------------------------------------------------------------- */

void row_blank(struct meter_row *r, const char *const *files, uint32_t tap)
{
    *r = (struct meter_row){.used = true,
                            .files = files,
                            .file = tap >> 16,
                            .iface = tap & 0xffff,
                            .sqpn = METER_NONE,
                            .setup = pairing_str(PAIR_NONE),
                            .certainty = "none",
                            .credits_min = METER_NONE,
                            .credits_max = METER_NONE,
                            .rnr_timer = METER_NONE,
                            .queue_median = METER_NONE,
                            .queue_p99 = METER_NONE,
                            .queue_max = METER_NONE,
                            .migrated_frame = METER_NONE,
                            .pmtu_agreed = METER_NONE,
                            .pmtu_seen = METER_NONE,
                            .depth_agreed = METER_NONE,
                            .timeout_agreed = METER_NONE,
                            .timeout_seen = METER_NONE,
                            .retry_agreed = METER_NONE,
                            .rnr_retry_agreed = METER_NONE,
                            .goodput = METER_NONE,
                            .lost = METER_NONE,
                            .packets_per_ack = METER_NONE,
                            .cnp_gap_min = METER_NONE,
                            .rate_before_cnp = METER_NONE,
                            .rate_after_cnp = METER_NONE,
                            .cnp_gap_mean = METER_NONE};
}

void row_init(struct meter_row *r, const struct pkt *p, const char *const *files)
{
    row_blank(r, files, conn_tap_of(p->frame));
    r->dqpn = p->bth.dqpn;
    r->service = service_str(p->bth.opcode >> 5);
    r->first_frame = p->frame->number;
    r->first = p->frame->ts;
    conn_addr_of(p, &r->src, &r->dst);
}

void row_identify(struct meter_row *r, const struct flow *f)
{
    const struct conn_params *c = &f->params;

    r->conn = f->conn;
    r->peer = f->peer;
    r->sqpn = f->have_sqpn ? f->sqpn : METER_NONE;
    r->setup = pairing_str((enum pairing)f->paired_by);
    r->certainty = f->paired_by == PAIR_NONE ? "none" : f->paired_by == PAIR_PSN ? "likely" : "sure";
    r->upper = f->upper;
    r->pmtu_agreed = f->pmtu ? f->pmtu : METER_NONE;
    r->depth_agreed = c->have_depth ? c->depth : METER_NONE;
    r->timeout_agreed =
        c->timeout_known == PARAM_STATED ? (c->timeout ? (uint64_t)ack_timeout(c->timeout) : 0) : METER_NONE;
    r->retry_agreed = c->retry_known == PARAM_STATED ? c->retry_cnt : METER_NONE;
    r->rnr_retry_agreed = c->have_rnr ? c->rnr_retry : METER_NONE;
}

struct meter_times row_times(const struct hist *h)
{
    if (!h || !h->n)
        return (struct meter_times){0, METER_NONE, METER_NONE, METER_NONE, METER_NONE};
    return (struct meter_times){h->n, (uint64_t)h->min, (uint64_t)hist_permille(h, 500),
                                (uint64_t)hist_permille(h, 990), (uint64_t)h->max};
}

void row_work(struct meter_row *r, struct side *s, const struct wqe *w)
{
    bool ok = w->status == WC_SUCCESS;
    ns_t end = w->done_frame ? w->done : w->last;

    r->ops[w->op]++;
    r->messages++;
    r->completed += ok;
    r->failed += !ok && w->status != WQE_STATUS_UNKNOWN;
    if (ok || w->reason == WQE_UNRELIABLE) {
        r->message_bytes += w->bytes;
        r->good_first = r->have_good && r->good_first < w->start ? r->good_first : w->start;
        r->good_last = r->have_good && r->good_last > end ? r->good_last : end;
        r->have_good = true;
    }
    if (ok && w->begun && s && s->times)
        hist_add(&s->times->message, w->done - w->start);
}

uint64_t rate_of(uint64_t bytes, ns_t time)
{
    return (uint64_t)((double)bytes * 8e9 / (double)time);
}

void row_finish(struct meter_row *r, const struct side *s)
{
    r->latency = row_times(s && s->times ? &s->times->message : NULL);
    r->ack_latency = row_times(s && s->times ? &s->times->ack : NULL);
    if (r->ack_latency.n) {
        r->queue_median = r->ack_latency.median - r->ack_latency.min;
        r->queue_p99 = r->ack_latency.p99 - r->ack_latency.min;
        r->queue_max = r->ack_latency.max - r->ack_latency.min;
    }
    if (r->have_good && r->good_last > r->good_first)
        r->goodput = rate_of(r->message_bytes, r->good_last - r->good_first);
    if (r->acks)
        r->packets_per_ack = r->acked * 1000 / r->acks;
    if (r->grams && r->missing != r->late)
        r->missing = METER_NONE; /* the missing ones may be for other queue pairs */
    if (r->c.cnps > 1)
        r->cnp_gap_mean = (uint64_t)(r->cnp_last - r->cnp_first) / (r->c.cnps - 1);
}

struct wqe_env meter_env(struct meter *m, uint32_t flow)
{
    return (struct wqe_env){m->observer, observer_req_dir(m->observer, flow), &conn_flow_at(m->conns, flow)->params,
                            &m->work, &m->next_id};
}

/* --- Intervals -------------------------------------------------------------------------------- */

static void tick_row(struct meter *m, struct meter_row *r)
{
    const uint64_t *now = (const uint64_t *)&r->c, *before = (const uint64_t *)&r->before;
    struct meter_counts added;
    uint64_t *to = (uint64_t *)&added, any = 0;

    for (size_t i = 0; i < sizeof added / sizeof *to; i++)
        any |= to[i] = now[i] - before[i];
    r->before = r->c;
    r->active = false;
    if (any)
        m->o.tick(m->o.user, r, m->tick_start, m->tick_start - m->tick_origin, &added);
}

void meter_tick_all(struct meter *m)
{
    for (size_t i = 0; i < m->n_active; i++)
        if (m->active[i]->active) {
            struct meter_row *r = m->active[i];
            if (r->conn && !r->stream) /* it may have been paired since */
                row_identify(r, conn_flow_at(m->conns, (uint32_t)(r - m->rows)));
            tick_row(m, r);
        }
    m->n_active = 0;
}

void meter_tick_to(struct meter *m, ns_t now)
{
    if (!m->o.interval)
        return;
    if (!m->ticking) {
        m->ticking = true;
        m->tick_origin = m->tick_start = now;
    }
    if (LIKELY(now - m->tick_start < m->o.interval))
        return;
    meter_tick_all(m);
    m->tick_start += (now - m->tick_start) / m->o.interval * m->o.interval;
}

void meter_lengthen(struct meter *m, ns_t interval)
{
    m->o.interval = interval;
    m->tick_start -= (m->tick_start - m->tick_origin) % interval;
}

void meter_activate(struct meter *m, struct meter_row *r)
{
    if (r->active || !m->o.interval || m->n_active == ACTIVE_MAX(m))
        return;
    r->active = true;
    m->active[m->n_active++] = r;
}

/* --- The end of a row ------------------------------------------------------------------------- */

void meter_retire(struct meter *m, uint32_t flow, enum wqe_reason why)
{
    struct meter_row *r = &m->rows[flow], *copy;

    if (m->sides[flow]) {
        struct wqe_env e = meter_env(m, flow);
        wqe_flush(&m->sides[flow]->ring, &e, why, m->t.last);
    }
    row_finish(r, m->sides[flow]);
    slowed_finish(m, flow, r);
    if (r->active)
        tick_row(m, r);
    copy = m->n_old < METER_OLD ? malloc(sizeof *copy) : NULL;
    if (copy) {
        *copy = *r;
        copy->sent = NULL;
        copy->n_sent = 0;
        m->old[m->n_old++] = copy;
    } else {
        m->t.lost_rows++;
    }
    for (size_t i = 0; i < m->n_active; i++)
        if (m->active[i] == r)
            m->active[i--] = m->active[--m->n_active];
}

/* --- Order ------------------------------------------------------------------------------------ */

static int by_conn(const void *a, const void *b)
{
    const struct meter_row *x = *(struct meter_row *const *)a, *y = *(struct meter_row *const *)b;

    if (!x->conn != !y->conn)
        return x->conn ? -1 : 1; /* datagrams come last */
    if (x->conn != y->conn)
        return x->conn < y->conn ? -1 : 1;
    if (x->file != y->file)
        return x->file < y->file ? -1 : 1;
    if (x->iface != y->iface)
        return x->iface < y->iface ? -1 : 1;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return x->first_frame < y->first_frame ? -1 : x->first_frame > y->first_frame;
}

void rows_order(struct meter_row **rows, size_t n)
{
    if (n)
        qsort(rows, n, sizeof *rows, by_conn);
}

/* --- Accounts --------------------------------------------------------------------------------- */

static bool is_account_of(const struct timeline_row *a, const struct meter_row *r)
{
    bool same_ends = a->dqpn == r->dqpn && conn_addr_eq(&a->src, &r->src) && conn_addr_eq(&a->dst, &r->dst);

    return same_ends && a->tap == row_tap(r) && a->first <= r->last && a->last >= r->first;
}

static void take_account(struct meter_row *r, const struct timeline *t)
{
    if (r->stream) /* its account is complete */
        return;
    r->accounted = false;
    r->lost = METER_NONE;
    for (size_t i = timeline_first(t, r->conn); r->conn && i < timeline_n(t); i++) {
        const struct timeline_row *a = timeline_row(t, i);
        if (a->conn != r->conn)
            return;
        if (!is_account_of(a, r))
            continue;
        r->accounted = true;
        r->lost = (uint64_t)states_lost(a->states);
        memcpy(r->states, a->states, sizeof r->states);
        return;
    }
}

struct meter_row **meter_rows(struct meter *m, size_t *n)
{
    uint32_t flows = conn_counts(m->conns).flows;
    size_t room = m->n_old + flows + m->n_ud + m->n_streams;

    *n = 0;
    free(m->all);
    m->all = calloc(room ? room : 1, sizeof(struct meter_row *));
    if (!m->all)
        return NULL;
    for (size_t i = 0; i < m->n_old; i++)
        m->all[(*n)++] = m->old[i];
    for (size_t i = 0; i < flows; i++)
        if (m->rows[i].used)
            m->all[(*n)++] = &m->rows[i];
    for (size_t i = 0; i < UD_SLOTS; i++)
        if (m->ud[i])
            m->all[(*n)++] = m->ud[i];
    for (uint32_t i = 0; i < m->n_streams; i++)
        m->all[(*n)++] = meter_stream(m, i);
    for (size_t i = 0; i < *n && observer_timeline(m->observer); i++)
        take_account(m->all[i], observer_timeline(m->observer));
    rows_order(m->all, *n);
    return m->all;
}

/* The flow of a row; FLOW_NONE: it is over, or has datagrams. */
static uint32_t flow_of(const struct meter *m, const struct meter_row *r)
{
    return r >= m->rows && r < m->rows + m->flows ? (uint32_t)(r - m->rows) : FLOW_NONE;
}

/* A copy of a row, to which its open work requests are added. */
struct so_far {
    struct meter_row *row;
    struct side side;
    struct side_times times;
};

static void on_over_so_far(void *user, const struct wqe *w, uint32_t flow)
{
    struct so_far *s = user;

    (void)flow;
    row_work(s->row, &s->side, w);
}

/* Values of a row with requests, as if their last packet had come. */
static void finish_so_far(struct meter *m, uint32_t flow, struct meter_row *to)
{
    const struct side *now = m->sides[flow];
    struct so_far *s = now ? malloc(sizeof *s) : NULL;
    const struct wqe_user over = {.user = s, .over = on_over_so_far};
    struct wqe_env e = meter_env(m, flow);

    if (s) {
        s->row = to;
        s->side = *now;
        if (now->times) {
            s->times = *now->times;
            s->side.times = &s->times;
        }
        e.user = &over;
        if (wqe_ring_copy(&s->side.ring, &now->ring))
            wqe_flush(&s->side.ring, &e, WQE_CAPTURE_ENDS, m->t.last);
        wqe_ring_free(&s->side.ring);
    }
    row_finish(to, s ? &s->side : NULL);
    free(s);
}

/* The account of a row with requests, as it is by now. */
static void account_so_far(struct meter *m, uint32_t flow, struct meter_row *to)
{
    const struct timeline *t = observer_timeline(m->observer);

    to->accounted = t && timeline_so_far(t, flow, to->states);
    to->lost = to->accounted ? (uint64_t)states_lost(to->states) : METER_NONE;
}

void meter_row_so_far(struct meter *m, const struct meter_row *r, struct meter_row *to)
{
    uint32_t flow = flow_of(m, r);
    const struct flow *f = flow == FLOW_NONE ? NULL : conn_flow_at(m->conns, flow);

    *to = *r;
    if (f) {
        row_identify(to, f);
        finish_so_far(m, flow, to);
        account_so_far(m, flow, to);
        slowed_finish(m, flow, to);
    } else if (r->stream) {
        meter_stream_finish(m, r, to);
    } else if (r->grams) {
        row_finish(to, NULL);
    }
}

void meter_counts_add(struct meter_counts *to, const struct meter_counts *from)
{
    uint64_t *sum = (uint64_t *)to;
    const uint64_t *add = (const uint64_t *)from;

    _Static_assert(sizeof *to % sizeof *sum == 0, "all members are counts");
    for (size_t i = 0; i < sizeof *to / sizeof *sum; i++)
        sum[i] += add[i];
}

void meter_last_frame(struct meter *m, ns_t ts)
{
    m->t.last = ts > m->t.last ? ts : m->t.last;
}

uint64_t meter_finished(const struct meter *m)
{
    return m->n_old;
}

uint64_t meter_requests(const struct meter *m)
{
    return m->next_id;
}
