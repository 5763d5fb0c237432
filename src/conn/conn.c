/* layer 2b (conn): flows and connections. */
#include "dissect/pkt.h"
#include "opt.h"
#include "src/conn/conn_impl.h"
#include "zeros.h"

#include <arpa/inet.h>
#include <stdlib.h>

#define CHAINS_MIN 4096  /* chains of the hash tables, at first */
#define PAIR_LOOKS 32768 /* flows looked at for the peer of one, in all its searches, before it is left alone */

const char *pairing_str(enum pairing p)
{
    static const char *const names[] = {"none", "PSN agreement", "TCP exchange", "CM", "user"};
    return names[p];
}

/* Stored as two 64-bit halves, because the comparison and hash right after load the same halves. */
static inline void addr_set(struct conn_addr *a, const uint8_t *p, unsigned len, uint64_t network)
{
    uint64_t upper = 0, lower;

    if (len == 4) {
        lower = UINT64_C(0xffff0000) | (uint64_t)load_le32(p) << 32;
    } else {
        upper = load_le64(p);
        lower = load_le64(p + 8);
    }
    memcpy(a->b, &upper, 8);
    memcpy(a->b + 8, &lower, 8);
    a->network = network;
}

static inline void addr_lid(struct conn_addr *a, uint16_t lid)
{
    memset(a, 0, sizeof *a);
    store_be16(a->b + 14, lid);
}

static inline void addr_of(const struct pkt *p, struct conn_addr *src, struct conn_addr *dst)
{
    if (LIKELY(p->addr_len)) {
        addr_set(src, p->src, p->addr_len, p->network);
        addr_set(dst, p->dst, p->addr_len, p->network);
    } else {
        addr_lid(src, p->have & H_LRH ? p->lrh.slid : 0);
        addr_lid(dst, p->have & H_LRH ? p->lrh.dlid : 0);
    }
}

void conn_addr_of(const struct pkt *p, struct conn_addr *src, struct conn_addr *dst)
{
    addr_of(p, src, dst);
}

bool conn_addr_parse(const char *text, struct conn_addr *a)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

    memcpy(a->b, mapped, 12);
    a->network = 0;
    return inet_pton(AF_INET, text, a->b + 12) == 1 || inet_pton(AF_INET6, text, a->b) == 1;
}

bool conn_end_parse(const char *s, size_t n, struct conn_addr *a, uint32_t *qpn)
{
    char text[80];
    char *colon;
    uint64_t v;

    if (n >= sizeof text)
        return false;
    memcpy(text, s, n);
    text[n] = '\0';
    colon = strrchr(text, ':');
    if (!colon || !opt_number(colon + 1, 0, 0xffffff, &v))
        return false;
    *qpn = (uint32_t)v;
    *colon = '\0';
    if (text[0] == '[' && colon[-1] == ']') {
        colon[-1] = '\0';
        a->network = 0;
        return inet_pton(AF_INET6, text + 1, a->b) == 1;
    }
    return conn_addr_parse(text, a);
}

void conn_addr_put(struct buf *b, const struct conn_addr *a)
{
    static const uint8_t none[14];

    if (memcmp(a->b, none, sizeof none) == 0)
        buf_printf(b, "lid %u", load_be16(a->b + 14));
    else
        buf_gid(b, a->b);
}

void conn_addr_json(struct buf *b, const struct conn_addr *a)
{
    struct buf text = {0};

    conn_addr_put(&text, a);
    buf_json(b, text.p, text.len);
    b->err |= text.err;
    buf_free(&text);
}

void conn_end_put(struct buf *b, const struct conn_addr *a, bool have_qpn, uint32_t qpn)
{
    conn_addr_put(b, a);
    if (!have_qpn)
        return;
    buf_char(b, ' ');
    buf_0x(b, qpn, 6);
}

/* Whether the path of another file ends with these parts. */
static bool is_name_of_another(const char *const *files, uint32_t file, const char *name)
{
    size_t n = strlen(name);

    for (uint32_t i = 0; files[i]; i++) {
        size_t len = strlen(files[i]);
        const char *end = len >= n ? files[i] + (len - n) : "";
        bool ends = strcmp(end, name) == 0 && (end == files[i] || end[-1] == '/');
        if (i != file && ends && strcmp(files[i], files[file]) != 0)
            return true;
    }
    return false;
}

