/* layer 2b (findings): findings as text, JSON and JUnit XML. */
#include "src/findings/findings.h"

#include "color.h"
#include "src/conn/conn.h"

/* --- Text ------------------------------------------------------------------------------------- */

/* Write the interfaces of a set: the required tap position may be that of another interface. */
static void ifaces_text(struct buf *b, uint64_t ifaces)
{
    const char *sep = ", seen at interface ";

    if (!ifaces)
        return;
    for (unsigned i = 0; ifaces; i++, ifaces >>= 1)
        if (ifaces & 1) {
            buf_printf(b, "%s%u", sep, i);
            sep = " and ";
        }
}

/* Text for a missing need, with the option that provides it. */
static const char *lack_str(unsigned need, enum rule rule, bool complete)
{
    switch (need) {
    case N_REQ:
        return "no packet of the requester was captured before";
    case N_RSP:
        return "no packet of the responder was captured before";
    case N_START:
        return "the start of the connection was not captured";
    case N_COMPLETE:
        return complete ? "frames are missing, doubled or out of order" : "the capture may be incomplete (--complete)";
    case N_PAYLOAD:
        return "packets were cut";
    case N_CM:
        return rule_table[rule].traits & T_TIMEOUT
                   ? "the ACK timeout and retry count are not known (--ack-timeout, --retry-count)"
                   : "the connection's parameters are not known: CM was not captured";
    case N_TAP_REQ:
        return "the tap is not known to be at the requester (--tap)";
    case N_TAP_RSP:
        return "the tap is not known to be at the responder (--tap)";
    case N_CLOCK:
        return "the time stamps cannot be trusted";
    case N_PAIRED:
        return "the two directions were paired by PSN only (--pair)";
    case N_SAME:
        return "the queue pairs may serve another connection by then: its setup was not captured";
    case N_OPENER:
        return "which end opened the connection is not known, or either opens some, and so at which end the tap is";
    case N_ORDER:
        return "packets may be copies, or may have crossed others between the tap and that end";
    case N_PACE:
        return "congestion control may have held the packet back";
    default:
        return "";
    }
}

/* Write all missing needs. */
static void lacks_text(struct buf *b, enum rule rule, unsigned missing, bool complete)
{
    const char *sep = "";

    for (unsigned bits = missing; bits; bits &= bits - 1, sep = "; ")
        buf_printf(b, "%s%s", sep, lack_str(bits & -bits, rule, complete));
}

#define COLUMNS 100
#define INDENT  4

static void frames_text(struct buf *b, const uint64_t *frames, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        buf_printf(b, "%s%llu", i ? ", " : "", (unsigned long long)frames[i]);
}

static unsigned columns_of(const struct findings_opts *o)
{
    return o->columns && o->columns < COLUMNS ? o->columns : COLUMNS;
}

static const char *file_of(const struct findings_opts *o, const struct finding *f)
{
    return o->n_files > 1 && f->file < o->n_files ? o->files[f->file] : NULL;
}

/* Append when the first frame of a finding was captured. */
static void time_text(struct buf *b, const struct findings_opts *o, const struct finding *f)
{
    if (!o->put_time || f->ts == FINDING_NO_TIME)
        return;
    buf_puts(b, ", ");
    o->put_time(o->user, b, f->ts);
}

static const char *color_of(const struct findings_opts *o, const struct finding *f)
{
    if (!o->color)
        return "";
    return f->severity == SEV_I                                  ? COLOR_DIM
           : f->severity == SEV_W || f->result == V_INCONCLUSIVE ? COLOR_YELLOW
                                                                 : COLOR_ALERT;
}

/* The first line of a finding: rule, place, time, and what is wrong. */
static void heading_print(const struct findings *r, const struct findings_opts *o, const struct finding *f,
                          struct buf *b)
{
    const char *color = color_of(o, f);

    buf_printf(b, "%s%s %s%s", color, rule_table[f->rule].id, severity_str(f->severity),
               f->result == V_INCONCLUSIVE ? ", inconclusive" : "");
    if (file_of(o, f))
        buf_printf(b, ", %s", file_of(o, f));
    if (o->ifaces > 1)
        buf_printf(b, ", interface %u", f->tap);
    if (f->conn)
        buf_printf(b, ", connection %u", f->conn);
    if (f->n_frames) {
        buf_printf(b, ", frame%s ", f->n_frames > 1 ? "s" : "");
        frames_text(b, f->frames, f->n_frames);
    }
    if (f->n_causes) {
        buf_puts(b, " (because of ");
        frames_text(b, f->causes, f->n_causes);
        buf_char(b, ')');
    }
    time_text(b, o, f);
    buf_puts(b, ": ");
    findings_headline(r, f, b);
    buf_puts(b, *color ? COLOR_RESET "\n" : "\n");
}

