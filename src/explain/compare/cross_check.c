/* layer 3 (explain): compare taps: which packet another tap has or lacks tells what was lost, and where. */
#include "src/explain/compare/answers.h"
#include "src/explain/compare/compare.h"
#include "src/explain/compare/copies.h"
#include "src/explain/compare/damaged.h"

#define FRESH_SETTLED 256 /* PSNs beyond an incident: nothing more comes about it at a tap */
#define FRESH_OLD     352 /* and it is to be compared, or kept, before a tap forgets it (NOTED_RESPONSES) */

bool explain_same_flow(struct explainer *x, uint32_t a, uint32_t b)
{
    const struct flow *f = conn_flow_at(observer_conns(x->observer), a),
                      *g = conn_flow_at(observer_conns(x->observer), b);

    return g->tap != f->tap && g->dqpn == f->dqpn && is_same_way(&g->src, &g->dst, &f->src, &f->dst);
}

uint32_t explain_elsewhere(struct explainer *x, uint32_t flow, uint32_t i)
{
    uint32_t k = conn_flow_alike(observer_conns(x->observer), flow, i);

    return k == flow ? conn_flow_alike(observer_conns(x->observer), flow, k + 1) : k;
}

bool explain_knows_answers(const struct explainer *x, uint32_t flow)
{
    const struct flow *f = conn_flow_at(observer_conns(x->observer), flow);

    for (uint32_t i = 0; i < x->n_unmatched; i++) {
        const struct unmatched *s = &x->unmatched[i];
        if (s->tap == f->tap && is_same_way(&s->src, &s->dst, &f->dst, &f->src))
            return false;
    }
    return x->n_unmatched < UNMATCHED;
}

/* What the tap had not seen by then (until_then.c) it did not see later either. */
static void prove_until_then(struct incident *st, uint32_t tap)
{
    struct fact *lacked = incident_fact(st, SENTENCE_TAP_LACKED), *taps = incident_fact(st, SENTENCE_TAPS_UNTIL_THEN);

    if (!lacked || lacked->tap != tap)
        return;
    lacked->sentence = SENTENCE_TAP_LACKS;
    if (taps)
        taps->sentence = SENTENCE_TAPS_BETWEEN;
    st->certainty = CERTAIN;
    st->proved = true;
    copies_retransmission_gone(st, (unsigned)(lacked - st->facts));
}

/* A retransmission was lost. The other tap keeps the first and the latest copy only: compare with those. Of a damaged
 * one it keeps no ICRC: that is it if the tap has all others. */
static void compare_copy(struct explainer *x, struct incident *st, const struct sent *s, const struct sent *o,
                         uint32_t other)
{
    bool comparable = o && st->icrc && o->icrc_first && o->copies <= 2 && !o->same;

    if (!comparable || st->icrc == o->icrc_first || st->icrc == o->icrc)
        return;
    if (damaged_at(x, other, st->psn, false)) {
        if (s && !s->same && s->copies == o->copies + 1)
            damaged_compare(x, st, other, 1);
        return;
    }
    if (st->passed) {
        prove_until_then(st, fact_tap(copies_tap(x, other)));
        return;
    }
    st->proved = true;
    copies_between(x, st, st->flow, other);
    incident_add(st, SAY(TAP_LACKS, .lost = st->frames[0], .tap = st->missed));
    copies_retransmission_gone(st, st->n_facts - 1u);
}

/* One tap has a copy of the packet that is missing at the other one: it was lost between them. */
static void found_between(struct explainer *x, struct incident *st, uint32_t other, struct missing_copy copy)
{
    uint32_t tap = fact_tap(copies_tap(x, other));

    incident_add(st, copy.other ? SAY(TAP_HAS, .lost = copy.frame, .tap = tap)
                                : SAY(TAP_LACKS, .lost = copy.frame, .tap = tap));
    copies_request_gone(x, st, copy.other ? other : st->flow, copy.sent);
    st->place = copy.other ? PLACE_BEFORE : PLACE_AFTER;
    copies_between(x, st, copy.other ? other : st->flow, copy.other ? st->flow : other);
    st->cause = st->cause == CAUSE_CANNOT_TELL ? CAUSE_PACKET_LOSS : st->cause;
    copies_only_lost(st, copies_tap(x, copy.other ? other : st->flow), copy.frame);
    st->proved = true;
}

