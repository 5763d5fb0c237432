/* layer 3 (judge): rules about the headers of one packet, and which header fields each of them reads. */
#ifndef RDMATRACE_JUDGE_HEADER_H
#define RDMATRACE_JUDGE_HEADER_H

#include "src/transport/rules.h"

struct pkt;

struct judge;

/* The headers of a RoCEv2 packet over IPv4 without options, which the fast path compares with those of an earlier
 * packet: X(name, first bit, bits), bits counted from the beginning of the IPv4 header. They tile HEADER_BYTES. */
#define HEADER_BYTES 40
#define HEADER_FIELDS(X)                                                                                               \
    X(IP_VERSION, 0, 4)                                                                                                \
    X(IP_IHL, 4, 4)                                                                                                    \
    X(IP_DSCP, 8, 6)                                                                                                   \
    X(IP_ECN, 14, 2)                                                                                                   \
    X(IP_LEN, 16, 16)                                                                                                  \
    X(IP_ID, 32, 16)                                                                                                   \
    X(IP_RESV, 48, 1)                                                                                                  \
    X(IP_DF, 49, 1)                                                                                                    \
    X(IP_FRAGMENT, 50, 14)                                                                                             \
    X(IP_TTL, 64, 8)                                                                                                   \
    X(IP_PROTO, 72, 8)                                                                                                 \
    X(IP_SUM, 80, 16)                                                                                                  \
    X(IP_SRC, 96, 32)                                                                                                  \
    X(IP_DST, 128, 32)                                                                                                 \
    X(UDP_SPORT, 160, 16)                                                                                              \
    X(UDP_DPORT, 176, 16)                                                                                              \
    X(UDP_LEN, 192, 16)                                                                                                \
    X(UDP_SUM, 208, 16)                                                                                                \
    X(BTH_SERVICE, 224, 3)                                                                                             \
    X(BTH_OPERATION, 227, 5)                                                                                           \
    X(BTH_SE, 232, 1)                                                                                                  \
    X(BTH_MIGREQ, 233, 1)                                                                                              \
    X(BTH_PAD, 234, 2)                                                                                                 \
    X(BTH_TVER, 236, 4)                                                                                                \
    X(BTH_PKEY, 240, 16)                                                                                               \
    X(BTH_FECN, 256, 1)                                                                                                \
    X(BTH_BECN, 257, 1)                                                                                                \
    X(BTH_RESV6, 258, 6)                                                                                               \
    X(BTH_DQPN, 264, 24)                                                                                               \
    X(BTH_ACKREQ, 288, 1)                                                                                              \
    X(BTH_RESV7, 289, 7)                                                                                               \
    X(BTH_PSN, 296, 24)

enum header_field {
#define X(name, bit, bits) FIELD_##name,
    HEADER_FIELDS(X)
#undef X
        HEADER_INSIDE,          /* the fields above; the fields below are outside of HEADER_BYTES */
    FIELD_LINK = HEADER_INSIDE, /* Ethernet, LRH, GRH, VCRC */
    FIELD_EXT,                  /* extension headers after the BTH, except the AETH */
    FIELD_AETH,                 /* AETH syndrome */
    FIELD_PAYLOAD,              /* payload length and pad bytes */
    HEADER_FIELD_COUNT
};
#define READS(name) (UINT64_C(1) << FIELD_##name)

/* A rule about the headers of one packet. The fast path skips the check for a packet whose fields equal those of an
 * earlier packet that broke no rule; it compares every field in `reads` of any rule, except those in `plain`
 * (judge_use_header_rules()). A rule that reads a field from FIELD_LINK on, and does not declare it `plain`, turns
 * the fast path off. */
struct header_rule {
    uint8_t rule;   /* enum rule; rule_table[rule].applies selects the packets that are checked */
    uint64_t reads; /* READS(): all fields that the check reads */
    uint64_t plain; /* the part of `reads` that may differ: is_plain() in fast_path.c ensures that the rule is kept */
    void (*check)(struct judge *j, const struct pkt *p);
};
extern const struct header_rule header_rules[];
extern const unsigned n_header_rules;

/* True if the bytes that the RETH of `p` names reach beyond address 2^64 - 1. */
static inline bool reth_wraps(const struct pkt *p)
{
    return p->reth.dmalen && p->reth.va + (p->reth.dmalen - 1) < p->reth.va;
}
/* The rules that apply to packet `p`, which has a BTH, count as judged from now on. */
void header_applies(struct judge *j, const struct pkt *p);
/* Check every header rule that applies to packet `p`, which has a BTH. */
void judge_headers(struct judge *j, const struct pkt *p);
/* Report the rule that a packet breaks that has a wrong ICRC, or headers that contradict each other or the packet. */
void judge_malformed(struct judge *j, const struct pkt *p);
/* Set the header rules and the fields that the fast path compares; for judge_new() and tests. `rules` is not copied. */
void judge_use_header_rules(struct judge *j, const struct header_rule *rules, unsigned n);

#endif
