/* layer 3 (trace): measurements: rows, and what packets add to them. */
#include "src/trace/meter.h"

#include "src/trace/hist.h"
#include "src/trace/learn.h"

#include <stdlib.h>

#define UD_SLOTS (METER_FLOWS * 2) /* of the table of datagram rows, a power of two */
#define UD_FLOW(slot) (UINT32_C(0x80000000) | (slot))

/* What only rows with requests need. */
struct side {
    struct hist latency, ack_latency;
    struct half half;
    struct work_ring ring;
};

struct meter {
    struct meter_opts o;
    struct work_user work; /* what the ring calls */
    struct conn_table *conns;
    struct learner learner;
    struct meter_row *rows; /* METER_FLOWS, by flow */
    struct side **sides;
    struct meter_row **ud; /* UD_SLOTS */
    uint32_t n_ud;
    struct meter_row **old; /* METER_OLD */
    size_t n_old;
    struct meter_row **active;
    size_t n_active;
    struct meter_row **all; /* made by meter_rows() */
    ns_t tick_start;
    bool ticking;
    uint64_t next_id;
    struct meter_totals t;
};

/* --- Rows ----------------------------------------------------------------------------------------------------------------------- */

static void row_init(struct meter_row *r, const struct pkt *p)
{
    *r = (struct meter_row){.used = true,
                            .file = p->frame->file,
                            .iface = p->frame->iface,
                            .sqpn = METER_NONE,
                            .dqpn = p->bth.dqpn,
                            .service = service_str(p->bth.opcode >> 5),
                            .setup = pairing_str(PAIR_NONE),
                            .certainty = "none",
                            .first_frame = p->frame->number,
                            .first = p->frame->ts,
                            .credits_min = METER_NONE,
                            .credits_max = METER_NONE,
                            .rnr_timer = METER_NONE,
                            .pmtu_agreed = METER_NONE,
                            .pmtu_seen = METER_NONE,
                            .depth_agreed = METER_NONE,
                            .timeout_agreed = METER_NONE,
                            .timeout_seen = METER_NONE,
                            .retry_agreed = METER_NONE,
                            .rnr_retry_agreed = METER_NONE,
                            .goodput = METER_NONE,
                            .packets_per_ack = METER_NONE,
                            .cnp_gap_min = METER_NONE,
                            .cnp_gap_mean = METER_NONE};
    conn_addr_of(p, &r->src, &r->dst);
}

/* What is known of the connection. */
static void row_identify(struct meter_row *r, const struct flow *f)
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
    r->timeout_agreed = c->have_timeout ? (c->timeout ? UINT64_C(4096) << c->timeout : 0) : METER_NONE;
    r->retry_agreed = c->have_timeout ? c->retry_cnt : METER_NONE;
    r->rnr_retry_agreed = c->have_rnr ? c->rnr_retry : METER_NONE;
}

static struct meter_times times_of(const struct hist *h)
{
    if (!h || !h->n)
        return (struct meter_times){0, METER_NONE, METER_NONE, METER_NONE, METER_NONE};
    return (struct meter_times){h->n, (uint64_t)h->min, (uint64_t)hist_permille(h, 500), (uint64_t)hist_permille(h, 990),
                                (uint64_t)h->max};
}

/* Values that are computed from others. */
static void row_finish(struct meter_row *r, const struct side *s)
{
    r->latency = times_of(s ? &s->latency : NULL);
    r->ack_latency = times_of(s ? &s->ack_latency : NULL);
    if (r->have_good && r->good_last > r->good_first)
        r->goodput = (uint64_t)((double)r->message_bytes * 8e9 / (double)(r->good_last - r->good_first));
    if (r->acks)
        r->packets_per_ack = r->acked * 1000 / r->acks;
    if (r->c.cnps > 1)
        r->cnp_gap_mean = (uint64_t)(r->cnp_last - r->cnp_first) / (r->c.cnps - 1);
}

static struct work_env env_of(struct meter *m, uint32_t flow)
{
    return (struct work_env){&m->sides[flow]->half, &conn_flow_at(m->conns, flow)->params, &m->work, &m->next_id};
}

