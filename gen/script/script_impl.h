/* layer 3 (script): internal: shared by the source files of the scenario language. */
#ifndef RDMATRACE_GEN_SCRIPT_SCRIPT_IMPL_H
#define RDMATRACE_GEN_SCRIPT_SCRIPT_IMPL_H

#include "gen/script/live.h"

#define SCRIPT_MEMS      1100  /* regions and windows, both hosts together */
#define SCRIPT_PDS       8     /* protection domains of a host, and XRC domains */
#define SCRIPT_SRQS      8     /* both hosts together */
#define SCRIPT_FLOOD_MAX 10000 /* most REQs of a line "flood" */
#define SCRIPT_EVENTS    64    /* asynchronous events kept of a host */

/* A named memory region or memory window of a host. */
struct script_mem {
    char name[24]; /* terminated by NUL */
    unsigned host;
    uint8_t *p;    /* its memory; NULL: a window, or a region for fast registration */
    uint64_t len;  /* bytes */
    uint64_t part; /* bytes after which it repeats; `len`: it does not */
    uint64_t iova; /* address of its first byte in work requests */
    uint32_t key;  /* L_Key and R_Key */
    uint32_t old;  /* its key before the latest bind or registration; until then as `key` */
};

struct script_srq {
    char name[24];
    unsigned host;
    int handle;    /* of the endpoint */
    int cq;        /* XRC: of its receives; else -1 */
    uint32_t xrcd; /* its XRC domain; 0: none */
};

/* A frame that a host has sent, and that no line has matched or skipped yet. */
struct script_sent {
    struct script_sent *next;
    ns_t when;     /* virtual time at which it was sent */
    unsigned host; /* its sender */
    uint32_t len;  /* bytes of `data` */
    uint8_t data[];
};

struct script_place;
struct dut;

/* A running scenario. */
struct script {
    const char *name; /* of the scenario, for messages */
    unsigned line;    /* current line, from 1 */
    struct buf *out;  /* messages */
    struct script_opts *o;
    bool started; /* the hosts exist */
    struct sim sim;
    struct text_error err;       /* syntax error of the current line */
    bool failed;                 /* the syntax is right, but the line expects what did not happen */
    bool unsupported;            /* failed: the device under test lacks what the line needs */
    bool broken;                 /* failed: the session with the device under test ended */
    struct dut *duts[NET_HOSTS]; /* by host: the session with its agent; NULL: it is no device under test */
    struct dut *dut;         /* the one that the functions of dut.c are about; NULL: there is no device under test */
    ns_t seen_at;            /* time of the latest packet that a line matched */
    ns_t posted[NET_HOSTS];  /* when the latest send was posted, by the clock of the host's completions */
    ns_t posting[NET_HOSTS]; /* the time of the scenario just before that */
    struct script_sent *sent[NET_HOSTS], *sent_last[NET_HOSTS]; /* by host: queue of sent frames */
    struct prng prng;                                           /* starting PSNs and the like */
    uint32_t pd[NET_HOSTS][SCRIPT_PDS];                         /* handles; 0: not allocated yet */
    uint32_t xrcd[NET_HOSTS][SCRIPT_PDS];                       /* XRC domains likewise */
    struct script_mem mem[SCRIPT_MEMS];
    unsigned n_mem;
    struct script_srq srq[SCRIPT_SRQS];
    unsigned n_srq;
    struct ep_event events[NET_HOSTS][SCRIPT_EVENTS]; /* asynchronous events, a ring buffer */
    unsigned ev_head[NET_HOSTS], ev_tail[NET_HOSTS];  /* next one to read, and to write; both only increase */
    enum rule faults[NET_HOSTS][FAULTS_MAX];          /* rules that an endpoint breaks */
    uint32_t next_id;                                 /* wr_id of the next work request without id= */
};

/* Execute a statement with `n` words. False: s->err or s->failed is set. */
typedef bool script_fn(struct script *s, const struct token *t, unsigned n);

