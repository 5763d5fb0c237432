/* layer 3 (gen) tests: learning connections from passing frames: frames built here, and captures of real programs,
 * whose queue pairs and PSNs were read with tshark. */
#include "dissect/pkt.h"
#include "gen/net/conns_learn.h"
#include "psn.h"
#include "tests/unit/bridge_rig.h"

static struct rig rig;

static struct conns *conns(void)
{
    return event_conns(rig.events);
}

/* A TCP segment over IPv4 from `host` with a payload. */
static void segment(unsigned host, uint16_t client_port, const void *text, uint32_t len)
{
    uint8_t f[400] = {2, 0, 0, 0, 0, (uint8_t)(2 - host), 2, 0, 0, 0, 0, (uint8_t)(1 + host), 8, 0, 0x45};

    store_be16(f + 16, (uint16_t)(40 + len));
    f[22] = 64;
    f[23] = 6;
    store_be32(f + 26, 0x0a000001 + host);
    store_be32(f + 30, 0x0a000002 - host);
    store_be16(f + 34, host ? 18515 : client_port);
    store_be16(f + 36, host ? client_port : 18515);
    f[46] = 0x50;
    f[47] = 0x18;
    memcpy(f + 54, text, len);
    rig_rx(&rig, host, f, 54 + len);
}

static void pingpong_line(unsigned host, uint16_t port, uint32_t qpn, uint32_t psn)
{
    char text[60];

    snprintf(text, sizeof text, "0000:%06x:%06x:00000000000000000000ffff0a00000%u", qpn, psn, host + 1);
    segment(host, port, text, 52);
}

Test(conns_learn, from_req_and_rep)
{
    RIG(&rig, "conn=1 class=cm nth=1 drop");
    rig_connect(&rig, 100, 200);
    cr_expect_eq(rig.n, 1, "the REQ itself belongs to the connection");
    rig_cm(&rig, 0, false, 0x1000, 0, 0x11, 200);
    cr_assert_eq(conns()->n, 1, "it was the same again");
    const struct conn_id *c = &conns()->c[0];
    cr_expect(c->qpn[0] == 0x11 && c->qpn[1] == 0x22 && c->psn[0] == 100 && c->psn[1] == 200 && !c->no_qpn &&
              !c->no_psn && c->host == 0);
    rig_cm(&rig, 0, false, 0x1001, 0, 0x12, 300);
    rig_cm(&rig, 1, false, 0x2001, 0, 0x23, 400);
    rig_cm(&rig, 0, true, 0x1002, 0x2001, 0x13, 500);
    cr_assert_eq(conns()->n, 3);
    cr_expect_eq(conns()->c[2].host, 1, "the requester is at the other port");
    cr_expect_eq(conns()->c[2].psn[0], 500);
    cr_expect_eq(conns()->c[1].no_qpn, 2, "no REP yet");
    rig_close(&rig);
}

Test(conns_learn, a_reply_to_another_question_teaches_nothing)
{
    RIG(&rig, "psn=1 drop");
    rig_cm(&rig, 0, false, 0x1000, 0, 0x11, 200);
    rig_cm(&rig, 1, true, 0x2000, 0x1001, 0x22, 100);
    rig_cm(&rig, 0, true, 0x2000, 0x1000, 0x22, 100);
    cr_assert_eq(conns()->n, 1);
    cr_expect_eq(conns()->c[0].no_qpn, 2);
    rig_close(&rig);
}

Test(conns_learn, direction_is_that_of_the_connection_not_of_the_port)
{
    RIG(&rig, "dir=req psn=1 drop");
    rig_cm(&rig, 1, false, 0x2001, 0, 0x23, 400);
    rig_cm(&rig, 0, true, 0x1002, 0x2001, 0x13, 500);
    rig_packet(&rig, &(struct rig_packet){.from = 1, .opcode = OP_SEND_ONLY, .dqpn = 0x13, .psn = 501});
    cr_expect_eq(event_used(rig.events, 1), 1);
    rig_packet(&rig, &(struct rig_packet){.from = 0, .opcode = OP_SEND_ONLY, .dqpn = 0x23, .psn = 401});
    cr_expect_eq(event_used(rig.events, 1), 1);
    rig_close(&rig);
}

Test(conns_learn, a_queue_pair_used_again_belongs_to_the_new_connection)
{
    RIG(&rig, "conn=2 psn=0 drop");
    rig_connect(&rig, 100, 200);
    rig_request(&rig, 100);
    rig_cm(&rig, 0, false, 0x1007, 0, 0x11, 2000);
    rig_cm(&rig, 1, true, 0x2007, 0x1007, 0x22, 1000);
    rig_request(&rig, 1000);
    cr_expect_eq(event_used(rig.events, 1), 1);
    rig_close(&rig);
}

