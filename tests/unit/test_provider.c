/* layer 3 (verbs) tests: programs over a provider that is not an endpoint itself: between two simulated hosts, in
 * virtual time, each through a recorder; with RDMA-CM, too. */
#include "gen/peers/pingpong.h"
#include "gen/peers/rping.h"
#include "gen/peers/ucmatose.h"
#include "tests/unit/provider_rig.h"

#include <errno.h>

/* --- rping ------------------------------------------------------------------------------------ */

#define PINGS 5

static struct rping ping[NET_HOSTS];

static void ping_turn(ns_t now)
{
    rping_poll(&ping[1], now);
    if (rping_poll(&ping[0], now) && ping[0].done < PINGS)
        rping_start(&ping[0], now);
}

Test(provider, rping_client_and_server_run_in_virtual_time, .init = open_hosts, .fini = close_hosts)
{
    for (unsigned h = 0; h < NET_HOSTS; h++)
        cr_assert_eq(rping_init(&ping[h], verbs(h), h == 1, 5000, true), 0);
    join((int[]){ping[0].qp, ping[1].qp});
    for (unsigned h = 0; h < NET_HOSTS; h++)
        rping_ready(&ping[h], 0);
    rping_start(&ping[0], 0);
    go(ping_turn);
    for (unsigned h = 0; h < NET_HOSTS; h++) {
        cr_expect_neq(ping[h].state, RPING_FAILED, "%s", ping[h].why);
        cr_expect_eq(ping[h].done, PINGS);
        cr_expect_eq(ping[h].got, 5000);
        cr_expect_eq(ping[h].mismatches, 0);
    }
    cr_expect_geq(ping[0].took, 8 * NS_PER_US); /* in virtual time: eight one-way delays of a microsecond */
    for (unsigned h = 0; h < NET_HOSTS; h++)
        rping_free(&ping[h]);
}

/* --- ibv_*_pingpong --------------------------------------------------------------------------- */

static struct pingpong pong[NET_HOSTS];

static void pong_turn(ns_t now)
{
    for (unsigned h = 0; h < NET_HOSTS; h++)
        pingpong_poll(&pong[h], now);
}

static void play_pingpong(struct pingpong_config c)
{
    struct av av;

    for (unsigned h = 0; h < NET_HOSTS; h++) {
        c.client = h == 0;
        cr_assert_eq(pingpong_init(&pong[h], verbs(h), &c), 0);
    }
    for (unsigned i = 0; i < c.qps; i++)
        for (unsigned h = 0; h < NET_HOSTS; h++) {
            struct pingpong_addr own = {.psn = 7 + h}, peer = {.qpn = pong[h ^ 1].q[i].qpn, .psn = 7 + (h ^ 1)};
            av = sim_path(&rig.s, h, 1);
            cr_assert_eq(pingpong_connect(&pong[h], i, &own, &peer, &av, 1024, 0), 0);
        }
    for (unsigned h = 0; h < NET_HOSTS; h++)
        pingpong_ready(&pong[h], 0);
    pingpong_start(&pong[0], 0);
    go(pong_turn);
    for (unsigned h = 0; h < NET_HOSTS; h++) {
        cr_expect_str_eq(pong[h].why, "");
        cr_expect(pingpong_done(&pong[h]));
        cr_expect_eq(pong[h].mismatches, 0);
        pingpong_free(&pong[h]);
    }
}

Test(provider, pingpong_runs_over_rc, .init = open_hosts, .fini = close_hosts)
{
    play_pingpong((struct pingpong_config){
        .type = QPT_RC, .qps = 1, .size = 4096, .iters = 50, .recvs = PINGPONG_RECVS, .validate = true});
}

Test(provider, pingpong_runs_over_uc, .init = open_hosts, .fini = close_hosts)
{
    play_pingpong((struct pingpong_config){
        .type = QPT_UC, .qps = 1, .size = 3000, .iters = 50, .recvs = PINGPONG_RECVS, .validate = true});
}

Test(provider, pingpong_runs_over_ud, .init = open_hosts, .fini = close_hosts)
{
    play_pingpong((struct pingpong_config){
        .type = QPT_UD, .qps = 1, .size = 1000, .iters = 50, .recvs = PINGPONG_RECVS, .validate = true});
}

Test(provider, pingpong_runs_over_a_shared_receive_queue, .init = open_hosts, .fini = close_hosts)
{
    play_pingpong((struct pingpong_config){
        .type = QPT_RC, .srq = true, .qps = 3, .size = 100, .iters = 60, .recvs = 64, .validate = true});
}

