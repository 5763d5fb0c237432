/* layer 3 (storage): a server of NFS version 3 over RPC over RDMA: a directory with one file of a fixed size, in
 * memory.
 *
 *     WRITE   RDMA READ of its read chunk into the file      reply when it is complete
 *     READ    RDMA WRITE from the file to its write chunk    reply behind it
 *
 * Data of few bytes are in the messages themselves. A slot of the link is one call: its receive is posted again when
 * the reply is acknowledged. Each chunk has one segment; calls in chunks are refused, and a reply chunk that is offered
 * stays empty: every reply fits in a message. There is no MOUNT: clients know the handle of the directory. Nothing but
 * the bytes of the file can be changed. */
#include "gen/storage/link.h"
#include "gen/storage/roles.h"
#include "gen/storage/rpc.h"

#include <errno.h>
#include <stdlib.h>

#define CREDITS 32
#define SLOTS   (2 * CREDITS)
/* Bytes of data in a message, and of one that is in a chunk: both at most. */
#define INLINE_DATA 2048
#define CHUNK_DATA  65536

/* A call that has arrived. */
struct served {
    uint32_t xid, procedure;
    uint32_t body;   /* where its RPC message begins in the receive */
    uint64_t offset; /* READ and WRITE; the cookie of READDIR */
    uint32_t count, stable;
    uint32_t wanted; /* ACCESS */
    uint32_t status; /* nfsstat3 */
    bool is_file;    /* its handle is the file's, else the directory's */
    bool has_read, has_write;
    struct rpc_chunk read, write;
    const uint8_t *data; /* WRITE, in the message: in its receive; NULL: in the read chunk */
    bool waits;          /* for the RDMA READ */
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

static void put_getattr(struct xdr_out *x, const struct storage *s, const struct served *c)
{
    put_attributes(x, s, c->is_file);
}
static void put_lookup(struct xdr_out *x, const struct storage *s, const struct served *c)
{
    (void)c;
    xdr_opaque(x, NFS_FILE, sizeof NFS_FILE - 1);
    put_post_attributes(x, s, true);
    put_post_attributes(x, s, false);
}
static void put_access(struct xdr_out *x, const struct storage *s, const struct served *c)
{
    enum { READ = 1, LOOKUP = 2, MODIFY = 4, EXTEND = 8 };

    put_post_attributes(x, s, c->is_file);
    xdr_word(x, c->wanted & (c->is_file ? READ | MODIFY | EXTEND : READ | LOOKUP));
}
static void put_read(struct xdr_out *x, const struct storage *s, const struct served *c)
{
    put_post_attributes(x, s, true);
    xdr_word(x, c->count);
    xdr_word(x, c->offset + c->count >= s->c.room);
    if (c->has_write) /* the data are in the write chunk */
        xdr_word(x, c->count);
    else
        xdr_opaque(x, s->disk + c->offset, c->count);
}
static void put_write(struct xdr_out *x, const struct storage *s, const struct served *c)
{
    put_wcc(x, s);
    xdr_word(x, c->count);
    xdr_word(x, c->stable);
    xdr_long(x, 0);
}
static void put_commit(struct xdr_out *x, const struct storage *s, const struct served *c)
{
    (void)c;
    put_wcc(x, s);
    xdr_long(x, 0);
}

/* Entries of the directory from c->offset, a cookie, on. */
static void put_entries(struct xdr_out *x, const struct storage *s, const struct served *c)
{
    static const char *const names[] = {".", "..", NFS_NAME};
    static const char *const handles[] = {NFS_ROOT, NFS_ROOT, NFS_FILE};

    put_post_attributes(x, s, false);
    xdr_long(x, 0); /* verifier */
    for (uint64_t i = c->offset; i < ARRAY_LEN(names); i++) {
        bool file = i == 2;
        xdr_word(x, 1);
        xdr_long(x, file ? 2 : 1); /* its number, as in the attributes */
        xdr_opaque(x, names[i], (uint32_t)strlen(names[i]));
        xdr_long(x, i + 1);
        if (c->procedure == NFS3_READDIRPLUS) {
            put_post_attributes(x, s, file);
            xdr_word(x, 1);
            xdr_opaque(x, handles[i], (uint32_t)strlen(handles[i]));
        }
    }
    xdr_word(x, 0);
    xdr_word(x, 1); /* the end */
}

/* Bytes: in all, free, of those for the caller; likewise files; how long this stays so. */
static void put_fsstat(struct xdr_out *x, const struct storage *s, const struct served *c)
{
    put_post_attributes(x, s, c->is_file);
    xdr_long(x, s->c.room);
    xdr_long(x, 0);
    xdr_long(x, 0);
    xdr_long(x, 2);
    xdr_long(x, 0);
    xdr_long(x, 0);
    xdr_word(x, 0);
}

static void put_fsinfo(struct xdr_out *x, const struct storage *s, const struct served *c)
{
    enum { HOMOGENEOUS = 8 };

    put_post_attributes(x, s, c->is_file);
    for (unsigned i = 0; i < 2; i++) { /* a read, a write: most, preferred, multiple of */
        xdr_word(x, CHUNK_DATA);
        xdr_word(x, CHUNK_DATA);
        xdr_word(x, 1);
    }
    xdr_word(x, INLINE_DATA); /* of a directory */
    xdr_long(x, s->c.room);
    xdr_long(x, 1); /* granularity of times: a nanosecond */
    xdr_word(x, HOMOGENEOUS);
}

/* Links, bytes of a name; longer ones are refused; chown is restricted; case matters, and is kept. */
static void put_pathconf(struct xdr_out *x, const struct storage *s, const struct served *c)
{
    static const uint32_t words[] = {1, 255, 1, 1, 0, 1};

    put_post_attributes(x, s, c->is_file);
    for (unsigned i = 0; i < ARRAY_LEN(words); i++)
        xdr_word(x, words[i]);
}

/* --- Calls ------------------------------------------------------------------------------------ */

/* The chunks of a call: false if there is more than one segment of a kind. A reply chunk is not needed. */
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
        } else if (s.list != RPCRDMA_REPLY) {
            return false;
        }
    }
    return !w.bad;
}

