/* layer 1 tests: link types, tunnels and the neighbours of RDMA. Frames are assembled here from published layouts. */
#include "dissect/columns.h"
#include "dissect/ip/icmp.h"
#include "dissect/ip/ip.h"
#include "dissect/ip/tcp.h"
#include "dissect/link/link.h"
#include "dissect/link/macc.h"
#include "dissect/pkt.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define FRAME_ROOM 4096

static struct {
    uint8_t data[FRAME_ROOM];
    uint32_t len;
} f;

/* Append bytes given as hexadecimal digits; spaces are ignored. */
static void hex(const char *s)
{
    for (; *s; s += 2) {
        char pair[3];
        while (*s == ' ')
            s++;
        if (!*s)
            break;
        pair[0] = s[0];
        pair[1] = s[1];
        pair[2] = 0;
        cr_assert_lt(f.len, FRAME_ROOM);
        f.data[f.len++] = (uint8_t)strtoul(pair, NULL, 16);
    }
}
static void start(const char *s)
{
    f.len = 0;
    hex(s);
}

static struct pkt p;
static struct frame frame;
static struct buf text;

static void decode(unsigned linktype)
{
    static const struct decode_opts opts = {.verify = true};

    frame = (struct frame){.data = f.data, .caplen = f.len, .len = f.len, .number = 1, .linktype = (uint16_t)linktype};
    pkt_decode(&p, &frame, &opts);
}
static const char *info(void)
{
    text.len = 0;
    pkt_info(&text, &p);
    return buf_str(&text);
}
static bool has(const struct hdr *h)
{
    for (unsigned i = 0; i < p.n_layers; i++)
        if (p.layers[i].hdr == h)
            return true;
    return false;
}
/* Value of a field of the innermost layer that has it, as `-T fields` prints it; "" if absent. */
static const char *value(const char *name)
{
    struct value v;

    text.len = 0;
    for (unsigned i = p.n_layers; i-- > 0 && text.len == 0;)
        for (unsigned k = 0; k < p.layers[i].hdr->nfields; k++) {
            const struct field *fl = &p.layers[i].hdr->fields[k];
            if (strcmp(fl->abbrev, name) == 0 && field_value(fl, &p, &p.layers[i], &v)) {
                value_print(&text, fl, &v);
                break;
            }
        }
    return buf_str(&text);
}

#define ETH "020000000002 020000000001 "
/* RoCEv2 over IPv4 and IPv6, RC SEND Only of 16 bytes to QP 0x11; ICRCs calculated by another program (zlib). */
#define ROCE4                                                                                                          \
    "4568003c 00070000 40115eee c0a84d01 c0a84d02 c02812b7 00280000 0400ffff 00000011 00000000"                        \
    "30313233 34353637 38396162 63646566 767e5a26"

static void expect_roce(void)
{
    cr_expect(p.have & H_BTH);
    cr_expect_eq(p.encap, ENCAP_ROCEV2);
    cr_expect_eq(p.bth.dqpn, 0x11);
    cr_expect_eq(p.icrc, CRC_GOOD);
    cr_expect_eq(p.payload_len, 16);
    cr_expect_eq(p.flags & (PKT_MALFORMED | PKT_CUT), 0);
    cr_expect_eq(memcmp(p.src, "\xc0\xa8\x4d\x01", 4), 0);
}

Test(link, tags_before_rocev2)
{
    start(ETH "88a8 2064 8100 6005 0800" ROCE4);
    decode(LINK_ETHERNET);
    expect_roce();
    cr_expect_eq(p.vlan, 0x6005);
    cr_expect_str_eq(value("vlan.id"), "5");
    start(ETH "9100 2005 8100 0006 0800" ROCE4);
    decode(LINK_ETHERNET);
    expect_roce();
}

Test(link, cooked_captures)
{
    start("0004 0001 0006 0200000000010000 0800" ROCE4);
    decode(LINK_SLL);
    expect_roce();
    cr_expect_str_eq(value("sll.src.eth"), "02:00:00:00:00:01");
    cr_expect_str_eq(value("sll.pkttype"), "4");
    start("0800 0000 00000007 0001 03 06 0200000000010000" ROCE4);
    decode(LINK_SLL2);
    expect_roce();
    cr_expect_str_eq(value("sll.ifindex"), "7");
    cr_expect_str_eq(value("sll.pkttype"), "3");
}

