/* layer 2b (conn): internal: the table of flows and learnt connections. */
#ifndef RDMATRACE_CONN_CONN_IMPL_H
#define RDMATRACE_CONN_CONN_IMPL_H

#include "bits.h"
#include "bitset.h"
#include "src/conn/conn.h"

struct known;
struct paths;
struct psn_index;

#define RECENT 64 /* flows that are found without a search; a power of two */

struct conn_table {
    struct flow *flows;
    /* first flow of each chain, by hash; the same flow at other taps is in the same chain BY_KEY */
    uint32_t *chains[FLOW_CHAINS];
    uint32_t mask; /* of each */
    uint32_t n, max, hand;
    uint32_t conns;          /* numbers given */
    uint32_t unused;         /* numbers of connections that turned out to have another number already */
    uint32_t newest;         /* flow of the latest packet, if this packet was its first; else FLOW_NONE */
    uint32_t recent[RECENT]; /* flows of recent packets, by recent_slot() */
    uint64_t evicted;
    struct bitset taken; /* numbers of connections without flows */
    struct known *known;
    struct paths *paths;
    struct psn_index *psns;
    struct renumbered *renumbered; /* by `from` if sorted */
    uint32_t n_renumbered, renumbered_cap;
    bool renumbered_sorted;
    void *user;
    conn_flow_over *over;
    conn_has_psn *has_psn;
    conn_goes_on *goes_on;
    void (*numbered)(void *user, enum conn_numbered what, uint32_t a, uint32_t b); /* NULL: nobody asks */
    void *numbered_user;
    void (*changed)(void *user, const struct conn_change *c); /* NULL: nobody asks */
    void *changed_user;
};

/* Hash of two addresses (of their lower halves) and a number. */
static inline uint32_t hash_of(const struct conn_addr *src, const struct conn_addr *dst, uint32_t n)
{
    uint64_t h = load_le64(src->b + 8) * HASH_MULTIPLIER ^ load_le64(dst->b + 8) * UINT64_C(0xc2b2ae3d27d4eb4f) ^
                 n * UINT64_C(0x165667b19e3779f9);

    return (uint32_t)((h ^ h >> 32) * HASH_MULTIPLIER >> 32);
}

static inline bool addr_eq(const struct conn_addr *a, const struct conn_addr *b)
{
    return load_le64(a->b + 8) == load_le64(b->b + 8) && load_le64(a->b) == load_le64(b->b) && a->network == b->network;
}

/* Head of the chain of the flows from `src` to `dst`, BY_PAIR. */
static inline uint32_t *conn_pair_chain(const struct conn_table *t, const struct conn_addr *src,
                                        const struct conn_addr *dst)
{
    return &t->chains[BY_PAIR][hash_of(src, dst, UINT32_MAX) & t->mask];
}

/* Head of the chain of the flows to queue pair `dqpn`, whatever its host, at `tap`, BY_QPN. */
static inline uint32_t *conn_qpn_chain(const struct conn_table *t, uint32_t tap, uint32_t dqpn)
{
    return &t->chains[BY_QPN][((dqpn + tap) * HASH_MULTIPLIER) >> 40 & t->mask];
}

/* The first of the flows among which are those from `src` to queue pair `dqpn` of `dst`; in a chain BY_KEY. */
static inline uint32_t conn_first_with(const struct conn_table *t, const struct conn_addr *src,
                                       const struct conn_addr *dst, uint32_t dqpn)
{
    return t->chains[BY_KEY][hash_of(src, dst, dqpn) & t->mask];
}

