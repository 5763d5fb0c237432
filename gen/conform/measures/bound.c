/* layer 3 (conform): which end bounds a rate, by the time that the tester has waited meanwhile. */
#include "gen/conform/measures/metrics.h"

#define DEVICE 900 /* permille of the time from which on the tester holds nobody up */
#define TESTER 100 /* up to which it has always something to do */

struct metric_bound metric_bound(const struct metric *m)
{
    struct metric_bound b = {.end = END_UNKNOWN};

    if (m->taken <= 0)
        return b;
    b.permille = (int64_t)(1000.0 * (double)m->idle / (double)m->taken + 0.5);
    b.end = b.permille >= DEVICE ? END_DEVICE : b.permille <= TESTER ? END_TESTER : END_BOTH;
    return b;
}

const char *metric_end_str(enum metric_end e)
{
    static const char *const names[] = {"unknown", "device", "tester", "both"};

    return names[e];
}

void metric_bound_text(const struct metric *m, int64_t median, struct buf *b)
{
    static const char *const says[] = {
        [END_DEVICE] = "bounded by the device or the way to it",
        [END_TESTER] = "bounded by the tester, so that the device may do more",
        [END_BOTH] = "bounded by both ends",
    };
    struct metric_bound is = metric_bound(m);

    if (is.end == END_UNKNOWN)
        return;
    buf_printf(b, "    %s: the tester waited %.1f %% of the time", says[is.end], (double)is.permille / 10);
    if (is.end == END_BOTH) {
        buf_puts(b, "; if it took none, at most ");
        metric_value(b, (enum metric_unit)m->unit, (int64_t)(1000.0 * (double)median / (double)is.permille));
    }
    buf_char(b, '\n');
}

void metric_bound_json(const struct metric *m, struct buf *b)
{
    struct metric_bound is = metric_bound(m);

    if (is.end != END_UNKNOWN)
        buf_printf(b, ",\"idle_permille\":%lld,\"bound\":\"%s\"", (long long)is.permille,
                   metric_end_str((enum metric_end)is.end));
}
