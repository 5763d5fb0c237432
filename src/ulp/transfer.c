/* layer 2b (ulp): READs and WRITEs, tied to the commands whose memory they access. */
#include "src/ulp/ulp_impl.h"

#include <stdlib.h>

struct transfer *transfer_find(struct ulp_flow *f, uint32_t psn)
{
    for (uint32_t i = 1; i <= f->cap; i++) {
        struct transfer *t = &f->transfer[(f->at - i) % f->cap];
        if (!t->kind)
            return NULL;
        if (t->span ? psn_in(psn, t->psn, t->span) : psn_diff(psn, t->psn) >= 0)
            return t;
    }
    return NULL;
}

/* Remember twice as many, if there is room. The latest one stands at the end, and is followed by none. */
static void grow(struct ulp_flow *f)
{
    struct ulp *u = f->conn->ulp;
    struct transfer *more = room_new(u, 2 * f->cap * sizeof *more);

    if (!more)
        return;
    memcpy(more, f->transfer, f->cap * sizeof *more);
    room_free(u, f->transfer, f->cap * sizeof *more);
    f->transfer = more;
    f->cap *= 2;
}

struct transfer *transfer_new(struct ulp_flow *f, enum transfer_kind kind, uint32_t psn)
{
    struct transfer *t;

    if (f->at == f->cap && f->cap < TRANSFERS)
        grow(f);
    t = &f->transfer[f->at++ % f->cap];
    *t = (struct transfer){.kind = (uint8_t)kind, .psn = psn, .span = 1};
    return t;
}

/* A WRITE, or a READ request, with its RETH. A retransmitted one is the transfer that it was. */
static struct transfer *transfer_begin(struct ulp_flow *f, const struct pkt *p, enum transfer_kind kind,
                                       enum seen_as as)
{
    struct transfer *t = as == SEEN_NEW ? NULL : transfer_find(f, p->bth.psn);

    if (!t || t->kind != kind || t->psn != p->bth.psn || t->va != p->reth.va || t->rkey != p->reth.rkey)
        t = transfer_new(f, kind, p->bth.psn);
    t->frame = frame_u32(p);
    t->va = p->reth.va;
    t->rkey = p->reth.rkey;
    t->len = p->reth.dmalen;
    return t;
}

/* The bytes of packet `p` in transfer `t`. */
static uint64_t offset_of(const struct transfer *t, const struct pkt *p)
{
    if (p->op->flags & OPF_END && !(p->op->flags & OPF_ONLY))
        return t->len > p->payload_len ? t->len - p->payload_len : 0;
    return (uint64_t)((p->bth.psn - t->psn) & PSN_MASK) * p->payload_len;
}

/* Whether transfer `t` has room for the bytes of packet `p`: not so if the request that they belong to was not seen. */
static bool has_room(const struct transfer *t, const struct pkt *p)
{
    return offset_of(t, p) + p->payload_len <= t->len;
}

void data_time(struct ulp_command *c, enum ulp_side by, uint64_t frame, ns_t now)
{
    if (!c->data_first || now < c->data_start) {
        c->first_by = (uint8_t)by;
        c->data_first = frame;
        c->data_start = now;
    }
    if (c->data_last && now < c->data_end)
        return;
    c->last_by = (uint8_t)by;
    c->data_last = frame;
    c->data_end = now;
}

/* Keep bytes that are to be decoded together. Returns whether they are complete now. */
static bool keep(struct command *d, const struct segment *s, uint64_t at, const struct moved *m)
{
    uint32_t n;

    if (!d->kept || d->keep_dir != s->dir || at >= d->keep)
        return false;
    n = min_u32(m->cap, (uint32_t)(d->keep - at));
    if (n)
        memcpy(d->kept + at, m->b, n);
    cover_keep(&d->kept_cover, at, at + n);
    d->kept_cut |= m->cap < m->len && at + m->cap < d->keep;
    return cover_prefix(&d->kept_cover) == d->keep;
}

static void show_kept(struct ulp *u, const struct command *d, struct ulp_data *data)
{
    data->all = (struct ulp_body){d->kept, d->keep, LAYER_MESSAGE};
    if (!data->show)
        return;
    memcpy(u->shown_bytes, d->kept, d->keep);
    u->n_shown = d->keep;
    data->show->message = u->shown_bytes;
}

