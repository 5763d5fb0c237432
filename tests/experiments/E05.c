/* layer 5 (test): E5: patched TIMELY's fixed point: q* = C Tlow (1 + N delta / (beta C)), less what the empty network
 * holds. */
#include "tests/experiments/experiments.h"

static void run(struct results *r)
{
    static const unsigned flows[] = {2, 4, 10, 20};
    const double line = 10e9, tlow = 50e-6, delta = 10e6, beta = .008;

    for (unsigned i = 0; i < sizeof flows / sizeof *flows; i++) {
        unsigned n = flows[i];
        double all = line / 8 * tlow * (1 + n * delta / (beta * line));
        /* A packet on its link twice, and four delays of 1 us. Of the packets that leave the model's queue one is on
         * the link, which counts as the network's. */
        double empty = line / 8 * (2 * 800e-9 + 4e-6);
        struct model_config c = star(n, "timely-patched", 10 * GBPS, NULL);
        struct model *m;

        for (unsigned k = 0; k < n; k++)
            c.flow[k].rate = n == 2 ? (k ? 3 : 7) * GBPS : 10 * GBPS / (n + 1);
        m = model_new(&c);
        model_run(m, NS_PER_S / 5);
        model_begin(m);
        model_run(m, NS_PER_S / 2);
        expect_near(r, (all - empty) / KB, .02, model_queue_mean(m, 0) / KB, "queue KB, N=%u", n);
        expect_range(r, .999, 1, model_jain(m), "Jain's index, N=%u%s", n, n == 2 ? ", begun with 7:3" : "");
        model_free(m);
    }
}

const struct experiment e05 = {
    .name = "E05",
    .what = "patched TIMELY, 10G, N=2 to 20",
    .source = "CoNEXT 2016: one fixed point, its queue by a formula; 2 %",
    .quick = true,
    .run = run,
};
