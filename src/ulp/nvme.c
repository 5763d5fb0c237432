/* layer 2b (ulp): NVMe over RDMA: queues, commands and their completions. */
#include "dissect/ulp/nvme.h"
#include "dissect/mad/cm.h"
#include "src/ulp/proto.h"

#include <stdio.h>

/* A connection is a queue. */
struct queue {
    bool known;  /* `id` is, from private data or from Connect, or a command tells that it is the admin queue */
    bool io;     /* with an id that is not known: a command tells that it is no admin queue */
    uint16_t id; /* 0: the admin queue */
};

/* What a command keeps. */
struct own {
    uint8_t sqe[NVME_SQE_LEN];
    uint64_t result; /* of the completion */
    uint16_t qid;
    bool admin;
    uint8_t lacks; /* bytes at the end of `sqe` that were not captured */
};
ULP_OWN_AS(struct own)

static void get(const struct ulp_command *c, struct nvme_cmd *cmd)
{
    nvme_cmd_get(cmd, own_const(c)->sqe);
    cmd->lacks = own_const(c)->lacks;
}

static bool is_cut(const struct nvme_cmd *cmd)
{
    return cmd->lacks != 0;
}

static void nvme_open(struct ulp_conn *c, const uint8_t *greeting, uint32_t len)
{
    struct queue *q = ulp_state(c);

    q->known = nvme_private_fits(greeting, len);
    if (q->known)
        q->id = (uint16_t)(greeting[2] | greeting[3] << 8);
}

static uint32_t nvme_queue(const struct ulp_conn *c)
{
    const struct queue *q = ulp_state(c);

    return q->known ? q->id : UINT16_MAX;
}

/* What a command says of a queue that neither CM nor Connect names: several opcodes are those of an admin command and
 * of an I/O command. */
enum kind { KIND_OPEN, KIND_ADMIN, KIND_IO };

/* A command of no namespace, or of all: of those with an opcode of both kinds, the admin ones are. */
static bool is_of_no_namespace(const struct nvme_cmd *cmd)
{
    return cmd->nsid == 0 || cmd->nsid == UINT32_MAX;
}

/* Whether a Read could move as many bytes: blocks of 512 bytes or more, a power of two. */
static bool is_of_blocks(const struct nvme_cmd *cmd)
{
    uint32_t blocks = (cmd->cdw[2] & 0xffff) + 1, len = nvme_data_len(cmd), size = len / blocks;

    return len % blocks == 0 && size >= 512 && (size & (size - 1)) == 0;
}

static enum kind kind_of(const struct nvme_cmd *cmd)
{
    switch (cmd->opc) {
    case 0x06: /* Identify */
    case 0x0a: /* Get Features */
    case 0x18: /* Keep Alive */
        return KIND_ADMIN;
    case 0x00: /* Flush, Write and Compare: over fabrics no admin command has their opcodes */
    case 0x01:
    case 0x05:
        return KIND_IO;
    case 0x02: /* Get Log Page or Read */
        return is_of_no_namespace(cmd) || (!is_cut(cmd) && !is_of_blocks(cmd)) ? KIND_ADMIN : KIND_OPEN;
    case 0x09: /* Set Features or Dataset Management, which has 16 bytes of data for each range */
        return is_of_no_namespace(cmd) || (!is_cut(cmd) && nvme_data_len(cmd) < 16 * ((cmd->cdw[0] & 0xff) + 1))
                   ? KIND_ADMIN
                   : KIND_OPEN;
    case 0x08: /* Abort or Write Zeroes */
    case 0x0c: /* Asynchronous Event Request or Verify */
        return is_of_no_namespace(cmd) ? KIND_ADMIN : KIND_OPEN;
    default:
        return KIND_OPEN;
    }
}

static void learn_queue(struct queue *q, const struct nvme_cmd *cmd)
{
    if (cmd->opc == NVME_FABRICS && cmd->fctype == NVME_FCTYPE_CONNECT) {
        if (is_cut(cmd))
            return;
        q->id = (uint16_t)(cmd->cdw[0] >> 16);
        q->known = true;
    } else if (!q->known && (cmd->opc == NVME_FABRICS || (!q->io && kind_of(cmd) == KIND_ADMIN))) {
        q->id = 0; /* properties are those of the admin queue */
        q->known = true;
    } else if (!q->known && kind_of(cmd) == KIND_IO) {
        q->io = true;
    }
}

static bool is_admin(const struct queue *q)
{
    return q->known && q->id == 0;
}

/* --- Messages --------------------------------------------------------------------------------- */

/* The pieces of memory that a list in the capsule names. */
static void offer_list(struct ulp_conn *c, struct ulp_command *cmd, const struct nvme_cmd *n, const struct ulp_body *m,
                       enum ulp_dir dir)
{
    for (unsigned i = 0; i < nvme_list(n, m); i++) {
        struct nvme_sgl s;
        nvme_list_get(&s, n, m, i);
        if (s.type == NVME_SGL_KEYED && !ulp_offer(c, cmd, dir, s.key, s.address, s.length))
            return;
    }
}