/* --- Intervals ------------------------------------------------------------------------------------------------------------------ */

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
        m->o.tick(m->o.user, r, m->tick_start, &added);
}

static void tick_all(struct meter *m)
{
    for (size_t i = 0; i < m->n_active; i++)
        if (m->active[i]->active) {
            struct meter_row *r = m->active[i];
            if (r->conn) /* it may have been paired since */
                row_identify(r, conn_flow_at(m->conns, (uint32_t)(r - m->rows)));
            tick_row(m, r);
        }
    m->n_active = 0;
}

/* Time goes on to `now`: what was added up to now belongs to the interval that ends. */
static void tick_to(struct meter *m, ns_t now)
{
    if (!m->o.interval)
        return;
    if (!m->ticking) {
        m->ticking = true;
        m->tick_start = now;
    }
    if (LIKELY(now - m->tick_start < m->o.interval))
        return;
    tick_all(m);
    m->tick_start += (now - m->tick_start) / m->o.interval * m->o.interval;
}

static void activate(struct meter *m, struct meter_row *r)
{
    if (r->active || !m->o.interval || m->n_active == METER_FLOWS * 2)
        return;
    r->active = true;
    m->active[m->n_active++] = r;
}

/* --- The end of a row ----------------------------------------------------------------------------------------------------------- */

/* The row of a flow is over: keep a copy. */
static void retire(struct meter *m, uint32_t flow, enum work_reason why)
{
    struct meter_row *r = &m->rows[flow], *copy;

    if (m->sides[flow]) {
        struct work_env e = env_of(m, flow);
        work_flush(&m->sides[flow]->ring, &e, why, m->t.last);
    }
    row_finish(r, m->sides[flow]);
    if (r->active)
        tick_row(m, r);
    copy = m->n_old < METER_OLD ? malloc(sizeof *copy) : NULL;
    if (copy) {
        *copy = *r;
        m->old[m->n_old++] = copy;
    } else {
        m->t.lost_rows++;
    }
    for (size_t i = 0; i < m->n_active; i++)
        if (m->active[i] == r)
            m->active[i--] = m->active[--m->n_active];
}

static void fresh_flow(void *user, uint32_t flow)
{
    struct meter *m = user;

    if (m->rows[flow].used)
        retire(m, flow, WORK_RESTART);
    free(m->sides[flow]);
    m->sides[flow] = NULL;
    m->rows[flow].used = false;
}

static bool has_psn(void *user, uint32_t flow, uint32_t psn)
{
    struct side *s = ((struct meter *)user)->sides[flow];

    return s && half_has_psn(&s->half, psn);
}

/* --- Work requests -------------------------------------------------------------------------------------------------------------- */

static void on_over(void *user, const struct work *w, uint32_t flow)
{
    struct meter *m = user;
    bool ud = flow >= UD_FLOW(0);
    struct meter_row *r = ud ? m->ud[flow - UD_FLOW(0)] : &m->rows[flow];
    bool ok = w->status == WC_SUCCESS;
    ns_t end = w->done_frame ? w->done : w->last;

    r->ops[w->op]++;
    r->messages++;
    r->completed += ok;
    r->failed += !ok && w->status != WORK_STATUS_UNKNOWN;
    if (ok || w->reason == WORK_UNRELIABLE) {
        r->message_bytes += w->bytes;
        r->good_first = r->have_good && r->good_first < w->start ? r->good_first : w->start;
        r->good_last = r->have_good && r->good_last > end ? r->good_last : end;
        r->have_good = true;
    }
    if (ok && w->begun && !ud && m->sides[flow])
        hist_add(&m->sides[flow]->latency, w->done - w->start);
    if (m->o.work.over)
        m->o.work.over(m->o.work.user, w, flow);
}

static void on_work_packet(void *user, const struct work *w, const struct pkt *p)
{
    const struct meter *m = user;

    m->o.work.packet(m->o.work.user, w, p);
}

/* --- Life ----------------------------------------------------------------------------------------------------------------------- */

struct meter *meter_new(const struct meter_opts *o)
{
    struct meter *m = calloc(1, sizeof *m);

