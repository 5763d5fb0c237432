/* layer 2b tests: TCP segments made by hand, given to an observer; what iWARP makes of them is kept. */
#ifndef RDMATRACE_TEST_IWARP_RUN_H
#define RDMATRACE_TEST_IWARP_RUN_H

#include "dissect/ip/ip.h"
#include "dissect/ip/tcp.h"
#include "src/conn/observer.h"
#include "src/iwarp/iwarp.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <unistd.h>

/* Flags of an MPA request and reply (RFC 5044). */
#define FLAG_CRC     0x40
#define FLAG_MARKERS 0x80

#define CLIENT   0 /* the end that sends the request; 1: the other one */
#define SERVER   1
#define TCP_HEAD (20 + TCP_LEN)

/* A run: both ends' next sequence numbers, and what was reported. */
struct tcp_run {
    struct observer *observer;
    uint32_t seq[2], sent_to[2]; /* next of each end; acknowledged by it */
    uint64_t frame;
    uint8_t bytes[TCP_HEAD + 66000];
    struct frame f;
    struct pkt p;
    unsigned n_fpdus, n_starts, n_bad_crc, n_whole;
    struct ddp last;       /* of the latest FPDU */
    uint64_t of_frame[64]; /* of the FPDUs: which packet completed them */
    unsigned faults[IWARP_FAULTS];
    unsigned n_over;
    struct iwarp_op over[64];
};

static inline void tcp_on_fpdu(void *user, const struct pkt *p, const struct iwarp_unit *u)
{
    struct tcp_run *r = user;

    (void)p;
    if (!u->start)
        r->of_frame[r->n_fpdus % ARRAY_LEN(r->of_frame)] = u->frame;
    r->n_starts += u->start;
    r->n_fpdus += !u->start;
    r->n_whole += !u->start && u->whole;
    r->n_bad_crc += !u->start && u->whole && u->crc && !u->crc_good;
    if (u->readable)
        r->last = u->ddp;
}

static inline void tcp_on_bad(void *user, const struct pkt *p, const struct iwarp_bad *b)
{
    (void)p;
    cr_expect(b->seen != NULL);
    ((struct tcp_run *)user)->faults[b->fault]++;
}

static inline void tcp_on_over(void *user, const struct iwarp_op *op)
{
    struct tcp_run *r = user;

    r->over[r->n_over++ % ARRAY_LEN(r->over)] = *op;
}

static inline struct tcp_run *tcp_run_new(void)
{
    struct tcp_run *r = calloc(1, sizeof *r);
    const struct iwarp_sub s = {.user = r, .fpdu = tcp_on_fpdu, .bad = tcp_on_bad, .over = tcp_on_over};

    r->observer = observer_new(NULL);
    r->seq[CLIENT] = 0xfffffff0; /* it wraps soon */
    r->seq[SERVER] = 5000;
    cr_assert(iwarp_subscribe(observer_iwarp(r->observer), &s));
    return r;
}

static inline void tcp_run_free(struct tcp_run *r)
{
    iwarp_finish(observer_iwarp(r->observer), r);
    observer_free(r->observer);
    free(r);
}

/* A segment from one end at sequence number `seq`; `cap` of its `n` bytes are captured. */
static inline void tcp_segment(struct tcp_run *r, unsigned from, uint32_t seq, const void *b, uint32_t n, uint32_t cap)
{
    static const struct decode_opts opts = {0};
    struct ip4 ip = {.version = 4,
                     .ihl = 5,
                     .len = (uint16_t)(TCP_HEAD + n),
                     .ttl = 64,
                     .proto = 6,
                     .src = {10, 0, 0, (uint8_t)(from + 1)},
                     .dst = {10, 0, 0, (uint8_t)(2 - from)}};
    struct tcp tcp = {.sport = from ? 4420 : 50000,
                      .dport = from ? 50000 : 4420,
                      .seq = seq,
                      .ack = r->sent_to[!from],
                      .ackf = r->sent_to[!from] != 0,
                      .doff = 5};

    memset(r->bytes, 0, TCP_HEAD);
    ip4_put(r->bytes, &ip);
    tcp_put(r->bytes + 20, &tcp);
    if (n)
        memcpy(r->bytes + TCP_HEAD, b, n);
    r->f = (struct frame){.data = r->bytes,
                          .caplen = TCP_HEAD + cap,
                          .len = TCP_HEAD + n,
                          .number = ++r->frame,
                          .linktype = LINK_IPV4,
                          .has_ts = true,
                          .ts = (ns_t)r->frame * NS_PER_US};
    pkt_decode(&r->p, &r->f, &opts);
    observer_packet(r->observer, &r->p);
    iwarp_show(observer_iwarp(r->observer), &r->p);
}

