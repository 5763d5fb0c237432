/* layer 3 (judge): rules about congestion: CNPs, CE marks, rates. */
#include "src/judge/judge_impl.h"

#include <stdlib.h>

/* a CE mark leads to a CNP within microseconds: a CNP this much later does not answer a mark from before the capture */
#define CNP_LATE (10 * NS_PER_MS)

/* a CNP within this time before or after a mark answers it: adapters wait some 4 ms at most between two CNPs */
#define CNP_WITHIN (10 * NS_PER_MS)

/* the first mark is answered at once */
#define FIRST_CNP_WITHIN NS_PER_MS

/* --- CE marks and the CNPs that they require -------------------------------------------------- */

static struct notifier *notifier_of(struct judge *j, uint32_t tap, const struct conn_addr *addr)
{
    uint64_t key = (load_le64(addr->b) ^ load_le64(addr->b + 8) ^ addr->network ^ tap) * HASH_MULTIPLIER;
    struct notifier *n = &j->notifier[(key >> 32) % NOTIFIERS];

    if (!n->used)
        *n = (struct notifier){.used = true, .tap = tap, .addr = *addr};
    n->shared |= n->tap != tap || !conn_addr_eq(&n->addr, addr);
    return n;
}

/* No CNP was sent for the oldest waiting mark. */
static void missed(struct notifier *n)
{
    if (n->missed_n++ == 0)
        n->missed = n->wait;
    n->wait.frame = 0;
}

void judge_mark(struct judge *j, const struct pkt *p, uint32_t flow, uint32_t of)
{
    struct conn_addr src, dst;
    struct notifier *n;

    conn_addr_of(p, &src, &dst);
    n = notifier_of(j, conn_tap_of(p->frame), &dst);
    if (j->flows[flow].ce_data++ == 0)
        j->flows[flow].ce_ts = p->frame->ts;
    if (n->wait.frame && p->frame->ts - n->wait.ts > CNP_WITHIN)
        missed(n);
    if (n->wait.frame || (n->cnps && p->frame->ts - n->cnp_ts <= CNP_WITHIN))
        return;
    n->wait = (struct ce_mark){
        .frame = frame_u32(p), .psn = p->bth.psn, .of = of, .request = p->op->flags & OPF_REQUEST, .ts = p->frame->ts};
}

static void notified(struct judge *j, const struct pkt *p)
{
    struct conn_addr src, dst;
    struct notifier *n;

    conn_addr_of(p, &src, &dst);
    n = notifier_of(j, conn_tap_of(p->frame), &src);
    if (n->wait.frame && p->frame->ts - n->wait.ts > CNP_WITHIN)
        missed(n);
    n->wait.frame = 0;
    n->cnps++;
    n->cnp_ts = p->frame->ts;
}

/* True if the marked packet was certainly delivered: it was sent once, and a later PSN was acknowledged. A READ
 * response needs a tap at its receiver instead (N_TAP_REQ). */
static bool was_delivered(const struct judge *j, const struct ce_mark *m)
{
    struct req_dir *h = j->flows[m->of].dir;
    const struct sent *s = h && m->request ? req_dir_sent(h, m->psn) : NULL;

    return !m->request || (s && s->copies == 1 && s->first == m->frame && h->have_una && psn_diff(h->una, m->psn) > 0);
}

/* Report nodes that send CNPs, but not for every mark. */
void judge_marks_end(struct judge *j)
{
    for (unsigned i = 0; i < NOTIFIERS; i++) {
        struct notifier *n = &j->notifier[i];
        uint32_t iface = n->tap & 0xffff;
        if (n->wait.frame && iface < JUDGE_TAPS && j->last_ts[iface] - n->wait.ts > CNP_WITHIN)
            missed(n);
        if (!n->missed_n || !n->cnps || n->shared || n->missed.of == FLOW_NONE || !was_delivered(j, &n->missed))
            continue;
        j->file = (uint16_t)(n->tap >> 16);
        judge_found(j, NULL,
                    (struct found){.rule = RULE_CC_03,
                                   .severity = SEV_W,
                                   .flow = n->missed.of,
                                   .frame = n->missed.frame,
                                   .needs = N_COMPLETE | (n->missed.request ? N_TAP_RSP : N_TAP_REQ),
                                   .expected = "a CNP within 10 ms of the mark",
                                   .seen = say(j, "none; so with %s", count_str(n->missed_n, "mark")),
                                   .text = "The receiver of this packet sends CNPs, but none for this mark, neither "
                                           "shortly before nor after it."});
    }
}

