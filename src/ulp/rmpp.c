/* layer 2b (ulp): records of subnet administration that begin in one segment of an RMPP transfer and end in a later
 * one. */
#include "dissect/mad/rmpp.h"

#include "dissect/ib/icrc.h"
#include "dissect/mad/sa.h"
#include "dissect/mad/tables.h"
#include "src/ulp/ulp_impl.h"

#include <stdlib.h>

#define TRANSFERS_MAX 16  /* transfers under way that are remembered */
#define PARTS_MAX     8   /* records of a transfer that lack segments */
#define RECORD_MAX    512 /* bytes of a record that are put together; no attribute has more */
#define WINDOW        64  /* latest segments of which it is remembered whether they came: as many as may be under way */
#define CLASS_SA      0x03

/* What there is of a record that spans segments. */
struct part {
    uint64_t record; /* its number, from 1; 0: unused */
    uint32_t n;      /* bytes that are there */
    uint8_t came;    /* bit n: they are those of segment n, from 0, among those that the record spans */
    uint8_t bytes[RECORD_MAX];
};
struct rmpp_transfer {
    bool used;
    struct conn_addr src, dst;
    uint64_t tid;
    uint64_t end; /* bytes of all records, once the last segment came; 0: not known */
    uint32_t tap, stride;
    uint32_t first;  /* checksum of the first segment; 0: it did not come */
    uint32_t latest; /* highest number of a segment */
    uint32_t at;     /* part[at % PARTS_MAX] is the oldest */
    uint64_t came;   /* bit n: segment `latest` - n came */
    uint16_t attr;
    struct part part[PARTS_MAX];
};
struct rmpp_state {
    struct rmpp_transfer transfer[TRANSFERS_MAX];
    uint32_t at; /* transfer[at % TRANSFERS_MAX] is the oldest */
};

/* A segment with records, which are `stride` bytes apart. */
struct rmpp_segment {
    uint32_t number, stride, len;
    uint64_t from; /* place of its first byte in the table */
    bool last;
    const uint8_t *b;
};

bool ulp_rmpp_init(struct ulp *u)
{
    u->rmpp = calloc(1, sizeof *u->rmpp);
    return u->rmpp != NULL;
}

/* The transfer that this datagram belongs to: any of its segments may be the first that is captured. */
static struct rmpp_transfer *transfer_of(struct rmpp_state *s, const struct pkt *p, const struct mad *m,
                                         uint32_t stride)
{
    uint32_t tap = conn_tap_of(p->frame);
    struct conn_addr src, dst;
    struct rmpp_transfer *t;

    conn_addr_of(p, &src, &dst);
    for (unsigned i = 0; i < TRANSFERS_MAX; i++) {
        t = &s->transfer[i];
        bool same_hosts = conn_addr_eq(&t->src, &src) && conn_addr_eq(&t->dst, &dst);
        if (t->used && t->tid == m->tid && t->attr == m->attr_id && t->tap == tap && t->stride == stride && same_hosts)
            return t;
    }
    t = &s->transfer[s->at++ % TRANSFERS_MAX];
    *t = (struct rmpp_transfer){
        .used = true, .src = src, .dst = dst, .tid = m->tid, .tap = tap, .stride = stride, .attr = m->attr_id};
    return t;
}

/* The first segment came again: the table is sent once more, to the same request, or it is another table. */
static void begin_again(struct rmpp_transfer *t, uint32_t sum)
{
    if (t->first != sum) {
        memset(t->part, 0, sizeof t->part);
        t->end = 0;
    }
    t->latest = 0;
    t->came = 0;
}

/* Whether the segment is new. */
static bool is_new(struct rmpp_transfer *t, const struct rmpp_segment *g)
{
    uint32_t sum = g->number == 1 ? crc32_of(g->b, g->len) | 1 : 0, ahead, behind;
    bool came;

    if (sum && t->first)
        begin_again(t, sum);
    t->first = sum ? sum : t->first;
    if (g->number > t->latest) {
        ahead = g->number - t->latest;
        t->came = (ahead < WINDOW ? t->came << ahead : 0) | 1;
        t->latest = g->number;
        return true;
    }
    behind = t->latest - g->number;
    came = behind >= WINDOW || t->came >> behind & 1;
    t->came |= behind < WINDOW ? UINT64_C(1) << behind : 0;
    return !came;
}

