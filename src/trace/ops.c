/* layer 3 (trace): work requests found in packets. */
#include "src/trace/ops.h"

#include <stdlib.h>

/* Work requests of a flow that are not over; number n is at n modulo OPS_OPEN. */
struct open_ops {
    uint32_t head, tail;
    bool failed; /* one has failed: the others are flushed */
    struct op op[OPS_OPEN];
};

struct ops {
    struct watch *watch;
    struct open_ops *open[WATCH_FLOWS];
    ops_emit *emit;
    void *user;
    uint64_t n;
    uint64_t follow;
    struct buf *lines;
};

static struct op *op_at(struct open_ops *w, uint32_t n)
{
    return &w->op[n % OPS_OPEN];
}

static struct open_ops *open_of(struct ops *o, uint32_t flow)
{
    if (!o->open[flow])
        o->open[flow] = calloc(1, sizeof *o->open[flow]);
    return o->open[flow];
}

/* A line about a packet of the work request that is followed. */
static void follow(struct ops *o, const struct op *op, const struct pkt *p)
{
    if (LIKELY(op->number != o->follow) || !o->follow)
        return;
    buf_printf(o->lines, "%6llu  %+15.6f ms  ", (unsigned long long)p->frame->number, (double)(p->frame->ts - op->ts) / 1e6);
    pkt_source(o->lines, p);
    buf_puts(o->lines, " -> ");
    pkt_destination(o->lines, p);
    buf_puts(o->lines, "  ");
    pkt_info(o->lines, p);
    buf_char(o->lines, '\n');
}

/* The oldest one is over. */
static void finish(struct ops *o, struct open_ops *w, struct op *op, enum op_status status, enum wc_status wc)
{
    op->status = (uint8_t)status;
    op->wc = (uint8_t)wc;
    o->emit(o->user, op);
    op->status = status == OP_OPEN ? OP_DONE : (uint8_t)status;
    while (w->head != w->tail && op_at(w, w->head)->status != OP_OPEN)
        w->head++;
}

static void op_fields(struct op *op, const struct pkt *p)
{
    if (p->have & H_RETH) {
        op->remote = true;
        op->va = p->reth.va;
        op->rkey = p->reth.rkey;
        op->bytes = p->reth.dmalen;
    } else if (p->have & H_ATOMICETH) {
        op->remote = true;
        op->va = p->atomiceth.va;
        op->rkey = p->atomiceth.rkey;
        op->bytes = 8;
    }
    if (p->have & (H_IMMDT | H_IETH)) {
        op->has_imm = p->have & H_IMMDT;
        op->has_inv = p->have & H_IETH;
        op->imm = p->have & H_IMMDT ? p->immdt.data : p->ieth.rkey;
    }
}

static struct op op_begin(struct ops *o, const struct pkt *p, uint32_t flow)
{
    struct op op = {.number = ++o->n, .flow = flow, .opcode = p->bth.opcode & 31, .service = p->bth.opcode >> 5, .psn = p->bth.psn, .first = frame_u32(p), .last = frame_u32(p), .ts = p->frame->ts, .dqpn = p->bth.dqpn};

    conn_addr_of(p, &op.src, &op.dst);
    if (flow != FLOW_NONE)
        op.conn = conn_flow_at(watch_conns(o->watch), flow)->conn;
    op_fields(&op, p);
    return op;
}

/* A packet not seen before: it begins a work request or goes on with one. */
static struct op *take_new(struct ops *o, struct open_ops *w, const struct watched *e)
{
    const struct pkt *p = e->p;
    struct op *op = w->head != w->tail ? op_at(w, w->tail - 1) : NULL;