/* Setting up (setup.c). */
script_fn script_seed, script_host, script_net, script_event, script_qp, script_join;
/* By the connection manager (connections.c). */
script_fn script_connect, script_flood, script_disconnect, script_load;
/* Expect that the host was told so many bytes of private data: words after the host and "private". */
bool script_private(struct script *s, unsigned host, const struct token *t, unsigned n);
/* Protection domain and XRC domain number `i` of a host, allocated when first used. */
uint32_t script_pd(struct script *s, unsigned host, unsigned i);
uint32_t script_xrcd(struct script *s, unsigned host, unsigned i);
/* Read the number of a protection domain: false with s->err set. */
bool script_take_pd(struct script *s, const struct token *v, unsigned *pd);
/* Create the hosts, unless they exist. False with s->err set. */
bool script_start(struct script *s);
/* Memory (memory.c). */
script_fn script_mem_add, script_srq_add, script_mw_add, script_mr_add, script_dereg, script_register;
/* Release the memory of a region. */
void script_mem_free(struct script_mem *m);
/* Execute "limit"; words after the host and "limit". */
bool script_limit(struct script *s, unsigned host, const struct token *t, unsigned n);
/* Work (post.c): words after the host. */
bool script_post(struct script *s, unsigned host, const struct token *t, unsigned n);
/* Execute "hold" and "release": what a device is to send is posted together, in one batch, when it is released. */
bool script_hold(struct script *s, unsigned host, bool holds);
/* Execute "arm"; words after the host and "arm". */
bool script_arm(struct script *s, unsigned host, const struct token *t, unsigned n);
/* Execute "modify"; words after the host and "modify". */
bool script_modify(struct script *s, unsigned host, const struct token *t, unsigned n);
/* The words after the host and "attach": a UD queue pair joins a multicast group. */
bool script_attach(struct script *s, unsigned host, const struct token *t, unsigned n);
/* The address of the group with number `v`, 0 to 255, in the hosts' family: 239.255.0.N (RFC 2365), or ff15::N. */
bool script_group(struct script *s, const struct token *v, uint8_t gid[16]);
#define SCRIPT_GROUP_QPN 0xffffffu /* to which datagrams for a group go */
/* Expected packets (packet.c): "a > b ..."; handmade packets (inject.c): "inject a > b ...". */
bool script_packet(struct script *s, unsigned host, const struct token *t, unsigned n);
script_fn script_inject;

/* Packets in the notation of scenarios (packet_text.c). */
/* Values of a packet that a scenario may state. */
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
    VAL_SRQN,
    VAL_MIGREQ,
    VAL_COUNT
};
/* The value with name `t`; VAL_COUNT: there is none. */
enum value_kind value_find(const struct token *t);
/* A value of packet `p`, whose connection is in `v`. False if the packet does not have it. */
bool packet_value(const struct pkt *p, const struct conns_view *v, enum value_kind k, uint64_t *u);
/* Parse a value in a line: a number, or for va also a place in the memory of the receiving host. */
bool packet_value_given(struct script *s, unsigned host, enum value_kind k, const struct token *v, uint64_t *u);
/* Name of an opcode `name` in scenarios: "SEND_FIRST", "WRITE_ONLY_IMM", "READ_RESP_LAST", "CAS" ... */
void packet_op_name(char *out, size_t size, const char *name);
/* Name of a packet: of an acknowledgement by its syndrome, of a CM message by its type. */
void packet_name(char *out, size_t size, const struct pkt *p);
/* Whether a packet of any service has the name `t`, or, with a * at its end, one that begins so. False: an error. */
bool packet_name_known(struct script *s, const struct token *t);
/* Whether `want` is the name, or, with a * at its end, the beginning of the name. */
bool packet_name_matches(const struct token *want, const char *name);
/* Append a packet with its values. `host`: its sender. */
void script_packet_text(struct script *s, struct buf *b, unsigned host, const uint8_t *data, uint32_t len);

/* Other expectations (expect.c); t: the words after the host. */
bool script_expect(struct script *s, unsigned host, const struct token *t, unsigned n);
script_fn script_none, script_wait, script_run_all;

/* Live peers (live.c). Which side executes a statement: */
enum script_part {
    PART_OURS,
    PART_THEIRS,
    PART_BOTH,
    PART_NEITHER, /* neither: a foreign peer does it by itself, or s->err says why it cannot be asked to */
};
/* Returns the side; PART_NEITHER with s->err set if the statement is refused. */
enum script_part script_part_of(struct script *s, const struct token *t, unsigned n);
/* Send the statement to the other rdmagen and wait for its result. Nothing is sent to a foreign peer. */
bool script_forward(struct script *s, const struct token *t);
/* Read a place in the other host's memory into the local copy. */
bool script_fetch(struct script *s, const struct script_place *p);
/* Request the final result of the other rdmagen: false if a check failed there, or the connection. */
bool script_end(struct script *s);
/* With a foreign peer: place host b's region `m` at --va, under --rkey. */
void script_adopt(struct script *s, struct script_mem *m);
/* Exchange QPN, PSN and GID with a foreign peer (foreign.c); end what is left of the exchange. */
bool script_exchange(struct script *s, struct sim_conn *c);
void script_exchange_end(struct script_live *v);
/* How long an expectation waits, and the tolerance of its times; ns. */
ns_t script_patience(const struct script *s);
ns_t script_tolerance(const struct script *s);
/* Execute a statement on this side, whichever side it is for. */
bool script_statement(struct script *s, const struct token *t, unsigned n);
/* Create the state of a scenario; NULL without memory. */
struct script *script_new(const char *name, struct script_opts *o, struct buf *out);
/* Free the state, and all that the scenario has created. */
void script_free(struct script *s);
/* Checks at the end, after all lines were met: unfinished work, and rules that an endpoint broke without a fault. */
void script_final_checks(struct script *s);

