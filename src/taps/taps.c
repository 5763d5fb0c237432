/* layer 2b (taps): the clock offsets between the taps of a capture. */
#include "src/taps/taps.h"

#include "bits.h"
#include "dissect/pkt.h"
#include "fetch.h"
#include "src/conn/packet.h"
#include "src/taps/marking.h"

#include <math.h>
#include <stdlib.h>

#define PROBES  16 /* places of the table tried for a packet */
#define FIRST   64 /* pairs of a link kept until the order of its taps is known */
#define ENOUGH  4  /* in each direction, to know that order */
#define TAPS    64 /* taps of which the resolution of time stamps is known */
#define COPIES  4  /* of a packet kept: it is compared with those at so many taps */
#define SOON    8  /* a packet is looked up when so many others have come; its places are fetched meanwhile */
#define NOWHERE UINT32_MAX

/* A packet waiting for its copies at other taps. */
struct waiting {
    bool doubtful; /* its tap saw this key twice: it matches none */
    uint8_t n;     /* copies: at one tap; at several, it was matched */
    uint8_t tos[COPIES];
    uint32_t tap[COPIES];
    ns_t ts[COPIES];
};

/* A packet as a tap saw it. */
struct seen {
    uint64_t key;
    struct conn_addr src, dst;
    ns_t ts;
    uint32_t tap;
    uint16_t payload; /* bytes of it, at most UINT16_MAX */
    uint8_t tos;
    bool doubtful; /* a request that is not in order: it may have been sent before */
};

/* Times of a packet at both taps of a link. */
struct sight {
    ns_t t[2];
    bool up; /* from the lower address to the higher */
};

/* Two taps, as far as they see the same two hosts. */
struct link {
    uint32_t tap[2];           /* the lower number first */
    struct conn_addr addr[2];  /* likewise */
    struct sight first[FIRST]; /* the latest pairs, while the order is not known */
    uint32_t n_first, n[2];    /* pairs until the order is known, all and by [up] */
    bool ordered, up_first;    /* up_first: packets to the higher address pass tap[0] first */
    struct clock_hull hull[2]; /* [up_first]; clock 1 is that of tap[0] */
    struct marking marking;
};

struct taps {
    uint64_t *keys; /* of the packets waiting: a search looks at many of them, so they lie together; 0: free */
    struct waiting *waiting;
    uint32_t n_waiting, n_matched; /* all; of these, those that were matched */
    unsigned sample;               /* only keys whose lowest `sample` bits are 0 are kept, */
    unsigned sample_matched;       /* and of those that were matched only these, for a third tap */
    struct link *links[TAPS_LINKS];
    uint32_t n_links;
    uint32_t tap[TAPS]; /* taps seen, */
    bool fine[TAPS];    /* and whether one of their time stamps is no multiple of 1 us */
    uint32_t n_taps;
    struct seen soon[SOON]; /* ring of the latest packets, which were not looked up yet */
    uint64_t n_seen;        /* packets that came to it */
};

/* --- Pairs: the order of the taps ------------------------------------------------------------- */

static struct link *link_of(const struct taps *t, const uint32_t tap[2], const struct conn_addr *low,
                            const struct conn_addr *high)
{
    for (uint32_t i = 0; i < t->n_links; i++) {
        struct link *l = t->links[i];
        bool taps = l->tap[0] == tap[0] && l->tap[1] == tap[1];
        if (taps && conn_addr_eq(&l->addr[0], low) && conn_addr_eq(&l->addr[1], high))
            return l;
    }
    return NULL;
}

static struct link *link_new(struct taps *t, const uint32_t tap[2], const struct conn_addr *low,
                             const struct conn_addr *high)
{
    struct link *l = t->n_links < TAPS_LINKS ? calloc(1, sizeof *l) : NULL;

    if (!l)
        return NULL;
    t->links[t->n_links++] = l;
    memcpy(l->tap, tap, sizeof l->tap);
    l->addr[0] = *low;
    l->addr[1] = *high;
    clock_hull_init(&l->hull[false]);
    clock_hull_init(&l->hull[true]);
    return l;
}

