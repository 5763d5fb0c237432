/* layer 2b (account): where the time of each direction of requests went: how fast a requester sends, and slows down
 * after CNPs. */
#include "dissect/pkt.h"
#include "src/account/timeline_impl.h"
#include "src/conn/packet.h"

#include <stdlib.h>

/* --- CNPs ------------------------------------------------------------------------------------- */

#define CNP_LASTS  (50 * NS_PER_MS) /* so long after a CNP a slow requester may still be slow because of it */
#define CNP_SERIES (10 * NS_PER_MS) /* CNPs that follow each other within this time are one episode */

static struct cnps one_cnp(ns_t now, uint32_t frame)
{
    return (struct cnps){.frame = frame, .n = 1, .first = now, .last = now, .since = now};
}

/* `x` may have slowed down the queue pair of `s` as well, and may be earlier: the stamps of a capture need not be in
 * order, and CNPs to a queue pair may have come before it was known. */
static void extend_since(struct cnps *s, const struct cnps *x)
{
    bool later = !s->n || x->since - s->last > CNP_LASTS, joins = s->since - x->last <= CNP_LASTS;

    if (later || (joins && x->since < s->since))
        s->since = x->since;
}

/* Add CNPs `x` to those of `s`; true: a new series begins with them. Those of an earlier series are not counted. */
static bool add_cnps(struct cnps *s, const struct cnps *x)
{
    bool later = !s->n || x->first - s->last > CNP_SERIES;

    extend_since(s, x);
    if (!later && s->first - x->last > CNP_SERIES)
        return false;
    if (later || x->first < s->first) {
        s->first = x->first;
        s->frame = x->frame;
    }
    s->n = x->n + (later ? 0 : s->n);
    s->last = later || x->last > s->last ? x->last : s->last;
    return later;
}

static void note_cnps(struct timeline *t, struct direction *d, const struct cnps *x)
{
    struct episode *e;

    if (add_cnps(&d->cnp.got, x))
        d->cnp.ep = NO_EPISODE;
    e = episode_at(t, d->cnp.ep);
    if (!e)
        return;
    e->nak = d->cnp.got.frame;
    e->count = d->cnp.got.n;
}

/* Until a response passes, the QPN of a requester is not known: a CNP from its responder's host to its own may be for
 * it, and it is if packets follow each other at greater distances from then on. */
static void guess_cnp(struct timeline *t, const struct early_cnp *x, const struct cnps *one)
{
    struct conn_table *conns = observer_conns(t->observer);
    const struct flow *f;

    for (uint32_t i = conn_first_between(conns, &x->dst, &x->src); i != FLOW_NONE; i = f->in[BY_PAIR].next) {
        struct direction *d = t->dirs[i];
        f = conn_flow_at(conns, i);
        if (t->cnp_guesses == GUESSES_MOST)
            return;
        t->cnp_guesses++;
        bool may = d && f->peer == FLOW_NONE && f->tap == x->tap && conn_addr_eq(&f->src, &x->dst);
        if (!may || !conn_addr_eq(&f->dst, &x->src))
            continue;
        note_cnps(t, d, one);
        d->cnp.guessed = d->cnp.guessed ? d->cnp.guessed : one->last;
    }
}

static bool is_same(const struct early_cnp *x, const struct early_cnp *y)
{
    return x->tap == y->tap && x->qpn == y->qpn && conn_addr_eq(&x->src, &y->src) && conn_addr_eq(&x->dst, &y->dst);
}

/* Where the CNPs to the queue pair of `x` are kept. If it has none: a free one, else that whose CNPs are the oldest. */
static struct early_cnp *early_place(struct timeline *t, const struct early_cnp *x)
{
    uint64_t h = (conn_addr_hash(&x->src) * 3 + conn_addr_hash(&x->dst) + x->tap + x->qpn) * HASH_MULTIPLIER;
    struct early_cnp *place = NULL;

    for (unsigned i = 0; i < EARLY_NEAR; i++) {
        struct early_cnp *y = &t->cnps[((h >> 40) + i) % EARLY_CNPS];
        if (y->got.n && is_same(y, x))
            return y;
        if (!place || (place->got.n && (!y->got.n || y->got.last < place->got.last)))
            place = y;
    }
    return place;
}

