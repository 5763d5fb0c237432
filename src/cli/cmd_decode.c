/* layer 4 (tool): `rdmatrace decode`: its options. */
#include "src/cli/cli.h"
#include "src/cli/decode.h"

#include "src/cap/live.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    KEY_UDP_PORT = 256,
    KEY_RD,
    KEY_DC,
    KEY_NO_CONTEXT,
    KEY_NO_VERIFY,
    KEY_FAIL_ON,
    KEY_CONN,
    KEY_ANONYMIZE,
    KEY_ULP,
    KEY_XDP,
    KEY_MIRROR_PORT,
};

static const struct opt_def defs[] = {
    {'r', "read-file", "FILE", "read FILE; the same as naming it as an operand; - is standard input"},
    {'i', "interface", "IFACE", "capture live from IFACE; may be repeated"},
    {'D', "list-interfaces", NULL, "list the interfaces that -i takes"},
    {'f', "capture-filter", "EXPR", "keep only frames that match this capture filter (pcap-filter(7))"},
    {'s', "snapshot-length", "N", "with -i: capture at most N bytes of a frame"},
    {'B', "buffer-size", "MIB", "with -i: size of the kernel's buffer in MiB (16)"},
    {'a', "autostop", "WHEN",
     "with -i: stop after duration:SECONDS or packets:N; with -w: filesize:KB, with -b: files:N"},
    {'b', "ring-buffer", "WHEN",
     "with -i and -w: write a further file after filesize:KB, duration:SECONDS or packets:N; keep the\n"
     "latest files:N; may be repeated"},
    {'p', "no-promiscuous-mode", NULL, "with -i: do not switch IFACE to promiscuous mode"},
    {KEY_XDP, "xdp", "[=WORDS]",
     "with -i and --mirror-port: take the received frames from the driver by AF_XDP; WORDS: numbers of\n"
     "queues (all), copy (no zero copy), busy (poll the driver), skb (not in the driver)"},
    {KEY_MIRROR_PORT, "mirror-port", NULL,
     "with --xdp: IFACE receives copies only, from a switch, which its own host need not get"},
    {'Y', "display-filter", "FILTER", "show only packets that match this display filter (rdmatrace-filter(7))"},
    {KEY_CONN, "conn", "N", CONN_HELP},
    {'c', "count", "N", "stop after N frames"},
    {'w', "write", "FILE",
     "write the packets shown to FILE: pcapng, or pcap if FILE ends in .pcap;\n"
     "with - to standard output, which then shows nothing else"},
    {KEY_ANONYMIZE, "anonymize", "[=KEY]",
     "with -w: replace addresses and names, alike with the same KEY, and the payload by zeros"},
    {'T', "format", "FORMAT", "text (default), tree, json, ndjson or fields"},
    {'e', "field", "FIELD", "with -T fields: a column; may be repeated"},
    {'E', "field-option", "KEY=VALUE",
     "with -T fields: header=y|n, separator=CHAR|/t|/s, occurrence=f|l|a,\n"
     "aggregator=CHAR|/s, quote=d|s|n"},
    {'G', "glossary", "WHAT", "list what rdmatrace knows: fields"},
    {'V', "details", NULL, "show every field of every packet"},
    {'O', "only-protocols", "PROTOCOLS",
     "show the fields of these protocols (names in filters, separated by commas), of others the heading"},
    {'P', "print", NULL, "with -V or -O: show the line of every packet as well"},
    {'x', "hex", NULL, "show the bytes of every packet as well"},
    {'t', "time", "FORMAT",
     "r since the first frame (default), d since the frame before, dd since the frame\n"
     "shown before, e epoch, a or ad local time, u or ud UTC"},
    {'n', "no-names", NULL, "do not look up names (never done: accepted for tshark's sake)"},
    {'l', "line-buffered", NULL, "write the output of each packet at once, as a live capture always does"},
    {'j', "cores", "N", CORES_HELP},
    {'q', "quiet", NULL, "decode and verify, print only a summary"},
    {KEY_UDP_PORT, "udp-port", "PORT", "a further UDP destination port of RoCEv2; may be repeated"},
    {KEY_RD, "rd", NULL, "read opcodes 0x40-0x5f as reliable datagram"},
    {KEY_DC, "dc", NULL, "read opcodes 0x40-0x5f as dynamically connected"},
    {KEY_ULP, "ulp", "END=PROTOCOL", ULP_HELP},
    {KEY_NO_CONTEXT, "no-context", NULL, "look at each packet alone"},
    {KEY_NO_VERIFY, "no-verify", NULL, "do not calculate ICRC and VCRC"},
    {KEY_FAIL_ON, "fail-on", "WHAT", "exit with status 1 if a packet is bad-icrc or malformed; may be repeated"},
    COLOR_OPTION,
    {'h', "help", NULL, "show this help"},
    {0, NULL, NULL, NULL},
};

