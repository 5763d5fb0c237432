/* layer 2b (ulp): what decode shows of upper protocols: the note of a packet, private data of CM. */
#include "src/ulp/ulp_impl.h"

#include "dissect/link/link.h"
#include "dissect/mad/cm.h"
#include "dissect/ulp/service.h"

#include <stdlib.h>

/* --- Packets ---------------------------------------------------------------------------------- */

/* "NVMe Write cid 0x3": the protocol's name up to the slash, and the command; `whole`: with its arguments. */
static void put_command(struct buf *b, const struct ulp_command *c, bool whole)
{
    const char *name = c->proto->name, *end = strchr(name, '/');
    size_t at;

    buf_mem(b, name, end ? (size_t)(end - name) : strlen(name));
    buf_char(b, ' ');
    if (whole) {
        c->proto->command_text(b, c);
        return;
    }
    c->proto->name_text(b, c);
    buf_char(b, ' ');
    at = b->len;
    c->proto->key_text(b, c);
    b->len -= b->len == at; /* it has none */
}

/* The bytes of a data packet: `len` from `from` on. */
static void put_data(struct buf *b, const struct ulp_command *c, uint64_t from, uint32_t len)
{
    uint64_t requested = c->requested[ULP_TO_CLIENT] + c->requested[ULP_FROM_CLIENT];

    buf_printf(b, " data %llu-%llu", (unsigned long long)from, (unsigned long long)(from + len - (len > 0)));
    if (requested && ulp_asked_known(c, ULP_TO_CLIENT) && ulp_asked_known(c, ULP_FROM_CLIENT))
        buf_printf(b, " of %llu", (unsigned long long)requested);
}

/* What of a request this packet refuses. */
static void put_refusal(struct buf *b, const struct pkt *p, const struct ulp_refusal *r)
{
    if (r->frame != p->frame->number)
        return;
    buf_puts(b, ", ");
    ulp_refusal_text(b, r);
}

/* The command, and what the packet is to it. */
static void put_note(struct buf *b, const struct pkt *p, const struct ulp_command *c, const struct event *e,
                     enum ulp_side side)
{
    bool send = e->kind == EVENT_REQUEST && p->op->flags & OPF_SEND, first = c->frame == p->frame->number,
         last = c->response == p->frame->number, /* of a request that is a WRITE */
        call = (send || (first && !last)) && c->by_server == (side == ULP_SERVER);

    put_command(b, c, call);
    if (p->note.have & NOTE_ULP_HOLE)
        buf_printf(b, " (packets missing from byte %llu)", (unsigned long long)p->note.ulp_missing);
    if (p->note.have & NOTE_ULP_DATA) {
        put_data(b, c, p->note.ulp_offset, p->payload_len);
    } else if (e->kind == EVENT_RESPONSE) {
        buf_puts(b, " refused");
        put_refusal(b, p, &c->refusal);
    } else if (p->op->flags & OPF_READ_REQ) {
        buf_puts(b, " data requested");
    } else if (send && !first && !last && p->have & H_IETH) {
        buf_puts(b, " memory invalidated");
    } else if ((send || last) && !call && (last || c->ended != ULP_OPEN)) {
        buf_puts(b, ": ");
        ulp_status_text(b, c);
    }
}

static uint32_t queue_of(const struct ulp_conn *c)
{
    return c->proto->queue ? c->proto->queue(c) : 0;
}

/* The text so far is the note of a packet that belongs to no command. */
static void note_alone(struct ulp *u, struct pkt *p, uint32_t queue)
{
    struct pkt_note *n = &p->note;

    n->ulp = buf_str(&u->text);
    n->ulp_command = n->ulp_command_in = 0;
    n->ulp_queue = queue;
    n->have |= NOTE_ULP;
}

/* A message that lacks packets, of which nothing is made yet. */
static void note_part(struct ulp_conn *c, struct pkt *p)
{
    struct buf *b = &c->ulp->text;

    b->len = 0;
    buf_printf(b, "%s message (packets missing from byte %llu)", p->note.upper,
               (unsigned long long)p->note.ulp_missing);
    note_alone(c->ulp, p, queue_of(c));
}

static bool is_part(const struct pkt *p)
{
    return p->have & H_BTH && p->op->flags & OPF_SEND && !(p->op->flags & OPF_END);
}

