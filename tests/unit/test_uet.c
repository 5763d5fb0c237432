/* layer 1 tests: Ultra Ethernet Transport, on packets made by hand: no packet of a device was at hand. */
#include "dissect/uet/uet.h"

#include "dissect/columns.h"
#include "dissect/decode_opts.h"
#include "dissect/ip/ip.h"

#include <criterion/criterion.h>
#include <stdlib.h>

static struct pkt p;
static struct frame f;
static uint8_t bytes[256];

/* A packet to this port with `n` bytes behind UDP, of which `cap` were captured. */
static struct pkt *packet(uint16_t port, const uint8_t *b, unsigned n, unsigned cap)
{
    static const struct decode_opts opts = {0};
    struct ip4 ip = {.version = 4,
                     .ihl = 5,
                     .len = (uint16_t)(28 + n),
                     .ttl = 64,
                     .proto = 17,
                     .src = {10, 0, 0, 1},
                     .dst = {10, 0, 0, 2}};
    struct udp udp = {.sport = 7, .dport = port, .len = (uint16_t)(8 + n)};

    ip4_put(bytes, &ip);
    udp_put(bytes + 20, &udp);
    memcpy(bytes + 28, b, n);
    f = (struct frame){.data = bytes, .caplen = 28 + cap, .len = 28 + n, .number = 1, .linktype = LINK_IPV4};
    pkt_decode(&p, &f, &opts);
    return &p;
}

/* The first value of a field; INT64_MIN: the packet has none. */
static int64_t value_of(const char *name)
{
    struct value v;

    for (unsigned l = 0; l < p.n_layers; l++)
        for (unsigned i = 0; i < p.layers[l].hdr->nfields; i++)
            if (strcmp(p.layers[l].hdr->fields[i].abbrev, name) == 0 &&
                field_value(&p.layers[l].hdr->fields[i], &p, &p.layers[l], &v))
                return (int64_t)v.u;
    return INT64_MIN;
}

static const char *info(void)
{
    static struct buf b;

    b.len = 0;
    pkt_info(&b, &p);
    return buf_str(&b);
}

/* RUD_REQ with ACK request, then a standard request: write, first and only packet. */
static void request(uint8_t *b)
{
    memset(b, 0, 56);
    store_be16(b, UET_RUD_REQ << 11 | UET_STANDARD << 7 | 0x08);
    store_be16(b + 2, (uint16_t)-3);
    store_be32(b + 4, 1000);
    store_be16(b + 8, 5);
    store_be16(b + 10, 6);
    b[12] = 1;
    b[13] = 3;
    store_be16(b + 14, 77);
    store_be32(b + 16, 9);
    store_be64(b + 36, 0x1234);
    store_be32(b + 52, 4096);
}

Test(uet, a_request_and_what_it_asks_for)
{
    uint8_t b[56];

    request(b);
    packet(UET_PORT, b, sizeof b, sizeof b);
    cr_expect_str_eq(info(), "UET RUD_REQ PSN 1000 PDC 5 > 6 | write");
    cr_expect_str_eq(pkt_column(&p), "UET");
    cr_expect_eq(value_of("uet.pds.clear_psn"), 997);
    cr_expect_eq(value_of("uet.pds.flags.ar"), 1);
    cr_expect_eq(value_of("uet.pds.flags.syn"), 0);
    cr_expect_eq(value_of("uet.ses.std.opcode"), 1);
    cr_expect_eq(value_of("uet.ses.std.message_id"), 77);
    cr_expect_eq(value_of("uet.ses.std.job_id"), 9);
    cr_expect_eq(value_of("uet.ses.std.mem_key_match_bits"), 0x1234);
    cr_expect_eq(value_of("uet.ses.std.request_length"), 4096);
    cr_expect_eq(value_of("uet.ses.std.message_offset"), INT64_MIN, "of later packets");
    packet(UET_PORT_PROV, b, sizeof b, sizeof b);
    cr_expect_eq(value_of("uet.pds.psn"), 1000);
    packet(4794, b, sizeof b, sizeof b);
    cr_expect_eq(value_of("uet.pds.psn"), INT64_MIN);
}

