/* layer 3 (net): exact events: the list, and applying them. */
#include "dissect/pkt.h"
#include "gen/net/event_row.h"
#include "gen/net/tap.h"

#include <stdlib.h>

struct event_list *event_list_new(void)
{
    struct event_list *l = calloc(1, sizeof *l);

    if (l)
        l->end = &l->first;
    return l;
}

void event_list_free(struct event_list *l)
{
    struct event *next;

    if (!l)
        return;
    for (struct event *e = l->first; e; e = next) {
        next = e->next;
        free(e->label);
        free(e);
    }
    conns_free(&l->conns);
    free(l->learner);
    free(l->seen);
    free(l);
}

bool event_learn(struct event_list *l)
{
    if (!l->learner)
        l->learner = calloc(1, sizeof *l->learner);
    if (!l->seen)
        l->seen = calloc(SEEN_SIZE, sizeof *l->seen);
    l->conns.by_addr = true;
    return l->learner && l->seen;
}

uint64_t event_unlearnt(const struct event_list *l)
{
    return l->learner ? l->learner->too_many : 0;
}

struct conns *event_conns(struct event_list *l)
{
    return &l->conns;
}

/* --- Applying --------------------------------------------------------------------------------- */

/* Count and return the iteration of this PSN in this direction: 1 for the first transmission, 2 for the first
 * retransmission ... The table is direct-mapped: a PSN that takes the place of another one makes that one count from 1
 * again. */
static uint32_t seen_count(struct event_list *l, const struct conns_view *v)
{
    uint64_t key = (uint64_t)(v->conn * 4 + v->from * 2u + v->request) << 24 | v->psn;
    struct seen *s = &l->seen[(key * HASH_MULTIPLIER) >> 48 & (SEEN_SIZE - 1)];

    if (s->key != key + 1)
        *s = (struct seen){key + 1, 0};
    return ++s->count;
}

static bool in_range(const struct range *r, uint64_t v)
{
    return v >= r->from && v <= r->to;
}

static bool event_matches(struct event *ev, const struct conns_view *v, uint32_t iteration)
{
    if ((ev->conn && ev->conn != v->conn) || !(ev->dirs >> v->from & 1) || !(ev->classes & v->class))
        return false;
    if (ev->by_psn && (!v->has_psn || !in_range(&ev->psn, v->psn)))
        return false;
    if (ev->by_iter && (!v->has_psn || !in_range(&ev->iter, iteration)))
        return false;
    ev->matched++;
    return !ev->by_nth || in_range(&ev->nth, ev->matched);
}

/* True if the action could be done. */
static bool action_apply(const struct action *a, struct event_result *r, uint8_t *data, uint32_t *len,
                         uint16_t linktype, struct prng *prng)
{
    bool done = true;

    switch ((enum action_kind)a->kind) {
    case ACT_DROP:
        r->drop = true;
        break;
    case ACT_CE:
        done = frame_mark_ce(data, *len, linktype, false);
        break;
    case ACT_CORRUPT:
        done = frame_damage(data, *len, linktype, a->damage, &a->field, prng);
        break;
    case ACT_DELAY:
        r->delay += (ns_t)a->value;
        break;
    case ACT_REORDER:
        r->reorder = (uint32_t)a->value;
        break;
    case ACT_DUP:
        r->dup += (uint32_t)a->value;
        break;
    case ACT_TRUNCATE:
        r->cut += a->value < *len ? (uint32_t)a->value : *len - 1;
        *len = a->value < *len ? *len - (uint32_t)a->value : 1;
        break;
    case ACT_AS:
        done = frame_retype(data, len, NET_FRAME_MAX, linktype, event_forms[a->value].opcode,
                            event_forms[a->value].syndrome);
        break;
    case ACT_SET:
        done = frame_field_set(&a->field, data, *len, linktype, a->value);
        if (done && !a->raw)
            frame_fix(data, *len, linktype);
        break;
    }
    return done;
}

static void event_count(struct event *ev, uint8_t done)
{
    ev->used++;
    ev->applied += done == (1u << ev->n_actions) - 1;
    for (unsigned i = 0; i < ev->n_actions; i++)
        ev->done[i] += done >> i & 1;
}

/* True if the action changes bytes of the frame. */
static bool changes(uint8_t kind)
{
    return kind == ACT_CE || kind == ACT_CORRUPT || kind == ACT_TRUNCATE || kind == ACT_AS || kind == ACT_SET;
}

static void event_apply(struct event *ev, unsigned number, struct event_result *r, uint8_t *data, uint32_t *len,
                        uint16_t linktype, struct prng *prng)
{
    struct event_hit hit = {.event = (uint16_t)number};

    for (unsigned i = 0; i < ev->n_actions; i++)
        if (action_apply(&ev->actions[i], r, data, len, linktype, prng)) {
            hit.done |= (uint8_t)(1u << i);
            r->changed |= changes(ev->actions[i].kind);
        }
    if (r->hit < EVENT_HITS)
        r->hits[r->hit] = hit;
    else
        event_count(ev, hit.done);
    r->hit++;
}

/* True if another action on the same frame prevents this one. */
static bool overruled(const struct action *a, const struct event_result *r)
{
    switch (a->kind) {
    case ACT_REORDER:
        return r->drop;
    case ACT_DELAY:
        return r->drop || r->reorder;
    case ACT_DUP:
        return r->drop || r->reorder || r->delay;
    default:
        return false;
    }
}

/* Count the actions applied, after all events. */
static void settle(struct event_list *l, struct event_result *r)
{
    for (unsigned i = 0; i < r->hit && i < EVENT_HITS; i++) {
        struct event *ev = event_at(l, r->hits[i].event);
        for (unsigned k = 0; k < ev->n_actions; k++)
            if (overruled(&ev->actions[k], r))
                r->hits[i].done &= (uint8_t) ~(1u << k);
        event_count(ev, r->hits[i].done);
    }
}

struct event_result events_apply(struct event_list *l, unsigned from, uint8_t *data, uint32_t *len, uint16_t linktype,
                                 struct prng *prng)
{
    struct event_result r = {0};
    unsigned number = 0;
    struct frame f;
    struct pkt p;

    if (!l->first && !l->learner)
        return r;
    frame_decode(&p, &f, data, *len, linktype);
    if (l->learner)
        conns_learn(l->learner, &l->conns, from, &p, &r.view);
    else
        conns_view(&l->conns, from, &p, &r.view);
    if (l->seen && r.view.has_psn)
        r.iteration = seen_count(l, &r.view);
    for (struct event *ev = l->first; ev; ev = ev->next) {
        number++;
        if (event_matches(ev, &r.view, r.iteration))
            event_apply(ev, number, &r, data, len, linktype, prng);
    }
    settle(l, &r);
    return r;
}

unsigned events_count(const struct event_list *l)
{
    unsigned n = 0;

    for (const struct event *ev = l->first; ev; ev = ev->next)
        n++;
    return n;
}

const char *event_label(const struct event_list *l, unsigned number)
{
    return event_at(l, number)->label;
}

uint64_t event_used(const struct event_list *l, unsigned number)
{
    return event_at(l, number)->used;
}

uint64_t event_applied(const struct event_list *l, unsigned number)
{
    return event_at(l, number)->applied;
}
