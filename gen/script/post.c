/* layer 3 (script): scenario files: posting work requests and modifying queue pairs. */
#include "gen/script/script_impl.h"

#include <errno.h>

#define SGE_MAX   32
#define TIMES_MAX 10000 /* most work requests of a line */

/* A parsed "post" line. */
struct post_line {
    struct sim_conn *c;
    unsigned host;
    struct send_wr wr;
    struct script_mem *window; /* "bind", "reg" */
    struct sge sge[SGE_MAX];
    bool lkey_given;
    bool group; /* the datagram goes to a multicast group */
    uint32_t lkey;
    uint64_t times; /* how often it is posted */
    int fails;      /* errno that posting must return; 0: it must succeed */
};

static const struct {
    const char *name;
    int err;
} errors[] = {{"EINVAL", EINVAL}, {"ENOMEM", ENOMEM}, {"E2BIG", E2BIG}, {"EBUSY", EBUSY}};

bool script_errno(struct script *s, const struct token *v, int *err)
{
    for (size_t i = 0; i < ARRAY_LEN(errors); i++)
        if (token_is(v, errors[i].name)) {
            *err = errors[i].err;
            return true;
        }
    *err = SCRIPT_MAY_FAIL;
    if (token_is(v, "any"))
        return true;
    return text_fail(&s->err, v, "fails: expected EINVAL, ENOMEM, E2BIG, EBUSY or any, found '%.*s'", (int)v->len,
                     v->p);
}

/* Parse a scatter/gather list: "NAME+OFF:LEN,NAME..." or "-" for an empty one. */
static bool take_pieces(struct script *s, unsigned host, const struct token *t, struct sge *sge, uint16_t *n)
{
    struct token one, rest = *t;
    struct script_place p;
    bool more = !token_is(t, "-");

    for (*n = 0; more; ++*n) {
        struct token all = rest;
        more = token_cut(&all, ',', &one, &rest);
        if (*n == SGE_MAX)
            return text_fail(&s->err, &one, "more than %d pieces", SGE_MAX);
        if (!script_place_of(s, host, &one, &p))
            return false;
        sge[*n] = (struct sge){p.m->iova + p.off, (uint32_t)p.len, script_lkey(s, p.m)};
    }
    return true;
}

/* Parse "b.NAME+OFF": the remote address and its R_Key. */
static bool take_remote(struct script *s, unsigned host, const struct token *t, struct send_wr *wr)
{
    struct script_place p;

    if (!script_place_of(s, host ^ 1, t, &p))
        return false;
    wr->remote_addr = p.m->iova + p.off;
    wr->rkey = p.m->key;
    wr->flush_length = (uint32_t)p.len;
    return true;
}

static bool post_flag(struct post_line *l, const struct token *t)
{
    static const struct {
        const char *name;
        uint8_t flag;
    } flags[] = {{"fence", SEND_FENCE}, {"solicited", SEND_SOLICITED}, {"inline", SEND_INLINE}};

    for (size_t i = 0; i < ARRAY_LEN(flags); i++)
        if (token_is(t, flags[i].name)) {
            l->wr.flags |= flags[i].flag;
            return true;
        }
    if (token_is(t, "global") || token_is(t, "persistent")) {
        l->wr.placement |= token_is(t, "global") ? FLUSH_GLOBAL : FLUSH_PERSISTENT;
        return true;
    }
    if (token_is(t, "whole"))
        return l->wr.whole_region = true;
    if (!token_is(t, "unsignaled"))
        return false;
    l->wr.flags &= (uint8_t)~SEND_SIGNALED;
    return true;
}

/* Parse a key: a number, or that of a region or window of `host` or the one named ("b.x"); "old:b.x": its key
 * before the latest bind or registration; "xor:N:b.x": its key with the bits N inverted. */
static bool take_key(struct script *s, unsigned host, const struct token *v, uint32_t *key)
{
    struct token before, rest = *v, bits, name = *v;
    bool cut = token_cut(v, ':', &before, &rest), old = cut && token_is(&before, "old");
    struct script_place p;
    uint64_t u, turned = 0;

    if (token_u64(v, &u)) {
        *key = (uint32_t)u;
        return true;
    }
    if (old)
        name = rest;
    if (cut && token_is(&before, "xor") && (!token_cut(&rest, ':', &bits, &name) || !token_u64(&bits, &turned)))
        return text_fail(&s->err, v, "expected xor:NUMBER:NAME");
    if (!script_place_of(s, host, &name, &p))
        return false;
    *key = (old ? p.m->old : p.m->key) ^ (uint32_t)turned;
    return true;
}

