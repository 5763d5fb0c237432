/* layer 3 tests: whole conversations between two endpoints: transfers, work requests, policies, handles. */
#include "dissect/pkt.h"
#include "tests/unit/ep_pair.h"

#include <criterion/criterion.h>
#include <errno.h>

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
    pair_post(p, 0, (struct send_wr){.opcode = WR_RDMA_WRITE, .remote_addr = PAIR_IOVA(1) + 300, .rkey = p->key[1]},
              100, 5000);
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
    pair_post(p, 0, (struct send_wr){.opcode = WR_RDMA_READ, .remote_addr = PAIR_IOVA(1) + 64, .rkey = p->key[1]}, 0,
              8192);
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
    pair_post(
        p, 0,
        (struct send_wr){
            .opcode = WR_ATOMIC_FETCH_AND_ADD, .remote_addr = PAIR_IOVA(1) + 8, .rkey = p->key[1], .compare_add = 2},
        0, 8);
    pair_post(p, 0,
              (struct send_wr){.opcode = WR_ATOMIC_CMP_AND_SWP,
                               .remote_addr = PAIR_IOVA(1) + 8,
                               .rkey = p->key[1],
                               .compare_add = 42,
                               .swap = 7},
              8, 8);
    pair_post(p, 0,
              (struct send_wr){.opcode = WR_ATOMIC_CMP_AND_SWP,
                               .remote_addr = PAIR_IOVA(1) + 8,
                               .rkey = p->key[1],
                               .compare_add = 1,
                               .swap = 9},
              16, 8);
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

/* --- Work requests ---------------------------------------------------------------------------- */

Test(endpoint, pieces_are_gathered_and_scattered)
{
    struct pair *p = rc_pair();
    struct sge out[3] = {pair_sge(p, 0, 0, 700), pair_sge(p, 0, 5000, 1), pair_sge(p, 0, 9000, 1500)};
    struct sge in[3] = {pair_sge(p, 1, 100, 3), pair_sge(p, 1, 2000, 2100), pair_sge(p, 1, 7000, 500)};
    struct send_wr wr = {.opcode = WR_SEND, .sg_list = out, .num_sge = 3};
    struct recv_wr rwr = {.sg_list = in, .num_sge = 3};
    uint8_t want[2201], got[2201];

    pair_fill(p, 0, 0, 16384, 5);
    cr_assert_eq(ep_post_recv(p->ep[1], p->qp[1], &rwr, 0), 0);
    cr_assert_eq(ep_post_send(p->ep[0], p->qp[0], &wr, 0), 0);
    pair_run(p, NS_NEVER);
    memcpy(want, p->mem[0], 700);
    memcpy(want + 700, p->mem[0] + 5000, 1);
    memcpy(want + 701, p->mem[0] + 9000, 1500);
    memcpy(got, p->mem[1] + 100, 3);
    memcpy(got + 3, p->mem[1] + 2000, 2100);
    memcpy(got + 2103, p->mem[1] + 7000, 98);
    cr_expect_arr_eq(want, got, 2201);
    pair_free(p);
}

Test(endpoint, unsignalled_work_completes_without_an_entry)
{
    struct pair_opts o = pair_defaults();
    struct pair *p;
    struct send_wr wr;

    o.init.sq_sig_all = false;
    p = pair_new(&o);
    wr = write_wr(p, 0);
    pair_post(p, 0, wr, 0, 10);
    wr.flags = SEND_SIGNALED;
    wr.wr_id = 2;
    pair_post(p, 0, wr, 0, 10);
    pair_run(p, NS_NEVER);
    cr_expect_eq(pair_wc(p, 0).wr_id, 2);
    cr_expect_eq(status(p, 0), 0xff);
    pair_free(p);
}

Test(endpoint, error_is_told_also_for_unsignalled_work)
{
    struct pair_opts o = pair_defaults();
    struct pair *p;
    struct send_wr wr;

    o.init.sq_sig_all = false;
    p = pair_new(&o);
    wr = write_wr(p, 0);
    wr.rkey ^= 1;
    pair_post(p, 0, wr, 0, 10);
    pair_run(p, NS_NEVER);
    cr_expect_eq(status(p, 0), WC_REM_ACCESS_ERR);
    pair_free(p);
}

