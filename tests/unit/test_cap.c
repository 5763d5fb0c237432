/* layer 1 (io) tests: every variant of every capture format. */
#include "tests/unit/capfile.h"

#include <errno.h>

static void check_pcap(bool be, uint32_t magic, enum cap_format format)
{
    struct made m = {.be = be};
    bool nano = magic == 0xa1b23c4d, modified = magic == 0xa1b2cd34;

    put_pcap_header(&m, magic, LINK_INFINIBAND);
    put_pcap_record(&m, 1700000000, 123456, 1, 60, 60, modified);
    put_pcap_record(&m, 4294967295, 999999, 2, 0, 1500, modified);
    put_pcap_record(&m, 1700000002, 1, 3, 1501, 1501, modified);
    struct cap *c = open_made(&m, NULL);
    ns_t unit = nano ? 1 : 1000;
    expect_frame(c, 1, 60, 60, INT64_C(1700000000) * NS_PER_S + 123456 * unit);
    expect_frame(c, 2, 0, 1500, INT64_C(4294967295) * NS_PER_S + 999999 * unit);
    expect_frame(c, 3, 1501, 1501, INT64_C(1700000002) * NS_PER_S + unit);
    const struct cap_info *i = cap_info(c);
    cr_expect_eq(i->format, format);
    cr_expect_eq(i->big_endian, be);
    cr_expect_eq(i->nanoseconds, nano);
    cr_expect_eq(i->n_ifaces, 1);
    cr_expect_eq(i->ifaces[0].linktype, LINK_INFINIBAND);
    cr_expect_eq(i->ifaces[0].snaplen, 65535);
    cr_expect_eq(i->size, m.len);
    cr_expect_eq(i->consumed, m.len);
    cr_expect_eq(i->frames, 3);
    expect_end(c);
}

Test(cap, pcap_of_microseconds_in_both_byte_orders)
{
    check_pcap(false, 0xa1b2c3d4, CAP_PCAP);
    check_pcap(true, 0xa1b2c3d4, CAP_PCAP);
}

Test(cap, pcap_of_nanoseconds_in_both_byte_orders)
{
    check_pcap(false, 0xa1b23c4d, CAP_PCAP);
    check_pcap(true, 0xa1b23c4d, CAP_PCAP);
}

Test(cap, modified_pcap_has_longer_record_headers)
{
    check_pcap(false, 0xa1b2cd34, CAP_PCAP_MODIFIED);
    check_pcap(true, 0xa1b2cd34, CAP_PCAP_MODIFIED);
}

Test(cap, pcap_link_type_carries_the_length_of_the_check_sequence)
{
    struct made m = {0};
    struct frame f;
    put_pcap_header(&m, 0xa1b2c3d4, UINT32_C(0x24000001));
    put_pcap_record(&m, 1, 0, 1, 64, 64, false);
    struct cap *c = open_made(&m, NULL);
    cr_assert_eq(cap_next(c, &f), 1);
    cr_expect_eq(f.linktype, LINK_ETHERNET);
    cr_expect_eq(f.fcs_len, 4);
    expect_end(c);
}

static void check_pcapng(bool be)
{
    struct made m = {.be = be};
    struct frame f;

    put_section(&m);
    put_interface(&m, LINK_ETHERNET, 0, "eth0", -1, 0);
    put_interface(&m, LINK_INFINIBAND, 100, "mlx5_0", 9, 1000);
    put_packet(&m, 0, UINT64_C(1700000000123456), 1, 61, 61);
    size_t at = block_open(&m, 0x0bad); /* a custom block with a length of its own */
    put_data(&m, 9, 1000);
    block_close(&m, at);
    at = packet_open(&m, 1, UINT64_C(1700000000123456789), 2, 62, 70);
    put_option(&m, 1, "first", 5);
    put_option(&m, 1, "second", 6);
    put_option32(&m, 2, 0x81);
    put_option64(&m, 4, 12);
    put_option(&m, 0, NULL, 0);
    block_close(&m, at);
    at = block_open(&m, 2); /* obsolete packet block: 16-bit interface and drop count */
    put16(&m, 1);
    put16(&m, 5);
    put64(&m, m.be ? UINT64_C(0x0000000100000002) : UINT64_C(0x0000000200000001));
    put32(&m, 3);
    put32(&m, 9);
    put_data(&m, 3, 3);
    block_close(&m, at);
    put_simple(&m, 4, 33, 33);
    at = block_open(&m, 5);
    put32(&m, 1);
    put64(&m, 0);
    put_option64(&m, 4, 1000);
    put_option64(&m, 5, 17);
    put_option64(&m, 7, 3);
    block_close(&m, at);

    struct cap *c = open_made(&m, NULL);
    expect_frame(c, 1, 61, 61, INT64_C(1700000000123456000));
    cr_assert_eq(cap_next(c, &f), 1);
    cr_expect_eq(f.ts, INT64_C(1700001000123456789));
    cr_expect_eq(f.iface, 1);
    cr_expect_eq(f.linktype, LINK_INFINIBAND);
    cr_expect_eq(f.number, 2);
    cr_expect_eq(f.flags, 0x81);
    cr_expect_eq(f.fcs_len, 4);
    cr_expect_eq(f.drops, 12);
    cr_expect_eq(f.comment_len, 5);
    cr_expect_arr_eq(f.comment, "first", 5);
    expect_frame(c, 3, 3, 9, INT64_C(0x100000002) + 1000 * NS_PER_S);
    cr_assert_eq(cap_next(c, &f), 1);
    cr_expect_not(f.has_ts);
    cr_expect_eq(f.caplen, 33);
    cr_expect_eq(f.linktype, LINK_ETHERNET);
    cr_expect_eq(cap_next(c, &f), 0);
    const struct cap_info *i = cap_info(c);
    cr_expect_str_eq(i->hardware, "switch");
    cr_expect_str_eq(i->app, "test");
    cr_expect_null(i->os);
    cr_expect_eq(i->n_ifaces, 2);
    cr_expect_str_eq(i->ifaces[1].name, "mlx5_0");
    cr_expect_eq(i->ifaces[1].received, 1000);
    cr_expect_eq(i->ifaces[1].dropped, 17);
    cr_expect_eq(i->ifaces[1].os_dropped, 3);
    cr_expect(i->ifaces[1].has_drops);
    cr_expect_not(i->ifaces[0].has_drops);
    expect_end(c);
}

