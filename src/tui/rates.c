/* layer 3b (tui): rates: what each interval added to a direction, counted while packets come.
 *
 * How long the capture is, and so which intervals suit it, is not known before its end: intervals begin as short ones,
 * and whenever there are too many, ten become one. */
#include "src/tui/tui_impl.h"

#include <stdlib.h>

#define RATE_LINES   200  /* intervals that are shown, about */
#define RATES_BINS   2000 /* intervals that are counted: enough that RATE_LINES of a nicer length can be made of them */
#define RATES_MAX    65536 /* rows of all intervals: they are shown within a moment */
#define TEN          10    /* intervals that become one */
#define NO_RATE      UINT32_MAX
#define ENDS_COLUMNS 100                             /* from this width on both ends of a row are named */
#define LONGEST      (NS_PER_S * 1000 * 1000 * 1000) /* an interval: no longer than this */

/* A direction of a connection, or datagrams. */
struct rated {
    struct conn_addr src, dst;
    uint64_t file, iface, conn, sqpn, dqpn;
    const char *service;
    bool stream;
    uint32_t last; /* its latest rate, NO_RATE: none */
};

/* What an interval added to one. */
struct rate {
    uint64_t bin; /* number of the interval */
    uint32_t of;  /* number of the struct rated */
    struct meter_counts added;
};

struct rates_so_far {
    ns_t origin, interval; /* the first interval begins; length of each */
    struct rated *rated;
    struct rate *rates; /* in the order of time */
    uint32_t n_rated, cap_rated, n, cap;
    uint64_t left_out; /* rates that there was no room for */
};

bool rates_so_far_begin(struct tui *t)
{
    t->rates = calloc(1, sizeof *t->rates);
    if (t->rates)
        t->rates->interval = RATES_SHORTEST;
    return t->rates != NULL;
}

void rates_so_far_free(struct tui *t)
{
    if (!t->rates)
        return;
    free(t->rates->rated);
    free(t->rates->rates);
    free(t->rates);
    t->rates = NULL;
}

/* Room for one more of `n` elements of `size` bytes in *v, RATES_MAX at most. */
static bool grow(void **v, uint32_t n, uint32_t *cap, size_t size)
{
    uint32_t more = *cap ? *cap * 2 : 256;
    void *grown;

    if (n < *cap)
        return true;
    grown = n < RATES_MAX ? realloc(*v, more * size) : NULL;
    if (!grown)
        return false;
    *v = grown;
    *cap = more;
    return true;
}

/* --- Counting --------------------------------------------------------------------------------- */

static void identify(struct rated *x, const struct meter_row *row)
{
    *x = (struct rated){.src = row->src,
                        .dst = row->dst,
                        .file = row->file,
                        .iface = row->iface,
                        .conn = row->conn,
                        .sqpn = row->sqpn,
                        .dqpn = row->dqpn,
                        .service = row->service,
                        .stream = row->stream,
                        .last = x->last};
}

/* The number of a row; NO_RATE: there is no room. Its connection may be known by now. */
static uint32_t rated_of(struct rates_so_far *r, struct meter_row *row)
{
    uint32_t i = row->of_user ? (uint32_t)(uintptr_t)row->of_user - 1 : r->n_rated;
    void *v = r->rated;

    if (i == r->n_rated) {
        if (!grow(&v, i, &r->cap_rated, sizeof *r->rated))
            return NO_RATE;
        r->rated = v;
        r->rated[r->n_rated++].last = NO_RATE;
        row->of_user = (void *)(uintptr_t)(i + 1);
    }
    identify(&r->rated[i], row);
    return i;
}

/* Add to interval `bin` of direction `of`, which may be that of its latest rate. False without room. */
static bool add(struct rates_so_far *r, uint64_t bin, uint32_t of, const struct meter_counts *added)
{
    uint32_t last = r->rated[of].last;
    void *v = r->rates;

    if (last != NO_RATE && r->rates[last].bin == bin) {
        meter_counts_add(&r->rates[last].added, added);
        return true;
    }
    if (!grow(&v, r->n, &r->cap, sizeof *r->rates))
        return false;
    r->rates = v;
    r->rated[of].last = r->n;
    r->rates[r->n++] = (struct rate){bin, of, *added};
    return true;
}

