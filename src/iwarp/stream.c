/* layer 2b (iwarp): the bytes that one end of a TCP connection sends, in their order. */
#include "src/iwarp/stream.h"

#include <stdlib.h>

#define NEAR     (16 << 20) /* bytes between segments of one stream, at most */
#define STRANGE  4          /* segments in a row that are farther away: another connection, or the capture lacks much */
#define PATIENCE 1          /* segments that come behind a gap after the other end acknowledged it */

/* A segment behind a gap. */
struct late {
    struct late *next;
    uint32_t seq, len, cap; /* as in struct segment */
    uint64_t frame;
    ns_t ts;
    uint8_t b[];
};

static void drop_late(struct stream *s)
{
    while (s->late) {
        struct late *l = s->late;
        s->late = l->next;
        free(l);
    }
    s->n_late = s->late_bytes = 0;
}

void stream_free(struct stream *s)
{
    drop_late(s);
    free(s->b);
    *s = (struct stream){0};
}

/* What follows is not where the bytes before ended. */
static void restart(struct stream *s, uint32_t seq)
{
    s->at += s->len;
    s->len = 0;
    s->n_holes = s->n_origins = 0;
    s->next = seq;
    s->begun = true;
    s->waited = s->strange = 0;
}

void stream_begin(struct stream *s, uint32_t seq)
{
    drop_late(s);
    restart(s, seq);
    s->at = 0;
    s->have_acked = false;
}

/* --- Bytes in order --------------------------------------------------------------------------- */

static bool reserve(struct stream *s, uint32_t n)
{
    uint32_t need = s->len + n, cap = s->cap ? s->cap : 4096;
    uint8_t *grown;

    if (n > STREAM_BYTES || need > STREAM_BYTES)
        return false;
    while (cap < need)
        cap *= 2;
    if (cap == s->cap)
        return true;
    grown = realloc(s->b, cap);
    if (!grown)
        return false;
    s->b = grown;
    s->cap = cap;
    return true;
}

static void note_origin(struct stream *s, uint64_t frame, ns_t ts)
{
    if (s->n_origins == STREAM_ORIGINS) {
        memmove(s->origin, s->origin + STREAM_ORIGINS / 2, sizeof s->origin / 2);
        s->n_origins = STREAM_ORIGINS / 2;
    }
    s->origin[s->n_origins++] = (struct origin){s->at + s->len, frame, ts};
}

/* Append `n` bytes that were not captured. False: too many stretches. */
static bool append_hole(struct stream *s, uint32_t n)
{
    uint64_t from = s->at + s->len;

    if (!n)
        return true;
    if (!reserve(s, n))
        return false;
    if (s->n_holes && s->hole[s->n_holes - 1].to == from)
        s->hole[s->n_holes - 1].to = from + n;
    else if (s->n_holes == STREAM_HOLES)
        return false;
    else {
        s->hole[s->n_holes].from = from;
        s->hole[s->n_holes++].to = from + n;
    }
    memset(s->b + s->len, 0, n);
    s->len += n;
    s->next += n;
    s->lacking += n;
    return true;
}

/* Append a segment that begins at or before `next` and goes on behind it. */
static bool append(struct stream *s, const struct segment *g)
{
    uint32_t skip = s->next - g->seq, rest = g->len - skip, cap = g->cap > skip ? g->cap - skip : 0;

    if (!reserve(s, rest))
        return false;
    note_origin(s, g->frame, g->ts);
    if (cap)
        memcpy(s->b + s->len, g->b + skip, cap);
    s->len += cap;
    s->next += cap;
    return append_hole(s, rest - cap);
}

/* --- Behind a gap ----------------------------------------------------------------------------- */

/* Keep a segment. False: there is no room. */
static bool keep(struct stream *s, const struct segment *g)
{
    struct late **at = &s->late, *l;

    if (s->n_late == STREAM_LATE || s->late_bytes + g->cap > STREAM_LATE_BYTES || !(l = malloc(sizeof *l + g->cap)))
        return false;
    *l = (struct late){.seq = g->seq, .len = g->len, .cap = g->cap, .frame = g->frame, .ts = g->ts};
    memcpy(l->b, g->b, g->cap);
    while (*at && seq_diff((*at)->seq, g->seq) < 0)
        at = &(*at)->next;
    l->next = *at;
    *at = l;
    s->n_late++;
    s->late_bytes += g->cap;
    return true;
}

