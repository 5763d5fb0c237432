/* layer 3 (sim): the truth of a simulation: which frame caused a retransmission, and what happened to
 * it; the cause of an error of a work request. */
#include "gen/sim/truth_impl.h"

#include "gen/net/net.h"

/* Frames sent before `when`. */
static size_t sent_before(const struct truth *t, ns_t when)
{
    size_t lo = 0, hi = t->n_frames;

    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (t->frames[mid].sent < when)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* True if `f` is a request, or a response, of `host` on connection `conn`. */
static bool is_of(const struct truth_frame *f, unsigned conn, unsigned host, bool request)
{
    return f->conn == conn && f->from == host && f->request == request && f->class != PC_CM && f->class != PC_CNP;
}

/* The latest frame of a host before `before` with `psn`, as a request or a response. Serial; 0: none. */
static uint64_t latest(const struct truth *t, unsigned conn, unsigned host, bool request, uint32_t psn, ns_t before)
{
    for (size_t i = sent_before(t, before); i > 0; i--) {
        const struct truth_frame *f = &t->frames[i - 1];
        if (is_of(f, conn, host, request) && psn_in(psn, f->psn, f->span))
            return i;
    }
    return 0;
}

uint64_t truth_request_of(const struct truth *t, unsigned conn, unsigned host, uint32_t psn, ns_t before)
{
    return latest(t, conn, host, true, psn, before);
}

/* Why a frame had not arrived by `now`. CAUSE_COUNT: it had arrived, and was dropped because of an earlier loss. */
static enum cause cause_of_outcome(const struct truth_frame *f, ns_t now, enum cause dropped)
{
    if (f->arrived < now)
        return CAUSE_COUNT;
    if (f->outcomes & 1u << NET_DAMAGED)
        return CAUSE_BAD_ICRC;
    if (f->outcomes & 1u << NET_DROPPED)
        return f->node == NET_MTU ? CAUSE_MTU_BLACK_HOLE : dropped;
    return CAUSE_REORDER;
}

/* Whether the request in frame `serial` arrived out of order, before an earlier one, and was dropped for that. */
static bool overtook(const struct truth *t, uint64_t serial)
{
    const struct truth_frame *f = truth_frame(t, serial);

    for (uint64_t i = serial; i > 1; i--) {
        const struct truth_frame *before = truth_frame(t, i - 1);
        bool own = is_of(before, f->conn, f->from, true) && psn_diff(before->psn, f->psn) < 0;
        if (own && before->outcomes & 1u << NET_BEHIND && before->arrived != NS_NEVER && before->arrived >= f->arrived)
            return true;
        if (f->sent - before->sent > NS_PER_MS)
            break;
    }
    return false;
}

static enum cause blame_nak(const struct truth *t, uint64_t request, ns_t now)
{
    enum cause cause = cause_of_outcome(truth_frame(t, request), now, CAUSE_PACKET_LOSS);

    return cause == CAUSE_COUNT && overtook(t, request) ? CAUSE_REORDER : cause;
}

bool truth_is_missing(const struct truth *t, uint64_t request, ns_t now)
{
    return blame_nak(t, request, now) != CAUSE_COUNT;
}

static bool is_lost(const struct truth_frame *f)
{
    return f->arrived == NS_NEVER && f->outcomes & (1u << NET_DROPPED | 1u << NET_DAMAGED);
}

/* Whether a frame that suffers nothing, or had it not been lost, is on its way at `now`; it takes `way` at least. */
static bool is_under_way(const struct truth_frame *f, ns_t way, ns_t now)
{
    return f->arrived == NS_NEVER ? f->sent + way > now : f->arrived >= now && !(f->outcomes & 1u << NET_BEHIND);
}

uint64_t truth_nacked(const struct truth *t, unsigned conn, unsigned host, uint32_t psn, ns_t way, ns_t sent)
{
    uint64_t newest = latest(t, conn, host, true, psn, sent), frame = newest;

    while (frame && is_under_way(truth_frame(t, frame), way, sent))
        frame = latest(t, conn, host, true, psn, truth_frame(t, frame)->sent);
    return frame ? frame : newest;
}

/* True if a later request than `f` arrived: it should have caused a NAK. */
static bool passed_by_later(const struct truth *t, uint64_t serial, ns_t until)
{
    const struct truth_frame *f = truth_frame(t, serial);

    for (size_t i = serial; i < t->n_frames && t->frames[i].sent < until; i++) {
        const struct truth_frame *later = &t->frames[i];
        if (is_of(later, f->conn, f->from, true) && later->arrived != NS_NEVER && psn_diff(later->psn, f->psn) > 0)
            return true;
    }
    return false;
}

/* The first response, sent from `after` on, for `psn` or a later PSN, that was lost or that others overtook. */
static uint64_t lost_answer(const struct truth *t, unsigned conn, unsigned host, uint32_t psn, ns_t after, ns_t until)
{
    for (size_t i = sent_before(t, after); i < t->n_frames && t->frames[i].sent < until; i++) {
        const struct truth_frame *f = &t->frames[i];
        bool missed = is_lost(f) || f->outcomes & 1u << NET_BEHIND;
        if (is_of(f, conn, host, false) && missed && psn_diff(f->psn, psn) >= 0)
            return i + 1;
    }
    return 0;
}

/* The latest response with `psn` sent before `until`, if it arrived, and an earlier response that it had overtaken
 * after it: its requester dropped it. Serial of the earlier one; 0: there is none. */
static uint64_t overtaken_by(const struct truth *t, unsigned conn, unsigned host, uint32_t psn, ns_t until)
{
    uint64_t answer = latest(t, conn, host, false, psn, until);
    const struct truth_frame *f = answer ? truth_frame(t, answer) : NULL;

    if (!f || f->class != PC_RESP || f->arrived == NS_NEVER)
        return 0;
    for (uint64_t i = answer - 1; i > 0 && f->sent - truth_frame(t, i)->sent <= NS_PER_MS; i--) {
        const struct truth_frame *g = truth_frame(t, i);
        if (is_of(g, conn, host, false) && g->outcomes & 1u << NET_BEHIND && psn_diff(g->psn, psn) < 0 &&
            g->arrived != NS_NEVER && g->arrived >= f->arrived)
            return i;
    }
    return 0;
}

/* The first request sent after frame `serial`, which arrived, that was lost: no response came as that is the one that
 * solicits it, or as the receiver drops what follows. Serial; 0: none. */
static uint64_t lost_behind(const struct truth *t, uint64_t serial, ns_t until)
{
    const struct truth_frame *f = truth_frame(t, serial);

    for (size_t i = serial; i < t->n_frames && t->frames[i].sent < until; i++)
        if (is_of(&t->frames[i], f->conn, f->from, true) && is_lost(&t->frames[i]))
            return i + 1;
    return 0;
}

/* Why request `serial` was lost, which no NAK reported. */
static enum cause cause_of_lost(const struct truth *t, uint64_t serial, ns_t now)
{
    return cause_of_outcome(truth_frame(t, serial), now,
                            passed_by_later(t, serial, now) ? CAUSE_PACKET_LOSS : CAUSE_LOST_LAST_PACKET);
}

static enum cause blame_timeout(const struct truth *t, unsigned conn, unsigned host, const struct truth_event *e,
                                uint64_t *frame)
{
    uint64_t request = latest(t, conn, host, true, e->una, e->at), answer;
    const struct truth_frame *f = request ? truth_frame(t, request) : NULL;

    *frame = request;
    if (f && is_lost(f))
        return cause_of_lost(t, request, e->at);
    answer = f ? lost_answer(t, conn, host ^ 1, e->una, f->sent, e->at) : 0;
    if (f && !answer)
        answer = overtaken_by(t, conn, host ^ 1, e->una, e->at);
    *frame = answer ? answer : f ? lost_behind(t, request, e->at) : 0;
    if (!answer)
        return *frame ? cause_of_lost(t, *frame, e->at) : CAUSE_EARLY_TIMEOUT;
    f = truth_frame(t, answer);
    if (!is_lost(f))
        return CAUSE_REORDER; /* its requester dropped it, or the ones that came before it */
    return cause_of_outcome(f, e->at, f->class == PC_RESP ? CAUSE_LOST_READ_RESPONSE : CAUSE_LOST_ACK);
}

enum cause truth_blame(const struct truth *t, unsigned conn, unsigned host, const struct truth_event *e, ns_t way,
                       uint64_t response, uint64_t *frame)
{
    ns_t sent = response ? truth_frame(t, response)->sent : e->at;

    switch ((enum eff_reason)e->why) {
    case WHY_RNR_NAK:
        *frame = 0;
        return CAUSE_RNR;
    case WHY_SEQUENCE_NAK:
        *frame = truth_nacked(t, conn, host, e->una, way, sent);
        return *frame ? blame_nak(t, *frame, sent) : CAUSE_CANNOT_TELL;
    case WHY_IMPLIED_NAK:
        *frame = latest(t, conn, host ^ 1, false, e->una, sent);
        if (*frame && truth_frame(t, *frame)->class == PC_RESP)
            return cause_of_outcome(truth_frame(t, *frame), e->at, CAUSE_LOST_READ_RESPONSE);
        *frame = latest(t, conn, host, true, e->una, sent);
        return *frame ? cause_of_outcome(truth_frame(t, *frame), sent, CAUSE_PACKET_LOSS) : CAUSE_CANNOT_TELL;
    default:
        return blame_timeout(t, conn, host, e, frame);
    }
}

enum cause truth_cause_of(enum wc_status status)
{
    switch (status) {
    case WC_RNR_RETRY_EXC_ERR:
        return CAUSE_RNR_EXCEEDED;
    case WC_REM_ACCESS_ERR:
        return CAUSE_ACCESS_ERROR;
    case WC_REM_INV_REQ_ERR:
        return CAUSE_INVALID_REQUEST;
    case WC_REM_OP_ERR:
        return CAUSE_OPERATION_ERROR;
    case WC_REM_INV_RD_REQ_ERR:
        return CAUSE_DEPTH_EXCEEDED;
    case WC_RETRY_EXC_ERR:
        return CAUSE_RETRY_EXCEEDED;
    default:
        return CAUSE_CANNOT_TELL;
    }
}
