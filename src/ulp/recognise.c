/* layer 2b (ulp): which connection carries which protocol. */
#include "src/ulp/ulp_impl.h"

#include <stdlib.h>

const char *ulp_how_str(enum ulp_how h)
{
    static const char *const names[] = {"not known",     "--ulp",       "CM private data",
                                        "CM service id", "first bytes", "MPA private data",
                                        "TCP port",      "SMC CLC"};
    return names[h];
}

/* --- Connections ------------------------------------------------------------------------------ */

static void flow_free(struct ulp *u, struct ulp_flow *f)
{
    if (f)
        room_free(u, f->transfer, f->cap * sizeof *f->transfer);
    room_free(u, f, sizeof *f);
}

static struct ulp_flow *attach(struct ulp_conn *c, uint32_t flow, enum ulp_side side)
{
    struct ulp *u = c->ulp;
    struct ulp_flow *f = c->flow[side] == FLOW_NONE ? room_new(u, sizeof *f) : NULL;

    if (!f || !(f->transfer = room_new(u, TRANSFERS_FIRST * sizeof *f->transfer))) {
        flow_free(u, f);
        return NULL;
    }
    f->cap = TRANSFERS_FIRST;
    f->conn = c;
    f->side = (uint8_t)side;
    c->flow[side] = flow;
    u->flows[flow] = f;
    u->sums.untied += u->guesses[flow].moved;
    u->guesses[flow].moved = 0;
    u->sums.cut_unknown -= u->guesses[flow].cut;
    u->guesses[flow].cut = 0;
    conn_flow_at(observer_conns(u->observer), flow)->upper = c->proto->name;
    return f;
}

struct ulp_conn *ulp_conn_make(struct ulp *u, const struct ulp_proto *proto, enum ulp_how how)
{
    struct ulp_conn *c = room_new(u, sizeof *c);

    if (!c || (proto->size && !(c->state = room_new(u, proto->size)))) {
        room_free(u, c, sizeof *c);
        return NULL;
    }
    c->ulp = u;
    c->proto = proto;
    c->how = (uint8_t)how;
    c->sure = how == ULP_BY_USER || how == ULP_BY_BYTES || !proto->looks;
    c->flow[ULP_CLIENT] = c->flow[ULP_SERVER] = FLOW_NONE;
    c->next = u->conns;
    if (c->next)
        c->next->before = c;
    u->conns = c;
    return c;
}

bool ulp_knows_sides(const struct ulp_conn *c)
{
    return c->sided;
}

void ulp_set_sides(struct ulp_conn *c, bool swap)
{
    const uint32_t client = c->flow[ULP_CLIENT];

    c->sided = true;
    if (!swap)
        return;
    c->flow[ULP_CLIENT] = c->flow[ULP_SERVER];
    c->flow[ULP_SERVER] = client;
    for (unsigned i = 0; i < ULP_SIDES; i++)
        if (c->flow[i] != FLOW_NONE && c->ulp->flows[c->flow[i]])
            c->ulp->flows[c->flow[i]]->side = (uint8_t)i;
}

static struct ulp_conn *conn_new(struct ulp *u, uint32_t flow, const struct ulp_proto *proto, enum ulp_how how)
{
    struct ulp_conn *c = ulp_conn_make(u, proto, how);

    if (c)
        c->conn = conn_flow_at(observer_conns(u->observer), flow)->conn;
    return c;
}

void ulp_conn_free(struct ulp_conn *c, enum ulp_end why)
{
    struct ulp *u = c->ulp;

    for (unsigned i = 0; i < ULP_SIDES; i++) {
        struct ulp_flow *f = c->flow[i] == FLOW_NONE ? NULL : u->flows[c->flow[i]];
        if (!f)
            continue;
        messages_end(f);
        transfers_end(f);
        u->flows[c->flow[i]] = NULL;
        flow_free(u, f);
    }
    early_end(c);
    if (c->proto->over && !c->wrong)
        c->proto->over(c);
    commands_flush(c, why);
    joined_free(c);
    *(c->before ? &c->before->next : &u->conns) = c->next;
    if (c->next)
        c->next->before = c->before;
    memory_give(c, c->n_slots * sizeof(struct command *));
    free(c->slots);
    room_free(u, c->state, c->proto->size);
    room_free(u, c, sizeof *c);
}

