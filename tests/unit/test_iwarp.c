/* layer 2b tests: iWARP: streams put together, FPDUs found, operations, and what contradicts the documents. */
#include "tests/unit/iwarp_run.h"

#include "src/cap/cap.h"
#include "src/ulp/ulp.h"
#include "tests/unit/patience.h"

#include <stdio.h>

Test(iwarp, a_request_that_is_split_and_an_fpdu_over_several_segments)
{
    struct tcp_run *r = tcp_run_new();
    static uint8_t b[8192];
    struct ddp d = a_send(1, 0, true);

    tcp_send(r, CLIENT, b, make_start(b, false, FLAG_CRC, 1), 1000);
    tcp_send(r, SERVER, b, make_start(b, true, 0, 1), 1000);
    cr_expect_eq(r->n_starts, 2);
    tcp_send(r, CLIENT, b, make_fpdu(b, &d, 5000, true), 700);
    cr_expect_eq(r->n_fpdus, 1);
    cr_expect_eq(r->n_bad_crc, 0, "the client alone asked for CRCs: they are used");
    tcp_ack(r, SERVER);
    tcp_run_free(r);
}

Test(iwarp, the_key_may_come_in_pieces_behind_a_syn)
{
    struct tcp_run *r = tcp_run_new();
    uint8_t b[32];
    uint32_t n = make_start(b, false, FLAG_CRC, 1);
    static const struct decode_opts opts = {0};

    tcp_segment(r, CLIENT, r->seq[CLIENT], NULL, 0, 0);
    r->bytes[33] = 2; /* SYN */
    pkt_decode(&r->p, &r->f, &opts);
    observer_packet(r->observer, &r->p);
    r->seq[CLIENT]++;
    tcp_send(r, CLIENT, b, n, 5);
    cr_expect_eq(r->n_starts, 1);
    tcp_run_free(r);
}

Test(iwarp, segments_in_any_order_and_twice)
{
    static const uint8_t orders[][4] = {{0, 1, 2, 3}, {3, 2, 1, 0}, {1, 0, 3, 2}, {2, 3, 0, 1}};
    static uint8_t b[8192];
    struct ddp d[2] = {a_send(1, 0, true), a_write(7, 64, true)};

    for (unsigned o = 0; o < ARRAY_LEN(orders); o++) {
        struct tcp_run *r = tcp_run_new();
        uint32_t n, part, base;
        tcp_start(r, FLAG_CRC);
        n = make_fpdu(b, &d[0], 1001, true);
        n += make_fpdu(b + n, &d[1], 2002, true);
        part = (n + 3) / 4;
        base = r->seq[CLIENT];
        for (unsigned again = 0; again < 2; again++)
            for (unsigned i = 0; i < 4; i++) {
                uint32_t at = orders[o][i] * part, len = min_u32(part, n - at);
                tcp_segment(r, CLIENT, base + at, b + at, len, len);
            }
        cr_expect_eq(r->n_fpdus, 2, "order %u: %u", o, r->n_fpdus);
        cr_expect_eq(r->n_whole, 2);
        cr_expect_eq(all_faults(r), 0);
        tcp_run_free(r);
    }
}

Test(iwarp, several_fpdus_in_a_segment_are_shown_each)
{
    struct tcp_run *r = tcp_run_new();
    static uint8_t b[4096];
    uint32_t n = 0;
    unsigned layers = 0;

    tcp_start(r, FLAG_CRC);
    for (uint32_t i = 1; i <= 5; i++) {
        struct ddp d = a_send(i, 0, true);
        n += make_fpdu(b + n, &d, i, true);
    }
    tcp_send(r, CLIENT, b, n, 4096);
    for (unsigned i = 0; i < r->p.n_layers; i++)
        layers += r->p.layers[i].hdr == &mpa_fpdu_crc_hdr;
    cr_expect_eq(layers, 5);
    cr_expect_eq(r->n_fpdus, 5);
    cr_expect_eq(all_faults(r), 0);
    tcp_run_free(r);
}