    if (!m)
        return NULL;
    m->o = *o;
    m->work = (struct work_user){m, o->work.packet ? on_work_packet : NULL, on_over};
    m->conns = conn_table_new(METER_FLOWS);
    m->rows = calloc(METER_FLOWS, sizeof *m->rows);
    m->sides = calloc(METER_FLOWS, sizeof(struct side *));
    m->ud = calloc(UD_SLOTS, sizeof(struct meter_row *));
    m->old = calloc(METER_OLD, sizeof(struct meter_row *));
    m->active = calloc(METER_FLOWS * 2, sizeof(struct meter_row *));
    if (!m->conns || !m->rows || !m->sides || !m->ud || !m->old || !m->active) {
        meter_free(m);
        return NULL;
    }
    conn_table_user(m->conns, m, fresh_flow, has_psn);
    return m;
}

void meter_free(struct meter *m)
{
    if (!m)
        return;
    for (size_t i = 0; m->sides && i < METER_FLOWS; i++)
        free(m->sides[i]);
    for (size_t i = 0; m->ud && i < UD_SLOTS; i++)
        free(m->ud[i]);
    for (size_t i = 0; i < m->n_old; i++)
        free(m->old[i]);
    free(m->sides);
    free(m->rows);
    free(m->ud);
    free(m->old);
    free(m->active);
    free(m->all);
    conn_table_free(m->conns);
    free(m);
}

struct conn_table *meter_conns(struct meter *m)
{
    return m->conns;
}

const struct meter_row *meter_row_of(struct meter *m, uint32_t flow)
{
    if (flow >= UD_FLOW(0))
        return m->ud[flow - UD_FLOW(0)];
    row_identify(&m->rows[flow], conn_flow_at(m->conns, flow));
    return &m->rows[flow];
}

struct meter_totals meter_totals(const struct meter *m)
{
    return m->t;
}

/* --- Packets -------------------------------------------------------------------------------------------------------------------- */

/* What any packet adds to its row. */
static void count_packet(struct meter *m, struct meter_row *r, const struct pkt *p)
{
    r->last_frame = p->frame->number;
    r->last = p->frame->ts;
    r->c.packets++;
    r->c.bytes += p->frame->len;
    r->c.payload += p->op->flags & OPF_CNP ? 0 : p->payload_len; /* a CNP's are reserved bytes */
    r->c.ce += p->have & (H_IP4 | H_IP6) && (p->tos & 3) == 3;
    m->t.counted++;
    activate(m, r);
}

static void raise(uint64_t *to, uint64_t v)
{
    if (*to == METER_NONE || *to < v)
        *to = v;
}
static void lower(uint64_t *to, uint64_t v)
{
    if (*to == METER_NONE || *to > v)
        *to = v;
}

static void count_again(struct meter_row *r, struct side *s, const struct pkt *p, enum seen_as as)
{
    struct half *h = &s->half;
    uint32_t psn = p->bth.psn;
    bool delivered = h->have_una && psn_diff(psn, h->una) < 0;
    const struct sent *before = half_sent(h, psn);
    ns_t since;

    r->duplicates += as == SEEN_COPY;
    r->duplicate_requests += as == SEEN_COPY || ((as == SEEN_AGAIN || as == SEEN_OLD) && delivered);
    r->late += as == SEEN_LATE;
    if (as != SEEN_AGAIN && as != SEEN_OLD)
        return;
    r->c.again++;
    r->again_bytes += p->payload_len;
    if (psn == h->cursor || as == SEEN_OLD)
        return;
    switch (half_why_back(h, psn)) {
    case BACK_IMPLIED:
        r->implied_naks++;
        break;
    case BACK_SILENCE:
        r->c.timeouts++;
        since = before ? before->ts : h->last_ts;
        if (h->have_una && h->una_ts > since)
            since = h->una_ts;
        if (p->frame->ts > since) {
            s->ring.silence = p->frame->ts - since;
            r->timeout_wait += (uint64_t)s->ring.silence;
            lower(&r->timeout_seen, (uint64_t)s->ring.silence);
        }
        break;
    default:
        break;
    }
}

