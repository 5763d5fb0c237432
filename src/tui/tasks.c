/* layer 3b (tui): tasks: work on the packets kept, in slices between keys. */
#include "clock.h"
#include "src/tui/tui_impl.h"

#include <time.h>

#define SLICE       (4 * NS_PER_MS) /* a key waits no longer, and then the screen is drawn */
#define SLICE_CHECK 16              /* steps between looks at the clock */

uint64_t now_ns(void)
{
    return (uint64_t)clock_ns(CLOCK_MONOTONIC);
}

void task_start(struct tui *t, enum task_id id, const struct task *task)
{
    t->tasks[id] = *task;
    t->tasks[id].active = true;
    if (!task->rows)
        t->tasks[id].at = keep_first(t->keep);
}

static uint64_t end_of(const struct tui *t, const struct task *task)
{
    uint64_t end = keep_end(t->keep);

    return task->to < end || task->rows ? task->to : end;
}

static bool can_run(const struct tui *t, const struct task *k)
{
    if (!k->active || (k->waits && !t->ended && !t->o.live) || (k->after_ladder && t->tasks[TASK_LADDER].active))
        return false;
    return k->to != UINT64_MAX || t->ended || k->at < end_of(t, k) || k->waits;
}

/* One step; the task ends behind the last one. */
static void step(struct tui *t, struct task *k)
{
    bool more = true;

    if (!k->rows && k->at < keep_first(t->keep))
        k->at = keep_first(t->keep);
    if (k->at < end_of(t, k))
        more = k->step(t, k->at++);
    else if (k->to == UINT64_MAX && !t->ended && !k->waits)
        return; /* more may come */
    else
        more = false;
    if (more)
        return;
    k->active = false;
    if (k->done)
        k->done(t);
}

void tasks_run(struct tui *t, uint64_t packets)
{
    uint64_t until = now_ns() + SLICE;

    for (unsigned i = 0; i < TASKS; i++)
        for (uint64_t n = 1; can_run(t, &t->tasks[i]) && (!packets || n <= packets); n++) {
            step(t, &t->tasks[i]);
            if (!packets && n % SLICE_CHECK == 0 && now_ns() > until)
                return;
        }
}

bool tasks_left(const struct tui *t)
{
    for (unsigned i = 0; i < TASKS; i++)
        if (can_run(t, &t->tasks[i]))
            return true;
    return false;
}
