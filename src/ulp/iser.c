/* layer 2b (ulp): iSER: iSCSI tasks, their data and responses. */
#include "dissect/ulp/iser.h"

#include "src/ulp/proto.h"
#include "src/ulp/scsi.h"

#include <stdio.h>

/* What a task keeps. */
struct own {
    struct scsi_task scsi; /* of a SCSI command */
    uint32_t itt;
    uint8_t opcode, flags; /* flags: behind the opcode, without the F bit; of task management the function */
    bool status;           /* the response has a SCSI status */
    char name[ULP_OWN - sizeof(struct scsi_task) - 8];
};
ULP_OWN_AS(struct own)

/* Pings of a target have no initiator task tag: their key is the target's tag. */
#define PING (UINT64_C(1) << 32)

/* --- Requests --------------------------------------------------------------------------------- */

/* Whether the message begins a task: those of the initiator, and pings of the target, which the initiator answers. */
static bool is_request(const struct iser *p)
{
    if (p->opcode == ISCSI_NOP_IN)
        return p->itt == ISCSI_NO_TAG && p->ttt != ISCSI_NO_TAG;
    if (p->opcode == ISCSI_NOP_OUT)
        return p->itt != ISCSI_NO_TAG;
    return p->opcode < ISCSI_NOP_IN && p->opcode != ISCSI_DATA_OUT && p->opcode != ISCSI_SNACK;
}

static bool is_answer(const struct iser *p)
{
    if (p->opcode == ISCSI_NOP_OUT)
        return p->itt == ISCSI_NO_TAG && p->ttt != ISCSI_NO_TAG;
    if (p->opcode == ISCSI_NOP_IN)
        return p->itt != ISCSI_NO_TAG;
    return p->opcode >= ISCSI_RESPONSE && p->opcode <= ISCSI_LOGOUT_RESPONSE && p->opcode != ISCSI_DATA_IN;
}

static uint64_t key_of(const struct iser *p)
{
    return p->itt == ISCSI_NO_TAG ? PING | p->ttt : p->itt;
}

/* The memory that a command offers. The base offset of what is written lies behind the data in the message. */
static void offer(struct ulp_conn *c, struct ulp_command *cmd, const struct iser *p, uint32_t inside)
{
    bool read = p->flags & 0x40, write = p->flags & 0x20;
    uint32_t n = min_u32(p->n_data, p->expected);

    if (write) {
        ulp_inline(cmd, ULP_FROM_CLIENT, min_u32(inside, n));
        cmd->requested[ULP_FROM_CLIENT] += n - min_u32(inside, n); /* of the message, and not there */
        if (p->wsv && p->expected > n)
            ulp_offer(c, cmd, ULP_FROM_CLIENT, p->write_stag, p->write_va, p->expected - n);
    }
    if (read && p->rsv)
        ulp_offer(c, cmd, ULP_TO_CLIENT, p->read_stag, p->read_va, write ? p->read : p->expected);
}

/* Of the keys of Login and Text the one that says what is meant: the target, or what is asked for. */
static void keep_name(struct own *o, const struct ulp_body *data)
{
    static const char *const wanted[] = {"TargetName=", "SendTargets=", "SessionType="};
    unsigned best = ARRAY_LEN(wanted);
    struct iscsi_key k;
    uint32_t at = 0;

    while (iscsi_next_key(data, &at, &k))
        for (unsigned i = 0; i < best; i++) {
            size_t n = strlen(wanted[i]);
            if (k.len > n && memcmp(data->b + k.at, wanted[i], n) == 0) {
                snprintf(o->name, sizeof o->name, "%.*s", (int)min_u32(k.len, sizeof o->name), data->b + k.at);
                best = i;
            }
        }
}

