/* layer 3 (peers): the out-of-band messages of the server's clients, and the responses to them. */
#include "gen/peers/pingpong.h"
#include "gen/peers/serve_impl.h"

#include <errno.h>
#include <sys/socket.h>

#define RESOLVE_WAIT (500 * NS_PER_MS)
#define COUNTS_WAIT  (100 * NS_PER_MS) /* after this time without a packet no message is on its way any more */
#define ADDRESS_WAIT                                                                                                   \
    (300 * NS_PER_MS) /* after this time without a second address a client of ibv_*_pingpong has none */

/* --- Messages over TCP ------------------------------------------------------------------------ */

static bool is_hex(uint8_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

size_t msg_wanted(const struct serve_session *s)
{
    switch (s->stage) {
    case SERVE_VERSION: /* a client of ibv_*_pingpong sends its address first: "0000:..." */
        return s->got >= 5 && s->in[4] == ':' ? PINGPONG_TEXT : PERFTEST_VERSION;
    case SERVE_BUFFERS:
    case SERVE_LINE:
        return PERFTEST_INT;
    case SERVE_MTU:
        return PERFTEST_MTU;
    case SERVE_ADDRESSES:
        return PINGPONG_TEXT;
    case SERVE_PINGPONG:
        return PERFTEST_DONE;
    default: /* keys begin with a hexadecimal digit, reports with another byte, "done" with two letters of which one is
                no such digit */
        if (s->got < 2)
            return 2;
        return s->in[0] == 'd' && s->in[1] == 'o' ? PERFTEST_DONE : is_hex(s->in[0]) ? PERFTEST_TEXT : PERFTEST_VALUE;
    }
}

/* Whether the complete message at s->in has the address of a queue pair; copies it to `gid`. */
static bool names_address(const struct serve_session *s, uint8_t gid[16])
{
    struct perftest_keys k;
    struct pingpong_addr a;

    if (s->got == PINGPONG_TEXT && s->stage != SERVE_KEYS && pingpong_addr_get(&a, (const char *)s->in)) {
        memcpy(gid, a.gid, 16);
        return a.qpn != 0;
    }
    if (s->stage == SERVE_KEYS && s->got == PERFTEST_TEXT && perftest_keys_get(&k, (const char *)s->in)) {
        memcpy(gid, k.gid, 16);
        return true;
    }
    return false;
}

static bool asks_counts(const struct serve_session *s, const struct perftest_keys *k)
{
    return s->mark.ours && k->lid == PERFTEST_COUNTS;
}

/* Whether the client requests the number of messages that the server received while some may still be on their way. */
static bool awaits_messages(const struct serve *v, const struct serve_session *s, ns_t now)
{
    struct perftest_keys k;

    return s->stage == SERVE_KEYS && s->got == PERFTEST_TEXT && perftest_keys_get(&k, (const char *)s->in) &&
           asks_counts(s, &k) && serve_messages(v, s) < k.vaddr &&
           now - (s->last_rx > s->resolve_from ? s->last_rx : s->resolve_from) < COUNTS_WAIT;
}

bool msg_is_ready(struct serve *v, struct serve_session *s, ns_t now)
{
    uint8_t gid[16];

    if (s->resolve_from == 0) {
        s->resolve_from = now;
        s->resolve_next = 0;
    }
    if (awaits_messages(v, s, now))
        return false;
    if (names_address(s, gid) && !live_ask(v->live, gid, &s->resolve_next) && now - s->resolve_from < RESOLVE_WAIT)
        return false;
    s->resolve_from = 0;
    return true;
}

static void reply(struct serve_session *s, const void *data, size_t len, ns_t now)
{
    int r = 0;

    if (s->cm)
        r = rchan_send(&s->control, data, len, now);
    else if (send(s->fd, data, len, MSG_NOSIGNAL) != (ssize_t)len)
        r = -errno;
    else
        record_tcp(&s->stream, s->fd, true, data, len);
    if (r < 0)
        session_fail(s, "it does not listen: %s", strerror(-r));
}

/* --- Before the data -------------------------------------------------------------------------- */

static void version(struct serve_session *s, const uint8_t *p, ns_t now)
{
    uint8_t mine[PERFTEST_VERSION];

    if (!perftest_version_get(p, &s->mark)) {
        session_fail(s, "it speaks neither as perftest 5.70 or later nor as ibv_rc_pingpong");
        return;
    }
    perftest_version_put(mine, NULL);
    reply(s, mine, sizeof mine, now);
    s->stage = SERVE_BUFFERS;
}

static void mtu(struct serve *v, struct serve_session *s, const uint8_t *p, ns_t now)
{
    uint16_t theirs = perftest_mtu_get(p);
    uint8_t mine[PERFTEST_MTU];

    s->mtu = theirs && theirs < v->live->mtu ? theirs : v->live->mtu;
    perftest_mtu_put(mine, v->live->mtu);
    reply(s, mine, sizeof mine, now);
    s->stage = SERVE_KEYS;
}

static struct serve_qp *find(struct serve_session *s, uint32_t peer_qpn)
{
    for (unsigned i = 0; i < s->n_qps; i++)
        if (s->qp[i].peer.qpn == peer_qpn || (s->qp[i].xrc.peer.qpn && s->qp[i].xrc.peer.qpn == peer_qpn))
            return &s->qp[i];
    return NULL;
}

/* XRC with latency: the queue pair for which the client has not announced a target of the answers yet. */
static struct serve_qp *lacks_target(struct serve_session *s)
{
    struct serve_qp *q = s->n_qps ? &s->qp[0] : NULL;

    return q && xrc_both_ways(&q->xrc) && !q->xrc.peer.qpn ? q : NULL;
}

static enum serve_kind kind_of(const struct serve_session *s, const struct perftest_keys *k)
{
    bool reads =
        k->out_reads > 1 || s->mark.op == PERFTEST_READ || s->mark.op == PERFTEST_ATOMIC || s->kind == SERVE_READ;

    return k->rkey == 0 || s->kind == SERVE_SEND ? SERVE_SEND : reads ? SERVE_READ : SERVE_WRITE;
}

static void send_keys(struct serve_session *s, const struct perftest_keys *own, ns_t now)
{
    char text[PERFTEST_TEXT];

    if (s->cm) {
        perftest_keys_put_binary((uint8_t *)text, own);
        reply(s, text, PERFTEST_BINARY, now);
    } else {
        perftest_keys_put(text, own);
        reply(s, text, PERFTEST_TEXT, now);
    }
}

/* After the data: send another rdmagen the number of messages received. */
static void send_counts(struct serve *v, struct serve_session *s, const struct serve_qp *q, ns_t now)
{
    struct perftest_keys k = q->own;
    uint64_t wrong = serve_wrong(s);

    k.lid = PERFTEST_COUNTS;
    k.vaddr = serve_messages(v, s);
    k.rkey = wrong < UINT32_MAX ? (uint32_t)wrong : UINT32_MAX;
    s->n_keys++;
    send_keys(s, &k, now);
}

/* Whether server and client agree about XRC, of which only rdmagen's number of its shared receive queue tells; else the
 * session has failed. */
static bool agrees_on_xrc(const struct serve *v, struct serve_session *s, const struct perftest_keys *k)
{
    bool ours = v->config.type == QPT_XRC_INI, theirs = k->srqn != 0;

    if (s->cm || !s->mark.ours || ours == theirs)
        return true;
    session_fail(s, ours ? "this server uses XRC, the client does not (-c XRC)"
                         : "the client uses XRC, this server does not (-c XRC)");
    return false;
}

/* The queue pair for that of the client with these keys, which are new: created or, for a client's target, found. NULL:
 * the session has failed. */
static struct serve_qp *join(struct serve *v, struct serve_session *s, const struct perftest_keys *k, ns_t now)
{
    struct serve_qp *q = lacks_target(s);

    if (q) {
        q->xrc.peer = *k;
        sqp_connect_back(v, s, q, now);
        return q;
    }
    if (!agrees_on_xrc(v, s, k))
        return NULL;
    memcpy(s->gid, k->gid, 16);
    q = sqp_new(v, s, k);
    if (q)
        sqp_connect(v, s, q, now);
    return q;
}

/* Keys of a new queue pair, or of a known one. */
static void keys(struct serve *v, struct serve_session *s, const struct perftest_keys *k, ns_t now)
{
    struct serve_qp *q = find(s, k->qpn);
    bool initiator;

    if (s->cm && k->qpn == 0) { /* no queue pair: exchanged before and after they are connected */
        send_keys(s, &(struct perftest_keys){0}, now);
        return;
    }
    if (q && asks_counts(s, k)) {
        send_counts(v, s, q, now);
        return;
    }
    if (k->qpn == 0 || (!q && s->cm)) {
        session_fail(s, "it tells of queue pair 0x%06x, which is not connected", k->qpn);
        return;
    }
    if (!q)
        q = join(v, s, k, now);
    if (*s->why)
        return;
    initiator = xrc_both_ways(&q->xrc) && k->qpn != q->xrc.peer.qpn; /* our initiator's keys are the answer to its */
    if (initiator || !xrc_both_ways(&q->xrc))
        q->peer = *k;
    s->kind = kind_of(s, k);
    s->n_keys++;
    s->keys_at = now;
    sqp_ready(v, s, q, now);
    send_keys(s, initiator ? &q->xrc.own : &q->own, now);
}

/* Send the addresses of the first `n` queue pairs, zeros for those that do not exist; the client then starts its
 * messages. */
static void send_addresses(struct serve_session *s, unsigned n, ns_t now)
{
    static const struct perftest_keys none;
    char text[PINGPONG_QPS][PINGPONG_TEXT];

    for (unsigned i = 0; i < n; i++) {
        const struct perftest_keys *k = i < s->n_qps ? &s->qp[i].own : &none;
        struct pingpong_addr own = {.qpn = k->qpn, .psn = k->psn};
        memcpy(own.gid, k->gid, 16);
        pingpong_addr_put(text[i], &own);
    }
    reply(s, text, (size_t)n * PINGPONG_TEXT, now);
    s->stage = SERVE_PINGPONG;
}

void msg_timeout(struct serve_session *s, ns_t now)
{
    if (s->stage == SERVE_ADDRESSES && s->n_keys == 1 && s->got == 0 && now - s->keys_at >= ADDRESS_WAIT)
        send_addresses(s, 1, now);
}

/* Addresses of ibv_*_pingpong: of one queue pair, or of PINGPONG_QPS, zero for the unused ones. */
static void address(struct serve *v, struct serve_session *s, const uint8_t *p, ns_t now)
{
    struct perftest_keys k = {.out_reads = 1};
    struct serve_qp *q = NULL;
    struct pingpong_addr a;

    if (!pingpong_addr_get(&a, (const char *)p) || (!a.qpn && !s->n_keys)) {
        session_fail(s, "its address cannot be read");
        return;
    }
    s->stage = SERVE_ADDRESSES;
    s->n_keys++;
    s->keys_at = now;
    s->mtu = v->live->mtu;
    s->kind = SERVE_SEND;
    s->answering = true;
    k.qpn = a.qpn;
    k.psn = a.psn;
    memcpy(k.gid, a.gid, 16);
    if (a.qpn) {
        memcpy(s->gid, a.gid, 16);
        q = sqp_new(v, s, &k);
    }
    if (q)
        sqp_connect(v, s, q, now);
    if (q && !*s->why)
        sqp_ready(v, s, q, now);
    if (!*s->why && s->n_keys == PINGPONG_QPS)
        send_addresses(s, PINGPONG_QPS, now);
}

/* --- All messages ----------------------------------------------------------------------------- */

/* A message in SERVE_KEYS. */
static void after_mtu(struct serve *v, struct serve_session *s, const uint8_t *p, size_t len, ns_t now)
{
    struct perftest_keys k;

    if (s->cm && len == PERFTEST_BINARY) {
        perftest_keys_get_binary(&k, p);
        keys(v, s, &k, now);
    } else if (!s->cm && len == PERFTEST_TEXT && perftest_keys_get(&k, (const char *)p)) {
        keys(v, s, &k, now);
    } else if (len == PERFTEST_VALUE) {
        reply(s, p, len, now); /* a value of the report, returned as it is: the client ignores it */
    } else if (!s->cm && len == PERFTEST_DONE) {
        reply(s, "done", PERFTEST_DONE, now);
        session_over(s, s->n_keys >= 3, now);
    } else {
        session_fail(s, "its message cannot be parsed");
    }
}

void msg_take(struct serve *v, struct serve_session *s, const uint8_t *p, size_t len, ns_t now)
{
    static const uint8_t buffers[PERFTEST_INT] = {0, 0, 16, 0}, line[PERFTEST_INT] = {0, 0, 0, 64};
    static const uint8_t lengths[] = {[SERVE_VERSION] = PERFTEST_VERSION,
                                      [SERVE_BUFFERS] = PERFTEST_INT,
                                      [SERVE_LINE] = PERFTEST_INT,
                                      [SERVE_MTU] = PERFTEST_MTU};

    if (now - s->last_rx > s->slowest)
        s->slowest = now - s->last_rx;
    s->last_rx = now;
    if (s->stage == SERVE_PINGPONG)
        return; /* "done": no content */
    if (!s->cm && len == PINGPONG_TEXT && (s->stage == SERVE_VERSION || s->stage == SERVE_ADDRESSES)) {
        address(v, s, p, now);
    } else if (s->stage >= SERVE_KEYS) {
        after_mtu(v, s, p, len, now);
    } else if (len != lengths[s->stage]) {
        session_fail(s, "its message cannot be parsed");
    } else if (s->stage == SERVE_VERSION) {
        version(s, p, now);
    } else if (s->stage == SERVE_MTU) {
        mtu(v, s, p, now);
    } else {
        reply(s, s->stage == SERVE_LINE ? line : buffers, PERFTEST_INT, now);
        s->stage++;
    }
}

struct serve_session *msg_awaits_qp(struct serve *v, const uint8_t gid[16])
{
    for (unsigned i = 0; i < SERVE_SESSIONS; i++) {
        struct serve_session *s = &v->session[i];
        bool waits = s->used && s->cm && !*s->why && s->stage == SERVE_KEYS && s->n_keys == 0;
        if (waits && memcmp(s->gid, gid, 16) == 0)
            return s;
    }
    return NULL;
}
