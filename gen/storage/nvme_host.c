/* layer 3 (storage): the host of NVMe over RDMA: admin queue, controller, I/O queues, reads and writes, shutdown.
 *
 *     Connect(0)  CAP VS  CC.EN  CSTS.RDY  Identify  Set Features   of each I/O queue: CM, Connect(n)
 *     Write ... Write   Read ... Read   Flush   CC.SHN  CSTS.SHST   disconnect
 *
 * or, of a discovery controller, behind Identify: Get Log Page ... Get Log Page  CC.SHN  CSTS.SHST   disconnect
 *
 * One admin command is outstanding at a time. A command ends when its response is here and its SEND is acknowledged;
 * only then its buffers are used again. */
#include "dissect/ulp/layout.h"
#include "dissect/ulp/nvme.h"
#include "gen/storage/discovery.h"
#include "gen/storage/link.h"
#include "gen/storage/nvme.h"
#include "gen/storage/roles.h"

#include <errno.h>
#include <stdlib.h>

#define ADMIN_SLOTS 2
#define INLINE_MAX  16384 /* data in a capsule, at most */
#define POLLS_MAX   10000 /* questions whether the controller is ready */
#define ENTRIES_MAX 1024  /* of the discovery log page */

struct host_cmd {
    struct nvme_cmd cmd;
    struct nvme_cqe cqe;
    struct storage_io io;
    struct loan loan;
    uint32_t capsule; /* bytes of the SEND */
    bool busy, sent, answered;
};
struct host_queue {
    uint16_t qid;
    uint32_t n, most;    /* commands at a time; bytes that one moves */
    uint32_t inline_max; /* bytes that fit in its capsules */
    struct host_cmd *cmd;
};
/* What a step makes of its response. */
enum outcome { NEXT, AGAIN, WAIT };
struct step {
    void (*ask)(struct link *admin, ns_t now);
    enum outcome (*took)(struct link *admin, const struct host_cmd *c);
};
struct host {
    const struct step *steps;
    unsigned step; /* of steps[] */
    unsigned polls;
    struct link *admin, *io[STORAGE_LINKS];
    uint32_t n_io, connected; /* I/O queues wanted; those with a Connect */
    uint16_t cntlid;
    uint32_t inline_max; /* of the controller's I/O queues */
    uint32_t nsid, lba_shift;
    uint32_t entries, taken; /* of the discovery log page, once its header is known */
};

static struct host *host_of(const struct link *l)
{
    return l->s->state;
}

/* --- Queues ----------------------------------------------------------------------------------- */

/* Asks for a connection; its queue gets its memory when it is there. */
static struct link *connect_queue(struct storage *s, uint16_t qid, ns_t now)
{
    struct host *h = s->state;
    uint32_t size = qid ? s->c.queue_size : NVME_ADMIN_QUEUE;
    struct host_queue *q = calloc(1, sizeof *q);
    struct link_want w = {.in = NVME_CQE_LEN, .user = q, .private_len = 32};
    struct link *l;
    int err;

    if (!q)
        return NULL;
    *q = (struct host_queue){.qid = qid, .n = qid ? s->c.depth : 1, .inline_max = qid ? h->inline_max : 0};
    q->most = qid && s->c.size > NVME_PAGE ? s->c.size : NVME_PAGE;
    w.slots = qid ? q->n + 1 : ADMIN_SLOTS;
    w.out = NVME_SQE_LEN + q->inline_max;
    w.posts = 4 * w.slots;
    layout_set(&nvme_rdma_req_hdr, w.private_data, "nvme-rdma.cm.req.qid", qid);
    layout_set(&nvme_rdma_req_hdr, w.private_data, "nvme-rdma.cm.req.hrqsize", size);
    layout_set(&nvme_rdma_req_hdr, w.private_data, "nvme-rdma.cm.req.hsqsize", size - 1);
    layout_set(&nvme_rdma_req_hdr, w.private_data, "nvme-rdma.cm.req.cntlid", h->cntlid);
    l = link_connect(s, &w, now, &err);
    if (!l)
        storage_fail(s, now, "no connection: %s", strerror(-err));
    return l;
}

