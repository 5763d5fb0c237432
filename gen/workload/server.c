/* layer 3 (workload): a parameter server: workers push their gradients to the first host, which answers with the
 * parameters. */
#include "gen/workload/schedule.h"
#include "gen/workload/workload_impl.h"

/* A message of a round, at both ends; *recv is the receive. Returns the send; WORKLOAD_NONE: no memory. */
static uint32_t message(const struct workload *w, struct schedule *s, unsigned from, unsigned to, uint32_t *recv)
{
    const struct task send = {.kind = TASK_SEND, .rank = (uint16_t)from, .peer = (uint16_t)to, .bytes = w->c.size};
    const struct task get = {.kind = TASK_RECV, .rank = (uint16_t)to, .peer = (uint16_t)from, .bytes = w->c.size};
    uint32_t i = schedule_add(s, &send);

    *recv = schedule_add(s, &get);
    return *recv == WORKLOAD_NONE ? WORKLOAD_NONE : i;
}

/* What the words say. */
struct server {
    bool async;
    ns_t think; /* longest time between the parameters and the next push; even from 0 on */
};

static bool parse(const char *args, struct server *p, struct text_error *e)
{
    struct token t, key, value;

    *p = (struct server){0};
    while (workload_word(&args, &t)) {
        if (token_is(&t, "sync") || token_is(&t, "async"))
            p->async = token_is(&t, "async");
        else if (!token_key(&t, &key, &value) || !token_is(&key, "think") || !token_time(&value, &p->think) ||
                 p->think > NS_PER_S)
            return text_fail(e, &t, "expected sync, async or think=TIME, at most 1s");
    }
    return true;
}

/* One push and its answer by worker `h`, behind task *before (WORKLOAD_NONE: none), which becomes the receive of the
 * answer; `all`: the task that the answer waits for besides, and that waits for the push (WORKLOAD_NONE: none). */
static bool exchange(struct workload *w, struct schedule *s, const struct server *p, unsigned h, uint32_t all,
                     uint32_t *before)
{
    ns_t think = p->think ? (ns_t)prng_below(&w->prng, (uint32_t)p->think + 1) : 0;
    const struct task compute = {.kind = TASK_CALC, .rank = (uint16_t)h, .time = think};
    uint32_t c = schedule_add(s, &compute), got, back, push = message(w, s, h, 0, &got),
             answer = message(w, s, 0, h, &back);
    bool good = c != WORKLOAD_NONE && push != WORKLOAD_NONE && answer != WORKLOAD_NONE;

    good =
        good && (*before == WORKLOAD_NONE || schedule_after(s, c, *before, false)) && schedule_after(s, push, c, false);
    if (good && all == WORKLOAD_NONE)
        good = schedule_after(s, answer, got, false);
    else if (good)
        good = schedule_after(s, all, got, false) && schedule_after(s, answer, all, false);
    *before = back;
    return good;
}

bool server_tasks(struct workload *w, struct schedule *s, const char *args, struct text_error *e)
{
    const struct task barrier = {.kind = TASK_CALC};
    uint32_t before[TOPO_HOSTS_MAX], all = WORKLOAD_NONE;
    struct server p;

    if (!parse(args, &p, e))
        return false;
    text_fail(e, NULL, "out of memory");
    memset(before, 0xff, sizeof before);
    for (uint64_t r = 0; r < w->c.iters; r++) {
        if (!p.async && (all = schedule_add(s, &barrier)) == WORKLOAD_NONE)
            return false;
        for (unsigned h = 1; h < w->n; h++)
            if (!exchange(w, s, &p, h, all, &before[h]))
                return false;
    }
    return true;
}
