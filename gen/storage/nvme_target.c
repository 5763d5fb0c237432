/* layer 3 (storage): the target of NVMe over RDMA: controllers with one namespace of 512-byte blocks, in memory.
 *
 *     write, keyed          RDMA READ from the host into the namespace      response when it is complete
 *     write, in the capsule                                                 response
 *     read                  RDMA WRITE from the namespace to the host       response behind it
 *
 * A slot of the link is one command: its receive is posted again when the response is acknowledged. There are twice as
 * many as a queue has entries, so that receives do not run out meanwhile. */
#include "dissect/ulp/layout.h"
#include "dissect/ulp/nvme.h"
#include "gen/storage/discovery.h"
#include "gen/storage/link.h"
#include "gen/storage/nvme.h"
#include "gen/storage/roles.h"

#include <errno.h>
#include <stdlib.h>

#define CONTROLLERS 8
#define QUEUES_MAX  16  /* I/O queues of a controller */
#define QUEUE_MAX   128 /* entries of a queue */
#define LBA_SHIFT   9
#define MDTS        8    /* 2^8 pages: 1 MiB, STORAGE_SIZE_MAX */
#define INLINE_MAX  8192 /* data in a capsule */
#define VERSION     0x00010300

struct controller {
    bool used, enabled, shut;
    bool discovery;              /* it serves the discovery log page, and no namespace */
    unsigned queues;             /* links */
    uint32_t events, keep_alive; /* features */
};
struct target_cmd {
    struct nvme_cmd cmd;
    bool waits; /* for the READ of its data */
};
struct target_queue {
    struct controller *ctrl; /* NULL: no Connect yet */
    uint16_t qid;
    uint16_t size, head; /* entries, SQ head */
    uint8_t *page;       /* NVME_PAGE bytes for each slot */
    uint64_t iova;
    uint32_t key;
    struct target_cmd cmd[2 * QUEUE_MAX];
};
struct target {
    struct controller ctrl[CONTROLLERS];
};

/* --- Connections ------------------------------------------------------------------------------ */

static bool reject(struct link_want *w, unsigned status)
{
    layout_set(&nvme_rdma_rej_hdr, w->private_data, "nvme-rdma.cm.rej.status", status);
    w->private_len = 4;
    return false;
}

static bool request(struct storage *s, const struct rdmacm_event *e, struct link_want *w)
{
    enum { INVALID_LEN = 1, INVALID_SIZE = 4, NO_RESOURCES = 6 };
    const uint8_t *p = e->private_data;
    uint32_t size;
    struct target_queue *q;

    (void)s;
    if (e->private_len < nvme_rdma_req_hdr.len || !nvme_private_fits(p, e->private_len))
        return reject(w, INVALID_LEN);
    size = (uint32_t)layout_get(&nvme_rdma_req_hdr, p, "nvme-rdma.cm.req.hsqsize") + 1;
    if (size > QUEUE_MAX)
        return reject(w, INVALID_SIZE);
    q = calloc(1, sizeof *q);
    if (!q)
        return reject(w, NO_RESOURCES);
    q->qid = (uint16_t)layout_get(&nvme_rdma_req_hdr, p, "nvme-rdma.cm.req.qid");
    q->size = (uint16_t)size;
    w->slots = 2 * size;
    w->in = NVME_SQE_LEN + INLINE_MAX;
    w->out = NVME_CQE_LEN;
    w->posts = 2 * w->slots;
    w->user = q;
    w->private_len = 32;
    layout_set(&nvme_rdma_rep_hdr, w->private_data, "nvme-rdma.cm.rsp.crqsize", size);
    return true;
}

/* Its memory is made with the first command: until then nothing is known of the host. */
static bool make_pages(struct link *l)
{
    struct target_queue *q = l->user;
    size_t bytes = (size_t)l->want.slots * NVME_PAGE;

    if (q->page)
        return true;
    q->page = calloc(1, bytes);
    return q->page && storage_register(l->s, q->page, bytes, ACCESS_LOCAL_WRITE, &q->iova, &q->key) == 0;
}

