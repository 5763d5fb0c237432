/* layer 1 tests: management datagrams other than Communication Management. Layouts: OpenSM, libibmad and kernel
 * headers. */
#include "dissect/columns.h"
#include "dissect/mad/rmpp.h"
#include "dissect/mad/sa.h"
#include "dissect/mad/tables.h"
#include "dissect/pkt.h"

#include <criterion/criterion.h>

#define MAD_AT (14 + 20 + 8 + 12 + 8)

/* A RoCEv2 frame with a datagram, and how it decodes. */
struct made_mad {
    uint8_t data[MAD_AT + 512];
    uint8_t *mad;
    struct frame frame;
    struct pkt p;
};

/* The frame's headers; the datagram begins as {1, class, 1, method, status 0, attr}. */
static void make_mad(struct made_mad *m, uint8_t class, uint8_t method, uint16_t attr)
{
    static const uint8_t head[] = {2, 0, 0,    0, 0,    2,    2,    0,  0, 0, 0,   1, 8,    0,    0x45, 0,
                                   0, 0, 0,    0, 0x40, 0,    64,   17, 0, 0, 10,  0, 0,    1,    10,   0,
                                   0, 2, 0xc0, 0, 0x12, 0xb7, 0,    0,  0, 0, 100, 0, 0xff, 0xff, 0,    0,
                                   0, 1, 0,    0, 0,    7,    0x80, 1,  0, 0, 0,   0, 0,    1};

    memset(m, 0, sizeof *m);
    memcpy(m->data, head, sizeof head);
    m->mad = m->data + MAD_AT;
    m->mad[0] = 1;
    m->mad[1] = class;
    m->mad[2] = 1;
    m->mad[3] = method;
    store_be16(m->mad + 16, attr);
}

/* Decode the frame with a datagram of `len` bytes, of which all but `cut` were captured. */
static void decode_mad(struct made_mad *m, uint32_t len, uint32_t cut)
{
    static const struct decode_opts opts;
    uint32_t udp = 8 + 20 + len + 4;

    store_be16(m->data + 16, (uint16_t)(20 + udp));
    store_be16(m->data + 38, (uint16_t)udp);
    m->frame = (struct frame){.data = m->data,
                              .caplen = MAD_AT + len + 4 - cut,
                              .len = MAD_AT + len + 4,
                              .number = 1,
                              .linktype = LINK_ETHERNET,
                              .has_ts = true};
    pkt_decode(&m->p, &m->frame, &opts);
}

static unsigned layers_of(const struct made_mad *m, const char *abbrev)
{
    unsigned n = 0;

    for (unsigned i = 0; i < m->p.n_layers; i++)
        n += strcmp(m->p.layers[i].hdr->abbrev, abbrev) == 0;
    return n;
}

/* The `nth` value of a field as text, "" if there is none. */
static const char *value_of(const struct made_mad *m, const char *abbrev, unsigned nth)
{
    static struct buf b;
    struct value v;

    for (unsigned i = 0; i < m->p.n_layers; i++)
        for (unsigned k = 0; k < m->p.layers[i].hdr->nfields; k++) {
            const struct field *f = &m->p.layers[i].hdr->fields[k];
            if (strcmp(f->abbrev, abbrev) != 0 || !field_value(f, &m->p, &m->p.layers[i], &v) || nth--)
                continue;
            b.len = 0;
            value_print(&b, f, &v);
            return buf_str(&b);
        }
    return "";
}

static const char *info_of(const struct made_mad *m)
{
    static struct buf b;

    b.len = 0;
    pkt_info(&b, &m->p);
    return buf_str(&b);
}

#define EXPECT_VALUE(m, abbrev, nth, want)                                                                             \
    cr_expect_str_eq(value_of(m, abbrev, nth), want, "%s: %s", abbrev, value_of(m, abbrev, nth))

