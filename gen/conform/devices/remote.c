/* layer 3 (conform): an agent on another host as a device under test: its sessions over TCP. What it says is not
 * trusted: lines, answers and bytes are bounded, and so is every wait. */
#include "gen/conform/devices/remote.h"
#include "gen/agent/agent.h"
#include "gen/peers/oob_tcp.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#define STEP         (500 * NS_PER_US) /* period in which the TCP connection is polled */
#define AGAIN        (5 * NS_PER_MS)   /* between tries to reach an agent that is busy */
#define FREE         (5 * NS_PER_S)    /* longest wait until the agent has ended the session before */
#define IN_BYTES     (LINE_BYTES + LINE_DATA)
#define SETTINGS_MAX 300        /* words of a line of settings */
#define SAID_MAX     (4u << 20) /* bytes of lines before an answer */

struct remote_dut {
    const struct remote_config *c;
    struct sim *sim; /* of the scenario; NULL: none runs */
    struct chan chan;
    ns_t end;        /* live_now(): of the wait for an answer */
    bool ended;      /* the agent has closed the connection */
    bool stays;      /* a session is over, and the agent has not closed the connection */
    size_t n_in, at; /* bytes received; of these, read already */
    char why[200];
    char in[IN_BYTES];
};

static bool fails(struct remote_dut *r, const char *why, int e)
{
    snprintf(r->why, sizeof r->why, "%s%s%s", why, e ? ": " : "", e ? strerror(-e) : "");
    return false;
}

static const char *why_of(void *user)
{
    return ((struct remote_dut *)user)->why;
}

/* --- Bytes ------------------------------------------------------------------------------------ */

/* Without a scenario: wait until live_now() is `until`, or an event is there. 0 or a negative errno. */
static int idle(struct remote_dut *r, ns_t until)
{
    return r->c->live ? live_look(r->c->live, until, NS_NEVER) : live_wait(NULL, 0, until);
}

/* Whether the wait for an answer may go on. */
static bool has_time(struct remote_dut *r)
{
    if (live_now() < r->end)
        return true;
    snprintf(r->why, sizeof r->why, "no answer within %.3g s", (double)r->c->answer / NS_PER_S);
    return false;
}

/* Let the endpoint work for a moment. False: the network failed, or the wait has lasted too long. */
static bool step(struct remote_dut *r)
{
    int e;

    if (r->sim)
        sim_step(r->sim, r->sim->now + STEP);
    e = r->sim ? r->sim->wire_err : idle(r, live_now() + STEP);
    if (e < 0)
        return fails(r, e == -EINTR ? "interrupted" : "the network failed", e == -EINTR ? 0 : e);
    return has_time(r);
}

static bool send_all(struct remote_dut *r, const struct buf *b)
{
    for (size_t at = 0; at < b->len;) {
        ssize_t n = send(r->chan.fd, b->p + at, b->len - at, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0)
            at += (size_t)n;
        else if (errno != EAGAIN && errno != EINTR)
            return fails(r, "the session broke off", -errno);
        else if (!step(r))
            return false;
    }
    return true;
}

/* Receive some bytes, behind those that were not read yet. */
static bool fill(struct remote_dut *r)
{
    ssize_t n;

    r->n_in -= r->at;
    memmove(r->in, r->in + r->at, r->n_in);
    r->at = 0;
    if (!has_time(r)) /* whatever else the agent says */
        return false;
    while ((n = recv(r->chan.fd, r->in + r->n_in, IN_BYTES - r->n_in, MSG_DONTWAIT)) < 0) {
        if (errno != EAGAIN && errno != EINTR)
            return fails(r, "the session broke off", -errno);
        if (!step(r))
            return false;
    }
    r->n_in += (size_t)n;
    r->ended = n == 0;
    return n > 0 || fails(r, "the agent has ended the session", 0);
}

