/* layer 3 (explain): what another tap tells of what went wrong: which packet was lost, and where. */
#include "src/explain/explain_impl.h"

#include <stdio.h>

bool explain_same_flow(struct explainer *x, uint32_t a, uint32_t b)
{
    const struct flow *f = conn_flow_at(observer_conns(x->observer), a),
                      *g = conn_flow_at(observer_conns(x->observer), b);

    return g->tap != f->tap && g->dqpn == f->dqpn && conn_addr_eq(&g->src, &f->src) && conn_addr_eq(&g->dst, &f->dst);
}

/* The same flow at another tap, from index `i` on; FLOW_NONE if there is none. */
static uint32_t same_elsewhere(struct explainer *x, uint32_t flow, uint32_t i)
{
    for (; i < conn_counts(observer_conns(x->observer)).flows; i++)
        if (explain_same_flow(x, flow, i))
            return i;
    return FLOW_NONE;
}

static uint32_t tap_of(struct explainer *x, uint32_t flow)
{
    return conn_flow_at(observer_conns(x->observer), flow)->tap;
}

static const char *other_tap(struct explainer *x, const struct statement *st, uint32_t other)
{
    struct conn_table *t = observer_conns(x->observer);

    return tap_text(x, conn_flow_at(t, st->flow)->tap, conn_flow_at(t, other)->tap);
}

/* A copy that one of two taps has and the other does not. */
struct lone {
    uint32_t frame; /* 0: they agree */
    bool other;     /* the other one has it */
};

static struct lone lost_between(struct req_dir *a, struct req_dir *b, uint32_t psn)
{
    const struct sent *s = req_dir_sent(a, psn), *o = req_dir_sent(b, psn);

    if (!s || !s->icrc_first)
        return (struct lone){0};
    if (!o)
        return (struct lone){s->first, false};
    if (s->icrc_first == o->icrc_first || !o->icrc_first)
        return (struct lone){0};
    return s->ts_first < o->ts_first ? (struct lone){s->first, false} : (struct lone){o->first, true};
}

/* The answer to one of `n` requests, that the other tap saw before its latest copy; 0 for none. */
static uint32_t answer_before(const struct told *t, const struct sent *o, unsigned n)
{
    for (unsigned i = 0; t && o->copies > 1 && i < n; i++) {
        uint32_t psn = psn_add(o->psn, i), at = psn % TOLD_RESPONSES;
        if (t->rsp[at].psn == psn && t->rsp[at].first < o->last)
            return t->rsp[at].first;
    }
    return 0;
}

/* The other tap has the request `s` as well, as `o`: what it says of the answer. */
static void compare_answer(struct explainer *x, struct statement *st, const struct sent *s, const struct sent *o,
                           uint32_t other, unsigned n, struct buf *text)
{
    uint32_t answer = answer_before(x->told[other], o, n), here = s ? answer_before(x->told[st->flow], s, n) : 0;
    const char *tap = other_tap(x, st, other);

    statement_frame_at(st, tap_of(x, other), o->first);
    if (o->late) {
        buf_printf(text, "It is frame %u %s, overtaken by later ones.", o->first, tap);
        st->cause = CAUSE_REORDER;
        st->proved = true;
    } else if (here) {
        buf_printf(text, "It is frame %u %s, too.", o->first, tap);
    } else if (answer) {
        buf_printf(text, "It is frame %u %s, and was answered in frame %u: the answer was lost between the two.",
                   o->first, tap, answer);
        statement_frame_at(st, tap_of(x, other), answer);
        st->proved = true;
        st->cause = CAUSE_LOST_ACK;
        st->where = WHERE_BEFORE;
    } else {
        buf_printf(text, "It is frame %u %s, and no answer was seen there either.", o->first, tap);
    }
}

/* A later copy than the first one was lost: whether the other tap has it, of which it remembers the first and the
 * latest. */
static void compare_copy(struct explainer *x, struct statement *st, const struct sent *o, const char *tap)
{
    char text[100];

    if (!o || !st->icrc || !o->icrc_first || o->copies > 2 || o->same || st->icrc == o->icrc_first ||
        st->icrc == o->icrc)
        return;
    snprintf(text, sizeof text, "Frame %u is not there %s: it was lost between the two.", st->frames[0], tap);
    st->proved = true;
    statement_add(x, st, text);
}

