/* layer 3 (judge): internal: connection management: exchanges of messages, what they agree on, and what becomes of it.
 */
#ifndef RDMATRACE_JUDGE_CM_H
#define RDMATRACE_JUDGE_CM_H

#include "src/judge/judge_impl.h"

#define COPY_WITHIN (10 * NS_PER_MS) /* a message repeated within this time was duplicated by the network */

/* --- cm.c, params.c, paths.c ------------------------------------------------------------------- */

/* A REP, before it changes the connection table. */
void judge_cm_early(struct judge *j, const struct pkt *p);
/* Judge a MAD, if it is a CM message. */
void judge_cm(struct judge *j, const struct pkt *p);
/* The first packet of a flow: it must not use a path that a LAP has proposed and no APR accepted. */
void judge_cm_path(struct judge *j, const struct pkt *p, uint32_t flow);
/* A REP, which may refuse the alternate path of the REQ; a LAP, and an APR, of an exchange. */
void cm_take_failover(struct judge *j, const struct cm_packet *c);
void cm_take_lap(struct judge *j, struct cm_packet *c);
void cm_take_apr(struct judge *j, struct cm_packet *c);
void judge_cm_end(struct judge *j);
/* Compare a request with the parameters of CM. keeps_cm_params(): there is nothing to report. */
void judge_cm_request(struct judge *j, const struct judged *a);
static inline bool keeps_cm_params(const struct jflow *f, const struct flow *c, const struct pkt *p)
{
    return f->psn_checked && !f->closed.frame && !(c->paired_by == PAIR_CM && c->pmtu && p->payload_len > c->pmtu);
}
/* Compare a response with them, as long as no request of the flow was acknowledged. */
bool judge_cm_response(struct judge *j, const struct judged *a, struct found *f);
/* At the end: packets sent to another queue pair, or from another address, than those of their connection. */
void judge_wrong_qpns(struct judge *j);
void judge_wrong_flows(struct judge *j);
/* At the end: compare the P_Key and the service of the flow with those that the REQ names. */
void judge_flow_pkey(struct judge *j, uint32_t flow);
void judge_flow_transport(struct judge *j, uint32_t flow);

/* The failure `v` of message `m` with its texts (texts.c); `cause`: the frame that proves it, or 0. */
struct found cm_found_of(struct judge *j, const struct cm_msg *m, struct verdict v, uint32_t cause);
/* The failure of message `m`, which is sent again, not to be the same as its first copy, in frame `cause`: both values
 * of the first field that differs. */
struct found cm_found_differing(struct judge *j, const struct cm_msg *m, const struct cm_msg *first, uint32_t cause);
/* Report it: a failure that concerns no flow. `p` may be NULL. */
void cm_found(struct judge *j, const struct pkt *p, struct found f);
/* CM-02: an answer has another transaction id than `tid`, that of the message in frame `cause`, which it answers. */
void cm_check_tid(struct judge *j, const struct cm_packet *c, uint64_t tid, uint32_t cause);
/* Failures that assume that the first REQ seen began the exchange need N_COMPLETE if it was seen at the start of the
 * capture: it may be a retransmission, and messages before it were not captured. Retransmissions are one response
 * timeout apart, and no packet is in flight for longer. Once a REP and an RTU followed the REQ, nothing came before. */
unsigned cm_lacks(const struct judge *j, const struct cm_exchange *s);
/* Queue pair of the receiver of a message, where `of_active` says whether the active side sent it; CONN_NO_QPN: not
 * known, as there was no REP, or its number was not captured. */
uint32_t cm_qpn_of(const struct cm_packet *c, bool of_active);

/* --- sender.c ---------------------------------------------------------------------------------- */

/* A message of an exchange, before it changes that, against earlier ones of its sender. */
void cm_check_sender(struct judge *j, const struct cm_packet *c);
/* At the end: a DREP of an end that has sent a DREQ, but got none, and whose peer has not closed otherwise. */
void cm_check_asked(struct judge *j, const struct cm_exchange *s, bool from_active);
/* At the end: the active side has sent requests, and never an RTU. */
void cm_check_confirmed(struct judge *j, const struct cm_exchange *s);

/* --- sidr.c, copies.c -------------------------------------------------------------------------- */

void cm_take_sidr_req(struct judge *j, const struct cm_packet *c);
void cm_take_sidr_rep(struct judge *j, const struct cm_packet *c);

/* Keep the message as the first of its copies. */
void cm_first_copy(struct cm_copies *o, const struct cm_packet *c);
/* A REQ, REP or DREQ: keep the first copy, or one that was cut less, and compare further ones with it (CM-02, CM-03).
 */
void cm_check_copy(struct judge *j, struct cm_copies *o, const struct cm_packet *c);
/* True if the tap is at the sender of the message. */
bool cm_tap_at_sender(const struct judge *j, const struct cm_packet *c);

/* --- ends.c: the exchanges, and both ends of many of them --------------------------------------- */

/* Whether a message that names the id in a REQ was captured shortly before the REQ: the clocks of the directions
 * differ. */
bool cm_answered_before(const struct judge *j, const struct cm_packet *req);

/* Key of an exchange: its tap, its addresses, and the active side's communication id. */
uint64_t cm_key(const struct pkt *p, const struct conn_addr *active, const struct conn_addr *passive, uint32_t id);
struct cm_exchange *cm_exchange_find(struct judge *j, uint64_t key);
/* Find the exchange of a message other than a REQ by its communication ids and the GIDs of the paths of the REQ: on
 * InfiniBand a REQ without a GRH comes from a LID, a message along an alternate path has a GRH. True: sets c->s and
 * c->from_active, and the addresses of *c are those of the REQ. */
bool cm_exchange_named(struct judge *j, struct cm_packet *c);
/* A place for a new exchange: a free one, else that of the exchange which began first, of those that ended if there is
 * one. NULL without memory. */
struct cm_exchange *cm_exchange_place(struct judge *j, uint64_t key);
struct cm_ends *cm_ends_of(struct judge *j, const struct cm_exchange *s);
/* True if the exchange was seen at `tap`, and its end `side` has address `src`, and the other end `dst`. */
static inline bool cm_ends_are(const struct cm_ends *e, unsigned side, uint32_t tap, const struct conn_addr *src,
                               const struct conn_addr *dst)
{
    return e->used && e->tap == tap && conn_addr_eq(&e->addr[side], src) && conn_addr_eq(&e->addr[!side], dst);
}
/* A REQ that begins the exchange c->s; its REP; a DREQ, DREP or REJ, whose sender's packets are those of `flow`
 * (FLOW_NONE: not known). */
void cm_ends_req(struct judge *j, const struct cm_packet *c);
void cm_ends_rep(struct judge *j, const struct cm_packet *c);
void cm_ends_close(struct judge *j, const struct cm_packet *c, uint32_t flow);
/* A failure of CM-01, of CM-13, which the message in frame `cause` proves. */
struct found cm_out_of_place(uint32_t cause);
struct found cm_after_close(uint32_t cause);
/* A message that matches no exchange: report it if one of its ids belongs to an exchange. */
void judge_cm_unmatched(struct judge *j, const struct cm_packet *c);
/* At the first packet of a flow: was its connection closed or refused before? */
void judge_cm_opened(struct judge *j, uint32_t flow);
/* A request, or a response, whose sender has closed or refused the connection. */
void judge_cm_late_request(struct judge *j, const struct judged *a);
void judge_cm_late_response(struct judge *j, const struct judged *a);

#endif
