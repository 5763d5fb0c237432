/* layer 3 (judge): counters of an adapter compared with the capture. */
#include "src/judge/judge_impl.h"

/* What is counted in the capture, for each host. */
enum {
    C_SENT,
    C_RECEIVED,
    C_CNP_SENT,
    C_CNP_RECEIVED,
    C_CE_RECEIVED,
    C_ICRC_RECEIVED,
    C_SEQ_NAK_RECEIVED,
    C_RNR_NAK_RECEIVED,
    C_RNR_NAK_SENT,
    C_SEQ_NAK_SENT,
    C_READ_RECEIVED,
    C_ATOMIC_RECEIVED,
    C_COUNT
};
_Static_assert((int)C_COUNT == JUDGE_COUNTS, "struct judge_host has room for each");

static const struct {
    const char *noun, *what; /* "packet", "sent" */
    /* true: the adapter must count at least what the capture shows; false: it may have dropped received packets */
    bool sent;
} counts[C_COUNT] = {
    [C_SENT] = {"packet", "sent", true},
    [C_RECEIVED] = {"packet", "received", false},
    [C_CNP_SENT] = {"CNP", "sent", true},
    [C_CNP_RECEIVED] = {"CNP", "received", false},
    [C_CE_RECEIVED] = {"packet", "marked CE received", false},
    [C_ICRC_RECEIVED] = {"packet", "with a wrong ICRC received", false},
    [C_SEQ_NAK_RECEIVED] = {"sequence NAK", "received", false},
    [C_RNR_NAK_RECEIVED] = {"RNR NAK", "received", false},
    [C_RNR_NAK_SENT] = {"RNR NAK", "sent", true},
    [C_SEQ_NAK_SENT] = {"sequence NAK", "sent", true},
    [C_READ_RECEIVED] = {"READ request", "received", false},
    [C_ATOMIC_RECEIVED] = {"atomic request", "received", false},
};

/* The count (C_*) that the counters of a concept are compared with; C_COUNT: none. */
static unsigned count_of(enum counter_concept concept)
{
    static const uint8_t by_concept[COUNTED_CONCEPTS] = {
        [COUNTED_SENT] = C_SENT + 1,
        [COUNTED_RECEIVED] = C_RECEIVED + 1,
        [COUNTED_CNP_SENT] = C_CNP_SENT + 1,
        [COUNTED_CNP_RECEIVED] = C_CNP_RECEIVED + 1,
        [COUNTED_CE_RECEIVED] = C_CE_RECEIVED + 1,
        [COUNTED_ICRC_RECEIVED] = C_ICRC_RECEIVED + 1,
        [COUNTED_SEQ_NAK_RECEIVED] = C_SEQ_NAK_RECEIVED + 1,
        [COUNTED_RNR_NAK_RECEIVED] = C_RNR_NAK_RECEIVED + 1,
        [COUNTED_RNR_NAK_SENT] = C_RNR_NAK_SENT + 1,
        [COUNTED_SEQ_NAK_SENT] = C_SEQ_NAK_SENT + 1,
        [COUNTED_READ_RECEIVED] = C_READ_RECEIVED + 1,
        [COUNTED_ATOMIC_RECEIVED] = C_ATOMIC_RECEIVED + 1,
    };

    return by_concept[concept] ? by_concept[concept] - 1u : C_COUNT;
}

/* --- The capture ------------------------------------------------------------------------------ */

static bool is_sequence_nak(const struct pkt *p)
{
    return p->have & H_AETH && response_type(p) == AETH_NAK && aeth_value(p->aeth.syndrome) == NAK_PSN_SEQ;
}

static void count_sent(struct judge_host *h, const struct pkt *p)
{
    h->seen[C_SENT]++;
    h->seen[C_CNP_SENT] += !!(p->op->flags & OPF_CNP);
    h->seen[C_RNR_NAK_SENT] += p->have & H_AETH && response_type(p) == AETH_RNR;
    h->seen[C_SEQ_NAK_SENT] += is_sequence_nak(p);
}

