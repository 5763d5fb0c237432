/* layer 2 (cc): what CNPs do to the rate of a queue pair. */
#include "src/cc/cuts.h"

#include "psn.h"

static void add(struct cuts_sum *s, const struct cuts_sum *d)
{
    s->bytes += d->bytes;
    s->time += d->time;
    s->packets += d->packets;
}

/* bit/s of what came between `a` and `b`. */
static uint64_t rate_of(const struct cuts_sum *a, const struct cuts_sum *b)
{
    ns_t time = b->time - a->time;

    return time > 0 ? (b->bytes - a->bytes) * 8 * (uint64_t)NS_PER_S / (uint64_t)time : 0;
}

/* The CNP alone stayed alone, and enough packets followed it. */
static void end_alone(struct cuts *c)
{
    const struct cuts_sum zero = {0};
    uint64_t before = rate_of(&zero, &c->base), after = rate_of(&zero, &c->after);

    uint64_t ratio = before ? after * 1000 / before : 0;

    if (c->alone && c->n_after == CUTS_AFTER && before) {
        c->ratio_min = c->ratios && c->ratio_min < ratio ? c->ratio_min : ratio;
        c->ratio_max = c->ratio_max > ratio ? c->ratio_max : ratio;
        c->ratio_sum += ratio;
        c->ratios++;
    }
    c->alone = false;
}

static void take_after(struct cuts *c, const struct cuts_sum *d)
{
    if (!c->skip && c->n_after < CUTS_AFTER) {
        add(&c->after, d);
        c->n_after++;
    }
    c->skip = false;
}

void cuts_packet(struct cuts *c, uint32_t bytes, uint32_t psn, bool inside, ns_t ts)
{
    struct cuts_sum d = {.bytes = bytes, .packets = 1, .time = ts - c->last};
    int ahead = c->last ? psn_diff(psn, c->psn) : 1;

    if (c->alone && ts - c->cnp > CUTS_ALONE)
        end_alone(c);
    if (d.time < 0)
        recovery_begin(&c->recovery); /* its levels follow each other in time */
    if (ahead <= 0) {
        recovery_begin(&c->recovery);
        c->run = c->n_before = 0;
        c->alone = false;
    } else if (inside && c->last && ahead == 1 && d.time >= 0 && d.time <= CUTS_PAUSE) {
        add(&c->sum, &d);
        recovery_packet(&c->recovery, bytes, d.time, ts);
        c->before[c->n_before++ % CUTS_BEFORE] = d;
        if (c->alone)
            take_after(c, &d);
    } else {
        c->n_before = 0;
    }
    c->last = ts;
    c->psn = psn;
}

static void begin_alone(struct cuts *c)
{
    c->base = c->after = (struct cuts_sum){0};
    for (unsigned i = 0; i < CUTS_BEFORE; i++)
        add(&c->base, &c->before[i]);
    c->n_after = 0;
    c->skip = true;
    c->alone = true;
}

bool cuts_cnp(struct cuts *c, uint32_t frame, ns_t ts, struct cuts_run *r)
{
    ns_t since = c->cnp ? ts - c->cnp : NS_NEVER;
    const struct cuts_sum *a = &c->at[0], *b = &c->at[1];

    recovery_begin(&c->recovery);
    if (since > CUTS_ALONE)
        end_alone(c);
    c->alone = false;
    if (since > CUTS_ALONE && c->n_before >= CUTS_BEFORE)
        begin_alone(c);
    if (since > CUTS_RUN_GAP)
        c->run = 0;
    c->cnp = ts;
    if (c->run == 0)
        c->run_frame = frame;
    if (c->run % (CUTS_RUN / 2) == 0 && c->run < CUTS_RUN)
        c->at[c->run / (CUTS_RUN / 2)] = c->sum;
    if (c->run++ < CUTS_RUN)
        return false;
    *r = (struct cuts_run){.frame = c->run_frame, .before = rate_of(a, b), .after = rate_of(b, &c->sum)};
    r->packets = b->packets - a->packets;
    if (c->sum.packets - b->packets < r->packets)
        r->packets = c->sum.packets - b->packets;
    c->run = 0;
    return true;
}