const char *conn_file_name(const char *const *files, uint32_t file)
{
    const char *path = files[file], *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

    while (name > path && is_name_of_another(files, file, name))
        for (name--; name > path && name[-1] != '/';)
            name--;
    return name;
}

void conn_tap_put(struct buf *b, const char *const *files, uint32_t tap)
{
    if (files)
        buf_printf(b, "%s:%u", conn_file_name(files, tap >> 16), tap & 0xffff);
    else
        buf_printf(b, "file %u:%u", tap >> 16, tap & 0xffff);
}

static uint32_t key_hash(const struct flow *f)
{
    return hash_of(&f->src, &f->dst, f->dqpn);
}

/* The head of the chain that a flow is in. */
static uint32_t *head_of(const struct conn_table *t, const struct flow *f, enum flow_chain c)
{
    return c == BY_KEY    ? &t->chains[BY_KEY][f->hash & t->mask]
           : c == BY_PAIR ? conn_pair_chain(t, &f->src, &f->dst)
                          : conn_qpn_chain(t, f->tap, f->dqpn);
}

static void link_flow(struct conn_table *t, uint32_t flow)
{
    struct flow *f = &t->flows[flow];

    for (enum flow_chain c = 0; c < FLOW_CHAINS; c++) {
        uint32_t *head = head_of(t, f, c);
        f->in[c] = (struct flow_link){*head, FLOW_NONE};
        if (*head != FLOW_NONE)
            t->flows[*head].in[c].before = flow;
        *head = flow;
    }
}

static void unlink_flow(struct conn_table *t, uint32_t flow)
{
    const struct flow *f = &t->flows[flow];

    for (enum flow_chain c = 0; c < FLOW_CHAINS; c++) {
        struct flow_link in = f->in[c];
        *(in.before == FLOW_NONE ? head_of(t, f, c) : &t->flows[in.before].in[c].next) = in.next;
        if (in.next != FLOW_NONE)
            t->flows[in.next].in[c].before = in.before;
    }
}

/* Use `n` chains, a power of two, from now on. False without memory: the chains remain. */
static bool set_chains(struct conn_table *t, uint32_t n)
{
    size_t bytes = (size_t)FLOW_CHAINS * n * sizeof(uint32_t);
    uint32_t *all = malloc(bytes);

    if (!all)
        return false;
    free(t->chains[0]);
    memset(all, 0xff, bytes);
    for (unsigned c = 0; c < FLOW_CHAINS; c++)
        t->chains[c] = all + (size_t)c * n;
    t->mask = n - 1;
    for (uint32_t i = 0; i < t->n; i++)
        link_flow(t, i);
    return true;
}

struct conn_table *conn_table_new(uint32_t max_flows)
{
    struct conn_table *t = calloc(1, sizeof *t);

    if (!t)
        return NULL;
    t->max = max_flows;
    t->newest = FLOW_NONE;
    t->flows = zeros_new(max_flows, sizeof *t->flows);
    t->known = known_new(max_flows);
    t->paths = paths_new();
    t->psns = psn_index_new();
    if (!t->flows || !t->known || !t->paths || !t->psns || !set_chains(t, CHAINS_MIN)) {
        conn_table_free(t);
        return NULL;
    }
    return t;
}

void conn_table_free(struct conn_table *t)
{
    if (!t)
        return;
    zeros_free(t->flows, t->max, sizeof *t->flows);
    free(t->chains[0]);
    known_free(t->known);
    paths_free(t->paths);
    psn_index_free(t->psns);
    free(t->renumbered);
    bitset_free(&t->taken);
    free(t);
}

void conn_table_user(struct conn_table *t, void *user, conn_flow_over *over, conn_has_psn *has_psn,
                     conn_goes_on *goes_on)
{
    t->user = user;
    t->over = over;
    t->has_psn = has_psn;
    t->goes_on = goes_on;
}

struct flow *conn_flow_at(struct conn_table *t, uint32_t flow)
{
    return &t->flows[flow];
}

struct flow *conn_flows(struct conn_table *t)
{
    return t->flows;
}

void conn_expect_many(struct conn_table *t)
{
    zeros_many(t->flows, t->max, sizeof *t->flows);
}

