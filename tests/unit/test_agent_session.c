/* layer 5 (test): the agent's clients: the proof, a client's connection, the port; over a device that is none
 * (agent_rig.h). */
#include "gen/agent/server.h"
#include "tests/unit/agent_rig.h"
#include "tests/unit/patience.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct agent_limits limits = {.max_mem = 1 << 20, .max_qp = 2, .max_objs = 20};

/* --- The connection --------------------------------------------------------------------------- */

/* hmac.new(b"0123456789abcdef", bytes(range(32)) + b"client", "sha256") of Python. */
Test(agent_session, a_proof_is_the_hmac_of_nonce_and_role)
{
    struct auth_token t = {.text = "0123456789abcdef", .len = 16};
    uint8_t nonce[32], proof[32];
    struct buf b = {0};

    for (unsigned i = 0; i < 32; i++)
        nonce[i] = (uint8_t)i;
    auth_proof(&t, nonce, "client", proof);
    buf_bytes(&b, proof, 32, 0);
    cr_assert_str_eq(buf_str(&b), "ce0403f9dd92cc1a0d70b6bca86c37920afb4577479fdea7e326aa3eaca42f12");
    buf_free(&b);
}

Test(agent_session, a_token_file_is_its_owners_alone)
{
    char path[] = "/tmp/agenttokenXXXXXX";
    struct auth_token t, again;
    bool made;

    close(mkstemp(path));
    cr_assert(auth_token_file(&t, path, &made) == -EINVAL && !made, "it is empty");
    unlink(path);
    cr_assert(auth_token_file(&t, path, &made) == 0 && made && t.len == 64);
    cr_assert(auth_token_file(&again, path, &made) == 0 && !made && strcmp(t.text, again.text) == 0);
    chmod(path, 0640);
    cr_assert_eq(auth_token_file(&again, path, &made), -EACCES);
    unlink(path);
}

struct talk {
    int fd[2];
    enum session_end end;
    pthread_t thread;
    struct auth_token token;
    struct noted device;
};

static void *run_session(void *user)
{
    struct talk *t = user;

    t->end = session_run(t->fd[1], &t->device.base, &t->token, &limits, "", NULL);
    close(t->fd[1]);
    return NULL;
}

static void talk_begin(struct talk *t)
{
    hangs_after(20);
    *t = (struct talk){.token = {.text = "0123456789abcdef", .len = 16}, .device.base.ops = &noted_ops};
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, t->fd), 0);
    cr_assert_eq(pthread_create(&t->thread, NULL, run_session, t), 0);
}

/* One line of the agent's. */
static const char *hear(struct talk *t)
{
    static char line[1024];
    size_t n = 0;

    while (n < sizeof line - 1 && recv(t->fd[0], line + n, 1, 0) == 1 && line[n] != '\n')
        n++;
    line[n] = '\0';
    return line;
}

static void say(struct talk *t, const char *text, size_t n)
{
    cr_assert_eq(send(t->fd[0], text, n, MSG_NOSIGNAL), (ssize_t)n);
}

/* Prove, with a bit of the proof inverted or not. */
static void prove(struct talk *t, bool right)
{
    uint8_t nonce[32], proof[32];
    struct request r;
    struct buf b = {0};
    const char *greeting = hear(t);
    char line[200];
    size_t n = 0;

    cr_assert_eq(strncmp(greeting, "rdmagen-agent 1 nonce=", 22), 0, "%s", greeting);
    snprintf(line, sizeof line, "1 x %.100s", greeting + 16);
    cr_assert(request_parse(&r, line, strlen(line)) && request_hex(&r, "nonce", nonce, 32, &n) && n == 32);
    auth_proof(&t->token, nonce, "client", proof);
    proof[31] ^= !right;
    buf_puts(&b, "p auth hmac=");
    buf_bytes(&b, proof, 32, 0);
    buf_char(&b, '\n');
    say(t, b.p, b.len);
    buf_free(&b);
}

