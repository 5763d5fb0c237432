/* layer 3 (explain): compare taps: a copy that another tap lacks when its requester goes back. */
#include "dissect/pkt.h"
#include "src/conn/packet.h"
#include "src/explain/compare/compare.h"
#include "src/explain/compare/copies.h"

/* Of a packet that is sent many times, a tap keeps the first and the latest copies only. When the requester goes back
 * for the latest one, that is still the latest that any tap has seen.
 *
 *   tap nearer to the requester   5 6 7 . NAK 5    5 6 7 . NAK 5    5 6 7        the second 5, and then the third one:
 *   the other tap                   6 7   NAK 5      6 7 | NAK 5    5 6 7        at | it has no copy of it
 */

/* The copy that was lost, frame `frame` at its own tap, when event `e` goes back for it: of a request, or of a READ
 * response. */
struct lost_copy {
    const struct event *e;
    uint32_t psn, frame, icrc;
    bool response;
};

/* Whether another tap had that copy by then. */
enum until_then { THEN_UNKNOWN, THEN_LACKS, THEN_HAS };
typedef enum until_then had_copy(struct explainer *x, const struct lost_copy *c, uint32_t flow);

/* Whether such a packet passes the tap of flow `a` before that of `b`. */
static bool passes_before(const struct explainer *x, const struct lost_copy *c, uint32_t a, uint32_t b)
{
    return c->response ? copies_pass_first(x, b, a) : copies_pass_first(x, a, b);
}

/* The copy had not come to the tap of flow `lacks`, the next one behind that of `has`, which had it. */
static void tell(struct explainer *x, struct incident *st, const struct lost_copy *c, uint32_t has, uint32_t lacks)
{
    uint32_t tap = fact_tap(copies_tap(x, lacks));

    copies_between(x, st, has, lacks);
    incident_add(st, SAY(TAP_LACKED, .lost = c->frame, .tap = tap));
    if (has != c->e->flow)
        incident_add(st, SAY(TAPS_UNTIL_THEN, .tap = fact_tap(copies_tap(x, has)), .m = tap));
}

/* Of the taps behind its own: the last that had it, and the next one behind that, which lacks it. */
static void compare(struct explainer *x, struct incident *st, const struct lost_copy *c, had_copy *had)
{
    uint32_t has = c->e->flow, lacks = FLOW_NONE;

    for (uint32_t k = 0; (k = explain_elsewhere(x, c->e->flow, k)) != FLOW_NONE; k++)
        if (passes_before(x, c, has, k) && had(x, c, k) == THEN_HAS)
            has = k;
    for (uint32_t k = 0; (k = explain_elsewhere(x, c->e->flow, k)) != FLOW_NONE; k++)
        if (passes_before(x, c, has, k) && had(x, c, k) == THEN_LACKS &&
            (lacks == FLOW_NONE || passes_before(x, c, k, lacks)))
            lacks = k;
    if (lacks != FLOW_NONE)
        tell(x, st, c, has, lacks);
}

/* Whether a tap that is past request `psn` saw no copy of it. */
static bool saw_none(const struct req_dir *h, uint32_t psn)
{
    const struct sent *at = &h->sent[psn & (h->slots - 1)];

    return psn_in(psn, h->start, (h->next - h->start) & PSN_MASK) &&
           (at->psn == UINT32_MAX || psn_diff(at->psn, psn) < 0);
}

static enum until_then had_request(struct explainer *x, const struct lost_copy *c, uint32_t flow)
{
    const struct req_dir *own = c->e->h, *h = observer_req_dir(x->observer, flow);
    const struct sent *o = h && h->have_next ? req_dir_sent(observer_req_dir(x->observer, flow), c->psn) : NULL;
    bool same_nak = h && h->have_next && h->seq.have && own->seq.psn == c->psn && h->seq.psn == c->psn && h->seq.icrc &&
                    h->seq.icrc == own->seq.icrc;

    if (!same_nak || (o && o->same))
        return THEN_UNKNOWN;
    if (o && (o->icrc == c->icrc || o->icrc_first == c->icrc))
        return THEN_HAS;
    if (o ? o->icrc == icrc_of(c->e->p) : !saw_none(h, c->psn))
        return THEN_UNKNOWN; /* it has seen the retransmission, or forgotten the packet */
    return x->notes[flow] && !damaged_frame(x->notes[flow], c->psn) ? THEN_LACKS : THEN_UNKNOWN;
}

void explain_request_until_then(struct explainer *x, const struct event *e, struct incident *st, uint32_t lost)
{
    const struct sent *s = x->several_taps ? req_dir_sent(e->h, st->psn) : NULL;

    if (s && s->last == lost && s->icrc && !s->same)
        compare(x, st, &(struct lost_copy){e, st->psn, lost, s->icrc, false}, had_request);
}

static enum until_then had_response(struct explainer *x, const struct lost_copy *c, uint32_t flow)
{
    struct req_dir *h = observer_req_dir(x->observer, flow);
    uint32_t icrc = icrc_of(c->e->p);
    const struct sent *again = h && h->have_next ? req_dir_sent(h, c->e->p->bth.psn) : NULL;
    const struct noted_response *o = response_noted(x->notes[flow], c->psn);

    if (!again || !icrc || again->icrc != icrc || again->same)
        return THEN_UNKNOWN; /* it has not seen this retransmission yet */
    if (o && (o->icrc == c->icrc || o->icrc_first == c->icrc))
        return THEN_HAS;
    if (o ? o->frame > again->last : psn_diff(response_slot(x->notes[flow], c->psn)->psn, c->psn) > 0)
        return THEN_UNKNOWN;
    return damaged_frame(x->notes[flow], c->psn) ? THEN_UNKNOWN : THEN_LACKS;
}

void explain_response_until_then(struct explainer *x, const struct event *e, const struct flow_notes *t,
                                 struct incident *st, uint32_t lost)
{
    const struct noted_response *r = x->several_taps ? response_noted(t, st->psn) : NULL;

    if (r && r->frame == lost && r->icrc && (r->first == r->frame || r->icrc != r->icrc_first))
        compare(x, st, &(struct lost_copy){e, st->psn, lost, r->icrc, true}, had_response);
}
