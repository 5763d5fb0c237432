/* layer 3 tests: context across packets, on packets built from the header tables. */
#include "src/conn/annotate.h"

#include "dissect/ip/ip.h"
#include "dissect/pkt.h"

#include <criterion/criterion.h>

static uint64_t frame_no;
static uint16_t ip_id; /* IPv4 identification of the packets made */

/* A RoCEv2 packet from node `from` (1 or 2) to the other, decoded. `ext` is what follows the BTH. */
static struct pkt *packet(unsigned from, uint8_t opcode, uint32_t dqpn, uint32_t psn, const void *ext, unsigned ext_len,
                          unsigned payload)
{
    static uint8_t bytes[8192];
    static struct frame f;
    static struct pkt p;
    const struct decode_opts opts = {0};
    unsigned ib = 12 + ext_len + payload + 4;
    struct ip4 ip = {.version = 4,
                     .ihl = 5,
                     .len = (uint16_t)(28 + ib),
                     .id = ip_id,
                     .ttl = 64,
                     .proto = 17,
                     .src = {10, 0, 0, (uint8_t)from},
                     .dst = {10, 0, 0, (uint8_t)(3 - from)}};
    struct udp udp = {.sport = 49152, .dport = 4791, .len = (uint16_t)(8 + ib)};
    struct bth bth = {.opcode = opcode, .pkey = 0xffff, .dqpn = dqpn, .psn = psn};

    memset(bytes, 0, sizeof bytes);
    ip4_put(bytes, &ip);
    udp_put(bytes + 20, &udp);
    bth_put(bytes + 28, &bth);
    if (ext_len)
        memcpy(bytes + 40, ext, ext_len);
    f = (struct frame){
        .data = bytes, .caplen = 28 + ib, .len = 28 + ib, .number = ++frame_no, .linktype = LINK_IPV4, .has_ts = true};
    pkt_decode(&p, &f, &opts);
    cr_assert_not(p.flags & PKT_MALFORMED, "%s", p.why);
    return &p;
}

static struct pkt *note(struct context *c, struct pkt *p)
{
    context_note(c, p);
    return p;
}

static struct pkt *ack(unsigned from, uint32_t dqpn, uint32_t psn, uint8_t syndrome)
{
    uint8_t aeth[4] = {syndrome, 0, 0, 1};
    return packet(from, OP_ACKNOWLEDGE, dqpn, psn, aeth, 4, 0);
}

static struct pkt *reth(unsigned from, uint8_t opcode, uint32_t dqpn, uint32_t psn, uint32_t len, unsigned payload)
{
    struct reth h = {.va = 0x1000, .rkey = 1, .dmalen = len};
    uint8_t b[16];
    reth_put(b, &h);
    return packet(from, opcode, dqpn, psn, b, 16, payload);
}

/* The end of a message and the beginning of the next one are lost, or only the beginning: of the next one neither place
 * nor size is known, and they are not those of the message before. */
Test(context, a_message_without_its_beginning_has_no_size)
{
    for (unsigned i = 0; i < 2; i++) {
        struct context *c = context_new(0);
        struct pkt *p;
        note(c, packet(1, OP_SEND_FIRST, 7, 1, NULL, 0, 1024));
        if (i)
            note(c, packet(1, OP_SEND_LAST, 7, 2, NULL, 0, 100));
        p = note(c, packet(1, OP_SEND_MIDDLE, 7, 4, NULL, 0, 1024));
        cr_expect_not(p->note.have & (NOTE_MSG | NOTE_MSG_BYTES));
        p = note(c, packet(1, OP_SEND_LAST, 7, 5, NULL, 0, 50));
        cr_expect_not(p->note.have & (NOTE_MSG | NOTE_MSG_PACKETS | NOTE_MSG_BYTES));
        context_free(c);
    }
}