/* The next line, terminated by NUL; valid until the next call. NULL: there is none. */
static const char *next_line(struct remote_dut *r, size_t *len)
{
    char *line = r->in + r->at, *end;

    while (!(end = memchr(line, '\n', r->n_in - r->at))) {
        if (r->n_in - r->at >= LINE_BYTES) {
            fails(r, "the agent's line does not end", 0);
            return NULL;
        }
        if (!fill(r))
            return NULL;
        line = r->in;
    }
    *end = '\0';
    *len = (size_t)(end - line);
    r->at += *len + 1;
    return line;
}

/* The `n` bytes behind the line that was read last. */
static bool take_bulk(struct remote_dut *r, size_t n, struct buf *bulk)
{
    if (n > LINE_DATA)
        return fails(r, "the agent's answer is too long", 0);
    while (r->n_in - r->at < n)
        if (!fill(r))
            return false;
    buf_mem(bulk, r->in + r->at, n);
    r->at += n;
    return !bulk->err || fails(r, "out of memory", 0);
}

/* --- Lines ------------------------------------------------------------------------------------ */

static bool ask(void *user, const char *line, const uint8_t *data, size_t n, struct buf *said, struct buf *bulk)
{
    struct remote_dut *r = user;
    size_t id = strcspn(line, " ") + 1, len;
    struct buf b = {0};
    const char *got;
    bool good;

    buf_printf(&b, "%s\n", line);
    buf_mem(&b, data, n);
    r->end = live_now() + r->c->answer;
    good = b.err ? fails(r, "out of memory", 0) : send_all(r, &b);
    buf_free(&b);
    while (good && said->len < SAID_MAX) {
        got = next_line(r, &len);
        if (!got)
            return false;
        buf_mem(said, got, len);
        buf_char(said, '\n');
        if (len >= id && memcmp(got, line, id) == 0)
            return take_bulk(r, line_data(got, len), bulk) && !said->err;
    }
    return good ? fails(r, "the agent says too much", 0) : false;
}

/* The value of `key` in a line, "" if there is none. */
static void word(const char *line, const char *key, char *to, size_t size)
{
    size_t n = strlen(key), len;

    *to = '\0';
    for (const char *p = strchr(line, ' '); p; p = strchr(p + 1, ' '))
        if (strncmp(p + 1, key, n) == 0 && p[1 + n] == '=') {
            len = strcspn(p + n + 2, " \n");
            snprintf(to, size, "%.*s", (int)(len < size ? len : size - 1), p + n + 2);
            return;
        }
}

/* --- Proof ------------------------------------------------------------------------------------ */

/* `key` of a line as bytes. */
static bool hex(const char *line, const char *key, uint8_t *to, size_t n)
{
    char text[2 * AUTH_NONCE + 1];
    size_t got = 0;

    word(line, key, text, sizeof text);
    return sodium_hex2bin(to, n, text, strlen(text), NULL, &got, NULL) == 0 && got == n;
}

static void put_hex(struct buf *b, const char *key, const uint8_t *from, size_t n)
{
    buf_printf(b, " %s=", key);
    buf_bytes(b, from, n, 0);
}

/* Prove that we know the token, and have the agent prove it. 0 or a negative errno. */
static int prove(struct remote_dut *r, const char *greeting)
{
    uint8_t nonce[AUTH_NONCE], own[AUTH_NONCE], proof[AUTH_PROOF], theirs[AUTH_PROOF];
    struct buf line = {0}, said = {0}, bulk = {0};
    unsigned version = 0;
    bool good, busy;

    if (sscanf(greeting, "rdmagen-agent %3u ", &version) != 1 || !hex(greeting, "nonce", nonce, sizeof nonce))
        return fails(r, "this is no `rdmagen agent`", 0), -EPROTO;
    if (version != AGENT_PROTOCOL)
        return fails(r, "the agent speaks another version of its protocol", 0), -EPROTO;
    auth_nonce(own);
    auth_proof(r->c->token, nonce, "client", proof);
    buf_puts(&line, "0 auth");
    put_hex(&line, "hmac", proof, sizeof proof);
    put_hex(&line, "nonce", own, sizeof own);
    auth_proof(r->c->token, own, "agent", proof);
    good = ask(r, buf_str(&line), NULL, 0, &said, &bulk);
    busy = good && strncmp(buf_str(&said), "0 err EBUSY", 11) == 0;
    if (busy)
        good = false;
    else if (good && strncmp(buf_str(&said), "0 ok", 4) != 0)
        good = fails(r, "the agent does not take this token", 0);
    else if (good && !(hex(buf_str(&said), "hmac", theirs, sizeof theirs) && auth_same(proof, theirs)))
        good = fails(r, "the agent does not know this token", 0);
    else if (!good)
        strncat(r->why, ", when it was told the token", sizeof r->why - strlen(r->why) - 1);
    buf_free(&line);
    buf_free(&said);
    buf_free(&bulk);
    return good ? 0 : busy ? -EBUSY : -EACCES;
}

