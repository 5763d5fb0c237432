/* layer 3b (export): the taps of the captures. */
#include "src/export/tap_rows.h"

#include "src/conn/conn.h"

#include <stdlib.h>

#define TAPS_MAX 65536 /* further ones have no row */

/* What a tap saw. */
struct seen {
    uint32_t tap; /* conn_tap_of() */
    uint16_t linktype;
    uint64_t frames;
    ns_t first, last; /* the earliest and the latest time stamp */
};

struct tap_rows {
    struct store_table *table;
    const char *const *files;
    struct seen *taps; /* in the order of their numbers */
    uint32_t n, cap, at;
};

static const struct store_column columns[] = {
    {"file", STORE_INTEGER},         {"interface", STORE_INTEGER},       {"tap", STORE_TEXT},
    {"link_type", STORE_INTEGER},    {"frames", STORE_INTEGER},          {"first_time_ns", STORE_INTEGER},
    {"last_time_ns", STORE_INTEGER}, {"clock_offset_ns", STORE_INTEGER}, {"clock_bound_ns", STORE_INTEGER},
    {"clock_skew_ppm", STORE_REAL},  {"clock_steps", STORE_INTEGER},
};

struct tap_rows *tap_rows_new(struct store *s, const char *const *files)
{
    struct tap_rows *r = calloc(1, sizeof *r);

    if (!r)
        return NULL;
    r->files = files;
    r->table = store_table(s, "tap", columns, ARRAY_LEN(columns), NULL);
    return r;
}

void tap_rows_free(struct tap_rows *r)
{
    if (r)
        free(r->taps);
    free(r);
}

/* Make room for a tap at place `i`; false: there is none. */
static bool insert(struct tap_rows *r, uint32_t i)
{
    uint32_t cap = r->cap ? r->cap * 2 : 16;
    struct seen *more;

    if (r->n == TAPS_MAX)
        return false;
    if (r->n == r->cap) {
        if (!(more = realloc(r->taps, cap * sizeof *more)))
            return false;
        r->taps = more;
        r->cap = cap;
    }
    memmove(r->taps + i + 1, r->taps + i, (r->n - i) * sizeof *r->taps);
    r->n++;
    return true;
}

/* The place of a tap, or where it belongs. */
static uint32_t place_of(const struct tap_rows *r, uint32_t tap)
{
    uint32_t from = 0, to = r->n;

    while (from < to) {
        uint32_t middle = from + (to - from) / 2;
        if (r->taps[middle].tap < tap)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

void tap_rows_frame(struct tap_rows *r, const struct frame *f)
{
    uint32_t tap = conn_tap_of(f);
    struct seen *s;

    if (r->at >= r->n || r->taps[r->at].tap != tap) {
        r->at = place_of(r, tap);
        if (r->at == r->n || r->taps[r->at].tap != tap) {
            if (!insert(r, r->at))
                return;
            r->taps[r->at] = (struct seen){.tap = tap, .linktype = f->linktype, .first = f->ts, .last = f->ts};
        }
    }
    s = &r->taps[r->at];
    s->frames++;
    s->first = f->ts < s->first ? f->ts : s->first;
    s->last = f->ts > s->last ? f->ts : s->last;
}

/* The clock of a tap, in the middle of its time; that of the first tap is what it is compared with. */
static void put_clock(struct tap_rows *r, const struct taps *clocks, const struct seen *s)
{
    struct tap_offset o = {.known = false};

    if (clocks && s > r->taps)
        o = taps_offset(clocks, r->taps->tap, s->tap, s->first + (s->last - s->first) / 2);
    store_if(r->table, o.known, (uint64_t)o.offset);
    store_if(r->table, o.known, (uint64_t)o.bound);
    if (o.known)
        store_real(r->table, o.skew_ppm);
    else
        store_null(r->table);
    store_if(r->table, o.known, o.steps);
}

void tap_rows_end(struct tap_rows *r, const struct taps *clocks)
{
    struct buf name = {0};

    for (const struct seen *s = r->taps; s < r->taps + r->n; s++) {
        name.len = 0;
        conn_tap_put(&name, r->files, s->tap);
        store_number(r->table, s->tap >> 16);
        store_number(r->table, s->tap & 0xffff);
        store_text(r->table, buf_str(&name));
        store_number(r->table, s->linktype);
        store_number(r->table, s->frames);
        store_number(r->table, (uint64_t)s->first);
        store_number(r->table, (uint64_t)s->last);
        put_clock(r, clocks, s);
        store_insert(r->table);
    }
    buf_free(&name);
}
