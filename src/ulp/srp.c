/* layer 2b (ulp): SRP: SCSI commands, their data and responses. */
#include "dissect/ulp/srp.h"
#include "dissect/mad/cm.h"

#include "src/ulp/proto.h"
#include "src/ulp/scsi.h"

#include <stdio.h>

/* What a request keeps. */
struct own {
    struct scsi_task scsi; /* of a SCSI command */
    uint64_t tag;
    int32_t credits;        /* of the response */
    uint8_t type, function; /* function: of task management */
    bool status;            /* the response has a SCSI status */
};
ULP_OWN_AS(struct own)

/* --- Units ------------------------------------------------------------------------------------ */

/* Both ends count their tags for themselves: requests of the target have other keys than those of the initiator. */
static uint64_t key_of(uint64_t tag, bool by_target)
{
    return by_target ? ~tag : tag;
}

/* The memory that a command offers. Of an indirect list of which only a part is in the command, the rest is not
 * followed. */
static void offer(struct ulp_conn *c, struct ulp_command *cmd, const struct ulp_message *m, const struct srp *s)
{
    for (unsigned dir = 0; dir < 2; dir++) {
        enum ulp_dir to = dir ? ULP_TO_CLIENT : ULP_FROM_CLIENT;
        struct srp_memory mem;
        if (s->format[dir] != SRP_NO_DATA && !srp_has_len(s, m->body.len, dir))
            cmd->untold[to] = true;
        else if (s->format[dir] == SRP_IMMEDIATE) /* they end the unit */
            ulp_inline(cmd, to,
                       min_u32(srp_data_len(s, m->body.b, m->body.len, dir), m->body.len + m->body.more - SRP_CMD_LEN));
        for (unsigned i = 0; srp_memory(s, m->body.b, m->body.len, dir, i, &mem); i++)
            if (!ulp_offer(c, cmd, to, mem.rkey, mem.va, mem.len))
                break;
        if (s->format[dir] == SRP_INDIRECT && srp_has_len(s, m->body.len, dir))
            cmd->requested[to] = srp_data_len(s, m->body.b, m->body.len, dir);
    }
}

/* Memory of a command whose descriptors were cut. */
static bool srp_unasked(struct ulp_conn *c, struct ulp_message *m, const struct ulp_unasked *u)
{
    (void)m;
    return ulp_give_untold(c, u);
}

static void begin(struct ulp_conn *c, struct ulp_message *m, const struct srp *s)
{
    struct ulp_command *cmd = ulp_begin(c, m, key_of(s->tag, m->side == ULP_SERVER));
    struct own *o = cmd ? own_of(cmd) : NULL;

    if (!cmd)
        return;
    o->type = s->type;
    o->function = s->function;
    o->tag = s->tag;
    o->scsi.lun = s->lun;
    if (s->type == SRP_CMD) {
        memcpy(o->scsi.cdb, s->cdb, SCSI_CDB_LEN);
        o->scsi.lacks = m->body.len < SRP_CMD_LEN ? (uint8_t)(SRP_CMD_LEN - m->body.len) : 0;
        offer(c, cmd, m, s);
    }
}

/* The code of response data, which those of task management have: 0 done, else it failed. */
static uint16_t response_code(const struct srp *s, const struct ulp_body *body)
{
    return s->n_response >= 4 && body->len >= 40 ? body->b[39] : 0;
}

static void keep_response(struct own *o, const struct srp *s, const struct ulp_body *body)
{
    uint32_t at = 36 + min_u32(s->n_response, body->len - 36);

    o->credits = s->credits;
    o->status = o->type == SRP_CMD;
    o->scsi.status = s->status;
    o->scsi.residual = s->residual[0] ? s->residual[0] : s->residual[1];
    scsi_sense_get(&o->scsi.sense, body->b + at, min_u32(s->n_sense, body->len - at));
}