/* How many requests an incident may be about: all that its tap had seen when the ACK timer expired, or one. */
static unsigned compared_requests(const struct incident *st)
{
    uint32_t sent = (st->end - st->psn) & PSN_MASK;

    return st->cause != CAUSE_LOST_LAST_PACKET || !sent ? 1 : sent < BEHIND_COMPARED ? sent : BEHIND_COMPARED;
}

/* The first copy that one of two taps lacks, of the requests that an incident may be about: `n`, and what the other tap
 * saw behind them before the retransmission. */
static struct missing_copy missing_of(const struct explainer *x, const struct incident *st, struct req_dir *a,
                                      struct req_dir *b, unsigned n)
{
    struct missing_copy copy = copies_first_missing(x, a, b, st->psn, n);
    const struct sent *again = req_dir_sent(b, st->psn);

    if (copy.frame || !again || again->copies < 2 || st->cause != CAUSE_LOST_LAST_PACKET)
        return copy;
    copy = copies_first_missing(x, a, b, psn_add(st->psn, n), BEHIND_COMPARED - n);
    return copy.other && copy.frame < again->last ? copy : (struct missing_copy){0};
}

/* True if the tap of `o` lacks one copy of request `s`, which is frame `frame`: the first of two, or the second of
 * three. */
static bool is_copy_missing(const struct sent *s, const struct sent *o, uint32_t frame)
{
    bool one_less = s->copies == o->copies + 1 && !s->same && !o->same, latest = s->icrc && s->icrc == o->icrc,
         first = s->icrc_first == o->icrc_first;

    if (!one_less || !latest)
        return false;
    return s->copies == 2 ? frame == s->first && !first
                          : s->copies == 3 && first && frame > s->first && frame < s->last;
}

/* A retransmission had no response at this tap, and the other tap lacks it, although it has the copies before and
 * behind it: it was lost between the two.
 *
 *   this tap     5 . RNR NAK 5    5' .........  5"
 *   other tap    5 . RNR NAK 5                  5"
 */
static bool compare_try(struct explainer *x, struct incident *st, const struct sent *s, const struct sent *o,
                        uint32_t other)
{
    bool damaged = x->notes[other] && damaged_frame(x->notes[other], st->psn);
    uint32_t frame = incident_frame_of(st, ROLE_LOST);

    if (st->cause != CAUSE_LOST_LAST_PACKET || !s || !o || damaged || s->copies != 3 || !is_copy_missing(s, o, frame))
        return false;
    st->place = PLACE_AFTER;
    st->proved = true;
    copies_between(x, st, st->flow, other);
    copies_only_lost(st, st->tap, frame);
    incident_add(st, SAY(TAP_LACKS, .lost = frame, .tap = fact_tap(copies_tap(x, other))));
    return true;
}

/* A request was lost, or its response: find out from the other tap which. */
static void compare_loss(struct explainer *x, struct incident *st, uint32_t other)
{
    struct req_dir *a = observer_req_dir(x->observer, st->flow), *b = observer_req_dir(x->observer, other);
    unsigned n = compared_requests(st);
    struct missing_copy copy;

    if (st->repeated) {
        compare_copy(x, st, req_dir_sent(a, st->psn), req_dir_sent(b, st->psn), other);
        return;
    }
    if (answers_compare_naks(x, st, other, n) || damaged_compare(x, st, other, n))
        return;
    if (compare_try(x, st, req_dir_sent(a, st->psn), req_dir_sent(b, st->psn), other))
        return;
    copy = missing_of(x, st, a, b, n);
    if (copy.frame && copies_pass_first(x, copy.other ? st->flow : other, copy.other ? other : st->flow))
        return; /* what is nearer to the responder has it: the other capture lacks it */
    if (copy.frame)
        found_between(x, st, other, copy);
    else if (req_dir_sent(b, st->psn))
        answers_compare(x, st, req_dir_sent(a, st->psn), req_dir_sent(b, st->psn), other, n);
}

/* The incident about the loss of the packet of `st`; NULL if there is none. */
static struct incident *known_loss(struct explainer *x, const struct incident *st)
{
    for (uint32_t i = 0; i < x->n; i++) {
        struct incident *o = &x->incidents[i];
        bool lost_request = o->cause == CAUSE_PACKET_LOSS && o->has_psn && o->is_request && o->place == PLACE_BEFORE;
        if (o != st && lost_request && o->flow == st->flow && o->psn == st->psn)
            return o;
    }
    return NULL;
}

