/* layer 3 (verbs) tests: programs over a provider that is not an endpoint itself: between two simulated hosts, in
 * virtual time, each through a recorder. */
#include "gen/peers/perf_run.h"
#include "gen/peers/pingpong.h"
#include "gen/peers/rping.h"
#include "gen/peers/ucmatose.h"
#include "gen/sim/sim.h"
#include "tests/unit/recorder.h"

#include <criterion/criterion.h>
#include <errno.h>

#define STEPS 1000000

/* Two hosts, and what they run. */
static struct rig {
    struct sim s;
    struct recorder host[NET_HOSTS]; /* provider of each */
    void (*turn)(ns_t now);          /* both programs poll their completions and continue */
} rig;

static ns_t run(void *user, ns_t now)
{
    (void)user;
    if (rig.turn)
        rig.turn(now);
    return NS_NEVER;
}

static void open_hosts(void)
{
    struct sim_app app = {.run = run};
    struct sim_config c;

    memset(&rig, 0, sizeof rig);
    sim_config_init(&c, 1);
    c.no_cm = true;
    cr_assert_eq(sim_init(&rig.s, &c, &app), 0);
    for (unsigned h = 0; h < NET_HOSTS; h++)
        recorder_open(&rig.host[h], ep_verbs(rig.s.ep[h]));
}

/* No program misused its provider, and none leaked an object. */
static void close_hosts(void)
{
    for (unsigned h = 0; h < NET_HOSTS; h++) {
        const struct recorder *r = &rig.host[h];
        cr_expect_gt(r->posts, 0);
        cr_expect_eq(r->unknown, 0);
        cr_expect_eq(r->too_many, 0);
        cr_expect_eq(r->qps, 0);
        cr_expect_eq(r->regions, 0);
        cr_expect_eq(r->handles, 0);
    }
    sim_free(&rig.s);
}

static struct verbs *verbs(unsigned h)
{
    return &rig.host[h].verbs;
}

/* Advance the time until nothing is left to do. */
static void go(void (*turn)(ns_t now))
{
    unsigned n = 0;

    rig.turn = turn;
    while (n < STEPS && sim_step(&rig.s, 10 * NS_PER_S))
        n++;
    cr_assert_lt(n, STEPS);
}

/* Join two queue pairs. */
static void join(const int qp[NET_HOSTS])
{
    for (unsigned h = 0; h < NET_HOSTS; h++) {
        struct ep_peer p = ep_peer_default();
        p.av = sim_path(&rig.s, h);
        p.qpn = verbs_qp_num(verbs(h ^ 1), qp[h ^ 1]);
        p.sq_psn = 100 + h;
        p.rq_psn = 100 + (h ^ 1);
        cr_assert_eq(verbs_qp_connect(verbs(h), qp[h], &p, rig.s.now), 0);
    }
}

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
            av = sim_path(&rig.s, h);
            cr_assert_eq(pingpong_connect(&pong[h], i, &own, &peer, &av, 1024, 0), 0);
        }
    for (unsigned h = 0; h < NET_HOSTS; h++)
        pingpong_ready(&pong[h], 0);
    pingpong_start(&pong[0], 0);
    go(pong_turn);
    for (unsigned h = 0; h < NET_HOSTS; h++) {
        cr_expect_not(pong[h].failed, "%s", pong[h].why);
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
    *av = sim_path(&rig.s, 1);
    return memcmp(gid, rig.s.addr[0].gid, 16) == 0;
}

