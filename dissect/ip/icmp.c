/* layer 1 (wire): ICMP (RFC 792) and ICMPv6 (RFC 4443, RFC 4861), and the packets that their errors quote. */
#include "dissect/ip/icmp.h"

#include "dissect/dissectors.h"
#include "dissect/ib/cc_wire.h"
#include "dissect/ip/inner.h"
#include "dissect/ip/ip.h"

enum {
    ICMP_ECHO_REPLY = 0,
    ICMP_SOURCE_QUENCH = 4,
    ICMP_REDIRECT = 5,
    ICMP_ECHO = 8,
    ICMP_EXT_ECHO = 42,
    ICMP_EXT_ECHO_REPLY = 43,
    ICMP_TIME_EXCEEDED = 11,
    ICMP_PARAMETER = 12,
    ICMP6_TIME_EXCEEDED = 3,
    ICMP6_PARAMETER = 4,
    ICMP6_ECHO = 128,
    ICMP6_ECHO_REPLY = 129,
    ICMP6_RS = 133,
    ICMP6_NS = 135,
    ICMP6_NA = 136,
    ICMP6_MLD2_REPORT = 143,
};
#define ICMP_CODE_FRAG_NEEDED 4

static const struct vname icmp_types[] = {
    {ICMP_ECHO_REPLY, "Echo (ping) reply"},
    {ICMP_UNREACHABLE, "Destination unreachable"},
    {ICMP_SOURCE_QUENCH, "Source quench"},
    {ICMP_REDIRECT, "Redirect"},
    {ICMP_ECHO, "Echo (ping) request"},
    {9, "Router advertisement"},
    {10, "Router solicitation"},
    {ICMP_TIME_EXCEEDED, "Time-to-live exceeded"},
    {ICMP_PARAMETER, "Parameter problem"},
    {13, "Timestamp request"},
    {14, "Timestamp reply"},
};
static const struct vdesc icmp_type_desc = VDESC_NAMES(icmp_types);
static const struct vname icmp6_types[] = {
    {ICMP6_UNREACHABLE, "Destination Unreachable"},
    {ICMP6_TOO_BIG, "Packet Too Big"},
    {ICMP6_TIME_EXCEEDED, "Time Exceeded"},
    {ICMP6_PARAMETER, "Parameter Problem"},
    {ICMP6_ECHO, "Echo (ping) request"},
    {ICMP6_ECHO_REPLY, "Echo (ping) reply"},
    {130, "Multicast Listener Query"},
    {131, "Multicast Listener Report"},
    {132, "Multicast Listener Done"},
    {ICMP6_RS, "Router Solicitation"},
    {134, "Router Advertisement"},
    {ICMP6_NS, "Neighbor Solicitation"},
    {ICMP6_NA, "Neighbor Advertisement"},
    {137, "Redirect"},
    {ICMP6_MLD2_REPORT, "Multicast Listener Report Message v2"},
};
static const struct vdesc icmp6_type_desc = VDESC_NAMES(icmp6_types);

/* Names of the codes of each type; the value is type << 8 | code. */
static const struct vname icmp_codes[] = {
    {0x300, "Network unreachable"},
    {0x301, "Host unreachable"},
    {0x302, "Protocol unreachable"},
    {0x303, "Port unreachable"},
    {0x304, "Fragmentation needed"},
    {0x305, "Source route failed"},
    {0x306, "Network unknown"},
    {0x307, "Host unknown"},
    {0x309, "Network administratively prohibited"},
    {0x30a, "Host administratively prohibited"},
    {0x30d, "Communication administratively filtered"},
    {0x500, "Redirect for network"},
    {0x501, "Redirect for host"},
    {0xb00, "Time to live exceeded in transit"},
    {0xb01, "Fragment reassembly time exceeded"},
};
static const struct vname icmp6_codes[] = {
    {0x100, "no route to destination"},
    {0x101, "Administratively prohibited"},
    {0x102, "Beyond scope of source address"},
    {0x103, "Address unreachable"},
    {0x104, "Port unreachable"},
    {0x105, "Source address failed ingress/egress policy"},
    {0x300, "hop limit exceeded in transit"},
    {0x301, "fragment reassembly time exceeded"},
    {0x400, "erroneous header field encountered"},
    {0x401, "unrecognized Next Header type encountered"},
    {0x402, "unrecognized IPv6 option encountered"},
};

