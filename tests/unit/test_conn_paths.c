/* layer 5 (test): packets along an alternate path belong to the flows of the connection's first path. */
#include "src/conn/conn_impl.h"
#include "tests/unit/mkpkt.h"

#include <criterion/criterion.h>

static struct conn_table *table;

static void setup(void)
{
    table = conn_table_new(16);
}

static void teardown(void)
{
    conn_table_free(table);
}

TestSuite(conn_paths, .init = setup, .fini = teardown);

/* Hosts 1 and 2 have the addresses 10.0.PATH.1 and 10.0.PATH.2. */
static struct conn_addr addr(uint8_t path, uint8_t host)
{
    return (struct conn_addr){.b = {[10] = 0xff, [11] = 0xff, 10, 0, path, host}};
}

static uint32_t seen(uint8_t path, uint8_t from, uint32_t dqpn)
{
    static struct frame f;
    const uint8_t src[4] = {10, 0, path, from}, dst[4] = {10, 0, path, from ^ 3};
    struct pkt p = mk(OP_SEND_ONLY, 7, 0);

    p.frame = &f;
    p.addr_len = 4;
    p.src = src;
    p.dst = dst;
    p.bth.dqpn = dqpn;
    return conn_flow(table, &p);
}

/* Queue pair 0x11 of host 1 and 0x22 of host 2 are connected along path 1, and may take `path`. */
static void learn(uint8_t path, uint8_t timeout)
{
    conn_learn_path(table, &(struct conn_path){.addr = {addr(1, 1), addr(1, 2)},
                                               .alt = {addr(path, 1), addr(path, 2)},
                                               .qpn = {0x11, 0x22},
                                               .timeout = {CONN_TIMEOUT_KEPT, timeout}});
}

static struct conn_known known(uint8_t path)
{
    return (struct conn_known){.addr = {addr(path, 1), addr(path, 2)}, .qpn = {0x11, 0x22}, .how = PAIR_CM};
}

Test(conn_paths, a_path_that_was_not_accepted_is_another_flow)
{
    cr_expect_neq(seen(1, 1, 0x22), seen(2, 1, 0x22));
}

Test(conn_paths, both_directions_belong_to_the_first_path)
{
    uint32_t there = seen(1, 1, 0x22), back = seen(1, 2, 0x11);

    learn(2, CONN_TIMEOUT_KEPT);
    cr_expect_eq(seen(2, 1, 0x22), there);
    cr_expect_eq(seen(2, 2, 0x11), back);
    cr_expect_neq(seen(2, 1, 0x23), there, "another queue pair");
    cr_expect_neq(seen(3, 1, 0x22), there, "a third path");
    learn(3, CONN_TIMEOUT_KEPT);
    cr_expect_neq(seen(4, 1, 0x22), there);
}

Test(conn_paths, the_first_packet_may_take_the_alternate_path)
{
    uint32_t there;

    learn(2, CONN_TIMEOUT_KEPT);
    there = seen(2, 1, 0x22);
    cr_expect_eq(seen(1, 1, 0x22), there);
    cr_expect_eq(memcmp(conn_flow_at(table, there)->src.b, addr(1, 1).b, 16), 0, "it is known by the first path");
}

Test(conn_paths, each_change_of_the_path_is_told_once)
{
    uint32_t flow;

    learn(2, CONN_TIMEOUT_KEPT);
    flow = seen(1, 1, 0x22);
    cr_expect_not(conn_moved(table, flow));
    seen(2, 1, 0x22);
    cr_expect(conn_moved(table, flow));
    cr_expect_not(conn_moved(table, flow));
    seen(2, 1, 0x22);
    cr_expect_not(conn_moved(table, flow));
    seen(1, 1, 0x22);
    cr_expect(conn_moved(table, flow), "back again");
}

Test(conn_paths, the_path_has_its_own_ack_timeout)
{
    uint32_t there, back;

    learn(2, 9);
    there = seen(1, 1, 0x22);
    back = seen(1, 2, 0x11);
    conn_flow_at(table, there)->params.timeout = conn_flow_at(table, back)->params.timeout = 14;
    seen(2, 1, 0x22);
    seen(2, 2, 0x11);
    cr_expect_eq(conn_flow_at(table, there)->params.timeout, 14);
    cr_expect_eq(conn_flow_at(table, back)->params.timeout, 9, "of the requests that host 2 sends");
}

Test(conn_paths, a_later_connection_of_the_same_paths_has_its_own_ack_timeout)
{
    uint32_t back;

    learn(2, 18);
    learn(2, 10);
    back = seen(1, 2, 0x11);
    seen(2, 2, 0x11);
    cr_expect_eq(conn_flow_at(table, back)->params.timeout, 10);
}

Test(conn_paths, a_connection_of_its_own_ends_a_path)
{
    struct conn_known k = known(2);
    uint32_t there = seen(1, 1, 0x22);

    learn(2, CONN_TIMEOUT_KEPT);
    conn_learn(table, &k);
    cr_expect_neq(seen(2, 1, 0x22), there);
    learn(1, CONN_TIMEOUT_KEPT);
    cr_expect_eq(seen(1, 1, 0x22), there, "the first path is no alternate one");
}

Test(conn_paths, the_latest_paths_are_kept)
{
    uint32_t there = seen(1, 1, 0x22);

    learn(2, CONN_TIMEOUT_KEPT);
    for (uint32_t i = 0; i < 4096; i++)
        conn_learn_path(table, &(struct conn_path){.addr = {addr(1, 1), addr(1, 2)},
                                                   .alt = {addr(3, 1), addr(3, 2)},
                                                   .qpn = {0x1000 + i, 0x22}});
    cr_expect_neq(seen(2, 1, 0x22), there);
    learn(2, CONN_TIMEOUT_KEPT);
    cr_expect_eq(seen(2, 2, 0x11), seen(1, 2, 0x11));
}

Test(conn_paths, only_the_flows_of_its_connection_have_a_path)
{
    struct conn_known k = known(2);
    uint32_t there = seen(1, 1, 0x22), back = seen(1, 2, 0x11), another = seen(1, 1, 0x23);

    cr_expect_not(conn_flow_has_paths(table, there));
    learn(2, CONN_TIMEOUT_KEPT);
    cr_expect(conn_flow_has_paths(table, there));
    cr_expect(conn_flow_has_paths(table, back));
    cr_expect_not(conn_flow_has_paths(table, another));
    conn_learn(table, &k);
    cr_expect(conn_flow_has_paths(table, there), "it had one");
    cr_expect(conn_flow_has_paths(table, another), "whose path was forgotten is not known");
}

/* --pair names no network; connection management does. */
Test(conn_paths, an_address_that_a_user_names_is_of_any_network)
{
    struct conn_known k = known(1);
    struct conn_addr src = addr(1, 2), dst = addr(1, 1);

    cr_expect(known_fits(&k, &src, &dst, 0x11, 0));
    cr_expect_not(known_fits(&k, &src, &dst, 0x22, 0));
    src.network = dst.network = 7;
    cr_expect_not(known_fits(&k, &src, &dst, 0x11, 0));
    k.how = PAIR_USER;
    cr_expect(known_fits(&k, &src, &dst, 0x11, 0));
}
