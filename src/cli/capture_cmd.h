/* layer 4 (tool): common part of the commands that read whole captures: options, files, the reading loop, output. */
#ifndef RDMATRACE_CLI_CAPTURE_CMD_H
#define RDMATRACE_CLI_CAPTURE_CMD_H

#include "dissect/decode_opts.h"
#include "dissect/frame_fields.h"
#include "json_lines.h"
#include "opt.h"
#include "src/analyses/analyses.h"
#include "src/cli/cli.h"
#include "src/cli/input/first_frames.h"
#include "src/cli/runs/parts.h"
#include "src/cli/runs/shards.h"
#include "src/conn/observer.h"
#include "src/show/marks.h"
#include "src/show/streams.h"
#include "src/ulp/ulp.h"

#include <stdio.h>

/* Options --pair, at most. */
#define TRACE_PAIRS 64

/* Option rows that all these commands have. */
#define TRACE_OPTIONS                                                                                                  \
    TRACE_OPTION_READ,                                                                                                 \
        {'i', "interface", "IFACE",                                                                                    \
         "capture live from IFACE, in place of a file, until it is interrupted; may be repeated"},                     \
        {'a', "autostop", "WHEN", "with -i: stop after duration:SECONDS or packets:N"}, TRACE_OPTIONS_CHOICE
/* The same for commands that read nothing but files. */
#define TRACE_OPTIONS_FILES TRACE_OPTION_READ, TRACE_OPTIONS_CHOICE
#define TRACE_OPTION_READ                                                                                              \
    {                                                                                                                  \
        'r', "read-file", "FILE", "read FILE; the same as naming it as an operand; - is standard input"                \
    }
#define TRACE_OPTIONS_CHOICE                                                                                           \
    {TRACE_KEY_CONN, "conn", "N", CONN_HELP},                                                                          \
        {TRACE_KEY_PAIR, "pair", "PAIR",                                                                               \
         "two queue pairs that are connected, ADDRESS:QPN,ADDRESS:QPN; may be repeated"},                              \
        {TRACE_KEY_UDP_PORT, "udp-port", "PORT", "a further UDP destination port of RoCEv2; may be repeated"},         \
        {TRACE_KEY_JOIN, "join", "IFACES",                                                                             \
         "IFACE,IFACE: they have one direction each, or are members of a LAG, and count as one; with\n"                \
         "FILE:IFACE,FILE:IFACE those of files; \"all\" joins all of all files; may be repeated"},                     \
        {TRACE_KEY_MEMORY, "memory", "SIZE",                                                                           \
         "memory for connections and what is known of them (1G); beyond, those unused for longest are\n"               \
         "forgotten"},                                                                                                 \
    {                                                                                                                  \
        TRACE_KEY_NO_ICRC, "no-icrc", NULL, "take packets whatever their ICRC is: captured before it was inserted"     \
    }
/* Row of an option that a command may have. `what`: its verb for packets that match. */
#define TRACE_FILTER(what)                                                                                             \
    {                                                                                                                  \
        'Y', "display-filter", "FILTER", what " only packets that match this display filter (rdmatrace-filter(7))"     \
    }
/* Row of an option that a command may have. */
#define TRACE_CORES                                                                                                    \
    {                                                                                                                  \
        'j', "cores", "N", CORES_HELP                                                                                  \
    }
/* Row of an option that a command may have. */
#define TRACE_ANONYMIZE                                                                                                \
    {                                                                                                                  \
        TRACE_KEY_ANONYMIZE, "anonymize", "[=KEY]",                                                                    \
            "replace addresses and names, alike with the same KEY, and the payload by zeros"                           \
    }
/* The last rows of a command's table. */
#define TRACE_OPTIONS_END                                                                                              \
    {'h', "help", NULL, "show this help"},                                                                             \
    {                                                                                                                  \
        0, NULL, NULL, NULL                                                                                            \
    }
