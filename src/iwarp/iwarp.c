/* layer 2b (iwarp): TCP connections and their segments; events for the subscribers. */
#include "src/iwarp/iwarp_impl.h"

#include "dissect/dissectors.h"
#include "dissect/ip/tcp.h"

#include <stdlib.h>

/* --- Subscribers ------------------------------------------------------------------------------ */

bool iwarp_subscribe(struct iwarp *w, const struct iwarp_sub *s)
{
    if (w->n_subs == IWARP_USERS)
        return false;
    w->sub[w->n_subs++] = *s;
    return true;
}

/* Bytes that are not in the packet are copied. */
void iwarp_show_late(struct iwarp *w, const struct iwarp_unit *u)
{
    struct iwarp_unit *k;

    if (w->n_shown == SHOWN_MAX)
        return;
    k = &w->shown[w->n_shown];
    *k = *u;
    if (u->body.off == LAYER_MESSAGE) {
        size_t at = w->message.len;
        buf_mem(&w->message, u->body.b, u->body.len);
        if (w->message.len < at + u->body.len || w->message.len >= LAYER_MESSAGE)
            return; /* no memory */
        k->body.off = LAYER_MESSAGE | (uint32_t)at;
        for (unsigned i = 0; i < u->n_markers && i < IWARP_MARKERS; i++)
            buf_mem(&w->message, u->marker[i].b, MPA_MARKER_LEN);
    }
    w->n_shown++;
}

void iwarp_hand_out(struct iwarp *w, const struct iwarp_unit *u)
{
    if (!w->hidden)
        iwarp_show_late(w, u);
    for (unsigned i = 0; i < w->n_subs && !w->muted; i++)
        if (w->sub[i].fpdu)
            w->sub[i].fpdu(w->sub[i].user, w->p, u);
}

void iwarp_report(struct iwarp *w, const struct iwarp_bad *b)
{
    for (unsigned i = 0; i < w->n_subs && !w->muted; i++)
        if (w->sub[i].bad)
            w->sub[i].bad(w->sub[i].user, w->p, b);
}

uint64_t iwarp_number(const struct iwarp *w)
{
    uint64_t number = 0;

    for (unsigned i = 0; i < w->n_subs && !w->muted; i++)
        if (w->sub[i].begun)
            number = w->sub[i].begun(w->sub[i].user);
    return number;
}

void iwarp_over(struct iwarp *w, const struct iwarp_op *op)
{
    for (unsigned i = 0; i < w->n_subs && !op->muted; i++)
        if (w->sub[i].over)
            w->sub[i].over(w->sub[i].user, op);
}

/* --- Connections ------------------------------------------------------------------------------ */

static uint64_t hash_bytes(uint64_t h, const uint8_t *b)
{
    return (h ^ load_le64(b) ^ load_le64(b + 8) * UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xff51afd7ed558ccd);
}

/* The same for both directions. */
static unsigned chain_of(const struct iwarp_ends *e, uint16_t sport, uint16_t dport)
{
    uint64_t h = (hash_bytes(sport, e->src) + hash_bytes(dport, e->dst)) ^ e->tap;

    return (unsigned)(h ^ h >> 32) & (CHAINS - 1);
}

/* Whether `side` of the connection sends what goes between these ends. */
static bool sends(const struct tcp_conn *t, enum iwarp_side side, const struct iwarp_ends *e, uint16_t sport,
                  uint16_t dport)
{
    const struct iwarp_conn *c = &t->c;

    return c->port[side] == sport && c->port[!side] == dport && c->tap == e->tap && c->network == e->network &&
           memcmp(c->addr[side], e->src, 16) == 0 && memcmp(c->addr[!side], e->dst, 16) == 0;
}

static struct tcp_conn *find(struct iwarp *w, const struct iwarp_ends *e, uint16_t sport, uint16_t dport,
                             enum iwarp_side *side)
{
    for (struct tcp_conn *t = w->chain[chain_of(e, sport, dport)]; t; t = t->chain)
        for (unsigned i = 0; i < IWARP_SIDES; i++)
            if (sends(t, (enum iwarp_side)i, e, sport, dport)) {
                *side = (enum iwarp_side)i;
                return t;
            }
    return NULL;
}

