/* layer 3 (measure): rates of a direction before and after the first CNP that came in the other direction.
 *
 * Without CM, the first CNP may come before the two directions are known to be one connection. What each direction that
 * may be the other one had sent until then is kept: `sent` of the meter. */
#include "dissect/pkt.h"
#include "src/measure/meter_impl.h"

#include <stdlib.h>

#define SENT_LOOK 1024         /* directions of the same two hosts that are looked at */
#define SENT_MAX  (1u << 18)   /* values that are kept, together */
#define SENT_STEP UINT32_C(64) /* entries that `sent` grows by, at first */

/* What a direction had sent at a moment. */
struct had_sent {
    uint32_t flow;
    uint64_t first_frame; /* of its row: a later row of the same flow is another one */
    uint64_t payload;     /* bytes */
};

static bool sent_add(struct meter *m, uint32_t flow)
{
    const struct meter_row *r = &m->rows[flow];

    if (m->n_sent == m->cap_sent) {
        uint32_t cap = m->cap_sent ? m->cap_sent * 2 : SENT_STEP;
        struct had_sent *more = cap > SENT_MAX ? NULL : realloc(m->sent, cap * sizeof *more);
        if (!more)
            return false;
        m->sent = more;
        m->cap_sent = cap;
    }
    m->sent[m->n_sent++] = (struct had_sent){flow, r->first_frame, r->c.payload};
    return true;
}

/* `r`, of `flow`, is a direction with its first CNP whose other direction is not known. */
static void sent_note(struct meter *m, struct meter_row *r, uint32_t flow)
{
    const struct flow *f = conn_flow_at(m->conns, flow), *g;
    uint32_t looked = 0;

    r->sent_at = m->n_sent;
    for (uint32_t i = conn_first_between(m->conns, &f->dst, &f->src); i != FLOW_NONE && looked < SENT_LOOK;
         i = g->in[BY_PAIR].next, looked++) {
        g = conn_flow_at(m->conns, i);
        if (g->peer == FLOW_NONE && g->tap == f->tap && m->rows[i].used && !sent_add(m, i))
            break;
    }
    r->sent_n = m->n_sent - r->sent_at;
}

void slowed_note(struct meter *m, const struct pkt *p, uint32_t flow)
{
    uint32_t peer = conn_flow_at(m->conns, flow)->peer;
    struct meter_row *r = peer == FLOW_NONE ? NULL : &m->rows[peer];

    if (!r && m->rows[flow].c.cnps == 1)
        sent_note(m, &m->rows[flow], flow);
    if (!r || !r->used || r->slowed)
        return;
    r->slowed = p->frame->ts;
    r->slowed_payload = r->c.payload;
}

/* Of `flow`, whose row is `r`: its payload when the first CNP came in `peer`; false: not known. */
static bool sent_until(const struct meter *m, uint32_t flow, const struct meter_row *r, const struct meter_row *peer,
                       uint64_t *payload)
{
    if (r->slowed == peer->cnp_first) {
        *payload = r->slowed_payload;
        return true;
    }
    for (uint32_t i = 0; i < peer->sent_n; i++) {
        const struct had_sent *s = &m->sent[peer->sent_at + i];
        if (s->flow != flow || s->first_frame != r->first_frame)
            continue;
        *payload = s->payload;
        return true;
    }
    return false;
}

void slowed_finish(const struct meter *m, uint32_t flow, struct meter_row *r)
{
    uint32_t other = conn_flow_at(m->conns, flow)->peer;
    const struct meter_row *peer = other == FLOW_NONE ? NULL : &m->rows[other];
    uint64_t payload;
    ns_t at;

    if (!peer || !peer->used)
        return;
    r->cnps_received = peer->c.cnps;
    at = peer->cnp_first;
    if (!peer->c.cnps || !sent_until(m, flow, r, peer, &payload))
        return;
    if (at > r->first)
        r->rate_before_cnp = rate_of(payload, at - r->first);
    if (r->last > at)
        r->rate_after_cnp = rate_of(r->c.payload - payload, r->last - at);
}
