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

/* The only other tap of a flow of requests; FLOW_NONE: there is none, or there are several. */
static uint32_t only_other(struct explainer *x, uint32_t flow)
{
    uint32_t k = x->several_taps ? explain_elsewhere(x, flow, 0) : FLOW_NONE;

    return k == FLOW_NONE || explain_elsewhere(x, flow, k + 1) != FLOW_NONE ? FLOW_NONE : k;
}

/* The packet of an incident, frame `lost` at its own tap, had not come to the tap of flow `k` by then. */
static void tell(struct explainer *x, struct incident *st, uint32_t k, uint32_t lost)
{
    copies_between(x, st, st->flow, k);
    incident_add(st, SAY(TAP_LACKED, .lost = lost, .tap = fact_tap(copies_tap(x, k))));
}

/* Whether a tap that is past request `psn` saw no copy of it. */
static bool saw_none(const struct req_dir *h, uint32_t psn)
{
    const struct sent *at = &h->sent[psn & (h->slots - 1)];

    return psn_in(psn, h->start, (h->next - h->start) & PSN_MASK) &&
           (at->psn == UINT32_MAX || psn_diff(at->psn, psn) < 0);
}

void explain_request_until_then(struct explainer *x, const struct event *e, struct incident *st, uint32_t lost)
{
    uint32_t k = only_other(x, e->flow), psn = st->psn;
    struct req_dir *h = k == FLOW_NONE ? NULL : observer_req_dir(x->observer, k);
    const struct sent *s = req_dir_sent(e->h, psn), *o = h && h->have_next ? req_dir_sent(h, psn) : NULL;
    bool same_nak = h && h->have_next && h->seq.have && e->h->seq.psn == psn && h->seq.psn == psn && h->seq.icrc &&
                    h->seq.icrc == e->h->seq.icrc;

    if (!same_nak || !s || s->last != lost || !s->icrc || s->same || !copies_pass_first(x, e->flow, k))
        return;
    if (o ? o->icrc == s->icrc || o->icrc_first == s->icrc || o->same || o->icrc == icrc_of(e->p) : !saw_none(h, psn))
        return;
    if (!x->notes[k] || damaged_frame(x->notes[k], psn))
        return;
    tell(x, st, k, lost);
}

void explain_response_until_then(struct explainer *x, const struct event *e, const struct flow_notes *t,
                                 struct incident *st, uint32_t lost)
{
    uint32_t k = only_other(x, e->flow), psn = st->psn, icrc = icrc_of(e->p);
    struct req_dir *h = k == FLOW_NONE ? NULL : observer_req_dir(x->observer, k);
    const struct sent *again = h && h->have_next ? req_dir_sent(h, e->p->bth.psn) : NULL;
    const struct noted_response *r = response_noted(t, psn),
                                *o = k == FLOW_NONE ? NULL : response_noted(x->notes[k], psn);

    if (!again || !icrc || again->icrc != icrc || again->same || !copies_pass_first(x, k, e->flow))
        return; /* it has not seen this retransmission yet */
    if (!r || r->frame != lost || !r->icrc || (r->first != r->frame && r->icrc == r->icrc_first))
        return;
    if (o ? o->icrc == r->icrc || o->icrc_first == r->icrc || o->frame > again->last
          : psn_diff(response_slot(x->notes[k], psn)->psn, psn) > 0)
        return;
    if (!damaged_frame(x->notes[k], psn))
        tell(x, st, k, lost);
}
