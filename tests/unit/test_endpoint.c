/* layer 3 tests: whole conversations between two endpoints. */
#include "tests/unit/ep_pair.h"

#include <criterion/criterion.h>
#include <errno.h>

static void no_own_failures(const struct pair *p)
{
    for (int i = 0; i < 2; i++)
        cr_expect_eq(ep_stats(p->ep[i])->own_check_failures, 0, "side %d broke %s", i, rule_str(ep_first_refused(p->ep[i]).rule));
}

static struct pair *rc_pair(void)
{
    struct pair_opts o = pair_defaults();

    return pair_new(&o);
}

Test(endpoint, send_of_8k_takes_first_six_middles_last_and_one_ack)
{
    struct pair *p = rc_pair();
    struct wc wc;

    pair_fill(p, 0, 0, 8192, 1);
    cr_assert_eq(pair_recv(p, 1, 7, 0, 8192), 0);
    cr_assert_eq(pair_post(p, 0, (struct send_wr){.wr_id = 5, .opcode = WR_SEND}, 0, 8192), 0);
    pair_run(p, NS_NEVER);
    cr_assert_arr_eq(p->mem[0], p->mem[1], 8192);
    cr_expect_eq(pair_count(p, 0, OP_SEND_FIRST), 1);
    cr_expect_eq(pair_count(p, 0, OP_SEND_MIDDLE), 6);
    cr_expect_eq(pair_count(p, 0, OP_SEND_LAST), 1);
    cr_expect_eq(pair_count(p, 1, OP_ACKNOWLEDGE), 1);
    cr_expect_eq(p->n_log, 9);
    wc = pair_wc(p, 0);
    cr_expect(wc.status == WC_SUCCESS && wc.opcode == WC_SEND && wc.wr_id == 5);
    wc = pair_wc(p, 1);
    cr_expect(wc.status == WC_SUCCESS && wc.opcode == WC_RECV && wc.wr_id == 7 && wc.byte_len == 8192);
    no_own_failures(p);
    pair_free(p);
}

Test(endpoint, write_reaches_remote_memory_without_a_receive)
{
    struct pair *p = rc_pair();

    pair_fill(p, 0, 100, 5000, 2);
    pair_post(p, 0, (struct send_wr){.opcode = WR_RDMA_WRITE, .remote_addr = PAIR_IOVA(1) + 300, .rkey = p->key[1]}, 100, 5000);
    pair_run(p, NS_NEVER);
    cr_expect_arr_eq(p->mem[0] + 100, p->mem[1] + 300, 5000);
    cr_expect_eq(pair_wc(p, 0).status, WC_SUCCESS);
    cr_expect_eq(pair_wc(p, 1).status, 0xff);
    no_own_failures(p);
    pair_free(p);
}

Test(endpoint, read_brings_remote_memory_home)
{
    struct pair *p = rc_pair();
    struct wc wc;

    pair_fill(p, 1, 64, 8192, 3);
    pair_post(p, 0, (struct send_wr){.opcode = WR_RDMA_READ, .remote_addr = PAIR_IOVA(1) + 64, .rkey = p->key[1]}, 0, 8192);
    pair_run(p, NS_NEVER);
    cr_expect_arr_eq(p->mem[0], p->mem[1] + 64, 8192);
    cr_expect_eq(pair_count(p, 0, OP_READ_REQUEST), 1);
    cr_expect_eq(pair_count(p, 1, OP_READ_RESP_FIRST), 1);
    cr_expect_eq(pair_count(p, 1, OP_READ_RESP_MIDDLE), 6);
    cr_expect_eq(pair_count(p, 1, OP_READ_RESP_LAST), 1);
    cr_expect_eq(p->n_log, 9, "no plain ACK beside the responses");
    wc = pair_wc(p, 0);
    cr_expect(wc.status == WC_SUCCESS && wc.opcode == WC_RDMA_READ && wc.byte_len == 8192);
    no_own_failures(p);
    pair_free(p);
}

Test(endpoint, atomics_change_memory_and_return_the_original)
{
    struct pair *p = rc_pair();
    uint64_t v = 40, got;

    memcpy(p->mem[1] + 8, &v, 8);
    pair_post(p, 0, (struct send_wr){.opcode = WR_ATOMIC_FETCH_AND_ADD, .remote_addr = PAIR_IOVA(1) + 8, .rkey = p->key[1], .compare_add = 2}, 0, 8);
    pair_post(p, 0, (struct send_wr){.opcode = WR_ATOMIC_CMP_AND_SWP, .remote_addr = PAIR_IOVA(1) + 8, .rkey = p->key[1], .compare_add = 42, .swap = 7}, 8, 8);
    pair_post(p, 0, (struct send_wr){.opcode = WR_ATOMIC_CMP_AND_SWP, .remote_addr = PAIR_IOVA(1) + 8, .rkey = p->key[1], .compare_add = 1, .swap = 9}, 16, 8);
    pair_run(p, NS_NEVER);
    memcpy(&got, p->mem[0], 8);
    cr_expect_eq(got, 40);
    memcpy(&got, p->mem[0] + 8, 8);
    cr_expect_eq(got, 42);
    memcpy(&got, p->mem[0] + 16, 8);
    cr_expect_eq(got, 7);
    memcpy(&got, p->mem[1] + 8, 8);
    cr_expect_eq(got, 7, "the compare that fails stores nothing");
    for (int i = 0; i < 3; i++)
        cr_expect_eq(pair_wc(p, 0).status, WC_SUCCESS);
    no_own_failures(p);
    pair_free(p);
}
