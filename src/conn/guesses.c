/* layer 2b (conn): what somebody tries one after another: PSNs, R_Keys and addresses, queue pair numbers; and what
 * hosts choose. */
#include "src/conn/guesses.h"
#include "dissect/pkt.h"
#include "grow.h"
#include "src/conn/packet.h"

#include <stdlib.h>
#include <string.h>

#define SWEEP_WITHIN NS_PER_S
#define SWEEP_NEAR   0x20000 /* PSNs; requests and responses of a connection are no further apart */
#define SWEEP_HOME   2       /* so many packets show that the connection goes on where it was */
#define REFUSED_IN   (60 * NS_PER_S)

/* --- PSNs ------------------------------------------------------------------------------------- */

static bool is_near(uint32_t psn, uint32_t home)
{
    int32_t d = psn_diff(psn, home);

    return d > -SWEEP_NEAR && d < SWEEP_NEAR;
}

bool psn_sweep_is_over(const struct psn_sweep *w, uint32_t flow, ns_t ts)
{
    return w->frame && (w->flow != flow || ts - w->ts > SWEEP_WITHIN);
}

bool psn_sweep_is_one(const struct psn_sweep *w)
{
    return w->tries >= SWEEP_MANY && w->home_packets >= SWEEP_HOME;
}

/* Begin to watch: the request is far from all that the connection has sent. */
static void begin_sweep(struct psn_sweep *w, const struct req_dir *h, uint32_t flow, const struct pkt *p)
{
    if (!h->have_next || h->service == SVC_UC || is_near(p->bth.psn, h->next))
        return;
    *w = (struct psn_sweep){.flow = flow,
                            .frame = frame_u32(p),
                            .start = h->next,
                            .home = h->next,
                            .last = p->bth.psn,
                            .tries = 1,
                            .ts = p->frame->ts,
                            .last_ts = p->frame->ts,
                            .paired = h->from_start};
}

/* A packet of the connection, where it was. */
static bool is_at_home(struct psn_sweep *w, const struct pkt *p)
{
    w->home_packets++;
    w->home_frame = frame_u32(p);
    return psn_sweep_is_one(w) && psn_sweep_goes_on(w);
}

bool psn_sweep_request(struct psn_sweep *w, const struct req_dir *h, uint32_t flow, const struct pkt *p)
{
    uint32_t psn = p->bth.psn;

    if (!w->frame) {
        begin_sweep(w, h, flow, p);
        return false;
    }
    if (is_near(psn, w->home)) {
        w->asked |= psn_diff(psn, w->start) >= 0;
        w->home = psn;
        return is_at_home(w, p);
    }
    if (psn != w->last) {
        w->last = psn;
        w->last_ts = p->frame->ts;
        w->tries++;
    }
    return false;
}

bool psn_sweep_response(struct psn_sweep *w, const struct pkt *p)
{
    if (!is_near(p->bth.psn, w->home)) {
        w->frame = 0; /* the responder is there, too: another connection has begun */
        return false;
    }
    w->answered |= w->asked && psn_diff(p->bth.psn, w->start) >= 0;
    return is_at_home(w, p);
}

/* --- R_Keys and addresses --------------------------------------------------------------------- */

bool refuser_refused(struct refuser *r, const struct flow *c, const struct sent *s, const struct pkt *p, ns_t connected)
{
    uint64_t key = (load_le64(c->src.b + 8) ^ load_le64(c->dst.b + 8) << 1 ^ c->tap) * HASH_MULTIPLIER;

    if (aeth_value(p->aeth.syndrome) != NAK_REMOTE_ACCESS || !s || !s->reth)
        return false;
    if (r->key != key || p->frame->ts - r->ts > REFUSED_IN)
        *r = (struct refuser){.key = key, .ts = p->frame->ts, .frame = frame_u32(p)};
    else if (connected <= r->last_ts)
        return false;
    for (unsigned i = 0; i < r->n; i++)
        if (r->reth[i] == s->reth || r->n == REFUSED_MANY)
            return false;
    r->reth[r->n++] = s->reth;
    r->last_ts = p->frame->ts;
    return r->n == REFUSED_MANY;
}

/* --- Queue pair numbers ------------------------------------------------------------------------ */

static int by_pair(const struct flow *x, const struct flow *y)
{
    int d = x->tap != y->tap ? (x->tap < y->tap ? -1 : 1) : memcmp(&x->src, &y->src, sizeof x->src);

    return d ? d : memcmp(&x->dst, &y->dst, sizeof x->dst);
}

static int by_pair_and_time(const void *x, const void *y, void *user)
{
    const struct flow *flow = user;
    const struct qpn_probe *a = x, *b = y;
    int d = by_pair(&flow[a->flow], &flow[b->flow]);

    d = d ? d : a->answers - b->answers;
    return d ? d : (a->ts > b->ts) - (a->ts < b->ts);
}

