/* layer 4 (tool): parts of a run by hosts. */
#include "src/cli/runs/hosts_part.h"

#include "dissect/pkt.h"
#include "src/account/timeline.h"

bool hosts_part_skips(const struct trace_share *s, const struct pkt *p)
{
    struct conn_addr src, dst;

    if (!(p->have & H_BTH) || p->flags & PKT_MALFORMED || !p->op->name || p->op->ext & H_DETH)
        return false;
    conn_addr_of(p, &src, &dst);
    return !hosts_part_has(s, &src) && !hosts_part_has(s, &dst);
}

void hosts_part_packet(struct hosts_part *h, const struct pkt *p)
{
    h->numbers.now = (struct number_place){p->frame->ts, p->frame->file, p->frame->number};
    h->native |= (p->have & H_LRH) != 0;
}

const char *hosts_part_options(const struct trace *t)
{
    bool all = t->filter_text || t->n_pairs || t->joins.n || t->joins.all || t->anonymizer;

    for (size_t i = 0; i < t->n_files; i++)
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

const char *hosts_part_save(struct hosts_part *h, const struct trace *t, struct pack *k)
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
    if (n.evicted || room->refused)
        return "more --memory is needed";
    numbers_pack(k, &h->numbers);
    pack_number(k, use.episodes);
    pack_number(k, use.ports);
    pack_number(k, use.guesses);
    pack_number(k, use.cnps);
    pack_number(k, n.flows);
    pack_number(k, room->most);
    pack_number(k, n.sights);
    return NULL;
}

bool hosts_part_read(struct pack *k, const struct buf *wanted, struct hosts_part *h, struct hosts_use *sum)
{
    if ((size_t)(k->end - k->p) <= wanted->len || memcmp(k->p, wanted->p, wanted->len) != 0)
        return false;
    k->p += wanted->len;
    numbers_pack(k, &h->numbers);
    sum->timeline.episodes += pack_number(k, 0);
    sum->timeline.ports += pack_number(k, 0);
    sum->timeline.guesses += pack_number(k, 0);
    sum->timeline.cnps += pack_number(k, 0);
    sum->flows += pack_number(k, 0);
    sum->room += pack_number(k, 0);
    sum->sights += pack_number(k, 0);
    return !k->bad;
}

bool hosts_part_fit(const struct hosts_use *sum, const struct trace *t)
{
    const struct room *room = observer_room(t->observer);

    return timeline_use_fits(&sum->timeline) && sum->flows <= observer_flows(t->observer) &&
           sum->room <= room->limit / 2 && sum->sights <= CONN_SIGHTS;
}
