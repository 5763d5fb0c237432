/* layer 3 (judge) tests: short captures of one connection, built packet by packet, and what the judge says of them. */
#ifndef RDMATRACE_TESTS_UNIT_JUDGE_RIG_H
#define RDMATRACE_TESTS_UNIT_JUDGE_RIG_H

#include "gen/endpoint/build.h"
#include "src/judge/judge_impl.h"
#include "tests/unit/mkpkt.h"

#include <criterion/criterion.h>

#define US NS_PER_US
#define MS NS_PER_MS

/* A packet: from end 0 (queue pair 0x11) to end 1 (0x12), or back. */
struct line {
    ns_t ts;
    int from;
    uint8_t opcode;
    uint32_t psn;
    uint8_t syndrome; /* of an Acknowledge */
    uint32_t msn;
    uint16_t id;   /* IPv4 identification */
    uint32_t qp;   /* destination queue pair, if not that of the end */
    uint16_t pkey; /* if not ffff */
};
#define SEND(ts, psn, id)                                                                                              \
    {                                                                                                                  \
        ts, 0, OP_SEND_ONLY, psn, 0, 0, id, 0, 0                                                                       \
    }
#define SEND_BACK(ts, psn, id)                                                                                         \
    {                                                                                                                  \
        ts, 1, OP_SEND_ONLY, psn, 0, 0, id, 0, 0                                                                       \
    }
#define ACK(ts, psn, msn, id)                                                                                          \
    {                                                                                                                  \
        ts, 1, OP_ACKNOWLEDGE, psn, SYNDROME_ACK(AETH_CREDIT_INVALID), msn, id, 0, 0                                   \
    }
#define ACK_BACK(ts, psn, msn, id)                                                                                     \
    {                                                                                                                  \
        ts, 0, OP_ACKNOWLEDGE, psn, SYNDROME_ACK(AETH_CREDIT_INVALID), msn, id, 0, 0                                   \
    }
#define READ(ts, psn, id)                                                                                              \
    {                                                                                                                  \
        ts, 0, OP_READ_REQUEST, psn, 0, 0, id, 0, 0                                                                    \
    }
#define READ_RESPONSE(ts, psn, msn, id)                                                                                \
    {                                                                                                                  \
        ts, 1, OP_READ_RESP_ONLY, psn, SYNDROME_ACK(AETH_CREDIT_INVALID), msn, id, 0, 0                                \
    }
#define NAK(ts, psn, msn, id)                                                                                          \
    {                                                                                                                  \
        ts, 1, OP_ACKNOWLEDGE, psn, SYNDROME_NAK(NAK_PSN_SEQ), msn, id, 0, 0                                           \
    }
#define RNR(ts, psn, msn, code, id)                                                                                    \
    {                                                                                                                  \
        ts, 1, OP_ACKNOWLEDGE, psn, SYNDROME_RNR(code), msn, id, 0, 0                                                  \
    }

static inline struct link_addr end_addr(int end)
{
    struct link_addr a = {.encap = ENCAP_ROCEV2, .mac = {2, 0, 0, 0, 0, (uint8_t)end}};

    gid_from_ipv4(a.gid, 0x32323201 + (uint32_t)end);
    return a;
}

/* The parameters that CM would state: end 0 is the active side; starting PSN 10; ACK timeout 4.194304 ms, one retry. */
static inline void learn(struct judge *j)
{
    struct conn_known k = {.qpn = {0x11, 0x12}, .psn = {10, 10}, .pmtu = 1024, .how = PAIR_CM};

    for (int i = 0; i < 2; i++) {
        struct link_addr a = end_addr(i);
        memcpy(k.addr[i].b, a.gid, 16);
    }
    k.params[1] = (struct conn_params){
        .passive = true, .timeout_known = PARAM_STATED, .retry_known = PARAM_STATED, .timeout = 10, .retry_cnt = 1};
    conn_learn(judge_conns(j), &k);
}

/* The packet of a line; what carries data has 8 bytes of it. */
static inline struct pkt line_packet(const struct line *l)
{
    if (l->opcode == OP_ACKNOWLEDGE)
        return mk_ack(l->psn, l->syndrome, l->msn);
    if (l->opcode == OP_READ_REQUEST)
        return mk_read(l->psn, 0, 8);
    if (l->opcode == OP_READ_RESP_ONLY)
        return mk_aeth(l->opcode, l->psn, 8, l->syndrome, l->msn);
    return mk(l->opcode, l->psn, 8);
}

/* The frame of a line, to `buf`; its length. */
static inline uint32_t line_frame(const struct line *l, uint8_t buf[256])
{
    struct link_addr own = end_addr(l->from), other = end_addr(!l->from);
    struct av av = {.hop_limit = 64};
    struct path path;
    struct frame_out out = {.buf = buf, .cap = 256};
    struct pkt made = line_packet(l);

    memcpy(av.dgid, other.gid, 16);
    memcpy(av.dmac, other.mac, 6);
    av.sport = 0xc001;
    made.bth.pkey = l->pkey ? l->pkey : 0xffff;
    made.bth.ackreq = made.op->flags & OPF_REQUEST ? 1 : 0;
    made.bth.dqpn = l->qp ? l->qp : l->from ? 0x11 : 0x12;
    cr_assert_eq(path_init(&path, &own, &av), 0);
    cr_assert_eq(build_begin(&out, &path, &made, made.payload_len, l->id, NULL), 0);
    memset(out.payload, 0, made.payload_len);
    build_end(&out, &path, &made, made.payload_len, NULL);
    return out.len;
}

static inline void decode_line(struct pkt *p, struct frame *f, const struct line *l, const uint8_t *buf, uint32_t len,
                               uint64_t number, bool verify)
{
    *f = (struct frame){.ts = NS_PER_S + l->ts,
                        .has_ts = true,
                        .data = buf,
                        .caplen = len,
                        .len = len,
                        .number = number,
                        .linktype = LINK_ETHERNET};
    pkt_decode(p, f, &(struct decode_opts){.verify = verify});
}

static inline void judge_line(struct judge *j, const struct line *l, uint64_t number)
{
    uint8_t buf[256];
    struct frame f;
    struct pkt p;

    decode_line(&p, &f, l, buf, line_frame(l, buf), number, true);
    cr_assert_eq(p.icrc, CRC_GOOD);
    judge_packet(j, &p);
}

/* The worst verdict on `rule`. */
static inline enum result verdict(const struct line *l, size_t n, enum tap_side tap, bool cm, bool doubled,
                                  enum rule rule)
{
    struct judge_opts o = {.complete = true, .ack_timeout = 10, .retry_cnt = 1};
    struct judge *j;
    enum result worst = V_PASS;
    uint64_t number = 0;

    for (unsigned i = 0; i < JUDGE_TAPS; i++)
        o.tap[i] = tap;
    j = judge_new(&o);
    if (cm)
        learn(j);
    for (size_t i = 0; i < n; i++)
        for (int copy = 0; copy <= (int)doubled; copy++)
            judge_line(j, &l[i], ++number);
    judge_end(j);
    for (size_t i = 0; i < findings_n(judge_findings(j)); i++) {
        const struct finding *f = findings_at(judge_findings(j), i);
        if (f->rule == rule && f->result != V_PASS && worst != V_FAIL)
            worst = (enum result)f->result;
    }
    judge_free(j);
    return worst;
}
#define VERDICT(lines, ...) verdict(lines, ARRAY_LEN(lines), __VA_ARGS__)

#endif
