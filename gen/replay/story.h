/* layer 3 (replay): what the two ends of a connection did, read from a capture: the work requests of one end, the
 * messages of the other one, and the memory that the first end gave access to.
 *
 *     packets  ->  struct half (each end: requests, responses)  ->  struct story (work requests, messages, memory)
 *
 * Only what the requesters sent for the first time counts: a story has no retransmissions. Bytes that the capture lacks
 * are 0, and counted. */
#ifndef RDMATRACE_GEN_REPLAY_STORY_H
#define RDMATRACE_GEN_REPLAY_STORY_H

#include "buf.h"
#include "src/conn/conn.h"
#include "src/transport/verbs.h"

#define STORY_BYTES   (UINT64_C(1) << 30) /* of payload and memory, at most; a longer story ends there */
#define STORY_REGIONS 4000                /* R_Keys of our end that the peer used, at most */
#define STORY_HASH    (2 * STORY_REGIONS)
#define STORY_NONE    UINT32_MAX       /* no index */
#define STORY_PRIVATE (UINT32_MAX - 1) /* in place of a message: the private data of the peer's REQ or REP */

/* A place where an R_Key stands in bytes, with an address beside it. */
struct story_place {
    uint32_t key_at; /* offset of the key, 4 bytes */
    uint32_t va_at;  /* offset of the address, 8 bytes; STORY_NONE: there is none beside it */
    bool little;     /* both are little-endian, else big-endian */
};

/* A work request of our end. */
struct story_op {
    uint8_t opcode;             /* enum wr_opcode */
    bool solicited;             /* with Solicited Event */
    ns_t at;                    /* of its first packet */
    uint64_t frame;             /* likewise */
    uint32_t len;               /* bytes of the message; of a READ, those asked for; atomics: 8 */
    uint64_t data;              /* offset in story.bytes: SEND, WRITE: the data; READ, atomic: what the peer returned */
    uint32_t imm;               /* WITH_IMM: immediate data; WITH_INV: the peer's R_Key */
    uint64_t va;                /* WRITE, READ, atomics: the peer's address */
    uint32_t rkey;              /* likewise its R_Key */
    uint64_t compare_add, swap; /* atomics, as in struct send_wr */
    uint32_t needs;             /* messages of the peer's that had arrived when it was sent */
    uint32_t needs_reads;       /* READs and atomics of our end that had been answered when it was sent */
    uint64_t answered;          /* READ, atomic: frame of the last response; 0: it was not captured */
    uint32_t named; /* the message of the peer's that names `rkey`, STORY_PRIVATE: its private data, STORY_NONE: none */
    struct story_place named_at; /* where in it, and */
    uint64_t named_va;           /* the address beside it; named by none: the lowest one of all such with its key */
    bool whole;                  /* READ, atomic: all that the peer returned was captured */
};

/* Whether it is a READ or an atomic, other than ATOMIC WRITE. */
static inline bool story_op_fetches(const struct story_op *op)
{
    return op->opcode >= WR_RDMA_READ && op->opcode <= WR_ATOMIC_FETCH_AND_ADD;
}

/* Whether it names memory of the peer's. */
static inline bool story_op_remote(const struct story_op *op)
{
    return op->opcode >= WR_RDMA_WRITE && op->opcode <= WR_ATOMIC_WRITE;
}

/* A message that takes a receive of ours: SEND, or WRITE with immediate data. */
struct story_msg {
    ns_t at;        /* of its last packet */
    uint64_t frame; /* likewise */
    uint32_t len;   /* bytes */
    uint64_t data;  /* offset in story.bytes */
    bool is_send;   /* else a WRITE, whose data is not in a receive */
    bool whole;     /* all of it was captured */
};

/* Memory of our end that the peer used by one R_Key. */
struct story_region {
    uint32_t rkey;
    uint64_t from, to; /* addresses, [from, to) */
};

/* What the peer READs from our memory: it must be there when our work request `before` is posted. */
struct story_put {
    uint32_t before; /* index of a work request; 0 also before the first message */
    uint32_t region; /* index */
    uint64_t va;     /* first address */
    uint32_t len;    /* bytes */
    uint64_t data;   /* offset in story.bytes */
};

