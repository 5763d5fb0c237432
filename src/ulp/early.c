/* layer 2b (ulp): responses that were captured before their commands: a tap that takes the two directions with
 * different delays sees them so.
 *
 * A response that no open command waits for is kept a moment. It belongs to the next command with its identifier if all
 * that the client sent until then was captured: a command before it would have been seen. Should a second response
 * come, that is the one (ulp_find() opens the command again). */
#include "src/ulp/ulp_impl.h"

#include <stdlib.h>

#define EARLY_WITHIN (NS_PER_S / 1000) /* time stamps of a response and of its command differ by that at most */
#define EARLY_BYTES  1024              /* of a response that is kept; a larger one is not */

/* A response of the server that came before its command. */
struct early {
    struct ulp_message m; /* its body is `bytes` */
    uint64_t lacking;     /* what of the client the capture lacked when it came */
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

void early_free(struct ulp_conn *c)
{
    while (c->n_early)
        forget(c, 0);
}

/* Whether the connection's setup told its protocol: it was captured. */
static bool has_setup(const struct ulp_conn *c)
{
    return c->how != ULP_BY_USER && c->how != ULP_BY_BYTES;
}

/* What the capture lacks of the client; false: nothing of it was captured, and neither was the connection's setup. */
static bool client_lacks(const struct ulp_conn *c, uint64_t *n)
{
    *n = lacking(c, ULP_CLIENT);
    return c->stream || c->flow[ULP_CLIENT] != FLOW_NONE || has_setup(c);
}

static void keep(struct ulp_conn *c, const struct ulp_message *m)
{
    size_t n = sizeof(struct early) + m->body.len;
    struct early *e;
    uint64_t lacks;

    if (m->body.len > EARLY_BYTES || m->body.more || !client_lacks(c, &lacks))
        return;
    if (c->n_early == EARLY_MAX)
        forget(c, 0);
    if (!memory_take(c, n))
        return;
    e = malloc(n);
    if (!e) {
        memory_give(c, n);
        return;
    }
    e->m = *m;
    e->m.show = NULL;
    e->m.body = (struct ulp_body){e->bytes, m->body.len, LAYER_MESSAGE};
    e->lacking = lacks;
    if (m->body.len)
        memcpy(e->bytes, m->body.b, m->body.len);
    c->early[c->n_early++] = e;
}

bool early_is_near(ns_t a, ns_t b)
{
    return a < b ? b - a <= EARLY_WITHIN : a - b <= EARLY_WITHIN;
}

/* Command `cmd` has begun: was its response there before? */
static void answer(struct ulp_conn *c, struct ulp_command *cmd)
{
    uint64_t lacks = 0;

    client_lacks(c, &lacks);
    for (unsigned i = c->n_early; i-- > 0;) {
        struct early *e = c->early[i];
        struct ulp_message m = e->m;
        if (e->lacking != lacks || !early_is_near(m.now, cmd->start)) {
            forget(c, i);
            continue;
        }
        c->proto->message(c, &m);
        if (m.command)
            forget(c, i);
        if (m.command && cmd->response == m.frame) {
            cmd->foretold = true;
            return;
        }
    }
}

/* A command has begun. */
static void begun(struct ulp_conn *c, struct ulp_command *cmd)
{
    struct ulp_flow *f = c->flow[ULP_SERVER] == FLOW_NONE ? NULL : c->ulp->flows[c->flow[ULP_SERVER]];

    if (f && f->n_strays)
        transfers_claim(f, (struct command *)cmd);
    if (c->n_early)
        answer(c, cmd);
}

void early_message(struct ulp_conn *c, const struct ulp_message *m, bool taken)
{
    if (!c->proto->late_commands || m->again || m->hole || m->cut || !taken)
        return;
    if (m->side == ULP_SERVER && (!m->command || m->command->headless))
        keep(c, m);
    else if (m->side == ULP_CLIENT && m->command)
        begun(c, m->command);
}
