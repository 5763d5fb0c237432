/* layer 3 (conform): progress of a run as lines of JSON, and read again by jansson. */
#include "gen/conform/card/progress.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define VALUES_MAX 1000000     /* most values of an array */
#define MS_MAX     10000000000 /* ms that a test can have taken */

/* --- Written ---------------------------------------------------------------------------------- */

static void put_text(struct buf *b, const char *name, const char *p, size_t n)
{
    buf_printf(b, ",\"%s\":", name);
    buf_json(b, p, n);
}

void progress_begin(struct buf *b, const char *dut, uint64_t seed, unsigned repeat)
{
    buf_printf(b, "{\"schema\":\"rdmagen-conformance-progress/1\",\"seed\":\"%llu\",\"repeat\":%u",
               (unsigned long long)seed, repeat ? repeat : 1);
    put_text(b, "dut", dut, strlen(dut));
    buf_puts(b, "}\n");
}

void progress_put(struct buf *b, const struct conform_outcome *o, const struct metrics *m, const struct identities *ids)
{
    buf_printf(b, "{\"id\":\"%s\",\"result\":\"%s\",\"runs\":%u,\"good\":%u,\"ms\":%lld", o->test->id,
               conform_result_str((enum conform_result)o->result), o->runs, o->good, (long long)(o->took / NS_PER_MS));
    put_text(b, "reason", o->reason.p, o->reason.len);
    put_text(b, "judge", o->judge.p, o->judge.len);
    put_text(b, "counters", o->counters.p, o->counters.len);
    put_text(b, "known", o->known.p, o->known.len);
    put_text(b, "capture", o->capture, strlen(o->capture));
    buf_puts(b, ",\"metrics\":[");
    for (unsigned i = 0; i < m->n; i++) {
        buf_printf(b, "%s{\"id\":\"%s\",\"unit\":\"%s\",\"values\":[", i ? "," : "", m->metric[i].name,
                   metric_unit_str((enum metric_unit)m->metric[i].unit));
        for (unsigned k = 0; k < m->metric[i].n; k++)
            buf_printf(b, "%s%lld", k ? "," : "", (long long)m->metric[i].sample[k]);
        buf_printf(b, "],\"left_out\":%u", m->metric[i].left_out);
        if (m->metric[i].taken)
            buf_printf(b, ",\"taken\":%lld,\"idle\":%lld", (long long)m->metric[i].taken, (long long)m->metric[i].idle);
        buf_char(b, '}');
    }
    buf_puts(b, "],\"chosen\":[");
    for (unsigned i = 0; i < SCRIPT_CHOSEN; i++) {
        buf_puts(b, i ? ",[" : "[");
        for (unsigned k = 0; k < ids->of[i].n; k++)
            buf_printf(b, "%s%u", k ? "," : "", ids->of[i].v[k]);
        buf_char(b, ']');
    }
    buf_puts(b, "]}\n");
}

/* --- Read ------------------------------------------------------------------------------------- */

static const char *text_of(const json_t *row, const char *name)
{
    const char *s = json_string_value(json_object_get(row, name));

    return s ? s : "";
}

/* The array of this name; an empty one if it is none. */
static const json_t *array_of(const json_t *row, const char *name)
{
    const json_t *a = json_object_get(row, name);

    return json_array_size(a) <= VALUES_MAX ? a : NULL;
}

static void take_metrics(const json_t *row, struct metrics *m)
{
    const json_t *all = array_of(row, "metrics");

    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *x = json_array_get(all, i), *values = array_of(x, "values");
        enum metric_unit unit = metric_unit_find(text_of(x, "unit"));
        struct token name = token_of(text_of(x, "id"));
        json_int_t left_out = json_integer_value(json_object_get(x, "left_out"));
        for (size_t k = 0; k < json_array_size(values) && unit < METRIC_UNITS; k++)
            metrics_add(m, &name, unit, json_integer_value(json_array_get(values, k)));
        for (json_int_t k = 0; k < left_out && k < METRIC_SAMPLES && json_array_size(values); k++)
            metrics_leave_out(m, &name, unit);
        if (json_array_size(values) && unit < METRIC_UNITS)
            metrics_bound(m, &name, json_integer_value(json_object_get(x, "taken")),
                          json_integer_value(json_object_get(x, "idle")));
    }
}

