/* layer 3b (export): what the analyses found, as a trace for Perfetto (ui.perfetto.dev): hosts as processes, and for
 * each direction of a connection tracks with its requests, its events, its lost time, its rate and what is outstanding.
 *
 * A trace is a sequence of TracePackets, which hold TrackDescriptors and TrackEvents, as the .proto files of Perfetto
 * define them. Times are ns since 1970, so that traces of the same time, of other programs, can be laid over it. */
#ifndef RDMATRACE_EXPORT_PERFETTO_H
#define RDMATRACE_EXPORT_PERFETTO_H

#include "src/export/export.h"

struct perfetto;

/* Begin the trace at `path`; `files`: names of the captures, which must outlive it; `interval`: of rates, ns. NULL with
 * errno set. */
struct perfetto *perfetto_new(const char *path, const char *const *files, ns_t interval);
/* Whether `path` is a file that this program has written: a capture it may only seem to be. */
bool perfetto_is_trace(const char *path);
/* Release it; without perfetto_end() no file is left. */
void perfetto_free(struct perfetto *x);

/* A packet of flow `f`. */
void perfetto_packet(struct perfetto *x, const struct export_packet *e, const struct flow *f);
/* After a request or response, at `at`: what is outstanding of the requests of flow `f`, of which `h` is the evidence.
 */
void perfetto_outstanding(struct perfetto *x, const struct flow *f, const struct req_dir *h, ns_t at);
/* A work request, and the response that completes it. Those of a direction come in the order of their beginnings. */
void perfetto_request(struct perfetto *x, const struct wqe_row *q);
/* A packet of the capture: a pause frame begins, holds up or ends the pauses of the classes that it names. */
void perfetto_pause(struct perfetto *x, const struct pkt *p);
/* What a row added in the interval that begins at `start`. */
void perfetto_rate(struct perfetto *x, const struct meter_row *r, ns_t start, const struct meter_counts *added);
/* After the last packet: the time that incidents cost; the findings. Those of connection `conn`; 0: all. */
void perfetto_incidents(struct perfetto *x, struct explainer *e, uint32_t conn);
void perfetto_findings(struct perfetto *x, const struct findings *r, uint32_t conn);
/* All is written: the file gets its name. False with errno set: there was an error. */
bool perfetto_end(struct perfetto *x);

#endif
