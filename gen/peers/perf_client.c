/* layer 3 (peers): the client for the servers of perftest and ibv_*_pingpong. */
#include "gen/peers/perf_client.h"
#include "gen/peers/pingpong.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define PROGRESS_STEP (100 * NS_PER_MS)
#define CONNECT_AGAIN (100 * NS_PER_MS)
#define CONNECT_TRIES 10
#define DRAIN_WAIT    (2 * NS_PER_S)
#define LINGER        (50 * NS_PER_MS) /* the peer may retransmit its last request: acknowledge it again */

/* --- Exchange with perftest ------------------------------------------------------------------- */

static int swap(struct perf_client *p, const char *step, const void *mine, void *theirs, size_t len)
{
    p->step = step;
    return chan_swap(&p->chan, true, mine, theirs, len);
}

/* Exchange version, sizes and MTU. */
static int exchange_versions(struct perf_client *p)
{
    static const uint8_t buffers[PERFTEST_INT] = {0, 0, 16, 0}, line[PERFTEST_INT] = {0, 0, 0, 64};
    uint8_t mine[PERFTEST_VERSION], theirs[PERFTEST_VERSION];
    struct perftest_mark mark = {.latency = p->config.latency, .op = perf_op(p->config.op), .size = p->config.size};
    uint16_t mtu;
    int r;

    perftest_version_put(mine, &mark);
    r = swap(p, "the exchange of versions", mine, theirs, PERFTEST_VERSION);
    if (r == 0 && !perftest_version_get(theirs, &mark))
        r = -EPROTO;
    if (r == 0)
        r = swap(p, "the exchange of buffer sizes", buffers, theirs, PERFTEST_INT);
    if (r == 0)
        r = swap(p, "the exchange of cache line sizes", line, theirs, PERFTEST_INT);
    perftest_mtu_put(mine, p->live->mtu);
    if (r == 0)
        r = swap(p, "the exchange of MTUs", mine, theirs, PERFTEST_MTU);
    if (r < 0)
        return r;
    p->ours = mark.ours;
    mtu = perftest_mtu_get(theirs);
    p->config.mtu = mtu && mtu < p->live->mtu ? mtu : p->live->mtu;
    p->config.known = p->ours;
    return 0;
}

/* Send keys and receive those of the peer. */
static int swap_keys(struct perf_client *p, const struct perftest_keys *own, struct perftest_keys *peer)
{
    char mine[PERFTEST_TEXT], theirs[PERFTEST_TEXT];
    int r;

    if (p->rdma_cm) {
        perftest_keys_put_binary((uint8_t *)mine, own);
        r = swap(p, "the exchange of keys", mine, theirs, PERFTEST_BINARY);
        perftest_keys_get_binary(peer, (const uint8_t *)theirs);
        return r;
    }
    perftest_keys_put(mine, own);
    r = swap(p, "the exchange of keys", mine, theirs, PERFTEST_TEXT);
    if (r < 0 || perftest_keys_get(peer, theirs))
        return r;
    theirs[sizeof theirs - 1] = 0;
    for (char *c = theirs; *c; c++)
        if ((uint8_t)*c < ' ' || *c > '~')
            *c = '?';
    if (p->ours && memcmp(theirs, PERFTEST_REFUSAL, strlen(PERFTEST_REFUSAL)) == 0)
        snprintf(p->why, sizeof p->why, "the server refuses: %s", theirs + strlen(PERFTEST_REFUSAL));
    return -EPROTO;
}

/* Number of queue pairs whose keys are exchanged: behind those of the traffic the target of XRC with latency. */
static unsigned keys_of(const struct perf_client *p)
{
    return p->config.qps + xrc_both_ways(&p->traffic.xrc);
}

/* Send the keys of queue pair `i`; store those of the peer if `take`. XRC with latency: the keys of the initiators come
 * first, then those of the targets, and each initiator is joined with the target of the other side. */
static int send_keys(struct perf_client *p, unsigned i, bool take)
{
    struct perf *l = &p->traffic;
    struct perftest_keys keys = {0};
    int r = swap_keys(p, i < p->config.qps ? &l->qp[i].own : &l->xrc.own, &keys);

    if (r < 0 || !take)
        return r;
    if (i == p->config.qps)
        l->qp[0].peer = keys;
    else if (xrc_both_ways(&l->xrc))
        l->xrc.peer = keys;
    else
        l->qp[i].peer = keys;
    return 0;
}

