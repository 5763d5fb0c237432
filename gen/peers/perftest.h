/* layer 3 (peers): the messages that perftest's programs (ib_write_bw, ib_send_lat, ...) exchange: coding and decoding,
 * no I/O.
 *
 * Both sides send each message in turn, the client first; over TCP, or (-R) as SENDs on a connection of their own. Seen
 * in captures of perftest 4.5 (protocol 6.06) on Linux soft-RoCE:
 *
 *     version              16 bytes  text, padded with zeros
 *     size of buffers       4        4096, big-endian
 *     cache line            4        64, big-endian
 *     MTU                   2        digit of the MTU code, zero
 *     keys                108 or 56  of one queue pair, in rounds, see perftest_rounds(); as text or (-R) big-endian
 *     report              5 x 8      not SEND, not latency: bytes, iterations, peak, average, message rate (doubles)
 *     keys                108 or 56  of the first queue pair
 *     "done"                5        TCP only
 *
 * ib_write_lat ends with the data: it sends none of the messages after it.
 */
#ifndef RDMATRACE_GEN_PEERS_PERFTEST_H
#define RDMATRACE_GEN_PEERS_PERFTEST_H

#include "types.h"

#define PERFTEST_PORT    18515 /* TCP, and RDMA-CM */
#define PERFTEST_VERSION 16    /* bytes of the version */
#define PERFTEST_INT     4     /* bytes of a number */
#define PERFTEST_MTU     2     /* bytes of the MTU */
#define PERFTEST_TEXT    108   /* bytes of keys over TCP, their final zero included */
/* rdmagen sends rdmagen a text with this beginning in place of keys that it refuses; the reason follows */
#define PERFTEST_REFUSAL "no: "
#define PERFTEST_BINARY  56 /* bytes of keys over SENDs */
#define PERFTEST_REPORT  5  /* values of a report */
#define PERFTEST_VALUE   8  /* bytes of one */
#define PERFTEST_DONE    5  /* bytes of "done" and its final zero */
#define PERFTEST_QKEY    0x11111111u

/* The parameters of a queue pair that its side sends ("keys"). */
struct perftest_keys {
    uint16_t lid;       /* 0 over Ethernet, or PERFTEST_COUNTS */
    uint32_t out_reads; /* READs and atomics outstanding, as requester and as responder; 1 for other tests */
    uint32_t qpn, psn;  /* psn: starting PSN of this side; 24 bits each */
    uint32_t rkey;      /* of the memory at vaddr; SEND: 0 */
    uint64_t vaddr;     /* address of the memory for WRITEs, READs and atomics */
    uint8_t gid[16];    /* of the queue pair's port */
    uint32_t srqn;      /* XRC: number of its side's shared receive queue; else 0 */
};
/* Write keys as text of PERFTEST_TEXT bytes. */
void perftest_keys_put(char *text, const struct perftest_keys *k);
/* Parse keys from PERFTEST_TEXT bytes; false: `text` has none. */
bool perftest_keys_get(struct perftest_keys *k, const char *text);
/* The same in binary, PERFTEST_BINARY bytes; every content is valid. */
void perftest_keys_put_binary(uint8_t *p, const struct perftest_keys *k);
void perftest_keys_get_binary(struct perftest_keys *k, const uint8_t *p);

/* Keys after the data, between two rdmagen: in `vaddr` the client reports how many messages it has sent, the server how
 * many it has received, and in `rkey` how many of these had wrong data. `lid` marks such keys. */
#define PERFTEST_COUNTS 0xffff

enum perftest_op { PERFTEST_WRITE, PERFTEST_READ, PERFTEST_SEND, PERFTEST_ATOMIC };
/* What rdmagen says about itself after the final zero of its version, which perftest ignores. */
struct perftest_mark {
    bool ours;     /* the peer is rdmagen */
    bool latency;  /* the client is like ib_*_lat */
    int op;        /* enum perftest_op of the client; -1: not stated */
    uint32_t size; /* bytes of its messages; 0: 2^24 and more */
};
/* Write our version, 6.06, in PERFTEST_VERSION bytes. `mark` (its `ours` is ignored): NULL for a server. */
void perftest_version_put(uint8_t *p, const struct perftest_mark *mark);
/* Parse a version of PERFTEST_VERSION bytes and the mark after it; false: it does not have this exchange, which begins
 * with 5.70. */
bool perftest_version_get(const uint8_t *p, struct perftest_mark *mark);
/* Write the code of an MTU in bytes; the MTU in bytes of a code, 0: there is none. PERFTEST_MTU bytes. */
void perftest_mtu_put(uint8_t *p, uint16_t mtu);
uint16_t perftest_mtu_get(const uint8_t *p);

/* A bandwidth report: the values of perftest, 8 bytes each. */
struct perftest_report {
    uint64_t size, iters; /* bytes of a message; messages */
    double peak, average; /* 2^20 bytes/s */
    double rate;          /* millions of messages per second */
};
/* Write, and parse, a report. */
void perftest_report_put(uint8_t p[PERFTEST_REPORT][PERFTEST_VALUE], const struct perftest_report *r);
void perftest_report_get(struct perftest_report *r, const uint8_t p[PERFTEST_REPORT][PERFTEST_VALUE]);

/* The rounds in which keys are exchanged before the data, a letter each: 'R': of every queue pair in turn; 'H': of the
 * first one alone. The queue pairs are connected after the first round of all. `latency`: the program is like ib_*_lat,
 * with one queue pair, or (XRC) one in each direction. */
const char *perftest_rounds(enum perftest_op op, bool latency);
/* Whether a report follows the data. */
bool perftest_reports(enum perftest_op op, bool latency);

#endif