Test(context, first_middle_last_are_one_message)
{
    struct context *c = context_new(0);
    struct pkt *p = note(c, reth(1, OP_WRITE_FIRST, 7, 0xfffffe, 2500, 1024));

    cr_expect_eq(p->note.msg, 1);
    cr_expect_eq(p->note.msg_packets, 3);
    cr_expect_eq(p->note.msg_bytes, 2500);
    p = note(c, packet(1, OP_WRITE_MIDDLE, 7, 0xffffff, NULL, 0, 1024));
    cr_expect_eq(p->note.msg_packet, 2);
    p = note(c, packet(1, OP_WRITE_LAST, 7, 0, NULL, 0, 452));
    cr_expect_eq(p->note.msg_packet, 3);
    cr_expect_eq(p->note.msg_packets, 3);
    p = note(c, packet(1, OP_SEND_FIRST, 7, 1, NULL, 0, 1024));
    cr_expect_eq(p->note.msg, 2);
    cr_expect_not(p->note.have & NOTE_MSG_PACKETS, "a SEND does not say how long it is");
    p = note(c, packet(1, OP_SEND_LAST, 7, 2, NULL, 0, 100));
    cr_expect_eq(p->note.msg_bytes, 1124);
    context_free(c);
}

Test(context, an_ack_names_the_frames_it_answers)
{
    struct context *c = context_new(0);
    uint64_t first;
    struct pkt *p;

    note(c, packet(1, OP_SEND_ONLY, 7, 10, NULL, 0, 8));
    note(c, ack(2, 9, 10, 0x1f));
    first = frame_no + 1;
    note(c, packet(1, OP_SEND_ONLY, 7, 11, NULL, 0, 8));
    note(c, packet(1, OP_SEND_ONLY, 7, 12, NULL, 0, 8));
    p = note(c, ack(2, 9, 12, 0x1f));
    cr_expect(p->note.have & NOTE_ACKED);
    cr_expect_eq(p->note.acked_first, first);
    cr_expect_eq(p->note.acked_last, first + 1);
    cr_expect_eq(p->note.src_qpn, 7, "pairing taught the source QP");
    context_free(c);
}

Test(context, the_first_ack_answers_from_the_first_packet)
{
    struct context *c = context_new(0);
    struct pkt *p;
    uint64_t first = frame_no + 1;

    note(c, packet(1, OP_SEND_FIRST, 7, 0xfffffe, NULL, 0, 1024));
    note(c, packet(1, OP_SEND_MIDDLE, 7, 0xffffff, NULL, 0, 1024));
    note(c, packet(1, OP_SEND_LAST, 7, 0, NULL, 0, 8));
    p = note(c, ack(2, 9, 0, 0x1f));
    cr_expect_eq(p->note.acked_first, first);
    cr_expect_eq(p->note.acked_last, first + 2);
    context_free(c);
}

Test(context, the_same_frame_again_is_not_a_retransmission)
{
    struct context *c = context_new(0);
    struct pkt *p;

    ip_id = 77;
    note(c, packet(1, OP_SEND_ONLY, 7, 10, NULL, 0, 8));
    p = note(c, packet(1, OP_SEND_ONLY, 7, 10, NULL, 0, 8));
    cr_expect(p->note.have & NOTE_TWICE);
    cr_expect_not(p->note.have & NOTE_RETRANS);
    ip_id = 78;
    p = note(c, packet(1, OP_SEND_ONLY, 7, 10, NULL, 0, 8));
    cr_expect(p->note.retransmission);
    cr_expect_not(p->note.have & NOTE_TWICE);
    context_free(c);
}

Test(context, a_nak_answers_one_frame)
{
    struct context *c = context_new(0);
    struct pkt *p;

    note(c, packet(1, OP_SEND_ONLY, 7, 10, NULL, 0, 8));
    note(c, packet(1, OP_SEND_ONLY, 7, 11, NULL, 0, 8));
    p = note(c, ack(2, 9, 11, 0x62));
    cr_expect_eq(p->note.acked_first, frame_no - 1);
    cr_expect_eq(p->note.acked_last, frame_no - 1);
    context_free(c);
}

