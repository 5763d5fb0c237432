/* layer 4 (tool): options and operands that all commands have which read whole captures. */
#include "src/cli/input/arguments.h"

#include "src/cli/cli.h"
#include "src/filter/filter.h"
#include "src/show/anonymize.h"
#include "tokens.h"

#include <stdlib.h>
#include <sys/stat.h>

static int parse_pair(struct trace *t, const char *arg)
{
    const char *comma = strchr(arg, ',');
    struct conn_known *k = &t->pairs[t->n_pairs];

    if (t->n_pairs == TRACE_PAIRS)
        return cli_error("--pair %s: at most %d pairs", arg, TRACE_PAIRS);
    *k = (struct conn_known){.how = PAIR_USER, .any_psn = {true, true}};
    if (!comma || !conn_end_parse(arg, (size_t)(comma - arg), &k->addr[0], &k->qpn[0]) ||
        !conn_end_parse(comma + 1, strlen(comma + 1), &k->addr[1], &k->qpn[1]))
        return cli_error("--pair %s: expected ADDRESS:QPN,ADDRESS:QPN, such as 10.0.0.1:0x12,10.0.0.2:0x15", arg);
    t->pair_args[t->n_pairs++] = arg;
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

#define MEMORY_MIN (UINT64_C(1) << 20)
#define MEMORY_MAX (UINT64_C(1) << 40)

static int parse_memory(struct trace *t, const char *arg)
{
    const struct token size = {arg, (uint32_t)strlen(arg), 0};

    if (!token_size(&size, &t->memory) || t->memory < MEMORY_MIN || t->memory > MEMORY_MAX)
        return cli_error("--memory %s: expected a size from 1M to 1024G", arg);
    return EXIT_OK;
}

static int take_anonymize(struct trace *t, const char *key)
{
    free(t->anonymizer);
    t->anonymizer = calloc(1, sizeof *t->anonymizer);
    if (!t->anonymizer)
        return cli_error("out of memory");
    return pseudonyms_init(&t->anonymizer->names, key) < 0 ? cli_error("--anonymize: libsodium does not start")
                                                           : EXIT_OK;
}

static int take_option(const struct trace_cmd *cmd, struct trace *t, int key, const char *arg)
{
    switch (key) {
    case 'r':
        return shards_add(&t->shards, arg);
    case 'i':
        t->iface = t->ifaces_given.all;
        return cli_iface_option(&t->ifaces_given, arg);
    case 'a':
        if (cli_stop_option(arg, &t->stop) != EXIT_OK)
            return EXIT_BAD;
        return t->stop.kilobytes + t->stop.files ? cli_error("-a %s: only `decode -w` writes a file", arg) : EXIT_OK;
    case 'Y':
        t->filter_text = arg;
        return EXIT_OK;
    case 'h':
        cmd->help(&t->out);
        t->answered = true;
        return EXIT_OK;
    case 'j':
        return cli_cores_option(arg, &t->cores);
    case TRACE_KEY_PAIR:
        return parse_pair(t, arg);
    case TRACE_KEY_UDP_PORT:
        return parse_udp_port(&t->decode, arg);
    case TRACE_KEY_CONN:
        return cli_conn_option(arg, &t->conn);
    case TRACE_KEY_MEMORY:
        return parse_memory(t, arg);
    case TRACE_KEY_JOIN:
        return joins_option(&t->joins, arg);
    case TRACE_KEY_ANONYMIZE:
        return take_anonymize(t, arg);
    case TRACE_KEY_NO_ICRC:
        t->decode.verify = false;
        return EXIT_OK;
    case 'T':
        if (cmd->rows && strcmp(arg, "ndjson") == 0) {
            t->ndjson = true;
            t->lines = (struct json_lines){.rows = cmd->rows, .rest = cmd->name};
            arg = "json";
        }
        return cmd->option(t, key, arg);
    default:
        return key < 0 ? EXIT_BAD : cmd->option(t, key, arg);
    }
}

/* A file among those named. */
struct named {
    dev_t dev;
    ino_t ino;
    size_t at;
};

static int compare_named(const void *a, const void *b)
{
    const struct named *x = a, *y = b;

    if (x->dev != y->dev)
        return x->dev < y->dev ? -1 : 1;
    if (x->ino != y->ino)
        return x->ino < y->ino ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* Say which file was named more than once. */
static void tell_twice(const char **files, size_t n)
{
    struct named *named = calloc(n, sizeof *named);
    size_t found = 0;
    struct stat st;

    for (size_t i = 0; named && i < n; i++)
        if (stat(files[i], &st) == 0 && S_ISREG(st.st_mode))
            named[found++] = (struct named){st.st_dev, st.st_ino, i};
    if (found > 1)
        qsort(named, found, sizeof *named, compare_named);
    for (size_t i = 1; i < found; i++) {
        const struct named *a = &named[i - 1], *b = &named[i];
        if (a->dev == b->dev && a->ino == b->ino)
            cli_error("files %zu and %zu are the same, %s: its packets count twice, as if two taps had seen them",
                      a->at + 1, b->at + 1, files[b->at]);
    }
    free(named);
}

/* Take the options; *operand: index of the first operand, *ulp: --ulp is one of them. */
static int take_options(const struct trace_cmd *cmd, struct trace *t, int argc, char **argv, int *operand, bool *ulp)
{
    struct opt_state s;
    const char *arg;
    int key, status = EXIT_OK;

    *operand = argc;
    opt_start(&s, cmd->defs, argc, argv);
    s.foreign = cmd->foreign;
    while (status == EXIT_OK && !t->answered && (key = opt_next(&s, &arg, operand)) != 0)
        status = take_option(cmd, t, key, arg);
    if (status == EXIT_OK && !t->answered)
        status = opt_refuse(&s, cmd->clashes, cmd->cases ? cmd->cases(t) : 0);
    *ulp = opt_named_given(&s, "ulp");
    opt_end(&s);
    return status;
}

int capture_arguments(const struct trace_cmd *cmd, struct trace *t, int argc, char **argv)
{
    int operand, status;
    bool ulp;

    status = take_options(cmd, t, argc, argv, &operand, &ulp);
    while (status == EXIT_OK && operand < argc)
        status = shards_add(&t->shards, argv[operand++]);
    t->files = t->shards.files;
    t->n_files = t->shards.n;
    if (status == EXIT_OK && !t->answered && cmd->instead)
        status = cmd->instead(t);
    if (status != EXIT_OK || t->answered)
        return status;
    if (t->iface && t->n_files)
        return cli_error("%s: -i and files exclude each other", cmd->name);
    if (t->stop.seconds + t->stop.packets && !t->iface)
        return cli_error("%s: -a needs -i", cmd->name);
    if (t->iface && shards_add(&t->shards, t->iface) != EXIT_OK)
        return EXIT_BAD;
    if (!t->shards.n)
        return cli_error("%s: no capture file; name one, or - for standard input, or -i IFACE", cmd->name);
    if (!t->iface && !t->share && !cmd->compares && !t->once_more)
        tell_twice(t->files, t->n_files);
    return shards_choose(&t->shards, !cmd->digests || t->filter_text || ulp);
}

int capture_options(const struct trace_cmd *cmd, int argc, char **argv, bool *answered)
{
    struct trace *t = trace_new(cmd);
    struct filter *filter = NULL;
    int operand, status;
    bool ulp;

    *answered = false;
    if (!t)
        return cli_error("out of memory");
    status = take_options(cmd, t, argc, argv, &operand, &ulp);
    *answered = t->answered;
    if (t->answered)
        status = cli_show(&t->out);
    else if (status == EXIT_OK && (operand < argc || t->shards.n || t->iface))
        status = cli_error("%s: %s: files are named before the options of the command", cmd->name,
                           operand < argc ? argv[operand]
                           : t->iface     ? "-i"
                                          : t->shards.files[0]);
    else if (status == EXIT_OK && t->filter_text)
        status = cli_filter(&filter, t->filter_text);
    filter_free(filter);
    shards_free(&t->shards);
    free(t->anonymizer);
    free(t);
    return status;
}
