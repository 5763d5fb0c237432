/* layer 3 (agent): a client's connection: lines in, answers and events out. */
#include "gen/agent/session.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define IN_BYTES (LINE_BYTES + LINE_DATA)
#define FDS_MAX  64

struct session {
    struct agent agent;
    const struct auth_token *token;
    const struct session_claim *claim; /* NULL: there is no other client */
    int fd;
    bool proved, gone;
    uint8_t nonce[AUTH_NONCE];
    ns_t deadline; /* CLOCK_MONOTONIC: of the proof */
    enum session_end end;
    char *in; /* IN_BYTES */
    size_t n_in;
};

/* --- Output ----------------------------------------------------------------------------------- */

/* Send what the agent has said. */
static void flush(struct session *s)
{
    struct buf *b = &s->agent.out;
    ns_t until = agent_now() + SESSION_STUCK_NS;
    size_t at = 0;

    if (b->err)
        s->gone = true;
    while (at < b->len && !s->gone) {
        struct pollfd p = {.fd = s->fd, .events = POLLOUT};
        ssize_t n = send(s->fd, b->p + at, b->len - at, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0) {
            at += (size_t)n;
        } else if ((errno != EAGAIN && errno != EINTR) || agent_now() > until) {
            s->gone = true;
            s->end = errno == EAGAIN ? SESSION_BROKEN : s->end;
        } else {
            poll(&p, 1, 1000);
        }
    }
    b->len = 0;
}

/* --- Waiting ---------------------------------------------------------------------------------- */

/* The client's descriptor, then those of the device and of channels. */
static nfds_t descriptors(struct session *s, struct pollfd *p, short events)
{
    struct rnic *r = s->agent.rnic;
    int fd[RNIC_FDS];
    nfds_t n = 0;

    p[n++] = (struct pollfd){.fd = s->fd, .events = events};
    for (int i = 0, k = r->ops->fds(r, fd); i < k; i++)
        p[n++] = (struct pollfd){.fd = fd[i], .events = POLLIN};
    for (struct object *c = object_next(&s->agent.objects, OBJECT_CHANNEL, NULL); c && n < FDS_MAX;
         c = object_next(&s->agent.objects, OBJECT_CHANNEL, c))
        p[n++] = (struct pollfd){.fd = r->ops->channel_fd(r, c->impl), .events = POLLIN};
    return n;
}

/* Wait until something happens, or `until`. What happened to the client's descriptor. */
static short wait_fds(struct session *s, short events, ns_t until)
{
    struct pollfd p[FDS_MAX];
    nfds_t n = descriptors(s, p, events);
    ns_t left = until - agent_now();
    struct timespec t;

    left = left < 0 ? 0 : left;
    t = (struct timespec){.tv_sec = left / NS_PER_S, .tv_nsec = left % NS_PER_S};
    return ppoll(p, n, &t, NULL) > 0 ? p[0].revents : 0;
}

static bool pause_agent(void *user, struct agent *a, ns_t until)
{
    struct session *s = user;

    (void)a;
    flush(s);
    if (!s->gone && (wait_fds(s, POLLRDHUP, until) & (POLLRDHUP | POLLHUP | POLLERR)))
        s->gone = true;
    return !s->gone;
}

/* --- Proof ------------------------------------------------------------------------------------ */

static void greet(struct session *s)
{
    auth_nonce(s->nonce);
    buf_printf(&s->agent.out, "rdmagen-agent %d nonce=", AGENT_PROTOCOL);
    buf_bytes(&s->agent.out, s->nonce, sizeof s->nonce, 0);
    buf_char(&s->agent.out, '\n');
}

static bool is_proof(struct session *s, struct request *r, uint8_t nonce[AUTH_NONCE], size_t *n_nonce)
{
    uint8_t given[AUTH_PROOF] = {0}, right[AUTH_PROOF];
    size_t n = 0;

    if (r->n_verb != 1 || !token_is(&r->verb[0], "auth") || !request_hex(r, "hmac", given, sizeof given, &n) ||
        !request_hex(r, "nonce", nonce, AUTH_NONCE, n_nonce))
        return false;
    auth_proof(s->token, s->nonce, "client", right);
    return auth_same(given, right) && n == AUTH_PROOF;
}

