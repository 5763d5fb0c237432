/* layer 3 (script): scenario files with a device under test as a host: each statement as lines of its agent. */
#include "gen/script/dut_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* --- Domains, memory, windows, shared receive queues ------------------------------------------ */

/* Name of the domain whose replica is `pd`; made when it is first named. NULL with s->failed set. */
static const char *pd_name(struct script *s, uint32_t pd)
{
    unsigned i = 0;

    while (i < SCRIPT_PDS - 1 && s->pd[s->dut->host][i] != pd)
        i++;
    if (*s->dut->pd[i])
        return s->dut->pd[i];
    dut_begin(s, "pd");
    return dut_make(s, "pd", s->dut->pd[i]) ? s->dut->pd[i] : NULL;
}

struct bit_name {
    const char *name;
    uint8_t bit;
};

/* Append " KEY=NAME,NAME", "-" for none of these bits. */
static void put_bits(struct buf *b, const char *key, unsigned bits, const struct bit_name *names, size_t n)
{
    char sep = '=';

    buf_printf(b, " %s", key);
    for (size_t i = 0; i < n; i++)
        if (bits & names[i].bit) {
            buf_printf(b, "%c%s", sep, names[i].name);
            sep = ',';
        }
    buf_puts(b, sep == '=' ? "=-" : "");
}

/* Append the rights that agents know. */
static void put_access(struct buf *b, unsigned access)
{
    static const struct bit_name names[] = {
        {"local_write", ACCESS_LOCAL_WRITE}, {"remote_write", ACCESS_REMOTE_WRITE},
        {"remote_read", ACCESS_REMOTE_READ}, {"remote_atomic", ACCESS_REMOTE_ATOMIC},
        {"mw_bind", ACCESS_MW_BIND},         {"zero_based", ACCESS_ZERO_BASED}};

    put_bits(b, "access", access, names, ARRAY_LEN(names));
}

/* Give the device the contents of memory `i`. */
static bool put_memory(struct script *s, unsigned i)
{
    const struct script_mem *m = &s->mem[i];
    int e;

    for (uint64_t at = 0, n; at < m->part; at += n) {
        n = m->part - at < PIECE ? m->part - at : PIECE;
        dut_begin(s, "mem write mem=%s off=%llu data=%llu", s->dut->mem[i].mem, (unsigned long long)at,
                  (unsigned long long)n);
        if (!dut_say(s, m->p + at, n, &e))
            return false;
        if (e)
            return dut_not_ready(s, e);
    }
    return true;
}

bool dut_mem(struct script *s, struct script_mem *m, uint32_t pd, unsigned access)
{
    struct dut *d = s->dut;
    unsigned i = (unsigned)(m - s->mem);
    const char *a, *domain = pd_name(s, pd);

    if (access & ACCESS_FLUSH_PERSISTENT)
        return dut_lacks(s, "agents register no persistent memory");
    dut_begin(s, "mem len=%llu", (unsigned long long)(m->len ? m->len : 1));
    if (m->part < m->len)
        buf_printf(&d->line, " repeat=%llu", (unsigned long long)m->part);
    if (!domain || !(a = dut_make(s, "mem", d->mem[i].mem)))
        return false;
    d->mem[i].addr = dut_number(a, "addr");
    if (!put_memory(s, i))
        return false;
    dut_begin(s, "mr pd=%s mem=%s len=%llu iova=0x%llx", domain, d->mem[i].mem, (unsigned long long)m->len,
              (unsigned long long)m->iova);
    put_access(&d->line, access);
    if (!(a = dut_make(s, "mr", d->mem[i].key)))
        return false;
    m->key = (uint32_t)dut_number(a, "rkey");
    d->mem[i].lkey = (uint32_t)dut_number(a, "lkey");
    dut_chose(s, SCRIPT_CHOSE_KEY, m->key);
    return true;
}

uint32_t script_lkey(struct script *s, const struct script_mem *m)
{
    return script_is_dut(s, m->host) ? s->dut->mem[m - s->mem].lkey : m->key;
}

