/* layer 3 (trace): counters and latencies of connections. */
#include "src/trace/flows.h"

#include "src/trace/flows_impl.h"

#include <stdlib.h>

/* --- Distributions --------------------------------------------------------------------------------------------------------------- */

void dist_add(struct dist *d, ns_t v)
{
    uint64_t at = d->n++;

    if (at == 0 || v < d->min)
        d->min = v;
    if (at == 0 || v > d->max)
        d->max = v;
    if (at >= DIST_KEPT) { /* each value stays with the same probability */
        d->seed = d->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        at = (d->seed >> 11) % d->n;
        if (at >= DIST_KEPT)
            return;
    }
    d->kept[at] = v;
}

static int by_value(const void *a, const void *b)
{
    ns_t x = *(const ns_t *)a, y = *(const ns_t *)b;

    return x < y ? -1 : x > y;
}

ns_t dist_at(struct dist *d, unsigned permille)
{
    size_t n = d->n < DIST_KEPT ? (size_t)d->n : DIST_KEPT, rank;

    if (!n)
        return 0;
    if (permille == 0)
        return d->min;
    if (permille >= 1000)
        return d->max;
    qsort(d->kept, n, sizeof d->kept[0], by_value);
    rank = (n * permille + 999) / 1000;
    return d->kept[rank ? rank - 1 : 0];
}

/* --- Requests --------------------------------------------------------------------------------------------------------------------- */

static struct flow_row *row_of(struct flows *f, uint32_t flow)
{
    struct flow_row *r = f->rows[flow];

    if (LIKELY(r != NULL))
        return r;
    r = f->rows[flow] = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->used = true;
    r->cnp_gap = r->least_wait = NS_NEVER;
    r->credit = AETH_CREDIT_INVALID;
    return r;
}

static void row_time(struct flow_row *r, const struct pkt *p)
{
    if (!r->first_frame) {
        r->first_frame = frame_u32(p);
        r->first = p->frame->ts;
    }
    if (p->frame->ts > r->last)
        r->last = p->frame->ts;
}

static void count_message(struct flow_row *r, uint32_t flags)
{
    if (flags & OPF_SEND)
        r->sends++;
    else if (flags & OPF_WRITE)
        r->writes++;
    else if (flags & OPF_READ_REQ)
        r->reads++;
    else if (flags & OPF_ATOMIC_REQ)
        r->atomics++;
    else
        r->others++;
}

/* A message begins or goes on: what its latency will be counted from. */
static void open_message(struct flow_row *r, const struct watched *e, uint32_t span)
{
    uint32_t flags = e->p->op->flags;
    struct flow_msg *m = &r->open[(r->open_at - 1) % FLOW_OPEN];

    if (flags & OPF_START) {
        m = &r->open[r->open_at++ % FLOW_OPEN];
        *m = (struct flow_msg){.ts = e->p->frame->ts, .used = true, .psn = e->p->bth.psn, .read = flags & OPF_READ_REQ};
        m->len = m->read ? e->p->reth.dmalen : 0;
    }
    if (flags & OPF_END && m->used && !m->whole) {
        m->whole = true;
        m->end = psn_add(e->p->bth.psn, span);
    }
}

