/* layer 3 (show): conversations of UDP and TCP, numbered in the order in which they begin. */
#include "src/show/streams.h"

#include "bits.h"
#include "dissect/ip/ip.h"
#include "dissect/ip/tcp.h"
#include "dissect/pkt.h"

#include <stdlib.h>

#define SLOTS (2 * STREAMS_MAX) /* of the hash table, a power of two */

/* One end: address and port. */
struct end {
    uint8_t addr[16];
    uint32_t port;
};

struct conversation {
    struct end ends[2]; /* the smaller one first */
    uint32_t tcp;       /* 0: UDP */
    uint32_t number;
    uint32_t syn; /* TCP: sequence number of its SYN, if have_syn */
    bool used, have_syn;
};

struct streams {
    struct conversation *table; /* SLOTS, zero pages until they are used */
    uint32_t kept;
    uint32_t next[2]; /* numbers of the next UDP and TCP conversations */
};

struct streams *streams_new(void)
{
    struct streams *s = calloc(1, sizeof *s);

    if (s && !(s->table = calloc(SLOTS, sizeof *s->table))) {
        free(s);
        return NULL;
    }
    return s;
}

void streams_free(struct streams *s)
{
    if (s)
        free(s->table);
    free(s);
}

/* Fill the ends of a conversation from the IP header before layer `i`; false: there is none in full. */
static bool ends_of(struct conversation *c, const struct pkt *p, unsigned i)
{
    const struct layer *l = &p->layers[i], *ip = l;
    const uint8_t *ports = p->data + l->off, *src;
    unsigned n;

    while (ip > p->layers && ip->hdr != &ip4_hdr && ip->hdr != &ip6_hdr)
        ip--;
    n = ip->hdr == &ip4_hdr ? 4 : 16;
    if (ip == p->layers || l->len < 4 || ip->len < (n == 4 ? 20 : 40))
        return false;
    src = p->data + ip->off + (n == 4 ? 12 : 8);
    for (unsigned k = 0; k < 2; k++) {
        memcpy(c->ends[k].addr, src + k * n, n);
        c->ends[k].port = load_be16(ports + 2 * k);
    }
    if (memcmp(&c->ends[0], &c->ends[1], sizeof c->ends[0]) > 0) {
        struct end t = c->ends[0];
        c->ends[0] = c->ends[1];
        c->ends[1] = t;
    }
    c->tcp = l->hdr == &tcp_hdr;
    return true;
}

static uint32_t hash_of(const struct conversation *c)
{
    uint64_t h = c->tcp;

    for (unsigned i = 0; i < sizeof c->ends / 8; i++) {
        uint64_t v;
        memcpy(&v, (const uint8_t *)c->ends + 8 * i, 8);
        h = (h ^ v) * HASH_MULTIPLIER;
        h ^= h >> 32;
    }
    return (uint32_t)h & (SLOTS - 1);
}

/* The kept conversation with these ends, or a new one; NULL: there are too many. */
static struct conversation *find(struct streams *s, const struct conversation *c)
{
    uint32_t i = hash_of(c);

    while (s->table[i].used && (s->table[i].tcp != c->tcp || memcmp(s->table[i].ends, c->ends, sizeof c->ends) != 0))
        i = (i + 1) & (SLOTS - 1);
    if (s->table[i].used)
        return &s->table[i];
    if (s->kept == STREAMS_MAX)
        return NULL;
    s->kept++;
    s->table[i] = *c;
    s->table[i].used = true;
    s->table[i].number = s->next[c->tcp]++;
    return &s->table[i];
}

/* A SYN with another sequence number begins another conversation of the same ends. */
static void note_syn(struct streams *s, struct conversation *c, const struct pkt *p, const struct layer *l)
{
    struct tcp h;

    if (l->len < 20)
        return;
    tcp_get(&h, p->data + l->off);
    if (!h.syn || h.ackf)
        return;
    if (c->have_syn && c->syn != h.seq)
        c->number = s->next[1]++;
    c->have_syn = true;
    c->syn = h.seq;
}

void streams_see(struct streams *s, struct pkt *p)
{
    p->n_streams = 0;
    for (unsigned i = 1; i < p->n_layers && p->n_streams < PKT_STREAMS; i++) {
        const struct layer *l = &p->layers[i];
        struct conversation key, *c;
        if (l->hdr != &udp_hdr && l->hdr != &tcp_hdr)
            continue;
        memset(&key, 0, sizeof key);
        c = ends_of(&key, p, i) ? find(s, &key) : NULL;
        if (c && c->tcp)
            note_syn(s, c, p, l);
        p->streams[p->n_streams++] = c ? c->number : STREAM_NONE;
    }
}