    if (p->op->flags & OPF_START || !op || op->whole) {
        if (w->tail - w->head == OPS_OPEN)
            finish(o, w, op_at(w, w->head), OP_GIVEN_UP, WC_SUCCESS);
        op = op_at(w, w->tail++);
        *op = op_begin(o, p, e->flow);
    } else {
        op_fields(op, p);
        op->last = frame_u32(p);
    }
    if (!op->remote)
        op->bytes += p->payload_len;
    if (p->op->flags & OPF_END) {
        op->whole = true;
        op->end = psn_add(p->bth.psn, half_span(e->h, p));
    }
    return op;
}

static struct op *op_of(struct open_ops *w, uint32_t psn)
{
    for (uint32_t i = w->head; i != w->tail; i++) {
        struct op *op = op_at(w, i);
        if (op->status == OP_OPEN && psn_diff(psn, op->psn) >= 0 && (!op->whole || psn_diff(psn, op->end) < 0))
            return op;
    }
    return NULL;
}

static void on_request(void *user, const struct watched *e)
{
    struct ops *o = user;
    struct open_ops *w = open_of(o, e->flow);
    struct op *op;

    if (!w)
        return;
    if (e->as == SEEN_NEW || e->as == SEEN_GAP || e->as == SEEN_RESTART) {
        op = take_new(o, w, e);
    } else {
        op = op_of(w, e->p->bth.psn);
        if (op && e->as == SEEN_LATE && !op->remote)
            op->bytes += e->p->payload_len;
        if (op && e->as != SEEN_COPY && e->as != SEEN_LATE)
            op->again++;
    }
    if (!op)
        return;
    follow(o, op, e->p);
    if (op->service == SVC_UC && op->whole && op->status == OP_OPEN) {
        op->done = op->last;
        op->ts_done = e->p->frame->ts;
        finish(o, w, op, OP_UNRELIABLE, WC_SUCCESS);
    }
}

/* The path MTU may have become known since a READ was asked for. */
static void set_end(struct op *op, const struct half *h)
{
    if (op->opcode == OP_READ_REQUEST)
        op->end = psn_add(op->psn, half_read_span(h, op->bytes));
}

static bool wants_answer(const struct op *op)
{
    return op->opcode == OP_READ_REQUEST || op->opcode == OP_COMPARE_SWAP || op->opcode == OP_FETCH_ADD || op->opcode == OP_ATOMIC_WRITE ||
           op->opcode == OP_FLUSH;
}

/* A response: what it completes; READs and atomics only by their own answers. */
static void complete(struct ops *o, struct open_ops *w, const struct watched *e)
{
    uint32_t proves = response_proves(e->p), tail = w->tail;
    bool ack = e->p->op->flags & OPF_ACK;

    for (uint32_t i = w->head; i != tail; i++) {
        struct op *op = op_at(w, i);
        if (op->status != OP_OPEN || !op->whole)
            continue;
        set_end(op, e->h);
        if (psn_diff(op->end, proves) > 0)
            continue;
        if (wants_answer(op) && (ack || !psn_in(e->p->bth.psn, op->psn, (op->end - op->psn) & PSN_MASK)))
            continue;
        op->done = frame_u32(e->p);
        op->ts_done = e->p->frame->ts;
        follow(o, op, e->p);
        finish(o, w, op, OP_DONE, WC_SUCCESS);
    }
}

/* A refusal ends the work request, and flushes those behind it. */
static void refuse(struct ops *o, struct open_ops *w, const struct watched *e)
{
    static const uint8_t status[] = {[NAK_INVALID_REQUEST] = WC_REM_INV_REQ_ERR, [NAK_REMOTE_ACCESS] = WC_REM_ACCESS_ERR, [NAK_REMOTE_OPERATIONAL] = WC_REM_OP_ERR};
    unsigned code = e->p->aeth.syndrome & 31;
    struct op *op = op_of(w, e->p->bth.psn);

    if (code >= ARRAY_LEN(status) || !op)
        return;
    op->done = frame_u32(e->p);
    op->ts_done = e->p->frame->ts;
    follow(o, op, e->p);
    w->failed = true;
    finish(o, w, op, OP_DONE, (enum wc_status)status[code]);
}

