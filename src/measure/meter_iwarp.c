/* layer 3 (measure): measurements of iWARP: rows for each direction of a connection, its operations as work requests.
 */
#include "dissect/pkt.h"
#include "src/account/streams.h"
#include "src/measure/meter_impl.h"
#include "src/transport/verbs.h"

#include <stdlib.h>

/* A direction. */
struct stream_row {
    struct meter_row row;          /* first */
    const struct iwarp_conn *conn; /* NULL: it is forgotten */
    enum iwarp_side side;
    struct hist latency;
};

static void sync_account(struct stream_row *s)
{
    stream_account(s->conn, s->side, s->row.states);
    s->row.accounted = true;
    s->row.lost = (uint64_t)states_lost(s->row.states);
}

bool meter_stream_account(const struct meter *m, const struct wqe *w, uint32_t flow, ns_t end, ns_t states[TIME_STATES])
{
    const struct stream_row *s =
        flow >= STREAM_FLOW(0) && flow - STREAM_FLOW(0) < m->n_streams ? m->streams[flow - STREAM_FLOW(0)] : NULL;
    bool answered = w->op == WQE_READ || w->op == WQE_FETCH_ADD || w->op == WQE_CMP_SWAP;
    ns_t lost[IWARP_TIMES], back[IWARP_TIMES] = {0}, all = end > w->start ? end - w->start : 0;

    if (!s || !s->conn)
        return false;
    iwarp_lost_between(s->conn, s->side, w->start, end, lost);
    if (answered)
        iwarp_lost_between(s->conn, iwarp_other(s->side), w->start, end, back);
    for (unsigned i = 0; i < IWARP_TIMES; i++) /* each is a part of all: no sum leaves its range */
        lost[i] += back[i] < all - lost[i] ? back[i] : all - lost[i];
    stream_states(lost, all, states);
    return true;
}

/* What is counted on its packets. */
static void sync_counts(struct meter *m, struct stream_row *s)
{
    const struct iwarp_sent *sent = s->conn ? &s->conn->sent[s->side] : NULL;
    struct meter_row *r = &s->row;

    if (!sent)
        return;
    m->t.counted += sent->packets - r->c.packets;
    r->c.packets = sent->packets;
    r->c.bytes = sent->bytes;
    r->c.payload = r->request_bytes = sent->payload;
    r->c.again = sent->retransmitted;
    r->requests = sent->fpdus;
    r->late = sent->reordered;
    r->last_frame = s->conn->last_frame;
    r->last = s->conn->last;
    r->depth_agreed = sent->have_start && sent->start.enhanced ? sent->start.ord & MPA_V2_DEPTH : METER_NONE;
    sync_account(s);
}

static struct stream_row *stream_new(struct meter *m, const struct iwarp_conn *c, enum iwarp_side side)
{
    struct stream_row *s = calloc(1, sizeof *s);
    enum iwarp_side other = iwarp_other(side);

    if (!s)
        return NULL;
    s->conn = c;
    s->side = side;
    row_blank(&s->row, m->o.files, c->tap);
    s->row.stream = true;
    s->row.conn = c->number;
    s->row.service = "iWARP";
    s->row.setup = c->how == IWARP_BY_START ? "MPA" : "none";
    s->row.certainty = "sure";
    memcpy(s->row.src.b, c->addr[side], 16);
    memcpy(s->row.dst.b, c->addr[other], 16);
    s->row.src.network = s->row.dst.network = c->network;
    s->row.sqpn = c->port[side];
    s->row.dqpn = c->port[other];
    s->row.first_frame = c->first_frame;
    s->row.first = c->first;
    return s;
}

/* Make room for two more rows. */
static bool reserve(struct meter *m)
{
    uint32_t cap = m->cap_streams ? 2 * m->cap_streams : 16;
    struct stream_row **grown;

    if (m->n_streams + 2 <= m->cap_streams)
        return true;
    if (m->n_streams >= METER_STREAMS || !(grown = realloc(m->streams, cap * sizeof(struct stream_row *))))
        return false;
    m->streams = grown;
    m->cap_streams = cap;
    return true;
}

/* The place of the row of one direction; UINT32_MAX without memory. */
static uint32_t stream_of(struct meter *m, const struct iwarp_conn *c, enum iwarp_side side)
{
    uint32_t at = m->n_streams;

    for (uint32_t i = m->n_streams; i-- > 0;)
        if (m->streams[i]->conn == c)
            return (i & ~UINT32_C(1)) | side;
    if (!reserve(m))
        return UINT32_MAX;
    for (unsigned i = 0; i < IWARP_SIDES; i++)
        if (!(m->streams[at + i] = stream_new(m, c, (enum iwarp_side)i)))
            return UINT32_MAX;
    m->n_streams += IWARP_SIDES;
    return at | side;
}

static void on_fpdu(void *user, const struct pkt *p, const struct iwarp_unit *u)
{
    struct meter *m = user;
    uint32_t i = stream_of(m, u->conn, u->side);

    (void)p;
    if (i == UINT32_MAX)
        return;
    sync_counts(m, m->streams[i]);
    meter_activate(m, &m->streams[i]->row);
}

static void on_gone(void *user, const struct iwarp_conn *c)
{
    struct meter *m = user;

    for (uint32_t i = 0; i < m->n_streams; i++)
        if (m->streams[i]->conn == c) {
            sync_counts(m, m->streams[i]);
            m->streams[i]->conn = NULL;
        }
}

/* --- Operations ------------------------------------------------------------------------------- */