/* One to the queue pair of `x`. */
static void note_early(struct timeline *t, const struct early_cnp *x, const struct cnps *one)
{
    struct early_cnp *y = early_place(t, x);

    if (!y->got.n || !is_same(y, x))
        *y = *x;
    add_cnps(&y->got, one);
    t->have_cnps = true;
}

void timeline_cnp(struct timeline *t, const struct event *e)
{
    uint32_t peer = e->own == FLOW_NONE ? FLOW_NONE : conn_flow_at(observer_conns(t->observer), e->own)->peer;
    ns_t now = e->p->frame->ts;
    struct direction *d = peer == FLOW_NONE ? NULL : t->dirs[peer];
    struct early_cnp x = {.tap = conn_tap_of(e->p->frame), .qpn = e->p->bth.dqpn};
    struct cnps one = one_cnp(now, frame_u32(e->p));

    if (d)
        note_cnps(t, d, &one);
    if (d && !d->cnp.guessed)
        return;
    conn_addr_of(e->p, &x.src, &x.dst);
    note_early(t, &x, &one);
    if (!d)
        guess_cnp(t, &x, &one);
}

/* The first response shows which CNPs were for this queue pair: those of `x`, which are counted now. Before the first
 * of them nothing had slowed it down. */
static void settle_guess(struct timeline *t, struct direction *d, const struct cnps *x)
{
    struct episode *ep = episode_at(t, d->cnp.ep);

    spans_change(&d->spans, d->cnp.guessed, x->n ? x->since : d->spans.at, 1u << TIME_THROTTLED, TIME_TRANSFER,
                 NO_EPISODE);
    if (ep) {
        ep->count = x->n;
        ep->nak = x->frame;
    }
    d->cnp.got = *x;
    d->cnp.guessed = 0;
}

void timeline_early_cnps(struct timeline *t, struct direction *d, const struct event *e)
{
    struct early_cnp x = {.tap = conn_tap_of(e->p->frame), .qpn = e->p->bth.dqpn};
    ns_t since = d->cnp.guessed ? d->cnp.guessed : e->p->frame->ts;
    const struct early_cnp *place;

    conn_addr_of(e->p, &x.src, &x.dst);
    place = early_place(t, &x);
    if (place->got.n && is_same(place, &x) && since - place->got.last < CNP_LASTS)
        x.got = place->got;
    if (d->cnp.guessed)
        settle_guess(t, d, &x.got);
    else if (x.got.n)
        note_cnps(t, d, &x.got);
}

/* After CNPs a new request was sent at `to`, later than it was due. Before the first CNP nothing had slowed its
 * requester down. */
static void claim_throttled(struct timeline *t, struct direction *d, const struct event *e, ns_t due, ns_t to)
{
    ns_t from = due > d->cnp.got.since ? due : d->cnp.got.since;

    if (from >= to)
        return;
    if (d->cnp.ep == NO_EPISODE) {
        d->cnp.ep = episode_new(t, e->flow, TROUBLE_THROTTLED, e->p->bth.psn, to);
        if (d->cnp.ep != NO_EPISODE) {
            t->episodes[d->cnp.ep].nak = d->cnp.got.frame;
            t->episodes[d->cnp.ep].count = d->cnp.got.n;
        }
    }
    timeline_claim(t, d, from, to, SPANS_GOOD, TIME_THROTTLED, d->cnp.ep);
}

/* --- How fast the host sends ------------------------------------------------------------------ */

#define FRAME_MOST      8192 /* no frame of RoCE has more bytes: 4096 of payload and headers */
#define FRAME_BYTE_MOST 8    /* ns of a byte at 1 Gbit/s, the slowest link that carries RDMA */

ns_t timeline_frame_takes(const struct direction *d, uint32_t len)
{
    return d->pace * (len + FRAME_EXTRA) / PACE_BYTES;
}

/* Likewise of another queue pair of the host: as that one has shown if this has not yet. */
static ns_t other_takes(const struct direction *d, uint32_t len)
{
    ns_t pace = d->pace || !d->host ? d->pace : d->host->pace;

    return pace * (len + FRAME_EXTRA) / PACE_BYTES;
}

