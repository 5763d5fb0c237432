/* layer 1 (wire): NVMe: rows of structures that commands move and of values of features, all little-endian. */
#ifndef RDMATRACE_DISSECT_ULP_NVME_ROWS_H
#define RDMATRACE_DISSECT_ULP_NVME_ROWS_H

#include "dissect/ulp/nvme.h"
#include "dissect/ulp/upper_hdr.h"

/* The file that has the rows defines NAME, with which the filter names of a structure begin.
 *
 * A number of `bytes` bytes at byte `at`; `bits` bits of it from bit `shift` on (0 bits: all); one bit that says yes or
 * no; reserved bits, which FT_UINT`width` prints; bytes or text; reserved bytes. */
#define NUM(at, bytes, type, base, desc, name, label, blurb)                                                           \
    FIELD_LE(NULL, at, bytes, type, base, desc, NAME name, label, blurb)
#define BITS(at, bytes, shift, bits, type, base, desc, name, label, blurb)                                             \
    LE_BITS(NULL, at, bytes, shift, bits, type, base, desc, NAME name, label, blurb)
#define FLAG(at, bytes, shift, name, label)                                                                            \
    LE_BITS(NULL, at, bytes, shift, 1, FT_BOOL, BASE_NONE, NULL, NAME name, label, "1: yes.")
#define RSVD(at, bytes, shift, bits, width, name)                                                                      \
    LE_BITS(NULL, at, bytes, shift, bits, FT_UINT##width, BASE_HEX, NULL, NAME name, "Reserved", "Reserved.")
#define RAW(at, bytes, type, name, label, blurb) FIELD_AT(NULL, at, bytes, type, NAME name, label, blurb)
#define PAD(at, bytes, name)                     FIELD_AT(NULL, at, bytes, FT_BYTES, NAME name, "Reserved", "Reserved.")

#define HDR(id, filter_name, title, protocol, bytes) UPPER_HDR(id, filter_name, title, protocol, "NVMe", bytes)

#endif
