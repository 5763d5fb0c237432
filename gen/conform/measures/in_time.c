/* layer 3 (conform): whether the tester was in time for what a test asks. */
#include "gen/conform/measures/in_time.h"

#include "gen/script/script.h"

#define PART 10 /* a delay of less than one part in so many makes no difference to a time */

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

bool in_time_during(const struct late *l, ns_t from, ns_t to, ns_t value)
{
    ns_t delayed = late_within(l, from, to);

    return !delayed || delayed < (value > 0 ? value : to - from) / PART;
}

bool in_time_at_ends(const struct late *l, ns_t from, ns_t to)
{
    ns_t part = (to - from) / PART, delayed = late_within(l, from - part, from) + late_within(l, to - part, to);

    return !delayed || delayed < part;
}

bool in_time_enough(const struct metrics *m, unsigned runs)
{
    for (unsigned i = 0; i < m->n; i++) {
        const struct metric *x = &m->metric[i];
        if (x->left_out && 2 * x->n * runs < x->n + x->left_out)
            return false;
    }
    return true;
}

struct in_time_sum in_time_sum(const struct metrics *m)
{
    struct in_time_sum sum = {0};

    for (unsigned i = 0; i < m->n; i++) {
        sum.there += m->metric[i].n;
        sum.left_out += m->metric[i].left_out;
    }
    return sum;
}
