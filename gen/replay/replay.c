/* layer 3 (replay): the story of one end, played. */
#include "gen/replay/replay.h"

#include "bits.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define DEPTH      128                  /* work requests outstanding */
#define RECVS      64                   /* receives posted */
#define RECV_BYTES 4096                 /* of a receive at least: the peer may send more than it did */
#define SINK_BYTES (UINT64_C(64) << 20) /* for what READs return, unless a single one is longer */

static PRINTF_LIKE(2, 3) void failed(struct replay *r, const char *fmt, ...)
{
    va_list ap;

    if (*r->why)
        return;
    va_start(ap, fmt);
    vsnprintf(r->why, sizeof r->why, fmt, ap);
    va_end(ap);
}

static uint8_t *bytes_at(const struct replay *r, uint64_t at)
{
    return (uint8_t *)r->s->bytes.p + at;
}

/* --- Memory ----------------------------------------------------------------------------------- */

static int make_region(struct replay *r, uint32_t i)
{
    const struct story_region *g = &r->s->regions[i];
    const uint8_t access = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC;

    if (!r->memory[i])
        r->memory[i] = calloc(1, g->to - g->from);
    return r->memory[i] ? verbs_mr_reg_iova(r->verbs, r->pd, r->memory[i], g->to - g->from, g->from, access, &r->key[i])
                        : -ENOMEM;
}

static int make_regions(struct replay *r)
{
    const struct story *s = r->s;
    uint64_t sum = 0;
    int e = 0;

    r->memory = calloc(s->n_regions + 1, sizeof *r->memory);
    r->key = calloc(s->n_regions + 1, sizeof *r->key);
    if (!r->memory || !r->key)
        return -ENOMEM;
    for (uint32_t i = 0; i < s->n_regions && e == 0; i++) {
        sum += s->regions[i].to - s->regions[i].from;
        e = sum > STORY_BYTES ? -ENOMEM : make_region(r, i);
    }
    return e;
}

/* Room for what READs return. */
static int make_sink(struct replay *r)
{
    for (uint32_t i = 0; i < r->s->n_ops; i++) {
        const struct story_op *op = &r->s->ops[i];
        if (!story_op_fetches(op))
            continue;
        if (op->len > STORY_BYTES / 2)
            return failed(r, "frame %llu READs %u bytes: at most %llu can be", (unsigned long long)op->frame, op->len,
                          (unsigned long long)STORY_BYTES / 2),
                   -ENOMEM;
        r->slot = max_u32(r->slot, max_u32(8, op->len));
    }
    if (!r->slot)
        return 0;
    r->slots = (uint32_t)(SINK_BYTES / r->slot);
    r->slots = r->slots < 1 ? 1 : min_u32(r->slots, DEPTH);
    r->sink = calloc(r->slots, r->slot);
    return r->sink
               ? verbs_mr_reg(r->verbs, r->pd, r->sink, (uint64_t)r->slots * r->slot, ACCESS_LOCAL_WRITE, &r->sink_key)
               : -ENOMEM;
}

static int make_receives(struct replay *r)
{
    uint32_t pitch = max_u32(RECV_BYTES, r->s->longest);

    r->recvs = (struct receives){.verbs = r->verbs,
                                 .qp = r->qp,
                                 .srq = EP_NO_SRQ,
                                 .pitch = pitch,
                                 .bytes = pitch,
                                 .slots = RECVS,
                                 .id = RECEIVES_ID};
    r->recvs.mem = calloc(RECVS, pitch);
    r->recvs.iova = (uintptr_t)r->recvs.mem;
    return r->recvs.mem ? verbs_mr_reg(r->verbs, r->pd, r->recvs.mem, (uint64_t)RECVS * pitch, ACCESS_LOCAL_WRITE,
                                       &r->recvs.lkey)
                        : -ENOMEM;
}

static int make_qp(struct replay *r)
{
    struct verbs_qp_init init = {.type = QPT_RC,
                                 .sq_sig_all = true,
                                 .qpn = r->o.qpn,
                                 .max_send_wr = DEPTH,
                                 .max_recv_wr = RECVS,
                                 .max_dest_rd = r->s->depth[1] > 16 ? r->s->depth[1] : 16,
                                 .srq = EP_NO_SRQ,
                                 .pd = r->pd};

    r->cq = init.send_cq = init.recv_cq = verbs_cq_create(r->verbs, 2 * (DEPTH + RECVS));
    if (r->cq < 0)
        return r->cq;
    r->qp = verbs_qp_create(r->verbs, &init);
    return r->qp < 0 ? r->qp : 0;
}