/* True if the node that receives the packets of `flow` sent CNPs, for any queue pair. */
static bool sends_cnps(struct judge *j, uint32_t flow)
{
    const struct flow *f = &j->flow[flow];
    const struct notifier *n = notifier_of(j, f->tap, &f->dst);

    return n->cnps || n->shared;
}

/* --- CNPs ------------------------------------------------------------------------------------- */

/* A malformed CNP. */
static void cnp_bad(struct judge *j, const struct pkt *p, uint32_t flow, const char *wrong, const char *expected,
                    const char *seen, const char *text)
{
    struct found f = found_of(RULE_CC_01, flow);

    f.wrong = wrong;
    f.expected = expected;
    f.seen = seen;
    f.text = text;
    judge_found(j, p, f);
}

/* A CNP for a queue pair without traffic so far: at the end, qp_is_known() decides. */
static void keep_unknown_cnp(struct judge *j, const struct pkt *p)
{
    struct unknown_cnp *c = &j->unknown_cnp[j->n_unknown_cnp % UNKNOWN_CNPS];
    uint32_t iface = p->frame->iface;

    j->n_unknown_cnp++;
    *c = (struct unknown_cnp){.frame = frame_u32(p), .tap = conn_tap_of(p->frame), .qpn = p->bth.dqpn};
    c->early = iface >= JUDGE_TAPS || !p->frame->has_ts || p->frame->ts - j->first_ts[iface] < CNP_LATE;
    conn_addr_of(p, &c->src, &c->dst);
}

/* Note how many payload bytes `flow` has carried when its sender gets a CNP. */
static void mark_rate(struct judge *j, const struct pkt *p, uint32_t flow)
{
    struct jflow *f = flow == FLOW_NONE ? NULL : &j->flows[flow];

    if (!f || !f->dir)
        return;
    f->cnp_last = (struct rate_mark){.frame = frame_u32(p), .ts = p->frame->ts, .bytes = f->dir->bytes};
    if (!f->cnp_first.frame)
        f->cnp_first = f->cnp_last;
}

void judge_cnp_malformed(struct judge *j, const struct pkt *p)
{
    notified(j, p);
    judge_bad(j, p, RULE_CC_01, "16 reserved bytes", p->why, "A CNP is a BTH and 16 bytes.");
}

void judge_cnp(struct judge *j, const struct pkt *p)
{
    uint32_t flow = conn_flow_find(j->conns, p), sum = 0;
    struct jflow *f = flow == FLOW_NONE ? NULL : &j->flows[flow];
    bool wrong_bits = p->bth.se || p->bth.ackreq || p->bth.fecn || (p->bth.migreq && j->o.profile != PROFILE_NV);

    notified(j, p);
    judge_applies(j, ON_CNP);
    for (uint32_t i = 0; i < p->payload_cap; i++)
        sum |= p->data[p->payload_off + i];
    if (p->bth.psn || wrong_bits || sum)
        cnp_bad(j, p, flow, NULL, "PSN 0, no SE, AckReq, FECN or MigReq, 16 zero bytes",
                say(j, "PSN %u, SE %u, AckReq %u, FECN %u, MigReq %u%s", p->bth.psn, p->bth.se, p->bth.ackreq,
                    p->bth.fecn, p->bth.migreq, sum ? ", other bytes" : ""),
                "A CNP is empty but for the queue pair it is for.");
    if (!f) {
        keep_unknown_cnp(j, p);
        return;
    }
    if (f->pkey.have && !f->pkey.pending && ((f->pkey.value ^ p->bth.pkey) & 0x7fff))
        cnp_bad(j, p, flow, "the CNP has P_Key {seen}, expected {expected}", say(j, "P_Key 0x%04x", f->pkey.value),
                say(j, "0x%04x", p->bth.pkey), "A CNP carries the P_Key of the packet that was marked.");
    if (f->cnps && (!f->cnp_gap || p->frame->ts - f->cnp_ts < f->cnp_gap))
        f->cnp_gap = p->frame->ts - f->cnp_ts;
    if (f->cnps++ == 0)
        f->cnp_frame = frame_u32(p);
    f->cnp_ts = p->frame->ts;
    mark_rate(j, p, j->flow[flow].peer);
}

