/* layer 3 (explain): how packets are marked between two taps, by the delay of the queue: as text and as JSON. */
#include "src/explain/compare/taps.h"

#define TOLD  2   /* in text: the most marked ones */
#define CLOSE 2.5 /* a range that is wider says more than the best value */

/* --- Text ------------------------------------------------------------------------------------- */

static void put_time(struct buf *b, double t)
{
    buf_rounded(b, (ns_t)(t + 0.5));
}

/* Whether a value is said with its range, or its range alone. */
static bool is_close(const struct marking_value *v)
{
    return v->most <= CLOSE * v->least;
}

/* "20.1 us (18 us to 22 us)", "between 5 us and 18 us", or "at most 22 us". */
static void put_delay(struct buf *b, const struct marking_value *v)
{
    if (is_close(v))
        put_time(b, v->is);
    buf_puts(b, is_close(v) ? " (" : v->least > 0 ? "between " : "at most ");
    if (v->least > 0) {
        put_time(b, v->least);
        buf_puts(b, is_close(v) ? " to " : " and ");
    }
    put_time(b, v->most);
    buf_puts(b, is_close(v) ? ")" : "");
}

/* Likewise of a share. */
static void put_percent(struct buf *b, const struct marking_value *v, double unit)
{
    if (is_close(v))
        buf_printf(b, "%.3g %% (%.2g to %.3g %%)", v->is * unit, v->least * unit, v->most * unit);
    else
        buf_printf(b, "between %.3g %% and %.3g %%", v->least * unit, v->most * unit);
}

static void head_put(struct buf *b, const struct marking_report *r)
{
    struct buf place = {0};

    place_put(&place, PLACE_UNKNOWN, r->tap[0] + 1, r->tap[1] + 1);
    buf_printf(b, "Marks (CE)%s: %u of %s to ", buf_str(&place), r->marked, count_str(r->packets, "packet"));
    conn_addr_put(b, &r->dst);
    buf_printf(b, " with DSCP %u, by the delay of the queue that ", r->dscp);
    buf_puts(b, r->by == MARKING_BEHIND ? "they left behind:" : "they waited in:");
    buf_free(&place);
}

static void shares_put(struct buf *b, const struct marking_report *r)
{
    double unit = r->width < NS_PER_US / 4 ? 1 : r->width < NS_PER_MS / 4 ? NS_PER_US : NS_PER_MS;
    const char *name = unit < NS_PER_US ? "ns" : unit < NS_PER_MS ? "us" : "ms";

    buf_puts(b, "                delay  packets  marked\n");
    for (unsigned i = 0; i < MARKING_SHARES; i++) {
        const struct marking_share *s = &r->shares[i];
        buf_printf(b, "  %6.1f to %6.1f %s %8u ", (double)r->width * i / unit, (double)r->width * (i + 1) / unit, name,
                   s->packets);
        if (s->packets)
            buf_printf(b, "%5.1f %%\n", 100.0 * s->marked / s->packets);
        else
            buf_puts(b, "      -\n");
    }
}

static void curve_put(struct buf *b, const struct marking_curve *c)
{
    if (!c->known) {
        buf_puts(b, "No marking curve is estimated from that.");
        return;
    }
    buf_printf(b, "Estimate of the marking curve, from %s, with 95 %% confidence: marks begin (Kmin) ",
               count_str(c->packets, "packet"));
    put_delay(b, &c->kmin);
    if (c->full) {
        buf_puts(b, ", their share rises to (Pmax) ");
        put_percent(b, &c->pmax, 100);
        buf_puts(b, ", and all are marked above (Kmax) ");
        put_delay(b, &c->kmax);
    } else {
        buf_puts(b, ", and their share rises by ");
        put_percent(b, &c->rise, 100.0 * NS_PER_US);
        buf_puts(b, " each us; where all are marked (Kmax) is not known");
    }
    buf_puts(b, ". In bytes that is the delay times the rate of the marking port: 1 us at 100 Gbit/s is 12.5 kB.");
}

