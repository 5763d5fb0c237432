/* layer 3 (gen): the simulated connections by number. */
#include "gen/conns.h"
#include "dissect/cm.h"
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

unsigned conns_add(struct conns *t, const struct conn_id *c)
{
    if (t->n == t->cap) {
        unsigned cap = t->cap ? t->cap * 2 : 16;
        struct conn_id *m = realloc(t->c, cap * sizeof *m);
        if (!m)
            return 0;
        t->c = m;
        t->cap = cap;
    }
    t->c[t->n] = *c;
    return ++t->n;
}

void conns_free(struct conns *t)
{
    free(t->c);
    *t = (struct conns){0};
}

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
        unsigned type = p->aeth.syndrome >> 5 & 3;
        return type == AETH_RNR ? PC_RNR : type == AETH_NAK ? PC_NAK : PC_ACK;
    }
    return PC_OTHER;
}

/* Number of the connection for which `match` holds, beginning with the last one found. */
static unsigned conn_find(struct conns *t, bool (*match)(const struct conn_id *, unsigned, uint32_t), unsigned host, uint32_t v)
{
    if (t->last < t->n && match(&t->c[t->last], host, v))
        return t->last + 1;
    for (unsigned i = 0; i < t->n; i++)
        if (match(&t->c[i], host, v)) {
            t->last = i;
            return i + 1;
        }
    return 0;
}

static bool has_qpn(const struct conn_id *c, unsigned host, uint32_t qpn)
{
    return c->qpn[host] == qpn;
}

static bool has_cm_id(const struct conn_id *c, unsigned host, uint32_t id)
{
    return id && c->cm_id[host] == id;
}

/* Connection of a CM message: its first word is the sender's id, the second the receiver's. */
static unsigned conn_of_cm(struct conns *t, unsigned from, const struct pkt *p)
{
    const uint8_t *m = p->data + p->payload_off + MAD_HDR_LEN;
    unsigned n;

    if (p->payload_cap < MAD_HDR_LEN + 8)
        return 0;
    n = conn_find(t, has_cm_id, from, load_be32(m));
    return n ? n : conn_find(t, has_cm_id, from ^ 1, load_be32(m + 4));
}

void conns_view(struct conns *t, unsigned from, const struct pkt *p, struct conns_view *v)
{
    *v = (struct conns_view){.from = (uint8_t)from, .class = PC_OTHER};
    if (!(p->have & H_BTH) || !p->op->name)
        return;
    v->class = class_of(p);
    v->request = (p->op->flags & OPF_REQUEST) != 0;
    v->conn = v->class == PC_CM ? conn_of_cm(t, from, p) : conn_find(t, has_qpn, from ^ 1, p->bth.dqpn);
    if (v->conn && v->class != PC_CM && v->class != PC_CNP) {
        const struct conn_id *c = &t->c[v->conn - 1];
        v->psn = psn_add(p->bth.psn, 0u - c->psn[v->request ? from : from ^ 1]);
        v->has_psn = true;
    }
}
