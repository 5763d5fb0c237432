/* layer 3 (sim): messages that lend memory: bind a window or register a region, SEND its key, get it back. */
#include "gen/sim/traffic_impl.h"

#include <errno.h>
#include <stdlib.h>

#define KEY_IOVA   UINT64_C(0x30000000)  /* of the memory lent */
#define FAR_IOVA   UINT64_C(0x40000000)  /* of the memory with which the other host WRITEs and READs */
#define FAST_IOVA  UINT64_C(0x500000000) /* of the first fast registration; each one has another */
#define MARGIN     8                     /* bytes before and behind the memory lent, which no key covers */
#define UNTOUCHED  0xcc                  /* all bytes that no valid key covers */
#define BY_OTHER   2                     /* parts from this one on are the other host's */
#define SLOT_MASK  0xff
#define PART_SHIFT 8

/* The work requests of a loan besides the SEND of its key. */
enum part {
    PART_BIND,       /* bind or register */
    PART_INVALIDATE, /* unbind or LOCAL_INV */
    PART_ACCESS,     /* the other host: WRITE or READ */
    PART_RETURN,     /* the other host: SEND, with Invalidate or without */
};

/* Index of struct loan.key: op - TRAFFIC_MW1. */
enum { KEY_MW1, KEY_MW2, KEY_FAST };

enum state { FREE, LENT, HEARD, USED, RETURNED };

struct loan {
    uint32_t key[TRAFFIC_KEYS]; /* present keys of its window 1, window 2 and region; 0: not in the mix */
    uint64_t k;                 /* number of the message with the key */
    uint64_t va;
    uint32_t lent, len; /* key and bytes lent */
    uint8_t kind;       /* key[kind] is lent */
    uint8_t state;      /* enum state */
    bool read;          /* the other host READs; else it WRITEs */
    bool remote_inv;    /* the other host invalidates the key */
    bool far_busy;      /* the other host's requests are not complete: its memory must not change */
};

struct traffic_loans {
    struct loan loan[TRAFFIC_LOANS];
    uint8_t heard[TRAFFIC_LOANS]; /* ring: loans in the order in which their keys arrived */
    unsigned heard_head, heard_tail;
    unsigned active;
    uint32_t pitch;              /* bytes from the memory of one loan to that of the next */
    uint8_t *mem[NET_HOSTS];     /* of the posting host, and of the other one */
    uint32_t mem_key[NET_HOSTS]; /* L_Keys */
};

/* --- Memory ----------------------------------------------------------------------------------- */

static struct verbs *verbs_of(const struct traffic *t, unsigned host)
{
    return ep_verbs(t->s->ep[host]);
}

static int new_key(const struct traffic *t, const struct traffic_dir *d, unsigned kind, uint32_t *key)
{
    struct verbs *v = verbs_of(t, d->host);
    uint32_t pd = t->c.conn.pd[d->host];

    return kind == KEY_FAST ? verbs_mr_alloc(v, pd, d->loans->pitch, key) : verbs_mw_alloc(v, pd, kind + 1, key);
}

int traffic_loans_open(struct traffic *t, struct traffic_dir *d)
{
    static const uint64_t iova[NET_HOSTS] = {KEY_IOVA, FAR_IOVA};
    struct traffic_loans *l = d->loans = calloc(1, sizeof *l);
    int r = l ? 0 : -ENOMEM;
    size_t bytes;

    if (r)
        return r;
    l->pitch = t->stride + 2 * MARGIN;
    bytes = (size_t)l->pitch * TRAFFIC_LOANS;
    for (unsigned i = 0; i < NET_HOSTS && r == 0; i++) {
        unsigned host = d->host ^ i;
        l->mem[i] = malloc(bytes);
        if (!l->mem[i])
            return -ENOMEM;
        memset(l->mem[i], UNTOUCHED, bytes);
        r = verbs_mr_reg_iova(verbs_of(t, host), t->c.conn.pd[host], l->mem[i], bytes, iova[i],
                              ACCESS_LOCAL_WRITE | ACCESS_MW_BIND, &l->mem_key[i]);
    }
    for (unsigned n = 0; n < TRAFFIC_LOANS; n++)
        for (unsigned kind = 0; kind < TRAFFIC_KEYS && r == 0; kind++)
            if (traffic_mix(&t->c) >> (TRAFFIC_MW1 + kind) & 1)
                r = new_key(t, d, kind, &l->loan[n].key[kind]);
    return r;
}

