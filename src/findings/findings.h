/* layer 2b (findings): findings and totals, and their output as text, JSON or JUnit XML. */
#ifndef RDMATRACE_FINDINGS_FINDINGS_H
#define RDMATRACE_FINDINGS_FINDINGS_H

#include "buf.h"
#include "cell.h"
#include "src/transport/rules.h"

#define FINDINGS_FRAMES 8 /* frames, and cause frames, of a finding at most */
/* Findings that are kept of the same rule, verdict and flow, or if they are of none, of the same connection and tap;
 * further ones are only counted. */
#define FINDINGS_EACH 5
#define FINDINGS_MAX  20000 /* findings kept in total */

#define FINDING_NO_TIME INT64_MIN

/* A finding. Texts are offsets for findings_string(); 0: none. */
struct finding {
    uint8_t rule;     /* enum rule */
    uint8_t severity; /* enum severity: that of the rule, or a lower one */
    uint8_t result;   /* enum result: V_FAIL or V_INCONCLUSIVE; for a note V_PASS */
    uint8_t n_frames, n_causes;
    bool by_side;                     /* the verdict rests on the end that the tap is at */
    bool by_clock;                    /* the verdict rests on the order of packets of both directions */
    bool by_complete;                 /* the verdict rests on the capture having all frames */
    bool by_pairing;                  /* the verdict rests on few responses being those to these requests */
    uint16_t missing;                 /* N_* that the verdict needs and the capture does not provide */
    uint16_t file;                    /* index of the file; frame numbers refer to it */
    uint16_t tap;                     /* interface of that file, from 0 */
    uint64_t iface;                   /* 1 << its interface, if interfaces have different tap positions; else 0 */
    uint32_t conn;                    /* number of the connection; 0: none */
    uint32_t flow;                    /* a number that no other flow has, or had; 0: it is about none */
    uint64_t frames[FINDINGS_FRAMES]; /* frames that break the rule */
    uint64_t causes[FINDINGS_FRAMES]; /* frames that prove it */
    uint32_t wrong;                   /* headline; 0: that of the rule */
    uint32_t expected, seen, text;
    ns_t ts;        /* when frames[0], or else causes[0], was captured; FINDING_NO_TIME: not known */
    uint64_t times; /* how often it was found, including findings that are not kept */
    uint64_t consequences, consequence; /* frames that are wrong for the same fault: how many; the last of them */
};

/* Texts of a finding. */
struct finding_text {
    const char *wrong; /* headline, format as rule_info.wrong; NULL: that of the rule */
    const char *expected, *seen;
    const char *text; /* a paragraph; may be "" */
};

struct findings;

/* NULL: out of memory. */
struct findings *findings_new(void);
void findings_free(struct findings *r);
/* A rule was judged: it counts as passed unless there is a finding. */
void findings_judged(struct findings *r, enum rule rule);
/* The state that a rule needs was evicted between two packets of a flow: the rule does not pass. */
void findings_lost(struct findings *r, enum rule rule);
/* Set a callback for each finding that is counted but not kept. Call it before the first findings_add(). */
void findings_on_left_out(struct findings *r, void (*fn)(void *user, const struct finding *f), void *user);
/* Count a finding, and keep it unless FINDINGS_EACH like it, or FINDINGS_MAX in total, are kept. The texts are
 * copied. */
void findings_add(struct findings *r, const struct finding *f, const struct finding_text *t);
/* Count a finding if as many like it are kept as may be, which needs no texts. False: it is to be added. */
bool findings_more(struct findings *r, const struct finding *f);
/* What frame `frame` shows follows from the fault of finding `i`: it is no finding of its own. */
void findings_follows(struct findings *r, size_t i, uint64_t frame);

/* Write what there is, or read it into new findings; what is read was written by anybody: k->bad if it makes no sense.
 */
struct pack;
void findings_pack(struct findings *r, struct pack *k);
/* Give the flows of these findings the numbers behind `most`. Returns the highest of them, or `most`. */
uint32_t findings_number_flows(struct findings *r, uint32_t most);
/* Findings of several processes, which have judged a part of the packets each, made one. findings_take(): add finding
 * `i` of `from`, of connection `conn`; of all parts in the order in which one process would have found them. False:
 * that many are kept, it was only counted. Then findings_sum(), once for each part: what it has counted. */
bool findings_take(struct findings *r, const struct findings *from, size_t i, uint32_t conn);
void findings_sum(struct findings *r, const struct findings *from);
/* After the last findings_take(): what is counted with finding `i` of `from`, as so many like it are kept. */
void findings_count_more(struct findings *r, const struct findings *from, size_t i, uint32_t conn);
/* How many kinds of findings are told apart, as for FINDINGS_EACH. Parts that have FINDINGS_KINDS
 * together cannot be made one: it would depend on their order what is kept. */
