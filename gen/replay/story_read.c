/* layer 3 (replay): the packets of one connection, from a capture. Two passes: which connection it is, and which end is
 * ours; then its packets. */
#include "dissect/mad/cm.h"
#include "dissect/pkt.h"
#include "gen/replay/story.h"
#include "psn.h"
#include "src/cap/merge.h"
#include "src/conn/observer.h"
#include "src/conn/packet.h"

#include <errno.h>
#include <stdlib.h>

/* A direction of a connection, at one tap. */
struct direction {
    struct conn_addr src, dst;
    uint32_t dqpn, tap;
    uint64_t requests, packets;
};

struct reader {
    const struct story_opts *o;
    struct story *s;
    struct observer *observer;
    uint64_t *requests, *packets; /* first pass: by flow */
    bool *other;                  /* first pass: by flow: it carries another service than RC */
    bool finding;                 /* this is the first pass */
    struct direction way[2];      /* from end 0, from end 1; which of them is ours is known in the end */
    uint64_t req, rep;            /* frames of REQ and REP; 0: none */
    struct conn_addr active;      /* sender of the REQ, or of the first request */
    bool has_active;
    uint32_t listener;      /* with a REQ: 1 if end 1 sent it */
    uint8_t private_len[2]; /* of REQ and REP */
    uint8_t private_data[2][224];
    bool dreq[2]; /* end i sent a DREQ */
    struct story_half half[2];
    struct psn_line line[2]; /* of the requests of each end */
    bool restarted[2];       /* the queue pair is another connection's from there on */
    bool no_memory;
};

/* --- First pass ------------------------------------------------------------------------------- */

static void count(struct reader *r, const struct event *e)
{
    if (e->own == FLOW_NONE)
        return;
    r->packets[e->own]++;
    r->requests[e->own] += e->kind == EVENT_REQUEST;
    r->other[e->own] |= e->p->bth.opcode >> 5 != SVC_RC;
}

static struct direction direction_of(const struct reader *r, const struct flow *f, uint32_t i)
{
    return (struct direction){f->src, f->dst, f->dqpn, f->tap, r->requests[i], r->packets[i]};
}

/* The flow that the story is of: of the connection asked for the one with most packets, among all taps. FLOW_NONE:
 * there is none. */
static uint32_t choose(const struct reader *r, struct conn_table *t)
{
    const struct flow *f = conn_flows(t);
    uint32_t best = FLOW_NONE;

    for (uint32_t i = 0, n = conn_counts(t).flows; i < n; i++) {
        uint32_t conn = f[i].conn ? conn_number_now(t, f[i].conn) : 0, than;
        if (!conn || f[i].peer == FLOW_NONE || (r->o->conn ? conn != r->o->conn : !r->requests[i]))
            continue;
        than = best == FLOW_NONE ? UINT32_MAX : conn_number_now(t, f[best].conn);
        if (conn < than || (conn == than && r->packets[i] > r->packets[best]))
            best = i;
    }
    return best;
}

static int find(struct reader *r, struct buf *why)
{
    struct conn_table *t = observer_conns(r->observer);
    uint32_t best = choose(r, t), peer;
    const struct flow *f = conn_flows(t);

    if (best == FLOW_NONE && r->o->conn)
        return buf_printf(why, "%s: there is no connection %u whose two directions are known", r->o->path, r->o->conn),
               -ENOENT;
    if (best == FLOW_NONE)
        return buf_printf(why, "%s: no connection in it has requests and a known peer", r->o->path), -ENOENT;
    peer = f[best].peer;
    if (r->other[best] || r->other[peer])
        return buf_printf(why, "%s: connection %u is not of RC", r->o->path, conn_number_now(t, f[best].conn)),
               -ENOTSUP;
    r->way[0] = direction_of(r, &f[best], best);
    r->way[1] = direction_of(r, &f[peer], peer);
    r->req = f[best].params.req_frame;
    r->rep = f[best].params.rep_frame;
    r->s->mtu = (uint16_t)(f[best].pmtu ? f[best].pmtu : f[peer].pmtu);
    return 0;
}

/* --- Second pass ------------------------------------------------------------------------------ */

/* The end that sends in a flow; 2: it is another connection's. */
static unsigned end_of(const struct reader *r, const struct flow *f)
{
    for (unsigned i = 0; i < 2; i++)
        if (f->dqpn == r->way[i].dqpn && f->tap == r->way[i].tap && conn_addr_eq(&f->src, &r->way[i].src) &&
            conn_addr_eq(&f->dst, &r->way[i].dst))
            return i;
    return 2;
}

