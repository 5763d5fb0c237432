/* layer 2b (counters): counters of adapters: names, and values in texts. */
#include "src/counters/counters.h"

#define GAP_MAX    32   /* characters between a name and its value: colons, quotes, spaces, an end of line */
#define LABELS_MAX 1024 /* characters of labels */

const struct counter_info counter_table[] = {
#define COUNTER(driver, name, concept, bits, relation)                                                                 \
    {name, DRIVER_##driver, COUNTED_##concept, bits, RELATION_##relation},
#define EXPORTED(theirs, name)
#include "src/counters/counters.def"
#undef COUNTER
#undef EXPORTED
    {NULL, 0, 0, 0, 0},
};
_Static_assert(ARRAY_LEN(counter_table) <= COUNTERS_MAX, "readings have room for each");

#define EXPORTER "node_infiniband_" /* begins the names of node_exporter */

static const struct {
    const char *theirs, *name;
} exported[] = {
#define COUNTER(driver, name, concept, bits, relation)
#define EXPORTED(theirs, name) {theirs, name},
#include "src/counters/counters.def"
#undef COUNTER
#undef EXPORTED
};

const char *counter_driver_str(enum counter_driver d)
{
    static const char *const names[DRIVERS] = {
        [DRIVER_MLX5] = "mlx5", [DRIVER_BNXT_RE] = "bnxt_re", [DRIVER_IRDMA] = "irdma", [DRIVER_RXE] = "rxe",
        [DRIVER_MANA] = "mana", [DRIVER_HNS] = "hns",         [DRIVER_EFA] = "efa"};

    return names[d];
}

/* --- Texts ------------------------------------------------------------------------------------ */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_';
}

/* Whether `name`, where # is a digit, begins at `s` and ends there: its length; 0: it does not. */
static size_t name_at(const char *name, const char *s, size_t len)
{
    size_t n = 0;

    for (; name[n]; n++)
        if (n == len || (name[n] == '#' ? !is_digit(s[n]) : name[n] != s[n]))
            return 0;
    return n < len && is_word(s[n]) ? 0 : n;
}

/* The counter of mlx5 that node_exporter exports by this name. */
static const struct counter_info *exported_at(const char *s, size_t len, size_t *n)
{
    size_t skip = sizeof EXPORTER - 1, own;

    for (size_t i = 0; len > skip && i < ARRAY_LEN(exported); i++) {
        *n = name_at(exported[i].theirs, s + skip, len - skip) + skip;
        if (*n > skip)
            return counter_find(exported[i].name, strlen(exported[i].name), &own);
    }
    return NULL;
}

const struct counter_info *counter_find(const char *s, size_t len, size_t *n)
{
    const struct counter_info *best = NULL;

    if (len > sizeof EXPORTER && memcmp(s, EXPORTER, sizeof EXPORTER - 1) == 0)
        return exported_at(s, len, n);
    *n = 0;
    for (const struct counter_info *c = counter_table; c->name; c++) {
        size_t at = name_at(c->name, s, len);
        if (at > *n) {
            best = c;
            *n = at;
        }
    }
    return best;
}

/* Behind labels, as of Prometheus: {device="mlx5_0",port="1"}. */
static const char *behind_labels(const char *s, const char *end)
{
    size_t len = (size_t)(end - s < LABELS_MAX ? end - s : LABELS_MAX);
    const char *close = len && *s == '{' ? memchr(s, '}', len) : NULL;

    return close ? close + 1 : s;
}

/* Multiply *v by ten, `by` times, or divide. False: it is too large. */
static bool shift(uint64_t *v, int by)
{
    for (; by > 0; by--)
        if (__builtin_mul_overflow(*v, 10, v))
            return false;
    for (; by < 0 && *v; by++)
        *v /= 10;
    return true;
}

/* The digits at `s`, which *v goes on with; behind them. NULL: they are too many. */
static const char *digits(const char *s, const char *end, uint64_t *v)
{
    for (; s < end && is_digit(*s); s++)
        if (__builtin_mul_overflow(*v, 10, v) || __builtin_add_overflow(*v, (uint64_t)(*s - '0'), v))
            return NULL;
    return s;
}

/* A number such as 17 or 1.7e+06 at `s`; behind it. NULL: it is none. */
static const char *number_at(const char *s, const char *end, uint64_t *v)
{
    const char *dot;
    uint64_t exponent = 0;
    int by = 0;

    *v = 0;
    s = digits(s, end, v);
    if (s && end - s > 1 && *s == '.' && is_digit(s[1])) {
        dot = s + 1;
        s = digits(dot, end, v);
        by = s ? (int)(dot - s) : 0;
    }
    if (s && end - s > 2 && *s == 'e' && s[1] == '+' && is_digit(s[2])) {
        s = digits(s + 2, end, &exponent);
        by += exponent < 64 ? (int)exponent : 64;
    }
    return s && shift(v, by) ? s : NULL;
}