bool dut_fetch(struct script *s, const struct script_place *p)
{
    struct dut *d = s->dut;
    uint64_t end = p->off + p->len;

    if (!p->m->p || end > p->m->len)
        return true;
    for (uint64_t at = p->off, n; at < end; at += n) {
        n = end - at < PIECE ? end - at : PIECE;
        dut_begin(s, "mem read mem=%s off=%llu len=%llu", d->mem[p->m - s->mem].mem, (unsigned long long)at,
                  (unsigned long long)n);
        if (!dut_must(s))
            return false;
        if (d->bulk.len != n)
            return script_fail(s, "the agent does not tell its memory");
        memcpy(p->m->p + at, d->bulk.p, n);
    }
    return true;
}

bool dut_window(struct script *s, struct script_mem *m, uint32_t pd, unsigned type)
{
    struct dut *d = s->dut;
    unsigned i = (unsigned)(m - s->mem);
    const char *a, *domain = pd_name(s, pd);

    if (!(d->flags & (type == 1 ? DEVICE_WINDOW1 : DEVICE_WINDOW2A | DEVICE_WINDOW2B)))
        return dut_lacks(s, "it has no memory windows of this type (device_cap_flags)");
    if (!domain)
        return false;
    dut_begin(s, "mw pd=%s type=%u", domain, type);
    if (!(a = dut_make(s, "mw", d->mem[i].key)))
        return false;
    d->mem[i].type1 = type == 1;
    m->key = (uint32_t)dut_number(a, "rkey");
    return true;
}

int dut_dereg(struct script *s, const struct script_mem *m)
{
    int e = -EIO;

    dut_begin(s, "destroy object=%s", s->dut->mem[m - s->mem].key);
    return dut_say(s, NULL, 0, &e) ? e : -EIO;
}

bool dut_access(struct script *s, struct script_mem *m, uint8_t access)
{
    unsigned i = (unsigned)(m - s->mem);
    const char *a;

    dut_begin(s, "mr rereg mr=%s", s->dut->mem[i].key);
    put_access(&s->dut->line, access);
    if (!(a = dut_must(s)))
        return false;
    m->old = m->key;
    m->key = (uint32_t)dut_number(a, "rkey");
    s->dut->mem[i].lkey = (uint32_t)dut_number(a, "lkey");
    return true;
}

bool dut_register(struct script *s, const struct script_mem *m, uint32_t times)
{
    const char *domain = pd_name(s, script_pd(s, m->host, 0)), *a;
    uint64_t done = 0;

    while (domain && done < times) { /* the agent ends a loop that takes long */
        dut_begin(s, "mr loop pd=%s mem=%s n=%llu", domain, s->dut->mem[m - s->mem].mem,
                  (unsigned long long)(times - done));
        if (!(a = dut_must(s)))
            return false;
        if (!dut_number(a, "n"))
            return script_fail(s, "the agent does not tell how often it has registered memory");
        done += dut_number(a, "n");
    }
    return domain != NULL;
}

bool dut_srq(struct script *s, const struct script_srq *q, uint32_t pd, uint32_t depth, uint32_t limit)
{
    struct dut *d = s->dut;
    unsigned i = (unsigned)(q - s->srq);
    const char *domain = pd_name(s, pd);

    if (!domain)
        return false;
    if (q->xrcd)
        return dut_lacks(s, "XRC is not tested");
    dut_begin(s, "srq pd=%s max_wr=%u max_sge=4", domain, depth);
    return dut_make(s, "srq", d->srq[i]) && (limit == 0 || dut_limit(s, q, limit));
}

bool dut_limit(struct script *s, const struct script_srq *q, uint32_t limit)
{
    dut_begin(s, "srq modify srq=%s limit=%u", s->dut->srq[q - s->srq], limit);
    return dut_must(s) != NULL;
}

/* --- Queue pairs ------------------------------------------------------------------------------ */

static const char *qp_name(const struct script *s, const struct sim_conn *c)
{
    return s->dut->conn[c->number - 1].qp;
}

