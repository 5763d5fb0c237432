/* layer 3 (judge): the judge: packets in, findings out.
 *
 * A captured packet may have been lost after the tap, and a packet that was not captured may have been delivered. So a
 * rule counts as broken only if no sequence of events that fits the capture keeps it. Where a rule needs more than the
 * capture provides (both directions, a complete capture, a tap at one end ...), a failure is inconclusive. */
#ifndef RDMATRACE_JUDGE_JUDGE_H
#define RDMATRACE_JUDGE_JUDGE_H

#include "src/cap/cap.h"
#include "src/cc/np.h"
#include "src/cc/recovery.h"
#include "src/conn/conn.h"
#include "src/counters/counters.h"
#include "src/findings/findings.h"

struct pkt;

enum profile {
    PROFILE_STRICT, /* the rules as specified */
    PROFILE_RXE,    /* Linux soft-RoCE: its known deviations are permitted */
    PROFILE_NV,     /* out-of-order placement and adaptive retransmission */
};
/* Name of a profile ("strict", "rxe", "nv"); parse one (false: no such profile). */
const char *profile_str(enum profile p);
bool profile_parse(const char *s, enum profile *p);

/* Position of a tap on a connection. TAP_REQUESTER is at the end that opened the connection (the active side of CM,
 * else the sender of the first request), TAP_RESPONDER at its peer. For requests of the peer the two are swapped. */
enum tap_side {
    TAP_UNKNOWN,
    TAP_REQUESTER,
    TAP_RESPONDER,
    TAP_MIDDLE,
};
/* Name of a position ("unknown", "requester", "responder", "middle"); parse one (false: no such position). */
const char *tap_str(enum tap_side t);
bool tap_parse(const char *s, enum tap_side *t);

#define JUDGE_TAPS 64 /* interfaces that can have a tap position of their own */

#define JUDGE_HOSTS  8
#define JUDGE_COUNTS 12 /* number of counters of a host */

/* Counters of an adapter for the time of the capture, and the same counts made from the trace. */
struct judge_host {
    struct conn_addr addr;
    struct counter_reading before, after;
    bool has_before;             /* else they were 0 */
    uint64_t seen[JUDGE_COUNTS]; /* in the trace */
};

/* What the counters of a host say of one thing, and what the trace shows of it. */
struct judge_counted {
    const char *names; /* of the counters, joined by " + " */
    uint64_t counted, seen;
    bool comparable; /* the trace shows it: `seen` is set */
    /* "exact", "over", "under", "stuck" (nothing was counted, though the trace shows some) or "not compared" */
    const char *verdict;
};
/* A host of judge_opts, with what the trace shows of it so far. */
struct judge;
const struct judge_host *judge_host(const struct judge *j, unsigned i);
/* Call `take` for each of them. */
void judge_counted(const struct judge_host *h, void (*take)(void *user, const struct judge_counted *c), void *user);

/* Tap position of one interface of one file. */
struct judge_tap {
    uint32_t tap; /* conn_tap_of() */
    enum tap_side side;
};

struct judge_opts {
    enum profile profile;
    struct judge_tap taps[JUDGE_TAPS]; /* positions by file and interface; interfaces not listed: tap[] */
    unsigned n_taps;
    enum tap_side tap[JUDGE_TAPS];        /* by interface number; from JUDGE_TAPS on: TAP_UNKNOWN */
    uint64_t memory;                      /* bytes, as in observer_opts */
    bool complete;                        /* the user says that the capture lost no frame */
    bool no_icrc;                         /* ICRCs mean nothing: they are not judged */
    bool off[RULE_COUNT];                 /* rules that are not judged */
    int ack_timeout;                      /* exponent of the local ACK timeout if CM was not captured; -1: not known */
    struct recovery_shape recovery;       /* how the rate of senders recovers from a CNP, likewise; period 0 */
    struct np_config cnp;                 /* how receivers space CNPs, as the user states; interval 0: not stated */
    int retry_cnt;                        /* retry count if CM was not captured; -1: not known */
    struct judge_host hosts[JUDGE_HOSTS]; /* hosts with known counters */
    unsigned n_hosts;
    /* for tests: no packet takes the fast path, every packet is judged by every rule */
    bool thorough;
};

struct judge;

/* NULL: out of memory. */
struct judge *judge_new(const struct judge_opts *o);
void judge_free(struct judge *j);
/* The connection table: parameters given by the user are added with conn_learn(). */
struct conn_table *judge_conns(struct judge *j);
/* Frame `f` will come soon: with thousands of connections each packet finds its own out of the processor's caches, so
 * its memory is fetched ahead. Changes nothing else, and may be left out. */
void judge_expect(struct judge *j, const struct frame *f);
/* Another thread than before goes on with the packets: observer_fetch() of the judge's observer. */
void judge_fetch(struct judge *j);
/* Judge a packet; packets of one interface in the order of their time stamps. */
void judge_packet(struct judge *j, const struct pkt *p);
/* File `file` states that its capture dropped `drops` frames. */
void judge_drops(struct judge *j, uint16_t file, uint64_t drops);
/* After the last packet: a file was not read to its end, so the capture is not complete. */
void judge_unread(struct judge *j);
/* After the last packet: judge what is pending, and write the notes. */
void judge_end(struct judge *j);
struct findings *judge_findings(struct judge *j);

/* One of several processes that share out the pairs of addresses (share.c). Before the first packet: it follows those
 * of `owners`, and gets packets of others only if they tell more than their two addresses (src/scan/first.h); one
 * process `leads`. False without memory. */
bool judge_share(struct judge *j, const struct conn_owners *owners, bool leads);
/* Why it cannot be shared out, as far as the packets so far show it; NULL: it can. */
const char *judge_share_why(const struct judge *j);
/* What a judge has used of tables that all parts must have room for together, so far. */
enum judge_use {
    USED_FLOWS,
    USED_ROOM,   /* bytes of evidence, at the most */
    USED_KINDS,  /* of findings */
    USED_SIGHTS, /* blocks of PSNs */
    USED_CNPS,   /* for unknown queue pairs */
    JUDGE_USES,
};
void judge_used(const struct judge *j, uint64_t used[JUDGE_USES]);
/* Why judge `j` alone has no room for all that parts have used, NULL: it has. */
const char *judge_room_why(const struct judge *j, const uint64_t used[JUDGE_USES]);
/* Whether the first request of a queue pair had MigReq set, and whether any had it clear: with both, in whatever parts,
 * it cannot be shared out either. */
void judge_share_moves(const struct judge *j, bool *arrives, bool *stays);
/* After the last packet, before the end: when the latest frame of a tap (conn_tap_of()) was captured, whoever got it.
 */
void judge_last_frame(struct judge *j, uint32_t tap, ns_t ts);
/* In place of judge_end(); then write what was found. A text, and nothing is written: why it cannot be shared out. */
void judge_part_end(struct judge *j);
struct pack;
const char *judge_save(struct judge *j, struct pack *k);
/* What `n` processes have found of `packets` packets of `n_files` files, in place of packets; then judge_parts_end() in
 * place of judge_end(). A text: why one process would find something else; then this judge is of no more use. */
const char *judge_absorb(struct judge *j, struct pack *parts, uint32_t n, uint64_t packets, size_t n_files);
void judge_parts_end(struct judge *j);
/* What of the options decides what is found: parts with other options are not of one capture. */
void judge_pack_options(struct pack *k, const struct judge_opts *o);

#endif
