/* layer 2b (ulp): WRITEs whose first packet, with the key and the address, was not captured.
 *
 * Where such a WRITE ends is known, and how many packets it has at least. It is that of the only memory which lacks
 * just as many bytes; of the command whose response is right behind it; of what its end says, or what a message behind
 * it. */
#include "src/ulp/ulp_impl.h"

#define FITS_MAX 256 /* open commands that are compared with one; of more none is */

/* What is known of such a WRITE: where it ends, and how many packets it has. */
struct headless {
    uint32_t psn;         /* of its last packet */
    uint32_t mtu, last;   /* bytes of its packets, and of the last one */
    uint32_t least, most; /* packets */
};

/* The stray packet of a WRITE with this PSN; NULL: none. */
static const struct stray *stray_at(const struct ulp_flow *f, uint32_t psn)
{
    for (uint32_t i = 0; i < f->n_strays; i++)
        if (f->stray[i]->p.bth.psn == psn && f->stray[i]->p.op->flags & OPF_WRITE && !(f->stray[i]->p.have & H_RETH))
            return f->stray[i];
    return NULL;
}

/* PSNs up to `psn` since what was seen before: a message, WRITE or READ whose end is known. UINT32_MAX: not known. */
static uint32_t since_last(const struct ulp_flow *f, uint32_t psn)
{
    for (uint32_t i = 1; i <= f->cap; i++) {
        const struct transfer *t = &f->transfer[(f->at - i) % f->cap];
        if (!t->kind)
            break;
        if (psn_diff(psn, t->psn) > 0)
            return t->span ? (psn - psn_add(t->psn, t->span) + 1) & PSN_MASK : UINT32_MAX;
    }
    return UINT32_MAX;
}

/* Of the WRITE that ends with a packet of `last` bytes at `psn`; false: the size of its packets is not known. */
static bool headless_of(const struct ulp_flow *f, struct headless *w, uint32_t psn, uint32_t last)
{
    const struct req_dir *h = observer_req_dir(f->conn->ulp->observer, f->conn->flow[f->side]);
    const struct stray *s;

    *w = (struct headless){.psn = psn, .last = last, .least = 2, .most = since_last(f, psn)};
    while ((s = stray_at(f, psn_add(psn, PSN_MASK))) != NULL && !(s->p.op->flags & OPF_END)) {
        psn = s->p.bth.psn;
        w->mtu = s->p.payload_len;
        w->least++;
    }
    w->mtu = w->mtu ? w->mtu : h ? h->pmtu : 0;
    return w->mtu >= last && w->mtu > 0;
}

/* Whether the WRITE may be all that memory `s` still lacks: then *t is it. */
static bool may_fill(const struct segment *s, const struct headless *w, struct transfer *t)
{
    uint64_t from = cover_prefix(&s->cover), n;

    if (s->cover.n > 1 || (s->cover.n && !from) || s->len - from < w->last || (s->len - from - w->last) % w->mtu)
        return false;
    n = (s->len - from - w->last) / w->mtu + 1;
    *t = (struct transfer){.kind = TRANSFER_WRITE,
                           .psn = (w->psn - (uint32_t)n + 1) & PSN_MASK,
                           .span = (uint32_t)n,
                           .rkey = s->rkey,
                           .len = (uint32_t)(s->len - from),
                           .va = s->va + from};
    return n >= w->least && n <= w->most;
}

/* How many pieces of memory of the command the WRITE of flow `f` may fill; the last of them is *t. */
static unsigned count_fits(const struct ulp_flow *f, const struct command *d, const struct headless *w,
                           struct transfer *t)
{
    enum ulp_dir dir = f->side == ULP_SERVER ? ULP_TO_CLIENT : ULP_FROM_CLIENT;
    struct transfer fit;
    unsigned n = 0;

    for (uint32_t i = 0; !d->c.idle && i < d->n_segments; i++) {
        const struct segment *s = d->segments[i];
        if (s->dir != dir || s->owner == f->side || !may_fill(s, w, &fit))
            continue;
        *t = fit;
        n++;
    }
    return n;
}

/* WRITE `t` is known now, which ends with packet `p`: so are those before it. */
static struct transfer *transfer_put(struct ulp_flow *f, const struct transfer *t, const struct pkt *p)
{
    struct transfer *put = transfer_new(f, TRANSFER_WRITE, t->psn);

    *put = *t;
    put->frame = frame_u32(p);
    strays_give(f, put);
    return put;
}

/* Whether memory tells of WRITEs of the protocol. */
static bool is_told_by_memory(const struct ulp_proto *p)
{
    return !p->write && !p->either_way;
}

/* The transfer of a WRITE that ends with packet `p`, if that tells how long it is; NULL: that is not known. */
static struct transfer *transfer_told(struct ulp_flow *f, const struct pkt *p)
{
    const struct ulp_proto *proto = f->conn->proto;
    struct ulp_body end = ulp_payload(p);
    struct headless w;
    uint32_t len, n;

