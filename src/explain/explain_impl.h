/* layer 3 (explain): internal: what is noted while packets pass, and the hypotheses about it. */
#ifndef RDMATRACE_EXPLAIN_EXPLAIN_IMPL_H
#define RDMATRACE_EXPLAIN_EXPLAIN_IMPL_H

#include "dissect/mad/cm.h"
#include "dissect/socket/smc.h"
#include "src/conn/guesses.h"
#include "src/conn/ud_gaps.h"
#include "src/explain/explain.h"
#include "src/explain/notes.h"
#include "src/taps/icrc_sources.h"
#include "src/taps/taps.h"
#include "src/transport/verbs.h"

/* A CM message as captured; frame 0: none. */
struct cm_seen {
    uint16_t attr; /* enum cm_attr */
    uint16_t pkey;
    uint32_t frame, icrc;
    ns_t ts;
};
#define CM_COPIES 4

/* A message that expects a response (REQ, REP, DREQ, SIDR_REQ), and may be retransmitted. */
struct cm_sent {
    uint16_t attr;
    uint32_t id, tap; /* communication id of its sender */
    uint32_t qpn;     /* REQ, REP: its sender's; DREQ: its receiver's; 0: not captured */
    uint32_t answers; /* REP: communication id of the REQ's sender */
    struct conn_addr src, dst;
    uint32_t incident;
    uint32_t n;                       /* copies; 0: the place is free */
    struct cm_seen copies[CM_COPIES]; /* the first ones, and the latest */
    struct cm_seen again;             /* the first retransmission on timeout */
    struct cm_seen between, answer;   /* first response before, and after the latest copy */
    uint32_t answered;                /* responses, without duplicates made in the network */
    ns_t answered_ts;                 /* of the latest */
    struct cm_seen gave_up;           /* REJ with reason Timeout by which its sender gave up */
    uint32_t used_frame;              /* request sent by the receiver before the latest copy: shows which was lost */
    bool answer_lost;                 /* the response was lost: that is why it was retransmitted */
    ns_t silence;                     /* before the latest copy */
    ns_t wait;                        /* REQ: the responder retransmits its REP after this time; 0: not captured */
};
/* An RTU captured before its REP: the clocks of the two directions differ. frame 0: the place is free. */
struct early_rtu {
    struct conn_addr src, dst;
    uint32_t tap, id; /* communication id of the REP's sender */
    struct cm_seen seen;
};
#define EARLY_RTUS 16
#define CM_SENT    128
/* A copy sooner than this is a duplicate made in the network; a response later than this crosses a retransmission. */
#define CM_COPY_WITHIN (10 * NS_PER_MS)

/* A reject: a REJ or SIDR_REP, as the first tap saw it. */
struct refusal {
    uint16_t attr;
    uint32_t incident, tap;
    uint32_t local, remote; /* communication ids in it */
    struct conn_addr src, dst;
};
#define REFUSALS 64

/* Q_Key and P_Key of the first datagram to a destination. */
struct qkey_seen {
    uint64_t key;
    uint32_t qkey, frame;
    uint16_t pkey;
    uint32_t q_incident, p_incident; /* incidents about other keys; NO_INCIDENT: none */
};
#define QKEYS 256

#define DATAGRAM_GAPS 8

/* Datagrams from one queue pair to another. */
struct datagram_flow {
    struct conn_addr src, dst;
    uint32_t tap, sqpn, dqpn;
    uint32_t dup, late; /* incidents that gather frames */
    uint32_t packets;   /* without duplicates */
    struct {
        uint32_t psn, end, frame; /* a gap of PSNs, and the datagram that followed it */
        uint32_t missing;         /* how many of them have not come; 0: the place is free */
    } gaps[DATAGRAM_GAPS];
    uint64_t missing; /* in all gaps */
    ns_t first_gap;   /* when the first gap was seen */
    struct datagrams seen;
};
#define DATAGRAM_FLOWS 256 /* further ones are not analysed */

/* A packet with a bad ICRC whose flow was not known when it came; frame 0: the place is free. */
struct bad_packet {
    struct conn_addr src, dst;
    uint32_t tap, dqpn, psn, frame, incident;
    bool answer; /* a response */
};

/* A sequence NAK whose flow of requests was not known when it came; frame 0: the place is free. */
struct early_nak {
    struct conn_addr src, dst;
    uint32_t tap, psn, frame;
};
#define EARLY_NAKS 8