static void begin(struct ulp_conn *c, struct ulp_message *m, const struct iser *p)
{
    const struct ulp_body data = iser_data(p, &m->body);
    struct ulp_command *cmd = ulp_begin(c, m, key_of(p));
    struct own *o = cmd ? own_of(cmd) : NULL;

    if (!cmd)
        return;
    o->opcode = p->opcode;
    o->itt = p->itt;
    o->flags = p->flags & 0x7f;
    o->scsi.lun = p->lun;
    if (p->opcode == ISCSI_COMMAND) {
        memcpy(o->scsi.cdb, p->cdb, SCSI_CDB_LEN);
        offer(c, cmd, p, data.len + data.more);
    } else if (p->opcode == ISCSI_LOGIN || p->opcode == ISCSI_TEXT) {
        keep_name(o, &data);
    }
}

/* --- Responses -------------------------------------------------------------------------------- */

static bool is_failure(const struct iser *p)
{
    if (p->opcode == ISCSI_RESPONSE)
        return p->status >> 8 || !scsi_is_good((uint8_t)p->status);
    return p->status != 0;
}

static void keep_response(struct own *o, const struct iser *p, const struct ulp_body *data)
{
    if (p->opcode != ISCSI_RESPONSE)
        return;
    o->status = !(p->status >> 8);
    o->scsi.status = (uint8_t)p->status;
    o->scsi.residual = p->residual;
    if (data->len > 2)
        scsi_sense_get(&o->scsi.sense, data->b + 2, min_u32(data->len - 2, load_be16(data->b)));
}

static void complete(struct ulp_conn *c, struct ulp_message *m, const struct iser *p, uint64_t key)
{
    const struct ulp_body data = iser_data(p, &m->body);
    struct ulp_command *cmd = ulp_find(c, key);

    if (!cmd) {
        snprintf(m->says, sizeof m->says, " response itt 0x%x, its command was not seen", p->itt);
        return;
    }
    keep_response(own_of(cmd), p, &data);
    ulp_complete(c, cmd, m, p->status, is_failure(p));
    m->command = cmd;
}

/* A Reject has the header of what it rejects in its data segment. */
static void take_reject(struct ulp_conn *c, struct ulp_message *m, const struct iser *p)
{
    const struct ulp_body data = iser_data(p, &m->body);

    if (data.len >= 20)
        complete(c, m, p, load_be32(data.b + 16));
}

/* --- Messages that were cut in their BHS ------------------------------------------------------ */

/* Bytes of the BHS up to what is behind them. */
enum { UP_TO_DATA = 8, UP_TO_LUN = 16, UP_TO_TAG = 20, UP_TO_LENGTH = 24, UP_TO_CDB = 32 };

/* Whether its first bytes tell that the message begins a task, or answers one. */
static bool is_told(const struct iser *p, unsigned n)
{
    if (n < UP_TO_DATA && p->opcode < ISCSI_NOP_IN) /* nor how many data it has with it */
        return false;
    return n >= UP_TO_LENGTH || (p->opcode != ISCSI_NOP_IN && p->opcode != ISCSI_NOP_OUT);
}

/* Whether the first `n` bytes of the LUN tell all of it: the other levels of a single-level LUN are not used. */
static bool has_lun(const struct iser *p, unsigned n)
{
    unsigned method = (unsigned)(p->lun >> 62);

    return n >= UP_TO_LUN || (n >= 10 && (method == 1 || p->lun >> 56 == 0));
}

/* The memory of a command whose length was cut. */
static void offer_untold(struct ulp_command *cmd, const struct iser *p)
{
    if (p->flags & 0x20) { /* W */
        ulp_inline(cmd, ULP_FROM_CLIENT, p->n_data);
        cmd->untold[ULP_FROM_CLIENT] = true;
        if (p->wsv)
            ulp_offer_untold(cmd, ULP_FROM_CLIENT, p->write_stag, p->write_va);
    }
    if (p->flags & 0x40) { /* R */
        cmd->untold[ULP_TO_CLIENT] = true;
        if (p->rsv)
            ulp_offer_untold(cmd, ULP_TO_CLIENT, p->read_stag, p->read_va);
    }
}