/* --- ucmatose, udaddy ------------------------------------------------------------------------- */

static struct matose matose[NET_HOSTS];

static void matose_turn(ns_t now)
{
    for (unsigned h = 0; h < NET_HOSTS; h++)
        matose_poll(&matose[h], now);
}

static bool way_back(void *user, const uint8_t gid[16], struct av *av)
{
    (void)user;
    *av = sim_path(&rig.s, 1, 1);
    return memcmp(gid, rig.s.addr[0].gid, 16) == 0;
}

static void play_matose(bool ud)
{
    struct matose_config c = {.ud = ud, .validate = true, .size = 100, .count = 10, .path = way_back};
    struct av av = sim_path(&rig.s, 0, 1);

    for (unsigned h = 0; h < NET_HOSTS; h++) {
        c.passive = h == 1;
        cr_assert_eq(matose_init(&matose[h], verbs(h), &c), 0);
        if (ud)
            cr_assert_eq(matose_open_ud(&matose[h], 100, 0), 0);
    }
    if (ud) {
        cr_assert_eq(matose_peer(&matose[0], &av, verbs_qp_num(verbs(1), matose[1].qp), MATOSE_QKEY), 0);
    } else {
        join((int[]){matose[0].qp, matose[1].qp});
        for (unsigned h = 0; h < NET_HOSTS; h++)
            matose_ready(&matose[h], 0);
    }
    for (unsigned h = 0; h < NET_HOSTS; h++)
        matose_start(&matose[h], 0);
    go(matose_turn);
    for (unsigned h = 0; h < NET_HOSTS; h++) {
        cr_expect_str_eq(matose[h].why, "");
        cr_expect(matose_done(&matose[h]));
        cr_expect_eq(matose[h].mismatches, 0);
        matose_free(&matose[h]);
    }
}

Test(provider, ucmatose_runs_in_virtual_time, .init = open_hosts, .fini = close_hosts)
{
    play_matose(false);
}

Test(provider, udaddy_learns_its_peer_from_the_network_header, .init = open_hosts, .fini = close_hosts)
{
    play_matose(true);
}

/* --- Connection management -------------------------------------------------------------------- */

#define PORT 7174

/* A program of each host that uses RDMA-CM, as the live commands do. */
static struct agent {
    int channel, listener, id;
    unsigned seen[RDMACM_TIMEWAIT_EXIT + 1]; /* events by type */
    struct rdmacm_event last[RDMACM_TIMEWAIT_EXIT + 1];
    struct rdmacm_param own;
    void (*asked)(int id); /* answers a request; NULL: it stays without an answer */
} agent[NET_HOSTS];

static struct rdmacm *cm(unsigned h)
{
    return verbs(h)->cm;
}

static void open_cm_hosts_at(bool ipv6)
{
    open_rig_at(false, ipv6);
    memset(agent, 0, sizeof agent);
    for (unsigned h = 0; h < NET_HOSTS; h++) {
        agent[h].channel = rdmacm_channel_create(cm(h));
        agent[h].id = agent[h].listener = -1;
        agent[h].own =
            (struct rdmacm_param){.qp = -1, .access = ACCESS_REMOTE, .responder_resources = 1, .initiator_depth = 1};
        cr_assert_geq(agent[h].channel, 0);
    }
}

static void open_cm_hosts(void)
{
    open_cm_hosts_at(false);
}

static void open_ipv6_hosts(void)
{
    open_cm_hosts_at(true);
}

static void free_hosts(void)
{
    sim_free(&rig.s);
}

Test(provider, each_channel_is_another_one_until_none_is_left, .init = open_cm_hosts, .fini = free_hosts)
{
    int channel[64], n = 0, more;

    while (n < 64 && (more = rdmacm_channel_create(cm(0))) >= 0) {
        cr_expect_neq(more, agent[0].channel);
        for (int i = 0; i < n; i++)
            cr_expect_neq(more, channel[i]);
        channel[n++] = more;
    }
    cr_expect(n > 1 && n < 64, "%d channels", n);
    cr_expect_eq(more, -ENOMEM);
    cr_assert_eq(rdmacm_channel_destroy(cm(0), channel[0]), 0);
    cr_expect_eq(rdmacm_channel_create(cm(0)), channel[0]);
}

