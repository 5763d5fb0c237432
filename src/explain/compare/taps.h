/* layer 3 (explain): compare taps: what the explainer asks of this folder. */
#ifndef RDMATRACE_EXPLAIN_TAPS_H
#define RDMATRACE_EXPLAIN_TAPS_H

#include "src/explain/explain_impl.h"

/* Requests of a flow went on: compare its incidents with other taps (cross_check.c) before what these saw is replaced.
 */
void explain_fresh(struct explainer *x, uint32_t flow);
/* Release what is kept of what taps saw about incidents (kept.c). */
void kept_free(struct explainer *x);
/* The same of all other incidents, at the end of the capture. */
void explain_taps(struct explainer *x);
/* Whether the tap of a flow of requests assigned every response to a flow. It cannot while several queue pairs use the
 * same PSNs. */
bool explain_knows_answers(const struct explainer *x, uint32_t flow);
/* Whether its tap captured packets of the other direction: CM messages of the setup, or RDMA packets of any flow. */
bool explain_sees_answers(const struct explainer *x, uint32_t flow);
/* True if two flows are the same flow at different taps. */
bool explain_same_flow(struct explainer *x, uint32_t a, uint32_t b);
/* Join the incidents of several taps about one event (merge_taps.c), when all are complete. */
void explain_once(struct explainer *x);
/* Index the events for explain_also(), when the incidents are sorted. */
void explain_events(struct explainer *x);
void incident_chains_free(struct incident_chains *c);
/* True if the other tap of the flow lacks the first copy of request `psn`: the packet was lost between the taps. */
bool explain_lost_between(struct explainer *x, uint32_t flow, uint32_t psn);
/* Request `e` goes back for the packet of incident `st`, of which copies were lost before, and which passed last in
 * frame `lost`: say so if another tap had no such copy by then (until_then.c). The same of a READ response. */
void explain_request_until_then(struct explainer *x, const struct event *e, struct incident *st, uint32_t lost);
void explain_response_until_then(struct explainer *x, const struct event *e, const struct flow_notes *t,
                                 struct incident *st, uint32_t lost);
/* True if one of two taps of the flow lacks the first copy of a request from `psn` to before `end`. */
bool explain_lost_among(struct explainer *x, uint32_t flow, uint32_t psn, uint32_t end);
/* Taps on one path (merge_taps.c): a packet of no connection; and requests that failed and reached only one of two
 * taps. */
void explain_at_taps(struct explainer *x, const struct pkt *p);
/* True if only this tap saw the request of an incident, though other packets passed both taps. */
bool explain_is_unreached(struct explainer *x, const struct incident *st);
void explain_unreached(struct explainer *x, struct incident *st);
/* Of the incidents from `from` on (holes.c): say what several taps saw of one such path once, and between
 * which two taps the packets are lost. */
void explain_holes(struct explainer *x, uint32_t from);

/* clocks.c: time `ts` of the clock of tap `from` as tap `to` has it; as it is if the clocks could not be
 * compared. 0, which is no time, stays 0. */
ns_t explain_clock(const struct explainer *x, uint32_t from, uint32_t to, ns_t ts);
/* Convert *ts likewise; *error: it is right within this. False: the clocks could not be compared. */
bool explain_clock_known(const struct explainer *x, uint32_t from, uint32_t to, ns_t *ts, ns_t *error);
/* clocks.c: the same as a timeline_clock; `user` is the explainer. False: the clocks could not be compared. */
bool explain_convert(void *user, uint32_t from, uint32_t to, ns_t *ts);
/* clocks.c: convert the times of all incidents to the clock of the first tap. */
void explain_set_clocks(struct explainer *x);
/* Append a line for each tap whose clock differs from the first one's. */
void explain_clocks_put(const struct explainer *x, const struct explain_opts *o, struct buf *b);
/* Append how packets are marked between two taps (marking_put.c): paragraphs; the member `marking` and a comma. */
void explain_marking_put(const struct explainer *x, const struct explain_opts *o, struct buf *b);
void explain_marking_json(const struct explainer *x, const struct explain_opts *o, struct buf *b);
/* merge_taps.c: of the time that several taps saw, bill each nanosecond once. */
void explain_share_bills(struct explainer *x);
/* True if the account of a direction counts. Accounts are from the requester's view: of several taps the one with the
 * least not_known time counts, of equal ones the one nearest to the requester. */
bool account_counts(const struct explainer *x, const struct timeline_row *r);
/* The same of the account of flow `flow` of a connection at a tap; true if there is none. */
bool explain_counts(const struct explainer *x, uint32_t conn, uint32_t flow, uint32_t tap);
/* At the end of the capture (to_host.c): make the index of flows by the host that they go to. False without memory:
 * then no flow is found. */
bool explain_hosts_index(struct explainer *x);
void explain_hosts_free(struct explainer *x);
/* The flows to `dst` at `tap`, in their order, or at FLOWS_OF_ALL_TAPS: for (f = ...; f.at < f.end; f.at++) ...
 * explain_flow_to(x, f.at). */
#define FLOWS_OF_ALL_TAPS UINT32_MAX
struct flows_to {
    uint32_t at, end;
};
struct flows_to explain_flows_to(const struct explainer *x, const struct conn_addr *dst, uint32_t tap);
uint32_t explain_flow_to(const struct explainer *x, uint32_t at);

#endif
