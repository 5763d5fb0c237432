/* layer 2b (ulp): rping: the client names memory that the server READs, then memory that it WRITEs, in turn. */
#include "dissect/ulp/rping.h"

#include "src/ulp/proto.h"

/* A connection. What memory is for shows once the server accesses it; until then messages of the client are taken to
 * name it in turn, unless it was accessed before. */
struct turn {
    bool write;             /* the next message of the client is about memory that the server WRITEs */
    bool known[2];          /* memory[]: what was READ, and what was WRITTEN */
    struct rping memory[2]; /* with known[] */
};

/* What a message of the client keeps. */
struct own {
    struct rping memory;
};
ULP_OWN_AS(struct own)

#define KEY 1 /* one message of the client is open at a time */

static void begin(struct ulp_conn *c, struct ulp_message *m)
{
    struct turn *t = ulp_state(c);
    struct ulp_command *cmd = ulp_begin(c, m, KEY);
    struct own *o = cmd ? own_of(cmd) : NULL;

    if (!cmd)
        return;
    rping_get(&o->memory, m->body.b);
    for (unsigned i = 0; i < 2; i++)
        if (t->known[i] && t->memory[i].rkey == o->memory.rkey && t->memory[i].va == o->memory.va)
            t->write = i;
    ulp_offer(c, cmd, t->write ? ULP_TO_CLIENT : ULP_FROM_CLIENT, o->memory.rkey, o->memory.va, o->memory.len);
    t->write = !t->write;
}

static bool writes(const struct ulp_command *c)
{
    return c->requested[ULP_TO_CLIENT] > 0;
}

/* The server is done. */
static void complete(struct ulp_conn *c, struct ulp_message *m, struct ulp_command *cmd)
{
    struct turn *t = ulp_state(c);

    t->write = !writes(cmd);
    if (cmd->data_first) {
        t->known[writes(cmd)] = true;
        t->memory[writes(cmd)] = own_of(cmd)->memory;
    }
    ulp_complete(c, cmd, m, 0, false);
    m->command = cmd;
}

static bool rping_message(struct ulp_conn *c, struct ulp_message *m)
{
    struct ulp_command *cmd;

    if (m->body.len != RPING_LEN || (m->side == ULP_CLIENT && rping_looks(m->body.b, m->body.len, true) == LOOKS_OTHER))
        return false;
    if (!m->again && m->side == ULP_CLIENT) {
        begin(c, m);
    } else if (!m->again && (cmd = ulp_find(c, KEY))) {
        complete(c, m, cmd);
    }
    if (m->show && m->side == ULP_CLIENT)
        rping_layers(m->show, &m->body);
    return true;
}

static void rping_name_text(struct buf *b, const struct ulp_command *c)
{
    buf_puts(b, writes(c) ? "Write" : "Read");
}

static void rping_key_text(struct buf *b, const struct ulp_command *c)
{
    buf_printf(b, "rkey 0x%x", own_const(c)->memory.rkey);
}

static void rping_text(struct buf *b, const struct ulp_command *c)
{
    rping_name_text(b, c);
    buf_char(b, ' ');
    rping_key_text(b, c);
    buf_printf(b, " va 0x%llx len %u", (unsigned long long)own_const(c)->memory.va, own_const(c)->memory.len);
}

static void rping_status(struct buf *b, const struct ulp_command *c)
{
    (void)c;
    buf_puts(b, "done");
}

static void rping_values(const struct ulp_command *c, ulp_take *take, void *user)
{
    const struct own *o = own_const(c);
    const struct ulp_value values[] = {
        {"rkey", NULL, o->memory.rkey, true},
        {"address", NULL, o->memory.va, true},
        {"length", NULL, o->memory.len, true},
        {"write", NULL, writes(c), true},
    };

    for (unsigned i = 0; i < ARRAY_LEN(values); i++)
        take(user, &values[i]);
}

const struct ulp_proto ulp_rping = {
    .name = "rping",
    .word = "rping",
    .size = sizeof(struct turn),
    .looks = rping_looks,
    .responds = rping_responds,
    .message = rping_message,
    .either_way = true,
    .name_text = rping_name_text,
    .key_text = rping_key_text,
    .command_text = rping_text,
    .status_text = rping_status,
    .values = rping_values,
};