/* --- Sessions --------------------------------------------------------------------------------- */

static void hang_up(struct remote_dut *r)
{
    if (r->chan.fd >= 0)
        chan_close(&r->chan);
    r->chan.fd = -1;
}

/* Connect once. 0; -EBUSY: the agent serves another client; another negative errno. */
static int connect_once(struct remote_dut *r)
{
    const char *greeting;
    size_t len;
    int e = chan_dial(&r->chan, r->c->live, r->c->host, r->c->port, r->c->answer);

    r->chan.stream.live = NULL; /* the token's proofs belong in no capture */
    if (e < 0) {
        r->chan.fd = -1;
        return fails(r, "no agent is reached", e), e;
    }
    r->n_in = r->at = 0;
    r->ended = false;
    r->end = live_now() + r->c->answer;
    greeting = next_line(r, &len);
    e = !greeting ? -ECONNRESET : strcmp(greeting, "rdmagen-agent busy") == 0 ? -EBUSY : prove(r, greeting);
    if (e == -EBUSY)
        fails(r, "the agent serves another client", 0);
    if (e < 0)
        hang_up(r);
    else
        *r->why = '\0';
    return e;
}

/* Connect, as soon as the agent has ended the session before. */
static int dial(struct remote_dut *r)
{
    ns_t until = live_now() + FREE;
    int e;

    r->sim = NULL;
    if (r->stays) /* each session would take so long */
        return fails(r, "the agent did not end the session before", 0), -ETIMEDOUT;
    while ((e = connect_once(r)) == -EBUSY && live_now() < until)
        for (ns_t again = live_now() + AGAIN; live_now() < again;)
            if (idle(r, again) < 0)
                return fails(r, "interrupted", 0), -EINTR;
    return e;
}

static bool start(void *user, struct sim *sim)
{
    struct remote_dut *r = user;

    if (dial(r) < 0)
        return false;
    r->sim = sim;
    sim->foreign[r->c->side] = true;
    return true;
}

/* The session is over when the agent closes the connection: it has destroyed everything then. */
static void stop(void *user)
{
    struct remote_dut *r = user;
    struct buf said = {0}, bulk = {0};
    size_t len;

    if (r->chan.fd < 0)
        return;
    if (!*r->why) {
        if (ask(r, "q quit", NULL, 0, &said, &bulk))
            while (next_line(r, &len))
                continue;
        r->stays = !r->ended && live_now() >= r->end;
    }
    buf_free(&said);
    buf_free(&bulk);
    hang_up(r);
    r->sim = NULL;
}

struct remote_dut *remote_dut_new(struct script_dut *dut, const struct remote_config *c)
{
    struct remote_dut *r = calloc(1, sizeof *r);

    if (!r)
        return NULL;
    r->c = c;
    r->chan.fd = -1;
    *dut = (struct script_dut){.start = start, .ask = ask, .stop = stop, .why = why_of, .user = r};
    return r;
}

void remote_dut_free(struct remote_dut *r)
{
    if (r)
        hang_up(r);
    free(r);
}

/* Append what a line of the agent says under `key`. */
static void tell(struct buf *b, struct buf *line, const char *key, const char *before)
{
    char text[80];

    word(buf_str(line), key, text, sizeof text);
    if (!*text)
        return;
    buf_puts(b, before);
    buf_printable(b, text, strlen(text));
}