void traffic_loans_free(struct traffic_dir *d)
{
    for (unsigned i = 0; d->loans && i < NET_HOSTS; i++)
        free(d->loans->mem[i]);
    free(d->loans);
}

static unsigned number_of(const struct traffic_dir *d, const struct loan *n)
{
    return (unsigned)(n - d->loans->loan);
}

/* Memory of a loan at the posting host (0) or the other one (1), behind the margin. */
static uint8_t *mem_of(const struct traffic_dir *d, const struct loan *n, unsigned which)
{
    return d->loans->mem[which] + (size_t)number_of(d, n) * d->loans->pitch + MARGIN;
}

static uint64_t offset_of(const struct traffic_dir *d, const struct loan *n)
{
    return (uint64_t)(mem_of(d, n, 0) - d->loans->mem[0]);
}

static bool all_untouched(const uint8_t *p, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (p[i] != UNTOUCHED)
            return false;
    return true;
}

/* Whether everything but the first `len` bytes of the memory of a loan is as it was. */
static bool rest_untouched(const struct traffic_dir *d, const struct loan *n, uint32_t len)
{
    const uint8_t *p = mem_of(d, n, 0);

    return all_untouched(p - MARGIN, MARGIN) && all_untouched(p + len, d->loans->pitch - MARGIN - len);
}

/* --- The posting host ------------------------------------------------------------------------- */

static struct loan *free_loan(struct traffic_loans *l)
{
    for (unsigned i = 0; i < TRAFFIC_LOANS; i++)
        if (l->loan[i].state == FREE)
            return &l->loan[i];
    return NULL;
}

static uint64_t id_of(const struct traffic_dir *d, const struct loan *n, enum part part)
{
    return KEY_ID | (uint64_t)part << PART_SHIFT | number_of(d, n);
}

/* The rights and addresses of a loan: just what the other host needs. */
static uint8_t grant(struct traffic_dir *d, struct loan *n)
{
    bool zero_based = n->kind == KEY_MW2 && prng_below(&d->prng, 2);

    n->va = zero_based ? 0 : n->kind == KEY_FAST ? FAST_IOVA + n->k * d->loans->pitch : KEY_IOVA + offset_of(d, n);
    return (uint8_t)((n->read ? ACCESS_REMOTE_READ : ACCESS_REMOTE_WRITE) |
                     (n->kind == KEY_FAST ? ACCESS_LOCAL_WRITE : 0) | (zero_based ? ACCESS_ZERO_BASED : 0));
}

/* Bind the window, or register the region, of a loan. */
static int bind(struct traffic *t, struct traffic_dir *d, struct loan *n, ns_t now)
{
    struct verbs *v = verbs_of(t, d->host);
    uint32_t *key = &n->key[n->kind];
    bool fast = n->kind == KEY_FAST;
    uint8_t access = grant(d, n);
    struct send_wr wr = {.wr_id = id_of(d, n, PART_BIND),
                         .opcode = fast ? WR_REG_MR : WR_BIND_MW,
                         .flags = SEND_SIGNALED,
                         .inv_rkey = *key,
                         .rkey = mr_next_key(*key),
                         .mr_key = d->loans->mem_key[0],
                         .mw_length = n->len,
                         .mw_access = access,
                         .remote_addr = fast ? n->va : KEY_IOVA + offset_of(d, n),
                         .reg_mem = mem_of(d, n, 0)};
    int r = n->kind == KEY_MW1 ? verbs_mw_bind(v, d->c->qp[d->host], &wr, key, now)
                               : verbs_post_send(v, d->c->qp[d->host], &wr, now);

    if (r == 0 && n->kind)
        *key = wr.rkey;
    n->lent = *key;
    return r;
}

/* What the SEND says: all that the other host has to know. */
static void describe(const struct traffic_dir *d, const struct loan *n, uint8_t p[TRAFFIC_LOAN_BYTES])
{
    memset(p, 0, TRAFFIC_LOAN_BYTES);
    store_be64(p, n->k);
    store_be64(p + 8, n->va);
    store_be32(p + 16, n->lent);
    store_be32(p + 20, n->len);
    p[24] = n->read;
    p[25] = n->remote_inv;
    p[26] = (uint8_t)number_of(d, n);
}

