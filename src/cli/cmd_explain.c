/* layer 4 (tool): `rdmatrace explain`: what went wrong, in plain words. */
#include "beside.h"
#include "bitset.h"
#include "dissect/pkt.h"
#include "room.h"
#include "src/cli/annotate.h"
#include "src/cli/capture_cmd.h"
#include "src/cli/cli.h"
#include "src/cli/found.h"
#include "src/cli/when.h"
#include "src/commands/delays.h"
#include "src/complaint/complaint.h"
#include "src/explain/explain.h"
#include "src/measure/meter.h"
#include "src/measure/request_parts.h"
#include "src/show/print.h"

#include <stdlib.h>
#include <string.h>

enum {
    KEY_CAUSES = 256,
    KEY_ANNOTATE,
    KEY_ALL,
    KEY_TOP,
    KEY_SINCE,
    KEY_UNTIL,
    KEY_SORT,
    KEY_NCCL_LOG,
    KEY_ULP,
};

#define COLUMNS_MIN 40

static const struct opt_def defs[] = {
    TRACE_OPTIONS,
    TRACE_CORES,
    {'Y', "display-filter", "FILTER", "only connections with a packet that matches this display filter"},
    {KEY_SINCE, "since", "TIME", "only what lasts until TIME, written as -t prints it"},
    {KEY_UNTIL, "until", "TIME", "only what begins before TIME"},
    {KEY_TOP, "top", "N", "N statements (JSON: incidents); else as many as fit two screens (JSON: all)"},
    {KEY_ALL, "all", NULL, "each incident; else those that are alike are one statement"},
    {'v', "verbose", NULL, "the table names all kinds of incidents, not only the six that cost most"},
    {KEY_SORT, "sort", "BY", "time (default): what cost most first; count: what happened most often"},
    WHEN_FORMAT_OPTION,
    COLOR_OPTION,
    {KEY_NCCL_LOG, "nccl-log", "FILE",
     "only connections that a message of NCCL, UCX or perftest in FILE complains of;\n- is standard input"},
    {KEY_ULP, "ulp", "END=PROTOCOL", ULP_HELP},
    {KEY_CAUSES, "causes", NULL, "list the causes"},
    ANNOTATE_OPTION(KEY_ANNOTATE, "incidents"),
    {'T', "format", "FORMAT", "text (default), json or ndjson"},
    TRACE_OPTIONS_END,
};

void cmd_explain_help(struct buf *b)
{
    buf_puts(
        b,
        "Usage: rdmatrace explain [options] FILE...\n\n"
        "Say what went wrong in captures, worst first: which packets were lost and where, who stopped answering, what\n"
        "the recovery cost, and what to look at next.\n\n");
    opt_help(b, defs);
    buf_puts(b, "\nExit status: 0, 2 for usage or input that cannot be read.\n");
}

struct job {
    struct trace t;
    struct explainer *explainer;
    struct delays *delays; /* commands of upper protocols */
    struct delays_opts delays_opts;
    const char *annotate; /* --annotate; NULL: not given */
    struct meter *meter;  /* for the work requests in JSON; NULL in text */
    struct request_parts *parts;
    FILE *requests; /* temporary file: the JSON objects of completed work requests */
    struct buf row;
    enum { FORMAT_TEXT, FORMAT_JSON } format;
    enum { SORT_TIME, SORT_COUNT } sort;
    struct explain_opts o;
    struct when since, until;
    enum print_time time;
    const char *log;               /* --nccl-log; NULL: not given */
    struct complaints *complaints; /* error messages of the log */
    bool begun, match;     /* begun: a frame was read; match: the packet that the observer gets next passes -Y */
    ns_t first;            /* time of the first frame */
    struct bitset matches; /* -Y: connections, by number */
    bool passes;           /* -Y: there is one */
};

static struct job *job_of(struct trace *t)
{
    return (struct job *)t;
}

static const char *const formats[] = {"text", "json", "ndjson", NULL}, *const sorts[] = {"time", "count", NULL};

static void init(struct trace *t)
{
    job_of(t)->time = TIME_ABSOLUTE_DATE;
    cli_color("auto", &job_of(t)->o.color);
}