/* Parse the number of a shared receive queue, or "HOST.NAME". */
static bool take_srqn(struct script *s, const struct token *v, uint32_t *srqn)
{
    const struct script_srq *q;
    struct token h, name;
    unsigned host;
    uint64_t u;

    if (token_u64(v, &u)) {
        *srqn = (uint32_t)u & 0xffffff;
        return true;
    }
    if (!token_cut(v, '.', &h, &name))
        return text_fail(&s->err, v, "srq: expected a number or HOST.NAME");
    if (!script_host_of(s, &h, &host))
        return false;
    q = script_srq_of(s, host, &name);
    *srqn = q ? ep_srq_number(s->sim.ep[host], q->handle) : 0;
    return q != NULL;
}

/* group=N: the datagram goes to that multicast group; the address handle belongs to the first domain. */
static bool to_group(struct script *s, struct post_line *l, const struct token *v)
{
    struct av av = l->c->peer[l->host].av;
    int ah;

    if (!script_group(s, v, av.dgid))
        return false;
    l->group = true;
    l->wr.remote_qpn = SCRIPT_GROUP_QPN;
    if (script_is_dut(s, l->host))
        return dut_group(s, l->c, av.dgid);
    gid_group_mac(av.dgid, av.dmac);
    ah = ep_ah_create(s->sim.ep[l->host], s->pd[l->host][0], &av);
    l->wr.ah = (uint32_t)ah;
    return ah >= 0 || text_fail(&s->err, v, "group: %s", strerror(-ah));
}

static bool post_key(struct script *s, struct post_line *l, const struct token *key, const struct token *v)
{
    struct send_wr *wr = &l->wr;
    struct sim_conn *c;
    uint64_t u = 0;

    if (token_is(key, "fails"))
        return script_errno(s, v, &l->fails);
    if (token_is(key, "inv")) {
        wr->opcode = WR_SEND_WITH_INV;
        return take_key(s, l->host ^ 1, v, &wr->inv_rkey);
    }
    if (token_is(key, "rkey"))
        return take_key(s, l->host ^ 1, v, &wr->rkey);
    if (token_is(key, "lkey")) {
        l->lkey_given = true;
        return take_key(s, l->host, v, &l->lkey);
    }
    if (token_is(key, "times"))
        return script_num(s, v, TIMES_MAX, &l->times);
    if (token_is(key, "access"))
        return script_access(s, v, &wr->mw_access);
    if (token_is(key, "srq"))
        return take_srqn(s, v, &wr->remote_srqn);
    if (token_is(key, "group"))
        return l->c->type == QPT_UD ? to_group(s, l, v) : text_fail(&s->err, key, "group is for datagrams");
    if (token_is(key, "ah")) {
        if (!script_conn_of(s, v, &c))
            return false;
        wr->ah = (uint32_t)c->ah[l->host];
        return true;
    }
    if (!token_u64(v, &u))
        return text_fail(&s->err, v, "expected a number, found '%.*s'", (int)v->len, v->p);
    if (token_is(key, "id"))
        wr->wr_id = u;
    else if (token_is(key, "imm") && wr->opcode == WR_SEND)
        wr->opcode = WR_SEND_WITH_IMM;
    else if (token_is(key, "imm") && wr->opcode == WR_RDMA_WRITE)
        wr->opcode = WR_RDMA_WRITE_WITH_IMM;
    else if (token_is(key, "compare") || token_is(key, "add"))
        wr->compare_add = u;
    else if (token_is(key, "swap"))
        wr->swap = u;
    else if (token_is(key, "qpn"))
        wr->remote_qpn = (uint32_t)u;
    else if (token_is(key, "qkey"))
        wr->remote_qkey = (uint32_t)u;
    else if (token_is(key, "va"))
        wr->remote_addr = u;
    else
        return text_fail(&s->err, key, "post: '%.*s' is not understood", (int)key->len, key->p);
    if (token_is(key, "imm"))
        wr->imm_data = (uint32_t)u;
    return true;
}