/* Options of tshark, and what does the same here. */
static const struct opt_foreign foreign[] = {
    {'o', NULL, "tshark",
     "there are no preferences; --udp-port, --rd, --dc and --no-verify choose how packets are read"},
    {'z', NULL, "tshark", "`rdmatrace flows`, `rdmatrace ops` and `rdmatrace decode -q` have the statistics"},
    {'d', NULL, "tshark", "--udp-port PORT reads a further UDP port as RoCEv2"},
    {'2', NULL, "tshark", "-Y reads the files twice by itself where a field needs that (rdma.finding, rdma.cause)"},
    {'R', NULL, "tshark", "-Y filters"},
    {'F', NULL, "tshark", "-w FILE.pcap writes pcap, any other name pcapng"},
    {'N', NULL, "tshark", "names are never looked up: leave it out"},
    {'J', NULL, "tshark", "-T json has all protocols; `-T fields -e FIELD` chooses"},
    {'Q', NULL, "tshark", "-q prints a summary only"},
    {0, NULL, NULL, NULL, NULL},
};

void cmd_decode_help(struct buf *b)
{
    buf_puts(b, "Usage: rdmatrace decode [options] FILE...\n\n"
                "Show the packets of captures (pcap, pcapng or ERF; plain, gzip or zstd). Several files are merged by "
                "time.\n\n");
    opt_help(b, defs);
    buf_puts(b, "\nExit status: 0, 1 if --fail-on found something, 2 for usage or input that cannot be read.\n");
}

/* Parse a separator or aggregator: one character, /t or /s; -1: neither. */
static int parse_char(const char *v)
{
    if (strcmp(v, "/t") == 0)
        return '\t';
    if (strcmp(v, "/s") == 0)
        return ' ';
    return v[0] && !v[1] ? (unsigned char)v[0] : -1;
}

static int parse_field_option(struct print_opts *o, const char *arg)
{
    const char *v = strchr(arg, '=');
    size_t n = v ? (size_t)(v++ - arg) : 0;
    int c = v ? parse_char(v) : -1;

    if (n == 6 && memcmp(arg, "header", n) == 0 && (c == 'y' || c == 'n'))
        o->header = c == 'y';
    else if (n == 9 && memcmp(arg, "separator", n) == 0 && c >= 0)
        o->separator = (char)c;
    else if (n == 10 && memcmp(arg, "aggregator", n) == 0 && c >= 0)
        o->aggregator = (char)c;
    else if (n == 10 && memcmp(arg, "occurrence", n) == 0 && (c == 'f' || c == 'l' || c == 'a'))
        o->occurrence = (char)c;
    else if (n == 5 && memcmp(arg, "quote", n) == 0 && (c == 'd' || c == 's' || c == 'n'))
        o->quote = c == 'd' ? '"' : c == 's' ? '\'' : 0;
    else
        return cli_error("-E %s: expected header=y|n, separator=C, occurrence=f|l|a, aggregator=C or quote=d|s|n", arg);
    return 0;
}

/* A message about a name that does not exist. */
static int unknown_name(const char *option, const char *name, size_t n, const char *what)
{
    return cli_error("%s %.*s: no such %s%s", option, n < 80 ? (int)n : 80, name, what, field_unknown(name, n));
}

static int parse_column(struct print_opts *o, const char *name)
{
    struct print_column *c;

    if (o->n_columns == DECODE_COLUMNS_MAX)
        return cli_error("-e %s: more than %d columns", name, DECODE_COLUMNS_MAX);
    c = &o->columns[o->n_columns];
    c->name = name;
    c->n_refs = field_find(name, strlen(name), c->refs, PRINT_REFS);
    if (!c->n_refs)
        return unknown_name("-e", name, strlen(name), "field");
    o->n_columns++;
    return 0;
}

