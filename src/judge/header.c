/* layer 3 (judge): rules about the headers of one packet, and about datagrams. */
#include "dissect/ib/cc_wire.h"
#include "dissect/ip/ip.h"
#include "dissect/link/eth.h"
#include "src/judge/judge_impl.h"

static bool is_multicast(const struct pkt *p)
{
    return p->addr_len == 4 ? p->dst[0] >> 4 == 0xe : p->addr_len == 16 && p->dst[0] == 0xff;
}

/* --- IP, UDP ---------------------------------------------------------------------------------- */

static void check_ip4(struct judge *j, const struct pkt *p)
{
    const uint8_t *q = p->data + p->ip_off;
    uint32_t ihl = (q[0] & 15) * 4u;

    if (!(p->have & H_IP4))
        return;
    if (UNLIKELY(ihl != 20))
        judge_bad(j, p, RULE_FMT_08, "a header of 20 bytes", count_str(ihl, "byte"),
                  "RoCEv2 packets carry no IPv4 options.");
    if (UNLIKELY(load_be16(q + 6) & 0x3fff))
        judge_bad_as(j, p,
                     (struct found){RULE_FMT_08, .wrong = "the packet is a fragment", .expected = "a whole datagram",
                                    .seen = "a fragment",
                                    .text = "RoCEv2 packets are not fragmented; their receiver drops fragments."});
    else if (UNLIKELY(!(q[6] & 0x40)))
        judge_bad_as(j, p,
                     (struct found){RULE_FMT_08, SEV_W,
                                    .wrong = "the packet may be fragmented: don't-fragment is clear",
                                    .expected = "don't-fragment set", .seen = "clear",
                                    .text = "A router on the way might fragment the packet, and its receiver would "
                                            "drop the pieces."});
}

/* Length of the UDP datagram according to the IP header. */
static uint32_t ip_payload(const struct pkt *p)
{
    const uint8_t *q = p->data + p->ip_off;
    uint32_t headers = p->udp_off - p->ip_off;

    return p->have & H_IP4 ? load_be16(q + 2) - headers : load_be16(q + 4) - (headers - 40);
}

bool judge_lengths_differ(const struct pkt *p)
{
    return p->have & H_UDP && ip_payload(p) != load_be16(p->data + p->udp_off + 4);
}

static void check_lengths(struct judge *j, const struct pkt *p)
{
    if (UNLIKELY(judge_lengths_differ(p)))
        judge_bad(j, p, RULE_FMT_07, say(j, "UDP length %u", ip_payload(p)),
                  say(j, "%u", load_be16(p->data + p->udp_off + 4)),
                  "The IP packet and the UDP datagram in it differ in length.");
}

void judge_lengths(struct judge *j, const struct pkt *p)
{
    if (!(p->flags & PKT_FRAGMENT))
        check_lengths(j, p);
}

/* True if the address is a multicast, broadcast or unspecified address. */
static bool is_no_source(const uint8_t *a, unsigned len)
{
    static const uint8_t zero[16];

    return (len == 4 ? a[0] >= 0xe0 && (a[0] < 0xf0 || load_be32(a) == UINT32_MAX) : a[0] == 0xff) ||
           memcmp(a, zero, len) == 0;
}

bool judge_is_of_no_end(const struct pkt *p)
{
    bool nobody = p->addr_len && (is_multicast(p) || is_no_source(p->src, p->addr_len));

    return p->bth.opcode >> 5 != SVC_UD && (judge_is_special(p->bth.dqpn) || nobody);
}

