/* layer 3 (explain): internal: the state of an explanation. */
#ifndef RDMATRACE_EXPLAIN_EXPLAIN_IMPL_H
#define RDMATRACE_EXPLAIN_EXPLAIN_IMPL_H

#include "dissect/mad/cm.h"
#include "src/conn/ud_gaps.h"
#include "src/explain/explain.h"

#define TOLD_RESPONSES 512
#define TOLD_BAD       8
#define TOLD_GAPS      8
#define TOLD_ODD       8
#define TOLD_KEYS      64
#define AT_ONCE                                                                                                        \
    4 /* what comes within this part of the shortest round trip does not answer what was sent just before              \
       */
#define NO_STATEMENT UINT32_MAX

#define PASS_RUNS  3
#define PASS_ASKED 8

/* When requests passed the tap: which copies since their sender went back last, and since it had gone back the time
 * before. That tells which copy of a packet its receiver asks for again, for it had taken all that came before that one
 * in order. */
struct passes {
    struct {
        uint32_t psn; /* UINT32_MAX: empty */
        /* of its latest copies, the latest one first: frame, and number among the requests of the flow; at 0: none */
        uint32_t frame[2], at[2];
    } seen[TRACK_SENT];
    uint32_t n; /* requests so far */
    struct {
        /* its first request, at 0: the first one of the flow; the PSN asked for, or else its first one */
        uint32_t at, psn;
        uint32_t resume; /* the PSN that would have followed, had its sender not gone back */
        bool asked;      /* a NAK asked for it */
    } runs[PASS_RUNS];   /* what was sent without going back, the latest one first */
    struct asked {
        uint32_t psn, nak, at; /* frame of the NAK, 0: empty; requests seen by then */
        uint32_t copy;         /* the copy that was lost behind the tap; 0: it did not pass */
        uint32_t instead;      /* the first packet behind it in that run; 0: none was seen */
        uint32_t dropped;      /* a copy of a run before, if none passed in that one; 0: none */
        bool late;             /* that packet came before the copy */
        bool answered;         /* the requester has gone back to the PSN since */
    } asked[PASS_ASKED];       /* what sequence NAKs asked for, as things were when they passed */
    uint32_t asked_at;
};

/* A packet with a P_Key of its own. */
struct odd_key {
    uint32_t psn, frame;
    uint16_t pkey;
};