Test(endpoint, inline_data_is_taken_when_posted_and_needs_no_key)
{
    struct pair *p = rc_pair();
    char text[] = "hello";
    struct sge sge = {(uintptr_t)text, sizeof text, 0xdead};
    struct send_wr wr = write_wr(p, 0);

    wr.flags = SEND_INLINE;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    cr_assert_eq(ep_post_send(p->ep[0], p->qp[0], &wr, 0), 0);
    memset(text, 'x', sizeof text);
    sge.length = 257;
    cr_expect_eq(ep_post_send(p->ep[0], p->qp[0], &wr, 0), -E2BIG);
    pair_run(p, NS_NEVER);
    cr_expect_str_eq((char *)p->mem[1], "hello");
    pair_free(p);
}

Test(endpoint, fence_waits_for_the_reads_before_it)
{
    struct pair *p = rc_pair();
    struct send_wr wr = write_wr(p, 0);
    unsigned last_answer = 0, write = 0;

    pair_post(p, 0, (struct send_wr){.opcode = WR_RDMA_READ, .remote_addr = PAIR_IOVA(1), .rkey = p->key[1]}, 0, 3000);
    wr.flags = SEND_FENCE;
    pair_post(p, 0, wr, 0, 10);
    pair_run(p, NS_NEVER);
    for (unsigned i = 0; i < p->n_log; i++) {
        if (p->log[i].opcode == OP_READ_RESP_LAST)
            last_answer = i;
        if (p->log[i].opcode == OP_WRITE_ONLY)
            write = i;
    }
    cr_expect(last_answer && write > last_answer);
    pair_free(p);
}

Test(endpoint, initiator_depth_is_obeyed)
{
    struct pair_opts o = pair_defaults();
    struct pair *p;
    unsigned open = 0, most = 0;

    o.peer.max_rd_atomic = 3;
    p = pair_new(&o);
    for (int i = 0; i < 10; i++)
        pair_post(p, 0, (struct send_wr){.opcode = WR_RDMA_READ, .remote_addr = PAIR_IOVA(1), .rkey = p->key[1]}, 0,
                  100);
    pair_run(p, NS_NEVER);
    for (unsigned i = 0; i < p->n_log; i++) {
        open += p->log[i].opcode == OP_READ_REQUEST;
        open -= p->log[i].opcode == OP_READ_RESP_ONLY;
        most = open > most ? open : most;
    }
    cr_expect_eq(most, 3);
    no_own_failures(p);
    pair_free(p);
}

Test(endpoint, full_queue_refuses_more)
{
    struct pair *p = rc_pair();

    for (int i = 0; i < 64; i++)
        cr_assert_eq(pair_post(p, 0, write_wr(p, 0), 0, 1), 0);
    cr_expect_eq(pair_post(p, 0, write_wr(p, 0), 0, 1), -ENOMEM);
    for (int i = 0; i < 64; i++)
        cr_assert_eq(pair_recv(p, 0, 0, 0, 1), 0);
    cr_expect_eq(pair_recv(p, 0, 0, 0, 1), -ENOMEM);
    pair_free(p);
}

Test(endpoint, work_is_refused_where_the_state_forbids_it)
{
    struct pair_opts o = pair_defaults();
    struct pair *p = pair_new(&o);
    struct ep_qp_init init = o.init;
    struct sge sge = pair_sge(p, 0, 0, 1);
    struct send_wr wr = {.opcode = WR_SEND, .sg_list = &sge, .num_sge = 1};
    struct recv_wr rwr = {.sg_list = &sge, .num_sge = 1};
    int qp;

    init.pd = p->pd[0];
    init.send_cq = init.recv_cq = p->cq[0];
    qp = ep_qp_create(p->ep[0], &init);
    cr_expect_eq(ep_post_recv(p->ep[0], qp, &rwr, 0), -EINVAL, "RESET");
    cr_expect_eq(ep_post_send(p->ep[0], qp, &wr, 0), -EINVAL);
    cr_expect_eq(ep_post_send(p->ep[0], 99, &wr, 0), -EINVAL);
    pair_free(p);
}

/* --- Policies, reproducibility ---------------------------------------------------------------- */

Test(endpoint, coalescing_spares_acks_and_delay_holds_them_back)
{
    struct pair_opts o = pair_defaults();
    struct pair *p;

    o.cfg[1].policies.ack = &ack_coalesce;
    o.cfg[1].policies.ack_arg = 4;
    p = pair_new(&o);
    for (int i = 0; i < 16; i++)
        pair_post(p, 0, write_wr(p, 0), 0, 1);
    pair_run(p, NS_NEVER);
    cr_expect_eq(pair_count(p, 1, OP_ACKNOWLEDGE), 1, "all arrive at once here");
    pair_free(p);
    o.cfg[1].policies.ack = &ack_delay;
    o.cfg[1].policies.ack_arg = 50 * NS_PER_US;
    p = pair_new(&o);
    pair_post(p, 0, write_wr(p, 0), 0, 1);
    pair_run(p, NS_NEVER);
    cr_expect_eq(p->log[1].at - p->log[0].at, PAIR_DELAY + 50 * NS_PER_US);
    pair_free(p);
}