/* --- CNPs for queue pairs without traffic ----------------------------------------------------- */

static void report_unknown_cnp(struct judge *j, const struct unknown_cnp *c, unsigned lacks)
{
    struct found f = found_of(RULE_CC_02, FLOW_NONE);

    j->file = (uint16_t)(c->tap >> 16);
    f.frame = c->frame;
    f.has = (N_RSP | N_START) & ~lacks;
    f.lacks = lacks;
    f.expected = "a queue pair that has sent to this node";
    f.seen = say(j, "QP 0x%06x", c->qpn);
    f.text = "No packet of that queue pair was seen, nor any other for it.";
    judge_found(j, NULL, f);
}

/* True if the queue pair that a CNP is addressed to sent or received packets. Needs (N_*) that are missing for a
 * certain result are added to *lacks. */
static bool qp_is_known(struct judge *j, const struct unknown_cnp *c, unsigned *lacks)
{
    struct conn_counts n = conn_counts(j->conns);

    if (conn_flow_named(j->conns, c->tap, &c->src, &c->dst, c->qpn) != FLOW_NONE ||
        ud_source_seen(j, c->tap, &c->dst, c->qpn))
        return true;
    if (n.evicted || j->ud_from_lost)
        *lacks |= N_RSP;
    for (uint32_t i = 0; i < n.flows; i++) {
        const struct flow *f = &j->flow[i];
        if (f->tap != c->tap || !conn_addr_eq(&f->src, &c->dst) || !conn_addr_eq(&f->dst, &c->src))
            continue;
        if (f->have_sqpn && f->sqpn == c->qpn)
            return true;
        *lacks |= f->have_sqpn ? 0 : N_RSP; /* the sender of these packets is not known */
    }
    return false;
}

void judge_unknown_cnps(struct judge *j)
{
    for (unsigned i = 0; i < UNKNOWN_CNPS; i++) {
        const struct unknown_cnp *c = &j->unknown_cnp[i];
        unsigned lacks = c->early ? N_START : 0;
        if (c->frame && !qp_is_known(j, c, &lacks))
            report_unknown_cnp(j, c, lacks);
    }
}

/* --- Rates ------------------------------------------------------------------------------------ */

static double gbps(uint64_t bytes, ns_t time)
{
    return time > 0 ? (double)bytes * 8 / (double)time : 0;
}

static void note_rate(struct judge *j, uint32_t flow, const struct jflow *f)
{
    const struct req_dir *h = f->dir;
    const struct rate_mark *a = &f->cnp_first, *b = &f->cnp_last;
    double before, during, after;

    if (!h || !a->frame || a->ts <= h->first_ts || h->last_ts <= b->ts)
        return;
    before = gbps(a->bytes, a->ts - h->first_ts);
    during = gbps(b->bytes - a->bytes, b->ts - a->ts);
    after = gbps(h->bytes - b->bytes, h->last_ts - b->ts);
    judge_note(j, RULE_CC_06, flow, a->frame,
               b->ts > a->ts ? say(j, "%.6f Gbit/s before the first CNP, %.6f between CNPs, %.6f after the last",
                                   before, during, after)
                             : say(j, "%.6f Gbit/s before the CNP, %.6f after it", before, after),
               "Payload of the queue pair that the CNPs are for: it should fall, and recover.");
}

