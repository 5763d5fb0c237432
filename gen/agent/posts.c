/* layer 3 (agent): the commands that post work requests, with pieces of memory as they are given: wrong ones, too. */
#include "gen/agent/names.h"

#include <errno.h>

/* --- Pieces ----------------------------------------------------------------------------------- */

/* "mr1+OFF:LEN[:LKEY]" or "ADDR:LEN:LKEY". */
static bool one_piece(struct agent *a, struct request *r, const struct token *t, struct sge *to)
{
    struct token at, rest, len, lkey, name, off;
    uint64_t v[3] = {0};
    struct object *mr;

    if (!token_cut(t, ':', &at, &rest))
        return request_wrong(r, "sge=: expected MR+OFFSET:LENGTH[:LKEY] or ADDRESS:LENGTH:LKEY");
    token_cut(&at, '+', &name, &off);
    mr = object_find(&a->objects, OBJECT_MR, name.p, name.len);
    if (token_cut(&rest, ':', &len, &lkey)) {
        if (!token_u64(&lkey, &v[2]) || v[2] > UINT32_MAX)
            return request_wrong(r, "sge=: expected an L_Key of 32 bits");
    } else if (mr) {
        v[2] = mr->lkey;
    } else {
        return request_wrong(r, "sge=: there is no such mr, or the L_Key is missing");
    }
    if (!token_u64(&len, &v[1]) || v[1] > UINT32_MAX)
        return request_wrong(r, "sge=: expected a length of 32 bits");
    if (mr ? at.len != name.len && !token_u64(&off, &v[0]) : !token_u64(&at, &v[0]))
        return request_wrong(r, "sge=: expected an address, or MR+OFFSET");
    *to = (struct sge){.addr = v[0] + (mr ? mr->addr : 0), .length = (uint32_t)v[1], .lkey = (uint32_t)v[2]};
    return true;
}

static bool pieces(struct agent *a, struct request *r, struct sge *to, uint16_t *n)
{
    const struct token *t = request_arg(r, "sge");
    struct token rest, first, next;
    bool more = t && t->len;

    *n = 0;
    for (rest = t ? *t : (struct token){0}; more; rest = next) {
        if (*n == RNIC_SGES)
            return request_wrong(r, "sge=: at most %d pieces", RNIC_SGES);
        next = (struct token){0};
        more = token_cut(&rest, ',', &first, &next);
        if (!one_piece(a, r, &first, &to[(*n)++]))
            return false;
    }
    return true;
}

/* Data that is sent inline is read by this process: each piece has to lie in memory of the client's. */
static bool is_readable(const struct agent *a, const struct sge *s)
{
    for (const struct object *o = object_next(&a->objects, OBJECT_MEM, NULL); o;
         o = object_next(&a->objects, OBJECT_MEM, o)) {
        uint64_t start = (uint64_t)(uintptr_t)o->bytes;
        if (s->addr >= start && s->addr - start <= o->len && s->length <= o->len - (s->addr - start))
            return true;
    }
    return s->length == 0;
}

static bool inline_is_readable(struct agent *a, struct request *r, const struct rnic_send *s)
{
    for (unsigned i = 0; (s->wr.flags & SEND_INLINE) && i < s->wr.num_sge; i++)
        if (!is_readable(a, &s->sge[i]))
            return request_wrong(r, "inline data has to lie in memory of the client's");
    return true;
}

/* ATOMIC WRITE: libibverbs reads its 8 bytes when it is posted. */
static bool atomic_data(struct agent *a, struct request *r, struct rnic_send *s)
{
    const struct sge *e = s->sge;

    if (s->wr.num_sge != 1 || e->length != sizeof s->data)
        return request_wrong(r, "ATOMIC_WRITE has one piece of 8 bytes");
    for (const struct object *o = object_next(&a->objects, OBJECT_MR, NULL); o;
         o = object_next(&a->objects, OBJECT_MR, o))
        if (o->base && o->lkey == e->lkey && e->addr >= o->addr && e->addr - o->addr <= o->len &&
            sizeof s->data <= o->len - (e->addr - o->addr)) {
            memcpy(s->data, o->base + (e->addr - o->addr), sizeof s->data);
            return true;
        }
    return request_wrong(r, "the piece of ATOMIC_WRITE has to lie in a region of the client's");
}

