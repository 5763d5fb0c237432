/* layer 4 (tool): common part of the live subcommands: options, operands, opening, closing, exit status. */
#ifndef RDMATRACE_GEN_CLI_LIVE_RUN_H
#define RDMATRACE_GEN_CLI_LIVE_RUN_H

#include "gen/cli/live_options.h"
#include "gen/live/parts.h"

/* One run of a command that talks to a peer; the first member of the command's own state. Zeroed before the options. */
struct live_run {
    const char *name;          /* of the subcommand */
    struct live_config config; /* filled by LIVE_OPTS and the command */
    struct live live;          /* open during run() */
    const char *host;          /* the peer as given; NULL: not given */
    uint8_t gid[16];           /* GID of `host` */
    bool server;               /* this is the passive side, which is host 1 in events */
    bool quiet;                /* print only errors */
    uint32_t cores;            /* -j: processes that share the interface; 0, 1: this one alone */
    struct parts *parts;       /* with several: what they share; NULL: this process is alone */
    struct backend_part part;  /* with several: which one this process is */
};

/* Cases of struct opt_clash: the side, of a command with `sides`. A command's own cases begin at AS_OWN. */
enum { AS_CLIENT = 1, AS_SERVER = 2, AS_OWN = 4 };

/* Initialise a struct live_cmd with functions that have the names of its members; further members follow. */
#define LIVE_CMD(help_, ...)                                                                                           \
    {                                                                                                                  \
        .size = sizeof(struct job), .defs = defs, .help = help_, .defaults = defaults, .option = option,               \
        .operands = operands, .run = run, __VA_ARGS__                                                                  \
    }

/* A command. `job` is its state. For live_cmd_main() it begins with a struct live_run; with live_cmd_parse() alone it
 * need not. begin, operands, run and stop follow in this order. */
struct live_cmd {
    size_t size;                 /* size of the state in bytes, for live_cmd_main() */
    const struct opt_def *defs;  /* table of its options */
    void (*help)(struct buf *b); /* Append its help. */
    /* it has the options -s, -q and -6, which set live_run.server, live_run.quiet and live_run.config.want6 */
    bool sides;
    /* Set defaults other than zero; NULL: none. For live_cmd_main(). */
    void (*defaults)(void *job);
    /* An option other than LIVE_OPTS and those of `sides`: 0, or the exit status after a message. */
    int (*option)(void *job, int key, const char *arg);
    /* All options were read and none was refused: open files for results. 0, or the exit status after a message. NULL:
     * nothing to do. */
    int (*begin)(void *job);
    /* Called if the exit status is not 0; NULL: nothing to do. For live_cmd_main(). */
    void (*fail)(void *job);
    /* All options were read: read the `n` operands, and check what depends on several options. 0, or the exit status
     * after a message. */
    int (*operands)(void *job, int n, char **argv);
    /* combinations of options that are refused, besides those of LIVE_OPTS; NULL: none */
    const struct opt_clash *clashes;
    /* options of another program, and what does the same here; NULL: none */
    const struct opt_foreign *foreign;
    /* Returns the cases of struct opt_clash that apply, besides AS_CLIENT and AS_SERVER; called when all options were
     * read. NULL: none. */
    unsigned (*cases)(const void *job);
    /* Do the work; run->live is open. Returns the exit status. For live_cmd_main(). */
    int (*run)(void *job);
    /* With several processes (live_run.cores), each runs run(), and has so many bytes of results (parts_result()). */
    size_t part_size;
    /* Before they begin; 0, or the exit status after a message. NULL: nothing to do. */
    int (*share)(void *job);
    /* A signal has ended that of a part; called in the first process, before sum(). NULL: nothing to do. */
    void (*lost)(void *job, unsigned part);
    /* After they ended, with the highest exit status: report all. Returns the exit status. */
    int (*sum)(void *job, int status);
    /* Release the memory of the functions above, whichever of them were called; NULL: nothing to do. For
     * live_cmd_main(). */
    void (*stop)(void *job);
};

/* Read options and operands. -1: continue; else the exit status, after --help or a message. `run`: the struct live_run
 * that `job` begins with, whose config LIVE_OPTS fill; NULL: the command has neither LIVE_OPTS nor `sides`. */
int live_cmd_parse(const struct live_cmd *cmd, struct live_run *run, void *job, int argc, char **argv);
/* Run a command: state, options, open, run(), close. Returns the exit status. */
int live_cmd_main(const struct live_cmd *cmd, int argc, char **argv);

/* -j: the argument, and what it excludes: 0, or the exit status after a message. */
int live_cmd_cores(struct live_run *run, const char *arg);
int live_cmd_cores_check(const struct live_run *run);

/* operands() of a command with `sides`: HOST, or none with -s. `job` begins with a struct live_run. */
int live_cmd_peer(void *job, int n, char **argv);
/* Set the peer to `host`: 0, or the exit status after a message. */
int live_cmd_host(struct live_run *run, const char *host);

#endif
