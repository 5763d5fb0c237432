/* layer 3b (diff): what of two captures differs. */
#include "src/diff/diff_impl.h"

#include <stdlib.h>

/* Compare the sequences of work requests, as far as both have them: one may have posted more, which is a matter of
 * their number. */
static void compare_requests(struct matched *m)
{
    size_t n = m->a->kept < m->b->kept ? m->a->kept : m->b->kept;

    for (size_t i = 0; i < n; i++)
        if (m->a->requests[i] != m->b->requests[i]) {
            m->other_order = true;
            m->first_other = i + 1;
            return;
        }
    m->other_order = m->a->total == m->b->total && m->a->kept == m->b->kept && m->a->hash != m->b->hash;
}

static void compare_pair(struct diff *d, struct matched *m)
{
    for (unsigned i = 0; i < m->a->n_figures; i++) {
        d->compared += m->a->figure[i].known && m->b->figure[i].known;
        m->differ += figure_differs(&m->a->figure[i], &m->b->figure[i], d->o.tolerance);
    }
    compare_requests(m);
    d->differ += m->differ;
    d->orders += m->other_order;
}

struct diff *diff_new(const struct diff_side *a, const struct diff_side *b, const struct diff_opts *o)
{
    struct diff *d = calloc(1, sizeof *d);

    if (!d)
        return NULL;
    d->o = *o;
    d->a = a;
    d->b = b;
    if (!match_directions(d, a, b)) {
        diff_free(d);
        return NULL;
    }
    return d;
}

bool diff_conn_of_b(const struct diff *d, uint32_t *conn)
{
    *conn = d->n_pairs ? (uint32_t)d->pair[0].b->row.conn : 0;
    return d->n_pairs;
}

void diff_compare(struct diff *d)
{
    for (size_t i = 0; i < d->n_pairs; i++)
        compare_pair(d, &d->pair[i]);
    for (unsigned i = 1; i < RULE_COUNT; i++)
        d->rules += tally_differs(&d->a->rules[i], &d->b->rules[i], d->o.tolerance);
    for (unsigned i = 0; i < CAUSE_COUNT; i++)
        d->causes += tally_differs(&d->a->causes[i], &d->b->causes[i], d->o.tolerance);
}

void diff_free(struct diff *d)
{
    if (d)
        free(d->pair);
    free(d);
}

bool diff_differs(const struct diff *d)
{
    return d->differ || d->orders || d->only_a || d->only_b || d->rules || d->causes;
}