Test(mad, info_names_class_method_attribute_and_modifier)
{
    struct made_mad m;

    make_mad(&m, 0x01, 0x01, 0x15);
    m.mad[23] = 1;
    decode_mad(&m, 256, 0);
    cr_expect_str_eq(info_of(&m), "SubnMgt Get(PortInfo) mod 0x00000001");
    EXPECT_VALUE(&m, "rdma.mad.attribute", 0, "PortInfo");
    cr_expect_str_eq(pkt_column(&m.p), "MAD");
}

Test(mad, info_explains_a_status)
{
    struct made_mad m;

    make_mad(&m, 0x03, 0x92, 0x35);
    store_be16(m.mad + 4, 0x0301);
    decode_mad(&m, 256, 0);
    cr_expect_str_eq(info_of(&m), "SubnAdm GetTableResp(PathRecord) mod 0x00000000 status 0x0301, busy, no records");
    EXPECT_VALUE(&m, "rdma.mad.status.class", 0, "0x03");
    EXPECT_VALUE(&m, "rdma.mad.status.busy", 0, "1");
}

Test(mad, a_datagram_that_is_not_256_bytes_is_malformed_and_shown)
{
    struct made_mad m;

    make_mad(&m, 0x01, 0x81, 0x11);
    m.mad[64 + 2] = 2;
    decode_mad(&m, 200, 0);
    cr_expect(m.p.flags & PKT_MALFORMED);
    cr_expect_str_eq(m.p.why, "a MAD has 256 bytes");
    EXPECT_VALUE(&m, "infiniband.nodeinfo.nodetype", 0, "0x02");
}

Test(mad, a_datagram_cut_by_the_snap_length_is_not_malformed)
{
    struct made_mad m;

    make_mad(&m, 0x81, 0x01, 0x11);
    m.mad[64 + 2] = 3;
    decode_mad(&m, 256, 256 + 4 - 70);
    cr_expect_not(m.p.flags & PKT_MALFORMED);
    cr_expect(m.p.flags & PKT_CUT);
    EXPECT_VALUE(&m, "infiniband.nodeinfo.nodetype", 0, "0x03");
    EXPECT_VALUE(&m, "infiniband.nodeinfo.systemimageguid", 0, "");
    EXPECT_VALUE(&m, "infiniband.smpdirected.initialpath", 0, "");
}

Test(mad, no_length_of_the_capture_is_read_beyond)
{
    static const struct {
        uint8_t class;
        uint16_t attr;
    } kinds[] = {{0x01, 0x15}, {0x81, 2}, {0x03, 0x11}, {0x03, 0x3a}, {0x04, 0x12}, {0x21, 0x13}, {0x30, 1}};
    struct made_mad *m = malloc(sizeof *m);
    struct buf b = {0};

    for (unsigned k = 0; k < ARRAY_LEN(kinds); k++)
        for (uint32_t cut = 0; cut <= 260; cut++) {
            make_mad(m, kinds[k].class, 0x81, kinds[k].attr);
            memset(m->mad + 24, 0xff, 232);
            m->mad[32] = (uint8_t)(1 + cut % 2);
            decode_mad(m, 256, cut);
            for (unsigned i = 0; i < m->p.n_layers; i++)
                cr_assert_leq(m->p.layers[i].off + m->p.layers[i].len, m->frame.caplen);
            pkt_info(&b, &m->p);
        }
    buf_free(&b);
    free(m);
}

Test(mad, a_directed_route_has_its_direction_hops_and_paths)
{
    struct made_mad m;

    make_mad(&m, 0x81, 0x81, 0x20);
    store_be16(m.mad + 4, 0x8000);
    m.mad[6] = 1;
    m.mad[7] = 2;
    memcpy(m.mad + 128, "\0\2\3", 3);
    memcpy(m.mad + 192, "\0\6\1", 3);
    store_be32(m.mad + 64 + 16, 0x923a);
    m.mad[64 + 20] = 0x53;
    decode_mad(&m, 256, 0);
    cr_expect_str_eq(info_of(&m), "SubnMgt DR GetResp(SMInfo) mod 0x00000000");
    EXPECT_VALUE(&m, "infiniband.smpdirected.d", 0, "0x0000000000000001");
    EXPECT_VALUE(&m, "infiniband.smpdirected.hoppointer", 0, "0x01");
    EXPECT_VALUE(&m, "infiniband.smpdirected.hopcount", 0, "0x02");
    cr_expect_eq(strncmp(value_of(&m, "infiniband.smpdirected.initialpath", 0), "0002030000", 10), 0);
    cr_expect_eq(strncmp(value_of(&m, "infiniband.smpdirected.returnpath", 0), "0006010000", 10), 0);
    EXPECT_VALUE(&m, "infiniband.sminfo.actcount", 0, "0x0000923a");
    EXPECT_VALUE(&m, "infiniband.sminfo.priority", 0, "0x05");
    EXPECT_VALUE(&m, "infiniband.sminfo.smstate", 0, "0x03");
}

