/* layer 2b (ulp): LNet: transfers that either end asks for, and the memory that they name. */
#include "dissect/file/lnet.h"

#include "dissect/mad/cm.h"
#include "src/ulp/proto.h"

#include <stdio.h>

#define PUTS 64 /* PUTs of each side that were granted and are not done */

/* A connection. */
struct peers {
    struct granted {
        uint64_t cookie, of; /* of the receiver; of the sender; 0: free */
    } put[ULP_SIDES][PUTS];
    unsigned at[ULP_SIDES];
};

/* What a transfer keeps. */
struct own {
    uint64_t cookie;
    uint32_t what, payload;
    int32_t status;
    uint8_t type;
};
ULP_OWN_AS(struct own)

/* By the cookie of the side that asked. */
static uint64_t key_of(enum ulp_side side, uint64_t cookie)
{
    return (cookie << 1 | cookie >> 63) ^ side;
}

/* Memory of `owner` for the data of a transfer. */
static void offer(struct ulp_conn *c, struct ulp_command *cmd, enum ulp_side owner, enum ulp_dir dir,
                  const struct ulp_message *m, const struct lnet *l)
{
    for (uint32_t i = 0; i < l->frags; i++) {
        struct lnet_frag f = lnet_frag(l, m->body.b, i);
        if (!ulp_offer_of(c, cmd, owner, dir, l->rkey, f.va, f.len))
            break;
    }
}

static void begin(struct ulp_conn *c, struct ulp_message *m, const struct lnet *l)
{
    struct ulp_command *cmd = ulp_begin(c, m, key_of(m->side, l->cookie));

    if (!cmd)
        return;
    *own_of(cmd) = (struct own){.cookie = l->cookie, .what = l->what, .payload = l->payload, .type = l->type};
    if (l->type == LNET_GET_REQ)
        offer(c, cmd, m->side, m->side == ULP_CLIENT ? ULP_TO_CLIENT : ULP_FROM_CLIENT, m, l);
}

/* The receiver of a PUT names its memory. */
static void grant(struct ulp_conn *c, struct ulp_message *m, const struct lnet *l)
{
    enum ulp_side sender = ulp_other_side(m->side);
    struct peers *s = ulp_state(c);
    struct ulp_command *cmd = ulp_find(c, key_of(sender, l->cookie));

    if (!cmd)
        return;
    s->put[sender][s->at[sender]++ % PUTS] = (struct granted){l->cookie2, l->cookie};
    offer(c, cmd, m->side, sender == ULP_CLIENT ? ULP_FROM_CLIENT : ULP_TO_CLIENT, m, l);
    m->command = cmd;
}

/* The cookie of the sender of a PUT, by that of its receiver; what it is if none is known. */
static uint64_t sender_cookie(struct ulp_conn *c, enum ulp_side sender, uint64_t cookie)
{
    struct peers *s = ulp_state(c);

    for (unsigned i = 0; i < PUTS; i++)
        if (s->put[sender][i].cookie == cookie)
            return s->put[sender][i].of;
    return cookie;
}

/* A transfer is over: the end that moved the data says so, or its receiver refuses it. */
static void done(struct ulp_conn *c, struct ulp_message *m, const struct lnet *l)
{
    enum ulp_side asker = l->type == LNET_PUT_DONE ? m->side : ulp_other_side(m->side);
    uint64_t cookie = l->type == LNET_PUT_DONE ? sender_cookie(c, asker, l->cookie) : l->cookie;
    struct ulp_command *cmd = ulp_find(c, key_of(asker, cookie));

    if (!cmd)
        return;
    own_of(cmd)->status = l->status;
    ulp_complete(c, cmd, m, (uint16_t) - (uint32_t)l->status, l->status != 0);
    m->command = cmd;
}

static void take(struct ulp_conn *c, struct ulp_message *m, const struct lnet *l)
{
    if (l->type == LNET_PUT_REQ || l->type == LNET_GET_REQ)
        begin(c, m, l);
    else if (l->type == LNET_PUT_ACK)
        grant(c, m, l);
    else if (l->type == LNET_PUT_DONE || l->type == LNET_GET_DONE || l->type == LNET_PUT_NAK)
        done(c, m, l);
}

static bool lnet_message(struct ulp_conn *c, struct ulp_message *m)
{
    struct lnet l;

    if (!lnet_get(&l, m->body.b, m->body.len))
        return false;
    if (!m->again)
        take(c, m, &l);
    snprintf(m->says, sizeof m->says, " %s", lnet_type_str(l.type) ? lnet_type_str(l.type) : "message");
    if (m->show)
        lnet_layers(m->show, &m->body);
    return true;
}

static void lnet_setup(struct pkt *show, const struct ulp_setup *s)
{
    if (s->attr != CM_REJ) {
        lnet_layers(show, &s->body);
        return;
    }
    lnet_reject_layers(show, &s->body);
    *s->why = lnet_refusal_str(&s->body);
}

static void lnet_name_text(struct buf *b, const struct ulp_command *c)
{
    buf_puts(b, own_const(c)->type == LNET_PUT_REQ ? "PUT" : "GET");
}

static void lnet_key_text(struct buf *b, const struct ulp_command *c)
{
    buf_printf(b, "cookie 0x%llx", (unsigned long long)own_const(c)->cookie);
}

static void lnet_text(struct buf *b, const struct ulp_command *c)
{
    lnet_name_text(b, c);
    buf_char(b, ' ');
    lnet_key_text(b, c);
    buf_printf(b, " len %u", own_const(c)->payload);
}

static void lnet_status(struct buf *b, const struct ulp_command *c)
{
    if (own_const(c)->status)
        buf_printf(b, "error %d", own_const(c)->status);
    else
        buf_puts(b, "done");
}

static void lnet_values(const struct ulp_command *c, ulp_take *take_value, void *user)
{
    const struct own *o = own_const(c);
    const struct ulp_value values[] = {
        {"cookie", NULL, o->cookie, true},
        {"lnet_type", lnet_what_str(o->what), o->what, true},
        {"length", NULL, o->payload, true},
        {"error", NULL, -(uint32_t)o->status, c->response != 0},
    };

    for (unsigned i = 0; i < ARRAY_LEN(values); i++)
        take_value(user, &values[i]);
}

const struct ulp_proto ulp_lnet = {
    .name = "LNet",
    .word = "lnet",
    .size = sizeof(struct peers),
    .looks = lnet_looks,
    .message = lnet_message,
    .setup = lnet_setup,
    .name_text = lnet_name_text,
    .key_text = lnet_key_text,
    .command_text = lnet_text,
    .status_text = lnet_status,
    .values = lnet_values,
};
