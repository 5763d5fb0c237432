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

/* The direction of connection `conn` with requester `host`; NULL: no memory. */
static struct truth_flow *flow_of(struct truth *t, unsigned conn, unsigned host)
{
    size_t i = (size_t)(conn - 1) * NET_HOSTS + host;

    while (t->n_flows <= i) {
        if (!truth_grow(t, &t->flows, &t->cap_flows, t->n_flows, sizeof *t->flows))
            return NULL;
        t->flows[t->n_flows++] = (struct truth_flow){.first = NS_NEVER, .last = NS_NEVER};
    }
    return &t->flows[i];
}

/* Note an event at requester `host` of a connection, with the state of its queue pair. */
static struct truth_event *note(struct truth *t, unsigned conn, unsigned host, enum truth_what what, ns_t now)
{
    struct truth_flow *f = flow_of(t, conn, host);
    const struct qp *qp = ep_qp(t->s->ep[host], t->s->conn[conn - 1]->qp[host]);
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

/* A frame of a connection was sent or received by a host. */
static void at_host(struct truth *t, unsigned conn, unsigned host, ns_t now)
{
    struct truth_flow *f = flow_of(t, conn, host);

    if (!f)
        return;
    if (f->first == NS_NEVER)
        f->first = now;
    f->last = now;
}

/* Note connection, PSNs, opcode and class of the frame. */
static void describe(struct truth *t, const struct net_frame *nf, const struct pkt *p, struct truth_frame *f)
{
    struct conns_view v;
    const struct qp *qp;

    conns_view(event_conns(t->s->events), nf->dir, p, &v);
    f->conn = v.conn;
    f->class = v.class;
    if (!v.conn)
        return;
    if (nf->path == 1)
        conn_addr_of(p, &t->addr[nf->dir], &t->addr[nf->dir ^ 1]);
    f->request = v.request && v.class != PC_CM;
    f->opcode = p->bth.opcode;
    f->psn = p->bth.psn;
    f->span = 1;
    if (v.class == PC_CM)
        f->cm = load_be16(p->data + p->payload_off + 16);
    if (v.class == PC_READ && p->have & H_RETH) {
        qp = ep_qp(t->s->ep[nf->dir], t->s->conn[v.conn - 1]->qp[nf->dir]);
        f->span = psn_span(p->reth.dmalen, qp->req.p.pmtu);
    }
    f->has_ip_id = p->addr_len == 4 && p->have & H_UDP;
    if (f->has_ip_id)
        f->ip_id = load_be16(p->data + p->ip_off + 4);
}

static void decode(const struct truth *t, const struct net_frame *nf, bool verify, struct pkt *p)
{
    struct frame raw = {.data = nf->data, .caplen = nf->len, .len = nf->len, .linktype = t->s->net.linktype};
    struct decode_opts opts = {.verify = verify};

    pkt_decode(p, &raw, &opts);
}

static void count_request(struct truth *t, unsigned conn, unsigned host)
{
    struct truth_flow *f = flow_of(t, conn, host);

    if (!f)
        return;
    f->requests++;
    f->waits = EP_WAIT_NONE;
}

static void sent(struct truth *t, const struct net_frame *nf, ns_t now)
{
    struct truth_event *e = NULL;
    struct truth_frame *f;
    struct pkt p;

    if (!truth_grow(t, &t->frames, &t->cap_frames, t->n_frames, sizeof *t->frames))
        return;
    f = &t->frames[t->n_frames++];
    *f = (struct truth_frame){.sent = now, .arrived = NS_NEVER, .len = nf->len, .from = nf->dir};
    decode(t, nf, false, &p);
    describe(t, nf, &p, f);
    if (!f->conn)
        return;
    at_host(t, f->conn, nf->dir, now);
    if (f->class == PC_CM) {
        e = note(t, f->conn, nf->dir, AT_CM, now);
    } else if (f->request) {
        f->repeat = ep_tx_last(t->s->ep[nf->dir]).repeat;
        e = note(t, f->conn, nf->dir, AT_SENT, now);
        count_request(t, f->conn, nf->dir);
    }
    if (e)
        e->frame = nf->serial;
}

static void arrived(struct truth *t, const struct net_frame *nf, struct truth_frame *f, ns_t now)
{
    unsigned to = nf->dir ^ 1;
    struct truth_event *e = NULL;
    bool good = true;
    struct pkt p;

    if (!f->conn)
        return;
    if (f->outcomes & 1u << NET_DAMAGED) {
        decode(t, nf, true, &p);
        good = p.have & H_BTH && !(p.flags & (PKT_MALFORMED | PKT_CUT)) && p.icrc == CRC_GOOD;
    }
    at_host(t, f->conn, to, now);
    if (good) {
        f->arrived = f->arrived == NS_NEVER ? now : f->arrived;
        t->last_received[to] = now;
    }
    if (f->class == PC_CM)
        e = note(t, f->conn, to, AT_CM, now);
    else if (!f->request && f->class != PC_CNP)
        e = note(t, f->conn, to, AT_ARRIVED, now);
    if (e)
        e->frame = nf->serial;
}

static void note_outcome(void *user, const struct net_frame *nf, enum net_outcome what, const struct net_node *node,
                         ns_t now)
{
    struct truth *t = user;
    struct truth_frame *f;

    if (what == NET_SENT)
        sent(t, nf, now);
    if (t->failed || nf->serial > t->n_frames)
        return;
    f = truth_frame(t, nf->serial);
    f->outcomes |= (uint8_t)(1u << what);
    if (node) {
        f->node = node->kind;
        f->before = net_before_middle(&t->s->net, nf->dir, node);
    }
    if (what == NET_ARRIVED)
        arrived(t, nf, f, now);
}

static void paused(void *user, unsigned dir, ns_t now, ns_t until)
{
    struct truth *t = user;

    if (truth_grow(t, &t->pauses, &t->cap_pauses, t->n_pauses, sizeof *t->pauses))
        t->pauses[t->n_pauses++] = (struct truth_pause){.from = now, .to = until, .dir = (uint8_t)dir};
}

/* --- The endpoints ---------------------------------------------------------------------------- */

/* True if `c`, the user of a queue pair, is its connection: queue pairs of the connection manager have none. */
static bool is_connection(const struct sim_conn *c, unsigned host, int qp)
{
    return c && c->number && c->qp[host] == qp;
}

/* Note an event of a queue pair; NULL: it belongs to no connection. */
static struct truth_event *note_qp(const struct truth_host *h, int qp, enum truth_what what, ns_t now)
{
    const struct sim_conn *c = ep_qp_user(h->t->s->ep[h->host], qp);

