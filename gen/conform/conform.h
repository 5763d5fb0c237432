/* layer 3 (conform): a battery of tests for a device under test: each is a scenario in which host a is our endpoint and
 * host b the device, with the rules that it concerns; its result, and the score of all. In virtual time, or on a real
 * network. */
#ifndef RDMATRACE_GEN_CONFORM_CONFORM_H
#define RDMATRACE_GEN_CONFORM_CONFORM_H

#include "gen/conform/measures/identities.h"
#include "gen/conform/measures/measure.h"
#include "gen/script/live.h"
#include "src/transport/rules.h"

#define CONFORM_TESTS    400 /* most tests of a battery */
#define CONFORM_RULES    12  /* most rules of a test */
#define CONFORM_MEASURES 4   /* most things that a test measures by its capture */
#define CONFORM_RATIOS   3   /* most ratios of a test */

/* How strongly the source requires it: a must, a should, or information about the device only. */
enum conform_level { CONFORM_MUST, CONFORM_SHOULD, CONFORM_INFORM, CONFORM_LEVELS };
/* "M", "S", "I". */
const char *conform_level_str(enum conform_level l);

/* Programs that take part without an agent: ib_write_bw, ibv_rc_pingpong, rping -s. */
enum conform_peer { CONFORM_PERFTEST, CONFORM_PINGPONG, CONFORM_RPING, CONFORM_PEERS };
/* By the name "perftest", "pingpong", "rping"; -1: there is none. */
int conform_peer_find(const char *name);

/* A ratio of the medians of two metrics, by their names. */
struct conform_ratio {
    struct token name, of, over;
    uint32_t least, most; /* permille: what the test expects of it; 0: anything */
};

/* A test: texts of the battery, which are not terminated. */
struct conform_test {
    char id[40]; /* "nak/seq-gap": group and name */
    uint8_t level;
    struct token title;  /* what the device has to do, in a sentence */
    struct token anchor; /* the source: compliance ids and sections */
    enum rule rules[CONFORM_RULES];
    unsigned n_rules;
    uint8_t peers;    /* bits 1 << enum conform_peer: it can be played with this one */
    bool is_long;     /* it takes minutes there: it is run with --full only */
    bool slow;        /* on a real network it takes more than a few seconds */
    uint32_t snaplen; /* bytes that its capture has of a frame; 0: all */
    struct measure measures[CONFORM_MEASURES];
    unsigned n_measures;
    struct conform_ratio ratios[CONFORM_RATIOS];
    unsigned n_ratios;
    struct token script; /* the scenario, see conform_script() */
};

struct conform_battery {
    struct conform_test test[CONFORM_TESTS];
    unsigned n;
};

/* Read a battery: "group NAME", behind which all tests are of this group, and lines are counted anew; tests of
 * "test ID LEVEL TITLE", "anchor TEXT", "rules ID ...", "peers NAME ...", "slow",
 * "long", "snaplen N", "measure KIND METRIC", "ratio METRIC OF OVER [least|most PERMILLE]" and the lines of the
 * scenario, in which "# cell NAME=VALUE ..." begins a part with parameters of its own (card/cells.h), and "# cell end"
 * what belongs to none. False with the reason in *err. */
bool conform_parse(struct conform_battery *b, const char *text, struct buf *err);
/* Append the scenario of a test: lines between "each N-M" and "end" stand there for each number, in place of "{}";
 * "{+N}" is N more, "{x?A|B|C}" one of these, drawn by the number and the letter. */
void conform_script(const struct conform_test *t, struct buf *b);
/* Append what a test needs of a device besides queue pairs of RC, by the words of its scenario: "atomics", "UD";
 * `before` the first one, and each between quotes. */
void conform_needs(const struct conform_test *t, struct buf *b, const char *before, const char *quote,
                   const char *separator);
/* The battery that is part of the program. */
const char *conform_text(void);
/* Whether an id matches a pattern: * stands for any characters, and "nak" for all of "nak/". */
bool conform_matches(const char *id, const char *pattern);

struct known_profile;

