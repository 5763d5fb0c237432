/* layer 2b (taps): the interfaces of the capture: when their frames were captured, how exactly, and how long they are.
 */
#include "src/taps/stamps.h"

#include "bits.h"

const struct stamps *stamps_at(const struct stamps_table *t, uint32_t owner)
{
    for (unsigned i = 0; i < STAMPS_TRIES; i++) {
        const struct stamps *s = &t->of[stamps_place(owner, i)];
        if (s->step.owner == owner)
            return s;
    }
    return NULL;
}

/* A place for an interface, its own if it has one. NULL: all are taken. */
static struct stamps *stamps_of(struct stamps_table *t, uint32_t owner)
{
    for (unsigned i = 0; i < STAMPS_TRIES; i++) {
        struct stamps *s = &t->of[stamps_place(owner, i)];
        if (UNLIKELY(!s->step.owner))
            s->step.owner = owner;
        if (LIKELY(s->step.owner == owner))
            return s;
    }
    return NULL;
}

bool stamps_take(struct stamps_table *t, const struct frame *f)
{
    struct stamps *s = stamps_of(t, ts_owner(f));

    if (UNLIKELY(!s)) /* resolution, beginning and end of its capture are not known */
        return true;
    if (UNLIKELY(f->len > s->longest))
        s->longest = f->len;
    if (UNLIKELY(!f->has_ts))
        return true;
    if (UNLIKELY(!s->timed)) {
        s->timed = true;
        s->tap = conn_tap_of(f);
        s->joined = f->counts_for != 0;
        s->alone = !s->joined && f->linktype != LINK_ERF;
        s->first = s->last = f->ts;
        s->step = ts_step_new(s->step.owner, f->ts);
    }
    bool follows = f->ts >= s->last;
    s->last = f->ts;
    if (UNLIKELY(!ts_step_is_settled(&s->step)))
        ts_step_learn(&s->step, f->ts);
    return follows;
}

void stamps_last(struct stamps_table *t, uint32_t tap, ns_t ts)
{
    struct stamps *s = stamps_of(t, tap + 1);

    if (s && s->timed && ts > s->last)
        s->last = ts;
}

/* --- Taps: an interface, or several that count as one ------------------------------------------- */

/* The first frame of a file at a tap. */
static ns_t began_in(const struct stamps_table *t, uint32_t tap, uint32_t file)
{
    ns_t first = INT64_MAX;

    for (unsigned i = 0; i < STAMPS_PLACES; i++) {
        const struct stamps *s = &t->of[i];
        if (s->timed && s->tap == tap && s->step.owner >> 16 == file && s->first < first)
            first = s->first;
    }
    return first;
}

bool stamps_began(const struct stamps_table *t, uint32_t tap, ns_t *when)
{
    const struct stamps *own = stamps_at(t, tap + 1);
    uint32_t file = UINT32_MAX; /* of the interface before: those of a file stand together */
    bool joined = false;
    unsigned n = 0;

    if (LIKELY(own && own->alone)) {
        *when = own->first;
        return true;
    }
    for (unsigned i = 0; i < STAMPS_PLACES; i++) {
        const struct stamps *s = &t->of[i];
        if (!s->timed || s->tap != tap)
            continue;
        if (s->step.owner >> 16 != file) {
            ns_t first = began_in(t, tap, file = s->step.owner >> 16);
            *when = n && *when > first ? *when : first;
        }
        n++;
        joined |= s->joined;
    }
    return n > joined;
}

bool stamps_ended(const struct stamps_table *t, uint32_t tap, ns_t *when)
{
    const struct stamps *own = stamps_at(t, tap + 1);
    unsigned n = 0;

    if (LIKELY(own && own->alone)) {
        *when = own->last;
        return true;
    }
    for (unsigned i = 0; i < STAMPS_PLACES; i++) {
        const struct stamps *s = &t->of[i];
        if (s->timed && s->tap == tap)
            *when = n++ && *when > s->last ? *when : s->last;
    }
    return n != 0;
}

bool stamps_go_on(const struct stamps_table *t, uint32_t tap, ns_t since, ns_t more)
{
    ns_t end = 0;

    return stamps_ended(t, tap, &end) && end - since >= more;
}