/* --- Sends ------------------------------------------------------------------------------------ */

/* BIND_MW: the window mw=, on mw_len= bytes from mw_addr= of the region mr=, with access=. */
static bool window(struct agent *a, struct request *r, struct rnic_send *s)
{
    struct object *mw, *mr;
    uint64_t access = 0;

    if (!agent_object(a, r, "mw", OBJECT_MW, &mw) || !agent_object(a, r, "mr", OBJECT_MR, &mr) ||
        !request_flags(r, "access", access_names, &access) ||
        !request_u64(r, "mw_len", 0, UINT64_MAX, &s->wr.mw_length) ||
        !request_u64(r, "mw_addr", 0, UINT64_MAX, &s->wr.remote_addr))
        return false;
    s->mw = agent_impl(mw);
    s->mr = agent_impl(mr);
    s->wr.mw_access = (uint8_t)access;
    if (!s->mw || !s->mr)
        return request_wrong(r, "a window and a region are needed: mw=, mr=");
    return true;
}

static bool send_destination(struct request *r, struct send_wr *w)
{
    return request_u32(r, "dest_qpn", 0, UINT32_MAX, &w->remote_qpn) &&
           request_u32(r, "qkey", 0, UINT32_MAX, &w->remote_qkey) &&
           request_u32(r, "srqn", 0, UINT32_MAX, &w->remote_srqn);
}

static bool send_remote(struct request *r, struct send_wr *w)
{
    return request_u64(r, "raddr", 0, UINT64_MAX, &w->remote_addr) && request_u32(r, "rkey", 0, UINT32_MAX, &w->rkey) &&
           request_u64(r, "compare_add", 0, UINT64_MAX, &w->compare_add) &&
           request_u64(r, "swap", 0, UINT64_MAX, &w->swap) &&
           request_u32(r, "flush_len", 0, UINT32_MAX, &w->flush_length) && request_bool(r, "whole", &w->whole_region);
}

static bool send_numbers(struct request *r, struct send_wr *w)
{
    return request_u64(r, "wr_id", 0, UINT64_MAX, &w->wr_id) && request_u32(r, "imm", 0, UINT32_MAX, &w->imm_data) &&
           request_u32(r, "inv", 0, UINT32_MAX, &w->inv_rkey) && send_remote(r, w) && send_destination(r, w);
}

/* What is posted, how, and where a FLUSH takes the data. */
static bool send_kind(struct request *r, struct send_wr *w)
{
    uint64_t op = WR_SEND, flags = SEND_SIGNALED, placement = FLUSH_GLOBAL;

    if (!request_name(r, "op", opcode_names, &op) || !request_flags(r, "flags", send_flag_names, &flags) ||
        !request_flags(r, "placement", placement_names, &placement))
        return false;
    if (op > UINT8_MAX || flags > UINT8_MAX || placement > UINT8_MAX)
        return request_wrong(r, "op=, flags= and placement= have 8 bits");
    w->opcode = (uint8_t)op;
    w->flags = (uint8_t)flags;
    w->placement = (uint8_t)placement;
    return true;
}

static bool send_request(struct agent *a, struct request *r, struct rnic_send *s)
{
    struct object *ah;

    if (!send_kind(r, &s->wr) || !send_numbers(r, &s->wr) || !pieces(a, r, s->sge, &s->wr.num_sge) ||
        !agent_object(a, r, "ah", OBJECT_AH, &ah))
        return false;
    s->wr.sg_list = s->sge;
    s->ah = agent_impl(ah);
    return inline_is_readable(a, r, s) && (s->wr.opcode != WR_ATOMIC_WRITE || atomic_data(a, r, s)) &&
           (s->wr.opcode != WR_BIND_MW || window(a, r, s));
}

