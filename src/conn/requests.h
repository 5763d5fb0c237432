/* layer 2b (conn): what the packets of a connection prove.
 *
 * struct req_dir is one direction of requests: those that a flow carries, and the responses to them in its peer flow. A
 * packet that was seen is not taken for delivered. What is kept is evidence about PSNs, each with its frame: requests
 * seen, and retransmitted; READs and atomics, and how many of their responses were seen; what responses prove.
 *
 *     start        una          gbn       contig        next
 *       |-----------|------------|----------|------------|
 *        delivered,  in flight;   (a gap at  later PSNs   PSN of the next new request
 *        proved      gbn: what a  contig)    were seen
 *                    go-back-N
 *                    responder expects
 *
 * Memory is bounded for each direction: tables are small at first, and grow to the sizes below as long as there is
 * room. Where there is little left, only what is outstanding makes them grow (include/room.h). */
#ifndef RDMATRACE_CONN_REQUESTS_H
#define RDMATRACE_CONN_REQUESTS_H

#include "dissect/ib/opcode.h"
#include "psn.h"
#include "room.h"
#include "src/conn/conn.h"

#define TRACK_SENT  1024              /* request packets remembered in a direction */
#define TRACK_READS 128               /* READ and atomic requests remembered in a direction */
#define TRACK_HOLES 16                /* gaps remembered in a direction */
#define TRACK_FAR   INT32_C(0x100000) /* a PSN further away than this belongs to another connection */

/* A request packet seen. */
struct sent {
    uint32_t psn;        /* UINT32_MAX: empty */
    uint32_t first;      /* frame of its first copy (0: number too large) */
    uint32_t last;       /* of the latest copy */
    uint32_t icrc;       /* of the latest copy, as in the packet */
    uint32_t icrc_first; /* of the first copy */
    uint32_t reth;       /* request_reth() */
    uint32_t args;       /* request_args() */
    ns_t ts;             /* of the latest copy */
    ns_t ts_first;       /* of the first copy */
    uint32_t msg;        /* number of its message, see req_dir.msgs; 0: not known */
    uint16_t len;        /* payload bytes */
    uint16_t ip_id;      /* of the latest copy; 0 for IPv6 */
    uint16_t sport;      /* UDP source port of the latest copy */
    uint8_t flags;       /* second byte of the BTH of the latest copy: SE, MigReq, pad count, version */
    uint8_t ackreq;      /* ninth byte of its BTH: AckReq and reserved bits */
    uint8_t opcode;      /* BTH opcode */
    uint8_t copies;      /* times sent, 1 to 255; identical copies not counted */
    uint8_t same;        /* identical copies of the latest one: captured twice, or duplicated by the network */
    bool late;           /* its first copy was captured after later PSNs */
    uint8_t way;         /* packet_way() of the latest copy */
    uint8_t way_first;   /* of the first copy */
    /* its position in its message, and the number of that message, both from 1, as decode shows them; set by
     * src/conn/annotate.c; 0: not known */
    uint16_t note_packet;
    uint32_t note_msg;
};

/* A READ or atomic request. A READ retry for the rest of a READ is an entry of its own. */
struct read_req {
    uint32_t psn, span; /* PSNs of its responses; span 0: empty */
    uint32_t len;       /* bytes */
    uint32_t rkey;
    uint64_t va;        /* rkey, va: of the RETH or AtomicETH */
    uint64_t add;       /* FETCH_ADD: what it adds; COMPARE_SWAP: the new value */
    uint64_t orig;      /* atomic: original value in the first response, with `answered` */
    uint32_t frame;     /* request */
    uint32_t rsp_first; /* frame of the first response seen, 0: none */
    uint32_t rsp_last;  /* frame of the last response seen */
    uint32_t got;       /* responses seen in order, from the first */
    ns_t ts;            /* time of the request */
    uint64_t rsps;      /* req_dir.rsp_packets when it was sent */
    uint64_t done;      /* req_dir.rsp_packets when its last response had been seen, with `answered` */
    uint8_t opcode;     /* lower five bits of the request's opcode */
    bool again;         /* retransmitted: inside the PSNs of an earlier one */
    bool late;     /* captured after a later request: its first copy was lost before the tap, or it was reordered */
    bool answered; /* all of its responses were seen */
    /* its responses came while those to an earlier request were incomplete: the requester drops them, and the responder
     * may repeat them */
    bool early;
    bool replay; /* retransmitted although all responses to the original had been seen */
};

