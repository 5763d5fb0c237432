/* layer 2b (conn): internal: the table of flows and learnt connections. */
#ifndef RDMATRACE_CONN_CONN_IMPL_H
#define RDMATRACE_CONN_CONN_IMPL_H

#include "src/conn/conn.h"

#define KNOWN_MAX 4096 /* connections learnt beforehand and kept */
#define RECENT    64   /* flows that are found without a search; a power of two */

struct conn_table {
    struct flow *flows;
    uint32_t *chains;      /* by hash of the flow's key */
    uint32_t *pair_chains; /* by hash of source and destination address */
    uint32_t mask;         /* of both */
    uint32_t n, max, hand;
    uint32_t conns;          /* numbers given */
    uint32_t unused;         /* numbers of connections that turned out to have another number already */
    uint32_t newest;         /* flow of the latest packet, if this packet was its first; else FLOW_NONE */
    uint32_t recent[RECENT]; /* flows of recent packets, by recent_slot() */
    uint64_t evicted;
    struct conn_known known[KNOWN_MAX];
    uint32_t n_known, known_at;
    struct renumbered *renumbered; /* by `from` if sorted */
    uint32_t n_renumbered, renumbered_cap;
    bool renumbered_sorted;
    void *user;
    conn_flow_over *over;
    conn_has_psn *has_psn;
};

/* Hash of two addresses (of their lower halves) and a number. */
static inline uint32_t hash_of(const struct conn_addr *src, const struct conn_addr *dst, uint32_t n)
{
    uint64_t h = load_le64(src->b + 8) * HASH_MULTIPLIER ^ load_le64(dst->b + 8) * UINT64_C(0xc2b2ae3d27d4eb4f) ^
                 n * UINT64_C(0x165667b19e3779f9);

    return (uint32_t)(h >> 32 ^ h >> 12);
}

static inline bool addr_eq(const struct conn_addr *a, const struct conn_addr *b)
{
    return load_le64(a->b + 8) == load_le64(b->b + 8) && load_le64(a->b) == load_le64(b->b);
}

/* Head of the chain of the flows from `src` to `dst` (flow.pair_next). */
static inline uint32_t *conn_pair_chain(struct conn_table *t, const struct conn_addr *src, const struct conn_addr *dst)
{
    return &t->pair_chains[hash_of(src, dst, UINT32_MAX) & t->mask];
}

/* What identifies a flow. */
struct conn_key {
    struct conn_addr src, dst;
    uint32_t tap, dqpn;
};
/* The flow of a key; FLOW_NONE: there is none. */
uint32_t conn_find(const struct conn_table *t, const struct conn_key *k);
/* Flows `a` and `b` are the two directions of a connection. */
void conn_join(struct conn_table *t, uint32_t a, uint32_t b, enum pairing how);
/* Apply to a new flow what was learnt of its connection (conn_known.c). */
void conn_recall(struct conn_table *t, uint32_t flow);

#endif