/* Take the events of both hosts: the client connects once the path is known, the server answers requests. */
static void take_events(ns_t now)
{
    for (unsigned h = 0; h < NET_HOSTS; h++) {
        struct agent *a = &agent[h];
        struct rdmacm_event e;
        while (rdmacm_get_event(cm(h), a->channel, &e)) {
            a->seen[e.type]++;
            a->last[e.type] = e;
            cr_expect(e.type > RDMACM_ROUTE_RESOLVED || e.qpn == 0, "the peer's queue pair is not known yet: 0x%x",
                      e.qpn);
            if (e.type == RDMACM_ROUTE_RESOLVED && a->own.qp >= 0)
                cr_assert_eq(rdmacm_connect(cm(h), e.id, &a->own, now), 0);
            if (e.type != RDMACM_CONNECT_REQUEST)
                continue;
            cr_expect_eq(e.listen_id, a->listener);
            cr_expect_arr_eq(e.gid, rig.s.addr[h ^ 1].gid, 16);
            if (a->asked)
                a->asked(e.id);
        }
    }
}

static void listen_at(unsigned h, uint8_t ps, unsigned backlog)
{
    agent[h].listener = rdmacm_id_create(cm(h), agent[h].channel, ps);
    cr_assert_geq(agent[h].listener, 0);
    cr_assert_eq(rdmacm_listen(cm(h), agent[h].listener, PORT, backlog), 0);
}

/* Host 0 looks for the service at `port` of host 1: its id. */
static int look_for(uint8_t ps, uint16_t port)
{
    int id = rdmacm_id_create(cm(0), agent[0].channel, ps);

    cr_assert_geq(id, 0);
    cr_assert_eq(rdmacm_resolve(cm(0), id, rig.s.addr[1].gid, port, NS_PER_S, rig.s.now), 0);
    return agent[0].id = id;
}

/* Accept with the queue pair of host 1. */
static void accept_it(int id)
{
    agent[1].id = id;
    cr_assert_eq(rdmacm_accept(cm(1), id, &agent[1].own, rig.s.now), 0);
}

static void reject_it(int id)
{
    cr_assert_eq(rdmacm_reject(cm(1), id, CM_REJ_NO_RESOURCES, "full", 4, rig.s.now), 0);
    cr_assert_eq(rdmacm_id_destroy(cm(1), id, rig.s.now), 0);
}

/* Destroy what connections were made of, before the queue pairs. */
static void destroy_ids(void)
{
    for (unsigned h = 0; h < NET_HOSTS; h++) {
        if (agent[h].id >= 0)
            cr_expect_eq(rdmacm_id_destroy(cm(h), agent[h].id, rig.s.now), 0);
        if (agent[h].listener >= 0)
            cr_expect_eq(rdmacm_id_destroy(cm(h), agent[h].listener, rig.s.now), 0);
        cr_expect_eq(rdmacm_channel_destroy(cm(h), agent[h].channel), 0);
    }
}

static void cm_ping_turn(ns_t now)
{
    static bool ready[NET_HOSTS];
    bool begun = ping[0].state != RPING_IDLE || ping[0].done;

    take_events(now);
    for (unsigned h = 0; h < NET_HOSTS; h++)
        if (!ready[h] && verbs_qp_takes_receives(verbs(h), ping[h].qp)) {
            ready[h] = true;
            rping_ready(&ping[h], now);
        }
    if (agent[0].seen[RDMACM_ESTABLISHED] && !begun)
        rping_start(&ping[0], now);
    if (agent[0].seen[RDMACM_DISCONNECTED] + agent[1].seen[RDMACM_DISCONNECTED] == 0) /* else receives are flushed */
        ping_turn(now);
    if (ping[0].done == PINGS && !agent[0].seen[RDMACM_DISCONNECTED])
        rdmacm_disconnect(cm(0), agent[0].id, now);
}

