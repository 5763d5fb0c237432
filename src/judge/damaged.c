/* layer 3 (judge): damaged, malformed and truncated packets, and wrong ICRCs. */
#include "src/judge/judge_impl.h"

/* --- Damaged and malformed packets ------------------------------------------------------------ */

/* True if a malformed XRC request lacks the XRCETH, or a malformed XRC response is longer by an XRCETH. */
static bool xrceth_amiss(const struct pkt *p)
{
    if (p->bth.opcode >> 5 != SVC_XRC || !p->op->name)
        return false;
    if (p->op->flags & OPF_REQUEST)
        return p->payload_off == p->end; /* the ICRC was decoded as the last header */
    return !(p->op->flags & OPF_PAYLOAD) && p->payload_off + 8 == p->end;
}

/* True if the end of the packet, and so its ICRC, is not in the frame. */
static bool is_truncated(const struct pkt *p)
{
    return p->flags & PKT_SHORT && p->flags & PKT_MALFORMED;
}

void judge_malformed(struct judge *j, const struct pkt *p)
{
    if ((p->icrc == CRC_BAD && !is_truncated(p)) || !(p->flags & PKT_MALFORMED) || judge_lengths_differ(p))
        return; /* judge_icrc(); or cut before its BTH */
    j->malformed++;
    if (!(p->have & H_BTH) || p->why_off < p->bth_off)
        judge_bad_as(j, p,
                     (struct found){p->have & H_LRH   ? RULE_FMT_19
                                    : p->have & H_GRH ? RULE_FMT_18
                                                      : RULE_FMT_07,
                                    .wrong = "the lengths in the headers contradict the packet: {seen}",
                                    .expected = "lengths that agree", .seen = p->why,
                                    .text = "The lengths that the headers state contradict the packet."});
    else if (p->op->flags & OPF_CNP)
        judge_cnp_malformed(j, p);
    else if (p->op->ext & (H_IMMDT | H_IETH) && p->payload_off + 4 > p->end)
        judge_bad(j, p, RULE_SEQ_12, "the header that carries the immediate data or the key", p->why,
                  "The opcode announces a header for which the packet has no room.");
    else if (xrceth_amiss(p))
        judge_bad(j, p, RULE_SVC_04, p->op->flags & OPF_REQUEST ? "an XRCETH" : "no XRCETH", p->why,
                  "XRC requests, and they alone, have four bytes more after the BTH.");
    else
        judge_bad(j, p, RULE_FMT_06, "the headers of the opcode", p->why,
                  "Opcode and length of the packet do not fit together.");
}

/* --- Wrong ICRCs ------------------------------------------------------------------------------ */

static void icrc_found(struct judge *j, const struct bad_icrc *b, unsigned needs)
{
    struct found f = found_of(RULE_FMT_01, b->flow);

    f.frame = b->frame;
    f.at = b->tap + 1;
    f.needs = needs;
    f.expected = say(j, "ICRC 0x%08x", b->want);
    f.seen = say(j, "0x%08x", b->got);
    f.text = "The packet was damaged on its way, or its sender calculates the ICRC wrongly. Its receiver drops it "
             "without a word; nothing else in it was judged.";
    judge_found(j, NULL, f);
}

/* What the capture has of the packets that are sent to `s`. */
enum { CAPTURED_NOTHING, CAPTURED_REQUESTS, CAPTURED_RESPONSES };
static unsigned icrc_captured(const struct judge *j, const struct icrc_source *s)
{
    unsigned captured = s->answered ? CAPTURED_RESPONSES : CAPTURED_NOTHING;

    for (uint32_t i = 0; i < conn_counts(j->conns).flows && captured != CAPTURED_RESPONSES; i++)
        if (j->flow[i].tap == s->tap && conn_addr_eq(&j->flow[i].dst, &s->addr))
            captured = j->flows[i].has_rsp ? CAPTURED_RESPONSES : CAPTURED_REQUESTS;
    return captured;
}

/* Whether the packets of a sender were captured before its adapter inserted the ICRC. */
static bool is_before_insertion(const struct judge *j, const struct icrc_source *s)
{
    return icrc_source_is_early(&j->icrc_sources, s, s->bad && icrc_captured(j, s) == CAPTURED_RESPONSES);
}

/* Wrong ICRC `number` is of a request of `f` that may be acknowledged. */
static void icrc_await(struct judge *j, struct jflow *f, uint32_t number)
{
    *(f->bad_icrc_last ? &j->bad_icrc[f->bad_icrc_last - 1].next : &f->bad_icrc) = number;
    f->bad_icrc_last = number;
}

/* Keep a wrong ICRC until it is known whether the packet was acknowledged. It is reported at once if no
 * acknowledgement can come, or the table is full. Not reported: the table is full, and the sender has no right ICRC. */