static void unlink_use(struct iwarp *w, struct tcp_conn *t)
{
    *(t->older ? &t->older->newer : &w->oldest) = t->newer;
    *(t->newer ? &t->newer->older : &w->newest) = t->older;
}

static void link_newest(struct iwarp *w, struct tcp_conn *t)
{
    t->older = w->newest;
    t->newer = NULL;
    *(w->newest ? &w->newest->newer : &w->oldest) = t;
    w->newest = t;
}

static uint64_t bytes_of(const struct tcp_conn *t)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < IWARP_SIDES; i++)
        n += t->side[i].stream.cap + t->side[i].stream.late_bytes;
    return n;
}

/* Why operations of the connection that have no end are left. */
static enum iwarp_end end_of(const struct tcp_conn *t)
{
    return t->ended || (t->fin[0] && t->fin[1]) ? IWARP_LEFT : IWARP_OPEN_STILL;
}

static void forget(struct iwarp *w, struct tcp_conn *t)
{
    struct iwarp_ends e = {.tap = t->c.tap, .network = t->c.network};
    struct tcp_conn **at;
    uint32_t i = 0;

    memcpy(e.src, t->c.addr[0], 16);
    memcpy(e.dst, t->c.addr[1], 16);
    for (at = &w->chain[chain_of(&e, t->c.port[0], t->c.port[1])]; *at != t;)
        at = &(*at)->chain;
    *at = t->chain;
    unlink_use(w, t);
    w->n_conns--;
    w->bytes -= bytes_of(t);
    rdmap_flush(w, t, end_of(t));
    for (unsigned k = 0; k < IWARP_SIDES; k++) {
        struct iwarp_repair r;
        if (repairs_open(t, (enum iwarp_side)k, &r))
            iwarp_repair_over(w, &r);
    }
    if (t->known) {
        for (unsigned k = 0; k < w->n_subs; k++)
            if (w->sub[k].gone)
                w->sub[k].gone(w->sub[k].user, &t->c);
        while (w->known[i] != t)
            i++;
        memmove(w->known + i, w->known + i + 1, (w->n_kept - i - 1) * sizeof(struct tcp_conn *));
        w->n_kept--;
    }
    for (unsigned k = 0; k < IWARP_SIDES; k++) {
        stream_free(&t->side[k].stream);
        free(t->side[k].open);
    }
    free(t);
}

static struct tcp_conn *create(struct iwarp *w, const struct iwarp_ends *e, uint16_t sport, uint16_t dport,
                               enum iwarp_side side)
{
    struct tcp_conn *t, **chain = &w->chain[chain_of(e, sport, dport)];

    while (w->n_conns >= IWARP_STREAMS)
        forget(w, w->oldest);
    t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->c = (struct iwarp_conn){.tap = e->tap, .network = e->network};
    memcpy(t->c.addr[side], e->src, 16);
    memcpy(t->c.addr[!side], e->dst, 16);
    t->c.port[side] = sport;
    t->c.port[!side] = dport;
    t->side[0].framing = t->side[1].framing = FRAMING_NONE;
    t->c.first_frame = w->p->frame->number;
    t->c.first = w->p->frame->ts;
    t->chain = *chain;
    *chain = t;
    link_newest(w, t);
    w->n_conns++;
    return t;
}

/* Make room for one more in a list. */
static bool more(void **list, uint32_t n, uint32_t *cap, size_t size)
{
    uint32_t want = *cap ? 2 * *cap : 16;
    void *grown;

    if (n < *cap)
        return true;
    grown = realloc(*list, want * size);
    if (!grown)
        return false;
    *list = grown;
    *cap = want;
    return true;
}

void iwarp_repair_over(struct iwarp *w, const struct iwarp_repair *r)
{
    for (unsigned i = 0; i < w->n_subs && !w->muted; i++)
        if (w->sub[i].repaired)
            w->sub[i].repaired(w->sub[i].user, r);
}

/* The number of the same connection at another tap; 0: none. */
static uint32_t number_elsewhere(const struct iwarp *w, const struct iwarp_conn *c)
{
    for (uint32_t i = w->n_kept; i-- > 0;) {
        const struct iwarp_conn *o = &w->known[i]->c;
        if (o->tap != c->tap && o->network == c->network && memcmp(o->addr, c->addr, sizeof c->addr) == 0 &&
            memcmp(o->port, c->port, sizeof c->port) == 0)
            return o->number;
    }
    return 0;
}