static enum session_end talk_end(struct talk *t)
{
    shutdown(t->fd[0], SHUT_WR);
    pthread_join(t->thread, NULL);
    close(t->fd[0]);
    cr_assert(t->device.objects == 0 && strchr(buf_str(&t->device.order), '.'),
              "all is destroyed, and the device closed");
    buf_free(&t->device.order);
    return t->end;
}

Test(agent_session, who_knows_the_token_is_served)
{
    static const char lines[] =
        "1 dev open\n2 pd\n3 mem len=9\n4 mem write mem=mem2 data=3\nab\n5 mem read mem=mem2 len=3\n";
    struct talk t;

    talk_begin(&t);
    prove(&t, true);
    cr_assert_str_eq(hear(&t), "p ok");
    say(&t, lines, sizeof lines - 1);
    cr_assert_str_eq(hear(&t), "1 ok dev=none0");
    cr_assert_str_eq(hear(&t), "2 ok pd=pd1");
    cr_assert_eq(strncmp(hear(&t), "3 ok mem=mem2", 13), 0);
    cr_assert_str_eq(hear(&t), "4 ok");
    cr_assert_str_eq(hear(&t), "5 ok data=3");
    cr_assert_str_eq(hear(&t), "ab");
    cr_assert_eq(talk_end(&t), SESSION_OVER);
}

Test(agent_session, who_does_not_know_it_is_not)
{
    struct talk t;

    talk_begin(&t);
    prove(&t, false);
    send(t.fd[0], "1 dev open\n", 11, MSG_NOSIGNAL); /* the session may have ended before */
    cr_assert_eq(strncmp(hear(&t), "p err EACCES ", 13), 0);
    cr_assert_str_eq(hear(&t), "", "no more is said");
    cr_assert_eq(talk_end(&t), SESSION_REFUSED);
    talk_begin(&t);
    hear(&t);
    say(&t, "1 dev open\n", 11);
    cr_assert_eq(strncmp(hear(&t), "1 err EACCES ", 13), 0);
    cr_assert_eq(talk_end(&t), SESSION_REFUSED);
}

Test(agent_session, a_line_without_an_end_ends_the_session)
{
    static char line[LINE_BYTES + 1];
    struct talk t;

    memset(line, 'x', sizeof line);
    talk_begin(&t);
    prove(&t, true);
    hear(&t);
    say(&t, line, sizeof line);
    cr_assert_str_eq(hear(&t), "? err EMSGSIZE the line is too long");
    cr_assert_eq(talk_end(&t), SESSION_BROKEN);
    talk_begin(&t);
    prove(&t, true);
    hear(&t);
    say(&t, "1 mem write data=1048577\n", 25);
    cr_assert_str_eq(hear(&t), "? err EMSGSIZE too much data");
    cr_assert_eq(talk_end(&t), SESSION_BROKEN);
}

/* --- The port --------------------------------------------------------------------------------- */

Test(agent_session, clients_come_from_the_addresses_that_are_allowed)
{
    struct agent_server s = {
        .has_allow = true, .allow = {[10] = 0xff, [11] = 0xff, [12] = 10, [13] = 1, [14] = 0x80}, .allow_len = 96 + 17};
    uint8_t addr[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [13] = 1, [14] = 0xff, [15] = 1};

    cr_assert(agent_server_allows(&s, addr));
    addr[14] = 0x7f;
    cr_assert_not(agent_server_allows(&s, addr));
    addr[14] = 0x80;
    addr[10] = 0;
    cr_assert_not(agent_server_allows(&s, addr));
    s.has_allow = false;
    cr_assert(agent_server_allows(&s, addr));
}

static struct noted served;
static int none_device(struct rnic **r, char why[RNIC_WHY])
{
    (void)why;
    served.base.ops = &noted_ops;
    *r = &served.base;
    return 0;
}
static void tell_nobody(const struct agent_server *s, const char *text)
{
    (void)s;
    (void)text;
}