enum {
    TRACE_KEY_PAIR = 1000,
    TRACE_KEY_UDP_PORT,
    TRACE_KEY_CONN,
    TRACE_KEY_NO_ICRC,
    TRACE_KEY_JOIN,
    TRACE_KEY_MEMORY,
    TRACE_KEY_ANONYMIZE,
};

/* One run of a command; the first member of the command's own state. */
struct trace {
    const char **files;             /* paths, as given */
    const char **paths;             /* what is read of each: itself, or its digest */
    size_t n_files;                 /* of `files` */
    const char *iface;              /* -i: a live capture in place of files, whose only name this is; NULL: not given */
    struct cli_ifaces ifaces_given; /* its interfaces */
    struct cli_stop stop;           /* -a */
    /* output: call trace_flush() now and then; the rest is written at the end */
    struct buf out;
    FILE *spool;      /* trace_flush() writes here in place of standard output; NULL: standard output */
    uint32_t conn;    /* --conn, 0: not given; end() is called only if this connection exists */
    bool answered;    /* an option such as --help was answered: only `out` is written, no file is read */
    bool ndjson;      /* -T ndjson: what the command writes as JSON leaves as lines */
    unsigned decoded; /* with `notes`: layers of the packet at hand that pkt_decode() made */
    bool enough;      /* set by the command: no more frames are read, then end() is called */
    unsigned cores;   /* -j: threads; 0: not given, as many as there are processors */
    uint32_t ring;    /* -i: bytes of the kernel's ring of packets; 0: CLI_LIVE_BUFFER */
    /* -i: the capture, for cap_live_stats(); else NULL */
    struct cap *live;
    struct cap_merge *in; /* the open files, from the first packet to end() */
    bool notes;           /* set by start(): pkt.note is to be filled */
    /* set before end(): a file could not be read to its end; the error is reported after end() */
    bool failed;
    /* set before end(): which files, and why, each as on standard error; NULL: all were read to their ends */
    const char *unread;
    uint64_t frames;       /* frames read */
    uint32_t ifaces;       /* set before end(): number of interfaces of the file that has the most, at least 1 */
    uint32_t *file_ifaces; /* the same for each file */
    /* gets each packet that passes -Y; the others are passed to observer_teach(). It exists before start(), which
     * subscribes. NULL: the command drives an observer of its own, see trace_cmd.conns. */
    struct observer *observer;
    /* set by start(): to which trace_cmd.judge() gives packets, for judge_fetch(). NULL: none */
    struct judge *judging;
    uint64_t memory;               /* --memory in bytes, 0: not given; as in observer_opts */
    struct anonymizer *anonymizer; /* --anonymize; NULL: packets are as they were captured */
    /* one of several processes that share out the packets, or what all of them have found; NULL: there is one process.
     * start() may set it to NULL: then all is read */
    struct trace_share *share;
    /* set by start(), if trace_may_apart(): the packets are shared out among parts of this process. Then judge() and
     * packet() get nothing, t->observer neither, and join() follows the packets. NULL: they are not */
    struct in_parts *in_parts;
    struct hosts_part *hosts; /* of one of several parts by hosts: what it notes, set by start() */
    /* Internal. */
    bool may_apart;       /* start() may set `in_parts`: all can be read once more */
    bool again;           /* all is to be read once more, without parts: nothing was printed of the files */
    bool once_more;       /* it is; what was said of the arguments is not said again */
    struct shards shards; /* whose files these are; not of trace_other_files() */
    struct buf unread_text;
    struct decode_opts decode;
    struct conn_known pairs[TRACE_PAIRS]; /* --pair */
    const char *pair_args[TRACE_PAIRS];   /* as given */
    unsigned n_pairs;
    struct joins joins;        /* --join, and those found */
    struct json_lines lines;   /* with `ndjson` */
    struct first_frames first; /* what was learnt of the first frames, and of frames since */
    const char *filter_text;   /* -Y */
    struct filter *filter;     /* compiled; NULL: all packets */
    struct marks marks;        /* from a first pass over the files, if the filter needs it (`marked`) */
    bool marked;
    struct streams *streams;  /* if the filter needs them */
    struct frame_times times; /* with `filter`, or trace_cmd.times */
    struct ulp_opts ulp;      /* of `context` */
    struct context *context;  /* with `notes`, or if the filter needs it */
    bool broken;              /* standard output cannot be written */
    bool silent;              /* a first pass: errors of the files are reported by the pass that follows */
};

