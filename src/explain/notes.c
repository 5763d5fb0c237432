/* layer 3 (explain): notes of a flow; the rounds in which its requests were sent, which tell which copy a NAK is
 * about. */
#include "src/explain/notes.h"

#include "dissect/pkt.h"
#include "src/conn/packet.h"

#include <stdlib.h>

#define OVERTAKING 8 /* requests that may come between a reordered one and the next in order */
#define LONE_SKIPS 2 /* so many PSNs in a row, behind one that is retransmitted, may be lost */

/* An array of empty slots; NULL: no memory. */
static struct noted_response *responses_new(uint32_t n)
{
    struct noted_response *r = calloc(n, sizeof *r);

    for (uint32_t i = 0; r && i < n; i++)
        r[i].psn = UINT32_MAX;
    return r;
}

void notes_free(struct flow_notes *t, struct room *room)
{
    if (!t)
        return;
    room_give(room, (t->rounds.slots - ROUNDS_MIN) * sizeof *t->rounds.seen +
                        (t->responses.slots - NOTED_RESPONSES_MIN) * sizeof *t->responses.by_psn);
    free(t->rounds.seen);
    free(t->responses.by_psn);
    free(t);
}

struct flow_notes *notes_new(void)
{
    struct flow_notes *t = calloc(1, sizeof *t);

    if (!t)
        return NULL;
    t->rounds.slots = ROUNDS_MIN;
    t->rounds.seen = calloc(ROUNDS_MIN, sizeof *t->rounds.seen);
    t->responses.slots = NOTED_RESPONSES_MIN;
    t->responses.by_psn = responses_new(NOTED_RESPONSES_MIN);
    if (!t->rounds.seen || !t->responses.by_psn) {
        notes_free(t, NULL);
        return NULL;
    }
    rounds_init(&t->rounds);
    for (unsigned i = 0; i < NOTED_BAD; i++)
        t->requests.bad[i].psn = UINT32_MAX;
    t->hypotheses = (struct hypotheses){.open = NO_INCIDENT,
                                        .cost = NO_INCIDENT,
                                        .dup = NO_INCIDENT,
                                        .reorder = NO_INCIDENT,
                                        .rnr = NO_INCIDENT,
                                        .soon = NO_INCIDENT,
                                        .missed = NO_INCIDENT,
                                        .dup_rsp = NO_INCIDENT,
                                        .late = NO_INCIDENT,
                                        .late_single = NO_INCIDENT,
                                        .follows = UINT32_MAX,
                                        .silent = NO_INCIDENT,
                                        .not_received = NO_INCIDENT,
                                        .rsp_missing = NO_INCIDENT,
                                        .rsp_lost = NO_INCIDENT,
                                        .rsp_reorder = NO_INCIDENT,
                                        .answered = NO_INCIDENT,
                                        .had = NO_INCIDENT};
    t->responses.late = t->responses.next = t->responses.run_last = t->responses.implied = UINT32_MAX;
    t->responses.late_incident = NO_INCIDENT;
    t->responses.round_trip = t->responses.path_trip = t->responses.least_trip = -1;
    return t;
}

uint32_t response_frame(const struct flow_notes *t, uint32_t psn)
{
    const struct noted_response *r = response_noted(t, psn);

    return r ? r->frame : 0;
}

uint32_t answer_frame(const struct flow_notes *t, uint32_t psn)
{
    const struct noted_response *r = response_noted(t, psn);

    return r ? r->answer : 0;
}

uint32_t damaged_frame(const struct flow_notes *t, uint32_t psn)
{
    for (unsigned i = 0; i < NOTED_BAD; i++)
        if (t->requests.bad[i].psn == psn)
            return t->requests.bad[i].frame;
    return 0;
}

uint32_t damaged_since(const struct flow_notes *t, uint32_t psn, uint32_t n, uint32_t since)
{
    for (unsigned i = 0; i < NOTED_BAD; i++)
        if (t->requests.bad[i].psn != UINT32_MAX && psn_in(t->requests.bad[i].psn, psn, n) &&
            t->requests.bad[i].frame > since)
            return t->requests.bad[i].frame;
    return 0;
}