/* The index of a P_Key, 0 for that at the begin of each table, in that of the device's port. */
static bool pkey_index(struct script *s, uint16_t pkey, uint32_t *index)
{
    const char *a;
    unsigned key;

    *index = 0;
    if (!pkey)
        return true;
    dut_begin(s, "pkey port=%u", s->dut->port);
    if (!(a = dut_must(s)))
        return false;
    for (a = strstr(a, " pkey="); a; a = strstr(a + 1, " pkey="))
        if (sscanf(a, " pkey=%4u,0x%4x", index, &key) == 2 && key == pkey)
            return true;
    return dut_lacks(s, pkey & 0x8000 ? "the table of its port has no such P_Key"
                                      : "the table of its port has no P_Key of a limited member");
}

bool dut_qp(struct script *s, struct sim_conn *c, const struct sim_conn_config *cfg, bool awrite, bool notify)
{
    static const char *const types[QP_TYPES] = {
        [QPT_RC] = "rc", [QPT_UC] = "uc", [QPT_UD] = "ud", [QPT_XRC_INI] = "xrc_send"};
    const char *domain = pd_name(s, cfg->pd[s->dut->host]), *a;
    char *cq, *qp;
    uint32_t qpn, cells = cfg->cq_depth ? cfg->cq_depth : cfg->max_send_wr + cfg->max_recv_wr;

    if (!sim_conn_requests(c, s->dut->host) || c->number > CONNS)
        return dut_lacks(s, "XRC targets are not tested");
    if (!pkey_index(s, cfg->peer[s->dut->host].pkey, &s->dut->conn[c->number - 1].pkey_index))
        return false;
    if (awrite && !(s->dut->more_flags & DEVICE_ATOMIC_WRITE))
        return dut_lacks(s, "it has no ATOMIC WRITE (device_cap_flags_ex)");
    if (cfg->qpn[s->dut->host])
        return dut_lacks(s, "a device chooses its QPNs");
    if (cfg->peer[s->dut->host].path_mtu > s->dut->mtu)
        return dut_lacks(s, "its port carries no path MTU of that size (active_mtu)");
    cq = s->dut->conn[c->number - 1].cq;
    qp = s->dut->conn[c->number - 1].qp;
    if (notify && !*s->dut->channel) {
        dut_begin(s, "channel");
        if (!dut_make(s, "channel", s->dut->channel))
            return false;
    }
    dut_begin(s, "cq n=%u", cells < CELLS ? cells : CELLS);
    if (notify)
        buf_printf(&s->dut->line, " channel=%s", s->dut->channel);
    if (!domain || !dut_make(s, "cq", cq))
        return false;
    dut_begin(s, "qp type=%s pd=%s cq=%s max_send_wr=%u max_recv_wr=%u max_send_sge=%u max_recv_sge=%u max_inline=%u",
              types[c->type], domain, cq, cfg->max_send_wr, cfg->max_recv_wr, cfg->max_sge, cfg->max_sge,
              cfg->max_inline);
    if (cfg->sig_all)
        buf_puts(&s->dut->line, " sig_all=1");
    if (awrite)
        buf_printf(&s->dut->line, " send_ops=0x%x", OPS_ATOMIC_WRITE);
    for (unsigned i = 0; i < s->n_srq; i++)
        if (s->srq[i].host == s->dut->host && s->srq[i].handle == cfg->srq[s->dut->host])
            buf_printf(&s->dut->line, " srq=%s", s->dut->srq[i]);
    if (!(a = dut_make(s, "qp", qp)))
        return false;
    strcpy(s->dut->conn[c->number - 1].pd, domain);
    qpn = (uint32_t)dut_number(a, "qpn");
    c->peer[s->dut->host ^ 1].qpn = c->remote_qpn[s->dut->host ^ 1] = qpn;
    dut_chose(s, SCRIPT_CHOSE_QPN, qpn);
    conns_set_qpn(event_conns(s->sim.events), c->number, s->dut->host, qpn);
    return true;
}

/* Append the path to a GID. */
static void put_path(struct script *s, unsigned hop_limit, const uint8_t gid[16])
{
    struct buf *b = &s->dut->line;

    buf_printf(b, " port_num=%u sgid_index=%u hop_limit=%u dgid=", s->dut->port, s->dut->sgid_index, hop_limit);
    buf_ipv6(b, gid);
}

