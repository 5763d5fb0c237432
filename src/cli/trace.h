/* layer 4 (tool): what the commands that look at whole captures share: files, options, the reading loop. */
#ifndef RDMATRACE_TRACE_H
#define RDMATRACE_TRACE_H

#include "opt.h"
#include "dissect/pkt.h"
#include "src/trace/conn.h"
#include "src/trace/filter.h"

#define TRACE_PAIRS 64

struct trace_input {
    const char **files;
    size_t n_files;
    struct decode_opts decode;
    struct conn_known pairs[TRACE_PAIRS]; /* --pair */
    unsigned n_pairs;
    struct filter *filter; /* -Y, NULL: all packets */
};

/* Options that every such command has; rows for its table. */
#define TRACE_OPTIONS                                                                                                  \
    {'r', "read-file", "FILE", "read FILE; the same as naming it as an operand; - is standard input"},                 \
    {TRACE_KEY_PAIR, "pair", "PAIR", "two queue pairs that are connected, ADDRESS:QPN,ADDRESS:QPN; may be repeated"},  \
    {TRACE_KEY_UDP_PORT, "udp-port", "PORT", "a further UDP destination port of RoCEv2; may be repeated"}
enum {
    TRACE_KEY_PAIR = 1000,
    TRACE_KEY_UDP_PORT,
};

/* Prepare for the arguments of a command; false without memory (a message was printed). */
bool trace_start(struct trace_input *in, int argc);
void trace_free(struct trace_input *in);
/* Take an option: true if it was one of TRACE_OPTIONS; then *status is EXIT_BAD if its argument is wrong. */
bool trace_option(struct trace_input *in, int key, const char *arg, int *status);
/* Compile the display filter of -Y; EXIT_BAD after a message if it is none. */
int trace_filter(struct trace_input *in, const char *text);
/* The operands; EXIT_BAD (with a message that names `command`) if no file was named at all. */
int trace_operands(struct trace_input *in, const char *command, int operand, int argc, char **argv);
/* Teach --pair to `t`. */
void trace_pairs(const struct trace_input *in, struct conn_table *t);

/* Called with each packet, in the order of time; and with what a file says it dropped. */
struct trace_user {
    void *user;
    void (*packet)(void *user, struct pkt *p);
    void (*drops)(void *user, uint16_t file, uint64_t drops); /* may be NULL */
};
/* Read all. EXIT_OK, or EXIT_BAD after messages (what could be read was delivered). */
int trace_read(const struct trace_input *in, const struct trace_user *u);

#endif
