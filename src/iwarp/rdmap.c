/* layer 2b (iwarp): DDP and RDMAP: segments make messages, messages operations. */
#include "src/iwarp/iwarp_impl.h"

#include <stdio.h>
#include <stdlib.h>

/* A segment, and whose it is. */
struct taken {
    struct iwarp *w;
    struct tcp_conn *t;
    const struct iwarp_unit *u;
    struct side *s, *other;
    struct iwarp_sent *sent;
};

/* --- Operations that are not over ------------------------------------------------------------- */

static bool has_answer(const struct iwarp_op *op)
{
    return op->opcode == RDMAP_READ_REQUEST || op->opcode == RDMAP_ATOMIC_REQUEST;
}

/* Hand over the operation at place `i`. */
static void retire(struct iwarp *w, struct side *s, uint32_t i, enum iwarp_end why)
{
    struct iwarp_op op = s->open[i].op;

    op.ended = (uint8_t)(s->open[i].done ? op.ended : why);
    memmove(s->open + i, s->open + i + 1, (s->n - i - 1) * sizeof *s->open);
    s->n--;
    iwarp_over(w, &op);
}

/* Hand over the oldest of those that are done, beyond LINGER of them. */
static void retire_done(struct iwarp *w, struct side *s)
{
    uint32_t done = 0, i = 0;

    for (uint32_t k = 0; k < s->n; k++)
        done += s->open[k].done;
    while (done > LINGER && i < s->n) {
        if (!s->open[i].done) {
            i++;
            continue;
        }
        retire(w, s, i, IWARP_DONE);
        done--;
    }
}

static bool reserve(struct iwarp *w, struct side *s)
{
    uint32_t cap = s->cap ? 2 * s->cap : 8;
    struct open_op *grown;

    if (s->n < s->cap)
        return true;
    if (s->cap >= IWARP_OPEN) {
        retire(w, s, 0, IWARP_GIVEN_UP);
        return true;
    }
    grown = realloc(s->open, cap * sizeof *grown);
    if (!grown)
        return false;
    s->open = grown;
    s->cap = cap;
    return true;
}

/* A new operation; NULL without memory. */
static struct open_op *begin(const struct taken *k)
{
    const struct iwarp_unit *u = k->u;
    struct open_op *o;

    if (!reserve(k->w, k->s))
        return NULL;
    o = &k->s->open[k->s->n++];
    *o = (struct open_op){.serial = ++k->s->serial,
                          .op = {.conn = &k->t->c,
                                 .side = u->side,
                                 .number = iwarp_number(k->w),
                                 .muted = k->w->muted,
                                 .opcode = u->ddp.opcode,
                                 .msn = u->ddp.msn,
                                 .stag = u->ddp.tagged ? u->ddp.stag : u->ddp.inval,
                                 .to = u->ddp.to,
                                 .begun = true,
                                 .first_frame = u->first_frame,
                                 .start = u->first}};
    k->sent->ops[u->ddp.opcode]++;
    return o;
}

static struct open_op *find(struct side *s, uint64_t serial)
{
    for (uint32_t i = s->n; serial && i-- > 0;)
        if (s->open[i].serial == serial)
            return &s->open[i];
    return NULL;
}

/* What retransmitted segments are counted for. */
static uint64_t counted_as(const struct open_op *o, bool answer)
{
    return o->serial << 1 | answer;
}

/* The bytes of the unit belong to the operation, or to its response. */
static void place(const struct taken *k, struct open_op *o, bool answer)
{
    seq_span_add(answer ? &o->answer : &o->message, k->u->seq, k->u->end);
    o->op.again += again_count(&k->s->again, &(struct seq_span){k->u->seq, k->u->end}, counted_as(o, answer));
}

void rdmap_again(struct tcp_conn *t, enum iwarp_side side, const struct seq_span *at)
{
    struct side *s = &t->side[side], *other = &t->side[iwarp_other(side)];

    again_add(&s->again, at);
    for (uint32_t i = 0; i < s->n; i++)
        s->open[i].op.again += again_latest(&s->again, &s->open[i].message, counted_as(&s->open[i], false));
    for (uint32_t i = 0; i < other->n; i++)
        other->open[i].op.again += again_latest(&s->again, &other->open[i].answer, counted_as(&other->open[i], true));
}