static void check_addresses(struct judge *j, const struct pkt *p)
{
    bool mac = p->have & H_ETH && !(p->flags & PKT_TUNNEL) && p->frame->linktype == LINK_ETHERNET;

    if (UNLIKELY(p->ttl == 0))
        judge_warn(j, p, RULE_FMT_21, "TTL above 0", "TTL 0", "The next router drops the packet.");
    if (UNLIKELY(is_no_source(p->src, p->addr_len)))
        judge_warn(j, p, RULE_FMT_21, "the address of a host", "a source address that is none",
                   "Nobody has this address, and nobody can answer it.");
    if (UNLIKELY(is_multicast(p) && judge_is_of_no_end(p) && p->op->name && p->bth.dqpn != 0xffffff))
        judge_warn(j, p, RULE_FMT_21, "the address of a host", "the destination address of a group",
                   "A connection has two ends: no queue pair of one takes packets for a group.");
    if (UNLIKELY(mac && p->data[6] & 1))
        judge_warn(j, p, RULE_FMT_21, "the MAC address of a station", "the source MAC address of a group",
                   "Switches and adapters drop a frame that comes from a group.");
    if (UNLIKELY(mac && p->data[0] & 1 && !is_multicast(p)))
        judge_warn(j, p, RULE_FMT_21, "the MAC address of a station", "the destination MAC address of a group",
                   "The packet is for one host, and every host of the subnet gets it.");
}

/* The packet is one that its receiver has to discard: what it answers afterwards is as if the packet were not there. */
static void is_discarded(struct judge *j, const struct pkt *p)
{
    uint32_t flow = conn_flow_find(j->conns, p), peer = flow == FLOW_NONE ? FLOW_NONE : j->flow[flow].peer;

    j->last_unreadable = p->frame->number;
    if (flow != FLOW_NONE)
        j->flows[flow].lacking = true;
    if (peer != FLOW_NONE)
        j->flows[peer].lacking = true;
}

/* Adapters and captures may leave the checksum of the IPv4 header to hardware: it is wrong if the sender's others are
 * right, as captured. */
static void check_ip4_sum(struct judge *j, const struct pkt *p)
{
    struct conn_addr src, dst;
    const uint8_t *q = p->data + p->ip_off;
    uint32_t tap = conn_tap_of(p->frame);

    if (!(p->have & H_IP4))
        return;
    conn_addr_of(p, &src, &dst);
    if (LIKELY(!ip4_sum_wrong(p))) {
        judge_ip_sum_right(j, tap, &src, &dst);
    } else if (load_be16(q + 10) && judge_has_ip_sums(j, tap, &src, &dst)) {
        is_discarded(j, p);
        judge_bad_as(j, p,
                     (struct found){RULE_FMT_09, SEV_W, .wrong = "wrong checksum {seen} of the IPv4 header",
                                    .expected = "a right checksum", .seen = say(j, "0x%04x", load_be16(q + 10)),
                                    .text = "Those of other packets of its sender are right. Routers and hosts have to "
                                            "discard the packet."});
    } else {
        judge_note_as(j, RULE_FMT_09, conn_flow_find(j->conns, p), p->frame->number,
                      "the checksum of the IPv4 header is {seen}, which is wrong", say(j, "0x%04x", load_be16(q + 10)),
                      "No packet of its sender before has a right one, or it is 0: the capture was taken before the "
                      "adapter computed it (checksum offload), or headers were rewritten.");
    }
}

static void check_udp(struct judge *j, const struct pkt *p)
{
    const uint8_t *q = p->data + p->udp_off;
    uint32_t sum = load_be16(q + 6);

    if (UNLIKELY(p->dport != UDP_PORT_ROCEV2))
        judge_warn(j, p, RULE_FMT_09, "UDP port 4791", say(j, "%u", p->dport), "This is not the port of RoCEv2.");
    if (LIKELY(!sum || !udp_sum_wrong(p)))
        return;
    if (udp_sum_is_partial(p))
        judge_note(j, RULE_FMT_09, conn_flow_find(j->conns, p), p->frame->number, say(j, "0x%04x", sum),
                   "This UDP checksum is partial, the sum of the pseudo header alone: the capture was taken before the "
                   "sender's adapter computed it (checksum offload).");
    else
        judge_bad_as(j, p,
                     (struct found){RULE_FMT_09, SEV_W, .wrong = "wrong UDP checksum {seen}",
                                    .expected = "checksum 0, or a right one", .seen = say(j, "0x%04x", sum),
                                    .text = "A receiver whose IP stack verifies checksums drops the packet."});
}

