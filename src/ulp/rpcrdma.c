/* layer 2b (ulp): RPC over RDMA with NFS: calls, their chunks and replies, callbacks. */
#include "dissect/file/nfs.h"
#include "dissect/mad/cm.h"
#include "src/ulp/proto.h"

#include <stdio.h>

enum { WRITE_LIST = 1u << RPCRDMA_WRITES, REPLY_CHUNK = 1u << RPCRDMA_REPLY };

/* What a call keeps. Its key is the xid, of a callback with CALLBACK. */
struct own {
    struct nfs_call nfs;
    uint32_t written;               /* bytes that the reply says were written to chunks */
    uint8_t called[12];             /* program, version, procedure as on the wire */
    uint8_t n_done;                 /* operations with a result */
    uint8_t rdma_error;             /* of RDMA_ERROR; 0: none */
    bool known;                     /* the RPC header was there */
    bool denied, accepted, replied; /* the RPC header of the reply was there (`replied`), and says */
    bool cut;                       /* it was not captured */
    bool cut_lists;                 /* neither were all of its lists of chunks: `written` is not known */
    uint32_t in_chunk;              /* bytes of the reply in the reply chunk, which were not all there */
    uint16_t asked, granted;        /* credits: calls that the client would send, and may; larger ones as UINT16_MAX */
};
ULP_OWN_AS(struct own)

/* Of a connection: how many pieces of memory had the xid of their call in the upper half of their address, as Linux
 * does it, and whether others had not. */
struct habit {
    uint64_t with_xid;
    bool without;
};

#define CALLBACK (UINT64_C(1) << 32)

/* Program, version and procedure of the call. */
static struct rpc called_by(const struct own *o)
{
    return (struct rpc){
        .program = load_be32(o->called), .version = load_be32(o->called + 4), .procedure = load_be32(o->called + 8)};
}

/* The RPC message that follows the header. */
static struct ulp_body behind(const struct ulp_message *m, const struct rpcrdma *h)
{
    return ulp_part(&m->body, h->len, UINT32_MAX);
}

/* --- Chunks ----------------------------------------------------------------------------------- */

static void add_length(struct nfs_chunks *c, bool more, uint32_t position, uint32_t length)
{
    if (more && c->n && c->chunk[c->n - 1].position == position)
        c->chunk[c->n - 1].length += length;
    else if (c->n < NFS_CHUNKS)
        c->chunk[c->n++] = (struct nfs_chunk){position, length};
}

/* What a message lacks: of a call the chunks of its read list, of a reply those of its write list. */
static struct nfs_chunks chunks_of(const struct ulp_message *m, const struct rpcrdma *h, bool call)
{
    struct rpcrdma_walk w = rpcrdma_segments(h, m->body.b, h->len);
    struct rpcrdma_segment s;
    struct nfs_chunks c = {0};

    while (rpcrdma_next(&w, &s))
        if (call && s.list == RPCRDMA_READS && s.position)
            add_length(&c, true, s.position, s.length);
        else if (!call && s.list == RPCRDMA_WRITES)
            add_length(&c, !s.first, 0, s.length);
    return c;
}

/* The memory of one list; returns its bytes. */
static uint64_t offer_list(struct ulp_conn *c, struct ulp_command *cmd, const struct ulp_message *m,
                           const struct rpcrdma *h, enum rpcrdma_list list)
{
    struct rpcrdma_walk w = rpcrdma_segments(h, m->body.b, h->len);
    enum ulp_dir dir = list == RPCRDMA_READS ? ULP_FROM_CLIENT : ULP_TO_CLIENT;
    struct habit *habit = ulp_state(c);
    struct rpcrdma_segment s;
    uint64_t n = 0, with = 0, without = 0;

    while (rpcrdma_next(&w, &s)) {
        if (s.list != list)
            continue;
        n += s.length;
        *(s.offset >> 32 == h->xid ? &with : &without) += 1;
        if (!ulp_offer(c, cmd, dir, s.handle, s.offset, s.length))
            break;
    }
    habit->with_xid += with;
    habit->without |= without > 0;
    return n;
}

