/* layer 3 (script): scenario files: hosts, network, queue pairs. */
#include "gen/script/script_impl.h"

#include "gen/endpoint/faults.h"

#include <stdio.h>

bool script_seed(struct script *s, const struct token *t, unsigned n)
{
    if (n != 1)
        return text_fail(&s->err, t, "seed: expected one number");
    prng_seed(&s->prng, 0);
    if (!script_num(s, t, UINT64_MAX, &s->o->sim.seed))
        return false;
    prng_seed(&s->prng, s->o->sim.seed ^ 0x5c417);
    return true;
}

bool script_net(struct script *s, const struct token *t, unsigned n)
{
    unsigned dirs = 3;

    if (s->o->live && s->o->live->middle)
        return dut_lacks(s, "the network between two devices is a real one");

    if (n && (token_is(t, "a>b") || token_is(t, "b>a"))) {
        dirs = *t->p == 'a' ? 1 : 2;
        t++;
        n--;
    }
    return n ? net_parse(&s->o->sim.net, t, n, dirs, &s->err)
             : text_fail(&s->err, NULL, "net: expected words such as loss=1%%");
}

bool script_event(struct script *s, const struct token *t, unsigned n)
{
    char label[40];

    snprintf(label, sizeof label, "of line %u", s->line);
    return event_add(s->o->sim.events, t, n, label, &s->err);
}

static bool host_fault(struct script *s, struct ep_config *c, unsigned h, const struct token *v)
{
    char id[16] = "";

    memcpy(id, v->p, min_u32(v->len, sizeof id - 1));
    if (!fault_find(rule_find(id)) || c->n_faults == FAULTS_MAX)
        return text_fail(&s->err, v, "fault: no rule '%.*s' that can be broken", (int)v->len, v->p);
    s->faults[h][c->n_faults++] = rule_find(id);
    c->faults = s->faults[h];
    return true;
}

static bool host_policy(struct script *s, struct ep_config *c, unsigned h, const struct token *key,
                        const struct token *v)
{
    struct token name, rest = {"0", 1, 0}, arg, wait = {"0", 1, 0};
    char word[24] = "";

    if (s->o->dut[h])
        return dut_lacks(s, "no one can choose how a device responds");
    token_cut(v, '/', &name, &rest);
    token_cut(&rest, '/', &arg, &wait);
    memcpy(word, name.p, min_u32(name.len, sizeof word - 1));
    if (token_is(key, "ack")) {
        c->policies.ack = ack_policy_find(word);
        return (c->policies.ack && token_size(&arg, &c->policies.ack_arg) &&
                token_time(&wait, &c->policies.ack_wait)) ||
               text_fail(&s->err, v, "ack: expected every, coalesce/N, coalesce/N/TIME or delay/NS, found '%.*s'",
                         (int)v->len, v->p);
    }
    if (token_is(key, "answer"))
        return token_time(v, &c->policies.answer_wait) ||
               text_fail(&s->err, v, "answer: expected a time such as 5us, found '%.*s'", (int)v->len, v->p);
    return script_num(s, v, 0x7fffff, &c->policies.window_arg);
}

/* addresses=N: the connections take them in turn. */
static bool host_addresses(struct script *s, unsigned h, const struct token *v)
{
    struct ep_config *c = &s->o->sim.ep[h];
    uint64_t n;

    if (!token_u64(v, &n) || n < 1 || n > SIM_ADDRS_MAX)
        return text_fail(&s->err, v, "addresses: expected a number from 1 to %u, found '%.*s'", SIM_ADDRS_MAX,
                         (int)v->len, v->p);
    if (s->o->dut[h])
        return dut_lacks(s, "no one can choose how many addresses a device has");
    if ((s->o->live && !s->o->dut[1]) || c->addr.encap == ENCAP_IB || c->two_ports)
        return text_fail(&s->err, v, "addresses: %s",
                         s->o->live ? "an interface has its own" : "only with GIDs, and with one path");
    if (s->o->live && !script_live_has(s->o->live, h, (uint16_t)n))
        return dut_lacks(s, "the test needs a tester with more addresses: --addresses");
    if (s->o->live) {
        c->addrs = (uint16_t)n;
        return true;
    }
    sim_config_many(&s->o->sim, h, (uint16_t)n, !gid_is_ipv4(c->addr.gid));
    return true;
}

