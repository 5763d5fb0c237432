/* layer 2b (ulp): SENDs: put together from their packets, and delivered to the protocol. */
#include "src/ulp/ulp_impl.h"

#include <stdio.h>
#include <stdlib.h>

/* --- Delivery --------------------------------------------------------------------------------- */

void message_say(struct ulp *u, const struct ulp_message *m)
{
    if (m->command && m->behind[0]) {
        memcpy(u->behind, m->behind, sizeof u->behind);
        u->behind_in = m->frame;
    }
    if (m->command || !m->says[0])
        return;
    memcpy(u->said, m->says, sizeof u->said);
    u->said_in = m->frame;
}

/* Deliver a message. Returns what it belongs to. */
static struct command *deliver(struct ulp_flow *f, struct ulp_message *m)
{
    struct ulp_conn *c = f->conn;
    bool taken;

    m->side = (enum ulp_side)f->side;
    m->latest = !c->ulp->held_again;
    if (!m->again)
        messages_overdue(c, m->now);
    if (ulp_is_zeroed(c->ulp, m))
        return NULL;
    taken = c->proto->message(c, m);
    message_say(c->ulp, m);
    if (m->again)
        return (struct command *)m->command;
    c->ulp->sums.holes += m->hole;
    c->ulp->sums.cut += m->cut && !m->hole && !m->command && m->body.len < ULP_MESSAGE_MAX;
    if (taken || !(m->hole || m->cut)) { /* of bytes that are missing nothing can be said */
        c->ulp->sums.messages += !taken;
        ulp_judge(c, taken);
    }
    early_message(c, m, taken);
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

/* Whether the tap sees the responses to what the flow sends: they tell whether a packet that is missing arrived. */
static bool sees_responses(const struct ulp_flow *f)
{
    return observer_sees_rdma_responses(f->conn->ulp->observer, f->conn->flow[f->side]);
}

/* --- Messages of one packet ------------------------------------------------------------------- */

/* Whether packets before it are missing, so that its receiver drops it, or keeps it until they come. */
static bool is_behind_gap(const struct ulp_flow *f, uint32_t psn)
{
    const struct req_dir *h = observer_req_dir(f->conn->ulp->observer, f->conn->flow[f->side]);

    return h && !f->over && psn_diff(h->gbn, psn) < 0;
}

/* The SEND with this PSN that waits; n_strays: none does. */
static uint32_t waiting(const struct ulp_flow *f, uint32_t psn)
{
    uint32_t i = 0;

    while (i < f->n_strays && !(f->stray[i]->p.op->flags & OPF_SEND && f->stray[i]->p.bth.psn == psn))
        i++;
    return i;
}

/* Let a SEND wait, and show it. */
static struct command *wait_for_gap(struct ulp_flow *f, const struct pkt *p, enum seen_as as, struct ulp_message *m)
{
    if (waiting(f, p->bth.psn) == f->n_strays)
        stray_keep(f, p, as);
    m->again = true;
    if (m->show)
        deliver(f, m);
    return NULL;
}

static struct command *only_packet(struct ulp_flow *f, const struct pkt *p, enum seen_as as, struct pkt *show)
{
    struct transfer *t = is_copy(as) ? send_at(f, p->bth.psn) : NULL;
    struct command *d;
    uint32_t at;
    struct ulp_message m = {.body = ulp_payload(p),
                            .cut = p->payload_cap < p->payload_len,
                            .frame = p->frame->number,
                            .start = p->frame->ts,
                            .now = p->frame->ts,
                            .packets = 1,
                            .has_imm = p->have & H_IMMDT,
                            .imm = p->immdt.data,
                            .invalidated = invalidated(p),
                            .show = show};

    m.again = t;
    if (!t && f->conn->proto->in_order && is_behind_gap(f, p->bth.psn) && sees_responses(f))
        return wait_for_gap(f, p, as, &m);
    if (!t && (at = waiting(f, p->bth.psn)) < f->n_strays)
        m.start = f->stray[at]->frame.ts;
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

/* What is there of a message. */
static struct ulp_message message_of(const struct ulp_flow *f, const struct assembly *a, struct pkt *show)
{
    struct command *d = command_of(f->conn, a->command);
    uint64_t passed = cover_prefix(&a->wire), there = cover_prefix(&a->cover),
             more = passed > there ? passed - there : 0;