/* Among `n` queue pairs of one sender, sorted: if the responder answers it on some, do the others get a sweep? */
static void look_at_pair(const struct qpn_probe *p, uint32_t n, qpn_sweep_found *found, void *user)
{
    uint32_t silent = 0, i = 0;

    while (silent < n && !p[silent].answers)
        silent++;
    if (silent == n)
        return;
    while (i + SWEEP_MANY <= silent && p[i + SWEEP_MANY - 1].ts - p[i].ts > SWEEP_WITHIN)
        i++;
    if (i + SWEEP_MANY <= silent)
        found(user, p + i, silent);
}

void qpn_sweeps(struct qpn_probe *p, uint32_t n, const struct flow *flow, qpn_sweep_found *found, void *user)
{
    if (n)
        qsort_r(p, n, sizeof *p, by_pair_and_time, (void *)flow);
    for (uint32_t i = 0, k; i < n; i = k) {
        for (k = i + 1; k < n && by_pair(&flow[p[k].flow], &flow[p[i].flow]) == 0; k++)
            continue;
        look_at_pair(p + i, k - i, found, user);
    }
}

/* --- What hosts choose ------------------------------------------------------------------------- */

#define CHOSEN_MOST  1024 /* values that are kept of each owner of pairs of addresses */
#define CHOSEN_AGAIN 16   /* an R_Key is used again and again: one of so many latest values is not new */
#define CHOSEN_LEAST 8    /* values of a host below which nothing is said */
#define CHOSEN_LOOK  4096 /* values of a host that are looked at, the first ones */

/* By enum chosen. */
static const struct {
    const char *name;
    uint32_t mask;
} kinds[] = {[CHOSE_RKEY] = {"R_Keys", UINT32_MAX},
             [CHOSE_QPN] = {"queue pair numbers", PSN_MASK},
             [CHOSE_PSN] = {"starting PSNs", PSN_MASK}};

const char *chosen_str(enum chosen what)
{
    return kinds[what].name;
}

static bool is_same_host(const struct choice *a, const struct choice *b)
{
    return a->what == b->what && a->tap == b->tap && conn_addr_eq(&a->by, &b->by);
}

static bool is_new(const struct choices *s, unsigned owner, const struct choice *c)
{
    uint32_t k = s->last[owner];

    for (uint32_t i = 1; c->what == CHOSE_RKEY && i <= CHOSEN_AGAIN && k; i++, k = s->of[k - 1].before)
        if (s->of[k - 1].value == c->value && is_same_host(&s->of[k - 1], c))
            return false;
    return true;
}

void choice_take(struct choices *s, unsigned owner, struct choice c, const struct frame *f)
{
    if (!is_new(s, owner, &c) || s->count[owner] == CHOSEN_MOST || !grow((void **)&s->of, s->n, sizeof *s->of))
        return;
    c.number = s->n;
    c.before = s->last[owner];
    c.ts = f->ts;
    c.file = f->file;
    c.frame = f->number;
    s->of[s->n++] = c;
    s->last[owner] = s->n;
    s->count[owner]++;
}

static int by_host(const void *x, const void *y)
{
    const struct choice *a = x, *b = y;
    int d = a->what != b->what ? (a->what < b->what ? -1 : 1) : a->tap != b->tap ? (a->tap < b->tap ? -1 : 1) : 0;

    d = d ? d : memcmp(&a->by, &b->by, sizeof a->by);
    return d ? d : (a->number > b->number) - (a->number < b->number);
}

/* The values of a host without those that come again, if R_Keys; their number. */
static unsigned values_of(const struct choice *c, unsigned n, uint32_t *v)
{
    unsigned many = 0;

    for (unsigned i = 0, k; i < n; i++) {
        for (k = 0; c->what == CHOSE_RKEY && k < many && v[k] != c[i].value; k++)
            continue;
        if (c->what != CHOSE_RKEY || k == many)
            v[many++] = c[i].value;
    }
    return many;
}

/* The `n` values of a host: true if they can be guessed. */
static bool is_guessable(const struct choice *c, unsigned n, uint32_t *v, struct guessable *g)
{
    struct steps s;

    n = values_of(c, n < CHOSEN_LOOK ? n : CHOSEN_LOOK, v);
    if (n < CHOSEN_LEAST)
        return false;
    steps_of(v, n, kinds[c->what].mask, &s);
    *g = (struct guessable){c->tap, c->what, c->by, s.step, s.times, n - 1, v[n - 1]};
    return s.share >= 0.5;
}

void choices_guessable(struct choices *s, void (*take)(void *user, const struct guessable *g), void *user)
{
    uint32_t *v = s->n ? malloc(s->n * sizeof *v) : NULL;
    struct guessable g;

    if (v)
        qsort(s->of, s->n, sizeof *s->of, by_host);
    for (uint32_t i = 0, k; v && i < s->n; i = k) {
        for (k = i + 1; k < s->n && is_same_host(&s->of[k], &s->of[i]); k++)
            continue;
        if (is_guessable(&s->of[i], k - i, v, &g))
            take(user, &g);
    }
    free(v);
}
