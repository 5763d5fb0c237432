/* layer 1 (wire): RPC over RDMA: headers of the transport and of RPC read, and recognised. */
#include "dissect/file/rpcrdma.h"

#define READ_LEN    20 /* position, handle, length, offset */
#define SEGMENT_LEN 16

/* --- Chunk lists ------------------------------------------------------------------------------ */

static bool walk_end(struct rpcrdma_walk *w, bool bad)
{
    w->bad |= bad;
    return false;
}

/* The next word; false: it is not there. */
static bool walk_word(struct rpcrdma_walk *w, uint32_t *v)
{
    if (w->len - w->at < 4)
        return false;
    *v = load_be32(w->b + w->at);
    w->at += 4;
    return true;
}

/* A segment of the list that the walk is in. */
static bool walk_segment(struct rpcrdma_walk *w, struct rpcrdma_segment *s)
{
    uint32_t n = w->list == RPCRDMA_READS ? READ_LEN : SEGMENT_LEN;
    const uint8_t *p = w->b + w->at + n - SEGMENT_LEN;

    if (w->len - w->at < n)
        return walk_end(w, true);
    *s = (struct rpcrdma_segment){.list = w->list,
                                  .chunk = w->chunks[w->list] - 1,
                                  .first = w->list != RPCRDMA_READS && w->left == w->count,
                                  .count = w->count,
                                  .position = w->list == RPCRDMA_READS ? load_be32(w->b + w->at) : 0,
                                  .handle = load_be32(p),
                                  .length = load_be32(p + 4),
                                  .offset = load_be64(p + 8),
                                  .at = w->at};
    w->at += n;
    return true;
}

bool rpcrdma_next(struct rpcrdma_walk *w, struct rpcrdma_segment *s)
{
    uint32_t more;

    while (w->list != RPCRDMA_END && !w->bad) {
        if (w->left) {
            if (!walk_segment(w, s))
                return false;
            w->left--;
            return true;
        }
        if (w->list == RPCRDMA_REPLY && w->chunks[RPCRDMA_REPLY]) {
            w->list = RPCRDMA_END;
            return false;
        }
        if (!walk_word(w, &more) || more > 1)
            return walk_end(w, true);
        if (!more) {
            w->list++;
            continue;
        }
        w->chunks[w->list]++;
        if (w->list == RPCRDMA_READS)
            return walk_segment(w, s);
        if (!walk_word(w, &w->count))
            return walk_end(w, true);
        w->left = w->count;
    }
    return false;
}

/* Bytes between the fixed part and the lists: alignment and threshold of a padded message. */
static uint32_t lists_at(const struct rpcrdma *h)
{
    return RPCRDMA_FIXED + (h->proc == RPCRDMA_MSGP ? 8 : 0);
}

struct rpcrdma_walk rpcrdma_segments(const struct rpcrdma *h, const uint8_t *b, uint32_t len)
{
    struct rpcrdma_walk w = {.b = b, .len = len, .at = min_u32(lists_at(h), len)};

    if (h->proc == RPCRDMA_ERROR || h->proc == RPCRDMA_DONE)
        w.list = RPCRDMA_END;
    return w;
}

/* --- The header ------------------------------------------------------------------------------- */

bool rpcrdma_is_2(const uint8_t *b, uint32_t len)
{
    return len >= RPCRDMA_FIXED && load_be32(b + 4) == 2;
}

static bool get_error(struct rpcrdma *h, const uint8_t *b, uint32_t len)
{
    if (len < RPCRDMA_FIXED + 4)
        return false;
    h->error = load_be32(b + RPCRDMA_FIXED);
    h->len = min_u32(len, RPCRDMA_FIXED + (h->error == RPCRDMA_ERR_VERS ? 12 : 4));
    h->whole = true;
    return h->error == RPCRDMA_ERR_VERS || h->error == RPCRDMA_ERR_CHUNK;
}

bool rpcrdma_get(struct rpcrdma *h, const uint8_t *b, uint32_t len)
{
    struct rpcrdma_segment s;
    struct rpcrdma_walk w;

    *h = (struct rpcrdma){0};
    if (len < RPCRDMA_FIXED)
        return false;
    h->xid = load_be32(b);
    h->version = load_be32(b + 4);
    h->credits = load_be32(b + 8);
    h->proc = load_be32(b + 12);
    if (h->version != 1 || h->proc > RPCRDMA_ERROR)
        return false;
    if (h->proc == RPCRDMA_ERROR)
        return get_error(h, b, len);
    w = rpcrdma_segments(h, b, len);
    while (rpcrdma_next(&w, &s))
        ;
    h->n_reads = w.chunks[RPCRDMA_READS];
    h->n_writes = w.chunks[RPCRDMA_WRITES];
    h->n_reply = w.chunks[RPCRDMA_REPLY];
    h->whole = w.list == RPCRDMA_END;
    h->len = w.at;
    /* a word that is neither 0 nor 1 is no list; what is cut may be one */
    return h->whole || w.left || len - w.at < READ_LEN;
}

/* --- Recognition ------------------------------------------------------------------------------ */

/* Who sends a message without an RPC header: of a call it is in the read list, at position 0, of a reply in the reply
 * chunk. */
static enum ulp_looks nomsg_looks(const struct rpcrdma *h, const uint8_t *b, uint32_t len)
{
    struct rpcrdma_walk w = rpcrdma_segments(h, b, len);
    struct rpcrdma_segment s;

