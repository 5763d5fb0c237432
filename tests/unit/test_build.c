/* layer 3 (gen) tests: frames as built, read back by the decoder, and against published and captured bytes. */
#include "dissect/pkt.h"
#include "tests/unit/ep_pair.h"

#include <criterion/criterion.h>
#include <errno.h>

#include "dissect/ip/ip.h"
#include "gen/endpoint/rewrite.h"

static const struct decode_opts verify = {.verify = true};

/* Build a SEND Only of `len` bytes into `buf` and decode it. */
static void build(struct pkt *got, struct frame *f, uint8_t *buf, const struct link_addr *own, const struct av *to,
                  uint32_t len, const struct build_tweak *t)
{
    struct frame_out out = {.buf = buf, .cap = EP_FRAME_MAX};
    struct path path;
    struct pkt p = {.op = &opcode_table[OP_SEND_ONLY],
                    .bth = {.opcode = OP_SEND_ONLY, .pkey = 0xffff, .dqpn = 0x123456, .psn = 0xabcdef, .ackreq = 1}};

    cr_assert_eq(path_init(&path, own, to), 0);
    cr_assert_eq(build_begin(&out, &path, &p, len, 0x4321, t), 0);
    for (uint32_t i = 0; i < len; i++)
        out.payload[i] = (uint8_t)i;
    build_end(&out, &path, &p, len, t);
    if (!t || !t->trailing)
        cr_expect_eq(out.len, build_size(&path, p.op, len));
    *f = (struct frame){.data = buf,
                        .caplen = out.len,
                        .len = out.len,
                        .linktype = own->encap == ENCAP_IB ? LINK_INFINIBAND : LINK_ETHERNET};
    pkt_decode(got, f, &verify);
}

static struct link_addr addr(enum encap encap, bool v6)
{
    struct link_addr a = {.encap = (uint8_t)encap, .mac = {2, 0, 0, 0, 0, 1}, .lid = 7};

    gid_from_ipv4(a.gid, 0x32323201);
    if (v6)
        memcpy(a.gid, "\xfd\x77\0\0\0\0\0\0\0\0\0\0\0\0\0\1", 16);
    return a;
}

static struct av to(const struct link_addr *own)
{
    struct av av = {.dmac = {2, 0, 0, 0, 0, 2}, .dlid = 9, .tclass = 0x6a, .sport = 0xc123, .flow = 0x54321};

    memcpy(av.dgid, own->gid, 16);
    av.dgid[15]++;
    return av;
}

Test(build, every_encapsulation_and_length_decodes_with_good_crcs)
{
    static const struct {
        enum encap encap;
        bool v6, vlan, grh;
    } t[] = {{ENCAP_ROCEV2, false, false, false}, {ENCAP_ROCEV2, true, false, false},
             {ENCAP_ROCEV2, false, true, false},  {ENCAP_ROCEV2, true, true, false},
             {ENCAP_ROCEV1, true, false, true},   {ENCAP_ROCEV1, false, true, true},
             {ENCAP_IB, true, false, false},      {ENCAP_IB, true, false, true}};

    for (unsigned i = 0; i < ARRAY_LEN(t); i++)
        for (uint32_t len = 0; len < 70; len++) {
            struct link_addr own = addr(t[i].encap, t[i].v6);
            struct av av = to(&own);
            uint8_t buf[EP_FRAME_MAX];
            struct frame f;
            struct pkt p;
            own.has_vlan = t[i].vlan;
            own.vlan = 5;
            av.grh = t[i].grh;
            av.sl = 3;
            build(&p, &f, buf, &own, &av, len, NULL);
            cr_assert_eq(p.flags & (PKT_MALFORMED | PKT_CUT), 0, "row %u, %u bytes: %s", i, len, p.why);
            cr_assert_eq(p.icrc, CRC_GOOD, "row %u, %u bytes", i, len);
            cr_assert_eq(p.vcrc, t[i].encap == ENCAP_IB ? CRC_GOOD : CRC_ABSENT);
            cr_assert_eq(p.encap, t[i].encap);
            cr_assert(p.payload_len == len && p.bth.padcnt == (-len & 3) && p.bth.dqpn == 0x123456 &&
                      p.bth.psn == 0xabcdef);
            cr_assert(t[i].encap == ENCAP_IB || p.tos == 0x6a);
            if (t[i].vlan)
                cr_assert_eq(p.vlan, 3 << 13 | 5);
            if (p.have & H_UDP)
                cr_assert(p.sport == 0xc123 && p.dport == 4791);
        }
}

