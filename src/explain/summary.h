/* layer 3 (explain): incidents that are alike as one statement, and what they cost together. */
#ifndef RDMATRACE_EXPLAIN_SUMMARY_H
#define RDMATRACE_EXPLAIN_SUMMARY_H

#include "src/explain/explain.h"

/* Incidents of one cause, place and hypothesis. */
struct group {
    uint8_t cause, place, sentence;
    uint32_t n;       /* incidents */
    uint64_t more;    /* occurrences beside them, see incident.times */
    uint32_t *of;     /* their indices, worst first */
    uint32_t conns;   /* connections; 0: they are of none */
    ns_t bill;        /* lost time, all together */
    ns_t least, most; /* of one incident */
    ns_t first, last; /* when the first and the last one began */
    ns_t states[TIME_STATES];
    bool one_src, one_dst; /* all requesters, all responders have the same address */
};

struct summary {
    struct group *groups; /* worst first */
    uint32_t n;
    uint32_t incidents;  /* in all groups */
    ns_t lost, time;     /* of the connections shown: lost time, and all their time */
    uint32_t conns, hit; /* connections; those that lost time */
};

/* Group what is shown with `o`. False without memory. */
bool summary_make(struct summary *s, struct explainer *x, const struct explain_opts *o);
void summary_free(struct summary *s);
/* Append about ten lines: the verdict, what cost how much, the worst moments. */
void summary_put(const struct summary *s, const struct explainer *x, const struct explain_opts *o, struct buf *b);
/* Append the head of a group of several incidents: what is common to them. */
void group_put(const struct group *g, const struct explainer *x, const struct explain_opts *o, struct buf *b);

#endif
