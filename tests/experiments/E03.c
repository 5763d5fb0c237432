/* layer 5 (test): E3: incast of eight hosts into a lossless port, with pauses alone, with DCQCN, with the adapters'
 * defaults. */
#include "tests/experiments/experiments.h"

#define XOFF 100000
#define XON  97000

static struct model *incast(struct model_config *c, const char *cc, const char *marking, uint64_t xoff)
{
    *c = star(8, cc, 40 * GBPS, marking);
    c->queue[0].limit = 0;
    c->xoff = xoff;
    c->xon = xoff - 3000;
    return model_new(c);
}

static void pause_only(struct results *r)
{
    struct model_config c;
    struct model *m = incast(&c, "none", NULL, XOFF);
    double paused = 0;

    model_run(m, 20 * NS_PER_MS);
    for (unsigned i = 0; i < 8; i++)
        paused += (double)c.flow[i].paused / 8 / 20e6;
    expect_near(r, 5, .01, model_rate(m, 0) / 1e9, "a: Gbit/s of a flow");
    expect_near(r, .876, .01, paused, "a: share of the time that a sender is paused");
    expect_near(r, 865, .1, (double)c.queue[0].most / KB, "a: largest queue KB");
    expect_near(r, 6258, .1, (double)model_pauses(m), "a: pauses in 20 ms");
    model_free(m);
}

static void with_dcqcn(struct results *r)
{
    static const struct {
        uint64_t xoff;
        double pauses;
    } at[] = {{20000, 1636}, {50000, 50}, {200000, 0}};
    struct model_config c;
    struct model *m = incast(&c, "dcqcn:f=6", "kmin=5000,kmax=200000,pmax=1%", XOFF);

    model_run(m, 20 * NS_PER_MS);
    expect_near(r, 39, .2, (double)model_pauses(m), "b: pauses in the first 20 ms");
    expect_near(r, .855, .1, model_use(m, 0), "b: use of the link in the first 20 ms");
    model_run(m, 100 * NS_PER_MS);
    model_begin(m);
    model_run(m, 200 * NS_PER_MS);
    expect_range(r, 0, 0, (double)model_pauses(m), "b: pauses later");
    expect_range(r, .999, 1, model_use(m, 0), "b: use of the link later");
    model_free(m);
    for (unsigned i = 0; i < sizeof at / sizeof *at; i++) {
        m = incast(&c, "dcqcn:f=6", "kmin=5000,kmax=200000,pmax=1%", at[i].xoff);
        model_run(m, 20 * NS_PER_MS);
        if (at[i].pauses > 0)
            expect_near(r, at[i].pauses, .2, (double)model_pauses(m), "b: pauses in 20 ms, XOFF %u KB",
                        (unsigned)(at[i].xoff / 1000));
        else
            expect_range(r, 0, 0, (double)model_pauses(m), "b: pauses in 20 ms, XOFF %u KB",
                         (unsigned)(at[i].xoff / 1000));
        model_free(m);
    }
}

static void with_defaults(struct results *r)
{
    struct model_config c;
    struct model *m = incast(&c, "dcqcn-cx", "kmin=5000,kmax=200000,pmax=1%", XOFF);

    model_run(m, 20 * NS_PER_MS);
    expect_range(r, 0, 0, (double)model_pauses(m), "c: pauses in 20 ms");
    expect_near(r, .94, .1, model_use(m, 0), "c: use of the link while settling");
    model_free(m);
}

static void run(struct results *r)
{
    pause_only(r);
    with_dcqcn(r);
    with_defaults(r);
}

const struct experiment e03 = {
    .name = "E03",
    .what = "incast 8:1, 40G, XOFF 100 KB: (a) pauses only, (b) DCQCN, (c) "
            "ConnectX defaults",
    .source = "(a) rate and share of pauses: (N-1)/N; the rest by a model",
    .quick = true,
    .run = run,
};