/* From 127.0.0.`from`; from others than 127.0.0.1 without a wait until the server takes the connection. */
static int dial_from(uint16_t port, unsigned from)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK - 1 + from)}};
    int fd = socket(AF_INET, SOCK_STREAM | (from > 1 ? SOCK_NONBLOCK : 0), 0);

    if (bind(fd, (struct sockaddr *)&own, sizeof own) == 0 &&
        (connect(fd, (struct sockaddr *)&at, sizeof at) == 0 || errno == EINPROGRESS))
        return fd;
    close(fd);
    return -1;
}

static int dial(uint16_t port)
{
    return dial_from(port, 1);
}

/* Connect until a session greets; then say something that proves nothing, or nothing (NULL), and wait for its end. */
static void intrude(uint16_t port, const char *what)
{
    char text[200];

    for (;;) {
        int fd = dial(port);
        cr_assert_geq(fd, 0);
        ssize_t n = recv(fd, text, sizeof text, 0);
        bool greeted = n > 16 && memcmp(text, "rdmagen-agent 1 ", 16) == 0;
        if (greeted && what)
            send(fd, what, strlen(what), MSG_NOSIGNAL);
        shutdown(fd, SHUT_WR);
        while (recv(fd, text, sizeof text, 0) > 0)
            continue;
        close(fd);
        if (greeted)
            return;
        usleep(1000); /* another is still served */
    }
}

static const struct agent_server local = {.addr = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1},
                                          .limits = {.max_mem = 1 << 20, .max_qp = 2, .max_objs = 20},
                                          .token = {.text = "0123456789abcdef", .len = 16},
                                          .device = none_device,
                                          .tell = tell_nobody};

/* A server in a process of its own, at *port. */
static pid_t server_begin(uint16_t *port)
{
    struct agent_server s = local;
    int fd = agent_server_listen(&s);
    pid_t server;

    cr_assert_geq(fd, 0);
    *port = s.port;
    server = fork();
    if (server == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nothing behind */
        _exit(agent_server_run(&s, fd) ? 1 : 0);
    }
    close(fd);
    return server;
}

static void server_end(pid_t server)
{
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
}

Test(agent_session, three_intruders_close_the_port)
{
    int closed = 0;
    uint16_t port;
    pid_t server;

    hangs_after(30);
    server = server_begin(&port);
    for (unsigned i = 0; i < AGENT_FAILURES; i++) {
        intrude(port, NULL); /* who leaves does not make them fewer */
        intrude(port, "1 pd\n");
    }
    for (unsigned i = 0; i < 1000 && !closed; i++) {
        int again = dial(port);
        closed = again < 0;
        if (again >= 0)
            close(again);
        usleep(2000);
    }
    server_end(server);
    cr_assert(closed, "the port is closed");
}

/* Connect from 127.0.0.1 and prove to know the token: what is answered to the proof. */
static void know(uint16_t port, char *said, size_t size, int *fd)
{
    struct auth_token t = local.token;
    uint8_t nonce[AUTH_NONCE], proof[AUTH_PROOF];
    struct buf b = {0};
    ssize_t n;

    *fd = dial(port);
    cr_assert_geq(*fd, 0);
    n = recv(*fd, said, size - 1, 0);
    said[n < 0 ? 0 : n] = '\0';
    cr_assert(strstr(said, "nonce="), "%s", said);
    for (unsigned i = 0; i < sizeof nonce; i++)
        sscanf(strstr(said, "nonce=") + 6 + 2 * (size_t)i, "%2hhx", &nonce[i]);
    auth_proof(&t, nonce, "client", proof);
    buf_puts(&b, "p auth hmac=");
    buf_bytes(&b, proof, sizeof proof, 0);
    buf_char(&b, '\n');
    send(*fd, b.p, b.len, MSG_NOSIGNAL);
    buf_free(&b);
    n = recv(*fd, said, size - 1, 0);
    said[n < 0 ? 0 : n] = '\0';
}