Test(link, loopback_families_in_both_byte_orders)
{
    start("02000000" ROCE4);
    decode(LINK_NULL);
    expect_roce();
    start("00000002" ROCE4);
    decode(LINK_NULL);
    expect_roce();
    decode(LINK_LOOP);
    expect_roce();
}

Test(link, ip_over_infiniband_with_and_without_pseudo_header)
{
    start("0000000000000000000000000000000000000000 00000011 fe80000000000000000000000000000e 0800 0000" ROCE4);
    decode(LINK_IPOIB);
    expect_roce();
    cr_expect_str_eq(value("ipoib.daddr.qpn"), "0x000011");
    start("0800 0000" ROCE4);
    decode(LINK_IPOIB);
    expect_roce();
}

Test(link, erf_record_with_extension_headers)
{
    start("0000004010f15365 82 04 0070 0000 004a 83 00000000000000 11 01000000000002 0000" ETH "0800" ROCE4);
    decode(LINK_ERF);
    expect_roce();
    cr_expect_str_eq(value("erf.types.type"), "2");
    cr_expect_str_eq(value("erf.wlen"), "74");
    cr_expect_str_eq(value("erf.ehdr.types"), "17");
}

Test(link, flow_control_packet_and_its_crc)
{
    start("0000004010f15365 19 04 0018 0000 0006 0123 2456 6a84 0000");
    decode(LINK_ERF);
    cr_expect_str_eq(value("infiniband_link.fctbs"), "291");
    cr_expect_str_eq(value("infiniband_link.vl"), "2");
    cr_expect_str_eq(value("infiniband_link.fccl"), "1110");
    cr_expect_str_eq(value("rdma.lpcrc.status"), "good");
    f.data[16] ^= 0x10;
    decode(LINK_ERF);
    cr_expect_str_eq(value("rdma.lpcrc.status"), "bad");
    start("0123 2456 6a84");
    decode(LINK_INFINIBAND);
    cr_expect_eq(p.vcrc, CRC_GOOD);
}

Test(link, unknown_link_type_is_named)
{
    start("00");
    decode(127);
    cr_expect_str_eq(info(), "link type 127 (802.11 radiotap)");
    decode(60000);
    cr_expect_str_eq(info(), "link type 60000");
}

#define OUT4(proto) "45000100 00000000 40" proto "0000 0a000001 0a000002 "

Test(tunnel, gre_and_erspan)
{
    static const char *const gre[] = {
        "0000 0800" ROCE4,
        "b000 0800 00000000 00000007 00000009" ROCE4,
        "2000 6558 00abcdef" ETH "0800" ROCE4,
        "0000 88be" ETH "0800" ROCE4,
        "1000 88be 00000005 1064 7555 00012345" ETH "0800" ROCE4,
        "1000 22eb 00000005 2065 aaaa 89abcdef 1111 83fc" ETH "0800" ROCE4,
        "1000 22eb 00000005 2065 aaaa 89abcdef 1111 8001 0c000155 01020304" ETH "0800" ROCE4,
        "1000 22eb 00000005 2065 aaaa 89abcdef 1111 0800" ROCE4,
    };

    for (unsigned i = 0; i < ARRAY_LEN(gre); i++) {
        start(ETH "0800" OUT4("2f"));
        hex(gre[i]);
        f.data[16] = (uint8_t)((f.len - 14) >> 8); /* IP total length */
        f.data[17] = (uint8_t)(f.len - 14);
        decode(LINK_ETHERNET);
        expect_roce();
        cr_expect(p.flags & PKT_TUNNEL, "%u", i);
    }
    cr_expect_str_eq(value("erspan.ft"), "2");
}

