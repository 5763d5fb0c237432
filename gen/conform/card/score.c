/* layer 3 (conform): the score card: text, JSON, JUnit. */
#include "gen/conform/card/cells.h"
#include "gen/conform/conform.h"
#include "program.h"

#include <time.h>

static const char *const results[CONFORM_RESULTS] = {"pass",        "fail",  "weak",  "info", "inconclusive",
                                                     "unsupported", "error", "known", "crash"};

const char *conform_result_str(enum conform_result r)
{
    return (unsigned)r < CONFORM_RESULTS ? results[r] : "?";
}

unsigned conform_count(const struct conform_score *s, unsigned level, enum conform_result r)
{
    unsigned n = 0;

    for (unsigned i = 0; i < s->n; i++)
        n += s->o[i].result == r && (level == CONFORM_LEVELS || s->o[i].test->level == level);
    return n;
}

static unsigned all_of(const struct conform_score *s, unsigned level)
{
    unsigned n = 0;

    for (unsigned r = 0; r < CONFORM_RESULTS; r++)
        n += conform_count(s, level, (enum conform_result)r);
    return n;
}

void conform_rules(const struct conform_score *s, struct conform_rule of[RULE_COUNT])
{
    memset(of, 0, RULE_COUNT * sizeof *of);
    for (unsigned i = 0; i < s->n; i++)
        for (unsigned k = 0; k < s->o[i].test->n_rules && conform_is_about_device((enum conform_result)s->o[i].result);
             k++) {
            of[s->o[i].test->rules[k]].applicable++;
            of[s->o[i].test->rules[k]].pass += s->o[i].result == CONFORM_PASS;
        }
}

/* How many rules such tests concern; `good`: only those of which every such test passed. */
static unsigned count_rules(const struct conform_score *s, bool good)
{
    struct conform_rule of[RULE_COUNT];
    unsigned n = 0;

    conform_rules(s, of);
    for (unsigned i = 0; i < RULE_COUNT; i++)
        n += of[i].applicable && (!good || of[i].pass == of[i].applicable);
    return n;
}

static void put_rules(const struct conform_test *t, struct buf *b, const char *quote, const char *sep)
{
    for (unsigned i = 0; i < t->n_rules; i++)
        buf_printf(b, "%s%s%s%s", i ? sep : "", quote, rule_str(t->rules[i]), quote);
}

/* --- Text ------------------------------------------------------------------------------------- */

/* The sum of a level: what passed and failed, and the other results that there are. */
static void put_sum(const struct conform_score *s, unsigned level, struct buf *b)
{
    struct conform_share c;

    buf_printf(b, "%s: %u of %u passed, %u failed", conform_level_str(level), conform_count(s, level, CONFORM_PASS),
               all_of(s, level), conform_count(s, level, CONFORM_FAIL));
    for (unsigned r = CONFORM_WEAK; r < CONFORM_RESULTS; r++)
        if (r == CONFORM_UNSUPPORTED || r == CONFORM_ERROR || conform_count(s, level, (enum conform_result)r))
            buf_printf(b, ", %u %s", conform_count(s, level, (enum conform_result)r), results[r]);
    c = conform_share(s, level, NULL);
    buf_printf(b, "; coverage %u of %u\n", c.applicable, c.all);
}

/* Append a line of text below a test. */
static void put_below(struct buf *b, const char *what, const struct buf *text)
{
    if (!text->len)
        return;
    buf_printf(b, "              %s", what);
    buf_mem(b, text->p, text->len);
    buf_char(b, '\n');
}

void conform_print_outcome(const struct conform_outcome *o, struct buf *b)
{
    struct buf cell = {0};

    buf_printf(b, "%-12s  %s  %-24s  %.*s\n", conform_result_str(o->result), conform_level_str(o->test->level),
               o->test->id, (int)o->test->title.len, o->test->title.p);
    if (o->result == CONFORM_PASS)
        return;
    if (o->runs > 1)
        buf_printf(b, "              passed in %u of %u runs; the worst of the others:\n", o->good, o->runs);
    put_below(b, "", &o->reason);
    cells_failed(o, &cell);
    put_below(b, "cell: ", &cell);
    buf_free(&cell);
    put_below(b, "the judge: ", &o->judge);
    put_below(b, "known: ", &o->known);
}

void conform_print_again(const struct conform_outcome *o, const char *again, struct buf *b)
{
    buf_printf(b, "              again: %s %s\n", again, o->test->id);
}