/* Move the pace towards the median: `gap` is the time after a frame of `len` bytes. */
static void note_pace(struct direction *d, ns_t gap, uint32_t len)
{
    ns_t took, off, step = d->pace / 16;

    if (gap < 0 || gap >= PACE_MOST)
        return;
    took = gap * PACE_BYTES / (len + FRAME_EXTRA) + 1;
    off = took - d->pace;
    if (!d->pace || llabs(off) <= step)
        d->pace = took;
    else if (off < 0 && d->paces < PACE_EARLY)
        d->pace = took > d->pace / 2 ? took : d->pace / 2;
    else
        d->pace += off > 0 ? step + 1 : -step;
    d->paces += d->paces < PACE_EARLY;
}

/* Bytes of a request; a capture may claim any number. */
static uint32_t bytes_of(const struct event *e)
{
    return e->p->frame->len < PACE_BYTES ? e->p->frame->len : PACE_BYTES;
}

/* A new request: the time since the latest request of the host, of *len bytes. */
static inline ns_t take_turn(struct timeline *t, struct direction *d, const struct event *e, ns_t now, uint32_t *len)
{
    const struct flow *f = conn_flow_at(observer_conns(t->observer), e->flow);
    struct port *p;
    ns_t near;

    if (UNLIKELY(!d->host))
        d->host = timeline_port(t, &f->src, f->tap);
    if (UNLIKELY(!d->peer))
        d->peer = timeline_port(t, &f->dst, f->tap);
    p = d->host;
    arrivals_add(&d->peer->in, p, bytes_of(e), now);
    near = now - p->ts;
    if (UNLIKELY(near >= STOP_LEAST)) {
        p->still = p->ts;
        p->awake = now;
    }
    *len = p->len;
    if (near > 0 && near < PACE_MOST) {
        ns_t took = near * PACE_BYTES / (*len + FRAME_EXTRA) + 1;
        p->least = p->least && p->least < took ? p->least : took;
    }
    p->ts = now;
    p->len = bytes_of(e);
    return near;
}

static void note_turn(struct direction *d, const struct event *e, ns_t now)
{
    d->host->turns[d->host->n_turns++ % TURNS] =
        (struct turn){.len = bytes_of(e), .ts = now, .before = d->last_request};
    d->last_request = now;
}

/* timeline_its_turn() as it was at `until`. */
static ns_t its_turn(const struct direction *d, ns_t since, ns_t until)
{
    const struct turn *x;
    ns_t at = since;

    for (uint32_t i = 1; d->host && (x = port_turn(d->host, i)) && x->ts > since; i++) {
        bool next = x->before <= since, again = d->answered > since && x->ts > d->answered && x->before <= d->answered;
        if (x->ts < until && (next || again))
            at += other_takes(d, x->len);
    }
    return at;
}

ns_t timeline_its_turn(const struct direction *d, ns_t since)
{
    return its_turn(d, since, INT64_MAX);
}

#define KEEPS_SURE    2 /* twice the same number of messages is no chance */
#define RELEASED_SURE 4 /* so many waits in a row that a response ended are no chance */

/* PSNs sent and not acknowledged. */
static uint32_t packets_out(const struct req_dir *h)
{
    return h->have_una && psn_diff(h->next, h->una) > 0 ? (uint32_t)psn_diff(h->next, h->una) : 0;
}

void timeline_note_answer(struct direction *d, const struct event *e)
{
    uint32_t proved = response_proves(e->p);

    if (d->cut.answers && psn_diff(proved, d->cut.proved) <= 0)
        return;
    if (!d->cut.answers++)
        d->cut.answered = e->p->frame->ts;
    d->cut.freed = e->h->have_una && psn_diff(proved, e->h->una) > 0 ? (uint32_t)psn_diff(proved, e->h->una) : 0;
    d->cut.proved = proved;
}

