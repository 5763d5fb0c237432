/* layer 2b (conn): datagrams from one queue pair to another. */
#include "src/conn/ud_gaps.h"

#include "dissect/pkt.h"
#include "src/conn/packet.h"

#define FIRST_REORDERED (4 * NS_PER_MS) /* within this time the first datagrams may be reordered */

/* Whether a PSN before all PSNs seen was reordered; if not, the queue pair was reset. */
static bool is_before_all(const struct datagrams *d, const struct pkt *p)
{
    return psn_diff(d->start, p->bth.psn) <= DATAGRAMS_SEEN && p->frame->ts - d->begin < FIRST_REORDERED;
}

static enum seen_as seen_as(const struct datagrams *d, const struct pkt *p)
{
    uint32_t psn = p->bth.psn, at = psn % DATAGRAMS_SEEN;
    int32_t ahead = psn_diff(psn, d->next);

    if (!d->begun || ahead == 0)
        return SEEN_NEW;
    if (ahead > 0)
        return SEEN_GAP;
    if (d->seen[at].used && d->seen[at].psn == psn) {
        bool same = d->seen[at].icrc == icrc_of(p) && d->seen[at].ip_id == frame_ip_id(p);
        return same && (d->seen[at].ip_id || p->frame->ts - d->seen[at].ts < DUPLICATE_WITHIN) ? SEEN_COPY
                                                                                               : SEEN_RESTART;
    }
    return ahead >= -DATAGRAMS_SEEN && (psn_diff(psn, d->start) > 0 || is_before_all(d, p)) ? SEEN_LATE : SEEN_RESTART;
}

enum seen_as datagrams_take(struct datagrams *d, const struct pkt *p)
{
    enum seen_as as = seen_as(d, p);
    uint32_t psn = p->bth.psn, at = psn % DATAGRAMS_SEEN;

    d->gap = 0;
    if (as == SEEN_COPY)
        return as;
    if (as == SEEN_RESTART)
        *d = (struct datagrams){0};
    if (!d->begun) {
        d->begun = true;
        d->begin = p->frame->ts;
        d->start = d->next = psn;
    }
    if (as != SEEN_LATE) {
        d->passed = d->next;
        d->gap = (psn - d->next) & PSN_MASK;
        d->next = psn_add(psn, 1);
    } else if (psn_diff(psn, d->start) < 0) {
        d->passed = psn;
        d->gap = (d->start - psn) & PSN_MASK;
        d->start = psn;
    }
    d->seen[at].used = true;
    d->seen[at].ip_id = frame_ip_id(p);
    d->seen[at].psn = psn;
    d->seen[at].icrc = icrc_of(p);
    d->seen[at].ts = p->frame->ts;
    return as;
}