/* Add `n` rates, of which `times` intervals are one of `r`, but for those before `from`. False without room. */
static bool add_joined(struct rates_so_far *r, const struct rate *rates, uint32_t n, unsigned times, ns_t from)
{
    bool room = true;

    for (uint32_t i = 0; i < r->n_rated; i++)
        r->rated[i].last = NO_RATE;
    for (uint32_t i = 0; room && i < n; i++) {
        const struct rate x = rates[i];
        if (r->origin + (ns_t)(x.bin / times + 1) * r->interval > from)
            room = add(r, x.bin / times, x.of, &x.added);
    }
    return room;
}

/* Join `times` intervals to one, and forget those before `from`. */
static void join(struct rates_so_far *r, unsigned times, ns_t from)
{
    uint32_t n = r->n;

    r->n = 0;
    r->interval *= times;
    add_joined(r, r->rates, n, times, from); /* has room: they move to the front */
}

/* The time of the first packet that is kept. */
static ns_t kept_since(struct tui *t)
{
    uint64_t first = keep_first(t->keep);

    return first && keep_get(t->keep, first, &t->stored) ? t->stored.frame.ts : t->first;
}

/* Intervals up to `since` ns from the first one are too many. */
static bool too_many(const struct rates_so_far *r, ns_t since)
{
    uint64_t first = r->n ? r->rates[0].bin : 0;

    return r->n == RATES_MAX || (uint64_t)(since / r->interval) >= first + RATES_BINS;
}

void rates_so_far_tick(void *user, struct meter_row *row, ns_t start, ns_t since, const struct meter_counts *added)
{
    struct tui *t = user;
    struct rates_so_far *r = t->rates;
    uint32_t of = rated_of(r, row);

    r->origin = start - since;
    if (too_many(r, since) && keep_first(t->keep))
        join(r, 1, kept_since(t));
    while (too_many(r, since) && r->interval < LONGEST)
        join(r, TEN, r->origin);
    meter_lengthen(t->analyses.meter, r->interval);
    if (of == NO_RATE || !add(r, (uint64_t)(since / r->interval), of, added))
        r->left_out++;
}

void rates_so_far_end(struct tui *t)
{
    for (size_t i = 0; i < t->n_rows; i++)
        if (t->rows[i]->of_user)
            identify(&t->rates->rated[(uintptr_t)t->rows[i]->of_user - 1], t->rows[i]);
}

/* --- Of one connection --------------------------------------------------------------------------- */

/* The direction of a connection with most bytes; NO_RATE: there is none. */
static uint32_t main_direction(const struct rates_so_far *r, uint32_t conn)
{
    uint64_t *bytes = calloc(r->n_rated + 1, sizeof *bytes);
    uint32_t best = NO_RATE;

    for (uint32_t i = 0; bytes && i < r->n; i++)
        if (r->rated[r->rates[i].of].conn == conn)
            bytes[r->rates[i].of] += r->rates[i].added.bytes;
    for (uint32_t i = 0; bytes && i < r->n_rated; i++)
        if (bytes[i] && (best == NO_RATE || bytes[i] > bytes[best]))
            best = i;
    free(bytes);
    return best;
}

struct rates_columns rates_columns_of(struct tui *t, uint32_t conn, unsigned most)
{
    const struct rates_so_far *r = t->rates;
    uint32_t dir = main_direction(r, conn);
    struct rates_columns c = {.n = 0};
    uint64_t first, bins, each;

    if (dir == NO_RATE || !most)
        return c;
    first = r->rates[0].bin;
    bins = r->rates[r->n - 1].bin - first + 1;
    each = (bins + most - 1) / most;
    c.n = (unsigned)((bins + each - 1) / each);
    c.begin = r->origin + (ns_t)first * r->interval;
    c.length = (ns_t)each * r->interval;
    c.src = r->rated[dir].src;
    c.dst = r->rated[dir].dst;
    c.of = calloc(c.n, sizeof *c.of);
    for (uint32_t i = 0; c.of && i < r->n; i++) {
        const struct rate *x = &r->rates[i];
        const struct rated *of = &r->rated[x->of];
        struct meter_counts add = x->added;
        if (of->conn != conn || of->file != r->rated[dir].file || of->iface != r->rated[dir].iface || x->bin < first)
            continue;
        add.bytes = x->of == dir ? add.bytes : 0;
        if ((x->bin - first) / each < c.n)
            meter_counts_add(&c.of[(x->bin - first) / each], &add);
    }
    return c;
}

/* --- Showing ---------------------------------------------------------------------------------- */