/* A request was lost, or its answer: the other tap may know which packet it was. */
static void compare_loss(struct explainer *x, struct statement *st, uint32_t other, unsigned n)
{
    const char *tap = other_tap(x, st, other);
    struct req_dir *a = observer_req_dir(x->observer, st->flow), *b = observer_req_dir(x->observer, other);
    const struct told *t = x->told[other];
    struct buf text = {0};
    struct lone lone = {0};

    if (st->repeated) {
        compare_copy(x, st, req_dir_sent(b, st->psn), tap);
        return;
    }
    for (unsigned i = 0; i < n && !lone.frame; i++)
        lone = lost_between(a, b, psn_add(st->psn, i));
    for (unsigned i = 0; t && i < TOLD_BAD; i++)
        if (t->bad[i].psn != UINT32_MAX && psn_in(t->bad[i].psn, st->psn, n)) {
            struct statement *o = statement_at(x, t->bad[i].statement);
            if (o && !o->has_psn)
                statement_concerns(o, st->psn, 0, true);
            buf_printf(&text, "PSN %u is frame %u %s, damaged.", t->bad[i].psn, t->bad[i].frame, tap);
            statement_frame_at(st, tap_of(x, other), t->bad[i].frame);
            st->cause = CAUSE_BAD_ICRC;
            st->where = WHERE_AFTER;
            st->proved = true;
        }
    if (text.len == 0 && lone.frame) {
        if (lone.other)
            buf_printf(&text, "Frame %u %s is missing at this tap: it was lost between the two.", lone.frame, tap);
        else
            buf_printf(&text, "Frame %u is not there %s: it was lost between the two.", lone.frame, tap);
        st->where = lone.other ? WHERE_BEFORE : WHERE_AFTER;
        st->cause = st->cause == CAUSE_CANNOT_TELL ? CAUSE_PACKET_LOSS : st->cause;
        statement_frame_at(st, tap_of(x, lone.other ? other : st->flow), lone.frame);
        st->proved = true;
    } else if (text.len == 0 && req_dir_sent(b, st->psn)) {
        compare_answer(x, st, req_dir_sent(a, st->psn), req_dir_sent(b, st->psn), other, n, &text);
    }
    if (text.len)
        statement_add(x, st, buf_str(&text));
    buf_free(&text);
}

/* Whether the first copy that came to `a` is the first one that `b` saw, and not one sent again: then it was only late.
 * Senders whose repetitions are the same to the last bit leave that open. */
static bool same_copy(struct req_dir *a, const struct sent *s, uint32_t psn)
{
    const struct sent *o = req_dir_sent(a, psn);

    return o && o->icrc_first && o->icrc_first == s->icrc_first && !s->same && (s->copies == 1 || o->ts_first < s->ts);
}

/* The statement about the loss of the packet that `st` is about; NULL if there is none. */
static struct statement *told_loss(struct explainer *x, const struct statement *st)
{
    for (uint32_t i = 0; i < x->n; i++) {
        struct statement *o = &x->st[i];
        if (o != st && o->flow == st->flow && o->cause == CAUSE_PACKET_LOSS && o->has_psn && o->is_request &&
            o->psn == st->psn && o->where == WHERE_BEFORE)
            return o;
    }
    return NULL;
}

/* A packet that came late here is one sent again, if the other tap had another first copy, which never came here. */
static void compare_late(struct explainer *x, struct statement *st, struct req_dir *here, const struct sent *there,
                         uint32_t other)
{
    const char *tap = other_tap(x, st, other);
    const struct sent *o = req_dir_sent(here, st->psn);
    struct statement *loss = told_loss(x, st);

    if (!o || !o->icrc_first || !there->icrc_first || o->icrc_first == there->icrc_first ||
        o->icrc == there->icrc_first)
        return;
    st->cause = CAUSE_PACKET_LOSS;
    st->proved = true;
    st->moot = loss != NULL;
    if (loss)
        loss->again += st->again;
    statement_frame_at(st, tap_of(x, other), there->first);
    statement_say(x, st,
                  "PSN %u came late, in frame %u, sent again: its first copy, frame %u %s, was lost between the two.",
                  st->psn, o->first, there->first, tap);
}

/* A packet never passed here, or not before it was sent again: whether it passed the other tap. */
static void compare_missed(struct explainer *x, struct statement *st, struct req_dir *here, const struct sent *there,
                           uint32_t other)
{
    const char *tap = other_tap(x, st, other);
    const struct sent *o = req_dir_sent(here, st->psn);
    bool late = same_copy(here, there, st->psn), neither = there->late && o && o->icrc_first == there->icrc_first;
    char more[100];

    snprintf(more, sizeof more,
             neither ? "It is frame %u %s: it came no sooner there."
             : late  ? "The same packet is frame %u %s: it was not lost, but overtaken between the two."
                     : "It is frame %u %s: it was lost between the two.",
             there->first, tap);
    statement_add(x, st, more);
    if (neither)
        return;
    statement_frame_at(st, tap_of(x, other), there->first);
    st->cause = late ? CAUSE_REORDER : st->cause;
    st->proved = true;
}

