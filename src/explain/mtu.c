/* layer 3 (explain): a path that drops large packets: requests, or the responses to READs, before the tap or after it.
 */
#include "dissect/ib/opcode.h"
#include "src/conn/retries.h"
#include "src/explain/compare/taps.h"
#include "src/explain/explain_impl.h"

#define BLACK_HOLE_TRIES   3         /* copies of large packets that did not arrive */
#define BLACK_HOLE_SMALLER 8         /* smaller packets that arrived, */
#define BLACK_HOLE_NAKS    2         /* or connections on which NAKs show that some did behind the large one */
#define BLACK_HOLE_STUCK   2         /* connections whose large packets do not arrive any more */
#define BLACK_HOLE_MIN     512       /* bytes; no MTU is smaller */
#define BLACK_HOLE_ALIVE   NS_PER_MS /* a host that still responds so long after it lacked the first is not gone */

/* Packets to one address that were acknowledged, or not: of `size` bytes, and smaller. Of READ responses: those from
 * it. */
struct sizes {
    uint32_t size;                 /* bytes of the packets retransmitted that never arrived; 0: none */
    uint32_t tries, stuck, spent;  /* copies of them; their connections; of these, how many used up their retries, */
    uint32_t last_try;             /* or sent the last one before the capture ended */
    uint32_t arrived, arrived_max; /* packets acknowledged; bytes of the largest */
    uint32_t naks, nak;            /* connections with a NAK for a large packet; the frame of one such NAK */
    uint32_t frame;                /* the first large one, or the READ that requests it */
    ns_t ts;
    uint32_t asked; /* copies of the oldest packet without a response, of all connections */
    uint32_t unseen,
        passed;       /* READs: connections on which none of the responses to the oldest passed, and on which all did */
    uint32_t read;    /* bytes of the shortest of these READs */
    uint32_t acks;    /* READs: other responses that arrived: they have no payload */
    uint32_t implied; /* READs whose responses passed: connections whose requester went back for a later response */
    bool differ;      /* the largest responses to these READs differ in size: `size` is that of the shortest */
    bool other;       /* another request to the host, whose response is small, had none */
    bool narrowed; /* packets of that size arrived before, none since; `arrived` and `arrived_max` are of those since */
};

/* True if a packet was sent as often as the retry count allows. */
static bool is_spent(struct explainer *x, const struct req_dir *h, const struct sent *s)
{
    const struct conn_params *c = &conn_flow_at(observer_conns(x->observer), h->flow)->params;

    return s->copies > (c->retry_known && c->retry_cnt < RETRIES_MAX ? c->retry_cnt : RETRIES_MAX);
}

/* True if the capture ends before the ACK timer of the latest copy of a packet expires. */
static bool is_cut_off(struct explainer *x, const struct req_dir *h, const struct sent *s)
{
    uint32_t tap = conn_flow_at(observer_conns(x->observer), h->flow)->tap;

    return s->copies > 1 && explain_ends_before(x, tap, s->ts, (s->ts - s->ts_first) / (s->copies - 1));
}

/* The flows with the same tap and responder as `f`. */
static struct flows_to flows_to(struct explainer *x, const struct flow *f)
{
    return explain_flows_to(x, &f->dst, f->tap);
}

/* 0: not known. */
static uint32_t pmtu_of(struct explainer *x, uint32_t flow)
{
    const struct req_dir *h = observer_req_dir(x->observer, flow);

    return h && h->pmtu ? h->pmtu : conn_flow_at(observer_conns(x->observer), flow)->pmtu;
}

/* --- Requests --------------------------------------------------------------------------------- */

/* The requester of `h` sent `s` again and again in vain. */
static void add_stuck(struct explainer *x, struct sizes *z, const struct req_dir *h, const struct sent *s)
{
    if (!z->frame || s->ts_first < z->ts) {
        z->frame = s->first;
        z->ts = s->ts_first;
    }
    z->stuck++;
    z->asked += s->copies;
    if (is_spent(x, h, s))
        *(is_cut_off(x, h, s) ? &z->last_try : &z->spent) += 1;
    if (h->seq.have && h->have_una && h->seq.psn == h->una) {
        z->naks++;
        z->nak = !z->nak || h->seq.frame < z->nak ? h->seq.frame : z->nak;
    }
}

