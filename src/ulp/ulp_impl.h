/* layer 2b (ulp): internal: connections, commands, messages under way. */
#ifndef RDMATRACE_ULP_ULP_IMPL_H
#define RDMATRACE_ULP_ULP_IMPL_H

#include "src/ulp/cover.h"
#include "src/ulp/held/held.h"
#include "src/ulp/proto.h"

#define KEPT_COMPLETED  64   /* completed commands of a connection that retransmissions may still belong to */
#define BUCKETS         256  /* of commands by key, and of memory by R_Key; a power of two */
#define STREAM_BUCKETS  1024 /* of iWARP connections; a power of two */
#define TRIP_BUCKETS    4096 /* of pairs of hosts; a power of two */
#define TRANSFERS       512  /* latest messages, WRITEs and READs of a flow; a power of two */
#define TRANSFERS_FIRST 16   /* likewise at first */
#define ASSEMBLIES      4  /* messages of several packets of a flow that are kept: more than two if some lack packets */
#define EARLY_MAX       8  /* responses of a connection that wait for their commands */
#define STRAYS          64 /* packets of a flow that wait: see struct stray */

struct command;

/* Memory that a command offered. */
struct segment {
    struct command *command;
    struct segment *next, **at; /* in its bucket; what points to it there */
    uint64_t va, base;          /* base: offset of its first byte in what the command moves that way */
    uint32_t rkey, len;
    uint8_t dir, owner; /* enum ulp_dir; enum ulp_side: whose memory it is */
    struct cover cover; /* bytes moved */
};

/* A list of commands, oldest first. */
struct command_list {
    struct command *first, *last;
    uint32_t n;
};

struct command {
    struct ulp_command c; /* first */
    struct command *next; /* in its bucket */
    struct command *older, *newer;
    struct command_list *list;
    struct segment **segments;
    uint32_t n_segments, cap_segments;
    uint64_t offered[ULP_DIRS];
    struct { /* memory of an unknown length that it offered each way: ulp_offer_untold() */
        bool known;
        uint32_t rkey;
        uint64_t va, base; /* base: as segment.base */
    } untold[ULP_DIRS];
    uint64_t lacking[ULP_SIDES]; /* when it began: what of each side (enum ulp_side) the capture lacks */
    uint32_t slot;               /* in ulp_conn.slots */
    uint8_t *kept;               /* the first `keep` bytes that it moves in the way `keep_dir`; NULL: none are kept */
    uint32_t keep;
    uint8_t keep_dir;
    bool keep_handed_out; /* they were complete */
    bool kept_cut;        /* some of them passed, and were not captured */
    struct cover kept_cover;
};

/* Refers to a command that may be gone. */
struct command_ref {
    uint32_t slot;
    uint64_t number; /* 0: none */
};

/* What a side sends in several SENDs. */
struct joined {
    uint8_t *bytes;
    uint32_t len, cap, packets;
    uint32_t lost;    /* bytes behind these that were not captured, or are beyond ULP_MESSAGE_MAX */
    ns_t start;       /* of the first SEND */
    uint64_t lacking; /* what the capture lacked of the side when it began */
};

/* What an iWARP connection has told of the ways to its ends. */
struct trips;
struct stream_trips {
    struct trips *of; /* of its hosts; NULL: nothing so far */
    uint64_t seen[2]; /* times of each host that count in it */
};

struct early;
struct early_data;