static bool post_words(struct script *s, struct post_line *l, const struct token *t, unsigned n)
{
    struct token key, v;

    for (unsigned i = 0; i < n; i++) {
        if (token_is(&t[i], "to") || token_is(&t[i], "from") || token_is(&t[i], "at")) {
            if (i + 1 == n || !take_remote(s, l->host, &t[++i], &l->wr))
                return i + 1 < n || text_fail(&s->err, &t[i], "where?");
        } else if (token_key(&t[i], &key, &v)) {
            if (!post_key(s, l, &key, &v))
                return false;
        } else if (!post_flag(l, &t[i])) {
            return text_fail(&s->err, &t[i], "post: '%.*s' is not understood", (int)t[i].len, t[i].p);
        }
    }
    return true;
}

/* Whether posting returned what the line expects. */
static bool posted(struct script *s, int r, int fails)
{
    if (r == -fails || fails == SCRIPT_MAY_FAIL)
        return true;
    if (fails)
        return script_fail(s, "posting should fail with %s, but %s", strerror(fails),
                           r == 0 ? "it works" : strerror(-r));
    return script_fail(s, "posting fails: %s", strerror(-r));
}

/* Post a receive to a queue pair, or to `q` if it is not NULL. */
static bool post_one(struct script *s, unsigned host, const struct sim_conn *c, const struct script_srq *q,
                     const struct recv_wr *wr, int fails)
{
    if (script_is_dut(s, host))
        return dut_posted(s, dut_post_recv(s, c, q, wr), fails);
    return posted(s,
                  q ? ep_post_srq_recv(s->sim.ep[host], q->handle, wr, s->sim.now)
                    : ep_post_recv(s->sim.ep[host], c->qp[host], wr, s->sim.now),
                  fails);
}

/* Execute "recv CONN PIECES [id=N] [times=N] [fails=E]" or "srq NAME PIECES ...". */
static bool post_recv(struct script *s, unsigned host, const struct token *t, unsigned n, bool srq)
{
    struct sge sge[SGE_MAX];
    struct recv_wr wr = {.wr_id = s->next_id, .sg_list = sge};
    struct script_srq *q = NULL;
    struct sim_conn *c = NULL;
    struct token key, v;
    uint64_t times = 1;
    int fails = 0;

    if (n < 2)
        return text_fail(&s->err, NULL, "post: expected a queue and memory");
    if (srq ? !(q = script_srq_of(s, host, t)) : !script_conn_of(s, t, &c))
        return false;
    if (!take_pieces(s, host, &t[1], sge, &wr.num_sge))
        return false;
    for (unsigned i = 2; i < n; i++) {
        if (!token_key(&t[i], &key, &v))
            return text_fail(&s->err, &t[i], "post: '%.*s' is not understood", (int)t[i].len, t[i].p);
        if (token_is(&key, "fails")   ? !script_errno(s, &v, &fails)
            : token_is(&key, "lkey")  ? !take_key(s, host, &v, &sge[0].lkey)
            : token_is(&key, "times") ? !script_num(s, &v, TIMES_MAX, &times)
                                      : !script_num(s, &v, UINT64_MAX, &wr.wr_id))
            return false;
    }
    s->next_id++;
    for (uint64_t i = 0; i < times; i++)
        if (!post_one(s, host, c, q, &wr, fails))
            return false;
    return true;
}

/* Execute a local operation: "inv CONN KEY", "bind CONN WINDOW MR+OFF:LEN access=..", "reg CONN REGION MR+OFF:LEN ..".
 */
static bool post_local(struct script *s, struct post_line *l, const struct token *t, unsigned n)
{
    struct script_place w, m;

    if (n < 2)
        return text_fail(&s->err, NULL, "post: which key?");
    if (l->wr.opcode == WR_LOCAL_INV)
        return take_key(s, l->host, &t[1], &l->wr.inv_rkey) && post_words(s, l, t + 2, n - 2);
    if (n < 3 || !script_place_of(s, l->host, &t[1], &w) || !script_place_of(s, l->host, &t[2], &m))
        return n >= 3 ? false : text_fail(&s->err, NULL, "expected a window or region, and memory");
    l->window = w.m;
    l->wr.inv_rkey = w.m->key;
    l->wr.rkey = mr_next_key(w.m->key);
    l->wr.mr_key = m.m->key;
    l->wr.remote_addr = m.m->iova + m.off;
    l->wr.mw_length = m.len;
    l->wr.mw_access = ACCESS_REMOTE;
    if (l->wr.opcode == WR_REG_MR) {
        if (!m.m->p || m.off > m.m->len || m.len > m.m->len - m.off)
            return text_fail(&s->err, &t[2], "reg: '%.*s' is not in the memory of a region", (int)t[2].len, t[2].p);
        l->wr.reg_mem = m.m->p + m.off;
        l->wr.mw_access = (ACCESS_LOCAL_WRITE | ACCESS_REMOTE | ACCESS_MW_BIND) & ~ACCESS_FLUSH_PERSISTENT;
    }
    return post_words(s, l, t + 3, n - 3);
}

