/* layer 3 (script): scenario files with a device under test as a host: the session, and the lines of its agent. */
#include "gen/script/dut_impl.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

bool script_is_dut(struct script *s, unsigned host)
{
    if (!s->duts[host])
        return false;
    s->dut = s->duts[host];
    return true;
}

bool script_between(const struct script *s)
{
    return s->duts[0] && s->duts[1];
}

bool dut_lacks(struct script *s, const char *what)
{
    s->unsupported = true;
    return script_fail(s, "the device under test: %s", what);
}

/* --- Lines ------------------------------------------------------------------------------------ */

void dut_word(const char *line, const char *key, char *to, size_t size)
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

uint64_t dut_number(const char *line, const char *key)
{
    char text[32];

    dut_word(line, key, text, sizeof text);
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

    *w = (struct wc){.wr_id = dut_number(line, "wr_id"),
                     .byte_len = (uint32_t)dut_number(line, "byte_len"),
                     .qpn = (uint32_t)dut_number(line, "qpn"),
                     .src_qp = (uint32_t)dut_number(line, "src_qp"),
                     .imm_data = (uint32_t)dut_number(line, "imm"),
                     .inv_rkey = (uint32_t)dut_number(line, "inv"),
                     .when = (ns_t)dut_number(line, "t")};
    dut_word(line, "status", text, sizeof text);
    w->status = status_named(text);
    dut_word(line, "opcode", text, sizeof text);
    w->opcode = opcode_named(text);
    dut_word(line, "flags", text, sizeof text);
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
    unsigned h = s->dut->host;
    char text[64];

    dut_word(line, "name", text, sizeof text);
    if (strncmp(line, "! notify", 8) == 0)
        e.type = EP_EV_CQ_NOTIFY;
    for (unsigned i = 0; i <= EP_EV_PATH_MIG_ERR; i++)
        if (strcmp(text, ep_event_str((enum ep_event_type)i)) == 0)
            e.type = (uint8_t)i;
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        if (strcmp(text, others[i].name) == 0)
            e.type = others[i].type;
    if (e.type != 0xff && s->ev_tail[h] - s->ev_head[h] < SCRIPT_EVENTS)
        s->events[h][s->ev_tail[h]++ % SCRIPT_EVENTS] = e;
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
        else if (strncmp(line, "! event ", 8) == 0 || strncmp(line, "! notify", 8) == 0)
            note_event(s, line);
        else if (strncmp(line, "! cm ", 5) == 0)
            dut_cm_note(d, line);
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

/* Fail because of the session, not of the device. */
static bool no_session(struct script *s, const char *what)
{
    const struct script_dut *o = s->o->dut[s->dut->host];
    const char *why = o->why ? o->why(o->user) : "";

    s->broken = true;
    return script_fail(s, "%s%s%s", what, *why ? ": " : "", why);
}

#define LOG_MAX (4u << 20) /* bytes of the log of a scenario */

/* Log a line that was said, and what came back, with the time of the scenario and the host. */
static void log_lines(struct script *s, char direction, const struct buf *lines)
{
    struct buf *log = s->o->agent_log;

    if (!log || log->len > LOG_MAX)
        return;
    for (size_t at = 0, n; at < lines->len; at += n + 1) {
        const char *end = memchr(lines->p + at, '\n', lines->len - at);
        n = end ? (size_t)(end - lines->p) - at : lines->len - at;
        buf_printf(log, "%14.3f us  %c %c ", (double)s->sim.now / 1000, 'a' + (int)s->dut->host, direction);
        buf_printable(log, lines->p + at, n);
        buf_char(log, '\n');
    }
    if (log->len > LOG_MAX)
        buf_puts(log, "The rest is not kept.\n");
}

const char *dut_say(struct script *s, const void *data, size_t n, int *e)
{
    struct dut *d = s->dut;
    const struct script_dut *o = s->o->dut[d->host];
    bool said;
    const char *a;

    d->said.len = d->bulk.len = 0;
    log_lines(s, '>', &d->line);
    said = o->ask(o->user, buf_str(&d->line), data, n, &d->said, &d->bulk);
    log_lines(s, '<', &d->said);
    a = said ? take_lines(s) : NULL;
    if (!a || (strncmp(a, "ok", 2) != 0 && strncmp(a, "err ", 4) != 0)) {
        no_session(s, "the agent of the device under test does not answer");
        return NULL;
    }
    *e = *a == 'o' ? 0 : errno_named(a + 4);
    if (*e)
        snprintf(d->why, sizeof d->why, "%s", a + 4);
    return a;
}

void dut_begin(struct script *s, const char *fmt, ...)
{
    va_list ap;

    s->dut->line.len = 0;
    buf_printf(&s->dut->line, "%u ", ++s->dut->asked);
    va_start(ap, fmt);
    buf_vprintf(&s->dut->line, fmt, ap);
    va_end(ap);
}

bool dut_refused(struct script *s, int e)
{
    const char *line = buf_str(&s->dut->line), *last = strrchr(line, '\n'); /* of a batch, what it posts */

    s->unsupported |= e == -ENOSYS || e == -EOPNOTSUPP;
    return script_fail(s, "the device under test: '%s': %s", strchr(last ? last : line, ' ') + 1, s->dut->why);
}

bool dut_not_ready(struct script *s, int e)
{
    dut_refused(s, e);
    s->broken |= !s->unsupported;
    return false;
}

const char *dut_must(struct script *s)
{
    int e;
    const char *a = dut_say(s, NULL, 0, &e);

    if (a && e) {
        dut_not_ready(s, e);
        return NULL;
    }
    return a;
}

const char *dut_make(struct script *s, const char *kind, char name[DUT_NAME])
{
    const char *a = dut_must(s);

    if (a)
        dut_word(a, kind, name, DUT_NAME);
    return a;
}

/* --- The device ------------------------------------------------------------------------------- */

/* A number in the line of the device; `unless` if the line has none. */
static uint64_t long_or(const char *line, const char *key, uint64_t unless)
{
    char text[32];

    dut_word(line, key, text, sizeof text);
    return *text ? strtoull(text, NULL, 0) : unless;
}

static uint32_t number_or(const char *line, const char *key, uint32_t unless)
{
    return (uint32_t)long_or(line, key, unless);
}

/* Read its capabilities. *ports: how many it has. */
static bool read_device(struct script *s, uint32_t *ports)
{
    struct dut *d = s->dut;
    const char *a;

    dut_begin(s, "dev query");
    if (!(a = dut_must(s)))
        return false;
    *ports = min_u32(number_or(a, "phys_port_cnt", 1), PORTS);
    d->atomics = number_or(a, "atomic_cap", 1) != 0;
    d->flags = number_or(a, "device_cap_flags", UINT32_MAX);
    d->more_flags = long_or(a, "device_cap_flags_ex", UINT64_MAX);
    return true;
}

/* The entry for `gid` in an answer, "gid=INDEX,GID,TYPE,INTERFACE ...", of this type. -1: there is none. */
static int gid_index(const char *answer, const uint8_t gid[16], const char *of)
{
    for (const char *p = strstr(answer, " gid="); p; p = strstr(p + 1, " gid=")) {
        char text[48] = "", type[16] = "";
        uint8_t is[16];
        unsigned index = 0;
        if (sscanf(p, " gid=%3u,%47[^, ],%15[^, ]", &index, text, type) == 3 && strcmp(type, of) == 0 &&
            inet_pton(AF_INET6, text, is) == 1 && memcmp(is, gid, 16) == 0)
            return (int)index;
    }
    return -1;
}

/* Find the port that has the address of the host, and its GID there; on a real network only. */
static bool find_gid(struct script *s, uint32_t ports)
{
    bool first = s->sim.addr[s->dut->host].encap == ENCAP_ROCEV1;
    struct dut *d = s->dut;
    struct buf b = {0};
    const char *a;
    int index = -1;

    for (uint32_t port = 1; port <= ports && index < 0; port++) {
        dut_begin(s, "gid port=%u", port);
        if (!(a = dut_must(s)))
            return false;
        index = gid_index(a, s->sim.addr[s->dut->host].gid, first ? "ROCE_V1" : "ROCE_V2");
        d->port = port;
    }
    if (index < 0 && first)
        return dut_lacks(s, "it has no RoCEv1 GID of this address");
    if (index < 0) {
        buf_ipv6(&b, s->sim.addr[s->dut->host].gid);
        script_fail(s, "the device under test has no RoCEv2 GID %s", buf_str(&b));
        buf_free(&b);
        s->broken = true;
        return false;
    }
    d->sgid_index = (uint32_t)index;
    dut_begin(s, "port port=%u", d->port);
    if (!(a = dut_must(s)))
        return false;
    d->max_msg = number_or(a, "max_msg_sz", 0);
    d->mtu = 128u << min_u32(number_or(a, "active_mtu", 5), 5); /* enum ibv_mtu: 1 is 256 bytes */
    return true;
}

bool dut_has_atomics(struct script *s)
{
    for (unsigned h = 0; h < NET_HOSTS; h++)
        if (s->duts[h] && !s->duts[h]->atomics)
            return dut_lacks(s, "it has no atomics (atomic_cap 0)");
    return true;
}

#define LIFESPAN 10 /* ms for which most drivers repeat what they have read, if they do not say */

static void read_counters(struct script *s, struct buf *to)
{
    const char *a;
    int e;

    dut_begin(s, "counters");
    a = dut_say(s, NULL, 0, &e);
    if (a && e == 0)
        buf_puts(to, a);
}

static bool never(struct script *s, void *arg)
{
    (void)s;
    (void)arg;
    return false;
}

/* Read them when the driver reads them again. */
static void read_counters_again(struct script *s)
{
    struct buf *const *c = s->o->counters;
    uint64_t lifespan;

    if (!c[1] || !c[0]->len || s->broken)
        return;
    lifespan = dut_number(buf_str(c[0]), "rdma.lifespan");
    if (s->o->live)
        script_until(s, never, NULL, 2 * (ns_t)(lifespan && lifespan < 1000 ? lifespan : LIFESPAN) * NS_PER_MS);
    read_counters(s, c[1]);
}

/* Begin the session with the agent of host `h`. */
static bool open_one(struct script *s, unsigned h)
{
    const struct script_dut *o = s->o->dut[h];
    struct dut *d;
    uint32_t ports;

    if (s->sim.addr[h].encap == ENCAP_IB || s->sim.net.port2[h])
        return dut_lacks(s, "neither native InfiniBand nor alternate paths are tested");
    d = calloc(1, sizeof *d);
    if (!d)
        return text_fail(&s->err, NULL, "out of memory");
    *d = (struct dut){.host = h, .port = 1, .mtu = 4096};
    s->dut = s->duts[h] = d;
    if (!o->start(o->user, &s->sim))
        return no_session(s, "the session with the device under test cannot be begun");
    dut_begin(s, "dev open");
    return dut_must(s) && read_device(s, &ports) && (!s->o->live || find_gid(s, ports));
}

bool dut_open(struct script *s)
{
    for (unsigned h = 0; h < NET_HOSTS; h++)
        if (s->o->dut[h] && !s->duts[h] && !open_one(s, h))
            return false;
    if (s->o->counters[0] && script_is_dut(s, 1))
        read_counters(s, s->o->counters[0]);
    return !s->broken;
}

void dut_chose(struct script *s, enum script_chosen kind, uint32_t value)
{
    if (s->o->chosen && s->dut->host == 1)
        s->o->chosen(s->o->user, kind, value);
}

/* The starting PSNs of connections that RDMA-CM has made. */
static void tell_psns(struct script *s)
{
    for (uint32_t i = 0; i < s->sim.n_conns && i < CONNS; i++) {
        const struct sim_conn *c = s->sim.conn[i];
        unsigned other = s->dut->host ^ 1;
        bool made =
            c->state[other] == SIM_CONN_UP || c->state[other] == SIM_CONN_CLOSING || c->state[other] == SIM_CONN_DOWN;
        if (*s->dut->conn[i].cm && made && c->type != QPT_UD)
            dut_chose(s, SCRIPT_CHOSE_PSN, event_conns(s->sim.events)->c[i].psn[other]);
    }
}

void dut_close(struct script *s)
{
    struct dut *d;

    for (unsigned h = NET_HOSTS; h-- > 0;) {
        if (!script_is_dut(s, h))
            continue;
        d = s->dut;
        tell_psns(s);
        if (h == 1)
            read_counters_again(s);
        s->o->dut[h]->stop(s->o->dut[h]->user);
        buf_free(&d->line);
        buf_free(&d->said);
        buf_free(&d->held);
        buf_free(&d->bulk);
        free(d);
        s->duts[h] = NULL;
    }
    s->dut = NULL;
}
