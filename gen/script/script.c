/* layer 3 (script): scenario files: runs the lines in order. */
#include "gen/script/script_impl.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

bool script_fail(struct script *s, const char *fmt, ...)
{
    char text[400];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    buf_printf(s->out, "%s:%u: %s\n", s->name, s->line, text);
    s->failed = true;
    return false;
}

bool script_host_of(struct script *s, const struct token *t, unsigned *host)
{
    *host = token_is(t, "b");
    return *host || token_is(t, "a") ||
           text_fail(&s->err, t, "expected a host, a or b, found '%.*s'", (int)t->len, t->p);
}

bool script_num(struct script *s, const struct token *v, uint64_t max, uint64_t *out)
{
    return (token_size(v, out) && *out <= max) || text_fail(&s->err, v, "expected a number up to %llu, found '%.*s'",
                                                            (unsigned long long)max, (int)v->len, v->p);
}

bool script_conn_of(struct script *s, const struct token *t, struct sim_conn **c)
{
    uint64_t n;

    if (!token_u64(t, &n) || n == 0 || n > s->sim.n_conns)
        return text_fail(&s->err, t, "there is no connection '%.*s'", (int)t->len, t->p);
    *c = s->sim.conn[n - 1];
    return true;
}

static struct script_mem *mem_find(struct script *s, unsigned host, const struct token *name)
{
    for (unsigned i = 0; i < s->n_mem; i++)
        if (s->mem[i].host == host && token_is(name, s->mem[i].name))
            return &s->mem[i];
    return NULL;
}

bool script_place_of(struct script *s, unsigned host, const struct token *t, struct script_place *p)
{
    struct token host_name, rest = *t, name, off = {"0", 1, 0}, len, whole = *t;
    bool has_len;

    if (token_cut(t, '.', &host_name, &rest) && !script_host_of(s, &host_name, &host))
        return false;
    has_len = token_cut(&rest, ':', &whole, &len);
    if (!has_len)
        whole = rest;
    if (!token_cut(&whole, '+', &name, &off))
        name = whole;
    p->m = mem_find(s, host, &name);
    if (!p->m)
        return text_fail(&s->err, t, "host %c has no memory '%.*s'", 'a' + (int)host, (int)name.len, name.p);
    if (!script_num(s, &off, UINT64_MAX, &p->off))
        return false;
    p->len = p->off < p->m->len ? p->m->len - p->off : 0;
    return !has_len || script_num(s, &len, UINT64_MAX, &p->len);
}

struct script_srq *script_srq_of(struct script *s, unsigned host, const struct token *name)
{
    for (unsigned i = 0; i < s->n_srq; i++)
        if (s->srq[i].host == host && token_is(name, s->srq[i].name))
            return &s->srq[i];
    text_fail(&s->err, name, "host %c has no shared receive queue '%.*s'", 'a' + (int)host, (int)name->len, name->p);
    return NULL;
}

bool script_access(struct script *s, const struct token *v, uint8_t *access)
{
    static const char letters[] = "wRWAbfpz";
    static const uint8_t bits[] = {ACCESS_LOCAL_WRITE,      ACCESS_REMOTE_READ, ACCESS_REMOTE_WRITE,
                                   ACCESS_REMOTE_ATOMIC,    ACCESS_MW_BIND,     ACCESS_FLUSH_GLOBAL,
                                   ACCESS_FLUSH_PERSISTENT, ACCESS_ZERO_BASED};

    *access = 0;
    for (uint32_t i = 0; i < v->len && !token_is(v, "none"); i++) {
        const char *q = memchr(letters, v->p[i], sizeof letters - 1);
        if (!q)
            return text_fail(&s->err, v, "access: expected none or letters of wRWAbfpz, found '%.*s'", (int)v->len,
                             v->p);
        *access |= bits[q - letters];
    }
    return true;
}

bool script_mig_state(struct script *s, const struct token *v, uint8_t *state)
{
    for (*state = 0; *state < MIG_STATES; ++*state)
        if (token_is(v, mig_state_str((enum mig_state) * state)))
            return true;
    return text_fail(&s->err, v, "expected MIGRATED, REARM or ARMED, found '%.*s'", (int)v->len, v->p);
}