/* How the first copy `s` that the tap of `other` saw stands to the first one `o` that the tap of `here` saw. */
static enum first_copies first_copies(const struct explainer *x, const struct req_dir *here, const struct sent *o,
                                      uint32_t other, const struct sent *s)
{
    struct seen_copies a = copies_of_request(x, here, o),
                       b = copies_of_request(x, observer_req_dir(x->observer, other), s);

    return copies_compare(x, &a, &b);
}

/* A packet captured late here may be reordered or a retransmission. It is a retransmission if the other tap saw a
 * different first copy, which never passed here. */
static void compare_late(struct explainer *x, struct incident *st, struct req_dir *here, const struct sent *there,
                         uint32_t other)
{
    const struct sent *o = req_dir_sent(here, st->psn);
    struct incident *loss = known_loss(x, st);
    bool came = o && o->icrc_first != o->icrc && o->icrc == there->icrc_first; /* as the latest copy */

    if (!o || came || first_copies(x, here, o, other, there) != FIRST_EARLIER)
        return;
    st->cause = CAUSE_PACKET_LOSS;
    st->proved = true;
    copies_between(x, st, other, st->flow);
    st->moot = loss != NULL;
    if (loss)
        loss->again += st->again;
    incident_frame_at(st, ROLE_LOST, copies_tap(x, other), there->first);
    incident_is(st, SAY(RESENT_LATE, .psn = st->psn, .again = o->first, .other = there->first,
                        .tap = fact_tap(copies_tap(x, other))));
}

/* True if the other tap is closer to the responder: the packets before `psn` that both taps have pass it later.
 * Undecided (false) if the times differ by more than packets take between two taps, as the clocks then differ. */
static bool is_behind(struct req_dir *here, struct req_dir *there, uint32_t psn)
{
    for (unsigned i = 1; i <= BEHIND_LOOK; i++) {
        uint32_t near = psn_add(psn, PSN_MASK + 1 - i);
        const struct sent *s = req_dir_sent(here, near), *o = req_dir_sent(there, near);
        if (s && o && s->icrc_first && s->icrc_first == o->icrc_first)
            return o->ts_first > s->ts_first && o->ts_first - s->ts_first < BEHIND_MOST;
    }
    return false;
}

/* True if the other tap, further on the way, has all packets of a gap of an unreliable connection. */
static bool is_not_lost(struct req_dir *here, struct req_dir *there, const struct incident *st)
{
    for (uint32_t psn = st->psn; psn != st->end; psn = psn_add(psn, 1))
        if (!req_dir_sent(here, psn) && !req_dir_sent(there, psn))
            return false;
    return is_behind(here, there, st->psn);
}

/* The first copy of a packet was not seen here: find out whether it passed the other tap. */
static void compare_missed(struct explainer *x, struct incident *st, struct req_dir *here, const struct sent *there,
                           uint32_t other)
{
    const struct sent *o = req_dir_sent(here, st->psn);
    bool late = copies_are_one(x, st->flow, other, there, st->psn),
         neither = there->late && o && first_copies(x, here, o, other, there) == FIRST_SAME;
    struct fact f = {.other = there->first, .tap = fact_tap(copies_tap(x, other))};

    if (st->facts[0].sentence == SENTENCE_SENT_AGAIN_MISSED)
        return; /* the copy missing here is a retransmission: the first copy at the other tap proves nothing about it */
    if (o && copies_are_alike(there))
        return; /* which of them the copy here is the taps do not show */
    f.sentence = neither       ? SENTENCE_TAP_NO_SOONER
                 : late        ? SENTENCE_TAP_NOT_LOST
                 : st->missing ? SENTENCE_TAP_LOST_OR_LEFT_OUT /* unreliable: no retransmission shows it */
                               : SENTENCE_TAP_LOST;
    incident_add(st, &f);
    if (neither)
        return;
    (late ? copies_request_late : copies_request_gone)(x, st, other, there);
    incident_frame_at(st, ROLE_LOST, copies_tap(x, other), there->first);
    st->cause = late ? CAUSE_REORDER : st->cause;
    copies_between(x, st, other, st->flow);
    st->proved = true;
}

