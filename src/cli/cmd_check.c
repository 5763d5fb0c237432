/* layer 4 (tool): `rdmatrace check`: captures judged by the rules of the transport. */
#include "src/cli/cli.h"
#include "src/cli/trace.h"
#include "src/trace/judge.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

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
};

static const struct opt_def defs[] = {
    TRACE_OPTIONS,
    {KEY_PROFILE, "profile", "PROFILE", "strict (default), rxe (habits of Linux soft-RoCE) or nv (out-of-order placement,\n"
                                        "adaptive retransmission)"},
    {KEY_TAP, "tap", "SIDES", "SIDE or IFACE=SIDE,...: interface IFACE (0, 1, ...) was captured at the requester, responder,\n"
                                         "middle or unknown (default); the requester is the end that opened a connection"},
    {KEY_COMPLETE, "complete", NULL, "the capture lost no frame"},
    {KEY_RULE, "rule", "ID", "judge by this rule only; may be repeated"},
    {KEY_NO_RULE, "no-rule", "ID", "do not judge by this rule; may be repeated"},
    {KEY_SEVERITY, "severity", "LEVEL", "exit with status 1 for an error (default) or also for a warning"},
    {KEY_STRICT, "strict", NULL, "exit with status 1 also for an inconclusive verdict"},
    {KEY_ACK_TIMEOUT, "ack-timeout", "N", "local ACK timeout of ends for which CM does not tell: 4.096 us x 2^N; 0: none"},
    {KEY_RETRY, "retry-count", "N", "likewise the retry count, 0 to 7"},
    {'T', "format", "FORMAT", "text (default), json or junit"},
    {'v', "verbose", NULL, "with -T text: list inconclusive verdicts, too"},
    {'q', "quiet", NULL, "with -T text: print the totals only"},
    {'h', "help", NULL, "show this help"},
    {0, NULL, NULL, NULL},
};

void cmd_check_help(struct buf *b)
{
    buf_puts(b, "Usage: rdmatrace check [options] FILE...\n\n"
                "Judge captures by the rules of the transport: `rdmatrace rules` lists them, rdmatrace-rules(7) explains them.\n"
                "What the capture does not show may explain a failure; then the verdict is inconclusive.\n\n");
    opt_help(b, defs);
    buf_puts(b, "\nExit status: 0, 1 if a rule of severity error failed, 2 for usage or input that cannot be read.\n");
}

enum format { FORMAT_TEXT, FORMAT_JSON, FORMAT_JUNIT };

struct job {
    struct trace_input in;
    struct judge_opts o;
    struct judge *judge;
    enum format format;
    enum tap_side tap; /* where none is said of an interface */
    bool only;    /* --rule was given */
    bool help, verbose, quiet, strict, warnings;
};

static int parse_rule(struct job *job, const char *option, const char *arg, bool on)
{
    enum rule rule = rule_find(arg);

    if (rule == RULE_NONE)
        return cli_error("%s %s: there is no such rule; `rdmatrace rules` lists them", option, arg);
    if (on && !job->only)
        memset(job->o.off, 1, sizeof job->o.off);
    job->only |= on;
    job->o.off[rule] = !on;
    return EXIT_OK;
}

