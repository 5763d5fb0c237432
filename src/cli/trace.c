/* layer 4 (tool): files and options of the commands that look at whole captures, and their reading loop. */
#include "src/cli/trace.h"

#include "src/cap/merge.h"
#include "src/cli/cli.h"
#include "src/trace/window.h"

#include <arpa/inet.h>
#include <stdlib.h>

bool trace_start(struct trace_input *in, int argc)
{
    *in = (struct trace_input){.decode.verify = true};
    in->files = calloc((size_t)argc + 1, sizeof *in->files);
    if (!in->files)
        cli_error("out of memory");
    return in->files != NULL;
}

void trace_free(struct trace_input *in)
{
    free(in->files);
    filter_free(in->filter);
}

int trace_filter(struct trace_input *in, const char *text)
{
    filter_free(in->filter);
    if (cli_filter(&in->filter, text) != EXIT_OK)
        return EXIT_BAD;
    if (filter_needs(in->filter) & FILTER_NEEDS_NOTE)
        return cli_error("-Y: fields of context (rdma.conn and the like) cannot be used here");
    return EXIT_OK;
}

/* "ADDRESS:QPN", up to the comma or the end; an IPv6 address may stand in brackets. */
static bool parse_end(const char *s, size_t n, struct conn_addr *a, uint32_t *qpn)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    char text[80];
    char *colon;
    uint64_t v;

    if (n >= sizeof text)
        return false;
    memcpy(text, s, n);
    text[n] = '\0';
    colon = strrchr(text, ':');
    if (!colon || !opt_number(colon + 1, 0, 0xffffff, &v))
        return false;
    *qpn = (uint32_t)v;
    *colon = '\0';
    if (text[0] == '[' && colon[-1] == ']') {
        colon[-1] = '\0';
        return inet_pton(AF_INET6, text + 1, a->b) == 1;
    }
    memcpy(a->b, mapped, 12);
    return inet_pton(AF_INET, text, a->b + 12) == 1 || inet_pton(AF_INET6, text, a->b) == 1;
}

static int parse_pair(struct trace_input *in, const char *arg)
{
    const char *comma = strchr(arg, ',');
    struct conn_known *k = &in->pairs[in->n_pairs];

    if (in->n_pairs == TRACE_PAIRS)
        return cli_error("--pair %s: at most %d pairs", arg, TRACE_PAIRS);
    *k = (struct conn_known){.how = PAIR_USER, .any_psn = true};
    if (!comma || !parse_end(arg, (size_t)(comma - arg), &k->addr[0], &k->qpn[0]) ||
        !parse_end(comma + 1, strlen(comma + 1), &k->addr[1], &k->qpn[1]))
        return cli_error("--pair %s: expected ADDRESS:QPN,ADDRESS:QPN, such as 10.0.0.1:0x12,10.0.0.2:0x15", arg);
    in->n_pairs++;
    return EXIT_OK;
}

static int parse_udp_port(struct decode_opts *o, const char *arg)
{
    uint64_t v;

    if (!opt_number(arg, 1, 65535, &v))
        return cli_error("--udp-port %s: expected a number from 1 to 65535", arg);
    if (o->n_udp_ports == ARRAY_LEN(o->udp_ports))
        return cli_error("--udp-port %s: at most %zu ports", arg, ARRAY_LEN(o->udp_ports));
    o->udp_ports[o->n_udp_ports++] = (uint16_t)v;
    return EXIT_OK;
}

bool trace_option(struct trace_input *in, int key, const char *arg, int *status)
{
    switch (key) {
    case 'r':
        in->files[in->n_files++] = arg;
        return true;
    case TRACE_KEY_PAIR:
        *status = parse_pair(in, arg);
        return true;
    case TRACE_KEY_UDP_PORT:
        *status = parse_udp_port(&in->decode, arg);
        return true;
    default:
        return false;
    }
}

int trace_operands(struct trace_input *in, const char *command, int operand, int argc, char **argv)
{
    while (operand < argc)
        in->files[in->n_files++] = argv[operand++];
    return in->n_files ? EXIT_OK : cli_error("%s: no capture file; name one, or - for standard input", command);
}

void trace_pairs(const struct trace_input *in, struct conn_table *t)
{
    for (unsigned i = 0; i < in->n_pairs; i++)
        conn_learn(t, &in->pairs[i]);
}

static void deliver(const struct trace_input *in, const struct trace_user *u, const struct frame *f)
{
    struct pkt p;

    pkt_decode(&p, f, &in->decode);
    if (in->filter && !filter_match(in->filter, &p))
        return;
    u->packet(u->user, &p);
}

/* All frames through the window. */
static int read_frames(const struct trace_input *in, const struct trace_user *u, struct cap_merge *m)
{
    struct window *w = window_new();
    struct frame f;
    bool ok = w != NULL;

    while (ok && cap_merge_next(m, &f) > 0) {
        ok = window_put(w, &f);
        while (window_full(w) && window_get(w, &f))
            deliver(in, u, &f);
    }
    while (w && window_get(w, &f))
        deliver(in, u, &f);
    window_free(w);
    return ok ? EXIT_OK : cli_error("out of memory");
}

/* What the interfaces of a file dropped, as the file says. */
static uint64_t file_drops(struct cap *c)
{
    const struct cap_info *info = cap_info(c);
    uint64_t n = 0;

    for (uint32_t i = 0; i < info->n_ifaces; i++)
        n += info->ifaces[i].dropped + info->ifaces[i].os_dropped;
    return n;
}

int trace_read(const struct trace_input *in, const struct trace_user *u)
{
    struct cap_merge *m;
    struct cap_error err;
    int status;

    if (cap_merge_open(&m, in->files, in->n_files, NULL, &err) < 0)
        return cli_cap_error(&err);
    status = read_frames(in, u, m);
    for (size_t i = 0; i < cap_merge_count(m); i++) {
        const struct cap_error *e = cap_error(cap_merge_file(m, i));
        uint64_t drops = file_drops(cap_merge_file(m, i));
        if (e->err)
            status = cli_cap_error(e);
        if (drops && u->drops)
            u->drops(u->user, (uint16_t)i, drops);
    }
    cap_merge_close(m);
    return status;
}
