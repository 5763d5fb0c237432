/* layer 1 (wire): attribute tables and dissectors of the management classes, for the table of classes in mad.c. */
#ifndef RDMATRACE_DISSECT_MAD_TABLES_H
#define RDMATRACE_DISSECT_MAD_TABLES_H

#include "dissect/mad/mad.h"

/* Ids of attributes that all classes have. */
#define ATTR_CLASSPORTINFO 0x0001
#define ATTR_NOTICE        0x0002
#define ATTR_INFORMINFO    0x0003

/* Attributes by class; each table ends with a row without a name. other_attrs: only those that all classes have. */
extern const struct mad_attr smp_attrs[], sa_attrs[], perf_attrs[], bm_attrs[], devmgt_attrs[], cc_attrs[],
    other_attrs[];

/* Subnet management, LID-routed and directed-route. */
void smp_decode(struct pkt *p, uint32_t off, const struct mad *m);
/* Subnet administration: RMPP header, SA header and records. */
void sa_decode(struct pkt *p, uint32_t off, const struct mad *m);
/* Congestion control. */
void cc_decode(struct pkt *p, uint32_t off, const struct mad *m);

/* True for the vendor classes with an RMPP header and an OUI: 0x30 to 0x4f. */
bool mad_has_oui(uint8_t class);
/* Decode the MAD at `off` of such a vendor class. */
void vendor_decode(struct pkt *p, uint32_t off);

/* Add the layer of the RMPP header at `off` and return its bytes; NULL if it was not captured in full. */
const uint8_t *rmpp_decode(struct pkt *p, uint32_t off);

/* Decode a notice of `len` bytes at `off` in management class `class`: its header, the details by trap number, and the
 * issuer GID if `len` includes it. */
void notice_decode(struct pkt *p, uint32_t off, uint32_t len, uint8_t class);
/* If the packet has a notice, append its trap, " trap 128 link state changed", or vendor and device of a notice that is
 * not generic. */
void notice_info(struct buf *b, const struct pkt *p);

#endif
