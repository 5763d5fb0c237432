/* layer 3 (storage): a server of NFS version 3 over RPC over RDMA: a directory with one file of a fixed size, in
 * memory.
 *
 *     WRITE   RDMA READ of its read chunk into the file      reply when it is complete
 *     READ    RDMA WRITE from the file to its write chunk    reply behind it
 *
 * A slot of the link is one call: its receive is posted again when the reply is acknowledged. Each chunk has one
 * segment; messages in chunks are refused. There is no MOUNT: clients know the handle of the directory. */
#include "gen/storage/link.h"
#include "gen/storage/roles.h"
#include "gen/storage/rpc.h"

#include <errno.h>
#include <stdlib.h>

#define CREDITS 32
#define SLOTS   (2 * CREDITS)

/* A call that has arrived. */
struct served {
    uint32_t xid, procedure;
    uint64_t offset; /* READ and WRITE */
    uint32_t count, stable;
    uint32_t status; /* nfsstat3 */
    bool is_file;    /* its handle is the file's, else the directory's */
    bool has_read, has_write;
    struct rpc_chunk read, write;
    bool waits; /* for the RDMA READ */
};
struct server {
    struct served call[SLOTS];
};

static bool request(struct storage *s, const struct rdmacm_event *e, struct link_want *w)
{
    struct server *state = calloc(1, sizeof *state);

    (void)s;
    (void)e;
    w->slots = SLOTS;
    w->in = w->out = RPC_INLINE;
    w->posts = 2 * SLOTS;
    w->user = state;
    w->private_len = rpcrdma_put_private(w->private_data, false);
    return state != NULL;
}

static void down(struct link *l, ns_t now)
{
    (void)now;
    free(l->user);
    l->user = NULL;
}

/* --- Replies ---------------------------------------------------------------------------------- */

static void put_attributes(struct xdr_out *x, const struct storage *s, bool file)
{
    xdr_word(x, file ? 1 : 2); /* regular file, directory */
    xdr_word(x, file ? 0666 : 0777);
    xdr_word(x, 1);
    xdr_word(x, 0); /* uid, gid */
    xdr_word(x, 0);
    xdr_long(x, file ? s->c.room : 0);
    xdr_long(x, file ? s->c.room : 0);
    xdr_long(x, 0); /* device */
    xdr_long(x, 1); /* file system */
    xdr_long(x, file ? 2 : 1);
    for (unsigned i = 0; i < 3; i++) /* times */
        xdr_long(x, 0);
}

/* Attributes that may be there, and are. */
static void put_post_attributes(struct xdr_out *x, const struct storage *s, bool file)
{
    xdr_word(x, 1);
    put_attributes(x, s, file);
}

static void put_wcc(struct xdr_out *x, const struct storage *s)
{
    xdr_word(x, 0);
    put_post_attributes(x, s, true);
}

/* Results of a procedure that succeeded, behind the status. */
static void put_results(struct xdr_out *x, const struct storage *s, const struct served *c)
{
    switch (c->procedure) {
    case NFS3_GETATTR:
        put_attributes(x, s, c->is_file);
        break;
    case NFS3_LOOKUP:
        xdr_opaque(x, NFS_FILE, sizeof NFS_FILE - 1);
        put_post_attributes(x, s, true);
        put_post_attributes(x, s, false);
        break;
    case NFS3_READ:
        put_post_attributes(x, s, true);
        xdr_word(x, c->count);
        xdr_word(x, c->offset + c->count == s->c.room);
        xdr_word(x, c->count); /* of the data, which are in the write chunk */
        break;
    case NFS3_WRITE:
        put_wcc(x, s);
        xdr_word(x, c->count);
        xdr_word(x, c->stable);
        xdr_long(x, 0);
        break;
    case NFS3_COMMIT:
        put_wcc(x, s);
        xdr_long(x, 0);
        break;
    default:
        break;
    }
}

/* Results of one that failed: attributes that are not there. */
static void put_failure(struct xdr_out *x, uint32_t procedure)
{
    unsigned words = procedure == NFS3_GETATTR || procedure == NFS3_NULL   ? 0
                     : procedure == NFS3_WRITE || procedure == NFS3_COMMIT ? 2
                                                                           : 1;

    while (words-- > 0)
        xdr_word(x, 0);
}