struct ulp_conn {
    struct ulp *ulp;
    const struct ulp_proto *proto;
    uint8_t how;                      /* enum ulp_how */
    uint32_t flow[ULP_SIDES];         /* what each side sends; FLOW_NONE: not seen */
    uint32_t conn;                    /* number of the connection */
    uint8_t stream;                   /* of iWARP: 1: the client is the initiator, 2: the responder; 0: not of iWARP */
    const struct iwarp_conn *iwarp;   /* with `stream` */
    uint64_t good, refused;           /* messages that the protocol took, and that it did not */
    const struct stream_trips *trips; /* with `stream` */
    unsigned walks;                   /* refusals that were compared with the memory of all commands */
    bool wrong;                       /* it is another protocol */
    bool sided;                       /* who is the client was told; else it is who sent first */
    bool sure;                        /* the user said it, or a message looked like it; also if no message can tell */
    uint8_t doubts;                   /* until then: the client's messages that did not */
    struct command_list open, done;
    struct command *keys[BUCKETS];
    struct segment *rkeys[BUCKETS];
    struct command **slots; /* NULL: free */
    uint32_t n_slots, free_hint;
    struct joined joined[ULP_SIDES];
    struct early *early[EARLY_MAX];
    unsigned n_early;
    struct early_data *early_data; /* over iWARP: bytes that wait for their commands, the latest first */
    unsigned n_early_data;
    const struct ulp_command *reopen; /* is completed, and ulp_find() opens it again */
    uint32_t vague;            /* responses without an identifier, each to an open command, not known to which one */
    struct command_ref second; /* may have the response at hand: it was completed by one that came before it */
    uint64_t memory;           /* bytes of commands, segments and messages, at most ULP_CONN_BYTES */
    struct ulp_conn *next, *before;
    void *state; /* proto->size bytes */
};

/* A message of several packets. One that lacks packets is delivered when they come, or when it is known that they do
 * not: they were acknowledged, or a response to it was seen. */
struct assembly {
    bool used, delivered;
    bool whole;    /* delivered whole */
    bool clipped;  /* bytes were not captured, or are beyond ULP_MESSAGE_MAX */
    bool headless; /* its first packet was not seen: it begins with a later one, at `psn` */
    uint32_t age;  /* ulp_flow.ages when it began */
    uint32_t psn, mtu;
    uint32_t packets;
    uint32_t cap;
    uint32_t rkey;  /* that its last packet invalidates; 0: none */
    uint64_t total; /* bytes; 0: its last packet was not seen */
    uint64_t frame;
    ns_t start, now;
    ns_t acked;         /* when a response showed that what is not there was delivered; 0: none has so far */
    uint8_t *bytes;     /* `cap` */
    struct cover cover; /* bytes that are there */
    struct cover wire;  /* bytes that passed, captured or not */
    struct command_ref command;
};

enum transfer_kind { TRANSFER_NONE, TRANSFER_SEND, TRANSFER_WRITE, TRANSFER_READ };

/* A message, WRITE or READ of a flow. */
struct transfer {
    uint8_t kind;       /* enum transfer_kind */
    uint32_t psn;       /* its first PSN */
    uint32_t span;      /* PSNs, 0: not known */
    uint32_t rkey, len; /* rkey: of a SEND with Invalidate, too; 0: it has none */
    uint32_t frame;     /* its first packet */
    uint64_t va;
    struct command_ref command;
};

/* A packet of a WRITE whose first packet, with its address, was not seen so far; a response to a READ whose request was
 * not seen so far; data of a command that was not seen so far (ulp_proto.late_commands); or a SEND of one packet that
 * waits (ulp_proto.in_order). */
struct stray {
    struct pkt p; /* with its payload only; it is shown no more */
    struct frame frame;
    uint8_t as;       /* enum seen_as */
    uint64_t lacking; /* what of the other end the capture lacked when it came */
    uint8_t bytes[];
};

/* What one side sends. */
struct ulp_flow {
    struct ulp_conn *conn;
    uint8_t side; /* enum ulp_side */
    uint32_t at;  /* transfer[at % cap] is the oldest, once `at` is larger than `cap` */
    uint32_t cap; /* a power of two, up to TRANSFERS */
    struct transfer *transfer;
    struct assembly assembly[ASSEMBLIES];
    uint32_t ages; /* messages of several packets so far */
    struct stray *stray[STRAYS];
    uint32_t n_strays;
    bool over; /* no more packets come: nothing waits */
};

/* What the latest message of an end looked like, while the protocol is not known. */
struct ulp_looked {
    uint8_t proto; /* place in the list of protocols plus 1; 0: of none */
    uint8_t looks; /* enum ulp_looks; with `proto` */
};

