/* layer 4 (tool): `rdmagen agent`: posts any verb on an RDMA device of this host for a client elsewhere. */
#include "gen/agent/server.h"
#include "gen/cli/gen_cli.h"
#include "gen/live/host.h"
#include "tokens.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#define MAX_OBJECTS 65536

static const struct opt_def defs[] = {
    {OPT_BIND, "address, and port, to listen at (127.0.0.1:18517; port 0: any)"},
    {OPT_ANY, "listen at all addresses of this host"},
    {OPT_ALLOW, "serve clients from these addresses only, such as 10.0.0.0/24"},
    {OPT_TOKEN_FILE, "file with the token that clients know; made with a token drawn if there is none; without it, one "
                     "is drawn and printed"},
    {OPT_DEVICE, "the only RDMA device that clients may open, such as mlx5_0"},
    {OPT_MAX_MEM, "memory that a client may allocate (256M); K, M and G are powers of 1024"},
    {OPT_MAX_QP, "queue pairs that a client may have (4096)"},
    {OPT_HELP, "show this help"},
    {0, NULL, NULL, NULL},
};

static const struct opt_clash clashes[] = {{KEY_ANY, KEY_BIND, 0, NULL}, {0, 0, 0, NULL}};

void cmd_agent_help(struct buf *b)
{
    buf_puts(b,
             "Usage: rdmagen agent [options]\n\nPost verbs on an RDMA device of this host for a client, line by line "
             "over TCP: one client at a time, which knows a\ntoken. Needs libibverbs and librdmacm, and no root.\n\n");
    opt_help(b, defs);
    buf_puts(
        b, "\nExit status: 0 when it is interrupted, 1 if it cannot serve (a library, or the port), 2 for usage, or a "
           "token file\nthat cannot be used.\n");
}

/* --- Options ---------------------------------------------------------------------------------- */

static bool address(const char *text, uint8_t gid[16])
{
    if (inet_pton(AF_INET6, text, gid) == 1)
        return true;
    memset(gid, 0, 10);
    gid[10] = gid[11] = 0xff;
    return inet_pton(AF_INET, text, gid + 12) == 1;
}

/* ADDR, ADDR:PORT, [ADDR6] or [ADDR6]:PORT. */
static int option_bind(struct agent_server *s, const char *arg)
{
    static const uint8_t none[16], any4[16] = {[10] = 0xff, [11] = 0xff};
    char text[64];
    const char *port = strrchr(arg, ':');
    uint64_t n = AGENT_PORT;
    bool six = *arg == '[', bare = !six && port && strchr(arg, ':') != port; /* an IPv6 address alone */
    size_t len;

    if (bare || (six && port && port < strchr(arg, ']')))
        port = NULL;
    len = port ? (size_t)(port - arg) : strlen(arg);
    if (six && (len < 2 || arg[len - 1] != ']'))
        return cli_error("--bind %s: expected an address, or [ADDR]:PORT", arg);
    snprintf(text, sizeof text, "%.*s", (int)(six ? len - 2 : len), arg + six);
    if (len >= sizeof text || !address(text, s->addr) || (port && !opt_number(port + 1, 0, 65535, &n)))
        return cli_error("--bind %s: expected an address, and a port behind a colon", arg);
    if (memcmp(s->addr, none, 16) == 0 || memcmp(s->addr, any4, 16) == 0)
        return cli_error("--bind %s: that is every address of this host: --any says so", arg);
    s->port = (uint16_t)n;
    return 0;
}

static int option_allow(struct agent_server *s, const char *arg)
{
    struct token t = token_of(arg), at, bits;
    char text[64];
    uint64_t n;
    bool has = token_cut(&t, '/', &at, &bits), v4;

    snprintf(text, sizeof text, "%.*s", (int)at.len, at.p);
    v4 = !strchr(text, ':');
    n = v4 ? 32 : 128;
    if (at.len >= sizeof text || !address(text, s->allow) || (has && (!token_u64(&bits, &n) || n > (v4 ? 32 : 128))))
        return cli_error("--allow %s: expected addresses such as 10.0.0.0/24", arg);
    s->allow_len = (unsigned)n + (v4 ? 96 : 0);
    s->has_allow = true;
    return 0;
}

static int option_token(struct agent_server *s, const char *path)
{
    bool made;
    int e = auth_token_file(&s->token, path, &made);

    if (e == -EACCES)
        return cli_error("--token-file %s: expected a file that only its owner may read (chmod 600)", path);
    if (e == -EINVAL)
        return cli_error("--token-file %s: expected %d to %d characters without a blank", path, AUTH_TOKEN_MIN,
                         AUTH_TOKEN_MAX);
    return e < 0 ? cli_error("--token-file %s: %s", path, strerror(-e)) : 0;
}