/* Which messages of the peer's are needed for keys. */
static int make_heard(struct replay *r)
{
    const struct story *s = r->s;

    r->heard = calloc(s->n_msgs + 1, sizeof *r->heard);
    if (!r->heard)
        return -ENOMEM;
    for (uint32_t i = 0; i < s->n_ops; i++) {
        const struct story_op *op = &s->ops[i];
        if (op->named != STORY_NONE)
            r->heard[op->named == STORY_PRIVATE ? s->n_msgs : op->named].needed = true;
        else if (story_op_remote(op) && !r->o.has_memory)
            return failed(r,
                          "frame %llu goes to memory with R_Key 0x%08x, which no message of the peer tells: give "
                          "--rkey and --va",
                          (unsigned long long)op->frame, op->rkey),
                   -ENOKEY;
    }
    return 0;
}

int replay_init(struct replay *r, struct verbs *verbs, struct story *s, const struct replay_opts *o)
{
    int e;

    memset(r, 0, sizeof *r);
    r->verbs = verbs;
    r->s = s;
    r->o = *o;
    r->qp = r->cq = -1;
    r->pd = verbs_pd_alloc(verbs);
    if (!r->pd || !buf_need(&s->bytes, 1))
        return -ENOMEM;
    e = make_heard(r);
    if (e == 0)
        e = verbs_mr_reg(verbs, r->pd, s->bytes.p, s->bytes.len ? s->bytes.len : 1, ACCESS_LOCAL_WRITE, &r->bytes_key);
    if (e == 0)
        e = make_regions(r);
    if (e == 0)
        e = make_sink(r);
    if (e == 0)
        e = make_qp(r);
    return e ? e : make_receives(r);
}

void replay_free(struct replay *r)
{
    if (r->verbs && r->qp >= 0)
        verbs_qp_destroy(r->verbs, r->qp);
    if (r->verbs && r->cq >= 0)
        verbs_cq_destroy(r->verbs, r->cq);
    for (uint32_t i = 0; r->s && i < r->s->n_regions; i++) {
        if (r->key && r->key[i])
            verbs_mr_dereg(r->verbs, r->key[i]);
        if (r->memory)
            free(r->memory[i]);
    }
    if (r->bytes_key)
        verbs_mr_dereg(r->verbs, r->bytes_key);
    if (r->sink_key)
        verbs_mr_dereg(r->verbs, r->sink_key);
    if (r->recvs.lkey)
        verbs_mr_dereg(r->verbs, r->recvs.lkey);
    free(r->memory);
    free(r->key);
    free(r->sink);
    free(r->recvs.mem);
    free(r->heard);
    buf_free(&r->heard_bytes);
    memset(r, 0, sizeof *r);
}

/* --- Keys ------------------------------------------------------------------------------------- */

static void put_key(uint8_t *p, bool little, uint32_t key)
{
    if (little)
        store_le32(p, key);
    else
        store_be32(p, key);
}

/* Write the keys of our memory into the bytes of message `op`. Those of a work request are next. */
static void name_own(struct replay *r, uint32_t op, uint8_t *p)
{
    const struct story *s = r->s;

    for (; r->next_own < s->n_owns && s->owns[r->next_own].op == op; r->next_own++) {
        const struct story_own *o = &s->owns[r->next_own];
        put_key(p + o->at.key_at, o->at.little, r->key[o->region]);
    }
}

const uint8_t *replay_private(struct replay *r)
{
    name_own(r, STORY_NONE, r->s->private_data[0]);
    return r->s->private_data[0];
}

/* Keep the bytes of a message, or of private data, if keys are named in it. */
static void keep(struct replay *r, struct replay_heard *h, const uint8_t *p, uint32_t n, ns_t now)
{
    h->when = now ? now : 1;
    if (!h->needed)
        return;
    h->at = r->heard_bytes.len;
    h->n = n;
    buf_mem(&r->heard_bytes, p, n);
    if (r->heard_bytes.err)
        failed(r, "out of memory");
}

void replay_heard_private(struct replay *r, const uint8_t *data, uint8_t len)
{
    keep(r, &r->heard[r->s->n_msgs], data, len, 1);
}