Test(conns_learn, from_the_exchange_of_programs)
{
    RIG(&rig, "psn=1 drop");
    pingpong_line(0, 5000, 0x14, 0x656571);
    pingpong_line(0, 5000, 0x14, 0x656571); /* by TCP again */
    cr_expect_eq(conns()->n, 0);
    pingpong_line(1, 5000, 0x15, 0x966193);
    pingpong_line(1, 5000, 0x15, 0x966193);
    cr_assert_eq(conns()->n, 1);
    pingpong_line(0, 5000, 0x16, 7);
    pingpong_line(1, 5000, 0x17, 8);
    cr_assert_eq(conns()->n, 2, "a second pair over the same connection of TCP");
    for (unsigned i = 0; i < 2; i++) { /* perftest repeats the exchange at its end */
        pingpong_line(0, 5000, i ? 0x16 : 0x14, i ? 7 : 0x656571);
        pingpong_line(1, 5000, i ? 0x17 : 0x15, i ? 8 : 0x966193);
    }
    cr_assert_eq(conns()->n, 2);
    const struct conn_id *c = conns()->c;
    cr_expect(c[0].qpn[0] == 0x14 && c[0].qpn[1] == 0x15 && c[0].psn[0] == 0x656571 && c[0].psn[1] == 0x966193);
    cr_expect(c[1].qpn[0] == 0x16 && c[1].qpn[1] == 0x17 && c[1].psn[1] == 8);
    rig_close(&rig);
}

Test(conns_learn, a_client_behind_the_second_port)
{
    RIG(&rig, "dir=req psn=0 drop");
    pingpong_line(1, 5000, 0x15, 0x20);
    pingpong_line(0, 5000, 0x14, 0x10);
    cr_assert_eq(conns()->n, 1);
    cr_expect_eq(conns()->c[0].host, 1);
    rig_packet(&rig, &(struct rig_packet){.from = 1, .opcode = OP_SEND_ONLY, .dqpn = 0x14, .psn = 0x20});
    cr_expect_eq(event_used(rig.events, 1), 1);
    rig_close(&rig);
}

Test(conns_learn, a_queue_pair_from_nowhere_counts_from_its_first_packet)
{
    RIG(&rig, "conn=1 dir=req psn=2 drop", "conn=1 dir=rsp class=ack psn=1 drop", "conn=2 drop");
    rig_packet(&rig, &(struct rig_packet){.from = 1, .opcode = OP_SEND_ONLY, .dqpn = 0x11, .psn = 0xffffff, .len = 5});
    rig_packet(&rig, &(struct rig_packet){
                         .from = 0, .opcode = OP_ACKNOWLEDGE, .dqpn = 0x22, .psn = 0xffffff, .syndrome = 0x1f});
    cr_assert_eq(conns()->n, 1);
    cr_expect(conns()->c[0].host == 1 && conns()->c[0].no_qpn == 0 && conns()->c[0].qpn[0] == 0x22 &&
              conns()->c[0].qpn[1] == 0x11);
    rig_packet(&rig, &(struct rig_packet){.from = 1, .opcode = OP_SEND_ONLY, .dqpn = 0x11, .psn = 0});
    rig_packet(&rig,
               &(struct rig_packet){.from = 0, .opcode = OP_ACKNOWLEDGE, .dqpn = 0x22, .psn = 0, .syndrome = 0x1f});
    rig_packet(&rig, &(struct rig_packet){.from = 1, .opcode = OP_SEND_ONLY, .dqpn = 0x11, .psn = 1});
    cr_expect_eq(event_used(rig.events, 1), 1);
    cr_expect_eq(event_used(rig.events, 2), 1);
    cr_expect_eq(event_used(rig.events, 3), 0);
    rig_close(&rig);
}

Test(conns_learn, two_directions_from_nowhere_are_joined_by_a_response)
{
    RIG(&rig, "psn=77 drop");
    rig_packet(&rig, &(struct rig_packet){.from = 0, .opcode = OP_SEND_ONLY, .dqpn = 0x22, .psn = 1000});
    rig_packet(&rig, &(struct rig_packet){.from = 1, .opcode = OP_SEND_ONLY, .dqpn = 0x11, .psn = 5000});
    cr_expect_eq(conns()->n, 2);
    rig_ack(&rig, 1000);
    const struct conn_id *c = &conns()->c[0];
    cr_expect(c->no_qpn == 0 && c->no_psn == 0 && c->qpn[0] == 0x11 && c->qpn[1] == 0x22 && c->psn[0] == 1000 &&
              c->psn[1] == 5000);
    cr_expect_eq(conns_find_qpn(conns(), 0, 0x11, &c->addr[0], &c->addr[1]), 1);
    cr_expect_eq(conns_find_qpn(conns(), 1, 0x22, &c->addr[1], &c->addr[0]), 1);
    rig_close(&rig);
}