/* Append the path to the other end of connection `c`. */
static void put_path_of(struct script *s, const struct sim_conn *c)
{
    struct link_addr far = sim_addr(&s->sim, c, c->host[0] == s->dut->host, 1);

    put_path(s, c->peer[s->dut->host].av.hop_limit, far.gid);
}

/* Append the attributes that a queue pair of connection `c` needs to get to a state. */
static void put_attributes(struct script *s, const struct sim_conn *c, enum qp_state state, bool starts)
{
    const struct ep_peer *p = &c->peer[s->dut->host];
    struct buf *b = &s->dut->line;

    if (state == QPS_INIT) {
        buf_printf(b, " pkey_index=%u port=%u", s->dut->conn[c->number - 1].pkey_index, s->dut->port);
        if (c->type == QPT_UD)
            buf_printf(b, " qkey=0x%x", p->qkey);
        else
            put_access(b, p->access);
    }
    if (state == QPS_RTR && c->type != QPT_UD) {
        buf_printf(b, " path_mtu=%u dest_qpn=0x%x rq_psn=%u tclass=%u flow=%u", p->path_mtu, p->qpn, p->rq_psn,
                   p->av.tclass, p->av.flow);
        put_path_of(s, c);
    }
    if (state == QPS_RTR && c->type == QPT_RC)
        buf_printf(b, " max_dest_rd_atomic=%u min_rnr_timer=%u", p->max_dest_rd_atomic, p->min_rnr_timer);
    if (state == QPS_SQD)
        buf_puts(b, " en_sqd_async_notify=1");
    if (state == QPS_RTS && starts)
        buf_printf(b, " sq_psn=%u", p->sq_psn);
    if (state == QPS_RTS && starts && (c->type == QPT_RC || c->type == QPT_XRC_INI))
        buf_printf(b, " timeout=%u retry_cnt=%u rnr_retry=%u max_rd_atomic=%u", p->timeout, p->retry_cnt, p->rnr_retry,
                   p->max_rd_atomic);
}

const char *dut_state(struct script *s, const struct sim_conn *c)
{
    static char state[DUT_NAME];
    const char *a;

    dut_begin(s, "qp query qp=%s", qp_name(s, c));
    if (!(a = dut_must(s)))
        return NULL;
    dut_word(a, "state", state, sizeof state);
    return state;
}

int dut_modify(struct script *s, const struct sim_conn *c, enum qp_state state)
{
    const char *now = state == QPS_RTS ? dut_state(s, c) : "";
    bool starts = now && strcmp(now, "RTR") == 0;
    int e = -EIO;

    dut_begin(s, "qp modify qp=%s state=%s", qp_name(s, c), qp_state_str(state));
    put_attributes(s, c, state, starts);
    return now && dut_say(s, NULL, 0, &e) ? e : -EIO;
}

bool dut_join(struct script *s, const struct sim_conn *c)
{
    for (enum qp_state state = QPS_INIT; state <= QPS_RTS; state++) {
        int e = dut_modify(s, c, state);
        if (e)
            return s->failed ? false : dut_not_ready(s, e);
    }
    return c->type != QPT_UD || dut_address(s, c);
}

static bool address(struct script *s, const struct sim_conn *c, const uint8_t gid[16], char name[DUT_NAME])
{
    dut_begin(s, "ah pd=%s", s->dut->conn[c->number - 1].pd);
    buf_printf(&s->dut->line, " tclass=%u flow=%u", c->peer[s->dut->host].av.tclass, c->peer[s->dut->host].av.flow);
    put_path(s, c->peer[s->dut->host].av.hop_limit, gid);
    return dut_make(s, "ah", name) != NULL;
}

bool dut_address(struct script *s, const struct sim_conn *c)
{
    struct link_addr far = sim_addr(&s->sim, c, c->host[0] == s->dut->host, 1);

    return address(s, c, far.gid, s->dut->conn[c->number - 1].ah);
}

bool dut_group(struct script *s, const struct sim_conn *c, const uint8_t gid[16])
{
    return address(s, c, gid, s->dut->conn[c->number - 1].group);
}

