/* layer 2b (conn): the addresses between which a connection runs, whatever the encapsulation. */
#ifndef RDMATRACE_CONN_ADDR_H
#define RDMATRACE_CONN_ADDR_H

#include "buf.h"

struct pkt;

/* An address of 16 bytes: IPv6 or GID as they are, IPv4 mapped (::ffff:a.b.c.d), a LID as ::lid. */
struct conn_addr {
    uint8_t b[16];
};
/* Source and destination of a packet: its IP addresses or GIDs, else its LIDs; without any, ::. */
void conn_addr_of(const struct pkt *p, struct conn_addr *src, struct conn_addr *dst);
/* Whether two addresses are equal. */
static inline bool conn_addr_eq(const struct conn_addr *a, const struct conn_addr *b)
{
    return memcmp(a->b, b->b, sizeof a->b) == 0;
}
/* Append an address: IPv4, IPv6, or "lid 5". */
void conn_addr_put(struct buf *b, const struct conn_addr *a);
/* Append an end of a connection: "10.0.0.1 0x000011", address and QPN; the address alone without a QPN. */
void conn_end_put(struct buf *b, const struct conn_addr *a, bool have_qpn, uint32_t qpn);

#endif
