/* layer 3 (conform): metrics as a table, with published values below, and as JSON. */
#include "gen/conform/battery/table.h"
#include "gen/conform/measures/metrics.h"

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

/* --- Units ------------------------------------------------------------------------------------ */

static const char *const units[METRIC_UNITS] = {"ns", "count", "bps", "permille", "per_s"};

const char *metric_unit_str(enum metric_unit u)
{
    return (unsigned)u < METRIC_UNITS ? units[u] : "?";
}

enum metric_unit metric_unit_find(const char *name)
{
    unsigned u = 0;

    while (u < METRIC_UNITS && strcmp(name, units[u]) != 0)
        u++;
    return (enum metric_unit)u;
}

void metric_value(struct buf *b, enum metric_unit u, int64_t v)
{
    if (u == METRIC_NS)
        buf_rounded(b, v);
    else if (u == METRIC_BPS)
        buf_printf(b, v < 1000000000 ? "%.3g Mb/s" : "%.3g Gb/s", (double)v / (v < 1000000000 ? 1e6 : 1e9));
    else if (u == METRIC_PERMILLE)
        buf_printf(b, "%.1f %%", (double)v / 10);
    else
        buf_printf(b, "%lld%s", (long long)v, u == METRIC_PER_S ? "/s" : "");
}

/* --- Text ------------------------------------------------------------------------------------- */

static void put_value(struct buf *b, const struct metric *m, int64_t v, unsigned width)
{
    size_t from = b->len;

    metric_value(b, (enum metric_unit)m->unit, v);
    if (width)
        buf_fill(b, ' ', b->len - from < width ? width - (unsigned)(b->len - from) : 1);
}

static void put_row(const struct metric *m, uint64_t seed, const struct metric_link *link, struct buf *b)
{
    struct metric_published p;
    struct metric_summary s;

    metric_summarise(m, seed, &s);
    buf_printf(b, "%-17s %5u  ", m->name, s.n);
    put_value(b, m, s.median, 10);
    if (metric_has_interval(&s)) {
        put_value(b, m, s.low, 10);
        put_value(b, m, s.high, 10);
    } else {
        buf_printf(b, "%-20s", METRIC_NO_INTERVAL);
    }
    put_value(b, m, s.p5, 10);
    put_value(b, m, s.p95, 10);
    put_value(b, m, s.p99, 10);
    put_value(b, m, s.max, 10);
    put_value(b, m, s.mad, 0);
    buf_char(b, '\n');
    if (strcmp(m->name, METRIC_LINK) != 0 && metric_is_below_resolution(m, &s, link))
        buf_puts(b, "    below resolution: less than three times the error of the time stamps\n");
    metric_bound_text(m, s.median, b);
    if (m->left_out)
        buf_printf(b, "    %s left out, as the tester was late meanwhile\n", count_str(m->left_out, "sample"));
    for (unsigned i = 0; metric_published(m->name, i, &p); i++)
        buf_printf(b, "    published: %.*s: %.*s [%.*s]\n", (int)p.device.len, p.device.p, (int)p.value.len, p.value.p,
                   (int)p.source.len, p.source.p);
}

void metrics_print_text(const struct metrics *m, uint64_t seed, struct buf *b)
{
    struct metric_link link = metrics_link(m, seed);

    if (!m->n)
        return;
    buf_puts(b,
             "\nmetric                n  median    95 % of the median  p5        p95       p99       max       MAD\n");
    for (unsigned i = 0; i < m->n; i++)
        put_row(&m->metric[i], seed, &link, b);
    metrics_timeouts_text(m, seed, b);
    metrics_cnp_scope_text(m, seed, b);
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

/* What the number at the end of a metric's name is: the member `"params":{...}`; nothing of a name without one. */
static void put_params(struct buf *b, const char *name)
{
    static const struct {
        const char *begin, *param;
    } params[] = {{"rto_", "timeout"},
                  {"rnr_", "timer"},
                  {"latency_", "bytes"},
                  {"isolation_", "queue_pairs"},
                  {"alone_", "queue_pairs"},
                  {"others_", "queue_pairs"},
                  {"nack_gen_", "queue_pairs"},
                  {"read_2_bytes_", "queue_pairs"},
                  {"write_2_bytes_", "queue_pairs"},
                  {"goodput_", "lost_each"},
                  {"migreq_", "migreq"},
                  {"rate_cut_", "cnps"}};
    const char *last = strrchr(name, '_');
    struct token number = token_of(last ? last + 1 : "");
    unsigned i = 0;
    uint64_t n;

    while (i < ARRAY_LEN(params) && strncmp(name, params[i].begin, strlen(params[i].begin)) != 0)
        i++;
    if (i < ARRAY_LEN(params) && number.len && token_size(&number, &n))
        buf_printf(b, ",\"params\":{\"%s\":%llu}", params[i].param, (unsigned long long)n);
}

/* A member whose name ends with the unit of the metric. */
static void put_member(struct buf *b, const struct metric *m, const char *name, int64_t v)
{
    buf_printf(b, ",\"%s_%s\":%lld", name, metric_unit_str((enum metric_unit)m->unit), (long long)v);
}

/* How much longer a time is than the shortest one of the link. */
static void put_less_link(struct buf *b, const struct metric *m, int64_t median, const struct metric_link *link)
{
    if (link->known && m->unit == METRIC_NS && strcmp(m->name, METRIC_LINK) != 0)
        buf_printf(b, ",\"median_less_L0_ns\":%lld", (long long)(median - link->least));
}

void metrics_print_json(const struct metrics *m, uint64_t seed, struct buf *b)
{
    struct metric_link link = metrics_link(m, seed);

    metrics_timeouts_json(m, seed, b);
    metrics_cnp_scope_json(m, seed, b);
    buf_puts(b, ",\"metrics\":[");
    for (unsigned i = 0; i < m->n; i++) {
        const struct metric *x = &m->metric[i];
        struct metric_summary s;
        metric_summarise(x, seed, &s);
        buf_printf(b, "%s\n{\"id\":\"%s\"", i ? "," : "", x->name);
        put_params(b, x->name);
        buf_printf(b, ",\"unit\":\"%s\",\"n\":%u", metric_unit_str((enum metric_unit)x->unit), s.n);
        put_member(b, x, "median", s.median);
        put_less_link(b, x, s.median, &link);
        if (metric_has_interval(&s))
            buf_printf(b, ",\"ci_%s\":[%lld,%lld]", metric_unit_str((enum metric_unit)x->unit), (long long)s.low,
                       (long long)s.high);
        else
            buf_puts(b, ",\"warning\":\"" METRIC_NO_INTERVAL "\"");
        put_member(b, x, "min", s.min);
        put_member(b, x, "p5", s.p5);
        put_member(b, x, "p95", s.p95);
        put_member(b, x, "p99", s.p99);
        put_member(b, x, "max", s.max);
        put_member(b, x, "mad", s.mad);
        if (x->left_out)
            buf_printf(b, ",\"left_out\":%u", x->left_out);
        metric_bound_json(x, b);
        buf_printf(b, ",\"below_resolution\":%s", metric_is_below_resolution(x, &s, &link) ? "true" : "false");
        metric_published_json(x->name, b);
        buf_char(b, '}');
    }
    buf_char(b, ']');
}
