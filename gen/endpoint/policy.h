/* layer 3 (endpoint): choices that the specification leaves to an implementation, as small replaceable modules. */
#ifndef RDMATRACE_GEN_ENDPOINT_POLICY_H
#define RDMATRACE_GEN_ENDPOINT_POLICY_H

#include "prng.h"
#include "types.h"

/* State of the policies of a queue pair, shared by the modules. */
struct policy_state {
    uint32_t unacked;      /* ACK policy: requests since the last response */
    ns_t ack_due;          /* ACK policy: when a delayed ACK is due; NS_NEVER: none is delayed */
    ns_t answer_due;       /* when the delayed response to a READ or atomic is due; NS_NEVER: none is delayed */
    ns_t slow_until;       /* slow responder: no response before this; 0: not slow */
    ns_t next_send;        /* pacing: no request before this */
    ns_t usual_send;       /* pacing: next_send without CNPs */
    ns_t cut_until;        /* pacing: the rate is reduced until then because of a CNP */
    uint32_t since_ackreq; /* packets since the last AckReq */
};

struct policies;

/* When a responder sends an ACK. */
struct ack_policy {
    const char *name;
    /* A request was executed; `asks`: with AckReq. Returns when the ACK is due: `now`, later, or NS_NEVER (not yet). */
    ns_t (*due)(struct policy_state *s, bool asks, ns_t now, const struct policies *p);
    const char *arg_help; /* meaning of `ack_arg` */
};
extern const struct ack_policy ack_every;    /* at once if requested; arg unused */
extern const struct ack_policy ack_coalesce; /* for every arg-th packet with AckReq; the rest after ack_wait at most */
extern const struct ack_policy ack_delay;    /* arg ns later, one ACK for all requests of that time */

/* How many PSNs a requester has outstanding at most. */
struct window_policy {
    const char *name;
    uint32_t (*packets)(const struct policy_state *s, uint64_t arg); /* at least 1, below 2^23 */
    const char *arg_help;
};
extern const struct window_policy window_fixed; /* arg packets (0: 128) */

/* How fast a queue pair sends; congestion control (struct ep_config) may hold it back further. */
struct pace_policy {
    const char *name;
    /* A frame of `bytes` is sent now; returns when the next one may be sent. */
    ns_t (*sent)(struct policy_state *s, uint32_t bytes, ns_t now, const struct policies *p);
    /* A CNP arrived; may be NULL. */
    void (*cnp)(struct policy_state *s, ns_t now, const struct policies *p);
    const char *arg_help;
};
extern const struct pace_policy pace_none;
extern const struct pace_policy pace_rate; /* arg bit/s of frame bytes, evenly */
/* Likewise; after a CNP cnp_cut times slower, for cnp_time. */
extern const struct pace_policy pace_cut;

/* Receives that the endpoint posts by itself as receives are consumed. */
struct refill_policy {
    const char *name;
    /* Receives to post if `posted` of `depth` are posted; `*when`: not before this time. 0: none. */
    uint32_t (*post)(uint32_t posted, uint32_t depth, ns_t now, ns_t *when, uint64_t arg);
    const char *arg_help;
};
extern const struct refill_policy refill_none; /* the caller posts all receives */
extern const struct refill_policy refill_full; /* back to depth at once */
extern const struct refill_policy refill_late; /* back to depth arg ns after the queue ran empty: provokes RNR NAKs */

/* Which of `parts` processes (at most 64) that share an address has queue pair `qpn`: by its lowest byte, which filters
 * of the kernel read; 0 and 1, which management goes to, are part 0's. */
static inline unsigned qpn_part(uint32_t qpn, unsigned parts)
{
    return ((qpn & 0xff) >> 1) % parts;
}
#define QPN_PART_ARG(part, parts) ((uint64_t)(parts) << 8 | (part))

/* Choice of a 24-bit number: starting PSNs, QP numbers. */
struct number_policy {
    const char *name;
    /* The `n`-th number (from 0); if a QP number is taken or reserved (below 2), the next n is tried. */
    uint32_t (*pick)(struct prng *r, uint32_t n, uint64_t arg);
    const char *arg_help;
};
extern const struct number_policy number_random;     /* from the seed */
extern const struct number_policy number_part;       /* likewise, of a part: QPN_PART_ARG() */
extern const struct number_policy number_sequential; /* arg, arg + 1, ... */
extern const struct number_policy number_fixed;      /* arg always (PSNs only) */

/* UDP source port of a connection, or (dst_qpn and flow 0) of a UD queue pair. */
struct sport_policy {
    const char *name;
    uint16_t (*pick)(struct prng *r, uint32_t src_qpn, uint32_t dst_qpn, uint32_t flow, uint64_t arg);
    const char *arg_help;
};
/* 0xc000 | fold of the flow label; without one, of the product of the QPNs; UD: a hash of the QPN (all as Linux:
 * rdma_flow_label_to_udp_sport(), rdma_calc_flow_label(), rxe). */
extern const struct sport_policy sport_flow;
extern const struct sport_policy sport_fixed;  /* arg */
extern const struct sport_policy sport_random; /* from the seed, 0xc000 to 0xffff */

/* A set of policies; an endpoint has one, a queue pair may have its own. NULL members: those of policies_default(). */
struct policies {
    const struct ack_policy *ack;
    const struct window_policy *window;
    const struct pace_policy *pace;
    const struct refill_policy *refill;
    const struct number_policy *psn;
    const struct number_policy *qpn;
    const struct sport_policy *sport;
    uint64_t ack_arg, window_arg, pace_arg, refill_arg, psn_arg, qpn_arg, sport_arg;
    ns_t ack_wait;         /* ack_coalesce: longest delay of an ACK; 0: 10 us */
    ns_t answer_wait;      /* delay of the response to a READ or atomic if no other one is outstanding; 0: none */
    uint32_t slow_ppb;     /* probability, in 10^-9, that a request makes the responder slow */
    ns_t slow_time;        /* how long it then sends no response */
    uint32_t cnp_cut;      /* pace_cut */
    ns_t cnp_time;         /* pace_cut */
    uint32_t ackreq_every; /* AckReq at least every n packets, besides every Last and Only; 0: 64 */
};
/* ack_every, window_fixed 128, no pacing, no refill, random PSNs, sequential QPNs from 17, sport_flow. */
struct policies policies_default(void);
/* By name ("every", "coalesce", "delay"; "flow", "random"); NULL: unknown. */
const struct ack_policy *ack_policy_find(const char *name);
const struct sport_policy *sport_policy_find(const char *name);

#endif