/* The order of the taps: if packets going up pass tap 0 first, t1 - t0 is larger for them than for packets going down,
 * by the delays of both directions between the taps, whatever the clocks. */
static void find_order(struct link *l)
{
    ns_t least[2] = {INT64_MAX, INT64_MAX}, most[2] = {INT64_MIN, INT64_MIN}; /* [up] */

    for (uint32_t i = 0; i < l->n_first && i < FIRST; i++) {
        const struct sight *s = &l->first[i];
        ns_t d = s->t[1] - s->t[0];
        least[s->up] = d < least[s->up] ? d : least[s->up];
        most[s->up] = d > most[s->up] ? d : most[s->up];
    }
    if ((least[true] >= most[false]) == (least[false] >= most[true]))
        return; /* the clocks drifted too much, or pairs of times contradict each other: later pairs may decide */
    l->ordered = true;
    l->up_first = least[true] >= most[false];
}

static void link_add(struct link *l, const struct sight *s)
{
    if (l->ordered) {
        clock_hull_add(&l->hull[l->up_first], s->t[0], s->t[1], s->up == l->up_first);
        return;
    }
    clock_hull_add(&l->hull[false], s->t[0], s->t[1], !s->up);
    clock_hull_add(&l->hull[true], s->t[0], s->t[1], s->up);
    l->first[l->n_first++ % FIRST] = *s;
    l->n[s->up]++;
    if (l->n[false] >= ENOUGH && l->n[true] >= ENOUGH)
        find_order(l);
}

static uint8_t tos_of(const struct pkt *p)
{
    return p->addr_len ? p->tos : 0;
}

/* Packet `p` is the same as copy `i` of the one waiting in `w`: add both times to the link of the two taps. */
static void matched(struct taps *t, const struct waiting *w, unsigned i, const struct seen *p)
{
    bool up = memcmp(p->src.b, p->dst.b, sizeof p->src.b) < 0, swapped = p->tap < w->tap[i];
    const struct conn_addr *low = up ? &p->src : &p->dst, *high = up ? &p->dst : &p->src;
    const uint32_t pair[2] = {swapped ? p->tap : w->tap[i], swapped ? w->tap[i] : p->tap};
    struct sight s = {.t = {swapped ? p->ts : w->ts[i], swapped ? w->ts[i] : p->ts}, .up = up};
    const struct marking_sight m = {.t = {s.t[0], s.t[1]},
                                    .len = p->payload,
                                    .up = up,
                                    .tos = {swapped ? p->tos : w->tos[i], swapped ? w->tos[i] : p->tos}};
    struct link *l = link_of(t, pair, low, high);

    if (!l)
        l = link_new(t, pair, low, high);
    if (!l)
        return;
    link_add(l, &s);
    marking_add(&l->marking, &m);
}

/* --- Packets that wait ------------------------------------------------------------------------ */

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * HASH_MULTIPLIER;
    return h ^ h >> 29;
}

static uint64_t key_of(const struct pkt *p, const struct conn_addr *src, const struct conn_addr *dst)
{
    uint64_t h = mix(load_le64(src->b + 8), load_le64(src->b));

    h = mix(mix(h, load_le64(dst->b + 8)), load_le64(dst->b));
    h = mix(h, (uint64_t)p->bth.dqpn << 32 | p->bth.psn);
    h = mix(h, (uint64_t)p->bth.opcode << 48 | (uint64_t)frame_ip_id(p) << 32 | icrc_of(p));
    h ^= h >> 32;
    return h ? h : 1;
}

static bool is_sampled(unsigned sample, uint64_t key)
{
    return !(key & ((UINT64_C(1) << sample) - 1));
}

static void drop(struct taps *t, uint32_t at)
{
    t->n_waiting--;
    t->n_matched -= t->waiting[at].n > 1;
    t->keys[at] = 0;
}