Test(build, ipv4_header_is_as_the_annex_demands)
{
    struct link_addr own = addr(ENCAP_ROCEV2, false);
    struct av av = to(&own);
    uint8_t buf[EP_FRAME_MAX];
    struct frame f;
    struct pkt p;
    struct ip4 ip;
    uint32_t sum = 0;

    build(&p, &f, buf, &own, &av, 33, NULL);
    ip4_get(&ip, buf + 14);
    cr_expect(ip.version == 4 && ip.ihl == 5 && ip.df && !ip.mf && !ip.frag && ip.proto == 17 && ip.ttl == 64 &&
              ip.id == 0x4321);
    cr_expect_eq(ip.len, f.len - 14);
    for (int i = 0; i < 20; i += 2)
        sum += load_be16(buf + 14 + i);
    cr_expect_eq((sum & 0xffff) + (sum >> 16), 0xffff, "RFC 1071");
    cr_expect_eq(load_be16(buf + 14 + 20 + 4), f.len - 34, "UDP length");
    cr_expect_eq(load_be16(buf + 14 + 20 + 6), 0, "UDP checksum");
}

/* Bitwise CRC-32 of IEEE 802.3, written from its definition. */
static uint32_t plain_crc(const uint8_t *p, size_t n)
{
    uint32_t c = ~UINT32_C(0);

    for (size_t i = 0; i < n; i++) {
        c ^= p[i];
        for (int k = 0; k < 8; k++)
            c = c & 1 ? c >> 1 ^ UINT32_C(0xedb88320) : c >> 1;
    }
    return ~c;
}

Test(build, icrc_is_the_crc_over_the_masked_packet)
{
    struct link_addr own = addr(ENCAP_ROCEV2, false);
    struct av av = to(&own);
    uint8_t buf[EP_FRAME_MAX], m[EP_FRAME_MAX];
    struct frame f;
    struct pkt p;
    uint32_t n;

    build(&p, &f, buf, &own, &av, 61, NULL);
    n = f.len - 14 - 4;
    memset(m, 0xff, 8);
    memcpy(m + 8, buf + 14, n);
    m[8 + 1] = m[8 + 8] = m[8 + 10] = m[8 + 11] = 0xff; /* TOS, TTL, checksum */
    m[8 + 26] = m[8 + 27] = 0xff;                       /* UDP checksum */
    m[8 + 32] = 0xff;                                   /* FECN, BECN, reserved */
    cr_expect_eq(load_le32(buf + f.len - 4), plain_crc(m, n + 8));
}

Test(build, tweaks_do_one_thing_each)
{
    struct link_addr own = addr(ENCAP_ROCEV2, false);
    struct av av = to(&own);
    uint8_t buf[EP_FRAME_MAX];
    struct frame f;
    struct pkt p;

    build(&p, &f, buf, &own, &av, 8, &(struct build_tweak){.icrc_xor = 1});
    cr_expect(p.icrc == CRC_BAD && !(p.flags & PKT_MALFORMED));
    build(&p, &f, buf, &own, &av, 8, &(struct build_tweak){.udp_len_add = 4});
    cr_expect(p.flags & PKT_MALFORMED);
    build(&p, &f, buf, &own, &av, 8, &(struct build_tweak){.no_df = true});
    cr_expect(p.icrc == CRC_GOOD && !(buf[14 + 6] & 0x40));
    build(&p, &f, buf, &own, &av, 8, &(struct build_tweak){.tos_xor = 3});
    cr_expect(p.icrc == CRC_GOOD && p.tos == (0x6a ^ 3));
    build(&p, &f, buf, &own, &av, 8, &(struct build_tweak){.trailing = 4});
    cr_expect(p.icrc == CRC_GOOD && p.payload_len == 12);
}

