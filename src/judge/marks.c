/* layer 3 (judge): CE marks, and the CNPs that they require. */
#include "prng.h"
#include "src/judge/judge_impl.h"

/* Adapters wait some 4 ms at most between two CNPs, and may keep all queue pairs apart by one interval: so many marks,
 * in so many such intervals, lead to as many CNPs. A CNP may be lost, but hardly all of them; one arrives within so
 * long. */
#define MARKS_MIN       100
#define MARKS_INTERVALS 4
#define CNP_INTERVAL    (4 * NS_PER_MS)
#define CNP_WITHIN      (10 * NS_PER_MS)

uint64_t judge_addr_hash(const struct conn_addr *a, uint64_t more)
{
    return prng_mix(prng_mix(load_le64(a->b) ^ more) ^ load_le64(a->b + 8) ^ a->network);
}

/* The node with this address, as a sender of CNPs. */
static struct notifier *notifier_of(struct judge *j, uint32_t tap, const struct conn_addr *addr)
{
    struct notifier *n = &j->notifier[judge_addr_hash(addr, tap) % NOTIFIERS];

    if (!n->used)
        *n = (struct notifier){.used = true, .tap = tap, .addr = *addr};
    n->shared |= n->tap != tap || !conn_addr_eq(&n->addr, addr);
    return n;
}

/* The same, if it has sent any; what is known of it changes nothing. */
static struct notifier notifier_find(const struct judge *j, uint32_t tap, const struct conn_addr *addr)
{
    struct notifier n = j->notifier[judge_addr_hash(addr, tap) % NOTIFIERS];

    n.shared |= n.used && (n.tap != tap || !conn_addr_eq(&n.addr, addr));
    return n;
}

/* The marks on the way from `to` to `from`, which sends CNPs back. */
static struct marked_path *marked_path_of(struct judge *j, uint32_t tap, const struct conn_addr *from,
                                          const struct conn_addr *to)
{
    unsigned owner = conn_owner_in(from, to, tap >> 16);
    unsigned of_owner = judge_addr_hash(from, judge_addr_hash(to, tap)) % PATHS_OF_OWNER;
    struct marked_path *m = &j->marked_path[owner][of_owner];
    uint64_t bit = UINT64_C(1) << of_owner;

    if (!(j->marked[owner] & bit))
        *m = (struct marked_path){.tap = tap, .from = *from, .to = *to};
    j->marked[owner] |= bit;
    m->shared |= m->tap != tap || !conn_addr_eq(&m->from, from) || !conn_addr_eq(&m->to, to);
    return m;
}

/* True if the marked packet was certainly delivered: it was sent once, and a later PSN was acknowledged. A READ
 * response needs a tap at its receiver instead (N_TAP_REQ). */
static bool was_delivered(const struct judge *j, const struct ce_mark *m)
{
    struct req_dir *h = m->of == FLOW_NONE ? NULL : j->flows[m->of].dir;
    const struct sent *s = h && m->request ? req_dir_sent(h, m->psn) : NULL;
    bool once = h && (h->again == m->again || (s && s->copies == 1 && s->first == m->frame));

    return m->of != FLOW_NONE && (!m->request || (once && h->have_una && psn_diff(h->una, m->psn) > 0));
}

/* True if packets of the connection of flow `of` have changed their path: its CNPs may take another one as well. */
static bool has_other_paths(const struct judge *j, uint32_t of)
{
    uint32_t flows[] = {of, of == FLOW_NONE ? FLOW_NONE : j->flow[of].peer};

    for (unsigned i = 0; i < ARRAY_LEN(flows); i++)
        if (flows[i] != FLOW_NONE &&
            (j->flows[flows[i]].kind[KIND_REQ].path_changed || j->flows[flows[i]].kind[KIND_RSP].path_changed))
            return true;
    return false;
}

/* No CNP has come for all these marks. The node may have sent some to others meanwhile: then its interval may be one
 * for all of the adapter. */