/* Drop half of the packets that were matched, which only a third tap needs; if there are none, half of the others. */
static void sample_less(struct taps *t)
{
    bool all = !t->n_matched;
    unsigned sample = all ? ++t->sample : ++t->sample_matched;

    for (uint32_t i = 0; i < TAPS_WAITING; i++)
        if (t->keys[i] && (all || t->waiting[i].n > 1) && !is_sampled(sample, t->keys[i]))
            drop(t, i);
}

/* The place of the table that is tried first for a packet. */
static uint32_t place_of(uint64_t key)
{
    return (uint32_t)(key >> 20) & (TAPS_WAITING - 1);
}

/* Where the packet with this key waits; NOWHERE: it does not, and *place is a free place for it, or NOWHERE. */
static uint32_t find(const struct taps *t, uint64_t key, uint32_t *place)
{
    *place = NOWHERE;
    for (uint32_t i = 0; i < PROBES; i++) {
        uint32_t at = (place_of(key) + i) & (TAPS_WAITING - 1);
        if (t->keys[at] == key)
            return at;
        if (!t->keys[at] && *place == NOWHERE)
            *place = at;
    }
    return NOWHERE;
}

static bool has_copy_of(const struct waiting *w, uint32_t tap)
{
    for (unsigned i = 0; i < w->n; i++)
        if (w->tap[i] == tap)
            return true;
    return false;
}

/* Another tap saw the waiting packet: compare its time with those of all taps that did. */
static void add_copy(struct taps *t, uint32_t at, const struct seen *p)
{
    struct waiting *w = &t->waiting[at];

    for (unsigned i = 0; i < w->n; i++)
        matched(t, w, i, p);
    if (w->n < COPIES) {
        t->n_matched += w->n == 1;
        w->tap[w->n] = p->tap;
        w->tos[w->n] = p->tos;
        w->ts[w->n++] = p->ts;
    }
    if (!is_sampled(t->sample_matched, t->keys[at]))
        drop(t, at);
}

static void look_up(struct taps *t, const struct seen *p)
{
    uint32_t place, at;
    struct waiting *w;

    if (!is_sampled(t->sample, p->key))
        return;
    at = find(t, p->key, &place);
    w = at == NOWHERE ? NULL : &t->waiting[at];
    if (w && w->n > 1 && (p->doubtful || has_copy_of(w, p->tap))) { /* it was sent again */
        drop(t, at);
        place = at;
        w = NULL;
    }
    if (w && !has_copy_of(w, p->tap) && !w->doubtful && !p->doubtful) {
        add_copy(t, at, p);
    } else if (w) {
        w->doubtful = true;
    } else if (place != NOWHERE && t->n_waiting < TAPS_WAITING / 4 * 3) {
        t->keys[place] = p->key;
        t->waiting[place] =
            (struct waiting){.doubtful = p->doubtful, .n = 1, .tos = {p->tos}, .tap = {p->tap}, .ts = {p->ts}};
        t->n_waiting++;
    } else {
        sample_less(t);
    }
}

/* A packet's place in the table depends on its key, and is hardly ever in the caches: fetch it now, and look the packet
 * up when SOON others have come. */
static void note_packet(struct taps *t, const struct event *e)
{
    struct seen *s = &t->soon[t->n_seen % SOON];
    const struct pkt *p = e->p;
    struct conn_addr src, dst;
    uint64_t key;

    conn_addr_of(p, &src, &dst);
    key = key_of(p, &src, &dst);
    if (!is_sampled(t->sample, key))
        return;
    if (t->n_seen++ >= SOON)
        look_up(t, s);
    fetch(&t->keys[place_of(key)], PROBES * sizeof *t->keys);
    fetch_to_write(&t->waiting[place_of(key)], sizeof *t->waiting);
    *s = (struct seen){.key = key,
                       .src = src,
                       .dst = dst,
                       .ts = p->frame->ts,
                       .tap = conn_tap_of(p->frame),
                       .payload = (uint16_t)min_u32(p->payload_len, UINT16_MAX),
                       .tos = tos_of(p),
                       .doubtful = e->kind == EVENT_REQUEST && e->as != SEEN_NEW && e->as != SEEN_GAP};
}

