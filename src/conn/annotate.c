/* layer 2b (conn): notes for decode: messages, requests and their responses, packets and their acknowledgements. The
 * context takes the steps of an observer of its own. */
#include "src/conn/annotate.h"

#include "dissect/dissectors.h"
#include "dissect/ulp/service.h"
#include "fetch.h"
#include "src/conn/observer.h"
#include "src/iwarp/iwarp.h"
#include "zeros.h"

#include <stdlib.h>

#define RETRIES 8 /* requests for the same responses that are examined */

/* Progress of the requests of a flow: PSNs, and the current message. The requests themselves are in struct req_dir. */
struct place {
    uint32_t next;  /* PSN expected next */
    uint32_t acked; /* highest PSN acknowledged, valid with have_acked */
    bool have_acked, in_message;
    uint32_t msg;       /* messages so far */
    uint32_t packet;    /* position in the current one, from 1 */
    uint32_t packets;   /* of the current one, 0: not known */
    uint64_t bytes;     /* likewise */
    uint32_t first_len; /* payload of its first packet */
};

struct context {
    struct observer *observer;
    struct place *places; /* observer_flows() */
    context_more *more;   /* NULL: none */
    void (*release)(void *user);
    void *user; /* of both */
};

static void note_message(struct pkt *p, uint32_t msg, uint32_t packet, uint32_t packets, uint64_t bytes, bool whole)
{
    uint32_t have = whole ? NOTE_MSG_BYTES : 0;

    p->note.msg = msg;
    p->note.msg_packet = packet;
    p->note.msg_packets = packets;
    p->note.msg_bytes = bytes;
    if (packet)
        have |= packet <= packets ? NOTE_MSG | NOTE_MSG_PACKETS : NOTE_MSG;
    p->note.have |= have;
}

/* --- Requests --------------------------------------------------------------------------------- */

/* A message begins: number it; the RETH of its first packet states its size. */
static void message_begin(struct place *w, const struct pkt *p)
{
    w->msg++;
    w->packet = 1;
    w->first_len = p->payload_len;
    w->packets = 0;
    w->bytes = 0;
    if (p->have & H_RETH) {
        w->bytes = p->reth.dmalen;
        w->packets = p->op->flags & OPF_FIRST && p->payload_len ? psn_span(w->bytes, p->payload_len) : 1;
    }
    w->in_message = p->op->flags & OPF_FIRST;
}

/* Whether the packet may be one of the next message, as `skipped` packets before it were not seen: the end of the
 * current one, and the beginning of that. Of one packet that is missing between them, none was either. */
static bool is_of_next(const struct place *w, uint32_t skipped)
{
    return w->packets ? w->packet + skipped >= w->packets : skipped > 1;
}

/* The next packet of the current message; `skipped` packets before it were not seen. */
static void message_continue(struct place *w, const struct pkt *p, uint32_t skipped)
{
    if (!w->in_message || is_of_next(w, skipped)) {
        w->msg++; /* its beginning was not seen */
        w->packet = 0;
        w->packets = 0;
        w->bytes = 0;
        w->in_message = true;
        w->first_len = 0;
    } else if (w->packet) {
        w->packet += skipped + 1;
    }
    if (p->op->flags & OPF_END) {
        w->in_message = false;
        w->packets = w->packet;
        if (!w->bytes && w->first_len)
            w->bytes = (uint64_t)(w->packet - 1) * w->first_len + p->payload_len;
    }
}

/* The original READ or atomic whose responses take `psn`: a READ retry may request only the rest of them. */
static const struct read_req *original(struct req_dir *h, uint32_t psn)
{
    const struct read_req *a = req_dir_read(h, psn, 0), *before;

    for (unsigned n = 1; a && a->again && n < RETRIES && (before = req_dir_read(h, psn, n)); n++)
        a = before;
    return a;
}

/* A request not seen before that follows all earlier ones. */
static void note_new(struct place *w, struct pkt *p, struct sent *s)
{
    uint32_t psn = p->bth.psn, flags = p->op->flags;

    if (flags & OPF_START)
        message_begin(w, p);
    else
        message_continue(w, p, (psn - w->next) & PSN_MASK);
    if (flags & OPF_ONLY && !(p->have & (H_RETH | H_ATOMICETH)))
        w->bytes = p->payload_len;
    note_message(p, w->msg, w->packet, flags & OPF_ONLY ? 1 : w->packets, w->bytes, w->bytes || flags & OPF_ONLY);
    s->note_msg = w->msg;
    s->note_packet = (uint16_t)w->packet;
    if (!w->have_acked) { /* the first request of the flow */
        w->acked = psn_prev(psn);
        w->have_acked = true;
    }
}

