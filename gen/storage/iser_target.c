/* layer 3 (storage): a target of iSER: one logical unit of 512-byte blocks, in memory.
 *
 *     WRITE   RDMA READ from the initiator into the unit    response when it is complete
 *     READ    RDMA WRITE from the unit to the initiator     response behind it
 *
 * A slot of the link is one task: its receive is posted again when the response is acknowledged. */
#include "gen/storage/iscsi.h"
#include "gen/storage/link.h"
#include "gen/storage/roles.h"

#include <errno.h>
#include <stdlib.h>

#define TASKS 64 /* outstanding, at most */
#define SLOTS (2 * TASKS)
#define SENSE 18 /* bytes of sense data */

/* Functions of task management. */
enum { ABORT_TASK = 1, ABORT_TASK_SET = 2, CLEAR_TASK_SET = 4, UNIT_RESET = 5, REASSIGN = 8 };
/* What came of one: of a Task Management Response. */
enum { COMPLETE = 0, NO_SUCH_TASK = 1, NO_LUN = 2, NO_REASSIGNMENT = 4, NOT_SUPPORTED = 5 };
/* Why a PDU was rejected: of a Reject. */
enum { SNACK_REJECT = 3, PROTOCOL_ERROR = 4, COMMAND_NOT_SUPPORTED = 5 };

/* Additional sense codes. */
enum { INVALID_OPCODE = 0x20, OUT_OF_RANGE = 0x21, INVALID_FIELD = 0x24, NO_SUCH_UNIT = 0x25 };

struct task {
    uint32_t itt;
    uint8_t cdb[SCSI_CDB_LEN];
    uint64_t lun;
    uint32_t expected;    /* bytes */
    uint32_t moved;       /* of these */
    uint32_t aborts;      /* a task management function: tasks that it waits for */
    uint32_t aborted_by;  /* slot of the function that ends it, plus 1; 0: none does */
    bool wsv, rsv, waits; /* waits: for the READ of its data */
    uint32_t write_stag, read_stag;
    uint64_t write_va, read_va;
};
struct target {
    bool logged_in;
    uint32_t statsn, cmdsn; /* next status; next command expected */
    uint8_t *page;          /* SCSI_BLOCK bytes for each slot */
    uint64_t iova;
    uint32_t key;
    struct task task[SLOTS];
};

static bool request(struct storage *s, const struct rdmacm_event *e, struct link_want *w)
{
    struct target *t = calloc(1, sizeof *t);

    (void)s;
    (void)e;
    w->slots = SLOTS;
    w->in = w->out = ISCSI_HEAD + ISCSI_TEXT_MAX;
    w->posts = 2 * SLOTS;
    w->user = t;
    w->private_len = (uint8_t)iser_private_hdr.len;
    layout_set(&iser_private_hdr, w->private_data, "rdma.iser.cm.zbva_not", 1);
    return t != NULL;
}

static void down(struct link *l, ns_t now)
{
    struct target *t = l->user;

    (void)now;
    if (t && t->key)
        verbs_mr_dereg(l->s->verbs, t->key);
    if (t)
        free(t->page);
    free(t);
    l->user = NULL;
}

static bool make_pages(struct link *l)
{
    struct target *t = l->user;
    size_t bytes = (size_t)SLOTS * SCSI_BLOCK;

    if (t->page)
        return true;
    t->page = calloc(1, bytes);
    return t->page && storage_register(l->s, t->page, bytes, ACCESS_LOCAL_WRITE, &t->iova, &t->key) == 0;
}

/* --- Responses -------------------------------------------------------------------------------- */

static uint8_t *compose(struct link *l, unsigned slot, uint8_t opcode, uint32_t itt)
{
    struct target *t = l->user;
    uint8_t *b = link_out(l, slot);

    iscsi_begin(b, opcode, itt);
    b[ISER_LEN + 1] = 0x80;
    iscsi_set(b, "iscsi.statsn", t->statsn++);
    iscsi_set(b, "iscsi.expcmdsn", t->cmdsn);
    iscsi_set(b, "iscsi.maxcmdsn", t->cmdsn + TASKS - 1);
    return b;
}

/* A SCSI response, with the bytes that were expected, but not moved; with CHECK CONDITION the sense data say Illegal
 * Request and `asc`. */
