/* layer 3 (judge): internal: struct judge, struct judged, and the functions of the judge by the file that defines
 * them. */
#ifndef RDMATRACE_JUDGE_JUDGE_IMPL_H
#define RDMATRACE_JUDGE_JUDGE_IMPL_H

#include "dissect/pkt.h"
#include "pool.h"
#include "src/cc/cuts.h"
#include "src/conn/observer.h"
#include "src/conn/packet.h"
#include "src/findings/findings.h"
#include "src/judge/flow_state.h"
#include "src/judge/header.h"
#include "src/judge/history.h"
#include "src/judge/raise.h"
#include "src/judge/tables.h"
#include "src/shadow/shadow.h"
#include "src/taps/icrc_sources.h"
#include "src/taps/stamps.h"

#define CLASS_VARIES UINT8_MAX /* judge.dscp_class: several priorities */

/* A frame that was read lately: finds its time. */
struct recent {
    uint64_t number; /* 0: unused */
    ns_t ts;
    uint16_t file;
};
#define RECENT_FRAMES 4096 /* of each owner of pairs of addresses */

#define FORGOTTEN_BYTES (1u << 21)
#define WAYS_OF_OWNER   256 /* of each owner of pairs of addresses */
#define USUAL_BITS      11  /* of the hash for the fast path, with few flows */

/* Ways from address to address at a tap: by owner of the two addresses, a hash of them and the tap, and which of the
 * two sent, a bit. */
struct ways {
    uint64_t of[CONN_OWNERS][WAYS_OF_OWNER / 64];
};