    return (struct ulp_message){
        .body = {a->bytes, (uint32_t)there, LAYER_MESSAGE, more < INT32_MAX ? (uint32_t)more : INT32_MAX},
        .hole = !a->total || passed < a->total,
        .again = a->delivered,
        .cut = a->clipped,
        .frame = a->frame,
        .start = a->start,
        .now = a->now,
        .packets = a->packets,
        .invalidated = a->rkey,
        .show = show,
        .command = d ? &d->c : NULL};
}

/* Deliver a message, whole or not. */
static struct command *deliver_assembly(struct ulp_flow *f, struct assembly *a, struct pkt *show)
{
    struct ulp_message m = message_of(f, a, show);
    struct command *d = command_of(f->conn, a->command);
    struct transfer *t;

    a->whole = !m.hole;
    if (!m.body.len)
        return d;
    a->delivered = true;
    if (show) {
        show_bytes(f->conn->ulp, &m);
        show->note.ulp_missing = m.body.len;
        show->note.have |= m.hole ? NOTE_ULP_HOLE : 0;
    }
    d = deliver(f, &m);
    if (d && !m.again) {
        a->command = command_ref(&d->c);
        t = send_at(f, a->psn);
        if (t) {
            t->command = a->command;
            t->rkey = a->rkey;
        }
    }
    return d;
}

/* Its last packet came, and others are missing: show what is there; nothing else is made of it now. */
static struct command *show_part(struct ulp_flow *f, const struct assembly *a, struct pkt *show)
{
    struct ulp_message m = message_of(f, a, show);

    if (!show || !m.body.len)
        return NULL;
    show_bytes(f->conn->ulp, &m);
    show->note.ulp_missing = m.body.len;
    show->note.have |= NOTE_ULP_HOLE;
    m.again = true;
    deliver(f, &m);
    return NULL;
}

static void assembly_end(struct ulp_flow *f, struct assembly *a)
{
    if (a->used && !a->delivered && !a->headless)
        deliver_assembly(f, a, NULL);
    a->used = false;
}

/* Whether its last packet came, and others are missing. */
static bool is_held(const struct assembly *a)
{
    return a->used && !a->delivered && !a->headless && a->total;
}

/* The PSN that the assembly lacks first. */
static uint32_t lacks_at(const struct assembly *a)
{
    return psn_add(a->psn, (uint32_t)(cover_prefix(&a->wire) / a->mtu));
}

void messages_acked(struct ulp_flow *f, const struct req_dir *h, ns_t now)
{
    for (unsigned i = 0; i < ASSEMBLIES; i++) {
        struct assembly *a = &f->assembly[i];
        bool open = a->used && !a->delivered && !a->headless && a->mtu;
        if (open && h->have_una && psn_diff(h->una, lacks_at(a)) > 0)
            deliver_assembly(f, a, NULL);
        else if (open && !a->acked && psn_diff(h->proves, lacks_at(a)) > 0)
            a->acked = now;
    }
}

static bool is_acked(const struct assembly *a)
{
    return a->used && !a->delivered && !a->headless && a->acked;
}

void messages_overdue(struct ulp_conn *c, ns_t now)
{
    for (unsigned side = 0; side < ULP_SIDES; side++) {
        struct ulp_flow *f = c->flow[side] == FLOW_NONE ? NULL : c->ulp->flows[c->flow[side]];
        for (unsigned i = 0; f && i < ASSEMBLIES; i++)
            if (is_acked(&f->assembly[i]) && now > f->assembly[i].acked && !early_is_near(now, f->assembly[i].acked))
                deliver_assembly(f, &f->assembly[i], NULL);
    }
}

bool messages_settle(struct ulp_conn *c)
{
    bool any = false;

    for (unsigned side = 0; side < ULP_SIDES; side++) {
        struct ulp_flow *f = c->flow[side] == FLOW_NONE ? NULL : c->ulp->flows[c->flow[side]];
        for (unsigned i = 0; f && i < ASSEMBLIES; i++)
            if (is_held(&f->assembly[i])) {
                any = true;
                deliver_assembly(f, &f->assembly[i], NULL);
            }
    }
    return any;
}

/* --- Assemblies ------------------------------------------------------------------------------- */

/* The place of a new one: that of the oldest delivered one of two or more, a free one, or that of the oldest. */
static struct assembly *assembly_place(struct ulp_flow *f)
{
    struct assembly *done = NULL, *unused = NULL, *oldest = NULL;
    unsigned n = 0;

