/* layer 3 (explain): packets as they pass: copies, retransmissions, NAKs, responses that belong to no known
 * requester. */
#include "dissect/pkt.h"
#include "fetch.h"
#include "src/conn/packet.h"
#include "src/explain/compare/taps.h"
#include "src/explain/congestion/congestion.h"
#include "src/explain/explain_impl.h"
#include "src/explain/security/security.h"
#include "src/iwarp/iwarp.h"

#include <stdlib.h>

#define FRESH_EVERY 128              /* requests of a flow, after which its incidents are compared with other taps */
#define ANEW_AFTER  (10 * NS_PER_MS) /* no response is delayed by reordering for so long */

/* --- Requests --------------------------------------------------------------------------------- */

/* The same request twice: gathered in one incident. */
static void report_copy(struct explainer *x, const struct event *e, struct flow_notes *t)
{
    struct incident *st = incident_at(x, t->hypotheses.dup);

    if (!st) {
        st = incident_new(x, CAUSE_DUPLICATE, e->flow, e->p);
        if (!st)
            return;
        t->hypotheses.dup = incident_number(x, st);
        st->is_request = true;
        st->psn = e->p->bth.psn;
        if (frame_ip_id(e->p))
            incident_is(st, SAY(REQUESTS_TWICE));
        else
            incident_is(st, SAY(REQUESTS_TWICE_OR_AGAIN));
    }
    incident_frame(st, ROLE_EVIDENCE, frame_u32(e->p));
    if (e->p->op->flags & (OPF_READ_REQ | OPF_ATOMIC_REQ))
        st->facts[0].op = e->p->bth.opcode + 1u;
}

/* Where the first packet of a flow came from and went to on its link, and in which class. */
static void note_link(struct noted_headers *h, const struct pkt *p)
{
    h->way = frame_way(p->frame);
    h->tagged = p->have & H_VLAN;
    h->class = h->tagged ? (uint8_t)(p->vlan >> 13) : p->addr_len ? p->tos >> 5 : 0;
    if (p->frame->linktype != LINK_ETHERNET || p->flags & PKT_TUNNEL)
        return;
    h->dmac = load_be64(p->data) >> 16;
    h->smac = load_be64(p->data + 4) << 16 >> 16;
}

static void note_flow(struct explainer *x, struct flow_notes *t, const struct pkt *p)
{
    if (UNLIKELY(!t->headers.right_icrc) && p->icrc == CRC_GOOD) {
        t->headers.right_icrc = true;
        icrc_sources_count(&x->icrcs, p);
    }
    if (!t->headers.seen) {
        t->headers.seen = true;
        t->headers.pkey = p->bth.pkey;
        t->headers.migreq = p->bth.migreq;
        t->headers.frame = frame_u32(p);
        t->headers.psn = p->bth.psn;
        t->headers.ts = p->frame->ts;
        note_link(&t->headers, p);
        t->headers.vlan = p->have & H_VLAN ? p->vlan & 0xfff : 0;
        t->headers.have_dscp = p->have & (H_IP4 | H_IP6);
        t->headers.dscp = p->tos >> 2;
        t->headers.have_sl = p->have & H_LRH;
        t->headers.sl = t->headers.have_sl ? p->lrh.sl : 0;
    }
    if (UNLIKELY((p->bth.pkey ^ t->headers.pkey) & 0x7fff) && t->headers.n_odd < NOTED_ODD)
        t->headers.odd[t->headers.n_odd++] = (struct odd_key){p->bth.psn, frame_u32(p), p->bth.pkey};
    t->headers.packets++;
    t->headers.last_ts = p->frame->ts;
    if ((p->tos & 3) == 3 && p->addr_len && !(p->op->flags & OPF_ACK)) { /* no CNP is due for an ACK */
        if (t->marks.ce_packets < NOTED_CE)
            t->marks.ce_frames[t->marks.ce_packets] = frame_u32(p);
        if (!t->marks.ce_packets++)
            t->marks.first_ce = p->frame->ts;
        t->marks.latest_ce = p->frame->ts;
        explain_mark(x, p);
    }
}

/* The queue pair was reset: forget what was noted. */
static void forget(struct flow_notes *t)
{
    t->headers.seen = t->requests.solicited = false;
    t->requests.soliciting = t->requests.answers = 0;
    t->requests.wanted.frame = t->headers.n_odd = 0;
    rounds_init(&t->rounds);
}

