/* layer 3 (explain): internal: what is remembered while packets pass, and the hypotheses about it. */
#ifndef RDMATRACE_EXPLAIN_EXPLAIN_IMPL_H
#define RDMATRACE_EXPLAIN_EXPLAIN_IMPL_H

#include "dissect/mad/cm.h"
#include "src/conn/ud_gaps.h"
#include "src/explain/explain.h"
#include "src/explain/notes.h"
#include "src/taps/taps.h"

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
    uint32_t incident;
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
/* An RTU that came before the REP that it answers: the clocks of the two directions differ. frame 0: the place is free.
 */
struct early_rtu {
    struct conn_addr src, dst;
    uint32_t tap, id; /* communication id of the REP's sender */
    struct cm_seen seen;
};
#define EARLY_RTUS 16
#define CM_SENT    128
/* A message again this soon is a copy made on the way; an answer this late crosses a repetition. */
#define CM_COPY_WITHIN (10 * NS_PER_MS)

/* A refusal: a REJ or SIDR_REP, as the first tap that saw it told of it. */
struct refusal {
    uint16_t attr;
    uint32_t incident, tap;
    uint32_t local, remote; /* communication ids in it */
    struct conn_addr src, dst;
};
#define REFUSALS 64

/* Q_Key and P_Key of a datagram's destination, as the first datagram to it has them. */
struct qkey_seen {
    uint64_t key;
    uint32_t qkey, frame;
    uint16_t pkey;
    uint32_t q_incident, p_incident; /* about others; NO_INCIDENT: none */
};
#define QKEYS 256

#define DATAGRAM_GAPS 8

/* Datagrams from one queue pair to another. */
struct datagram_flow {
    struct conn_addr src, dst;
    uint32_t tap, sqpn, dqpn;
    uint32_t dup, late; /* incidents that gather frames */
    uint32_t packets;   /* copies not counted */
    struct {
        uint32_t psn, end, frame; /* PSNs, and the datagram that came first behind them */
        uint32_t missing;         /* how many of them have not come; 0: the place is free */
    } gaps[DATAGRAM_GAPS];
    uint64_t missing; /* in all gaps */
    ns_t first_gap;   /* when the first of these was seen */
    struct datagrams seen;
};
#define DATAGRAM_FLOWS 256 /* of further ones nothing is told */

