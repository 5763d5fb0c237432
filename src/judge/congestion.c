/* layer 3 (judge): rules about congestion: CNPs, CE marks, rates. */
#include "dissect/pkt.h"
#include "prng.h"
#include "src/judge/judge_impl.h"
#include "zeros.h"

#include <stdio.h>
#include <stdlib.h>

/* a CE mark leads to a CNP within microseconds: a CNP this much later does not answer a mark from before the capture */
#define CNP_LATE (10 * NS_PER_MS)

/* A rate below 2 % of 100 Gbit/s, or below the highest least rate that is known of an adapter, need not fall. */
#define RATE_LEAST  UINT64_C(2000000000)
#define RUN_PACKETS 40 /* in each half of a run of CNPs, so that its rate means something */
#define FALL_LEAST  5  /* percent; the weakest defaults that are known make 22 in a run */

#define STAMPS_FINE 20 /* ns */
#define UNSTEADY    3  /* times of steps that differ so much show no timer */

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

/* True if a CNP for the same queue pair came early: it has sent before the capture. */
static bool had_early_cnp(const struct judge *j, const struct unknown_cnp *c)
{
    for (unsigned i = 0; i < UNKNOWN_CNPS; i++) {
        const struct unknown_cnp *o = &j->unknown_cnp[i];
        if (o->frame && o->early && o->tap == c->tap && o->qpn == c->qpn && conn_addr_eq(&o->src, &c->src) &&
            conn_addr_eq(&o->dst, &c->dst))
            return true;
    }
    return false;
}

/* A CNP for a queue pair without traffic so far: at the end, qp_is_known() decides. */
static void keep_unknown_cnp(struct judge *j, const struct pkt *p)
{
    struct unknown_cnp *c = &j->unknown_cnp[j->n_unknown_cnp % UNKNOWN_CNPS],
                       now = {
                           .frame = frame_u32(p), .ts = p->frame->ts, .tap = conn_tap_of(p->frame), .qpn = p->bth.dqpn};
    ns_t began = 0;

    if (j->silent)
        return;
    j->n_unknown_cnp++;
    conn_addr_of(p, &now.src, &now.dst);
    now.early = !p->frame->has_ts || !stamps_began(&j->stamps, now.tap, &began) || now.ts - began < CNP_LATE ||
                had_early_cnp(j, &now);
    *c = now;
}

/* The queue pair that a CNP in `flow` is for: the flow of the requests that it, or its peer, sends, and the tap at
 * either end of them. */
struct throttled {
    uint32_t of;
    unsigned at_sender, at_notifier; /* N_TAP_* */
};

static struct throttled throttled_by(const struct judge *j, uint32_t flow)
{
    uint32_t peer = j->flow[flow].peer;

    if (peer != FLOW_NONE && (j->flows[peer].dir || !j->flows[flow].dir))
        return (struct throttled){peer, N_TAP_REQ, N_TAP_RSP};
    return (struct throttled){flow, N_TAP_RSP, N_TAP_REQ}; /* a responder, by the READs of its peer */
}

/* --- The spacing and the class of CNPs -------------------------------------------------------- */

static const char *const scopes[NP_SCOPES] = {"queue pair", "pair of addresses", "destination", "adapter"};

/* The adapter that sent a CNP; NULL: there are more than are kept. */
static struct np_adapter *adapter_of(struct judge *j, const struct pkt *p)
{
    uint32_t tap = conn_tap_of(p->frame);
    struct conn_addr src, dst;
    uint64_t id;