/* Note the tap, and the resolution of its time stamps. */
static void note_tap(struct taps *t, const struct frame *f)
{
    uint32_t tap = conn_tap_of(f), i = 0;

    while (i < t->n_taps && t->tap[i] != tap)
        i++;
    if (i == TAPS)
        return;
    if (i == t->n_taps) {
        t->n_taps++;
        t->tap[i] = tap;
    }
    t->fine[i] |= f->ts % NS_PER_US != 0;
}

static void on_event(void *user, const struct event *e)
{
    struct taps *t = user;
    const struct frame *f = e->p->frame;

    if (!f->has_ts || (e->kind != EVENT_REQUEST && e->kind != EVENT_RESPONSE))
        return;
    note_tap(t, f);
    if (e->p->bth.opcode & 0x80 || t->sample > 20) /* no packet of a connection; or the sample is too small */
        return;
    note_packet(t, e);
}

struct taps *taps_new(struct observer *o)
{
    struct taps *t = calloc(1, sizeof *t);
    const struct observer_sub s = {.user = t, .before = on_event};

    if (!t)
        return NULL;
    t->keys = calloc(TAPS_WAITING, sizeof *t->keys);
    t->waiting = calloc(TAPS_WAITING, sizeof *t->waiting);
    if (!t->keys || !t->waiting || !observer_subscribe(o, &s)) {
        taps_free(t);
        return NULL;
    }
    return t;
}

void taps_free(struct taps *t)
{
    if (!t)
        return;
    for (uint32_t i = 0; i < t->n_links; i++) {
        free(t->links[i]->marking.of);
        free(t->links[i]);
    }
    free(t->keys);
    free(t->waiting);
    free(t);
}

void taps_end(struct taps *t)
{
    for (uint64_t i = t->n_seen > SOON ? t->n_seen - SOON : 0; i < t->n_seen; i++)
        look_up(t, &t->soon[i % SOON]);
    t->n_seen = 0;
    for (uint32_t i = 0; i < t->n_links; i++)
        clock_hull_end(&t->links[i]->hull[t->links[i]->up_first]);
}

/* --- Estimates -------------------------------------------------------------------------------- */

/* Largest error of a tap's time stamps. */
static ns_t resolution(const struct taps *t, uint32_t tap)
{
    for (uint32_t i = 0; i < t->n_taps; i++)
        if (t->tap[i] == tap)
            return t->fine[i] ? 1 : NS_PER_US;
    return NS_PER_US;
}

/* The estimate of a link at time `ts` of tap `a`, negated if `a` is its second tap. */
static struct tap_offset offset_by(const struct taps *t, const struct link *l, uint32_t a, ns_t ts)
{
    bool turned = l->tap[0] != a;
    const struct clock_hull *h = &l->hull[l->up_first];
    struct clock_estimate e = clock_hull_at(h, ts);

    if (turned && e.known)
        e = clock_hull_at(h, ts - e.offset);
    return (struct tap_offset){.known = e.known && l->ordered,
                               .offset = turned ? -e.offset : e.offset,
                               .bound = e.bound + resolution(t, l->tap[0]) + resolution(t, l->tap[1]) - 2,
                               .skew_ppm = turned ? -e.skew_ppm : e.skew_ppm,
                               .steps = h->steps};
}

static bool joins(const struct link *l, uint32_t a, uint32_t b)
{
    return (l->tap[0] == a && l->tap[1] == b) || (l->tap[0] == b && l->tap[1] == a);
}

struct tap_offset taps_offset(const struct taps *t, uint32_t tap_a, uint32_t tap_b, ns_t ts)
{
    struct tap_offset best = {.known = tap_a == tap_b};