/* A packet of no connection, as a tap saw it; the latest one that two taps saw, in each direction. frame 0: the place
 * is free. */
struct passed {
    uint32_t hash, tap, frame;
    struct conn_addr src, dst;
};
struct shared_packet {
    uint32_t taps[2], frame[2];
    ns_t ts;
    struct conn_addr src, dst;
};
#define PASSED         256
#define SHARED_PACKETS 16

/* An ICMP error about a RoCEv2 packet, sent by a router or host. */
struct icmp_error {
    struct conn_addr router, src, dst; /* its sender; source and destination of the quoted packet */
    uint16_t code;                     /* type << 8 | code; ICMPv6: with 0x8000 */
    uint32_t mtu;                      /* of the next hop, if the packet is too big */
    uint32_t tap, frame, n;            /* tap and frame of the first one; how many */
    ns_t ts;
};
#define ICMP_ERRORS 16

/* Kinds of NAKs: a PSN is missing; not ready; refused. */
enum { UNMATCHED_SEQ, UNMATCHED_RNR, UNMATCHED_FATAL, UNMATCHED_NAK_KINDS };

/* Responses without requests in the capture: the first frame, the PSN of the latest, how many. */
struct unmatched {
    struct conn_addr src, dst;
    uint32_t tap, dqpn, psn, frame, n;
    uint32_t others;                    /* of these: READ responses and ATOMIC ACKs */
    uint32_t naks[UNMATCHED_NAK_KINDS]; /* by kind: the number of the incident about its NAKs, plus 1; 0: none */
};
#define UNMATCHED 64

/* A host at a tap, by packets of no connection: when it was seen last. frame 0: the place is free. */
struct host_seen {
    struct conn_addr addr;
    uint32_t tap;
    uint32_t frame, gap_frame; /* the latest packet; the one that ended the longest time between two */
    ns_t ts;
    ns_t gap_from, gap_to; /* that time; equal: none */
};
#define HOSTS_SEEN 256

/* A time in which no frame was captured. */
struct quiet {
    ns_t from, to;
    uint32_t frame; /* the first one after it */
};
#define QUIET_TIMES    8
#define CLOCK_SET_BACK (NS_PER_MS) /* stamps that go back by more: the clock was set, not frames reordered */
#define QUIET_MIN      (150 * NS_PER_MS)

#define EXPLAIN_FILES 64 /* files whose first time is kept */

/* Incidents by a key, in their order: lists of indices by the hash of the key, each ended by UINT32_MAX. */
struct incident_chains {
    uint32_t slots;        /* 0: there are none */
    uint32_t *head, *tail; /* by slot */
    uint32_t *next;        /* by incident */
};

#define BEHIND_LOOK     16 /* packets before the lost one at which two taps are compared */
#define BEHIND_COMPARED 64 /* packets from the oldest one without a response on that two taps compare */

#define FRESH_SLOTS 256 /* lists of incidents, by destination queue pair */
#define KEPT        (BEHIND_LOOK + BEHIND_COMPARED)
#define KEPT_MOST   512 /* incidents for which that is kept */

/* What the tap of a flow saw of the requests from BEHIND_LOOK before that of an incident on, until taps whose clocks
 * are behind get there. */
struct kept_copies {
    uint32_t incident, flow, psn; /* index in explainer.incidents; its flow and PSN */
    bool compared;                /* with a tap that got there */
    struct sent sent[KEPT];
    struct noted_response responses[KEPT];
};

