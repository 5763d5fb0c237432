/* layer 3 (ladder): sequence diagrams: keep a short record of each packet, draw all when explain has its incidents. */
#include "src/ladder/ladder.h"

#include "dissect/mad/cm.h"

#include <stdio.h>
#include <stdlib.h>

#define CM_RECENT    64 /* latest CM messages in which a repeated one is looked up */
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
    uint32_t id, peer_id; /* of a CM message: communication ids of its sender and its receiver; 0: none */
    uint32_t qpn, to_qpn; /* likewise: queue pairs that it names, 0: none */
    const char *what;     /* what explain says about it, or NULL */
};

/* The communication ids of an exchange of CM messages: of the end on the left, and of the other; 0: not known. */
struct cm_ids {
    uint32_t id[2];
};

struct ladder {
    struct observer *observer;
    struct explainer *explain;
    struct rung *rungs;
    uint32_t n, cap, max;
    uint64_t left_out;
    uint32_t conn;
    uint32_t cm[CM_RECENT], cm_at;         /* latest rungs of connection management */
    struct cm_ids exchanges[CM_EXCHANGES]; /* of the connection drawn */
    uint32_t n_exchanges;
};

void ladder_free(struct ladder *l)
{
    if (!l)
        return;
    explain_free(l->explain);
    free(l->rungs);
    free(l);
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

/* Whether the packet is a request that was seen before; one that is damaged, for all that can be read of it. */
static bool is_again(struct ladder *l, const struct event *e)
{
    struct req_dir *h =
        e->own == FLOW_NONE || !(e->p->op->flags & OPF_REQUEST) ? NULL : observer_req_dir(l->observer, e->own);

    if (e->kind != EVENT_BAD_ICRC)
        return e->kind == EVENT_REQUEST && e->as == SEEN_AGAIN;
    return h && h->have_next && req_dir_classify(h, e->p) == SEEN_AGAIN;
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
    return a->tap == b->tap && conn_addr_eq(&a->src, &b->src) && conn_addr_eq(&a->dst, &b->dst);
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

static void on_event(void *user, const struct event *e)
{
    struct ladder *l = user;
    const struct pkt *p = e->p;
    struct cm_msg m;
    struct rung *r;

    if (!(p->have & H_BTH) || !p->op->name || p->flags & PKT_MALFORMED)
        return;
    if (p->op->ext & H_DETH && !(p->have & H_MAD && cm_msg_of(&m, p)))
        return;
    r = rung_new(l);
    if (!r)
        return;
    *r = (struct rung){.ts = p->frame->ts,
                       .frame = frame_u32(p),
                       .psn = p->bth.psn,
                       .tap = conn_tap_of(p->frame),
                       .len = (uint16_t)p->payload_len,
                       .opcode = p->bth.opcode,
                       .again = is_again(l, e),
                       .bad = p->icrc == CRC_BAD,
                       .aeth = p->have & H_AETH};
    conn_addr_of(p, &r->src, &r->dst);
    r->syndrome = r->aeth ? p->aeth.syndrome : 0;
    r->flow = e->own;
    r->dqpn = p->bth.dqpn;
    if (p->op->ext & H_DETH) {
        cm_fill(r, &m);
        r->again = cm_is_again(l, r);
    }
}

struct ladder *ladder_new(struct observer *o, uint32_t conn, uint32_t rows)
{
    struct ladder *l = calloc(1, sizeof *l);
    const struct observer_sub s = {.user = l, .before = on_event};

    if (!l)
        return NULL;
    l->observer = o;
    l->explain = explain_new(o);
    l->conn = conn;
    l->max = rows;
    if (!l->explain || !observer_subscribe(o, &s)) {
        ladder_free(l);
        return NULL;
    }
    return l;
}

/* --- Drawing ---------------------------------------------------------------------------------- */

/* The connection to be drawn when none was named. */
static uint32_t choose(struct ladder *l)
{
    for (size_t i = 0; i < explain_n(l->explain); i++)
        if (explain_at(l->explain, i)->conn)
            return explain_at(l->explain, i)->conn;
    for (uint32_t i = 0; i < l->n; i++)
        if (l->rungs[i].flow != FLOW_NONE)
            return conn_flow_at(observer_conns(l->observer), l->rungs[i].flow)->conn;
    return 0;
}

/* Which end of the connection whose flow (from the left) is `c` sent a CM message: 0 left, 1 right; 2: neither. */
static unsigned end_of(const struct rung *r, const struct flow *c)
{
    if (r->tap != c->tap)
        return 2;
    if (conn_addr_eq(&r->src, &c->src) && conn_addr_eq(&r->dst, &c->dst))
        return 0;
    return conn_addr_eq(&r->src, &c->dst) && conn_addr_eq(&r->dst, &c->src) ? 1 : 2;
}

/* Whether a message from end `end` names a queue pair of the connection. */
static bool names_qp(const struct rung *r, const struct flow *c, unsigned end)
{
    const uint32_t qpn[2] = {c->have_sqpn ? c->sqpn : 0, c->dqpn};

    return (r->qpn && r->qpn == qpn[end]) || (r->to_qpn && r->to_qpn == qpn[!end]);
}

/* True if the ids of a message from end `end` are those of the exchange `e`. */
static bool ids_fit(const struct rung *r, const struct cm_ids *e, unsigned end)
{
    uint32_t own = e->id[end], other = e->id[!end];
    bool own_matches = r->id && r->id == own, other_matches = r->peer_id && r->peer_id == other;
    bool own_differs = r->id && own && r->id != own, other_differs = r->peer_id && other && r->peer_id != other;

    return (own_matches || other_matches) && !own_differs && !other_differs;
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
            flow = conn_flow_named(observer_conns(l->observer), r->tap, &r->src, &r->dst, r->dqpn);
        return flow != FLOW_NONE && conn_flow_at(observer_conns(l->observer), flow)->conn == c->conn;
    }
    for (uint32_t i = 0; end < 2 && i < l->n_exchanges; i++)
        if (ids_fit(r, &l->exchanges[i], end))
            return true;
    return false;
}

/* Seconds since the first rung. */
static double seconds_of(const struct ladder *l, const struct rung *r)
{
    return (double)(r->ts - l->rungs[0].ts) / 1e9;
}

/* The label of a rung; `numbers`: with its length or the time of its RNR NAK. */
static void label(struct buf *b, const struct rung *r, bool numbers)
{
    const struct opinfo *op = &opcode_table[r->opcode];
    unsigned type = aeth_type(r->syndrome);

    if (r->attr) {
        buf_printf(b, "CM %s%s", cm_attr_str(r->attr) ? cm_attr_str(r->attr) : "message", r->again ? " (again)" : "");
        return;
    }
    buf_printf(b, "%u ", r->psn);
    if ((r->opcode & 31) != OP_ACKNOWLEDGE || !r->aeth) {
        buf_puts(b, op->name ? op->name : "?");
        if (op->flags & OPF_PAYLOAD && numbers)
            buf_printf(b, " %u B", r->len);
    } else if (type == AETH_RNR) {
        buf_puts(b, numbers ? "RNR NAK " : "RNR NAK");
        if (numbers)
            buf_duration(b, rnr_time(aeth_value(r->syndrome)));
    } else if (type == AETH_NAK) {
        buf_printf(b, "NAK %s", nak_code_str(aeth_value(r->syndrome)));
    } else {
        buf_puts(b, "ACK");
    }
    if (r->again)
        buf_puts(b, " (again)");
}

/* Abbreviations for narrow diagrams, in the order in which they are applied. */
static const struct {
    const char *word, *by;
} shorter[] = {
    {" (again)", ""},
    {"RDMA ", ""},
    {" with Immediate", " Imm"},
    {" with Invalidate", " Inv"},
    {" sequence error", " seq"},
    {" error", ""},
    {"Acknowledge", "ACK"},
    {"COMPARE & SWAP", "CAS"},
    {"FETCH & ADD", "FAA"},
    {"READ Response", "Resp"},
    {" Request", ""},
    {"invalid", "inv"},
    {"remote", "rem"},
    {"access", "acc"},
    {"operational", "op"},
    {"Middle", "Mid"},
    {"WRITE", "WR"},
};

/* `by` instead of the first `word`, which is at least as long. */
static void replace(struct buf *b, const char *word, const char *by)
{
    char *at = strstr(buf_str(b), word);

    if (!at)
        return;
    memcpy(at, by, strlen(by));
    memmove(at + strlen(by), at + strlen(word), strlen(at + strlen(word)) + 1);
    b->len -= strlen(word) - strlen(by);
}

/* A label in `room` columns: words are shortened, then numbers left out, then it is cut. */
static void label_fit(struct buf *b, const struct rung *r, size_t room)
{
    for (int numbers = 1; numbers >= 0; numbers--) {
        b->len = 0;
        label(b, r, numbers);
        for (size_t i = 0; i < ARRAY_LEN(shorter) && b->len > room; i++)
            replace(b, shorter[i].word, shorter[i].by);
        if (b->len <= room)
            return;
    }
    b->len = room - 2;
    buf_puts(b, "..");
}

/* The worst incident whose first frame this is. */
static const char *fate(struct ladder *l, const struct rung *r)
{
    for (size_t i = 0; i < explain_n(l->explain); i++) {
        const struct incident *s = explain_at(l->explain, i);
        unsigned n = s->cause == CAUSE_DUPLICATE || s->cause == CAUSE_CE_WITHOUT_CNP ? s->n_frames : 1;
        for (unsigned k = 0; k < n && k < s->n_frames; k++)
            if (s->frames[k] != r->frame || s->files[k] != r->tap >> 16)
                continue;
            else if (s->place != PLACE_BEFORE)
                return cause_table[s->cause].name;
            else if ((s->cause == CAUSE_DUPLICATE || s->cause == CAUSE_BAD_ICRC || s->cause == CAUSE_REORDER))
                return cause_table[s->cause].name;
    }
    return NULL;
}

#define ARROW_MIN 40 /* least columns for arrows; with fewer, incidents get lines of their own */
#define BELOW_MIN 24 /* least columns for such a line: the longest name of a cause and "| " */

/* Columns of a diagram. */
struct columns {
    unsigned width;
    unsigned frame, seconds; /* widths of the numbers, each with a space after it */
    unsigned left;           /* both together */
    unsigned arrow;          /* with its ends */
    unsigned what;           /* width of the incident, with the space before it; 0: in a line of its own */
};

/* The columns that the rungs need, and those left for arrows: at LADDER_WIDTH_MIN still more than `|- .. >|`. */
static struct columns columns_of(const struct ladder *l, unsigned width)
{
    struct columns c = {.width = width, .frame = strlen("frame"), .seconds = strlen("seconds")};

    for (uint32_t i = 0; i < l->n; i++) {
        const struct rung *r = &l->rungs[i];
        c.frame = max_u32(c.frame, (unsigned)snprintf(NULL, 0, "%u", r->frame));
        c.seconds = max_u32(c.seconds, (unsigned)snprintf(NULL, 0, "%.6f", seconds_of(l, r)));
        c.what = r->what ? max_u32(c.what, (unsigned)strlen(r->what) + 1) : c.what;
    }
    c.left = c.frame + c.seconds + 2;
    if (c.left + ARROW_MIN + c.what > width)
        c.what = 0;
    c.arrow = width - c.left - c.what;
    return c;
}

/* A line below a rung, or several. */
static void below(const struct columns *c, const char *text, struct buf *b)
{
    unsigned indent = c->left + BELOW_MIN < c->width ? c->left : c->width - BELOW_MIN;
    struct buf lines = {0};

    buf_paragraph(&lines, text, 0, c->width - indent - 2);
    for (const char *s = buf_str(&lines); *s; s += strcspn(s, "\n") + 1) {
        buf_fill(b, ' ', indent);
        buf_printf(b, "| %.*s\n", (int)strcspn(s, "\n"), s);
    }
    buf_free(&lines);
}

static void arrow(struct buf *b, const struct rung *r, bool right, unsigned width)
{
    struct buf text = {0};
    char line = r->again ? '=' : '-';

    label_fit(&text, r, width - strlen("|-  >|"));
    buf_printf(b, "|%c", right ? line : '<');
    if (!right)
        buf_fill(b, line, width - text.len - strlen("|<  -|"));
    buf_printf(b, " %s ", buf_str(&text));
    if (right)
        buf_fill(b, line, width - text.len - strlen("|-  >|"));
    buf_printf(b, "%c|", right ? '>' : line);
    buf_free(&text);
}

/* The change of state of the queue pairs with this packet: "disconnected", ...; NULL: none. */
static const char *state_after(struct ladder *l, const struct rung *r)
{
    const struct req_dir *h = r->flow == FLOW_NONE ? NULL : observer_req_dir(l->observer, r->flow);

    if (r->attr)
        return r->attr == CM_RTU    ? "connected: both queue pairs are ready to send"
               : r->attr == CM_REJ  ? "refused, or given up: there is no connection"
               : r->attr == CM_DREP ? "disconnected"
                                    : NULL;
    if (r->aeth && aeth_type(r->syndrome) == AETH_NAK && aeth_value(r->syndrome) != NAK_PSN_SEQ &&
        aeth_value(r->syndrome) <= NAK_REMOTE_OPERATIONAL)
        return "the queue pair goes into the error state";
    for (size_t i = 0; h && r->frame == h->last_frame && i < explain_n(l->explain); i++)
        if (explain_at(l->explain, i)->flow == r->flow && explain_at(l->explain, i)->cause == CAUSE_RETRY_EXCEEDED)
            return "the retries are used up: the queue pair goes into the error state";
    return NULL;
}

static void rung_draw(struct ladder *l, const struct rung *r, const struct flow *f, const struct columns *c,
                      struct buf *b)
{
    const char *state = state_after(l, r);

    buf_printf(b, "%*u %*.6f ", (int)c->frame, r->frame, (int)c->seconds, seconds_of(l, r));
    arrow(b, r, conn_addr_eq(&r->src, &f->src), c->arrow);
    if (r->what && c->what)
        buf_printf(b, " %s", r->what);
    buf_char(b, '\n');
    if (r->what && !c->what)
        below(c, r->what, b);
    if (state)
        below(c, state, b);
}

/* The name of an end: "ADDRESS QP 0x12"; with `qpn` 0 the address alone. */
static void end_name(struct buf *b, const struct conn_addr *a, bool have_qpn, uint32_t qpn)
{
    conn_addr_put(b, a);
    if (have_qpn)
        buf_printf(b, " QP 0x%x", qpn);
}

/* A line of words that begin at column `from`, or further left where they need more room than there is up to `to`. */
static void head_line(struct buf *b, const char *s, size_t n, unsigned from, unsigned to)
{
    buf_fill(b, ' ', from + n <= to ? from : n <= to ? to - n : 0);
    buf_mem(b, s, n);
    buf_char(b, '\n');
}

/* The name of an end in a line of its own, or in two: address and queue pair. */
static void head_end(struct buf *b, const char *name, unsigned from, unsigned to)
{
    const char *qp = strstr(name, " QP ");

    if (strlen(name) <= to || !qp) {
        head_line(b, name, strlen(name), from, to);
        return;
    }
    head_line(b, name, (size_t)(qp - name), from, to);
    head_line(b, qp + 1, strlen(qp + 1), from, to);
}

/* The names of both ends above the ends of the arrows; in two lines if one is too short. */
static void head_draw(const struct flow *f, const struct columns *c, struct buf *b)
{
    unsigned to = c->left + c->arrow;
    struct buf left = {0}, right = {0};

    end_name(&left, &f->src, f->have_sqpn, f->sqpn);
    end_name(&right, &f->dst, true, f->dqpn);
    buf_printf(b, "connection %u, interface %u\n", f->conn, f->tap & 0xffff);
    if (left.len + 1 + right.len <= c->arrow) {
        buf_printf(b, "%*s %*s %s%*s\n", (int)c->frame, "frame", (int)c->seconds, "seconds", buf_str(&left),
                   (int)(c->arrow - left.len), buf_str(&right));
    } else {
        head_end(b, buf_str(&left), c->left, to);
        head_end(b, buf_str(&right), to, to);
        buf_printf(b, "%*s %*s |%*s\n", (int)c->frame, "frame", (int)c->seconds, "seconds", (int)c->arrow - 1, "|");
    }
    buf_free(&left);
    buf_free(&right);
}

/* The flow of the end that sent first: it stands on the left. */
static const struct flow *left_flow(struct ladder *l, uint32_t conn)
{
    for (uint32_t i = 0; i < l->n; i++)
        if (l->rungs[i].flow != FLOW_NONE && conn_flow_at(observer_conns(l->observer), l->rungs[i].flow)->conn == conn)
            return conn_flow_at(observer_conns(l->observer), l->rungs[i].flow);
    return NULL;
}

/* Keep the packets of the connection, as many as are to be drawn; returns how many are not. */
static uint64_t keep_own(struct ladder *l, const struct flow *c)
{
    uint64_t more = l->left_out;
    uint32_t n = 0;

    find_exchanges(l, c);
    for (uint32_t i = 0; i < l->n; i++) {
        if (!belongs(l, &l->rungs[i], c))
            continue;
        if (n < l->max)
            l->rungs[n++] = l->rungs[i];
        else
            more++;
    }
    l->n = n;
    return more;
}

void ladder_draw(struct ladder *l, unsigned width, struct buf *b)
{
    const struct flow *f;
    struct columns c;
    uint64_t more;
    char text[64];

    explain_end(l->explain);
    if (!l->conn)
        l->conn = choose(l);
    width = max_u32(width, LADDER_WIDTH_MIN);
    f = left_flow(l, l->conn);
    if (!f) {
        buf_paragraph(b, "There is no connection to draw in this capture.", 0, width);
        return;
    }
    more = keep_own(l, f);
    for (uint32_t i = 0; i < l->n; i++)
        l->rungs[i].what = l->rungs[i].bad ? cause_table[CAUSE_BAD_ICRC].name : fate(l, &l->rungs[i]);
    c = columns_of(l, width);
    head_draw(f, &c, b);
    for (uint32_t i = 0; i < l->n; i++)
        rung_draw(l, &l->rungs[i], f, &c, b);
    snprintf(text, sizeof text, "%llu further packets are not drawn", (unsigned long long)more);
    if (more)
        buf_paragraph(b, text, 0, width);
}