static int option(struct trace *t, int key, const char *arg)
{
    struct job *job = job_of(t);
    uint64_t n;

    switch (key) {
    case 'T':
        return opt_choice("-T", arg, formats, &job->format);
    case KEY_ANNOTATE:
        job->annotate = arg;
        return EXIT_OK;
    case KEY_ALL:
        job->o.all = true;
        return EXIT_OK;
    case 'v':
        job->o.verbose = true;
        return EXIT_OK;
    case KEY_TOP:
        return opt_number(arg, 1, 100000, &n) ? (job->o.top = (uint32_t)n, EXIT_OK)
                                              : cli_error("--top %s: expected a number from 1 to 100000", arg);
    case KEY_SORT:
        return opt_choice("--sort", arg, sorts, &job->sort);
    case KEY_SINCE:
        return when_option("--since", arg, &job->since);
    case KEY_UNTIL:
        return when_option("--until", arg, &job->until);
    case KEY_NCCL_LOG:
        job->log = arg;
        return EXIT_OK;
    case KEY_ULP:
        return ulp_option(&job->delays_opts.users, arg);
    case 't':
        return when_format(arg, &job->time);
    case KEY_COLOR:
        return cli_color(arg, &job->o.color);
    default: /* KEY_CAUSES */
        explain_causes(&t->out);
        t->answered = true;
        return EXIT_OK;
    }
}

static void on_work_packet(void *user, const struct wqe *w, const struct pkt *p, uint32_t flow)
{
    const struct job *job = user;

    request_parts_packet(job->parts, w, p, flow);
}

/* A work request is complete: write its account. */
static void on_over(void *user, const struct wqe *w, uint32_t flow)
{
    struct job *job = user;
    const struct meter_row *m = meter_row_of(job->meter, flow);
    struct request_account r = {.conn = (uint32_t)m->conn, .number = w->id, .start = w->start};
    struct buf tap = {0}, from = {0};
    bool known;

    r.end = request_account_over(job->parts, job->meter, w, flow, r.states, &known);
    if (!r.conn || (job->t.conn && job->t.conn != r.conn))
        return;
    conn_tap_put(&tap, job->t.files, (uint32_t)(m->file << 16 | m->iface));
    conn_end_put(&from, &m->src, m->sqpn != METER_NONE, (uint32_t)m->sqpn);
    r.tap = buf_str(&tap);
    r.from = buf_str(&from);
    job->row.len = 0;
    buf_puts(&job->row, ftello(job->requests) ? ",\n" : "\n");
    request_account_json(&job->row, &r);
    fwrite(job->row.p, 1, job->row.len, job->requests);
    buf_free(&tap);
    buf_free(&from);
}

/* Subscribe to the work requests. Their JSON is kept in a temporary file until the end, as there may be any number of
 * them. */
static int subscribe_requests(struct job *job)
{
    const struct meter_opts o = {.work = {job, on_work_packet, on_over}, .no_latency = true};
    struct timeline *t = timeline_of(job->t.observer);

    job->parts = t ? request_parts_new(t) : NULL;
    if (!job->parts)
        return cli_error("out of memory");
    job->requests = beside_nameless();
    if (!job->requests)
        return cli_error("cannot keep the work requests: no temporary file");
    job->meter = meter_new(job->t.observer, &o);
    return job->meter ? EXIT_OK : cli_error("out of memory");
}

/* --- Selection of incidents ------------------------------------------------------------------- */

/* -Y: remember the connections of packets that pass. */
static void on_event(void *user, const struct event *e)
{
    struct job *job = user;
    uint32_t conn = e->own == FLOW_NONE ? 0 : conn_flow_at(observer_conns(job->t.observer), e->own)->conn;

    if (job->match && conn) {
        bitset_add(&job->matches, conn);
        job->passes = true;
    }
}

