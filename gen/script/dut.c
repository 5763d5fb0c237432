/* layer 3 (script): scenario files with a device under test as host b: each statement as lines of its agent. */
#include "gen/script/script_impl.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define DUT   1u         /* the device is host b */
#define CONNS 64         /* connections that a scenario may have */
#define NAME  16         /* of an object, with its NUL */
#define PIECE (1u << 20) /* bytes of memory that one line carries, at most */
#define CELLS 4096       /* most entries of a completion queue */

/* The session: names of the agent's objects. */
struct dut {
    struct buf line, said, bulk;
    uint32_t asked; /* requests; the ID of the latest */
    char why[120];  /* of the latest answer that is an error: its name and text */
    char pd[SCRIPT_PDS][NAME];
    struct {
        char pd[NAME], qp[NAME], cq[NAME], ah[NAME];
    } conn[CONNS]; /* by number - 1 */
    struct {
        char mem[NAME], key[NAME]; /* key: the region or window */
        uint64_t addr;             /* of the memory, in the agent */
        uint32_t lkey;
        bool type1;
    } mem[SCRIPT_MEMS];          /* as script.mem */
    char srq[SCRIPT_SRQS][NAME]; /* as script.srq */
    bool has_wc;
    struct wc wc; /* taken by the latest poll */
};

bool script_is_dut(const struct script *s, unsigned host)
{
    return s->dut && host == DUT;
}

bool dut_lacks(struct script *s, const char *what)
{
    s->unsupported = true;
    return script_fail(s, "the device under test: %s", what);
}

/* --- Lines ------------------------------------------------------------------------------------ */

/* The value of `key` among the words of a line, as text; "" if there is none. */
static void word_of(const char *line, const char *key, char *to, size_t size)
{
    struct token t[SCRIPT_WORDS], k, v;
    unsigned n = text_split(line, t, SCRIPT_WORDS);

    *to = '\0';
    for (unsigned i = 0; i < n && i < SCRIPT_WORDS; i++)
        if (token_key(&t[i], &k, &v) && token_is(&k, key) && v.len < size) {
            memcpy(to, v.p, v.len);
            to[v.len] = '\0';
        }
}

static uint64_t number_of(const char *line, const char *key)
{
    char text[32];

    word_of(line, key, text, sizeof text);
    return strtoull(text, NULL, 0);
}

/* The value whose name is `name`; 0xff: none has it. */
#define NAMED(type, str, name)                                                                                         \
    static uint8_t name(const char *text)                                                                              \
    {                                                                                                                  \
        for (unsigned i = 0; i < 32; i++)                                                                              \
            if (strcmp(text, str((type)i)) == 0)                                                                       \
                return (uint8_t)i;                                                                                     \
        return 0xff;                                                                                                   \
    }
NAMED(enum wc_status, wc_status_str, status_named)
NAMED(enum wc_opcode, wc_opcode_str, opcode_named)

static void note_wc(struct dut *d, const char *line)
{
    char text[64];
    struct wc *w = &d->wc;

    *w = (struct wc){.wr_id = number_of(line, "wr_id"),
                     .byte_len = (uint32_t)number_of(line, "byte_len"),
                     .qpn = (uint32_t)number_of(line, "qpn"),
                     .src_qp = (uint32_t)number_of(line, "src_qp"),
                     .imm_data = (uint32_t)number_of(line, "imm"),
                     .inv_rkey = (uint32_t)number_of(line, "inv"),
                     .when = (ns_t)number_of(line, "t")};
    word_of(line, "status", text, sizeof text);
    w->status = status_named(text);
    word_of(line, "opcode", text, sizeof text);
    w->opcode = opcode_named(text);
    word_of(line, "flags", text, sizeof text);
    w->flags = (uint8_t)((strstr(text, "grh") ? WC_GRH : 0) | (strstr(text, "with_imm") ? WC_WITH_IMM : 0) |
                         (strstr(text, "with_inv") ? WC_WITH_INV : 0) | (strstr(text, "solicited") ? WC_SOLICITED : 0));
    d->has_wc = true;
}

/* An event by the name that libibverbs gives it. */
static void note_event(struct script *s, const char *line)
{
    static const struct {
        const char *name;
        uint8_t type;
    } others[] = {{"SRQ_LIMIT_REACHED", EP_EV_SRQ_LIMIT}, {"QP_LAST_WQE_REACHED", EP_EV_LAST_WQE}};
    struct ep_event e = {.type = 0xff};
    char text[64];

    word_of(line, "name", text, sizeof text);
    for (unsigned i = 0; i <= EP_EV_PATH_MIG_ERR; i++)
        if (strcmp(text, ep_event_str((enum ep_event_type)i)) == 0)
            e.type = (uint8_t)i;
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        if (strcmp(text, others[i].name) == 0)
            e.type = others[i].type;
    if (e.type != 0xff && s->ev_tail[DUT] - s->ev_head[DUT] < SCRIPT_EVENTS)
        s->events[DUT][s->ev_tail[DUT]++ % SCRIPT_EVENTS] = e;
}

