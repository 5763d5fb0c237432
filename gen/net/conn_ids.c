/* layer 3 (net): connections by number. */
#include "gen/net/conn_ids.h"
#include "dissect/mad/cm.h"
#include "dissect/pkt.h"
#include "psn.h"

#include <stdlib.h>

static const struct {
    const char *name;
    uint16_t mask;
} classes[] = {
    {"send", PC_SEND}, {"write", PC_WRITE}, {"read", PC_READ}, {"atomic", PC_ATOMIC}, {"ack", PC_ACK}, {"nak", PC_NAK},
    {"rnr", PC_RNR},   {"resp", PC_RESP},   {"cm", PC_CM},     {"cnp", PC_CNP},       {"any", PC_ANY},
};
const char pkt_class_names[] = "send, write, read, atomic, ack, nak, rnr, resp, cm, cnp or any";

unsigned pkt_class_find(const char *name, size_t len)
{
    for (size_t i = 0; i < ARRAY_LEN(classes); i++)
        if (strlen(classes[i].name) == len && memcmp(classes[i].name, name, len) == 0)
            return classes[i].mask;
    return 0;
}

/* --- The index: chains of places, four for each connection: its two queue pairs and its two communication ids.  */

enum { PLACE_QPN = 0, PLACE_CM = 2 }; /* plus the side */

static uint32_t *value_at(struct conn_id *c, unsigned place)
{
    return place < PLACE_CM ? &c->qpn[place] : &c->cm_id[place - PLACE_CM];
}

static unsigned chain_of(const struct conns *t, unsigned kind, unsigned host, uint32_t v, const struct conn_addr *addr)
{
    uint64_t h = (uint64_t)v << 2 | (kind + host);

    if (t->by_addr)
        h ^= load_le64(addr->b + 8) * UINT64_C(0xc2b2ae3d27d4eb4f);
    return (unsigned)((h * HASH_MULTIPLIER) >> 40) & (t->n_heads - 1);
}

/* The chain of a place of a connection. */
static uint32_t *place_chain(struct conns *t, unsigned i, unsigned place)
{
    struct conn_id *c = &t->c[i];
    unsigned side = place & 1;

    return &t->heads[chain_of(t, place & PLACE_CM, c->host ^ side, *value_at(c, place), &c->addr[side])];
}

static bool place_used(const struct conn_id *c, unsigned place)
{
    return place < PLACE_CM ? !(c->no_qpn >> place & 1) : c->cm_id[place - PLACE_CM] != 0;
}

static void place_link(struct conns *t, unsigned i, unsigned place)
{
    uint32_t *head;

    if (!place_used(&t->c[i], place))
        return;
    head = place_chain(t, i, place);
    t->next[i][place] = *head;
    *head = i * 4 + place + 1;
}

static void place_unlink(struct conns *t, unsigned i, unsigned place)
{
    uint32_t *at;

    if (!place_used(&t->c[i], place))
        return;
    for (at = place_chain(t, i, place); *at != i * 4 + place + 1; at = &t->next[(*at - 1) / 4][(*at - 1) & 3])
        ;
    *at = t->next[i][place];
}

static bool grow(struct conns *t)
{
    unsigned cap = t->cap ? t->cap * 2 : 16;
    struct conn_id *c = realloc(t->c, cap * sizeof *c);
    uint32_t(*next)[4] = realloc(t->next, cap * sizeof *next), *heads = calloc(cap * 4, sizeof *heads);

    if (c)
        t->c = c;
    if (next)
        t->next = next;
    if (!c || !next || !heads) {
        free(heads);
        return false;
    }
    free(t->heads);
    t->heads = heads;
    t->n_heads = cap * 4;
    t->cap = cap;
    for (unsigned i = 0; i < t->n; i++)
        for (unsigned place = 0; place < 4; place++)
            place_link(t, i, place);
    return true;
}

unsigned conns_add(struct conns *t, const struct conn_id *c)
{
    if (t->n == t->cap && !grow(t))
        return 0;
    t->c[t->n++] = *c;
    for (unsigned place = 0; place < 4; place++)
        place_link(t, t->n - 1, place);
    return t->n;
}

void conns_free(struct conns *t)
{
    free(t->c);
    free(t->heads);
    free(t->next);
    *t = (struct conns){.by_addr = t->by_addr};
}

void conns_set_qpn(struct conns *t, unsigned number, unsigned side, uint32_t qpn)
{
    struct conn_id *c = &t->c[number - 1];

    place_unlink(t, number - 1, PLACE_QPN + side);
    c->qpn[side] = qpn;
    c->no_qpn &= (uint8_t) ~(1u << side);
    place_link(t, number - 1, PLACE_QPN + side);
}

void conns_unset_qpn(struct conns *t, unsigned number, unsigned side)
{
    place_unlink(t, number - 1, PLACE_QPN + side);
    t->c[number - 1].no_qpn |= (uint8_t)(1u << side);
}

