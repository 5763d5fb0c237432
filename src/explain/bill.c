/* layer 3 (explain): bills: each episode of lost time (src/account/timeline.c) goes to the bill of one incident. */
#include "src/explain/compare/taps.h"
#include "src/explain/explain_impl.h"

#include <stdlib.h>

#define NOT_FOUND            UINT32_MAX
#define FIT_LOOK             64               /* incidents of a connection that an episode is compared with */
#define FIT_WITHIN           (2 * NS_PER_S)   /* they begin at most this long before the episode */
#define SAME_TROUBLE         (10 * NS_PER_US) /* trouble that begins so soon after other trouble belongs to it */
#define SLOWED_PART          4 /* CNPs that cost more than this part of CNP_LOOK slowed the requester down */
#define LOST_AGAIN_SENTENCES 2 /* failed retransmissions that get a sentence each */

/* Incidents by connection, tap and time. */
struct place_in_time {
    uint32_t conn, tap, number;
    ns_t start;
};

/* The first incident of a kind in one direction of a connection at one tap. `kind`: a cause, FAILURE, or REST plus a
 * cause; number NOT_FOUND: the place is free. */
struct first_of_kind {
    uint32_t conn, tap, flow, kind, number;
};
enum {
    FAILURE = CAUSE_COUNT, /* the connection failed, for whichever cause */
    REST,                  /* gathers what has no room for incidents of its own */
};
#define KINDS (1u << 16) /* places, a power of 2: an incident is at no more than two of them */
_Static_assert(KINDS > 4 * INCIDENTS_MAX, "most places are free");

struct billing {
    struct explainer *x;
    struct place_in_time *at;
    uint32_t n_at;
    uint32_t *of;                 /* by number of the episode: its incident */
    struct first_of_kind *firsts; /* KINDS places */
};

static int by_place(const void *a, const void *b)
{
    const struct place_in_time *p = a, *q = b;

    if (p->conn != q->conn)
        return p->conn < q->conn ? -1 : 1;
    if (p->tap != q->tap)
        return p->tap < q->tap ? -1 : 1;
    if (p->start != q->start)
        return p->start < q->start ? -1 : 1;
    return p->number < q->number ? -1 : p->number > q->number;
}

/* --- Which incident an episode belongs to ----------------------------------------------------- */

/* Whether incident `s` has `frame`, of its own tap, in its list or in one of its facts. */
static bool names(const struct incident *s, const struct episode *e, uint32_t frame)
{
    if (!frame)
        return false;
    if (incident_has(s, e->tap, frame))
        return true;
    for (unsigned i = 0; i < s->n_facts && !s->facts[i].tap; i++) {
        const struct fact *f = &s->facts[i];
        if (f->lost == frame || f->instead == frame || f->nak == frame || f->again == frame || f->answer == frame)
            return true;
    }
    return s->back == frame;
}

/* True if a NAK that the incident names was seen only after the retransmission of `e`. */
static bool is_nak_later(const struct incident *s, const struct episode *e)
{
    for (unsigned i = 0; i < s->n_frames; i++)
        if (s->roles[i] == ROLE_NAK && s->files[i] == e->tap >> 16 && s->frames[i] > e->back)
            return true;
    return false;
}

/* How well the frames and the PSN of incident `s` match the episode; 0: not at all. An ACK timeout does not match the
 * loss of a packet that was NAKed only after that timeout's retransmission: the loss came later.
 *
 *   request  5 6 7 ......... 5'             ACK timeout of 5: the episode
 *   response                     NAK 6      the loss of 6, or later: another incident
 */
static unsigned fit_of(const struct incident *s, const struct episode *e)
{
    unsigned fit = 0;

    if (s->cause == CAUSE_DUPLICATE)
        return 0; /* it costs nothing: what came twice may be what was lost later, or its retransmission */
    if (e->why == TROUBLE_TIMEOUT && s->has_psn && s->psn != e->psn && is_nak_later(s, e))
        return 0;
    fit += names(s, e, e->nak) ? 8 : 0;
    fit += names(s, e, e->back) ? 8 : 0;
    fit += names(s, e, e->sent) ? 4 : 0;
    fit += names(s, e, e->instead) ? 4 : 0;
    fit += s->has_psn && s->psn == e->psn && s->start <= e->end ? 2 : 0;
    return fit;
}