static void finding_print(const struct findings *r, const struct findings_opts *o, const struct finding *f,
                          struct buf *b)
{
    const struct rule_info *rule = &rule_table[f->rule];

    heading_print(r, o, f, b);
    if (f->severity == SEV_I) {
        buf_paragraph(b, findings_string(r, f->text), INDENT, columns_of(o));
        return;
    }
    buf_printf(b, "    rule: %s [%s]\n", rule->meaning, rule->anchor);
    if (f->expected && !findings_names_value(r, f))
        buf_printf(b, "    expected %s, seen %s\n", findings_string(r, f->expected), findings_string(r, f->seen));
    if (f->text)
        buf_paragraph(b, findings_string(r, f->text), INDENT, columns_of(o));
    if (f->missing) {
        struct buf t = {0};
        buf_puts(&t, "Undecided: ");
        lacks_text(&t, (enum rule)f->rule, f->missing, o->complete);
        ifaces_text(&t, f->iface);
        buf_char(&t, '.');
        buf_paragraph(b, buf_str(&t), INDENT, columns_of(o));
        buf_free(&t);
    }
    if (f->consequences)
        buf_printf(b, "    Consequences: %s behind it, until frame %llu, for the same reason.\n",
                   count_str(f->consequences, "packet"), (unsigned long long)f->consequence);
    if (f->times > 1)
        buf_printf(b, "    (%llu more like this)\n", (unsigned long long)f->times - 1);
    buf_char(b, '\n');
}

/* Write how many rules would have passed if no flow had been evicted. */
static void lost_print(const struct findings *r, struct buf *b)
{
    unsigned n = 0;

    for (unsigned i = 1; i < RULE_COUNT; i++)
        n += findings_was_lost(r, (enum rule)i) && !findings_unsure(r, (enum rule)i) &&
             findings_worst(r, (enum rule)i) == WORST_UNSURE;
    if (n)
        buf_printf(b, "%s undecided: flows that went on had been forgotten, as there were more than are kept\n",
                   count_str(n, "rule"));
}

/* Write a line for each rule that is inconclusive. */
static void unsure_print(const struct findings *r, const struct findings_opts *o, struct buf *b)
{
    for (unsigned i = 1; i < RULE_COUNT; i++)
        if (findings_unsure(r, (enum rule)i) && findings_worst(r, (enum rule)i) == WORST_UNSURE) {
            const struct finding *first = NULL;
            unsigned missing = 0;
            uint64_t ifaces = 0;
            for (size_t k = 0; k < findings_n(r); k++) {
                const struct finding *f = findings_at(r, k);
                if (f->rule != i)
                    continue;
                first = first ? first : f;
                missing |= f->missing;
                ifaces |= f->iface;
            }
            if (first && o->undecided)
                o->undecided(o->user, first);
            buf_printf(b, "%s undecided %s: ", rule_table[i].id, count_str(findings_unsure(r, (enum rule)i), "time"));
            lacks_text(b, (enum rule)i, missing, o->complete);
            ifaces_text(b, ifaces);
            buf_char(b, '\n');
        }
    if (o->undecided)
        o->undecided(o->user, NULL);
}

/* Whether the user asked for this finding. */
static bool is_wanted(const struct findings_opts *o, const struct finding *f)
{
    return !o->wanted || o->wanted(o->user, f);
}

/* Whether the text lists a finding. */
static bool is_listed(const struct findings_opts *o, const struct finding *f)
{
    return o->verbose || (f->severity != SEV_I && f->result != V_INCONCLUSIVE);
}

/* Write a line for the notes that are not listed, and one for the findings that the user did not ask for. */
static void hidden_print(const struct findings *r, const struct findings_opts *o, struct buf *b)
{
    uint64_t notes = 0, hidden = 0;

    for (size_t i = 0; i < findings_n(r); i++) {
        const struct finding *f = findings_at(r, i);
        if (!is_wanted(o, f))
            hidden += is_listed(o, f) ? f->times : 0;
        else if (f->severity == SEV_I && !is_listed(o, f))
            notes += f->times;
    }
    if (notes)
        buf_printf(b, "%s; %s shows them\n", count_str(notes, "note"), o->shows ? o->shows : "-v");
    if (hidden)
        buf_printf(b, "%s not shown (-Y)\n", count_str(hidden, "finding"));
}