/* Nothing that passed here solicits a response: find out whether a packet that does passed the other tap. */
static void compare_unseen(struct explainer *x, struct incident *st, struct req_dir *here, struct req_dir *there,
                           uint32_t other)
{
    struct missing_copy copy = copies_first_missing(x, here, there, st->psn, BEHIND_COMPARED);

    if (copy.frame && copy.other)
        found_between(x, st, other, copy);
}

static void compare_request(struct explainer *x, struct incident *st, uint32_t other)
{
    struct req_dir *a = observer_req_dir(x->observer, st->flow), *b = observer_req_dir(x->observer, other);
    const struct sent *s = b ? req_dir_sent(b, st->psn) : NULL;

    if (!a || !b || !b->have_next || (st->repeated && st->place == PLACE_BEFORE))
        return;
    if (st->missing && s && is_not_lost(a, b, st)) {
        st->moot = true; /* it passed: only this capture lacks it */
    } else if (st->place == PLACE_BEFORE && s && st->cause == CAUSE_PACKET_LOSS) {
        compare_missed(x, st, a, s, other);
    } else if (st->place == PLACE_BEFORE && s && st->cause == CAUSE_REORDER) {
        compare_late(x, st, a, s, other);
    } else if (st->place == PLACE_BEFORE && st->cause == CAUSE_LOST_LAST_PACKET) {
        compare_unseen(x, st, a, b, other);
    } else if (st->place == PLACE_AFTER && st->cause == CAUSE_REORDER) {
        if (!s || !s->late || !copies_are_one(x, st->flow, other, s, st->psn))
            return;
        incident_add(st, SAY(TAP_OVERTAKEN, .other = s->first, .tap = fact_tap(copies_tap(x, other))));
        copies_request_late(x, st, st->flow, req_dir_sent(a, st->psn));
        incident_frame_at(st, ROLE_LOST, copies_tap(x, other), s->first);
        copies_between(x, st, st->flow, other);
        st->proved = true;
    } else if (st->place != PLACE_BEFORE && (st->cause == CAUSE_PACKET_LOSS || st->cause == CAUSE_LOST_LAST_PACKET ||
                                             st->cause == CAUSE_CANNOT_TELL)) {
        compare_loss(x, st, other);
    }
}

/* A responder that is silent at this tap: its responses were seen at the other tap. */
static void compare_silence(struct explainer *x, struct incident *st, uint32_t other)
{
    const struct req_dir *a = observer_req_dir(x->observer, st->flow), *b = observer_req_dir(x->observer, other);

    bool answered = a && b && b->have_una && (!a->have_una || psn_diff(b->una, a->una) > 0);

    if (!answered || !explain_knows_answers(x, st->flow))
        return;
    st->proved = true;
    st->moot = st->cause == CAUSE_SILENT_PEER;
    incident_frame_at(st, ROLE_ANSWER, copies_tap(x, other), b->una_frame);
    incident_add(st, SAY(TAP_ANSWER, .answer = b->una_frame, .tap = fact_tap(copies_tap(x, other))));
}

#define REQUESTED_MOST 8 /* copies of a READ that are looked at */

/* Frame of the first READ or atomic retransmission that requests the response with this PSN again; 0: none. */
static uint32_t read_retransmission(struct req_dir *h, uint32_t psn)
{
    const struct read_req *a = h ? req_dir_read(h, psn, 0) : NULL;
    const struct sent *s = a ? req_dir_sent(h, a->psn) : NULL;
    uint32_t again = s && !a->again && s->copies > 1 ? s->last : 0;

    for (unsigned n = 0; a && n < REQUESTED_MOST; a = req_dir_read(h, psn, ++n))
        again = a->again ? a->frame : again;
    return again;
}