/* The number after a name, labels and separators; NULL: there is none. *v is set. */
static const char *number_after(const char *s, const char *end, uint64_t *v)
{
    const char *stop;

    s = behind_labels(s, end);
    stop = end - s > GAP_MAX ? s + GAP_MAX : end;
    while (s < stop && !is_word(*s))
        s++;
    if (s == stop || !is_digit(*s))
        return NULL;
    s = number_at(s, end, v);
    return !s || (s < end && is_word(*s)) ? NULL : s;
}

bool counter_next(const char **s, const char *end, struct counter_value *v)
{
    bool inside = false;

    for (; *s < end; ++*s) {
        size_t n = 0;
        const struct counter_info *c = inside || !is_word(**s) ? NULL : counter_find(*s, (size_t)(end - *s), &n);
        const char *behind = c ? number_after(*s + n, end, &v->value) : NULL;
        inside = is_word(**s);
        if (!behind)
            continue;
        v->counter = c;
        *s = behind;
        return true;
    }
    return false;
}

/* --- Readings --------------------------------------------------------------------------------- */

/* The counter of this name that `driver` has; else `c`. */
static const struct counter_info *of_driver(const struct counter_info *c, enum counter_driver driver)
{
    for (const struct counter_info *o = counter_table; o->name; o++)
        if (o->driver == driver && strcmp(o->name, c->name) == 0)
            return o;
    return c;
}

/* True if `ethtool -S` gives all that passes an interface by this name, RDMA or not. */
static bool is_of_interface(const struct counter_info *c)
{
    static const char *const names[] = {"tx_packets", "rx_packets", "tx_bytes", "rx_bytes"};

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(names[i], c->name) == 0)
            return true;
    return false;
}

/* The driver that knows most names of a text, but for those of interfaces; the first of several. */
static enum counter_driver driver_of(const char *s, const char *end)
{
    unsigned known[DRIVERS] = {0}, best = 0;
    struct counter_value v;

    while (counter_next(&s, end, &v))
        for (unsigned d = 0; d < DRIVERS && !is_of_interface(v.counter); d++)
            known[d] += of_driver(v.counter, (enum counter_driver)d)->driver == d;
    for (unsigned d = 1; d < DRIVERS; d++)
        best = known[d] > known[best] ? d : best;
    return (enum counter_driver)best;
}

bool counter_read(struct counter_reading *r, const char *text, size_t len)
{
    const char *s = text, *end = text + len;
    struct counter_value v;
    bool any = false;

    *r = (struct counter_reading){.have = {false}};
    for (enum counter_driver d = driver_of(text, end); counter_next(&s, end, &v);) {
        const struct counter_info *c = of_driver(v.counter, d);
        size_t i = (size_t)(c - counter_table);
        if (c->driver != d && is_of_interface(c))
            continue;
        r->have[i] = any = true;
        r->value[i] += v.value;
    }
    return any;
}

static bool is_read(const struct counter_reading *before, const struct counter_reading *after, size_t i)
{
    return after->have[i] && (!before || before->have[i]);
}

/* How exact the best counters of a concept are. */
static enum counter_relation best_of(const struct counter_reading *before, const struct counter_reading *after,
                                     enum counter_concept concept)
{
    enum counter_relation best = RELATION_LOCAL;

    for (size_t i = 0; counter_table[i].name; i++)
        if (counter_table[i].concept == concept && is_read(before, after, i) && counter_table[i].relation < best)
            best = (enum counter_relation)counter_table[i].relation;
    return best;
}

void counter_added(const struct counter_reading *before, const struct counter_reading *after,
                   enum counter_concept concept, struct counter_sum *sum)
{
    enum counter_relation best = best_of(before, after, concept);

    *sum = (struct counter_sum){.exact = best <= RELATION_AGAIN};
    for (size_t i = 0; counter_table[i].name; i++) {
        const struct counter_info *c = &counter_table[i];
        uint64_t mask = c->bits == 32 ? UINT32_MAX : UINT64_MAX;
        bool counts = c->relation == best || (best == RELATION_ABOVE && c->relation < RELATION_LOCAL);
        if (c->concept != concept || !is_read(before, after, i) || !counts)
            continue;
        sum->added += (after->value[i] - (before ? before->value[i] : 0)) & mask;
        buf_printf(&sum->names, "%s%s", sum->names.len ? " + " : "", c->name);
    }
}