/* A command; `t` is its state. start, packet, drops, end and stop follow in this order; any but end may be NULL. */
struct trace_cmd {
    const char *name;              /* of the subcommand */
    size_t size;                   /* size of its state in bytes, which is zeroed */
    void (*init)(struct trace *t); /* sets defaults in it; NULL: none */
    const struct opt_def *defs;    /* table of its options */
    const char *rows;              /* type of the rows of -T ndjson; NULL: it has no -T ndjson */
    uint32_t per_flow;             /* bytes of --memory for each flow; 0: ROOM_PER_FLOW */
    void (*help)(struct buf *b);   /* append its help */
    /* An option other than those above; NULL if there is none. EXIT_OK, or EXIT_BAD after a message. */
    int (*option)(struct trace *t, int key, const char *arg);
    /* All arguments were read: what is done in place of reading files, if they ask for that; then it sets t->answered.
     * EXIT_OK, or EXIT_BAD after a message. NULL: files are always read. */
    int (*instead)(struct trace *t);
    /* All options were read: prepare. EXIT_OK, or EXIT_BAD after a message (then only stop() follows). */
    int (*start)(struct trace *t);
    /* The table of connections that --pair adds to and --conn selects from. NULL: that of t->observer, which exists
     * only in this case. */
    struct conn_table *(*conns)(struct trace *t);
    /* A frame was read, and its packet will come soon. NULL: that is of no use. */
    void (*expect)(struct trace *t, const struct frame *f);
    /* Give each packet to the judge, also if it does not pass -Y, before packet() gets it. Another thread may be in
     * packet() or in t->observer with an earlier packet: nothing is used here that they use. NULL: there is no judge.
     */
    void (*judge)(struct trace *t, const struct pkt *p);
    /* Each packet, in the order of time, before t->observer gets it. `match`: it passes -Y. */
    void (*packet)(struct trace *t, struct pkt *p, bool match);
    /* -i: no packet is left that has arrived; called at least ten times a second */
    void (*idle)(struct trace *t);
    /* idle() is called for a pipe, too, when it had no bytes for CLI_KEYS_MS */
    bool pipes;
    /* t->in_parts is set: after the last packet, and the drops, make one of what its parts have found. A text: why that
     * cannot be; then all is read once more. NULL: it never sets t->in_parts. */
    const char *(*join)(struct trace *t);
    /* Dropped packets that file number `file` states; after the packets. */
    void (*drops)(struct trace *t, uint16_t file, uint64_t drops);
    /* After the last packet: append the results to t->out. Returns an exit status; EXIT_BAD of a file that could not be
     * read takes precedence. */
    int (*end)(struct trace *t);
    /* Release the memory of start() and option(). */
    void (*stop)(struct trace *t);
    const struct opt_foreign *foreign; /* options that others have; NULL: none */
    const struct opt_clash *clashes;   /* combinations of options that are refused; NULL: none */
    /* returns the cases of struct opt_clash that apply; called when all options were read. NULL: none */
    unsigned (*cases)(struct trace *t);
    /* t->observer gets all packets, whether they pass -Y or not: the filter only selects what packet() shows */
    bool filter_shows;
    /* packet() shows fields of packets, the times since other packets among them */
    bool times;
    /* it can be one of several processes (t->share), each of which follows some pairs of addresses; by_hosts: some
     * hosts */
    bool shares, by_hosts;
    /* of a run it reads what a scan has kept of the shards: it looks at payload for upper protocols only */
    bool digests;
    bool compares; /* its files with one another: they may be the same */
};