Test(provider, rping_connects_and_disconnects_by_rdma_cm, .init = open_cm_hosts, .fini = close_hosts)
{
    for (unsigned h = 0; h < NET_HOSTS; h++) {
        cr_assert_eq(rping_init(&ping[h], verbs(h), h == 1, 5000, true), 0);
        agent[h].own.qp = ping[h].qp;
    }
    agent[0].own.private_data = "hello";
    agent[0].own.private_len = 5;
    agent[1].own.private_data = "welcome";
    agent[1].own.private_len = 7;
    agent[1].asked = accept_it;
    listen_at(1, CM_PS_TCP, 1);
    look_for(CM_PS_TCP, PORT);
    go(cm_ping_turn);
    for (unsigned h = 0; h < NET_HOSTS; h++) {
        cr_expect_neq(ping[h].state, RPING_FAILED, "%s", ping[h].why);
        cr_expect_eq(ping[h].done, PINGS);
        cr_expect_eq(ping[h].mismatches, 0);
        cr_expect_eq(agent[h].seen[RDMACM_ESTABLISHED], 1);
        cr_expect_eq(agent[h].seen[RDMACM_DISCONNECTED], 1);
        cr_expect_eq(verbs_qp_state(verbs(h), ping[h].qp), QPS_ERR);
        cr_expect_eq(rdmacm_disconnect(cm(h), agent[h].id, 0), -ENOTCONN, "it is over");
    }
    cr_expect_eq(agent[0].seen[RDMACM_ROUTE_RESOLVED], 1);
    cr_expect_eq(agent[1].seen[RDMACM_CONNECT_REQUEST], 1);
    cr_expect_eq(agent[1].last[RDMACM_CONNECT_REQUEST].qpn, verbs_qp_num(verbs(0), ping[0].qp));
    cr_expect_eq(agent[0].last[RDMACM_ESTABLISHED].qpn, verbs_qp_num(verbs(1), ping[1].qp));
    cr_expect_eq(agent[1].last[RDMACM_CONNECT_REQUEST].responder_resources, 1);
    cr_expect_arr_eq(agent[1].last[RDMACM_CONNECT_REQUEST].private_data, "hello", 6);
    cr_expect_arr_eq(agent[0].last[RDMACM_ESTABLISHED].private_data, "welcome", 8);
    destroy_ids();
    for (unsigned h = 0; h < NET_HOSTS; h++)
        rping_free(&ping[h]);
}

static void accept_datagrams(int id)
{
    cr_assert_eq(matose_open_ud(&matose[1], 100, rig.s.now), 0);
    accept_it(id);
}

static void cm_matose_turn(ns_t now)
{
    const struct rdmacm_event *e = &agent[0].last[RDMACM_ESTABLISHED];

    take_events(now);
    if (agent[0].seen[RDMACM_ESTABLISHED] && matose[0].ah < 0) {
        cr_assert_eq(matose_peer(&matose[0], &e->av, e->qpn, e->qkey), 0);
        cr_assert_eq(matose_open_ud(&matose[0], 100, now), 0);
        matose_start(&matose[0], now);
    }
    matose_turn(now);
}

Test(provider, udaddy_resolves_its_service_by_rdma_cm, .init = open_cm_hosts, .fini = close_hosts)
{
    struct matose_config c = {.ud = true, .validate = true, .size = 100, .count = 10, .path = way_back};

    for (unsigned h = 0; h < NET_HOSTS; h++) {
        c.passive = h == 1;
        cr_assert_eq(matose_init(&matose[h], verbs(h), &c), 0);
        agent[h].own.qp = matose[h].qp;
        agent[h].own.qkey = MATOSE_QKEY;
    }
    agent[1].asked = accept_datagrams;
    listen_at(1, CM_PS_UDP, 1);
    look_for(CM_PS_UDP, PORT);
    go(cm_matose_turn);
    for (unsigned h = 0; h < NET_HOSTS; h++) {
        cr_expect_str_eq(matose[h].why, "");
        cr_expect(matose_done(&matose[h]));
        cr_expect_eq(matose[h].mismatches, 0);
    }
    destroy_ids();
    for (unsigned h = 0; h < NET_HOSTS; h++)
        matose_free(&matose[h]);
}

/* An id of host 0 asks for the service at `port`: the event with which it ends. */
static const struct rdmacm_event *ask_for(uint8_t ps, uint16_t port, enum rdmacm_event_type end)
{
    agent[0].own.qp = a_queue_pair(verbs(0), 4);
    look_for(ps, port);
    go(take_events);
    cr_assert_eq(agent[0].seen[RDMACM_ROUTE_RESOLVED], 1);
    cr_assert_eq(agent[0].seen[RDMACM_ESTABLISHED], 0);
    cr_assert_eq(agent[0].seen[end], 1);
    return &agent[0].last[end];
}

static void expect_why(const struct rdmacm_event *e, const char *text)
{
    char why[160];

    rdmacm_why(e, why, sizeof why);
    cr_expect_str_eq(why, text);
}

Test(provider, no_listener_refuses_a_connection, .init = open_cm_hosts)
{
    const struct rdmacm_event *e = ask_for(CM_PS_TCP, PORT, RDMACM_REJECTED);

    cr_expect_eq(e->status, CM_REJ_INVALID_SERVICE_ID);
    expect_why(e, "the connection was refused: invalid service id");
    sim_free(&rig.s);
}