/* cc=NAME:PARAM=VALUE,... and cnp=PARAM=VALUE,... */
static bool host_congestion(struct script *s, struct ep_congestion *c, const struct token *key, const struct token *v)
{
    char text[512];
    bool good;

    if (v->len >= sizeof text)
        return text_fail(&s->err, v, "%.*s: too long", (int)key->len, key->p);
    memcpy(text, v->p, v->len);
    text[v->len] = 0;
    if (!c->cnps)
        c->np = np_config_default();
    if (token_is(key, "cnp")) {
        good = np_parse(&c->np, text, &s->err);
        c->cnps = true;
    } else {
        good = cc_parse(&c->cc, text, &s->err);
        if (good && ep_cc_lacks(c->cc.scheme, false))
            return text_fail(&s->err, v, "cc: this scheme needs %s: only `rdmagen sim --topology` has them",
                             ep_cc_lacks(c->cc.scheme, false));
        if (good && !c->cnps && c->cc.scheme->np)
            np_parse(&c->np, c->cc.scheme->np, &s->err);
        c->cnps |= good && c->cc.scheme->needs & CC_NEEDS_CNP;
    }
    s->err.col += good ? 0 : v->col - 1;
    return good;
}

static bool host_word(struct script *s, struct ep_config *c, unsigned h, const struct token *t)
{
    struct token key, v;
    uint64_t u;

    if (token_is(t, "credits")) {
        c->credits = true;
    } else if (token_is(t, "rocev1") || token_is(t, "ib")) {
        if (token_is(t, "ib") && c->addrs)
            return text_fail(&s->err, t, "host: LIDs are not addresses=");
        c->addr.encap = token_is(t, "ib") ? ENCAP_IB : ENCAP_ROCEV1;
    } else if (token_is(t, "ipv4")) {
        return script_wants_ipv4(s);
    } else if (token_is(t, "ipv6")) {
        if (s->o->live) /* keep the real address */
            return true;
        if (c->addrs)
            return text_fail(&s->err, t, "host: ipv6 stands before addresses=");
        memcpy(c->addr.gid, (uint8_t[16]){0x20, 0x01, 0x0d, 0xb8, [15] = (uint8_t)(h + 1)}, 16);
    } else if (token_is(t, "rxe") || token_is(t, "nv")) {
        c->profile = token_is(t, "nv") ? EP_NV : EP_RXE;
    } else if (token_is(t, "nocheck")) {
        c->no_self_check = true;
    } else if (!token_key(t, &key, &v)) {
        return text_fail(&s->err, t, "host: '%.*s' is not understood", (int)t->len, t->p);
    } else if (token_is(&key, "fault")) {
        return host_fault(s, c, h, &v);
    } else if (token_is(&key, "ack") || token_is(&key, "answer") || token_is(&key, "window")) {
        return host_policy(s, c, h, &key, &v);
    } else if (token_is(&key, "cc") || token_is(&key, "cnp")) {
        return host_congestion(s, &c->congestion, &key, &v);
    } else if (token_is(&key, "vlan")) {
        c->addr.has_vlan = true;
        if (!script_num(s, &v, 4094, &u))
            return false;
        c->addr.vlan = (uint16_t)u;
    } else if (token_is(&key, "paths")) {
        if (!script_num(s, &v, 2, &u))
            return false;
        if (u == 2 && c->addrs)
            return text_fail(&s->err, &v, "paths: a host with addresses= has one");
        c->two_ports = u == 2;
    } else if (token_is(&key, "addresses")) {
        return host_addresses(s, h, &v);
    } else if (token_is(&key, "apr")) {
        if (!script_num(s, &v, 255, &u))
            return false;
        s->o->sim.apr[h] = (uint8_t)u;
    } else if (token_is(&key, "mtu")) {
        if (!script_num(s, &v, 4096, &u))
            return false;
        c->mtu = (uint16_t)u;
    } else {
        return text_fail(&s->err, t, "host: '%.*s' is not understood", (int)key.len, key.p);
    }
    return true;
}

bool script_host(struct script *s, const struct token *t, unsigned n)
{
    unsigned from = 0, to = 1;

    if (n == 0)
        return text_fail(&s->err, NULL, "host: expected a, b or both");
    if (!token_is(t, "both")) {
        if (!script_host_of(s, t, &from))
            return false;
        to = from;
    }
    for (unsigned h = from; h <= to; h++)
        for (unsigned i = 1; i < n; i++)
            if (!host_word(s, &s->o->sim.ep[h], h, &t[i]))
                return false;
    return true;
}

uint32_t script_pd(struct script *s, unsigned host, unsigned i)
{
    if (!s->pd[host][i])
        s->pd[host][i] = ep_pd_alloc(s->sim.ep[host]);
    return s->pd[host][i];
}

bool script_take_pd(struct script *s, const struct token *v, unsigned *pd)
{
    uint64_t u = 0;
    bool good = script_num(s, v, SCRIPT_PDS - 1, &u);

    *pd = (unsigned)u;
    return good;
}

