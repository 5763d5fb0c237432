/* layer 3 (explain): what a path does to packets: it rejects them, as ICMP says; it drops large ones; or responses come
 * back from another address, or in another VLAN. */
#include "dissect/ib/opcode.h"
#include "dissect/ip/icmp.h"
#include "dissect/pkt.h"
#include "src/conn/retries.h"
#include "src/explain/explain_impl.h"

/* --- ICMP errors
 * ------------------------------------------------------------------------------------------------------ */

enum {
    ICMP_UNREACHABLE = 3, /* type of ICMP */
    ICMP6_UNREACHABLE = 1,
    ICMP6_TOO_BIG = 2,
    CODE_FRAGMENT = 4, /* of ICMP_UNREACHABLE: the packet is too big */
    IPPROTO_OF_UDP = 17,
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
        if (q[9] != IPPROTO_OF_UDP || left < len + 4)
            return false;
        map_ipv4(&e->src, q + 12);
        map_ipv4(&e->dst, q + 16);
        return load_be16(q + len + 2) == UDP_PORT_ROCEV2;
    }
    if (left < 44 || q[0] >> 4 != 6 || q[6] != IPPROTO_OF_UDP)
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
    for (uint32_t i = 0; i < by; i++)
        if (has_no_response(&x->incidents[i]) && is_between(&x->incidents[i], &e->src, &e->dst))
            cross_supersede(x, by, i);
}

/* --- MTU -------------------------------------------------------------------------------------- */

#define BLACK_HOLE_TRIES   3   /* copies of large packets that did not arrive */
#define BLACK_HOLE_SMALLER 8   /* smaller packets that arrived, */
#define BLACK_HOLE_NAKS    2   /* or connections on which NAKs show that some did behind the large one */
#define BLACK_HOLE_MIN     512 /* bytes; no MTU is smaller */

/* Packets to one address that were acknowledged, or not: of `size` bytes, and smaller. */
struct sizes {
    uint32_t size;                 /* bytes of the packets retransmitted that never arrived; 0: none */
    uint32_t tries, stuck, spent;  /* copies of them; their connections; of these, how many used up their retries */
    uint32_t arrived, arrived_max; /* packets acknowledged; bytes of the largest */
    uint32_t naks, nak;            /* connections with a NAK for a large packet; the frame of one such NAK */
    uint32_t frame;                /* the first large one */
    ns_t ts;
};

/* True if a packet was sent as often as the retry count allows. */
static bool is_spent(struct explainer *x, const struct req_dir *h, const struct sent *s)
{
    const struct conn_params *c = &conn_flow_at(observer_conns(x->observer), h->flow)->params;

    return s->copies > (c->retry_known && c->retry_cnt < RETRIES_MAX ? c->retry_cnt : RETRIES_MAX);
}

static void add_sizes(struct explainer *x, struct sizes *z, struct req_dir *h)
{
    const struct sent *stuck = req_dir_sent(h, h->have_una ? h->una : h->start);

    for (unsigned i = 0; h->have_una && i < h->slots; i++)
        if (h->sent[i].psn != UINT32_MAX && psn_diff(h->una, h->sent[i].psn) > 0) {
            z->arrived++;
            z->arrived_max = h->sent[i].len > z->arrived_max ? h->sent[i].len : z->arrived_max;
        }
    if (!stuck || stuck->copies < 2)
        return;
    if (!z->size || stuck->len < z->size)
        z->size = stuck->len;
    if (!z->frame || stuck->ts_first < z->ts) {
        z->frame = stuck->first;
        z->ts = stuck->ts_first;
    }
    for (unsigned i = 0; i < h->slots; i++)
        if (h->sent[i].psn != UINT32_MAX && psn_diff(h->sent[i].psn, stuck->psn) >= 0 && h->sent[i].len >= stuck->len)
            z->tries += h->sent[i].copies;
    z->stuck++;
    z->spent += is_spent(x, h, stuck);
    if (h->seq.have && h->seq.psn == stuck->psn) {
        z->naks++;
        z->nak = !z->nak || h->seq.frame < z->nak ? h->seq.frame : z->nak;
    }
}

/* Count the requests of all flows to the destination of `f`. */
static struct sizes sizes_to(struct explainer *x, const struct flow *f)
{
    struct sizes z = {0};