static void down(struct link *l, ns_t now)
{
    struct target_queue *q = l->user;

    if (!q)
        return;
    if (q->ctrl && --q->ctrl->queues == 0)
        q->ctrl->used = false;
    for (unsigned i = 0; q->ctrl && q->qid == 0 && i < l->s->n_links; i++) { /* its I/O queues go with it */
        struct link *io = l->s->link[i];
        const struct target_queue *other = io->user;
        if (io != l && other && other->ctrl == q->ctrl && !io->closing && !io->gone)
            link_leave(io, now);
    }
    if (q->key)
        verbs_mr_dereg(l->s->verbs, q->key);
    free(q->page);
    free(q);
    l->user = NULL;
}

/* --- Commands --------------------------------------------------------------------------------- */

/* Where the data of a command are, or go to. */
struct place {
    uint8_t *mem;
    struct sge own;
};

static struct place page_of(const struct link *l, unsigned slot, uint32_t len)
{
    const struct target_queue *q = l->user;
    size_t at = (size_t)slot * NVME_PAGE;

    return (struct place){q->page + at, {q->iova + at, len < NVME_PAGE ? len : NVME_PAGE, q->key}};
}

/* The status of a read or write of blocks, and where they are. */
static uint16_t place_of_blocks(const struct link *l, const struct nvme_cmd *c, struct place *p)
{
    const struct storage *s = l->s;
    uint64_t slba = (uint64_t)c->cdw[1] << 32 | c->cdw[0], n = (uint64_t)(c->cdw[2] & 0xffff) + 1;
    uint64_t blocks = s->c.room >> LBA_SHIFT;

    if (c->nsid != 1)
        return NVME_INVALID_NAMESPACE | NVME_DNR;
    if (slba >= blocks || n > blocks - slba)
        return NVME_LBA_RANGE | NVME_DNR;
    if (nvme_data_len(c) != n << LBA_SHIFT || nvme_data_len(c) > STORAGE_SIZE_MAX)
        return NVME_SGL_LENGTH | NVME_DNR;
    *p = (struct place){s->disk + (slba << LBA_SHIFT),
                        {s->disk_iova + (slba << LBA_SHIFT), (uint32_t)(n << LBA_SHIFT), s->disk_key}};
    return NVME_OK;
}

/* The status with which a command begins, and where its data are. */
static uint16_t place_of(const struct link *l, unsigned slot, const struct nvme_cmd *c, struct place *p)
{
    const struct target_queue *q = l->user;
    bool connect = c->opc == NVME_FABRICS && c->fctype == NVME_FCTYPE_CONNECT;

    *p = page_of(l, slot, nvme_data_len(c));
    if (!q->ctrl != connect)
        return NVME_SEQUENCE_ERROR | NVME_DNR;
    if (connect && nvme_data_len(c) != nvme_connect_data_hdr.len)
        return NVME_SGL_LENGTH | NVME_DNR;
    if (c->opc == NVME_FABRICS)
        return NVME_OK;
    if (q->qid && (c->opc == NVME_IO_READ || c->opc == NVME_IO_WRITE))
        return place_of_blocks(l, c, p);
    return nvme_data_len(c) > NVME_PAGE ? NVME_SGL_LENGTH | NVME_DNR : NVME_OK;
}

static struct controller *controller_of(struct target *t, uint16_t id)
{
    return id >= 1 && id <= CONTROLLERS && t->ctrl[id - 1].used ? &t->ctrl[id - 1] : NULL;
}

static struct controller *new_controller(struct target *t, bool discovery)
{
    for (unsigned i = 0; i < CONTROLLERS; i++)
        if (!t->ctrl[i].used) {
            t->ctrl[i] = (struct controller){.used = true, .discovery = discovery};
            return &t->ctrl[i];
        }
    return NULL;
}

