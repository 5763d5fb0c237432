/* layer 3 (agent): the objects of a client, named `pd1`, `qp7`: bounded in number, and all of them destroyed in the
 * right order when the client goes. */
#ifndef RDMATRACE_GEN_AGENT_OBJECTS_H
#define RDMATRACE_GEN_AGENT_OBJECTS_H

#include "gen/rnic/rnic.h"

/* In the order in which they are destroyed: none is needed by one behind it. Windows go before the queue pairs that
 * they are bound to: while one is bound, soft-RoCE of Linux 6.1 waits for up to 20 s before it destroys the queue pair.
 */
enum object_kind {
    OBJECT_ID,
    OBJECT_FLOW,
    OBJECT_MW,
    OBJECT_QP,
    OBJECT_MR,
    OBJECT_DM,
    OBJECT_AH,
    OBJECT_SRQ,
    OBJECT_CQ,
    OBJECT_CHANNEL,
    OBJECT_XRCD,
    OBJECT_PD,
    OBJECT_MEM,
    OBJECT_KINDS
};
/* "id", "qp", ... */
const char *object_kind_str(enum object_kind k);

/* What a client may have. */
struct agent_limits {
    uint64_t max_mem;  /* bytes of memory, the device's included */
    uint32_t max_qp;   /* queue pairs */
    uint32_t max_objs; /* objects of all kinds */
};

struct object {
    enum object_kind kind;
    uint32_t number;     /* of its name */
    void *impl;          /* the provider's; MEM: NULL */
    uint32_t refs;       /* MEM, DM: regions on it; it cannot be freed while there are any */
    struct object *mem;  /* MR: its memory, MEM or DM, or NULL */
    int dmabuf;          /* MEM: descriptor of the DMA buffer that it is, + 1; 0: it is none */
    uint8_t *bytes;      /* MEM: where it is */
    uint64_t len;        /* MEM, DM, MR: bytes */
    uint64_t held;       /* MEM, DM: of these, bytes that count in the limit */
    uint64_t addr;       /* MR: its address in work requests */
    uint8_t *base;       /* MR: its first byte in this process */
    uint32_t lkey, rkey; /* MR, MW */
    uint32_t type;       /* QP: enum rnic_qp_type; MW: 1 or 2 */
    uint32_t qpn;        /* QP */
    uint32_t max_inline; /* QP: bytes */
    uint32_t send_ops;   /* QP: RNIC_OPS_* and others that it was created for */
    uint64_t posted;     /* QP, SRQ: work requests */
    bool stamped;        /* CQ: its completions have the device's time stamps */
};

struct objects {
    const struct agent_limits *limits;
    struct object **at; /* by number - 1; NULL: free */
    uint32_t n, cap;    /* places used so far; allocated */
    uint32_t count[OBJECT_KINDS];
    uint32_t total;
    uint64_t mem; /* bytes */
};

/* A new object, without its `impl`, or NULL: a limit is reached. */
struct object *object_new(struct objects *os, enum object_kind k);
/* The object of that name, `len` bytes, or NULL. */
struct object *object_find(const struct objects *os, enum object_kind k, const char *name, size_t len);
/* The next object of kind `k` behind `o` (NULL: the first), or NULL. */
struct object *object_next(const struct objects *os, enum object_kind k, const struct object *o);
/* Forget an object that is destroyed, or was never made. */
void object_free(struct objects *os, struct object *o);
/* Destroy it by the provider and forget it. 0; -EBUSY: it is in use; another negative errno: it is still there. */
int object_destroy(struct objects *os, struct rnic *r, struct object *o);
/* Destroy all. */
void objects_end(struct objects *os, struct rnic *r);

/* Memory of `len` bytes, zero, in whole pages; with `dmabuf` it is a DMA buffer, too; with `part` (else 0) it repeats
 * after so many bytes, which is what it holds (folded.h). 0; -ENOMEM: none, or more than the limit; -EINVAL: it cannot
 * repeat like that; of a DMA buffer also what /dev/udmabuf says. */
int object_mem_map(struct objects *os, struct object *o, uint64_t len, uint64_t part, bool dmabuf);

#endif
