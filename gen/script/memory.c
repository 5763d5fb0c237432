/* layer 3 (script): scenario files: memory regions, windows, shared receive queues. */
#include "folded.h"
#include "gen/script/script_impl.h"

#include <errno.h>
#include <stdlib.h>

#define SCRIPT_MEM_MAX (1 << 26) /* bytes of a region, but for repetitions */

/* Parse "HOST.NAME" of a new region, window or shared receive queue. */
static bool new_name(struct script *s, const struct token *t, unsigned *host, char name[24])
{
    struct token h, rest;

    if (!token_cut(t, '.', &h, &rest) || rest.len == 0 || rest.len > 23)
        return text_fail(&s->err, t, "expected HOST.NAME, found '%.*s'", (int)t->len, t->p);
    memcpy(name, rest.p, rest.len);
    name[rest.len] = '\0';
    return script_host_of(s, &h, host);
}

static bool mem_fill(struct script *s, struct script_mem *m, const struct token *v)
{
    uint64_t u;

    if (token_is(v, "seq")) {
        for (uint64_t i = 0; i < m->part; i++)
            m->p[i] = (uint8_t)(i * 7 + i / 251 + m->host * 3 + s->n_mem);
        return true;
    }
    if (token_is(v, "text")) {
        for (uint64_t i = 0; i < m->part; i++)
            m->p[i] = (uint8_t)('A' + i % 26);
        return true;
    }
    if (!script_num(s, v, 255, &u))
        return false;
    memset(m->p, (int)u, m->part);
    return true;
}

/* The word repeat=BYTES, if it is there: after how many bytes the memory repeats; else its length. */
static bool take_part(struct script *s, struct script_mem *m, const struct token *t, unsigned n)
{
    struct token key, v;
    bool repeats = false;

    for (unsigned i = 2; i < n; i++)
        if (token_key(&t[i], &key, &v) && token_is(&key, "repeat")) {
            if (!script_num(s, &v, SCRIPT_MEM_MAX, &m->part))
                return false;
            repeats = true;
        }
    if (!repeats) {
        m->part = m->len;
        return m->len <= SCRIPT_MEM_MAX ||
               text_fail(&s->err, &t[1], "mem: more than %d bytes need repeat=", SCRIPT_MEM_MAX);
    }
    return folded_can(m->len, m->part) ||
           text_fail(&s->err, t,
                     "mem: repeat: expected pages of %d bytes, of which the memory is up to %d times as long",
                     FOLDED_PAGE, FOLDED_TIMES);
}

static int make_memory(struct script_mem *m)
{
    if (m->part < m->len)
        return folded_new(m->len, m->part, &m->p);
    m->p = calloc(1, m->len + 1);
    return m->p ? 0 : -ENOMEM;
}

void script_mem_free(struct script_mem *m)
{
    if (m->p && m->part < m->len)
        munmap(m->p, m->len);
    else
        free(m->p);
}

bool script_mem_add(struct script *s, const struct token *t, unsigned n)
{
    struct script_mem *m = &s->mem[s->n_mem];
    uint8_t access = (ACCESS_LOCAL_WRITE | ACCESS_REMOTE | ACCESS_MW_BIND) & ~ACCESS_FLUSH_PERSISTENT;
    struct token key, v;
    unsigned pd = 0;
    int r;

    if (n < 2 || s->n_mem == SCRIPT_MEMS)
        return text_fail(&s->err, NULL, "mem: expected HOST.NAME BYTES (at most %d regions)", SCRIPT_MEMS);
    if (!new_name(s, t, &m->host, m->name) || !script_num(s, &t[1], UINT64_C(1) << 31, &m->len))
        return false;
    if (!take_part(s, m, t, n))
        return false;
    r = make_memory(m);
    m->iova = UINT64_C(0x100000000) * (s->n_mem + 1);
    s->n_mem++;
    for (unsigned i = 2; i < n && m->p; i++) {
        if (!token_key(&t[i], &key, &v))
            return text_fail(&s->err, &t[i], "mem: '%.*s' is not understood", (int)t[i].len, t[i].p);
        if (token_is(&key, "repeat"))
            continue;
        if (token_is(&key, "fill")     ? !mem_fill(s, m, &v)
            : token_is(&key, "access") ? !script_access(s, &v, &access)
            : token_is(&key, "pd")     ? !script_take_pd(s, &v, &pd)
            : token_is(&key, "at")     ? !script_num(s, &v, UINT64_MAX, &m->iova)
                                   : !text_fail(&s->err, &key, "mem: '%.*s' is not understood", (int)key.len, key.p))
            return false;
    }
    if (m->p && script_is_dut(s, m->host))
        r = dut_mem(s, m, script_pd(s, m->host, pd), access) ? 0 : 1;
    else if (m->p)
        r = ep_mr_reg(s->sim.ep[m->host], script_pd(s, m->host, pd), m->p, m->len, m->iova, access, &m->key);
    if (access & ACCESS_ZERO_BASED)
        m->iova = 0;
    script_adopt(s, m);
    m->old = m->key;
    return r == 0 || (r < 0 && text_fail(&s->err, t, "the memory cannot be registered: %s", strerror(-r)));
}

