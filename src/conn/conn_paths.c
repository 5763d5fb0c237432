/* layer 2b (conn): alternate paths: packets along a path that both ends have accepted belong to the connection's flows.
 */
#include "dissect/pkt.h"
#include "src/conn/conn_impl.h"
#include "zeros.h"

#define NONE 0

/* A path, in a chain for each of its directions: the latest first. */
struct path_entry {
    struct conn_path p;
    uint32_t next[2]; /* link: 1 + entry * 2 + the end that receives; NONE: the last */
};

struct paths {
    struct path_entry entries[PATHS_MAX]; /* a ring */
    uint32_t chains[PATHS_MAX];           /* by hash of both addresses and the receiver's queue pair */
    uint32_t n, at;                       /* entries in use; the oldest once all are */
    bool forgotten;                       /* some paths are not known any more */
};

struct paths *paths_new(void)
{
    return zeros_new(1, sizeof(struct paths));
}

void paths_free(struct paths *t)
{
    zeros_free(t, 1, sizeof *t);
}

static inline uint32_t entry_of(uint32_t link)
{
    return (link - 1) / 2;
}
static inline unsigned end_of(uint32_t link)
{
    return (link - 1) % 2;
}

static uint32_t *chain_of(struct paths *t, const struct conn_addr *src, const struct conn_addr *dst, uint32_t dqpn)
{
    return &t->chains[hash_of(src, dst, dqpn) % PATHS_MAX];
}

static void link_path(struct paths *t, uint32_t entry)
{
    const struct conn_path *p = &t->entries[entry].p;

    for (unsigned end = 0; end < 2; end++) {
        uint32_t *chain = chain_of(t, &p->alt[!end], &p->alt[end], p->qpn[end]);
        t->entries[entry].next[end] = *chain;
        *chain = 1 + entry * 2 + end;
    }
}

static void unlink_path(struct paths *t, uint32_t entry)
{
    const struct conn_path *p = &t->entries[entry].p;

    for (unsigned end = 0; end < 2; end++) {
        uint32_t *at = chain_of(t, &p->alt[!end], &p->alt[end], p->qpn[end]);
        while (*at != NONE && *at != 1 + entry * 2 + end)
            at = &t->entries[entry_of(*at)].next[end_of(*at)];
        if (*at != NONE)
            *at = t->entries[entry].next[end];
    }
}

/* The latest path from `src` to queue pair `dqpn` of `dst`; NONE. */
static uint32_t path_find(struct paths *t, const struct conn_addr *src, const struct conn_addr *dst, uint32_t dqpn)
{
    uint32_t link = *chain_of(t, src, dst, dqpn);

    for (; link != NONE; link = t->entries[entry_of(link)].next[end_of(link)]) {
        const struct conn_path *p = &t->entries[entry_of(link)].p;
        unsigned end = end_of(link);
        if (p->qpn[end] == dqpn && addr_eq(&p->alt[end], dst) && addr_eq(&p->alt[!end], src))
            return link;
    }
    return NONE;
}

uint32_t paths_resolve(struct paths *t, struct conn_key *k)
{
    uint32_t link = t->n ? path_find(t, &k->src, &k->dst, k->dqpn) : NONE;
    const struct conn_path *p;

    if (LIKELY(link == NONE))
        return 0;
    p = &t->entries[entry_of(link)].p;
    k->src = p->addr[!end_of(link)];
    k->dst = p->addr[end_of(link)];
    return link;
}

bool conn_has_paths(const struct conn_table *t)
{
    return t->paths->n;
}

bool conn_path_is_guessed(const struct conn_table *t, uint32_t flow)
{
    uint32_t path = t->flows[flow].path;

    return path && t->paths->entries[entry_of(path)].p.guessed;
}

bool conn_flow_has_paths(const struct conn_table *t, uint32_t flow)
{
    const struct flow *f = &t->flows[flow];
    bool any = t->paths->forgotten;

    for (uint32_t i = 0; i < t->paths->n && !any; i++) {
        const struct conn_path *p = &t->paths->entries[i].p;
        for (unsigned end = 0; end < 2; end++)
            any |= p->qpn[end] == f->dqpn && addr_eq(&p->addr[end], &f->dst) && addr_eq(&p->addr[!end], &f->src);
    }
    return any;
}

bool paths_go_back(struct paths *t, const struct conn_key *k, const struct flow *f)
{
    struct conn_key back = {.src = k->dst, .dst = k->src, .tap = k->tap, .dqpn = k->dqpn};

    paths_resolve(t, &back);
    return conn_addr_eq(&back.src, &f->src) && conn_addr_eq(&back.dst, &f->dst);
}

uint8_t paths_timeout(const struct paths *t, uint32_t path)
{
    return t->entries[entry_of(path)].p.timeout[!end_of(path)];
}