/* --- Link layers of InfiniBand ---------------------------------------------------------------- */

static void check_grh(struct judge *j, const struct pkt *p)
{
    if (p->have & H_GRH && p->grh.ipver != 6)
        judge_bad_as(j, p,
                     (struct found){RULE_FMT_18, .wrong = "the GRH has IP version {seen}, expected {expected}",
                                    .expected = "IP version 6", .seen = say(j, "%u", p->grh.ipver),
                                    .text = "A GRH is laid out as an IPv6 header."});
    if (p->have & H_GRH && p->ip_off + 40u + p->grh.paylen != p->end)
        judge_bad_as(j, p,
                     (struct found){RULE_FMT_18, .wrong = "the GRH has payload length {seen}, expected {expected}",
                                    .expected = say(j, "payload length %u", p->end - p->ip_off - 40),
                                    .seen = say(j, "%u", p->grh.paylen),
                                    .text = "The GRH's payload reaches from behind it to the end of the ICRC."});
}

static void check_lrh(struct judge *j, const struct pkt *p)
{
    struct found f = {RULE_FMT_19};

    if (!(p->have & H_LRH))
        return;
    if (p->lrh.lver) {
        f.wrong = "the LRH has link version {seen}, expected {expected}";
        f.expected = "link version 0";
        f.seen = say(j, "%u", p->lrh.lver);
        f.text = "There is one version of the link layer only.";
        judge_bad_as(j, p, f);
    }
    if ((p->lrh.lnh == 3) != !!(p->have & H_GRH)) {
        f.wrong = "the LRH has next header {seen}, expected {expected}";
        f.expected = "a next header that is there";
        f.seen = say(j, "%u", p->lrh.lnh);
        f.text = "The LRH says whether a GRH follows.";
        judge_bad_as(j, p, f);
    }
    if (p->lrh.vl == 15 && p->bth.dqpn != 0) {
        f.wrong = "virtual lane 15 carries a packet for {seen}, expected {expected}";
        f.expected = "QP 0";
        f.seen = say(j, "QP 0x%x", p->bth.dqpn);
        f.text = "Virtual lane 15 is for subnet management only.";
        judge_bad_as(j, p, f);
    }
    if (p->vcrc == CRC_BAD) {
        f.wrong = "wrong VCRC {seen}, expected {expected}";
        f.expected = say(j, "VCRC 0x%04x", p->vcrc_want);
        f.seen = say(j, "0x%04x", p->vcrc_got);
        f.text = "The packet was damaged on this link.";
        judge_bad_as(j, p, f);
    }
}

/* --- BTH -------------------------------------------------------------------------------------- */

static uint32_t reserved_bits(const struct pkt *p)
{
    uint32_t r = p->bth.resv6 | p->bth.resv7;

    if (UNLIKELY(p->have & (H_DETH | H_RDETH | H_XRCETH | H_FETH))) {
        r |= p->have & H_DETH ? p->deth.resv : 0;
        r |= p->have & H_RDETH ? p->rdeth.resv : 0;
        r |= p->have & H_XRCETH ? p->xrceth.resv : 0;
        r |= p->have & H_FETH ? p->feth.resv : 0;
    }
    return r;
}

static bool pad_is_zero(const struct pkt *p)
{
    for (uint32_t i = p->icrc_off - p->bth.padcnt; i < p->icrc_off && i < p->caplen; i++)
        if (p->data[i])
            return false;
    return true;
}

static void check_pad(struct judge *j, const struct pkt *p)
{
    unsigned pad = p->bth.padcnt;

    if (UNLIKELY((p->payload_len + pad) & 3))
        judge_bad(j, p, RULE_FMT_05,
                  say(j, "pad count %u for %s", -p->payload_len & 3, count_str(p->payload_len, "byte")),
                  say(j, "%u", pad), "Payload and pad must fill a multiple of 4 bytes.");
    else if (UNLIKELY(pad && p->op->flags & (OPF_FIRST | OPF_MIDDLE)))
        judge_bad(j, p, RULE_FMT_05, "pad count 0", say(j, "%u", pad),
                  "First and Middle packets are full and need no pad.");
    else if (UNLIKELY(pad && !pad_is_zero(p)))
        judge_bad_as(j, p,
                     (struct found){RULE_FMT_05, SEV_W, .wrong = "pad bytes are not zero", .expected = "pad bytes of 0",
                                    .seen = "others", .text = "The bytes that fill the payload up are not zero."});
}

