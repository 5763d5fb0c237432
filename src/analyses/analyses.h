/* layer 3b (analyses): judge, explainer and meter together on one observer, for the views that show all they find. */
#ifndef RDMATRACE_ANALYSES_ANALYSES_H
#define RDMATRACE_ANALYSES_ANALYSES_H

#include "src/commands/rows.h"
#include "src/conn/conn.h"
#include "src/explain/explain.h"
#include "src/judge/judge.h"
#include "src/measure/meter.h"
#include "src/measure/request_parts.h"

struct analyses_opts {
    size_t n_files;                 /* of the capture; with several, explain compares their clocks */
    uint64_t memory;                /* bytes of the judge, as in judge_opts */
    bool no_icrc;                   /* ICRCs mean nothing */
    const struct conn_known *pairs; /* connections that the user named (--pair); used by analyses_begin() alone */
    unsigned n_pairs;
    const struct judge_host *hosts; /* with known counters, as in judge_opts; used by analyses_begin() alone */
    unsigned n_hosts;               /* at most JUDGE_HOSTS */
    struct meter_opts meter;
    /* a command of an upper protocol is over; its times in text count from the first packet. NULL: nobody asks */
    void (*command)(void *user, const struct command_row *q);
    void *user; /* of command() */
};

/* Members are set by analyses_begin() and may be used, but not freed. */
struct analyses {
    struct judge *judge;
    struct explainer *explainer;
    struct meter *meter;
    struct request_parts *parts; /* the account of each work request */
    struct ulp *ulp;             /* with analyses_opts.command */
    /* internal */
    struct timeline *timeline;
    void (*command)(void *user, const struct command_row *q);
    void *user;
    ns_t first; /* time of the first packet, valid with `begun` */
    bool begun;
};

/* Begin, on observer `o`, which must outlive *a and gets the packets after analyses_packet(). False without memory;
 * then too analyses_free() is to be called. */
bool analyses_begin(struct analyses *a, struct observer *o, const struct analyses_opts *opts);
/* A packet, before the observer gets it. */
void analyses_packet(struct analyses *a, const struct pkt *p);
/* File `file` states that its capture dropped `n` frames. */
void analyses_drops(struct analyses *a, uint16_t file, uint64_t n);
/* After the last packet: findings, incidents and rows are final. */
void analyses_end(struct analyses *a);
void analyses_free(struct analyses *a);

#endif