/* Where in the peer's memory a work request goes now. False with r->why: it is not known. */
static bool place_of(struct replay *r, const struct story_op *op, uint64_t *va, uint32_t *rkey)
{
    const struct story_place *at = &op->named_at;
    const struct replay_heard *h;
    const uint8_t *p;

    if (op->named == STORY_NONE) {
        *va = r->o.va + (op->va - op->named_va);
        *rkey = r->o.rkey;
        return true;
    }
    h = &r->heard[op->named == STORY_PRIVATE ? r->s->n_msgs : op->named];
    if (h->n < at->key_at + 4 || h->n < at->va_at + 8) {
        failed(r,
               "the message of the peer that should name the memory for the request of frame %llu is shorter than in "
               "the capture",
               (unsigned long long)op->frame);
        return false;
    }
    p = (const uint8_t *)r->heard_bytes.p + h->at;
    *rkey = at->little ? load_le32(p + at->key_at) : load_be32(p + at->key_at);
    *va = (at->little ? load_le64(p + at->va_at) : load_be64(p + at->va_at)) + (op->va - op->named_va);
    return true;
}

/* --- Posting ---------------------------------------------------------------------------------- */

/* What the peer READs must be there now. */
static void put_memory(struct replay *r)
{
    const struct story *s = r->s;

    for (; r->next_put < s->n_puts && s->puts[r->next_put].before <= r->next; r->next_put++) {
        const struct story_put *p = &s->puts[r->next_put];
        memcpy(r->memory[p->region] + (p->va - s->regions[p->region].from), bytes_at(r, p->data), p->len);
    }
}

ns_t replay_wait(const struct replay_opts *o, ns_t from, ns_t to)
{
    const __int128 most = INT64_MAX / 4;
    __int128 t = ((__int128)to - from) * 1000 / (o->speed ? o->speed : 1000);

    return t <= 0 || o->topspeed ? 0 : (ns_t)(t < most ? t : most);
}

/* When the next work request is due: as long after the one before it, and after the message that it waited for, as in
 * the capture. NS_NEVER: it waits for the peer. */
static ns_t due(const struct replay *r, ns_t now)
{
    const struct story_op *op = &r->s->ops[r->next];
    ns_t when = now, t;

    if (r->counts.arrived < op->needs || r->reads_done < op->needs_reads || r->next - r->counts.completed >= DEPTH ||
        (story_op_fetches(op) && r->reads_posted - r->reads_done >= r->slots))
        return NS_NEVER;
    if (r->next) {
        t = r->posted_at + replay_wait(&r->o, op[-1].at, op->at);
        when = t > when ? t : when;
    }
    if (op->needs) {
        t = r->heard[op->needs - 1].when + replay_wait(&r->o, r->s->msgs[op->needs - 1].at, op->at);
        when = t > when ? t : when;
    }
    return when;
}

/* The bytes of a work request. */
static struct sge sge_of(const struct replay *r, const struct story_op *op)
{
    if (!story_op_fetches(op))
        return (struct sge){(uintptr_t)bytes_at(r, op->data), op->len, r->bytes_key};
    return (struct sge){(uintptr_t)(r->sink + (uint64_t)(r->reads_posted % r->slots) * r->slot), op->len, r->sink_key};
}

/* The key of the peer's that a SEND with Invalidate is for: that of the latest work request with this key. */
static bool invalidates(struct replay *r, const struct story_op *op, uint32_t *key)
{
    uint64_t va;

    for (const struct story_op *o = op; o-- > r->s->ops && op - o < RECVS;)
        if (story_op_remote(o) && o->rkey == op->imm && o->named != STORY_NONE)
            return place_of(r, o, &va, key);
    return false;
}

static void post(struct replay *r, ns_t now)
{
    struct story_op *op = &r->s->ops[r->next];
    struct sge sge;
    struct send_wr wr = {.wr_id = r->next,
                         .opcode = op->opcode,
                         .flags = (uint8_t)(SEND_SIGNALED | (op->solicited ? SEND_SOLICITED : 0)),
                         .sg_list = &sge,
                         .imm_data = op->imm,
                         .compare_add = op->compare_add,
                         .swap = op->swap};
    int e;

    put_memory(r);
    sge = sge_of(r, op);
    wr.num_sge = sge.length ? 1 : 0;
    if (!story_op_remote(op))
        name_own(r, r->next, bytes_at(r, op->data));
    else if (!place_of(r, op, &wr.remote_addr, &wr.rkey))
        return;
    if (op->opcode == WR_SEND_WITH_INV && !invalidates(r, op, &wr.inv_rkey)) {
        wr.opcode = WR_SEND;
        r->counts.plain++;
    }
    e = verbs_post_send(r->verbs, r->qp, &wr, now);
    if (e < 0) {
        failed(r, "the work request of frame %llu could not be posted: %s", (unsigned long long)op->frame,
               strerror(-e));
        return;
    }
    r->reads_posted += story_op_fetches(op);
    r->counts.start = r->counts.start ? r->counts.start : now;
    r->counts.posted++;
    r->posted_at = now;
    r->next++;
}

