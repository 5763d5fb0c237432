/* layer 3 tests: two endpoints: shared receive queues, completion queues, windows, datagrams, multicast,
 * encapsulations. */
#include "dissect/pkt.h"
#include "gen/script/live.h"
#include "tests/unit/ep_pair.h"

#include <criterion/criterion.h>
#include <errno.h>

/* --- Shared receive queues, completion queues ------------------------------------------------- */

Test(ep_services, shared_receive_queue_serves_and_warns)
{
    struct pair_opts o = pair_defaults();
    struct pair *p;
    struct ep_event ev;

    o.init.srq = 0;
    p = pair_new(&o);
    for (uint64_t i = 0; i < 3; i++) {
        struct sge sge = pair_sge(p, 1, 0, 100);
        struct recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1};
        cr_assert_eq(ep_post_srq_recv(p->ep[1], 0, &wr, 0), 0);
    }
    cr_expect_eq(pair_recv(p, 1, 0, 0, 100), -EINVAL, "it has no queue of its own");
    ep_srq_limit(p->ep[1], 0, 2);
    pair_post(p, 0, (struct send_wr){.opcode = WR_SEND}, 0, 10);
    pair_run(p, NS_PER_MS);
    cr_expect(!ep_event(p->ep[1], &ev));
    pair_post(p, 0, (struct send_wr){.opcode = WR_SEND}, 0, 10);
    pair_run(p, 2 * NS_PER_MS);
    cr_assert(ep_event(p->ep[1], &ev));
    cr_expect_eq(ev.type, EP_EV_SRQ_LIMIT);
    pair_post(p, 0, (struct send_wr){.opcode = WR_SEND}, 0, 10);
    pair_run(p, 3 * NS_PER_MS);
    cr_expect(!ep_event(p->ep[1], &ev), "once");
    for (uint64_t i = 0; i < 3; i++)
        cr_expect_eq(pair_wc(p, 1).wr_id, i);
    cr_expect_eq(status(p, 0), WC_SUCCESS);
    pair_free(p);
}

Test(ep_services, solicited_notification_waits_for_a_solicited_message)
{
    struct pair *p = rc_pair();
    struct ep_event ev;

    for (int i = 0; i < 2; i++)
        pair_recv(p, 1, 0, 0, 100);
    ep_cq_arm(p->ep[1], p->cq[1], true);
    pair_post(p, 0, (struct send_wr){.opcode = WR_SEND}, 0, 10);
    pair_run(p, NS_PER_MS);
    cr_expect(!ep_event(p->ep[1], &ev));
    pair_post(p, 0, (struct send_wr){.opcode = WR_SEND, .flags = SEND_SOLICITED}, 0, 10);
    pair_run(p, NS_NEVER);
    cr_assert(ep_event(p->ep[1], &ev));
    cr_expect_eq(ev.type, EP_EV_CQ_NOTIFY);
    pair_free(p);
}

Test(ep_services, overflow_of_a_completion_queue_is_told_once)
{
    struct pair *p = rc_pair();
    struct ep_event ev;
    unsigned n = 0;

    for (int i = 0; i < 70; i++) {
        for (int k = 0; k < 60; k++)
            pair_post(p, 0, write_wr(p, 0), 0, 1);
        pair_run(p, NS_NEVER);
    }
    while (ep_event(p->ep[0], &ev))
        n += ev.type == EP_EV_CQ_ERR;
    cr_expect_eq(n, 1);
    pair_free(p);
}

/* --- Windows ---------------------------------------------------------------------------------- */

Test(ep_services, bad_bind_fails_its_queue_pair)
{
    struct pair *p = rc_pair();
    uint32_t mw;

    ep_mw_alloc(p->ep[0], p->pd[0], MR_WINDOW2, &mw);
    pair_post(p, 0, write_wr(p, 0), 0, 10);
    pair_post(p, 0,
              (struct send_wr){.opcode = WR_BIND_MW, .inv_rkey = mw, .rkey = mw + 1, .mr_key = 0xbad, .mw_length = 10},
              0, 0);
    pair_run(p, NS_NEVER);
    cr_expect_eq(status(p, 0), WC_SUCCESS);
    cr_expect_eq(status(p, 0), WC_MW_BIND_ERR);
    pair_free(p);
}