static int option_size(const char *name, const char *arg, uint64_t min, uint64_t max, uint64_t *v)
{
    struct token t = token_of(arg);

    if (!token_size(&t, v) || *v < min || *v > max)
        return cli_error("%s %s: expected a number from %llu to %llu", name, arg, (unsigned long long)min,
                         (unsigned long long)max);
    return 0;
}

static int option(struct agent_server *s, const char **token, int key, const char *arg)
{
    uint64_t v = 0;
    int e;

    switch (key) {
    case KEY_BIND:
        return option_bind(s, arg);
    case KEY_ANY:
        memset(s->addr, 0, sizeof s->addr);
        return 0;
    case KEY_ALLOW:
        return option_allow(s, arg);
    case KEY_TOKEN_FILE:
        *token = arg;
        return 0;
    case KEY_DEVICE:
        if (strlen(arg) >= sizeof s->only || strchr(arg, '/'))
            return cli_error("--device %s: expected the name of an RDMA device", arg);
        strcpy(s->only, arg);
        return 0;
    case KEY_MAX_MEM:
        return option_size("--max-mem", arg, 4096, UINT64_C(1) << 40, &s->limits.max_mem);
    default:
        e = option_size("--max-qp", arg, 1, MAX_OBJECTS, &v);
        s->limits.max_qp = (uint32_t)v;
        return e;
    }
}

/* --- Serving ---------------------------------------------------------------------------------- */

static void tell(const struct agent_server *s, const char *text)
{
    if (text) {
        cli_error("%s", text);
        return;
    }
    printf("serving at %s, port %u\n", live_addr_str(s->addr), s->port);
    fflush(stdout);
}

static void on_signal(int signal)
{
    (void)signal;
    agent_server_stop();
}

/* Whether the libraries are there, and --device. */
static int check(const struct agent_server *s)
{
    char why[RNIC_WHY] = "", want[80];
    struct buf devices = {0};
    struct rnic *r = NULL;
    int e = s->device(&r, why);

    if (e < 0) {
        cli_error("%s", *why ? why : strerror(-e));
        return EXIT_FOUND;
    }
    e = r->ops->list(r, &devices);
    r->ops->close(r);
    buf_char(&devices, ' ');
    snprintf(want, sizeof want, " dev=%s ", s->only);
    if (e == 0 && *s->only && !strstr(buf_str(&devices), want)) {
        cli_error("--device %s: there is no such RDMA device; %s%s", s->only,
                  devices.len > 1 ? "those of this host:" : "this host has none",
                  devices.len > 1 ? buf_str(&devices) : "");
        e = -ENODEV;
    } else if (e < 0) {
        cli_error("RDMA devices: %s", strerror(-e));
    } else if (devices.len <= 1) {
        cli_error("this host has no RDMA device: clients can open none until there is one");
    }
    buf_free(&devices);
    return e < 0 ? EXIT_FOUND : EXIT_OK;
}

static int serve(struct agent_server *s)
{
    const struct sigaction stop = {.sa_handler = on_signal};
    int fd = agent_server_listen(s), e;

    if (fd < 0) {
        cli_error("%s, port %u: %s", live_addr_str(s->addr), s->port, strerror(-fd));
        return EXIT_FOUND;
    }
    host_keep_capabilities(UINT64_C(1) << CAP_NET_RAW | UINT64_C(1) << CAP_IPC_LOCK);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0});
    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGINT, &stop, NULL);
    e = agent_server_run(s, fd);
    return e < 0 ? EXIT_FOUND : EXIT_OK;
}

static int run(struct agent_server *s, const char *token)
{
    int e;

    if (sodium_init() < 0) {
        cli_error("no random numbers");
        return EXIT_FOUND;
    }
    e = token ? option_token(s, token) : 0;
    if (e == 0)
        e = check(s);
    if (e)
        return e;
    if (!token) {
        auth_token_draw(&s->token);
        printf("token %s\n", s->token.text);
    }
    return serve(s);
}

int cmd_agent(int argc, char **argv)
{
    struct agent_server s = {.addr = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1},
                             .port = AGENT_PORT,
                             .limits = {.max_mem = 256 << 20, .max_qp = 4096, .max_objs = MAX_OBJECTS},
                             .device = ibv_rnic_open,
                             .tell = tell};
    struct opt_state o;
    struct buf b = {0};
    const char *arg, *token = NULL;
    int key, operand, e = 0;

    opt_start(&o, defs, argc, argv);
    while (e == 0 && (key = opt_next(&o, &arg, &operand)) != 0) {
        if (key == 'h') {
            opt_end(&o);
            cmd_agent_help(&b);
            return cli_show(&b);
        }
        e = key < 0 ? EXIT_BAD : option(&s, &token, key, arg);
    }
    if (e == 0)
        e = opt_refuse(&o, clashes, 0);
    if (e == 0 && operand < o.argc)
        e = cli_error("agent takes no operands");
    opt_end(&o);
    return e ? e : run(&s, token);
}
