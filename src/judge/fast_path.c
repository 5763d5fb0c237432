/* layer 3 (judge): the fast path, for packets with the same headers as an earlier packet that broke no rule. */
#include "dissect/ip/ip.h"
#include "fetch.h"
#include "src/judge/judge_impl.h"
#include "zeros.h"

/* Fields that identify the flow of a packet and the layout of its headers. */
#define FLOW_KEY                                                                                                       \
    (READS(IP_VERSION) | READS(IP_IHL) | READS(IP_PROTO) | READS(IP_SRC) | READS(IP_DST) | READS(UDP_DPORT) |          \
     READS(BTH_DQPN))

/* With fewer flows the processor's caches hold them all. */
#define MANY_FLOWS 512

/* Kinds of packets that may take the fast path. */
#define ON_FAST_PATH (ON_BTH | ON_UDP | ON_CONN | ON_RC)

static const struct {
    uint16_t bit;
    uint8_t bits;
} fields[HEADER_INSIDE] = {
#define X(name, bit, bits) [FIELD_##name] = {bit, bits},
    HEADER_FIELDS(X)
#undef X
};

void judge_use_header_rules(struct judge *j, const struct header_rule *rules, unsigned n)
{
    uint64_t reads = FLOW_KEY | judge_value_reads();
    uint8_t bits[HEADER_BYTES] = {0};

    j->header_rules = rules;
    j->n_header_rules = n;
    for (unsigned i = 0; i < n; i++)
        if (rule_table[rules[i].rule].applies & ON_FAST_PATH)
            reads |= rules[i].reads & ~rules[i].plain;
    j->no_usual = reads >> HEADER_INSIDE != 0;
    for (unsigned f = 0; f < HEADER_INSIDE; f++)
        for (unsigned at = fields[f].bit; reads >> f & 1 && at < fields[f].bit + fields[f].bits; at++)
            bits[at / 8] |= (uint8_t)(0x80 >> at % 8);
    for (unsigned i = 0; i < USUAL_WORDS; i++)
        j->usual_bits[i] = load_le64(bits + 8 * i);
}

/* Read the compared header bits of packet `p` into `w`. False: the packet cannot take the fast path. */
static inline bool usual_words(const struct judge *j, const struct pkt *p, uint64_t w[USUAL_WORDS])
{
    if (UNLIKELY((p->have & (H_IP4 | H_UDP | H_BTH)) != (H_IP4 | H_UDP | H_BTH) || p->icrc == CRC_BAD ||
                 p->bth_off != p->ip_off + 28))
        return false;
    if (UNLIKELY(p->flags) && (p->flags != PKT_CUT || p->icrc != CRC_UNKNOWN || p->op->ext & ~p->have))
        return false; /* cut behind its headers only: judge_cut() is all that it has more */
    for (unsigned i = 0; i < USUAL_WORDS; i++)
        w[i] = load_le64(p->data + p->ip_off + 8 * i) & j->usual_bits[i];
    return true;
}

_Static_assert(ROOM_FLOWS_MAX <= UINT32_C(1) << USUAL_TAG_SHIFT, "the number of a flow leaves no room for the tag");

/* Hash of source address and destination QP, of such a packet. */
static inline uint64_t usual_hash(const uint64_t w[USUAL_WORDS])
{
    return (w[1] ^ w[4] << 8) * HASH_MULTIPLIER;
}

/* The place for its flow in judge.usual. */
static inline struct usual_pair *usual_place(struct judge *j, uint64_t hash)
{
    return &j->usual[hash >> j->usual_shift];
}

static inline uint8_t usual_tag(uint64_t hash)
{
    return (uint8_t)(hash >> 24);
}

/* The flow there that has the tag; another one if none has it. */
static inline uint32_t usual_of(const struct usual_pair *u, uint8_t tag)
{
    uint32_t e = u->of[0] >> USUAL_TAG_SHIFT == tag ? u->of[0] : u->of[1];

    return e & ((UINT32_C(1) << USUAL_TAG_SHIFT) - 1);
}

