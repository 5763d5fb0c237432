/* layer 1 (wire): subnet administration: headers of the class (OpenSM ib_types.h, kernel rdma/ib_sa.h). */
#ifndef RDMATRACE_DISSECT_MAD_SA_H
#define RDMATRACE_DISSECT_MAD_SA_H

#include "dissect/mad/mad.h"

/*
 * SA header, 20 bytes after the RMPP header; records follow at byte 56 of the MAD.
 *   0                                 16                                32
 *   +---------------------------------+---------------------------------+
 *   |                         SM_Key (64)                               |
 *   +---------------------------------+---------------------------------+
 *   |  attribute offset (8 bytes)     |           reserved              |
 *   +---------------------------------+---------------------------------+
 *   |                         component mask (64)                       |
 *   +-------------------------------------------------------------------+
 */
#define SAHDR_FIELDS(U, A, V)                                                                                          \
    U(uint64_t, smkey, 0, 64, FT_UINT64, BASE_HEX, NULL, "infiniband.sa.smkey", "SM_Key (Verification Key)",           \
      "Key that gives trusted access.")                                                                                \
    U(uint16_t, attributeoffset, 64, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.sa.attributeoffset",                   \
      "Attribute Offset", "Distance of records in units of 8 bytes.")                                                  \
    U(uint16_t, reserved, 80, 16, FT_UINT16, BASE_HEX, NULL, "rdma.sa.reserved", "Reserved", "Zero.")                  \
    U(uint64_t, componentmask, 96, 64, FT_UINT64, BASE_HEX, NULL, "infiniband.sa.componentmask", "Component Mask",     \
      "Components of the record that count, bit 0 is the first.")

/* All headers of this file: NAME_hdr. */
#define SA_HDRS(X) X(sahdr)
SA_HDRS(HDR_EXTERN)

#define SA_RMPP_OFF 24
#define SA_HDR_OFF  36
#define SA_HDR_LEN  20
#define SA_DATA_OFF 56
#define SA_DATA_LEN 200
HDR_STRUCT(sahdr, SAHDR_FIELDS)

#endif