/* A READ retry that requests the rest of a READ belongs to the message of the original READ. */
static void note_rest(struct pkt *p, struct req_dir *h, struct sent *s)
{
    const struct read_req *a = original(h, p->bth.psn);
    const struct sent *whole = a ? req_dir_sent(h, a->psn) : NULL;

    if (!whole || whole == s || !whole->note_packet)
        return;
    s->note_msg = whole->note_msg;
    s->note_packet = whole->note_packet;
    note_message(p, s->note_msg, s->note_packet, 1, a->len, true);
}

/* A request seen before: its message and position are those of its first copy. */
static void note_again(const struct place *w, struct pkt *p, struct req_dir *h, struct sent *s)
{
    unsigned packets = p->op->flags & OPF_ONLY ? 1 : s->note_msg == w->msg ? w->packets : 0;

    if (!s->note_packet && p->op->flags & OPF_READ_REQ)
        note_rest(p, h, s);
    else
        note_message(p, s->note_msg, s->note_packet, packets, w->bytes, s->note_msg == w->msg && w->bytes);
}

/* A request not seen before that comes after later PSNs: it was reordered, or its first copy was lost before the tap.
 * It belongs to the message of the packet with the PSN before it. */
static void note_late(const struct place *w, struct pkt *p, struct req_dir *h, struct sent *s)
{
    const struct sent *before = p->op->flags & OPF_START ? NULL : req_dir_sent(h, psn_prev(p->bth.psn));

    if (before && before->note_packet) {
        s->note_msg = before->note_msg;
        s->note_packet = (uint16_t)(before->note_packet + 1);
    }
    note_again(w, p, h, s);
}

static void note_request(struct place *w, struct pkt *p, const struct event *e)
{
    struct sent *s = req_dir_sent(e->h, p->bth.psn);

    if (!s)
        return;
    if (LIKELY(e->as == SEEN_NEW || e->as == SEEN_GAP || e->as == SEEN_RESTART)) {
        if (UNLIKELY(e->as == SEEN_RESTART))
            w->in_message = w->have_acked = false;
        note_new(w, p, s);
        w->next = e->h->next;
    } else if (e->as == SEEN_LATE) {
        note_late(w, p, e->h, s);
    } else {
        p->note.have |= e->as == SEEN_COPY ? NOTE_TWICE : NOTE_RETRANS;
        p->note.retransmission = e->as != SEEN_COPY;
        note_again(w, p, e->h, s);
    }
}

/* --- Responses -------------------------------------------------------------------------------- */

static void advance_acked(struct place *w, uint32_t psn)
{
    if (!w->have_acked || psn_diff(psn, w->acked) > 0) {
        w->acked = psn;
        w->have_acked = true;
    }
}

/* A READ or atomic response: note its request, and its position among the responses to the original request. */
static void note_answer(struct place *w, struct pkt *p, const struct event *e)
{
    const struct read_req *answers = req_dir_answered(e->h, p), *a;
    const struct sent *s;

    if (!answers)
        return;
    if (p->op->flags & OPF_END)
        advance_acked(w, p->bth.psn);
    s = req_dir_sent(e->h, answers->psn);
    if (s && s->last > answers->frame && req_dir_read(e->h, p->bth.psn, 0) == answers)
        p->note.request_frame = s->last; /* it was captured twice */
    else
        p->note.request_frame = answers->frame;
    p->note.have |= p->note.request_frame ? NOTE_REQUEST : 0;
    a = answers->again ? original(e->h, p->bth.psn) : answers;
    s = req_dir_sent(e->h, a->psn);
    if (s && s->note_packet)
        note_message(p, s->note_msg, ((p->bth.psn - a->psn) & PSN_MASK) + 1, e->h->pmtu || a->len <= 256 ? a->span : 0,
                     a->len, a->len || a->opcode == OP_READ_REQUEST);
}

/* Note the lowest and the highest frame of the latest copies of the requests from `first` to `last`. Without
 * retransmissions and reordering they are those of `first` and `last`. */
static void answered_frames(struct req_dir *h, uint32_t first, const struct sent *last, struct pkt_note *n)
{
    const struct sent *from = psn_diff(last->psn, first) > 0 ? req_dir_sent(h, first) : NULL;

    n->acked_first = n->acked_last = last->last;
    if (!from || !from->last)
        return;
    if (LIKELY(!h->again && !h->late)) {
        n->acked_first = from->last;
        return;
    }
    for (uint32_t psn = first; psn != last->psn; psn = psn_add(psn, 1)) {
        const struct sent *s = req_dir_sent(h, psn);
        if (!s || !s->last)
            continue;
        if (s->last < n->acked_first)
            n->acked_first = s->last;
        if (s->last > n->acked_last)
            n->acked_last = s->last;
    }
}