bool script_srq_add(struct script *s, const struct token *t, unsigned n)
{
    struct script_srq *q = &s->srq[s->n_srq];
    struct token key, v;
    uint64_t depth, limit = 0, xrc = UINT64_MAX;
    unsigned pd = 0;

    if (n < 2 || s->n_srq == SCRIPT_SRQS)
        return text_fail(&s->err, NULL, "srq: expected HOST.NAME DEPTH");
    if (!new_name(s, t, &q->host, q->name) || !script_num(s, &t[1], 65536, &depth))
        return false;
    for (unsigned i = 2; i < n; i++)
        if (!token_key(&t[i], &key, &v) || (token_is(&key, "limit") ? !script_num(s, &v, 65536, &limit)
                                            : token_is(&key, "pd")  ? !script_take_pd(s, &v, &pd)
                                            : token_is(&key, "xrc") ? !script_num(s, &v, SCRIPT_PDS - 1, &xrc)
                                                                    : true))
            return text_fail(&s->err, &t[i], "srq: '%.*s' is not understood", (int)t[i].len, t[i].p);
    q->handle = ep_srq_create(s->sim.ep[q->host], script_pd(s, q->host, pd), (uint32_t)depth, 4);
    if (q->handle < 0)
        return text_fail(&s->err, t, "the shared receive queue cannot be created: %s", strerror(-q->handle));
    s->n_srq++;
    q->xrcd = xrc == UINT64_MAX ? 0 : script_xrcd(s, q->host, (unsigned)xrc);
    q->cq = q->xrcd ? ep_cq_create(s->sim.ep[q->host], (uint32_t)depth) : -1;
    if (q->xrcd && ep_srq_to_xrc(s->sim.ep[q->host], q->handle, q->xrcd, q->cq))
        return text_fail(&s->err, t, "the shared receive queue cannot be one of an XRC domain");
    ep_srq_limit(s->sim.ep[q->host], q->handle, (uint32_t)limit);
    return !script_is_dut(s, q->host) || dut_srq(s, q, script_pd(s, q->host, pd), (uint32_t)depth, (uint32_t)limit);
}

/* "limit NAME N". */
bool script_limit(struct script *s, unsigned host, const struct token *t, unsigned n)
{
    struct script_srq *q = n == 2 ? script_srq_of(s, host, t) : NULL;
    uint64_t limit;

    if (n != 2)
        return text_fail(&s->err, NULL, "limit: expected a shared receive queue and a number");
    if (!q || !script_num(s, &t[1], 65536, &limit))
        return false;
    ep_srq_limit(s->sim.ep[host], q->handle, (uint32_t)limit);
    return !script_is_dut(s, host) || dut_limit(s, q, (uint32_t)limit);
}

bool script_mw_add(struct script *s, const struct token *t, unsigned n)
{
    struct script_mem *m = &s->mem[s->n_mem];
    struct token key, v;
    unsigned pd = 0;
    int r;

    if (n < 2 || s->n_mem == SCRIPT_MEMS || !(token_is(&t[1], "1") || token_is(&t[1], "2")))
        return text_fail(&s->err, NULL, "mw: expected HOST.NAME and the type, 1 or 2");
    if (!new_name(s, t, &m->host, m->name))
        return false;
    if (n > 2 && (!token_key(&t[2], &key, &v) || !token_is(&key, "pd") || !script_take_pd(s, &v, &pd)))
        return text_fail(&s->err, &t[2], "mw: '%.*s' is not understood", (int)t[2].len, t[2].p);
    m->iova = 0;
    m->len = UINT32_MAX;
    if (script_is_dut(s, m->host)) {
        if (!dut_window(s, m, script_pd(s, m->host, pd), token_is(&t[1], "1") ? 1 : 2))
            return false;
        r = 0;
    } else {
        r = ep_mw_alloc(s->sim.ep[m->host], script_pd(s, m->host, pd), token_is(&t[1], "1") ? MR_WINDOW1 : MR_WINDOW2,
                        &m->key);
    }
    if (r < 0)
        return text_fail(&s->err, t, "the window cannot be allocated: %s", strerror(-r));
    m->old = m->key;
    s->n_mem++;
    return true;
}

