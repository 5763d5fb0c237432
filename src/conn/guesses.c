/* layer 2b (conn): what somebody tries one after another: PSNs, R_Keys and addresses, queue pair numbers. */
#include "src/conn/guesses.h"
#include "dissect/pkt.h"
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
