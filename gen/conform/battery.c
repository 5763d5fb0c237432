/* layer 3 (conform): the battery: tests read from text, and selected by their ids. */
#include "gen/conform/conform.h"

#include <fnmatch.h>
#include <stdio.h>

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

/* "test ID LEVEL TITLE": `rest` is what follows "test". */
static bool begin_test(struct conform_battery *b, struct token rest, unsigned line, struct buf *err)
{
    struct conform_test *t = &b->test[b->n];
    struct token id = word(&rest), level = word(&rest);

    if (b->n == CONFORM_TESTS)
        return bad(err, line, "too many tests");
    *t = (struct conform_test){.level = CONFORM_LEVELS, .title = rest, .line = line};
    snprintf(t->id, sizeof t->id, "%.*s", (int)id.len, id.p);
    for (unsigned i = 0; i < CONFORM_LEVELS; i++)
        if (token_is(&level, levels[i]))
            t->level = (uint8_t)i;
    if (!id.len || id.len >= sizeof t->id || !strchr(t->id, '/') || t->level == CONFORM_LEVELS || !rest.len)
        return bad(err, line, "expected: test GROUP/NAME M|S|I TITLE");
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

bool conform_parse(struct conform_battery *b, const char *text, struct buf *err)
{
    unsigned line = 0;

    b->n = 0;
    for (size_t n; *text; text += n + (text[n] == '\n')) {
        struct token rest = {.p = text, .len = (uint32_t)(n = strcspn(text, "\n"))}, all = rest, w = word(&rest);
        struct conform_test *t = b->n ? &b->test[b->n - 1] : NULL;
        line++;
        if (token_is(&w, "test")) {
            if (!begin_test(b, rest, line, err))
                return false;
        } else if (!t) {
            if (all.len && *all.p != '#')
                return bad(err, line, "expected a test");
        } else if (token_is(&w, "anchor") && !t->script.len) {
            t->anchor = rest;
        } else if (token_is(&w, "rules") && !t->script.len) {
            if (!take_rules(t, rest, line, err))
                return false;
        } else if (token_is(&w, "peers") && !t->script.len) {
            if (!take_peers(t, rest, line, err))
                return false;
        } else if (token_is(&all, "slow") && !t->script.len) {
            t->slow = true;
        } else {
            t->script.p = t->script.len ? t->script.p : text;
            t->script.len = (uint32_t)(text + n + (text[n] == '\n') - t->script.p);
        }
    }
    return b->n || bad(err, line, "there is no test");
}
