/* layer 3 (explain): what a path does to packets: it rejects them, as ICMP says; or responses come back from another
 * address, or in another VLAN. That it drops large ones: mtu.c. */
#include "dissect/ib/opcode.h"
#include "dissect/ip/icmp.h"
#include "dissect/ip/ip.h"
#include "dissect/pkt.h"
#include "src/conn/retries.h"
#include "src/explain/explain_impl.h"

/* --- ICMP errors
 * ------------------------------------------------------------------------------------------------------ */

enum {
    CODE_PORT = 3,     /* of ICMP_UNREACHABLE: no program takes packets to that port; */
    CODE_FRAGMENT = 4, /* the packet is too big */
    CODE6_PORT = 4,    /* of ICMP6_UNREACHABLE: as CODE_PORT */
};

/* True for codes that mean that a router or host rejected the packet: type << 8 | code. */
static bool is_refused(uint16_t code)
{
    static const uint16_t refused[] = {0x300, 0x301, 0x302,  0x303,  0x306,  0x307,  0x309,
                                       0x30a, 0x30d, 0x8100, 0x8101, 0x8103, 0x8104, 0x8105};

    for (unsigned i = 0; i < ARRAY_LEN(refused); i++)
        if (refused[i] == code)
            return true;
    return false;
}

static bool is_too_big(uint16_t code)
{
    return code == (ICMP_UNREACHABLE << 8 | CODE_FRAGMENT) || code == (0x8000 | ICMP6_TOO_BIG << 8);
}

static void map_ipv4(struct conn_addr *a, const uint8_t *p)
{
    memset(a->b, 0, 10);
    memset(a->b + 10, 0xff, 2);
    memcpy(a->b + 12, p, 4);
}

/* Source and destination of the packet that an ICMP error at `off` quotes; false unless that is a RoCEv2 packet. */
static bool quoted_ends(const struct pkt *p, uint32_t off, struct icmp_error *e)
{
    const uint8_t *q = p->data + off + 8;
    uint32_t left = p->caplen > off + 8 ? p->caplen - off - 8 : 0, len;

    if (left >= 20 && q[0] >> 4 == 4) {
        len = (q[0] & 15u) * 4;
        if (q[9] != IPPROTO_UDP_ || left < len + 4)
            return false;
        map_ipv4(&e->src, q + 12);
        map_ipv4(&e->dst, q + 16);
        return load_be16(q + len + 2) == UDP_PORT_ROCEV2;
    }
    if (left < 44 || q[0] >> 4 != 6 || q[6] != IPPROTO_UDP_)
        return false;
    memcpy(e->src.b, q + 8, 16);
    memcpy(e->dst.b, q + 24, 16);
    return load_be16(q + 42) == UDP_PORT_ROCEV2;
}

static bool icmp_error_of(const struct pkt *p, struct icmp_error *e)
{
    for (unsigned i = 0; i < p->n_layers; i++) {
        const struct layer *l = &p->layers[i];
        bool six = l->hdr == &icmp6_hdr;
        const uint8_t *h = p->data + l->off;
        struct conn_addr to;
        if ((l->hdr != &icmp_hdr && !six) || l->off + 8 > p->caplen)
            continue;
        *e = (struct icmp_error){.code = (uint16_t)((six ? 0x8000 : 0) | h[0] << 8 | h[1]),
                                 .mtu = six ? load_be32(h + 4) : load_be16(h + 6),
                                 .tap = conn_tap_of(p->frame),
                                 .frame = frame_u32(p),
                                 .ts = p->frame->ts,
                                 .n = 1};
        conn_addr_of(p, &e->router, &to);
        e->src.network = e->dst.network = to.network;
        return (is_refused(e->code) || is_too_big(e->code)) && quoted_ends(p, l->off, e);
    }
    return false;
}