Test(endpoint, pacing_spaces_frames)
{
    struct pair_opts o = pair_defaults();
    struct pair *p;

    o.cfg[0].policies.pace = &pace_rate;
    o.cfg[0].policies.pace_arg = UINT64_C(1000000000);
    p = pair_new(&o);
    pair_post(p, 0, write_wr(p, 0), 0, 10240);
    pair_run(p, NS_NEVER);
    cr_expect_eq(p->log[1].at - p->log[0].at, 1098 * 8, "the First has a RETH");
    cr_expect_eq(p->log[2].at - p->log[1].at, 1082 * 8, "1082 bytes at 1 Gbit/s");
    pair_free(p);
}

Test(endpoint, window_bounds_what_is_outstanding)
{
    struct pair_opts o = pair_defaults();
    struct pair *p;
    unsigned first_burst = 0;

    o.cfg[0].policies.window = &window_fixed;
    o.cfg[0].policies.window_arg = 3;
    p = pair_new(&o);
    pair_post(p, 0, write_wr(p, 0), 0, 10240);
    pair_run(p, NS_NEVER);
    while (p->log[first_burst].from == 0)
        first_burst++;
    cr_expect_eq(first_burst, 3);
    cr_expect(p->log[2].ackreq, "the packet that closes the window asks for an ACK");
    cr_expect_eq(status(p, 0), WC_SUCCESS);
    pair_free(p);
}

Test(endpoint, credits_stall_and_resume_without_rnr)
{
    struct pair_opts o = pair_defaults();
    struct pair *p;

    o.cfg[0].credits = o.cfg[1].credits = true;
    p = pair_new(&o);
    pair_recv(p, 1, 0, 0, 5000);
    for (int i = 0; i < 4; i++)
        pair_post(p, 0, (struct send_wr){.opcode = WR_SEND}, 0, 3000);
    for (int i = 0; i < 3; i++) {
        pair_run(p, p->now + NS_PER_MS / 2);
        pair_recv(p, 1, 0, 0, 5000);
    }
    pair_run(p, NS_NEVER);
    for (int i = 0; i < 4; i++)
        cr_expect_eq(status(p, 0), WC_SUCCESS);
    cr_expect_eq(p->log[0].opcode, OP_SEND_FIRST);
    cr_expect_eq(p->log[1].from, 1, "the first packet is the probe, and nothing follows before its answer");
    no_own_failures(p);
    pair_free(p);
}

Test(endpoint, a_receive_posted_after_the_last_credit_is_announced_at_once)
{
    struct pair_opts o = pair_defaults();
    struct pair *p;
    unsigned acks;

    o.cfg[0].credits = o.cfg[1].credits = true;
    p = pair_new(&o);
    pair_recv(p, 1, 0, 0, 5000);
    pair_post(p, 0, (struct send_wr){.opcode = WR_SEND}, 0, 3000);
    pair_run(p, p->now + NS_PER_MS);
    cr_assert_eq(status(p, 0), WC_SUCCESS);
    acks = pair_count(p, 1, OP_ACKNOWLEDGE);
    pair_recv(p, 1, 0, 0, 5000);
    pair_run(p, p->now + NS_PER_MS);
    cr_expect_eq(pair_count(p, 1, OP_ACKNOWLEDGE), acks + 1);
    pair_recv(p, 1, 0, 0, 5000);
    pair_run(p, p->now + NS_PER_MS);
    cr_expect_eq(pair_count(p, 1, OP_ACKNOWLEDGE), acks + 1,
                 "one credit is left: the next response tells of the other");
    pair_free(p);
}

Test(endpoint, same_seed_gives_the_same_frames)
{
    uint8_t a[EP_FRAME_MAX], b[EP_FRAME_MAX];
    struct pair *p = rc_pair(), *q = rc_pair();
    int n;

    pair_post(p, 0, write_wr(p, 0), 0, 9000);
    pair_post(q, 0, write_wr(q, 0), 0, 9000);
    while ((n = ep_tx(p->ep[0], a, sizeof a, 0)) > 0) {
        cr_assert_eq(ep_tx(q->ep[0], b, sizeof b, 0), n);
        cr_assert_arr_eq(a, b, (size_t)n);
    }
    pair_free(p);
    pair_free(q);
}