struct ulp_conn *ulp_next_conn(const struct ulp_conn *c, const struct ulp_conn *last)
{
    struct ulp_conn *next = last ? last->next : c->ulp->conns;

    while (next && (next == c || next->proto != c->proto))
        next = next->next;
    return next;
}

void ulp_flow_over(struct ulp *u, uint32_t flow, enum ulp_end why)
{
    if (u->flows[flow])
        ulp_conn_free(u->flows[flow]->conn, why);
    held_forget(u, flow);
    u->guesses[flow] = (struct guess){0};
}

void ulp_drop(struct ulp_conn *c)
{
    struct ulp *u = c->ulp;

    for (unsigned i = 0; i < ULP_SIDES; i++)
        if (c->flow[i] != FLOW_NONE) {
            u->guesses[c->flow[i]].unnamed = u->guesses[c->flow[i]].refuted = true;
            u->guesses[c->flow[i]].tries = c->how == ULP_BY_BYTES ? GUESS_TRIES : 0;
            conn_flow_at(observer_conns(u->observer), c->flow[i])->upper = NULL;
        }
    ulp_conn_free(c, ULP_LEFT);
}

void ulp_drop_all(struct ulp *u)
{
    ulp_streams_drop(u);
    while (u->conns)
        ulp_conn_free(u->conns, ULP_OPEN);
}

/* --- Zeroes ----------------------------------------------------------------------------------- */

#define ZEROED_LEAST 16 /* bytes; a shorter message says little */

bool ulp_zeroes(const uint8_t *b, uint32_t len)
{
    return len >= ZEROED_LEAST && !b[0] && memcmp(b, b + 1, len - 1) == 0;
}

bool ulp_is_zeroed(struct ulp *u, const struct ulp_message *m)
{
    if (m->side != ULP_CLIENT || !ulp_zeroes(m->body.b, m->body.len))
        return false;
    u->zeroed = m->frame;
    u->sums.zeroed += !m->again;
    return true;
}

/* --- Second thoughts -------------------------------------------------------------------------- */

#define WRONG 3 /* messages that a protocol does not take, or that do not look like it, before it is given up */

void ulp_judge(struct ulp_conn *c, bool taken)
{
    c->good += taken;
    c->refused += !taken;
    c->wrong = c->how != ULP_BY_USER && c->refused >= WRONG && c->refused > c->good;
}

bool ulp_confirm(struct ulp_conn *c, enum ulp_side side, const uint8_t *b, uint32_t len, bool whole)
{
    if (ulp_zeroes(b, len)) /* nothing is known of it */
        return true;
    c->sure = c->sure || c->proto->looks(b, len, whole) != LOOKS_OTHER;
    c->doubts += !c->sure && side == ULP_CLIENT && c->doubts < WRONG;
    return c->sure;
}

bool ulp_doubted(const struct ulp_conn *c)
{
    return !c->sure && c->doubts == WRONG;
}

/* A server's may be too short to be told; private data tell more than a port. */
bool ulp_trusted(const struct ulp_conn *c, enum ulp_side side)
{
    return side == ULP_SERVER || c->how == ULP_BY_PRIVATE || c->how == ULP_BY_MPA;
}

/* --- Learning --------------------------------------------------------------------------------- */

bool ulp_user_means(const struct ulp_user *s, const struct conn_addr *listener, uint32_t port)
{
    return s->number == port && port && (s->any || conn_addr_alike(&s->addr, listener));
}