static void check_version(struct judge *j, const struct pkt *p)
{
    if (UNLIKELY(p->bth.tver))
        judge_bad(j, p, RULE_FMT_02, "transport version 0", say(j, "%u", p->bth.tver),
                  "The receiver drops the packet.");
}

static void check_opcode(struct judge *j, const struct pkt *p)
{
    struct cc_quota ours;

    if (LIKELY(p->op->name) || cc_quota_of(&ours, p))
        return;
    if (opcode_is_manufacturers(p->bth.opcode))
        judge_note_as(j, RULE_FMT_03, FLOW_NONE, p->frame->number, "manufacturer specific {seen}",
                      say(j, "opcode 0x%02x", p->bth.opcode), "A manufacturer's own opcode.");
    else
        judge_bad(j, p, RULE_FMT_03, "a defined opcode", say(j, "0x%02x", p->bth.opcode),
                  "No such opcode exists; the receiver drops the packet.");
}

static void check_reserved(struct judge *j, const struct pkt *p)
{
    bool own = opcode_is_manufacturers(p->bth.opcode) && !p->op->name; /* a manufacturer may use them */

    if (UNLIKELY(reserved_bits(p) && !own))
        judge_bad(j, p, RULE_FMT_04, "0", say(j, "0x%x", reserved_bits(p)),
                  "Reserved bits are sent as zero, and ignored when received.");
}

static void check_qpn(struct judge *j, const struct pkt *p)
{
    if (UNLIKELY(p->bth.dqpn == 0 && p->encap != ENCAP_IB))
        judge_bad(j, p, RULE_FMT_14, "another queue pair", "QP 0",
                  "There is no subnet management on RoCE: the receiver drops the packet.");
    if (UNLIKELY(p->bth.dqpn == 0xffffff && !(p->op->ext & H_DETH)))
        judge_bad_as(j, p,
                     (struct found){RULE_FMT_14, .wrong = "a packet for QP 0xffffff is no datagram",
                                    .expected = "a datagram", .seen = "another packet for QP 0xffffff",
                                    .text = "QP 0xffffff stands for the members of a multicast group, which take "
                                            "datagrams only."});
}

static void note_fecn(struct judge *j, const struct pkt *p)
{
    if (UNLIKELY((p->bth.fecn || p->bth.becn) && p->encap == ENCAP_ROCEV2 && !(p->op->flags & OPF_CNP)))
        judge_note(j, RULE_FMT_13, conn_flow_find(j->conns, p), p->frame->number, p->bth.fecn ? "FECN" : "BECN",
                   "RoCEv2 signals congestion in the IP header; these bits are ignored.");
}

static void check_syndrome(struct judge *j, const struct pkt *p)
{
    unsigned s = p->aeth.syndrome;

    if (!(p->have & H_AETH))
        return;
    if (UNLIKELY(s & 0x80 || aeth_is_undefined(p->aeth.syndrome)))
        judge_bad(j, p, RULE_ACK_01, "a defined syndrome", say(j, "0x%02x", s),
                  "The requester cannot tell what the responder means.");
    else if (UNLIKELY(p->op->flags & (OPF_READ_RESP | OPF_ATOMIC_ACK) && aeth_type(p->aeth.syndrome) != AETH_ACK))
        judge_bad_as(
            j, p,
            (struct found){RULE_ACK_01, .wrong = "{expected} has AETH syndrome {seen}", .expected = p->op->name,
                           .seen = say(j, "0x%02x, a NAK", s),
                           .text = "A response that carries data has succeeded. Only an Acknowledge refuses."});
}

