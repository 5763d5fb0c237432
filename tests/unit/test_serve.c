/* layer 3 tests: the server for clients of perftest: hostile messages over TCP, and the limits of what one client can
 * take. */
#include "gen/peers/perf_client.h"
#include "gen/peers/pingpong.h"
#include "gen/peers/serve_impl.h"
#include "tests/unit/patience.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define WAIT (2 * NS_PER_S) /* a busy machine may well stop for a while */

static struct live far, near; /* near serves */
static struct serve server;
static uint16_t port;

static void open_live(struct live *l, const char *addr)
{
    struct live_config c = {.backend = "memory:serve", .addr = addr, .seed = 1};
    struct live_error err = {""};

    cr_assert_eq(live_open(l, &c, &err), 0, "%s", err.msg);
}

static void open_server(void)
{
    struct serve_config c = {.room = 65536, .size = 2, .wait = WAIT};

    memset(&server, 0, sizeof server);
    open_live(&near, "10.0.0.2");
    open_live(&far, "10.0.0.1");
    for (c.port = 28601; c.port < 28700; c.port++) /* one that is free */
        if (serve_open(&server, &near, &c) == 0)
            break;
    port = c.port;
    cr_assert(server.listener >= 0);
}

static void close_server(void)
{
    serve_close(&server);
    cr_assert_eq(server.memory, 0);
    live_close(&near);
    live_close(&far);
}

static int dial(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int s = socket(AF_INET, SOCK_STREAM, 0);

    cr_assert_eq(connect(s, (struct sockaddr *)&a, sizeof a), 0);
    return s;
}

static void turn(void)
{
    cr_assert_eq(live_step(&far, 0), 0);
    cr_assert_eq(live_step(&near, 0), 0);
    serve_poll(&server, live_now());
}

static void say(int s, const void *p, size_t len)
{
    ssize_t n = send(s, p, len, MSG_NOSIGNAL);

    (void)n; /* the server may have closed */
    turn();
}

/* Receive the next message of the server, at most `len` bytes; 0 if none comes. */
static size_t hear(int s, void *p, size_t len)
{
    for (ns_t end = live_now() + 5 * NS_PER_S; live_now() < end; turn()) {
        ssize_t n = recv(s, p, len, MSG_DONTWAIT);
        if (n > 0)
            return (size_t)n;
        if (n == 0)
            return 0;
    }
    return 0;
}

/* Exchange everything before the keys. */
static void introduce(int s)
{
    static const uint8_t words[] = {'6', '.', '0', '6', 0, 0,  0, 0, 0, 0, 0,  0,   0,
                                    0,   0,   0,   0,   0, 16, 0, 0, 0, 0, 64, '3', 0};
    uint8_t got[64];
    size_t n = 0;

    say(s, words, sizeof words);
    while (n < sizeof words) {
        size_t k = hear(s, got + n, sizeof got - n);
        cr_assert(k > 0, "only %zu bytes came", n);
        n += k;
    }
    cr_assert_eq(n, sizeof words);
    cr_assert_eq(got[n - 2], '5'); /* the server's own path MTU */
}

static void finish(void)
{
    ns_t end = live_now() + 10 * NS_PER_S;

    while (serve_active(&server) && live_now() < end)
        turn();
    cr_assert_eq(serve_active(&server), 0);
}

static struct perftest_keys keys_of(uint32_t qpn)
{
    struct perftest_keys k = {.out_reads = 1,
                              .qpn = qpn,
                              .psn = 7,
                              .rkey = 5,
                              .vaddr = 0x1000,
                              .gid = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 1}};

    return k;
}

static void greet(void)
{
    uint8_t frame[IDENTITY_FRAME_MAX];

    /* So that the server knows the MAC address of 10.0.0.1 without resolution. */
    for (unsigned i = 0; i < 100 && !identity_lookup(&near.id, far.id.gid, frame); i++) {
        backend_send(near.backend, frame, identity_ask(&near.id, far.id.gid, frame));
        turn();
    }
}

Test(serve, keys_are_answered_with_a_queue_pair_of_the_server, .init = open_server, .fini = close_server)
{
    struct perftest_keys k = keys_of(0x1234), mine;
    char text[PERFTEST_TEXT], got[PERFTEST_TEXT];
    int s = dial();

    greet();
    introduce(s);
    perftest_keys_put(text, &k);
    for (unsigned round = 0; round < 3; round++) {
        say(s, text, sizeof text);
        cr_assert_eq(hear(s, got, sizeof got), PERFTEST_TEXT);
        cr_assert(perftest_keys_get(&mine, got));
        cr_assert(mine.rkey != 0 && mine.vaddr != 0 && mine.qpn > 1);
        cr_assert_arr_eq(mine.gid, near.id.gid, 16);
        cr_assert_eq(server.session[0].n_qps, 1, "the same queue pair, told again");
    }
    say(s, "done", PERFTEST_DONE);
    cr_assert_eq(hear(s, got, sizeof got), PERFTEST_DONE);
    close(s);
    finish();
    cr_assert_eq(server.served, 1);
    cr_assert_eq(server.failed, 0);
}

