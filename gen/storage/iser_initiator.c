/* layer 3 (storage): an initiator of iSER: one session with one connection, logical unit 0.
 *
 *     Login   INQUIRY   TEST UNIT READY   READ CAPACITY   WRITE ... WRITE   READ ... READ   SYNCHRONIZE CACHE   Logout
 *
 * Data are never in a message: the target READs from, or WRITEs to, memory that is registered for this command. A
 * command ends when its response is here and its SEND is acknowledged. */
#include "gen/storage/iscsi.h"
#include "gen/storage/link.h"
#include "gen/storage/roles.h"

#include <errno.h>
#include <stdlib.h>

#define SLOT_BITS 8
#define FIRST_SN  1 /* CmdSN of the login */
#define TRIES     4 /* of TEST UNIT READY: a unit attention ends each */

/* What the initiator does one after the other on slot 0. */
enum step { LOGIN, INQUIRY, READY, CAPACITY, WORK, SYNCHRONIZE, LOGOUT };

struct task {
    struct storage_io io;
    struct loan loan;
    uint32_t itt;
    uint8_t opcode;  /* of the PDU */
    uint16_t status; /* of its response */
    struct scsi_sense sense;
    bool is_io, busy, sent, answered;
};
struct initiator {
    enum step step;
    unsigned tries;
    uint32_t n;                       /* tasks at a time */
    uint32_t next;                    /* number of the next task */
    uint32_t cmdsn, maxcmdsn, statsn; /* next, last that the target takes, next expected */
    uint32_t block;                   /* bytes of a logical block */
    struct task task[STORAGE_DEPTH_MAX];
};

static struct initiator *initiator_of(const struct link *l)
{
    return l->s->state;
}

/* --- Requests --------------------------------------------------------------------------------- */

/* Begin a PDU of a task; returns it. */
static uint8_t *compose(struct link *l, unsigned slot, uint8_t opcode)
{
    struct initiator *n = initiator_of(l);
    struct task *t = &n->task[slot];
    uint8_t *b = link_out(l, slot);

    t->opcode = opcode;
    t->itt = n->next++ << SLOT_BITS | slot;
    t->busy = true;
    t->sent = t->answered = t->is_io = false;
    iscsi_begin(b, opcode, t->itt);
    iscsi_set(b, "iscsi.cmdsn", n->cmdsn);
    iscsi_set(b, "iscsi.expstatsn", n->statsn);
    return b;
}

static void go(struct link *l, unsigned slot, ns_t now)
{
    link_send(l, slot, iscsi_len(link_out(l, slot)), 0, now);
}

static void ask_login(struct link *l, ns_t now)
{
    uint8_t *b = compose(l, 0, ISCSI_LOGIN);

    iscsi_set(b, "iscsi.I", 1);
    iscsi_set(b, "iscsi.login.T", 1);
    iscsi_set(b, "iscsi.login.csg", ISCSI_OPERATIONAL);
    iscsi_set(b, "iscsi.login.nsg", ISCSI_FULL_FEATURE);
    b[ISER_LEN + 8] = 0x80; /* ISID: random */
    store_be32(b + ISER_LEN + 9, (uint32_t)l->s->c.seed);
    iscsi_add_key(b, "InitiatorName", ISCSI_INITIATOR);
    iscsi_add_key(b, "TargetName", l->s->c.targetname);
    iscsi_add_key(b, "SessionType", "Normal");
    iscsi_add_keys(b);
    go(l, 0, now);
}

static void ask_logout(struct link *l, ns_t now)
{
    uint8_t *b = compose(l, 0, ISCSI_LOGOUT);

    iscsi_set(b, "iscsi.I", 1);
    b[ISER_LEN + 1] = 0x80; /* the final PDU; reason 0: close the session */
    go(l, 0, now);
}

/* A SCSI command that moves `len` bytes to this side, or from it. */
static void ask_scsi(struct link *l, unsigned slot, const uint8_t *cdb, uint32_t len, bool read, ns_t now)
{
    struct initiator *n = initiator_of(l);
    struct task *t = &n->task[slot];
    uint8_t *b = compose(l, slot, ISCSI_COMMAND);

    n->cmdsn++;
    iscsi_set(b, "iscsi.scsicommand.F", 1);
    iscsi_set(b, "iscsi.scsicommand.R", read && len);
    iscsi_set(b, "iscsi.scsicommand.W", !read && len);
    iscsi_set(b, "iscsi.scsicommand.attr", 1);
    iscsi_set(b, "iscsi.scsicommand.expecteddatatransferlength", len);
    memcpy(b + ISER_LEN + 32, cdb, SCSI_CDB_LEN);
    if (len) {
        loan_lend(l, &t->loan, len, read, now);
        layout_set(&iser_hdr, b, read ? "iser.flags.rsv" : "iser.flags.wsv", 1);
        layout_set(&iser_hdr, b, read ? "iser.read_stag" : "iser.write_stag", t->loan.key);
        layout_set(&iser_hdr, b, read ? "iser.read_base_offset" : "iser.write_base_offset", t->loan.iova);
    }
    go(l, slot, now);
}