static void on_request(void *user, const struct watched *e)
{
    struct flows *f = user;
    struct flow_row *r = row_of(f, e->flow);
    const struct pkt *p = e->p;
    const struct sent *s;
    struct ask *oldest;
    bool asked;

    if (!r)
        return;
    row_time(r, p);
    r->service = p->bth.opcode >> 5;
    r->packets++;
    r->bytes += p->payload_len;
    r->in_packets++;
    r->in_bytes += p->payload_len;
    r->ce += p->addr_len && (p->tos & 3) == 3;
    if (p->op->flags & (OPF_FIRST | OPF_MIDDLE))
        r->pmtu = max_u32(r->pmtu, p->payload_len);
    r->timeouts += e->why == BACK_SILENCE;
    r->implied += e->why == BACK_IMPLIED;
    if (e->as == SEEN_AGAIN || e->as == SEEN_OLD) {
        r->again++;
        r->again_bytes += p->payload_len;
        s = half_sent(e->h, p->bth.psn);
        if (e->why == BACK_SILENCE && s && p->frame->ts - s->ts < r->least_wait)
            r->least_wait = p->frame->ts - s->ts;
        return;
    }
    asked = e->as == SEEN_LATE && e->h->seq.have && !e->h->seq.resent && e->h->seq.psn == p->bth.psn;
    r->copies += e->as == SEEN_COPY;
    r->late += e->as == SEEN_LATE && !asked;
    r->again += asked; /* its first copy was lost before the tap */
    r->again_bytes += asked ? p->payload_len : 0;
    if (e->as == SEEN_COPY)
        return;
    r->fresh_bytes += p->payload_len;
    if (p->op->flags & OPF_START)
        count_message(r, p->op->flags);
    if (e->as != SEEN_LATE)
        open_message(r, e, half_span(e->h, p));
    if (p->op->flags & (OPF_READ_REQ | OPF_ATOMIC_REQ))
        r->max_reads = max_u32(r->max_reads, half_outstanding(e->h, &oldest) + 1);
}

/* --- Responses -------------------------------------------------------------------------------------------------------------------- */

/* Messages that a response of PSN `psn` completes: READs and atomics by their own answer only, which ends at that PSN. */
static void complete(struct flow_row *r, const struct watched *e)
{
    uint32_t proves = response_proves(e->p);

    for (unsigned i = 0; i < FLOW_OPEN; i++) {
        struct flow_msg *m = &r->open[i];
        if (!m->used || !m->whole)
            continue;
        if (m->read)
            m->end = psn_add(m->psn, half_read_span(e->h, m->len));
        if (psn_diff(m->end, proves) > 0)
            continue;
        dist_add(&r->msg_latency, e->p->frame->ts - m->ts);
        m->used = false;
    }
}

static void on_ack(struct flow_row *r, const struct watched *e)
{
    const struct sent *s = half_sent(e->h, e->p->bth.psn);

    switch (aeth_type(e->p)) {
    case AETH_ACK:
        r->acks++;
        r->credit = e->p->aeth.syndrome & 31;
        if (s && (!e->h->have_una || psn_diff(e->p->bth.psn, e->h->una) >= 0))
            dist_add(&r->ack_latency, e->p->frame->ts - s->ts);
        break;
    case AETH_RNR:
        r->rnr_naks++;
        if (!r->in_rnr)
            r->rnr_since = e->p->frame->ts;
        r->in_rnr = true;
        break;
    case AETH_NAK:
        if ((e->p->aeth.syndrome & 31) == NAK_PSN_SEQ)
            r->seq_naks++;
        else
            r->fatal_naks++;
        break;
    default:
        break;
    }
}

static void on_response(void *user, const struct watched *e)
{
    struct flows *f = user;
    struct flow_row *r = row_of(f, e->flow);
    const struct pkt *p = e->p;
    struct ask *a;

    if (!r)
        return;
    row_time(r, p);
    r->rsp_packets++;
    r->rsp_bytes += p->payload_len;
    if (p->op->flags & OPF_READ_RESP) {
        r->in_bytes += p->payload_len;
        a = half_ask(e->h, p->bth.psn, 0);
        if (!e->h->have_una || psn_diff(p->bth.psn, e->h->una) >= 0 || (a && p->bth.psn == psn_add(a->psn, a->got) && !a->again))
            r->fresh_bytes += p->payload_len;
    }
    if (p->op->flags & OPF_ACK && p->have & H_AETH)
        on_ack(r, e);
    if (r->in_rnr && e->h->rnr.have && psn_diff(response_proves(p), e->h->rnr.psn) > 0) {
        r->in_rnr = false;
        r->rnr_cost += p->frame->ts - r->rnr_since;
    }
    complete(r, e);
}