/* The client's queue pair, joined with the one that the server tells of. */
static int join_client(uint32_t *key, uint8_t *mem, uint32_t len, int *cq, const struct perftest_keys *there, int qp)
{
    struct verbs *v = ep_verbs(far.ep);
    struct verbs_qp_init init = {.type = QPT_RC, .sq_sig_all = true, .srq = EP_NO_SRQ};
    struct ep_peer e = ep_peer_default();

    if (qp >= 0) {
        memcpy(e.av.dgid, there->gid, 16);
        memcpy(e.av.dmac, near.id.mac, 6);
        e.qpn = there->qpn;
        e.rq_psn = there->psn;
        e.sq_psn = 7;
        cr_assert_eq(verbs_qp_connect(v, qp, &e, live_now()), 0);
        return qp;
    }
    init.pd = verbs_pd_alloc(v);
    *cq = init.send_cq = init.recv_cq = verbs_cq_create(v, 16);
    cr_assert_eq(verbs_mr_reg(v, init.pd, mem, len, ACCESS_LOCAL_WRITE, key), 0);
    return verbs_qp_create(v, &init);
}

/* Where memory has an R_Key whatever its rights, perftest's SEND clients send one, too. */
Test(serve, sends_are_served_although_the_client_told_a_key, .init = open_server, .fini = close_server)
{
    static uint8_t mem[100] = "hello";
    struct perftest_keys k = keys_of(0), mine;
    char text[PERFTEST_TEXT], got[PERFTEST_TEXT];
    struct wc wc = {.status = WC_GENERAL_ERR};
    uint32_t key;
    int cq, qp = join_client(&key, mem, sizeof mem, &cq, NULL, -1), s = dial();
    struct sge sge;

    greet();
    introduce(s);
    k.qpn = verbs_qp_num(ep_verbs(far.ep), qp);
    perftest_keys_put(text, &k);
    say(s, text, sizeof text);
    cr_assert_eq(hear(s, got, sizeof got), PERFTEST_TEXT);
    cr_assert(perftest_keys_get(&mine, got));
    join_client(NULL, NULL, 0, NULL, &mine, qp);
    sge = (struct sge){(uintptr_t)mem, sizeof mem, key};
    cr_assert_eq(verbs_post_send(ep_verbs(far.ep), qp,
                                 &(struct send_wr){.opcode = WR_SEND, .sg_list = &sge, .num_sge = 1}, live_now()),
                 0);
    for (ns_t end = live_now() + WAIT; live_now() < end && verbs_poll(ep_verbs(far.ep), cq, &wc, 1) == 0; turn())
        ;
    cr_expect_eq(wc.status, WC_SUCCESS);
    turn();
    cr_expect_eq(server.session[0].kind, SERVE_SEND);
    cr_expect_eq(server.session[0].qp[0].received, 1);
    say(s, text, sizeof text);
    cr_assert_eq(hear(s, got, sizeof got), PERFTEST_TEXT);
    cr_expect_eq(server.session[0].kind, SERVE_SEND, "keys after the data change nothing");
    close(s);
    finish();
}

/* perftest 4.5, write_lat.c and ctx_connect(): with -c XRC the client tells its initiator A, then A and its target B,
 * and once more; our initiator answers A, and our target B. */
Test(serve, over_xrc_a_client_for_latency_has_a_queue_pair_in_each_direction, .init = open_server, .fini = close_server)
{
    static const uint32_t order[] = {0xa, 0xa, 0xb, 0xa, 0xb, 0xa};
    struct perftest_keys mine, of[2] = {{0}, {0}};
    char text[PERFTEST_TEXT], got[PERFTEST_TEXT];
    int s = dial();

    server.config.type = QPT_XRC_INI;
    server.config.latency = true;
    greet();
    introduce(s);
    for (unsigned i = 0; i < ARRAY_LEN(order); i++) {
        struct perftest_keys k = keys_of(order[i]), *first = &of[order[i] == 0xb];
        k.srqn = 0x77;
        perftest_keys_put(text, &k);
        say(s, text, sizeof text);
        cr_assert_eq(hear(s, got, sizeof got), PERFTEST_TEXT);
        cr_assert(perftest_keys_get(&mine, got));
        cr_assert(mine.rkey != 0 && mine.vaddr != 0 && mine.srqn != 0);
        cr_assert(first->qpn == 0 || memcmp(first, &mine, sizeof mine) == 0, "the same again");
        *first = mine;
    }
    cr_expect_neq(of[0].qpn, of[1].qpn);
    cr_expect_eq(of[0].srqn, of[1].srqn);
    cr_assert_eq(server.session[0].n_qps, 1);
    cr_expect_eq(ep_qp(near.ep, ep_qp_find(near.ep, of[0].qpn))->type, QPT_XRC_INI);
    cr_expect_eq(ep_qp(near.ep, ep_qp_find(near.ep, of[0].qpn))->attr.dest_qpn, 0xb);
    cr_expect_eq(ep_qp(near.ep, ep_qp_find(near.ep, of[1].qpn))->type, QPT_XRC_TGT);
    cr_expect_eq(ep_qp(near.ep, ep_qp_find(near.ep, of[1].qpn))->attr.dest_qpn, 0xa);
    close(s);
    finish();
    cr_expect_eq(ep_qp_find(near.ep, of[0].qpn), -ENOENT);
    cr_expect_eq(ep_srq_number(near.ep, 0), 0, "all is given back");
}