void data_take(struct ulp_conn *c, struct segment *s, uint64_t at, const struct moved *m, struct pkt *show)
{
    struct command *d = s->command;
    struct ulp_data data = {.command = &d->c, .dir = (enum ulp_dir)s->dir, .offset = at, .len = m->len, .show = show};
    uint64_t fresh = cover_add(&s->cover, at - s->base, at - s->base + m->len);

    d->c.moved[s->dir] += fresh;
    d->c.packets++;
    d->c.again += m->len && !fresh;
    if (fresh) {
        data_time(&d->c, m->by, m->frame, m->now);
        command_late(c, d, m->now);
    }
    if (keep(d, s, at, m) && (!d->keep_handed_out || show)) {
        if (at + m->len >= d->keep)
            show_kept(c->ulp, d, &data);
        d->keep_handed_out = true;
    }
    if (show) {
        show->note.ulp_offset = at;
        show->note.have |= NOTE_ULP_DATA;
    }
    if (c->proto->data)
        c->proto->data(c, &data);
}

/* The memory that transfer `t`, begun by the side of `f`, accesses: that of the command that it was tied to before,
 * else of the latest one that offered it. */
static struct segment *memory_of(const struct ulp_flow *f, const struct transfer *t)
{
    const struct command *d = command_of(f->conn, t->command);

    for (uint32_t i = 0; d && i < d->n_segments; i++)
        if (segment_holds(d->segments[i], t->rkey, t->va, t->len))
            return d->segments[i];
    return segment_find(f->conn, ulp_other_side((enum ulp_side)f->side), t->rkey, t->va, t->len);
}

void settle_way(const struct ulp_conn *c, struct segment *s, bool write)
{
    bool to_client = write == (s->owner == ULP_CLIENT);
    enum ulp_dir dir = to_client ? ULP_TO_CLIENT : ULP_FROM_CLIENT;
    struct command *d = s->command;

    if (!c->proto->either_way || s->dir == dir || cover_prefix(&s->cover) > 0)
        return;
    d->c.requested[s->dir] -= s->len;
    d->offered[s->dir] -= s->len;
    d->c.requested[dir] += s->len;
    s->base = d->offered[dir];
    d->offered[dir] += s->len;
    s->dir = (uint8_t)dir;
}

/* Likewise of a transfer that begins with packet `p`: the protocol may know the command though its message was not
 * captured. */
static struct segment *memory_for(struct ulp_flow *f, const struct transfer *t, const struct pkt *p)
{
    struct segment *s = memory_of(f, t);
    struct ulp_message m = {.side = ulp_other_side((enum ulp_side)f->side),
                            .frame = p->frame->number,
                            .start = p->frame->ts,
                            .now = p->frame->ts};
    struct ulp_unasked u = {.owner = m.side,
                            .dir =
                                (t->kind == TRANSFER_WRITE) == (m.side == ULP_CLIENT) ? ULP_TO_CLIENT : ULP_FROM_CLIENT,
                            .rkey = t->rkey,
                            .len = t->len,
                            .va = t->va};

    if (s)
        settle_way(f->conn, s, t->kind == TRANSFER_WRITE);
    if (s || !f->conn->proto->unasked)
        return s;
    return f->conn->proto->unasked(f->conn, &m, &u) ? memory_of(f, t) : NULL;
}

/* A data packet of transfer `t`, which the side of `f` began. */
static struct command *data_packet(struct ulp_flow *f, struct transfer *t, const struct pkt *p, struct pkt *show)
{
    struct ulp_sums *sums = &f->conn->ulp->sums;
    struct segment *s = t ? memory_of(f, t) : NULL;
    enum ulp_side side = (enum ulp_side)f->side;
    uint64_t at = s ? t->va - s->va + offset_of(t, p) : 0;

    if (!s || at + p->payload_len > s->len) {
        sums->untied += p->payload_len;
        return NULL;
    }
    sums->tied += p->payload_len;
    t->command = command_ref(&s->command->c);
    data_take(f->conn, s, s->base + at,
              &(struct moved){p->data + p->payload_off, p->payload_len, p->payload_cap, p->frame->number, p->frame->ts,
                              t->kind == TRANSFER_READ ? ulp_other_side(side) : side},
              show);
    return s->command;
}

/* A packet of a WRITE of a protocol whose requests are WRITEs; `t` may be NULL. */
static struct command *request_packet(struct ulp_flow *f, struct transfer *t, const struct pkt *p, enum seen_as as,
                                      struct pkt *show)
{
    struct ulp_sums *sums = &f->conn->ulp->sums;
    struct command *d = t ? command_of(f->conn, t->command) : NULL;
    bool again = as == SEEN_AGAIN || as == SEEN_COPY || as == SEEN_OLD, taken;
    struct ulp_write w = {.first = p->have & H_RETH, .last = p->op->flags & OPF_END, .tied = t && memory_of(f, t)};
    struct ulp_message m = {.body = ulp_payload(p),
                            .side = (enum ulp_side)f->side,
                            .cut = p->payload_cap < p->payload_len,
                            .again = again,
                            .has_imm = p->have & H_IMMDT,
                            .imm = p->immdt.data,
                            .frame = p->frame->number,
                            .start = p->frame->ts,
                            .now = p->frame->ts,
                            .packets = 1,
                            .show = show,
                            .command = d ? &d->c : NULL};

