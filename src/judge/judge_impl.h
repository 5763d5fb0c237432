/* layer 3 (judge): internal: the judge, a packet as its checks see it, and the checks by their files. */
#ifndef RDMATRACE_JUDGE_JUDGE_IMPL_H
#define RDMATRACE_JUDGE_JUDGE_IMPL_H

#include "src/conn/observer.h"
#include "src/judge/findings.h"
#include "src/judge/flow_state.h"
#include "src/judge/header.h"
#include "src/judge/history.h"
#include "src/judge/raise.h"
#include "src/judge/shadow.h"
#include "src/judge/tables.h"

struct judge {
    struct judge_opts o;
    struct observer *observer;
    struct conn_table *conns; /* of `observer` */
    struct flow *flow;        /* those of `conns`, by index */
    struct findings *findings;
    struct jflow *flows; /* JUDGE_FLOWS */
    const struct header_rule *header_rules;
    unsigned n_header_rules;
    bool no_usual;                    /* a header rule reads what the fast path does not compare: no packet is usual */
    uint64_t usual_bits[USUAL_WORDS]; /* the bits of the headers that are compared, as load_le64() gives them */
    uint16_t usual[JUDGE_FLOWS];      /* flows of usual packets, by a hash of their headers */
    uint64_t n_found;                 /* findings and notes so far */
    uint64_t n_found_before;          /* before the packet that is being judged */
    struct ud_dest ud[UD_DESTS];
    uint64_t ud_from[UD_DESTS]; /* keys of queue pairs that have sent datagrams */
    bool ud_from_lost;
    struct cm_exchange cm[CM_EXCHANGES];
    struct lap lap[LAPS];
    uint32_t lap_at;
    uint64_t packets, cut, untimed, backwards, drops, malformed;
    uint32_t cut_frame, backwards_frame;
    uint64_t last_found_frame; /* the latest frame of which anything was found */
    uint64_t last_unreadable;  /* the latest frame that its receiver drops and that belongs to no flow */
    ns_t first_ts[JUDGE_TAPS], last_ts[JUDGE_TAPS];
    struct ts_step step[JUDGE_TAPS]; /* by ts_slot(): of several files at a time */
    struct pauser pauser[PAUSERS];
    unsigned n_pauser;
    struct unknown_cnp unknown_cnp[UNKNOWN_CNPS];
    struct notifier notifier[NOTIFIERS];
    uint32_t n_unknown_cnp;
    uint16_t file;
    bool incomplete;  /* packets were cut within their headers, or time ran backwards */
    bool have_cm;     /* there was connection management, or what may have been it */
    unsigned applied; /* ON_*: the rules that apply to these count as judged */
    char said[6][256];
    unsigned said_at;
};

static inline bool judge_wants(const struct judge *j, enum rule rule)
{
    return !j->o.off[rule];
}

/* A request, or a response to requests, as the checks see it before it changes the evidence. */
struct judged {
    const struct pkt *p;
    uint32_t flow;   /* of the requests */
    struct jflow *f; /* likewise */
    struct req_dir *h;
    uint8_t as;  /* of a request: enum seen_as */
    uint8_t why; /* of a request that goes back: enum why_back */
    bool usual;  /* the checks of the transport need not be asked */
};

/* --- clock.c ---------------------------------------------------------------------------------- */

void judge_step_learn_more(struct judge *j, const struct frame *f);
/* Take the time stamp of a frame of one of the first JUDGE_TAPS interfaces. */
static inline void judge_step_learn(struct judge *j, const struct frame *f)
{
    const struct ts_step *s = &j->step[ts_slot(f)];

    if (UNLIKELY(s->ns != 1 || s->owner != ts_owner(f)))
        judge_step_learn_more(j, f);
}
/* The time between `p` and an earlier packet may be more or less by so many ns than their time stamps say. */
ns_t judge_step(const struct judge *j, const struct pkt *p);
/* A timer of an end may run out so much earlier, or later, than it should, as far as time stamps tell. */
static inline ns_t judge_slack(const struct judge *j, const struct pkt *p)
{
    return judge_step(j, p) + (j->o.profile == PROFILE_RXE ? 4 * NS_PER_MS : 0);
}

/* --- fast_path.c ------------------------------------------------------------------------------ */

/* The flow of a usual packet: its headers are those of an earlier packet of its flow that broke no rule, in all that
 * may differ without being right all the same. Nothing that judge_headers() and judge_flow() look at is unusual then,
 * and both are done with it. FLOW_NONE: any other packet. */
uint32_t judge_usual_flow(struct judge *j, const struct pkt *p);
/* Values that the flow keeps, once the headers of `p` were judged. */
void judge_flow(struct judge *j, const struct pkt *p, uint32_t flow);
/* The service of a flow's packet. */
void judge_service(struct judge *j, const struct pkt *p, uint32_t flow);
/* At the end: a flow whose other direction stayed silent, against the REQ of its connection. */
void judge_flow_silent(struct judge *j, uint32_t flow);

