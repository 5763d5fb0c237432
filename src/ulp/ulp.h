/* layer 2b (ulp): upper protocols: what commands the packets of a connection belong to.
 *
 * It takes events of an observer (src/conn), which knows retransmissions and gaps, and keeps for each connection
 *   - which protocol it carries, and how that was learnt;
 *   - SENDs of several packets, put together;
 *   - the commands (calls, requests) that are open, and the memory that each has offered: READs and WRITEs are tied to
 *     a command because they lie within memory that it offered.
 *
 *     CM, --ulp, first bytes -> protocol     SEND packets -> message -> its state file -> command, memory
 *                                            RETH         -> memory  -> command: bytes moved, frames, times
 *
 * Bounds: a message of more than ULP_MESSAGE_MAX bytes is decoded up to there. A connection has at most
 * ULP_COMMANDS_MAX commands (the oldest is given up), each with ULP_SEGMENTS_MAX pieces of memory and ULP_DATA_MAX
 * bytes of data that are kept to be decoded; all of that and the messages under way
 * take at most ULP_CONN_BYTES. These bytes, the connections themselves and what is remembered of their packets count in
 * the observer's room, half of --memory: where it is full, no connection begins to be decoded and no command is kept.
 * TCP streams have bounds of their own (src/iwarp/iwarp.h). */
#ifndef RDMATRACE_ULP_ULP_H
#define RDMATRACE_ULP_ULP_H

#include "dissect/ulp/ulp.h"
#include "src/conn/annotate.h"
#include "src/conn/observer.h"

#define ULP_MESSAGE_MAX  65536 /* bytes of a message that are kept */
#define ULP_COMMANDS_MAX 4096  /* commands of a connection, open or just completed */
#define ULP_SEGMENTS_MAX 256   /* pieces of memory of one command */
#define ULP_DATA_MAX     16384 /* bytes of a command's data that are kept to be decoded */
#define ULP_CONN_BYTES   (UINT64_C(8) << 20)
#define ULP_USERS        64 /* options --ulp */

struct ulp_conn;
struct iwarp_conn;

/* Ways of a command's data. */
enum ulp_dir { ULP_TO_CLIENT, ULP_FROM_CLIENT, ULP_DIRS };

/* Why a command has no response. */
enum ulp_end {
    ULP_OPEN,      /* none so far, and at the end of the capture: none was captured */
    ULP_COMPLETED, /* it has one */
    ULP_REUSED,    /* its identifier was used again before a response was seen */
    ULP_GIVEN_UP,  /* too many commands were open */
    ULP_LEFT,      /* the connection ended, or its flow was evicted */
    ULP_DOUBTFUL,  /* a response with its identifier may be that of another command: the capture lacks packets */
    ULP_CUT,       /* the snap length cut identifiers: which response is its is not known, nor whether it has one */
    ULP_ONE_END,   /* one end alone was captured: it may be the client, or the server that answers */
};
/* "", "identifier used again without a response" ... */
const char *ulp_end_str(enum ulp_end e);

/* What of a request for memory the responder refused (remote access error), as far as the offers of commands tell. */
enum ulp_fault {
    ULP_NO_FAULT,     /* nothing was refused */
    ULP_UNKNOWN_RKEY, /* no command offered this R_Key, or only this memory */
    ULP_WRONG_RKEY,   /* a command offered the memory with another R_Key */
    ULP_STALE_RKEY,   /* the command that offered it had its response before */
    ULP_RANGE,        /* bytes outside of what the command offered with this R_Key */
    ULP_DIRECTION,    /* a READ of memory that was offered for WRITEs, or the other way round */
    ULP_AS_OFFERED,   /* a command offered just this: its owner has not registered it so */
};
/* For programs: "", "unknown_rkey", "wrong_rkey", "stale_rkey", "range", "direction", "as_offered". */
const char *ulp_fault_str(enum ulp_fault f);
/* In words: "wrong R_Key". */
const char *ulp_fault_words(enum ulp_fault f);

enum ulp_op { ULP_OP_READ, ULP_OP_WRITE, ULP_OP_INVALIDATE };

struct ulp_refusal {
    uint64_t frame;  /* of the NAK, or of iWARP's Terminate; 0: nothing was refused */
    uint8_t fault;   /* enum ulp_fault */
    uint8_t op;      /* enum ulp_op */
    bool for_writes; /* the memory below was offered for WRITEs, else for READs */
    uint32_t rkey, len;
    uint64_t va;                        /* the request's memory */
    uint32_t offered_rkey, offered_len; /* what the command offered: unless ULP_UNKNOWN_RKEY */
    uint64_t offered_va;
    uint64_t response; /* of ULP_STALE_RKEY: frame of the command's response */
};
/* Append "WRITE of 512 bytes at 0x1000 with R_Key 0x1235: wrong R_Key, the command offered 0x1234". */
void ulp_refusal_text(struct buf *b, const struct ulp_refusal *r);

