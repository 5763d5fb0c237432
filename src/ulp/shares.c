/* layer 2b (ulp): whose time the latency of a command was: the server's, the client's, the network's.
 *
 *     client --command--------------> tap --------------> server      way to the server and back: network;
 *            <-----------------READ-- tap <--------------             what is left of it: server
 *            --READ response--------> tap -------------->             way to the client and back: network; client
 *            <-------------response-- tap <--------------             again the server's way, and the server
 *
 * Between two packets of the same end nobody waits for the network. */
#include "src/conn/go_back.h"
#include "src/iwarp/iwarp.h"
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

/* The way to an end and back, of a packet that it only had to acknowledge; -1: not known. */
static ns_t trip_of(const struct ulp_conn *c, enum ulp_side to)
{
    bool initiator = (c->stream == 1) == (to == ULP_CLIENT);

    return c->stream ? c->iwarp->trip[initiator ? IWARP_INITIATOR : IWARP_RESPONDER] : c->trip[to];
}

/* A part of a command's time. */
struct part {
    enum ulp_side from, to; /* from a packet of one to the next one, of the other */
    ns_t took, lost;        /* of `took` it was lost on the way */
    bool data;              /* packets of its data follow each other */
};

static void add(struct ulp_shares *s, const struct ulp_conn *c, const struct part *p)
{
    ns_t lost = p->lost < p->took ? p->lost : p->took, left = p->took - lost,
         away = p->from == p->to ? 0 : trip_of(c, p->to),
         *own = p->data               ? &s->transfer
                : p->to == ULP_SERVER ? &s->server
                                      : &s->client;

    s->known &= away >= 0 && p->took >= 0;
    away = away < left ? away : left;
    s->network += away + lost;
    *own += left - away;
}

struct ulp_shares ulp_command_shares(const struct ulp_command *c, const ns_t lost[ULP_PARTS])
{
    enum ulp_side asks = c->by_server ? ULP_SERVER : ULP_CLIENT, first = (enum ulp_side)c->first_by,
                  last = (enum ulp_side)c->last_by;
    struct ulp_shares s = {.known = c->response && c->at && !c->headless};
    bool data = c->data_first != 0;
    const struct part parts[ULP_PARTS] = {
        [ULP_BEFORE_DATA] = {asks, first, c->data_start - c->start, lost[ULP_BEFORE_DATA], false},
        [ULP_DATA] = {first, last, c->data_end - c->data_start, lost[ULP_DATA], true},
        [ULP_AFTER_DATA] = {data ? last : asks, ulp_other_side(asks), c->end - (data ? c->data_end : c->start),
                            lost[ULP_AFTER_DATA], false},
    };

    if (!s.known)
        return s;
    for (unsigned i = data ? ULP_BEFORE_DATA : ULP_AFTER_DATA; i < ULP_PARTS; i++)
        add(&s, c->at, &parts[i]);
    return s.known ? s : (struct ulp_shares){0};
}