/* ibv_srq_pingpong sends 256 addresses, most of them zero, before it receives; the others send one. */
Test(serve, one_address_is_answered_by_one_and_many_by_many, .init = open_server, .fini = close_server)
{
    static char text[PINGPONG_QPS][PINGPONG_TEXT], got[PINGPONG_QPS][PINGPONG_TEXT];
    struct pingpong_addr a = {.qpn = 0x55, .psn = 7, .gid = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 1}}, none = {0}, mine;

    greet();
    for (unsigned n = 1; n <= PINGPONG_QPS; n += PINGPONG_QPS - 1) {
        int s = dial();
        size_t len = 0, k;
        for (unsigned i = 0; i < n; i++, a.qpn++)
            pingpong_addr_put(text[i], i < 3 ? &a : &none);
        say(s, text, (size_t)n * PINGPONG_TEXT);
        while (len < (size_t)n * PINGPONG_TEXT && (k = hear(s, (char *)got + len, sizeof got - len)) > 0)
            len += k;
        cr_assert_eq(len, (size_t)n * PINGPONG_TEXT);
        for (unsigned i = 0; i < n; i++) {
            cr_assert(pingpong_addr_get(&mine, got[i]));
            cr_assert_eq(mine.qpn != 0, i < 3, "%u of %u", i, n);
        }
        cr_assert_eq(hear(s, got, sizeof got), 0, "it waits for messages");
        close(s);
        finish();
    }
    cr_assert_eq(server.failed, 2);
}

Test(serve, words_may_come_byte_by_byte, .init = open_server, .fini = close_server)
{
    static const char version[PERFTEST_VERSION] = "6.06";
    char got[64];
    int s = dial();

    for (unsigned i = 0; i < PERFTEST_VERSION; i++)
        say(s, version + i, 1);
    cr_assert_eq(hear(s, got, sizeof got), PERFTEST_VERSION);
    cr_assert_str_eq(got, "6.06");
    close(s);
    finish();
    cr_assert_eq(server.failed, 1);
}

Test(serve, a_silent_client_is_given_up, .init = open_server, .fini = close_server)
{
    int s = dial();
    ns_t began = live_now();

    server.config.wait = NS_PER_S / 10;
    introduce(s);
    finish();
    cr_assert_eq(server.failed, 1);
    cr_assert(live_now() - began >= NS_PER_S / 10);
    close(s);
}

Test(serve, one_client_gets_so_many_queue_pairs_and_no_more, .init = open_server, .fini = close_server)
{
    char text[PERFTEST_TEXT], got[PERFTEST_TEXT];
    unsigned told = 0;
    int s = dial();

    greet();
    introduce(s);
    for (; told < SERVE_QPS + 10; told++) {
        struct perftest_keys k = keys_of(0x100 + told);
        perftest_keys_put(text, &k);
        say(s, text, sizeof text);
        if (hear(s, got, sizeof got) != PERFTEST_TEXT)
            break;
    }
    cr_assert_eq(told, SERVE_QPS);
    close(s);
    finish();
    cr_assert_eq(server.failed, 1);
}

Test(serve, more_clients_than_there_is_room_for_wait, .init = open_server, .fini = close_server)
{
    int s[SERVE_SESSIONS + 4];

    for (unsigned i = 0; i < ARRAY_LEN(s); i++)
        s[i] = dial(), usleep(2000), turn();
    cr_assert_eq(serve_active(&server), SERVE_SESSIONS);
    for (unsigned i = 0; i < ARRAY_LEN(s); i++)
        close(s[i]);
    for (unsigned i = 0; i < 5000 && server.failed < ARRAY_LEN(s); i++)
        usleep(1000), turn();
    finish();
    cr_assert_eq(server.failed, ARRAY_LEN(s));
}

