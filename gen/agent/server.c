/* layer 3 (agent): the port of the agent, and the processes of its clients. */
#include "gen/agent/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t stopped;

void agent_server_stop(void)
{
    stopped = 1;
}

bool agent_server_allows(const struct agent_server *s, const uint8_t addr[16])
{
    for (unsigned i = 0; s->has_allow && i < s->allow_len; i++)
        if ((addr[i / 8] ^ s->allow[i / 8]) >> (7 - i % 8) & 1)
            return false;
    return true;
}

int agent_server_listen(struct agent_server *s)
{
    struct sockaddr_in6 at = {.sin6_family = AF_INET6, .sin6_port = htons(s->port)};
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1, off = 0, e;
    socklen_t n = sizeof at;

    if (fd < 0)
        return -errno;
    memcpy(&at.sin6_addr, s->addr, 16);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (bind(fd, (struct sockaddr *)&at, n) == 0 && listen(fd, 8) == 0 &&
        getsockname(fd, (struct sockaddr *)&at, &n) == 0) {
        s->port = ntohs(at.sin6_port);
        return fd;
    }
    e = -errno;
    close(fd);
    return e;
}

/* --- Clients ---------------------------------------------------------------------------------- */

struct place {
    struct agent_server *server;
    int listener;     /* -1: closed */
    pid_t client;     /* 0: none */
    unsigned refused; /* in succession */
    ns_t closed;      /* CLOCK_MONOTONIC: when the port opens again */
};

static enum session_end serve(struct agent_server *s, int fd)
{
    char why[RNIC_WHY] = "";
    struct rnic *r = NULL;

    return s->device(&r, why) < 0 ? SESSION_BROKEN : session_run(fd, r, &s->token, &s->limits, s->only);
}

/* A host that has crashed, or is no longer reached, is noticed within half a minute. */
static void watch_peer(int fd)
{
    int on = 1, idle = 10, interval = 5, count = 4;

    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/* In a process that ends with the server. */
static void begin_client(struct place *p, int fd)
{
    pid_t parent = getpid();

    p->client = fork();
    if (p->client == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        signal(SIGTERM, SIG_DFL);
        signal(SIGINT, SIG_DFL);
        close(p->listener);
        _exit(getppid() == parent ? (int)serve(p->server, fd) : SESSION_BROKEN);
    }
    if (p->client < 0)
        p->client = 0;
    close(fd);
}

static void take_client(struct place *p)
{
    static const char busy[] = "rdmagen-agent busy\n";
    struct sockaddr_in6 from = {0};
    socklen_t n = sizeof from;
    int fd = accept4(p->listener, (struct sockaddr *)&from, &n, SOCK_CLOEXEC);

    if (fd < 0)
        return;
    if (!agent_server_allows(p->server, from.sin6_addr.s6_addr)) {
        close(fd);
    } else if (p->client) {
        if (send(fd, busy, sizeof busy - 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
            p->server->tell(p->server, "a client came while another is served");
        close(fd);
    } else {
        watch_peer(fd);
        begin_client(p, fd);
    }
}

static void close_port(struct place *p)
{
    close(p->listener);
    p->listener = -1;
    p->refused = 0;
    p->closed = agent_now() + AGENT_CLOSED;
    p->server->tell(p->server, "the port is closed for 10 s: three clients did not know the token");
}

/* The client's process may have ended. */
static void end_client(struct place *p)
{
    char text[80];
    int status;

    if (!p->client || waitpid(p->client, &status, WNOHANG) != p->client)
        return;
    p->client = 0;
    if (WIFSIGNALED(status)) {
        snprintf(text, sizeof text, "a session was ended by signal %d", WTERMSIG(status));
        p->server->tell(p->server, text);
        return;
    }
    p->refused = WEXITSTATUS(status) == SESSION_REFUSED ? p->refused + 1 : 0;
    if (p->refused >= AGENT_FAILURES)
        close_port(p);
}

static void on_child(int signal)
{
    (void)signal;
}

static void step(struct place *p, const sigset_t *signals)
{
    struct pollfd fd = {.fd = p->listener, .events = POLLIN};
    struct timespec t = {.tv_sec = 1};

    if (ppoll(&fd, 1, &t, signals) > 0)
        take_client(p);
    end_client(p);
    if (p->listener < 0 && agent_now() >= p->closed)
        p->listener = agent_server_listen(p->server); /* again in a second if it cannot be had */
}

int agent_server_run(struct agent_server *s, int listener)
{
    struct sigaction child = {.sa_handler = on_child}, was;
    struct place p = {.server = s, .listener = listener};
    sigset_t block, old;

    sigemptyset(&block);
    sigaddset(&block, SIGCHLD);
    sigaddset(&block, SIGTERM);
    sigaddset(&block, SIGINT);
    sigaction(SIGCHLD, &child, &was);
    sigprocmask(SIG_BLOCK, &block, &old); /* they come while it waits only */
    s->tell(s, NULL);
    while (!stopped)
        step(&p, &old);
    if (p.client) {
        kill(p.client, SIGKILL);
        waitpid(p.client, NULL, 0);
    }
    if (p.listener >= 0)
        close(p.listener);
    sigprocmask(SIG_SETMASK, &old, NULL);
    sigaction(SIGCHLD, &was, NULL);
    return 0;
}
