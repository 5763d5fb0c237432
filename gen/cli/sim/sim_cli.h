/* layer 4 (tool): `rdmagen sim`: shared by its files. */
#ifndef RDMATRACE_SIM_CLI_H
#define RDMATRACE_SIM_CLI_H

#include "gen/cli/gen_cli.h"
#include "gen/cli/report_file.h"
#include "gen/cli/specs.h"
#include "gen/sim/traffic.h"
#include "gen/storage/storage.h"
#include "gen/workload/workload.h"

struct truth;

#define SIM_FILES_MAX 256 /* options -w, at most */

/* An output capture of -w. */
struct sim_file {
    const char *path; /* .pcap: pcap, else pcapng */
    uint8_t place;    /* enum tap_place */
    const char *port; /* what stands before the colon, `port_len` bytes: with --topology a port; NULL: nothing */
    size_t port_len;
};

#define SIM_LINES_MAX 64 /* options --fabric, at most */

/* Options of `rdmagen sim`. */
struct sim_job {
    const char *scenario; /* path of a scenario file; NULL: traffic */
    struct traffic_config traffic;
    struct sim_conn_config conn; /* of all its connections */
    struct ledger *ledger;       /* of `completions`; NULL: none */
    struct sim_config sim;
    struct tap_opts tap;                     /* options of all captures */
    struct sim_file files[SIM_FILES_MAX];    /* captures to write */
    unsigned n_files;                        /* of `files` */
    enum rule faults[NET_HOSTS][FAULTS_MAX]; /* rules that each host breaks */
    unsigned n_faults[NET_HOSTS];            /* of `faults` */
    struct specs_cc cc;                      /* congestion control of both hosts */
    uint32_t hosts;                          /* addresses of the first host; 0: its usual one */
    bool ipv6;                               /* IPv6 addresses */
    bool has_psn;                            /* `psn` was given */
    bool verbose;                            /* scenarios: show every packet */
    uint32_t psn;                            /* starting PSN of both hosts */
    struct report_file json;                 /* the result as JSON */
    const char *completions;                 /* path of the ledger; NULL: none */
    struct report_file truth;                /* the truth as JSON */
    const char *topology;                    /* what --topology says; NULL: two hosts and a path */
    const char *lines[SIM_LINES_MAX];        /* of --fabric */
    unsigned n_lines;                        /* of `lines` */
    const struct storage_kind *storage;      /* what storage protocol is played; NULL: none */
    const char *workload;                    /* what --workload says; NULL: traffic, or a scenario */
    const char *stats;                       /* path of the figures over time, or NULL */
    const char *fct, *pfc;                   /* paths of fct.txt and pfc.txt, or NULL */
    const char *summary;                     /* path of the summary, or NULL */
    ns_t stats_every;                        /* time between two rows */
    bool iters_given;                        /* -n was given */
};

/* Table of the options, for opt_start() and opt_help(). */
extern const struct opt_def sim_options[];
/* Read an option other than --help: 0, or the exit status after a message. */
int sim_option(struct sim_job *job, int key, const char *arg);
/* Once all options are read: the places and ports of the captures. 0, or EXIT_BAD after a message. */
int sim_settle_files(struct sim_job *job);

/* Run the traffic; returns the exit status. */
int sim_traffic(struct sim_job *job);
/* Run a workload in a fabric; returns the exit status. */
int sim_workload(struct sim_job *job);
/* Run a storage protocol, job->storage; returns the exit status. */
int sim_storage(struct sim_job *job);
/* Check its options: 0, or EXIT_BAD after a message. */
int sim_storage_settle(const struct sim_job *job, const struct opt_state *s);
/* Run a scenario file; returns the exit status. */
int sim_scenario(struct sim_job *job);

/* Open the captures of -w as taps in `sets`, and set job->sim.taps to them. 0 or the exit status. */
int sim_open_taps(struct sim_job *job, struct tap_set sets[TAP_PLACES]);
/* Say what went wrong with a capture: EXIT_BAD. */
int sim_cap_failed(const struct cap_error *e);
/* Print the results: to standard output, or to standard error if a capture is written there. Frees `b`. 0 or the exit
 * status. */
int sim_show(const struct sim_job *job, struct buf *b);
/* Close the captures. 0 or the exit status. */
int sim_close_taps(struct tap_set sets[TAP_PLACES]);
/* Write the truth to the file of --truth. 0, or the exit status after a message. */
int sim_write_truth(struct sim_job *job, struct truth *t);

/* Append the result as text, or as one JSON object. */
void report_text(struct buf *b, const struct sim_job *job, const struct sim *s, struct traffic *t);
void report_json(struct buf *b, const struct sim_job *job, const struct sim *s, struct traffic *t);

#endif
