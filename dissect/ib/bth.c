/* layer 1 (wire): InfiniBand packets, from the LRH, GRH or BTH to the ICRC and VCRC. This is the hot path. */
#include "dissect/dissectors.h"
#include "dissect/ib/cc_wire.h"
#include "dissect/ip/ip.h"

#include <stdio.h>

#define ICRC_LEN 4
#define CNP_LEN  16

HDR_TABLE(bth, BTH_FIELDS)

static void bth_info(struct buf *b, const struct pkt *p, const struct layer *l);
const struct hdr bth_hdr = {
    .abbrev = "infiniband.bth",
    .name = "Base Transport Header",
    .proto = "infiniband",
    .fields = bth_fields,
    .nfields = ARRAY_LEN(bth_fields),
    .len = 12,
    .type = FT_BYTES,
    .info = bth_info,
};

/* Append what a switch or the peer should heed: AckReq, FECN, BECN, and the CE mark of the IP header. */
static void bits_info(struct buf *b, const struct pkt *p)
{
    if (p->bth.ackreq)
        buf_mem(b, " AckReq", 7);
    if (p->bth.fecn)
        buf_mem(b, " FECN", 5);
    if (p->bth.becn)
        buf_mem(b, " BECN", 5);
    if (p->addr_len && (p->tos & ECN_CE) == ECN_CE)
        buf_mem(b, " CE", 3);
}

/* Append the extended headers to "RC RDMA WRITE First QP 0x0001b4 PSN 10255594"; aeth_info() appends the AETH. */
static void ext_info(struct buf *b, const struct pkt *p)
{
    if (p->have & H_DETH)
        buf_printf(b, " src QP 0x%06x Q_Key 0x%08x", p->deth.srcqp, p->deth.qkey);
    if (p->have & H_XRCETH)
        buf_printf(b, " SRQ 0x%06x", p->xrceth.srqn);
    if (p->have & H_RETH && buf_need(b, 96)) {
        char *q = FMT_LITERAL(b->p + b->len, " va 0x");
        q = FMT_LITERAL(fmt_hex(q, p->reth.va, 1), " rkey 0x");
        q = FMT_LITERAL(fmt_hex(q, p->reth.rkey, 1), " len ");
        b->len = (size_t)(fmt_dec(q, p->reth.dmalen) - b->p);
    }
    if (p->have & H_ATOMICETH)
        buf_printf(b, " va 0x%llx rkey 0x%x %s %llu", (unsigned long long)p->atomiceth.va, p->atomiceth.rkey,
                   p->bth.opcode % 32 == OP_FETCH_ADD ? "add" : "swap", (unsigned long long)p->atomiceth.swap);
    if (p->have & H_ATOMICETH && p->bth.opcode % 32 == OP_COMPARE_SWAP)
        buf_printf(b, " compare %llu", (unsigned long long)p->atomiceth.cmp);
    if (p->have & H_ATOMICACKETH)
        buf_printf(b, " original %llu", (unsigned long long)p->atomicacketh.orig);
    if (p->have & H_IMMDT)
        buf_printf(b, " imm 0x%08x", p->immdt.data);
    if (p->have & H_IETH)
        buf_printf(b, " inv rkey 0x%x", p->ieth.rkey);
}

static void aeth_info(struct buf *b, const struct aeth *a)
{
    unsigned value = aeth_value(a->syndrome);

    switch (aeth_type(a->syndrome)) {
    case AETH_ACK:
        buf_mem(b, " ACK", 4);
        if (value != AETH_CREDIT_INVALID) {
            buf_mem(b, " credits ", 9);
            buf_dec(b, aeth_credits(value));
        }
        break;
    case AETH_RNR:
        buf_mem(b, " RNR NAK ", 9);
        buf_duration(b, rnr_time(value));
        break;
    case AETH_NAK:
        buf_mem(b, " NAK ", 5);
        buf_puts(b, nak_code_str(value));
        break;
    default:
        buf_printf(b, " reserved syndrome 0x%02x", a->syndrome);
    }
    buf_mem(b, " MSN ", 5);
    buf_dec(b, a->msn);
}

