/* layer 0 (base): command line options: one table parses them (by getopt_long) and prints --help. */
#ifndef RDMATRACE_OPT_H
#define RDMATRACE_OPT_H

#include "buf.h"

/* One option of a command. A table of options ends with an all-zero row. */
struct opt_def {
    /* what opt_next() returns: the letter of the short form, or a number above 255 if there is none */
    int key;
    const char *name; /* long name without dashes; NULL if there is none */
    /* name of the argument for --help; "[=NAME]": the argument is optional (long options only); NULL: no argument */
    const char *arg;
    const char *help; /* what the option does; '\n' starts another line of --help */
};

/* An option that another option or the command's mode makes meaningless. The table ends with an all-zero row. */
struct opt_clash {
    int key;         /* opt_def.key of the option */
    int other;       /* above 0: key of the option that excludes it; below 0: it needs the option with key -other */
    unsigned cases;  /* with `other` 0: bits that the command defines; the option is refused if any of them holds */
    const char *why; /* with `other` 0: the message after the option's name */
};

/* An option of another program, or command, that users know and that is refused here; the table ends with an all-zero
 * row. */
struct opt_foreign {
    char letter;         /* 0: it has none that is refused */
    const char *name;    /* its long name without dashes; NULL: none that is refused */
    const char *of;      /* the program; if `name` is NULL, what the letter means there may follow */
    const char *instead; /* what does the same here, for the message */
    const char *was;     /* long name that had this letter in the last release; NULL: none */
};

/* An option whose long name has changed: the old one works for one release, with a remark. The table ends with an
 * all-zero row. */
struct opt_renamed {
    const char *old, *now; /* long names without dashes */
};

struct opt_state {
    const struct opt_def *defs;
    bool *given; /* by row of `defs`: the option was given */
    int argc;    /* entries of argv; getopt_long() moves the operands to its end */
    char **argv;
    char *short_opts; /* for getopt_long; freed by opt_end() */
    void *long_opts;
    const struct opt_foreign *foreign; /* may be set after opt_start(); NULL: none */
    int first;                         /* internal: getopt_long() has not been reset yet */
};

/* Start to parse argv[1..argc-1]; argv[0] is the name of the subcommand, for messages. */
void opt_start(struct opt_state *s, const struct opt_def *defs, int argc, char **argv);
/* The key of the next option; *arg is its argument (NULL: none). 0 after the last option: the operands are
 * s->argv[*operand] to s->argv[s->argc - 1]. -1 for a wrong option: a message was printed to stderr. */
int opt_next(struct opt_state *s, const char **arg, int *operand);
/* Name of the option with this key for messages: "-s", or "--seed" for an option without a letter. Returns `name`. */
#define OPT_NAME 40
const char *opt_name(const struct opt_def *defs, int key, char name[OPT_NAME]);
/* True if the option with this key was given. */
bool opt_given(const struct opt_state *s, int key);
/* The same by its long name, which need not be in the table. */
bool opt_named_given(const struct opt_state *s, const char *name);
/* Check the given options against `table` (NULL: no check); `cases`: the bits of opt_clash.cases that hold. 0, or
 * EXIT_BAD after a message about the first option that clashes. */
int opt_refuse(const struct opt_state *s, const struct opt_clash *table, unsigned cases);
/* Release what opt_start() allocated. */
void opt_end(struct opt_state *s);
/* Append the list of options for --help, in aligned columns. */
void opt_help(struct buf *b, const struct opt_def *defs);
/* Find `arg`, the argument of `option` ("-T"), in `names` (ends with NULL) and store its index in *choice; an enum
 * whose members are in the order of the names can be read from it. 0, or EXIT_BAD after a message with the names. */
int opt_choice(const char *option, const char *arg, const char *const names[], unsigned *choice);
/* Parse `text` as an unsigned number (decimal, or hexadecimal after 0x) from `min` to `max`. False if any character of
 * it does not belong to the number. */
bool opt_number(const char *text, uint64_t min, uint64_t max, uint64_t *value);

#endif