static int posted(struct agent *a, struct object *o, int e, ns_t when)
{
    o->posted += e == 0;
    buf_printf(&a->reply, " t=%lld", (long long)when);
    return e;
}

static int cmd_send(struct agent *a, struct request *r)
{
    struct rnic_send s = {0};
    struct object *o;
    ns_t when;

    if (!agent_object(a, r, "qp", OBJECT_QP, &o) || !send_request(a, r, &s))
        return -EINVAL;
    if ((o->type == RNIC_QP_UD) && !s.ah)
        return request_wrong(r, "a queue pair of UD needs ah="), -EINVAL;
    s.send_ops = o->send_ops;
    when = agent_time(a);
    return posted(a, o, a->rnic->ops->post_send(a->rnic, o->impl, &s), when);
}

/* A window of type 1 is bound by a separate call. */
static int cmd_bind(struct agent *a, struct request *r)
{
    struct rnic_send s = {.wr.opcode = WR_BIND_MW, .wr.flags = SEND_SIGNALED};
    uint64_t flags = SEND_SIGNALED;
    uint32_t rkey = 0;
    struct object *o;
    int e;

    if (!agent_object(a, r, "qp", OBJECT_QP, &o) || !request_flags(r, "flags", send_flag_names, &flags) ||
        !request_u64(r, "wr_id", 0, UINT64_MAX, &s.wr.wr_id) || !window(a, r, &s))
        return -EINVAL;
    s.wr.flags = (uint8_t)flags;
    e = posted(a, o, a->rnic->ops->mw_bind(a->rnic, o->impl, &s, &rkey), agent_time(a));
    if (e == 0)
        buf_printf(&a->reply, " rkey=0x%x", rkey);
    return e;
}

/* --- Receives --------------------------------------------------------------------------------- */

static int receive(struct agent *a, struct request *r, const char *key, enum object_kind kind)
{
    struct sge sge[RNIC_SGES];
    struct recv_wr w = {.sg_list = sge};
    struct object *o;
    ns_t when;

    if (!agent_object(a, r, key, kind, &o) || !request_u64(r, "wr_id", 0, UINT64_MAX, &w.wr_id) ||
        !pieces(a, r, sge, &w.num_sge))
        return -EINVAL;
    when = agent_time(a);
    return posted(a, o,
                  kind == OBJECT_QP ? a->rnic->ops->post_recv(a->rnic, o->impl, &w)
                                    : a->rnic->ops->post_srq(a->rnic, o->impl, &w),
                  when);
}

static int cmd_recv(struct agent *a, struct request *r)
{
    return receive(a, r, "qp", OBJECT_QP);
}

static int cmd_srq_recv(struct agent *a, struct request *r)
{
    return receive(a, r, "srq", OBJECT_SRQ);
}

const struct agent_command agent_posts[] = {
    {"post send",
     "qp=QP [op=OPCODE] [wr_id=N] [sge=PIECES] [flags=FLAGS] [imm=N] [inv=KEY] [raddr=ADDR] [rkey=KEY] [compare_add=N] "
     "[swap=N] [ah=AH] [dest_qpn=N] [qkey=N] [srqn=N] [mw=MW] [mr=MR] [mw_addr=ADDR] [mw_len=N] [access=RIGHTS] "
     "[flush_len=N] [placement=global,persistent] [whole=0|1]",
     "post a send work request", cmd_send, AGENT_DEVICE | AGENT_POST},
    {"post recv", "qp=QP [wr_id=N] [sge=PIECES]", "post a receive", cmd_recv, AGENT_DEVICE | AGENT_POST},
    {"post srq", "srq=SRQ [wr_id=N] [sge=PIECES]", "post a receive to a shared receive queue", cmd_srq_recv,
     AGENT_DEVICE | AGENT_POST},
    {"mw bind", "qp=QP mw=MW mr=MR [mw_addr=ADDR] [mw_len=N] [access=RIGHTS] [wr_id=N] [flags=FLAGS]",
     "bind a window of type 1, or unbind it (mw_len=0)", cmd_bind, AGENT_DEVICE | AGENT_POST},
    {NULL, NULL, NULL, NULL, 0},
};