static void usual_put(struct usual_pair *u, uint8_t tag, uint32_t flow)
{
    if (u->of[0] >> USUAL_TAG_SHIFT != tag)
        u->of[1] = u->of[0];
    u->of[0] = (uint32_t)tag << USUAL_TAG_SHIFT | flow;
}

/* --- Packets to come --------------------------------------------------------------------------- */

#define AHEAD_STEP  16 /* packets between two steps for a packet, in which memory arrives */
#define HEADERS_MIN 44 /* bytes of IPv4, UDP and BTH that are looked at */

static bool is_response(const struct ahead *a)
{
    return opcode_table[a->opcode].flags & OPF_RESPONSE;
}

/* The place in the table, by headers that no one has decoded yet. */
static void expect_place(struct judge *j, struct ahead *a, const struct frame *f)
{
    uint32_t at = f->caplen >= 14 && load_be16(f->data + 12) == 0x8100 ? 18 : 14;
    uint64_t w[USUAL_WORDS] = {0};

    *a = (struct ahead){.of = FLOW_NONE};
    if (f->linktype != LINK_ETHERNET || f->caplen < at + HEADERS_MIN || load_be16(f->data + at - 2) != 0x0800)
        return;
    w[1] = load_le64(f->data + at + 8) & j->usual_bits[1];
    w[4] = load_le64(f->data + at + 32) & j->usual_bits[4];
    a->place = usual_place(j, usual_hash(w));
    a->tag = usual_tag(usual_hash(w));
    a->opcode = f->data[at + 28];
    a->psn = load_be32(f->data + at + 36) & PSN_MASK;
    fetch(a->place, 1);
}

/* The flow itself, whose number has arrived. */
static void expect_flow(const struct judge *j, struct ahead *a)
{
    if (!a->place)
        return;
    a->of = usual_of(a->place, a->tag);
    fetch(&j->flow[a->of].in, CACHE_LINE);
    fetch(&j->flows[a->of], HOT_LINES * CACHE_LINE);
    fetch(&j->flows[a->of].kind[is_response(a) ? KIND_RSP : KIND_REQ], CACHE_LINE);
}

/* The requests that it is about: those of its peer, if it is a response. */
static void expect_requests(const struct judge *j, struct ahead *a)
{
    const struct jflow *f;

    if (a->of == FLOW_NONE || !is_response(a))
        return;
    a->of = j->flow[a->of].peer;
    if (a->of == FLOW_NONE)
        return;
    f = &j->flows[a->of];
    fetch(f, HOT_LINES * CACHE_LINE);
}

/* What is kept of them. */
ALWAYS_INLINE void expect_evidence(const struct judge *j, const struct ahead *a)
{
    const struct jflow *f = a->of == FLOW_NONE ? NULL : &j->flows[a->of];

    if (!f || !f->dir || !f->shadow)
        return;
    fetch(f->dir, is_response(a) ? REQ_DIR_HOT : REQ_DIR_REQUESTS);
    fetch(f->shadow, sizeof *f->shadow);
    fetch(f->history, HISTORY_HOT);
    if (is_response(a))
        fetch(&f->history->rsp[a->psn % RSP_IDS], 1);
}

/* The packet that it acknowledges, or the place for it. */
ALWAYS_INLINE void expect_sent(const struct judge *j, const struct ahead *a)
{
    const struct jflow *f = a->of == FLOW_NONE ? NULL : &j->flows[a->of];
    const struct requester *r = f && f->shadow ? &f->shadow->req.r : NULL;

    if (!r || !f->dir || !f->dir->sent)
        return;
    fetch(&f->dir->sent[a->psn & (f->dir->slots - 1)], sizeof *f->dir->sent);
    if (is_response(a))
        fetch(&f->dir->sent[(f->dir->next - 1) & (f->dir->slots - 1)], sizeof *f->dir->sent);
    fetch(req_msg(r, is_response(a) ? r->msg_head : r->msg_tail - 1), 2 * sizeof(struct req_msg));
}

