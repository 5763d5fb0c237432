/* layer 4 (tool): what the subcommands with perftest-like traffic share. */
#ifndef RDMATRACE_PERF_CLI_H
#define RDMATRACE_PERF_CLI_H

#include "gen/cli/gen_cli.h"
#include "gen/cli/live_options.h"
#include "gen/peers/perf_client.h"

/* The result for people, as perftest prints it, with a row for each queue pair if there are several; and as one JSON
 * object, in which `error` is what went wrong, "" if nothing did. */
void perf_text(struct buf *b, struct perf_client *p);
void perf_json(struct buf *b, struct perf_client *p, const char *error);

int cmd_perf(int argc, char **argv);
void cmd_perf_help(struct buf *b);
int cmd_serve(int argc, char **argv);
void cmd_serve_help(struct buf *b);

#endif
