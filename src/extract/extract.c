/* layer 3b (extract): messages, put together in files. */
#include "dissect/pkt.h"
#include "src/extract/extract_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define CHAINS 4096

/* A work request under way. */
struct message {
    struct message *next; /* in its chain */
    uint64_t id;
    struct piece file;
    struct seen seen;
    struct meter_row ends; /* names connection and ends */
    uint32_t psn;          /* of the first byte of the file */
    bool has_len;
    uint64_t len; /* with has_len: of the message */
    bool begun;   /* `psn` is its first one */
};

struct extract *extract_new(const struct extract_opts *o)
{
    struct extract *x = calloc(1, sizeof *x);

    if (!x)
        return NULL;
    x->o = *o;
    x->files.dir = -1;
    x->chain = calloc(CHAINS, sizeof(struct message *));
    x->regions = o->regions ? regions_new(o->memory ? o->memory : ROOM_DEFAULT) : NULL;
    if (!x->chain || (o->regions && !x->regions)) {
        extract_free(x);
        return NULL;
    }
    if (!files_open(&x->files, o->dir))
        x->files.error = x->sums.error = errno;
    return x;
}

static void message_free(struct message *m)
{
    seen_free(&m->seen);
    free(m);
}

void extract_free(struct extract *x)
{
    if (!x)
        return;
    for (unsigned i = 0; x->chain && i < CHAINS; i++)
        while (x->chain[i]) {
            struct message *m = x->chain[i];
            x->chain[i] = m->next;
            if (m->file.made)
                files_close(&x->files, &m->file, 0);
            message_free(m);
        }
    files_free(&x->files);
    regions_free(x->regions);
    free(x->chain);
    free(x);
}

/* Where the pointer to a message is, or would be. */
static struct message **place_of(struct extract *x, uint64_t id)
{
    struct message **at = &x->chain[id % CHAINS];

    while (*at && (*at)->id != id)
        at = &(*at)->next;
    return at;
}

/* "request-000017-rdma-write.bin", the number as in `ops` */
static void name_message(struct piece *p, const struct wqe *w)
{
    int n = snprintf(p->name, sizeof p->name, "request-%06llu-", (unsigned long long)w->id);

    for (const char *s = w->name ? w->name : wqe_op_str((enum wqe_op)w->op); *s; s++) {
        char c = *s >= 'A' && *s <= 'Z' ? (char)(*s - 'A' + 'a') : *s;
        if (n < NAME_MAX_BYTES - 8)
            p->name[n++] = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ? c : '-';
    }
    snprintf(p->name + n, sizeof p->name - (size_t)n, ".bin");
    p->slot = -1;
}

static struct message *message_new(struct extract *x, const struct wqe *w, const struct meter_row *row)
{
    struct message *m = x->sums.files < x->o.files ? calloc(1, sizeof *m) : NULL;

    if (!m)
        return NULL;
    m->id = w->id;
    m->ends = *row;
    m->psn = w->psn;
    m->begun = w->begun;
    name_message(&m->file, w);
    x->sums.files++;
    *place_of(x, w->id) = m;
    return m;
}

/* Whether the packet carries bytes of its work request: requests of SENDs and WRITEs, responses to READs. A response
 * that only acknowledges the work request may carry those of a later READ. */
static bool carries_data(const struct wqe *w, const struct pkt *p)
{
    uint32_t flags = w->op == WQE_READ ? OPF_READ_RESP : OPF_SEND | OPF_WRITE | OPF_ATOMIC_WRITE;

    return p->op->flags & flags;
}

/* Datagrams of QP0 and QP1 are the network's own. */
static bool is_mad(const struct meter_row *row)
{
    return !row->conn && row->dqpn <= 1;
}