void paths_forget(struct paths *t, const struct conn_addr addr[2], const uint32_t qpn[2])
{
    for (unsigned end = 0; end < 2; end++) {
        uint32_t link = t->n ? path_find(t, &addr[!end], &addr[end], qpn[end]) : NONE;
        if (link == NONE)
            continue;
        unlink_path(t, entry_of(link));
        t->forgotten = true;
        t->entries[entry_of(link)].p = (struct conn_path){0};
        link_path(t, entry_of(link));
    }
}

uint32_t conn_path_between(const struct conn_table *t, uint32_t from, struct conn_addr *src, struct conn_addr *dst)
{
    for (uint32_t i = from; i < t->paths->n; i++) {
        const struct conn_path *p = &t->paths->entries[i].p;
        for (unsigned end = 0; end < 2 && p->qpn[0]; end++)
            if (addr_eq(&p->alt[!end], src) && addr_eq(&p->alt[end], dst)) {
                *src = p->addr[!end];
                *dst = p->addr[end];
                return i + 1;
            }
    }
    return 0;
}

static bool same_path(const struct conn_path *a, const struct conn_path *b)
{
    for (unsigned end = 0; end < 2; end++)
        if (a->qpn[end] != b->qpn[end] || !addr_eq(&a->addr[end], &b->addr[end]) ||
            !addr_eq(&a->alt[end], &b->alt[end]))
            return false;
    return true;
}

void conn_learn_path(struct conn_table *t, const struct conn_path *p)
{
    struct paths *x = t->paths;
    uint32_t link = path_find(x, &p->alt[0], &p->alt[1], p->qpn[1]), entry;

    if (addr_eq(&p->addr[0], &p->alt[0]) && addr_eq(&p->addr[1], &p->alt[1]))
        return;
    if (link != NONE && same_path(&x->entries[entry_of(link)].p, p)) {
        /* an earlier connection of these queue pairs may have had other ACK timeouts */
        memcpy(x->entries[entry_of(link)].p.timeout, p->timeout, sizeof p->timeout);
        x->entries[entry_of(link)].p.guessed &= p->guessed;
        return;
    }
    if (x->n < PATHS_MAX) {
        entry = x->n++;
    } else {
        entry = x->at;
        x->at = (x->at + 1) % PATHS_MAX;
        unlink_path(x, entry);
        x->forgotten = true;
    }
    x->entries[entry].p = *p;
    link_path(x, entry);
    memset(t->recent, 0xff, sizeof t->recent);
}

/* --- Migrations that no CM message has announced ---------------------------------------------------------------- */

#define SAME_QPN 64 /* flows to one queue pair number that are looked at; with more none is certain */

/* The queue pair that receives the responses to `of` along the new path `k`, too: CONN_NO_QPN if that is not known, or
 * if they are those of another connection along this path, so that `of` was paired with the wrong flow. */
static uint32_t responses_move_to(const struct conn_table *t, const struct flow *of, const struct conn_key *k)
{
    uint32_t dqpn = of->peer == FLOW_NONE ? CONN_NO_QPN : t->flows[of->peer].dqpn;
    uint32_t there = conn_find(t, &(struct conn_key){k->dst, k->src, k->tap, dqpn});

    return there != FLOW_NONE && t->flows[there].peer != FLOW_NONE ? CONN_NO_QPN : dqpn;
}

bool paths_learn_migration(struct conn_table *t, const struct conn_key *k, const struct pkt *p)
{
    bool may_be = p->bth.migreq && p->op->flags & OPF_REQUEST && t->goes_on;
    uint32_t i = may_be ? *conn_qpn_chain(t, k->tap, k->dqpn) : FLOW_NONE;
    const struct flow *of = NULL;
    unsigned n = 0, found[SENT_AGAIN + 1] = {0};
    enum goes_on best = GOES_NOT_ON;

    for (; i != FLOW_NONE && n < SAME_QPN; i = conn_next_in(t, BY_QPN, i), n++) {
        const struct flow *f = &t->flows[i];
        bool same = f->tap == k->tap && f->dqpn == k->dqpn && !paths_go_back(t->paths, k, f);
        enum goes_on goes = same ? t->goes_on(t->user, i, p) : GOES_NOT_ON;
        of = goes > best ? f : of;
        best = goes > best ? goes : best;
        found[goes]++;
    }
    /* a request that is sent again tells its flow, even if its PSN is the next one of another */
    if (best < GOES_ON || found[best] != 1 || (best == GOES_ON && found[MAY_GO_ON]) || i != FLOW_NONE)
        return false;
    conn_learn_path(t, &(struct conn_path){.addr = {of->src, of->dst},
                                           .alt = {k->src, k->dst},
                                           .qpn = {responses_move_to(t, of, k), of->dqpn},
                                           .timeout = {CONN_TIMEOUT_KEPT, CONN_TIMEOUT_KEPT},
                                           .guessed = true});
    return true;
}
