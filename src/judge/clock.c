/* layer 3 (judge): the resolution of time stamps. */
#include "src/judge/judge_impl.h"

#define STEP_MAX    (1000 * NS_PER_MS) /* ns; the coarsest resolution that is recognised */
#define STEP_STAMPS 1024               /* time stamps examined per interface */
#define STEP_TICKS  16                 /* so many differences show the unit of a clock */

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

void judge_step_learn_more(struct judge *j, const struct frame *f)
{
    struct ts_step *s = &j->step[ts_slot(f)];

    if (s->owner != ts_owner(f))
        *s = (struct ts_step){.owner = ts_owner(f), .decimal = STEP_MAX, .last = f->ts};
    if (s->stamps == STEP_STAMPS)
        return;
    s->stamps++;
    while (f->ts % s->decimal)
        s->decimal /= 10;
    s->ticks += f->ts != s->last;
    s->tick = common_divisor(s->tick, (uint64_t)(f->ts > s->last ? f->ts - s->last : s->last - f->ts));
    s->last = f->ts;
    s->ns =
        s->ticks < STEP_TICKS ? s->decimal : max_u32(s->decimal, (uint32_t)(s->tick < STEP_MAX ? s->tick : STEP_MAX));
}

ns_t judge_step(const struct judge *j, const struct pkt *p)
{
    const struct ts_step *s = &j->step[ts_slot(p->frame)];
    ns_t ns = p->frame->iface < JUDGE_TAPS && s->owner == ts_owner(p->frame) ? s->ns : STEP_MAX;

    return ns > 1 ? ns : 0;
}
