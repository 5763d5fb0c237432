/* layer 3 (replay): from packets to work requests, messages and memory. */
#include "bits.h"
#include "dissect/ib/opcode.h"
#include "gen/replay/story.h"
#include "psn.h"

#include <stdlib.h>

#define ROOM(s, list) story_room((void **)&(s)->list, (s)->n_##list, &(s)->room_##list, sizeof *(s)->list)

/* A message of an end: packets that follow each other. */
struct message {
    const struct story_packet *first, *last; /* those that were captured */
    uint32_t len;                            /* bytes */
    uint64_t data;                           /* offset in story.bytes */
    bool whole;
    bool missing_first;
};

static int by_psn(const void *a, const void *b)
{
    const struct story_packet *x = a, *y = b;

    return x->psn != y->psn ? (x->psn > y->psn) - (x->psn < y->psn) : (x->frame > y->frame) - (x->frame < y->frame);
}

/* In the order of PSNs, each once: the one that was captured first. */
static void sort(struct story_packets *v)
{
    size_t n = 0;

    if (v->n)
        qsort(v->p, v->n, sizeof *v->p, by_psn);
    for (size_t i = 0; i < v->n; i++)
        if (!n || v->p[n - 1].psn != v->p[i].psn)
            v->p[n++] = v->p[i];
    v->n = n;
}

static uint32_t flags_of(const struct story_packet *k)
{
    return opcode_table[OPCODE(SVC_RC, k->op5)].flags;
}

/* Append `n` bytes, those at offset `from` of the same buffer, or zeros if `from` is UINT64_MAX. */
static void append(struct story *s, uint64_t from, uint32_t n)
{
    if (from == UINT64_MAX) {
        buf_fill(&s->bytes, '\0', n);
        s->missing += n;
    } else if (buf_need(&s->bytes, n)) {
        buf_mem(&s->bytes, s->bytes.p + from, n);
    }
}

/* The bytes of a message of several packets, put together behind all others. `mtu`: bytes of its full packets. */
static void join(struct story *s, struct message *m, const struct story_packet *end, uint32_t mtu)
{
    int64_t next = m->first->psn;

    m->data = s->bytes.len;
    for (const struct story_packet *k = m->first; k < end && !s->cut; k++, next++) {
        uint64_t gap = (uint64_t)(k->psn - next) * mtu;
        s->cut |= s->bytes.len + gap + k->len > STORY_BYTES;
        if (s->cut)
            break;
        append(s, UINT64_MAX, (uint32_t)gap);
        append(s, k->data, k->len);
        s->missing += k->len - k->cap;
        m->whole = m->whole && !gap && k->cap == k->len;
        next = k->psn;
    }
    m->len = (uint32_t)(s->bytes.len - m->data);
}

/* The message that begins at packet *i, which is moved behind it; if its first packet was not captured, with the next
 * one that was. */
static struct message take_message(struct story *s, const struct story_packets *v, size_t *i)
{
    const struct story_packet *first = &v->p[*i], *end = v->p + v->n, *k = first + 1;
    struct message m = {.first = first, .last = first, .len = first->len, .data = first->data};
    bool single = !(flags_of(first) & (OPF_FIRST | OPF_MIDDLE));

    m.whole = first->cap == first->len;
    m.missing_first = flags_of(first) & (OPF_MIDDLE | OPF_LAST);
    if (single && !m.missing_first)
        s->missing += first->len - first->cap;
    while (!single && k < end && flags_of(k) & (OPF_MIDDLE | OPF_LAST) && !(flags_of(m.last) & OPF_END))
        m.last = k++;
    if (!single) {
        m.whole = m.whole && !m.missing_first && flags_of(m.last) & OPF_END;
        join(s, &m, k, first->len);
    }
    *i = (size_t)(k - v->p);
    return m;
}

/* --- Requests --------------------------------------------------------------------------------- */

static enum wr_opcode send_opcode(const struct story_packet *last)
{
    uint32_t ext = opcode_table[OPCODE(SVC_RC, last->op5)].ext;
    bool write = flags_of(last) & OPF_WRITE;

    if (ext & H_IMMDT)
        return write ? WR_RDMA_WRITE_WITH_IMM : WR_SEND_WITH_IMM;
    return write ? WR_RDMA_WRITE : ext & H_IETH ? WR_SEND_WITH_INV : WR_SEND;
}