static bool make_commands(struct link *l)
{
    struct host_queue *q = l->user;
    int r = 0;

    q->cmd = calloc(q->n, sizeof *q->cmd);
    for (uint32_t i = 0; q->cmd && i < q->n && r == 0; i++)
        r = loan_open(l, &q->cmd[i].loan, q->most);
    return q->cmd && r == 0;
}

static void down(struct link *l, ns_t now)
{
    struct host_queue *q = l->user;

    (void)now;
    for (uint32_t i = 0; q && q->cmd && i < q->n; i++)
        loan_close(l, &q->cmd[i].loan);
    if (q)
        free(q->cmd);
    free(q);
    l->user = NULL;
}

/* --- Commands --------------------------------------------------------------------------------- */

/* Write the capsule of a command that moves `len` bytes from (`to_host`: to) the memory of its loan; returns it. */
static uint8_t *compose(struct link *l, unsigned slot, const struct nvme_cmd *c, uint32_t len, bool to_host, ns_t now)
{
    const struct host_queue *q = l->user;
    struct host_cmd *cmd = &q->cmd[slot];
    uint8_t *out = link_out(l, slot);

    cmd->cmd = *c;
    cmd->cmd.cid = (uint16_t)slot;
    cmd->capsule = NVME_SQE_LEN;
    cmd->busy = true;
    cmd->sent = cmd->answered = false;
    if (len && !to_host && len <= q->inline_max) {
        cmd->cmd.sgl = (struct nvme_sgl){.type = NVME_SGL_DATA, .subtype = NVME_SGL_OFFSET, .length = len};
        memcpy(out + NVME_SQE_LEN, cmd->loan.mem, len);
        cmd->capsule += len;
    } else {
        if (len)
            loan_lend(l, &cmd->loan, len, to_host, now);
        cmd->cmd.sgl = (struct nvme_sgl){.type = NVME_SGL_KEYED,
                                         .subtype = len ? NVME_SGL_INVALIDATE : NVME_SGL_ADDRESS,
                                         .address = len ? cmd->loan.iova : 0,
                                         .length = len,
                                         .key = len ? cmd->loan.key : 0};
    }
    nvme_cmd_put(out, &cmd->cmd);
    return out;
}

static void go(struct link *l, unsigned slot, ns_t now)
{
    const struct host_queue *q = l->user;

    link_send(l, slot, q->cmd[slot].capsule, 0, now);
}

/* A Connect of this queue; its data are in the capsule where they fit. */
static void ask_connect(struct link *l, ns_t now)
{
    static const struct nvme_cmd c = {.opc = NVME_FABRICS, .fctype = NVME_FCTYPE_CONNECT};
    const struct storage_config *k = &l->s->c;
    const struct host_queue *q = l->user;
    uint8_t *data = q->cmd[0].loan.mem, *sqe;
    uint32_t size = q->qid ? k->queue_size : NVME_ADMIN_QUEUE, n;
    uint64_t id = k->seed;

    memset(data, 0, nvme_connect_data_hdr.len);
    layout_bytes(&nvme_connect_data_hdr, data, "nvme.fabrics.cmd.connect.data.hostid", &n);
    store_be64(data, id);
    store_be64(data + 8, ~id);
    layout_set(&nvme_connect_data_hdr, data, "nvme.fabrics.cmd.connect.data.cntrlid",
               q->qid ? host_of(l)->cntlid : NVME_DYNAMIC);
    layout_set_text(&nvme_connect_data_hdr, data, "nvme.fabrics.cmd.connect.data.subnqn",
                    k->discover ? DISCOVERY_NQN : k->nqn, 0);
    layout_set_text(&nvme_connect_data_hdr, data, "nvme.fabrics.cmd.connect.data.hostnqn", k->hostnqn, 0);
    sqe = compose(l, 0, &c, nvme_connect_data_hdr.len, false, now);
    layout_set(&nvme_fabrics_cmd_hdr, sqe, "nvme.fabrics.cmd.connect.qid", q->qid);
    layout_set(&nvme_fabrics_cmd_hdr, sqe, "nvme.fabrics.cmd.connect.sqsize", size - 1);
    go(l, 0, now);
}

