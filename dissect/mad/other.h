/* layer 1 (wire): vendor classes, and attributes that are not decoded further. */
#ifndef RDMATRACE_DISSECT_MAD_OTHER_H
#define RDMATRACE_DISSECT_MAD_OTHER_H

#include "dissect/mad/mad.h"

/* Bytes of an attribute whose layout is not known, any length. */
#define MADBYTES_FIELDS(U, A, V)                                                                                       \
    V(NULL, 0, 0, FT_BYTES, BASE_NONE, NULL, "rdma.mad.attributedata", "Data", "Data as it is.")

/* OUI after the RMPP header of vendor classes 0x30 to 0x4f, 4 bytes (kernel rdma/ib_mad.h). */
#define VENDOROUI_FIELDS(U, A, V)                                                                                      \
    U(uint8_t, reserved, 0, 8, FT_UINT8, BASE_HEX, NULL, "rdma.mad.reserved", "Reserved", "Zero.")                     \
    U(uint32_t, oui, 8, 24, FT_UINT24, BASE_HEX, NULL, "rdma.mad.oui", "OUI", "Vendor that defines the class.")

/* All headers of this file: NAME_hdr. */
#define MAD_OTHER_HDRS(X) X(madbytes) X(vendoroui)
MAD_OTHER_HDRS(HDR_EXTERN)

#endif