static bool is_handle(const uint8_t *fh, uint32_t len, const char *name)
{
    return len == strlen(name) && memcmp(fh, name, len) == 0;
}

static uint32_t take_lookup(const struct storage *s, struct served *c, struct xdr_in *x)
{
    uint32_t len;
    const uint8_t *name = xdr_get_opaque(x, 255, &len);

    (void)s;
    return c->is_file ? NFS3ERR_NOTDIR : is_handle(name, len, NFS_NAME) ? NFS3_OK : NFS3ERR_NOENT;
}
static uint32_t take_access(const struct storage *s, struct served *c, struct xdr_in *x)
{
    (void)s;
    c->wanted = xdr_get(x);
    return NFS3_OK;
}
/* What lies behind the end of the file is not read. */
static uint32_t take_read(const struct storage *s, struct served *c, struct xdr_in *x)
{
    uint32_t most = c->has_write ? min_u32(c->write.len, STORAGE_SIZE_MAX) : INLINE_DATA;

    c->offset = xdr_get_long(x);
    c->count = min_u32(xdr_get(x), most);
    if (c->offset > s->c.room)
        c->offset = s->c.room;
    if (c->count > s->c.room - c->offset)
        c->count = (uint32_t)(s->c.room - c->offset);
    return c->is_file ? NFS3_OK : NFS3ERR_INVAL;
}
static uint32_t take_write(const struct storage *s, struct served *c, struct xdr_in *x)
{
    uint32_t len;

    c->offset = xdr_get_long(x);
    c->count = xdr_get(x);
    c->stable = xdr_get(x);
    if (c->has_read) {
        len = xdr_get(x);
        if (c->read.len != len || c->read.position != x->at - c->body)
            return NFS3ERR_INVAL;
    } else {
        c->data = xdr_get_opaque(x, RPC_INLINE, &len);
    }
    if (!c->is_file || c->count != len || c->count > STORAGE_SIZE_MAX)
        return NFS3ERR_INVAL;
    return c->offset > s->c.room || c->count > s->c.room - c->offset ? NFS3ERR_FBIG : NFS3_OK;
}
static uint32_t take_commit(const struct storage *s, struct served *c, struct xdr_in *x)
{
    (void)s;
    (void)c;
    xdr_skip(x, 12);
    return NFS3_OK;
}
/* READDIR and READDIRPLUS: cookie, verifier, one or two limits: all entries fit in any. */
static uint32_t take_entries(const struct storage *s, struct served *c, struct xdr_in *x)
{
    (void)s;
    c->offset = xdr_get_long(x);
    xdr_skip(x, c->procedure == NFS3_READDIRPLUS ? 16 : 12);
    return c->is_file ? NFS3ERR_NOTDIR : NFS3_OK;
}

