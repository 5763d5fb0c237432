/* layer 5 (tests): one of several processes that share out a run, and what all have found. */
#include "src/cli/capture_cmd.h"

#include <criterion/criterion.h>

Test(parts, a_part_has_one_thread_unless_more_are_asked_for)
{
    struct buf found = {0};
    struct trace_share part = {.found = &found}, all = {.n_parts = 2};
    struct trace t = {.share = &part};

    cr_assert_eq(trace_threads(&t), 1);
    t.cores = 3;
    cr_assert_eq(trace_threads(&t), 3);
    t = (struct trace){.share = &all};
    cr_assert_eq(trace_threads(&t), 0);
    t.share = NULL;
    cr_assert_eq(trace_threads(&t), 0);
}

/* A run that was shared out into one part, into two and into three. */
static struct {
    struct trace_share share;
    struct pack parts[3];
    unsigned serves, forgotten, taken;
    struct buf options; /* and a byte of what was found */
} run;

static struct pack part_of_run(void)
{
    const uint8_t *p = (const uint8_t *)run.options.p;

    return (struct pack){.p = p, .end = p + run.options.len};
}

static bool more_parts(struct trace_share *s)
{
    if (s->n_parts == 3)
        return false;
    s->n_parts++;
    for (uint32_t i = 0; i < s->n_parts; i++)
        run.parts[i] = part_of_run();
    return true;
}

static void put_options(void *user, struct pack *k)
{
    (void)user;
    pack_number(k, 7);
    pack_number(k, 9);
}

static bool take(void *user)
{
    const struct trace_share *s = user;

    for (uint32_t i = 0; i < s->n_parts; i++)
        cr_assert_eq((size_t)(run.parts[i].end - run.parts[i].p), 1, "behind the options");
    run.taken = s->n_parts;
    return s->n_parts == run.serves;
}

static void forget(void *user)
{
    (void)user;
    run.forgotten++;
}

static bool take_run(unsigned serves)
{
    static const struct parts_taker taker = {put_options, take, forget};
    static const uint8_t other[64] = {0};
    struct pack k = {.out = &run.options};
    bool taken;

    put_options(NULL, &k);
    buf_mem(&run.options, "", 1);
    run.share = (struct trace_share){.parts = run.parts, .n_parts = 1, .next = more_parts};
    run.parts[0] = (struct pack){.p = other, .end = other + sizeof other};
    run.serves = serves;
    run.forgotten = run.taken = 0;
    taken = parts_take(&run.share, &taker, &run.share);
    buf_free(&run.options);
    return taken;
}

Test(parts, the_first_number_of_parts_that_serves_is_taken)
{
    cr_assert(take_run(2));
    cr_assert_eq(run.taken, 2);
    cr_assert_eq(run.forgotten, 1, "that of other options");
    cr_assert(take_run(3));
    cr_assert_eq(run.taken, 3);
    cr_assert_eq(run.forgotten, 2);
    cr_assert(!take_run(1), "parts with other options are not taken");
    cr_assert_eq(run.taken, 3, "all others were tried");
    cr_assert_eq(run.forgotten, 3, "nothing is left of what was tried");
}
