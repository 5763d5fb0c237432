/* layer 4 (tool): `rdmatrace check`: captures judged by the rules of the transport. */
#include "bitset.h"
#include "dissect/frame_fields.h"
#include "dissect/pkt.h"
#include "src/cc/cc.h"
#include "src/cli/annotate.h"
#include "src/cli/capture_cmd.h"
#include "src/cli/cli.h"
#include "src/cli/found.h"
#include "src/cli/runs/owners.h"
#include "src/cli/tap_sides.h"
#include "src/cli/when.h"
#include "src/judge/judge.h"

#include <stdlib.h>

enum {
    KEY_PROFILE = 256,
    KEY_TAP,
    KEY_COMPLETE,
    KEY_RULE,
    KEY_NO_RULE,
    KEY_SEVERITY,
    KEY_STRICT,
    KEY_ACK_TIMEOUT,
    KEY_RETRY,
    KEY_CNP,
    KEY_CC,
    KEY_COUNTERS,
    KEY_ANNOTATE,
};

static const struct opt_def defs[] = {
    TRACE_OPTIONS,
    TRACE_CORES,
    {KEY_PROFILE, "profile", "PROFILE",
     "strict (default), rxe (habits of Linux soft-RoCE) or nv (out-of-order placement,\n"
     "adaptive retransmission)"},
    {KEY_TAP, "tap", "SIDES",
     "SIDE or IFACE=SIDE,...: interface IFACE (0, 1, ...) was captured at the requester, responder,\n"
     "middle or unknown (default), with FILE:IFACE=SIDE that of the first file (1), the second ...;\n"
     "the requester is the end that opened a connection"},
    {KEY_COMPLETE, "complete", NULL, "the capture lost no frame"},
    {KEY_RULE, "rule", "ID", "judge by this rule only; may be repeated"},
    {KEY_NO_RULE, "no-rule", "ID", "do not judge by this rule; may be repeated"},
    {KEY_SEVERITY, "severity", "LEVEL", "exit with status 1 for an error (default) or also for a warning"},
    {KEY_STRICT, "strict", NULL, "exit with status 1 also for an inconclusive verdict"},
    {KEY_ACK_TIMEOUT, "ack-timeout", "N",
     "local ACK timeout of ends for which CM does not tell: 4.096 us x 2^N; 0: none"},
    {KEY_RETRY, "retry-count", "N", "likewise the retry count, 0 to 7"},
    {KEY_CNP, "cnp", "PARAMS",
     "how receivers space CNPs, such as interval=50us,scope=qp (or ip_pair, dest_ip, port): rule CC-04"},
    {KEY_CC, "cc", "SCHEME", "congestion control of the senders, such as dcqcn or dcqcn:t=55us,f=5,ai=40M: rule CC-13"},
    {KEY_COUNTERS, "counters", "HOST=FILES",
     "compare what the adapter of the host with this address has counted, FILE or BEFORE,AFTER, with\n"
     "the trace; may be repeated"},
    ANNOTATE_OPTION(KEY_ANNOTATE, "findings"),
    {'Y', "display-filter", "FILTER",
     "show only findings of which a frame matches this display filter (rdmatrace-filter(7)); all\n"
     "packets are judged, and the totals are those of all"},
    {'T', "format", "FORMAT", "text (default), json, ndjson or junit"},
    WHEN_FORMAT_OPTION,
    COLOR_OPTION,
    {'v', "verbose", NULL, "with -T text: list notes and inconclusive verdicts, too"},
    {'q', "quiet", NULL, "with -T text: print the totals only"},
    TRACE_OPTIONS_END,
};

void cmd_check_help(struct buf *b)
{
    buf_puts(b, "Usage: rdmatrace check [options] FILE...\n\n"
                "Judge captures by the rules of the transport: `rdmatrace rules` lists them, rdmatrace-rules(7) "
                "explains them.\n"
                "What the capture does not show may explain a failure; then the verdict is inconclusive.\n\n");
    opt_help(b, defs);
    buf_puts(b, "\nExit status: 0, 1 if a rule of severity error failed, 2 for usage or input that cannot be read.\n");
}