/* A call whose message was not captured, by the address of its memory: see struct habit. Its reply has its xid, too. */
static bool rpcrdma_unasked(struct ulp_conn *c, struct ulp_message *m, const struct ulp_unasked *u)
{
    const struct habit *habit = ulp_state(c);
    uint64_t xid = u->va >> 32;
    struct ulp_command *cmd;

    cmd = ulp_find(c, xid);
    if (cmd && cmd->untold[u->dir] && u->owner == ULP_CLIENT)
        return ulp_offer(c, cmd, u->dir, u->rkey, u->va, u->len);
    if (u->owner != ULP_CLIENT || !habit->with_xid || habit->without || !xid || ulp_find_completed(c, xid))
        return ulp_give_untold(c, u);
    if (cmd ? !cmd->headless : !(cmd = ulp_begin(c, m, xid)))
        return false;
    cmd->headless = true;
    return ulp_offer(c, cmd, u->dir, u->rkey, u->va, u->len);
}

/* The message of a call comes behind packets of its data. */
static struct ulp_command *take_head(struct ulp_conn *c, struct ulp_message *m, uint64_t key)
{
    struct ulp_command *cmd = ulp_find_headless(c, key);

    if (!cmd)
        return ulp_begin(c, m, key);
    cmd->headless = false;
    cmd->frame = m->frame;
    cmd->start = m->start < cmd->start ? m->start : cmd->start;
    cmd->sent = m->now;
    cmd->packets += m->packets;
    cmd->requested[ULP_TO_CLIENT] = cmd->requested[ULP_FROM_CLIENT] = 0;
    m->command = cmd;
    return cmd;
}

/* The memory that a call offers. The bytes of an RPC message in a chunk are kept: they are the first ones of their way,
 * as the position of the message is 0, and the reply chunk is offered before the write list. */
static void offer(struct ulp_conn *c, struct ulp_command *cmd, const struct ulp_message *m, const struct rpcrdma *h)
{
    uint64_t from = offer_list(c, cmd, m, h, RPCRDMA_READS), to = offer_list(c, cmd, m, h, RPCRDMA_REPLY);

    offer_list(c, cmd, m, h, RPCRDMA_WRITES);
    if (h->proc == RPCRDMA_NOMSG)
        ulp_keep(c, cmd, ULP_FROM_CLIENT, (uint32_t)(from < ULP_DATA_MAX ? from : ULP_DATA_MAX));
    else if (to)
        ulp_keep(c, cmd, ULP_TO_CLIENT, (uint32_t)(to < ULP_DATA_MAX ? to : ULP_DATA_MAX));
}

/* --- Calls ------------------------------------------------------------------------------------ */

/* The RPC message of a call, from the SEND (with what it lacks in `chunks`) or from a chunk (NULL). */
static void read_call(struct ulp_command *cmd, const struct ulp_body *body, const struct nfs_chunks *chunks,
                      struct pkt *show)
{
    struct nfs_call nfs;
    struct rpc r;

    if (!rpc_get(&r, body->b, body->len) || r.type != RPC_CALL)
        return;
    rpc_layers(show, body, &r, NULL);
    nfs_call_read(&nfs, &r, body, chunks, show);
    if (!cmd || own_of(cmd)->known)
        return;
    own_of(cmd)->nfs = nfs;
    own_of(cmd)->known = true;
    if (chunks)
        ulp_inline(cmd, ULP_FROM_CLIENT, nfs.inside);
    memcpy(own_of(cmd)->called, body->b + 12, 12);
}

/* A call whose lists of chunks were cut: which one it is, and the memory of which it still tells. */
static void take_cut_call(struct ulp_conn *c, struct ulp_message *m, const struct rpcrdma *h)
{
    struct ulp_command *cmd = m->again ? NULL : take_head(c, m, h->xid);

    if (!cmd)
        return;
    own_of(cmd)->asked = (uint16_t)min_u32(h->credits, UINT16_MAX);
    cmd->untold[ULP_TO_CLIENT] = cmd->untold[ULP_FROM_CLIENT] = true;
    for (enum rpcrdma_list list = RPCRDMA_READS; list < RPCRDMA_END; list++)
        offer_list(c, cmd, m, h, list);
}