/* For how long the host was still sending a frame at `since`. */
static ns_t port_is_busy(const struct direction *d, ns_t since)
{
    const struct turn *x;
    ns_t over;

    for (uint32_t i = 1; d->host && (x = port_turn(d->host, i)); i++)
        if (x->ts <= since) {
            over = x->ts + other_takes(d, x->len);
            return over > since ? over - since : 0;
        }
    return 0;
}

/* Whether the requester sent within `slack` after a response, at `from`, let it. */
static bool is_released(const struct direction *d, ns_t from, ns_t now, ns_t slack)
{
    return from > d->last_new && now <= timeline_its_turn(d, from) + slack;
}

/* The spacing that packets within messages have shown, behind a frame of `len` bytes; 0: as usual. */
static ns_t spacing_behind(const struct direction *d, uint32_t len)
{
    return d->cut.len ? d->cut.gap * len / d->cut.len : 0;
}

/* Whether a gap before a message is as wide as those between packets within messages: a pacer makes it no narrower,
 * and what is wider is not due to it alone. One that a response ended is as wide only by chance, and if the response
 * came while the port was busy, nothing tells whether the pacer would have let the packet go sooner. A packet that the
 * pacer lets go while the port is busy waits for that, and for its turn. */
static bool is_as_spaced(const struct direction *d, const struct open_gap *g)
{
    ns_t spacing = spacing_behind(d, g->len), paced = g->from + spacing;
    ns_t own = timeline_frame_takes(d, g->len), usual = g->due - own + spacing;
    ns_t busy = port_is_busy(d, paced), turn = its_turn(d, paced, g->to) + busy;

    if (g->busy || (g->ended && llabs(g->to - paced - busy) > spacing / 32))
        return false;
    return g->to - g->from >= spacing / 2 && (g->to <= usual + spacing / 8 || llabs(g->to - turn) <= spacing / 32);
}

/* Whether a gap within a message tells nothing of the spacing: the turns of other queue pairs of the host fill it, and
 * it is no narrower than the spacing was. */
static bool is_filled(const struct direction *d, ns_t now, ns_t own, ns_t due)
{
    return due > d->last_new + own && now - d->last_new >= spacing_behind(d, d->last_len);
}

/* Whether packets within messages have shown how wide the spacing is now: a CNP makes it wider. */
static bool spacing_is_known(const struct direction *d)
{
    return d->cut.len && (d->cut.gap || d->cut.shown_ts >= d->cnp.got.last);
}

static void keep_open(struct direction *d, const struct open_gap *g)
{
    if (d->cut.n_open < OPEN_GAPS)
        d->cut.open[d->cut.n_open++] = *g;
}

/* A packet within a message shows the spacing: which gaps before messages were no wider. */
static void settle_open(struct timeline *t, struct direction *d, const struct event *e)
{
    for (unsigned i = 0; i < d->cut.n_open; i++) {
        const struct open_gap *g = &d->cut.open[i];
        if (is_as_spaced(d, g))
            claim_throttled(t, d, e, g->due, g->to);
    }
    d->cut.n_open = 0;
}

/* Whether as many messages as its requester keeps outstanding were so until a response came, after which request `e` is
 * the first. */
static bool was_full(const struct direction *d, const struct event *e)
{
    return d->keeps.times == KEEPS_SURE &&
           timeline_messages(e->h, psn_add(e->h->una, 0 - d->cut.freed)) >= d->keeps.messages;
}

/* A wide gap before the first packet of a message: the pacer made it if packets within messages are as far apart, else
 * the program had nothing to send. While that spacing is not known: the pacer, if requests are outstanding and none was
 * acknowledged just now. `own`: time that the frame before takes. */
static void watch_start(struct timeline *t, struct direction *d, const struct event *e, ns_t from, ns_t now, ns_t due,
                        ns_t until)
{
    ns_t own = timeline_frame_takes(d, d->last_len), busy = port_is_busy(d, from);
    bool known = spacing_is_known(d), released = is_released(d, from, now, own + own / 8 + busy);
    bool at_once = d->cut.answers <= 1 && is_released(d, from, now, own / 16 + busy);
    const struct open_gap g = {.from = d->last_new,
                               .due = due,
                               .to = until,
                               .len = d->last_len,
                               .ended = at_once && is_released(d, from, now, own / 16),
                               .busy = at_once && busy && now >= from + busy && was_full(d, e)};

    if (released && d->full && timeline_uses_depth(e->p))
        return;
    released &= d->cut.answers <= 1; /* with two, the earlier response would have released the request already */
    if (known ? is_as_spaced(d, &g) : timeline_outstanding(d, e->h) && !released)
        claim_throttled(t, d, e, due, until);
    else if (!known)
        keep_open(d, &g);
}