/* The memory that a command offers: a keyed descriptor, a list of them, or bytes of its capsule `m`. */
static void offer(struct ulp_conn *c, struct ulp_command *cmd, const struct nvme_cmd *n, const struct ulp_body *m)
{
    enum ulp_dir dir = nvme_is_to_host(n) ? ULP_TO_CLIENT : ULP_FROM_CLIENT;
    uint32_t len = nvme_data_len(n);
    uint64_t capsule = (uint64_t)m->len + m->more;

    if (!len) {
        bool list = n->sgl.type == 2 || n->sgl.type == 3, lacks = is_cut(n) || (m->more && !nvme_list(n, m));
        cmd->untold[dir] = list && lacks;
        if (!is_cut(n))
            offer_list(c, cmd, n, m, dir);
        return;
    }
    if (n->sgl.type == 4) {
        ulp_offer(c, cmd, dir, n->sgl.key, n->sgl.address, len);
        if ((own_of(cmd)->admin || n->opc == NVME_FABRICS) && !is_cut(n))
            ulp_keep(c, cmd, dir, len);
    } else if (n->sgl.type == 0 && n->sgl.subtype == 1) {
        uint64_t behind = capsule - NVME_SQE_LEN, room = n->sgl.address < behind ? behind - n->sgl.address : 0;
        uint32_t inside = room < len ? (uint32_t)room : len;
        ulp_inline(cmd, dir, inside);
        cmd->requested[dir] += len - inside;
    }
}

/* Data in the capsule, which begin at the offset that the descriptor states. */
static void show_inline(const struct ulp_message *m, const struct nvme_cmd *n, bool admin)
{
    struct ulp_body data;

    if (n->sgl.type != 0 || n->sgl.subtype != 1 || n->sgl.address >= m->body.len - NVME_SQE_LEN)
        return;
    data = ulp_part(&m->body, NVME_SQE_LEN + (uint32_t)n->sgl.address, nvme_data_len(n));
    nvme_data_layers(m->show, &data, n, admin);
}

/* A command, of which bytes behind its descriptor may not have been captured. */
static bool get_part(struct nvme_cmd *n, uint8_t *sqe, const struct ulp_body *m)
{
    uint32_t len = min_u32(m->len, NVME_SQE_LEN);

    if (len < NVME_SQE_LEAST || (uint64_t)m->len + m->more < NVME_SQE_LEN || (m->b[1] & 0xc0) == 0xc0)
        return false;
    memcpy(sqe, m->b, len);
    nvme_cmd_get(n, sqe);
    n->lacks = (uint8_t)(NVME_SQE_LEN - len);
    return true;
}

static bool take_command(struct ulp_conn *c, struct ulp_message *m)
{
    struct queue *q = ulp_state(c);
    struct ulp_command *cmd = m->command;
    uint8_t sqe[NVME_SQE_LEN] = {0};
    struct nvme_cmd n;

    if (!get_part(&n, sqe, &m->body))
        return false;
    if (!m->again) {
        learn_queue(q, &n);
        cmd = ulp_begin(c, m, n.cid);
        if (cmd) {
            struct own *o = own_of(cmd);
            memcpy(o->sqe, sqe, NVME_SQE_LEN);
            o->lacks = n.lacks;
            o->qid = q->known ? q->id : UINT16_MAX;
            o->admin = is_admin(q);
            cmd->waits = o->admin && n.opc == NVME_ADMIN_AER;
            offer(c, cmd, &n, &m->body);
        }
    }
    if (m->show && is_cut(&n))
        nvme_queue_layer(m->show);
    else if (m->show) {
        bool admin = cmd ? own_of(cmd)->admin : is_admin(q);
        nvme_queue_layer(m->show);
        nvme_command_layers(m->show, &m->body, admin);
        show_inline(m, &n, admin);
        nvme_list_layers(m->show, &m->body, &n);
    }
    return true;
}

static bool take_completion(struct ulp_conn *c, struct ulp_message *m)
{
    struct ulp_command *cmd = m->command;
    struct nvme_cqe e;
    struct nvme_cmd n;

    if (m->body.len != NVME_CQE_LEN)
        return false;
    nvme_cqe_get(&e, m->body.b);
    if (!m->again) {
        cmd = ulp_find(c, e.cid);
        if (cmd) {
            own_of(cmd)->result = e.result;
            ulp_complete(c, cmd, m, e.status, (e.status & 0x7ff) != 0);
            m->command = cmd;
        }
    }
    if (cmd)
        get(cmd, &n);
    else
        snprintf(m->says, sizeof m->says, " response cid 0x%x, its command was not seen", e.cid);
    if (m->show)
        nvme_queue_layer(m->show);
    if (m->show)
        nvme_response_layers(m->show, &m->body, cmd && !is_cut(&n) ? &n : NULL, cmd && own_of(cmd)->admin);
    return true;
}