bool script_until(struct script *s, bool (*cond)(struct script *, void *), void *arg, ns_t limit)
{
    ns_t until = s->sim.now > NS_NEVER - limit ? NS_NEVER : s->sim.now + limit;

    while (!cond(s, arg)) {
        if (s->broken)
            return false;
        if (sim_step(&s->sim, until))
            continue;
        if (cond(s, arg))
            return true;
        if (until != NS_NEVER && !s->o->live)
            s->sim.now = until;
        return false;
    }
    return true;
}

/* Statements that do not begin with a host. */
static const struct {
    const char *word;
    script_fn *run;
    bool setup; /* allowed only before the hosts exist */
} statements[] = {
    {"seed", script_seed, true},        {"host", script_host, true},
    {"net", script_net, true},          {"event", script_event, true},
    {"qp", script_qp, false},           {"mem", script_mem_add, false},
    {"srq", script_srq_add, false},     {"mw", script_mw_add, false},
    {"dereg", script_dereg, false},     {"join", script_join, false},
    {"connect", script_connect, false}, {"disconnect", script_disconnect, false},
    {"inject", script_inject, false},   {"none", script_none, false},
    {"wait", script_wait, false},       {"run", script_run_all, false},
    {"mr", script_mr_add, false},       {"load", script_load, false},
    {"flood", script_flood, false},     {"register", script_register, false},
};

/* A statement that begins with a host. */
static bool host_line(struct script *s, const struct token *t, unsigned n)
{
    unsigned host;

    if (!script_host_of(s, t, &host) || !script_start(s))
        return false;
    if (n < 2)
        return text_fail(&s->err, t, "host %c: expected post, wc, up, > PACKET or another operation", 'a' + (int)host);
    if (token_is(&t[1], ">"))
        return script_packet(s, host, t + 2, n - 2);
    if (token_is(&t[1], "post"))
        return script_post(s, host, t + 2, n - 2);
    if (n == 2 && (token_is(&t[1], "hold") || token_is(&t[1], "release")))
        return script_hold(s, host, token_is(&t[1], "hold"));
    if (token_is(&t[1], "arm"))
        return script_arm(s, host, t + 2, n - 2);
    if (token_is(&t[1], "attach"))
        return script_attach(s, host, t + 2, n - 2);
    if (token_is(&t[1], "limit"))
        return script_limit(s, host, t + 2, n - 2);
    if (token_is(&t[1], "modify"))
        return script_modify(s, host, t + 2, n - 2);
    return script_expect(s, host, t + 1, n - 1);
}

static bool never(struct script *s, void *arg)
{
    (void)s, (void)arg;
    return false;
}

/* "+5us" or "@5us" before a statement: advance the time. */
static bool take_time(struct script *s, const struct token *t)
{
    struct token v = {t->p + 1, t->len - 1, t->col + 1};
    ns_t time;

    if (!token_time(&v, &time))
        return text_fail(&s->err, t, "expected a time such as +5us, found '%.*s'", (int)t->len, t->p);
    if (!script_start(s))
        return false;
    if (*t->p == '@' && time < s->sim.now)
        return text_fail(&s->err, t, "it is %lld ns already", (long long)s->sim.now);
    script_until(s, never, NULL, *t->p == '@' ? time - s->sim.now : time);
    return true;
}

bool script_statement(struct script *s, const struct token *t, unsigned n)
{
    for (size_t i = 0; i < ARRAY_LEN(statements); i++) {
        if (!token_is(t, statements[i].word))
            continue;
        if (statements[i].setup && s->started)
            return text_fail(&s->err, t, "%s must come before the first queue pair and memory", statements[i].word);
        if (!statements[i].setup && !script_start(s))
            return false;
        return statements[i].run(s, t + 1, n - 1);
    }
    return host_line(s, t, n);
}

/* Execute a statement on its side or on both; on the peer first, so that it is ready. */
static bool live_statement(struct script *s, const struct token *t, unsigned n)
{
    enum script_part part = script_part_of(s, t, n);

    if (part == PART_NEITHER)
        return !*s->err.msg;
    if (part != PART_OURS && !script_forward(s, t))
        return false;
    return part == PART_THEIRS ? script_start(s) : script_statement(s, t, n);
}