/* Post a bind or fast registration: of a type 1 window by the verb, whose provider chooses the key, else by a work
 * request. */
static int post_bind(struct script *s, struct post_line *l)
{
    struct endpoint *ep = s->sim.ep[l->host];
    struct script_mem *w = l->window;
    uint32_t key = w->key;
    bool verb = mr_kind_of(ep_mr_table(ep), key) == MR_WINDOW1, dut = script_is_dut(s, l->host);
    int r;

    if (!dut && s->o->live &&
        l->host != s->o->live->wire.local) { /* the other side posts it: only the key counts here */
        key = mr_next_key(key);
        r = l->fails == SCRIPT_MAY_FAIL ? 0 : -l->fails;
    } else if (dut) {
        r = dut_post_bind(s, l->c, w, &l->wr, &key);
    } else {
        r = verb ? ep_mw_bind(ep, l->c->qp[l->host], &l->wr, &key, s->sim.now)
                 : ep_post_send(ep, l->c->qp[l->host], &l->wr, s->sim.now);
    }
    if (r)
        return r;
    w->old = w->key;
    w->key = verb || dut ? key : l->wr.rkey;
    w->iova = l->wr.mw_access & ACCESS_ZERO_BASED ? 0 : l->wr.remote_addr;
    w->len = l->wr.mw_length;
    return 0;
}

/* Inline data is named by the addresses of the program, not by those of its regions. */
static bool inline_pieces(struct script *s, struct post_line *l)
{
    for (unsigned k = 0; k < l->wr.num_sge; k++) {
        struct sge *e = &l->sge[k];
        const struct script_mem *m = NULL;
        for (unsigned i = 0; i < s->n_mem && !m; i++)
            if (s->mem[i].host == l->host && script_lkey(s, &s->mem[i]) == e->lkey && s->mem[i].p)
                m = &s->mem[i];
        if (!m || e->addr < m->iova || e->addr - m->iova > m->len || e->length > m->len - (e->addr - m->iova))
            return text_fail(&s->err, NULL, "inline: piece %u is not in the memory of a region", k + 1);
        e->addr = (script_is_dut(s, m->host) ? dut_inline(s, m) : (uintptr_t)m->p) + (e->addr - m->iova);
    }
    return true;
}

/* Post what the line says. */
static bool post_once(struct script *s, struct post_line *l)
{
    s->posting[l->host] = s->sim.now;
    if (script_is_dut(s, l->host))
        return dut_posted(s, l->window ? post_bind(s, l) : dut_post_send(s, l->c, &l->wr, l->group, 1), l->fails);
    if (l->window)
        return posted(s, post_bind(s, l), l->fails);
    if (script_is_dut(s, l->host ^ 1) && !dut_carries(s, &l->wr))
        return false;
    s->posted[l->host] = s->sim.now;
    return posted(s, ep_post_send(s->sim.ep[l->host], l->c->qp[l->host], &l->wr, s->sim.now), l->fails);
}

/* Post what the line says, as often as it says; a device gets it in batches, so that its posts are back to back. */
static bool post_at_once(struct script *s, struct post_line *l)
{
    s->posting[l->host] = s->sim.now;
    return dut_posted(s, dut_post_send(s, l->c, &l->wr, l->group, l->times), 0);
}

