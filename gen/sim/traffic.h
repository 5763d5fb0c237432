/* layer 3 (sim): perftest-like traffic between the two hosts of a simulation: flows on every connection, both ends
 * ours, all data verified. */
#ifndef RDMATRACE_GEN_SIM_TRAFFIC_H
#define RDMATRACE_GEN_SIM_TRAFFIC_H

#include "gen/sim/ledger.h"
#include "gen/sim/sim.h"
#include "gen/traffic/traffic.h"

/* How many connections it makes: c->qps, and as many again for the other direction of XRC. */
uint32_t sim_traffic_conns(const struct traffic_config *c);
/* Most regions and windows that it has at a host. */
uint32_t sim_traffic_keys(const struct traffic_config *c);

struct sim_traffic;
/* Prepare traffic for `s`, whose application becomes sim_traffic_app(). `conn`: all connections; PSNs, QPNs and queue
 * depths are filled in. `ledger`: gets a row for each work request when it completes; NULL: none. NULL with *err set.
 */
struct sim_traffic *sim_traffic_new(struct sim *s, const struct traffic_config *c, const struct sim_conn_config *conn,
                                    struct ledger *ledger, int *err);
/* The value of sim.app. */
struct sim_app sim_traffic_app(struct sim_traffic *t);
void sim_traffic_free(struct sim_traffic *t);
/* Run `s` until all is done; `tick` is called from time to time (may be NULL). */
void sim_traffic_run(struct sim_traffic *t, void (*tick)(void *user), void *user);
/* The flows, with their results; until sim_traffic_free(). */
struct traffic *sim_traffic_flows(struct sim_traffic *t);

#endif
