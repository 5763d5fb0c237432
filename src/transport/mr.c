/* layer 2 (transport): the table of memory regions and windows. */
#include "src/transport/mr.h"

#include <errno.h>

#define KEY(index, variant) ((index) << 8 | (variant))
#define KEY_INDEX(key)      ((key) >> 8)

const char *mr_status_str(enum mr_status s)
{
    static const char *const names[] = {
        "ok", "bad key", "other protection domain", "other queue pair", "out of range", "right not granted"};
    return (unsigned)s < ARRAY_LEN(names) ? names[s] : "?";
}

void mr_table_init(struct mr_table *t, struct mr *mr, uint32_t n)
{
    t->mr = mr;
    t->n = n;
    t->used = 1; /* index 0 is never used: key 0 means none */
    t->n_free = 0;
    mr[0] = (struct mr){.kind = MR_FREE};
}

/* A free entry. Its variant continues from the last use, so that stale keys do not match. 0: full. */
static uint32_t entry_new(struct mr_table *t)
{
    uint32_t i = 0;

    if (t->n_free) {
        for (i = 1; t->mr[i].kind != MR_FREE; i++)
            ;
        t->n_free--;
    } else if (t->used < t->n && t->used < UINT32_C(1) << 24) {
        i = t->used++;
        t->mr[i].variant = 0;
    }
    return i;
}

static struct mr *entry_of(const struct mr_table *t, uint32_t key)
{
    uint32_t i = KEY_INDEX(key);

    if (i == 0 || i >= t->used || t->mr[i].kind == MR_FREE || t->mr[i].variant != (key & 0xff))
        return NULL;
    return &t->mr[i];
}

enum mr_kind mr_kind_of(const struct mr_table *t, uint32_t key)
{
    uint32_t i = KEY_INDEX(key);

    return i && i < t->used ? (enum mr_kind)t->mr[i].kind : MR_FREE;
}

uint32_t mr_register(struct mr_table *t, uint32_t pd, uint64_t iova, uint64_t len, uint8_t access, bool zero_based)
{
    uint32_t i;
    uint8_t variant;

    if (iova + len < iova || (access & (ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC) && !(access & ACCESS_LOCAL_WRITE)))
        return 0;
    i = entry_new(t);
    if (!i)
        return 0;
    variant = (uint8_t)(t->mr[i].variant + 1);
    t->mr[i] = (struct mr){.iova = zero_based ? 0 : iova,
                           .len = len,
                           .pd = pd,
                           .kind = MR_REGION,
                           .access = access,
                           .variant = variant,
                           .valid = true,
                           .zero_based = zero_based};
    return KEY(i, variant);
}

uint32_t mr_alloc(struct mr_table *t, uint32_t pd, uint64_t most)
{
    uint32_t i = most ? entry_new(t) : 0;
    uint8_t variant;

    if (!i)
        return 0;
    variant = (uint8_t)(t->mr[i].variant + 1);
    t->mr[i] = (struct mr){.pd = pd, .kind = MR_REGION, .variant = variant, .most = most};
    return KEY(i, variant);
}

int mr_fast_register(struct mr_table *t, const struct mr_fast *f)
{
    struct mr *m = entry_of(t, f->key);

    if (!m || m->kind != MR_REGION || m->valid || m->pd != f->pd || KEY_INDEX(f->new_key) != KEY_INDEX(f->key))
        return -EINVAL;
    if (!m->most || f->len > m->most || f->iova + f->len < f->iova)
        return -EINVAL;
    if (f->access & ACCESS_ZERO_BASED ||
        (f->access & (ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC) && !(f->access & ACCESS_LOCAL_WRITE)))
        return -EINVAL;
    m->iova = f->iova;
    m->len = f->len;
    m->access = f->access;
    m->variant = (uint8_t)f->new_key;
    m->valid = true;
    return 0;
}

static void unbind(struct mr_table *t, struct mr *w)
{
    if (w->valid && w->parent)
        t->mr[w->parent].windows--;
    w->valid = false;
    w->parent = 0;
    w->len = 0;
}

int mr_set_access(struct mr_table *t, uint32_t key, uint8_t access)
{
    struct mr *m = entry_of(t, key);

    if (!m || m->kind != MR_REGION || !m->valid || m->zero_based != !!(access & ACCESS_ZERO_BASED) ||
        (access & (ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC) && !(access & ACCESS_LOCAL_WRITE)))
        return -EINVAL;
    if (m->windows)
        return -EBUSY;
    m->access = access;
    return 0;
}

int mr_deregister(struct mr_table *t, uint32_t key)
{
    struct mr *m = entry_of(t, key);

    if (!m)
        return -EINVAL;
    if (m->kind == MR_REGION && m->windows)
        return -EBUSY;
    if (m->kind != MR_REGION)
        unbind(t, m);
    m->kind = MR_FREE;
    t->n_free++;
    return 0;
}