/* --- Work ------------------------------------------------------------------------------------- */

static void put_pieces(struct buf *b, const struct sge *sge, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        buf_printf(b, "%s0x%llx:%u:0x%x", i ? "," : " sge=", (unsigned long long)sge[i].addr, sge[i].length,
                   sge[i].lkey);
}

/* Append " flags=...". */
static void put_flags(struct buf *b, unsigned flags)
{
    static const struct bit_name names[] = {
        {"signaled", SEND_SIGNALED}, {"fence", SEND_FENCE}, {"solicited", SEND_SOLICITED}, {"inline", SEND_INLINE}};

    put_bits(b, "flags", flags, names, ARRAY_LEN(names));
}

int dut_post_recv(struct script *s, const struct sim_conn *c, const struct script_srq *q, const struct recv_wr *wr)
{
    int e = -EIO;

    if (q)
        dut_begin(s, "post srq srq=%s wr_id=%llu", s->dut->srq[q - s->srq], (unsigned long long)wr->wr_id);
    else
        dut_begin(s, "post recv qp=%s wr_id=%llu", qp_name(s, c), (unsigned long long)wr->wr_id);
    put_pieces(&s->dut->line, wr->sg_list, wr->num_sge);
    return dut_say(s, NULL, 0, &e) ? e : -EIO;
}

bool dut_carries(struct script *s, const struct send_wr *w)
{
    uint64_t bytes = 0;

    for (unsigned i = 0; i < w->num_sge; i++)
        bytes += w->sg_list[i].length;
    return !s->dut->max_msg || bytes <= s->dut->max_msg ||
           dut_lacks(s, "its port carries no message of that length (max_msg_sz)");
}

/* The opcodes that agents post, by enum wr_opcode. */
static const char *const send_ops[] = {
    "SEND",      "SEND_WITH_IMM",      "SEND_WITH_INV",        "RDMA_WRITE",   "RDMA_WRITE_WITH_IMM",
    "RDMA_READ", "ATOMIC_CMP_AND_SWP", "ATOMIC_FETCH_AND_ADD", "ATOMIC_WRITE", "FLUSH",
    "BIND_MW",   "LOCAL_INV"};

/* Append a post of *w. */
static void put_send(struct script *s, const struct sim_conn *c, const struct send_wr *w, bool group, struct buf *b)
{
    buf_printf(b, "post send qp=%s op=%s wr_id=%llu", qp_name(s, c), send_ops[w->opcode], (unsigned long long)w->wr_id);
    put_flags(b, w->flags);
    put_pieces(b, w->sg_list, w->num_sge);
    buf_printf(b, " raddr=0x%llx rkey=0x%x compare_add=0x%llx swap=0x%llx", (unsigned long long)w->remote_addr, w->rkey,
               (unsigned long long)w->compare_add, (unsigned long long)w->swap);
    if (w->opcode == WR_SEND_WITH_IMM || w->opcode == WR_RDMA_WRITE_WITH_IMM)
        buf_printf(b, " imm=0x%x", w->imm_data);
    if (w->opcode == WR_SEND_WITH_INV || w->opcode == WR_LOCAL_INV)
        buf_printf(b, " inv=0x%x", w->inv_rkey);
    if (c->type == QPT_XRC_INI)
        buf_printf(b, " srqn=0x%x", w->remote_srqn);
    if (c->type == QPT_UD)
        buf_printf(b, " ah=%s dest_qpn=0x%x qkey=0x%x",
                   group ? s->dut->conn[c->number - 1].group : s->dut->conn[c->number - 1].ah, w->remote_qpn,
                   w->remote_qkey);
}

#define BATCH 256 /* posts that are said at once */

/* Post what is held back. 0 or a negative errno. */
static int release(struct script *s)
{
    struct dut *d = s->dut;
    const char *a;
    int e = -EIO;

    if (!d->n_held)
        return 0;
    if (d->n_held == 1) {
        dut_begin(s, "%s", buf_str(&d->held) + strlen("\n0 "));
    } else {
        dut_begin(s, "batch n=%u", d->n_held);
        buf_mem(&d->line, d->held.p, d->held.len);
    }
    d->held.len = d->n_held = 0;
    a = dut_say(s, NULL, 0, &e);
    s->posted[d->host] = a ? (ns_t)dut_number(a, "t") : 0;
    return e;
}