/* Whether a wide gap within a message is a wait for a response, because the requester limits its outstanding packets
 * and has reached that limit. Then each such gap ends with a response; a gap that CNPs caused ends with one only by
 * chance, and is as wide as the one before. */
static bool is_window(struct direction *d, const struct event *e, ns_t from, ns_t now, ns_t own)
{
    bool full = d->cut.answers <= 1 && packets_out(e->h) + d->cut.freed >= d->most;
    bool at_once = full && is_released(d, from, now, own / 16);
    ns_t spacing = spacing_behind(d, d->last_len);
    bool as_before = spacing && llabs(now - d->last_new - spacing) <= spacing / 64;

    d->cut.released = full && !as_before && is_released(d, from, now, own + own / 8) ? d->cut.released + 1 : 0;
    return d->cut.released >= RELEASED_SURE || at_once;
}

/* Time that a frame of `len` bytes takes at least: requests may have followed each other at a distance as a rule. */
static ns_t least_takes(const struct direction *d, uint32_t len)
{
    return d->host ? d->host->least * (len + FRAME_EXTRA) / PACE_BYTES : 0;
}

/* Requests of other hosts came to the receiver since the latest new one, so that those before, too, may have come more
 * slowly than their host sends; but their link rested meanwhile, until *until: the new one has not waited behind them.
 * It was due as soon as its host has shown that it can send. */
static void tell_among(struct timeline *t, const struct direction *d, ns_t *own, ns_t *due, ns_t *until)
{
    ns_t turn = *due - *own, least = least_takes(d, d->last_len);

    if (!least || least >= *own || !arrivals_rested(&d->peer->in, d->last_new, until))
        return;
    *own = least;
    *due = turn + least;
    t->gathers = true;
}

/* A new request after CNPs: it was due as soon as each other queue pair that sent meanwhile had its turn, and other
 * hosts to the same receiver. */
static void watch_spacing(struct timeline *t, struct direction *d, const struct event *e, ns_t from, ns_t now)
{
    ns_t own = timeline_frame_takes(d, d->last_len), due = timeline_its_turn(d, d->last_new) + own, until = now;
    bool mixed = d->peer->in.mixed > d->last_new, wide, fast = d->cut.first && d->cut.answers && !d->cut.gap, full;

    if (mixed)
        tell_among(t, d, &own, &due, &until);
    wide = until - due > own / 4;
    full = fast && d->cut.answered > due;
    if (e->p->op->flags & OPF_START) {
        if (wide)
            watch_start(t, d, e, from, now, due, until);
        return;
    }
    if (wide ? is_window(d, e, from, now, own) : is_filled(d, now, own, due))
        return;
    if (wide) /* until the first response of all, the window of a requester that was not slow yet may have been full */
        claim_throttled(t, d, e, full ? d->cut.answered : due, until);
    if (now - d->last_new > PACE_MOST)
        return;
    d->cut.len = d->last_len;
    d->cut.gap = wide ? until - d->last_new : 0;
    d->cut.shown_ts = d->last_new;
    if (d->cut.n_open)
        settle_open(t, d, e);
}

bool timeline_is_stalled(const struct direction *d, ns_t now, ns_t slack)
{
    ns_t own = timeline_frame_takes(d, d->last_len);

    return now - timeline_its_turn(d, d->last_new) - own > (own ? own : slack);
}

ns_t timeline_latest_over(const struct direction *d)
{
    ns_t at = d->spans.at, takes = least_takes(d, d->last_len), most = (d->last_len + FRAME_EXTRA) * FRAME_BYTE_MOST;

    return d->last_request == at ? at + (takes < most ? takes : most) : at;
}

