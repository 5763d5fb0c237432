/* layer 2b (conn): context for decoding: messages, requests and their responses, packets and their acknowledgements. */
#include "src/conn/annotate.h"

#include "dissect/link/eth.h"
#include "psn.h"
#include "src/conn/setup.h"

#include <stdlib.h>

#define IPOIB_QKEY 0x0b1b /* of the broadcast group unless the administrator chose another (RFC 4391) */
#define RESTART    65536  /* a PSN further back than this is not a retransmission: the queue pair was set up anew */
#define READS      16     /* READ and atomic requests that a flow remembers */

/* A request packet, in the slot of its PSN. */
struct sent {
    uint32_t psn;   /* UINT32_MAX: empty */
    uint32_t frame; /* of its latest transmission; frames beyond 2^32 are not named */
    uint32_t msg;
    uint16_t packet; /* position in its message, from 1 */
    uint16_t ip_id;  /* IPv4 identification: the same again means the same frame captured twice */
};

/* A READ or atomic request. */
struct asked {
    uint32_t psn, span; /* PSNs of its responses; span 0: empty */
    uint32_t frame;
    uint32_t msg;
    uint64_t bytes;
};

/* Requests of one flow. */
struct requests {
    uint32_t next;  /* PSN expected next, valid with have_next */
    uint32_t acked; /* PSN acknowledged last, valid with have_acked */
    bool have_next, have_acked, in_message;
    uint32_t msg;       /* messages so far */
    uint32_t packet;    /* position in the current one */
    uint32_t packets;   /* of the current one, 0: not known */
    uint64_t bytes;     /* likewise */
    uint32_t first_len; /* payload of its first packet */
    uint32_t reads_at;
    struct asked reads[READS];
    struct sent sent[CONTEXT_WINDOW];
};

struct context {
    struct conn_table *conns;
    struct learner learner;
    struct requests **requests; /* by flow, allocated when the flow first carries a request */
};

static struct sent *slot(struct requests *r, uint32_t psn)
{
    return &r->sent[psn % CONTEXT_WINDOW];
}

static void fresh_flow(void *user, uint32_t flow)
{
    struct context *c = user;

    free(c->requests[flow]);
    c->requests[flow] = NULL;
}

static bool has_psn(void *user, uint32_t flow, uint32_t psn)
{
    struct requests *r = ((struct context *)user)->requests[flow];

    if (!r)
        return false;
    if (slot(r, psn)->psn == psn)
        return true;
    for (unsigned i = 0; i < READS; i++)
        if (psn_in(psn, r->reads[i].psn, r->reads[i].span))
            return true;
    return false;
}

struct context *context_new(void)
{
    struct context *c = calloc(1, sizeof *c);

    if (!c)
        return NULL;
    c->conns = conn_table_new(CONTEXT_FLOWS);
    c->requests = calloc(CONTEXT_FLOWS, sizeof(struct requests *));
    if (!c->conns || !c->requests) {
        context_free(c);
        return NULL;
    }
    conn_table_user(c->conns, c, fresh_flow, has_psn);
    return c;
}

void context_free(struct context *c)
{
    if (!c)
        return;
    for (uint32_t i = 0; c->requests && i < CONTEXT_FLOWS; i++)
        free(c->requests[i]);
    free(c->requests);
    conn_table_free(c->conns);
    free(c);
}

struct conn_table *context_conns(struct context *c)
{
    return c->conns;
}

static struct requests *requests_of(struct context *c, uint32_t flow)
{
    struct requests *r = c->requests[flow];

    if (LIKELY(r != NULL))
        return r;
    r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    for (unsigned i = 0; i < CONTEXT_WINDOW; i++)
        r->sent[i].psn = UINT32_MAX;
    return c->requests[flow] = r;
}

/* IPv4 identification, 0 for other packets. */
static uint16_t ip_id(const struct pkt *p)
{
    return p->have & H_IP4 ? load_be16(p->data + p->ip_off + 4) : 0;
}

