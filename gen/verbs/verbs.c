/* layer 3 (verbs): what all providers share: defaults, addresses. */
#include "gen/verbs/verbs.h"

struct ep_peer ep_peer_default(void)
{
    return (struct ep_peer){
        .path_mtu = 1024,
        .max_rd_atomic = 16,
        .max_dest_rd_atomic = 16,
        .timeout = 14,
        .retry_cnt = 7,
        .rnr_retry = 7,
        .min_rnr_timer = 12,
        .access = ACCESS_REMOTE,
    };
}

bool gid_is_ipv4(const uint8_t gid[16])
{
    static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

    return memcmp(gid, mapped, sizeof mapped) == 0;
}

void gid_from_ipv4(uint8_t gid[16], uint32_t a)
{
    memset(gid, 0, 10);
    gid[10] = gid[11] = 0xff;
    store_be32(gid + 12, a);
}

int verbs_failed_qp(struct verbs *v, const char **why)
{
    struct ep_event e;

    while (v->ops->async_event(v, &e)) {
        *why = e.type == EP_EV_QP_ACCESS_ERR ? "the peer asked for memory that it may not read or write like this"
               : e.type == EP_EV_QP_REQ_ERR  ? "the peer sent an invalid request"
                                             : NULL;
        if (*why)
            return e.handle;
    }
    return -1;
}
