/* layer 3 (show): packets written without what tells whose they are: only what a field describes remains. */
#include "src/show/anonymize.h"

#include "dissect/ib/ib.h"
#include "dissect/ip/icmp.h"
#include "dissect/ip/ip.h"
#include "dissect/ip/tcp.h"

/* What becomes of the bytes of a field. */
enum treatment {
    TREAT_ZERO,
    TREAT_KEEP,
    TREAT_MARK, /* bytes that ought to be zero: each that is not becomes 0xff */
    TREAT_MAC,
    TREAT_IP4,
    TREAT_IP6,
    TREAT_PREFIX,
    TREAT_EUI64,
    TREAT_IPOIB, /* of IP over InfiniBand (RFC 4391): flags and QPN, 4 bytes, which are kept, and the GID */
    TREAT_KEY,   /* R_Keys */
    TREAT_QKEY,
    TREAT_MKEY, /* keys of management, of 8 bytes */
    TREAT_NAME,
};

/* By type; a type without a row is kept (numbers). */
static const uint8_t treatments[] = {
    [FT_NONE] = TREAT_ZERO,     [FT_BOOL... FT_INT64] = TREAT_KEEP,
    [FT_BYTES] = TREAT_ZERO,    [FT_STRING] = TREAT_NAME,
    [FT_ETHER] = TREAT_MAC,     [FT_IPV4] = TREAT_IP4,
    [FT_IPV6] = TREAT_IP6,      [FT_EUI64] = TREAT_EUI64,
    [FT_ABS_TIME] = TREAT_KEEP, [FT_REL_TIME] = TREAT_KEEP,
    [FT_FRAMENUM] = TREAT_ZERO, [FT_DOUBLE] = TREAT_KEEP,
};

/* Fields whose type, which is Wireshark's, does not say that they are addresses; and bytes that are no payload. */
static const struct special {
    const char *abbrev;
    enum treatment treatment;
} specials[] = {
    {"infiniband.cm.req.alt_localgid", TREAT_IP6},
    {"infiniband.cm.req.alt_remotegid", TREAT_IP6},
    {"infiniband.cm.req.localcaguid", TREAT_EUI64},
    {"infiniband.cm.rep.localcaguid", TREAT_EUI64},
    {"infiniband.nodeinfo.systemimageguid", TREAT_EUI64},
    {"infiniband.nodeinfo.nodeguid", TREAT_EUI64},
    {"infiniband.nodeinfo.portguid", TREAT_EUI64},
    {"infiniband.switchinfo.guid", TREAT_EUI64},
    {"infiniband.sminfo.guid", TREAT_EUI64},
    {"infiniband.trap.systemimageguid", TREAT_EUI64},
    {"infiniband.portinfo.guid", TREAT_PREFIX},
    {"infiniband.tracerecord.gidprefix", TREAT_PREFIX},
    {"infiniband.tracerecord.nodeid", TREAT_EUI64},
    {"infiniband.tracerecord.chassisid", TREAT_EUI64},
    {"infiniband.tracerecord.entryportid", TREAT_EUI64},
    {"infiniband.tracerecord.exitportid", TREAT_EUI64},
    {"arp.src.hw", TREAT_IPOIB},
    {"arp.dst.hw", TREAT_IPOIB},
    {"infiniband.smpdirected.initialpath", TREAT_KEEP},
    {"infiniband.smpdirected.returnpath", TREAT_KEEP},
    {"infiniband.p_keytable.p_keytableblock", TREAT_KEEP},
    {"infiniband.reth.r_key", TREAT_KEY},
    {"rdma.ieth.r_key", TREAT_KEY},
    {"uet.ses.std.mem_key_match_bits", TREAT_MKEY},
    {"uet.ses.med_req.mem_key_match_bits", TREAT_MKEY},
    {"infiniband.deth.q_key", TREAT_QKEY},
    {"infiniband.cm.req.localqkey", TREAT_QKEY},
    {"infiniband.cm.rep.localqkey", TREAT_QKEY},
    {"rdma.cm.rej.ari.redirect.qkey", TREAT_QKEY},
    {"rdma.cm.sidr_rep.qkey", TREAT_QKEY},
    {"infiniband.mcmemberrecord.q_key", TREAT_QKEY},
    {"infiniband.classportinfo.redirectqkey", TREAT_QKEY},
    {"infiniband.classportinfo.trapqkey", TREAT_QKEY},
    {"infiniband.trap.key", TREAT_QKEY},
    {"infiniband.smplid.mkey", TREAT_MKEY},
    {"infiniband.portinfo.m_key", TREAT_MKEY},
    {"infiniband.sminfo.sm_key", TREAT_MKEY},
    {"infiniband.sa.smkey", TREAT_MKEY},
    {"infiniband.trap.mkey", TREAT_MKEY},
    {"rdma.trap.bkey", TREAT_MKEY},
    {"rdma.trap.cckey", TREAT_MKEY},
    {"rdma.cc.cckey", TREAT_MKEY},
    {"rdma.congestionkeyinfo.cckey", TREAT_MKEY},
};