#define ULP_OWN  104 /* bytes of a command that belong to its protocol */
#define ULP_MARK 120 /* bytes of a command that belong to ulp_opts.timed() */

/* A command, call or request, and what belongs to it. Frames are those of the capture, 0: none. */
struct ulp_command {
    uint64_t number; /* from 1, in the order in which they began */
    uint64_t key;    /* by which the response names it */
    uint64_t frame;  /* its message: the last packet of it */
    uint64_t data_first, data_last, response;
    ns_t start;                   /* first packet of its message */
    ns_t sent;                    /* latest packet of its message, retransmissions included */
    ns_t data_start, data_end;    /* first and last packet of its data; with data_first */
    ns_t end;                     /* with `response` */
    uint64_t response_again;      /* the latest frame in which its response was retransmitted; 0: it was not */
    ns_t end_again;               /* of that frame */
    uint64_t requested[ULP_DIRS]; /* bytes that it offered to be moved */
    bool untold[ULP_DIRS];        /* of these some, or all, were in bytes of its message that were not captured */
    uint64_t moved[ULP_DIRS];     /* bytes seen, each counted once; those in its message included */
    uint64_t packets;             /* of its message, data and response, retransmissions included */
    uint64_t again;               /* of them retransmissions */
    uint64_t naks;                /* remote access errors of its data */
    struct ulp_refusal refusal;   /* the first of them; with `naks` */
    uint32_t flow; /* of the client's packets (of the server's, if no other was seen); FLOW_NONE: of iWARP */
    uint8_t first_by, last_by; /* with data_first: who sent the first and the last packet of its data (enum ulp_side) */
    uint8_t stream;            /* of iWARP: 1: the client is the initiator, 2: the responder */
    uint32_t conn;             /* number of the connection */
    uint16_t status;           /* of the response, as the protocol has it; with `response` */
    bool failed;               /* the response says so */
    bool unread;               /* it has a response, and whether that says so was not captured, or cannot be read */
    bool early; /* packets before its response were missing: it counts when these have come, or when it comes again */
    bool idle;  /* it only offers memory: it is handed over once bytes were moved or refused, or with a response */
    bool waits; /* its response comes once something happens, which may be never */
    bool foretold;  /* its response was captured before it */
    bool by_server; /* the server sent it, and the client answers: a callback */
    /* its message was not captured: `frame` and `start` are those of its first data; or none of its data, with which it
     * begins: those of its response */
    bool headless;
    bool sideless; /* who is the client is not known: it is taken to be who sent first */
    bool nameless; /* its identifier was not captured: `key` says nothing */
    uint8_t ended; /* enum ulp_end */
    bool unseen;   /* no response was seen, and the capture lacks packets of its sender: it may be among them */
    const struct ulp_proto *proto;
    const struct ulp_conn *at;
    uint8_t own[ULP_OWN];   /* of the protocol */
    uint8_t mark[ULP_MARK]; /* of ulp_opts.timed(); 0 at first */
};

/* A value of a command for programs. */
struct ulp_value {
    const char *name; /* of the protocol: "nsid" */
    const char *text; /* NULL: it is `number` */
    uint64_t number;
    bool known;
};
typedef void ulp_take(void *user, const struct ulp_value *v);

/* How a protocol was learnt. */
enum ulp_how {
    ULP_NOT,
    ULP_BY_USER,
    ULP_BY_PRIVATE,
    ULP_BY_SERVICE,
    ULP_BY_BYTES,
    ULP_BY_MPA,
    ULP_BY_PORT,
    ULP_BY_CLC
};
/* "--ulp", "CM private data", "CM service id", "first bytes", "MPA private data", "TCP port", "SMC CLC". */
const char *ulp_how_str(enum ulp_how h);

/* Bytes that READs and WRITEs moved in connections with a protocol. */
struct ulp_sums {
    uint64_t commands;     /* begun */
    uint64_t tied, untied; /* bytes of a command; of none */
    uint64_t messages;     /* SENDs of which the protocol made nothing */
    uint64_t holes;        /* messages decoded up to a hole only */
    uint64_t cut;          /* messages of which the snap length cut what would tie them to a command */
    uint64_t cut_unknown;  /* messages that it cut, of connections whose protocol they do not tell */
    uint64_t refused;      /* requests for memory that no command offered, refused */
    uint64_t zeroed;       /* messages of clients of which every byte is zero, as --anonymize makes them */
};

/* Connections whose protocol the user states. */
struct ulp_user {
    bool any;              /* of any address, by `number` as a port */
    struct conn_addr addr; /* of an end; unless `any` */
    /* its QPN; or the port at which it listens: that of the RDMA IP CM service, or of TCP (iWARP) */
    uint32_t number;
    const struct ulp_proto *proto;
};

