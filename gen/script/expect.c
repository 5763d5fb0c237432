/* layer 3 (script): scenario files: expected completions, events, memory, states and counters. */
#include "gen/script/script_impl.h"

#include <stdio.h>

#define QUIET (100 * NS_PER_MS) /* "run" against a live peer ends after so long without a frame */

/* --- Completions ------------------------------------------------------------------------------ */

struct wc_wait {
    struct endpoint *ep;
    int cq;
    const struct sim_conn *dut; /* the connection, at a device under test; NULL: at an endpoint */
    struct wc wc;
};

static bool wc_arrived(struct script *s, void *arg)
{
    struct wc_wait *w = arg;

    return w->dut ? dut_poll(s, w->dut, &w->wc) : ep_poll(w->ep, w->cq, &w->wc, 1) == 1;
}

static uint32_t qpn_of(struct script *s, unsigned host, const struct sim_conn *c)
{
    return script_is_dut(s, host) ? c->remote_qpn[host ^ 1] : ep_qp(s->sim.ep[host], c->qp[host])->qpn;
}

/* Compare a word with a completion. 1: it matches, 0: it does not, -1: syntax error. */
static int wc_word(struct script *s, const struct token *t, unsigned host, const struct wc *wc)
{
    struct script_place p;
    struct token key, v;
    uint64_t u;

    if (!token_key(t, &key, &v)) {
        if (token_is(t, "imm"))
            return (wc->flags & WC_WITH_IMM) != 0;
        if (token_is(t, "inv"))
            return (wc->flags & WC_WITH_INV) != 0;
        if (token_is(t, "solicited"))
            return (wc->flags & WC_SOLICITED) != 0;
        if (token_is(t, "grh"))
            return (wc->flags & WC_GRH) != 0;
        return token_is(t, wc_opcode_str((enum wc_opcode)wc->opcode));
    }
    if (token_is(&key, "metric") || token_is(&key, "times"))
        return 1;
    if (token_is(&key, "inv"))
        return script_place_of(s, host, &v, &p) ? (wc->flags & WC_WITH_INV) && wc->inv_rkey == p.m->key : -1;
    if (!script_num(s, &v, UINT64_MAX, &u))
        return -1;
    if (token_is(&key, "id"))
        return wc->wr_id == u;
    if (token_is(&key, "len"))
        return wc->byte_len == u;
    if (token_is(&key, "imm"))
        return (wc->flags & WC_WITH_IMM) && wc->imm_data == u;
    if (token_is(&key, "conn"))
        return u - 1 < s->sim.n_conns && qpn_of(s, host, s->sim.conn[u - 1]) == wc->qpn;
    if (token_is(&key, "src"))
        return wc->src_qp == u;
    return text_fail(&s->err, &key, "a completion has no '%.*s'", (int)key.len, key.p) - 1;
}

static bool wc_mismatch(struct script *s, unsigned host, const struct token *t, unsigned n, const struct wc *wc)
{
    struct buf b = {0};

    for (unsigned i = 0; i < n; i++)
        buf_printf(&b, " %.*s", (int)t[i].len, t[i].p);
    script_fail(s, "expected  %c wc%s", 'a' + (int)host, buf_str(&b));
    if (wc)
        script_fail(s, "actual    %c wc %.*s %s %s id=%llu len=%u%s%s  (at %.3f us)", 'a' + (int)host, (int)t->len,
                    t->p, wc_status_str(wc->status), wc_opcode_str((enum wc_opcode)wc->opcode),
                    (unsigned long long)wc->wr_id, wc->byte_len, wc->flags & WC_WITH_IMM ? " imm" : "",
                    wc->flags & WC_WITH_INV ? " inv" : "", (double)wc->when / 1000);
    else
        script_fail(s, "actual    no completion until %.3f us", (double)s->sim.now / 1000);
    buf_free(&b);
    return false;
}