bool timeline_awaits_turn(const struct direction *d, ns_t now)
{
    ns_t at = d->last_new, own = least_takes(d, d->last_len);
    const struct turn *x;

    for (uint32_t i = 1; d->host && (x = port_turn(d->host, i)) && x->ts > d->last_new; i++) {
        if (x->answer || x->before > d->last_new)
            return false;
        at += least_takes(d, x->len);
    }
    return at > d->last_new && now <= at + own + own / 4;
}

bool timeline_had_turn(const struct direction *d, ns_t since, ns_t now)
{
    const struct turn *own = d->host ? port_turn(d->host, 1) : NULL, *x;
    ns_t at = since;

    if (!own || own->ts != now || d->last_request != now)
        return false;
    for (uint32_t i = 2; (x = port_turn(d->host, i)) && x->ts >= since; i++) {
        if (x->before > own->before)
            return false;
        at += other_takes(d, x->len);
    }
    return at > since && now <= at + timeline_frame_takes(d, d->last_len) / 4;
}

/* The queue pair sends a response. */
static void note_answering(struct direction *d, ns_t now)
{
    if (now - d->answered > PAUSE_REACTION)
        d->answering = now;
    d->answered = now;
}

void timeline_answer_turn(struct timeline *t, struct direction *d, const struct event *e, ns_t now)
{
    const struct flow *f;

    if (UNLIKELY(!d->peer)) {
        f = conn_flow_at(observer_conns(t->observer), e->flow);
        d->peer = timeline_port(t, &f->dst, f->tap);
    }
    if (LIKELY(!d->peer->ts))
        return; /* no request of that host waits for its turn */
    d->peer->turns[d->peer->n_turns++ % TURNS] =
        (struct turn){.len = bytes_of(e), .answer = true, .ts = now, .before = d->last_answer};
    d->last_answer = now;
    if (e->own != FLOW_NONE && t->dirs[e->own])
        note_answering(t->dirs[e->own], now);
}

void timeline_turn(struct timeline *t, struct direction *d, const struct event *e, ns_t now)
{
    uint32_t len;

    take_turn(t, d, e, now, &len);
    note_turn(d, e, now);
}

/* New request `e` begins a message as soon as a response came, at `from`: as often as not with as many messages
 * outstanding as before, that is as many as its requester keeps outstanding. */
static void note_limit(struct direction *d, const struct event *e, ns_t from, ns_t now)
{
    uint32_t n;

    if (from <= d->last_new || !(e->p->op->flags & OPF_START) || now - from > timeline_frame_takes(d, FRAME_MOST))
        return; /* no frame keeps the port busy for longer */
    if (now - from > timeline_frame_takes(d, d->last_len) / 16 + port_is_busy(d, from))
        return;
    n = timeline_messages(e->h, e->h->una) + 1;
    if (n > d->keeps.messages) {
        d->keeps.messages = n;
        d->keeps.times = 0;
    }
    d->keeps.times += n == d->keeps.messages && d->keeps.times < KEEPS_SURE;
}

void timeline_pace(struct timeline *t, struct direction *d, const struct event *e, ns_t from, ns_t now, bool held)
{
    uint32_t len, out = packets_out(e->h);
    ns_t near = take_turn(t, d, e, now, &len);
    bool after_cnp = d->cnp.got.n && now - d->cnp.got.last < CNP_LASTS;
    bool went_back = d->last_request > d->last_new; /* the gap between the new requests tells nothing */

    if (after_cnp && !d->pace) /* the first CNP came before it had shown any: other queue pairs of the host have */
        d->pace = d->host->pace;
    if (d->last_new && after_cnp && d->pace && !held && !went_back)
        watch_spacing(t, d, e, from, now);
    else if (d->last_new && !after_cnp && (!(e->p->op->flags & OPF_START) || timeline_outstanding(d, e->h)))
        note_pace(d, near, len);
    if (!after_cnp && !went_back)
        note_limit(d, e, from, now);
    if (d->pace)
        d->host->pace = d->pace;
    note_turn(d, e, now);
    d->cut.first = !e->h->have_una;
    d->most = out > d->most ? out : d->most;
    d->last_len = bytes_of(e);
    d->last_new = now;
    d->cut.answers = 0;
}
