/* layer 3 (explain): taps on the same way, as other packets that both have show: requests that reached only one of
 * them. */
#include "src/explain/explain_impl.h"

#define WAY_BYTES 12 /* behind the IPv4 header: ports, and what counts a TCP connection's bytes */

/* What tells a packet of IPv4 from others on its whole way; 0: none. */
static uint32_t way_hash(const struct pkt *p)
{
    uint32_t at = p->ip_off, len;
    uint64_t h;

    if (!(p->have & H_IP4) || at + 20 > p->caplen)
        return 0;
    len = (p->data[at] & 15u) * 4;
    if (len < 20 || at + len + WAY_BYTES > p->caplen)
        return 0;
    h = load_be32(p->data + at + 2) ^ (uint64_t)p->data[at + 9] << 32;
    for (unsigned i = 0; i < WAY_BYTES; i += 4)
        h = (h ^ load_be32(p->data + at + len + i)) * HASH_MULTIPLIER;
    return (uint32_t)(h >> 32) | 1;
}

void explain_way(struct explainer *x, const struct pkt *p)
{
    uint32_t hash = way_hash(p), tap = conn_tap_of(p->frame);
    struct passed *q = &x->passed[hash >> 24 & (PASSED - 1)];
    struct way *w = &x->ways[0];
    struct conn_addr src, dst;

    if (!hash)
        return;
    conn_addr_of(p, &src, &dst);
    if (q->hash != hash || q->tap == tap || !conn_addr_eq(&q->src, &src) || !conn_addr_eq(&q->dst, &dst)) {
        *q = (struct passed){hash, tap, frame_u32(p), src, dst};
        return;
    }
    while (w < &x->ways[WAYS - 1] && w->frame[0] &&
           (w->taps[0] != q->tap || w->taps[1] != tap || !conn_addr_eq(&w->src, &src) || !conn_addr_eq(&w->dst, &dst)))
        w++;
    *w = (struct way){{q->tap, tap}, {q->frame, frame_u32(p)}, p->frame->ts, src, dst};
}

/* Another tap on the way of the flow, with a packet that both had after `since`; `here` is the place of the flow's tap
 * in it; NULL for none. */
static const struct way *way_beyond(const struct explainer *x, const struct flow *f, ns_t since, unsigned *here)
{
    for (const struct way *w = x->ways; w < &x->ways[WAYS]; w++) {
        *here = w->taps[1] == f->tap;
        if (w->frame[0] && w->taps[*here] == f->tap && w->ts >= since && conn_addr_eq(&w->src, &f->src) &&
            conn_addr_eq(&w->dst, &f->dst))
            return w;
    }
    return NULL;
}

/* Whether a request of the flow was seen at the tap. */
static bool is_seen_at(struct explainer *x, uint32_t flow, uint32_t tap, uint32_t psn)
{
    for (uint32_t i = 0; i < conn_counts(observer_conns(x->observer)).flows; i++) {
        struct req_dir *h = explain_same_flow(x, flow, i) && conn_flow_at(observer_conns(x->observer), i)->tap == tap
                                ? observer_req_dir(x->observer, i)
                                : NULL;
        if (h && h->have_next && psn_diff(psn, h->next) < 0)
            return true;
    }
    return false;
}

bool explain_is_unreached(struct explainer *x, const struct incident *st)
{
    unsigned here = 0;
    const struct way *w = way_beyond(x, conn_flow_at(observer_conns(x->observer), st->flow), st->start, &here);

    return w && st->is_request && !is_seen_at(x, st->flow, w->taps[!here], st->psn);
}

void explain_unreached(struct explainer *x, struct incident *st)
{
    const struct flow *f = conn_flow_at(observer_conns(x->observer), st->flow);
    unsigned here = 0;
    const struct way *w = way_beyond(x, f, st->start, &here);

    if (!w || !explain_is_unreached(x, st))
        return;
    st->place = PLACE_AFTER;
    st->proved = true;
    incident_add(
        st, SAY(TAP_UNREACHED, .tap = fact_tap(w->taps[!here]), .other = w->frame[!here], .again = w->frame[here]));
    for (uint32_t i = 0; i < x->n; i++)
        if (x->incidents[i].flow == st->flow && x->incidents[i].cause == CAUSE_SILENT_PEER)
            x->incidents[i].moot = true;
}