#define WHEN_TYPE(name, cond)                                                                                          \
    static bool name(const uint8_t *h, uint32_t len)                                                                   \
    {                                                                                                                  \
        return len >= 8 && (cond);                                                                                     \
    }
WHEN_TYPE(is_echo, h[0] == ICMP_ECHO || h[0] == ICMP_ECHO_REPLY)
WHEN_TYPE(has_ident, is_echo(h, len) || h[0] == ICMP_EXT_ECHO || h[0] == ICMP_EXT_ECHO_REPLY)
WHEN_TYPE(is_frag_needed, h[0] == ICMP_UNREACHABLE && h[1] == ICMP_CODE_FRAG_NEEDED)
WHEN_TYPE(is_unused, (h[0] == ICMP_UNREACHABLE && h[1] != ICMP_CODE_FRAG_NEEDED) || h[0] == ICMP_TIME_EXCEEDED)
WHEN_TYPE(is_redirect, h[0] == ICMP_REDIRECT)
WHEN_TYPE(is_echo6, h[0] == ICMP6_ECHO || h[0] == ICMP6_ECHO_REPLY)
WHEN_TYPE(is_too_big, h[0] == ICMP6_TOO_BIG)
WHEN_TYPE(is_parameter6, h[0] == ICMP6_PARAMETER)
WHEN_TYPE(is_reserved6,
          h[0] == ICMP6_UNREACHABLE || h[0] == ICMP6_TIME_EXCEEDED || h[0] == ICMP6_RS || h[0] == ICMP6_NS)
WHEN_TYPE(is_mld2, h[0] == ICMP6_MLD2_REPORT)
WHEN_TYPE(is_ns, h[0] == ICMP6_NS)
WHEN_TYPE(is_na, h[0] == ICMP6_NA)

/*
 * Header of ICMP and ICMPv6, 8 bytes; the type determines the layout of the last four.
 *   | type (1) | code (1) | checksum (2) | ... (4) |
 */
