/* layer 3 (workload): schedules played: a task begins when all that it waits for is over; sends and receives of two
 * hosts with one tag belong together in their order. */
#include "gen/workload/schedule.h"
#include "gen/workload/workload_impl.h"
#include "grow.h"

#include <errno.h>
#include <stdlib.h>

#define TASKS_MAX (1u << 26)

uint32_t schedule_add(struct schedule *s, const struct task *t)
{
    if (s->n == TASKS_MAX || !grow((void **)&s->task, s->n, sizeof *s->task))
        return WORKLOAD_NONE;
    s->task[s->n] = *t;
    s->task[s->n].then = s->task[s->n].match = WORKLOAD_NONE;
    return s->n++;
}

bool schedule_after(struct schedule *s, uint32_t task, uint32_t other, bool begun)
{
    if (s->n_edges == TASKS_MAX || !grow((void **)&s->edge, s->n_edges, sizeof *s->edge))
        return false;
    s->edge[s->n_edges] = (struct task_edge){.task = task, .next = s->task[other].then, .begun = begun};
    s->task[other].then = s->n_edges++;
    s->task[task].left++;
    return true;
}

/* --- Sends and receives that belong together -------------------------------------------------- */

static int by_ends(const void *a, const void *b, void *user)
{
    const struct task *task = user;
    uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    const struct task *x = &task[i], *y = &task[k];
    uint64_t from_x = x->kind == TASK_SEND ? x->rank : x->peer, from_y = y->kind == TASK_SEND ? y->rank : y->peer;
    uint64_t to_x = x->kind == TASK_SEND ? x->peer : x->rank, to_y = y->kind == TASK_SEND ? y->peer : y->rank;
    uint64_t p = from_x << 16 | to_x, q = from_y << 16 | to_y;

    if (p != q)
        return p < q ? -1 : 1;
    if (x->tag != y->tag)
        return x->tag < y->tag ? -1 : 1;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return i < k ? -1 : i > k;
}

static bool unmatched(const struct workload *w, const struct task *t, struct text_error *e)
{
    return text_fail(e, NULL, "%s of host %s, %s %s with tag %u, belongs to none there",
                     t->kind == TASK_SEND ? "a send" : "a receive", fabric_host_name(w->s->fabric, t->rank),
                     t->kind == TASK_SEND ? "to" : "from", fabric_host_name(w->s->fabric, t->peer), t->tag);
}

static bool same_channel(const struct task *send, const struct task *recv)
{
    return recv->kind == TASK_RECV && send->rank == recv->peer && send->peer == recv->rank && send->tag == recv->tag;
}

/* `at`: sends and receives by their ends and tags, the sends of each first. */
static bool match(struct workload *w, const uint32_t *at, uint32_t n, struct text_error *e)
{
    struct task *task = w->schedule->task;

    for (uint32_t i = 0, end; i < n; i = end) {
        uint32_t sends = i, receives;
        while (sends < n && task[at[sends]].kind == TASK_SEND && task[at[sends]].rank == task[at[i]].rank &&
               task[at[sends]].peer == task[at[i]].peer && task[at[sends]].tag == task[at[i]].tag)
            sends++;
        for (receives = sends; receives < n && (sends == i || same_channel(&task[at[i]], &task[at[receives]]));
             receives++)
            if (sends == i)
                return unmatched(w, &task[at[i]], e);
        if (receives - sends != sends - i) /* the first that is one too many, of the sends or of the receives */
            return unmatched(w, &task[at[receives - sends < sends - i ? i + receives - sends : 2 * sends - i]], e);
        for (uint32_t k = 0; k < sends - i; k++)
            task[at[i + k]].match = at[sends + k];
        end = receives;
    }
    return true;
}

static bool match_all(struct workload *w, struct text_error *e)
{
    struct schedule *s = w->schedule;
    uint32_t *at = malloc(((size_t)s->n + 1) * sizeof *at), n = 0;
    bool good;

    if (!at)
        return text_fail(e, NULL, "out of memory");
    for (uint32_t i = 0; i < s->n; i++)
        if (s->task[i].kind != TASK_CALC)
            at[n++] = i;
    qsort_r(at, n, sizeof *at, by_ends, s->task);
    good = match(w, at, n, e);
    free(at);
    return good;
}