Test(build, mixed_address_families_and_small_buffers_are_refused)
{
    struct link_addr own = addr(ENCAP_ROCEV2, false);
    struct av av = to(&own);
    struct frame_out out = {.buf = (uint8_t[64]){0}, .cap = 64};
    struct pkt p = {.op = &opcode_table[OP_SEND_ONLY]};
    struct path path;

    cr_expect_eq(path_init(&path, &own, &av), 0);
    cr_expect_eq(build_begin(&out, &path, &p, 100, 0, NULL), -ENOSPC);
    av.dgid[0] = 0xfd;
    cr_expect_eq(path_init(&path, &own, &av), -EINVAL);
}

Test(build, changed_frame_gets_its_crcs_right_again)
{
    for (int encap = ENCAP_ROCEV2; encap <= ENCAP_IB; encap++) {
        struct link_addr own = addr((enum encap)encap, true);
        struct av av = to(&own);
        uint8_t buf[EP_FRAME_MAX];
        struct frame f;
        struct pkt p;
        build(&p, &f, buf, &own, &av, 20, NULL);
        buf[p.payload_off] ^= 0x55;
        pkt_decode(&p, &f, &verify);
        cr_expect_eq(p.icrc, CRC_BAD);
        cr_expect(build_fix_crc(buf, f.len, f.linktype));
        pkt_decode(&p, &f, &verify);
        cr_expect_eq(p.icrc, CRC_GOOD);
        cr_expect_neq(p.vcrc, CRC_BAD);
    }
    cr_expect(!build_fix_crc((uint8_t[60]){0}, 60, LINK_ETHERNET));
}

Test(build, a_frame_becomes_one_of_another_opcode_in_every_encapsulation)
{
    static const struct {
        enum encap encap;
        bool v6, grh;
    } t[] = {{ENCAP_ROCEV2, false, false},
             {ENCAP_ROCEV2, true, false},
             {ENCAP_ROCEV1, true, true},
             {ENCAP_IB, true, false},
             {ENCAP_IB, true, true}};

    for (unsigned i = 0; i < ARRAY_LEN(t); i++)
        for (uint32_t len = 0; len < 10; len++) {
            struct link_addr own = addr(t[i].encap, t[i].v6);
            struct av av = to(&own);
            uint8_t buf[EP_FRAME_MAX];
            uint32_t before;
            struct frame f;
            struct pkt p;
            av.grh = t[i].grh;
            build(&p, &f, buf, &own, &av, len, NULL);
            before = f.len;
            cr_assert(frame_retype(buf, &f.len, sizeof buf, f.linktype, OP_READ_RESP_ONLY, 0x1f));
            f.caplen = f.len;
            pkt_decode(&p, &f, &verify);
            cr_assert_eq(p.flags & (PKT_MALFORMED | PKT_CUT), 0, "row %u, %u bytes: %s", i, len, p.why);
            cr_assert(p.icrc == CRC_GOOD && p.vcrc != CRC_BAD && f.len == before + 4);
            cr_assert(p.bth.opcode == OP_READ_RESP_ONLY && p.bth.dqpn == 0x123456 && p.bth.psn == 0xabcdef);
            cr_assert(p.aeth.syndrome == 0x1f && p.aeth.msn == 0 && p.payload_len == len);
            for (uint32_t k = 0; k < len; k++)
                cr_assert_eq(buf[p.payload_off + k], k);
            cr_assert(frame_retype(buf, &f.len, sizeof buf, f.linktype, OP_ATOMIC_ACKNOWLEDGE, -1));
            f.caplen = f.len;
            pkt_decode(&p, &f, &verify);
            cr_assert(p.icrc == CRC_GOOD && p.vcrc != CRC_BAD && !(p.flags & (PKT_MALFORMED | PKT_CUT)));
            cr_assert(p.aeth.syndrome == 0x1f && p.atomicacketh.orig == 0 && p.payload_len == 0);
            cr_assert_eq(f.len, before - len - (-len & 3) + 12);
        }
}

