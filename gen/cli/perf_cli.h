/* layer 4 (tool): shared by the subcommands with perftest-like traffic. */
#ifndef RDMATRACE_PERF_CLI_H
#define RDMATRACE_PERF_CLI_H

#include "gen/cli/gen_cli.h"
#include "gen/cli/live_options.h"
#include "gen/peers/perf_client.h"

/* Append the result as text, as perftest prints it, with a row for each queue pair if there are several; or as one JSON
 * object, whose `error` is the first error, "" if there was none. */
void perf_text(struct buf *b, struct perf_client *p);
void perf_json(struct buf *b, struct perf_client *p, const char *error);

/* Run a subcommand; argv[0] is its name. Returns the exit status. cmd_*_help() appends its help. */
int cmd_perf(int argc, char **argv);
void cmd_perf_help(struct buf *b);
int cmd_serve(int argc, char **argv);
void cmd_serve_help(struct buf *b);

#endif