/* What is remembered of a flow: of its requests, and of what all its packets carry. */
struct told {
    struct passes passes;
    struct {
        uint32_t psn, rkey, len; /* len 0: none */
        uint64_t va;
    } keys[TOLD_KEYS]; /* of the latest requests that have an R_Key */
    uint32_t keys_at;
    struct {
        uint32_t psn, first, frame, icrc;
        uint32_t answer; /* latest frame of a READ's or atomic's answer; 0: none */
        bool acked;      /* an ACK had passed over that one before */
        ns_t ts;
    } rsp[TOLD_RESPONSES]; /* responses to its requests, by PSN: first and latest frame; ICRC and time of the latest */
    struct {
        uint32_t psn, frame, statement;
    } bad[TOLD_BAD]; /* requests with a bad ICRC */
    uint32_t bad_at;
    struct {
        uint32_t psn, frame; /* frame 0: none */
    } gaps[TOLD_GAPS]; /* PSNs that were not seen when a later one came first: the first one of each gap, and what came
                          instead */
    uint32_t gaps_at;
    uint32_t open;                        /* statement about what is not answered yet */
    uint32_t cost;                        /* statement because of which packets are being sent again */
    uint32_t dup, reorder, rnr, ce, soon; /* statements that gather further frames */
    /* statement about a PSN first seen behind later ones and after a NAK: what comes next tells whether it was sent
     * again */
    uint32_t late;
    uint32_t late_alone;  /* statement about the request before, if it was overtaken */
    uint32_t follows;     /* PSN behind the request before, if that was sent again; else UINT32_MAX */
    uint32_t dup_rsp;     /* like dup, of answers */
    uint32_t reorder_end; /* PSN behind what had been sent when a packet was overtaken: its receiver dropped all that */
    uint32_t silent;      /* statement about the latest time that something was sent again for want of an answer */
    uint32_t unheard;     /* statement about an answer that was lost behind the tap */
    uint32_t rsp_next;    /* PSN behind the latest READ response that was not late; UINT32_MAX: none was seen */
    /* PSN of the latest READ response, which was asked for again and comes behind later ones; else UINT32_MAX */
    uint32_t rsp_late;
    uint32_t rsp_missing; /* statement about a READ response that was lost before the tap, it seems */
    uint32_t rsp_lost;    /* statement about the answer to a READ or atomic that was asked for again last */
    /* when that was, and how long after the answer had passed the tap; 0: its requester waited */
    ns_t rsp_lost_ts, rsp_loop;
    /* statement about one that was overtaken, and the PSN behind what its receiver dropped */
    uint32_t rsp_reorder, rsp_reorder_end;
    /* response of READs and atomics with which they went back last; frame 0: they never did */
    uint32_t run_frame, run_psn;
    uint32_t run_last; /* PSN of the latest one; UINT32_MAX: none was seen */
    /* the shortest time after which a response that was lost behind the tap was asked for again; 0: not known */
    ns_t loop;
    bool rests;      /* its READs are asked for again from the response on that is missing */
    ns_t round_trip; /* the shortest time from a request sent once to its answer; negative: not known */
    ns_t least_trip; /* and from the latest copy of any: the answer may be to one before */
    uint32_t rnr_psn;
    /* READ or atomic that went beyond what was agreed on, and how many were outstanding with it; 0: none */
    uint32_t deep_psn, deep;
    bool seen, migreq, have_dscp, have_sl;
    uint16_t pkey;
    uint8_t dscp, sl;        /* of the first packet, if it has IP, or an LRH */
    uint32_t packets, frame; /* of the flow; its first frame */
    uint64_t ce_packets, cnps;
    uint32_t ce_frames[STATEMENT_FRAMES], cnp_frame;
    ns_t cnp_ts;
    uint32_t before_cnp, after_cnp; /* requests within CNP_LOOK of the first CNP */
    ns_t recent[64];                /* times of the latest requests */
    uint32_t recent_at;
    uint32_t asks, answers; /* requests that ask for an answer, repetitions included, and answers */
    ns_t asked_ts;          /* of the latest such request */
    uint32_t left_frame;    /* the requester has said that it closes the connection; 0: not seen */
    ns_t left_ts;
    uint32_t closed_frame; /* the other end has said that it closes the connection */
    ns_t closed_ts;        /* either end has said so */
    struct {
        uint32_t psn, frame; /* frame 0: none */
        ns_t ts;
    } wanted;                     /* the oldest request that asks for an answer, and has none as far as seen */
    uint32_t psn;                 /* of its first packet */
    struct odd_key odd[TOLD_ODD]; /* the first packets with a P_Key other than that of the first one */
    uint32_t n_odd;
    bool asked; /* a request asked for an answer; the last one by its PSN is asked_psn */
    bool owed;  /* that had none yet as something was sent again last */
    uint32_t asked_psn;
    uint32_t last_rsp_frame;
    ns_t last_rsp_ts;
};
#define CNP_LOOK (200 * NS_PER_US)

/* A message of connection management as it was seen; frame 0: none. */
struct cm_seen {
    uint16_t attr; /* enum cm_attr */
    uint16_t pkey;
    uint32_t frame, icrc;
    ns_t ts;
};
#define CM_COPIES 4

