/* layer 3 (judge): how a check reports a failure: what the capture provides of the rule's needs, and the finding. */
#include <stdarg.h>
#include <stdio.h>

#include "src/judge/judge_impl.h"

/* --- What the capture provides ---------------------------------------------------------------- */

#define PAIRING_PROVED 16    /* responses with a matching PSN that prove a pairing by PSN in mid-stream */
#define SIMILAR_PSNS   65536 /* a pairing by PSN may confuse queue pairs whose PSNs are closer than this */

unsigned judge_have(const struct judge *j, uint32_t flow, const struct pkt *p)
{
    unsigned have = judge_is_complete(j) ? N_COMPLETE : 0;
    const struct flow *f;
    const struct req_dir *h;

    if (!p || !(p->flags & PKT_CUT))
        have |= N_PAYLOAD;
    if (p && p->have & H_BTH)
        have |= p->op->flags & OPF_RESPONSE ? N_RSP : N_REQ;
    if (!j->untimed && !j->backwards)
        have |= N_CLOCK;
    if (flow == FLOW_NONE)
        return have | N_REQ;
    f = &j->flow[flow];
    h = j->flows[flow].dir;
    have |= judge_have_tap(j, flow);
    have |= j->flows[flow].packets ? N_REQ : 0;
    have |= h && h->from_start ? N_START : 0;
    have |=
        (f->peer != FLOW_NONE && j->flows[f->peer].packets) || (have & N_COMPLETE && f->params.rep_frame) ? N_RSP : 0;
    have |= f->paired_by == PAIR_CM ? N_CM : 0;
    return j->flows[flow].lacking ? have & ~(unsigned)N_COMPLETE : have;
}

/* Whether packets of both flows may pass between the same addresses: those of a flow are of its first path, and its
 * packets may take another one. */
static bool same_direction(const struct flow *a, const struct flow *b)
{
    return a->tap == b->tap &&
           ((conn_addr_eq(&a->src, &b->src) && conn_addr_eq(&a->dst, &b->dst)) || a->path || b->path);
}

static bool opposite_direction(const struct flow *a, const struct flow *b)
{
    return a->tap == b->tap &&
           ((conn_addr_eq(&a->src, &b->dst) && conn_addr_eq(&a->dst, &b->src)) || a->path || b->path);
}

/* True if responses in `flow` were captured before any request to their sender: the connection is older than the
 * capture, and the flow may be paired with the requests of another queue pair. */
static bool responded_to_unseen(const struct judge *j, uint32_t flow)
{
    const uint32_t peer = j->flow[flow].peer;
    const struct req_dir *asked = peer == FLOW_NONE ? NULL : j->flows[peer].dir;

    return j->flows[flow].has_rsp && !(asked && asked->have_next && asked->first_frame < j->flows[flow].rsp_frame);
}

/* True if so many responses have fitted the requests of `f` that a fault, also one that comes again and again, is the
 * responder's: it does not speak against the pairing. */
static bool has_often_fitted(const struct jflow *f)
{
    return f->dir->rsp_packets >= f->unfit_rsp + PAIRING_PROVED;
}

bool judge_pairing_is_settled(const struct judge *j, uint32_t flow)
{
    const struct jflow *f = &j->flows[flow];

    return j->flow[flow].paired_by != PAIR_PSN || (f->dir && has_often_fitted(f));
}

/* True if the PSN is near those of the requests. */
static bool is_similar(const struct req_dir *h, uint32_t psn)
{
    return psn_in(psn, psn_add(h->next, (uint32_t)-SIMILAR_PSNS), 2 * SIMILAR_PSNS);
}

/* Whether the responses that count as those to the requests of `flow` may be those to the requests of flow `other`, as
 * both are at similar PSNs, or `other` has responses to requests that were not captured. */
static bool may_be_confused(const struct judge *j, uint32_t flow, uint32_t other)
{
    const struct flow *f = &j->flow[flow], *g = &j->flow[other];
    const struct req_dir *h = j->flows[flow].dir, *o = j->flows[other].dir;
    const struct jflow *r = &j->flows[other];
    bool unpaired = g->peer == FLOW_NONE && r->has_rsp;
    bool stray = other != f->peer && r->unmatched && g->paired_by == PAIR_PSN && is_similar(h, r->unmatched_last);
    bool similar = o && o->have_next && is_similar(h, o->next);

    if (other != flow && (similar || unpaired) && same_direction(g, f))
        return true; /* the peer of `flow` may be that of `other` */
    return (unpaired || stray) && opposite_direction(g, f);
}