static void respond(struct link *l, unsigned slot, uint8_t status, uint8_t asc, ns_t now)
{
    struct target *v = l->user;
    const struct task *t = &v->task[slot];
    uint8_t *b = compose(l, slot, ISCSI_RESPONSE, t->itt), *sense = b + ISCSI_HEAD;
    uint32_t key = t->rsv ? t->read_stag : t->wsv ? t->write_stag : 0;

    iscsi_set(b, "iscsi.scsiresponse.status", status);
    iscsi_set(b, "iscsi.scsiresponse.U", t->expected > t->moved);
    iscsi_set(b, "iscsi.scsiresponse.residualcount", t->expected - t->moved);
    if (status == SCSI_CHECK_CONDITION) {
        memset(sense, 0, 2 + SENSE);
        sense[1] = SENSE;
        sense[2] = 0x70;
        sense[4] = 5;
        sense[2 + 7] = SENSE - 8;
        sense[2 + 12] = asc;
        iscsi_set(b, "iscsi.datasegmentlength", 2 + SENSE);
    }
    l->s->r.failed += status != SCSI_GOOD;
    link_send(l, slot, iscsi_len(b), key, now);
}

/* Whether one of the keys is `name` = `value`. */
static bool has_key(const struct ulp_body *text, const char *name, const char *value)
{
    size_t n = strlen(name), m = strlen(value);
    struct iscsi_key k;
    uint32_t at = 0;

    while (iscsi_next_key(text, &at, &k)) {
        const uint8_t *p = text->b + k.at;
        if (k.len == n + 1 + m && memcmp(p, name, n) == 0 && p[n] == '=' && memcmp(p + n + 1, value, m) == 0)
            return true;
    }
    return false;
}

static void login(struct link *l, unsigned slot, const struct iser *m, const uint8_t *in, uint32_t len, ns_t now)
{
    enum { NOT_FOUND = 0x0203 };
    struct ulp_body whole = {in, len, 0}, text = iser_data(m, &whole);
    struct target *t = l->user;
    bool good = has_key(&text, "TargetName", l->s->c.targetname) || has_key(&text, "SessionType", "Discovery");
    uint8_t *b;

    t->cmdsn = (uint32_t)iscsi_value(in, "iscsi.cmdsn");
    t->logged_in = good;
    b = compose(l, slot, ISCSI_LOGIN_RESPONSE, m->itt);
    b[ISER_LEN + 1] = 0;
    memcpy(b + ISER_LEN + 8, in + ISER_LEN + 8, 6); /* ISID */
    iscsi_set(b, "iscsi.login.T", good);
    iscsi_set(b, "iscsi.login.csg", ISCSI_OPERATIONAL);
    iscsi_set(b, "iscsi.login.nsg", good ? ISCSI_FULL_FEATURE : 0);
    iscsi_set(b, "iscsi.tsih", good);
    iscsi_set(b, "iscsi.login.status", good ? 0 : NOT_FOUND);
    if (good) {
        iscsi_add_key(b, "TargetPortalGroupTag", "1");
        iscsi_add_keys(b);
    }
    l->s->r.commands++;
    l->s->r.failed += !good;
    link_send(l, slot, iscsi_len(b), 0, now);
}

/* A discovery session asks which targets there are: this one, at this end's address. */
static void text(struct link *l, unsigned slot, const struct iser *m, ns_t now)
{
    uint8_t *b = compose(l, slot, ISCSI_TEXT_RESPONSE, m->itt);
    const struct storage_config *c = &l->s->c;
    struct buf address = {0};

    buf_puts(&address, gid_is_ipv4(c->gid) ? "" : "[");
    buf_gid(&address, c->gid);
    buf_printf(&address, "%s:%u,1", gid_is_ipv4(c->gid) ? "" : "]", c->port);
    iscsi_set(b, "iscsi.targettransfertag", ISCSI_NO_TAG);
    iscsi_add_key(b, "TargetName", c->targetname);
    iscsi_add_key(b, "TargetAddress", buf_str(&address));
    buf_free(&address);
    link_send(l, slot, iscsi_len(b), 0, now);
}