static void icrc_keep(struct judge *j, const struct icrc_source *s, struct bad_icrc b)
{
    b.source = (uint32_t)(s - j->icrc_sources.of);
    if (s->good && (b.flow == FLOW_NONE || j->n_bad_icrc == BAD_ICRCS)) {
        icrc_found(j, &b, 0);
    } else if (j->n_bad_icrc < BAD_ICRCS) {
        j->bad_icrc[j->n_bad_icrc++] = b;
        if (b.flow != FLOW_NONE)
            icrc_await(j, &j->flows[b.flow], j->n_bad_icrc);
    }
}

/* A cut packet of a flow of which so many are among the findings as may be: it is only counted. */
static bool is_cut_as_others(struct judge *j, const struct pkt *p, uint32_t flow)
{
    struct finding f = {.rule = RULE_FMT_01, .severity = SEV_E, .result = V_INCONCLUSIVE, .missing = N_PAYLOAD};

    if (flow == FLOW_NONE || !j->flows[flow].found_as || j->o.thorough || !judge_wants(j, RULE_FMT_01))
        return false;
    f.conn = j->flow[flow].conn;
    f.flow = j->flows[flow].found_as;
    f.file = (uint16_t)(j->flow[flow].tap >> 16);
    f.tap = (uint16_t)j->flow[flow].tap;
    f.frames[0] = p->frame->number;
    f.n_frames = 1;
    if (!findings_more(j->findings, &f))
        return false;
    j->flows[flow].two_way_next = 0;
    j->n_found++;
    judge_is_broken(j, p);
    return true;
}

void judge_cut(struct judge *j, const struct pkt *p, uint32_t flow)
{
    j->n_found_before++; /* the packet breaks no rule by that: others like it may take the fast path */
    if (is_cut_as_others(j, p, flow))
        return;
    judge_found(j, p,
                (struct found){RULE_FMT_01, .flow = flow, .wrong = "the ICRC cannot be verified: the packet was cut",
                               .expected = "the ICRC", .seen = "a packet that was cut",
                               .text = "The ICRC covers bytes that were not captured."});
}

void judge_icrc(struct judge *j, const struct pkt *p)
{
    bool request = p->op->flags & OPF_REQUEST && !(p->op->ext & H_DETH) && p->bth.opcode >> 5 != SVC_UC;
    struct bad_icrc b = {
        frame_u32(p), conn_tap_of(p->frame), 0, FLOW_NONE,           p->bth.psn,
        p->icrc_got,  p->icrc_want,          0, .silent = j->silent, .ts = p->frame->has_ts ? p->frame->ts : 0};
    struct icrc_source *s;

    if (p->icrc == CRC_UNKNOWN && (p->flags & (PKT_CUT | PKT_MALFORMED)) == PKT_CUT)
        judge_cut(j, p, p->have & H_BTH ? conn_flow_find(j->conns, p) : FLOW_NONE);
    if ((p->icrc != CRC_GOOD && p->icrc != CRC_BAD) || is_truncated(p) ||
        (p->icrc == CRC_BAD && judge_lengths_differ(p)))
        return;
    s = icrc_sources_count(&j->icrc_sources, p);
    if (p->icrc == CRC_GOOD)
        return;
    judge_is_broken(j, p);
    b.flow = request ? conn_flow_find(j->conns, p) : FLOW_NONE;
    if (s)
        icrc_keep(j, s, b);
    else
        icrc_found(j, &b, 0);
}

/* A request with a wrong ICRC was acknowledged. */
static void icrc_settle(struct judge *j, struct bad_icrc *b)
{
    struct jflow *f = &j->flows[b->flow];

    b->settled = true;
    if (f->dir && req_dir_sent(f->dir, b->psn)) {
        icrc_found(j, b, 0); /* it was retransmitted */
    } else {
        f->lacking = true;
        judge_note_as(
            j, RULE_FMT_01, b->flow, b->frame, "wrong ICRC {seen} in the capture only", say(j, "0x%08x", b->got),
            "The packet was acknowledged, and was not retransmitted: its ICRC was right on the wire. What the "
            "capture has of it was not judged.");
    }
}

void judge_icrc_answered(struct judge *j, const struct judged *a)
{
    struct jflow *f = a->f;
    uint32_t proves = response_proves(a->p), *link = &f->bad_icrc;

    f->bad_icrc_last = 0;
    while (*link) {
        uint32_t number = *link;
        struct bad_icrc *b = &j->bad_icrc[number - 1];
        if (psn_diff(proves, b->psn) <= 0) {
            f->bad_icrc_last = number;
            link = &b->next;
            continue;
        }
        *link = b->next;
        icrc_settle(j, b);
    }
}

