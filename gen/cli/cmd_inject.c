/* layer 4 (tool): `rdmagen inject`: options and the forwarding loop. */
#include "clock.h"
#include "gen/cli/inject_cli.h"
#include "gen/cli/live_run.h"
#include "gen/live/host.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define RX_BATCH     64
#define BLOCKED_WAIT (100 * NS_PER_US)
#define HOLD         (100 * NS_PER_MS)

static const struct opt_def defs[] = {
    {OPT_EVENT, "an exact event, rdmagen-scenario(5): 'conn=1 dir=req psn=5 iter=2 drop';\nmay be repeated"},
    {OPT_WRITE, "record both sides, with what was done as comments of the packets: pcapng, interface 0\n"
                "is the port of IF1, interface 1 that of IF2"},
    {OPT_DURATION, "end after TIME, seconds or such as 500ms (when interrupted)"},
    {OPT_COUNT, "end when N frames have come in"},
    {OPT_SEED, "of the bits that corrupt flips (1)"},
    {OPT_JSON, "the result as JSON"},
    {OPT_VERBOSE, "tell each time that an event matches"},
    {OPT_PING_QUIET, "tell nothing but errors"},
    {OPT_HELP, "show this help"},
    {0, NULL, NULL, NULL},
};

static const struct opt_clash clashes[] = {{'v', 'q', 0, NULL}, {0, 0, 0, NULL}};

void cmd_inject_help(struct buf *b)
{
    buf_puts(b, "Usage: rdmagen inject IF1 IF2 [options]\n\n"
                "Forward all frames between two interfaces, and apply exact events to RDMA packets. IF1 and IF2 are\n"
                "interfaces, or NAME:ARGS as in `rdmagen backends`, such as unix:OWN,PEER.\n\n");
    opt_help(b, defs);
    buf_puts(
        b,
        "\nExit status: 0; 1 if an event never matched a packet, or could not be applied to any; 2 for usage, or an\n"
        "interface or file that cannot be used.\n");
}

/* --- The bridge's callbacks ------------------------------------------------------------------- */

static bool send_frame(void *user, unsigned port, const uint8_t *data, uint32_t len)
{
    struct backend *k = ((struct inject *)user)->backend[port];

    if (backend_send(k, data, len) == 0)
        return true;
    k->ops->flush(k);
    return backend_send(k, data, len) == 0;
}

static void record(void *user, unsigned port, bool in, const uint8_t *data, uint32_t len, const char *note)
{
    struct inject *j = user;
    struct frame f = {
        .data = data, .caplen = min_u32(len, FRAME_MAX), .len = len, .linktype = LINK_ETHERNET, .has_ts = true};

    if (!j->record || j->record_err)
        return;
    f.flags = in ? 1 : 2;
    f.ts = j->epoch + j->now;
    f.iface = port;
    f.comment = *note ? note : NULL;
    f.comment_len = (uint32_t)strlen(note);
    j->record_err = cap_write(j->record, &f, &j->iface[port]);
}

static void print_match(void *user, unsigned port, const char *note)
{
    struct inject *j = user;
    struct buf b = {0};

    buf_time(&b, j->epoch + j->now);
    buf_printf(&b, " %s: %s\n", j->name[port], note + strlen("rdmagen: "));
    cli_flush(&b, STDOUT_FILENO);
    buf_free(&b);
}

/* --- Opening and closing ---------------------------------------------------------------------- */

static int open_port(struct inject *j, unsigned port)
{
    bool spec = strchr(j->name[port], ':') != NULL;
    struct backend_error e;

    if (backend_open(&j->backend[port], spec ? j->name[port] : "packet:bridge", spec ? NULL : j->name[port], &e) < 0)
        return cli_error("%s", e.msg);
    j->backend[port]->say = live_cli_say;
    return 0;
}

/* Warn about a port without a peer, and about a port on which this host itself has an address. */
static void warn_of_port(const struct inject *j, unsigned port)
{
    const struct backend *k = j->backend[port];
    uint8_t gid[16];

    if (k->ops->alone && k->ops->alone(k))
        cli_error("%s: no peer on this port", j->name[port]);
    else if (!strchr(j->name[port], ':') &&
             (host_address(j->name[port], false, NULL, gid) == 0 || host_address(j->name[port], true, NULL, gid) == 0))
        cli_error("%s: this host has address %s on this port, and answers besides the two bridged hosts", j->name[port],
                  live_addr_str(gid));
}