static bool iser_unasked(struct ulp_conn *c, struct ulp_message *m, const struct ulp_unasked *u)
{
    (void)m;
    return ulp_give_untold(c, u);
}

/* A request of which `n` bytes of the BHS are there. */
static void begin_cut(struct ulp_conn *c, struct ulp_message *m, const struct iser *p, unsigned n)
{
    struct ulp_command *cmd;
    struct own *o;

    if (n >= UP_TO_LENGTH) {
        begin(c, m, p);
    } else {
        cmd = n < UP_TO_TAG ? ulp_begin_nameless(c, m) : ulp_begin(c, m, key_of(p));
        if (cmd && p->opcode == ISCSI_COMMAND)
            offer_untold(cmd, p);
    }
    if (!m->command)
        return;
    o = own_of(m->command);
    o->opcode = p->opcode;
    o->itt = n < UP_TO_TAG ? ISCSI_NO_TAG : p->itt;
    o->flags = p->flags & 0x7f;
    o->scsi.lun = p->lun;
    o->scsi.no_lun = !has_lun(p, n);
    o->scsi.lacks = n > UP_TO_CDB ? (uint8_t)(ISCSI_LEN - n) : SCSI_CDB_LEN;
}

/* Whether `m` may be the response to a command. */
static enum ulp_fit may_answer(const struct ulp_command *cmd, const struct ulp_message *m)
{
    return own_const(cmd)->opcode == ((m->body.b[ISER_LEN] & 0x3f) ^ ISCSI_NOP_IN) ? ULP_FITS : ULP_FITS_NOT;
}

/* Whether the status of a response is among the first `n` bytes of its BHS. */
static bool has_status(const struct iser *p, unsigned n)
{
    return p->opcode != ISCSI_LOGIN_RESPONSE || n >= 38;
}

static void complete_cut(struct ulp_conn *c, struct ulp_message *m, const struct iser *p, unsigned n)
{
    struct ulp_command *cmd;

    if (n >= UP_TO_TAG) {
        complete(c, m, p, key_of(p));
    } else if ((cmd = ulp_find_nameless(c, m, may_answer))) {
        keep_response(own_of(cmd), p, &(struct ulp_body){0});
        ulp_complete(c, cmd, m, p->status, is_failure(p));
        m->command = cmd;
    } else {
        snprintf(m->says, sizeof m->says, " response itt not captured, its command is not known");
    }
    if (!m->command)
        return;
    own_of(m->command)->scsi.no_residual = true;
    m->command->unread = !has_status(p, n);
}

static void take_cut(struct ulp_conn *c, struct ulp_message *m, const struct iser *p)
{
    unsigned n = m->body.len - ISER_LEN;

    if (m->again || p->kind != ISER_CONTROL || !is_told(p, n))
        return;
    if (is_request(p))
        begin_cut(c, m, p, n);
    else if (is_answer(p))
        complete_cut(c, m, p, n);
}

static bool iser_message(struct ulp_conn *c, struct ulp_message *m)
{
    uint8_t padded[ISER_LEN + ISCSI_LEN];
    struct iser p;

    if (m->cut && iser_get_cut(&p, padded, m->body.b, m->body.len, m->body.len + m->body.more)) {
        take_cut(c, m, &p);
        if (m->show)
            iser_cut_layers(m->show, &m->body);
        return true;
    }
    if (!iser_get(&p, m->body.b, m->body.len, !m->hole && !m->cut))
        return false;
    if (!m->again && p.kind == ISER_CONTROL) {
        if (is_request(&p))
            begin(c, m, &p);
        else if (is_answer(&p))
            complete(c, m, &p, key_of(&p));
        else if (p.opcode == ISCSI_REJECT)
            take_reject(c, m, &p);
    }
    if (m->show)
        iser_layers(m->show, &m->body, &p);
    return true;
}

