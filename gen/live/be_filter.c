/* layer 3 (live): the filter program of the AF_PACKET backend. */
#include "gen/live/be_filter.h"

#include "dissect/ib/ib.h"
#include "dissect/link/eth.h"

#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <netinet/in.h>

#define ND_SOLICIT 135
#define ND_ADVERT  136

/* Jumps count from the instruction that follows; the targets are numbers of instructions. */
#define JEQ(k, at, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, k, (yes) - (at)-1, (no) - (at)-1)
#define LOAD(size, offset)  BPF_STMT(BPF_LD | (size) | BPF_ABS, offset)
enum { IPV4 = 6, NOT_IPV4 = 13, IPV6 = 14, ICMP6 = 18, PASS = 22, DROP = 23 };

const struct sock_filter be_filter[] = {
    /* 0 */ LOAD(BPF_B, (uint32_t)(SKF_AD_OFF + SKF_AD_PKTTYPE)),
    /* 1 */ JEQ(PACKET_OUTGOING, 1, DROP, 2),
    /* 2 */ LOAD(BPF_H, 12),
    /* 3 */ JEQ(ETH_P_ARP, 3, PASS, 4),
    /* 4 */ JEQ(ETHERTYPE_ROCEV1, 4, PASS, 5),
    /* 5 */ JEQ(ETH_P_IP, 5, IPV4, NOT_IPV4),
    /* IPV4: fragment offset, protocol, and the port behind a header of any length */
    /* 6 */ LOAD(BPF_H, 14 + 6),
    /* 7 */ BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x1fff, DROP - 8, 0),
    /* 8 */ LOAD(BPF_B, 14 + 9),
    /* 9 */ JEQ(IPPROTO_UDP, 9, 10, DROP),
    /* 10 */ BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 14),
    /* 11 */ BPF_STMT(BPF_LD | BPF_H | BPF_IND, 14 + 2),
    /* 12 */ JEQ(UDP_PORT_ROCEV2, 12, PASS, DROP),
    /* NOT_IPV4 */
    /* 13 */ JEQ(ETH_P_IPV6, 13, IPV6, DROP),
    /* IPV6, without extension headers */
    /* 14 */ LOAD(BPF_B, 14 + 6),
    /* 15 */ JEQ(IPPROTO_UDP, 15, 16, ICMP6),
    /* 16 */ LOAD(BPF_H, 14 + 40 + 2),
    /* 17 */ JEQ(UDP_PORT_ROCEV2, 17, PASS, DROP),
    /* ICMP6 */
    /* 18 */ JEQ(IPPROTO_ICMPV6, 18, 19, DROP),
    /* 19 */ LOAD(BPF_B, 14 + 40),
    /* 20 */ JEQ(ND_SOLICIT, 20, PASS, 21),
    /* 21 */ JEQ(ND_ADVERT, 21, PASS, DROP),
    /* PASS */
    /* 22 */ BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
    /* DROP */
    /* 23 */ BPF_STMT(BPF_RET | BPF_K, 0),
};
const unsigned be_filter_len = ARRAY_LEN(be_filter);

const struct sock_filter be_filter_bridge[] = {
    /* 0 */ LOAD(BPF_B, (uint32_t)(SKF_AD_OFF + SKF_AD_PKTTYPE)),
    /* 1 */ JEQ(PACKET_OUTGOING, 1, 2, 3),
    /* 2 */ BPF_STMT(BPF_RET | BPF_K, 0),
    /* 3 */ BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
};
const unsigned be_filter_bridge_len = ARRAY_LEN(be_filter_bridge);