static void reply(struct link *l, unsigned slot, uint32_t accepted, ns_t now)
{
    struct server *v = l->user;
    struct served *c = &v->call[slot];
    struct xdr_out x = {.b = link_out(l, slot), .room = RPC_INLINE};
    struct rpc_chunk back = c->write;

    back.len = accepted == RPC_SUCCESS && c->procedure == NFS3_READ && c->status == NFS3_OK ? c->count : 0;
    rpcrdma_put(&x, c->xid, CREDITS, NULL, c->has_write ? &back : NULL);
    xdr_word(&x, c->xid);
    xdr_word(&x, RPC_REPLY);
    xdr_word(&x, 0); /* accepted; no verifier */
    xdr_long(&x, 0);
    xdr_word(&x, accepted);
    if (accepted == RPC_SUCCESS && c->procedure != NFS3_NULL) {
        xdr_word(&x, c->status);
        if (c->status == NFS3_OK)
            put_results(&x, l->s, c);
        else
            put_failure(&x, c->procedure);
    }
    l->s->r.failed += accepted != RPC_SUCCESS || c->status != NFS3_OK;
    link_send(l, slot, x.len, 0, now);
}

/* A message that is none of version 1, or has chunks that are not served. */
static void refuse_header(struct link *l, unsigned slot, uint32_t xid, uint32_t error, ns_t now)
{
    struct xdr_out x = {.b = link_out(l, slot), .room = RPC_INLINE};

    xdr_word(&x, xid);
    xdr_word(&x, 1);
    xdr_word(&x, CREDITS);
    xdr_word(&x, RPCRDMA_ERROR);
    xdr_word(&x, error);
    if (error == RPCRDMA_ERR_VERS)
        xdr_long(&x, UINT64_C(1) << 32 | 1);
    l->s->r.failed++;
    link_send(l, slot, x.len, 0, now);
}

/* --- Calls ------------------------------------------------------------------------------------ */

/* The chunks of a call: false if there is more than one segment of a kind, or a reply chunk. */
static bool take_chunks(struct served *c, const struct rpcrdma *h, const uint8_t *b, uint32_t len)
{
    struct rpcrdma_walk w = rpcrdma_segments(h, b, len);
    struct rpcrdma_segment s;

    while (rpcrdma_next(&w, &s)) {
        struct rpc_chunk chunk = {s.position, s.handle, s.length, s.offset};
        if (s.list == RPCRDMA_READS && !c->has_read && s.position) {
            c->has_read = true;
            c->read = chunk;
        } else if (s.list == RPCRDMA_WRITES && !c->has_write) {
            c->has_write = true;
            c->write = chunk;
        } else {
            return false;
        }
    }
    return !w.bad;
}

static bool is_handle(const uint8_t *fh, uint32_t len, const char *name)
{
    return len == strlen(name) && memcmp(fh, name, len) == 0;
}

/* Offset and count of a READ or WRITE, against the file and the chunks. */
static uint32_t take_range(const struct storage *s, struct served *c, struct xdr_in *x, uint32_t body)
{
    const struct rpc_chunk *chunk = c->procedure == NFS3_READ ? &c->write : &c->read;
    bool has_chunk = c->procedure == NFS3_READ ? c->has_write : c->has_read;

    c->offset = xdr_get_long(x);
    c->count = xdr_get(x);
    if (c->procedure == NFS3_WRITE) {
        c->stable = xdr_get(x);
        if (xdr_get(x) != c->count || chunk->len != c->count || chunk->position != x->at - body)
            return NFS3ERR_INVAL;
    }
    if (!has_chunk || c->count > chunk->len || c->count > STORAGE_SIZE_MAX)
        return NFS3ERR_INVAL;
    return c->offset > s->c.room || c->count > s->c.room - c->offset ? NFS3ERR_FBIG : NFS3_OK;
}