/* The completion queue of a connection (a number), or of the receives of an XRC shared receive queue (a name). */
static bool cq_of(struct script *s, unsigned host, const struct token *t, struct wc_wait *w)
{
    const struct script_srq *q;
    struct sim_conn *c;
    uint64_t number;

    if (token_u64(t, &number)) {
        if (!script_conn_of(s, t, &c))
            return false;
        w->cq = c->cq[host];
        w->dut = script_is_dut(s, host) ? c : NULL;
        return true;
    }
    q = script_srq_of(s, host, t);
    w->cq = q ? q->cq : -1;
    return w->cq >= 0 || (q && text_fail(&s->err, t, "wc: its receives complete at their queue pairs"));
}

/* Whether a status is one of those in `want`, "SUCCESS|REM_ACCESS_ERR". */
static bool is_status(struct token want, const char *status)
{
    struct token one, rest;
    bool more;

    do {
        more = token_cut(&want, '|', &one, &rest);
        if (token_is(&one, status))
            return true;
        want = rest;
    } while (more);
    return false;
}

/* The completion is the one expected: tell who measures the time since the latest send of the host was posted, by the
 * host's own clock. */
static void measure_wc(struct script *s, unsigned host, const struct token *t, unsigned n, const struct wc *wc)
{
    struct token key, v;

    for (unsigned i = 2; i < n; i++)
        if (s->o->measured && token_key(&t[i], &key, &v) && token_is(&key, "metric"))
            s->o->measured(s->o->user, &v, (ns_t)((uint64_t)wc->when - (uint64_t)s->posted[host]), s->posting[host],
                           s->sim.now, false);
}

/* The next completion is as the words of "wc" say. */
static bool expect_one_wc(struct script *s, unsigned host, const struct token *t, unsigned n, struct wc_wait *w)
{
    if (!script_until(s, wc_arrived, w, script_patience(s)))
        return wc_mismatch(s, host, t, n, NULL);
    if (!is_status(t[1], wc_status_str(w->wc.status)))
        return wc_mismatch(s, host, t, n, &w->wc);
    for (unsigned i = 2; i < n; i++) {
        int r = wc_word(s, &t[i], host, &w->wc);
        if (r < 0)
            return false;
        if (r == 0)
            return wc_mismatch(s, host, t, n, &w->wc);
    }
    measure_wc(s, host, t, n, &w->wc);
    return true;
}

/* "wc CONN STATUS[|STATUS ...] [OPCODE] [id=N] [len=N] [imm[=N]] [inv[=NAME]] [solicited] [grh] [metric=NAME]
 * [times=N]" and "wc CONN none TIME". */
static bool expect_wc(struct script *s, unsigned host, const struct token *t, unsigned n)
{
    struct wc_wait w = {.ep = s->sim.ep[host]};
    struct token key, v;
    uint64_t times = 1;
    ns_t time;

    if (n < 2)
        return text_fail(&s->err, NULL, "wc: expected a connection and a status");
    if (!cq_of(s, host, t, &w))
        return false;
    if (token_is(&t[1], "none")) {
        if (n != 3 || !token_time(&t[2], &time))
            return text_fail(&s->err, &t[1], "wc: expected 'none' and a time");
        return !script_until(s, wc_arrived, &w, time) || wc_mismatch(s, host, t, n, &w.wc);
    }
    for (unsigned i = 2; i < n; i++)
        if (token_key(&t[i], &key, &v) && token_is(&key, "times") && !script_num(s, &v, UINT32_MAX, &times))
            return false;
    if (!times)
        return text_fail(&s->err, &t[0], "wc: times=0 expects nothing");
    for (uint64_t i = 0; i < times; i++)
        if (!expect_one_wc(s, host, t, n, &w))
            return false;
    return true;
}

/* --- Events, states, memory, counters --------------------------------------------------------- */

static bool nothing(struct script *s, void *arg)
{
    (void)s, (void)arg;
    return false;
}