enum format { FORMAT_TEXT, FORMAT_JSON, FORMAT_JUNIT };

struct job {
    struct trace t;
    struct judge_opts o;
    struct judge *judge;
    struct owners *owners; /* with t.in_parts */
    const char *annotate;  /* --annotate; NULL: not given */
    struct marks marks;    /* for --annotate */
    enum format format;
    struct tap_sides sides;      /* --tap */
    bool rule_given[RULE_COUNT]; /* named by --rule or --no-rule */
    bool only;                   /* --rule was given */
    bool verbose, quiet, strict, warnings;
    bool color, begun; /* begun: a frame was read */
    enum print_time time;
    ns_t first;              /* time of the first frame */
    uint64_t drops;          /* frames that the files say their captures dropped */
    struct bitset *matching; /* -Y: by file, the frames that match */
};

enum { NO_TEXT = 1, JUNIT = 2 };

static const struct opt_clash clashes[] = {
    {'v', 'q', 0, NULL},
    {'v', 0, NO_TEXT, "is for -T text"},
    {'q', 0, NO_TEXT, "is for -T text"},
    {'t', 0, NO_TEXT, "is for -T text"},
    {'Y', 0, JUNIT, "is for -T text and json"},
    {TRACE_KEY_CONN, 0, JUNIT, "is for -T text and json"},
    {0, 0, 0, NULL},
};

static struct job *job_of(struct trace *t)
{
    return (struct job *)t;
}

static int parse_rule(struct job *job, const char *option, const char *arg, bool on)
{
    enum rule rule = rule_find(arg);

    if (rule == RULE_NONE)
        return cli_error("%s %s: there is no such rule; `rdmatrace rules` lists them", option, arg);
    if (job->rule_given[rule] && job->o.off[rule] == on)
        return cli_error("%s %s: --rule and --no-rule exclude each other", option, arg);
    job->rule_given[rule] = true;
    if (on && !job->only)
        memset(job->o.off, 1, sizeof job->o.off);
    job->only |= on;
    job->o.off[rule] = !on;
    return EXIT_OK;
}

static int parse_small(const char *option, const char *arg, uint64_t max, int *to)
{
    uint64_t v;

    if (!opt_number(arg, 0, max, &v))
        return cli_error("%s %s: expected a number from 0 to %llu", option, arg, (unsigned long long)max);
    *to = (int)v;
    return EXIT_OK;
}

/* What is not stated of CNPs is the default of `rdmagen cc`, but for the interval. */
static int parse_cnp(struct job *job, const char *arg)
{
    struct np_config np = np_config_default();
    struct text_error e;

    np.interval = 0;
    if (!np_parse(&np, arg, &e))
        return cli_error("--cnp %s: column %u: %s", arg, e.col, e.msg);
    if (!np.interval && !np.per_ce)
        return cli_error("--cnp %s: expected an interval, such as interval=50us", arg);
    job->o.cnp = np;
    return EXIT_OK;
}

static int parse_cc(struct job *job, const char *arg)
{
    struct cc_config c = {0};
    struct text_error e;

    if (!cc_parse(&c, arg, &e))
        return cli_error("--cc %s: column %u: %s", arg, e.col, e.msg);
    return recovery_shape_of(&c, &job->o.recovery) ? EXIT_OK : cli_error("--cc %s: expected dcqcn or dcqcn-cx", arg);
}

static int parse_format(struct job *job, const char *arg)
{
    static const char *const names[] = {"text", "json", "junit"};

    for (unsigned i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(arg, names[i]) == 0) {
            job->format = (enum format)i;
            return EXIT_OK;
        }
    return cli_error("-T %s: expected text, json, ndjson or junit", arg);
}

