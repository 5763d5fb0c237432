/* layer 3 (commands): what each command of an upper protocol waited for. */
#include "src/commands/waits.h"

#include "src/account/streams.h"
#include "src/transport/verbs.h"

const struct wait_info wait_table[WAITS] = {
    [WAIT_LOSS] = {"loss", "for lost packets to be retransmitted", true},
    [WAIT_TIMEOUT] = {"ack_timeout", "for an ACK timeout", true},
    [WAIT_RNR] = {"rnr", "after RNR NAKs", false},
    [WAIT_CREDIT] = {"credit", "for end-to-end credits", false},
    [WAIT_DEPTH] = {"read_depth", "for earlier READs, as many as may be outstanding", false},
    [WAIT_ACK] = {"peer_slow", "for a slow response of the transport", false},
    [WAIT_PAUSE] = {"paused", "in pauses of the link", true},
    [WAIT_PACE] = {"throttled", "because CNPs slowed its sender down", true},
    [WAIT_DEAD] = {"peer_dead", "for a peer that does not respond", false},
    [WAIT_DATA] = {"data_begin", "for its data to begin", false},
    [WAIT_MOVE] = {"data", "for its data to be moved", false},
    [WAIT_RESPONSE] = {"response", "for its response", false},
};

/* Which wait a state of the account is. Others are no lost time. */
static const uint8_t wait_of[TIME_STATES] = {
    [TIME_LOSS_NAK] = WAIT_LOSS,    [TIME_LOSS_RETRANSMISSION] = WAIT_LOSS,
    [TIME_LOSS_RESEND] = WAIT_LOSS, [TIME_ACK_TIMEOUT] = WAIT_TIMEOUT,
    [TIME_RNR] = WAIT_RNR,          [TIME_CREDIT] = WAIT_CREDIT,
    [TIME_READ_DEPTH] = WAIT_DEPTH, [TIME_PEER_SLOW] = WAIT_ACK,
    [TIME_PAUSED] = WAIT_PAUSE,     [TIME_THROTTLED] = WAIT_PACE,
    [TIME_GIVEN_UP] = WAIT_DEAD,    [TIME_PEER_DEAD] = WAIT_DEAD,
};
_Static_assert(sizeof(struct waited) <= ULP_MARK, "mark of a command");

/* A part of a command's time. */
struct span_of {
    enum ulp_part part;
    ns_t from, to;
    bool asks;  /* the direction of its message counts, too */
    ns_t asked; /* of that direction losses count up to here: those after its message was sent last are of others */
};

/* What one end of a command's connection sent. */
struct sent_by {
    uint32_t flow;                   /* FLOW_NONE: nothing, or it is a stream */
    const struct iwarp_conn *stream; /* NULL: it is none */
    enum iwarp_side side;            /* of the stream */
};

static struct sent_by sent_by(const struct ulp_command *c, bool server)
{
    return (struct sent_by){ulp_command_flow(c, server), ulp_command_stream(c),
                            (c->stream == 1) != server ? IWARP_INITIATOR : IWARP_RESPONDER};
}

/* How the time of a direction was spent; losses after `until` do not count. Of a stream only losses are known. */
static void spent(const struct timeline *timeline, const struct sent_by *by, const struct span_of *s, ns_t until,
                  ns_t states[TIME_STATES])
{
    ns_t early[TIME_STATES] = {0}, lost[IWARP_TIMES];

    if (by->stream) {
        iwarp_lost_between(by->stream, by->side, s->from, until < s->to ? until : s->to, lost);
        stream_states(lost, s->to - s->from, states);
        return;
    }
    timeline_between(timeline, by->flow, s->from, s->to, states);
    if (until >= s->to)
        return;
    if (until > s->from)
        timeline_between(timeline, by->flow, s->from, until, early);
    for (unsigned i = 0; i < TIME_STATES; i++)
        if (time_state_costs((enum time_state)i) && wait_of[i] <= WAIT_TIMEOUT)
            states[i] = early[i];
}

/* Add what the account of a direction lost in a part; at most `limit`. Returns how much. */
static ns_t add_lost(const struct timeline *timeline, const struct sent_by *by, const struct span_of *s, ns_t until,
                     ns_t limit, struct waited *w)
{
    ns_t states[TIME_STATES], lost = 0;

    if (by->flow == FLOW_NONE && !by->stream)
        return 0;
    spent(timeline, by, s, until, states);
    for (unsigned i = 0; i < TIME_STATES; i++)
        if (states[i] > 0 && time_state_costs((enum time_state)i)) {
            ns_t part = states[i] < limit - lost ? states[i] : limit - lost;
            w->of[wait_of[i]] += part;
            w->way[s->part] += wait_table[wait_of[i]].way ? part : 0;
            lost += part;
        }
    return lost;
}

/* Lost time of a part, and what is left, the command's own wait. */
static void add_part(const struct timeline *timeline, const struct ulp_command *c, const struct span_of *s,
                     struct waited *w)
{
    const struct sent_by asks = sent_by(c, c->by_server), answers = sent_by(c, !c->by_server);
    ns_t left = s->to - s->from;

    if (left <= 0)
        return;
    if (s->asks)
        left -= add_lost(timeline, &asks, s, s->asked, left, w);
    left -= add_lost(timeline, &answers, s, s->to, left, w);
    w->of[WAIT_DATA + s->part] += left;
}

void waits_timed(const struct timeline *timeline, struct ulp_command *c)
{
    bool data = c->data_first != 0, own = data && (c->first_by == ULP_SERVER) == c->by_server;
    const struct span_of parts[ULP_PARTS] = {
        {ULP_BEFORE_DATA, c->start, data ? c->data_start : c->start, true, c->sent},
        {ULP_DATA, c->data_start, data ? c->data_end : c->data_start, own, c->data_end},
        {ULP_AFTER_DATA, data ? c->data_end : c->start, c->end, !data || own, data ? c->end : c->sent},
    };
    struct waited w = {.of = {0}};

    if (c->response_again) /* its times are those of the first copy */
        return;
    for (unsigned i = 0; i < ULP_PARTS; i++)
        add_part(timeline, c, &parts[i], &w);
    memcpy(c->mark, &w, sizeof w);
}

struct waited waits_of(const struct ulp_command *c)
{
    struct waited w;

    memcpy(&w, c->mark, sizeof w);
    return w;
}

ns_t waits_lost(const struct waited *w)
{
    ns_t lost = 0;

    for (unsigned i = 0; i < WAITS_LOST; i++)
        lost += w->of[i];
    return lost;
}

ns_t waits_like_loss(struct conn_table *conns, const struct ulp_command *c)
{
    const struct waited w = waits_of(c);
    uint32_t flow = c->response && !c->response_again && !c->waits ? ulp_command_flow(c, !c->by_server) : FLOW_NONE;
    const struct conn_params *params = flow == FLOW_NONE ? NULL : &conn_flow_at(conns, flow)->params;
    ns_t timer = params && params->timeout_known && params->timeout ? ack_timeout(params->timeout) : 0;

    return timer && w.of[WAIT_RESPONSE] >= timer && w.of[WAIT_RESPONSE] <= 4 * timer ? timer : 0;
}

struct ulp_shares waits_shares(const struct ulp_command *c)
{
    const struct waited w = waits_of(c);

    return ulp_command_shares(c, w.way);
}
