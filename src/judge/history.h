/* layer 3 (judge): internal: state kept of earlier requests and responses, to compare later packets with. */
#ifndef RDMATRACE_JUDGE_HISTORY_H
#define RDMATRACE_JUDGE_HISTORY_H

#include "src/judge/flow_state.h"

/* State of history.c for the requests of a flow. history_begin() clears it for a new connection, except the counts
 * for the notes. */
#define HISTORY_PAYLOADS 256 /* READ responses remembered */
#define HISTORY_KEYS     8   /* invalidated R_Keys remembered */
struct read_payload {
    uint32_t psn;
    uint32_t frame; /* 0: empty */
    uint32_t hash;  /* of the payload */
};
struct history_key {
    uint32_t rkey;
    uint32_t psn, frame;         /* of the SEND with Invalidate; frame 0: empty */
    uint32_t use_psn, use_frame; /* of the first request that used the key after that; frame 0: none */
    uint8_t use_opcode;
};
/* How many messages were completed before the first one seen, modulo 2^24. */
struct msn_range {
    uint32_t least, most;
};
/* How many messages the responder had completed before the first one seen, derived from the MSNs of responses. */
struct msn_known {
    bool have;       /* `known` was derived from a response */
    bool odd;        /* the latest response contradicts `known`; `other` follows from it */
    bool from_start; /* the first message of the queue pair was seen: `known` is 0 */
    bool answered;   /* a request that was seen had a response: `answer` is the MSN of the latest one */
    bool advanced;   /* later responses counted more messages, or an ACK was seen: later requests are no duplicates */
    uint32_t answer; /* with `answered` */
    uint32_t from;   /* PSN from which on no request was missed; earlier ones do not count */
    uint32_t frame, seen;   /* the latest response that agrees, and its MSN */
    uint32_t agreed;        /* responses that gave a single value, equal to `known` */
    struct msn_range known; /* of all responses together */
    struct msn_range other; /* with `odd` */
    uint32_t odd_psn;       /* with `odd`: PSN of that response */
    struct {
        uint32_t finding; /* its index + 1; 0: none */
        uint32_t msn;     /* of the response that broke the rule */
        bool above;       /* it counts too many messages, not too few */
    } fault;              /* the latest failure: what follows from it is none of its own */
};
/* Identifies a response, to recognise a copy of it, which a mirror may bring behind some later ones. */
#define RSP_IDS 16
struct rsp_id {
    uint64_t number; /* of the responses to the requests of its flow, from 1; 0: unused */
    uint8_t opcode;
    uint16_t ip_id;
    uint32_t psn, icrc;
    ns_t ts;
};
/* A FETCH_ADD and the value that it returned. */
struct fetch_add {
    bool have;
    uint32_t psn, rkey;
    uint64_t va, add, orig;
};
/* A request that arrived at the responder while earlier ones were missing. */
struct gap_seen {
    uint32_t psn, frame; /* the PSN that was missing, the frame that showed it; frame 0: none */
    ns_t ts;             /* time of that frame */
    /* with history.ignored: the frame that brings the PSN at last, the PSNs behind it that came before, the time
     * between */
    uint32_t again, behind;
    ns_t silence;
};
/* A failure that a response refutes which is captured shortly behind the request. */
struct crossing {
    uint8_t rule, severity;
    bool of_response, told; /* told: it was reported */
    uint32_t frame, cause;  /* as in struct found */
    uint32_t psn, number;   /* of the request; how many READs and atomics were outstanding, or an SSN */
    uint32_t permitted;     /* the number that was permitted */
    unsigned needs, has, lacks;
    ns_t ts;    /* of the packet */
    ns_t until; /* until then a packet of the other direction may refute the failure */
    char expected[64], seen[64];
    /* The latest of several requests that lack the same credit, of which the first one is named: for credits that
     * permit only that. */
    struct {
        uint32_t frame, psn, number, seen; /* frame 0: there is one request; number: as above; seen: its SSN */
        ns_t until;                        /* as above */
    } last;
};
/* A message into which a packet of another operation has broken (SEQ-02), and which may go on behind it. */
struct broken_into {
    bool have;
    uint8_t opcode; /* of that message */
};
/* A NAK, or an implied NAK, that demands a retransmission from `psn` on, and new requests meanwhile. */
struct demand {
    bool have, reported; /* reported: that the requester ignores it */
    uint32_t psn;
    ns_t ts; /* of the first new request behind the NAK */
};
struct history {
    /* What every packet needs (HISTORY_HOT). */
    _Alignas(CACHE_LINE) uint32_t keys_at; /* number of keys invalidated: `keys` */
    struct {
        bool have;
        uint32_t frame; /* of that request */
        uint32_t end;   /* PSN after all requests seen until then */
    } late;             /* a request that was seen after requests of later PSNs */
    struct msn_known msn;
    struct {
        bool have;
        uint32_t psn, msn, frame;
    } msn_base; /* a plain ACK whose MSN counts exactly the messages up to its PSN */
    struct {
        bool have;
        uint32_t end; /* PSN after all requests seen until then */
    } duplicates; /* duplicate or late requests, which an ACK may answer until a PSN from `end` on is acknowledged */
    bool have_syndrome;
    uint8_t syndrome;   /* syndrome of the latest plain ACK */
    bool at_responder;  /* with `reordered`: the tap was at the responder */
    bool ignored;       /* the responder said nothing about `gap`: an error, if its queue pair still works */
    uint64_t reordered; /* requests that arrived out of order and caused no NAK */

