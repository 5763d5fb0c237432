/* layer 3 (ladder): sequence diagrams: keep a short record of each packet that may be drawn. */
#include "dissect/mad/cm.h"
#include "dissect/pkt.h"
#include "src/conn/packet.h"
#include "src/ladder/ladder_impl.h"

#include <stdlib.h>

void ladder_free(struct ladder *l)
{
    if (!l)
        return;
    if (l->own) {
        explain_free(l->explain);
        taps_free(l->taps);
    }
    free(l->rungs);
    free(l->rows);
    free(l->lines);
    free(l->concerned);
    free(l);
}

void ladder_between(struct ladder *l, ns_t from, ns_t to)
{
    l->from = from;
    l->to = to;
}

void ladder_show(struct ladder *l, bool show)
{
    l->hidden = !show;
}

bool ladder_reached(const struct ladder *l)
{
    return !l->o.around || l->reached;
}

/* Drop the older half of the packets before the frame `around`. */
static void drop_older(struct ladder *l)
{
    uint32_t half = l->n / 2;

    memmove(l->rungs, l->rungs + half, (l->n - half) * sizeof *l->rungs);
    l->n -= half;
    l->dropped += half;
}

static void rung_keep(struct ladder *l, const struct rung *r)
{
    if (l->n == LADDER_ROWS_MAX && l->o.around && !l->reached)
        drop_older(l);
    if (l->n == LADDER_ROWS_MAX) {
        l->left_out++;
        return;
    }
    if (l->n == l->cap) {
        uint32_t cap = l->cap ? l->cap * 2 : 256;
        struct rung *grown = realloc(l->rungs, cap * sizeof *grown);
        if (!grown)
            return;
        l->rungs = grown;
        l->cap = cap;
    }
    uint32_t at = l->n++; /* that a TCP segment was sent again is known late */
    while (at > 0 && r->later && l->rungs[at - 1].ts > r->ts)
        at--;
    memmove(l->rungs + at + 1, l->rungs + at, (l->n - 1 - at) * sizeof *l->rungs);
    l->rungs[at] = *r;
}

/* True if the packet is a request seen before; of a packet with a bad ICRC, as far as its headers can be trusted. */
static bool is_again(struct observer *o, const struct event *e)
{
    struct req_dir *h = e->own == FLOW_NONE || !(e->p->op->flags & OPF_REQUEST) ? NULL : observer_req_dir(o, e->own);

    if (e->kind != EVENT_BAD_ICRC)
        return e->kind == EVENT_REQUEST && e->as == SEEN_AGAIN;
    return h && h->have_next && req_dir_classify(h, e->p) == SEEN_AGAIN;
}

/* The communication ids and queue pairs in a CM message. */
static void cm_fill(struct rung *r, const struct cm_msg *m)
{
    r->attr = (uint8_t)m->mad.attr_id;
    cm_msg_ids(m, &r->id, &r->peer_id);
    r->qpn = r->attr == CM_REQ ? m->req.qpn : r->attr == CM_REP ? cm_rep_qpn(&m->rep) : 0;
    r->to_qpn = r->attr == CM_DREQ ? m->dreq.remote_qpn : 0;
}

static bool same_ends(const struct rung *a, const struct rung *b)
{
    return a->tap == b->tap && conn_addr_eq(&a->src, &b->src) && conn_addr_eq(&a->dst, &b->dst);
}

/* True if the same CM message was seen before; notes it. */
static bool cm_is_again(struct ladder *l, const struct rung *r)
{
    bool again = false;

    for (uint32_t i = 0; (r->id || r->peer_id) && i < l->cm_at && i < CM_RECENT && !again; i++) {
        const struct rung *o = &l->cm[i];
        again = o->attr == r->attr && o->id == r->id && o->peer_id == r->peer_id && same_ends(o, r);
    }
    l->cm[l->cm_at++ % CM_RECENT] = *r;
    return again;
}

static void rung_fill(const struct pkt *p, const struct ladder_seen *s, struct rung *r)
{
    *r = (struct rung){.ts = p->frame->ts,
                       .frame = frame_u32(p),
                       .psn = p->bth.psn,
                       .tap = conn_tap_of(p->frame),
                       .len = (uint16_t)p->payload_len,
                       .ip_id = frame_ip_id(p),
                       .icrc = icrc_of(p),
                       .opcode = p->bth.opcode,
                       .again = s->again,
                       .bad = p->icrc == CRC_BAD,
                       .aeth = p->have & H_AETH,
                       .flow = s->flow,
                       .dqpn = p->bth.dqpn,
                       .missing = s->missing};
    conn_addr_of(p, &r->src, &r->dst);
    r->syndrome = r->aeth ? p->aeth.syndrome : 0;
}

