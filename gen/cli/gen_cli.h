/* layer 4 (tool): functions shared by the subcommands of rdmagen. */
#ifndef RDMATRACE_GEN_CLI_H
#define RDMATRACE_GEN_CLI_H

#include "program.h"

/* Run a subcommand; argv[0] is its name. Returns the exit status. cmd_*_help() appends its help. More of them are in
 * live_options.h and perf_cli.h. */
int cmd_sim(int argc, char **argv);
void cmd_sim_help(struct buf *b);
int cmd_faults(int argc, char **argv);
void cmd_faults_help(struct buf *b);

/* Append the whole file to `b`, terminated by NUL. 0 or a negative errno. */
int sim_read_file(const char *path, struct buf *b);

#endif
