/* layer 3 (measure): measurements: what packets add to rows. */
#include "dissect/mad/cm.h"
#include "dissect/pkt.h"
#include "fetch.h"
#include "src/measure/meter_impl.h"
#include "zeros.h"

#include <stdlib.h>

static void side_free(struct side *s)
{
    if (!s)
        return;
    wqe_ring_free(&s->ring);
    free(s->times);
    free(s);
}

static void on_flow_over(void *user, uint32_t flow, bool restart)
{
    struct meter *m = user;

    if (m->rows[flow].used)
        meter_retire(m, flow, restart ? WQE_RESTART : WQE_FORGOTTEN);
    side_free(m->sides[flow]);
    m->sides[flow] = NULL;
    slowed_free(&m->rows[flow]);
    m->rows[flow].used = false;
}

/* --- Work requests ---------------------------------------------------------------------------- */

static void on_over(void *user, const struct wqe *w, uint32_t flow)
{
    struct meter *m = user;
    bool ud = flow >= UD_FLOW(0);

    row_work(ud ? m->ud[flow - UD_FLOW(0)] : &m->rows[flow], ud ? NULL : m->sides[flow], w);
    if (m->o.work.over)
        m->o.work.over(m->o.work.user, w, flow);
}

static void on_work_packet(void *user, const struct wqe *w, const struct pkt *p, uint32_t flow)
{
    const struct meter *m = user;

    m->o.work.packet(m->o.work.user, w, p, flow);
}

/* --- Packets ---------------------------------------------------------------------------------- */

/* A packet that is ECN-capable: whether it is marked, and a CNP due for it. */
static void count_ecn(struct meter_row *r, const struct pkt *p)
{
    static const ns_t interval[METER_DUE] = {[METER_DUE_4US] = 4000, [METER_DUE_50US] = 50000};
    ns_t now = p->frame->ts;

    r->ect++;
    if ((p->tos & 3) != 3)
        return;
    r->c.ce++;
    for (unsigned i = 0; i < METER_DUE; i++) {
        if (r->cnps_due[i] && now - r->cnp_due[i] < interval[i])
            continue;
        r->cnps_due[i]++;
        r->cnp_due[i] = now;
    }
}

