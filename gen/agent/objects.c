/* layer 3 (agent): the objects of a client: names, limits, and the order of their end. */
#include "gen/agent/objects.h"
#include "folded.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

static const char *const kinds[OBJECT_KINDS] = {
    [OBJECT_ID] = "id",  [OBJECT_MW] = "mw",     [OBJECT_QP] = "qp", [OBJECT_MR] = "mr",
    [OBJECT_AH] = "ah",  [OBJECT_SRQ] = "srq",   [OBJECT_CQ] = "cq", [OBJECT_CHANNEL] = "channel",
    [OBJECT_DM] = "dm",  [OBJECT_FLOW] = "flow", [OBJECT_PD] = "pd", [OBJECT_XRCD] = "xrcd",
    [OBJECT_MEM] = "mem"};

const char *object_kind_str(enum object_kind k)
{
    return k < OBJECT_KINDS ? kinds[k] : "?";
}

/* A place for one more: the first that is free. */
static bool place(struct objects *os, uint32_t *at)
{
    struct object **grown;
    uint32_t cap = os->cap ? 2 * os->cap : 64;

    for (*at = 0; *at < os->n && os->at[*at]; ++*at)
        continue;
    if (*at < os->cap)
        return true;
    grown = realloc(os->at, cap * sizeof(void *));
    if (!grown)
        return false;
    os->at = grown;
    os->cap = cap;
    return true;
}

struct object *object_new(struct objects *os, enum object_kind k)
{
    struct object *o;
    uint32_t at;

    if (os->total >= os->limits->max_objs || (k == OBJECT_QP && os->count[k] >= os->limits->max_qp) || !place(os, &at))
        return NULL;
    o = calloc(1, sizeof *o);
    if (!o)
        return NULL;
    os->at[at] = o;
    if (at == os->n)
        os->n++;
    o->kind = k;
    o->number = at + 1;
    os->count[k]++;
    os->total++;
    return o;
}

struct object *object_find(const struct objects *os, enum object_kind k, const char *name, size_t len)
{
    size_t at = strlen(kinds[k]);
    uint32_t n = 0;

    if (len <= at || len - at > 7 || memcmp(name, kinds[k], at) != 0 || name[at] == '0')
        return NULL;
    for (; at < len; at++) {
        if (name[at] < '0' || name[at] > '9')
            return NULL;
        n = n * 10 + (uint32_t)(name[at] - '0');
    }
    return n >= 1 && n <= os->n && os->at[n - 1] && os->at[n - 1]->kind == k ? os->at[n - 1] : NULL;
}

struct object *object_next(const struct objects *os, enum object_kind k, const struct object *o)
{
    for (uint32_t i = o ? o->number : 0; i < os->n; i++)
        if (os->at[i] && os->at[i]->kind == k)
            return os->at[i];
    return NULL;
}

void object_free(struct objects *os, struct object *o)
{
    if (o->mem)
        o->mem->refs--;
    if (o->bytes)
        munmap(o->bytes, o->len);
    if (o->kind == OBJECT_MEM || o->kind == OBJECT_DM)
        os->mem -= o->held;
    if (o->dmabuf)
        close(o->dmabuf - 1);
    os->count[o->kind]--;
    os->total--;
    os->at[o->number - 1] = NULL;
    while (os->n && !os->at[os->n - 1])
        os->n--;
    free(o);
}