static void take_call(struct ulp_conn *c, struct ulp_message *m, const struct rpcrdma *h)
{
    const struct nfs_chunks chunks = chunks_of(m, h, true);
    const struct ulp_body body = behind(m, h);
    struct ulp_command *cmd = m->command;

    if (!m->again) {
        cmd = take_head(c, m, h->xid | (m->side == ULP_SERVER ? CALLBACK : 0));
        if (cmd) {
            own_of(cmd)->asked = (uint16_t)min_u32(h->credits, UINT16_MAX);
            offer(c, cmd, m, h);
        }
    }
    rpcrdma_layers(m->show, &m->body, h);
    if (h->proc != RPCRDMA_NOMSG)
        read_call(cmd, &body, &chunks, m->show);
}

/* --- Replies ---------------------------------------------------------------------------------- */

/* What a reply says of its call. */
struct outcome {
    uint32_t inside; /* bytes of a file's data in the RPC message */
    uint16_t status;
    uint8_t n_done;
    bool replied, denied, accepted, failed;
    struct nfs_call found; /* nfs_reply.found */
};

/* What a reply tells of the file, behind its status: " count 20 FILE_SYNC". */
static void say_found(struct ulp_message *m, const struct nfs_call *found)
{
    struct buf b = {0};

    nfs_arguments_text(&b, found);
    snprintf(m->behind, sizeof m->behind, "%s", b.len ? buf_str(&b) : "");
    buf_free(&b);
}

/* Whether a reply to the call has a status of its own. */
static bool has_status(const struct rpc *called)
{
    return (called->program == RPC_NFS || called->program == RPC_NFSACL) && called->procedure != 0;
}

/* The RPC message of a reply, from the SEND or from the reply chunk. */
static struct outcome read_reply(struct ulp_conn *c, const struct own *o, const struct ulp_body *body,
                                 const struct nfs_chunks *chunks, struct pkt *show)
{
    const struct rpc called = called_by(o);
    struct nfs_reply nfs;
    struct ulp_body shown = {0};
    struct outcome end = {0};
    struct rpc r;
    bool told;

    if (!rpc_get(&r, body->b, body->len) || r.type != RPC_REPLY)
        return end;
    told = r.at; /* else its status was cut */
    if (o->known)
        shown = ulp_show(c, show, o->called, sizeof o->called);
    rpc_layers(show, body, &r, shown.len ? &shown : NULL);
    if (shown.len)
        nfs_called_layer(show, &called, &shown, 8);
    end = (struct outcome){.status = (uint16_t)r.status,
                           .replied = told,
                           .denied = r.denied,
                           .accepted = told && !r.denied && r.status == 0,
                           .failed = r.denied || r.status != 0};
    if (!end.accepted)
        return end;
    nfs_reply_read(&nfs, &called, r.at, body, chunks, show);
    if (!nfs.known && has_status(&called)) /* it was cut behind that of RPC */
        end.replied = false;
    end.inside = nfs.inside;
    end.status = (uint16_t)nfs.status;
    end.n_done = (uint8_t)min_u32(nfs.n_ops, UINT8_MAX);
    end.failed = nfs.status != 0;
    end.found = nfs.found;
    return end;
}

/* Bytes that were written to the chunks of these lists, bits of enum rpcrdma_list: the lists of a reply are those of
 * the call, with the bytes that were written. */
static uint32_t written_to(const struct ulp_message *m, const struct rpcrdma *h, unsigned lists)
{
    struct rpcrdma_walk w = rpcrdma_segments(h, m->body.b, h->len);
    struct rpcrdma_segment s;
    uint64_t n = 0;

    while (rpcrdma_next(&w, &s))
        n += lists >> s.list & 1 ? s.length : 0;
    return (uint32_t)(n < UINT32_MAX ? n : UINT32_MAX);
}

/* The RPC message of a reply without one: what was written to the reply chunk. */
static struct ulp_body reply_chunk(struct ulp_conn *c, struct ulp_command *cmd, const struct ulp_message *m,
                                   const struct rpcrdma *h)
{
    struct ulp_body kept = ulp_kept(cmd);

    kept.len = min_u32(kept.len, written_to(m, h, REPLY_CHUNK));
    return m->show ? ulp_show(c, m->show, kept.b, kept.len) : kept;
}

