/* layer 3 (rnic): in place of ibv_*.c where the headers of libibverbs and librdmacm were not there. */
#include "gen/rnic/rnic.h"

#include <errno.h>
#include <stdio.h>

int ibv_rnic_open(struct rnic **r, char why[RNIC_WHY])
{
    *r = NULL;
    snprintf(why, RNIC_WHY,
             "this program was built without the headers of libibverbs and librdmacm (libibverbs-dev, librdmacm-dev)");
    return -ENOSYS;
}
