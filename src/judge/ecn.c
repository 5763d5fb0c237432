/* layer 3 (judge): ECN at the end of the capture: queue pairs of one class compared with each other, the marks of a
 * packet between two taps. */
#include "src/judge/judge_impl.h"

/* Requests with data in one class at a tap: how many flows are ECN-capable, and how many are not. */
struct ecn_class {
    uint32_t tap, dscp, capable, incapable;
    uint32_t flow; /* the first that is not */
};
#define ECN_CLASSES 64

/* Count a flow in its class; false: there are more classes than are kept. */
static bool count_ecn(struct ecn_class *c, unsigned *n, const struct jflow *f, const struct flow *a, uint32_t flow)
{
    const struct kind_state *k = &f->kind[KIND_REQ];
    unsigned i = 0;

    while (i < *n && (c[i].tap != a->tap || c[i].dscp != k->dscp.value))
        i++;
    if (i == ECN_CLASSES)
        return false;
    if (i == *n)
        c[(*n)++] = (struct ecn_class){.tap = a->tap, .dscp = k->dscp.value, .flow = FLOW_NONE};
    if (k->ect.value) {
        c[i].capable++;
    } else if (c[i].incapable++ == 0) {
        c[i].flow = flow;
    }
    return true;
}

/* Queue pairs whose data is not ECN-capable, among others of the same class that are. */
static void note_ecn(struct judge *j)
{
    struct ecn_class classes[ECN_CLASSES];
    struct conn_counts c = conn_counts(j->conns);
    unsigned n = 0;

    for (uint32_t i = 0; i < c.flows; i++) {
        const struct jflow *f = &j->flows[i];
        const struct kind_state *k = &f->kind[KIND_REQ];
        bool has_data = f->dir && f->dir->bytes, ecn_known = k->seen && k->ect.have && !k->ect.pending;
        if (has_data && ecn_known && !count_ecn(classes, &n, f, &j->flow[i], i))
            return;
    }
    for (unsigned i = 0; i < n; i++)
        if (classes[i].capable && classes[i].incapable)
            judge_note(j, RULE_CC_10, classes[i].flow, j->flows[classes[i].flow].first_frame,
                       say(j, "%u of %u with DSCP %u", classes[i].incapable, classes[i].incapable + classes[i].capable,
                           classes[i].dscp),
                       "A congested switch drops their packets where it marks those of the others, unless it changed "
                       "the field before the tap.");
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

    if (!comparable || !ecn_known || g->ce)
        return;
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

void judge_ecn_end(struct judge *j)
{
    struct conn_counts c = conn_counts(j->conns);
    uint32_t taps[JUDGE_TAPS];
    unsigned n = 0;

    note_ecn(j);
    for (uint32_t i = 0; i < c.flows; i++) {
        unsigned k = 0;
        while (k < n && taps[k] != j->flow[i].tap)
            k++;
        if (k == n && n < JUDGE_TAPS)
            taps[n++] = j->flow[i].tap;
    }
    for (uint32_t i = 0; i < c.flows && n > 1; i++)
        for (unsigned k = 0; k < n && j->flows[i].ce_frame; k++) {
            const struct flow *f = &j->flow[i];
            uint32_t other =
                taps[k] == f->tap ? FLOW_NONE : conn_flow_named(j->conns, taps[k], &f->src, &f->dst, f->dqpn);
            if (other != FLOW_NONE)
                compare_taps(j, i, other);
        }
}