/* READ(10) or WRITE(10). */
static void ask_io(struct link *l, unsigned slot, ns_t now)
{
    struct initiator *n = initiator_of(l);
    struct task *t = &n->task[slot];
    uint8_t cdb[SCSI_CDB_LEN] = {t->io.write ? SCSI_WRITE : SCSI_READ};

    store_be32(cdb + 2, (uint32_t)(t->io.offset / n->block));
    store_be16(cdb + 7, (uint16_t)(t->io.len / n->block));
    if (t->io.write)
        work_fill(l->s, &t->io, t->loan.mem);
    ask_scsi(l, slot, cdb, t->io.len, !t->io.write, now);
    t->is_io = true;
}

/* Give every free task something to do, as far as the target takes commands. */
static void fill(struct link *l, ns_t now)
{
    struct initiator *n = initiator_of(l);

    for (unsigned i = 0; i < n->n && (int32_t)(n->maxcmdsn - n->cmdsn) >= 0 && !l->s->leaving; i++)
        if (!n->task[i].busy && work_next(l->s, &n->task[i].io, now))
            ask_io(l, i, now);
}

static void ask_step(struct link *l, ns_t now)
{
    static const struct {
        uint8_t opcode, room;
        uint32_t len;
    } commands[] = {[INQUIRY] = {SCSI_INQUIRY, SCSI_INQUIRY_LEN, SCSI_INQUIRY_LEN},
                    [READY] = {SCSI_TEST_UNIT_READY, 0, 0},
                    [CAPACITY] = {SCSI_READ_CAPACITY, 0, SCSI_CAPACITY_LEN},
                    [SYNCHRONIZE] = {SCSI_SYNCHRONIZE_CACHE, 0, 0}};
    struct initiator *n = initiator_of(l);
    uint8_t cdb[SCSI_CDB_LEN] = {0};

    if (n->step == LOGIN) {
        ask_login(l, now);
    } else if (n->step == LOGOUT) {
        ask_logout(l, now);
    } else if (n->step == WORK) {
        fill(l, now);
    } else {
        cdb[0] = commands[n->step].opcode;
        cdb[4] = commands[n->step].room;
        ask_scsi(l, 0, cdb, commands[n->step].len, true, now);
    }
}

/* --- Responses -------------------------------------------------------------------------------- */

static void refused(struct link *l, const struct task *t, ns_t now)
{
    struct buf b = {0};

    buf_printf(&b, "%s: ", iscsi_opcode_str(t->opcode));
    if (t->opcode == ISCSI_COMMAND && !(t->status >> 8))
        scsi_status_text(&b, (uint8_t)t->status, &t->sense);
    else
        iser_status_text(&b, t->opcode, t->status);
    storage_fail(l->s, now, "%s", buf_str(&b));
    buf_free(&b);
}

static void took_capacity(struct link *l, const uint8_t *mem, ns_t now)
{
    struct initiator *n = initiator_of(l);
    uint32_t last = load_be32(mem), block = load_be32(mem + 4);
    struct storage *s = l->s;

    n->block = block;
    s->work.room = ((uint64_t)last + 1) * block;
    if (block < SCSI_BLOCK || s->c.size % block || s->c.size / block > UINT16_MAX)
        storage_fail(s, now, "%u bytes are no multiple of the logical unit's blocks", s->c.size);
    else if (s->work.room < s->c.size)
        storage_fail(s, now, "the logical unit holds less than %u bytes", s->c.size);
}

/* A step is done: what comes next. */
static void done(struct link *l, const struct task *t, ns_t now)
{
    struct initiator *n = initiator_of(l);
    bool again = n->step == READY && t->status == SCSI_CHECK_CONDITION && ++n->tries < TRIES;

    l->s->r.commands++;
    if (t->status && !again) {
        l->s->r.failed++;
        refused(l, t, now);
        return;
    }
    if (n->step == LOGOUT) {
        storage_leave(l->s, now);
        return;
    }
    if (n->step == CAPACITY)
        took_capacity(l, t->loan.mem, now);
    n->step += !again;
    if (!l->s->leaving)
        ask_step(l, now);
}

