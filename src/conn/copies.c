/* layer 2b (conn): what two copies of a request have in common. */
#include "src/conn/copies.h"

#include "dissect/ib/icrc.h"
#include "src/conn/packet.h"

#define PAYLOAD_MOST 4096 /* bytes; the largest path MTU */

bool copy_has_same_headers(const struct pkt *p, const struct sent *s)
{
    return s->opcode == p->bth.opcode && s->len == p->payload_len && s->reth == request_reth(p) &&
           s->args == request_args(p);
}

/* Whether request `p` may read the rest of a READ among whose responses is its PSN. */
static bool is_rest_of_read(struct req_dir *h, const struct pkt *p)
{
    const struct read_req *k = p->op->flags & OPF_READ_REQ ? req_dir_read(h, p->bth.psn, 0) : NULL;
    uint64_t before = k ? (uint64_t)((p->bth.psn - k->psn) & PSN_MASK) * h->pmtu : 0;

    return k && p->have & H_RETH && p->reth.va == k->va + before && p->reth.rkey == k->rkey;
}

bool copy_may_repeat(struct req_dir *h, const struct pkt *p)
{
    const struct sent *s = req_dir_sent(h, p->bth.psn);

    return s ? copy_has_same_headers(p, s) : is_rest_of_read(h, p);
}

/* The ICRC that the latest copy `s` would have with the payload of `p`: header bits that may differ are taken from
 * `s`. 0: not known. */
static uint32_t icrc_with_payload(const struct pkt *p, const struct sent *s)
{
    uint8_t copy[ICRC_IP_MAX + 64 + PAYLOAD_MOST + 256];
    uint32_t n = p->icrc_off - p->ip_off, bth = p->bth_off - p->ip_off, udp = p->udp_off - p->ip_off;

    if (!(p->have & H_UDP) || p->icrc_off <= p->ip_off || n > sizeof copy || p->icrc_off > p->caplen)
        return 0;
    memcpy(copy, p->data + p->ip_off, n);
    if (p->have & H_IP4)
        store_be16(copy + 4, s->ip_id);
    store_be16(copy + udp, s->sport);
    copy[bth + 1] = s->flags;
    copy[bth + 8] = s->ackreq;
    return __builtin_bswap32(icrc_rocev2(copy, copy + udp, n - udp)); /* as icrc_of() has it */
}

bool copy_has_other_payload(const struct pkt *p, const struct sent *s)
{
    uint32_t same = p->payload_len && p->icrc == CRC_GOOD && s->icrc ? icrc_with_payload(p, s) : 0;

    return same && same != s->icrc;
}

const struct sent *copy_of_another_sender(struct req_dir *h, const struct pkt *p)
{
    const struct sent *s = req_dir_sent(h, p->bth.psn), *beside = req_dir_sent(h, psn_prev(p->bth.psn));
    uint8_t way = packet_way(p);

    if (!s || s->copies > 1 || LIKELY(s->way == way))
        return NULL;
    beside = beside ? beside : req_dir_sent(h, psn_add(p->bth.psn, 1));
    if (!beside || beside->way_first != way)
        return NULL;
    return copy_has_same_headers(p, s) && !copy_has_other_payload(p, s) ? NULL : s;
}

bool sent_came_elsewhere(struct req_dir *h, const struct sent *s)
{
    const struct sent *before = req_dir_sent(h, psn_prev(s->psn));

    return s->copies == 1 && before && before->way_first != s->way;
}