static void report_put(const struct marking_report *r, const struct explain_opts *o, struct buf *b)
{
    struct buf text = {0};

    head_put(&text, r);
    buf_paragraph(b, buf_str(&text), 0, explain_columns(o));
    shares_put(b, r);
    text.len = 0;
    curve_put(&text, &r->curve);
    buf_paragraph(b, buf_str(&text), 0, explain_columns(o));
    buf_free(&text);
}

void explain_marking_put(const struct explainer *x, const struct explain_opts *o, struct buf *b)
{
    struct marking_report r[MARKING_REPORTS];
    size_t n = x->taps ? taps_marking(x->taps, r) : 0;

    for (size_t i = 0; i < n && (i < TOLD || o->all); i++)
        report_put(&r[i], o, b);
    if (n > TOLD && !o->all)
        buf_printf(b, "Marks to %s or from other taps: --all.\n", count_str(n - TOLD, "other receiver"));
}

/* --- JSON ------------------------------------------------------------------------------------- */

static void text_json(struct buf *b, const char *name, struct buf *text)
{
    buf_printf(b, "\"%s\":", name);
    buf_json(b, buf_str(text), text->len);
    buf_char(b, ',');
    text->len = 0;
}

static void value_json(struct buf *b, const char *name, const struct marking_value *v)
{
    buf_printf(b, ",\"%s_ns\":%.0f,\"%s_least_ns\":%.0f,\"%s_most_ns\":%.0f", name, v->is, name, v->least, name,
               v->most);
}

static void share_json(struct buf *b, const char *name, const struct marking_value *v, double unit)
{
    buf_printf(b, ",\"%s\":%.3g,\"%s_least\":%.3g,\"%s_most\":%.3g", name, v->is * unit, name, v->least * unit, name,
               v->most * unit);
}

static void curve_json(struct buf *b, const struct marking_curve *c)
{
    if (!c->known) {
        buf_puts(b, "null");
        return;
    }
    buf_printf(b, "{\"packets\":%u", c->packets);
    value_json(b, "kmin", &c->kmin);
    if (c->full) {
        value_json(b, "kmax", &c->kmax);
        share_json(b, "pmax_percent", &c->pmax, 100);
    } else {
        share_json(b, "percent_each_us", &c->rise, 100.0 * NS_PER_US);
    }
    buf_char(b, '}');
}

static void report_json(struct buf *b, const struct explain_opts *o, const struct marking_report *r)
{
    static const char *const passing[] = {"before_tap", "after_tap"};
    struct buf text = {0};

    buf_char(b, '{');
    for (unsigned i = 0; i < 2; i++) {
        conn_tap_put(&text, o->files, r->tap[i]);
        text_json(b, passing[i], &text);
    }
    conn_addr_put(&text, &r->dst);
    text_json(b, "destination", &text);
    buf_printf(b, "\"dscp\":%u,\"packets\":%u,\"marked\":%u,\"queue\":\"%s\",\"shares\":[", r->dscp, r->packets,
               r->marked, r->by == MARKING_BEHIND ? "left_behind" : "waited_in");
    for (unsigned i = 0; i < MARKING_SHARES; i++)
        buf_printf(b, "%s{\"from_ns\":%lld,\"to_ns\":%lld,\"packets\":%u,\"marked\":%u}", i ? "," : "",
                   (long long)r->width * i, (long long)r->width * (i + 1), r->shares[i].packets, r->shares[i].marked);
    buf_puts(b, "],\"curve\":");
    curve_json(b, &r->curve);
    buf_char(b, '}');
    buf_free(&text);
}

void explain_marking_json(const struct explainer *x, const struct explain_opts *o, struct buf *b)
{
    struct marking_report r[MARKING_REPORTS];
    size_t n = x->taps ? taps_marking(x->taps, r) : 0;

    buf_puts(b, "\"marking\":[");
    for (size_t i = 0; i < n; i++) {
        buf_puts(b, i ? ",\n" : "\n");
        report_json(b, o, &r[i]);
    }
    buf_puts(b, "],\n");
}
