/* layer 3 (measure): the account of each work request, kept from its completion until the meter hands it over. */
#include "src/measure/request_parts.h"

#include "bits.h"
#include "dissect/pkt.h"
#include "src/measure/meter_impl.h"

#include <stdlib.h>

/* An account that is kept, in a place of `parts`; in a free one `next` is the next free place. */
struct parts {
    ns_t end;
    ns_t states[TIME_STATES]; /* ns in each state; they add up to end - start */
    uint32_t next;
};

/* An entry of the hash table by number of the work request: small, because most of the time goes into looking there. */
struct entry {
    uint64_t id; /* number of the work request; 0: the entry is free */
    uint32_t at; /* in `parts` */
};

struct request_parts {
    const struct timeline *timeline;
    struct entry *of; /* open addressing with linear probing */
    uint32_t n, cap;  /* entries used, entries; cap is a power of two */
    struct parts *parts;
    uint32_t made, cap_parts; /* places of `parts` that were used at any time; places there are */
    uint32_t free;            /* the first free place below `made`; NO_PART: none */
};

#define FIRST_CAP 512u /* entries at first */
#define NO_PART   UINT32_MAX

struct request_parts *request_parts_new(const struct timeline *t)
{
    struct request_parts *r = calloc(1, sizeof *r);

    if (r)
        *r = (struct request_parts){.timeline = t, .free = NO_PART};
    return r;
}

void request_parts_free(struct request_parts *r)
{
    if (!r)
        return;
    free(r->of);
    free(r->parts);
    free(r);
}

static uint32_t place_of(const struct request_parts *r, uint64_t id)
{
    return (uint32_t)(id * HASH_MULTIPLIER >> 32) & (r->cap - 1);
}

/* The entry of `id`, or the free one where it would be inserted. */
static struct entry *entry_of(const struct request_parts *r, uint64_t id)
{
    uint32_t i = place_of(r, id);

    while (r->of[i].id && r->of[i].id != id)
        i = (i + 1) & (r->cap - 1);
    return &r->of[i];
}

/* Make room for one more entry: a quarter of them stays free. False without memory. */
static bool make_room(struct request_parts *r)
{
    struct request_parts more = {.cap = r->cap ? r->cap * 2 : FIRST_CAP};

    if (r->cap && r->n < r->cap / 4 * 3)
        return true;
    more.of = calloc(more.cap, sizeof *more.of);
    if (!more.of)
        return false;
    for (uint32_t i = 0; i < r->cap; i++)
        if (r->of[i].id)
            *entry_of(&more, r->of[i].id) = r->of[i];
    free(r->of);
    r->of = more.of;
    r->cap = more.cap;
    return true;
}

/* Make room for one more account. False without memory. */
static bool make_part(struct request_parts *r)
{
    uint32_t cap = r->cap_parts ? r->cap_parts * 2 : FIRST_CAP;
    struct parts *grown;

    if (r->free != NO_PART || r->made < r->cap_parts)
        return true;
    grown = realloc(r->parts, cap * sizeof *grown);
    if (!grown)
        return false;
    r->parts = grown;
    r->cap_parts = cap;
    return true;
}

/* The account of `id`, a new one if it has none. NULL without memory. */
static struct parts *keep(struct request_parts *r, uint64_t id)
{
    struct entry *e;

    if (!make_room(r) || !make_part(r))
        return NULL;
    e = entry_of(r, id);
    if (!e->id) {
        e->id = id;
        e->at = r->free != NO_PART ? r->free : r->made++;
        if (e->at == r->free)
            r->free = r->parts[e->at].next;
        r->n++;
    }
    return &r->parts[e->at];
}

/* Free an entry and its account. Entries of the same probe sequence that follow move up, so that they are still found.
 */
static void drop(struct request_parts *r, struct entry *e)
{
    uint32_t mask = r->cap - 1, hole = (uint32_t)(e - r->of);

    r->parts[e->at].next = r->free;
    r->free = e->at;
    for (uint32_t i = (hole + 1) & mask; r->of[i].id; i = (i + 1) & mask)
        if (((i - place_of(r, r->of[i].id)) & mask) >= ((i - hole) & mask)) {
            r->of[hole] = r->of[i];
            hole = i;
        }
    r->of[hole].id = 0;
    r->n--;
}

void request_parts_packet(struct request_parts *r, const struct wqe *w, const struct pkt *p, uint32_t flow)
{
    bool completes = w->done_frame == p->frame->number || w->proof_frame == p->frame->number;
    struct parts *row;

    if (!completes || p->frame->ts <= w->start || !(row = keep(r, w->id)))
        return;
    row->end = p->frame->ts;
    timeline_between(r->timeline, flow, w->start, row->end, row->states);
}

ns_t request_parts_over(struct request_parts *r, const struct wqe *w, uint32_t flow, ns_t states[TIME_STATES])
{
    struct entry *e = r->n ? entry_of(r, w->id) : NULL;
    const struct parts *row;
    ns_t end = w->done_frame ? w->done : w->last;

    if (end < w->start)
        end = w->start;
    /* the timeline may know more by now than at the completion, if it still has the spans */
    timeline_between(r->timeline, flow, w->start, end, states);
    if (!e || !e->id)
        return end;
    row = &r->parts[e->at];
    if (row->end == end && row->states[TIME_NOT_KNOWN] < states[TIME_NOT_KNOWN])
        memcpy(states, row->states, sizeof row->states);
    drop(r, e);
    return end;
}

static bool is_known(const struct observer *o, uint32_t flow, const ns_t states[TIME_STATES], ns_t length)
{
    return flow < observer_flows(o) && (!length || states[TIME_NOT_KNOWN] < length);
}

ns_t request_account_over(struct request_parts *r, const struct meter *m, const struct wqe *w, uint32_t flow,
                          ns_t states[TIME_STATES], bool *known)
{
    ns_t end = request_parts_over(r, w, flow, states);

    *known = meter_stream_account(m, w, flow, end, states) || is_known(m->observer, flow, states, end - w->start);
    return end;
}
