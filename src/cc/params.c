/* layer 2 (cc): parameters as text: parsing, ranges, errors. */
#include "src/cc/params.h"

#define DECIMALS 9
#define BILLION  UINT64_C(1000000000)

/* Digits with up to nine decimals; in 10^-9. */
static bool decimal(const struct token *t, uint64_t *v)
{
    uint64_t n = 0;
    unsigned digits = 0, after = 0;
    bool point = false;

    for (uint32_t i = 0; i < t->len; i++) {
        char c = t->p[i];
        if (c == '.' && !point) {
            point = true;
            continue;
        }
        if (c < '0' || c > '9' || after == DECIMALS || n > BILLION)
            return false;
        n = n * 10 + (unsigned)(c - '0');
        digits++;
        after += point;
    }
    for (; after < DECIMALS; after++) {
        if (n > UINT64_MAX / 10)
            return false;
        n *= 10;
    }
    *v = n;
    return digits > 0;
}

static bool share(const struct token *t, uint64_t *v)
{
    struct token a, b, number = *t;
    uint64_t n, of;
    unsigned __int128 whole;

    if (token_cut(t, '/', &a, &b)) {
        if (!token_u64(&a, &n) || !token_u64(&b, &of) || !of || n > UINT32_MAX || of > UINT32_MAX)
            return false;
        *v = n * CC_ONE / of;
        return true;
    }
    of = BILLION;
    if (number.len && number.p[number.len - 1] == '%') {
        number.len--;
        of *= 100;
    }
    if (!decimal(&number, &n))
        return false;
    whole = ((unsigned __int128)n * CC_ONE + of / 2) / of;
    *v = (uint64_t)whole;
    return whole <= UINT64_MAX;
}

static bool word(const char *words, const struct token *t, uint64_t *v)
{
    struct token rest = token_of(words), first;

    for (*v = 0;; (*v)++) {
        bool more = token_cut(&rest, ',', &first, &rest);
        const struct token *w = more ? &first : &rest;
        if (w->len == t->len && memcmp(w->p, t->p, t->len) == 0)
            return true;
        if (!more)
            return false;
    }
}

/* A value of the parameter's form, whatever its range. */
static bool of_form(const struct cc_param *p, const struct token *t, uint64_t *v)
{
    ns_t time = 0;

    switch (p->form) {
    case CC_TIME:
        if (!token_time(t, &time) || time < 0)
            return false;
        *v = (uint64_t)time;
        return true;
    case CC_RATE:
        return token_rate(t, v);
    case CC_BYTES:
        return token_size(t, v);
    case CC_SHARE:
        return share(t, v);
    case CC_WORD:
        return word(p->max, t, v);
    default:
        return token_u64(t, v);
    }
}

static uint64_t own(const struct cc_param *p, const char *text)
{
    struct token t = token_of(text);
    uint64_t v = 0;

    of_form(p, &t, &v);
    return v;
}

void cc_params_default(const struct cc_param *table, uint64_t *v)
{
    for (unsigned i = 0; table[i].name; i++)
        v[i] = own(&table[i], table[i].def);
}

int cc_param_find(const struct cc_param *table, const struct token *name)
{
    for (int i = 0; table[i].name; i++)
        if (token_is(name, table[i].name))
            return i;
    return -1;
}

const char *cc_param_unit(const struct cc_param *p)
{
    static const char *const units[] = {
        [CC_TIME] = "time", [CC_RATE] = "bit/s", [CC_BYTES] = "bytes", [CC_SHARE] = "share", [CC_WORD] = "word"};

    return p->form == CC_COUNT ? p->unit ? p->unit : "number" : units[p->form];
}

bool cc_param_parse(const struct cc_param *p, const struct token *value, uint64_t *v, struct text_error *e)
{
    static const char *const what[] = {[CC_COUNT] = "a number",
                                       [CC_TIME] = "a time",
                                       [CC_RATE] = "bit/s",
                                       [CC_BYTES] = "bytes",
                                       [CC_SHARE] = "a share"};
    bool good = of_form(p, value, v);

    if (p->form == CC_WORD)
        return good || text_fail(e, value, "%s=%.*s: expected one of %s", p->name, (int)value->len, value->p, p->max);
    if (good && *v >= own(p, p->min) && *v <= own(p, p->max))
        return true;
    return text_fail(e, value, "%s=%.*s: expected %s from %s to %s%s%s", p->name, (int)value->len, value->p,
                     what[p->form], p->min, p->max, p->unit ? " " : "", p->unit ? p->unit : "");
}

/* "PARAM=VALUE" */
static bool parse_one(const struct cc_params *tables, unsigned n, const struct token *t, struct text_error *e)
{
    struct token key, value;
    struct text_nearest near;

    if (!token_key(t, &key, &value))
        return text_fail(e, t, "'%.*s': expected PARAM=VALUE", (int)t->len, t->p);
    near = text_nearest_to(key.p, key.len);
    for (unsigned i = 0; i < n; i++) {
        int at = cc_param_find(tables[i].table, &key);
        if (at >= 0)
            return cc_param_parse(&tables[i].table[at], &value, &tables[i].v[at], e);
        for (unsigned k = 0; tables[i].table[k].name; k++)
            text_nearest_try(&near, tables[i].table[k].name);
    }
    return text_fail(e, &key, "there is no parameter '%.*s'%s%s%s", (int)key.len, key.p, near.name ? "; is '" : "",
                     near.name ? near.name : "", near.name ? "' meant?" : "");
}

bool cc_params_parse(const struct cc_params *tables, unsigned n, const struct token *text, struct text_error *e)
{
    struct token rest = *text, first;

    while (token_cut(&rest, ',', &first, &rest))
        if (!parse_one(tables, n, &first, e))
            return false;
    return parse_one(tables, n, &rest, e);
}