static struct ahead *ahead_of(struct judge *j, unsigned step)
{
    return &j->ahead[(j->n_ahead - step * AHEAD_STEP) % AHEAD];
}

static __attribute__((noinline)) void expect(struct judge *j, const struct frame *f)
{
    expect_place(j, ahead_of(j, 0), f);
    expect_flow(j, ahead_of(j, 1));
    expect_requests(j, ahead_of(j, 2));
    expect_evidence(j, ahead_of(j, 3));
    expect_sent(j, ahead_of(j, 4));
    j->n_ahead++;
}

void judge_expect(struct judge *j, const struct frame *f)
{
    if (UNLIKELY(j->many))
        expect(j, f);
}

void judge_fetch_flow(void *user, uint32_t flow)
{
    const struct judge *j = user;
    const struct jflow *f = &j->flows[flow];

    fetch_to_write(f, HOT_LINES * CACHE_LINE);
    for (unsigned kind = 0; kind < ARRAY_LEN(f->kind); kind++)
        fetch_to_write(&f->kind[kind], CACHE_LINE);
    if (!f->shadow)
        return;
    fetch_to_write(f->shadow, sizeof *f->shadow);
    fetch_to_write(f->history, HISTORY_HOT);
}

void judge_fetch(struct judge *j)
{
    observer_fetch(j->observer);
}

/* --- The table --------------------------------------------------------------------------------- */

size_t judge_usual_places(const struct judge *j)
{
    size_t n = (size_t)1 << USUAL_BITS;

    while (n < (size_t)observer_flows(j->observer) * 2)
        n *= 2;
    return n;
}

static void expect_many(struct judge *j)
{
    j->many = true;
    observer_expect_many(j->observer);
    zeros_many(j->flows, observer_flows(j->observer), sizeof *j->flows);
    pool_many(&j->histories);
    zeros_many(j->usual, judge_usual_places(j), sizeof *j->usual);
}

/* Grow the hash table with the number of flows. Entries at their old places are not moved: their flows are learnt
 * again. */
static void use_more_places(struct judge *j, uint32_t flow)
{
    if (UNLIKELY(flow >= MANY_FLOWS && !j->many))
        expect_many(j);
    while (flow * UINT64_C(2) > UINT64_C(1) << (64 - j->usual_shift) &&
           UINT64_C(1) << (64 - j->usual_shift) < judge_usual_places(j))
        j->usual_shift--;
}

/* Check the fields that header rules declare `plain`, as they are not compared: operation, checksum of the IPv4 header,
 * lengths of IP, UDP, payload and pad, AETH syndrome, SE and AckReq of a response, the range of a RETH, MAC addresses.
 * Extension headers are ensured by judge_usual_learn(), which requires RC. */
static inline bool is_plain(const struct pkt *p, const struct jflow *f)
{
    const uint8_t *ip = p->data + p->ip_off;
    uint32_t flags = p->op->flags, len = p->payload_len, pad = p->bth.padcnt, mtu = f->mtu.value;

    bool lengths_differ = load_be16(ip + 2) != load_be16(ip + 24) + 20u, mtu_unsure = f->mtu.pending || f->long_frame;

    if (UNLIKELY(!(flags & (OPF_REQUEST | OPF_RESPONSE)) || flags & (OPF_FLUSH | OPF_ATOMIC_WRITE)))
        return false;
    if (UNLIKELY(pad || len & 3 || lengths_differ || mtu_unsure || ip4_header_sum_wrong(ip, 20)))
        return false;
    if (UNLIKELY(p->have & H_ETH && (p->data[0] | p->data[6]) & 1)) /* to or from a group */
        return false;
    if (p->have & H_AETH && UNLIKELY(p->aeth.syndrome >> 5 != AETH_ACK)) /* bit 7 is reserved: it must be 0, too */
        return false;
    if (UNLIKELY(flags & OPF_RESPONSE ? p->bth.se | p->bth.ackreq : p->have & H_RETH && reth_wraps(p)))
        return false;
    return flags & (OPF_FIRST | OPF_MIDDLE) ? len == mtu : len <= mtu || !f->mtu.have;
}

