/* layer 3 (explain): congestion: marks (CE), CNPs, pause frames, classes; what of it explains lost time, or does not
 * work as it should. */
#ifndef RDMATRACE_EXPLAIN_CONGESTION_H
#define RDMATRACE_EXPLAIN_CONGESTION_H

#include "src/explain/explain.h"

struct flow_notes;

/* An incast: packets of so many hosts to one are marked (CE), or lost, within so long. */
#define INCAST_HOSTS  4
#define INCAST_WITHIN NS_PER_MS

/* What is kept of pauses, ports and incasts; made with the first pause frame or mark. NULL is allowed. */
struct congestion;
void congestion_free(struct congestion *c);

/* Pause frames (pauses.c): one frame; the end of the capture, when all other incidents are complete. */
void explain_pause(struct explainer *x, const struct pkt *p);
void explain_pauses(struct explainer *x);
/* Any packet with addresses since the first pause frame (ports.c): how busy its port is. `own`: its flow. */
void explain_load(struct explainer *x, const struct pkt *p, uint32_t own);
/* A packet with data is marked CE (incast.c); the end of the capture. */
void explain_mark(struct explainer *x, const struct pkt *p);
void explain_incasts(struct explainer *x);
/* CNPs (cnps.c): one; the end of the capture for each flow of requests, `t` its notes, `o` those of the other
 * direction, in which CNPs come, NULL: no packet of it was captured; an incident about CNPs that nobody heeds: what
 * follows from it; incidents about CNPs without a mark: whether the tap can tell. Before that (receivers.c): which taps
 * are at the link of a receiver. After it (lost_cnps.c): CNPs that came to one of two taps only, or in a class that is
 * paused. */
void explain_cnp(struct explainer *x, const struct pkt *p, uint32_t flow);
void explain_receiver_taps(struct explainer *x);
void end_congestion(struct explainer *x, uint32_t flow, const struct flow_notes *t, const struct flow_notes *o);
void explain_unheeded(struct explainer *x, uint32_t number);
void explain_baseless(struct explainer *x);
void explain_lost_cnps(struct explainer *x);
/* Append what an incident says of congestion, if it does: "congestion":{...}, with the values of its sentences
 * (members.c). `files`: names of the captures. */
void congestion_json(struct buf *b, const struct incident *s, const char *const *files);
/* All losses are in one class (classes.c). */
void explain_classes(struct explainer *x);

#endif
