/* layer 5 (test): E1: DCQCN: two flows from the rate of the line become equal, and make room for a third. Fast
 * recovery lasts for F steps after a cut and the additive increase begins with the next, as in the fluid model: f=6. */
#include "tests/experiments/experiments.h"

#define MS NS_PER_MS

/* The end of the first window of `window`, in steps of a fifth, in which each of the first `n` flows has `share`
 * Gbit/s up to 10 %: ms from now on; `most` if there is none by then. */
static double fair_from(struct model *m, unsigned n, double share, ns_t window, double most)
{
    enum { PARTS = 5 };
    double rate[PARTS][3] = {{0}};

    for (unsigned k = 0; (double)(k * window) < most * PARTS * MS; k++) {
        unsigned good = 0;
        ns_t step = window / PARTS;
        model_begin(m);
        model_run(m, model_now(m) + step);
        for (unsigned i = 0; i < n; i++) {
            double sum = 0;
            rate[k % PARTS][i] = model_rate(m, i) / 1e9;
            for (unsigned j = 0; j < PARTS; j++)
                sum += rate[j][i] / PARTS;
            good += sum >= share * .9 && sum <= share * 1.1;
        }
        if (good == n)
            return (double)((k + 1) * step) / MS;
    }
    return most;
}

static void run(struct results *r)
{
    struct model_config c = star(3, "dcqcn:f=6", 40 * GBPS, "kmin=5000,kmax=200000,pmax=1%");
    double least = 40;
    struct model *m;

    c.flow[2].start = 100 * MS;
    m = model_new(&c);
    expect_range(r, 0, 30, fair_from(m, 2, 20, 5 * MS, 100), "ms until both had 20 Gbit/s for 5 ms");
    model_run(m, 50 * MS);
    model_begin(m);
    model_run(m, 100 * MS);
    expect_range(r, .995, 1, model_use(m, 0), "use of the link, two flows");
    for (unsigned k = 0; k < 20; k++) {
        model_begin(m);
        model_run(m, (101 + k) * MS);
        least = model_rate(m, 2) / 1e9 < least ? model_rate(m, 2) / 1e9 : least;
    }
    expect_range(r, 0, 5, least, "Gbit/s of the third flow at first, at the least (1 ms)");
    expect_range(r, 0, 80, fair_from(m, 3, 40. / 3, 50 * MS, 200),
                 "ms from 120 ms on until all had 13.3 Gbit/s for 50 ms");
    model_begin(m);
    model_run(m, model_now(m) + 50 * MS);
    expect_range(r, .995, 1, model_use(m, 0), "use of the link, three flows");
    model_free(m);
}

const struct experiment e01 = {
    .name = "E01",
    .what = "DCQCN, 40G: two flows from line rate, a third at 0.1 s",
    .source = "CoNEXT 2016: 13.3G each within 100 ms; 25 ms, in windows of 5 "
              "ms, and the dip from a model",
    .run = run,
};
