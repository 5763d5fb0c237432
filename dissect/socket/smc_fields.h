/* layer 1 (wire): rows of fields of SMC-R messages, by byte or bit. */
#ifndef RDMATRACE_DISSECT_SOCKET_SMC_FIELDS_H
#define RDMATRACE_DISSECT_SOCKET_SMC_FIELDS_H

#include "dissect/ulp/upper_hdr.h"

#define NUMBER(when, at, bytes, type, base, desc, abbrev, label, blurb)                                                \
    FIELD_ROW(when, 8 * (at), 8 * (bytes), type, base, desc, 0, abbrev, label, blurb)
#define BYTE(at, base, abbrev, label, blurb)  NUMBER(NULL, at, 1, FT_UINT8, base, NULL, abbrev, label, blurb)
#define HALF(at, base, abbrev, label, blurb)  NUMBER(NULL, at, 2, FT_UINT16, base, NULL, abbrev, label, blurb)
#define WORD(when, at, abbrev, label, blurb)  NUMBER(when, at, 4, FT_UINT32, BASE_HEX, NULL, abbrev, label, blurb)
#define LONG(when, at, abbrev, label, blurb)  NUMBER(when, at, 8, FT_UINT64, BASE_HEX, NULL, abbrev, label, blurb)
#define FLAG(when, bit, abbrev, label, blurb) FIELD_ROW(when, bit, 1, FT_BOOL, BASE_NONE, NULL, 0, abbrev, label, blurb)
#define BITS(bit, n, desc, abbrev, label, blurb)                                                                       \
    FIELD_ROW(NULL, bit, n, FT_UINT8, BASE_DEC, desc, 0, abbrev, label, blurb)

#endif
