/* layer 2b (conn): which packets belong to which connection.
 *
 * The BTH names only the destination queue pair. A *flow* is what one node sends to one queue pair of another: it is
 * known by source address, destination address and destination QP, at one tap (file and interface); what it sends along
 * an alternate path that both ends have accepted belongs to it as well. Two flows in
 * opposite directions make a connection once they are paired: by what was learnt beforehand (CM, TCP parameter
 * exchange, the user), else because a response in one flow carries a PSN that was requested in exactly one unpaired
 * flow of the other direction.
 *
 * A connection has one number at all taps: flows with the same addresses and queue pairs share it. What else is kept of
 * a flow is that of its tap. */
#ifndef RDMATRACE_CONN_CONN_H
#define RDMATRACE_CONN_CONN_H

#include "frame.h"
#include "src/conn/addr.h"

/* How sure a pairing is: the higher, the surer. */
enum pairing {
    PAIR_NONE,
    PAIR_PSN,      /* addresses, and a PSN that fits only here */
    PAIR_EXCHANGE, /* TCP parameter exchange of ibv_*_pingpong or perftest */
    PAIR_CM,       /* REQ and REP */
    PAIR_USER,     /* option --pair */
};
/* "none", "PSN agreement", "TCP exchange", "CM", "user". */
const char *pairing_str(enum pairing p);

/* Where a frame was captured: file and interface as one number. The ports of a card that wrote an ERF file are one tap:
 * an optical splitter gives it each direction of a link on a port of its own. */
static inline uint32_t conn_tap_of(const struct frame *f)
{
    if (UNLIKELY(f->counts_for))
        return f->counts_for - 1;
    return (uint32_t)f->file << 16 | (UNLIKELY(f->linktype == LINK_ERF) ? 0 : f->iface & 0xffff);
}

/* The name of a file: the last part of its path, with as many parts before it as tell it from the other files.
 * `files`: paths by file number, ended by NULL. */
const char *conn_file_name(const char *const *files, uint32_t file);
/* Append the name of a tap: "b.pcapng:1", that of its file and the number of the interface. `files` NULL: "file 1:1",
 * files counted from 0. */
void conn_tap_put(struct buf *b, const char *const *files, uint32_t tap);

/* How a parameter of one end is known. */
enum param_known {
    PARAM_UNKNOWN,  /* no CM message has it, or it was not captured */
    PARAM_SUPPOSED, /* this end's REQ sets it for the other end, as a rule also for itself: nothing states it */
    PARAM_STATED,   /* the other end's REQ sets it */
};

/* Parameters that CM negotiated for the requests of one end. */
struct conn_params {
    bool passive;          /* with req_frame: this end received the REQ, the other one sent it */
    bool have_depth;       /* depth is known */
    uint8_t timeout_known; /* enum param_known, of timeout */
    uint8_t retry_known;   /* enum param_known, of retry_cnt */
    bool have_rnr;         /* rnr_retry is known */
    bool have_transport;   /* transport is known */
    bool no_credits;       /* the other end announced no flow control, or a shared receive queue */
    uint8_t depth;         /* initiator depth: READs and atomics outstanding at most */
    uint8_t timeout;       /* local ACK timeout, 4.096 us x 2^n; 0: none */
    /* retries after an ACK timeout, 0 to 7 */
    uint8_t retry_cnt;
    uint8_t rnr_retry;             /* retries after an RNR NAK; 7: no limit */
    uint16_t pkey;                 /* of the REQ; 0: not known */
    uint8_t transport;             /* enum cm_transport of the REQ */
    uint8_t ext_transport;         /* with CM_TRANSPORT_EXT: 1 is XRC; 0: not known */
    uint64_t req_frame, rep_frame; /* frames of REQ and REP; 0: no CM */
    ns_t req_ts, rep_ts;           /* of a flow: when they passed its tap; 0: they did not */
};

/* When REQ and REP of a connection passed a tap. */
struct conn_setup {
    uint32_t tap;
    ns_t req_ts, rep_ts;
};
#define SETUP_TAPS 4

/* Index of a flow in its table; FLOW_NONE for none. */
#define FLOW_NONE UINT32_MAX
/* Blocks of PSNs that a table remembers: conn_note_psn(). */
#define CONN_SIGHTS (1u << 17)

/* The chains of flows, each for a hash of: addresses and queue pair; both addresses; queue pair and tap. */
enum flow_chain { BY_KEY, BY_PAIR, BY_QPN, FLOW_CHAINS };

/* A flow's place in a chain. FLOW_NONE: the last; the first. */
struct flow_link {
    uint32_t next, before;
};

