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
#define SLICE     128 /* IB_SPLIT_DATA_ON_QPS: what each queue pair gets of a buffer is a multiple */

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
    uint32_t pieces; /* messages of a buffer: 1, or one on each queue pair */
    uint64_t chunk;
    uint64_t *there;          /* by rank that sends, and queue pair: pieces that have arrived; NULL: one piece */
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
    n->pieces = 1;
    while (workload_word(&args, &t)) {
        if (token_is(&t, "ar"))
            n->several_paths = true;
        else if (token_is(&t, "split"))
            n->pieces = w->c.qps;
        else if (!token_key(&t, &key, &value) || !token_is(&key, "chunk") || !parse_chunk(&value, &n->chunk))
            return text_fail(e, &t, "expected ar, split, or chunk=BYTES, a multiple of 4");
    }
    return true;
}

uint32_t nccl_inline(const struct workload *w)
{
    return w->nccl ? ENTRY : 0;
}

int nccl_open(struct workload *w)
{
    if (w->nccl->pieces > 1 && !(w->nccl->there = calloc((size_t)w->n * w->nccl->pieces, sizeof *w->nccl->there)))
        return -ENOMEM;
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

void nccl_free(struct nccl *n)
{
    if (n)
        free(n->there);
    free(n);
}

static uint64_t buffers(const struct nccl *n, uint64_t bytes)
{
    return bytes > n->chunk ? (bytes + n->chunk - 1) / n->chunk : 1;
}

uint32_t nccl_parts(const struct workload *w, uint64_t bytes)
{
    uint64_t parts = w->nccl ? buffers(w->nccl, bytes) * w->nccl->pieces : 1;

    return parts < UINT32_MAX ? (uint32_t)parts : UINT32_MAX;
}

void nccl_cut(const struct workload *w, uint32_t part, struct workload_message *m)
{
    const struct nccl *n = w->nccl;
    uint64_t at = part / n->pieces * n->chunk, piece = part % n->pieces, slice, skip;
    uint64_t bytes = m->bytes - at < n->chunk ? m->bytes - at : n->chunk;

    slice = n->pieces == 1 ? bytes : ((bytes + n->pieces - 1) / n->pieces + SLICE - 1) / SLICE * SLICE;
    skip = piece * slice < bytes ? piece * slice : bytes;
    m->bytes = bytes - skip < slice ? bytes - skip : slice;
    m->from += at + skip;
    m->to += at + skip;
    m->protocol = n->several_paths && bytes > THRESHOLD ? PROTOCOL_WRITE_THEN_IMM : PROTOCOL_WRITE;
    if (n->pieces > 1)
        m->conn = *workload_pair(w, m->src, m->dst) + (uint32_t)piece;
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

void nccl_expect(struct workload *w, unsigned src, uint64_t bytes, uint64_t times)
{
    w->nccl->channel[src].total += buffers(w->nccl, bytes) * times;
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

    if (c->sent < c->seen * w->nccl->pieces && c->waits.head == WORKLOAD_NONE) {
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
    while (c->sent < c->seen * w->nccl->pieces && c->waits.head != WORKLOAD_NONE) {
        uint32_t i = c->waits.head;
        c->waits.head = w->message[i].next;
        c->sent++;
        if (!workload_go_on(w, i, now))
            return;
    }
}

/* How many messages of rank `src` have arrived whole, after `m`, a piece of one. */
static uint64_t whole(struct workload *w, const struct workload_message *m)
{
    uint64_t *there = w->nccl->there + (size_t)m->src * w->nccl->pieces, least = UINT64_MAX;

    there[m->conn - *workload_pair(w, m->src, m->dst)]++;
    for (uint32_t i = 0; i < w->nccl->pieces; i++)
        least = there[i] < least ? there[i] : least;
    return least;
}

void nccl_arrived(struct workload *w, const struct workload_message *m, ns_t now)
{
    struct channel *c = &w->nccl->channel[m->src];

    if (w->nccl->there && whole(w, m) + BUFFERS == c->granted)
        return;
    if (c->granted < c->total)
        grant(w, m->src, now);
}

bool nccl_is_cts(const struct wc *wc)
{
    return wc->wr_id & CTS_BIT;
}