enum conform_result {
    CONFORM_PASS,
    CONFORM_FAIL,         /* the device did what it must not, or did not what it must */
    CONFORM_WEAK,         /* it did not what it should (level S) */
    CONFORM_INFO,         /* what a test of level I wants to see or to measure did not come */
    CONFORM_INCONCLUSIVE, /* frames were lost at this side: nothing is known of the device */
    CONFORM_UNSUPPORTED,  /* it lacks what the test needs */
    CONFORM_ERROR,        /* ours: the test, the session, or a disagreement between the test and the judge */
    CONFORM_KNOWN,        /* it failed, in the way that its profile says */
    CONFORM_CRASH,        /* after the test the device serves nothing any more */
    CONFORM_RESULTS,
};
/* "pass", "fail", "weak", "info", "inconclusive", "unsupported", "error", "known", "crash". */
const char *conform_result_str(enum conform_result r);
/* Whether the device did not do what the test expects: CONFORM_FAIL, CONFORM_WEAK or CONFORM_INFO, by the test's level.
 */
static inline bool conform_is_missed(enum conform_result r)
{
    return r == CONFORM_FAIL || r == CONFORM_WEAK || r == CONFORM_INFO;
}

/* What the reason of CONFORM_CRASH ends with, before what the small test behind it saw. */
#define CONFORM_SERVES_NOTHING "after it, the device serves no new queue pair: "

struct conform_outcome {
    const struct conform_test *test;
    uint8_t result;    /* enum conform_result */
    struct buf reason; /* one line, without a newline; "": it passed */
    struct buf judge;  /* rules that the judge found the device to have broken, "NAK-02 in frame 7, ..." */
    struct buf
        counters;      /* rows of JSON: what the device's counters counted, and what the capture shows; "": not read */
    ns_t took;         /* how long its runs took, by this host's clock */
    bool judge_alone;  /* all expectations are met: only the judge complains */
    unsigned runs;     /* how often the test was run; the rest of this struct is about the worst of them */
    unsigned good;     /* of these: passed */
    struct buf known;  /* CONFORM_KNOWN: what the profile says about it, with the source */
    char capture[300]; /* the file; "": none is kept */
};

/* What the tests are run with. */
struct conform_run {
    uint64_t seed;
    unsigned repeat; /* how often to run each test, each time with the next seed; 0: once */
    const struct script_dut *dut;
    const struct script_dut *requester; /* a device as host a; NULL: an endpoint of ours */
    enum rule faults[FAULTS_MAX];       /* of the twin */
    unsigned n_faults;
    uint32_t flaws; /* of the twin, bits 1 << enum flaw */
    /* On a real network; NULL: in virtual time. The caller has filled its members live, peer, patience and tolerance;
     * its `live` has the callback script_live_frame(), with the struct as its user. Of two devices: middle, ends,
     * patience and tolerance. Of a program without an agent: as for script_live_init(), with `lenient`. */
    struct script_live *live;
    ns_t limit; /* longest that a test may take on a real network, ns; ten times so if it is long */
    const struct known_profile *known; /* deviations of the device that are known; NULL: none */
    const char *keep;                  /* directory of the captures, which exists */
    const char *judge;                 /* path of the program rdmatrace; NULL: captures are not judged */
    struct identities *identities;     /* gets what the device chooses; NULL: nothing does */
    struct metrics *metrics;           /* gets what tests have measured that passed, or failed by a ratio only;
                                        * NULL: nothing does */
};

/* Run a test and fill *o, which conform_outcome_free() releases. On a real network a second, small test shows that the
 * device still serves a queue pair. 0, or a negative errno: the capture cannot be written; -EINTR: interrupted. */
int conform_run(const struct conform_run *r, const struct conform_test *t, struct conform_outcome *o);
void conform_outcome_free(struct conform_outcome *o);
/* Remove the files of an outcome; they are named no more. */
void conform_forget(struct conform_outcome *o);

/* The text behind `name`, the beginning of a member such as `"rule":"`, in `len` bytes of a line of JSON; it has no
 * escapes, commas or brackets. Empty: the line has no such member. */