Test(tunnel, vxlan_geneve_and_mpls)
{
    static const char *const udp[] = {
        "15b3 12b5 0100 0000 08000000 00002a00" ETH "0800" ROCE4,
        "15b3 12b6 0100 0000 0c000001 00006300" ROCE4,
        "15b3 17c1 0100 0000 03406558 00002b00 01028001 01020304 01030300" ETH "0800" ROCE4,
        "15b3 17c1 0100 0000 00800800 00002c00" ROCE4,
    };

    for (unsigned i = 0; i < ARRAY_LEN(udp); i++) {
        start(ETH "0800" OUT4("11"));
        hex(udp[i]);
        f.data[16] = (uint8_t)((f.len - 14) >> 8);
        f.data[17] = (uint8_t)(f.len - 14);
        f.data[38] = (uint8_t)((f.len - 34) >> 8);
        f.data[39] = (uint8_t)(f.len - 34);
        decode(LINK_ETHERNET);
        expect_roce();
    }
    start(ETH "8847 00010a09 fffff101" ROCE4);
    decode(LINK_ETHERNET);
    expect_roce();
    start(ETH "8847 00011109 00000000" ETH "0800" ROCE4);
    decode(LINK_ETHERNET);
    expect_roce();
}

Test(tunnel, nesting_without_end_is_refused)
{
    start(ETH "8100");
    for (unsigned i = 0; i < 900; i++)
        hex("0001 8100");
    decode(LINK_ETHERNET);
    cr_expect(p.flags & PKT_MALFORMED);
    cr_expect_str_eq(p.why, "too many nested headers");
    start(ETH "8847");
    for (unsigned i = 0; i < 900; i++)
        hex("00010009");
    decode(LINK_ETHERNET);
    cr_expect_str_eq(p.why, "too many nested headers");
    start(ETH "86dd 60000000 0e103c40 00000000000000000000000000000001 00000000000000000000000000000002");
    for (unsigned i = 0; i < 450; i++)
        hex("3c00 010400000000");
    decode(LINK_ETHERNET);
    cr_expect_str_eq(p.why, "too many nested headers");
}

#define PFC_FRAME "0180c2000001 020000000001 8808 0101 0088 0000 0000 0000 1234 0000 0000 0000 ffff"

Test(neighbour, priority_flow_control_in_full)
{
    start(PFC_FRAME);
    decode(LINK_ETHERNET);
    cr_expect_str_eq(value("macc.cbfc.enbv"), "0x0088");
    cr_expect_str_eq(value("macc.cbfc.enbv.c3"), "1");
    cr_expect_str_eq(value("macc.cbfc.enbv.c4"), "0");
    cr_expect_str_eq(value("macc.cbfc.pause_time.c3"), "4660");
    cr_expect_str_eq(value("macc.cbfc.pause_time.c7"), "65535");
    cr_expect_str_eq(info(), "Class Based Flow Control [CBFC] Pause: class 3 4660 quanta class 7 65535 quanta");
    start("0180c2000001 020000000001 8808 0001 ffff");
    decode(LINK_ETHERNET);
    cr_expect_str_eq(info(), "Pause: pause_time: 65535 quanta");
}

/* Read the frame that was started, cut to `len` bytes, in a block of exactly that size. */
static bool read_cut(struct pause_frame *x, uint32_t len)
{
    uint8_t *data = malloc(len + !len);
    struct frame cut = {.data = data, .caplen = len, .len = f.len, .number = 1, .linktype = LINK_ETHERNET};
    struct pkt of = {.frame = &cut, .data = data, .caplen = len};
    bool ok;

    cr_assert(data);
    memcpy(data, f.data, len);
    ok = pause_frame_of(x, &of);
    free(data);
    return ok;
}

Test(pause_frame, pfc_is_read_by_class)
{
    struct pause_frame x;

    start(PFC_FRAME);
    cr_assert(read_cut(&x, f.len));
    cr_expect_eq(x.opcode, MACC_PFC);
    cr_expect(x.whole);
    cr_expect_eq(x.classes, 0x88);
    cr_expect_eq(x.quanta[3], 0x1234);
    cr_expect_eq(x.quanta[7], 0xffff);
    cr_expect_eq(pause_frame_paused(&x), 0x88);
    f.data[32] = f.data[33] = 0; /* class 7 may send again */
    f.data[19] = 1;              /* the quanta of class 0 do not count */
    cr_assert(read_cut(&x, f.len));
    cr_expect_eq(x.quanta[0], 1);
    cr_expect_eq(pause_frame_paused(&x), 0x08);
}