static bool statement(struct script *s, const struct token *t, unsigned n)
{
    if (*t->p == '+' || *t->p == '@') {
        if (!take_time(s, t))
            return false;
        t++;
        if (--n == 0)
            return true;
    }
    return s->o->live ? live_statement(s, t, n) : script_statement(s, t, n);
}

static bool run_line(struct script *s, const char *line)
{
    struct token t[SCRIPT_WORDS];
    unsigned n = text_split(line, t, SCRIPT_WORDS);

    if (n == 0)
        return true;
    if (n > SCRIPT_WORDS)
        return text_fail(&s->err, NULL, "more than %d words", SCRIPT_WORDS);
    return statement(s, t, n);
}

/* A host has sent a frame: keep it for later lines. */
static void note_sent(void *user, unsigned host, const uint8_t *data, uint32_t len, ns_t now)
{
    struct script *s = user;
    struct script_sent *x = s->o->live && s->o->live->agent ? NULL : malloc(sizeof *x + len);

    if (script_between(s))
        dut_cm_seen(s, host, data, len);
    if (s->o->verbose) {
        buf_printf(s->out, "%12.3f us  ", (double)now / 1000);
        script_packet_text(s, s->out, host, data, len);
        buf_char(s->out, '\n');
    }
    if (!x)
        return;
    *x = (struct script_sent){.when = now, .host = host, .len = len};
    memcpy(x->data, data, len);
    if (s->sent_last[host])
        s->sent_last[host]->next = x;
    else
        s->sent[host] = x;
    s->sent_last[host] = x;
}

static void note_event(void *user, unsigned host, const struct ep_event *event)
{
    struct script *s = user;

    if (s->ev_tail[host] - s->ev_head[host] < SCRIPT_EVENTS)
        s->events[host][s->ev_tail[host]++ % SCRIPT_EVENTS] = *event;
}

bool script_start(struct script *s)
{
    struct sim_app app = {
        .run = s->o->dut[0] || s->o->dut[1] ? dut_cm_run : NULL, .sent = note_sent, .event = note_event, .user = s};
    int r;

    if (s->started)
        return true;
    s->started = true;
    r = sim_init(&s->sim, &s->o->sim, &app);
    if (r == 0 && s->o->live)
        s->o->live->sim = &s->sim;
    return r == 0 ? dut_open(s) : text_fail(&s->err, NULL, "the hosts cannot be set up: %s", strerror(-r));
}

void script_forget_sent(struct script *s)
{
    struct script_sent *x;

    for (unsigned h = 0; h < NET_HOSTS; h++)
        while ((x = s->sent[h])) {
            s->sent[h] = x->next;
            free(x);
        }
    memset(s->sent_last, 0, sizeof s->sent_last);
}

void script_free(struct script *s)
{
    dut_close(s);
    if (s->o->live)
        script_exchange_end(s->o->live);
    if (s->o->live && s->o->live->middle)
        s->o->live->middle->end(s->o->live->middle->user);
    if (s->o->live)
        s->o->live->sim = NULL;
    script_forget_sent(s);
    if (s->started)
        sim_free(&s->sim);
    else
        event_list_free(s->o->sim.events);
    for (unsigned i = 0; i < s->n_mem; i++)
        script_mem_free(&s->mem[i]);
    free(s);
}

static void idle(void *script, const char *line)
{
    script_fail(script, "%s", line);
}

void script_final_checks(struct script *s)
{
    static const char *const who[NET_HOSTS] = {"host a", "host b"};

    if (s->started)
        sim_idle(&s->sim, who, idle, s);
    for (unsigned h = 0; s->started && h < NET_HOSTS; h++)
        if (ep_stats(s->sim.ep[h])->own_check_failures && !(s->o->live && s->o->live->wire.local != h) &&
            !script_is_dut(s, h))
            script_fail(s, "host %c broke %s", 'a' + (int)h, rule_str(ep_first_refused(s->sim.ep[h]).rule));
}