static void count_received(struct judge_host *h, const struct pkt *p)
{
    if (p->icrc == CRC_BAD) {
        h->seen[C_ICRC_RECEIVED]++;
        return;
    }
    h->seen[C_RECEIVED]++;
    h->seen[C_CNP_RECEIVED] += !!(p->op->flags & OPF_CNP);
    h->seen[C_CE_RECEIVED] += p->have & (H_IP4 | H_IP6) && (p->tos & 3) == 3;
    h->seen[C_READ_RECEIVED] += !!(p->op->flags & OPF_READ_REQ);
    h->seen[C_ATOMIC_RECEIVED] += !!(p->op->flags & OPF_ATOMIC_REQ);
    h->seen[C_RNR_NAK_RECEIVED] += p->have & H_AETH && response_type(p) == AETH_RNR;
    h->seen[C_SEQ_NAK_RECEIVED] += is_sequence_nak(p);
}

void judge_count(struct judge *j, const struct pkt *p)
{
    struct conn_addr src, dst;

    if (LIKELY(!j->o.n_hosts))
        return;
    conn_addr_of(p, &src, &dst);
    for (unsigned i = 0; i < j->o.n_hosts; i++) {
        struct judge_host *h = &j->o.hosts[i];
        if (conn_addr_alike(&h->addr, &src))
            count_sent(h, p);
        if (conn_addr_alike(&h->addr, &dst))
            count_received(h, p);
    }
}

/* True if every tap with packets of the host is at the host itself. */
static bool tap_is_at_host(const struct judge *j, const struct judge_host *h)
{
    uint32_t n = conn_counts(j->conns).flows;
    bool any = false;

    for (uint32_t i = 0; i < n; i++) {
        const struct flow *f = &j->flow[i];
        bool from = conn_addr_alike(&f->src, &h->addr), to = conn_addr_alike(&f->dst, &h->addr);
        if (!(from || to) || !j->flows[i].dir)
            continue;
        if (!(judge_have(j, i, NULL) & (from ? N_TAP_REQ : N_TAP_RSP)))
            return false;
        any = true;
    }
    return any;
}

/* What the adapter counted of a concept, and the count (C_*) that it is compared with; C_COUNT: with none. */
static unsigned counted(const struct judge_host *h, enum counter_concept concept, struct counter_sum *sum)
{
    counter_added(h->has_before ? &h->before : NULL, &h->after, concept, sum);
    return sum->names.len && sum->exact ? count_of(concept) : C_COUNT;
}

static void compare(struct judge *j, const struct judge_host *h, enum counter_concept concept, bool at_host)
{
    struct found f = found_of(RULE_CAP_05, FLOW_NONE);
    struct counter_sum sum;
    unsigned i = counted(h, concept, &sum);
    uint64_t value = sum.added;

    buf_free(&sum.names);
    if (i == C_COUNT || value == h->seen[i] || (!counts[i].sent && value < h->seen[i]))
        return;
    f.needs = N_COMPLETE | N_TAP_REQ; /* a tap at this host, whichever end it is */
    f.has = at_host ? N_TAP_REQ : 0;
    f.expected = say(j, "%s %s, as the trace shows", count_str(h->seen[i], counts[i].noun), counts[i].what);
    f.seen = say(j, "%llu by the adapter's counters", (unsigned long long)value);
    f.text = "The trace does not hold all that this host sent or received between the two readings, or the adapter "
             "counts wrongly.";
    judge_found(j, NULL, f);
}

void judge_counters_end(struct judge *j)
{
    for (unsigned k = 0; k < j->o.n_hosts; k++) {
        const struct judge_host *h = &j->o.hosts[k];
        bool at_host = tap_is_at_host(j, h);
        judge_applies(j, ON_COUNTERS);
        for (unsigned c = 0; c < COUNTED_CONCEPTS; c++)
            compare(j, h, (enum counter_concept)c, at_host);
    }
}

const struct judge_host *judge_host(const struct judge *j, unsigned i)
{
    return &j->o.hosts[i];
}

void judge_counted(const struct judge_host *h, void (*take)(void *user, const struct judge_counted *c), void *user)
{
    for (unsigned k = 0; k < COUNTED_CONCEPTS; k++) {
        struct counter_sum sum;
        unsigned i = counted(h, (enum counter_concept)k, &sum);
        struct judge_counted c = {.names = buf_str(&sum.names), .counted = sum.added, .verdict = "not compared"};
        if (i < C_COUNT) {
            c.comparable = true;
            c.seen = h->seen[i];
            c.verdict = c.counted == c.seen ? "exact" : c.counted > c.seen ? "over" : c.counted ? "under" : "stuck";
        }
        if (sum.names.len)
            take(user, &c);
        buf_free(&sum.names);
    }
}
