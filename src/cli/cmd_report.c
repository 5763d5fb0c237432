/* layer 4 (tool): `rdmatrace report`: what check, explain, flows and ops say, and figures, as one HTML page. */
#include "beside.h"
#include "dissect/pkt.h"
#include "src/analyses/analyses.h"
#include "src/cap/merge.h"
#include "src/cli/capture_cmd.h"
#include "src/cli/cli.h"
#include "src/cli/found.h"
#include "src/measure/columns.h"
#include "src/report/report.h"
#include "stored_card.h"
#include "tokens.h"

#include <errno.h>
#include <stdlib.h>

enum { KEY_BASELINE = 256, KEY_FROM, KEY_TUTORIAL, KEY_LINK, KEY_DETAIL };

#define JSON_BLANKS " \t\r\n"
#define STORED_MAX  (UINT32_C(64) << 20) /* bytes of stored results */
#define FROM_MAX    16                   /* files of --from */

static const struct opt_def defs[] = {
    TRACE_OPTIONS_FILES,
    TRACE_CORES,
    {KEY_BASELINE, "baseline", "OTHER", "put the results of another capture beside those of FILE"},
    {KEY_FROM, "from", "RESULTS",
     "without captures: the page of what explain, all or `rdmagen conformance` printed with -T json to a file; score "
     "cards "
     "of conformance are put beside each other (repeatable)"},
    {KEY_LINK, "link-rate", "RATE",
     "rate of the link, such as 100G: the line in the figures of rates; else what the captures state of their "
     "interfaces"},
    {KEY_DETAIL, "detail", "N",
     "draw N times as many points, and N times as many packets around each incident: 1 to 100 (1); the page grows "
     "accordingly"},
    {KEY_TUTORIAL, "tutorial", NULL,
     "without captures: the page of rdma-on-the-wire(7), what verbs become on the wire"},
    {'o', "output", "FILE", "write the page to FILE; what it held before is replaced; - is standard output"},
    TRACE_ANONYMIZE,
    TRACE_OPTIONS_END,
};

static const struct opt_foreign foreign[] = {
    {'i', "interface", "other commands",
     "the packets are read twice; save them first: rdmatrace decode -i IFACE -w FILE", NULL},
    {0, NULL, NULL, NULL, NULL},
};

void cmd_report_help(struct buf *b)
{
    buf_puts(b, "Usage: rdmatrace report -o FILE.html [options] FILE...\n\n"
                "Write one HTML page with what check, explain, flows and ops find, and with figures: PSNs, rates,\n"
                "latencies, congestion, requests, and a ladder of each incident. The page needs no network, no server\n"
                "and no other file. The captures are read twice.\n\n");
    opt_help(b, defs);
    buf_puts(b, "\nExit status: 0, 2 for usage or input that cannot be read; also if the page was not written.\n");
}

/* --- The first reading ------------------------------------------------------------------------ */

struct pass {
    struct trace t; /* first */
    struct report *report;
    uint32_t selected; /* --conn, 0: all; not t.conn, which must exist in each of the readings */
    struct analyses found;
};

static struct pass *pass_of(struct trace *t)
{
    return (struct pass *)t;
}

static void on_command(void *user, const struct command_row *q)
{
    const struct pass *s = pass_of(user);

    if (!s->selected || q->row->conn == s->selected)
        report_command(s->report, q);
}

static int pass_start(struct trace *t)
{
    struct analyses_opts o = trace_analyses(t);

    o.command = on_command;
    o.user = t;
    if (!analyses_begin(&pass_of(t)->found, t->observer, &o))
        return cli_error("out of memory");
    t->judging = pass_of(t)->found.judge;
    return EXIT_OK;
}

static void pass_judge(struct trace *t, const struct pkt *p)
{
    analyses_packet(&pass_of(t)->found, p);
}

static void pass_drops(struct trace *t, uint16_t file, uint64_t n)
{
    analyses_drops(&pass_of(t)->found, file, n);
}