/* The record is whole: its layers, as far as it has bytes. */
static void show_record(struct ulp *u, struct pkt *p, const struct rmpp_transfer *t, const struct part *r)
{
    const struct mad_attr *a = mad_attr_find(sa_attrs, t->attr);
    struct ulp_body body = shown_put(u, p, r->bytes, r->n);
    uint32_t at = 0;

    for (unsigned i = 0; a && i < MAD_PARTS && a->parts[i] && at < body.len; i++) {
        ulp_layer(p, a->parts[i], &body, at, a->parts[i]->len);
        at += a->parts[i]->len;
    }
}

static struct part *part_of(struct rmpp_transfer *t, uint64_t record)
{
    struct part *r = NULL;

    for (unsigned i = 0; i < PARTS_MAX; i++) {
        if (t->part[i].record == record)
            return &t->part[i];
        r = t->part[i].record ? r : &t->part[i];
    }
    r = r ? r : &t->part[t->at++ % PARTS_MAX];
    r->record = record;
    r->n = r->came = 0;
    return r;
}

/* What the segment has of a record: with it the record may be whole. The last one may end before the next would begin.
 */
static void take_part(struct ulp *u, struct pkt *p, struct rmpp_transfer *t, const struct rmpp_segment *g,
                      uint64_t record)
{
    uint64_t begin = (record - 1) * g->stride, end = begin + g->stride, from = begin > g->from ? begin : g->from,
             to = end < g->from + g->len ? end : g->from + g->len;
    struct part *r = part_of(t, record);
    uint8_t bit = (uint8_t)(1u << (g->number - 1 - begin / SA_DATA_LEN));

    if (t->end > begin && t->end < end)
        end = t->end;
    memcpy(r->bytes + (from - begin), g->b + (from - g->from), to - from);
    r->n += r->came & bit ? 0 : (uint32_t)(to - from);
    r->came |= bit;
    if (r->n < end - begin)
        return;
    show_record(u, p, t, r);
    r->record = 0;
}

/* The records that begin before a segment or end behind it. */
static void take_segment(struct ulp *u, struct pkt *p, struct rmpp_transfer *t, const struct rmpp_segment *g)
{
    uint64_t to = g->from + g->len, first = g->from / g->stride + 1, last = to / g->stride + 1;
    bool begins_before = g->from % g->stride, ends_behind = to % g->stride && !g->last;

    if (!g->len || !is_new(t, g))
        return;
    t->end = g->last ? to : t->end;
    if (begins_before)
        take_part(u, p, t, g, first);
    if (ends_behind && (!begins_before || last != first))
        take_part(u, p, t, g, last);
}

void ulp_note_rmpp(struct ulp *u, struct pkt *p)
{
    const uint8_t *b = p->data + p->payload_off;
    struct rmpp_segment g;
    struct sahdr h;
    struct rmpp r;
    struct mad m;

    if (p->icrc == CRC_BAD || p->payload_cap < MAD_LEN || b[1] != CLASS_SA)
        return;
    mad_get(&m, b);
    rmpp_get(&r, b + SA_RMPP_OFF);
    sahdr_get(&h, b + SA_HDR_OFF);
    g = (struct rmpp_segment){.number = r.data1,
                              .stride = h.attributeoffset * 8u,
                              .len = SA_DATA_LEN,
                              .from = (uint64_t)(r.data1 - 1) * SA_DATA_LEN,
                              .last = r.rmppflags & RMPP_LAST,
                              .b = b + SA_DATA_OFF};
    if (!(r.rmppflags & RMPP_ACTIVE) || r.rmpptype != RMPP_DATA || !g.number || !g.stride || g.stride > RECORD_MAX)
        return;
    if (g.last)
        g.len = r.data2 - SA_HDR_LEN;
    if (g.len <= SA_DATA_LEN)
        take_segment(u, p, transfer_of(u->rmpp, p, &m, g.stride), &g);
}