/* `k`: what is known of the setup; NULL: nothing. */
static const struct ulp_proto *by_user(const struct ulp *u, const struct flow *f, const struct conn_known *k)
{
    for (unsigned i = 0; u->opts.users && i < u->opts.users->n; i++) {
        const struct ulp_user *s = &u->opts.users->user[i];
        bool to = !s->any && s->number == f->dqpn && conn_addr_alike(&s->addr, &f->dst),
             from = !s->any && f->have_sqpn && s->number == f->sqpn && conn_addr_alike(&s->addr, &f->src);
        if (to || from || (k && ulp_user_means(s, &k->addr[1], k->port)))
            return s->proto;
    }
    return NULL;
}

/* Whether the packet may tell a protocol by its bytes: of a SEND, or a WRITE with immediate data of one packet. */
static bool may_tell(const struct pkt *p)
{
    return p->op->flags & OPF_SEND || (p->op->flags & OPF_ONLY && p->have & H_RETH && p->have & H_IMMDT);
}

static enum ulp_looks looks_of(const struct ulp_proto *proto, const struct pkt *p)
{
    const uint8_t *b = p->data + p->payload_off;

    if (p->op->flags & OPF_SEND && p->payload_cap < p->payload_len && proto->looks_cut)
        return proto->looks_cut(b, p->payload_cap, p->payload_len, p->op->flags & OPF_ONLY);
    if (p->op->flags & OPF_SEND)
        return proto->looks ? proto->looks(b, p->payload_cap, p->op->flags & OPF_ONLY) : LOOKS_OTHER;
    if (!proto->looks_write)
        return LOOKS_OTHER;
    return proto->looks_write(b, p->payload_cap, p->payload_len, p->reth.va, p->immdt.data);
}

/* The protocol of which the message is a response to what the peer sent last; NULL: none. */
static const struct ulp_proto *by_response(const struct ulp *u, uint32_t peer, const struct pkt *p)
{
    const struct guess *g = peer == FLOW_NONE ? NULL : &u->guesses[peer];
    const struct ulp_proto *proto = g ? ulp_responds_to(g->last.proto, g->last.looks) : NULL;
    struct ulp_body asked;

    if (!proto || !(p->op->flags & OPF_SEND && p->op->flags & OPF_ONLY) || p->payload_cap < p->payload_len ||
        !held_send(u, peer, &asked))
        return NULL;
    return proto->responds(p->data + p->payload_off, p->payload_cap, &asked) ? proto : NULL;
}

/* Whether two messages, of the same end or of both, may be of one connection of protocol number `proto`. */
static bool fits(struct ulp_looked was, unsigned proto, enum ulp_looks looks, bool same)
{
    enum ulp_looks looked = (enum ulp_looks)was.looks;

    if (was.proto != proto)
        return false;
    return !ulp_looks_sided(looked) || !ulp_looks_sided(looks) ||
           (ulp_looks_side(looked) == ulp_looks_side(looks)) == same;
}

bool ulp_agrees(struct ulp_looked own, struct ulp_looked other, unsigned proto, enum ulp_looks looks)
{
    return fits(own, proto, looks, true) || fits(other, proto, looks, false);
}

/* Who sent a message. */
struct sender {
    enum ulp_side side;
    bool told; /* by the message, those before it, or CM; else it is who sent first */
};

/* Which side sent a message, if it tells and is one of protocol number `proto`. */
static bool tells_side(struct ulp_looked m, unsigned proto, enum ulp_side *side)
{
    *side = ulp_looks_side((enum ulp_looks)m.looks);
    return m.proto == proto && ulp_looks_sided((enum ulp_looks)m.looks);
}

/* A message of the flow looks like `m`, one of the other end before it like `other`. */
static struct sender sender_of(const struct ulp *u, uint32_t flow, struct ulp_looked other, struct ulp_looked m)
{
    const struct ulp_looked own = u->guesses[flow].last;
    const struct conn_known *k;
    enum ulp_side side;
    unsigned end;

    if (tells_side(m, m.proto, &side) || tells_side(own, m.proto, &side))
        return (struct sender){side, true};
    if (tells_side(other, m.proto, &side))
        return (struct sender){ulp_other_side(side), true};
    k = conn_known_to(observer_conns(u->observer), flow, &end);
    if (k && k->how == PAIR_CM)
        return (struct sender){end == 1 ? ULP_CLIENT : ULP_SERVER, true};
    return (struct sender){other.proto == m.proto && own.proto != m.proto ? ULP_SERVER : ULP_CLIENT, false};
}

