/* layer 3 (explain): hypotheses about several connections: one incident explains others; times in which no frame
 * passed. */
#include "dissect/pkt.h"
#include "src/explain/congestion/congestion.h"
#include "src/explain/explain_impl.h"

#include <stdlib.h>

uint32_t cross_new(struct explainer *x, enum cause cause, uint32_t tap, ns_t start)
{
    struct incident *st = incident_new(x, cause, FLOW_NONE, NULL);

    if (!st)
        return NO_INCIDENT;
    st->tap = tap;
    st->start = start;
    return incident_number(x, st);
}

void cross_supersede(struct explainer *x, uint32_t by, uint32_t i)
{
    struct incident *st = &x->incidents[i], *o = &x->incidents[by];

    if (!incident_stands(st) || by == i)
        return;
    st->superseded_by = by + 1;
    o->supersedes++;
    o->again += st->again;
    o->lost = ns_sum(o->lost, st->lost > 0 ? st->lost : 0);
    bill_move(x, o, st);
    if (o->flow == FLOW_NONE)
        o->conn = o->supersedes == 1 || o->conn == st->conn ? st->conn : 0;
    if (st->n_frames)
        incident_frame_at(o, (enum frame_role)st->roles[0], (uint32_t)st->files[0] << 16, st->frames[0]);
}

void incident_of_flow(struct explainer *x, struct incident *st, uint32_t flow)
{
    const struct flow *f = conn_flow_at(observer_conns(x->observer), flow);

    st->flow = flow;
    st->conn = f->conn;
    st->src = f->src;
    st->dst = f->dst;
    st->qpn = f->dqpn;
}

bool has_no_response(const struct incident *i)
{
    if (!incident_stands(i))
        return false;
    switch (i->cause) {
    case CAUSE_RETRY_EXCEEDED:
    case CAUSE_SILENT_PEER:
    case CAUSE_CANNOT_TELL:
    case CAUSE_CM_TIMEOUT:
        return true;
    case CAUSE_LOST_LAST_PACKET:
        return !i->arrived;
    default:
        return false;
    }
}

/* --- Receivers that packets do not reach ------------------------------------------------------ */

#define RECEIVER_LOSSES 8 /* at least */
#define RECEIVER_CONNS  2

static bool is_spent_on(const struct incident *i, const struct incident *st)
{
    bool given_up = i->cause == CAUSE_RETRY_EXCEEDED || i->cause == CAUSE_SILENT_PEER;
    bool same_peer = i->tap == st->tap && conn_addr_eq(&i->dst, &st->dst);

    return given_up && i->flow != FLOW_NONE && same_peer && incident_stands(i);
}

static bool is_loss_to(const struct incident *i, const struct incident *st)
{
    return incident_is_lost_request(i) && i->place != PLACE_BEFORE && i->tap == st->tap &&
           conn_addr_eq(&i->dst, &st->dst);
}

/* True if the host still responds to another connection after incident `st` began. */
static bool responds(struct explainer *x, const struct incident *st)
{
    for (uint32_t i = 0; i < conn_counts(observer_conns(x->observer)).flows; i++) {
        const struct flow *f = conn_flow_at(observer_conns(x->observer), i);
        if (x->notes[i] && f->tap == st->tap && f->conn != st->conn && conn_addr_eq(&f->dst, &st->dst) &&
            x->notes[i]->responses.last_ts > st->start + st->bill)
            return true;
    }
    return false;
}

/* Losses to the receiver of incident `st`: how many, on how many connections, from how many hosts. */
static struct fact losses_to(struct explainer *x, const struct incident *st, uint32_t *conns, struct conn_addr *hosts)
{
    struct fact f = {.sentence = SENTENCE_LOSSES_TO};

    for (uint32_t i = 0; i < x->n; i++)
        if (is_loss_to(&x->incidents[i], st)) {
            conns[f.n] = x->incidents[i].conn;
            hosts[f.n++] = x->incidents[i].src;
        }
    f.m = explain_count_values(conns, f.n);
    f.k = explain_count_hosts(hosts, f.n);
    f.k = f.k > 1 ? f.k : 0;
    return f;
}

/* Retries were used up because packets to a receiver are lost all the time, on other connections, too: one statement.
 */
static void explain_receiver(struct explainer *x, uint32_t number, uint32_t *conns, struct conn_addr *hosts)
{
    const struct incident st = x->incidents[number];
    struct fact f = losses_to(x, &st, conns, hosts);
    uint32_t by, spent = 0, n = x->n;
    struct incident *o;

    if (f.n < RECEIVER_LOSSES || f.m < RECEIVER_CONNS || !responds(x, &st))
        return;
    by = cross_new(x, CAUSE_PACKET_LOSS, st.tap, st.start);
    o = incident_at(x, by);
    if (!o)
        return;
    o->place = PLACE_AFTER;
    o->dst = st.dst;
    incident_is(o, &f);
    for (uint32_t i = 0; i < n; i++) {
        bool over = is_spent_on(&x->incidents[i], &st);
        if (!over && !is_loss_to(&x->incidents[i], &st))
            continue;
        spent += over && x->incidents[i].cause == CAUSE_RETRY_EXCEEDED;
        o->start = x->incidents[i].start < o->start ? x->incidents[i].start : o->start;
        cross_supersede(x, by, i);
    }
    if (spent)
        incident_add(o, SAY(SPENT_ON, .n = spent));
}

