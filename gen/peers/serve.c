/* layer 3 (peers): the server's sessions. */
#include "gen/live/host.h"
#include "gen/peers/serve_impl.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define LOOK_BUSY      (1 * NS_PER_MS)   /* interval at which TCP is polled while there are clients */
#define LOOK_IDLE      (20 * NS_PER_MS)  /* and without */
#define LINGER         (300 * NS_PER_MS) /* a session that has ended still acknowledges retransmissions */
#define PINGPONG_QUIET (1 * NS_PER_S)    /* after this time without a message a client of ibv_*_pingpong is done */
#define CQ_DEPTH       65536
#define MSGS_AT_ONCE   16 /* messages of one client processed at a time */

const char *serve_kind_str(enum serve_kind k)
{
    static const char *const names[] = {"nothing", "WRITE", "READ or atomics", "SEND"};

    return k <= SERVE_SEND ? names[k] : "?";
}

unsigned serve_active(const struct serve *v)
{
    unsigned n = 0;

    for (unsigned i = 0; i < SERVE_SESSIONS; i++)
        n += v->session[i].used;
    return n;
}

/* Requests other than SENDs that were executed. A client that WRITEs may READ what it has written, and ours fetches the
 * value with which its atomics begin: those are no messages. */
static uint64_t executed(const struct serve *v, const struct serve_session *s, const struct serve_qp *q)
{
    struct verbs_counters c = verbs_qp_counters(v->verbs, q->qp);
    bool begins = s->mark.ours && s->mark.op == PERFTEST_ATOMIC && c.served;

    return s->kind == SERVE_WRITE ? c.served - c.fetched : c.served - begins;
}

uint64_t serve_messages(const struct serve *v, const struct serve_session *s)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < s->n_qps; i++)
        n += s->kind == SERVE_SEND ? s->qp[i].received : executed(v, s, &s->qp[i]);
    return n;
}

uint64_t serve_wrong(const struct serve_session *s)
{
    uint64_t n = s->rping.mismatches;

    for (unsigned i = 0; i < s->n_qps; i++)
        n += s->qp[i].wrong;
    return n;
}

/* --- Begin and end of a session --------------------------------------------------------------- */

/* Whether no further client is to come. */
static bool is_full(const struct serve *v)
{
    if (v->config.full)
        return v->config.full(v->config.turns, 0);
    return v->config.max && v->served + v->failed + serve_active(v) >= v->config.max;
}

/* NULL: there are as many as are served at a time, or in all. */
static struct serve_session *session_new(struct serve *v, ns_t now)
{
    for (unsigned i = 0; i < SERVE_SESSIONS && !is_full(v); i++) {
        struct serve_session *s = &v->session[i];
        if (!s->used) {
            if (v->config.full && v->config.full(v->config.turns, 1))
                return NULL; /* another process has taken the last one meanwhile */
            memset(s, 0, sizeof *s);
            s->used = true;
            s->fd = s->id = -1;
            s->last_rx = now;
            return s;
        }
    }
    return NULL;
}

/* Its client could not be taken: another one may come in its place. */
static void session_drop(struct serve *v, struct serve_session *s)
{
    s->used = false;
    if (v->config.full)
        v->config.full(v->config.turns, -1);
}

void session_fail(struct serve_session *s, const char *fmt, ...)
{
    va_list ap;

    if (*s->why || s->stage == SERVE_OVER)
        return;
    va_start(ap, fmt);
    vsnprintf(s->why, sizeof s->why, fmt, ap);
    va_end(ap);
}

/* Send an rdmagen that waits for keys the reason of the refusal in their place. */
static void send_refusal(const struct serve_session *s)
{
    char text[PERFTEST_TEXT] = {0};

    if (!*s->why || !s->mark.ours || s->fd < 0 || s->stage != SERVE_KEYS)
        return;
    snprintf(text, sizeof text, PERFTEST_REFUSAL "%.*s", (int)(sizeof text - sizeof PERFTEST_REFUSAL), s->why);
    send(s->fd, text, sizeof text, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void session_over(struct serve_session *s, bool done, ns_t now)
{
    if (s->stage == SERVE_OVER)
        return;
    if (!done)
        session_fail(s, "it left before the end");
    s->done = done && !*s->why;
    send_refusal(s);
    s->stage = SERVE_OVER;
    s->until = now + (s->n_qps || s->cm || s->rping.verbs ? LINGER : 0);
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
}

/* If packets of another transport service arrived, report these as the reason: they explain a failure better than its
 * consequences. */
static void check_other_service(struct serve *v, struct serve_session *s)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < s->n_qps; i++)
        n += verbs_qp_counters(v->verbs, s->qp[i].qp).other_service;
    if (!n)
        return;
    s->done = false;
    snprintf(s->why, sizeof s->why, "%s came that %s not for %s: both sides must have the same -c",
             count_str(n, "packet"), n == 1 ? "is" : "are",
             qp_service_str(s->cm ? QPT_RC : (enum qp_type)v->config.type));
}