/* Create the queue pairs. */
static int create_qps(struct perf_client *p)
{
    int r;

    p->step = "memory and queue pairs";
    r = perf_init(&p->traffic, ep_verbs(p->live->ep), &p->config);
    if (r < 0)
        return r;
    for (unsigned i = 0; i < p->config.qps; i++) {
        memcpy(p->traffic.qp[i].own.gid, p->live->id.gid, 16);
        if (p->psn_given)
            p->traffic.qp[i].own.psn = p->own_psn;
    }
    memcpy(p->traffic.xrc.own.gid, p->live->id.gid, 16);
    if (p->made)
        p->made(p->user, &p->traffic);
    return 0;
}

/* Connect every queue pair to the one in the peer's keys. */
static int connect_all(struct perf_client *p)
{
    struct av av;
    int r = 0;

    for (unsigned i = 0; i < p->config.qps && r == 0; i++) {
        const uint8_t *gid = p->traffic.qp[i].peer.gid;
        p->step = "the search for the peer's MAC address";
        r = live_resolve(p->live, gid, LIVE_RESOLVE_WAIT);
        if (r < 0)
            break;
        p->step = "connecting a queue pair";
        if (!live_path(p->live, gid, &av))
            r = -EHOSTUNREACH;
        if (r == 0)
            r = perf_connect(&p->traffic, i, &av, live_now());
    }
    if (r == 0)
        perf_ready(&p->traffic, live_now());
    return r;
}

/* --- Connecting by RDMA-CM -------------------------------------------------------------------- */

static struct rdmacm *cm_of(const struct perf_client *p)
{
    return p->control.verbs->cm;
}

/* Wait until `end` for the next event of an RDMA-CM id: 0 with *e, -ETIMEDOUT, or as live_step(). */
static int wait_for(struct perf_client *p, int id, struct rdmacm_event *e, ns_t end)
{
    int r;

    do
        r = live_cm_event(p->live, p->channel, e, end);
    while (r == 0 && e->id != id);
    return r;
}

/* Try to connect queue pair `qp` with a new RDMA-CM id *id: 0, -ECONNREFUSED with p->why, or as live_step(). */
static int try_qp(struct perf_client *p, int *id, int qp)
{
    bool reads = p->config.op != TRAFFIC_SEND && p->config.op != TRAFFIC_WRITE;
    uint8_t depth =
        reads ? p->config.outs : p->config.known && p->config.verify; /* the client READs what it has written */
    struct rdmacm_param own = {.qp = qp,
                               .access = ACCESS_REMOTE_WRITE,
                               .responder_resources = depth,
                               .initiator_depth = depth,
                               .path_mtu = p->config.mtu};
    struct rdmacm_event e;
    int r;

    p->step = "the search for the peer's MAC address";
    r = live_cm_resolve(p->live, p->channel, p->gid, p->port);
    *id = r < 0 ? -1 : r;
    if (r < 0)
        return r;
    p->step = "the RDMA-CM connection";
    r = rdmacm_connect(cm_of(p), *id, &own, live_now());
    if (r == 0)
        r = wait_for(p, *id, &e, live_now() + p->timeout);
    if (r < 0 || e.type == RDMACM_ESTABLISHED)
        return r;
    p->not_there = e.type == RDMACM_REJECTED && e.status == CM_REJ_INVALID_SERVICE_ID;
    rdmacm_why(&e, p->why, sizeof p->why);
    return -ECONNREFUSED;
}

/* The same with retries: perftest listens again for each group of queue pairs, and its clients retry until it does. */
static int connect_qp(struct perf_client *p, int *id, int qp)
{
    int r = try_qp(p, id, qp);

    for (unsigned i = 0; i < CONNECT_TRIES && r == -ECONNREFUSED && p->not_there && qp != p->control.qp; i++) {
        ns_t end = live_now() + CONNECT_AGAIN;
        rdmacm_id_destroy(cm_of(p), *id, live_now());
        for (r = 0; r == 0 && live_now() < end;)
            r = live_step(p->live, end);
        *id = -1;
        if (r == 0)
            r = try_qp(p, id, qp);
    }
    if (r == 0)
        p->why[0] = 0;
    return r;
}

/* Connect the out-of-band channel by RDMA-CM. */
static int connect_control(struct perf_client *p)
{
    int r = rchan_init(&p->control, ep_verbs(p->live->ep));

    p->chan = (struct chan){.live = p->live, .fd = -1, .rdma = &p->control, .wait = p->timeout};
    if (r == 0)
        r = p->channel = rdmacm_channel_create(cm_of(p));
    if (r < 0)
        return r;
    p->id = malloc((1 + p->config.qps) * sizeof *p->id);
    if (!p->id)
        return -ENOMEM;
    for (unsigned i = 0; i <= p->config.qps; i++)
        p->id[i] = -1;
    r = connect_qp(p, &p->id[0], p->control.qp);
    if (r == 0)
        rchan_poll(&p->control, live_now());
    return r;
}