/* A number that readers of JSON take, most of which have 63 bits and a sign. */
static bool number_of(const struct token *t, uint64_t *v)
{
    return token_u64(t, v) && *v <= INT64_MAX;
}

/* What the driver is set to: the words NAME=NUMBER of a line, as a member; an older agent says none. */
static void put_settings(struct buf *b, const char *line)
{
    const char *before = ",\"settings\":{";
    struct token w[SETTINGS_MAX], name, value;
    unsigned n = text_split(line, w, SETTINGS_MAX);
    uint64_t v;

    for (unsigned i = 2; i < n && n <= SETTINGS_MAX; i++) {
        if (!token_cut(&w[i], '=', &name, &value) || !number_of(&value, &v))
            continue;
        buf_puts(b, before);
        buf_json(b, name.p, name.len);
        buf_printf(b, ":%llu", (unsigned long long)v);
        before = ",";
    }
    buf_puts(b, *before == ',' && before[1] ? "" : "}");
}

/* What the agent has said of its device, as members of JSON, by the keys of the lines that have them. */
static void put_device(struct buf *b, struct buf *open, struct buf *query, struct buf *info, struct buf *port,
                       struct buf *settings)
{
    const struct {
        struct buf *line;
        const char *key, *name;
        bool number;
    } members[] = {
        {open, "dev", "device", false},
        {info, "driver", "driver", false},
        {query, "fw_ver", "firmware", false},
        {info, "kernel", "kernel", false},
        {info, "machine", "machine", false},
        {info, "pci", "pci", false},
        {query, "node_guid", "node_guid", false},
        {query, "vendor_id", "vendor_id", true},
        {query, "vendor_part_id", "vendor_part_id", true},
        {query, "hw_ver", "hw_ver", true},
        {query, "phys_port_cnt", "phys_port_cnt", true},
        {port, "active_mtu", "mtu", true},
    };
    const char *before = "";
    char text[80];

    for (unsigned i = 0; i < ARRAY_LEN(members); i++) {
        uint64_t n = 0;
        word(buf_str(members[i].line), members[i].key, text, sizeof text);
        struct token t = token_of(text);
        if (!*text || (members[i].number && !number_of(&t, &n)))
            continue;
        buf_printf(b, "%s\"%s\":", before, members[i].name);
        if (members[i].line == port)
            buf_printf(b, "%u", 128u << (n & 7)); /* enum ibv_mtu: 1 is 256 bytes */
        else if (members[i].number)
            buf_printf(b, "%llu", (unsigned long long)n);
        else
            buf_json(b, text, strlen(text));
        before = ",";
    }
    put_settings(b, buf_str(settings));
}

int remote_dut_tell(struct remote_dut *r, struct buf *b, struct buf *device)
{
    struct buf open = {0}, query = {0}, info = {0}, port = {0}, settings = {0}, bulk = {0};
    int e = dial(r);

    if (e < 0)
        return e;
    if (!ask(r, "1 dev open", NULL, 0, &open, &bulk) || !ask(r, "2 dev query", NULL, 0, &query, &bulk) ||
        !ask(r, "3 info", NULL, 0, &info, &bulk) || !ask(r, "4 settings", NULL, 0, &settings, &bulk) ||
        !ask(r, "5 port", NULL, 0, &port, &bulk))
        e = -EPROTO;
    else if (strncmp(buf_str(&open), "1 ok", 4) != 0)
        e = fails(r, "the agent has no RDMA device that it opens", 0) - ENODEV;
    tell(b, &open, "dev", "");
    tell(b, &info, "driver", ", driver ");
    tell(b, &query, "fw_ver", ", firmware ");
    tell(b, &info, "kernel", ", Linux ");
    put_device(device, &open, &query, &info, &port, &settings);
    stop(r);
    buf_free(&open);
    buf_free(&query);
    buf_free(&info);
    buf_free(&port);
    buf_free(&settings);
    buf_free(&bulk);
    return e;
}