/* A compound that was cut: the reply has its operations, up to the one that failed. */
static void learn_ops(struct nfs_call *call, const struct nfs_call *found)
{
    if (call->known >= call->n_ops || found->known <= call->known)
        return;
    memcpy(call->ops, found->ops, sizeof call->ops);
    call->known = (uint8_t)min_u32(found->known, call->n_ops);
    if (!call->main)
        call->main = nfs_main(found, call->n_ops);
}

static void keep_outcome(struct own *o, const struct outcome *end)
{
    learn_ops(&o->nfs, &end->found);
    o->n_done = end->n_done;
    o->replied = end->replied;
    o->denied = end->denied;
    o->accepted = end->accepted;
}

/* Whether a reply that came tells how the call ended. */
static bool is_unread(const struct own *o)
{
    return !o->rdma_error && (!o->replied || (o->accepted && !o->known));
}

static void complete(struct ulp_conn *c, struct ulp_message *m, const struct rpcrdma *h, struct ulp_command *cmd,
                     const struct outcome *end)
{
    struct own *o = own_of(cmd);

    if (h->proc != RPCRDMA_NOMSG)
        ulp_inline(cmd, ULP_TO_CLIENT, end->inside);
    o->written = written_to(m, h, WRITE_LIST | REPLY_CHUNK);
    o->rdma_error = h->proc == RPCRDMA_ERROR ? (uint8_t)h->error : 0;
    o->granted = (uint16_t)min_u32(h->credits, UINT16_MAX);
    o->cut = h->proc == RPCRDMA_NOMSG ? ulp_kept_cut(cmd) : m->cut;
    o->in_chunk = h->proc == RPCRDMA_NOMSG ? written_to(m, h, REPLY_CHUNK) : 0;
    keep_outcome(o, end);
    cmd->unread = is_unread(o);
    ulp_complete(c, cmd, m, end->status, end->failed);
    m->command = cmd;
}

static void take_reply(struct ulp_conn *c, struct ulp_message *m, const struct rpcrdma *h)
{
    static const struct own none;
    const struct nfs_chunks chunks = chunks_of(m, h, false);
    struct ulp_command *cmd = m->command;
    struct ulp_body body = behind(m, h);
    struct outcome end = {.status = (uint16_t)h->error, .failed = h->proc == RPCRDMA_ERROR};

    if (!m->again)
        cmd = ulp_find(c, h->xid | (m->side == ULP_CLIENT ? CALLBACK : 0));
    rpcrdma_layers(m->show, &m->body, h);
    snprintf(m->says, sizeof m->says, " reply xid 0x%x, its call was not seen", h->xid);
    if (h->proc == RPCRDMA_NOMSG)
        body = cmd ? reply_chunk(c, cmd, m, h) : (struct ulp_body){0};
    if (body.len && h->proc != RPCRDMA_ERROR)
        end = read_reply(c, cmd ? own_of(cmd) : &none, &body, &chunks, m->show);
    if (cmd && !m->again)
        complete(c, m, h, cmd, &end);
    if (cmd)
        say_found(m, &end.found);
}

/* A reply whose lists of chunks were cut: there is one. */
static void take_cut_reply(struct ulp_conn *c, struct ulp_message *m, const struct rpcrdma *h)
{
    struct ulp_command *cmd = m->again ? NULL : ulp_find(c, h->xid);

    if (!cmd)
        return;
    own_of(cmd)->cut = own_of(cmd)->cut_lists = cmd->unread = true;
    ulp_complete(c, cmd, m, 0, false);
    m->command = cmd;
}

/* Whether a message is a call: by its RPC header; one whose RPC header is in a chunk is a call if it is the client's.
 */
static bool is_call(const struct ulp_message *m, const struct rpcrdma *h)
{
    if (h->proc == RPCRDMA_MSG || h->proc == RPCRDMA_MSGP)
        return m->body.len - h->len >= 8 && load_be32(m->body.b + h->len + 4) == RPC_CALL;
    return h->proc == RPCRDMA_NOMSG && m->side == ULP_CLIENT;
}

