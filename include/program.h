/* layer 0 (base): what the command line programs share: subcommands, messages, output, exit status. */
#ifndef RDMATRACE_PROGRAM_H
#define RDMATRACE_PROGRAM_H

#include "buf.h"
#include "opt.h"

#define RDMATRACE_VERSION "0.1"

/* Exit status. */
enum {
    EXIT_OK = 0,
    EXIT_FOUND = 1, /* something was found (--fail-on), or did not come about (rdmagen) */
    EXIT_BAD = 2,   /* usage, or input that cannot be read */
};

/* A subcommand: argv[0] is its name. Returns the exit status. */
struct command {
    const char *name;
    const char *summary; /* one line for `PROGRAM help` */
    int (*run)(int argc, char **argv);
    void (*help)(struct buf *b);
};

struct program {
    const char *name;               /* "rdmatrace" */
    const char *usage;              /* first lines of its help */
    const struct command *commands; /* ends with an all-zero row; cli_main() adds "help" */
};

/* A program's main(): dispatch to a subcommand, "help", "--help" or "--version". Returns the exit status. */
int cli_main(const struct program *program, int argc, char **argv);

/* Its name, as in messages. */
const char *cli_program(void);
/* One line on stderr: "PROGRAM: ...". Returns EXIT_BAD. */
int cli_error(const char *fmt, ...) PRINTF_LIKE(1, 2);
/* The last message of cli_error(), without the program's name; "" if there was none. */
const char *cli_said(void);
/* Write a buffer to a descriptor and empty it; false when that failed. */
bool cli_flush(struct buf *b, int fd);
/* Write a buffer to stdout and release it. Returns the exit status. */
int cli_show(struct buf *b);

#endif
