/* layer 3 (endpoint): profile nv: packets that come ahead of one that is missing are kept until it is there. */
#include <stdlib.h>

#include "gen/endpoint/endpoint_impl.h"

/* Requests on a sprayed path; PSN 11 comes late, or never:
 *
 *   arrives    10  12  13  11              10  12  13  ......  11
 *   executed   10          11 12 13        10          NAK 11  11 12 13
 *                                              |<----->|
 *                                              reorder_wait: PSN 11 counts as lost
 *
 * The NAK is that of a responder without this profile: it tells of the first missing packet only. The requester
 * retransmits that one (struct req_params: selective); if another one is missing behind it, the next NAK says so at
 * once. READ responses are kept likewise; of them the requester asks for all from the missing one on. The wire format
 * of the selective acknowledgements of adapters is not public. */
#define KEPT         4096 /* packets at a time; a power of two */
#define WAIT_DEFAULT (20 * NS_PER_US)

struct kept_packet {
    uint8_t *frame; /* NULL: none */
    uint32_t len, psn;
    ns_t arrived;
};

struct ep_kept {
    struct kept_packet at[KEPT]; /* by PSN modulo KEPT */
    uint32_t n;                  /* packets */
    bool asked;                  /* the wait for asked_psn was over once */
    uint32_t asked_psn;
};

/* Whether packets of this kind are kept now: a responder that sent another NAK than that of a gap drops them. */
static bool keeps(const struct ep_qp *q, bool response)
{
    if (!qp_is_reliable(q->qp.type))
        return false;
    return response ? qp_can_send(&q->qp) && !q->qp.req.dead : !q->qp.rsp.dead && !q->qp.rsp.rnr_sent;
}

/* The oldest PSN that is not finished. */
static uint32_t base_of(const struct ep_qp *q, bool response)
{
    return response ? q->qp.req.una_hi : q->qp.rsp.epsn_hi;
}

/* Whether a packet with this PSN comes ahead of one that is missing: *next. A response does while that of a READ or
 * atomic before it is missing. */
static bool is_ahead(const struct ep_qp *q, bool response, uint32_t psn, uint32_t *next)
{
    *next = q->qp.rsp.epsn_hi;
    return (!response || req_next_response(&q->qp.req, next)) && psn_diff(psn, *next) > 0;
}

static void drop(struct ep_kept *k, struct kept_packet *at)
{
    k->n -= at->frame != NULL;
    free(at->frame);
    at->frame = NULL;
}

bool ep_reorder_keep(struct ep_qp *q, const struct pkt *p, const uint8_t *data, uint32_t len, ns_t now)
{
    bool response = p->op->flags & OPF_RESPONSE;
    struct ep_kept **k = &q->kept[response];
    uint32_t psn = p->bth.psn, next;
    struct kept_packet *at;
    uint8_t *copy;

    if (*k && (*k)->at[psn & (KEPT - 1)].psn == psn)
        drop(*k, &(*k)->at[psn & (KEPT - 1)]);
    if (!keeps(q, response) || !is_ahead(q, response, psn, &next) || psn_diff(psn, base_of(q, response)) >= KEPT)
        return false;
    if ((response && psn_diff(psn, q->qp.req.psn_next) >= 0) || !(copy = malloc(len)))
        return false;
    if (!*k && !(*k = calloc(1, sizeof **k))) {
        free(copy);
        return false;
    }
    memcpy(copy, data, len);
    at = &(*k)->at[psn & (KEPT - 1)];
    drop(*k, at);
    (*k)->n++;
    *at = (struct kept_packet){.frame = copy, .len = len, .psn = psn, .arrived = now};
    ep_timer(q, ep_reorder_deadline(q));
    return true;
}

/* The kept packet with the lowest PSN; NULL: none. */
static struct kept_packet *lowest(const struct ep_qp *q, bool response)
{
    struct ep_kept *k = q->kept[response];
    uint32_t psn = base_of(q, response);

    for (uint32_t i = 0; k && k->n && i < KEPT; i++, psn = psn_add(psn, 1)) {
        struct kept_packet *at = &k->at[psn & (KEPT - 1)];
        if (at->frame && at->psn == psn)
            return at;
    }
    return NULL;
}

/* Decode a kept packet and handle it. */
static void take(struct ep_qp *q, const struct kept_packet *k, ns_t now)
{
    struct frame f = {.ts = now, .data = k->frame, .caplen = k->len, .len = k->len, .linktype = ep_linktype(q->ep)};
    struct decode_opts opts = {0}; /* its ICRC was verified when it came */
    struct pkt *p = &q->ep->rx;

    pkt_decode(p, &f, &opts);
    ep_take(q, p, now);
}

static void go_on(struct ep_qp *q, bool response, ns_t now)
{
    struct kept_packet *at, got;
    uint32_t next;

    while (keeps(q, response) && (at = lowest(q, response)) && !is_ahead(q, response, at->psn, &next)) {
        got = *at;
        at->frame = NULL;
        q->kept[response]->n--;
        take(q, &got, now);
        free(got.frame);
    }
}

void ep_reorder_go_on(struct ep_qp *q, ns_t now)
{
    go_on(q, false, now);
    go_on(q, true, now);
    ep_timer(q, ep_reorder_deadline(q));
}

/* When the packet that is missing counts as lost; NS_NEVER: none is, or it did already. */
static ns_t deadline(const struct ep_qp *q, bool response)
{
    const struct kept_packet *low = lowest(q, response);
    const struct ep_kept *k = q->kept[response];
    uint32_t next;

    if (!low || !keeps(q, response) || !is_ahead(q, response, low->psn, &next) || (k->asked && k->asked_psn == next))
        return NS_NEVER;
    return low->arrived + (q->ep->cfg.reorder_wait ? q->ep->cfg.reorder_wait : WAIT_DEFAULT);
}

ns_t ep_reorder_deadline(const struct ep_qp *q)
{
    ns_t a = deadline(q, false), b = deadline(q, true);

    return a < b ? a : b;
}

/* A packet ahead, handled as without this profile, makes the queue pair ask for the one that is missing. */
void ep_reorder_expire(struct ep_qp *q, ns_t now)
{
    for (unsigned response = 0; response < 2; response++)
        if (deadline(q, response) <= now) {
            const struct kept_packet *low = lowest(q, response);
            is_ahead(q, response, low->psn, &q->kept[response]->asked_psn);
            q->kept[response]->asked = true;
            take(q, low, now);
        }
}

void ep_reorder_forget(struct ep_qp *q)
{
    for (unsigned response = 0; response < 2; response++) {
        struct ep_kept *k = q->kept[response];
        for (uint32_t i = 0; k && i < KEPT; i++)
            free(k->at[i].frame);
        free(k);
        q->kept[response] = NULL;
    }
}