static bool rpcrdma_message(struct ulp_conn *c, struct ulp_message *m)
{
    struct rpcrdma h;
    struct rpc r;

    if (rpcrdma_is_2(m->body.b, m->body.len)) {
        snprintf(m->says, sizeof m->says, " version 2, xid 0x%x: not decoded", load_be32(m->body.b));
        return true;
    }
    if (!rpcrdma_get(&h, m->body.b, m->body.len) || (!h.whole && !m->hole && !m->cut))
        return false;
    if (!h.whole && m->cut && !m->hole) /* only the client's calls and the server's replies have chunks */
        (m->side == ULP_CLIENT ? take_cut_call : take_cut_reply)(c, m, &h);
    if (!h.whole || h.proc == RPCRDMA_DONE) {
        rpcrdma_layers(m->show, &m->body, &h);
        return true;
    }
    if ((h.proc == RPCRDMA_MSG || h.proc == RPCRDMA_MSGP) && !rpc_get(&r, m->body.b + h.len, m->body.len - h.len) &&
        !m->hole && !m->cut)
        return false;
    if (is_call(m, &h))
        take_call(c, m, &h);
    else
        take_reply(c, m, &h);
    return true;
}

/* What was written to the reply chunk came only after the message that says so. */
static void read_late(struct ulp_conn *c, struct ulp_command *cmd)
{
    static const struct nfs_chunks none;
    struct own *o = own_of(cmd);
    struct ulp_body body = ulp_kept(cmd);
    struct outcome end;

    if (body.len < o->in_chunk)
        return;
    body.len = o->in_chunk;
    end = read_reply(c, o, &body, &none, NULL);
    keep_outcome(o, &end);
    cmd->status = end.status;
    cmd->failed = end.failed;
    cmd->unread = is_unread(o);
}

/* The RPC message of a call in a chunk is complete, or that of a reply. */
static void rpcrdma_data(struct ulp_conn *c, const struct ulp_data *d)
{
    const struct own *o = own_const(d->command);

    if (d->all.len && d->dir == ULP_FROM_CLIENT)
        read_call(d->command, &d->all, NULL, d->show);
    if (d->dir == ULP_TO_CLIENT && o->in_chunk && !o->replied)
        read_late(c, d->command);
}

static void rpcrdma_setup(struct pkt *show, const struct ulp_setup *s)
{
    if (s->attr != CM_REJ)
        rpcrdma_private_layers(show, &s->body);
}

static void rpcrdma_begins(const struct ulp_conn *c, enum ulp_side side, const struct ulp_body *m, struct buf *b)
{
    struct rpcrdma h;

    (void)c;
    (void)side;
    if (rpcrdma_get(&h, m->b, m->len))
        buf_printf(b, "xid 0x%08x", h.xid);
}

/* --- Text and values -------------------------------------------------------------------------- */

static const char *name_of(const struct own *o)
{
    const struct rpc r = called_by(o);
    const char *op = nfs_op_str(o->nfs.main);

    return r.program == RPC_NFS && r.version == 4 && op ? op : nfs_procedure_str(r.program, r.version, r.procedure);
}

static void rpcrdma_name_text(struct buf *b, const struct ulp_command *c)
{
    const struct own *o = own_const(c);
    const struct rpc r = called_by(o);
    const char *program = rpc_program_str(r.program), *name = name_of(o);

    if (!o->known) {
        buf_puts(b, "call");
        return;
    }
    if (r.program != RPC_NFS && !c->by_server)
        program ? buf_printf(b, "%s ", program) : buf_printf(b, "program %u ", r.program);
    name ? buf_puts(b, name) : buf_printf(b, "procedure %u", r.procedure);
}

static void rpcrdma_key_text(struct buf *b, const struct ulp_command *c)
{
    buf_printf(b, "xid 0x%08x", (uint32_t)c->key);
}

static void rpcrdma_text(struct buf *b, const struct ulp_command *c)
{
    rpcrdma_name_text(b, c);
    buf_char(b, ' ');
    rpcrdma_key_text(b, c);
    if (c->headless)
        buf_puts(b, ", its message was not captured");
    nfs_arguments_text(b, &own_const(c)->nfs);
}

/* The opcode of the operation that failed; 0: none, or it is not known. */
static uint32_t failed_op(const struct ulp_command *c)
{
    const struct own *o = own_const(c);

    return c->failed && o->accepted && o->n_done && o->n_done <= o->nfs.known ? o->nfs.ops[o->n_done - 1] : 0;
}