struct judge {
    struct judge_opts o;
    struct observer *observer;
    struct room *room;        /* of `observer` */
    struct conn_table *conns; /* of `observer` */
    struct flow *flow;        /* flows of `conns`, by index */
    struct findings *findings;
    struct jflow *flows;   /* observer_flows() */
    struct pool histories; /* jflow.history */
    uint8_t *forgotten;    /* FORGOTTEN_BYTES: flows that were forgotten, a bit each; NULL: none was */
    bool flows_lost;       /* one of them came back */
    const struct header_rule *header_rules;
    unsigned n_header_rules;
    bool no_usual;                    /* the fast path is off: a header rule reads a field that is not compared */
    uint64_t usual_bits[USUAL_WORDS]; /* mask of the header bits that the fast path compares (load_le64()) */
    /* flows of the packets on the fast path, by a hash of their headers: its upper 64 - usual_shift bits */
    struct usual_pair *usual;
    unsigned usual_shift;
    bool many;                 /* there are so many flows that judge_expect() is of use */
    struct ahead ahead[AHEAD]; /* packets that judge_expect() was told of lately, a ring */
    uint32_t n_ahead;          /* how many there were */
    uint32_t flows_found;      /* flows that have findings, so far */
    uint64_t n_found;          /* number of failures and notes so far */
    uint64_t n_found_before;   /* n_found before the current packet */
    struct ud_dest ud[UD_DESTS];
    uint64_t ud_from[UD_DESTS]; /* keys of queue pairs that have sent datagrams; 0: unused */
    bool ud_from_lost;
    struct cm_exchange *cm;         /* CM_EXCHANGES; NULL: no REQ was seen, or there is no memory */
    uint16_t cm_used[CM_EXCHANGES]; /* indices in `cm`, and in `cm_ends`, of the exchanges there are */
    uint32_t n_cm_used;
    struct cm_ends cm_ends[CM_EXCHANGES + CM_SIDRS]; /* by index in `cm`; then a ring of SIDR_REQs */
    struct sidr sidr[CM_SIDRS];                      /* the messages of each */
    uint32_t sidr_at;
    struct cm_unmatched cm_unmatched[CM_UNMATCHED]; /* a ring */
    uint32_t n_cm_unmatched;
    bool cm_lost; /* there was no room for an exchange, or another one had to give way to it */
    struct lap lap[LAPS];
    uint32_t lap_at;
    uint64_t packets, foreign, cut, untimed, backwards, drops, malformed;
    uint32_t cut_frame, backwards_frame;
    uint32_t n_short; /* packets that end before their length says, as a mirror cuts them, or a fault of the network */
    uint16_t cut_file, backwards_file, drops_file;
    ns_t cut_ts;
    ns_t at_ts; /* at the end: time of the frame about which something is found next; 0: time_of() finds it */
    uint64_t last_found_frame; /* number of the latest frame with a failure, and its file; 0: none */
    uint16_t last_found_file;
    uint64_t last_unreadable; /* latest frame damaged or not decodable, so of no flow; 0: none */
    struct short_frames short_frames[SHORT_LENS];
    bool short_lost; /* there were more lengths */
    struct bad_icrc bad_icrc[BAD_ICRCS];
    struct icrc_sources icrc_sources;
    uint32_t n_bad_icrc;     /* wrong ICRCs kept */
    bool skewed[JUDGE_TAPS]; /* by tap_slot(): the clocks of the directions differ: a response was stamped shortly
                              * before its request, several before the first request, an RTU before the REP that it
                              * answers, or a REP before its REQ */
    bool skewed_before[JUDGE_TAPS]; /* likewise, and not for a response alone whose request was not captured, but a
                                     * later one: failures before that are undecided as well */
    struct stamps_table stamps;
    struct ways heard;   /* those captured */
    struct ways ip_sums; /* those with a packet whose IPv4 header has a right checksum */
    struct pauser pauser[PAUSERS];
    unsigned n_pauser;
    struct unknown_cnp unknown_cnp[UNKNOWN_CNPS];
    struct notifier notifier[NOTIFIERS];
    struct psn_sweep psn_sweep[PSN_SWEEPS];
    uint32_t n_sweeps; /* of these, used */
    struct refuser refuser[REFUSERS];
    struct choices chosen;
    struct marked_path marked_path[CONN_OWNERS][PATHS_OF_OWNER];
    uint64_t marked[CONN_OWNERS]; /* by owner: which of these are used; few are, so none else is read */
    struct np_adapter np_adapter[NP_ADAPTERS];
    unsigned n_np_adapters;
    struct spacing *spacing; /* NULL: there was no CNP */
    uint8_t dscp_class[64];  /* by DSCP: 1 + the priority with which its packets were tagged; 0: none were */
    uint32_t n_unknown_cnp;
    struct sides *sides;            /* what is known of the hosts (sides.c) */
    struct recent *recent;          /* for each owner a ring of RECENT_FRAMES */
    uint32_t n_recent[CONN_OWNERS]; /* frames that were put there */
    uint16_t file;
    const struct frame *now; /* that of the packet at hand */
    uint8_t owner;           /* of the packet at hand: conn_owner_in() of its addresses */
    bool silent;             /* with `share`: what is found is another one's to report, unless it is of a flow */
    struct share *share;     /* what several processes have each a part of (share.c); NULL: there is one process */
    bool incomplete;         /* the capture is incomplete: headers were cut, or time stamps run backwards */
    bool have_cm;            /* CM messages were captured, or packets to QP 1 that may be CM messages */
    unsigned applied;        /* ON_*: rules for these kinds of packets count as judged */
    char said[10][256];
    unsigned said_at;
};

static inline bool judge_wants(const struct judge *j, enum rule rule)
{
    return !j->o.off[rule];
}
/* True if the user says that the capture lost no frame, and nothing shows the opposite. */
static inline bool judge_is_complete(const struct judge *j)
{
    return j->o.complete && !j->drops && !j->incomplete;
}

/* A request, or a response, with what is known of it; the checks run before it updates the state of its flow. */
struct judged {
    const struct pkt *p;
    uint32_t flow;   /* flow of the requests, also for a response */
    uint32_t own;    /* flow of the packet */
    struct jflow *f; /* state of that flow */
    struct req_dir *h;
    uint8_t as;                /* of a request: enum seen_as */
    uint8_t why;               /* of a request that begins a retransmission: enum why_back */
    const struct sent *forged; /* of a request: the copy of it that another sender has sent; NULL: there is none */
    bool usual; /* the request keeps every rule of the transport (shadow_is_usual()): its checks are skipped */
};

