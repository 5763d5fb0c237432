/* layer 3 (storage): storage protocols as traffic, over any provider of the verbs: the end that asks (NVMe host, RPC
 * client, iSCSI initiator) or the one that serves. The same program runs in a simulation and on a real network: its
 * driver moves frames and timers and calls storage_step() whenever something may have happened.
 *
 *     storage.c   connection management, the order of things, failures     storage_kinds[]: the protocols
 *     link.c      one connection: receives, SENDs, READs, WRITEs, memory that is lent to the peer
 *     work.c      what the asking end reads and writes, and what must come back
 *     nvme_*.c    one protocol: an end is a struct storage_role; discovery.c: the discovery log page
 *     iser_*.c    likewise; iscsi.c: what both of its ends agree on
 *     nfs_*.c     likewise; rpc.c: what both of its ends agree on
 *
 * The asking end writes `iters` blocks of `size` bytes (unless it only reads), then reads them and compares them with
 * what it wrote. The serving end keeps them in memory. What a peer sends is never trusted: lengths, addresses and
 * counts are checked, and a peer that breaks the protocol is disconnected. */
#ifndef RDMATRACE_GEN_STORAGE_STORAGE_H
#define RDMATRACE_GEN_STORAGE_STORAGE_H

#include "gen/verbs/rdmacm.h"

#define STORAGE_LINKS     64 /* connections of an end, at most */
#define STORAGE_SIZE_MAX  (1u << 20)
#define STORAGE_DEPTH_MAX 128
#define STORAGE_NAME_MAX  223 /* bytes of an NQN */

struct storage;
struct link;

/* Settings of an end; those of the asking end do not matter to the serving one, and the other way round. */
struct storage_config {
    bool server;            /* it serves */
    bool persistent;        /* serve one client after another; false: end after the first */
    uint16_t port;          /* of RDMA-CM; 0: the protocol's */
    uint16_t mtu;           /* path MTU in bytes; 0: the largest that the port allows */
    uint64_t seed;          /* of the data */
    uint64_t room;          /* serving: bytes of storage */
    uint8_t gid[16];        /* asking: whom; serving: this end's address, as NVMe's discovery log page tells it */
    bool write;             /* write, before reading; else nothing is known of what is read */
    uint64_t iters;         /* blocks */
    uint32_t size;          /* bytes of a block, up to STORAGE_SIZE_MAX */
    uint32_t depth;         /* commands outstanding on a connection, up to STORAGE_DEPTH_MAX */
    uint32_t queues;        /* connections that carry reads and writes: I/O queues */
    uint32_t queue_size;    /* NVMe: entries of a queue, more than `depth` */
    ns_t timeout;           /* asking: longest silence of the peer */
    bool discover;          /* NVMe, asking: read the discovery log page, and no blocks: `iters` is 0 */
    const char *nqn;        /* NVMe: name of the subsystem */
    const char *hostnqn;    /* NVMe: name of the host */
    const char *targetname; /* iSER: name of the target */
    const char *file;       /* NFS: name of the file */
    const uint8_t *fh;      /* NFS: handle of its directory, fh_len bytes; fh_len 0: our server's */
    uint32_t fh_len;
};

struct storage_result {
    uint64_t sessions;           /* serving: clients that have come and gone */
    uint64_t commands;           /* asked, or served, other than reads and writes */
    uint64_t writes, reads;      /* commands completed with success */
    uint64_t written, read;      /* bytes of these */
    uint64_t failed;             /* commands with an error status */
    uint64_t compared, differed; /* reads whose data was known, and of these those with other data */
    ns_t start, end;             /* first read or write asked for, last one completed */
    ns_t min, max;               /* asking: latencies of reads and writes */
    unsigned __int128 sum;
};

/* What a client says of itself in the REQ, and what the serving role makes of it. */
struct link_want {
    uint32_t slots;           /* receives, and buffers for SENDs */
    uint32_t in, out;         /* bytes of a receive, of a SEND */
    uint32_t posts;           /* work requests outstanding, at most, in the send queue */
    void *user;               /* becomes link.user */
    uint8_t private_len;      /* bytes of ... */
    uint8_t private_data[32]; /* ... what goes along with REQ, REP or REJ */
};