static enum treatment treatment_of(const struct hdr *h, const struct field *f)
{
    if (f->type == FT_BYTES && (h == &cnp_hdr || h == &ib_pad_hdr))
        return TREAT_MARK;
    if (f->type == FT_UINT32 || f->type == FT_UINT64 || f->type == FT_BYTES)
        for (unsigned i = 0; i < ARRAY_LEN(specials); i++)
            if (strcmp(f->abbrev, specials[i].abbrev) == 0)
                return specials[i].treatment;
    return treatments[f->type];
}

/* Bytes of an address; 0: as many as the field has. */
static uint32_t treated_len(enum treatment treatment)
{
    static const uint8_t len[] = {
        [TREAT_MAC] = 6,    [TREAT_IP4] = 4, [TREAT_IP6] = 16, [TREAT_PREFIX] = 8, [TREAT_EUI64] = 8,
        [TREAT_IPOIB] = 20, [TREAT_KEY] = 4, [TREAT_QKEY] = 4, [TREAT_MKEY] = 8,   [TREAT_NAME] = 0};
    return len[treatment];
}

/* Write the `n` bytes at `from`, which are at `to` in the frame that is written. */
static void put(const struct pseudonyms *s, enum treatment treatment, uint8_t *to, const uint8_t *from, uint32_t n)
{
    if (treatment == TREAT_ZERO || n < treated_len(treatment))
        return;
    memcpy(to, from, n);
    switch (treatment) {
    case TREAT_MARK:
        for (uint32_t i = 0; i < n; i++)
            to[i] = to[i] ? 0xff : 0;
        break;
    case TREAT_MAC:
        pseudonym_mac(s, to);
        break;
    case TREAT_IP4:
        pseudonym_ip4(s, to);
        break;
    case TREAT_IP6:
        pseudonym_ip6(s, to);
        break;
    case TREAT_PREFIX:
        pseudonym_prefix(s, to);
        break;
    case TREAT_EUI64:
        pseudonym_eui64(s, to);
        break;
    case TREAT_IPOIB:
        pseudonym_ip6(s, to + 4);
        break;
    case TREAT_KEY:
        pseudonym_key(s, to);
        break;
    case TREAT_QKEY:
        pseudonym_qkey(s, to);
        break;
    case TREAT_MKEY:
        pseudonym_mkey(s, to);
        break;
    case TREAT_NAME:
        pseudonym_name(s, to, n);
        break;
    default:
        break;
    }
}

/* Whether the header has the field. A GID is one even where another row shows the IPv4 address in it. */
static bool has_field(const struct field *f, const struct pkt *p, const struct layer *l)
{
    struct value v;

    return field_value(f, p, l, &v) || (f->flags & FLD_MEMBER && f->type == FT_IPV6);
}

/* A field that a function finds: only addresses, whose bytes are in the frame. */
static void put_found(struct anonymizer *a, const struct pkt *p, const struct layer *l, const struct field *f)
{
    struct value v = {0};
    enum treatment treatment = treatment_of(l->hdr, f);

    if (treatment < TREAT_MAC || treatment == TREAT_NAME || !field_value(f, p, l, &v))
        return;
    if (v.p >= p->data + l->off && v.p < p->data + l->off + l->len && v.len == treated_len(treatment) &&
        v.len <= (size_t)(p->data + l->off + l->len - v.p))
        put(&a->names, treatment, a->data + (v.p - p->data), v.p, v.len);
}