static struct story_packet *packet_new(struct story_packets *v)
{
    struct story_packet *grown;

    if (v->n == v->room) {
        grown = realloc(v->p, (v->room ? 2 * v->room : 256) * sizeof *grown);
        if (!grown)
            return NULL;
        v->p = grown;
        v->room = v->room ? 2 * v->room : 256;
    }
    return &v->p[v->n++];
}

static void keep(struct reader *r, unsigned end, unsigned response, int64_t psn, const struct pkt *p)
{
    struct story *s = r->s;
    struct story_packet *k;

    s->cut |= s->bytes.len + p->payload_len > STORY_BYTES;
    if (s->cut || r->no_memory)
        return;
    k = packet_new(&r->half[end].sent[response]);
    if (!k) {
        r->no_memory = true;
        return;
    }
    *k = (struct story_packet){.psn = psn,
                               .op5 = p->bth.opcode & 0x1f,
                               .solicited = p->bth.se,
                               .at = p->frame->ts,
                               .frame = p->frame->number,
                               .data = s->bytes.len,
                               .len = p->payload_len,
                               .cap = p->payload_cap};
    buf_mem(&s->bytes, p->data + p->payload_off, p->payload_cap);
    buf_fill(&s->bytes, '\0', p->payload_len - p->payload_cap);
    if (p->have & H_IMMDT)
        k->imm = p->immdt.data;
    if (p->have & H_IETH)
        k->imm = p->ieth.rkey;
    if (p->have & H_RETH) {
        k->va = p->reth.va;
        k->rkey = p->reth.rkey;
        k->dmalen = p->reth.dmalen;
    }
    if (p->have & H_ATOMICETH) {
        k->va = p->atomiceth.va;
        k->rkey = p->atomiceth.rkey;
        k->compare_add = (p->bth.opcode & 0x1f) == OP_FETCH_ADD ? p->atomiceth.swap : p->atomiceth.cmp;
        k->swap = p->atomiceth.swap;
    }
    if (p->have & H_ATOMICACKETH)
        k->va = p->atomicacketh.orig;
}

static void take_request(struct reader *r, unsigned end, const struct event *e)
{
    r->restarted[end] |= e->as == SEEN_RESTART && r->line[end].begun;
    if (r->restarted[end] || e->as == SEEN_AGAIN || e->as == SEEN_COPY || e->as == SEEN_OLD)
        return;
    if (!r->has_active) {
        r->active = r->way[end].src;
        r->has_active = true;
    }
    keep(r, end, 0, psn_line_go_on(&r->line[end], e->p->bth.psn), e->p);
}

/* Responses with data. */
static void take_response(struct reader *r, unsigned end, const struct event *e)
{
    if (e->p->op->flags & (OPF_READ_RESP | OPF_ATOMIC_ACK) && !r->restarted[!end] && r->line[!end].begun)
        keep(r, end, 1, psn_line_at(&r->line[!end], e->p->bth.psn), e->p);
}

static void take(struct reader *r, const struct event *e)
{
    unsigned end = e->own == FLOW_NONE ? 2 : end_of(r, conn_flow_at(observer_conns(r->observer), e->own));

    if (end == 2)
        return;
    if (e->kind == EVENT_REQUEST)
        take_request(r, end, e);
    else if (e->kind == EVENT_RESPONSE)
        take_response(r, end, e);
}

static void before(void *user, const struct event *e)
{
    struct reader *r = user;

    if (r->finding)
        count(r, e);
    else
        take(r, e);
}

static void keep_private(struct reader *r, unsigned of, const uint8_t *p, unsigned n)
{
    memcpy(r->private_data[of], p, n);
    r->private_len[of] = (uint8_t)n;
}

/* The REQ, the REP and the DREQs of the connection. */
static void take_cm(struct reader *r, const struct pkt *p)
{
    struct conn_addr src, dst;
    struct cm_msg m;

    if (p->icrc == CRC_BAD || !cm_msg_of(&m, p))
        return;
    conn_addr_of(p, &src, &dst);
    if (m.mad.attr_id == CM_REQ && p->frame->number == r->req) {
        unsigned head = cm_service_is_ip(m.req.service_id) ? 36 : 0;
        r->active = src;
        r->has_active = true;
        r->s->service = m.req.service_id;
        keep_private(r, 0, m.req.private_data + head, (unsigned)sizeof m.req.private_data - head);
    } else if (m.mad.attr_id == CM_REP && p->frame->number == r->rep) {
        r->s->cm = r->req != 0;
        keep_private(r, 1, m.rep.private_data, sizeof m.rep.private_data);
    } else if (m.mad.attr_id == CM_DREQ) {
        for (unsigned i = 0; i < 2; i++)
            r->dreq[i] |= conn_addr_alike(&src, &r->way[i].src) && m.dreq.remote_qpn == r->way[i].dqpn;
    }
}

