/* layer 1 tests: messages of Communication Management: layout, names, private data, and lying input. */
#include "dissect/columns.h"
#include "dissect/pkt.h"
#include "src/transport/cm.h"
#include "tests/unit/cm_frames.h"

#include <criterion/criterion.h>

static uint8_t random_byte(uint32_t *seed)
{
    *seed = *seed * 1103515245u + 12345u;
    return (uint8_t)(*seed >> 16);
}

Test(cm, random_messages_survive_decode_and_encode)
{
    uint32_t seed = 11;
    uint8_t in[MAD_LEN], out[MAD_LEN];
    struct cm_msg m;

    for (unsigned round = 0; round < 100; round++)
        for (unsigned attr = CM_REQ; attr <= CM_APR; attr++) {
            for (unsigned i = 0; i < MAD_LEN; i++)
                in[i] = random_byte(&seed);
            in[1] = CM_CLASS;
            store_be16(in + 16, (uint16_t)attr);
            cr_assert(cm_msg_decode(&m, in, sizeof in));
            memset(out, 0x5a, sizeof out);
            cm_msg_encode(out, &m);
            cr_assert_arr_eq(in, out, MAD_LEN, "%s", cm_attr_str(attr));
        }
}

Test(cm, all_but_sidr_name_their_sender_by_id_and_all_but_req_their_receiver_too)
{
    for (unsigned attr = CM_REQ; attr <= CM_APR; attr++) {
        bool sidr = attr == CM_SIDR_REQ || attr == CM_SIDR_REP;
        uint8_t mad[MAD_LEN] = {[1] = CM_CLASS, [17] = (uint8_t)attr};
        uint32_t sender, receiver;
        struct cm_msg m;
        store_be32(mad + MAD_HDR_LEN, 0x11223344);
        store_be32(mad + MAD_HDR_LEN + 4, 0x55667788);
        cr_assert(cm_msg_decode(&m, mad, sizeof mad));
        cm_msg_ids(&m, &sender, &receiver);
        cr_expect_eq(sender, sidr ? 0 : 0x11223344, "%s", cm_attr_str(attr));
        cr_expect_eq(receiver, sidr || attr == CM_REQ ? 0 : 0x55667788, "%s", cm_attr_str(attr));
    }
}

Test(cm, other_classes_unknown_attributes_and_short_datagrams_are_no_messages)
{
    uint8_t mad[MAD_LEN] = {1, CM_CLASS, 2, 3};
    struct cm_msg m;

    mad[17] = CM_REQ;
    cr_expect(cm_msg_decode(&m, mad, sizeof mad));
    cr_expect_not(cm_msg_decode(&m, mad, MAD_LEN - 1));
    mad[17] = CM_APR + 1;
    cr_expect_not(cm_msg_decode(&m, mad, sizeof mad));
    mad[17] = CM_REQ;
    mad[1] = 3;
    cr_expect_not(cm_msg_decode(&m, mad, sizeof mad));
}

Test(cm, private_data_sizes_are_those_of_the_kernel)
{
    static const struct {
        unsigned attr, bytes;
    } sizes[] = {{CM_REQ, 92},       {CM_MRA, 222},   {CM_REJ, 148},  {CM_REP, 196}, {CM_RTU, 224},
                 {CM_DREQ, 220},     {CM_DREP, 224},  {CM_LAP, 168},  {CM_APR, 148}, {CM_SIDR_REQ, 216},
                 {CM_SIDR_REP, 136}, {CM_REQ - 1, 0}, {CM_APR + 1, 0}};

    for (unsigned i = 0; i < ARRAY_LEN(sizes); i++)
        cr_expect_eq(cm_private_max(sizes[i].attr), sizes[i].bytes, "0x%x", sizes[i].attr);
}

static uint8_t bytes[400];
static struct frame frame;
static struct pkt pkt;

static void decode(const struct cm_frame *f, unsigned caplen)
{
    static const struct decode_opts opts = {.verify = true};
    unsigned len = cm_frame_bytes(f, bytes);

    frame = (struct frame){
        .data = bytes, .caplen = min_u32(caplen, len), .len = len, .number = 1, .linktype = LINK_ETHERNET};
    pkt_decode(&pkt, &frame, &opts);
}