Test(iwarp, a_wrong_crc_is_the_only_fault)
{
    struct tcp_run *r = tcp_run_new();
    static uint8_t b[2048];
    struct ddp d = a_write(1, 0, false);
    uint32_t n = make_fpdu(b, &d, 1000, true);

    tcp_start(r, FLAG_CRC);
    send_fpdu(r, CLIENT, &d, 1000);
    d.to = 1000;
    n = make_fpdu(b, &d, 1000, true);
    b[500] ^= 4;
    tcp_send(r, CLIENT, b, n, 4096);
    d.to = 2000;
    d.last = true;
    send_fpdu(r, CLIENT, &d, 1000);
    cr_expect_eq(r->faults[IWARP_BAD_CRC], 1);
    cr_expect_eq(all_faults(r), 1);
    cr_expect_eq(r->n_fpdus, 3);
    tcp_run_free(r);
}

/* Insert markers into the bytes of a stream that begins `rel` bytes behind the request; `begin`: where FPDUs begin. */
static uint32_t with_markers(uint8_t *to, const uint8_t *b, uint32_t n, const uint32_t *begin, unsigned n_begin)
{
    uint32_t out = 0, start = 0;

    for (uint32_t i = 0; i < n; i++) {
        bool first = false;
        for (unsigned k = 0; k < n_begin; k++)
            first |= begin[k] == i;
        if (out % MPA_MARKER_EVERY == 0) {
            store_be32(to + out, first ? 0 : out - start);
            out += 4;
        }
        if (first)
            start = out;
        to[out++] = b[i];
    }
    return out;
}

Test(iwarp, markers_are_taken_out_and_checked)
{
    static uint8_t b[8192], marked[9000];
    uint32_t begin[3], n = 0, all;

    for (unsigned wrong = 0; wrong < 2; wrong++) {
        struct tcp_run *r = tcp_run_new();
        n = 0;
        tcp_start(r, FLAG_CRC | FLAG_MARKERS);
        for (uint32_t i = 0; i < 3; i++) {
            struct ddp d = a_send(i + 1, 0, true);
            begin[i] = n;
            n += make_fpdu(b + n, &d, 1111 + i, true);
        }
        all = with_markers(marked, b, n, begin, 3);
        marked[512 + 3] ^= wrong ? 4 : 0;
        tcp_send(r, CLIENT, marked, all, 333);
        cr_expect_eq(r->n_fpdus, 3, "%u", r->n_fpdus);
        cr_expect_eq(r->n_bad_crc, 0);
        cr_expect_eq(r->faults[IWARP_BAD_MARKER], wrong);
        cr_expect_eq(all_faults(r), wrong);
        tcp_run_free(r);
    }
}

/* A stream of FPDUs in which segment `lost` was not captured, but acknowledged. */
static struct tcp_run *with_lost(uint32_t lost, uint32_t segment, uint32_t payload, uint32_t fpdus)
{
    struct tcp_run *r = tcp_run_new();
    static uint8_t b[65536];
    uint32_t n = 0;

    tcp_start(r, FLAG_CRC);
    for (uint32_t i = 1; i <= fpdus; i++) {
        struct ddp d = a_send(i, 0, true);
        n += make_fpdu(b + n, &d, payload, true);
    }
    for (uint32_t at = 0, i = 0; at < n; at += segment, i++) {
        uint32_t len = min_u32(segment, n - at);
        if (i != lost)
            tcp_segment(r, CLIENT, r->seq[CLIENT], b + at, len, len);
        r->seq[CLIENT] += len;
        r->sent_to[CLIENT] = r->seq[CLIENT];
        tcp_ack(r, SERVER);
    }
    return r;
}

Test(iwarp, a_lost_segment_within_an_fpdu_costs_that_fpdu_only)
{
    struct tcp_run *r = with_lost(1, 500, 2000, 8);

    cr_expect_eq(r->n_fpdus, 8, "%u", r->n_fpdus);
    cr_expect_eq(r->n_whole, 7, "%u", r->n_whole);
    cr_expect_eq(all_faults(r), 0);
    tcp_run_free(r);
}

