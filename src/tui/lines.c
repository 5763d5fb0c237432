/* layer 3b (tui): text split into lines, with what each is about. */
#include "src/tui/lines.h"

#include <stdlib.h>

/* Where text about something begins. */
struct mark {
    size_t at;
    struct spot place;
    uint8_t role;
    bool event, about; /* about: `place` is valid */
};

void lines_clear(struct lines *l)
{
    l->text.len = l->n = l->n_marks = 0;
    l->short_of_memory = false;
}

void lines_free(struct lines *l)
{
    buf_free(&l->text);
    free(l->v);
    free(l->marks);
    *l = (struct lines){.n = 0};
}

/* Room for one more element of `size` bytes; NULL without memory. */
static void *grown(void *v, size_t n, size_t *cap, size_t size)
{
    void *p = v;

    if (n == *cap) {
        size_t more = *cap ? *cap * 2 : 256;
        p = realloc(v, more * size);
        if (p)
            *cap = more;
    }
    return p;
}

void lines_item(struct lines *l, size_t at, const struct spot *p, enum look role, bool event)
{
    struct mark *m = grown(l->marks, l->n_marks, &l->cap_marks, sizeof *m);

    if (!m) {
        l->short_of_memory = true;
        return;
    }
    l->marks = m;
    m = &l->marks[l->n_marks++];
    *m = (struct mark){.at = at, .role = (uint8_t)role, .event = event, .about = p != NULL};
    if (p)
        m->place = *p;
}

static void add(struct lines *l, size_t at, size_t len, size_t mark, bool begins, unsigned indent)
{
    struct line *v = grown(l->v, l->n, &l->cap, sizeof *v);
    const struct mark *m = mark ? &l->marks[mark - 1] : NULL;
    bool goes_on;

    if (!v) {
        l->short_of_memory = true;
        return;
    }
    l->v = v;
    goes_on = m && m->about && (begins || (len && l->n && l->v[l->n - 1].item == mark));
    l->v[l->n++] = (struct line){.at = at,
                                 .len = (uint32_t)len,
                                 .indent = (uint8_t)indent,
                                 .item = goes_on ? (uint32_t)mark : 0,
                                 .role = m && begins ? m->role : LOOK_NORMAL,
                                 .event = begins && m && m->event};
}

/* Bytes of a line up to the last space before column `room`; all of them if there is none, or if they fit. */
static size_t fitting(const char *s, size_t len, size_t room)
{
    size_t n = room < len ? room : len;

    while (n < len && n && s[n] != ' ')
        n--;
    return n && strspn(s, " ") < n ? n : len;
}

/* Add a line, broken where it is too long: what is behind is indented. */
static void add_broken(struct lines *l, size_t at, size_t len, size_t mark, bool begins)
{
    unsigned indent = (unsigned)strspn(l->text.p + at, " ") + 4, before = 0;

    while (l->wrap > 2 * indent && len > l->wrap - before) {
        size_t n = fitting(l->text.p + at, len, l->wrap - before);
        if (n == len)
            break;
        add(l, at, n, mark, begins && !before, before);
        at += n + 1;
        len -= n + 1;
        before = indent;
    }
    add(l, at, len, mark, begins && !before, before);
}

void lines_end(struct lines *l)
{
    size_t mark = 0, at = 0;

    l->n = 0;
    while (at < l->text.len) {
        const char *end = memchr(l->text.p + at, '\n', l->text.len - at);
        size_t len = end ? (size_t)(end - l->text.p) - at : l->text.len - at, next = at + len + 1;
        bool begins = false;
        while (mark < l->n_marks && l->marks[mark].at <= at) {
            mark++;
            begins = true;
        }
        add_broken(l, at, len, mark, begins);
        at = next;
    }
}

const struct spot *lines_place(const struct lines *l, size_t i)
{
    return i < l->n && l->v[i].item ? &l->marks[l->v[i].item - 1].place : NULL;
}

size_t lines_find(const struct lines *l, uint16_t file, uint64_t frame)
{
    size_t first = 0, near = 0;
    bool any = false;

    for (size_t i = 0; i < l->n; i++) {
        const struct spot *p = lines_place(l, i);
        if (!p)
            continue;
        first = any ? first : i;
        any = true;
        if (frame && ((p->file == file && p->frame == frame) || (p->other_file == file && p->other == frame)))
            return i;
        near = frame && p->file == file && p->frame && p->frame < frame ? i : near;
    }
    return near ? near : first;
}