/* A ping, with its data; what has no tag wants no answer. */
static void ping(struct link *l, unsigned slot, const struct iser *m, const uint8_t *in, uint32_t len, ns_t now)
{
    struct ulp_body whole = {in, len, 0}, data = iser_data(m, &whole);
    uint8_t *b;

    if (m->itt == ISCSI_NO_TAG) {
        link_receive(l, slot, now);
        return;
    }
    b = compose(l, slot, ISCSI_NOP_IN, m->itt);
    iscsi_set(b, "iscsi.targettransfertag", ISCSI_NO_TAG);
    if (data.len <= ISCSI_TEXT_MAX) {
        memcpy(b + ISCSI_HEAD, data.b, data.len);
        iscsi_set(b, "iscsi.datasegmentlength", data.len);
    }
    link_send(l, slot, iscsi_len(b), 0, now);
}

/* --- What is not served ----------------------------------------------------------------------- */

/* Its header goes back, with the reason (RFC 7143, 11.17); the connection goes on. */
static void reject(struct link *l, unsigned slot, const uint8_t *in, uint8_t reason, ns_t now)
{
    uint8_t *b = compose(l, slot, ISCSI_REJECT, ISCSI_NO_TAG);

    iscsi_set(b, "iscsi.reject.reason", reason);
    iscsi_set(b, "iscsi.datasegmentlength", ISCSI_LEN);
    memcpy(b + ISCSI_HEAD, in + ISER_LEN, ISCSI_LEN);
    l->s->r.failed++;
    link_send(l, slot, iscsi_len(b), 0, now);
}

static void manage_respond(struct link *l, unsigned slot, uint8_t response, ns_t now)
{
    struct target *v = l->user;
    uint8_t *b = compose(l, slot, ISCSI_TASK_MANAGEMENT_RESPONSE, v->task[slot].itt);

    iscsi_set(b, "iscsi.taskmanfun.response", response);
    l->s->r.failed += response != COMPLETE;
    link_send(l, slot, iscsi_len(b), 0, now);
}

/* Abort the task with this tag, or all; those that wait for data end when these have come, and have no response.
 * Returns how many were found. */
static unsigned abort_tasks(struct target *v, unsigned slot, bool all, uint32_t itt)
{
    unsigned n = 0;

    for (unsigned i = 0; i < SLOTS; i++)
        if (v->task[i].waits && (all || v->task[i].itt == itt)) {
            n++;
            v->task[slot].aborts += v->task[i].aborted_by == 0;
            v->task[i].aborted_by = v->task[i].aborted_by ? v->task[i].aborted_by : slot + 1;
        }
    return n;
}

/* What comes of a function whose tasks have ended (RFC 7143, 11.6.1): a task that is not known had its response, unless
 * its command never came. */
static uint8_t manage_result(const struct target *v, const struct iser *m, const uint8_t *in, unsigned found)
{
    uint32_t ref = load_be32(in + ISER_LEN + 32); /* RefCmdSN */

    switch (iscsi_value(in, "iscsi.taskmanfun.function")) {
    case ABORT_TASK:
        return found || (int32_t)(ref - v->cmdsn) < 0 ? COMPLETE : NO_SUCH_TASK;
    case ABORT_TASK_SET:
    case CLEAR_TASK_SET:
    case UNIT_RESET:
        return m->lun ? NO_LUN : COMPLETE;
    case REASSIGN:
        return NO_REASSIGNMENT;
    default:
        return NOT_SUPPORTED;
    }
}

static void manage(struct link *l, unsigned slot, const struct iser *m, const uint8_t *in, ns_t now)
{
    struct target *v = l->user;
    uint8_t function = (uint8_t)iscsi_value(in, "iscsi.taskmanfun.function");
    bool all = function == ABORT_TASK_SET || function == CLEAR_TASK_SET || function == UNIT_RESET;
    unsigned found = 0;

    v->task[slot] = (struct task){.itt = m->itt};
    if (!m->lun && (all || function == ABORT_TASK))
        found = abort_tasks(v, slot, all, load_be32(in + ISER_LEN + 20));
    if (!v->task[slot].aborts)
        manage_respond(l, slot, manage_result(v, m, in, found), now);
}

/* The data of an aborted task have come: it ends, and with the last one the function that aborted it. */
static void end_aborted(struct link *l, unsigned slot, ns_t now)
{
    struct target *v = l->user;
    unsigned by = v->task[slot].aborted_by - 1;

    v->task[slot].aborted_by = 0;
    link_receive(l, slot, now);
    if (--v->task[by].aborts == 0)
        manage_respond(l, by, COMPLETE, now);
}

