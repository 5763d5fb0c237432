/* layer 3 (explain): incast: packets of many hosts to one are marked at the same time. */
#include "dissect/pkt.h"
#include "src/explain/compare/taps.h"
#include "src/explain/congestion/congestion_impl.h"

#include <stdlib.h>

/* Another mark: several interfaces may be joined to one tap; none of them is named then. */
static void note_iface(struct incast *c, const struct frame *f)
{
    if (!f->iface_name || strcmp(c->iface, f->iface_name) != 0)
        c->iface[0] = '\0';
}

static struct incast *incast_of(struct explainer *x, const struct frame *f, const struct conn_addr *dst)
{
    struct congestion *c = congestion_of(x);
    uint32_t tap = conn_tap_of(f);
    struct incast *new;

    if (!c || (!c->incasts && !(c->incasts = calloc(INCASTS, sizeof *c->incasts))))
        return NULL;
    for (uint32_t i = 0; i < c->n_incasts; i++)
        if (c->incasts[i].tap == tap && conn_addr_eq(&c->incasts[i].dst, dst)) {
            note_iface(&c->incasts[i], f);
            return &c->incasts[i];
        }
    if (c->n_incasts == INCASTS)
        return NULL;
    new = &c->incasts[c->n_incasts++];
    *new = (struct incast){.tap = tap, .dst = *dst};
    if (f->iface_name && strlen(f->iface_name) < sizeof new->iface)
        strcpy(new->iface, f->iface_name);
    return new;
}

/* The sender; where there is no room, in place of the one that was marked longest ago. */
static struct incast_sender *sender_of(struct incast *c, const struct conn_addr *src)
{
    struct incast_sender *oldest = &c->sender[0];

    for (uint32_t i = 0; i < c->n; i++) {
        if (conn_addr_eq(&c->sender[i].addr, src))
            return &c->sender[i];
        oldest = c->sender[i].latest < oldest->latest ? &c->sender[i] : oldest;
    }
    if (c->n < INCAST_KEPT)
        oldest = &c->sender[c->n++];
    *oldest = (struct incast_sender){.addr = *src};
    return oldest;
}

/* The incast under way is over. */
static void end_incast(struct incast *c)
{
    if (c->marks > c->worst.marks) {
        c->worst =
            (struct incast_worst){.marks = c->marks, .reads = c->reads, .n = c->n, .from = c->from, .last = c->last};
        memcpy(c->worst.sender, c->sender, sizeof c->sender);
    }
    for (uint32_t i = 0; i < c->n; i++)
        c->sender[i].marks = 0;
    c->all_marks += c->marks;
    c->marks = c->reads = 0;
}

void explain_mark(struct explainer *x, const struct pkt *p)
{
    struct conn_addr src, dst;
    struct incast *c;
    struct incast_sender *s;
    ns_t now = p->frame->ts;
    uint32_t n = 0;

    conn_addr_of(p, &src, &dst);
    if (!(c = incast_of(x, p->frame, &dst)))
        return;
    s = sender_of(c, &src);
    s->latest = now;
    for (uint32_t i = 0; i < c->n; i++)
        n += now - c->sender[i].latest < INCAST_WITHIN;
    if (c->marks && now - c->last >= INCAST_WITHIN)
        end_incast(c);
    if (n < INCAST_HOSTS)
        return;
    if (!c->marks) {
        c->from = now;
        c->first = c->times++ ? c->first : now;
    }
    if (s->marks++ == 0) {
        s->part = true;
        s->first = now;
        s->frame = frame_u32(p);
    }
    c->marks++;
    c->reads += (p->op->flags & OPF_READ_RESP) != 0;
    c->last = now;
}

/* Every sender of the worst incast, the earliest first, as far as there is room. */
static void tell_senders(struct incident *st, struct incast_worst *w)
{
    for (;;) {
        struct incast_sender *first = NULL;
        for (uint32_t i = 0; i < w->n; i++)
            if (w->sender[i].marks && (!first || w->sender[i].first < first->first))
                first = &w->sender[i];
        if (!first)
            return;
        incident_frame(st, ROLE_EVIDENCE, first->frame);
        incident_add(st, SAY(INCAST_FROM, .end = first->addr, .time = first->first - w->from, .m = first->marks,
                             .other = first->frame));
        first->marks = 0;
    }
}

/* True if the requester that incident `st` is about slowed down after an incast of `c` in which it took part: the
 * first marks may be older than the incast, by as much as its packets may be apart. */
static bool is_slowed_by(const struct explainer *x, const struct incast *c, const struct incident *st)
{
    if (st->cause != CAUSE_THROTTLED || !incident_stands(st) || !conn_addr_eq(&st->dst, &c->dst))
        return false;
    for (uint32_t i = 0; i < c->n; i++)
        if (c->sender[i].part && conn_addr_eq(&c->sender[i].addr, &st->src))
            return explain_clock(x, st->tap, c->tap, st->from) >= c->first - INCAST_WITHIN;
    return false;
}

static uint32_t count_slowed(const struct explainer *x, const struct incast *c)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < x->n; i++)
        n += is_slowed_by(x, c, &x->incidents[i]);
    return n;
}

/* The time that its senders lost because they slowed down is on the bill of the incast. */
static void bill_slowed(struct explainer *x, uint32_t number, const struct incast *c)
{
    for (uint32_t i = 0; i < x->n; i++)
        if (is_slowed_by(x, c, &x->incidents[i]))
            cross_supersede(x, number, i);
}

void explain_incasts(struct explainer *x)
{
    for (uint32_t i = 0; x->congestion && i < x->congestion->n_incasts; i++) {
        struct incast *c = &x->congestion->incasts[i];
        struct incast_worst *w = &c->worst;
        struct incident *st;
        uint32_t n = 0, slowed = count_slowed(x, c), number;
        end_incast(c);
        for (uint32_t k = 0; k < w->n; k++)
            n += w->sender[k].marks != 0;
        number = n < INCAST_HOSTS ? NO_INCIDENT : cross_new(x, CAUSE_INCAST, c->tap, w->from);
        st = incident_at(x, number);
        if (!st)
            continue;
        st->dst = c->dst;
        incident_is(st, &(struct fact){.sentence = w->reads == w->marks ? SENTENCE_INCAST_READ : SENTENCE_INCAST,
                                       .n = n,
                                       .m = w->marks,
                                       .time = w->last - w->from,
                                       .k = (uint32_t)c->all_marks - w->marks,
                                       .code = (uint8_t)min_u32(c->times - 1, 255),
                                       .iface = c->iface[0] ? c->iface : NULL});
        if (slowed)
            incident_add(st, SAY(INCAST_SLOWED, .n = slowed));
        tell_senders(st, w);
        bill_slowed(x, number, c);
    }
}
