/* layer 3 (conform): of which class a device's ACK timeouts are, by the metrics rto_N and rto_first_N: as the standard
 * says, with a least value, or adaptive. */
#include "gen/conform/measures/metrics.h"

#include <stdio.h>
#include <string.h>

#define CODES        32
#define LEAST        950  /* permille of the nominal time: below it, a timer that counts ticks is no excuse */
#define MOST         4000 /* the timer expires between once and four times the nominal time: C9-140 */
#define SAME_PERCENT 5    /* times that differ by less are the same */

/* The median of rto_N or rto_first_N, ns, so small that its permille do not overflow; 0: it was not measured. */
static int64_t median_of(const struct metrics *m, const char *kind, unsigned code, uint64_t seed)
{
    struct metric_summary s = {.n = 0};
    char name[METRIC_NAME];

    snprintf(name, sizeof name, "%s_%u", kind, code);
    for (unsigned i = 0; i < m->n; i++)
        if (strcmp(m->metric[i].name, name) == 0)
            metric_summarise(&m->metric[i], seed, &s);
    if (!s.n || s.median < 0)
        return 0;
    return s.median < INT64_MAX / 1000 ? s.median : INT64_MAX / 1000;
}

static bool is_same(int64_t a, int64_t b)
{
    int64_t apart = a > b ? a - b : b - a;

    return 100 * apart < SAME_PERCENT * b;
}

/* Count the time of a code. */
static void take(struct metric_timeouts *t, int64_t time, int64_t nominal)
{
    int64_t permille = 1000 * time / nominal;

    t->least = !t->codes || permille < t->least ? permille : t->least;
    t->most = permille > t->most ? permille : t->most;
    t->codes++;
}

struct metric_timeouts metrics_timeouts(const struct metrics *m, uint64_t seed)
{
    struct metric_timeouts t = {.class = TIMEOUTS_UNKNOWN};
    int64_t before = 0;
    bool early = false;

    for (unsigned code = 1; code < CODES; code++) {
        int64_t nominal = INT64_C(4096) << code, time = median_of(m, "rto", code, seed);
        int64_t first = median_of(m, "rto_first", code, seed);
        if (!time)
            continue;
        take(&t, time, nominal);
        early |= (first && 1000 * first < LEAST * nominal) || 1000 * time < LEAST * nominal;
        if (before && is_same(time, before))
            t.floor = code;
        before = time;
    }
    if (t.codes)
        t.class = early           ? TIMEOUTS_ADAPTIVE
                  : t.floor       ? TIMEOUTS_FLOORED
                  : t.most > MOST ? TIMEOUTS_LONG
                                  : TIMEOUTS_IBTA;
    return t;
}

const char *metric_timeouts_str(enum metric_timeouts_class c)
{
    static const char *const names[] = {"unknown", "ibta", "floored", "adaptive", "long"};

    return (unsigned)c < sizeof names / sizeof *names ? names[c] : "?";
}

void metrics_timeouts_text(const struct metrics *m, uint64_t seed, struct buf *b)
{
    static const char *const says[] = {
        [TIMEOUTS_IBTA] = "as the standard has them, once to four times the nominal time",
        [TIMEOUTS_FLOORED] = "the same for several codes: below a least value they are not shorter",
        [TIMEOUTS_ADAPTIVE] = "adaptive: some request was sent again before the nominal time was over",
        [TIMEOUTS_LONG] = "longer than four times the nominal time"};
    struct metric_timeouts t = metrics_timeouts(m, seed);

    if (t.class == TIMEOUTS_UNKNOWN)
        return;
    buf_printf(b, "ACK timeouts: %s; %.2f to %.2f times the nominal time, with %u codes", says[t.class],
               (double)t.least / 1000, (double)t.most / 1000, t.codes);
    if (t.floor)
        buf_printf(b, "; code %u waits as long as a smaller one", t.floor);
    buf_char(b, '\n');
}

void metrics_timeouts_json(const struct metrics *m, uint64_t seed, struct buf *b)
{
    struct metric_timeouts t = metrics_timeouts(m, seed);

    if (t.class == TIMEOUTS_UNKNOWN)
        return;
    buf_printf(b, ",\"ack_timeouts\":{\"class\":\"%s\",\"codes\":%u,\"least_permille\":%lld,\"most_permille\":%lld",
               metric_timeouts_str(t.class), t.codes, (long long)t.least, (long long)t.most);
    if (t.floor)
        buf_printf(b, ",\"floor_code\":%u", t.floor);
    buf_char(b, '}');
}