static void play_matose(bool ud)
{
    struct matose_config c = {.ud = ud, .validate = true, .size = 100, .count = 10, .path = way_back};
    struct av av = sim_path(&rig.s, 0);

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
        cr_expect_not(matose[h].failed, "%s", matose[h].why);
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

/* --- Misuse ----------------------------------------------------------------------------------- */

static int a_queue_pair(struct verbs *v, uint32_t max_send_wr)
{
    int cq = verbs_cq_create(v, 16);
    struct verbs_qp_init init = {.type = QPT_RC,
                                 .max_send_wr = max_send_wr,
                                 .max_recv_wr = 4,
                                 .sq_sig_all = true,
                                 .srq = EP_NO_SRQ,
                                 .send_cq = cq,
                                 .recv_cq = cq,
                                 .pd = verbs_pd_alloc(v)};

    return verbs_qp_create(v, &init);
}

Test(provider, a_queue_pair_that_does_not_exist_is_refused_and_noticed, .init = open_hosts)
{
    struct send_wr wr = {.opcode = WR_SEND};
    struct verbs *v = verbs(0);
    int qp = a_queue_pair(v, 4);

    cr_assert_geq(qp, 0);
    cr_expect_eq(verbs_post_send(v, qp + 1, &wr, 0), -EINVAL);
    cr_expect_eq(verbs_qp_num(v, qp + 1), 0);
    cr_expect_eq(verbs_qp_state(v, -1), -EINVAL);
    cr_expect_eq(verbs_qp_hold(v, qp + 1, 0), -EINVAL);
    cr_expect_eq(rig.host[0].unknown, 4);
    cr_expect_eq(verbs_qp_destroy(v, qp), 0);
    cr_expect_eq(verbs_post_send(v, qp, &wr, 0), -EINVAL, "it was destroyed");
    cr_expect_eq(rig.host[0].unknown, 5);
    sim_free(&rig.s);
}

Test(provider, more_posts_than_a_queue_holds_are_refused_and_noticed, .init = open_hosts)
{
    struct send_wr wr = {.opcode = WR_SEND};
    int qp[NET_HOSTS];

    for (unsigned h = 0; h < NET_HOSTS; h++)
        cr_assert_geq(qp[h] = a_queue_pair(verbs(h), 4), 0);
    join(qp);
    for (unsigned i = 0; i < 4; i++)
        cr_assert_eq(verbs_post_send(verbs(0), qp[0], &wr, 0), 0);
    cr_expect_eq(rig.host[0].too_many, 0);
    cr_expect_eq(verbs_post_send(verbs(0), qp[0], &wr, 0), -ENOMEM);
    cr_expect_eq(rig.host[0].too_many, 1);
    sim_free(&rig.s);
}

/* --- perftest's traffic ----------------------------------------------------------------------- */

#define SIZE  3000
#define ITERS 40
#define RECVS 64

static struct load load;
static struct receives at_server; /* where SENDs go */
static uint64_t arrived, wrong;   /* SENDs */
static int server_cq;

static void load_turn(ns_t now)
{
    struct wc wc;

    while (verbs_poll(verbs(1), server_cq, &wc, 1) == 1) {
        uint32_t len;
        const uint8_t *data = receives_data(&at_server, wc.wr_id, &wc, &len);
        arrived++;
        wrong += wc.status != WC_SUCCESS || len != SIZE || !load_pattern_ok(data, len);
        receives_post(&at_server, wc.wr_id, now);
    }
    if (!load_done(&load))
        load_poll(&load, now);
}

/* A server's queue pair: memory for WRITEs, READs and atomics, and receives. */
static int open_server(uint8_t *mem, uint32_t *key)
{
    struct verbs *v = verbs(1);
    struct verbs_qp_init init = {
        .type = QPT_RC, .max_recv_wr = RECVS, .srq = EP_NO_SRQ, .pd = verbs_pd_alloc(v), .max_dest_rd = 16};

    server_cq = init.send_cq = init.recv_cq = verbs_cq_create(v, 2 * RECVS);
    cr_assert_eq(verbs_mr_reg(v, init.pd, mem, SIZE * (RECVS + 1), ACCESS_LOCAL_WRITE | ACCESS_REMOTE, key), 0);
    at_server = (struct receives){.verbs = v,
                                  .qp = verbs_qp_create(v, &init),
                                  .srq = EP_NO_SRQ,
                                  .mem = mem + SIZE,
                                  .iova = (uintptr_t)mem + SIZE,
                                  .lkey = *key,
                                  .pitch = SIZE,
                                  .bytes = SIZE,
                                  .slots = RECVS};
    return at_server.qp;
}

static void play_load(enum traffic_op op)
{
    static uint8_t mem[SIZE * (RECVS + 1)] __attribute__((aligned(8)));
    bool atomic = op == TRAFFIC_CAS || op == TRAFFIC_FAA;
    struct load_config c = {.op = (uint8_t)op,
                            .type = QPT_RC,
                            .size = atomic ? 8 : SIZE,
                            .qps = 1,
                            .iters = ITERS,
                            .depth = 8,
                            .batch = 4,
                            .outs = 4,
                            .validate = true,
                            .known = true,
                            .mtu = 1024};
    struct av av = sim_path(&rig.s, 0);
    struct ep_peer p = ep_peer_default();
    struct load_stats s;
    uint32_t key;
    int qp = open_server(mem, &key);

    cr_assert_geq(qp, 0);
    if (op == TRAFFIC_READ)
        load_pattern(mem, SIZE, LOAD_SEED);
    cr_assert_eq(load_init(&load, verbs(0), &c), 0);
    load.qp[0].peer =
        (struct perftest_keys){.qpn = verbs_qp_num(verbs(1), qp), .psn = 200, .rkey = key, .vaddr = (uintptr_t)mem};
    p.av = sim_path(&rig.s, 1);
    p.qpn = load.qp[0].own.qpn;
    p.rq_psn = load.qp[0].own.psn;
    p.sq_psn = 200;
    cr_assert_eq(verbs_qp_connect(verbs(1), qp, &p, 0), 0);
    cr_assert_eq(receives_post_all(&at_server, 0), 0);
    cr_assert_eq(load_connect(&load, 0, &av, 0), 0);
    load_ready(&load, 0);
    load_start(&load, 0);
    go(load_turn);
    cr_expect(load_done(&load));
    cr_expect_not(load.failed, "%s", load.why);
    load_result(&load, -1, &s);
    cr_expect_eq(s.messages, ITERS);
    cr_expect_eq(s.mismatches, 0);
    cr_expect_eq(s.compared, op == TRAFFIC_SEND ? 0 : op == TRAFFIC_WRITE ? 1 : ITERS);
    cr_expect_geq(s.min, 2.0, "a microsecond there and one back");
    cr_expect_eq(arrived, op == TRAFFIC_SEND ? ITERS : 0);
    cr_expect_eq(wrong, 0);
    load_free(&load);
    verbs_qp_destroy(verbs(1), qp);
    verbs_mr_dereg(verbs(1), key);
}

Test(provider, perftest_client_sends, .init = open_hosts, .fini = close_hosts)
{
    play_load(TRAFFIC_SEND);
}

Test(provider, perftest_client_writes_and_reads_back, .init = open_hosts, .fini = close_hosts)
{
    play_load(TRAFFIC_WRITE);
}

Test(provider, perftest_client_reads, .init = open_hosts, .fini = close_hosts)
{
    play_load(TRAFFIC_READ);
}

Test(provider, perftest_client_compares_and_swaps, .init = open_hosts, .fini = close_hosts)
{
    play_load(TRAFFIC_CAS);
}

Test(provider, perftest_client_fetches_and_adds, .init = open_hosts, .fini = close_hosts)
{
    play_load(TRAFFIC_FAA);
}
