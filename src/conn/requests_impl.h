/* layer 2b (conn): what the files of struct req_dir share. */
#ifndef RDMATRACE_CONN_REQUESTS_IMPL_H
#define RDMATRACE_CONN_REQUESTS_IMPL_H

#include "src/conn/requests.h"

/* Whether every PSN up to and including `psn` is proved delivered. */
static inline bool req_dir_was_answered(const struct req_dir *h, uint32_t psn)
{
    return h->have_una && psn_diff(psn, h->una) < 0;
}

/* Advance h->contig over all PSNs that were seen. */
void req_dir_advance_contig(struct req_dir *h);

/* Clear `unsettled` once no PSN is missing and the PSN that the responder expects no longer depends on whether it
 * accepts packets out of order. */
static inline void req_dir_settle(struct req_dir *h)
{
    if (UNLIKELY(h->unsettled) && h->contig == h->next &&
        (h->gbn == h->next || (h->have_una && psn_diff(h->una, h->settles) >= 0)))
        h->unsettled = false;
}

#endif