/* Whether a message may be about an incident. One of several connections may have one address, or none. */
static bool is_complained_of(const struct complaint *c, const struct incident *i)
{
    static const struct conn_addr none;
    bool src = !conn_addr_eq(&i->src, &none), dst = !conn_addr_eq(&i->dst, &none);

    if (complaint_matches(c, &i->src, &i->dst))
        return !i->conn || complaint_is_about(c, i->qpn);
    if (i->conn || (src && dst))
        return false;
    return (!src && !dst) || complaint_names(c, src ? &i->src : &i->dst);
}

static bool is_in_log(const struct job *job, const struct incident *i)
{
    for (uint32_t k = 0; k < job->complaints->n; k++)
        if (is_complained_of(&job->complaints->of[k], i))
            return true;
    return false;
}

static bool is_wanted(void *user, const struct incident *i)
{
    const struct job *job = user;
    bool matches = !job->t.filter || !i->conn || bitset_has(&job->matches, i->conn);

    return matches && (!job->complaints || is_in_log(job, i));
}

/* Read the messages of --nccl-log: they are printed first, and select the incidents shown. */
static int read_log(struct job *job)
{
    int r;

    job->complaints = calloc(1, sizeof *job->complaints);
    if (!job->complaints)
        return cli_error("out of memory");
    r = complaint_read(job->log, job->complaints);
    if (r < 0)
        return cli_error("%s: %s", job->log, strerror(-r));
    if (!job->complaints->n)
        return cli_error("%s: no message of NCCL, UCX or perftest about a completion with error in %s", job->log,
                         count_str(job->complaints->line, "line"));
    return EXIT_OK;
}

/* Whether a connection is selected: by -Y, or because of an incident that the log is about. */
static bool is_conn_wanted(void *user, uint32_t conn)
{
    const struct job *job = user;
    bool wanted = !job->complaints;

    for (size_t i = 0; !wanted && i < explain_n(job->explainer); i++) {
        const struct incident *at = explain_at(job->explainer, i);
        wanted = at->conn == conn && is_in_log(job, at);
    }
    return wanted && (!job->t.filter || bitset_has(&job->matches, conn));
}

static void put_commands(void *user, struct buf *b)
{
    const struct job *job = user;

    delays_text(job->delays, &job->o, b);
}

static void put_time(void *user, struct buf *b, ns_t t)
{
    const struct job *job = user;

    when_put(b, t, job->first, job->time);
}

static void flush(void *user, struct buf *b)
{
    struct job *job = user;

    (void)b; /* job->t.out */
    trace_flush(&job->t);
}

static void packet(struct trace *t, struct pkt *p, bool match)
{
    struct job *job = job_of(t);

    job->match = match;
    if (job->begun)
        return;
    job->begun = true;
    job->first = p->frame->ts;
    job->o.since = job->since.kind ? when_resolve(&job->since, job->first) : 0;
    job->o.until = job->until.kind ? when_resolve(&job->until, job->first) : 0;
}

/* Fill the options of the output, at the end when all is known. */
static void set_print_options(struct job *job)
{
    struct explain_opts *o = &job->o;
    struct terminal w = terminal_size();

    o->conn = job->t.conn;
    o->files = job->t.files;
    o->n_files = job->t.n_files;
    o->unread = job->t.unread;
    o->once = job->t.iface || strcmp(job->t.files[0], "-") == 0;
    o->user = job;
    o->put_time = put_time;
    o->flush = flush;
    o->by_count = job->sort == SORT_COUNT;
    o->wanted = is_wanted;
    o->none_passes = job->t.filter && !job->passes;
    o->more = put_commands;
    o->columns = w.columns && w.columns < COLUMNS_MIN ? COLUMNS_MIN : w.columns;
    o->rows = w.rows;
}

static int start(struct trace *t)
{
    struct job *job = job_of(t);
    const struct observer_sub s = {.user = job, .before = on_event};

    if (job->log && read_log(job) != EXIT_OK)
        return EXIT_BAD;
    if (t->filter && !observer_subscribe(t->observer, &s))
        return cli_error("out of memory");
    if (job->annotate && !annotate_possible(job->annotate, t->files, t->n_files))
        return EXIT_BAD;
    job->explainer = explain_new(t->observer);
    if (!job->explainer || (t->n_files > 1 && !explain_align(job->explainer)))
        return cli_error("out of memory");
    job->delays_opts.conn = t->conn;
    job->delays_opts.since = &job->o.since;
    job->delays_opts.until = &job->o.until;
    job->delays_opts.user = job;
    job->delays_opts.wanted = job->log || t->filter ? is_conn_wanted : NULL;
    job->delays = delays_new(t->observer, job->explainer, &job->delays_opts);
    if (!job->delays)
        return cli_error("out of memory");
    return job->format == FORMAT_JSON ? subscribe_requests(job) : EXIT_OK;
}