static void session_free(struct serve *v, struct serve_session *s)
{
    s->bytes = sqp_payload(v, s);
    check_other_service(v, s);
    if (v->over)
        v->over(v->user, s, serve_messages(v, s));
    v->served += s->done;
    v->failed += !s->done;
    if (s->fd >= 0)
        close(s->fd);
    rdmacm_id_destroy(v->verbs->cm, s->id, live_now());
    sqp_free_all(v, s);
    if (s->control.verbs)
        rchan_free(&s->control);
    if (s->rping.verbs)
        rping_free(&s->rping);
    s->used = false;
}

/* Listen for RDMA-CM connections; port 0: do not listen. 0 or a negative errno. */
static int listen_cm(struct serve *v, int *id, uint16_t port)
{
    int r;

    *id = -1;
    if (!port)
        return 0;
    r = *id = rdmacm_id_create(v->verbs->cm, v->channel, CM_PS_TCP);
    return r < 0 ? r : rdmacm_listen(v->verbs->cm, *id, port, SERVE_QPS);
}

int serve_listen(const struct serve_config *config)
{
    return config->port ? chan_listen(config->tcp, config->port) : -1;
}

int serve_open(struct serve *v, struct live *l, const struct serve_config *config)
{
    int r;

    v->live = l;
    v->verbs = ep_verbs(l->ep);
    v->config = *config;
    v->listener = config->turn ? config->listener : serve_listen(config);
    if (config->port && v->listener < 0)
        return v->listener;
    r = v->channel = rdmacm_channel_create(v->verbs->cm);
    if (r >= 0)
        r = listen_cm(v, &v->perftest_id, config->no_cm ? 0 : config->port);
    if (r >= 0)
        r = listen_cm(v, &v->rping_id, config->no_cm ? 0 : config->rping_port);
    if (r >= 0)
        r = v->cq = verbs_cq_create(v->verbs, CQ_DEPTH);
    return r < 0 ? r : 0;
}

static void stop_listening(struct serve *v)
{
    if (v->listener >= 0)
        close(v->listener);
    v->listener = -1;
}

void serve_close(struct serve *v)
{
    for (unsigned i = 0; i < SERVE_SESSIONS; i++)
        if (v->session[i].used) {
            session_fail(&v->session[i], "the server ended before it did");
            session_over(&v->session[i], false, 0);
            session_free(v, &v->session[i]);
        }
    rdmacm_id_destroy(v->verbs->cm, v->perftest_id, live_now());
    rdmacm_id_destroy(v->verbs->cm, v->rping_id, live_now());
    rdmacm_channel_destroy(v->verbs->cm, v->channel);
    stop_listening(v);
}

/* --- RDMA-CM ---------------------------------------------------------------------------------- */

/* Accept a request with queue pair `qp`; false: it could not be accepted. */
static bool take(struct serve *v, const struct rdmacm_event *e, int qp)
{
    struct rdmacm_param own = {.qp = qp, .access = ACCESS_REMOTE, .responder_resources = 128, .initiator_depth = 128};

    return rdmacm_accept(v->verbs->cm, e->id, &own, live_now()) == 0;
}

static bool request_rping(struct serve *v, const struct rdmacm_event *e)
{
    struct serve_session *s = session_new(v, live_now());

    if (!s)
        return false;
    memcpy(s->gid, e->gid, 16);
    s->stage = SERVE_RPING;
    s->id = e->id;
    if (rping_init(&s->rping, v->verbs, true, 0, true) == 0 && take(v, e, s->rping.qp))
        return true;
    rping_free(&s->rping);
    session_drop(v, s);
    return false;
}