static int pass_end(struct trace *t)
{
    struct pass *s = pass_of(t);
    struct report_found f = {.explainer = s->found.explainer,
                             .findings = judge_findings(s->found.judge),
                             .ifaces = t->ifaces,
                             .unread = t->unread};

    analyses_end(&s->found);
    f.timeline = observer_timeline(t->observer);
    f.conns = observer_conns(t->observer);
    f.totals = meter_totals(s->found.meter);
    f.rows = meter_rows(s->found.meter, &f.n_rows);
    f.n_rows = rows_of_conn(f.rows, f.n_rows, s->selected);
    report_overview(s->report, &f);
    return EXIT_OK;
}

static void pass_stop(struct trace *t)
{
    analyses_free(&pass_of(t)->found);
}

/* Read files, with the options of `t`, for what does not need to be drawn; `conn`: only of this connection, 0: of all.
 */
static int first_pass(const struct trace *t, const char **files, size_t n, uint32_t conn, struct report *report)
{
    static const struct trace_cmd cmd = {.name = "report",
                                         .size = sizeof(struct pass),
                                         .start = pass_start,
                                         .judge = pass_judge,
                                         .drops = pass_drops,
                                         .end = pass_end,
                                         .stop = pass_stop};
    struct pass *s = (struct pass *)trace_new(&cmd);
    int status;

    if (!s)
        return cli_error("out of memory");
    s->report = report;
    s->selected = conn;
    s->t.memory = t->memory;
    s->t.cores = t->cores;
    s->t.joins = t->joins;
    s->t.anonymizer = t->anonymizer;
    s->t.n_pairs = t->n_pairs;
    memcpy(s->t.pairs, t->pairs, sizeof s->t.pairs);
    memcpy(s->t.pair_args, t->pair_args, sizeof s->t.pair_args);
    status = trace_first_pass(&cmd, &s->t, files, n, &t->decode);
    free(s);
    return status;
}

/* --- The command ------------------------------------------------------------------------------ */

struct job {
    struct trace t;             /* first */
    const char *path;           /* -o */
    const char *other[2];       /* --baseline; NULL: not given; and NULL */
    const char *from[FROM_MAX]; /* --from */
    unsigned n_from;
    bool tutorial;   /* --tutorial */
    unsigned detail; /* --detail; 0: not given */
    uint64_t link;   /* --link-rate, bits per second; 0: not given */
    struct report *report, *baseline;
    struct meter *meter;
};

static struct job *job_of(struct trace *t)
{
    return (struct job *)t;
}

static int take_link(struct job *job, const char *arg)
{
    const struct token rate = {arg, (uint32_t)strlen(arg), 0};

    if (!token_rate(&rate, &job->link) || !job->link)
        return cli_error("--link-rate %s: expected bits per second, such as 100G", arg);
    return EXIT_OK;
}

static int take_detail(struct job *job, const char *arg)
{
    uint64_t n;

    if (!opt_number(arg, 1, REPORT_DETAIL, &n))
        return cli_error("--detail %s: expected 1 to %d", arg, REPORT_DETAIL);
    job->detail = (unsigned)n;
    return EXIT_OK;
}

static int option(struct trace *t, int key, const char *arg)
{
    struct job *job = job_of(t);

    if (key == KEY_LINK)
        return take_link(job, arg);
    if (key == KEY_DETAIL)
        return take_detail(job, arg);
    if (key == KEY_FROM && job->n_from == FROM_MAX)
        return cli_error("--from %s: more than %d files", arg, FROM_MAX);
    if (key == KEY_TUTORIAL)
        job->tutorial = true;
    else
        *(key == 'o' ? &job->path : key == KEY_FROM ? &job->from[job->n_from++] : &job->other[0]) = arg;
    return EXIT_OK;
}

static void on_over(void *user, const struct wqe *w, uint32_t flow)
{
    struct job *job = user;
    const struct wqe_row q = {.w = w, .row = meter_row_of(job->meter, flow)};

    report_request(job->report, &q);
}