/* An ACK acknowledges all frames from the first one not acknowledged before; a NAK refers to one frame. */
static void note_acked(struct place *w, struct pkt *p, const struct event *e)
{
    uint32_t psn = p->bth.psn;
    const struct sent *last = req_dir_sent(e->h, psn);
    bool ack = response_type(p) == AETH_ACK;
    uint32_t first = ack && w->have_acked ? psn_add(w->acked, 1) : psn;

    if (ack)
        advance_acked(w, psn);
    if (!last || !last->last)
        return;
    p->note.have |= NOTE_ACKED;
    answered_frames(e->h, first, last, &p->note);
}

/* --- Packets ---------------------------------------------------------------------------------- */

/* Note what is known of the packet's flow. `h`: evidence about the requests of its connection that the packet belongs
 * to; NULL: none. */
static void note_flow(struct pkt *p, const struct flow *f, const struct req_dir *h)
{
    uint32_t have = f->conn ? NOTE_CONN : 0;

    p->note.conn = f->conn;
    p->note.upper = f->upper;
    if (f->upper)
        have |= NOTE_UPPER;
    if (UNLIKELY(f->upper == ulp_ipoib_cm) && p->have & H_BTH && p->op->flags & OPF_SEND && p->op->flags & OPF_START)
        ipoib_layers(p, p->op->flags & OPF_FIRST);
    if (f->have_sqpn) {
        p->note.src_qpn = f->sqpn;
        p->note.pmtu = f->pmtu || !h ? f->pmtu : h->pmtu;
        have |= NOTE_SRC_QPN | (p->note.pmtu ? NOTE_PMTU : 0);
    }
    p->note.have |= have;
}

/* Datagrams have no connection; the DETH names their sender. */
static void note_datagram(struct pkt *p)
{
    if (p->have & H_DETH && p->flags & PKT_IPOIB) {
        p->note.have |= NOTE_UPPER;
        p->note.upper = "IPoIB";
    }
    if (p->have & H_DETH) {
        p->note.have |= NOTE_SRC_QPN;
        p->note.src_qpn = p->deth.srcqp;
    }
}

/* The place of a flow is given to another one. */
static void forget(void *user, uint32_t flow, bool restart)
{
    (void)restart;
    ((struct context *)user)->places[flow] = (struct place){0};
}

static void on_fetch(void *user, uint32_t flow)
{
    fetch_to_write(&((struct context *)user)->places[flow], sizeof(struct place));
}

/* --- The context ------------------------------------------------------------------------------ */

struct context *context_new(uint64_t memory)
{
    struct context *c = calloc(1, sizeof *c);
    const struct observer_sub s = {.user = c, .over = forget, .fetch = on_fetch};

    if (!c)
        return NULL;
    c->observer = observer_new(&(struct observer_opts){.memory = memory, .per_flow = ROOM_JUDGED});
    c->places = c->observer ? zeros_new(observer_flows(c->observer), sizeof *c->places) : NULL;
    if (!c->places || !observer_subscribe(c->observer, &s)) {
        context_free(c);
        return NULL;
    }
    return c;
}

void context_free(struct context *c)
{
    if (!c)
        return;
    if (c->release)
        c->release(c->user);
    if (c->observer)
        zeros_free(c->places, observer_flows(c->observer), sizeof *c->places);
    observer_free(c->observer);
    free(c);
}

struct conn_table *context_conns(struct context *c)
{
    return observer_conns(c->observer);
}

void context_fetch(struct context *c)
{
    if (c)
        observer_fetch(c->observer);
}

struct observer *context_observer(struct context *c)
{
    return c->observer;
}

void context_extend(struct context *c, context_more *more, void (*release)(void *user), void *user)
{
    c->more = more;
    c->release = release;
    c->user = user;
}

/* A request, or a response to one. */
static void note_event(struct context *c, struct pkt *p, const struct event *e)
{
    struct place *w = &c->places[e->flow];

    observer_take(c->observer, e);
    if (e->kind == EVENT_REQUEST)
        note_request(w, p, e);
    else if (p->op->flags & OPF_ACK)
        note_acked(w, p, e);
    else
        note_answer(w, p, e);
}

void context_note(struct context *c, struct pkt *p)
{
    struct event e;

    observer_see(c->observer, p, &e);
    if (LIKELY(e.own != FLOW_NONE))
        note_flow(p, conn_flow_at(context_conns(c), e.own), e.h);
    else if (p->have & H_BTH && !(p->flags & PKT_MALFORMED))
        note_datagram(p);
    if (UNLIKELY(!(p->have & H_BTH)))
        iwarp_show(observer_iwarp(c->observer), p);
    if (e.h) /* else no request, and no response to one; a bad ICRC: its receiver drops it */
        note_event(c, p, &e);
    if (c->more)
        c->more(c->user, p, &e);
}