#define OP_TEXT 64 /* bytes of the longest text in op_texts */

/* "RC RDMA WRITE First QP 0x" by opcode, then the same for the 32 opcodes of DC; filled before main(). */
static struct {
    char text[OP_TEXT];
    uint32_t len;
} op_texts[256 + 32];

__attribute__((constructor)) static void op_texts_init(void)
{
    for (unsigned i = 0; i < 256 + 32; i++) {
        const struct opinfo *op = i < 256 ? &opcode_table[i] : &opcode_dc_table[i - 256];
        const char *service = i < 256 ? service_str((enum service)(i >> 5)) : "DC";
        char undefined[32];
        snprintf(undefined, sizeof undefined, "undefined opcode 0x%02x", i & 255);
        op_texts[i].len = (uint32_t)snprintf(op_texts[i].text, sizeof op_texts[i].text, "%s%s%s QP 0x",
                                             i == OPCODE_CNP ? "" : service, i == OPCODE_CNP ? "" : " ",
                                             op->name ? op->name : undefined);
    }
}

static void bth_info(struct buf *b, const struct pkt *p, const struct layer *l)
{
    const struct bth *h = &p->bth;
    unsigned i;
    char *q;

    (void)l;
    if (!(p->have & H_BTH)) {
        buf_puts(b, "BTH");
        return;
    }
    i = p->op >= opcode_dc_table && p->op < opcode_dc_table + 32 ? 256u + (h->opcode & 31) : h->opcode;
    if (!buf_need(b, OP_TEXT + 40))
        return;
    q = (char *)memcpy(b->p + b->len, op_texts[i].text, OP_TEXT) + op_texts[i].len;
    q = FMT_LITERAL(fmt_hex(q, h->dqpn, 6), " PSN ");
    b->len = (size_t)(fmt_dec(q, h->psn) - b->p);
    bits_info(b, p);
    if (p->have & (H_DETH | H_XRCETH | H_RETH | H_ATOMICETH | H_ATOMICACKETH | H_IMMDT | H_IETH))
        ext_info(b, p);
    if (p->have & H_AETH)
        aeth_info(b, &p->aeth);
    if (UNLIKELY(p->flags & PKT_GUESS))
        buf_puts(b, i < 256 ? " [RD by guess]" : " [DC by guess]");
}

/* Decode the extended header `h` (an H_* bit) at `off`, which was captured in full, and add its layer. Returns its
 * length. */