/* Find the field of packets that a scenario calls `name`: between hosts with IPv6 addresses one of the IPv4 header that
 * the IPv6 header has too is that of the IPv6 header. False: there is none; *s says so. */
bool script_field(struct script *s, const struct token *name, struct frame_field *f);
/* The scenario is about the header of IPv4. False: these hosts have IPv6 addresses; *s says so. */
bool script_wants_ipv4(struct script *s);

/* Devices under test (dut.c). Their objects have replicas on this side; in functions that return a bool, false means
 * s->failed. */
/* Whether `host` is one; if so, the functions below are about this one from then on. */
bool script_is_dut(struct script *s, unsigned host);
/* Whether both hosts are. */
bool script_between(const struct script *s);
/* Begin the sessions with all devices under test; end them. */
bool dut_open(struct script *s);
void dut_close(struct script *s);
/* Fail, because agents lack something: `what` says so. Returns false. */
bool dut_lacks(struct script *s, const char *what);
/* Register the memory of `m` with its contents, in the domain whose replica is `pd`; allocate a window of type 1 or 2:
 * m->key is set. */
bool dut_mem(struct script *s, struct script_mem *m, uint32_t pd, unsigned access);
bool dut_window(struct script *s, struct script_mem *m, uint32_t pd, unsigned type);
/* Deregister or deallocate it: 0 or a negative errno. */
int dut_dereg(struct script *s, const struct script_mem *m);
/* Have it give a region other rights: m->key may be another one then. */
bool dut_access(struct script *s, struct script_mem *m, uint8_t access);
/* Have it register memory and deregister it, so often. */
bool dut_register(struct script *s, const struct script_mem *m, uint32_t times);
/* The L_Key of a region of either host. */
uint32_t script_lkey(struct script *s, const struct script_mem *m);
/* The address of its memory, for inline data. */
uint64_t dut_inline(const struct script *s, const struct script_mem *m);
/* Read a place in its memory into the local copy. */
bool dut_fetch(struct script *s, const struct script_place *p);
bool dut_srq(struct script *s, const struct script_srq *q, uint32_t pd, uint32_t depth, uint32_t limit);
bool dut_limit(struct script *s, const struct script_srq *q, uint32_t limit);
/* Create the queue pair of a connection, with `awrite` for ATOMIC WRITE, with `notify` and a completion queue that may
 * be armed, and announce its QPN to the other host; bring
 * it to RTS. */
bool dut_qp(struct script *s, struct sim_conn *c, const struct sim_conn_config *cfg, bool awrite, bool notify);
bool dut_join(struct script *s, const struct sim_conn *c);
/* Connections by RDMA-CM (dut_cm.c): listen for them; take the request that the other host sends, and accept it; send
 * one to the other host, then wait until that has answered; send the DREQ; take what has come of the connection into
 * c->state. */
bool dut_listen(struct script *s, const struct sim_conn *c);
bool dut_accept(struct script *s, struct sim_conn *c);
/* The request that the other host sends is not fit: its program rejects it if the queue pair does not get to RTR by
 * what it says, unless it is not even told of it. */