void explain_icmp(struct explainer *x, const struct pkt *p)
{
    struct icmp_error e;

    if (!icmp_error_of(p, &e))
        return;
    for (uint32_t i = 0; i < x->n_icmp; i++) {
        struct icmp_error *o = &x->icmp[i];
        if (o->code == e.code && o->tap == e.tap && conn_addr_eq(&o->router, &e.router) &&
            is_same_way(&o->src, &o->dst, &e.src, &e.dst)) {
            o->n++;
            return;
        }
    }
    if (x->n_icmp < ICMP_ERRORS)
        x->icmp[x->n_icmp++] = e;
}

static bool is_between(const struct incident *i, const struct conn_addr *src, const struct conn_addr *dst)
{
    return is_same_way(&i->src, &i->dst, src, dst);
}

/* True if packets came from the destination nevertheless: another program of that host sent the ICMP error. */
static bool has_sent_since(struct explainer *x, const struct icmp_error *e)
{
    for (uint32_t i = 0; i < conn_counts(observer_conns(x->observer)).flows; i++) {
        const struct flow *f = conn_flow_at(observer_conns(x->observer), i);
        const struct flow_notes *t = x->notes[i];
        if (t && f->tap == e->tap && t->headers.last_ts > e->ts && is_same_way(&f->src, &f->dst, &e->dst, &e->src))
            return true;
    }
    for (unsigned i = 0; i < CM_SENT; i++) {
        const struct cm_sent *c = &x->cm[i];
        if (c->n && c->answer.ts > e->ts && is_same_way(&c->src, &c->dst, &e->src, &e->dst))
            return true;
    }
    return false;
}

/* True if the destination itself says that nothing takes packets to that port. */
static bool is_closed(const struct icmp_error *e)
{
    bool port =
        e->code == (ICMP_UNREACHABLE << 8 | CODE_PORT) || e->code == (0x8000 | ICMP6_UNREACHABLE << 8 | CODE6_PORT);

    return port && conn_addr_eq(&e->router, &e->dst);
}

/* Router or host `e->router` reported why packets did not arrive. */
static void end_icmp(struct explainer *x, const struct icmp_error *e)
{
    bool big = is_too_big(e->code);
    uint32_t by =
        has_sent_since(x, e) ? NO_INCIDENT : cross_new(x, big ? CAUSE_MTU_BLACK_HOLE : CAUSE_REFUSED, e->tap, e->ts);
    struct incident *st = incident_at(x, by);

    if (!st)
        return;
    st->src = e->src;
    st->dst = e->dst;
    incident_frame(st, ROLE_EVIDENCE, e->frame);
    st->times = e->n - 1;
    if (big)
        incident_is(st, SAY(TOO_BIG, .end = e->router, .n = e->mtu, .other = e->frame));
    else
        incident_is(st, SAY(REFUSED_BY, .end = e->router, .op = e->code, .other = e->frame, .n = e->n > 1 ? e->n : 0));
    if (is_closed(e))
        incident_add(st, SAY(NOTHING_LISTENS, 0));
    for (uint32_t i = 0; i < by; i++)
        if (has_no_response(&x->incidents[i]) && is_between(&x->incidents[i], &e->src, &e->dst))
            cross_supersede(x, by, i);
}

/* --- Responses dropped because of where they come from ----------------------------------------- */

/* What a NAK says, by its kind. */
static void suppose_nak(struct incident *st, const struct pkt *p, unsigned kind)
{
    static const uint16_t sentences[UNMATCHED_NAK_KINDS] = {[UNMATCHED_SEQ] = SENTENCE_STRANGER_MISSING,
                                                            [UNMATCHED_RNR] = SENTENCE_STRANGER_NOT_READY,
                                                            [UNMATCHED_FATAL] = SENTENCE_STRANGER_REFUSED};
    unsigned code = aeth_value(p->aeth.syndrome);
    struct fact f = {.sentence = sentences[kind],
                     .psn = p->bth.psn,
                     .nak = frame_u32(p),
                     .code = (uint8_t)code,
                     .time = kind == UNMATCHED_RNR ? rnr_time(code) : 0};

    incident_is(st, &f);
}

