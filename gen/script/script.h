/* layer 3 (script): scenario files: hosts, memory, work and network events in, expected packets, completions and memory
 * out. See rdmagen-scenario(5). */
#ifndef RDMATRACE_GEN_SCRIPT_SCRIPT_H
#define RDMATRACE_GEN_SCRIPT_SCRIPT_H

#include "gen/sim/sim.h"

enum script_result {
    SCRIPT_OK,
    SCRIPT_FAILED, /* an expectation was not met */
    SCRIPT_BAD,    /* a line is not understood, or there is no memory */
};

struct script_live;

struct script_opts {
    struct sim_config sim; /* configuration before the first line; `events` is freed by the run */
    bool has_psn;          /* `psn` replaces the random starting PSNs of queue pairs without psn= */
    uint32_t psn;
    bool verbose;             /* report every packet */
    struct script_live *live; /* the other host is real; NULL: both are simulated */
};

/* Run the scenario in `text` (terminated), called `name` in messages, which are appended to *out. */
enum script_result script_run(const char *name, const char *text, struct script_opts *opts, struct buf *out);

#endif