bool script_wait(struct script *s, const struct token *t, unsigned n)
{
    ns_t time;

    if (n != 1 || !token_time(t, &time))
        return text_fail(&s->err, n ? t : NULL, "wait: expected a time such as 5us");
    script_until(s, nothing, NULL, time);
    return true;
}

/* Against a live peer: no frame for QUIET, and no timer runs. */
static bool quiet(struct script *s, void *arg)
{
    unsigned h = s->o->live->wire.local;

    (void)arg;
    return ep_next_expiry(s->sim.ep[h]) == NS_NEVER && net_next(&s->sim.net) == NS_NEVER &&
           s->sim.now - s->sim.last_frame > QUIET;
}

bool script_run_all(struct script *s, const struct token *t, unsigned n)
{
    if (n)
        return text_fail(&s->err, t, "run takes no words");
    script_until(s, s->o->live ? quiet : nothing, NULL, script_patience(s));
    return true;
}

static bool event_arrived(struct script *s, void *arg)
{
    unsigned h = *(unsigned *)arg;

    if (script_is_dut(s, h) && s->ev_head[h] == s->ev_tail[h])
        dut_events(s);
    return s->ev_head[h] != s->ev_tail[h];
}

/* "event NAME" and "event none TIME". */
static bool expect_event(struct script *s, unsigned host, const struct token *t, unsigned n)
{
    bool none = n == 2 && token_is(t, "none");
    ns_t limit = script_patience(s);
    const char *name;

    if (n != 1u + none || (none && !token_time(&t[1], &limit)))
        return text_fail(&s->err, n ? t : NULL, "event: expected a name, or 'none' and a time");
    if (!script_until(s, event_arrived, &host, limit))
        return none || script_fail(s, "expected  %c event %.*s, but none comes", 'a' + (int)host, (int)t->len, t->p);
    name = ep_event_str((enum ep_event_type)s->events[host][s->ev_head[host]++ % SCRIPT_EVENTS].type);
    return token_is(t, name) ||
           script_fail(s, "expected  %c event %.*s, actual %s", 'a' + (int)host, (int)t->len, t->p, name);
}

static bool expect_state(struct script *s, unsigned host, const struct token *t, unsigned n)
{
    struct sim_conn *c;
    const char *state;

    if (n != 2)
        return text_fail(&s->err, NULL, "state: expected a connection and a state");
    if (!script_conn_of(s, t, &c))
        return false;
    state = script_is_dut(s, host) ? dut_state(s, c)
                                   : qp_state_str((enum qp_state)ep_qp(s->sim.ep[host], c->qp[host])->state);
    if (!state)
        return false;
    return token_is(&t[1], state) || script_fail(s, "expected  %c state %.*s %.*s, actual %s", 'a' + (int)host,
                                                 (int)t->len, t->p, (int)t[1].len, t[1].p, state);
}

/* "migration CONN STATE [path=N]": the state, and the path that is the primary one. */
static bool expect_migration(struct script *s, unsigned host, const struct token *t, unsigned n)
{
    const struct qp_attr *a;
    struct token key, v;
    struct sim_conn *c;
    uint64_t path = 0;
    uint8_t want;

    if (n < 2 || n > 3 || (n == 3 && (!token_key(&t[2], &key, &v) || !token_is(&key, "path"))))
        return text_fail(&s->err, NULL, "migration: expected a connection, a state and path=N");
    if (!script_conn_of(s, t, &c) || !script_mig_state(s, &t[1], &want) || (n == 3 && !script_num(s, &v, 2, &path)))
        return false;
    a = &ep_qp(s->sim.ep[host], c->qp[host])->attr;
    return (a->mig_state == want && (!path || path == a->av.port)) ||
           script_fail(s, "expected  %c migration %.*s %.*s, actual %s, path %u", 'a' + (int)host, (int)t->len, t->p,
                       (int)t[1].len, t[1].p, mig_state_str((enum mig_state)a->mig_state), a->av.port);
}

