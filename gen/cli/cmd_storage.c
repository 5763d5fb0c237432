/* layer 4 (tool): `rdmagen nvme`, `nfs`, `iser`: a storage protocol with a real peer, as the end that asks or the one
 * that serves. */
#include "gen/cli/live_run.h"
#include "gen/cli/storage_cli.h"
#include "gen/storage/discovery.h"
#include "tokens.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ROOM_MAX (UINT64_C(4) << 30)

struct job {
    struct live_run run;
    struct storage_config c;
    struct storage storage;
    uint8_t fh[64]; /* c.fh */
};

static const struct opt_def nvme_defs[] = {
    {OPT_SERVER, "be the target: serve blocks from memory"},
    {OPT_PORT, "port of RDMA-CM (4420)"},
    {OPT_RW, "what the host does: read (default), or write: it overwrites the blocks, reads them back and compares"},
    {OPT_DISCOVER, "host: read the discovery log page of the target, and no blocks"},
    {OPT_ITERS, "blocks (100)"},
    {OPT_PING_SIZE, "bytes of a block (65536), which one command moves; K and M are powers of 1024"},
    {OPT_TX_DEPTH, "commands outstanding on each I/O queue (16)"},
    {OPT_NR_IO_QUEUES, "I/O queues, if the target grants so many (1)"},
    {OPT_QUEUE_SIZE, "entries of an I/O queue, more than -t (128)"},
    {OPT_NQN, "name of the subsystem (nqn.2026-01.rdmagen:target)"},
    {OPT_HOSTNQN, "name of the host (nqn.2026-01.rdmagen:host)"},
    {OPT_ROOM, "target: bytes that it serves (16M); K, M and G are powers of 1024"},
    {OPT_PERSISTENT, "target: serve one host after another"},
    {OPT_PING_QUIET, "show nothing but errors"},
    {OPT_IPV6, "target: use the interface's IPv6 address"},
    {OPT_TIMEOUT, "host: longest silence of the target (10)"},
    LIVE_OPTS_EITHER,
    {OPT_HELP, "show this help"},
    {0, NULL, NULL, NULL},
};

static const struct opt_def nfs_defs[] = {
    {OPT_SERVER, "be the server: serve one file from memory"},
    {OPT_PORT, "port of RDMA-CM (20049)"},
    {OPT_RW, "what the client does: read (default), or write: it overwrites the file, reads it back and compares"},
    {OPT_ITERS, "blocks (100)"},
    {OPT_PING_SIZE, "bytes of a block (65536), which one call moves; K and M are powers of 1024"},
    {OPT_TX_DEPTH, "calls outstanding, if the server grants so many credits (16)"},
    {OPT_FH, "client: handle of the directory that holds the file (that of rdmagen nfs -s)"},
    {OPT_FILE, "client: name of the file (data)"},
    {OPT_ROOM, "server: bytes of the file (16M); K, M and G are powers of 1024"},
    {OPT_PERSISTENT, "server: serve one client after another"},
    {OPT_PING_QUIET, "show nothing but errors"},
    {OPT_IPV6, "server: use the interface's IPv6 address"},
    {OPT_TIMEOUT, "client: longest silence of the server (10)"},
    LIVE_OPTS_EITHER,
    {OPT_HELP, "show this help"},
    {0, NULL, NULL, NULL},
};

static const struct opt_def iser_defs[] = {
    {OPT_SERVER, "be the target: serve blocks from memory"},
    {OPT_PORT, "port of RDMA-CM (3260)"},
    {OPT_RW,
     "what the initiator does: read (default), or write: it overwrites the blocks, reads them back and compares"},
    {OPT_ITERS, "blocks (100)"},
    {OPT_PING_SIZE, "bytes of a block (65536), which one command moves; K and M are powers of 1024"},
    {OPT_TX_DEPTH, "commands outstanding, if the target takes so many (16)"},
    {OPT_TARGETNAME, "name of the target (iqn.2026-01.rdmagen:target)"},
    {OPT_ROOM, "target: bytes that it serves (16M); K, M and G are powers of 1024"},
    {OPT_PERSISTENT, "target: serve one initiator after another"},
    {OPT_PING_QUIET, "show nothing but errors"},
    {OPT_IPV6, "target: use the interface's IPv6 address"},
    {OPT_TIMEOUT, "initiator: longest silence of the target (10)"},
    LIVE_OPTS_EITHER,
    {OPT_HELP, "show this help"},
    {0, NULL, NULL, NULL},
};

static const char exit_status[] = "\nExit status: 0 if all commands succeeded and all data was right, 1 if not or if a "
                                  "connection failed, 2 for usage, "
                                  "or\nan interface or file that cannot be used.\n";

void cmd_nvme_help(struct buf *b)
{
    buf_puts(b, "Usage: rdmagen nvme HOST [options]\n       rdmagen nvme -s [options]\n\n"
                "Read and write blocks by NVMe over RDMA: as a host, of a target on another host (Linux: nvmet-rdma), "
                "or as a target\n(Linux: nvme connect).\n\n");
    opt_help(b, nvme_defs);
    buf_puts(b, exit_status);
}