Test(mad, traps_show_the_details_of_their_number)
{
    struct made_mad m;

    make_mad(&m, 0x01, 0x05, 2);
    memcpy(m.mad + 64, (uint8_t[]){0x81, 0, 0, 2, 0, 128, 0, 9, 0x80, 1, 0x12, 0x34}, 12);
    decode_mad(&m, 256, 0);
    cr_expect_str_eq(info_of(&m), "SubnMgt Trap(Notice) mod 0x00000000 trap 128 link state changed");
    EXPECT_VALUE(&m, "infiniband.trap.lidaddr", 0, "0x1234");
    EXPECT_VALUE(&m, "infiniband.notice.noticecount", 0, "0x0001");

    store_be16(m.mad + 68, 144);
    m.mad[64 + 10 + 12 - 1] = 0x04;
    decode_mad(&m, 256, 0);
    cr_expect_eq(layers_of(&m, "rdma.trap144"), 1);
    EXPECT_VALUE(&m, "infiniband.trap.linkspeecenabledchange", 0, "0x01");
}

Test(mad, a_notice_of_a_vendor_shows_bytes_only)
{
    struct made_mad m;

    make_mad(&m, 0x03, 0x06, 2);
    memcpy(m.mad + 56, (uint8_t[]){0x01, 0x00, 0x02, 0xc9, 0, 128}, 6);
    m.mad[56 + 64] = 0xfe;
    decode_mad(&m, 256, 0);
    cr_expect_str_eq(info_of(&m), "SubnAdm Report(Notice) mod 0x00000000 vendor 0x0002c9 device 0x0080");
    cr_expect_eq(layers_of(&m, "rdma.trap128"), 0);
    cr_expect_eq(layers_of(&m, "rdma.notice.details"), 1);
    EXPECT_VALUE(&m, "rdma.notice.issuergid", 0, "fe00::");
}

/* A GetTableResp of PathRecords, 64 bytes apart; DLIDs count from 1 by the position in the segment. */
static void make_paths(struct made_mad *m, uint8_t flags, uint32_t segment, uint32_t len)
{
    make_mad(m, 0x03, 0x92, 0x35);
    m->mad[24] = 1;
    m->mad[25] = RMPP_DATA;
    m->mad[26] = flags;
    store_be32(m->mad + 28, segment);
    store_be32(m->mad + 32, len);
    store_be16(m->mad + 44, 8);
}

Test(mad, a_table_has_a_layer_for_each_record)
{
    struct made_mad m;

    make_paths(&m, RMPP_ACTIVE | RMPP_FIRST | RMPP_LAST, 1, 20 + 128);
    store_be16(m.mad + 56 + 40, 0x11);
    store_be16(m.mad + 56 + 64 + 40, 0x22);
    decode_mad(&m, 256, 0);
    cr_expect_eq(layers_of(&m, "rdma.sa.pathrecord"), 2);
    EXPECT_VALUE(&m, "infiniband.pathrecord.dlid", 0, "0x0011");
    EXPECT_VALUE(&m, "infiniband.pathrecord.dlid", 1, "0x0022");
    cr_expect_not(m.p.flags & PKT_MALFORMED);
}