static void ask_property(struct link *l, bool set, uint32_t offset, uint64_t value, ns_t now)
{
    struct nvme_cmd c = {.opc = NVME_FABRICS, .fctype = set ? NVME_FCTYPE_PROP_SET : NVME_FCTYPE_PROP_GET};
    uint8_t *sqe;

    c.cdw[2] = (uint32_t)value;
    c.cdw[3] = (uint32_t)(value >> 32);
    sqe = compose(l, 0, &c, 0, false, now);
    layout_set(&nvme_fabrics_cmd_hdr, sqe, "nvme.fabrics.cmd.prop_get_set.attrib.size", offset == NVME_PROP_CAP);
    layout_set(&nvme_fabrics_cmd_hdr, sqe, "nvme.fabrics.cmd.prop_get_set.offset", offset);
    go(l, 0, now);
}

static void ask_identify(struct link *l, uint32_t cns, uint32_t nsid, ns_t now)
{
    struct nvme_cmd c = {.opc = NVME_ADMIN_IDENTIFY, .nsid = nsid, .cdw = {cns}};

    compose(l, 0, &c, NVME_PAGE, true, now);
    go(l, 0, now);
}

/* --- Steps on the admin queue ----------------------------------------------------------------- */

/* CC: entries of 2^6 and 2^4 bytes, with these bits. */
static uint64_t configuration(const char *field, uint64_t value)
{
    uint8_t cc[8] = {0};

    layout_set(&nvme_cc_hdr, cc, "nvme.fabrics.prop_get_set.cc.en", 1);
    layout_set(&nvme_cc_hdr, cc, "nvme.fabrics.prop_get_set.cc.iosqes", 6);
    layout_set(&nvme_cc_hdr, cc, "nvme.fabrics.prop_get_set.cc.iocqes", 4);
    layout_set(&nvme_cc_hdr, cc, field, value);
    return load_le32(cc);
}

static void ask_cap(struct link *l, ns_t now)
{
    ask_property(l, false, NVME_PROP_CAP, 0, now);
}
static void ask_version(struct link *l, ns_t now)
{
    ask_property(l, false, NVME_PROP_VS, 0, now);
}
static void ask_enable(struct link *l, ns_t now)
{
    ask_property(l, true, NVME_PROP_CC, configuration("nvme.fabrics.prop_get_set.cc.en", 1), now);
}
static void ask_shutdown(struct link *l, ns_t now)
{
    ask_property(l, true, NVME_PROP_CC, configuration("nvme.fabrics.prop_get_set.cc.shn", 1), now);
}
static void ask_status(struct link *l, ns_t now)
{
    ask_property(l, false, NVME_PROP_CSTS, 0, now);
}
static void ask_controller(struct link *l, ns_t now)
{
    ask_identify(l, NVME_CNS_CTRL, 0, now);
}
static void ask_queues(struct link *l, ns_t now)
{
    uint32_t n = l->s->c.queues - 1;
    struct nvme_cmd c = {.opc = NVME_ADMIN_SET_FEATURES, .cdw = {NVME_FEATURE_QUEUES, n << 16 | n}};

    compose(l, 0, &c, 0, false, now);
    go(l, 0, now);
}
/* The header of the discovery log page, then its entries, as many as fit in a page. */
static void ask_log(struct link *l, ns_t now)
{
    const struct host *h = host_of(l);
    uint32_t left = (h->entries - h->taken) * DISCOVERY_ENTRY;
    uint32_t len = h->entries ? min_u32(left, NVME_PAGE) : DISCOVERY_ENTRY;
    uint64_t from = h->entries ? (h->taken + 1) * (uint64_t)DISCOVERY_ENTRY : 0;
    struct nvme_cmd c = {.opc = NVME_ADMIN_GET_LOG,
                         .cdw = {(len / 4 - 1) << 16 | NVME_LOG_DISCOVERY, 0, (uint32_t)from, (uint32_t)(from >> 32)}};

    compose(l, 0, &c, len, true, now);
    go(l, 0, now);
}
static void ask_list(struct link *l, ns_t now)
{
    ask_identify(l, NVME_CNS_LIST, 0, now);
}
static void ask_namespace(struct link *l, ns_t now)
{
    ask_identify(l, NVME_CNS_NS, host_of(l)->nsid, now);
}
static void ask_flush(struct link *l, ns_t now)
{
    struct link *io = host_of(l)->io[0];
    struct nvme_cmd c = {.opc = NVME_IO_FLUSH, .nsid = host_of(l)->nsid};

    compose(io, 0, &c, 0, false, now);
    go(io, 0, now);
}

