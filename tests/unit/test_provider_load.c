/* layer 3 (verbs) tests: perftest's traffic over a provider that is not an endpoint itself. */
#include "gen/peers/perf.h"
#include "tests/unit/provider_rig.h"

#define SIZE  3000
#define ITERS 40
#define RECVS 64

static struct perf perf;
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
        wrong += wc.status != WC_SUCCESS || len != SIZE || !perf_pattern_ok(data, len);
        receives_post(&at_server, wc.wr_id, now);
    }
    if (!perf_done(&perf))
        perf_poll(&perf, now);
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
    struct traffic_config c = {.op = (uint8_t)op,
                               .type = QPT_RC,
                               .size = atomic ? 8 : SIZE,
                               .qps = 1,
                               .iters = ITERS,
                               .tx_depth = 8,
                               .batch = 4,
                               .verify = true,
                               .outs = 4,
                               .known = true,
                               .mtu = 1024};
    struct av av = sim_path(&rig.s, 0, 1);
    struct ep_peer p = ep_peer_default();
    const struct traffic_result *r = &perf.t.r;
    uint32_t key;
    int qp = open_server(mem, &key);

    cr_assert_geq(qp, 0);
    if (op == TRAFFIC_READ)
        perf_pattern(mem, SIZE, PERF_SEED);
    cr_assert_eq(perf_init(&perf, verbs(0), &c), 0);
    perf.qp[0].peer =
        (struct perftest_keys){.qpn = verbs_qp_num(verbs(1), qp), .psn = 200, .rkey = key, .vaddr = (uintptr_t)mem};
    p.av = sim_path(&rig.s, 1, 1);
    p.qpn = perf.qp[0].own.qpn;
    p.rq_psn = perf.qp[0].own.psn;
    p.sq_psn = 200;
    cr_assert_eq(verbs_qp_connect(verbs(1), qp, &p, 0), 0);
    cr_assert_eq(receives_post_all(&at_server, 0), 0);
    cr_assert_eq(perf_connect(&perf, 0, &av, 0), 0);
    perf_ready(&perf, 0);
    perf_start(&perf, 0);
    go(load_turn);
    cr_expect(perf_done(&perf));
    cr_expect_str_eq(perf.why, "");
    cr_expect_eq(r->completed, ITERS);
    cr_expect_eq(r->mismatches, 0);
    cr_expect_eq(r->compared, op == TRAFFIC_SEND ? 0 : op == TRAFFIC_WRITE ? 1 : ITERS);
    cr_expect_geq(r->min, 2 * NS_PER_US, "a microsecond there and one back");
    cr_expect_eq(arrived, op == TRAFFIC_SEND ? ITERS : 0);
    cr_expect_eq(wrong, 0);
    perf_free(&perf);
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