/* A NAK seen. */
struct nak {
    bool have;        /* one was seen */
    bool resent;      /* its PSN has been retransmitted since */
    uint8_t syndrome; /* AETH syndrome */
    uint32_t psn, msn;
    uint32_t frame;    /* of the latest one for this PSN */
    uint32_t icrc;     /* of the latest one */
    uint32_t times;    /* NAKs for this PSN in a row, from 1 */
    ns_t ts, ts_first; /* of the latest one for this PSN, of the first one */
};

/* Why a requester went back. */
enum why_back {
    BACK_NONE,
    BACK_SEQ_NAK,
    BACK_IMPLIED, /* a response skipped a READ or atomic, or part of its responses */
    BACK_RNR,
    BACK_SILENCE, /* no NAK was seen: an ACK timeout, or a NAK that was not captured */
};
/* "sequence NAK", "implied NAK", "RNR NAK", "no answer". */
const char *why_back_str(enum why_back w);

/* Whether the capture has the first request of the queue pair, judged by the MSN of the first response. */
enum began { BEGAN_UNKNOWN, BEGAN_SEEN, BEGAN_BEFORE };

/* How a request packet relates to the requests before it. */
enum seen_as {
    SEEN_NEW,   /* the PSN expected next */
    SEEN_GAP,   /* ahead: PSNs before it were not seen */
    SEEN_LATE,  /* before `next`, and not seen before: reordered, or its first copy was lost before the tap */
    SEEN_AGAIN, /* before `next`, and seen before: retransmitted */
    SEEN_COPY,  /* identical to the copy before, from the BTH on: captured twice, or duplicated by the network */
    /* the queue pair was reset: the PSN is far away, the transport service is another one, or an acknowledged PSN comes
     * with another opcode */
    SEEN_RESTART,
    SEEN_OLD, /* before all PSNs remembered */
};

struct req_dir {
    /* What every packet needs: four lines of the cache (REQ_DIR_HOT), the first two for requests. */
    /* Request packets, each in slot `PSN modulo slots`. The number of slots, a power of two, doubles as long as PSNs
     * collide; from TRACK_SENT slots on, or without room, a later PSN replaces an earlier one. NULL: there is no
     * memory, and nothing else is valid. */
    struct sent *sent;
    /* READs and atomics, in a ring of `read_slots`, a power of two, at most TRACK_READS; span 0: empty */
    struct read_req *reads;
    uint32_t slots, read_slots;
    uint32_t next;   /* highest PSN used, plus 1; valid with have_next, as all below */
    uint32_t cursor; /* PSN after the latest packet: with `back`, where the go-back-N continues */
    uint32_t start;  /* first PSN seen */
    uint32_t contig; /* every PSN from `start` to before this one was seen */
    uint32_t gbn;    /* PSN that a responder without reordering (go-back-N) expects if it received all that was seen */
    uint32_t msgs;   /* messages begun, from 1 */
    uint32_t ends;   /* messages whose last packet was seen (READ, atomic: their request) */
    uint32_t last_frame; /* of the latest request */
    uint8_t service;     /* enum service */
    bool have_next;
    bool loose; /* the latest request is a READ whose PSNs are not known because the path MTU is not */
    /* there may be a gap that was not seen: the PSNs of a READ were derived from the next request, or the first packets
     * were reordered */
    bool vague;
    bool back; /* go-back-N in progress: cursor is before next */
    /* a request was reordered, and the requests sent before it are neither all retransmitted in order nor acknowledged
     * yet */
    bool unsettled;
    bool have_una; /* una is known */
    bool counted;  /* from_start, and no gap since: msgs and ends are exact */

    uint64_t packets, bytes;                 /* requests: packets, payload bytes; retransmissions included */
    ns_t last_ts;                            /* time of the latest request */
    uint64_t again;                          /* retransmitted packets */
    uint64_t seq_naks, rnr_naks, fatal_naks; /* NAKs by kind; 0: `seq`, `rnr` or `fatal` is not valid */
    uint16_t pmtu;                           /* bytes, 0: not known */
    uint8_t began;                           /* enum began */
    bool from_start;                         /* the first request of the queue pair was seen */
    bool first_is_start;                     /* the first request seen begins a message */
    bool gbn_known;                          /* `gbn` was known before the first request, from connection setup */
    bool pmtu_from_response;                 /* the path MTU is known from a response only */
    bool identical; /* req_dir_classify(): the packet is identical to the copy before, but SEEN_AGAIN */

