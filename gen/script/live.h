/* layer 3 (script): scenarios against a live peer: host a is this rdmagen, on a real network; host b is another rdmagen
 * that executes the statements of host b, any program with the TCP exchange of ibv_rc_pingpong or ib_write_bw, or a
 * device under test (script_opts.dut). */
#ifndef RDMATRACE_GEN_SCRIPT_LIVE_H
#define RDMATRACE_GEN_SCRIPT_LIVE_H

#include "gen/peers/oob_tcp.h"
#include "gen/script/script.h"

#define SCRIPT_LIVE_PORT 18516 /* TCP port of the control connection between two rdmagen */

/* What lies between two devices under test, and forwards their frames. */
struct script_middle {
    /* A scenario begins: each frame that comes in is told by script_live_passed(), and `events` happen to it. 0 or a
     * negative errno. */
    int (*begin)(void *user, struct event_list *events);
    /* Forward frames; if there are none, wait for one until live_now() is `until`. 0 or a negative errno. */
    int (*step)(void *user, ns_t until);
    /* The scenario has ended: forward nothing more. */
    void (*end)(void *user);
    /* Record so many bytes (0: all) of each frame that passes in this file; end that, with the number of frames that
     * were missed in *lost. 0 or a negative errno. */
    int (*record)(void *user, const char *path, uint32_t snaplen);
    int (*record_end)(void *user, uint64_t *lost);
    /* How late it was, since the caller's late_begin(); how long it has waited, since idle_begin(); the time of its
     * captures at live_now() 0. */
    struct late *(*late)(void *user);
    struct idle *(*idle)(void *user);
    ns_t (*epoch)(void *user);
    void *user;
};

/* A live peer. Before script_live_init() or script_live_serve() the caller fills live, control, patience, tolerance,
 * and of a foreign peer: peer, host, port, has_memory, rkey, va; of a device under test: peer, limit, control.fd -1; of
 * two: middle, ends, limit, control.fd -1, and live is NULL. */
struct script_live {
    struct live *live;    /* opened with script_live_frame() as its frame callback and this struct as its user */
    struct sim_wire wire; /* connects the simulator's host to `live` */
    struct sim *sim;      /* NULL before the hosts exist */
    struct chan control;  /* control connection to the other rdmagen; fd -1: a foreign peer */
    const char *host;     /* foreign peer: where to exchange queue pairs by TCP */
    uint16_t port;        /* of `host` */
    uint8_t peer[16];     /* GID of the other host */
    bool perftest;        /* foreign peer: ib_write_bw, which says where its memory is; else ibv_*_pingpong */
    bool lenient;         /* foreign peer: lines that ask it are passed over, and counted */
    unsigned passed_over; /* so many, since the caller set it to 0 */
    struct chan exchange; /* foreign peer: open until the scenario ends, if `exchanging` */
    bool exchanging;
    bool stuck;      /* the backend had no room for the latest frame */
    bool has_memory; /* foreign peer: its memory is at `va` under `rkey` */
    uint32_t rkey;
    uint64_t va;
    ns_t patience;                      /* longest wait of an expectation, ns */
    ns_t tolerance;                     /* of expected times, ns earlier or later */
    ns_t start;                         /* live_now() at the scenario's time 0 */
    ns_t limit;                         /* longest that the scenario may take, ns; 0: any time */
    bool agent;                         /* this is host b: the other rdmagen sends the statements */
    const struct script_middle *middle; /* NULL: this program is one of the hosts */
    uint8_t ends[NET_HOSTS][16];        /* GIDs of the hosts beside it */
    uint8_t macs[NET_HOSTS][6];         /* from which they have sent; zeros: nothing yet */
};

/* Frame callback of `live`: pass a received frame to the simulator. `when`: live_now() of its arrival. */
void script_live_frame(void *user, const uint8_t *data, uint32_t len, ns_t when);
/* A frame of this host passes the middle at live_now() `when`. */
void script_live_passed(struct script_live *v, unsigned host, const uint8_t *data, uint32_t len, ns_t when);
/* Resolve the peer and fill the rest of *v and the addresses of both hosts in *o. With another rdmagen, also send it
 * the HELLO. 0; -EHOSTUNREACH: the peer's MAC address cannot be resolved; another negative errno. */
int script_live_init(struct script_live *v, struct script_opts *o);
/* As host b: execute the statements of the other rdmagen until it closes the connection. 0; -EPROTO: a malformed
 * message; another negative errno. */
int script_live_serve(struct script_live *v, struct script_opts *o);
/* Whether host `host` is the one of this program, with so many addresses or more. */
bool script_live_has(const struct script_live *v, unsigned host, uint16_t addresses);
/* The source of the arrival times of frames, in words, for reports: "the kernel, when a frame arrives". */
const char *script_live_times(const struct script_live *v);

#endif