void cmd_nfs_help(struct buf *b)
{
    buf_puts(b, "Usage: rdmagen nfs HOST [options]\n       rdmagen nfs -s [options]\n\n"
                "Read and write a file by NFS version 3 over RPC over RDMA: as a client, of a server on another host "
                "(Linux: nfsd), or as\na server. There is no MOUNT: the client is told the handle of a directory.\n\n");
    opt_help(b, nfs_defs);
    buf_puts(b, exit_status);
}

void cmd_iser_help(struct buf *b)
{
    buf_puts(b, "Usage: rdmagen iser HOST [options]\n       rdmagen iser -s [options]\n\n"
                "Read and write blocks by iSCSI over iSER: as an initiator, of a target on another host (Linux: "
                "ib_isert), or as a target.\n\n");
    opt_help(b, iser_defs);
    buf_puts(b, exit_status);
}

static const char for_client[] = "is for the end that connects", for_server[] = "is for the end that serves (-s)";
/* In both tables. */
#define CLASHES                                                                                                        \
    {KEY_RW, 0, AS_SERVER, for_client}, {'n', 0, AS_SERVER, for_client}, {'S', 0, AS_SERVER, for_client},              \
        {'t', 0, AS_SERVER, for_client}, {KEY_TIMEOUT, 0, AS_SERVER, for_client},                                      \
        {KEY_ROOM, 0, AS_CLIENT, for_server},                                                                          \
    {                                                                                                                  \
        'P', 0, AS_CLIENT, for_server                                                                                  \
    }
static const struct opt_clash nvme_clashes[] = {
    CLASHES,
    {KEY_NR_IO_QUEUES, 0, AS_SERVER, for_client},
    {KEY_QUEUE_SIZE, 0, AS_SERVER, for_client},
    {KEY_HOSTNQN, 0, AS_SERVER, for_client},
    {KEY_DISCOVER, 0, AS_SERVER, for_client},
    {KEY_DISCOVER, 'n', 0, NULL},
    {KEY_DISCOVER, 'S', 0, NULL},
    {KEY_DISCOVER, 't', 0, NULL},
    {KEY_DISCOVER, KEY_RW, 0, NULL},
    {KEY_DISCOVER, KEY_NR_IO_QUEUES, 0, NULL},
    {KEY_DISCOVER, KEY_QUEUE_SIZE, 0, NULL},
    {KEY_DISCOVER, KEY_NQN, 0, NULL},
    {0, 0, 0, NULL},
};
static const struct opt_clash iser_clashes[] = {CLASHES, {0, 0, 0, NULL}};
static const struct opt_clash nfs_clashes[] = {
    CLASHES,
    {KEY_FH, 0, AS_SERVER, for_client},
    {KEY_FILE, 0, AS_SERVER, for_client},
    {0, 0, 0, NULL},
};

static int option_bytes(const char *name, const char *arg, uint64_t max, uint64_t *to)
{
    struct token t = token_of(arg);

    return token_size(&t, to) && *to >= 8 && *to <= max
               ? 0
               : cli_error("%s %s: expected a number from 8 to %llu", name, arg, (unsigned long long)max);
}

static int option_name(const char *name, const char *arg, const char **to)
{
    *to = arg;
    return *arg && strlen(arg) <= STORAGE_NAME_MAX
               ? 0
               : cli_error("%s %s: expected a name of 1 to %u bytes", name, arg, STORAGE_NAME_MAX);
}

/* Two digits for each byte. */
static int option_handle(struct job *j, const char *arg)
{
    size_t n = strlen(arg), digits = strspn(arg, "0123456789abcdefABCDEF");

    if (n == 0 || n % 2 || n / 2 > sizeof j->fh || digits != n)
        return cli_error("--fh %s: expected up to %zu bytes as hexadecimal digits", arg, sizeof j->fh);
    for (size_t i = 0; i < n / 2; i++) {
        char byte[3] = {arg[2 * i], arg[2 * i + 1], '\0'};
        j->fh[i] = (uint8_t)strtoul(byte, NULL, 16);
    }
    j->c.fh = j->fh;
    j->c.fh_len = (uint32_t)(n / 2);
    return 0;
}