Test(mad, an_empty_table_has_no_records)
{
    struct made_mad m;

    make_paths(&m, RMPP_ACTIVE | RMPP_FIRST | RMPP_LAST, 1, 20);
    decode_mad(&m, 256, 0);
    cr_expect_eq(layers_of(&m, "rdma.sa.pathrecord"), 0);
    cr_expect_not(m.p.flags & PKT_MALFORMED);
}

Test(mad, a_later_segment_begins_within_a_record)
{
    struct made_mad m;

    make_paths(&m, RMPP_ACTIVE, 2, 0);
    store_be16(m.mad + 56 + 56 + 40, 0x33); /* 200 = 3 * 64 + 8: 56 bytes of the fourth record are left */
    decode_mad(&m, 256, 0);
    cr_expect_eq(strlen(value_of(&m, "rdma.mad.attributedata", 0)), 2 * 56);
    EXPECT_VALUE(&m, "infiniband.pathrecord.dlid", 0, "0x0033");
    cr_expect_eq(layers_of(&m, "rdma.sa.pathrecord"), 3);
}

Test(mad, a_last_segment_with_an_impossible_length_is_malformed)
{
    struct made_mad m;

    make_paths(&m, RMPP_ACTIVE | RMPP_LAST, 2, 221);
    decode_mad(&m, 256, 0);
    cr_expect(m.p.flags & PKT_MALFORMED);
    make_paths(&m, RMPP_ACTIVE | RMPP_LAST, 2, 19);
    decode_mad(&m, 256, 0);
    cr_expect(m.p.flags & PKT_MALFORMED);
    make_paths(&m, RMPP_ACTIVE | RMPP_LAST, 2, 220);
    decode_mad(&m, 256, 0);
    cr_expect_not(m.p.flags & PKT_MALFORMED);
}

Test(mad, records_that_are_too_many_are_bounded)
{
    struct made_mad m;

    make_paths(&m, RMPP_ACTIVE, 1, 0);
    store_be16(m.mad + 16, 0x11); /* NodeRecords, said to be 8 bytes apart */
    store_be16(m.mad + 44, 1);
    decode_mad(&m, 256, 0);
    cr_expect(m.p.flags & PKT_MALFORMED);
    cr_expect_eq(layers_of(&m, icrc_hdr.abbrev), 1, "what follows the records is still shown");
}

Test(mad, an_rmpp_ack_has_a_window_and_no_records)
{
    struct made_mad m;

    make_paths(&m, RMPP_ACTIVE, 3, 67);
    m.mad[25] = RMPP_ACK;
    m.mad[26] = 31 << 3 | RMPP_ACTIVE;
    decode_mad(&m, 256, 0);
    EXPECT_VALUE(&m, "infiniband.rmpp.segmentnumber", 0, "0x00000003");
    EXPECT_VALUE(&m, "infiniband.rmpp.newwindowlast", 0, "0x00000043");
    EXPECT_VALUE(&m, "infiniband.rmpp.payloadlength", 0, "");
    EXPECT_VALUE(&m, "infiniband.rmpp.rresptime", 0, "0x1f");
    EXPECT_VALUE(&m, "infiniband.rmpp.rmppflags", 0, "0x01");
    cr_expect_eq(layers_of(&m, "rdma.sa.pathrecord"), 0);
}

Test(mad, an_rmpp_abort_has_neither_segment_nor_records)
{
    struct made_mad m;

    make_paths(&m, RMPP_ACTIVE, 3, 67);
    m.mad[25] = RMPP_ABORT;
    m.mad[27] = 118;
    decode_mad(&m, 256, 0);
    EXPECT_VALUE(&m, "infiniband.rmpp.segmentnumber", 0, "");
    EXPECT_VALUE(&m, "infiniband.rmpp.rmppstatus", 0, "0x76");
    cr_expect_eq(layers_of(&m, "rdma.sa.pathrecord"), 0);
}