static bool is_answered(const struct req_dir *h, uint32_t psn)
{
    return h->have_una && psn_diff(h->una, psn) > 0;
}

static void note_wanted(const struct event *e, struct flow_notes *t)
{
    if (!t->requests.solicited || psn_diff(e->p->bth.psn, t->requests.solicited_psn) > 0)
        t->requests.solicited_psn = e->p->bth.psn;
    t->requests.solicited_ts = e->p->frame->ts;
    t->requests.soliciting++;
    t->requests.solicited = true;
    if (t->requests.wanted.frame && !is_answered(e->h, t->requests.wanted.psn))
        return;
    t->requests.wanted.psn = e->p->bth.psn;
    t->requests.wanted.frame = frame_u32(e->p);
    t->requests.wanted.ts = e->p->frame->ts;
}

/* A READ or atomic that exceeds the negotiated initiator depth. */
static void note_depth(struct explainer *x, const struct event *e, struct flow_notes *t)
{
    const struct conn_params *c = &conn_flow_at(observer_conns(x->observer), e->flow)->params;
    struct read_req *oldest;
    uint32_t out;

    if (!c->have_depth || !(e->p->op->flags & (OPF_READ_REQ | OPF_ATOMIC_REQ)) ||
        (e->as != SEEN_NEW && e->as != SEEN_GAP))
        return;
    out = req_dir_outstanding(e->h, &oldest) + 1;
    if (out > c->depth) {
        t->requests.deep_psn = e->p->bth.psn;
        t->requests.deep = out;
    }
}

static void note_keys(struct explainer *x, const struct event *e, struct flow_notes *t)
{
    const struct pkt *p = e->p;
    uint32_t before = t->requests.keys[(t->requests.keys_at - 1) % NOTED_KEYS].rkey, at;

    at = t->requests.keys_at++ % NOTED_KEYS;
    t->requests.keys[at].psn = p->bth.psn;
    t->requests.keys[at].rkey = p->have & H_RETH ? p->reth.rkey : p->atomiceth.rkey;
    t->requests.keys[at].va = p->have & H_RETH ? p->reth.va : p->atomiceth.va;
    t->requests.keys[at].len = p->have & H_RETH ? p->reth.dmalen : 8;
    if (t->requests.keys_at == 1 || t->requests.keys[at].rkey != before)
        chosen_key(x, e);
}

/* A request that is retransmitted or late. The packets that follow it are retransmitted for the same reason,
 * acknowledged or not. */
static void note_again(struct explainer *x, const struct event *e, struct flow_notes *t)
{
    struct incident *st;

    if (t->hypotheses.open != NO_INCIDENT || e->why != BACK_NONE)
        t->hypotheses.cost = t->hypotheses.open;
    st = incident_at(x, t->hypotheses.cost);
    t->hypotheses.follows = psn_add(e->p->bth.psn, req_dir_span(e->h, e->p));
    if (st)
        st->again++;
}

/* A request identical to the previous copy. Without an IP ID to tell a duplicate from a retransmission, a request that
 * continues a retransmission is retransmitted itself. */
static void on_copy(struct explainer *x, const struct event *e, struct flow_notes *t)
{
    if (e->p->bth.psn == t->hypotheses.follows && !(e->p->have & H_IP4 && frame_ip_id(e->p)))
        note_again(x, e, t);
    else
        report_copy(x, e, t);
}

/* Note how closely a packet follows its predecessor in the same message: the minimum, and how many after CNPs are as
 * close. Within a message nothing but the pacer delays a packet. */
static void note_spacing(struct explainer *x, struct marks *m, ns_t ts, ns_t since)
{
    if (UNLIKELY(since < x->closest || !x->closest))
        x->closest = since;
    if (m->cnps && ts - m->latest_cnp >= CNP_HEEDED && ts - m->latest_cnp < CNP_NEAR) {
        m->near++;
        m->near_close += since <= x->closest + x->closest / 4;
    }
}

/* Count a request before or behind the first CNP. */
static void note_rate(struct marks *m, ns_t ts)
{
    uint32_t at = (uint32_t)((uint64_t)ts / CNP_SLICE);

    if (m->cnps) {
        m->after_cnp += ts - m->cnp_ts < m->look;
        return;
    }
    if (!m->first_ts)
        m->first_ts = ts;
    if (m->slices[at % CNP_SLICES].at != at)
        m->slices[at % CNP_SLICES] = (struct cnp_slice){at, 0};
    m->slices[at % CNP_SLICES].n++;
}

