/* layer 3 (agent): the port of the agent, and the processes of its clients. */
#include "gen/agent/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
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
    int listener;  /* -1: closed */
    pid_t *served; /* shared with the clients' processes: that of the client that is served; 0: none */
    struct {
        pid_t pid; /* 0: none */
        uint8_t from[16];
        ns_t since; /* CLOCK_MONOTONIC: when it came */
    } client[AGENT_WAITING];
    unsigned refused; /* in succession */
    ns_t closed;      /* CLOCK_MONOTONIC: when the port opens again */
};

/* A client has proved to know the token: it is served, unless another one is. While the server ends one that is slow,
 * it waits. */
static bool claim(void *user)
{
    pid_t now = 0;

    while (!__atomic_compare_exchange_n((pid_t *)user, &now, getpid(), false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
        if (now != getppid())
            return false;
        now = 0;
        usleep(100);
    }
    return true;
}

static enum session_end serve(const struct place *p, int fd)
{
    const struct session_claim c = {.take = claim, .user = p->served};
    const struct agent_server *s = p->server;
    char why[RNIC_WHY] = "";
    struct rnic *r = NULL;

    return s->device(&r, why) < 0 ? SESSION_BROKEN : session_run(fd, r, &s->token, &s->limits, s->only, &c);
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
static void begin_client(struct place *p, unsigned i, int fd, const uint8_t from[16])
{
    pid_t parent = getpid(), pid = fork();

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        signal(SIGTERM, SIG_DFL);
        signal(SIGINT, SIG_DFL);
        close(p->listener);
        _exit(getppid() == parent ? (int)serve(p, fd) : SESSION_BROKEN);
    }
    p->client[i].pid = pid < 0 ? 0 : pid;
    p->client[i].since = agent_now();
    memcpy(p->client[i].from, from, 16);
    close(fd);
}

static void close_port(struct place *p)
{
    close(p->listener);
    p->listener = -1;
    p->refused = 0;
    p->closed = agent_now() + AGENT_CLOSED;
    p->server->tell(p->server, "the port is closed for 10 s: three clients did not know the token");
}

/* A client's process has ended. */
static void end_client(struct place *p, pid_t pid, int status)
{
    char text[80];

    for (unsigned i = 0; i < AGENT_WAITING; i++)
        if (p->client[i].pid == pid)
            p->client[i].pid = 0;
    if (*p->served == pid)
        *p->served = 0;
    if (WIFSIGNALED(status)) {
        snprintf(text, sizeof text, "a session was ended by signal %d", WTERMSIG(status));
        p->server->tell(p->server, text);
        return;
    }
    if (WEXITSTATUS(status) == SESSION_SILENT)
        return;
    p->refused = WEXITSTATUS(status) == SESSION_REFUSED ? p->refused + 1 : 0;
    if (p->refused >= AGENT_FAILURES && p->listener >= 0)
        close_port(p);
}

/* The client that has been there longest, of those that have had time enough to prove that they know the token, and of
 * those from that address (NULL: from any). AGENT_WAITING: none. */
static unsigned slowest(const struct place *p, const uint8_t *from)
{
    ns_t since = agent_now() - AGENT_SLOW;
    unsigned at = AGENT_WAITING;

    for (unsigned i = 0; i < AGENT_WAITING; i++)
        if (p->client[i].pid && p->client[i].since < since && (!from || memcmp(p->client[i].from, from, 16) == 0)) {
            since = p->client[i].since;
            at = i;
        }
    return at;
}

/* Where a client from this address has room, if need be in place of one that is slow; AGENT_WAITING: nowhere. */
static unsigned room_for(struct place *p, const uint8_t from[16])
{
    unsigned room = AGENT_WAITING, alike = 0;
    int status = 0;

    for (unsigned i = AGENT_WAITING; i-- > 0;)
        if (!p->client[i].pid)
            room = i;
        else
            alike += memcmp(p->client[i].from, from, 16) == 0;
    if (*p->served)
        return AGENT_WAITING;
    if (room < AGENT_WAITING && alike < AGENT_ALIKE)
        return room;
    room = slowest(p, alike >= AGENT_ALIKE ? from : NULL);
    if (room < AGENT_WAITING) {
        pid_t pid = p->client[room].pid;
        if (!claim(p->served)) /* nobody proves to know the token meanwhile */
            return AGENT_WAITING;
        kill(pid, SIGKILL);
        if (waitpid(pid, &status, 0) == pid)
            end_client(p, pid, WIFSIGNALED(status) ? SESSION_SILENT << 8 : status);
        *p->served = 0;
    }
    return room;
}

static void take_client(struct place *p)
{
    static const char busy[] = "rdmagen-agent busy\n";
    struct sockaddr_in6 from = {0};
    socklen_t n = sizeof from;
    int fd = accept4(p->listener, (struct sockaddr *)&from, &n, SOCK_CLOEXEC);
    unsigned room;

    if (fd < 0)
        return;
    if (!agent_server_allows(p->server, from.sin6_addr.s6_addr)) {
        close(fd);
    } else if ((room = room_for(p, from.sin6_addr.s6_addr)) == AGENT_WAITING) {
        if (send(fd, busy, sizeof busy - 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
            p->server->tell(p->server, "a client came while another is served");
        close(fd);
    } else {
        watch_peer(fd);
        begin_client(p, room, fd, from.sin6_addr.s6_addr);
    }
}

static void end_clients(struct place *p)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        end_client(p, pid, status);
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
    end_clients(p);
    if (p->listener < 0 && agent_now() >= p->closed)
        p->listener = agent_server_listen(p->server); /* again in a second if it cannot be had */
}

int agent_server_run(struct agent_server *s, int listener)
{
    struct sigaction child = {.sa_handler = on_child}, was;
    struct place p = {.server = s, .listener = listener};
    sigset_t block, old;

    p.served = mmap(NULL, sizeof *p.served, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p.served == MAP_FAILED)
        return -errno;

    sigemptyset(&block);
    sigaddset(&block, SIGCHLD);
    sigaddset(&block, SIGTERM);
    sigaddset(&block, SIGINT);
    sigaction(SIGCHLD, &child, &was);
    sigprocmask(SIG_BLOCK, &block, &old); /* they come while it waits only */
    s->tell(s, NULL);
    while (!stopped)
        step(&p, &old);
    for (unsigned i = 0; i < AGENT_WAITING; i++)
        if (p.client[i].pid) {
            kill(p.client[i].pid, SIGKILL);
            waitpid(p.client[i].pid, NULL, 0);
        }
    munmap(p.served, sizeof *p.served);
    if (p.listener >= 0)
        close(p.listener);
    sigprocmask(SIG_SETMASK, &old, NULL);
    sigaction(SIGCHLD, &was, NULL);
    return 0;
}