static inline bool key_fits(const struct conn_key *k, const struct flow *f)
{
    return f->dqpn == k->dqpn && f->tap == k->tap && addr_eq(&f->src, &k->src) && addr_eq(&f->dst, &k->dst);
}

uint32_t conn_find(const struct conn_table *t, const struct conn_key *k)
{
    uint32_t hash = hash_of(&k->src, &k->dst, k->dqpn);

    for (uint32_t i = t->chains[BY_KEY][hash & t->mask]; i != FLOW_NONE; i = conn_next_in(t, BY_KEY, i))
        if (t->flows[i].hash == hash && key_fits(k, &t->flows[i]))
            return i;
    return FLOW_NONE;
}

/* Slot of a flow in conn_table.recent. The two directions of a connection differ in QPN or source address. */
static inline uint32_t recent_slot(const struct conn_key *k)
{
    return (k->dqpn ^ k->src.b[15] ^ (uint32_t)k->src.network) % RECENT;
}

/* Evict the next flow that was not used since the clock hand passed it; returns its index. */
static uint32_t evict(struct conn_table *t)
{
    struct flow *f;

    while (t->flows[t->hand].used) {
        t->flows[t->hand].used = false;
        t->hand = (t->hand + 1) % t->max;
    }
    f = &t->flows[t->hand];
    unlink_flow(t, t->hand);
    if (f->peer != FLOW_NONE)
        t->flows[f->peer].peer = FLOW_NONE;
    t->evicted++;
    return t->hand;
}

/* The flow that was paired with flow `i` until now is not: `i` is paired with flow `with`. */
static void part_from_other(struct conn_table *t, uint32_t i, uint32_t with)
{
    uint32_t other = t->flows[i].peer;
    struct flow *o = other == FLOW_NONE || other == with ? NULL : &t->flows[other];

    if (!o || o->peer != i)
        return;
    o->peer = FLOW_NONE;
    o->paired_by = PAIR_NONE;
    o->have_sqpn = false;
    o->looks = 0;
}

void conn_join(struct conn_table *t, uint32_t a, uint32_t b, enum pairing how)
{
    struct flow *fa = &t->flows[a], *fb = &t->flows[b];
    uint32_t low = min_u32(fa->conn, fb->conn), high = max_u32(fa->conn, fb->conn), conn = low ? low : high;
    bool two_numbers = low && low != high;
    bool has_newest = t->newest != FLOW_NONE && (a == t->newest || b == t->newest);

    conn_changed(t, FLOWS_JOINED, a, b);
    if (two_numbers && has_newest && high == t->flows[t->newest].conn) {
        conn_numbered(t, NUMBER_GIVEN_UP, high, low);
        t->conns--; /* the number is still unused: it goes to the next connection */
        t->newest = FLOW_NONE;
    } else if (two_numbers) {
        t->unused++;
        conn_note_renumbered(t, high, low);
    }
    conn_renumber(t, fa, fb, conn);
    part_from_other(t, a, b);
    part_from_other(t, b, a);
    fa->peer = b;
    fb->peer = a;
    fa->conn = fb->conn = conn;
    fa->paired_by = fb->paired_by = (uint8_t)how;
    fa->sqpn = fb->dqpn;
    fb->sqpn = fa->dqpn;
    fa->have_sqpn = fb->have_sqpn = true;
    fa->pmtu = fb->pmtu = max_u32(fa->pmtu, fb->pmtu);
    if (!fa->upper)
        fa->upper = fb->upper;
    fb->upper = fa->upper;
    conn_number_as_elsewhere(t, a);
}

uint32_t conn_begin(struct conn_table *t, const struct conn_key *k)
{
    uint32_t i;

    if (t->n > t->mask)
        set_chains(t, 2 * (t->mask + 1));
    i = t->n < t->max ? t->n++ : evict(t);
    if (t->over)
        t->over(t->user, i, false);
    t->flows[i] = (struct flow){.src = k->src, .dst = k->dst, .tap = k->tap, .dqpn = k->dqpn, .peer = FLOW_NONE};
    t->flows[i].hash = key_hash(&t->flows[i]);
    link_flow(t, i);
    t->newest = i;
    conn_changed(t, FLOW_BEGUN, i, FLOW_NONE);
    conn_recall(t, i);
    return i;
}

