/* layer 3b (report): work requests: as bars, and their latencies by operation and size. */
#include "src/report/report_impl.h"

#include <stdlib.h>

/* The value of `ops` that says how long a request took. */
struct latency {
    bool known;
    ns_t ns;
};

static void take_latency(void *user, const struct cell *c)
{
    struct latency *l = user;

    if (strcmp(c->name, "latency_ns") == 0)
        *l = (struct latency){c->known, (ns_t)c->number};
}

/* Upper limits of the classes of sizes are 64 B times powers of 8; the last class has none. */
static unsigned size_class(uint64_t bytes)
{
    unsigned i = 0;

    for (uint64_t limit = 64; i + 1 < SIZES && bytes > limit; limit *= 8)
        i++;
    return i;
}

/* Two rows for each power of two. */
static unsigned heat_row(ns_t ns)
{
    unsigned bits = ns > 0 ? 63 - (unsigned)__builtin_clzll((uint64_t)ns) : 0;
    unsigned half = bits && ((uint64_t)ns >> (bits - 1) & 1);
    unsigned row = 2 * bits + half;

    return row < HEAT_ROWS ? row : HEAT_ROWS - 1;
}

static unsigned part_of(const struct report *r, ns_t t, unsigned parts)
{
    double at = (double)t / (double)r->length * parts;

    return at < parts ? (unsigned)at : parts - 1;
}

static void add_latency(struct report *r, const struct wqe *w, ns_t ns)
{
    struct hist **h = &r->latency[w->op][size_class(w->bytes)];
    uint32_t *cell = &r->heat[part_of(r, report_time(r, w->start), HEAT_COLUMNS)][heat_row(ns)];

    if (!*h && !(*h = calloc(1, sizeof **h))) {
        r->failed = true;
        return;
    }
    hist_add(*h, ns);
    *cell += *cell < UINT32_MAX;
}

/* An ACK completed it, no response with data: it is a SEND or WRITE. */
static bool has_ack(const struct wqe_row *q)
{
    const struct wqe *w = q->w;

    return !q->row->stream && w->op < WQE_READ && w->ended && w->done_frame && w->done >= w->last;
}

/* From the last packet of a request to its ACK. */
static void add_ack_delay(struct report *r, const struct wqe *w)
{
    struct hist **h = &r->ack_delay[w->op];

    if (!*h && !(*h = calloc(1, sizeof **h)))
        r->failed = true;
    else
        hist_add(*h, w->done - w->last);
}

static void add_bar(struct report *r, struct side *s, const struct wqe *w)
{
    ns_t start = report_time(r, w->start), end = report_time(r, w->done_frame ? w->done : w->last);
    struct bar *at;

    s->requests++;
    if (!s->bars && !(s->bars = calloc(REQUESTS_BUCKETS, sizeof *s->bars))) {
        r->failed = true;
        return;
    }
    at = &s->bars[part_of(r, start, REQUESTS_BUCKETS)];
    if (at->used && at->end - at->start >= end - start)
        return;
    *at = (struct bar){.number = w->id,
                       .bytes = w->bytes,
                       .first_frame = w->first_frame,
                       .done_frame = w->done_frame,
                       .again = w->again,
                       .start = start,
                       .end = end > start ? end : start,
                       .operation = wqe_op_str((enum wqe_op)w->op),
                       .status = wqe_status_str(w),
                       .used = true,
                       .done = w->done_frame != 0};
}

void report_request(struct report *r, const struct wqe_row *q)
{
    uint32_t tap = row_tap(q->row);
    struct drawn *d = report_drawn(r, (uint32_t)q->row->conn, tap);
    struct side *s = d ? report_side(d, &q->row->src, &q->row->dst, (uint32_t)q->row->dqpn) : NULL;
    struct latency l = {.known = false};

    wqe_cells(q, take_latency, &l);
    if (l.known && q->w->op < WQE_OPS)
        add_latency(r, q->w, l.ns);
    if (has_ack(q))
        add_ack_delay(r, q->w);
    if (s)
        add_bar(r, s, q->w);
}

/* --- Output ----------------------------------------------------------------------------------- */

void side_bars_json(const struct side *s, struct buf *b)
{
    const char *sep = "";

    for (unsigned i = 0; s->bars && i < REQUESTS_BUCKETS; i++) {
        const struct bar *x = &s->bars[i];
        if (!x->used)
            continue;
        buf_printf(b, "%s\n[%llu,%lld,%lld,\"%s\",%llu,%llu,%llu,%llu,\"%s\"]", sep, (unsigned long long)x->number,
                   (long long)x->start, (long long)x->end, x->operation, (unsigned long long)x->bytes,
                   (unsigned long long)x->first_frame, (unsigned long long)x->done_frame, (unsigned long long)x->again,
                   x->status);
        sep = ",";
    }
}

/* Permilles of a distribution that are written. */
static const unsigned permilles[] = {0,   10,  20,  50,  100, 150, 200, 250, 300, 350, 400, 450, 500,
                                     550, 600, 650, 700, 750, 800, 850, 900, 950, 980, 990, 999, 1000};

/* The rest of an object: how many there are, and their distribution. */
static void curve_json(struct buf *b, const struct hist *h)
{
    buf_printf(b, ",\"n\":%llu,\"latency\":[", (unsigned long long)h->n);
    for (unsigned i = 0; i < ARRAY_LEN(permilles); i++)
        buf_printf(b, "%s[%u,%lld]", i ? "," : "", permilles[i], (long long)hist_permille(h, permilles[i]));
    buf_puts(b, "]}");
}

static void latency_json(struct buf *b, unsigned op, unsigned size, const struct hist *h)
{
    uint64_t limit = UINT64_C(64) << 3 * size;

    buf_printf(b, "\n{\"operation\":\"%s\",\"bytes_above\":%llu,\"bytes_to\":", wqe_op_str((enum wqe_op)op),
               (unsigned long long)(size ? limit / 8 : 0));
    if (size + 1 < SIZES)
        buf_dec(b, limit);
    else
        buf_puts(b, "null");
    curve_json(b, h);
}

static void ack_delays_json(const struct report *r, struct buf *b)
{
    const char *sep = "";

    buf_puts(b, ",\n\"ack_delay\":[");
    for (unsigned op = 0; op < WQE_OPS; op++)
        if (r->ack_delay[op]) {
            buf_printf(b, "%s\n{\"operation\":\"%s\"", sep, wqe_op_str((enum wqe_op)op));
            curve_json(b, r->ack_delay[op]);
            sep = ",";
        }
    buf_char(b, ']');
}

static void heat_json(const struct report *r, struct buf *b)
{
    const char *sep = "";

    buf_printf(b, ",\n\"heat\":{\"columns\":%u,\"cells\":[", HEAT_COLUMNS);
    for (unsigned i = 0; i < HEAT_COLUMNS; i++)
        for (unsigned k = 0; k < HEAT_ROWS; k++)
            if (r->heat[i][k]) {
                buf_printf(b, "%s[%u,%u,%u]", sep, i, k, r->heat[i][k]);
                sep = ",";
            }
    buf_puts(b, "]}");
}

void requests_json(struct report *r, struct buf *b)
{
    const char *sep = "";

    buf_puts(b, ",\n\"latency\":[");
    for (unsigned op = 0; op < WQE_OPS; op++)
        for (unsigned size = 0; size < SIZES; size++)
            if (r->latency[op][size]) {
                buf_puts(b, sep);
                latency_json(b, op, size, r->latency[op][size]);
                sep = ",";
            }
    buf_char(b, ']');
    ack_delays_json(r, b);
    heat_json(r, b);
}
