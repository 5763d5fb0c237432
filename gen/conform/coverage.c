/* layer 3 (conform): what can be asked of a device, which tests ask it, and what is not asked: coverage.tsv. */
#include "gen/conform/conform.h"
#include "gen/conform/table.h"

#include <string.h>

#define COLUMNS 4 /* row, what is asked, tests, what is not asked and why */

extern const char conform_coverage_text[]; /* battery_text.S */

static void put_line(struct buf *b, const char *before, const struct token *t)
{
    if (!token_is(t, "-"))
        buf_printf(b, "%s%.*s\n", before, (int)t->len, t->p);
}

void conform_print_coverage(struct buf *b)
{
    unsigned rows = 0, asked = 0, part = 0;

    for (const char *text = conform_coverage_text; *text;) {
        struct token t[COLUMNS];
        size_t n = strcspn(text, "\n");
        if (*text != '#' && table_split(text, n, t, COLUMNS) == COLUMNS) {
            bool any = !token_is(&t[2], "-");
            buf_printf(b, "%-8.*s  %.*s\n", (int)t[0].len, t[0].p, (int)t[1].len, t[1].p);
            put_line(b, "          ", &t[2]);
            put_line(b, any ? "          but not: " : "          not asked: ", &t[3]);
            rows++;
            asked += any;
            part += any && !token_is(&t[3], "-");
        }
        text += n + (text[n] == '\n');
    }
    buf_printf(b, "\n%u rows: %u asked, %u of them in part; %u not asked\n", rows, asked, part, rows - asked);
}