/* Processes whose parent is the server. */
static unsigned children(pid_t server)
{
    char path[64], text[512];
    unsigned n = 0;
    FILE *f;

    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)server, (int)server);
    f = fopen(path, "r");
    cr_assert(f != NULL);
    n = fgets(text, sizeof text, f) ? 1 : 0;
    for (const char *p = text; n && *p; p++)
        n += *p == ' ';
    fclose(f);
    return n;
}

Test(agent_session, ten_thousand_connections_keep_nobody_out)
{
    enum { ALL = 10000, OPEN = 200 };
    int open[OPEN], fd, other;
    char said[400];
    unsigned most = 0;
    uint16_t port;
    pid_t server;

    hangs_after(60);
    server = server_begin(&port);
    memset(open, -1, sizeof open);
    for (unsigned i = 0; i < ALL; i++) {
        int *at = &open[i % OPEN];
        if (*at >= 0)
            close(*at);
        *at = dial_from(port, 2 + i % 2);
        if (*at >= 0)
            send(*at, "1 auth hm", i % 10, MSG_NOSIGNAL | MSG_DONTWAIT); /* half a line; nothing is read */
        if (i % 100 == 0 && children(server) > most)
            most = children(server);
    }
    cr_assert(most > 0 && most <= 2 * AGENT_ALIKE + 1, "%u processes at a time", most);
    know(port, said, sizeof said, &fd);
    cr_assert_eq(strncmp(said, "p ok", 4), 0, "while connections of others are open: %s", said);
    send(fd, "1 clock\n", 8, MSG_NOSIGNAL);
    cr_assert(recv(fd, said, sizeof said, 0) > 5 && memcmp(said, "1 ok ", 5) == 0);
    other = dial(port);
    cr_assert(recv(other, said, sizeof said, 0) == 19 && memcmp(said, "rdmagen-agent busy\n", 19) == 0);
    server_end(server);
}

Test(agent_session, who_proves_it_first_is_served)
{
    int early, fd;
    char said[400];
    uint16_t port;
    pid_t server;

    hangs_after(30);
    server = server_begin(&port);
    early = dial(port);
    cr_assert(recv(early, said, sizeof said, 0) > 16 && memcmp(said, "rdmagen-agent 1 ", 16) == 0);
    know(port, said, sizeof said, &fd);
    cr_assert_eq(strncmp(said, "p ok", 4), 0, "a client before it says nothing: %s", said);
    send(early, "1 pd\n", 5, MSG_NOSIGNAL);
    cr_assert(recv(early, said, sizeof said, 0) > 12 && memcmp(said, "1 err EACCES", 12) == 0);
    send(fd, "1 clock\n", 8, MSG_NOSIGNAL);
    cr_assert(recv(fd, said, sizeof said, 0) > 5 && memcmp(said, "1 ok ", 5) == 0, "it is served on");
    server_end(server);
}

/* Clients of one's own address that say nothing, as many as there may be, hold the port for a second, and not until
 * they have to prove it. */
Test(agent_session, who_is_silent_gives_way)
{
    int idle[AGENT_ALIKE], fd = -1;
    char said[400];
    unsigned open = 0;
    uint16_t port;
    pid_t server;

    hangs_after(30);
    server = server_begin(&port);
    for (unsigned i = 0; i < AGENT_ALIKE; i++) {
        idle[i] = dial(port);
        cr_assert(recv(idle[i], said, sizeof said, 0) > 16 && memcmp(said, "rdmagen-agent 1 ", 16) == 0);
    }
    while (fd < 0) {
        fd = dial(port);
        cr_assert(recv(fd, said, sizeof said, 0) > 0);
        if (memcmp(said, "rdmagen-agent busy", 18) == 0) {
            close(fd);
            fd = -1;
            usleep(20000);
        }
    }
    for (unsigned i = 0; i < AGENT_ALIKE; i++)
        open += recv(idle[i], said, sizeof said, MSG_DONTWAIT) < 0 && errno == EAGAIN;
    cr_expect_eq(open, AGENT_ALIKE - 1, "%u of the silent ones are still there", open);
    server_end(server);
}