bool dut_asked_unfit(struct script *s, struct sim_conn *c);
bool dut_connect(struct script *s, struct sim_conn *c);
bool dut_connected(struct script *s, struct sim_conn *c);
bool dut_disconnect(struct script *s, struct sim_conn *c);
/* Its program rejects requests until no further one comes for a while. */
bool dut_refuse_flood(struct script *s, const struct sim_conn *c);
/* Between two devices under test, `host` has sent a frame: a REQ or REP says with which PSN the other one begins. */
void dut_cm_seen(struct script *s, unsigned host, const uint8_t *data, uint32_t len);
/* In virtual time, for struct sim_app (its user is the script): time does not go on before an event is taken. */
ns_t dut_cm_run(void *user, ns_t now);
void dut_cm_state(struct script *s, struct sim_conn *c);
/* Whether all devices under test have atomics; false: s->failed is set. */
bool dut_has_atomics(struct script *s);
/* Change the state of a queue pair: 0 or a negative errno. Its name; NULL with s->failed set. */
int dut_modify(struct script *s, const struct sim_conn *c, enum qp_state state);
const char *dut_state(struct script *s, const struct sim_conn *c);
/* Post a receive to a queue pair, or to `q` if it is not NULL; post a send, `times` times in batches, or hold it back
 * (script_hold()), a datagram with `group` to the group that dut_group() was called for last; bind window `w`, whose
 * key is then *key. 0 or a negative errno. */
int dut_post_recv(struct script *s, const struct sim_conn *c, const struct script_srq *q, const struct recv_wr *wr);
int dut_post_send(struct script *s, const struct sim_conn *c, const struct send_wr *wr, bool group, uint64_t times);
/* Whether its port carries the message of a work request, of either side; false: s->failed is set. */
bool dut_carries(struct script *s, const struct send_wr *w);
int dut_post_bind(struct script *s, const struct sim_conn *c, const struct script_mem *w, const struct send_wr *wr,
                  uint32_t *key);
/* Whether the result `r` of one of them is what the line expects: 0, or failure with errno `fails`. */
bool dut_posted(struct script *s, int r, int fails);
/* Make the address handle of a multicast group, for the datagrams of a connection that go there. */
bool dut_group(struct script *s, const struct sim_conn *c, const uint8_t gid[16]);
/* Take a completion of a connection; false: there is none. */
bool dut_poll(struct script *s, const struct sim_conn *c, struct wc *wc);
/* Join a multicast group, and attach the queue pair to it (dut_cm.c). */
bool dut_attach(struct script *s, const struct sim_conn *c, const uint8_t gid[16]);
/* Ask for one notification of its completion queue. */
bool dut_arm(struct script *s, const struct sim_conn *c, bool solicited);
/* Fill s->events with the asynchronous events that are there. */
void dut_events(struct script *s);

/* --- Helpers ---------------------------------------------------------------------------------- */

/* "a" is host 0, "b" host 1. */
bool script_host_of(struct script *s, const struct token *t, unsigned *host);
/* The connection with the number `t`. */
bool script_conn_of(struct script *s, const struct token *t, struct sim_conn **c);
/* "NAME", "NAME+OFF", "NAME+OFF:LEN", with an optional "HOST." before it; without, the name is one of `host`. */
struct script_place {
    struct script_mem *m;
    uint64_t off, len; /* bytes; len: up to the end if not given */
};
bool script_place_of(struct script *s, unsigned host, const struct token *t, struct script_place *p);
/* The shared receive queue of this name; NULL with s->err set: there is none. */
struct script_srq *script_srq_of(struct script *s, unsigned host, const struct token *name);
/* Parse a number of at most `max`. False with s->err set. */
bool script_num(struct script *s, const struct token *v, uint64_t max, uint64_t *out);
/* Parse access rights: letters w local write, R, W, A remote read, write, atomic, b bind windows; or "none". */
bool script_access(struct script *s, const struct token *v, uint8_t *access);
/* Parse the name of a migration state, enum mig_state. False with s->err set. */
bool script_mig_state(struct script *s, const struct token *v, uint8_t *state);
/* Parse the name of an errno, or "any": the call may fail, and need not. False with s->err set. */
#define SCRIPT_MAY_FAIL (-1)
bool script_errno(struct script *s, const struct token *v, int *err);
/* Run the hosts until `cond` holds; false if it does not within `limit` ns. */
bool script_until(struct script *s, bool (*cond)(struct script *, void *), void *arg, ns_t limit);
/* Forget the frames that no line has matched or skipped yet. */
void script_forget_sent(struct script *s);
/* Report a failed expectation: a line with the file, the line number and the text. Returns false. */
bool script_fail(struct script *s, const char *fmt, ...) PRINTF_LIKE(2, 3);

#define SCRIPT_MTU 1024 /* path MTU of queue pairs that are given none */
/* How long an expectation waits in virtual time: longer than all retries take. */
#define SCRIPT_PATIENCE (1000 * NS_PER_S)

#endif
