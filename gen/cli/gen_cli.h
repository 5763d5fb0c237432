/* layer 4 (tool): what the subcommands of rdmagen share. */
#ifndef RDMATRACE_GEN_CLI_H
#define RDMATRACE_GEN_CLI_H

#include "program.h"

int cmd_sim(int argc, char **argv);
void cmd_sim_help(struct buf *b);
int cmd_faults(int argc, char **argv);
void cmd_faults_help(struct buf *b);

/* The whole file as a terminated string, appended to `b`. 0 or a negative errno. */
int sim_read_file(const char *path, struct buf *b);

#endif
