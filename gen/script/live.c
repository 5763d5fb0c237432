/* layer 3 (script): scenarios against a live peer: which side executes a line, and the messages between both.
 *
 * Two rdmagen exchange messages over TCP: a length (4 bytes, big-endian), then that many bytes, the first of which is
 * the kind. Host a sends HELLO, then SAY (execute a statement), MEM (read memory) or END; host b responds to each with
 * GOOD, FAILED or BAD. Both sides also keep an endpoint for the other host and execute the same setup statements on
 * it, so that QPNs, handles and keys are the same on both sides and need not be sent. */
#include "gen/script/script_impl.h"

#include "dissect/pkt.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#define AGENT     "the scenario" /* name of the scenario in messages of host b */
#define VERSION   1
#define CALL_MAX  (1u << 20)           /* bytes of a message, at most */
#define PIECE     (64u << 10)          /* bytes of memory in one MEM, at most */
#define TICK      (500 * NS_PER_US)    /* period in which the control connection is polled */
#define RESOLVE   (3 * NS_PER_S)       /* wait for the peer's MAC address */
#define HELLO_LEN (1 + 16 + 8 + 1 + 4) /* version, GID, seed, has_psn, PSN */

enum { HELLO = 'h', SAY = 's', MEM = 'm', END = 'e', GOOD = 'g', FAILED = 'f', BAD = 'b' };

/* --- Time and frames -------------------------------------------------------------------------- */

void script_live_frame(void *user, const uint8_t *data, uint32_t len, ns_t when)
{
    struct script_live *v = user;
    struct pause_frame pause;
    struct frame f;
    struct pkt p;

    frame_decode(&p, &f, data, len, LINK_ETHERNET);
    if (v->sim && pause_frame_of(&pause, &p))
        ep_rx(v->sim->ep[v->wire.local], data, len, when - v->start);
    if (v->sim && p.have & H_BTH) /* not ARP, which scenarios do not see */
        sim_arrive(v->sim, data, len, when - v->start);
}

void script_live_passed(struct script_live *v, unsigned host, const uint8_t *data, uint32_t len, ns_t when)
{
    struct pause_frame pause;
    struct frame f;
    struct pkt p;

    frame_decode(&p, &f, data, len, LINK_ETHERNET);
    if (v->sim && pause_frame_of(&pause, &p)) /* it is for the end of the cable: the middle; the replica keeps it */
        ep_rx(v->sim->ep[!host], data, len, when - v->start);
    if (!v->sim || !(p.have & H_BTH))
        return;
    v->sim->last_frame = v->wire.clock(v);
    memcpy(v->macs[host], data + 6, 6);
    if (v->sim->app.sent)
        v->sim->app.sent(v->sim->app.user, host, data, len, when - v->start);
}

static bool wire_ready(void *user)
{
    const struct script_live *v = user;

    return live_can_send(v->live);
}

#define ROOM_NS  (20 * NS_PER_MS) /* longest wait for room in the queue of the backend */
#define PAUSE_NS (200 * NS_PER_US)

/* Endpoint and "inject" ask wire_ready() before; copies of packets, and those that were held back, may come many at
 * once, and wait until the network takes them. */
static void wire_send(void *user, const uint8_t *data, uint32_t len)
{
    struct script_live *v = user;
    ns_t until = live_now() + (v->stuck ? 0 : ROOM_NS);
    bool room;

    while (!(room = live_can_send(v->live)) && live_now() < until && live_wait(NULL, 0, live_now() + PAUSE_NS) == 0)
        continue;
    v->stuck = !room; /* a network that takes nothing is not waited for again, until it takes a frame */
    live_send(v->live, data, len);
}

static int wire_wait(void *user, ns_t until)
{
    struct script_live *v = user;
    ns_t now = live_now() - v->start;

    if (v->limit && now > v->limit)
        return -ETIMEDOUT;
    return live_look(v->live, v->start + (until - now > TICK ? now + TICK : until),
                     until < NS_NEVER - v->start ? v->start + until : NS_NEVER);
}

/* Of the middle: both hosts are elsewhere, their replicas send nothing. */
static bool middle_ready(void *user)
{
    (void)user;
    return false;
}

static int middle_wait(void *user, ns_t until)
{
    struct script_live *v = user;
    ns_t now = live_now() - v->start;

    if (v->limit && now > v->limit)
        return -ETIMEDOUT;
    return v->middle->step(v->middle->user, v->start + (until - now > TICK ? now + TICK : until));
}

static ns_t wire_clock(void *user)
{
    const struct script_live *v = user;

    return live_now() - v->start;
}