/* Append the member `requests` in place of the closing brace of the object. */
static int put_requests(struct job *job)
{
    struct buf *b = &job->t.out;
    char part[65536];
    size_t n;

    meter_end(job->meter);
    b->len -= strlen("}\n");
    buf_char(b, ',');
    delays_json(job->delays, b);
    buf_puts(b, ",\"requests\":[");
    rewind(job->requests);
    while ((n = fread(part, 1, sizeof part, job->requests)) > 0) {
        buf_mem(b, part, n);
        trace_flush(&job->t);
    }
    buf_puts(b, "]}\n");
    return ferror(job->requests) ? cli_error("the work requests could not be kept: the temporary file is full")
                                 : EXIT_OK;
}

/* The comment of an incident: "incident 2, packet-loss: SEND Middle with PSN ...". */
static void comment(void *user, const struct pkt_mark *mark, struct buf *b)
{
    buf_printf(b, "rdmatrace explain: incident %u, %s: ", mark->number, mark->cause);
    explain_text_of(explain_at(user, mark->number - 1), b);
}

static int annotate(const struct job *job)
{
    struct marks m = {0};
    int status;

    found_incidents(&m, job->explainer, job->t.conn);
    marks_sort(&m);
    status = annotate_files(job->annotate, job->t.files, job->t.n_files, &m, comment, job->explainer);
    marks_free(&m);
    return status;
}

/* Whether the captures have packets between the two ends that a complaint names. */
static bool is_captured(const struct job *job, const struct complaint *c)
{
    struct conn_table *conns = observer_conns(job->t.observer);

    for (uint32_t i = 0; i < conn_counts(conns).flows; i++) {
        const struct flow *f = conn_flow_at(conns, i);
        if (complaint_matches(c, &f->src, &f->dst))
            return true;
    }
    return false;
}

static void put_complaints(struct job *job)
{
    for (uint32_t i = 0; job->complaints && i < job->complaints->n; i++) {
        const struct complaint *c = &job->complaints->of[i];
        complaint_put(&job->t.out, c);
        buf_char(&job->t.out, '\n');
        if (!is_captured(job, c))
            buf_puts(&job->t.out, "No packet between these two was captured: the capture cannot tell of that.\n");
    }
}

static int end(struct trace *t)
{
    struct job *job = job_of(t);

    if (job->since.kind && job->until.kind && job->o.since > job->o.until)
        return cli_error("--since is later than --until: no time lies between them");
    set_print_options(job);
    explain_end(job->explainer);
    delays_end(job->delays);
    if (job->format == FORMAT_TEXT)
        put_complaints(job);
    (job->format == FORMAT_JSON ? explain_json : explain_text)(job->explainer, &job->o, &t->out);
    if (job->format == FORMAT_JSON && put_requests(job) != EXIT_OK)
        return EXIT_BAD;
    return job->annotate ? annotate(job) : EXIT_OK;
}

static void drops(struct trace *t, uint16_t file, uint64_t n)
{
    explain_drops(job_of(t)->explainer, file, n);
}

static void stop(struct trace *t)
{
    struct job *job = job_of(t);

    delays_free(job->delays);
    explain_free(job->explainer);
    meter_free(job->meter);
    request_parts_free(job->parts);
    buf_free(&job->row);
    bitset_free(&job->matches);
    free(job->complaints);
    if (job->requests)
        fclose(job->requests);
}

TRACE_CMD(explain, .digests = true, .per_flow = ROOM_EXPLAINED, .rows = "incident", .init = init, .option = option,
          .packet = packet, .drops = drops, .filter_shows = true, .stop = stop)
