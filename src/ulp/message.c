/* layer 2b (ulp): SENDs: put together from their packets, and delivered to the protocol. */
#include "src/ulp/ulp_impl.h"

#include <stdlib.h>

/* --- Delivery --------------------------------------------------------------------------------- */

#define ZEROED_LEAST 16 /* bytes; a shorter message says little */

bool ulp_zeroes(const uint8_t *b, uint32_t len)
{
    return len >= ZEROED_LEAST && !b[0] && memcmp(b, b + 1, len - 1) == 0;
}

bool ulp_is_zeroed(struct ulp *u, const struct ulp_message *m)
{
    if (m->side != ULP_CLIENT || !ulp_zeroes(m->body.b, m->body.len))
        return false;
    u->zeroed = m->frame;
    u->sums.zeroed += !m->again;
    return true;
}

/* Deliver a message. Returns what it belongs to. */
static struct command *deliver(struct ulp_flow *f, struct ulp_message *m)
{
    struct ulp_conn *c = f->conn;
    bool taken;

    m->side = (enum ulp_side)f->side;
    if (ulp_is_zeroed(c->ulp, m))
        return NULL;
    taken = c->proto->message(c, m);
    if (m->again)
        return (struct command *)m->command;
    c->ulp->sums.holes += m->hole;
    if (taken || !(m->hole || m->cut)) { /* of bytes that are missing nothing can be said */
        c->ulp->sums.messages += !taken;
        ulp_judge(c, taken);
    }
    return (struct command *)m->command;
}

/* Show the bytes of a message that is not in one packet: they are copied, as the assembly may go. */
static void show_bytes(struct ulp *u, struct ulp_message *m)
{
    memcpy(u->shown_bytes, m->body.b, m->body.len);
    u->n_shown = m->body.len;
    m->show->message = u->shown_bytes;
}

/* A packet of a message was retransmitted. */
static void count_again(struct ulp_flow *f, struct command *d, const struct pkt *p, enum seen_as as)
{
    if (d && as != SEEN_COPY)
        command_again(f, d, p);
}

static bool is_copy(enum seen_as as)
{
    return as == SEEN_AGAIN || as == SEEN_COPY || as == SEEN_OLD;
}

/* The SEND that began with this PSN; NULL: none is remembered. */
static struct transfer *send_at(struct ulp_flow *f, uint32_t psn)
{
    struct transfer *t = transfer_find(f, psn);

    return t && t->kind == TRANSFER_SEND && t->psn == psn ? t : NULL;
}

/* The R_Key that the packet invalidates; 0: none. */
static uint32_t invalidated(const struct pkt *p)
{
    return p->have & H_IETH ? p->ieth.rkey : 0;
}

/* --- Messages of one packet ------------------------------------------------------------------- */

static struct command *only_packet(struct ulp_flow *f, const struct pkt *p, enum seen_as as, struct pkt *show)
{
    struct transfer *t = is_copy(as) ? send_at(f, p->bth.psn) : NULL;
    struct command *d;
    uint32_t at;
    struct ulp_message m = {.body = {p->data + p->payload_off, p->payload_cap, p->payload_off},
                            .cut = p->payload_cap < p->payload_len,
                            .frame = p->frame->number,
                            .start = p->frame->ts,
                            .now = p->frame->ts,
                            .packets = 1,
                            .has_imm = p->have & H_IMMDT,
                            .imm = p->immdt.data,
                            .show = show};

    m.again = t;
    if (t) {
        d = command_of(f->conn, t->command);
        count_again(f, d, p, as);
        m.command = d ? &d->c : NULL;
        return deliver(f, &m);
    }
    t = transfer_new(f, TRANSFER_SEND, p->bth.psn);
    t->span = 1;
    t->rkey = invalidated(p);
    at = (f->at - 1) % f->cap;
    d = deliver(f, &m);
    if (d)
        f->transfer[at].command = command_ref(&d->c);
    return d;
}

/* --- Messages of several packets -------------------------------------------------------------- */

/* `rkey`: that its last packet invalidates; 0: none. */
static struct command *deliver_assembly(struct ulp_flow *f, struct assembly *a, uint32_t rkey, struct pkt *show)
{
    uint64_t prefix = cover_prefix(&a->cover);
    struct command *d = command_of(f->conn, a->command);
    struct transfer *t;
    struct ulp_message m = {.body = {a->bytes, (uint32_t)prefix, LAYER_MESSAGE},
                            .again = a->delivered,
                            .cut = a->clipped,
                            .frame = a->frame,
                            .start = a->start,
                            .now = a->now,
                            .packets = a->packets,
                            .show = show,
                            .command = d ? &d->c : NULL};

    m.hole = !a->total || prefix < (a->total < ULP_MESSAGE_MAX ? a->total : ULP_MESSAGE_MAX);
    a->whole = !m.hole;
    if (!prefix)
        return d;
    a->delivered = true;
    if (show) {
        show_bytes(f->conn->ulp, &m);
        show->note.ulp_missing = prefix;
        show->note.have |= m.hole ? NOTE_ULP_HOLE : 0;
    }
    d = deliver(f, &m);
    if (d && !m.again) {
        a->command = command_ref(&d->c);
        t = send_at(f, a->psn);
        if (t) {
            t->command = a->command;
            t->rkey = rkey;
        }
    }
    return d;
}

static void assembly_end(struct ulp_flow *f, struct assembly *a)
{
    if (a->used && !a->delivered)
        deliver_assembly(f, a, 0, NULL);
}