/* Only requests may have Solicited Event and AckReq. */
static void check_response_bits(struct judge *j, const struct pkt *p)
{
    if (p->op->flags & OPF_RESPONSE && UNLIKELY(p->bth.se | p->bth.ackreq))
        judge_bad(j, p, RULE_SEQ_14, "neither Solicited Event nor AckReq", p->bth.se ? "Solicited Event" : "AckReq",
                  "Both bits belong to requests.");
}

/* A RETH names bytes from `va` to 2^64 at most. Without data nothing is accessed. */
static void check_range(struct judge *j, const struct pkt *p)
{
    if (p->have & H_RETH && UNLIKELY(reth_wraps(p)))
        judge_bad(j, p, RULE_RDA_14, "a range that ends at 2^64 at most",
                  say(j, "%u bytes at 0x%llx", p->reth.dmalen, (unsigned long long)p->reth.va),
                  "No memory region reaches beyond the last address, so the request cannot succeed.");
}

/* QP 1 takes datagrams of management. */
static void check_gsi_service(struct judge *j, const struct pkt *p)
{
    bool connected = p->op->flags & (OPF_REQUEST | OPF_RESPONSE) && p->bth.opcode >> 5 != SVC_UD;

    if (UNLIKELY(p->bth.dqpn == 1 && connected))
        judge_bad_as(j, p,
                     (struct found){RULE_SVC_02, .has = N_REQ,
                                    .wrong = "{seen} is sent to QP 1, which takes {expected}", .expected = "datagrams",
                                    .seen = p->op->name,
                                    .text = "QP 1 is the general services interface, a datagram queue pair: it drops "
                                            "the packet."});
}

static void check_nak_code(struct judge *j, const struct pkt *p)
{
    if (p->have & H_AETH &&
        UNLIKELY(p->aeth.syndrome == (AETH_NAK << 5 | NAK_INVALID_RD_REQUEST) && p->bth.opcode >> 5 != SVC_RD))
        judge_bad(j, p, RULE_NAK_06, "a NAK code below 4", "4, invalid RD request",
                  "This code belongs to reliable datagrams.");
}

static void check_placement(struct judge *j, const struct pkt *p)
{
    uint32_t flags = p->op->flags;

    if (!(flags & OPF_REQUEST))
        return;
    if (UNLIKELY(flags & OPF_ATOMIC_WRITE && p->payload_len != 8))
        judge_bad_as(j, p,
                     (struct found){RULE_RDA_12, SEV_W,
                                    .wrong = "the ATOMIC WRITE carries {seen} bytes, expected {expected}",
                                    .expected = "8 bytes of payload", .seen = say(j, "%u", p->payload_len),
                                    .text = "An ATOMIC WRITE carries 8 bytes."});
    if (UNLIKELY(flags & OPF_ATOMIC_WRITE && p->have & H_RETH && p->reth.va % 8))
        judge_bad_as(j, p,
                     (struct found){RULE_RDA_12, SEV_W, .wrong = "the ATOMIC WRITE has {seen}, expected {expected}",
                                    .expected = "a multiple of 8",
                                    .seen = say(j, "address 0x%llx", (unsigned long long)p->reth.va),
                                    .text = "The address of an ATOMIC WRITE is a multiple of 8."});
    if (UNLIKELY(p->have & H_FETH && (p->feth.sel > 1 || !(p->feth.plt & 3) || p->feth.plt > 3)))
        judge_bad_as(j, p,
                     (struct found){RULE_RDA_12, SEV_W,
                                    .wrong = "the FLUSH has placement type and selectivity {seen}, expected {expected}",
                                    .expected = "a defined placement type and selectivity",
                                    .seen = say(j, "%u, %u", p->feth.plt, p->feth.sel),
                                    .text = "What the FLUSH is to do is not defined."});
}

/* --- The header rules ------------------------------------------------------------------------- */

