/* layer 3 (sim): the truth of a simulation: what is recorded while it runs. */
#include "dissect/pkt.h"
#include "gen/sim/truth_impl.h"

#include <stdlib.h>

#include "dissect/mad/mad.h"

bool truth_grow(struct truth *t, void *array, size_t *cap, size_t n, size_t size)
{
    size_t more = *cap ? *cap * 2 : 64;
    void *old, *grown;

    if (n < *cap)
        return true;
    memcpy(&old, array, sizeof old);
    grown = realloc(old, more * size);
    if (!grown) {
        t->failed = true;
        return false;
    }
    memset((char *)grown + *cap * size, 0, (more - *cap) * size);
    memcpy(array, &grown, sizeof grown);
    *cap = more;
    return true;
}

/* The direction of connection `conn` with requester `end`; NULL: no memory. */
static struct truth_flow *flow_of(struct truth *t, unsigned conn, unsigned end)
{
    size_t i = (size_t)(conn - 1) * NET_HOSTS + end;

    while (t->n_flows <= i) {
        if (!truth_grow(t, &t->flows, &t->cap_flows, t->n_flows, sizeof *t->flows))
            return NULL;
        t->flows[t->n_flows++] = (struct truth_flow){
            .first = NS_NEVER, .last = NS_NEVER, .received = NS_NEVER, .heard = NS_NEVER, .shortest = NS_NEVER};
    }
    return &t->flows[i];
}

static int by_hosts(const void *a, const void *b)
{
    const struct truth_pair *x = a, *y = b;

    return x->hosts != y->hosts ? (x->hosts > y->hosts) - (x->hosts < y->hosts)
                                : (x->flow > y->flow) - (x->flow < y->flow);
}

/* The directions at t->pair[first] up to `end` run between the same hosts. */
static void join_pair(struct truth *t, size_t first, size_t end)
{
    ns_t heard = NS_NEVER;

    for (size_t i = first; i < end; i++) {
        ns_t at = t->flows[t->pair[i].flow].received;
        heard = at != NS_NEVER && (heard == NS_NEVER || at > heard) ? at : heard;
    }
    for (size_t i = first; i < end; i++) {
        struct truth_flow *f = &t->flows[t->pair[i].flow];
        f->heard = heard;
        f->pair_first = first;
        f->pair_end = end;
    }
}

void truth_join_pairs(struct truth *t)
{
    free(t->pair);
    t->pair = calloc(t->n_flows + 1, sizeof *t->pair);
    t->failed |= !t->pair;
    if (!t->pair)
        return;
    for (size_t i = 0; i < t->n_flows; i++) {
        unsigned conn = (unsigned)(i / NET_HOSTS) + 1, end = i % NET_HOSTS;
        t->pair[i] = (struct truth_pair){
            .hosts = (uint64_t)truth_host_of(t, conn, end) << 32 | truth_host_of(t, conn, end ^ 1), .flow = i};
    }
    qsort(t->pair, t->n_flows, sizeof *t->pair, by_hosts);
    for (size_t first = 0, end; first < t->n_flows; first = end) {
        for (end = first + 1; end < t->n_flows && t->pair[end].hosts == t->pair[first].hosts;)
            end++;
        join_pair(t, first, end);
    }
}

/* Note an event at requester `end` of a connection, with the state of its queue pair. */
static struct truth_event *note(struct truth *t, unsigned conn, unsigned end, enum truth_what what, ns_t now)
{
    struct truth_flow *f = flow_of(t, conn, end);
    const struct qp *qp = truth_qp(t, conn, end);
    struct truth_event *e;

    if (!f || !truth_grow(t, &f->ev, &f->cap, f->n, sizeof *f->ev))
        return NULL;
    e = &f->ev[f->n++];
    f->posted += what == AT_POSTED;
    *e = (struct truth_event){.at = now,
                              .what = (uint8_t)what,
                              .una = qp->req.una_hi,
                              .next = qp->req.psn_next,
                              .head = qp->req.msg_head,
                              .message = qp->req.msg_tail - 1,
                              .left = qp->req.retry_left,
                              .busy = qp->req.msg_head != f->posted,
                              .going = req_going_back(&qp->req),
                              .full = req_resources(&qp->req) >= qp->req.p.max_rd,
                              .spent = !req_has_credit(&qp->req, psn_add(qp->req.ssn, 1))};
    return e;
}

/* --- The network ------------------------------------------------------------------------------ */

/* A frame of a connection was sent or received at an end. */
static void at_end(struct truth *t, unsigned conn, unsigned end, ns_t now)
{
    struct truth_flow *f = flow_of(t, conn, end);

    if (!f)
        return;
    if (f->first == NS_NEVER)
        f->first = now;
    f->last = now;
}

/* The connection of a frame, and the end that sent it. */
static void view(const struct truth *t, const struct truth_seen *seen, const struct pkt *p, struct conns_view *v)
{
    struct conns *c = event_conns(t->s->events);

    conns_view(c, t->s->fabric ? 0 : seen->host, p, v);
    if (t->s->fabric && !v->conn)
        conns_view(c, 1, p, v); /* addresses tell the ends */
}