Test(iwarp, a_lost_segment_with_a_header_is_passed_by_looking_for_the_next_fpdu)
{
    for (uint32_t lost = 0; lost < 30; lost++) {
        struct tcp_run *r = with_lost(lost, 600, 1300, 14);
        cr_expect_geq(r->n_whole, 11, "segment %u: %u", lost, r->n_whole);
        cr_expect_eq(all_faults(r), 0, "segment %u", lost);
        tcp_run_free(r);
    }
}

Test(iwarp, segments_that_were_cut_still_tell_their_operations)
{
    struct tcp_run *r = tcp_run_new();
    static uint8_t b[4096];

    tcp_start(r, FLAG_CRC);
    for (uint32_t i = 0; i < 4; i++) {
        struct ddp d = a_write(9, i * 1400, i == 3);
        uint32_t n = make_fpdu(b, &d, 1400, true);
        tcp_segment(r, CLIENT, r->seq[CLIENT], b, n, 60);
        r->seq[CLIENT] += n;
    }
    r->sent_to[CLIENT] = r->seq[CLIENT];
    tcp_ack(r, SERVER);
    cr_expect_eq(r->n_fpdus, 4);
    cr_expect_eq(r->n_whole, 0);
    iwarp_finish(observer_iwarp(r->observer), r);
    cr_assert_eq(r->n_over, 1);
    cr_expect_eq(r->over[0].bytes, 5600);
    cr_expect_eq(r->over[0].ended, IWARP_DONE);
    tcp_run_free(r);
}

/* Two FPDUs in a segment that was cut at each byte: the headers of the second are there, in part, or missing. */
Test(iwarp, numbers_behind_headers_that_were_cut_are_not_wrong)
{
    static uint8_t b[4096];
    struct ddp first = a_send(1, 0, true), begun = a_send(2, 0, false), rest = a_send(2, 100, true),
               next = a_send(3, 0, true), wrong = a_send(5, 0, true);

    for (uint32_t cap = 1; cap < 80; cap++) {
        struct tcp_run *r = tcp_run_new();
        uint32_t n;
        tcp_start(r, FLAG_CRC);
        n = make_fpdu(b, &first, 20, true);
        n += make_fpdu(b + n, &begun, 100, true);
        tcp_segment(r, CLIENT, r->seq[CLIENT], b, n, cap);
        r->seq[CLIENT] += n;
        tcp_ack(r, SERVER);
        send_fpdu(r, CLIENT, &rest, 50);
        send_fpdu(r, CLIENT, &next, 50);
        cr_expect_eq(all_faults(r), 0, "%u bytes: %u", cap, all_faults(r));
        send_fpdu(r, CLIENT, &wrong, 50);
        cr_expect_eq(r->faults[IWARP_BAD_MSN], 1, "%u bytes", cap);
        tcp_run_free(r);
    }
}

Test(iwarp, a_capture_that_begins_later_is_recognised_by_three_fpdus)
{
    for (unsigned crc = 0; crc < 2; crc++) {
        struct tcp_run *r = tcp_run_new();
        static uint8_t b[4096];
        r->seq[CLIENT] = 777;
        for (uint32_t i = 0; i < 5; i++) {
            struct ddp d = a_send(40 + i, 0, true);
            cr_expect_eq(r->n_fpdus, i < 3 ? 0 : i);
            tcp_send(r, CLIENT, b, make_fpdu(b, &d, 200, crc), 4096);
        }
        cr_expect_eq(r->n_fpdus, 5);
        cr_expect_eq(all_faults(r), 0);
        cr_expect_eq(iwarp_at(observer_iwarp(r->observer), 0)->crc, crc);
        tcp_run_free(r);
    }
}

/* How many FPDUs of this end the latest packet shows; -1: one of the other end. */
static int shown_of(const struct tcp_run *r, enum iwarp_side side)
{
    struct iwarp_unit u;
    int n = 0;

    while (iwarp_shown(observer_iwarp(r->observer), &r->p, (unsigned)n, &u)) {
        if (u.side != side)
            return -1;
        n++;
    }
    return n;
}

