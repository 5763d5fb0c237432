/* layer 0 (base): a JSON document as lines of JSON: one for each row, as programs load them. */
#include "json_lines.h"

/* The type of the rows at hand: the name of their array, without its s. */
static void put_type(const struct json_lines *l, struct buf *out)
{
    const char *from = memchr(l->head.p + l->member, '"', l->head.len - l->member);
    const char *to = from ? memchr(from + 1, '"', (size_t)(l->head.p + l->head.len - from - 1)) : NULL;

    if (l->array || !to)
        buf_printf(out, "{\"type\":\"%s\"", l->rows);
    else
        buf_printf(out, "{\"type\":\"%.*s\"", (int)(to - from - 1 - (to[-1] == 's')), from + 1);
}

/* What a character outside of texts begins or ends. */
static void track(struct json_lines *l, char c)
{
    l->text = c == '"';
    l->depth += c == '{' || c == '[';
    l->depth -= l->depth && (c == '}' || c == ']');
}

static void in_text(struct json_lines *l, char c)
{
    l->text = c != '"' || l->escaped;
    l->escaped = c == '\\' && !l->escaped;
}

static void in_row(struct json_lines *l, struct buf *out, char c)
{
    if (l->first && c != '}')
        buf_char(out, ',');
    l->first = false;
    buf_char(out, c);
    track(l, c);
    if (l->depth < l->row) {
        l->row = 0;
        buf_char(out, '\n');
    }
}

/* Between the brackets around rows: true if the character is done with. */
static bool between_rows(struct json_lines *l, struct buf *out, char c)
{
    if (c == '{' && !l->plain) {
        put_type(l, out);
        l->row = ++l->depth;
        l->first = true;
        return true;
    }
    if (c == ']') {
        l->in_rows = false;
        l->head.len = l->plain ? l->head.len : l->member;
        l->depth -= !l->plain;
        return !l->plain;
    }
    l->plain |= c != ',';
    return !l->plain;
}

static void in_document(struct json_lines *l, struct buf *out, char c)
{
    unsigned rows_at = l->array ? 1 : 2;

    if (!l->depth)
        l->array = c == '[';
    if (l->in_rows && l->depth == rows_at && between_rows(l, out, c))
        return;
    if (l->depth == 1 && c == ',')
        l->member = l->head.len;
    if (l->depth == 0)
        l->member = 1;
    buf_char(&l->head, c);
    track(l, c);
    if (c == '[' && l->depth == (l->array ? 1 : 2)) {
        l->in_rows = true;
        l->plain = false;
    }
}

static void put_rest(const struct json_lines *l, struct buf *out)
{
    size_t at = l->head.len > 1 && l->head.p[1] == ',' ? 2 : 1; /* a comma behind rows that came first */

    if (l->array || l->head.len < 2)
        return;
    buf_printf(out, "{\"type\":\"%s\"%s", l->rest, l->head.p[at] == '}' ? "" : ",");
    buf_mem(out, l->head.p + at, l->head.len - at);
    buf_char(out, '\n');
}

void json_lines_take(struct json_lines *l, struct buf *b, bool all)
{
    struct buf out = {.err = b->err};

    for (size_t i = 0; i < b->len; i++) {
        char c = b->p[i];
        if (l->text) {
            buf_char(l->row ? &out : &l->head, c);
            in_text(l, c);
        } else if (c != '\n' && c != ' ') {
            (l->row ? in_row : in_document)(l, &out, c);
        }
    }
    buf_free(b);
    *b = out;
    if (!all)
        return;
    put_rest(l, b);
    buf_free(&l->head);
    *l = (struct json_lines){.rows = l->rows, .rest = l->rest};
}
