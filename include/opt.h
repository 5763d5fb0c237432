/* layer 0 (base): command line options: one table parses them (by getopt_long) and prints --help. */
#ifndef RDMATRACE_OPT_H
#define RDMATRACE_OPT_H

#include "buf.h"

/* One option of a command. A table of these ends with an all-zero row. */
struct opt_def {
    /* what opt_next() returns: the letter of the short form, or a number above 255 if there is none */
    int key;
    const char *name; /* long name without dashes; NULL if there is none */
    /* name of the argument for --help; NULL if it takes none; "[=NAME]" (long options only): may be left out */
    const char *arg;
    const char *help; /* what it does; '\n' continues on the next line */
};

/* Where an option has no meaning. A table of these ends with an all-zero row. */
struct opt_clash {
    int key;         /* the option */
    int other;       /* above 0: this other one excludes it; below 0: it needs the one with the key -other */
    unsigned cases;  /* with `other` 0: it is refused in any of these, bits of the command's own */
    const char *why; /* likewise: what to say behind the option's name */
};

struct opt_state {
    const struct opt_def *defs;
    bool *given; /* which of them were */
    int argc;    /* operands are moved behind the options: after the last option argv[optind..argc-1] */
    char **argv;
    char *short_opts; /* for getopt_long; freed by opt_end() */
    void *long_opts;
    int first; /* internal: getopt must be reset */
};

/* Start parsing argv[1..]; argv[0] is the subcommand's name for messages. */
void opt_start(struct opt_state *s, const struct opt_def *defs, int argc, char **argv);
/* The key of the next option, with *arg its argument; 0 after the last, with s->argc - *operand operands from
 * s->argv[*operand]; -1 for a wrong option (a message that names the program was printed to stderr). */
int opt_next(struct opt_state *s, const char **arg, int *operand);
/* The option with this key as messages call it: "-s", or "--seed" when it has no letter. */
#define OPT_NAME 40
const char *opt_name(const struct opt_def *defs, int key, char name[OPT_NAME]);
/* Whether the option with this key was given. */
bool opt_given(const struct opt_state *s, int key);
/* Refuse the first option of `table` (NULL: none) that was given although it has no meaning; `cases` hold. 0, or
 * EXIT_BAD after a message. */
int opt_refuse(const struct opt_state *s, const struct opt_clash *table, unsigned cases);
/* Release what opt_start() allocated. */
void opt_end(struct opt_state *s);
/* Append the list of options, aligned. */
void opt_help(struct buf *b, const struct opt_def *defs);
/* Find `arg`, the argument of `option` ("-T"), among `names`, which end with NULL; *choice: its index, so that an enum
 * with members in the order of the names may stand there. 0, or EXIT_BAD after a message that lists the names. */
int opt_choice(const char *option, const char *arg, const char *const names[], unsigned *choice);
/* Parse an unsigned number (decimal, 0x hexadecimal) between `min` and `max`, all of `text`. */
bool opt_number(const char *text, uint64_t min, uint64_t max, uint64_t *value);

#endif