static void on_bad_icrc(void *user, const struct pkt *p, uint32_t flow)
{
    struct flow_row *r = flow == FLOW_NONE ? NULL : row_of(user, flow);

    (void)p;
    if (r)
        r->bad_icrc++;
}

static void on_other(void *user, const struct pkt *p, uint32_t flow)
{
    struct flows *f = user;
    uint32_t peer = flow == FLOW_NONE ? FLOW_NONE : conn_flow_at(watch_conns(f->watch), flow)->peer;
    struct flow_row *r;

    /* A CNP goes to the queue pair whose requests were marked: they are those of the flow's peer. */
    if (flow == FLOW_NONE || peer == FLOW_NONE)
        return;
    r = row_of(f, peer);
    if (!r)
        return;
    if (r->cnps++ && p->frame->ts - r->cnp_last < r->cnp_gap)
        r->cnp_gap = p->frame->ts - r->cnp_last;
    r->cnp_last = p->frame->ts;
}

static void on_fresh(void *user, uint32_t flow)
{
    struct flows *f = user;
    struct flow_row *r = f->rows[flow];

    if (!r)
        return;
    flows_keep(f, flow, r);
    f->rows[flow] = NULL;
}

/* --- From start to end --------------------------------------------------------------------------------------------------------------- */

struct flows *flows_new(ns_t interval, struct buf *series)
{
    struct flows *f = calloc(1, sizeof *f);
    struct watch_user u = {f, on_fresh, on_request, on_response, on_bad_icrc, on_other};

    if (!f)
        return NULL;
    f->interval = interval;
    f->series = series;
    f->watch = watch_new(&u);
    if (!f->watch) {
        free(f);
        return NULL;
    }
    return f;
}

void flows_free(struct flows *f)
{
    if (!f)
        return;
    for (unsigned i = 0; i < WATCH_FLOWS; i++)
        free(f->rows[i]);
    for (uint32_t i = 0; i < f->n_done; i++)
        free(f->done[i].row);
    free(f->done);
    watch_free(f->watch);
    free(f);
}

struct conn_table *flows_conns(struct flows *f)
{
    return watch_conns(f->watch);
}

/* Lines for the interval that has ended. */
static void series_flush(struct flows *f)
{
    struct conn_table *t = watch_conns(f->watch);
    uint32_t n = conn_counts(t).flows;

    for (uint32_t i = 0; i < n; i++) {
        struct flow_row *r = f->rows[i];
        if (!r || !(r->in_packets | r->in_bytes))
            continue;
        buf_printf(f->series, "%.6f connection %u: ", (double)(f->in_start - f->first) / 1e9, conn_flow_at(t, i)->conn);
        flows_end_names(f->series, conn_flow_at(t, i));
        buf_printf(f->series, " %llu packets, %llu bytes, %.3f Mbit/s\n", (unsigned long long)r->in_packets, (unsigned long long)r->in_bytes,
                   (double)r->in_bytes * 8e3 / (double)f->interval);
        r->in_packets = r->in_bytes = 0;
    }
}

void flows_packet(struct flows *f, const struct pkt *p)
{
    if (p->frame->has_ts && !f->timed) {
        f->timed = true;
        f->first = f->in_start = p->frame->ts;
    }
    if (f->interval && p->frame->ts - f->in_start >= f->interval) {
        series_flush(f);
        f->in_start += (p->frame->ts - f->in_start) / f->interval * f->interval;
    }
    f->packets++;
    watch_packet(f->watch, p);
}

void flows_end(struct flows *f, enum flows_sort sort)
{
    struct conn_table *t = watch_conns(f->watch);
    uint32_t n = conn_counts(t).flows;

    if (f->interval)
        series_flush(f);
    for (uint32_t i = 0; i < n; i++)
        if (f->rows[i]) {
            flows_keep(f, i, f->rows[i]);
            f->rows[i] = NULL;
        }
    flows_order(f, sort);
}