/* --- Completions ------------------------------------------------------------------------------ */

static void take_message(struct replay *r, const struct wc *wc, ns_t now)
{
    uint64_t n = wc->wr_id & ~RECEIVES_ID;
    const uint8_t *p = receives_mem(&r->recvs, n);
    bool is_send = wc->opcode == WC_RECV; /* else a WRITE, whose data are not in the receive */
    const struct story_msg *m;
    int e;

    if (r->counts.arrived < r->s->n_msgs) {
        m = &r->s->msgs[r->counts.arrived];
        if (wc->byte_len != m->len)
            r->counts.other_length++;
        else if (m->is_send != is_send || (is_send && m->whole && memcmp(p, bytes_at(r, m->data), m->len) != 0))
            r->counts.other_data++;
        keep(r, &r->heard[r->counts.arrived], p, is_send ? wc->byte_len : 0, now);
    }
    r->counts.arrived++;
    e = receives_post(&r->recvs, n + RECVS, now);
    if (e < 0)
        failed(r, "a receive could not be posted: %s", strerror(-e));
}

static void take_work(struct replay *r, const struct wc *wc, ns_t now)
{
    const struct story_op *op = &r->s->ops[wc->wr_id];

    r->counts.completed++;
    r->counts.bytes += op->len;
    r->counts.end = now;
    if (!story_op_fetches(op))
        return;
    if (op->opcode == WR_RDMA_READ && op->whole &&
        memcmp(r->sink + (uint64_t)(r->reads_done % r->slots) * r->slot, bytes_at(r, op->data), op->len) != 0)
        r->counts.other_reads++;
    r->reads_done++;
}

/* The peer has invalidated a key of ours: the memory gets another one. */
static void renew(struct replay *r, uint32_t key)
{
    for (uint32_t i = 0; i < r->s->n_regions; i++)
        if (r->key[i] == key) {
            verbs_mr_dereg(r->verbs, key);
            r->key[i] = 0;
            if (make_region(r, i) < 0)
                failed(r, "memory could not be registered again");
            return;
        }
}

static void take(struct replay *r, const struct wc *wc, ns_t now)
{
    bool received = wc->wr_id & RECEIVES_ID;

    if (wc->status == WC_WR_FLUSH_ERR && received) /* the peer has disconnected */
        return;
    if (wc->status != WC_SUCCESS && received) {
        failed(r, "a receive completed with %s", wc_status_str(wc->status));
    } else if (wc->status != WC_SUCCESS) {
        const struct story_op *op = &r->s->ops[wc->wr_id];
        r->flushed = !*r->why && wc->status == WC_WR_FLUSH_ERR;
        failed(r, "%s of frame %llu completed with %s", wr_opcode_str(op->opcode), (unsigned long long)op->frame,
               wc_status_str(wc->status));
    } else if (received) {
        if (wc->flags & WC_WITH_INV)
            renew(r, wc->inv_rkey);
        take_message(r, wc, now);
    } else {
        take_work(r, wc, now);
    }
}

void replay_ready(struct replay *r, ns_t now)
{
    int e = receives_post_all(&r->recvs, now);

    put_memory(r); /* the first READs may come with the message that establishes the connection */
    if (e < 0)
        failed(r, "a receive could not be posted: %s", strerror(-e));
}

void replay_start(struct replay *r, ns_t now)
{
    r->posted_at = now;
    r->started = true;
    replay_private(r); /* by hand, nobody has asked for it */
    put_memory(r);
}

ns_t replay_poll(struct replay *r, ns_t now)
{
    struct wc wc;
    ns_t when = NS_NEVER;

    while (!*r->why && verbs_poll(r->verbs, r->cq, &wc, 1) == 1)
        take(r, &wc, now);
    while (r->started && !*r->why && r->next < r->s->n_ops && (when = due(r, now)) <= now)
        post(r, now);
    return r->next < r->s->n_ops ? when : NS_NEVER;
}

bool replay_done(const struct replay *r)
{
    return *r->why || (r->started && r->counts.completed == r->s->n_ops && r->counts.arrived >= r->s->n_msgs);
}
