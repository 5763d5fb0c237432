/* layer 3 (judge): the judge's engine: connections, needs, findings, notes about the capture. */
#include "src/judge/judge_impl.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const profiles[] = {[PROFILE_STRICT] = "strict", [PROFILE_RXE] = "rxe", [PROFILE_NV] = "nv"};
static const char *const taps[] = {
    [TAP_UNKNOWN] = "unknown", [TAP_REQUESTER] = "requester", [TAP_RESPONDER] = "responder", [TAP_MIDDLE] = "middle"};

static int find_name(const char *const *names, unsigned n, const char *s)
{
    for (unsigned i = 0; i < n; i++)
        if (strcmp(names[i], s) == 0)
            return (int)i;
    return -1;
}

const char *profile_str(enum profile p)
{
    return profiles[p];
}
bool profile_parse(const char *s, enum profile *p)
{
    int i = find_name(profiles, ARRAY_LEN(profiles), s);

    *p = i < 0 ? PROFILE_STRICT : (enum profile)i;
    return i >= 0;
}
const char *tap_str(enum tap_side t)
{
    return taps[t];
}
bool tap_parse(const char *s, enum tap_side *t)
{
    int i = find_name(taps, ARRAY_LEN(taps), s);

    *t = i < 0 ? TAP_UNKNOWN : (enum tap_side)i;
    return i >= 0;
}

static void flow_reset(struct jflow *f)
{
    free(f->shadow);
    free(f->past);
    memset(f, 0, sizeof *f);
}

static void fresh_flow(void *user, uint32_t flow)
{
    flow_reset(&((struct judge *)user)->flows[flow]);
}

struct judge *judge_new(const struct judge_opts *o)
{
    struct judge *j = calloc(1, sizeof *j);
    const struct observer_sub s = {.user = j, .fresh = fresh_flow};

    if (!j)
        return NULL;
    j->o = *o;
    j->observer = observer_new(&(struct observer_opts){.cautious = true, .complete = o->complete});
    j->flows = calloc(JUDGE_FLOWS, sizeof *j->flows);
    j->findings = findings_new();
    if (!j->observer || !j->flows || !j->findings || !observer_subscribe(j->observer, &s)) {
        judge_free(j);
        return NULL;
    }
    j->conns = observer_conns(j->observer);
    j->flow = conn_flows(j->conns);
    judge_use_header_rules(j, header_rules, n_header_rules);
    for (unsigned i = 0; i < JUDGE_TAPS; i++)
        j->last_ts[i] = INT64_MIN;
    return j;
}

void judge_free(struct judge *j)
{
    if (!j)
        return;
    for (unsigned i = 0; j->flows && i < JUDGE_FLOWS; i++)
        flow_reset(&j->flows[i]);
    free(j->flows);
    observer_free(j->observer);
    findings_free(j->findings);
    free(j);
}

