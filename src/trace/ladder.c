/* layer 3 (trace): sequence diagrams: packets are kept in short, and drawn when it is known what became of them. */
#include "src/trace/ladder.h"

#include "dissect/cm.h"
#include "src/trace/explain_impl.h"

#include <stdio.h>
#include <stdlib.h>

#define CM_RECENT 64    /* messages of connection management among which one that is sent again is looked for */
#define CM_EXCHANGES 64 /* pairs of communication ids that one connection may have */

/* A packet in short. */
struct rung {
    struct conn_addr src;
    ns_t ts;
    uint32_t frame, flow; /* flow of the packet itself; FLOW_NONE: connection management */
    uint32_t psn, tap;
    uint16_t len;
    uint8_t opcode, syndrome, attr; /* attr: of a CM message, else 0 */
    bool again, bad, aeth;
    struct conn_addr dst;
    uint32_t dqpn;
    uint32_t id, peer_id;  /* of a CM message: communication ids of its sender and its receiver; 0: none */
    uint32_t qpn, to_qpn;  /* likewise: queue pairs that it names, 0: none */
};

/* The communication ids of an exchange of CM messages: of the end on the left, and of the other; 0: not known. */
struct cm_ids {
    uint32_t id[2];
};

struct ladder {
    struct explainer *explain;
    struct rung *rungs;
    uint32_t n, cap, max;
    uint64_t left_out;
    uint32_t conn;
    uint32_t cm[CM_RECENT], cm_at; /* latest rungs of connection management */
    struct cm_ids exchanges[CM_EXCHANGES]; /* of the connection that is drawn */
    uint32_t n_exchanges;
};

struct ladder *ladder_new(uint32_t conn, uint32_t rows)
{
    struct ladder *l = calloc(1, sizeof *l);

    if (!l)
        return NULL;
    l->explain = explain_new();
    l->conn = conn;
    l->max = rows;
    if (!l->explain) {
        free(l);
        return NULL;
    }
    return l;
}

void ladder_free(struct ladder *l)
{
    if (!l)
        return;
    explain_free(l->explain);
    free(l->rungs);
    free(l);
}

struct conn_table *ladder_conns(struct ladder *l)
{
    return explain_conns(l->explain);
}

static struct rung *rung_new(struct ladder *l)
{
    if (l->n == LADDER_ROWS_MAX) {
        l->left_out++;
        return NULL;
    }
    if (l->n == l->cap) {
        uint32_t cap = l->cap ? l->cap * 2 : 256;
        struct rung *grown = realloc(l->rungs, cap * sizeof *grown);
        if (!grown)
            return NULL;
        l->rungs = grown;
        l->cap = cap;
    }
    return &l->rungs[l->n++];
}

/* Whether the packet is a request that was seen before. */
static bool is_again(struct ladder *l, const struct pkt *p, uint32_t flow)
{
    struct half *h = flow == FLOW_NONE || !(p->op->flags & OPF_REQUEST) ? NULL : watch_half(l->explain->watch, flow);

    return h && h->have_next && half_seen_as(h, p) == SEEN_AGAIN;
}

/* The ids and queue pairs that a CM message names. */
static void cm_fill(struct rung *r, const struct cm_msg *m)
{
    r->attr = (uint8_t)m->mad.attr_id;
    cm_msg_ids(m, &r->id, &r->peer_id);
    r->qpn = r->attr == CM_REQ ? m->req.qpn : r->attr == CM_REP ? m->rep.qpn : 0;
    r->to_qpn = r->attr == CM_DREQ ? m->dreq.remote_qpn : 0;
}

static bool same_ends(const struct rung *a, const struct rung *b)
{
    return a->tap == b->tap && memcmp(&a->src, &b->src, 16) == 0 && memcmp(&a->dst, &b->dst, 16) == 0;
}

