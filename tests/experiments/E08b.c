/* layer 5 (test): E8b: Shaped-Quota: the receiver's grants fill its link to eta without a queue; the first quotas do
 * not wait for it. */
#include "tests/experiments/experiments.h"

static void run(struct results *r)
{
    for (unsigned n = 2; n <= 64; n *= 2) {
        struct model_config c = star(n, "sq:charge=no", 100 * GBPS, NULL);
        struct model *m;
        double peak = (n - 1) * 52.0;

        m = model_new(&c);
        model_run(m, 15 * NS_PER_MS);
        expect_range(r, peak * .95, peak + 30, (double)c.queue[0].most / KB, "largest queue KB at the start, N=%u", n);
        expect_range(r, 0, 0, (double)c.queue[0].drops, "drops, N=%u", n);
        model_begin(m);
        model_run(m, 25 * NS_PER_MS);
        expect_near(r, 97. / n, .01, model_rate(m, 0) / 1e9, "Gbit/s of a flow, N=%u", n);
        expect_range(r, 0, 2, (double)c.queue[0].most / KB, "largest queue KB later, N=%u", n);
        expect_range(r, .999, 1, model_jain(m), "Jain's index, N=%u", n);
        model_free(m);
    }
}

const struct experiment e08b = {
    .name = "E08b",
    .what = "Shaped-Quota, 100G, N=2 to 64, no pauses, 4 MB",
    .source = "eta C / N: our definition; the peak (N-1) quotas and 25 KB: by "
              "a model",
    .quick = true,
    .run = run,
};