/* What its checksum covers. */
#define IP_HEADER                                                                                                      \
    (READS(IP_VERSION) | READS(IP_IHL) | READS(IP_DSCP) | READS(IP_ECN) | READS(IP_LEN) | READS(IP_ID) |               \
     READS(IP_RESV) | READS(IP_DF) | READS(IP_FRAGMENT) | READS(IP_TTL) | READS(IP_PROTO) | READS(IP_SUM) |            \
     READS(IP_SRC) | READS(IP_DST))

/* In the order of their findings. CONTRIBUTING.md says how to add one. */
const struct header_rule header_rules[] = {
    {RULE_FMT_08, READS(IP_IHL) | READS(IP_DF) | READS(IP_FRAGMENT), 0, check_ip4},
    {RULE_FMT_07, READS(IP_IHL) | READS(IP_LEN) | READS(UDP_LEN), READS(IP_LEN) | READS(UDP_LEN), check_lengths},
    /* FMT-09: the fast path takes only packets without a UDP checksum, so no other field is read */
    {RULE_FMT_09, READS(UDP_DPORT) | READS(UDP_SUM), 0, check_udp},
    {RULE_FMT_09, IP_HEADER, IP_HEADER, check_ip4_sum},
    {RULE_FMT_21,
     READS(IP_TTL) | READS(IP_SRC) | READS(IP_DST) | READS(LINK) | READS(BTH_SERVICE) | READS(BTH_OPERATION) |
         READS(BTH_DQPN),
     READS(LINK) | READS(BTH_OPERATION), check_addresses},
    {RULE_FMT_18, READS(LINK), 0, check_grh},
    {RULE_FMT_19, READS(LINK) | READS(BTH_DQPN), 0, check_lrh},
    {RULE_FMT_02, READS(BTH_TVER), 0, check_version},
    {RULE_FMT_03, READS(BTH_SERVICE) | READS(BTH_OPERATION), READS(BTH_OPERATION), check_opcode},
    {RULE_FMT_04, READS(BTH_RESV6) | READS(BTH_RESV7) | READS(EXT), READS(EXT), check_reserved},
    {RULE_FMT_05, READS(BTH_OPERATION) | READS(BTH_PAD) | READS(PAYLOAD),
     READS(BTH_OPERATION) | READS(BTH_PAD) | READS(PAYLOAD), check_pad},
    {RULE_FMT_14, READS(BTH_DQPN) | READS(BTH_SERVICE) | READS(BTH_OPERATION), READS(BTH_OPERATION), check_qpn},
    {RULE_FMT_13, READS(BTH_FECN) | READS(BTH_BECN) | READS(BTH_SERVICE) | READS(BTH_OPERATION), READS(BTH_OPERATION),
     note_fecn},
    {RULE_SEQ_14, READS(BTH_OPERATION) | READS(BTH_SE) | READS(BTH_ACKREQ),
     READS(BTH_OPERATION) | READS(BTH_SE) | READS(BTH_ACKREQ), check_response_bits},
    {RULE_SVC_02, READS(BTH_DQPN) | READS(BTH_SERVICE) | READS(BTH_OPERATION), READS(BTH_OPERATION), check_gsi_service},
    {RULE_RDA_14, READS(EXT), READS(EXT), check_range},
    {RULE_ACK_01, READS(AETH) | READS(BTH_OPERATION), READS(AETH) | READS(BTH_OPERATION), check_syndrome},
    {RULE_NAK_06, READS(AETH) | READS(BTH_SERVICE), READS(AETH), check_nak_code},
    {RULE_RDA_12, READS(BTH_OPERATION) | READS(PAYLOAD) | READS(EXT),
     READS(BTH_OPERATION) | READS(PAYLOAD) | READS(EXT), check_placement},
};
const unsigned n_header_rules = ARRAY_LEN(header_rules);

/* The kinds (ON_*) of a packet with a BTH, which select the rules that apply to it. */
static unsigned applies_to(const struct pkt *p)
{
    unsigned service = p->bth.opcode >> 5, on = ON_BTH | (p->have & H_UDP ? ON_UDP : ON_LINK);

    if (!p->op->name)
        return on; /* what follows the BTH is not known */
    switch (service) {
    case SVC_UD:
        return on | ON_UD | (p->have & H_MAD ? ON_CM : 0);
    case SVC_UC:
        return on | ON_CONN | ON_UC;
    case SVC_XRC:
        return on | ON_CONN | ON_RC | ON_XRC;
    default:
        return on | ON_CONN | ON_RC;
    }
}