Test(pause_frame, pause_is_of_all_classes)
{
    struct pause_frame x;

    start("0180c2000001 020000000001 8808 0001 0203");
    cr_assert(read_cut(&x, f.len));
    cr_expect_eq(x.opcode, MACC_PAUSE);
    cr_expect(x.whole);
    cr_expect_eq(x.classes, PAUSE_ALL);
    for (unsigned i = 0; i < PAUSE_CLASSES; i++)
        cr_expect_eq(x.quanta[i], 0x0203);
    cr_expect_eq(pause_frame_paused(&x), PAUSE_ALL);
    for (uint32_t n = 0; n < f.len; n++)
        cr_expect_not(read_cut(&x, n), "%u bytes", n);
}

Test(pause_frame, truncated_pfc_has_a_vector_or_nothing)
{
    struct pause_frame x;

    start(PFC_FRAME);
    for (uint32_t n = 0; n < 18; n++)
        cr_expect_not(read_cut(&x, n), "%u bytes", n);
    for (uint32_t n = 18; n < f.len; n++) {
        cr_assert(read_cut(&x, n), "%u bytes", n);
        cr_expect_not(x.whole);
        cr_expect_eq(x.classes, 0x88);
        cr_expect_eq(x.quanta[3], 0);
        cr_expect_eq(pause_frame_paused(&x), 0);
    }
}

Test(pause_frame, what_is_no_pause_frame_is_not_read)
{
    struct pause_frame x;

    start("0180c2000001 020000000001 8808 0002 0088 0000 0000 0000 1234 0000 0000 0000 ffff");
    cr_expect_not(read_cut(&x, f.len), "another opcode");
    start("0180c2000001 020000000001 8809 0101 0088 0000 0000 0000 1234 0000 0000 0000 ffff");
    cr_expect_not(read_cut(&x, f.len), "another EtherType");
    start(PFC_FRAME);
    decode(LINK_RAW);
    cr_expect_not(pause_frame_of(&x, &p), "another link type");
}

Test(neighbour, port_unreachable_quotes_without_becoming_roce)
{
    start(ETH "0800 45000058 00000000 40010000 c0a84d02 c0a84d01 0303 0000 00000000" ROCE4);
    decode(LINK_ETHERNET);
    cr_expect_str_eq(info(),
                     "Destination unreachable (Port unreachable) for 192.168.77.1 > 192.168.77.2 UDP 4791 (RoCEv2)");
    cr_expect_str_eq(pkt_column(&p), "ICMP");
    cr_expect_eq(p.have & (H_BTH | H_UDP), 0);
    cr_expect_eq(p.encap, ENCAP_NONE);
    cr_expect_eq(memcmp(p.src, "\xc0\xa8\x4d\x02", 4), 0, "the ICMP packet's own source");
    cr_expect(has(&bth_hdr));
    cr_expect_str_eq(value("infiniband.bth.destqp"), "0x000011");
}

Test(neighbour, fragments_are_named)
{
    start(ETH "0800 4500003c 00632000 40110000 c0a84d01 c0a84d02 c02812b7 05dc0000 0400ffff 00000011 00000000 "
              "3031323334353637 38396162 63646566 00000000");
    decode(LINK_ETHERNET);
    cr_expect(p.flags & PKT_FRAGMENT);
    cr_expect(p.have & H_BTH);
    cr_expect_eq(p.icrc, CRC_UNKNOWN);
    cr_expect_str_eq(p.unverified, "IP fragment");
    cr_expect_eq(p.payload_len, 20);
    f.data[21] = 185;
    decode(LINK_ETHERNET);
    cr_expect_eq(p.have & (H_BTH | H_UDP), 0);
    cr_expect_str_eq(info(), "Fragmented IP protocol, proto UDP (17), off 1480, ID 0x0063");
}

