/* layer 5 (test): E6: TIMELY has no unique fixed point: flows that began unequal stay unequal. How unequal depends on
 * everything else, as each split is stationary: 9.66 and 0.29 Gbit/s here; with w=0.125 5.47 and 3.77, with segments of
 * 64 KB one flow has all. The model of the reference kept 6.13 and 3.43. What they have in common is that the flows do
 * not become equal, which patched TIMELY makes of the same beginning (E5). */
#include "tests/experiments/experiments.h"

static void run(struct results *r)
{
    struct model_config c = star(2, "timely", 10 * GBPS, NULL);
    struct model *m;

    c.flow[0].rate = 7 * GBPS;
    c.flow[1].rate = 3 * GBPS;
    m = model_new(&c);
    model_run(m, NS_PER_S / 5);
    model_begin(m);
    model_run(m, NS_PER_S / 2);
    expect_range(r, .5, .95, model_jain(m), "Jain's index, begun with 7:3");
    model_free(m);
}

const struct experiment e06 = {
    .name = "E06",
    .what = "TIMELY, 10G, two flows begun with 7:3 stay apart",
    .source = "CoNEXT 2016, theorem: any split of C is stationary",
    .quick = true,
    .run = run,
};
