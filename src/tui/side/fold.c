/* layer 3b (tui): the tree of fields: headers that are folded to a line which sums them up. */
#include "src/tui/tui_impl.h"

#define SMALL_ROWS 10 /* of a tree, below which headers are folded unless the user unfolds them */

/* Whether the fields of a header are shown. */
static bool is_open(const struct detail *d, const struct hdr *hdr)
{
    bool open = !d->small;

    for (unsigned i = 0; i < d->n_turned; i++)
        if (d->turned[i] == hdr)
            return !open;
    return open;
}

/* The line of the header that line `i` belongs to. */
static unsigned head_of(const struct detail *d, unsigned i)
{
    while (i && d->lines[i].field)
        i--;
    return i;
}

/* Whether line `i` is a header with fields. */
static bool has_fields(const struct detail *d, unsigned i)
{
    return !d->lines[i].field && d->lines[i].hdr && i + 1 < d->n && d->lines[i + 1].field;
}

/* The text of line `i`, *len bytes. */
static const char *text_of(const struct detail *d, unsigned i, size_t *len)
{
    const char *text = d->text.p + d->lines[i].at, *end = memchr(text, '\n', d->text.len - d->lines[i].at);

    *len = end ? (size_t)(end - text) : d->text.len - d->lines[i].at;
    return text;
}

void fold_lines(struct detail *d, unsigned rows)
{
    bool open = true;

    d->small = rows < SMALL_ROWS;
    d->n_shown = 0;
    for (unsigned i = 0; i < d->n; i++) {
        if (!d->lines[i].field)
            open = !has_fields(d, i) || is_open(d, d->lines[i].hdr);
        if (open || !d->lines[i].field)
            d->shown[d->n_shown++] = i;
    }
    if (d->at < d->n && d->lines[d->at].field && !is_open(d, d->lines[head_of(d, d->at)].hdr))
        d->at = head_of(d, d->at);
}

unsigned fold_row(const struct detail *d, unsigned line)
{
    unsigned low = 0, high = d->n_shown;

    while (low < high) {
        unsigned half = low + (high - low) / 2;
        if (d->shown[half] < line)
            low = half + 1;
        else
            high = half;
    }
    return low;
}

void fold_turn(struct detail *d, enum fold how)
{
    unsigned head = d->n ? head_of(d, d->at) : 0, i = 0;
    const struct hdr *hdr = d->n ? d->lines[head].hdr : NULL;

    if (!hdr || !has_fields(d, head) || (how != FOLD_TURN && is_open(d, hdr) == (how == FOLD_OPEN)))
        return;
    while (i < d->n_turned && d->turned[i] != hdr)
        i++;
    if (i < d->n_turned)
        d->turned[i] = d->turned[--d->n_turned];
    else if (d->n_turned < TURNED_MAX)
        d->turned[d->n_turned++] = hdr;
    if (!is_open(d, hdr))
        d->at = head;
}

/* --- What a folded header says ------------------------------------------------------------------ */

/* A value that says nothing: 0, False, all bits set. */
static bool says_nothing(const char *s, size_t n)
{
    bool hex = n > 2 && s[0] == '0' && s[1] == 'x';

    if (n == 5 && memcmp(s, "False", n) == 0)
        return true;
    return strspn(s, "0x") >= n || (hex && 2 + strspn(s + 2, "f") >= n);
}

static bool is_address(const char *s, size_t n)
{
    unsigned dots = 0, colons = 0;

    for (size_t i = 0; i < n; i++) {
        dots += s[i] == '.';
        colons += s[i] == ':';
    }
    return !memchr(s, ' ', n) && (dots == 3 || colons > 1);
}

/* Append the value of field line `i` behind the end of its name; without the number behind a name. */
static void put_field(const struct detail *d, unsigned i, bool addresses, struct buf *b)
{
    size_t len, n;
    const char *text = text_of(d, i, &len);
    const char *value = memmem(text, len, ": ", 2), *name = strrchr(d->lines[i].field->abbrev, '.');

    if (!value || !name)
        return;
    value += 2;
    n = (size_t)(text + len - value);
    for (const char *p = value; p + 2 < value + n; p++)
        if (p[0] == ' ' && p[1] == '(' && p > value && value[n - 1] == ')') {
            n = (size_t)(p - value);
            break;
        }
    if (!n || says_nothing(value, n) || is_address(value, n) != addresses)
        return;
    buf_printf(b, "  %s %.*s", name + 1, (int)n, value);
}

void fold_text(const struct detail *d, unsigned line, struct buf *b)
{
    size_t len, indent;
    const char *text = text_of(d, line, &len);
    bool fields = has_fields(d, line), open = fields && is_open(d, d->lines[line].hdr);

    for (indent = 0; indent < len && text[indent] == ' ';)
        indent++;
    buf_fill(b, ' ', d->small ? 0 : indent);
    buf_puts(b, d->lines[line].field ? d->small ? "    " : "  " : fields ? open ? "- " : "+ " : "  ");
    buf_mem(b, text + indent, len - indent);
    for (unsigned k = 0; fields && !open && k < 2; k++)
        for (unsigned i = line + 1; i < d->n && d->lines[i].field; i++)
            put_field(d, i, k == 0, b);
}