static void iser_begins(const struct ulp_conn *c, enum ulp_side side, const struct ulp_body *m, struct buf *b)
{
    struct iser p;
    const char *name;

    (void)c;
    (void)side;
    if (!iser_get(&p, m->b, m->len, false) || p.kind != ISER_CONTROL)
        return;
    name = iscsi_opcode_str(p.opcode);
    if (p.opcode == ISCSI_COMMAND)
        scsi_name_text(b, p.cdb);
    else if (name)
        buf_puts(b, name);
    buf_printf(b, " itt 0x%x", p.itt);
}

static void iser_setup(struct pkt *show, const struct ulp_setup *s)
{
    if (iser_private_fits(s->body.b, s->body.len))
        iser_private_layers(show, &s->body);
}

/* --- Text and values -------------------------------------------------------------------------- */

/* Which way a command moves data. */
static const char *way_str(uint8_t flags)
{
    static const char *const ways[] = {"no data", "write", "read", "read and write"};

    return ways[flags >> 5 & 3];
}

static void iser_name_text(struct buf *b, const struct ulp_command *c)
{
    const struct own *o = own_const(c);
    const char *name = iscsi_opcode_str(o->opcode);

    if (o->opcode == ISCSI_COMMAND && o->scsi.lacks == SCSI_CDB_LEN)
        buf_printf(b, "%s (%s)", name, way_str(o->flags));
    else if (o->opcode == ISCSI_COMMAND)
        scsi_name_text(b, o->scsi.cdb);
    else if (o->opcode == ISCSI_TASK_MANAGEMENT && iscsi_function_str(o->flags))
        buf_puts(b, iscsi_function_str(o->flags));
    else if (name)
        buf_puts(b, name);
    else
        buf_printf(b, "opcode 0x%02x", o->opcode);
}

static void iser_key_text(struct buf *b, const struct ulp_command *c)
{
    if (c->nameless)
        buf_puts(b, "itt not captured");
    else if (c->key & PING)
        buf_printf(b, "ttt 0x%x", (unsigned)(uint32_t)c->key);
    else
        buf_printf(b, "itt 0x%x", own_const(c)->itt);
}

static void iser_text(struct buf *b, const struct ulp_command *c)
{
    const struct own *o = own_const(c);

    iser_name_text(b, c);
    buf_char(b, ' ');
    iser_key_text(b, c);
    if (o->opcode == ISCSI_COMMAND)
        scsi_task_arguments(b, &o->scsi);
    else if (o->opcode == ISCSI_TASK_MANAGEMENT)
        buf_printf(b, " lun %llu", (unsigned long long)scsi_lun(o->scsi.lun));
    else if (o->name[0])
        buf_printf(b, " %s", o->name);
}

static void iser_status(struct buf *b, const struct ulp_command *c)
{
    const struct own *o = own_const(c);

    if (c->unread)
        buf_puts(b, "answered, the status was cut by the snap length");
    else if (o->status)
        scsi_status_text(b, o->scsi.status, &o->scsi.sense);
    else
        iser_status_text(b, o->opcode, c->status);
}

static void iser_values(const struct ulp_command *c, ulp_take *take, void *user)
{
    const struct own *o = own_const(c);
    const struct ulp_value values[] = {
        {"iscsi_opcode", NULL, o->opcode, true},
        {"itt", NULL, o->itt, o->itt != ISCSI_NO_TAG},
        {"name", o->name, 0, o->name[0] != 0},
        {"status_code", NULL, c->status, c->response != 0 && !c->unread},
    };

    for (unsigned i = 0; i < ARRAY_LEN(values); i++)
        take(user, &values[i]);
    if (o->opcode == ISCSI_COMMAND)
        scsi_task_values(&o->scsi, o->status, take, user);
}

const struct ulp_proto ulp_iser = {
    .name = "iSER",
    .word = "iser",
    .looks = iser_looks,
    .looks_cut = iser_looks_cut,
    .late_commands = true,
    .unasked = iser_unasked,
    .message = iser_message,
    .begins = iser_begins,
    .setup = iser_setup,
    .name_text = iser_name_text,
    .key_text = iser_key_text,
    .command_text = iser_text,
    .status_text = iser_status,
    .values = iser_values,
};