void header_applies(struct judge *j, const struct pkt *p)
{
    if (p->icrc != CRC_BAD)
        judge_applies(j, applies_to(p));
}

void judge_headers(struct judge *j, const struct pkt *p)
{
    unsigned on = applies_to(p);

    for (unsigned i = 0; i < j->n_header_rules; i++)
        if (rule_table[j->header_rules[i].rule].applies & on)
            j->header_rules[i].check(j, p);
}

/* --- Datagrams -------------------------------------------------------------------------------- */

static uint64_t qp_key(uint32_t tap, const struct conn_addr *at, uint32_t qpn)
{
    uint64_t key = tap, a[CONN_ADDR_WORDS];

    conn_addr_words(at, a);
    for (unsigned i = 0; i < CONN_ADDR_WORDS; i++)
        key = (key ^ a[i]) * HASH_MULTIPLIER, key ^= key >> 31;
    return (key ^ qpn) * HASH_MULTIPLIER | 1;
}

struct ud_dest *ud_dest_find(struct judge *j, uint32_t tap, const struct conn_addr *dst, uint32_t qpn)
{
    uint64_t key = qp_key(tap, dst, qpn);

    return j->ud[key >> 54].key == key ? &j->ud[key >> 54] : NULL;
}

struct ud_dest *ud_dest(struct judge *j, uint32_t tap, const struct conn_addr *dst, uint32_t qpn)
{
    uint64_t key = qp_key(tap, dst, qpn);

    if (j->ud[key >> 54].key != key)
        j->ud[key >> 54] = (struct ud_dest){.key = key};
    return &j->ud[key >> 54];
}

void judge_ud_source(struct judge *j, const struct pkt *p)
{
    struct conn_addr src, dst;
    uint64_t key;

    conn_addr_of(p, &src, &dst);
    key = qp_key(conn_tap_of(p->frame), &src, p->deth.srcqp);
    j->ud_from_lost |= j->ud_from[key >> 54] && j->ud_from[key >> 54] != key;
    j->ud_from[key >> 54] = key;
}

bool ud_source_seen(const struct judge *j, uint32_t tap, const struct conn_addr *src, uint32_t qpn)
{
    uint64_t key = qp_key(tap, src, qpn);

    return j->ud_from[key >> 54] == key;
}

/* True if the destination MAC address is that of the multicast IP address, or is not known. */
static bool mac_fits(const struct pkt *p)
{
    const uint8_t *mac = p->data, *ip = p->dst;

    if (!(p->have & H_ETH) || p->flags & PKT_TUNNEL || p->frame->linktype != LINK_ETHERNET)
        return true;
    if (p->addr_len == 4)
        return mac[0] == 1 && mac[1] == 0 && mac[2] == 0x5e && mac[3] == (ip[1] & 0x7f) && mac[4] == ip[2] &&
               mac[5] == ip[3];
    return mac[0] == 0x33 && mac[1] == 0x33 && memcmp(mac + 2, ip + 12, 4) == 0;
}

static void check_multicast(struct judge *j, const struct pkt *p)
{
    bool group = is_multicast(p);

    if (UNLIKELY(group != (p->bth.dqpn == 0xffffff) && p->addr_len))
        judge_bad(j, p, RULE_SVC_05, group ? "QP 0xffffff" : "a multicast address", say(j, "QP 0x%06x", p->bth.dqpn),
                  "Datagrams to a group go to QP 0xffffff of a multicast address, and no others do.");
    else if (UNLIKELY(group && !mac_fits(p)))
        judge_bad_as(j, p,
                     (struct found){RULE_SVC_05, .wrong = "the multicast packet has the MAC address of another group",
                                    .expected = "the MAC address of the group", .seen = "another",
                                    .text = "The MAC address of a multicast packet is made from its IP address."});
}

