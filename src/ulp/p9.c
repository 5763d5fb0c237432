/* layer 2b (ulp): 9P over RDMA: requests and responses, one SEND each. */
#include "dissect/file/p9.h"

#include "src/ulp/proto.h"

/* What a request keeps. */
struct own {
    struct p9 request, response;
};
ULP_OWN_AS(struct own)

/* Data in the message, as far as it is there. */
static void count_data(struct ulp_command *cmd, const struct ulp_message *m, const struct p9 *p, enum ulp_dir dir)
{
    uint32_t head = P9_LEN + (dir == ULP_FROM_CLIENT ? 16 : 4), all = m->body.len + m->body.more,
             n = all > head ? all - head : 0;

    cmd->requested[dir] += p->count;
    cmd->moved[dir] += min_u32(n, p->count);
}

static void respond(struct ulp_conn *c, struct ulp_message *m, const struct p9 *p)
{
    struct ulp_command *cmd = ulp_find(c, p->tag);
    bool failed = p->type == P9_RLERROR || p->type == P9_RERROR;

    if (!cmd || (!failed && p->type != (own_of(cmd)->request.type | 1)))
        return;
    own_of(cmd)->response = *p;
    if (p->type == P9_RREAD || p->type == P9_RREADDIR)
        count_data(cmd, m, p, ULP_TO_CLIENT);
    ulp_complete(c, cmd, m, (uint16_t)p->error, failed);
    m->command = cmd;
}

static bool p9_message(struct ulp_conn *c, struct ulp_message *m)
{
    struct ulp_command *cmd;
    struct p9 p;

    if (!p9_get(&p, m->body.b, m->body.len, !m->hole && !m->cut) || (p.type & 1) != (m->side == ULP_SERVER))
        return false;
    if (!m->again && m->side == ULP_SERVER) {
        respond(c, m, &p);
    } else if (!m->again && (cmd = ulp_begin(c, m, p.tag))) {
        own_of(cmd)->request = p;
        if (p.type == P9_TWRITE)
            count_data(cmd, m, &p, ULP_FROM_CLIENT);
    }
    if (m->show)
        p9_layers(m->show, &m->body);
    return true;
}

static void p9_name_text(struct buf *b, const struct ulp_command *c)
{
    buf_puts(b, p9_name_str(own_const(c)->request.type));
}

static void p9_key_text(struct buf *b, const struct ulp_command *c)
{
    buf_printf(b, "tag %u", own_const(c)->request.tag);
}

static void p9_text(struct buf *b, const struct ulp_command *c)
{
    const struct p9 *p = &own_const(c)->request;

    p9_name_text(b, c);
    buf_char(b, ' ');
    p9_key_text(b, c);
    if (p->has_fid)
        buf_printf(b, " fid %u", p->fid);
    if (p->has_count)
        buf_printf(b, " offset %llu count %u", (unsigned long long)p->offset, p->count);
}

static void p9_status(struct buf *b, const struct ulp_command *c)
{
    if (own_const(c)->response.type == P9_RLERROR)
        ulp_error_text(b, own_const(c)->response.error);
    else
        buf_puts(b, c->failed ? "error" : "done");
}

static void p9_values(const struct ulp_command *c, ulp_take *take, void *user)
{
    const struct p9 *p = &own_const(c)->request;
    const struct ulp_value values[] = {
        {"type", NULL, p->type, true},           {"tag", NULL, p->tag, true},
        {"fid", NULL, p->fid, p->has_fid},       {"offset", NULL, p->offset, p->has_count},
        {"count", NULL, p->count, p->has_count}, {"error", NULL, own_const(c)->response.error, c->failed},
    };

    for (unsigned i = 0; i < ARRAY_LEN(values); i++)
        take(user, &values[i]);
}

const struct ulp_proto ulp_p9 = {
    .name = "9P/RDMA",
    .word = "9p",
    .looks = p9_looks,
    .message = p9_message,
    .name_text = p9_name_text,
    .key_text = p9_key_text,
    .command_text = p9_text,
    .status_text = p9_status,
    .values = p9_values,
};