    conn_addr_of(p, &src, &dst);
    id = p->frame->linktype == LINK_ETHERNET && !(p->flags & PKT_TUNNEL) ? load_be64(p->data + 4) << 16 >> 16
                                                                         : judge_addr_hash(&src, 0);
    for (unsigned i = 0; i < j->n_np_adapters; i++)
        if (j->np_adapter[i].id == id && j->np_adapter[i].tap == tap)
            return &j->np_adapter[i];
    if (!j->spacing)
        j->spacing = zeros_new(1, sizeof *j->spacing);
    if (!j->spacing || j->n_np_adapters == NP_ADAPTERS)
        return NULL;
    j->np_adapter[j->n_np_adapters] = (struct np_adapter){
        .id = id, .tap = tap, .ts = p->frame->ts, .frame = frame_u32(p), .tos = p->tos, .tag = judge_tag_of(p)};
    j->np_adapter[j->n_np_adapters].times = calloc(1, sizeof(struct spacing_times));
    return j->np_adapter[j->n_np_adapters].times ? &j->np_adapter[j->n_np_adapters++] : NULL;
}

/* An interval was stated: did several CNPs come sooner than it permits? */
static void check_spacing(struct judge *j, const struct pkt *p, struct jflow *f, const ns_t span[NP_SCOPES])
{
    const struct np_config *np = &j->o.cnp;
    ns_t least = (ns_t)np->interval * (SPACING_RUN - 1) * 9 / 10 - 2 * judge_step(j, p);

    if (!np->interval || np->per_ce || span[np->scope] >= least || f->close_frame)
        return;
    f->close_frame = frame_u32(p);
    f->close_span = span[np->scope];
}

/* At the end, when it is known which end is which. */
static void report_spacing(struct judge *j, uint32_t flow, const struct jflow *c)
{
    const struct np_config *np = &j->o.cnp;
    struct throttled t = throttled_by(j, flow);
    struct found f = found_of(RULE_CC_04, t.of);

    f.needs = t.at_notifier;
    f.frame = c->close_frame;
    f.expected = say(j, "%.3f us between two of a %s", (double)np->interval / 1e3, scopes[np->scope]);
    f.seen = say(j, "%u in %.3f us", SPACING_RUN, (double)c->close_span / 1e3);
    f.text = "One CNP may wait behind other packets and be close to the next one, but not so many in a row.";
    judge_found(j, NULL, f);
}

static const char *class_str(struct judge *j, uint8_t tos, uint32_t tag)
{
    return tag ? say(j, "DSCP %u, priority %u", tos >> 2, (tag & 0xffff) >> 13) : say(j, "DSCP %u", tos >> 2);
}

/* The class of a packet: the priority of its tag, else that with which its DSCP was tagged before; 8: not known. */
static unsigned class_of(const struct judge *j, const struct pkt *p)
{
    unsigned known = p->addr_len ? j->dscp_class[p->tos >> 2] : 0;

    return p->have & H_VLAN ? p->vlan >> 13 : known && known != CLASS_VARIES ? known - 1 : 8;
}

/* The class of the CNPs of an adapter: does it change, and is it that of the data? */
static void take_class(struct judge *j, const struct pkt *p, uint32_t flow, struct np_adapter *a)
{
    uint32_t tag = judge_tag_of(p), peer = j->flow[flow].peer;
    const struct kind_state *data = peer == FLOW_NONE ? NULL : &j->flows[peer].kind[KIND_REQ];

    if ((a->tos >> 2 != p->tos >> 2 || a->tag >> 13 != tag >> 13) && !a->class_varies) {
        a->class_varies = true;
        judge_note(j, RULE_CC_09, flow, frame_u32(p),
                   say(j, "%s, before %s", class_str(j, p->tos, tag), class_str(j, a->tos, a->tag)),
                   "CNPs of one adapter in several classes may overtake each other.");
    }
    if (data && data->seen && data->dscp.value == p->tos >> 2 && (data->vlan | HAS_TAG) >> 13 == (tag | HAS_TAG) >> 13)
        a->as_data |= 1u << class_of(j, p);
}

/* Classes that pause frames have stopped at a tap, a mask. */
static unsigned classes_paused(const struct judge *j, uint32_t tap)
{
    unsigned classes = 0;

    for (unsigned i = 0; i < j->n_pauser; i++)
        for (unsigned c = 0; j->pauser[i].tap == tap && c < ARRAY_LEN(j->pauser[i].class); c++)
            classes |= j->pauser[i].class[c].since_frame ? 1u << c : 0;
    return classes;
}