/* A NAK to requests that were not captured. */
static void report_nak(struct explainer *x, struct unmatched *k, const struct pkt *p, uint32_t conn)
{
    bool rnr = response_type(p) == AETH_RNR;
    unsigned code = aeth_value(p->aeth.syndrome), kind = rnr                   ? UNMATCHED_RNR
                                                         : code == NAK_PSN_SEQ ? UNMATCHED_SEQ
                                                                               : UNMATCHED_FATAL;
    struct incident *st = k->naks[kind] ? incident_at(x, k->naks[kind] - 1) : NULL;

    if (!(p->op->flags & OPF_ACK) || (!rnr && response_type(p) != AETH_NAK))
        return;
    if (!st) {
        st = incident_new(x,
                          rnr                   ? CAUSE_RNR
                          : code == NAK_PSN_SEQ ? CAUSE_PACKET_LOSS
                                                : explain_refusal(code),
                          FLOW_NONE, p);
        if (!st)
            return;
        k->naks[kind] = incident_number(x, st) + 1;
        st->conn = conn;
        st->src = k->dst;
        st->dst = k->src;
        suppose_nak(st, p, kind);
    }
    incident_frame(st, ROLE_NAK, frame_u32(p));
}

void explain_unmatched(struct explainer *x, const struct pkt *p, uint32_t conn)
{
    struct unmatched k = {.tap = conn_tap_of(p->frame), .dqpn = p->bth.dqpn, .psn = p->bth.psn, .frame = frame_u32(p)};

    conn_addr_of(p, &k.src, &k.dst);
    for (uint32_t i = 0; i < x->n_unmatched; i++) {
        struct unmatched *o = &x->unmatched[i];
        if (o->tap == k.tap && o->dqpn == k.dqpn && is_same_way(&o->src, &o->dst, &k.src, &k.dst)) {
            o->n++;
            o->others += !(p->op->flags & OPF_ACK);
            o->psn = k.psn;
            report_nak(x, o, p, conn);
            return;
        }
    }
    if (x->n_unmatched == UNMATCHED)
        return;
    k.n = 1;
    k.others = !(p->op->flags & OPF_ACK);
    x->unmatched[x->n_unmatched++] = k;
    report_nak(x, &x->unmatched[x->n_unmatched - 1], p, conn);
}

/* A flow of requests without any response whose PSNs fit the unmatched responses; FLOW_NONE. */
static uint32_t flow_of_unmatched(struct explainer *x, const struct unmatched *k)
{
    uint32_t found = FLOW_NONE;

    for (uint32_t i = 0; i < conn_counts(observer_conns(x->observer)).flows; i++) {
        const struct flow *f = conn_flow_at(observer_conns(x->observer), i);
        struct req_dir *h = observer_req_dir(x->observer, i);
        bool elsewhere = f->tap == k->tap && conn_addr_eq(&f->src, &k->dst) && !conn_addr_eq(&f->dst, &k->src);
        if (!elsewhere || !h || !h->have_next || h->rsp_packets || !req_dir_sent(h, k->psn))
            continue;
        if (found != FLOW_NONE)
            return FLOW_NONE;
        found = i;
    }
    return found;
}

/* What dropped responses led to: a request was sent several times, and nothing follows. */
static void report_spent(struct explainer *x, struct incident *st, struct req_dir *h)
{
    const struct sent *s = req_dir_sent(h, observer_tries(x->observer, st->flow)->psn);

    if (!s || s->copies < 2 || observer_tries(x->observer, st->flow)->next != h->next)
        return;
    incident_frame(st, ROLE_RETRANSMISSION, s->last);
    incident_add(st, SAY(SPENT_DROPPED, .psn = s->psn, .n = s->copies, .time = s->ts - s->ts_first, .again = s->last,
                         .m = retries_used(x->observer, h) >= RETRIES_MAX));
}

/* True if a tap saw the requests that the response of an unknown sender answers. */
static bool is_known(struct explainer *x, const struct unmatched *k)
{
    for (uint32_t i = 0; i < conn_counts(observer_conns(x->observer)).flows; i++) {
        const struct flow *f = conn_flow_at(observer_conns(x->observer), i);
        const struct req_dir *h = observer_req_dir(x->observer, i);
        if (h && h->have_next && is_same_way(&f->src, &f->dst, &k->dst, &k->src))
            return true;
    }
    return flow_of_unmatched(x, k) != FLOW_NONE;
}

