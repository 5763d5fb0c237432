/* layer 3 (workload): an open loop: flows whose sizes follow a distribution begin at random times, as many as make a
 * load. */
#include "gen/workload/workload_impl.h"

#include <stdlib.h>

#define POINTS 2048    /* of a file, at most */
#define SCALE  1000000 /* of probabilities */

/* A distribution of sizes: `bytes` or less with probability `p`, rising. */
struct sizes {
    /* What is spread evenly between two points: the reciprocals of sizes, as in a Pareto distribution; else sizes. */
    bool harmonic;
    unsigned n;
    struct size_point {
        uint64_t bytes;
        uint32_t p; /* of SCALE */
    } at[];
};

/* Distributions that are published with the HPCC simulator (traffic_gen). */
static const struct sizes websearch = {.n = 12,
                                       .at = {{0, 0},
                                              {10000, 150000},
                                              {20000, 200000},
                                              {30000, 300000},
                                              {50000, 400000},
                                              {80000, 530000},
                                              {200000, 600000},
                                              {1000000, 700000},
                                              {2000000, 800000},
                                              {5000000, 900000},
                                              {10000000, 970000},
                                              {30000000, SCALE}}};
static const struct sizes hadoop = {
    .n = 20, .at = {{0, 0},           {100, 10000},     {200, 20000},      {300, 50000},      {350, 150000},
                    {400, 200000},    {500, 300000},    {600, 400000},     {700, 500000},     {1000, 600000},
                    {2000, 670000},   {7000, 700000},   {30000, 720000},   {50000, 820000},   {80000, 870000},
                    {120000, 900000}, {300000, 950000}, {1000000, 975000}, {2000000, 990000}, {10000000, SCALE}}};
/* AliStorage2019: distributed storage of Alibaba. */
static const struct sizes storage = {.n = 9,
                                     .at = {{0, 0},
                                            {4000, 229300},
                                            {8000, 692100},
                                            {16000, 806100},
                                            {32000, 904700},
                                            {64000, 935300},
                                            {128000, 967700},
                                            {256000, 975300},
                                            {2000000, SCALE}}};
/* GoogleRPC2008: RPCs of Google. Published with hundreds of points; from 32 bytes on, those that are left out here lie
 * where evenly spread reciprocals put them. */
static const struct sizes rpc = {.harmonic = true,
                                 .n = 19,
                                 .at = {{1, 0},
                                        {3, 64883},
                                        {32, 97324},
                                        {64, 155271},
                                        {128, 351573},
                                        {256, 497901},
                                        {512, 784921},
                                        {1024, 863200},
                                        {2048, 908862},
                                        {4096, 934955},
                                        {8192, 964309},
                                        {16384, 984694},
                                        {32768, 990402},
                                        {65536, 993256},
                                        {131072, 997129},
                                        {262144, 998453},
                                        {524288, 999498},
                                        {5368784, 999967},
                                        {15158197, SCALE}}};

static const struct sizes *built_in(const struct token *t)
{
    static const struct {
        const char *name;
        const struct sizes *sizes;
    } all[] = {{"websearch", &websearch}, {"hadoop", &hadoop}, {"alistorage", &storage}, {"googlerpc", &rpc}};

    for (unsigned i = 0; i < ARRAY_LEN(all); i++)
        if (token_is(t, all[i].name))
            return all[i].sizes;
    return NULL;
}

const char *poisson_file(const char *args)
{
    const char *comma = strchr(args, ',');
    struct token t = token_of(comma ? comma + 1 : "websearch");

    return built_in(&t) ? NULL : t.p;
}

/* -- A distribution of a file: a line "BYTES PERCENT" each -- */

static bool point_line(struct workload *w, unsigned number, const struct token *t, unsigned n, struct text_error *e)
{
    struct sizes *s = w->sizes;
    char text[40];
    struct token percent = {.p = text, .col = n > 1 ? t[1].col : 1};
    uint64_t bytes;
    uint32_t ppb;

    (void)number;
    if (n != 2 || t[1].len > sizeof text - 2 || !token_u64(&t[0], &bytes) || bytes > WORKLOAD_BYTES)
        return text_fail(e, NULL, "expected 'BYTES PERCENT', at most 1G");
    memcpy(text, t[1].p, t[1].len);
    text[t[1].len] = '%';
    percent.len = t[1].len + 1;
    if (!token_ppb(&percent, &ppb) || s->n == POINTS)
        return text_fail(e, &t[1], s->n == POINTS ? "more than %u points" : "expected a percentage", POINTS);
    if (s->n && (bytes < s->at[s->n - 1].bytes || ppb / 1000 < s->at[s->n - 1].p))
        return text_fail(e, NULL, "sizes and percentages do not fall");
    s->at[s->n].bytes = bytes;
    s->at[s->n++].p = ppb / 1000;
    return true;
}