/* Read the arguments of a call; the accept status. `body`: where its RPC message begins. */
static uint32_t take_arguments(const struct storage *s, struct served *c, struct xdr_in *x, uint32_t body)
{
    uint32_t len, name_len;
    const uint8_t *fh, *name;

    if (c->procedure == NFS3_NULL)
        return RPC_SUCCESS;
    fh = xdr_get_opaque(x, NFS_FH_MAX, &len);
    c->is_file = is_handle(fh, len, NFS_FILE);
    c->status = c->is_file || is_handle(fh, len, NFS_ROOT) ? NFS3_OK : NFS3ERR_STALE;
    switch (c->procedure) {
    case NFS3_GETATTR:
        break;
    case NFS3_LOOKUP:
        name = xdr_get_opaque(x, 255, &name_len);
        if (c->status == NFS3_OK && !is_handle(name, name_len, NFS_NAME))
            c->status = NFS3ERR_NOENT;
        break;
    case NFS3_READ:
    case NFS3_WRITE: {
        uint32_t range = take_range(s, c, x, body);
        c->status = c->status != NFS3_OK ? c->status : !c->is_file ? NFS3ERR_INVAL : range;
        break;
    }
    case NFS3_COMMIT:
        xdr_skip(x, 12);
        break;
    default:
        return RPC_PROC_UNAVAIL;
    }
    return x->bad ? RPC_GARBAGE_ARGS : RPC_SUCCESS;
}

/* Carry out a call whose data are there, and reply. */
static void finish(struct link *l, unsigned slot, ns_t now)
{
    struct server *v = l->user;
    const struct served *c = &v->call[slot];
    struct storage *s = l->s;
    struct sge own = {s->disk_iova + c->offset, c->count, s->disk_key};
    bool read = c->procedure == NFS3_READ, write = c->procedure == NFS3_WRITE;

    if (c->status == NFS3_OK && read && c->count)
        link_move(l, false, slot, &own, c->write.va, c->write.key, now);
    s->r.commands += !read && !write;
    s->r.reads += read && c->status == NFS3_OK;
    s->r.writes += write && c->status == NFS3_OK;
    s->r.read += read && c->status == NFS3_OK ? c->count : 0;
    s->r.written += write && c->status == NFS3_OK ? c->count : 0;
    reply(l, slot, RPC_SUCCESS, now);
}

static void message(struct link *l, unsigned slot, const struct wc *wc, ns_t now)
{
    struct server *v = l->user;
    struct served *c = &v->call[slot];
    const uint8_t *b = link_in(l, slot);
    struct xdr_in x = {.b = b, .len = wc->byte_len};
    struct rpcrdma h;
    uint32_t accepted;
    struct rpc r;

    *c = (struct served){0};
    if (!rpcrdma_get(&h, b, wc->byte_len) || !h.whole) {
        link_refuse(l, now, "a message of %u bytes that is no call", wc->byte_len);
        return;
    }
    c->xid = h.xid;
    if (h.proc != RPCRDMA_MSG || !take_chunks(c, &h, b, wc->byte_len)) {
        refuse_header(l, slot, h.xid, RPCRDMA_ERR_CHUNK, now);
        return;
    }
    if (!rpc_get(&r, b + h.len, wc->byte_len - h.len) || r.type != RPC_CALL) {
        link_refuse(l, now, "a message of %u bytes that is no call", wc->byte_len);
        return;
    }
    c->procedure = r.procedure;
    x.at = r.at ? h.len + r.at : x.len;
    accepted = r.program == RPC_NFS && r.version == NFS_V3 ? take_arguments(l->s, c, &x, h.len) : RPC_PROG_UNAVAIL;
    if (accepted != RPC_SUCCESS) {
        reply(l, slot, accepted, now);
    } else if (c->procedure == NFS3_WRITE && c->status == NFS3_OK && c->count) {
        struct sge own = {l->s->disk_iova + c->offset, c->count, l->s->disk_key};
        c->waits = true;
        link_move(l, true, slot, &own, c->read.va, c->read.key, now);
    } else {
        finish(l, slot, now);
    }
}

static void moved(struct link *l, unsigned slot, ns_t now)
{
    struct server *v = l->user;

    if (!v->call[slot].waits)
        return; /* an RDMA WRITE: the reply is behind it */
    v->call[slot].waits = false;
    finish(l, slot, now);
}

const struct storage_role nfs_server = {.request = request, .message = message, .moved = moved, .down = down};