/* Write one field. Numbers only as members of the header: other rows may show bytes of what is not kept. */
static void put_field(struct anonymizer *a, const struct pkt *p, const struct layer *l, const struct field *f)
{
    enum treatment treatment = treatment_of(l->hdr, f);
    const uint8_t *from = p->data + l->off;
    uint8_t *to = a->data + l->off;
    uint32_t first = f->bit / 8, end = f->width ? (f->bit + f->width + 7u) / 8 : l->len;

    if (f->get) {
        put_found(a, p, l, f);
        return;
    }
    if (treatment == TREAT_ZERO || end > l->len || first >= end || !has_field(f, p, l))
        return;
    if (treatment == TREAT_KEEP && f->width && f->width <= 64) {
        if (f->flags & FLD_MEMBER)
            bits_put(to, f->bit, f->width, bits_get(from, f->bit, f->width));
    } else if (f->bit % 8 == 0) {
        put(&a->names, treatment, to + first, from + first, end - first);
    }
}

/* Write a header: numbers first, then what is replaced, since rows may show parts of an address. */
static void put_layer(struct anonymizer *a, const struct pkt *p, struct layer l)
{
    if (l.off >= p->frame->caplen)
        return;
    l.len = min_u32(l.len, p->frame->caplen - l.off);
    for (unsigned pass = 0; pass < 2; pass++)
        for (unsigned i = 0; i < l.hdr->nfields; i++) {
            const struct field *f = &l.hdr->fields[i];
            if (!(f->flags & FLD_HIDDEN) && (treatment_of(l.hdr, f) > TREAT_KEEP) == pass)
                put_field(a, p, &l, f);
        }
}

/* Sum of the 16-bit words, folded. */
static uint16_t sum16(uint64_t sum, const uint8_t *p, uint32_t n)
{
    for (; n > 1; p += 2, n -= 2)
        sum += load_be16(p);
    if (n)
        sum += (uint64_t)*p << 8;
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)sum;
}

/* What a checksum covers: `len` bytes at `off`, and the sum of a pseudo header. */
struct covered {
    uint32_t at;       /* offset of the checksum */
    uint32_t off, len; /* the bytes; cut: fewer are there */
    const struct layer *ip;
    uint8_t proto; /* of the pseudo header; 0: there is none */
    bool cut;
};

/* Offset behind the IP header `ip` and its datagram. */
static uint32_t ip_end(const struct layer *ip, const uint8_t *d)
{
    return ip->hdr == &ip4_hdr ? ip->off + load_be16(d + ip->off + 2) : ip->off + IP6_LEN + load_be16(d + ip->off + 4);
}

/* Headers with a checksum: its place, the number of the protocol in the pseudo header (0: none with IPv4). */
static const struct summed {
    const struct hdr *hdr;
    uint8_t at, proto;
    bool pseudo;
} summed[] = {{&ip4_hdr, 10, 0, false},
              {&udp_hdr, 6, 17, true},
              {&tcp_hdr, 16, 6, true},
              {&icmp_hdr, 2, 1, false},
              {&icmp6_hdr, 2, 58, true}};

/* What the checksum of layer `i` covers. False: the layer has none. */
static bool covers(const struct pkt *p, unsigned i, struct covered *c)
{
    const struct layer *l = &p->layers[i], *ip = l;
    const uint8_t *d = p->data;
    uint32_t end, caplen = p->frame->caplen;
    unsigned k = 0;

    while (k < ARRAY_LEN(summed) && summed[k].hdr != l->hdr)
        k++;
    if (k == ARRAY_LEN(summed) || l->off > caplen || caplen - l->off < summed[k].at + 2u)
        return false;
    while (ip > p->layers && ip->hdr != &ip4_hdr && ip->hdr != &ip6_hdr)
        ip--;
    if (ip == p->layers || ip->off > caplen || caplen - ip->off < (ip->hdr == &ip4_hdr ? IP4_LEN : IP6_LEN))
        return false;
    end = l->hdr == &ip4_hdr   ? l->off + 4u * (d[l->off] & 15)
          : l->hdr == &udp_hdr ? l->off + load_be16(d + l->off + 4)
                               : ip_end(ip, d);
    *c = (struct covered){.at = l->off + summed[k].at,
                          .off = l->off,
                          .ip = ip,
                          .proto = summed[k].pseudo ? summed[k].proto : 0,
                          .cut = end > caplen};
    end = min_u32(end, caplen);
    c->len = end > c->at + 2 ? end - c->off : c->at + 2 - c->off;
    return true;
}

