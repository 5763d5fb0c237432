/* layer 2b (ulp): why a responder refused a READ, a WRITE or an invalidation: what of it the offers of commands
 * contradict.
 *
 *     same R_Key, holds the range     offered for the other operation: direction; of a command that was completed
 *                                     before: stale R_Key; else as offered: the memory is not what its owner said
 *     same R_Key, another range       range
 *     another R_Key, holds the range  wrong R_Key, if only one command offered such memory */
#include "src/iwarp/iwarp.h"
#include "src/ulp/ulp_impl.h"

#define WALKS 16 /* refusals of a connection for which the memory of all of its commands is looked at */

static const struct {
    const char *name, *words;
} faults[] = {
    [ULP_NO_FAULT] = {"", ""},
    [ULP_UNKNOWN_RKEY] = {"unknown_rkey", "no command offered such memory"},
    [ULP_WRONG_RKEY] = {"wrong_rkey", "wrong R_Key"},
    [ULP_STALE_RKEY] = {"stale_rkey", "stale R_Key"},
    [ULP_RANGE] = {"range", "wrong range"},
    [ULP_DIRECTION] = {"direction", "wrong direction"},
    [ULP_AS_OFFERED] = {"as_offered", "as the command offered it"},
};

const char *ulp_fault_str(enum ulp_fault f)
{
    return faults[f].name;
}

const char *ulp_fault_words(enum ulp_fault f)
{
    return faults[f].words;
}

/* Whether memory was offered for WRITEs: the client's to be filled, or the server's to take the client's bytes. */
static bool is_for_writes(const struct segment *s)
{
    return (s->owner == ULP_CLIENT) == (s->dir == ULP_TO_CLIENT);
}

static bool is_right_way(const struct segment *s, const struct ulp_refusal *r)
{
    return is_for_writes(s) == (r->op == ULP_OP_WRITE);
}

/* How well the memory fits, from 1 on: touched by the request, holds it, and for such requests. */
static unsigned fit(const struct segment *s, const struct ulp_refusal *r)
{
    bool touches = r->va < s->va ? s->va - r->va < r->len : r->va - s->va < s->len;

    if (segment_holds(s, r->rkey, r->va, r->len))
        return is_right_way(s, r) ? 4 : 3;
    return touches ? 2 : 1;
}

/* The memory of `owner` with the request's R_Key that fits best: the latest of these; NULL: none has it. */
static struct segment *by_key(const struct ulp_conn *c, enum ulp_side owner, const struct ulp_refusal *r)
{
    struct segment *best = NULL;

    for (struct segment *s = segments_of(c, r->rkey); s; s = s->next)
        if (s->owner == owner && s->rkey == r->rkey && (!best || fit(s, r) > fit(best, r)))
            best = s;
    return best;
}

/* Memory of a command, of another R_Key, that is offered for such a request and holds its range; NULL: none is. */
static struct segment *in_command(const struct command *d, enum ulp_side owner, const struct ulp_refusal *r)
{
    for (uint32_t i = 0; i < d->n_segments; i++) {
        struct segment *s = d->segments[i];
        if (s->owner == owner && is_right_way(s, r) && segment_holds(s, s->rkey, r->va, r->len))
            return s;
    }
    return NULL;
}

/* Likewise of the only command that had no response when the request in frame `asked` was sent: the response often
 * follows it at once, and the NAK comes behind both. NULL: none offers such memory, or several do. */
static struct segment *by_range(const struct ulp_conn *c, enum ulp_side owner, const struct ulp_refusal *r,
                                uint64_t asked)
{
    const struct command_list *lists[] = {&c->open, &c->done};
    struct segment *only = NULL;

    for (unsigned i = 0; i < ARRAY_LEN(lists); i++)
        for (const struct command *d = lists[i]->first; d; d = d->newer) {
            bool ended = d->c.response && d->c.response < asked;
            struct segment *s = ended ? NULL : in_command(d, owner, r);
            if (s && only)
                return NULL;
            only = s ? s : only;
        }
    return only;
}

static enum ulp_fault fault_of(const struct segment *s, const struct ulp_refusal *r, uint64_t asked)
{
    const struct ulp_command *c = &s->command->c;

    if (s->rkey != r->rkey)
        return ULP_WRONG_RKEY;
    if (!segment_holds(s, r->rkey, r->va, r->len))
        return ULP_RANGE;
    if (!is_right_way(s, r))
        return ULP_DIRECTION;
    return c->response && c->response < asked ? ULP_STALE_RKEY : ULP_AS_OFFERED;
}

