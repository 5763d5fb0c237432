/* layer 2b (iwarp): what TCP repairs under iWARP: segments that were lost and retransmitted, came twice, or out of
 * their order.
 *
 *     tap before the loss                    tap behind it
 *     segment 1  2  3     2'    ACK 4        segment 1  3     2'    ACK 4
 *                |--------------|                       |-----------|
 *
 * A segment that fills a gap was overtaken if its IP identification lies before that of the one behind the gap; else it
 * was sent after it. */
#include "src/iwarp/iwarp_impl.h"

#define FAST_DUPS 3         /* duplicate ACKs after which TCP retransmits */
#define OVERTAKES NS_PER_MS /* without IP identifications: what comes sooner behind a later one was overtaken */

/* The latest segment that had this byte; NULL: it is not known. */
static const struct sent_segment *sent_with(const struct repairs *r, uint32_t seq)
{
    uint32_t n = r->at < SENT_SEGMENTS ? r->at : SENT_SEGMENTS;

    for (uint32_t i = 1; i <= n; i++) {
        const struct sent_segment *s = &r->sent[(r->at - i) % SENT_SEGMENTS];
        if (seq - s->seq < s->len)
            return s;
    }
    return NULL;
}

/* Whether the segment that fills a gap was sent before the one behind it. */
static bool is_overtaken(const struct repairs *r, const struct sent_segment *later, const struct segment *g,
                         uint16_t id)
{
    if (id && later->id)
        return (int16_t)(id - later->id) < 0;
    return r->dups < FAST_DUPS && g->ts - later->ts < OVERTAKES;
}

/* Whether it is the same packet as an earlier one. */
static bool is_same(const struct sent_segment *first, const struct segment *g, uint16_t id)
{
    bool alike = first->seq == g->seq && first->len == g->len && first->id == id;

    return alike && (id || g->ts - first->ts < OVERTAKES);
}

/* A retransmission: it waits for its ACK. One that follows before that belongs to the same repair. */
static void begin(struct iwarp *w, struct tcp_conn *t, enum iwarp_side side, const struct iwarp_repair *found,
                  uint32_t end)
{
    struct repairs *r = &t->side[side].repairs;
    bool waits = found->kind == IWARP_LOST_BEFORE || found->kind == IWARP_LOST_AFTER;

    w->again = waits || found->kind == IWARP_NEEDLESS;
    t->c.sent[side].retransmitted += w->again;
    if (w->again)
        iwarp_again(w, t, side, &(struct seq_span){found->seq, end});
    if (!waits) {
        iwarp_repair_over(w, found);
        return;
    }
    if (!r->open) {
        r->repair = *found;
        r->repair.from = !r->n_losses || found->start > r->until ? found->start : r->until;
        r->end = end;
    } else {
        r->repair.segments++;
        r->repair.sent = r->repair.end = found->sent;
        r->end = seq_diff(end, r->end) > 0 ? end : r->end;
    }
    r->repair.end_seq = r->end;
    r->open = true;
}

/* A segment that was seen before. */
static void take_again(struct iwarp *w, struct tcp_conn *t, enum iwarp_side side, const struct segment *g, uint16_t id,
                       struct iwarp_repair *found)
{
    const struct side *s = &t->side[side];
    const struct sent_segment *first = sent_with(&s->repairs, g->seq);

    if (!first)
        return;
    found->lost = first->frame;
    found->start = first->ts;
    found->kind = is_same(first, g, id)                          ? IWARP_DUPLICATED
                  : stream_is_acked(&s->stream, g->seq + g->len) ? IWARP_NEEDLESS
                                                                 : IWARP_LOST_AFTER;
    begin(w, t, side, found, g->seq + g->len);
}

/* A segment that fills the gap before the one with `behind`. */
static void take_late(struct iwarp *w, struct tcp_conn *t, enum iwarp_side side, const struct segment *g, uint16_t id,
                      uint32_t behind, struct iwarp_repair *found)
{
    const struct repairs *r = &t->side[side].repairs;
    const struct sent_segment *later = sent_with(r, behind);

    if (!later)
        return;
    found->instead = later->frame;
    found->start = later->ts;
    found->kind = is_overtaken(r, later, g, id) ? IWARP_OVERTAKEN : IWARP_LOST_BEFORE;
    begin(w, t, side, found, g->seq + g->len);
}

void repairs_time(struct tcp_conn *t, enum iwarp_side side, uint32_t end, bool again, ns_t now)
{
    struct side *s = &t->side[side];

    if (again) {
        s->timing = false; /* its ACK may be that of either copy */
    } else if (!s->timing) {
        s->timing = true;
        s->timed_end = end;
        s->timed = now;
    }
}

/* The ACK of the segment that is timed. */
static void take_time(struct tcp_conn *t, enum iwarp_side side, uint32_t ack, ns_t now)
{
    struct side *s = &t->side[side];
    struct iwarp_trip *trip = &t->c.trip[iwarp_other(side)];
    ns_t took = now - s->timed;

    if (!s->timing || seq_diff(ack, s->timed_end) < 0)
        return;
    s->timing = false;
    if (took < 0)
        return;
    if (!trip->n++ || took < trip->least)
        trip->least = took;
}

