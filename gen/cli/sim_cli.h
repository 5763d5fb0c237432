/* layer 4 (tool): `rdmagen sim`: what its files share. */
#ifndef RDMATRACE_SIM_CLI_H
#define RDMATRACE_SIM_CLI_H

#include "gen/cli/gen_cli.h"
#include "gen/cli/report_file.h"
#include "gen/sim/traffic.h"

#define SIM_FILES_MAX 32 /* captures of a run */

/* A capture file asked for with -w. */
struct sim_file {
    const char *path; /* .pcap: pcap, else pcapng */
    uint8_t place;    /* enum tap_place */
};

/* Options of `rdmagen sim`. */
struct sim_job {
    const char *scenario; /* file of a scenario; NULL: traffic */
    struct traffic_config traffic;
    struct sim_config sim;
    struct tap_opts tap;                     /* of all captures */
    struct sim_file files[SIM_FILES_MAX];    /* captures to write */
    unsigned n_files;                        /* of `files` */
    enum rule faults[NET_HOSTS][FAULTS_MAX]; /* rules that each host breaks */
    unsigned n_faults[NET_HOSTS];            /* of `faults` */
    bool has_psn;                            /* `psn` is given */
    bool verbose;                            /* scenarios: show every packet */
    uint32_t psn;                            /* first PSN of both hosts */
    struct report_file json;                 /* the result as JSON */
    const char *completions;                 /* file for the ledger; NULL: none */
    struct report_file truth;                /* the truth as JSON */
};

/* The options, for opt_start() and opt_help(). */
extern const struct opt_def sim_options[];
/* Take an option other than --help: 0, or the exit status after a message. */
int sim_option(struct sim_job *job, int key, const char *arg);
/* Refuse the first option given that has no meaning for `t` (its op TRAFFIC_OPS: for a scenario): 0, or EXIT_BAD after
 * a message. */
int sim_refuse(const struct opt_state *s, const struct traffic_config *t);

/* Run the traffic; returns the exit status. */
int sim_traffic(struct sim_job *job);
/* Run a scenario file; returns the exit status. */
int sim_scenario(struct sim_job *job);

/* Open the files of -w as taps of `sets`, which job->sim.taps then point to. 0 or the exit status. */
int sim_open_taps(struct sim_job *job, struct tap_set sets[TAP_PLACES]);
/* Close them. 0 or the exit status. */
int sim_close_taps(struct tap_set sets[TAP_PLACES]);

/* The result for people, and as one JSON object. */
void report_text(struct buf *b, const struct sim_job *job, const struct sim *s, const struct traffic_result *r);
void report_json(struct buf *b, const struct sim_job *job, const struct sim *s, const struct traffic_result *r);

#endif