    for (uint32_t i = 0; i < t->n_links && tap_a != tap_b; i++)
        if (joins(t->links[i], tap_a, tap_b)) {
            struct tap_offset o = offset_by(t, t->links[i], tap_a, ts);
            if (o.known && (!best.known || o.bound < best.bound))
                best = o;
        }
    return best;
}

enum tap_order taps_order(const struct taps *t, uint32_t tap_a, uint32_t tap_b, const struct conn_addr *src,
                          const struct conn_addr *dst)
{
    bool up = memcmp(src->b, dst->b, sizeof src->b) < 0, swapped = tap_b < tap_a;
    const struct conn_addr *low = up ? src : dst, *high = up ? dst : src;
    const uint32_t pair[2] = {swapped ? tap_b : tap_a, swapped ? tap_a : tap_b};
    const struct link *l = link_of(t, pair, low, high);

    if (!l || !l->ordered)
        return TAPS_UNKNOWN;
    return (up == l->up_first) != swapped ? TAPS_A_FIRST : TAPS_B_FIRST;
}

/* Make a point of a sight of link `number`. False: the clocks are not known, or it was marked before. */
static bool point_of(const struct taps *t, uint32_t number, const struct marking_sight *s, struct marking_point *p)
{
    const struct link *l = t->links[number];
    struct tap_offset o = offset_by(t, l, l->tap[0], s->t[0]);
    unsigned first = s->up != l->up_first; /* tap that it passes first */
    ns_t forward = s->t[1] - s->t[0] - o.offset;

    if (!o.known || (s->tos[first] & 3) == 3)
        return false;
    *p = (struct marking_point){.tap = {l->tap[first], l->tap[!first]},
                                .dst = l->addr[s->up],
                                .dscp = s->tos[first] >> 2,
                                .marked = (s->tos[!first] & 3) == 3,
                                .len = s->len,
                                .link = number,
                                .left = s->t[!first],
                                .delay = first ? -forward : forward,
                                .bound = o.bound};
    return true;
}

size_t taps_marking(const struct taps *t, struct marking_report to[MARKING_REPORTS])
{
    struct marking_point *points;
    size_t n = 0;

    for (uint32_t i = 0; i < t->n_links; i++)
        n += t->links[i]->marking.marked ? t->links[i]->marking.n : 0;
    points = n ? malloc(n * sizeof *points) : NULL;
    if (!points)
        return 0;
    n = 0;
    for (uint32_t i = 0; i < t->n_links; i++)
        for (uint32_t k = 0; t->links[i]->marking.marked && k < t->links[i]->marking.n; k++)
            n += point_of(t, i, &t->links[i]->marking.of[k], &points[n]);
    n = marking_make(points, n, to);
    free(points);
    return n;
}

/* A time with its sign, in a suitable unit. */
static void put_signed(struct buf *b, ns_t t, int digits)
{
    static const struct {
        ns_t ns;
        const char *name;
    } units[] = {{NS_PER_S, "s"}, {NS_PER_MS, "ms"}, {NS_PER_US, "us"}, {1, "ns"}};
    unsigned u = 0;

    while (u + 1 < ARRAY_LEN(units) && (t < 0 ? -t : t) < units[u].ns)
        u++;
    buf_printf(b, "%.*f %s", u + 1 < ARRAY_LEN(units) ? digits : 0, (double)t / (double)units[u].ns, units[u].name);
}

void tap_offset_put(struct buf *b, const struct tap_offset *o)
{
    if (o->offset >= 0)
        buf_char(b, '+');
    put_signed(b, o->offset, 3);
    if (fabs(o->skew_ppm) < CLOCK_DRIFT_PPM - 0.05)
        buf_printf(b, " %+.1f ppm", fabs(o->skew_ppm) < 0.05 ? 0.0 : o->skew_ppm);
    buf_puts(b, " +-");
    put_signed(b, o->bound, 1);
}
