/* layer 5 (test): E4: with a longer feedback DCQCN's queue swings, and worst at ten flows; a smaller step and a wider
 * range of marks cure it. */
#include "tests/experiments/experiments.h"

static void swing(struct results *r, unsigned n, ns_t feedback, bool cured, double deviation, double use)
{
    struct model_config c = star(n, cured ? "dcqcn:f=6,ai=10M" : "dcqcn:f=6", 40 * GBPS,
                                 cured ? "kmin=5000,kmax=1000000,pmax=1%" : "kmin=5000,kmax=200000,pmax=1%");
    struct model *m;
    double d;

    c.feedback = feedback;
    m = model_new(&c);
    model_run(m, NS_PER_S / 5);
    model_begin(m);
    model_run(m, NS_PER_S / 2);
    d = model_queue_deviation(m, 0) / model_queue_mean(m, 0);
    expect_near(r, deviation, .2, d, "deviation of the queue by its mean, N=%u, %d us%s", n, (int)(feedback / 1000),
                cured ? ", cured" : "");
    expect_near(r, use, .2, model_use(m, 0), "use of the link, N=%u, %d us%s", n, (int)(feedback / 1000),
                cured ? ", cured" : "");
    model_free(m);
}

static void run(struct results *r)
{
    swing(r, 10, 0, false, .27, 1);
    swing(r, 10, 46 * NS_PER_US, false, 1.2, .972);
    swing(r, 10, 96 * NS_PER_US, false, 1.55, .923);
    swing(r, 10, 96 * NS_PER_US, true, 1.16, .971);
    swing(r, 2, 96 * NS_PER_US, false, 1, .994);
    swing(r, 64, 96 * NS_PER_US, false, 1.25, .86);
}

const struct experiment e04 = {
    .name = "E04",
    .what = "DCQCN, 40G: delay of the feedback and the swing of the queue",
    .source = "sign: phase margins of CoNEXT 2016; values by a model, 20 %",
    .run = run,
};