/* What one node sends to one queue pair of another, at one tap. */
struct flow {
    _Alignas(CACHE_LINE) struct conn_addr src;
    struct conn_addr dst;
    uint32_t tap; /* where it was captured, conn_tap_of(); the same traffic seen at two taps is two flows */
    uint32_t dqpn;
    uint32_t hash; /* of src, dst and dqpn */
    uint32_t path; /* that its latest packet took: 0 the first, else a number */
    /* The second line of the cache: what every packet needs. */
    struct flow_link in[FLOW_CHAINS];
    uint32_t peer;     /* flow of the other direction, FLOW_NONE while unpaired */
    uint32_t conn;     /* number of the connection, from 1; 0: none yet, see conn_flow_unnumbered() */
    uint32_t sqpn;     /* QPN of the sender, valid with have_sqpn */
    uint32_t pmtu;     /* path MTU in bytes, 0: not known */
    uint32_t looks;    /* flows examined in searches for its peer that failed */
    uint8_t paired_by; /* enum pairing */
    bool have_sqpn;
    /* a packet of the flow came since the eviction's clock hand passed it */
    bool used;
    bool unlearnt;     /* conn_unlearn() */
    bool moved;        /* it took another path than the one before it: see conn_moved() */
    const char *upper; /* upper protocol, NULL: not known */
    bool have_psn;     /* psn is known: PSN of the first request */
    uint32_t psn;
    struct conn_params params; /* of the requests in this flow */
};

#define CONN_ANSWER   8  /* bytes of a REP's private data that are kept */
#define CONN_GREETING 56 /* bytes of a REQ's private data that are kept: all that the RDMA IP CM service leaves */

/* A connection that was learnt (from CM, a TCP exchange, --pair), maybe before its packets: both ends, 0 and 1. */
struct conn_known {
    struct conn_addr addr[2];
    uint32_t qpn[2];
    uint32_t psn[2];                 /* first PSN of the requests that this end sends */
    uint32_t id[2];                  /* communication id that this end chose, 0: not CM */
    uint32_t pmtu;                   /* bytes, 0: not known */
    const char *upper;               /* NULL: not known */
    bool upper_by_private;           /* the private data of the REQ fit `upper` */
    bool upper_vague;                /* `upper` means only that the RDMA-CM is used, not which protocol */
    uint16_t port;                   /* RDMA-CM: at which end 1 listens; 0: not known */
    uint8_t greeting_len;            /* bytes of `greeting`; 0: not CM */
    uint8_t greeting[CONN_GREETING]; /* the consumer's private data of the REQ, from their first byte */
    uint8_t answer_len;              /* bytes of `answer` */
    uint8_t answer[CONN_ANSWER];     /* the private data of the REP, from their first byte */
    /* where it was learnt from */
    enum pairing how;
    bool any_psn[2];                     /* psn[] of this end is not known */
    bool over;                           /* it was closed at `tap`: the same ids and PSNs are another connection */
    uint32_t tap;                        /* where it was learnt */
    struct conn_params params[2];        /* of the requests that this end sends; without times */
    struct conn_setup setup[SETUP_TAPS]; /* at the first taps that saw it */
    unsigned n_setup;
};

/* A path that a connection (its ends: 0 and 1) may take besides its first one: both ends have accepted it. */
struct conn_path {
    struct conn_addr addr[2]; /* of its first path, by which its flows are known */
    struct conn_addr alt[2];  /* of this path */
    uint32_t qpn[2];          /* CONN_NO_QPN: not known */
    /* local ACK timeout code of the requests that this end sends along it; CONN_TIMEOUT_KEPT: as along the path before
     */
    uint8_t timeout[2];
    bool guessed; /* by a packet that took it: no CM message has announced it */
};
#define CONN_TIMEOUT_KEPT 255
#define CONN_NO_QPN       UINT32_MAX

struct conn_table;

/* A table of at most `max_flows` flows; when it is full, the flow unused for longest is evicted. NULL without
 * memory. */
struct conn_table *conn_table_new(uint32_t max_flows);
void conn_table_free(struct conn_table *t);

/* Called before a place of the table is given to a new flow, and, with `restart`, when its queue pairs are those of
 * another connection from now on: the user's state of the flow is to be reset. conn_flow_at() still returns the flow
 * that was. */
typedef void conn_flow_over(void *user, uint32_t flow, bool restart);
/* Callback: whether a recent request of flow `flow` has PSN `psn`. */
typedef bool conn_has_psn(void *user, uint32_t flow, uint32_t psn);
/* Callback: whether request `p`, of an unknown flow, continues the requests of `flow` along another path because its
 * sender has migrated. MAY_GO_ON: it may retransmit a request that is no longer remembered, or was lost before the tap.
 * GOES_ON: it has the next PSN, or is like a request without RETH. SENT_AGAIN: it is the same request, with the same
 * virtual address, R_Key and length, or asks for the rest of a READ. */