/* What the first messages of a connection look like: two in a row of one end, or of both ends, must agree, unless one
 * tells. A message without bytes says nothing. */
static const struct ulp_proto *by_bytes(struct ulp *u, uint32_t flow, const struct pkt *p, struct sender *by)
{
    struct guess *g = &u->guesses[flow];
    uint32_t peer = conn_flow_at(observer_conns(u->observer), flow)->peer;
    const struct ulp_looked other = peer == FLOW_NONE ? (struct ulp_looked){0, 0} : u->guesses[peer].last;
    enum ulp_looks looks = LOOKS_OTHER;
    unsigned i = 0;

    if (g->tries >= GUESS_TRIES || !may_tell(p) || !(p->op->flags & OPF_START))
        return NULL;
    g->tries++;
    for (; ulp_protos[i]; i++)
        if ((looks = looks_of(ulp_protos[i], p)))
            break;
    if (looks == LOOKS_OTHER) {
        g->last.proto = p->payload_len ? 0 : g->last.proto;
        *by = (struct sender){ULP_SERVER, true};
        return by_response(u, peer, p);
    }
    if (ulp_looks_first(looks) || ulp_agrees(g->last, other, i + 1, looks)) {
        *by = sender_of(u, flow, other, (struct ulp_looked){(uint8_t)(i + 1), (uint8_t)looks});
        return ulp_protos[i];
    }
    g->last = (struct ulp_looked){(uint8_t)(i + 1), (uint8_t)looks};
    return NULL;
}

/* The side of a sender that only --ulp names: what its message looks like. False: that is not known yet. */
static bool side_of(const struct ulp_proto *proto, const struct pkt *p, struct sender *by)
{
    enum ulp_looks looks = LOOKS_OTHER;

    if (p->op->flags & OPF_SEND && p->op->flags & OPF_START)
        looks = looks_of(proto, p);
    *by = (struct sender){ulp_looks_side(looks), ulp_looks_sided(looks)};
    return looks != LOOKS_OTHER;
}

/* What the user says, or the setup of the connection; *stated: the setup says something. */
static const struct ulp_proto *named_for(const struct ulp *u, uint32_t flow, const struct conn_known *k,
                                         enum ulp_how *how, bool *stated)
{
    const struct flow *f = conn_flow_at(observer_conns(u->observer), flow);
    const struct ulp_proto *proto = by_user(u, f, k);

    *how = ULP_BY_USER;
    *stated = !proto && k && k->upper && !f->unlearnt;
    if (!*stated)
        return proto;
    *how = k->how == PAIR_EXCHANGE ? ULP_BY_CLC : k->upper_by_private ? ULP_BY_PRIVATE : ULP_BY_SERVICE;
    return ulp_named(k->upper, strlen(k->upper));
}

const struct ulp_proto *ulp_carried(const struct ulp *u, uint32_t flow, enum ulp_how *how)
{
    const struct ulp_conn *c = u->flows[flow] ? u->flows[flow]->conn : NULL;
    unsigned end;
    bool stated;

    if (!c)
        return named_for(u, flow, conn_known_to(observer_conns(u->observer), flow, &end), how, &stated);
    *how = (enum ulp_how)c->how;
    return c->proto;
}

static const struct ulp_proto *by_setup(struct ulp *u, uint32_t flow, const struct pkt *p, const struct conn_known *k,
                                        struct sender *by, enum ulp_how *how)
{
    bool stated;
    const struct ulp_proto *proto = named_for(u, flow, k, how, &stated);

    u->guesses[flow].unnamed = true;
    if (stated && !proto && !k->upper_vague)
        u->guesses[flow].tries = GUESS_TRIES;
    if (proto && (!k || (k->how != PAIR_CM && *how != ULP_BY_CLC)) && !side_of(proto, p, by)) {
        u->guesses[flow].unnamed = false;
        return NULL;
    }
    return proto;
}

