/* layer 3 (storage): one reliable connection of a storage protocol. Receive n and SEND buffer n belong together: a
 * slot, which a server uses for one command, from its arrival to its response. */
#ifndef RDMATRACE_GEN_STORAGE_LINK_H
#define RDMATRACE_GEN_STORAGE_LINK_H

#include "gen/storage/storage.h"
#include "gen/verbs/receives.h"

struct link {
    struct storage *s;
    int id, qp, cq; /* handles; -1: none */
    struct link_want want;
    uint8_t *mem; /* receives, then buffers for SENDs */
    uint64_t iova;
    uint32_t key;
    struct receives receives;
    bool ready;   /* the receives are posted */
    bool up;      /* connected */
    bool closing; /* disconnected by this end */
    bool gone;    /* no connection any more */
    void *user;   /* the role's */
};

/* Asking: connect another link; role.up() follows. NULL with *err set. */
struct link *link_connect(struct storage *s, const struct link_want *w, ns_t now, int *err);
/* Serving: accept a REQ: NULL: it could not be. */
struct link *link_accept(struct storage *s, const struct rdmacm_event *e, const struct link_want *w, ns_t now);
void link_free(struct link *l, ns_t now);
/* An event of its id. */
void link_event(struct link *l, const struct rdmacm_event *e, ns_t now);
/* Post receives, take completions. */
void link_poll(struct link *l, ns_t now);
/* Disconnect. */
void link_leave(struct link *l, ns_t now);
/* The peer breaks the protocol, in words: a serving end disconnects it, an asking one fails. */
void link_refuse(struct link *l, ns_t now, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Receive and buffer of a slot. */
static inline const uint8_t *link_in(const struct link *l, unsigned slot)
{
    return l->mem + (size_t)slot * l->want.in;
}
static inline uint8_t *link_out(const struct link *l, unsigned slot)
{
    return l->mem + (size_t)l->want.slots * l->want.in + (size_t)slot * l->want.out;
}
/* Post the receive of a slot again. */
void link_receive(struct link *l, unsigned slot, ns_t now);
/* SEND the first `len` bytes of a slot's buffer; `invalidate`: a key of the peer's, 0: none. */
void link_send(struct link *l, unsigned slot, uint32_t len, uint32_t invalidate, ns_t now);
/* READ from (WRITE to) the peer's memory `va`, `rkey` into (from) own memory. role.moved() follows. */
void link_move(struct link *l, bool read, unsigned slot, const struct sge *own, uint64_t va, uint32_t rkey, ns_t now);

/* Memory lent to the peer for one command, by fast registration: the key changes each time, and is invalid in between.
 */
struct loan {
    uint8_t *mem; /* NULL: none */
    uint64_t iova;
    uint32_t len;
    uint32_t lkey; /* for this side */
    uint32_t key;  /* for the peer */
    bool lent;
};
/* Memory of `len` bytes to be lent: 0 or a negative errno; loan_close() in either case. */
int loan_open(struct link *l, struct loan *n, uint32_t len);
void loan_close(struct link *l, struct loan *n);
/* Lend its first `len` bytes: n->key at n->iova. `write`: the peer may WRITE there, else READ. */
void loan_lend(struct link *l, struct loan *n, uint32_t len, bool write, ns_t now);
/* Take it back, unless the peer has invalidated the key already: `wc`, of the message that ended the command. */
void loan_return(struct link *l, struct loan *n, const struct wc *wc, ns_t now);

#endif
