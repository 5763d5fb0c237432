/* layer 5 (test): E2b: where DCQCN has no fixed point below Pmax, the queue stays at Kmax. */
#include "tests/experiments/experiments.h"

static void run(struct results *r)
{
    for (unsigned n = 16; n <= 64; n *= 2) {
        struct model_config c = star(n, "dcqcn:f=6", 40 * GBPS, "kmin=5000,kmax=200000,pmax=1%");
        struct model *m;
        double alpha;

        c.queue[0].limit = 0;
        c.xoff = 100000;
        c.xon = 97000;
        m = model_new(&c);
        model_run(m, NS_PER_S / 10);
        model_begin(m);
        alpha = model_run_mean(m, NS_PER_S * 3 / 10, "alpha") / (double)CC_ONE;
        expect_range(r, 189, 200, model_queue_mean(m, 0) / KB, "queue KB, N=%u", n);
        expect_range(r, .17, .235, alpha, "alpha, N=%u", n);
        model_free(m);
    }
}

const struct experiment e02b = {
    .name = "E02b",
    .what = "DCQCN, 40G, N=16 to 64, PFC at 100 KB: the queue stays near Kmax "
            "= 200 KB",
    .source = "CoNEXT 2016 (p* above Pmax); 189 to 197 KB and alpha .18 to .23 "
              "by a model; "
              "all bounds here lie within its tolerance of 10 %",
    .run = run,
};