static void take_chosen(const json_t *row, struct identities *ids)
{
    const json_t *all = array_of(row, "chosen");

    for (size_t i = 0; i < json_array_size(all) && i < SCRIPT_CHOSEN; i++) {
        const json_t *values = json_array_get(all, i);
        for (size_t k = 0; k < json_array_size(values) && k < VALUES_MAX; k++)
            identities_add(ids, (enum script_chosen)i, (uint32_t)json_integer_value(json_array_get(values, k)));
    }
}

/* Whether a result says what the device does: a test without such a one is run again. */
static bool is_final(enum conform_result r)
{
    return r == CONFORM_PASS || r == CONFORM_KNOWN || r == CONFORM_UNSUPPORTED || conform_is_missed(r);
}

static enum conform_result result_named(const char *name)
{
    unsigned r = 0;

    while (r < CONFORM_RESULTS && strcmp(name, conform_result_str((enum conform_result)r)) != 0)
        r++;
    return (enum conform_result)r;
}

/* Take the name of the capture, a file in `keep` that is named after the test: any other file is not its own, and none
 * is to be removed or drawn with it. */
static void take_capture(const char *path, const char *keep, struct conform_outcome *o)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *end, *id = o->test->id;
    int n;

    while (*id && *name == (*id == '/' ? '-' : *id))
        id++, name++;
    end = *name == '-' ? name + 1 + strspn(name + 1, "0123456789") : name;
    if (*id || strcmp(end, ".pcapng") != 0)
        return;
    n = snprintf(o->capture, sizeof o->capture, "%s/%s", keep, slash ? slash + 1 : path);
    if (n < 0 || (size_t)n >= sizeof o->capture)
        *o->capture = '\0';
}

/* What a test took, by its ms in a file; 0: that says nothing. */
static ns_t took_of(json_int_t ms)
{
    return ms > 0 && ms <= MS_MAX ? ms * NS_PER_MS : 0;
}

/* The line of a test. False: it is none. */
static bool take_test(const json_t *row, const struct conform_battery *battery, const bool *chosen, const char *keep,
                      struct conform_outcome *o, struct metrics *m, struct identities *ids)
{
    enum conform_result result = result_named(text_of(row, "result"));
    unsigned i = 0;

    while (i < battery->n && strcmp(battery->test[i].id, text_of(row, "id")) != 0)
        i++;
    if (result == CONFORM_RESULTS || !*text_of(row, "id"))
        return false;
    if (i == battery->n || !chosen[i] || o[i].test || !is_final(result))
        return true;
    o[i].test = &battery->test[i];
    o[i].result = (uint8_t)result;
    o[i].runs = (unsigned)json_integer_value(json_object_get(row, "runs"));
    o[i].good = (unsigned)json_integer_value(json_object_get(row, "good"));
    o[i].took = took_of(json_integer_value(json_object_get(row, "ms")));
    buf_puts(&o[i].reason, text_of(row, "reason"));
    buf_puts(&o[i].judge, text_of(row, "judge"));
    buf_puts(&o[i].counters, text_of(row, "counters"));
    buf_puts(&o[i].known, text_of(row, "known"));
    take_capture(text_of(row, "capture"), keep, &o[i]);
    take_metrics(row, m);
    take_chosen(row, ids);
    return true;
}

bool progress_take(const char *text, size_t len, const char *first, const char *keep,
                   const struct conform_battery *battery, const bool chosen[CONFORM_TESTS],
                   struct conform_outcome o[CONFORM_TESTS], struct metrics *m, struct identities *ids, struct buf *err)
{
    size_t at = strlen(first);
    unsigned line = 1;

    if (len < at || memcmp(text, first, at) != 0) {
        buf_puts(err, "it was of another device, seed or number of runs");
        return false;
    }
    while (at < len) {
        const char *end = memchr(text + at, '\n', len - at);
        size_t n = end ? (size_t)(end - text) - at : len - at;
        json_t *row = json_loadb(text + at, n, 0, NULL);
        bool good = row && take_test(row, battery, chosen, keep, o, m, ids);
        json_decref(row);
        line++;
        if (!good && end) { /* the last line may be cut off: then its test is run again */
            buf_printf(err, "line %u is no outcome of a test", line);
            return false;
        }
        at += n + 1;
    }
    return true;
}