/* Count the packets of `h`, first sent after `since`, that were acknowledged. */
static void add_arrived(struct sizes *z, const struct req_dir *h, ns_t since)
{
    for (unsigned i = 0; h->have_una && i < h->slots; i++) {
        const struct sent *s = &h->sent[i];
        if (s->psn == UINT32_MAX || s->ts_first <= since || psn_diff(h->una, s->psn) <= 0)
            continue;
        z->arrived++;
        z->arrived_max = s->len > z->arrived_max ? s->len : z->arrived_max;
    }
}

static void add_sizes(struct explainer *x, struct sizes *z, struct req_dir *h)
{
    const struct sent *stuck = req_dir_sent(h, h->have_una ? h->una : h->start);

    add_arrived(z, h, INT64_MIN);
    if (!stuck || stuck->copies < 2)
        return;
    if (!z->size || stuck->len < z->size)
        z->size = stuck->len;
    for (unsigned i = 0; i < h->slots; i++)
        if (h->sent[i].psn != UINT32_MAX && psn_diff(h->sent[i].psn, stuck->psn) >= 0 && h->sent[i].len >= stuck->len)
            z->tries += h->sent[i].copies;
    add_stuck(x, z, h, stuck);
}

/* What was sent in flow `i`; NULL: no requests. */
static struct req_dir *requests_of(struct explainer *x, uint32_t i)
{
    struct req_dir *h = observer_req_dir(x->observer, i);

    return h && h->have_next ? h : NULL;
}

/* Whether packets as large as those that do not arrive did arrive before: then those alone count that were sent since.
 * One queue pair that does not respond any more does not show that the path changed. */
static bool is_narrowed(struct sizes *z)
{
    z->narrowed = z->stuck >= BLACK_HOLE_STUCK && z->size && z->arrived_max >= z->size;
    if (z->narrowed)
        z->arrived = z->arrived_max = z->acks = 0;
    return z->narrowed;
}

static void count_since(struct explainer *x, struct sizes *z, const struct flow *f)
{
    if (!is_narrowed(z))
        return;
    for (struct flows_to to = flows_to(x, f); to.at < to.end; to.at++) {
        const struct req_dir *h = requests_of(x, explain_flow_to(x, to.at));
        if (h)
            add_arrived(z, h, z->ts);
    }
}

/* Count the ACKs of a flow for requests before PSN `end`. */
static void add_acks(struct sizes *z, const struct flow_notes *t, uint32_t end)
{
    for (uint32_t i = 0; i < t->responses.slots; i++) {
        const struct noted_response *r = &t->responses.by_psn[i];
        z->acks += r->psn != UINT32_MAX && !r->answer && r->kind == RESPONSE_OTHER && psn_diff(end, r->psn) > 0;
    }
}

/* Count the ACKs of the other direction of flow `i` that arrived: the oldest request there without a response is behind
 * them, or there is none. */
static void add_acks_back(struct explainer *x, struct sizes *z, uint32_t i)
{
    uint32_t peer = conn_flow_at(observer_conns(x->observer), i)->peer;
    const struct req_dir *h = peer == FLOW_NONE || !x->notes[peer] ? NULL : requests_of(x, peer);

    if (h && h->have_una)
        add_acks(z, x->notes[peer], h->back ? h->back_psn : h->una);
}

/* Count the requests of all flows to the destination of `f`. */
static struct sizes sizes_to(struct explainer *x, const struct flow *f)
{
    struct sizes z = {0};

    for (struct flows_to to = flows_to(x, f); to.at < to.end; to.at++) {
        struct req_dir *h = requests_of(x, explain_flow_to(x, to.at));
        if (h) {
            add_sizes(x, &z, h);
            add_acks_back(x, &z, explain_flow_to(x, to.at));
        }
    }
    return z;
}

/* True if only the size distinguishes the packets that arrived from those that did not. */
static bool is_black_hole(const struct sizes *z)
{
    return z->size >= BLACK_HOLE_MIN && z->tries >= BLACK_HOLE_TRIES && z->arrived_max < z->size &&
           (z->arrived + z->acks >= BLACK_HOLE_SMALLER || (z->naks + z->implied >= BLACK_HOLE_NAKS && !z->narrowed));
}

/* True if the oldest request without a response was retransmitted. */
static bool is_stuck(struct explainer *x, uint32_t flow)
{
    struct req_dir *h = observer_req_dir(x->observer, flow);
    const struct sent *s = h && h->have_next ? req_dir_sent(h, h->have_una ? h->una : h->start) : NULL;

    return s && s->copies > 1;
}