/* Twice as many slots for responses; false: without room, or there are as many as are kept. */
static __attribute__((noinline)) bool responses_grow(struct noted_responses *n, struct room *room)
{
    uint32_t slots = 2 * n->slots;
    struct noted_response *grown =
        slots <= NOTED_RESPONSES && room_take(room, n->slots * sizeof *grown, false) ? responses_new(slots) : NULL;

    if (!grown)
        return false;
    for (uint32_t i = 0; i < n->slots; i++)
        if (n->by_psn[i].psn != UINT32_MAX)
            grown[n->by_psn[i].psn & (slots - 1)] = n->by_psn[i];
    free(n->by_psn);
    n->by_psn = grown;
    n->slots = slots;
    return true;
}

struct noted_response *response_slot_new(struct flow_notes *t, uint32_t psn, struct room *room)
{
    struct noted_response *r = response_slot(t, psn);

    while (UNLIKELY(r->psn != psn && r->psn != UINT32_MAX && t->responses.slots < NOTED_RESPONSES) &&
           responses_grow(&t->responses, room))
        r = response_slot(t, psn);
    return r;
}

/* --- Rounds of requests ----------------------------------------------------------------------- */

void rounds_init(struct rounds *s)
{
    *s = (struct rounds){.seen = s->seen, .slots = s->slots};
    for (uint32_t i = 0; i < s->slots; i++)
        s->seen[i].psn = UINT32_MAX;
}

static struct copies *copies_of(const struct rounds *s, uint32_t psn)
{
    return &s->seen[psn & (s->slots - 1)];
}

/* Twice as many slots, so that PSN `psn` is not forgotten; false: without room, or there are as many as are kept. */
static __attribute__((noinline)) bool rounds_grow(struct rounds *s, const struct req_dir *h, uint32_t psn)
{
    uint32_t slots = 2 * s->slots;
    bool outstanding = h->service != SVC_UC && !(h->have_una && psn_diff(h->una, psn) > 0);
    struct copies *grown = slots <= TRACK_SENT && room_take(h->room, s->slots * sizeof *grown, outstanding)
                               ? calloc(slots, sizeof *grown)
                               : NULL;

    if (!grown)
        return false;
    for (uint32_t i = 0; i < slots; i++)
        grown[i].psn = UINT32_MAX;
    for (uint32_t i = 0; i < s->slots; i++)
        if (s->seen[i].psn != UINT32_MAX)
            grown[s->seen[i].psn & (slots - 1)] = s->seen[i];
    free(s->seen);
    s->seen = grown;
    s->slots = slots;
    return true;
}

static struct copies *copies_new(struct rounds *s, const struct req_dir *h, uint32_t psn)
{
    struct copies *c = copies_of(s, psn);

    while (UNLIKELY(c->psn != psn && c->psn != UINT32_MAX && s->slots < TRACK_SENT) && rounds_grow(s, h, c->psn))
        c = copies_of(s, psn);
    return c;
}

struct noted_nak *rounds_nak_of(struct rounds *s, uint32_t psn)
{
    for (uint32_t i = 1; i <= ROUND_NAKS; i++) {
        struct noted_nak *a = &s->naks[(s->naks_at - i) % ROUND_NAKS];
        if (a->nak && a->psn == psn)
            return a;
    }
    return NULL;
}

static void run_begin(struct rounds *s, const struct event *e)
{
    const struct sent *before = req_dir_sent(e->h, psn_prev(e->h->cursor));
    int order = before ? sent_order(frame_ip_id(e->p), before->ip_id) : 0;
    uint32_t psn = e->p->bth.psn;
    struct noted_nak *a = rounds_nak_of(s, psn), *latest = &s->naks[(s->naks_at - 1) % ROUND_NAKS];

    if (!a && latest->nak && psn_diff(psn, latest->psn) > 0)
        a = latest; /* the first packet of the retransmission was lost before the tap */
    if (order < 0)
        return; /* it was held back: no round begins */
    memmove(&s->runs[1], &s->runs[0], sizeof s->runs - sizeof s->runs[0]);
    s->runs[0].at = s->n;
    s->runs[0].psn = a ? a->psn : psn;
    s->runs[0].resume = e->h->cursor;
    s->runs[0].by_nak = a && !a->answered;
    s->runs[0].ip_id = frame_ip_id(e->p);
    s->runs[0].resent = order > 0;
    s->runs[0].alone = true;
}

/* The latest `n` rounds were none: what passed in them belongs to the round before. */
static void runs_drop(struct rounds *s, unsigned n)
{
    memmove(&s->runs[0], &s->runs[n], (PASS_RUNS - n) * sizeof s->runs[0]);
    memset(&s->runs[PASS_RUNS - n], 0, n * sizeof s->runs[0]);
}