static bool mem_differs(struct script *s, unsigned host, const struct token *t, uint64_t at, uint8_t want, uint8_t got)
{
    return script_fail(s, "%c mem %.*s: byte %llu is 0x%02x, expected 0x%02x", 'a' + (int)host, (int)t->len, t->p,
                       (unsigned long long)at, got, want);
}

static bool mem_compare(struct script *s, unsigned host, const struct token *t, const struct script_place *p, bool same)
{
    struct script_place q;
    const uint8_t *a = p->m->p + p->off, *b;

    if (!script_place_of(s, host, &t[2], &q))
        return false;
    q.len = q.off + p->len <= q.m->len ? p->len : q.len;
    if (!(script_is_dut(s, q.m->host) ? dut_fetch : script_fetch)(s, &q))
        return false;
    if (!q.m->p || q.off + p->len > q.m->len)
        return text_fail(&s->err, &t[2], "mem: beyond the end");
    b = q.m->p + q.off;
    for (uint64_t i = 0; i < p->len; i++)
        if (a[i] != b[i])
            return !same || mem_differs(s, host, t, i, b[i], a[i]);
    return same ||
           script_fail(s, "%c mem %.*s is the same as %.*s", 'a' + (int)host, (int)t->len, t->p, (int)t[2].len, t[2].p);
}

/* "mem PLACE == PLACE", "mem PLACE != PLACE", "mem PLACE = u64:N", "mem PLACE = fill:BYTE". */
static bool expect_mem(struct script *s, unsigned host, const struct token *t, unsigned n)
{
    struct token kind, v;
    struct script_place p;
    uint64_t u, got;

    if (n != 3)
        return text_fail(&s->err, NULL,
                         "mem: expected PLACE == PLACE, PLACE != PLACE, PLACE = u64:N or PLACE = fill:BYTE");
    if (!script_place_of(s, host, t, &p))
        return false;
    if (!p.m->p || p.off + p.len > p.m->len)
        return text_fail(&s->err, t, "mem: beyond the end");
    if (!(script_is_dut(s, p.m->host) ? dut_fetch : script_fetch)(s, &p))
        return false;
    if (!token_is(&t[1], "="))
        return mem_compare(s, host, t, &p, token_is(&t[1], "=="));
    if (!token_cut(&t[2], ':', &kind, &v) || !token_u64(&v, &u))
        return text_fail(&s->err, &t[2], "mem: expected u64:N or fill:BYTE");
    if (token_is(&kind, "u64") && p.len >= 8) {
        memcpy(&got, p.m->p + p.off, 8);
        return got == u || script_fail(s, "%c mem %.*s is %llu, expected %llu", 'a' + (int)host, (int)t->len, t->p,
                                       (unsigned long long)got, (unsigned long long)u);
    }
    for (uint64_t i = 0; i < p.len; i++)
        if (p.m->p[p.off + i] != (uint8_t)u)
            return mem_differs(s, host, t, i, (uint8_t)u, p.m->p[p.off + i]);
    return true;
}

struct limits {
    uint64_t min, max;
};

/* Parse a range, inclusive: "N", "N-M", "N-". */
static bool stat_range(struct script *s, const struct token *t, struct limits *l)
{
    struct token from, to;
    bool range = token_cut(t, '-', &from, &to);

    if (!script_num(s, &from, UINT64_MAX, &l->min))
        return false;
    l->max = range ? UINT64_MAX : l->min;
    if (range && to.len && !script_num(s, &to, UINT64_MAX, &l->max))
        return false;
    return l->min <= l->max || text_fail(&s->err, t, "stat: the range is empty");
}