static void note_gap(const struct event *e, struct flow_notes *t)
{
    unsigned at = t->requests.gaps_at++ % NOTED_GAPS;

    t->requests.gaps_open += !t->requests.gaps[at].open;
    t->requests.gaps[at].psn = e->h->next;
    t->requests.gaps[at].frame = frame_u32(e->p);
    t->requests.gaps[at].open = true;
    explain_hush(e, t);
}

/* READs take the PSNs of all their responses: of them few bring a tap so far that it forgets. */
static bool is_fresh_due(const struct event *e)
{
    return e->h->packets % FRESH_EVERY == 0 || e->p->op->flags & OPF_READ_REQ;
}

static void on_request(struct explainer *x, const struct event *e)
{
    struct flow_notes *t = notes_of(x, e->flow);

    if (!t)
        return;
    if (UNLIKELY(!t->headers.packets))
        explain_assign_bad_icrcs(x, e->flow, t);
    if (UNLIKELY(e->as == SEEN_RESTART))
        forget(t);
    if (UNLIKELY((x->taps || x->several_taps) && is_fresh_due(e)))
        explain_fresh(x, e->flow);
    rounds_request(&t->rounds, e);
    note_flow(x, t, e->p);
    if (UNLIKELY(e->why != BACK_NONE))
        t->requests.unanswered = t->requests.solicited && !is_answered(e->h, t->requests.solicited_psn);
    if (UNLIKELY(x->tried.n_psns || e->as == SEEN_RESTART || e->as == SEEN_GAP || e->as == SEEN_OLD))
        guesses_request(x, e);
    if (e->p->bth.ackreq || e->p->op->flags & (OPF_READ_REQ | OPF_ATOMIC_REQ))
        note_wanted(e, t);
    note_rate(&t->marks, e->p->frame->ts);
    if (!(e->p->op->flags & OPF_START) && e->p->frame->ts > e->h->last_ts)
        note_spacing(x, &t->marks, e->p->frame->ts, e->p->frame->ts - e->h->last_ts);
    if (e->p->have & (H_RETH | H_ATOMICETH))
        note_keys(x, e, t);
    if (e->as == SEEN_COPY && !explain_copy_is_sent(x, e, t)) {
        on_copy(x, e, t);
        return;
    }
    note_depth(x, e, t);
    if (UNLIKELY(t->hypotheses.late != NO_INCIDENT))
        explain_reordered(x, e, t);
    if (UNLIKELY(t->hypotheses.not_received != NO_INCIDENT) && e->h->back)
        explain_skips(x, e, t);
    if (UNLIKELY(t->hypotheses.late_single != NO_INCIDENT))
        explain_resent(x, e, t);
    if (UNLIKELY(e->forged))
        explain_forged(x, e);
    if (LIKELY(e->as == SEEN_NEW) || e->forged) {
        if (UNLIKELY(t->requests.bad_at))
            explain_came_damaged(x, e, t);
        t->hypotheses.follows = UINT32_MAX;
        t->hypotheses.cost = NO_INCIDENT;
        return;
    }
    if (e->as == SEEN_GAP)
        note_gap(e, t);
    if (e->h->service == SVC_UC)
        explain_unreliable(x, e, t);
    else if (e->as == SEEN_LATE)
        explain_late(x, e, t);
    else if (e->as == SEEN_AGAIN && e->why != BACK_NONE)
        explain_back(x, e, t);
    if (e->as == SEEN_AGAIN && e->p->op->flags & (OPF_READ_REQ | OPF_ATOMIC_REQ))
        explain_misses(x, e);
    if (e->as == SEEN_AGAIN || e->as == SEEN_LATE)
        note_again(x, e, t);
    else
        t->hypotheses.follows = UINT32_MAX;
}

/* --- Responses -------------------------------------------------------------------------------- */

/* The responder has acknowledged requests that the tap never saw: the capture lacks them. */
static void note_lacking(const struct event *e, struct flow_notes *t)
{
    bool acks = !(e->p->op->flags & OPF_ACK) || response_type(e->p) == AETH_ACK;
    uint32_t proves = response_proves(e->p);

    for (unsigned i = 0; acks && i < NOTED_GAPS; i++) {
        uint32_t psn = t->requests.gaps[i].psn;
        if (!t->requests.gaps[i].open || psn_diff(proves, psn) <= 0)
            continue;
        t->requests.gaps[i].open = false;
        t->requests.gaps_open--;
        t->requests.lacks |= !req_dir_sent(e->h, psn) && !req_dir_read(e->h, psn, 0);
    }
}

