/* layer 3 (gen) fuzz: a hostile peer on the TCP connection over which perftest, ibv_*_pingpong and their like tell each
 * other their queue pairs: as a client of the server, and as a server of the client. Whatever it says, memory stays
 * bounded and is given back, and the endpoint keeps its own rules.
 *
 * Input: a byte of options, then the bytes that the peer says. */
#include <arpa/inet.h>
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gen/peers/perf_client.h"
#include "gen/peers/serve.h"

#define WAIT (2 * NS_PER_S)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* near is the server, far the client; each is the router of the other, so that every address resolves */
static struct live near, far;
static struct serve server;
static int listener;
static uint16_t port;

static void open_live(struct live *l, const char *addr, const char *via)
{
    struct live_config c = {.backend = "memory:words", .addr = addr, .via = via, .seed = 1, .user = &server};
    struct live_error err = {""};

    if (live_open(l, &c, &err) < 0)
        abort();
}

static void set_up(void)
{
    struct serve_config c = {.room = 1024, .size = 2, .wait = WAIT};
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t n = sizeof a;
    ns_t again[2] = {0, 0};

    open_live(&near, "10.0.0.2", "10.0.0.1");
    open_live(&far, "10.0.0.1", "10.0.0.2");
    while (!live_ask(&near, far.id.gid, &again[0]) || !live_ask(&far, near.id.gid, &again[1])) {
        live_step(&near, 0);
        live_step(&far, 0);
    }
    listener = socket(AF_INET, SOCK_STREAM, 0);
    if (serve_open(&server, &near, &c) < 0 || bind(listener, (struct sockaddr *)&a, n) < 0 || listen(listener, 8) < 0 ||
        getsockname(listener, (struct sockaddr *)&a, &n) < 0)
        abort();
    port = ntohs(a.sin_port);
}

static void drain(int fd)
{
    uint8_t bytes[65536];

    while (recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
        continue;
}

/* The peer is a client. Virtual time advances by itself, so that nothing waits. */
static void serve_it(unsigned options, const uint8_t *data, size_t size)
{
    struct serve_session *s = &server.session[0];
    ns_t now = live_now();
    int fds[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) < 0 || write(fds[1], data, size) != (ssize_t)size)
        abort();
    if (options & 1)
        shutdown(fds[1], SHUT_WR);
    server.config.type = options & 2 ? QPT_UD : QPT_RC;
    server.config.latency = options & 4;
    *s = (struct serve_session){.used = true, .fd = fds[0], .last_rx = now};
    for (unsigned i = 0; s->used; i++) {
        serve_poll(&server, now);
        live_step(&near, 0);
        live_step(&far, 0);
        drain(fds[1]);
        assert(server.memory <= SERVE_MEMORY && s->n_qps <= SERVE_QPS && s->got <= sizeof s->in);
        now += i < 50 ? NS_PER_MS : WAIT / 8;
    }
    assert(server.memory == 0);
    close(fds[1]);
}

struct peer {
    const uint8_t *data;
    size_t size;
    volatile bool done;
};

/* The peer is a server: it sends its bytes, and nothing more. A client that continues nevertheless is stopped. */
static void *be_server(void *user)
{
    struct peer *p = user;
    int fd = accept(listener, NULL, NULL);

    for (size_t at = 0; at < p->size;) {
        ssize_t n = send(fd, p->data + at, p->size - at, MSG_NOSIGNAL);
        if (n <= 0)
            break;
        at += (size_t)n;
    }
    shutdown(fd, SHUT_WR);
    while (!p->done) {
        drain(fd);
        usleep(500);
        live_stop();
    }
    close(fd);
    return NULL;
}

static void be_client(unsigned options, const uint8_t *data, size_t size)
{
    struct peer peer = {.data = data, .size = size};
    struct perf_client p = {.live = &far,
                            .config = {.op = (uint8_t)(options % TRAFFIC_MIXED),
                                       .type = QPT_RC,
                                       .size = 8,
                                       .qps = 1,
                                       .iters = 3,
                                       .tx_depth = 2,
                                       .batch = 1,
                                       .outs = 1,
                                       .latency = options & 8,
                                       .verify = true},
                            .exchange = options & 16 ? PERF_PINGPONG : PERF_PERFTEST,
                            .host = "127.0.0.1",
                            .port = port,
                            .gid = near.id.gid,
                            .timeout = NS_PER_MS};
    pthread_t thread;

    if (pthread_create(&thread, NULL, be_server, &peer))
        abort();
    perf_client_run(&p);
    peer.done = true;
    perf_client_free(&p);
    pthread_join(thread, NULL);
    live_go_on();
    for (unsigned i = 0; i < 8; i++) { /* frames that are still in flight */
        live_step(&near, 0);
        live_step(&far, 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!near.ep)
        set_up();
    if (size < 1)
        return 0;
    if (data[0] & 0x80)
        be_client(data[0] & 0x7f, data + 1, size - 1);
    else
        serve_it(data[0], data + 1, size - 1);
    assert(ep_stats(near.ep)->own_check_failures + ep_stats(far.ep)->own_check_failures == 0);
    return 0;
}