static void note_spacing(struct judge *j, const struct np_adapter *a)
{
    const struct hist *h = a->times->of;
    enum np_scope scope = spacing_scope(a->times);
    char said[4][64];

    if (!h[NP_QP].n)
        return;
    for (unsigned i = 0; i < NP_SCOPES; i++)
        snprintf(said[i], sizeof said[i], "%.3f/%.3f/%.3f us", (double)h[i].min / 1e3,
                 (double)hist_permille(&h[i], 10) / 1e3, (double)hist_permille(&h[i], 500) / 1e3);
    judge_note_as(
        j, RULE_CC_04, FLOW_NONE, a->frame, "{seen} between two CNPs", said[NP_QP],
        say(j,
            "The shortest time, 1 %% and half of all times are at most: of a queue pair as above, of a pair of "
            "addresses %s, of a destination %s, of the adapter %s.%s%s%s",
            said[NP_IP_PAIR], said[NP_DEST_IP], said[NP_PORT], scope < NP_SCOPES ? " They look limited by " : "",
            scope < NP_SCOPES ? scopes[scope] : "", scope < NP_SCOPES ? "." : ""));
}

void judge_notifiers_end(struct judge *j)
{
    for (unsigned i = 0; i < j->n_np_adapters; i++) {
        struct np_adapter *a = &j->np_adapter[i];
        j->file = (uint16_t)(a->tap >> 16);
        j->at_ts = a->ts;
        note_spacing(j, a);
        if (classes_paused(j, a->tap))
            judge_share_not(j, "classes in which CNPs travel are paused");
        if (a->as_data & classes_paused(j, a->tap))
            judge_note_as(j, RULE_CC_09, FLOW_NONE, a->frame, "CNPs in the class of the data, which is paused: {seen}",
                          class_str(j, a->tos, a->tag), "A CNP can be paused with the data that it should slow down.");
    }
    j->at_ts = 0;
}

void judge_notifiers_free(struct judge *j)
{
    for (unsigned i = 0; i < j->n_np_adapters; i++)
        free(j->np_adapter[i].times);
    zeros_free(j->spacing, 1, sizeof *j->spacing);
}

static void take_spacing(struct judge *j, const struct pkt *p, uint32_t flow)
{
    struct np_adapter *a = adapter_of(j, p);
    struct spacing_cnp c = {.qpn = p->bth.dqpn, .ts = p->frame->ts};
    ns_t span[NP_SCOPES];

    if (!a)
        return;
    if (a->tos >> 2 != p->tos >> 2 || a->tag >> 13 != judge_tag_of(p) >> 13)
        judge_share_not(j, "CNPs of one adapter travel in several classes");
    c.adapter = a->id ^ a->tap;
    memcpy(c.src, p->src, min_u32(p->addr_len, sizeof c.src));
    memcpy(c.dst, p->dst, min_u32(p->addr_len, sizeof c.dst));
    spacing_take(j->spacing, a->times, &c, span);
    if (flow == FLOW_NONE)
        return;
    check_spacing(j, p, &j->flows[flow], span);
    take_class(j, p, flow, a);
}

/* --- CNPs without a mark ---------------------------------------------------------------------- */

/* Only at the tap of the node that sends it: elsewhere the marks may be made behind the tap. */
static void take_unmarked(struct judge *j, const struct pkt *p, uint32_t flow, struct jflow *f)
{
    struct throttled t = throttled_by(j, flow);
    const struct req_dir *h = j->flows[t.of].dir;
    uint32_t peer = j->flow[flow].peer;
    bool all_seen = h && (h->from_start || h->began == BEGAN_SEEN);

    if (peer == FLOW_NONE || j->flows[peer].ce || !all_seen || req_dir_is_near_loss(h, p->frame->ts) ||
        !(judge_have(j, t.of, p) & t.at_notifier))
        return;
    if (f->unmarked_cnps++ == 0)
        f->unmarked_frame = frame_u32(p);
}