/* Append the segments that are in order now. */
static bool take_late(struct stream *s)
{
    bool ok = true;

    while (ok && s->late && seq_diff(s->late->seq, s->next) <= 0) {
        struct late *l = s->late;
        struct segment g = {l->seq, l->len, l->cap, l->b, l->frame, l->ts};
        s->late = l->next;
        s->n_late--;
        s->late_bytes -= l->cap;
        if (seq_diff(l->seq + l->len, s->next) > 0)
            ok = append(s, &g);
        free(l);
    }
    s->waited = 0;
    return ok;
}

/* The place is lost: begin again with the segment. */
static enum stream_got begin_again(struct stream *s, const struct segment *g, uint64_t *from)
{
    drop_late(s);
    restart(s, g->seq);
    s->broken++;
    *from = s->at;
    append(s, g);
    return STREAM_BROKEN;
}

enum stream_got stream_take(struct stream *s, const struct segment *g, uint64_t *from)
{
    int32_t ahead = seq_diff(g->seq, s->next);

    s->segments++;
    if (!s->begun)
        restart(s, g->seq);
    else if ((ahead > NEAR || ahead < -NEAR) && ++s->strange > STRANGE)
        return begin_again(s, g, from);
    ahead = seq_diff(g->seq, s->next);
    *from = s->at + s->len;
    if (ahead > NEAR || (ahead < 0 && seq_diff(g->seq + g->len, s->next) <= 0)) {
        s->again += ahead < 0;
        return STREAM_AGAIN;
    }
    s->strange = 0;
    if (ahead > 0) {
        s->reordered++;
        s->waited += stream_is_acked(s, s->late ? s->late->seq : g->seq);
        if (keep(s, g))
            return STREAM_BEHIND;
        stream_give_up(s, true);
        *from = s->at + s->len;
        if (seq_diff(g->seq, s->next) > 0)
            return begin_again(s, g, from);
        if (seq_diff(g->seq + g->len, s->next) <= 0)
            return STREAM_NEW;
    }
    if (!append(s, g) || !take_late(s))
        return begin_again(s, g, from);
    return STREAM_NEW;
}

void stream_ack(struct stream *s, uint32_t ack)
{
    if (s->have_acked && seq_diff(ack, s->acked) <= 0)
        return;
    s->acked = ack;
    s->have_acked = true;
}

bool stream_behind(const struct stream *s, uint32_t *seq)
{
    if (s->late)
        *seq = s->late->seq;
    return s->late != NULL;
}

bool stream_give_up(struct stream *s, bool end)
{
    uint32_t gap;

    if (!s->late || (!end && (s->waited < PATIENCE || !stream_is_acked(s, s->late->seq))))
        return false;
    gap = s->late->seq - s->next;
    if (gap > STREAM_FILL || !append_hole(s, gap)) {
        s->lacking += gap;
        restart(s, s->late->seq);
        s->broken++;
    }
    if (!take_late(s)) {
        drop_late(s);
        s->broken++;
    }
    return true;
}

/* --- Reading ---------------------------------------------------------------------------------- */

void stream_read(struct stream *s, uint32_t n)
{
    unsigned i = 0;

    if (!n)
        return;
    memmove(s->b, s->b + n, s->len - n);
    s->len -= n;
    s->at += n;
    while (i < s->n_holes && s->hole[i].to <= s->at)
        i++;
    memmove(s->hole, s->hole + i, (s->n_holes - i) * sizeof s->hole[0]);
    s->n_holes -= i;
    for (i = 0; i + 1 < s->n_origins && s->origin[i + 1].at <= s->at;)
        i++;
    memmove(s->origin, s->origin + i, (s->n_origins - i) * sizeof s->origin[0]);
    s->n_origins -= i;
}

bool stream_lacks(const struct stream *s, uint64_t from, uint64_t to)
{
    for (unsigned i = 0; i < s->n_holes; i++)
        if (s->hole[i].from < to && s->hole[i].to > from)
            return true;
    return false;
}

uint64_t stream_lacking(const struct stream *s, uint64_t from, uint64_t to)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < s->n_holes; i++) {
        uint64_t a = s->hole[i].from > from ? s->hole[i].from : from, b = s->hole[i].to < to ? s->hole[i].to : to;
        n += a < b ? b - a : 0;
    }
    return n;
}

const struct origin *stream_origin(const struct stream *s, uint64_t at)
{
    for (unsigned i = s->n_origins; i-- > 0;)
        if (s->origin[i].at <= at)
            return &s->origin[i];
    return NULL;
}