/* What was seen of a flow whose protocol is not known. */
struct guess {
    uint8_t tries;          /* messages looked at; GUESS_TRIES: no more are */
    struct ulp_looked last; /* what the latest one looked like */
    uint8_t cut;            /* messages that a snap length cut, of those whose protocol is not known */
    bool unnamed : 1;       /* neither --ulp nor the setup of its connection names a protocol */
    bool refuted : 1;       /* likewise: what they named is not what the messages look like */
    uint64_t moved;         /* bytes of its WRITEs, and of responses to its READs, before its protocol was known */
    struct held_flow *held; /* packets from a message on that looks like a protocol; NULL: none */
};
#define GUESS_TRIES 32

#define ULP_SHOWN_MAX (ULP_MESSAGE_MAX + ULP_DATA_MAX + 64)

struct ulp_stream; /* an iWARP connection */
struct known_req;  /* REQs whose REP is to be shown */
struct rmpp_state; /* RMPP transfers under way */

struct ulp {
    struct observer *observer;
    struct ulp_opts opts;
    struct ulp_flow **flows;   /* observer_flows() */
    struct guess *guesses;     /* likewise */
    uint32_t n_held;           /* flows with packets that are kept until the protocol is known */
    uint64_t held_places;      /* of such packets so far */
    bool held_again;           /* they are being taken */
    struct trips **flow_trips; /* likewise: of its hosts; NULL: it has no response so far */
    struct trips *trips[TRIP_BUCKETS];
    struct ulp_conn *conns;
    struct ulp_stream *streams[STREAM_BUCKETS]; /* by their connections */
    uint64_t numbers;
    struct ulp_refusal refused; /* the latest that no command's memory explains */
    uint64_t zeroed;            /* the frame of the latest message of ulp_sums.zeroed */
    struct ulp_sums sums;
    struct known_req *reqs;  /* NULL unless packets are shown */
    struct rmpp_state *rmpp; /* likewise */
    struct buf text;         /* of pkt_note.ulp */
    uint8_t *shown_bytes;    /* copy of the message shown, and of more bytes: ULP_SHOWN_MAX */
    uint32_t n_shown;        /* bytes of it in use */
    uint64_t said_in;        /* frame of the latest message with ulp_message.says */
    bool stream_data;        /* the FPDU of iWARP at hand moves data of a command: */
    uint64_t stream_at;      /* place of its first byte in these */
    uint32_t stream_len;     /* bytes */
    uint64_t behind_in;      /* likewise, of that with ulp_message.behind */
    char said[ULP_SAYS], behind[ULP_SAYS];
};

/* --- command.c -------------------------------------------------------------------------------- */

/* `n` zeroed bytes, counted in the observer's room; NULL: there is none. room_free() releases them. */
void *room_new(struct ulp *u, size_t n);
void room_free(struct ulp *u, void *p, size_t n);
/* Whether the connection may take `n` more bytes, which are then counted, also in the observer's room. */
bool memory_take(struct ulp_conn *c, uint64_t n);
/* They are free again. */
void memory_give(struct ulp_conn *c, uint64_t n);
/* `n` zeroed bytes, taken so; NULL: there is none. Who frees them also calls memory_give(). */
void *memory_new(struct ulp_conn *c, uint64_t n);
struct command *command_of(const struct ulp_conn *c, struct command_ref r);
struct command_ref command_ref(const struct ulp_command *c);
/* Whether [va, va + len) under this key lies in it. */
bool segment_holds(const struct segment *s, uint32_t rkey, uint64_t va, uint32_t len);
/* The memory of `owner` that holds [va, va + len) under this key: the latest offered; NULL: none. */
struct segment *segment_find(const struct ulp_conn *c, enum ulp_side owner, uint32_t rkey, uint64_t va, uint32_t len);
/* The first of the memory with this R_Key, among others. */
struct segment *segments_of(const struct ulp_conn *c, uint32_t rkey);
/* Copy bytes to where layers of a packet find them; without room `len` is 0. */
struct ulp_body shown_put(struct ulp *u, struct pkt *show, const uint8_t *b, uint32_t len);
/* The side of `f` retransmitted a packet of a message that belongs to the command. */
void command_again(struct ulp_flow *f, struct command *d, const struct pkt *p);
/* Bytes of its data came only now. */
void command_late(const struct ulp_conn *c, struct command *d, ns_t now);
/* What a side sent and the capture lacks: packets that were skipped and not sent again, as far as PSNs tell, the first
 * ones of the queue pair (connection setup has told their PSN) as one; of iWARP bytes of the TCP stream, but none of
 * data whose headers were captured. */
