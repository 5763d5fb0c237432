/* layer 2b (conn): what the packets of a connection prove.
 *
 * A *half* is one direction of requests: those that flow f carries, and the responses to them in its peer flow. Nothing
 * seen is taken for delivered. What is kept is evidence about PSNs, each with its frame: requests seen (and seen
 * again), READs and atomics asked for and how much of their answer was seen, and what responses prove. Memory is
 * bounded by halves. */
#ifndef RDMATRACE_CONN_REQUESTS_H
#define RDMATRACE_CONN_REQUESTS_H

#include "psn.h"
#include "src/conn/conn.h"

#define TRACK_SENT  1024 /* request packets remembered in a half */
#define TRACK_ASKS  128  /* READs and atomics remembered in a half */
#define TRACK_HOLES 16   /* gaps remembered in a half */

/* A request packet seen. */
struct sent {
    uint32_t psn;        /* UINT32_MAX: empty */
    uint32_t first;      /* frame of its first copy (0: number too large) */
    uint32_t last;       /* of the latest copy */
    uint32_t icrc;       /* of the latest copy, as in the packet */
    uint32_t icrc_first; /* of the first copy */
    uint32_t reth;       /* hash of its RETH or AtomicETH, 0 without one */
    ns_t ts;             /* of the latest copy */
    ns_t ts_first;
    uint32_t msg;   /* number of its message, see half.msgs; 0: not known */
    uint16_t len;   /* payload bytes */
    uint16_t ip_id; /* of the latest copy; 0 for IPv6 */
    uint8_t opcode;
    uint8_t copies; /* 1 to 255; identical ones not counted */
    uint8_t same;   /* identical copies of the latest: captured or delivered twice */
    bool late;      /* later PSNs came before its first copy */
};

/* A READ or atomic asked for; a READ asked for again in part is a further one. */
struct read_req {
    uint32_t psn, span; /* PSNs of its answer; span 0: empty */
    uint32_t len;       /* bytes */
    uint32_t rkey;
    uint64_t va;
    uint64_t orig;      /* atomic: original value in the first answer, with `answered` */
    uint32_t frame;     /* request */
    uint32_t rsp_first; /* frame of the first response seen, 0: none */
    uint32_t rsp_last;  /* and of the last one seen */
    uint32_t got;       /* responses seen in order, from the start */
    ns_t ts;
    uint64_t rsps;  /* half.rsp_packets when it was asked for */
    uint64_t done;  /* half.rsp_packets when all of its answer had been seen, with `answered` */
    uint8_t opcode; /* lower five bits of the request's */
    bool again;     /* inside the PSNs of an earlier one */
    bool late;      /* behind one seen earlier: its first copy was lost before the tap, or it was overtaken */
    bool answered;  /* all of its answer was seen */
    /* that was before the answer to an earlier one was complete: its requester drops it and may get another */
    bool early;
    bool replay; /* asked for again when all of the answer to the original had been seen */
};

/* A NAK seen. */
struct nak {
    bool have;
    bool resent; /* the PSN has been seen sent again since */
    uint8_t syndrome;
    uint32_t psn, msn;
    uint32_t frame;
    uint32_t icrc;
    uint32_t times; /* NAKs for this PSN in a row */
    ns_t ts, ts_first;
};

/* Why a requester went back. */
enum why_back {
    BACK_NONE,
    BACK_SEQ_NAK,
    BACK_IMPLIED, /* a response passed over a READ or atomic, or over part of its answer */
    BACK_RNR,
    BACK_SILENCE, /* no NAK seen: a timeout, or a NAK that was not captured */
};
/* "sequence NAK", "implied NAK", "RNR NAK", "no answer". */
const char *why_back_str(enum why_back w);

/* Whether the first request seen is the first one of its queue pair, as the MSN of the first response tells. */
enum began { BEGAN_UNKNOWN, BEGAN_SEEN, BEGAN_BEFORE };

/* What a request packet is to its half. */
enum seen_as {
    SEEN_NEW,   /* the PSN expected next */
    SEEN_GAP,   /* ahead: PSNs before it were not seen */
    SEEN_LATE,  /* behind, and not seen before: overtaken, or its first copy was lost before the tap */
    SEEN_AGAIN, /* behind, and seen before: sent again */
    SEEN_COPY,  /* identical to the copy before, to the last bit: sent, delivered or captured twice */
    /* far away, of another service, or a PSN that was answered comes with another opcode: the queue pair begins anew */
    SEEN_RESTART,
    SEEN_OLD, /* behind what is remembered */
};

