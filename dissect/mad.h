/* layer 1 (wire): the common header of management datagrams (IBTA volume 1, 13.4.2; kernel rdma/ib_mad.h). */
#ifndef RDMATRACE_MAD_H
#define RDMATRACE_MAD_H

#include "dissect/field.h"

struct pkt;

#define MAD_LEN 256
#define MAD_HDR_LEN 24

extern const struct vdesc mad_class_desc, mad_method_desc;

/*
 * MAD header, 24 bytes.
 *   0                8                16               24               32
 *   +----------------+----------------+----------------+----------------+
 *   |  base version  |  class         |  class version |     method     |
 *   +----------------+----------------+----------------+----------------+
 *   |             status              |        class specific           |
 *   +---------------------------------+---------------------------------+
 *   |                       transaction id (64)                         |
 *   +---------------------------------+---------------------------------+
 *   |          attribute id           |           reserved              |
 *   +---------------------------------+---------------------------------+
 *   |                        attribute modifier                         |
 *   +-------------------------------------------------------------------+
 */
#define MAD_FIELDS(U, A, V)                                                                                            \
    U(uint8_t, base_version, 0, 8, FT_UINT8, BASE_HEX, NULL, "infiniband.mad.baseversion", "Base Version", "1.")       \
    U(uint8_t, mgmt_class, 8, 8, FT_UINT8, BASE_HEX, &mad_class_desc, "infiniband.mad.mgmtclass", "Management Class",  \
      "Class of management.")                                                                                          \
    U(uint8_t, class_version, 16, 8, FT_UINT8, BASE_HEX, NULL, "infiniband.mad.classversion", "Class Version",         \
      "Version of the class.")                                                                                         \
    U(uint8_t, method, 24, 8, FT_UINT8, BASE_HEX, &mad_method_desc, "infiniband.mad.method", "Method",                 \
      "What to do; the upper bit marks a response.")                                                                   \
    U(uint16_t, status, 32, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.mad.status", "Status", "0 is good.")            \
    U(uint16_t, class_specific, 48, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.mad.classspecific", "Class Specific",   \
      "Hop pointer and count in directed-route SMPs.")                                                                 \
    U(uint64_t, tid, 64, 64, FT_UINT64, BASE_HEX, NULL, "infiniband.mad.transactionid", "Transaction ID",              \
      "Joins a response to its request.")                                                                              \
    U(uint16_t, attr_id, 128, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.mad.attributeid", "Attribute ID",             \
      "What the datagram is about.")                                                                                   \
    U(uint16_t, resv, 144, 16, FT_UINT16, BASE_HEX, NULL, "rdma.mad.reserved", "Reserved", "Zero.")                    \
    U(uint32_t, attr_mod, 160, 32, FT_UINT32, BASE_HEX, NULL, "infiniband.mad.attributemodifier",                      \
      "Attribute Modifier", "Qualifies the attribute.")
HDR_STRUCT(mad, MAD_FIELDS)

extern const struct hdr mad_hdr;

/* A management class: how its datagrams go on, and what its attributes are called. */
struct mad_class {
    uint8_t class;
    const char *name;                                                  /* as in "SubnAdm GetResp(PathRecord)" */
    void (*decode)(struct pkt *p, uint32_t off, const struct mad *m); /* `off`: of the MAD; m: its header. NULL: not decoded */
    const struct vdesc *attrs;                                         /* names of attribute ids; NULL: none known */
};
/* The row of a class; NULL for a class without one. */
const struct mad_class *mad_class_find(uint8_t class);

#endif
