/* layer 3 (script): scenarios against a live peer: host a is ours, on a real network; host b is another rdmagen that
 * carries out the statements of host b, or any program that speaks the exchange of ibv_rc_pingpong. */
#ifndef RDMATRACE_GEN_SCRIPT_LIVE_H
#define RDMATRACE_GEN_SCRIPT_LIVE_H

#include "gen/peers/oob_tcp.h"
#include "gen/script/script.h"

#define SCRIPT_LIVE_PORT 18516 /* TCP, between two rdmagen */

struct script_live {
    struct live *live; /* opened with script_live_frame() as its frame(), and this as its user */
    struct sim_wire wire;
    struct sim *sim;     /* once it exists */
    struct chan control; /* to the other rdmagen; fd -1: a foreign peer */
    const char *host;    /* foreign: with whom to exchange queue pairs, by TCP, at `port` */
    uint16_t port;
    uint8_t peer[16]; /* GID of the other host */
    bool has_memory;  /* foreign: the peer's memory is at `va` under `rkey` */
    uint32_t rkey;
    uint64_t va;
    ns_t patience;  /* longest wait of an expectation */
    ns_t tolerance; /* of expected times, each way */
    ns_t start;     /* live_now() of the scenario's time 0 */
    bool agent;     /* we are host b: the other rdmagen sends the statements */
};

void script_live_frame(void *user, const uint8_t *data, uint32_t len, ns_t when);
/* `v` has live, control, peer and what belongs to them; the rest is filled in, and so is *o: the hosts' addresses. 0;
 * -EHOSTUNREACH: the peer's MAC address does not become known; another negative errno. */
int script_live_init(struct script_live *v, struct script_opts *o);
/* As host b: carry out the statements of the other rdmagen until it closes. 0; -EPROTO: its message is malformed;
 * another negative errno. */
int script_live_serve(struct script_live *v, struct script_opts *o);
/* How good the times of received frames are, in words, for reports: "the kernel, when a frame arrives". */
const char *script_live_times(const struct script_live *v);

#endif
