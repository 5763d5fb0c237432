/* layer 4 (tool): functions shared by the subcommands of rdmatrace. */
#ifndef RDMATRACE_CLI_H
#define RDMATRACE_CLI_H

#include "program.h"
#include "src/cap/cap.h"
#include "src/ulp/ulp.h"

/* Run a subcommand; argv[0] is its name. Returns the exit status. cmd_*_help() appends its help. */
int cmd_all(int argc, char **argv);
void cmd_all_help(struct buf *b);
int cmd_decode(int argc, char **argv);
void cmd_decode_help(struct buf *b);
int cmd_check(int argc, char **argv);
void cmd_check_help(struct buf *b);
int cmd_diff(int argc, char **argv);
void cmd_diff_help(struct buf *b);
int cmd_explain(int argc, char **argv);
void cmd_explain_help(struct buf *b);
int cmd_export(int argc, char **argv);
void cmd_export_help(struct buf *b);
int cmd_extract(int argc, char **argv);
void cmd_extract_help(struct buf *b);
int cmd_flows(int argc, char **argv);
void cmd_flows_help(struct buf *b);
int cmd_ops(int argc, char **argv);
void cmd_ops_help(struct buf *b);
int cmd_ladder(int argc, char **argv);
void cmd_ladder_help(struct buf *b);
int cmd_top(int argc, char **argv);
void cmd_top_help(struct buf *b);
int cmd_merge(int argc, char **argv);
void cmd_merge_help(struct buf *b);
int cmd_reduce(int argc, char **argv);
void cmd_reduce_help(struct buf *b);
/* The commands that read what a scan has kept, and what they are for, in the order of the help. */
#define MERGED_COMMANDS(X)                                                                                             \
    X("check", cmd_check, "judge captures by the rules of the transport"),                                             \
        X("flows", cmd_flows, "measure connections: throughput, latencies, recovery"),                                 \
        X("ops", cmd_ops, "show the work requests behind the packets"),                                                \
        X("explain", cmd_explain, "say what went wrong, in plain words")
/* Whether a command can be shared out into so many parts. */
bool reduce_can(const char *name, unsigned parts);
/* Whether each of these parts reads all digests. */
bool reduce_reads_all(const char *name);
/* Do part k of `parts` of it, if the command can be shared out, and the part is not there; merge_run() uses all.
 * *followed: packets that it followed. */
int reduce_run(const char *name, char *const *options, size_t n, const char *run, unsigned k, unsigned parts,
               uint64_t *followed);
/* Run the command `name` with `n` options on the files of the run; its exit status. */
int merge_run(const char *name, char *const *options, size_t n, const char *run);
/* Whether it takes these options: EXIT_OK, or EXIT_BAD after a message. *answered: one of them, such as --help, was
 * answered. */
int merge_options(const char *name, char *const *options, size_t n, bool *answered);
int cmd_report(int argc, char **argv);
void cmd_report_help(struct buf *b);
int cmd_rules(int argc, char **argv);
void cmd_rules_help(struct buf *b);
int cmd_scan(int argc, char **argv);
void cmd_scan_help(struct buf *b);
int cmd_tui(int argc, char **argv);
void cmd_tui_help(struct buf *b);

/* Print the error of a capture file's reader or writer in one line on stderr. Returns EXIT_BAD. */
int cli_cap_error(const struct cap_error *e);
/* Compile a display filter (-Y) into *f. EXIT_BAD after a message with a caret below the error; then *f is NULL. */
struct filter;
int cli_filter(struct filter **f, const char *text);

/* --conn: its help, and its argument: into *conn the number of a connection. EXIT_OK, or EXIT_BAD after a message. */
#define CONN_HELP "only connection N; its number is the same in every command: `rdmatrace flows` lists them"
int cli_conn_option(const char *arg, uint32_t *conn);
/* The message that there is no connection `conn`. Returns EXIT_BAD. */
int cli_no_conn(uint32_t conn);

/* -j: its help, and its argument: into *cores a number of threads. EXIT_OK, or EXIT_BAD after a message. */
#define CORES_HELP                                                                                                     \
    "read and dissect with N threads, 1 to 256 (one for each processor; at most 4 where connections\n"                 \
    "are followed by one at a time); what is printed does not depend on it"
int cli_cores_option(const char *arg, unsigned *cores);

/* Row of the option --color, which commands with coloured text have, and its argument: into *color whether to colour.
 * EXIT_OK, or EXIT_BAD after a message. */
