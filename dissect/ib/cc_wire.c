/* layer 1 (wire): what congestion control of ours puts on the wire: fair rates, quotas, telemetry. */
#include "dissect/ib/cc_wire.h"

#include "dissect/dissectors.h"

static const struct vname quota_kinds[] = {{CC_QUOTA_ASK, "ask"}, {CC_QUOTA_GRANT, "grant"}};
const struct vdesc cc_quota_kinds = VDESC_NAMES(quota_kinds);
static const struct vname int_kinds[] = {{CC_INT_COLLECT, "collected"}, {CC_INT_RETURN, "returned"}};
const struct vdesc cc_int_kinds = VDESC_NAMES(int_kinds);

HDR_TABLE(cc_fair, CC_FAIR_FIELDS)
HDR_TABLE(cc_quota, CC_QUOTA_FIELDS)
HDR_TABLE(cc_int, CC_INT_FIELDS)
HDR_TABLE(int_hop, INT_HOP_FIELDS)

static void quota_info(struct buf *b, const struct pkt *p, const struct layer *l)
{
    struct cc_quota m;

    if (l->len < CC_QUOTA_LEN)
        return;
    cc_quota_get(&m, p->data + l->off);
    buf_printf(b, "SQ %s QP 0x%06x %llu bytes (format of rdmagen)", m.kind == CC_QUOTA_GRANT ? "grant" : "ask",
               p->bth.dqpn, (unsigned long long)m.bytes);
}

#define CC_HDR(header, word, text, bytes, ...)                                                                         \
    const struct hdr header##_hdr = {.abbrev = word,                                                                   \
                                     .name = text,                                                                     \
                                     .proto = "infiniband",                                                            \
                                     .fields = header##_fields,                                                        \
                                     .nfields = ARRAY_LEN(header##_fields),                                            \
                                     .len = bytes,                                                                     \
                                     __VA_ARGS__};
CC_HDR(cc_fair, "rdma.fair", "Fair rate of a switch (RoCC; format of rdmagen)", CC_FAIR_LEN, )
CC_HDR(cc_quota, "rdma.quota", "Shaped-Quota (format of rdmagen)", CC_QUOTA_LEN, .info = quota_info)
CC_HDR(cc_int, "rdma.int", "Telemetry (HPCC; format of rdmagen)", CC_INT_LEN, )
CC_HDR(int_hop, "rdma.int.hop", "Hop", INT_HOP_LEN, )

bool cc_fair_decode(struct pkt *p, uint32_t off)
{
    uint32_t limit = min_u32(p->end, p->caplen);

    if (off > limit || limit - off < CC_FAIR_LEN || load_be32(p->data + off) != CC_FAIR_MAGIC)
        return false;
    pkt_layer(p, &cc_fair_hdr, off, CC_FAIR_LEN);
    return true;
}

void cc_fair_info(struct buf *b, const uint8_t *q)
{
    struct cc_fair f;

    cc_fair_get(&f, q);
    buf_printf(b, " fair rate %u kbit/s (format of rdmagen)", f.rate);
}

bool cc_quota_of(struct cc_quota *m, const struct pkt *p)
{
    if (p->bth.opcode != CC_QUOTA_OPCODE || p->payload_len != CC_QUOTA_LEN || p->payload_cap < CC_QUOTA_LEN)
        return false;
    cc_quota_get(m, p->data + p->payload_off);
    return m->magic == CC_QUOTA_MAGIC;
}

bool cc_quota_decode(struct pkt *p)
{
    struct cc_quota m;

    if (!cc_quota_of(&m, p))
        return false;
    pkt_layer(p, &cc_quota_hdr, p->payload_off, CC_QUOTA_LEN);
    return true;
}

bool cc_telemetry_get(struct cc_int *t, struct int_hop hop[INT_HOPS_MAX], const uint8_t *q, uint32_t len)
{
    if (len < CC_INT_LEN || load_be32(q) != CC_INT_MAGIC)
        return false;
    cc_int_get(t, q);
    if (t->hops > INT_HOPS_MAX || len < CC_INT_LEN + t->hops * (uint32_t)INT_HOP_LEN)
        return false;
    for (unsigned i = 0; i < t->hops; i++)
        int_hop_get(&hop[i], q + CC_INT_LEN + i * INT_HOP_LEN);
    return true;
}

void cc_int_decode(struct pkt *p)
{
    struct int_hop hop[INT_HOPS_MAX];
    struct cc_int t;

    if (p->end > p->caplen || !cc_telemetry_get(&t, hop, p->data + p->end, p->caplen - p->end))
        return;
    pkt_layer(p, &cc_int_hdr, p->end, CC_INT_LEN);
    for (unsigned i = 0; i < t.hops; i++)
        pkt_layer(p, &int_hop_hdr, p->end + CC_INT_LEN + i * INT_HOP_LEN, INT_HOP_LEN);
}