Test(endpoint, many_queue_pairs_take_turns)
{
    struct pair_opts o = pair_defaults();
    struct pair *p = pair_new(&o);
    struct ep_qp_init init = o.init;
    int qp[2][50];
    uint8_t buf[EP_FRAME_MAX];

    for (int i = 0; i < 50; i++) {
        for (int side = 0; side < 2; side++) {
            init.pd = p->pd[side];
            init.send_cq = init.recv_cq = p->cq[side];
            qp[side][i] = ep_qp_create(p->ep[side], &init);
            cr_assert_geq(qp[side][i], 0);
        }
        for (int side = 0; side < 2; side++) {
            struct ep_peer peer = o.peer;
            peer.av = pair_av(&o, !side);
            peer.qpn = ep_qp(p->ep[!side], qp[!side][i])->qpn;
            cr_assert_eq(ep_qp_connect(p->ep[side], qp[side][i], &peer, 0), 0);
        }
    }
    while (ep_tx(p->ep[0], buf, sizeof buf, 0) > 0)
        ;
    for (int i = 0; i < 50; i++) {
        p->qp[0] = qp[0][i];
        pair_post(p, 0, write_wr(p, 100u * (uint32_t)i), 0, 5000);
    }
    for (int i = 0; i < 100; i++) {
        cr_assert_gt(ep_tx(p->ep[0], buf, sizeof buf, 0), 0);
        cr_expect_eq(ep_tx_last(p->ep[0]).qp, qp[0][i % 50]);
    }
    pair_free(p);
}

/* --- Handles ---------------------------------------------------------------------------------- */

Test(endpoint, handles_and_numbers_of_destroyed_queue_pairs_serve_again)
{
    struct pair_opts o = pair_defaults();
    struct pair *p = pair_new(&o);
    struct ep_qp_init init = o.init;
    int qp[200];

    init.pd = p->pd[0];
    init.send_cq = init.recv_cq = p->cq[0];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 200; i++) {
            init.qpn = 1000 + 64u * (uint32_t)i;
            qp[i] = ep_qp_create(p->ep[0], &init);
            cr_assert(qp[i] > 0 && qp[i] <= 200);
            cr_assert_eq(ep_qp_create(p->ep[0], &init), -EINVAL, "the number is taken");
        }
        for (int i = 0; i < 200; i += 2)
            cr_assert_eq(ep_qp_destroy(p->ep[0], qp[i]), 0);
        for (uint32_t i = 0; i < 200; i++)
            cr_assert_eq(ep_qp_find(p->ep[0], 1000 + 64 * i), i % 2 ? qp[i] : -ENOENT);
        for (int i = 1; i < 200; i += 2)
            ep_qp_destroy(p->ep[0], qp[i]);
        cr_assert_eq(ep_qp_destroy(p->ep[0], qp[0]), -EINVAL, "gone");
    }
    cr_expect_eq(ep_qp_find(p->ep[0], ep_qp(p->ep[0], p->qp[0])->qpn), p->qp[0]);
    pair_free(p);
}

Test(endpoint, responder_resources_are_what_was_asked_for)
{
    struct pair_opts o = pair_defaults();
    struct pair *p;

    o.peer.max_rd_atomic = o.peer.max_dest_rd_atomic = 40;
    p = pair_new(&o);
    cr_expect_neq(ep_qp(p->ep[0], p->qp[0])->state, QPS_RTS, "16 are remembered");
    pair_free(p);
    o.init.max_dest_rd = 40;
    p = pair_new(&o);
    for (int i = 0; i < 60; i++)
        cr_assert_eq(pair_post(p, 0,
                               (struct send_wr){.opcode = WR_RDMA_READ, .remote_addr = PAIR_IOVA(1), .rkey = p->key[1]},
                               0, 10),
                     0);
    pair_run(p, NS_NEVER);
    for (int i = 0; i < 60; i++)
        cr_expect_eq(status(p, 0), WC_SUCCESS);
    no_own_failures(p);
    pair_free(p);
}