uint64_t lacking(const struct ulp_conn *c, enum ulp_side side);
/* Whether all that a side sent so far was captured, from the first request of its queue pair on, as its PSNs or the
 * messages that the other end counts in its first response tell. */
bool has_all(const struct ulp_conn *c, enum ulp_side side);
/* Whether the response of an open command may be among the packets that the capture lacks, and another command with its
 * identifier, too: a response with that identifier is then not known to be its own. */
bool is_doubtful(const struct ulp_conn *c, const struct command *d);
/* An open command is over, for that reason. */
void command_close(struct ulp_conn *c, struct ulp_command *cmd, enum ulp_end why);
/* Hand over all commands. */
void commands_flush(struct ulp_conn *c, enum ulp_end why);

/* The payload of a packet. */
static inline struct ulp_body ulp_payload(const struct pkt *p)
{
    return (struct ulp_body){p->data + p->payload_off, p->payload_cap, p->payload_off, p->payload_len - p->payload_cap};
}

/* --- message.c -------------------------------------------------------------------------------- */

/* A packet of a SEND. Returns the command that it belongs to; NULL: none is known. */
struct command *message_packet(struct ulp_flow *f, const struct pkt *p, enum seen_as as, struct pkt *show);
/* Deliver messages whose last packets did not come, and release what is kept. */
void messages_end(struct ulp_flow *f);
/* Messages that waited for packets before them are delivered, if these have come. */
void messages_release(struct ulp_flow *f);
/* A response to requests of the flow: messages that lack packets which it acknowledges are delivered as they are; those
 * whose latest packets the capture lacks once these are overdue. */
void messages_acked(struct ulp_flow *f, const struct req_dir *h, ns_t now);
/* Deliver those of both sides: a tap that takes the two directions with different delays would have seen their packets
 * by now. */
void messages_overdue(struct ulp_conn *c, ns_t now);
/* Messages of both sides that ended and lack packets are delivered as they are: what was sent next shows that they
 * arrived. Returns whether there were any. */
bool messages_settle(struct ulp_conn *c);
/* Keep what a message of no command says, for its note. */
void message_say(struct ulp *u, const struct ulp_message *m);
/* Release what ulp_join() keeps. */
void joined_free(struct ulp_conn *c);

/* Bytes of a command's data. */
struct moved {
    const uint8_t *b;
    uint32_t len, cap; /* cap: of them captured */
    uint64_t frame;
    ns_t now;
    enum ulp_side by; /* who sent them */
};

/* --- early.c ---------------------------------------------------------------------------------- */

/* A message was delivered; `taken`: it is one of the protocol. A response without a command waits for it. */
void early_message(struct ulp_conn *c, const struct ulp_message *m, bool taken);
/* Bytes that were moved over iWARP, of memory that no command offered so far: they may wait for it. */
struct early_data {
    struct early_data *next;
    struct moved m;
    enum ulp_side of; /* whose memory */
    uint32_t stag;
    uint64_t to, lacking; /* lacking: what the capture lacked of that end when they came */
    uint8_t bytes[];      /* those that were captured */
};
void early_data_keep(struct ulp_conn *c, const struct early_data *d);
/* Whether time stamps of a command, and of what was captured before it, are near to each other. */
bool early_is_near(ns_t a, ns_t b);
/* The connection ends: release what waits. */
void early_end(struct ulp_conn *c);

/* --- transfer.c ------------------------------------------------------------------------------- */

/* Memory of which no message said whether it is to be read or written (ulp_proto.either_way) is for what the first READ
 * or WRITE (`write`) of it does. */
