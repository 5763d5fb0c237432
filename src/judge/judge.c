/* layer 3 (judge): which checks a packet goes through, and in which order; notes about the capture. */
#include "dissect/ib/cc_wire.h"
#include "src/judge/cm/cm.h"
#include "src/judge/judge_impl.h"
#include "zeros.h"

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

static void flow_reset(struct judge *j, struct jflow *f)
{
    shadow_free(f->shadow);
    history_end_flow(j, f);
    free(f->cuts);
    memset(f, 0, sizeof *f);
}

/* Where a flow that is forgotten is noted, by the hash of its key. */
static uint8_t *forgotten_place(struct judge *j, uint32_t flow, uint8_t *bit)
{
    uint32_t place = (uint32_t)(j->flow[flow].hash * HASH_MULTIPLIER >> 40);

    *bit = (uint8_t)(1u << (place & 7));
    return &j->forgotten[place >> 3];
}

static void flow_over(void *user, uint32_t flow, bool restart)
{
    struct judge *j = user;
    struct jflow *f = &j->flows[flow];
    const struct req_dir *h = f->dir;
    struct before_rep before = {0};
    uint32_t unsolicited_psn = f->unsolicited_psn;
    ns_t unsolicited_ts = f->unsolicited_ts;
    uint8_t bit, *place;

    if (UNLIKELY(j->share && !restart))
        judge_share_born(j, flow);
    if (restart && h && h->have_next)
        before = (struct before_rep){true, h->start};
    if (UNLIKELY(!restart && j->flows[flow].packets)) {
        if (!j->forgotten)
            j->forgotten = calloc(1, FORGOTTEN_BYTES);
        j->flows_lost |= !j->forgotten;
        judge_sweep_end(j, flow, true);
        if (j->forgotten && (place = forgotten_place(j, flow, &bit)))
            *place |= bit;
    }
    flow_reset(j, f);
    f->before_rep = before;
    f->unsolicited_psn = unsolicited_psn;
    f->unsolicited_ts = restart ? unsolicited_ts : 0;
}

/* The first packet of a flow: earlier packets of the flow may have been seen, whose state was evicted. */
static void check_forgotten(struct judge *j, uint32_t flow)
{
    uint8_t bit, *place = j->forgotten ? forgotten_place(j, flow, &bit) : NULL;

    if (UNLIKELY(place && *place & bit))
        j->flows_lost = true;
}

/* The judge has its own observer, even where another one reads the same packets: it must not assume what is not proved
 * (observer_opts.cautious), it leaves out responses to requests from before the capture, and events that are handed out
 * would cost its fast path 7 % more instructions. */
struct judge *judge_new(const struct judge_opts *o)
{
    struct judge *j = zeros_new(1, sizeof *j);
    const struct observer_sub s = {.user = j, .over = flow_over, .fetch = judge_fetch_flow};

    if (!j)
        return NULL;
    j->o = *o;
    j->o.off[RULE_FMT_01] |= o->no_icrc;
    j->observer = observer_new(&(struct observer_opts){
        .cautious = true, .complete = o->complete, .memory = o->memory, .per_flow = ROOM_JUDGED});
    j->flows = j->observer ? zeros_new(observer_flows(j->observer), sizeof *j->flows) : NULL;
    if (j->observer)
        j->histories = pool_new(observer_flows(j->observer), sizeof(struct history));
    j->usual_shift = 64 - USUAL_BITS;
    j->usual = j->observer ? zeros_new(judge_usual_places(j), sizeof *j->usual) : NULL;
    j->findings = findings_new();
    j->sides = judge_sides_new();
    j->recent = zeros_new((size_t)RECENT_FRAMES * CONN_OWNERS, sizeof *j->recent);
    bool have_memory = j->flows && j->histories.all && j->usual && j->findings && j->sides && j->recent;
    if (!have_memory || !observer_subscribe(j->observer, &s) || !judge_iwarp_begin(j)) {
        judge_free(j);
        return NULL;
    }
    j->room = observer_room(j->observer);
    j->conns = observer_conns(j->observer);
    j->flow = conn_flows(j->conns);
    judge_use_header_rules(j, header_rules, n_header_rules);
    return j;
}

