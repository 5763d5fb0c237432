/* layer 4 (tool): `rdmagen connect`: both sides of ucmatose and udaddy, against real peers; its options. */
#include "gen/cli/connect_cli.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#define CONNECTIONS 1000
#define MEMORY      (UINT64_C(1) << 30) /* bytes for all messages, at most */

static const struct opt_def defs[] = {
    {OPT_SERVER, "be the server: wait for clients"},
    {OPT_DATAGRAM, "UD: resolve a service by SIDR, as udaddy does"},
    {OPT_PORT, "port of RDMA-CM (7471; with --datagram 7174)"},
    {OPT_CONNECTIONS, "connections at once (1)"},
    {OPT_COUNT, "messages each way and connection (10); 0: none"},
    {OPT_PING_SIZE, "bytes of a message (100)"},
    {OPT_VALIDATE, "compare the data echoed"},
    {OPT_DISCONNECT, "client: disconnect when done, without waiting for the server"},
    {OPT_HOLD, "keep the connections for so long after the messages (0)"},
    {OPT_RX_DEPTH, "receives posted at a time (-C)"},
    {OPT_PRIVATE, "private data: text, or hex:... (none)"},
    {OPT_REJECT, "server: refuse, with this reason (with --datagram: status)"},
    {OPT_VERBOSE, "show each connection, with the peer's private data"},
    {OPT_PING_QUIET, "show nothing but errors"},
    {OPT_IPV6, "server: use the interface's IPv6 address"},
    {OPT_TIMEOUT, "longest time without a sign of the peer (10)"},
    LIVE_PSN_OPT,
    LIVE_OPTS_EITHER,
    {OPT_HELP, "show this help"},
    {0, NULL, NULL, NULL},
};

void cmd_connect_help(struct buf *b)
{
    buf_puts(b, "Usage: rdmagen connect HOST [options]\n       rdmagen connect -s [options]\n\n"
                "Make connections by RDMA-CM and exchange messages with ucmatose or udaddy (rdmacm-utils) on another "
                "host, as client\nor as server.\n\n");
    opt_help(b, defs);
    buf_puts(b, "\nExit status: 0 if all connections were made (with --reject: refused) and all messages went both "
                "ways, 1 if not or if\ndata differed, 2 for usage, or an interface or file that cannot be used.\n");
}

enum { DATAGRAMS = AS_OWN };

static const struct opt_foreign letters[] = {
    {'u', "qp-timeout", "perftest", "write --datagram", "datagram"},
    {0, NULL, NULL, NULL, NULL},
};

static const struct opt_clash clashes[] = {
    {'d', 0, AS_SERVER, "is for the client"},
    {'d', 0, DATAGRAMS, "is for connections, not for datagrams"},
    {KEY_REJECT, 0, AS_CLIENT, "is for the server (-s)"},
    {'v', 'q', 0, NULL},
    {0, 0, 0, NULL},
};

static int option_private(struct connect_job *j, const char *arg)
{
    size_t len = strlen(arg);

    if (strncmp(arg, "hex:", 4) != 0) {
        if (len > sizeof j->data)
            return cli_error("--private: at most %zu bytes are possible", sizeof j->data);
        memcpy(j->data, arg, len);
        j->data_len = (uint8_t)len;
        return 0;
    }
    for (arg += 4; *arg; arg += 2) {
        unsigned byte;
        if (!isxdigit((unsigned char)arg[0]) || !isxdigit((unsigned char)arg[1]) || sscanf(arg, "%2x", &byte) != 1 ||
            j->data_len == sizeof j->data)
            return cli_error("--private hex:...: expected at most %zu bytes of two digits each", sizeof j->data);
        j->data[j->data_len++] = (uint8_t)byte;
    }
    return 0;
}

static int option(void *job, int key, const char *arg)
{
    struct connect_job *j = job;

    switch (key) {
    case KEY_DATAGRAM:
        j->talk.ud = true;
        break;
    case 'V':
        j->talk.validate = true;
        break;
    case 'd':
        j->leave = true;
        break;
    case 'v':
        j->verbose = true;
        break;
    case KEY_PRIVATE:
        return option_private(j, arg);
    case 'p':
        return live_port("-p", arg, 1, &j->port);
    case 'c':
        return live_number32("-c", arg, 1, CONNECTIONS, &j->n);
    case 'C':
        return live_number32("-C", arg, 0, 100000, &j->talk.count);
    case 'S':
        return live_number32("-S", arg, 1, 1u << 20, &j->talk.size);
    case 'r':
        return live_number32("-r", arg, 1, 100000, &j->talk.recvs);
    case KEY_HOLD:
        return live_time("--hold", arg, true, &j->hold);
    case KEY_REJECT:
        j->rejects = true;
        return live_number32("--reject", arg, 1, 65535, &j->reject);
    case KEY_TIMEOUT:
        return live_time("--timeout", arg, false, &j->timeout);
    }
    return 0;
}

/* Refuse options that contradict each other: 0 or the exit status. */
static int consistent(struct connect_job *j)
{
    unsigned attr = j->talk.ud ? j->run.server ? CM_SIDR_REP : CM_SIDR_REQ : j->run.server ? CM_REP : CM_REQ;
    unsigned room = cm_private_max(attr) - (j->run.server ? 0 : CM_IP_LEN);

    if (j->reject > 255 && j->talk.ud)
        return cli_error("--reject %u: a status is at most 255", j->reject);
    if (j->data_len > room)
        return cli_error("--private: there is room for %s here", count_str(room, "byte"));
    if ((uint64_t)j->n * j->talk.count * j->talk.size > MEMORY)
        return cli_error("-c %u -C %u -S %u: more than 1 GiB of messages", j->n, j->talk.count, j->talk.size);
    if (!j->port)
        j->port = j->talk.ud ? MATOSE_UD_PORT : MATOSE_PORT;
    j->talk.passive = j->run.server;
    return 0;
}

static unsigned cases(const void *job)
{
    return ((const struct connect_job *)job)->talk.ud ? DATAGRAMS : 0;
}

static int operands(void *job, int n, char **argv)
{
    int r = consistent(job);

    return r ? r : live_cmd_peer(job, n, argv);
}

static bool path_of(void *user, const uint8_t gid[16], struct av *av)
{
    return live_path(user, gid, av);
}

static void defaults(void *job)
{
    struct connect_job *j = job;

    j->n = 1;
    j->timeout = 10 * NS_PER_S;
    j->talk = (struct matose_config){.size = MATOSE_SIZE, .count = MATOSE_COUNT, .path = path_of, .user = &j->run.live};
}

static int run(void *job)
{
    struct connect_job *j = job;
    int r;

    if (j->talk.ud && j->talk.size > j->run.live.mtu)
        return cli_error("-S %u: a datagram has at most %u bytes here", j->talk.size, j->run.live.mtu);
    j->nodes = calloc(j->n, sizeof *j->nodes);
    if (!j->nodes)
        return cli_error("out of memory");
    r = connect_open(j);
    return r < 0 ? live_cli_error(r, j->run.host) : connect_run(j);
}

static void stop(void *job)
{
    free(((struct connect_job *)job)->nodes);
}

int cmd_connect(int argc, char **argv)
{
    static const struct live_cmd cmd = {
        .size = sizeof(struct connect_job),
        .defs = defs,
        .help = cmd_connect_help,
        .sides = true,
        .defaults = defaults,
        .option = option,
        .operands = operands,
        .clashes = clashes,
        .foreign = letters,
        .cases = cases,
        .run = run,
        .stop = stop,
    };

    return live_cmd_main(&cmd, argc, argv);
}
