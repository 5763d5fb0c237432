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

/* What is awaited besides messages. */
enum await_kind {
    AWAIT_KEY = 1, /* a key that is lent */
    AWAIT_RETURN,  /* the return of a key; the flow is that of the returning SEND */
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
    uint8_t keys[TRAFFIC_LOANS]; /* ring: loans in the order in which their keys arrived */
    unsigned keys_head, keys_tail;
    unsigned active;
    uint32_t pitch;              /* bytes from the memory of one loan to that of the next */
    uint8_t *mem[NET_HOSTS];     /* of the posting host, and of the other one */
    uint32_t mem_key[NET_HOSTS]; /* L_Keys */
};

/* --- Memory ----------------------------------------------------------------------------------- */

int sim_loans_open(struct sim_flow *d)
{
    static const uint64_t iova[NET_HOSTS] = {KEY_IOVA, FAR_IOVA};
    struct verbs *verbs[NET_HOSTS] = {d->f.verbs, d->f.recvs.verbs};
    const uint32_t *pd = sim_traffic_of(d)->conn.pd;
    struct traffic_loans *l = d->loans = calloc(1, sizeof *l);
    int r = l ? 0 : -ENOMEM;
    size_t bytes;

    if (r)
        return r;
    l->pitch = traffic_pitch(&d->f.t->c) + 2 * MARGIN;
    bytes = (size_t)l->pitch * TRAFFIC_LOANS;
    for (unsigned i = 0; i < NET_HOSTS && r == 0; i++) {
        l->mem[i] = malloc(bytes);
        if (!l->mem[i])
            return -ENOMEM;
        memset(l->mem[i], UNTOUCHED, bytes);
        r = verbs_mr_reg_iova(verbs[i], pd[d->host ^ i], l->mem[i], bytes, iova[i], ACCESS_LOCAL_WRITE | ACCESS_MW_BIND,
                              &l->mem_key[i]);
    }
    for (unsigned n = 0; n < TRAFFIC_LOANS * TRAFFIC_KEYS && r == 0; n++) {
        unsigned kind = n % TRAFFIC_KEYS;
        uint32_t *key = &l->loan[n / TRAFFIC_KEYS].key[kind];
        if (traffic_mix(&d->f.t->c) >> (TRAFFIC_MW1 + kind) & 1)
            r = kind == KEY_FAST ? verbs_mr_alloc(verbs[0], pd[d->host], l->pitch, key)
                                 : verbs_mw_alloc(verbs[0], pd[d->host], kind + 1, key);
    }
    return r;
}

void sim_loans_free(struct sim_flow *d)
{
    for (unsigned i = 0; d->loans && i < NET_HOSTS; i++)
        free(d->loans->mem[i]);
    free(d->loans);
}

static unsigned number_of(const struct sim_flow *d, const struct loan *n)
{
    return (unsigned)(n - d->loans->loan);
}

/* Memory of a loan at the posting host (0) or the other one (1), behind the margin. */
static uint8_t *mem_of(const struct sim_flow *d, const struct loan *n, unsigned which)
{
    return d->loans->mem[which] + (size_t)number_of(d, n) * d->loans->pitch + MARGIN;
}

static uint64_t offset_of(const struct sim_flow *d, const struct loan *n)
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
static bool rest_untouched(const struct sim_flow *d, const struct loan *n, uint32_t len)
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

static uint64_t id_of(const struct sim_flow *d, const struct loan *n, enum part part)
{
    return d->f.id | TRAFFIC_FOREIGN | (uint64_t)part << PART_SHIFT | number_of(d, n);
}

/* The rights and addresses of a loan: just what the other host needs. */
static uint8_t grant(struct sim_flow *d, struct loan *n)
{
    bool zero_based = n->kind == KEY_MW2 && prng_below(&d->f.prng, 2);

    n->va = zero_based ? 0 : n->kind == KEY_FAST ? FAST_IOVA + n->k * d->loans->pitch : KEY_IOVA + offset_of(d, n);
    return (uint8_t)((n->read ? ACCESS_REMOTE_READ : ACCESS_REMOTE_WRITE) |
                     (n->kind == KEY_FAST ? ACCESS_LOCAL_WRITE : 0) | (zero_based ? ACCESS_ZERO_BASED : 0));
}