static void complete(struct ulp_conn *c, struct ulp_message *m, const struct srp *s)
{
    struct ulp_command *cmd = ulp_find(c, key_of(s->tag, m->side == ULP_CLIENT));
    uint16_t code = 0;

    if (!cmd) {
        snprintf(m->says, sizeof m->says, " response tag 0x%llx, its command was not seen", (unsigned long long)s->tag);
        return;
    }
    if (s->type == SRP_RSP) {
        code = response_code(s, &m->body);
        keep_response(own_of(cmd), s, &m->body);
    }
    ulp_complete(c, cmd, m, (uint16_t)(code << 8 | s->status), code || !scsi_is_good(s->status));
    m->command = cmd;
}

static bool srp_message(struct ulp_conn *c, struct ulp_message *m)
{
    uint8_t padded[SRP_CMD_LEN];
    struct srp s;

    if (m->cut && srp_get_cut(&s, padded, m->body.b, m->body.len, m->body.len + m->body.more)) {
        if (!m->again)
            begin(c, m, &s);
        return true;
    }
    if (!srp_get(&s, m->body.b, m->body.len, !m->hole && !m->cut))
        return false;
    if (!m->again) {
        if (s.type == SRP_CMD || s.type == SRP_TSK_MGMT || s.type == SRP_CRED_REQ || s.type == SRP_AER_REQ)
            begin(c, m, &s);
        else if (s.type == SRP_RSP || s.type == SRP_CRED_RSP || s.type == SRP_AER_RSP)
            complete(c, m, &s);
    }
    if (m->show)
        srp_layers(m->show, &m->body, &s);
    return true;
}

static void srp_setup(struct pkt *show, const struct ulp_setup *s)
{
    srp_private_layers(show, &s->body);
    if (s->attr == CM_REJ)
        *s->why = srp_refusal_str(&s->body);
}

/* --- Text and values -------------------------------------------------------------------------- */

static void srp_name_text(struct buf *b, const struct ulp_command *c)
{
    const struct own *o = own_const(c);
    const char *name = srp_function_str(o->function);

    if (o->type == SRP_CMD)
        scsi_name_text(b, o->scsi.cdb);
    else
        buf_puts(b, o->type == SRP_TSK_MGMT && name ? name : srp_type_str(o->type));
}

static void srp_key_text(struct buf *b, const struct ulp_command *c)
{
    buf_printf(b, "tag 0x%llx", (unsigned long long)own_const(c)->tag);
}

static void srp_text(struct buf *b, const struct ulp_command *c)
{
    const struct own *o = own_const(c);

    srp_name_text(b, c);
    buf_char(b, ' ');
    srp_key_text(b, c);
    if (o->type == SRP_CMD)
        scsi_task_arguments(b, &o->scsi);
    else if (o->type == SRP_TSK_MGMT)
        buf_printf(b, " lun %llu", (unsigned long long)scsi_lun(o->scsi.lun));
}

static void srp_status(struct buf *b, const struct ulp_command *c)
{
    const struct own *o = own_const(c);

    if (c->status >> 8)
        buf_printf(b, "response code %u", c->status >> 8);
    else if (o->status)
        scsi_status_text(b, o->scsi.status, &o->scsi.sense);
    else
        buf_puts(b, "answered");
}

static void srp_values(const struct ulp_command *c, ulp_take *take, void *user)
{
    const struct own *o = own_const(c);
    const struct ulp_value values[] = {
        {"srp_type", NULL, o->type, true},
        {"tag", NULL, o->tag, true},
        {"credits", NULL, (uint32_t)o->credits, o->status},
        {"status_code", NULL, c->status, c->response != 0},
    };

    for (unsigned i = 0; i < ARRAY_LEN(values); i++)
        take(user, &values[i]);
    if (o->type == SRP_CMD)
        scsi_task_values(&o->scsi, o->status, take, user);
}

const struct ulp_proto ulp_srp = {
    .name = "SRP",
    .word = "srp",
    .looks = srp_looks,
    .looks_cut = srp_looks_cut,
    .late_commands = true,
    .message = srp_message,
    .unasked = srp_unasked,
    .setup = srp_setup,
    .name_text = srp_name_text,
    .key_text = srp_key_text,
    .command_text = srp_text,
    .status_text = srp_status,
    .values = srp_values,
};
