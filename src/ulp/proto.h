/* layer 2b (ulp): what an upper protocol provides, and what it may call: its state.
 *
 * A protocol is a file of bytes (dissect/ulp/NAME.c, no state), a file of state (src/ulp/NAME.c, a `struct ulp_proto`),
 * and a line in src/ulp/protocols.c. The common part calls
 *
 *     open      once a connection is known to carry it
 *     message   for each SEND, whole or up to a hole; also for a retransmitted one (`again`), to show it
 *     data      for each packet of a READ or WRITE that lies in memory of one of its commands, and (with no bytes) for
 *               each READ request
 *     write     for each packet of a WRITE, if the protocol has requests that are WRITEs
 *     setup     for each REQ, REP or REJ of such a connection, to show its private data
 *
 * and message() calls, for a command, ulp_begin() and ulp_offer(); for a response ulp_find() and ulp_complete(). */
#ifndef RDMATRACE_ULP_PROTO_H
#define RDMATRACE_ULP_PROTO_H

#include "src/ulp/ulp.h"

/* A protocol keeps a `type` in a command: own_of() and own_const() are those bytes, which are 0 at first. */
#define ULP_OWN_AS(type)                                                                                               \
    _Static_assert(sizeof(type) <= ULP_OWN, "own bytes of a command");                                                 \
    static inline type *own_of(struct ulp_command *c)                                                                  \
    {                                                                                                                  \
        return (type *)(void *)c->own;                                                                                 \
    }                                                                                                                  \
    static inline const type *own_const(const struct ulp_command *c)                                                   \
    {                                                                                                                  \
        return (const type *)(const void *)c->own;                                                                     \
    }

#define ULP_SAYS 96 /* bytes of ulp_message.says */

/* A message, or the part of it that is there. */
struct ulp_message {
    struct ulp_body body;        /* from its first byte, without holes; `more`: what was not captured */
    enum ulp_side side;          /* who sent it */
    bool hole;                   /* packets after `body` are missing so far */
    bool cut;                    /* it is longer than what is kept, or than what was captured */
    bool latest;                 /* nothing was captured behind it so far */
    bool again;                  /* nothing of it is new: it was delivered before, or will be when it is whole */
    bool has_imm;                /* `imm`: immediate data; of a SEND of one packet, and of a WRITE */
    uint32_t imm;                /* likewise, in host order */
    uint32_t invalidated;        /* R_Key that it invalidates; 0: none. Not of a WRITE, or over iWARP */
    uint64_t frame;              /* of its last packet */
    ns_t start, now;             /* of its first and its last packet */
    uint32_t packets;            /* packets of it */
    bool once;                   /* message() sets it: it keeps something of it, or it is no response */
    struct pkt *show;            /* add layers to it; NULL: nothing is shown */
    struct ulp_command *command; /* `again`: what it was tied to; else message() sets it. NULL: none */
    char says[ULP_SAYS];   /* without a command: what it is, such as " CDC"; message() sets it, empty: not known */
    char behind[ULP_SAYS]; /* with one: what its packet says behind it, such as "; Close"; likewise */
};

/* Bytes that a packet moved, in memory of a command. */
struct ulp_data {
    struct ulp_command *command;
    enum ulp_dir dir;
    uint64_t offset; /* of the first byte in what the command moves that way */
    uint32_t len;
    /* the packet completes the bytes that the command keeps (ulp_keep()): all of them; else len 0 */
    struct ulp_body all;
    struct pkt *show;
};

/* A packet of a WRITE, of a protocol whose requests are WRITEs. */
struct ulp_write {
    bool first, last; /* of the WRITE */
    bool tied;        /* it lies in memory of a command, and was given to data() */
    uint32_t psn;     /* the first one of the WRITE */
    uint64_t va, at;  /* of the packet's first byte: its address, its place in the WRITE */
    uint32_t len;     /* of the WRITE: bytes */
};

/* Memory of `owner` that no command offered: the other end writes or reads it. */
struct ulp_unasked {
    enum ulp_side owner;
    enum ulp_dir dir;
    uint32_t rkey, len;
    uint64_t va;
};

/* Private data of a CM message. */
struct ulp_setup {
    uint16_t attr; /* CM_REQ, CM_REP or CM_REJ */
    struct ulp_body body;
    const char **why; /* a REJ: setup() sets what it says in words, if that is known */
};