static int open_record(struct inject *j)
{
    struct cap_writer_opts o = {.format = CAP_WRITE_PCAPNG, .linktype = LINK_ETHERNET, .app = "rdmagen"};
    struct cap_error e = {0};

    for (unsigned i = 0; i < NET_HOSTS; i++)
        j->iface[i] =
            (struct cap_iface){.linktype = LINK_ETHERNET, .tsresol = 9, .name = (char *)(uintptr_t)j->name[i]};
    if (j->file && cap_writer_open(&j->record, j->file, &o, &e) < 0)
        return cli_error("%s: %s", j->file, e.msg);
    for (unsigned i = 0; i < NET_HOSTS && j->record; i++)
        j->record_err = cap_write_iface(j->record, 0, i, &j->iface[i]);
    return 0;
}

static int open_all(struct inject *j)
{
    struct bridge_config c = {.events = j->events, .seed = j->seed, .hold = HOLD, .send = send_frame, .user = j};
    int r;

    live_catch_signals();
    j->now = j->start = live_now();
    j->epoch = clock_ns(CLOCK_REALTIME) - j->now;
    if ((r = open_record(j)) || (r = open_port(j, 0)) || (r = open_port(j, 1)))
        return r;
    host_drop_capabilities();
    c.mtu = min_u32(j->backend[0]->mtu, j->backend[1]->mtu);
    c.record = j->record ? record : NULL;
    c.matched = j->verbose ? print_match : NULL;
    warn_of_port(j, 0);
    warn_of_port(j, 1);
    j->bridge = bridge_new(&c);
    return j->bridge ? 0 : cli_error("out of memory");
}

/* Close everything but the bridge: 0, or the exit status. */
static int close_all(struct inject *j)
{
    struct cap_error e = {0};
    int r = 0;

    for (unsigned i = 0; i < NET_HOSTS && j->record; i++) {
        const struct backend_stats *s = j->backend[i] ? backend_stats(j->backend[i]) : NULL;
        if (!s)
            continue;
        j->iface[i].received = s->received + s->dropped;
        j->iface[i].os_dropped = s->dropped;
        j->iface[i].has_drops = true;
        cap_write_stats(j->record, 0, i, &j->iface[i]);
    }
    if (j->record && cap_writer_close(j->record, &e) < 0 && !j->record_err)
        r = cli_error("%s: %s", j->file, e.msg);
    for (unsigned i = 0; i < NET_HOSTS; i++)
        backend_close(j->backend[i]);
    return r;
}

/* --- The loop --------------------------------------------------------------------------------- */

/* Receive frames on a port. Returns their number, or a negative errno. */
static int take(struct inject *j, unsigned port)
{
    struct backend_frame f;
    int n = 0, r = 0;

    for (; n < RX_BATCH && j->received < j->count && bridge_ready(j->bridge, port); n++) {
        r = j->backend[port]->ops->rx(j->backend[port], &f);
        if (r <= 0)
            break;
        j->received++;
        j->now = live_now();
        bridge_rx(j->bridge, port, f.data, f.len, f.lost, j->now);
    }
    return r < 0 ? backend_why(j->backend[port], r) : n;
}

static int flush(struct inject *j, bool *blocked)
{
    *blocked = bridge_blocked(j->bridge);
    for (unsigned i = 0; i < NET_HOSTS; i++) {
        int r = j->backend[i]->ops->flush(j->backend[i]);
        if (r == -EAGAIN)
            *blocked = true;
        else if (r < 0)
            return backend_why(j->backend[i], r);
    }
    return 0;
}

static int wait_for_work(struct inject *j, bool blocked, ns_t end)
{
    struct pollfd fds[NET_HOSTS];
    ns_t next = bridge_next(j->bridge);
    int r;

    for (unsigned i = 0; i < NET_HOSTS; i++) /* poll() ignores a negative descriptor */
        fds[i] = (struct pollfd){.fd = bridge_ready(j->bridge, i) ? j->backend[i]->fd : -1, .events = POLLIN};
    if (blocked && j->now + BLOCKED_WAIT < next)
        next = j->now + BLOCKED_WAIT;
    r = live_wait(fds, NET_HOSTS, next < end ? next : end);
    for (unsigned i = 0; i < NET_HOSTS; i++)
        backend_polled(j->backend[i], fds[i].revents);
    return r;
}