    return is_connection(c, h->host, qp) ? note(h->t, c->number, h->host, what, now) : NULL;
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
    const struct sim_conn *c = ep_qp_user(h->t->s->ep[h->host], qp);
    struct truth_flow *f = is_connection(c, h->host, qp) ? flow_of(h->t, c->number, h->host) : NULL;
    struct truth_event *ev = f && f->waits != why ? note(h->t, c->number, h->host, AT_WAITS, now) : NULL;

    if (!ev)
        return;
    ev->why = (uint8_t)why;
    ev->other = why == EP_WAIT_CUT && usual > now ? usual : now;
    f->waits = (uint8_t)why;
}

static void slow(void *user, int qp, ns_t now, ns_t until)
{
    const struct truth_host *h = user;
    const struct sim_conn *c = ep_qp_user(h->t->s->ep[h->host], qp);
    struct truth_event *ev = is_connection(c, h->host, qp) ? note(h->t, c->number, h->host ^ 1, AT_SLOW, now) : NULL;

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
    const struct sim_conn *c = ep_qp_user(t->s->ep[h->host], qp);

    if (is_connection(c, h->host, qp) &&
        truth_grow(t, &t->migrations, &t->cap_migrations, t->n_migrations, sizeof *t->migrations))
        t->migrations[t->n_migrations++] =
            (struct truth_migration){.at = now, .conn = c->number, .host = (uint8_t)h->host, .why = (uint8_t)why};
}

struct truth *truth_new(struct sim *s)
{
    struct truth *t = calloc(1, sizeof *t);

    if (!t)
        return NULL;
    t->s = s;
    t->net = (struct net_watch){.outcome = note_outcome, .paused = paused, .user = t};
    s->net.watch = &t->net;
    for (unsigned h = 0; h < NET_HOSTS; h++) {
        struct truth_host *host = &t->hosts[h];
        t->last_received[h] = NS_NEVER;
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
    for (unsigned h = 0; h < NET_HOSTS; h++)
        ep_set_watch(t->s->ep[h], NULL);
    for (size_t i = 0; i < t->n_flows; i++)
        free(t->flows[i].ev);
    free(t->flows);
    free(t->frames);
    free(t->incidents);
    free(t->timers);
    free(t->pauses);
    free(t->migrations);
    free(t);
}