Test(ep_services, window_of_another_queue_pair_cannot_be_invalidated_by_a_send)
{
    struct pair *p = rc_pair();
    uint32_t mw;

    ep_mw_alloc(p->ep[1], p->pd[1], MR_WINDOW2, &mw);
    cr_assert_eq(mw_bind(ep_mr_table(p->ep[1]), &(struct mw_bind){.key = mw,
                                                                  .new_key = mw + 1,
                                                                  .mr_key = p->key[1],
                                                                  .pd = p->pd[1],
                                                                  .qpn = 0x777,
                                                                  .va = PAIR_IOVA(1),
                                                                  .len = 10,
                                                                  .access = ACCESS_REMOTE_READ,
                                                                  .kind = MR_WINDOW2}),
                 0);
    pair_recv(p, 1, 0, 0, 100);
    pair_post(p, 0, (struct send_wr){.opcode = WR_SEND_WITH_INV, .inv_rkey = mw + 1}, 0, 10);
    pair_run(p, NS_NEVER);
    cr_expect_neq(status(p, 0), WC_SUCCESS);
    cr_expect_neq(status(p, 1), WC_SUCCESS);
    pair_free(p);
}

/* --- UD, UC, multicast, encapsulations -------------------------------------------------------- */

Test(ep_services, datagram_arrives_behind_its_network_header)
{
    struct pair_opts o = pair_defaults();
    struct pair *p;
    struct wc wc;

    o.type = QPT_UD;
    p = pair_new(&o);
    pair_fill(p, 0, 0, 100, 6);
    pair_recv(p, 1, 3, 0, 140);
    pair_post(p, 0,
              (struct send_wr){.opcode = WR_SEND_WITH_IMM,
                               .imm_data = 77,
                               .remote_qpn = ep_qp(p->ep[1], p->qp[1])->qpn,
                               .remote_qkey = PAIR_QKEY},
              0, 100);
    pair_run(p, NS_NEVER);
    wc = pair_wc(p, 1);
    cr_expect(wc.status == WC_SUCCESS && wc.byte_len == 140 && wc.flags == (WC_GRH | WC_WITH_IMM) && wc.imm_data == 77);
    cr_expect_eq(wc.src_qp, ep_qp(p->ep[0], p->qp[0])->qpn);
    cr_expect_arr_eq(p->mem[1] + 40, p->mem[0], 100);
    cr_expect_eq(p->mem[1][20], 0x45, "the IPv4 header fills the last 20 of the 40 bytes");
    cr_expect_eq(status(p, 0), WC_SUCCESS);
    no_own_failures(p);
    pair_free(p);
}

Test(ep_services, datagram_longer_than_the_mtu_vanishes_with_success)
{
    struct pair_opts o = pair_defaults();
    struct pair *p;

    o.type = QPT_UD;
    p = pair_new(&o);
    pair_post(p, 0, (struct send_wr){.opcode = WR_SEND, .remote_qpn = 17, .remote_qkey = PAIR_QKEY}, 0, 4097);
    pair_run(p, NS_NEVER);
    cr_expect_eq(p->n_log, 0);
    cr_expect_eq(status(p, 0), WC_SUCCESS);
    pair_free(p);
}

