/* layer 4 (tool): what the subcommands of rdmagen share. */
#ifndef RDMATRACE_GEN_CLI_H
#define RDMATRACE_GEN_CLI_H

#include "program.h"
#include "gen/traffic.h"

int cmd_sim(int argc, char **argv);
void cmd_sim_help(struct buf *b);
int cmd_faults(int argc, char **argv);
void cmd_faults_help(struct buf *b);

#define SIM_FILES_MAX 32

/* A capture file asked for with -w. */
struct sim_file {
    const char *path;
    uint8_t place; /* enum tap_place */
};

/* What `rdmagen sim` was asked to do. */
struct sim_job {
    const char *scenario; /* file of a scenario; NULL: traffic */
    struct traffic_config traffic;
    struct sim_config sim;
    struct tap_opts tap;
    struct sim_file files[SIM_FILES_MAX];
    unsigned n_files;
    enum rule faults[NET_HOSTS][FAULTS_MAX];
    unsigned n_faults[NET_HOSTS];
    bool has_psn;
    bool verbose;         /* scenarios: show every packet */
    uint32_t psn;         /* first PSN of both hosts */
    bool json;
    const char *json_file; /* NULL: standard output */
    const char *completions; /* file for the ledger; NULL: none */
};

/* Run the traffic; returns the exit status. */
int sim_traffic(struct sim_job *job);
/* Run a scenario file; returns the exit status. */
int sim_scenario(struct sim_job *job);

/* The whole file as a terminated string, appended to `b`. 0 or a negative errno. */
int sim_read_file(const char *path, struct buf *b);

/* Open the files of -w as taps of `sets`, which job->sim.taps then point to. 0 or the exit status. */
int sim_open_taps(struct sim_job *job, struct tap_set sets[TAP_PLACES]);
/* Close them. 0 or the exit status. */
int sim_close_taps(struct tap_set sets[TAP_PLACES]);

/* The result for people, and as one JSON object. */
void report_text(struct buf *b, const struct sim_job *job, const struct sim *s, const struct traffic_result *r);
void report_json(struct buf *b, const struct sim_job *job, const struct sim *s, const struct traffic_result *r);
/* Write `b` to a file, NULL: standard output. 0 or the exit status. */
int report_write(const char *file, struct buf *b);

#endif