/* The first incident of the connection and tap that begins after `start`. */
static uint32_t behind(const struct billing *w, const struct episode *e, ns_t start)
{
    const struct place_in_time key = {.conn = e->conn, .tap = e->tap, .number = UINT32_MAX, .start = start};
    uint32_t low = 0, high = w->n_at;

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (by_place(&w->at[mid], &key) <= 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static uint32_t best_fit(const struct billing *w, const struct episode *e)
{
    uint32_t i = behind(w, e, e->end), best = NOT_FOUND;
    unsigned fit = 0;

    for (unsigned n = 0; i && n < FIT_LOOK; n++) {
        const struct place_in_time *p = &w->at[--i];
        const struct incident *s = &w->x->incidents[p->number];
        unsigned f;
        if (p->conn != e->conn || p->tap != e->tap || e->start - p->start > FIT_WITHIN)
            break;
        f = fit_of(s, e);
        if (f > fit) {
            fit = f;
            best = p->number;
        }
    }
    return best;
}

/* Find the incident for an episode whose frames appear in no incident. An incident about many episodes has only the
 * frames of the first ones; an episode that has no incident of its own is a consequence of the trouble just before it.
 */
static uint32_t of_the_same_trouble(const struct billing *w, const struct episode *e)
{
    uint32_t i = behind(w, e, e->end), nearest = NOT_FOUND;

    for (unsigned n = 0; i && n < FIT_LOOK; n++) {
        const struct place_in_time *p = &w->at[--i];
        const struct incident *s = &w->x->incidents[p->number];
        if (p->conn != e->conn || p->tap != e->tap)
            break;
        if (s->cause == CAUSE_DUPLICATE)
            continue;
        if (s->cause == CAUSE_EARLY_TIMEOUT && e->why == TROUBLE_TIMEOUT)
            return p->number;
        if (s->times && (e->why != TROUBLE_RNR) == (s->cause != CAUSE_RNR))
            return p->number;
        if (e->why == TROUBLE_DEAD || (e->why == TROUBLE_TIMEOUT && is_nak_later(s, e)))
            continue;
        if (nearest == NOT_FOUND && e->start - p->start <= SAME_TROUBLE)
            nearest = p->number;
    }
    return nearest;
}

/* --- Incidents by their kind ------------------------------------------------------------------ */

static bool is_failure_cause(unsigned cause)
{
    return cause == CAUSE_RETRY_EXCEEDED || cause == CAUSE_SILENT_PEER || cause == CAUSE_HALF_OPEN ||
           cause == CAUSE_RNR_EXCEEDED;
}

/* The place of the first incident of a kind, or the free one where it would be. The capture has one incident about
 * pause frames. */
static struct first_of_kind *place_of(const struct billing *w, struct first_of_kind key)
{
    uint64_t hash = (uint64_t)key.conn << 32 ^ (uint64_t)key.flow << 8 ^ key.kind ^ (uint64_t)key.tap << 40;
    uint32_t at = (uint32_t)(hash * HASH_MULTIPLIER >> 32) & (KINDS - 1);

    for (struct first_of_kind *f;; at = (at + 1) & (KINDS - 1)) {
        f = &w->firsts[at];
        if (f->number == NOT_FOUND ||
            (f->conn == key.conn && f->tap == key.tap && f->flow == key.flow && f->kind == key.kind))
            return f;
    }
}

static struct first_of_kind key_of(unsigned kind, uint32_t conn, uint32_t tap, uint32_t flow)
{
    return kind == CAUSE_PAUSE ? (struct first_of_kind){.kind = kind}
                               : (struct first_of_kind){.conn = conn, .tap = tap, .flow = flow, .kind = kind};
}

/* Incident `number` is of a kind; an earlier one stays the first. */
static void note_kind(const struct billing *w, uint32_t number, unsigned kind)
{
    const struct incident *s = &w->x->incidents[number];
    struct first_of_kind key = key_of(kind, s->conn, s->tap, s->flow), *f = place_of(w, key);

    key.number = number;
    if (f->number == NOT_FOUND)
        *f = key;
}

static void note_cause(const struct billing *w, uint32_t number)
{
    unsigned cause = w->x->incidents[number].cause;

    note_kind(w, number, is_failure_cause(cause) ? FAILURE : cause);
}

/* The incident that gathers episodes of this kind and direction. */
static uint32_t gathered(const struct billing *w, const struct episode *e)
{
    return place_of(w, key_of(bill_kinds[e->why].cause, e->conn, e->tap, e->flow))->number;
}

/* The incident that reports the failure of the connection, by its requests or by connection management. */
static uint32_t failure_of(const struct billing *w, const struct episode *e)
{
    uint32_t own = place_of(w, key_of(FAILURE, e->conn, e->tap, e->flow))->number,
             other = place_of(w, key_of(FAILURE, e->conn, e->tap, FLOW_NONE))->number;

    return own < other ? own : other;
}

/* --- Incidents made for lost time ------------------------------------------------------------- */

/* The capture ends before the ACK timer of the last try expires. */
static bool is_cut_off(const struct explainer *x, const struct episode *e)
{
    const struct req_dir *h = observer_req_dir(x->observer, e->flow);

    return h && explain_ends_before(x, e->tap, h->last_ts, e->wait);
}

/* A new incident for this episode alone. */
static uint32_t new_incident(const struct billing *w, const struct episode *e)
{
    const struct bill_kind *kind = bill_kind_of(w->x, e);
    struct incident *s = incident_new(w->x, kind->cause, e->flow, NULL);
    struct fact f = bill_fact(w->x, e, kind);
    uint32_t number;

    if (!s)
        return NOT_FOUND;
    number = incident_number(w->x, s);
    s->start = e->start;
    s->conn = e->conn;
    s->tap = e->tap;
    s->psn = e->psn;
    s->has_psn = !bill_kinds[e->why].gathers;
    s->is_request = true;
    f.code = kind->cause == CAUSE_RETRY_EXCEEDED && is_cut_off(w->x, e);
    incident_is(s, &f);
    if (f.code)
        incident_add(s, SAY(TRY_OPEN, 0));
    if (bill_is_failure(e) && !explain_knows_answers(w->x, e->flow))
        s->certainty = POSSIBLE; /* responses may have come that are taken for those of another queue pair */
    bill_take_frames(s, e);
    s->of_time = true;
    s->silence = e->why == TROUBLE_TIMEOUT || e->why == TROUBLE_DEAD || e->timed || e->others ? e->wait : 0;
    if (e->why == TROUBLE_STOPPED) {
        s->place = PLACE_BEFORE;
        s->arrived = e->back; /* the responder is alive */
    }
    note_cause(w, number);
    return number;
}

/* The requester gave up: if its retries were used up, what was told of them so far is part of that. */
static uint32_t new_failure(const struct billing *w, const struct episode *e)
{
    uint32_t before = best_fit(w, e), i = new_incident(w, e);
    const struct incident *s = before == NOT_FOUND ? NULL : &w->x->incidents[before];

    bool same = i != NOT_FOUND && s && has_no_response(s) && s->has_psn && s->psn == e->psn;

    if (same && w->x->incidents[i].cause == CAUSE_RETRY_EXCEEDED)
        cross_supersede(w->x, i, before);
    return i;
}

/* Without room for an incident of each episode, one gathers those of a cause and direction. */
static uint32_t rest_of(const struct billing *w, const struct episode *e)
{
    unsigned kind = REST + bill_kind_of(w->x, e)->cause;
    uint32_t i = place_of(w, key_of(kind, e->conn, e->tap, e->flow))->number;

    if (i != NOT_FOUND) {
        w->x->incidents[i].times++;
        return i;
    }
    i = new_incident(w, e);
    if (i != NOT_FOUND)
        note_kind(w, i, kind);
    return i;
}

/* The incident of an episode that begins a row. */
static uint32_t incident_of(const struct billing *w, const struct episode *e)
{
    uint32_t i = NOT_FOUND;

    if (bill_is_failure(e)) {
        i = failure_of(w, e);
        return i == NOT_FOUND ? new_failure(w, e) : i;
    }
    if (bill_kinds[e->why].gathers)
        i = gathered(w, e);
    else if (e->why != TROUBLE_STOPPED && (i = best_fit(w, e)) == NOT_FOUND)
        i = of_the_same_trouble(w, e);
    if (i == NOT_FOUND && !bill_kinds[e->why].gathers && w->x->n >= INCIDENTS_EARLY)
        return rest_of(w, e);
    return i == NOT_FOUND ? new_incident(w, e) : i;
}

/* --- What it costs ---------------------------------------------------------------------------- */

/* Add the episode to an incident that gathers: the longest wait, whose frames are shown, and their number. Part of a
 * slow response may be on another bill: it took as long all the same. */
static void gather(struct incident *s, const struct episode *e)
{
    struct fact *f = &s->facts[0];
    ns_t took = e->why == TROUBLE_SLOW ? e->end - e->start : e->bill;

    f->n += e->count ? e->count : 1;
    if (took > f->time || !f->time) {
        f->time = took;
        f->answer = e->answer;
        if (e->why == TROUBLE_SLOW && s->n_frames == s->own)
            bill_take_frames(s, e);
    }
}

/* The retransmission was lost again, or the NAK that demanded it: one sentence for each of the first
 * LOST_AGAIN_SENTENCES, then a count. */
static void report_lost_again(struct incident *s, const struct episode *e, const struct episode *root)
{
    bool passed = !e->nak && e->sent > root->nak; /* else its latest copy was sent before the NAK */
    struct fact f = {.sentence = SENTENCE_AGAIN_IN_VAIN,
                     .psn = e->psn,
                     .lost = passed ? e->sent : 0,
                     .again = e->back,
                     .time = e->wait,
                     .m = s->place == PLACE_BEFORE && !s->proved && !e->cut};
    struct fact *last = &s->facts[s->n_facts - 1];

    if (!f.lost && s->cause == CAUSE_REORDER && f.psn == s->psn) { /* what came late was its retransmission */
        s->cause = CAUSE_PACKET_LOSS;
        s->certainty = PROBABLE;
    }
    if (f.lost && f.m)
        s->in_vain = ns_sum(s->in_vain, e->bill);
    incident_frame(s, ROLE_LOST, f.lost);
    incident_frame(s, ROLE_RETRANSMISSION, e->back);
    if (e->tries <= LOST_AGAIN_SENTENCES) {
        incident_add(s, &f);
        return;
    }
    if (last->sentence == SENTENCE_AGAIN_IN_VAIN) {
        f = (struct fact){.sentence = SENTENCE_AGAIN_IN_VAIN_MORE};
        incident_add(s, &f);
        last = &s->facts[s->n_facts - 1];
    }
    if (last->sentence == SENTENCE_AGAIN_IN_VAIN_MORE) {
        last->n++;
        last->time += e->wait;
    }
}

/* A pause most likely held back `n` requests as well, for `time` in all, although nothing was outstanding. */
static void report_rests(struct incident *s, uint32_t n, ns_t time)
{
    struct fact *f = incident_fact(s, SENTENCE_PAUSE_RESTS);

    if (f) {
        f->n += n;
        f->time = ns_sum(f->time, time);
    } else {
        incident_add(s, SAY(PAUSE_RESTS, .n = n, .time = time));
        s->certainty = s->certainty == CERTAIN ? PROBABLE : s->certainty;
    }
}

/* No ACK timer of the requester expires sooner. */
static ns_t timer_of(const struct explainer *x, const struct episode *e)
{
    const struct req_dir *h = observer_req_dir(x->observer, e->flow);

    return h && h->timeout ? timer_earliest(ack_timeout(h->timeout)) : BILL_TIMER_LEAST;
}

static void charge(struct explainer *x, uint32_t number, const struct episode *e, const struct episode *root)
{
    struct incident *s = &x->incidents[number];
    ns_t lost = states_lost(e->states);

    s->bill = ns_sum(s->bill, lost);
    if (s->conn != e->conn)
        s->conn = 0; /* pause frames stop several connections */
    for (unsigned i = 0; i < TIME_STATES; i++)
        s->states[i] = ns_sum(s->states[i], time_state_costs(i) ? e->states[i] : 0);
    if (!s->episodes++ || e->start < s->from)
        s->from = e->start;
    if (lost > s->worst_bill) {
        s->worst_bill = lost;
        s->worst = e->start;
        s->worst_end = e->end;
    }
    if (e->end > s->stop)
        s->stop = e->end;
    if (bill_kinds[e->why].gathers && s->facts[0].sentence == bill_kind_of(x, e)->sentence)
        gather(s, e);
    if (e->rests)
        report_rests(s, e->rests, e->rest);
    if (e->why == TROUBLE_TIMEOUT && e->wait >= timer_of(x, e) && e != root &&
        (root->why == TROUBLE_SEQ_NAK || root->why == TROUBLE_IMPLIED))
        report_lost_again(s, e, root);
}

/* A time of incident `from` by the clock of the tap of `to`, which is about the same. If their clocks could not be
 * compared, both begin at the same moment. */
static ns_t time_at(const struct explainer *x, const struct incident *to, const struct incident *from, ns_t ts)
{
    ns_t error;

    return from->tap == to->tap || explain_clock_known(x, from->tap, to->tap, &ts, &error) || !to->start
               ? ts
               : to->start + (ts - from->from);
}

void bill_move(const struct explainer *x, struct incident *to, struct incident *from)
{
    ns_t begin = time_at(x, to, from, from->from), end = time_at(x, to, from, from->stop);
    const struct fact *rests = incident_fact(from, SENTENCE_PAUSE_RESTS);

    to->bill = ns_sum(to->bill, from->bill);
    for (unsigned i = 0; i < TIME_STATES; i++) {
        to->states[i] = ns_sum(to->states[i], from->states[i]);
        from->states[i] = 0;
    }
    if (end > to->stop)
        to->stop = end;
    if (from->episodes && (!to->episodes || begin < to->from))
        to->from = begin;
    if (from->worst_bill > to->worst_bill) {
        to->worst_bill = from->worst_bill;
        to->worst = time_at(x, to, from, from->worst);
        to->worst_end = time_at(x, to, from, from->worst_end);
    }
    if (rests)
        report_rests(to, rests->n, rests->time);
    to->episodes += from->episodes;
    from->bill = 0;
    from->episodes = 0;
}

/* Whether no packet shows the loss that `s` reports. `slow`: the response to the retransmission came late. */
static bool is_guess(const struct incident *s, bool slow)
{
    static const bool unseen[SENTENCES] = {[SENTENCE_RESPONSE_BROKEN_OFF] = true,
                                           [SENTENCE_RESPONSE_NOT_SEEN] = true,
                                           [SENTENCE_ANSWER_BY_MSN] = true,
                                           [SENTENCE_ANSWER_NOT_SEEN] = true};

    return (s->certainty == POSSIBLE && s->cause == CAUSE_LOST_LAST_PACKET) ||
           (slow && s->certainty != CERTAIN && s->n_facts == 1 && unseen[s->facts[0].sentence]);
}

/* A spurious ACK timeout was taken for the loss of a last packet, or of its response. */
static void revise(const struct explainer *x, struct incident *s, const struct episode *e)
{
    const struct bill_kind *kind = bill_kind_of(x, e);
    struct fact f = bill_fact(x, e, kind);

    if (kind->cause != CAUSE_EARLY_TIMEOUT || !is_guess(s, e->slow))
        return;
    s->cause = CAUSE_EARLY_TIMEOUT;
    s->place = PLACE_UNKNOWN;
    incident_is(s, &f);
}

/* True if the pause of this direction is reported by the incident of another tap: one incident collects what all taps
 * saw of pause frames. */
static bool is_reported_elsewhere(const struct explainer *x, const struct episode *e)
{
    return e->why == TROUBLE_PAUSE && !explain_counts(x, e->conn, e->flow, e->tap);
}

static void bill_all(struct billing *w)
{
    uint32_t n = timeline_episodes(w->x->timeline);

    for (uint32_t i = 0; i < n; i++) {
        const struct episode *e = timeline_episode(w->x->timeline, i);
        uint32_t *row;
        w->of[i] = NOT_FOUND;
        if (e->bill <= 0 || is_reported_elsewhere(w->x, e))
            continue;
        row = &w->of[e->root];
        w->of[i] = *row == NOT_FOUND || bill_is_failure(e) ? incident_of(w, e) : *row;
        if (w->of[i] == NOT_FOUND)
            continue;
        if (*row == NOT_FOUND)
            *row = w->of[i];
        revise(w->x, &w->x->incidents[w->of[i]], e);
        charge(w->x, w->of[i], e, timeline_episode(w->x->timeline, e->root));
    }
}

/* Most of the time of an incident passed after its packet, lost before the tap, had been retransmitted and had passed
 * the tap: where that copy or its response was lost is not known.
 *
 *   request, sent   5 6 7    5' 6' 7' ............. 5" 6" 7"
 *   request, tap      6 7    5' 6' 7' ............. 5" 6" 7"
 *   response             NAK                                 ACK
 */
static void doubt_place(struct incident *s)
{
    if (s->place != PLACE_BEFORE || s->proved || s->in_vain <= s->bill / 2)
        return;
    s->place = PLACE_UNKNOWN;
    s->certainty = POSSIBLE;
}

/* True if CNPs cost so much time that the requester did slow down. */
static bool slowed_down(const struct incident *s)
{
    return s->cause == CAUSE_THROTTLED && s->bill > CNP_LOOK / SLOWED_PART;
}

static void settle_cnps(struct explainer *x)
{
    for (uint32_t i = 0; i < x->n; i++)
        for (uint32_t j = 0; slowed_down(&x->incidents[i]) && j < x->n; j++)
            if (x->incidents[j].cause == CAUSE_CNP_WITHOUT_SLOWDOWN && x->incidents[j].conn == x->incidents[i].conn)
                cross_supersede(x, i, j);
}

/* --- All of it -------------------------------------------------------------------------------- */

static void note_incidents(struct billing *w)
{
    for (uint32_t i = 0; i < KINDS; i++)
        w->firsts[i].number = NOT_FOUND;
    for (uint32_t i = 0; i < w->x->n; i++) {
        const struct incident *s = &w->x->incidents[i];
        w->at[i] = (struct place_in_time){s->conn, s->tap, i, s->start};
        note_cause(w, i);
    }
    if (w->x->n)
        qsort(w->at, w->x->n, sizeof *w->at, by_place);
}

void explain_bill(struct explainer *x)
{
    struct billing w = {.x = x, .n_at = x->n};

    w.at = calloc(x->n + 1u, sizeof *w.at);
    w.of = calloc(timeline_episodes(x->timeline) + 1u, sizeof *w.of);
    w.firsts = calloc(KINDS, sizeof *w.firsts);
    x->room = INCIDENTS_MAX;
    if (w.at && w.of && w.firsts) {
        note_incidents(&w);
        bill_all(&w);
        for (uint32_t i = 0; i < x->n; i++)
            doubt_place(&x->incidents[i]);
        explain_share_bills(x);
        settle_cnps(x);
    }
    free(w.at);
    free(w.of);
    free(w.firsts);
}