static int option(struct trace *t, int key, const char *arg)
{
    struct job *job = job_of(t);

    switch (key) {
    case KEY_PROFILE:
        return profile_parse(arg, &job->o.profile) ? EXIT_OK
                                                   : cli_error("--profile %s: expected strict, rxe or nv", arg);
    case KEY_TAP:
        return tap_sides_option(&job->sides, &job->o, arg);
    case KEY_RULE:
        return parse_rule(job, "--rule", arg, true);
    case KEY_NO_RULE:
        return parse_rule(job, "--no-rule", arg, false);
    case KEY_SEVERITY:
        job->warnings = strcmp(arg, "warning") == 0;
        return job->warnings || strcmp(arg, "error") == 0 ? EXIT_OK
                                                          : cli_error("--severity %s: expected error or warning", arg);
    case KEY_ACK_TIMEOUT:
        return parse_small("--ack-timeout", arg, 31, &job->o.ack_timeout);
    case KEY_RETRY:
        return parse_small("--retry-count", arg, 7, &job->o.retry_cnt);
    case KEY_CNP:
        return parse_cnp(job, arg);
    case KEY_CC:
        return parse_cc(job, arg);
    case KEY_COUNTERS:
        return counters_option(&job->o, arg);
    case KEY_ANNOTATE:
        job->annotate = arg;
        return EXIT_OK;
    case 'T':
        return parse_format(job, arg);
    case 't':
        return when_format(arg, &job->time);
    case KEY_COLOR:
        return cli_color(arg, &job->color);
    default:
        job->o.complete |= key == KEY_COMPLETE;
        job->strict |= key == KEY_STRICT;
        job->verbose |= key == 'v';
        job->quiet |= key == 'q';
        return EXIT_OK;
    }
}

static unsigned cases(struct trace *t)
{
    enum format f = job_of(t)->format;

    return (f != FORMAT_TEXT ? NO_TEXT : 0) | (f == FORMAT_JUNIT ? JUNIT : 0);
}

/* --- One of several processes ----------------------------------------------------------------- */

/* What decides what is found, beside the packets. */
static void pack_options(void *user, struct pack *k)
{
    const struct job *job = user;
    const struct decode_opts *d = &job->t.decode;

    judge_pack_options(k, &job->o);
    pack_number(k, d->n_udp_ports);
    for (unsigned i = 0; i < d->n_udp_ports; i++)
        pack_number(k, d->udp_ports[i]);
}

/* Whether packets can be shared out with these options: --tap asks which hosts open connections, of all; the others
 * concern packets that a part does not read, or name taps anew. */
static const char *options_not_shared(const struct job *job)
{
    const struct trace *t = &job->t;
    bool more =
        job->annotate || t->filter_text || job->o.n_hosts || t->n_pairs || job->o.cnp.interval || job->o.cnp.per_ce;
    bool side = job->o.n_taps != 0, run = t->share != NULL;

    for (unsigned i = 0; i < JUDGE_TAPS; i++)
        side |= job->o.tap[i] == TAP_REQUESTER || job->o.tap[i] == TAP_RESPONDER;
    for (size_t i = 0; run && i < t->n_files; i++)
        more |= t->paths[i] != t->shards.digests[i];
    if (side)
        return "--tap names the end of a tap";
    return more || job->o.recovery.period || t->joins.n || t->joins.all ? "an option needs all packets" : NULL;
}

/* Take what these parts have found. False: they do not serve. */
static bool take_parts(void *user)
{
    struct job *job = user;
    struct trace_share *s = job->t.share;
    const char *why;

    if (!job->judge)
        return false;
    for (uint32_t i = 0; i < s->n_parts; i++) {
        job->begun |= pack_number(&s->parts[i], 0) != 0;
        job->first = (ns_t)pack_number(&s->parts[i], 0);
    }
    why = judge_absorb(job->judge, s->parts, s->n_parts, s->packets, job->t.n_files);
    s->passed_over |= why && part_lacks_memory(why);
    return !why;
}

static void forget_parts(void *user)
{
    struct job *job = user;

    job->begun = false;
    judge_free(job->judge);
    job->judge = judge_new(&job->o);
}

/* Take what several processes have found. Else: this one reads all. */
static bool absorb(struct job *job)
{
    static const struct parts_taker taker = {pack_options, take_parts, forget_parts};
    struct trace_share *s = job->t.share;

    if (!options_not_shared(job) && parts_take(s, &taker, job))
        job->t.frames = s->packets;
    else
        job->t.share = NULL;
    return job->judge;
}