/* The sum over what `c` covers in the frame at `d`; 0xffff: the checksum is right. */
static uint16_t covered_sum(const struct covered *c, const uint8_t *d)
{
    uint32_t v4 = c->ip->hdr == &ip4_hdr, from = c->ip->off + (v4 ? 12 : 8);
    uint64_t sum = c->proto ? sum16((uint64_t)c->proto + c->len, d + from, v4 ? 8 : 32) : 0;

    return sum16(sum, d + c->off, c->len);
}

/* Correct the checksum of layer `i`; one that was wrong becomes another wrong one. 0 of UDP is none. */
static void put_sum(struct anonymizer *a, const struct pkt *p, unsigned i)
{
    bool udp = p->layers[i].hdr == &udp_hdr;
    struct covered c;
    uint16_t sum;

    if (!covers(p, i, &c) || (udp && load_be16(p->data + c.at) == 0))
        return;
    bits_put(a->data + c.at, 0, 16, 0);
    sum = (uint16_t)~covered_sum(&c, a->data);
    if (!c.cut && covered_sum(&c, p->data) != 0xffff)
        sum ^= sum == 1 ? 2 : 1;
    bits_put(a->data + c.at, 0, 16, udp && sum == 0 ? 0xffff : sum);
}

/* The ICRC and the VCRC, which covers it, as calculated over the frame that is written, if they were right. */
static void put_crcs(struct anonymizer *a, const struct pkt *p, const struct decode_opts *opts, const struct frame *out)
{
    const struct pkt *q = &a->packet;
    uint32_t end = p->frame->caplen;

    if (!(p->have & H_BTH) || p->icrc_off > end || end - p->icrc_off < 4)
        return;
    if (p->icrc != CRC_ABSENT) {
        pkt_decode(&a->packet, out, opts);
        if (p->icrc == CRC_UNKNOWN || (q->icrc != CRC_GOOD && q->icrc != CRC_BAD))
            bits_put(a->data + p->icrc_off, 0, 32, 0);
        else if (p->icrc == CRC_GOOD)
            bits_put(a->data + p->icrc_off, 0, 32, q->icrc_want);
        else /* an ICRC that was not inserted yet remains zero */
            bits_put(a->data + p->icrc_off, 0, 32, p->icrc_got || !q->icrc_want ? q->icrc_want ^ 1 : 0);
    }
    if ((p->vcrc == CRC_GOOD || p->vcrc == CRC_BAD) && end - p->icrc_off >= 6) {
        pkt_decode(&a->packet, out, opts);
        if (q->vcrc == CRC_GOOD || q->vcrc == CRC_BAD)
            bits_put(a->data + p->icrc_off + 4, 0, 16, q->vcrc_want ^ (p->vcrc == CRC_BAD));
    }
}

/* Layers up to the BTH, with it: the ICRC covers the checksums behind it, and those before it cover the ICRC. */
static unsigned outer_layers(const struct pkt *p)
{
    unsigned n = 0;

    while (n < p->n_layers && p->layers[n].hdr != &bth_hdr)
        n++;
    return n < p->n_layers && !(p->flags & PKT_QUOTED) ? n + 1 : p->n_layers;
}

void anonymize(struct anonymizer *a, const struct pkt *p, const struct decode_opts *opts, struct frame *out)
{
    const unsigned outer = outer_layers(p);

    *out = *p->frame;
    out->data = a->data;
    out->comment = NULL;
    out->options = NULL;
    out->comment_len = out->options_len = 0;
    memset(a->data, 0, out->caplen);
    for (unsigned i = 1; i < p->n_layers; i++)
        put_layer(a, p, p->layers[i]);
    for (unsigned i = p->n_layers; i-- > outer;)
        put_sum(a, p, i);
    put_crcs(a, p, opts, out);
    anonymize_iwarp(&a->streams, &a->names, p, a->data);
    for (unsigned i = outer; i-- > 1;)
        put_sum(a, p, i);
}

const char *anonymize_icrc_comment(struct buf *b, const struct pkt *p)
{
    if (!(p->have & H_BTH) || p->flags & PKT_QUOTED || p->icrc == CRC_GOOD)
        return NULL;
    if (p->icrc == CRC_BAD)
        return p->icrc_got ? "ICRC was wrong" : "ICRC was wrong: zero, as if not inserted yet";
    if (p->icrc == CRC_ABSENT)
        return "ICRC was not there";
    b->len = 0;
    buf_printf(b, "ICRC was not verified%s%s", p->unverified ? ": " : "", p->unverified ? p->unverified : "");
    return buf_str(b);
}