static int parse_number(const char *option, const char *arg, uint64_t min, uint64_t max, uint64_t *v)
{
    if (opt_number(arg, min, max, v))
        return 0;
    return cli_error("%s %s: expected a number from %llu to %llu", option, arg, (unsigned long long)min,
                     (unsigned long long)max);
}

static int parse_udp_port(struct decode_opts *o, const char *arg)
{
    uint64_t v;
    int r = parse_number("--udp-port", arg, 1, 65535, &v);

    if (r == 0 && o->n_udp_ports == ARRAY_LEN(o->udp_ports))
        return cli_error("--udp-port %s: at most %zu ports", arg, ARRAY_LEN(o->udp_ports));
    if (r == 0)
        o->udp_ports[o->n_udp_ports++] = (uint16_t)v;
    return r;
}

static int parse_fail_on(struct decode_job *job, const char *arg)
{
    if (strcmp(arg, "bad-icrc") == 0)
        job->fail_bad_icrc = true;
    else if (strcmp(arg, "malformed") == 0)
        job->fail_malformed = true;
    else
        return cli_error("--fail-on %s: expected bad-icrc or malformed", arg);
    return 0;
}

static int list_fields(const char *what)
{
    struct buf b = {0};

    if (strcmp(what, "fields") != 0)
        return cli_error("-G %s: expected fields", what);
    for (const struct hdr *const *h = all_headers; *h; h++) {
        buf_printf(&b, "P\t%s\t%s\t%s\n", (*h)->name, (*h)->abbrev, ftype_str((*h)->type));
        for (unsigned i = 0; i < (*h)->nfields; i++) {
            const struct field *f = &(*h)->fields[i];
            buf_printf(&b, "F\t%s\t%s\t%s\t%s\t%s\n", f->label, f->abbrev, ftype_str(f->type), (*h)->abbrev, f->blurb);
        }
    }
    return cli_show(&b);
}

static int list_interfaces(void)
{
    struct cap_error err;
    struct buf b = {0};

    if (cap_live_list(&b, &err) < 0)
        return cli_cap_error(&err);
    return cli_show(&b);
}

/* Check the names of -O: each is that of a protocol or a header. */
static int parse_protocols(struct print_opts *o, const char *arg)
{
    for (const char *s = arg; s; s = strchr(s, ',') ? strchr(s, ',') + 1 : NULL) {
        size_t n = strcspn(s, ",");
        bool known = false;
        for (const struct hdr *const *h = all_headers; *h && !known; h++)
            known = (strlen((*h)->proto) == n && memcmp(s, (*h)->proto, n) == 0) ||
                    (strlen((*h)->abbrev) == n && memcmp(s, (*h)->abbrev, n) == 0);
        if (!known)
            return unknown_name("-O", s, n, "protocol");
    }
    o->protocols = arg;
    o->tree = true;
    return 0;
}

/* Parse the argument of -b. */
static int parse_rotation(struct rotation *r, const char *arg)
{
    const struct limit limits[] = {{"filesize:", UINT32_MAX, &r->kilobytes},
                                   {"duration:", UINT32_MAX, &r->seconds},
                                   {"packets:", UINT64_MAX, &r->packets},
                                   {"files:", ROTATE_FILES_MAX, &r->files}};

    if (limit_take(limits, ARRAY_LEN(limits), arg))
        return EXIT_OK;
    return cli_error("-b %s: expected filesize:KB, duration:SECONDS, packets:N or files:N", arg);
}

/* Options of live captures. Returns 0, or the exit status of an error. */
static int parse_live(struct decode_job *job, int key, const char *arg)
{
    uint64_t v = 0;

    switch (key) {
    case 'i':
        return cli_iface_option(&job->ifaces, arg);
    case 'f':
        job->capture_filter = arg;
        break;
    case 'p':
        job->no_promisc = true;
        break;
    case KEY_XDP:
        job->xdp = arg ? arg : "";
        break;
    case KEY_MIRROR_PORT:
        job->mirror_port = true;
        break;
    case 'a':
        return cli_stop_option(arg, &job->stop);
    case 'b':
        return parse_rotation(&job->rotation, arg);
    case 'B':
        if (!opt_number(arg, 1, INT32_MAX >> 20, &v))
            return cli_error("-B %s: expected MiB, from 1 to %d, as tshark has it (earlier versions took KiB)", arg,
                             INT32_MAX >> 20);
        job->buffer = (uint32_t)v << 20;
        break;
    default:
        break; /* -n */
    }
    return 0;
}