ns_t script_patience(const struct script *s)
{
    return s->o->live ? s->o->live->patience : SCRIPT_PATIENCE;
}

ns_t script_tolerance(const struct script *s)
{
    return s->o->live ? s->o->live->tolerance : 0;
}

const char *script_live_times(const struct script_live *v)
{
    return live_stamps_str(v->live);
}

/* --- Messages --------------------------------------------------------------------------------- */

/* A message that arrives piecemeal while the endpoint runs. */
struct message {
    struct chan *c;
    uint8_t head[4];
    uint32_t have, len; /* have: bytes of head and body received; len: bytes of the body */
    uint8_t *body;      /* terminated by NUL */
    int err;
};

static bool take_bytes(struct message *m, void *to, uint32_t n)
{
    ssize_t got = recv(m->c->fd, to, n, MSG_DONTWAIT);

    if (got > 0)
        m->have += (uint32_t)got;
    else if (got == 0)
        m->err = -ECONNRESET;
    else if (errno != EAGAIN && errno != EINTR)
        m->err = -errno;
    return got > 0;
}

/* True if the message is complete, or the connection failed. */
static bool message_complete(struct script *s, void *arg)
{
    struct message *m = arg;

    if (s->sim.wire_err)
        m->err = s->sim.wire_err;
    while (!m->err && m->have < 4)
        if (!take_bytes(m, m->head + m->have, 4 - m->have))
            return m->err != 0;
    if (!m->err && !m->body) {
        m->len = load_be32(m->head);
        m->err = m->len == 0 || m->len > CALL_MAX ? -EPROTO : 0;
        m->body = m->err ? NULL : calloc(1, m->len + 1);
        m->err = m->err ? m->err : m->body ? 0 : -ENOMEM;
    }
    while (!m->err && m->have < 4 + m->len)
        if (!take_bytes(m, m->body + m->have - 4, 4 + m->len - m->have))
            return m->err != 0;
    return true;
}

static int send_message(struct chan *c, uint8_t kind, const void *data, uint32_t len)
{
    uint8_t *m = malloc(5 + len);
    int r;

    if (!m)
        return -ENOMEM;
    store_be32(m, len + 1);
    m[4] = kind;
    if (len)
        memcpy(m + 5, data, len);
    r = chan_send(c, m, 5 + len);
    free(m);
    return r;
}

/* Receive a message before the hosts exist: block in chan_recv(). */
static int receive(struct chan *c, struct message *m)
{
    int r = chan_recv(c, m->head, 4);

    if (r < 0)
        return r;
    m->len = load_be32(m->head);
    if (m->len == 0 || m->len > CALL_MAX)
        return -EPROTO;
    m->body = calloc(1, m->len + 1);
    return m->body ? chan_recv(c, m->body, m->len) : -ENOMEM;
}

/* Send a message and wait for the response; the caller frees m->body. False with s->err set. */
static bool call(struct script *s, uint8_t kind, const void *data, uint32_t len, struct message *m)
{
    struct script_live *v = s->o->live;
    int r = send_message(&v->control, kind, data, len);

    *m = (struct message){.c = &v->control};
    if (r == 0 && !s->started)
        r = receive(&v->control, m);
    else if (r == 0)
        r = script_until(s, message_complete, m, 2 * v->patience + NS_PER_S) ? m->err : -ETIMEDOUT;
    return r == 0 || text_fail(&s->err, NULL, "the other rdmagen: %s", r == -EINTR ? "interrupted" : strerror(-r));
}

/* Append the report of host b about a line, with the scenario's name of this side, and with unprintable characters
 * escaped. */
static void put_report(struct script *s, const char *text)
{
    size_t agent = strlen(AGENT), n;

    for (; *text; text += n + (text[n] == '\n')) {
        n = strcspn(text, "\n");
        bool named = strncmp(text, AGENT ":", agent + 1) == 0;
        buf_puts(s->out, named ? s->name : "");
        buf_printable(s->out, text + (named ? agent : 0), n - (named ? agent : 0));
        buf_char(s->out, '\n');
    }
}

/* Send a message whose response is only GOOD, FAILED or BAD. */
static bool request(struct script *s, uint8_t kind, const void *data, uint32_t len)
{
    struct message m = {0};
    bool good = call(s, kind, data, len, &m);

    if (good && *m.body != GOOD) {
        good = false;
        if (*m.body == FAILED) {
            put_report(s, (char *)m.body + 1);
            s->failed = true;
        } else {
            text_fail(&s->err, NULL, "the other rdmagen: %s", (char *)m.body + 1);
        }
    }
    free(m.body);
    return good;
}

