/* layer 5 (test): runs experiments, and prints a row for each value: experiment, value, expected, found, verdict. For
 * scripts: `experiments --fixed-point N BYTES` prints DCQCN's fixed point at 40G with so many flows and such packets,
 * and `experiments --two-links N BYTES` the rates of a flow over two links, of one over the first, and of N over the
 * second. */
#include "tests/experiments/experiments.h"
#include "tests/experiments/fixed_point.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct results {
    const struct experiment *e;
    unsigned wrong, right;
};

static void row(struct results *r, const char *expected, double found, const char *verdict, const char *fmt, va_list ap)
{
    char label[120];

    vsnprintf(label, sizeof label, fmt, ap);
    printf("%s\t%s\t%s\t%.5g\t%s\n", r->e->name, label, expected, found, verdict);
    fflush(stdout);
}

static void verdict(struct results *r, bool good)
{
    r->wrong += !good;
    r->right += good;
}

void expect_near(struct results *r, double expected, double tolerance, double found, const char *fmt, ...)
{
    bool good = found >= expected - expected * tolerance && found <= expected + expected * tolerance;
    char text[64];
    va_list ap;

    snprintf(text, sizeof text, "%.5g +-%g %%", expected, tolerance * 100);
    va_start(ap, fmt);
    row(r, text, found, good ? "ok" : "WRONG", fmt, ap);
    va_end(ap);
    verdict(r, good);
}

void expect_range(struct results *r, double least, double most, double found, const char *fmt, ...)
{
    bool good = found >= least && found <= most;
    char text[64];
    va_list ap;

    snprintf(text, sizeof text, "%.5g to %.5g", least, most);
    va_start(ap, fmt);
    row(r, text, found, good ? "ok" : "WRONG", fmt, ap);
    va_end(ap);
    verdict(r, good);
}

void expect_told(struct results *r, double expected, double found, const char *why, const char *fmt, ...)
{
    char text[64], told[200];
    va_list ap;

    snprintf(text, sizeof text, "%.5g", expected);
    snprintf(told, sizeof told, "told: %s", why);
    va_start(ap, fmt);
    row(r, text, found, told, fmt, ap);
    va_end(ap);
}

struct model_config star(unsigned n, const char *cc, uint64_t link, const char *marking)
{
    struct model_config c = {.n_flow = n, .n_queue = 1, .seed = 1};

    c.queue[0] = (struct model_queue){.link = link, .limit = 4000000, .marking = marking};
    for (unsigned i = 0; i < n; i++)
        c.flow[i] = (struct model_flow){.cc = cc, .link = link};
    return c;
}

static const struct experiment *const all[] = {&e01, &e02, &e02b, &e03,  &e04,  &e05,
                                               &e06, &e07, &e08a, &e08b, &e08c, NULL};

static bool chosen(const struct experiment *e, int argc, char **argv)
{
    bool quick = argc > 1 && strcmp(argv[1], "--quick") == 0;

    if (argc == 1 || (quick && argc == 2))
        return !quick || e->quick;
    for (int i = 1 + quick; i < argc; i++)
        if (strcmp(argv[i], e->name) == 0)
            return true;
    return false;
}

int main(int argc, char **argv)
{
    unsigned wrong = 0, right = 0;

    if (argc == 4 && strcmp(argv[1], "--two-links") == 0) {
        struct two_links x = two_links(40e9, atof(argv[2]), 40e6, atof(argv[3]));
        printf("both %.6g first %.6g second %.6g\n", x.both, x.first, x.second);
        return 0;
    }
    if (argc == 4 && strcmp(argv[1], "--fixed-point") == 0) {
        struct fixed_point x = fixed_point(40e9, atof(argv[2]), 40e6, atof(argv[3]));
        printf("p %.6g queue %.6g alpha %.6g cnps %.6g\n", x.p, x.queue, x.alpha, x.cnps);
        return 0;
    }
    for (unsigned i = 0; all[i]; i++) {
        struct results r = {.e = all[i]};
        if (!chosen(all[i], argc, argv))
            continue;
        printf("# %s\t%s\t[%s]\n", all[i]->name, all[i]->what, all[i]->source);
        all[i]->run(&r);
        wrong += r.wrong;
        right += r.right;
    }
    printf("%u passed, %u failed, 0 skipped\n", right, wrong);
    return wrong || !right;
}