/* Whether there is such a flow: one between the same addresses; any one if there are alternate paths. */
bool judge_another_may_be_meant(const struct judge *j, uint32_t flow)
{
    const struct conn_addr *a = &j->flow[flow].src, *b = &j->flow[flow].dst;
    uint32_t n = conn_has_paths(j->conns) ? conn_counts(j->conns).flows : 0;

    for (uint32_t i = 0; i < n; i++)
        if (may_be_confused(j, flow, i))
            return true;
    for (uint32_t i = conn_first_between(j->conns, a, b); !n && i != FLOW_NONE; i = j->flow[i].in[BY_PAIR].next)
        if (may_be_confused(j, flow, i))
            return true;
    for (uint32_t i = conn_first_between(j->conns, b, a); !n && i != FLOW_NONE; i = j->flow[i].in[BY_PAIR].next)
        if (may_be_confused(j, flow, i))
            return true;
    return false;
}

bool judge_sees_all(const struct judge *j, uint32_t flow)
{
    enum tap_side side = judge_side(j, j->flow[flow].tap);

    return j->o.complete && !j->incomplete && (side == TAP_REQUESTER || side == TAP_RESPONDER);
}

/* True if a pairing by PSN agreement may be wrong: no response fitted yet, one contradicted it, CM was captured in
 * part, the connection is older than the capture, another queue pair between the same addresses is at similar PSNs, or
 * there are responses of either end to another one whose requests were not captured. */
static bool pairing_is_doubtful(const struct judge *j, uint32_t flow)
{
    const struct flow *f = &j->flow[flow];
    const struct req_dir *h = j->flows[flow].dir;
    const struct jflow *own = &j->flows[flow];
    bool misfits = h && own->misfit && !has_often_fitted(own) && !judge_sees_all(j, flow);
    bool proof_needed = h && (h->began != BEGAN_SEEN || misfits);
    uint64_t fit;

    if (f->paired_by != PAIR_PSN || !h)
        return false;
    fit = h->rsp_packets > j->flows[flow].unproved_rsp ? h->rsp_packets - j->flows[flow].unproved_rsp : 0;
    if (fit < (proof_needed ? PAIRING_PROVED : j->o.complete && !j->incomplete ? 1 : 3))
        return true; /* the only matching response may be the one that is judged */
    if (fit < PAIRING_PROVED && j->have_cm)
        return true; /* CM messages were captured, but not of this connection, which is older */
    if (fit < PAIRING_PROVED && f->peer != FLOW_NONE && j->flows[f->peer].rsp_frame < h->first_rsp_frame)
        return true; /* responses precede the first response paired with these requests */
    if (fit < PAIRING_PROVED && responded_to_unseen(j, flow))
        return true;
    return judge_another_may_be_meant(j, flow);
}

bool judge_may_have_come(const struct judge *j, uint32_t flow, uint32_t psn)
{
    uint32_t peer = j->flow[flow].peer;
    const struct jflow *r = peer == FLOW_NONE ? NULL : &j->flows[peer];

    return r && r->unmatched && psn_diff(psn, r->unmatched_first) >= 0 && psn_diff(psn, r->unmatched_last) <= 0;
}

bool judge_has_timeout(const struct judge *j, uint32_t flow)
{
    return j->flow[flow].params.timeout_known == PARAM_STATED || j->o.ack_timeout >= 0;
}

bool judge_timed_out(const struct judge *j, uint32_t flow, ns_t took, const struct pkt *p)
{
    const struct shadow *s = j->flows[flow].shadow;
    ns_t wait = s ? ack_timeout(s->req.r.p.timeout) : NS_NEVER;

    return wait != NS_NEVER && took >= wait - (p ? judge_slack(j, p) : CROSSES_WITHIN);
}

bool judge_tap_at_responder(const struct judge *j, uint32_t flow, const struct pkt *p)
{
    return j->o.complete && (judge_have(j, flow, p) & (N_TAP_RSP | N_COMPLETE)) == (N_TAP_RSP | N_COMPLETE);
}

/* --- Findings --------------------------------------------------------------------------------- */

/* a missing PSN may be that of a packet that could not be decoded within this many frames */
#define UNREADABLE_NEAR 64

bool judge_is_unreadable_near(const struct judge *j, uint64_t frame)
{
    return j->last_unreadable && frame < j->last_unreadable + UNREADABLE_NEAR &&
           j->last_unreadable < frame + UNREADABLE_NEAR;
}

