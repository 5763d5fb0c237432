/* layer 3 (conform): profiles: deviations of a device that are known, read from text, and found in an outcome. */
#include "gen/conform/battery/known.h"

#include "gen/conform/battery/table.h"

#include <fnmatch.h>
#include <stdio.h>

#define COLUMNS 5

/* battery_text.S */
extern const char known_rxe_text[], known_mlx5_text[], known_mlx4_text[], known_irdma_text[], known_bnxt_re_text[],
    known_efa_text[];

const char *known_text(const char *name)
{
    static const struct {
        const char *name, *text;
    } all[] = {{"rxe", known_rxe_text},     {"mlx5", known_mlx5_text},       {"mlx4", known_mlx4_text},
               {"irdma", known_irdma_text}, {"bnxt_re", known_bnxt_re_text}, {"efa", known_efa_text}};

    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        if (strcmp(name, all[i].name) == 0)
            return all[i].text;
    return NULL;
}

/* --- Reading ---------------------------------------------------------------------------------- */

/* Copy a column that is not "-". False: it is empty, or too long. */
static bool copy(const struct token *t, char *to, size_t size)
{
    if (!t->len || t->len >= size)
        return false;
    snprintf(to, size, "%.*s", token_is(t, "-") ? 0 : (int)t->len, t->p);
    return true;
}

static const char *take_row(struct known_profile *p, const char *line, size_t n)
{
    struct known_row *row = &p->row[p->n];
    struct token t[COLUMNS];
    char id[16];

    if (table_split(line, n, t, COLUMNS) != COLUMNS)
        return "expected five columns: test, rule, pattern of the reason, why, source";
    if (p->n == KNOWN_ROWS)
        return "too many rows";
    if (!copy(&t[0], row->test, sizeof row->test) || !*row->test)
        return "expected a test";
    if (!copy(&t[1], id, sizeof id) || (*id && rule_find(id) == RULE_NONE))
        return "there is no such rule";
    row->rule = *id ? rule_find(id) : RULE_NONE;
    if (!copy(&t[2], row->seen, sizeof row->seen) || (row->rule == RULE_NONE) == !*row->seen)
        return "expected either a rule, or a pattern of the reason";
    if (!t[3].len || !t[4].len)
        return "expected why, and the source";
    row->why = t[3];
    row->source = t[4];
    p->n++;
    return NULL;
}

bool known_parse(struct known_profile *p, const char *text, struct buf *err)
{
    unsigned line = 0;

    p->n = 0;
    for (size_t n; *text; text += n + (text[n] == '\n')) {
        const char *wrong = NULL;
        n = strcspn(text, "\n");
        line++;
        if (n && *text != '#')
            wrong = take_row(p, text, n);
        if (wrong) {
            buf_printf(err, "line %u: %s", line, wrong);
            return false;
        }
    }
    return true;
}

/* --- Weighing --------------------------------------------------------------------------------- */

static void say(struct conform_outcome *o, const struct known_row *row)
{
    buf_printf(&o->known, "%s%.*s [%.*s]", o->known.len ? "; " : "", (int)row->why.len, row->why.p,
               (int)row->source.len, row->source.p);
}

/* The row for an expectation that is not met (`rule` RULE_NONE), or a rule that is broken. */
static const struct known_row *find(const struct known_profile *p, struct conform_outcome *o, enum rule rule)
{
    for (unsigned i = 0; i < p->n; i++)
        if (p->row[i].rule == rule && conform_matches(o->test->id, p->row[i].test) &&
            (rule != RULE_NONE || fnmatch(p->row[i].seen, buf_str(&o->reason), 0) == 0))
            return &p->row[i];
    return NULL;
}

static bool says_same(const struct known_row *a, const struct known_row *b)
{
    return a->why.len == b->why.len && memcmp(a->why.p, b->why.p, a->why.len) == 0;
}

/* Whether every rule that the judge names, "NAK-02 in frame 7, ...", is known; say why, each reason once. */
static bool judge_is_known(const struct known_profile *p, struct conform_outcome *o)
{
    const struct known_row *said[CONFORM_RULES], *row;
    unsigned n = 0, i;

    for (const char *s = buf_str(&o->judge); *s; s += strcspn(s, ","), s += strspn(s, ", ")) {
        char id[16];
        snprintf(id, sizeof id, "%.*s", (int)strcspn(s, " "), s);
        row = rule_find(id) == RULE_NONE ? NULL : find(p, o, rule_find(id));
        if (!row)
            return false;
        for (i = 0; i < n && !says_same(said[i], row); i++)
            continue;
        if (i < n || n == CONFORM_RULES)
            continue;
        said[n++] = row;
        say(o, row);
    }
    return true;
}

void known_weigh(const struct known_profile *p, struct conform_outcome *o)
{
    const struct known_row *row = o->judge_alone ? NULL : find(p, o, RULE_NONE);
    bool known = o->judge_alone || row;

    if (!conform_is_missed(o->result) && !(o->result == CONFORM_ERROR && o->judge_alone))
        return;
    if (row)
        say(o, row);
    if (known && judge_is_known(p, o))
        o->result = CONFORM_KNOWN;
    else
        o->known.len = 0;
}