/* What is said of a packet that belongs to no command so far; NULL: nothing. */
static const char *unexplained(const struct ulp *u, const struct pkt *p)
{
    bool refused = u->refused.frame == p->frame->number;

    if (p->note.have & NOTE_ULP)
        return refused ? " refused" : NULL;
    if (u->zeroed == p->frame->number)
        return ": payload zeroed";
    if (refused)
        return " refused";
    if (u->said_in == p->frame->number)
        return u->said;
    return is_part(p) ? ": part of a message" : NULL;
}

/* Of a message whose bytes were replaced by zeros, or that has no command; a refusal of memory that none offered. */
static void note_unexplained(struct ulp_conn *c, struct pkt *p)
{
    struct ulp *u = c->ulp;
    const char *text = unexplained(u, p);
    bool more = p->note.have & NOTE_ULP;

    if (!text)
        return;
    if (more)
        buf_puts(&u->text, "; ");
    else
        u->text.len = 0;
    buf_puts(&u->text, p->note.upper);
    buf_puts(&u->text, text);
    if (u->refused.frame == p->frame->number)
        put_refusal(&u->text, p, &u->refused);
    if (more)
        p->note.ulp = buf_str(&u->text);
    else
        note_alone(u, p, queue_of(c));
}

static void note_proto(const struct ulp_proto *proto, enum ulp_how how, struct pkt_note *n)
{
    n->upper = proto->name;
    n->ulp_how = ulp_how_str(how);
    n->have |= NOTE_UPPER | NOTE_ULP_HOW;
}

/* The text so far is the note of a packet that belongs to command `d`. */
static void note_command(const struct ulp_conn *c, struct pkt *p, const struct ulp_command *d)
{
    struct pkt_note *n = &p->note;
    bool done = d->response == p->frame->number;

    n->ulp = buf_str(&c->ulp->text);
    n->ulp_command = d->number;
    n->ulp_command_in = d->frame;
    n->ulp_queue = queue_of(c);
    n->ulp_latency = done ? d->end - d->start : 0;
    n->have |= NOTE_ULP | (done ? NOTE_ULP_DONE : 0);
}

/* Further commands of the same message. */
static void put_behind(struct ulp *u, const struct pkt *p)
{
    if (u->behind_in == p->frame->number)
        buf_puts(&u->text, u->behind);
}

void ulp_note(struct ulp_conn *c, struct pkt *p, const struct command *d, const struct event *e)
{
    struct pkt_note *n = &p->note;

    note_proto(c->proto, (enum ulp_how)c->how, n);
    if (!d && n->have & NOTE_ULP_HOLE)
        note_part(c, p);
    if (!d) {
        note_unexplained(c, p);
        return;
    }
    c->ulp->text.len = 0;
    put_note(&c->ulp->text, p, &d->c, e, (enum ulp_side)c->ulp->flows[e->flow]->side);
    put_behind(c->ulp, p);
    note_command(c, p, &d->c);
}

void ulp_note_lone(struct ulp *u, struct pkt *p, uint32_t flow)
{
    enum ulp_how how;
    const struct ulp_proto *proto = flow == FLOW_NONE ? NULL : ulp_carried(u, flow, &how);

    if (!proto)
        return;
    note_proto(proto, how, &p->note);
    u->text.len = 0;
    buf_printf(&u->text, "%s READ response, its request was not seen", proto->name);
    note_alone(u, p, 0);
}

void ulp_note_stream(struct ulp_conn *c, struct pkt *p, const struct command *d, enum ulp_side side, bool send)
{
    struct pkt_note *n = &p->note;
    struct buf *b = &c->ulp->text;

    note_proto(c->proto, (enum ulp_how)c->how, n);
    if (!d) {
        note_unexplained(c, p);
        return;
    }
    if (n->have & NOTE_ULP)
        buf_puts(b, "; ");
    else
        b->len = 0;
    put_command(b, &d->c, send && d->c.by_server == (side == ULP_SERVER));
    if (send && d->c.by_server != (side == ULP_SERVER)) {
        buf_puts(b, ": ");
        ulp_status_text(b, &d->c);
    } else if (d->c.refusal.frame == p->frame->number) {
        buf_puts(b, " refused");
        put_refusal(b, p, &d->c.refusal);
    } else if (c->ulp->stream_data) {
        put_data(b, &d->c, c->ulp->stream_at, c->ulp->stream_len);
    } else if (!send) {
        buf_puts(b, " data requested");
    }
    put_behind(c->ulp, p);
    note_command(c, p, &d->c);
}