/* A damaged packet whose flow was not known as it came; frame 0: the place is free. */
struct stray {
    struct conn_addr src, dst;
    uint32_t tap, dqpn, psn, frame, incident;
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

/* What an ICMP error says of a packet of RoCEv2, by the router or host that sent it. */
struct icmp_error {
    struct conn_addr router, src, dst; /* its sender; the ends of the packet that it quotes */
    uint16_t code;                     /* type << 8 | code; of ICMPv6 with 0x8000 */
    uint32_t mtu;                      /* of the next hop, where the packet is too big */
    uint32_t tap, frame, n;            /* the first one; how many */
    ns_t ts;
};
#define ICMP_ERRORS 16

/* Responses that belong to no requests of their flow: the first frame, the PSN of the latest, how many. */
struct stranger {
    struct conn_addr src, dst;
    uint32_t tap, dqpn, psn, frame, n;
    uint32_t others; /* of these, other responses than ACKs */
};
#define STRANGERS 64

/* Who was seen last, when, outside of connections: a host. frame 0: the place is free. */
struct host_seen {
    struct conn_addr addr;
    uint32_t frame;
    ns_t ts;
};
#define HOSTS_SEEN 256

/* A time in which no frame was captured at all. */
struct quiet {
    ns_t from, to;
    uint32_t frame; /* the first one behind it */
};
#define QUIET_TIMES 8
#define QUIET_MIN   (150 * NS_PER_MS)

/* Who pauses whom: pause frames of one port. */
struct pauser {
    uint64_t mac;
    uint32_t tap, frame, n; /* the first one, how many */
    uint8_t classes;        /* paused ones, a mask; 0: the link as a whole */
    bool on;                /* paused as of the latest */
    ns_t from, last;        /* of the first and the latest */
    ns_t paused;            /* time that was paused */
};
#define PAUSERS 16

#define EXPLAIN_FILES 64 /* of which the beginning is remembered */

struct explainer {
    struct observer *observer;
    struct timeline *timeline;
    struct taps *taps; /* NULL: clocks are not compared */
    struct flow_notes *notes[OBSERVER_FLOWS];
    struct incident *incidents;
    uint32_t n, cap;
    uint64_t more; /* incidents that found no room */
    struct cm_sent cm[CM_SENT];
    uint32_t cm_at;
    struct early_rtu rtus[EARLY_RTUS];
    uint32_t rtus_at;
    struct refusal refusals[REFUSALS];
    uint32_t refusals_at;
    struct qkey_seen qkeys[QKEYS];
    struct datagram_flow *datagrams[DATAGRAM_FLOWS];
    uint32_t n_datagrams;
    bool more_datagrams; /* than there was room for */
    struct stray strays[NOTED_BAD];
    uint32_t strays_at;
    struct stray_nak naks[STRAY_NAKS];
    uint32_t naks_at;
    struct passed passed[PASSED];
    struct way ways[WAYS];
    struct icmp_error icmp[ICMP_ERRORS];
    uint32_t n_icmp;
    struct stranger strangers[STRANGERS];
    uint32_t n_strangers;
    struct host_seen hosts[HOSTS_SEEN];
    struct quiet quiet[QUIET_TIMES]; /* the longest ones */
    struct pauser pausers[PAUSERS];
    uint32_t n_pausers;
    uint64_t packets;
    uint64_t rdma_packets;
    ns_t last; /* time of the latest frame */
    bool begun[EXPLAIN_FILES];
    ns_t began[EXPLAIN_FILES]; /* by file: time of its first frame */
};

/* A new incident; NULL when there is no room. Its ends are those of the flow, or of the packet. */
struct incident *incident_new(struct explainer *x, enum cause cause, uint32_t flow, const struct pkt *p);
/* A fact to be given to one of the next two: SAY(LOST_AFTER, .psn = 5, .lost = 12). */
#define SAY(name, ...) (&(const struct fact){.sentence = SENTENCE_##name, __VA_ARGS__})
/* The hypothesis of an incident: all facts told of it before are forgotten, and its certainty is that of the
 * hypothesis.
 */
void incident_is(struct incident *s, const struct fact *f);
/* A further fact, if there is room for one more. */
void incident_add(struct incident *s, const struct fact *f);
/* Add a frame, 0 is none; beyond the room it is counted. */
void incident_frame(struct incident *s, enum frame_role role, uint32_t frame);
/* The same of another tap. */
void incident_frame_at(struct incident *s, enum frame_role role, uint32_t tap, uint32_t frame);
/* Whether it names the frame of that tap. */
bool incident_has(const struct incident *s, uint32_t tap, uint32_t frame);
/* Take a frame out again. */
void incident_unframe(struct incident *s, uint32_t frame);
/* Number of an incident, and it; NULL for NO_INCIDENT. */
uint32_t incident_number(const struct explainer *x, const struct incident *s);
struct incident *incident_at(struct explainer *x, uint32_t n);
/* The incident about a damaged frame, which packet `p` brings up again: it is sent because of that. */
struct incident *damaged_incident(struct explainer *x, const struct flow_notes *t, uint32_t frame, const struct pkt *p);
/* The packet that an incident is about. */
void incident_concerns(struct incident *st, uint32_t psn, uint32_t icrc, bool is_request);
/* An incident: request `e->p` came behind later ones; NULL: no room. */
struct incident *incident_overtaken(struct explainer *x, const struct event *e);
/* What is remembered of a flow; made if there is nothing yet. NULL without memory. */
struct flow_notes *notes_of(struct explainer *x, uint32_t flow);
/* Time without progress before a request is sent again, that was sent as `s` before. */
ns_t silence_before(const struct event *e, const struct sent *s);
/* The longest that the ACK timer may run: four times what its code says. */
ns_t longest_timer(const struct conn_params *c);
/* Opcode of a request plus 1, for a fact; 0 for NULL. */
static inline uint16_t op_of(const struct sent *s)
{
    return s ? (uint16_t)(s->opcode + 1) : 0;
}
/* A tap as a fact has it. */
static inline uint32_t fact_tap(uint32_t tap)
{
    return tap + 1;
}
/* The frame that came instead of a PSN: of one before all that was seen, the first; 0: not known (sequence_nak.c). */
uint32_t came_instead(const struct req_dir *h, uint32_t psn);
/* A sequence NAK brought back request `e`, or one before it; NULL without room. */
struct incident *explain_loss(struct explainer *x, const struct event *e, struct flow_notes *t);
/* Requests that go back (retransmit.c); that come for the first time behind later ones; and any behind such a one. */
void explain_back(struct explainer *x, const struct event *e, struct flow_notes *t);
void explain_late(struct explainer *x, const struct event *e, struct flow_notes *t);
void explain_overtaken(struct explainer *x, const struct event *e, struct flow_notes *t);
/* The request behind one that seemed to be overtaken. */
void explain_resent(struct explainer *x, const struct event *e, struct flow_notes *t);
/* A request that goes on behind what is being sent again. */
void explain_skips(struct explainer *x, const struct event *e, struct flow_notes *t);
/* Any request of an unreliable connection that is not SEEN_NEW (unreliable.c). */
void explain_unreliable(struct explainer *x, const struct event *e, const struct flow_notes *t);
/* A datagram; and the end of the capture. */
void explain_datagram(struct explainer *x, const struct pkt *p);
void explain_datagrams_end(struct explainer *x);
/* READs and atomics (read.c): one of them is asked for again, by request `e`, in whole or from a missing response on;
 * NULL without room. And a READ response, before it is taken. */
struct incident *explain_read(struct explainer *x, const struct event *e, struct flow_notes *t, struct read_req *a);
void explain_read_response(struct explainer *x, const struct event *e, struct flow_notes *t);
/* A READ or atomic comes again: its requester misses the answer. Later responses that seemed to be lost behind the tap
 * were dropped there, for it had asked for this one as well when it asked for those again. */
void explain_misses(struct explainer *x, const struct event *e);
/* A READ request in the midst of an earlier one, whose path MTU is not known; false if it is none. */
bool explain_rest(struct explainer *x, const struct event *e, struct flow_notes *t);
/* A response to a READ or atomic of which no answer was seen, and that was asked for again: the MSN may tell that it
 * had been executed. */
void explain_repeated_answer(struct explainer *x, const struct event *e, const struct flow_notes *t);
/* Connection management (cm.c, cm_finish.c): a message, and the end of the capture. */
void explain_cm(struct explainer *x, const struct pkt *p);
void explain_cm_end(struct explainer *x);
/* The latest copy of a message. */
const struct cm_seen *cm_latest(const struct cm_sent *c);
/* What is known of the requests that the receiver of a message sends to its sender's queue pair; NULL for nothing. */
const struct req_dir *cm_requests_back(struct explainer *x, const struct cm_sent *c);
/* The incident about a message that came again, that its sender gave up, or whose answer is missing. */
void cm_tell(struct explainer *x, struct cm_sent *c);
/* What other taps tell of the incidents (cross_check.c), at the end of the capture. */
void explain_taps(struct explainer *x);
/* Whether two flows are the same one at different taps. */
bool explain_same_flow(struct explainer *x, uint32_t a, uint32_t b);
/* What several taps tell of one event is made one incident (merge_taps.c), when all are complete. */
void explain_once(struct explainer *x);
/* Whether the other tap of the flow lacks the first copy of its request `psn`: nobody behind that one got it. */
bool explain_lost_between(struct explainer *x, uint32_t flow, uint32_t psn);
/* What connections without any packet, or without any answer, leave open (unused_conns.c): sentences with `sep` in
 * between; nothing if there is none. */
void explain_remarks(struct explainer *x, const char *sep, struct buf *b);
/* Taps on the same way (merge_taps.c): a packet of no connection; and a request that was given up, and reached one of
 * two taps only. */
void explain_way(struct explainer *x, const struct pkt *p);
/* Whether the request of an incident is at this tap only, though other packets passed both. */
bool explain_is_unreached(struct explainer *x, const struct incident *st);
void explain_unreached(struct explainer *x, struct incident *st);
/* The end of the capture, flow by flow (end_retries.c): a silence without end; an RNR NAK without a further try; a
 * request that has no response and was not sent again; what was sent to the last try although the tap saw responses. */
void end_silence(struct explainer *x, uint32_t flow, struct flow_notes *t, struct req_dir *h);
void end_rnr(struct explainer *x, uint32_t flow, struct flow_notes *t, struct req_dir *h);
void end_unheard(struct explainer *x, uint32_t flow, const struct flow_notes *t, struct req_dir *h);
void end_spent(struct explainer *x, uint32_t flow, const struct flow_notes *t, struct req_dir *h);
/* Likewise (end_timers.c): packets that were late, though they seemed lost; ACK timers shorter than the response takes,
 * on all of a connection or now and then; and an incident of a flow of which not one response was captured. */
void end_overtaken(struct explainer *x, uint32_t flow, const struct flow_notes *t);
void end_slower(struct explainer *x, uint32_t flow, struct flow_notes *t, const struct req_dir *h);
void end_early(struct explainer *x, uint32_t flow, const struct flow_notes *t);
void cannot_tell(struct explainer *x, struct incident *st, struct req_dir *h);
/* Likewise (end_keys.c): P_Keys and MigReq bits of the two directions; several P_Keys in one; a P_Key other than that
 * in the REQ, and no packet of the other direction: true. `o`: notes of the other direction. */
void end_keys(struct explainer *x, uint32_t flow, const struct flow_notes *t, const struct flow_notes *o);
void end_odd_key(struct explainer *x, uint32_t flow, struct flow_notes *t, const struct flow_notes *o);
bool end_req_key(struct explainer *x, uint32_t flow, const struct flow_notes *t);
/* Hypotheses about several connections, when all others are complete (cross.c): a new incident, its number; NO_INCIDENT
 * without room. */
uint32_t cross_new(struct explainer *x, enum cause cause, uint32_t tap, ns_t start);
/* Incident `by` explains incident `i`: that one is on its bill, and is shown with --all only. */
void cross_supersede(struct explainer *x, uint32_t by, uint32_t i);
/* The ends of an incident are those of a flow. */
void incident_of_flow(struct explainer *x, struct incident *st, uint32_t flow);
/* Whether an incident is that requests, or messages of connection management, had no response, as far as seen. */
bool is_unheard(const struct incident *i);
/* All of these, the widest first. */
void explain_cross(struct explainer *x);
/* Paths (paths.c): an ICMP error; a response that belongs to no requests of its flow; the end of the capture. */
void explain_icmp(struct explainer *x, const struct pkt *p);
void explain_stranger(struct explainer *x, const struct pkt *p);
void explain_paths(struct explainer *x);
/* Hosts and links (hosts.c): a packet of no connection; a time without any frame; the end of the capture. */
void explain_host(struct explainer *x, const struct pkt *p);
void explain_quiet(struct explainer *x, const struct pkt *p);
void explain_hosts(struct explainer *x);
void explain_links(struct explainer *x);
/* Pause frames (pauses.c): one of them; the end of the capture. */
void explain_pause(struct explainer *x, const struct pkt *p);
void explain_pauses(struct explainer *x);
/* All that is no request or response (congestion.c). */
void explain_other(struct explainer *x, const struct pkt *p, uint32_t flow);

/* merge_taps.c: the times of all incidents become those of the first tap's clock. */
void explain_set_clocks(struct explainer *x);
/* Append a line for each tap whose clock differs from the first one's. */
void explain_clocks_put(const struct explainer *x, const struct explain_opts *o, struct buf *b);
/* bill.c: each episode of the accounts goes to the bill of one incident. */
void explain_bill(struct explainer *x);
/* What is on the bill of `from` goes to that of `to`. */
void bill_move(struct incident *to, struct incident *from);
/* summary.c: whether an incident is among those that are shown. */
bool explain_is_selected(const struct incident *i, const struct explain_opts *o);
/* Append "67.1 ms: 67.1 ms ACK timeout, 5 us until the NAK". */
void bill_put(struct buf *b, ns_t all, const ns_t states[TIME_STATES]);
/* Columns of text lines. */
static inline unsigned explain_columns(const struct explain_opts *o)
{
    return o->columns ? o->columns : 100;
}

#endif