static void count_request(struct meter_row *r, struct side *s, const struct pkt *p, enum seen_as as)
{
    struct half *h = &s->half;

    r->service = service_str(p->bth.opcode >> 5); /* a CNP may have been first */
    r->requests++;
    r->request_bytes += p->payload_len;
    if (p->op->flags & (OPF_FIRST | OPF_MIDDLE))
        raise(&r->pmtu_seen, p->payload_len);
    if (UNLIKELY(h->rnr.have && !h->rnr.resent && h->rnr.psn == p->bth.psn) && as != SEEN_COPY && p->frame->ts > h->rnr.ts)
        r->rnr_wait += (uint64_t)(p->frame->ts - h->rnr.ts);
    if (UNLIKELY(h->have_next && psn_diff(p->bth.psn, h->gbn) > 0 && as != SEEN_RESTART))
        r->out_of_sequence++;
    if (UNLIKELY(as == SEEN_GAP))
        r->missing += (p->bth.psn - h->next) & PSN_MASK;
    else if (UNLIKELY(as != SEEN_NEW && as != SEEN_RESTART))
        count_again(r, s, p, as);
    if (p->op->flags & (OPF_READ_REQ | OPF_ATOMIC_REQ) && (as == SEEN_NEW || as == SEEN_GAP)) {
        struct ask *oldest;
        raise(&r->depth_seen, half_outstanding(h, &oldest) + 1);
    }
}

static struct side *side_of(struct meter *m, const struct pkt *p, uint32_t flow)
{
    struct flow *f = conn_flow_at(m->conns, flow);
    struct side *s = m->sides[flow];

    if (LIKELY(s != NULL))
        return s;
    s = m->sides[flow] = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    half_init(&s->half, flow);
    half_set_pmtu(&s->half, f->pmtu);
    s->half.from_start = f->have_psn && f->psn == p->bth.psn;
    return s;
}

static void on_request(struct meter *m, const struct pkt *p, uint32_t flow)
{
    struct meter_row *r = &m->rows[flow];
    struct side *s = side_of(m, p, flow);
    struct work_env e;
    struct half *h;
    enum seen_as as;

    if (!s)
        return;
    h = &s->half;
    e = env_of(m, flow);
    as = half_seen_as(h, p);
    count_request(r, s, p, as);
    if (UNLIKELY(as == SEEN_RESTART)) {
        r->restarts++;
        work_flush(&s->ring, &e, WORK_RESTART, p->frame->ts);
    }
    half_request(h, p, as);
    work_request(&s->ring, &e, p, as == SEEN_RESTART ? SEEN_NEW : as);
    r->retry_seen = r->retry_seen > h->retries ? r->retry_seen : h->retries;
    if (p->bth.opcode >> 5 != SVC_UC) {
        uint32_t out = (h->next - (h->have_una ? h->una : h->start)) & PSN_MASK;
        r->in_flight = r->in_flight > out ? r->in_flight : out;
    }
}

/* An ACK or NAK of `r`'s requests, of which none may have been seen (`s` is NULL). */
static void count_acknowledge(struct meter_row *r, struct side *s, const struct pkt *p)
{
    const struct sent *sent = s ? half_sent(&s->half, p->bth.psn) : NULL;
    unsigned code = p->aeth.syndrome & 31;

    switch (aeth_type(p)) {
    case AETH_ACK:
        r->acks++;
        if (code != AETH_CREDIT_INVALID) {
            lower(&r->credits_min, aeth_credits(code));
            raise(&r->credits_max, aeth_credits(code));
        }
        if (sent && p->frame->ts >= sent->ts)
            hist_add(&s->ack_latency, p->frame->ts - sent->ts);
        break;
    case AETH_RNR:
        r->c.rnr_naks++;
        r->rnr_timer = (uint64_t)rnr_time(code);
        break;
    default:
        if (code == NAK_PSN_SEQ)
            r->c.seq_naks++;
        else
            r->naks++;
    }
}

