/* layer 2b (conn): the addresses between which a connection runs, whatever the encapsulation. */
#ifndef RDMATRACE_CONN_ADDR_H
#define RDMATRACE_CONN_ADDR_H

#include "bits.h"
#include "buf.h"

struct pkt;

/* An address of 16 bytes: IPv6 or GID as they are, IPv4 mapped (::ffff:a.b.c.d), a LID as ::lid. */
struct conn_addr {
    uint8_t b[16];
    uint64_t network; /* number of the network in which it is valid; 0: there is only one (pkt.network) */
};
/* Source and destination of a packet: its IP addresses or GIDs, else its LIDs; without any, ::. */
void conn_addr_of(const struct pkt *p, struct conn_addr *src, struct conn_addr *dst);
/* Whether two addresses are equal, in the same network. */
static inline bool conn_addr_eq(const struct conn_addr *a, const struct conn_addr *b)
{
    return memcmp(a->b, b->b, sizeof a->b) == 0 && a->network == b->network;
}
/* Whether packets from `src` to `dst` go the way of those from `from` to `to`. */
static inline bool is_same_way(const struct conn_addr *src, const struct conn_addr *dst, const struct conn_addr *from,
                               const struct conn_addr *to)
{
    return conn_addr_eq(src, from) && conn_addr_eq(dst, to);
}
/* Whether two addresses are equal, whatever their networks: one that was read elsewhere (in an option, in a log) names
 * none. */
static inline bool conn_addr_alike(const struct conn_addr *a, const struct conn_addr *b)
{
    return memcmp(a->b, b->b, sizeof a->b) == 0;
}
/* The 64-bit numbers of an address, for hashes. */
#define CONN_ADDR_WORDS 2
static inline void conn_addr_words(const struct conn_addr *a, uint64_t v[CONN_ADDR_WORDS])
{
    memcpy(v, a->b, sizeof a->b);
    v[0] ^= a->network * HASH_MULTIPLIER;
}
/* A hash of an address, whatever its network. */
static inline uint64_t conn_addr_hash(const struct conn_addr *a)
{
    uint64_t v[CONN_ADDR_WORDS], h;

    memcpy(v, a->b, sizeof a->b);
    h = (v[0] * HASH_MULTIPLIER ^ v[1]) * HASH_MULTIPLIER;
    return (h ^ h >> 32) * HASH_MULTIPLIER;
}
/* A hash of a pair of addresses, the same in both orders. */
static inline uint64_t conn_pair_hash(const struct conn_addr *a, const struct conn_addr *b)
{
    return conn_addr_hash(a) + conn_addr_hash(b);
}
/* The owner of a pair of addresses: connections are shared out among processes by owners, 0 to CONN_OWNERS - 1. */
#define CONN_OWNERS 256
static inline unsigned conn_owner(const struct conn_addr *a, const struct conn_addr *b)
{
    return (unsigned)(conn_pair_hash(a, b) >> 56);
}
/* The same at the taps of file number `file`: what a pair sends in each of several files is followed by owners of its
 * own, as what is kept of a flow is that of its tap. */
#define CONN_OWNERS_STEP 159 /* odd, near the golden section: owners of a pair in few files lie far apart */
static inline unsigned conn_owner_in(const struct conn_addr *a, const struct conn_addr *b, uint32_t file)
{
    return (conn_owner(a, b) + file * CONN_OWNERS_STEP) % CONN_OWNERS;
}
/* A set of owners. */
struct conn_owners {
    uint64_t of[CONN_OWNERS / 64];
};
static inline bool conn_owners_has(const struct conn_owners *s, unsigned owner)
{
    return s->of[owner / 64] >> owner % 64 & 1;
}
/* Append an address without its network: IPv4, IPv6, or "lid 5". */
void conn_addr_put(struct buf *b, const struct conn_addr *a);
/* The same as a JSON string with its quotes. */
void conn_addr_json(struct buf *b, const struct conn_addr *a);
/* Append an end of a connection: "10.0.0.1 0x000011", address and QPN; the address alone without a QPN. */
void conn_end_put(struct buf *b, const struct conn_addr *a, bool have_qpn, uint32_t qpn);
/* Parse an IPv6 address, or an IPv4 address as a mapped one. False if it is neither. */
bool conn_addr_parse(const char *text, struct conn_addr *a);
/* Parse "ADDRESS:QPN", `n` bytes; an IPv6 address may be in brackets. False if it is not that. */
bool conn_end_parse(const char *s, size_t n, struct conn_addr *a, uint32_t *qpn);

#endif
