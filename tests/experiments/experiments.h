/* layer 5 (test): the experiments that run in the packet model: each states what it expects, and where that is from. */
#ifndef RDMATRACE_TESTS_EXPERIMENTS_H
#define RDMATRACE_TESTS_EXPERIMENTS_H

#include "tests/experiments/model.h"

#define KB   1000.0
#define GBPS UINT64_C(1000000000)

/* Where results go. */
struct results;

struct experiment {
    const char *name;   /* "E02b" */
    const char *what;   /* one line */
    const char *source; /* of what is expected */
    bool quick;         /* takes about a second of a core, or less */
    void (*run)(struct results *r);
};

/* `found` is to be within `tolerance` (0.1: 10 %) of `expected`. */
void expect_near(struct results *r, double expected, double tolerance, double found, const char *fmt, ...)
    PRINTF_LIKE(5, 6);
/* `found` is to be from `least` to `most`. */
void expect_range(struct results *r, double least, double most, double found, const char *fmt, ...) PRINTF_LIKE(5, 6);
/* `found` differs from `expected`, or might: `why` says why that is not a failure. */
void expect_told(struct results *r, double expected, double found, const char *why, const char *fmt, ...)
    PRINTF_LIKE(5, 6);

/* `n` flows with `cc` through one queue, all links of `link` bit/s. `marking` as in struct model_queue. */
struct model_config star(unsigned n, const char *cc, uint64_t link, const char *marking);

extern const struct experiment e01, e02, e02b, e03, e04, e05, e06, e07, e08a, e08b, e08c;

#endif