ALWAYS_INLINE uint32_t ext_one(struct pkt *p, uint32_t h, uint32_t off)
{
#define EXT(bit, name, len, arg)                                                                                       \
    case bit:                                                                                                          \
        name##_get(&p->name, p->data + off);                                                                           \
        pkt_layer(p, &name##_hdr, off, len);                                                                           \
        return len;
    switch (h) {
        EXT_HEADERS(EXT, )
    default:
        pkt_layer(p, &dcceth_hdr, off, DCCETH_LEN);
        return DCCETH_LEN;
    }
#undef EXT
}

/* The header description of the extended header `bit` (an H_* bit). */
static const struct hdr *ext_hdr(uint32_t bit)
{
#define EXT(bit, name, len, arg) [__builtin_ctz(bit)] = &name##_hdr,
    static const struct hdr *const hdrs[] = {EXT_HEADERS(EXT, ) EXT(H_DCCETH, dcceth, , )};
#undef EXT
    return hdrs[__builtin_ctz(bit)];
}

void bth_layers(struct pkt *p, uint32_t off)
{
    uint32_t limit = min_u32(p->end, p->caplen), ext;

    if (off >= limit || limit - off < 12)
        return;
    pkt_layer(p, &bth_hdr, off, 12);
    ext = opcode_table[p->data[off]].ext;
    for (off += 12; ext; ext &= ext - 1) {
        uint32_t len = ext_hdr(ext & -ext)->len;
        if (off > limit || limit - off < len)
            return;
        pkt_layer(p, ext_hdr(ext & -ext), off, len);
        off += len;
    }
}

/* Decode the extended headers of a packet that ends within them, as far as they were captured in full. */
static void ext_partial(struct pkt *p, uint32_t off)
{
    for (uint32_t ext = p->op->ext; ext; ext &= ext - 1) {
        uint32_t bit = ext & -ext;
        if (!pkt_header(p, ext_hdr(bit), off, ext_hdr(bit)->len, "extended transport header"))
            return;
        p->n_layers--;
        off += ext_one(p, bit, off);
        p->have |= bit;
    }
}

/* The reserved bytes of a CNP, which has no payload. */
static void cnp_decode(struct pkt *p)
{
    if (p->payload_len != CNP_LEN)
        pkt_malformed(p, p->payload_off, "a CNP has 16 reserved bytes after its BTH");
    if (p->payload_cap)
        pkt_layer(p, &cnp_hdr, p->payload_off, min_u32(p->payload_len, CNP_LEN));
}

/* The MAD in the payload of a datagram to QP 0 or 1. */
static void mad_payload(struct pkt *p)
{
    uint32_t end = p->end;

    p->end = p->payload_off + p->payload_len;
    mad_decode(p);
    p->end = end;
}

/* Decode payload, pad and ICRC: the bytes from p->payload_off to p->end. */
static void payload_decode(struct pkt *p)
{
    uint32_t room = p->end - p->payload_off, tail = UNLIKELY(p->flags & PKT_FRAGMENT) ? 0 : ICRC_LEN + p->bth.padcnt;

    p->icrc_off = tail && room >= ICRC_LEN ? p->end - ICRC_LEN : p->end;
    if (UNLIKELY(room < tail)) {
        p->payload_len = p->payload_cap = 0;
        pkt_malformed(p, p->payload_off, room < ICRC_LEN ? "no room for the ICRC" : "pad count exceeds the payload");
        return;
    }
    p->payload_len = room - tail;
    p->payload_cap = p->caplen > p->payload_off ? min_u32(p->caplen - p->payload_off, p->payload_len) : 0;
    if (p->end > p->caplen)
        p->flags |= PKT_CUT;
    if (p->op->flags & OPF_CNP) {
        cnp_decode(p);
    } else if (p->payload_cap) {
        if (UNLIKELY(p->op->name && !(p->op->flags & OPF_PAYLOAD)))
            pkt_malformed(p, p->payload_off, "bytes after the headers of an opcode that has no payload");
        if (UNLIKELY(p->bth.opcode >> 5 == SVC_UD && p->bth.dqpn <= 1))
            mad_payload(p);
        else if (UNLIKELY(p->bth.opcode >> 5 == SVC_UD && ipoib_layers(p, false)))
            ; /* its layers */
        else if (LIKELY(p->op->name != NULL) || !(mrc_decode(p) || cc_quota_decode(p)))
            pkt_layer(p, &ib_payload_hdr, p->payload_off, p->payload_cap);
    }
    if (p->bth.padcnt && tail && p->icrc_off - p->bth.padcnt < p->caplen)
        pkt_layer(p, &ib_pad_hdr, p->icrc_off - p->bth.padcnt, p->bth.padcnt);
    if (p->icrc_off < min_u32(p->end, p->caplen))
        pkt_layer(p, &icrc_hdr, p->icrc_off, ICRC_LEN);
}

static const struct opinfo *opinfo_of(struct pkt *p, const struct decode_opts *o)
{
    uint8_t opcode = p->bth.opcode;

    if (LIKELY(opcode >> 5 != SVC_RD))
        return &opcode_table[opcode];
    if (o->rd_or_dc == RD_OR_DC_GUESS)
        p->flags |= PKT_GUESS;
    if (o->rd_or_dc == RD_OR_DC_RD || (o->rd_or_dc == RD_OR_DC_GUESS && p->encap == ENCAP_IB))
        return &opcode_table[opcode];
    return &opcode_dc_table[opcode & 31];
}

/* Decode from the BTH at `off` to the ICRC, which ends at p->end. */
ALWAYS_INLINE void bth_decode(struct pkt *p, uint32_t off, const struct decode_opts *o)
{
    const uint8_t *q = pkt_header(p, &bth_hdr, off, 12, "BTH");
    uint32_t limit = min_u32(p->end, p->caplen), ext;

    if (!q)
        return;
    bth_get(&p->bth, q);
    p->have |= H_BTH;
    p->bth_off = off;
    p->op = opinfo_of(p, o);
    p->payload_len = p->payload_cap = 0;
    off += 12;
    p->payload_off = off + p->op->ext_len;
    p->icrc_off = p->end;
    if (LIKELY(p->payload_off <= limit)) {
        for (ext = p->op->ext; ext; ext &= ext - 1)
            off += ext_one(p, ext & -ext, off);
        p->have |= p->op->ext;
    } else {
        ext_partial(p, off);
        if (p->payload_off > p->end) {
            p->payload_off = p->end;
            return;
        }
    }
    if (!o->headers_only)
        payload_decode(p);
}

/* Whether the ICRC was verified before, and is right. */
static bool crc_is_known(struct pkt *p)
{
    if (LIKELY(!p->frame->icrc_good))
        return false;
    p->icrc_got = p->icrc_want = load_be32(p->data + p->icrc_off);
    p->icrc = CRC_GOOD;
    return true;
}

/* True if the ICRC can be verified: it is wanted and all it covers was captured, and it was not verified before. If
 * not, p->unverified tells why. */
static bool crc_possible(struct pkt *p, const struct decode_opts *o)
{
    p->unverified = NULL;
    if (!(p->have & H_BTH))
        p->icrc = CRC_ABSENT;
    else if (!o->verify)
        p->unverified = "not asked for";
    else if (p->flags & PKT_FRAGMENT)
        p->unverified = "IP fragment";
    else if (p->icrc_off + ICRC_LEN > p->end)
        p->unverified = "the packet has no room for it";
    else if (p->icrc_off + ICRC_LEN > p->caplen)
        p->unverified = p->flags & PKT_SHORT ? "cut before the capture" : "cut by the snap length";
    else
        return !crc_is_known(p);
    return false;
}

static void crc_compare(struct pkt *p, uint32_t want)
{
    p->icrc_got = load_be32(p->data + p->icrc_off);
    p->icrc_want = __builtin_bswap32(want);
    p->icrc = p->icrc_got == p->icrc_want ? CRC_GOOD : CRC_BAD;
}

void rocev2_decode(struct pkt *p, uint32_t off, const struct decode_opts *o)
{
    p->encap = ENCAP_ROCEV2;
    p->ib_off = off;
    p->icrc = CRC_UNKNOWN;
    bth_decode(p, off, o);
    if (UNLIKELY(p->caplen >= p->end + CC_INT_LEN) && !o->headers_only)
        cc_int_decode(p);
    if (!crc_possible(p, o))
        return;
    if (p->udp_off - p->ip_off > ICRC_IP_MAX)
        p->unverified = "IP headers too long";
    else
        crc_compare(p, icrc_rocev2(p->data + p->ip_off, p->data + p->udp_off, p->icrc_off - p->udp_off));
}

/* Decode the GRH at `off` and set p->end by its payload length. Returns the offset of the BTH; 0 if the GRH was not
 * captured in full or its next header is not the BTH. */
static uint32_t grh_decode(struct pkt *p, uint32_t off)
{
    const uint8_t *q;
    uint32_t end;

    if (p->encap == ENCAP_ROCEV1)
        pkt_may_end(p, off, 40, "truncated GRH, 40 bytes needed");
    q = pkt_header(p, &grh_hdr, off, 40, "GRH");
    if (!q)
        return 0;
    grh_get(&p->grh, q);
    p->have |= H_GRH;
    p->ip_off = off;
    p->src = q + 8;
    p->dst = q + 24;
    p->addr_len = 16;
    p->tos = p->grh.tclass;
    p->ttl = p->grh.hoplmt;
    end = off + 40 + p->grh.paylen;
    if (end > p->end)
        pkt_short(p, off + 4, end, "GRH payload length exceeds the packet");
    else
        p->end = end;
    if (p->grh.nxthdr != GRH_NXTHDR_BTH) {
        pkt_malformed(p, off + 6, "GRH next header is not 0x1b (BTH)");
        return 0;
    }
    return off + 40;
}

void rocev1_decode(struct pkt *p, uint32_t off, const struct decode_opts *o)
{
    uint32_t bth;

    p->encap = ENCAP_ROCEV1;
    p->ib_off = off;
    p->icrc = CRC_UNKNOWN;
    bth = grh_decode(p, off);
    if (bth)
        bth_decode(p, bth, o);
    if (crc_possible(p, o))
        crc_compare(p, icrc_rocev1(p->data + off, p->icrc_off - off - 40));
}

/* Raw packets: after the LRH follows a raw header with an EtherType (LNH 0) or an IPv6 header (LNH 1). */
static void raw_decode(struct pkt *p, uint32_t off, const struct decode_opts *o)
{
    const uint8_t *q;

    p->icrc = CRC_ABSENT;
    if (p->lrh.lnh == 1) {
        ip_decode(p, off, o);
        return;
    }
    q = pkt_header(p, &rwh_hdr, off, 4, "raw header");
    if (q)
        ethertype_decode(p, off + 4, load_be16(q + 2), o);
}

/* The VCRC, two bytes at `end`, after the packet length that the LRH declares. The LRH is at `off`. */
static void vcrc_decode(struct pkt *p, uint32_t off, uint32_t end, const struct decode_opts *o)
{
    if (end + 2 > p->caplen)
        return;
    pkt_layer(p, &vcrc_hdr, end, 2);
    p->vcrc = CRC_UNKNOWN;
    if (!o->verify)
        return;
    p->vcrc_got = load_be16(p->data + end);
    p->vcrc_want = __builtin_bswap16(vcrc_ib(p->data + off, end - off));
    p->vcrc = p->vcrc_got == p->vcrc_want ? CRC_GOOD : CRC_BAD;
}

void ib_decode(struct pkt *p, uint32_t off, const struct decode_opts *o)
{
    const uint8_t *q;
    uint32_t end, bth = off + 8;
    bool ib_transport;

    p->encap = ENCAP_IB;
    p->ib_off = off;
    q = pkt_header(p, &lrh_hdr, off, 8, "LRH");
    if (!q)
        return;
    lrh_get(&p->lrh, q);
    p->have |= H_LRH;
    end = off + p->lrh.pktlen * 4;
    if (end > p->end || end < bth) {
        pkt_malformed(p, off + 4, "LRH packet length does not fit the packet");
        end = p->end;
    }
    p->end = end;
    p->icrc = CRC_UNKNOWN;
    ib_transport = p->lrh.lnh >= 2;
    if (p->lrh.lnh == 3)
        bth = grh_decode(p, bth);
    if (!ib_transport)
        raw_decode(p, bth, o);
    else if (bth)
        bth_decode(p, bth, o);
    if (ib_transport && crc_possible(p, o))
        crc_compare(p, icrc_ib(p->data + off, p->icrc_off - off, p->lrh.lnh == 3));
    vcrc_decode(p, off, end, o);
}