/* The latest frame of a file that has a time stamp: its interface, and its time. */
struct stamp {
    uint32_t iface;
    ns_t ts;
};
/* Where time stamps of an interface first go back by more than CLOCK_SET_BACK; frame 0: nowhere. */
struct set_back {
    uint32_t frame;
    uint16_t file;
    ns_t by;
};
/* What somebody tries one after another, by the owner of two addresses (guesses.c). */
struct tried {
    struct psn_sweep psns[CONN_OWNERS];
    struct refuser keys[CONN_OWNERS];
    uint32_t n_psns; /* of these, used */
};
struct explainer {
    struct observer *observer;
    struct timeline *timeline;
    struct taps *taps;         /* NULL: clocks are not compared */
    struct flow_notes **notes; /* observer_flows() */
    struct incident *incidents;
    uint32_t n, cap;
    uint32_t room;                       /* incidents at most: INCIDENTS_EARLY, or INCIDENTS_MAX */
    uint64_t more;                       /* incidents beyond it */
    struct incident_chains events;       /* for explain_also() */
    uint32_t fresh[FRESH_SLOTS];         /* fresh_of() */
    struct kept_copies *kept[KEPT_MOST]; /* NULL: a free place */
    unsigned n_kept;                     /* places so far */
    uint32_t first_tap;                  /* of the first packet, */
    bool several_taps;                   /* and whether others are of another one */
    struct cm_sent cm[CM_SENT];
    uint32_t cm_at;
    struct early_rtu rtus[EARLY_RTUS];
    uint32_t rtus_at;
    struct refusal refusals[REFUSALS];
    uint32_t refusals_at;
    struct qkey_seen qkeys[QKEYS];
    struct datagram_flow *datagrams[DATAGRAM_FLOWS];
    uint32_t n_datagrams;
    bool more_datagrams; /* more than DATAGRAM_FLOWS */
    struct bad_packet bad_packets[NOTED_BAD];
    uint32_t bad_packets_at;
    struct icrc_sources icrcs;
    struct {
        uint64_t packets; /* with wrong ICRCs, captured before these were inserted: nothing in them is analysed */
        uint32_t senders, first; /* their senders; the first of them */
    } early;
    struct {
        uint32_t packets, first; /* requests whose ICRC is wrong in the capture only; the frame of the first */
    } in_capture;
    struct early_nak naks[EARLY_NAKS];
    uint32_t naks_at;
    struct passed passed[PASSED];
    struct shared_packet shared[SHARED_PACKETS];
    struct icmp_error icmp[ICMP_ERRORS];
    uint32_t n_icmp;
    struct unmatched unmatched[UNMATCHED];
    uint32_t n_unmatched;
    struct host_seen hosts[HOSTS_SEEN];
    struct tried tried;
    struct choices chosen;           /* by hosts: what can be guessed */
    struct quiet quiet[QUIET_TIMES]; /* the longest ones */
    struct congestion *congestion;   /* NULL: no pause frame and no mark was seen */
    ns_t closest;                    /* the shortest time between two packets of a message; 0: not known */
    uint64_t packets;
    uint64_t rdma_packets;
    uint64_t unknown;              /* of these, packets whose opcode is not defined, such as a vendor's own */
    uint32_t clc[SMC_DECLINE + 1]; /* first frame of each CLC message, by which SMC-R is agreed on over TCP; 0: none */
    uint32_t clc_d;                /* first Confirm of SMC-D; likewise */
    ns_t first, last;              /* times of the earliest and of the latest frame; 0: none has one */
    struct to_host *to_hosts;      /* explain_hosts_index(); NULL: there is none */
    uint32_t n_to_hosts;           /* of to_hosts */
    bool begun[EXPLAIN_FILES];
    ns_t began[EXPLAIN_FILES];     /* by file: time of its first frame */
    ns_t ended[EXPLAIN_FILES];     /* likewise, the latest time of its frames */
    uint64_t drops[EXPLAIN_FILES]; /* likewise, frames that it says its capture dropped */
    struct stamp latest[EXPLAIN_FILES];
    struct set_back set_back;
};

/* A new incident; NULL without room. Its addresses are those of the flow, or of the packet. */
struct incident *incident_new(struct explainer *x, enum cause cause, uint32_t flow, const struct pkt *p);
/* A fact to be given to one of the next two: SAY(LOST_AFTER, .psn = 5, .lost = 12). */
#define SAY(name, ...) (&(const struct fact){.sentence = SENTENCE_##name, __VA_ARGS__})
/* Set the hypothesis of an incident: earlier facts are removed, its certainty becomes that of the hypothesis. */
void incident_is(struct incident *s, const struct fact *f);
/* Add a fact, if there is room for one more. */
void incident_add(struct incident *s, const struct fact *f);
/* Its first fact with this sentence; NULL: it has none. */
struct fact *incident_fact(struct incident *s, enum sentence sentence);
/* The capture lacks packets of its connection: it is possible at most if its hypothesis rests on what was not seen, and
 * no further fact proves it. */