/* --- What CNPs do ----------------------------------------------------------------------------- */

/* A run of CNPs, after which the rate must have fallen. */
static void check_run(struct judge *j, uint32_t flow, struct jflow *g, const struct cuts_run *r)
{
    if (g->deaf || r->packets < RUN_PACKETS || r->before < RATE_LEAST ||
        r->after * 100 <= r->before * (100 - FALL_LEAST))
        return;
    g->deaf = true;
    judge_note(j, RULE_CC_06, flow, r->frame,
               say(j, "%.3f Gbit/s in the first half of %u CNPs in a row, %.3f in the second", (double)r->before / 1e9,
                   CUTS_RUN, (double)r->after / 1e9),
               "The rate inside messages should fall: each CNP came before any timer that is known could raise it.");
}

static void take_cut(struct judge *j, const struct pkt *p, uint32_t flow)
{
    struct throttled t = throttled_by(j, flow);
    uint32_t peer = j->flow[flow].peer;
    struct jflow *g = peer == FLOW_NONE ? NULL : &j->flows[peer];
    struct cuts_run r;

    if (!g || !(judge_have(j, t.of, p) & t.at_sender))
        return;
    if (!g->cuts && !(g->cuts = calloc(1, sizeof *g->cuts)))
        return;
    g->coarse |= judge_step(j, p) >= STAMPS_FINE;
    if (cuts_cnp(g->cuts, frame_u32(p), p->frame->ts, &r))
        check_run(j, peer, g, &r);
}

void judge_pace(struct judge *j, const struct pkt *p, uint32_t flow)
{
    cuts_packet(j->flows[flow].cuts, p->frame->len, p->bth.psn,
                p->payload_len && p->op->flags & (OPF_MIDDLE | OPF_LAST), p->frame->ts);
}

static void note_cuts(struct judge *j, uint32_t flow, const struct jflow *f)
{
    const struct cuts *c = f->cuts;

    if (c && c->ratios && !f->coarse)
        judge_note(j, RULE_CC_12, flow, 0,
                   say(j, "%s: %.1f %% (%.1f to %.1f)", count_str(c->ratios, "CNP"),
                       (double)c->ratio_sum / (double)c->ratios / 10, (double)c->ratio_min / 10,
                       (double)c->ratio_max / 10),
                   "From packets just before and just after CNPs that stand alone for 1 ms. With DCQCN this is 1 - "
                   "alpha / 2.");
}

/* "55.0 us (54.9 to 55.1)", in units of `unit`. */
static const char *value_str(struct judge *j, const struct recovery_value *v, double unit, const char *name)
{
    return say(j, "%.1f%s (%.1f to %.1f)", (double)v->sum / (double)v->n / unit, name, (double)v->min / unit,
               (double)v->max / unit);
}

/* What was stated, and what was seen instead. */
static void report_recovery(struct judge *j, uint32_t flow, const struct recovery *r, const char *seen)
{
    const struct recovery_shape *s = &j->o.recovery;
    struct found f = found_of(RULE_CC_13, flow);

    f.needs = N_TAP_REQ;
    f.wrong = "after CNPs the rate rises in other steps: {seen}, expected {expected}";
    f.expected = s->halving ? say(j, "every %.1f us, the first %u, later ones add %.1f Mbit/s", (double)s->period / 1e3,
                                  (unsigned)s->halving, (double)s->increase / 1e6)
                            : say(j, "every %.1f us%s, later ones add %.1f to %.1f Mbit/s", (double)s->period / 1e3,
                                  s->counter ? " or sooner" : "", (double)s->increase / 1e6, (double)s->hyper / 1e6);
    f.seen = seen;
    f.text = say(j, "From what passed after %s.", count_str(r->period.n, "CNP"));
    judge_found(j, NULL, f);
}