static void on_response(struct meter *m, const struct pkt *p, uint32_t flow)
{
    const struct flow *f = conn_flow_at(m->conns, flow);
    struct work_env e;
    struct meter_row *r;
    struct side *s;
    struct half *h;
    uint32_t before;
    bool ack = p->op->flags & OPF_ACK;

    m->rows[flow].responses++;
    m->rows[flow].naks_sent += ack && aeth_type(p) != AETH_ACK;
    if (UNLIKELY(f->peer == FLOW_NONE))
        conn_pair_by_psn(m->conns, flow, p->bth.psn);
    if (f->peer == FLOW_NONE || !m->rows[f->peer].used || (ack && !(p->have & H_AETH)))
        return;
    r = &m->rows[f->peer];
    s = m->sides[f->peer];
    activate(m, r);
    if (ack)
        count_acknowledge(r, s, p);
    if (!s)
        return;
    h = &s->half;
    if (p->op->flags & OPF_READ_RESP && p->op->flags & (OPF_FIRST | OPF_MIDDLE)) {
        raise(&r->pmtu_seen, p->payload_len);
        if (p->op->flags & OPF_FIRST)
            half_set_pmtu(h, p->payload_len);
    }
    before = h->have_una ? h->una : h->start;
    half_response(h, p);
    if (ack && aeth_type(p) == AETH_ACK && h->have_una && psn_diff(h->una, before) > 0)
        r->acked += (uint32_t)psn_diff(h->una, before);
    if (h->rnr.have && h->rnr.times > r->rnr_retry_seen)
        r->rnr_retry_seen = h->rnr.times;
    e = env_of(m, f->peer);
    work_response(&s->ring, &e, p);
}

static void on_cnp(struct meter_row *r, const struct pkt *p)
{
    ns_t now = p->frame->ts;

    if (!r->c.cnps++)
        r->cnp_first = now;
    else if (now >= r->cnp_last)
        lower(&r->cnp_gap_min, (uint64_t)(now - r->cnp_last));
    r->cnp_last = now;
}

static void on_connected(struct meter *m, const struct pkt *p)
{
    uint32_t flow = conn_flow(m->conns, p);
    const struct flow *f = conn_flow_at(m->conns, flow);
    struct meter_row *r = &m->rows[flow];

    if (UNLIKELY(!r->used))
        row_init(r, p);
    if (UNLIKELY(r->conn != f->conn || r->peer != f->peer))
        row_identify(r, f);
    count_packet(m, r, p);
    if (UNLIKELY(p->op->flags & OPF_CNP))
        on_cnp(r, p);
    else if (p->op->flags & OPF_REQUEST)
        on_request(m, p, flow);
    else
        on_response(m, p, flow);
}

/* The slot of a datagram's row; UD_SLOTS if there is no room for a new one. */
static uint32_t ud_slot(struct meter *m, const struct pkt *p)
{
    struct meter_row k = {.dqpn = p->bth.dqpn, .sqpn = p->deth.srcqp};
    uint64_t hash;
    uint32_t i;

    conn_addr_of(p, &k.src, &k.dst);
    hash = (load_le64(k.src.b + 8) ^ load_le64(k.dst.b + 8) * 3 ^ load_le64(k.dst.b) ^ (k.dqpn << 24 | k.sqpn) ^
            (uint64_t)conn_tap_of(p->frame) << 40) *
           UINT64_C(0x9e3779b97f4a7c15);
    for (i = hash >> 48 & (UD_SLOTS - 1); m->ud[i]; i = (i + 1) & (UD_SLOTS - 1)) {
        const struct meter_row *r = m->ud[i];
        if (r->dqpn == k.dqpn && r->sqpn == k.sqpn && r->file == p->frame->file && r->iface == p->frame->iface &&
            memcmp(&r->src, &k.src, sizeof k.src) == 0 && memcmp(&r->dst, &k.dst, sizeof k.dst) == 0)
            return i;
    }
    if (m->n_ud == METER_FLOWS || !(m->ud[i] = malloc(sizeof k)))
        return UD_SLOTS;
    m->n_ud++;
    row_init(m->ud[i], p);
    m->ud[i]->sqpn = k.sqpn;
    return i;
}