/* True if a packet does not run between the hosts asked for; which they are is known from the first packet of the
 * connection on. */
static bool is_between_others(struct ladder *l, const struct rung *r, const struct flow *f)
{
    if (!l->have_hosts && f && f->conn == l->o.conn) {
        l->have_hosts = true;
        l->host[0] = f->src;
        l->host[1] = f->dst;
    }
    for (unsigned k = 0; l->have_hosts && k < 2; k++)
        if (conn_addr_eq(&r->src, &l->host[k]) && conn_addr_eq(&r->dst, &l->host[!k]))
            return false;
    return l->have_hosts;
}

/* True if the packet is known not to belong to the connection asked for. */
static bool is_other(struct ladder *l, const struct rung *r)
{
    const struct flow *f = r->flow == FLOW_NONE ? NULL : conn_flow_at(observer_conns(l->observer), r->flow);

    if (r->stream && !l->o.hosts)
        return l->o.conn && r->stream != l->o.conn;
    if (l->o.hosts)
        return l->o.conn && is_between_others(l, r, f);
    return l->o.conn && f && f->peer != FLOW_NONE && f->conn != l->o.conn;
}

void ladder_keep(struct ladder *l, const struct rung *r)
{
    if (!l->hidden && r->ts >= l->from && r->ts <= l->to && !is_other(l, r))
        rung_keep(l, r);
}

/* Notes about every frame: the first one, and the one asked for. */
static void note_frame(struct ladder *l, const struct pkt *p, uint32_t flow)
{
    const struct frame *f = p->frame;

    if (!l->have_origin) {
        l->have_origin = true;
        l->origin = f->ts;
    }
    if (l->o.around && f->number == l->o.around && f->file == l->o.around_file) {
        l->reached = true;
        l->around_ts = f->ts;
        l->around_flow = flow;
    }
}

static bool is_cm(const struct pkt *p, struct cm_msg *m)
{
    return p->have & H_MAD && cm_msg_of(m, p);
}

struct ladder_seen ladder_look(struct observer *o, const struct event *e)
{
    const struct pkt *p = e->p;
    struct ladder_seen s = {.flow = e->own};
    struct cm_msg m;

    if (!(p->have & H_BTH) || !p->op->name || p->flags & PKT_MALFORMED)
        return s;
    s.drawn = !(p->op->ext & H_DETH) || is_cm(p, &m);
    s.again = s.drawn && is_again(o, e);
    if (s.drawn && e->kind == EVENT_REQUEST && e->as == SEEN_GAP && e->h)
        s.missing = (uint32_t)psn_diff(p->bth.psn, e->h->next);
    return s;
}

void ladder_put(struct ladder *l, const struct pkt *p, const struct ladder_seen *s)
{
    struct cm_msg m;
    struct rung r;

    ladder_put_units(l, s->units, s->units_len);
    note_frame(l, p, s->flow);
    if (!s->drawn)
        return;
    rung_fill(p, s, &r);
    if (p->op->ext & H_DETH) {
        if (!is_cm(p, &m))
            return;
        cm_fill(&r, &m);
        r.again = cm_is_again(l, &r);
    }
    ladder_keep(l, &r);
}

static void on_event(void *user, const struct event *e)
{
    struct ladder *l = user;
    const struct ladder_seen s = ladder_look(l->observer, e);

    ladder_put(l, e->p, &s);
}

static struct ladder *begin(struct observer *o, const struct ladder_opts *opts)
{
    struct ladder *l = calloc(1, sizeof *l);

    if (!l)
        return NULL;
    l->observer = o;
    l->o = *opts;
    l->from = INT64_MIN;
    l->to = INT64_MAX;
    l->around_flow = FLOW_NONE;
    return l;
}

struct ladder *ladder_new(struct observer *o, const struct ladder_opts *opts)
{
    struct ladder *l = begin(o, opts);
    const struct observer_sub s = {.user = l, .before = on_event};

    if (!l)
        return NULL;
    l->own = true;
    l->explain = explain_new(o);
    l->taps = taps_new(o);
    if (!l->explain || !l->taps || !observer_subscribe(o, &s) || !ladder_streams(l)) {
        ladder_free(l);
        return NULL;
    }
    return l;
}

struct ladder *ladder_of(const struct ladder_found *found, const struct ladder_opts *opts)
{
    struct ladder *l = begin(found->observer, opts);

    if (!l)
        return NULL;
    l->explain = found->explain;
    l->taps = found->taps;
    l->have_origin = true;
    l->origin = found->origin;
    return l;
}