Test(conns_learn, datagrams_are_told_apart_by_their_source)
{
    RIG(&rig, "conn=2 psn=1 drop");
    for (unsigned i = 0; i < 2; i++)
        for (uint32_t source = 0x31; source <= 0x32; source++)
            rig_packet(&rig, &(struct rig_packet){.from = 0,
                                                  .opcode = (SVC_UD << 5 | OP_SEND_ONLY),
                                                  .dqpn = 0x22,
                                                  .srcqp = source,
                                                  .psn = source * 10 + i});
    cr_assert_eq(conns()->n, 2);
    cr_expect(conns()->c[0].qpn[0] == 0x31 && conns()->c[1].qpn[0] == 0x32 && conns()->c[1].ud);
    cr_expect_eq(event_used(rig.events, 1), 1);
    rig_packet(&rig, &(struct rig_packet){
                         .from = 1, .opcode = (SVC_UD << 5 | OP_SEND_ONLY), .dqpn = 0x32, .srcqp = 0x22, .psn = 9});
    cr_expect_eq(conns()->n, 2, "the answer goes the other way of the same");
    rig_close(&rig);
}

Test(conns_learn, the_number_of_connections_is_bounded)
{
    RIG(&rig, "conn=65536 drop");
    for (uint32_t i = 0; i < CONNS_LEARN_MAX + 10; i++, rig.n = rig.n_recorded = 0)
        rig_cm(&rig, 0, false, 0x10000 + i, 0, 0x11, i);
    cr_expect_eq(conns()->n, CONNS_LEARN_MAX);
    cr_expect_eq(event_unlearnt(rig.events), 10);
    rig_close(&rig);
}

/* Frames of a capture between two hosts, the one of the first frame behind port 0; the number of packets that got no
 * PSN though they belong to a queue pair other than 0 and 1. */
static unsigned feed(const char *path)
{
    struct cap_error err;
    struct cap *cap;
    struct frame f;
    uint8_t mac[6];
    unsigned lost = 0;
    bool first = true;

    cr_assert_eq(cap_open(&cap, path, 0, NULL, &err), 0, "%s: %s", path, err.msg);
    RIG(&rig, "conn=60000 drop");
    for (; cap_next(cap, &f) > 0; rig.n = rig.n_recorded = 0) {
        struct conns_view v;
        struct frame copy;
        struct pkt p;
        if (first)
            memcpy(mac, f.data + 6, 6);
        first = false;
        unsigned port = memcmp(mac, f.data + 6, 6) != 0;
        rig_rx(&rig, port, f.data, f.caplen);
        frame_decode(&p, &copy, f.data, f.caplen, LINK_ETHERNET);
        conns_view(conns(), port, &p, &v);
        lost += v.rdma && p.bth.dqpn > 1 && !v.has_psn;
    }
    cap_close(cap);
    return lost;
}

Test(conns_learn, real_captures)
{
    static const struct {
        const char *name;
        unsigned n;
        struct {
            uint32_t qpn[2], psn[2];
        } c;
    } captures[] = {
        {"rping_ipv4.pcap", 1, {{0x11, 0x11}, {9905370, 4585161}}},
        {"ibv_rc_pingpong.pcap", 1, {{0x14, 0x14}, {0x656571, 0x966193}}},
        {"ibv_ud_pingpong_ipv6.pcap", 1, {{0x19, 0x19}, {0x92c0ae, 0x41bc4c}}},
        {"ib_atomic_bw_cas.pcap", 1, {{0x27, 0x27}, {0x8ed6d0, 0x8ed6d0}}},
    };
    char path[100];

    for (unsigned i = 0; i < ARRAY_LEN(captures); i++) {
        snprintf(path, sizeof path, "captures/%s", captures[i].name);
        cr_expect_eq(feed(path), 0, "%s: every packet has its place", path);
        cr_assert_eq(conns()->n, captures[i].n, "%s: %u connections", path, conns()->n);
        const struct conn_id *c = &conns()->c[0];
        cr_expect_arr_eq(c->qpn, captures[i].c.qpn, sizeof c->qpn, "%s: 0x%x 0x%x", path, c->qpn[0], c->qpn[1]);
        cr_expect_arr_eq(c->psn, captures[i].c.psn, sizeof c->psn, "%s: 0x%x 0x%x", path, c->psn[0], c->psn[1]);
        rig_close(&rig);
    }
}