/* Note connection, PSNs, opcode and class of the frame. */
static void describe(struct truth *t, const struct truth_seen *seen, const struct pkt *p, struct truth_frame *f)
{
    struct conns_view v;

    view(t, seen, p, &v);
    f->conn = v.conn;
    f->class = v.class;
    if (!v.conn)
        return;
    f->from = t->s->fabric ? v.from : f->from;
    f->priority = frame_class(seen->data, seen->len);
    if (seen->learn)
        conn_addr_of(p, &t->hosts[seen->host].addr, &t->hosts[truth_host_of(t, v.conn, f->from ^ 1)].addr);
    f->request = v.request && v.class != PC_CM;
    f->opcode = p->bth.opcode;
    f->psn = p->bth.psn;
    f->span = 1;
    if (v.class == PC_CM)
        f->cm = load_be16(p->data + p->payload_off + 16);
    if (v.class == PC_READ && p->have & H_RETH)
        f->span = psn_span(p->reth.dmalen, truth_qp(t, v.conn, f->from)->req.p.pmtu);
    f->has_ip_id = p->addr_len == 4 && p->have & H_UDP;
    if (f->has_ip_id)
        f->ip_id = load_be16(p->data + p->ip_off + 4);
}

static void decode(const struct truth *t, const struct truth_seen *seen, bool verify, struct pkt *p)
{
    uint16_t linktype = t->s->fabric ? LINK_ETHERNET : t->s->net.linktype;
    struct frame raw = {.data = seen->data, .caplen = seen->len, .len = seen->len, .linktype = linktype};
    struct decode_opts opts = {.verify = verify};

    pkt_decode(p, &raw, &opts);
}

static void count_request(struct truth *t, unsigned conn, unsigned end)
{
    struct truth_flow *f = flow_of(t, conn, end);

    if (!f)
        return;
    f->requests++;
    f->waits = EP_WAIT_NONE;
}

void truth_sent(struct truth *t, const struct truth_seen *seen, ns_t now)
{
    struct truth_event *e = NULL;
    struct truth_frame *f;
    struct pkt p;

    if (!truth_grow(t, &t->frames, &t->cap_frames, t->n_frames, sizeof *t->frames))
        return;
    f = &t->frames[t->n_frames++];
    *f = (struct truth_frame){
        .sent = now, .arrived = NS_NEVER, .len = seen->len, .from = (uint8_t)seen->host, .host = seen->host};
    decode(t, seen, false, &p);
    describe(t, seen, &p, f);
    if (!f->conn)
        return;
    at_end(t, f->conn, f->from, now);
    if (f->class == PC_CM) {
        e = note(t, f->conn, f->from, AT_CM, now);
    } else if (f->request) {
        f->repeat = ep_tx_last(t->s->ep[f->host]).repeat;
        e = note(t, f->conn, f->from, AT_SENT, now);
        count_request(t, f->conn, f->from);
    }
    if (e)
        e->frame = seen->serial;
}

/* An undamaged frame arrives at end `to` of its connection. */
static void received(struct truth *t, struct truth_frame *f, unsigned to, ns_t now)
{
    struct truth_flow *flow = flow_of(t, f->conn, to);

    if (!flow)
        return;
    flow->received = now;
    if (f->arrived != NS_NEVER)
        return;
    f->arrived = now;
    flow = flow_of(t, f->conn, f->from); /* since the frame was sent */
    if (flow && now - f->sent < flow->shortest)
        flow->shortest = now - f->sent;
}

void truth_arrived(struct truth *t, const struct truth_seen *seen, struct truth_frame *f, ns_t now)
{
    unsigned to = f->from ^ 1u;
    struct truth_event *e = NULL;
    bool good = true;
    struct pkt p;

    if (!f->conn)
        return;
    if (f->outcomes & 1u << NET_DAMAGED) {
        decode(t, seen, true, &p);
        good = p.have & H_BTH && !(p.flags & (PKT_MALFORMED | PKT_CUT)) && p.icrc == CRC_GOOD;
    }
    at_end(t, f->conn, to, now);
    if (good)
        received(t, f, to, now);
    if (f->class == PC_CM)
        e = note(t, f->conn, to, AT_CM, now);
    else if (!f->request && f->class != PC_CNP)
        e = note(t, f->conn, to, AT_ARRIVED, now);
    if (e)
        e->frame = seen->serial;
}

static void note_outcome(void *user, const struct net_frame *nf, enum net_outcome what, const struct net_node *node,
                         ns_t now)
{
    struct truth_seen seen = {
        .data = nf->data, .len = nf->len, .serial = nf->serial, .host = nf->dir, .learn = nf->path == 1};
    struct truth *t = user;
    struct truth_frame *f;

    if (what == NET_SENT)
        truth_sent(t, &seen, now);
    if (t->failed || nf->serial > t->n_frames)
        return;
    f = truth_frame(t, nf->serial);
    f->outcomes |= (uint8_t)(1u << what);
    if (node) {
        f->node = node->kind;
        f->before = net_before_middle(&t->s->net, nf->dir, node);
    }
    if (what == NET_ARRIVED)
        truth_arrived(t, &seen, f, now);
}

