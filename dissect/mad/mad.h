/* layer 1 (wire): the common header of management datagrams (IBTA volume 1, 13.4.2; kernel rdma/ib_mad.h). */
#ifndef RDMATRACE_DISSECT_MAD_MAD_H
#define RDMATRACE_DISSECT_MAD_MAD_H

#include "dissect/field.h"

struct pkt;

#define MAD_LEN     256
#define MAD_HDR_LEN 24

extern const struct vdesc mad_class_desc, mad_method_desc, mad_status_desc, sa_status_desc;
/* Conditions of the views of the MAD header at `p` (`len` bytes captured), by management class. */
bool mad_is_dr(const uint8_t *p, uint32_t len);    /* directed-route SMP */
bool mad_is_sa(const uint8_t *p, uint32_t len);    /* subnet administration (SA) */
bool mad_is_other(const uint8_t *p, uint32_t len); /* any other class */

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
      "Attribute Modifier", "Qualifies the attribute.")                                                                \
    V(NULL, 47, 1, FT_BOOL, BASE_DEC, NULL, "rdma.mad.status.busy", "Busy", "The datagram was dropped: try again.")    \
    V(NULL, 46, 1, FT_BOOL, BASE_DEC, NULL, "rdma.mad.status.redirect", "Redirect",                                    \
      "ClassPortInfo of the response says where to ask.")                                                              \
    V(NULL, 43, 3, FT_UINT8, BASE_HEX, &mad_status_desc, "rdma.mad.status.code", "Status Code", "What was invalid.")   \
    V(mad_is_other, 32, 8, FT_UINT8, BASE_HEX, NULL, "rdma.mad.status.class", "Class Status", "Status of the class.")  \
    V(mad_is_sa, 32, 8, FT_UINT8, BASE_HEX, &sa_status_desc, "rdma.mad.status.class", "Class Status",                  \
      "Status of the class.")                                                                                          \
    V(mad_is_dr, 33, 7, FT_UINT8, BASE_HEX, NULL, "rdma.mad.status.class", "Class Status", "Status of the class.")     \
    V(mad_is_dr, 32, 1, FT_UINT64, BASE_HEX, NULL, "infiniband.smpdirected.d", "D (Direction Bit)",                    \
      "0: on the way out, 1: on the way back.")                                                                        \
    V(mad_is_dr, 32, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.smpdirected.smpstatus", "Status",                      \
      "Status with the direction bit.")                                                                                \
    V(mad_is_dr, 48, 8, FT_UINT8, BASE_HEX, NULL, "infiniband.smpdirected.hoppointer", "Hop Pointer",                  \
      "Entry of the path that the packet has got to.")                                                                 \
    V(mad_is_dr, 56, 8, FT_UINT8, BASE_HEX, NULL, "infiniband.smpdirected.hopcount", "Hop Count",                      \
      "Hops of the directed route.")
HDR_STRUCT(mad, MAD_FIELDS)

extern const struct hdr mad_hdr;

/* An attribute of a class: its id, its name and the headers that it consists of, one after the other. */
#define MAD_PARTS 3
struct mad_attr {
    uint16_t id;
    const char *name;
    const struct hdr *parts[MAD_PARTS]; /* the first NULL ends them; without parts the attribute is shown as bytes */
};

/* A management class: how its datagrams are decoded, and the names of its attributes. */
struct mad_class {
    uint8_t class;
    const char *name; /* as in "SubnAdm GetResp(PathRecord)" */
    void (*decode)(struct pkt *p, uint32_t off,
                   const struct mad *m); /* decode the MAD at `off` with header `m`; NULL: `table`, or bytes */
    const struct vdesc *attrs;           /* names of attribute ids that are not in `table`; may be NULL */
    const struct mad_attr *table;        /* attributes; ends with a row without a name; may be NULL */
    uint16_t data_off;                   /* with `table`: offset of the attribute in the MAD, bytes */
};
/* The row of attribute `id` in `table` (NULL: empty), which ends with a row without a name; NULL if there is none. */
const struct mad_attr *mad_attr_find(const struct mad_attr *table, uint16_t id);
/* Add the layers of attribute `a`, `len` bytes at `off`. Without parts, or with `a` NULL, it is shown as bytes. A part
 * that is longer than the bytes that are left is cut. */
void mad_attr_decode(struct pkt *p, uint32_t off, uint32_t len, const struct mad_attr *a);

/* Define the field table and the `struct hdr` of a part of a datagram from its list of fields. */
#define MAD_PART(id, LIST, filter_name, title, bytes, tshark_type)                                                     \
    HDR_TABLE(id, LIST)                                                                                                \
    const struct hdr id##_hdr = {                                                                                      \
        .abbrev = filter_name,                                                                                         \
        .name = title,                                                                                                 \
        .proto = "infiniband",                                                                                         \
        .fields = id##_fields,                                                                                         \
        .nfields = ARRAY_LEN(id##_fields),                                                                             \
        .len = bytes,                                                                                                  \
        .type = tshark_type,                                                                                           \
    };
/* Arguments of the lists NAME_HDRS(X): HDR_EXTERN declares each header, HDR_REF gives a pointer to each header. */
#define HDR_EXTERN(name) extern const struct hdr name##_hdr;
#define HDR_REF(name)    &name##_hdr,

#endif