void judge_free(struct judge *j)
{
    if (!j)
        return;
    for (uint32_t i = 0; j->conns && i < conn_counts(j->conns).flows; i++)
        flow_reset(j, &j->flows[i]);
    if (j->observer) {
        zeros_free(j->flows, observer_flows(j->observer), sizeof *j->flows);
        pool_end(&j->histories);
        zeros_free(j->usual, judge_usual_places(j), sizeof *j->usual);
    }
    free(j->forgotten);
    free(j->chosen.of);
    judge_sides_free(j->sides);
    zeros_free(j->cm, CM_EXCHANGES, sizeof *j->cm);
    zeros_free(j->recent, (size_t)RECENT_FRAMES * CONN_OWNERS, sizeof *j->recent);
    judge_share_free(j);
    judge_notifiers_free(j);
    observer_free(j->observer);
    findings_free(j->findings);
    zeros_free(j, 1, sizeof *j);
}

struct conn_table *judge_conns(struct judge *j)
{
    return j->conns;
}

struct findings *judge_findings(struct judge *j)
{
    return j->findings;
}

/* --- Packets ---------------------------------------------------------------------------------- */

/* From now on treat the capture as incomplete. */
void judge_treat_as_incomplete(struct judge *j)
{
    for (uint32_t i = 0; i < conn_counts(j->conns).flows && !j->incomplete; i++)
        if (j->flows[i].shadow)
            j->flows[i].shadow->req.u.complete = false;
    j->incomplete = true;
    observer_incomplete(j->observer);
}

static void note_capture(struct judge *j, const struct pkt *p)
{
    const struct frame *f = p->frame;

    if (UNLIKELY(f->drops)) {
        judge_drops(j, f->file, f->drops);
        observer_incomplete(j->observer);
    }
    j->untimed += !f->has_ts;
    if (LIKELY(stamps_take(&j->stamps, f)))
        return;
    if (j->backwards++ == 0) {
        j->backwards_frame = frame_u32(p);
        j->backwards_file = f->file;
    }
    judge_treat_as_incomplete(j); /* the order of frames is unknown */
}

/* A packet that was cut: one of several processes counts it, that of its owner. */
static inline void note_cut(struct judge *j, const struct pkt *p)
{
    if (LIKELY(!(p->flags & PKT_CUT)) || j->silent || j->cut++)
        return;
    j->cut_frame = frame_u32(p);
    j->cut_file = p->frame->file;
    j->cut_ts = p->frame->has_ts ? p->frame->ts : 0;
}

void judge_drops(struct judge *j, uint16_t file, uint64_t drops)
{
    if (!j->drops)
        j->drops_file = file;
    j->drops += drops;
}

void judge_unread(struct judge *j)
{
    if (!j->incomplete)
        judge_treat_as_incomplete(j);
}

/* --- Connected packets ------------------------------------------------------------------------ */

/* The rules of the transport; after the headers of the packet and the values of its flow. */
static void judge_transport(struct judge *j, const struct pkt *p, uint32_t flow)
{
    struct jflow *f = &j->flows[flow];

    if (p->op->flags & OPF_REQUEST)
        judge_request(j, p, flow);
    else
        judge_response(j, p, flow);
    if (UNLIKELY(f->has_gap || f->has_early))
        pending_review(j, p, flow, false);
    if (UNLIKELY(f->cuts != NULL))
        judge_pace(j, p, flow);
}

/* Checks of a packet of a connection, in this order. */
static void (*const connected_checks[])(struct judge *j, const struct pkt *p, uint32_t flow) = {
    judge_while_paused, /* was its sender paused? */
    judge_flow,         /* values that must not change within a flow: P_Key, DSCP, path MTU, ... */
    judge_transport,    /* PSNs, operations, acknowledgements, retransmissions */
};

