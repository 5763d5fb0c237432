/* layer 2b (ulp): responses that were captured before their commands: a tap that takes the two directions with
 * different delays sees them so.
 *
 * A response that no open command waits for is kept a moment. It belongs to the next command with its identifier if all
 * that the end that asks (the client, or the server in a callback) sent until then was captured: a command before it
 * would have been seen. Should a second response come, and no other command that it may belong to, that is the one: the
 * command is opened again. */
#include "src/ulp/ulp_impl.h"

#include <stdlib.h>

#define EARLY_WITHIN (NS_PER_S / 1000) /* time stamps of a response and of its command differ by that at most */
#define EARLY_BYTES  1024              /* of a response that is kept; a larger one is not */

/* A response that came before its command. */
struct early {
    struct ulp_message m;      /* its body is `bytes` */
    uint64_t lacking;          /* what of the end that asks the capture lacked when it came */
    struct command_ref second; /* a command that has such a response: it is this one if no other command comes */
    uint8_t bytes[];
};

static size_t size_of(const struct early *e)
{
    return sizeof *e + e->m.body.len;
}

static void forget(struct ulp_conn *c, unsigned i)
{
    memory_give(c, size_of(c->early[i]));
    free(c->early[i]);
    memmove(c->early + i, c->early + i + 1, (--c->n_early - i) * sizeof c->early[0]);
}

/* Give it to the protocol: it may complete `d`, also for the second time. Returns its command, NULL: none. */
static struct ulp_command *give(struct ulp_conn *c, const struct early *e, const struct ulp_command *d)
{
    struct ulp_message m = e->m;

    c->reopen = d;
    c->proto->message(c, &m);
    c->reopen = NULL;
    c->second = (struct command_ref){0, 0};
    return m.command;
}

/* No command came for it. */
static void give_up(struct ulp_conn *c, unsigned i)
{
    const struct command *d = command_of(c, c->early[i]->second);

    if (d)
        give(c, c->early[i], &d->c);
    forget(c, i);
}

static void data_forget(struct ulp_conn *c, struct early_data **at)
{
    struct early_data *d = *at;

    *at = d->next;
    c->n_early_data--;
    memory_give(c, sizeof *d + d->m.cap);
    free(d);
}

void early_end(struct ulp_conn *c)
{
    while (c->n_early)
        give_up(c, 0);
    while (c->early_data)
        data_forget(c, &c->early_data);
}

/* --- Data over iWARP -------------------------------------------------------------------------- */

void early_data_keep(struct ulp_conn *c, const struct early_data *d)
{
    struct early_data **at = &c->early_data, *kept;
    uint64_t n = sizeof *d + d->m.cap;

    if (!c->proto->late_commands || !d->m.len)
        return;
    if (c->n_early_data == STRAYS) {
        while ((*at)->next)
            at = &(*at)->next;
        data_forget(c, at);
    }
    kept = memory_new(c, n);
    if (!kept)
        return;
    *kept = *d;
    if (d->m.cap)
        memcpy(kept->bytes, d->m.b, d->m.cap);
    kept->m.b = kept->bytes;
    kept->lacking = lacking(c, d->of);
    kept->next = c->early_data;
    c->early_data = kept;
    c->n_early_data++;
}

/* A command has begun: bytes of its memory that were moved before belong to it. */
static void data_claim(struct ulp_conn *c, enum ulp_side side)
{
    uint64_t lacks = lacking(c, side);

    for (struct early_data **at = &c->early_data, *d = *at; d; d = *at) {
        struct segment *s = d->of == side ? segment_find(c, side, d->stag, d->to, d->m.len) : NULL;
        if (!s || d->lacking != lacks || !early_is_near(d->m.now, s->command->c.sent)) {
            at = &d->next;
            continue;
        }
        c->ulp->sums.untied -= d->m.len;
        c->ulp->sums.tied += d->m.len;
        data_take(c, s, s->base + (d->to - s->va), &d->m, NULL);
        data_forget(c, at);
    }
}

/* --- Responses -------------------------------------------------------------------------------- */

/* Whether the connection's setup told its protocol: it was captured. */
static bool has_setup(const struct ulp_conn *c)
{
    return c->how != ULP_BY_USER && c->how != ULP_BY_BYTES;
}