static void check_qkey(struct judge *j, const struct pkt *p)
{
    struct conn_addr src, dst;
    struct ud_dest *d;
    bool back; /* to the Q_Key from which one datagram differed */

    if (p->bth.dqpn == 1) {
        if (UNLIKELY(p->deth.qkey != UINT32_C(0x80010000)))
            judge_bad(j, p, RULE_FMT_16, "Q_Key 0x80010000", say(j, "0x%08x", p->deth.qkey),
                      "QP 1 drops datagrams with another key.");
        return;
    }
    conn_addr_of(p, &src, &dst);
    d = ud_dest(j, conn_tap_of(p->frame), &dst, p->bth.dqpn);
    if (UNLIKELY(p->frame->ts - d->ts > QPN_REUSED_AFTER))
        d->have = d->from_sidr = d->odd = false;
    d->ts = p->frame->ts;
    back = d->odd && d->before == p->deth.qkey;
    if (d->have && UNLIKELY(d->qkey != p->deth.qkey && !back))
        judge_found(
            j, p,
            (struct found){
                .rule = d->from_sidr ? RULE_CM_15 : RULE_FMT_16,
                .severity = SEV_W,
                .flow = FLOW_NONE,
                .has = N_CM,
                .cause = d->frame,
                .wrong = "the datagram has Q_Key {seen}, expected {expected}",
                .expected = say(j, "Q_Key 0x%08x", d->qkey),
                .seen = say(j, "0x%08x", p->deth.qkey),
                .text = d->from_sidr
                            ? "The SIDR_REP named another Q_Key for this queue pair, which drops the datagram."
                            : "Datagrams to this queue pair carried another Q_Key before; one of them is dropped."});
    if (d->from_sidr)
        return;
    d->odd = d->have && d->qkey != p->deth.qkey && !back;
    d->before = d->qkey;
    d->have = true;
    d->qkey = p->deth.qkey;
    d->frame = frame_u32(p);
}

/* The flow of the connected queue pair that a datagram is sent to; FLOW_NONE: it is sent to another queue pair. A
 * connection known from CM counts even before its first packet. */
static uint32_t connected_flow(struct judge *j, const struct pkt *p)
{
    uint32_t flow = conn_flow_find(j->conns, p);
    struct conn_addr src, dst;
    struct steady *s;

    conn_addr_of(p, &src, &dst);
    if (LIKELY(flow != FLOW_NONE || ud_dest(j, conn_tap_of(p->frame), &dst, p->bth.dqpn)->have ||
               !conn_is_known(j->conns, p)))
        return flow;
    flow = conn_flow_unnumbered(j->conns, p);
    s = &j->flows[flow].service;
    *s = (struct steady){.value = SVC_RC, .value_frame = (uint32_t)j->flow[flow].params.rep_frame, .have = true};
    j->flows[flow].psn_checked = true; /* the datagram may have the first PSN of the flow */
    return flow;
}

void judge_ud_flow(struct judge *j, uint32_t flow)
{
    const struct flow *c = &j->flow[flow];
    struct steady *s = &j->flows[flow].service;
    const struct ud_dest *d = ud_dest_find(j, c->tap, &c->dst, c->dqpn);

    if (UNLIKELY(d && d->have && !s->have))
        *s = (struct steady){.value = SVC_UD, .value_frame = d->frame, .have = true};
}

void judge_datagram(struct judge *j, const struct pkt *p)
{
    uint32_t flow;

    if (UNLIKELY(p->payload_len > MTU_MAX))
        judge_bad(j, p, RULE_SVC_01, "at most 4096 bytes", say(j, "%u", p->payload_len),
                  "A datagram is one packet, and no path MTU is larger.");
    check_multicast(j, p);
    judge_ud_source(j, p);
    flow = p->bth.dqpn > 1 ? connected_flow(j, p) : FLOW_NONE;
    if (UNLIKELY(flow != FLOW_NONE))
        judge_service(j, p, flow);
    check_qkey(j, p);
}