Test(build, a_response_becomes_a_cnp_where_there_are_cnps)
{
    static const struct {
        enum encap encap;
        bool v6, able;
    } t[] = {
        {ENCAP_ROCEV2, false, true}, {ENCAP_ROCEV2, true, true}, {ENCAP_ROCEV1, true, false}, {ENCAP_IB, true, false}};

    for (unsigned i = 0; i < ARRAY_LEN(t); i++) {
        struct link_addr own = addr(t[i].encap, t[i].v6);
        struct av av = to(&own);
        uint8_t buf[EP_FRAME_MAX];
        struct frame f;
        struct pkt p;
        build(&p, &f, buf, &own, &av, 7, NULL);
        cr_assert_eq(frame_retype(buf, &f.len, sizeof buf, f.linktype, OPCODE_CNP, -1), t[i].able, "row %u", i);
        f.caplen = f.len;
        pkt_decode(&p, &f, &verify);
        cr_assert_eq(p.flags & (PKT_MALFORMED | PKT_CUT), 0, "row %u: %s", i, p.why);
        cr_assert_eq(p.icrc, CRC_GOOD);
        cr_assert(!t[i].able || (p.bth.opcode == OPCODE_CNP && p.bth.dqpn == 0x123456 && p.bth.psn == 0 && p.bth.becn));
        cr_assert(!t[i].able || (!p.bth.ackreq && !p.bth.migreq && p.icrc_off == p.bth_off + 12 + 16));
    }
}

Test(build, what_is_no_whole_packet_becomes_no_other_one)
{
    struct link_addr own = addr(ENCAP_ROCEV2, false);
    struct av av = to(&own);
    uint8_t buf[EP_FRAME_MAX], was[EP_FRAME_MAX];
    struct frame f;
    struct pkt p;
    uint32_t len;

    build(&p, &f, buf, &own, &av, 20, NULL);
    memcpy(was, buf, f.len);
    len = f.len;
    cr_expect_not(frame_retype(buf, &len, f.len + 3, f.linktype, OP_READ_RESP_ONLY, 0), "no room");
    cr_expect_not(frame_retype(buf, &len, sizeof buf, f.linktype, 0x1f, 0), "no such opcode");
    for (len = 0; len < f.len; len++) {
        uint32_t cut = len;
        cr_assert_not(frame_retype(buf, &cut, sizeof buf, f.linktype, OP_ACKNOWLEDGE, 0), "%u bytes of it", len);
    }
    cr_expect_arr_eq(buf, was, f.len);
}

Test(build, congestion_is_marked_by_fecn_where_there_is_no_ip_header_and_no_grh)
{
    struct link_addr own = addr(ENCAP_IB, true);
    struct av av = to(&own);
    uint8_t buf[EP_FRAME_MAX], other[64] = {0};
    struct frame f;
    struct pkt p;

    build(&p, &f, buf, &own, &av, 20, NULL);
    cr_expect_not(p.bth.fecn);
    cr_expect(frame_mark_ce(buf, f.len, f.linktype, true));
    pkt_decode(&p, &f, &verify);
    cr_expect(p.bth.fecn);
    cr_expect_eq(p.icrc, CRC_GOOD);
    cr_expect_eq(p.vcrc, CRC_GOOD);
    cr_expect_not(frame_mark_ce(other, sizeof other, LINK_ETHERNET, false), "nothing to mark");
}

