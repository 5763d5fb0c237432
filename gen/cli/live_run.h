/* layer 4 (tool): the frame of the live subcommands: options, operands, opening, closing, exit status. */
#ifndef RDMATRACE_GEN_CLI_LIVE_RUN_H
#define RDMATRACE_GEN_CLI_LIVE_RUN_H

#include "gen/cli/live_options.h"

/* One run of a command that talks to a peer. The first member of the command's own state, which is otherwise zero. */
struct live_run {
    const char *name; /* of the subcommand */
    struct live_config config;
    struct live live; /* open while run() runs */
    const char *host; /* the peer as named; NULL: none is */
    uint8_t gid[16];  /* the peer's: of `host` if there is one */
    bool server;      /* we are the passive side, and host 1 to events */
    bool quiet;       /* show nothing but errors */
};

/* Bits of struct opt_clash: the side of a command with `sides`. Its own begin at AS_OWN. */
enum { AS_CLIENT = 1, AS_SERVER = 2, AS_OWN = 4 };

/* Names the functions of a command after the members of struct live_cmd; further members follow. */
#define LIVE_CMD(help_, ...)                                                                                           \
    {                                                                                                                  \
        .size = sizeof(struct job), .defs = defs, .help = help_, .defaults = defaults, .option = option,               \
        .operands = operands, .run = run, __VA_ARGS__                                                                  \
    }

/* A command. `job` is its state, which begins with a struct live_run (live_cmd_main()) or not (live_cmd_parse()
 * alone). */
struct live_cmd {
    size_t size; /* bytes of the state, for live_cmd_main() */
    const struct opt_def *defs;
    void (*help)(struct buf *b);
    /* it has -s, -q and -6, and live_cmd takes them: live_run.server, live_run.quiet, live_run.config.want6 */
    bool sides;
    /* Set what is not zero before any option; NULL: nothing. For live_cmd_main(). */
    void (*defaults)(void *job);
    /* An option that is none of LIVE_OPTS nor of `sides`: 0, or the exit status after a message. */
    int (*option)(void *job, int key, const char *arg);
    /* All options are known, and go together; open files for results: 0, or the exit status after a message. NULL:
     * nothing. */
    int (*begin)(void *job);
    /* After begin() the exit status has become other than 0; NULL: nothing. For live_cmd_main(). */
    void (*fail)(void *job);
    /* All options are known: take the `n` operands, check what must go together. 0, or the exit status after a
     * message. */
    int (*operands)(void *job, int n, char **argv);
    const struct opt_clash *clashes; /* options without a meaning, besides those of LIVE_OPTS; NULL: none */
    /* The bits of struct opt_clash that hold once all options are known, besides AS_CLIENT and AS_SERVER; NULL:
     * none. */
    unsigned (*cases)(const void *job);
    /* Do it; everything is open: the exit status. For live_cmd_main(). */
    int (*run)(void *job);
    /* Release what the above made, whichever of them were called; NULL: nothing. For live_cmd_main(). */
    void (*stop)(void *job);
};

/* Options and operands: -1: go on, else the exit status (after --help or a message). `run`: the beginning of `job`,
 * whose config LIVE_OPTS fill; NULL: the command has neither those nor `sides`. */
int live_cmd_parse(const struct live_cmd *cmd, struct live_run *run, void *job, int argc, char **argv);
/* The whole command: state, options, open, run(), close. Returns the exit status. */
int live_cmd_main(const struct live_cmd *cmd, int argc, char **argv);

/* Take the operand of a command with `sides`: HOST, or none with -s. `job` begins with a struct live_run. As
 * operands(). */
int live_cmd_peer(void *job, int n, char **argv);
/* The peer is `host`: 0, or the exit status after a message. */
int live_cmd_host(struct live_run *run, const char *host);

#endif
