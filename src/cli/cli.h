/* layer 4 (tool): what the subcommands of rdmatrace share. */
#ifndef RDMATRACE_CLI_H
#define RDMATRACE_CLI_H

#include "buf.h"
#include "opt.h"
#include "src/cap/cap.h"

#define RDMATRACE_VERSION "0.1"

/* Exit status. */
enum {
    EXIT_OK = 0,
    EXIT_FOUND = 1, /* what --fail-on asks about was found */
    EXIT_BAD = 2,   /* usage, or input that cannot be read */
};

/* A subcommand: argv[0] is "rdmatrace NAME". Returns the exit status. */
struct command {
    const char *name;
    const char *summary; /* one line for `rdmatrace help` */
    int (*run)(int argc, char **argv);
    void (*help)(struct buf *b);
};
extern const struct command commands[];

int cmd_decode(int argc, char **argv);
void cmd_decode_help(struct buf *b);
int cmd_check(int argc, char **argv);
void cmd_check_help(struct buf *b);
int cmd_rules(int argc, char **argv);
void cmd_rules_help(struct buf *b);
int cmd_help(int argc, char **argv);
void cmd_help_help(struct buf *b);

/* One line on stderr: "rdmatrace: ...". Returns EXIT_BAD. */
int cli_error(const char *fmt, ...) PRINTF_LIKE(1, 2);
/* The same for what a capture file's reader or writer said. */
int cli_cap_error(const struct cap_error *e);
/* Write a buffer to a descriptor and empty it; false when that failed. */
bool cli_flush(struct buf *b, int fd);
/* Write a buffer to stdout and release it. Returns the exit status. */
int cli_show(struct buf *b);

#endif