Test(context, read_responses_name_their_request)
{
    struct context *c = context_new(0);
    uint8_t aeth[4] = {0x1f, 0, 0, 1};
    uint64_t request;
    struct pkt *p;

    note(c, reth(1, OP_READ_REQUEST, 7, 20, 3000, 0));
    request = frame_no;
    p = note(c, packet(2, OP_READ_RESP_FIRST, 9, 20, aeth, 4, 1024));
    cr_expect_eq(p->note.request_frame, request);
    cr_expect_eq(p->note.msg_packets, 3, "the first response teaches the path MTU");
    p = note(c, packet(2, OP_READ_RESP_MIDDLE, 9, 21, NULL, 0, 1024));
    cr_expect_eq(p->note.msg_packet, 2);
    p = note(c, packet(2, OP_READ_RESP_LAST, 9, 22, aeth, 4, 952));
    cr_expect_eq(p->note.request_frame, request);
    p = note(c, packet(1, OP_SEND_ONLY, 7, 23, NULL, 0, 8));
    cr_expect_eq(p->note.msg, 2);
    cr_expect_not(p->note.have & NOTE_RETRANS);
    context_free(c);
}

Test(context, a_psn_seen_twice_is_a_retransmission_and_keeps_its_message)
{
    struct context *c = context_new(0);
    struct pkt *p;

    note(c, reth(1, OP_WRITE_FIRST, 7, 5, 2048, 1024));
    ip_id = 1;
    note(c, packet(1, OP_WRITE_LAST, 7, 6, NULL, 0, 1024));
    ip_id = 2;
    p = note(c, packet(1, OP_WRITE_LAST, 7, 6, NULL, 0, 1024));
    cr_expect(p->note.retransmission);
    cr_expect_eq(p->note.msg, 1);
    cr_expect_eq(p->note.msg_packet, 2);
    context_free(c);
}

Test(context, an_overtaken_packet_is_not_a_retransmission)
{
    struct context *c = context_new(0);
    struct pkt *p;

    note(c, packet(1, OP_SEND_FIRST, 7, 5, NULL, 0, 1024));
    note(c, packet(1, OP_SEND_LAST, 7, 7, NULL, 0, 10));
    p = note(c, packet(1, OP_SEND_MIDDLE, 7, 6, NULL, 0, 1024));
    cr_expect_not(p->note.have & NOTE_RETRANS);
    cr_expect_eq(p->note.msg, 1);
    cr_expect_eq(p->note.msg_packet, 2);
    context_free(c);
}

Test(context, the_rest_of_a_read_is_a_retransmission_of_its_message)
{
    struct context *c = context_new(0);
    uint8_t aeth[4] = {0x1f, 0, 0, 1};
    uint64_t again;
    struct pkt *p;

    note(c, reth(1, OP_READ_REQUEST, 7, 20, 3000, 0));
    note(c, packet(2, OP_READ_RESP_FIRST, 9, 20, aeth, 4, 1024));
    note(c, reth(1, OP_READ_REQUEST, 7, 23, 8, 0));
    p = note(c, reth(1, OP_READ_REQUEST, 7, 21, 1976, 0));
    again = frame_no;
    cr_expect(p->note.retransmission);
    cr_expect_eq(p->note.msg, 1);
    cr_expect_eq(p->note.msg_bytes, 3000);
    p = note(c, packet(2, OP_READ_RESP_MIDDLE, 9, 21, NULL, 0, 1024));
    cr_expect_eq(p->note.request_frame, again);
    cr_expect_eq(p->note.msg, 1);
    cr_expect_eq(p->note.msg_packet, 2, "its place among all responses to the READ");
    cr_expect_eq(p->note.msg_packets, 3);
    cr_expect_eq(p->note.msg_bytes, 3000);
    context_free(c);
}