/* True if no earlier flow to that host at the tap has the trouble that `has` looks for. */
static bool is_first_to(struct explainer *x, uint32_t flow, bool (*has)(struct explainer *x, uint32_t flow))
{
    const struct flow *f = conn_flow_at(observer_conns(x->observer), flow);

    for (struct flows_to to = flows_to(x, f); to.at < to.end && explain_flow_to(x, to.at) < flow; to.at++)
        if (has(x, explain_flow_to(x, to.at)))
            return false;
    return true;
}

static void say_spent(struct incident *st, const struct sizes *z)
{
    if (z->spent)
        incident_add(st, SAY(SPENT_ON, .n = z->spent));
    if (z->last_try)
        incident_add(st, SAY(SPENT_SOON, .n = z->last_try));
}

/* Incident `by` explains why requests to that host at the tap are lost or have no response. */
static void supersede_requests(struct explainer *x, uint32_t by, const struct flow *f)
{
    for (uint32_t i = 0; i < by; i++) {
        const struct incident *o = &x->incidents[i];
        if ((has_no_response(o) || o->cause == CAUSE_PACKET_LOSS) && o->tap == f->tap && conn_addr_eq(&o->dst, &f->dst))
            cross_supersede(x, by, i);
    }
}

static void end_mtu(struct explainer *x, uint32_t flow)
{
    const struct flow *f = conn_flow_at(observer_conns(x->observer), flow);
    bool first = is_stuck(x, flow) && is_first_to(x, flow, is_stuck);
    struct sizes z = first ? sizes_to(x, f) : (struct sizes){0};
    struct incident *st;
    uint32_t by;

    if (first)
        count_since(x, &z, f);
    by = is_black_hole(&z) ? cross_new(x, CAUSE_MTU_BLACK_HOLE, f->tap, z.ts) : NO_INCIDENT;
    st = incident_at(x, by);
    if (!st)
        return;
    st->place = PLACE_AFTER;
    st->dst = f->dst;
    incident_frame(st, ROLE_LOST, z.frame);
    if (z.narrowed)
        incident_is(st, SAY(BLACK_HOLE_SINCE, .n = z.size, .m = z.tries, .lost = z.frame, .k = z.arrived,
                            .address = z.arrived_max));
    else
        incident_is(st, SAY(BLACK_HOLE, .n = z.size, .m = z.tries, .lost = z.frame,
                            .k = z.arrived < BLACK_HOLE_SMALLER ? 0 : z.arrived, .address = z.arrived_max));
    if (z.arrived < BLACK_HOLE_SMALLER && z.acks)
        incident_add(st, SAY(BLACK_HOLE_ACKS, .n = z.acks));
    if (z.arrived + z.acks < BLACK_HOLE_SMALLER)
        incident_add(st, SAY(BLACK_HOLE_NAKS, .n = z.naks, .nak = z.nak));
    say_spent(st, &z);
    supersede_requests(x, by, f);
}

/* The last packet of a message that came again and again behind the PSN of a NAK, while what is before it in that
 * message never came to the tap; NULL: none. */
static const struct sent *cut_message(struct req_dir *h)
{
    bool missing = h && h->have_next && h->seq.have && h->have_una && h->una == h->seq.psn;

    for (unsigned i = 0; missing && !req_dir_sent(h, h->una) && i < h->slots; i++) {
        const struct sent *s = &h->sent[i];
        bool cut = s->psn != UINT32_MAX && psn_diff(s->psn, h->una) > 0 && !req_dir_sent(h, psn_prev(s->psn));
        if (cut && s->copies >= BLACK_HOLE_TRIES && opcode_table[s->opcode].flags & OPF_LAST)
            return s;
    }
    return NULL;
}

static bool is_cut(struct explainer *x, uint32_t flow)
{
    return cut_message(observer_req_dir(x->observer, flow)) != NULL;
}

/* Whether packets of full size, `size` (0: not known), do not come any more, and enough shorter ones do: the last ones
 * of the same messages, or others. */
static bool is_cut_hole(const struct sizes *z)
{
    uint32_t shorter = z->narrowed ? z->arrived + z->asked : z->arrived;

    return z->stuck && shorter >= BLACK_HOLE_SMALLER && (!z->size || z->arrived_max < z->size);
}