static void end(struct link *l, struct task *t, ns_t now)
{
    struct initiator *n = initiator_of(l);

    if (!t->sent || !t->answered)
        return;
    t->busy = false;
    if (!t->is_io) {
        done(l, t, now);
        return;
    }
    work_done(l->s, &t->io, t->status == SCSI_GOOD, t->loan.mem, now);
    if (t->status != SCSI_GOOD)
        refused(l, t, now);
    fill(l, now);
    if (work_over(l->s) && n->step == WORK && !l->s->leaving) {
        n->step = SYNCHRONIZE;
        ask_step(l, now);
    }
}

static void message(struct link *l, unsigned slot, const struct wc *wc, ns_t now)
{
    struct initiator *n = initiator_of(l);
    const uint8_t *b = link_in(l, slot);
    struct task *t;
    struct iser m;

    if (!iser_get(&m, b, wc->byte_len, true) || m.kind != ISER_CONTROL || m.opcode < ISCSI_NOP_IN) {
        link_refuse(l, now, "a message that is no response, of %u bytes", wc->byte_len);
        return;
    }
    n->maxcmdsn = (uint32_t)iscsi_value(b, "iscsi.maxcmdsn");
    if (m.opcode == ISCSI_NOP_IN) {
        link_receive(l, slot, now);
        return;
    }
    n->statsn = (uint32_t)iscsi_value(b, "iscsi.statsn") + 1;
    t = &n->task[(m.itt & ((1u << SLOT_BITS) - 1)) % STORAGE_DEPTH_MAX];
    if (!t->busy || t->answered || t->itt != m.itt || m.opcode != (t->opcode | 0x20)) {
        link_refuse(l, now, "%s of task 0x%x, which is not outstanding",
                    iscsi_opcode_str(m.opcode) ? iscsi_opcode_str(m.opcode) : "an unknown PDU", m.itt);
        return;
    }
    t->status = m.status;
    t->sense = (struct scsi_sense){0};
    if (m.opcode == ISCSI_RESPONSE && m.n_data > 2) /* behind two bytes of length */
        scsi_sense_get(&t->sense, b + m.data + 2, m.n_data - 2);
    t->answered = true;
    link_receive(l, slot, now);
    loan_return(l, &t->loan, wc, now);
    end(l, t, now);
}

static void sent(struct link *l, unsigned slot, ns_t now)
{
    struct initiator *n = initiator_of(l);

    n->task[slot].sent = true;
    end(l, &n->task[slot], now);
}

static void moved(struct link *l, unsigned slot, ns_t now)
{
    (void)l;
    (void)slot;
    (void)now;
}

static void up(struct link *l, const uint8_t *private_data, uint32_t len, ns_t now)
{
    struct initiator *n = initiator_of(l);
    uint32_t bytes = l->s->c.size > SCSI_BLOCK ? l->s->c.size : SCSI_BLOCK;
    int r = 0;

    (void)private_data;
    (void)len;
    for (unsigned i = 0; i < n->n && r == 0; i++)
        r = loan_open(l, &n->task[i].loan, bytes);
    if (r < 0)
        storage_fail(l->s, now, "%s", strerror(-r));
    else
        ask_step(l, now);
}

static void down(struct link *l, ns_t now)
{
    struct initiator *n = initiator_of(l);

    (void)now;
    for (unsigned i = 0; i < n->n; i++)
        loan_close(l, &n->task[i].loan);
}

static int open(struct storage *s, ns_t now)
{
    struct initiator *n = s->state = calloc(1, sizeof *n);
    struct link_want w = {.in = ISCSI_HEAD + ISCSI_TEXT_MAX, .out = ISCSI_HEAD + ISCSI_TEXT_MAX};
    int err;

    if (!n)
        return -ENOMEM;
    n->n = s->c.depth;
    n->cmdsn = FIRST_SN;
    w.slots = n->n + 1;
    w.posts = 4 * w.slots;
    w.private_len = (uint8_t)iser_private_hdr.len;
    layout_set(&iser_private_hdr, w.private_data, "rdma.iser.cm.zbva_not", 1);
    return link_connect(s, &w, now, &err) ? 0 : err;
}

const struct storage_role iser_initiator = {
    .open = open, .up = up, .message = message, .sent = sent, .moved = moved, .down = down};
