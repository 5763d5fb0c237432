/* layer 3 (judge): internal: what the parts of the judge share. */
#ifndef RDMATRACE_JUDGE_JUDGE_IMPL_H
#define RDMATRACE_JUDGE_JUDGE_IMPL_H

#include "src/conn/observer.h"
#include "src/judge/header.h"
#include "src/judge/judge.h"
#include "src/judge/shadow.h"
#include "src/transport/cm.h"

/* What time stamps of packets sent and received may differ by: each processor and queue of a host makes its own, in
 * software some tens of microseconds after or before the packet passes the wire. */
#define CLOCK_SLACK (100 * NS_PER_US)

#define MTU_MAX 4096 /* no path MTU is larger */

/* A value that should not change. A change alone may be a queue pair used anew; a change and back again is not. */
struct steady {
    uint32_t value;
    uint32_t other;       /* with `pending`: the value that came instead, in frame other_frame */
    uint32_t value_frame; /* frame of the value seen last */
    uint32_t other_frame;
    uint16_t others; /* how often it came */
    bool have, pending;
    bool said; /* with `pending`: the change was reported */
};
#define STEADY_MOVED 64 /* after so many the other value is the value */

/* Requests, and responses, of one flow. */
#define USUAL_WORDS (HEADER_BYTES / 8)
struct kind_state {
    uint64_t usual[USUAL_WORDS]; /* headers of a packet that broke no rule (fast_path.c); usual[0] 0: none */
    uint32_t tap;                /* with usual[] */
    uint32_t frame;              /* of the latest one like it; 0: values below know their frames */
    bool seen;
    struct steady sport, dscp, ect;
};
enum { KIND_REQ, KIND_RSP };

#define PENDING_PACKETS 16 /* packets of a flow within which a reordered one is expected to show up */

/* An accusation that a packet recorded late would refute. */
struct pending_fail {
    bool have;
    uint32_t psn;          /* the packet */
    uint32_t frame;        /* where it was missed */
    uint32_t conn_packets; /* count of the flow's packets then */
    uint8_t rule;
    uint8_t opcode;
    uint32_t other; /* a second PSN, for the text */
    ns_t ts;        /* of the packet */
};

/* A response, to know a copy of it by. */
struct twin {
    bool have;
    uint8_t opcode;
    uint16_t ip_id;
    uint32_t psn, icrc;
    ns_t ts;
};

/* The oldest request since the latest response that asks for an answer, and has certainly arrived if the tap is at the
 * responder. */
struct asked {
    uint32_t psn;
    uint32_t frame; /* 0: none */
    ns_t ts;
};

/* What a flow had carried when a CNP for its sender was seen. */
struct rate_mark {
    uint32_t frame; /* of the CNP; 0: none */
    ns_t ts;
    uint64_t bytes;
};

/* What is remembered of the requests of a flow to compare later packets with (history.c). Begun anew with the queue
 * pair, but for the counts. */
#define PAST_ANSWERS 256 /* READ responses */
#define PAST_KEYS    8   /* R_Keys that were invalidated */
struct past_answer {
    uint32_t psn;
    uint32_t frame; /* 0: empty */
    uint32_t hash;  /* of the payload */
};
struct past_key {
    uint32_t rkey;
    uint32_t psn, frame;         /* of the SEND with Invalidate; frame 0: empty */
    uint32_t use_psn, use_frame; /* of the first request with it since; frame 0: none */
    uint8_t use_opcode;
};
struct past {
    struct past_answer answers[PAST_ANSWERS]; /* by PSN */
    struct past_key keys[PAST_KEYS];
    uint32_t keys_at; /* invalidated in all */
    struct {
        bool have;
        uint32_t frame; /* of a request that came behind later ones */
        uint32_t end;   /* behind all that was seen then */
    } overtaken;
    struct {
        bool have;
        uint32_t psn, msn, frame;
    } counted; /* plain ACK that was sent when nothing behind its PSN had been taken: its MSN counts what is up to it */
    struct {
        bool have;
        uint32_t end; /* behind all that was seen then */
    } repeated; /* requests came again, or late, and no ACK was seen since that can but be for one sent after them */
    bool have_syndrome;
    uint8_t syndrome;               /* of the latest plain ACK */
    bool at_responder;              /* of `reordered`: the tap was there */
    uint64_t replayed, differ;      /* READ responses seen again, and with other data */
    uint64_t unasked, unasked_news; /* ACKs that nothing asked for, and with other credits */
    uint64_t reordered;             /* requests taken out of order without a NAK */
    uint32_t replayed_frame, differ_frame, unasked_frame, reordered_frame; /* the first ones */
};

