/* layer 4 (tool): `rdmagen conformance`: shared by its files. */
#ifndef RDMATRACE_GEN_CLI_CONFORMANCE_H
#define RDMATRACE_GEN_CLI_CONFORMANCE_H

#include "gen/cli/live_options.h"
#include "gen/conform/between.h"
#include "gen/conform/conform.h"
#include "gen/conform/known.h"
#include "gen/conform/remote.h"

/* Options and state. */
struct conformance_job {
    struct conform_battery battery;
    bool chosen[CONFORM_TESTS];
    const char *baseline, *stored; /* files; NULL: not given */
    bool twin, twins, list, coverage, quick, level[CONFORM_LEVELS];
    unsigned format;
    struct conform_run run;
    struct known_profile known;
    struct buf known_text;
    struct script_live peer;
    struct live live;
    struct live_config config;
    struct auth_token token;
    const char *token_file, *tcp;
    const char *between[NET_HOSTS]; /* interfaces towards two devices; NULL: there is one */
    struct conformance_end {
        char host[256]; /* as given, without the port */
        uint16_t port;
        uint8_t gid[16];
        struct script_dut dut;
    } end[NET_HOSTS]; /* the device is the second one, host b of the tests; the first one only if there are two */
    struct between middle;
    const char *exchange; /* name of the program without an agent; NULL: there is an agent */
    int with;             /* enum conform_peer */
    struct buf who;       /* what is tested */
    struct buf again;     /* the command without tests: what repeats one, with its id behind */
    char judge[4096], temporary[300];
    struct conform_outcome outcome[CONFORM_TESTS];
    unsigned n;
    struct metrics metrics;
    struct identities identities;
};

/* Play the chosen tests, and show how they came out. Returns the exit status. */
int conformance_run(struct conformance_job *j);
/* Show what has changed from --baseline to the score card --stored, or to `s`. Returns the exit status. */
int conformance_compare_stored(const struct conformance_job *j);
int conformance_compare_run(const struct conformance_job *j, const struct conform_score *s);

#endif