static const struct field icmp_fields[] = {
    FIELD_ROW(NULL, 0, 8, FT_UINT8, BASE_DEC, &icmp_type_desc, FLD_MEMBER, "icmp.type", "Type", "Kind of message."),
    FIELD_ROW(NULL, 8, 8, FT_UINT8, BASE_DEC, NULL, FLD_MEMBER, "icmp.code", "Code", "Refines the type."),
    FIELD_ROW(NULL, 16, 16, FT_UINT16, BASE_HEX, NULL, FLD_MEMBER, "icmp.checksum", "Checksum", "RFC 1071 sum."),
    FIELD_ROW(has_ident, 32, 16, FT_UINT16, BASE_DEC, NULL, 0, "icmp.ident", "Identifier", "Of the pinging process."),
    FIELD_ROW(has_ident, 32, 16, FT_UINT16, BASE_DEC, NULL, FLD_LE | FLD_HIDDEN, "icmp.ident_le", "Identifier (LE)",
              "Low byte first."),
    FIELD_ROW(is_echo, 48, 16, FT_UINT16, BASE_DEC, NULL, 0, "icmp.seq", "Sequence Number", "Number of the ping."),
    FIELD_ROW(is_echo, 48, 16, FT_UINT16, BASE_DEC, NULL, FLD_LE | FLD_HIDDEN, "icmp.seq_le", "Sequence Number (LE)",
              "Low byte first."),
    FIELD_ROW(is_unused, 32, 32, FT_BYTES, BASE_NONE, NULL, 0, "icmp.unused", "Unused", "Zero."),
    FIELD_ROW(is_frag_needed, 32, 16, FT_BYTES, BASE_NONE, NULL, 0, "icmp.unused", "Unused", "Zero."),
    FIELD_ROW(is_frag_needed, 48, 16, FT_UINT16, BASE_DEC, NULL, 0, "icmp.mtu", "MTU of next hop", "Bytes."),
    FIELD_ROW(is_redirect, 32, 32, FT_IPV4, BASE_NONE, NULL, 0, "icmp.redir_gw", "Gateway Address", "Better gateway."),
};
static const struct field icmp6_fields[] = {
    FIELD_ROW(NULL, 0, 8, FT_UINT8, BASE_DEC, &icmp6_type_desc, FLD_MEMBER, "icmpv6.type", "Type", "Kind of message."),
    FIELD_ROW(NULL, 8, 8, FT_UINT8, BASE_DEC, NULL, FLD_MEMBER, "icmpv6.code", "Code", "Refines the type."),
    FIELD_ROW(NULL, 16, 16, FT_UINT16, BASE_HEX, NULL, FLD_MEMBER, "icmpv6.checksum", "Checksum", "RFC 1071 sum."),
    FIELD_ROW(is_echo6, 32, 16, FT_UINT16, BASE_HEX, NULL, 0, "icmpv6.echo.identifier", "Identifier",
              "Of the pinging process."),
    FIELD_ROW(is_echo6, 48, 16, FT_UINT16, BASE_DEC, NULL, 0, "icmpv6.echo.sequence_number", "Sequence",
              "Number of the ping."),
    FIELD_ROW(is_reserved6, 32, 32, FT_BYTES, BASE_NONE, NULL, 0, "icmpv6.reserved", "Reserved", "Zero."),
    FIELD_ROW(is_mld2, 32, 16, FT_BYTES, BASE_NONE, NULL, 0, "icmpv6.reserved", "Reserved", "Zero."),
    FIELD_ROW(is_mld2, 48, 16, FT_UINT16, BASE_DEC, NULL, 0, "icmpv6.mldr.nb_mcast_records",
              "Number of Multicast Address Records", "Records that follow."),
    FIELD_ROW(is_too_big, 32, 32, FT_UINT32, BASE_DEC, NULL, 0, "icmpv6.mtu", "MTU", "Of the next hop, bytes."),
    FIELD_ROW(is_parameter6, 32, 32, FT_UINT32, BASE_DEC, NULL, 0, "icmpv6.pointer", "Pointer", "Offset of the error."),
    FIELD_ROW(is_ns, 64, 128, FT_IPV6, BASE_NONE, NULL, 0, "icmpv6.nd.ns.target_address", "Target Address",
              "Address looked for."),
    FIELD_ROW(is_na, 32, 32, FT_UINT32, BASE_HEX, NULL, 0, "icmpv6.nd.na.flag", "Flags", "Flags."),
    FIELD_ROW(is_na, 32, 1, FT_BOOL, BASE_NONE, NULL, 0, "icmpv6.nd.na.flag.r", "Router", "The sender is a router."),
    FIELD_ROW(is_na, 33, 1, FT_BOOL, BASE_NONE, NULL, 0, "icmpv6.nd.na.flag.s", "Solicited", "Answers a solicitation."),
    FIELD_ROW(is_na, 34, 1, FT_BOOL, BASE_NONE, NULL, 0, "icmpv6.nd.na.flag.o", "Override", "Replaces what was known."),
    FIELD_ROW(is_na, 64, 128, FT_IPV6, BASE_NONE, NULL, 0, "icmpv6.nd.na.target_address", "Target Address",
              "Address announced."),
};

/* Append the quoted packet, " for 192.168.77.1 > 192.168.77.254 UDP 4791 (RoCEv2)", from the layers after the ICMP
 * header `l`. */
static void quoted_info(struct buf *b, const struct pkt *p, const struct layer *l)
{
    const struct layer *end = p->layers + p->n_layers;
    const uint8_t *h;

    for (l++; l < end; l++) {
        h = p->data + l->off;
        if (l->hdr == &cc_fair_hdr)
            cc_fair_info(b, h);
        if (l->hdr == &ip4_hdr && l->len >= 20) {
            buf_puts(b, " for ");
            buf_ipv4(b, h + 12);
            buf_puts(b, " > ");
            buf_ipv4(b, h + 16);
        } else if (l->hdr == &ip6_hdr && l->len >= 40) {
            buf_puts(b, " for ");
            buf_ipv6(b, h + 8);
            buf_puts(b, " > ");
            buf_ipv6(b, h + 24);
        } else if (l->hdr == &udp_hdr && l->len >= 4) {
            buf_printf(b, " UDP %u%s", load_be16(h + 2), load_be16(h + 2) == UDP_PORT_ROCEV2 ? " (RoCEv2)" : "");
        }
    }
}