/* True if the missing PSN may be that of a packet nearby that was damaged or could not be decoded. */
static bool unreadable_near(const struct judge *j, const struct pkt *p, const struct found *f)
{
    return rule_table[f->rule].traits & T_GAP && judge_is_unreadable_near(j, f->frame ? f->frame
                                                                             : p      ? p->frame->number
                                                                                      : 0);
}

/* 1 << the interface of the flow, if the user gave interfaces different tap positions; else 0. */
static uint64_t iface_of_flow(const struct judge *j, uint32_t flow)
{
    uint32_t iface = j->flow[flow].tap & 0xffff;

    if (iface >= JUDGE_TAPS || memcmp(j->o.tap, j->o.tap + 1, sizeof j->o.tap - sizeof *j->o.tap) == 0)
        return 0; /* all taps are on the same side */
    return UINT64_C(1) << iface;
}

/* The time of a frame of the owner whose packet is at hand, or of which something is found now; FINDING_NO_TIME: it is
 * too long ago. */
static ns_t time_of(const struct judge *j, uint8_t owner, uint16_t file, uint64_t frame)
{
    const struct recent *ring = &j->recent[(size_t)owner * RECENT_FRAMES];
    uint32_t n = j->n_recent[owner];

    for (uint32_t i = 1; frame && i <= n && i <= RECENT_FRAMES; i++) {
        const struct recent *at = &ring[(n - i) % RECENT_FRAMES];
        if (at->number == frame && at->file == file)
            return at->ts;
    }
    return FINDING_NO_TIME;
}

/* Set the time of a finding, and keep it. */
static void keep(struct judge *j, struct finding *f, const struct finding_text *t, uint32_t flow)
{
    uint64_t frame = f->n_frames ? f->frames[0] : f->n_causes ? f->causes[0] : 0;
    size_t n = findings_n(j->findings);

    if (UNLIKELY(j->silent) && flow == FLOW_NONE)
        return;
    if (flow != FLOW_NONE)
        f->flow = j->flows[flow].found_as = j->flows[flow].found_as ? j->flows[flow].found_as : ++j->flows_found;
    if (!f->ts)
        f->ts = j->at_ts;
    if (!f->ts)
        f->ts = time_of(j, flow == FLOW_NONE ? j->owner : j->flows[flow].owner, f->file, frame);
    findings_add(j->findings, f, t);
    if (UNLIKELY(j->share != NULL) && findings_n(j->findings) > n)
        judge_share_found(j);
}

unsigned judge_needs_of_another(const struct judge *j, uint32_t flow)
{
    const struct jflow *f = &j->flows[flow];
    bool by_cm = j->flow[flow].paired_by == PAIR_CM && !f->closed.frame;

    if (f->packets < f->sure_from)
        return N_SAME;
    if (LIKELY(f->another.is == ANOTHER_NO))
        return 0;
    return !by_cm ? N_SAME : f->another.is == ANOTHER_LIKELY ? N_COMPLETE : 0; /* its REQ and REP may be missing */
}

/* What a failure needs that compares packets of a connection: they may be those of two. */
static unsigned needs_of_another(const struct judge *j, const struct found *f)
{
    bool compares =
        rule_table[f->rule].applies & (ON_RC | ON_UC | ON_CONN) && rule_table[f->rule].needs & (N_REQ | N_RSP);

    return f->flow == FLOW_NONE || !compares ? 0 : judge_needs_of_another(j, f->flow);
}

void judge_skewed(struct judge *j, uint32_t tap)
{
    j->skewed[tap_slot(tap)] = j->skewed_before[tap_slot(tap)] = true;
}

/* True if a response was stamped before its request, of this connection or of another one at the tap. */
static bool clocks_differ(struct judge *j, uint32_t flow)
{
    const struct flow *c = &j->flow[flow];
    const struct jflow *f = &j->flows[flow], *peer = c->peer == FLOW_NONE ? NULL : &j->flows[c->peer];
    const struct sent *s;
    const struct read_req *k;
    bool *skewed = &j->skewed[tap_slot(c->tap)];
    ns_t later;

    if (*skewed || !f->dir || !peer || !peer->unsolicited_ts)
        return *skewed;
    s = req_dir_sent(f->dir, peer->unsolicited_psn);
    k = req_dir_read(f->dir, peer->unsolicited_psn, 0);
    later = (k ? k->ts : s ? s->ts_first : 0) - peer->unsolicited_ts;
    if (later < 0 || later > CROSSES_WITHIN)
        return false;
    *skewed = true;
    if (!peer->unsolicited_asks)
        judge_skewed(j, c->tap);
    return true;
}