Test(ep_services, multicast_reaches_the_members_of_its_group)
{
    struct pair_opts o = pair_defaults();
    struct pair *p;
    struct av av = {0};
    int ah;

    o.type = QPT_UD;
    p = pair_new(&o);
    gid_from_ipv4(av.dgid, 0xef010203);
    gid_group_mac(av.dgid, av.dmac);
    cr_expect_arr_eq(av.dmac, "\x01\x00\x5e\x01\x02\x03", 6);
    ah = ep_ah_create(p->ep[0], p->pd[0], &av);
    cr_expect_eq(ep_post_send(p->ep[0], p->qp[0], &(struct send_wr){.opcode = WR_SEND, .ah = (uint32_t)ah + 1}, 0),
                 -EINVAL, "there is no such address handle");
    for (int i = 0; i < 2; i++)
        pair_recv(p, 1, 0, 0, 200);
    for (int i = 0; i < 2; i++) {
        pair_post(
            p, 0,
            (struct send_wr){.opcode = WR_SEND, .ah = (uint32_t)ah, .remote_qpn = 0xffffff, .remote_qkey = PAIR_QKEY},
            0, 100);
        pair_run(p, NS_NEVER);
        cr_expect_eq(status(p, 1), i ? WC_SUCCESS : 0xff, "only once it has joined");
        cr_assert_eq(ep_qp_attach(p->ep[1], p->qp[1], av.dgid), 0);
    }
    /* the memberships of an endpoint are bounded */
    for (int i = 0; i < 4095; i++) {
        av.dgid[14] = (uint8_t)(i >> 8);
        av.dgid[15] = (uint8_t)i;
        av.dgid[13] ^= i == 0 ? 0x40 : 0;
        cr_assert_eq(ep_qp_attach(p->ep[1], p->qp[1], av.dgid), 0);
    }
    av.dgid[13] ^= 0x20;
    cr_expect_eq(ep_qp_attach(p->ep[1], p->qp[1], av.dgid), -ENOMEM);
    pair_free(p);
}

Test(ep_services, datagrams_and_connected_packets_do_not_meet)
{
    struct pair_opts o = pair_defaults();
    struct pair *p = pair_new(&o), *d;
    uint8_t buf[EP_FRAME_MAX];
    int len;

    o.type = QPT_UD;
    d = pair_new(&o);
    pair_recv(d, 1, 0, 0, 200);
    pair_recv(p, 1, 0, 0, 200);
    pair_post(p, 0, (struct send_wr){.opcode = WR_SEND}, 0, 10);
    len = ep_tx(p->ep[0], buf, sizeof buf, 0);
    cr_expect(!ep_rx(d->ep[1], buf, (uint32_t)len, 0));
    pair_post(
        d, 0,
        (struct send_wr){.opcode = WR_SEND, .remote_qpn = ep_qp(p->ep[1], p->qp[1])->qpn, .remote_qkey = PAIR_QKEY}, 0,
        10);
    len = ep_tx(d->ep[0], buf, sizeof buf, 0);
    cr_expect(!ep_rx(p->ep[1], buf, (uint32_t)len, 0));
    cr_expect_eq(status(p, 1), 0xff);
    cr_expect_eq(status(d, 1), 0xff);
    pair_free(p);
    pair_free(d);
}

Test(ep_services, every_encapsulation_carries_the_same_conversation)
{
    for (int i = 0; i < 5; i++) {
        struct pair_opts o = pair_defaults();
        struct pair *p;
        for (int side = 0; side < 2; side++) {
            struct link_addr *a = &o.cfg[side].addr;
            a->encap = i < 3 ? ENCAP_ROCEV2 : i == 3 ? ENCAP_ROCEV1 : ENCAP_IB;
            a->has_vlan = i == 1;
            a->vlan = 5;
            if (i == 2)
                memcpy(a->gid, "\xfd\x77\0\0\0\0\0\0\0\0\0\0\0\0\0", 15), a->gid[15] = (uint8_t)(side + 1);
        }
        p = pair_new(&o);
        pair_fill(p, 0, 0, 3000, 8);
        pair_recv(p, 1, 0, 0, 3000);
        pair_post(p, 0, (struct send_wr){.opcode = WR_SEND}, 0, 3000);
        pair_post(p, 0, (struct send_wr){.opcode = WR_RDMA_READ, .remote_addr = PAIR_IOVA(1), .rkey = p->key[1]}, 4096,
                  3000);
        pair_run(p, NS_NEVER);
        cr_expect_arr_eq(p->mem[0] + 4096, p->mem[0], 3000, "kind %d", i);
        cr_expect_eq(status(p, 0), WC_SUCCESS);
        no_own_failures(p);
        pair_free(p);
    }
}