void iwarp_recognised(struct iwarp *w, struct tcp_conn *t, enum iwarp_how how)
{
    void *known = w->known;

    if (t->known)
        return;
    if (!more(&known, w->n_kept, &w->cap_kept, sizeof(struct tcp_conn *)))
        return;
    w->known = known;
    t->known = true;
    t->c.how = how;
    t->c.number = number_elsewhere(w, &t->c);
    t->c.again = t->c.number != 0;
    if (!t->c.again) {
        t->c.number = w->number(w->user);
        w->n_known++;
    }
    w->known[w->n_kept++] = t;
}

/* The ends are the other way round: the second one sends the request. */
static void turn_round(struct tcp_conn *t)
{
    struct side s = t->side[0];
    struct iwarp_sent sent = t->c.sent[0];
    uint16_t port = t->c.port[0];
    bool fin = t->fin[0];
    struct iwarp_trip trip = t->c.trip[0];
    uint8_t addr[16];

    memcpy(addr, t->c.addr[0], 16);
    memcpy(t->c.addr[0], t->c.addr[1], 16);
    memcpy(t->c.addr[1], addr, 16);
    t->side[0] = t->side[1];
    t->side[1] = s;
    t->c.sent[0] = t->c.sent[1];
    t->c.sent[1] = sent;
    t->c.port[0] = t->c.port[1];
    t->c.port[1] = port;
    t->fin[0] = t->fin[1];
    t->fin[1] = fin;
    t->c.trip[0] = t->c.trip[1];
    t->c.trip[1] = trip;
}

/* --- Segments --------------------------------------------------------------------------------- */

/* A TCP segment. */
struct arrival {
    struct tcp tcp;
    struct segment g;
    uint32_t off; /* of its payload in the frame */
    uint16_t id;  /* IP identification; 0: none */
};

/* The segment; false: it is none that can be read. */
static bool arrival_of(struct arrival *a, const struct pkt *p)
{
    const struct layer *l = tcp_layer(p);
    uint32_t end, there;

    if (!l || l->len < TCP_LEN || p->flags & (PKT_FRAGMENT | PKT_QUOTED | PKT_MALFORMED))
        return false;
    tcp_get(&a->tcp, p->data + l->off);
    a->off = l->off + a->tcp.doff * 4u;
    a->id = p->have & H_IP4 ? load_be16(p->data + p->ip_off + 4) : 0;
    end = p->end > a->off ? p->end : a->off;
    there = min_u32(end, p->caplen);
    a->g = (struct segment){.seq = a->tcp.seq + a->tcp.syn,
                            .len = end - a->off,
                            .cap = there > a->off ? there - a->off : 0,
                            .frame = p->frame->number,
                            .ts = p->frame->ts};
    a->g.b = p->data + (a->g.cap ? a->off : 0);
    return a->tcp.doff >= 5 && a->g.len <= 65535;
}

/* A stream whose framing is not known: what this segment may begin. */
static enum framing look(const struct tcp_conn *t, const struct side *s, const struct segment *g)
{
    enum mpa_key key = g->cap ? mpa_key_of(g->b, g->cap) : MPA_OTHER;

    if (key == MPA_REQUEST || key == MPA_REPLY)
        return FRAMING_START;
    if ((t->known || !s->syn) && fpdu_looks_right(g->b, g->cap))
        return FRAMING_PROBE;
    return FRAMING_NONE;
}

/* Where the bytes in order from place `from` on are in the packet. */
static void place(struct iwarp *w, const struct stream *s, const struct arrival *a, uint64_t from)
{
    uint32_t skip = s->next - (uint32_t)(s->at + s->len - from) - a->g.seq;

    if (skip >= a->g.cap)
        return;
    w->payload_off = a->off + skip;
    w->payload_at = from;
    w->payload_cap = a->g.cap - skip;
}