static uint32_t frame_number(const struct pkt *p)
{
    return p->frame->number <= UINT32_MAX ? (uint32_t)p->frame->number : 0;
}

/* Bytes that a request moves: its DMA length, 8 for atomics. */
static uint64_t asked_bytes(const struct pkt *p)
{
    return p->have & H_RETH ? p->reth.dmalen : 8;
}

/* PSNs that a request takes; 0 if that needs a path MTU which is not known. */
static uint32_t request_span(const struct pkt *p, uint32_t pmtu)
{
    if (!(p->op->flags & OPF_READ_REQ))
        return 1;
    if (pmtu)
        return psn_span(p->reth.dmalen, pmtu);
    return p->reth.dmalen <= 256 ? 1 : 0;
}

/* A message begins: number it, and say what its first packet tells about its size. */
static void message_begin(struct requests *r, const struct pkt *p)
{
    r->msg++;
    r->packet = 1;
    r->first_len = p->payload_len;
    r->packets = 0;
    r->bytes = 0;
    if (p->have & H_RETH) {
        r->bytes = p->reth.dmalen;
        r->packets = p->op->flags & OPF_FIRST && p->payload_len ? psn_span(r->bytes, p->payload_len) : 1;
    }
    r->in_message = p->op->flags & OPF_FIRST;
}

/* The next packet of the current message; `skipped` packets before it were not seen. */
static void message_continue(struct requests *r, const struct pkt *p, uint32_t skipped)
{
    if (!r->in_message) {
        r->msg++; /* its beginning was not seen */
        r->packet = 0;
        r->packets = 0;
        r->in_message = true;
        r->first_len = 0;
    } else {
        r->packet += skipped + 1;
    }
    if (p->op->flags & OPF_END) {
        r->in_message = false;
        r->packets = r->packet;
        if (!r->bytes && r->first_len)
            r->bytes = (uint64_t)(r->packet - 1) * r->first_len + p->payload_len;
    }
}

static void note_message(struct pkt *p, uint32_t msg, uint32_t packet, uint32_t packets, uint64_t bytes, bool whole)
{
    p->note.have |= packet ? NOTE_MSG : 0;
    p->note.msg = msg;
    p->note.msg_packet = packet;
    if (packet && packet <= packets) {
        p->note.have |= NOTE_MSG_PACKETS;
        p->note.msg_packets = packets;
    }
    if (whole) {
        p->note.have |= NOTE_MSG_BYTES;
        p->note.msg_bytes = bytes;
    }
}

/* The READ or atomic whose responses take `psn`; the one asked last if several do. */
static struct asked *asked_for(struct requests *r, uint32_t psn)
{
    for (unsigned i = 1; i <= READS; i++) {
        struct asked *a = &r->reads[(r->reads_at - i) % READS];
        if (psn_in(psn, a->psn, a->span))
            return a;
    }
    return NULL;
}

/* Remember a request that responses will answer; one that is asked again keeps the number of its message. */
static void remember_read(struct requests *r, const struct pkt *p, uint32_t span, bool again)
{
    const struct asked *before = again ? asked_for(r, p->bth.psn) : NULL;
    uint32_t msg = before ? before->msg : r->msg;

    r->reads[r->reads_at++ % READS] = (struct asked){p->bth.psn, span ? span : 1, frame_number(p), msg, asked_bytes(p)};
}

/* A request that comes after later ones but was not seen before: it was overtaken, or its first copy was lost before
 * the tap. It belongs where its neighbour does. */
static void note_late(struct requests *r, struct pkt *p, struct sent *s)
{
    const struct sent *before = slot(r, psn_add(p->bth.psn, (uint32_t)-1));
    bool known = before->psn == psn_add(p->bth.psn, (uint32_t)-1) && !(p->op->flags & OPF_START);

    *s = (struct sent){p->bth.psn, frame_number(p), known ? before->msg : 0, known ? (uint16_t)(before->packet + 1) : 0,
                       ip_id(p)};
    note_message(p, s->msg, s->packet, s->msg == r->msg ? r->packets : 0, r->bytes, false);
}