static void note_recovery(struct judge *j, uint32_t flow, const struct jflow *f)
{
    const char *seen;
    struct recovery *r = f->cuts ? &f->cuts->recovery : NULL;

    if (!r || f->coarse)
        return;
    recovery_end(r);
    if (!r->period.n || r->period.max > UNSTEADY * r->period.min)
        return;
    seen = say(j, "every %s; the first %s halve the distance%s%s", value_str(j, &r->period, 1e3, " us"),
               value_str(j, &r->halving, 1, ""), r->increase.n ? ", later ones add " : "",
               r->increase.n ? value_str(j, &r->increase, 1e6, " Mbit/s") : "");
    if (recovery_differs(r, &j->o.recovery)) {
        report_recovery(j, flow, r, seen);
        return;
    }
    judge_note(j, RULE_CC_13, flow, 0, seen,
               say(j,
                   "From what passed after %s. With DCQCN a timer makes the steps; those that halve the distance are "
                   "fast recovery, later ones additive increase.",
                   count_str(r->period.n, "CNP")));
}

/* --- Any CNP ---------------------------------------------------------------------------------- */

void judge_cnp_malformed(struct judge *j, const struct pkt *p)
{
    judge_notified(j, p);
    judge_bad(j, p, RULE_CC_01, "16 reserved bytes", p->why, "A CNP is a BTH and 16 bytes.");
}

void judge_cnp(struct judge *j, const struct pkt *p)
{
    uint32_t flow = conn_flow_find(j->conns, p), sum = 0;
    struct jflow *f = flow == FLOW_NONE ? NULL : &j->flows[flow];
    bool wrong_bits = p->bth.se || p->bth.ackreq || p->bth.fecn || (p->bth.migreq && j->o.profile != PROFILE_NV);

    judge_notified(j, p);
    judge_applies(j, ON_CNP);
    for (uint32_t i = 0; i < p->payload_cap; i++)
        sum |= p->data[p->payload_off + i];
    if (p->bth.psn || wrong_bits || sum)
        cnp_bad(j, p, flow, NULL, "PSN 0, no SE, AckReq, FECN or MigReq, 16 zero bytes",
                say(j, "PSN %u, SE %u, AckReq %u, FECN %u, MigReq %u%s", p->bth.psn, p->bth.se, p->bth.ackreq,
                    p->bth.fecn, p->bth.migreq, sum ? ", other bytes" : ""),
                "A CNP is empty but for the queue pair it is for.");
    if (!f) {
        take_spacing(j, p, FLOW_NONE);
        keep_unknown_cnp(j, p);
        return;
    }
    if (f->pkey.have && !f->pkey.pending && ((f->pkey.value ^ p->bth.pkey) & 0x7fff))
        cnp_bad(j, p, flow, "the CNP has P_Key {seen}, expected {expected}", say(j, "P_Key 0x%04x", f->pkey.value),
                say(j, "0x%04x", p->bth.pkey), "A CNP carries the P_Key of the packet that was marked.");
    take_spacing(j, p, flow);
    take_unmarked(j, p, flow, f);
    take_cut(j, p, flow);
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
        judge_share_at(j, PHASE_CNPS, c->ts, c->tap >> 16, c->frame);
        j->silent = false;
        j->at_ts = c->ts;
        if (c->frame && !qp_is_known(j, c, &lacks))
            report_unknown_cnp(j, c, lacks);
    }
    j->at_ts = 0;
}

/* --- At the end ------------------------------------------------------------------------------- */

void judge_congestion(struct judge *j, uint32_t flow)
{
    const struct jflow *f = &j->flows[flow];

    if (f->unmarked_cnps)
        judge_note(
            j, RULE_CC_05, flow, f->unmarked_frame, count_str(f->unmarked_cnps, "CNP"),
            "No packet marked CE has reached the node that sent them, and nothing was lost just before: something "
            "else made it send CNPs.");
    if (f->close_frame)
        report_spacing(j, flow, f);
    note_cuts(j, flow, f);
    note_recovery(j, flow, f);
}