/* A READ was requested again, and that request had no response at this tap: true if it never came to the other one. */
static bool compare_request_again(struct explainer *x, struct incident *st, uint32_t other)
{
    struct req_dir *a = observer_req_dir(x->observer, st->flow), *b = observer_req_dir(x->observer, other);
    const struct read_req *read = a && b ? req_dir_read(a, st->psn, 0) : NULL;
    const struct sent *s = read ? req_dir_sent(a, read->psn) : NULL, *o = s ? req_dir_sent(b, read->psn) : NULL;
    bool open = st->facts[0].sentence == SENTENCE_RESPONSE_NOT_SEEN && st->place == PLACE_UNKNOWN,
         damaged = o && x->notes[other] && damaged_frame(x->notes[other], read->psn);

    if (!open || !o || damaged || !is_copy_missing(s, o, st->facts[0].other))
        return false;
    st->place = PLACE_AFTER;
    st->proved = true;
    copies_between(x, st, st->flow, other);
    incident_unframe(st, st->facts[0].other);
    incident_frame(st, ROLE_LOST, st->facts[0].other);
    incident_add(st, SAY(TAP_LACKS, .lost = st->facts[0].other, .tap = fact_tap(copies_tap(x, other))));
    return true;
}

/* The first response that this tap saw is the one that passed the other tap before the retransmission on ACK timeout:
 * it was late. */
static void is_late_response(struct explainer *x, struct incident *st, uint32_t other, const struct noted_response *r)
{
    const struct noted_response *own = response_slot(x->notes[st->flow], st->psn);

    st->cause = CAUSE_EARLY_TIMEOUT;
    st->place = PLACE_UNKNOWN;
    st->proved = false;
    incident_frame(st, ROLE_ANSWER, own->first);
    incident_is(st, SAY(LATE_RESPONSE, .psn = st->psn, .answer = own->first, .other = r->first,
                        .tap = fact_tap(copies_tap(x, other))));
}

/* A response that this tap saw in its turn passed the other tap before the one that was due first there: that one was
 * reordered between the two, and its requester dropped what came before it. False: it did not. */
static bool is_overtaker(struct explainer *x, struct incident *st, uint32_t other, const struct noted_response *r)
{
    uint32_t due = psn_prev(st->psn), again = read_retransmission(observer_req_dir(x->observer, other), st->psn),
             asked = incident_frame_of(st, ROLE_RETRANSMISSION);
    const struct noted_response *own = response_noted(x->notes[st->flow], st->psn),
                                *here = response_noted(x->notes[st->flow], due),
                                *there = response_noted(x->notes[other], due);

    if (!own || !here || !there || !answers_are_one(x, st->flow, other, r))
        return false;
    if (here->first > own->first || there->first < r->first || (again && there->first > again))
        return false;
    st->cause = CAUSE_REORDER;
    st->n_frames = 0;
    incident_frame(st, ROLE_LOST, here->first);
    incident_frame(st, ROLE_RETRANSMISSION, asked);
    incident_frame_at(st, ROLE_LOST, copies_tap(x, other), there->first);
    incident_concerns(st, due, 0, false);
    copies_between(x, st, st->flow, other);
    incident_is(st, SAY(RESPONSE_OVERTAKEN, .psn = due, .lost = here->first));
    st->proved = true;
    return true;
}

/* The same comparison for a lost response. */
static void compare_response(struct explainer *x, struct incident *st, uint32_t other)
{
    const struct noted_response *r = response_noted(x->notes[other], st->psn);
    uint32_t seen = r ? r->first : 0, again;
    struct fact f = {.other = seen, .tap = fact_tap(copies_tap(x, other))};

    if (compare_request_again(x, st, other))
        return;
    if (seen && st->place == PLACE_AFTER && is_overtaker(x, st, other, r))
        return;
    if (!seen || st->repeated || st->place != PLACE_BEFORE || st->cause == CAUSE_BAD_ICRC)
        return;
    if (st->cause == CAUSE_REORDER && !answers_are_one(x, st->flow, other, r))
        return; /* the copy that came late here may be a repeated one */
    again = read_retransmission(observer_req_dir(x->observer, other), st->psn);
    st->proved = !again || seen < again;
    if (st->proved && answer_came_later(x, st, other, r)) {
        is_late_response(x, st, other, r);
        return;
    }
    f.sentence = !st->proved                  ? SENTENCE_TAP_NO_SOONER
                 : st->cause == CAUSE_REORDER ? SENTENCE_TAP_OVERTAKEN
                                              : SENTENCE_TAP_LOST;
    if (st->proved)
        copies_between(x, st, other, st->flow);
    incident_frame_at(st, ROLE_LOST, copies_tap(x, other), seen);
    incident_add(st, &f);
    if (st->proved) {
        copies_response_gone(x, st, other, r);
        st->gone.how = f.sentence == SENTENCE_TAP_LOST ? GONE_LOST : GONE_LATE;
    }
}