/* The path before the tap drops the large packets of messages to a host: only the last, shorter ones come. */
static void end_mtu_before(struct explainer *x, uint32_t flow)
{
    const struct flow *f = conn_flow_at(observer_conns(x->observer), flow);
    bool first = is_cut(x, flow) && is_first_to(x, flow, is_cut);
    struct sizes z = first ? sizes_to(x, f) : (struct sizes){0};
    struct incident *st;
    uint32_t by;

    for (struct flows_to to = flows_to(x, f); first && to.at < to.end; to.at++) {
        struct req_dir *h = observer_req_dir(x->observer, explain_flow_to(x, to.at));
        const struct sent *s = cut_message(h);
        if (s)
            add_stuck(x, &z, h, s);
    }
    z.size = pmtu_of(x, flow);
    if (first)
        count_since(x, &z, f);
    if (!is_cut_hole(&z))
        return;
    by = cross_new(x, CAUSE_MTU_BLACK_HOLE, f->tap, z.ts);
    st = incident_at(x, by);
    if (!st)
        return;
    st->place = PLACE_BEFORE;
    st->dst = f->dst;
    incident_frame(st, ROLE_INSTEAD, z.frame);
    incident_is(
        st, SAY(BLACK_HOLE_BEFORE, .instead = z.frame, .n = z.asked, .nak = z.nak, .k = z.arrived, .m = z.arrived_max));
    if (z.narrowed)
        incident_add(st, SAY(BLACK_HOLE_BEFORE_THAT, .lost = z.frame));
    say_spent(st, &z);
    supersede_requests(x, by, f);
}

bool mtu_lacks_request(struct explainer *x, uint32_t flow, uint32_t *psn)
{
    const struct req_dir *h = observer_req_dir(x->observer, flow);

    *psn = h && h->have_una ? h->una : h ? h->start : 0;
    return h && h->have_next && (is_stuck(x, flow) || is_cut(x, flow));
}

/* --- READ responses --------------------------------------------------------------------------- */

/* Bytes of the largest response to READ `a`; of the whole READ, if the path MTU is not known. */
static uint32_t largest_response(const struct read_req *a, uint32_t pmtu)
{
    return pmtu && a->len > pmtu ? pmtu : a->len;
}

/* How many responses to READ `a` but its last one came to the tap. */
static uint32_t full_ones(const struct flow_notes *t, const struct read_req *a)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i + 1 < a->span; i++)
        n += answer_frame(t, psn_add(a->psn, i)) != 0;
    return n;
}

/* True if nothing but a short last response came to READ `a`, or nothing at all although it is the `oldest` request
 * without a response, or later ones had one: its largest responses were lost before the tap. */
static bool lacks_full(const struct flow_notes *t, const struct read_req *a, uint32_t pmtu, bool oldest)
{
    bool last = answer_frame(t, psn_add(a->psn, a->span - 1)) != 0, short_last = a->len < a->span * pmtu;

    return !a->answered && (last ? a->span > 1 && short_last : oldest) && !full_ones(t, a);
}

/* The oldest READ of a flow that was requested again and again from its first response on; `passed`: although its
 * responses came to the tap. NULL: none. */
static const struct read_req *stuck_read(struct explainer *x, uint32_t flow, bool *passed)
{
    const struct flow_notes *t = x->notes[flow];
    const struct tries *tries = observer_tries(x->observer, flow);
    struct req_dir *h = observer_req_dir(x->observer, flow);
    bool oldest;

    for (uint32_t i = h && h->have_next && t ? h->read_slots : 0; i > 0; i--) {
        const struct read_req *a = req_dir_latest_read(h, i);
        bool read = a->span && a->span <= NOTED_RESPONSES && !a->again && a->opcode == OP_READ_REQUEST;
        const struct sent *s = read ? req_dir_sent(h, a->psn) : NULL;
        if (!s || s->copies < BLACK_HOLE_TRIES)
            continue;
        oldest = psn_diff(h->have_una ? h->una : h->start, a->psn) >= 0;
        *passed = tries->psn == a->psn && tries->next == h->next && answer_frame(t, a->psn);
        return *passed || lacks_full(t, a, pmtu_of(x, flow), oldest) ? a : NULL;
    }
    return NULL;
}

static bool is_read_stuck(struct explainer *x, uint32_t flow)
{
    bool passed;

    return stuck_read(x, flow, &passed) != NULL;
}