struct command *refuse_access(struct ulp_conn *c, enum ulp_side owner, struct ulp_refusal *r, uint64_t asked)
{
    struct segment *s = by_key(c, owner, r);

    if (!s && r->len && c->walks++ < WALKS)
        s = by_range(c, owner, r, asked);
    r->fault = ULP_UNKNOWN_RKEY;
    if (!s) {
        c->ulp->sums.refused++;
        c->ulp->refused = *r;
        return NULL;
    }
    r->fault = (uint8_t)fault_of(s, r, asked);
    r->for_writes = is_for_writes(s);
    r->offered_rkey = s->rkey;
    r->offered_va = s->va;
    r->offered_len = s->len;
    r->response = s->command->c.response;
    refuse_command(s->command, r);
    return s->command;
}

void refuse_command(struct command *d, const struct ulp_refusal *r)
{
    d->c.naks++;
    if (!d->c.refusal.frame)
        d->c.refusal = *r;
}

struct command *refuse_invalidation(struct command *d, struct ulp_refusal *r)
{
    r->op = ULP_OP_INVALIDATE;
    r->fault = d->n_segments ? ULP_WRONG_RKEY : ULP_UNKNOWN_RKEY;
    for (uint32_t i = 0; i < d->n_segments; i++) {
        r->offered_rkey = d->segments[i]->rkey;
        if (r->offered_rkey == r->rkey) {
            r->fault = ULP_AS_OFFERED;
            break;
        }
    }
    refuse_command(d, r);
    return d;
}

/* --- iWARP ------------------------------------------------------------------------------------ */

/* Errors of memory: RDMAP's remote protection errors, DDP's tagged buffer errors. */
static bool is_access_error(const struct rdmap_terminate *t)
{
    return (t->layer == TERM_RDMAP && t->type == 1) || (t->layer == TERM_DDP && t->type == 1);
}

bool refusal_of_terminate(struct ulp_refusal *r, const struct iwarp_unit *w)
{
    struct rdmap_terminate t;
    struct rdmap_read read;
    struct ddp d;

    if (!w->payload || !rdmap_terminate_get(&t, w->payload, w->payload_len) || !is_access_error(&t))
        return false;
    *r = (struct ulp_refusal){.frame = w->frame, .op = ULP_OP_READ};
    if (t.rdmap_len >= RDMAP_READ_LEN) {
        rdmap_read_get(&read, w->payload + t.rdmap_at);
        r->rkey = read.source_stag;
        r->va = read.source_to;
        r->len = read.size;
        return true;
    }
    if (!ddp_get(&d, w->payload + t.ddp_at, t.ddp_len) || !d.tagged || d.opcode != RDMAP_WRITE)
        return false;
    r->op = ULP_OP_WRITE;
    r->rkey = d.stag;
    r->va = d.to;
    r->len = t.m && !t.swapped && t.segment_len > d.head ? t.segment_len - d.head : 0;
    return true;
}

/* --- In words --------------------------------------------------------------------------------- */

static void put_range(struct buf *b, uint64_t va, uint32_t len)
{
    buf_printf(b, "%u byte%s at 0x%llx", len, len == 1 ? "" : "s", (unsigned long long)va);
}

/* "WRITE of 4096 bytes at 0x1000 with R_Key 0x1234". */
static void put_request(struct buf *b, const struct ulp_refusal *r)
{
    static const char *const names[] = {"READ", "WRITE", "invalidation"};

    buf_puts(b, names[r->op]);
    if (r->op != ULP_OP_INVALIDATE) {
        buf_puts(b, " of ");
        put_range(b, r->va, r->len);
    }
    buf_printf(b, "%s R_Key 0x%x", r->op == ULP_OP_INVALIDATE ? " of" : " with", r->rkey);
}

void ulp_refusal_text(struct buf *b, const struct ulp_refusal *r)
{
    enum ulp_fault f = (enum ulp_fault)r->fault;

    put_request(b, r);
    buf_printf(b, ": %s", ulp_fault_words(f));
    if (f == ULP_WRONG_RKEY)
        buf_printf(b, ", the command offered 0x%x", r->offered_rkey);
    if (f == ULP_STALE_RKEY)
        buf_printf(b, ", the command ended in frame %llu", (unsigned long long)r->response);
    if (f == ULP_RANGE) {
        buf_puts(b, ", the command offered ");
        put_range(b, r->offered_va, r->offered_len);
    }
    if (f == ULP_DIRECTION)
        buf_printf(b, ", the command offered it for %s", r->for_writes ? "WRITEs" : "READs");
}