void settle_way(const struct ulp_conn *c, struct segment *s, bool write);
/* Release what is kept. */
void transfers_end(struct ulp_flow *f);
/* Keep a packet; if there are STRAYS, the oldest is forgotten. Forget number `i`. */
void stray_keep(struct ulp_flow *f, const struct pkt *p, enum seen_as as);
struct stray *stray_take(struct ulp_flow *f, uint32_t i);
void stray_free(struct ulp_conn *c, struct stray *s);
/* A command of the other end has begun: packets of flow `f` that came before and moved its data are tied to it. */
void transfers_claim(struct ulp_flow *f);
/* The first packet of WRITE `t`, or the request of READ `t`, is known: packets of it that came before belong to it. */
void strays_give(struct ulp_flow *f, struct transfer *t);
/* The latest transfer with this PSN; NULL: none. */
struct transfer *transfer_find(struct ulp_flow *f, uint32_t psn);
struct transfer *transfer_new(struct ulp_flow *f, enum transfer_kind kind, uint32_t psn);
/* A packet of a WRITE, a READ request, a READ response to a request of flow `f`, a NAK of one. Returns the command;
 * NULL: none. */
struct command *write_packet(struct ulp_flow *f, const struct pkt *p, enum seen_as as, struct pkt *show);
struct command *read_packet(struct ulp_flow *f, const struct pkt *p, enum seen_as as, struct pkt *show);
struct command *read_response(struct ulp_flow *f, const struct pkt *p, enum seen_as as, struct pkt *show);
struct command *nak_packet(struct ulp_flow *f, const struct pkt *p);
/* Data in memory `s`, from byte `at` of what the command moves that way. */
void data_take(struct ulp_conn *c, struct segment *s, uint64_t at, const struct moved *m, struct pkt *show);
/* The command has data in this frame, which `by` sent. */
void data_time(struct ulp_command *c, enum ulp_side by, uint64_t frame, ns_t now);

/* --- headless.c ------------------------------------------------------------------------------- */

/* The transfer of a WRITE whose first packet is missing, and that ends with packet `p`: if that tells how long it is,
 * or only one piece of memory fits. NULL: that is not known. */
struct transfer *headless_find(struct ulp_flow *f, const struct pkt *p);
/* The latest message of flow `f` is the response to the command: a WRITE right before it, whose first packet is
 * missing, moved its data if it fits what they lack. */
void transfers_answered(struct ulp_flow *f, const struct command *d);

/* --- refusal.c -------------------------------------------------------------------------------- */

struct iwarp_unit;
/* A READ or WRITE of memory of `owner` was refused: complete *r, which is in the command then. `asked`: frame of the
 * request, 0: not known. Returns the command; NULL: none offered such memory. */
struct command *refuse_access(struct ulp_conn *c, enum ulp_side owner, struct ulp_refusal *r, uint64_t asked);
/* Count it. */
void refuse_command(struct command *d, const struct ulp_refusal *r);
/* Likewise the SEND with Invalidate that responds to the command. */
struct command *refuse_invalidation(struct command *d, struct ulp_refusal *r);
/* A Terminate: what it refuses; false: no request for memory. */
bool refusal_of_terminate(struct ulp_refusal *r, const struct iwarp_unit *w);

/* --- shares.c --------------------------------------------------------------------------------- */

/* A response to a request that was seen: how long it took. */
void trip_note(struct ulp *u, const struct event *e);
/* What TCP has told of the ways to the ends of an iWARP connection since the last call. */
void trip_note_stream(struct ulp *u, const struct iwarp_conn *c, struct stream_trips *t);
/* A flow or an iWARP connection is gone; `t` may be NULL. */
void trips_give(struct ulp *u, struct trips *t);
void trips_free(struct ulp *u);

/* --- over_iwarp.c ----------------------------------------------------------------------------- */

/* Follow iWARP connections. `shown`: ulp_stream_packet() is called for each packet. False without memory. */
bool ulp_streams_begin(struct ulp *u, bool shown);
/* What the packet completed, after iwarp_show(): adds layers and fills p->note. */
void ulp_stream_packet(struct ulp *u, struct pkt *p);
/* Forget all iWARP connections. */
void ulp_streams_drop(struct ulp *u);

/* --- ulp.c ------------------------------------------------------------------------------------ */

/* An event that was kept: its flow, or the peer, carries a known protocol. */
void ulp_take_held(struct ulp *u, const struct event *e);

