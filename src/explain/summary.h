/* layer 3 (explain): incidents that are alike as one statement, and what they cost together. */
#ifndef RDMATRACE_EXPLAIN_SUMMARY_H
#define RDMATRACE_EXPLAIN_SUMMARY_H

#include "src/explain/explain.h"

/* Incidents of one cause, place and hypothesis. */
struct group {
    uint8_t cause, place, sentence;
    uint32_t n;       /* incidents */
    uint64_t more;    /* further occurrences, see incident.times */
    uint32_t *of;     /* indices of the incidents, worst first */
    uint32_t conns;   /* connections; 0: none */
    ns_t bill;        /* lost time of all */
    ns_t least, most; /* of one incident */
    ns_t first, last; /* start of the first and of the last one */
    ns_t states[TIME_STATES];
    bool one_src, one_dst; /* all requesters, all responders have the same address */
};

struct summary {
    struct group *groups; /* worst first */
    uint32_t n;
    uint32_t incidents;  /* in all groups */
    ns_t lost, time;     /* lost time, and all time, of the connections shown */
    uint32_t conns, hit; /* connections; those with lost time */
};

/* Group the incidents that `o` shows. False: no memory. */
bool summary_make(struct summary *s, struct explainer *x, const struct explain_opts *o);
void summary_free(struct summary *s);
/* Append about ten lines: the verdict, the cost by cause, the most expensive incidents. */
void summary_put(const struct summary *s, const struct explainer *x, const struct explain_opts *o, struct buf *b);
/* Append the heading of a group of several incidents: what they have in common. */
void group_put(const struct group *g, const struct explainer *x, const struct explain_opts *o, struct buf *b);

#endif