struct token conform_member(const char *line, size_t len, const char *name);
/* What the judge (a run of `rdmatrace check -T ndjson`) says of `capture`: append the rules that the host with MAC
 * address `mac` broke to *found; with `counters`, its option --counters, the rows of what
 * they counted to *verdicts. 0; a negative errno: it cannot be run, or its output not be understood. */
int conform_judge(const char *program, const char *capture, const uint8_t mac[6], const char *counters,
                  struct buf *found, struct buf *verdicts);

/* The outcomes of all tests that were run. */
struct conform_score {
    const struct conform_outcome *o;
    unsigned n;
    uint64_t seed;
    const char *dut;               /* what was tested, in a few words */
    const char *device[NET_HOSTS]; /* what the agent of a device as host a, and of the one as host b, which is tested,
                                    * says of it: members of JSON; "": there is none */
    const char *again;             /* the command that repeats a test, with the id of the test behind it */
    const char *backend, *clock;   /* of the tester */
    bool live;                     /* on a real network; else in virtual time */
    int64_t begun;                 /* when the run began, s since 1970 */
    bool judged;                   /* captures were judged */
    const struct conform_battery *battery;
    const struct metrics *metrics;
    const struct identities *identities;
};
/* Append the line of an outcome, with the reasons below it; the sums below all of them. */
void conform_print_outcome(const struct conform_outcome *o, struct buf *b);
/* Likewise, the command that repeats it alone: `again` and its id. */
void conform_print_again(const struct conform_outcome *o, const char *again, struct buf *b);
/* Likewise, what the test goes by, and how long it took. */
void conform_print_source(const struct conform_outcome *o, struct buf *b);
void conform_print_sums(const struct conform_score *s, struct buf *b);
/* Append the score card: text, one JSON object, or the XML of JUnit. */
void conform_print_text(const struct conform_score *s, struct buf *b);
void conform_print_json(const struct conform_score *s, struct buf *b);
void conform_print_junit(const struct conform_score *s, struct buf *b);
/* Append what can be asked of a device, the tests that ask it, and what is not asked and why; the sum of these rows. */
void conform_print_coverage(struct buf *b);
/* How often the tests that are about a rule passed. */
struct conform_rule {
    unsigned applicable, pass; /* tests that show what the device does; of these: passed */
};
void conform_rules(const struct conform_score *s, struct conform_rule of[RULE_COUNT]);
/* How much of what can be asked of a device the tests that were run show of it. */
struct conform_coverage {
    unsigned rows, shown; /* of coverage.tsv; of these: a test that asks it shows what the device does */
};
struct conform_coverage conform_coverage(const struct conform_score *s);
/* The tests of a level (CONFORM_LEVELS: of all) and of a group, "nak" (NULL: of all). */
struct conform_share {
    unsigned all;              /* in the battery */
    unsigned applicable;       /* run, and they show what the device does */
    unsigned pass, weak, fail; /* of these; fail: or a crash */
};
struct conform_share conform_share(const struct conform_score *s, unsigned level, const struct token *group);
/* Whether the result shows that the device follows a rule, or does not. */
bool conform_is_about_device(enum conform_result r);
/* Append the shares of all groups that were run: a table; the member `"groups":[...]` of a JSON object, with a comma
 * before it. */
void conform_print_groups(const struct conform_score *s, struct buf *b);
void conform_print_groups_json(const struct conform_score *s, struct buf *b);
/* Append what the device's counters counted in all tests: a table, nothing without counters; the member
 * `"counters":[...]` of a JSON object, with a comma before it. */
void conform_print_counters(const struct conform_score *s, struct buf *b);
void conform_print_counters_json(const struct conform_score *s, struct buf *b);
/* Append, of each test of the group sec that guesses, which counters of the device counted something besides packets,
 * bytes and requests: a table, nothing without such tests or counters; the member `"guesses":[...]` of a JSON object,
 * with a comma before it. */
void conform_print_guesses(const struct conform_score *s, struct buf *b);
void conform_print_guesses_json(const struct conform_score *s, struct buf *b);
/* How many tests of a level (CONFORM_LEVELS: of all) have a result. */
unsigned conform_count(const struct conform_score *s, unsigned level, enum conform_result r);

#endif