struct jflow {
    /* What every packet touches comes first. */
    struct req_dir *dir;   /* the observer's, of the requests in this flow: what packets prove; NULL: none seen */
    struct shadow *shadow; /* their requester and responder: what is permitted; there with `dir` */
    struct past *past;     /* likewise */
    uint64_t packets;      /* all of the flow */
    uint32_t after;        /* PSN that follows the request seen last */
    uint32_t frame;        /* of the latest usual packet; 0: the values know their frames */
    uint32_t ackreq_run, ackreq_run_max; /* requests without AckReq in a row: a note */
    bool have_after;                     /* `after` is valid */
    bool has_rsp;                        /* responses were seen in this flow */
    bool closed;                         /* its sender has sent a DREQ or DREP */
    bool psn_checked;                    /* CM-06 was judged */
    bool answered;                       /* something in it was acknowledged */
    struct steady mtu;
    uint32_t long_frame; /* a Last or Only packet longer than the path MTU; 0: none */
    uint32_t long_len;   /* its payload in bytes */
    struct kind_state kind[2];
    struct steady service, pkey, migreq;
    uint32_t first_frame;
    ns_t first_ts;
    bool noted_port, ends_compared, dscp_compared;
    uint32_t rsp_frame;        /* with has_rsp: the first response */
    uint64_t doubted;          /* responses up to the last one that may be those of another queue pair */
    bool mid_stream;           /* its first packet was not the first of its queue pair */
    struct pending_fail gap;   /* SEQ-01, RDA-01: PSN that was passed over */
    struct pending_fail early; /* ACK-02, ACK-03, RDA-05: response to a PSN not sent */
    /* Congestion. */
    uint64_t ce, cnps;
    uint64_t ce_data;             /* of those marked CE: requests and READ responses, whose receiver is to send CNPs */
    uint32_t ce_frame, cnp_frame; /* the first ones */
    ns_t cnp_ts, cnp_gap;         /* of the latest CNP; shortest spacing */
    struct rate_mark cnp_first, cnp_last; /* in the flow whose sender the CNPs are for */
    /* Notes. */
    uint32_t rnr_code; /* code + 1 of the RNR NAKs that answer this flow's requests */
    bool rnr_codes_differ;
    uint64_t spurious; /* sent again although answered */
    uint32_t spurious_frame;
    ns_t nak_reaction; /* longest time from a sequence NAK to the packet sent again */
    struct twin rsp;   /* latest response to its requests */
    struct asked asked;
    uint32_t closed_frame; /* with closed */
};

/* A CNP for a queue pair of which nothing was known then. */
struct stranger {
    uint32_t frame; /* 0: unused */
    uint32_t tap, qpn;
    struct conn_addr src, dst; /* of the CNP */
    bool early;                /* it may answer what was sent before the capture began */
};
#define STRANGERS 64

/* A packet marked CE that its receiver is to answer with a CNP; frame 0: none. */
struct ce_mark {
    uint32_t frame, psn;
    uint32_t of;  /* flow of the requests */
    bool request; /* else a READ response */
    ns_t ts;
};

/* A node that receives such packets, or sends CNPs. It may send one for several queue pairs, so all of its CNPs
 * count. */
struct notifier {
    bool used, shared; /* shared: two nodes have this place, and neither is judged */
    uint32_t tap;
    struct conn_addr addr;
    uint64_t cnps, missed_n;
    ns_t cnp_ts;
    struct ce_mark wait, missed; /* the oldest mark without a CNP yet, and the first that stayed without */
};
#define NOTIFIERS 64

/* A traffic class that a station has paused. */
struct pause {
    /* first and latest pause frame without an end in between; when the pause is over at the earliest */
    ns_t since, from, until;
    uint32_t since_frame, frame;
    bool on, storm; /* storm: it was reported */
};

/* What the time stamps of an interface are multiples of, as far as they tell: they may be rounded by so much. */
struct ts_step {
    uint32_t owner;  /* the interface, by ts_owner(); 0: none yet */
    uint32_t ns;     /* a power of ten */
    uint32_t stamps; /* how many were looked at */
};