int traffic_lend(struct traffic *t, struct traffic_dir *d, struct sender_message *m, uint8_t *p, ns_t now)
{
    struct loan *n = free_loan(d->loans);

    if (!n)
        return -EAGAIN;
    t->r.mismatches += !rest_untouched(d, n, 0); /* no key was valid */
    n->kind = (uint8_t)(m->op - TRAFFIC_MW1);
    n->k = d->s.posted;
    n->len = max_u32(m->len, 1);
    n->read = prng_below(&d->prng, 2);
    n->remote_inv = n->kind && prng_below(&d->prng, 2);
    if (n->read)
        traffic_pattern_put(d, ~n->k, mem_of(d, n, 0), n->len);
    if (bind(t, d, n, now) < 0)
        return -EAGAIN;
    n->state = LENT;
    d->loans->active++;
    describe(d, n, p);
    m->len = TRAFFIC_LOAN_BYTES;
    return (int)number_of(d, n);
}

/* Whether the key of a loan is refused. */
static bool is_dead(const struct traffic *t, const struct traffic_dir *d, const struct loan *n)
{
    unsigned h = d->host;
    uint32_t qpn = verbs_qp_num(verbs_of(t, h), d->c->qp[h]);
    struct mr_hit hit = mr_check(ep_mr_table(t->s->ep[h]), n->lent, t->c.conn.pd[h], qpn, n->va, 1, 0);

    return hit.status == MR_BAD_KEY;
}

static void over(struct traffic *t, struct traffic_dir *d, struct loan *n)
{
    t->r.mismatches += !is_dead(t, d, n);
    t->r.bytes += n->len;
    memset(mem_of(d, n, 0), UNTOUCHED, n->len);
    n->state = FREE;
    d->loans->active--;
}

/* The key came back valid: unbind the window, or invalidate the key. */
static int invalidate(struct traffic *t, struct traffic_dir *d, struct loan *n, ns_t now)
{
    struct verbs *v = verbs_of(t, d->host);
    struct send_wr wr = {.wr_id = id_of(d, n, PART_INVALIDATE),
                         .opcode = WR_LOCAL_INV,
                         .flags = SEND_SIGNALED,
                         .inv_rkey = n->lent,
                         .mr_key = d->loans->mem_key[0]};

    return n->kind ? verbs_post_send(v, d->c->qp[d->host], &wr, now)
                   : verbs_mw_bind(v, d->c->qp[d->host], &wr, &n->key[0], now);
}

/* The other host's SEND came: the key was used, and invalidated or not. */
static bool returned(struct traffic *t, struct traffic_dir *d, struct loan *n, const struct wc *wc)
{
    bool inv = wc->flags & WC_WITH_INV;
    bool good = n->state == USED && inv == n->remote_inv && (!inv || wc->inv_rkey == n->lent) && wc->byte_len == 0;

    good &= traffic_pattern_is(d, n->read ? ~n->k : ~n->k >> 1, mem_of(d, n, 0), n->len);
    good &= rest_untouched(d, n, n->len) && is_dead(t, d, n) == inv;
    n->state = RETURNED;
    if (inv)
        over(t, d, n);
    else if (invalidate(t, d, n, wc->when) < 0)
        good = false;
    return good;
}

/* --- The other host --------------------------------------------------------------------------- */

static struct traffic_dir *back_of(struct traffic *t, const struct traffic_dir *d)
{
    return traffic_dir_of(t, d->c->number - 1, d->host ^ 1);
}

static bool heard(struct traffic_dir *d, struct loan *n, const uint8_t *data, uint32_t len)
{
    uint8_t expected[TRAFFIC_LOAN_BYTES];

    describe(d, n, expected);
    if (n->state != LENT || len != sizeof expected || memcmp(data, expected, len) != 0)
        return false;
    n->state = HEARD;
    d->loans->heard[d->loans->heard_tail++ % TRAFFIC_LOANS] = (uint8_t)number_of(d, n);
    return true;
}