bool script_post(struct script *s, unsigned host, const struct token *t, unsigned n)
{
    static const struct {
        const char *name;
        enum wr_opcode op;
    } ops[] = {{"send", WR_SEND},
               {"write", WR_RDMA_WRITE},
               {"read", WR_RDMA_READ},
               {"cas", WR_ATOMIC_CMP_AND_SWP},
               {"faa", WR_ATOMIC_FETCH_AND_ADD},
               {"awrite", WR_ATOMIC_WRITE},
               {"flush", WR_FLUSH},
               {"inv", WR_LOCAL_INV},
               {"bind", WR_BIND_MW},
               {"reg", WR_REG_MR}};
    struct post_line l = {.host = host, .times = 1, .wr = {.wr_id = s->next_id, .flags = SEND_SIGNALED}};
    size_t i = 0;
    bool good;

    if (n < 2)
        return text_fail(
            &s->err, NULL,
            "post: expected send, write, read, cas, faa, awrite, flush, recv, srq, inv, bind or reg and a connection");
    if (token_is(t, "recv") || token_is(t, "srq"))
        return post_recv(s, host, t + 1, n - 1, token_is(t, "srq"));
    while (i < ARRAY_LEN(ops) && !token_is(t, ops[i].name))
        i++;
    if (i == ARRAY_LEN(ops))
        return text_fail(&s->err, t, "post: '%.*s' is no work", (int)t->len, t->p);
    if (!script_conn_of(s, &t[1], &l.c))
        return false;
    l.wr.opcode = (uint8_t)ops[i].op;
    l.wr.sg_list = l.sge;
    l.wr.remote_srqn = l.c->remote_srqn;
    if (l.c->type == QPT_UD) {
        l.wr.ah = (uint32_t)l.c->ah[host];
        l.wr.remote_qpn = l.c->remote_qpn[host];
        l.wr.remote_qkey = l.c->remote_qkey[host];
    }
    if ((ops[i].op == WR_ATOMIC_CMP_AND_SWP || ops[i].op == WR_ATOMIC_FETCH_AND_ADD) && !dut_has_atomics(s))
        return false;
    if (s->dut && ops[i].op == WR_FLUSH)
        return dut_lacks(s, "agents give no right to FLUSH");
    if (ops[i].op >= WR_BIND_MW)
        good = post_local(s, &l, t + 1, n - 1);
    else if (ops[i].op == WR_FLUSH)
        good = post_words(s, &l, t + 2, n - 2);
    else
        good = n > 2 ? take_pieces(s, host, &t[2], l.sge, &l.wr.num_sge) && post_words(s, &l, t + 3, n - 3)
                     : text_fail(&s->err, t, "post: which memory?");
    if (!good)
        return false;
    if (l.wr.flags & SEND_INLINE && !inline_pieces(s, &l))
        return false;
    for (unsigned k = 0; k < l.wr.num_sge && l.lkey_given; k++)
        l.sge[k].lkey = l.lkey;
    s->next_id++;
    if (script_is_dut(s, host) && !l.window && !l.fails && l.times > 1)
        return post_at_once(s, &l);
    for (uint64_t k = 0; k < l.times; k++)
        if (!post_once(s, &l))
            return false;
    return true;
}

bool script_arm(struct script *s, unsigned host, const struct token *t, unsigned n)
{
    bool solicited = n == 2 && token_is(&t[1], "solicited");
    struct sim_conn *c;
    int r;

    if (n != 1u + solicited)
        return text_fail(&s->err, NULL, "arm: expected a connection, and perhaps 'solicited'");
    if (!script_conn_of(s, t, &c))
        return false;
    if (script_is_dut(s, host))
        return dut_arm(s, c, solicited);
    r = ep_cq_arm(s->sim.ep[host], c->cq[host], solicited);
    return r == 0 || script_fail(s, "arm: %s", strerror(-r));
}

bool script_group(struct script *s, const struct token *v, uint8_t gid[16])
{
    uint64_t n;

    if (!script_num(s, v, 255, &n))
        return false;
    if (gid_is_ipv4(s->sim.addr[0].gid))
        memcpy(gid, (uint8_t[16]){[10] = 0xff, [11] = 0xff, [12] = 239, [13] = 255, [15] = (uint8_t)n}, 16);
    else
        memcpy(gid, (uint8_t[16]){0xff, 0x15, [15] = (uint8_t)n}, 16);
    return true;
}

bool script_attach(struct script *s, unsigned host, const struct token *t, unsigned n)
{
    struct token key, v;
    struct sim_conn *c;
    uint8_t gid[16];
    int r;

    if (n != 2 || !token_key(&t[1], &key, &v) || !token_is(&key, "group"))
        return text_fail(&s->err, NULL, "attach: expected a connection and group=N");
    if (!script_conn_of(s, t, &c) || !script_group(s, &v, gid))
        return false;
    if (script_is_dut(s, host))
        return dut_attach(s, c, gid);
    r = ep_qp_attach(s->sim.ep[host], c->qp[host], gid);
    return r == 0 || script_fail(s, "attach: %s", strerror(-r));
}

