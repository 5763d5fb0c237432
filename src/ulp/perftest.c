/* layer 2b (ulp): perftest with -R: each message of the client, with the server's own of the same kind as its answer.
 */
#include "dissect/ulp/perftest.h"

#include "src/ulp/proto.h"

/* A connection: how many messages of 4 and 8 bytes the client has sent. */
struct talk {
    unsigned numbers, parts;
};

/* What a message of the client keeps. */
struct own {
    struct perftest_message m;
    uint32_t len;
};
ULP_OWN_AS(struct own)

#define KEY 1 /* one message of the client is open at a time */

static bool begin(struct ulp_conn *c, struct ulp_message *m)
{
    struct talk *x = ulp_state(c);
    unsigned *count = m->body.len == 8 ? &x->parts : m->body.len == 4 ? &x->numbers : NULL;
    enum perftest_kind kind = perftest_kind_of(m->body.len, count ? *count : 0);
    struct ulp_command *cmd;

    if (kind == PERFTEST_KINDS)
        return false;
    if (count)
        ++*count;
    m->command = cmd = ulp_begin(c, m, KEY);
    if (!cmd)
        return true;
    perftest_get(&own_of(cmd)->m, kind, m->body.b);
    own_of(cmd)->len = m->body.len;
    return true;
}

/* The server's message: an answer if it is of the same kind. */
static bool answer(struct ulp_conn *c, struct ulp_message *m)
{
    struct ulp_command *cmd = ulp_find(c, KEY);

    if (!cmd || own_of(cmd)->len != m->body.len)
        return false;
    ulp_complete(c, cmd, m, 0, false);
    m->command = cmd;
    return true;
}

static bool perftest_message(struct ulp_conn *c, struct ulp_message *m)
{
    bool taken = m->again ? m->command != NULL : m->side == ULP_CLIENT ? begin(c, m) : answer(c, m);

    if (taken && m->show && m->command && own_const(m->command)->len == m->body.len)
        perftest_layers(m->show, &m->body, (enum perftest_kind)own_const(m->command)->m.kind);
    return taken;
}

static void perftest_name_text(struct buf *b, const struct ulp_command *c)
{
    buf_puts(b, perftest_kind_str((enum perftest_kind)own_const(c)->m.kind));
}

/* What the client said. */
static void perftest_key_text(struct buf *b, const struct ulp_command *c)
{
    const struct perftest_message *m = &own_const(c)->m;
    double d;

    memcpy(&d, &m->number, sizeof d);
    if (m->kind == PERFTEST_VERSION_TEXT)
        buf_puts(b, m->version);
    else if (m->kind == PERFTEST_KEYS)
        buf_printf(b, "QPN 0x%06x PSN 0x%06x", m->qpn, m->psn);
    else if (m->kind >= PERFTEST_PEAK)
        buf_printf(b, "%g", d);
    else
        buf_printf(b, "%llu", (unsigned long long)m->number);
}

static void perftest_text(struct buf *b, const struct ulp_command *c)
{
    const struct perftest_message *m = &own_const(c)->m;

    perftest_name_text(b, c);
    buf_char(b, ' ');
    perftest_key_text(b, c);
    if (m->kind == PERFTEST_KEYS)
        buf_printf(b, " rkey 0x%x va 0x%llx", m->rkey, (unsigned long long)m->va);
}

static void perftest_status(struct buf *b, const struct ulp_command *c)
{
    (void)c;
    buf_puts(b, "answered");
}

static void perftest_values(const struct ulp_command *c, ulp_take *take, void *user)
{
    const struct perftest_message *m = &own_const(c)->m;
    bool keys = m->kind == PERFTEST_KEYS, text = m->kind == PERFTEST_VERSION_TEXT;
    bool number = !keys && !text && m->kind < PERFTEST_PEAK;
    const struct ulp_value values[] = {
        {"version", m->version, 0, text}, {"number", NULL, m->number, number}, {"qpn", NULL, m->qpn, keys},
        {"psn", NULL, m->psn, keys},      {"rkey", NULL, m->rkey, keys},       {"address", NULL, m->va, keys},
    };

    for (unsigned i = 0; i < ARRAY_LEN(values); i++)
        take(user, &values[i]);
}

const struct ulp_proto ulp_perftest = {
    .name = "perftest",
    .word = "perftest",
    .size = sizeof(struct talk),
    .looks = perftest_looks,
    .message = perftest_message,
    .name_text = perftest_name_text,
    .key_text = perftest_key_text,
    .command_text = perftest_text,
    .status_text = perftest_status,
    .values = perftest_values,
};