/* Whether somebody may want to repeat the test: what it showed is neither good nor explained. */
static bool is_open(const struct conform_outcome *o)
{
    return o->result != CONFORM_PASS && o->result != CONFORM_UNSUPPORTED && o->result != CONFORM_KNOWN;
}

void conform_print_source(const struct conform_outcome *o, struct buf *b)
{
    buf_printf(b, "              source: %.*s; rules:", (int)o->test->anchor.len, o->test->anchor.p);
    for (unsigned i = 0; i < o->test->n_rules; i++)
        buf_printf(b, " %s", rule_str(o->test->rules[i]));
    buf_printf(b, "%s; %.3f s\n", o->test->n_rules ? "" : " none", (double)o->took / NS_PER_S);
}

/* The rules of which not every test passed: passed and all. */
static void put_broken_rules(const struct conform_score *s, struct buf *b)
{
    struct conform_rule of[RULE_COUNT];
    const char *before = "not kept in every test: ";

    conform_rules(s, of);
    for (unsigned i = 0; i < RULE_COUNT; i++)
        if (of[i].pass < of[i].applicable) {
            buf_printf(b, "%s%s (%u of %u tests passed)", before, rule_str((enum rule)i), of[i].pass, of[i].applicable);
            before = ", ";
        }
    if (*before == ',')
        buf_char(b, '\n');
}

/* What a stranger on the network achieves: the tests of the group "sec". */
static void put_attacks(const struct conform_score *s, struct buf *b)
{
    const char *before = "\nsecurity: what a host achieves that takes no part\n";

    for (unsigned i = 0; i < s->n; i++) {
        const struct conform_outcome *o = &s->o[i];
        if (strncmp(o->test->id, "sec/", 4) != 0)
            continue;
        buf_printf(b, "%s%-12s  %-24s  %.*s\n", before, conform_result_str((enum conform_result)o->result), o->test->id,
                   (int)o->test->title.len, o->test->title.p);
        before = "";
        if (o->result != CONFORM_PASS)
            put_below(b, "", &o->reason);
    }
}

void conform_print_sums(const struct conform_score *s, struct buf *b)
{
    struct conform_coverage c = conform_coverage(s);

    buf_printf(b, "\n%s, seed %llu\n", s->dut, (unsigned long long)s->seed);
    if (s->live)
        buf_printf(b, "tester: rdmagen " RDMATRACE_VERSION ", backend %s, stamps of frames: %s\n", s->backend,
                   s->clock);
    for (unsigned l = 0; l < CONFORM_LEVELS; l++)
        if (all_of(s, l))
            put_sum(s, l, b);
    buf_printf(b, "rules: %u of %u touched, of which %u kept in every test%s\n", count_rules(s, false),
               (unsigned)RULE_COUNT - 1, count_rules(s, true),
               s->judged ? "" : "\nno rdmatrace beside this program: the captures were not judged");
    put_broken_rules(s, b);
    buf_printf(b, "coverage: %u of the %u rows of --coverage are shown by these tests\n", c.shown, c.rows);
    conform_print_groups(s, b);
    metrics_print_text(s->metrics, s->seed, b);
    put_attacks(s, b);
    identities_print_text(s->identities, b);
    conform_print_counters(s, b);
    conform_print_guesses(s, b);
}

void conform_print_text(const struct conform_score *s, struct buf *b)
{
    for (unsigned i = 0; i < s->n; i++) {
        conform_print_outcome(&s->o[i], b);
        if (is_open(&s->o[i]))
            conform_print_again(&s->o[i], s->again, b);
    }
    conform_print_sums(s, b);
}

/* --- JSON ------------------------------------------------------------------------------------- */

static void put_text(struct buf *b, const char *name, const char *p, size_t n)
{
    buf_printf(b, ",\"%s\":", name);
    buf_json(b, p, n);
}

/* Of a reason the packet that was expected, and that which came, in the notation of scenarios: those of the test, not
 * of the small one behind it. */
static void put_packets(struct buf *b, const struct buf *reason)
{
    static const char before[] = ": expected ", between[] = "; actual ", behind[] = CONFORM_SERVES_NOTHING;
    const size_t n_before = sizeof before - 1, n_between = sizeof between - 1;
    const char *dead = reason->len ? memmem(reason->p, reason->len, behind, sizeof behind - 1) : NULL;
    size_t n = !dead ? reason->len : dead == reason->p ? 0 : (size_t)(dead - reason->p) - strlen("; ");
    const char *e = n ? memmem(reason->p, n, before, n_before) : NULL, *end, *a;

    if (!e)
        return;
    e += n_before;
    end = reason->p + n;
    a = memmem(e, (size_t)(end - e), between, n_between);
    put_text(b, "expected", e, (size_t)((a ? a : end) - e));
    if (a)
        put_text(b, "actual", a + n_between, (size_t)(end - a) - n_between);
}