/* Parse "= RANGE [live=RANGE]", "< N", "> N". */
static bool stat_limits(struct script *s, const struct token *t, unsigned n, struct limits *l)
{
    struct limits live;
    struct token key, v;
    uint64_t u = 0;

    if (*t->p != '=') {
        if (n != 2)
            return text_fail(&s->err, &t[2], "stat: live= is for =");
        if (!script_num(s, &t[1], UINT64_MAX, &u))
            return false;
        *l = *t->p == '<' ? (struct limits){u == 0, u ? u - 1 : 0}
                          : (struct limits){u + 1, u == UINT64_MAX ? 0 : UINT64_MAX};
        return true;
    }
    if (!stat_range(s, &t[1], l))
        return false;
    if (n == 2)
        return true;
    if (!token_key(&t[2], &key, &v) || !token_is(&key, "live"))
        return text_fail(&s->err, &t[2], "stat: expected live= and a range, found '%.*s'", (int)t[2].len, t[2].p);
    if (!stat_range(s, &v, &live))
        return false;
    if (s->o->live)
        *l = live;
    return true;
}

/* "stat NAME = RANGE [live=RANGE]", "stat NAME < N", "stat NAME > N". */
static bool expect_stat(struct script *s, unsigned host, const struct token *t, unsigned n)
{
    struct limits want;
    uint64_t got;

    if (n < 3 || n > 4 || t[1].len != 1 || !strchr("<=>", *t[1].p))
        return text_fail(&s->err, NULL, "stat: expected the name of a counter, <, = or >, and a number");
    if (!stat_limits(s, t + 1, n - 1, &want))
        return false;
    for (unsigned i = 0; i < EP_COUNTERS; i++) {
        if (!token_is(t, ep_counter_str(i)))
            continue;
        got = ep_counter(ep_stats(s->sim.ep[host]), i);
        return (got >= want.min && got <= want.max) ||
               script_fail(s, "%c stat %.*s is %llu, expected %c %.*s%s%.*s", 'a' + (int)host, (int)t->len, t->p,
                           (unsigned long long)got, *t[1].p, (int)t[2].len, t[2].p, n == 4 ? " " : "",
                           n == 4 ? (int)t[3].len : 0, n == 4 ? t[3].p : "");
    }
    return text_fail(&s->err, t, "there is no counter '%.*s'", (int)t->len, t->p);
}

/* "up CONN", "down CONN", "failed CONN [reason=N]" wait for this state of the connection manager. */
struct conn_wait {
    struct sim_conn *c;
    unsigned host;
    uint8_t state;
};

static bool conn_in_state(struct script *s, void *arg)
{
    const struct conn_wait *w = arg;

    if (script_is_dut(s, w->host) && w->c->state[w->host] != w->state)
        dut_cm_state(s, w->c);
    return w->c->state[w->host] == w->state;
}

static bool expect_conn(struct script *s, unsigned host, const struct token *t, unsigned n)
{
    struct conn_wait w = {.host = host};
    uint64_t reason = 0;
    struct token key, v;

    w.state = token_is(t, "up") ? SIM_CONN_UP : token_is(t, "down") ? SIM_CONN_DOWN : SIM_CONN_FAILED;
    if (n != 2 && !(n == 3 && token_key(&t[2], &key, &v) && token_is(&key, "reason")))
        return text_fail(&s->err, t, "which connection?");
    if (!script_conn_of(s, &t[1], &w.c) || (n == 3 && !script_num(s, &v, UINT16_MAX, &reason)))
        return false;
    if (!script_until(s, conn_in_state, &w, script_patience(s)))
        return script_fail(s, "expected  %c %.*s %.*s, but the connection's state is %u", 'a' + (int)host, (int)t->len,
                           t->p, (int)t[1].len, t[1].p, w.c->state[host]);
    return n == 2 || (w.c->cm && w.c->cm->reason[host] == reason) ||
           script_fail(s, "%c was told reason %u, expected %u", 'a' + (int)host, w.c->cm ? w.c->cm->reason[host] : 0,
                       (unsigned)reason);
}

struct pause_wait {
    struct endpoint *ep;
    struct ep_pause got;
};

static bool pause_arrived(struct script *s, void *arg)
{
    struct pause_wait *w = arg;

    (void)s;
    return ep_pause(w->ep, &w->got);
}

