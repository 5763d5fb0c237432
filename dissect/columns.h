/* layer 1 (wire): the columns of a packet list. */
#ifndef RDMATRACE_COLUMNS_H
#define RDMATRACE_COLUMNS_H

#include "dissect/pkt.h"

/* Protocol column: "RRoCE", "RoCE", "InfiniBand", "CM", "ARP", "TCP" ... */
const char *pkt_column(const struct pkt *p);
/* Info column: one line for people. */
void pkt_info(struct buf *b, const struct pkt *p);
/* Source and destination column: the address that the innermost layer with one has (IP, GID, LID, MAC). */
void pkt_source(struct buf *b, const struct pkt *p);
void pkt_destination(struct buf *b, const struct pkt *p);

#endif