static void paused(void *user, unsigned dir, ns_t now, ns_t until)
{
    struct truth *t = user;

    if (truth_grow(t, &t->pauses, &t->cap_pauses, t->n_pauses, sizeof *t->pauses))
        t->pauses[t->n_pauses++] =
            (struct truth_pause){.from = now, .to = until, .host = (uint16_t)dir, .classes = UINT8_MAX};
}

/* --- The endpoints ---------------------------------------------------------------------------- */

/* A queue pair of a connection. */
struct place {
    const struct sim_conn *c;
    unsigned end;
};

/* Where queue pair `qp` of host `h` is; false: it belongs to no connection, as those of the connection manager. */
static bool place_of(const struct truth_host *h, int qp, struct place *p)
{
    p->c = ep_qp_user(h->t->s->ep[h->host], qp);
    if (!p->c || !p->c->number)
        return false;
    p->end = p->c->host[0] == h->host && p->c->qp[0] == qp ? 0 : 1;
    return p->c->host[p->end] == h->host && p->c->qp[p->end] == qp;
}

/* Note an event of a queue pair; NULL: it belongs to no connection. */
static struct truth_event *note_qp(const struct truth_host *h, int qp, enum truth_what what, ns_t now)
{
    struct place p;

    return place_of(h, qp, &p) ? note(h->t, p.c->number, p.end, what, now) : NULL;
}

static void posted(void *user, int qp, ns_t now)
{
    note_qp(user, qp, AT_POSTED, now);
}

static void requester(void *user, int qp, const struct effects *e, ns_t now)
{
    struct truth_event *ev = e->flags ? note_qp(user, qp, AT_EFFECT, now) : NULL;

    if (!ev)
        return;
    ev->flags = e->flags;
    ev->why = e->reason;
}

static void waits(void *user, int qp, enum ep_wait why, ns_t usual, ns_t now)
{
    const struct truth_host *h = user;
    struct truth_flow *f;
    struct truth_event *ev;
    struct place p;

    if (!place_of(h, qp, &p))
        return;
    f = flow_of(h->t, p.c->number, p.end);
    ev = f && f->waits != why ? note(h->t, p.c->number, p.end, AT_WAITS, now) : NULL;
    if (!ev)
        return;
    ev->why = (uint8_t)why;
    ev->other = why == EP_WAIT_CUT && usual > now ? usual : now;
    f->waits = (uint8_t)why;
}

static void slow(void *user, int qp, ns_t now, ns_t until)
{
    const struct truth_host *h = user;
    struct place p;
    struct truth_event *ev = place_of(h, qp, &p) ? note(h->t, p.c->number, p.end ^ 1, AT_SLOW, now) : NULL;

    if (ev)
        ev->other = until;
}

static void failed(void *user, int qp, enum wc_status status, ns_t now)
{
    struct truth_event *ev = note_qp(user, qp, AT_FAILED, now);

    if (ev)
        ev->why = (uint8_t)status;
}

static void migrated(void *user, int qp, enum ep_migration why, ns_t now)
{
    const struct truth_host *h = user;
    struct truth *t = h->t;
    struct place p;

    if (place_of(h, qp, &p) &&
        truth_grow(t, &t->migrations, &t->cap_migrations, t->n_migrations, sizeof *t->migrations))
        t->migrations[t->n_migrations++] =
            (struct truth_migration){.at = now, .conn = p.c->number, .host = (uint8_t)p.end, .why = (uint8_t)why};
}

struct truth *truth_new(struct sim *s)
{
    struct truth *t = calloc(1, sizeof *t);

    if (t)
        t->hosts = calloc(s->n_hosts, sizeof *t->hosts);
    if (!t || !t->hosts) {
        free(t);
        return NULL;
    }
    t->s = s;
    t->net = (struct net_watch){.outcome = note_outcome, .paused = paused, .user = t};
    s->net.watch = &t->net;
    if (s->fabric)
        truth_fabric_watch(t);
    for (unsigned h = 0; h < s->n_hosts; h++) {
        struct truth_host *host = &t->hosts[h];
        *host = (struct truth_host){.t = t, .host = h};
        host->watch = (struct ep_watch){.posted = posted,
                                        .requester = requester,
                                        .waits = waits,
                                        .slow = slow,
                                        .failed = failed,
                                        .migrated = migrated,
                                        .user = host};
        ep_set_watch(s->ep[h], &host->watch);
    }
    return t;
}

void truth_free(struct truth *t)
{
    if (!t)
        return;
    t->s->net.watch = NULL;
    if (t->s->fabric)
        fabric_set_watch(t->s->fabric, NULL);
    for (unsigned h = 0; h < t->s->n_hosts; h++)
        ep_set_watch(t->s->ep[h], NULL);
    for (size_t i = 0; i < t->n_flows; i++)
        free(t->flows[i].ev);
    free(t->flows);
    free(t->pair);
    free(t->hosts);
    free(t->frames);
    free(t->incidents);
    free(t->timers);
    free(t->pauses);
    free(t->migrations);
    free(t);
}
