/* layer 3 (conform): whether the tester was in time for what a test asks. */
#include "gen/conform/measures/in_time.h"

#include "gen/script/script.h"

#define PART 10 /* a delay of less than one part in so many makes no difference to a time, */
#define FEW  4  /* nor do delays in less than one of so many samples to their median */

static ns_t lesser(ns_t a, ns_t b)
{
    return a < b ? a : b;
}

/* "5ms", "14ms-", "2ms-5ms": the first time that is not 0; NS_NEVER: it is none. */
static ns_t time_of(struct token t)
{
    struct token from, to;
    ns_t time;

    token_cut(&t, '-', &from, &to);
    if (from.len && token_time(&from, &time) && time > 0)
        return time;
    return to.len && token_time(&to, &time) && time > 0 ? time : NS_NEVER;
}

/* What a word of a line allows; `before`: the word before it, empty: there is none. */
static ns_t allowed(const struct token *t, const struct token *before)
{
    struct token key, v, rest = {.p = t->p + 1, .len = t->len - 1};
    uint64_t code;
    ns_t time = NS_NEVER;

    if (token_key(t, &key, &v) && token_is(&key, "timeout"))
        return token_u64(&v, &code) && code && code < 32 ? (INT64_C(4096) << code) / 2 : NS_NEVER;
    if (token_key(t, &key, &v) && (token_is(&key, "after") || token_is(&key, "at")))
        time = time_of(v);
    else if (!before->len && (*t->p == '+' || *t->p == '@'))
        time = time_of(rest);
    else if (token_is(before, "none") || token_is(before, "wait"))
        time = time_of(*t);
    return time == NS_NEVER ? time : time / PART;
}

ns_t in_time_least(const char *script)
{
    ns_t least = (INT64_C(4096) << SCRIPT_LIVE_TIMEOUT) / 2;

    for (size_t n; *script; script += n + (script[n] == '\n')) {
        char line[1024];
        struct token t[SCRIPT_WORDS], before = {.p = "", .len = 0};
        n = strcspn(script, "\n");
        if (n >= sizeof line || *script == '#')
            continue;
        memcpy(line, script, n);
        line[n] = '\0';
        unsigned words = text_split(line, t, SCRIPT_WORDS);
        for (unsigned i = 0; i < words && i < SCRIPT_WORDS; i++) {
            least = lesser(least, allowed(&t[i], &before));
            before = t[i];
        }
    }
    return least > LATE_LEAST ? least : LATE_LEAST;
}

bool in_time_for(const struct metrics *m, const struct late *l, ns_t took)
{
    for (unsigned i = 0; i < m->n && l->n; i++) {
        const struct metric *x = &m->metric[i];
        struct metric_summary s;
        if (x->unit != METRIC_NS && l->sum > took / PART)
            return false;
        if (x->unit != METRIC_NS || FEW * l->n < x->n)
            continue;
        metric_summarise(x, 0, &s);
        if (l->most > s.median / PART)
            return false;
    }
    return true;
}