/* --- Queue pairs ------------------------------------------------------------------------------ */

/* Words of a "qp" line that are not attributes of queue pairs. */
struct qp_line {
    bool fresh;  /* "new": stay in RESET */
    bool cm;     /* "cm": connect later by the connection manager */
    bool awrite; /* "awrite": a device under test has to be told */
    bool notify; /* "notify": likewise */
};

uint32_t script_xrcd(struct script *s, unsigned host, unsigned i)
{
    if (!s->xrcd[host][i])
        s->xrcd[host][i] = ep_xrcd_alloc(s->sim.ep[host]);
    return s->xrcd[host][i];
}

/* Parse "A/B" for hosts a and b, or one value for both. */
static bool both_hosts(struct script *s, const struct token *v, uint64_t max, uint64_t u[2])
{
    struct token a, b;

    if (token_cut(v, '/', &a, &b))
        return script_num(s, &a, max, &u[0]) && script_num(s, &b, max, &u[1]);
    if (!script_num(s, v, max, &u[0]))
        return false;
    u[1] = u[0];
    return true;
}

/* Keys of one-byte members of struct ep_peer. */
static const struct {
    const char *key;
    uint64_t max;
    size_t at;
} peer_bytes[] = {
    {"timeout", 31, offsetof(struct ep_peer, timeout)},
    {"retry", 7, offsetof(struct ep_peer, retry_cnt)},
    {"rnr_retry", 7, offsetof(struct ep_peer, rnr_retry)},
    {"rnr_timer", 31, offsetof(struct ep_peer, min_rnr_timer)},
    {"depth", 255, offsetof(struct ep_peer, max_rd_atomic)},
    {"resources", 255, offsetof(struct ep_peer, max_dest_rd_atomic)},
    {"tos", 255, offsetof(struct ep_peer, av.tclass)},
    {"sl", 15, offsetof(struct ep_peer, av.sl)},
    {"hops", 255, offsetof(struct ep_peer, av.hop_limit)},
};

/* Join the queue pairs of a connection; on devices under test first, so that they are ready. */
static bool join(struct script *s, const struct token *t, struct sim_conn *c)
{
    int err;

    if (!script_exchange(s, c))
        return false;
    for (unsigned h = 0; h < NET_HOSTS; h++)
        if (script_is_dut(s, h) && !dut_join(s, c))
            return false;
    err = sim_conn_join(&s->sim, c);
    return err == 0 || text_fail(&s->err, t, "the queue pairs cannot be joined: %s", strerror(-err));
}

static bool qp_srq(struct script *s, struct sim_conn_config *c, const struct token *v)
{
    struct token host, name;
    unsigned h;

    if (!token_cut(v, '.', &host, &name))
        return text_fail(&s->err, v, "srq: expected HOST.NAME");
    if (!script_host_of(s, &host, &h))
        return false;
    struct script_srq *q = script_srq_of(s, h, &name);
    if (!q)
        return false;
    c->srq[h] = q->handle;
    c->xrcd = c->xrcd ? c->xrcd : q->xrcd;
    return true;
}

static bool qp_key(struct script *s, struct sim_conn_config *c, const struct token *key, const struct token *v)
{
    uint64_t u[2];
    uint8_t access;

    for (size_t i = 0; i < ARRAY_LEN(peer_bytes); i++)
        if (token_is(key, peer_bytes[i].key)) {
            if (!both_hosts(s, v, peer_bytes[i].max, u))
                return false;
            for (unsigned h = 0; h < NET_HOSTS; h++)
                ((uint8_t *)&c->peer[h])[peer_bytes[i].at] = (uint8_t)u[h];
            return true;
        }
    if (token_is(key, "srq"))
        return qp_srq(s, c, v);
    if (token_is(key, "xrc")) {
        if (!script_num(s, v, SCRIPT_PDS - 1, u))
            return false;
        c->xrcd = script_xrcd(s, c->initiator ^ 1, (unsigned)u[0]);
        return true;
    }
    if (token_is(key, "access")) {
        if (!script_access(s, v, &access))
            return false;
        c->peer[0].access = c->peer[1].access = access & ACCESS_REMOTE;
        return true;
    }
    if (!both_hosts(s, v, UINT32_MAX, u))
        return false;
    for (unsigned h = 0; h < NET_HOSTS; h++) {
        if (token_is(key, "psn"))
            c->psn[h] = (uint32_t)u[h] & 0xffffff;
        else if (token_is(key, "qpn"))
            c->qpn[h] = (uint32_t)u[h];
        else if (token_is(key, "mtu"))
            c->peer[h].path_mtu = (uint16_t)u[h];
        else if (token_is(key, "qkey"))
            c->peer[h].qkey = (uint32_t)u[h];
        else if (token_is(key, "pkey") && u[h] <= UINT16_MAX)
            c->peer[h].pkey = (uint16_t)u[h];
        else if (token_is(key, "sport"))
            c->peer[h].av.sport = (uint16_t)u[h];
        else if (token_is(key, "pd") && u[h] < SCRIPT_PDS)
            c->pd[h] = script_pd(s, h, (unsigned)u[h]);
        else if (h == 0 && token_is(key, "sq"))
            c->max_send_wr = (uint32_t)u[0];
        else if (h == 0 && token_is(key, "rq"))
            c->max_recv_wr = (uint32_t)u[0];
        else if (h == 0 && token_is(key, "sge"))
            c->max_sge = (uint16_t)u[0];
        else if (h == 0 && token_is(key, "inline"))
            c->max_inline = (uint32_t)u[0];
        else if (h == 0 && token_is(key, "cq"))
            c->cq_depth = (uint32_t)u[0];
        else if (h == 0)
            return text_fail(&s->err, key, "qp: '%.*s' is not understood", (int)key->len, key->p);
    }
    return true;
}