/* WRITE or READ through the key, and give it back. A READ that is repeated behind the SEND would find the key invalid:
 * so that waits for it. */
static bool use(struct traffic *t, struct traffic_dir *d, struct loan *n, ns_t now)
{
    unsigned other = d->host ^ 1;
    struct verbs *v = verbs_of(t, other);
    struct sge sge = {FAR_IOVA + offset_of(d, n), n->len, d->loans->mem_key[1]};
    struct send_wr access = {.wr_id = id_of(d, n, PART_ACCESS),
                             .opcode = n->read ? WR_RDMA_READ : WR_RDMA_WRITE,
                             .flags = SEND_SIGNALED,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .remote_addr = n->va,
                             .rkey = n->lent};
    struct send_wr back = {.wr_id = id_of(d, n, PART_RETURN),
                           .opcode = n->remote_inv ? WR_SEND_WITH_INV : WR_SEND,
                           .flags = (uint8_t)(SEND_SIGNALED | (n->read ? SEND_FENCE : 0)),
                           .inv_rkey = n->lent};

    if (n->read)
        memset(mem_of(d, n, 1), UNTOUCHED, n->len);
    else
        traffic_pattern_put(d, ~n->k >> 1, mem_of(d, n, 1), n->len);
    n->state = USED;
    n->far_busy = true;
    traffic_await(t, back_of(t, d),
                  (struct awaited){.k = n->k, .kind = AWAIT_RETURN, .loan = (uint8_t)number_of(d, n)});
    return verbs_post_send(v, d->c->qp[other], &access, now) == 0 &&
           verbs_post_send(v, d->c->qp[other], &back, now) == 0;
}

void traffic_use_keys(struct traffic *t, struct traffic_dir *d, ns_t now)
{
    struct traffic_loans *l = d->loans;

    if (!l || d->c->state[d->host ^ 1] != SIM_CONN_UP)
        return;
    while (l->heard_head != l->heard_tail) {
        struct loan *n = &l->loan[l->heard[l->heard_head % TRAFFIC_LOANS]];
        if (n->far_busy)
            return;
        l->heard_head++;
        t->r.mismatches += !use(t, d, n, now);
    }
}

/* --- Completions ------------------------------------------------------------------------------ */

bool traffic_loan_arrived(struct traffic *t, struct traffic_dir *d, const struct awaited *a, const struct wc *wc,
                          const uint8_t *data, uint32_t len)
{
    struct traffic_dir *owner = a->kind == AWAIT_RETURN ? back_of(t, d) : d;
    struct loan *n = &owner->loans->loan[a->loan];

    return a->kind == AWAIT_RETURN ? returned(t, owner, n, wc) : heard(owner, n, data, len);
}

void traffic_loan_completed(struct traffic *t, unsigned conn, unsigned host, const struct wc *wc)
{
    enum part part = (enum part)(wc->wr_id >> PART_SHIFT & 3);
    struct traffic_dir *own = traffic_dir_of(t, conn, host), *d = part < BY_OTHER ? own : back_of(t, own);
    struct loan *n = &d->loans->loan[wc->wr_id & SLOT_MASK];

    if (wc->status != WC_SUCCESS) {
        traffic_failed(t, own, wc);
        return;
    }
    if (part == PART_INVALIDATE)
        over(t, d, n);
    else if (part == PART_RETURN)
        n->far_busy = false;
    else if (part == PART_ACCESS && wc->opcode == WC_RDMA_READ) /* that of a WRITE may come when the loan is another */
        t->r.mismatches += !traffic_pattern_is(d, ~n->k, mem_of(d, n, 1), n->len);
}

bool traffic_loans_done(const struct traffic_dir *d)
{
    bool busy = d->loans && d->loans->active;

    for (unsigned i = 0; d->loans && i < TRAFFIC_LOANS; i++)
        busy |= d->loans->loan[i].far_busy;
    return !busy;
}

void traffic_loans_check(struct traffic *t, const struct traffic_dir *d)
{
    for (unsigned i = 0; d->loans && i < TRAFFIC_LOANS; i++)
        if (d->loans->loan[i].state == FREE)
            t->r.mismatches += !rest_untouched(d, &d->loans->loan[i], 0);
}