/* What a finding about wrong ICRCs of `s` needs: without captured responses the packets may have been acknowledged. */
static unsigned icrc_needs(const struct judge *j, const struct icrc_source *s)
{
    return icrc_source_all_wrong(s) && icrc_captured(j, s) == CAPTURED_NOTHING ? N_RSP : 0;
}

/* True if the first wrong ICRC of `a` stands in an earlier file than that of `b`, or in an earlier frame of its file.
 */
static bool is_wrong_earlier(const struct icrc_source *a, const struct icrc_source *b)
{
    return a->tap >> 16 != b->tap >> 16 ? a->tap >> 16 < b->tap >> 16 : a->first < b->first;
}

void judge_icrc_end(struct judge *j)
{
    uint64_t packets = 0, senders = 0;
    const struct icrc_source *first = NULL;

    for (uint32_t i = 0; i < j->n_bad_icrc; i++) {
        const struct bad_icrc *b = &j->bad_icrc[i];
        judge_share_at(j, PHASE_ICRC, b->ts, b->tap >> 16, b->frame);
        j->silent = b->silent;
        j->at_ts = b->ts;
        if (!b->settled && !is_before_insertion(j, &j->icrc_sources.of[b->source]))
            icrc_found(j, b, icrc_needs(j, &j->icrc_sources.of[b->source]));
    }
    j->at_ts = 0;
    for (unsigned i = 0; i < ICRC_SOURCES; i++) {
        const struct icrc_source *s = &j->icrc_sources.of[i];
        if (!is_before_insertion(j, s))
            continue;
        packets += s->bad;
        senders++;
        if (!first || is_wrong_earlier(s, first))
            first = s;
    }
    findings_unjudged(j->findings, UNJUDGED_ICRC, packets);
    j->file = 0;
    if (!first)
        return;
    judge_share_not(j, "no ICRC of some senders is right");
    j->file = (uint16_t)(first->tap >> 16);
    j->at_ts = first->first_ts;
    judge_note_as(j, RULE_CAP_01, FLOW_NONE, first->first, "{seen} has a right ICRC",
                  say(j, "none of %s from %llu address%s", count_str(packets, "packet"), (unsigned long long)senders,
                      senders == 1 ? "" : "es"),
                  "They were captured before the adapter inserted the ICRC, or their addresses were rewritten. "
                  "Nothing in them was judged: --no-icrc judges the rest of them.");
    j->at_ts = 0;
    j->file = 0;
}

/* --- Frames shorter than their packets -------------------------------------------------------- */

void judge_short(struct judge *j, const struct pkt *p)
{
    uint32_t owner = ts_owner(p->frame), len = p->frame->len;
    unsigned i = 0;

    if (LIKELY(!(p->flags & PKT_SHORT && p->flags & PKT_CUT) || p->encap == ENCAP_NONE))
        return;
    judge_treat_as_incomplete(j); /* whether its receiver got the whole packet is not known */
    while (i < SHORT_LENS && j->short_frames[i].first &&
           !(j->short_frames[i].owner == owner && j->short_frames[i].len == len))
        i++;
    if (i == SHORT_LENS) {
        j->short_lost = true;
        return;
    }
    if (j->short_frames[i].n++ == 0)
        j->short_frames[i] = (struct short_frames){.owner = owner,
                                                   .len = len,
                                                   .flow = p->have & H_BTH ? conn_flow_find(j->conns, p) : FLOW_NONE,
                                                   .first = frame_u32(p),
                                                   .silent = j->silent,
                                                   .ts = p->frame->ts,
                                                   .n = 1};
}

void judge_short_end(struct judge *j)
{
    for (unsigned i = 0; i < SHORT_LENS && j->short_frames[i].first && !j->short_lost; i++) {
        const struct short_frames *s = &j->short_frames[i];
        const struct stamps *from = stamps_at(&j->stamps, s->owner);
        struct found f = found_of(RULE_FMT_07, s->flow);

        if (s->n > 1 || !from || s->len >= from->longest)
            continue;
        judge_share_at(j, PHASE_SHORT, s->ts, s->owner, s->first);
        j->silent = s->silent;
        j->at_ts = s->ts;
        f.frame = s->first;
        f.wrong = "the lengths in the headers contradict the packet: {seen}";
        f.expected = "lengths that agree";
        f.seen = say(j, "they exceed its frame of %u bytes", s->len);
        f.text =
            "The lengths that the headers state exceed the frame. No switch that mirrors frames has cut it: longer "
            "ones are in the capture, and no other one ends there.";
        judge_found(j, NULL, f);
    }
    j->at_ts = 0;
}
