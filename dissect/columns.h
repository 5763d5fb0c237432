/* layer 1 (wire): the columns of a packet list. */
#ifndef RDMATRACE_COLUMNS_H
#define RDMATRACE_COLUMNS_H

#include "buf.h"

struct pkt;

/* Protocol column: "RRoCE", "RoCE", "InfiniBand", "CM", "ARP", "TCP" ... */
const char *pkt_column(const struct pkt *p);
/* Append the Info column: the packet in one line. */
void pkt_info(struct buf *b, const struct pkt *p);
/* Append the Source or Destination column: the innermost IP address or GID, else the LID, else the MAC address. */
void pkt_source(struct buf *b, const struct pkt *p);
void pkt_destination(struct buf *b, const struct pkt *p);

#endif