/* "SIDE" or "IFACE=SIDE", joined by commas. */
static int parse_tap(struct job *job, const char *arg)
{
    for (const char *s = arg; *s;) {
        size_t n = strcspn(s, ",");
        char item[64];
        char *eq;
        enum tap_side side;
        uint64_t iface = 0;
        if (n >= sizeof item)
            return cli_error("--tap %s: expected SIDE or IFACE=SIDE", arg);
        memcpy(item, s, n);
        item[n] = '\0';
        eq = strchr(item, '=');
        if (eq)
            *eq = '\0';
        if (!tap_parse(eq ? eq + 1 : item, &side) || (eq && !opt_number(item, 0, JUDGE_TAPS - 1, &iface)))
            return cli_error("--tap %s: expected requester, responder, middle or unknown, or IFACE=SIDE with IFACE below %d", arg, JUDGE_TAPS);
        for (unsigned i = 0; i < JUDGE_TAPS; i++)
            if (!eq || i == iface)
                job->o.tap[i] = side;
        if (!eq)
            job->tap = side;
        s += n + (s[n] == ',');
    }
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

static int parse_format(struct job *job, const char *arg)
{
    static const char *const names[] = {"text", "json", "junit"};

    for (unsigned i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(arg, names[i]) == 0) {
            job->format = (enum format)i;
            return EXIT_OK;
        }
    return cli_error("-T %s: expected text, json or junit", arg);
}

static int parse(struct job *job, int key, const char *arg)
{
    switch (key) {
    case KEY_PROFILE:
        return profile_parse(arg, &job->o.profile) ? EXIT_OK : cli_error("--profile %s: expected strict, rxe or nv", arg);
    case KEY_TAP:
        return parse_tap(job, arg);
    case KEY_RULE:
        return parse_rule(job, "--rule", arg, true);
    case KEY_NO_RULE:
        return parse_rule(job, "--no-rule", arg, false);
    case KEY_SEVERITY:
        job->warnings = strcmp(arg, "warning") == 0;
        return job->warnings || strcmp(arg, "error") == 0 ? EXIT_OK : cli_error("--severity %s: expected error or warning", arg);
    case KEY_ACK_TIMEOUT:
        return parse_small("--ack-timeout", arg, 31, &job->o.ack_timeout);
    case KEY_RETRY:
        return parse_small("--retry-count", arg, 7, &job->o.retry_cnt);
    case 'T':
        return parse_format(job, arg);
    default:
        job->o.complete |= key == KEY_COMPLETE;
        job->strict |= key == KEY_STRICT;
        job->verbose |= key == 'v';
        job->quiet |= key == 'q';
        job->help |= key == 'h';
        return EXIT_OK;
    }
}

static void on_packet(void *user, struct pkt *p)
{
    judge_packet(user, p);
}

static void on_drops(void *user, uint16_t file, uint64_t drops)
{
    judge_drops(user, file, drops);
}

static void assumptions(const struct job *job, struct buf *b)
{
    bool same = true;

    for (unsigned i = 0; i < JUDGE_TAPS; i++)
        same &= job->o.tap[i] == job->tap;
    buf_printf(b, "profile %s; tap ", profile_str(job->o.profile));
    buf_puts(b, tap_str(job->tap));
    for (unsigned i = 0; !same && i < JUDGE_TAPS; i++)
        if (job->o.tap[i] != job->tap)
            buf_printf(b, ", %u=%s", i, tap_str(job->o.tap[i]));
    buf_puts(b, job->o.complete ? "; capture complete" : "; capture perhaps not complete");
}

static int print(const struct job *job)
{
    struct report *r = judge_report(job->judge);
    struct report_totals t = report_totals(r);
    struct buf b = {0}, said = {0};
    struct report_opts o = {
        .files = job->in.files, .n_files = job->in.n_files, .inconclusive = job->verbose, .quiet = job->quiet};
    bool ok;

    assumptions(job, &said);
    o.assumptions = buf_str(&said);
    if (job->format == FORMAT_JSON)
        report_json(r, &o, &b);
    else if (job->format == FORMAT_JUNIT)
        report_junit(r, &o, &b);
    else
        report_text(r, &o, &b);
    ok = cli_flush(&b, STDOUT_FILENO);
    buf_free(&b);
    buf_free(&said);
    if (!ok)
        return EXIT_BAD;
    return t.fail || (job->warnings && t.warnings) || (job->strict && t.inconclusive) ? EXIT_FOUND : EXIT_OK;
}

static int run(struct job *job)
{
    struct trace_user u = {.packet = on_packet, .drops = on_drops};
    int status, found;

    job->judge = u.user = judge_new(&job->o);
    if (!job->judge)
        return cli_error("out of memory");
    trace_pairs(&job->in, judge_conns(job->judge));
    status = trace_read(&job->in, &u);
    judge_end(job->judge);
    found = print(job);
    judge_free(job->judge);
    return status != EXIT_OK ? status : found;
}

int cmd_check(int argc, char **argv)
{
    struct job job = {.o = {.ack_timeout = -1, .retry_cnt = -1}};
    struct opt_state s;
    struct buf b = {0};
    const char *arg;
    int key, operand = 0, status = EXIT_OK;

    if (!trace_start(&job.in, argc))
        return EXIT_BAD;
    opt_start(&s, defs, argc, argv);
    while (status == EXIT_OK && (key = opt_next(&s, &arg, &operand)) != 0) {
        if (key < 0)
            status = cli_error("check: `rdmatrace help check` lists the options");
        else if (!trace_option(&job.in, key, arg, &status))
            status = parse(&job, key, arg);
    }
    opt_end(&s);
    if (status == EXIT_OK && job.help) {
        cmd_check_help(&b);
        status = cli_show(&b);
    } else if (status == EXIT_OK) {
        status = trace_operands(&job.in, "check", operand, argc, argv);
        if (status == EXIT_OK)
            status = run(&job);
    }
    trace_free(&job.in);
    return status;
}
