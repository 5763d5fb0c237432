/* layer 3 (conform): an agent on another host as a device under test: `rdmagen agent` over TCP, with the endpoint of
 * this side on a real network meanwhile. */
#ifndef RDMATRACE_GEN_CONFORM_REMOTE_H
#define RDMATRACE_GEN_CONFORM_REMOTE_H

#include "gen/agent/auth.h"
#include "gen/live/live.h"
#include "gen/script/dut.h"

struct remote_config {
    struct live *live; /* whose event loop runs while the agent is waited for */
    const char *host;  /* name or address at which the agent listens */
    uint16_t port;
    const struct auth_token *token;
};

/* The agent, as what script_opts.dut names: each scenario is a session of its own, so that nothing of it is left when
 * it ends. *c and *dut are to live as long. NULL: no memory. One agent serves any number of scenarios, one after the
 * other. */
struct remote_dut;
struct remote_dut *remote_dut_new(struct script_dut *dut, const struct remote_config *c);
void remote_dut_free(struct remote_dut *r);
/* Ask who the device is, in a session without a scenario: append its name, firmware, driver and kernel, as far as the
 * agent tells them. 0; -EACCES: the agent does not take the token, or does not know it; another negative errno. On
 * failure script_dut.why() has the reason in words. */
int remote_dut_tell(struct remote_dut *r, struct buf *b);

#endif