/* The flow behind `flow` in a chain. */
static inline uint32_t conn_next_in(const struct conn_table *t, enum flow_chain c, uint32_t flow)
{
    return t->flows[flow].in[c].next;
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
/* A new flow. */
uint32_t conn_begin(struct conn_table *t, const struct conn_key *k);
/* Apply to a new flow what was learnt of its connection (conn_known.c). */
void conn_recall(struct conn_table *t, uint32_t flow);

static inline void conn_numbered(const struct conn_table *t, enum conn_numbered what, uint32_t a, uint32_t b)
{
    if (t->numbered)
        t->numbered(t->numbered_user, what, a, b);
}

/* Tell whoever asks: conn_on_changed(). */
void conn_tell_changed(const struct conn_table *t, enum conn_change_kind what, uint32_t flow, uint32_t other);
static inline void conn_changed(const struct conn_table *t, enum conn_change_kind what, uint32_t flow, uint32_t other)
{
    if (UNLIKELY(t->changed != NULL))
        conn_tell_changed(t, what, flow, other);
}

/* --- Numbers ------------------------------------------------------------------------------------- */

/* Flows `a` and `b` belong to one connection: those of both that have a number get number `to`, at every tap. */
void conn_renumber(struct conn_table *t, const struct flow *a, const struct flow *b, uint32_t to);
/* Remember for conn_number_now() that number `from` became `to`, which is lower. */
void conn_note_renumbered(struct conn_table *t, uint32_t from, uint32_t to);
/* Two taps may have numbered the two directions of one connection separately, each the direction that it saw first:
 * give all of its flows the lowest number. `flow` has a peer. */
void conn_number_as_elsewhere(struct conn_table *t, uint32_t flow);
/* Number a flow and its peer: as at another tap, else by the next number. */
void conn_number_give(struct conn_table *t, uint32_t flow);

/* --- Connections that were learnt --------------------------------------------------------------- */

/* The latest `max` are kept. NULL without memory. */
struct known *known_new(uint32_t max);
void known_free(struct known *t);
void known_add(struct known *t, const struct conn_known *k);
/* Whether end `end` of `k` is queue pair `dqpn` of `dst`, and the other end is at `src`. */
bool known_fits(const struct conn_known *k, const struct conn_addr *src, const struct conn_addr *dst, uint32_t dqpn,
                unsigned end);
/* The latest one with a queue pair `dqpn` at `dst`, and `src` at the other end; NULL: none. *end is the end at `dst`.
 */
struct conn_known *known_of(struct known *t, const struct conn_addr *src, const struct conn_addr *dst, uint32_t dqpn,
                            unsigned *end);
/* The latest one between the queue pairs of `k`, if it is `k`: setup messages are retransmitted, and seen at several
 * taps. A later connection between them may begin with the same PSNs, but has other communication ids. */
struct conn_known *known_already(struct known *t, const struct conn_known *k);
/* The latest one that was learnt at `tap` and has queue pair `qpn` at `addr`; NULL: none. */
struct conn_known *known_at_end(struct known *t, uint32_t tap, const struct conn_addr *addr, uint32_t qpn);

/* --- Alternate paths --------------------------------------------------------------------------- */

#define PATHS_MAX 4096 /* that are kept */

/* NULL without memory. */
struct paths *paths_new(void);
void paths_free(struct paths *t);
/* Replace the addresses of a path by those of its connection's first path. Returns its number; 0: it is no path that
 * was learnt. */
uint32_t paths_resolve(struct paths *t, struct conn_key *k);
/* True if a packet with key `k` goes against flow `f`: from its receiver to its sender, on any path of it. */
bool paths_go_back(struct paths *t, const struct conn_key *k, const struct flow *f);
/* The local ACK timeout code of the requests along path number `path`; CONN_TIMEOUT_KEPT. */
uint8_t paths_timeout(const struct paths *t, uint32_t path);
/* A connection between these addresses and queue pairs begins: they are no path of another one. */
void paths_forget(struct paths *t, const struct conn_addr addr[2], const uint32_t qpn[2]);
/* The first request of an unknown flow has MigReq set: its sender has migrated. If exactly one known flow to the same
 * queue pair number continues with this request, learn the new path as from a REQ or LAP. If two flows do, the path
 * stays unknown: hosts that are set up alike use the same queue pair numbers. */
bool paths_learn_migration(struct conn_table *t, const struct conn_key *k, const struct pkt *p);

/* --- Which flows have requested a PSN ------------------------------------------------------------ */

enum psn_sight {
    SIGHT_KEEP, /* and go on */
    SIGHT_DROP, /* forget it, and go on */
    SIGHT_STOP,
};

struct psn_index *psn_index_new(void);
void psn_index_free(struct psn_index *x);
/* How often psn_index_add() was called. */
uint32_t psn_index_count(const struct psn_index *x);
/* `flow` from `src` to `dst` has requests in the block of `psn`. The latest SIGHTS are kept. */
void psn_index_add(struct psn_index *x, const struct conn_addr *src, const struct conn_addr *dst, uint32_t psn,
                   uint32_t flow);
/* Call `examine` for the flows with requests in the block of `psn`; also for some of other addresses or PSNs, and for
 * the same one twice. */
void psn_index_find(struct psn_index *x, const struct conn_addr *src, const struct conn_addr *dst, uint32_t psn,
                    enum psn_sight (*examine)(void *user, uint32_t flow), void *user);

#endif