static int step(struct inject *j, ns_t end)
{
    bool blocked;
    int n[NET_HOSTS], r;

    j->now = live_now();
    bridge_run(j->bridge, j->now);
    for (unsigned i = 0; i < NET_HOSTS; i++)
        if ((n[i] = backend_check(j->backend[i])) < 0 || (n[i] = take(j, i)) < 0)
            return n[i];
    r = flush(j, &blocked);
    if (r < 0)
        return r;
    j->now = live_now();
    if (j->record && !j->record_err && j->now >= j->flush_at) {
        j->record_err = cap_writer_flush(j->record);
        j->flush_at = j->now + NS_PER_S;
    }
    return wait_for_work(j, blocked, n[0] || n[1] ? j->now : end);
}

/* Forward frames until the end: 0, or the exit status. */
static int forward(struct inject *j)
{
    ns_t end = j->duration ? j->start + j->duration : NS_NEVER;
    bool blocked = false;
    int r = 0;

    while (r == 0 && j->now < end && j->received < j->count)
        r = step(j, end);
    /* Release the held frames at the end. */
    j->now = live_now();
    bridge_end(j->bridge, j->now);
    flush(j, &blocked);
    if (r < 0 && r != -EINTR)
        return cli_error("the network failed: %s", strerror(-r));
    if (j->record_err)
        return cli_error("%s: %s", j->file, cap_writer_error(j->record)->msg);
    return 0;
}

/* --- Options ---------------------------------------------------------------------------------- */

static int add_event(struct inject *j, const char *arg)
{
    struct token t[EVENT_WORDS];
    unsigned n = text_split(arg, t, ARRAY_LEN(t));
    struct text_error e;

    if (n > ARRAY_LEN(t))
        return cli_error("--event '%s': too many words", arg);
    if (!event_add(j->events, t, n, arg, &e))
        return cli_error("--event '%s': column %u: %s", arg, e.col, e.msg);
    return 0;
}

static int option(void *job, int key, const char *arg)
{
    struct inject *j = job;

    switch (key) {
    case KEY_EVENT:
        return add_event(j, arg);
    case 'D':
        return live_time("-D", arg, false, &j->duration);
    case 'C':
        return live_number("-C", arg, 1, UINT64_MAX, &j->count);
    case KEY_SEED:
        return live_number("--seed", arg, 0, UINT64_MAX, &j->seed);
    case KEY_JSON:
        report_file_option(&j->json, arg);
        break;
    case 'w':
        j->file = arg;
        break;
    case 'v':
        j->verbose = true;
        break;
    case 'q':
        j->quiet = true;
        break;
    }
    return 0;
}

static int operands(void *job, int n, char **argv)
{
    struct inject *j = job;

    if (n != 2)
        return cli_error("inject: two interfaces are expected");
    j->name[0] = argv[0];
    j->name[1] = argv[1];
    if (strcmp(j->name[0], j->name[1]) == 0)
        return cli_error("inject: %s is given twice", j->name[0]);
    return 0;
}

int cmd_inject(int argc, char **argv)
{
    static const struct live_cmd cmd = {
        .defs = defs, .help = cmd_inject_help, .option = option, .operands = operands, .clashes = clashes};
    struct inject j = {.count = UINT64_MAX, .seed = 1, .events = event_list_new()};
    int r, e;

    if (!j.events || !event_learn(j.events)) {
        event_list_free(j.events);
        return cli_error("out of memory");
    }
    r = live_cmd_parse(&cmd, NULL, &j, argc, argv);
    if (r < 0) {
        r = report_file_open(&j.json);
        if (r == 0)
            r = open_all(&j);
        if (r == 0) {
            inject_begin(&j);
            r = forward(&j);
            e = inject_report(&j);
            r = r ? r : e;
        }
        e = close_all(&j);
        r = e ? e : r;
        if (r)
            report_file_fail(&j.json);
    }
    bridge_free(j.bridge);
    event_list_free(j.events);
    return r;
}