/* Connect the queue pairs for data; an exchange without keys precedes and follows it. */
static int connect_all_by_cm(struct perf_client *p)
{
    struct perftest_keys none = {0}, theirs;
    int r = swap_keys(p, &none, &theirs);

    for (unsigned i = 0; i < p->config.qps && r == 0; i++)
        r = connect_qp(p, &p->id[1 + i], p->traffic.qp[i].qp);
    if (r == 0)
        r = swap_keys(p, &none, &theirs);
    if (r == 0)
        perf_ready(&p->traffic, live_now());
    return r;
}

/* Process all pending events; returns the number of connections that ended by them. */
static unsigned take_events(struct perf_client *p)
{
    struct rdmacm_event e;
    unsigned ended = 0;

    while (rdmacm_get_event(cm_of(p), p->channel, &e))
        ended += e.type == RDMACM_DISCONNECTED;
    return ended;
}

/* Send a DREQ on every connection, and wait briefly for the DREPs. */
static void disconnect_all(struct perf_client *p)
{
    ns_t end = live_now() + LIVE_LEAVE_WAIT;
    unsigned left = 0;

    take_events(p);
    for (unsigned i = 0; i <= p->config.qps; i++)
        left += rdmacm_disconnect(cm_of(p), p->id[i], live_now()) == 0;
    while (live_step(p->live, live_now() + NS_PER_MS) == 0 && left && live_now() < end)
        left -= take_events(p);
}

static int setup_perftest(struct perf_client *p)
{
    const char *round = perftest_rounds(perf_op(p->config.op), p->config.latency);
    bool known = false; /* the keys of all queue pairs are */
    int r;

    p->step = "the TCP connection";
    r = p->rdma_cm ? connect_control(p) : chan_dial(&p->chan, p->live, p->host, p->port, p->timeout);
    if (r == 0)
        r = exchange_versions(p);
    if (r == 0)
        r = create_qps(p);
    if (r == 0 && p->rdma_cm)
        r = connect_all_by_cm(p);
    for (unsigned n = 0; round[n] && r == 0; n++) {
        for (unsigned i = 0; i < (round[n] == 'R' ? keys_of(p) : 1) && r == 0; i++)
            r = send_keys(p, i, !known);
        if (!known && round[n] == 'R' && r == 0 && !p->rdma_cm)
            r = connect_all(p);
        known |= round[n] == 'R';
    }
    return r;
}

/* The last exchange of keys, with another rdmagen: its keys contain the number of messages that it received. */
static int ask_counts(struct perf_client *p)
{
    struct perftest_keys own = p->traffic.qp[0].own, theirs = {0};
    int r;

    own.lid = PERFTEST_COUNTS;
    own.vaddr = p->traffic.t.r.completed;
    r = swap_keys(p, &own, &theirs);
    if (r == 0 && theirs.lid == PERFTEST_COUNTS) {
        p->counted = true;
        p->arrived = theirs.vaddr;
        p->wrong = theirs.rkey;
    }
    return r;
}

/* After the data: both sides of a bandwidth test exchange their results and close; ib_write_lat only closes. */
static int finish_perftest(struct perf_client *p)
{
    bool reports = perftest_reports(perf_op(p->config.op), p->config.latency);
    uint8_t mine[PERFTEST_REPORT][PERFTEST_VALUE], theirs[PERFTEST_VALUE];
    const struct traffic_result *done = &p->traffic.t.r;
    struct traffic_figures s;
    struct perftest_report report;
    int r = reports ? send_keys(p, 0, false) : 0;

    if (p->config.latency && p->config.op == TRAFFIC_WRITE)
        return 0;
    s = traffic_figures(&p->traffic.t, NULL);
    report = (struct perftest_report){p->config.size, done->completed, s.peak / (1 << 20), s.average / (1 << 20),
                                      s.rate / 1e6};
    perftest_report_put(mine, &report);
    for (unsigned i = 0; reports && i < PERFTEST_REPORT && r == 0; i++)
        r = swap(p, "the exchange of reports", mine[i], theirs, PERFTEST_VALUE);
    if (r == 0)
        r = p->ours ? ask_counts(p) : send_keys(p, 0, false);
    if (r == 0 && !p->rdma_cm) {
        p->step = "taking leave";
        r = chan_send(&p->chan, "done", PERFTEST_DONE);
        if (r == 0)
            r = chan_recv(&p->chan, theirs, PERFTEST_DONE);
    }
    return r;
}

