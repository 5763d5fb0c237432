/* layer 3 (conform): results that are expected, read and written. */
#include "gen/conform/card/expected.h"

#include <stdio.h>
#include <string.h>

static bool bad(struct buf *err, unsigned line, const char *what)
{
    buf_printf(err, "line %u: %s", line, what);
    return false;
}

static bool take_line(struct expected *e, const struct token *id, const struct token *result,
                      const struct conform_battery *b, unsigned line, struct buf *err)
{
    char pattern[80];
    bool any = false;
    unsigned r = 0;

    while (r < CONFORM_RESULTS && !token_is(result, conform_result_str((enum conform_result)r)))
        r++;
    if (r == CONFORM_RESULTS)
        return bad(err, line, "expected a test and a result, such as pass, fail, weak, info, known or unsupported");
    if (id->len >= sizeof pattern)
        return bad(err, line, "there is no such test");
    snprintf(pattern, sizeof pattern, "%.*s", (int)id->len, id->p);
    for (unsigned i = 0; i < b->n; i++)
        if (conform_matches(b->test[i].id, pattern)) {
            e->result[i] = (uint8_t)r;
            any = true;
        }
    return any || bad(err, line, "there is no such test");
}

bool expected_parse(struct expected *e, const char *text, const struct conform_battery *b, struct buf *err)
{
    unsigned line = 0;

    memset(e->result, CONFORM_PASS, sizeof e->result);
    for (size_t n; *text; text += n + (text[n] == '\n')) {
        struct token id = {.p = text + strspn(text, " \t")}, result;
        line++;
        n = strcspn(text, "\n");
        id.len = (uint32_t)strcspn(id.p, " \t#\n");
        result.p = id.p + id.len + strspn(id.p + id.len, " \t");
        result.len = (uint32_t)strcspn(result.p, " \t#\n");
        if (id.len && !take_line(e, &id, &result, b, line, err))
            return false;
    }
    return true;
}

void expected_print(const struct conform_score *s, struct buf *b)
{
    buf_puts(b, "# results of rdmagen conformance that are expected: all other tests pass\n");
    for (unsigned i = 0; i < s->n; i++)
        if (s->o[i].result != CONFORM_PASS)
            buf_printf(b, "%s %s\n", s->o[i].test->id, conform_result_str((enum conform_result)s->o[i].result));
}