static void begin_flow(struct judge *j, const struct pkt *p, uint32_t flow)
{
    j->flows[flow].first_frame = frame_u32(p);
    j->flows[flow].first_ts = p->frame->ts;
    j->flows[flow].owner = j->owner;
    judge_hear(j, j->flow[flow].tap, &j->flow[flow].src, &j->flow[flow].dst);
    check_forgotten(j, flow);
    judge_ud_flow(j, flow);    /* did its queue pair receive datagrams before? */
    judge_cm_path(j, p, flow); /* does it use an alternate path that was not accepted? */
    judge_cm_opened(j, flow);  /* was its connection closed before? */
}

static void judge_connected(struct judge *j, const struct pkt *p)
{
    uint32_t flow = conn_flow(j->conns, p);
    bool is_new = j->flows[flow].packets++ == 0;

    if (UNLIKELY(is_new))
        begin_flow(j, p, flow);
    if (UNLIKELY(j->share != NULL) && p->op->flags & OPF_REQUEST)
        judge_share_migreq(j, is_new, p->bth.migreq);
    for (unsigned i = 0; i < ARRAY_LEN(connected_checks); i++)
        connected_checks[i](j, p, flow);
}

/* --- Any packet ------------------------------------------------------------------------------- */

/* Kind of a packet, which selects its checks. */
enum kind {
    NO_INFINIBAND,
    NO_BTH,     /* no BTH: cut or malformed before it */
    DAMAGED,    /* wrong ICRC, or malformed in or after the BTH */
    NO_OPCODE,  /* the opcode is not defined */
    INCOMPLETE, /* the capture does not contain all of its headers */
    CNP,
    DATAGRAM,
    CONNECTED,
};
#define KIND(k)    (1u << (k))
#define WITH_BTH   (KIND(DAMAGED) | READABLE)
#define READABLE   (KIND(NO_OPCODE) | KIND(INCOMPLETE) | KIND(CNP) | KIND(DATAGRAM) | KIND(CONNECTED))
#define UNREADABLE (KIND(NO_BTH) | KIND(DAMAGED))
#define ANY        (~0u)

static enum kind kind_of(const struct pkt *p)
{
    if (p->encap == ENCAP_NONE)
        return NO_INFINIBAND;
    if (!(p->have & H_BTH))
        return NO_BTH;
    if (UNLIKELY(p->icrc == CRC_BAD || p->flags & PKT_MALFORMED))
        return DAMAGED;
    if (UNLIKELY(!p->op->name))
        return NO_OPCODE;
    if (UNLIKELY(p->op->ext & ~p->have))
        return INCOMPLETE;
    if (p->op->flags & OPF_CNP)
        return CNP;
    return p->op->ext & H_DETH ? DATAGRAM : CONNECTED;
}

static void unjudged(struct judge *j, enum unjudged why, uint64_t packets)
{
    if (!j->silent)
        findings_unjudged(j->findings, why, packets);
}

/* The headers were not captured completely: treat the packet as one that was not captured. */
static void judge_incomplete(struct judge *j, const struct pkt *p)
{
    unjudged(j, UNJUDGED_CUT, 1);
    if (!(p->op->ext & H_DETH) && !(p->op->flags & OPF_CNP))
        conn_flow(j->conns, p); /* the connection gets its number at its first packet, also at this one */
    judge_treat_as_incomplete(j);
}

/* A packet that was cut before the end of its BTH: its flow is not known. */
static void judge_headless(struct judge *j, const struct pkt *p)
{
    unjudged(j, UNJUDGED_CUT, (p->flags & PKT_CUT) != 0);
    if (p->flags & PKT_CUT && !j->incomplete)
        judge_treat_as_incomplete(j);
}

static void judge_undefined(struct judge *j, const struct pkt *p)
{
    struct cc_quota m;

    unjudged(j, cc_quota_of(&m, p) ? UNJUDGED_OURS : UNJUDGED_OPCODE, 1);
}