    if (!proto->write_len || f->side != ULP_CLIENT || !(p->have & H_IMMDT) ||
        !headless_of(f, &w, p->bth.psn, p->payload_len))
        return NULL;
    len = proto->write_len(f->conn, &end, p->immdt.data);
    if (len <= w.last || (len - w.last) % w.mtu)
        return NULL;
    n = (len - w.last) / w.mtu + 1;
    if (n < w.least || n > w.most)
        return NULL;
    return transfer_put(
        f, &(struct transfer){.kind = TRANSFER_WRITE, .psn = (w.psn - n + 1) & PSN_MASK, .span = n, .len = len}, p);
}

/* The transfer of a WRITE that ends with packet `p`, if only one piece of memory fits; NULL: that is not known. */
struct transfer *headless_find(struct ulp_flow *f, const struct pkt *p)
{
    struct headless w;
    struct transfer t = {.kind = TRANSFER_NONE};
    unsigned n = 0, walked = 0;

    if (!(p->op->flags & OPF_END))
        return NULL;
    if (f->conn->proto->write)
        return transfer_told(f, p);
    if (!is_told_by_memory(f->conn->proto) || !headless_of(f, &w, p->bth.psn, p->payload_len) || w.most == UINT32_MAX)
        return NULL;
    for (const struct command *d = f->conn->open.first; d && n < 2; d = d->newer) {
        n += count_fits(f, d, &w, &t);
        if (++walked > FITS_MAX)
            return NULL;
    }
    if (n != 1)
        return NULL;
    return transfer_put(f, &t, p);
}

void transfers_answered(struct ulp_flow *f, const struct command *d)
{
    const struct transfer *answer = &f->transfer[(f->at - 1) % f->cap];
    const struct stray *last;
    struct transfer t;
    struct headless w;

    if (answer->kind != TRANSFER_SEND || !is_told_by_memory(f->conn->proto))
        return;
    last = stray_at(f, psn_add(answer->psn, PSN_MASK));
    if (!last || !(last->p.op->flags & OPF_END) || !headless_of(f, &w, last->p.bth.psn, last->p.payload_len))
        return;
    if (count_fits(f, d, &w, &t) == 1)
        transfer_put(f, &t, &last->p);
}

/* --- A message behind WRITEs tells where they are ---------------------------------------------- */

/* Whether the WRITE may be bytes [from, to). */
static bool may_be(const struct headless *w, uint64_t from, uint64_t to)
{
    uint64_t n = to - from;

    return n >= w->last && (n - w->last) % w->mtu == 0 && (n - w->last) / w->mtu + 1 >= w->least &&
           (n - w->last) / w->mtu + 1 <= w->most;
}

/* The gaps among bytes [from, to) of memory `s` that the WRITE may be: how many; the last of them is [*a, *b). */
static unsigned gaps_of(const struct segment *s, const struct headless *w, uint64_t from, uint64_t to, uint64_t *a,
                        uint64_t *b)
{
    unsigned n = 0;

    for (unsigned i = 0; i <= s->cover.n && from < to; i++) {
        uint64_t end = i < s->cover.n && s->cover.span[i].from < to ? s->cover.span[i].from : to;
        if (end > from && may_be(w, from, end)) {
            *a = from;
            *b = end;
            n++;
        }
        if (i < s->cover.n && s->cover.span[i].to > from)
            from = s->cover.span[i].to;
    }
    return n;
}

/* The WRITE that ends with packet `last` is what [from, to) of memory `s` lacks. False: that is not known. */
static bool written(struct ulp_flow *f, const struct stray *last, const struct segment *s, uint64_t from, uint64_t to)
{
    struct headless w;
    uint64_t a, b;

    if (!headless_of(f, &w, last->p.bth.psn, last->p.payload_len) || gaps_of(s, &w, from, to, &a, &b) != 1)
        return false;
    transfer_put(f,
                 &(struct transfer){.kind = TRANSFER_WRITE,
                                    .psn = (w.psn - (uint32_t)((b - a - w.last) / w.mtu)) & PSN_MASK,
                                    .span = (uint32_t)((b - a - w.last) / w.mtu) + 1,
                                    .rkey = s->rkey,
                                    .len = (uint32_t)(b - a),
                                    .va = s->va + a},
                 &last->p);
    return true;
}

void ulp_written(struct ulp_conn *c, const struct ulp_message *m, const struct ulp_command *cmd, uint32_t from,
                 uint32_t to)
{
    struct ulp_flow *f = c->flow[m->side] == FLOW_NONE ? NULL : c->ulp->flows[c->flow[m->side]];
    const struct command *d = (const struct command *)cmd;

    if (!f || d->n_segments != 1)
        return;
    for (uint32_t i = 0; i < f->n_strays;) {
        const struct stray *s = f->stray[i];
        bool ends = s->p.op->flags & OPF_WRITE && s->p.op->flags & OPF_END && s->frame.number < m->frame;
        if (!ends || !written(f, s, d->segments[0], from, to)) {
            i++;
            continue;
        }
        i = 0; /* there are others now */
    }
}