static void shorten(ns_t *shortest, ns_t took)
{
    if (took >= 0 && (*shortest < 0 || took < *shortest))
        *shortest = took;
}

/* Shortest round trips: from a packet to its response. A NAK counts only until the first retransmission. */
static void note_round_trip(const struct event *e, struct flow_notes *t)
{
    const struct sent *s = req_dir_sent(e->h, e->p->bth.psn);
    bool ack = response_type(e->p) == AETH_ACK;

    if (!s || s->same)
        return;
    if (s->copies == 1 && !s->late && (ack || !(e->h->again || e->h->late)))
        shorten(&t->responses.round_trip, e->p->frame->ts - s->ts);
    if (ack)
        shorten(&t->responses.least_trip, e->p->frame->ts - s->ts);
}

/* The same response twice: gathered in one incident. Without an IP ID it may also have been sent twice. */
static void report_answer_copy(struct explainer *x, const struct event *e, struct flow_notes *t)
{
    struct incident *st = incident_at(x, t->hypotheses.dup_rsp);

    if (!st) {
        st = incident_new(x, CAUSE_DUPLICATE, e->flow, e->p);
        if (!st)
            return;
        t->hypotheses.dup_rsp = incident_number(x, st);
        incident_is(st, SAY(ANSWERS_TWICE));
    }
    incident_frame(st, ROLE_EVIDENCE, frame_u32(e->p));
}

/* Responses of READs and atomics come in PSN order; each retransmitted READ starts a new run of them. */
static void note_run(struct flow_notes *t, const struct pkt *p)
{
    if (t->responses.run_last != UINT32_MAX && psn_diff(p->bth.psn, t->responses.run_last) <= 0) {
        t->responses.run_frame = frame_u32(p);
        t->responses.run_psn = p->bth.psn;
    }
    t->responses.run_last = p->bth.psn;
}

static bool is_seq_nak(const struct pkt *p)
{
    return p->op->flags & OPF_ACK && p->have & H_AETH && p->aeth.syndrome == (AETH_NAK << 5 | NAK_PSN_SEQ);
}

static uint8_t kind_of(const struct pkt *p)
{
    bool rnr = p->op->flags & OPF_ACK && response_type(p) == AETH_RNR;

    return is_seq_nak(p) ? RESPONSE_SEQ_NAK : rnr ? RESPONSE_RNR_NAK : RESPONSE_OTHER;
}

static void note_answer(struct explainer *x, const struct event *e, struct flow_notes *t)
{
    uint32_t psn = e->p->bth.psn, icrc = icrc_of(e->p);
    struct noted_response *r = response_slot_new(t, psn, e->h->room);

    if (r->psn != psn) {
        r->first = frame_u32(e->p);
        r->icrc_first = icrc;
        r->kind = kind_of(e->p);
        r->ts_first = e->p->frame->ts;
        r->answer = 0;
    } else if (UNLIKELY(icrc && r->icrc == icrc) && frame_ip_id(e->p)) {
        report_answer_copy(x, e, t);
    }
    if (!(e->p->op->flags & OPF_ACK)) {
        r->answer = frame_u32(e->p);
        t->responses.reads++;
        if (e->p->payload_len > t->responses.largest)
            t->responses.largest = e->p->payload_len;
        r->acked = e->h->have_ack && psn_diff(e->h->ack_psn, psn) >= 0;
        note_run(t, e->p);
    }
    r->psn = psn;
    r->frame = frame_u32(e->p);
    r->icrc = icrc;
    r->ip_id = frame_ip_id(e->p);
    r->ts = e->p->frame->ts;
}

/* The MSN never decreases unless the queue pair was reset: then what looked like a retransmission long after the last
 * response is the first request of the new connection. */
static void note_qp_reset(struct explainer *x, const struct event *e, struct flow_notes *t)
{
    struct incident *st = incident_at(x, t->hypotheses.not_received);
    uint32_t before = e->h->have_ack ? e->h->ack_msn : 0;
    bool decreased = before && e->p->have & H_AETH && psn_diff(e->p->aeth.msn, before) < 0;

    if (!decreased || !st || st->cause != CAUSE_LOST_ACK)
        return;
    if (st->silence < ANEW_AFTER || e->p->frame->ts < st->start + st->silence)
        return;
    st->moot = true;
    t->hypotheses.not_received = t->hypotheses.open = t->hypotheses.cost = NO_INCIDENT;
}