/* A check of a request, or of a response: a row of a table, whose order is that of the findings. */
struct judge_check {
    unsigned kinds; /* kinds of packets that it is for, a mask of bits of that table */
    enum rule rule; /* of `finds`: the rule; RULE_NONE: the check sets it */
    /* True if the packet breaks the rule: then *f, which is a failure of `rule` by the requests of `a->flow`, is
     * completed, and reported. */
    bool (*finds)(struct judge *j, const struct judged *a, struct found *f);
    /* Another check: it remembers something, notes something, or reports several failures itself. */
    void (*takes)(struct judge *j, const struct judged *a);
};

/* The packet breaks a rule. */
static inline void judge_is_broken(struct judge *j, const struct pkt *p)
{
    j->last_found_frame = p->frame->number;
    j->last_found_file = p->frame->file;
}

/* Whether the packet, the latest one, breaks a rule: what else is wrong with it may follow from that. */
static inline bool judge_was_broken(const struct judge *j, const struct pkt *p)
{
    return j->last_found_frame == p->frame->number && j->last_found_file == p->frame->file;
}

/* Run the checks for packets of `kinds`. */
static inline void judge_run_checks(struct judge *j, const struct judged *a, const struct judge_check *checks,
                                    unsigned n, unsigned kinds)
{
    for (unsigned i = 0; i < n; i++) {
        struct found f;
        if (!(checks[i].kinds & kinds))
            continue;
        if (checks[i].takes) {
            checks[i].takes(j, a);
            continue;
        }
        f = found_of(checks[i].rule, a->flow);
        if (UNLIKELY(checks[i].finds(j, a, &f)))
            judge_found(j, a->p, f);
    }
}

/* --- Times ------------------------------------------------------------------------------------ */

/* stamps_step() at the interface of `p`. */
static inline ns_t judge_step(const struct judge *j, const struct pkt *p)
{
    return stamps_step(&j->stamps, p->frame);
}
/* Tolerance for timers of an end, ns: time stamp resolution, the difference of the clocks of the two directions, and
 * with PROFILE_RXE the clock tick of its host. */
static inline ns_t judge_slack(const struct judge *j, const struct pkt *p)
{
    return judge_step(j, p) + CROSSES_WITHIN + (j->o.profile == PROFILE_RXE ? 4 * NS_PER_MS : 0);
}

/* --- share.c: one of several processes ---------------------------------------------------------- */

/* Where something is found, in the order of one process: first what packets show, then what the end shows, phase by
 * phase; a, b, c: of a packet its time, file and frame, of a flow those of its first packet, else by the phase. */
enum phase {
    PHASE_PACKETS,
    PHASE_FLOWS,
    PHASE_ICRC,
    PHASE_SHORT,
    PHASE_QPNS,
    PHASE_WRONG_FLOWS,
    PHASE_CNPS,
    PHASE_MARKS,
    PHASE_NOTIFIERS,
    PHASE_ECN,
    PHASE_TAPS,
    PHASE_REST,
    PHASE_CM,
    PHASE_LAST,
};
struct order {
    uint32_t phase;
    ns_t a;
    uint64_t b, c;
};

/* What parts have found up to `phase`, and not before, as if it were found now; then what they have counted. */
void judge_parts_replay(struct judge *j, enum phase phase);
void judge_parts_sum(struct judge *j);
/* What the end of the capture needs of a flow to compare it with those of other addresses. */
struct flow_fact {
    struct order born;
    struct conn_addr src, dst;
    uint32_t tap, dqpn, conn, first_frame, dscp;
    ns_t first_frame_ts;
    bool has_ecn, capable; /* its requests have data, and one ECN codepoint: that of a capable flow */
    bool has_share;        /* it sent `bytes` from `first` to `last` */
    ns_t first, last;
    uint64_t bytes;
    /* It has responses whose requests were not captured, with PSNs `psn` and `psn_to`; or it has requests of RC from
     * `psn` on to before `psn_to`, of which its own peer has acknowledged those before `una` (have_una). */
    bool orphan, asks, have_sqpn, paired, by_cm, have_una;
    bool ce, plain; /* a request is marked CE; its requests are Not-ECT, and none is marked */
    uint32_t sqpn, psn, psn_to, una;
};