/* Bind the window, or register the region, of a loan. */
static int bind(struct sim_flow *d, struct loan *n, ns_t now)
{
    struct verbs *v = d->f.verbs;
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
    int r = n->kind == KEY_MW1 ? verbs_mw_bind(v, d->f.qp, &wr, key, now) : verbs_post_send(v, d->f.qp, &wr, now);

    if (r == 0 && n->kind)
        *key = wr.rkey;
    n->lent = *key;
    return r;
}

/* The data of the SEND: all that the other host has to know. */
static void describe(const struct sim_flow *d, const struct loan *n, uint8_t p[TRAFFIC_LOAN_BYTES])
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

int sim_lend(struct traffic_flow *f, struct traffic_message *m, uint8_t *p, ns_t now)
{
    struct sim_flow *d = sim_flow_of(f);
    struct loan *n = free_loan(d->loans);

    if (!n)
        return -EAGAIN;
    traffic_wrong(&d->f, !rest_untouched(d, n, 0)); /* no key was valid */
    n->kind = (uint8_t)(m->op - TRAFFIC_MW1);
    n->k = d->f.posted;
    n->len = max_u32(m->len, 1);
    n->read = prng_below(&d->f.prng, 2);
    n->remote_inv = n->kind && prng_below(&d->f.prng, 2);
    if (n->read)
        sim_pattern_put(&d->f, ~n->k, mem_of(d, n, 0), n->len);
    if (bind(d, n, now) < 0)
        return -EAGAIN;
    n->state = LENT;
    d->loans->active++;
    describe(d, n, p);
    m->len = TRAFFIC_LOAN_BYTES;
    traffic_await(f, (struct traffic_awaited){.k = n->k, .kind = AWAIT_KEY, .loan = (uint8_t)number_of(d, n)});
    return 0;
}

/* Whether the key of a loan is refused. */
static bool is_dead(const struct sim_flow *d, const struct loan *n)
{
    const struct sim_traffic *t = sim_traffic_of(d);
    uint32_t pd = t->conn.pd[d->host], qpn = verbs_qp_num(d->f.verbs, d->f.qp);
    struct mr_hit hit = mr_check(ep_mr_table(t->s->ep[d->host]), n->lent, pd, qpn, n->va, 1, 0);

    return hit.status == MR_BAD_KEY;
}

static void over(struct sim_flow *d, struct loan *n)
{
    traffic_wrong(&d->f, !is_dead(d, n));
    d->f.t->r.bytes += n->len;
    memset(mem_of(d, n, 0), UNTOUCHED, n->len);
    n->state = FREE;
    d->loans->active--;
}

/* The key came back valid: unbind the window, or invalidate the key. */
static int invalidate(struct sim_flow *d, struct loan *n, ns_t now)
{
    struct verbs *v = d->f.verbs;
    struct send_wr wr = {.wr_id = id_of(d, n, PART_INVALIDATE),
                         .opcode = WR_LOCAL_INV,
                         .flags = SEND_SIGNALED,
                         .inv_rkey = n->lent,
                         .mr_key = d->loans->mem_key[0]};

    return n->kind ? verbs_post_send(v, d->f.qp, &wr, now) : verbs_mw_bind(v, d->f.qp, &wr, &n->key[0], now);
}

/* The SEND that returns the key arrived: the other host has used the key, and invalidated it or not. */
static bool returned(struct sim_flow *d, struct loan *n, const struct wc *wc)
{
    bool inv = wc->flags & WC_WITH_INV;
    bool good = n->state == USED && inv == n->remote_inv && (!inv || wc->inv_rkey == n->lent) && wc->byte_len == 0;

    good &= sim_pattern_is(&d->f, n->read ? ~n->k : ~n->k >> 1, mem_of(d, n, 0), n->len);
    good &= rest_untouched(d, n, n->len) && is_dead(d, n) == inv;
    n->state = RETURNED;
    if (inv)
        over(d, n);
    else if (invalidate(d, n, wc->when) < 0)
        good = false;
    return good;
}