/* Take the lines that were said; the answer is the last one: NULL: it has not the ID of the request. */
static const char *take_lines(struct script *s)
{
    struct dut *d = s->dut;
    char id[16], *line = d->said.p, *next;
    const char *answer = NULL;
    int n = snprintf(id, sizeof id, "%u ", d->asked);

    buf_char(&d->said, '\0');
    for (line = d->said.p; line && *line; line = next) {
        next = line + strcspn(line, "\n");
        if (*next)
            *next++ = '\0';
        if (strncmp(line, "! wc ", 5) == 0)
            note_wc(d, line);
        else if (strncmp(line, "! event ", 8) == 0)
            note_event(s, line);
        else if (strncmp(line, id, (size_t)n) == 0)
            answer = line + n;
    }
    return answer;
}

/* The errno of an answer "err NAME TEXT". */
static int errno_named(const char *answer)
{
    static const int known[] = {EINVAL, ENOMEM, E2BIG, EBUSY, ENOSYS, EOPNOTSUPP, ETIMEDOUT};
    size_t n = strcspn(answer, " ");

    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        const char *name = strerrorname_np(known[i]);
        if (strlen(name) == n && memcmp(name, answer, n) == 0)
            return -known[i];
    }
    return -EIO;
}

/* Say the line in d->line, with bytes behind it: the answer, valid until the next line; 0 in *e, or what it failed
 * with. NULL with s->failed set: the session is broken. */
static const char *say(struct script *s, const void *data, size_t n, int *e)
{
    struct dut *d = s->dut;
    const char *a;

    d->said.len = d->bulk.len = 0;
    a = s->o->dut->ask(s->o->dut->user, buf_str(&d->line), data, n, &d->said, &d->bulk) ? take_lines(s) : NULL;
    if (!a || (strncmp(a, "ok", 2) != 0 && strncmp(a, "err ", 4) != 0)) {
        s->broken = true;
        script_fail(s, "the agent of the device under test does not answer");
        return NULL;
    }
    *e = *a == 'o' ? 0 : errno_named(a + 4);
    if (*e)
        snprintf(d->why, sizeof d->why, "%s", a + 4);
    return a;
}