static const struct {
    const char *name, *text; /* in JSON; behind the number of packets */
} unjudged_kinds[UNJUDGED_KINDS] = {
    [UNJUDGED_ICRC] = {"icrc", "without a right ICRC, captured before the adapter inserted it, or with rewritten "
                               "addresses; --no-icrc judges the rest of them"},
    [UNJUDGED_OPCODE] = {"opcode", "with an opcode that is not defined, but for the headers before their payload"},
    [UNJUDGED_CUT] = {"cut", "that were cut within their headers"},
    [UNJUDGED_OURS] = {"rdmagen", "of Shaped-Quota in the format of rdmagen, which no specification defines, but for "
                                  "the headers before their payload"},
};

/* Write a line for each kind of packets that were not judged: that nothing failed in them says nothing. */
static void unjudged_print(const struct findings_totals *t, struct buf *b)
{
    struct buf line = {0};

    for (unsigned i = 0; i < UNJUDGED_KINDS; i++) {
        if (!t->unjudged[i])
            continue;
        line.len = 0;
        buf_printf(&line, "Not judged: %s %s", count_str(t->unjudged[i], "packet"), unjudged_kinds[i].text);
        buf_paragraph(b, buf_str(&line), 0, COLUMNS);
    }
    buf_free(&line);
}

void findings_text(const struct findings *r, const struct findings_opts *o, struct buf *b)
{
    struct findings_totals t = findings_totals(r);

    for (size_t i = 0; !o->quiet && i < findings_n(r); i++)
        if (is_listed(o, findings_at(r, i)) && is_wanted(o, findings_at(r, i)))
            finding_print(r, o, findings_at(r, i), b);
    if (!o->quiet && !o->verbose)
        unsure_print(r, o, b);
    unjudged_print(&t, b);
    lost_print(r, b);
    if (!o->quiet)
        hidden_print(r, o, b);
    buf_printf(b, "%s, ", count_str(t.packets, "packet"));
    if (t.rdma_packets && t.rdma_packets < t.packets) /* those of iWARP are not told from other TCP */
        buf_printf(b, "%llu of them RDMA, ", (unsigned long long)t.rdma_packets);
    conn_number_put(b, t.connections, t.highest);
    buf_printf(b, "; %s judged: %u pass, %u inconclusive, %u fail, %s\n", count_str(t.rules, "rule"), t.pass,
               t.inconclusive, t.fail, count_str(t.warnings, "warning"));
    buf_printf(b, "(%s)\n", o->assumptions);
}

/* --- JSON ------------------------------------------------------------------------------------- */

/* The texts of a finding that are made of it. */
struct finding_texts {
    const char *tap, *headline, *expected, *seen, *text;
};

static void give_finding(const struct finding *f, uint64_t number, const struct finding_texts *x, cell_take *take,
                         void *user)
{
    const struct cell_to t = {take, user};

    cell_number(&t, "number", number, true);
    cell_text(&t, "rule", rule_table[f->rule].id);
    cell_text(&t, "severity", severity_str(f->severity));
    cell_text(&t, "verdict", f->severity == SEV_I ? NULL : result_str(f->result));
    cell_number(&t, "file", f->file, true);
    cell_number(&t, "interface", f->tap, true);
    cell_text(&t, "tap", x->tap);
    cell_number(&t, "connection", f->conn, f->conn != 0);
    cell_time(&t, "start_ns", f->ts, f->ts != FINDING_NO_TIME);
    cell_text(&t, "headline", x->headline);
    cell_text(&t, "expected", x->expected);
    cell_text(&t, "seen", x->seen);
    cell_text(&t, "text", x->text);
    cell_number(&t, "times", f->times, true);
    cell_number(&t, "consequences", f->consequences, true);
}

void finding_cells(const struct findings *r, size_t i, const char *const *files, cell_take *take, void *user)
{
    const struct finding *f = findings_at(r, i);
    struct buf tap = {0}, headline = {0};

    conn_tap_put(&tap, files, (uint32_t)f->file << 16 | f->tap);
    findings_headline(r, f, &headline);
    give_finding(f, i + 1,
                 &(struct finding_texts){buf_str(&tap), buf_str(&headline), findings_string(r, f->expected),
                                         findings_string(r, f->seen), findings_string(r, f->text)},
                 take, user);
    buf_free(&tap);
    buf_free(&headline);
}

void finding_columns(cell_take *take, void *user)
{
    static const struct finding none;

    give_finding(&none, 0, &(struct finding_texts){.tap = NULL}, take, user);
}

static void json_frames(struct buf *b, const char *key, const uint64_t *frames, unsigned n)
{
    buf_printf(b, ",\"%s\":[", key);
    frames_text(b, frames, n);
    buf_char(b, ']');
}