static bool qp_words(struct script *s, struct sim_conn_config *c, struct qp_line *l, const struct token *t, unsigned n)
{
    struct token key, v;

    for (unsigned i = 0; i < n; i++) {
        if (token_is(&t[i], "new"))
            l->fresh = true;
        else if (token_is(&t[i], "cm"))
            l->cm = true;
        else if (token_is(&t[i], "awrite"))
            l->awrite = true;
        else if (token_is(&t[i], "notify"))
            l->notify = true;
        else if (token_is(&t[i], "alternate"))
            c->alternate = true;
        else if (token_is(&t[i], "back") && c->type == QPT_XRC_INI)
            c->initiator = 1;
        else if (token_is(&t[i], "grh"))
            c->peer[0].av.grh = c->peer[1].av.grh = true;
        else if (!token_key(&t[i], &key, &v))
            return text_fail(&s->err, &t[i], "qp: '%.*s' is not understood", (int)t[i].len, t[i].p);
        else if (!qp_key(s, c, &key, &v))
            return false;
    }
    return true;
}

bool script_qp(struct script *s, const struct token *t, unsigned n)
{
    static const char *const types[] = {"rc", "uc", "ud", "xrc"};
    struct sim_conn_config c;
    struct qp_line l = {0};
    struct sim_conn *conn;
    uint64_t number;
    unsigned type = 0;
    int err;

    if (n < 2 || !token_u64(t, &number) || number != s->sim.n_conns + 1)
        return text_fail(&s->err, n ? t : NULL, "qp: expected the number %u and rc, uc, ud or xrc", s->sim.n_conns + 1);
    while (type < ARRAY_LEN(types) && !token_is(&t[1], types[type]))
        type++;
    if (type == ARRAY_LEN(types))
        return text_fail(&s->err, &t[1], "qp: expected rc, uc, ud or xrc, found '%.*s'", (int)t[1].len, t[1].p);
    sim_conn_config_init(&c, (enum qp_type)type, SCRIPT_MTU);
    c.max_sge = 4;
    c.max_inline = 256;
    for (unsigned h = 0; h < NET_HOSTS; h++) {
        c.pd[h] = script_pd(s, h, 0);
        if (s->o->live && (s->dut || s->o->live->lenient))
            c.peer[h].timeout = SCRIPT_LIVE_TIMEOUT;
        c.psn[h] = s->o->has_psn ? s->o->psn : (uint32_t)prng_next(&s->prng) & 0xffffff;
    }
    if (!qp_words(s, &c, &l, t + 2, n - 2))
        return false;
    if (s->o->live && s->o->live->live && c.peer[0].path_mtu > s->o->live->live->mtu)
        return s->dut ? dut_lacks(s, "this interface carries no path MTU of that size")
                      : text_fail(&s->err, t, "the interface carries a path MTU of %u bytes at most",
                                  s->o->live->live->mtu);
    conn = sim_conn_add(&s->sim, &c, &err);
    if (!conn)
        return text_fail(&s->err, t, "the queue pairs cannot be created: %s", strerror(-err));
    for (unsigned h = 0; h < NET_HOSTS; h++)
        if (script_is_dut(s, h) && !dut_qp(s, conn, &c, l.awrite, l.notify))
            return false;
    return l.fresh || l.cm || join(s, t, conn);
}

bool script_join(struct script *s, const struct token *t, unsigned n)
{
    struct sim_conn *c;

    if (n != 1)
        return text_fail(&s->err, NULL, "join: expected the number of a connection");
    return script_conn_of(s, t, &c) && join(s, t, c);
}
