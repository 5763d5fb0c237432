/* layer 3 (judge): pause frames of Ethernet, IEEE 802.3x and 802.1Qbb. */
#include "dissect/link/eth.h"
#include "dissect/link/macc.h"
#include "src/judge/judge_impl.h"

/* Nothing in a capture says how fast the link is: the fastest one (800 Gbit/s) makes the shortest pause, 0.64 ns a
 * quantum, the slowest that RDMA is used on (1 Gbit/s) the longest. */
#define PAUSE_MIN(quanta) ((ns_t)(quanta)*64 / 100)
#define PAUSE_MAX         (PAUSE_QUANTA_MAX * (ns_t)PAUSE_QUANTUM_BITS) /* ns at 1 Gbit/s */
#define REACTION          (10 * NS_PER_US) /* time for packets in flight, and for those already handed to the port */
/* no class is paused for this long in a working network; the PFC watchdogs of switches use similar limits */
#define STORM (200 * NS_PER_MS)

static void bad_pause(struct judge *j, const struct pkt *p, const char *expected, const char *seen)
{
    struct found f = found_of(RULE_CC_07, FLOW_NONE);

    f.wrong = "the pause frame is not well-formed: {seen}, expected {expected}";
    f.expected = expected;
    f.seen = seen;
    f.text = "Its receiver ignores a pause frame that is not well-formed.";
    judge_found(j, p, f);
}

/* What is before the opcode of a MAC control frame, and the opcode. */
static void check_macc(struct judge *j, const struct pkt *p, uint32_t at)
{
    uint16_t opcode = load_be16(p->data + at);

    judge_applies(j, ON_PAUSE);
    if (at > ETH_LEN)
        bad_pause(j, p, "no VLAN tag", "a MAC control frame with a VLAN tag");
    if (p->data[6] & 1)
        bad_pause(j, p, "the MAC address of a port", "the source MAC address of a group");
    if (!macc_opcode_known(opcode))
        bad_pause(j, p, "a defined MAC control opcode", say(j, "0x%04x", opcode));
}

/* False if the frame is no pause frame that can be read. */
static bool check_form(struct judge *j, const struct pkt *p, const struct pause_frame *f)
{
    const uint8_t *q = p->data;

    if (p->flags & PKT_MALFORMED) {
        bad_pause(j, p, "a whole pause frame", p->why);
        return false;
    }
    if (memcmp(q, pause_group, sizeof pause_group) != 0)
        bad_pause(j, p, "destination 01:80:c2:00:00:01",
                  say(j, "%02x:%02x:%02x:%02x:%02x:%02x", q[0], q[1], q[2], q[3], q[4], q[5]));
    if (f->classes & ~PAUSE_ALL)
        bad_pause(j, p, "a class-enable vector of 8 bits", say(j, "0x%04x", f->classes));
    for (unsigned i = 0; i < PAUSE_CLASSES; i++)
        if (f->quanta[i] && !(f->classes >> i & 1)) {
            bad_pause(j, p, "no quanta for a class that is not enabled", say(j, "%u for class %u", f->quanta[i], i));
            break;
        }
    return true;
}

static struct pauser *pauser_find(struct judge *j, uint32_t tap, const uint8_t *mac)
{
    for (unsigned i = 0; i < j->n_pauser; i++)
        if (j->pauser[i].tap == tap && memcmp(j->pauser[i].mac, mac, 6) == 0)
            return &j->pauser[i];
    return NULL;
}

/* The entry of the station that sent `p`; NULL: the table is full. */
static struct pauser *pauser_of(struct judge *j, const struct pkt *p)
{
    struct pauser *s = pauser_find(j, conn_tap_of(p->frame), p->data + 6);

    if (s || j->n_pauser == PAUSERS)
        return s;
    s = &j->pauser[j->n_pauser++];
    *s = (struct pauser){.tap = conn_tap_of(p->frame), .first_frame = frame_u32(p), .first_ts = p->frame->ts};
    memcpy(s->mac, p->data + 6, 6);
    return s;
}

bool judge_paused_since(const struct judge *j, uint32_t tap, ns_t since)
{
    for (unsigned i = 0; i < j->n_pauser; i++)
        for (unsigned class = 0; class < ARRAY_LEN(j->pauser[i].class); class ++) {
            const struct pause *c = &j->pauser[i].class[class];
            if (j->pauser[i].tap == tap && c->frame && c->from + PAUSE_MAX >= since)
                return true;
        }
    return false;
}

static void check_storm(struct judge *j, const struct pkt *p, struct pauser *s, unsigned class)
{
    struct pause *c = &s->class[class];
    struct found f = found_of(RULE_CC_07, FLOW_NONE);

    if (c->storm || p->frame->ts - c->since < STORM)
        return;
    c->storm = true;
    f.needs = N_CLOCK;
    f.cause = c->since_frame;
    f.wrong = "the station pauses its neighbour for {seen}, expected {expected}";
    f.expected = "pauses that end";
    f.seen = say(j, "%.1f ms without an end", (double)(p->frame->ts - c->since) / 1e6);
    f.text = "A pause storm: this station keeps its neighbour silent, which fills the queues behind it and spreads.";
    judge_found(j, p, f);
}