bool script_forward(struct script *s, const struct token *t)
{
    uint8_t data[1024 + 4];
    size_t n = strnlen(t->p, sizeof data - 4);

    if (s->o->live->control.fd < 0)
        return true;
    store_be32(data, s->line);
    memcpy(data + 4, t->p, n);
    return request(s, SAY, data, (uint32_t)n + 4);
}

bool script_end(struct script *s)
{
    return !s->o->live || s->o->live->agent || s->o->live->control.fd < 0 || request(s, END, NULL, 0);
}

bool script_fetch(struct script *s, const struct script_place *p)
{
    const struct script_live *v = s->o->live;
    uint64_t end = p->off + p->len;

    if (!v || p->m->host == v->wire.local || !p->m->p || p->off + p->len > p->m->len)
        return true;
    for (uint64_t at = p->off, n; at < end; at += n) {
        struct message m = {0};
        uint8_t ask[16];
        n = end - at < PIECE ? end - at : PIECE;
        store_be32(ask, (uint32_t)(p->m - s->mem));
        store_be64(ask + 4, at);
        store_be32(ask + 12, (uint32_t)n);
        bool good = call(s, MEM, ask, sizeof ask, &m);
        if (good && (*m.body != GOOD || m.len != n + 1))
            good = text_fail(&s->err, NULL, "the other rdmagen does not tell its memory");
        if (good)
            memcpy(p->m->p + at, m.body + 1, n);
        free(m.body);
        if (!good)
            return false;
    }
    return true;
}

/* --- Which side executes a statement ---------------------------------------------------------- */

static bool is_one_of(const struct token *t, const char *const *words)
{
    for (; *words; words++)
        if (token_is(t, *words))
            return true;
    return false;
}

/* Name of the host on the other side. */
static const char *other(const struct script *s)
{
    return s->o->live->wire.local ? "a" : "b";
}

/* "modify N RESET": both sides execute it for either host, or the queue pairs could not be joined again. */
static bool resets(const struct token *t, unsigned n)
{
    return n == 4 && token_is(&t[1], "modify") && token_is(&t[3], "RESET");
}

/* "post bind", "post reg": both sides have to know the new key. */
static bool changes_key(const struct token *t, unsigned n)
{
    return n > 2 && token_is(&t[1], "post") && (token_is(&t[2], "bind") || token_is(&t[2], "reg"));
}

static enum script_part part_of_host(struct script *s, const struct token *t, unsigned n)
{
    bool both = resets(t, n) || changes_key(t, n);

    if (!token_is(t, other(s)) || n < 2 || token_is(&t[1], ">") || token_is(&t[1], "mem"))
        return both && s->o->live->control.fd >= 0 ? PART_BOTH : PART_OURS;
    return both ? PART_BOTH : PART_THEIRS;
}

static enum script_part part_of(struct script *s, const struct token *t, unsigned n)
{
    static const char *const ours[] = {"net", "event", "inject", "flood", "none", "wait", "run", NULL};
    static const char *const both[] = {"seed", "host",  "qp",       "mem",  "srq", "mw",
                                       "mr",   "dereg", "register", "join", NULL};
    static const char *const cm[] = {"connect", "disconnect", "load", NULL};

    if (is_one_of(t, ours))
        return PART_OURS;
    if (is_one_of(t, both))
        return PART_BOTH;
    if (is_one_of(t, cm))
        return n == 4 && token_is(&t[3], other(s)) ? PART_THEIRS : PART_OURS;
    return part_of_host(s, t, n);
}

/* Why a word of "host" contradicts the real link, which the options of the command describe. NULL: it does not. */
static const char *link_differs(const struct script *s, const struct token *t)
{
    const struct identity *id = &s->o->live->live->id;
    struct token key, vlan;
    uint64_t n;

    if (token_is(t, "ib"))
        return "the link is Ethernet, not native InfiniBand";
    if (token_is(t, "ipv6") && gid_is_ipv4(id->gid))
        return "the link is IPv4: give IPv6 addresses, and --addr or -6";
    if (token_key(t, &key, &vlan) && token_is(&key, "vlan") && token_u64(&vlan, &n) && !(id->has_vlan && id->vlan == n))
        return "the link is not in this VLAN: --vlan says which it is in";
    if (token_is(t, "paths=2"))
        return "there is one path to a live peer";
    return NULL;
}