    uint64_t rsp_packets, rsp_bytes; /* responses: packets, payload bytes */
    uint64_t rsp_inside;             /* of the packets: inside a READ response of several, after the first */
    ns_t rsp_ts;                     /* of the latest response */
    uint64_t una_rsps;               /* rsp_packets at the latest response that proved una */
    ns_t una_ts;                     /* of the latest progress */
    uint64_t acks;                   /* plain ACKs */
    uint32_t una;                    /* PSNs before this one were certainly delivered; valid with have_una */
    /* response_proves() of the latest response; for responses to a retransmitted READ it is before una */
    uint32_t proves;
    uint32_t una_frame; /* frame of the latest progress */
    /* the latest progress is an ACK that covers a READ or atomic whose response had not been seen: an implied NAK */
    bool plain;
    bool under_way; /* all responses since it went back were already in flight: req_dir_is_under_way() */
    bool disorder;  /* responses were reordered: which ones the requester accepted is not certain */
    bool have_ack;  /* ack_*: the plain ACK of the highest PSN */

    /* shortest time from a request that was sent once to its response, and from the first copy of one; 0: not known */
    ns_t rtt, rtt_first;
    ns_t rtt_latest; /* time from the latest request to which a response came, to that; 0: it was sent several times */
    uint32_t ack_psn, ack_msn, ack_frame;
    uint32_t first_rsp_frame; /* of the first response */
    uint32_t retries;         /* ACK timeouts in a row without progress */
    uint32_t back_psn;        /* PSN to which it went back last */
    uint32_t settles;         /* with `unsettled`: `next` when the reordered request came */
    uint32_t reads_at;        /* READs and atomics so far; req_dir_latest_read() */
    uint32_t holes_at;        /* gaps so far */
    uint8_t why;              /* enum why_back: why the requester went back last */
    uint8_t timeout;          /* the requester's local ACK timeout, 4.096 us x 2^n; 0: not known */
    bool replaced;            /* fewer than TRACK_SENT request packets are remembered: there was no room for more */

    /* Going back, and what came late. */
    uint32_t flow; /* requests */
    ns_t back_ts;  /* when it went back last */
    /* PSN after the READ or atomic that was complete only after a later response: the requester resumes there */
    uint32_t late_end;
    uint64_t late_rsps;         /* rsp_packets when it was complete; 0: there was none */
    uint64_t back_rsps;         /* rsp_packets at the latest retransmission */
    uint32_t seq_low;           /* lowest PSN in a NAK since the last NAK that led to a retransmission */
    struct nak seq, rnr, fatal; /* latest sequence NAK, RNR NAK, and other NAK (a fatal error) */

    /* Counters. */
    uint64_t again_bytes;             /* payload bytes of retransmitted packets */
    uint64_t copies, late, gaps;      /* packets that were SEEN_COPY, SEEN_LATE; PSNs that SEEN_GAP packets skipped */
    uint64_t backs[BACK_SILENCE + 1]; /* times that the requester went back, by enum why_back */
    uint64_t restarts;                /* times that the queue pair was reset */
    uint32_t first_frame;             /* of the first request */
    ns_t first_ts, first_rsp_ts;      /* times of the first request and the first response */

    /* Gaps. */
    /* values of gbn when later PSNs came; the latest is at (holes_at - 1) % TRACK_HOLES */
    uint32_t holes[TRACK_HOLES];
    uint32_t hole_frames[TRACK_HOLES]; /* frame that showed the gap */

    struct room *room; /* from which the tables grow; NULL: no limit */
};
#define REQ_DIR_REQUESTS offsetof(struct req_dir, rsp_packets)
#define REQ_DIR_HOT      offsetof(struct req_dir, flow)

/* Reset *h to the requests of `flow`; only the count of restarts and the memory are kept. Before the first call *h must
 * be zero. False without memory. */
bool req_dir_init(struct req_dir *h, uint32_t flow);
/* Release the memory of req_dir_init(). */
void req_dir_end(struct req_dir *h);

/* PSNs of requests that were seen and not acknowledged. */
static inline uint32_t req_dir_in_flight(const struct req_dir *h)
{
    return (h->next - (h->have_una ? h->una : h->start)) & PSN_MASK;
}
/* READ or atomic number `i`, counted from the latest, 1, to the earliest, `read_slots`; span 0: there is none. */
static inline struct read_req *req_dir_latest_read(const struct req_dir *h, uint32_t i)
{
    return &h->reads[(h->reads_at - i) & (h->read_slots - 1)];
}