/* --- recognise.c ------------------------------------------------------------------------------ */

/* A connection without flows; NULL without memory. */
struct ulp_conn *ulp_conn_make(struct ulp *u, const struct ulp_proto *proto, enum ulp_how how);
/* Hand over its commands, and forget it. */
void ulp_conn_free(struct ulp_conn *c, enum ulp_end why);
/* Whether a message that `looks` like one of protocol number `proto` agrees with the latest one of the same end (`own`)
 * or with that of the other one; one that both ends send agrees with any. */
bool ulp_agrees(struct ulp_looked own, struct ulp_looked other, unsigned proto, enum ulp_looks looks);
/* The flow, if its connection carries a known protocol; NULL: it does not, or it is not known. */
struct ulp_flow *ulp_flow_of(struct ulp *u, uint32_t flow, const struct pkt *p);
/* The protocol that the flow carries, as far as that is known without a look at messages; NULL: it is not. */
const struct ulp_proto *ulp_carried(const struct ulp *u, uint32_t flow, enum ulp_how *how);
/* The flow is another one from now on. */
void ulp_flow_over(struct ulp *u, uint32_t flow, enum ulp_end why);
/* Whether bytes, not few, are all zero: --anonymize replaces payload so, and nothing is known of what it was. */
bool ulp_zeroes(const uint8_t *b, uint32_t len);
/* Likewise of a client's message; it is counted, and its note says so. */
bool ulp_is_zeroed(struct ulp *u, const struct ulp_message *m);
/* The protocol took a message, or did not: it may be another one (ulp_conn.wrong). */
void ulp_judge(struct ulp_conn *c, bool taken);
/* Whether a message, or its first packet if it is not `whole`, looks as the protocol of `c` says: then that is sure.
 * Of zeroes nothing is known: true. */
bool ulp_confirm(struct ulp_conn *c, enum ulp_side side, const uint8_t *b, uint32_t len, bool whole);
/* The protocol of `c` is not sure, and it is not likely either: too many messages looked otherwise. */
bool ulp_doubted(const struct ulp_conn *c);
/* Whether a message of `side` that looks like none is one of the protocol anyway, as long as that is not sure. */
bool ulp_trusted(const struct ulp_conn *c, enum ulp_side side);
/* Whether the user means the connections to port `port` of `listener`; 0: it is not known. */
bool ulp_user_means(const struct ulp_user *s, const struct conn_addr *listener, uint32_t port);
/* Payload: forget the connection. One that was guessed is not guessed again, another one is from its next messages on.
 */
void ulp_drop(struct ulp_conn *c);
/* Forget all connections. */
void ulp_drop_all(struct ulp *u);

/* --- note.c ----------------------------------------------------------------------------------- */

/* Fill the note of a packet of connection `c`, tied to `cmd` (NULL: to none). */
void ulp_note(struct ulp_conn *c, struct pkt *p, const struct command *cmd, const struct event *e);
/* A READ response of which no request of the other end was seen. */
void ulp_note_lone(struct ulp *u, struct pkt *p, uint32_t flow);
/* The same for a packet of iWARP from `side`; `send`: it completes a SEND. */
void ulp_note_stream(struct ulp_conn *c, struct pkt *p, const struct command *cmd, enum ulp_side side, bool send);
/* A CM message: show the private data of a known protocol. */
void ulp_note_setup(struct ulp *u, struct pkt *p);
bool ulp_note_init(struct ulp *u);

/* --- rmpp.c ----------------------------------------------------------------------------------- */

bool ulp_rmpp_init(struct ulp *u);
/* A datagram: show the record of an RMPP transfer that ends in it and began in an earlier one. */
void ulp_note_rmpp(struct ulp *u, struct pkt *p);

/* --- protocols.c ------------------------------------------------------------------------------ */

extern const struct ulp_proto *const ulp_protos[]; /* NULL-terminated */
/* The protocol that may tell a response by that message; NULL: none. */
static inline const struct ulp_proto *ulp_responds_to(unsigned of, unsigned looked)
{
    return of && looked == LOOKS_CLIENT && ulp_protos[of - 1]->responds ? ulp_protos[of - 1] : NULL;
}

#endif