/* The quanta of a class that a pause frame names; -1: it does not name the class. */
static int quanta_of(const struct pause_frame *f, uint64_t class)
{
    return class < PAUSE_CLASSES && f->classes >> class & 1 ? f->quanta[class] : -1;
}

/* Compare the words with a pause frame: 1: they match, 0: they do not, -1: syntax error. */
static int pause_words(struct script *s, const struct token *t, unsigned n, const struct pause_frame *f)
{
    struct limits want = {0, UINT64_MAX};
    uint64_t class = 0;
    struct token key, v;
    int quanta;

    while (class < PAUSE_CLASSES - 1 && quanta_of(f, class) < 0)
        class ++;
    for (unsigned i = 0; i < n; i++) {
        bool known = token_key(&t[i], &key, &v) && (token_is(&key, "class") || token_is(&key, "quanta"));
        if (!known)
            return text_fail(&s->err, &t[i], "pause: expected class=N or quanta=RANGE") - 1;
        if (token_is(&key, "class") ? !script_num(s, &v, PAUSE_CLASSES - 1, &class) : !stat_range(s, &v, &want))
            return -1;
    }
    quanta = quanta_of(f, class);
    return quanta >= 0 && (uint64_t)quanta >= want.min && (uint64_t)quanta <= want.max;
}

/* "pause [class=N] [quanta=RANGE]": the next pause frame that the host gets; "pause none TIME". */
static bool expect_pause(struct script *s, unsigned host, const struct token *t, unsigned n)
{
    struct pause_wait w = {.ep = s->sim.ep[host]};
    struct buf b = {0};
    ns_t time;
    int r;

    if (n == 2 && token_is(t, "none")) {
        if (!token_time(&t[1], &time))
            return text_fail(&s->err, &t[1], "pause: expected 'none' and a time");
        return !script_until(s, pause_arrived, &w, time) || script_fail(s, "%c gets a pause frame", 'a' + (int)host);
    }
    if (!script_until(s, pause_arrived, &w, script_patience(s)))
        return script_fail(s, "%c gets no pause frame", 'a' + (int)host);
    r = pause_words(s, t, n, &w.got.frame);
    if (r)
        return r > 0;
    for (unsigned i = 0; i < n; i++)
        buf_printf(&b, " %.*s", (int)t[i].len, t[i].p);
    script_fail(s, "expected  %c pause%s", 'a' + (int)host, buf_str(&b));
    b.len = 0;
    for (unsigned i = 0; i < PAUSE_CLASSES; i++)
        if (quanta_of(&w.got.frame, i) >= 0)
            buf_printf(&b, " class=%u quanta=%d", i, quanta_of(&w.got.frame, i));
    script_fail(s, "actual    %c pause%s  (at %.3f us)", 'a' + (int)host, buf_str(&b), (double)w.got.when / 1000);
    buf_free(&b);
    return false;
}

bool script_expect(struct script *s, unsigned host, const struct token *t, unsigned n)
{
    static const struct {
        const char *word;
        bool (*run)(struct script *, unsigned, const struct token *, unsigned);
    } words[] = {{"wc", expect_wc},   {"event", expect_event}, {"state", expect_state}, {"migration", expect_migration},
                 {"mem", expect_mem}, {"stat", expect_stat},   {"pause", expect_pause}, {"private", script_private}};

    if (script_is_dut(s, host) &&
        (token_is(t, "stat") || token_is(t, "migration") || (token_is(t, "pause") && !script_between(s))))
        return dut_lacks(s, "its agent does not tell this");
    if (token_is(t, "up") || token_is(t, "down") || token_is(t, "failed"))
        return expect_conn(s, host, t, n);
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (token_is(t, words[i].word))
            return words[i].run(s, host, t + 1, n - 1);
    return text_fail(&s->err, t, "'%.*s' is not understood", (int)t->len, t->p);
}