/* A place in our messages that names memory of ours. */
struct story_own {
    uint32_t op;     /* index of the work request; STORY_NONE: the private data of our REQ or REP */
    uint32_t region; /* index */
    struct story_place at;
};

/* An array of items, counted. */
#define STORY_LIST(type, name)                                                                                         \
    type *name;                                                                                                        \
    uint32_t n_##name, room_##name
struct story {
    struct conn_addr addr[2]; /* our end, the peer */
    uint32_t qpn[2];          /* likewise */
    bool active;              /* our end sent the REQ, or without CM the first request */
    uint16_t mtu;             /* path MTU, bytes; 0: not known */
    uint8_t depth[2];         /* READs and atomics outstanding that each end had at most */
    bool cm;                  /* REQ and REP were captured: */
    uint64_t service;         /* service id of the REQ */
    uint8_t
        private_len[2]; /* bytes of private data of our REQ or REP, and of the peer's, behind RDMA-CM's own header */
    uint8_t private_data[2][224];
    bool disconnected; /* our end sent a DREQ */
    STORY_LIST(struct story_op, ops);
    STORY_LIST(struct story_msg, msgs);
    STORY_LIST(struct story_region, regions);
    uint16_t region_of[STORY_HASH];     /* index + 1 of a region by its key, 0: none; see story_region_of() */
    STORY_LIST(struct story_put, puts); /* by `before` */
    STORY_LIST(struct story_own, owns); /* by `op`, those of private data first */
    struct buf bytes;
    uint32_t longest;  /* bytes of the longest SEND of msgs */
    uint64_t missing;  /* bytes of messages and memory that the capture lacks */
    uint64_t left_out; /* requests that are not in the story: their first packet is missing, or their kind is unknown */
    bool cut;          /* the story was too long */
    bool torn;         /* the file could be read in part only: the story is of that */
};

struct story_opts {
    const char *path; /* of the capture */
    uint32_t conn;    /* number of the connection, as `rdmatrace` prints it; 0: the first that has requests */
    bool passive;     /* our end is the passive side */
    bool no_icrc;     /* take packets whatever their ICRC is: captured before it was inserted */
};

/* Read a story. 0; -ENOENT: no such connection, or none with requests; -ENOTSUP: it is none of RC; another negative
 * errno: the file cannot be read. On failure, and if s->torn, *why gets a line without a newline. story_free() in
 * either case. */
int story_read(struct story *s, const struct story_opts *o, struct buf *why);
void story_free(struct story *s);

/* --- For the files of this room ----------------------------------------------------------------- */

/* A packet of one end. */
struct story_packet {
    int64_t psn; /* on a line that goes on where PSNs wrap */
    uint8_t op5; /* lower five bits of the opcode */
    bool solicited;
    ns_t at;
    uint64_t frame;
    uint64_t data;     /* offset in story.bytes */
    uint32_t len, cap; /* bytes of payload; those captured */
    uint32_t imm;      /* immediate data, or R_Key of an IETH */
    uint64_t va;       /* of a RETH or AtomicETH */
    uint32_t rkey;     /* likewise */
    uint32_t dmalen;   /* of a RETH */
    uint64_t compare_add, swap;
};
struct story_packets {
    struct story_packet *p;
    size_t n, room;
};

/* What one end sent: [0] requests, [1] responses to the other end's. */
struct story_half {
    struct story_packets sent[2];
};

/* Make the story of the packets of our end, and of the peer. False without memory. */
bool story_build(struct story *s, struct story_half half[2]);
/* Find where messages name memory: `owns`, and story_op.named. False without memory. */
bool story_keys(struct story *s);
/* The place in region_of of the region with this key, or where it would be. */
uint16_t *story_region_of(struct story *s, uint32_t rkey);
/* Room for one more item of a list: false without memory. */
bool story_room(void **list, uint32_t n, uint32_t *room, size_t size);

#endif
