/* layer 1 (wire): 9P over RDMA: each SEND is one message of 9P, little-endian.
 *
 *    0          4      5        7
 *   +----------+------+--------+------
 *   | bytes (4)| type | tag (2)| body       a request has an even type, its response the next one
 *   +----------+------+--------+------
 *
 * Source: the kernel's net/9p/trans_rdma.c and include/net/9p/9p.h; no capture was at hand. Of the bodies only those of
 * fixed layout are read. Names of fields are tshark's, which decodes 9P over TCP only. */
#ifndef RDMATRACE_DISSECT_FILE_P9_H
#define RDMATRACE_DISSECT_FILE_P9_H

#include "dissect/ulp/ulp.h"

#define P9_LEN 7
enum {
    P9_RLERROR = 7,
    P9_TREADDIR = 40,
    P9_RREADDIR = 41,
    P9_RERROR = 107,
    P9_TREAD = 116,
    P9_RREAD = 117,
    P9_TWRITE = 118,
    P9_RWRITE = 119,
};

struct p9 {
    uint32_t size; /* of the whole message */
    uint8_t type;
    uint16_t tag;
    bool has_fid; /* of a request: `fid` */
    uint32_t fid;
    bool has_count;  /* of Tread, Twrite, Treaddir and their responses */
    uint32_t count;  /* bytes of data */
    uint64_t offset; /* of a request with `count` */
    uint32_t error;  /* of Rlerror: errno */
};
/* False: fewer than P9_LEN bytes, a type that is not known, or another size than `len` (`whole`: all of it is there).
 */
bool p9_get(struct p9 *m, const uint8_t *b, uint32_t len, bool whole);
/* "read", "walk"; NULL: not known. Without the T or R of its type. */
const char *p9_name_str(uint8_t type);
/* A test: the size that a message states is its own, and its type is known. */
enum ulp_looks p9_looks(const uint8_t *b, uint32_t len, bool whole);
void p9_layers(struct pkt *p, const struct ulp_body *body);

/* clang-format off */
#define P9_HDRS(X) X(p9)
/* clang-format on */
#define P9_DECLARE(name) extern const struct hdr name##_hdr;
P9_HDRS(P9_DECLARE)

#endif