/* What a failure needs that compares both directions of a connection whose clocks differ. Sets f->by_clock. */
static unsigned needs_of_skew(struct judge *j, struct found *f)
{
    unsigned needs = rule_table[f->rule].needs;

    f->by_clock |= f->flow != FLOW_NONE && needs & N_REQ && needs & N_RSP;
    if (f->flow == FLOW_NONE || !f->by_clock)
        return 0;
    return clocks_differ(j, f->flow) ? N_CLOCK : 0;
}

/* The needs `missing` of failure `f`, by what would provide them: what the capture has in general does not count here
 * for another reason. `doubtful`: those that the pairing of the directions would provide. */
static unsigned named_needs(const struct judge *j, const struct found *f, unsigned missing, unsigned doubtful)
{
    const struct flow *c = f->flow == FLOW_NONE ? NULL : &j->flow[f->flow];
    enum tap_side side = c ? judge_side(j, c->tap) : TAP_UNKNOWN;
    unsigned tap;

    if (missing & doubtful)
        missing = (missing & ~doubtful) | N_PAIRED;
    if (missing & N_RSP && c && c->peer == FLOW_NONE && conn_has_reverse(j->conns, f->flow))
        missing = (missing & ~(unsigned)N_RSP) | N_PAIRED;
    tap = missing & (N_TAP_REQ | N_TAP_RSP);
    if (!tap || (side != TAP_REQUESTER && side != TAP_RESPONDER))
        return missing;
    if (!judge_have_tap(j, f->flow))
        return (missing & ~tap) | N_OPENER;
    tap &= judge_have_tap(j, f->flow);
    return tap ? (missing & ~tap) | N_ORDER : missing;
}

/* Whether a failure depends on the end that the tap is at; the checks of responses do, as they ask what the responder
 * has received. Not once it is known that a side does not tell. */
static bool rests_on_side(const struct judge *j, const struct found *f, const struct pkt *p)
{
    unsigned needs = rule_table[f->rule].needs | f->needs;

    if (f->flow != FLOW_NONE && j->flows[f->flow].two_way)
        return false;
    return needs & (N_TAP_REQ | N_TAP_RSP) ||
           (needs & N_RSP && f->flow != FLOW_NONE && judge_tap_at_responder(j, f->flow, p));
}

/* Whether a failure rests on few responses, paired by PSN, being those to these requests. */
static bool rests_on_pairing(const struct judge *j, const struct found *f)
{
    unsigned needs = rule_table[f->rule].needs | f->needs;

    return f->flow != FLOW_NONE && !(f->has & N_PAIRED) && needs & (N_RSP | N_TAP_REQ | N_TAP_RSP) &&
           j->flows[f->flow].dir && !judge_pairing_is_settled(j, f->flow);
}

/* Note that a failure does. Those that rest on different pairings contradict each other. */
static void rest_on_pairing(struct jflow *f, uint32_t peer, uint32_t conn)
{
    f->rests_peer = f->rests_peer && f->rests_peer != peer ? RESTS_ON_SEVERAL : peer;
    f->rests_conn = conn;
}

/* A response contradicts the requests of `f`, with which it was paired by PSN: later ones have to prove the pairing. */
static void speaks_against_pairing(struct jflow *f)
{
    const uint64_t number = f->dir->rsp_packets + 1;

    if (has_often_fitted(f))
        return;
    f->unfit_rsp += f->unproved_rsp != number; /* not yet counted */
    f->unproved_rsp = number;
    f->misfit = true;
}

/* Looks anew at which end the tap is: what a failure by a response needs if its check took the tap for one at the
 * responder, and that has just turned out not to be known. */
static unsigned needs_of_side(struct judge *j, const struct found *f, const struct pkt *p)
{
    bool was_at_responder;

    if (f->flow == FLOW_NONE)
        return 0;
    was_at_responder = judge_tap_at_responder(j, f->flow, p);
    j->flows[f->flow].two_way_next = 0;
    if (!was_at_responder || !((rule_table[f->rule].needs | f->needs) & N_RSP))
        return 0;
    return judge_tap_at_responder(j, f->flow, p) ? 0 : N_TAP_RSP;
}

