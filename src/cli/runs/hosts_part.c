/* layer 4 (tool): parts of a run by hosts. */
#include "src/cli/runs/hosts_part.h"

#include "dissect/pkt.h"
#include "room.h"
#include "src/account/timeline.h"

#include <stdlib.h>

/* --- One part --------------------------------------------------------------------------------- */

bool hosts_part_skips(const struct trace_share *s, const struct pkt *p)
{
    struct conn_addr src, dst;

    if (!hosts_part_is_theirs(p))
        return false;
    conn_addr_of(p, &src, &dst);
    return !hosts_part_has(s, &src, p->frame->file) && !hosts_part_has(s, &dst, p->frame->file);
}

void hosts_part_packet(struct hosts_part *h, const struct pkt *p)
{
    h->numbers.now = (struct number_place){p->frame->ts, p->frame->file, p->frame->number};
    h->native |= (p->have & H_LRH) != 0;
}

const char *hosts_part_needs_all(const struct trace *t)
{
    bool all = t->filter_text || t->n_pairs || t->joins.n || t->joins.all || t->anonymizer;

    for (size_t i = 0; i < t->n_files && t->shards.n_runs; i++)
        if (t->paths[i] != t->shards.digests[i])
            return "an upper protocol asks for payload of files themselves";
    return all ? "an option needs all packets" : NULL;
}

void hosts_part_pack_options(struct pack *k, const struct trace *t)
{
    const struct decode_opts *d = &t->decode;

    pack_number(k, t->memory);
    pack_number(k, d->verify);
    pack_number(k, d->n_udp_ports);
    for (unsigned i = 0; i < d->n_udp_ports; i++)
        pack_number(k, d->udp_ports[i]);
    t->share->options = t->share->found ? k->out->len : 0;
}

void hosts_part_last_frames(const struct trace *t, struct meter *m)
{
    const struct trace_share *s = t->share;
    struct timeline *timeline = observer_timeline(t->observer);

    for (size_t i = 0; i < s->n_ends; i++)
        for (uint32_t n = 0; n < s->ends[i].info.n_ifaces; n++)
            if (s->ends[i].last[n] != INT64_MIN) {
                timeline_last_frame(timeline, (uint32_t)i << 16 | n, s->ends[i].last[n]);
                meter_last_frame(m, s->ends[i].last[n]);
            }
}

const char *hosts_part_why(const struct hosts_part *h, const struct trace *t)
{
    struct conn_counts n = conn_counts(observer_conns(t->observer));
    const struct room *room = observer_room(t->observer);
    struct timeline_use use = timeline_use(observer_timeline(t->observer));

    if (h->numbers.failed)
        return "there are connections of TCP";
    if (h->native)
        return "there is native InfiniBand, whose hosts have LIDs and GIDs";
    if (conn_has_paths(observer_conns(t->observer)))
        return "connections have alternate paths";
    if (use.pauses)
        return "there are pause frames";
    if (use.gathers)
        return "requesters of several hosts that send to one slow down after CNPs";
    if (use.peers)
        return "retries of a requester had no response, and its peer may be dead";
    if (n.evicted || room->refused || room->declined)
        return ROOM_IS_SHORT;
    return h->why;
}

void hosts_part_used(const struct trace *t, uint64_t used[HOSTS_USES])
{
    struct conn_counts n = conn_counts(observer_conns(t->observer));
    struct timeline_use use = timeline_use(observer_timeline(t->observer));

    used[HOSTS_EPISODES] = use.episodes;
    used[HOSTS_PORTS] = use.ports;
    used[HOSTS_GUESSES] = use.guesses;
    used[HOSTS_CNPS] = use.cnps;
    used[HOSTS_FLOWS] = n.flows;
    used[HOSTS_ROOM] = observer_room(t->observer)->most;
    used[HOSTS_SIGHTS] = n.sights;
}

uint64_t hosts_part_kept(const struct hosts_part *h)
{
    return h->kept + (uint64_t)h->numbers.n * sizeof *h->numbers.of;
}