uint32_t mw_alloc(struct mr_table *t, uint32_t pd, enum mr_kind kind)
{
    uint32_t i = entry_new(t);
    uint8_t variant;

    if (!i)
        return 0;
    variant = (uint8_t)(t->mr[i].variant + 1);
    t->mr[i] = (struct mr){.pd = pd, .kind = (uint8_t)kind, .variant = variant};
    return KEY(i, variant);
}

/* The window that `b` is about. A type 1 window is a resource of the provider: the verb names it, not its key. */
static struct mr *window_of(const struct mr_table *t, const struct mw_bind *b)
{
    uint32_t i = KEY_INDEX(b->key);

    if (i == 0 || i >= t->used || t->mr[i].kind != b->kind || b->kind == MR_REGION || b->kind == MR_FREE)
        return NULL;
    return b->kind == MR_WINDOW1 || t->mr[i].variant == (b->key & 0xff) ? &t->mr[i] : NULL;
}

/* True if region `m` permits the binding `b` (C10-72 to C10-75). */
static bool bindable(const struct mr *m, const struct mw_bind *b)
{
    if (!m || m->kind != MR_REGION || !m->valid || m->pd != b->pd || !(m->access & ACCESS_MW_BIND))
        return false;
    if (b->va < m->iova || b->va - m->iova > m->len || b->len > m->len - (b->va - m->iova))
        return false;
    return !(b->access & ~(ACCESS_REMOTE | ACCESS_ZERO_BASED)) &&
           (!(b->access & (ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC)) || m->access & ACCESS_LOCAL_WRITE);
}

int mw_bind(struct mr_table *t, const struct mw_bind *b)
{
    struct mr *w = window_of(t, b), *m = entry_of(t, b->mr_key);

    if (!w || w->pd != b->pd || KEY_INDEX(b->new_key) != KEY_INDEX(b->key))
        return -EINVAL;
    if (w->kind == MR_WINDOW2 ? w->valid || b->len == 0 : b->access & ACCESS_ZERO_BASED)
        return -EINVAL;
    if (b->len && !bindable(m, b))
        return -EINVAL;
    unbind(t, w);
    w->variant = (uint8_t)b->new_key;
    if (b->len == 0)
        return 0;
    w->iova = b->va;
    w->len = b->len;
    w->access = b->access & (uint8_t)~ACCESS_ZERO_BASED;
    w->zero_based = b->access & ACCESS_ZERO_BASED;
    w->qpn = b->qpn;
    w->parent = KEY_INDEX(b->mr_key);
    w->valid = true;
    m->windows++;
    return 0;
}

enum mr_status mr_invalidate(struct mr_table *t, uint32_t key, uint32_t pd, uint32_t qpn, bool remote)
{
    struct mr *m = entry_of(t, key);

    if (!m || !m->valid || m->kind == MR_WINDOW1)
        return MR_BAD_KEY;
    if (m->pd != pd)
        return MR_BAD_PD;
    if (m->kind == MR_WINDOW2 && m->qpn != qpn)
        return MR_BAD_QP;
    if (m->kind == MR_REGION && (m->windows || (remote && !(m->access & ACCESS_REMOTE))))
        return MR_BAD_ACCESS;
    if (m->kind == MR_WINDOW2)
        unbind(t, m);
    m->valid = false;
    return MR_OK;
}

struct mr_hit mr_check(const struct mr_table *t, uint32_t key, uint32_t pd, uint32_t qpn, uint64_t va, uint64_t len,
                       uint8_t access)
{
    return len ? mr_check_flush(t, key, pd, qpn, va, len, false, access) : (struct mr_hit){MR_OK, 0, 0};
}

struct mr_hit mr_check_flush(const struct mr_table *t, uint32_t key, uint32_t pd, uint32_t qpn, uint64_t va,
                             uint64_t len, bool whole, uint8_t access)
{
    const struct mr *m = entry_of(t, key);
    struct mr_hit hit = {MR_OK, 0, 0};
    uint64_t base, off;

    if (!m || !m->valid) {
        hit.status = MR_BAD_KEY;
        return hit;
    }
    base = m->zero_based ? 0 : m->iova;
    if (whole) {
        va = base;
        len = m->len;
    }
    off = va - base;
    hit.index = m->kind == MR_REGION ? KEY_INDEX(key) : m->parent;
    hit.offset = m->kind == MR_REGION ? off : m->iova + off - t->mr[m->parent].iova;
    if (m->pd != pd)
        hit.status = MR_BAD_PD;
    else if (m->kind == MR_WINDOW2 && m->qpn != qpn)
        hit.status = MR_BAD_QP;
    else if (va < base || off > m->len || len > m->len - off)
        hit.status = MR_BAD_RANGE;
    else if ((m->access & access) != access)
        hit.status = MR_BAD_ACCESS;
    return hit;
}