static void message_info(struct buf *b, const struct pkt *p, const struct layer *l, const struct vdesc *types,
                         const struct vname *codes, unsigned n)
{
    const uint8_t *h = p->data + l->off;
    const char *code;

    if (l->len < 2)
        return;
    if (!vdesc_print(b, types, h[0]))
        buf_printf(b, "type %u code %u", h[0], h[1]);
    code = vname_find(codes, n, (uint64_t)(h[0] << 8 | h[1]));
    if (code)
        buf_printf(b, " (%s)", code);
    quoted_info(b, p, l);
}
static void icmp_info(struct buf *b, const struct pkt *p, const struct layer *l)
{
    message_info(b, p, l, &icmp_type_desc, icmp_codes, ARRAY_LEN(icmp_codes));
    if (l->len >= 8 && is_echo(p->data + l->off, l->len))
        buf_printf(b, " id=0x%04x, seq=%u", load_be16(p->data + l->off + 4), load_be16(p->data + l->off + 6));
}
static void icmp6_info(struct buf *b, const struct pkt *p, const struct layer *l)
{
    const uint8_t *h = p->data + l->off;

    message_info(b, p, l, &icmp6_type_desc, icmp6_codes, ARRAY_LEN(icmp6_codes));
    if (l->len >= 8 && is_echo6(h, l->len))
        buf_printf(b, " id=0x%04x, seq=%u", load_be16(h + 4), load_be16(h + 6));
    if (l->len >= 24 && (is_ns(h, l->len) || is_na(h, l->len))) {
        buf_puts(b, h[0] == ICMP6_NS ? " for " : " ");
        buf_ipv6(b, h + 8);
    }
}
const struct hdr icmp_hdr = {
    .abbrev = "icmp",
    .name = "Internet Control Message Protocol",
    .proto = "icmp",
    .column = "ICMP",
    .fields = icmp_fields,
    .nfields = ARRAY_LEN(icmp_fields),
    .len = 4,
    .info = icmp_info,
};
const struct hdr icmp6_hdr = {
    .abbrev = "icmpv6",
    .name = "Internet Control Message Protocol v6",
    .proto = "icmpv6",
    .column = "ICMPv6",
    .fields = icmp6_fields,
    .nfields = ARRAY_LEN(icmp6_fields),
    .len = 4,
    .info = icmp6_info,
};

/* Add the layers of the packet that an ICMP error quotes. */
static void quote_decode(struct pkt *p, uint32_t off)
{
    p->flags |= PKT_QUOTED;
    quoted_ip_layers(p, off, min_u32(p->end, p->caplen));
}

bool icmp_is_error(uint8_t type)
{
    return type == ICMP_UNREACHABLE || type == ICMP_TIME_EXCEEDED || type == ICMP_PARAMETER || type == ICMP_REDIRECT ||
           type == ICMP_SOURCE_QUENCH;
}

bool icmp6_is_error(uint8_t type)
{
    return type >= ICMP6_UNREACHABLE && type <= ICMP6_PARAMETER;
}

void icmp_decode(struct pkt *p, uint32_t off)
{
    const uint8_t *q = pkt_header(p, &icmp_hdr, off, 8, "ICMP header");

    if (!q)
        return;
    if (icmp_is_error(q[0]))
        quote_decode(p, off + 8);
    else if (q[0] == CC_FAIR_ICMP && cc_fair_decode(p, off + 8))
        quote_decode(p, off + 8 + CC_FAIR_LEN);
}

void icmp6_decode(struct pkt *p, uint32_t off)
{
    const uint8_t *q = pkt_need(p, off, 8, "ICMPv6 header");
    bool nd = q && (q[0] == ICMP6_NS || q[0] == ICMP6_NA);

    q = pkt_header(p, &icmp6_hdr, off, nd ? 24 : 8, "ICMPv6 header");
    if (!q)
        return;
    if (icmp6_is_error(q[0]))
        quote_decode(p, off + 8);
    else if (q[0] == CC_FAIR_ICMP6 && cc_fair_decode(p, off + 8))
        quote_decode(p, off + 8 + CC_FAIR_LEN);
}
