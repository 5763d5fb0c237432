/* layer 2b (conn): the numbers of connections: one number at all taps; and what happens to flows, told to others, and
 * let happen again in another table, among the flows of several such tables. */
#include "pack.h"
#include "src/conn/conn_impl.h"

#include <stdlib.h>

#define RENUMBERED (1u << 16) /* changes of numbers that are remembered */

/* A connection got another number. */
struct renumbered {
    uint32_t from, to;
};

/* Every flow, at any tap, that goes from `src` to queue pair `dqpn` of `dst` and has number `from` gets number `to`. */
static void renumber_end(struct conn_table *t, const struct conn_addr *src, const struct conn_addr *dst, uint32_t dqpn,
                         uint32_t from, uint32_t to)
{
    for (uint32_t i = conn_first_with(t, src, dst, dqpn); i != FLOW_NONE; i = conn_next_in(t, BY_KEY, i)) {
        struct flow *f = &t->flows[i];
        if (f->conn == from && f->dqpn == dqpn && addr_eq(&f->src, src) && addr_eq(&f->dst, dst))
            f->conn = to;
    }
}

void conn_renumber(struct conn_table *t, const struct flow *a, const struct flow *b, uint32_t to)
{
    const struct flow *ends[] = {a, b};

    for (unsigned i = 0; i < 2; i++)
        if (ends[i]->conn && ends[i]->conn != to)
            renumber_end(t, &ends[i]->src, &ends[i]->dst, ends[i]->dqpn, ends[i]->conn, to);
}

void conn_note_renumbered(struct conn_table *t, uint32_t from, uint32_t to)
{
    uint32_t cap = t->renumbered_cap ? t->renumbered_cap * 2 : 64;
    struct renumbered *more;

    conn_numbered(t, NUMBER_CHANGED, from, to);
    if (t->n_renumbered == t->renumbered_cap) {
        more = cap > RENUMBERED ? NULL : realloc(t->renumbered, cap * sizeof *more);
        if (!more)
            return;
        t->renumbered = more;
        t->renumbered_cap = cap;
    }
    t->renumbered[t->n_renumbered++] = (struct renumbered){from, to};
    t->renumbered_sorted = false;
}

static int by_from(const void *a, const void *b)
{
    const struct renumbered *x = a, *y = b;

    return x->from < y->from ? -1 : x->from > y->from;
}

uint32_t conn_number_now(struct conn_table *t, uint32_t number)
{
    const struct renumbered *r;

    if (!t->renumbered_sorted && t->n_renumbered) {
        qsort(t->renumbered, t->n_renumbered, sizeof *t->renumbered, by_from);
        t->renumbered_sorted = true;
    }
    while (t->n_renumbered &&
           (r = bsearch(&(struct renumbered){.from = number}, t->renumbered, t->n_renumbered, sizeof *r, by_from)))
        number = r->to; /* which is lower */
    return number;
}

/* Whether `g` is the traffic of `f`, maybe at another tap. */
static bool is_same_traffic(const struct flow *f, const struct flow *g)
{
    bool same = g->dqpn == f->dqpn && addr_eq(&g->src, &f->src) && addr_eq(&g->dst, &f->dst);

    return same && !(f->have_sqpn && g->have_sqpn && f->sqpn != g->sqpn);
}

/* A number other than `conn` of the same traffic as `f` at any tap; 0: none. */
static uint32_t other_number(struct conn_table *t, const struct flow *f, uint32_t conn)
{
    for (uint32_t i = conn_first_with(t, &f->src, &f->dst, f->dqpn); i != FLOW_NONE; i = conn_next_in(t, BY_KEY, i)) {
        const struct flow *g = &t->flows[i];
        if (g->conn && g->conn != conn && is_same_traffic(f, g))
            return g->conn;
    }
    return 0;
}

void conn_number_as_elsewhere(struct conn_table *t, uint32_t flow)
{
    const struct flow *f = &t->flows[flow], *peer = &t->flows[f->peer];

    while (f->conn) {
        uint32_t other = other_number(t, f, f->conn), low, high;
        if (!other)
            other = other_number(t, peer, f->conn);
        if (!other)
            return;
        low = min_u32(f->conn, other);
        high = max_u32(f->conn, other);
        t->unused++;
        conn_note_renumbered(t, high, low);
        renumber_end(t, &f->src, &f->dst, f->dqpn, high, low);
        renumber_end(t, &peer->src, &peer->dst, peer->dqpn, high, low);
    }
}

/* The connection number of the traffic of `f` at another tap, in either direction; 0: none. */
static uint32_t number_elsewhere(struct conn_table *t, const struct flow *f)
{
    struct flow back = {.src = f->dst, .dst = f->src, .dqpn = f->sqpn, .sqpn = f->dqpn, .have_sqpn = true};
    uint32_t n = other_number(t, f, 0);

    return n || !f->have_sqpn ? n : other_number(t, &back, 0);
}

__attribute__((noinline)) void conn_number_give(struct conn_table *t, uint32_t flow)
{
    struct flow *f = &t->flows[flow];
    uint32_t elsewhere = number_elsewhere(t, f);

    f->conn = elsewhere ? elsewhere : ++t->conns;
    conn_numbered(t, elsewhere ? NUMBER_REPEATED : NUMBER_GIVEN, f->conn, 0);
    conn_changed(t, FLOW_NUMBERED, flow, FLOW_NONE);
    t->newest = elsewhere ? FLOW_NONE : flow;
    if (f->peer == FLOW_NONE)
        return;
    t->flows[f->peer].conn = f->conn;
    conn_number_as_elsewhere(t, flow);
}

