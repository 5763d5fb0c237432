/* layer 4 (tool): `rdmagen replay`: shared by its files. */
#ifndef RDMATRACE_GEN_CLI_REPLAY_H
#define RDMATRACE_GEN_CLI_REPLAY_H

#include "gen/cli/live_run.h"
#include "gen/peers/perftest.h"
#include "gen/replay/replay.h"

/* Options and state. */
struct replay_job {
    struct live_run run; /* first */
    const char *file;    /* the capture */
    uint32_t conn;       /* --conn; 0: not given */
    uint16_t port;       /* of RDMA-CM; 0: that of the capture */
    bool blind, no_icrc;
    bool by_hand;                      /* --dest-qp: no connection manager */
    struct perftest_keys by_hand_peer; /* with by_hand: qpn, and psn of the peer */
    uint32_t qpn;                      /* of our queue pair; 0: the endpoint's choice */
    bool has_psn;
    uint32_t psn; /* the first that we send */
    struct replay_opts opts;
    ns_t timeout; /* longest time without progress */
    struct story story;
    struct replay replay;
};

/* Connect, play, disconnect: 0; a negative errno, as live_step(); or EXIT_FOUND after a message. */
int replay_play(struct replay_job *j);
/* Send the frames of one end as they are. Returns the exit status. */
int replay_send_blind(struct replay_job *j);

#endif
