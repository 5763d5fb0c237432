/* layer 4 (test) property: seeded conversations of two endpoints over a simulated network, recorded at three taps. */
#ifndef RDMATRACE_PROPERTY_PLAY_H
#define RDMATRACE_PROPERTY_PLAY_H

#include "gen/sim/traffic.h"
#include "tests/property/trace.h"

#define ECN_CAPABLE 2 /* traffic class of hosts in a network that marks */

/* A conversation: everything that determines its course, and its result. */
struct play {
    struct sim_config sim;
    struct traffic_config traffic;
    struct sim_conn_config conn; /* of all its connections */
    bool rxe;                    /* habits of soft-RoCE */
    bool nv;                     /* data are placed out of order */
    bool corrupts;               /* the network corrupts packets: bad ICRCs */
    bool truncates;              /* and cuts packets: lengths do not agree */
    struct store store;
    struct trace tap[TAP_PLACES];
    struct traffic_result result;
    uint64_t own_failures; /* of the endpoints' own checks */
    uint64_t faults;       /* committed */
    char about[400];       /* what it is, for messages */
};

/* Defaults: one RC connection with CM, RoCEv2 over IPv4, nothing lost. */
void play_init(struct play *p, uint64_t seed);
/* From now on play_random() makes often what is rare. */
void play_harshly(void);
/* Everything by chance from `seed`. */
void play_random(struct play *p, uint64_t seed);
/* Add nodes to the network: words of rdmagen's --net. Exits if they are not understood. */
void play_net(struct play *p, const char *words, unsigned dirs);
/* Add an event: words of rdmagen's --event. */
void play_event(struct play *p, const char *words);
/* Play and record it. False after a message: it could not be set up. */
bool play_run(struct play *p);
/* The same for a scenario in place of traffic, rdmagen-scenario(5); what it expects does not matter. */
bool play_scenario(struct play *p, const char *text);
/* The same for datagrams to a multicast group. */
bool play_multicast(struct play *p);
/* What the judge is told of a capture taken at `place`: profile, tap, timeouts. */
struct judge_opts play_judge_opts(const struct play *p, enum tap_place place);
void play_free(struct play *p);

#endif