/* The next bytes of one end, in segments of at most `most` bytes, all captured and acknowledged by the next one of the
 * other end. */
static inline void tcp_send(struct tcp_run *r, unsigned from, const uint8_t *b, uint32_t n, uint32_t most)
{
    for (uint32_t at = 0; at < n; at += most) {
        uint32_t len = min_u32(most, n - at);
        tcp_segment(r, from, r->seq[from], b + at, len, len);
        r->seq[from] += len;
        r->sent_to[from] = r->seq[from];
    }
}

/* A segment without payload: it acknowledges all that the other end has sent. */
static inline void tcp_ack(struct tcp_run *r, unsigned from)
{
    tcp_segment(r, from, r->seq[from], NULL, 0, 0);
}

/* --- MPA, DDP and RDMAP ----------------------------------------------------------------------- */

/* A request or reply at `b`; returns its length. */
static inline uint32_t make_start(uint8_t *b, bool reply, uint8_t flags, uint8_t revision)
{
    memcpy(b, reply ? "MPA ID Rep Frame" : "MPA ID Req Frame", 16);
    b[16] = flags;
    b[17] = revision;
    store_be16(b + 18, 4);
    memcpy(b + 20, "\1\2\3\4", 4);
    return 24;
}

/* Both, with these flags. */
static inline void tcp_start(struct tcp_run *r, uint8_t flags)
{
    uint8_t b[32];

    tcp_send(r, CLIENT, b, make_start(b, false, flags, 1), 1000);
    tcp_send(r, SERVER, b, make_start(b, true, flags, 1), 1000);
}

/* An FPDU at `b` with `n` bytes of payload, which count up; returns its length. */
static inline uint32_t make_fpdu(uint8_t *b, const struct ddp *d, uint32_t n, bool crc)
{
    uint32_t head = d->tagged ? DDP_TAGGED_LEN : DDP_UNTAGGED_LEN, all = mpa_fpdu_len((uint16_t)(head + n));
    uint8_t *q = b + 2;

    memset(b, 0, all);
    store_be16(b, (uint16_t)(head + n));
    q[0] = (uint8_t)((d->tagged ? 0x80 : 0) | (d->last ? 0x40 : 0) | (d->version & 3));
    q[1] = (uint8_t)(d->rdmap_version << 6 | d->opcode);
    if (d->tagged) {
        store_be32(q + 2, d->stag);
        store_be64(q + 6, d->to);
    } else {
        store_be32(q + 2, d->inval);
        store_be32(q + 6, d->qn);
        store_be32(q + 10, d->msn);
        store_be32(q + 14, d->mo);
    }
    for (uint32_t i = 0; i < n; i++)
        q[head + i] = (uint8_t)(i * 7 + 3);
    if (crc)
        store_be32(b + all - 4, mpa_crc(b, all - 4));
    return all;
}

static inline struct ddp a_write(uint32_t stag, uint64_t to, bool last)
{
    return (struct ddp){.tagged = true, .last = last, .version = 1, .rdmap_version = 1, .stag = stag, .to = to};
}
static inline struct ddp a_send(uint32_t msn, uint32_t mo, bool last)
{
    return (struct ddp){.last = last, .version = 1, .rdmap_version = 1, .opcode = RDMAP_SEND, .msn = msn, .mo = mo};
}

/* An FPDU of one end in one segment. */
static inline void send_fpdu(struct tcp_run *r, unsigned from, const struct ddp *d, uint32_t n)
{
    static uint8_t b[MPA_FPDU_MAX];

    tcp_send(r, from, b, make_fpdu(b, d, n, true), sizeof b);
}

/* The number of faults of all kinds. */
static inline unsigned all_faults(const struct tcp_run *r)
{
    unsigned n = 0;

    for (unsigned i = 0; i < IWARP_FAULTS; i++)
        n += r->faults[i];
    return n;
}

#endif
