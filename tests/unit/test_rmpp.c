/* layer 2b tests: records of subnet administration that span segments of an RMPP transfer. */
#include "dissect/mad/rmpp.h"

#include "dissect/mad/sa.h"
#include "tests/unit/ulp_run.h"

#define STRIDE 112 /* of a NodeRecord, 108 bytes */
#define TID    77

/* Segment `number` of a table of `records` NodeRecords, whose LIDs count from 1, as the datagram that node 2 sends. */
static struct pkt *segment(struct run *r, uint32_t number, unsigned records)
{
    static const struct decode_opts opts = {0};
    uint32_t from = (number - 1) * SA_DATA_LEN, all = records * STRIDE, len = min_u32(all - from, SA_DATA_LEN);
    struct ip4 ip = {
        .version = 4, .ihl = 5, .len = 308, .ttl = 64, .proto = 17, .src = {10, 0, 0, 2}, .dst = {10, 0, 0, 1}};
    struct udp udp = {.sport = 49152, .dport = 4791, .len = 288};
    struct bth bth = {.opcode = 0x64, .pkey = 0xffff, .dqpn = 1, .psn = number};
    uint8_t *mad = r->bytes + 48;

    memset(r->bytes, 0, sizeof r->bytes);
    ip4_put(r->bytes, &ip);
    udp_put(r->bytes + 20, &udp);
    bth_put(r->bytes + 28, &bth);
    store_be32(r->bytes + 40, 0x80010000);
    store_be32(r->bytes + 44, 1);
    memcpy(mad, (uint8_t[]){1, 3, 2, 0x92}, 4);
    store_be64(mad + 8, TID);
    store_be16(mad + 16, 0x11);
    memcpy(mad + SA_RMPP_OFF, (uint8_t[]){1, RMPP_DATA, 0, RMPP_ACTIVE}, 4);
    mad[SA_RMPP_OFF + 2] =
        (uint8_t)(RMPP_ACTIVE | (number == 1 ? RMPP_FIRST : 0) | (from + len == all ? RMPP_LAST : 0));
    mad[SA_RMPP_OFF + 3] = 0;
    store_be32(mad + SA_RMPP_OFF + 4, number);
    store_be32(mad + SA_RMPP_OFF + 8, from + len == all ? len + SA_HDR_LEN : number == 1 ? all : 0);
    store_be16(mad + SA_HDR_OFF + 8, STRIDE / 8);
    for (uint32_t i = 0; i < len; i++)
        mad[SA_DATA_OFF + i] = (from + i) % STRIDE == 1 ? (uint8_t)((from + i) / STRIDE + 1) : 0;
    r->f = (struct frame){
        .data = r->bytes, .caplen = 308, .len = 308, .number = ++r->frame, .linktype = LINK_IPV4, .has_ts = true};
    pkt_decode(&r->p, &r->f, &opts);
    cr_assert(r->p.have & H_MAD);
    context_note(r->context, &r->p);
    return &r->p;
}

/* The LIDs of the NodeRecords that are shown, as digits; one that was put together of segments has a '+' before it. */
static const char *lids(const struct pkt *p)
{
    static char text[64];
    unsigned n = 0;

    for (unsigned i = 0; i < p->n_layers; i++)
        if (strcmp(p->layers[i].hdr->abbrev, "rdma.sa.noderecord") == 0 && p->layers[i].len >= 2) {
            if (p->layers[i].off & LAYER_MESSAGE)
                text[n++] = '+';
            text[n++] = (char)('0' + layer_bytes(p, &p->layers[i])[1]);
        }
    text[n] = 0;
    return text;
}

Test(rmpp, a_record_of_two_segments_is_put_together)
{
    struct run *r = run_new(NULL);

    cr_expect_str_eq(lids(segment(r, 1, 5)), "12");
    cr_expect_str_eq(lids(segment(r, 2, 5)), "34+2");
    cr_expect_str_eq(lids(segment(r, 3, 5)), "5+4");
    run_free(r);
}

Test(rmpp, a_lost_segment_and_one_sent_again)
{
    struct run *r = run_new(NULL);

    segment(r, 1, 9);
    cr_expect_str_eq(lids(segment(r, 2, 9)), "34+2");
    cr_expect_str_eq(lids(segment(r, 2, 9)), "34", "nothing is new");
    cr_expect_str_eq(lids(segment(r, 4, 9)), "78", "segment 3 is missing");
    cr_expect_str_eq(lids(segment(r, 5, 9)), "9+8", "both segments of it are there");
    segment(r, 1, 9);
    cr_expect_str_eq(lids(segment(r, 2, 9)), "34+2", "the next transfer");
    run_free(r);
}

Test(rmpp, segments_out_of_order_are_put_together)
{
    struct run *r = run_new(NULL);

    segment(r, 1, 9);
    cr_expect_str_eq(lids(segment(r, 4, 9)), "78");
    cr_expect_str_eq(lids(segment(r, 3, 9)), "56+6");
    cr_expect_str_eq(lids(segment(r, 6, 9)), "");
    cr_expect_str_eq(lids(segment(r, 2, 9)), "34+2+4");
    cr_expect_str_eq(lids(segment(r, 3, 9)), "56", "nothing is new");
    cr_expect_str_eq(lids(segment(r, 5, 9)), "9+8+9");
    run_free(r);
}

Test(rmpp, a_first_segment_that_comes_again_takes_nothing_away)
{
    struct run *r = run_new(NULL);

    segment(r, 1, 5);
    segment(r, 1, 5);
    cr_expect_str_eq(lids(segment(r, 2, 5)), "34+2");
    segment(r, 1, 5);
    cr_expect_str_eq(lids(segment(r, 3, 5)), "5+4");
    cr_expect_str_eq(lids(segment(r, 2, 5)), "34+2", "the table is sent once more");
    run_free(r);
}

Test(rmpp, a_capture_that_begins_within_a_transfer)
{
    struct run *r = run_new(NULL);

    cr_expect_str_eq(lids(segment(r, 2, 5)), "34");
    cr_expect_str_eq(lids(segment(r, 3, 5)), "5+4");
    cr_expect_str_eq(lids(segment(r, 1, 5)), "12+2");
    run_free(r);
}

Test(rmpp, transfers_do_not_mix)
{
    struct run *r = run_new(NULL);

    segment(r, 1, 5);
    r->bytes[48 + 15] = 0;
    cr_expect_str_eq(lids(segment(r, 3, 5)), "5", "its beginning is another transfer's");
    run_free(r);
}
