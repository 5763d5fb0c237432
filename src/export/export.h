/* layer 3b (export): what the analyses found, as tables of a database: packets, flows, work requests, findings,
 * incidents, and where the time went. The tables and their columns: rdmatrace-export(1).
 *
 * The tables hold what check, explain, flows and ops say; nothing is computed here. Columns of flows and work requests
 * have the names of -T csv; times are ns since 1970, and the names of their columns end with _ns. */
#ifndef RDMATRACE_EXPORT_EXPORT_H
#define RDMATRACE_EXPORT_EXPORT_H

#include "src/cap/merge.h"
#include "src/commands/rows.h"
#include "src/conn/observer.h"
#include "src/explain/explain.h"
#include "src/findings/findings.h"
#include "src/judge/judge.h"
#include "src/measure/wqe_print.h"
#include "src/taps/taps.h"

#define EXPORT_VERSION  "5"       /* of the tables: PRAGMA user_version */
#define EXPORT_INTERVAL NS_PER_MS /* of rates, unless another is asked for */

/* Bits per second of `bytes` in `interval` ns. */
static inline uint64_t rate_bps(uint64_t bytes, ns_t interval)
{
    return (uint64_t)((double)bytes * 8 * NS_PER_S / (double)interval);
}

struct export;

/* A packet with a BTH. */
struct export_packet {
    const struct pkt *p;
    uint32_t conn;    /* number of its connection; 0: none */
    uint64_t request; /* number of the work request that it belongs to; 0: none */
    uint8_t kind;     /* enum event_kind */
    uint8_t as;       /* EVENT_REQUEST: enum seen_as */
};

/* What a packet is to its connection: "request", "response" or "cnp"; NULL: nothing. */
const char *export_kind_str(const struct export_packet *e);
/* What was seen of a request before, in the words of the columns of flows; NULL: nothing of it, nor is it known. */
const char *export_seen_str(const struct export_packet *e);
/* What a packet tells of trouble or congestion: "retransmission", "NAK", "RNR NAK", "CNP" or "CE"; NULL: nothing. */
const char *export_event_str(const struct export_packet *e);
/* Whether it is worth a look: it tells of trouble, is not the next request in sequence, or has a wrong ICRC. */
bool export_is_flagged(const struct export_packet *e);

/* Begin the database at `path`. `files`: names of the captures, `n` of them, which must outlive it; `threads`: as in
 * store_new(). NULL without memory; any other error is that of export_error(). */
struct export *export_new(const char *path, const char *const *files, size_t n, unsigned threads);
/* Release it; without export_end() no file is left. */
void export_free(struct export *x);
/* The first error, a line of text without line end; NULL: none. After an error all other calls do nothing. */
const char *export_error(const struct export *x);

/* Rows, each where its analysis has it. */
void export_packet(struct export *x, const struct export_packet *e);
/* A command of an upper protocol that is over. */
void export_command(struct export *x, const struct command_row *q);
/* `states` adds up to its time; NULL: not known. */
void export_request(struct export *x, const struct wqe_row *q, const ns_t states[TIME_STATES]);
void export_flow(struct export *x, const struct meter_row *r);
/* What an interval that begins at `begin` (ns since 1970) added to a flow. */
void export_interval(struct export *x, const struct meter_row *r, ns_t begin, const struct meter_counts *added);
/* Any packet of the captures: its tap saw it; of a pause frame there is a row for each class that it names. */
void export_frame(struct export *x, const struct pkt *p);
/* After the last packet: the taps. `clocks`, `in`: as in tap_rows_end(). */
void export_taps(struct export *x, const struct taps *clocks, const struct cap_merge *in);
/* After judge_end(): the counters of a host beside what the captures show. */
void export_counters(struct export *x, const struct judge_host *h);
/* Those of connection `conn`; 0: all. */
void export_findings(struct export *x, const struct findings *r, uint32_t conn);
void export_incidents(struct export *x, struct explainer *e, uint32_t conn);
/* Two directions turned out to be one connection after rows with `number` were written: it is `now`. */
void export_renumber(struct export *x, uint32_t number, uint32_t now);
/* What was asked for, and what must be known of the tables: a row of meta. `key` stands there once. Before
 * export_end(). */
void export_meta(struct export *x, const char *key, const char *value);
/* All is written: the file gets its name. False after any error. */
bool export_end(struct export *x);

#endif