Test(context, the_range_of_answered_frames_is_never_reversed)
{
    struct context *c = context_new(0);
    uint64_t first = frame_no + 1;
    struct pkt *p;

    note(c, packet(1, OP_SEND_ONLY, 7, 10, NULL, 0, 8));
    note(c, packet(1, OP_SEND_ONLY, 7, 11, NULL, 0, 8));
    note(c, packet(1, OP_SEND_ONLY, 7, 12, NULL, 0, 8));
    note(c, packet(1, OP_SEND_ONLY, 7, 10, NULL, 0, 9));
    p = note(c, ack(2, 9, 12, 0x1f));
    cr_expect_eq(p->note.acked_first, first + 1, "PSN 11");
    cr_expect_eq(p->note.acked_last, first + 3, "PSN 10 once more");
    context_free(c);
}

Test(context, a_damaged_packet_is_no_part_of_a_message)
{
    struct context *c = context_new(0);
    struct pkt *p;

    note(c, packet(1, OP_SEND_FIRST, 7, 10, NULL, 0, 1024));
    p = packet(1, OP_SEND_MIDDLE, 7, 11, NULL, 0, 1024);
    p->icrc = CRC_BAD;
    note(c, p);
    cr_expect_eq(p->note.conn, 1);
    cr_expect_not(p->note.have & (NOTE_MSG | NOTE_RETRANS | NOTE_TWICE));
    p = note(c, packet(1, OP_SEND_MIDDLE, 7, 11, NULL, 0, 1024));
    cr_expect_not(p->note.have & (NOTE_RETRANS | NOTE_TWICE));
    cr_expect_eq(p->note.msg_packet, 2);
    p = ack(2, 9, 11, 0x1f);
    p->icrc = CRC_BAD;
    note(c, p);
    cr_expect_not(p->note.have & NOTE_ACKED);
    context_free(c);
}

Test(context, two_candidates_are_not_paired)
{
    struct context *c = context_new(0);
    struct pkt *p;

    note(c, packet(1, OP_SEND_ONLY, 7, 10, NULL, 0, 8));
    note(c, packet(1, OP_SEND_ONLY, 8, 10, NULL, 0, 8));
    p = note(c, ack(2, 9, 10, 0x1f));
    cr_expect_not(p->note.have & NOTE_ACKED, "either could have sent it");
    context_free(c);
}

Test(context, what_was_learnt_beforehand_pairs_at_once)
{
    struct context *c = context_new(0);
    struct conn_known k = {.qpn = {9, 7}, .pmtu = 512, .how = PAIR_CM, .upper = "NVMe/RDMA"};
    struct pkt *p;

    conn_addr_of(packet(1, OP_SEND_ONLY, 7, 10, NULL, 0, 8), &k.addr[0], &k.addr[1]);
    conn_learn(context_conns(c), &k);
    p = note(c, packet(1, OP_SEND_ONLY, 7, 10, NULL, 0, 8));
    cr_expect_eq(p->note.src_qpn, 9);
    cr_expect_eq(p->note.pmtu, 512);
    cr_expect_str_eq(p->note.upper, "NVMe/RDMA");
    p = note(c, ack(2, 9, 10, 0x1f));
    cr_expect_eq(p->note.src_qpn, 7);
    cr_expect(p->note.have & NOTE_ACKED);
    context_free(c);
}

Test(conn, a_full_table_gives_up_the_flow_unused_for_longest)
{
    struct conn_table *t = conn_table_new(16);

    for (uint32_t q = 2; q < 200; q++)
        cr_assert_lt(conn_flow(t, packet(1, OP_SEND_ONLY, q, 0, NULL, 0, 0)), 16);
    cr_expect_eq(conn_counts(t).flows, 16);
    cr_expect_eq(conn_counts(t).evicted, 198 - 16);
    for (uint32_t q = 200; q < 216; q++)
        conn_flow(t, packet(1, OP_SEND_ONLY, q, 0, NULL, 0, 0));
    for (uint32_t q = 200; q < 216; q++)
        cr_expect_eq(conn_flow_at(t, conn_flow(t, packet(1, OP_SEND_ONLY, q, 0, NULL, 0, 0)))->dqpn, q);
    cr_expect_eq(conn_counts(t).evicted, 198);
    conn_table_free(t);
}