static inline void key_of(const struct pkt *p, struct conn_key *k)
{
    k->tap = conn_tap_of(p->frame);
    k->dqpn = p->bth.dqpn;
    addr_of(p, &k->src, &k->dst);
}

uint32_t conn_flow_find(const struct conn_table *t, const struct pkt *p)
{
    struct conn_key k;

    key_of(p, &k);
    paths_resolve(t->paths, &k);
    return conn_find(t, &k);
}

uint32_t conn_flow_named(const struct conn_table *t, uint32_t tap, const struct conn_addr *src,
                         const struct conn_addr *dst, uint32_t dqpn)
{
    struct conn_key k = {*src, *dst, tap, dqpn};

    paths_resolve(t->paths, &k);
    return conn_find(t, &k);
}

uint32_t conn_flow_alike(const struct conn_table *t, uint32_t flow, uint32_t from)
{
    const struct flow *f = &t->flows[flow];
    uint32_t least = FLOW_NONE;

    for (uint32_t i = t->chains[BY_KEY][f->hash & t->mask]; i != FLOW_NONE; i = conn_next_in(t, BY_KEY, i)) {
        const struct flow *g = &t->flows[i];
        if (i >= from && i < least && g->dqpn == f->dqpn && addr_eq(&g->src, &f->src) && addr_eq(&g->dst, &f->dst))
            least = i;
    }
    return least;
}

/* The latest packet of the flow took path number `path`. */
static __attribute__((noinline)) void take_path(struct conn_table *t, struct flow *f, uint32_t path)
{
    uint8_t timeout = path ? paths_timeout(t->paths, path) : CONN_TIMEOUT_KEPT;

    if (path == f->path)
        return;
    f->path = path;
    f->moved = true;
    if (timeout != CONN_TIMEOUT_KEPT)
        f->params.timeout = timeout;
}

bool conn_moved(struct conn_table *t, uint32_t flow)
{
    bool moved = t->flows[flow].moved;

    if (UNLIKELY(moved))
        t->flows[flow].moved = false;
    return moved;
}

/* A flow that is not in its recent_slot(). Apart from flow_of(), so that this stays short. */
static __attribute__((noinline)) uint32_t flow_search(struct conn_table *t, const struct conn_key *k,
                                                      const struct pkt *p)
{
    struct conn_key first = *k;
    uint32_t path = paths_resolve(t->paths, &first), i;

    i = conn_find(t, &first);
    if (i == FLOW_NONE && !path && paths_learn_migration(t, k, p)) {
        path = paths_resolve(t->paths, &first);
        i = conn_find(t, &first);
    }
    if (i == FLOW_NONE)
        i = conn_begin(t, &first);
    else
        t->newest = FLOW_NONE;
    take_path(t, &t->flows[i], path);
    t->recent[recent_slot(k)] = i;
    return i;
}

static inline uint32_t flow_of(struct conn_table *t, const struct pkt *p)
{
    struct conn_key k;
    uint32_t i;

    key_of(p, &k);
    i = t->recent[recent_slot(&k)];
    if (LIKELY(i < t->n && key_fits(&k, &t->flows[i])))
        t->newest = FLOW_NONE;
    else
        i = flow_search(t, &k, p);
    if (UNLIKELY(t->flows[i].path) && key_fits(&k, &t->flows[i]))
        take_path(t, &t->flows[i], 0);
    if (UNLIKELY(!t->flows[i].used))
        t->flows[i].used = true; /* not written for nothing: another thread may have it in its caches */
    return i;
}

uint32_t conn_flow_unnumbered(struct conn_table *t, const struct pkt *p)
{
    return flow_of(t, p);
}

uint32_t conn_flow(struct conn_table *t, const struct pkt *p)
{
    uint32_t i = flow_of(t, p);

    if (UNLIKELY(!t->flows[i].conn))
        conn_number_give(t, i);
    return i;
}

/* Whether `g` goes between the addresses of `f` in the other direction, at its tap. */
static bool is_reverse(const struct flow *f, const struct flow *g)
{
    return g->tap == f->tap && addr_eq(&g->src, &f->dst) && addr_eq(&g->dst, &f->src);
}