/* Options that only set a value. Returns 0, or the exit status of an error. */
static int parse_simple(struct decode_job *job, int key, const char *arg)
{
    uint64_t v = 0;
    int r = 0;

    switch (key) {
    case 'r':
        job->files[job->n_files++] = arg;
        break;
    case 'Y':
        job->display_filter = arg;
        break;
    case 'w':
        job->write = arg;
        break;
    case KEY_ANONYMIZE:
        job->anonymize = true;
        job->anonymize_key = arg;
        break;
    case 's':
        r = parse_number("-s", arg, 1, FRAME_MAX, &v);
        job->snaplen = (uint32_t)v;
        break;
    case 'c':
        r = parse_number("-c", arg, 1, UINT64_MAX, &v);
        job->count = v;
        break;
    case 'j':
        return cli_cores_option(arg, &job->cores);
    case 'q':
        job->quiet = true;
        break;
    case 'l':
        job->line_buffered = true;
        break;
    case KEY_UDP_PORT:
        return parse_udp_port(&job->decode, arg);
    case KEY_RD:
    case KEY_DC:
        job->decode.rd_or_dc = key == KEY_RD ? RD_OR_DC_RD : RD_OR_DC_DC;
        break;
    case KEY_NO_CONTEXT:
        job->no_context = true;
        break;
    case KEY_ULP:
        return ulp_option(&job->ulp, arg);
    case KEY_NO_VERIFY:
        job->decode.verify = false;
        break;
    case KEY_CONN:
        return cli_conn_option(arg, &job->conn);
    case KEY_FAIL_ON:
        return parse_fail_on(job, arg);
    default:
        return parse_live(job, key, arg);
    }
    return r;
}

/* Formats of tshark, and what comes near them here. */
static int parse_format(struct print_opts *o, const char *arg)
{
    static const char *const near[][2] = {
        {"ek", "-T ndjson prints an object a line"},
        {"pdml", "-T json has every field of every packet"},
        {"psml", "-T text prints the columns of every packet"},
        {"tabs", "-T fields -e _ws.col.Protocol -e _ws.col.Info ... separates by tabs"}};

    for (unsigned i = 0; i < ARRAY_LEN(near); i++)
        if (strcmp(arg, near[i][0]) == 0)
            return cli_error("-T %s is a format of tshark; here %s", arg, near[i][1]);
    return opt_choice("-T", arg, print_formats, &o->format);
}

/* Options about what is printed. */
static int parse_print(struct decode_job *job, int key, const char *arg)
{
    struct print_opts *o = &job->print;

    switch (key) {
    case 'T':
        return parse_format(o, arg);
    case 'e':
        return parse_column(o, arg);
    case 'E':
        return parse_field_option(o, arg);
    case 't':
        return opt_choice("-t", arg, print_times, &o->time);
    case 'V':
        o->tree = true;
        return 0;
    case 'O':
        return parse_protocols(o, arg);
    case 'P':
        o->line = true;
        return 0;
    case 'x':
        o->hex = true;
        return 0;
    case KEY_COLOR:
        return cli_color(arg, &o->color);
    default:
        return parse_simple(job, key, arg);
    }
}

/* Options that print something in place of packets. Returns -1 if `key` is not one of them, else the exit status. */
static int answer(int key, const char *arg)
{
    struct buf b = {0};

    switch (key) {
    case 'G':
        return list_fields(arg);
    case 'D':
        return list_interfaces();
    case 'h':
        cmd_decode_help(&b);
        return cli_show(&b);
    default:
        return -1;
    }
}

enum { NO_FIELDS = 1, ONLY_FIELDS = 2, NO_BYTES = 4 };