Test(iwarp, a_capture_that_begins_later_tells_of_both_ends_in_their_order)
{
    for (unsigned first = 0; first < 2; first++) { /* who sends the first FPDU in the capture */
        struct tcp_run *r = tcp_run_new();
        r->seq[CLIENT] = 777;
        for (uint32_t i = 0; i < 8; i++) {
            unsigned from = (first + i) % 2;
            struct ddp d = a_send(40 + i / 2, 0, true);
            cr_expect_eq(r->n_fpdus, i < 5 ? 0 : i, "%u: %u FPDUs", i, r->n_fpdus);
            send_fpdu(r, from, &d, 200);
            cr_expect_eq(shown_of(r, (enum iwarp_side)from), i < 4 ? 0 : i < 6 ? 3 : 1, "%u", i);
        }
        for (unsigned i = 0; i < 8; i++)
            cr_expect_eq(r->of_frame[i], i + 1, "FPDU %u: frame %u", i, (unsigned)r->of_frame[i]);
        cr_expect_eq(r->n_fpdus, 8);
        cr_expect_eq(all_faults(r), 0);
        tcp_run_free(r);
    }
}

Test(iwarp, other_streams_are_none)
{
    struct tcp_run *r = tcp_run_new();
    static uint8_t b[4096];
    uint32_t x = 1;

    for (uint32_t i = 0; i < 200; i++) {
        struct ddp d = a_send(i, 0, true);
        uint32_t n = make_fpdu(b, &d, 200, false);
        for (uint32_t k = 2; k < n; k++)
            b[k] ^= (uint8_t)((x = x * 1103515245 + 12345) >> 16 & (k > 24 || i % 3 ? 0xff : 0));
        tcp_send(r, i & 1, b, n, 4096);
        cr_expect_not(r->p.flags & PKT_MALFORMED);
    }
    cr_expect_eq(r->n_fpdus + r->n_starts, 0);
    cr_expect_eq(iwarp_count(observer_iwarp(r->observer)), 0);
    tcp_run_free(r);
}

Test(iwarp, what_contradicts_the_documents)
{
    struct ddp right = a_send(2, 0, true), version = right, rdmap = right, opcode = right, queue = right, msn = right,
               mo = a_send(2, 5, true), model = a_write(1, 0, true), response = a_write(1, 0, true);
    const struct {
        const struct ddp *d;
        enum iwarp_fault fault;
        uint32_t len;
    } cases[] = {{&version, IWARP_BAD_VERSION, 8}, {&rdmap, IWARP_BAD_VERSION, 8},     {&opcode, IWARP_BAD_OPCODE, 8},
                 {&queue, IWARP_BAD_OPCODE, 8},    {&msn, IWARP_BAD_MSN, 8},           {&mo, IWARP_BAD_MO, 8},
                 {&model, IWARP_BAD_OPCODE, 8},    {&response, IWARP_BAD_RESPONSE, 8}, {&right, IWARP_FAULTS, 8}};

    version.version = 2;
    rdmap.rdmap_version = 2;
    opcode.opcode = 13;
    queue.qn = 1;
    msn.msn = 4;
    model.opcode = RDMAP_SEND;
    response.opcode = RDMAP_READ_RESPONSE;
    for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
        struct tcp_run *r = tcp_run_new();
        struct ddp first = a_send(1, 0, true);
        tcp_start(r, FLAG_CRC);
        send_fpdu(r, CLIENT, &first, 100);
        send_fpdu(r, CLIENT, cases[i].d, cases[i].len);
        cr_expect_eq(all_faults(r), cases[i].fault != IWARP_FAULTS, "case %u: %u", i, all_faults(r));
        if (cases[i].fault != IWARP_FAULTS)
            cr_expect_eq(r->faults[cases[i].fault], 1, "case %u", i);
        tcp_run_free(r);
    }
}