const char *hosts_part_room_why(const struct trace *t, const uint64_t used[HOSTS_USES])
{
    const struct timeline_use use = {.episodes = used[HOSTS_EPISODES],
                                     .ports = used[HOSTS_PORTS],
                                     .guesses = used[HOSTS_GUESSES],
                                     .cnps = used[HOSTS_CNPS]};
    bool room =
        used[HOSTS_FLOWS] <= observer_flows(t->observer) && used[HOSTS_ROOM] <= observer_room(t->observer)->limit / 2;

    if (!room)
        return ROOM_IS_SHORT;
    return used[HOSTS_SIGHTS] <= CONN_SIGHTS && timeline_use_fits(&use) ? NULL
                                                                        : "more is to be kept of hosts than can be";
}

const char *hosts_part_save(struct hosts_part *h, const struct trace *t, struct pack *k)
{
    const char *why = hosts_part_why(h, t);
    uint64_t used[HOSTS_USES];

    if (why)
        return why;
    hosts_part_used(t, used);
    numbers_pack(k, &h->numbers);
    for (unsigned i = 0; i < HOSTS_USES; i++)
        pack_number(k, used[i]);
    return NULL;
}

/* --- All parts -------------------------------------------------------------------------------- */

/* Read what is common to all commands. False: it is damaged. */
static bool read_part(struct pack *k, struct hosts_part *h, uint64_t sum[HOSTS_USES])
{
    numbers_pack(k, &h->numbers);
    for (unsigned i = 0; i < HOSTS_USES; i++)
        sum[i] += pack_number(k, 0);
    return !k->bad;
}

/* Whether one process would have had room for all. */
static bool fits(const struct trace *t, const uint64_t used[HOSTS_USES])
{
    const char *why = hosts_part_room_why(t, used);

    t->share->passed_over |= why && part_lacks_memory(why);
    return !why;
}

/* A command that takes. */
struct taking {
    struct trace *t;
    const struct hosts_taker *taker;
    void *user; /* of the taker */
};

static void options(void *user, struct pack *k)
{
    hosts_part_pack_options(k, ((struct taking *)user)->t);
}

/* Take what these parts have found. False: they do not serve. */
static bool take_these(void *user)
{
    const struct taking *g = user;
    struct trace *t = g->t;
    struct trace_share *s = t->share;
    struct hosts_part *of = calloc(s->n_parts, sizeof *of);
    struct numbers_log *logs = calloc(s->n_parts, sizeof *logs);
    struct conn_table *trial =
        conn_table_new(observer_flows(t->observer)); /* those of the command stay as they are if it fails */
    struct numbers_now now = {.n = 0}, again = {.n = 0};
    uint64_t used[HOSTS_USES] = {0};
    bool ok = of && logs && trial;

    for (uint32_t i = 0; ok && i < s->n_parts; i++) {
        ok = read_part(&s->parts[i], &of[i], used);
        logs[i] = of[i].numbers;
    }
    ok = ok && fits(t, used) && numbers_replay(logs, s->n_parts, trial, &now);
    for (uint32_t i = 0; ok && i < s->n_parts; i++)
        ok = g->taker->take(g->user, i, &s->parts[i], t, &logs[i]);
    ok = ok && numbers_replay(logs, s->n_parts, observer_conns(t->observer), &again);
    for (uint32_t i = 0; logs && i < s->n_parts; i++)
        numbers_free(&logs[i]);
    numbers_now_free(&now);
    numbers_now_free(&again);
    conn_table_free(trial);
    free(of);
    free(logs);
    return ok;
}

static void forget_these(void *user)
{
    const struct taking *g = user;

    g->taker->forget(g->user);
}

bool hosts_part_begin(struct hosts_part *h, struct trace *t, bool all, const struct hosts_taker *taker, void *user)
{
    static const struct parts_taker parts = {options, take_these, forget_these};
    struct trace_share *s = t->share;
    const char *why = all ? "an option needs all packets" : hosts_part_needs_all(t);

    if (s->found) {
        s->why = why;
        t->hosts = h;
        numbers_note(&h->numbers, observer_conns(t->observer));
        return false;
    }
    if (!why && parts_take(s, &parts, &(struct taking){t, taker, user})) {
        t->frames = s->packets;
        return true;
    }
    t->share = NULL;
    return false;
}