/* The next packet, which concerns two addresses alone: true if these are another one's, and nothing more is to be done
 * with it. Only with j->share, before anything else is. */
bool judge_is_others(struct judge *j, bool of_pair);
void judge_share_packet(struct judge *j, const struct pkt *p);
/* At the end: what is found now. */
void judge_share_at(struct judge *j, enum phase phase, ns_t a, uint64_t b, uint64_t c);
/* The same, about the flow, or about an exchange: then it is that of the owner of its addresses at its tap. */
void judge_share_flow(struct judge *j, enum phase phase, uint32_t flow);
void judge_share_pair(struct judge *j, enum phase phase, ns_t a, const struct cm_ends *e);
/* A place of the table of flows is given to a new one. */
void judge_share_born(struct judge *j, uint32_t flow);
/* The finding that was kept last is the one at hand. */
void judge_share_found(struct judge *j);
/* This cannot be shared out, for this reason. */
void judge_share_not(struct judge *j, const char *why);
/* A failure compares both directions at a tap, by its place in j->skewed. */
void judge_share_compares(struct judge *j, unsigned place);
/* A request of a flow, which is new or not, with its MigReq. */
void judge_share_migreq(struct judge *j, bool is_new, bool migreq);
/* The flows there are, or were in all parts: an array of *n that the caller frees; NULL: none, or no memory. */
struct flow_fact *judge_flow_facts(struct judge *j, uint32_t *n);
/* Those of one flow, but for `born` (ecn.c), which calls the second one (cm/params.c): requests and responses. */
struct flow_fact judge_flow_fact(const struct judge *j, uint32_t i);
void judge_psn_fact(const struct judge *j, uint32_t i, struct flow_fact *x);
/* Whether the responses of `r`, an orphan, may answer the requests of `q`. */
bool judge_may_answer(const struct flow_fact *r, const struct flow_fact *q);
void judge_share_free(struct judge *j);
/* A note about a flow of which only this is known. */
void judge_note_fact(struct judge *j, enum rule rule, const struct flow_fact *f, const char *seen, const char *text);

/* --- fast_path.c ------------------------------------------------------------------------------ */

/* The flow of a packet that takes the fast path: the header bits in judge.usual_bits equal those of an earlier
 * packet of the flow that broke no rule, and is_plain() holds for the other fields. judge_headers() and judge_flow()
 * would find nothing and are skipped. FLOW_NONE: the packet takes the slow path. */
uint32_t judge_usual_flow(struct judge *j, const struct pkt *p);
/* Size of judge.usual; most of it is not touched as long as flows are few. */
size_t judge_usual_places(const struct judge *j);
/* After `p` was judged on the slow path: if it is `clean`, that is it broke no rule, packets with the same headers
 * take the fast path until the next packet of the slow path. */
void judge_usual_learn(struct judge *j, const struct pkt *p, uint32_t flow, bool clean);
/* The fast path does not update steady.value_frame: update it now, before the slow path reads it. */
void judge_usual_catch_up(struct jflow *f);
/* As observer_sub.fetch, of struct judge `user`. */
void judge_fetch_flow(void *user, uint32_t flow);
/* No packet of the flow is usual until the next one that judge_usual_learn() takes. */
void judge_usual_forget(struct jflow *f);
/* The VLAN tag of a packet, and whether it has one (HAS_TAG). */
static inline uint32_t judge_tag_of(const struct pkt *p)
{
    return p->have & H_VLAN ? HAS_TAG | p->vlan : 0;
}

