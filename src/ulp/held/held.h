/* layer 2b (ulp): internal: packets of flows whose protocol is not known yet.
 *
 * A message that looks like a protocol is followed by another one that must agree. From the first one on the packets of
 * both directions are kept: requests, and responses to READs. Once the protocol is known they are taken in their order,
 * as if it had been known before. */
#ifndef RDMATRACE_ULP_HELD_H
#define RDMATRACE_ULP_HELD_H

#include "dissect/ulp/ulp.h"
#include "src/conn/observer.h"

#define HELD_FLOW_BYTES (64u << 10) /* of the packets of a flow, with what is kept beside their payload */

struct ulp;

/* Packets of a flow, newest first. */
struct held_flow {
    struct held_packet *newest;
    uint32_t bytes;
};

/* The event is of a flow that carries no known protocol: keep its packet, if a message of the flow or of its peer looks
 * like one; else forget what was kept. */
void held_keep(struct ulp *u, const struct event *e);
/* The payload of the latest first packet of a SEND that is kept of the flow; false: there is none. */
bool held_send(const struct ulp *u, uint32_t flow, struct ulp_body *b);
/* The protocol of the flow is known now: give the kept packets of both directions to ulp_take_held(). */
void held_give(struct ulp *u, uint32_t flow);
/* Forget those of the flow. */
void held_forget(struct ulp *u, uint32_t flow);
/* Forget all. */
void held_end(struct ulp *u);

#endif
