/* layer 3 (judge): the resolution of time stamps. */
#include "src/judge/judge_impl.h"

#define STEP_MAX    NS_PER_MS /* ns; the coarsest resolution that is recognised */
#define STEP_STAMPS 1024      /* time stamps examined per interface */

void judge_step_learn_more(struct judge *j, const struct frame *f)
{
    struct ts_step *s = &j->step[ts_slot(f)];

    if (s->owner != ts_owner(f))
        *s = (struct ts_step){.owner = ts_owner(f), .ns = STEP_MAX};
    if (s->stamps == STEP_STAMPS)
        return;
    s->stamps++;
    while (f->ts % s->ns)
        s->ns /= 10;
}

ns_t judge_step(const struct judge *j, const struct pkt *p)
{
    const struct ts_step *s = &j->step[ts_slot(p->frame)];
    ns_t ns = p->frame->iface < JUDGE_TAPS && s->owner == ts_owner(p->frame) ? s->ns : STEP_MAX;

    return ns > 1 ? ns : 0;
}
