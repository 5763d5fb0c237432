/* layer 1 (wire): what the management classes give to the table of classes in mad.c. */
#ifndef RDMATRACE_DISSECT_MAD_TABLES_H
#define RDMATRACE_DISSECT_MAD_TABLES_H

#include "dissect/mad/mad.h"

/* Attributes that all classes have. */
#define ATTR_CLASSPORTINFO 0x0001
#define ATTR_NOTICE        0x0002
#define ATTR_INFORMINFO    0x0003

/* Attributes by class; each list ends with a row without a name. other_attrs: those that all classes have. */
extern const struct mad_attr smp_attrs[], sa_attrs[], perf_attrs[], bm_attrs[], devmgt_attrs[], cc_attrs[],
    other_attrs[];

/* Subnet management, LID-routed and directed-route. */
void smp_decode(struct pkt *p, uint32_t off, const struct mad *m);
/* Subnet administration: RMPP header, SA header and records. */
void sa_decode(struct pkt *p, uint32_t off, const struct mad *m);
/* Congestion control. */
void cc_decode(struct pkt *p, uint32_t off, const struct mad *m);

/* Whether a class has an RMPP header and an OUI: 0x30 to 0x4f. */
bool mad_has_oui(uint8_t class);
/* A datagram at `off` of such a class. */
void vendor_decode(struct pkt *p, uint32_t off);

/* The RMPP header at `off`; NULL if it is not all there. */
const uint8_t *rmpp_decode(struct pkt *p, uint32_t off);

/* A notice that has `len` bytes at `off`, in class `class`: its header, details by trap number, issuer GID if there is
 * room. */
void notice_decode(struct pkt *p, uint32_t off, uint32_t len, uint8_t class);
/* Append the name of the trap, if the packet holds a generic notice: " trap 128 link state changed". */
void notice_info(struct buf *b, const struct pkt *p);

#endif