Test(build, frame_lengths_are_those_of_the_published_walk_through)
{
    struct pair_opts o = pair_defaults();
    struct pair *p = pair_new(&o);
    uint8_t buf[EP_FRAME_MAX];
    int len;

    pair_recv(p, 1, 0, 0, 8192);
    pair_post(p, 0, (struct send_wr){.opcode = WR_SEND}, 0, 8192);
    cr_expect_eq(ep_tx(p->ep[0], buf, sizeof buf, 0), 1082, "SEND First");
    while ((len = ep_tx(p->ep[0], buf, sizeof buf, 0)) > 0)
        ;
    pair_free(p);
    p = pair_new(&o);
    pair_post(p, 0, (struct send_wr){.opcode = WR_RDMA_READ, .remote_addr = PAIR_IOVA(1), .rkey = p->key[1]}, 0, 8192);
    len = ep_tx(p->ep[0], buf, sizeof buf, 0);
    cr_expect_eq(len, 74, "READ request");
    ep_rx(p->ep[1], buf, (uint32_t)len, 0);
    cr_expect_eq(ep_tx(p->ep[1], buf, sizeof buf, 0), 1086, "READ response First");
    pair_free(p);
    p = pair_new(&o);
    pair_post(p, 0, (struct send_wr){.opcode = WR_RDMA_WRITE, .remote_addr = PAIR_IOVA(1), .rkey = p->key[1]}, 0, 4);
    len = ep_tx(p->ep[0], buf, sizeof buf, 0);
    ep_rx(p->ep[1], buf, (uint32_t)len, 0);
    cr_expect_eq(ep_tx(p->ep[1], buf, sizeof buf, 0), 62, "ACK");
    pair_free(p);
}

/* As scapy builds them: TCP over IPv4 with an odd length, UDP over IPv6 with a tag, UDP without payload, TCP over IPv6,
 * ICMP without payload. */
Test(build, l4_checksums_are_those_of_another_builder)
{
    static const struct {
        const char *bytes;
        uint32_t len, sum_at;
    } t[] = {
        {"\x02\0\0\0\0\x02\x02\0\0\0\0\x01\x08\0\x45\0\0\x2b\0\x01\0\0\x40\x06\x66\xca\x0a\0\0\x01\x0a\0\0\x02\x03\xe8"
         "\x07\xd0\0"
         "\0\0\x01\0\0\0\x02\x50\x10\x20\0\xab\xb1\0\0\x61\x62\x63",
         57, 50},
        {"\x02\0\0\0\0\x02\x02\0\0\0\0\x01\x81\0\0\x05\x86\xdd\x60\0\0\0\0\x0c\x11\x40\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
         "\x01"
         "\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x02\x03\xe8\x07\xd0\0\x0c\x35\x53\x61\x62\x63\x64",
         70, 64},
        {"\x02\0\0\0\0\x02\x02\0\0\0\0\x01\x08\0\x45\0\0\x1c\0\x01\0\0\x40\x11\x66\xce\x0a\0\0\x01\x0a\0\0\x02\x03\xe8"
         "\x07\xd0\0"
         "\x08\xe0\x23",
         42, 40},
        {"\x02\0\0\0\0\x02\x02\0\0\0\0\x01\x86\xdd\x60\0\0\0\0\x14\x06\x40\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\xfd\0\0"
         "\0\0\0"
         "\0\0\0\0\0\0\0\0\0\x02\x03\xe8\x07\xd0\0\0\0\x01\0\0\0\x02\x50\x10\x20\0\x8a\x15\0\0",
         74, 70},
        {"\x02\x00\x00\x00\x00\x02\x02\x00\x00\x00\x00\x01\x08\x00\x45\x00\x00\x1c\x00\x01\x00"
         "\x00\x40\x01\x66\xde\x0a\x00\x00\x01\x0a\x00\x00\x02\x08\x00\xe5\xca\x12\x34\x00\x01",
         42, 36},
    };

    for (size_t i = 0; i < ARRAY_LEN(t); i++) {
        uint8_t frame[80];
        memcpy(frame, t[i].bytes, t[i].len);
        store_be16(frame + t[i].sum_at, 0xbeef);
        frame_fix_l4(frame, t[i].len);
        cr_expect_arr_eq(frame, t[i].bytes, t[i].len, "packet %zu", i);
    }
}