/* 1, 2 or 5 times a power of ten ns, so that the packets kept are about RATE_LINES intervals. */
static ns_t nice_interval(struct tui *t)
{
    static const ns_t steps[] = {1, 2, 5};
    uint64_t first = keep_first(t->keep), end = keep_end(t->keep);
    ns_t begin = 0, length = 0, unit = t->rates->interval;

    if (end > first && keep_get(t->keep, first, &t->stored)) {
        begin = t->stored.frame.ts;
        if (keep_get(t->keep, end - 1, &t->stored))
            length = t->stored.frame.ts - begin;
    }
    for (; unit < LONGEST; unit *= TEN)
        for (unsigned i = 0; i < ARRAY_LEN(steps); i++)
            if (length / (unit * steps[i]) <= RATE_LINES)
                return unit * steps[i];
    return unit;
}

/* The row of a rate, as far as its line names it. */
static struct meter_row row_of(const struct tui *t, const struct rated *of)
{
    return (struct meter_row){.src = of->src,
                              .dst = of->dst,
                              .files = t->o.files,
                              .file = of->file,
                              .iface = of->iface,
                              .conn = of->conn,
                              .sqpn = of->sqpn,
                              .dqpn = of->dqpn,
                              .service = of->service,
                              .stream = of->stream};
}

static void put_rate(struct tui *t, struct ticks *ticks, ns_t interval, const struct rate *x)
{
    struct lines *l = &t->views[SCREEN_RATES].lines;
    const struct rated *of = &t->rates->rated[x->of];
    const struct meter_row row = row_of(t, of);
    ns_t since = (ns_t)x->bin * interval, begin = t->rates->origin + since;
    const struct spot p = {.conn = (uint32_t)of->conn, .ts = begin, .file = (uint16_t)of->file};
    bool trouble = x->added.again || x->added.seq_naks || x->added.rnr_naks || x->added.timeouts;

    if (ticks->format == ROWS_TEXT)
        lines_item(l, l->text.len, &p, trouble ? LOOK_AGAIN : LOOK_NORMAL, trouble);
    ticks_add(ticks, &row, begin, since, &x->added);
}

/* The rates with longer intervals. False without memory. */
static bool joined(const struct rates_so_far *r, unsigned times, ns_t from, struct rates_so_far *to)
{
    *to = (struct rates_so_far){.origin = r->origin,
                                .interval = r->interval * times,
                                .rated = malloc((r->n_rated + 1) * sizeof *to->rated),
                                .n_rated = r->n_rated};
    if (!to->rated)
        return false;
    if (r->n_rated)
        memcpy(to->rated, r->rated, r->n_rated * sizeof *to->rated);
    return add_joined(to, r->rates, r->n, times, from);
}

/* Columns of the longest name of a tap behind a line. */
static unsigned tap_columns(const struct tui *t)
{
    struct buf text = {0};
    size_t most = 0;

    for (uint32_t i = 0; i < t->rates->n_rated; i++) {
        const struct meter_row row = row_of(t, &t->rates->rated[i]);
        text.len = 0;
        row_tap_after(&text, &row);
        most = text.len > most ? text.len : most;
    }
    buf_free(&text);
    return (unsigned)most;
}

uint64_t rates_put(struct tui *t, enum rows_format format, unsigned width, struct buf *b)
{
    unsigned taps = tap_columns(t);
    struct meter_counts all = {0};
    struct ticks ticks = {.format = format,
                          .width = width > taps ? width - taps : width,
                          .sums = &all,
                          .brief = width && width < ENDS_COLUMNS,
                          .b = b};
    const struct meter_totals sums = meter_totals(t->analyses.meter);
    ns_t interval = nice_interval(t);
    struct rates_so_far shown;

    for (uint32_t i = 0; i < t->rates->n; i++)
        meter_counts_add(&all, &t->rates->rates[i].added);
    ticks_begin(&ticks);
    if (joined(t->rates, (unsigned)(interval / t->rates->interval), kept_since(t), &shown))
        for (uint32_t i = 0; i < shown.n; i++)
            put_rate(t, &ticks, interval, &shown.rates[i]);
    ticks_end(&ticks, &sums);
    free(shown.rated);
    free(shown.rates);
    return ticks.n;
}

void rates_make(struct tui *t)
{
    struct lines *l = &t->views[SCREEN_RATES].lines;

    lines_item(l, 0, NULL, LOOK_KEY, false);
    rates_put(t, ROWS_TEXT, t->columns, &l->text);
    lines_item(l, l->text.len, NULL, LOOK_NOTE, false);
    if (t->rates->left_out)
        buf_printf(&l->text, "%s left out.\n", count_str(t->rates->left_out, "further line"));
    if (!t->ended)
        put_so_far(t, &l->text, "the last interval is complete");
}