/* Threads, as in struct turns_opts: those of -j; else one, if this is one of several processes: they want the other
 * processors, and two threads take more CPU time than one for the same packets. */
static inline unsigned trace_threads(const struct trace *t)
{
    return !t->cores && t->share && t->share->found ? 1 : t->cores;
}
/* For start(): in how many parts packets may be shared out in this process; 0: not at all, as there is one
 * thread, or the files are small, or cannot be read once more. */
unsigned trace_may_apart(const struct trace *t);
/* What the options say to the judge, the explainer and the meter of a view that has all three. */
struct analyses_opts trace_analyses(const struct trace *t);
/* Run a command without options (but what *t has) on files of its own. Errors in them are reported, and what could be
 * read is kept: then t->frames is not 0. `t`: from trace_new(), the caller frees it. Returns an exit status. */
int trace_other_files(const struct trace_cmd *cmd, struct trace *t, const char **files, size_t n,
                      const struct decode_opts *decode);
/* The same on files that another pass reads later. Errors in the files are left
 * to that pass, unless no frame can be read. `t`: from trace_new(), the caller frees it. Returns an exit status. */
int trace_first_pass(const struct trace_cmd *cmd, struct trace *t, const char **files, size_t n,
                     const struct decode_opts *decode);
/* A run of the command on the files of `t` that follows what `share` says, of packets that it is given by
 * trace_give_part(); begun with the options of `t` that decide what is found. NULL without memory. */
struct trace *trace_begin_part(const struct trace_cmd *cmd, const struct trace *t, struct trace_share *share);
void trace_give_part(const struct trace_cmd *cmd, struct trace *part, struct pkt *p);
/* After the last packet: what it has found goes to the share. Returns an exit status. */
int trace_finish_part(const struct trace_cmd *cmd, struct trace *part, bool unread);
void trace_free_part(const struct trace_cmd *cmd, struct trace *part);
/* There is no memory: EXIT_BAD, after a message; none of a part of this process, without which it goes on. */
int trace_no_memory(const struct trace *t);
/* Run a command: options, files, output. Returns the exit status. */
int trace_main(const struct trace_cmd *cmd, int argc, char **argv);
/* The same for one of several processes: `share`. *read: packets that it read. */
int trace_part(const struct trace_cmd *cmd, int argc, char **argv, struct trace_share *share, uint64_t *read);
/* Allocate the state of a command, to be released by free(). NULL without memory. */
struct trace *trace_new(const struct trace_cmd *cmd);

/* The commands that `rdmatrace all` combines. */
extern const struct trace_cmd check_cmd, explain_cmd, flows_cmd, ops_cmd, ladder_cmd, all_cmd, export_cmd, top_cmd,
    tui_cmd, report_cmd, diff_cmd, extract_cmd;

/* Define a command and cmd_COMMAND(): struct job, the table `defs`, cmd_COMMAND_help(), start() and end() of its file,
 * and members of struct trace_cmd that not every command has. */
#define TRACE_CMD(command, ...)                                                                                        \
    const struct trace_cmd command##_cmd = {.name = #command,                                                          \
                                            .size = sizeof(struct job),                                                \
                                            .defs = defs,                                                              \
                                            .help = cmd_##command##_help,                                              \
                                            .start = start,                                                            \
                                            .end = end,                                                                \
                                            __VA_ARGS__};                                                              \
    int cmd_##command(int argc, char **argv)                                                                           \
    {                                                                                                                  \
        return trace_main(&command##_cmd, argc, argv);                                                                 \
    }

/* Write t->out; trace_flush(): if it holds 64 KiB or more. */
void trace_flush_now(struct trace *t);
void trace_flush(struct trace *t);
/* Of a command that analyses only packets that pass -Y: if it is given, say on standard error what that means. */
void trace_tell_filter(const struct trace *t);

#endif
