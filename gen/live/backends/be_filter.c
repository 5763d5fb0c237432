/* layer 3 (live): the filter program of the AF_PACKET backend. */
#include "gen/live/backends/be_filter.h"

#include "dissect/ib/ib.h"
#include "dissect/ip/icmp.h"
#include "dissect/link/eth.h"

#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <netinet/in.h>
#include <string.h>

#define ND_SOLICIT 135
#define ND_ADVERT  136

/* Jumps count from the instruction that follows; the targets are numbers of instructions. */
#define JEQ(k, at, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, k, (yes) - (at)-1, (no) - (at)-1)
#define LOAD(size, offset)  BPF_STMT(BPF_LD | (size) | BPF_ABS, offset)
enum { IPV4 = 7, NOT_IPV4 = 17, IPV6 = 18, ICMP6 = 22, V1 = 27, V4 = 29, V6 = 31, PART = 32, PASS = 35, DROP = 36 };
#define GO(at, to) BPF_STMT(BPF_JMP | BPF_JA, (to) - (at)-1)

/* The part is that of qpn_part(): by the lowest byte of the destination QP, 7 bytes into the BTH. */
static const struct sock_filter all[BE_FILTER_LEN] = {
    /* 0 */ LOAD(BPF_B, (uint32_t)(SKF_AD_OFF + SKF_AD_PKTTYPE)),
    /* 1 */ JEQ(PACKET_OUTGOING, 1, DROP, 2),
    /* 2 */ LOAD(BPF_H, 12),
    /* 3 */ JEQ(ETH_P_ARP, 3, PASS, 4),
    /* 4 */ JEQ(ETHERTYPE_ROCEV1, 4, V1, 5),
    /* 5 */ JEQ(ETHERTYPE_MACC, 5, PASS, 6),
    /* 6 */ JEQ(ETH_P_IP, 6, IPV4, NOT_IPV4),
    /* IPV4: fragment offset, protocol, and the port behind a header of any length */
    /* 7 */ LOAD(BPF_H, 14 + 6),
    /* 8 */ BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x1fff, DROP - 9, 0),
    /* 9 */ LOAD(BPF_B, 14 + 9),
    /* 10 */ BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 14),
    /* 11 */ JEQ(IPPROTO_UDP, 11, 12, 14),
    /* 12 */ BPF_STMT(BPF_LD | BPF_H | BPF_IND, 14 + 2),
    /* 13 */ JEQ(UDP_PORT_ROCEV2, 13, V4, DROP),
    /* 14 */ JEQ(IPPROTO_ICMP, 14, 15, DROP),
    /* 15 */ BPF_STMT(BPF_LD | BPF_B | BPF_IND, 14),
    /* 16 */ JEQ(ICMP_UNREACHABLE, 16, PASS, DROP),
    /* NOT_IPV4 */
    /* 17 */ JEQ(ETH_P_IPV6, 17, IPV6, DROP),
    /* IPV6, without extension headers */
    /* 18 */ LOAD(BPF_B, 14 + 6),
    /* 19 */ JEQ(IPPROTO_UDP, 19, 20, ICMP6),
    /* 20 */ LOAD(BPF_H, 14 + 40 + 2),
    /* 21 */ JEQ(UDP_PORT_ROCEV2, 21, V6, DROP),
    /* ICMP6 */
    /* 22 */ JEQ(IPPROTO_ICMPV6, 22, 23, DROP),
    /* 23 */ LOAD(BPF_B, 14 + 40),
    /* 24 */ JEQ(ND_SOLICIT, 24, PASS, 25),
    /* 25 */ JEQ(ND_ADVERT, 25, PASS, 26),
    /* 26 */ JEQ(ICMP6_UNREACHABLE, 26, PASS, DROP),
    /* V1 */
    /* 27 */ LOAD(BPF_B, 14 + 40 + 7),
    /* 28 */ GO(28, PART),
    /* V4 */
    /* 29 */ BPF_STMT(BPF_LD | BPF_B | BPF_IND, 14 + 8 + 7),
    /* 30 */ GO(30, PART),
    /* V6 */
    /* 31 */ LOAD(BPF_B, 14 + 40 + 8 + 7),
    /* PART: of how many, and which, be_filter() says */
    /* 32 */ BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 1),
    /* 33 */ BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, 1),
    /* 34 */ JEQ(0, 34, PASS, DROP),
    /* PASS */
    /* 35 */ BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
    /* DROP */
    /* 36 */ BPF_STMT(BPF_RET | BPF_K, 0),
};

void be_filter(struct sock_filter out[BE_FILTER_LEN], unsigned part, unsigned parts)
{
    memcpy(out, all, sizeof all);
    if (parts == 1)
        out[V1] = out[V4] = out[V6] = out[PASS];
    out[PART + 1].k = parts;
    out[PART + 2].k = part;
}

const struct sock_filter be_filter_bridge[] = {
    /* 0 */ LOAD(BPF_B, (uint32_t)(SKF_AD_OFF + SKF_AD_PKTTYPE)),
    /* 1 */ JEQ(PACKET_OUTGOING, 1, 2, 3),
    /* 2 */ BPF_STMT(BPF_RET | BPF_K, 0),
    /* 3 */ BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
};
const unsigned be_filter_bridge_len = ARRAY_LEN(be_filter_bridge);