/* The segment belongs to the operation's message. */
static void grow(const struct taken *k, struct open_op *o)
{
    if (!o)
        return;
    o->op.fpdus++;
    place(k, o, false);
    if (!has_answer(&o->op))
        o->op.bytes += k->u->payload_len;
    o->op.last_frame = k->u->frame;
    o->op.last = k->u->now;
    if (!k->u->ddp.last)
        return;
    o->op.complete = true;
    o->end = k->u->end;
}

static void done(struct open_op *o, uint64_t frame, ns_t now)
{
    o->done = true;
    o->op.ended = IWARP_DONE;
    o->op.done_frame = frame;
    o->op.done = now;
}

void rdmap_acked(struct iwarp *w, struct tcp_conn *t, enum iwarp_side side, uint32_t ack)
{
    struct side *s = &t->side[side];
    bool any = false;

    for (uint32_t i = 0; i < s->n; i++) {
        struct open_op *o = &s->open[i];
        if (o->done || !o->op.complete || has_answer(&o->op) || (int32_t)(ack - o->end) < 0)
            continue;
        done(o, w->p->frame->number, w->p->frame->ts);
        any = true;
    }
    if (any)
        retire_done(w, s);
}

void rdmap_flush(struct iwarp *w, struct tcp_conn *t, enum iwarp_end why)
{
    for (unsigned i = 0; i < IWARP_SIDES; i++)
        while (t->side[i].n)
            retire(w, &t->side[i], 0, why);
}

/* --- What contradicts the documents ----------------------------------------------------------- */

static void report(const struct taken *k, enum iwarp_fault fault, const char *seen, const char *expected,
                   uint64_t cause)
{
    iwarp_report(k->w,
                 &(struct iwarp_bad){.fault = fault, .unit = k->u, .seen = seen, .expected = expected, .cause = cause});
}

static void report_number(const struct taken *k, enum iwarp_fault fault, const char *what, uint64_t seen, uint64_t want,
                          uint64_t cause)
{
    char a[48], b[32];

    snprintf(a, sizeof a, "%s %llu", what, (unsigned long long)seen);
    snprintf(b, sizeof b, "%llu", (unsigned long long)want);
    report(k, fault, a, b, cause);
}

/* --- Terminate -------------------------------------------------------------------------------- */

/* Whether the Terminate quotes the header of this operation. */
static bool is_quoted(const struct rdmap_terminate *t, const uint8_t *payload, const struct open_op *o)
{
    const struct iwarp_op *op = &o->op;
    struct rdmap_read r;
    struct ddp d;

    if (t->rdmap_len == RDMAP_READ_LEN && op->opcode == RDMAP_READ_REQUEST) { /* the MSN that siw quotes is none */
        rdmap_read_get(&r, payload + t->rdmap_at);
        return r.source_stag == op->stag && r.source_to == op->to && r.size == op->bytes && r.sink_to == o->sink_to;
    }

    if (!t->ddp_len || !ddp_get(&d, payload + t->ddp_at, t->ddp_len))
        return false;
    if (d.opcode != op->opcode)
        return false;
    return d.tagged ? d.stag == op->stag && d.to >= op->to && d.to - op->to <= op->bytes : d.msn == op->msn;
}

/* A Terminate refuses the operation of the other end whose headers it contains, and all later ones. */
static void refuse(const struct taken *k, const struct rdmap_terminate *t)
{
    bool behind = false, quoted;

    for (uint32_t i = 0; i < k->other->n; i++) {
        struct open_op *o = &k->other->open[i];
        quoted = !behind && is_quoted(t, k->u->payload, o);
        behind |= quoted;
        if (!behind && o->done)
            continue;
        o->done = true;
        o->op.ended = quoted ? IWARP_REFUSED_OP : IWARP_BEHIND;
        o->op.done_frame = k->u->frame;
        o->op.done = k->u->now;
    }
}

static void take_terminate(const struct taken *k)
{
    struct rdmap_terminate t;
    struct buf text = {0};

    if (!k->u->payload || !rdmap_terminate_get(&t, k->u->payload, k->u->payload_len))
        return;
    k->sent->terminated = true;
    k->sent->terminate = t;
    k->sent->terminate_frame = k->u->frame;
    refuse(k, &t);
    rdmap_terminate_text(&text, &t);
    report(k, IWARP_TERMINATED, buf_str(&text), NULL, 0);
    buf_free(&text);
}

