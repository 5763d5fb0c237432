/* layer 1 (wire): what perftest's programs (ib_write_bw, ib_send_lat, ...) say to each other with -R: SENDs on a
 * connection of their own, beside those that carry data. Client and server say each message in turn:
 *
 *     version         16 bytes  text, padded with zeros                     address and port of a connection before it
 *     buffer size      4        big-endian, as is all that follows
 *     cache line       4
 *     MTU              2        digit of the MTU code, zero
 *     keys            56        of one queue pair; several times, the first ones may be zero
 *     report       5 x  8       of the bandwidth: bytes, iterations, peak, average (MiB/s), message rate (millions)
 *
 * Seen in captures of perftest 4.5 (version 6.06) over soft-RoCE and soft-iWARP. */
#ifndef RDMATRACE_DISSECT_ULP_PERFTEST_H
#define RDMATRACE_DISSECT_ULP_PERFTEST_H

#include "dissect/ulp/ulp.h"

/* Messages; PERFTEST_BYTES to PERFTEST_RATE are the parts of a report. */
enum perftest_kind {
    PERFTEST_VERSION_TEXT,
    PERFTEST_BUFFER,
    PERFTEST_LINE,
    PERFTEST_MTU_CODE,
    PERFTEST_KEYS,
    PERFTEST_BYTES,
    PERFTEST_ITERATIONS,
    PERFTEST_PEAK,
    PERFTEST_AVERAGE,
    PERFTEST_RATE,
    PERFTEST_KINDS
};
#define PERFTEST_LEN_MAX 56                                /* bytes of the longest one */
#define PERFTEST_PARTS   (PERFTEST_KINDS - PERFTEST_BYTES) /* of a report */

/* Keys, 56 bytes:
 *   0       4           8       12      16      20      24              32              48      52      56
 *   +-------+-----------+-------+-------+-------+-------+---------------+---------------+-------+-------+
 *   |  LID  | READs out |  QPN  |  PSN  | R_Key |unused |    address    |      GID      | SRQN  | index |
 *   +-------+-----------+-------+-------+-------+-------+---------------+---------------+-------+-------+ */
struct perftest_message {
    uint8_t kind;      /* enum perftest_kind */
    char version[17];  /* of a version, printable, with its zero byte */
    uint64_t number;   /* of all but version and keys; peak, average and rate: bits of an IEEE double */
    uint32_t qpn, psn; /* of keys; 24 bits each */
    uint32_t rkey;     /* likewise; 0 of SEND tests */
    uint64_t va;       /* likewise */
};
/* The kind of message of `len` bytes at the n-th place of its length (from 0); PERFTEST_KINDS: there is none. */
enum perftest_kind perftest_kind_of(uint32_t len, unsigned n);
/* Read a message of a kind, which has the bytes that this kind has. */
void perftest_get(struct perftest_message *m, enum perftest_kind kind, const uint8_t *b);
/* "Version", "Keys". */
const char *perftest_kind_str(enum perftest_kind kind);
/* A strict test of a SEND's bytes (`whole`: all of them): LOOKS_FIRST_EITHER for a version, LOOKS_EITHER for the keys
 * of a queue pair. */
enum ulp_looks perftest_looks(const uint8_t *b, uint32_t len, bool whole);
void perftest_layers(struct pkt *p, const struct ulp_body *body, enum perftest_kind kind);

/* clang-format off */
#define PERFTEST_HDRS(X) X(perftest_version) X(perftest_buffer) X(perftest_line) X(perftest_mtu) X(perftest_keys) \
    X(perftest_bytes) X(perftest_iterations) X(perftest_peak) X(perftest_average) X(perftest_rate)
/* clang-format on */
#define PERFTEST_DECLARE(name) extern const struct hdr name##_hdr;
PERFTEST_HDRS(PERFTEST_DECLARE)

#endif