Test(endpoint, uc_receive_without_right_to_its_memory_fails_the_queue_pair)
{
    struct pair_opts o = pair_defaults();
    struct pair *p;
    struct sge sge;
    struct recv_wr wr = {.wr_id = 4, .sg_list = &sge, .num_sge = 1};

    o.type = QPT_UC;
    p = pair_new(&o);
    sge = pair_sge(p, 1, 0, 100);
    sge.lkey ^= 1;
    ep_post_recv(p->ep[1], p->qp[1], &wr, 0);
    pair_recv(p, 1, 5, 0, 100);
    pair_post(p, 0, (struct send_wr){.opcode = WR_SEND}, 0, 10);
    pair_run(p, NS_NEVER);
    cr_expect_eq(status(p, 0), WC_SUCCESS, "the sender never knows");
    cr_expect_eq(status(p, 1), WC_LOC_PROT_ERR);
    cr_expect_eq(status(p, 1), WC_WR_FLUSH_ERR);
    cr_expect_eq(ep_qp(p->ep[1], p->qp[1])->state, QPS_ERR);
    pair_free(p);
}

Test(endpoint, an_ack_timeout_of_its_own_is_that_of_all_queue_pairs)
{
    for (uint8_t own = 0; own <= 17; own += 17) {
        struct ep_config c = {.addr = {.encap = ENCAP_ROCEV2}, .seed = 1, .timeout = own};
        struct endpoint *ep = ep_new(&c);
        struct ep_qp_init init = {.type = QPT_RC, .srq = EP_NO_SRQ};
        struct ep_peer peer = ep_peer_default();
        int qp;

        init.pd = ep_pd_alloc(ep);
        init.send_cq = init.recv_cq = ep_cq_create(ep, 16);
        qp = ep_qp_create(ep, &init);
        peer.qpn = 5;
        cr_assert_eq(ep_qp_connect(ep, qp, &peer, 0), 0);
        cr_assert_eq(ep_qp(ep, qp)->attr.timeout, own ? own : 14);
        ep_free(ep);
    }
}

/* The first side has 50.50.60.1 to 50.50.60.3. */
static struct pair *several_addresses(void)
{
    struct pair_opts o = pair_defaults();

    gid_from_ipv4(o.cfg[0].addr.gid, 0x32323c01);
    o.cfg[0].addrs = 3;
    o.peer.timeout = 8;
    o.peer.retry_cnt = 1;
    return pair_new(&o);
}

/* Responses go to the second of the three addresses instead of the first one. */
static int to_the_second(struct pair *p, int from, uint8_t *frame, uint32_t len, ns_t *extra)
{
    (void)p, (void)extra;
    if (from == 1) {
        frame[33]++; /* destination, IPv4 */
        frame[25]--; /* checksum */
        cr_assert(build_fix_crc(frame, len, LINK_ETHERNET));
    }
    return 1;
}

Test(endpoint, a_connection_has_one_of_several_addresses)
{
    for (int wrong = 0; wrong < 2; wrong++) {
        struct pair *p = several_addresses();

        p->hook = wrong ? to_the_second : NULL;
        pair_post(p, 0, (struct send_wr){.opcode = WR_RDMA_WRITE, .remote_addr = PAIR_IOVA(1), .rkey = p->key[1]}, 0,
                  100);
        pair_run(p, NS_PER_S);
        cr_expect_eq(pair_wc(p, 0).status, wrong ? WC_RETRY_EXC_ERR : WC_SUCCESS);
        cr_expect_eq(ep_stats(p->ep[0])->other_source, wrong ? 2 : 0);
        pair_free(p);
    }
}

Test(endpoint, several_addresses_are_consecutive)
{
    struct pair *p = several_addresses();
    struct link_addr first = {.mac = {2, 0, 0, 0, 0, 255}, .gid = {0x20, 1, [15] = 255}}, third;
    struct av av = {0};
    uint8_t gid[16];

    third = link_addr_nth(&first, 2);
    cr_expect_arr_eq(third.mac, ((uint8_t[]){2, 0, 0, 0, 1, 1}), 6);
    cr_expect_arr_eq(third.gid, ((uint8_t[16]){0x20, 1, [14] = 1, [15] = 1}), 16);
    gid_from_ipv4(av.dgid, 0x32323202);
    for (int i = -1; i <= 3; i++) {
        gid_from_ipv4(gid, (uint32_t)(0x32323c01 + i));
        cr_expect_eq(ep_sgid_index(p->ep[0], gid), i < 3 ? i : -1);
        av.sgid_index = (uint16_t)i;
        cr_expect_eq(ep_ah_create(p->ep[0], p->pd[0], &av) >= 0, i >= 0 && i < 3);
    }
    gid[0] = 1; /* not IPv4 */
    cr_expect_eq(ep_sgid_index(p->ep[0], gid), -1);
    pair_free(p);
}