/* --- Untagged segments ------------------------------------------------------------------------ */

/* Whether the segment is the one that its queue expects; false: a message begins that does not follow the one before.
 */
static void check_msn(const struct taken *k, const struct message *m)
{
    const struct ddp *d = &k->u->ddp;
    struct side *s = k->s;
    bool from_start = k->t->c.how == IWARP_BY_START && !s->unsure;
    uint32_t want = s->have_msn[d->qn] ? s->msn[d->qn] : 1;

    if (m->used && s->have_msn[d->qn])
        report_number(k, IWARP_BAD_MSN, "MSN", d->msn, m->msn, s->msn_frame[d->qn]);
    else if ((s->have_msn[d->qn] || from_start) && d->msn != want)
        report_number(k, IWARP_BAD_MSN, "MSN", d->msn, want, s->msn_frame[d->qn]);
}

static void take_request(const struct taken *k, struct open_op *o)
{
    struct rdmap_read r;
    struct rdmap_atomic a;

    if (!o || !k->u->payload)
        return;
    if (o->op.opcode == RDMAP_READ_REQUEST) {
        rdmap_read_get(&r, k->u->payload);
        o->op.bytes = r.size;
        o->op.stag = r.source_stag;
        o->op.to = r.source_to;
        o->sink_stag = r.sink_stag;
        o->sink_to = r.sink_to;
    } else {
        rdmap_atomic_get(&a, k->u->payload);
        o->op.bytes = 8;
        o->op.atomic = a.opcode;
        o->op.stag = a.stag;
        o->op.to = a.to;
        o->id = a.id;
    }
}

static void take_atomic_response(const struct taken *k)
{
    if (!k->u->payload)
        return;
    for (uint32_t i = 0; i < k->other->n; i++) {
        struct open_op *o = &k->other->open[i];
        if (o->done || o->op.opcode != RDMAP_ATOMIC_REQUEST || o->id != load_be32(k->u->payload))
            continue;
        o->op.answered = 8;
        o->op.fpdus++;
        place(k, o, true);
        done(o, k->u->frame, k->u->now);
        retire_done(k->w, k->other);
        return;
    }
}

/* The first segment of a message. */
static void begin_message(const struct taken *k, struct message *m)
{
    const struct ddp *d = &k->u->ddp;
    struct open_op *o = NULL;

    check_msn(k, m);
    if (d->opcode == RDMAP_TERMINATE)
        take_terminate(k);
    else if (d->opcode == RDMAP_ATOMIC_RESPONSE)
        take_atomic_response(k);
    else if ((o = begin(k)) && has_answer(&o->op))
        take_request(k, o);
    *m = (struct message){.used = true, .msn = d->msn, .op = o ? o->serial : 0};
}

static void take_untagged(const struct taken *k)
{
    const struct ddp *d = &k->u->ddp;
    struct side *s = k->s;
    struct message *m = &s->message[d->qn];

    if (m->used && m->msn == d->msn) {
        if (d->mo != m->next)
            report_number(k, IWARP_BAD_MO, "message offset", d->mo, m->next, s->msn_frame[d->qn]);
    } else if (d->mo == 0) {
        begin_message(k, m);
    } else {
        if (s->have_msn[d->qn])
            report_number(k, IWARP_BAD_MO, "message offset", d->mo, 0, s->msn_frame[d->qn]);
        *m = (struct message){.used = true, .msn = d->msn};
    }
    grow(k, find(s, m->op));
    m->next = (uint64_t)d->mo + k->u->payload_len;
    s->msn[d->qn] = d->msn + 1;
    s->have_msn[d->qn] = true;
    s->msn_frame[d->qn] = k->u->frame;
    m->used = !d->last;
}

/* --- Tagged segments -------------------------------------------------------------------------- */

/* The WRITE that the segment continues; NULL: none. */
static const struct message *find_write(const struct side *s, const struct ddp *d)
{
    for (unsigned i = 0; i < TAGGED; i++)
        if (s->tagged[i].used && s->tagged[i].stag == d->stag && s->tagged[i].next == d->to)
            return &s->tagged[i];
    return NULL;
}