struct req_dir {
    uint32_t flow;   /* requests */
    uint8_t service; /* enum service */
    uint16_t pmtu;   /* bytes, 0: not known */

    /* Requests. */
    bool have_next;
    bool from_start;     /* the first request of the queue pair was seen */
    bool first_is_start; /* the first request seen begins a message */
    uint8_t began;       /* enum began */
    bool counted;        /* from_start, and no gap since: msgs and ends are exact */
    uint32_t next;       /* highest PSN used, plus 1; valid with have_next, as all below */
    uint32_t cursor;     /* the PSN that would follow the packet seen last */
    uint32_t start;      /* first PSN seen */
    uint32_t msgs;       /* messages begun, from 1 */
    uint32_t ends;       /* messages whose last packet was seen (READ, atomic: their request) */
    uint32_t contig;     /* every PSN from `start` to before this one was seen */
    uint32_t gbn;   /* PSN that a responder which drops what is out of order expects, if it got all that was seen */
    bool gbn_known; /* so before the first request: what was agreed on */
    uint32_t last_frame; /* of the latest request */
    ns_t last_ts;

    /* Going back. */
    bool heard_pmtu; /* what is known of the path MTU is what a response has shown */
    bool loose;      /* the latest request is a READ whose PSNs are not known for want of a path MTU */
    /* a READ's PSNs were guessed from the request behind it, or the first packets came late: a gap may be unknown */
    bool vague;
    bool twin;   /* req_dir_classify(): the packet is identical to the copy before, but SEEN_AGAIN */
    bool back;   /* cursor is behind next because something is being sent again */
    uint8_t why; /* enum why_back of the latest episode */
    /* enum why_back of the next request, set by the observer, which remembers older NAKs; BACK_NONE: as
     * req_dir_why_back() says */
    uint8_t why_now;
    uint8_t timeout;   /* the requester's local ACK timeout, 4.096 us x 2^n; 0: not known */
    uint32_t back_psn; /* where it resumed */
    uint32_t retries;  /* episodes of silence without progress in between */
    ns_t back_ts;

    /* Responses. */
    /* the latest progress is an ACK for a READ or atomic whose own answer was not seen before it: an implied NAK */
    bool plain;
    /* a request came late, and what had been sent by then neither came once more in order nor was answered yet */
    bool unsettled;
    bool disorder;    /* a response came behind a later one: what the requester made of either is not certain */
    uint32_t settles; /* with `unsettled`: `next` when that request came */
    uint32_t una;     /* PSNs before this one were certainly delivered; valid with have_una */
    bool have_una;
    bool have_ack; /* ack_*: the plain ACK of the highest PSN */
    uint32_t ack_psn, ack_msn, ack_frame;
    uint32_t una_frame;
    /* behind the READ or atomic whose answer was complete only after a later response: where its requester goes on */
    uint32_t late_end;
    uint64_t late_rsps; /* rsp_packets then; 0: never */
    uint32_t proves;    /* of the latest response; responses of what is asked for again are behind una */
    uint64_t una_rsps;  /* rsp_packets at the latest response that proved as much as una */
    uint64_t back_rsps; /* rsp_packets when something was sent again last */
    ns_t una_ts;        /* of the latest progress */
    uint32_t seq_low;   /* PSN of the first sequence NAK since something was sent again last */
    struct nak seq, rnr, fatal;

    /* Counters. */
    uint64_t packets, bytes;     /* requests: packets, payload bytes; repetitions included */
    uint64_t again, again_bytes; /* packets sent again */
    uint64_t copies, late, gaps; /* SEEN_COPY, SEEN_LATE packets; PSNs skipped at first */
    uint64_t rsp_packets, rsp_bytes;
    uint64_t acks, seq_naks, rnr_naks, fatal_naks;
    uint64_t backs[BACK_SILENCE + 1]; /* episodes */
    uint64_t restarts;
    uint32_t first_frame;
    uint32_t first_rsp_frame;
    ns_t first_ts, first_rsp_ts;
    ns_t rsp_ts; /* of the latest response */

    /* Gaps. */
    uint32_t holes[TRACK_HOLES];       /* values of gbn when later PSNs came, latest at holes_at - 1 */
    uint32_t hole_frames[TRACK_HOLES]; /* the frame that came instead */
    uint32_t holes_at;

