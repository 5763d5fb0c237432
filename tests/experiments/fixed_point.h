/* layer 5 (test): DCQCN's fixed point with the paper's parameters and RED marks, by the equations of CoNEXT 2016. */
#ifndef RDMATRACE_TESTS_FIXED_POINT_H
#define RDMATRACE_TESTS_FIXED_POINT_H

struct fixed_point {
    double p;     /* share of packets that are marked; above .01 RED has no such point */
    double queue; /* bytes, with marks from 5 KB on, 1 % at 200 KB */
    double alpha;
    double cnps; /* of a flow, in a second */
};
/* `n` flows on a link of `link` bit/s with packets of `packet` bytes; `ai`: bit/s of an additive increase. */
struct fixed_point fixed_point(double link, double n, double ai, double packet);

/* Rates of flows over two links in a row, bit/s. */
struct two_links {
    double both;   /* of the one flow that takes both, and is marked at either */
    double first;  /* of the one that takes only the first one */
    double second; /* of each of those that take only the second one */
};
/* The same for a flow over both of two links of `link` bit/s, another over the first and `n` over the second. */
struct two_links two_links(double link, double n, double ai, double packet);

#endif