static int write_page(struct trace *t, struct buf *page)
{
    const char *path = job_of(t)->path;

    if (page->err)
        return cli_error("out of memory");
    if (strcmp(path, "-") == 0) {
        buf_mem(&t->out, page->p, page->len);
        return EXIT_OK;
    }
    if (!beside_write(path, page))
        return cli_error("%s: %s", path, strerror(errno));
    cli_written(path);
    return EXIT_OK;
}

/* --- Stored results --------------------------------------------------------------------------- */

/* Whether it is a score card of `rdmagen conformance`, with or without blanks. */
static bool is_card(struct buf *json)
{
    static const char *const begin[] = {"{", "\"schema\"", ":", "\"rdmagen-conformance/"};
    const char *p = buf_str(json);

    for (size_t i = 0; i < ARRAY_LEN(begin); i++) {
        p += strspn(p, JSON_BLANKS);
        if (strncmp(p, begin[i], strlen(begin[i])) != 0)
            return false;
        p += strlen(begin[i]);
    }
    return true;
}

/* The first character behind a string of JSON; NULL: it does not end. */
static const char *behind_string(const char *p)
{
    for (p++; *p && *p != '"'; p++)
        if (*p == '\\' && !*++p)
            return NULL;
    return *p ? p + 1 : NULL;
}

/* Whether each bracket is closed, and nothing stands behind the last one: a file that was cut off makes an empty page.
 */
static bool is_whole(struct buf *json)
{
    unsigned depth = 0;
    const char *p = buf_str(json);

    do {
        p += strcspn(p, "\"{}[]");
        if (*p == '"') {
            p = behind_string(p);
            if (!p)
                return false;
        } else if (*p) {
            depth += *p == '{' || *p == '[' ? 1u : -1u;
            p++;
        }
    } while (depth && *p);
    p += strspn(p, JSON_BLANKS);
    return depth == 0 && (size_t)(p - json->p) == json->len;
}

/* A card is held against what its page takes for granted. */
static int check_card(const char *path, struct buf *json)
{
    struct buf err = {0};
    struct json_t *card = stored_card_read(buf_str(json), json->len, &err);
    int status = card ? EXIT_OK : cli_error("%s: %s", path, buf_str(&err));

    stored_card_free(card);
    buf_free(&err);
    return status;
}

static int read_stored(const char *path, struct buf *json)
{
    FILE *f = fopen(path, "r");
    size_t n;

    if (!f)
        return cli_error("%s: %s", path, strerror(errno));
    while (json->len <= STORED_MAX && buf_need(json, 65536) && (n = fread(json->p + json->len, 1, 65536, f)) > 0)
        json->len += n;
    n = (size_t)ferror(f);
    fclose(f);
    if (n || json->err)
        return cli_error("%s: it cannot be read", path);
    if (json->len > STORED_MAX)
        return cli_error("%s: larger than %u MiB", path, STORED_MAX >> 20);
    if (!is_card(json) && (*buf_str(json) != '{' || !strstr(buf_str(json), "\"incidents\"")))
        return cli_error("%s: not what explain, all or conformance print with -T json", path);
    if (is_card(json))
        return check_card(path, json);
    return is_whole(json) ? EXIT_OK : cli_error("%s: its end is missing, or something stands behind it", path);
}

/* The page of the files of --from: score cards, or one file of results. */
static int stored_page(const struct job *job, struct buf *page)
{
    struct buf json[FROM_MAX] = {0};
    unsigned n, n_cards = 0;
    int status = EXIT_OK;

    for (n = 0; n < job->n_from && status == EXIT_OK; n++) {
        status = read_stored(job->from[n], &json[n]);
        n_cards += is_card(&json[n]);
    }
    if (status == EXIT_OK && n > 1 && n_cards < n)
        status = cli_error("report: only score cards of `rdmagen conformance` are put beside each other");
    if (status == EXIT_OK && n_cards)
        report_cards(page, json, n);
    else if (status == EXIT_OK)
        report_stored(page, json);
    while (n--)
        buf_free(&json[n]);
    return status;
}