/* Whether the same CM message was seen before; it is remembered. */
static bool cm_is_again(struct ladder *l, const struct rung *r)
{
    bool again = false;

    for (uint32_t i = 0; (r->id || r->peer_id) && i < l->cm_at && i < CM_RECENT && !again; i++) {
        const struct rung *o = &l->rungs[l->cm[i]];
        again = o->attr == r->attr && o->id == r->id && o->peer_id == r->peer_id && same_ends(o, r);
    }
    l->cm[l->cm_at++ % CM_RECENT] = (uint32_t)(r - l->rungs);
    return again;
}

void ladder_packet(struct ladder *l, const struct pkt *p)
{
    bool usable = p->have & H_BTH && p->op->name && !(p->flags & PKT_MALFORMED);
    uint32_t flow = usable && !(p->op->ext & H_DETH) ? conn_flow_find(ladder_conns(l), p) : FLOW_NONE;
    bool again = usable && is_again(l, p, flow);
    struct cm_msg m;
    struct rung *r;

    explain_packet(l->explain, p);
    if (!usable)
        return;
    if (p->op->ext & H_DETH && !(p->have & H_MAD && cm_msg_of(&m, p)))
        return;
    r = rung_new(l);
    if (!r)
        return;
    *r = (struct rung){.ts = p->frame->ts, .frame = frame_u32(p), .psn = p->bth.psn, .tap = conn_tap_of(p->frame), .len = (uint16_t)p->payload_len,
                       .opcode = p->bth.opcode, .again = again, .bad = p->icrc == CRC_BAD, .aeth = p->have & H_AETH};
    conn_addr_of(p, &r->src, &r->dst);
    r->syndrome = r->aeth ? p->aeth.syndrome : 0;
    r->flow = p->op->ext & H_DETH ? FLOW_NONE : conn_flow_find(ladder_conns(l), p);
    r->dqpn = p->bth.dqpn;
    if (p->op->ext & H_DETH) {
        cm_fill(r, &m);
        r->again = cm_is_again(l, r);
    }
}

/* --- Drawing ------------------------------------------------------------------------------------------------------------------------ */

/* The connection to be drawn when none was named. */
static uint32_t choose(struct ladder *l)
{
    for (size_t i = 0; i < explain_n(l->explain); i++)
        if (explain_at(l->explain, i)->conn)
            return explain_at(l->explain, i)->conn;
    for (uint32_t i = 0; i < l->n; i++)
        if (l->rungs[i].flow != FLOW_NONE)
            return conn_flow_at(ladder_conns(l), l->rungs[i].flow)->conn;
    return 0;
}

/* Which end of the connection whose flow (from the left) is `c` sent a CM message: 0 left, 1 right; 2: neither. */
static unsigned end_of(const struct rung *r, const struct flow *c)
{
    if (r->tap != c->tap)
        return 2;
    if (memcmp(&r->src, &c->src, 16) == 0 && memcmp(&r->dst, &c->dst, 16) == 0)
        return 0;
    return memcmp(&r->src, &c->dst, 16) == 0 && memcmp(&r->dst, &c->src, 16) == 0 ? 1 : 2;
}

/* Whether a message from end `end` names a queue pair of the connection. */
static bool names_qp(const struct rung *r, const struct flow *c, unsigned end)
{
    const uint32_t qpn[2] = {c->have_sqpn ? c->sqpn : 0, c->dqpn};

    return (r->qpn && r->qpn == qpn[end]) || (r->to_qpn && r->to_qpn == qpn[!end]);
}

/* Whether the ids of a message from end `end` are those of the exchange `e`. */
static bool ids_fit(const struct rung *r, const struct cm_ids *e, unsigned end)
{
    uint32_t own = e->id[end], other = e->id[!end];

    return ((r->id && r->id == own) || (r->peer_id && r->peer_id == other)) && (!r->id || !own || r->id == own) &&
           (!r->peer_id || !other || r->peer_id == other);
}

/* Find the exchanges that made and closed the connection: their messages name its queue pairs. */
static void find_exchanges(struct ladder *l, const struct flow *c)
{
    for (uint32_t i = 0; i < l->n; i++) {
        const struct rung *r = &l->rungs[i];
        unsigned end = r->attr ? end_of(r, c) : 2;
        uint32_t k = 0;
        if (end == 2 || !names_qp(r, c, end))
            continue;
        while (k < l->n_exchanges && !(l->exchanges[k].id[end] == r->id && l->exchanges[k].id[!end] == r->peer_id))
            k++;
        if (k == l->n_exchanges && k < CM_EXCHANGES) {
            l->exchanges[k].id[end] = r->id;
            l->exchanges[k].id[!end] = r->peer_id;
            l->n_exchanges++;
        }
    }
}

