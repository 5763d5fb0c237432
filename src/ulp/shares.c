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
#include "zeros.h"

/* The way from a tap to a host and back, of packets of another host that it only had to acknowledge. */
struct trip {
    ns_t least; /* with `n` */
    uint64_t n; /* times that were seen */
};

/* Two hosts at a tap: all of their connections, in either direction. It lives as long as one of them is known. */
struct trips {
    struct trips *next; /* in its bucket */
    uint64_t users;
    uint32_t tap;
    struct conn_addr addr[2]; /* the smaller one first */
    struct trip to[2];        /* of `addr` */
};

/* Which of the two has this address. */
static unsigned which(const struct trips *t, const struct conn_addr *a)
{
    return memcmp(t->addr[0].b, a->b, sizeof a->b) != 0;
}

/* One more connection between the two hosts, or a direction of it; NULL without memory. */
static struct trips *trips_take(struct ulp *u, uint32_t tap, const struct conn_addr *a, const struct conn_addr *b)
{
    bool turned = memcmp(a->b, b->b, sizeof a->b) > 0;
    struct trips **bucket = &u->trips[(conn_pair_hash(a, b) ^ tap) & (TRIP_BUCKETS - 1)], *t = *bucket;
    const struct conn_addr *first = turned ? b : a, *second = turned ? a : b;

    while (t && !(t->tap == tap && conn_addr_eq(&t->addr[0], first) && conn_addr_eq(&t->addr[1], second)))
        t = t->next;
    if (!t) {
        if (!(t = room_new(u, sizeof *t)))
            return NULL;
        *t = (struct trips){.next = *bucket, .tap = tap, .addr = {*first, *second}};
        *bucket = t;
    }
    t->users++;
    return t;
}

void trips_give(struct ulp *u, struct trips *t)
{
    struct trips **at;

    if (!t || --t->users)
        return;
    at = &u->trips[(conn_pair_hash(&t->addr[0], &t->addr[1]) ^ t->tap) & (TRIP_BUCKETS - 1)];
    while (*at != t)
        at = &(*at)->next;
    *at = t->next;
    room_free(u, t, sizeof *t);
}

void trips_free(struct ulp *u)
{
    for (unsigned i = 0; i < TRIP_BUCKETS; i++)
        while (u->trips[i]) {
            struct trips *t = u->trips[i];
            u->trips[i] = t->next;
            room_free(u, t, sizeof *t);
        }
    zeros_free(u->flow_trips, observer_flows(u->observer), sizeof *u->flow_trips);
}

static void take_trip(struct trip *t, ns_t took, uint64_t n)
{
    if (!t->n || took < t->least)
        t->least = took;
    t->n += n;
}

void trip_note(struct ulp *u, const struct event *e)
{
    const struct sent *s = req_dir_sent(e->h, e->p->bth.psn);
    bool sent_once = s && s->copies == 1 && !s->same && !s->late,
         refuses = e->p->have & H_AETH && response_type(e->p) != AETH_ACK;
    const struct flow *f;

    if (!sent_once || refuses || e->p->frame->ts < s->ts)
        return;
    f = conn_flow_at(observer_conns(u->observer), e->flow);
    if (!u->flow_trips[e->flow])
        u->flow_trips[e->flow] = trips_take(u, f->tap, &f->src, &f->dst);
    if (u->flow_trips[e->flow])
        take_trip(&u->flow_trips[e->flow]->to[which(u->flow_trips[e->flow], &f->dst)], e->p->frame->ts - s->ts, 1);
}

/* An end of an iWARP connection. */
static struct conn_addr end_of(const struct iwarp_conn *c, unsigned side)
{
    struct conn_addr a = {.network = c->network};

    memcpy(a.b, c->addr[side], sizeof a.b);
    return a;
}

void trip_note_stream(struct ulp *u, const struct iwarp_conn *c, struct stream_trips *t)
{
    if (!t->of) {
        const struct conn_addr a = end_of(c, 0), b = end_of(c, 1);
        t->of = trips_take(u, c->tap, &a, &b);
    }
    for (unsigned i = 0; t->of && i < IWARP_SIDES; i++) {
        const struct conn_addr a = end_of(c, i);
        uint64_t *seen = &t->seen[which(t->of, &a)];
        if (c->trip[i].n > *seen)
            take_trip(&t->of->to[which(t->of, &a)], c->trip[i].least, c->trip[i].n - *seen);
        *seen = c->trip[i].n;
    }
}

/* The way to an end of the connection and back; without `n`: not known. */
static struct trip trip_of(const struct ulp_conn *c, enum ulp_side to)
{
    if (c->stream) {
        bool initiator = (c->stream == 1) == (to == ULP_CLIENT);
        const struct conn_addr a = end_of(c->iwarp, initiator ? IWARP_INITIATOR : IWARP_RESPONDER);
        return c->trips && c->trips->of ? c->trips->of->to[which(c->trips->of, &a)] : (struct trip){0};
    }
    for (unsigned i = 0; i < ULP_SIDES; i++) {
        const struct trips *t = c->flow[i] == FLOW_NONE ? NULL : c->ulp->flow_trips[c->flow[i]];
        const struct flow *f = t ? conn_flow_at(observer_conns(c->ulp->observer), c->flow[i]) : NULL;
        if (t)
            return t->to[which(t, i == to ? &f->src : &f->dst)];
    }
    return (struct trip){0};
}

/* A part of a command's time. */
struct part {
    enum ulp_side from, to; /* from a packet of one to the next one, of the other */
    ns_t took, lost;        /* of `took` it was lost on the way */
    bool data;              /* packets of its data follow each other */
};

static void add(struct ulp_shares *s, const struct ulp_conn *c, const struct part *p)
{
    const struct trip way = p->from == p->to ? (struct trip){0, UINT64_MAX} : trip_of(c, p->to);
    ns_t lost = p->lost < p->took ? p->lost : p->took, left = p->took - lost, away = way.least,
         *own = p->data               ? &s->transfer
                : p->to == ULP_SERVER ? &s->server
                                      : &s->client;

    s->known &= way.n > 0 && p->took >= 0;
    s->bound |= way.n == 1 && away > 0;
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