/* Duplicates: find out whether the other tap saw the first of them only once. */
static void compare_copies(struct explainer *x, struct incident *st, uint32_t other)
{
    struct req_dir *b = observer_req_dir(x->observer, other);
    const struct sent *o = b && b->have_next ? req_dir_sent(b, st->psn) : NULL;

    bool sure = st->facts[0].sentence != SENTENCE_REQUESTS_TWICE_OR_AGAIN || copies_pass_first(x, other, st->flow);

    if (!o || o->same || o->copies > 1 || !sure)
        return; /* it may have been sent twice, and one copy lost between the taps */
    st->proved = true;
    incident_add(st, SAY(TAP_ONCE, .psn = st->psn, .other = o->first, .tap = fact_tap(copies_tap(x, other))));
}

bool explain_lost_between(struct explainer *x, uint32_t flow, uint32_t psn)
{
    for (uint32_t k = 0; (k = explain_elsewhere(x, flow, k)) != FLOW_NONE; k++) {
        struct missing_copy copy =
            copies_lost_between(x, observer_req_dir(x->observer, flow), observer_req_dir(x->observer, k), psn);
        if (copy.frame && !copy.other)
            return true;
    }
    return false;
}

bool explain_lost_among(struct explainer *x, uint32_t flow, uint32_t psn, uint32_t end)
{
    struct req_dir *a = observer_req_dir(x->observer, flow), *b;
    uint32_t n = (end - psn) & PSN_MASK;

    for (uint32_t k = 0; a && (k = explain_elsewhere(x, flow, k)) != FLOW_NONE; k++)
        if ((b = observer_req_dir(x->observer, k)) != NULL &&
            copies_first_missing(x, a, b, psn, n < BEHIND_COMPARED ? n : BEHIND_COMPARED).frame)
            return true;
    return false;
}

/* How the packet of an incident is compared with another tap. */
typedef void comparison(struct explainer *x, struct incident *st, uint32_t other);
static comparison *comparison_of(const struct incident *st)
{
    return st->cause == CAUSE_BAD_ICRC ? damaged_between : st->is_request ? compare_request : compare_response;
}

/* --- Before a tap forgets ---------------------------------------------------------------------- */

/* True if requests at a tap went on by `n` PSNs from that of an incident. */
static bool is_past(const struct req_dir *h, const struct incident *st, int n)
{
    return h && h->have_next && psn_diff(h->next, st->psn) >= n;
}

static bool is_comparable(const struct incident *st)
{
    bool failed = st->cause == CAUSE_RETRY_EXCEEDED || st->cause == CAUSE_SILENT_PEER;

    bool response = st->cause == CAUSE_LOST_READ_RESPONSE || st->cause == CAUSE_BAD_ICRC;

    return st->has_psn && (st->is_request || response) && !failed && !st->proved;
}

/* How another tap stands to an incident: it did not get there yet, or forgot it; its requests went on; they went on so
 * far that it forgot responses, but for what was kept. */
enum tap_stand { STANDS_BEFORE, STANDS_BEHIND, STANDS_FAR };
static enum tap_stand stand_of(struct explainer *x, const struct incident *st, uint32_t flow)
{
    const struct req_dir *h = observer_req_dir(x->observer, flow);

    if (!is_past(h, st, FRESH_SETTLED))
        return STANDS_BEFORE;
    if (!is_past(h, st, NOTED_RESPONSES))
        return STANDS_BEHIND;
    return !is_past(h, st, TRACK_SENT) || kept_at(x, st, flow) ? STANDS_FAR : STANDS_BEFORE;
}

/* The taps that an incident can be compared with: how many, up to what incident.compared_with can hold, and how many of
 * them are about as far as its own. */
struct stands {
    unsigned n, near, all; /* all: there, or not yet */
};
static struct stands stands_of(struct explainer *x, const struct incident *st)
{
    struct stands s = {0};

    for (uint32_t k = 0; (k = explain_elsewhere(x, explain_requests_of(x, st), k)) != FLOW_NONE; k++) {
        enum tap_stand at = stand_of(x, st, k);
        s.n += at != STANDS_BEFORE && s.n < UINT8_MAX;
        s.near += at == STANDS_BEHIND;
        s.all++;
    }
    return s;
}