    uint32_t asks_at;
    struct read_req asks[TRACK_ASKS];
    struct sent sent[TRACK_SENT];
};

/* Begin anew for `flow`. */
void req_dir_init(struct req_dir *h, uint32_t flow);

/* What is remembered of a PSN; NULL for nothing. */
static inline struct sent *req_dir_sent(struct req_dir *h, uint32_t psn)
{
    struct sent *s = &h->sent[psn % TRACK_SENT];

    return s->psn == psn ? s : NULL;
}
/* The READ or atomic whose answer takes `psn`: the one asked for last (`nth` 0), or the one before (1, 2, ...); NULL
 * for none. */
struct read_req *req_dir_ask(struct req_dir *h, uint32_t psn, unsigned nth);
/* READs and atomics of whose answer the end was not seen, nor a response beyond it, repetitions not counted; *oldest is
 * set to the oldest of them, or NULL. */
uint32_t req_dir_outstanding(struct req_dir *h, struct read_req **oldest);
/* READs and atomics that may have waited for their answer when `a` was asked for, itself and repetitions counted. */
uint32_t req_dir_outstanding_at(const struct req_dir *h, const struct read_req *a);
/* Whether `psn` was expected (half.gbn) when a later PSN came; *frame (may be NULL) is the frame that came first. */
bool req_dir_was_hole(const struct req_dir *h, uint32_t psn, uint32_t *frame);

/* Whether a response may carry `psn`: it was seen, or is a gap among those seen lately. */
bool req_dir_has_psn(struct req_dir *h, uint32_t psn);
/* What request `p` is, judged before req_dir_request(). */
enum seen_as req_dir_classify(struct req_dir *h, const struct pkt *p);
/* The path MTU became known: READs are given the PSNs that they take. Does nothing if it is no path MTU, or one is
 * known. */
void req_dir_set_pmtu(struct req_dir *h, uint32_t pmtu);
/* Hash of a packet's RETH or AtomicETH, 0 without one. */
uint32_t reth_hash(const struct pkt *p);
/* PSNs that request `p` takes; 1 if that needs a path MTU which is not known. */
uint32_t req_dir_span(const struct req_dir *h, const struct pkt *p);
/* Whether `p` is a READ request whose PSNs are not known for want of a path MTU: responses to it may not be known as
 * such. */
static inline bool req_dir_is_unknown_read(const struct req_dir *h, const struct pkt *p)
{
    return p->op->flags & OPF_READ_REQ && !h->pmtu && p->reth.dmalen > 256;
}
/* Why the requester would go back to `psn` at `now`, by what was seen; BACK_NONE: `psn` is of what is sent again
 * already, and was overtaken. */
enum why_back req_dir_why_back(struct req_dir *h, uint32_t psn, ns_t now);
/* Take request `p`, which is `as`. */
void req_dir_request(struct req_dir *h, const struct pkt *p, enum seen_as as);
/* Take response `p`. */
void req_dir_response(struct req_dir *h, const struct pkt *p);

/* A packet without an IP identification looks the same when it is sent again; one this young is taken for a copy. */
#define TWIN_WITHIN NS_PER_MS
/* IPv4 identification, 0 for other packets. */
uint16_t frame_ip_id(const struct pkt *p);
/* ICRC as it stands in the packet, 0 if it was not captured. */
uint32_t icrc_of(const struct pkt *p);

/* PSN in which a response's request certainly arrived: everything before the returned one was delivered. */
uint32_t response_proves(const struct pkt *p);

/* PSNs that the answer to a READ of `len` bytes takes, as far as the path MTU is known by now. */
static inline uint32_t req_dir_read_span(const struct req_dir *h, uint64_t len)
{
    return h->pmtu ? psn_span(len, h->pmtu) : 1;
}
/* The number of a frame as it is kept, 0 if it is too large. */
static inline uint32_t frame_u32(const struct pkt *p)
{
    return p->frame->number <= UINT32_MAX ? (uint32_t)p->frame->number : 0;
}
/* Class of a response's AETH (enum aeth_type), AETH_ACK if it has none. */
static inline unsigned response_type(const struct pkt *p)
{
    return p->have & H_AETH ? aeth_type(p->aeth.syndrome) : AETH_ACK;
}

#endif
