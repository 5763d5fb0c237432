/* layer 3 (judge): the judge: counters of an adapter against the trace. */
#include "src/judge/judge_impl.h"

/* What is counted in the trace, for one host. */
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
    C_READ_RECEIVED,
    C_ATOMIC_RECEIVED,
    C_COUNT
};
_Static_assert((int)C_COUNT == JUDGE_COUNTS, "struct judge_host has room for each");

static const struct {
    const char *noun, *what; /* "packet", "sent" */
    /* true: the host cannot have counted fewer than the capture shows; false: it may have ignored received packets */
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
    [C_READ_RECEIVED] = {"READ request", "received", false},
    [C_ATOMIC_RECEIVED] = {"atomic request", "received", false},
};

/* Names of Linux drivers (mlx5, rxe, irdma, mana); counters with the same meaning are added up. */
static const struct {
    const char *name;
    uint8_t count;
} names[] = {
    {"np_cnp_sent", C_CNP_SENT},
    {"rp_cnp_handled", C_CNP_RECEIVED},
    {"rp_cnp_ignored", C_CNP_RECEIVED},
    {"np_ecn_marked_roce_packets", C_CE_RECEIVED},
    {"rx_icrc_encapsulated", C_ICRC_RECEIVED},
    {"packet_seq_err", C_SEQ_NAK_RECEIVED},
    {"rnr_nak_retry_err", C_RNR_NAK_RECEIVED},
    {"rx_read_requests", C_READ_RECEIVED},
    {"rx_atomic_requests", C_ATOMIC_RECEIVED},
    {"sent_pkts", C_SENT},
    {"rcvd_pkts", C_RECEIVED},
    {"rcvd_seq_err", C_SEQ_NAK_RECEIVED},
    {"rcvd_rnr_err", C_RNR_NAK_RECEIVED},
    {"send_rnr_err", C_RNR_NAK_SENT},
    {"cnpSent", C_CNP_SENT},
    {"cnpHandled", C_CNP_RECEIVED},
    {"cnpIgnored", C_CNP_RECEIVED},
    {"RxECNMrkd", C_CE_RECEIVED},
    {"requester_oos_nak", C_SEQ_NAK_RECEIVED},
};

/* --- Files of counters ------------------------------------------------------------------------ */

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* False: unknown name. */
static bool take_counter(struct judge_host *h, const char *name, size_t len, uint64_t value, bool before)
{
    for (unsigned i = 0; i < ARRAY_LEN(names); i++)
        if (strlen(names[i].name) == len && memcmp(names[i].name, name, len) == 0) {
            h->have[names[i].count] = true;
            h->value[names[i].count] += before ? -value : value;
            return true;
        }
    return false;
}

bool judge_counters(struct judge_host *h, const char *text, size_t len, bool before)
{
    const char *name = NULL, *end = text + len;
    size_t name_len = 0;
    bool any = false;

    for (const char *s = text, *from; s < end;) {
        uint64_t v = 0;
        bool digits = true;
        for (from = s; s < end && is_name(*s); s++) {
            digits &= *s >= '0' && *s <= '9';
            v = v * 10 + (uint64_t)(*s - '0');
        }
        if (s == from) {
            s++;
            continue;
        }
        if (digits && name)
            any |= take_counter(h, name, name_len, v, before);
        name = digits ? NULL : from;
        name_len = (size_t)(s - from);
    }
    return any;
}

/* --- The trace -------------------------------------------------------------------------------- */

static void count_sent(struct judge_host *h, const struct pkt *p)
{
    h->seen[C_SENT]++;
    h->seen[C_CNP_SENT] += !!(p->op->flags & OPF_CNP);
    h->seen[C_RNR_NAK_SENT] += p->have & H_AETH && response_type(p) == AETH_RNR;
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
    if (!(p->have & H_AETH))
        return;
    h->seen[C_RNR_NAK_RECEIVED] += response_type(p) == AETH_RNR;
    h->seen[C_SEQ_NAK_RECEIVED] += response_type(p) == AETH_NAK && aeth_value(p->aeth.syndrome) == NAK_PSN_SEQ;
}

void judge_count(struct judge *j, const struct pkt *p)
{
    struct conn_addr src, dst;

    if (LIKELY(!j->o.n_hosts))
        return;
    conn_addr_of(p, &src, &dst);
    for (unsigned i = 0; i < j->o.n_hosts; i++) {
        struct judge_host *h = &j->o.hosts[i];
        if (conn_addr_eq(&h->addr, &src))
            count_sent(h, p);
        if (conn_addr_eq(&h->addr, &dst))
            count_received(h, p);
    }
}

/* Whether every tap with packets of the host is at the host itself. */
static bool tap_is_there(const struct judge *j, const struct judge_host *h)
{
    uint32_t n = conn_counts(j->conns).flows;
    bool any = false;

    for (uint32_t i = 0; i < n; i++) {
        const struct flow *f = conn_flow_at(j->conns, i);
        bool from = conn_addr_eq(&f->src, &h->addr), to = conn_addr_eq(&f->dst, &h->addr);
        if (!(from || to) || !j->flows[i].dir)
            continue;
        if (!(judge_have(j, i, NULL) & (from ? N_TAP_REQ : N_TAP_RSP)))
            return false;
        any = true;
    }
    return any;
}

static void compare(struct judge *j, const struct judge_host *h, unsigned i, bool there)
{
    struct found f = found_of(RULE_CAP_05, FLOW_NONE);

    if (!h->have[i] || h->value[i] == h->seen[i] || (!counts[i].sent && h->value[i] < h->seen[i]))
        return;
    f.needs = N_COMPLETE | N_TAP_REQ; /* a tap at this host, whichever end it is */
    f.has = there ? N_TAP_REQ : 0;
    f.expected = say(j, "%s %s, as the trace shows", count_str(h->seen[i], counts[i].noun), counts[i].what);
    f.seen = say(j, "%llu by the adapter's counters", (unsigned long long)h->value[i]);
    f.text = "The trace does not hold all that this host sent or received between the two readings, or the adapter "
             "counts wrongly.";
    judge_found(j, NULL, f);
}

void judge_counters_end(struct judge *j)
{
    for (unsigned k = 0; k < j->o.n_hosts; k++) {
        const struct judge_host *h = &j->o.hosts[k];
        bool there = tap_is_there(j, h);
        judge_applies(j, ON_COUNTERS);
        for (unsigned i = 0; i < C_COUNT; i++)
            compare(j, h, i, there);
    }
}