Test(uet, acknowledgements_and_refusals)
{
    uint8_t b[44] = {0};

    store_be16(b, UET_ACK_CC << 11 | UET_RESPONSE << 7);
    store_be32(b + 4, 1000);
    store_be64(b + 16, 0xff);
    b[33] = 0x1b;
    packet(UET_PORT, b, sizeof b, sizeof b);
    cr_expect_str_eq(info(), "UET ACK_CC CACK PSN 1000 PDC 0 > 0");
    cr_expect_eq(value_of("uet.pds.ack.sack_bitmap"), 0xff);
    cr_expect_eq(value_of("uet.ses.rsp.return_code"), 0x1b);
    memset(b, 0, sizeof b);
    store_be16(b, UET_NACK << 11);
    b[2] = 0x0b;
    store_be32(b + 4, 7);
    packet(UET_PORT, b, 16, 16);
    cr_expect_str_eq(info(), "UET NACK PSN 7 code 0x0b (PSN outside the window) PDC 0 > 0");
    store_be16(b, UET_CONTROL << 11 | 4 << 7);
    packet(UET_PORT, b, 16, 16);
    cr_expect_eq(value_of("uet.pds.ctl_type"), 4);
    cr_expect_str_eq(info(), "UET CTRL (close) PSN 7 PDC 0 > 0");
}

Test(uet, a_request_that_opens_a_context_has_a_psn_offset_in_place_of_the_peers)
{
    uint8_t b[56];

    request(b);
    b[1] |= 0x04;
    store_be16(b + 10, 0x8000 | 2);
    packet(UET_PORT, b, sizeof b, sizeof b);
    cr_expect_str_eq(info(), "UET RUD_REQ SYN PSN 1000 PDC 5 PSN offset 2 (starts at 998) PDC info 0x8 | write");
    cr_expect_eq(value_of("uet.pds.psn_offset"), 2);
    cr_expect_eq(value_of("rdma.uet.pds.pdc_info"), 8, "a number: what its bits mean is not certain");
    cr_expect_eq(value_of("rdma.uet.pds.use_rsv"), INT64_MIN);
    cr_expect_eq(value_of("uet.pds.dpdcid"), INT64_MIN);
    b[1] &= (uint8_t)~0x04;
    packet(UET_PORT, b, sizeof b, sizeof b);
    cr_expect_eq(value_of("uet.pds.dpdcid"), 0x8002);
    cr_expect_eq(value_of("uet.pds.psn_offset"), INT64_MIN);
    cr_expect_eq(value_of("rdma.uet.pds.pdc_info"), INT64_MIN);
}

Test(uet, a_control_packet_opens_a_context_too)
{
    uint8_t b[16] = {0};

    store_be16(b, UET_CONTROL << 11 | 9 << 7 | 0x04);
    store_be32(b + 4, 1000);
    store_be16(b + 8, 5);
    packet(UET_PORT, b, sizeof b, sizeof b);
    cr_expect(strstr(info(), " SYN PSN 1000 PDC 5 PSN offset 0"), "%s", info());
    cr_expect_eq(value_of("uet.pds.dpdcid"), INT64_MIN);
    cr_expect_eq(value_of("rdma.uet.pds.pdc_info"), 0);
}

Test(uet, what_does_not_fit_stays_udp)
{
    uint8_t b[56];

    request(b);
    store_be16(b, UET_RUD_REQ << 11 | UET_RESPONSE << 7);
    packet(UET_PORT, b, sizeof b, sizeof b);
    cr_expect_eq(value_of("uet.pds.psn"), INT64_MIN, "a request is followed by no response");
    cr_expect_not(p.flags & PKT_MALFORMED);
    request(b);
    b[0] = 31 << 3;
    packet(UET_PORT, b, sizeof b, sizeof b);
    cr_expect_eq(value_of("uet.pds.type"), INT64_MIN, "no such type");
    for (unsigned n = 0; n < 56; n++)
        for (unsigned flip = 0; flip < 256; flip += 15) {
            uint8_t *copy = malloc(56);
            request(copy);
            copy[n] ^= (uint8_t)flip;
            packet(UET_PORT, copy, 56, n);
            for (unsigned l = 0; l < p.n_layers; l++)
                for (unsigned i = 0; i < p.layers[l].hdr->nfields; i++) {
                    struct value v;
                    field_value(&p.layers[l].hdr->fields[i], &p, &p.layers[l], &v);
                }
            free(copy);
        }
}

