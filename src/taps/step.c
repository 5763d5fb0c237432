/* layer 2b (taps): the resolution of the time stamps of an interface. */
#include "src/taps/step.h"

#include "bits.h"

#define STEP_TICKS 16 /* so many differences show the unit of a clock */

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

struct ts_step ts_step_new(uint32_t owner, ns_t ts)
{
    return (struct ts_step){.owner = owner, .decimal = STEP_MAX, .last = ts};
}

void ts_step_learn(struct ts_step *s, ns_t ts)
{
    if (s->stamps == STEP_STAMPS)
        return;
    s->stamps++;
    while (ts % s->decimal)
        s->decimal /= 10;
    s->ticks += ts != s->last;
    s->tick = common_divisor(s->tick, (uint64_t)(ts > s->last ? ts - s->last : s->last - ts));
    s->last = ts;
    s->ns =
        s->ticks < STEP_TICKS ? s->decimal : max_u32(s->decimal, (uint32_t)(s->tick < STEP_MAX ? s->tick : STEP_MAX));
}