static bool share(struct job *job)
{
    struct trace_share *s = job->t.share;

    if (!s->found)
        return absorb(job);
    s->why = options_not_shared(job);
    return judge_share(job->judge, &s->owners, s->leads);
}

/* Share the pairs out in this process, if that may be, and there are addresses for the tables of all parts. */
static void share_out(struct job *job)
{
    struct trace *t = &job->t;
    unsigned n = options_not_shared(job) ? 0 : trace_may_apart(t);

    if (n > 1)
        job->owners = owners_new(job->judge, &job->o, n, t->n_files);
    t->in_parts = owners_in(job->owners);
}

static const char *join(struct trace *t)
{
    struct job *job = job_of(t);

    job->begun = t->frames != 0;
    job->first = owners_first(job->owners);
    return owners_join(job->owners, job->judge, t->frames, t->failed);
}

/* Write what this process has found. */
static int save(struct job *job)
{
    struct trace_share *s = job->t.share;
    struct pack k = {.out = s->found};

    if (s->why)
        return EXIT_OK;
    for (size_t i = 0; i < s->n_ends; i++)
        for (uint32_t n = 0; n < s->ends[i].info.n_ifaces; n++)
            judge_last_frame(job->judge, (uint32_t)i << 16 | n, s->ends[i].last[n]);
    judge_part_end(job->judge);
    pack_options(job, &k);
    s->options = s->found->len;
    pack_number(&k, job->begun);
    pack_number(&k, (uint64_t)job->first);
    s->why = judge_save(job->judge, &k);
    return s->found->err ? cli_error("out of memory") : EXIT_OK;
}

static int start(struct trace *t)
{
    struct job *job = job_of(t);

    if (job->annotate && !annotate_possible(job->annotate, t->files, t->n_files))
        return EXIT_BAD;
    job->o.no_icrc = !t->decode.verify;
    job->o.memory = t->memory;
    job->judge = judge_new(&job->o);
    if (job->judge && t->share && !share(job))
        return cli_error("out of memory");
    if (job->judge && !t->share)
        share_out(job);
    job->matching = calloc(t->n_files, sizeof *job->matching);
    if (!job->judge || !job->matching)
        return cli_error("out of memory");
    t->judging = job->judge;
    if (job->annotate)
        found_listen(&job->marks, judge_findings(job->judge));
    return EXIT_OK;
}

static struct conn_table *conns(struct trace *t)
{
    return judge_conns(job_of(t)->judge);
}

static void judge(struct trace *t, const struct pkt *p)
{
    struct job *job = job_of(t);

    if (!job->begun)
        job->first = p->frame->ts;
    job->begun = true;
    judge_packet(job->judge, p);
}

static void packet(struct trace *t, struct pkt *p, bool match)
{
    if (t->filter && match)
        bitset_add(&job_of(t)->matching[p->frame->file], p->frame->number);
}

static void expect(struct trace *t, const struct frame *f)
{
    judge_expect(job_of(t)->judge, f);
}

static void drops(struct trace *t, uint16_t file, uint64_t n)
{
    judge_drops(job_of(t)->judge, file, n);
    if (job_of(t)->owners)
        owners_drops(job_of(t)->owners, file, n);
    job_of(t)->drops += n;
}

static void assumptions(const struct job *job, struct buf *b)
{
    buf_printf(b, "profile %s; tap ", profile_str(job->o.profile));
    tap_sides_put(&job->sides, &job->o, &job->t, b);
    buf_puts(b, job->o.complete ? "; capture complete" : "; capture not declared complete");
    if (job->o.complete && job->drops)
        buf_printf(b, ", but the file says that it dropped %s", count_str(job->drops, "frame"));
    if (job->t.unread)
        buf_printf(b, "; not read to the end: %s", job->t.unread);
}