static uint16_t do_connect(struct link *l, const struct nvme_cmd *c, const uint8_t *data, uint64_t *result)
{
    struct target_queue *q = l->user;
    struct target *t = l->s->state;
    uint32_t n;
    const uint8_t *nqn = layout_bytes(&nvme_connect_data_hdr, data, "nvme.fabrics.cmd.connect.data.subnqn", &n);
    uint16_t id = (uint16_t)layout_get(&nvme_connect_data_hdr, data, "nvme.fabrics.cmd.connect.data.cntrlid");
    uint16_t size = (uint16_t)(c->cdw[1] & 0xffff);

    bool discovery = strncmp((const char *)nqn, DISCOVERY_NQN, n) == 0;

    if (!discovery && strncmp((const char *)nqn, l->s->c.nqn, n) != 0)
        return NVME_CONNECT_INVALID | NVME_DNR;
    if (c->cdw[0] >> 16 != q->qid || size == 0 || size >= QUEUE_MAX || (discovery && q->qid))
        return NVME_CONNECT_INVALID | NVME_DNR;
    q->ctrl = q->qid ? controller_of(t, id) : new_controller(t, discovery);
    if (!q->ctrl || (q->qid && (!q->ctrl->enabled || q->ctrl->discovery))) {
        q->ctrl = NULL;
        return NVME_CONNECT_INVALID | NVME_DNR;
    }
    q->size = (uint16_t)(size + 1);
    q->ctrl->queues++;
    *result = (uint64_t)(q->ctrl - t->ctrl) + 1;
    return NVME_OK;
}

static uint64_t capabilities(void)
{
    uint8_t cap[8] = {0};

    layout_set(&nvme_cap_hdr, cap, "nvme.fabrics.prop_get.ccap.mqes", QUEUE_MAX - 1);
    layout_set(&nvme_cap_hdr, cap, "nvme.fabrics.prop_get.ccap.cqr", 1);
    layout_set(&nvme_cap_hdr, cap, "nvme.fabrics.prop_get.ccap.to", 15);
    layout_set(&nvme_cap_hdr, cap, "nvme.fabrics.prop_get.ccap.css", 1);
    return load_le64(cap);
}

static uint64_t status_of(const struct controller *ctrl)
{
    uint8_t csts[8] = {0};

    layout_set(&nvme_csts_hdr, csts, "nvme.fabrics.prop_get_set.csts.rdy", ctrl->enabled);
    layout_set(&nvme_csts_hdr, csts, "nvme.fabrics.prop_get_set.csts.shst", ctrl->shut ? 2 : 0);
    return load_le64(csts);
}

static uint16_t do_property(struct controller *ctrl, const struct nvme_cmd *c, uint64_t *result)
{
    uint8_t cc[8];

    store_le32(cc, c->cdw[2]);
    if (c->fctype == NVME_FCTYPE_PROP_SET && c->cdw[1] == NVME_PROP_CC) {
        ctrl->enabled = layout_get(&nvme_cc_hdr, cc, "nvme.fabrics.prop_get_set.cc.en");
        ctrl->shut = layout_get(&nvme_cc_hdr, cc, "nvme.fabrics.prop_get_set.cc.shn") != 0;
        return NVME_OK;
    }
    if (c->fctype == NVME_FCTYPE_PROP_SET)
        return NVME_INVALID_FIELD | NVME_DNR;
    switch (c->cdw[1]) {
    case NVME_PROP_CAP:
        *result = capabilities();
        return NVME_OK;
    case NVME_PROP_VS:
        *result = VERSION;
        return NVME_OK;
    case NVME_PROP_CSTS:
        *result = status_of(ctrl);
        return NVME_OK;
    case NVME_PROP_CC:
        *result = ctrl->enabled;
        return NVME_OK;
    default:
        return NVME_INVALID_FIELD | NVME_DNR;
    }
}