uint32_t judge_usual_flow(struct judge *j, const struct pkt *p)
{
    uint64_t w[USUAL_WORDS], differ = 0;
    struct kind_state *k;
    struct jflow *f;
    uint32_t flow, frame = frame_u32(p);

    if (UNLIKELY(!usual_words(j, p, w)))
        return FLOW_NONE;
    flow = usual_of(usual_place(j, usual_hash(w)), usual_tag(usual_hash(w)));
    f = &j->flows[flow];
    k = &f->kind[p->op->flags & OPF_REQUEST ? KIND_REQ : KIND_RSP];
    for (unsigned i = 0; i < USUAL_WORDS; i++)
        differ |= w[i] ^ k->usual[i];
    if (UNLIKELY(differ || k->tap != conn_tap_of(p->frame) || k->vlan != judge_tag_of(p) || k->mac != judge_mac_of(p)))
        return FLOW_NONE;
    if (UNLIKELY(!is_plain(p, f) || (p->icrc == CRC_GOOD && !k->verified)))
        return FLOW_NONE;
    if (p->op->flags & OPF_REQUEST) {
        f->have_after = !(p->op->flags & OPF_READ_REQ);
        f->after = psn_add(p->bth.psn, 1);
    }
    if (p->op->flags & (OPF_FIRST | OPF_MIDDLE))
        f->mtu.value_frame = frame;
    k->frame = f->frame = frame;
    return flow;
}

void judge_usual_catch_up(struct jflow *f)
{
    struct steady *all[] = {&f->service, &f->pkey, &f->migreq};

    for (unsigned i = 0; i < ARRAY_LEN(all) && f->frame; i++)
        if (!all[i]->pending)
            all[i]->value_frame = f->frame;
    for (unsigned i = 0; i < ARRAY_LEN(f->kind); i++) {
        struct kind_state *k = &f->kind[i];
        struct steady *marks[] = {&k->sport, &k->dscp, &k->ect};
        for (unsigned n = 0; n < ARRAY_LEN(marks) && k->frame; n++)
            if (!marks[n]->pending)
                marks[n]->value_frame = k->frame;
        k->frame = 0;
    }
    f->frame = 0;
}

void judge_usual_forget(struct jflow *f)
{
    f->kind[KIND_REQ].usual[0] = f->kind[KIND_RSP].usual[0] = 0;
}

static bool is_settled(const struct jflow *f)
{
    bool pending = f->service.pending || f->pkey.pending || f->migreq.pending;

    for (unsigned i = 0; i < ARRAY_LEN(f->kind); i++)
        pending |= f->kind[i].sport.pending || f->kind[i].dscp.pending || f->kind[i].ect.pending;
    return !pending && f->ends_compared && f->service.value == SVC_RC;
}

void judge_usual_learn(struct judge *j, const struct pkt *p, uint32_t flow, bool clean)
{
    struct jflow *f = &j->flows[flow];
    bool request = p->op->flags & OPF_REQUEST;
    struct kind_state *k = &f->kind[request ? KIND_REQ : KIND_RSP];
    bool compared = !request || f->marks_compared, is_marked = (p->tos & 3) == 3;
    uint64_t w[USUAL_WORDS];
    bool readable = usual_words(j, p, w);

    if (LIKELY(readable)) { /* also if it is not usual yet: by this its memory is fetched ahead of its packets */
        use_more_places(j, flow);
        usual_put(usual_place(j, usual_hash(w)), usual_tag(usual_hash(w)), flow);
    }
    if (UNLIKELY(!is_settled(f))) {
        judge_usual_forget(f);
    } else if (clean && compared && !is_marked && readable &&
               !load_be16(p->data + p->udp_off + 6)) { /* the fast path does not verify UDP checksums */
        memcpy(k->usual, w, sizeof w);
        k->tap = conn_tap_of(p->frame);
        k->verified |= p->icrc == CRC_GOOD;
    } else {
        k->usual[0] = 0;
    }
}