enum goes_on { GOES_NOT_ON, MAY_GO_ON, GOES_ON, SENT_AGAIN };
typedef enum goes_on conn_goes_on(void *user, uint32_t flow, const struct pkt *p);
void conn_table_user(struct conn_table *t, void *user, conn_flow_over *over, conn_has_psn *has_psn,
                     conn_goes_on *goes_on);

/* The flow of a packet with a BTH, created and numbered if it is new. All readers of a capture call this for the same
 * packets, so that they number connections alike: well-formed packets with a defined opcode and no bad ICRC, which are
 * neither datagrams nor CNPs. */
uint32_t conn_flow(struct conn_table *t, const struct pkt *p);
/* The flow of any other packet with a BTH; it is created if it is new, but not numbered. */
uint32_t conn_flow_unnumbered(struct conn_table *t, const struct pkt *p);
/* The flow of a packet with a BTH; FLOW_NONE: there is none. */
uint32_t conn_flow_find(const struct conn_table *t, const struct pkt *p);
/* Whether a learnt connection has the packet's addresses and destination queue pair. */
bool conn_is_known(const struct conn_table *t, const struct pkt *p);
/* The flow with these addresses and destination queue pair at `tap`; FLOW_NONE: there is none. */
uint32_t conn_flow_named(const struct conn_table *t, uint32_t tap, const struct conn_addr *src,
                         const struct conn_addr *dst, uint32_t dqpn);
/* Of the flows with the addresses and destination queue pair of `flow`, one at each tap, `flow` itself among them, that
 * with the lowest index from `from` on; FLOW_NONE: there are no more. Its time does not grow with the table. */
uint32_t conn_flow_alike(const struct conn_table *t, uint32_t flow, uint32_t from);
/* The flow of an index; valid as long as the table. */
struct flow *conn_flow_at(struct conn_table *t, uint32_t flow);
/* All flows, by index; the array does not move. */
struct flow *conn_flows(struct conn_table *t);
/* There are many flows: see zeros_many(). */
void conn_expect_many(struct conn_table *t);

/* What was learnt of the connection of a flow, even if it was discarded since; *end is set to the end to which it goes.
 * NULL: nothing. Valid until the
 * next connection is learnt. */
const struct conn_known *conn_known_to(const struct conn_table *t, uint32_t flow, unsigned *end);
/* Learn a connection. Its flows seen so far are paired at once. As many are kept as flows, the latest ones. */
void conn_learn(struct conn_table *t, const struct conn_known *k);
/* Likewise `n` connections. */
void conn_learn_all(struct conn_table *t, const struct conn_known *k, size_t n);
/* Learn a path: from now on its packets belong to the flows of the connection's first path. The latest 4096 paths are
 * kept; a path is forgotten when a separate connection between its addresses and queue pairs is learnt. */
void conn_learn_path(struct conn_table *t, const struct conn_path *p);
/* Find a path between the addresses of a packet, whatever its queue pair: set *src and *dst to those of its
 * connection's first path. `from`: 0, then what the last call returned. 0: there are no more. */
uint32_t conn_path_between(const struct conn_table *t, uint32_t from, struct conn_addr *src, struct conn_addr *dst);
/* Whether, since the last call, the flow has changed its path: its sender has migrated, or packets of the old path
 * arrived late. */
bool conn_moved(struct conn_table *t, uint32_t flow);
/* The connection of queue pair `qpn` at `end` was closed, or the TCP connection of its exchange was: the same setup
 * messages at this tap are another connection. */
void conn_close(struct conn_table *t, uint32_t tap, const struct conn_addr *end, uint32_t qpn);
/* Discard what was learnt of `flow` and its peer, at their tap: it may describe an earlier connection of the same queue
 * pairs. Both remain paired. */
void conn_unlearn(struct conn_table *t, uint32_t flow);
/* The first request of `flow` with a PSN in this block of PSN_BLOCK PSNs was seen. */
#define PSN_BLOCK 1024
void conn_note_psn(struct conn_table *t, uint32_t flow, uint32_t psn);
/* Pair `flow`, which carries a response with PSN `psn`, with the only unpaired flow of the other direction that has
 * requested this PSN. Does nothing if `flow` has a peer, or none or several fit. */
void conn_pair_by_psn(struct conn_table *t, uint32_t flow, uint32_t psn);

/* What happens to the numbers of connections. */
enum conn_numbered {
    NUMBER_GIVEN,    /* `a`, the next one, to a new connection */
    NUMBER_TAKEN,    /* conn_number_take() */
    NUMBER_GIVEN_UP, /* like NUMBER_CHANGED; `a`, the latest number, is given to the next connection */
    NUMBER_REPEATED, /* a flow gets number `a`, which its connection has at another tap; the latest is not given up */
    NUMBER_CHANGED,  /* connection `a` has number `b` from now on, which is lower */
};
/* Call `fn` whenever it happens. */
void conn_on_numbered(struct conn_table *t, void (*fn)(void *user, enum conn_numbered what, uint32_t a, uint32_t b),
                      void *user);