void incident_doubt(struct incident *s);
/* Likewise, whatever proves it: the capture says that it dropped frames, so that nothing shows where one was lost. */
void incident_doubt_seen(struct incident *s);
/* Add a frame; 0: none. Without room it is only counted. */
void incident_frame(struct incident *s, enum frame_role role, uint32_t frame);
/* Likewise, a frame of another tap. */
void incident_frame_at(struct incident *s, enum frame_role role, uint32_t tap, uint32_t frame);
/* The first frame of its own tap with a role in an incident; 0: none. */
uint32_t incident_frame_of(const struct incident *st, enum frame_role role);
/* How bad a failure it is: the weight of its cause; 0: the connection did not fail. A CM message that was answered
 * after a retransmission is no failure, nor is a DREQ without a response, nor a refusal that is `minor`. */
int incident_failure(const struct incident *s);
/* How long a lost CM message delayed the setup of a connection, ns: time that is in no bill, as the connection does not
 * exist yet. */
ns_t incident_setup_wait(const struct incident *s);
/* True if it says that a request of a flow was lost, and is shown itself. */
bool incident_is_lost_request(const struct incident *s);
/* True if the incident names this frame of that tap. */
bool incident_has(const struct incident *s, uint32_t tap, uint32_t frame);
/* Remove a frame of its own tap; give it another role. */
void incident_unframe(struct incident *s, uint32_t frame);
void incident_role(struct incident *s, uint32_t frame, enum frame_role role);
/* Number of an incident, and it; NULL for NO_INCIDENT. */
uint32_t incident_number(const struct explainer *x, const struct incident *s);
struct incident *incident_at(struct explainer *x, uint32_t n);
/* True if the incident is shown itself: it is neither moot nor merged into another one, nor explained by one. */
static inline bool incident_stands(const struct incident *s)
{
    return !s->moot && !s->merged && !s->superseded_by;
}
/* The incident about the frame with a bad ICRC that packet `p` retransmits. */
struct incident *damaged_incident(struct explainer *x, const struct flow_notes *t, uint32_t frame, const struct pkt *p);
/* Set the packet that an incident is about. */
void incident_concerns(struct incident *st, uint32_t psn, uint32_t icrc, bool is_request);
/* A new incident: request `e->p` was reordered behind later requests; NULL: no room. */
struct incident *incident_overtaken(struct explainer *x, const struct event *e);
/* When the file of a tap ended, by its own clock: other files may have other clocks, and end later. */
static inline ns_t explain_end_of(const struct explainer *x, uint32_t tap)
{
    return tap >> 16 < EXPLAIN_FILES ? x->ended[tap >> 16] : x->last;
}
/* Whether the file of a tap ends before an ACK timer of `timer` (ns), started at `ts` by its clock, can have expired.
 */
static inline bool explain_ends_before(const struct explainer *x, uint32_t tap, ns_t ts, ns_t timer)
{
    return explain_end_of(x, tap) - ts < timer_earliest(timer);
}
/* Notes of a flow, made on first use. NULL: no memory. */
struct flow_notes *notes_of(struct explainer *x, uint32_t flow);
/* True if the capture lacks requests of the flow: they were acknowledged, and the tap never saw them. */
static inline bool explain_lacks(const struct explainer *x, uint32_t flow)
{
    return flow != FLOW_NONE && x->notes[flow] && x->notes[flow]->requests.lacks;
}
/* Time without progress between the copy `s` and the retransmission `e`. */
ns_t silence_before(const struct event *e, const struct sent *s);
/* Longest ACK timeout: four times the time of its code. */
ns_t longest_timer(const struct conn_params *c);
/* Opcode of a request plus 1, for a fact; 0 for NULL. */
static inline uint16_t op_of(const struct sent *s)
{
    return s ? (uint16_t)(s->opcode + 1) : 0;
}
/* A MAC address in the lower 48 bits; an unsigned number of 1, 2, 4 or 8 bytes (render.c). */
void explain_mac_put(struct buf *b, uint64_t mac);
uint64_t explain_value(const void *at, size_t size);
/* Whether an address of an incident was filled in: those about pause frames, or about many hosts, have none. */
static inline bool explain_has_address(const struct conn_addr *a)
{
    static const struct conn_addr none;

    return !conn_addr_eq(a, &none);
}
/* A tap as a fact has it. */
static inline uint32_t fact_tap(uint32_t tap)
{
    return tap + 1;
}
/* The frame captured in place of a missing PSN; for a PSN before all that were seen, the first frame; 0: not known
 * (naks.c). */
