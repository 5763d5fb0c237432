/* layer 3 (ladder): incidents about the packets drawn. */
#include "src/ladder/ladder_impl.h"

#include <stdlib.h>

uint32_t incidents_worst_conn(struct ladder *l)
{
    for (size_t i = 0; i < explain_n(l->explain); i++)
        if (explain_at(l->explain, i)->conn)
            return explain_at(l->explain, i)->conn;
    return 0;
}

uint32_t incidents_first_frame(struct ladder *l, uint32_t conn)
{
    for (size_t i = 0; i < explain_n(l->explain); i++)
        if (explain_at(l->explain, i)->conn == conn && explain_at(l->explain, i)->n_frames)
            return explain_at(l->explain, i)->frames[0];
    return 0;
}

/* True if the first frame of the incident is the packet concerned, not another one in its place. */
static bool is_itself(const struct incident *s)
{
    return s->place != PLACE_BEFORE || s->cause == CAUSE_DUPLICATE || s->cause == CAUSE_BAD_ICRC ||
           s->cause == CAUSE_REORDER;
}

/* Number of frames that the incident names first: the packets concerned. */
static unsigned n_concerned(const struct incident *s)
{
    unsigned n = s->cause == CAUSE_DUPLICATE || s->cause == CAUSE_CE_WITHOUT_CNP ? s->n_frames : 1;

    return n < s->n_frames ? n : s->n_frames;
}

/* By file and frame, the worst incident first. */
static int by_frame(const void *a, const void *b)
{
    const struct concerned_frame *x = a, *y = b;

    if (x->file != y->file)
        return x->file < y->file ? -1 : 1;
    if (x->frame != y->frame)
        return x->frame < y->frame ? -1 : 1;
    return x->incident < y->incident ? -1 : x->incident > y->incident;
}

/* The frame that a loss is about: that which another tap lacks, if one does; else the one named first. */
static uint32_t frame_of(const struct incident *s, unsigned k)
{
    for (unsigned i = 0; i < s->n_facts; i++)
        if (s->facts[i].sentence == SENTENCE_TAP_LACKS)
            return s->facts[i].lost;
    return s->frames[k];
}

bool incidents_index(struct ladder *l)
{
    size_t room = 1;

    for (size_t i = 0; i < explain_n(l->explain); i++)
        room += n_concerned(explain_at(l->explain, i));
    l->concerned = malloc(room * sizeof *l->concerned);
    if (!l->concerned)
        return false;
    for (size_t i = 0; i < explain_n(l->explain); i++) {
        const struct incident *s = explain_at(l->explain, i);
        for (unsigned k = 0; is_itself(s) && k < n_concerned(s); k++)
            l->concerned[l->n_concerned_frames++] = (struct concerned_frame){frame_of(s, k), s->files[k], (uint32_t)i};
    }
    qsort(l->concerned, l->n_concerned_frames, sizeof *l->concerned, by_frame);
    return true;
}

const char *incidents_cause(const struct ladder *l, const struct rung *r, bool *after)
{
    const struct concerned_frame key = {r->frame, (uint16_t)(r->tap >> 16), 0};
    uint32_t low = 0, high = l->n_concerned_frames;
    const struct incident *s;

    while (low < high) {
        uint32_t half = low + (high - low) / 2;
        if (by_frame(&l->concerned[half], &key) < 0)
            low = half + 1;
        else
            high = half;
    }
    if (low == l->n_concerned_frames || l->concerned[low].frame != key.frame || l->concerned[low].file != key.file)
        return NULL;
    s = explain_at(l->explain, l->concerned[low].incident);
    *after = s->place == PLACE_AFTER && explain_is_loss(s);
    return cause_table[s->cause].name;
}

bool incidents_gave_up(struct ladder *l, uint32_t flow)
{
    for (size_t i = 0; i < explain_n(l->explain); i++)
        if (explain_at(l->explain, i)->flow == flow && explain_at(l->explain, i)->cause == CAUSE_RETRY_EXCEEDED)
            return true;
    return false;
}