static void early(void *user, const struct pkt *p)
{
    struct reader *r = user;

    if (!r->finding && p->have & H_MAD)
        take_cm(r, p);
}

/* --- Reading ---------------------------------------------------------------------------------- */

static int read_frames(struct reader *r, struct buf *why)
{
    const struct decode_opts opts = {.verify = !r->o->no_icrc};
    struct cap_error err;
    struct cap_merge *m;
    uint64_t frames = 0;
    struct frame f;
    struct pkt p;
    int got;

    if (cap_merge_open(&m, &r->o->path, 1, NULL, &err) < 0) {
        cap_error_line(&err, why);
        return err.err;
    }
    while ((got = cap_merge_next(m, &f)) > 0) {
        pkt_decode(&p, &f, &opts);
        observer_packet(r->observer, &p);
        frames++;
    }
    if (got < 0 && !r->s->torn)
        cap_error_line(cap_error(cap_merge_file(m, 0)), why);
    r->s->torn = got < 0;
    cap_merge_close(m);
    return frames ? 0 : got;
}

static int pass(struct reader *r, bool finding, struct buf *why)
{
    const struct observer_sub sub = {.user = r, .early = early, .before = before};
    uint32_t flows;
    int e;

    observer_free(r->observer);
    r->observer = observer_new(NULL);
    r->finding = finding;
    if (!r->observer || !observer_subscribe(r->observer, &sub))
        return -ENOMEM;
    flows = observer_flows(r->observer);
    if (finding) {
        r->requests = calloc(flows, sizeof *r->requests);
        r->packets = calloc(flows, sizeof *r->packets);
        r->other = calloc(flows, sizeof *r->other);
        if (!r->requests || !r->packets || !r->other)
            return -ENOMEM;
    }
    e = read_frames(r, why);
    return e ? e : r->no_memory || r->s->bytes.err ? -ENOMEM : 0;
}

/* Which end is ours, and what CM said to it. */
static void settle(struct reader *r)
{
    bool first_is_active = !r->has_active || conn_addr_alike(&r->active, &r->way[0].src);
    unsigned ours = first_is_active == r->o->passive, of = r->o->passive;
    struct story *s = r->s;

    s->active = !r->o->passive;
    for (unsigned i = 0; i < 2; i++) {
        s->addr[i] = r->way[ours ^ i].src;
        s->qpn[i] = r->way[ours ^ i ^ 1].dqpn;
        s->private_len[i] = r->private_len[of ^ i];
        memcpy(s->private_data[i], r->private_data[of ^ i], sizeof s->private_data[i]);
    }
    s->disconnected = r->dreq[ours];
    if (ours) {
        struct story_half swap = r->half[0];
        r->half[0] = r->half[1];
        r->half[1] = swap;
    }
}

int story_read(struct story *s, const struct story_opts *o, struct buf *why)
{
    struct reader r = {.o = o, .s = s};
    size_t torn;
    int e;

    memset(s, 0, sizeof *s);
    e = pass(&r, true, why);
    torn = why->len;
    if (e == 0)
        e = find(&r, why);
    if (s->torn) /* that is why nothing was found */
        why->len = torn;
    if (e == 0)
        e = pass(&r, false, why);
    if (e == 0) {
        settle(&r);
        e = story_build(s, r.half) && story_keys(s) ? 0 : -ENOMEM;
    }
    if (e == -ENOMEM && !why->len)
        buf_puts(why, "out of memory");
    observer_free(r.observer);
    free(r.requests);
    free(r.packets);
    free(r.other);
    for (unsigned i = 0; i < 2; i++)
        for (unsigned k = 0; k < 2; k++)
            free(r.half[i].sent[k].p);
    return e;
}

void story_free(struct story *s)
{
    free(s->ops);
    free(s->msgs);
    free(s->regions);
    free(s->puts);
    free(s->owns);
    buf_free(&s->bytes);
    memset(s, 0, sizeof *s);
}

bool story_room(void **list, uint32_t n, uint32_t *room, size_t size)
{
    uint32_t more = *room ? 2 * *room : 64;
    void *grown;

    if (n < *room)
        return true;
    grown = n < UINT32_MAX / 4 ? realloc(*list, more * size) : NULL;
    if (!grown)
        return false;
    *list = grown;
    *room = more;
    return true;
}