/* Begin a line: its ID, then what `fmt` says. */
static void begin(struct script *s, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void begin(struct script *s, const char *fmt, ...)
{
    char text[400];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    s->dut->line.len = 0;
    buf_printf(&s->dut->line, "%u %s", ++s->dut->asked, text);
}

/* Fail with what the device answered to the line. */
static bool refused(struct script *s, int e)
{
    s->unsupported |= e == -ENOSYS || e == -EOPNOTSUPP;
    return script_fail(s, "the device under test: '%s': %s", strchr(buf_str(&s->dut->line), ' ') + 1, s->dut->why);
}

/* Say the line, which must work: the answer, or NULL with s->failed set. */
static const char *must(struct script *s)
{
    int e;
    const char *a = say(s, NULL, 0, &e);

    if (a && e) {
        refused(s, e);
        return NULL;
    }
    return a;
}

/* Likewise, and keep the name of the object that it makes. */
static const char *make(struct script *s, const char *kind, char name[NAME])
{
    const char *a = must(s);

    if (a)
        word_of(a, kind, name, NAME);
    return a;
}

bool dut_open(struct script *s)
{
    if (!s->o->dut || s->dut)
        return true;
    if (s->sim.addr[DUT].encap == ENCAP_IB || s->sim.net.port2[DUT])
        return dut_lacks(s, "neither native InfiniBand nor alternate paths are tested");
    s->dut = calloc(1, sizeof *s->dut);
    if (!s->dut || !s->o->dut->start(s->o->dut->user, &s->sim)) {
        s->broken = true;
        return script_fail(s, "the session with the device under test cannot be begun");
    }
    begin(s, "dev open");
    return must(s) != NULL;
}

void dut_close(struct script *s)
{
    struct dut *d = s->dut;

    if (!d)
        return;
    s->o->dut->stop(s->o->dut->user);
    buf_free(&d->line);
    buf_free(&d->said);
    buf_free(&d->bulk);
    free(d);
    s->dut = NULL;
}

/* --- Domains, memory, windows, shared receive queues ------------------------------------------ */

/* Name of the domain whose replica is `pd`; made when it is first named. NULL with s->failed set. */
static const char *pd_name(struct script *s, uint32_t pd)
{
    unsigned i = 0;

    while (i < SCRIPT_PDS - 1 && s->pd[DUT][i] != pd)
        i++;
    if (*s->dut->pd[i])
        return s->dut->pd[i];
    begin(s, "pd");
    return make(s, "pd", s->dut->pd[i]) ? s->dut->pd[i] : NULL;
}

/* Append " access=..." for the rights that agents know. */
static void put_access(struct buf *b, unsigned access)
{
    static const struct {
        const char *name;
        uint8_t bit;
    } rights[] = {{"local_write", ACCESS_LOCAL_WRITE}, {"remote_write", ACCESS_REMOTE_WRITE},
                  {"remote_read", ACCESS_REMOTE_READ}, {"remote_atomic", ACCESS_REMOTE_ATOMIC},
                  {"mw_bind", ACCESS_MW_BIND},         {"zero_based", ACCESS_ZERO_BASED}};
    char sep = '=';

    buf_puts(b, " access");
    for (size_t i = 0; i < ARRAY_LEN(rights); i++)
        if (access & rights[i].bit) {
            buf_printf(b, "%c%s", sep, rights[i].name);
            sep = ',';
        }
    buf_puts(b, sep == '=' ? "=-" : "");
}

/* Give the device the contents of memory `i`. */
static bool put_memory(struct script *s, unsigned i)
{
    const struct script_mem *m = &s->mem[i];
    int e;

    for (uint64_t at = 0, n; at < m->len; at += n) {
        n = m->len - at < PIECE ? m->len - at : PIECE;
        begin(s, "mem write mem=%s off=%llu data=%llu", s->dut->mem[i].mem, (unsigned long long)at,
              (unsigned long long)n);
        if (!say(s, m->p + at, n, &e))
            return false;
        if (e)
            return refused(s, e);
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
    begin(s, "mem len=%llu", (unsigned long long)(m->len ? m->len : 1));
    if (!domain || !(a = make(s, "mem", d->mem[i].mem)))
        return false;
    d->mem[i].addr = number_of(a, "addr");
    if (!put_memory(s, i))
        return false;
    begin(s, "mr pd=%s mem=%s len=%llu iova=0x%llx", domain, d->mem[i].mem, (unsigned long long)m->len,
          (unsigned long long)m->iova);
    put_access(&d->line, access);
    if (!(a = make(s, "mr", d->mem[i].key)))
        return false;
    m->key = (uint32_t)number_of(a, "rkey");
    d->mem[i].lkey = (uint32_t)number_of(a, "lkey");
    return true;
}

uint32_t script_lkey(const struct script *s, const struct script_mem *m)
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
        begin(s, "mem read mem=%s off=%llu len=%llu", d->mem[p->m - s->mem].mem, (unsigned long long)at,
              (unsigned long long)n);
        if (!must(s))
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

    if (!domain)
        return false;
    begin(s, "mw pd=%s type=%u", domain, type);
    if (!(a = make(s, "mw", d->mem[i].key)))
        return false;
    d->mem[i].type1 = type == 1;
    m->key = (uint32_t)number_of(a, "rkey");
    return true;
}

int dut_dereg(struct script *s, const struct script_mem *m)
{
    int e = -EIO;

    begin(s, "destroy object=%s", s->dut->mem[m - s->mem].key);
    return say(s, NULL, 0, &e) ? e : -EIO;
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
    begin(s, "srq pd=%s max_wr=%u max_sge=4", domain, depth);
    if (!make(s, "srq", d->srq[i]))
        return false;
    begin(s, "srq modify srq=%s limit=%u", d->srq[i], limit);
    return limit == 0 || must(s);
}

/* --- Queue pairs ------------------------------------------------------------------------------ */

static const char *qp_name(const struct script *s, const struct sim_conn *c)
{
    return s->dut->conn[c->number - 1].qp;
}

bool dut_qp(struct script *s, struct sim_conn *c, const struct sim_conn_config *cfg)
{
    static const char *const types[QP_TYPES] = {[QPT_RC] = "rc", [QPT_UC] = "uc", [QPT_UD] = "ud"};
    const char *domain = pd_name(s, cfg->pd[DUT]), *a;
    char *cq, *qp;
    uint32_t qpn, cells = cfg->cq_depth ? cfg->cq_depth : cfg->max_send_wr + cfg->max_recv_wr;

    if (!types[c->type] || c->number > CONNS)
        return dut_lacks(s, "XRC is not tested");
    if (cfg->qpn[DUT])
        return dut_lacks(s, "a device chooses its QPNs");
    cq = s->dut->conn[c->number - 1].cq;
    qp = s->dut->conn[c->number - 1].qp;
    begin(s, "cq n=%u", cells < CELLS ? cells : CELLS);
    if (!domain || !make(s, "cq", cq))
        return false;
    begin(s, "qp type=%s pd=%s cq=%s max_send_wr=%u max_recv_wr=%u max_send_sge=%u max_recv_sge=%u max_inline=%u",
          types[c->type], domain, cq, cfg->max_send_wr, cfg->max_recv_wr, cfg->max_sge, cfg->max_sge, cfg->max_inline);
    if (cfg->sig_all)
        buf_puts(&s->dut->line, " sig_all=1");
    for (unsigned i = 0; i < s->n_srq; i++)
        if (s->srq[i].host == DUT && s->srq[i].handle == cfg->srq[DUT])
            buf_printf(&s->dut->line, " srq=%s", s->dut->srq[i]);
    if (!(a = make(s, "qp", qp)))
        return false;
    strcpy(s->dut->conn[c->number - 1].pd, domain);
    qpn = (uint32_t)number_of(a, "qpn");
    c->peer[0].qpn = c->remote_qpn[0] = qpn;
    conns_set_qpn(event_conns(s->sim.events), c->number, DUT, qpn);
    return true;
}

/* Append the attributes that a queue pair of connection `c` needs to get to a state. */
static void put_attributes(struct script *s, const struct sim_conn *c, enum qp_state state, bool starts)
{
    const struct ep_peer *p = &c->peer[DUT];
    struct buf *b = &s->dut->line;

    if (state == QPS_INIT) {
        buf_puts(b, " pkey_index=0 port=1");
        if (c->type == QPT_UD)
            buf_printf(b, " qkey=0x%x", p->qkey);
        else
            put_access(b, p->access);
    }
    if (state == QPS_RTR && c->type != QPT_UD) {
        buf_printf(b, " path_mtu=%u dest_qpn=0x%x rq_psn=%u hop_limit=%u tclass=%u flow=%u dgid=", p->path_mtu, p->qpn,
                   p->rq_psn, p->av.hop_limit, p->av.tclass, p->av.flow);
        buf_ipv6(b, s->sim.addr[0].gid);
    }
    if (state == QPS_RTR && c->type == QPT_RC)
        buf_printf(b, " max_dest_rd_atomic=%u min_rnr_timer=%u", p->max_dest_rd_atomic, p->min_rnr_timer);
    if (state == QPS_RTS && starts)
        buf_printf(b, " sq_psn=%u", p->sq_psn);
    if (state == QPS_RTS && starts && c->type == QPT_RC)
        buf_printf(b, " timeout=%u retry_cnt=%u rnr_retry=%u max_rd_atomic=%u", p->timeout, p->retry_cnt, p->rnr_retry,
                   p->max_rd_atomic);
}

const char *dut_state(struct script *s, const struct sim_conn *c)
{
    static char state[NAME];
    const char *a;

    begin(s, "qp query qp=%s", qp_name(s, c));
    if (!(a = must(s)))
        return NULL;
    word_of(a, "state", state, sizeof state);
    return state;
}

int dut_modify(struct script *s, const struct sim_conn *c, enum qp_state state)
{
    const char *now = state == QPS_RTS ? dut_state(s, c) : "";
    bool starts = now && strcmp(now, "RTR") == 0;
    int e = -EIO;

    begin(s, "qp modify qp=%s state=%s", qp_name(s, c), qp_state_str(state));
    put_attributes(s, c, state, starts);
    return now && say(s, NULL, 0, &e) ? e : -EIO;
}

bool dut_join(struct script *s, const struct sim_conn *c)
{
    for (enum qp_state state = QPS_INIT; state <= QPS_RTS; state++) {
        int e = dut_modify(s, c, state);
        if (e)
            return s->failed ? false : refused(s, e);
    }
    if (c->type != QPT_UD)
        return true;
    begin(s, "ah pd=%s hop_limit=64 dgid=", s->dut->conn[c->number - 1].pd);
    buf_ipv6(&s->dut->line, s->sim.addr[0].gid);
    return make(s, "ah", s->dut->conn[c->number - 1].ah) != NULL;
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
    static const struct {
        const char *name;
        uint8_t bit;
    } names[] = {
        {"signaled", SEND_SIGNALED}, {"fence", SEND_FENCE}, {"solicited", SEND_SOLICITED}, {"inline", SEND_INLINE}};
    char sep = '=';

    buf_puts(b, " flags");
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (flags & names[i].bit) {
            buf_printf(b, "%c%s", sep, names[i].name);
            sep = ',';
        }
    buf_puts(b, sep == '=' ? "=-" : "");
}

int dut_post_recv(struct script *s, const struct sim_conn *c, const struct script_srq *q, const struct recv_wr *wr)
{
    int e = -EIO;

    if (q)
        begin(s, "post srq srq=%s wr_id=%llu", s->dut->srq[q - s->srq], (unsigned long long)wr->wr_id);
    else
        begin(s, "post recv qp=%s wr_id=%llu", qp_name(s, c), (unsigned long long)wr->wr_id);
    put_pieces(&s->dut->line, wr->sg_list, wr->num_sge);
    return say(s, NULL, 0, &e) ? e : -EIO;
}

int dut_post_send(struct script *s, const struct sim_conn *c, const struct send_wr *w)
{
    static const char *const ops[] = {
        "SEND",      "SEND_WITH_IMM",      "SEND_WITH_INV",        "RDMA_WRITE",   "RDMA_WRITE_WITH_IMM",
        "RDMA_READ", "ATOMIC_CMP_AND_SWP", "ATOMIC_FETCH_AND_ADD", "ATOMIC_WRITE", "FLUSH",
        "BIND_MW",   "LOCAL_INV"};
    struct buf *b = &s->dut->line;
    int e = -EIO;

    if (w->opcode >= ARRAY_LEN(ops))
        return dut_lacks(s, "agents post no such work"), -EOPNOTSUPP;
    begin(s, "post send qp=%s op=%s wr_id=%llu", qp_name(s, c), ops[w->opcode], (unsigned long long)w->wr_id);
    put_flags(b, w->flags);
    put_pieces(b, w->sg_list, w->num_sge);
    buf_printf(b, " raddr=0x%llx rkey=0x%x compare_add=0x%llx swap=0x%llx", (unsigned long long)w->remote_addr, w->rkey,
               (unsigned long long)w->compare_add, (unsigned long long)w->swap);
    if (w->opcode == WR_SEND_WITH_IMM || w->opcode == WR_RDMA_WRITE_WITH_IMM)
        buf_printf(b, " imm=0x%x", w->imm_data);
    if (w->opcode == WR_SEND_WITH_INV || w->opcode == WR_LOCAL_INV)
        buf_printf(b, " inv=0x%x", w->inv_rkey);
    if (c->type == QPT_UD)
        buf_printf(b, " ah=%s dest_qpn=0x%x qkey=0x%x", s->dut->conn[c->number - 1].ah, w->remote_qpn, w->remote_qkey);
    return say(s, NULL, 0, &e) ? e : -EIO;
}

/* The memory whose region has this L_Key. */
static const char *region_of(const struct script *s, uint32_t key)
{
    for (unsigned i = 0; i < s->n_mem; i++)
        if (s->mem[i].host == DUT && s->mem[i].p && s->mem[i].key == key)
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
    begin(s, "%s qp=%s wr_id=%llu mw=%s mr=%s mw_addr=0x%llx mw_len=%llu", type1 ? "mw bind" : "post send",
          qp_name(s, c), (unsigned long long)wr->wr_id, s->dut->mem[w - s->mem].key, region_of(s, wr->mr_key),
          (unsigned long long)wr->remote_addr, (unsigned long long)wr->mw_length);
    put_access(b, wr->mw_access);
    put_flags(b, wr->flags);
    if (!type1)
        buf_printf(b, " op=BIND_MW rkey=0x%x", wr->rkey);
    a = say(s, NULL, 0, &e);
    *key = a && type1 ? (uint32_t)number_of(a, "rkey") : wr->rkey;
    return a ? e : -EIO;
}

uint64_t dut_inline(const struct script *s, const struct script_mem *m)
{
    return s->dut->mem[m - s->mem].addr;
}

bool dut_posted(struct script *s, int r, int fails)
{
    if (s->failed || r == 0 || r == -fails)
        return !s->failed &&
               (r == -fails || script_fail(s, "posting should fail with %s, but it works", strerror(fails)));
    return refused(s, r);
}

/* --- Completions and events ------------------------------------------------------------------- */

bool dut_poll(struct script *s, const struct sim_conn *c, struct wc *wc)
{
    struct dut *d = s->dut;

    d->has_wc = false;
    begin(s, "poll cq=%s", d->conn[c->number - 1].cq);
    if (!must(s) || !d->has_wc)
        return false;
    *wc = d->wc;
    return true;
}

void dut_events(struct script *s)
{
    int e;

    begin(s, "wait event ms=0");
    say(s, NULL, 0, &e);
}