int dut_post_send(struct script *s, const struct sim_conn *c, const struct send_wr *w, bool group, uint64_t times)
{
    struct dut *d = s->dut;
    struct buf post = {0};
    int e = 0;

    if (w->opcode >= ARRAY_LEN(send_ops))
        return dut_lacks(s, "agents post no such work"), -EOPNOTSUPP;
    if (!dut_carries(s, w))
        return -EOPNOTSUPP;
    put_send(s, c, w, group, &post);
    e = post.err ? -ENOMEM : 0;
    for (; e == 0 && times; times--) {
        buf_printf(&d->held, "\n0 %s", buf_str(&post));
        if (++d->n_held == BATCH || (times == 1 && !d->holds))
            e = release(s);
    }
    buf_free(&post);
    return d->held.err ? -ENOMEM : e;
}

bool script_hold(struct script *s, unsigned host, bool holds)
{
    if (!script_is_dut(s, host))
        return true; /* what is posted there is posted at once */
    s->dut->holds = holds;
    return dut_posted(s, release(s), 0);
}

/* The memory whose region has this L_Key. */
static const char *region_of(const struct script *s, uint32_t key)
{
    for (unsigned i = 0; i < s->n_mem; i++)
        if (s->mem[i].host == s->dut->host && s->mem[i].p && s->mem[i].key == key)
            return s->dut->mem[i].key;
    return "-";
}

int dut_post_bind(struct script *s, const struct sim_conn *c, const struct script_mem *w, const struct send_wr *wr,
                  uint32_t *key)
{
    bool type1 = s->dut->mem[w - s->mem].type1;
    struct buf *b = &s->dut->line;
    const char *a;
    int e = -EIO;

    if (wr->opcode != WR_BIND_MW)
        return dut_lacks(s, "agents have no fast registration"), -EOPNOTSUPP;
    dut_begin(s, "%s qp=%s wr_id=%llu mw=%s mr=%s mw_addr=0x%llx mw_len=%llu", type1 ? "mw bind" : "post send",
              qp_name(s, c), (unsigned long long)wr->wr_id, s->dut->mem[w - s->mem].key, region_of(s, wr->mr_key),
              (unsigned long long)wr->remote_addr, (unsigned long long)wr->mw_length);
    put_access(b, wr->mw_access);
    put_flags(b, wr->flags);
    if (!type1)
        buf_printf(b, " op=BIND_MW rkey=0x%x", wr->rkey);
    a = dut_say(s, NULL, 0, &e);
    *key = a && type1 ? (uint32_t)dut_number(a, "rkey") : wr->rkey;
    return a ? e : -EIO;
}

uint64_t dut_inline(const struct script *s, const struct script_mem *m)
{
    return s->dut->mem[m - s->mem].addr;
}

bool dut_posted(struct script *s, int r, int fails)
{
    if (fails == SCRIPT_MAY_FAIL)
        return !s->failed;
    if (s->failed || r == 0 || r == -fails)
        return !s->failed &&
               (r == -fails || script_fail(s, "posting should fail with %s, but it works", strerror(fails)));
    return dut_refused(s, r);
}

bool dut_arm(struct script *s, const struct sim_conn *c, bool solicited)
{
    dut_begin(s, "cq arm cq=%s solicited=%u", s->dut->conn[c->number - 1].cq, solicited);
    return dut_must(s) != NULL;
}

/* --- Completions and events ------------------------------------------------------------------- */

bool dut_poll(struct script *s, const struct sim_conn *c, struct wc *wc)
{
    struct dut *d = s->dut;

    d->has_wc = false;
    dut_begin(s, "poll cq=%s", d->conn[c->number - 1].cq);
    if (!dut_must(s) || !d->has_wc)
        return false;
    *wc = d->wc;
    return true;
}

void dut_events(struct script *s)
{
    int e;

    dut_begin(s, "wait event ms=0");
    dut_say(s, NULL, 0, &e);
}
