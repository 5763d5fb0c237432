/* layer 3 (rnic): an endpoint of ours as a device: time stamps of completions. Its clock is that of the simulation, in
 * ns.
 */
#include "gen/rnic/ep_impl.h"

int twin_device_clock(struct rnic *r, uint64_t *ticks)
{
    *ticks = (uint64_t)twin_now(r);
    return 0;
}

int twin_cq_poll_stamped(struct rnic *r, void *cq, struct rnic_wc *wc, int n)
{
    int got = r->ops->cq_poll(r, cq, wc, n);

    for (int i = 0; i < got; i++)
        wc[i].stamp = (uint64_t)wc[i].wc.when;
    return got;
}