static enum outcome took_connect(struct link *l, const struct host_cmd *c)
{
    host_of(l)->cntlid = (uint16_t)c->cqe.result;
    return NEXT;
}
static enum outcome took_value(struct link *l, const struct host_cmd *c)
{
    (void)l;
    (void)c;
    return NEXT;
}
static enum outcome csts_is(struct link *l, const struct host_cmd *c, const char *field, uint64_t wanted)
{
    uint8_t csts[8];

    store_le32(csts, (uint32_t)c->cqe.result);
    if (layout_get(&nvme_csts_hdr, csts, field) == wanted)
        return NEXT;
    return ++host_of(l)->polls < POLLS_MAX ? AGAIN : NEXT;
}
static enum outcome took_ready(struct link *l, const struct host_cmd *c)
{
    return csts_is(l, c, "nvme.fabrics.prop_get_set.csts.rdy", 1);
}
static enum outcome took_shut(struct link *l, const struct host_cmd *c)
{
    return csts_is(l, c, "nvme.fabrics.prop_get_set.csts.shst", 2);
}
static enum outcome took_controller(struct link *l, const struct host_cmd *c)
{
    uint64_t capsule = layout_get(&nvme_id_ctrl_hdr, c->loan.mem, "nvme.cmd.identify.ctrl.nvmeof.ioccsz") * 16;
    bool inside = layout_get(&nvme_id_ctrl_hdr, c->loan.mem, "nvme.cmd.identify.ctrl.sgls") & NVME_SGLS_OFFSET &&
                  layout_get(&nvme_id_ctrl_hdr, c->loan.mem, "nvme.cmd.identify.ctrl.nvmeof.icdoff") == 0;
    uint64_t room = inside && capsule > NVME_SQE_LEN ? capsule - NVME_SQE_LEN : 0;

    host_of(l)->inline_max = room < INLINE_MAX ? (uint32_t)room : INLINE_MAX;
    return NEXT;
}
static enum outcome took_queues(struct link *l, const struct host_cmd *c)
{
    uint32_t granted = (c->cqe.result & 0xffff) + 1;

    host_of(l)->n_io = granted < l->s->c.queues ? granted : l->s->c.queues;
    return NEXT;
}
static enum outcome took_log(struct link *l, const struct host_cmd *c)
{
    struct host *h = host_of(l);
    struct storage *s = l->s;

