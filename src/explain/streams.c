/* layer 3 (explain): iWARP: what TCP repaired: segments that were lost, duplicated or reordered. */
#include "src/explain/explain_impl.h"
#include "src/iwarp/iwarp.h"

static const uint8_t causes[] = {[IWARP_LOST_BEFORE] = CAUSE_PACKET_LOSS,
                                 [IWARP_LOST_AFTER] = CAUSE_PACKET_LOSS,
                                 [IWARP_DUPLICATED] = CAUSE_DUPLICATE,
                                 [IWARP_OVERTAKEN] = CAUSE_REORDER};
static const uint16_t sentences[] = {[IWARP_LOST_BEFORE] = SENTENCE_TCP_LOST_BEFORE,
                                     [IWARP_LOST_AFTER] = SENTENCE_TCP_LOST_AFTER,
                                     [IWARP_DUPLICATED] = SENTENCE_TCP_DUPLICATED,
                                     [IWARP_OVERTAKEN] = SENTENCE_TCP_OVERTAKEN};

static uint32_t frame_of(uint64_t frame)
{
    return frame <= UINT32_MAX ? (uint32_t)frame : 0;
}

static bool is_loss(const struct iwarp_repair *r)
{
    return r->kind == IWARP_LOST_BEFORE || r->kind == IWARP_LOST_AFTER;
}

/* What a loss cost: from the lost segment, or the one that came in its place, to the ACK of the retransmission; not
 * what an earlier loss of the direction cost already. */
static void bill(struct incident *s, const struct iwarp_repair *r)
{
    ns_t cost = r->end - r->from, back = r->sent > r->from ? r->sent - r->from : 0;

    s->lost = r->end - r->start;
    if (cost <= 0 || back > cost || s->lost < cost)
        return;
    s->bill = s->worst_bill = cost;
    s->states[r->dups ? TIME_LOSS_RETRANSMISSION : TIME_ACK_TIMEOUT] = back;
    s->states[TIME_LOSS_RESEND] = cost - back;
    s->from = s->worst = r->from;
    s->stop = s->worst_end = r->end;
    s->episodes = 1;
}

static void on_repaired(void *user, const struct iwarp_repair *r)
{
    struct explainer *x = user;
    struct incident *s;
    enum iwarp_side other = iwarp_other(r->side);

    if (r->kind == IWARP_NEEDLESS) /* a timer may expire, or a probe be sent, just before the ACK comes */
        return;
    s = incident_new(x, (enum cause)causes[r->kind], FLOW_NONE, NULL);
    if (!s)
        return;
    s->stream = true;
    s->conn = r->conn->number;
    s->tap = r->conn->tap;
    s->src.network = s->dst.network = r->conn->network;
    memcpy(s->src.b, r->conn->addr[r->side], sizeof s->src.b);
    memcpy(s->dst.b, r->conn->addr[other], sizeof s->dst.b);
    s->qpn = r->conn->port[other];
    s->start = r->start;
    s->psn = r->seq;
    s->end = r->end_seq;
    s->again = is_loss(r) ? r->segments : 0;
    s->place = r->kind == IWARP_LOST_BEFORE ? PLACE_BEFORE : r->kind == IWARP_LOST_AFTER ? PLACE_AFTER : PLACE_UNKNOWN;
    if (r->kind != IWARP_DUPLICATED) /* each of its frames is a duplicate */
        incident_frame(s, ROLE_LOST, frame_of(r->lost));
    incident_frame(s, ROLE_INSTEAD, frame_of(r->instead));
    incident_frame(s, ROLE_RETRANSMISSION, frame_of(r->again));
    incident_frame(s, ROLE_ANSWER, frame_of(r->ack));
    incident_is(s, &(const struct fact){.sentence = sentences[r->kind],
                                        .lost = frame_of(r->lost),
                                        .instead = frame_of(r->instead),
                                        .again = frame_of(r->again),
                                        .answer = frame_of(r->ack),
                                        .time = r->sent - r->start,
                                        .n = r->dups});
    if (is_loss(r))
        bill(s, r);
}

bool explain_streams(struct explainer *x)
{
    const struct iwarp_sub s = {.user = x, .repaired = on_repaired};

    return iwarp_subscribe(observer_iwarp(x->observer), &s);
}

/* --- Several taps ----------------------------------------------------------------------------- */

static bool is_stream_loss(const struct incident *s)
{
    return s->cause == CAUSE_PACKET_LOSS;
}

/* Whether another tap tells of the same segment, by its sequence numbers. */
static bool is_same_segment(const struct incident *a, const struct incident *b)
{
    bool alike = a->tap != b->tap && a->conn == b->conn && a->qpn == b->qpn && conn_addr_eq(&a->dst, &b->dst) &&
                 a->cause == b->cause;

    return alike && (int32_t)(a->psn - b->end) < 0 && (int32_t)(b->psn - a->end) < 0;
}

/* Incident `b` of another tap is that of `a`: the tap that saw the lost segment tells. */
static void join_taps(struct incident *a, struct incident *b)
{
    struct incident *keep = is_stream_loss(b) && a->place == PLACE_BEFORE && b->place == PLACE_AFTER ? b : a,
                    *other = keep == a ? b : a;

    other->merged = other->merged_here = true;
    if (!is_stream_loss(keep) || keep->place != PLACE_AFTER || other->place != PLACE_BEFORE)
        return;
    keep->passed = keep->tap + 1;
    keep->missed = other->tap + 1;
    keep->certainty = CERTAIN;
}

/* Each of the latest STREAM_NEAR incidents of iWARP is compared: those of one segment are told near each other. */
#define STREAM_NEAR 64

static void join_all(struct explainer *x)
{
    for (uint32_t i = 0; i < x->n; i++) {
        struct incident *a = &x->incidents[i];
        unsigned looked = 0;
        for (uint32_t k = i; a->stream && !a->merged && k-- > 0 && looked < STREAM_NEAR;) {
            struct incident *b = &x->incidents[k];
            looked += b->stream;
            if (b->stream && !b->merged && is_same_segment(a, b)) {
                join_taps(b, a);
                break;
            }
        }
    }
}

void explain_streams_end(struct explainer *x)
{
    iwarp_finish(observer_iwarp(x->observer), x);
    join_all(x);
}

ns_t explain_streams_time(const struct explainer *x, uint32_t conn, uint32_t *n)
{
    const struct iwarp *w = observer_iwarp(x->observer);
    const struct iwarp_conn *c;
    ns_t all = 0;

    for (uint32_t i = 0; (c = iwarp_at(w, i)) != NULL; i++) {
        if (c->again || (conn && c->number != conn) || c->last < c->first)
            continue;
        all = ns_sum(all, ns_sum(c->last - c->first, c->last - c->first)); /* of both directions */
        ++*n;
    }
    return all;
}