static enum script_part refuse(struct script *s, const struct token *t, const char *why)
{
    text_fail(&s->err, t, "%s", why);
    return PART_NEITHER;
}

/* Whether a line asks what the other host's program was told, or what is in its memory. */
static bool asks_other(const struct script *s, const struct token *t, unsigned n)
{
    static const char *const asks[] = {"wc", "state", "mem", "event", "up", "down", "failed", NULL};

    if (n < 2 || t->len != 1)
        return false;
    if (token_is(t, other(s)))
        return is_one_of(&t[1], asks);
    return n == 5 && token_is(&t[1], "mem") && t[4].len > 1 && t[4].p[0] == *other(s) && t[4].p[1] == '.';
}

/* The side that executes a statement with a foreign peer, which executes none. */
static enum script_part foreign_part(struct script *s, const struct token *t, unsigned n, enum script_part part)
{
    static const char *const places[] = {"to", "from", "at", NULL};
    static const char *const theirs[] = {"srq", "mw", "mr", "dereg", "register", NULL};
    struct script_live *v = s->o->live;

    for (unsigned i = 3; i + 1 < n && token_is(&t[1], "post") && part == PART_OURS; i++)
        if (is_one_of(&t[i], places) && !s->o->live->has_memory)
            return refuse(s, &t[i + 1], "the memory of the live peer is not known: give --rkey and --va");
    if (v->lenient && asks_other(s, t, n)) {
        v->passed_over++;
        return PART_NEITHER;
    }
    if (token_is(t, "host") && n > 1 && token_is(&t[1], other(s)))
        return refuse(s, &t[1], "host b is a live peer: its habits are its own");
    if (is_one_of(t, theirs) && n > 1 && t[1].len > 1 && t[1].p[0] == *other(s))
        return refuse(s, &t[1], "host b is a live peer: it registers its memory itself");
    if (token_is(t, other(s)) && n > 1 && token_is(&t[1], "mem"))
        return refuse(s, t, "host b is a live peer: its memory cannot be seen");
    if (part != PART_THEIRS)
        return part;
    if (n > 2 && token_is(&t[1], "post") && (token_is(&t[2], "recv") || token_is(&t[2], "srq")))
        return PART_NEITHER; /* the peer posts receives without a line of the scenario */
    return refuse(s, t, "host b is a live peer: rdmagen can neither control it nor see its state");
}

enum script_part script_part_of(struct script *s, const struct token *t, unsigned n)
{
    enum script_part part = part_of(s, t, n);
    const char *why;

    s->err = (struct text_error){0};
    for (unsigned i = 2; i < n && token_is(t, "host") && s->o->live->live; i++)
        if ((why = link_differs(s, &t[i])))
            return refuse(s, &t[i], why);
    if (s->o->dut[1])
        return PART_OURS;
    return s->o->live->control.fd < 0 ? foreign_part(s, t, n, part) : part;
}

/* --- Start ------------------------------------------------------------------------------------ */

static int set_addresses(struct script_live *v, struct script_opts *o)
{
    unsigned h = v->wire.local;
    struct av av;
    int r = live_resolve(v->live, v->peer, RESOLVE);

    if (r < 0 || !live_path(v->live, v->peer, &av))
        return r == -ETIMEDOUT || r == 0 ? -EHOSTUNREACH : r;
    for (unsigned i = 0; i < NET_HOSTS; i++) {
        struct link_addr *a = &o->sim.ep[i].addr;
        memcpy(a->mac, i == h ? v->live->id.mac : av.dmac, 6);
        memcpy(a->gid, i == h ? v->live->id.gid : v->peer, 16);
        a->has_vlan = v->live->id.has_vlan;
        a->vlan = v->live->id.vlan;
    }
    return 0;
}

bool script_live_has(const struct script_live *v, unsigned host, uint16_t addresses)
{
    return v->live && host == v->wire.local && v->control.fd < 0 && addresses <= v->live->id.more + 1;
}

static void init(struct script_live *v, struct script_opts *o)
{
    v->wire = (struct sim_wire){
        .local = v->agent, .ready = wire_ready, .send = wire_send, .wait = wire_wait, .clock = wire_clock, .user = v};
    v->start = live_now();
    o->live = v;
    o->sim.wire = &v->wire;
    o->sim.net.delay = 0;
}

static int init_middle(struct script_live *v, struct script_opts *o)
{
    init(v, o);
    v->wire.ready = middle_ready;
    v->wire.wait = middle_wait;
    for (unsigned h = 0; h < NET_HOSTS; h++)
        memcpy(o->sim.ep[h].addr.gid, v->ends[h], 16);
    return v->middle->begin(v->middle->user, o->sim.events);
}