/* The work request of an opcode, and its name if the work requests of InfiniBand have none like it. */
static void name_op(struct wqe *w, const struct iwarp_op *op)
{
    static const struct {
        enum wqe_op op;
        const char *name;
    } ops[RDMAP_OPCODES] = {
        [RDMAP_WRITE] = {WQE_WRITE, NULL},
        [RDMAP_READ_REQUEST] = {WQE_READ, NULL},
        [RDMAP_SEND] = {WQE_SEND, NULL},
        [RDMAP_SEND_INV] = {WQE_SEND_INV, NULL},
        [RDMAP_SEND_SE] = {WQE_SEND, NULL},
        [RDMAP_SEND_SE_INV] = {WQE_SEND_INV, NULL},
        [RDMAP_IMMEDIATE] = {WQE_SEND, "IMMEDIATE_DATA"},
        [RDMAP_IMMEDIATE_SE] = {WQE_SEND, "IMMEDIATE_DATA"},
        [RDMAP_ATOMIC_REQUEST] = {WQE_CMP_SWAP, NULL},
    };

    w->op = (uint8_t)ops[op->opcode].op;
    w->name = ops[op->opcode].name;
    if (op->opcode != RDMAP_ATOMIC_REQUEST)
        return;
    w->op = op->atomic == 0 ? WQE_FETCH_ADD : WQE_CMP_SWAP;
    w->name = op->atomic == 1 ? "SWAP" : NULL;
}

/* The status by the error of a Terminate. */
static uint8_t refused_as(const struct rdmap_terminate *t)
{
    bool access = (t->layer == TERM_RDMAP && t->type == 1) || (t->layer == TERM_DDP && t->type == 1);

    return access ? WC_REM_ACCESS_ERR : t->layer == TERM_DDP && t->type == 2 ? WC_REM_INV_REQ_ERR : WC_REM_OP_ERR;
}

static void name_end(struct wqe *w, const struct iwarp_op *op)
{
    static const uint8_t reasons[] = {
        [IWARP_OPEN_STILL] = WQE_CAPTURE_ENDS, [IWARP_LEFT] = WQE_LEFT, [IWARP_GIVEN_UP] = WQE_TOO_MANY};
    enum iwarp_side other = iwarp_other(op->side);

    w->status = WQE_STATUS_UNKNOWN;
    if (op->ended == IWARP_DONE)
        w->status = WC_SUCCESS;
    else if (op->ended == IWARP_REFUSED_OP)
        w->status = refused_as(&op->conn->sent[other].terminate);
    else if (op->ended == IWARP_BEHIND)
        w->status = WC_WR_FLUSH_ERR;
    else
        w->reason = reasons[op->ended];
}

static struct wqe request_of(const struct iwarp_op *op)
{
    bool inv = op->opcode == RDMAP_SEND_INV || op->opcode == RDMAP_SEND_SE_INV;
    struct wqe w = {.id = op->number,
                    .bytes = op->bytes,
                    .va = op->to,
                    .rkey = op->stag,
                    .imm = op->stag,
                    .have_remote = op->opcode == RDMAP_WRITE || op->opcode == RDMAP_READ_REQUEST ||
                                   op->opcode == RDMAP_ATOMIC_REQUEST,
                    .first_frame = op->first_frame,
                    .last_frame = op->last_frame,
                    .done_frame = op->done_frame,
                    .start = op->start,
                    .last = op->last,
                    .done = op->done,
                    .packets = op->fpdus,
                    .again = op->again,
                    .begun = op->begun,
                    .ended = op->complete};

    if (!inv)
        w.imm = 0;
    name_op(&w, op);
    name_end(&w, op);
    return w;
}

static uint64_t on_begun(void *user)
{
    return ++((struct meter *)user)->next_id;
}

static void on_op_over(void *user, const struct iwarp_op *op)
{
    struct meter *m = user;
    uint32_t i = stream_of(m, op->conn, op->side);
    struct wqe w = request_of(op);

    if (i == UINT32_MAX)
        return;
    row_work(&m->streams[i]->row, NULL, &w);
    if (w.status == WC_SUCCESS)
        hist_add(&m->streams[i]->latency, w.done - w.start);
    if (m->o.work.over)
        m->o.work.over(m->o.work.user, &w, STREAM_FLOW(i));
}

/* --- For the meter ---------------------------------------------------------------------------- */

bool meter_streams_begin(struct meter *m)
{
    const struct iwarp_sub s = {.user = m, .fpdu = on_fpdu, .begun = on_begun, .over = on_op_over, .gone = on_gone};

    return iwarp_subscribe(observer_iwarp(m->observer), &s);
}

void meter_streams_end(struct meter *m)
{
    iwarp_finish(observer_iwarp(m->observer), m);
    for (uint32_t i = 0; i < m->n_streams; i++)
        meter_stream_finish(m, &m->streams[i]->row, &m->streams[i]->row);
}

void meter_stream_finish(struct meter *m, const struct meter_row *r, struct meter_row *to)
{
    struct stream_row *s = (struct stream_row *)(uintptr_t)r;

    sync_counts(m, s);
    *to = s->row;
    row_finish(to, NULL);
    to->latency = row_times(&s->latency);
}

struct meter_row *meter_stream(struct meter *m, uint32_t i)
{
    return &m->streams[i]->row;
}

struct meter_row *meter_row_of_stream(struct meter *m, uint32_t conn, bool initiator)
{
    static struct meter_row none;

    for (uint32_t i = 0; i + 1 < m->n_streams; i += IWARP_SIDES)
        if (m->streams[i]->row.conn == conn)
            return &m->streams[i + (initiator ? IWARP_INITIATOR : IWARP_RESPONDER)]->row;
    return &none;
}

void meter_streams_free(struct meter *m)
{
    for (uint32_t i = 0; i < m->n_streams; i++)
        free(m->streams[i]);
    free(m->streams);
}
