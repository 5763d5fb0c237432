/* layer 3 (peers): the words that perftest's programs (ib_write_bw, ib_send_lat, ...) exchange: coding and decoding, no
 * I/O.
 *
 * Both sides say each word in turn, the client first; over TCP, or (-R) as SENDs on a connection of their own. Seen in
 * captures of perftest 4.5 (protocol 6.06) on Linux soft-RoCE:
 *
 *     version              16 bytes  text, zeros behind it
 *     size of buffers       4        4096, big-endian
 *     cache line            4        64, big-endian
 *     MTU                   2        digit of the MTU code, zero
 *     keys                108 or 56  of one queue pair, in rounds, see perftest_rounds(); as text or (-R) big-endian
 *     report              5 x 8      not SEND, not latency: bytes, iterations, peak, average, message rate (doubles)
 *     keys                108 or 56  of the first queue pair
 *     "done"                5        TCP only
 *
 * ib_write_lat ends with the data: it says none of what would follow.
 */
#ifndef RDMATRACE_GEN_PEERS_PERFTEST_H
#define RDMATRACE_GEN_PEERS_PERFTEST_H

#include "types.h"

#define PERFTEST_PORT    18515 /* TCP, and RDMA-CM */
#define PERFTEST_VERSION 16    /* bytes of the version */
#define PERFTEST_INT     4     /* bytes of a number */
#define PERFTEST_MTU     2     /* bytes of the MTU */
#define PERFTEST_TEXT    108   /* bytes of keys over TCP, with the zero at their end */
/* a text of rdmagen's to rdmagen that is no keys begins with this; then it says why */
#define PERFTEST_REFUSAL "no: "
#define PERFTEST_BINARY  56 /* bytes of keys over RDMA */
#define PERFTEST_REPORT  5  /* values of a report */
#define PERFTEST_VALUE   8  /* bytes of one */
#define PERFTEST_DONE    5  /* bytes of "done" and its zero */
#define PERFTEST_QKEY    0x11111111u

/* What one side says about a queue pair. */
struct perftest_keys {
    uint16_t lid;
    uint32_t out_reads; /* READs and atomics that this side takes and wants outstanding; 1 for other tests */
    uint32_t qpn, psn;  /* psn: the first that this side sends; 24 bits each */
    uint32_t rkey;      /* of the memory at vaddr; SEND: 0 */
    uint64_t vaddr;
    uint8_t gid[16];
    uint32_t srqn; /* 0 */
};
/* Write PERFTEST_TEXT bytes. */
void perftest_keys_put(char *text, const struct perftest_keys *k);
/* False: not such a text. `text` has PERFTEST_TEXT bytes. */
bool perftest_keys_get(struct perftest_keys *k, const char *text);
/* The same of PERFTEST_BINARY bytes, which may have any content. */
void perftest_keys_put_binary(uint8_t *p, const struct perftest_keys *k);
void perftest_keys_get_binary(struct perftest_keys *k, const uint8_t *p);

/* After the data rdmagen tells rdmagen in `vaddr` how many messages it has sent, the server how many of them came, and
 * in `rkey` how many of these were not what they should be; `lid` marks such keys. */
#define PERFTEST_COUNTS 0xffff

enum perftest_op { PERFTEST_WRITE, PERFTEST_READ, PERFTEST_SEND, PERFTEST_ATOMIC };
/* What rdmagen says about itself behind the zero of its version, where perftest does not look. */
struct perftest_mark {
    bool ours;     /* the peer is rdmagen */
    bool latency;  /* the client is of the kind ib_*_lat */
    int op;        /* enum perftest_op of the client; -1: not told */
    uint32_t size; /* bytes of its messages; 0: 2^24 and more */
};
/* The version as we say it: 6.06. `mark` (`ours` is not looked at): NULL of a server. */
void perftest_version_put(uint8_t *p, const struct perftest_mark *mark);
/* Whether `p` (PERFTEST_VERSION bytes) is a version that speaks like this: 5.70 or later. */
bool perftest_version_get(const uint8_t *p, struct perftest_mark *mark);
/* The MTU in bytes, and back: 0 for what is no MTU. */
void perftest_mtu_put(uint8_t *p, uint16_t mtu);
uint16_t perftest_mtu_get(const uint8_t *p);

/* A bandwidth report: values as perftest has them, 8 bytes each. */
struct perftest_report {
    uint64_t size, iters;
    double peak, average; /* 2^20 bytes/s */
    double rate;          /* millions of messages per second */
};
void perftest_report_put(uint8_t p[PERFTEST_REPORT][PERFTEST_VALUE], const struct perftest_report *r);
void perftest_report_get(struct perftest_report *r, const uint8_t p[PERFTEST_REPORT][PERFTEST_VALUE]);

/* How keys are told before the data: a letter for each step, 'R' for every queue pair in turn, 'H' for the first one
 * alone. The queue pairs are connected after the first step. `latency`: the program is of the kind ib_*_lat, with one
 * queue pair. */
const char *perftest_rounds(enum perftest_op op, bool latency);
/* Whether a report follows the data. */
bool perftest_reports(enum perftest_op op, bool latency);

#endif