/* Take the payload of side `side`. */
static void take_payload(struct iwarp *w, struct tcp_conn *t, enum iwarp_side side, const struct arrival *a)
{
    struct side *s = &t->side[side];
    uint64_t broken = s->stream.broken, from;
    enum stream_got got;

    if (s->framing == FRAMING_OFF)
        return;
    if (s->framing == FRAMING_NONE) {
        s->framing = look(t, s, &a->g);
        if (s->framing == FRAMING_NONE)
            return;
        stream_begin(&s->stream, a->g.seq);
        s->frames_at = s->told = 0;
    }
    got = stream_take(&s->stream, &a->g, &from);
    if (got == STREAM_NEW || got == STREAM_BROKEN)
        place(w, &s->stream, a, from);
    if (s->stream.broken != broken)
        fpdu_lost(s);
    fpdu_read(w, t, side);
}

/* Gaps that will not be filled any more. */
static void give_up(struct iwarp *w, struct tcp_conn *t, enum iwarp_side side, bool end)
{
    struct side *s = &t->side[side];
    uint64_t broken = s->stream.broken;

    w->payload_cap = 0;
    while (stream_give_up(&s->stream, end)) {
        if (s->stream.broken != broken)
            fpdu_lost(s);
        broken = s->stream.broken;
        fpdu_read(w, t, side);
    }
}

/* A SYN: an earlier connection between the same ports is over. */
static struct tcp_conn *take_syn(struct iwarp *w, struct tcp_conn *t, const struct iwarp_ends *e,
                                 const struct arrival *a, enum iwarp_side *side)
{
    struct side *s = t ? &t->side[*side] : NULL;
    bool repeated = t && s->syn && s->stream.next == a->tcp.seq + 1;
    bool used = t && (s->syn || s->stream.begun || t->ended);

    if (used && !repeated && !a->tcp.ackf) {
        forget(w, t);
        t = NULL;
    }
    if (!t) {
        *side = a->tcp.ackf ? IWARP_RESPONDER : IWARP_INITIATOR;
        t = create(w, e, a->tcp.sport, a->tcp.dport, *side);
    }
    if (t && t->side[*side].syn)
        repairs_time(t, *side, a->tcp.seq + 1, true, a->g.ts);
    if (!t || t->side[*side].syn)
        return t;
    t->side[*side].syn = true;
    t->side[*side].framing = FRAMING_START;
    stream_begin(&t->side[*side].stream, a->tcp.seq + 1);
    repairs_time(t, *side, a->tcp.seq + 1, false, a->g.ts);
    return t;
}

/* The connection of the segment; NULL: none that matters. */
static struct tcp_conn *conn_of(struct iwarp *w, const struct iwarp_ends *e, const struct arrival *a,
                                enum iwarp_side *side)
{
    struct tcp_conn *t = find(w, e, a->tcp.sport, a->tcp.dport, side);
    enum mpa_key key = a->g.cap ? mpa_key_of(a->g.b, a->g.cap) : MPA_OTHER;
    bool other_way; /* than the ports made it look */

    if (a->tcp.syn)
        t = take_syn(w, t, e, a, side);
    if (!t && a->g.len) {
        *side = a->tcp.sport > a->tcp.dport ? IWARP_INITIATOR : IWARP_RESPONDER;
        t = create(w, e, a->tcp.sport, a->tcp.dport, *side);
    }
    other_way = *side == IWARP_RESPONDER ? key == MPA_REQUEST : key == MPA_REPLY;
    if (t && !t->known && other_way) {
        turn_round(t);
        *side = iwarp_other(*side);
    }
    return t;
}

/* What the packet counts for. */
static void count(struct tcp_conn *t, enum iwarp_side side, const struct pkt *p, const struct arrival *a)
{
    struct iwarp_sent *sent = &t->c.sent[side];
    const struct stream *s = &t->side[side].stream;

    t->c.last_frame = p->frame->number;
    t->c.last = p->frame->ts;
    sent->packets++;
    sent->segments += a->g.len != 0;
    sent->bytes += pkt_wire_len(p);
    sent->again = s->again;
    sent->reordered = s->reordered;
    sent->lacking = s->lacking;
}