static void explain_receivers(struct explainer *x)
{
    uint32_t n = x->n, *conns = calloc(n + 1u, sizeof *conns);
    struct conn_addr *hosts = calloc(n + 1u, sizeof *hosts);

    for (uint32_t i = 0; conns && hosts && i < n; i++)
        if (is_spent_on(&x->incidents[i], &x->incidents[i]))
            explain_receiver(x, i, conns, hosts);
    free(conns);
    free(hosts);
}

/* --- What came before the end of a connection ------------------------------------------------- */

#define BEFORE_LEAST NS_PER_MS /* less time lost before the end is not reported */

static void explain_before(struct explainer *x, uint32_t number)
{
    struct incident *st = &x->incidents[number];
    ns_t lost = 0;
    uint32_t n = 0;

    if (!st->conn || !incident_failure(st) || st->cause == CAUSE_LINK_DOWN || !incident_stands(st))
        return;
    for (uint32_t i = 0; i < x->n; i++) {
        const struct incident *o = &x->incidents[i];
        if (o->conn == st->conn && incident_is_lost_request(o) && o->start < st->start) {
            lost = ns_sum(lost, o->bill);
            n++;
        }
    }
    if (lost >= BEFORE_LEAST)
        incident_add(st, SAY(BEFORE_IT, .time = lost, .n = n));
}

/* --- No frame at all -------------------------------------------------------------------------- */

#define QUIET_UNKNOWN (500 * NS_PER_MS) /* shortest interruption, where the ACK timeout is not known */

void explain_quiet(struct explainer *x, const struct pkt *p)
{
    struct quiet *least = &x->quiet[0], q = {x->last, p->frame->ts, frame_u32(p)};

    if (!x->last)
        return;
    for (unsigned i = 1; i < QUIET_TIMES; i++)
        if (x->quiet[i].to - x->quiet[i].from < least->to - least->from)
            least = &x->quiet[i];
    if (q.to - q.from > least->to - least->from)
        *least = q;
}

/* True if the requests of an incident were sent before the interruption and retransmitted only after it, although their
 * ACK timer expired several times meanwhile. */
static bool spans(struct explainer *x, const struct incident *st, const struct quiet *q)
{
    const struct conn_params *c;
    ns_t timer, quiet = q->to - q->from;
    bool meanwhile = st->start <= q->from && st->silence >= quiet && st->start + st->silence <= q->to + quiet;

    if (!meanwhile || !st->silence || st->flow == FLOW_NONE || !incident_stands(st))
        return false;
    c = &conn_flow_at(observer_conns(x->observer), st->flow)->params;
    timer = c->timeout_known && c->timeout ? (ns_t)4096 << c->timeout : 0;
    return quiet > (timer ? timer_latest(timer) : QUIET_UNKNOWN);
}

static void end_quiet(struct explainer *x, const struct quiet *q)
{
    uint32_t conns = 0, hosts = 0, number, n = x->n, *numbers = calloc(n + 1u, sizeof *numbers);
    const struct incident *first = NULL;
    struct incident *by;

    for (uint32_t i = 0; numbers && i < n; i++)
        if (spans(x, &x->incidents[i], q)) {
            hosts += first && !conn_addr_eq(&first->src, &x->incidents[i].src);
            first = first ? first : &x->incidents[i];
            numbers[conns++] = x->incidents[i].conn;
        }
    conns = conns ? explain_count_values(numbers, conns) : 0; /* those of both directions are one */
    free(numbers);
    if (conns < OUTAGE_CONNS || !hosts)
        return;
    number = cross_new(x, CAUSE_LINK_DOWN, first->tap, q->from);
    by = incident_at(x, number);
    if (!by)
        return;
    incident_frame(by, ROLE_EVIDENCE, q->frame);
    incident_is(by, SAY(NOTHING_PASSED, .time = q->to - q->from, .time2 = q->from, .n = conns));
    for (uint32_t i = 0; i < n; i++)
        if (spans(x, &x->incidents[i], q))
            cross_supersede(x, number, i);
}

static void explain_links(struct explainer *x)
{
    for (unsigned i = 0; i < QUIET_TIMES; i++)
        if (x->quiet[i].to)
            end_quiet(x, &x->quiet[i]);
}

/* --- All of them ------------------------------------------------------------------------------ */

void explain_cross(struct explainer *x)
{
    uint32_t n = x->n;

    explain_paths(x);
    explain_pauses(x);
    explain_incasts(x);
    explain_lost_cnps(x);
    explain_outages(x);
    explain_hosts(x);
    explain_dead(x);
    explain_links(x);
    explain_hushes(x);
    for (uint32_t i = 0; i < n; i++)
        explain_unheeded(x, i);
    explain_classes(x);
    explain_receivers(x);
    for (uint32_t i = 0; i < x->n; i++)
        explain_before(x, i);
}
