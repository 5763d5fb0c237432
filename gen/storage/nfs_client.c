/* layer 3 (storage): a client of NFS version 3 over RPC over RDMA: one file, which a handle and a name tell.
 *
 *     NULL   LOOKUP   GETATTR   WRITE ... WRITE   COMMIT   READ ... READ   disconnect
 *
 * Data of a WRITE are a read chunk, those of a READ a write chunk: memory that is registered for this call. A call ends
 * when its reply is here and its SEND is acknowledged. There is no MOUNT: the handle comes from elsewhere. */
#include "gen/storage/link.h"
#include "gen/storage/roles.h"
#include "gen/storage/rpc.h"

#include <errno.h>
#include <stdlib.h>

#define FIRST_XID UINT32_C(0x52440000) /* with the slot in its lower bits */
#define SLOT_BITS 8
#define REPLY_MAX 1024 /* bytes of a reply that are looked at */

struct call {
    struct storage_io io;
    struct loan loan;
    uint32_t xid, procedure;
    uint8_t reply[REPLY_MAX]; /* its RPC message */
    uint32_t reply_len;
    bool busy, sent, answered;
};
struct client {
    struct nfs_handle file;
    struct call call[STORAGE_DEPTH_MAX];
    uint32_t n, credits, open; /* calls at a time, granted, outstanding */
    uint32_t next;             /* number of the next call */
    bool committed;
};

static struct client *client_of(const struct link *l)
{
    return l->s->state;
}

/* --- Calls ------------------------------------------------------------------------------------ */

/* The RPC header of a call. */
static void put_call(struct xdr_out *x, const struct call *c)
{
    static const char machine[] = "rdmagen";
    uint32_t words[] = {c->xid, RPC_CALL, 2, RPC_NFS, NFS_V3, c->procedure, 1 /* AUTH_SYS */, 20 + 8};

    for (unsigned i = 0; i < ARRAY_LEN(words); i++)
        xdr_word(x, words[i]);
    xdr_word(x, 0);
    xdr_opaque(x, machine, sizeof machine - 1);
    for (unsigned i = 0; i < 5; i++) /* uid, gid, no more groups; no verifier */
        xdr_word(x, 0);
}

/* Arguments of a procedure. */
static void put_arguments(struct xdr_out *x, const struct client *n, const struct call *c, const struct storage *s)
{
    if (c->procedure == NFS3_NULL)
        return;
    xdr_opaque(x, n->file.b, n->file.len);
    if (c->procedure == NFS3_LOOKUP)
        xdr_opaque(x, s->c.file, (uint32_t)strlen(s->c.file));
    if (c->procedure == NFS3_COMMIT) {
        xdr_long(x, 0);
        xdr_word(x, 0);
    }
    if (c->procedure != NFS3_READ && c->procedure != NFS3_WRITE)
        return;
    xdr_long(x, c->io.offset);
    xdr_word(x, c->io.len);
    if (c->procedure == NFS3_READ)
        return;
    xdr_word(x, NFS3_UNSTABLE);
    xdr_word(x, c->io.len); /* of the data, which are in the read chunk */
}

static void ask(struct link *l, unsigned slot, uint32_t procedure, ns_t now)
{
    struct client *n = client_of(l);
    struct call *c = &n->call[slot];
    struct rpc_chunk chunk = {0};
    uint8_t rpc[RPC_INLINE / 2];
    struct xdr_out body = {.b = rpc, .room = sizeof rpc}, x = {.b = link_out(l, slot), .room = RPC_INLINE};
    bool read = procedure == NFS3_READ, write = procedure == NFS3_WRITE;

    c->procedure = procedure;
    c->xid = FIRST_XID + (n->next++ << SLOT_BITS) + slot;
    c->busy = true;
    c->sent = c->answered = false;
    n->open++;
    put_call(&body, c);
    put_arguments(&body, n, c, l->s);
    if (read || write) {
        if (write)
            work_fill(l->s, &c->io, c->loan.mem);
        loan_lend(l, &c->loan, c->io.len, read, now);
        chunk = (struct rpc_chunk){body.len, c->loan.key, c->io.len, c->loan.iova};
    }
    rpcrdma_put(&x, c->xid, n->n, write ? &chunk : NULL, read ? &chunk : NULL);
    memcpy(x.b + x.len, body.b, body.len);
    link_send(l, slot, x.len + body.len, 0, now);
}

/* Give every free call something to do, as far as there are credits. */
static void fill(struct link *l, ns_t now)
{
    struct client *n = client_of(l);

    for (unsigned i = 0; i < n->n && n->open < n->credits && !l->s->leaving; i++)
        if (!n->call[i].busy && work_next(l->s, &n->call[i].io, now))
            ask(l, i, n->call[i].io.write ? NFS3_WRITE : NFS3_READ, now);
    if (!work_over(l->s) || l->s->leaving)
        return;
    if (!n->committed && l->s->c.write)
        ask(l, 0, NFS3_COMMIT, now);
    else
        storage_leave(l->s, now);
    n->committed = true;
}

/* --- Replies ---------------------------------------------------------------------------------- */

static void failed(struct link *l, const struct call *c, uint32_t status, ns_t now)
{
    struct buf b = {0};

    if (!nfs_status_put(&b, NFS_V3, status))
        buf_printf(&b, "status %u", status);
    storage_fail(l->s, now, "NFS %s: %s", nfs_procedure_str(RPC_NFS, NFS_V3, c->procedure), buf_str(&b));
    buf_free(&b);
}

static void took_lookup(struct link *l, struct xdr_in *x, ns_t now)
{
    struct client *n = client_of(l);
    uint32_t len;
    const uint8_t *fh = xdr_get_opaque(x, NFS_FH_MAX, &len);

    memcpy(n->file.b, fh, len);
    n->file.len = len;
    if (x->bad || len == 0)
        link_refuse(l, now, "a LOOKUP without a handle");
    else
        ask(l, 0, NFS3_GETATTR, now);
}