/* A word of "modify" behind the state: psn=N (which is expected next, behind RESET), fails=E, alternate=PATH,
 * migration=STATE. */
static bool modify_word(struct script *s, unsigned host, struct sim_conn *c, const struct token *t, struct qp_attr *a,
                        uint32_t *mask, int *fails)
{
    struct token key, v;
    uint64_t path, psn;

    if (!token_key(t, &key, &v))
        return text_fail(&s->err, t, "modify: '%.*s' is not understood", (int)t->len, t->p);
    if (token_is(&key, "fails"))
        return script_errno(s, &v, fails);
    if (token_is(&key, "psn")) {
        if (!script_num(s, &v, 0xffffff, &psn))
            return false;
        a->rq_psn = psn_add(event_conns(s->sim.events)->c[c->number - 1].psn[host ^ 1], (uint32_t)psn);
        c->peer[host].rq_psn = a->rq_psn;
        return true;
    }
    if (token_is(&key, "alternate")) {
        if (!script_num(s, &v, 3, &path))
            return false;
        a->alt_av = sim_path(&s->sim, host, (unsigned)path);
        *mask |= QPA_ALT_PATH;
        return true;
    }
    if (!token_is(&key, "migration"))
        return text_fail(&s->err, t, "modify: '%.*s' is not understood", (int)t->len, t->p);
    *mask |= QPA_PATH_MIG_STATE;
    return script_mig_state(s, &v, &a->mig_state);
}

/* Execute "modify CONN STATE [psn=N] [alternate=PATH] [migration=STATE] [fails=E]", with the attributes that the
 * connection was created with. */
bool script_modify(struct script *s, unsigned host, const struct token *t, unsigned n)
{
    struct qp_attr a = {0};
    struct sim_conn *c;
    const struct ep_peer *p;
    uint32_t mask = QPA_STATE, required = 0, optional = 0;
    unsigned state = 0;
    int fails = 0;

    if (n < 2)
        return text_fail(&s->err, NULL, "modify: expected a connection and a state");
    if (!script_conn_of(s, t, &c))
        return false;
    while (state <= QPS_ERR && !token_is(&t[1], qp_state_str((enum qp_state)state)))
        state++;
    if (state > QPS_ERR)
        return text_fail(&s->err, &t[1], "there is no state '%.*s'", (int)t[1].len, t[1].p);
    if (script_is_dut(s, host)) {
        if (n > 3 || (n == 3 && !modify_word(s, host, c, &t[2], &a, &mask, &fails)))
            return n > 3 ? dut_lacks(s, "alternate paths are not tested") : false;
        if (state == QPS_RESET) /* the replica is joined again as well */
            ep_qp_modify(s->sim.ep[host], c->qp[host], &(struct qp_attr){0}, QPA_STATE, s->sim.now);
        return dut_posted(s, dut_modify(s, c, (enum qp_state)state), fails);
    }
    p = &c->peer[host];
    a = (struct qp_attr){.state = (uint8_t)state,
                         .access = p->access,
                         .port = 1,
                         .pkey = 0xffff,
                         .qkey = p->qkey,
                         .dest_qpn = p->qpn,
                         .rq_psn = p->rq_psn,
                         .sq_psn = p->sq_psn,
                         .path_mtu = p->path_mtu,
                         .max_rd_atomic = p->max_rd_atomic,
                         .max_dest_rd_atomic = p->max_dest_rd_atomic,
                         .min_rnr_timer = p->min_rnr_timer,
                         .timeout = p->timeout,
                         .retry_cnt = p->retry_cnt,
                         .rnr_retry = p->rnr_retry,
                         .alt_pkey = 0xffff,
                         .alt_timeout = p->timeout,
                         .av = p->av};
    for (unsigned i = 2; i < n; i++)
        if (!modify_word(s, host, c, &t[i], &a, &mask, &fails))
            return false;
    if (qp_transition(c->type, ep_qp(s->sim.ep[host], c->qp[host])->state, (enum qp_state)state, &required, &optional))
        mask |= required;
    int r = ep_qp_modify(s->sim.ep[host], c->qp[host], &a, mask, s->sim.now);
    if (r == -fails || fails == SCRIPT_MAY_FAIL)
        return true;
    if (fails)
        return script_fail(s, "the state should not change, but %s", r == 0 ? "it does" : strerror(-r));
    return script_fail(s, "the state does not change: %s", strerror(-r));
}