static bool request_control(struct serve *v, const struct rdmacm_event *e)
{
    struct serve_session *s = session_new(v, live_now());

    if (!s)
        return false;
    s->cm = true;
    memcpy(s->gid, e->gid, 16);
    s->id = e->id;
    if (rchan_init(&s->control, v->verbs) == 0 && take(v, e, s->control.qp))
        return true;
    rchan_free(&s->control);
    session_drop(v, s);
    return false;
}

static bool request_data(struct serve *v, struct serve_session *s, const struct rdmacm_event *e)
{
    struct perftest_keys peer = {.out_reads = e->responder_resources, .qpn = e->qpn};
    struct serve_qp *q = sqp_new(v, s, &peer);

    if (!q || !take(v, e, q->qp))
        return false;
    q->id = e->id;
    return true;
}

static void request(struct serve *v, const struct rdmacm_event *e)
{
    struct serve_session *s = msg_awaits_qp(v, e->gid);
    bool taken = e->listen_id == v->rping_id ? request_rping(v, e) : s ? request_data(v, s, e) : request_control(v, e);

    if (!taken) {
        rdmacm_reject(v->verbs->cm, e->id, CM_REJ_NO_RESOURCES, NULL, 0, live_now());
        rdmacm_id_destroy(v->verbs->cm, e->id, live_now());
    }
}

static bool at_good_end(const struct serve_session *s)
{
    return s->stage == SERVE_RPING ? s->rping.done && s->rping.state != RPING_FAILED : s->n_keys >= 3;
}

/* The RDMA-CM connection of an id has ended. */
static void ended(struct serve *v, int id)
{
    for (unsigned i = 0; i < SERVE_SESSIONS; i++) {
        struct serve_session *s = &v->session[i];
        if (!s->used)
            continue;
        if (s->id == id)
            session_over(s, at_good_end(s), live_now());
        for (unsigned k = 0; k < s->n_qps; k++)
            s->qp[k].gone |= s->qp[k].id == id;
    }
}

/* The connection of an id stands. */
static void established(struct serve *v, int id)
{
    for (unsigned i = 0; i < SERVE_SESSIONS && v->joined; i++) {
        const struct serve_session *s = &v->session[i];
        if (s->used && s->stage == SERVE_RPING && s->id == id)
            v->joined(v->user, s->rping.qp, NULL);
        for (unsigned k = 0; s->used && k < s->n_qps; k++)
            if (s->qp[k].id == id)
                v->joined(v->user, s->qp[k].qp, NULL);
    }
}

static void take_events(struct serve *v)
{
    struct rdmacm_event e;

    while (rdmacm_get_event(v->verbs->cm, v->channel, &e)) {
        if (e.type == RDMACM_CONNECT_REQUEST)
            request(v, &e);
        else if (e.type == RDMACM_ESTABLISHED)
            established(v, e.id);
        else if (e.type == RDMACM_DISCONNECTED || e.type == RDMACM_REJECTED || e.type == RDMACM_UNREACHABLE)
            ended(v, e.id);
    }
}

/* --- TCP, and all together -------------------------------------------------------------------- */

/* Whether this process is to take the next client; one without room leaves it to the next process. */
static bool may_accept(const struct serve *v)
{
    const struct serve_config *c = &v->config;
    bool room = serve_active(v) < SERVE_SESSIONS;

    if (c->turn && c->turn(c->turns, false) && !room)
        c->turn(c->turns, true);
    return v->listener >= 0 && room && (!c->turn || c->turn(c->turns, false));
}

