/* layer 2b (ulp): perftest with -R: each message of the client, with the server's own of the same kind as its answer.
 */
#include "dissect/ulp/perftest.h"

#include "src/ulp/proto.h"

#include <stdio.h>

#define WAITING 16 /* messages that wait until it is known who is the client */

/* A message that waits. */
struct waiting {
    uint8_t side; /* enum ulp_side */
    uint8_t len;
    uint32_t packets;
    uint64_t frame;
    ns_t start, now;
    uint8_t b[PERFTEST_LEN_MAX];
};

/* A connection: how many messages of 4 and 8 bytes each end has sent. */
struct talk {
    unsigned numbers[ULP_SIDES], parts[ULP_SIDES];
    unsigned n;
    struct waiting waiting[WAITING];
};

/* What a message of the client keeps. */
struct own {
    struct perftest_message m;
    uint32_t len;
};
ULP_OWN_AS(struct own)

#define KEY 1 /* one message of the client is open at a time */

/* The kind of a message; its place among those of its length counts. */
static enum perftest_kind kind_of(struct ulp_conn *c, enum ulp_side side, uint32_t len)
{
    struct talk *x = ulp_state(c);
    unsigned *count = len == 8 ? &x->parts[side] : len == 4 ? &x->numbers[side] : NULL;

    return perftest_kind_of(len, count ? (*count)++ : 0);
}

static bool begin(struct ulp_conn *c, struct ulp_message *m)
{
    enum perftest_kind kind = kind_of(c, m->side, m->body.len);
    struct ulp_command *cmd;

    if (kind == PERFTEST_KINDS)
        return false;
    m->command = cmd = ulp_begin(c, m, KEY);
    if (!cmd)
        return true;
    perftest_get(&own_of(cmd)->m, kind, m->body.b);
    own_of(cmd)->len = m->body.len;
    return true;
}

/* A message of no command: what it is. */
static void say(struct ulp_message *m, enum perftest_kind kind, const char *more)
{
    snprintf(m->says, sizeof m->says, " %s%s", perftest_kind_str(kind), more);
    if (m->show)
        perftest_layers(m->show, &m->body, kind);
}

/* The server's message: an answer if it is of the same kind. */
static bool answer(struct ulp_conn *c, struct ulp_message *m)
{
    enum perftest_kind kind = kind_of(c, m->side, m->body.len);
    struct ulp_command *cmd = ulp_find(c, KEY);

    if (kind == PERFTEST_KINDS || (cmd && own_of(cmd)->len != m->body.len))
        return false;
    if (!cmd) {
        say(m, kind, ", what it answers was not seen");
        return true;
    }
    ulp_complete(c, cmd, m, 0, false);
    m->command = cmd;
    return true;
}

/* --- Who is the client ------------------------------------------------------------------------ */

/* Both ends say the same, the client first: with the latest message, of `side`, both have sent as many, or the client
 * one more. *client is set if that is known. */
static bool counts_tell(const struct ulp_conn *c, enum ulp_side side, enum ulp_side *client)
{
    enum ulp_side other = ulp_other_side(side);
    uint32_t n[ULP_SIDES];

    if (!ulp_sent(c, ULP_CLIENT, &n[ULP_CLIENT]) || !ulp_sent(c, ULP_SERVER, &n[ULP_SERVER]))
        return false;
    *client = n[side] == n[other] ? other : side;
    return n[side] == n[other] || n[side] == n[other] + 1;
}

/* Who says something else than what was said last is the client, and of the versions, which are said once, the first
 * one is its. */
static bool tells_client(const struct ulp_conn *c, const struct ulp_message *m, enum ulp_side *client)
{
    const struct talk *x = ulp_state(c);
    const struct waiting *last = x->n ? &x->waiting[x->n - 1] : NULL;

    if (!last || last->side == m->side)
        return false;
    *client = last->len == m->body.len ? (enum ulp_side)last->side : m->side;
    if (last->len != m->body.len || perftest_kind_of(last->len, 0) == PERFTEST_VERSION_TEXT)
        return true;
    return m->latest && counts_tell(c, m->side, client);
}

/* What waited is taken, from the first message of the client on. */
static void take_waiting(struct ulp_conn *c)
{
    struct talk *x = ulp_state(c);

    memset(x->numbers, 0, sizeof x->numbers);
    memset(x->parts, 0, sizeof x->parts);
    for (unsigned i = 0; i < x->n; i++) {
        const struct waiting *w = &x->waiting[i];
        struct ulp_message m = {.body = {w->b, w->len, LAYER_MESSAGE, 0},
                                .side = (enum ulp_side)w->side,
                                .frame = w->frame,
                                .start = w->start,
                                .now = w->now,
                                .packets = w->packets};
        if (m.side == ULP_CLIENT)
            begin(c, &m);
        else
            answer(c, &m);
    }
    x->n = 0;
}

static void set_client(struct ulp_conn *c, enum ulp_side client)
{
    struct talk *x = ulp_state(c);

    ulp_set_sides(c, client == ULP_SERVER);
    for (unsigned i = 0; i < x->n; i++)
        x->waiting[i].side = (uint8_t)(x->waiting[i].side != client);
    take_waiting(c);
}

/* It is not known yet who is the client: the message waits, and says what it is. */
static bool wait(struct ulp_conn *c, struct ulp_message *m)
{
    struct talk *x = ulp_state(c);
    enum perftest_kind kind = kind_of(c, m->side, m->body.len);
    struct waiting *w = &x->waiting[x->n];

    if (kind == PERFTEST_KINDS)
        return false;
    *w = (struct waiting){.side = (uint8_t)m->side,
                          .len = (uint8_t)m->body.len,
                          .packets = m->packets,
                          .frame = m->frame,
                          .start = m->start,
                          .now = m->now};
    memcpy(w->b, m->body.b, m->body.len);
    x->n++;
    say(m, kind, "");
    return true;
}

/* The connection ends: if nothing tells, who sent first counts as the client, and its messages say so. */
static void perftest_over(struct ulp_conn *c)
{
    const struct talk *x = ulp_state(c);
    enum ulp_side client;

    if (!x->n)
        return;
    if (counts_tell(c, (enum ulp_side)x->waiting[x->n - 1].side, &client))
        set_client(c, client);
    else
        take_waiting(c);
}

/* --- Messages --------------------------------------------------------------------------------- */

static bool perftest_message(struct ulp_conn *c, struct ulp_message *m)
{
    enum ulp_side client = ULP_CLIENT;
    const struct talk *x = ulp_state(c);
    bool taken;

    if (!m->again && !ulp_knows_sides(c)) {
        bool told = tells_client(c, m, &client);
        if (!told && x->n == WAITING)
            take_waiting(c);
        if (!told)
            return wait(c, m);
        set_client(c, client);
        m->side = m->side == client ? ULP_CLIENT : ULP_SERVER;
    }
    taken = m->again ? m->command != NULL : m->side == ULP_CLIENT ? begin(c, m) : answer(c, m);
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
    .over = perftest_over,
    .name_text = perftest_name_text,
    .key_text = perftest_key_text,
    .command_text = perftest_text,
    .status_text = perftest_status,
    .values = perftest_values,
};