/* Whether a rung belongs to the connection whose flow (in either direction) is `c`. */
static bool belongs(struct ladder *l, const struct rung *r, const struct flow *c)
{
    unsigned end = end_of(r, c);
    uint32_t flow = r->flow;

    if (!r->attr) {
        if (flow == FLOW_NONE) /* a CNP or a damaged packet, before the others */
            flow = conn_flow_named(ladder_conns(l), r->tap, &r->src, &r->dst, r->dqpn);
        return flow != FLOW_NONE && conn_flow_at(ladder_conns(l), flow)->conn == c->conn;
    }
    for (uint32_t i = 0; end < 2 && i < l->n_exchanges; i++)
        if (ids_fit(r, &l->exchanges[i], end))
            return true;
    return false;
}

/* What a rung says. */
static void label(struct buf *b, const struct rung *r)
{
    unsigned type = r->syndrome >> 5 & 3;

    if (r->attr) {
        buf_printf(b, "CM %s%s", cm_attr_str(r->attr) ? cm_attr_str(r->attr) : "message", r->again ? " (again)" : "");
        return;
    }
    buf_printf(b, "%u ", r->psn);
    if ((r->opcode & 31) == OP_ACKNOWLEDGE && r->aeth) {
        if (type == AETH_RNR) {
            buf_puts(b, "RNR NAK ");
            buf_duration(b, rnr_time(r->syndrome & 31));
        } else if (type == AETH_NAK) {
            buf_printf(b, "NAK %s", nak_code_str(r->syndrome & 31));
        } else {
            buf_puts(b, "ACK");
        }
    } else {
        buf_puts(b, opcode_table[r->opcode].name ? opcode_table[r->opcode].name : "?");
        if (opcode_table[r->opcode].flags & OPF_PAYLOAD)
            buf_printf(b, " %u B", r->len);
    }
    if (r->again)
        buf_puts(b, " (again)");
}

/* What is known of a frame: the worst statement whose first frame it is. */
static const char *fate(struct ladder *l, const struct rung *r)
{
    for (size_t i = 0; i < explain_n(l->explain); i++) {
        const struct statement *s = explain_at(l->explain, i);
        unsigned n = s->cause == CAUSE_DUPLICATE || s->cause == CAUSE_CE_WITHOUT_CNP ? s->n_frames : 1;
        for (unsigned k = 0; k < n && k < s->n_frames; k++)
            if (s->frames[k] == r->frame && s->where != WHERE_BEFORE)
                return cause_table[s->cause].name;
            else if (s->frames[k] == r->frame && (s->cause == CAUSE_DUPLICATE || s->cause == CAUSE_BAD_ICRC || s->cause == CAUSE_REORDER))
                return cause_table[s->cause].name;
    }
    return NULL;
}

#define LEFT_COLUMNS 24  /* frame and time */
#define RIGHT_COLUMNS 22 /* what became of it */

static void arrow(struct buf *b, const struct rung *r, bool right, unsigned width)
{
    struct buf text = {0};
    char line = r->again ? '=' : '-';
    size_t n;

    buf_char(&text, ' ');
    label(&text, r);
    buf_char(&text, ' ');
    n = text.len < width - 4 ? text.len : width - 4;
    buf_char(b, '|');
    buf_char(b, right ? line : '<');
    if (!right)
        buf_fill(b, line, width - 2 - n);
    buf_mem(b, text.p, n);
    if (right)
        buf_fill(b, line, width - 2 - n);
    buf_char(b, right ? '>' : line);
    buf_char(b, '|');
    buf_free(&text);
}

