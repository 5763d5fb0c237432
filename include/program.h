/* layer 0 (base): what the command line programs share: subcommands, messages, output, exit status. */
#ifndef RDMATRACE_PROGRAM_H
#define RDMATRACE_PROGRAM_H

#include "buf.h"
#include "opt.h"

#define RDMATRACE_VERSION "0.1"

/* Exit status. */
enum {
    EXIT_OK = 0,
    EXIT_FOUND = 1, /* a finding that fails the run (--fail-on); rdmagen: the run failed */
    EXIT_BAD = 2,   /* wrong usage, or input that cannot be read */
};

/* A subcommand. run() gets the subcommand's name in argv[0] and returns the exit status. */
struct command {
    const char *name;
    const char *summary; /* one line for `PROGRAM help` */
    int (*run)(int argc, char **argv);
    void (*help)(struct buf *b);
};

struct program {
    const char *name;                  /* "rdmatrace" */
    const char *usage;                 /* first lines of its --help */
    const char *for_file;              /* the command to propose where a file is named in place of one; NULL: none */
    const struct command *commands;    /* ends with an all-zero row; cli_main() adds "help" */
    const struct opt_renamed *renamed; /* old names of options, for the commands that have the new one; NULL: none */
};

/* A program's main(): dispatch to a subcommand, "help", "--help" or "--version". Returns the exit status. */
int cli_main(const struct program *program, int argc, char **argv);

/* Name of the program that cli_main() runs, for messages. */
const char *cli_program(void);
/* Old names of the program's options; NULL: none. */
const struct opt_renamed *cli_renamed(void);
/* Print one line to stderr: "PROGRAM: ...". Returns EXIT_BAD. */
int cli_error(const char *fmt, ...) PRINTF_LIKE(1, 2);
/* The last message of cli_error(), without the program's name; "" if there is none. */
const char *cli_said(void);
/* Write a buffer to file descriptor `fd` and empty it; false if the write failed. */
bool cli_flush(struct buf *b, int fd);
/* Likewise, but what is written to a terminal is folded so that its lines fit: by words, and nothing is cut. Whole
 * lines only. Not if the program was asked for a format that is for other programs (-T json). */
bool cli_text(struct buf *b, int fd);
/* The options ask for such a format. */
void cli_for_programs(void);
/* Write a buffer to stdout as cli_text() does, and release it. Returns the exit status. */
int cli_show(struct buf *b);

#endif