/* Offset of the packet's first byte in the message; false: it cannot be known. */
static bool offset_of(const struct wqe *w, const struct pkt *p, uint32_t pmtu, uint64_t *at)
{
    uint32_t n = (p->bth.psn - w->psn) & PSN_MASK;

    if (n && !pmtu)
        return false;
    *at = (uint64_t)n * pmtu;
    return n <= PSN_MASK / 2 && (w->op != WQE_READ || *at < w->bytes || !n);
}

/* The length of the message, as far as this packet tells it. */
static void learn_length(struct message *m, const struct wqe *w, const struct pkt *p, uint64_t end)
{
    if (w->op == WQE_READ)
        m->len = w->bytes;
    else if (p->have & H_RETH)
        m->len = p->reth.dmalen;
    else if (p->op->flags & OPF_END)
        m->len = end;
    else
        return;
    m->has_len = true;
}

/* Memory that the packet's bytes lie in. The first packet of a WRITE says how much there will be. */
static void put_memory(struct extract *x, const struct wqe *w, const struct pkt *p, const struct meter_row *row,
                       uint64_t at)
{
    uint64_t here = at + p->payload_len, len = w->op == WQE_READ ? w->bytes : p->have & H_RETH ? p->reth.dmalen : 0;
    const struct region_bytes v = {.from = w->va,
                                   .to = w->va + (len > here ? len : here),
                                   .va = w->va + at,
                                   .b = p->data + p->payload_off,
                                   .n = p->payload_cap};

    if (w->have_remote && w->begun)
        regions_put(x->regions, &row->dst, w->rkey, &v);
}

void extract_packet(struct extract *x, const struct wqe *w, const struct pkt *p, const struct meter_row *row,
                    uint32_t pmtu)
{
    struct message *m;
    uint64_t at;

    if (!carries_data(w, p) || is_mad(row) || (x->o.conn && row->conn != x->o.conn) || !offset_of(w, p, pmtu, &at))
        return;
    if (x->regions) {
        put_memory(x, w, p, row, at);
        return;
    }
    m = *place_of(x, w->id);
    if (!m && !(m = message_new(x, w, row)))
        return;
    if (m->psn != w->psn) /* packets before the first one that was seen: what is written stays where it is */
        return;
    learn_length(m, w, p, at + p->payload_len);
    if (seen_add(&m->seen, at, at + p->payload_cap))
        files_write(&x->files, &m->file, at, p->data + p->payload_off, p->payload_cap);
}

/* The length of the file: that of the message if its bytes may all be in it, but up to the last byte seen at least:
 * packets may carry more than the RETH says. */
static uint64_t file_length(const struct message *m)
{
    uint64_t last = m->seen.n ? m->seen.span[m->seen.n - 1].to : 0;

    return m->has_len && m->begun && m->len > last ? m->len : last;
}

static void finish(struct extract *x, struct message *m, const struct wqe *w)
{
    struct extract_row r = {.file = m->file.name, .w = w, .ends = &m->ends, .pieces = &m->seen};

    r.memory = w->have_remote;
    r.rkey = w->rkey;
    r.va = w->va;
    r.len = file_length(m);
    r.open_end = !m->has_len;
    r.open_begin = !m->begun;
    r.seen = seen_bytes(&m->seen);
    files_close(&x->files, &m->file, r.len);
    row_put(x, &r);
}

void extract_over(struct extract *x, const struct wqe *w)
{
    struct message **at = place_of(x, w->id), *m = *at;

    if (!m) {
        x->sums.left_out +=
            !x->regions && x->sums.files >= x->o.files && (w->op <= WQE_READ || w->op == WQE_ATOMIC_WRITE);
        return;
    }
    *at = m->next;
    finish(x, m, w);
    message_free(m);
}

struct extract_sums extract_end(struct extract *x)
{
    if (x->regions) {
        x->sums.no_memory = regions_lack(x->regions);
        regions_write(x->regions, x);
    }
    if (x->files.error) {
        x->sums.error = x->files.error;
        snprintf(x->sums.failed, sizeof x->sums.failed, "%.63s", x->files.failed);
    }
    return x->sums;
}
