/* layer 5 (test): E7: RoCC holds its reference queue with the fair rate; several bottlenecks give max-min rates. */
#include "tests/experiments/experiments.h"

static void one_queue(struct results *r, uint64_t line, unsigned n)
{
    struct model_config c = star(n, "rocc", line * GBPS, NULL);
    struct model *m;
    double reference = line == 40 ? 150 : 300;

    c.queue[0].limit = 0;
    c.queue[0].fair = "";
    c.xoff = line == 40 ? 500000 : 800000;
    c.xon = c.xoff - 3000;
    m = model_new(&c);
    model_run(m, 20 * NS_PER_MS);
    model_begin(m);
    model_run(m, 60 * NS_PER_MS);
    if (line == 40 && n == 100)
        expect_range(r, 98, 158, model_queue_mean(m, 0) / KB, "queue KB, 40G, N=100");
    else
        expect_near(r, reference, .02, model_queue_mean(m, 0) / KB, "queue KB, %uG, N=%u", (unsigned)line, n);
    expect_near(r, (double)line / n, .01, model_rate(m, 0) / 1e9, "Gbit/s of a flow, %uG, N=%u", (unsigned)line, n);
    model_free(m);
}

/* 97 flows join three: the paper has 0.4 Gbit/s within 2 ms. */
static void many_join(struct results *r)
{
    ns_t end;
    struct model_config c = star(100, "rocc", 40 * GBPS, NULL);
    struct model *m;

    c.queue[0].limit = 0;
    c.queue[0].fair = "";
    c.xoff = 500000;
    c.xon = 497000;
    for (unsigned i = 3; i < 100; i++)
        c.flow[i].start = 30 * NS_PER_MS;
    m = model_new(&c);
    model_run(m, 20 * NS_PER_MS);
    model_begin(m);
    model_run(m, 30 * NS_PER_MS);
    expect_near(r, 40. / 3, .01, model_rate(m, 0) / 1e9, "Gbit/s of a flow of three");
    for (end = 31; end < 60; end++) {
        model_begin(m);
        model_run(m, end * NS_PER_MS);
        if (model_rate(m, 0) > .38e9 && model_rate(m, 0) < .42e9)
            break;
    }
    expect_told(r, 2, (double)(end - 30),
                "97 flows begin at 40G at once here: the queue resets the fair rate to its least",
                "ms until it has 0.4 Gbit/s, after 97 more began");
    model_free(m);
}

/* D0 and D5 share an access link of 10G; D0 and D1 to D4 share a trunk of 40G. */
static void several_queues(struct results *r)
{
    struct model_config c = {.n_flow = 6, .n_queue = 2, .seed = 1};
    struct model *m;

    c.queue[0] = (struct model_queue){.link = 10 * GBPS, .fair = "ref=75000,mid=150000,max=180000"};
    c.queue[1] = (struct model_queue){.link = 40 * GBPS, .fair = ""};
    for (unsigned i = 0; i < 6; i++)
        c.flow[i] = (struct model_flow){.cc = "rocc", .link = 10 * GBPS, .path = {1}, .hops = 1};
    c.flow[0].path[0] = 0;
    c.flow[0].path[1] = 1;
    c.flow[0].hops = 2;
    c.flow[5].path[0] = 0;
    m = model_new(&c);
    model_run(m, 10 * NS_PER_MS);
    model_begin(m);
    model_run(m, 50 * NS_PER_MS);
    for (unsigned i = 0; i < 6; i++)
        expect_near(r, i == 0 || i == 5 ? 5 : 8.75, .02, model_rate(m, i) / 1e9, "Gbit/s of D%u, two bottlenecks", i);
    model_free(m);
}

static void run(struct results *r)
{
    one_queue(r, 40, 2);
    one_queue(r, 40, 10);
    one_queue(r, 40, 100);
    one_queue(r, 100, 2);
    one_queue(r, 100, 10);
    one_queue(r, 100, 100);
    many_join(r);
    several_queues(r);
}

const struct experiment e07 = {
    .name = "E07",
    .what = "RoCC, 40G and 100G, N=2 to 100, several bottlenecks",
    .source = "CoNEXT 2020: R = C/N, Q = Qref, within 2 ms; D0, D5 5 and D1-D4 "
              "8.75 Gbit/s; queue at N=100 by a model",
    .quick = true,
    .run = run,
};