bool mtu_lacks_response(struct explainer *x, uint32_t flow, uint32_t *psn)
{
    bool passed;
    const struct read_req *a = stuck_read(x, flow, &passed);

    *psn = a ? a->psn : 0;
    return a != NULL;
}

/* Count the responses to the READs of a flow, requested after `since` and before `stuck` (NULL: to the end): its
 * requester received them. */
static void add_received(struct explainer *x, struct sizes *z, uint32_t flow, const struct read_req *stuck, ns_t since)
{
    const struct req_dir *h = observer_req_dir(x->observer, flow);

    for (uint32_t i = h ? h->read_slots : 0; i > 0; i--) {
        const struct read_req *a = req_dir_latest_read(h, i);
        uint32_t size = largest_response(a, pmtu_of(x, flow));
        if (a == stuck)
            return;
        if (!a->answered || a->again || a->opcode != OP_READ_REQUEST || a->ts <= since)
            continue;
        z->arrived += a->span;
        z->arrived_max = size > z->arrived_max ? size : z->arrived_max;
    }
}

/* Count the READ responses of a flow that came to the tap. */
static void add_came(struct sizes *z, const struct flow_notes *t)
{
    z->arrived += t->responses.reads;
    z->arrived_max = t->responses.largest > z->arrived_max ? t->responses.largest : z->arrived_max;
}

/* Count a flow with a stuck READ. */
static void add_stuck_read(struct explainer *x, struct sizes *z, uint32_t flow, const struct read_req *a, bool passed)
{
    struct req_dir *h = observer_req_dir(x->observer, flow);
    const struct sent *s = req_dir_sent(h, a->psn);
    uint32_t size = largest_response(a, pmtu_of(x, flow));
    bool last = answer_frame(x->notes[flow], psn_add(a->psn, a->span - 1)) != 0;

    z->differ |= z->stuck && size != z->size;
    z->size = !z->stuck || size < z->size ? size : z->size;
    z->read = !z->stuck || a->len < z->read ? a->len : z->read;
    z->tries += s->copies * (a->span > 1 ? a->span - 1 : 1);
    z->passed += passed;
    z->implied += passed && x->notes[flow]->responses.implied == a->psn;
    z->unseen += !passed && !last;
    add_stuck(x, z, h, s);
}

/* The READs of all flows to the responder of `f`. */
static struct sizes sizes_back(struct explainer *x, const struct flow *f)
{
    struct sizes z = {0};

    for (struct flows_to to = flows_to(x, f); to.at < to.end; to.at++) {
        uint32_t i = explain_flow_to(x, to.at);
        const struct read_req *a;
        bool passed = false;
        if (!x->notes[i])
            continue;
        a = stuck_read(x, i, &passed);
        if (a)
            add_stuck_read(x, &z, i, a, passed);
        z.other |= !a && is_stuck(x, i);
        if (a && passed) { /* its requester goes on from there: it has the responses before */
            add_received(x, &z, i, a, INT64_MIN);
            add_acks(&z, x->notes[i], a->psn);
        } else {
            add_came(&z, x->notes[i]);
            add_acks(&z, x->notes[i], requests_of(x, i) ? requests_of(x, i)->next : 0);
        }
    }
    return z;
}

/* Likewise of READ responses: see count_since(). */
static void count_back_since(struct explainer *x, struct sizes *z, const struct flow *f)
{
    if (!is_narrowed(z))
        return;
    for (struct flows_to to = flows_to(x, f); to.at < to.end; to.at++)
        if (x->notes[explain_flow_to(x, to.at)])
            add_received(x, z, explain_flow_to(x, to.at), NULL, z->ts);
}

/* True if only the size distinguishes the READ responses that came from those that did not; and, if nothing at all came
 * to a large READ, if nothing small is missing. */
static bool is_black_hole_back(const struct sizes *z)
{
    bool one_side = !z->passed || z->passed == z->stuck, small_missing = z->unseen && z->other;

    return is_black_hole(z) && one_side && !small_missing;
}

