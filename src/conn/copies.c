/* layer 2b (conn): what two copies of a request have in common; whether a request goes on with others. */
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

/* The request with PSN `psn`, or the READ or atomic among whose responses is this PSN; NULL. */
static const struct sent *request_at(struct req_dir *h, uint32_t psn)
{
    const struct sent *s = req_dir_sent(h, psn);
    const struct read_req *k = s ? NULL : req_dir_read(h, psn, 0);

    return k ? req_dir_sent(h, k->psn) : s;
}

#define SAYS_MIGRATED (1u << 6) /* MigReq in sent.flags */

/* Whether request `p` with the next PSN continues those of `h`, of which `last` is the latest. It does not if a message
 * would begin within another one, or go on behind its end; that is uncertain if the READ before takes more PSNs, or if
 * `last` was sent again and is not acknowledged: then it is what the requester tries along the other path. */
static enum goes_on goes_on_with_next(const struct req_dir *h, const struct sent *last, const struct pkt *p)
{
    bool ended = opcode_table[last->opcode].flags & OPF_END, begins = p->op->flags & OPF_START;

    if (ended != begins)
        return GOES_NOT_ON;
    if (h->loose || (last->copies > 1 && !(h->have_una && psn_diff(h->una, last->psn) > 0)))
        return MAY_GO_ON;
    return GOES_ON;
}

/* Requests, at most, that the failing path may lose before they reach the tap: 268 MB in packets of 4096 bytes. */
#define LOST_AT_FAILURE (1u << 16)

enum goes_on copy_goes_on(struct req_dir *h, bool paired, const struct pkt *p)
{
    const struct sent *last = h->have_next ? request_at(h, psn_prev(h->next)) : NULL, *same;

    if (!last || last->flags & SAYS_MIGRATED || last->opcode >> 5 != p->bth.opcode >> 5)
        return GOES_NOT_ON;
    if (p->bth.psn == h->next)
        return goes_on_with_next(h, last, p);
    same = request_at(h, p->bth.psn);
    if (!same)
        return psn_in(p->bth.psn, psn_add(h->start, PSN_MASK + 1 - LOST_AT_FAILURE),
                      ((h->next - h->start) & PSN_MASK) + 2 * LOST_AT_FAILURE)
                   ? MAY_GO_ON
                   : GOES_NOT_ON;
    if (!copy_may_repeat(h, p))
        return GOES_NOT_ON;
    if (same->reth)
        return SENT_AGAIN;
    /* packets without RETH are much alike, with the same immediate data, too, if both ends count their messages in
     * them: it may be one of the other direction, if that is not in the capture */
    return paired ? GOES_ON : MAY_GO_ON;
}