struct conn_table *judge_conns(struct judge *j)
{
    return j->conns;
}
struct findings *judge_findings(struct judge *j)
{
    return j->findings;
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

/* --- Findings --------------------------------------------------------------------------------- */

#define SPOILED_NEAR 64 /* frames within which a packet that could not be read may be the one that is missed */

/* True if the missing PSN may be that of a packet nearby that was damaged or could not be decoded. */
static bool spoiled_near(const struct judge *j, const struct pkt *p, const struct found *f)
{
    uint64_t at = f->frame ? f->frame : p ? p->frame->number : 0;

    return j->spoiled && rule_table[f->rule].traits & T_GAP && at < j->spoiled + SPOILED_NEAR &&
           j->spoiled < at + SPOILED_NEAR;
}

/* 1 << the interface of the flow, where the user has told the interfaces apart; else 0. */
static uint64_t told_iface(const struct judge *j, uint32_t flow)
{
    uint32_t iface = conn_flow_at(j->conns, flow)->tap & 0xffff;

    for (unsigned i = 1; i < JUDGE_TAPS && iface < JUDGE_TAPS; i++)
        if (j->o.tap[i] != j->o.tap[0])
            return UINT64_C(1) << iface;
    return 0;
}

static void found_one(struct judge *j, const struct pkt *p, struct found f)
{
    struct verdict v = verdict_fail(f.rule, NULL, 0, 0);
    struct finding g = {.rule = (uint8_t)f.rule, .severity = (uint8_t)f.severity, .file = p ? p->frame->file : j->file};
    unsigned have = (judge_have(j, f.flow, p) | f.has) & ~f.lacks;
    struct finding_text t = {f.wrong, f.expected, f.seen, f.text};
    unsigned doubtful = 0;

    if (!judge_wants(j, f.rule))
        return;
    if (spoiled_near(j, p, &f))
        have &= ~(unsigned)N_COMPLETE;
    if (f.flow != FLOW_NONE && (rule_table[f.rule].needs | f.needs) & (N_RSP | N_TAP_REQ | N_TAP_RSP) &&
        judge_pairing_doubtful(j, f.flow)) {
        doubtful = have & (N_RSP | N_TAP_REQ | N_TAP_RSP);
        have &= ~doubtful;
        if (p && p->op->flags & OPF_RESPONSE)
            j->flows[f.flow].doubted = j->flows[f.flow].dir->rsp_packets + 1;
    }
    v = verdict_weigh(v, have);
    g.missing = (uint16_t)(v.missing | (f.needs & ~have));
    g.unpaired = (uint16_t)(g.missing & doubtful);
    g.result = g.missing ? V_INCONCLUSIVE : V_FAIL;
    g.conn = f.flow == FLOW_NONE ? 0 : conn_flow_at(j->conns, f.flow)->conn;
    if (f.flow != FLOW_NONE) {
        g.file = (uint16_t)(conn_flow_at(j->conns, f.flow)->tap >> 16);
        g.iface = g.missing ? told_iface(j, f.flow) : 0;
    }
    if (!findings_count(j->findings, &g))
        return;
    g.frames[0] = f.frame ? f.frame : p ? p->frame->number : 0;
    g.n_frames = g.frames[0] != 0;
    g.causes[0] = f.cause;
    g.n_causes = f.cause != 0;
    findings_add(j->findings, &g, &t);
}

/* Whether a failure of `rule` is one of CM-10: its measure is what CM says of the requests in `flow`. */
static bool breaks_agreement(const struct judge *j, enum rule rule, uint32_t flow)
{
    const struct flow *f = flow == FLOW_NONE ? NULL : conn_flow_at(j->conns, flow);

    if (!f || f->paired_by != PAIR_CM)
        return false;
    return (rule_table[rule].traits & T_CM_RNR && f->params.have_rnr) ||
           (rule_table[rule].traits & T_CM_TIMEOUT && f->params.have_timeout);
}

void judge_found(struct judge *j, const struct pkt *p, struct found f)
{
    enum rule rule = f.rule;

    j->found++;
    if (p)
        j->objected = p->frame->number;
    found_one(j, p, f);
    if (LIKELY(!breaks_agreement(j, rule, f.flow)))
        return;
    f.needs |= rule_table[rule].needs;
    f.rule = RULE_CM_10;
    found_one(j, p, f);
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

/* Which of the two flows of a connection is meant. */
static void put_direction(struct judge *j, uint32_t flow, struct buf *b)
{
    const struct flow *f = conn_flow_at(j->conns, flow);

    buf_puts(b, b->len ? " Direction: " : "Direction: ");
    conn_addr_put(b, &f->src);
    buf_puts(b, " > ");
    conn_addr_put(b, &f->dst);
    buf_printf(b, " QP 0x%x.", f->dqpn);
}

void judge_note_as(struct judge *j, enum rule rule, uint32_t flow, uint64_t frame, const char *wrong, const char *seen,
                   const char *text)
{
    struct finding g = {.rule = (uint8_t)rule, .severity = SEV_I, .result = V_PASS, .file = j->file};
    struct finding_text t = {.wrong = wrong, .expected = "", .seen = seen};
    struct buf b = {0};

    j->found++;
    if (!judge_wants(j, rule))
        return;
    if (flow != FLOW_NONE) {
        g.conn = conn_flow_at(j->conns, flow)->conn;
        g.file = (uint16_t)(conn_flow_at(j->conns, flow)->tap >> 16);
    }
    if (!findings_count(j->findings, &g))
        return;
    buf_puts(&b, text);
    if (flow != FLOW_NONE)
        put_direction(j, flow, &b);
    t.text = buf_str(&b);
    g.frames[0] = frame;
    g.n_frames = frame != 0;
    findings_add(j->findings, &g, &t);
    buf_free(&b);
}

void judge_note(struct judge *j, enum rule rule, uint32_t flow, uint64_t frame, const char *seen, const char *text)
{
    judge_note_as(j, rule, flow, frame, rule_table[rule].severity == SEV_I ? NULL : "{seen}", seen, text);
}

/* What a packet with a BTH lets rules be judged by: ON_*. */
static unsigned applies_to(const struct pkt *p)
{
    unsigned service = p->bth.opcode >> 5, on = ON_BTH | (p->have & H_UDP ? ON_UDP : ON_LINK);

    switch (service) {
    case SVC_UD:
        return on | ON_UD | (p->have & H_MAD ? ON_CM : 0);
    case SVC_UC:
        return on | ON_CONN | ON_UC;
    case SVC_XRC:
        return on | ON_CONN | ON_RC | ON_XRC;
    default:
        return on | ON_CONN | ON_RC;
    }
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

/* --- Packets ---------------------------------------------------------------------------------- */

/* From here on treat the capture as incomplete. */
static void doubt_all(struct judge *j)
{
    for (unsigned i = 0; i < JUDGE_FLOWS && !j->blind; i++)
        if (j->flows[i].shadow)
            j->flows[i].shadow->req.u.complete = false;
    j->blind = true;
    observer_incomplete(j->observer);
}

static void note_capture(struct judge *j, const struct pkt *p)
{
    const struct frame *f = p->frame;

    if (UNLIKELY(p->flags & PKT_CUT) && j->cut++ == 0)
        j->cut_frame = frame_u32(p);
    j->drops += f->drops;
    if (UNLIKELY(f->drops))
        observer_incomplete(j->observer);
    if (UNLIKELY(!f->has_ts)) {
        j->untimed++;
        return;
    }
    if (f->iface < JUDGE_TAPS) {
        if (UNLIKELY(j->last_ts[f->iface] == INT64_MIN))
            j->first_ts[f->iface] = f->ts;
        if (UNLIKELY(f->ts < j->last_ts[f->iface])) {
            if (j->backwards++ == 0)
                j->backwards_frame = frame_u32(p);
            doubt_all(j); /* the order of frames is not known */
        }
        j->last_ts[f->iface] = f->ts;
        judge_step_learn(j, f);
    }
}

void judge_drops(struct judge *j, uint16_t file, uint64_t drops)
{
    (void)file;
    j->drops += drops;
}

/* The capture did not keep all of a packet's headers: it counts as one that was not captured. */
static void judge_blind(struct judge *j, const struct pkt *p)
{
    if (!(p->op->ext & H_DETH) && !(p->op->flags & OPF_CNP))
        conn_flow(j->conns, p); /* it numbers its connection all the same */
    doubt_all(j);
}

/* The rules of the transport, once the headers of the packet and the values of its flow were judged. */
static void judge_transport(struct judge *j, const struct pkt *p, uint32_t flow)
{
    struct jflow *f = &j->flows[flow];

    if (p->op->flags & OPF_REQUEST) {
        judge_request(j, p, flow);
    } else {
        judge_response(j, p, flow);
        judge_agreed_answer(j, p, flow);
    }
    if (UNLIKELY(f->gap.have || f->early.have))
        judge_pending(j, p, flow, false);
}

static void judge_connected(struct judge *j, const struct pkt *p, bool clean)
{
    uint32_t flow = conn_flow(j->conns, p);
    struct jflow *f = &j->flows[flow];

    if (UNLIKELY(f->packets++ == 0)) {
        f->first_frame = frame_u32(p);
        f->first_ts = p->frame->ts;
        judge_first(j, p, flow);
    }
    if (UNLIKELY(j->n_pauser))
        judge_while_paused(j, p, flow);
    judge_flow(j, p, flow, clean);
    judge_transport(j, p, flow);
}

/* The slow path: all rules. */
static void judge_any(struct judge *j, const struct pkt *p)
{
    uint64_t found = j->found;
    unsigned on;

    if (UNLIKELY(p->have & H_MAD))
        judge_cm_early(j, p);
    j->said_cm |= p->have & H_MAD || (p->have & H_BTH && p->bth.dqpn == 1); /* be it cut behind its BTH */
    observer_learn(j->observer, p);
    if (p->encap == ENCAP_NONE) {
        judge_pause(j, p);
        return;
    }
    if (!(p->have & H_BTH)) {
        j->spoiled = p->frame->number;
        judge_malformed(j, p);
        return;
    }
    on = applies_to(p);
    judge_applies(j, on);
    if (UNLIKELY(j->o.n_hosts))
        judge_count(j, p);
    if (UNLIKELY(p->icrc == CRC_BAD || p->flags & PKT_MALFORMED)) {
        j->spoiled = p->frame->number;
        judge_malformed(j, p);
        return;
    }
    judge_headers(j, p, on);
    if (UNLIKELY(!p->op->name || p->bth.dqpn == 0))
        j->spoiled = p->frame->number;
    if (UNLIKELY(!p->op->name))
        return;
    if (UNLIKELY(p->op->ext & ~p->have))
        judge_blind(j, p);
    else if (p->op->flags & OPF_CNP)
        judge_cnp(j, p);
    else if (p->op->ext & H_DETH)
        judge_datagram(j, p);
    else
        judge_connected(j, p, j->found == found);
}

void judge_packet(struct judge *j, const struct pkt *p)
{
    bool told_all = j->n_pauser || j->o.n_hosts || j->o.thorough || j->no_usual; /* they look at every packet */
    uint32_t flow;

    j->packets++;
    j->file = p->frame->file;
    note_capture(j, p);
    flow = LIKELY(!told_all) ? judge_usual_flow(j, p) : FLOW_NONE;
    if (UNLIKELY(flow == FLOW_NONE)) {
        judge_any(j, p);
        return;
    }
    j->flows[flow].packets++;
    j->flow[flow].used = true;
    judge_transport(j, p, flow);
}

/* --- The end ---------------------------------------------------------------------------------- */

static void note_capture_end(struct judge *j)
{
    if (j->cut)
        judge_note(j, RULE_CAP_01, FLOW_NONE, j->cut_frame, count_str(j->cut, "packet"),
                   "The snap length cut packets, first this one: their ICRC and what lies in the missing bytes was not "
                   "judged.");
    if (j->drops)
        judge_note_as(j, RULE_CAP_02, FLOW_NONE, 0, "the capture lost frames: {seen}",
                      say(j, "%s dropped", count_str(j->drops, "frame")),
                      "The capture says that it lost frames: what is missing in it may have been on the wire.");
    if (j->backwards)
        judge_note(j, RULE_CAP_03, FLOW_NONE, j->backwards_frame, count_str(j->backwards, "frame"),
                   "Time runs backwards at frames of one interface: what depends on time, or on the order of frames, "
                   "is not decided from there on.");
    if (j->untimed)
        judge_note_as(j, RULE_CAP_03, FLOW_NONE, 0, "{seen} without a time stamp", count_str(j->untimed, "frame"),
                      "Frames carry no time: nothing that depends on time can be decided.");
}

void judge_end(struct judge *j)
{
    struct conn_counts n = conn_counts(j->conns);

    judge_applies(j, ON_CAPTURE);
    for (uint32_t i = 0; i < n.flows; i++) {
        if (j->flows[i].packets) {
            judge_pending(j, NULL, i, true);
            judge_flow_end(j, i);
        }
    }
    judge_strays(j);
    judge_strangers(j);
    judge_marks_end(j);
    judge_pause_end(j);
    judge_counters_end(j);
    judge_fairness(j);
    judge_cm_end(j);
    note_capture_end(j);
    if (n.evicted)
        judge_note_as(j, RULE_CAP_02, FLOW_NONE, 0, "{seen} evicted", count_str(n.evicted, "flow"),
                      "There were more flows at a time than are kept: those unused for longest were forgotten.");
    findings_set(j->findings, j->packets, conn_number(j->conns), n.conns);
}