/* The first line: `ID auth hmac=HEX [nonce=HEX]`; with a nonce, the agent proves itself as well. */
static void prove(struct session *s, const char *line, size_t len)
{
    uint8_t nonce[AUTH_NONCE] = {0}, own[AUTH_PROOF];
    struct request r;
    size_t n = 0;

    s->proved = request_parse(&r, line, len) && is_proof(s, &r, nonce, &n);
    if (!s->proved) {
        buf_printf(&s->agent.out, "%s err EACCES expected the proof: auth hmac=\n", r.id);
        s->end = SESSION_REFUSED;
        return;
    }
    if (s->claim && !s->claim->take(s->claim->user)) {
        buf_printf(&s->agent.out, "%s err EBUSY another client is served\n", r.id);
        s->end = SESSION_SILENT;
        return;
    }
    buf_printf(&s->agent.out, "%s ok", r.id);
    if (n == AUTH_NONCE) {
        auth_proof(s->token, nonce, "agent", own);
        buf_puts(&s->agent.out, " hmac=");
        buf_bytes(&s->agent.out, own, sizeof own, 0);
    }
    buf_char(&s->agent.out, '\n');
}

/* --- Input ------------------------------------------------------------------------------------ */

static void broken(struct session *s, const char *why)
{
    buf_printf(&s->agent.out, "? err EMSGSIZE %s\n", why);
    s->end = SESSION_BROKEN;
}

/* Take the line at `in`, the last `n` bytes of the input, with the bytes behind it. How many bytes it has; 0: it is not
 * complete, or wrong. */
static size_t take_line(struct session *s, char *in, size_t n)
{
    char *end = memchr(in, '\n', n);
    size_t len, data;

    if (!end) {
        if (n >= LINE_BYTES)
            broken(s, "the line is too long");
        return 0;
    }
    len = (size_t)(end - in);
    if (len >= LINE_BYTES) {
        broken(s, "the line is too long");
        return 0;
    }
    data = s->proved ? line_data(in, len) : 0;
    if (data > LINE_DATA)
        broken(s, "too much data");
    if (data > LINE_DATA || n - len - 1 < data)
        return 0;
    *end = '\0';
    if (!s->proved)
        prove(s, in, len);
    else
        agent_line(&s->agent, in, len, (const uint8_t *)end + 1, data);
    return len + 1 + data;
}

static bool is_over(const struct session *s)
{
    return s->gone || s->end != SESSION_OVER || s->agent.ended;
}

static void take_lines(struct session *s)
{
    size_t at = 0, len;

    while (!is_over(s) && at < s->n_in && (len = take_line(s, s->in + at, s->n_in - at)) != 0) {
        at += len;
        if (s->agent.out.len > LINE_BYTES)
            flush(s);
    }
    s->n_in -= at;
    memmove(s->in, s->in + at, s->n_in);
}

static void receive(struct session *s)
{
    ssize_t n = recv(s->fd, s->in + s->n_in, IN_BYTES - s->n_in, MSG_DONTWAIT);

    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        s->gone = true;
    else if (n > 0)
        s->n_in += (size_t)n;
}

static void step(struct session *s)
{
    ns_t until = s->proved ? agent_now() + 10 * NS_PER_S : s->deadline;
    short what = wait_fds(s, POLLIN, until);

    if (s->proved)
        agent_events(&s->agent);
    else if (agent_now() >= s->deadline)
        s->end = SESSION_SILENT;
    if (what)
        receive(s);
    take_lines(s);
    flush(s);
}

enum session_end session_run(int fd, struct rnic *r, const struct auth_token *token, const struct agent_limits *limits,
                             const char *only, const struct session_claim *claim)
{
    struct session s = {
        .token = token, .claim = claim, .fd = fd, .in = malloc(IN_BYTES), .deadline = agent_now() + SESSION_PROVE_NS};
    const struct agent_driver driver = {.user = &s, .pause = pause_agent};

    agent_begin(&s.agent, r, limits, &driver);
    strncpy(s.agent.only, only, sizeof s.agent.only - 1);
    greet(&s);
    flush(&s);
    while (s.in && !is_over(&s))
        step(&s);
    flush(&s);
    agent_end(&s.agent);
    r->ops->close(r);
    free(s.in);
    if (!s.proved && s.end == SESSION_OVER)
        s.end = SESSION_SILENT;
    return s.end;
}