/* One that wants an answer (REQ, REP, DREQ, SIDR_REQ), and may be sent again. */
struct cm_sent {
    uint16_t attr;
    uint32_t id, tap; /* communication id of its sender */
    uint32_t qpn;     /* REQ, REP: its sender's; DREQ: its receiver's */
    uint32_t answers; /* REP: communication id of the REQ's sender */
    struct conn_addr src, dst;
    uint32_t statement;
    uint32_t n;                       /* copies; 0: the place is free */
    struct cm_seen copies[CM_COPIES]; /* the first ones, and the latest */
    struct cm_seen again;             /* the first that was sent for want of an answer */
    struct cm_seen between, answer;   /* first answer before, and behind the latest copy */
    uint32_t answered;                /* answers, without copies made on the way */
    ns_t answered_ts;                 /* of the latest */
    struct cm_seen gave_up;           /* REJ by which its sender gave up */
    uint32_t
        used_frame; /* before the latest copy the receiver sent this request, which tells what became of the message */
    bool answer_lost; /* that is why it came again */
    ns_t silence;     /* before the latest copy */
    ns_t wait;        /* REQ: its receiver would send the REP again after this time */
};
#define CM_SENT 128
/* A message again this soon is a copy made on the way; an answer this late crosses a repetition. */
#define CM_COPY_WITHIN (10 * NS_PER_MS)

/* A refusal: a REJ or SIDR_REP, as the first tap that saw it told of it. */
struct refusal {
    uint16_t attr;
    uint32_t statement, tap;
    uint32_t local, remote; /* communication ids in it */
    struct conn_addr src, dst;
};
#define REFUSALS 64

/* Q_Key and P_Key of a datagram's destination, as the first datagram to it has them. */
struct qkey_seen {
    uint64_t key;
    uint32_t qkey, frame;
    uint16_t pkey;
    uint32_t q_statement, p_statement; /* about others; NO_STATEMENT: none */
};
#define QKEYS 256

/* Datagrams from one queue pair to another. */
struct datagram_flow {
    struct conn_addr src, dst;
    uint32_t tap, sqpn, dqpn;
    uint32_t dup, late; /* statements that gather frames */
    uint32_t packets;   /* copies not counted */
    struct {
        uint32_t psn, end, frame; /* PSNs, and the datagram that came first behind them */
        uint32_t missing;         /* how many of them have not come; 0: the place is free */
    } gaps[STATEMENT_FRAMES];
    uint64_t missing; /* in all gaps */
    struct datagrams seen;
};
#define DATAGRAM_FLOWS 256 /* of further ones nothing is told */

/* A damaged packet whose flow was not known as it came; frame 0: the place is free. */
struct stray {
    struct conn_addr src, dst;
    uint32_t tap, dqpn, psn, frame, statement;
    bool answer; /* not a request */
};

/* A sequence NAK for requests that were not known as it came; frame 0: the place is free. */
struct stray_nak {
    struct conn_addr src, dst;
    uint32_t tap, psn, frame;
};
#define STRAY_NAKS 8

/* A packet of no connection, as a tap saw it; the same one at two taps, the latest of each way. frame 0: the place is
 * free. */
struct passed {
    uint32_t hash, tap, frame;
    struct conn_addr src, dst;
};
struct way {
    uint32_t taps[2], frame[2];
    ns_t ts;
    struct conn_addr src, dst;
};
#define PASSED 256
#define WAYS   16

#define EXPLAIN_FILES 64 /* of which the beginning is remembered */

#define WORDS 8 /* addresses and times in one sentence, at most */

struct explainer {
    struct observer *observer;
    struct timeline *timeline;
    char words[WORDS][48]; /* of addr_text() and its kind, in turn */
    unsigned words_at;
    struct told *told[OBSERVER_FLOWS];
    struct statement *st;
    uint32_t n, cap;
    uint64_t more; /* statements that found no room */
    struct buf strings;
    struct cm_sent cm[CM_SENT];
    uint32_t cm_at;
    struct refusal refusals[REFUSALS];
    uint32_t refusals_at;
    struct qkey_seen qkeys[QKEYS];
    struct datagram_flow *datagrams[DATAGRAM_FLOWS];
    uint32_t n_datagrams;
    bool more_datagrams; /* than there was room for */
    struct stray strays[TOLD_BAD];
    uint32_t strays_at;
    struct stray_nak naks[STRAY_NAKS];
    uint32_t naks_at;
    struct passed passed[PASSED];
    struct way ways[WAYS];
    uint32_t pause; /* statement */
    uint64_t packets;
    uint64_t rdma_packets;
    ns_t last; /* time of the latest frame */
    bool begun[EXPLAIN_FILES];
    ns_t began[EXPLAIN_FILES]; /* by file: time of its first frame */
};

