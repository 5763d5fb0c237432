/* layer 3 (conform): the battery: tests read from text, and selected by their ids. */
#include "gen/conform/conform.h"

#include <fnmatch.h>
#include <stdio.h>

#define EACH_MAX    100000 /* a number behind "each" is below */
#define SNAPLEN_MIN 128    /* Ethernet with a tag, IPv6, UDP, BTH and the extended headers behind it */

extern const char conform_battery_text[]; /* battery_text.S */

const char *conform_text(void)
{
    return conform_battery_text;
}

static const char *const levels[CONFORM_LEVELS] = {"M", "S", "I"};

const char *conform_level_str(enum conform_level l)
{
    return (unsigned)l < CONFORM_LEVELS ? levels[l] : "?";
}

bool conform_matches(const char *id, const char *pattern)
{
    size_t n = strlen(pattern);

    return fnmatch(pattern, id, 0) == 0 || (strncmp(id, pattern, n) == 0 && id[n] == '/');
}

/* The first word of *rest; *rest becomes the text after it. */
static struct token word(struct token *rest)
{
    struct token w = *rest;

    w.len = (uint32_t)strcspn(w.p, " \n");
    w.len = w.len < rest->len ? w.len : rest->len;
    rest->p += w.len;
    rest->len -= w.len;
    while (rest->len && *rest->p == ' ') {
        rest->p++;
        rest->len--;
    }
    return w;
}

static bool bad(struct buf *err, unsigned line, const char *what)
{
    buf_printf(err, "line %u: %s", line, what);
    return false;
}

/* Whether an id is one of that group; empty: there are no groups. */
static bool is_of(const struct token *group, const char *id)
{
    return !group->len || (strncmp(id, group->p, group->len) == 0 && id[group->len] == '/');
}

/* "test ID LEVEL TITLE": `rest` is what follows "test". */
static bool begin_test(struct conform_battery *b, const struct token *group, struct token rest, unsigned line,
                       struct buf *err)
{
    struct conform_test *t = &b->test[b->n];
    struct token id = word(&rest), level = word(&rest);

    if (b->n == CONFORM_TESTS)
        return bad(err, line, "too many tests");
    *t = (struct conform_test){.level = CONFORM_LEVELS, .title = rest};
    snprintf(t->id, sizeof t->id, "%.*s", (int)id.len, id.p);
    for (unsigned i = 0; i < CONFORM_LEVELS; i++)
        if (token_is(&level, levels[i]))
            t->level = (uint8_t)i;
    if (!id.len || id.len >= sizeof t->id || !strchr(t->id, '/') || t->level == CONFORM_LEVELS || !rest.len)
        return bad(err, line, "expected: test GROUP/NAME M|S|I TITLE");
    if (!is_of(group, t->id))
        return bad(err, line, "the test is of another group");
    for (unsigned i = 0; i < b->n; i++)
        if (strcmp(b->test[i].id, t->id) == 0)
            return bad(err, line, "there is a test of this id already");
    b->n++;
    return true;
}

static bool take_rules(struct conform_test *t, struct token rest, unsigned line, struct buf *err)
{
    while (rest.len) {
        struct token w = word(&rest);
        char id[16];
        snprintf(id, sizeof id, "%.*s", (int)w.len, w.p);
        if (t->n_rules == CONFORM_RULES || rule_find(id) == RULE_NONE)
            return bad(err, line, "rules: too many, or one that there is not");
        t->rules[t->n_rules++] = rule_find(id);
    }
    return true;
}

static const char *const peers[CONFORM_PEERS] = {"perftest", "pingpong", "rping"};

int conform_peer_find(const char *name)
{
    for (int i = 0; i < CONFORM_PEERS; i++)
        if (strcmp(name, peers[i]) == 0)
            return i;
    return -1;
}

static bool take_peers(struct conform_test *t, struct token rest, unsigned line, struct buf *err)
{
    while (rest.len) {
        struct token w = word(&rest);
        unsigned i = 0;
        while (i < CONFORM_PEERS && !token_is(&w, peers[i]))
            i++;
        if (i == CONFORM_PEERS)
            return bad(err, line, "peers: expected perftest, pingpong or rping");
        t->peers |= (uint8_t)(1u << i);
    }
    return true;
}

