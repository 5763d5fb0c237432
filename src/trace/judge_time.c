/* layer 3 (trace): the judge: how fine time stamps are. */
#include "src/trace/judge_impl.h"

#define STEP_MAX NS_PER_MS /* the coarsest that is looked for */
#define STEP_STAMPS 1024   /* so many time stamps tell */

void judge_steps_begin(struct judge *j)
{
    for (unsigned i = 0; i < JUDGE_TAPS; i++)
        j->step[i] = (struct ts_step){.ns = STEP_MAX};
}

void judge_step_learn(struct judge *j, const struct frame *f)
{
    struct ts_step *s = &j->step[f->iface];

    if (s->stamps == STEP_STAMPS)
        return;
    s->stamps++;
    while (f->ts % s->ns)
        s->ns /= 10;
}

ns_t judge_step(const struct judge *j, const struct pkt *p)
{
    ns_t ns = p->frame->iface < JUDGE_TAPS ? j->step[p->frame->iface].ns : STEP_MAX;

    return ns > 1 ? ns : 0;
}
