/* layer 3 (judge): what one of several processes keeps of what it finds, and what is made of the parts of all. */
#ifndef RDMATRACE_JUDGE_PART_H
#define RDMATRACE_JUDGE_PART_H

#include "pack.h"
#include "src/judge/judge_impl.h"

/* A flow begins, or what the number of its connection depends on changes. */
struct numbering {
    struct order at;
    uint32_t n; /* what happens at one place of the order is numbered */
    struct conn_change c;
};

struct place {
    struct order at;
    uint32_t n;
};

struct share {
    struct conn_owners owners;
    bool leads, parts; /* parts: what several processes have found was read, nothing is judged */
    struct order at;
    uint32_t n;          /* the next number at this place */
    struct place *found; /* of each finding */
    uint32_t n_found;
    struct numbering *numbers;
    uint32_t n_numbers;
    struct order *born; /* by flow */
    uint32_t n_born;
    const char *why_not; /* why it cannot be shared out; NULL: it can */
    bool arrives, stays; /* the first request of a flow had MigReq set; a request had it clear */
    bool compares[JUDGE_TAPS];
    bool no_memory;
    /* of parts */
    struct part *part;
    uint32_t n_parts;
    struct entry *entries;
    uint32_t n_entries, at_entry;
    struct order replayed; /* the latest place of what happened to flows */
    bool damaged;          /* a part contradicts itself */
    struct flow_fact *facts;
    uint32_t n_facts;
};

/* What one process has found. */
struct part {
    struct findings *findings;
    struct place *found;
    struct numbering *numbers;
    uint32_t n_numbers, n_facts, n_choices;
    struct flow_fact *facts;
    struct choice *choices;
    struct conn_replayed replayed;
    uint32_t *then; /* by finding: the number of its connection when it was found; 0: it was not yet, or of none */
    uint64_t foreign, used[JUDGE_USES];
    uint64_t cut; /* packets that were cut, and the first of them */
    uint32_t cut_frame;
    uint16_t cut_file;
    ns_t cut_ts;
    bool arrives, stays, skewed[JUDGE_TAPS], compares[JUDGE_TAPS];
};

/* A part as bytes (part.c): write it, or read it into one whose findings are empty. */
void part_pack(struct pack *k, struct part *p);

#endif