static void rpcrdma_status(struct buf *b, const struct ulp_command *c)
{
    static const char *const errors[] = {"", "RDMA_ERR_VERS", "RDMA_ERR_CHUNK"};
    const struct own *o = own_const(c);
    const struct rpc r = called_by(o);
    const char *name = rpc_status_str(o->denied, c->status), *op = nfs_op_str(failed_op(c));

    if (o->rdma_error) {
        buf_puts(b, o->rdma_error < ARRAY_LEN(errors) ? errors[o->rdma_error] : "RDMA_ERROR");
    } else if (!o->replied) {
        buf_puts(b, o->cut ? "answered, the reply was cut by the snap length" : "answered, the reply is not known");
    } else if (!o->accepted) {
        name ? buf_puts(b, name) : buf_printf(b, "RPC status %u", c->status);
    } else if (!o->known) {
        buf_puts(b, "accepted, the call is not known");
    } else if (!has_status(&r)) {
        buf_puts(b, "SUCCESS");
    } else if (!nfs_status_put(b, r.version, c->status)) {
        buf_printf(b, "NFS status %u", c->status);
    }
    if (op)
        buf_printf(b, " in %s", op);
}

/* The operations of a compound: "SEQUENCE PUTFH READ". */
static const char *ops_text(struct buf *b, const struct nfs_call *c)
{
    for (unsigned i = 0; i < c->known; i++) {
        const char *name = nfs_op_str(c->ops[i]);
        if (i)
            buf_char(b, ' ');
        name ? buf_puts(b, name) : buf_printf(b, "%u", c->ops[i]);
    }
    if (c->known < c->n_ops)
        buf_puts(b, " ...");
    return buf_str(b);
}

static void rpcrdma_values(const struct ulp_command *c, ulp_take *take, void *user)
{
    const struct own *o = own_const(c);
    const struct nfs_call *n = &o->nfs;
    const struct rpc r = called_by(o);
    const char *program = rpc_program_str(r.program), *name = nfs_procedure_str(r.program, r.version, r.procedure);
    const char *op = nfs_op_str(failed_op(c));
    struct buf ops = {0};
    const struct ulp_value values[] = {
        {"xid", NULL, (uint32_t)c->key, true},
        {"callback", NULL, c->by_server, true},
        {"credits_requested", NULL, o->asked, o->asked != 0},
        {"credits_granted", NULL, o->granted, o->granted != 0},
        {"program", NULL, r.program, o->known},
        {"program_name", program ? program : "", 0, o->known},
        {"version", NULL, r.version, o->known},
        {"procedure", NULL, r.procedure, o->known},
        {"procedure_name", name ? name : "", 0, o->known},
        {"minor_version", NULL, n->minor, n->n_ops > 0},
        {"operations", ops_text(&ops, n), 0, n->n_ops > 0},
        {"operations_done", NULL, o->n_done, n->n_ops > 0 && o->accepted},
        {"failed_operation", op ? op : "", 0, op != NULL},
        {"file_handle_hash", NULL, n->fh_hash, n->have_fh},
        {"file_name", n->name, 0, n->name[0] != 0},
        {"offset", NULL, n->offset, n->have_offset},
        {"count", NULL, n->count, n->have_count},
        {"stable", NULL, n->stable, n->have_stable},
        {"bytes_written", NULL, o->written, c->response != 0 && !o->cut_lists},
        {"rdma_error", NULL, o->rdma_error, o->rdma_error != 0},
        {"rpc_denied", NULL, o->denied, o->replied},
        {"status_code", NULL, c->status, c->response != 0 && o->replied},
    };

    for (unsigned i = 0; i < ARRAY_LEN(values); i++)
        take(user, &values[i]);
    buf_free(&ops);
}

const struct ulp_proto ulp_rpcrdma = {
    .name = "NFS/RDMA",
    .word = "nfs",
    .size = sizeof(struct habit),
    .looks = rpcrdma_looks,
    .looks_cut = rpcrdma_looks_cut,
    .begins = rpcrdma_begins,
    .late_commands = true,
    .message = rpcrdma_message,
    .unasked = rpcrdma_unasked,
    .data = rpcrdma_data,
    .setup = rpcrdma_setup,
    .name_text = rpcrdma_name_text,
    .key_text = rpcrdma_key_text,
    .command_text = rpcrdma_text,
    .status_text = rpcrdma_status,
    .values = rpcrdma_values,
};
