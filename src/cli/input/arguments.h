/* layer 4 (tool): options and operands that all commands have which read whole captures. */
#ifndef RDMATRACE_CLI_INPUT_ARGUMENTS_H
#define RDMATRACE_CLI_INPUT_ARGUMENTS_H

#include "src/cli/capture_cmd.h"

/* Take the arguments of the command into `t`; its own options go to cmd->option(). 0, also if an option such as --help
 * was answered (t->answered), or EXIT_BAD after a message. */
int capture_arguments(const struct trace_cmd *cmd, struct trace *t, int argc, char **argv);
/* Whether the arguments, which name no file, are right: 0, or EXIT_BAD after a message. *answered: one of them, such as
 * --help, was answered. */
int capture_options(const struct trace_cmd *cmd, int argc, char **argv, bool *answered);

#endif
