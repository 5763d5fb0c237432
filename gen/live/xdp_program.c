/* layer 3 (live): the program of the AF_XDP backend, which runs in front of the network stack. */
#include "gen/live/xdp_program.h"

#include "dissect/ib/ib.h"
#include "dissect/link/eth.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <netinet/in.h>

#define INSN(c, d, s, o, i) ((struct bpf_insn){.code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i)})
#define MOV(d, s)           INSN(BPF_ALU64 | BPF_MOV | BPF_X, d, s, 0, 0)
#define SET(d, i)           INSN(BPF_ALU64 | BPF_MOV | BPF_K, d, 0, 0, i)
#define ADD(d, i)           INSN(BPF_ALU64 | BPF_ADD | BPF_K, d, 0, 0, i)
#define ADD_REG(d, s)       INSN(BPF_ALU64 | BPF_ADD | BPF_X, d, s, 0, 0)
#define AND(d, i)           INSN(BPF_ALU64 | BPF_AND | BPF_K, d, 0, 0, i)
#define SHIFT(d, i)         INSN(BPF_ALU64 | BPF_LSH | BPF_K, d, 0, 0, i)
#define LOAD(size, d, s, o) INSN(BPF_LDX | BPF_MEM | (size), d, s, o, 0)
#define CALL(f)             INSN(BPF_JMP | BPF_CALL, 0, 0, 0, f)
#define EXIT                INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)
/* Jumps name instruction `at`, where they stand, and the one that they lead to. */
#define IF_EQ(at, d, i, to) INSN(BPF_JMP | BPF_JEQ | BPF_K, d, 0, (int16_t)((to) - (at)-1), i)
#define IF_NE(at, d, i, to) INSN(BPF_JMP | BPF_JNE | BPF_K, d, 0, (int16_t)((to) - (at)-1), i)
#define IF_GT(at, d, s, to) INSN(BPF_JMP | BPF_JGT | BPF_X, d, s, (int16_t)((to) - (at)-1), 0)
#define GO(at, to)          INSN(BPF_JMP | BPF_JA, 0, 0, (int16_t)((to) - (at)-1), 0)
enum { TYPE = 12, IPV4 = 14, IPV6 = 29, PASS = 36, TAKE = 38, LENGTH = 44 };
enum { DATA = 2, END, X, PORT, CONTEXT };

/* Numbers in packets are compared as the host reads them. */
int xdp_program_load(int map)
{
    const struct bpf_insn code[LENGTH] = {
        /* 0 */ MOV(CONTEXT, BPF_REG_1),
        /* 1 */ LOAD(BPF_W, DATA, CONTEXT, offsetof(struct xdp_md, data)),
        /* 2 */ LOAD(BPF_W, END, CONTEXT, offsetof(struct xdp_md, data_end)),
        /* 3 */ MOV(X, DATA),
        /* 4 */ ADD(X, 14 + 20 + 8),
        /* 5 */ IF_GT(5, X, END, PASS),
        /* 6 */ LOAD(BPF_H, PORT, DATA, 12),
        /* 7: a VLAN tag */ IF_NE(7, PORT, htons(ETH_P_8021Q), TYPE),
        /* 8 */ ADD(DATA, 4),
        /* 9 */ ADD(X, 4),
        /* 10 */ IF_GT(10, X, END, PASS),
        /* 11 */ LOAD(BPF_H, PORT, DATA, 12),
        /* 12: TYPE */ IF_EQ(12, PORT, htons(ETHERTYPE_ROCEV1), TAKE),
        /* 13 */ IF_NE(13, PORT, htons(ETH_P_IP), IPV6),
        /* 14: IPV4: protocol, fragment offset, and the port behind a header of any length */
        LOAD(BPF_B, X, DATA, 14 + 9),
        /* 15 */ IF_NE(15, X, IPPROTO_UDP, PASS),
        /* 16 */ LOAD(BPF_H, X, DATA, 14 + 6),
        /* 17 */ AND(X, htons(0x1fff)),
        /* 18 */ IF_NE(18, X, 0, PASS),
        /* 19 */ LOAD(BPF_B, X, DATA, 14),
        /* 20 */ AND(X, 15),
        /* 21 */ SHIFT(X, 2),
        /* 22 */ ADD_REG(DATA, X),
        /* 23 */ MOV(X, DATA),
        /* 24 */ ADD(X, 14 + 4),
        /* 25 */ IF_GT(25, X, END, PASS),
        /* 26 */ LOAD(BPF_H, PORT, DATA, 14 + 2),
        /* 27 */ IF_EQ(27, PORT, htons(UDP_PORT_ROCEV2), TAKE),
        /* 28 */ GO(28, PASS),
        /* 29: IPV6, without extension headers */ IF_NE(29, PORT, htons(ETH_P_IPV6), PASS),
        /* 30 */ ADD(X, 20),
        /* 31 */ IF_GT(31, X, END, PASS),
        /* 32 */ LOAD(BPF_B, X, DATA, 14 + 6),
        /* 33 */ IF_NE(33, X, IPPROTO_UDP, PASS),
        /* 34 */ LOAD(BPF_H, PORT, DATA, 14 + 40 + 2),
        /* 35 */ IF_EQ(35, PORT, htons(UDP_PORT_ROCEV2), TAKE),
        /* 36: PASS */ SET(BPF_REG_0, XDP_PASS),
        /* 37 */ EXIT,
        /* 38: TAKE; without a socket of this queue it passes */
        INSN(BPF_LD | BPF_DW | BPF_IMM, BPF_REG_1, BPF_PSEUDO_MAP_FD, 0, map),
        /* 39 */ INSN(0, 0, 0, 0, 0),
        /* 40 */ LOAD(BPF_W, BPF_REG_2, CONTEXT, offsetof(struct xdp_md, rx_queue_index)),
        /* 41 */ SET(BPF_REG_3, XDP_PASS),
        /* 42 */ CALL(BPF_FUNC_redirect_map),
        /* 43 */ EXIT,
    };

    return bpf_prog_load(BPF_PROG_TYPE_XDP, "roce_to_xsk", "BSD", code, LENGTH, NULL);
}