/* What -T fields prints for `abbrev`, values joined by commas; "" if the packet has none. */
static const char *printed(const char *abbrev)
{
    static struct buf b;

    b.len = 0;
    for (unsigned i = 0; i < pkt.n_layers; i++)
        for (unsigned j = 0; j < pkt.layers[i].hdr->nfields; j++) {
            const struct field *f = &pkt.layers[i].hdr->fields[j];
            struct value v;
            if (strcmp(f->abbrev, abbrev) != 0 || !field_value(f, &pkt, &pkt.layers[i], &v))
                continue;
            if (b.len)
                buf_char(&b, ',');
            value_print(&b, f, &v);
        }
    return buf_str(&b);
}

static const char *meaning(const char *abbrev)
{
    static struct buf b;
    struct field_ref ref;
    struct value v;

    b.len = 0;
    cr_assert_geq(field_find(abbrev, strlen(abbrev), &ref, 1), 1, "%s", abbrev);
    for (unsigned i = 0; i < pkt.n_layers; i++)
        if (pkt.layers[i].hdr == ref.hdr && field_value(ref.field, &pkt, &pkt.layers[i], &v))
            value_text(&b, ref.field, &v);
    return buf_str(&b);
}

static const char *info(void)
{
    static struct buf b;

    b.len = 0;
    pkt_info(&b, &pkt);
    return buf_str(&b);
}

/* Values as tshark 4.0.17 prints them for the same frame, those excepted that it takes from the wrong bytes. */
Test(cm, req_of_soft_roce_reads_as_tshark_prints_it)
{
    static const char *const want[][2] = {
        {"infiniband.cm.req", "0xca69ce4a"},
        {"infiniband.cm.req.serviceid", "0x0000000001061c06"},
        {"infiniband.cm.req.serviceid.prefix", "0000000001"},
        {"infiniband.cm.req.serviceid.protocol", "0x06"},
        {"infiniband.cm.req.serviceid.dport", "0x1c06"},
        {"infiniband.cm.req.localcaguid", "0x505400fffe770001"},
        {"infiniband.cm.req.localqpn", "0x000011"},
        {"infiniband.cm.req.responderres", "0x01"},
        {"infiniband.cm.req.remoteresptout", "0x14"},
        {"infiniband.cm.req.transpsvctype", "0x00"},
        {"infiniband.cm.req.startpsn", "0x45f6c9"},
        {"infiniband.cm.req.retrcount", "0x07"},
        {"infiniband.cm.req.pppmtu", "0x03"},
        {"infiniband.cm.req.maxcmretr", "0x0f"},
        {"infiniband.cm.req.prim_locallid", "65535"},
        {"infiniband.cm.req.prim_localgid", ""},
        {"infiniband.cm.req.prim_localgid_ipv4", "192.168.77.1"},
        {"infiniband.cm.req.prim_remotegid_ipv4", "192.168.77.2"},
        {"infiniband.cm.req.prim_hoplim", "0x40"},
        {"infiniband.cm.req.prim_localacktout", "0x13"},
        {"infiniband.cm.req.alt_reserved1", "0x00,0x00"},
        {"infiniband.cm.req.private", ""},
        {"infiniband.cm.req.ip_cm.ipv", "0x04"},
        {"infiniband.cm.req.ip_cm.sport", "0xc4c6"},
        {"infiniband.cm.req.ip_cm.sip4", "192.168.77.1"},
        {"infiniband.cm.req.ip_cm.dip4", "192.168.77.2"},
        {"infiniband.cm.req.ip_cm.sip6", ""},
    };

    decode(&CM_FRAME_REQ, 400);
    for (unsigned i = 0; i < ARRAY_LEN(want); i++)
        cr_expect_str_eq(printed(want[i][0]), want[i][1], "%s: %s", want[i][0], printed(want[i][0]));
    cr_expect_eq(strlen(printed("infiniband.cm.req.ip_cm.private")), 112);
    cr_expect_str_eq(pkt_column(&pkt), "CM");
    cr_expect_eq(pkt.icrc, CRC_GOOD);
}

/* The UDP source port of this connection's packets, 61471, comes from flow label 0x7f000: it is not 0x7f0, as tshark
 * says. */