Test(provider, no_listener_refuses_a_datagram_service, .init = open_cm_hosts)
{
    const struct rdmacm_event *e;

    listen_at(1, CM_PS_TCP, 1); /* of the other port space */
    e = ask_for(CM_PS_UDP, PORT, RDMACM_UNREACHABLE);
    cr_expect_eq(e->status, CM_SIDR_UNSUPPORTED);
    expect_why(e, "the service was refused: service id not supported");
    sim_free(&rig.s);
}

Test(provider, server_refuses_with_a_reason_and_private_data, .init = open_cm_hosts)
{
    const struct rdmacm_event *e;

    agent[1].asked = reject_it;
    listen_at(1, CM_PS_TCP, 1);
    e = ask_for(CM_PS_TCP, PORT, RDMACM_REJECTED);
    cr_expect_eq(e->status, CM_REJ_NO_RESOURCES);
    cr_expect_arr_eq(e->private_data, "full", 5);
    sim_free(&rig.s);
}

Test(provider, request_that_nobody_answers_times_out, .init = open_cm_hosts)
{
    listen_at(1, CM_PS_TCP, 1);
    agent[0].own.qp = a_queue_pair(verbs(0), 4);
    look_for(CM_PS_TCP, PORT);
    rig.turn = take_events;
    while (!agent[0].seen[RDMACM_UNREACHABLE] && sim_step(&rig.s, 1000 * NS_PER_S))
        continue;
    cr_assert_eq(agent[0].seen[RDMACM_UNREACHABLE], 1);
    cr_expect_eq(agent[0].last[RDMACM_UNREACHABLE].status, -ETIMEDOUT);
    expect_why(&agent[0].last[RDMACM_UNREACHABLE], "the connection manager of the peer does not answer");
    sim_free(&rig.s);
}

Test(provider, backlog_bounds_the_requests_without_an_answer, .init = open_cm_hosts)
{
    listen_at(1, CM_PS_TCP, 2);
    for (unsigned i = 0; i < 5; i++) {
        agent[0].own.qp = a_queue_pair(verbs(0), 4);
        look_for(CM_PS_TCP, PORT);
        rig.turn = take_events;
        for (unsigned n = 0; n < 100 && sim_step(&rig.s, rig.s.now + NS_PER_MS); n++)
            continue;
    }
    cr_expect_eq(agent[1].seen[RDMACM_CONNECT_REQUEST], 2);
    cr_expect_eq(agent[0].seen[RDMACM_REJECTED], 3);
    cr_expect_eq(agent[0].last[RDMACM_REJECTED].status, CM_REJ_NO_RESOURCES);
    sim_free(&rig.s);
}

Test(provider, destroying_an_id_refuses_its_request, .init = open_cm_hosts)
{
    const struct rdmacm_event *e;

    listen_at(1, CM_PS_TCP, 1);
    agent[0].own.qp = a_queue_pair(verbs(0), 4);
    look_for(CM_PS_TCP, PORT);
    rig.turn = take_events;
    while (!agent[1].seen[RDMACM_CONNECT_REQUEST] && sim_step(&rig.s, NS_PER_S))
        continue;
    e = &agent[1].last[RDMACM_CONNECT_REQUEST];
    cr_expect_eq(rdmacm_channel_destroy(cm(1), agent[1].channel), -EBUSY);
    cr_expect_eq(rdmacm_id_destroy(cm(1), e->id, rig.s.now), 0);
    cr_expect_eq(rdmacm_id_destroy(cm(1), e->id, rig.s.now), -EINVAL);
    go(take_events);
    cr_assert_eq(agent[0].seen[RDMACM_REJECTED], 1);
    cr_expect_eq(agent[0].last[RDMACM_REJECTED].status, CM_REJ_CONSUMER_DEFINED);
    sim_free(&rig.s);
}

Test(provider, an_ipv6_address_is_resolved_before_its_queue_pair_is_known, .init = open_ipv6_hosts, .fini = free_hosts)
{
    int id = rdmacm_id_create(cm(0), agent[0].channel, CM_PS_TCP);

    cr_assert_eq(rdmacm_resolve(cm(0), id, rig.s.addr[1].gid, PORT, NS_PER_S, 0), 0);
    go(take_events);
    cr_assert_eq(agent[0].seen[RDMACM_ROUTE_RESOLVED], 1);
    cr_expect_arr_eq(agent[0].last[RDMACM_ROUTE_RESOLVED].gid, rig.s.addr[1].gid, 16);
    cr_expect_eq(agent[0].last[RDMACM_ROUTE_RESOLVED].qpn, 0);
}