struct ulp_users {
    struct ulp_user user[ULP_USERS];
    unsigned n;
};

struct ulp_opts {
    const struct ulp_users *users; /* --ulp; NULL: none */
    void *user;
    /* a command is over: it will not change; may be NULL */
    void (*over)(void *user, const struct ulp_command *c);
    /* its response came, or came again: what the latest packets tell of its time is still known. May be NULL */
    void (*timed)(void *user, struct ulp_command *c);
};

struct ulp;
/* For the events of `o`; it subscribes (observer_subscribe()), unless `shown`: then call ulp_packet() for each packet.
 * NULL without memory. */
struct ulp *ulp_new(struct observer *o, const struct ulp_opts *opts, bool shown);
void ulp_free(struct ulp *u);
/* All packets are there: hand over what is open. */
void ulp_finish(struct ulp *u);
/* A packet with its event, after the evidence has changed: adds layers and fills p->note. */
void ulp_packet(struct ulp *u, struct pkt *p, const struct event *e);
/* The packets of `c` get layers and notes of their upper protocols; what is kept for that is released with `c`. False
 * without memory. */
bool ulp_of_context(struct context *c, const struct ulp_opts *opts);
const struct ulp_sums *ulp_sums(const struct ulp *u);

/* The protocol with this name ("NVMe/RDMA") or word ("nvme"), of `n` bytes; NULL: there is none. */
const struct ulp_proto *ulp_named(const char *name, size_t n);

/* What a packet, taken alone, may make known: that the connections between its addresses, or those between any, carry a
 * protocol that looks at payload. */
enum ulp_asks { ULP_ASKS_NOT, ULP_ASKS_PAIR, ULP_ASKS_ANY };
enum ulp_asks ulp_asks(const struct pkt *p);
/* Append the words of all protocols: "nvme, ...". */
void ulp_words(struct buf *b);
/* The protocol's name: "NVMe/RDMA". */
const char *ulp_name(const struct ulp_proto *p);

/* Whether it is known how many bytes it offered that way, and how many were moved. */
static inline bool ulp_asked_known(const struct ulp_command *c, enum ulp_dir dir)
{
    return !c->untold[dir];
}
static inline bool ulp_moved_known(const struct ulp_command *c, enum ulp_dir dir)
{
    return !c->untold[dir] || c->moved[dir];
}

/* The command's name, the command, how it ended: "Write", "Write cid 0x3 nsid 1 slba 300 nlb 8", "Successful
 * Completion". */
void ulp_command_name(struct buf *b, const struct ulp_command *c);
void ulp_command_text(struct buf *b, const struct ulp_command *c);
void ulp_status_text(struct buf *b, const struct ulp_command *c);
/* Its values for programs. */
void ulp_command_values(const struct ulp_command *c, ulp_take *take, void *user);
/* Parts of a command's time, from the first packet of its message to its response; without data only the last one. */
enum ulp_part { ULP_BEFORE_DATA, ULP_DATA, ULP_AFTER_DATA, ULP_PARTS };
/* Whose time the latency of a command was: together that is end - start. */
struct ulp_shares {
    bool known;   /* it has a response, and the round trips that it needs were seen */
    bool bound;   /* the way to an end was seen once, which may hold time of the end: `network` is at most so long */
    ns_t server;  /* between what came to the server and what it sent next, without the network */
    ns_t client;  /* likewise of the client, in which the server waited: before the responses to its READs */
    ns_t network; /* on the way from the tap to an end and back, as often as an end had to react; what was lost there */
    ns_t transfer; /* packets of the data followed each other */
};
/* The way from the tap to an end and back is the shortest time from a request of the transport to its response (ACK, or
 * READ response; of iWARP: from a segment of TCP to its ACK) so far, of all connections between the two hosts in which
 * that end responds, with the time in which its adapter makes the response. At a tap next to the server it is short,
 * and `network` has only what its READs wait for. `lost`: of each part, the time that was lost on the way, such as that
 * of a retransmission. Only in the functions of ulp_opts. */
struct ulp_shares ulp_command_shares(const struct ulp_command *c, const ns_t lost[ULP_PARTS]);
enum ulp_how ulp_command_how(const struct ulp_command *c);
/* What the client of its connection sends, or the server; FLOW_NONE: none was seen, or it is iWARP. Only in the
 * functions of ulp_opts. */
uint32_t ulp_command_flow(const struct ulp_command *c, bool server);
/* Its iWARP connection, in which the client is the initiator if c->stream is 1; NULL: it has none. Likewise. */
const struct iwarp_conn *ulp_command_stream(const struct ulp_command *c);

#endif
