/* layer 3 (judge): rules about the headers of one packet, and which bits of the headers each of them reads. */
#ifndef RDMATRACE_JUDGE_HEADER_H
#define RDMATRACE_JUDGE_HEADER_H

#include "dissect/pkt.h"
#include "src/transport/rules.h"

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
        HEADER_INSIDE,          /* the fields above; what follows is not among the bytes compared */
    FIELD_LINK = HEADER_INSIDE, /* Ethernet, LRH, GRH, VCRC */
    FIELD_EXT,                  /* extended headers behind the BTH, but the AETH */
    FIELD_AETH,                 /* its syndrome */
    FIELD_PAYLOAD,              /* how long the payload is, and its pad bytes */
    FIELD_ICRC,                 /* and whether the packet was captured in full */
    HEADER_FIELD_COUNT
};
#define READS(name) (UINT64_C(1) << FIELD_##name)

/* A rule about the headers of one packet. A packet whose fields are those of an earlier one that broke no rule skips
 * the check: all that any rule of packets on the fast path reads is compared (judge_use_header_rules()), but for
 * `plain`. A field outside of the bytes compared that is read and not `plain` turns the fast path off. */
struct header_rule {
    uint8_t rule;   /* enum rule; the check is asked of packets of rule_table[rule].applies */
    uint64_t reads; /* READS(): all fields that the check looks at */
    uint64_t plain; /* those of them that may change: is_plain() of fast_path.c has made sure that the rule is kept */
    void (*check)(struct judge *j, const struct pkt *p);
};
extern const struct header_rule header_rules[];
extern const unsigned n_header_rules;

/* The rules that packet `p`, which has a BTH, lets be judged: they count as judged from now on. */
void header_applies(struct judge *j, const struct pkt *p);
/* Ask every header rule that applies to packet `p`, which has a BTH. */
void judge_headers(struct judge *j, const struct pkt *p);
/* A packet with a wrong ICRC, or whose headers contradict each other or the packet: which rule it breaks. */
void judge_malformed(struct judge *j, const struct pkt *p);
/* Judge headers by these rules: from judge_new(), and for tests. `rules` must stay. */
void judge_use_header_rules(struct judge *j, const struct header_rule *rules, unsigned n);

#endif