/* True if the packet is the first one that ends before its length says, without its ICRC: a mirror cuts many at one
 * length, but this one may have been damaged on its way, as no longer one was seen before. */
static bool may_be_damaged(const struct judge *j, const struct pkt *p)
{
    return p->flags & PKT_SHORT && p->icrc == CRC_UNKNOWN && j->n_short == 1;
}

static void add_finding(struct judge *j, const struct pkt *p, struct found f)
{
    struct verdict v = verdict_fail(f.rule, NULL, 0, 0);
    struct finding g = {.rule = (uint8_t)f.rule,
                        .severity = (uint8_t)f.severity,
                        .file = p ? p->frame->file : j->file,
                        .tap = p ? (uint16_t)conn_tap_of(p->frame) : 0};
    struct finding_text t = {f.wrong, f.expected, f.seen, f.text};
    unsigned doubtful = 0, have, skew;

    if (!judge_wants(j, f.rule))
        return;
    f.needs |= needs_of_side(j, &f, p) | (p && UNLIKELY(may_be_damaged(j, p)) ? N_PAYLOAD : 0);
    have = (judge_have(j, f.flow, p) | f.has) & ~f.lacks;
    if (unreadable_near(j, p, &f))
        have &= ~(unsigned)N_COMPLETE;
    if (f.flow != FLOW_NONE && (rule_table[f.rule].needs | f.needs) & (N_RSP | N_TAP_REQ | N_TAP_RSP) &&
        !(f.has & N_PAIRED) && pairing_is_doubtful(j, f.flow)) {
        doubtful = have & (N_RSP | N_TAP_REQ | N_TAP_RSP);
        have &= ~doubtful;
        if (p && p->op->flags & OPF_RESPONSE && !f.of_silence && !(rule_table[f.rule].traits & T_MSN))
            speaks_against_pairing(&j->flows[f.flow]);
    }
    skew = needs_of_skew(j, &f);
    f.needs |= needs_of_another(j, &f) | skew;
    have &= ~skew;
    v = verdict_weigh(v, have);
    g.missing = (uint16_t)named_needs(j, &f, v.missing | (f.needs & ~have), doubtful);
    g.result = g.missing ? V_INCONCLUSIVE : V_FAIL;
    g.by_side = rests_on_side(j, &f, p);
    g.by_clock = f.by_clock;
    g.by_complete = (rule_table[f.rule].needs | v.needs | f.needs) & N_COMPLETE && !(f.has & N_COMPLETE);
    g.conn = f.flow == FLOW_NONE ? f.conn : j->flow[f.flow].conn;
    g.by_pairing = g.result == V_FAIL && rests_on_pairing(j, &f);
    if (g.by_pairing)
        rest_on_pairing(&j->flows[f.flow], j->flow[f.flow].peer + 1, g.conn);
    if (f.at) {
        g.file = (uint16_t)((f.at - 1) >> 16);
        g.tap = (uint16_t)(f.at - 1);
    }
    if (f.flow != FLOW_NONE) {
        g.file = (uint16_t)(j->flow[f.flow].tap >> 16);
        g.tap = (uint16_t)j->flow[f.flow].tap;
        g.iface = g.missing ? iface_of_flow(j, f.flow) : 0;
    }
    if (UNLIKELY(j->share && g.by_clock))
        judge_share_compares(j, tap_slot(judge_tap_of(j, &g)));
    g.frames[0] = f.frame ? f.frame : p ? p->frame->number : 0;
    g.n_frames = g.frames[0] != 0;
    g.causes[0] = f.cause;
    g.n_causes = f.cause != 0;
    keep(j, &g, &t, f.flow);
}

/* True if a failure of `rule` breaks CM-10 as well: the limit is a parameter that CM states for the requests in
 * `flow`. */
static bool breaks_cm_param(const struct judge *j, enum rule rule, uint32_t flow)
{
    const struct flow *f = flow == FLOW_NONE ? NULL : &j->flow[flow];

    if (!f || f->paired_by != PAIR_CM)
        return false;
    return (rule_table[rule].traits & T_CM_RNR && f->params.have_rnr) ||
           (rule_table[rule].traits & T_CM_TIMEOUT && f->params.timeout_known == PARAM_STATED);
}