static void identify_controller(const struct link *l, uint8_t *p)
{
    static const struct {
        const char *name;
        uint64_t value;
    } values[] = {
        {"nvme.cmd.identify.ctrl.mdts", MDTS},
        {"nvme.cmd.identify.ctrl.ver", VERSION},
        {"nvme.cmd.identify.ctrl.cntrltype", 1},
        {"nvme.cmd.identify.ctrl.kas", 10},
        {"nvme.cmd.identify.ctrl.sqes", 0x66},
        {"nvme.cmd.identify.ctrl.cqes", 0x44},
        {"nvme.cmd.identify.ctrl.maxcmd", QUEUE_MAX},
        {"nvme.cmd.identify.ctrl.nn", 1},
        {"nvme.cmd.identify.ctrl.vwc", 1},
        {"nvme.cmd.identify.ctrl.sgls", NVME_SGLS_KEYED | NVME_SGLS_OFFSET},
        {"nvme.cmd.identify.ctrl.nvmeof.ioccsz", (NVME_SQE_LEN + INLINE_MAX) / 16},
        {"nvme.cmd.identify.ctrl.nvmeof.iorcsz", NVME_CQE_LEN / 16},
        {"nvme.cmd.identify.ctrl.nvmeof.msdbd", 1},
    };
    const struct target_queue *q = l->user;
    const struct target *t = l->s->state;

    for (unsigned i = 0; i < ARRAY_LEN(values); i++)
        layout_set(&nvme_id_ctrl_hdr, p, values[i].name, values[i].value);
    layout_set(&nvme_id_ctrl_hdr, p, "nvme.cmd.identify.ctrl.cntlid", (uint64_t)(q->ctrl - t->ctrl) + 1);
    layout_set_text(&nvme_id_ctrl_hdr, p, "nvme.cmd.identify.ctrl.sn", "rdmagen", ' ');
    layout_set_text(&nvme_id_ctrl_hdr, p, "nvme.cmd.identify.ctrl.mn", "rdmagen", ' ');
    layout_set_text(&nvme_id_ctrl_hdr, p, "nvme.cmd.identify.ctrl.subnqn",
                    q->ctrl->discovery ? DISCOVERY_NQN : l->s->c.nqn, 0);
    if (q->ctrl->discovery) {
        layout_set(&nvme_id_ctrl_hdr, p, "nvme.cmd.identify.ctrl.cntrltype", 2);
        layout_set(&nvme_id_ctrl_hdr, p, "nvme.cmd.identify.ctrl.nn", 0);
    }
}

static uint16_t do_identify(const struct link *l, const struct nvme_cmd *c, uint8_t *p)
{
    const struct target_queue *q = l->user;
    uint64_t blocks = l->s->c.room >> LBA_SHIFT;

    memset(p, 0, NVME_PAGE);
    if (q->ctrl->discovery && (c->cdw[0] & 0xff) != NVME_CNS_CTRL)
        return NVME_INVALID_FIELD | NVME_DNR;
    switch (c->cdw[0] & 0xff) {
    case NVME_CNS_CTRL:
        identify_controller(l, p);
        return NVME_OK;
    case NVME_CNS_LIST:
        layout_set(&nvme_ns_list_hdr, p, "nvme.cmd.identify.nslist.nsid", c->nsid < 1);
        return NVME_OK;
    case NVME_CNS_NS:
        layout_set(&nvme_id_ns_hdr, p, "nvme.cmd.identify.ns.nsze", blocks);
        layout_set(&nvme_id_ns_hdr, p, "nvme.cmd.identify.ns.ncap", blocks);
        layout_set(&nvme_id_ns_hdr, p, "nvme.cmd.identify.ns.nuse", blocks);
        layout_set(&nvme_id_ns_hdr, p, "rdma.nvme.lbads", LBA_SHIFT);
        return c->nsid == 1 ? NVME_OK : NVME_INVALID_NAMESPACE | NVME_DNR;
    case NVME_CNS_DESCRIPTORS: /* NIDT 2 (NGUID), 16 bytes */
        p[0] = 2;
        p[1] = 16;
        memcpy(p + 4, "rdmagen namespac", 16);
        return c->nsid == 1 ? NVME_OK : NVME_INVALID_NAMESPACE | NVME_DNR;
    default:
        return NVME_INVALID_FIELD | NVME_DNR;
    }
}