/* What becomes of the queue pairs with this packet; NULL: nothing. */
static const char *state_behind(struct ladder *l, const struct rung *r)
{
    const struct half *h = r->flow == FLOW_NONE ? NULL : watch_half(l->explain->watch, r->flow);

    if (r->attr)
        return r->attr == CM_RTU    ? "connected: both queue pairs are ready to send"
               : r->attr == CM_REJ  ? "refused, or given up: there is no connection"
               : r->attr == CM_DREP ? "disconnected"
                                    : NULL;
    if (r->aeth && (r->syndrome >> 5 & 3) == AETH_NAK && (r->syndrome & 31) != NAK_PSN_SEQ && (r->syndrome & 31) <= NAK_REMOTE_OPERATIONAL)
        return "the queue pair goes into the error state";
    for (size_t i = 0; h && r->frame == h->last_frame && i < explain_n(l->explain); i++)
        if (explain_at(l->explain, i)->flow == r->flow && explain_at(l->explain, i)->cause == CAUSE_RETRY_EXCEEDED)
            return "the retries are used up: the queue pair goes into the error state";
    return NULL;
}

static void rung_draw(struct ladder *l, const struct rung *r, const struct flow *c, ns_t start, unsigned width, struct buf *b)
{
    const char *what = r->bad ? cause_table[CAUSE_BAD_ICRC].name : fate(l, r);

    buf_printf(b, "%8u %14.6f ", r->frame, (double)(r->ts - start) / 1e9);
    arrow(b, r, memcmp(&r->src, &c->src, 16) == 0, width - LEFT_COLUMNS - RIGHT_COLUMNS - 2);
    if (what)
        buf_printf(b, " %s", what);
    buf_char(b, '\n');
    what = state_behind(l, r);
    if (what) {
        buf_fill(b, ' ', LEFT_COLUMNS);
        buf_printf(b, "| %s\n", what);
    }
}

static void head_draw(struct ladder *l, const struct flow *c, unsigned width, struct buf *b)
{
    char left[96], right[96];
    size_t room = width - LEFT_COLUMNS - RIGHT_COLUMNS;

    (void)l;
    snprintf(left, sizeof left, "%s", addr_text(&c->src));
    if (c->have_sqpn)
        snprintf(left + strlen(left), sizeof left - strlen(left), " QP 0x%x", c->sqpn);
    snprintf(right, sizeof right, "%s QP 0x%x", addr_text(&c->dst), c->dqpn);
    buf_printf(b, "connection %u, interface %u\n%8s %14s ", c->conn, c->tap & 0xffff, "frame", "seconds");
    buf_puts(b, left);
    if (room > strlen(left) + strlen(right))
        buf_fill(b, ' ', room - strlen(left) - strlen(right));
    buf_printf(b, " %s\n", right);
}

/* The flow of the end that sent first: it stands on the left. */
static const struct flow *left_flow(struct ladder *l, uint32_t conn)
{
    for (uint32_t i = 0; i < l->n; i++)
        if (l->rungs[i].flow != FLOW_NONE && conn_flow_at(ladder_conns(l), l->rungs[i].flow)->conn == conn)
            return conn_flow_at(ladder_conns(l), l->rungs[i].flow);
    return NULL;
}

void ladder_draw(struct ladder *l, unsigned width, struct buf *b)
{
    const struct flow *c;
    ns_t start = 0;
    uint64_t drawn = 0, more = l->left_out;

    explain_end(l->explain);
    if (!l->conn)
        l->conn = choose(l);
    c = left_flow(l, l->conn);
    if (!c) {
        buf_puts(b, "There is no connection to draw in this capture.\n");
        return;
    }
    width = width < LADDER_WIDTH_MIN ? LADDER_WIDTH_MIN : width;
    head_draw(l, c, width, b);
    find_exchanges(l, c);
    for (uint32_t i = 0; i < l->n; i++) {
        if (!belongs(l, &l->rungs[i], c))
            continue;
        if (drawn == l->max) {
            more++;
            continue;
        }
        if (drawn++ == 0)
            start = l->rungs[i].ts;
        rung_draw(l, &l->rungs[i], c, start, width, b);
    }
    if (more)
        buf_printf(b, "%llu further packets are not drawn\n", (unsigned long long)more);
}