Test(mad, a_multipath_record_claims_no_more_gids_than_there_is_room_for)
{
    struct made_mad m;

    make_mad(&m, 0x03, 0x14, 0x3a);
    m.mad[56 + 15] = 1;
    m.mad[56 + 16] = 2;
    m.mad[56 + 24 + 15] = 7;
    decode_mad(&m, 256, 0);
    cr_expect_eq(layers_of(&m, "rdma.multipathrecord.gid"), 3);
    EXPECT_VALUE(&m, "infiniband.multipathrecord.sdgid", 0, "::7");
    m.mad[56 + 15] = m.mad[56 + 16] = 255;
    decode_mad(&m, 256, 0);
    cr_expect_eq(layers_of(&m, "rdma.multipathrecord.gid"), (200 - 24) / 16);
}

Test(mad, counters_are_decimal_and_in_place)
{
    struct made_mad m;

    make_mad(&m, 0x04, 0x81, 0x12);
    m.mad[64 + 1] = 3;
    m.mad[64 + 19] = 0xa5;
    store_be32(m.mad + 64 + 24, 1000);
    store_be32(m.mad + 64 + 40, 77);
    decode_mad(&m, 256, 0);
    cr_expect_str_eq(info_of(&m), "PerfMgt GetResp(PortCounters) mod 0x00000000");
    EXPECT_VALUE(&m, "infiniband.portcounters.portselect", 0, "0x03");
    EXPECT_VALUE(&m, "infiniband.portcounters.locallinkintegrityerrors", 0, "10");
    EXPECT_VALUE(&m, "infiniband.portcounters.excessivebufferoverrunerrors", 0, "5");
    EXPECT_VALUE(&m, "infiniband.portcounters.portxmitdata", 0, "1000");
    EXPECT_VALUE(&m, "rdma.portcounters.portxmitwait", 0, "77");
}

Test(mad, congestion_logs_differ_by_type)
{
    struct made_mad m;

    make_mad(&m, 0x21, 0x81, 0x13);
    m.mad[32] = 2;
    m.mad[44 + 2] = 0x21; /* local QP of the first entry */
    decode_mad(&m, 256, 0);
    cr_expect_eq(layers_of(&m, "rdma.cc.congestionlog.ca.entry"), 13);
    EXPECT_VALUE(&m, "rdma.congestionlog.localqp", 0, "0x000021");
    m.mad[32] = 1;
    decode_mad(&m, 256, 0);
    cr_expect_eq(layers_of(&m, "rdma.cc.congestionlog.switch.entry"), 15);
    m.mad[32] = 3;
    decode_mad(&m, 256, 0);
    cr_expect_eq(layers_of(&m, "rdma.cc.congestionlog.switch.entry"), 0);
}

Test(mad, vendor_classes_have_an_oui_or_plain_bytes)
{
    struct made_mad m;

    make_mad(&m, 0x32, 0x01, 0x10);
    memcpy(m.mad + 36, "\0\0\x14\5", 4);
    decode_mad(&m, 256, 0);
    EXPECT_VALUE(&m, "rdma.mad.oui", 0, "0x001405");
    cr_expect_str_eq(info_of(&m), "Vendor(0x32) Get(attribute 0x0010) mod 0x00000000");
    cr_expect_eq(strlen(value_of(&m, "rdma.mad.attributedata", 0)), 2 * 216);
    make_mad(&m, 0x0a, 0x01, 0x10);
    decode_mad(&m, 256, 0);
    EXPECT_VALUE(&m, "rdma.mad.oui", 0, "");
    cr_expect_eq(strlen(value_of(&m, "rdma.mad.attributedata", 0)), 2 * 232);
}

Test(mad, attributes_fit_into_their_datagrams)
{
    static const struct {
        const struct mad_attr *table;
        uint32_t room;
    } tables[] = {{smp_attrs, 64}, {sa_attrs, 200}, {perf_attrs, 192},
                  {cc_attrs, 192}, {bm_attrs, 192}, {devmgt_attrs, 192}};

    for (unsigned t = 0; t < ARRAY_LEN(tables); t++)
        for (const struct mad_attr *a = tables[t].table; a->name; a++) {
            uint32_t len = 0;
            for (unsigned i = 0; i < MAD_PARTS && a->parts[i]; i++)
                len += a->parts[i]->len;
            cr_expect_leq(len, tables[t].room, "%s", a->name);
        }
}