static void put_again(struct buf *b, const struct conform_score *s, const struct conform_outcome *o)
{
    struct buf line = {0};

    if (o->result == CONFORM_PASS)
        return;
    buf_printf(&line, "%s %s", s->again, o->test->id);
    put_text(b, "again", line.p, line.len);
    buf_free(&line);
}

/* A device: what is said of it in a few words, and what its agent says. */
static void put_device(struct buf *b, const char *member, const char *name, const char *agent)
{
    buf_printf(b, ",\"%s\":{", member);
    if (name) {
        buf_puts(b, "\"name\":");
        buf_json(b, name, strlen(name));
    }
    buf_printf(b, "%s%s}", name && *agent ? "," : "", agent);
}

/* How the tester took part; with the metric link also what its times are worth. */
static void put_tester(const struct conform_score *s, struct buf *b)
{
    struct metric_link link = metrics_link(s->metrics, s->seed);

    buf_puts(b, ",\"tester\":{\"backend\":");
    buf_json(b, s->backend, strlen(s->backend));
    put_text(b, "clock", s->clock, strlen(s->clock));
    if (link.known)
        buf_printf(b, ",\"u_ns\":%lld,\"L0_ns\":%lld", (long long)link.error, (long long)link.least);
    buf_char(b, '}');
}

/* When the run began. */
static void put_time(const struct conform_score *s, const char *format, char text[32])
{
    time_t begun = (time_t)s->begun;
    struct tm tm;

    strftime(text, 32, format, gmtime_r(&begun, &tm));
}

/* What was tested, by what, and when. */
static void put_origin(const struct conform_score *s, struct buf *b)
{
    char text[32];

    put_time(s, "%Y-%m-%dT%H:%M:%SZ", text);
    put_text(b, "tool", "rdmagen " RDMATRACE_VERSION, strlen("rdmagen " RDMATRACE_VERSION));
    put_text(b, "time", text, strlen(text));
    buf_printf(b, ",\"seed\":%llu", (unsigned long long)s->seed);
    put_device(b, "dut", s->dut, s->device[1]);
    if (*s->device[0])
        put_device(b, "against", NULL, s->device[0]);
    put_tester(s, b);
}

/* Of each rule that tests were about: how many show what the device does, and of these passed. */
static void put_each_rule(const struct conform_score *s, struct buf *b)
{
    struct conform_rule of[RULE_COUNT];
    const char *before = "";

    conform_rules(s, of);
    for (unsigned i = 0; i < RULE_COUNT; i++)
        if (of[i].applicable) {
            buf_printf(b, "%s\n{\"id\":\"%s\",\"applicable\":%u,\"passed\":%u}", before, rule_str((enum rule)i),
                       of[i].applicable, of[i].pass);
            before = ",";
        }
}

static void put_test(const struct conform_score *s, const struct conform_outcome *o, struct buf *b)
{
    const struct conform_test *t = o->test;

    buf_printf(b, "{\"id\":\"%s\",\"level\":\"%s\",\"result\":\"%s\"", t->id, conform_level_str(t->level),
               conform_result_str(o->result));
    put_text(b, "title", t->title.p, t->title.len);
    put_text(b, "anchor", t->anchor.p, t->anchor.len);
    buf_puts(b, ",\"rules\":[");
    put_rules(t, b, "\"", ",");
    buf_puts(b, "],\"needs\":[");
    conform_needs(t, b, "", "\"", ",");
    buf_printf(b, "],\"ms\":%lld", (long long)(o->took / NS_PER_MS));
    put_text(b, "reason", o->reason.p, o->reason.len);
    put_packets(b, &o->reason);
    cells_json(o, b);
    put_text(b, "judge", o->judge.p, o->judge.len);
    if (o->counters.len)
        buf_printf(b, ",\"counters\":[%.*s]", (int)o->counters.len, o->counters.p);
    if (o->known.len)
        put_text(b, "known", o->known.p, o->known.len);
    if (o->runs > 1)
        buf_printf(b, ",\"runs\":%u,\"passed\":%u", o->runs, o->good);
    put_again(b, s, o);
    if (*o->capture)
        put_text(b, "capture", o->capture, strlen(o->capture));
    buf_char(b, '}');
}

