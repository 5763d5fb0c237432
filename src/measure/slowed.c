/* layer 3 (measure): rates of a direction before and after the first CNP that came in the other direction.
 *
 * Without CM, the first CNP may come before the two directions are known to be one connection. What each direction that
 * may be the other one had sent until then is kept with the CNP's: meter_row.sent. */
#include "dissect/pkt.h"
#include "src/measure/meter_impl.h"

#include <stdlib.h>
#include <string.h>

#define SENT_LOOK 256 /* directions of the same two hosts that are looked at */

/* What a direction had sent at a moment. */
struct had_sent {
    uint32_t flow;
    uint64_t first_frame; /* of its row: a later row of the same flow is another one */
    uint64_t payload;     /* bytes */
};

/* `r`, of `flow`, is a direction with its first CNP whose other direction is not known. */
static void sent_note(struct meter *m, struct meter_row *r, uint32_t flow)
{
    const struct flow *f = conn_flow_at(m->conns, flow), *g;
    struct had_sent sent[SENT_LOOK];
    uint32_t looked = 0, n = 0;

    for (uint32_t i = conn_first_between(m->conns, &f->dst, &f->src); i != FLOW_NONE && looked < SENT_LOOK;
         i = g->in[BY_PAIR].next, looked++) {
        g = conn_flow_at(m->conns, i);
        if (g->peer == FLOW_NONE && g->tap == f->tap && m->rows[i].used)
            sent[n++] = (struct had_sent){i, m->rows[i].first_frame, m->rows[i].c.payload};
    }
    r->sent = n ? malloc(n * sizeof *sent) : NULL;
    r->n_sent = r->sent ? n : 0;
    if (r->sent)
        memcpy(r->sent, sent, n * sizeof *sent);
}

void slowed_free(struct meter_row *r)
{
    free(r->sent);
    r->sent = NULL;
    r->n_sent = 0;
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
static bool sent_until(uint32_t flow, const struct meter_row *r, const struct meter_row *peer, uint64_t *payload)
{
    if (r->slowed == peer->cnp_first) {
        *payload = r->slowed_payload;
        return true;
    }
    for (uint32_t i = 0; i < peer->n_sent; i++) {
        const struct had_sent *s = &peer->sent[i];
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
    if (!peer->c.cnps || !sent_until(flow, r, peer, &payload))
        return;
    if (at > r->first)
        r->rate_before_cnp = rate_of(payload, at - r->first);
    if (r->last > at)
        r->rate_after_cnp = rate_of(r->c.payload - payload, r->last - at);
}