static void on_refused(struct explainer *x, const struct event *e, const struct flow_notes *t)
{
    explain_refused(x, e, t);
    guesses_refused(x, e, t);
}

static void on_response(struct explainer *x, const struct event *e)
{
    struct flow_notes *t = e->h ? notes_of(x, e->flow) : NULL, *own = notes_of(x, e->own);

    if (!t)
        return;
    if (own && UNLIKELY(!own->headers.packets))
        explain_assign_bad_icrcs(x, e->own, own);
    if (own)
        note_flow(x, own, e->p);
    if (e->p->op->flags & OPF_READ_RESP)
        explain_read_response(x, e, t);
    if (UNLIKELY(t->hypotheses.answered != NO_INCIDENT))
        explain_other_answer(x, e, t);
    if (UNLIKELY(t->hypotheses.had != NO_INCIDENT))
        explain_had_twice(x, e, t);
    note_answer(x, e, t);
    t->requests.answers +=
        (e->p->op->flags & OPF_ACK) != 0 || !(e->p->op->flags & OPF_READ_RESP) || e->p->op->flags & OPF_END;
    if (UNLIKELY(t->hypotheses.not_received != NO_INCIDENT))
        note_qp_reset(x, e, t);
    if (UNLIKELY(e->p->frame->ts - t->responses.last_ts >= RESPONSE_GAP_LEAST))
        explain_gap(e, t);
    t->responses.last_frame = frame_u32(e->p);
    t->responses.last_ts = e->p->frame->ts;
    if (UNLIKELY(t->requests.gaps_open))
        note_lacking(e, t);
    if (UNLIKELY(t->rounds.naks_at) && !t->rounds.selective)
        rounds_response(&t->rounds, e);
    note_round_trip(e, t);
    if (UNLIKELY(t->hypotheses.open != NO_INCIDENT) && e->p->have & H_AETH)
        explain_repeated_answer(x, e, t);
    if (UNLIKELY(t->hypotheses.had != NO_INCIDENT))
        explain_had_more(x, e, t);
    if (UNLIKELY(t->hypotheses.open != NO_INCIDENT))
        explain_settle(x, e, t);
    if (!(e->p->op->flags & OPF_ACK))
        return;
    if (response_type(e->p) == AETH_RNR)
        explain_rnr(x, e, t);
    else if (response_type(e->p) == AETH_NAK && aeth_value(e->p->aeth.syndrome) != NAK_PSN_SEQ)
        on_refused(x, e, t);
    else if (response_type(e->p) == AETH_NAK)
        explain_nak_obeyed(x, e, t);
}

/* A NAK for the very first packets, which were lost before the tap: it comes before the flow of its requests is
 * known. */
static void on_unpaired(struct explainer *x, const struct pkt *p)
{
    struct early_nak *n;

    if (LIKELY(!is_seq_nak(p)))
        return;
    n = &x->naks[x->naks_at++ % EARLY_NAKS];
    *n = (struct early_nak){.tap = conn_tap_of(p->frame), .psn = p->bth.psn, .frame = frame_u32(p)};
    conn_addr_of(p, &n->src, &n->dst);
}

/* A response to requests that were not captured. */
static void on_unmatched(struct explainer *x, const struct event *e)
{
    struct flow_notes *own = e->own == FLOW_NONE ? NULL : notes_of(x, e->own);

    if (own)
        note_flow(x, own, e->p);
    else if (e->p->icrc == CRC_GOOD)
        icrc_sources_count(&x->icrcs, e->p);
    explain_unmatched(x, e->p, e->own == FLOW_NONE ? 0 : conn_flow_at(observer_conns(x->observer), e->own)->conn);
}

static void on_over(void *user, uint32_t flow, bool restart)
{
    struct explainer *x = user;

    if (!restart)
        guesses_forget(x, flow);
    notes_free(x->notes[flow], observer_room(x->observer));
    x->notes[flow] = NULL;
}

/* What is noted of every request and response. */
static void on_fetch(void *user, uint32_t flow)
{
    const struct flow_notes *t = ((const struct explainer *)user)->notes[flow];

    if (!t)
        return;
    fetch_to_write(&t->rounds, CACHE_LINE);
    fetch_to_write(&t->requests.gaps_open, CACHE_LINE);
    fetch_to_write(&t->responses.by_psn, sizeof *t - offsetof(struct flow_notes, responses.by_psn));
}