Test(cm, primary_flow_label_and_rate_are_taken_from_their_own_bytes)
{
    decode(&CM_FRAME_REQ, 400);
    cr_expect_str_eq(printed("infiniband.cm.req.prim_flowlabel"), "0x0007f000");
    cr_expect_str_eq(printed("infiniband.cm.req.prim_pktrate"), "0x00000000");
}

Test(cm, values_have_meanings_and_timers_real_units)
{
    decode(&CM_FRAME_REQ, 400);
    cr_expect_str_eq(meaning("infiniband.cm.req.serviceid"), "RDMA_PS_TCP port 7174 (0x0000000001061c06)");
    cr_expect_str_eq(meaning("infiniband.cm.req.pppmtu"), "1024 (0x03)");
    cr_expect_str_eq(meaning("infiniband.cm.req.remoteresptout"), "4.2949673 s (0x14)");
    cr_expect_str_eq(meaning("infiniband.cm.req.alt_localacktout"), "off (0x00)");
    cr_expect_str_eq(meaning("infiniband.cm.req.rnrretrcount"), "no limit (0x07)");
}

Test(cm, ipv6_private_header_shows_ipv6_addresses)
{
    decode(&CM_FRAME_REQ6, 400);
    cr_expect_str_eq(printed("infiniband.cm.req.ip_cm.sip6"), "fd77::1");
    cr_expect_str_eq(printed("infiniband.cm.req.ip_cm.dip6"), "fd77::2");
    cr_expect_str_eq(printed("infiniband.cm.req.ip_cm.sip4"), "");
    cr_expect_str_eq(printed("infiniband.cm.req.prim_localgid"), "fd77::1");
    cr_expect_str_eq(printed("infiniband.cm.req.prim_localgid_ipv4"), "");
}

Test(cm, info_names_the_message_and_what_matters)
{
    decode(&CM_FRAME_REQ, 400);
    cr_expect_str_eq(info(),
                     "CM REQ local comm id 0xca69ce4a QPN 0x000011 service 0x0000000001061c06 (RDMA_PS_TCP port 7174) "
                     "PSN 4585161 PMTU 1024");
    decode(&CM_FRAME_REP, 400);
    cr_expect_str_eq(info(), "CM REP local comm id 0xd292e6e0 remote comm id 0xca69ce4a QPN 0x000011 PSN 9905370");
    decode(&CM_FRAME_DREQ, 400);
    cr_expect_str_eq(info(), "CM DREQ local comm id 0xca69ce4a remote comm id 0xd292e6e0");
    decode(&CM_FRAME_REJ, 400);
    cr_expect_str_eq(info(),
                     "CM REJ local comm id 0x00000000 remote comm id 0xcd69ce4a of REQ: reason 8 (invalid service id)");
    decode(&CM_FRAME_SIDR_REP, 400);
    cr_expect_str_eq(info(),
                     "CM SIDR_REP request id 0xc069ce4a status QPN and Q_Key valid QPN 0x000032 Q_Key 0x01234567 "
                     "service 0x0000000001111c06 (RDMA_PS_UDP port 7174)");
}

Test(cm, sidr_req_has_the_rdma_cm_header_too)
{
    decode(&CM_FRAME_SIDR_REQ, 400);
    cr_expect_str_eq(printed("rdma.cm.sidr_req.requestid"), "0xc069ce4a");
    cr_expect_str_eq(printed("rdma.cm.sidr_req.ip_cm.sip4"), "192.168.77.1");
    cr_expect_str_eq(printed("rdma.cm.sidr_req.ip_cm.dip4"), "192.168.77.2");
    cr_expect_str_eq(printed("infiniband.cm.req.ip_cm.sip4"), "", "the name belongs to REQ");
    cr_expect_eq(strlen(printed("rdma.cm.sidr_req.ip_cm.private")), 2 * (216 - 36));
}

static const struct cm_frame *const frames[] = {
    &CM_FRAME_REQ,      &CM_FRAME_REP,      &CM_FRAME_RTU, &CM_FRAME_DREQ,      &CM_FRAME_DREP,
    &CM_FRAME_SIDR_REQ, &CM_FRAME_SIDR_REP, &CM_FRAME_REJ, &CM_FRAME_REJ_NOHDR, &CM_FRAME_REQ6};