/* The latest packet of the host of `f` as responder at that tap, if it came long after `since`; 0: none. */
static uint32_t alive_after(struct explainer *x, const struct flow *f, ns_t since)
{
    const struct host_seen *s = host_seen_at(x, &f->dst, f->tap);

    for (struct flows_to to = flows_to(x, f); to.at < to.end; to.at++) {
        const struct flow_notes *t = x->notes[explain_flow_to(x, to.at)];
        if (t && t->responses.last_ts > since + BLACK_HOLE_ALIVE)
            return t->responses.last_frame;
    }
    return s && s->ts > since + BLACK_HOLE_ALIVE ? s->frame : 0;
}

/* True if an incident is about a stuck READ to the host of `f`: of this tap, or of another one that saw the same READ.
 */
static bool is_of_stuck_read(struct explainer *x, const struct incident *o, const struct flow *f)
{
    bool loss = o->cause == CAUSE_LOST_READ_RESPONSE || o->cause == CAUSE_PACKET_LOSS;
    bool concerned = incident_stands(o) && o->flow != FLOW_NONE && (loss || has_no_response(o));

    for (struct flows_to to = flows_to(x, f); concerned && to.at < to.end; to.at++) {
        uint32_t i = explain_flow_to(x, to.at);
        bool passed, same = i == o->flow || explain_same_flow(x, i, o->flow);
        const struct read_req *a = same ? stuck_read(x, i, &passed) : NULL;
        if (a && (!loss || psn_diff(o->psn, a->psn) >= 0))
            return true;
    }
    return false;
}

static void say_back(struct explainer *x, struct incident *st, const struct sizes *z, const struct flow *f)
{
    bool nothing = z->unseen == z->stuck; /* came to any of these READs */
    uint32_t alive = nothing ? alive_after(x, f, z->ts) : 0;

    st->dst = f->dst;
    st->place = z->passed ? PLACE_AFTER : PLACE_BEFORE;
    incident_frame(st, ROLE_LOST, z->frame);
    if (z->passed)
        incident_is(st, SAY(BLACK_HOLE_AFTER, .n = z->size, .code = z->differ, .m = z->tries, .k = z->arrived,
                            .address = z->arrived_max));
    else if (!nothing)
        incident_is(st, SAY(BLACK_HOLE_BACK, .n = z->size, .code = z->differ, .m = z->tries, .k = z->arrived,
                            .address = z->arrived_max));
    else
        incident_is(st, SAY(BLACK_HOLE_READS, .n = z->read, .m = z->asked, .k = z->arrived, .address = z->arrived_max));
    if (z->narrowed)
        incident_add(st, SAY(BLACK_HOLE_BEFORE_THAT, .lost = z->frame));
    if (z->arrived < BLACK_HOLE_SMALLER && z->acks)
        incident_add(st, SAY(BLACK_HOLE_ACKS, .n = z->acks));
    if (z->arrived + z->acks < BLACK_HOLE_SMALLER && z->implied)
        incident_add(st, SAY(BLACK_HOLE_IMPLIED, .n = z->implied));
    if (alive)
        incident_add(st, SAY(BLACK_HOLE_ALIVE, .answer = alive));
    else if (nothing && !z->passed)
        incident_add(st, SAY(BLACK_HOLE_OR_GONE, .n = 0));
    say_spent(st, z);
}

/* The READ responses of a host that have full size never come, smaller ones do. */
static void end_mtu_back(struct explainer *x, uint32_t flow)
{
    const struct flow *f = conn_flow_at(observer_conns(x->observer), flow);
    bool first = is_read_stuck(x, flow) && is_first_to(x, flow, is_read_stuck);
    struct sizes z = first ? sizes_back(x, f) : (struct sizes){0};
    struct incident *st;
    uint32_t by;

    if (first)
        count_back_since(x, &z, f);
    by = is_black_hole_back(&z) ? cross_new(x, CAUSE_MTU_BLACK_HOLE, f->tap, z.ts) : NO_INCIDENT;
    st = incident_at(x, by);
    if (!st)
        return;
    say_back(x, st, &z, f);
    for (uint32_t i = 0; i < by; i++)
        if (is_of_stuck_read(x, &x->incidents[i], f))
            cross_supersede(x, by, i);
}

void explain_mtu(struct explainer *x)
{
    uint32_t flows = conn_counts(observer_conns(x->observer)).flows, n = x->n;

    if (!explain_hosts_index(x))
        return;
    for (uint32_t i = 0; i < flows; i++) {
        end_mtu(x, i);
        end_mtu_before(x, i);
        end_mtu_back(x, i);
    }
    explain_holes(x, n);
    explain_hosts_free(x);
}