/* Class `class` is paused for `quanta`; 0: the pause ends. */
static void take_pause(struct judge *j, const struct pkt *p, struct pauser *s, unsigned class, unsigned quanta)
{
    struct pause *c = &s->class[class];
    ns_t now = p->frame->ts;

    if (quanta == 0) {
        s->ended += c->on;
        c->on = c->storm = false;
        return;
    }
    if (c->on && now - c->from <= PAUSE_MAX) {
        s->repeat_min = s->repeat_max && s->repeat_min < now - c->from ? s->repeat_min : now - c->from;
        s->repeat_max = s->repeat_max > now - c->from ? s->repeat_max : now - c->from;
    } else {
        s->begun++;
        c->since = now;
        c->since_frame = frame_u32(p);
        c->storm = false;
    }
    c->on = true;
    c->from = now;
    c->until = now + PAUSE_MIN(quanta);
    c->frame = frame_u32(p);
    check_storm(j, p, s, class);
}

void judge_pause(struct judge *j, const struct pkt *p)
{
    struct pauser *s;
    struct pause_frame f;

    uint32_t at = macc_opcode_at(p);

    if (LIKELY(!at))
        return;
    check_macc(j, p, at);
    if (!pause_frame_of(&f, p))
        return;
    if (!check_form(j, p, &f) || !f.whole || !(s = pauser_of(j, p)))
        return;
    s->frames++;
    for (unsigned i = 0; i < PAUSE_CLASSES; i++) {
        if (!(f.classes >> i & 1))
            continue;
        take_pause(j, p, s, i, f.quanta[i]);
        s->quanta += f.opcode == MACC_PFC || i == 0 ? f.quanta[i] : 0;
    }
}

/* The latest pause if all classes that the packet may belong to are paused: the class of its VLAN tag, else that of its
 * DSCP, else any class. NULL: one of them is not paused. */
static const struct pause *paused_by(const struct judge *j, const struct pkt *p, const struct pauser *s)
{
    ns_t step = judge_step(j, p);
    unsigned known = j->dscp_class[p->tos >> 2];
    unsigned classes = p->have & H_VLAN                                ? 1u << (p->vlan >> 13)
                       : p->addr_len && known && known != CLASS_VARIES ? 1u << (known - 1)
                                                                       : PAUSE_ALL;
    const struct pause *latest = NULL;

    for (unsigned i = 0; i < PAUSE_CLASSES; i++) {
        const struct pause *c = &s->class[i];
        if (!(classes >> i & 1))
            continue;
        if (!c->on || p->frame->ts < c->from + REACTION + step || p->frame->ts + step >= c->until)
            return NULL;
        latest = c;
    }
    return latest;
}

/* The neighbour of the sender of `p`, at a tap at that sender, has paused it. */
static const struct pause *paused_by_neighbour(struct judge *j, const struct pkt *p)
{
    const struct pause *c = NULL;

    for (unsigned i = 0; i < j->n_pauser && !c; i++)
        if (j->pauser[i].tap == conn_tap_of(p->frame) && memcmp(j->pauser[i].mac, p->data + 6, 6) != 0)
            c = paused_by(j, p, &j->pauser[i]);
    return c;
}

void judge_while_paused(struct judge *j, const struct pkt *p, uint32_t flow)
{
    bool request = p->op->flags & OPF_REQUEST;
    uint32_t of = request ? flow : j->flow[flow].peer;
    const struct pauser *s;
    const struct pause *c;
    struct found f = found_of(RULE_CC_07, of);

    if (LIKELY(!j->n_pauser) || p->frame->linktype != LINK_ETHERNET || p->flags & PKT_TUNNEL || of == FLOW_NONE)
        return;
    s = pauser_find(j, conn_tap_of(p->frame), p->data);
    c = s ? paused_by(j, p, s) : NULL;
    f.needs = N_CLOCK | (request ? N_TAP_RSP : N_TAP_REQ); /* at the paused link */
    f.text = "The destination of this packet has asked its neighbour for silence, for longer than this even on the "
             "fastest link.";
    if (!c && judge_have(j, of, p) & (request ? N_TAP_REQ : N_TAP_RSP)) {
        c = paused_by_neighbour(j, p);
        f.needs = N_CLOCK | (request ? N_TAP_REQ : N_TAP_RSP);
        f.text = "The neighbour of its sender has asked for silence, for longer than this even on the fastest link.";
    }
    if (!c)
        return;
    f.cause = c->frame;
    f.expected = say(j, "silence for at least %.1f us", (double)(c->until - c->from) / 1e3);
    f.seen = say(j, "a packet after %.1f us", (double)(p->frame->ts - c->from) / 1e3);
    judge_found(j, p, f);
}

void judge_pause_end(struct judge *j)
{
    for (unsigned i = 0; i < j->n_pauser; i++) {
        const struct pauser *s = &j->pauser[i];
        j->file = (uint16_t)(s->tap >> 16);
        j->at_ts = s->first_ts;
        judge_note(j, RULE_CC_07, FLOW_NONE, s->first_frame,
                   say(j, "%s of %02x:%02x:%02x:%02x:%02x:%02x, quanta: %llu", count_str(s->frames, "pause frame"),
                       s->mac[0], s->mac[1], s->mac[2], s->mac[3], s->mac[4], s->mac[5], (unsigned long long)s->quanta),
                   say(j,
                       "A quantum is 512 bit times: 5.12 ns at 100 Gbit/s. Times that a later frame cut short are "
                       "counted in full. %s, of which %llu ended by a frame%s.",
                       count_str(s->begun, "pause"), (unsigned long long)s->ended,
                       s->repeat_max ? say(j, ", repeated after %.1f to %.1f us", (double)s->repeat_min / 1e3,
                                           (double)s->repeat_max / 1e3)
                                     : ""));
    }
    j->at_ts = 0;
}