    if (!rpcrdma_next(&w, &s))
        return LOOKS_OTHER;
    if (s.list == RPCRDMA_READS)
        return s.position == 0 ? LOOKS_CLIENT : LOOKS_OTHER;
    return h->n_reply ? LOOKS_SERVER : LOOKS_OTHER;
}

enum ulp_looks rpcrdma_looks(const uint8_t *b, uint32_t len, bool whole)
{
    struct rpcrdma h;
    struct rpc r;
    uint32_t n;

    (void)whole;
    if (!rpcrdma_get(&h, b, len) || !h.whole || !h.credits || h.credits > UINT16_MAX)
        return LOOKS_OTHER;
    n = len - h.len;
    if (h.proc == RPCRDMA_NOMSG && n == 0)
        return nomsg_looks(&h, b, len);
    if (h.proc != RPCRDMA_MSG || n < 12 || !rpc_get(&r, b + h.len, n) || r.xid != h.xid)
        return LOOKS_OTHER;
    if (r.type == RPC_CALL && r.program == RPC_NFS && (r.version == 3 || r.version == 4) && r.procedure < 22)
        return LOOKS_FIRST;
    /* callbacks have programs of the transient range, and are called by the server */
    if (r.type == RPC_CALL)
        return r.program >> 29 == RPC_NFS_CB >> 29 ? LOOKS_SERVER : LOOKS_CLIENT;
    return LOOKS_SERVER;
}

enum ulp_looks rpcrdma_looks_cut(const uint8_t *b, uint32_t len, uint32_t all, bool whole)
{
    enum ulp_looks looks = rpcrdma_looks(b, len, whole);
    const uint8_t *rpc;
    struct rpcrdma h;

    (void)all;
    if (looks || !rpcrdma_get(&h, b, len) || !h.whole || !h.credits || h.credits > UINT16_MAX)
        return looks;
    if (h.proc == RPCRDMA_NOMSG)
        return nomsg_looks(&h, b, len);
    rpc = b + h.len;
    if (h.proc != RPCRDMA_MSG || len - h.len < 12 || load_be32(rpc) != h.xid)
        return LOOKS_OTHER;
    if (load_be32(rpc + 4) == RPC_CALL)
        return load_be32(rpc + 8) == 2 ? LOOKS_CLIENT : LOOKS_OTHER;
    return load_be32(rpc + 4) == RPC_REPLY && load_be32(rpc + 8) < 2 ? LOOKS_SERVER : LOOKS_OTHER;
}

bool rpcrdma_private_fits(const uint8_t *b, uint32_t len)
{
    return len >= 8 && load_be32(b) == UINT32_C(0xf6ab0e18) && b[4] == 1;
}

/* --- RPC -------------------------------------------------------------------------------------- */

/* The byte behind credentials or a verifier at byte `at`: flavor, length, at most 400 bytes; 0: not there, or longer.
 */
static uint32_t behind_auth(const uint8_t *b, uint32_t len, uint32_t at)
{
    uint32_t n;

    if (len < 8 || at > len - 8)
        return 0;
    n = load_be32(b + at + 4);
    if (n > 400 || (n + 3) / 4 * 4 > len - at - 8)
        return 0;
    return at + 8 + (n + 3) / 4 * 4;
}

static bool get_call(struct rpc *r, const uint8_t *b, uint32_t len)
{
    if (len < RPC_CALL_LEN || load_be32(b + 8) != 2)
        return false;
    r->program = load_be32(b + 12);
    r->version = load_be32(b + 16);
    r->procedure = load_be32(b + 20);
    r->at = behind_auth(b, len, RPC_CALL_LEN);
    if (r->at)
        r->at = behind_auth(b, len, r->at);
    return true;
}

static bool get_reply(struct rpc *r, const uint8_t *b, uint32_t len)
{
    uint32_t at = 12;

    if (len < 16 || load_be32(b + 8) > 1)
        return false;
    r->denied = load_be32(b + 8) == 1;
    if (!r->denied)
        at = behind_auth(b, len, at);
    if (!at || len - at < 4)
        return at != 0;
    r->status = load_be32(b + at);
    r->at = at + 4;
    return r->status <= 5;
}

bool rpc_get(struct rpc *r, const uint8_t *b, uint32_t len)
{
    *r = (struct rpc){0};
    if (len < 12)
        return false;
    r->xid = load_be32(b);
    r->type = load_be32(b + 4);
    return r->type == RPC_CALL ? get_call(r, b, len) : r->type == RPC_REPLY && get_reply(r, b, len);
}

static const struct vname programs[] = {{RPC_PORTMAP, "PORTMAP"}, {RPC_NFS, "NFS"},   {RPC_MOUNT, "MOUNT"},
                                        {RPC_NLM, "NLM"},         {RPC_STAT, "STAT"}, {RPC_NFSACL, "NFSACL"},
                                        {RPC_NFS_CB, "NFS CB"}};
const struct vdesc rpc_program_desc = VDESC_NAMES(programs);

const char *rpc_program_str(uint32_t program)
{
    return vname_find(programs, ARRAY_LEN(programs), program);
}

const char *rpc_status_str(bool denied, uint32_t status)
{
    static const char *const accepted[] = {"SUCCESS",      "PROG_UNAVAIL", "PROG_MISMATCH",
                                           "PROC_UNAVAIL", "GARBAGE_ARGS", "SYSTEM_ERR"};
    static const char *const rejected[] = {"RPC_MISMATCH", "AUTH_ERROR"};

    if (denied)
        return status < ARRAY_LEN(rejected) ? rejected[status] : NULL;
    return status < ARRAY_LEN(accepted) ? accepted[status] : NULL;
}