    for (uint32_t i = 0; i < conn_counts(observer_conns(x->observer)).flows; i++) {
        const struct flow *g = conn_flow_at(observer_conns(x->observer), i);
        struct req_dir *h = observer_req_dir(x->observer, i);
        if (g->tap == f->tap && conn_addr_eq(&g->dst, &f->dst) && h && h->have_next)
            add_sizes(x, &z, h);
    }
    return z;
}

/* True if only the size distinguishes the packets that arrived from those that did not. */
static bool is_black_hole(const struct sizes *z)
{
    return z->size >= BLACK_HOLE_MIN && z->tries >= BLACK_HOLE_TRIES && z->arrived_max < z->size &&
           (z->arrived >= BLACK_HOLE_SMALLER || z->naks >= BLACK_HOLE_NAKS);
}

/* True if the oldest request without a response was retransmitted. */
static bool is_stuck(struct explainer *x, uint32_t flow)
{
    struct req_dir *h = observer_req_dir(x->observer, flow);
    const struct sent *s = h && h->have_next ? req_dir_sent(h, h->have_una ? h->una : h->start) : NULL;

    return s && s->copies > 1;
}

/* True if no earlier flow to that host at the tap has the trouble that `has` looks for. */
static bool is_first_to(struct explainer *x, uint32_t flow, bool (*has)(struct explainer *x, uint32_t flow))
{
    const struct flow *f = conn_flow_at(observer_conns(x->observer), flow);

    for (uint32_t i = 0; i < flow; i++) {
        const struct flow *g = conn_flow_at(observer_conns(x->observer), i);
        if (has(x, i) && g->tap == f->tap && conn_addr_eq(&g->dst, &f->dst))
            return false;
    }
    return true;
}

static void end_mtu(struct explainer *x, uint32_t flow)
{
    const struct flow *f = conn_flow_at(observer_conns(x->observer), flow);
    bool first = is_stuck(x, flow) && is_first_to(x, flow, is_stuck);
    struct sizes z = first ? sizes_to(x, f) : (struct sizes){0};
    uint32_t by = is_black_hole(&z) ? cross_new(x, CAUSE_MTU_BLACK_HOLE, f->tap, z.ts) : NO_INCIDENT;
    struct incident *st = incident_at(x, by);

    if (!st)
        return;
    st->dst = f->dst;
    incident_frame(st, ROLE_LOST, z.frame);
    incident_is(st, SAY(BLACK_HOLE, .n = z.size, .m = z.tries, .lost = z.frame,
                        .k = z.arrived < BLACK_HOLE_SMALLER ? 0 : z.arrived));
    if (z.arrived < BLACK_HOLE_SMALLER)
        incident_add(st, SAY(BLACK_HOLE_NAKS, .n = z.naks, .nak = z.nak));
    if (z.spent)
        incident_add(st, SAY(SPENT_ON, .n = z.spent));
    for (uint32_t i = 0; i < by; i++)
        if ((has_no_response(&x->incidents[i]) || x->incidents[i].cause == CAUSE_PACKET_LOSS) &&
            x->incidents[i].tap == f->tap && conn_addr_eq(&x->incidents[i].dst, &f->dst))
            cross_supersede(x, by, i);
}

/* Number of full-size responses missing of READ `a`, whose short last response arrived; 0: the READ is complete, a
 * full-size response arrived, or the last one did not. `pmtu`: bytes. */
static uint32_t lacks_full(const struct flow_notes *t, const struct read_req *a, uint32_t pmtu)
{
    uint32_t last = a->psn + a->span - 1;
    bool several = a->opcode == OP_READ_REQUEST && a->span >= 2 && a->span <= NOTED_RESPONSES;

    if (a->answered || !several || a->len <= (a->span - 1) * pmtu || !answer_frame(t, last & PSN_MASK))
        return 0;
    for (uint32_t i = 0; i + 1 < a->span; i++) {
        if (answer_frame(t, psn_add(a->psn, i)))
            return 0;
    }
    return a->span - 1;
}

/* READ responses of full size that the requester of a flow never received. */
static struct sizes missing_back(struct explainer *x, uint32_t flow)
{
    const struct flow *f = conn_flow_at(observer_conns(x->observer), flow);
    const struct flow_notes *t = x->notes[flow];
    struct req_dir *h = observer_req_dir(x->observer, flow);
    uint32_t pmtu = h && h->pmtu ? h->pmtu : f->pmtu;
    struct sizes z = {0};