    if (!t || w.tied)
        d = data_packet(f, t, p, show);
    if (!t)
        return NULL;
    w.psn = t->psn;
    w.at = offset_of(t, p);
    w.va = t->va + w.at;
    w.len = t->len;
    taken = f->conn->proto->write(f->conn, &m, &w);
    early_message(f->conn, &m, taken);
    if (!w.tied)
        *(taken ? &sums->tied : &sums->untied) += p->payload_len;
    if (!m.command)
        return d;
    if (!w.tied)
        t->command = command_ref(m.command);
    return (struct command *)m.command;
}

static struct command *take_write(struct ulp_flow *f, struct transfer *t, const struct pkt *p, enum seen_as as,
                                  struct pkt *show)
{
    return f->conn->proto->write ? request_packet(f, t, p, as, show) : data_packet(f, t, p, show);
}

/* --- Packets that wait for earlier ones: see struct stray ------------------------------------- */

static uint32_t stray_size(const struct pkt *p)
{
    return (uint32_t)sizeof(struct stray) + p->payload_cap;
}

void stray_free(struct ulp_conn *c, struct stray *s)
{
    memory_give(c, stray_size(&s->p));
    free(s);
}

struct stray *stray_take(struct ulp_flow *f, uint32_t i)
{
    struct stray *s = f->stray[i];

    memmove(f->stray + i, f->stray + i + 1, (--f->n_strays - i) * sizeof f->stray[0]);
    return s;
}

void stray_keep(struct ulp_flow *f, const struct pkt *p, enum seen_as as)
{
    struct stray *s;

    if (f->n_strays == STRAYS)
        stray_free(f->conn, stray_take(f, 0));
    if (!memory_take(f->conn, stray_size(p)))
        return;
    s = malloc(stray_size(p));
    if (!s) {
        memory_give(f->conn, stray_size(p));
        return;
    }
    s->p = *p;
    s->frame = *p->frame;
    s->as = (uint8_t)as;
    s->lacking = lacking(f->conn, ulp_other_side((enum ulp_side)f->side));
    memcpy(s->bytes, p->data + p->payload_off, p->payload_cap);
    s->p.frame = &s->frame;
    s->p.data = s->bytes;
    s->p.payload_off = 0;
    f->stray[f->n_strays++] = s;
}

#define PMTU_LEAST 256

/* Whether a packet that waits is of transfer `t`, a WRITE or a READ. */
static bool is_of(const struct stray *s, const struct transfer *t)
{
    uint32_t way = t->kind == TRANSFER_WRITE ? OPF_WRITE : OPF_READ_RESP,
             span = t->span ? t->span : psn_span(t->len, PMTU_LEAST);

    return s->p.op->flags & way && psn_in(s->p.bth.psn, t->psn, span) && has_room(t, &s->p);
}

/* The first packet of WRITE `t`, or the request of READ `t`, came: packets of it that came before belong to it. */
void strays_give(struct ulp_flow *f, struct transfer *t)
{
    struct stray *s;

    for (uint32_t i = 0; i < f->n_strays;) { /* what a packet completes may take others, or add some */
        if (!is_of(f->stray[i], t)) {
            i++;
            continue;
        }
        s = stray_take(f, i);
        f->conn->ulp->sums.untied -= s->p.payload_len;
        if (t->kind == TRANSFER_WRITE)
            take_write(f, t, &s->p, (enum seen_as)s->as, NULL);
        else
            data_packet(f, t, &s->p, NULL);
        stray_free(f->conn, s);
    }
}

static enum ulp_side other_side(const struct ulp_flow *f)
{
    return ulp_other_side((enum ulp_side)f->side);
}

/* Whether packets whose memory no command offered so far wait for it: the end that offers it is captured, too. What a
 * client WRITEs may be the command itself. */
static bool waits_for_command(const struct ulp_flow *f, const struct transfer *t, const struct pkt *p)
{
    const struct ulp_proto *proto = f->conn->proto;

    return t && p->payload_len && proto->late_commands && f->conn->flow[other_side(f)] != FLOW_NONE &&
           !(proto->write && f->side == ULP_CLIENT);
}