void conform_print_json(const struct conform_score *s, struct buf *b)
{
    struct conform_coverage c = conform_coverage(s);

    buf_puts(b, "{\"schema\":\"rdmagen-conformance/2\"");
    put_origin(s, b);
    buf_printf(b, ",\"judged\":%s,\"tests\":[", s->judged ? "true" : "false");
    for (unsigned i = 0; i < s->n; i++) {
        buf_puts(b, i ? ",\n" : "\n");
        put_test(s, &s->o[i], b);
    }
    buf_puts(b, "],\n\"score\":{");
    for (unsigned l = 0; l < CONFORM_LEVELS; l++) {
        struct conform_share share = conform_share(s, l, NULL);
        buf_printf(b, "\"%s\":{\"tests\":%u,\"applicable\":%u,\"all\":%u", conform_level_str(l), all_of(s, l),
                   share.applicable, share.all);
        for (unsigned r = 0; r < CONFORM_RESULTS; r++)
            buf_printf(b, ",\"%s\":%u", results[r], conform_count(s, l, (enum conform_result)r));
        buf_puts(b, "},");
    }
    buf_printf(b, "\"rules\":{\"all\":%u,\"touched\":%u,\"kept\":%u,\"each\":[", (unsigned)RULE_COUNT - 1,
               count_rules(s, false), count_rules(s, true));
    put_each_rule(s, b);
    buf_printf(b, "]},\"coverage\":{\"rows\":%u,\"shown\":%u}}", c.rows, c.shown);
    conform_print_groups_json(s, b);
    metrics_print_json(s->metrics, s->seed, b);
    identities_print_json(s->identities, b);
    conform_print_counters_json(s, b);
    conform_print_guesses_json(s, b);
    buf_puts(b, "}\n");
}

/* --- JUnit ------------------------------------------------------------------------------------ */

