/* layer 3 (workload): the network plug-in of NCCL: a receiver announces each buffer by an RDMA WRITE (CTS) into a ring
 * of entries at the sender, which polls it; then the sender WRITEs the data, the last request with immediate data. */
#include "gen/workload/workload_impl.h"

#include <errno.h>
#include <stdlib.h>

/* Sizes of NCCL: a buffer of 4 MiB has 8 steps; where packets may take several paths, the immediate data of larger
 * messages follow in an empty WRITE (IB_AR_THRESHOLD). */
#define CHUNK     (512u << 10)
#define BUFFERS   8
#define THRESHOLD 8192

#define ENTRY   64
#define CTS_BIT (UINT64_C(1) << 63) /* of a wr_id; below: the rank that receives the CTS */

/* An entry, in little-endian order. */
struct entry {
    uint64_t addr, size;
    uint32_t rkeys[4];
    uint32_t requests, tag;
    uint64_t idx; /* number of the message, from 1 */
    uint8_t unused[16];
};
_Static_assert(sizeof(struct entry) == ENTRY, "an entry takes 64 bytes");

/* What a rank sends to its next one. */
struct channel {
    struct entry ring[BUFFERS]; /* written by the receiver */
    uint32_t key;               /* R_Key of `ring` */
    uint64_t granted;           /* CTSs that the receiver wrote */
    uint64_t seen;              /* that the sender has seen */
    uint64_t sent;              /* messages */
    uint64_t total;             /* of the whole run */
    struct workload_list waits; /* messages that wait for a CTS */
};

struct nccl {
    bool several_paths;
    uint64_t chunk;
    struct channel channel[]; /* by rank */
};

static bool parse_chunk(const struct token *v, uint64_t *bytes)
{
    return token_size(v, bytes) && *bytes >= 4 && *bytes % 4 == 0 && *bytes <= WORKLOAD_BYTES;
}

bool nccl_parse(struct workload *w, const char *args, struct text_error *e)
{
    struct nccl *n = w->nccl = calloc(1, sizeof *n + w->n * sizeof *n->channel);
    struct token t, key, value;

    if (!n)
        return text_fail(e, NULL, "out of memory");
    n->chunk = CHUNK;
    while (workload_word(&args, &t)) {
        if (token_is(&t, "ar"))
            n->several_paths = true;
        else if (!token_key(&t, &key, &value) || !token_is(&key, "chunk") || !parse_chunk(&value, &n->chunk))
            return text_fail(e, &t, "expected ar, or chunk=BYTES, a multiple of 4");
    }
    return true;
}

uint32_t nccl_inline(const struct workload *w)
{
    return w->nccl ? ENTRY : 0;
}

int nccl_open(struct workload *w)
{
    for (unsigned r = 0; r < w->n; r++) {
        struct channel *c = &w->nccl->channel[r];
        int err = ep_mr_reg(w->s->ep[r], w->pd[r], c->ring, sizeof c->ring, WORKLOAD_IOVA,
                            ACCESS_LOCAL_WRITE | ACCESS_REMOTE, &c->key);
        if (err < 0)
            return err;
        c->waits.head = WORKLOAD_NONE;
    }
    return 0;
}

uint32_t nccl_parts(const struct workload *w, uint64_t bytes)
{
    return w->nccl && bytes > w->nccl->chunk ? (uint32_t)((bytes + w->nccl->chunk - 1) / w->nccl->chunk) : 1;
}

uint64_t nccl_chunk(const struct workload *w)
{
    return w->nccl->chunk;
}

uint8_t nccl_protocol(const struct workload *w, uint64_t bytes)
{
    return w->nccl->several_paths && bytes > THRESHOLD ? PROTOCOL_WRITE_THEN_IMM : PROTOCOL_WRITE;
}

/* The receiver has a buffer for the next message of rank `r`. */
static bool grant(struct workload *w, unsigned r, ns_t now)
{
    struct channel *c = &w->nccl->channel[r];
    unsigned to = (r + 1) % w->n;
    uint32_t slot = (uint32_t)(c->granted % BUFFERS);
    struct entry entry = {.addr = htole64(WORKLOAD_IOVA),
                          .size = htole64(w->nccl->chunk),
                          .rkeys = {htole32(w->rkey[to])},
                          .requests = htole32(1),
                          .idx = htole64(c->granted + 1)};
    struct sge piece = {.addr = (uintptr_t)&entry, .length = ENTRY};
    struct send_wr wr = {.wr_id = CTS_BIT | r,
                         .opcode = WR_RDMA_WRITE,
                         .flags = SEND_SIGNALED | SEND_INLINE,
                         .sg_list = &piece,
                         .num_sge = 1,
                         .remote_addr = WORKLOAD_IOVA + slot * ENTRY,
                         .rkey = c->key};
    const struct workload_conn *n = &w->conn[*workload_pair(w, r, to) - 1 + c->granted % w->c.qps];

    c->granted++;
    if (ep_post_send(w->s->ep[to], n->c->qp[to > r], &wr, now) < 0) {
        workload_fail(w, WC_GENERAL_ERR);
        return false;
    }
    w->under_way++;
    sim_touch(w->s, to);
    return true;
}

void nccl_expect(struct workload *w, unsigned src, uint32_t messages)
{
    w->nccl->channel[src].total += messages;
}

void nccl_start(struct workload *w, ns_t now)
{
    for (unsigned r = 0; r < w->n; r++) {
        struct channel *c = &w->nccl->channel[r];
        while (c->granted < c->total && c->granted < BUFFERS)
            if (!grant(w, r, now))
                return;
    }
}

bool nccl_may_send(struct workload *w, uint32_t i)
{
    struct channel *c = &w->nccl->channel[w->message[i].src];

    if (c->sent < c->seen && c->waits.head == WORKLOAD_NONE) {
        c->sent++;
        return true;
    }
    workload_list_add(w, &c->waits, i, false);
    return false;
}

void nccl_poll(struct workload *w, unsigned host, ns_t now)
{
    struct channel *c = &w->nccl->channel[host];

    while (le64toh(c->ring[c->seen % BUFFERS].idx) == c->seen + 1)
        c->seen++;
    while (c->sent < c->seen && c->waits.head != WORKLOAD_NONE) {
        uint32_t i = c->waits.head;
        c->waits.head = w->message[i].next;
        c->sent++;
        if (!workload_go_on(w, i, now))
            return;
    }
}

void nccl_arrived(struct workload *w, const struct workload_message *m, ns_t now)
{
    struct channel *c = &w->nccl->channel[m->src];

    if (c->granted < c->total)
        grant(w, m->src, now);
}

bool nccl_is_cts(const struct wc *wc)
{
    return wc->wr_id & CTS_BIT;
}