Test(cap, pcapng_blocks_and_options_in_both_byte_orders)
{
    check_pcapng(false);
    check_pcapng(true);
}

Test(cap, pcapng_sections_of_different_byte_order_have_their_own_interfaces)
{
    struct made m = {0};
    struct frame f;

    put_section(&m);
    put_interface(&m, LINK_ETHERNET, 0, "a", -1, 0);
    put_interface(&m, LINK_ETHERNET, 0, "b", -1, 0);
    put_packet(&m, 1, 5, 1, 20, 20);
    m.be = true;
    put_section(&m);
    put_interface(&m, LINK_INFINIBAND, 0, "c", 9, 0);
    put_packet(&m, 0, 6, 2, 20, 20);
    m.be = false;
    put_section(&m);
    put_packet(&m, 0, 6, 2, 20, 20);
    struct cap *c = open_made(&m, NULL);
    expect_frame(c, 1, 20, 20, 5000);
    cr_assert_eq(cap_next(c, &f), 1);
    cr_expect_eq(f.iface, 2);
    cr_expect_eq(f.iface_id, 0, "tshark prints the number within the section");
    cr_expect_eq(f.ts, 6);
    cr_expect_eq(f.linktype, LINK_INFINIBAND);
    cr_expect_eq(cap_info(c)->ifaces[2].id, 0);
    cr_expect_eq(cap_info(c)->ifaces[2].section, 1);
    /* The third section defines no interface. */
    cr_expect_eq(cap_next(c, &f), -EINVAL);
    cr_expect_str_eq(cap_error(c)->msg, "packet of interface 0, the section has 0");
    cr_expect_eq(cap_info(c)->n_sections, 3);
    cap_close(c);
}

Test(cap, pcapng_time_resolutions)
{
    static const struct {
        int resol;
        int64_t offset;
        uint64_t ts;
        ns_t want;
    } rows[] = {
        {0, 0, 17, 17 * NS_PER_S},
        {3, 0, 1234, INT64_C(1234000000)},
        {9, 0, UINT64_C(1700000000123456789), INT64_C(1700000000123456789)},
        {12, 0, 1999999, 1999},
        {19, 0, UINT64_C(10000000000000000000), NS_PER_S},
        {127, 0, UINT64_MAX, 0},
        {0x80, 0, 5, 5 * NS_PER_S},
        {0x80 | 10, 0, 1024 + 512, INT64_C(1500000000)},
        {0x80 | 32, 0, UINT64_C(3) << 31, INT64_C(1500000000)},
        {0x80 | 127, 0, UINT64_MAX, 0},
        {6, -100, 100000000, 0},
        {9, 0, UINT64_MAX, FRAME_TS_MAX},
        {9, 0, (uint64_t)FRAME_TS_MAX - 1, FRAME_TS_MAX - 1},
        {6, 0, UINT64_MAX, FRAME_TS_MAX},
        {6, INT64_MIN, 0, FRAME_TS_MIN},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct made m = {0};
        put_section(&m);
        put_interface(&m, LINK_ETHERNET, 0, NULL, rows[i].resol, rows[i].offset);
        put_packet(&m, 0, rows[i].ts, 1, 4, 4);
        struct cap *c = open_made(&m, NULL);
        expect_frame(c, 1, 4, 4, rows[i].want);
        expect_end(c);
    }
}

Test(cap, simple_packet_is_cut_at_the_snap_length)
{
    struct made m = {0};
    struct frame f;
    put_section(&m);
    put_interface(&m, LINK_ETHERNET, 10, NULL, -1, 0);
    put_simple(&m, 1, 10, 100);
    struct cap *c = open_made(&m, NULL);
    cr_assert_eq(cap_next(c, &f), 1);
    cr_expect_eq(f.caplen, 10);
    cr_expect_eq(f.len, 100);
    expect_end(c);
}