uint32_t came_instead(const struct req_dir *h, uint32_t psn);
/* Request `e` is retransmitted after a sequence NAK for its PSN or a later one; NULL without room. */
struct incident *explain_loss(struct explainer *x, const struct event *e, struct flow_notes *t);
/* Retransmitted requests (retransmit.c); requests first seen after later ones; and each request that follows such a
 * one. */
void explain_back(struct explainer *x, const struct event *e, struct flow_notes *t);
void explain_late(struct explainer *x, const struct event *e, struct flow_notes *t);
void explain_reordered(struct explainer *x, const struct event *e, struct flow_notes *t);
/* Request `e` came behind later ones, as incident `st` says: what follows tells whether it was reordered. `resume`: as
 * in struct hypotheses. */
void explain_comes_late(struct explainer *x, const struct event *e, struct flow_notes *t, const struct incident *st,
                        uint32_t resume);
/* Whether a copy without IP ID, identical to a request that came late, is the one that its requester sent for a NAK:
 * the late one came far sooner behind the NAK. */
bool explain_copy_is_sent(struct explainer *x, const struct event *e, const struct flow_notes *t);
/* A response, while a retransmission has had none: it may end it. And one more, while its other copies may get theirs:
 * if each copy has one, neither a request nor a response was lost. */
void explain_settle(struct explainer *x, const struct event *e, struct flow_notes *t);
void explain_other_answer(struct explainer *x, const struct event *e, struct flow_notes *t);
/* A response behind the first ACK after a retransmission on ACK timeout: is it a second ACK for the same PSN; and does
 * it show that more had arrived? */
void explain_had_twice(struct explainer *x, const struct event *e, const struct flow_notes *t);
void explain_had_more(struct explainer *x, const struct event *e, struct flow_notes *t);
/* Whether the packet that had not arrived then is retransmitted on ACK timeout once more: it is the same incident. */
bool explain_lacked_again(struct explainer *x, const struct event *e, struct flow_notes *t);
/* At the end: such an ACK tells whether a request was lost, or its response. */
void explain_had(struct explainer *x);
/* The request that follows one that was taken for reordered. */
void explain_resent(struct explainer *x, const struct event *e, struct flow_notes *t);
/* A request that skips packets that were being retransmitted. */
void explain_skips(struct explainer *x, const struct event *e, struct flow_notes *t);
/* Any request of an unreliable connection that is not SEEN_NEW (unreliable.c). */
void explain_unreliable(struct explainer *x, const struct event *e, const struct flow_notes *t);
/* iWARP (streams.c): take what TCP repairs, false: without memory; the end of the capture; and the time of the
 * connections, of each direction, of connection `conn` (0: of all): *n grows by their number. */
bool explain_streams(struct explainer *x);
void explain_streams_end(struct explainer *x);
ns_t explain_streams_time(const struct explainer *x, uint32_t conn, uint32_t *n);
/* A datagram; and the end of the capture. */
void explain_datagram(struct explainer *x, const struct pkt *p);
void explain_datagrams_end(struct explainer *x);
/* READs and atomics (read.c): request `e` repeats a READ or atomic, as a whole or from the missing response on; NULL
 * without room. And each READ response, before it is noted. */
struct incident *explain_read(struct explainer *x, const struct event *e, struct flow_notes *t, struct read_req *a);
void explain_read_response(struct explainer *x, const struct event *e, struct flow_notes *t);
/* A READ or atomic is retransmitted: its requester lacks the response. Losses of later responses after the tap are
 * withdrawn: the requester dropped those responses because this earlier one was missing. */
void explain_misses(struct explainer *x, const struct event *e);
/* A READ request for the rest of an earlier READ whose path MTU is not known; false if it is none. */
bool explain_rest(struct explainer *x, const struct event *e, struct flow_notes *t);
/* A response to a retransmitted READ or atomic without an earlier response: the MSN may prove that it had been executed
 * before. */
void explain_repeated_answer(struct explainer *x, const struct event *e, const struct flow_notes *t);
/* Connection management (cm.c, cm_finish.c): a message; and the end of the capture. */
void explain_cm(struct explainer *x, const struct pkt *p);
void explain_cm_end(struct explainer *x);
/* The latest copy of a message. */
const struct cm_seen *cm_latest(const struct cm_sent *c);
/* The requests that the receiver of a message sends to the sender's queue pair; NULL: none are known. */
const struct req_dir *cm_requests_back(struct explainer *x, const struct cm_sent *c);
/* Make the incident about a message that was retransmitted, given up, or not answered. */
void cm_report(struct explainer *x, struct cm_sent *c);
/* The list of incidents not compared with other taps yet, of the requests to queue pairs such as `qpn`: the number of
 * the latest one, plus 1; 0: none. */