/* The second request of a round, which a NAK demanded, has the PSN at which the requester was before, although nothing
 * behind the first one has been acknowledged since, and by their IP identifications nothing was sent between the two:
 * the requester retransmitted one packet only.
 *
 *   request  4 5 6 7 8 9 . 5 10 11       not: 5 6 7 8 9 10 11, of which 6 to 9 were lost before the tap
 *   response         NAK 5
 */
static bool is_selective(const struct rounds *s, const struct event *e)
{
    bool acked = e->h->have_una && psn_diff(e->h->una, e->h->cursor) > 0;
    uint16_t id = frame_ip_id(e->p);

    return s->runs[0].by_nak && !acked && s->runs[0].ip_id && id == (uint16_t)(s->runs[0].ip_id + 1);
}

/* Without IP identifications: whether the latest round is one packet, behind which the requester went on where it had
 * been. It hardly lost several packets in a row, so it retransmitted one. */
static bool is_lone(const struct rounds *s)
{
    return s->n == s->runs[0].at + 1 && !s->runs[0].ip_id && s->runs[0].alone &&
           psn_diff(s->runs[0].resume, s->runs[0].psn) > LONE_SKIPS;
}

/* True if the request continues an earlier round: the packets in between were merely reordered. */
static bool run_resume(struct rounds *s, uint32_t psn)
{
    for (unsigned i = 0; i + 1 < PASS_RUNS && s->runs[i].at && s->n - s->runs[i].at <= OVERTAKING; i++)
        if (s->runs[i].resume == psn && (!s->runs[i].resent || s->selective || (!i && is_lone(s)))) {
            runs_drop(s, i + 1);
            return true;
        }
    return false;
}

/* The second request of a round continues the first: that one was a retransmission, not a reordered packet, so the NAK
 * for it has been acted on. */
static void run_goes_on(struct rounds *s)
{
    struct noted_nak *a = rounds_nak_of(s, s->runs[0].psn);

    if (a && a->at < s->runs[0].at)
        a->answered = true;
}

/* Request `e` is not behind the one before: it goes on in the latest round, or in one before. */
static void run_continue(struct rounds *s, const struct event *e, int32_t ahead)
{
    uint32_t psn = e->p->bth.psn;
    bool second = s->n == s->runs[0].at + 1;
    const struct noted_nak *a = second ? rounds_nak_of(s, psn) : NULL;

    s->runs[0].alone &= psn == s->runs[0].resume || !second;
    s->selective |= second && ahead > 0 && s->runs[0].alone && is_selective(s, e);
    s->goes_back |= second && ahead == 0 && s->runs[0].by_nak && !s->runs[0].alone && !(a && !a->answered);
    if (!(ahead > 0 && run_resume(s, psn)) && second)
        run_goes_on(s);
}

void rounds_request(struct rounds *s, const struct event *e)
{
    uint32_t psn = e->p->bth.psn;
    struct copies *c;
    int32_t ahead = e->h->have_next ? psn_diff(psn, e->h->cursor) : 0;

    if (UNLIKELY(e->as == SEEN_COPY))
        return;
    s->n++;
    if (UNLIKELY(ahead < 0))
        run_begin(s, e);
    else if (UNLIKELY(s->runs[0].at))
        run_continue(s, e, ahead);
    c = copies_new(s, e->h, psn);
    if (c->psn != psn)
        c->at[0] = 0;
    else if (UNLIKELY(s->runs[0].at) && c->at[0] >= s->runs[1].at && c->at[0] < s->runs[0].at)
        s->runs[0].resent = true; /* it passed in the round before: it is no late packet of that one */
    c->psn = psn;
    c->at[1] = c->at[0];
    c->frame[1] = c->frame[0];
    c->at[0] = s->n;
    c->frame[0] = frame_u32(e->p);
}

/* A packet seen in a round; frame 0: none. */
struct copy {
    uint32_t psn, frame, at;
};

static struct copy copy_of(const struct rounds *s, unsigned run, uint32_t psn)
{
    const struct copies *c = copies_of(s, psn);
    uint32_t end = run ? s->runs[run - 1].at : UINT32_MAX;

    for (unsigned i = 0; c->psn == psn && i < 2 && c->at[i]; i++)
        if (c->at[i] >= s->runs[run].at && c->at[i] < end)
            return (struct copy){psn, c->frame[i], c->at[i]};
    return (struct copy){0};
}