/* Each header with all its bytes: what stands where in it. */
Test(uet, every_header_has_its_fields)
{
    uint8_t b[60] = {0};

    store_be16(b, UET_RUD_CC_REQ << 11 | UET_SMALL << 7);
    store_be32(b + 12, 3u << 24 | 0x4711);
    b[16] = 2;
    b[17] = 0x23;
    store_be16(b + 18, 0xc000 | 700);
    store_be64(b + 28, 0x1000);
    packet(UET_PORT, b, 36, 36);
    cr_expect_str_eq(info(), "UET RUD_CC_REQ PSN 0 PDC 0 > 0 | read");
    cr_expect_eq(value_of("uet.pds.cc_state.ccc_id"), 3);
    cr_expect_eq(value_of("uet.pds.cc_state.credit_target"), 0x4711);
    cr_expect_eq(value_of("uet.ses.small_req.flags.dc"), 1);
    cr_expect_eq(value_of("uet.ses.small_req.eom"), 1);
    cr_expect_eq(value_of("uet.ses.small_req.req_length"), 700);
    cr_expect_eq(value_of("uet.ses.small_req.buffer_offset"), 0x1000);

    memset(b, 0, sizeof b);
    store_be16(b, UET_UUD_REQ << 11 | UET_MEDIUM << 7);
    b[4] = 5;
    store_be64(b + 16, 0x77);
    store_be32(b + 24, 0x88);
    store_be64(b + 28, 0x99);
    packet(UET_PORT, b, 36, 36);
    cr_expect_eq(value_of("uet.ses.med_req.opcode"), 5);
    cr_expect_eq(value_of("rdma.uet.ses.med_req.data"), 0x77);
    cr_expect_eq(value_of("uet.ses.med_req.initiator"), 0x88);
    cr_expect_eq(value_of("uet.ses.med_req.mem_key_match_bits"), 0x99);
    cr_expect_eq(value_of("uet.pds.psn"), INT64_MIN);

    memset(b, 0, sizeof b);
    store_be16(b, UET_ACK_CC << 11 | 0x20 | 0x04);
    store_be16(b + 2, (uint16_t)-2);
    store_be32(b + 4, 1);
    b[12] = 0x01;
    b[13] = 8;
    store_be16(b + 24, 9);
    b[26] = 0x85;
    store_be32(b + 26, 0x85000102);
    store_be16(b + 30, 6);
    packet(UET_PORT, b, 32, 32);
    cr_expect_eq(value_of("uet.pds.flags.m"), 1);
    cr_expect_eq(value_of("uet.pds.flags.req"), 2);
    cr_expect_eq(value_of("uet.pds.flags.syn"), INT64_MIN);
    cr_expect_eq(value_of("uet.pds.ack_psn"), UINT32_MAX, "it wraps");
    cr_expect_eq(value_of("uet.pds.ack.mpr"), 8);
    cr_expect_eq(value_of("rdma.uet.ack.cc_flags"), 1);
    cr_expect_eq(value_of("uet.pds.ack.cc_state.service_time"), 9);
    cr_expect_eq(value_of("uet.pds.ack.cc_state.rc"), 1);
    cr_expect_eq(value_of("uet.pds.ack.cc_state.rcv_cwnd_pend"), 5);
    cr_expect_eq(value_of("uet.pds.ack.cc_state.rcvd_bytes"), 0x000102);
    cr_expect_eq(value_of("uet.pds.ack.cc_state.ooo_count"), 6);
    b[1] |= 0x08;
    b[12] = 0x10;
    packet(UET_PORT, b, 32, 32);
    cr_expect_eq(value_of("uet.pds.ack_psn"), INT64_MIN, "a probe's");
    cr_expect_eq(value_of("uet.pds.ctrl_probe_opaque"), 0xfffe);
    cr_expect_eq(value_of("uet.pds.ack.cc_state.credit"), 0x000985);
    cr_expect_eq(value_of("uet.pds.ack.cc_state.service_time"), INT64_MIN);

    memset(b, 0, sizeof b);
    store_be16(b, UET_RUDI_RESP << 11 | UET_RESPONSE_DATA << 7);
    store_be32(b + 4, 0x1234);
    b[8] = 2;
    b[9] = 1;
    store_be16(b + 16, 11);
    store_be16(b + 18, 0xc000 | 12);
    store_be32(b + 20, 13);
    store_be32(b + 24, 14);
    packet(UET_PORT, b, 28, 28);
    cr_expect_eq(value_of("uet.pds.rudi.pkt_id"), 0x1234);
    cr_expect_eq(value_of("uet.ses.rsp.read_req_message_id"), 11);
    cr_expect_eq(value_of("uet.ses.rsp.payload_length"), 12);
    cr_expect_eq(value_of("uet.ses.rsp.mod_length"), 13);
    cr_expect_eq(value_of("uet.ses.rsp.message_offset"), 14);
    store_be16(b, UET_RUDI_RESP << 11 | UET_RESPONSE_SMALL << 7);
    store_be16(b + 10, 21);
    store_be32(b + 16, 22);
    packet(UET_PORT, b, 20, 20);
    cr_expect_eq(value_of("uet.ses.rsp.payload_length"), 21);
    cr_expect_eq(value_of("rdma.uet.ses.rsp.request_psn"), 22);
    cr_expect_eq(value_of("uet.ses.rsp.message_id"), INT64_MIN);
}