/* A request seen again: it has the number and position of the first time. */
static bool note_repeated(struct requests *r, struct pkt *p)
{
    struct sent *s = slot(r, p->bth.psn);

    if (!r->have_next || psn_diff(p->bth.psn, r->next) >= 0)
        return false;
    if (psn_diff(p->bth.psn, r->next) < -RESTART) {
        r->have_next = r->have_acked = false;
        return false;
    }
    if (s->psn != p->bth.psn && psn_diff(r->next, p->bth.psn) <= CONTEXT_WINDOW) {
        note_late(r, p, s);
        return true;
    }
    if (s->psn == p->bth.psn && s->ip_id && s->ip_id == ip_id(p)) {
        p->note.have |= NOTE_TWICE;
    } else {
        p->note.have |= NOTE_RETRANS;
        p->note.retransmission = true;
    }
    if (s->psn == p->bth.psn) {
        unsigned packets = p->op->flags & OPF_ONLY ? 1 : s->msg == r->msg ? r->packets : 0;
        note_message(p, s->msg, s->packet, packets, r->bytes, s->msg == r->msg && r->bytes);
        s->frame = frame_number(p);
        s->ip_id = ip_id(p);
    }
    return true;
}

static void note_request(struct context *c, struct pkt *p, uint32_t flow)
{
    struct requests *r = requests_of(c, flow);
    struct flow *f = conn_flow_at(c->conns, flow);
    uint32_t psn = p->bth.psn, span;

    if (!r)
        return;
    if (UNLIKELY(p->op->flags & OPF_FIRST && !f->pmtu))
        f->pmtu = p->payload_len;
    span = request_span(p, f->pmtu);
    if (note_repeated(r, p)) {
        if (p->op->flags & (OPF_READ_REQ | OPF_ATOMIC_REQ))
            remember_read(r, p, span, true);
        return;
    }
    if (p->op->flags & OPF_START)
        message_begin(r, p);
    else
        message_continue(r, p, r->have_next ? (psn - r->next) & PSN_MASK : 0);
    if (p->op->flags & OPF_ONLY && !(p->have & (H_RETH | H_ATOMICETH)))
        r->bytes = p->payload_len;
    note_message(p, r->msg, r->packet, p->op->flags & OPF_ONLY ? 1 : r->packets, r->bytes,
                 r->bytes || p->op->flags & OPF_ONLY);
    *slot(r, psn) = (struct sent){psn, frame_number(p), r->msg, (uint16_t)r->packet, ip_id(p)};
    if (!r->have_acked) { /* the first request of the flow */
        r->acked = psn_add(psn, (uint32_t)-1);
        r->have_acked = true;
    }
    if (p->op->flags & (OPF_READ_REQ | OPF_ATOMIC_REQ | OPF_ATOMIC_WRITE | OPF_FLUSH))
        remember_read(r, p, span, false);
    r->have_next = span != 0;
    r->next = psn_add(psn, span);
}

static void advance_acked(struct requests *r, uint32_t psn)
{
    if (!r->have_acked || psn_diff(psn, r->acked) > 0) {
        r->acked = psn;
        r->have_acked = true;
    }
}

/* A READ or atomic response: its request, and its place among the responses. */
static void note_answer(struct requests *r, struct pkt *p, uint32_t pmtu)
{
    struct asked *a = asked_for(r, p->bth.psn);

    if (!a)
        return;
    if (pmtu && p->op->flags & OPF_READ_RESP)
        a->span = psn_span(a->bytes, pmtu); /* it may have been asked before the path MTU was known */
    if (p->op->flags & OPF_END)
        advance_acked(r, p->bth.psn);
    if (a->frame) {
        p->note.have |= NOTE_REQUEST;
        p->note.request_frame = a->frame;
    }
    note_message(p, a->msg, ((p->bth.psn - a->psn) & PSN_MASK) + 1, pmtu || a->span == 1 ? a->span : 0, a->bytes, true);
}