static const struct opt_clash clashes[] = {
    {'e', 0, NO_FIELDS, "needs -T fields"},
    {'E', 0, NO_FIELDS, "needs -T fields"},
    {'s', -'i', 0, NULL},
    {'B', -'i', 0, NULL},
    {'p', -'i', 0, NULL},
    {'a', -'i', 0, NULL},
    {'b', -'i', 0, NULL},
    {'b', -'w', 0, NULL},
    {KEY_XDP, -'i', 0, NULL},
    {KEY_MIRROR_PORT, -KEY_XDP, 0, NULL},
    {'O', 0, ONLY_FIELDS | NO_BYTES, "is for -T text and tree"},
    {'P', 0, ONLY_FIELDS | NO_BYTES, "is for -T text"},
    {'O', 'q', 0, NULL},
    {'V', 0, ONLY_FIELDS, "shows every field, -T fields those of -e"},
    {'x', 0, NO_BYTES, "is for -T text and tree"},
    {'V', 'q', 0, NULL},
    {'x', 'q', 0, NULL},
    {KEY_RD, KEY_DC, 0, NULL},
    {KEY_CONN, KEY_NO_CONTEXT, 0, NULL},
    {KEY_ULP, KEY_NO_CONTEXT, 0, NULL},
    {KEY_ANONYMIZE, -'w', 0, NULL},
    {KEY_ANONYMIZE, KEY_NO_VERIFY, 0, NULL},
    {0, 0, 0, NULL},
};

static unsigned cases(const struct decode_job *job)
{
    enum print_format f = job->print.format;

    return (f == PRINT_FIELDS ? ONLY_FIELDS : NO_FIELDS) | (f > PRINT_TREE ? NO_BYTES : 0);
}

/* Refuse options that contradict each other. */
static int check_job(const struct decode_job *job)
{
    if (!job->n_files && !job->ifaces.n)
        return cli_error("decode: no capture file; name one, or - for standard input, or -i IFACE");
    if (job->n_files && job->ifaces.n)
        return cli_error("decode: -i and files exclude each other");
    if (job->xdp && !job->mirror_port)
        return cli_error("decode: --xdp takes every received frame away from the kernel, so that this host loses its "
                         "network, and does not see what it sends; if IFACE is a mirror port, add --mirror-port");
    if (job->stop.kilobytes && !job->write)
        return cli_error("decode: -a filesize needs -w");
    if (job->rotation.files && !rotation_limited(&job->rotation))
        return cli_error("decode: -b files needs another -b, filesize, duration or packets: when a file ends");
    if (rotation_limited(&job->rotation) && strcmp(job->write, "-") == 0)
        return cli_error("decode: -b writes files, -w - none");
    if (job->stop.files && !rotation_limited(&job->rotation))
        return cli_error("decode: -a files needs -b");
    if (job->fail_bad_icrc && !job->decode.verify)
        return cli_error("decode: --fail-on bad-icrc and --no-verify exclude each other");
    if (!job->print.n_columns && job->print.format == PRINT_FIELDS)
        return cli_error("decode: -T fields needs at least one -e FIELD");
    return 0;
}

static void job_free(struct decode_job *job)
{
    free(job->files);
    free(job->print.columns);
}

int cmd_decode(int argc, char **argv)
{
    struct decode_job job = {
        .files = calloc((size_t)argc + 1, sizeof *job.files),
        .decode.verify = true,
        .buffer = CLI_LIVE_BUFFER,
        .print = {.separator = '\t',
                  .aggregator = ',',
                  .occurrence = 'a',
                  .columns = calloc(DECODE_COLUMNS_MAX, sizeof *job.print.columns)},
    };
    struct opt_state s;
    const char *arg;
    int key, operand, status = -1;

    if (!job.files || !job.print.columns)
        return cli_error("out of memory");
    cli_color("auto", &job.print.color);
    job.print.ascii = !cli_utf8();
    opt_start(&s, defs, argc, argv);
    s.foreign = foreign;
    while (status < 0 && (key = opt_next(&s, &arg, &operand)) != 0) {
        status = key < 0 ? EXIT_BAD : answer(key, arg);
        if (status < 0 && parse_print(&job, key, arg) != 0)
            status = EXIT_BAD;
    }
    if (status < 0 && opt_refuse(&s, clashes, cases(&job)) != 0)
        status = EXIT_BAD;
    if (status < 0) {
        while (operand < argc)
            job.files[job.n_files++] = argv[operand++];
        status = check_job(&job);
        job.count = job.count && (!job.stop.packets || job.count < job.stop.packets) ? job.count : job.stop.packets;
        if (status == 0)
            status = decode_run(&job);
    }
    opt_end(&s);
    job_free(&job);
    return status;
}
