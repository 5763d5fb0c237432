/* layer 3 (measure): the account of each work request, kept from its completion until the meter hands it over. */
#include "src/measure/request_parts.h"

#include "bits.h"
#include "dissect/pkt.h"

#include <stdlib.h>

struct parts {
    uint64_t id; /* number of the work request; 0: the row is free */
    ns_t end;
    ns_t states[TIME_STATES]; /* ns in each state; they add up to end - start */
};

struct request_parts {
    const struct timeline *timeline;
    struct parts *of; /* hash table by id, open addressing with linear probing */
    uint32_t n, cap;  /* rows used, rows; cap is a power of two */
};

#define FIRST_CAP 512u /* rows at first */

struct request_parts *request_parts_new(const struct timeline *t)
{
    struct request_parts *r = calloc(1, sizeof *r);

    if (r)
        r->timeline = t;
    return r;
}

void request_parts_free(struct request_parts *r)
{
    if (r)
        free(r->of);
    free(r);
}

static uint32_t place_of(const struct request_parts *r, uint64_t id)
{
    return (uint32_t)(id * HASH_MULTIPLIER >> 32) & (r->cap - 1);
}

/* The row of `id`, or the free row where it would be inserted. */
static struct parts *row_of(const struct request_parts *r, uint64_t id)
{
    uint32_t i = place_of(r, id);

    while (r->of[i].id && r->of[i].id != id)
        i = (i + 1) & (r->cap - 1);
    return &r->of[i];
}

/* Make room for one more row: a quarter of the rows stays free. False without memory. */
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
            *row_of(&more, r->of[i].id) = r->of[i];
    free(r->of);
    r->of = more.of;
    r->cap = more.cap;
    return true;
}

/* Free a row. Rows of the same probe sequence that follow move up, so that they are still found. */
static void drop(struct request_parts *r, struct parts *p)
{
    uint32_t mask = r->cap - 1, hole = (uint32_t)(p - r->of);

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

    if (!completes || p->frame->ts <= w->start || !make_room(r))
        return;
    row = row_of(r, w->id);
    r->n += !row->id;
    row->id = w->id;
    row->end = p->frame->ts;
    timeline_between(r->timeline, flow, w->start, row->end, row->states);
}

ns_t request_parts_over(struct request_parts *r, const struct wqe *w, uint32_t flow, ns_t states[TIME_STATES])
{
    struct parts *row = r->n ? row_of(r, w->id) : NULL;
    ns_t end = w->done_frame ? w->done : w->last;

    if (end < w->start)
        end = w->start;
    /* the timeline may know more by now than at the completion, if it still has the spans */
    timeline_between(r->timeline, flow, w->start, end, states);
    if (!row || !row->id)
        return end;
    if (row->end == end && row->states[TIME_NOT_KNOWN] < states[TIME_NOT_KNOWN])
        memcpy(states, row->states, sizeof row->states);
    drop(r, row);
    return end;
}

bool request_parts_known(const struct observer *o, uint32_t flow, const ns_t states[TIME_STATES], ns_t length)
{
    return flow < observer_flows(o) && (!length || states[TIME_NOT_KNOWN] < length);
}