/* An acknowledgement of `psn`: the frames from the first one not yet acknowledged. A NAK answers one frame. */
static void note_acked(struct requests *r, struct pkt *p)
{
    bool ack = aeth_type(p->aeth.syndrome) == AETH_ACK;
    uint32_t psn = p->bth.psn, first = ack && r->have_acked ? psn_add(r->acked, 1) : psn;
    const struct sent *last = slot(r, psn), *from = slot(r, first);

    if (ack)
        advance_acked(r, psn);
    if (last->psn != psn || !last->frame)
        return;
    p->note.have |= NOTE_ACKED;
    p->note.acked_last = last->frame;
    p->note.acked_first = from->psn == first && psn_diff(psn, first) >= 0 && from->frame ? from->frame : last->frame;
}

static void note_response(struct context *c, struct pkt *p, uint32_t flow)
{
    struct flow *f = conn_flow_at(c->conns, flow);
    struct requests *r;

    if (UNLIKELY(p->op->flags & OPF_READ_RESP && p->op->flags & OPF_FIRST && !f->pmtu))
        f->pmtu = p->payload_len;
    if (UNLIKELY(f->peer == FLOW_NONE))
        conn_pair_by_psn(c->conns, flow, p->bth.psn);
    if (f->peer == FLOW_NONE)
        return;
    r = c->requests[f->peer];
    if (!r)
        return;
    if (p->op->flags & OPF_ACK && p->have & H_AETH)
        note_acked(r, p);
    else
        note_answer(r, p, f->pmtu);
}

static void note_flow(struct pkt *p, const struct flow *f)
{
    p->note.have |= f->conn ? NOTE_CONN : 0;
    p->note.conn = f->conn;
    if (f->have_sqpn) {
        p->note.have |= NOTE_SRC_QPN;
        p->note.src_qpn = f->sqpn;
    }
    if (f->pmtu && f->have_sqpn) {
        p->note.have |= NOTE_PMTU;
        p->note.pmtu = f->pmtu;
    }
    if (f->upper) {
        p->note.have |= NOTE_UPPER;
        p->note.upper = f->upper;
    }
}

/* IP over InfiniBand puts an EtherType and two zero bytes before the datagram (RFC 4391). */
static bool looks_like_ipoib(const struct pkt *p)
{
    const uint8_t *q = p->data + p->payload_off;
    uint16_t type = p->payload_cap >= 8 ? load_be16(q) : 0;

    return (type == ETHERTYPE_IPV4 || type == ETHERTYPE_IPV6 || type == ETHERTYPE_ARP) && load_be16(q + 2) == 0 &&
           p->deth.qkey == IPOIB_QKEY;
}

/* Datagrams have no connection; the DETH names their sender. */
static void note_datagram(struct pkt *p)
{
    if (p->have & H_DETH && !(p->have & H_MAD) && looks_like_ipoib(p)) {
        p->note.have |= NOTE_UPPER;
        p->note.upper = "IPoIB";
    }
    if (p->have & H_DETH) {
        p->note.have |= NOTE_SRC_QPN;
        p->note.src_qpn = p->deth.srcqp;
    }
}

void context_note(struct context *c, struct pkt *p)
{
    uint32_t flow;

    if (UNLIKELY(!(p->have & H_BTH) || p->have & H_MAD))
        learn_packet(&c->learner, c->conns, p);
    if (!(p->have & H_BTH) || p->flags & PKT_MALFORMED)
        return;
    if (p->op->flags & OPF_CNP) {
        flow = conn_flow_find(c->conns, p);
        if (flow != FLOW_NONE)
            note_flow(p, conn_flow_at(c->conns, flow));
        return;
    }
    if (p->op->ext & H_DETH || !p->op->name) {
        note_datagram(p);
        return;
    }
    flow = (p->icrc == CRC_BAD ? conn_flow_unnumbered : conn_flow)(c->conns, p);
    if (p->op->flags & OPF_REQUEST)
        note_request(c, p, flow);
    else
        note_response(c, p, flow);
    note_flow(p, conn_flow_at(c->conns, flow));
}
