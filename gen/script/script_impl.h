/* layer 3 (script): internal: what the source files of the scenario language share. */
#ifndef RDMATRACE_GEN_SCRIPT_SCRIPT_IMPL_H
#define RDMATRACE_GEN_SCRIPT_SCRIPT_IMPL_H

#include "gen/script/live.h"

#define SCRIPT_WORDS  48
#define SCRIPT_MEMS   64
#define SCRIPT_PDS    8
#define SCRIPT_SRQS   8
#define SCRIPT_EVENTS 64

/* A named region or window of a host. */
struct script_mem {
    char name[24];
    unsigned host;
    uint8_t *p; /* NULL: a window */
    uint64_t len;
    uint64_t iova;
    uint32_t key;
};

struct script_srq {
    char name[24];
    unsigned host;
    int handle;
};

/* A frame that a host has sent and that no line has matched or skipped yet. */
struct script_sent {
    struct script_sent *next;
    ns_t when;
    unsigned host;
    uint32_t len;
    uint8_t data[];
};

struct script_place;

struct script {
    const char *name;
    unsigned line;
    struct buf *out;
    struct script_opts *o;
    bool started;
    struct sim sim;
    struct text_error err;
    bool failed;  /* the line is well-formed, but its expectation was not met */
    ns_t seen_at; /* time of the last packet that a line matched */
    struct script_sent *sent[NET_HOSTS], *sent_last[NET_HOSTS];
    struct prng prng;
    uint32_t pd[NET_HOSTS][SCRIPT_PDS];
    struct script_mem mem[SCRIPT_MEMS];
    unsigned n_mem;
    struct script_srq srq[SCRIPT_SRQS];
    unsigned n_srq;
    struct ep_event events[NET_HOSTS][SCRIPT_EVENTS]; /* asynchronous events, a ring */
    unsigned ev_head[NET_HOSTS], ev_tail[NET_HOSTS];
    enum rule faults[NET_HOSTS][FAULTS_MAX];
    uint32_t next_id; /* wr_id of the next work request without id= */
};

/* A statement: its words; false with s->err or s->failed set. */
typedef bool script_fn(struct script *s, const struct token *t, unsigned n);

/* Setting up (setup.c). */
script_fn script_seed, script_host, script_net, script_event, script_qp, script_mem_add, script_srq_add, script_mw_add,
    script_dereg;
script_fn script_join, script_connect, script_disconnect;
/* Begin: from now on the hosts exist. */
bool script_start(struct script *s);
/* Work (post.c): words after the host. */
bool script_post(struct script *s, unsigned host, const struct token *t, unsigned n);
bool script_modify(struct script *s, unsigned host, const struct token *t, unsigned n);
/* Packets (packet.c): "a > b ..."; made by hand (inject.c): "inject a > b ...". */
bool script_packet(struct script *s, unsigned host, const struct token *t, unsigned n);
script_fn script_inject;

/* Packets in the notation of the scenarios (packet_text.c). */
/* Values of a packet that scenarios name. */
enum value_kind {
    VAL_CONN,
    VAL_PSN,
    VAL_LEN,
    VAL_FRAME,
    VAL_MSN,
    VAL_CREDIT,
    VAL_TIMER,
    VAL_ACKREQ,
    VAL_SE,
    VAL_VA,
    VAL_DMALEN,
    VAL_IMM,
    VAL_PAD,
    VAL_ORIG,
    VAL_ECN,
    VAL_DQPN,
    VAL_RKEY,
    VAL_COUNT
};
/* The value called `t`; VAL_COUNT: none is. */
enum value_kind value_find(const struct token *t);
/* A value of packet `p`, of which `v` tells the connection; false if it has none. */
bool packet_value(const struct pkt *p, const struct conns_view *v, enum value_kind k, uint64_t *u);
/* A value that a line gives: a number, or for va a place in the memory of the receiving host. */
bool packet_value_given(struct script *s, unsigned host, enum value_kind k, const struct token *v, uint64_t *u);
/* Name of an opcode's operation: "SEND_FIRST", "WRITE_ONLY_IMM", "READ_RESP_LAST", "CAS" ... */
void packet_op_name(char *out, size_t size, const char *name);
/* Name of a packet: ACKs by their syndrome, CM messages by their kind. */
void packet_name(char *out, size_t size, const struct pkt *p);
/* Append a whole packet. */
void script_packet_text(struct script *s, struct buf *b, unsigned host, const uint8_t *data, uint32_t len);

/* All other expectations (expect.c): words after the host. */
bool script_expect(struct script *s, unsigned host, const struct token *t, unsigned n);
script_fn script_none, script_wait, script_run_all;

/* Live peers (live.c). Who plays a statement: */
enum script_part {
    PART_OURS,
    PART_THEIRS,
    PART_BOTH,
    PART_NOBODYS, /* the peer does it by itself, or s->err says why the peer cannot be asked to */
};
enum script_part script_part_of(struct script *s, const struct token *t, unsigned n);
/* Ask the peer to carry out the statement. */
bool script_tell(struct script *s, const struct token *t);
/* Bring our image of the other host's memory up to date. */
bool script_fetch(struct script *s, const struct script_place *p);
/* Ask the other side for its final result. */
bool script_end(struct script *s);
/* With a foreign peer: the memory of host b is at --va under --rkey. */
void script_adopt(struct script *s, struct script_mem *m);
/* Exchange queue pairs with a foreign peer. */
bool script_exchange(struct script *s, struct sim_conn *c);
/* How long an expectation waits, and the tolerance of times. */
ns_t script_patience(const struct script *s);
ns_t script_tolerance(const struct script *s);
/* A statement, of which nobody is asked whose it is. */
bool script_statement(struct script *s, const struct token *t, unsigned n);
struct script *script_new(const char *name, struct script_opts *o, struct buf *out);
void script_free(struct script *s);
/* What is reported at the end although every line was met. */
void script_last_words(struct script *s);

/* --- Helpers ---------------------------------------------------------------------------------- */

/* "a" is host 0, "b" host 1. */
bool script_host_of(struct script *s, const struct token *t, unsigned *host);
/* The connection that a word names. */
bool script_conn_of(struct script *s, const struct token *t, struct sim_conn **c);
/* "NAME", "NAME+OFF", "NAME+OFF:LEN", with an optional "HOST." before the name; `host` is taken without it. */
struct script_place {
    struct script_mem *m;
    uint64_t off, len; /* len: to the end if not given */
};
bool script_place_of(struct script *s, unsigned host, const struct token *t, struct script_place *p);
struct script_srq *script_srq_of(struct script *s, unsigned host, const struct token *name);
/* A number for `key`; sets s->err otherwise. */
bool script_num(struct script *s, const struct token *v, uint64_t max, uint64_t *out);
/* Access rights as letters: w local write, R, W, A remote read, write, atomic, b windows may be bound; "none". */
bool script_access(struct script *s, const struct token *v, uint8_t *access);
/* Run until `cond` holds; false if it does not within `limit` from now on. */
bool script_until(struct script *s, bool (*cond)(struct script *, void *), void *arg, ns_t limit);
/* Report a failed expectation: a line with the file, the line number and the text. Returns false. */
bool script_fail(struct script *s, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* How long an expectation waits: longer than all retries take. */
#define SCRIPT_PATIENCE (1000 * NS_PER_S)

#endif