/* Not RDMA, as far as can be told from the packet alone. */
static void judge_foreign(struct judge *j, const struct pkt *p)
{
    (void)p;
    j->foreign++;
}

/* Learn connections and their parameters from the packet. */
static void learn(struct judge *j, const struct pkt *p)
{
    j->have_cm |= p->have & H_MAD || (p->have & H_BTH && p->bth.dqpn == 1); /* QP 1: also if cut after the BTH */
    observer_learn(j->observer, p);
}

/* Remember a packet that belongs to no flow because it is damaged or cannot be decoded: a missing PSN may be that of
 * this packet. */
static void note_unreadable(struct judge *j, const struct pkt *p)
{
    if (!(p->have & H_BTH) || p->icrc == CRC_BAD || p->flags & PKT_MALFORMED || !p->op->name || judge_is_of_no_end(p))
        j->last_unreadable = p->frame->number;
    if (UNLIKELY(p->icrc == CRC_BAD))
        judge_damaged_req(j, p);
}

/* Checks of a packet, in this order: the rows whose `kinds` contain its kind. */
static const struct {
    unsigned kinds; /* KIND() */
    void (*check)(struct judge *j, const struct pkt *p);
} checks[] = {
    {WITH_BTH, judge_cm_early}, /* a REP, before learn() applies it (cm/cm.c) */
    {ANY, learn},               /* connections and their parameters (src/conn/setup.c) */
    {KIND(NO_INFINIBAND), judge_foreign},
    {KIND(NO_INFINIBAND), judge_pause}, /* pause frames (pause.c) */
    {KIND(NO_OPCODE), judge_undefined},
    {UNREADABLE | READABLE, note_unreadable},
    {WITH_BTH, header_applies},           /* the rules that count as judged (header.c) */
    {WITH_BTH, judge_icrc},               /* wrong ICRCs, and whose ICRCs are right (damaged.c) */
    {WITH_BTH, judge_count},              /* counters of hosts (counters.c) */
    {UNREADABLE, judge_lengths},          /* those of IP and UDP (header.c) */
    {UNREADABLE, judge_malformed},        /* ICRC, lengths (damaged.c) */
    {ANY, judge_short},                   /* the frame ends before its packet (damaged.c) */
    {READABLE, judge_headers},            /* rules about the headers of one packet (header.c) */
    {KIND(INCOMPLETE), judge_incomplete}, /* headers cut by the snap length */
    {KIND(NO_BTH), judge_headless},       /* cut before the end of the BTH */
    {KIND(CNP), judge_cnp},               /* CNPs (congestion.c) */
    {KIND(DATAGRAM), judge_datagram},     /* UD (header.c) */
    {KIND(DATAGRAM), judge_cm},           /* connection management (cm/cm.c) */
    {KIND(CONNECTED), judge_connected},   /* RC, UC, XRC: connected_checks[] */
};

/* Remember the time of the packet at hand. */
static inline void note_time(struct judge *j, const struct pkt *p, uint8_t owner)
{
    uint32_t at = j->n_recent[owner]++ % RECENT_FRAMES;

    j->owner = owner;
    if (LIKELY(p->frame->has_ts))
        j->recent[(size_t)owner * RECENT_FRAMES + at] = (struct recent){p->frame->number, p->frame->ts, p->frame->file};
}

/* A packet of a connection that another process follows: what it tells of its tap. */
static void overhear(struct judge *j, const struct pkt *p, unsigned kind)
{
    j->have_cm |= p->bth.dqpn == 1;
    note_unreadable(j, p);
    judge_icrc(j, p);
    judge_short(j, p);
    judge_class(j, p);
    if (kind & KIND(INCOMPLETE))
        judge_treat_as_incomplete(j);
}

