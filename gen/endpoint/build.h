/* layer 3 (endpoint): building frames: from addresses and the headers of a struct pkt to bytes with lengths, pad,
 * checksums, ICRC and VCRC. */
#ifndef RDMATRACE_GEN_ENDPOINT_BUILD_H
#define RDMATRACE_GEN_ENDPOINT_BUILD_H

#include "dissect/ib/ib.h"
#include "gen/verbs/verbs.h"

struct opinfo;
struct pkt;

/* The addresses of an endpoint. */
struct link_addr {
    uint8_t encap;   /* enum encap: ENCAP_ROCEV2, ENCAP_ROCEV1, ENCAP_IB */
    uint8_t mac[6];  /* Ethernet */
    bool has_vlan;   /* every frame carries an 802.1Q tag; its priority is the av's `sl` */
    uint16_t vlan;   /* VLAN id, 0 to 4095 */
    uint8_t gid[16]; /* own address: IPv6, or IPv4-mapped */
    uint16_t lid;    /* native InfiniBand */
};

/* Address number `n`, from 0, of the consecutive ones from `first` on: the last 32 bits of GID and MAC address count.
 */
struct link_addr link_addr_nth(const struct link_addr *first, uint32_t n);

#define PATH_HEAD_MAX 72 /* Ethernet 14, tag 4, IPv6 or GRH 40, UDP 8; or LRH 8, GRH 40 */

/* Headers below the BTH for one destination, prepared once. */
struct path {
    uint8_t head[PATH_HEAD_MAX]; /* bytes as sent, without lengths, IP identification and checksum */
    uint8_t head_len;
    uint8_t encap;      /* enum encap */
    uint8_t net_off;    /* of the IP header or GRH; 0: none (native InfiniBand without GRH) */
    bool ip4;           /* IPv4, else IPv6 or GRH */
    uint32_t ip_sum;    /* IPv4: sum of the header without length and identification */
    bool no_icrc;       /* nobody looks at the ICRC of its packets: it is not computed */
    uint8_t wire_extra; /* bytes from the end of the ICRC to the end of the frame: VCRC */
};

/* True if `gid` is a multicast group: ff00::/8, or IPv4-mapped 224.0.0.0/4. */
bool gid_is_group(const uint8_t gid[16]);
/* The MAC address of group `gid` (RFC 1112, RFC 2464). */
void gid_group_mac(const uint8_t gid[16], uint8_t mac[6]);

/* Prepare the headers from `own` to `to`. 0; -EINVAL: IPv4 and IPv6 mixed. */
int path_init(struct path *path, const struct link_addr *own, const struct av *to);
/* Change the UDP source port (RoCEv2). */
void path_set_sport(struct path *path, uint16_t sport);

/* The class of an Ethernet frame, or of a path's head: the priority of its tag, else the upper three bits of its DSCP.
 */
uint8_t frame_class(const uint8_t *frame, uint32_t len);
/* Change DSCP (below 64) and, in a VLAN tag, priority (below 8) of RoCEv2 and RoCEv1. */
void path_set_class(struct path *path, uint64_t dscp, uint64_t prio);

/* Deliberate errors, for faults and hand-made packets; all zero: none. */
struct build_tweak {
    uint32_t icrc_xor; /* the ICRC is XORed with this */
    uint16_t vcrc_xor;
    uint8_t pad_byte;   /* value of pad bytes */
    bool keep_padcnt;   /* bth.padcnt is sent unchanged; the pad bytes themselves stay right */
    uint8_t trailing;   /* zero bytes between pad and ICRC */
    int16_t ip_len_add; /* added to the IP (or GRH) length, ICRC made over it */
    int16_t udp_len_add;
    bool no_df;         /* IPv4 without don't-fragment */
    uint16_t udp_csum;  /* UDP checksum */
    uint16_t udp_dport; /* UDP destination port, 0: 4791 */
    uint16_t udp_sport_xor;
    uint8_t tos_xor;
    bool has_ttl; /* `ttl` is the TTL or hop limit */
    uint8_t ttl;
    uint8_t payload_xor;    /* first byte of the payload, under a right ICRC */
    uint8_t grh_nxthdr_xor; /* GRH: next header */
    uint8_t lver;           /* LRH: link version */
    uint8_t mac_xor;        /* last byte of the destination MAC address */
    uint8_t src_xor;        /* last byte of the source IP address or GID */
    bool other_roce;        /* RoCEv1 on a path of RoCEv2, or the reverse: the caller builds on that path */
};

/* A frame being written. */
struct frame_out {
    uint8_t *buf;     /* start of the frame */
    uint8_t *payload; /* after build_begin(): where bth's payload goes */
    uint32_t cap;     /* bytes at buf */
    uint32_t len;     /* after build_end(): bytes of the frame */
};

/* Bytes that a frame with opcode row `op` and `payload_len` bytes of payload takes on `path`. */
uint32_t build_size(const struct path *path, const struct opinfo *op, uint32_t payload_len);
/* Write the headers of `p` (bth, op, and the extended headers that op->ext names; bth.padcnt is set unless the tweak
 * keeps it) to `out`, whose payload pointer then tells where to put `payload_len` bytes. 0; -ENOSPC: `cap` is too
 * small. `ip_id`: IPv4 identification. */
int build_begin(struct frame_out *out, const struct path *path, struct pkt *p, uint32_t payload_len, uint16_t ip_id,
                const struct build_tweak *tweak);
/* Write the extended headers that p->op names to `q`, in their order; returns their end. */
uint8_t *build_ext(uint8_t *q, const struct pkt *p);
/* After the payload was written: append pad, ICRC, VCRC. */
void build_end(struct frame_out *out, const struct path *path, const struct pkt *p, uint32_t payload_len,
               const struct build_tweak *tweak);
/* Recalculate the ICRC (and VCRC) of a whole frame after bytes were changed. False: it holds no RoCE or InfiniBand
 * packet. `linktype`: LINK_ETHERNET or LINK_INFINIBAND. */
bool build_fix_crc(uint8_t *frame, uint32_t len, uint16_t linktype);
/* Recalculate the VCRC alone, as a switch does. False: the frame has none. */
bool build_fix_vcrc(uint8_t *frame, uint32_t len, uint16_t linktype);

#endif
