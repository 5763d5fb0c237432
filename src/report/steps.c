/* layer 3b (report): the ladders: the frames of an incident, and the packets of its connection around them. */
#include "dissect/columns.h"
#include "src/report/report_impl.h"
#include "src/show/print.h"

#include <stdlib.h>

#define DETAILS_MAX 6000 /* bytes of the fields of a packet */

void ladders_choose(struct report *r, struct explainer *x)
{
    for (size_t i = 0; i < explain_n(x) && r->n_ladders < REPORT_LADDERS; i++) {
        const struct incident *s = explain_at(x, i);
        struct ladder_of *l;
        if (!explain_is_shown(s, r->o.conn) || !s->own)
            continue;
        if (!(l = calloc(1, sizeof *l))) {
            r->failed = true;
            return;
        }
        l->incident = s->number;
        l->conn = s->conn;
        l->tap = s->tap;
        l->cause = cause_table[s->cause].name;
        l->lost = explain_is_loss(s);
        l->file = s->files[0];
        l->left = s->src;
        l->right = s->dst;
        for (unsigned k = 0; k < s->own; k++)
            if (s->files[k] == l->file) {
                l->roles[l->n_frames] = s->roles[k];
                l->frames[l->n_frames++] = s->frames[k];
            }
        r->ladders[r->n_ladders++] = l;
    }
}

void ladders_free(struct report *r)
{
    for (unsigned i = 0; i < r->n_ladders; i++) {
        for (unsigned k = 0; k < LADDER_BEFORE; k++)
            free(r->ladders[i]->recent[k].data);
        buf_free(&r->ladders[i]->rows);
        free(r->ladders[i]);
    }
}

/* --- Steps ------------------------------------------------------------------------------------ */

static void put_details(const struct pkt *p, struct buf *b)
{
    const struct print_opts o = {.format = PRINT_TREE, .tree = true};
    struct buf text = {0};

    print_tree(&o, &text, p);
    buf_json(b, text.p, text.len < DETAILS_MAX ? text.len : DETAILS_MAX);
    b->err |= text.err;
    buf_free(&text);
}

/* Whether a packet passes between two hosts, in either direction. */
static bool is_between(const struct conn_addr *src, const struct conn_addr *dst, const struct conn_addr *a,
                       const struct conn_addr *b)
{
    return (conn_addr_eq(src, a) && conn_addr_eq(dst, b)) || (conn_addr_eq(src, b) && conn_addr_eq(dst, a));
}

/* Append a packet: time, frame, whether it goes to the right, role, whether it was retransmitted, text, fields. */
static void put_step(struct report *r, struct ladder_of *l, const struct pkt *p, const char *role, bool again)
{
    struct buf info = {0};
    struct conn_addr src, dst;

    if (l->n == LADDER_STEPS) {
        l->left_out++;
        return;
    }
    conn_addr_of(p, &src, &dst);
    if (!l->n && !is_between(&src, &dst, &l->left, &l->right)) {
        l->left = src;
        l->right = dst;
    }
    pkt_info(&info, p);
    buf_printf(&l->rows, "%s\n[%lld,%llu,%d,\"%s\",%d,", l->n++ ? "," : "", (long long)report_time(r, p->frame->ts),
               (unsigned long long)p->frame->number, conn_addr_eq(&src, &l->left), role, again);
    buf_json(&l->rows, info.p, info.len);
    buf_char(&l->rows, ',');
    put_details(p, &l->rows);
    buf_char(&l->rows, ']');
    r->failed |= info.err;
    buf_free(&info);
}

/* Keep a packet that may be one of those before a frame of the incident. */
static void remember(struct report *r, struct ladder_of *l, const struct pkt *p, bool again)
{
    struct step *s = &l->recent[l->n_recent++ % LADDER_BEFORE];

    if (s->cap < p->caplen) {
        uint8_t *more = realloc(s->data, p->caplen);
        if (!more) {
            r->failed = true;
            l->n_recent--;
            return;
        }
        s->data = more;
        s->cap = p->caplen;
    }
    s->frame = *p->frame;
    s->frame.comment = NULL;
    s->frame.options = NULL;
    s->frame.comment_len = s->frame.options_len = 0;
    s->frame.data = memcpy(s->data, p->data, p->caplen);
    s->since = p->since;
    s->again = again;
}

static void put_remembered(struct report *r, struct ladder_of *l)
{
    uint32_t n = min_u32(l->n_recent, LADDER_BEFORE);

    for (uint32_t i = l->n_recent - n; i != l->n_recent; i++) {
        const struct step *s = &l->recent[i % LADDER_BEFORE];
        struct pkt p;
        pkt_decode(&p, &s->frame, &r->o.decode);
        p.since = s->since;
        put_step(r, l, &p, "", s->again);
    }
    l->n_recent = 0;
}

/* The role of the packet in the incident; NULL: none. */
static const char *role_of(const struct ladder_of *l, const struct pkt *p)
{
    for (uint32_t i = 0; p->frame->file == l->file && i < l->n_frames; i++)
        if (l->frames[i] == p->frame->number)
            return frame_role_str((enum frame_role)l->roles[i]);
    return NULL;
}

static void ladder_packet(struct report *r, struct ladder_of *l, const struct pkt *p, const struct flow *f, bool again)
{
    const char *role = role_of(l, p);
    bool own = f && l->conn && f->tap == l->tap && report_number(r, f->conn) == l->conn;

    if (role) {
        put_remembered(r, l);
        put_step(r, l, p, role, again);
        l->after = LADDER_BEFORE;
    } else if (own && l->after) {
        put_step(r, l, p, "", again);
        l->after--;
    } else if (own) {
        remember(r, l, p, again);
    }
}

void ladders_packet(struct report *r, const struct event *e)
{
    struct conn_table *c = observer_conns(r->observer);
    const struct flow *f = e->own == FLOW_NONE ? NULL : conn_flow_at(c, e->own);
    bool again = e->kind == EVENT_REQUEST && e->as == SEEN_AGAIN;

    for (unsigned i = 0; i < r->n_ladders; i++)
        ladder_packet(r, r->ladders[i], e->p, f, again);
}

void ladders_json(struct report *r, struct buf *b)
{
    buf_puts(b, ",\n\"ladders\":[");
    for (unsigned i = 0; i < r->n_ladders; i++) {
        const struct ladder_of *l = r->ladders[i];
        buf_printf(b, "%s\n{\"incident\":%u,\"cause\":\"%s\",\"lost\":%s,\"connection\":%u,\"left_out\":%u,\"left\":",
                   i ? "," : "", l->incident, l->cause, l->lost ? "true" : "false", l->conn, l->left_out);
        conn_addr_json(b, &l->left);
        buf_puts(b, ",\"right\":");
        conn_addr_json(b, &l->right);
        buf_puts(b, ",\"steps\":[");
        buf_mem(b, l->rows.p, l->rows.len);
        buf_puts(b, "]}");
        b->err |= l->rows.err;
    }
    buf_char(b, ']');
}