Test(cm, real_messages_encode_to_the_same_bytes)
{
    uint8_t out[MAD_LEN];
    struct cm_msg m;

    for (unsigned i = 0; i < ARRAY_LEN(frames); i++) {
        decode(frames[i], 400);
        cr_assert(cm_msg_of(&m, &pkt));
        cm_msg_encode(out, &m);
        cr_expect_arr_eq(out, bytes + frames[i]->mad_off, MAD_LEN);
    }
}

/* Of a message cut to `len` bytes, each field is what it was, or 0 if it is not there in full; of private data, each
 * byte counts. */
static void check_cut(const struct cm_msg *whole, const struct cm_msg *cut, unsigned len, unsigned from)
{
    uint8_t a[MAD_LEN], b[MAD_LEN];
    unsigned private_at = MAD_LEN - cm_private_max(whole->mad.attr_id), same = MAD_LEN;

    cm_msg_encode(a, whole);
    cm_msg_encode(b, cut);
    for (unsigned i = MAD_LEN; i-- > 0;)
        if (b[i] != a[i]) {
            cr_assert_eq(b[i], 0, "%u bytes, byte %u", len, i);
            same = i;
        }
    cr_assert_geq(same + 16, min_u32(len - from, private_at), "%u bytes: no field has more than 16", len);
    cr_assert(len - from < private_at || same >= len - from);
    cr_assert(cm_msg_same(whole, cut));
    cr_assert_eq(cut->cut, MAD_LEN - (len - from));
}

Test(cm, of_a_cut_message_the_fields_that_are_there_in_full_are_known)
{
    struct cm_msg whole, m;

    for (unsigned i = 0; i < ARRAY_LEN(frames); i++) {
        unsigned len = cm_frame_bytes(frames[i], bytes), from = frames[i]->mad_off;
        decode(frames[i], len);
        cr_assert(cm_msg_of(&whole, &pkt));
        for (unsigned cut = from; cut < from + MAD_LEN; cut++) {
            decode(frames[i], cut);
            cr_assert_eq(cm_msg_of(&m, &pkt), cut >= from + MAD_HDR_LEN + 8, "the communication ids");
            if (cut >= from + MAD_HDR_LEN + 8)
                check_cut(&whole, &m, cut, from);
        }
    }
    decode(&CM_FRAME_REQ, CM_FRAME_REQ.mad_off + MAD_HDR_LEN + 35);
    cr_assert(cm_msg_of(&m, &pkt));
    cr_expect(CM_HAS(&m, req, qpn));
    cr_expect_eq(m.req.qpn, 0x11);
    cr_expect_not(CM_HAS(&m, req, resp_res));
    decode(&CM_FRAME_REQ, CM_FRAME_REQ.mad_off + MAD_HDR_LEN + 34);
    cr_assert(cm_msg_of(&m, &pkt));
    cr_expect_not(CM_HAS(&m, req, qpn));
    cr_expect_eq(m.req.qpn, 0);
}

Test(cm, copies_are_compared_as_far_as_both_were_captured)
{
    struct cm_msg whole, m;

    decode(&CM_FRAME_REQ, 400);
    cr_assert(cm_msg_of(&whole, &pkt));
    decode(&CM_FRAME_REQ, CM_FRAME_REQ.mad_off + MAD_HDR_LEN + 60);
    cr_assert(cm_msg_of(&m, &pkt));
    whole.req.private_data[50]++;
    cr_expect(cm_msg_same(&whole, &m));
    cr_expect(cm_msg_same(&m, &whole));
    m.req.psn++;
    cr_expect_not(cm_msg_same(&whole, &m));
}

Test(cm, a_cut_message_shows_what_is_there_and_is_not_malformed)
{
    for (unsigned i = 0; i < ARRAY_LEN(frames); i++) {
        unsigned len = cm_frame_bytes(frames[i], bytes);
        for (unsigned cut = frames[i]->mad_off; cut < len - 4; cut++) {
            decode(frames[i], cut);
            info();
            cr_assert(pkt.flags & PKT_CUT, "%u bytes", cut);
            cr_assert_not(pkt.flags & PKT_MALFORMED, "%u bytes", cut);
        }
    }
    decode(&CM_FRAME_REQ, CM_FRAME_REQ.mad_off + 40);
    cr_expect_str_eq(printed("infiniband.cm.req"), "0xca69ce4a");
    cr_expect_str_eq(printed("infiniband.cm.req.localqpn"), "");
    cr_expect(strstr(info(), "CM REQ local comm id 0xca69ce4a QPN not captured"), "%s", info());
}