static int option(void *job, int key, const char *arg)
{
    static const char *const ways[] = {"read", "write", NULL};
    struct job *j = job;
    uint64_t size = 0;
    unsigned way = 0;
    int r = 0;

    switch (key) {
    case 'p':
        return live_port("-p", arg, 1, &j->c.port);
    case KEY_RW:
        r = opt_choice("--rw", arg, ways, &way);
        j->c.write = way == 1;
        return r;
    case 'n':
        return live_number("-n", arg, 1, UINT32_MAX, &j->c.iters);
    case 'S':
        r = option_bytes("-S", arg, STORAGE_SIZE_MAX, &size);
        j->c.size = (uint32_t)size;
        return r;
    case 't':
        return live_number32("-t", arg, 1, STORAGE_DEPTH_MAX - 1, &j->c.depth);
    case KEY_NR_IO_QUEUES:
        return live_number32("--nr-io-queues", arg, 1, STORAGE_LINKS / 4, &j->c.queues);
    case KEY_QUEUE_SIZE:
        return live_number32("--queue-size", arg, 2, STORAGE_DEPTH_MAX, &j->c.queue_size);
    case KEY_DISCOVER:
        j->c.discover = true;
        return 0;
    case KEY_NQN:
        return option_name("--nqn", arg, &j->c.nqn);
    case KEY_HOSTNQN:
        return option_name("--hostnqn", arg, &j->c.hostnqn);
    case KEY_TARGETNAME:
        return option_name("--targetname", arg, &j->c.targetname);
    case KEY_FH:
        return option_handle(j, arg);
    case KEY_FILE:
        return option_name("--file", arg, &j->c.file);
    case KEY_ROOM:
        return option_bytes("--room", arg, ROOM_MAX, &j->c.room);
    case 'P':
        j->c.persistent = true;
        return 0;
    case KEY_TIMEOUT:
        return live_time("--timeout", arg, false, &j->c.timeout);
    }
    return 0;
}

static int operands(void *job, int n, char **argv)
{
    struct job *j = job;
    int r = live_cmd_peer(job, n, argv);

    memcpy(j->c.gid, j->run.gid, 16);
    j->c.server = j->run.server;
    if (j->c.discover)
        j->c.iters = 0;
    return r ? r : storage_settle(j->run.name, storage_kind_find(j->run.name), &j->c);
}

static void defaults(void *job)
{
    struct job *j = job;

    j->c = storage_defaults();
}

static void on_joined(void *user, int qp)
{
    const struct job *j = user;

    if (!j->run.quiet)
        live_cli_joined(&j->run.live, qp, NULL);
}

static void show(struct job *j)
{
    struct buf b = {0};

    if (!j->run.quiet) {
        storage_text(&b, &j->storage);
        cli_text(&b, STDOUT_FILENO);
    }
    buf_free(&b);
}

static void on_served(void *user)
{
    struct job *j = user;

    if (j->c.persistent)
        show(j);
}

static void on_found(void *user, const uint8_t *entry)
{
    struct buf b = {0};

    (void)user;
    discovery_text(&b, entry);
    buf_char(&b, '\n');
    cli_text(&b, STDOUT_FILENO);
    buf_free(&b);
}

/* Send what is still queued. */
static void drain(struct live *l)
{
    for (unsigned i = 0; i < 3; i++)
        if (live_step(l, 0) != 0)
            return;
}

static int run(void *job)
{
    struct job *j = job;
    struct storage *s = &j->storage;
    int r, status;

    if (j->c.server)
        memcpy(j->c.gid, j->run.live.id.gid, 16);
    j->c.seed = j->run.config.seed ? j->run.config.seed : (uint64_t)live_now();
    r = storage_open(s, storage_kind_find(j->run.name), &j->c, ep_verbs(j->run.live.ep), live_now());
    s->joined = on_joined;
    s->served = on_served;
    s->found = on_found;
    s->user = j;
    if (r == 0 && j->c.server && !j->run.quiet)
        live_cli_ready(&j->run.live, s->c.port);
    while (r == 0 && !storage_done(s, live_now())) {
        r = live_step(&j->run.live, storage_next(s));
        if (r == -EINTR && !s->leaving && s->n_links) { /* interrupted: disconnect */
            live_go_on();
            storage_fail(s, live_now(), "interrupted");
            r = 0;
        }
        if (r == 0)
            storage_step(s, live_now());
    }
    drain(&j->run.live);
    if (r < 0 && r != -EINTR)
        cli_error("%s: %s", j->run.name, strerror(-r));
    if (*s->why)
        cli_error("%s: %s", j->run.name, s->why);
    if (!j->c.persistent)
        show(j);
    status = r < 0 && r != -EINTR ? EXIT_FOUND : storage_status(s);
    storage_close(s);
    return status;
}

#define STORAGE_CMD(name_)                                                                                             \
    {                                                                                                                  \
        .size = sizeof(struct job), .defs = name_##_defs, .help = cmd_##name_##_help, .defaults = defaults,            \
        .option = option, .operands = operands, .run = run, .sides = true, .clashes = name_##_clashes                  \
    }

int cmd_nvme(int argc, char **argv)
{
    static const struct live_cmd cmd = STORAGE_CMD(nvme);

    return live_cmd_main(&cmd, argc, argv);
}

int cmd_nfs(int argc, char **argv)
{
    static const struct live_cmd cmd = STORAGE_CMD(nfs);

    return live_cmd_main(&cmd, argc, argv);
}

int cmd_iser(int argc, char **argv)
{
    static const struct live_cmd cmd = STORAGE_CMD(iser);

    return live_cmd_main(&cmd, argc, argv);
}
