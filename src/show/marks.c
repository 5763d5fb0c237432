/* layer 3 (show): marks of frames, sorted. */
#include "src/show/marks.h"

#include "dissect/frame_fields.h"
#include "frame.h"

#include <stdlib.h>

void marks_add(struct marks *m, const struct pkt_mark *mark)
{
    if (m->n == m->cap) {
        size_t cap = m->cap ? m->cap * 2 : 256;
        struct pkt_mark *grown = cap <= MARKS_MAX ? realloc(m->v, cap * sizeof *grown) : NULL;
        if (!grown) {
            m->left_out++;
            return;
        }
        m->v = grown;
        m->cap = cap;
    }
    m->v[m->n++] = *mark;
}

/* < 0, 0, > 0: `a` is before, at, after the frame. */
static int place(const struct pkt_mark *a, uint16_t file, uint64_t frame)
{
    if (a->file != file)
        return a->file < file ? -1 : 1;
    return a->frame == frame ? 0 : a->frame < frame ? -1 : 1;
}

static int text_order(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) : (b != NULL) - (a != NULL);
}

/* By frame; within a frame findings by rule, then incidents by number. */
static int order(const void *x, const void *y)
{
    const struct pkt_mark *a = x, *b = y;
    int c = place(a, b->file, b->frame);

    if (!c)
        c = text_order(a->finding, b->finding);
    if (!c)
        c = (a->number > b->number) - (a->number < b->number);
    return c ? c : text_order(a->cause, b->cause);
}

void marks_sort(struct marks *m)
{
    size_t kept = 0;

    if (m->n)
        qsort(m->v, m->n, sizeof *m->v, order);
    for (size_t i = 0; i < m->n; i++)
        if (!kept || order(&m->v[kept - 1], &m->v[i]) != 0)
            m->v[kept++] = m->v[i];
    m->n = kept;
}

const struct pkt_mark *marks_of(const struct marks *m, const struct frame *f, unsigned *n)
{
    size_t low = 0, high = m->n, end;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (place(&m->v[mid], f->file, f->number) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    for (end = low; end < m->n && place(&m->v[end], f->file, f->number) == 0; end++)
        ;
    *n = (unsigned)(end - low);
    return m->v + low;
}

void marks_free(struct marks *m)
{
    free(m->v);
    *m = (struct marks){0};
}
