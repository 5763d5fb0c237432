/* layer 3 (conform): what can be asked of a device, which tests ask it, and what is not asked: coverage.tsv; and how
 * much of it a run shows. */
#include "gen/conform/battery/table.h"
#include "gen/conform/conform.h"

#include <string.h>

#define COLUMNS 4 /* row, what is asked, tests, what is not asked and why */

extern const char conform_coverage_text[]; /* battery_text.S */

enum state { PLAYED, IN_PART, NOT_PLAYED, STATES };
static const char *const states[STATES] = {"played", "in part", "unsupported"};

static enum state state_of(const struct token *t)
{
    return token_is(&t[2], "-") ? NOT_PLAYED : token_is(&t[3], "-") ? PLAYED : IN_PART;
}

/* The next row from *text on. False: there is none. */
static bool next_row(const char **text, struct token t[COLUMNS])
{
    bool row = false;

    while (**text && !row) {
        size_t n = strcspn(*text, "\n");
        row = **text != '#' && table_split(*text, n, t, COLUMNS) == COLUMNS;
        *text += n + ((*text)[n] == '\n');
    }
    return row;
}

static void put_line(struct buf *b, const char *before, const struct token *t)
{
    if (token_is(t, "*"))
        buf_printf(b, "%sthe card as a whole\n", before);
    else if (!token_is(t, "-"))
        buf_printf(b, "%s%.*s\n", before, (int)t->len, t->p);
}

void conform_print_coverage(struct buf *b)
{
    const char *text = conform_coverage_text;
    unsigned rows[STATES] = {0};
    struct token t[COLUMNS];

    while (next_row(&text, t)) {
        enum state state = state_of(t);
        buf_printf(b, "%-8.*s  %-11s  %.*s\n", (int)t[0].len, t[0].p, states[state], (int)t[1].len, t[1].p);
        put_line(b, "          ", &t[2]);
        put_line(b, state == NOT_PLAYED ? "          because: " : "          but not: ", &t[3]);
        rows[state]++;
    }
    buf_printf(b, "\n%u rows: %u played, %u in part, %u unsupported\n", rows[PLAYED] + rows[IN_PART] + rows[NOT_PLAYED],
               rows[PLAYED], rows[IN_PART], rows[NOT_PLAYED]);
}

/* --- What a run shows ------------------------------------------------------------------------- */

bool conform_is_about_device(enum conform_result r)
{
    return r != CONFORM_UNSUPPORTED && r != CONFORM_ERROR && r != CONFORM_INCONCLUSIVE;
}

/* Whether one of the tests named in `list`, blanks between them, shows what the device does. */
static bool is_shown(const struct conform_score *s, struct token list)
{
    bool more = true;

    while (more) {
        struct token id, rest;
        more = token_cut(&list, ' ', &id, &rest);
        for (unsigned i = 0; i < s->n; i++)
            if (conform_is_about_device((enum conform_result)s->o[i].result) &&
                (token_is(&id, "*") || token_is(&id, s->o[i].test->id)))
                return true;
        list = rest;
    }
    return false;
}

struct conform_coverage conform_coverage(const struct conform_score *s)
{
    const char *text = conform_coverage_text;
    struct conform_coverage c = {0};
    struct token t[COLUMNS];

    while (next_row(&text, t)) {
        c.rows++;
        c.shown += is_shown(s, t[2]);
    }
    return c;
}

static bool is_of(const struct conform_test *t, unsigned level, const struct token *group)
{
    return (level == CONFORM_LEVELS || t->level == level) &&
           (!group || (strncmp(t->id, group->p, group->len) == 0 && t->id[group->len] == '/'));
}

struct conform_share conform_share(const struct conform_score *s, unsigned level, const struct token *group)
{
    struct conform_share c = {0};

    for (unsigned i = 0; i < s->battery->n; i++)
        c.all += is_of(&s->battery->test[i], level, group);
    for (unsigned i = 0; i < s->n; i++) {
        enum conform_result r = (enum conform_result)s->o[i].result;
        if (!is_of(s->o[i].test, level, group))
            continue;
        c.applicable += conform_is_about_device(r);
        c.pass += r == CONFORM_PASS;
        c.weak += r == CONFORM_WEAK;
        c.fail += r == CONFORM_FAIL || r == CONFORM_CRASH;
    }
    return c;
}

/* A group of tests, and what came out of those that must pass, and of all. */
struct group {
    struct token id;
    struct conform_share must, all;
};

/* The group of outcome `i`; false if an earlier one is of it, too. */
static bool begins_group(const struct conform_score *s, unsigned i, struct group *g)
{
    g->id = (struct token){.p = s->o[i].test->id, .len = (uint32_t)strcspn(s->o[i].test->id, "/")};
    for (unsigned k = 0; k < i; k++)
        if (is_of(s->o[k].test, CONFORM_LEVELS, &g->id))
            return false;
    g->must = conform_share(s, CONFORM_MUST, &g->id);
    g->all = conform_share(s, CONFORM_LEVELS, &g->id);
    return true;
}

void conform_print_groups(const struct conform_score *s, struct buf *b)
{
    struct group g;

    buf_puts(b, "\ngroup   must passed  should missed  failed  coverage\n");
    for (unsigned i = 0; i < s->n; i++)
        if (begins_group(s, i, &g))
            buf_printf(b, "%-6.*s  %3u of %3u  %13u  %6u  %3u of %3u tests\n", (int)g.id.len, g.id.p, g.must.pass,
                       g.must.applicable, g.all.weak, g.all.fail, g.all.applicable, g.all.all);
}

void conform_print_groups_json(const struct conform_score *s, struct buf *b)
{
    const char *sep = "";
    struct group g;

    buf_puts(b, ",\"groups\":[");
    for (unsigned i = 0; i < s->n; i++)
        if (begins_group(s, i, &g)) {
            buf_printf(b,
                       "%s\n{\"id\":\"%.*s\",\"must_passed\":%u,\"must_applicable\":%u,\"should_missed\":%u,"
                       "\"failed\":%u,\"applicable\":%u,\"all\":%u}",
                       sep, (int)g.id.len, g.id.p, g.must.pass, g.must.applicable, g.all.weak, g.all.fail,
                       g.all.applicable, g.all.all);
            sep = ",";
        }
    buf_char(b, ']');
}
