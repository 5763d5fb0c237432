/* layer 3 (judge): at the end of the capture: ECN of queue pairs of one class compared with each other, the marks of a
 * packet between two taps; how evenly queue pairs that send to one destination share its rate. */
#include "src/judge/judge_impl.h"

#include <stdlib.h>

struct flow_fact judge_flow_fact(const struct judge *j, uint32_t i)
{
    const struct jflow *f = &j->flows[i];
    const struct flow *c = &j->flow[i];
    const struct req_dir *h = f->dir;
    const struct kind_state *k = &f->kind[KIND_REQ];
    struct flow_fact x = {.src = c->src, .dst = c->dst, .tap = c->tap, .dqpn = c->dqpn, .conn = c->conn};

    x.first_frame = f->first_frame;
    x.first_frame_ts = f->first_ts;
    x.has_ecn = h && h->bytes && k->seen && k->ect.have && !k->ect.pending;
    x.capable = x.has_ecn && k->ect.value;
    x.dscp = x.has_ecn ? k->dscp.value : 0;
    x.has_share = h && h->bytes && h->last_ts > h->first_ts;
    if (x.has_share) {
        x.first = h->first_ts;
        x.last = h->last_ts;
        x.bytes = h->bytes;
    }
    x.ce = f->ce_frame != 0;
    x.plain = k->ect.have && !k->ect.pending && !k->ect.value && !f->ce;
    if (j->share)
        judge_psn_fact(j, i, &x);
    return x;
}

/* Requests with data in one class at a tap: how many flows are ECN-capable, and how many are not. */
struct ecn_class {
    uint32_t tap, dscp, capable, incapable;
    const struct flow_fact *first; /* the first that is not */
};
#define ECN_CLASSES 64

/* Count a flow in its class; false: there are more classes than are kept. */
static bool count_ecn(struct ecn_class *c, unsigned *n, const struct flow_fact *f)
{
    unsigned i = 0;

    while (i < *n && (c[i].tap != f->tap || c[i].dscp != f->dscp))
        i++;
    if (i == ECN_CLASSES)
        return false;
    if (i == *n)
        c[(*n)++] = (struct ecn_class){.tap = f->tap, .dscp = f->dscp};
    if (f->capable) {
        c[i].capable++;
    } else if (c[i].incapable++ == 0) {
        c[i].first = f;
    }
    return true;
}

void judge_ecn_classes(struct judge *j, const struct flow_fact *facts, uint32_t n_facts)
{
    struct ecn_class classes[ECN_CLASSES];
    unsigned n = 0;

    for (uint32_t i = 0; i < n_facts; i++)
        if (facts[i].has_ecn && !count_ecn(classes, &n, &facts[i]))
            return;
    for (unsigned i = 0; i < n; i++)
        if (classes[i].capable && classes[i].incapable)
            judge_note_fact(j, RULE_CC_10, classes[i].first,
                            say(j, "%u of %u with DSCP %u", classes[i].incapable,
                                classes[i].incapable + classes[i].capable, classes[i].dscp),
                            "A congested switch drops their packets where it marks those of the others, unless it "
                            "changed the field before the tap.");
}

/* True if requests pass the tap of flow `x` before that of `y`. Time stamps do not tell: a file may be merged of those
 * of two hosts. */
static bool is_upstream(const struct judge *j, uint32_t x, uint32_t y)
{
    return judge_have(j, x, NULL) & N_TAP_REQ && judge_have(j, y, NULL) & N_TAP_RSP;
}

/* Flow `x` has a request marked CE; `y` is the same flow at another tap. */
static void compare_taps(struct judge *j, uint32_t x, uint32_t y)
{
    struct jflow *f = &j->flows[x], *g = &j->flows[y];
    const struct steady *ect = &g->kind[KIND_REQ].ect;
    struct sent *a = f->dir ? req_dir_sent(f->dir, f->ce_psn) : NULL;
    struct sent *b = g->dir ? req_dir_sent(g->dir, f->ce_psn) : NULL;
    struct found found = found_of(RULE_CC_11, x);
    bool comparable = a && b && a->copies == 1 && b->copies == 1, ecn_known = ect->have && !ect->pending;
    bool cleared;

    if (!comparable || !ecn_known || g->ce || conn_flow_has_paths(j->conns, x))
        return; /* along another path a flow may have another codepoint */
    cleared = is_upstream(j, x, y);
    if (!cleared && ect->value)
        return; /* marked between the two, as it should be */
    found.frame = f->ce_frame;
    found.wrong = cleared ? "the mark CE of a packet is lost on the way: {seen}, expected {expected}"
                          : "a packet that is not ECN-capable was marked CE: {seen}, expected {expected}";
    found.expected = cleared ? "CE at all taps behind" : "Not-ECT, or no packet";
    found.seen = cleared ? say(j, "%s at another tap", ect->value ? "ECT" : "Not-ECT") : "CE";
    found.text = cleared ? "No switch may clear it: the receiver does not learn of the congestion."
                         : "At another tap no packet of the flow is ECN-capable: a switch may drop these, not mark "
                           "them.";
    judge_found(j, NULL, found);
}

