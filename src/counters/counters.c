/* layer 2b (counters): counters of adapters: names, and values in texts. */
#include "src/counters/counters.h"

#define GAP_MAX 32 /* characters between a name and its value: colons, quotes, spaces, an end of line */

const struct counter_info counter_table[] = {
#define COUNTER(driver, name, concept, bits, relation)                                                                 \
    {name, DRIVER_##driver, COUNTED_##concept, bits, RELATION_##relation},
#include "src/counters/counters.def"
#undef COUNTER
    {NULL, 0, 0, 0, 0},
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

const struct counter_info *counter_find(const char *s, size_t len)
{
    const struct counter_info *best = NULL;
    size_t longest = 0;

    for (const struct counter_info *c = counter_table; c->name; c++) {
        size_t n = strlen(c->name);
        if (n > longest && n <= len && memcmp(c->name, s, n) == 0 && (n == len || !is_word(s[n]))) {
            best = c;
            longest = n;
        }
    }
    return best;
}

/* The number after a name and separators; NULL: there is none. *v is set. */
static const char *number_after(const char *s, const char *end, uint64_t *v)
{
    const char *stop = end - s > GAP_MAX ? s + GAP_MAX : end;

    while (s < stop && !is_word(*s))
        s++;
    if (s == stop || !is_digit(*s))
        return NULL;
    for (*v = 0; s < end && is_digit(*s); s++)
        *v = *v * 10 + (uint64_t)(*s - '0');
    return s < end && is_word(*s) ? NULL : s;
}

bool counter_next(const char **s, const char *end, struct counter_value *v)
{
    bool inside = false;

    for (; *s < end; ++*s) {
        const struct counter_info *c = inside || !is_word(**s) ? NULL : counter_find(*s, (size_t)(end - *s));
        const char *behind = c ? number_after(*s + strlen(c->name), end, &v->value) : NULL;
        inside = is_word(**s);
        if (!behind)
            continue;
        v->counter = c;
        *s = behind;
        return true;
    }
    return false;
}