void conns_set_cm(struct conns *t, unsigned number, unsigned side, uint32_t id)
{
    place_unlink(t, number - 1, PLACE_CM + side);
    t->c[number - 1].cm_id[side] = id;
    place_link(t, number - 1, PLACE_CM + side);
}

/* The newest connection whose side at `host` has number `v` (QPN or communication id, by `kind`). UD: the QPN of the
 * other side must be `source`, or unknown. */
static unsigned find(const struct conns *t, unsigned kind, unsigned host, uint32_t v, const struct conn_addr *own,
                     const struct conn_addr *peer, const uint32_t *source)
{
    uint32_t at = t->n_heads ? t->heads[chain_of(t, kind, host, v, own)] : 0;

    for (; at; at = t->next[(at - 1) / 4][(at - 1) & 3]) {
        struct conn_id *c = &t->c[(at - 1) / 4];
        unsigned place = (at - 1) & 3, side = place & 1;
        if ((place & PLACE_CM) != kind || (c->host ^ side) != host || *value_at(c, place) != v)
            continue;
        if (t->by_addr && (!conn_addr_eq(&c->addr[side], own) || (peer && !conn_addr_eq(&c->addr[side ^ 1], peer))))
            continue;
        if (source && t->by_addr && c->ud && !(c->no_qpn >> (side ^ 1) & 1) && c->qpn[side ^ 1] != *source)
            continue;
        return (at - 1) / 4 + 1;
    }
    return 0;
}

unsigned conns_find_qpn(const struct conns *t, unsigned host, uint32_t qpn, const struct conn_addr *own,
                        const struct conn_addr *peer)
{
    return find(t, PLACE_QPN, host, qpn, own, peer, NULL);
}

unsigned conns_find_cm(const struct conns *t, unsigned host, uint32_t id, const struct conn_addr *own,
                       const struct conn_addr *peer)
{
    return id ? find(t, PLACE_CM, host, id, own, peer, NULL) : 0;
}

/* --- Packets ---------------------------------------------------------------------------------- */

static uint16_t class_of(const struct pkt *p)
{
    uint32_t f = p->op->flags;

    if (p->have & H_MAD)
        return PC_CM;
    if (f & OPF_SEND)
        return PC_SEND;
    if (f & OPF_WRITE)
        return PC_WRITE;
    if (f & OPF_READ_REQ)
        return PC_READ;
    if (f & OPF_ATOMIC_REQ)
        return PC_ATOMIC;
    if (f & (OPF_READ_RESP | OPF_ATOMIC_ACK))
        return PC_RESP;
    if (f & OPF_CNP)
        return PC_CNP;
    if (f & OPF_ACK) {
        unsigned type = aeth_type(p->aeth.syndrome);
        return type == AETH_RNR ? PC_RNR : type == AETH_NAK ? PC_NAK : PC_ACK;
    }
    return PC_OTHER;
}

/* The connection of a CM message. Its first word is the communication id of the sender, its second word that of the
 * receiver; the first word of a SIDR_REP is the request id, which its receiver chose. */
static unsigned conn_of_cm(struct conns *t, unsigned from, const struct pkt *p, const struct conn_addr *src,
                           const struct conn_addr *dst)
{
    const uint8_t *m = p->data + p->payload_off + MAD_HDR_LEN;
    unsigned n;

    if (p->payload_cap < MAD_HDR_LEN + 8)
        return 0;
    n = conns_find_cm(t, from, load_be32(m), src, dst);
    if (!n)
        n = conns_find_cm(t, from ^ 1, load_be32(m + 4), dst, src);
    if (!n && load_be16(p->data + p->payload_off + 16) == CM_SIDR_REP)
        n = conns_find_cm(t, from ^ 1, load_be32(m), dst, src);
    return n;
}

void conns_view(struct conns *t, unsigned from, const struct pkt *p, struct conns_view *v)
{
    struct conn_addr src, dst;

    *v = (struct conns_view){.from = (uint8_t)from, .class = PC_OTHER};
    if (!(p->have & H_BTH) || !p->op->name)
        return;
    v->rdma = true;
    v->class = class_of(p);
    v->request = (p->op->flags & OPF_REQUEST) != 0;
    if (t->by_addr)
        conn_addr_of(p, &src, &dst);
    v->conn = v->class == PC_CM
                  ? conn_of_cm(t, from, p, &src, &dst)
                  : find(t, PLACE_QPN, from ^ 1, p->bth.dqpn, &dst, &src, p->have & H_DETH ? &p->deth.srcqp : NULL);
    if (!v->conn)
        return;
    const struct conn_id *c = &t->c[v->conn - 1];
    v->from = (uint8_t)(from ^ c->host);
    if (v->class != PC_CM && v->class != PC_CNP) {
        unsigned first = v->request ? v->from : v->from ^ 1u;
        v->psn = psn_add(p->bth.psn, 0u - c->psn[first]);
        v->has_psn = !(c->no_psn >> first & 1);
    }
}
