/* layer 3 (conform): what can be asked of a device, which tests ask it, and what is not asked: coverage.tsv. */
#include "gen/conform/conform.h"
#include "gen/conform/table.h"

#include <string.h>

#define COLUMNS 4 /* row, what is asked, tests, what is not asked and why */

extern const char conform_coverage_text[]; /* battery_text.S */

enum state { PLAYED, IN_PART, NOT_PLAYED, STATES };
static const char *const states[STATES] = {"played", "in part", "unsupported"};

static enum state state_of(const struct token *t)
{
    return token_is(&t[2], "-") ? NOT_PLAYED : token_is(&t[3], "-") ? PLAYED : IN_PART;
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
    unsigned rows[STATES] = {0};

    for (const char *text = conform_coverage_text; *text;) {
        struct token t[COLUMNS];
        size_t n = strcspn(text, "\n");
        if (*text != '#' && table_split(text, n, t, COLUMNS) == COLUMNS) {
            enum state state = state_of(t);
            buf_printf(b, "%-8.*s  %-11s  %.*s\n", (int)t[0].len, t[0].p, states[state], (int)t[1].len, t[1].p);
            put_line(b, "          ", &t[2]);
            put_line(b, state == NOT_PLAYED ? "          because: " : "          but not: ", &t[3]);
            rows[state]++;
        }
        text += n + (text[n] == '\n');
    }
    buf_printf(b, "\n%u rows: %u played, %u in part, %u unsupported\n", rows[PLAYED] + rows[IN_PART] + rows[NOT_PLAYED],
               rows[PLAYED], rows[IN_PART], rows[NOT_PLAYED]);
}
