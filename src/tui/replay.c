/* layer 3b (tui): work in slices on the packets kept: tasks; the rates, which read all packets again. */
#include "clock.h"
#include "src/tui/tui_impl.h"

#include <stdlib.h>
#include <time.h>

#define SLICE       (8 * NS_PER_MS) /* a key waits no longer */
#define SLICE_CHECK 32              /* steps between looks at the clock */
#define RATE_LINES  200             /* intervals of the rates, about */

uint64_t now_ns(void)
{
    return (uint64_t)clock_ns(CLOCK_MONOTONIC);
}

/* --- Tasks ------------------------------------------------------------------------------------ */

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
    if (!k->active || (k->waits && !t->ended && !t->o.live))
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

/* --- Replay ----------------------------------------------------------------------------------- */

static struct observer *observer_again(struct tui *t)
{
    struct observer *o = observer_new(&(struct observer_opts){.memory = t->o.analyses.memory});

    if (o)
        conn_learn_all(observer_conns(o), t->o.analyses.pairs, t->o.analyses.n_pairs);
    else
        tui_say(t, LOOK_FAIL, "Out of memory.");
    return o;
}

static bool replay(struct tui *t, struct observer *o, uint64_t i)
{
    if (load(t, i))
        observer_packet(o, &t->pkt);
    return true;
}

/* --- Rates ------------------------------------------------------------------------------------ */

static void on_tick(void *user, struct meter_row *row, ns_t begin, ns_t since, const struct meter_counts *added)
{
    struct tui *t = user;
    struct lines *l = &t->views[SCREEN_RATES].lines;
    const struct spot p = {.conn = (uint32_t)row->conn, .ts = begin, .file = (uint16_t)row->file};
    bool trouble = added->again || added->seq_naks || added->rnr_naks || added->timeouts;

    lines_item(l, l->text.len, &p, trouble ? LOOK_AGAIN : LOOK_NORMAL, trouble);
    ticks_add(&t->ticks, row, begin, since, added);
}

static void rates_end(struct tui *t)
{
    meter_free(t->rates_meter);
    observer_free(t->rates_observer);
    t->rates_meter = NULL;
    t->rates_observer = NULL;
}

static void rates_done(struct tui *t)
{
    struct lines *l = &t->views[SCREEN_RATES].lines;

    meter_end(t->rates_meter);
    rates_end(t);
    lines_end(l);
}

static bool rates_step(struct tui *t, uint64_t i)
{
    return replay(t, t->rates_observer, i);
}

/* 1, 2 or 5 times a power of ten ns, so that the packets kept are about RATE_LINES intervals. */
static ns_t nice_interval(struct tui *t)
{
    static const ns_t steps[] = {1, 2, 5};
    uint64_t first = keep_first(t->keep), end = keep_end(t->keep);
    ns_t begin = 0, length = 0, unit = NS_PER_US;

    if (end > first && keep_get(t->keep, first, &t->stored)) {
        begin = t->stored.frame.ts;
        if (keep_get(t->keep, end - 1, &t->stored))
            length = t->stored.frame.ts - begin;
    }
    for (; unit < NS_PER_S * 1000; unit *= 10)
        for (unsigned i = 0; i < ARRAY_LEN(steps); i++)
            if (length / (unit * steps[i]) <= RATE_LINES)
                return unit * steps[i];
    return unit;
}

/* The lines come while the task runs. */
void rates_make(struct tui *t)
{
    const struct task task = {
        .waits = true, .doing = "measuring", .to = UINT64_MAX, .step = rates_step, .done = rates_done};
    struct lines *l = &t->views[SCREEN_RATES].lines;
    const struct meter_opts o = {.interval = nice_interval(t), .tick = on_tick, .files = t->o.files, .user = t};

    t->tasks[TASK_RATES].active = false;
    rates_end(t);
    t->ticks = (struct ticks){.format = ROWS_TEXT, .width = t->columns, .b = &l->text};
    lines_item(l, 0, NULL, LOOK_KEY, false);
    ticks_begin(&t->ticks);
    t->rates_observer = observer_again(t);
    t->rates_meter = t->rates_observer ? meter_new(t->rates_observer, &o) : NULL;
    if (t->rates_meter)
        task_start(t, TASK_RATES, &task);
    if (t->o.live && !t->ended)
        t->tasks[TASK_RATES].to = keep_end(t->keep);
}

void replay_stop(struct tui *t)
{
    rates_end(t);
}