/* A new statement; NULL when there is no room. Its paragraph is printf()ed by statement_say(). */
struct statement *statement_new(struct explainer *x, enum cause cause, uint32_t flow, const struct pkt *p);
void statement_say(struct explainer *x, struct statement *s, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Add a frame, 0 is none; beyond the room it is counted. */
void statement_frame(struct statement *s, uint32_t frame);
/* The same of another tap. */
void statement_frame_at(struct statement *s, uint32_t tap, uint32_t frame);
/* Whether it names the frame of that tap. */
bool statement_has(const struct statement *s, uint32_t tap, uint32_t frame);
/* Take a frame out again. */
void statement_unframe(struct statement *s, uint32_t frame);
/* Number of a statement, and it; NULL for NO_STATEMENT. */
uint32_t statement_number(const struct explainer *x, const struct statement *s);
struct statement *statement_at(struct explainer *x, uint32_t n);
/* "192.168.77.1" and so on, in one of WORDS buffers of the explainer that take turns. */
const char *addr_text(struct explainer *x, const struct conn_addr *a);
/* "1.25 ms", likewise. */
const char *time_text(struct explainer *x, ns_t t);
/* Source and destination of a flow, likewise. */
const char *src_text(struct explainer *x, uint32_t flow);
const char *dst_text(struct explainer *x, uint32_t flow);
/* Latest frame of the response with a PSN, and frame of a damaged packet with it; 0: none. */
uint32_t told_rsp_frame(const struct told *t, uint32_t psn);
uint32_t told_bad_frame(const struct told *t, uint32_t psn);
/* Latest frame of the part of a READ's or atomic's answer with a PSN; 0: none. */
uint32_t told_answer_frame(const struct told *t, uint32_t psn);
/* The same of any of `n` PSNs from `psn` on, in a frame behind `since`. */
uint32_t told_bad_since(const struct told *t, uint32_t psn, uint32_t n, uint32_t since);
/* The statement about a damaged frame, which packet `p` brings up again: it is sent because of that. */
struct statement *told_about_bad(struct explainer *x, const struct told *t, uint32_t frame, const struct pkt *p);
/* The packet that a statement is about. */
void statement_concerns(struct statement *st, uint32_t psn, uint32_t icrc, bool is_request);
/* A statement that request `e->p` came behind later ones; NULL: no room. */
struct statement *statement_overtaken(struct explainer *x, const struct event *e);
struct told *told_of(struct explainer *x, uint32_t flow);
/* "at interface 1", or "in file 2" (with its interface unless 0) if the other tap is in another file; likewise. */
const char *tap_text(struct explainer *x, uint32_t tap, uint32_t other);
/* Append to the paragraph of a statement, with a space in between. */
void statement_add(struct explainer *x, struct statement *s, const char *more);
/* Time without progress before a request is sent again, that was sent as `s` before. */
ns_t silence_before(const struct event *e, const struct sent *s);
/* The longest that the ACK timer may run: four times what its code says. */
ns_t longest_timer(const struct conn_params *c);
/* "SEND Middle"; "packet" for NULL. */
const char *request_name(const struct sent *s);
/* When requests passed (rounds.c): begin anew; take a request; take a sequence NAK, with told.least_trip and
 * told.round_trip: the first tells on which side of the tap the packet was lost, the second which copy it was, if
 * several passed. */
void passes_init(struct passes *s);
void passes_request(struct passes *s, const struct event *e);
void passes_nak(struct passes *s, const struct event *e, ns_t least, ns_t round_trip);
/* What is known of the latest sequence NAK for a PSN; NULL for nothing. */
struct asked *passes_asked(struct passes *s, uint32_t psn);
/* Whether that PSN passed between the NAK and the latest request. */
bool passes_since(const struct passes *s, const struct asked *a);
/* Requests that go back (retransmit.c); that come for the first time behind later ones; and any behind such a one. */
void explain_back(struct explainer *x, const struct event *e, struct told *t);
void explain_late(struct explainer *x, const struct event *e, struct told *t);
void explain_overtaken(struct explainer *x, const struct event *e, struct told *t);
/* The request behind one that seemed to be overtaken. */
void explain_resent(struct explainer *x, const struct event *e, struct told *t);
/* A request that goes on behind what is being sent again. */
void explain_skips(struct explainer *x, const struct event *e, struct told *t);
/* Any request of an unreliable connection that is not SEEN_NEW (unreliable.c). */
void explain_unreliable(struct explainer *x, const struct event *e, const struct told *t);
/* A datagram; and the end of the capture. */
void explain_datagram(struct explainer *x, const struct pkt *p);
void explain_datagrams_end(struct explainer *x);
/* READs and atomics (read.c): one of them is asked for again, by request `e`, in whole or from a missing response on;
 * NULL without room. And a READ response, before it is taken. */
struct statement *explain_read(struct explainer *x, const struct event *e, struct told *t, struct read_req *a);
void explain_read_response(struct explainer *x, const struct event *e, struct told *t);
/* A READ or atomic comes again: its requester misses the answer. Later responses that seemed to be lost behind the tap
 * were dropped there, for it had asked for this one as well when it asked for those again. */
void explain_misses(struct explainer *x, const struct event *e);
/* A READ request in the midst of an earlier one, whose path MTU is not known; false if it is none. */
bool explain_rest(struct explainer *x, const struct event *e, struct told *t);
/* A response to a READ or atomic of which no answer was seen, and that was asked for again: the MSN may tell that it
 * had been executed. */
void explain_repeated_answer(struct explainer *x, const struct event *e, const struct told *t);
/* Connection management (cm.c, cm_finish.c): a message, and the end of the capture. */
void explain_cm(struct explainer *x, const struct pkt *p);
void explain_cm_end(struct explainer *x);
/* The latest copy of a message. */
const struct cm_seen *cm_latest(const struct cm_sent *c);
/* What is known of the requests that the receiver of a message sends to its sender's queue pair; NULL for nothing. */
const struct req_dir *cm_requests_back(struct explainer *x, const struct cm_sent *c);
/* The statement about a message that came again, that its sender gave up, or whose answer is missing. */
void cm_tell(struct explainer *x, struct cm_sent *c);
/* What other taps tell of the statements (cross_check.c), at the end of the capture. */
void explain_taps(struct explainer *x);
/* Whether two flows are the same one at different taps. */
bool explain_same_flow(struct explainer *x, uint32_t a, uint32_t b);
/* What several taps tell of one event is made one statement (merge_taps.c), when all are complete. */
void explain_once(struct explainer *x);
/* Whether the other tap of the flow lacks the first copy of its request `psn`: nobody behind that one got it. */
bool explain_lost_between(struct explainer *x, uint32_t flow, uint32_t psn);
/* What connections without any packet, or without any answer, leave open (unused_conns.c): sentences with `sep` in
 * between; nothing if there is none. */
void explain_remarks(struct explainer *x, const char *sep, struct buf *b);
/* Taps on the same way (shared_path.c): a packet of no connection; and a request that was given up, and reached one of
 * two taps only. */
void explain_way(struct explainer *x, const struct pkt *p);
void explain_unreached(struct explainer *x, struct statement *st);
/* All that is no request or response (congestion.c). */
void explain_other(struct explainer *x, const struct pkt *p, uint32_t flow);

/* account.c: the objects of the JSON list `account`. */
void explain_account_json(const struct explainer *x, const struct explain_opts *o, struct buf *b);

#endif