/* What the capture lacks of a side; false: nothing of it was captured, and neither was the connection's setup. */
static bool side_lacks(const struct ulp_conn *c, enum ulp_side side, uint64_t *n)
{
    *n = lacking(c, side);
    return c->stream || c->flow[side] != FLOW_NONE || has_setup(c);
}

static void keep(struct ulp_conn *c, const struct ulp_message *m, struct command_ref second)
{
    size_t n = sizeof(struct early) + m->body.len;
    struct early *e;
    uint64_t lacks;

    if (m->body.len > EARLY_BYTES || m->body.more || !side_lacks(c, ulp_other_side(m->side), &lacks))
        return;
    if (c->n_early == EARLY_MAX)
        give_up(c, 0);
    e = memory_new(c, n);
    if (!e)
        return;
    e->m = *m;
    e->m.show = NULL;
    e->m.body = (struct ulp_body){e->bytes, m->body.len, LAYER_MESSAGE};
    e->lacking = lacks;
    e->second = second;
    if (m->body.len)
        memcpy(e->bytes, m->body.b, m->body.len);
    c->early[c->n_early++] = e;
}

bool early_is_near(ns_t a, ns_t b)
{
    return a < b ? b - a <= EARLY_WITHIN : a - b <= EARLY_WITHIN;
}

/* Command `cmd` of `side` has begun: was its response there before? */
static void answer(struct ulp_conn *c, enum ulp_side side, const struct ulp_command *cmd)
{
    uint64_t lacks = 0;

    side_lacks(c, side, &lacks);
    for (unsigned i = c->n_early; i-- > 0;) {
        uint64_t frame = c->early[i]->m.frame;
        if (c->early[i]->m.side == side || c->early[i]->lacking != lacks || !give(c, c->early[i], cmd))
            continue;
        forget(c, i);
        if (cmd->response == frame)
            return;
    }
}

/* A command began with a message of which packets are missing, maybe those behind the latest one, and before a response
 * with its identifier came: that is its response. */
static void answer_begun(struct ulp_conn *c, enum ulp_side side, const struct ulp_command *cmd)
{
    for (unsigned i = c->n_early; i-- > 0 && !cmd->response;)
        if (c->early[i]->m.side != side && c->early[i]->m.now >= cmd->start && give(c, c->early[i], cmd))
            forget(c, i);
}

/* A command of `side` has begun. */
static void begun(struct ulp_conn *c, enum ulp_side side, struct ulp_command *cmd)
{
    uint32_t other = c->flow[ulp_other_side(side)];
    struct ulp_flow *f = other == FLOW_NONE ? NULL : c->ulp->flows[other];

    if (f && f->n_strays)
        transfers_claim(f);
    if (c->early_data)
        data_claim(c, side);
    if (c->n_early)
        answer(c, side, cmd);
}

/* Whether SENDs of a side wait for packets before them. */
static bool waits(const struct ulp_conn *c, enum ulp_side side)
{
    const struct ulp_flow *f = c->flow[side] == FLOW_NONE ? NULL : c->ulp->flows[c->flow[side]];
    bool any = false;

    for (uint32_t i = 0; f && i < f->n_strays; i++)
        any |= (f->stray[i]->p.op->flags & OPF_SEND) != 0;
    return any;
}

/* Whether no command will come for the response, as message `m` shows: one that waited is older than the response. */
static bool is_stale(const struct ulp_conn *c, const struct early *e, const struct ulp_message *m)
{
    return e->m.now < m->now && !early_is_near(e->m.now, m->now) && !waits(c, ulp_other_side(e->m.side));
}

void early_message(struct ulp_conn *c, const struct ulp_message *m, bool taken)
{
    struct command_ref second = c->second;

    c->second = (struct command_ref){0, 0};
    if (!c->proto->late_commands || m->again || !taken)
        return;
    if (m->hole && m->command && m->command->by_server == (m->side == ULP_SERVER) && !m->command->response)
        answer_begun(c, m->side, m->command);
    if (m->hole || m->cut)
        return;
    for (unsigned i = c->n_early; i-- > 0;)
        if (is_stale(c, c->early[i], m))
            give_up(c, i);
    if (m->command && m->command->by_server == (m->side == ULP_SERVER) && !m->command->response)
        begun(c, m->side, m->command);
    else if (!m->once && (!m->command || m->command->headless))
        keep(c, m, second);
}