/* --- Other exchanges -------------------------------------------------------------------------- */

static int setup_pingpong(struct perf_client *p)
{
    struct pingpong_addr own, peer;
    char text[PINGPONG_TEXT];
    int r;

    p->config.mtu = p->live->mtu;
    r = create_qps(p);
    if (r < 0)
        return r;
    p->step = "the TCP connection";
    r = chan_dial(&p->chan, p->live, p->host, p->port, p->timeout);
    own = (struct pingpong_addr){.qpn = p->traffic.qp[0].own.qpn, .psn = p->traffic.qp[0].own.psn};
    memcpy(own.gid, p->live->id.gid, 16);
    pingpong_addr_put(text, &own);
    if (r == 0)
        r = swap(p, "the exchange of addresses", text, text, PINGPONG_TEXT);
    if (r == 0 && !pingpong_addr_get(&peer, text))
        r = -EPROTO;
    if (r < 0)
        return r;
    p->traffic.qp[0].peer = (struct perftest_keys){.qpn = peer.qpn, .psn = peer.psn};
    memcpy(p->traffic.qp[0].peer.gid, peer.gid, 16);
    r = connect_all(p);
    return r == 0 ? chan_send(&p->chan, "done", PERFTEST_DONE) : r;
}

static int setup_by_hand(struct perf_client *p)
{
    int r;

    p->config.mtu = p->live->mtu;
    r = create_qps(p);
    if (r < 0)
        return r;
    p->traffic.qp[0].peer = p->by_hand;
    memcpy(p->traffic.qp[0].peer.gid, p->gid, 16);
    return connect_all(p);
}

/* --- The traffic ------------------------------------------------------------------------------ */

static uint64_t progress_of(const struct perf *l)
{
    return l->t.r.completed + l->t.r.samples;
}

static int run(struct perf_client *p)
{
    struct perf *l = &p->traffic;
    ns_t deadline = live_now() + p->timeout, show = 0;
    uint64_t last = UINT64_MAX;
    int r = 0;

    p->step = "the traffic";
    perf_start(l, live_now());
    while (r == 0 && !perf_done(l)) {
        ns_t now = live_now(), when = perf_poll(l, now);
        if (perf_done(l))
            break;
        if (progress_of(l) != last) {
            last = progress_of(l);
            deadline = now + (p->interrupted ? DRAIN_WAIT : p->timeout);
        } else if (now >= deadline && perf_paced(l) > now) {
            deadline = perf_paced(l) + p->timeout;
        } else if (now >= deadline) {
            l->t.r.gave_up = true;
            why_set(l->why, "nothing came for %.0f s", (double)p->timeout / 1e9);
        }
        if (p->progress && now >= show) {
            p->progress(p->user, l);
            show = now + PROGRESS_STEP;
        }
        if (p->progress && show < when)
            when = show;
        r = live_step(p->live, when < deadline ? when : deadline);
        if (r == -EINTR && !p->interrupted) {
            p->interrupted = true;
            live_go_on();
            l->t.until = 0;
            deadline = now + DRAIN_WAIT;
            r = 0;
        }
    }
    return r;
}

int perf_client_run(struct perf_client *p)
{
    int r;

    p->chan.fd = -1;
    r = p->exchange == PERF_PERFTEST   ? setup_perftest(p)
        : p->exchange == PERF_PINGPONG ? setup_pingpong(p)
                                       : setup_by_hand(p);
    if (r == 0 && p->joined)
        p->joined(p->user, &p->traffic);
    if (r == 0)
        r = run(p);
    if (r == 0 && !*p->traffic.why && p->exchange == PERF_PERFTEST)
        r = finish_perftest(p);
    if (p->id)
        disconnect_all(p);
    for (ns_t end = live_now() + LINGER; r == 0 && live_now() < end;)
        r = live_step(p->live, end);
    return r;
}

void perf_client_free(struct perf_client *p)
{
    for (unsigned i = 0; p->id && i <= p->config.qps; i++)
        rdmacm_id_destroy(cm_of(p), p->id[i], live_now());
    free(p->id);
    chan_close(&p->chan);
    perf_free(&p->traffic);
    if (p->control.verbs)
        rchan_free(&p->control);
}