    for (uint32_t i = h && h->have_next && t && pmtu ? h->read_slots : 0; i > 0; i--) {
        const struct read_req *a = req_dir_latest_read(h, i);
        const struct sent *s = a->span && !a->again ? req_dir_sent(h, a->psn) : NULL;
        uint32_t full = s && s->copies >= BLACK_HOLE_TRIES ? lacks_full(t, a, pmtu) : 0;
        if (!full)
            continue;
        z.size = pmtu;
        z.tries += full * s->copies;
        z.frame = z.stuck ? z.frame : s->first;
        z.ts = z.stuck ? z.ts : s->ts_first;
        z.stuck = 1;
        z.spent |= is_spent(x, h, s);
    }
    return z;
}

static bool is_back_missing(struct explainer *x, uint32_t flow)
{
    return missing_back(x, flow).stuck > 0;
}

static struct sizes sizes_back(struct explainer *x, uint32_t flow)
{
    const struct flow *f = conn_flow_at(observer_conns(x->observer), flow);
    struct sizes z = {0};

    for (uint32_t i = 0; i < conn_counts(observer_conns(x->observer)).flows; i++) {
        const struct flow *g = conn_flow_at(observer_conns(x->observer), i);
        struct sizes one;
        if (g->tap != f->tap || !conn_addr_eq(&g->dst, &f->dst) || !x->notes[i])
            continue;
        one = missing_back(x, i);
        z.arrived += x->notes[i]->responses.reads;
        z.arrived_max = x->notes[i]->responses.largest > z.arrived_max ? x->notes[i]->responses.largest : z.arrived_max;
        if (one.stuck && (!z.stuck || one.size < z.size))
            z.size = one.size;
        if (one.stuck && (!z.stuck || one.ts < z.ts)) {
            z.frame = one.frame;
            z.ts = one.ts;
        }
        z.tries += one.tries;
        z.stuck += one.stuck;
        z.spent += one.spent;
    }
    return z;
}

/* True if an incident is about such READs: of this tap, or of another one that saw the same READs. */
static bool is_missing_back(struct explainer *x, const struct incident *o, const struct flow *f)
{
    if (o->flow == FLOW_NONE || !conn_addr_eq(&o->dst, &f->dst) ||
        !(has_no_response(o) || o->cause == CAUSE_LOST_READ_RESPONSE))
        return false;
    for (uint32_t i = 0; i < conn_counts(observer_conns(x->observer)).flows; i++)
        if (conn_flow_at(observer_conns(x->observer), i)->tap == f->tap &&
            (i == o->flow || explain_same_flow(x, i, o->flow)) && missing_back(x, i).stuck)
            return true;
    return false;
}

/* The READ responses of a host that have full size never come, smaller ones do. */
static void end_mtu_back(struct explainer *x, uint32_t flow)
{
    const struct flow *f = conn_flow_at(observer_conns(x->observer), flow);
    bool first = is_back_missing(x, flow) && is_first_to(x, flow, is_back_missing);
    struct sizes z = first ? sizes_back(x, flow) : (struct sizes){0};
    uint32_t by = is_black_hole(&z) ? cross_new(x, CAUSE_MTU_BLACK_HOLE, f->tap, z.ts) : NO_INCIDENT;
    struct incident *st = incident_at(x, by);

    if (!st)
        return;
    st->dst = f->dst;
    incident_frame(st, ROLE_LOST, z.frame);
    incident_is(st, SAY(BLACK_HOLE_BACK, .n = z.size, .m = z.tries, .k = z.arrived));
    if (z.spent)
        incident_add(st, SAY(SPENT_ON, .n = z.spent));
    for (uint32_t i = 0; i < by; i++)
        if (is_missing_back(x, &x->incidents[i], f))
            cross_supersede(x, by, i);
}

/* --- Responses dropped because of where they come from ----------------------------------------- */

/* What a NAK says, by its kind. */
static void suppose_nak(struct incident *st, const struct pkt *p, unsigned kind)
{
    static const uint8_t sentences[UNMATCHED_NAK_KINDS] = {[UNMATCHED_SEQ] = SENTENCE_STRANGER_MISSING,
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
    for (uint32_t i = 0; i < flows; i++) {
        end_mtu(x, i);
        end_mtu_back(x, i);
        end_vlan(x, i);
    }
}
