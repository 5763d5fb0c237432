/* layer 2b (ulp): records of subnet administration that begin in one segment of an RMPP transfer and end in a later
 * one. */
#include "dissect/mad/rmpp.h"

#include "dissect/mad/sa.h"
#include "dissect/mad/tables.h"
#include "src/ulp/ulp_impl.h"

#include <stdlib.h>

#define TRANSFERS_MAX 16  /* transfers under way that are remembered */
#define RECORD_MAX    512 /* bytes of a record that are put together; no attribute has more */
#define CLASS_SA      0x03

/* A transfer, and what there is of the record that its latest segment ends in. */
struct rmpp_transfer {
    struct conn_addr src, dst;
    uint64_t tid;
    uint32_t tap;
    uint32_t next; /* segment that is to come; 0: unused */
    uint32_t n;    /* bytes in `part` */
    uint16_t attr;
    uint8_t part[RECORD_MAX];
};
struct rmpp_state {
    struct rmpp_transfer transfer[TRANSFERS_MAX];
    uint32_t at; /* transfer[at % TRANSFERS_MAX] is the oldest */
};

bool ulp_rmpp_init(struct ulp *u)
{
    u->rmpp = calloc(1, sizeof *u->rmpp);
    return u->rmpp != NULL;
}

/* The transfer that segment `number` of this datagram belongs to; NULL: its beginning was not seen. */
static struct rmpp_transfer *transfer_of(struct rmpp_state *s, const struct pkt *p, const struct mad *m,
                                         uint32_t number)
{
    uint32_t tap = conn_tap_of(p->frame);
    struct conn_addr src, dst;
    struct rmpp_transfer *t;

    conn_addr_of(p, &src, &dst);
    for (unsigned i = 0; i < TRANSFERS_MAX; i++) {
        t = &s->transfer[i];
        bool same_hosts = conn_addr_eq(&t->src, &src) && conn_addr_eq(&t->dst, &dst);
        if (t->next && t->tid == m->tid && t->attr == m->attr_id && t->tap == tap && same_hosts)
            return t;
    }
    if (number != 1)
        return NULL;
    t = &s->transfer[s->at++ % TRANSFERS_MAX];
    *t = (struct rmpp_transfer){.src = src, .dst = dst, .tid = m->tid, .tap = tap, .attr = m->attr_id, .next = 1};
    return t;
}

/* The record is whole: its layers. */
static void show_record(struct ulp *u, struct pkt *p, const struct rmpp_transfer *t, uint32_t stride)
{
    const struct mad_attr *a = mad_attr_find(sa_attrs, t->attr);
    struct ulp_body body = shown_put(u, p, t->part, stride);
    uint32_t at = 0;

    for (unsigned i = 0; a && i < MAD_PARTS && a->parts[i]; i++) {
        ulp_layer(p, a->parts[i], &body, at, a->parts[i]->len);
        at += a->parts[i]->len;
    }
}

/* Records are `stride` bytes apart; segment `number` has `len` bytes of them at `b`. */
static void take_segment(struct ulp *u, struct pkt *p, struct rmpp_transfer *t, uint32_t number, uint32_t stride,
                         const uint8_t *b, uint32_t len)
{
    uint32_t before = (uint32_t)((uint64_t)(number - 1) * SA_DATA_LEN % stride),
             rest = before ? min_u32(stride - before, len) : 0, tail = (len - rest) % stride;

    if (rest && t->n == before) {
        memcpy(t->part + before, b, rest);
        t->n += rest;
    }
    if (rest && t->n == stride)
        show_record(u, p, t, stride);
    if (rest < len || (rest && before + rest == stride)) {
        memcpy(t->part, b + len - tail, tail);
        t->n = tail;
    }
    t->next = number + 1;
}

void ulp_note_rmpp(struct ulp *u, struct pkt *p)
{
    const uint8_t *b = p->data + p->payload_off;
    struct rmpp_transfer *t;
    uint32_t stride, len;
    struct sahdr h;
    struct rmpp r;
    struct mad m;

    if (p->icrc == CRC_BAD || p->payload_cap < MAD_LEN || b[1] != CLASS_SA)
        return;
    mad_get(&m, b);
    rmpp_get(&r, b + SA_RMPP_OFF);
    sahdr_get(&h, b + SA_HDR_OFF);
    stride = h.attributeoffset * 8u;
    if (!(r.rmppflags & RMPP_ACTIVE) || r.rmpptype != RMPP_DATA || !r.data1 || !stride || stride > RECORD_MAX)
        return;
    t = transfer_of(u->rmpp, p, &m, r.data1);
    if (!t || r.data1 < t->next) /* or it was retransmitted */
        return;
    if (r.data1 > t->next) { /* the segments between were not captured */
        t->next = 0;
        return;
    }
    len = r.rmppflags & RMPP_LAST ? r.data2 - SA_HDR_LEN : SA_DATA_LEN;
    if (len <= SA_DATA_LEN)
        take_segment(u, p, t, r.data1, stride, b + SA_DATA_OFF, len);
    if (r.rmppflags & RMPP_LAST)
        t->next = 0;
}