static void take_write(const struct taken *k)
{
    const struct ddp *d = &k->u->ddp;
    const struct message *known = find_write(k->s, d);
    struct message *m = known ? &k->s->tagged[known - k->s->tagged] : NULL;
    struct open_op *o;

    if (!m) {
        m = &k->s->tagged[k->s->tagged_at++ % TAGGED];
        o = begin(k);
        *m = (struct message){.used = true, .stag = d->stag, .op = o ? o->serial : 0};
    }
    grow(k, find(k->s, m->op));
    m->next = d->to + k->u->payload_len;
    m->used = !d->last;
}

bool rdmap_continues(const struct side *s, const struct ddp *d)
{
    const struct message *m = d->tagged ? find_write(s, d) : &s->message[d->qn];

    return m && (d->tagged ? d->opcode == RDMAP_WRITE : m->used && m->msn == d->msn && m->next == d->mo);
}

/* The READ of the other end that the response belongs to; NULL: none. */
static struct open_op *read_of(const struct taken *k)
{
    const struct ddp *d = &k->u->ddp;

    for (uint32_t i = 0; i < k->other->n; i++) {
        struct open_op *o = &k->other->open[i];
        bool fits = o->sink_stag == d->stag && o->sink_to + o->op.answered == d->to &&
                    o->op.answered + k->u->payload_len <= o->op.bytes;
        if (!o->done && o->op.opcode == RDMAP_READ_REQUEST && (fits || (!o->op.bytes && !k->u->payload_len)))
            return o;
    }
    return NULL;
}

/* Whether all requests that the sender of a response had received were captured before it: its TCP has acknowledged no
 * byte that was not. Else frames are missing, were cut, or come later, as the clocks of the directions differ. */
static bool have_all_requests(const struct taken *k)
{
    const struct stream *r = &k->other->stream;

    return k->t->c.how == IWARP_BY_START && !k->s->unsure && !k->other->unsure && k->other->n < IWARP_OPEN &&
           r->begun && !r->lacking && !k->s->stream.lacking && r->have_acked && (int32_t)(r->acked - r->next) <= 0;
}

static void take_response(const struct taken *k)
{
    const struct ddp *d = &k->u->ddp;
    struct open_op *o = read_of(k);
    bool sure = have_all_requests(k);
    char seen[96];

    if (!o) {
        snprintf(seen, sizeof seen, "STag 0x%x, offset 0x%llx, %u bytes", d->stag, (unsigned long long)d->to,
                 k->u->payload_len);
        if (sure)
            report(k, IWARP_BAD_RESPONSE, seen, "memory that an open READ request named", 0);
        return;
    }
    o->op.answered += k->u->payload_len;
    o->op.fpdus++;
    place(k, o, true);
    if (d->last && sure && o->op.answered < o->op.bytes)
        report_number(k, IWARP_BAD_RESPONSE, "READ response of bytes", o->op.answered, o->op.bytes, o->op.first_frame);
    if (!d->last)
        return;
    done(o, k->u->frame, k->u->now);
    retire_done(k->w, k->other);
}

void rdmap_take(struct iwarp *w, struct tcp_conn *t, const struct iwarp_unit *u)
{
    const struct taken k = {w, t, u, &t->side[u->side], &t->side[iwarp_other(u->side)], &t->c.sent[u->side]};

    if (k.sent->terminated && k.sent->terminate_frame)
        report(&k, IWARP_AFTER_TERMINATE, rdmap_opcode_str(u->ddp.opcode), "nothing", k.sent->terminate_frame);
    if (!u->ddp.tagged)
        take_untagged(&k);
    else if (u->ddp.opcode == RDMAP_WRITE)
        take_write(&k);
    else
        take_response(&k);
}

/* --- Texts ------------------------------------------------------------------------------------ */

const char *iwarp_op_str(const struct iwarp_op *op)
{
    static const char *const atomics[] = {"FetchAdd", "Swap", "CmpSwap"};
    const char *name = rdmap_opcode_str(op->opcode);

    if (op->opcode == RDMAP_READ_REQUEST)
        return "RDMA READ";
    if (op->opcode == RDMAP_ATOMIC_REQUEST)
        return op->atomic < ARRAY_LEN(atomics) ? atomics[op->atomic] : "atomic";
    return name ? name : "?";
}

const char *iwarp_end_str(enum iwarp_end e)
{
    static const char *const names[] = {"no response in the capture",
                                        "",
                                        "refused by a Terminate",
                                        "behind what a Terminate refused",
                                        "the TCP connection ended before the response",
                                        "too many operations were open"};
    return names[e];
}