/* Counts of every packet. */
static void count_packet(struct meter *m, struct meter_row *r, const struct pkt *p)
{
    r->last_frame = p->frame->number;
    r->last = p->frame->ts;
    r->c.packets++;
    r->c.bytes += pkt_wire_len(p);
    r->c.payload += p->op->flags & OPF_CNP ? 0 : p->payload_len; /* a CNP's are reserved bytes */
    if (p->have & (H_IP4 | H_IP6) && p->tos & 3)
        count_ecn(r, p);
    r->c.fecn += p->encap != ENCAP_ROCEV2 && p->bth.fecn;
    r->c.becn += p->encap != ENCAP_ROCEV2 && p->bth.becn;
    m->t.counted++;
    meter_activate(m, r);
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

/* A retransmission on ACK timeout: count it and the time it cost. */
static void count_timeout(struct meter_row *r, struct side *s, const struct event *e)
{
    const struct sent *before = req_dir_sent(e->h, e->p->bth.psn);
    ns_t since = before ? before->ts : e->h->last_ts;

    r->c.timeouts++;
    if (e->h->have_una && e->h->una_ts > since)
        since = e->h->una_ts;
    if (e->p->frame->ts <= since)
        return;
    s->ring.silence = e->p->frame->ts - since;
    r->timeout_wait += (uint64_t)s->ring.silence;
    lower(&r->timeout_seen, (uint64_t)s->ring.silence);
}

static void count_again(struct meter_row *r, struct side *s, const struct event *e)
{
    bool delivered = e->h->have_una && psn_diff(e->p->bth.psn, e->h->una) < 0,
         again = e->as == SEEN_AGAIN || e->as == SEEN_OLD;

    r->duplicates += e->as == SEEN_COPY;
    r->duplicate_requests += e->as == SEEN_COPY || (again && delivered);
    r->late += e->as == SEEN_LATE;
    if (!again)
        return;
    r->c.again++;
    r->again_bytes += e->p->payload_len;
    r->implied_naks += e->why == BACK_IMPLIED;
    if (e->why == BACK_SILENCE)
        count_timeout(r, s, e);
}

static void count_request(struct meter_row *r, struct side *s, const struct event *e)
{
    const struct pkt *p = e->p;
    struct req_dir *h = e->h;
    enum seen_as as = (enum seen_as)e->as;

    r->service = service_str(p->bth.opcode >> 5); /* a CNP may have been first */
    r->requests++;
    r->request_bytes += p->payload_len;
    if (p->op->flags & (OPF_FIRST | OPF_MIDDLE))
        raise(&r->pmtu_seen, p->payload_len);
    if (UNLIKELY(h->rnr.have && !h->rnr.resent && h->rnr.psn == p->bth.psn) && as != SEEN_COPY &&
        p->frame->ts > h->rnr.ts)
        r->rnr_wait += (uint64_t)(p->frame->ts - h->rnr.ts);
    if (UNLIKELY((h->have_next || h->gbn_known) && psn_diff(p->bth.psn, h->gbn) > 0 && as != SEEN_RESTART))
        r->out_of_sequence += h->service != SVC_UC || as == SEEN_GAP; /* UC goes on behind a gap */
    if (UNLIKELY(!h->have_next && h->gbn_known && psn_diff(p->bth.psn, h->gbn) > 0))
        r->missing += (p->bth.psn - h->gbn) & PSN_MASK; /* connection management names the first PSN */
    if (UNLIKELY(as == SEEN_GAP))
        r->missing += (p->bth.psn - h->next) & PSN_MASK;
    else if (UNLIKELY(as != SEEN_NEW && as != SEEN_RESTART))
        count_again(r, s, e);
    if (p->op->flags & (OPF_READ_REQ | OPF_ATOMIC_REQ) && (as == SEEN_NEW || as == SEEN_GAP)) {
        struct read_req *oldest;
        raise(&r->depth_seen, req_dir_outstanding(h, &oldest) + 1);
    }
}

static struct side *side_of(struct meter *m, uint32_t flow)
{
    struct side *s = m->sides[flow];

    if (LIKELY(s != NULL))
        return s;
    s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->times = m->o.no_latency ? NULL : calloc(1, sizeof *s->times);
    if ((!s->times && !m->o.no_latency) || !wqe_ring_init(&s->ring)) {
        free(s->times);
        free(s);
        return NULL;
    }
    m->sides[flow] = s;
    return s;
}

static void note_migration(struct meter_row *r, const struct pkt *p)
{
    if (!r->migrations++) {
        r->migrated_frame = p->frame->number;
        conn_addr_of(p, &r->migrated[0], &r->migrated[1]);
    }
}

static void on_request(struct meter *m, const struct event *w)
{
    struct side *s = side_of(m, w->flow);
    struct wqe_env e;

    if (!s)
        return;
    count_request(&m->rows[w->flow], s, w);
    if (UNLIKELY(w->moved))
        note_migration(&m->rows[w->flow], w->p);
    if (UNLIKELY(w->as == SEEN_RESTART)) {
        e = meter_env(m, w->flow);
        m->rows[w->flow].restarts++;
        wqe_flush(&s->ring, &e, WQE_RESTART, w->p->frame->ts);
    }
}

static void on_requested(struct meter *m, const struct event *w)
{
    struct meter_row *r = &m->rows[w->flow];
    const struct req_dir *h = w->h;
    struct wqe_env e = meter_env(m, w->flow);

    if (!m->sides[w->flow])
        return;
    wqe_request(&m->sides[w->flow]->ring, &e, w->p, w->as == SEEN_RESTART ? SEEN_NEW : (enum seen_as)w->as);
    r->retry_seen = r->retry_seen > h->retries ? r->retry_seen : h->retries;
    if (w->p->bth.opcode >> 5 != SVC_UC) {
        uint32_t out = req_dir_in_flight(h);
        r->in_flight = r->in_flight > out ? r->in_flight : out;
    }
}

/* An ACK or NAK of `r`'s requests; `h` is NULL if none of these was seen. */
static void count_acknowledge(struct meter_row *r, struct side *s, struct req_dir *h, const struct pkt *p)
{
    const struct sent *sent = s && h ? req_dir_sent(h, p->bth.psn) : NULL;
    unsigned code = aeth_value(p->aeth.syndrome);

    switch (response_type(p)) {
    case AETH_ACK:
        r->acks++;
        if (code != AETH_CREDIT_INVALID) {
            lower(&r->credits_min, aeth_credits(code));
            raise(&r->credits_max, aeth_credits(code));
        }
        if (sent && s->times && p->frame->ts >= sent->ts)
            hist_add(&s->times->ack, p->frame->ts - sent->ts);
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
        r->naks_invalid += code == NAK_INVALID_REQUEST;
        r->naks_access += code == NAK_REMOTE_ACCESS;
    }
}

static void on_response(struct meter *m, const struct event *w)
{
    struct meter_row *r = &m->rows[w->flow];
    const struct pkt *p = w->p;

    if (!r->used)
        return;
    meter_activate(m, r);
    if (p->op->flags & OPF_ACK)
        count_acknowledge(r, m->sides[w->flow], w->h, p);
    if (w->h && p->op->flags & OPF_READ_RESP && p->op->flags & (OPF_FIRST | OPF_MIDDLE))
        raise(&r->pmtu_seen, p->payload_len);
    m->una_before = !w->h ? 0 : w->h->have_una ? w->h->una : w->h->start;
}

/* A response of which it is not known whose requests it answers. A sequence NAK may ask for what was lost before the
 * tap, ahead of the first request that passed. */
static void note_early(struct meter_row *own, const struct pkt *p)
{
    if (!(p->op->flags & OPF_ACK) || response_type(p) != AETH_NAK || aeth_value(p->aeth.syndrome) != NAK_PSN_SEQ)
        return;
    if (own->early_psn != p->bth.psn)
        own->early_naks = 0;
    own->early_naks++;
    own->early_psn = p->bth.psn;
}

/* Now it is known: `w` answers requests, the first of which passed shortly after what the NAKs ask for. */
static void take_early(struct meter *m, struct meter_row *own, const struct event *w)
{
    struct meter_row *r = &m->rows[w->flow];
    int32_t before = w->h ? psn_diff(w->h->start, own->early_psn) : 0;

    if (!w->h)
        return;
    if (r->used && before > 0 && before < TRACK_SENT) {
        r->c.seq_naks += own->early_naks;
        r->missing += (uint32_t)before;
    }
    own->early_naks = 0;
}

static void on_responded(struct meter *m, const struct event *w)
{
    struct meter_row *r = &m->rows[w->flow];
    const struct req_dir *h = w->h;
    struct wqe_env e = meter_env(m, w->flow);

    if (!r->used || !m->sides[w->flow])
        return;
    if (w->p->op->flags & OPF_ACK && response_type(w->p) == AETH_ACK && h->have_una &&
        psn_diff(h->una, m->una_before) > 0)
        r->acked += (uint32_t)psn_diff(h->una, m->una_before);
    if (h->rnr.have && h->rnr.times > r->rnr_retry_seen)
        r->rnr_retry_seen = h->rnr.times;
    wqe_response(&m->sides[w->flow]->ring, &e, w->p);
    if (UNLIKELY(w->p->op->flags & OPF_ACK && response_type(w->p) == AETH_NAK &&
                 aeth_value(w->p->aeth.syndrome) != NAK_PSN_SEQ) &&
        m->sides[w->own])
        wqe_stop(&m->sides[w->own]->ring);
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

static struct meter_row *count_connected(struct meter *m, const struct pkt *p, uint32_t flow)
{
    const struct flow *f = conn_flow_at(m->conns, flow);
    struct meter_row *r = &m->rows[flow];

    if (UNLIKELY(!r->used))
        row_init(r, p, m->o.files);
    else if (UNLIKELY(r->c.packets == r->c.cnps)) /* CNPs do not tell the service */
        r->service = service_str(p->bth.opcode >> 5);
    if (UNLIKELY(r->conn != f->conn || r->peer != f->peer))
        row_identify(r, f);
    count_packet(m, r, p);
    return r;
}

static void on_packet(struct meter *m, const struct pkt *p, uint32_t flow)
{
    struct meter_row *r = count_connected(m, p, flow);

    if (p->op->flags & OPF_REQUEST)
        return;
    r->responses++;
    r->naks_sent += p->op->flags & OPF_ACK && response_type(p) != AETH_ACK;
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
           HASH_MULTIPLIER;
    for (i = hash >> 48 & (UD_SLOTS - 1); m->ud[i]; i = (i + 1) & (UD_SLOTS - 1)) {
        const struct meter_row *r = m->ud[i];
        if (r->dqpn == k.dqpn && r->sqpn == k.sqpn && (r->file << 16 | r->iface) == conn_tap_of(p->frame) &&
            conn_addr_eq(&r->src, &k.src) && conn_addr_eq(&r->dst, &k.dst))
            return i;
    }
    if (m->n_ud == METER_UD || !(m->ud[i] = malloc(sizeof k)))
        return UD_SLOTS;
    m->n_ud++;
    row_init(m->ud[i], p, m->o.files);
    m->ud[i]->sqpn = k.sqpn;
    m->ud[i]->grams = calloc(1, sizeof(struct datagrams));
    return i;
}

static void on_datagram(struct meter *m, const struct pkt *p)
{
    uint32_t slot = ud_slot(m, p);
    struct meter_row *r;
    enum seen_as as;

    if (slot == UD_SLOTS) {
        m->t.lost_rows++;
        return;
    }
    r = m->ud[slot];
    count_packet(m, r, p);
    r->requests++;
    r->request_bytes += p->payload_len;
    as = r->grams ? datagrams_take(r->grams, p) : SEEN_NEW;
    r->late += as == SEEN_LATE;
    r->missing += r->grams ? r->grams->gap : 0;
    r->duplicates += as == SEEN_COPY;
    if (as == SEEN_COPY)
        return; /* a duplicate made in the network: its sender posted one */
    wqe_datagram(&m->work, &m->next_id, p, UD_FLOW(slot));
}

/* A packet with a bad ICRC: its receiver drops it silently. */
static void on_bad_icrc(struct meter *m, uint32_t flow)
{
    if (flow == FLOW_NONE || !m->rows[flow].used)
        m->t.malformed++;
    else
        m->rows[flow].bad_icrc++;
}

/* A DREQ: both directions of the connection are closed. */
static void on_cm(struct meter *m, const struct pkt *p)
{
    struct conn_addr src, dst;
    struct cm_msg msg;
    uint32_t flow[2];

    if (!cm_msg_of(&msg, p) || msg.mad.attr_id != CM_DREQ)
        return;
    conn_addr_of(p, &src, &dst);
    flow[0] = conn_flow_named(m->conns, conn_tap_of(p->frame), &src, &dst, msg.dreq.remote_qpn);
    flow[1] = flow[0] == FLOW_NONE ? FLOW_NONE : conn_flow_at(m->conns, flow[0])->peer;
    for (unsigned i = 0; i < ARRAY_LEN(flow); i++)
        if (flow[i] != FLOW_NONE && m->sides[flow[i]]) {
            struct wqe_env e = meter_env(m, flow[i]);
            wqe_close(&m->sides[flow[i]]->ring, &e, p->frame->ts, i == 0);
        }
}

/* A packet that is neither request nor response. */
static void on_other(struct meter *m, const struct pkt *p)
{
    if (p->have & H_MAD)
        on_cm(m, p);
    if (!(p->have & H_BTH) || p->flags & PKT_MALFORMED || !p->op->name)
        m->t.malformed += p->encap != ENCAP_NONE;
    else
        on_datagram(m, p);
}

static void on_early(void *user, const struct pkt *p)
{
    struct meter *m = user;

    m->t.packets++;
    if (LIKELY(p->frame->has_ts)) {
        m->t.first = m->t.packets == 1 || p->frame->ts < m->t.first ? p->frame->ts : m->t.first;
        m->t.last = p->frame->ts > m->t.last ? p->frame->ts : m->t.last;
        meter_tick_to(m, p->frame->ts);
    }
}

static void on_event(void *user, const struct event *e)
{
    struct meter *m = user;

    switch (e->kind) {
    case EVENT_REQUEST:
        on_packet(m, e->p, e->own);
        if (e->h)
            on_request(m, e);
        break;
    case EVENT_RESPONSE:
        on_packet(m, e->p, e->own);
        if (UNLIKELY(e->flow == FLOW_NONE)) {
            note_early(&m->rows[e->own], e->p);
            break;
        }
        if (UNLIKELY(m->rows[e->own].early_naks))
            take_early(m, &m->rows[e->own], e);
        on_response(m, e);
        break;
    case EVENT_BAD_ICRC:
        on_bad_icrc(m, e->own);
        break;
    case EVENT_CNP:
        on_cnp(count_connected(m, e->p, e->own), e->p);
        slowed_note(m, e->p, e->own);
        break;
    default:
        on_other(m, e->p);
    }
}

static void on_taken(void *user, const struct event *e)
{
    (e->kind == EVENT_REQUEST ? on_requested : on_responded)(user, e);
}

static void on_fetch(void *user, uint32_t flow)
{
    const struct meter *m = user;

    fetch_to_write(&m->rows[flow], sizeof m->rows[flow]);
    if (m->sides[flow])
        fetch_to_write(m->sides[flow], sizeof *m->sides[flow]);
}

/* --- Life ------------------------------------------------------------------------------------- */

struct meter *meter_new(struct observer *observer, const struct meter_opts *o)
{
    struct meter *m = calloc(1, sizeof *m);
    const struct observer_sub s = {
        .user = m, .over = on_flow_over, .fetch = on_fetch, .early = on_early, .before = on_event, .after = on_taken};

    if (!m)
        return NULL;
    m->o = *o;
    m->work = (struct wqe_user){m, o->work.packet ? on_work_packet : NULL, on_over};
    m->observer = observer;
    m->conns = observer_conns(observer);
    m->flows = observer_flows(observer);
    m->rows = zeros_new(m->flows, sizeof *m->rows);
    m->sides = calloc(m->flows, sizeof(struct side *));
    m->ud = calloc(UD_SLOTS, sizeof(struct meter_row *));
    m->old = calloc(METER_OLD, sizeof(struct meter_row *));
    m->active = calloc(ACTIVE_MAX(m), sizeof(struct meter_row *));
    bool have_room = m->rows && m->sides && m->ud && m->old && m->active;
    if (!have_room || !observer_subscribe(observer, &s) || !meter_streams_begin(m)) {
        meter_free(m);
        return NULL;
    }
    return m;
}

void meter_free(struct meter *m)
{
    if (!m)
        return;
    for (size_t i = 0; m->rows && m->sides && i < conn_counts(m->conns).flows; i++) {
        side_free(m->sides[i]);
        slowed_free(&m->rows[i]);
    }
    for (size_t i = 0; m->ud && i < UD_SLOTS; i++) {
        free(m->ud[i] ? m->ud[i]->grams : NULL);
        free(m->ud[i]);
    }
    for (size_t i = 0; i < m->n_old; i++)
        free(m->old[i]);
    meter_streams_free(m);
    free(m->sides);
    zeros_free(m->rows, m->flows, sizeof *m->rows);
    free(m->ud);
    free(m->old);
    free(m->active);
    free(m->all);
    free(m);
}

struct meter_row *meter_row_of(struct meter *m, uint32_t flow)
{
    if (flow >= STREAM_FLOW(0))
        return meter_stream(m, flow - STREAM_FLOW(0));
    if (flow >= UD_FLOW(0))
        return m->ud[flow - UD_FLOW(0)];
    if (m->rows[flow].used)
        row_identify(&m->rows[flow], conn_flow_at(m->conns, flow));
    return &m->rows[flow];
}

void meter_time(struct meter *m, ns_t now)
{
    meter_tick_to(m, now);
}

struct meter_totals meter_totals(const struct meter *m)
{
    struct meter_totals t = m->t;

    t.forgotten = conn_counts(m->conns).evicted;
    return t;
}

/* --- The end ---------------------------------------------------------------------------------- */

void meter_end(struct meter *m)
{
    uint32_t n = conn_counts(m->conns).flows;

    if (m->o.interval)
        meter_tick_all(m);
    for (uint32_t i = 0; i < n; i++) {
        struct meter_row *r = &m->rows[i];
        const struct flow *f = conn_flow_at(m->conns, i);
        if (!r->used)
            continue;
        if (m->sides[i]) {
            struct wqe_env e = meter_env(m, i);
            wqe_flush(&m->sides[i]->ring, &e, WQE_CAPTURE_ENDS, m->t.last);
        }
        row_identify(r, f);
        row_finish(r, m->sides[i]);
        slowed_finish(m, i, r);
    }
    for (uint32_t i = 0; i < UD_SLOTS; i++)
        if (m->ud[i])
            row_finish(m->ud[i], NULL);
    meter_streams_end(m);
}
