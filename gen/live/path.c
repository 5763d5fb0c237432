/* layer 3 (live): the path to a peer: its MAC address, or the router's, found and waited for; what ICMP errors say. */
#include "gen/live/live.h"

#include <errno.h>
#include <stdio.h>

#define ASK_AGAIN (200 * NS_PER_MS)

/* The MAC address of a neighbour; while no peer is on the link, the address that rdmagen derives from the GID. */
static bool hop_mac(const struct live *l, const uint8_t gid[16], uint8_t mac[6])
{
    if (l->has_peer_mac) {
        memcpy(mac, l->peer_mac, 6);
        return true;
    }
    if (identity_lookup(&l->id, gid, mac))
        return true;
    if (!l->backend->ops->alone || !l->backend->ops->alone(l->backend))
        return false;
    identity_derive_mac(mac, gid);
    return true;
}

bool live_path(struct live *l, const uint8_t gid[16], struct av *av)
{
    *av = (struct av){.tclass = l->tclass, .hop_limit = l->hop_limit, .sl = l->id.pcp};
    memcpy(av->dgid, gid, 16);
    return (l->has_via && hop_mac(l, l->via, av->dmac)) || hop_mac(l, gid, av->dmac);
}

bool live_ask(struct live *l, const uint8_t gid[16], ns_t *again)
{
    const uint8_t *hop = l->has_via ? l->via : gid;
    uint8_t frame[IDENTITY_FRAME_MAX], mac[6];
    ns_t now = live_now();

    if (hop_mac(l, hop, mac))
        return true;
    if (now >= *again) {
        live_send_link(l, frame, identity_ask(&l->id, hop, frame));
        *again = now + ASK_AGAIN;
    }
    return false;
}

int live_resolve(struct live *l, const uint8_t gid[16], ns_t timeout)
{
    ns_t end = live_now() + timeout, again = 0;

    while (!live_ask(l, gid, &again)) {
        int r;
        if (live_now() >= end)
            return -ETIMEDOUT;
        r = live_step(l, again < end ? again : end);
        if (r < 0)
            return r;
    }
    return 0;
}

int live_cm_resolve(struct live *l, int channel, const uint8_t gid[16], uint16_t port)
{
    struct rdmacm *cm = ep_verbs(l->ep)->cm;
    struct rdmacm_event e = {0};
    int id = rdmacm_id_create(cm, channel, CM_PS_TCP), r = id;

    if (id < 0)
        return id;
    r = rdmacm_resolve(cm, id, gid, port, LIVE_RESOLVE_WAIT, live_now());
    if (r == 0)
        do
            r = live_cm_event(l, channel, &e, NS_NEVER);
        while (r == 0 && e.id != id);
    r = r == 0 ? e.status : r;
    if (r < 0)
        rdmacm_id_destroy(cm, id, live_now());
    return r < 0 ? r : id;
}

const char *live_unreachable(const struct live *l, const uint8_t gid[16])
{
    static char text[100];
    const struct unreachable *u = &l->unreachable;

    if (!u->known || memcmp(u->gid, gid, 16) != 0)
        return NULL;
    snprintf(text, sizeof text, "%s, says %s", unreachable_str(u), live_addr_str(u->from));
    return text;
}