/* The first packet seen in a round with a PSN after `psn`. */
static struct copy behind_in(const struct rounds *s, unsigned run, uint32_t psn, uint32_t next)
{
    struct copy first = {0};

    for (uint32_t n = 0; n < TRACK_SENT && psn_diff(next, psn) > 1; n++) {
        struct copy c = copy_of(s, run, psn = psn_add(psn, 1));
        if (c.frame && (!first.frame || c.at < first.at))
            first = c;
    }
    return first;
}

/* The PSN of the request packet before the PSN that NAK `e` is for: of a READ, that of its request. */
static uint32_t prev_request(const struct event *e)
{
    uint32_t psn = psn_prev(e->p->bth.psn);
    const struct read_req *a = req_dir_read(e->h, psn, 0);

    return a ? a->psn : psn;
}

/* The copy of that packet in a round. */
static struct copy prev_copy(const struct rounds *s, const struct event *e, unsigned run)
{
    return copy_of(s, run, prev_request(e));
}

/* Which round (0: the latest, 1: the one before, ...) a sequence NAK for `psn` answers. The packet that triggered it
 * has a later PSN and passed about one round trip before. A NAK that comes sooner after the latest round answers the
 * one before. Without a round trip: the latest round, if that was NAKed itself or has had any response. If the latest
 * round answers an RNR NAK for an earlier PSN, the responder has received that one since: it is the latest round.
 *
 *   request  4 5 6 7   5 6 7                    5 is lost, and retransmitted on ACK timeout
 *   response               ^ NAK 5              sooner than a round trip after the second 6: the first 5, round 1
 *   response                     ^ NAK 5        a round trip after the second 6: the second 5 is lost, too, round 0
 */
static unsigned run_of_nak(const struct rounds *s, const struct event *e, ns_t round_trip)
{
    uint32_t psn = e->p->bth.psn;
    struct copy behind = behind_in(s, 0, psn, e->h->next);
    const struct sent *o = behind.frame ? req_dir_sent(e->h, behind.psn) : NULL;
    bool not_received = !s->runs[0].by_nak && e->h->rsp_packets == e->h->back_rsps;
    bool early = !o || (round_trip < 0 ? not_received : e->p->frame->ts - o->ts < round_trip / 4 * 3);
    /* else the missing part may have passed before the capture began */
    bool whole = s->runs[1].at || psn_diff(psn, e->h->start) >= 0;

    if (e->h->why == BACK_RNR && psn_diff(psn, e->h->back_psn) > 0)
        return 0;
    if (s->runs[0].by_nak && !s->selective && behind.frame && !copy_of(s, 0, psn).frame && prev_copy(s, e, 0).frame)
        return 0; /* what passed in the round before was dropped, as a NAK for an earlier PSN says */
    for (unsigned run = 1; early && whole && run < PASS_RUNS; run++)
        if (behind_in(s, run, psn, e->h->next).frame)
            return run; /* those in between ended before that PSN */
    return 0;
}

/* A NAK for a PSN that did not pass in the latest round, as little as the one before it: that one was received all the
 * same, so the responder had kept it when it passed in an earlier round.
 *
 *   request  4 5 6 7 8 9 . 5 . 10        5 and 8 are lost
 *   response         NAK 5    NAK 8      7 passed before the NAK for 5 only
 */
static void find_kept(struct rounds *s, const struct event *e, unsigned run)
{
    uint32_t psn = prev_request(e);
    const struct copies *c = copies_of(s, psn);
    unsigned in = run;

    if (!s->runs[run].at || psn_diff(psn, s->runs[run].psn) <= 0 || c->psn != psn ||
        copy_of(s, run, e->p->bth.psn).frame)
        return;
    while (in < PASS_RUNS && c->at[0] < s->runs[in].at)
        in++;
    if (in == run)
        return;
    s->selective |= s->runs[run].by_nak || s->runs[run].alone;
    runs_drop(s, in);
}

/* Whether a packet that passed in a round may be of an earlier one, held back until then: it was seen for the first
 * time after later PSNs, or the round before has no copy of it, and nothing shows that it was sent behind the first
 * packet of the round. */
static bool may_be_stray(const struct rounds *s, unsigned run, const struct sent *o)
{
    bool before;

    if (!o || (o->late && o->copies == 1))
        return o != NULL;
    before = run + 1 < PASS_RUNS && copy_of(s, run + 1, o->psn).frame;
    return s->runs[run].at && !before && sent_order(o->ip_id, s->runs[run].ip_id) <= 0;
}

