/* layer 4 (tool): `rdmagen conformance`: shared by its files. */
#ifndef RDMATRACE_GEN_CLI_CONFORMANCE_H
#define RDMATRACE_GEN_CLI_CONFORMANCE_H

#include "gen/cli/live_options.h"
#include "gen/conform/battery/known.h"
#include "gen/conform/card/expected.h"
#include "gen/conform/conform.h"
#include "gen/conform/devices/between.h"
#include "gen/conform/devices/remote.h"

/* Of which tests a capture is kept in the directory of -o. */
enum conformance_keep { KEEP_ALL, KEEP_FAILED, KEEP_NONE };

#define EXIT_SETUP 3 /* an interface or an agent cannot be had */

/* Options and state. */
struct conformance_job {
    struct conform_battery battery;
    bool chosen[CONFORM_TESTS];
    const char *baseline, *stored; /* files; NULL: not given */
    struct card *before;           /* what --baseline has, read before the run; NULL: not read */
    bool twin, twins, list, coverage, quick, full, level[CONFORM_LEVELS];
    unsigned format;
    const char *out, *resume;        /* directories; NULL: not given */
    const char *json, *junit, *html; /* files; NULL: not given */
    const char *expected_file;       /* NULL: not given */
    const char *kept;                /* --keep, as given; NULL: not */
    struct expected expected;
    uint8_t which; /* enum conformance_keep */
    bool quiet, verbose;
    struct conform_run run;
    struct known_profile known;
    struct buf known_text;
    struct script_live peer;
    struct live live;
    struct live_config config;
    struct auth_token token;
    const char *token_file, *tcp;
    ns_t answer;                    /* --agent-timeout */
    const char *between[NET_HOSTS]; /* interfaces towards two devices; NULL: there is one */
    struct conformance_end {
        char host[256]; /* as given, without the port */
        uint16_t port;
        uint8_t gid[16];
        struct script_dut dut;
        struct buf told; /* what its agent says of it: members of JSON */
    } end[NET_HOSTS];    /* the device is the second one, host b of the tests; the first one only if there are two */
    struct between middle;
    const char *exchange; /* name of the program without an agent; NULL: there is an agent */
    int with;             /* enum conform_peer */
    struct buf who;       /* what is tested */
    int64_t begun;        /* s since 1970 */
    struct buf again;     /* the command without tests: what repeats one, with its id behind */
    char judge[4096], temporary[300];
    char tests[300]; /* directory of the captures of -o */
    struct conform_outcome outcome[CONFORM_TESTS];
    struct conform_outcome done[CONFORM_TESTS]; /* by number of the test: of the run that is resumed; no `test`: none */
    unsigned n;
    int progress;   /* descriptor of the file with the outcomes so far; -1: none */
    bool unwritten; /* an outcome could not be written there, which was said */
    struct metrics metrics;
    struct identities identities;
};

/* j->run.judge: the program rdmatrace beside this one; NULL, there is none: captures are not judged. */
void conformance_find_judge(struct conformance_job *j);
/* `diff` or `matrix`, if argv[1] is one of them: its exit status in *status. */
bool conformance_subcommand(struct conformance_job *j, int argc, char **argv, int *status);
/* Play the chosen tests, and show how they came out. Returns the exit status. */
int conformance_run(struct conformance_job *j);
/* With -o or --resume: make the directory; take what was done in it. 0, or the exit status after a message. */
int conformance_out_open(struct conformance_job *j);
/* A test was run, and has measured and chosen *m and *ids: note it. */
void conformance_out_note(struct conformance_job *j, const struct conform_outcome *o, const struct metrics *m,
                          const struct identities *ids);
/* With -v: print the packets of a test, as rdmatrace shows them. */
void conformance_out_packets(const struct conformance_job *j, const struct conform_outcome *o);
/* Whether the files of a test stay in the directory. */
bool conformance_out_keeps(const struct conformance_job *j, const struct conform_outcome *o);
/* Whether the files of --json, --junit and --html can be written, as far as that can be told before the run. 0, or the
 * exit status after a message. */
int conformance_out_check(const struct conformance_job *j);
/* Write the reports into the directory and the files of --json, --junit and --html. 0, or the exit status after a
 * message. */
int conformance_out_write(struct conformance_job *j, const struct conform_score *s);
/* Whether the result is a failure: no --expected, and none of the device's; or another one than that says. */
bool conformance_is_failure(const struct conformance_job *j, const struct conform_outcome *o);

/* Read --baseline before the run. 0, or the exit status after a message. */
int conformance_compare_open(struct conformance_job *j);
/* Show what has changed from --baseline to the score card --stored, or to `s`. Returns the exit status. */
int conformance_compare_stored(struct conformance_job *j);
int conformance_compare_run(const struct conformance_job *j, const struct conform_score *s);

#endif