static uint16_t do_feature(struct controller *ctrl, const struct nvme_cmd *c, uint64_t *result)
{
    bool set = c->opc == NVME_ADMIN_SET_FEATURES;
    uint32_t wanted = c->cdw[1] & 0xffff, *kept;

    switch (c->cdw[0] & 0xff) {
    case NVME_FEATURE_QUEUES:
        wanted = set && wanted < QUEUES_MAX ? wanted : QUEUES_MAX - 1;
        *result = wanted << 16 | wanted;
        return NVME_OK;
    case NVME_FEATURE_EVENTS:
        kept = &ctrl->events;
        break;
    case NVME_FEATURE_KEEP_ALIVE:
        kept = &ctrl->keep_alive;
        break;
    default:
        return NVME_INVALID_FIELD | NVME_DNR;
    }
    *kept = set ? c->cdw[1] : *kept;
    *result = *kept;
    return NVME_OK;
}

/* Get Log Page: of a discovery controller its page, from any double word on. */
static uint16_t do_log(const struct link *l, const struct nvme_cmd *c, uint8_t *page)
{
    const struct target_queue *q = l->user;
    uint64_t dwords = (uint64_t)(c->cdw[1] & 0xffff) << 16 | c->cdw[0] >> 16;

    if (!q->ctrl->discovery || (c->cdw[0] & 0xff) != NVME_LOG_DISCOVERY)
        return NVME_INVALID_LOG_PAGE | NVME_DNR;
    if ((dwords + 1) * 4 != nvme_data_len(c))
        return NVME_SGL_LENGTH | NVME_DNR;
    discovery_page(l->s, (uint64_t)c->cdw[3] << 32 | c->cdw[2], nvme_data_len(c), page);
    return NVME_OK;
}

static uint16_t do_admin(struct link *l, const struct nvme_cmd *c, uint8_t *page, uint64_t *result)
{
    struct target_queue *q = l->user;

    switch (c->opc) {
    case NVME_ADMIN_IDENTIFY:
        return do_identify(l, c, page);
    case NVME_ADMIN_SET_FEATURES:
    case NVME_ADMIN_GET_FEATURES:
        return do_feature(q->ctrl, c, result);
    case NVME_ADMIN_KEEP_ALIVE:
        return NVME_OK;
    case NVME_ADMIN_GET_LOG:
        return do_log(l, c, page);
    default:
        return NVME_INVALID_OPCODE | NVME_DNR;
    }
}

/* Carry out a command whose data are there; its status, and *result. */
static uint16_t execute(struct link *l, const struct nvme_cmd *c, uint8_t *mem, uint64_t *result)
{
    struct target_queue *q = l->user;
    struct storage_result *r = &l->s->r;
    bool read = c->opc == NVME_IO_READ;

    if (c->opc == NVME_FABRICS || q->qid == 0 || (!read && c->opc != NVME_IO_WRITE))
        r->commands++;
    if (c->opc == NVME_FABRICS && c->fctype == NVME_FCTYPE_CONNECT)
        return do_connect(l, c, mem, result);
    if (c->opc == NVME_FABRICS)
        return q->qid == 0 && (c->fctype == NVME_FCTYPE_PROP_GET || c->fctype == NVME_FCTYPE_PROP_SET)
                   ? do_property(q->ctrl, c, result)
                   : NVME_INVALID_FIELD | NVME_DNR;
    if (q->qid == 0)
        return do_admin(l, c, mem, result);
    if (c->opc != NVME_IO_READ && c->opc != NVME_IO_WRITE)
        return c->opc == NVME_IO_FLUSH ? NVME_OK : NVME_INVALID_OPCODE | NVME_DNR;
    r->reads += read;
    r->writes += !read;
    *(read ? &r->read : &r->written) += nvme_data_len(c);
    return NVME_OK;
}