struct ulp_proto {
    const char *name; /* as ulp_of_setup() (dissect/ulp/service.h) names it */
    const char *word; /* of --ulp */
    size_t size;      /* bytes of its state in a connection, zeroed at first */
    /* a message tells of those before it: one behind a gap waits until its receiver has what is missing */
    bool in_order;
    /* a strict test of a message whose protocol is not known, or of its first packet if it is not `whole`; NULL: it
     * cannot be told by its bytes */
    enum ulp_looks (*looks)(const uint8_t *b, uint32_t len, bool whole);
    /* likewise of a message of one packet (`whole`), or its first packet, of whose `all` bytes only `len` were
     * captured; NULL: looks() tells by these */
    enum ulp_looks (*looks_cut)(const uint8_t *b, uint32_t len, uint32_t all, bool whole);
    /* likewise of a WRITE with immediate data `imm` to `va`, of one packet: `len` of its `all` bytes. May be NULL. */
    enum ulp_looks (*looks_write)(const uint8_t *b, uint32_t len, uint32_t all, uint64_t va, uint32_t imm);
    /* likewise, of a server's whole message that by itself tells nothing: it responds to `asked`, the message or its
     * first packet that looks like one of a client and came last. May be NULL. */
    bool (*responds)(const uint8_t *b, uint32_t len, const struct ulp_body *asked);
    /* `greeting`: private data of the REQ, `len` bytes, 0: none was seen. May be NULL. */
    void (*open)(struct ulp_conn *c, const uint8_t *greeting, uint32_t len);
    /* behind open(): the first CONN_ANSWER bytes of the REP's private data, or fewer. May be NULL. */
    void (*accepted)(struct ulp_conn *c, const uint8_t *answer, uint32_t len);
    /* the number of the queue, channel or stream that the connection is; NULL: it has none */
    uint32_t (*queue)(const struct ulp_conn *c);
    /* false: the bytes are none of this protocol */
    bool (*message)(struct ulp_conn *c, struct ulp_message *m);
    /* append what a message of several packets is, of which only its beginning `m` is there: "Write cid 0x3 nsid 1
     * ...". Nothing is appended if it does not tell. May be NULL. */
    void (*begins)(const struct ulp_conn *c, enum ulp_side side, const struct ulp_body *m, struct buf *b);
    /* each packet of a WRITE: `m` has its bytes, and takes the command that it belongs to. False: they are none of this
     * protocol. May be NULL: WRITEs only move data of commands. */
    bool (*write)(struct ulp_conn *c, struct ulp_message *m, const struct ulp_write *w);
    /* the length of a WRITE whose first packet was not seen, by the packet with immediate data that ends it; 0: it does
     * not tell. With write(); may be NULL. */
    uint32_t (*write_len)(const struct ulp_conn *c, const struct ulp_body *end, uint32_t imm);
    /* a READ or WRITE of memory that no command offered begins with the packet of `m`, which has no bytes: begin the
     * command whose message was not captured, or find the one that named only the key, and offer the memory. False: it
     * is not known. May be NULL. */
    bool (*unasked)(struct ulp_conn *c, struct ulp_message *m, const struct ulp_unasked *u);
    /* a response without a command is given to message() again once a command has begun, unless it is to be given only
     * `once` */
    bool late_commands;
    /* no message says whether memory is to be read or written: the way of what is offered is a guess, which the first
     * READ or WRITE of it replaces */
    bool either_way;
    /* the connection ends: the last chance to begin and complete commands. May be NULL */
    void (*over)(struct ulp_conn *c);
    void (*data)(struct ulp_conn *c, const struct ulp_data *d);       /* may be NULL */
    void (*setup)(struct pkt *show, const struct ulp_setup *s);       /* may be NULL */
    void (*name_text)(struct buf *b, const struct ulp_command *c);    /* "Write" */
    void (*key_text)(struct buf *b, const struct ulp_command *c);     /* "cid 0x3" */
    void (*command_text)(struct buf *b, const struct ulp_command *c); /* "Write cid 0x3 nsid 1 slba 300 nlb 8" */
    void (*status_text)(struct buf *b, const struct ulp_command *c);  /* "Successful Completion" */
    void (*values)(const struct ulp_command *c, ulp_take *take, void *user);
};

/* Another connection of the same protocol, behind `last` in an order of no meaning (NULL: the first one); NULL: none.
 */
struct ulp_conn *ulp_next_conn(const struct ulp_conn *c, const struct ulp_conn *last);
/* How many messages of one packet each a side has sent since its queue pair began, as the other end counts them in its
 * ACKs; false: no ACK was seen. */
bool ulp_sent(const struct ulp_conn *c, enum ulp_side side, uint32_t *n);
/* Whether it is known which end is the client. Only of a protocol of which both ends send the same messages it may not
 * be: then it is who sent first, so far. Such a protocol may say it, or the opposite (`swap`), before it has begun a
 * command; the side of a message at hand is that from before. */
bool ulp_knows_sides(const struct ulp_conn *c);
void ulp_set_sides(struct ulp_conn *c, bool swap);
/* The protocol's own state of a connection; its commands' own bytes are ulp_command.own. */
void *ulp_state(const struct ulp_conn *c);

/* A command begins with message `m`. One that is open with the same key is handed over as ULP_REUSED. NULL without
 * memory. The pointer is valid until the next ulp_begin(). */