void explain_unmatched_naks(struct explainer *x)
{
    for (uint32_t i = 0; i < x->n_unmatched; i++)
        for (unsigned kind = 0; kind < UNMATCHED_NAK_KINDS; kind++)
            if (x->unmatched[i].naks[kind] && is_known(x, &x->unmatched[i]))
                x->incidents[x->unmatched[i].naks[kind] - 1].moot = true;
}

void explain_unheard(struct explainer *x)
{
    for (uint32_t i = 0; i < x->n_unmatched; i++) {
        uint32_t flow = flow_of_unmatched(x, &x->unmatched[i]);
        if (flow != FLOW_NONE)
            timeline_unheard(x->timeline, flow);
    }
}

static void end_unmatched(struct explainer *x, const struct unmatched *k)
{
    uint32_t flow = flow_of_unmatched(x, k), by;
    struct incident *st;
    bool waits = false;

    for (uint32_t i = 0; flow != FLOW_NONE && i < x->n; i++)
        waits |= x->incidents[i].flow == flow && has_no_response(&x->incidents[i]);
    by = waits ? cross_new(x, CAUSE_WRONG_SOURCE, k->tap, observer_req_dir(x->observer, flow)->first_ts) : NO_INCIDENT;
    st = incident_at(x, by);
    if (!st)
        return;
    incident_of_flow(x, st, flow);
    incident_frame(st, ROLE_EVIDENCE, k->frame);
    st->times = k->n - 1;
    incident_is(
        st, SAY(WRONG_ADDRESS, .n = k->others ? 0 : k->n, .m = k->others ? k->n : 0, .end = k->src, .other = k->frame));
    report_spent(x, st, observer_req_dir(x->observer, flow));
    for (uint32_t i = 0; i < by; i++)
        if (x->incidents[i].flow == flow && has_no_response(&x->incidents[i]))
            cross_supersede(x, by, i);
}

/* The responses to a flow come in another VLAN, and its requests are retransmitted: the VLAN is the cause. */
static void end_vlan(struct explainer *x, uint32_t flow)
{
    const struct flow *f = conn_flow_at(observer_conns(x->observer), flow);
    const struct flow_notes *t = x->notes[flow], *o = f->peer == FLOW_NONE ? NULL : x->notes[f->peer];
    const struct req_dir *h = observer_req_dir(x->observer, flow);
    const struct tries *tries = observer_tries(x->observer, flow);
    bool differs = t && o && t->headers.seen && o->headers.seen && t->headers.vlan != o->headers.vlan;
    struct incident *st;
    uint32_t by;

    if (!differs || !h || !h->have_next || tries->n < 2 || tries->next != h->next)
        return;
    by = cross_new(x, CAUSE_WRONG_SOURCE, f->tap, h->first_ts);
    st = incident_at(x, by);
    if (!st)
        return;
    incident_of_flow(x, st, flow);
    incident_frame(st, ROLE_EVIDENCE, o->headers.frame);
    incident_is(st, SAY(WRONG_VLAN, .n = o->headers.vlan, .m = t->headers.vlan, .other = o->headers.frame));
    for (uint32_t i = 0; i < by; i++)
        if (x->incidents[i].flow == flow &&
            (has_no_response(&x->incidents[i]) || x->incidents[i].cause == CAUSE_LOST_ACK))
            cross_supersede(x, by, i);
}

void explain_paths(struct explainer *x)
{
    uint32_t flows = conn_counts(observer_conns(x->observer)).flows;

    for (uint32_t i = 0; i < x->n_icmp; i++)
        end_icmp(x, &x->icmp[i]);
    for (uint32_t i = 0; i < x->n_unmatched; i++)
        end_unmatched(x, &x->unmatched[i]);
    explain_mtu(x);
    for (uint32_t i = 0; i < flows; i++)
        end_vlan(x, i);
}