/* --- Setup ------------------------------------------------------------------------------------ */

static bool connect_all(struct workload *w, struct text_error *e)
{
    const struct schedule *s = w->schedule;

    for (uint32_t i = 0; i < s->n; i++) {
        const struct task *t = &s->task[i];
        if (t->kind != TASK_SEND)
            continue;
        if (t->bytes > w->region)
            w->region = t->bytes;
        if (workload_connect(w, t->rank, t->peer, WORKLOAD_CLASS, e) < 0)
            return false;
    }
    return true;
}

int schedule_open(struct workload *w, struct text_error *e)
{
    struct schedule *s = w->schedule = calloc(1, sizeof *s);

    if (!s)
        return -ENOMEM;
    s->ready = WORKLOAD_NONE;
    if (!w->c.kind->tasks(w, s, w->c.args, e))
        return -EINVAL;
    if (!s->n)
        return text_fail(e, NULL, "the schedule has no tasks"), -EINVAL;
    if (!match_all(w, e) || !connect_all(w, e))
        return -EINVAL;
    s->timers.heap = calloc((size_t)s->n + 1, sizeof *s->timers.heap);
    return s->timers.heap ? 0 : -ENOMEM;
}

void schedule_free(struct schedule *s)
{
    if (!s)
        return;
    free(s->task);
    free(s->edge);
    free(s->timers.heap);
    free(s);
}

/* --- Playing ---------------------------------------------------------------------------------- */

/* Those that wait for task `i` to be over, or to begin, wait for one task less. What may begin now gets into a list:
 * chains of tasks that take no time are as long as their file. */
static void release(struct schedule *s, uint32_t i, bool begun)
{
    for (uint32_t k = s->task[i].then; k != WORKLOAD_NONE; k = s->edge[k].next) {
        uint32_t task = s->edge[k].task;
        if (s->edge[k].begun != begun || --s->task[task].left)
            continue;
        s->task[task].next = WORKLOAD_NONE;
        *(s->ready == WORKLOAD_NONE ? &s->ready : &s->task[s->last_ready].next) = task;
        s->last_ready = task;
    }
}

static void end(struct workload *w, uint32_t i)
{
    struct schedule *s = w->schedule;

    s->task[i].over = true;
    if (++s->over == s->n)
        w->over = true;
    release(s, i, false);
}

static void begin(struct workload *w, uint32_t i, ns_t now)
{
    struct schedule *s = w->schedule;
    struct task *t = &s->task[i];

    t->begun = true;
    if (t->kind == TASK_CALC) {
        timer_set(&s->timers, &t->timer, now + t->time);
    } else if (t->kind == TASK_SEND) {
        const struct workload_message m = {
            .src = t->rank, .dst = t->peer, .flow = i, .class = WORKLOAD_CLASS, .bytes = t->bytes};
        workload_send(w, &m, now);
    }
    release(s, i, true);
    if (t->kind == TASK_RECV && t->arrived)
        end(w, i);
}

static void begin_ready(struct workload *w, ns_t now)
{
    struct schedule *s = w->schedule;

    while (s->ready != WORKLOAD_NONE) {
        uint32_t i = s->ready;
        s->ready = s->task[i].next;
        begin(w, i, now);
    }
}

void schedule_arrived(struct workload *w, const struct workload_message *m, ns_t now)
{
    uint32_t i = w->schedule->task[m->flow].match;

    w->schedule->task[i].arrived = true;
    if (w->schedule->task[i].begun)
        end(w, i);
    begin_ready(w, now);
}

void schedule_done(struct workload *w, const struct workload_message *m, ns_t now)
{
    end(w, m->flow);
    begin_ready(w, now);
}

ns_t schedule_run(struct workload *w, ns_t now)
{
    struct schedule *s = w->schedule;
    struct timer *first;

    for (uint32_t i = 0; !s->started && i < s->n; i++)
        if (!s->task[i].left && !s->task[i].begun) {
            begin(w, i, now);
            begin_ready(w, now);
        }
    s->started = true;
    while ((first = timers_first(&s->timers)) && first->when <= now) {
        timer_stop(&s->timers, first);
        end(w, (uint32_t)(TIMER_OF(first, struct task, timer) - s->task));
        begin_ready(w, now);
    }
    return first ? first->when : NS_NEVER;
}