static bool read_sizes(struct workload *w, struct text_error *e)
{
    struct sizes *s = w->sizes = calloc(1, sizeof *s + POINTS * sizeof s->at[0]);

    if (!s || !workload_lines(w, e, point_line))
        return false;
    if (s->n < 2 || s->at[0].p || s->at[s->n - 1].p != SCALE)
        return text_fail(e, NULL, "the percentages are to go from 0 to 100");
    return true;
}

/* -- Drawing -- */

/* The size at `p` of the piece that ends with point `i`. */
static uint64_t size_at(const struct sizes *s, unsigned i, uint32_t p)
{
    const struct size_point *a = &s->at[i - 1], *b = &s->at[i];
    uint64_t from = p - a->p, whole = b->p - a->p, wider = b->bytes - a->bytes;

    if (s->harmonic)
        return (uint64_t)((unsigned __int128)a->bytes * b->bytes * whole / (b->bytes * whole - wider * from));
    return a->bytes + wider * from / whole;
}

/* Twice the mean, in bytes. */
static uint64_t twice_mean(const struct sizes *s)
{
    unsigned __int128 sum = 0;

    for (unsigned i = 1; i < s->n; i++)
        if (s->harmonic)
            for (uint32_t p = s->at[i - 1].p; p < s->at[i].p; p++)
                sum += 2 * size_at(s, i, p);
        else
            sum += (unsigned __int128)(s->at[i].p - s->at[i - 1].p) * (s->at[i].bytes + s->at[i - 1].bytes);
    return (uint64_t)(sum / SCALE);
}

static uint64_t draw_size(struct workload *w, const struct sizes *s)
{
    uint32_t p = prng_below(&w->prng, SCALE);
    unsigned i = 1;
    uint64_t bytes;

    while (s->at[i].p <= p)
        i++;
    bytes = size_at(s, i, p);
    return bytes ? bytes : 1;
}

/* -ln(u), u even in (0, 1], times 2^32: by the bits of log2(u), so that compilers agree. */
static uint64_t exponential(struct workload *w)
{
    uint64_t u = (prng_next(&w->prng) >> 32) + 1, log2 = 0; /* u: of 2^32 */
    unsigned shift = (unsigned)__builtin_clzll(u) - 31;     /* u << shift is in [2^32, 2^33) */

    u <<= shift;
    for (unsigned bit = 0; bit < 32; bit++) {
        u = (uint64_t)((unsigned __int128)u * u >> 32);
        log2 = log2 << 1 | u >> 33;
        u >>= u >> 33;
    }
    log2 = ((uint64_t)shift << 32) - log2;                          /* -log2(u) */
    return (uint64_t)((unsigned __int128)log2 * 2977044472u >> 32); /* ln(2) of 2^32 */
}

bool poisson_next(struct workload *w, uint64_t gap, ns_t *start, struct text_error *e)
{
    unsigned __int128 pause = (unsigned __int128)exponential(w) * gap >> 32;

    if (pause > (uint64_t)TOPO_TIME_MAX || *start + (ns_t)pause > TOPO_TIME_MAX)
        return text_fail(e, NULL, "so low a load would last longer than %lld s", (long long)(TOPO_TIME_MAX / NS_PER_S));
    *start += (ns_t)pause;
    return true;
}

uint64_t poisson_gap(uint64_t bits, uint64_t rate, uint32_t ppb)
{
    unsigned __int128 gap = (unsigned __int128)bits * NS_PER_S * 1000000000u / ((unsigned __int128)rate * ppb);

    return gap < INT64_MAX ? (uint64_t)gap : INT64_MAX;
}

/* The flows of one host: `gap` ns between them on the average. */
static bool add_flows(struct workload *w, unsigned src, const struct sizes *s, uint64_t gap, struct text_error *e)
{
    ns_t start = 0;

    for (uint64_t i = 0; i < w->c.iters; i++) {
        unsigned dst = prng_below(&w->prng, w->n - 1);
        struct workload_flow f = workload_flow_between(w, src, dst + (dst >= src));
        if (!poisson_next(w, gap, &start, e))
            return false;
        f.start = start;
        f.count = 1;
        f.own = true;
        f.bytes = draw_size(w, s);
        if (!workload_flow(w, &f, e))
            return false;
    }
    return true;
}

bool poisson_flows(struct workload *w, const char *args, struct text_error *e)
{
    struct token t = token_of(args), load, name = token_of("websearch");
    uint32_t ppb;
    uint64_t bytes;
    const struct sizes *s;

    if (!token_cut(&t, ',', &load, &name))
        name = token_of("websearch");
    if (!token_ppb(&load, &ppb) || !ppb)
        return text_fail(e, &load, "expected a load, such as 30%%, and perhaps a distribution: 30%%,hadoop");
    s = built_in(&name);
    if (!s) {
        if (!read_sizes(w, e))
            return false;
        s = w->sizes;
    }
    bytes = twice_mean(s);
    for (unsigned h = 0; h < w->n; h++)
        if (!add_flows(w, h, s, poisson_gap(bytes * 4, fabric_host_rate(w->s->fabric, h), ppb), e))
            return false;
    return true;
}