struct script *script_new(const char *name, struct script_opts *opts, struct buf *out)
{
    struct script *s = calloc(1, sizeof *s);

    if (!s)
        return NULL;
    s->name = name;
    s->out = out;
    s->o = opts;
    s->next_id = 1;
    for (unsigned h = 0; h < NET_HOSTS; h++) {
        struct ep_config *c = &opts->sim.ep[h];
        c->n_faults = min_u32(c->n_faults, FAULTS_MAX);
        for (unsigned i = 0; i < c->n_faults; i++)
            s->faults[h][i] = c->faults[i];
        c->faults = s->faults[h];
    }
    prng_seed(&s->prng, opts->sim.seed ^ 0x5c417);
    return s;
}

/* Copy the line at *text, terminated by NUL, and advance *text to the next one. False: it is too long. */
static bool take_line(const char **text, char *line, size_t size)
{
    size_t n = strcspn(*text, "\n"), kept = n < size ? n : size - 1;

    memcpy(line, *text, kept);
    line[kept] = '\0';
    *text += n + ((*text)[n] != '\0');
    return n < size;
}

static void report_line(struct script *s)
{
    buf_printf(s->out, "%s:%u:%u: %s\n", s->name, s->line, s->err.col, s->err.msg);
}

/* Before the first packet is sent: whether a live peer can execute its part of all lines. */
static bool peer_can_run_all(struct script *s, const char *text)
{
    struct token t[SCRIPT_WORDS];
    char line[1024];

    while (*text) {
        unsigned n, skip;
        s->line++;
        take_line(&text, line, sizeof line);
        n = text_split(line, t, SCRIPT_WORDS);
        skip = n && (*t->p == '+' || *t->p == '@');
        if (n <= skip || n > SCRIPT_WORDS)
            continue;
        if (script_part_of(s, t + skip, n - skip) == PART_NEITHER && *s->err.msg) {
            report_line(s);
            return false;
        }
    }
    return true;
}

/* The network failed during this line, so an unmet expectation proves nothing: discard its message. */
static void report_wire(struct script *s, size_t mark)
{
    s->out->len = mark;
    if (s->sim.wire_err == -EINTR)
        script_fail(s, "interrupted");
    else if (s->dut && s->sim.wire_err == -ETIMEDOUT)
        script_fail(s, "the time of this test is over");
    else
        script_fail(s, "the network failed: %s", strerror(-s->sim.wire_err));
    s->broken |= s->dut != NULL; /* which says nothing about the device */
}

/* Why a line could not be executed. */
static enum script_result failure_of(const struct script *s)
{
    return !s->failed ? SCRIPT_BAD : s->broken ? SCRIPT_BROKEN : s->unsupported ? SCRIPT_UNSUPPORTED : SCRIPT_FAILED;
}

enum script_result script_run(const char *name, const char *text, struct script_opts *opts, struct buf *out)
{
    struct script *s = script_new(name, opts, out);
    enum script_result r = SCRIPT_OK;
    char line[1024];
    bool any = false;
    size_t mark;

    if (!s)
        return SCRIPT_BAD;
    if (opts->live && !peer_can_run_all(s, text))
        r = SCRIPT_BAD;
    s->line = 0;
    while (*text && r == SCRIPT_OK) {
        s->line++;
        mark = out->len;
        if (take_line(&text, line, sizeof line) ? !run_line(s, line)
                                                : !text_fail(&s->err, NULL, "the line is too long")) {
            if (s->sim.wire_err)
                report_wire(s, mark);
            else if (!s->failed)
                report_line(s);
            r = failure_of(s);
        }
        any |= s->started;
    }
    if (r == SCRIPT_OK && !any) {
        buf_printf(out, "%s: the scenario does nothing\n", name);
        r = SCRIPT_BAD;
    }
    if (r == SCRIPT_OK)
        script_final_checks(s);
    if (r == SCRIPT_OK && !script_end(s) && !s->failed)
        script_fail(s, "%s", s->err.msg);
    if (r == SCRIPT_OK && s->failed)
        r = failure_of(s);
    script_free(s);
    return r;
}