/* The request packet seen with this PSN; NULL: none is remembered. Valid until the next req_dir_request(). */
static inline struct sent *req_dir_sent(struct req_dir *h, uint32_t psn)
{
    struct sent *s = &h->sent[psn & (h->slots - 1)];

    return s->psn == psn ? s : NULL;
}
/* The packet of a SEND or WRITE seen with this PSN, which so is none of a READ or atomic; NULL: none. */
static inline struct sent *req_dir_data(struct req_dir *h, uint32_t psn)
{
    struct sent *s = req_dir_sent(h, psn);

    return s && opcode_table[s->opcode].flags & (OPF_SEND | OPF_WRITE) ? s : NULL;
}
/* The READ or atomic request with a response of PSN `psn`: the latest (`nth` 0), or the one before it (1, 2, ...);
 * NULL: none. */
struct read_req *req_dir_read(struct req_dir *h, uint32_t psn, unsigned nth);
/* The latest READ or atomic request with a response of PSN `psn` behind the *at latest requests; *at becomes its place.
 * NULL: there is none. */
struct read_req *req_dir_read_before(struct req_dir *h, uint32_t psn, uint32_t *at);
/* Whether response `p` was sent before the responder had the request with which the requester went back last: it comes
 * sooner than a round trip, or it goes on where the response before it ended. Before req_dir_response(). */
bool req_dir_is_under_way(const struct req_dir *h, const struct pkt *p);
/* The READ or atomic request that response `p` answers, after req_dir_response(); NULL: none. */
const struct read_req *req_dir_answered(struct req_dir *h, const struct pkt *p);
/* Number of outstanding READs and atomics: neither the last response nor a later one was seen; retransmissions are not
 * counted. *oldest is set to the oldest of them, or NULL. */
uint32_t req_dir_outstanding(struct req_dir *h, struct read_req **oldest);
/* READs and atomics that may have been outstanding when `a` was sent, itself and retransmissions counted. */
uint32_t req_dir_outstanding_at(const struct req_dir *h, const struct read_req *a);
/* Whether the responder expected `psn` (req_dir.gbn) when a later PSN came; *frame (may be NULL) is set to the frame
 * that showed the gap. */
bool req_dir_was_hole(const struct req_dir *h, uint32_t psn, uint32_t *frame);

/* Whether a response may carry `psn`: the PSN was seen in a request, or is a gap among the latest ones. */
bool req_dir_has_psn(struct req_dir *h, uint32_t psn);
/* How request `p` relates to those before it; call it before req_dir_request(). */
enum seen_as req_dir_classify(struct req_dir *h, const struct pkt *p);
/* The path MTU became known: derive the spans of the remembered READs from it. No effect if `pmtu` is not a path MTU,
 * or if one is known. */
void req_dir_set_pmtu(struct req_dir *h, uint32_t pmtu);
/* Number of PSNs that request `p` takes; 1 if that depends on a path MTU which is not known. */
uint32_t req_dir_span(const struct req_dir *h, const struct pkt *p);
/* Whether `p` is a READ request whose PSNs are not known because the path MTU is not: its responses may not be
 * recognised. */
bool req_dir_is_unknown_read(const struct req_dir *h, const struct pkt *p);
/* Update the evidence by request `p`, classified `as`. `why`: why the requester goes back, from go_back_why();
 * BACK_NONE for a request that does not. */
void req_dir_request(struct req_dir *h, const struct pkt *p, enum seen_as as, enum why_back why);
/* Update the evidence by response `p`. */
void req_dir_response(struct req_dir *h, const struct pkt *p);

/* Whether a loss is so close that an adapter may send a CNP for it, without a mark. */
#define LOSS_NEAR NS_PER_MS
static inline bool req_dir_is_near_loss(const struct req_dir *h, ns_t now)
{
    bool naked = h && h->seq.have && now - h->seq.ts < LOSS_NEAR;
    bool went_back = h && (h->backs[BACK_SEQ_NAK] || h->again) && now - h->back_ts < LOSS_NEAR;

    return naked || went_back;
}

/* Number of response PSNs of a READ of `len` bytes; 1 while the path MTU is not known. */
static inline uint32_t req_dir_read_span(const struct req_dir *h, uint64_t len)
{
    return h->pmtu ? psn_span(len, h->pmtu) : 1;
}

#endif