static inline uint32_t *fresh_of(struct explainer *x, uint32_t qpn)
{
    return &x->fresh[qpn % FRESH_SLOTS];
}
/* Likewise (or_causes.c), when all is settled: which causes an incident may have. */
void explain_or_causes(struct explainer *x);
/* End of the capture (unused_conns.c): wrong ICRCs that the adapter had not inserted yet are no damage. Then: append
 * what there is to say of them; nothing if there are none. */
void explain_early_icrcs(struct explainer *x);
void explain_early_put(const struct explainer *x, struct buf *b);
/* Append what is open about connections without any packet, or without any response (unused_conns.c): sentences
 * separated by `sep`; nothing if there are none. */
void explain_remarks(struct explainer *x, const char *sep, struct buf *b);
/* iWARP connections that were rejected, that a Terminate ended, or of which an FPDU had a wrong CRC (unused_conns.c).
 */
uint32_t explain_iwarp_failed(const struct explainer *x);
/* End of the capture, for each flow (end_retries.c): a responder that stayed silent; an RNR NAK without a retry; a
 * request without response that was not retransmitted; retries exhausted although the tap saw responses. */
void end_silence(struct explainer *x, uint32_t flow, struct flow_notes *t, struct req_dir *h);
void end_rnr(struct explainer *x, uint32_t flow, struct flow_notes *t, struct req_dir *h);
void end_not_received(struct explainer *x, uint32_t flow, const struct flow_notes *t, struct req_dir *h);
void end_spent(struct explainer *x, uint32_t flow, const struct flow_notes *t, struct req_dir *h);
/* Likewise: packets that were reordered, not lost; ACK timeouts shorter than the response takes, always
 * or now and then; and an incident of a flow without a captured response. */
void end_overtaken(struct explainer *x, uint32_t flow, const struct flow_notes *t);
void end_slower(struct explainer *x, uint32_t flow, struct flow_notes *t, const struct req_dir *h);
void end_early(struct explainer *x, uint32_t flow, const struct flow_notes *t);
void cannot_tell(struct explainer *x, struct incident *st, struct req_dir *h);
/* Behind these, for all flows: a sequence NAK for a packet, or a repeated request for a response, that passed a path on
 * which others of its connection were reordered, in any direction, is no likely loss. */
void end_reordering_paths(struct explainer *x, uint32_t flows);
/* Likewise (finish.c): the requests of a flow carry a P_Key other than that of the REQ, and no packet of the other
 * direction was captured: true. */
bool end_req_key(struct explainer *x, uint32_t flow, const struct flow_notes *t);
/* Hypotheses about several connections, when all others are complete (cross.c): make an incident, return its number;
 * NO_INCIDENT without room. */
uint32_t cross_new(struct explainer *x, enum cause cause, uint32_t tap, ns_t start);
/* Incident `by` explains incident `i`: `by` gets the bill of `i`, and `i` is shown only if its connection
 * is asked for. */
void cross_supersede(struct explainer *x, uint32_t by, uint32_t i);
/* Set the addresses of an incident from a flow. */
void incident_of_flow(struct explainer *x, struct incident *st, uint32_t flow);
/* True if the incident says that requests or CM messages had no response in the capture. */
bool has_no_response(const struct incident *i);
/* Try all of these hypotheses, the widest first. */
void explain_cross(struct explainer *x);
/* Paths (paths.c): an ICMP error; a response without captured requests; the end of the capture. */
void explain_icmp(struct explainer *x, const struct pkt *p);
void explain_unmatched(struct explainer *x, const struct pkt *p, uint32_t conn);
/* Before timeline_end(): tell the timeline which requesters drop their responses because of where they come from. */
void explain_unheard(struct explainer *x);
/* Report NAKs whose requests were not captured at any tap. Call it before moot incidents are dropped. */
void explain_unmatched_naks(struct explainer *x);
/* The cause of a NAK that moves the requester's queue pair to the error state, by its code. */
enum cause explain_refusal(unsigned code);
/* A NAK that moves the requester's queue pair to the error state (naks.c); an RNR NAK. `e`: with the requests that it
 * answers, `t`: of their flow. */
