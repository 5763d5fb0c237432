/* layer 3 (script): runs scenario files: hosts, memory, work requests and network events as input; expected packets,
 * completions and memory contents. See rdmagen-scenario(5). */
#ifndef RDMATRACE_GEN_SCRIPT_SCRIPT_H
#define RDMATRACE_GEN_SCRIPT_SCRIPT_H

#include "gen/script/dut.h"

/* Local ACK timeout of queue pairs without timeout= on a real network, 4.096 us * 2^18 = 1.1 s: a tester or a device
 * that the scheduler lets wait must not look like one that has lost packets. */
#define SCRIPT_LIVE_TIMEOUT 18
#define SCRIPT_WORDS        48 /* words of a line */

enum script_result {
    SCRIPT_OK,
    SCRIPT_FAILED,      /* a line expects what did not happen */
    SCRIPT_BAD,         /* a syntax error in a line, or out of memory */
    SCRIPT_UNSUPPORTED, /* the device under test lacks what a line needs */
    SCRIPT_BROKEN,      /* the session with the device under test ended */
};

struct script_live;

/* What a device chooses by itself: the R_Key of a region, the number of a queue pair, and the PSN from which on it
 * wants to be sent to, which RDMA-CM tells. */
enum script_chosen { SCRIPT_CHOSE_KEY, SCRIPT_CHOSE_QPN, SCRIPT_CHOSE_PSN, SCRIPT_CHOSEN };

struct script_opts {
    struct sim_config sim;    /* configuration before the first line; script_run() frees its `events` */
    bool has_psn;             /* `psn` is the starting PSN of queue pairs without psn=, in place of a random one */
    uint32_t psn;             /* 24 bits */
    bool verbose;             /* report every packet in *out */
    struct script_live *live; /* host b is a live peer, or both hosts are; NULL: both are simulated */
    /* By host: it is driven by its agent, in virtual time, or on a real network (`live`); NULL: by the scenario itself.
     * On a real network host b is such a device if any is. */
    const struct script_dut *dut[NET_HOSTS];
    /* A line with metric=NAME or timer=NAME was met: the time between the packet matched before and its first packet,
     * or from a send to its completion, ns. It lies between `from` and `to`, times of the scenario. `timer`:
     * timer=NAME, the host waited for nothing but a timer of its own. NULL: nobody asks. */
    void (*measured)(void *user, const struct token *name, ns_t time, ns_t from, ns_t to, bool timer);
    /* Get the counters of host b, a device under test, as its agent tells them, before the first line and behind the
     * last one; NULL: nobody asks. */
    struct buf *counters[2];
    struct buf *agent_log; /* gets what is said to agents, and what they answer, a line each; NULL: nobody asks */
    /* Host b, a device under test, has chosen a value. NULL: nobody asks. */
    void (*chosen)(void *user, enum script_chosen kind, uint32_t value);
    void *user;
};

/* Run the scenario in `text` (terminated by NUL). `name`: its name in messages, which are appended to *out. */
enum script_result script_run(const char *name, const char *text, struct script_opts *opts, struct buf *out);

#endif