/* With --from and --tutorial no capture is read. */
static int instead(struct trace *t)
{
    struct job *job = job_of(t);
    const char *name = job->n_from ? "--from" : "--tutorial";
    struct buf page = {0};
    int status = EXIT_OK;

    if (!job->path)
        return cli_error("report: -o FILE is needed: where to write");
    if (!job->n_from && !job->tutorial)
        return EXIT_OK;
    if (t->n_files || t->iface || job->other[0] || (job->n_from && job->tutorial))
        return cli_error("report: %s alone makes a page: it excludes captures and other results", name);
    t->answered = true;
    if (job->tutorial)
        report_tutorial(&page);
    else
        status = stored_page(job, &page);
    if (status == EXIT_OK)
        status = write_page(t, &page);
    buf_free(&page);
    return status;
}

/* Read the capture of --baseline. */
static int read_baseline(struct job *job)
{
    const struct report_opts o = {.files = job->other, .n_files = 1, .decode = job->t.decode, .detail = 1};

    if (!(job->baseline = report_new(&o)))
        return cli_error("out of memory");
    report_baseline(job->report, job->baseline);
    return first_pass(&job->t, job->other, 1, 0, job->baseline);
}

static int start(struct trace *t)
{
    struct job *job = job_of(t);
    const struct report_opts o = {.files = t->files,
                                  .n_files = t->n_files,
                                  .conn = t->conn,
                                  .decode = t->decode,
                                  .detail = job->detail ? job->detail : 1};
    struct meter_opts measured = {.files = t->files, .work = {.user = job, .over = on_over}, .tick = report_tick};

    if (beside_replaces(job->path, t->files, t->n_files))
        return cli_error("report: -o %s is one of the captures", job->path);
    if (cap_is_capture(job->path))
        return cli_error("report: -o %s is a capture, and would be replaced", job->path);
    if (!found_readable_twice("report", t->files, t->n_files))
        return EXIT_BAD;
    if (!(job->report = report_new(&o)))
        return cli_error("out of memory");
    if (first_pass(t, t->files, t->n_files, t->conn, job->report) != EXIT_OK ||
        (job->other[0] && read_baseline(job) != EXIT_OK))
        return EXIT_BAD;
    measured.interval = report_interval(job->report);
    measured.user = job->report;
    job->meter = meter_new(t->observer, &measured);
    if (!job->meter || !report_watch(job->report, t->observer))
        return cli_error("out of memory");
    return EXIT_OK;
}

static void packet(struct trace *t, struct pkt *p, bool match)
{
    (void)match; /* no -Y */
    report_packet(job_of(t)->report, p);
}

/* The rate of the fastest interface of which a file states it, bits per second; 0: none does. */
static uint64_t stated_rate(const struct trace *t)
{
    uint64_t most = 0;

    for (size_t i = 0; t->in && i < cap_merge_count(t->in); i++) {
        const struct cap_info *info = cap_info(cap_merge_file(t->in, i));
        for (uint32_t k = 0; k < info->n_ifaces; k++)
            most = info->ifaces[k].speed > most ? info->ifaces[k].speed : most;
    }
    return most;
}

static int end(struct trace *t)
{
    struct job *job = job_of(t);
    struct buf page = {0};
    int status;

    meter_end(job->meter);
    report_link(job->report, job->link ? job->link : stated_rate(t));
    status = report_page(job->report, &page) ? write_page(t, &page) : cli_error("out of memory");
    buf_free(&page);
    return status;
}

static void stop(struct trace *t)
{
    meter_free(job_of(t)->meter);
    report_free(job_of(t)->report);
    report_free(job_of(t)->baseline);
}

TRACE_CMD(report, .option = option, .foreign = foreign, .instead = instead, .packet = packet, .times = true,
          .stop = stop)