/* The payload that one queue pair sent to a destination. */
struct share {
    uint32_t tap;
    struct conn_addr dst;
    ns_t first, last;
    uint64_t bytes;
};

static int by_destination(const void *x, const void *y)
{
    const struct share *a = x, *b = y;
    int d = a->tap != b->tap ? (a->tap < b->tap ? -1 : 1) : memcmp(&a->dst, &b->dst, 16);

    return d ? d : (a->bytes < b->bytes) - (a->bytes > b->bytes);
}

/* True if `a` sent during at least half of the time in which `b` sent. */
static bool together(const struct share *a, const struct share *b)
{
    ns_t from = a->first > b->first ? a->first : b->first, to = a->last < b->last ? a->last : b->last;

    return (to - from) * 2 >= b->last - b->first;
}

/* Jain's index of the senders `s` (`n`, sorted by bytes, most first) to one destination that sent at the same time
 * as the first. */
static void note_shares(struct judge *j, const struct share *s, uint32_t n)
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
    if (count < 2)
        return;
    j->file = (uint16_t)(s->tap >> 16);
    judge_note(j, RULE_CC_08, FLOW_NONE, 0,
               say(j, "Jain's index %.3f of %u queue pairs to one destination, %.6f to %.6f Gbit/s",
                   sum * sum / (count * squares), count, low, high),
               "1 is perfectly fair, 1/n is all for one. Payload, of queue pairs that send at the same time.");
}

void judge_fairness(struct judge *j)
{
    struct conn_counts c = conn_counts(j->conns);
    struct share *s = judge_wants(j, RULE_CC_08) && c.flows > 1 ? malloc(c.flows * sizeof *s) : NULL;
    uint32_t n = 0;

    for (uint32_t i = 0; s && i < c.flows; i++) {
        const struct req_dir *h = j->flows[i].dir;
        const struct flow *f = &j->flow[i];
        if (h && h->bytes && h->last_ts > h->first_ts)
            s[n++] = (struct share){
                .tap = f->tap, .dst = f->dst, .first = h->first_ts, .last = h->last_ts, .bytes = h->bytes};
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

/* --- At the end ------------------------------------------------------------------------------- */

void judge_congestion(struct judge *j, uint32_t flow)
{
    const struct jflow *f = &j->flows[flow];
    uint32_t peer = j->flow[flow].peer;
    const struct jflow *g = peer == FLOW_NONE ? NULL : &j->flows[peer];

    bool ends = j->last_ts[j->flow[flow].tap % JUDGE_TAPS] - f->ce_ts < FIRST_CNP_WITHIN;

    if (f->ce_data && g && (g->has_rsp || g->dir) && !sends_cnps(j, flow))
        judge_found(j, NULL,
                    (struct found){.rule = RULE_CC_03,
                                   .severity = SEV_W,
                                   .flow = f->dir ? flow : peer,
                                   .needs = ends ? N_COMPLETE : 0, /* the CNP may be behind the end */
                                   .lacks = ends ? N_COMPLETE : 0,
                                   .frame = f->ce_frame,
                                   .expected = "CNPs",
                                   .seen = say(j, "%s marked CE and no CNP", count_str(f->ce_data, "packet")),
                                   .text = "Its receiver does not tell the sender of congestion."});
    if (f->cnps > 1)
        judge_note(j, RULE_CC_04, flow, f->cnp_frame, say(j, "%.3f us", (double)f->cnp_gap / 1e3), "");
    if (f->cnps && g && !g->ce)
        judge_note(j, RULE_CC_05, flow, f->cnp_frame, count_str(f->cnps, "CNP"),
                   "No packet marked CE was seen: the mark was set after the tap, or something else made its receiver "
                   "send CNPs.");
    note_rate(j, flow, f);
}