/* CPU time that the child of the server has used, in ticks of 10 ms. */
static unsigned long ticks_of_child(pid_t server)
{
    unsigned long user = 0, system = 0;
    char path[64];
    int child = 0;
    FILE *f;

    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)server, (int)server);
    f = fopen(path, "r");
    cr_assert(f && fscanf(f, "%d", &child) == 1);
    fclose(f);
    snprintf(path, sizeof path, "/proc/%d/stat", child);
    f = fopen(path, "r");
    cr_assert(f && fscanf(f, "%*d %*s %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) == 2);
    fclose(f);
    return user + system;
}

/* Short lines, a megabyte at once, are not moved for each of them. */
Test(agent_session, many_lines_at_once_cost_little)
{
    enum { LINES = 260000 };
    static char said[65536], lines[4 * LINES];
    unsigned got = 0;
    size_t at = 0;
    uint16_t port;
    pid_t server;
    int fd;

    hangs_after(60);
    for (size_t i = 0; i < sizeof lines; i++)
        lines[i] = "1 a\n"[i % 4];
    server = server_begin(&port);
    know(port, said, sizeof said, &fd);
    while (got < LINES) {
        ssize_t n = at < sizeof lines ? send(fd, lines + at, sizeof lines - at, MSG_NOSIGNAL | MSG_DONTWAIT) : 0;
        at += n > 0 ? (size_t)n : 0;
        if (n > 0)
            continue;
        n = recv(fd, said, sizeof said, 0);
        cr_assert_gt(n, 0);
        for (ssize_t i = 0; i < n; i++)
            got += said[i] == '\n';
    }
    cr_expect_lt(ticks_of_child(server), 100 * patience(), "%lu ticks", ticks_of_child(server));
    server_end(server);
}

/* Most memory that a process has had, kB, by /proc; the child of the server that is served. */
static unsigned peak_of_child(pid_t server)
{
    char path[64], line[200];
    unsigned kb = 0;
    int child = 0;
    FILE *f;

    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)server, (int)server);
    f = fopen(path, "r");
    cr_assert(f && fscanf(f, "%d", &child) == 1);
    fclose(f);
    snprintf(path, sizeof path, "/proc/%d/status", child);
    f = fopen(path, "r");
    cr_assert(f != NULL);
    while (fgets(line, sizeof line, f))
        sscanf(line, "VmHWM: %u", &kb);
    fclose(f);
    return kb;
}

/* Say it `times` times, or until the agent takes nothing for 0.1 s. */
static void say_often(int fd, const char *text, size_t len, unsigned times)
{
    for (size_t at = 0, all = len * times, stuck = 0; at < all && stuck < 100;) {
        ssize_t n = send(fd, text + at % len, len - at % len, MSG_NOSIGNAL | MSG_DONTWAIT);
        at += n > 0 ? (size_t)n : 0;
        stuck = n > 0 ? 0 : stuck + 1;
        if (n <= 0)
            usleep(1000);
    }
}

/* Who knows the token, and takes no answer. */
Test(agent_session, a_client_takes_so_much_memory_and_no_more)
{
    static char text[LINE_BYTES], said[400];
    static const char help[] = "1 help\n2 mem len=1M\n3 batch n=1024\n", get[] = "4 mem read mem=mem1 len=1M\n";
    unsigned before;
    uint16_t port;
    pid_t server;
    int fd;

    hangs_after(60);
    server = server_begin(&port);
    know(port, said, sizeof said, &fd);
    before = peak_of_child(server);
    say_often(fd, help, sizeof help - 1, 1);
    memset(text, 'x', sizeof text);
    memcpy(text, "5 post send qp=", 15);
    text[sizeof text - 1] = '\n';
    say_often(fd, text, sizeof text, 1024); /* the lines of the batch: 64 MiB */
    say_often(fd, get, sizeof get - 1, 1000);
    say_often(fd, help, 7, 100000);
    cr_expect_leq(peak_of_child(server), before + (12u << 10), "%u kB before, %u kB", before, peak_of_child(server));
    server_end(server);
    close(fd);
}