static bool take_measure(struct conform_test *t, struct token rest, unsigned line, struct buf *err)
{
    struct token kind = word(&rest), metric = word(&rest);
    int k = measure_find(&kind);

    if (k < 0 || !metric.len || rest.len || t->n_measures == CONFORM_MEASURES)
        return bad(err, line, "expected: measure KIND METRIC, or there are too many");
    t->measures[t->n_measures++] = (struct measure){.kind = (uint8_t)k, .metric = metric};
    return true;
}

static bool take_ratio(struct conform_test *t, struct token rest, unsigned line, struct buf *err)
{
    struct conform_ratio r = {.name = word(&rest)};
    struct token bound, number;
    uint64_t permille = 0;

    r.of = word(&rest);
    r.over = word(&rest);
    bound = word(&rest);
    number = word(&rest);
    if (!r.over.len || rest.len || t->n_ratios == CONFORM_RATIOS ||
        (bound.len && (!(token_is(&bound, "least") || token_is(&bound, "most")) || !token_u64(&number, &permille) ||
                       permille < 1000 || permille > UINT32_MAX)))
        return bad(err, line,
                   "expected: ratio METRIC OF OVER [least|most PERMILLE], from 1000 on, or there are too many");
    *(token_is(&bound, "most") ? &r.most : &r.least) = (uint32_t)permille;
    t->ratios[t->n_ratios++] = r;
    return true;
}

static bool take_snaplen(struct conform_test *t, struct token rest, unsigned line, struct buf *err)
{
    uint64_t n;

    if (!token_u64(&rest, &n) || n < SNAPLEN_MIN || n > UINT16_MAX)
        return bad(err, line, "snaplen: expected a number of bytes that all headers fit in");
    t->snaplen = (uint32_t)n;
    return true;
}

/* A line before the scenario of a test. 1: it is one, 0: it is none, -1: something is wrong with it. */
static int take_head(struct conform_test *t, const struct token *w, struct token rest, unsigned line, struct buf *err)
{
    static const struct {
        const char *name;
        bool (*take)(struct conform_test *, struct token, unsigned, struct buf *);
    } heads[] = {{"rules", take_rules},
                 {"peers", take_peers},
                 {"measure", take_measure},
                 {"ratio", take_ratio},
                 {"snaplen", take_snaplen}};

    if (token_is(w, "anchor")) {
        t->anchor = rest;
        return 1;
    }
    if ((token_is(w, "slow") || token_is(w, "long")) && !rest.len) {
        t->slow = true;
        t->is_long |= token_is(w, "long");
        return 1;
    }
    for (unsigned i = 0; i < ARRAY_LEN(heads); i++)
        if (token_is(w, heads[i].name))
            return heads[i].take(t, rest, line, err) ? 1 : -1;
    return 0;
}

/* What the text is in the middle of. */
struct place {
    struct token group;       /* whose tests these are; empty: no group was named yet */
    unsigned line;            /* of this group, from 1 */
    struct conform_test *now; /* NULL: before the first test of the group */
};

/* Take a line, `n` bytes without its newline. */
static bool take_line(struct conform_battery *b, struct place *at, const char *text, size_t n, struct buf *err)
{
    struct token rest = {.p = text, .len = (uint32_t)n}, all = rest, w = word(&rest);
    struct conform_test *t = at->now;
    int head;

    at->line++;
    if (token_is(&w, "group")) {
        *at = (struct place){.group = rest, .line = 1};
        return rest.len || bad(err, 1, "expected: group NAME");
    }
    if (token_is(&w, "test")) {
        at->now = &b->test[b->n];
        return begin_test(b, &at->group, rest, at->line, err);
    }
    if (!t)
        return !all.len || *all.p == '#' || bad(err, at->line, "expected a test");
    head = t->script.len ? 0 : take_head(t, &w, rest, at->line, err);
    if (head)
        return head > 0;
    t->script.p = t->script.len ? t->script.p : text;
    t->script.len = (uint32_t)(text + n + (text[n] == '\n') - t->script.p);
    return true;
}