/* Its sender may have received a request that comes later in the capture, or is missing. */
Test(iwarp, a_response_behind_bytes_that_were_not_captured_is_not_wrong)
{
    for (uint32_t missing = 0; missing < 2; missing++) {
        struct tcp_run *r = tcp_run_new();
        struct ddp first = a_send(1, 0, true), response = a_write(1, 0, true);
        tcp_start(r, FLAG_CRC);
        send_fpdu(r, SERVER, &first, 100);
        r->sent_to[SERVER] += missing * 52; /* bytes that the tap did not see */
        response.opcode = RDMAP_READ_RESPONSE;
        send_fpdu(r, CLIENT, &response, 8);
        cr_expect_eq(r->faults[IWARP_BAD_RESPONSE], !missing);
        cr_expect_eq(all_faults(r), !missing);
        tcp_run_free(r);
    }
}

Test(iwarp, a_read_is_over_with_the_last_of_its_response)
{
    struct tcp_run *r = tcp_run_new();
    struct ddp d = {.last = true, .version = 1, .rdmap_version = 1, .opcode = RDMAP_READ_REQUEST, .qn = 1, .msn = 1},
               answer = a_write(0x1234, 0x100, false);
    static uint8_t b[256];
    uint32_t n = make_fpdu(b, &d, RDMAP_READ_LEN, true);
    uint8_t *q = b + 2 + DDP_UNTAGGED_LEN;

    tcp_start(r, FLAG_CRC);
    store_be32(q, 0x1234);
    store_be64(q + 4, 0x100);
    store_be32(q + 12, 3000);
    store_be32(q + 16, 0x77);
    store_be64(q + 20, 0x4000);
    store_be32(b + n - 4, mpa_crc(b, n - 4));
    tcp_send(r, CLIENT, b, n, 4096);
    answer.opcode = RDMAP_READ_RESPONSE;
    send_fpdu(r, SERVER, &answer, 2000);
    answer.to += 2000;
    answer.last = true;
    send_fpdu(r, SERVER, &answer, 1000);
    iwarp_finish(observer_iwarp(r->observer), r);
    cr_assert_eq(r->n_over, 1);
    cr_expect_eq(r->over[0].ended, IWARP_DONE);
    cr_expect_eq(r->over[0].stag, 0x77);
    cr_expect_eq(r->over[0].to, 0x4000);
    cr_expect_eq(r->over[0].bytes, 3000);
    cr_expect_eq(r->over[0].answered, 3000);
    cr_expect_eq(r->over[0].done_frame, r->frame);
    cr_expect_eq(all_faults(r), 0);
    tcp_run_free(r);
}

Test(iwarp, terminates_are_read_in_both_orders_of_their_bits)
{
    static const struct {
        uint8_t b[4];
        bool swapped;
        const char *text;
    } cases[] = {
        {{0x10, 0x00, 0x07, 0x00}, true, "RDMAP: remote protection error: invalid STag"},
        {{0x01, 0x00, 0xe0, 0x00}, false, "RDMAP: remote protection error: invalid STag"},
        {{0x11, 0x00, 0x03, 0x00}, true, "DDP: tagged buffer error: invalid STag"},
        {{0x21, 0x02, 0x03, 0x00}, true, "DDP: untagged buffer error: no buffer available"},
        {{0x12, 0x05, 0xc0, 0x00}, false, "DDP: untagged buffer error: message too long for the buffer"},
        {{0x02, 0x02, 0x00, 0x00}, true, "MPA: MPA error: CRC error"},
        {{0x20, 0x02, 0x00, 0x00}, false, "MPA: MPA error: CRC error"},
        {{0x01, 0x77, 0x00, 0x00}, false, "RDMAP: remote protection error: code 0x77"},
    };

    for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
        struct rdmap_terminate t;
        struct buf b = {0};
        cr_assert(rdmap_terminate_get(&t, cases[i].b, 4));
        rdmap_terminate_text(&b, &t);
        cr_expect_str_eq(buf_str(&b), cases[i].text);
        cr_expect_eq(t.swapped, cases[i].swapped, "case %u", i);
        buf_free(&b);
    }
}