static void respond(struct link *l, unsigned slot, uint16_t status, uint64_t result, ns_t now)
{
    struct target_queue *q = l->user;
    const struct nvme_cmd *c = &q->cmd[slot].cmd;
    bool invalidate = c->sgl.type == NVME_SGL_KEYED && c->sgl.subtype == NVME_SGL_INVALIDATE;
    struct nvme_cqe cqe = {.result = result, .cid = c->cid, .status = status};

    q->head = (uint16_t)((q->head + 1) % q->size);
    cqe.sqhd = q->head;
    l->s->r.failed += status != NVME_OK;
    nvme_cqe_put(link_out(l, slot), &cqe);
    link_send(l, slot, NVME_CQE_LEN, invalidate ? c->sgl.key : 0, now);
}

/* The data of a command are there, or it has none from the host: carry it out, WRITE what it returns, and respond. */
static void finish(struct link *l, unsigned slot, const struct place *p, ns_t now)
{
    struct target_queue *q = l->user;
    const struct nvme_cmd *c = &q->cmd[slot].cmd;
    uint64_t result = 0;
    uint16_t status = execute(l, c, p->mem, &result);

    if (status == NVME_OK && nvme_is_to_host(c) && p->own.length && c->sgl.type == NVME_SGL_KEYED)
        link_move(l, false, slot, &p->own, c->sgl.address, c->sgl.key, now);
    respond(l, slot, status, result, now);
}

/* The data are in the capsule: its status. */
static uint16_t copy_capsule(const struct nvme_cmd *c, const uint8_t *data, uint32_t len, const struct place *p)
{
    if (c->sgl.type != NVME_SGL_DATA || c->sgl.subtype != NVME_SGL_OFFSET)
        return NVME_SGL_TYPE | NVME_DNR;
    if (c->sgl.address > len || c->sgl.length > len - c->sgl.address || p->own.length != c->sgl.length)
        return NVME_SGL_LENGTH | NVME_DNR;
    memcpy(p->mem, data + c->sgl.address, c->sgl.length);
    return NVME_OK;
}

static void message(struct link *l, unsigned slot, const struct wc *wc, ns_t now)
{
    struct target_queue *q = l->user;
    struct target_cmd *t = &q->cmd[slot];
    struct nvme_cmd *c = &t->cmd;
    struct place p;
    uint16_t status;
    bool from_host;

    if (wc->byte_len < NVME_SQE_LEN) {
        link_refuse(l, now, "a command of %u bytes, at least %u are needed", wc->byte_len, NVME_SQE_LEN);
        return;
    }
    if (!make_pages(l)) {
        storage_fail(l->s, now, "no memory for the data of commands");
        return;
    }
    nvme_cmd_get(c, link_in(l, slot));
    if (c->opc == NVME_ADMIN_AER && q->qid == 0 && q->ctrl)
        return; /* there are no events: it is never answered */
    status = place_of(l, slot, c, &p);
    from_host = nvme_data_len(c) && !nvme_is_to_host(c);
    if (status == NVME_OK && from_host && c->sgl.type == NVME_SGL_KEYED) {
        t->waits = true;
        link_move(l, true, slot, &p.own, c->sgl.address, c->sgl.key, now);
        return;
    }
    if (status == NVME_OK && from_host)
        status = copy_capsule(c, link_in(l, slot) + NVME_SQE_LEN, wc->byte_len - NVME_SQE_LEN, &p);
    if (status == NVME_OK)
        finish(l, slot, &p, now);
    else
        respond(l, slot, status, 0, now);
}

static void moved(struct link *l, unsigned slot, ns_t now)
{
    struct target_queue *q = l->user;
    struct target_cmd *t = &q->cmd[slot];
    struct place p;
    uint16_t status;

    if (!t->waits)
        return; /* a WRITE: the response is behind it */
    t->waits = false;
    status = place_of(l, slot, &t->cmd, &p); /* meanwhile another Connect may have come */
    if (status == NVME_OK)
        finish(l, slot, &p, now);
    else
        respond(l, slot, status, 0, now);
}

static int open(struct storage *s, ns_t now)
{
    (void)now;
    s->state = calloc(1, sizeof(struct target));
    return s->state ? 0 : -ENOMEM;
}

const struct storage_role nvme_target = {
    .open = open, .request = request, .message = message, .moved = moved, .down = down};