/* Compare an incident with all taps that were there. Only a proof counts: all else, and what one tap takes for
 * reordered, depends on what else is known at the end of the capture. */
static void compare_early(struct explainer *x, struct incident *st)
{
    const struct incident before = *st;

    st->own = st->n_frames;
    kept_swap(x, st, true);
    for (uint32_t k = 0; !st->proved && (k = explain_elsewhere(x, explain_requests_of(x, st), k)) != FLOW_NONE; k++)
        if (stand_of(x, &before, k) != STANDS_BEFORE)
            comparison_of(st)(x, st, k);
    explain_between(x, st);
    kept_swap(x, st, false);
    if (st->moot || (st->proved && (st->cause != CAUSE_REORDER || before.cause == CAUSE_PACKET_LOSS)))
        st->compared = true;
    else
        *st = before;
}

/* Compare an incident if it is old enough at the tap of `flow`, its own or another one; true: it is fresh no more. What
 * its tap saw is kept while other taps are not there yet: all of them, or those behind the ones that are far ahead. */
static bool is_done(struct explainer *x, struct incident *st, uint32_t flow)
{
    uint32_t requests = explain_requests_of(x, st);
    struct req_dir *own = observer_req_dir(x->observer, requests);
    struct stands at;

    if (!is_past(observer_req_dir(x->observer, flow), st, FRESH_OLD) || !is_past(own, st, FRESH_SETTLED))
        return false;
    at = is_comparable(st) ? stands_of(x, st) : (struct stands){0};
    if (at.n > st->compared_with) {
        st->compared_with = (uint8_t)at.n;
        compare_early(x, st);
        kept_compared(x, st);
    }
    if (st->compared || (at.near && at.n == at.all))
        return true;
    if (is_comparable(st) && !st->kept && requests == st->flow && is_past(own, st, FRESH_OLD) &&
        !is_past(own, st, TRACK_SENT))
        kept_take(x, st, own);
    return !st->kept && is_past(own, st, TRACK_SENT);
}

/* The incidents of one list that are about requests of the flow, or responses to them. */
static void compare_list(struct explainer *x, uint32_t flow, uint32_t *at)
{
    while (*at) {
        struct incident *st = &x->incidents[*at - 1];
        uint32_t of = st->flow == FLOW_NONE ? FLOW_NONE : explain_requests_of(x, st);
        bool concerns = of == flow || (of != FLOW_NONE && explain_same_flow(x, of, flow));
        if (concerns && is_done(x, st, flow))
            *at = st->next_fresh;
        else
            at = &st->next_fresh;
    }
}

void explain_fresh(struct explainer *x, uint32_t flow)
{
    const struct flow *f = conn_flow_at(observer_conns(x->observer), flow);
    uint32_t *own = fresh_of(x, f->dqpn),
             *back = f->peer == FLOW_NONE ? own : fresh_of(x, conn_flow_at(observer_conns(x->observer), f->peer)->dqpn);

    compare_list(x, flow, own);
    if (back != own)
        compare_list(x, flow, back);
}

/* --- The end ---------------------------------------------------------------------------------- */

void explain_taps(struct explainer *x)
{
    for (uint32_t i = 0; i < x->n; i++) {
        struct incident *st = &x->incidents[i];
        bool silent = st->cause == CAUSE_RETRY_EXCEEDED || st->cause == CAUSE_SILENT_PEER,
             copies = st->cause == CAUSE_DUPLICATE && st->is_request,
             open = st->flow != FLOW_NONE && !st->compared &&
                    (st->has_psn || silent || copies || st->cause == CAUSE_BAD_ICRC);
        uint32_t flow;
        if (!st->compared)
            st->own = st->n_frames;
        if (st->cause == CAUSE_RETRY_EXCEEDED && st->flow != FLOW_NONE && st->has_psn)
            explain_unreached(x, st);
        kept_swap(x, st, true);
        flow = open ? explain_requests_of(x, st) : FLOW_NONE;
        for (uint32_t k = 0; open && !st->proved && (k = explain_elsewhere(x, flow, k)) != FLOW_NONE; k++)
            (silent ? compare_silence : copies ? compare_copies : comparison_of(st))(x, st, k);
        explain_between(x, st);
        kept_swap(x, st, false);
    }
}