/* --- Commands --------------------------------------------------------------------------------- */

/* Where the data of a command are, or go to: NULL: it has none, or is refused with *asc. */
static uint8_t *place_of(const struct link *l, unsigned slot, struct sge *own, uint8_t *asc)
{
    const struct target *v = l->user;
    const struct task *t = &v->task[slot];
    const struct storage *s = l->s;
    uint64_t blocks = s->c.room / SCSI_BLOCK, lba = load_be32(t->cdb + 2), n = load_be16(t->cdb + 7);
    bool io = t->cdb[0] == SCSI_READ || t->cdb[0] == SCSI_WRITE;

    *asc = 0;
    *own = (struct sge){v->iova + (uint64_t)slot * SCSI_BLOCK, min_u32(t->expected, SCSI_BLOCK), v->key};
    if (t->lun && t->cdb[0] != SCSI_INQUIRY && t->cdb[0] != SCSI_REPORT_LUNS) {
        *asc = NO_SUCH_UNIT;
        return NULL;
    }
    if (!io)
        return v->page + (size_t)slot * SCSI_BLOCK;
    if (lba >= blocks || n > blocks - lba)
        *asc = OUT_OF_RANGE;
    else if (n * SCSI_BLOCK != t->expected || t->expected > STORAGE_SIZE_MAX)
        *asc = INVALID_FIELD;
    *own = (struct sge){s->disk_iova + lba * SCSI_BLOCK, t->expected, s->disk_key};
    return *asc ? NULL : s->disk + lba * SCSI_BLOCK;
}

/* Data of a command that is neither READ nor WRITE: their bytes, or -1: it is not known. */
static int answer(const struct link *l, const struct task *t, uint8_t *p)
{
    memset(p, 0, SCSI_BLOCK);
    switch (t->cdb[0]) {
    case SCSI_TEST_UNIT_READY:
    case SCSI_SYNCHRONIZE_CACHE:
        return 0;
    case SCSI_INQUIRY:
        if (t->cdb[1] & 1)
            return -1;
        p[0] = t->lun ? 0x7f : 0; /* 0x7f: there is no such unit */
        p[2] = 6;                 /* SPC-4 */
        p[3] = 2;
        p[4] = SCSI_INQUIRY_LEN - 5;
        memcpy(p + 8, "rdmagen memory          1   ", 28);
        return SCSI_INQUIRY_LEN;
    case SCSI_READ_CAPACITY:
        store_be32(p, (uint32_t)(l->s->c.room / SCSI_BLOCK - 1));
        store_be32(p + 4, SCSI_BLOCK);
        return SCSI_CAPACITY_LEN;
    case SCSI_SERVICE_ACTION_IN:
        if ((t->cdb[1] & 0x1f) != SCSI_READ_CAPACITY_16)
            return -1;
        store_be64(p, l->s->c.room / SCSI_BLOCK - 1);
        store_be32(p + 8, SCSI_BLOCK);
        return SCSI_CAPACITY_16_LEN;
    case SCSI_REPORT_LUNS: /* unit 0 */
        store_be32(p, 8);
        return SCSI_LUNS_LEN;
    default:
        return -1;
    }
}

/* The data are there: count, WRITE what is read, and respond. */
static void finish(struct link *l, unsigned slot, ns_t now)
{
    struct target *v = l->user;
    struct task *t = &v->task[slot];
    struct storage_result *r = &l->s->r;
    bool read = t->cdb[0] == SCSI_READ, write = t->cdb[0] == SCSI_WRITE;
    struct sge own;
    uint8_t asc, *mem = place_of(l, slot, &own, &asc);
    int n = read || write || !mem ? (int)own.length : answer(l, t, mem);

    r->commands += !read && !write;
    if (n < 0 || asc) {
        respond(l, slot, SCSI_CHECK_CONDITION, asc ? asc : INVALID_OPCODE, now);
        return;
    }
    own.length = min_u32(own.length, (uint32_t)n);
    if (!write && !t->rsv && own.length) { /* there is no place for what it reads */
        respond(l, slot, SCSI_CHECK_CONDITION, INVALID_FIELD, now);
        return;
    }
    t->moved = own.length;
    if (!write && own.length)
        link_move(l, false, slot, &own, t->read_va, t->read_stag, now);
    r->reads += read;
    r->writes += write;
    r->read += read ? own.length : 0;
    r->written += write ? own.length : 0;
    respond(l, slot, SCSI_GOOD, 0, now);
}