static void took_attributes(struct link *l, struct xdr_in *x, ns_t now)
{
    struct storage *s = l->s;
    uint64_t size;

    xdr_skip(x, 20);
    size = xdr_get_long(x);
    s->work.room = s->c.write && size < s->c.size ? s->c.iters * s->c.size : size; /* a short file grows */
    if (x->bad)
        link_refuse(l, now, "a GETATTR without attributes");
    else if (s->work.room < s->c.size)
        storage_fail(s, now, "the file holds less than %u bytes", s->c.size);
    else
        fill(l, now);
}

/* Bytes that a READ or WRITE has moved: all, or the file ends. */
static bool moved_all(struct xdr_in *x, const struct call *c)
{
    uint64_t size = 0;

    if (c->procedure == NFS3_READ) {
        xdr_skip_attr(x, &size);
        return xdr_get(x) == c->io.len && !x->bad;
    }
    if (xdr_get(x)) /* the attributes that matter, before */
        xdr_skip(x, 24);
    xdr_skip_attr(x, &size);
    return xdr_get(x) == c->io.len && !x->bad;
}

static void end(struct link *l, struct call *c, ns_t now)
{
    struct client *n = client_of(l);
    struct xdr_in x = {.b = c->reply, .len = c->reply_len};
    bool is_io = c->procedure == NFS3_READ || c->procedure == NFS3_WRITE;
    uint32_t status = 0;
    struct rpc r;

    if (!c->sent || !c->answered)
        return;
    c->busy = false;
    n->open--;
    l->s->r.commands += !is_io;
    if (!rpc_get(&r, x.b, x.len) || r.denied || r.status != RPC_SUCCESS) {
        l->s->r.failed++;
        link_refuse(l, now, "a call that is not accepted");
        return;
    }
    x.at = r.at ? r.at : x.len;
    status = c->procedure == NFS3_NULL ? NFS3_OK : xdr_get(&x);
    if (is_io)
        work_done(l->s, &c->io, status == NFS3_OK && moved_all(&x, c), c->loan.mem, now);
    l->s->r.failed += !is_io && status != NFS3_OK;
    if (status != NFS3_OK)
        failed(l, c, status, now);
    else if (c->procedure == NFS3_NULL)
        ask(l, 0, NFS3_LOOKUP, now);
    else if (c->procedure == NFS3_LOOKUP)
        took_lookup(l, &x, now);
    else if (c->procedure == NFS3_GETATTR)
        took_attributes(l, &x, now);
    else
        fill(l, now);
}

static void message(struct link *l, unsigned slot, const struct wc *wc, ns_t now)
{
    struct client *n = client_of(l);
    const uint8_t *b = link_in(l, slot);
    struct rpcrdma h;
    struct call *c;

    if (!rpcrdma_get(&h, b, wc->byte_len) || !h.whole || h.proc != RPCRDMA_MSG) {
        link_refuse(l, now, "a message that is no reply, of %u bytes", wc->byte_len);
        return;
    }
    c = &n->call[(h.xid & ((1u << SLOT_BITS) - 1)) % STORAGE_DEPTH_MAX];
    if (!c->busy || c->answered || c->xid != h.xid) {
        link_refuse(l, now, "a reply to call 0x%x, which is not outstanding", h.xid);
        return;
    }
    n->credits = h.credits;
    c->reply_len = wc->byte_len - h.len < REPLY_MAX ? wc->byte_len - h.len : REPLY_MAX;
    memcpy(c->reply, b + h.len, c->reply_len);
    c->answered = true;
    link_receive(l, slot, now);
    loan_return(l, &c->loan, wc, now);
    end(l, c, now);
}

static void sent(struct link *l, unsigned slot, ns_t now)
{
    struct client *n = client_of(l);

    n->call[slot].sent = true;
    end(l, &n->call[slot], now);
}

static void moved(struct link *l, unsigned slot, ns_t now)
{
    (void)l;
    (void)slot;
    (void)now;
}

static void up(struct link *l, const uint8_t *private_data, uint32_t len, ns_t now)
{
    struct client *n = client_of(l);
    int r = 0;

    (void)private_data;
    (void)len;
    for (unsigned i = 0; i < n->n && r == 0; i++)
        r = loan_open(l, &n->call[i].loan, l->s->c.size);
    if (r < 0)
        storage_fail(l->s, now, "%s", strerror(-r));
    else
        ask(l, 0, NFS3_NULL, now);
}

static void down(struct link *l, ns_t now)
{
    struct client *n = client_of(l);

    (void)now;
    for (unsigned i = 0; i < n->n; i++)
        loan_close(l, &n->call[i].loan);
}

static int open(struct storage *s, ns_t now)
{
    struct client *n = s->state = calloc(1, sizeof *n);
    struct link_want w = {.in = RPC_INLINE, .out = RPC_INLINE};
    int err;

    if (!n)
        return -ENOMEM;
    n->n = s->c.depth;
    n->credits = 1;
    n->file.len = s->c.fh_len ? s->c.fh_len : sizeof NFS_ROOT - 1;
    memcpy(n->file.b, s->c.fh_len ? s->c.fh : (const uint8_t *)NFS_ROOT, n->file.len);
    w.slots = n->n + 1;
    w.posts = 4 * w.slots;
    w.private_len = rpcrdma_put_private(w.private_data, true);
    return link_connect(s, &w, now, &err) ? 0 : err;
}

const struct storage_role nfs_client = {
    .open = open, .up = up, .message = message, .sent = sent, .moved = moved, .down = down};