/* A message begins. One that is retransmitted when its bytes are forgotten is still the command that it was. */
static struct assembly *assembly_begin(struct ulp_flow *f, const struct pkt *p, enum seen_as as)
{
    struct assembly *a = &f->assembly[f->next_assembly++ % ASSEMBLIES], fresh = {.used = true};
    struct transfer *t = is_copy(as) ? send_at(f, p->bth.psn) : NULL;

    fresh.bytes = a->bytes;
    fresh.cap = a->cap;
    fresh.psn = p->bth.psn;
    fresh.mtu = p->payload_len;
    fresh.start = p->frame->ts;
    if (t && command_of(f->conn, t->command)) {
        fresh.command = t->command;
        fresh.delivered = true;
    } else {
        t = transfer_new(f, TRANSFER_SEND, p->bth.psn);
        t->span = 0;
    }
    *a = fresh;
    return a;
}

/* The assembly that a packet belongs to; NULL: its beginning was not seen. */
static struct assembly *assembly_of(struct ulp_flow *f, const struct pkt *p)
{
    struct assembly *best = NULL;

    for (unsigned i = 0; i < ASSEMBLIES; i++) {
        struct assembly *a = &f->assembly[i];
        uint32_t n = (p->bth.psn - a->psn) & PSN_MASK;
        uint64_t at = (uint64_t)n * a->mtu;
        if (!a->used || (a->total ? at >= a->total : n >= PSN_MASK / 2))
            continue;
        if (!best || psn_diff(a->psn, best->psn) > 0)
            best = a;
    }
    return best;
}

/* Make *bytes, which has room for *had bytes, hold `n`. */
static bool reserve(struct ulp_conn *c, uint8_t **bytes, uint32_t *had, uint32_t n)
{
    uint32_t cap = *had ? *had : 4096;
    uint8_t *grown;

    while (cap < n)
        cap *= 2;
    if (cap == *had)
        return true;
    if (!memory_take(c, cap - *had))
        return false;
    grown = realloc(*bytes, cap);
    if (!grown) {
        memory_give(c, cap - *had);
        return false;
    }
    *bytes = grown;
    *had = cap;
    return true;
}

/* Put the bytes of a packet into their place. Returns whether any of them are new. */
static bool put(struct ulp_conn *c, struct assembly *a, const struct pkt *p)
{
    uint64_t at = (uint64_t)((p->bth.psn - a->psn) & PSN_MASK) * a->mtu;
    uint32_t n = at >= ULP_MESSAGE_MAX ? 0 : min_u32(p->payload_cap, (uint32_t)(ULP_MESSAGE_MAX - at));

    a->clipped |= n < p->payload_len;
    if (p->op->flags & OPF_END && !a->total)
        a->total = at + p->payload_len;
    if (!n || !reserve(c, &a->bytes, &a->cap, (uint32_t)at + n))
        return false;
    if (!cover_add(&a->cover, at, at + n))
        return false;
    memcpy(a->bytes + at, p->data + p->payload_off, n);
    a->packets++;
    a->frame = p->frame->number;
    a->now = p->frame->ts;
    return true;
}

struct command *message_packet(struct ulp_flow *f, const struct pkt *p, enum seen_as as, struct pkt *show)
{
    struct assembly *a;
    bool fresh, last, more;

    if (p->op->flags & OPF_ONLY)
        return only_packet(f, p, as, show);
    a = assembly_of(f, p);
    if (p->op->flags & OPF_FIRST && (!a || a->psn != p->bth.psn || as == SEEN_RESTART)) {
        assembly_end(f, &f->assembly[f->next_assembly % ASSEMBLIES]);
        a = assembly_begin(f, p, as);
    }
    if (!a)
        return NULL;
    fresh = put(f->conn, a, p);
    if ((!fresh || (a->delivered && is_copy(as))) && p->payload_cap)
        count_again(f, command_of(f->conn, a->command), p, as);
    last = p->op->flags & OPF_END;
    more = a->delivered && fresh && !a->whole; /* a packet that was missing when the last one came */
    if (last || more)
        return deliver_assembly(f, a, invalidated(p), show);
    return command_of(f->conn, a->command);
}

void messages_end(struct ulp_flow *f)
{
    for (unsigned i = 0; i < ASSEMBLIES; i++) {
        struct assembly *a = &f->assembly[(f->next_assembly + i) % ASSEMBLIES];
        assembly_end(f, a);
        memory_give(f->conn, a->cap);
        free(a->bytes);
    }
}

/* --- Messages of several SENDs ---------------------------------------------------------------- */

bool ulp_join(struct ulp_conn *c, struct ulp_message *m, bool begin)
{
    struct joined *j = &c->joined[m->side];
    uint32_t n;

    if (begin) {
        j->len = j->packets = 0;
        j->start = m->start;
    }
    n = min_u32(m->body.len, ULP_MESSAGE_MAX - j->len);
    if (!reserve(c, &j->bytes, &j->cap, j->len + n))
        return false;
    memcpy(j->bytes + j->len, m->body.b, n);
    j->len += n;
    j->packets += m->packets;
    m->body = (struct ulp_body){j->bytes, j->len, LAYER_MESSAGE};
    m->start = j->start;
    m->packets = j->packets;
    return true;
}

void joined_free(struct ulp_conn *c)
{
    for (unsigned i = 0; i < ULP_SIDES; i++) {
        memory_give(c, c->joined[i].cap);
        free(c->joined[i].bytes);
    }
}