    /* the latest responses, by PSN modulo RSP_IDS */
    _Alignas(CACHE_LINE) struct rsp_id rsp[RSP_IDS];

    /* Other state. */
    struct crossing crossing; /* with jflow.crossing */
    struct demand demand;
    struct broken_into broken_into;
    bool uneven;                   /* a packet of the message in progress has a wrong length */
    struct read_payload *payloads; /* HISTORY_PAYLOADS, by PSN; NULL: no READ response yet, or no room */
    struct history_key keys[HISTORY_KEYS];
    struct gap_seen gap;
    struct fetch_add add;                      /* the FETCH_ADD answered last */
    uint32_t after_fatal, in_rnr_wait;         /* the NAK whose effect was reported last (NAK-08, RTX-15); 0: none */
    uint64_t reread, differ;                   /* responses to retransmitted READs: all; with other data */
    uint64_t unsolicited, unsolicited_credits; /* ACKs that no request can have caused: all; with other credits */
    uint64_t repeated;                         /* FETCH_ADDs that returned the same value as the previous one */
    uint32_t reread_frame, differ_frame, unsolicited_frame, reordered_frame, repeated_frame; /* first frame of each */
};
#define HISTORY_HOT offsetof(struct history, rsp)

struct judge;
struct judged;

/* Create the history of flow `f`, or clear it for a new connection, whose new requests have PSNs from `psn` on.
 * `from_start`: the first of them is the first one of the queue pair. False: there are as many as flows are kept. */
bool history_begin(struct judge *j, struct jflow *f, uint32_t psn, bool from_start);
/* Release it. */
void history_end_flow(struct judge *j, struct jflow *f);
/* The first PSN that must be new, after a request with `psn` that begins a new connection or is retransmitted from so
 * far back that its PSN is no longer remembered. Up to the latest PSN seen, requests may be retransmissions. */
uint32_t history_new_psn(const struct jflow *f, uint32_t psn);
/* A request, before the observer updates its state. */
void history_request(struct judge *j, const struct judged *a);
/* A response, before the observer updates its state; not for an identical copy, or if its request was not seen. */
void history_response(struct judge *j, const struct judged *a);
/* At the end: write the notes. */
void history_end(struct judge *j, uint32_t flow);
/* The later one of two PSNs; `psn` if the other one is that of another connection. */
static inline uint32_t history_later(uint32_t psn, uint32_t other)
{
    return psn_in(other, psn, TRACK_FAR) ? other : psn;
}

/* --- msn.c ------------------------------------------------------------------------------------ */

/* A request, before the observer updates its state: decide whether the messages after it can still be counted. */
void msn_request(const struct judged *a);
/* A request, before the observer updates its state, that does not continue the message before it, or begins one inside
 * it: how many messages its responder counts is not defined. */
void msn_broken_message(const struct judged *a);
/* Check the MSN of each response. Together with the messages seen, each MSN limits how many messages were completed
 * before the capture, and thereby the next MSN. After a contradiction, later MSNs tell whether that one was wrong or
 * the counting went wrong there; it is reported once. Nor is an MSN that does not advance any more, or that goes on to
 * count too many or too few messages, reported at each response. */
void msn_response(struct judge *j, const struct judged *a);
/* A response whose request was not seen yet, before the observer updates its state: the requests up to its PSN may be
 * retransmitted, and may have been counted before the capture. */
void msn_early(struct judge *j, const struct judged *a);
/* True if the MSN of a response contradicts those before it, which msn_response() reports, or if it agrees with all but
 * one that was reported. */
bool msn_is_told(const struct judge *j, const struct judged *a);

#endif