static void take_segment(struct iwarp *w, struct tcp_conn *t, enum iwarp_side side, const struct arrival *a)
{
    enum iwarp_side other = iwarp_other(side);

    if (a->tcp.ackf) {
        repairs_ack(w, t, other, a->tcp.ack, !a->g.len && !a->tcp.fin);
        stream_ack(&t->side[other].stream, a->tcp.ack);
        if (t->known)
            rdmap_acked(w, t, other, a->tcp.ack);
    }
    if (a->g.len) {
        repairs_segment(w, t, side, &a->g, a->id);
        take_payload(w, t, side, a);
    }
    if (t->known)
        give_up(w, t, side, false);
    t->fin[side] |= a->tcp.fin;
    if (!a->tcp.rst || t->ended)
        return;
    t->ended = true;
    for (unsigned i = 0; t->known && i < IWARP_SIDES; i++)
        give_up(w, t, (enum iwarp_side)i, true);
}

void iwarp_packet(struct iwarp *w, const struct pkt *p, const struct iwarp_ends *ends)
{
    enum iwarp_side side = IWARP_INITIATOR;
    struct tcp_conn *t;
    struct arrival a;
    uint64_t before;

    w->n_shown = 0;
    w->scratch.len = w->message.len = 0;
    w->p = p;
    w->frame = *p->frame;
    w->payload_cap = 0;
    w->conn = 0;
    w->again = false;
    if (!arrival_of(&a, p) || !(t = conn_of(w, ends, &a, &side)))
        return;
    unlink_use(w, t);
    link_newest(w, t);
    before = bytes_of(t);
    take_segment(w, t, side, &a);
    count(t, side, p, &a);
    w->conn = t->known ? t->c.number : 0;
    w->bytes += bytes_of(t) - before;
    while (w->bytes > IWARP_BYTES && w->oldest != t)
        forget(w, w->oldest);
}

void iwarp_no_packet(struct iwarp *w)
{
    w->n_shown = 0;
    w->conn = 0;
}

/* --- The whole -------------------------------------------------------------------------------- */

struct iwarp *iwarp_new(uint32_t (*number)(void *user), void *user)
{
    struct iwarp *w = calloc(1, sizeof *w);

    if (!w)
        return NULL;
    w->number = number;
    w->user = user;
    return w;
}

void iwarp_mute(struct iwarp *w, bool muted)
{
    w->muted = muted;
}

/* Hand the open operations of a connection to one subscriber. */
static void tell_open(const struct tcp_conn *t, const struct iwarp_sub *s)
{
    for (unsigned k = 0; k < IWARP_SIDES; k++)
        for (uint32_t i = 0; i < t->side[k].n; i++) {
            struct iwarp_op op = t->side[k].open[i].op;
            if (!t->side[k].open[i].done)
                op.ended = (uint8_t)end_of(t);
            if (s->over && !op.muted)
                s->over(s->user, &op);
        }
    for (unsigned k = 0; k < IWARP_SIDES; k++) {
        struct iwarp_repair r;
        if (repairs_open(t, (enum iwarp_side)k, &r) && s->repaired)
            s->repaired(s->user, &r);
    }
}

void iwarp_finish(struct iwarp *w, const void *user)
{
    struct pkt none = {.frame = &w->frame};

    w->p = &none;
    w->n_shown = 0;
    for (uint32_t i = 0; i < w->n_kept; i++) {
        struct tcp_conn *t = w->known[i];
        for (unsigned k = 0; k < IWARP_SIDES; k++)
            give_up(w, t, (enum iwarp_side)k, true);
        for (unsigned k = 0; k < w->n_subs; k++)
            if (w->sub[k].user == user)
                tell_open(t, &w->sub[k]);
    }
    w->p = NULL;
    w->n_shown = 0;
}

void iwarp_free(struct iwarp *w)
{
    if (!w)
        return;
    w->n_subs = 0;
    while (w->oldest)
        forget(w, w->oldest);
    free(w->known);
    buf_free(&w->scratch);
    buf_free(&w->message);
    free(w);
}

bool iwarp_has(const struct iwarp *w)
{
    return w->conn != 0;
}

uint32_t iwarp_count(const struct iwarp *w)
{
    return w->n_known;
}

const struct iwarp_conn *iwarp_at(const struct iwarp *w, uint32_t i)
{
    return i < w->n_kept ? &w->known[i]->c : NULL;
}
