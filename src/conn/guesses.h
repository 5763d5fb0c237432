/* layer 2b (conn): what somebody tries one after another, to hit what fits: PSNs, R_Keys and addresses, queue pair
 * numbers; and what hosts choose, of which some can be guessed. */
#ifndef RDMATRACE_CONN_GUESSES_H
#define RDMATRACE_CONN_GUESSES_H

#include "src/conn/conn.h"
#include "src/conn/requests.h"
#include "steps.h"

#define SWEEP_MANY 64 /* so many PSNs or queue pair numbers within a second are a sweep */

/* --- PSNs ------------------------------------------------------------------------------------- */

/* A connection to which requests come that are far from its PSNs. */
struct psn_sweep {
    uint32_t flow;  /* of its requests */
    uint32_t frame; /* the first such request; 0: unused */
    uint32_t start; /* the PSN at which the connection was before */
    uint32_t home;  /* ... and is now */
    uint32_t last;  /* the latest PSN far from there */
    uint32_t tries, home_packets;
    uint32_t home_frame; /* the latest of home_packets */
    ns_t ts, last_ts;    /* of `frame`, and of `last` */
    bool paired;         /* before, it was certain which responses are those to its requests */
    bool asked;          /* a new request has come where the connection is; */
    bool answered;       /* ... it, or a later one, was answered */
};

/* True if nothing more will tell whether it is a sweep: a packet of `flow` comes at `ts`. */
bool psn_sweep_is_over(const struct psn_sweep *w, uint32_t flow, ns_t ts);
/* So many PSNs were tried, and packets of the connection came where it was. */
bool psn_sweep_is_one(const struct psn_sweep *w);
/* The connection certainly goes on where it was: it has sent a new request there, and the responder has answered. */
static inline bool psn_sweep_goes_on(const struct psn_sweep *w)
{
    return w->asked && w->answered;
}
/* A request of `flow`, before `h` takes it, whose PSN is not the next one or while `w` is used. True if it is a sweep,
 * and the connection goes on. */
bool psn_sweep_request(struct psn_sweep *w, const struct req_dir *h, uint32_t flow, const struct pkt *p);
/* A response to the requests of w->flow. An unused `w` afterwards: another connection has begun. */
bool psn_sweep_response(struct psn_sweep *w, const struct pkt *p);

/* --- R_Keys and addresses --------------------------------------------------------------------- */

#define REFUSED_MANY 16 /* so many different ones are a sweep */

/* A requester whose R_Keys or addresses were refused by one host. */
struct refuser {
    uint64_t key;   /* of the two hosts and the tap; 0: unused */
    uint32_t frame; /* the first NAK */
    uint32_t n;
    ns_t ts, last_ts;            /* of the first and the latest NAK that counts */
    uint32_t reth[REFUSED_MANY]; /* request_reth() of the requests refused */
};

/* The NAK Remote Access Error `p` to request `s` of flow `c`, whose connection began at `connected`: true if it is the
 * one that shows a sweep. A refusal ends its connection: whoever tries keys or addresses opens another one for the
 * next. Queue pairs that were open at the refusal before have the same stale key, or learn of theirs at the same time.
 */
bool refuser_refused(struct refuser *r, const struct flow *c, const struct sent *s, const struct pkt *p,
                     ns_t connected);

/* --- Queue pair numbers ----------------------------------------------------------------------- */

#define PROBE_MOST  3                 /* packets to a queue pair that is only tried */
#define PROBE_WAITS (100 * NS_PER_MS) /* a responder answers within this time */

/* A queue pair that got requests of one sender and answered none; or one that has answered. */
struct qpn_probe {
    uint32_t flow, frame;
    ns_t ts;
    bool answers; /* sorted behind those that do not */
};
/* Of `n` queue pairs, which are sorted: `silent` of one sender did not answer, SWEEP_MANY from `first` on came within a
 * second, and others of the same two hosts did answer. */
typedef void qpn_sweep_found(void *user, const struct qpn_probe *first, uint32_t silent);
void qpn_sweeps(struct qpn_probe *p, uint32_t n, const struct flow *flow, qpn_sweep_found *found, void *user);

/* --- What hosts choose: R_Keys, queue pair numbers, starting PSNs ----------------------------- */

enum chosen { CHOSE_RKEY, CHOSE_QPN, CHOSE_PSN };

/* A value that a host has chosen. */
struct choice {
    uint32_t tap, value;
    uint32_t number; /* in the order in which they were seen */
    uint32_t before; /* number + 1 of the one before it of the same owner; 0: none */
    enum chosen what;
    struct conn_addr by;
    ns_t ts; /* of its packet, with file and frame: to find that order */
    uint16_t file;
    uint64_t frame;
};
struct choices {
    struct choice *of; /* in the order in which they were seen; grow() */
    uint32_t n;
    uint32_t last[CONN_OWNERS], count[CONN_OWNERS]; /* by owner: number of the latest one; how many are kept */
};
/* Take a value that frame `f` tells: tap, value, what and by are set. An R_Key that comes again is left out. */
void choice_take(struct choices *s, unsigned owner, struct choice c, const struct frame *f);

/* Values of a host of which half or more, at least, can be guessed from the one before. */
struct guessable {
    uint32_t tap;
    enum chosen what;
    struct conn_addr by;
    uint32_t step;      /* the next one is the last one plus this; 0: it is always `value` */
    uint32_t times, of; /* how often, of how many */
    uint32_t value;     /* the latest one */
};
/* "R_Keys", "queue pair numbers", "starting PSNs". */
const char *chosen_str(enum chosen what);
/* Of all values, which are sorted: those that can be guessed, by kind, tap and host. */
void choices_guessable(struct choices *s, void (*take)(void *user, const struct guessable *g), void *user);

#endif