/* A frame of a file with time stamps: is its clock the one that it was? */
static inline void note_stamp(struct explainer *x, const struct frame *f, uint32_t file)
{
    struct stamp *s = &x->latest[file];

    if (UNLIKELY(s->iface == f->iface && s->ts - f->ts > CLOCK_SET_BACK && !x->set_back.frame))
        x->set_back = (struct set_back){(uint32_t)f->number, f->file, s->ts - f->ts};
    *s = (struct stamp){f->iface, f->ts};
    if (LIKELY(f->ts > x->ended[file]))
        x->ended[file] = f->ts;
}

/* Counters and times that every packet updates. */
static inline void count_packet(struct explainer *x, const struct pkt *p)
{
    uint32_t file;

    x->packets++;
    x->rdma_packets += (p->have & H_BTH) != 0 || iwarp_has(observer_iwarp(x->observer));
    x->unknown += p->have & H_BTH && !p->op->name;
    if (UNLIKELY(p->frame->has_ts && (!x->first || p->frame->ts < x->first)))
        x->first = p->frame->ts;
    if (p->frame->has_ts && p->frame->ts > x->last) {
        if (UNLIKELY(p->frame->ts - x->last >= QUIET_MIN))
            explain_quiet(x, p);
        x->last = p->frame->ts;
    }
    file = conn_tap_of(p->frame) >> 16;
    if (UNLIKELY(x->packets == 1))
        x->first_tap = conn_tap_of(p->frame);
    x->several_taps |= conn_tap_of(p->frame) != x->first_tap;
    if (UNLIKELY(file < EXPLAIN_FILES && !x->begun[file])) {
        x->begun[file] = true;
        x->began[file] = p->frame->ts;
    }
    if (LIKELY(file < EXPLAIN_FILES && p->frame->has_ts))
        note_stamp(x, p->frame, file);
}

static void on_event(void *user, const struct event *e)
{
    struct explainer *x = user;

    count_packet(x, e->p);
    switch (e->kind) {
    case EVENT_REQUEST:
        if (e->h)
            on_request(x, e);
        break;
    case EVENT_RESPONSE:
        if (UNLIKELY(e->unpaired))
            on_unpaired(x, e->p);
        if (UNLIKELY(x->tried.n_psns))
            guesses_response(x, e);
        if (e->flow != FLOW_NONE)
            on_response(x, e);
        else
            on_unmatched(x, e);
        break;
    case EVENT_BAD_ICRC:
        explain_bad_icrc(x, e->p, e->own);
        break;
    default:
        if (e->p->icrc == CRC_GOOD)
            icrc_sources_count(&x->icrcs, e->p);
        explain_other(x, e->p, e->own);
    }
    if (UNLIKELY(x->congestion != NULL))
        explain_load(x, e->p, e->own);
}

/* --- From start to end ------------------------------------------------------------------------ */

struct explainer *explain_new(struct observer *o)
{
    struct explainer *x = calloc(1, sizeof *x);
    const struct observer_sub s = {.user = x, .over = on_over, .fetch = on_fetch, .before = on_event};

    if (!x)
        return NULL;
    x->observer = o;
    x->room = INCIDENTS_EARLY;
    x->timeline = timeline_of(o);
    x->notes = calloc(observer_flows(o), sizeof(struct flow_notes *));
    if (!x->timeline || !x->notes || !observer_subscribe(o, &s) || !explain_streams(x)) {
        explain_free(x);
        return NULL;
    }
    return x;
}

bool explain_align(struct explainer *x)
{
    x->taps = taps_new(x->observer);
    return x->taps && timeline_several(x->timeline);
}

void explain_free(struct explainer *x)
{
    if (!x)
        return;
    for (uint32_t i = 0; x->notes && i < conn_counts(observer_conns(x->observer)).flows; i++)
        notes_free(x->notes[i], NULL);
    free(x->notes);
    for (unsigned i = 0; i < x->n_datagrams; i++)
        free(x->datagrams[i]);
    taps_free(x->taps);
    kept_free(x);
    incident_chains_free(&x->events);
    free(x->incidents);
    free(x->chosen.of);
    congestion_free(x->congestion);
    free(x);
}

size_t explain_n(const struct explainer *x)
{
    return x->n;
}
const struct incident *explain_at(const struct explainer *x, size_t i)
{
    return &x->incidents[i];
}
