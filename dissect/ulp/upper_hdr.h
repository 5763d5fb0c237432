/* layer 1 (wire): headers of upper protocols, which are read from a message and not from one packet. */
#ifndef RDMATRACE_DISSECT_ULP_UPPER_HDR_H
#define RDMATRACE_DISSECT_ULP_UPPER_HDR_H

#include "dissect/field.h"

/* Define header `id`_hdr with the fields of `id`_fields: its filter name and title, the protocol of frame.protocols,
 * what the column of protocols shows (NULL: nothing of it), and its length in bytes (0: it varies). */
#define UPPER_HDR(id, filter_name, title, protocol, shown, bytes)                                                      \
    const struct hdr id##_hdr = {.abbrev = filter_name,                                                                \
                                 .name = title,                                                                        \
                                 .proto = protocol,                                                                    \
                                 .column = shown,                                                                      \
                                 .fields = id##_fields,                                                                \
                                 .nfields = ARRAY_LEN(id##_fields),                                                    \
                                 .len = bytes,                                                                         \
                                 .type = FT_NONE,                                                                      \
                                 .upper = true}

#endif