bool conform_parse(struct conform_battery *b, const char *text, struct buf *err)
{
    struct place at = {.line = 0};

    b->n = 0;
    for (size_t n; *text; text += n + (text[n] == '\n')) {
        n = strcspn(text, "\n");
        if (take_line(b, &at, text, n, err))
            continue;
        if (at.group.len)
            buf_printf(err, ", in group %.*s", (int)at.group.len, at.group.p);
        return false;
    }
    return b->n || bad(err, at.line, "there is no test");
}

/* --- Repeated lines --------------------------------------------------------------------------- */

/* "each N-M". */
static bool is_each(const char *line, size_t n, uint64_t *from, uint64_t *to)
{
    struct token rest = {.p = line, .len = (uint32_t)n}, w = word(&rest), a, b;

    return token_is(&w, "each") && token_cut(&rest, '-', &a, &b) && token_u64(&a, from) && token_u64(&b, to) &&
           *to < EACH_MAX;
}

/* "{}" or "{+N}" in `len` bytes of text: how long it is, and N (0 without) in *more; 0: it is neither. */
static size_t number_mark(const char *text, size_t len, uint64_t *more)
{
    const char *end = *text == '{' ? memchr(text, '}', len) : NULL;
    struct token n = {.p = text + 2, .len = end > text + 2 ? (uint32_t)(end - text - 2) : 0};

    *more = 0;
    return end == text + 1 || (n.len && text[1] == '+' && token_u64(&n, more)) ? (size_t)(end + 1 - text) : 0;
}

/* "{x?A|B|C}" in `len` bytes of text: how long it is, with the choice that is drawn for this number and letter
 * appended, always the same one; 0: it is none. */
static size_t put_choice(struct buf *b, const char *text, size_t len, uint64_t number)
{
    const char *end = len > 3 && *text == '{' && text[2] == '?' ? memchr(text, '}', len) : NULL;
    struct token all = {.p = text + 3, .len = end ? (uint32_t)(end - text - 3) : 0}, one;
    struct prng prng;
    unsigned n = 1;

    if (!end)
        return 0;
    for (uint32_t i = 0; i < all.len; i++)
        n += all.p[i] == '|';
    prng_seed(&prng, number << 8 | (uint8_t)text[1]);
    for (uint64_t left = prng_below(&prng, n) + 1; left; left--) {
        struct token rest = all;
        if (!token_cut(&rest, '|', &one, &all))
            one = rest;
    }
    buf_mem(b, one.p, one.len);
    return (size_t)(end + 1 - text);
}

/* Append lines with a number in place of each "{}", with N more for "{+N}", and with one of those in "{x?A|B|C}". */
static void put_lines(struct buf *b, const char *text, size_t len, uint64_t number)
{
    uint64_t more;

    for (size_t i = 0, n; i < len; i += n ? n : 1)
        if ((n = number_mark(text + i, len - i, &more)) != 0)
            buf_printf(b, "%llu", (unsigned long long)(number + more));
        else if ((n = put_choice(b, text + i, len - i, number)) == 0)
            buf_char(b, text[i]);
}

void conform_script(const struct conform_test *t, struct buf *b)
{
    const char *p = t->script.p, *end = p + t->script.len;

    while (p < end) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        size_t n = nl ? (size_t)(nl + 1 - p) : (size_t)(end - p);
        uint64_t from, to;
        const char *last = nl && is_each(p, n - 1, &from, &to) ? memmem(p, (size_t)(end - p), "\nend\n", 5) : NULL;
        if (!last) {
            buf_mem(b, p, n);
            p += n;
            continue;
        }
        for (uint64_t i = from; i <= to; i++)
            put_lines(b, p + n, (size_t)(last + 1 - (p + n)), i);
        p = last + 5;
    }
}