/* The slow path: every rule is checked. */
static void judge_by_all_rules(struct judge *j, const struct pkt *p)
{
    unsigned kind = KIND(kind_of(p));
    struct conn_addr src, dst;

    conn_addr_of(p, &src, &dst);
    note_time(j, p, (uint8_t)conn_owner_in(&src, &dst, p->frame->file));
    if (UNLIKELY(j->share != NULL) && judge_is_others(j, kind & (KIND(CONNECTED) | KIND(INCOMPLETE)))) {
        overhear(j, p, kind);
        return;
    }
    note_cut(j, p);
    j->n_found_before = j->n_found;
    for (unsigned i = 0; i < ARRAY_LEN(checks); i++)
        if (checks[i].kinds & kind)
            checks[i].check(j, p);
}

void judge_packet(struct judge *j, const struct pkt *p)
{
    /* some checks must see every packet */
    bool slow_path = j->n_pauser || j->o.n_hosts || j->o.thorough || j->no_usual;
    uint32_t flow;

    j->packets++;
    j->file = p->frame->file;
    j->now = p->frame;
    if (UNLIKELY(j->share != NULL))
        judge_share_packet(j, p);
    note_capture(j, p);
    if (UNLIKELY(p->flags & PKT_SHORT))
        j->n_short++;
    flow = LIKELY(!slow_path) ? judge_usual_flow(j, p) : FLOW_NONE;
    if (UNLIKELY(flow == FLOW_NONE)) {
        judge_by_all_rules(j, p);
        return;
    }
    note_time(j, p, j->flows[flow].owner);
    if (UNLIKELY(p->flags != 0)) {
        note_cut(j, p);
        judge_cut(j, p, flow);
    }
    j->flows[flow].packets++;
    j->flow[flow].used = true;
    judge_transport(j, p, flow);
}

/* --- The end ---------------------------------------------------------------------------------- */

static void note_cut_end(struct judge *j)
{
    j->file = j->cut_file;
    j->at_ts = j->cut_ts;
    if (j->cut)
        judge_note(j, RULE_CAP_01, FLOW_NONE, j->cut_frame, count_str(j->cut, "packet"),
                   "The snap length, or a switch that mirrors frames, cut packets, first this one: their ICRC and what "
                   "lies in the missing bytes was not judged.");
    j->at_ts = 0;
    j->file = 0;
}

static void note_capture_end(struct judge *j)
{
    j->file = j->drops_file;
    if (j->drops)
        judge_note_as(j, RULE_CAP_02, FLOW_NONE, 0, "the capture lost frames: {seen}",
                      say(j, "%s dropped", count_str(j->drops, "frame")),
                      "The capture says that it lost frames: what is missing in it may have been on the wire.");
    j->file = j->backwards_file;
    if (j->backwards)
        judge_note(j, RULE_CAP_03, FLOW_NONE, j->backwards_frame, count_str(j->backwards, "frame"),
                   "Time runs backwards at frames of one interface: what depends on time, or on the order of frames, "
                   "is not decided from there on.");
    j->file = 0;
    if (j->untimed)
        judge_note_as(j, RULE_CAP_03, FLOW_NONE, 0, "{seen} without a time stamp", count_str(j->untimed, "frame"),
                      "Frames carry no time: nothing that depends on time can be decided.");
}

static void judge_flow_end(struct judge *j, uint32_t flow)
{
    const struct jflow *f = &j->flows[flow];
    uint32_t peer = j->flow[flow].peer;

    judge_congestion(j, flow);
    judge_flow_values(j, flow);
    judge_flow_pkey(j, flow);
    judge_flow_transport(j, flow);
    if (!f->dir)
        return;
    judge_request_end(j, flow);
    judge_sweep_end(j, flow, false);
    history_end(j, flow);
    if (f->dir->service == SVC_RC && (peer == FLOW_NONE || !j->flows[peer].packets))
        judge_note_as(j, RULE_CAP_02, flow, f->first_frame, "only {seen} was captured", "one direction",
                      "No packet of the other direction was seen.");
    if (f->dir->copies)
        judge_note_as(j, RULE_CAP_02, flow, 0, "{seen} captured twice", count_str(f->dir->copies, "packet"),
                      "They are there twice, identical from the BTH on: captured, or duplicated on their way.");
}