void judge_marked_taps(struct judge *j)
{
    struct conn_counts c = conn_counts(j->conns);

    for (uint32_t i = 0; i < c.flows; i++) {
        uint32_t other = j->flows[i].ce_frame ? conn_flow_alike(j->conns, i, 0) : FLOW_NONE;
        judge_share_flow(j, PHASE_TAPS, i);
        for (; other != FLOW_NONE; other = conn_flow_alike(j->conns, i, other + 1))
            if (other != i)
                compare_taps(j, i, other);
    }
}

/* --- Fairness --------------------------------------------------------------------------------- */

/* So many senders, for so long, say something. */
#define FAIR_FLOWS 3
#define FAIR_TIME  (50 * NS_PER_MS)

static double gbps(uint64_t bytes, ns_t time)
{
    return time > 0 ? (double)bytes * 8 / (double)time : 0;
}

/* The payload that one queue pair sent to a destination. */
struct sent_to {
    uint32_t tap;
    struct conn_addr dst;
    ns_t first, last;
    uint64_t bytes;
};

static int by_destination(const void *x, const void *y)
{
    const struct sent_to *a = x, *b = y;
    int d = a->tap != b->tap ? (a->tap < b->tap ? -1 : 1) : memcmp(&a->dst, &b->dst, 16);

    return d ? d : (a->bytes < b->bytes) - (a->bytes > b->bytes);
}

/* True if `a` sent during at least half of the time in which `b` sent. */
static bool together(const struct sent_to *a, const struct sent_to *b)
{
    ns_t from = a->first > b->first ? a->first : b->first, to = a->last < b->last ? a->last : b->last;
    ns_t all = b->last - b->first;

    return to - from >= all - all / 2;
}

/* Jain's index of the senders `s` (`n`, sorted by bytes, most first) to one destination that sent at the same time
 * as the first. */
static void note_shares(struct judge *j, const struct sent_to *s, uint32_t n)
{
    double sum = 0, squares = 0, low = 0, high = 0;
    uint32_t count = 0;

    for (uint32_t i = 0; i < n; i++) {
        double r = gbps(s[i].bytes, s[i].last - s[i].first);
        if (!together(s, &s[i]))
            continue;
        low = count && low < r ? low : r;
        high = high > r ? high : r;
        sum += r;
        squares += r * r;
        count++;
    }
    if (count < FAIR_FLOWS || s->last - s->first < FAIR_TIME)
        return;
    j->file = (uint16_t)(s->tap >> 16);
    judge_note(j, RULE_CC_08, FLOW_NONE, 0,
               say(j, "Jain's index %.3f of %u queue pairs to one destination, %.6f to %.6f Gbit/s",
                   sum * sum / (count * squares), count, low, high),
               "1 is perfectly fair, 1/n is all for one. Payload, of queue pairs that send at the same time, if their "
               "programs "
               "want as much.");
}

void judge_fairness(struct judge *j, const struct flow_fact *facts, uint32_t n_facts)
{
    struct sent_to *s = judge_wants(j, RULE_CC_08) && n_facts > 1 ? malloc(n_facts * sizeof *s) : NULL;
    uint32_t n = 0;

    for (uint32_t i = 0; s && i < n_facts; i++) {
        const struct flow_fact *f = &facts[i];
        if (f->has_share)
            s[n++] = (struct sent_to){f->tap, f->dst, f->first, f->last, f->bytes};
    }
    if (n)
        qsort(s, n, sizeof *s, by_destination);
    for (uint32_t i = 0, k; i < n; i = k) {
        for (k = i + 1; k < n && s[k].tap == s[i].tap && conn_addr_eq(&s[k].dst, &s[i].dst); k++)
            ;
        note_shares(j, s + i, k - i);
    }
    free(s);
}
