/* layer 0 (base): lines of text that are longer than a terminal is wide, broken between words. */
#include "buf.h"

#define MORE_INDENT 2  /* columns by which a continuation is indented further than its line, if it has no column */
#define LIST_INDENT 16 /* a line that is indented so far continues a column itself */

/* Bytes of the character at `p`, of which `*columns` are shown: 0 for a sequence that sets a colour, 1 for others. */
static size_t one_character(const char *p, const char *end, unsigned *columns)
{
    const char *q = p + 1;

    *columns = (unsigned char)*p >= ' ';
    if (*p == '\033' && q < end && *q == '[') {
        for (q++; q < end && (unsigned char)*q < '@'; q++)
            ;
        return (size_t)((q < end) + (q - p));
    }
    while (q < end && ((unsigned char)*q & 0xC0) == 0x80) /* continuation bytes of UTF-8 */
        q++;
    return (size_t)(q - p);
}

/* Up to `columns` columns of a line. */
struct fitting {
    const char *end;   /* behind them; that of the line if all of it fits */
    const char *space; /* the last space of them at which the line can be broken, NULL: none */
    unsigned column;   /* where the last text behind two spaces begins; 0: none */
};

/* What fits of a line of which `indent` columns are used. A line is not broken within its own indentation. */
static struct fitting fit(const char *p, const char *end, unsigned indent, unsigned columns)
{
    struct fitting f = {.end = p};
    unsigned at = indent, spaces = 0, shown;
    bool text = false;

    while (f.end < end) {
        size_t n = one_character(f.end, end, &shown);
        if (text && *f.end == ' ')
            f.space = f.end;
        if (at + shown > columns && shown)
            break;
        if (*f.end == ' ') {
            spaces++;
        } else if (shown) {
            if (text && spaces > 1)
                f.column = at;
            text = true;
            spaces = 0;
        }
        at += shown;
        f.end += n;
    }
    return f;
}

static const char *behind_spaces(const char *p, const char *end)
{
    while (p < end && *p == ' ')
        p++;
    return p;
}

/* The indentation of what is continued: that of the line's last column, such as the texts of a list of options, if it
 * leaves half of the terminal, or a little more than that of the line; half of the terminal at most. */
static unsigned hanging(const char *p, const char *end, unsigned columns)
{
    struct fitting f = fit(p, end, 0, columns / 2 + 1);
    unsigned spaces = (unsigned)(behind_spaces(p, end) - p);
    unsigned indent = f.column ? f.column : spaces < LIST_INDENT ? spaces + MORE_INDENT : spaces;

    return indent <= columns / 2 ? indent : columns / 2;
}

static void fold_line(struct buf *b, const char *p, const char *end, unsigned columns)
{
    unsigned hang = hanging(p, end, columns), indent = 0;

    for (;;) {
        struct fitting f = fit(p, end, indent, columns);
        const char *stop = f.end;
        if (stop < end) { /* a word that is too long for any line stays whole */
            stop = f.space ? f.space : memchr(f.end, ' ', (size_t)(end - f.end));
            stop = stop ? stop : end;
        }
        const char *next = behind_spaces(stop, end);
        while (stop < end && stop > p && stop[-1] == ' ')
            stop--;
        buf_mem(b, p, (size_t)(stop - p));
        if (next == end)
            return;
        buf_char(b, '\n');
        buf_fill(b, ' ', hang);
        indent = hang;
        p = next;
    }
}

void buf_fold(struct buf *b, const char *text, size_t n, unsigned columns)
{
    const char *end = text + n;

    while (text < end) {
        const char *line = memchr(text, '\n', (size_t)(end - text));
        const char *stop = line ? line : end;
        if ((size_t)(stop - text) <= columns) /* as most lines: bytes are at least as many as columns */
            buf_mem(b, text, (size_t)(stop - text));
        else
            fold_line(b, text, stop, columns);
        if (line)
            buf_char(b, '\n');
        text = stop + (line != NULL);
    }
}
