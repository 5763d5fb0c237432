/* layer 3 (judge): internal: how a check reports a failure or a value. */
#ifndef RDMATRACE_JUDGE_RAISE_H
#define RDMATRACE_JUDGE_RAISE_H

#include "src/conn/conn.h"
#include "src/judge/judge.h"

/* Format a text into one of ten buffers, used in turn: it is valid until ten more calls. */
const char *say(struct judge *j, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* A failure that a check reports. */
struct found {
    enum rule rule;
    enum severity severity; /* that of the rule, or a lower one */
    uint32_t flow;          /* flow of the requests concerned; FLOW_NONE: no connection */
    unsigned needs;         /* N_* needed in this case besides those of the rule */
    unsigned lacks;         /* N_* that are certainly missing in this case */
    unsigned has;           /* N_* that are certainly met in this case */
    uint64_t frame;         /* frame that breaks the rule; 0: that of the packet */
    uint64_t cause;         /* frame that proves it; 0: none */
    uint32_t at;            /* without packet and flow: conn_tap_of() + 1; 0: not known */
    uint32_t conn;          /* without flow: number of the connection; 0: none */
    bool by_clock;          /* it rests on the order of packets of both directions */
    bool of_silence;        /* it is silence before the packet: the packet itself is as it has to be */
    const char *wrong;      /* headline; NULL: that of the rule */
    const char *expected, *seen, *text;
};
/* A failure of `rule` by the requests of `flow`, to be completed. */
static inline struct found found_of(enum rule rule, uint32_t flow)
{
    return (struct found){.rule = rule, .severity = rule_table[rule].severity, .flow = flow};
}
/* What a failure of the requests in `flow` needs (N_*), as long as its packets may be those of another connection of
 * the same queue pairs; 0: nothing, they are not. */
unsigned judge_needs_of_another(const struct judge *j, uint32_t flow);
/* Add a failure to the findings: inconclusive if the capture does not provide what the rule needs. `p` may be NULL. */
void judge_found(struct judge *j, const struct pkt *p, struct found f);
/* Rules that apply to `on` (ON_*) count as judged from now on. */
void judge_applies(struct judge *j, unsigned on);
/* Add a note. Frame 0: none; `text` may be "". */
void judge_note(struct judge *j, enum rule rule, uint32_t flow, uint64_t frame, const char *seen, const char *text);
/* Add a note with the headline `wrong`, in which "{seen}" stands for the value. */
void judge_note_as(struct judge *j, enum rule rule, uint32_t flow, uint64_t frame, const char *wrong, const char *seen,
                   const char *text);

/* --- What the capture provides ---------------------------------------------------------------- */

/* Position of a tap, as set by the user. */
enum tap_side judge_side(const struct judge *j, uint32_t tap);
/* The same for a connection: end[0] opened it. TAP_UNKNOWN also if both open connections and accept some, and both take
 * part in all: the side does not tell at which of them the tap is. */
enum tap_side judge_side_of(const struct judge *j, uint32_t tap, const struct conn_addr *const end[2]);
/* True if the tap is at one of the ends and lacks nothing: a response there is to no requests but those that it saw. */
bool judge_sees_all(const struct judge *j, uint32_t flow);
/* N_TAP_REQ, N_TAP_RSP or 0: at which end of the requests in `flow` the tap is. */
unsigned judge_have_tap(const struct judge *j, uint32_t flow);
/* At the end: failures that rest on the side of the tap are undecided if that turned out not to tell. */
void judge_doubt_sides(struct judge *j);
/* Where a finding was captured, conn_tap_of(): its interface may count as another one. */
uint32_t judge_tap_of(const struct judge *j, const struct finding *f);
/* The clocks of the directions at a tap, conn_tap_of(), differ, and did before. */
void judge_skewed(struct judge *j, uint32_t tap);
/* At the end: failures that rest on the order of both directions at a tap whose clocks turned out to differ. */
void judge_doubt_clocks(struct judge *j);
/* Whether the responses that count as those to the requests of a flow may be those to the requests of another one. */
bool judge_another_may_be_meant(const struct judge *j, uint32_t flow);
/* At the end: failures that rest on a pairing by PSN, if another queue pair turned out to be at similar PSNs. */
void judge_doubt_pairings(struct judge *j);
/* At the end: failures that rest on the capture having all frames, if its file says, behind them, that it lost some. */
void judge_doubt_complete(struct judge *j);
/* A packet of `from` to `to` was captured at a tap, conn_tap_of(). */
void judge_hear(struct judge *j, uint32_t tap, const struct conn_addr *from, const struct conn_addr *to);
/* A packet of `from` to `to` at the tap has a right checksum of the IPv4 header; whether one has had. */
void judge_ip_sum_right(struct judge *j, uint32_t tap, const struct conn_addr *from, const struct conn_addr *to);
bool judge_has_ip_sums(struct judge *j, uint32_t tap, const struct conn_addr *from, const struct conn_addr *to);
/* A failure that a message of `peer` to `to` at the tap would refute, which was not captured, or later: it needs other
 * packets of `peer` to `to` there, as a tap may have one direction only. `passive`: it is the passive end of the
 * exchange. */
void judge_needs_peer(struct judge *j, struct found *f, uint32_t tap, const struct conn_addr *peer,
                      const struct conn_addr *to, bool passive);
/* N_* that the capture provides for the requests of `flow`; `p` may be NULL. */
unsigned judge_have(const struct judge *j, uint32_t flow, const struct pkt *p);
/* True if a packet near that frame was damaged or could not be decoded: a missing one may be that. */
bool judge_is_unreadable_near(const struct judge *j, uint64_t frame);
/* True if the user says that the capture lost no frame, and the tap is at the responder of the requests in `flow`. */
bool judge_tap_at_responder(const struct judge *j, uint32_t flow, const struct pkt *p);
/* True if nothing more will tell whether the responses that count as those to the requests of `flow` are: CM, a TCP
 * exchange or the user says so, or many have fitted. */
bool judge_pairing_is_settled(const struct judge *j, uint32_t flow);
/* True if the response to PSN `psn` of `flow` may be one of those that came before it was known to which of several
 * queue pairs they belong. */
bool judge_may_have_come(const struct judge *j, uint32_t flow, uint32_t psn);
/* True if the ACK timeout of the requester in `flow` is known; it may be off. */
bool judge_has_timeout(const struct judge *j, uint32_t flow);
/* Whether it may have run out within `took` ns, by the time stamps of packet `p`; NULL: the capture has ended. False if
 * there is no timer, or nothing is known of the requester. */
bool judge_timed_out(const struct judge *j, uint32_t flow, ns_t took, const struct pkt *p);

/* --- Failures that need no connection --------------------------------------------------------- */

/* Report a failure, or a warning, that the packet alone proves. */
void judge_bad(struct judge *j, const struct pkt *p, enum rule rule, const char *expected, const char *seen,
               const char *text);
void judge_warn(struct judge *j, const struct pkt *p, enum rule rule, const char *expected, const char *seen,
                const char *text);
/* Report a failure with its own headline; rule, severity, wrong, expected, seen and text are set. */
void judge_bad_as(struct judge *j, const struct pkt *p, struct found f);

#endif