/* Whether the requester may not have retransmitted the packet that a NAK is for: behind the one before it came a PSN
 * that had not been sent, and the requester is not known to retransmit more than one packet. */
static bool is_skipped(const struct rounds *s, const struct event *e, unsigned run, const struct copy *behind)
{
    struct copy before = prev_copy(s, e, run);
    const struct sent *o = behind->frame ? req_dir_sent(e->h, behind->psn) : NULL;

    return !s->goes_back && o && o->copies == 1 && before.frame && before.at + 1 == behind->at;
}

/* The copy of a packet that a NAK is about, of those that passed in a round. Where packets are retransmitted alone, a
 * NAK that comes sooner than a round trip after the latest copy is about the one before, if there is one: *before is
 * set to an earlier copy that was dropped, or lost. */
static struct copy copy_naked(const struct rounds *s, const struct event *e, unsigned run, ns_t round_trip,
                              uint32_t *before)
{
    uint32_t psn = e->p->bth.psn;
    const struct copies *c = copies_of(s, psn);
    const struct sent *o = req_dir_sent(e->h, psn);
    struct copy copy = copy_of(s, run, psn);
    bool any = c->psn == psn && c->at[0],
         early = s->selective && any && o && e->p->frame->ts - o->ts < round_trip / 4 * 3;
    unsigned at = early && (c->at[1] || o->late);

    *before = any && !copy.frame && !s->selective ? c->frame[0] : 0;
    if (!s->selective || !any)
        return copy;
    return c->at[at] ? (struct copy){psn, c->frame[at], c->at[at]} : (struct copy){0};
}

/* Whether packet `o`, which passed before one with the PSN that a NAK is for, was sent later: that one came late. Where
 * packets are retransmitted alone, it may have been retransmitted. */
static bool is_overtaker(const struct rounds *s, const struct event *e, const struct sent *o)
{
    const struct sent *late = req_dir_sent(e->h, e->p->bth.psn);

    return !s->selective || (o && late && sent_order(late->ip_id, o->ip_id) < 0);
}

void rounds_nak(struct rounds *s, const struct event *e, ns_t least, ns_t round_trip)
{
    uint32_t psn = e->p->bth.psn, before;
    unsigned in, other;
    struct copy copy, behind;
    const struct sent *instead;

    if (e->h->have_una && psn_diff(psn, e->h->una) < 0)
        return; /* it was held back, and a later response shows that the PSN had arrived */
    find_kept(s, e, s->runs[0].by_nak ? 0 : run_of_nak(s, e, least));
    in = run_of_nak(s, e, least);
    other = run_of_nak(s, e, round_trip);
    if (copy_of(s, in, psn).frame && copy_of(s, other, psn).frame)
        in = other;
    copy = copy_naked(s, e, in, round_trip < 0 ? least : round_trip, &before);
    behind = behind_in(s, in, psn, e->h->next);
    instead = behind.frame ? req_dir_sent(e->h, behind.psn) : NULL;
    s->naks[s->naks_at++ % ROUND_NAKS] =
        (struct noted_nak){.psn = psn,
                           .nak = frame_u32(e->p),
                           .at = s->n,
                           .copy = behind.frame || copy.frame ? copy.frame : before,
                           .instead = behind.frame,
                           .dropped = behind.frame ? before : 0,
                           .stray = may_be_stray(s, in, instead),
                           .skipped = is_skipped(s, e, in, &behind),
                           .late = copy.frame && behind.frame && behind.at < copy.at && is_overtaker(s, e, instead),
                           .alone = s->runs[in].by_nak && psn_diff(s->runs[in].psn, psn) < 0};
}

void rounds_response(struct rounds *s, const struct event *e)
{
    const struct noted_nak *a = &s->naks[(s->naks_at - 1) % ROUND_NAKS];
    uint32_t last = psn_prev(response_proves(e->p));
    const struct copies *c = copies_of(s, last);

    s->selective |= psn_diff(last, a->psn) > OVERTAKING && c->psn == last && c->at[0] <= a->at && !c->at[1];
}

bool rounds_since(const struct rounds *s, const struct noted_nak *a)
{
    const struct copies *c = copies_of(s, a->psn);

    for (unsigned i = 0; c->psn == a->psn && i < 2; i++)
        if (c->at[i] > a->at && c->at[i] < s->n)
            return true;
    return false;
}