/* As an attribute of XML, where only printable characters may stand. */
static void put_xml(struct buf *b, const char *p, size_t n)
{
    static const char special[] = "&<>\"'";
    static const char *const escaped[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&apos;"};

    for (size_t i = 0; i < n; i++) {
        const char *q = p[i] ? strchr(special, p[i]) : NULL;
        if (q)
            buf_puts(b, escaped[q - special]);
        else
            buf_char(b, p[i] >= ' ' && p[i] < 0x7f ? p[i] : '?');
    }
}

static size_t group_len(const struct conform_outcome *o)
{
    return strcspn(o->test->id, "/");
}

static bool same_group(const struct conform_outcome *a, const struct conform_outcome *b)
{
    return group_len(a) == group_len(b) && memcmp(a->test->id, b->test->id, group_len(a)) == 0;
}

static double seconds(ns_t t)
{
    return (double)t / NS_PER_S;
}

/* The element of a result. */
static const char *const tags[CONFORM_RESULTS] = {NULL,      "failure", "failure", "skipped", "skipped",
                                                  "skipped", "error",   "skipped", "error"};

/* Whether outcome `i` is the first one of its group. */
static bool begins_group(const struct conform_score *s, unsigned i)
{
    for (unsigned k = 0; k < i; k++)
        if (same_group(&s->o[k], &s->o[i]))
            return false;
    return true;
}

/* How many outcomes of the group of outcome `i` have element `tag`; NULL: how many it has. */
static unsigned count_tag(const struct conform_score *s, unsigned i, const char *tag)
{
    unsigned n = 0;

    for (unsigned k = i; k < s->n; k++) {
        const char *has = tags[s->o[k].result];
        n += same_group(&s->o[k], &s->o[i]) && (!tag || (has && strcmp(has, tag) == 0));
    }
    return n;
}

static void put_case(struct buf *b, const struct conform_score *s, const struct conform_outcome *o)
{
    struct buf cell = {0};

    buf_printf(b, "  <testcase name=\"%s\" classname=\"rdma.%.*s\" time=\"%.3f\"", o->test->id, (int)group_len(o),
               o->test->id, seconds(o->took));
    if (o->result != CONFORM_PASS) {
        buf_printf(b, "><%s message=\"", tags[o->result]);
        put_xml(b, o->reason.p, o->reason.len);
        cells_failed(o, &cell);
        if (cell.len) {
            buf_puts(b, "; cell: ");
            put_xml(b, cell.p, cell.len);
        }
        buf_free(&cell);
        if (o->judge.len) {
            buf_puts(b, "; the judge: ");
            put_xml(b, o->judge.p, o->judge.len);
        }
        if (o->known.len) {
            buf_puts(b, "; known: ");
            put_xml(b, o->known.p, o->known.len);
        }
        buf_puts(b, "\">");
        if (is_open(o)) {
            buf_puts(b, "again: ");
            put_xml(b, s->again, strlen(s->again));
            buf_printf(b, " %s", o->test->id);
        }
        buf_printf(b, "</%s></testcase>\n", tags[o->result]);
    } else {
        buf_puts(b, "/>\n");
    }
}

static void put_property(struct buf *b, const char *name, const char *value)
{
    buf_printf(b, "   <property name=\"%s\" value=\"", name);
    put_xml(b, value, strlen(value));
    buf_puts(b, "\"/>\n");
}

/* The median of what was measured; of a rate also which end bounds it. */
static void put_metric(const struct conform_score *s, const struct metric *m, struct buf *b)
{
    struct metric_bound bound = metric_bound(m);
    struct metric_summary sum;

    metric_summarise(m, s->seed, &sum);
    buf_printf(b, "   <property name=\"%s_%s\" value=\"%lld\"/>\n", m->name, metric_unit_str((enum metric_unit)m->unit),
               (long long)sum.median);
    if (bound.end != END_UNKNOWN)
        buf_printf(b,
                   "   <property name=\"%s_bound\" value=\"%s\"/>\n"
                   "   <property name=\"%s_idle_permille\" value=\"%lld\"/>\n",
                   m->name, metric_end_str(bound.end), m->name, (long long)bound.permille);
}

/* What all of the run has: in the properties of the first suite. */
static void put_run(const struct conform_score *s, struct buf *b)
{
    struct conform_coverage c = conform_coverage(s);

    put_property(b, "tool", "rdmagen " RDMATRACE_VERSION);
    put_property(b, "dut", s->dut);
    put_property(b, "tester.backend", s->backend);
    put_property(b, "tester.clock", s->clock);
    buf_printf(b, "   <property name=\"seed\" value=\"%llu\"/>\n", (unsigned long long)s->seed);
    buf_printf(b, "   <property name=\"coverage.rows\" value=\"%u of %u\"/>\n", c.shown, c.rows);
    for (unsigned k = 0; k < s->metrics->n; k++)
        put_metric(s, &s->metrics->metric[k], b);
}

/* The properties of the suite that begins with outcome `i`: how much of its group is covered. */
static void put_properties(const struct conform_score *s, unsigned i, struct buf *b)
{
    struct token group = {.p = s->o[i].test->id, .len = (uint32_t)group_len(&s->o[i])};
    struct conform_share share = conform_share(s, CONFORM_LEVELS, &group);

    buf_printf(b, "  <properties>\n   <property name=\"coverage\" value=\"%u of %u tests\"/>\n", share.applicable,
               share.all);
    if (i == 0)
        put_run(s, b);
    buf_puts(b, "  </properties>\n");
}

/* The attributes of the suite that begins with outcome `i`. */
static void put_suite(const struct conform_score *s, unsigned i, struct buf *b)
{
    ns_t took = 0;
    char text[32];

    for (unsigned k = i; k < s->n; k++)
        took += same_group(&s->o[k], &s->o[i]) ? s->o[k].took : 0;
    put_time(s, "%Y-%m-%dT%H:%M:%S", text); /* JUnit's schema: in UTC, without a zone */
    buf_printf(b,
               " <testsuite name=\"%.*s\" tests=\"%u\" failures=\"%u\" errors=\"%u\" skipped=\"%u\" time=\"%.3f\" "
               "timestamp=\"%s\">\n",
               (int)group_len(&s->o[i]), s->o[i].test->id, count_tag(s, i, NULL), count_tag(s, i, "failure"),
               count_tag(s, i, "error"), count_tag(s, i, "skipped"), seconds(took), text);
}

void conform_print_junit(const struct conform_score *s, struct buf *b)
{
    ns_t took = 0;

    for (unsigned i = 0; i < s->n; i++)
        took += s->o[i].took;
    buf_printf(b,
               "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"rdmagen conformance\" tests=\"%u\" "
               "time=\"%.3f\">\n",
               s->n, seconds(took));
    for (unsigned i = 0; i < s->n; i++) {
        if (!begins_group(s, i))
            continue;
        put_suite(s, i, b);
        put_properties(s, i, b);
        for (unsigned k = i; k < s->n; k++)
            if (same_group(&s->o[k], &s->o[i]))
                put_case(b, s, &s->o[k]);
        buf_puts(b, " </testsuite>\n");
    }
    buf_puts(b, "</testsuites>\n");
}
