/* layer 4 (tool): the frame of the commands that look at whole captures: options, files, the reading loop, output. */
#ifndef RDMATRACE_CLI_CAPTURE_CMD_H
#define RDMATRACE_CLI_CAPTURE_CMD_H

#include "dissect/pkt.h"
#include "opt.h"
#include "src/conn/observer.h"

#include <stdio.h>

#define TRACE_PAIRS 64

/* Rows of the options that all these commands have. */
#define TRACE_OPTIONS                                                                                                  \
    {'r', "read-file", "FILE", "read FILE; the same as naming it as an operand; - is standard input"},                 \
        {TRACE_KEY_PAIR, "pair", "PAIR",                                                                               \
         "two queue pairs that are connected, ADDRESS:QPN,ADDRESS:QPN; may be repeated"},                              \
    {                                                                                                                  \
        TRACE_KEY_UDP_PORT, "udp-port", "PORT", "a further UDP destination port of RoCEv2; may be repeated"            \
    }
/* Two options that a command may have. `what`: its verb for packets that match; `text`: help for --conn. */
#define TRACE_FILTER(what)                                                                                             \
    {                                                                                                                  \
        'Y', "display-filter", "FILTER", what " only packets that match this display filter (rdmatrace-filter(7))"     \
    }
#define TRACE_CONN(text)                                                                                               \
    {                                                                                                                  \
        TRACE_KEY_CONN, "conn", "N", text                                                                              \
    }
/* The end of its table. */
#define TRACE_OPTIONS_END                                                                                              \
    {'h', "help", NULL, "show this help"},                                                                             \
    {                                                                                                                  \
        0, NULL, NULL, NULL                                                                                            \
    }
enum {
    TRACE_KEY_PAIR = 1000,
    TRACE_KEY_UDP_PORT,
    TRACE_KEY_CONN,
};

/* One run of a command: the first member of the command's own state. */
struct trace {
    const char **files; /* as named */
    size_t n_files;
    /* for standard output: call trace_flush() now and then; the rest is written at the end */
    struct buf out;
    FILE *spool;           /* where trace_flush() writes in place of standard output; NULL: standard output */
    uint32_t conn;         /* --conn, 0: none; end() is called only if there is this connection */
    bool answered;         /* by an option (--help): only `out` is written, no file is read */
    bool notes;            /* set by start(): fill pkt.note */
    bool failed;           /* set before end(): a file could not be read to its end; a message follows */
    uint64_t frames;       /* read */
    uint32_t ifaces;       /* set before end(): interfaces of the file that has the most, at least 1 */
    uint32_t *file_ifaces; /* likewise of each file */
    /* hands out the event of each packet that passes -Y; others only teach it. Made before start(), which subscribes.
     * NULL: the command has an order of its own, see trace_cmd.conns. */
    struct observer *observer;
    /* Internal. */
    struct decode_opts decode;
    struct conn_known pairs[TRACE_PAIRS]; /* --pair */
    const char *pair_args[TRACE_PAIRS];   /* as named */
    unsigned n_pairs;
    const char *filter_text; /* -Y */
    struct filter *filter;   /* compiled; NULL: all packets */
    struct context *context; /* with `notes`, or if the filter needs it */
    bool broken;             /* standard output cannot be written */
    bool silent;             /* another pass will report what is wrong with the files */
};

/* A command; `t` is its state. Any of start, packet, drops and stop may be NULL. */
struct trace_cmd {
    const char *name;              /* of the subcommand */
    size_t size;                   /* of its state, which begins as zero, */
    void (*init)(struct trace *t); /* and is changed by this; NULL: not */
    const struct opt_def *defs;
    void (*help)(struct buf *b);
    /* An option that is not one of the above; NULL if there is none. EXIT_OK, or EXIT_BAD after a message. */
    int (*option)(struct trace *t, int key, const char *arg);
    /* All options are known: prepare. EXIT_OK, or EXIT_BAD after a message (then only stop() follows). */
    int (*start)(struct trace *t);
    /* The connections: --pair adds to them, --conn names one. NULL: those of t->observer, which is made only then. */
    struct conn_table *(*conns)(struct trace *t);
    /* Each packet, in the order of time, before t->observer gets it; `match`: it passes -Y. */
    void (*packet)(struct trace *t, struct pkt *p, bool match);
    /* Drops that a file states; after the packets. */
    void (*drops)(struct trace *t, uint16_t file, uint64_t drops);
    /* After the last packet: write to t->out. An exit status; that of reading files that failed comes first. */
    int (*end)(struct trace *t);
    /* Release what start() and option() made. */
    void (*stop)(struct trace *t);
    const struct opt_clash *clashes; /* options without a meaning; NULL: none */
    /* the cases of struct opt_clash that hold, asked once all options are known; NULL: none */
    unsigned (*cases)(struct trace *t);
    /* end() reports evicted flows itself; else a line on standard error does */
    bool tells_forgotten;
    /* t->observer gets all packets, whether they pass -Y or not: the filter selects what is shown, which packet() sees
     */
    bool filter_shows;
};

/* Read files for a command without options, before another pass reads them: only what keeps all from being read is
 * reported. `t`: from trace_new(), to be released by free(). An exit status. */
int trace_first_pass(const struct trace_cmd *cmd, struct trace *t, const char **files, size_t n,
                     const struct decode_opts *decode);
/* The whole command. Returns the exit status. */
int trace_main(const struct trace_cmd *cmd, int argc, char **argv);
/* The state of a command, to be released by free(); NULL without memory. */
struct trace *trace_new(const struct trace_cmd *cmd);

/* The commands whose output `rdmatrace all` joins. */
extern const struct trace_cmd check_cmd, explain_cmd, flows_cmd, ops_cmd;

/* An IPv4 (mapped) or IPv6 address; false if it is neither. */
bool trace_address(const char *text, struct conn_addr *a);
/* Write t->out if it is large. */
void trace_flush(struct trace *t);

#endif
