/* layer 3 (sim): the truth of a simulation: what is recorded of a fabric. */
#include "gen/sim/truth_impl.h"

static void sent(void *user, uint64_t serial, unsigned host, const uint8_t *data, uint32_t len, ns_t now)
{
    truth_sent(user,
               &(struct truth_seen){.data = data, .len = len, .serial = serial, .host = (uint16_t)host, .learn = true},
               now);
}

static void lost(void *user, uint64_t serial, const struct fabric_port *at, bool on_link, ns_t now)
{
    struct truth *t = user;
    struct truth_frame *f;

    (void)now;
    if (t->failed || serial > t->n_frames)
        return;
    f = truth_frame(t, serial);
    f->outcomes |= 1u << NET_DROPPED;
    f->at = at;
    f->on_link = on_link;
}

/* Frames that took another path have passed a frame that arrives now: it is out of order. */
static void note_order(struct truth *t, uint64_t serial, struct truth_frame *f)
{
    struct truth_flow *to = &t->flows[(f->conn - 1) * NET_HOSTS + (f->from ^ 1u)];

    if (f->class == PC_CNP)
        return;
    if (serial < to->newest)
        f->outcomes |= 1u << NET_BEHIND;
    else
        to->newest = serial;
}

static void arrived(void *user, uint64_t serial, unsigned host, ns_t now)
{
    struct truth_seen seen = {.serial = serial};
    struct truth *t = user;
    struct truth_frame *f;

    (void)host;
    if (t->failed || serial > t->n_frames)
        return;
    f = truth_frame(t, serial);
    truth_arrived(t, &seen, f, now);
    if (f->conn && !t->failed)
        note_order(t, serial, f);
}

static void paused(void *user, unsigned host, unsigned class, ns_t from, ns_t until)
{
    struct truth *t = user;
    struct truth_pause p = {.from = from, .to = until, .host = (uint16_t)host, .classes = (uint8_t)(1u << class)};

    for (size_t i = t->n_pauses; i > 0 && t->pauses[i - 1].from >= from; i--) {
        struct truth_pause *q = &t->pauses[i - 1];
        if (q->from == from && q->host == p.host && q->classes == p.classes) {
            q->to = until;
            return;
        }
    }
    if (truth_grow(t, &t->pauses, &t->cap_pauses, t->n_pauses, sizeof *t->pauses))
        t->pauses[t->n_pauses++] = p;
}

void truth_fabric_watch(struct truth *t)
{
    t->fabric = (struct fabric_watch){.sent = sent, .lost = lost, .arrived = arrived, .paused = paused, .user = t};
    fabric_set_watch(t->s->fabric, &t->fabric);
}
