/* layer 3 (conform): metrics as a table, with published values below, and as JSON. */
#include "gen/conform/metrics.h"
#include "gen/conform/table.h"

#include <string.h>

#define COLUMNS 4 /* of published.tsv: metric, device, value, source */

extern const char conform_published_text[]; /* battery_text.S */

bool metric_published(const char *name, unsigned i, struct metric_published *p)
{
    const char *text = conform_published_text;

    for (size_t n; *text; text += n + (text[n] == '\n')) {
        struct token t[COLUMNS];
        n = strcspn(text, "\n");
        if (*text == '#' || table_split(text, n, t, COLUMNS) != COLUMNS || !token_is(&t[0], name) || i--)
            continue;
        *p = (struct metric_published){t[1], t[2], t[3]};
        return true;
    }
    return false;
}

/* --- Text ------------------------------------------------------------------------------------- */

static void put_time(struct buf *b, ns_t t, unsigned width)
{
    size_t from = b->len;

    buf_rounded(b, t);
    if (b->len - from < width)
        buf_fill(b, ' ', width - (unsigned)(b->len - from));
}

static void put_row(const struct metric *m, uint64_t seed, const struct metric_link *link, struct buf *b)
{
    struct metric_published p;
    struct metric_summary s;

    metric_summarise(m, seed, &s);
    buf_printf(b, "%-16s %6u  ", m->name, s.n);
    put_time(b, s.median, 10);
    put_time(b, s.low, 10);
    put_time(b, s.high, 10);
    put_time(b, s.p5, 10);
    put_time(b, s.p95, 10);
    put_time(b, s.p99, 10);
    put_time(b, s.max, 0);
    buf_char(b, '\n');
    if (strcmp(m->name, METRIC_LINK) != 0 && metric_is_below_resolution(&s, link))
        buf_puts(b, "    below resolution: less than three times the error of the time stamps\n");
    for (unsigned i = 0; metric_published(m->name, i, &p); i++)
        buf_printf(b, "    published: %.*s: %.*s [%.*s]\n", (int)p.device.len, p.device.p, (int)p.value.len, p.value.p,
                   (int)p.source.len, p.source.p);
}

void metrics_print_text(const struct metrics *m, uint64_t seed, struct buf *b)
{
    struct metric_link link = metrics_link(m, seed);

    if (!m->n)
        return;
    buf_puts(b, "\nmetric                n  median    95 % of the median  p5        p95       p99       max\n");
    for (unsigned i = 0; i < m->n; i++)
        put_row(&m->metric[i], seed, &link, b);
    if (!link.known)
        return;
    buf_puts(b, "link: ");
    buf_rounded(b, link.least);
    buf_puts(b, " at least for the way there and back and an idle device, which the times above include; error of the "
                "stamps ");
    buf_rounded(b, link.error);
    buf_char(b, '\n');
}

/* --- JSON ------------------------------------------------------------------------------------- */

void metric_published_json(const char *name, struct buf *b)
{
    struct metric_published p;

    buf_puts(b, ",\"published\":[");
    for (unsigned i = 0; metric_published(name, i, &p); i++) {
        buf_printf(b, "%s{\"device\":", i ? "," : "");
        buf_json(b, p.device.p, p.device.len);
        buf_puts(b, ",\"value\":");
        buf_json(b, p.value.p, p.value.len);
        buf_puts(b, ",\"source\":");
        buf_json(b, p.source.p, p.source.len);
        buf_char(b, '}');
    }
    buf_char(b, ']');
}

void metrics_print_json(const struct metrics *m, uint64_t seed, struct buf *b)
{
    struct metric_link link = metrics_link(m, seed);

    if (link.known)
        buf_printf(b, ",\"link\":{\"least_ns\":%lld,\"error_ns\":%lld}", (long long)link.least, (long long)link.error);
    buf_puts(b, ",\"metrics\":[");
    for (unsigned i = 0; i < m->n; i++) {
        struct metric_summary s;
        metric_summarise(&m->metric[i], seed, &s);
        buf_printf(
            b,
            "%s\n{\"id\":\"%s\",\"n\":%u,\"median_ns\":%lld,\"ci_ns\":[%lld,%lld],\"min_ns\":%lld,\"p5_ns\":%lld,"
            "\"p95_ns\":%lld,\"p99_ns\":%lld,\"max_ns\":%lld,\"mad_ns\":%lld,\"below_resolution\":%s",
            i ? "," : "", m->metric[i].name, s.n, (long long)s.median, (long long)s.low, (long long)s.high,
            (long long)s.min, (long long)s.p5, (long long)s.p95, (long long)s.p99, (long long)s.max, (long long)s.mad,
            metric_is_below_resolution(&s, &link) ? "true" : "false");
        metric_published_json(m->metric[i].name, b);
        buf_char(b, '}');
    }
    buf_char(b, ']');
}