static bool nvme_message(struct ulp_conn *c, struct ulp_message *m)
{
    return m->side == ULP_CLIENT ? take_command(c, m) : take_completion(c, m);
}

static void nvme_begins(const struct ulp_conn *c, enum ulp_side side, const struct ulp_body *m, struct buf *b)
{
    struct nvme_cmd n;

    if (side != ULP_CLIENT || m->len < NVME_SQE_LEN)
        return;
    nvme_cmd_get(&n, m->b);
    nvme_command_text(b, &n, is_admin(ulp_state(c)));
}

static void nvme_data(struct ulp_conn *c, const struct ulp_data *d)
{
    struct nvme_cmd n;

    (void)c;
    if (!d->show)
        return;
    nvme_queue_layer(d->show);
    if (!d->all.len)
        return;
    get(d->command, &n);
    nvme_data_layers(d->show, &d->all, &n, own_of(d->command)->admin);
}

static void nvme_setup(struct pkt *show, const struct ulp_setup *s)
{
    nvme_private_layers(show, &s->body, s->attr == CM_REQ ? NVME_REQ : s->attr == CM_REP ? NVME_REP : NVME_REJ);
    if (s->attr == CM_REJ)
        *s->why = nvme_refusal_str(&s->body);
}

/* --- Text and values -------------------------------------------------------------------------- */

static void nvme_name_text(struct buf *b, const struct ulp_command *c)
{
    struct nvme_cmd n;
    const char *name;

    get(c, &n);
    name = nvme_command_str(&n, own_const(c)->admin);
    if (name)
        buf_puts(b, name);
    else
        buf_printf(b, "opcode 0x%x", n.opc);
}

static void nvme_key_text(struct buf *b, const struct ulp_command *c)
{
    buf_printf(b, "cid 0x%x", (unsigned)c->key);
}

static void nvme_text(struct buf *b, const struct ulp_command *c)
{
    struct nvme_cmd n;

    get(c, &n);
    nvme_command_text(b, &n, own_const(c)->admin);
}

static void nvme_status(struct buf *b, const struct ulp_command *c)
{
    struct nvme_cmd n;

    get(c, &n);
    nvme_status_text(b, &n, own_const(c)->admin, c->status);
}

static void nvme_values(const struct ulp_command *c, ulp_take *take, void *user)
{
    const struct own *o = own_const(c);
    const char *name, *subject, *status;
    struct nvme_cmd n;

    get(c, &n);
    name = nvme_command_str(&n, o->admin);
    subject = is_cut(&n) ? NULL : nvme_subject_str(&n, o->admin);
    status = nvme_status_str(&n, o->admin, c->status);
    const struct ulp_value values[] = {
        {"command", name ? name : "", 0, true},
        {"subject", subject ? subject : "", 0, true},
        {"queue", NULL, o->qid, o->qid != UINT16_MAX},
        {"cid", NULL, n.cid, true},
        {"opcode", NULL, n.opc, true},
        {"fctype", NULL, n.fctype, n.opc == NVME_FABRICS},
        {"nsid", NULL, n.nsid, n.opc != NVME_FABRICS},
        {"cdw10", NULL, n.cdw[0], n.lacks <= 20},
        {"cdw11", NULL, n.cdw[1], n.lacks <= 16},
        {"cdw12", NULL, n.cdw[2], n.lacks <= 12},
        {"cdw13", NULL, n.cdw[3], n.lacks <= 8},
        {"cdw14", NULL, n.cdw[4], n.lacks <= 4},
        {"cdw15", NULL, n.cdw[5], !n.lacks},
        {"address", NULL, n.sgl.address, n.sgl.type == 4},
        {"rkey", NULL, n.sgl.key, n.sgl.type == 4},
        {"result", NULL, o->result, c->response != 0},
        {"status_code", NULL, c->status, c->response != 0},
        {"status_name", status ? status : "", 0, c->response != 0},
    };
    for (unsigned i = 0; i < ARRAY_LEN(values); i++)
        take(user, &values[i]);
}

const struct ulp_proto ulp_nvme = {
    .name = "NVMe/RDMA",
    .word = "nvme",
    .size = sizeof(struct queue),
    .looks = nvme_looks,
    .looks_cut = nvme_looks_cut,
    .responds = nvme_responds,
    .open = nvme_open,
    .queue = nvme_queue,
    .late_commands = true,
    .message = nvme_message,
    .begins = nvme_begins,
    .data = nvme_data,
    .setup = nvme_setup,
    .name_text = nvme_name_text,
    .key_text = nvme_key_text,
    .command_text = nvme_text,
    .status_text = nvme_status,
    .values = nvme_values,
};