void repairs_segment(struct iwarp *w, struct tcp_conn *t, enum iwarp_side side, const struct segment *g, uint16_t id)
{
    struct side *s = &t->side[side];
    struct iwarp_repair found = {.conn = &t->c,
                                 .side = side,
                                 .seq = g->seq,
                                 .end_seq = g->seq + g->len,
                                 .segments = 1,
                                 .dups = s->repairs.dups,
                                 .again = g->frame,
                                 .sent = g->ts,
                                 .end = g->ts};
    uint32_t behind, end = g->seq + g->len;
    bool seen = s->stream.begun && seq_diff(end, s->stream.next) <= 0,
         late = s->stream.begun && g->seq == s->stream.next && stream_behind(&s->stream, &behind);

    repairs_time(t, side, end, seen || late, g->ts);
    if (t->known && s->stream.begun) {
        if (seen)
            take_again(w, t, side, g, id, &found);
        else if (late)
            take_late(w, t, side, g, id, behind, &found);
    }
    s->repairs.sent[s->repairs.at++ % SENT_SEGMENTS] = (struct sent_segment){g->seq, g->len, id, g->frame, g->ts};
}

/* --- Lost time -------------------------------------------------------------------------------- */

static struct lost_span span_of(const struct iwarp_repair *r)
{
    ns_t end = r->end > r->from ? r->end : r->from, sent = r->sent > r->from ? r->sent : r->from;

    return (struct lost_span){r->from, sent < end ? sent : end, end, r->dups > 0};
}

/* What [from, to) has of [a, b). */
static ns_t part_of(ns_t a, ns_t b, ns_t from, ns_t to)
{
    a = a > from ? a : from;
    b = b < to ? b : to;
    return b > a ? b - a : 0;
}

static void add_span(const struct lost_span *s, ns_t from, ns_t to, ns_t lost[IWARP_TIMES])
{
    lost[s->dups ? IWARP_TIME_DUPS : IWARP_TIME_TIMER] += part_of(s->from, s->sent, from, to);
    lost[IWARP_TIME_RESEND] += part_of(s->sent, s->to, from, to);
}

/* The loss that waited for its ACK is over. */
static void note_loss(struct repairs *r, struct iwarp_sent *sent)
{
    const struct lost_span s = span_of(&r->repair);

    r->loss[r->n_losses++ % IWARP_LOSSES] = s;
    r->until = s.to;
    add_span(&s, s.from, s.to, sent->lost);
}

void repairs_ack(struct iwarp *w, struct tcp_conn *t, enum iwarp_side side, uint32_t ack, bool bare)
{
    struct repairs *r = &t->side[side].repairs;
    const struct stream *s = &t->side[side].stream;

    take_time(t, side, ack, w->p->frame->ts);
    if (s->have_acked && ack == s->acked)
        r->dups += bare;
    else if (!s->have_acked || seq_diff(ack, s->acked) > 0)
        r->dups = 0;
    if (!r->open || seq_diff(ack, r->end) < 0)
        return;
    r->open = false;
    r->repair.ack = w->p->frame->number;
    r->repair.end = w->p->frame->ts;
    note_loss(r, &t->c.sent[side]);
    iwarp_repair_over(w, &r->repair);
}

void iwarp_lost(const struct iwarp_conn *c, enum iwarp_side side, ns_t lost[IWARP_TIMES])
{
    const struct repairs *r = &((const struct tcp_conn *)c)->side[side].repairs;
    const struct lost_span open = span_of(&r->repair);

    memcpy(lost, c->sent[side].lost, sizeof c->sent[side].lost);
    if (r->open)
        add_span(&open, open.from, open.to, lost);
}

void iwarp_lost_between(const struct iwarp_conn *c, enum iwarp_side side, ns_t from, ns_t to, ns_t lost[IWARP_TIMES])
{
    const struct repairs *r = &((const struct tcp_conn *)c)->side[side].repairs;
    const struct lost_span open = span_of(&r->repair);
    uint32_t n = min_u32(r->n_losses, IWARP_LOSSES);

    memset(lost, 0, IWARP_TIMES * sizeof *lost);
    for (uint32_t i = 0; i < n; i++)
        add_span(&r->loss[i], from, to, lost);
    if (r->open)
        add_span(&open, from, to, lost);
}

bool repairs_open(const struct tcp_conn *t, enum iwarp_side side, struct iwarp_repair *r)
{
    *r = t->side[side].repairs.repair;
    return t->side[side].repairs.open;
}

void iwarp_again(struct iwarp *w, struct tcp_conn *t, enum iwarp_side side, const struct seq_span *at)
{
    rdmap_again(t, side, at);
    for (unsigned i = 0; i < w->n_subs && !w->muted; i++)
        if (w->sub[i].again)
            w->sub[i].again(w->sub[i].user, &t->c, side, at->from, at->to);
}