/* A PFC frame for the classes of the mask `classes`, quanta 100 + class. */
static void pfc(uint8_t frame[60], uint8_t classes)
{
    static const uint8_t head[] = {1, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 9, 0x88, 0x08, 1, 1, 0};

    memset(frame, 0, 60);
    memcpy(frame, head, sizeof head);
    frame[17] = classes;
    for (unsigned i = 0; i < 8; i++)
        frame[19 + 2 * i] = (uint8_t)(100 + i);
}

Test(ep_services, pause_frames_are_kept_until_taken_the_last_64_of_them)
{
    struct ep_config cfg = {.addr = {.mac = {2, 0, 0, 0, 0, 1}}};
    struct endpoint *ep = ep_new(&cfg);
    uint8_t frame[60];
    struct ep_pause p;

    cr_expect_not(ep_pause(ep, &p));
    pfc(frame, 1 << 3 | 1 << 5);
    cr_expect(ep_rx(ep, frame, sizeof frame, 7));
    cr_assert(ep_pause(ep, &p));
    cr_expect(p.when == 7 && p.frame.opcode == MACC_PFC && p.frame.classes == (1 << 3 | 1 << 5));
    cr_expect(p.frame.quanta[3] == 103 && p.frame.quanta[5] == 105);
    cr_expect_not(ep_pause(ep, &p), "it was taken");
    frame[14] = 0;
    cr_expect(ep_rx(ep, frame, sizeof frame, 8), "PAUSE");
    cr_assert(ep_pause(ep, &p));
    cr_expect(p.frame.opcode == MACC_PAUSE && p.frame.classes == PAUSE_ALL);
    frame[15] = 9;
    cr_expect_not(ep_rx(ep, frame, sizeof frame, 9), "another opcode");
    for (uint32_t len = 0; len < 18; len++) {
        pfc(frame, 1);
        cr_expect_not(ep_rx(ep, frame, len, 9), "%u bytes", len);
    }
    cr_expect_not(ep_pause(ep, &p));
    for (unsigned i = 0; i < 70; i++) {
        pfc(frame, 1);
        ep_rx(ep, frame, sizeof frame, (ns_t)i);
    }
    for (unsigned i = 6; i < 70; i++) {
        cr_assert(ep_pause(ep, &p));
        cr_assert_eq(p.when, i);
    }
    cr_expect_not(ep_pause(ep, &p));
    ep_free(ep);
}

Test(ep_services, a_pause_frame_that_passes_the_middle_is_kept_for_the_host_on_the_other_side)
{
    struct ep_config cfg[2] = {{.addr = {.mac = {2, 0, 0, 0, 0, 1}}}, {.addr = {.mac = {2, 0, 0, 0, 0, 2}}}};
    struct endpoint *ep[2] = {ep_new(&cfg[0]), ep_new(&cfg[1])};
    struct sim sim = {.ep = ep, .n_hosts = 2};
    struct script_live v = {.sim = &sim, .start = 100};
    struct ep_pause p;
    uint8_t frame[60];

    pfc(frame, 1 << 3);
    script_live_passed(&v, 1, frame, sizeof frame, 107);
    cr_expect_not(ep_pause(ep[1], &p), "who sent it");
    cr_assert(ep_pause(ep[0], &p));
    cr_expect(p.when == 7 && p.frame.classes == 1 << 3);
    script_live_passed(&v, 0, frame, sizeof frame, 108);
    cr_expect(!ep_pause(ep[0], &p) && ep_pause(ep[1], &p));
    v.sim = NULL; /* before the hosts exist */
    script_live_passed(&v, 0, frame, sizeof frame, 109);
    ep_free(ep[0]);
    ep_free(ep[1]);
}
