/* layer 2b (ulp): packets of flows whose protocol is not known yet, kept until it is. */
#include "src/ulp/held/held.h"

#include "src/ulp/ulp_impl.h"

#include <stdlib.h>

/* What is asked of a packet that is kept. */
struct held_packet {
    struct held_packet *older;
    uint64_t place; /* among those of all flows */
    struct frame frame;
    const struct opinfo *op;
    struct bth bth;
    struct reth reth;
    struct aeth aeth;
    uint32_t have, imm, invalidated; /* imm: immediate data, invalidated: R_Key; each with its bit in `have` */
    uint32_t payload_len, payload_cap;
    uint32_t own;
    uint8_t kind, as; /* of the event */
    uint8_t bytes[];  /* payload_cap */
};

static size_t size_of(const struct held_packet *h)
{
    return sizeof *h + h->payload_cap;
}

static void packet_free(struct ulp *u, struct held_packet *h)
{
    room_give(observer_room(u->observer), size_of(h));
    free(h);
}

void held_forget(struct ulp *u, uint32_t flow)
{
    struct held_flow *f = u->guesses[flow].held;

    if (!f)
        return;
    for (struct held_packet *h; (h = f->newest);) {
        f->newest = h->older;
        packet_free(u, h);
    }
    u->guesses[flow].held = NULL;
    u->n_held--;
    room_free(u, f, sizeof *f);
}

void held_end(struct ulp *u)
{
    for (uint32_t i = 0; u->n_held && i < observer_flows(u->observer); i++)
        held_forget(u, i);
}

/* --- Keeping ---------------------------------------------------------------------------------- */

static uint32_t peer_of(const struct ulp *u, uint32_t flow)
{
    return conn_flow_at(observer_conns(u->observer), flow)->peer;
}

static bool may_be_known(const struct guess *g)
{
    return g->last.proto && g->tries < GUESS_TRIES;
}

static bool is_data(const struct pkt *p)
{
    return p->op->flags & (OPF_WRITE | OPF_READ_RESP);
}

/* A request but an atomic operation, or a response to a READ. */
static bool is_of_use(const struct event *e)
{
    unsigned flags = e->p->op->flags;

    return e->kind == EVENT_REQUEST ? flags & (OPF_SEND | OPF_WRITE | OPF_READ_REQ)
                                    : e->kind == EVENT_RESPONSE && flags & OPF_READ_RESP;
}

/* Of data that are many only the lengths are kept. */
static uint32_t bytes_kept(const struct held_flow *f, const struct pkt *p)
{
    return is_data(p) && f->bytes > HELD_FLOW_BYTES / 2 ? 0 : p->payload_cap;
}

static void fill(struct held_packet *h, const struct event *e)
{
    const struct pkt *p = e->p;

    h->frame = *p->frame;
    h->frame.data = NULL; /* the bytes of its headers are not kept */
    h->frame.caplen = 0;
    h->op = p->op;
    h->bth = p->bth;
    h->have = p->have & (H_BTH | H_RETH | H_AETH | H_IMMDT | H_IETH);
    h->payload_len = p->payload_len;
    h->own = e->own;
    h->kind = e->kind;
    h->as = e->as;
    if (p->have & H_RETH)
        h->reth = p->reth;
    if (p->have & H_AETH)
        h->aeth = p->aeth;
    if (p->have & H_IMMDT)
        h->imm = p->immdt.data;
    if (p->have & H_IETH)
        h->invalidated = p->ieth.rkey;
    if (h->payload_cap)
        memcpy(h->bytes, p->data + p->payload_off, h->payload_cap);
}

static void forget_both(struct ulp *u, uint32_t flow, uint32_t peer)
{
    held_forget(u, flow);
    if (peer != FLOW_NONE)
        held_forget(u, peer);
}

/* False: there is no room. */
static bool keep(struct ulp *u, const struct event *e)
{
    struct guess *g = &u->guesses[e->flow];
    struct held_packet *h;
    uint32_t cap;
    size_t n;

    if (!g->held) {
        g->held = room_new(u, sizeof *g->held);
        u->n_held += g->held != NULL;
    }
    if (!g->held)
        return false;
    cap = bytes_kept(g->held, e->p);
    n = sizeof *h + cap;
    h = g->held->bytes + n <= HELD_FLOW_BYTES && room_take(observer_room(u->observer), n, false) ? calloc(1, n) : NULL;
    if (!h)
        return false;
    h->payload_cap = cap;
    h->place = u->held_places++;
    fill(h, e);
    h->older = g->held->newest;
    g->held->newest = h;
    g->held->bytes += (uint32_t)n;
    return true;
}

void held_keep(struct ulp *u, const struct event *e)
{
    uint32_t peer;

    if (LIKELY(!u->guesses[e->flow].last.proto && !u->n_held) || u->held_again || !is_of_use(e))
        return;
    peer = peer_of(u, e->flow);
    if ((may_be_known(&u->guesses[e->flow]) || (peer != FLOW_NONE && may_be_known(&u->guesses[peer]))) && keep(u, e))
        return;
    forget_both(u, e->flow, peer); /* of a part of them nothing true could be said */
}

bool held_send(const struct ulp *u, uint32_t flow, struct ulp_body *b)
{
    const struct held_flow *f = u->guesses[flow].held;
    const struct held_packet *h = f ? f->newest : NULL;

    while (h && (h->kind != EVENT_REQUEST || !(h->op->flags & OPF_SEND && h->op->flags & OPF_START)))
        h = h->older;
    if (h)
        *b = (struct ulp_body){h->bytes, h->payload_cap, LAYER_MESSAGE, h->payload_len - h->payload_cap};
    return h != NULL;
}

/* --- Giving ----------------------------------------------------------------------------------- */

static void give(struct ulp *u, uint32_t flow, const struct held_packet *h)
{
    struct pkt p = {.frame = &h->frame,
                    .data = h->bytes,
                    .caplen = h->payload_cap,
                    .have = h->have,
                    .bth = h->bth,
                    .op = h->op,
                    .payload_len = h->payload_len,
                    .payload_cap = h->payload_cap,
                    .reth = h->reth,
                    .aeth = h->aeth,
                    .immdt = {.data = h->imm},
                    .ieth = {.rkey = h->invalidated}};

    ulp_take_held(u, &(struct event){.p = &p, .kind = h->kind, .as = h->as, .own = h->own, .flow = flow});
}

/* The packets of a flow, oldest first; they are no longer kept. */
static struct held_packet *take_out(struct ulp *u, uint32_t flow)
{
    struct held_flow *f = flow == FLOW_NONE ? NULL : u->guesses[flow].held;
    struct held_packet *list = NULL;

    for (struct held_packet *h; f && (h = f->newest); list = h) {
        f->newest = h->older;
        h->older = list;
    }
    if (f)
        held_forget(u, flow);
    return list;
}

void held_give(struct ulp *u, uint32_t flow)
{
    uint32_t of[2] = {flow, peer_of(u, flow)};
    struct held_packet *list[2] = {take_out(u, of[0]), take_out(u, of[1])};

    u->held_again = true;
    while (list[0] || list[1]) {
        unsigned i = !list[0] || (list[1] && list[1]->place < list[0]->place);
        struct held_packet *h = list[i];
        list[i] = h->older;
        give(u, of[i], h);
        packet_free(u, h);
    }
    u->held_again = false;
}