/* Evicted flows were seen again: packets before and after the eviction were not compared with each other, so rules that
 * compare packets are undecided. */
static void lose_rules(struct judge *j)
{
    for (unsigned i = 1; i < RULE_COUNT; i++)
        if (rule_table[i].applies & (ON_CONN | ON_RC | ON_UC | ON_XRC) && rule_table[i].severity != SEV_I)
            findings_lost(j->findings, (enum rule)i);
}

/* After all packets, what this process alone can judge; first part: in the order of one process what compares all flows
 * comes between the two. */
static void judge_own_flows(struct judge *j)
{
    uint32_t n = conn_counts(j->conns).flows;

    judge_applies(j, ON_CAPTURE);
    judge_iwarp_end(j);
    for (uint32_t i = 0; i < n; i++) {
        if (j->flows[i].packets) {
            judge_share_flow(j, PHASE_FLOWS, i);
            pending_review(j, NULL, i, true);
            judge_flow_end(j, i);
        }
    }
    judge_icrc_end(j);
    judge_short_end(j);
    judge_wrong_qpns(j);
    judge_wrong_flows(j);
    judge_unknown_cnps(j);
    judge_marks_end(j);
    judge_share_at(j, PHASE_NOTIFIERS, 0, 0, 0);
    judge_notifiers_end(j);
}

static void judge_own_taps(struct judge *j)
{
    judge_marked_taps(j);
    judge_share_at(j, PHASE_REST, 0, 0, 0);
    judge_pause_end(j);
}

/* After all that was found: numbers and counts are final. */
static void finish(struct judge *j)
{
    struct conn_counts n = conn_counts(j->conns);

    judge_doubt_sides(j);
    judge_doubt_pairings(j);
    judge_doubt_clocks(j);
    judge_doubt_complete(j);
    findings_renumber(j->findings, j->conns);
    findings_set(j->findings, j->packets, j->packets - j->foreign, conn_number(j->conns), n.conns);
}

void judge_end(struct judge *j)
{
    struct conn_counts n = conn_counts(j->conns);
    uint32_t n_facts;
    struct flow_fact *facts = judge_flow_facts(j, &n_facts);

    judge_own_flows(j);
    judge_ecn_classes(j, facts, n_facts);
    judge_own_taps(j);
    judge_counters_end(j);
    judge_fairness(j, facts, n_facts);
    free(facts);
    judge_qpn_sweeps(j);
    judge_chosen_end(j);
    judge_cm_end(j);
    note_cut_end(j);
    note_capture_end(j);
    if (j->flows_lost || j->room->refused)
        lose_rules(j);
    if (n.evicted)
        judge_note_as(j, RULE_CAP_02, FLOW_NONE, 0, "{seen} evicted", count_str(n.evicted, "flow"),
                      "There were more flows at a time than are kept: those unused for longest were forgotten.");
    finish(j);
}

void judge_part_end(struct judge *j)
{
    uint64_t found;

    judge_own_flows(j);
    judge_own_taps(j);
    found = j->n_found;
    judge_qpn_sweeps(j);
    if (j->n_found != found)
        judge_share_not(j, "somebody tries queue pair numbers");
    judge_cm_end(j);
    judge_doubt_pairings(j);
    judge_doubt_clocks(j);
    judge_doubt_complete(j);
    judge_share_at(j, PHASE_LAST, 0, 0, 0);
    note_capture_end(j);
}

void judge_parts_end(struct judge *j)
{
    uint32_t n;
    struct flow_fact *facts = judge_flow_facts(j, &n);

    judge_parts_replay(j, PHASE_ECN);
    judge_ecn_classes(j, facts, n);
    judge_parts_replay(j, PHASE_REST);
    judge_fairness(j, facts, n);
    judge_chosen_end(j);
    judge_parts_replay(j, PHASE_CM);
    note_cut_end(j);
    judge_parts_replay(j, PHASE_LAST);
    free(facts);
    judge_parts_sum(j);
    finish(j);
}