/* A request that a packet of another sender was taken for (e->forged). */
void explain_forged(struct explainer *x, const struct event *e);
void explain_refused(struct explainer *x, const struct event *e, const struct flow_notes *t);
void explain_rnr(struct explainer *x, const struct event *e, struct flow_notes *t);
/* The retry after an RNR NAK came far later than the RNR timer. */
void explain_late_try(struct explainer *x, const struct event *e, const struct flow_notes *t);
/* A sequence NAK. If its requester went back to that PSN just before, too soon for an ACK timeout, this is the NAK that
 * it obeyed: time stamps of the two directions are not exact. */
void explain_nak_obeyed(struct explainer *x, const struct event *e, struct flow_notes *t);
/* A packet with a wrong ICRC, of `flow`, or FLOW_NONE: it is kept until its flow is known. */
void explain_bad_icrc(struct explainer *x, const struct pkt *p, uint32_t flow);
/* A request comes for the first time as it was sent: if it had come damaged before, it is a retransmission. */
void explain_came_damaged(struct explainer *x, const struct event *e, const struct flow_notes *t);
/* Packet `p` retransmits `psn`, which incident `st` says came damaged: other damaged copies of it belong to it; whether
 * there are any. */
bool explain_damaged_copies(struct explainer *x, const struct flow_notes *t, struct incident *st, uint32_t psn,
                            const struct pkt *p);
/* Give a new flow the packets with a wrong ICRC that came before its first good packet. */
void explain_assign_bad_icrcs(struct explainer *x, uint32_t flow, struct flow_notes *t);
void explain_paths(struct explainer *x);
/* Paths that drop large packets (mtu.c): one incident for each host, of all taps. */
void explain_mtu(struct explainer *x);
/* Whether a flow has a request, or a READ response, that is sent again and again and does not arrive: its PSN. */
bool mtu_lacks_request(struct explainer *x, uint32_t flow, uint32_t *psn);
bool mtu_lacks_response(struct explainer *x, uint32_t flow, uint32_t *psn);
/* Hosts (hosts.c): a packet of no connection; when such packets of a host were seen, NULL: never; the end of the
 * capture. */
void explain_host(struct explainer *x, const struct pkt *p);
const struct host_seen *host_seen_at(struct explainer *x, const struct conn_addr *host, uint32_t tap);
void explain_hosts(struct explainer *x);
/* One statement for each dead peer of one connection. */
void explain_dead(struct explainer *x);
/* Outages (outages.c): a response `e` long after the previous one; at the end of the capture: times in which several
 * connections had no response. */
void explain_gap(const struct event *e, struct flow_notes *t);
void explain_outages(struct explainer *x);
#define OUTAGE_CONNS 2 /* connections at least, of an interrupted link */
/* A packet (cross.c): a time without frames may end with it. */
void explain_quiet(struct explainer *x, const struct pkt *p);
/* Requests come behind missing PSNs; and of which connections nothing came for one time before that. */
void explain_hush(const struct event *e, struct flow_notes *t);
void explain_hushes(struct explainer *x);
/* Packets that are neither request nor response (other.c); that there are no others, and what of RDMA there is. */
void explain_foreign_put(const struct explainer *x, struct buf *b);
void explain_other(struct explainer *x, const struct pkt *p, uint32_t flow);

/* bill.c: put each episode of the accounts on the bill of one incident. */
void explain_bill(struct explainer *x);
/* bill_kinds.c: the cause of an episode that no incident names, by enum trouble, and its sentence; `gathers`: one
 * incident for all episodes of a direction. bill_kind_of(): likewise, by all that is known of the episode. */
extern const struct bill_kind {
    enum cause cause;
    enum sentence sentence;
    bool gathers;
} bill_kinds[TROUBLES];
const struct bill_kind *bill_kind_of(const struct explainer *x, const struct episode *e);
/* Whether the requester has given up. */
bool bill_is_failure(const struct episode *e);
/* The values for the sentence about an episode. */
struct fact bill_fact(const struct explainer *x, const struct episode *e, const struct bill_kind *kind);
/* The frames of an episode become those of the incident. */
void bill_take_frames(struct incident *s, const struct episode *e);
#define BILL_TIMER_LEAST (8 * NS_PER_US) /* no ACK timer expires sooner: code 1 is 8.192 us */
/* Move the bill of `from` to `to`, which may be an incident of another tap. */
void bill_move(const struct explainer *x, struct incident *to, struct incident *from);
/* Columns of text. */
static inline unsigned explain_columns(const struct explain_opts *o)
{
    return o->columns ? o->columns : 100;
}