    if (!h->entries) {
        h->entries = discovery_entries(c->loan.mem, ENTRIES_MAX);
        return h->entries ? AGAIN : NEXT;
    }
    for (uint32_t at = 0; at < c->loan.len && h->taken < h->entries; at += DISCOVERY_ENTRY, h->taken++)
        if (s->found)
            s->found(s->user, c->loan.mem + at);
    return h->taken < h->entries ? AGAIN : NEXT;
}
static enum outcome took_list(struct link *l, const struct host_cmd *c)
{
    host_of(l)->nsid = (uint32_t)layout_get(&nvme_ns_list_hdr, c->loan.mem, "nvme.cmd.identify.nslist.nsid");
    if (!host_of(l)->nsid)
        storage_fail(l->s, l->s->heard, "the controller has no namespace");
    return NEXT;
}
static enum outcome took_namespace(struct link *l, const struct host_cmd *c)
{
    uint64_t blocks = layout_get(&nvme_id_ns_hdr, c->loan.mem, "nvme.cmd.identify.ns.nsze");
    uint64_t shift = layout_get(&nvme_id_ns_hdr, c->loan.mem, "rdma.nvme.lbads");
    struct storage *s = l->s;

    if (shift < 9 || shift > 16 || blocks > UINT64_MAX >> shift || s->c.size % (1u << shift))
        storage_fail(s, s->heard, "%u bytes are no multiple of the namespace's blocks", s->c.size);
    else if (blocks << shift < s->c.size)
        storage_fail(s, s->heard, "the namespace holds less than %u bytes", s->c.size);
    host_of(l)->lba_shift = (uint32_t)shift;
    s->work.room = shift <= 16 ? blocks << shift : 0;
    return NEXT;
}
/* Begin all I/O queues; the next step comes when their work is done. */
static enum outcome begin_queues(struct link *l, const struct host_cmd *c)
{
    struct host *h = host_of(l);

    if (took_namespace(l, c) != NEXT || l->s->failed)
        return WAIT;
    for (uint32_t i = 0; i < h->n_io && !l->s->failed; i++)
        h->io[i] = connect_queue(l->s, (uint16_t)(i + 1), l->s->heard);
    return WAIT;
}
static enum outcome took_end(struct link *l, const struct host_cmd *c)
{
    if (took_shut(l, c) == AGAIN)
        return AGAIN;
    storage_leave(l->s, l->s->heard);
    return WAIT;
}

static const struct step steps[] = {
    {ask_connect, took_connect}, {ask_cap, took_value},      {ask_version, took_value},
    {ask_enable, took_value},    {ask_status, took_ready},   {ask_controller, took_controller},
    {ask_queues, took_queues},   {ask_list, took_list},      {ask_namespace, begin_queues},
    {ask_flush, took_value},     {ask_shutdown, took_value}, {ask_status, took_end},
};
#define STEP_FLUSH 9
static const struct step discovery_steps[] = {
    {ask_connect, took_connect}, {ask_cap, took_value},      {ask_version, took_value},
    {ask_enable, took_value},    {ask_status, took_ready},   {ask_controller, took_controller},
    {ask_log, took_log},         {ask_shutdown, took_value}, {ask_status, took_end},
};

static void step(struct host *h, const struct host_cmd *c, ns_t now)
{
    enum outcome o = h->steps[h->step].took(h->admin, c);

    if (o == WAIT || h->admin->s->leaving)
        return;
    if (o == NEXT) {
        h->step++;
        h->polls = 0;
    }
    h->steps[h->step].ask(h->admin, now);
}

/* --- Reads and writes ------------------------------------------------------------------------- */

static void ask_io(struct link *l, unsigned slot, const struct storage_io *io, ns_t now)
{
    const struct host *h = host_of(l);
    const struct host_queue *q = l->user;
    uint64_t slba = io->offset >> h->lba_shift;
    struct nvme_cmd c = {
        .opc = io->write ? NVME_IO_WRITE : NVME_IO_READ,
        .nsid = h->nsid,
        .cdw = {(uint32_t)slba, (uint32_t)(slba >> 32), (io->len >> h->lba_shift) - 1},
    };

    q->cmd[slot].io = *io;
    if (io->write)
        work_fill(l->s, io, q->cmd[slot].loan.mem);
    compose(l, slot, &c, io->len, !io->write, now);
    go(l, slot, now);
}