/* The last four bytes of the source MAC address; 0: there is no Ethernet header. */
static inline uint32_t judge_mac_of(const struct pkt *p)
{
    return p->have & H_ETH ? load_be32(p->data + 8) : 0;
}

/* --- values.c --------------------------------------------------------------------------------- */

/* The header fields (READS()) that the values below depend on and that the fast path does not check by itself. */
uint64_t judge_value_reads(void);
/* Judge the values that must not change within a flow; after judge_headers(). */
void judge_flow(struct judge *j, const struct pkt *p, uint32_t flow);
/* At the end: compare the values of requests and responses of a flow where it was not certain that they belong
 * together.
 */
void judge_flow_values(struct judge *j, uint32_t flow);
/* Note with which priority packets of its DSCP are tagged. */
void judge_class(struct judge *j, const struct pkt *p);
/* Judge the service of a packet: it must not change within a flow. */
void judge_service(struct judge *j, const struct pkt *p, uint32_t flow);

/* --- sides.c ---------------------------------------------------------------------------------- */

/* What is known of the hosts: which open connections, and which accept some. NULL without memory. */
struct sides *judge_sides_new(void);
void judge_sides_free(struct sides *s);
/* A packet with a wrong ICRC: if it is a REQ, its sender opens connections, though not this one. */
void judge_damaged_req(struct judge *j, const struct pkt *p);

/* --- ecn.c ------------------------------------------------------------------------------------ */

/* At the end: who is not ECN-capable, and what happened to marks between two taps. */
void judge_ecn_classes(struct judge *j, const struct flow_fact *facts, uint32_t n);
void judge_marked_taps(struct judge *j);

/* --- damaged.c: frames shorter than their packets ---------------------------------------------- */

/* From now on treat the capture as incomplete. */
void judge_treat_as_incomplete(struct judge *j);
void judge_short(struct judge *j, const struct pkt *p);
/* At the end: those that no mirror has cut. */
void judge_short_end(struct judge *j);

/* --- header.c: lengths ------------------------------------------------------------------------ */

/* True if the lengths in the IP and UDP headers differ: then the position of the ICRC is not known. */
bool judge_lengths_differ(const struct pkt *p);
/* True if no connection has that queue pair: it is the subject of FMT-14, SVC-02 or CM-18. */
static inline bool judge_is_special(uint32_t qpn)
{
    return qpn <= 1 || qpn == 0xffffff;
}
/* True if the packet is one of a connection, but its addresses or its queue pair are those of no end of one. */
bool judge_is_of_no_end(const struct pkt *p);
/* A damaged packet: report that they differ. */
void judge_lengths(struct judge *j, const struct pkt *p);

/* --- damaged.c: wrong ICRCs -------------------------------------------------------------------- */

/* A packet on the slow path with a BTH: whether its ICRC is right. */
void judge_icrc(struct judge *j, const struct pkt *p);
/* The packet, of `flow` or of none (FLOW_NONE), was cut behind its headers: its ICRC cannot be verified. */
void judge_cut(struct judge *j, const struct pkt *p, uint32_t flow);
/* A response: the requests that it acknowledges had a right ICRC on the wire, whatever the capture shows. */
void judge_icrc_answered(struct judge *j, const struct judged *a);
void judge_icrc_end(struct judge *j);

/* --- header.c: datagrams ---------------------------------------------------------------------- */

void judge_datagram(struct judge *j, const struct pkt *p);
/* At the first packet of a flow: if its destination received datagrams before, the queue pair has service UD. */
void judge_ud_flow(struct judge *j, uint32_t flow);
/* The entry of a queue pair that receives datagrams. ud_dest_find(): NULL if there is none; ud_dest() creates it. */
struct ud_dest *ud_dest_find(struct judge *j, uint32_t tap, const struct conn_addr *dst, uint32_t qpn);
struct ud_dest *ud_dest(struct judge *j, uint32_t tap, const struct conn_addr *dst, uint32_t qpn);
/* judge_ud_source() stores the source queue pair of a datagram; ud_source_seen() looks one up. A queue pair that was
 * stored may be missing if j->ud_from_lost. */