struct ulp_command *ulp_begin(struct ulp_conn *c, struct ulp_message *m, uint64_t key);
/* `cmd` offers the server `len` bytes at `va`: to be written (ULP_TO_CLIENT) or read. They follow those that it offered
 * before in the same way. False: it has offered ULP_SEGMENTS_MAX pieces, or there is no memory. */
bool ulp_offer(struct ulp_conn *c, struct ulp_command *cmd, enum ulp_dir dir, uint32_t rkey, uint64_t va, uint32_t len);
/* Likewise memory of either end, which the other one accesses. */
bool ulp_offer_of(struct ulp_conn *c, struct ulp_command *cmd, enum ulp_side owner, enum ulp_dir dir, uint32_t rkey,
                  uint64_t va, uint32_t len);
/* `len` bytes of its data are in its message, and before those that it offers later. */
void ulp_inline(struct ulp_command *cmd, enum ulp_dir dir, uint32_t len);
/* Keep the first `len` bytes (at most ULP_DATA_MAX) that `cmd` moves that way, to decode them together. */
void ulp_keep(struct ulp_conn *c, struct ulp_command *cmd, enum ulp_dir dir, uint32_t len);
/* The bytes that are kept of `cmd`, from the first one up to the first that was not seen; none: len 0. */
struct ulp_body ulp_kept(const struct ulp_command *cmd);
/* Whether bytes of those were not captured. */
bool ulp_kept_cut(const struct ulp_command *cmd);
/* The body of `m` is a part of what its sender says in several SENDs: it is put behind those before it, or begins anew
 * (`begin`). Then `m` has all parts so far as its body, and the start and the packets of all of them; of more than
 * ULP_MESSAGE_MAX bytes the first ones, and none behind bytes that were not captured: those are its `more`. The bytes
 * are valid until the next call. False without memory. */
bool ulp_join(struct ulp_conn *c, struct ulp_message *m, bool begin);
/* Whether packets of that side are missing behind the part with which it began: one of its parts may be among them. */
bool ulp_join_lacks(const struct ulp_conn *c, enum ulp_side side);
/* Bytes that are not in the packet that is shown, for layers of it: they are copied behind those of its message. `len`
 * is 0 if there is no room. */
struct ulp_body ulp_show(struct ulp_conn *c, struct pkt *show, const uint8_t *b, uint32_t len);
/* `cmd` offers memory from `va` on; of how many bytes was not captured. */
void ulp_offer_untold(struct ulp_command *cmd, enum ulp_dir dir, uint32_t rkey, uint64_t va);
/* A READ or WRITE of memory that no command offered (ulp_proto.unasked): it belongs to the open command that offered
 * memory of an unknown length there, or to the only one of which the way was `untold`, if all that the client sent so
 * far was captured. False: there is none, or there are several. */
bool ulp_give_untold(struct ulp_conn *c, const struct ulp_unasked *u);
/* Likewise ulp_begin() of a command whose identifier was not captured: no response has its key. */
struct ulp_command *ulp_begin_nameless(struct ulp_conn *c, struct ulp_message *m);
/* The command that a response answers whose identifier was not captured: the only one that `fits` it. It is known
 * if the response invalidates the command's memory, or if all that the client sent was captured and each response so
 * far is known to be that of one command. NULL: it is not. */
enum ulp_fit {
    ULP_FITS_NOT,
    ULP_MAY_HIDE, /* requests behind it may be cut, and the response be that of one of them */
    ULP_FITS
};
typedef enum ulp_fit ulp_fits(const struct ulp_command *cmd, const struct ulp_message *m);
struct ulp_command *ulp_find_nameless(struct ulp_conn *c, const struct ulp_message *m, ulp_fits *fits);
/* The open command with this key; NULL: none. */
struct ulp_command *ulp_find(struct ulp_conn *c, uint64_t key);
/* The command with this key whose message was not captured so far; or NULL. If it was completed, its response
 * opens it again. */
struct ulp_command *ulp_find_headless(struct ulp_conn *c, uint64_t key);
/* The latest command with this key that was completed and is still kept; NULL: none. */
struct ulp_command *ulp_find_completed(struct ulp_conn *c, uint64_t key);
/* Message `m` says that bytes [from, to) of the memory of `cmd` are written: WRITEs before it whose first packets are
 * missing are those of them that are not. */
void ulp_written(struct ulp_conn *c, const struct ulp_message *m, const struct ulp_command *cmd, uint32_t from,
                 uint32_t to);
/* Message `m` is the response to `cmd`. */
void ulp_complete(struct ulp_conn *c, struct ulp_command *cmd, const struct ulp_message *m, uint16_t status,
                  bool failed);

/* One for each protocol, in its file. */
extern const struct ulp_proto ulp_nvme, ulp_rpcrdma, ulp_iser, ulp_srp, ulp_smbd, ulp_smc, ulp_rtrs, ulp_rping, ulp_rds,
    ulp_lnet, ulp_p9, ulp_perftest;

#endif
