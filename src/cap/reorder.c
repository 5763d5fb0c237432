/* layer 1 (io): a reorder window: slots with copies of frames, and their order. */
#include "src/cap/reorder.h"

#include "apart.h"
#include "fetch.h"

#include <stdlib.h>

struct slot {
    struct frame f;
    ns_t key;      /* time by which it is sorted; without a time, that of the frame before it */
    uint8_t *data; /* memory for a copy of the data */
    uint32_t cap;
    bool own; /* f.data is in that copy */
};

/* The clock of an interface. */
struct clock {
    uint32_t iface;
    uint16_t file;
    bool used;
    ns_t latest; /* latest time stamp */
    ns_t steps;  /* ns by which it was set back, in total */
};

#define COMMENT_MAX 4096 /* bytes of a comment that are kept */
#define CLOCKS      64   /* clocks remembered at a time, a power of two */

struct window {
    struct slot slots[WINDOW_FRAMES];
    uint16_t order[WINDOW_FRAMES]; /* ring of slots by time: head, head + 1, ... */
    uint16_t free[WINDOW_FRAMES];  /* stack of unused slots */
    /* Members of one size that are changed together do not lie side by side: a compiler would load both at once, which
     * waits until what was stored in each last is in the cache. */
    uint32_t head;
    uint64_t taken; /* frames taken out */
    uint32_t n;
    uint64_t bytes; /* bytes of all slots' memory, and of the frames held without a copy */
    uint32_t n_free;
    ns_t key; /* of the frame added last */
    struct clock clock[CLOCKS];
    uint16_t out; /* slot taken out last, not free yet */
    bool has_out;
    bool failed; /* no memory for a copy */
};

struct window *window_new(void)
{
    struct window *w = apart_new(1, sizeof *w);

    if (!w)
        return NULL;
    for (uint32_t i = 0; i < WINDOW_FRAMES; i++)
        w->free[w->n_free++] = (uint16_t)i;
    return w;
}

void window_free(struct window *w)
{
    if (!w)
        return;
    for (uint32_t i = 0; i < WINDOW_FRAMES; i++)
        free(w->slots[i].data);
    free(w);
}

bool window_full(const struct window *w)
{
    return w->n_free + w->has_out == 0 || w->n == WINDOW_FRAMES - 1 || (w->bytes > WINDOW_BYTES && w->n);
}

/* Free the slot taken out last, and its memory if there is too much of it. */
static void release(struct window *w)
{
    struct slot *s = &w->slots[w->out];

    if (!w->has_out)
        return;
    w->has_out = false;
    w->free[w->n_free++] = w->out;
    w->bytes -= s->own ? 0 : s->f.caplen;
    if (w->bytes > WINDOW_BYTES) {
        w->bytes -= s->cap;
        free(s->data);
        s->data = NULL;
        s->cap = 0;
    }
}

static bool slot_fit(struct window *w, struct slot *s, uint32_t n)
{
    uint8_t *p;

    if (LIKELY(n <= s->cap && s->data))
        return true;
    n = n < 256 ? 256 : n;
    p = realloc(s->data, n);
    if (!p)
        return false;
    w->bytes += n - s->cap;
    s->data = p;
    s->cap = n;
    return true;
}

/* Copy the data and the comment of a frame that is held. */
static void slot_own(struct window *w, struct slot *s)
{
    if (s->own)
        return;
    if (slot_fit(w, s, s->f.caplen + s->f.comment_len)) {
        memcpy(s->data, s->f.data, s->f.caplen);
        if (s->f.comment_len)
            s->f.comment = memcpy(s->data + s->f.caplen, s->f.comment, s->f.comment_len);
    } else {
        w->failed = true;
        w->bytes -= s->f.caplen;
        s->f.caplen = s->f.comment_len = 0;
        s->f.comment = NULL;
    }
    w->bytes -= s->f.caplen;
    s->f.data = s->data;
    s->own = true;
}

void window_own(struct window *w)
{
    for (uint32_t i = 0; i < w->n; i++)
        slot_own(w, &w->slots[w->order[(w->head + i) % WINDOW_FRAMES]]);
}

void window_fetch(const struct window *w)
{
    fetch_to_write(w, sizeof *w);
}

bool window_holds(const struct window *w, const uint8_t *p, size_t n)
{
    for (uint32_t i = 0; i < w->n; i++) {
        const struct slot *s = &w->slots[w->order[(w->head + i) % WINDOW_FRAMES]];
        if (!s->own && (size_t)((uintptr_t)s->f.data - (uintptr_t)p) < n)
            return true;
    }
    return false;
}

uint64_t window_taken(const struct window *w)
{
    return w->taken;
}

bool window_copied(const struct window *w)
{
    return w->has_out && w->slots[w->out].own;
}

/* Time of a frame as if the clock of its interface had never been set back. */
static ns_t steady_time(struct window *w, const struct frame *f)
{
    struct clock *c = &w->clock[(f->file * 8 + f->iface) % CLOCKS];

    if (UNLIKELY(!c->used || c->iface != f->iface || c->file != f->file))
        *c = (struct clock){.iface = f->iface, .file = f->file, .used = true, .latest = f->ts};
    if (f->ts >= c->latest) {
        c->latest = f->ts;
    } else if (UNLIKELY((uint64_t)c->latest - (uint64_t)f->ts >= WINDOW_BACK)) {
        c->steps = (ns_t)((uint64_t)c->steps + (uint64_t)c->latest - (uint64_t)f->ts);
        c->latest = f->ts;
    }
    return (ns_t)((uint64_t)f->ts + (uint64_t)c->steps);
}

/* What was just stored in a frame's members, none of which is wide, must be in the cache before a wide load can read
 * it: to copy a frame that was just made stops the processor behind all stores before that miss the cache. */
struct frame *window_room(struct window *w)
{
    release(w);
    return w->failed ? NULL : &w->slots[w->free[w->n_free - 1]].f;
}

bool window_put(struct window *w, const struct frame *f)
{
    struct slot *s;
    uint32_t at, slot;

    release(w);
    if (w->failed)
        return false;
    slot = w->free[--w->n_free];
    s = &w->slots[slot];
    if (f != &s->f)
        s->f = *f;
    s->own = false;
    w->bytes += f->caplen;
    s->f.comment_len = f->comment ? min_u32(f->comment_len, COMMENT_MAX) : 0;
    s->f.options = NULL;
    s->f.options_len = 0;
    s->key = w->key = f->has_ts ? steady_time(w, f) : w->key;
    for (at = w->head + w->n++; at != w->head; at--) {
        uint16_t before = w->order[(at - 1) % WINDOW_FRAMES];
        if (LIKELY(w->slots[before].key <= s->key))
            break;
        if (UNLIKELY(w->slots[before].f.brief))
            slot_own(w, &w->slots[before]); /* it may be held for any number of frames */
        w->order[at % WINDOW_FRAMES] = before;
    }
    w->order[at % WINDOW_FRAMES] = (uint16_t)slot;
    return true;
}

const struct frame *window_get(struct window *w)
{
    release(w);
    if (!w->n)
        return NULL;
    w->out = w->order[w->head++ % WINDOW_FRAMES];
    w->n--;
    w->taken++;
    w->has_out = true;
    return &w->slots[w->out].f;
}