/* --- header.c: datagrams ---------------------------------------------------------------------- */

void judge_datagram(struct judge *j, const struct pkt *p);
/* Of the first packet of a flow: what datagrams have told of its queue pair. */
void judge_first_packet(struct judge *j, const struct pkt *p, uint32_t flow);
/* What is known of a queue pair as the destination of datagrams: ud_dest_find() NULL if nothing is, ud_dest() makes
 * it. */
struct ud_dest *ud_dest_find(struct judge *j, uint32_t tap, const struct conn_addr *dst, uint32_t qpn);
struct ud_dest *ud_dest(struct judge *j, uint32_t tap, const struct conn_addr *dst, uint32_t qpn);
/* Note the queue pair that a datagram names as its sender; and whether it was noted (j->ud_from_lost: some were
 * forgotten). */
void judge_ud_source(struct judge *j, const struct pkt *p);
bool ud_source_seen(const struct judge *j, uint32_t tap, const struct conn_addr *src, uint32_t qpn);

/* --- request.c, response.c: what a flow carries ----------------------------------------------- */

void judge_request(struct judge *j, const struct pkt *p, uint32_t flow);
void judge_response(struct judge *j, const struct pkt *p, uint32_t flow);
/* At the end: notes about the requests of a flow. */
void judge_request_end(struct judge *j, uint32_t flow);

/* --- verdict.c: what the checks of the transport say ------------------------------------------ */

void judge_request_verdicts(struct judge *j, const struct judged *a);
void judge_response_verdicts(struct judge *j, const struct judged *a);
/* Name of an opcode, "another" if it has none. */
const char *opcode_name(uint8_t opcode);

/* --- pending.c: what a packet that is recorded late would refute ------------------------------ */

/* A request passed over PSNs. */
void pending_gap(struct judge *j, const struct judged *a);
/* A response to what was not sent yet. */
void pending_early(struct judge *j, const struct judged *a);
/* An ACK while a loss is being repaired. */
void pending_gbn_ack(struct judge *j, const struct judged *a);
/* A sequence NAK: it proves the gap at its PSN. */
void pending_nak(struct judge *j, const struct judged *a);
/* A packet of `flow`, or the end (`now`): report what nothing has refuted in time. */
void pending_review(struct judge *j, const struct pkt *p, uint32_t flow, bool now);

/* --- cm.c, cm_params.c: connection management ------------------------------------------------- */

/* A REP, before what it teaches is applied. */
void judge_cm_early(struct judge *j, const struct pkt *p);
/* A MAD. */
void judge_cm(struct judge *j, const struct pkt *p);
/* The first packet of a flow, against the paths that LAPs propose. */
void judge_cm_path(struct judge *j, const struct pkt *p, uint32_t flow);
void judge_cm_end(struct judge *j);
/* A request against what CM agreed on. Does nothing if keeps_cm_params(). */
void judge_cm_request(struct judge *j, const struct judged *a);
static inline bool keeps_cm_params(const struct jflow *f, const struct flow *c, const struct pkt *p)
{
    return f->psn_checked && !f->closed && !(c->paired_by == PAIR_CM && c->pmtu && p->payload_len > c->pmtu);
}
/* A response likewise, as long as nothing was acknowledged before it. */
void judge_cm_response(struct judge *j, const struct judged *a);
/* At the end: packets for a queue pair other than the one that CM named. */
void judge_wrong_qpns(struct judge *j);

/* --- pause.c, counters.c ---------------------------------------------------------------------- */

/* A frame without InfiniBand, which may be a pause frame. */
void judge_pause(struct judge *j, const struct pkt *p);
/* A connected packet of `flow`. */
void judge_while_paused(struct judge *j, const struct pkt *p, uint32_t flow);
void judge_pause_end(struct judge *j);
/* A packet with a BTH against the counters of hosts, if there are any; the end. */
void judge_count(struct judge *j, const struct pkt *p);
void judge_counters_end(struct judge *j);

/* --- congestion.c ----------------------------------------------------------------------------- */

void judge_cnp(struct judge *j, const struct pkt *p);
/* A request or READ response of `flow` marked CE; `of` is the flow of the requests, or FLOW_NONE. */
void judge_mark(struct judge *j, const struct pkt *p, uint32_t flow, uint32_t of);
/* At the end: marks without a CNP; CNPs for queue pairs that nothing is known of; how destinations are shared. */
void judge_marks_end(struct judge *j);
void judge_unknown_cnps(struct judge *j);
void judge_fairness(struct judge *j);
/* Marks and CNPs of a flow, at the end. */
void judge_congestion(struct judge *j, uint32_t flow);

#endif