/* --- Private data of CM ----------------------------------------------------------------------- */

#define REQS 64

/* A REQ whose REP or REJ is to be shown. */
struct known_req {
    bool used;
    const struct ulp_proto *proto; /* NULL: IP over InfiniBand in connected mode */
    struct conn_addr src, dst;
    uint32_t tap, id;
    uint32_t next; /* of the first one: the place of the next REQ */
};

bool ulp_note_init(struct ulp *u)
{
    u->reqs = calloc(REQS, sizeof *u->reqs);
    return u->reqs != NULL;
}

static void show_setup(struct ulp *u, const struct ulp_proto *proto, struct pkt *p, const struct cm_msg *m)
{
    const char *why = NULL;
    uint32_t at = p->payload_off + MAD_HDR_LEN + CM_BODY_LEN - cm_private_max(m->mad.attr_id),
             end = p->payload_off + min_u32(p->payload_cap, MAD_LEN);
    struct ulp_setup s = {.attr = m->mad.attr_id, .why = &why};

    if (m->mad.attr_id == CM_REQ && cm_service_is_ip(m->req.service_id))
        at += CM_IP_LEN;
    if (at >= end)
        return;
    s.body = (struct ulp_body){p->data + at, end - at, at, 0};
    if (!proto && m->mad.attr_id != CM_REJ)
        ulp_layer(p, &ipoib_cm_hdr, &s.body, 0, ipoib_cm_hdr.len);
    if (!proto || !proto->setup)
        return;
    proto->setup(p, &s);
    if (!why)
        return;
    u->text.len = 0;
    buf_printf(&u->text, "%s refused: %s", proto->name, why);
    note_alone(u, p, 0);
}

static void take_req(struct ulp *u, struct pkt *p, const struct cm_msg *m)
{
    uint32_t from = cm_service_is_ip(m->req.service_id) ? CM_IP_LEN : 0, there = cm_private_captured(m);
    struct ulp_named n = ulp_of_req(m->req.service_id, m->req.private_data + from, there > from ? there - from : 0);
    const struct ulp_proto *proto = n.name ? ulp_named(n.name, strlen(n.name)) : NULL;
    struct known_req *r = &u->reqs[u->reqs->next % REQS];
    uint32_t next = u->reqs->next + 1;
    bool ipoib = n.name == ulp_ipoib_cm;

    if (!proto && !ipoib)
        return;
    r->used = true;
    r->proto = proto;
    r->tap = conn_tap_of(p->frame);
    r->id = m->req.local_id;
    conn_addr_of(p, &r->src, &r->dst);
    u->reqs->next = next;
    if (n.fits || ipoib)
        show_setup(u, proto, p, m);
}

/* The REQ that a REP or REJ answers; NULL: none is known. */
static const struct known_req *req_of(const struct ulp *u, const struct pkt *p, uint32_t id)
{
    struct conn_addr src, dst;

    conn_addr_of(p, &src, &dst);
    for (unsigned i = 0; i < REQS; i++) {
        const struct known_req *r = &u->reqs[i];
        if (r->used && r->id == id && r->tap == conn_tap_of(p->frame) && conn_addr_eq(&r->src, &dst) &&
            conn_addr_eq(&r->dst, &src))
            return r;
    }
    return NULL;
}

void ulp_note_setup(struct ulp *u, struct pkt *p)
{
    const struct known_req *r = NULL;
    struct cm_msg m;

    if (p->icrc == CRC_BAD || !cm_msg_of(&m, p))
        return;
    if (m.mad.attr_id == CM_REQ)
        take_req(u, p, &m);
    else if (m.mad.attr_id == CM_REP)
        r = req_of(u, p, m.rep.remote_id);
    else if (m.mad.attr_id == CM_REJ && m.rej.reason == CM_REJ_CONSUMER_DEFINED)
        r = req_of(u, p, m.rej.remote_id);
    if (r)
        show_setup(u, r->proto, p, &m);
}