void conn_on_numbered(struct conn_table *t, void (*fn)(void *user, enum conn_numbered what, uint32_t a, uint32_t b),
                      void *user)
{
    t->numbered = fn;
    t->numbered_user = user;
}

uint32_t conn_number(const struct conn_table *t)
{
    return t->conns - t->unused;
}

void conn_number_put(struct buf *b, uint32_t number, uint32_t highest)
{
    buf_puts(b, count_str(number, "connection"));
    if (highest > number)
        buf_printf(b, number == 1 ? " (number %u)" : " (numbers up to %u)", highest);
}

/* --- What happens to flows -------------------------------------------------------------------- */

void conn_on_changed(struct conn_table *t, void (*fn)(void *user, const struct conn_change *c), void *user)
{
    t->changed = fn;
    t->changed_user = user;
}

void conn_tell_changed(const struct conn_table *t, enum conn_change_kind what, uint32_t flow, uint32_t other)
{
    const struct flow *f = &t->flows[flow];

    t->changed(t->changed_user, &(struct conn_change){.what = (uint8_t)what,
                                                      .newest = t->newest != FLOW_NONE,
                                                      .have_sqpn = f->have_sqpn,
                                                      .flow = flow,
                                                      .other = other,
                                                      .number = f->conn,
                                                      .tap = f->tap,
                                                      .dqpn = f->dqpn,
                                                      .sqpn = f->sqpn,
                                                      .src = f->src,
                                                      .dst = f->dst});
}

void conn_change_pack(struct pack *k, struct conn_change *c)
{
    struct conn_addr *const ends[] = {&c->src, &c->dst};

    PACK(k, c->what);
    PACK(k, c->newest);
    PACK(k, c->have_sqpn);
    PACK(k, c->flow);
    PACK(k, c->other);
    PACK(k, c->number);
    PACK(k, c->sqpn);
    k->bad |= c->what > FLOW_SENDER;
    if (c->what != FLOW_BEGUN)
        return;
    PACK(k, c->tap);
    PACK(k, c->dqpn);
    for (unsigned i = 0; i < ARRAY_LEN(ends); i++) {
        pack_bytes(k, ends[i]->b, sizeof ends[i]->b);
        PACK(k, ends[i]->network);
    }
}

/* --- Again ------------------------------------------------------------------------------------ */

bool conn_replayed_new(struct conn_replayed *r, uint32_t flows, uint32_t numbers)
{
    r->n = flows;
    r->n_numbers = numbers + 1; /* the first one is 1 */
    r->flow = malloc((flows + (size_t)1) * sizeof *r->flow);
    r->numbered = malloc((numbers + (size_t)1) * sizeof *r->numbered);
    if (!r->flow || !r->numbered)
        return false;
    memset(r->flow, 0xff, flows * sizeof *r->flow); /* FLOW_NONE */
    memset(r->numbered, 0xff, (numbers + (size_t)1) * sizeof *r->numbered);
    return true;
}

void conn_replayed_free(struct conn_replayed *r)
{
    free(r->flow);
    free(r->numbered);
    *r = (struct conn_replayed){.n = 0};
}

/* The flow here; FLOW_NONE: it did not begin. */
static uint32_t flow_here(const struct conn_replayed *r, uint32_t flow)
{
    return flow < r->n ? r->flow[flow] : FLOW_NONE;
}

/* It may be here already: a packet that all have got began it. */
static bool begin(struct conn_table *t, struct conn_replayed *r, const struct conn_change *c)
{
    const struct conn_key k = {c->src, c->dst, c->tap, c->dqpn};
    uint32_t flow = conn_find(t, &k);

    if (c->flow >= r->n || r->flow[c->flow] != FLOW_NONE || (flow == FLOW_NONE && t->n == t->max))
        return false;
    r->flow[c->flow] = flow == FLOW_NONE ? conn_begin(t, &k) : flow;
    return true;
}

static bool number(struct conn_table *t, struct conn_replayed *r, const struct conn_change *c, uint32_t flow)
{
    if (c->number >= r->n_numbers)
        return false;
    if (!t->flows[flow].conn)
        conn_number_give(t, flow);
    r->numbered[c->number] = flow;
    return true;
}

uint32_t conn_replayed_number(const struct conn_table *t, const struct conn_replayed *r, uint32_t number)
{
    uint32_t flow = number < r->n_numbers ? r->numbered[number] : FLOW_NONE;

    return flow == FLOW_NONE ? 0 : t->flows[flow].conn;
}

static bool join(struct conn_table *t, const struct conn_replayed *r, const struct conn_change *c, uint32_t flow)
{
    uint32_t other = flow_here(r, c->other);

    if (other == FLOW_NONE || other == flow)
        return false;
    if (!c->newest)
        t->newest = FLOW_NONE;
    conn_join(t, flow, other, PAIR_PSN);
    return true;
}

bool conn_replay(struct conn_table *t, struct conn_replayed *r, const struct conn_change *c, bool same)
{
    uint32_t flow = flow_here(r, c->flow);

    if (!same)
        t->newest = FLOW_NONE;
    if (c->what == FLOW_BEGUN)
        return begin(t, r, c);
    if (flow == FLOW_NONE)
        return false;
    switch ((enum conn_change_kind)c->what) {
    case FLOW_NUMBERED:
        return number(t, r, c, flow);
    case FLOWS_JOINED:
        return join(t, r, c, flow);
    default:
        t->flows[flow].have_sqpn = c->have_sqpn;
        t->flows[flow].sqpn = c->sqpn;
        return true;
    }
}