void transfers_claim(struct ulp_flow *f)
{
    uint64_t lacks = lacking(f->conn, other_side(f));

    for (uint32_t i = 0; i < f->n_strays;) {
        struct stray *s = f->stray[i];
        struct transfer *t = transfer_find(f, s->p.bth.psn);
        const struct segment *m = t && t->kind != TRANSFER_SEND && is_of(s, t) ? memory_of(f, t) : NULL;
        if (!m || s->lacking != lacks || !early_is_near(s->frame.ts, m->command->c.sent)) {
            i++;
            continue;
        }
        stray_take(f, i);
        f->conn->ulp->sums.untied -= s->p.payload_len;
        data_packet(f, t, &s->p, NULL);
        stray_free(f->conn, s);
    }
}

void transfers_end(struct ulp_flow *f)
{
    while (f->n_strays)
        stray_free(f->conn, f->stray[--f->n_strays]);
}

struct command *write_packet(struct ulp_flow *f, const struct pkt *p, enum seen_as as, struct pkt *show)
{
    struct transfer *t;
    struct command *d;

    if (!(p->have & H_RETH)) {
        t = transfer_find(f, p->bth.psn);
        t = t && t->kind == TRANSFER_WRITE ? t : headless_find(f, p);
        if (!t && p->payload_len)
            stray_keep(f, p, as);
        d = take_write(f, t, p, as, show);
        if (!d && waits_for_command(f, t, p))
            stray_keep(f, p, as);
        return d;
    }
    t = transfer_begin(f, p, TRANSFER_WRITE, as);
    t->span = p->op->flags & OPF_ONLY || !p->payload_len ? 1 : psn_span(t->len, p->payload_len);
    if (f->conn->proto->unasked || f->conn->proto->either_way)
        memory_for(f, t, p);
    d = take_write(f, t, p, as, show);
    if (f->n_strays)
        strays_give(f, t);
    if (!d && waits_for_command(f, t, p))
        stray_keep(f, p, as);
    return d;
}

struct command *read_packet(struct ulp_flow *f, const struct pkt *p, enum seen_as as, struct pkt *show)
{
    struct transfer *t = transfer_begin(f, p, TRANSFER_READ, as);
    struct segment *s = memory_for(f, t, p);
    const struct req_dir *h = observer_req_dir(f->conn->ulp->observer, f->conn->flow[f->side]);

    t->span = h && h->pmtu ? psn_span(t->len, h->pmtu) : t->len <= 256 ? 1 : 0;
    if (f->n_strays)
        strays_give(f, t);
    if (!s)
        return NULL;
    t->command = command_ref(&s->command->c);
    s->command->c.packets++;
    s->command->c.again += as == SEEN_AGAIN || as == SEEN_OLD;
    data_time(&s->command->c, (enum ulp_side)f->side, p->frame->number, p->frame->ts);
    if (show && f->conn->proto->data)
        f->conn->proto->data(f->conn, &(struct ulp_data){.command = &s->command->c,
                                                         .dir = (enum ulp_dir)s->dir,
                                                         .offset = s->base + (t->va - s->va),
                                                         .show = show});
    return s->command;
}

struct command *read_response(struct ulp_flow *f, const struct pkt *p, enum seen_as as, struct pkt *show)
{
    struct transfer *t = transfer_find(f, p->bth.psn);

    t = t && t->kind == TRANSFER_READ && has_room(t, p) ? t : NULL;
    struct command *d;

    if (!t && p->payload_len) /* its request may be captured later */
        stray_keep(f, p, as);
    d = data_packet(f, t, p, show);
    if (!d && waits_for_command(f, t, p))
        stray_keep(f, p, as);
    return d;
}

/* A refused READ, WRITE or SEND with Invalidate. */
static struct command *refused(struct ulp_flow *f, const struct transfer *t, struct command *d, uint64_t frame)
{
    struct ulp_refusal r = {.frame = frame, .rkey = t->rkey, .va = t->va, .len = t->len};

    if (t->kind == TRANSFER_SEND)
        return d && t->rkey ? refuse_invalidation(d, &r) : d;
    r.op = t->kind == TRANSFER_WRITE ? ULP_OP_WRITE : ULP_OP_READ;
    return refuse_access(f->conn, ulp_other_side((enum ulp_side)f->side), &r, t->frame);
}

struct command *nak_packet(struct ulp_flow *f, const struct pkt *p)
{
    struct transfer *t = transfer_find(f, p->bth.psn);
    struct command *d = t ? command_of(f->conn, t->command) : NULL;
    struct segment *s;

    if (t && aeth_value(p->aeth.syndrome) == NAK_REMOTE_ACCESS)
        return refused(f, t, d, p->frame->number);
    s = t && !d && t->kind != TRANSFER_SEND ? memory_of(f, t) : NULL;
    return s ? s->command : d;
}