Test(provider, address_of_no_host_is_an_event, .init = open_cm_hosts)
{
    static const uint8_t nobody[16] = {[10] = 0xff, [11] = 0xff, 10, 9, 8, 7};
    int id = rdmacm_id_create(cm(0), agent[0].channel, CM_PS_TCP);

    cr_assert_eq(rdmacm_resolve(cm(0), id, nobody, PORT, NS_PER_S, 0), 0);
    go(take_events);
    cr_assert_eq(agent[0].seen[RDMACM_ADDR_ERROR], 1);
    cr_expect_eq(agent[0].last[RDMACM_ADDR_ERROR].status, -EHOSTUNREACH);
    cr_expect_eq(agent[0].last[RDMACM_ADDR_ERROR].id, id);
    sim_free(&rig.s);
}

Test(provider, calls_that_the_state_of_an_id_does_not_allow_fail, .init = open_cm_hosts)
{
    static const uint8_t data[RDMACM_PRIVATE_MAX];
    struct rdmacm_param own = {.qp = a_queue_pair(verbs(0), 4), .private_data = data, .private_len = 57};
    int id = rdmacm_id_create(cm(0), agent[0].channel, CM_PS_TCP), other;
    struct rdmacm_event e;

    cr_expect_eq(rdmacm_connect(cm(0), id, &own, 0), -EINVAL, "no path yet");
    cr_expect_eq(rdmacm_accept(cm(0), id, &own, 0), -EINVAL, "no request");
    cr_expect_eq(rdmacm_reject(cm(0), id, CM_REJ_NO_QP, NULL, 0, 0), -EINVAL, "no request");
    cr_expect_eq(rdmacm_disconnect(cm(0), id, 0), -ENOTCONN);
    cr_assert_eq(rdmacm_resolve(cm(0), id, rig.s.addr[1].gid, PORT, NS_PER_S, 0), 0);
    cr_expect_eq(rdmacm_resolve(cm(0), id, rig.s.addr[1].gid, PORT, NS_PER_S, 0), -EINVAL, "twice");
    cr_expect_eq(rdmacm_listen(cm(0), id, PORT, 1), -EINVAL, "it is active");
    cr_expect_eq(rdmacm_connect(cm(0), id, &own, 0), -EINVAL, "a REQ has room for 56 bytes of private data");
    other = rdmacm_id_create(cm(0), agent[0].channel, CM_PS_TCP);
    cr_expect_eq(rdmacm_listen(cm(0), other, PORT, 1), 0);
    cr_expect_eq(rdmacm_listen(cm(0), rdmacm_id_create(cm(0), agent[0].channel, CM_PS_TCP), PORT, 1), -EADDRINUSE);
    cr_expect_eq(rdmacm_listen(cm(0), rdmacm_id_create(cm(0), agent[0].channel, CM_PS_UDP), PORT, 1), 0);
    cr_expect_eq(rdmacm_id_create(cm(0), agent[0].channel, CM_PS_IB), -EINVAL);
    cr_expect_eq(rig.host[0].unknown_id, 0);
    cr_expect_eq(rdmacm_id_create(cm(0), agent[0].channel + 1, CM_PS_TCP), -EINVAL);
    cr_expect_not(rdmacm_get_event(cm(0), agent[0].channel + 1, &e));
    cr_expect_eq(rdmacm_disconnect(cm(0), 60, 0), -EINVAL);
    cr_expect_eq(rig.host[0].unknown_id, 3);
    cr_expect(rdmacm_get_event(cm(0), agent[0].channel, &e), "the path was resolved");
    cr_expect_not(rdmacm_get_event(cm(0), agent[0].channel, &e));
    sim_free(&rig.s);
}

Test(provider, queue_pair_that_goes_before_its_id_is_noticed, .init = open_cm_hosts)
{
    agent[0].own.qp = a_queue_pair(verbs(0), 4);
    look_for(CM_PS_TCP, PORT);
    take_events(0);
    cr_expect_eq(verbs_qp_destroy(verbs(0), agent[0].own.qp), 0);
    cr_expect_eq(rig.host[0].bereft, 1);
    sim_free(&rig.s);
}

Test(provider, host_without_a_connection_manager_has_no_table_of_its_calls, .init = open_hosts)
{
    cr_expect_null(verbs(0)->cm);
    sim_free(&rig.s);
}