/* --- The other host --------------------------------------------------------------------------- */

static struct sim_flow *back_of(const struct sim_flow *d)
{
    return sim_flow_from(sim_traffic_of(d), d->c->number - 1, d->host ^ 1);
}

static bool key_arrived(struct sim_flow *d, struct loan *n, const uint8_t *data, uint32_t len)
{
    uint8_t expected[TRAFFIC_LOAN_BYTES];

    describe(d, n, expected);
    if (n->state != LENT || len != sizeof expected || memcmp(data, expected, len) != 0)
        return false;
    n->state = HEARD;
    d->loans->keys[d->loans->keys_tail++ % TRAFFIC_LOANS] = (uint8_t)number_of(d, n);
    return true;
}

/* WRITE or READ through the key, and give it back. A READ that is repeated behind the SEND would find the key invalid:
 * so that waits for it. */
static bool use(struct sim_flow *d, struct loan *n, ns_t now)
{
    struct verbs *v = d->f.recvs.verbs;
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
        sim_pattern_put(&d->f, ~n->k >> 1, mem_of(d, n, 1), n->len);
    n->state = USED;
    n->far_busy = true;
    traffic_await(&back_of(d)->f,
                  (struct traffic_awaited){.k = n->k, .kind = AWAIT_RETURN, .loan = (uint8_t)number_of(d, n)});
    return verbs_post_send(v, d->f.recvs.qp, &access, now) == 0 && verbs_post_send(v, d->f.recvs.qp, &back, now) == 0;
}

void sim_use_keys(struct sim_flow *d, ns_t now)
{
    struct traffic_loans *l = d->loans;

    if (!l || d->c->state[d->host ^ 1] != SIM_CONN_UP)
        return;
    while (l->keys_head != l->keys_tail) {
        struct loan *n = &l->loan[l->keys[l->keys_head % TRAFFIC_LOANS]];
        if (n->far_busy)
            return;
        l->keys_head++;
        traffic_wrong(&d->f, !use(d, n, now));
    }
}

/* --- Completions ------------------------------------------------------------------------------ */

bool sim_loan_arrived(struct traffic_flow *f, const struct traffic_awaited *a, const struct wc *wc, const uint8_t *data,
                      uint32_t len)
{
    struct sim_flow *owner = a->kind == AWAIT_RETURN ? back_of(sim_flow_of(f)) : sim_flow_of(f);
    struct loan *n = &owner->loans->loan[a->loan];

    return a->kind == AWAIT_RETURN ? returned(owner, n, wc) : key_arrived(owner, n, data, len);
}

void sim_loan_completed(struct sim_flow *d, const struct wc *wc)
{
    enum part part = (enum part)(wc->wr_id >> PART_SHIFT & 3);
    struct loan *n = &d->loans->loan[wc->wr_id & SLOT_MASK];

    if (wc->status != WC_SUCCESS) {
        traffic_failed(part < BY_OTHER ? &d->f : &back_of(d)->f, wc);
        return;
    }
    if (part == PART_INVALIDATE)
        over(d, n);
    else if (part == PART_RETURN)
        n->far_busy = false;
    else if (part == PART_ACCESS && wc->opcode == WC_RDMA_READ) /* that of a WRITE may come when the loan is another */
        traffic_wrong(&d->f, !sim_pattern_is(&d->f, ~n->k, mem_of(d, n, 1), n->len));
}

bool sim_loans_done(const struct sim_flow *d)
{
    bool busy = d->loans && d->loans->active;

    for (unsigned i = 0; d->loans && i < TRAFFIC_LOANS; i++)
        busy |= d->loans->loan[i].far_busy;
    return !busy;
}

void sim_loans_check(struct sim_flow *d)
{
    for (unsigned i = 0; d->loans && i < TRAFFIC_LOANS; i++)
        if (d->loans->loan[i].state == FREE)
            traffic_wrong(&d->f, !rest_untouched(d, &d->loans->loan[i], 0));
}