void judge_ud_source(struct judge *j, const struct pkt *p);
bool ud_source_seen(const struct judge *j, uint32_t tap, const struct conn_addr *src, uint32_t qpn);

/* --- begin.c: the replicas of a flow begin ---------------------------------------------------- */

/* The first request of a flow; false: out of memory. */
bool judge_begin(struct judge *j, const struct event *e, struct jflow *f);
/* A request, before its checks: what has become of its connection: it has migrated (`moved`), its path MTU became
 * known, or another one of the same queue pairs has begun, or may have. */
void judge_follow_conn(struct judge *j, const struct judged *a, bool moved);
/* A response, while another connection of the same queue pairs may have begun: does its MSN show which one it is of? */
void judge_another_answered(struct judge *j, const struct judged *a);

/* --- request.c, response.c: connected packets ------------------------------------------------- */

void judge_request(struct judge *j, const struct pkt *p, uint32_t flow);
void judge_response(struct judge *j, const struct pkt *p, uint32_t flow);
/* At the end: notes about the requests of a flow. */
void judge_request_end(struct judge *j, uint32_t flow);

/* --- verdict.c: the checks of the transport --------------------------------------------------- */

void judge_request_verdicts(struct judge *j, const struct judged *a);
void judge_response_verdicts(struct judge *j, const struct judged *a);
/* True if the requester has sent so lately that it may be waiting for its turn by the rate of its congestion control,
 * which the responses of its queue pair share. */
bool judge_may_be_paced(const struct judge *j, const struct judged *a);
/* Name of an opcode; "another" if it is not defined. */
static inline const char *opcode_name(uint8_t opcode)
{
    return opcode_table[opcode].name ? opcode_table[opcode].name : "another";
}
/* "ACK", "RNR NAK", "sequence NAK", "NAK", or the name of the opcode of a response. */
const char *response_name(const struct pkt *p);
/* A packet of either direction, while the oldest request with AckReq has had no answer for four times the ACK timeout,
 * and was not sent again: *f is the failure, reported once. */
bool judge_is_not_sent_again(struct judge *j, const struct judged *a, struct found *f);
/* A packet of a queue pair that has received a fatal NAK, in the flow `own` of its requests: *f is the failure. False
 * if the NAK may not have taken effect yet, or if that was reported. */
bool judge_is_after_fatal(struct judge *j, const struct pkt *p, uint32_t own, struct found *f);

/* --- pending.c: failures that a packet captured out of order would refute --------------------- */

/* A request after skipped PSNs. */
void pending_gap(struct judge *j, const struct judged *a);
/* The rule that a response breaks whose request was not sent. */
enum rule pending_rule(const struct pkt *p);
/* A response with a PSN that was not seen in a request yet. */
void pending_early(struct judge *j, const struct judged *a);
/* The first request of `flow`: did a response come before it, although setup messages had named the first PSN? */
void pending_first_request(struct judge *j, const struct pkt *p, uint32_t flow);
/* An ACK during go-back-N recovery. */
bool pending_gbn_ack(struct judge *j, const struct judged *a, struct found *f);
/* Failure `f` of request or response `a->p`, of a rule with T_CROSSES, by its verdict `v`. */
void pending_crossing(struct judge *j, const struct judged *a, const struct found *f, const struct verdict *v);
/* A later packet of the same connection, or the end (`p` is NULL): report such a failure of the requests in `flow`, or
 * of their responses, or drop it. */
void pending_crossed(struct judge *j, const struct pkt *p, uint32_t flow);
/* An ACK or NAK while a PSN is skipped: check that it neither acknowledges nor refuses the missing packet. */
void pending_gap_acked(struct judge *j, const struct judged *a);
/* A sequence NAK: it proves that the PSN it names was skipped. */
bool pending_nak(struct judge *j, const struct judged *a, struct found *f);
/* Is a request acknowledged that note_leap() kept? */
bool pending_leap(struct judge *j, const struct judged *a, struct found *f);
/* After a packet of `flow`, or at the end (`now`): report pending failures that no packet refuted in time. `p` may
 * be NULL. */