/* The comment of a finding: "SEQ-01 error: PSN 7, expected 5"; of a finding that is only counted, the rule's text. */
static void comment(void *user, const struct pkt_mark *mark, struct buf *b)
{
    const struct findings *r = judge_findings(((struct job *)user)->judge);
    const struct finding *f = mark->number ? findings_at(r, mark->number - 1) : NULL;
    const char *verdict = f && f->result == V_INCONCLUSIVE ? "inconclusive, " : "";

    buf_printf(b, "rdmatrace check: %s ", mark->finding);
    if (f) {
        buf_printf(b, "%s%s: ", verdict, severity_str((enum severity)f->severity));
        findings_headline(r, f, b);
    } else {
        buf_printf(b, "broken as before; rule: %s", rule_table[rule_find(mark->finding)].meaning);
    }
}

/* Whether one of the frames passes -Y. */
static bool any_matches(const struct bitset *s, const uint64_t *frames, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (bitset_has(s, frames[i]))
            return true;
    return false;
}

/* A finding about the whole capture names no frame: it is shown whatever -Y is. */
static bool is_wanted(void *user, const struct finding *f)
{
    const struct job *job = user;
    const struct bitset *s = &job->matching[f->file];

    if (job->t.conn && f->conn != job->t.conn)
        return false;
    return !job->t.filter || !(f->n_frames + f->n_causes) || any_matches(s, f->frames, f->n_frames) ||
           any_matches(s, f->causes, f->n_causes);
}

static void put_time(void *user, struct buf *b, ns_t t)
{
    const struct job *job = user;

    when_put(b, t, job->first, job->time);
}

static void put_counters(void *user, struct buf *b)
{
    const struct job *job = user;

    counters_json(job->judge, job->o.n_hosts, b);
}

static int annotate(struct job *job)
{
    found_findings(&job->marks, judge_findings(job->judge), job->verbose);
    marks_sort(&job->marks);
    return annotate_files(job->annotate, job->t.files, job->t.n_files, &job->marks, comment, job);
}

static int end(struct trace *t)
{
    struct job *job = job_of(t);
    struct findings *r = judge_findings(job->judge);
    struct buf said = {0};
    struct findings_opts o = {.files = t->files,
                              .n_files = t->n_files,
                              .ifaces = t->ifaces,
                              .complete = job->o.complete,
                              .verbose = job->verbose,
                              .quiet = job->quiet,
                              .color = job->color,
                              .user = job,
                              .more = put_counters,
                              .put_time = job->format == FORMAT_TEXT ? put_time : NULL,
                              .wanted = is_wanted};
    struct findings_totals sums;

    if (!t->failed && !tap_sides_exist(&job->sides, &job->o, t))
        return EXIT_BAD;
    if (t->failed)
        judge_unread(job->judge);
    if (t->share && t->share->found)
        return save(job);
    (t->share || job->owners ? judge_parts_end : judge_end)(job->judge);
    sums = findings_totals(r);
    assumptions(job, &said);
    o.assumptions = buf_str(&said);
    if (job->format == FORMAT_JSON)
        findings_json(r, &o, &t->out);
    else if (job->format == FORMAT_JUNIT)
        findings_junit(r, &o, &t->out);
    else
        findings_text(r, &o, &t->out);
    if (job->format == FORMAT_TEXT && !job->quiet)
        counters_text(job->judge, job->o.n_hosts, &t->out);
    buf_free(&said);
    if (job->annotate && annotate(job) != EXIT_OK)
        return EXIT_BAD;
    return sums.fail || (job->warnings && sums.warnings) || (job->strict && sums.inconclusive) ? EXIT_FOUND : EXIT_OK;
}

static void stop(struct trace *t)
{
    judge_free(job_of(t)->judge);
    owners_free(job_of(t)->owners);
    marks_free(&job_of(t)->marks);
    for (size_t i = 0; job_of(t)->matching && i < t->n_files; i++)
        bitset_free(&job_of(t)->matching[i]);
    free(job_of(t)->matching);
}

static void init(struct trace *t)
{
    job_of(t)->o.ack_timeout = job_of(t)->o.retry_cnt = -1;
    job_of(t)->time = TIME_ABSOLUTE_DATE;
    cli_color("auto", &job_of(t)->color);
}

TRACE_CMD(check, .digests = true, .shares = true, .rows = "finding", .init = init, .option = option, .conns = conns,
          .expect = expect, .judge = judge, .packet = packet, .join = join, .drops = drops, .stop = stop,
          .clashes = clashes, .cases = cases)