/* A station that sends pause frames. */
struct pauser {
    uint32_t tap, first_frame;
    uint8_t mac[6];
    uint64_t frames, quanta;
    struct pause class[8];
};
#define PAUSERS 64

/* UD destinations, a table in which newer ones take the places of older ones. */
struct ud_dest {
    uint64_t key;
    uint32_t qkey, frame, sidr_frame;
    bool have, from_sidr;
};
#define UD_DESTS 1024

/* A CM message that may be sent again. */
struct cm_once {
    struct cm_msg m; /* the first one */
    ns_t ts;         /* of the latest one */
    uint32_t frame;  /* of the first one */
    uint8_t copies;  /* 0: none yet */
};

/* A CM exchange, in a table like that of struct ud_dest. */
struct cm_exchange {
    uint64_t key; /* of tap, addresses and the active side's communication id; 0: unused */
    uint16_t file;
    uint32_t iface;
    ns_t begun; /* when its first REQ was seen */
    struct cm_watch watch;
    uint32_t passive_id; /* communication id of the passive side, 0: not known */
    struct cm_once req, rep;
    bool asked;             /* a copy of the REQ was seen */
    struct cm_once dreq[2]; /* of the passive, of the active side */
    bool drep[2];           /* likewise: it sent a DREP */
    bool over;              /* REJ, DREQ or DREP were seen */
    struct {
        struct cm_msg m;
        uint32_t frame; /* 0: none */
        ns_t ts;
        bool from_active;
    } soon; /* a message that nothing had led to when it came */
    struct {
        uint32_t frame; /* 0: none */
        ns_t ts, time;  /* when, and how much time it asks for */
        bool from_active;
    } mra;
};
#define CM_STATES 1024

/* A path that a LAP proposes. */
struct lap {
    struct conn_addr addr[2]; /* of the LAP's sender, of its receiver */
    uint32_t qpn[2];          /* their queue pairs */
    uint32_t tap;
    uint32_t frame;    /* 0: unused */
    uint64_t exchange; /* key of its exchange */
    bool accepted;
};
#define LAPS 16

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
    uint64_t found;                   /* findings and notes so far */
    struct ud_dest ud[UD_DESTS];
    uint64_t ud_from[UD_DESTS]; /* keys of queue pairs that have sent datagrams */
    bool ud_from_lost;
    struct cm_exchange cm[CM_STATES];
    struct lap lap[LAPS];
    uint32_t lap_at;
    uint64_t packets, cut, untimed, backwards, drops, malformed;
    uint32_t cut_frame, backwards_frame;
    uint64_t objected; /* the latest frame of which anything was found */
    uint64_t spoiled;  /* the latest frame that its receiver drops and that belongs to no flow */
    ns_t first_ts[JUDGE_TAPS], last_ts[JUDGE_TAPS];
    struct ts_step step[JUDGE_TAPS]; /* by ts_slot(): of several files at a time */
    struct pauser pauser[PAUSERS];
    unsigned n_pauser;
    struct stranger stranger[STRANGERS];
    struct notifier notifier[NOTIFIERS];
    uint32_t n_stranger;
    uint16_t file;
    bool blind;       /* packets were cut within their headers, or time ran backwards */
    bool said_cm;     /* there was connection management, or what may have been it */
    unsigned applied; /* ON_*: the rules that apply to these count as judged */
    char said[6][256];
    unsigned said_at;
};