Test(cap, native_erf_is_recognised_and_padding_records_are_skipped)
{
    struct made m = {0};
    struct frame f;
    uint64_t ts = UINT64_C(1700000000) << 32 | UINT64_C(0x80000000);
    put_erf(&m, ts, 1, 290, 0);
    put_erf(&m, ts, 0, 24, 0);
    m.p[m.len - 40 + 8] = 48;
    put_erf(&m, ts + 1, 2, 33, 2);
    struct cap *c = open_made(&m, NULL);
    cr_expect_eq(cap_info(c)->format, CAP_ERF);
    cr_assert_eq(cap_next(c, &f), 1);
    cr_expect_eq(f.linktype, LINK_ERF);
    cr_expect_eq(f.ts, INT64_C(1700000000500000000));
    cr_expect_eq(f.caplen, 306);
    cr_expect_eq(f.len, 306);
    cr_expect_arr_eq(f.data, m.p, 306);
    cr_assert_eq(cap_next(c, &f), 1);
    cr_expect_eq(f.number, 2);
    cr_expect_eq(f.offset, 312 + 40);
    cr_expect_arr_eq(f.data, m.p + 352, f.caplen);
    expect_end(c);
}

Test(cap, ports_of_an_erf_card_are_interfaces_in_the_order_of_their_first_records)
{
    static const uint8_t ports[] = {3, 0, 3, 1, 0}, want[] = {0, 1, 0, 2, 1};
    struct made native = {0}, pcap = {0};
    struct frame f;

    put_pcap_header(&pcap, 0xa1b2c3d4, LINK_ERF);
    for (unsigned i = 0; i < ARRAY_LEN(ports); i++) {
        size_t at = native.len;
        put_erf(&native, (UINT64_C(1700000000) + i) << 32, i, 40, 0);
        native.p[at + 9] = (uint8_t)(4 | ports[i]);
        put32(&pcap, 1700000000 + i);
        put32(&pcap, 0);
        put32(&pcap, 56);
        put32(&pcap, 56);
        memcpy(pcap.p + pcap.len, native.p + at, 56);
        pcap.len += 56;
    }
    for (unsigned k = 0; k < 2; k++) {
        struct cap *c = open_made(k ? &pcap : &native, NULL);
        for (unsigned i = 0; i < ARRAY_LEN(ports); i++) {
            cr_assert_eq(cap_next(c, &f), 1);
            cr_expect(f.has_iface && f.iface == want[i] && f.iface_id == want[i], "record %u: interface %u", i,
                      f.iface);
            cr_expect_eq(cap_info(c)->ifaces[f.iface].linktype, LINK_ERF);
        }
        expect_end(c);
    }
}

Test(cap, erf_in_pcap_has_the_time_of_its_record)
{
    struct made m = {0};
    struct frame f;
    put_pcap_header(&m, 0xa1b2c3d4, LINK_ERF);
    put_pcap_record(&m, 1210794479, 499693, 1, 0, 0, false);
    m.len -= 8;
    put32(&m, 24);
    put32(&m, 24);
    put64(&m, UINT64_C(0x482b41ef7febea60)); /* tshark prints this one as 1210794479.499693535 */
    put_data(&m, 1, 16);
    struct cap *c = open_made(&m, NULL);
    cr_assert_eq(cap_next(c, &f), 1);
    cr_expect_eq(f.ts, INT64_C(1210794479499693535));
    expect_end(c);
}

Test(cap, other_files_are_refused_with_a_reason)
{
    static const struct {
        const char *bytes;
        size_t n;
        const char *want;
    } rows[] = {
        {"", 0, "the file is empty, not a capture"},
        {"hello, world, this is text and no capture at all", 48,
         "not a capture file of a known format (pcap, pcapng, ERF): it begins with 68 65 6c 6c 6f 2c 20 77"},
        {"\xd4\xc3\xb2\xa1\2\0\4\0", 8, "pcap file header of 24 bytes, the file ends after 8"},
        {"\x0a\x0d\x0d\x0a", 4, "block header of 8 bytes, the file ends after 4"},
        {"\x0a\x0d\x0d\x0a\x1c\0\0\0\1\2\3\4", 12, "byte-order magic 0x01020304, 0x1a2b3c4d is expected"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct cap_error e;
        struct cap *c;
        const char *name = file_of(rows[i].bytes, rows[i].n);
        cr_expect_eq(cap_open(&c, name, 0, NULL, &e), -EINVAL);
        cr_expect_str_eq(e.msg, rows[i].want, "%s", e.msg);
        cr_expect_str_eq(e.file, name);
        unlink(name);
    }
    struct cap_error e;
    struct cap *c;
    cr_expect_eq(cap_open(&c, "/nonexistent/x.pcap", 0, NULL, &e), -ENOENT);
    cr_expect_str_eq(e.msg, "No such file or directory");
    cr_expect_eq(cap_open(&c, "/tmp", 0, NULL, &e), -EISDIR);
}
