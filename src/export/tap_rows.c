/* layer 3b (export): the taps of the captures. */
#include "src/export/tap_rows.h"

#include "bits.h"
#include "src/conn/conn.h"

#include <stdlib.h>

#define TAPS_MAX 65536 /* further ones have no row */
#define NO_ROW   UINT32_MAX

/* What a tap saw. */
struct seen {
    uint32_t tap; /* conn_tap_of() */
    uint16_t linktype;
    uint64_t frames;
    bool timed;       /* a frame had a time stamp */
    ns_t first, last; /* timed: the earliest and the latest time stamp */
};

struct tap_rows {
    struct store_table *table;
    const char *const *files;
    struct seen *taps; /* as they appear; tap_rows_end(): in the order of their numbers */
    uint32_t n, cap;
    uint32_t at;     /* row of the frame before */
    uint32_t *index; /* 2 * cap, a power of two: rows by tap, behind taken places; NO_ROW: free */
};

static const struct store_column columns[] = {
    {"file", STORE_INTEGER},           {"interface", STORE_INTEGER},    {"tap", STORE_TEXT},
    {"link_type", STORE_INTEGER},      {"snaplen", STORE_INTEGER},      {"frames", STORE_INTEGER},
    {"first_time_ns", STORE_INTEGER},  {"last_time_ns", STORE_INTEGER}, {"clock_offset_ns", STORE_INTEGER},
    {"clock_bound_ns", STORE_INTEGER}, {"clock_skew_ppm", STORE_REAL},  {"clock_steps", STORE_INTEGER},
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
    if (r) {
        free(r->taps);
        free(r->index);
    }
    free(r);
}

/* The place in the index of a tap, or where it belongs. */
static uint32_t *place_of(const struct tap_rows *r, uint32_t tap)
{
    uint32_t mask = 2 * r->cap - 1, i = (uint32_t)((tap * HASH_MULTIPLIER) >> 32) & mask;

    while (r->index[i] != NO_ROW && r->taps[r->index[i]].tap != tap)
        i = (i + 1) & mask;
    return &r->index[i];
}

/* Make room for another tap; false: there is none. */
static bool grow(struct tap_rows *r)
{
    uint32_t cap = r->cap ? r->cap * 2 : 16;
    struct seen *taps = realloc(r->taps, cap * sizeof *taps);
    uint32_t *index = malloc(2 * cap * sizeof *index);

    r->taps = taps ? taps : r->taps;
    if (!taps || !index) {
        free(index);
        return false;
    }
    free(r->index);
    memset(index, 0xff, 2 * cap * sizeof *index);
    r->index = index;
    r->cap = cap;
    for (uint32_t i = 0; i < r->n; i++)
        *place_of(r, taps[i].tap) = i;
    return true;
}

/* The row of a frame's tap; NULL: there is no room for it. */
static struct seen *row_of(struct tap_rows *r, const struct frame *f)
{
    uint32_t tap = conn_tap_of(f), *place;

    if (r->at < r->n && r->taps[r->at].tap == tap)
        return &r->taps[r->at];
    place = r->cap ? place_of(r, tap) : NULL;
    if (!place || *place == NO_ROW) {
        if (r->n == TAPS_MAX || (r->n == r->cap && !grow(r)))
            return NULL;
        r->taps[r->n] = (struct seen){.tap = tap, .linktype = f->linktype};
        place = place_of(r, tap);
        *place = r->n++;
    }
    r->at = *place;
    return &r->taps[r->at];
}

void tap_rows_frame(struct tap_rows *r, const struct frame *f)
{
    struct seen *s = row_of(r, f);

    if (!s)
        return;
    s->frames++;
    if (!f->has_ts)
        return;
    s->first = !s->timed || f->ts < s->first ? f->ts : s->first;
    s->last = !s->timed || f->ts > s->last ? f->ts : s->last;
    s->timed = true;
}

/* The clock of a tap, in the middle of its time; that of the first tap is what it is compared with. */
static void put_clock(struct tap_rows *r, const struct taps *clocks, const struct seen *s)
{
    struct tap_offset o = {.known = false};

    if (clocks && s > r->taps && s->timed)
        o = taps_offset(clocks, r->taps->tap, s->tap, s->first + (s->last - s->first) / 2);
    store_if(r->table, o.known, (uint64_t)o.offset);
    store_if(r->table, o.known, (uint64_t)o.bound);
    if (o.known)
        store_real(r->table, o.skew_ppm);
    else
        store_null(r->table);
    store_if(r->table, o.known, o.steps);
}

/* The longest captured length that the file states of a tap; 0: it states none. */
static uint32_t snaplen_of(const struct cap_merge *in, uint32_t tap)
{
    struct cap *file = in && tap >> 16 < cap_merge_count(in) ? cap_merge_file(in, tap >> 16) : NULL;
    const struct cap_info *info = file ? cap_info(file) : NULL;

    return info && (tap & 0xffff) < info->n_ifaces ? info->ifaces[tap & 0xffff].snaplen : 0;
}

static int by_tap(const void *a, const void *b)
{
    const struct seen *x = a, *y = b;

    return x->tap < y->tap ? -1 : x->tap > y->tap;
}

void tap_rows_end(struct tap_rows *r, const struct taps *clocks, const struct cap_merge *in)
{
    struct buf name = {0};
    uint32_t snaplen;

    if (r->n)
        qsort(r->taps, r->n, sizeof *r->taps, by_tap);
    for (const struct seen *s = r->taps; s < r->taps + r->n; s++) {
        name.len = 0;
        conn_tap_put(&name, r->files, s->tap);
        store_number(r->table, s->tap >> 16);
        store_number(r->table, s->tap & 0xffff);
        store_text(r->table, buf_str(&name));
        store_number(r->table, s->linktype);
        snaplen = snaplen_of(in, s->tap);
        store_if(r->table, snaplen != 0, snaplen);
        store_number(r->table, s->frames);
        store_if(r->table, s->timed, (uint64_t)s->first);
        store_if(r->table, s->timed, (uint64_t)s->last);
        put_clock(r, clocks, s);
        store_insert(r->table);
    }
    buf_free(&name);
}
