/* layer 2b (ulp): whose time the latency of a command was: the server's, the client's, the network's.
 *
 *     client --command--------------> tap --------------> server      way to the server and back: network;
 *            <-----------------READ-- tap <--------------             what is left of it: server
 *            --READ response--------> tap -------------->             way to the client and back: network; client
 *            <-------------response-- tap <--------------             again the server's way, and the server
 *
 * Between two packets of the same end nobody waits for the network. */
#include "src/conn/go_back.h"
#include "src/ulp/ulp_impl.h"

void trip_note(struct ulp_flow *f, const struct event *e)
{
    const struct sent *s = req_dir_sent(e->h, e->p->bth.psn);
    ns_t *trip = &f->conn->trip[ulp_other_side((enum ulp_side)f->side)], took;
    bool sent_once = s && s->copies == 1 && !s->same && !s->late,
         refuses = e->p->have & H_AETH && response_type(e->p) != AETH_ACK;

    if (!sent_once || refuses)
        return;
    took = e->p->frame->ts - s->ts;
    if (took >= 0 && (*trip < 0 || took < *trip))
        *trip = took;
}

/* From a packet of `from` to the next one, of `to`, it took so long. */
static void add(struct ulp_shares *s, const struct ulp_conn *c, enum ulp_side from, enum ulp_side to, ns_t took,
                bool data)
{
    ns_t away = from == to ? 0 : c->trip[to], *own = data ? &s->transfer : to == ULP_SERVER ? &s->server : &s->client;

    s->known &= away >= 0 && took >= 0;
    away = away < took ? away : took;
    s->network += away;
    *own += took - away;
}

struct ulp_shares ulp_command_shares(const struct ulp_command *c)
{
    enum ulp_side asks = c->by_server ? ULP_SERVER : ULP_CLIENT, first = (enum ulp_side)c->first_by,
                  last = (enum ulp_side)c->last_by;
    struct ulp_shares s = {.known = c->response && c->at && !c->stream};

    if (!s.known)
        return s;
    if (c->data_first) {
        add(&s, c->at, asks, first, c->data_start - c->start, false);
        add(&s, c->at, first, last, c->data_end - c->data_start, true);
    }
    add(&s, c->at, c->data_first ? last : asks, ulp_other_side(asks), c->end - (c->data_first ? c->data_end : c->start),
        false);
    return s.known ? s : (struct ulp_shares){0};
}