/* --- Summary ---------------------------------------------------------------------------------- */

/* Incidents of one cause and place. */
struct group {
    uint8_t cause, place;
    uint32_t passed, missed;  /* as in struct incident: with them, `place` is that of one of the taps */
    uint32_t at;              /* else the tap that `place` is about: see place_tap_put() */
    int failure;              /* incident_failure() of the worst one */
    bool missing;             /* packets of unreliable connections are, */
    uint32_t messages;        /* and with them so many messages at least; 0: one */
    uint32_t n;               /* incidents */
    uint64_t count;           /* how often it happened: an incident may gather several occurrences */
    uint32_t *of;             /* indices of the incidents, worst first: in summary.members */
    uint32_t conns;           /* connections; 0: none */
    uint32_t srcs, dsts, met; /* hosts: requesters, responders; requesters that lost packets to one within a ms */
    bool two;                 /* all are about the same two hosts, in both directions */
    ns_t bill, setup;         /* lost time of all; incident_setup_wait() of all */
    ns_t least, most;         /* of one incident */
    ns_t first, last;         /* when the first one began, and when the last one ended */
};

struct summary {
    struct group *groups; /* worst first */
    uint32_t *members;    /* the incidents of all groups */
    uint32_t n;
    uint32_t incidents;  /* in all groups */
    uint64_t count;      /* how often they happened, likewise */
    ns_t lost, time;     /* lost time, and all time, of the connections shown */
    ns_t setup;          /* incident_setup_wait() of all incidents */
    uint32_t conns, hit; /* connections; those with lost time */
    uint32_t both;       /* connections that carry requests in both directions: the time of each counts */
};

/* Number of different values other than 0; of different addresses other than the empty one. Both sort `v`. */
uint32_t explain_count_values(uint32_t *v, uint32_t n);
uint32_t explain_count_hosts(struct conn_addr *v, uint32_t n);
/* Group the incidents that `o` shows (summary.c). False: no memory. */
bool summary_make(struct summary *s, struct explainer *x, const struct explain_opts *o);
/* All time, and lost time, ns, of a connection (0: of all): each direction at the tap whose bills count (summary.c). */
void explain_times(const struct explainer *x, uint32_t conn, ns_t *time, ns_t *lost);
void summary_free(struct summary *s);
/* The most expensive episode of an incident (summary.c): what of it lies between --since and --until. */
struct moment {
    const struct incident *of;
    ns_t at, bill; /* when that part begins; lost time */
};
struct moment incident_worst(const struct incident *i, const struct explain_opts *o);
/* Append the verdict (summary_print.c), without line ends: how many failures, how much lost time, its main causes. */
void summary_verdict(const struct summary *s, const struct explainer *x, const struct explain_opts *o, struct buf *b);
/* Append about ten lines (summary_print.c): the verdict, the cost by cause, the most expensive incidents. */
void summary_put(const struct summary *s, const struct explainer *x, const struct explain_opts *o, struct buf *b);
/* Append the heading of a group of several incidents: what they have in common. */
void group_put(const struct group *g, const struct explainer *x, const struct explain_opts *o, struct buf *b);
/* True if an incident is shown. */
bool explain_is_selected(const struct incident *i, const struct explain_opts *o);
/* Append, without line ends, the counters of adapters that confirm the cause; and the commands that show the settings
 * that it depends on. Nothing if there are none (params.c). */
void explain_counters(const struct incident *s, struct buf *b);
void explain_tools(const struct incident *s, struct buf *b);
/* Append what to look at next, these two, and the command that shows the place: lines. */
void explain_next(const struct explain_opts *o, const struct incident *s, struct buf *b);
/* Append the first `n` frame numbers of an incident, separated by commas (print.c). */
void incident_frames_put(struct buf *b, const struct incident *s, unsigned n);
/* Append what was not read, and, of all connections, the remarks (print.c). */
void explain_remarks_put(struct explainer *x, const struct explain_opts *o, struct buf *b);
/* Append "67.1 ms: 67.1 ms ACK timeout, 5 us until the NAK". */
void bill_put(struct buf *b, ns_t all, const ns_t states[TIME_STATES]);

#endif
