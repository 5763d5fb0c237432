/* layer 3 (judge): what a judge found: findings, counts, and their output as text, JSON or JUnit XML. */
#ifndef RDMATRACE_JUDGE_FINDINGS_H
#define RDMATRACE_JUDGE_FINDINGS_H

#include "buf.h"
#include "src/transport/rules.h"

#define FINDINGS_FRAMES 8     /* frames, and causes, that a finding names */
#define FINDINGS_EACH   5     /* findings alike (rule, verdict, connection) that are kept; the rest is counted */
#define FINDINGS_MAX    20000 /* findings kept in all */

/* One finding. Texts are offsets into the report's strings; 0: none. */
struct finding {
    uint8_t rule;     /* enum rule */
    uint8_t severity; /* enum severity: the rule's, or a milder one */
    uint8_t result;   /* enum result: V_FAIL or V_INCONCLUSIVE; of an observation V_PASS */
    uint8_t n_frames, n_causes;
    uint16_t missing;                 /* N_* that would be needed */
    uint16_t file;                    /* index of the file that the frame numbers are of */
    uint16_t tap;                     /* interface of that file, from 0 */
    uint64_t iface;                   /* 1 << the interface where it was seen, if that tells more; else 0 */
    uint32_t conn;                    /* number of the connection, 0: none */
    uint64_t frames[FINDINGS_FRAMES]; /* that prove it */
    uint64_t causes[FINDINGS_FRAMES]; /* what they violate: the earlier frames */
    uint16_t unpaired;                /* those of `missing` that lack only as the two directions were paired by PSN */
    uint32_t wrong;                   /* the headline, in place of that of the rule; 0: the rule's */
    uint32_t expected, seen, text;
    uint64_t times; /* how often, those not listed included */
};

/* What is to be told about one finding. */
struct finding_text {
    const char *wrong; /* like that of struct rule_info; NULL: the rule's */
    const char *expected, *seen;
    const char *text; /* a paragraph */
};

struct findings;

/* NULL without memory. */
struct findings *findings_new(void);
void findings_free(struct findings *r);
/* Rules that were looked at (they count as passed unless something is found). */
void findings_judged(struct findings *r, enum rule rule);
/* Who wants to know of each finding that is counted but not kept. Before the first finding. */
void findings_on_left_out(struct findings *r, void (*fn)(void *user, const struct finding *f), void *user);
/* Count a finding, and keep it unless FINDINGS_EACH like it, or FINDINGS_MAX in all, are kept. Its texts are copied. */
void findings_add(struct findings *r, const struct finding *f, const struct finding_text *t);

/* Totals. Of the rules looked at each is in exactly one of pass, inconclusive, fail, warnings: its worst verdict;
 * observations are in none. */
struct findings_totals {
    uint64_t packets;
    uint32_t connections;
    /* number given to a connection: more than there are, where two turned out to be the two directions of one */
    uint32_t highest;
    uint32_t rules; /* pass + inconclusive + fail + warnings */
    uint32_t pass, inconclusive, fail, warnings;
};
struct findings_totals findings_totals(const struct findings *r);
void findings_set(struct findings *r, uint64_t packets, uint32_t connections, uint32_t highest);
/* Number of findings kept, and each. */
size_t findings_n(const struct findings *r);
const struct finding *findings_at(const struct findings *r, size_t i);
const char *findings_string(const struct findings *r, uint32_t offset);
/* What is wrong, in a line without its end: "wrong ICRC 0x59e9525c, expected 0xcfd9552b"; of an observation its
 * value. */
void findings_headline(const struct findings *r, const struct finding *f, struct buf *b);

struct findings_opts {
    const char *const *files; /* names, for findings of several files */
    size_t n_files;
    uint32_t ifaces;         /* interfaces of the file that has the most: with several it is said which one */
    const char *assumptions; /* "profile strict; tap unknown; ..." */
    bool complete;           /* the user says that the capture lost no frame */
    bool inconclusive;       /* list inconclusive findings in text, too */
    bool quiet;              /* text: totals only */
};
void findings_text(const struct findings *r, const struct findings_opts *o, struct buf *b);
void findings_json(const struct findings *r, const struct findings_opts *o, struct buf *b);
void findings_junit(const struct findings *r, const struct findings_opts *o, struct buf *b);

#endif
