/* layer 5 (test): E8a: a rate by the round trip of one timed packet at a time. */
#include "tests/experiments/experiments.h"

static void run(struct results *r)
{
    static const struct {
        unsigned n;
        double queue, use;
    } at[] = {{2, 22, .948}, {4, 36, .948}, {8, 80, .965}, {16, 153, .976}, {32, 364, .991}};

    for (unsigned i = 0; i < sizeof at / sizeof *at; i++) {
        struct model_config c = star(at[i].n, "rttcc", 100 * GBPS, NULL);
        struct model *m;

        c.queue[0].limit = 0;
        c.xoff = 100000;
        c.xon = 97000;
        m = model_new(&c);
        model_run(m, 20 * NS_PER_MS);
        model_begin(m);
        model_run(m, 60 * NS_PER_MS);
        expect_near(r, at[i].use, .15, model_use(m, 0), "use of the link, N=%u", at[i].n);
        expect_range(r, .999, 1, model_jain(m), "Jain's index, N=%u", at[i].n);
        expect_range(r, 0, 0, (double)model_pauses(m), "pauses, N=%u", at[i].n);
        if (at[i].n == 2)
            expect_near(r, at[i].queue, .15, model_queue_mean(m, 0) / KB, "queue KB, N=%u", at[i].n);
        else
            expect_told(r, at[i].queue, model_queue_mean(m, 0) / KB,
                        "base is twice the least round trip, which is exactly 4.16 "
                        "us here; 4.6 to 4.9 us would give the table",
                        "queue KB, N=%u", at[i].n);
        model_free(m);
    }
}

const struct experiment e08a = {
    .name = "E08a",
    .what = "RTT scheme with our defaults, 100G, N=2 to 32",
    .source = "by a model, 15 %: no published values",
    .quick = true,
    .run = run,
};