static void on_datagram(struct meter *m, const struct pkt *p)
{
    uint32_t slot = ud_slot(m, p);
    struct meter_row *r;

    if (slot == UD_SLOTS) {
        m->t.lost_rows++;
        return;
    }
    r = m->ud[slot];
    count_packet(m, r, p);
    r->requests++;
    r->request_bytes += p->payload_len;
    work_datagram(&m->work, &m->next_id, p, UD_FLOW(slot));
}

/* A packet that its receiver drops without a word. */
static void on_spoilt(struct meter *m, const struct pkt *p)
{
    uint32_t flow = p->have & H_BTH && p->op->name && !(p->op->ext & H_DETH) ? conn_flow_find(m->conns, p) : FLOW_NONE;

    if (flow == FLOW_NONE || !m->rows[flow].used || p->icrc != CRC_BAD)
        m->t.malformed++;
    else
        m->rows[flow].bad_icrc++;
}

void meter_packet(struct meter *m, const struct pkt *p, bool count)
{
    m->t.packets++;
    if (LIKELY(p->frame->has_ts)) {
        m->t.first = m->t.packets == 1 || p->frame->ts < m->t.first ? p->frame->ts : m->t.first;
        m->t.last = p->frame->ts > m->t.last ? p->frame->ts : m->t.last;
        tick_to(m, p->frame->ts);
    }
    if (UNLIKELY(p->have & H_MAD || !(p->have & H_BTH)))
        learn_packet(&m->learner, m->conns, p);
    if (p->encap == ENCAP_NONE || !count)
        return;
    if (UNLIKELY(!(p->have & H_BTH) || p->icrc == CRC_BAD || p->flags & PKT_MALFORMED || !p->op->name))
        on_spoilt(m, p);
    else if (p->op->ext & H_DETH)
        on_datagram(m, p);
    else
        on_connected(m, p);
}

/* --- The end -------------------------------------------------------------------------------------------------------------------- */

void meter_end(struct meter *m)
{
    uint32_t n = conn_counts(m->conns).flows;

    if (m->o.interval)
        tick_all(m);
    for (uint32_t i = 0; i < n; i++) {
        struct meter_row *r = &m->rows[i];
        const struct flow *f = conn_flow_at(m->conns, i);
        if (!r->used)
            continue;
        if (m->sides[i]) {
            struct work_env e = env_of(m, i);
            work_flush(&m->sides[i]->ring, &e, WORK_CAPTURE_ENDS, m->t.last);
        }
        row_identify(r, f);
        row_finish(r, m->sides[i]);
        if (f->peer != FLOW_NONE && m->rows[f->peer].used)
            r->cnps_received = m->rows[f->peer].c.cnps;
    }
    for (uint32_t i = 0; i < UD_SLOTS; i++)
        if (m->ud[i])
            row_finish(m->ud[i], NULL);
}

static int by_conn(const void *a, const void *b)
{
    const struct meter_row *x = *(struct meter_row *const *)a, *y = *(struct meter_row *const *)b;

    if (!x->conn != !y->conn)
        return x->conn ? -1 : 1; /* datagrams come last */
    if (x->conn != y->conn)
        return x->conn < y->conn ? -1 : 1;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return x->first_frame < y->first_frame ? -1 : x->first_frame > y->first_frame;
}

struct meter_row **meter_rows(struct meter *m, size_t *n)
{
    size_t room = m->n_old + METER_FLOWS + m->n_ud;

    *n = 0;
    free(m->all);
    m->all = calloc(room ? room : 1, sizeof(struct meter_row *));
    if (!m->all)
        return NULL;
    for (size_t i = 0; i < m->n_old; i++)
        m->all[(*n)++] = m->old[i];
    for (size_t i = 0; i < METER_FLOWS; i++)
        if (m->rows[i].used)
            m->all[(*n)++] = &m->rows[i];
    for (size_t i = 0; i < UD_SLOTS; i++)
        if (m->ud[i])
            m->all[(*n)++] = m->ud[i];
    qsort(m->all, *n, sizeof(struct meter_row *), by_conn);
    return m->all;
}