static void on_response(void *user, const struct watched *e)
{
    struct ops *o = user;
    struct open_ops *w = o->open[e->flow];
    struct op *op;
    bool nak = e->p->op->flags & OPF_ACK && aeth_type(e->p) != AETH_ACK;

    if (!w)
        return;
    op = op_of(w, e->p->bth.psn);
    if (op && (nak ? (e->p->aeth.syndrome & 31) == NAK_PSN_SEQ || aeth_type(e->p) == AETH_RNR : op->whole && psn_diff(op->end, response_proves(e->p)) > 0))
        follow(o, op, e->p);
    complete(o, w, e);
    if (nak && aeth_type(e->p) == AETH_NAK && (e->p->aeth.syndrome & 31) != NAK_PSN_SEQ)
        refuse(o, w, e);
}

/* Datagrams: each is a work request. */
static void on_other(void *user, const struct pkt *p, uint32_t flow)
{
    struct ops *o = user;
    struct op op;

    (void)flow;
    if (!(p->have & H_DETH) || !p->op->name || p->flags & PKT_MALFORMED || p->have & H_MAD)
        return;
    op = op_begin(o, p, FLOW_NONE);
    op.whole = true;
    op.bytes = p->payload_len;
    op.status = OP_UNRELIABLE;
    op.done = op.last;
    op.ts_done = op.ts;
    follow(o, &op, p);
    o->emit(o->user, &op);
}

/* What is still open: of the oldest one the half may know more. */
static void end_flow(struct ops *o, uint32_t flow)
{
    struct open_ops *w = o->open[flow];
    const struct half *h = watch_half(o->watch, flow);
    bool failed = w && w->failed;

    if (!w)
        return;
    for (uint32_t i = w->head; i != w->tail; i++) {
        struct op *op = op_at(w, i);
        enum op_status status = failed ? OP_FLUSHED : OP_UNANSWERED;
        enum wc_status wc = WC_WR_FLUSH_ERR;
        if (op->status != OP_OPEN)
            continue;
        if (!failed && h && h->back_ts && h->why == BACK_SILENCE && h->retries >= 2 && op->again >= 2) {
            status = OP_DONE;
            wc = WC_RETRY_EXC_ERR;
            failed = true;
        } else if (!failed && h && h->rnr.have && !h->rnr.resent && op_of(w, h->rnr.psn) == op) {
            status = OP_DONE;
            wc = WC_RNR_RETRY_EXC_ERR;
            failed = true;
        }
        op->status = (uint8_t)status;
        op->wc = (uint8_t)wc;
        o->emit(o->user, op);
    }
    free(w);
    o->open[flow] = NULL;
}

static void on_fresh(void *user, uint32_t flow)
{
    end_flow(user, flow);
}

struct ops *ops_new(ops_emit *emit, void *user, uint64_t follow_number, struct buf *lines)
{
    struct ops *o = calloc(1, sizeof *o);
    struct watch_user u = {o, on_fresh, on_request, on_response, NULL, on_other};

    if (!o)
        return NULL;
    o->emit = emit;
    o->user = user;
    o->follow = follow_number;
    o->lines = lines;
    o->watch = watch_new(&u);
    if (!o->watch) {
        free(o);
        return NULL;
    }
    return o;
}

void ops_free(struct ops *o)
{
    if (!o)
        return;
    for (unsigned i = 0; i < WATCH_FLOWS; i++)
        free(o->open[i]);
    watch_free(o->watch);
    free(o);
}

struct conn_table *ops_conns(struct ops *o)
{
    return watch_conns(o->watch);
}

void ops_packet(struct ops *o, const struct pkt *p)
{
    watch_packet(o->watch, p);
}

void ops_end(struct ops *o)
{
    uint32_t n = conn_counts(watch_conns(o->watch)).flows;

    for (uint32_t i = 0; i < n; i++)
        end_flow(o, i);
}