static void compare_request(struct explainer *x, struct statement *st, uint32_t other)
{
    struct req_dir *a = observer_req_dir(x->observer, st->flow), *b = observer_req_dir(x->observer, other);
    const char *tap = other_tap(x, st, other);
    const struct sent *s = b ? req_dir_sent(b, st->psn) : NULL;
    char more[100];

    if (!a || !b || !b->have_next || (st->repeated && st->where == WHERE_BEFORE))
        return;
    if (st->where == WHERE_BEFORE && s && st->cause == CAUSE_PACKET_LOSS) {
        compare_missed(x, st, a, s, other);
    } else if (st->where == WHERE_BEFORE && s && st->cause == CAUSE_REORDER) {
        compare_late(x, st, a, s, other);
    } else if (st->where == WHERE_AFTER && s && s->late && st->cause == CAUSE_REORDER) {
        snprintf(more, sizeof more, "It is frame %u %s: it was overtaken between the two.", s->first, tap);
        statement_add(x, st, more);
        statement_frame_at(st, tap_of(x, other), s->first);
        st->proved = true;
    } else if (st->where != WHERE_BEFORE && (st->cause == CAUSE_PACKET_LOSS || st->cause == CAUSE_LOST_LAST_PACKET ||
                                             st->cause == CAUSE_CANNOT_TELL)) {
        compare_loss(x, st, other, st->cause == CAUSE_LOST_LAST_PACKET ? 64 : 1);
    }
}

/* A peer that seems silent here has answered, as the other tap saw. */
static void compare_silence(struct explainer *x, struct statement *st, uint32_t other)
{
    const struct req_dir *a = observer_req_dir(x->observer, st->flow), *b = observer_req_dir(x->observer, other);
    char more[120];

    if (!a || !b || !b->have_una || (a->have_una && psn_diff(b->una, a->una) <= 0))
        return;
    st->proved = true;
    st->moot = st->cause == CAUSE_SILENT_PEER;
    statement_frame_at(st, tap_of(x, other), b->una_frame);
    snprintf(more, sizeof more, "The answer is frame %u %s: it was lost between the two.", b->una_frame,
             other_tap(x, st, other));
    statement_add(x, st, more);
}

/* The frame in which the answer with a PSN was asked for again; 0 if it was not. */
static uint32_t asked_again(struct req_dir *h, uint32_t psn)
{
    const struct read_req *a = h ? req_dir_ask(h, psn, 0) : NULL;
    const struct sent *s = a ? req_dir_sent(h, a->psn) : NULL;

    return !s ? 0 : a->again ? s->first : s->copies > 1 ? s->last : 0;
}

/* And of a response. */
static void compare_response(struct explainer *x, struct statement *st, uint32_t other)
{
    const char *tap = other_tap(x, st, other);
    const struct told *t = x->told[other];
    uint32_t seen = t && t->rsp[st->psn % TOLD_RESPONSES].psn == st->psn ? t->rsp[st->psn % TOLD_RESPONSES].first : 0,
             again;
    char more[100];

    if (!seen || st->repeated || st->where != WHERE_BEFORE || st->cause == CAUSE_BAD_ICRC)
        return;
    again = asked_again(observer_req_dir(x->observer, other), st->psn);
    st->proved = !again || seen < again;
    if (st->proved)
        snprintf(more, sizeof more, "It is frame %u %s: it was %s between the two.", seen, tap,
                 st->cause == CAUSE_REORDER ? "overtaken" : "lost");
    else
        snprintf(more, sizeof more, "It is frame %u %s: it came no sooner there.", seen, tap);
    statement_frame_at(st, tap_of(x, other), seen);
    statement_add(x, st, more);
}

bool explain_lost_between(struct explainer *x, uint32_t flow, uint32_t psn)
{
    for (uint32_t k = 0; (k = same_elsewhere(x, flow, k)) != FLOW_NONE; k++) {
        struct lone lone = lost_between(observer_req_dir(x->observer, flow), observer_req_dir(x->observer, k), psn);
        if (lone.frame && !lone.other)
            return true;
    }
    return false;
}

void explain_taps(struct explainer *x)
{
    for (uint32_t i = 0; i < x->n; i++) {
        struct statement *st = &x->st[i];
        bool silent = st->cause == CAUSE_RETRY_EXCEEDED || st->cause == CAUSE_SILENT_PEER,
             open = st->flow != FLOW_NONE && (st->has_psn || silent);
        st->own = st->n_frames;
        if (st->cause == CAUSE_RETRY_EXCEEDED && st->flow != FLOW_NONE && st->has_psn)
            explain_unreached(x, st);
        for (uint32_t k = 0; open && !st->proved && (k = same_elsewhere(x, st->flow, k)) != FLOW_NONE; k++)
            (silent ? compare_silence : st->is_request ? compare_request : compare_response)(x, st, k);
    }
}