/* Whether `g` may be the other direction of `f`: unpaired, between the same addresses, and no known QPN contradicts. */
static bool may_be_peer(const struct flow *f, const struct flow *g)
{
    return g->peer == FLOW_NONE && is_reverse(f, g) && !(f->have_sqpn && f->sqpn != g->dqpn) &&
           !(g->have_sqpn && g->sqpn != f->dqpn);
}

/* Candidates for the peer of a flow. */
struct candidates {
    struct conn_table *t;
    const struct flow *f;
    uint32_t psn, found, n;
};

/* Examine a flow that may have requested the PSN. A flow that has a peer is dropped from the index; two candidates are
 * ambiguous. */
static enum psn_sight examine(void *user, uint32_t flow)
{
    struct candidates *c = user;
    const struct flow *g = &c->t->flows[flow];

    if (g->peer != FLOW_NONE)
        return SIGHT_DROP;
    if (flow != c->found && may_be_peer(c->f, g) && c->t->has_psn(c->t->user, flow, c->psn)) {
        c->found = flow;
        c->n++;
    }
    return c->n > 1 ? SIGHT_STOP : SIGHT_KEEP;
}

void conn_note_psn(struct conn_table *t, uint32_t flow, uint32_t psn)
{
    const struct flow *f = &t->flows[flow];

    if (f->peer == FLOW_NONE)
        psn_index_add(t->psns, &f->src, &f->dst, psn, flow);
}

/* Flows whose requested PSNs are not in the index of conn_note_psn(): every flow is examined. */
static void examine_all(struct candidates *c, struct flow *f)
{
    for (uint32_t i = *conn_pair_chain(c->t, &f->dst, &f->src); i != FLOW_NONE && c->n < 2;
         i = conn_next_in(c->t, BY_PAIR, i)) {
        f->looks += is_reverse(f, &c->t->flows[i]);
        examine(c, i);
    }
}

void conn_pair_by_psn(struct conn_table *t, uint32_t flow, uint32_t psn)
{
    struct flow *f = &t->flows[flow];
    struct candidates c = {.t = t, .f = f, .psn = psn, .found = FLOW_NONE};

    if (f->peer != FLOW_NONE || !t->has_psn)
        return;
    psn_index_find(t->psns, &f->dst, &f->src, psn, examine, &c);
    if (!c.n && f->looks < PAIR_LOOKS)
        examine_all(&c, f);
    if (c.n == 1)
        conn_join(t, flow, c.found, f->have_sqpn ? (enum pairing)f->paired_by : PAIR_PSN);
}

struct conn_counts conn_counts(const struct conn_table *t)
{
    return (struct conn_counts){t->n, t->conns, t->evicted, psn_index_count(t->psns)};
}

/* Whether a flow other than `but` goes from `src` to `dst` at `tap`. */
static bool has_flow(const struct conn_table *t, uint32_t tap, const struct conn_addr *src, const struct conn_addr *dst,
                     uint32_t but)
{
    uint32_t i = *conn_pair_chain(t, src, dst);

    for (; i != FLOW_NONE; i = conn_next_in(t, BY_PAIR, i)) {
        const struct flow *f = &t->flows[i];
        if (i != but && f->tap == tap && addr_eq(&f->src, src) && addr_eq(&f->dst, dst))
            return true;
    }
    return false;
}

uint32_t conn_first_between(const struct conn_table *t, const struct conn_addr *src, const struct conn_addr *dst)
{
    return *conn_pair_chain(t, src, dst);
}

bool conn_has_reverse(const struct conn_table *t, uint32_t flow)
{
    const struct flow *f = &t->flows[flow];

    return has_flow(t, f->tap, &f->dst, &f->src, FLOW_NONE);
}

bool conn_has_other(const struct conn_table *t, uint32_t flow)
{
    const struct flow *f = &t->flows[flow];

    return has_flow(t, f->tap, &f->src, &f->dst, flow);
}

uint32_t conn_number_take(struct conn_table *t)
{
    bitset_add(&t->taken, ++t->conns);
    t->newest = FLOW_NONE;
    conn_numbered(t, NUMBER_TAKEN, t->conns, 0);
    return t->conns;
}

bool conn_exists(const struct conn_table *t, uint32_t conn)
{
    for (uint32_t i = 0; i < t->n; i++)
        if (t->flows[i].conn == conn)
            return true;
    return conn <= t->conns && bitset_has(&t->taken, conn);
}
