/* layer 3 (explain): compare taps: where a packet was damaged that one of them saw as it was sent. */
#include "src/explain/compare/damaged.h"

#include "src/explain/compare/compare.h"
#include "src/explain/compare/copies.h"

uint32_t damaged_at(const struct explainer *x, uint32_t flow, uint32_t psn, bool response)
{
    uint32_t of = response ? conn_flow_at(observer_conns(x->observer), flow)->peer : flow;

    return of != FLOW_NONE && x->notes[of] ? damaged_frame(x->notes[of], psn) : 0;
}

bool damaged_compare(struct explainer *x, struct incident *st, uint32_t other, unsigned n)
{
    const struct flow_notes *t = x->notes[other];
    struct req_dir *here = observer_req_dir(x->observer, st->flow);
    uint32_t there = copies_tap(x, other);
    bool found = false;

    for (unsigned i = 0; t && i < NOTED_BAD; i++) {
        uint32_t psn = t->requests.bad[i].psn, frame = t->requests.bad[i].frame;
        struct incident *o;
        const struct sent *s;
        if (psn == UINT32_MAX || !psn_in(psn, st->psn, n))
            continue;
        o = incident_at(x, t->requests.bad[i].incident);
        s = req_dir_sent(here, psn);
        if (o && !o->has_psn)
            incident_concerns(o, st->psn, 0, true);
        incident_add(st, SAY(TAP_DAMAGED, .psn = psn, .other = frame, .tap = fact_tap(there)));
        if (st->repeated) {
            copies_retransmission_gone(st, st->n_facts - 1u);
        } else if (s) {
            const struct seen_copies c = copies_of_request(x, here, s);
            copies_gone(st, GONE_DAMAGED, &c);
        }
        incident_frame_at(st, ROLE_LOST, there, frame);
        st->cause = CAUSE_BAD_ICRC;
        st->place = PLACE_AFTER;
        copies_between(x, st, st->flow, other);
        st->proved = found = true;
    }
    return found;
}

void damaged_between(struct explainer *x, struct incident *st, uint32_t other)
{
    uint32_t flow = explain_requests_of(x, st);
    bool response = flow != st->flow;
    uint8_t kind;
    struct seen_copies here, there;
    bool came = copies_at(x, flow, st->psn, response, &here);

    if (damaged_at(x, other, st->psn, response) || !copies_at(x, other, st->psn, response, &there))
        return;
    if (there.doubled || (came ? copies_compare(x, &there, &here) != FIRST_LATER : there.n != 1))
        return; /* which of its copies came damaged is not known */
    kind = response ? response_slot(x->notes[other], st->psn)->kind : RESPONSE_OTHER;
    incident_add(st, SAY(TAP_INTACT, .other = there.frame, .tap = fact_tap(copies_tap(x, other)), .psn = st->psn,
                         .n = kind == RESPONSE_SEQ_NAK, .m = kind == RESPONSE_RNR_NAK));
    st->has_nak = st->nak_gone = kind != RESPONSE_OTHER;
    st->nak_psn = st->psn;
    copies_gone(st, GONE_DAMAGED, &there);
    copies_between(x, st, other, flow);
    st->place = PLACE_BEFORE;
    st->proved = true;
}