static void json_finding(const struct findings *r, const struct findings_opts *o, size_t i, struct buf *b)
{
    const struct finding *f = findings_at(r, i);
    const char *sep = "";

    finding_cells(r, i, o->files, cell_row_json, &(struct cell_row){.b = b});
    json_frames(b, "frames", f->frames, f->n_frames);
    json_frames(b, "cause_frames", f->causes, f->n_causes);
    buf_puts(b, ",\"needs\":[");
    for (unsigned bits = f->missing; bits; bits &= bits - 1, sep = ",")
        buf_printf(b, "%s\"%s\"", sep, need_str(bits & -bits));
    buf_puts(b, "]}");
}

void findings_json(const struct findings *r, const struct findings_opts *o, struct buf *b)
{
    struct findings_totals t = findings_totals(r);
    const char *sep = "\n";

    buf_printf(b,
               "{\"summary\":{\"packets\":%llu,\"rdma_packets\":%llu,\"connections\":%u,\"highest_connection\":%u,"
               "\"rules\":%u,\"pass\":%u,\"inconclusive\":%u,\"fail\":%u,\"warnings\":%u,\"not_judged\":",
               (unsigned long long)t.packets, (unsigned long long)t.rdma_packets, t.connections, t.highest, t.rules,
               t.pass, t.inconclusive, t.fail, t.warnings);
    for (unsigned i = 0; i < UNJUDGED_KINDS; i++)
        buf_printf(b, "%s\"%s\":%llu", i ? "," : "{", unjudged_kinds[i].name, (unsigned long long)t.unjudged[i]);
    buf_puts(b, "}},\"assumptions\":");
    buf_json(b, o->assumptions, strlen(o->assumptions));
    if (o->more)
        o->more(o->user, b);
    buf_puts(b, ",\"findings\":[");
    for (size_t i = 0; i < findings_n(r); i++) {
        if (!is_wanted(o, findings_at(r, i)))
            continue;
        buf_puts(b, sep);
        json_finding(r, o, i, b);
        sep = ",\n";
    }
    buf_puts(b, "]}\n");
}

/* --- JUnit ------------------------------------------------------------------------------------ */

/* Begin the element with a rule's failure: the headline of its first finding with the worst verdict. */
static void junit_message(const struct findings *r, unsigned rule, enum worst w, struct buf *b)
{
    enum severity severity = w == WORST_FAIL ? SEV_E : SEV_W;
    struct buf t = {0};

    for (size_t i = 0; i < findings_n(r) && !t.len; i++) {
        const struct finding *f = findings_at(r, i);
        if (f->rule == rule && f->severity != SEV_I &&
            (w == WORST_UNSURE ? f->result == V_INCONCLUSIVE : f->result == V_FAIL && f->severity == severity))
            findings_headline(r, f, &t);
    }
    if (w == WORST_UNSURE)
        buf_puts(b, "\"><skipped message=\"inconclusive: ");
    else
        buf_printf(b, "\"><failure type=\"%s\" message=\"%s: ", severity_str(severity), severity_str(severity));
    buf_markup(b, buf_str(&t));
    buf_puts(b, w == WORST_UNSURE ? "\"/><system-out>" : "\">");
    buf_free(&t);
}

static void junit_case(const struct findings *r, const struct findings_opts *o, unsigned rule, struct buf *b)
{
    enum worst w = findings_worst(r, (enum rule)rule);
    struct buf t = {0};

    buf_printf(b, "  <testcase classname=\"rdmatrace.check\" name=\"%s ", rule_table[rule].id);
    buf_markup(b, rule_table[rule].meaning);
    if (w == WORST_PASS) {
        buf_puts(b, "\"/>\n");
        return;
    }
    junit_message(r, rule, w, b);
    for (size_t i = 0; i < findings_n(r); i++)
        if (findings_at(r, i)->rule == rule && findings_at(r, i)->severity != SEV_I)
            finding_print(r, o, findings_at(r, i), &t);
    buf_markup(b, buf_str(&t));
    buf_puts(b, w == WORST_UNSURE ? "</system-out></testcase>\n" : "</failure></testcase>\n");
    buf_free(&t);
}

void findings_junit(const struct findings *r, const struct findings_opts *o, struct buf *b)
{
    struct findings_totals t = findings_totals(r);

    buf_printf(b,
               "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"rdmatrace check\" tests=\"%u\" "
               "failures=\"%u\" skipped=\"%u\">\n",
               t.rules, t.fail + t.warnings, t.inconclusive);
    for (unsigned i = 1; i < RULE_COUNT; i++)
        if (findings_worst(r, (enum rule)i) != WORST_NONE)
            junit_case(r, o, i, b);
    buf_puts(b, "</testsuite>\n");
}
