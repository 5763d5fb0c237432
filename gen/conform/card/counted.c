/* layer 3 (conform): what the device's counters counted in all tests, beside what the captures show. */
#include "gen/conform/conform.h"
#include "src/counters/counters.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNTED_MAX 64 /* counters of a card */

static const char *const verdicts[] = {"exact", "over", "under", "stuck", "not compared"};

/* The counters of one thing, and in how many tests each verdict was given. */
struct counted {
    char names[120];
    unsigned tests[ARRAY_LEN(verdicts)];
};

struct sums {
    struct counted of[COUNTED_MAX];
    unsigned n;
};

static struct counted *entry(struct sums *s, const struct token *names)
{
    for (unsigned i = 0; i < s->n; i++)
        if (token_is(names, s->of[i].names))
            return &s->of[i];
    if (s->n == COUNTED_MAX || !names->len || names->len >= sizeof s->of->names)
        return NULL;
    snprintf(s->of[s->n].names, sizeof s->of->names, "%.*s", (int)names->len, names->p);
    return &s->of[s->n++];
}

/* A row of what the counters of a device counted in a test. */
struct row {
    const char *p;
    size_t n;
    struct token names;
};

/* The next row at *at, which moves past it. False: there is none. */
static bool next_row(const char **at, const struct buf *b, struct row *r)
{
    const char *close = b->len ? memchr(*at, '}', (size_t)(b->p + b->len - *at)) : NULL;

    if (!close)
        return false;
    r->p = *at;
    r->n = (size_t)(close - *at);
    r->names = conform_member(r->p, r->n, "\"counters\":\"");
    *at = close + 1;
    return true;
}

static void add_rows(struct sums *s, const struct buf *b)
{
    const char *at = b->p;
    struct row r;

    while (next_row(&at, b, &r)) {
        struct token verdict = conform_member(r.p, r.n, "\"verdict\":\"");
        struct counted *c = entry(s, &r.names);
        for (unsigned i = 0; c && i < ARRAY_LEN(verdicts); i++)
            c->tests[i] += token_is(&verdict, verdicts[i]);
    }
}

static void sum_up(const struct conform_score *score, struct sums *s)
{
    s->n = 0;
    for (unsigned i = 0; i < score->n; i++)
        if (score->o[i].counters.len)
            add_rows(s, &score->o[i].counters);
}

void conform_print_counters(const struct conform_score *score, struct buf *b)
{
    struct sums s = {.n = 0};

    sum_up(score, &s);
    if (s.n)
        buf_puts(b, "\ncounters of the device, and in how many tests they are what the capture shows\n");
    for (unsigned i = 0; i < s.n; i++) {
        const char *sep = "  ";
        buf_printf(b, "%-40s", s.of[i].names);
        for (unsigned k = 0; k < ARRAY_LEN(verdicts); k++)
            if (s.of[i].tests[k]) {
                buf_printf(b, "%s%s %u", sep, verdicts[k], s.of[i].tests[k]);
                sep = ", ";
            }
        buf_char(b, '\n');
    }
}

void conform_print_counters_json(const struct conform_score *score, struct buf *b)
{
    struct sums s = {.n = 0};

    sum_up(score, &s);
    buf_puts(b, ",\"counters\":[");
    for (unsigned i = 0; i < s.n; i++) {
        buf_printf(b, "%s\n{\"counters\":", i ? "," : "");
        buf_json(b, s.of[i].names, strlen(s.of[i].names));
        buf_printf(b, ",\"exact\":%u,\"over\":%u,\"under\":%u,\"stuck\":%u,\"not_compared\":%u}", s.of[i].tests[0],
                   s.of[i].tests[1], s.of[i].tests[2], s.of[i].tests[3], s.of[i].tests[4]);
    }
    buf_char(b, ']');
}

/* --- Which counters show guesses -------------------------------------------------------------- */

/* Tests that guess a PSN or an R_Key. */
static const char *const guessing[] = {"sec/psn-sweep", "sec/guesses", "sec/keys", "sec/keys-full"};

static bool guesses(const struct conform_outcome *o)
{
    for (unsigned i = 0; i < ARRAY_LEN(guessing); i++)
        if (strcmp(o->test->id, guessing[i]) == 0)
            return o->counters.len != 0;
    return false;
}

/* Whether the first of the names is of packets, bytes or requests of any kind. */
static bool counts_all(const struct token *names)
{
    size_t n;
    const struct counter_info *c = counter_find(names->p, names->len, &n);

    switch (c ? c->concept : COUNTED_CONCEPTS) {
    case COUNTED_SENT:
    case COUNTED_RECEIVED:
    case COUNTED_BYTES_SENT:
    case COUNTED_BYTES_RECEIVED:
    case COUNTED_READ_SENT:
    case COUNTED_READ_RECEIVED:
    case COUNTED_WRITE_RECEIVED:
    case COUNTED_SEND_RECEIVED:
        return true;
    default:
        return false;
    }
}

/* Call each() for the counters that have counted in the test, and that do not count packets of all kinds. */
static void each_shown(const struct buf *rows, void (*each)(struct buf *, const struct token *, uint64_t),
                       struct buf *b)
{
    const char *at = rows->p;
    struct row r;

    while (next_row(&at, rows, &r)) {
        struct token counted = conform_member(r.p, r.n, "\"counted\":");
        uint64_t value = counted.len ? strtoull(counted.p, NULL, 10) : 0;
        if (value && r.names.len && !counts_all(&r.names))
            each(b, &r.names, value);
    }
}

static void put_shown(struct buf *b, const struct token *names, uint64_t value)
{
    buf_printf(b, "  %.*s %" PRIu64, (int)names->len, names->p, value);
}

static void put_shown_json(struct buf *b, const struct token *names, uint64_t value)
{
    buf_puts(b, b->p[b->len - 1] == '[' ? "{\"counters\":" : ",{\"counters\":");
    buf_json(b, names->p, names->len);
    buf_printf(b, ",\"counted\":%" PRIu64 "}", value);
}

void conform_print_guesses(const struct conform_score *score, struct buf *b)
{
    bool any = false;

    for (unsigned i = 0; i < score->n; i++) {
        const struct conform_outcome *o = &score->o[i];
        if (!guesses(o))
            continue;
        buf_puts(b, any ? "" : "\ncounters of the device that show guesses of a PSN or an R_Key\n");
        any = true;
        buf_printf(b, "%-24s", o->test->id);
        size_t before = b->len;
        each_shown(&o->counters, put_shown, b);
        buf_puts(b, b->len == before ? "  none\n" : "\n");
    }
}

void conform_print_guesses_json(const struct conform_score *score, struct buf *b)
{
    bool any = false;

    buf_puts(b, ",\"guesses\":[");
    for (unsigned i = 0; i < score->n; i++) {
        const struct conform_outcome *o = &score->o[i];
        if (!guesses(o))
            continue;
        buf_printf(b, "%s\n{\"id\":\"%s\",\"shown_by\":[", any ? "," : "", o->test->id);
        any = true;
        each_shown(&o->counters, put_shown_json, b);
        buf_puts(b, "]}");
    }
    buf_char(b, ']');
}
