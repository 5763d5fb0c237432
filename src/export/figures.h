/* layer 3b (export): the data of figures: a CSV file for each, and a script with which gnuplot draws it. What they are:
 * figures.def; their columns: rdmatrace-export(1).
 *
 * Each file is written beside its name, and all are renamed at the end. Nothing is computed here that other rooms do
 * not say; nothing is thinned. */
#ifndef RDMATRACE_EXPORT_FIGURES_H
#define RDMATRACE_EXPORT_FIGURES_H

#include "src/account/timeline.h"
#include "src/export/export.h"

struct figures;

/* Begin the files in directory `dir`, which is made if it is not there. `interval`: of the rates, ns. NULL with errno
 * set. */
struct figures *figures_new(const char *dir, ns_t interval);
/* Release it; without figures_end() no file is left. */
void figures_free(struct figures *x);

/* Any frame, before all else that is about it; pause frames are rows. */
void figures_frame(struct figures *x, const struct pkt *p);
/* Any packet, before figures_packet(): PSNs are counted on beyond 2^24. */
void figures_event(struct figures *x, const struct event *e);
/* Flow `flow` is over: another connection has its PSNs from now on. */
void figures_over(struct figures *x, uint32_t flow);
/* The packet of the last event, of flow `f`. */
void figures_packet(struct figures *x, const struct export_packet *e, const struct flow *f);
/* After a request or response `p`: what is outstanding of the requests of flow `f`, of which `h` is the evidence. */
void figures_outstanding(struct figures *x, const struct pkt *p, const struct flow *f, struct req_dir *h);
/* A work request. */
void figures_request(struct figures *x, const struct wqe_row *q);
/* What a row added in the interval that begins at `start`. */
void figures_rate(struct figures *x, const struct meter_row *r, ns_t start, const struct meter_counts *added);
/* After the last packet: the incidents, those of connection `conn` alone unless it is 0; what host sent to which, of
 * all rows of flows. */
void figures_incidents(struct figures *x, struct explainer *e, uint32_t conn);
void figures_hosts(struct figures *x, struct meter_row *const *rows, size_t n);
/* All is written: connections get the numbers that they have in the end, and the files their names. False with errno
 * set: there was an error. */
bool figures_end(struct figures *x, struct conn_table *conns);

#endif