#define FINDINGS_KINDS 32768
uint32_t findings_kinds(const struct findings *r);
/* Why packets were not judged, or only in part. */
enum unjudged {
    UNJUDGED_ICRC,   /* their ICRCs were not inserted yet: no rule was */
    UNJUDGED_OPCODE, /* it is not defined: only the headers before the payload were */
    UNJUDGED_CUT,    /* they end within their headers */
    UNJUDGED_OURS,   /* they are Shaped-Quota in the format of rdmagen */
    UNJUDGED_KINDS
};

/* Totals. Each rule that was judged counts in exactly one of pass, inconclusive, fail, warnings: by its worst
 * verdict. Notes count in none. */
struct findings_totals {
    uint64_t packets, rdma_packets;
    uint64_t unjudged[UNJUDGED_KINDS]; /* of these, by findings_unjudged() */
    uint32_t connections;
    /* highest number of a connection: above `connections` if two flows that had numbers of their own were paired
     * later */
    uint32_t highest;
    uint32_t rules; /* pass + inconclusive + fail + warnings */
    uint32_t pass, inconclusive, fail, warnings;
};
struct findings_totals findings_totals(const struct findings *r);
/* After the last one: connections have the numbers that they have now, see conn_number_now(). */
struct conn_table;
void findings_renumber(struct findings *r, struct conn_table *conns);
/* After the last one: failures that `is_doubted` are undecided, as the capture does not provide `missing`. */
void findings_doubt(struct findings *r, unsigned missing, bool (*is_doubted)(void *user, const struct finding *f),
                    void *user);
void findings_set(struct findings *r, uint64_t packets, uint64_t rdma_packets, uint32_t connections, uint32_t highest);
/* Packets that were not judged; may be called several times. */
void findings_unjudged(struct findings *r, enum unjudged why, uint64_t packets);
/* The worst verdict of a rule; WORST_NONE: it was not judged, or is a note. */
enum worst { WORST_NONE, WORST_PASS, WORST_UNSURE, WORST_WARN, WORST_FAIL };
enum worst findings_worst(const struct findings *r, enum rule rule);
/* How often a rule was undecided; whether findings_lost() was called for it. */
uint64_t findings_unsure(const struct findings *r, enum rule rule);
bool findings_was_lost(const struct findings *r, enum rule rule);
/* Findings that are kept: how many, and number `i`. */
size_t findings_n(const struct findings *r);
const struct finding *findings_at(const struct findings *r, size_t i);
const char *findings_string(const struct findings *r, uint32_t offset);
/* Write the headline of a finding without line end: "wrong ICRC 0x59e9525c, expected 0xcfd9552b"; for a note its
 * value. */
void findings_headline(const struct findings *r, const struct finding *f, struct buf *b);
/* True if the headline names a value. */
bool findings_names_value(const struct findings *r, const struct finding *f);

struct findings_opts {
    const char *const *files; /* names of the files */
    size_t n_files;
    uint32_t ifaces;         /* largest number of interfaces in a file: above 1, findings name the interface */
    const char *assumptions; /* "profile strict; tap unknown; ..." */
    bool complete;           /* the user says that the capture lost no frame */
    bool verbose;            /* text output: list notes and inconclusive findings, too */
    bool quiet;              /* text output: totals only */
    bool color;              /* text output: with colour escape sequences */
    const char *shows;       /* text output: what shows the notes; NULL: "-v" */
    unsigned columns;        /* text output: of the paragraphs; 0: 100, which is the most */
    void *user;              /* argument of the functions below */
    /* JSON: append more members, each behind a comma; NULL: there are none */
    void (*more)(void *user, struct buf *b);
    /* write a time; NULL: the text has no times */
    void (*put_time)(void *user, struct buf *b, ns_t ts);
    /* whether text and JSON show a finding; NULL: they show all */
    bool (*wanted)(void *user, const struct finding *f);
    /* before the line of the text that says of a rule how often it is inconclusive; `f`: the first such finding; and
     * behind these lines, with NULL. NULL: nobody asks */
    void (*undecided)(void *user, const struct finding *f);
};
/* All values of finding `i`, from 0, but its frames and needs: those of JSON and of tables. `files`: names of the
 * captures. */
void finding_cells(const struct findings *r, size_t i, const char *const *files, cell_take *take, void *user);
/* Only their names and kinds: the values mean nothing. */
void finding_columns(cell_take *take, void *user);
void findings_text(const struct findings *r, const struct findings_opts *o, struct buf *b);
void findings_json(const struct findings *r, const struct findings_opts *o, struct buf *b);
void findings_junit(const struct findings *r, const struct findings_opts *o, struct buf *b);

#endif