    for (unsigned i = 0; i < ASSEMBLIES; i++) {
        struct assembly *a = &f->assembly[i];
        if (!a->used) {
            unused = unused ? unused : a;
            continue;
        }
        n++;
        oldest = !oldest || a->age < oldest->age ? a : oldest;
        if (a->delivered)
            done = !done || a->age < done->age ? a : done;
    }
    return n >= 2 && done ? done : unused ? unused : oldest;
}

/* A message begins, or its first packet is missing (`headless`). One that is retransmitted when its bytes are forgotten
 * is still the command that it was. */
static struct assembly *assembly_begin(struct ulp_flow *f, const struct pkt *p, enum seen_as as, bool headless)
{
    struct assembly *a = assembly_place(f);
    struct transfer *t = is_copy(as) && !headless ? send_at(f, p->bth.psn) : NULL;

    assembly_end(f, a);
    *a = (struct assembly){.used = true,
                           .headless = headless,
                           .age = f->ages++,
                           .bytes = a->bytes,
                           .cap = a->cap,
                           .psn = p->bth.psn,
                           .mtu = p->payload_len,
                           .start = p->frame->ts};
    if (t && command_of(f->conn, t->command)) {
        a->command = t->command;
        a->delivered = true;
    } else if (!headless) {
        t = transfer_new(f, TRANSFER_SEND, p->bth.psn);
        t->span = 0;
    }
    return a;
}

/* The assembly that a packet belongs to; NULL: its beginning was not seen. Where two packets or more are missing before
 * it, one of them may have ended the message. */
static struct assembly *assembly_of(struct ulp_flow *f, const struct pkt *p)
{
    const struct transfer *t = transfer_find(f, p->bth.psn);
    struct assembly *best = NULL;