/* One end of a protocol. All functions get the time. Those that may be NULL have nothing to do, unless it is said. */
struct storage_role {
    /* Begin: the asking end connects; s->state, if it is needed, is free()d behind the last connection. 0 or a negative
     * errno. May be NULL. */
    int (*open)(struct storage *s, ns_t now);
    /* Serving: a REQ came; fill *w. False: refuse, with the private data of *w. */
    bool (*request)(struct storage *s, const struct rdmacm_event *e, struct link_want *w);
    /* The connection is there; `private_data`: that of the REP, on the asking end. May be NULL. */
    void (*up)(struct link *l, const uint8_t *private_data, uint32_t len, ns_t now);
    /* A message of `len` bytes arrived in receive `slot`, which is posted again by link_receive(). */
    void (*message)(struct link *l, unsigned slot, const struct wc *wc, ns_t now);
    /* The SEND from buffer `slot` completed (NULL: its receive is posted again); the READ or WRITE that link_move() was
     * given `slot` for did. */
    void (*sent)(struct link *l, unsigned slot, ns_t now);
    void (*moved)(struct link *l, unsigned slot, ns_t now);
    /* The connection is gone, and `l` goes when this returns. */
    void (*down)(struct link *l, ns_t now);
};

struct storage_kind {
    const char *name; /* "nvme" */
    uint16_t port;    /* its usual one */
    uint32_t block;   /* sizes are multiples of so many bytes */
    bool queues;      /* there may be several connections, each with a queue of a size */
    const struct storage_role *client, *server;
};
/* By name, NULL: there is none. storage_kinds[] ends with NULL. */
extern const struct storage_kind *const storage_kinds[];
const struct storage_kind *storage_kind_find(const char *name);

struct storage {
    struct storage_config c;
    const struct storage_kind *kind;
    const struct storage_role *role;
    struct verbs *verbs;
    uint32_t pd;
    int channel, listener; /* listener: -1: none */
    struct link *link[STORAGE_LINKS];
    unsigned n_links;
    uint64_t iova;     /* address of the next region */
    void *state;       /* the role's */
    struct {           /* the work of the asking end (work.c) */
        uint64_t room; /* bytes of the peer's storage */
        uint64_t next; /* block that comes next */
        uint64_t open; /* commands outstanding */
        bool reading;  /* all is written */
    } work;
    uint8_t *disk; /* serving: c.room bytes */
    uint64_t disk_iova;
    uint32_t disk_key;
    ns_t heard;   /* when the peer was last heard of */
    bool leaving; /* the asking end is ready, or has failed */
    ns_t left;    /* when it began to leave */
    bool failed;
    char why[200];                      /* then: the first reason */
    void (*joined)(void *user, int qp); /* a connection is there; may be NULL */
    void (*served)(void *user);         /* serving: a client has gone; may be NULL */
    /* Asking, discover: an entry of the log page (gen/storage/discovery.h); may be NULL. */
    void (*found)(void *user, const uint8_t *entry);
    void *user;
    struct storage_result r;
};

/* Open an end: 0 or a negative errno; storage_close() in either case. `s` must not move. */
int storage_open(struct storage *s, const struct storage_kind *kind, const struct storage_config *c,
                 struct verbs *verbs, ns_t now);
void storage_close(struct storage *s);
/* Take events and completions, and post what follows. */
void storage_step(struct storage *s, ns_t now);
/* When storage_step() must be called again although nothing happens; NS_NEVER. */
ns_t storage_next(const struct storage *s);
/* Whether all is done: s->failed and s->r tell how. */
bool storage_done(const struct storage *s, ns_t now);
/* Fail with a reason, unless it has failed already, and leave. */
void storage_fail(struct storage *s, ns_t now, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Disconnect. */
void storage_leave(struct storage *s, ns_t now);
/* Register memory of an end: its address for the peer is *iova. 0 or a negative errno. */
int storage_register(struct storage *s, void *mem, uint64_t len, uint8_t access, uint64_t *iova, uint32_t *key);

/* --- Work (work.c) ---------------------------------------------------------------------------- */

/* A read or a write. */
struct storage_io {
    bool write;
    uint64_t offset; /* bytes in the storage */
    uint32_t len;
    ns_t began;
};
/* The next one; false: there is none now. */
bool work_next(struct storage *s, struct storage_io *io, ns_t now);
/* The data of a write. */
void work_fill(const struct storage *s, const struct storage_io *io, uint8_t *mem);
/* It completed; `good`: with success. `mem`: the data of a read. */
void work_done(struct storage *s, const struct storage_io *io, bool good, const uint8_t *mem, ns_t now);
/* Whether all are complete. */
bool work_over(const struct storage *s);

#endif