/* printf into one of six buffers that take turns. */
const char *say(struct judge *j, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* A failure as it is found. */
struct found {
    enum rule rule;
    enum severity severity; /* the rule's, or a milder one */
    uint32_t flow;          /* of the requests concerned; FLOW_NONE: no connection */
    unsigned needs;         /* N_* besides the rule's */
    unsigned lacks;         /* N_* that are missing in this case */
    unsigned has;           /* N_* that are given in this case */
    uint64_t frame;         /* 0: the packet's */
    uint64_t cause;         /* 0: none */
    const char *wrong;      /* the headline, in place of that of the rule; NULL: the rule's */
    const char *expected, *seen, *text;
};
/* The common start of a finding about the requests of a flow. */
static inline struct found found_of(enum rule rule, uint32_t flow)
{
    return (struct found){.rule = rule, .severity = rule_table[rule].severity, .flow = flow};
}
/* Weigh it and report it. */
void judge_found(struct judge *j, const struct pkt *p, struct found f);
/* Something was seen that rules are judged by, ON_*: they count as judged from now on. */
void judge_applies(struct judge *j, unsigned on);
/* A note: frame 0 means none; `text` may be "". */
void judge_note(struct judge *j, enum rule rule, uint32_t flow, uint64_t frame, const char *seen, const char *text);
/* Likewise under a headline that is not the rule's, with "{seen}" for the value. */
void judge_note_as(struct judge *j, enum rule rule, uint32_t flow, uint64_t frame, const char *wrong, const char *seen,
                   const char *text);
/* The side of a tap, as the user told it. */
enum tap_side judge_side(const struct judge *j, uint32_t tap);
/* N_* that are given for the requests of `flow`; `p` may be NULL. */
unsigned judge_have(const struct judge *j, uint32_t flow, const struct pkt *p);
/* Whether a pairing by PSN agreement may be wrong: no response fitted yet, CM was captured in part, another queue pair
 * between the same addresses is at similar PSNs, or there are responses of either end to another one whose requests
 * were not captured. */
bool judge_pairing_doubtful(const struct judge *j, uint32_t flow);
/* Whether the ACK timeout of the requester in `flow` is known, be it off. */
bool judge_has_timeout(const struct judge *j, uint32_t flow);
static inline bool judge_wants(const struct judge *j, enum rule rule)
{
    return !j->o.off[rule];
}

/* Take a value; `same`: the packet certainly follows the one before in its queue pair. True if there was a deviation
 * that was not reported yet: s->other in frame s->other_frame. A value that changed where the queue pair may have been
 * used anew is none, until the old one is back. */
static inline bool steady_put(struct steady *s, uint32_t v, uint32_t frame, bool same)
{
    if (LIKELY(s->have && v == s->value)) {
        bool news = s->pending && !s->said;
        if (UNLIKELY(s->pending))
            s->pending = s->said = false;
        else
            s->value_frame = frame;
        return news;
    }
    if (!s->have) {
        *s = (struct steady){.value = v, .value_frame = frame, .have = true};
    } else if (!s->pending || v != s->other) {
        bool news = same && !s->said;
        s->pending = true;
        s->said |= same;
        s->other = v;
        s->other_frame = frame;
        s->others = 1;
        return news;
    } else if (++s->others >= STEADY_MOVED) {
        *s = (struct steady){.value = v, .value_frame = frame, .have = true};
    }
    return false;
}

/* A packet of a connection, and the requests that it belongs to or answers. */
struct judged {
    const struct pkt *p;
    uint32_t flow;   /* of the requests */
    struct jflow *f; /* likewise */
    struct req_dir *h;
};
/* Whether a failure of this rule, as the transport's checks report it, is explained by judge_verdict(). */
bool judge_explains(enum rule rule);
/* Report the failure `v` with the frames that prove it; `has` and `lacks` are N_* as in struct found. */
void judge_verdict(struct judge *j, const struct judged *a, const struct verdict *v, unsigned has, unsigned lacks);
/* Name of an opcode, "another" if it has none. */
const char *opcode_name(uint8_t opcode);

/* The number of an interface among all files'; not 0. */
static inline uint32_t ts_owner(const struct frame *f)
{
    return (uint32_t)f->file << 16 | (f->iface + 1);
}
/* Where the step of an interface is kept: few interfaces of few files do not get into each other's way. */
static inline uint32_t ts_slot(const struct frame *f)
{
    return (f->file * 8 + f->iface) % JUDGE_TAPS;
}
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
/* The parts. `flow` is that of the packet. */
/* A failure that the packet alone proves; a warning likewise. */
void judge_bad(struct judge *j, const struct pkt *p, enum rule rule, const char *expected, const char *seen,
               const char *text);
void judge_warn(struct judge *j, const struct pkt *p, enum rule rule, const char *expected, const char *seen,
                const char *text);
/* Likewise under a headline that is not the rule's: rule, severity, wrong, expected, seen and text are given. */
void judge_bad_as(struct judge *j, const struct pkt *p, struct found f);
/* Values that the flow keeps, once its headers were judged; `clean`: they broke no rule. */
void judge_flow(struct judge *j, const struct pkt *p, uint32_t flow, bool clean);
/* At the end: a flow whose other direction stayed silent, against the REQ of its connection. */
void judge_flow_silent(struct judge *j, uint32_t flow);
/* The service of a flow's packet. */
void judge_service(struct judge *j, const struct pkt *p, uint32_t flow);
/* The flow of a usual packet: its headers are those of an earlier packet of its flow that broke no rule, in all that
 * may differ without being right all the same. Nothing that judge_headers() and judge_flow() look at is unusual then,
 * and both are done with it. FLOW_NONE: any other packet. */
uint32_t judge_usual_flow(struct judge *j, const struct pkt *p);
void judge_datagram(struct judge *j, const struct pkt *p);
void judge_cnp(struct judge *j, const struct pkt *p);
void judge_request(struct judge *j, const struct pkt *p, uint32_t flow);
void judge_response(struct judge *j, const struct pkt *p, uint32_t flow);
/* The past of the requests `f`: make it, or begin anew; false without memory. Packets before req_dir_request() and
 * req_dir_response(); responses only if they are no copies and their requests were seen. At the end: notes. */
bool past_begin(struct jflow *f);
void past_request(const struct judged *a, enum seen_as as);
void past_response(struct judge *j, const struct judged *a);
void past_end(struct judge *j, uint32_t flow);
void judge_pending(struct judge *j, const struct pkt *p, uint32_t flow, bool now);
void judge_cm(struct judge *j, const struct pkt *p);
/* A REP, before what it teaches is applied. */
void judge_cm_early(struct judge *j, const struct pkt *p);
/* The first packet of a flow, against the paths that LAPs propose. */
void judge_cm_path(struct judge *j, const struct pkt *p, uint32_t flow);
void judge_cm_end(struct judge *j);
/* The first packet of a flow. */
void judge_first(struct judge *j, const struct pkt *p, uint32_t flow);
/* What is known of a queue pair as the destination of datagrams: ud_dest_find() NULL if nothing is, ud_dest() makes
 * it. */
struct ud_dest *ud_dest_find(struct judge *j, uint32_t tap, const struct conn_addr *dst, uint32_t qpn);
struct ud_dest *ud_dest(struct judge *j, uint32_t tap, const struct conn_addr *dst, uint32_t qpn);
/* A request against what CM agreed on; `as` is what the observer says of it. Does nothing if judge_agrees(). */
void judge_agreed(struct judge *j, const struct pkt *p, uint32_t flow, enum seen_as as);
static inline bool judge_agrees(const struct jflow *f, const struct flow *c, const struct pkt *p)
{
    return f->psn_checked && !f->closed && !(c->paired_by == PAIR_CM && c->pmtu && p->payload_len > c->pmtu);
}
/* A response likewise; `flow` is that of the response. */
void judge_agreed_answer(struct judge *j, const struct pkt *p, uint32_t flow);
/* At the end: packets for a queue pair other than the one that CM named. */
void judge_strays(struct judge *j);
/* A frame without InfiniBand, which may be a pause frame; a connected packet of `flow` once pause frames were seen; the
 * end. */
void judge_pause(struct judge *j, const struct pkt *p);
void judge_while_paused(struct judge *j, const struct pkt *p, uint32_t flow);
void judge_pause_end(struct judge *j);
/* With counters of hosts: a packet with a BTH; the end. */
void judge_count(struct judge *j, const struct pkt *p);
void judge_counters_end(struct judge *j);
/* Likewise: CNPs for queue pairs that nothing is known of; how destinations are shared. */
void judge_strangers(struct judge *j);
/* A request or READ response of `flow` marked CE; `of` is the flow of the requests, or FLOW_NONE. And the end, for
 * marks without a CNP. */
void judge_mark(struct judge *j, const struct pkt *p, uint32_t flow, uint32_t of);
void judge_marks_end(struct judge *j);
void judge_fairness(struct judge *j);
/* Marks and CNPs of a flow, at the end. */
void judge_congestion(struct judge *j, uint32_t flow);
/* Note the queue pair that a datagram names as its sender; and whether it was noted (j->ud_from_lost: some were
 * forgotten). */
void judge_ud_source(struct judge *j, const struct pkt *p);
bool ud_source_seen(const struct judge *j, uint32_t tap, const struct conn_addr *src, uint32_t qpn);
void judge_flow_end(struct judge *j, uint32_t flow);

#endif