/* Random bytes, random messages in the right order, valid messages with a byte changed: the server survives all, and
 * serves the next client. */
Test(serve, any_bytes_are_survived, .init = open_server, .fini = close_server)
{
    struct perftest_keys k = keys_of(0x77);
    char text[PERFTEST_TEXT], got[256];

    hangs_after(60);
    srand(3);
    greet();
    for (unsigned n = 0; n < 150; n++) {
        int s = dial();
        if (n % 3)
            introduce(s);
        for (unsigned w = 0; w < 4; w++) {
            size_t len = n % 3 == 2 ? PERFTEST_TEXT : 1 + (size_t)rand() % sizeof text;
            for (size_t i = 0; i < sizeof text; i++)
                text[i] = (char)rand();
            if (n % 3 == 2) {
                perftest_keys_put(text, &k);
                /* not in the address: its resolution would have to time out */
                text[rand() % 60] = (char)rand();
            }
            say(s, text, len);
            (void)!recv(s, got, sizeof got, MSG_DONTWAIT);
        }
        close(s);
        turn();
        cr_assert(server.memory <= SERVE_MEMORY);
    }
    finish();
    cr_assert_eq(ep_stats(near.ep)->own_check_failures, 0);
    int s = dial();
    introduce(s);
    perftest_keys_put(text, &k);
    say(s, text, sizeof text);
    cr_assert_eq(hear(s, got, PERFTEST_TEXT), PERFTEST_TEXT);
    close(s);
    finish();
}

Test(traffic, figures_are_those_of_the_samples)
{
    uint32_t ns[1000];
    struct traffic t = {.samples = 1000, .sample = ns, .c.size = 100};
    struct traffic_figures s;

    for (unsigned i = 0; i < 1000; i++) /* 1 to 1000 us in any order */
        ns[i] = (i * 7 % 1000 + 1) * 1000;
    t.r = (struct traffic_result){.completed = 1000,
                                  .bytes = 100000,
                                  .start = 0,
                                  .end = NS_PER_S / 2,
                                  .best = NS_PER_MS,
                                  .best_n = 10,
                                  .samples = 1000,
                                  .min = 1000,
                                  .max = 1000000,
                                  .sum = 500500000};
    s = traffic_figures(&t, NULL);
    cr_assert_float_eq(s.average, 200000, 1e-6); /* 100000 bytes in half a second */
    cr_assert_float_eq(s.peak, 1000000, 1e-6);   /* 10 messages in a millisecond */
    cr_assert_float_eq(s.rate, 2000, 1e-6);
    cr_assert_float_eq(s.mean, 500.5, 1e-6);
    cr_assert_float_eq(s.typical, 500, 1e-6);
    cr_assert_float_eq(s.p99, 990, 1e-6);
    cr_assert_float_eq(s.p999, 999, 1e-6);
    cr_assert_float_eq(s.deviation, 288.675, 0.001); /* of 1 to 1000: sqrt((1000^2 - 1) / 12) */
}

/* --- Several processes ------------------------------------------------------------------------ */

static unsigned requests; /* of connections, by no peer, that are still to come */
static int taken, most_taken;

static bool request_of_nobody(struct rdmacm *cm, int channel, struct rdmacm_event *e)
{
    (void)cm;
    (void)channel;
    /* the first one is for rping, whose listener is -1 as the server has none */
    *e = (struct rdmacm_event){
        .type = RDMACM_CONNECT_REQUEST, .id = 9999, .listen_id = requests == 2 ? server.rping_id : server.rping_id + 1};
    return requests > 0 && requests--;
}

static int no_path(struct rdmacm *cm, int id, const struct rdmacm_param *p, ns_t now)
{
    (void)cm;
    (void)id;
    (void)p;
    (void)now;
    return -EHOSTUNREACH;
}

static bool count_taken(void *user, int take)
{
    (void)user;
    taken += take;
    most_taken = taken > most_taken ? taken : most_taken;
    return false;
}

Test(serve, a_client_that_cannot_be_accepted_is_given_back, .init = open_server, .fini = close_server)
{
    const struct rdmacm_ops *ops = server.verbs->cm->ops;
    struct rdmacm_ops broken = *ops;

    broken.get_event = request_of_nobody;
    broken.accept = no_path;
    server.config.full = count_taken;
    requests = 2;
    server.verbs->cm->ops = &broken;
    serve_poll(&server, live_now());
    server.verbs->cm->ops = ops;
    cr_expect_eq(requests, 0);
    cr_expect_eq(most_taken, 1);
    cr_expect_eq(taken, 0);
    cr_expect_eq(serve_active(&server), 0);
}