static void command(struct link *l, unsigned slot, const struct iser *m, ns_t now)
{
    struct target *v = l->user;
    struct task *t = &v->task[slot];
    struct sge own;
    uint8_t asc, *mem;

    *t = (struct task){.itt = m->itt,
                       .lun = m->lun,
                       .expected = m->expected,
                       .wsv = m->wsv,
                       .rsv = m->rsv,
                       .write_stag = m->write_stag,
                       .read_stag = m->read_stag,
                       .write_va = m->write_va,
                       .read_va = m->read_va};
    memcpy(t->cdb, m->cdb, SCSI_CDB_LEN);
    v->cmdsn++;
    mem = place_of(l, slot, &own, &asc);
    if (t->cdb[0] == SCSI_WRITE && mem && t->wsv && own.length) {
        t->waits = true;
        link_move(l, true, slot, &own, t->write_va, t->write_stag, now);
    } else if (t->cdb[0] == SCSI_WRITE && mem && own.length) {
        respond(l, slot, SCSI_CHECK_CONDITION, INVALID_FIELD, now); /* its data are nowhere */
    } else {
        finish(l, slot, now);
    }
}

/* A PDU other than those of commands, of a session that is logged in. */
static void other(struct link *l, unsigned slot, const struct iser *m, const uint8_t *b, uint32_t len, ns_t now)
{
    struct target *t = l->user;
    bool numbered = m->opcode == ISCSI_NOP_OUT || m->opcode == ISCSI_TASK_MANAGEMENT || m->opcode == ISCSI_TEXT ||
                    m->opcode == ISCSI_LOGOUT;

    t->cmdsn += numbered && !iscsi_value(b, "iscsi.I");
    switch (m->opcode) {
    case ISCSI_LOGOUT:
        link_send(l, slot, iscsi_len(compose(l, slot, ISCSI_LOGOUT_RESPONSE, m->itt)), 0, now);
        break;
    case ISCSI_TEXT:
        text(l, slot, m, now);
        break;
    case ISCSI_NOP_OUT:
        ping(l, slot, m, b, len, now);
        break;
    case ISCSI_TASK_MANAGEMENT:
        manage(l, slot, m, b, now);
        break;
    case ISCSI_LOGIN:
    case ISCSI_DATA_OUT: /* no data were asked for by an R2T, and none are unsolicited */
        reject(l, slot, b, PROTOCOL_ERROR, now);
        break;
    case ISCSI_SNACK:
        reject(l, slot, b, SNACK_REJECT, now);
        break;
    default:
        reject(l, slot, b, COMMAND_NOT_SUPPORTED, now);
    }
}

static void message(struct link *l, unsigned slot, const struct wc *wc, ns_t now)
{
    const uint8_t *b = link_in(l, slot);
    struct target *t = l->user;
    struct iser m;

    if (!iser_get(&m, b, wc->byte_len, true) || m.kind != ISER_CONTROL) {
        link_refuse(l, now, "a message of %u bytes that is none of iSER", wc->byte_len);
        return;
    }
    if (!make_pages(l)) {
        storage_fail(l->s, now, "no memory for the data of commands");
        return;
    }
    if (m.opcode == ISCSI_LOGIN && !t->logged_in) {
        login(l, slot, &m, b, wc->byte_len, now);
        return;
    }
    if (t->logged_in && m.opcode == ISCSI_COMMAND) {
        command(l, slot, &m, now);
        return;
    }
    l->s->r.commands++;
    if (!t->logged_in)
        link_refuse(l, now, "a PDU with opcode 0x%x before the login", m.opcode);
    else
        other(l, slot, &m, b, wc->byte_len, now);
}

static void moved(struct link *l, unsigned slot, ns_t now)
{
    struct target *t = l->user;

    if (!t->task[slot].waits)
        return; /* an RDMA WRITE: the response is behind it */
    t->task[slot].waits = false;
    if (t->task[slot].aborted_by) {
        end_aborted(l, slot, now);
        return;
    }
    finish(l, slot, now);
}

const struct storage_role iser_target = {.request = request, .message = message, .moved = moved, .down = down};