    for (unsigned i = 0; i < ASSEMBLIES; i++) {
        struct assembly *a = &f->assembly[i];
        uint32_t n = (p->bth.psn - a->psn) & PSN_MASK;
        uint64_t at = (uint64_t)n * a->mtu;
        bool apart = !a->total && a->wire.n && at > a->wire.span[a->wire.n - 1].to + a->mtu;
        bool later = t && psn_diff(t->psn, a->psn) > 0 && psn_diff(p->bth.psn, t->psn) >= 0;
        if (!a->used || apart || later || (a->total ? at >= a->total : n >= PSN_MASK / 2))
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

/* Put `n` captured bytes into their place. */
static void put_bytes(struct ulp_conn *c, struct assembly *a, uint64_t at, const uint8_t *b, uint32_t n)
{
    uint32_t keep = at >= ULP_MESSAGE_MAX ? 0 : min_u32(n, (uint32_t)(ULP_MESSAGE_MAX - at));

    a->clipped |= keep < n;
    if (keep && reserve(c, &a->bytes, &a->cap, (uint32_t)at + keep) && cover_keep(&a->cover, at, at + keep))
        memcpy(a->bytes + at, b, keep);
}

/* A packet of a message. Returns whether any of its bytes are new. */
static bool put(struct ulp_conn *c, struct assembly *a, const struct pkt *p)
{
    uint64_t at = (uint64_t)((p->bth.psn - a->psn) & PSN_MASK) * a->mtu;

    if (p->op->flags & OPF_END && (!a->total || at + p->payload_len < a->total)) {
        a->total = at + p->payload_len;
        a->rkey = invalidated(p);
    }
    a->clipped |= p->payload_cap < p->payload_len;
    put_bytes(c, a, at, p->data + p->payload_off, p->payload_cap);
    if (!cover_add(&a->wire, at, at + p->payload_len))
        return false;
    a->packets++;
    a->frame = p->frame->number;
    a->now = p->frame->ts;
    return true;
}

/* What `from` has at `cut` and beyond, `to` has at `at` and beyond. */
static void move_cover(struct cover *to, uint64_t at, const struct cover *from, uint64_t cut)
{
    for (unsigned i = 0; i < from->n; i++)
        if (from->span[i].to > cut)
            cover_add(to, at + (from->span[i].from > cut ? from->span[i].from - cut : 0),
                      at + (from->span[i].to - cut));
}

/* The bytes of `from` at `cut` and beyond are those of `to`, at `at` and beyond. */
static void move_bytes(struct ulp_conn *c, struct assembly *to, uint64_t at, struct assembly *from, uint64_t cut)
{
    move_cover(&to->wire, at, &from->wire, cut);
    for (unsigned i = 0; i < from->cover.n; i++) { /* at most ULP_MESSAGE_MAX bytes */
        uint64_t a = from->cover.span[i].from > cut ? from->cover.span[i].from : cut, b = from->cover.span[i].to;
        if (b > a)
            put_bytes(c, to, at + (a - cut), from->bytes + a, (uint32_t)(b - a));
    }
    if (from->total > cut) {
        to->total = at + (from->total - cut);
        to->rkey = from->rkey;
        from->total = 0;
    }
    cover_cut(&from->wire, cut);
    cover_cut(&from->cover, cut);
    to->clipped |= from->clipped;
    to->start = from->start < to->start ? from->start : to->start;
}

/* A message whose first packet comes now: what was taken for the end of the one before it belongs to it. */
static void split(struct ulp_flow *f, struct assembly *a, struct assembly *before)
{
    if (before != a && before->used && !before->delivered && !a->delivered)
        move_bytes(f->conn, a, 0, before, (uint64_t)((a->psn - before->psn) & PSN_MASK) * before->mtu);
}

/* Packets behind this one that came before it, without the beginning of their message. */
static void join_headless(struct ulp_flow *f, struct assembly *a, const struct pkt *p)
{
    for (unsigned i = 0; i < ASSEMBLIES; i++) {
        struct assembly *h = &f->assembly[i];
        if (!h->used || !h->headless || h == a || h->psn != psn_add(p->bth.psn, 1))
            continue;
        move_bytes(f->conn, a, (uint64_t)((h->psn - a->psn) & PSN_MASK) * a->mtu, h, 0);
        a->packets += h->packets;
        h->used = false;
    }
}

/* The assembly of a packet that belongs to several; NULL: there is none. */
static struct assembly *assembly_for(struct ulp_flow *f, const struct pkt *p, enum seen_as as)
{
    struct assembly *a = assembly_of(f, p), *before = a;

    if (!(p->op->flags & OPF_FIRST))
        return a ? a : assembly_begin(f, p, as, true);
    if (a && a->psn == p->bth.psn && as != SEEN_RESTART && !a->headless)
        return a;
    a = assembly_begin(f, p, as, false);
    if (before)
        split(f, a, before);
    return a;
}

/* The command whose memory the packet invalidates, though its message belongs to none; NULL: none offered such. */
static struct command *invalidates(const struct ulp_flow *f, const struct pkt *p)
{
    for (struct segment *s = p->have & H_IETH ? segments_of(f->conn, p->ieth.rkey) : NULL; s; s = s->next)
        if (s->rkey == p->ieth.rkey && s->owner != f->side)
            return s->command;
    return NULL;
}

/* A packet of a message that is not complete: what the message is, by the bytes that it begins with. */
static void say_part(struct ulp_flow *f, const struct assembly *a, const struct pkt *p)
{
    const struct ulp_body b = {.b = a->bytes, .len = min_u32((uint32_t)cover_prefix(&a->cover), a->cap)};
    struct ulp *u = f->conn->ulp;

    if (!f->conn->proto->begins || !b.len || ulp_zeroes(b.b, b.len))
        return;
    u->text.len = 0;
    f->conn->proto->begins(f->conn, (enum ulp_side)f->side, &b, &u->text);
    if (u->text.len)
        snprintf(u->said, sizeof u->said, " %.*s: part", (int)min_u32((uint32_t)u->text.len, ULP_SAYS - 8), u->text.p);
    u->said_in = u->text.len ? p->frame->number : u->said_in;
}

/* A message begins: what was delivered and is not there will not come. */
static void acked_before(struct ulp_flow *f, const struct pkt *p)
{
    for (unsigned i = 0; i < ASSEMBLIES; i++)
        if (is_acked(&f->assembly[i]) && psn_diff(p->bth.psn, lacks_at(&f->assembly[i])) > 0)
            deliver_assembly(f, &f->assembly[i], NULL);
}

struct command *message_packet(struct ulp_flow *f, const struct pkt *p, enum seen_as as, struct pkt *show)
{
    struct assembly *a;
    bool fresh, complete;

    if (p->op->flags & OPF_START && !is_copy(as))
        acked_before(f, p);
    if (p->op->flags & OPF_ONLY) {
        struct command *d = only_packet(f, p, as, show);
        return d ? d : invalidates(f, p);
    }
    a = assembly_for(f, p, as);
    fresh = put(f->conn, a, p);
    if (fresh && !(p->op->flags & OPF_END))
        join_headless(f, a, p);
    if ((!fresh || (a->delivered && is_copy(as))) && p->payload_len)
        count_again(f, command_of(f->conn, a->command), p, as);
    if (a->headless)
        return NULL;
    complete = a->total && cover_prefix(&a->wire) >= a->total;
    if (a->delivered ? p->op->flags & OPF_END || (fresh && !a->whole) : complete)
        return deliver_assembly(f, a, show);
    if (!a->delivered && p->op->flags & OPF_END) {
        if (sees_responses(f))
            return show_part(f, a, show);
        return deliver_assembly(f, a, show);
    }
    if (show && !a->delivered)
        say_part(f, a, p);
    return command_of(f->conn, a->command);
}

/* The SEND that waits and has the lowest PSN; n_strays: none does. */
static uint32_t first_waiting(const struct ulp_flow *f)
{
    uint32_t at = f->n_strays;

    for (uint32_t i = 0; i < f->n_strays; i++)
        if (f->stray[i]->p.op->flags & OPF_SEND &&
            (at == f->n_strays || psn_diff(f->stray[i]->p.bth.psn, f->stray[at]->p.bth.psn) < 0))
            at = i;
    return at;
}

void messages_release(struct ulp_flow *f)
{
    uint32_t i;

    while ((i = first_waiting(f)) < f->n_strays && !is_behind_gap(f, f->stray[i]->p.bth.psn)) {
        struct stray *s = stray_take(f, i); /* first: what it completes may take others */
        if (!send_at(f, s->p.bth.psn))
            only_packet(f, &s->p, (enum seen_as)s->as, NULL);
        stray_free(f->conn, s);
    }
}

void messages_end(struct ulp_flow *f)
{
    f->over = true;
    messages_release(f);
    for (unsigned i = 0; i < ASSEMBLIES; i++) {
        struct assembly *oldest = NULL;
        for (unsigned k = 0; k < ASSEMBLIES; k++) {
            struct assembly *a = &f->assembly[k];
            oldest = a->used && (!oldest || a->age < oldest->age) ? a : oldest;
        }
        if (oldest)
            assembly_end(f, oldest);
    }
    for (unsigned i = 0; i < ASSEMBLIES; i++) {
        memory_give(f->conn, f->assembly[i].cap);
        free(f->assembly[i].bytes);
    }
}

/* --- Messages of several SENDs ---------------------------------------------------------------- */

bool ulp_join(struct ulp_conn *c, struct ulp_message *m, bool begin)
{
    struct joined *j = &c->joined[m->side];
    uint64_t lost;
    uint32_t n;

    if (begin) {
        j->len = j->packets = j->lost = 0;
        j->start = m->start;
        j->lacking = lacking(c, m->side);
    }
    n = j->lost ? 0 : min_u32(m->body.len, ULP_MESSAGE_MAX - j->len); /* behind what is lost nothing has its place */
    lost = (uint64_t)j->lost + m->body.more + (m->body.len - n);
    if (!reserve(c, &j->bytes, &j->cap, j->len + n))
        return false;
    memcpy(j->bytes + j->len, m->body.b, n);
    j->len += n;
    j->lost = (uint32_t)(lost < INT32_MAX ? lost : INT32_MAX);
    j->packets += m->packets;
    m->body = (struct ulp_body){j->bytes, j->len, LAYER_MESSAGE, j->lost};
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