/* What happens to flows, as far as the numbers of connections depend on it. */
enum conn_change_kind {
    FLOW_BEGUN,
    FLOW_NUMBERED, /* it gets `number`, the next one, or that of its connection at another tap */
    FLOWS_JOINED,  /* with `other` it makes a connection from now on */
    FLOW_SENDER,   /* the queue pair of its sender became known, or is not known any more */
};
struct conn_change {
    uint8_t what; /* enum conn_change_kind */
    bool newest;  /* FLOWS_JOINED: the packet at hand is the first one of one of them, or gave one its number */
    bool have_sqpn;
    uint32_t flow, other, number; /* in the table */
    uint32_t tap, dqpn, sqpn;     /* those of the flow, as have_sqpn; */
    struct conn_addr src, dst;    /* likewise */
};
/* Call `fn` whenever it happens. */
void conn_on_changed(struct conn_table *t, void (*fn)(void *user, const struct conn_change *c), void *user);
/* Flows and numbers of another table, and what they are here. */
struct conn_replayed {
    uint32_t *flow; /* by index there, FLOW_NONE: it did not begin yet */
    uint32_t n;
    uint32_t *numbered; /* by number there: a flow here that has it; FLOW_NONE: it was not given yet */
    uint32_t n_numbers;
};
/* Let it happen here, among what happened to the flows of others, at their taps. `same`: the packet at hand is that of
 * the last call. False: it cannot have happened. */
bool conn_replay(struct conn_table *t, struct conn_replayed *r, const struct conn_change *c, bool same);
/* Before that: nothing has happened to its `flows`, none of its `numbers` was given. False without memory. */
bool conn_replayed_new(struct conn_replayed *r, uint32_t flows, uint32_t numbers);
void conn_replayed_free(struct conn_replayed *r);
/* As bytes. */
struct pack;
void conn_change_pack(struct pack *k, struct conn_change *c);
/* The number that connection `number` has here now; 0: none. */
uint32_t conn_replayed_number(const struct conn_table *t, const struct conn_replayed *r, uint32_t number);
/* Counts. */
struct conn_counts {
    uint32_t flows;   /* kept now */
    uint32_t conns;   /* numbers given */
    uint64_t evicted; /* flows evicted */
    uint32_t sights;  /* blocks of PSNs noted, conn_note_psn(); only the latest CONN_SIGHTS are known */
};
struct conn_counts conn_counts(const struct conn_table *t);
/* The number that the connection with `number` has now: two flows that turn out to be one connection later keep the
 * lower one of their two. `number` itself if it has not changed, and beyond 65,536 changes. */
uint32_t conn_number_now(struct conn_table *t, uint32_t number);
/* The first one of the flows among which are those from `src` to `dst`, at every tap; the others follow it in the chain
 * BY_PAIR (flow.in). FLOW_NONE: there is none. */
uint32_t conn_first_between(const struct conn_table *t, const struct conn_addr *src, const struct conn_addr *dst);
/* Whether alternate paths were learnt: packets of a flow may have other addresses than the flow. */
bool conn_has_paths(const struct conn_table *t);
/* Whether the latest packet of the flow took a path that is guessed: it may be one of another flow. */
bool conn_path_is_guessed(const struct conn_table *t, uint32_t flow);
/* Whether packets of this flow may have other addresses than the flow: an alternate path of its connection was learnt,
 * or paths were forgotten, of whatever connection. Looks at all paths. */
bool conn_flow_has_paths(const struct conn_table *t, uint32_t flow);
/* Whether any flow of the other direction exists between the addresses of `flow`, at its tap. */
bool conn_has_reverse(const struct conn_table *t, uint32_t flow);
/* Whether another flow of the same direction exists between the addresses of `flow`, at its tap. */
bool conn_has_other(const struct conn_table *t, uint32_t flow);
/* Number of connections: pairs of flows, and flows without a peer; evicted ones included. */
uint32_t conn_number(const struct conn_table *t);
/* Append "2 connections", or "2 connections (numbers up to 3)" if not all numbers were needed. */
void conn_number_put(struct buf *b, uint32_t number, uint32_t highest);
/* Take the next number, for a connection without flows: one of iWARP. */
uint32_t conn_number_take(struct conn_table *t);
/* Whether a flow of connection number `conn` is kept, or the number was taken. */
bool conn_exists(const struct conn_table *t, uint32_t conn);

#endif