Test(neighbour, arp_tcp_and_802_3)
{
    start(ETH "0806 0001 0800 06 04 0001 020000000001 c0a84d01 000000000000 c0a84d02");
    decode(LINK_ETHERNET);
    cr_expect_str_eq(info(), "Who has 192.168.77.2? Tell 192.168.77.1");
    cr_expect_str_eq(value("arp.dst.proto_ipv4"), "192.168.77.2");
    start(ETH "0800 4500002d 00000000 40060000 c0a84d01 c0a84d02 9c40 4853 0000004d 00000058 5018 2000 0000 0000 "
              "68656c6c6f 000000");
    decode(LINK_ETHERNET);
    cr_expect_str_eq(info(), "40000 > 18515 [PSH, ACK] seq 77 ack 88 win 8192 len 5");
    struct tcp h;
    uint32_t len;
    const uint8_t *data = tcp_payload(&p, &h, &len);
    cr_assert_not_null(data);
    cr_expect_eq(len, 5, "Ethernet padding is not payload");
    cr_expect_eq(memcmp(data, "hello", 5), 0);
    cr_expect_eq(h.seq, 77);
    start("0180c2000000 020000000001 0026 424203 0000000000 0000000000 0000000000 0000000000 0000000000 0000000000 "
          "0000000000");
    decode(LINK_ETHERNET);
    cr_expect_str_eq(pkt_column(&p), "STP");
    cr_expect_str_eq(value("eth.len"), "38");
    cr_expect_str_eq(value("eth.type"), "");
}

/* The frame at the very end of readable memory, cut at every length, as a snap length and as a short frame. */
static void cut_everywhere(unsigned linktype)
{
    static const struct decode_opts opts = {.verify = true};
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *map = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    cr_assert_neq(map, MAP_FAILED);
    cr_assert_eq(mprotect(map + page, page, PROT_NONE), 0);
    for (uint32_t n = 0; n <= f.len; n++)
        for (int snap = 0; snap < 2; snap++) {
            uint8_t *data = map + page - n;
            struct value v;
            memcpy(data, f.data, n);
            frame = (struct frame){
                .data = data, .caplen = n, .len = snap ? f.len : n, .number = 1, .linktype = (uint16_t)linktype};
            pkt_decode(&p, &frame, &opts);
            cr_assert_leq(p.n_layers, PKT_LAYERS);
            info();
            for (unsigned i = 0; i < p.n_layers; i++)
                for (unsigned k = 0; k < p.layers[i].hdr->nfields; k++)
                    if (field_value(&p.layers[i].hdr->fields[k], &p, &p.layers[i], &v))
                        value_print(&text, &p.layers[i].hdr->fields[k], &v);
            if (n < f.len)
                cr_assert(p.flags & (PKT_CUT | PKT_MALFORMED) || p.icrc == CRC_UNKNOWN || n == 0,
                          "link type %u cut to %u bytes goes unnoticed", linktype, n);
        }
    munmap(map, 2 * page);
}

Test(link, every_truncation_is_noticed_and_stays_inside)
{
    start(ETH "88a8 2064 8100 6005 0800" ROCE4);
    cut_everywhere(LINK_ETHERNET);
    start(ETH "0800 45000092 00000000 402f0000 0a000001 0a000002 1000 22eb 00000005 2065 aaaa 89abcdef 1111 8001 "
              "0c000155 01020304" ETH "0800" ROCE4);
    cut_everywhere(LINK_ETHERNET);
    start(ETH "0800 4500007a 00000000 40110000 0a000001 0a000002 15b3 17c1 0066 0000 03406558 00002b00 01028001 "
              "01020304 01030300" ETH "0800" ROCE4);
    cut_everywhere(LINK_ETHERNET);
    start(ETH "8847 00010a09 00011109 00000000" ETH "0800" ROCE4);
    cut_everywhere(LINK_ETHERNET);
    start("0000004010f15365 82 04 0070 0000 004a 83 00000000000000 11 01000000000002 0000" ETH "0800" ROCE4);
    cut_everywhere(LINK_ERF);
    start("0800 0000 00000007 0001 03 06 0200000000010000" ROCE4);
    cut_everywhere(LINK_SLL2);
    start("0000000000000000000000000000000000000000 00000011 fe80000000000000000000000000000e 0800 0000" ROCE4);
    cut_everywhere(LINK_IPOIB);
    start(ETH "0806 0001 0800 06 04 0001 020000000001 c0a84d01 000000000000 c0a84d02");
    cut_everywhere(LINK_ETHERNET);
    start(ETH
          "86dd 60000000 00380040 00000000000000000000000000000001 00000000000000000000000000000002 3a00 050200000100"
          "8700 0000 00000000 fd000000000000000000000000000002");
    f.data[19] = 32;
    cut_everywhere(LINK_ETHERNET);
}