Test(iwarp, the_crc_is_that_of_rfc_3720)
{
    static const uint8_t zeros[32], digits[] = "123456789";

    cr_expect_eq(mpa_crc(zeros, 32), 0xaa36918a);
    cr_expect_eq(mpa_crc(digits, 9), 0x839206e3);
}

/* --- Real captures, damaged ------------------------------------------------------------------- */

/* The frames of a capture. */
struct kept {
    struct frame f[80];
    uint8_t bytes[80][1600];
    unsigned n;
};

static void keep(struct kept *k, const char *path)
{
    struct cap_error e;
    struct frame f;
    struct cap *c;

    k->n = 0;
    cr_assert_eq(cap_open(&c, path, 0, NULL, &e), 0);
    while (cap_next(c, &f) == 1 && k->n < ARRAY_LEN(k->f)) {
        cr_assert_leq(f.caplen, sizeof k->bytes[0]);
        memcpy(k->bytes[k->n], f.data, f.caplen);
        k->f[k->n++] = f;
    }
    cap_close(c);
}

/* All frames, each with byte `at` of its TCP payload flipped (`flip`), or cut there; every `lose`-th is left out (0:
 * none). Returns the FPDUs found. */
static unsigned play(const struct kept *k, uint32_t at, uint8_t flip, unsigned lose)
{
    static const struct decode_opts opts = {0};
    struct tcp_run *r = tcp_run_new();
    unsigned found;

    for (unsigned i = 0; i < k->n; i++) {
        uint32_t n = k->f[i].caplen, payload = 66;
        struct frame f = k->f[i];
        uint8_t *copy;
        if (lose && i % lose == lose - 1)
            continue;
        if (!flip && payload + at < n)
            n = payload + at;
        copy = malloc(n);
        memcpy(copy, k->bytes[i], n);
        if (flip && payload + at < n)
            copy[payload + at] ^= flip;
        f.data = copy;
        f.caplen = n;
        pkt_decode(&r->p, &f, &opts);
        observer_packet(r->observer, &r->p);
        iwarp_show(observer_iwarp(r->observer), &r->p);
        cr_assert_not(r->p.flags & PKT_MALFORMED);
        for (unsigned l = 0; l < r->p.n_layers; l++)
            for (unsigned v = 0; v < r->p.layers[l].hdr->nfields; v++) {
                struct value value;
                field_value(&r->p.layers[l].hdr->fields[v], &r->p, &r->p.layers[l], &value);
            }
        free(copy);
    }
    found = r->n_fpdus;
    tcp_run_free(r);
    return found;
}

Test(iwarp, real_captures_cut_and_damaged_at_each_byte)
{
    static const char *const paths[] = {"captures/siw_ops_crc_1.pcap", "captures/siw_term_rkey_write_1.pcap",
                                        "captures/siw_gso_crc_1.pcap"};
    static const uint8_t flips[] = {0, 0xff, 0x01, 0x80};
    static struct kept k;

    hangs_after(120);
    for (unsigned i = 0; i < ARRAY_LEN(paths); i++) {
        unsigned whole;
        keep(&k, paths[i]);
        whole = play(&k, UINT32_MAX / 2, 0, 0);
        cr_expect_geq(whole, 4);
        for (uint32_t at = 0; at < 1448; at += at < 96 ? 1 : 41)
            for (unsigned flip = 0; flip < ARRAY_LEN(flips); flip++)
                cr_expect_leq(play(&k, at, flips[flip], at % 5), whole + 16);
    }
}

Test(iwarp, memory_is_bounded_whatever_comes)
{
    struct tcp_run *r = tcp_run_new();
    static uint8_t b[2048];
    uint32_t x = 7;

    hangs_after(60);
    tcp_start(r, FLAG_CRC);
    for (uint32_t i = 0; i < 20000; i++) {
        x = x * 1664525 + 1013904223;
        tcp_segment(r, i & 1, r->seq[i & 1] + 1 + (x >> 8) % (1 << 22), b, 1 + x % 1400, 1 + x % 1400);
    }
    tcp_run_free(r);
}