#define KEY_COLOR 2000
#define COLOR_OPTION                                                                                                   \
    {                                                                                                                  \
        KEY_COLOR, "color", "WHEN", "auto (default: on a terminal unless NO_COLOR is set), always or never"            \
    }
int cli_color(const char *when, bool *color);

/* Read `--counters ADDRESS=FILE` or `ADDRESS=BEFORE,AFTER`, files with the counters of an adapter, into *o. EXIT_OK, or
 * EXIT_BAD after a message. */
struct judge_opts;
int counters_option(struct judge_opts *o, const char *arg);
/* What the judge says of the counters of `n_hosts` hosts: paragraphs, or a member of JSON behind a comma. */
struct judge;
void counters_text(const struct judge *j, unsigned n_hosts, struct buf *b);
void counters_json(const struct judge *j, unsigned n_hosts, struct buf *b);

/* A limit of -a or -b: what it is called, such as "packets:", its largest number, and where that goes. */
struct limit {
    const char *what;
    uint64_t max, *to;
};
/* Parse "packets:N": true if it is one of the limits. */
bool limit_take(const struct limit *limits, unsigned n, const char *arg);

/* The interfaces of a live capture: -i. */
#define CLI_IFACES 16
struct cli_ifaces {
    const char *names[CLI_IFACES]; /* as given */
    unsigned n;                    /* of `names` */
    char all[1200];                /* all of them, separated by commas: the name of the capture */
};
/* Add the argument of -i. EXIT_OK, or EXIT_BAD after a message. */
int cli_iface_option(struct cli_ifaces *i, const char *arg);

/* When a live capture ends (-a); 0: no such limit. */
struct cli_stop {
    uint64_t seconds, packets;
    uint64_t kilobytes; /* of the file that is written; 1000 bytes each, as tshark has them */
    uint64_t files;     /* of -b */
};
/* Parse the argument of -a, "duration:SECONDS", "packets:N", "filesize:KB" or "files:N". EXIT_OK, or EXIT_BAD after a
 * message. */
int cli_stop_option(const char *arg, struct cli_stop *stop);
/* Capture live from the interfaces, until SIGINT, SIGTERM or stop->seconds are over: *in delivers the frames of *live.
 * EXIT_OK, or EXIT_BAD after a message. */
struct cap_live_opts;
struct cap_merge;
int cli_live_open(const struct cli_ifaces *ifaces, const struct cap_live_opts *o, const struct cli_stop *stop,
                  struct cap **live, struct cap_merge **in);
/* Before files are read: if one of them is a pipe, SIGINT and SIGTERM no longer end the program but the pipe, so that
 * what came through it is reported; a second one ends the program. */
void cli_pipe_open(const char *const *files, size_t n);
/* For cap_opts.idle: whether to wait longer for a pipe. After the signal its writer, which may have got the signal too,
 * has a second to send the rest. */
bool cli_pipe_waits(void);
/* cap_opts.idle_ms with it; and of a command that takes keys meanwhile, below what a user notices. */
#define CLI_PIPE_MS 100
#define CLI_KEYS_MS 10
/* Report the kernel's counters of a live capture on standard error, with a warning if it dropped frames. `buffer`: its
 * size in bytes. */
void cli_live_report(struct cap *live, uint32_t buffer);
/* Bytes of the kernel's buffer unless -B says otherwise. */
#define CLI_LIVE_BUFFER (UINT32_C(16) << 20)

/* Where somebody waits at a terminal: say on standard error that the file `path` is written, and how large it is. */
void cli_written(const char *path);

/* Append a line that says which files could not be read to their ends, and why; nothing if `why` is NULL. */
void cli_unread(const char *why, struct buf *b);

/* Whether the locale's characters are UTF-8. */
bool cli_utf8(void);

/* Size of the terminal on standard output, else the columns of the environment variable COLUMNS. 0: not known. */
struct terminal {
    unsigned columns, rows;
};
struct terminal terminal_size(void);

#define ULP_HELP                                                                                                       \
    "ADDRESS:QPN=PROTOCOL: what the connections of this queue pair carry, such as 10.0.0.2:0x15=nvme;\n"               \
    "ADDRESS:PORT=PROTOCOL, PORT=PROTOCOL: those to this port of RDMA-CM, or of TCP (iWARP), such as 5000=nvme;\n"     \
    "else CM tells, or the first bytes of messages; may be repeated"

/* Parse an argument of --ulp. EXIT_OK, or EXIT_BAD after a message. */
int ulp_option(struct ulp_users *u, const char *arg);

#endif