void pending_review(struct judge *j, const struct pkt *p, uint32_t flow, bool now);

/* --- pause.c, counters.c ---------------------------------------------------------------------- */

/* Judge a frame without InfiniBand, if it is a pause frame. */
void judge_pause(struct judge *j, const struct pkt *p);
/* A packet of `flow`: its sender must not be paused. */
/* Whether somebody at `tap` paused another station since then. */
bool judge_paused_since(const struct judge *j, uint32_t tap, ns_t since);
void judge_while_paused(struct judge *j, const struct pkt *p, uint32_t flow);
void judge_pause_end(struct judge *j);
/* Count a packet with a BTH for the hosts whose counters are given; at the end: compare. */
void judge_count(struct judge *j, const struct pkt *p);
void judge_counters_end(struct judge *j);

/* --- congestion.c, marks.c -------------------------------------------------------------------- */

/* A hash of an address, and of something else. */
uint64_t judge_addr_hash(const struct conn_addr *a, uint64_t more);
/* A CNP: what is marked on the way back has its answer. */
void judge_notified(struct judge *j, const struct pkt *p);

void judge_cnp(struct judge *j, const struct pkt *p);
/* A CNP that is too long or too short: it counts as one, so the mark that it answers has its CNP. */
void judge_cnp_malformed(struct judge *j, const struct pkt *p);
/* A request or READ response of `flow` that is marked CE; `of` is the flow of the requests, or FLOW_NONE. */
void judge_mark(struct judge *j, const struct pkt *p, uint32_t flow, uint32_t of);
/* A packet of a flow for whose sender there were CNPs (jflow.cuts). */
void judge_pace(struct judge *j, const struct pkt *p, uint32_t flow);
/* At the end: CE marks without a CNP; how CNPs are sent; CNPs for queue pairs without traffic; fairness between
 * senders. */
void judge_marks_end(struct judge *j);
void judge_notifiers_end(struct judge *j);
void judge_notifiers_free(struct judge *j);
void judge_unknown_cnps(struct judge *j);
void judge_fairness(struct judge *j, const struct flow_fact *facts, uint32_t n);
/* At the end: CNPs in a flow, and for its sender. */
void judge_congestion(struct judge *j, uint32_t flow);

/* --- security.c -------------------------------------------------------------------------------- */

/* A request, before the state of its flow is updated: does its sender try one PSN after another? */
void judge_sweep_request(struct judge *j, const struct judged *a);
/* A response to the requests of `flow`, FLOW_NONE: not known, while there are sweeps (j->n_sweeps). */
void judge_sweep_response(struct judge *j, const struct pkt *p, uint32_t flow);
/* No more packets come of `flow`; `forget`: its place is another one's by now. */
void judge_sweep_end(struct judge *j, uint32_t flow, bool forget);
/* A fatal NAK: does somebody try one R_Key or address after another? */
void judge_refused(struct judge *j, const struct judged *a);
/* At the end: did somebody try one queue pair number after another? */
void judge_qpn_sweeps(struct judge *j);
/* A request that another sender's packet was taken for (a->forged). */
bool judge_forged(struct judge *j, const struct judged *a, struct found *f);
/* A host has chosen an R_Key, a queue pair number, or a starting PSN. */
void judge_chosen(struct judge *j, uint32_t tap, const struct conn_addr *by, enum chosen what, uint32_t value);
/* At the end: can what hosts choose be guessed? */
void judge_chosen_end(struct judge *j);

/* --- iwarp.c ---------------------------------------------------------------------------------- */

/* Listen to what is found in iWARP connections. False without room. */
bool judge_iwarp_begin(struct judge *j);
/* No more packets. */
void judge_iwarp_end(struct judge *j);

#endif