bool script_mr_add(struct script *s, const struct token *t, unsigned n)
{
    struct script_mem *m = &s->mem[s->n_mem];
    struct token key, v;
    uint64_t most;
    unsigned pd = 0;
    int r;

    if (n < 2 || s->n_mem == SCRIPT_MEMS)
        return text_fail(&s->err, NULL, "mr: expected HOST.NAME and the most bytes it can have");
    if (!new_name(s, t, &m->host, m->name) || !script_num(s, &t[1], 1 << 26, &most))
        return false;
    if (n > 2 && (!token_key(&t[2], &key, &v) || !token_is(&key, "pd") || !script_take_pd(s, &v, &pd)))
        return text_fail(&s->err, &t[2], "mr: '%.*s' is not understood", (int)t[2].len, t[2].p);
    m->iova = 0;
    m->len = 0;
    if (script_is_dut(s, m->host))
        return dut_lacks(s, "agents have no fast registration");
    r = ep_mr_alloc(s->sim.ep[m->host], script_pd(s, m->host, pd), most, &m->key);
    if (r < 0)
        return text_fail(&s->err, t, "the region cannot be allocated: %s", strerror(-r));
    m->old = m->key;
    s->n_mem++;
    return true;
}

bool script_dereg(struct script *s, const struct token *t, unsigned n)
{
    struct script_place p;
    struct token key, v;
    int r, fails = 0;

    if (n < 1 || n > 2 || (n == 2 && (!token_key(&t[1], &key, &v) || !token_is(&key, "fails"))))
        return text_fail(&s->err, NULL, "dereg: expected HOST.NAME [fails=ERROR]");
    if (!script_place_of(s, 0, t, &p) || (n == 2 && !script_errno(s, &v, &fails)))
        return false;
    if (script_is_dut(s, p.m->host))
        return dut_posted(s, dut_dereg(s, p.m), fails);
    r = ep_mr_dereg(s->sim.ep[p.m->host], p.m->key);
    if (fails == SCRIPT_MAY_FAIL || (s->o->live && p.m->host != s->o->live->wire.local))
        return true; /* of the other side's: that, where the windows are bound, says whether it works */
    if (fails && r != -fails)
        return script_fail(s, "dereg %.*s: expected %s", (int)t->len, t->p, strerror(fails));
    return r == -fails || script_fail(s, "dereg %.*s: %s", (int)t->len, t->p, strerror(-r));
}

/* "register HOST.NAME access=RIGHTS": the region gets other rights. */
static bool register_again(struct script *s, const struct token *t, struct script_mem *m, const struct token *rights)
{
    uint8_t access;
    int r;

    if (!script_access(s, rights, &access))
        return false;
    if (script_is_dut(s, m->host))
        return dut_access(s, m, access);
    r = ep_mr_access(s->sim.ep[m->host], m->key, access);
    return r == 0 || text_fail(&s->err, t, "register: %s", strerror(-r));
}

/* "register HOST.NAME times=N": the memory is registered once more and deregistered, so often. */
static bool register_often(struct script *s, const struct token *t, const struct script_mem *m, const struct token *v)
{
    const uint8_t access = ACCESS_LOCAL_WRITE;
    uint64_t times;
    uint32_t other;
    int r = 0;

    if (!script_num(s, v, 1000000, &times))
        return false;
    if (script_is_dut(s, m->host))
        return dut_register(s, m, (uint32_t)times);
    for (uint64_t i = 0; i < times && r == 0; i++) {
        r = ep_mr_reg(s->sim.ep[m->host], script_pd(s, m->host, 0), m->p, m->len, m->iova, access, &other);
        r = r == 0 ? ep_mr_dereg(s->sim.ep[m->host], other) : r;
    }
    return r == 0 || text_fail(&s->err, t, "register: %s", strerror(-r));
}

bool script_register(struct script *s, const struct token *t, unsigned n)
{
    struct script_place p;
    struct token key, v;
    bool again;

    if (n != 2 || !token_key(&t[1], &key, &v) || !(token_is(&key, "times") || token_is(&key, "access")))
        return text_fail(&s->err, NULL, "register: expected HOST.NAME, and times=N or access=RIGHTS");
    again = token_is(&key, "access");
    if (!script_place_of(s, 0, t, &p))
        return false;
    if (!p.m->p)
        return text_fail(&s->err, t, "register: this is no memory");
    return again ? register_again(s, t, p.m, &v) : register_often(s, t, p.m, &v);
}