static void unanswered(struct judge *j, struct marked_path *m)
{
    const struct notifier n = notifier_find(j, m->tap, &m->from);
    bool notified = n.cnps && n.cnp_ts >= m->first.ts, node_unknown = m->shared || n.shared;
    struct found f = found_of(RULE_CC_03, m->first.of);

    if (j->o.profile == PROFILE_RXE) /* it sends none */
        return;
    if (m->reported || node_unknown || notified || !was_delivered(j, &m->first) || has_other_paths(j, m->first.of))
        return;
    m->reported = true;
    j->file = (uint16_t)(m->tap >> 16);
    f.frame = m->first.frame;
    f.needs = m->first.request ? 0 : N_TAP_REQ;
    f.expected = "a CNP";
    f.seen = say(j, "%s marked CE in %.1f ms and no CNP within 10 ms", count_str(m->marks, "packet"),
                 (double)(m->latest - m->first.ts) / 1e6);
    f.text = "Their receiver does not tell the sender of congestion. Were CNPs filtered out of the capture?";
    judge_found(j, NULL, f);
}

/* It is `now`: is the answer overdue? If the mark that it was due for may not have been delivered, as the path behind
 * the tap may have failed since the first one, it is due for the next one. */
static void check_answer(struct judge *j, struct marked_path *m, ns_t now)
{
    if (!m->due || now <= m->due)
        return;
    if (was_delivered(j, &m->last))
        unanswered(j, m);
    else
        m->due = 0;
}

static struct ce_mark mark_of(const struct pkt *p, uint32_t of, const struct req_dir *h)
{
    return (struct ce_mark){.frame = frame_u32(p),
                            .psn = p->bth.psn,
                            .of = of,
                            .ts = p->frame->ts,
                            .request = p->op->flags & OPF_REQUEST,
                            .again = h ? h->again : 0};
}

void judge_mark(struct judge *j, const struct pkt *p, uint32_t flow, uint32_t of)
{
    const struct req_dir *h = of == FLOW_NONE ? NULL : j->flows[of].dir;
    struct conn_addr src, dst;
    struct marked_path *m;
    ns_t now = p->frame->ts;

    (void)flow;
    if (!(p->have & H_UDP))
        return; /* CNPs are those of RoCEv2 */
    conn_addr_of(p, &src, &dst);
    m = marked_path_of(j, conn_tap_of(p->frame), &dst, &src);
    check_answer(j, m, now);
    if (m->marks++ == 0) {
        m->first = mark_of(p, of, h);
        m->intervals = 0;
    }
    if (!m->intervals || now - m->begun >= CNP_INTERVAL) {
        m->intervals++;
        m->begun = now;
    }
    m->latest = now;
    if (m->due || m->marks < MARKS_MIN || m->intervals < MARKS_INTERVALS)
        return;
    m->last = mark_of(p, of, h);
    m->due = now + CNP_WITHIN;
}

void judge_notified(struct judge *j, const struct pkt *p)
{
    struct conn_addr src, dst;
    struct marked_path *m;
    struct notifier *n;

    conn_addr_of(p, &src, &dst);
    m = marked_path_of(j, conn_tap_of(p->frame), &src, &dst);
    n = notifier_of(j, conn_tap_of(p->frame), &src);
    check_answer(j, m, p->frame->ts);
    m->marks = 0;
    m->due = 0;
    n->cnps++;
    n->cnp_ts = p->frame->ts;
}

void judge_marks_end(struct judge *j)
{
    for (unsigned owner = 0; owner < CONN_OWNERS; owner++)
        for (uint64_t left = j->marked[owner]; left; left &= left - 1) {
            unsigned of_owner = (unsigned)__builtin_ctzll(left);
            struct marked_path *m = &j->marked_path[owner][of_owner];
            ns_t end = 0;
            judge_share_at(j, PHASE_MARKS, owner * PATHS_OF_OWNER + of_owner, 0, 0);
            if (stamps_ended(&j->stamps, m->tap, &end))
                check_answer(j, m, end);
        }
}