/* LRH, lengths in words of 4 bytes without the VCRC. */
Test(link, raw_infiniband_packets)
{
    /* LNH 0: raw header with EtherType, then IPv4; LNH 1: IPv6 */
    start("1000 0007 0008 0009 0000 0800 45000014 00000000 40fd0000 c0a84d01 c0a84d02 0000");
    decode(LINK_INFINIBAND);
    cr_expect(p.have & H_LRH);
    cr_expect(p.have & H_IP4);
    cr_expect_eq(p.have & H_BTH, 0);
    cr_expect_eq(p.icrc, CRC_ABSENT, "raw packets have no ICRC");
    cr_expect_eq(p.vcrc, CRC_BAD, "the VCRC here is zero");
    cr_expect_str_eq(value("infiniband.rwh.etype"), "0x0800");
    cr_expect_eq(p.flags & PKT_MALFORMED, 0);
    start(
        "1001 0007 000c 0009 60000000 00003b40 fe800000000000000000000000000001 fe800000000000000000000000000002 0000");
    decode(LINK_INFINIBAND);
    cr_expect(p.have & H_IP6);
    cr_expect_str_eq(value("ipv6.nxt"), "59");
}

Test(link, raw_infiniband_packet_of_an_unknown_type_is_named)
{
    struct buf b = {0};

    start("1000 0004 0005 0009 0000 6364 6162636465666768 0000");
    decode(LINK_INFINIBAND);
    pkt_info(&b, &p);
    cr_expect_str_eq(buf_str(&b), "raw packet, Ethertype 0x6364");
    cr_expect_str_eq(pkt_column(&p), "InfiniBand");
    buf_free(&b);
}

Test(link, infiniband_length_that_lies_is_reported)
{
    start("1002 0007 07ff 0009 0400ffff 00000011 00000003 61626364 00000000 0000");
    decode(LINK_INFINIBAND);
    cr_expect(p.flags & PKT_MALFORMED);
    cr_expect_str_eq(p.why, "LRH packet length does not fit the packet");
    start("1002 0007 0001 0009 0400ffff 00000011 00000003 61626364 00000000 0000");
    decode(LINK_INFINIBAND);
    cr_expect(p.flags & PKT_MALFORMED);
}

Test(link, truncated_header_is_reported_with_its_length)
{
    start(ETH "0800 45000018 00000000 40110000 c0a84d01 c0a84d02 000112b7");
    decode(LINK_ETHERNET);
    cr_expect(p.flags & PKT_MALFORMED);
    cr_expect_str_eq(p.why, "truncated UDP header, 8 bytes needed");
    cr_expect_not_null(strstr(info(), " [malformed: truncated UDP header, 8 bytes needed]"), "%s", info());
}

Test(neighbour, options_that_lie_are_reported)
{
    start(ETH "0800 46000018 00000000 40060000 c0a84d01 c0a84d02 82ff0000");
    decode(LINK_ETHERNET);
    cr_expect_str_eq(p.why, "IPv4 option length does not fit the header");
    start(ETH "0800 46000018 00000000 40060000 c0a84d01 c0a84d02 82000000");
    decode(LINK_ETHERNET);
    cr_expect_str_eq(p.why, "IPv4 option length does not fit the header");
    start(ETH
          "86dd 60000000 00080040 00000000000000000000000000000001 00000000000000000000000000000002 3b00 05ff00000000");
    decode(LINK_ETHERNET);
    cr_expect_str_eq(p.why, "IPv6 option exceeds its header");
}