/* Procedures by number: how arguments behind the handle are read, which gives the status (NULL: there are none); how
 * results are written; words of a failure: attributes that are not there. */
static const struct procedure {
    uint32_t (*take)(const struct storage *s, struct served *c, struct xdr_in *x);
    void (*put)(struct xdr_out *x, const struct storage *s, const struct served *c); /* NULL: not served */
    uint8_t failure;
} procedures[] = {
    [NFS3_GETATTR] = {NULL, put_getattr, 0},
    [NFS3_LOOKUP] = {take_lookup, put_lookup, 1},
    [NFS3_ACCESS] = {take_access, put_access, 1},
    [NFS3_READ] = {take_read, put_read, 1},
    [NFS3_WRITE] = {take_write, put_write, 2},
    [NFS3_READDIR] = {take_entries, put_entries, 1},
    [NFS3_READDIRPLUS] = {take_entries, put_entries, 1},
    [NFS3_FSSTAT] = {NULL, put_fsstat, 1},
    [NFS3_FSINFO] = {NULL, put_fsinfo, 1},
    [NFS3_PATHCONF] = {NULL, put_pathconf, 1},
    [NFS3_COMMIT] = {take_commit, put_commit, 2},
};

/* Read the arguments of a call; the accept status. */
static uint32_t take_arguments(const struct storage *s, struct served *c, struct xdr_in *x)
{
    const struct procedure *p = c->procedure < ARRAY_LEN(procedures) ? &procedures[c->procedure] : NULL;
    uint32_t len, status;
    const uint8_t *fh;

    if (c->procedure == NFS3_NULL)
        return RPC_SUCCESS;
    if (!p || !p->put)
        return RPC_PROC_UNAVAIL;
    fh = xdr_get_opaque(x, NFS_FH_MAX, &len);
    c->is_file = is_handle(fh, len, NFS_FILE);
    status = p->take ? p->take(s, c, x) : NFS3_OK;
    c->status = c->is_file || is_handle(fh, len, NFS_ROOT) ? status : NFS3ERR_STALE;
    return x->bad ? RPC_GARBAGE_ARGS : RPC_SUCCESS;
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
        const struct procedure *p = &procedures[c->procedure];
        xdr_word(&x, c->status);
        if (c->status == NFS3_OK)
            p->put(&x, l->s, c);
        for (unsigned i = 0; c->status != NFS3_OK && i < p->failure; i++)
            xdr_word(&x, 0);
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

/* Carry out a call whose data are there, and reply. */
static void finish(struct link *l, unsigned slot, ns_t now)
{
    struct server *v = l->user;
    const struct served *c = &v->call[slot];
    struct storage *s = l->s;
    struct sge own = {s->disk_iova + c->offset, c->count, s->disk_key};
    bool read = c->procedure == NFS3_READ, write = c->procedure == NFS3_WRITE;

    if (c->status == NFS3_OK && write && c->data)
        memcpy(s->disk + c->offset, c->data, c->count);
    if (c->status == NFS3_OK && read && c->has_write && c->count)
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
    c->body = h.len;
    x.at = r.at ? h.len + r.at : x.len;
    accepted = r.program == RPC_NFS && r.version == NFS_V3 ? take_arguments(l->s, c, &x) : RPC_PROG_UNAVAIL;
    if (accepted != RPC_SUCCESS) {
        reply(l, slot, accepted, now);
    } else if (c->procedure == NFS3_WRITE && c->status == NFS3_OK && !c->data && c->count) {
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
