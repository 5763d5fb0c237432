/* layer 3 (conform): what the device's counters counted in all tests, beside what the captures show. */
#include "gen/conform/conform.h"

#include <stdio.h>

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

static void add_rows(struct sums *s, const struct buf *b)
{
    for (const char *rows = b->p, *end = b->p + b->len, *close; rows < end; rows = close + 1) {
        close = memchr(rows, '}', (size_t)(end - rows));
        if (!close)
            return;
        size_t n = (size_t)(close - rows);
        struct token names = conform_member(rows, n, "\"counters\":\""),
                     verdict = conform_member(rows, n, "\"verdict\":\"");
        struct counted *c = entry(s, &names);
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
