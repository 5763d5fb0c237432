/* layer 3 (judge): the judge: packets in, findings out.
 *
 * Seen is not delivered: a captured packet may have been lost behind the tap, and a packet that was not captured may
 * have been delivered. A rule is broken only if no history that agrees with what was seen keeps it; and where a rule
 * needs more than the capture gives (both directions, a complete capture, a tap at one end ...), a failure is
 * inconclusive. */
#ifndef RDMATRACE_JUDGE_JUDGE_H
#define RDMATRACE_JUDGE_JUDGE_H

#include "dissect/pkt.h"
#include "src/cap/cap.h"
#include "src/conn/conn.h"
#include "src/judge/findings.h"

enum profile {
    PROFILE_STRICT, /* the rules as they are */
    PROFILE_RXE,    /* habits of Linux soft-RoCE */
    PROFILE_NV,     /* out-of-order placement and adaptive retransmission */
};
/* "strict", "rxe", "nv"; and back (false: no such profile). */
const char *profile_str(enum profile p);
bool profile_parse(const char *s, enum profile *p);

/* Where a tap is, seen from a connection: its requester is the end that opened it (the active side of CM, else whoever
 * sent the first request). Requests of the other end are judged with the sides swapped. */
enum tap_side {
    TAP_UNKNOWN,
    TAP_REQUESTER,
    TAP_RESPONDER,
    TAP_MIDDLE,
};
/* "unknown", "requester", "responder", "middle"; and back. */
const char *tap_str(enum tap_side t);
bool tap_parse(const char *s, enum tap_side *t);

#define JUDGE_FLOWS 4096 /* flows kept at a time */
#define JUDGE_TAPS  64   /* interfaces whose tap can be told apart */

#define JUDGE_HOSTS  8
#define JUDGE_COUNTS 11 /* what is counted of a host */

/* What an adapter has counted during the capture; and what the trace shows (the judge's own copy). */
struct judge_host {
    struct conn_addr addr;
    uint64_t value[JUDGE_COUNTS];
    uint64_t seen[JUDGE_COUNTS];
    bool have[JUDGE_COUNTS];   /* value is given */
    bool narrow[JUDGE_COUNTS]; /* by counters of 32 bits, which wrap */
};
/* Take the counters that a text names, each followed by its number: the output of `rdma statistic`, of `ethtool -S`,
 * lines "name:value". Names that are not known are passed over. `before`: values at the start, which are subtracted.
 * False if there is no counter. */
bool judge_counters(struct judge_host *h, const char *text, size_t len, bool before);

/* The side of one interface of one file. */
struct judge_tap {
    uint32_t tap; /* conn_tap_of() */
    enum tap_side side;
};

struct judge_opts {
    enum profile profile;
    struct judge_tap taps[JUDGE_TAPS]; /* interfaces of single files; for all others: */
    unsigned n_taps;
    enum tap_side tap[JUDGE_TAPS];        /* by interface; further ones are TAP_UNKNOWN */
    bool complete;                        /* the capture lost no frame */
    bool off[RULE_COUNT];                 /* rules that are not judged */
    int ack_timeout;                      /* exponent of the local ACK timeout where CM does not say; -1: not known */
    int retry_cnt;                        /* likewise the retry count */
    struct judge_host hosts[JUDGE_HOSTS]; /* whose counters are known */
    unsigned n_hosts;
    /* every packet is judged by every rule, also one that is like those before: for tests, which compare */
    bool thorough;
};

struct judge;

/* NULL without memory. */
struct judge *judge_new(const struct judge_opts *o);
void judge_free(struct judge *j);
/* The connections, so that the user's knowledge can be given to conn_learn(). */
struct conn_table *judge_conns(struct judge *j);
/* One packet; those of an interface in the order of time. */
void judge_packet(struct judge *j, const struct pkt *p);
/* The file `file` lost `drops` frames, as it says. */
void judge_drops(struct judge *j, uint16_t file, uint64_t drops);
/* After the last packet: what is left is judged, notes are written. */
void judge_end(struct judge *j);
struct findings *judge_findings(struct judge *j);

#endif