void judge_found(struct judge *j, const struct pkt *p, struct found f)
{
    enum rule rule = f.rule;

    j->n_found++;
    if (p)
        judge_is_broken(j, p);
    add_finding(j, p, f);
    if (LIKELY(!breaks_cm_param(j, rule, f.flow)))
        return;
    f.needs |= rule_table[rule].needs;
    f.rule = RULE_CM_10;
    add_finding(j, p, f);
}

void judge_bad_as(struct judge *j, const struct pkt *p, struct found f)
{
    f.flow = p->have & H_BTH ? conn_flow_find(j->conns, p) : FLOW_NONE;
    judge_found(j, p, f);
}

void judge_bad(struct judge *j, const struct pkt *p, enum rule rule, const char *expected, const char *seen,
               const char *text)
{
    judge_bad_as(j, p,
                 (struct found){rule, rule_table[rule].severity, .expected = expected, .seen = seen, .text = text});
}

void judge_warn(struct judge *j, const struct pkt *p, enum rule rule, const char *expected, const char *seen,
                const char *text)
{
    judge_bad_as(j, p, (struct found){rule, SEV_W, .expected = expected, .seen = seen, .text = text});
}

/* A note about a flow: where it is, and which of the two directions of a connection is meant; dst NULL: about none. */
struct about {
    const struct conn_addr *src, *dst;
    uint32_t dqpn, conn, tap, flow;
    ns_t ts; /* of the frame; 0: not known */
};

static void put_direction(const struct about *a, struct buf *b)
{
    buf_puts(b, b->len ? " Direction: " : "Direction: ");
    conn_addr_put(b, a->src);
    buf_puts(b, " > ");
    conn_addr_put(b, a->dst);
    buf_printf(b, " QP 0x%x.", a->dqpn);
}

static void note_about(struct judge *j, enum rule rule, const struct about *a, uint64_t frame,
                       const struct finding_text *said)
{
    struct finding g = {.rule = (uint8_t)rule, .severity = SEV_I, .result = V_PASS, .file = j->file, .ts = a->ts};
    struct finding_text t = *said;
    struct buf b = {0};

    j->n_found++;
    if (!judge_wants(j, rule))
        return;
    if (a->dst) {
        g.conn = a->conn;
        g.file = (uint16_t)(a->tap >> 16);
        g.tap = (uint16_t)a->tap;
    }
    buf_puts(&b, said->text);
    if (a->dst)
        put_direction(a, &b);
    t.text = buf_str(&b);
    g.frames[0] = frame;
    g.n_frames = frame != 0;
    keep(j, &g, &t, a->flow);
    buf_free(&b);
}

void judge_note_as(struct judge *j, enum rule rule, uint32_t flow, uint64_t frame, const char *wrong, const char *seen,
                   const char *text)
{
    const struct flow *f = flow == FLOW_NONE ? NULL : &j->flow[flow];
    struct about a = {.flow = FLOW_NONE};

    if (f)
        a = (struct about){&f->src, &f->dst, f->dqpn, f->conn, f->tap, flow, 0};
    note_about(j, rule, &a, frame, &(struct finding_text){.wrong = wrong, .expected = "", .seen = seen, .text = text});
}

void judge_note_fact(struct judge *j, enum rule rule, const struct flow_fact *f, const char *seen, const char *text)
{
    const struct about a = {&f->src, &f->dst, f->dqpn, f->conn, f->tap, FLOW_NONE, f->first_frame_ts};

    j->owner = (uint8_t)conn_owner_in(&f->src, &f->dst, f->tap >> 16);
    note_about(j, rule, &a, f->first_frame,
               &(struct finding_text){rule_table[rule].severity == SEV_I ? NULL : "{seen}", "", seen, text});
}

void judge_note(struct judge *j, enum rule rule, uint32_t flow, uint64_t frame, const char *seen, const char *text)
{
    judge_note_as(j, rule, flow, frame, rule_table[rule].severity == SEV_I ? NULL : "{seen}", seen, text);
}

void judge_applies(struct judge *j, unsigned on)
{
    if (LIKELY(!(on & ~j->applied)))
        return;
    for (unsigned i = 1; i < RULE_COUNT; i++)
        if (rule_table[i].applies & on & ~j->applied && judge_wants(j, (enum rule)i))
            findings_judged(j->findings, (enum rule)i);
    j->applied |= on;
}

const char *say(struct judge *j, const char *fmt, ...)
{
    char *to = j->said[j->said_at++ % ARRAY_LEN(j->said)];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(to, sizeof j->said[0], fmt, ap);
    va_end(ap);
    return to;
}