static void accept_clients(struct serve *v, ns_t now)
{
    if (is_full(v) && !v->config.full) /* among several processes room may come again: one may be lost */
        stop_listening(v);
    while (may_accept(v) && !is_full(v)) {
        struct sockaddr_storage from = {0};
        socklen_t len = sizeof from;
        int fd = accept4(v->listener, (struct sockaddr *)&from, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
        struct serve_session *s;
        if (fd < 0)
            return;
        s = session_new(v, now);
        if (!s) { /* another process took the last client meanwhile */
            close(fd);
            return;
        }
        s->fd = fd;
        s->stream.live = v->live;
        host_gid((struct sockaddr *)&from, s->gid); /* replaced by the address in its keys */
        if (v->config.turn && !is_full(v))
            v->config.turn(v->config.turns, true);
    }
}

static void receive_tcp(struct serve *v, struct serve_session *s, ns_t now)
{
    for (unsigned i = 0; i < MSGS_AT_ONCE && s->fd >= 0 && !*s->why; i++) {
        size_t want = msg_wanted(s);
        ssize_t n = 0;
        if (s->got < want && (n = recv(s->fd, s->in + s->got, want - s->got, 0)) < 0 && errno == EAGAIN)
            return;
        if (s->got < want && n <= 0) {
            close(s->fd);
            s->fd = -1;
            if (s->stage != SERVE_PINGPONG) /* ib_write_lat ends without a message */
                session_over(s, s->kind == SERVE_WRITE && s->answering, now);
            return;
        }
        s->got += (size_t)n;
        if (s->got == msg_wanted(s)) {
            if (!msg_is_ready(v, s, now))
                return;
            record_tcp(&s->stream, s->fd, false, s->in, s->got);
            msg_take(v, s, s->in, s->got, now);
            s->got = 0;
        }
    }
}

static void receive_rdma(struct serve *v, struct serve_session *s, ns_t now)
{
    uint8_t message[RCHAN_MAX];
    int n;

    rchan_poll(&s->control, now);
    while (s->stage != SERVE_OVER && !*s->why && (n = rchan_take(&s->control, message, now)) >= 0)
        msg_take(v, s, message, (size_t)n, now);
}

static void work_rping(struct serve *v, struct serve_session *s, ns_t now)
{
    if (!s->rping_ready && verbs_qp_takes_receives(v->verbs, s->rping.qp)) {
        rping_ready(&s->rping, now);
        s->rping_ready = true;
    }
    while (rping_poll(&s->rping, now))
        s->last_rx = now;
    if (s->rping.state == RPING_FAILED)
        session_fail(s, "%s", s->rping.why);
}

/* Process messages, completions and timeouts of a session; `look`: poll TCP, too. */
static void work(struct serve *v, struct serve_session *s, bool look, ns_t now)
{
    ns_t quiet = now - s->last_rx;

    if (s->stage == SERVE_RPING)
        work_rping(v, s, now);
    else if (s->cm)
        receive_rdma(v, s, now);
    else if (look)
        receive_tcp(v, s, now);
    msg_timeout(s, now);
    if (s->stage != SERVE_OVER && s->n_qps && !*s->why)
        sqp_work(v, s, now);
    if (s->stage == SERVE_PINGPONG && s->fd < 0 && quiet > PINGPONG_QUIET && s->n_qps && s->qp[0].received)
        session_over(s, true, now);
    if (quiet > v->config.wait)
        session_fail(s, "nothing came for %.0f s", (double)v->config.wait / 1e9);
    if (*s->why)
        session_over(s, false, now);
    if (s->stage == SERVE_OVER && now >= s->until)
        session_free(v, s);
}

/* Fail the sessions of clients that sent an invalid request, e.g. one that is too long. */
static void fail_invalid_requests(struct serve *v)
{
    const char *why;
    int qp;

    while ((qp = verbs_failed_qp(v->verbs, &why)) >= 0)
        for (unsigned i = 0; i < SERVE_SESSIONS; i++) {
            struct serve_session *s = &v->session[i];
            if (s->used && s->rping.verbs && s->rping.qp == qp)
                rping_fail(&s->rping, "%s", why);
            for (unsigned k = 0; s->used && k < s->n_qps; k++)
                if (s->qp[k].qp == qp)
                    session_fail(s, "%s; room for each queue pair: %s (--room)", why,
                                 count_str(v->config.room, "byte"));
        }
}

ns_t serve_poll(struct serve *v, ns_t now)
{
    bool look = now >= v->look_at;

    take_events(v);
    if (look)
        accept_clients(v, now);
    fail_invalid_requests(v);
    sqp_poll(v, now);
    for (unsigned i = 0; i < SERVE_SESSIONS; i++)
        if (v->session[i].used)
            work(v, &v->session[i], look, now);
    if (look)
        v->look_at = now + LOOK_BUSY;
    return now + (serve_active(v) ? LOOK_BUSY : LOOK_IDLE);
}