/* A message whose protocol is not known: what would tell it may have been cut. */
static void count_cut(struct ulp *u, uint32_t flow, const struct pkt *p)
{
    bool cut = p->payload_cap < p->payload_len && u->guesses[flow].cut < UINT8_MAX;

    u->guesses[flow].cut += cut;
    u->sums.cut_unknown += cut;
}

/* The flow begins to carry a protocol, if it is known now. */
static struct ulp_flow *recognise(struct ulp *u, uint32_t flow, const struct pkt *p)
{
    const struct ulp_proto *proto = NULL;
    const struct conn_known *k = NULL;
    enum ulp_how how = ULP_NOT;
    struct sender by = {ULP_CLIENT, true};
    struct ulp_conn *c;
    struct ulp_flow *first;
    unsigned end = 0;

    if (!u->guesses[flow].unnamed) {
        k = conn_known_to(observer_conns(u->observer), flow, &end);
        by.side = end == 1 ? ULP_CLIENT : ULP_SERVER;
        proto = by_setup(u, flow, p, k, &by, &how);
    }
    if (!proto && u->guesses[flow].unnamed && (proto = by_bytes(u, flow, p, &by)))
        how = ULP_BY_BYTES;
    if (!proto && may_tell(p) && p->op->flags & OPF_START)
        count_cut(u, flow, p);
    if (!proto || !(c = conn_new(u, flow, proto, how)))
        return NULL;
    c->sided = by.told;
    first = attach(c, flow, by.side);
    if (!first)
        ulp_conn_free(c, ULP_OPEN);
    if (!first)
        return NULL;
    if (proto->open)
        proto->open(c, k ? k->greeting : NULL, k ? k->greeting_len : 0);
    if (proto->accepted && k && k->answer_len)
        proto->accepted(c, k->answer, k->answer_len);
    return first;
}

/* A packet of a flow whose protocol is not sure. False: it is not one of that protocol's messages, as it looks. */
static bool believe(struct ulp *u, uint32_t flow, const struct pkt *p)
{
    struct ulp_conn *c = u->flows[flow]->conn;
    enum ulp_side side = (enum ulp_side)u->flows[flow]->side;
    const struct ulp_proto *proto;
    struct sender other;

    if (!(p->op->flags & OPF_SEND && p->op->flags & OPF_START) || p->payload_cap < p->payload_len)
        return true;
    if (ulp_confirm(c, side, p->data + p->payload_off, p->payload_cap, p->op->flags & OPF_ONLY))
        return true;
    proto = by_bytes(u, flow, p, &other);
    if (!proto && !ulp_doubted(c))
        return !u->guesses[flow].last.proto && ulp_trusted(c, side);
    ulp_drop(c);
    return false;
}

static struct ulp_flow *flow_of(struct ulp *u, uint32_t flow, const struct pkt *p)
{
    uint32_t peer;

    if (!u->conns && u->guesses[flow].unnamed && !may_tell(p))
        return NULL; /* nothing carries a known protocol, so the peer does not */
    peer = conn_flow_at(observer_conns(u->observer), flow)->peer;
    if (peer != FLOW_NONE && u->flows[peer])
        return attach(u->flows[peer]->conn, flow, ulp_other_side((enum ulp_side)u->flows[peer]->side));
    if (peer != FLOW_NONE && u->guesses[peer].refuted)
        u->guesses[flow].unnamed = true;
    if (u->guesses[flow].tries >= GUESS_TRIES || (u->guesses[flow].unnamed && !may_tell(p)))
        return NULL;
    return recognise(u, flow, p);
}

struct ulp_flow *ulp_flow_of(struct ulp *u, uint32_t flow, const struct pkt *p)
{
    struct ulp_flow *f = u->flows[flow];

    if (!f)
        f = flow_of(u, flow, p);
    if (LIKELY(!f || f->conn->sure) || believe(u, flow, p))
        return f;
    return u->flows[flow] ? NULL : flow_of(u, flow, p);
}