/* The bytes of a field as digits; empty: there is none. */
static const char *bytes_of(const char *name)
{
    static struct buf b;
    struct value v;

    b.len = 0;
    for (unsigned l = 0; l < p.n_layers; l++)
        for (unsigned i = 0; i < p.layers[l].hdr->nfields; i++)
            if (strcmp(p.layers[l].hdr->fields[i].abbrev, name) == 0 &&
                field_value(&p.layers[l].hdr->fields[i], &p, &p.layers[l], &v))
                for (unsigned n = 0; n < v.len; n++)
                    buf_printf(&b, "%02x", v.p[n]);
    return buf_str(&b);
}

Test(uet, atomics_have_a_header_behind_the_request)
{
    static const uint8_t opcodes[] = {3, 4, 0xd, 0xe};
    static const struct {
        unsigned next, len;
    } kinds[] = {{UET_SMALL, 20}, {UET_MEDIUM, 32}, {UET_STANDARD, 44}};
    uint8_t b[92] = {0};

    for (unsigned k = 0; k < ARRAY_LEN(kinds); k++)
        for (unsigned i = 0; i < ARRAY_LEN(opcodes); i++) {
            unsigned at = 12 + kinds[k].len;
            store_be16(b, (uint16_t)(UET_RUD_REQ << 11 | kinds[k].next << 7));
            b[12] = opcodes[i];
            memset(b + at, 0, sizeof b - at);
            b[at] = 2;
            b[at + 1] = 4;
            b[at + 2] = 0x80;
            packet(UET_PORT, b, at + 4, at + 4);
            cr_expect(strstr(info(), " sum of int32"), "%s", info());
            cr_expect_eq(value_of("uet.ses.atomic_op_ext_hdr.atomic_opcode"), 2);
            cr_expect_eq(value_of("uet.ses.atomic_op_ext_hdr.atomic_data_type"), 4);
            cr_expect_eq(value_of("uet.ses.atomic_op_ext_hdr.sem_ctl"), 0x80);
            packet(UET_PORT, b, at + 3, at + 3);
            cr_expect_eq(value_of("uet.ses.atomic_op_ext_hdr.atomic_opcode"), INT64_MIN, "it does not fit");
            for (uint8_t op = 0x0c; op <= 0x13; op++) {
                b[at] = op;
                for (unsigned n = 4; n < 36; n++)
                    b[at + n] = (uint8_t)n;
                packet(UET_PORT, b, at + 36, at + 36);
                cr_expect_str_eq(bytes_of("uet.ses.comp_swap_ext_hdr.comp_value"),
                                 op == 0x0c || op == 0x13 ? "" : "0405060708090a0b0c0d0e0f10111213");
                cr_expect_str_eq(bytes_of("uet.ses.comp_swap_ext_hdr.swap_value"),
                                 op == 0x0c || op == 0x13 ? "" : "1415161718191a1b1c1d1e1f20212223");
            }
        }
    b[12] = 1;
    packet(UET_PORT, b, sizeof b, sizeof b);
    cr_expect_eq(value_of("uet.ses.atomic_op_ext_hdr.atomic_opcode"), INT64_MIN, "a write has none");
}

Test(uet, a_rendezvous_says_what_is_to_be_read)
{
    uint8_t b[80];

    for (uint8_t opcode = 5; opcode <= 0xb; opcode++) {
        bool has = opcode == 6 || opcode == 0xa;
        request(b);
        b[12] = opcode;
        store_be32(b + 56, 700);
        store_be32(b + 60, 0x63345123);
        store_be64(b + 64, 0x4000);
        store_be64(b + 72, 0x99);
        packet(UET_PORT, b, sizeof b, sizeof b);
        cr_expect_eq(value_of("uet.ses.rendv_ext_hdr.eager_length"), has ? 700 : INT64_MIN, "%u", opcode);
        cr_expect_eq(value_of("rdma.uet.ses.rendv_ext_hdr.generation"), has ? 99 : INT64_MIN);
        cr_expect_eq(value_of("uet.ses.rendv_ext_hdr.read_pid_on_fep"), has ? 0x345 : INT64_MIN);
        cr_expect_eq(value_of("uet.ses.rendv_ext_hdr.read_resource_index"), has ? 0x123 : INT64_MIN);
        cr_expect_eq(value_of("uet.ses.rendv_ext_hdr.read_offset"), has ? 0x4000 : INT64_MIN);
        cr_expect_eq(value_of("uet.ses.rendv_ext_hdr.read_match_bits"), has ? 0x99 : INT64_MIN);
    }
}