/* Turn the captured REJ into one with `reason` and `n` bytes of additional information, and decode it. */
static void decode_rej(unsigned reason, const uint8_t *ari, unsigned n)
{
    static const struct decode_opts opts = {0};
    uint8_t *body = bytes + CM_FRAME_REJ.mad_off + MAD_HDR_LEN;

    decode(&CM_FRAME_REJ, 400);
    body[9] = (uint8_t)(n << 1);
    store_be16(body + 10, (uint16_t)reason);
    memcpy(body + 12, ari, n);
    pkt_decode(&pkt, &frame, &opts);
}

Test(cm, additional_reject_information_is_read_by_its_reason)
{
    static const uint8_t gid[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1};
    uint8_t cpi[72] = {[8] = 0xfe,  [9] = 0x80,  [23] = 7, [28] = 0,    [29] = 5,
                       [30] = 0xff, [31] = 0xff, [35] = 1, [36] = 0x80, [37] = 1};

    decode_rej(CM_REJ_INVALID_GID, gid, 16);
    cr_expect_str_eq(printed("rdma.cm.rej.ari.gid"), "::ffff:10.0.0.1");
    decode_rej(CM_REJ_INVALID_GID, gid, 15);
    cr_expect_str_eq(printed("rdma.cm.rej.ari.gid"), "", "too short for a GID");
    decode_rej(CM_REJ_CONSUMER_DEFINED, gid, 16);
    cr_expect_str_eq(printed("rdma.cm.rej.ari.gid"), "", "this reason defines nothing");
    decode_rej(CM_REJ_INVALID_MTU, (const uint8_t[]){3}, 1);
    cr_expect_str_eq(meaning("rdma.cm.rej.ari.mtu"), "1024 (0x03)");
    decode_rej(CM_REJ_INSUFFICIENT_RESP_RESOURCES, (const uint8_t[]){16}, 1);
    cr_expect_str_eq(printed("rdma.cm.rej.ari.responderres"), "16");
    decode_rej(CM_REJ_PORT_CM_REDIRECT, cpi, 72);
    cr_expect_str_eq(printed("rdma.cm.rej.ari.redirect.gid"), "fe80::7");
    cr_expect_str_eq(printed("rdma.cm.rej.ari.redirect.lid"), "5");
    cr_expect_str_eq(printed("rdma.cm.rej.ari.redirect.pkey"), "0xffff");
    cr_expect_str_eq(printed("rdma.cm.rej.ari.redirect.qp"), "0x000001");
    cr_expect_str_eq(printed("rdma.cm.rej.ari.redirect.qkey"), "0x80010000");
}

Test(cm, every_reason_to_reject_has_a_name)
{
    for (unsigned r = 1; r <= 35; r++)
        cr_expect_eq(cm_rej_reason_str(r) != NULL, r != 34, "%u", r);
    cr_expect_null(cm_rej_reason_str(0));
    cr_expect_null(cm_rej_reason_str(36));
}

Test(cm, vendor_id_of_enhanced_establishment_is_put_together)
{
    static const struct decode_opts opts = {0};
    struct cm_msg m;

    decode(&CM_FRAME_REP, 400);
    bytes[CM_FRAME_REP.mad_off + MAD_HDR_LEN + 15] = 0x12;
    bytes[CM_FRAME_REP.mad_off + MAD_HDR_LEN + 19] = 0x34;
    bytes[CM_FRAME_REP.mad_off + MAD_HDR_LEN + 23] = 0x56;
    pkt_decode(&pkt, &frame, &opts);
    cr_expect_str_eq(printed("rdma.cm.rep.vendorid"), "0x123456");
    cr_assert(cm_msg_of(&m, &pkt));
    cr_expect_eq(cm_rep_vendor(&m.rep), 0x123456);
    cr_expect_str_eq(info(), "CM REP local comm id 0xd292e6e0 remote comm id 0xca69ce4a QPN 0x000011 PSN 9905370 "
                             "ECE vendor 0x123456 options 0x00000000");
}
