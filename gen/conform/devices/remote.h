/* layer 3 (conform): an agent on another host as a device under test: `rdmagen agent` over TCP, with the local endpoint
 * on a real network. */
#ifndef RDMATRACE_GEN_CONFORM_REMOTE_H
#define RDMATRACE_GEN_CONFORM_REMOTE_H

#include "gen/agent/auth.h"
#include "gen/live/live.h"
#include "gen/script/dut.h"

struct remote_config {
    struct live *live; /* whose event loop runs while the agent is waited for; NULL: there is none */
    unsigned side;     /* which host of the scenarios the device is */
    const char *host;  /* name or address at which the agent listens */
    uint16_t port;
    const struct auth_token *token;
    ns_t answer; /* longest wait for an answer, and for the end of a session */
};

/* The agent, as what script_opts.dut names: each scenario is a separate session, whose objects end with it. *c and *dut
 * are to live as long. NULL: no memory. One agent serves any number of scenarios, one after the other. */
struct remote_dut;
struct remote_dut *remote_dut_new(struct script_dut *dut, const struct remote_config *c);
void remote_dut_free(struct remote_dut *r);
/* Identify the device, in a session without a scenario: append its name, firmware, driver and kernel, as far as the
 * agent knows them, to *b as text, and to *device as members of JSON. 0;
 * -EACCES: the agent does not take the token, or does not know it; another negative errno. On
 * failure script_dut.why() has the reason in words. */
int remote_dut_tell(struct remote_dut *r, struct buf *b, struct buf *device);

#endif