static int destroy_impl(struct rnic *r, struct object *o)
{
    switch (o->kind) {
    case OBJECT_ID:
        return r->ops->cm_destroy(r, o->impl);
    case OBJECT_QP:
        return r->ops->qp_destroy(r, o->impl);
    case OBJECT_MW:
        return r->ops->mw_free(r, o->impl);
    case OBJECT_MR:
        return r->ops->mr_dereg(r, o->impl);
    case OBJECT_DM:
        return o->refs ? -EBUSY : r->ops->dm_free(r, o->impl);
    case OBJECT_FLOW:
        return r->ops->flow_destroy(r, o->impl);
    case OBJECT_AH:
        return r->ops->ah_destroy(r, o->impl);
    case OBJECT_SRQ:
        return r->ops->srq_destroy(r, o->impl);
    case OBJECT_CQ:
        return r->ops->cq_destroy(r, o->impl);
    case OBJECT_CHANNEL:
        return r->ops->channel_destroy(r, o->impl);
    case OBJECT_XRCD:
        return r->ops->xrcd_close(r, o->impl);
    case OBJECT_PD:
        return r->ops->pd_free(r, o->impl);
    default:
        return o->refs ? -EBUSY : 0;
    }
}

int object_destroy(struct objects *os, struct rnic *r, struct object *o)
{
    int e = destroy_impl(r, o);

    if (e == 0)
        object_free(os, o);
    return e;
}

void objects_end(struct objects *os, struct rnic *r)
{
    for (enum object_kind k = 0; k < OBJECT_KINDS; k++)
        for (struct object *o = object_next(os, k, NULL), *next; o; o = next) {
            next = object_next(os, k, o);
            if (object_destroy(os, r, o) < 0)
                object_free(os, o); /* the kernel destroys it with the device's descriptor */
        }
    free(os->at);
    os->at = NULL;
    os->n = os->cap = 0;
}

/* Make a DMA buffer of `len` bytes of memory, by /dev/udmabuf. Descriptors of both, the latter in *buffer, or a
 * negative errno. */
static int make_dmabuf(uint64_t len, int *buffer)
{
    struct udmabuf_create c = {.flags = UDMABUF_FLAGS_CLOEXEC, .size = len};
    int fd = open("/dev/udmabuf", O_RDWR | O_CLOEXEC), memory, e = 0;

    if (fd < 0)
        return -errno;
    memory = memfd_create("rdmagen", MFD_ALLOW_SEALING | MFD_CLOEXEC);
    c.memfd = (uint32_t)memory;
    if (memory < 0 || ftruncate(memory, (off_t)len) < 0 || fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK) < 0 ||
        (*buffer = ioctl(fd, UDMABUF_CREATE, &c)) < 0)
        e = -errno;
    close(fd);
    if (e < 0 && memory >= 0)
        close(memory);
    return e < 0 ? e : memory;
}

/* Memory that repeats. */
static int map_folded(struct objects *os, struct object *o, uint64_t len, uint64_t part)
{
    uint8_t *p = NULL;
    int e;

    if (!folded_can(len, part))
        return -EINVAL;
    if (part > os->limits->max_mem - os->mem)
        return -ENOMEM;
    e = folded_new(len, part, &p);
    if (e < 0)
        return e;
    madvise(p, len, MADV_DONTFORK);
    o->bytes = p;
    o->len = len;
    os->mem += o->held = part;
    return 0;
}

int object_mem_map(struct objects *os, struct object *o, uint64_t len, uint64_t part, bool dmabuf)
{
    int memory = -1, buffer = -1, e;
    void *p;

    if (part)
        return dmabuf ? -EINVAL : map_folded(os, o, len, part);
    len = (len + 4095) & ~UINT64_C(4095);
    if (!len || len > os->limits->max_mem - os->mem)
        return -ENOMEM;
    if (dmabuf && (memory = make_dmabuf(len, &buffer)) < 0)
        return memory;
    p = mmap(NULL, len, PROT_READ | PROT_WRITE, dmabuf ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, memory, 0);
    e = p == MAP_FAILED ? -errno : 0;
    if (memory >= 0)
        close(memory);
    if (e < 0 && buffer >= 0)
        close(buffer);
    if (e < 0)
        return e;
    o->dmabuf = buffer + 1;
    madvise(p, len, MADV_DONTFORK);
    o->bytes = p;
    o->len = len;
    os->mem += o->held = len;
    return 0;
}