/* Whether the request can be posted; *op gets its opcode. */
static bool opcode_of(const struct message *m, enum wr_opcode *op)
{
    uint32_t f = flags_of(m->first);

    if (m->missing_first)
        return false;
    *op = f & OPF_READ_REQ                   ? WR_RDMA_READ
          : f & OPF_ATOMIC_WRITE             ? WR_ATOMIC_WRITE
          : !(f & OPF_ATOMIC_REQ)            ? send_opcode(m->last)
          : m->first->op5 == OP_COMPARE_SWAP ? WR_ATOMIC_CMP_AND_SWP
                                             : WR_ATOMIC_FETCH_AND_ADD;
    return f & (OPF_SEND | OPF_WRITE | OPF_READ_REQ | OPF_ATOMIC_REQ | OPF_ATOMIC_WRITE);
}

/* What responses returned to a request. */
struct answer {
    uint64_t data;  /* offset in story.bytes, of `len` bytes */
    uint32_t len;   /* of a READ */
    bool whole;     /* all that was asked for was captured */
    uint64_t frame; /* of the last response; 0: it was not captured */
};

/* The index of the first packet at or behind the PSN. */
static size_t find_psn(const struct story_packets *v, int64_t psn)
{
    size_t lo = 0, hi = v->n;

    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (v->p[mid].psn < psn)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* The responses `v` of the other end to a READ of `len` bytes, or to an atomic, whose PSN is `psn`. */
static struct answer answer_to(struct story *s, const struct story_packets *v, int64_t psn, uint32_t len)
{
    struct answer a = {.data = s->bytes.len, .whole = true};

    for (size_t i = find_psn(v, psn); i < v->n && v->p[i].psn == psn && !a.frame; i++, psn++) {
        const struct story_packet *k = &v->p[i];
        uint32_t n = min_u32(k->len, len - a.len);
        s->cut |= s->bytes.len + n > STORY_BYTES;
        if (s->cut)
            break;
        a.whole = a.whole && k->cap == k->len;
        append(s, k->data, n);
        a.len += n;
        if (flags_of(k) & (OPF_END | OPF_ATOMIC_ACK))
            a.frame = k->frame;
    }
    a.whole = a.whole && a.len == len;
    return a;
}

static bool add_op(struct story *s, const struct message *m, const struct story_half *peer)
{
    const struct story_packet *k = m->first;
    enum wr_opcode opcode = WR_SEND;
    struct story_op *op;

    if (!opcode_of(m, &opcode)) {
        s->left_out++;
        return true;
    }
    if (!ROOM(s, ops))
        return false;
    op = &s->ops[s->n_ops++];
    *op = (struct story_op){.opcode = (uint8_t)opcode,
                            .solicited = m->last->solicited,
                            .at = k->at,
                            .frame = k->frame,
                            .len = m->len,
                            .data = m->data,
                            .imm = m->last->imm,
                            .va = k->va,
                            .rkey = k->rkey,
                            .compare_add = k->compare_add,
                            .swap = k->swap,
                            .named = STORY_NONE,
                            .whole = m->whole};
    if (story_op_fetches(op)) {
        struct answer a;
        op->len = opcode == WR_RDMA_READ ? k->dmalen : 8;
        a = answer_to(s, &peer->sent[1], k->psn, op->len);
        op->data = a.data;
        op->whole = a.whole;
        op->answered = a.frame;
    }
    return true;
}

/* --- Messages and memory ---------------------------------------------------------------------- */

static bool add_msg(struct story *s, const struct message *m)
{
    bool is_send = flags_of(m->last) & OPF_SEND;

    if (!is_send && !(opcode_table[OPCODE(SVC_RC, m->last->op5)].ext & H_IMMDT))
        return true;
    if (!ROOM(s, msgs))
        return false;
    s->msgs[s->n_msgs++] = (struct story_msg){.at = m->last->at,
                                              .frame = m->last->frame,
                                              .len = m->len,
                                              .data = m->data,
                                              .is_send = is_send,
                                              .whole = m->whole};
    s->longest = is_send ? max_u32(s->longest, m->len) : s->longest;
    return true;
}

uint16_t *story_region_of(struct story *s, uint32_t rkey)
{
    uint32_t h = (uint32_t)(rkey * HASH_MULTIPLIER >> 40) % STORY_HASH;

    while (s->region_of[h] && s->regions[s->region_of[h] - 1].rkey != rkey)
        h = (h + 1) % STORY_HASH;
    return &s->region_of[h];
}

/* Let a region grow to [va, va + len). */
static bool grow(struct story_region *r, uint64_t va, uint32_t len)
{
    uint64_t from = va < r->from ? va : r->from, to = va + len > r->to ? va + len : r->to;

    if (to - from > STORY_BYTES / 2)
        return false;
    r->from = from;
    r->to = to;
    return true;
}

/* The region of an R_Key, with [va, va + len) in it. STORY_NONE: no memory, too many, or too long. */
static uint32_t region(struct story *s, uint32_t rkey, uint64_t va, uint32_t len)
{
    uint16_t *at = story_region_of(s, rkey);

    if (va + len < va || len > STORY_BYTES / 2)
        return STORY_NONE;
    if (*at)
        return grow(&s->regions[*at - 1], va, len) ? *at - 1u : STORY_NONE;
    if (s->n_regions == STORY_REGIONS || !ROOM(s, regions))
        return STORY_NONE;
    s->regions[s->n_regions++] = (struct story_region){rkey, va, va + len};
    *at = (uint16_t)s->n_regions;
    return s->n_regions - 1;
}

/* A request of the peer to memory of ours. */
static bool use_memory(struct story *s, const struct story_packet *k, const struct story_half *own, uint32_t before)
{
    uint32_t f = flags_of(k), len = f & (OPF_ATOMIC_REQ | OPF_ATOMIC_WRITE) ? 8 : k->dmalen, i;
    struct story_put *put;
    struct answer a;

    if (!(f & (OPF_READ_REQ | OPF_ATOMIC_REQ | OPF_ATOMIC_WRITE | OPF_WRITE)) || f & (OPF_MIDDLE | OPF_LAST) || !len)
        return true;
    i = region(s, k->rkey, k->va, len);
    if (i == STORY_NONE) {
        s->left_out++;
        return true;
    }
    if (!(f & OPF_READ_REQ))
        return true;
    if (!ROOM(s, puts))
        return false;
    put = &s->puts[s->n_puts++];
    a = answer_to(s, &own->sent[1], k->psn, len);
    *put = (struct story_put){before ? before - 1 : 0, i, k->va, a.len, a.data};
    s->missing += len - a.len;
    return true;
}

/* Work requests of ours before frame `frame`, beginning at `from`. */
static uint32_t ops_before(const struct story *s, uint32_t from, uint64_t frame)
{
    while (from < s->n_ops && s->ops[from].frame < frame)
        from++;
    return from;
}

static bool add_peer(struct story *s, const struct story_half *own, const struct story_half *peer)
{
    const struct story_packets *v = &peer->sent[0];
    uint32_t before = 0;

    for (size_t i = 0; i < v->n;) {
        const struct story_packet *k = &v->p[i];
        bool first = i == 0;
        struct message m;
        before = ops_before(s, before, k->frame);
        if (!use_memory(s, k, own, before))
            return false;
        m = take_message(s, v, &i);
        if (first && m.missing_first) /* it was begun before the capture: nobody sends it now */
            continue;
        if (flags_of(k) & (OPF_SEND | OPF_WRITE) && !add_msg(s, &m))
            return false;
    }
    return true;
}

/* How many messages of the peer's had arrived, and how many READs and atomics were answered, when each work request was
 * sent. */
static void set_needs(struct story *s)
{
    uint32_t n = 0, reads = 0, read = 0; /* read: work request that is looked at for `reads` */

    for (uint32_t i = 0; i < s->n_ops; i++) {
        uint64_t frame = s->ops[i].frame;
        while (n < s->n_msgs && s->msgs[n].frame < frame)
            n++;
        for (; read < i; read++) {
            bool fetches = story_op_fetches(&s->ops[read]);
            if (fetches && (!s->ops[read].answered || s->ops[read].answered > frame))
                break;
            reads += fetches;
        }
        s->ops[i].needs = n;
        s->ops[i].needs_reads = reads;
    }
}

/* READs and atomics outstanding of an end at most: requests whose last response came later than the request. */
static uint8_t depth_of(const struct story_half *requester, const struct story_half *responder)
{
    const struct story_packets *v = &requester->sent[0], *r = &responder->sent[1];
    size_t open = 0, most = 0, n = 0;

    for (size_t i = 0; i < v->n; i++) {
        if (!(flags_of(&v->p[i]) & (OPF_READ_REQ | OPF_ATOMIC_REQ)))
            continue;
        open++;
        for (; n < r->n && r->p[n].frame < v->p[i].frame; n++)
            open -= open > 1 && flags_of(&r->p[n]) & (OPF_END | OPF_ATOMIC_ACK);
        most = open > most ? open : most;
    }
    return (uint8_t)(most > 128 ? 128 : most);
}

bool story_build(struct story *s, struct story_half half[2])
{
    const struct story_packets *v = &half[0].sent[0];

    for (unsigned i = 0; i < 2; i++)
        for (unsigned k = 0; k < 2; k++)
            sort(&half[i].sent[k]);
    for (size_t i = 0; i < v->n;) {
        struct message m = take_message(s, v, &i);
        if (!add_op(s, &m, &half[1]))
            return false;
    }
    if (!add_peer(s, &half[0], &half[1]))
        return false;
    set_needs(s);
    s->depth[0] = depth_of(&half[0], &half[1]);
    s->depth[1] = depth_of(&half[1], &half[0]);
    return !s->bytes.err;
}
