/* layer 5 (test): E8c: HPCC holds the use of the link at eta, with next to no queue. */
#include "tests/experiments/experiments.h"

static void run(struct results *r)
{
    for (unsigned n = 2; n <= 16; n *= 2) {
        struct model_config c = star(n, "hpcc", 100 * GBPS, NULL);
        struct model *m = model_new(&c);

        model_run(m, 20 * NS_PER_MS);
        model_begin(m);
        model_run(m, 40 * NS_PER_MS);
        expect_range(r, .93, .96, model_use(m, 0), "use of the link, N=%u", n);
        expect_range(r, 0, 5, model_queue_mean(m, 0) / KB, "queue KB, N=%u", n);
        model_free(m);
    }
}

const struct experiment e08c = {
    .name = "E08c",
    .what = "HPCC, 100G, N=2 to 16, eta 0.95",
    .source = "eta: the HPCC simulator; use and queue by a model",
    .quick = true,
    .run = run,
};