/* Give every free command of a queue something to do. */
static void fill_queue(struct link *l, ns_t now)
{
    const struct host_queue *q = l->user;
    struct storage_io io;

    for (unsigned i = 0; i < q->n && !l->s->leaving; i++)
        if (!q->cmd[i].busy && work_next(l->s, &io, now))
            ask_io(l, i, &io, now);
}

static void fill_queues(struct storage *s, ns_t now)
{
    struct host *h = s->state;

    if (h->connected < h->n_io || s->leaving)
        return;
    for (uint32_t i = 0; i < h->n_io; i++)
        fill_queue(h->io[i], now);
    if (work_over(s) && h->step < STEP_FLUSH) {
        h->step = STEP_FLUSH;
        h->steps[h->step].ask(h->admin, now);
    }
}

/* --- Responses -------------------------------------------------------------------------------- */

static void refused(struct link *l, const struct host_cmd *c, ns_t now)
{
    const struct host_queue *q = l->user;
    struct buf b = {0};

    nvme_command_text(&b, &c->cmd, q->qid == 0);
    buf_puts(&b, ": ");
    nvme_status_text(&b, &c->cmd, q->qid == 0, c->cqe.status);
    storage_fail(l->s, now, "%s", buf_str(&b));
    buf_free(&b);
}

/* The command ends if its response is here and its SEND is acknowledged. */
static void end(struct link *l, struct host_cmd *c, ns_t now)
{
    struct host_queue *q = l->user;
    struct host *h = host_of(l);
    bool is_io = q->qid && c->cmd.opc != NVME_FABRICS && c->cmd.opc != NVME_IO_FLUSH, good = c->cqe.status == NVME_OK;

    if (!c->sent || !c->answered)
        return;
    c->busy = false;
    l->s->r.commands += !is_io;
    if (is_io)
        work_done(l->s, &c->io, good, c->loan.mem, now);
    if (!good) {
        l->s->r.failed += !is_io;
        refused(l, c, now);
    } else if (is_io || (q->qid && c->cmd.opc == NVME_FABRICS)) {
        h->connected += !is_io;
        fill_queues(l->s, now);
    } else {
        step(h, c, now);
    }
}

static void message(struct link *l, unsigned slot, const struct wc *wc, ns_t now)
{
    const struct host_queue *q = l->user;
    struct nvme_cqe cqe;
    struct host_cmd *c;

    if (wc->byte_len != NVME_CQE_LEN) {
        link_refuse(l, now, "a response of %u bytes instead of %u", wc->byte_len, NVME_CQE_LEN);
        return;
    }
    nvme_cqe_get(&cqe, link_in(l, slot));
    link_receive(l, slot, now);
    c = cqe.cid < q->n ? &q->cmd[cqe.cid] : NULL;
    if (!c || !c->busy || c->answered) {
        link_refuse(l, now, "a response to command %u, which is not outstanding", cqe.cid);
        return;
    }
    c->cqe = cqe;
    c->answered = true;
    loan_return(l, &c->loan, wc, now);
    end(l, c, now);
}

static void sent(struct link *l, unsigned slot, ns_t now)
{
    const struct host_queue *q = l->user;

    q->cmd[slot].sent = true;
    end(l, &q->cmd[slot], now);
}

static void moved(struct link *l, unsigned slot, ns_t now)
{
    (void)l;
    (void)slot;
    (void)now;
}

static void up(struct link *l, const uint8_t *private_data, uint32_t len, ns_t now)
{
    (void)private_data;
    (void)len;
    if (!make_commands(l))
        storage_fail(l->s, now, "out of memory");
    else
        ask_connect(l, now);
}

static int open(struct storage *s, ns_t now)
{
    struct host *h = s->state = calloc(1, sizeof *h);

    if (!h)
        return -ENOMEM;
    h->steps = s->c.discover ? discovery_steps : steps;
    h->n_io = s->c.queues;
    h->admin = connect_queue(s, 0, now);
    return h->admin ? 0 : -ENOMEM;
}

const struct storage_role nvme_host = {
    .open = open, .up = up, .message = message, .sent = sent, .moved = moved, .down = down};
