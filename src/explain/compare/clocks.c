/* layer 3 (explain): times of one tap by the clock of another. */
#include "src/explain/compare/compare.h"

#define FIRST_TAP 0 /* conn_tap_of() of the first interface of the first file */

static bool convert(const struct taps *taps, uint32_t from, uint32_t to, ns_t *ts)
{
    struct tap_offset o = taps_offset(taps, from, to, *ts);

    *ts += o.known ? o.offset : 0;
    return o.known;
}

bool explain_convert(void *user, uint32_t from, uint32_t to, ns_t *ts)
{
    const struct explainer *x = user;

    return !x->taps || convert(x->taps, from, to, ts); /* one file: one clock */
}

bool explain_clock_known(const struct explainer *x, uint32_t from, uint32_t to, ns_t *ts, ns_t *error)
{
    struct tap_offset o = {.known = true};

    if (x->taps)
        o = taps_offset(x->taps, from, to, *ts);
    *ts += o.known ? o.offset : 0;
    *error = o.bound;
    return o.known;
}

ns_t explain_clock(const struct explainer *x, uint32_t from, uint32_t to, ns_t ts)
{
    if (x->taps && ts)
        convert(x->taps, from, to, &ts);
    return ts;
}

void explain_set_clocks(struct explainer *x)
{
    for (uint32_t i = 0; i < x->n; i++) {
        struct incident *s = &x->incidents[i];
        ns_t *const times[] = {&s->start, &s->from, &s->stop, &s->worst};
        for (unsigned k = 0; k < ARRAY_LEN(times); k++)
            *times[k] = explain_clock(x, s->tap, FIRST_TAP, *times[k]);
    }
}

void explain_clocks_put(const struct explainer *x, const struct explain_opts *o, struct buf *b)
{
    ns_t last = x->ended[0] ? x->ended[0] : x->last; /* other clocks may be far ahead */

    for (size_t file = 1; x->taps && file < o->n_files; file++) {
        struct tap_offset c = taps_offset(x->taps, FIRST_TAP, (uint32_t)file << 16, last);
        struct buf line = {0};
        buf_printf(&line, "Clock of %s: ", o->files[file]);
        if (c.known)
            tap_offset_put(&line, &c);
        else
            buf_puts(&line, "not known");
        buf_printf(&line, " against %s.", o->files[0]);
        buf_paragraph(b, buf_str(&line), 0, explain_columns(o));
        buf_free(&line);
    }
}