Test(uet, a_send_that_is_deferred_has_a_restart_token)
{
    uint8_t b[56];

    for (uint8_t opcode = 0; opcode <= 0xf; opcode++) {
        bool deferred = opcode == 8 || opcode == 0xb, ready = opcode == 0xc;
        request(b);
        b[12] = opcode;
        store_be64(b + 24, 0x1122);
        packet(UET_PORT, b, sizeof b, sizeof b);
        cr_expect_eq(value_of("uet.ses.std.restart_token"),
                     deferred ? 0x1122
                     : ready  ? 0x1234
                              : INT64_MIN,
                     "%u", opcode);
        cr_expect_eq(value_of("uet.ses.std.buffer_offset"), deferred ? INT64_MIN : 0x1122, "%u", opcode);
        cr_expect_eq(value_of("uet.ses.std.mem_key_match_bits"), ready ? INT64_MIN : 0x1234, "%u", opcode);
    }
}

Test(uet, a_packet_that_was_cut_shows_what_is_there)
{
    uint8_t b[56];

    request(b);
    for (unsigned n = 12; n <= 56; n++) {
        packet(UET_PORT, b, sizeof b, n);
        cr_expect_eq(value_of("uet.pds.psn"), 1000, "%u bytes", n);
        cr_expect_eq(value_of("uet.ses.std.request_length"), n == 56 ? 4096 : INT64_MIN, "%u bytes", n);
    }
    packet(UET_PORT, b, 55, 55);
    cr_expect_eq(value_of("uet.pds.psn"), INT64_MIN, "its headers have no room");
}

Test(uet, encrypted_packets_show_their_header)
{
    uint8_t b[40] = {UET_TSS << 3 | 0x01, 0, 0x12, 0x34};

    store_be64(b + 4, 0x55);
    packet(UET_PORT, b, sizeof b, sizeof b);
    cr_expect_eq(value_of("uet.tss.an"), 1);
    cr_expect_eq(value_of("uet.tss.sdi"), 0x1234);
    cr_expect_eq(value_of("uet.tss.tsc"), 0x55);
    cr_expect_eq(value_of("uet.tss.ssi"), INT64_MIN);
    cr_expect_eq(value_of("uet.pds.nh"), INT64_MIN);
    b[0] |= 0x04;
    packet(UET_PORT, b, sizeof b, sizeof b);
    cr_expect_eq(value_of("uet.tss.ssi"), 0);
    cr_expect_eq(value_of("uet.tss.tsc"), UINT64_C(0x55) << 32);
    packet(UET_PORT, b, 15, 15);
    cr_expect_eq(value_of("uet.pds.type"), INT64_MIN, "cut");
}

/* What a code of this field is called; "": nothing. */
static const char *name_of(const char *field, uint64_t code)
{
    static struct buf b;

    b.len = 0;
    for (const struct hdr *const *h = all_headers; *h; h++)
        for (unsigned i = 0; i < (*h)->nfields; i++)
            if (strcmp((*h)->fields[i].abbrev, field) == 0 && vdesc_print(&b, (*h)->fields[i].desc, code))
                return buf_str(&b);
    return "";
}

/* Every code that both sources have, and no other. */
Test(uet, codes_have_names)
{
    for (unsigned c = 0; c <= 0xff; c++) {
        bool nack = (c >= 0x01 && c <= 0x1a && c != 0x0c) || c >= 0xfd, code = c <= 0x24;
        cr_expect_eq(*name_of("uet.pds.nack.code", c) != '\0', nack, "NACK 0x%02x: %s", c,
                     name_of("uet.pds.nack.code", c));
        cr_expect_eq(*name_of("uet.ses.rsp.return_code", c) != '\0', code, "return code 0x%02x", c);
    }
    cr_expect_str_eq(name_of("uet.ses.rsp.return_code", 0x16), "atomic: inexact");
    cr_expect_str_eq(name_of("uet.ses.rsp.return_code", 0x0c), "address out of range");
}