int script_live_init(struct script_live *v, struct script_opts *o)
{
    uint8_t hello[HELLO_LEN] = {VERSION};
    struct message m = {0};
    int r;

    if (v->middle)
        return init_middle(v, o);
    init(v, o);
    r = set_addresses(v, o);
    if (r < 0 || v->control.fd < 0)
        return r;
    memcpy(hello + 1, v->live->id.gid, 16);
    store_be64(hello + 17, o->sim.seed);
    hello[25] = o->has_psn;
    store_be32(hello + 26, o->psn);
    r = send_message(&v->control, HELLO, hello, sizeof hello);
    if (r == 0)
        r = receive(&v->control, &m);
    free(m.body);
    return r;
}

/* --- Host b ----------------------------------------------------------------------------------- */

static int receive_hello(struct script_live *v, struct script_opts *o)
{
    struct message m = {.c = &v->control};
    int r = receive(&v->control, &m);

    if (r == 0 && (m.len != 1 + HELLO_LEN || *m.body != HELLO || m.body[1] != VERSION))
        r = -EPROTO;
    if (r == 0) {
        memcpy(v->peer, m.body + 2, 16);
        o->sim.seed = load_be64(m.body + 18);
        o->has_psn = m.body[26];
        o->psn = load_be32(m.body + 27);
    }
    free(m.body);
    if (r == 0)
        r = set_addresses(v, o);
    return r == 0 ? send_message(&v->control, GOOD, NULL, 0) : r;
}

static int answer_memory(struct script *s, const struct message *m)
{
    uint32_t i, n;
    uint64_t at;

    if (m->len != 17)
        return send_message(m->c, BAD, NULL, 0);
    i = load_be32(m->body + 1);
    at = load_be64(m->body + 5);
    n = load_be32(m->body + 13);
    if (i >= s->n_mem || !s->mem[i].p || n > PIECE || at > s->mem[i].len || n > s->mem[i].len - at)
        return send_message(m->c, BAD, NULL, 0);
    return send_message(m->c, GOOD, s->mem[i].p + at, n);
}

static int answer_line(struct script *s, struct message *m)
{
    struct token t[SCRIPT_WORDS];
    unsigned n = m->len > 5 ? text_split((char *)m->body + 5, t, SCRIPT_WORDS) : 0;
    bool good;

    s->line = m->len > 5 ? load_be32(m->body + 1) : 0;
    s->failed = false;
    s->err = (struct text_error){0};
    s->out->len = 0;
    good = n > 0 && n <= SCRIPT_WORDS ? script_statement(s, t, n)
                                      : text_fail(&s->err, NULL, "this is no line of a scenario");
    if (good)
        return send_message(m->c, GOOD, NULL, 0);
    return s->failed ? send_message(m->c, FAILED, buf_str(s->out), (uint32_t)s->out->len)
                     : send_message(m->c, BAD, s->err.msg, (uint32_t)strlen(s->err.msg));
}

static int answer_end(struct script *s, const struct message *m)
{
    s->failed = false;
    s->out->len = 0;
    script_final_checks(s);
    return send_message(m->c, s->failed ? FAILED : GOOD, buf_str(s->out), (uint32_t)s->out->len);
}

/* Receive one message and respond to it. */
static int serve_one(struct script *s, struct message *m)
{
    struct script_live *v = s->o->live;
    int r = 0;

    if (!s->started)
        r = receive(&v->control, m);
    else if (script_until(s, message_complete, m, NS_NEVER))
        r = m->err;
    else
        r = s->sim.wire_err ? s->sim.wire_err : -ETIMEDOUT;
    if (r < 0)
        return r;
    return *m->body == SAY   ? answer_line(s, m)
           : *m->body == MEM ? answer_memory(s, m)
           : *m->body == END ? answer_end(s, m)
                             : -EPROTO;
}

int script_live_serve(struct script_live *v, struct script_opts *o)
{
    struct script *s;
    struct buf out = {0};
    int r;

    v->agent = true;
    init(v, o);
    r = receive_hello(v, o);
    s = r < 0 ? NULL : script_new(AGENT, o, &out);
    if (!s) {
        event_list_free(o->sim.events);
        return r < 0 ? r : -ENOMEM;
    }
    while (r == 0) {
        struct message m = {.c = &v->control};
        r = serve_one(s, &m);
        free(m.body);
    }
    script_free(s);
    buf_free(&out);
    return r == -ECONNRESET ? 0 : r;
}
