/* layer 3b (diff): what a capture means. */
#include "src/diff/diff_impl.h"

#include <stdlib.h>

struct diff_side *diff_side_new(const char *file)
{
    struct diff_side *s = calloc(1, sizeof *s);

    if (s)
        s->file = file;
    return s;
}

static void direction_free(struct direction *d)
{
    for (unsigned i = 0; i < WQE_OPS; i++)
        free(d->latency[i]);
    free(d->requests);
    free(d);
}

void diff_side_free(struct diff_side *s)
{
    for (size_t i = 0; s && i < s->n; i++)
        direction_free(s->dir[i]);
    if (s)
        free(s->dir);
    free(s);
}

/* NULL without memory. */
static struct direction *direction_new(struct diff_side *s)
{
    struct direction *d;

    if (s->n == s->room) {
        size_t room = s->room ? 2 * s->room : 64;
        struct direction **more = realloc(s->dir, room * sizeof(struct direction *));
        if (!more)
            return NULL;
        s->dir = more;
        s->room = room;
    }
    d = calloc(1, sizeof *d);
    if (!d)
        return NULL;
    d->at = s->n;
    s->dir[s->n++] = d;
    return d;
}

/* The direction of a row, which remembers it. NULL without memory. */
static struct direction *direction_of(struct diff_side *s, struct meter_row *row)
{
    if (!row->of_user)
        row->of_user = direction_new(s);
    s->no_memory |= !row->of_user;
    return row->of_user;
}

static void keep_request(struct diff_side *s, struct direction *d, uint64_t what)
{
    d->total++;
    if (d->kept == d->room && s->requests < DIFF_REQUESTS && d->total == d->kept + 1) {
        size_t room = d->room ? 2 * d->room : 16;
        uint64_t *more = realloc(d->requests, room * sizeof *more);
        if (more) {
            d->requests = more;
            d->room = room;
        }
    }
    if (d->total == d->kept + 1 && d->kept < d->room && s->requests < DIFF_REQUESTS) {
        d->requests[d->kept++] = what;
        s->requests++;
        return;
    }
    d->hash = (d->hash ^ what) * 0x9e3779b97f4a7c15; /* in order: not commutative */
    d->hash ^= d->hash >> 29;
}

void diff_request(struct diff_side *s, const struct wqe *w, struct meter_row *row)
{
    struct direction *d = direction_of(s, row);

    if (!d || !w->begun)
        return;
    keep_request(s, d, (uint64_t)w->op << 56 | (w->bytes & 0xffffffffffffff));
    if (w->status != WC_SUCCESS)
        return;
    if (!d->latency[w->op] && !(d->latency[w->op] = calloc(1, sizeof *d->latency[0])))
        s->no_memory = true;
    else
        hist_add(d->latency[w->op], w->done - w->start);
}

static void count_findings(struct diff_side *s, const struct findings *findings, uint32_t conn)
{
    for (size_t i = 0; i < findings_n(findings); i++) {
        const struct finding *x = findings_at(findings, i);
        if (x->result == V_FAIL && (!conn || x->conn == conn))
            s->rules[x->rule].times += x->times;
    }
}

static void count_incidents(struct diff_side *s, const struct explainer *explainer, uint32_t conn)
{
    for (size_t i = 0; i < explain_n(explainer); i++) {
        const struct incident *x = explain_at(explainer, i);
        if (!explain_is_shown(x, conn))
            continue;
        s->causes[x->cause].times += 1 + x->times;
        s->causes[x->cause].lost += x->bill;
    }
}

void diff_side_found(struct diff_side *s, const struct findings *findings, const struct explainer *explainer,
                     uint32_t conn)
{
    count_findings(s, findings, conn);
    count_incidents(s, explainer, conn);
}

/* Put the directions of the rows first, in their order. */
bool diff_side_rows(struct diff_side *s, struct meter_row *const *rows, size_t n, struct meter_totals totals)
{
    s->totals = totals;
    for (size_t i = 0; i < n; i++) {
        struct direction *d = direction_of(s, rows[i]);
        if (!d)
            return false;
        s->dir[d->at] = s->dir[i];
        s->dir[d->at]->at = d->at;
        s->dir[i] = d;
        d->at = i;
        d->row = *rows[i];
        d->row.files = NULL;
        d->row.of_user = NULL;
        figures_of(d);
        s->connections += d->row.conn && (i == 0 || s->dir[i - 1]->row.conn != d->row.conn);
    }
    s->n_rows = n;
    return !s->no_memory;
}
