/* layer 2b (taps): the senders that a tap sees, and whether their ICRCs are right. */
#include "src/taps/icrc_sources.h"

#include "dissect/pkt.h"

#define SEVERAL 3 /* so many wrong ICRCs of a sender without a right one are no damage on the way */

/* The place of address `a` at `tap`; NULL: there is no room for another one. */
static struct icrc_source *source_of(struct icrc_sources *t, uint32_t tap, const struct conn_addr *a)
{
    uint64_t upper, lower, h;

    memcpy(&upper, a->b, 8);
    memcpy(&lower, a->b + 8, 8);
    h = ((upper * 31 ^ lower) * 31 ^ tap) * HASH_MULTIPLIER;
    for (unsigned i = 0; i < ICRC_SOURCES; i++) {
        struct icrc_source *s = &t->of[((h >> 56) + i) % ICRC_SOURCES];
        if (!s->used)
            *s = (struct icrc_source){.addr = *a, .tap = tap, .used = true};
        if (s->tap == tap && conn_addr_eq(&s->addr, a))
            return s;
    }
    return NULL;
}

struct icrc_source *icrc_sources_count(struct icrc_sources *t, const struct pkt *p)
{
    uint32_t tap = conn_tap_of(p->frame);
    struct icrc_source *s, *to;
    struct conn_addr src, dst;

    conn_addr_of(p, &src, &dst);
    s = source_of(t, tap, &src);
    if (s && p->icrc == CRC_GOOD)
        s->good = true;
    if (!s || p->icrc == CRC_GOOD)
        return s;
    s->other |= p->icrc_got != 0;
    if (s->bad++ == 0) {
        s->first = frame_u32(p);
        s->first_ts = p->frame->has_ts ? p->frame->ts : 0;
    }
    to = p->op->flags & OPF_RESPONSE ? source_of(t, tap, &dst) : NULL;
    if (to)
        to->answered = true;
    return s;
}

/* Whether no ICRC of the capture is right, of packets of both ends, or of several. */
static bool is_none_right(const struct icrc_sources *t)
{
    uint64_t senders = 0, packets = 0;

    for (const struct icrc_source *s = t->of; s < t->of + ICRC_SOURCES; s++) {
        if (s->good)
            return false;
        senders += s->bad != 0;
        packets += s->bad;
    }
    return senders > 1 || packets >= SEVERAL;
}

bool icrc_source_all_wrong(const struct icrc_source *s)
{
    return !s->good && s->bad >= SEVERAL;
}

bool icrc_source_is_early(const struct icrc_sources *t, const struct icrc_source *s, bool answered)
{
    if (s->good || !s->bad)
        return false;
    return !s->other || is_none_right(t) || (icrc_source_all_wrong(s) && (answered || s->answered));
}
