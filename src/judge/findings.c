/* layer 3 (judge): findings and totals, and their output. */
#include "src/judge/findings.h"

#include "bits.h"
#include "dissect/ib/opcode.h"
#include "src/conn/conn.h"

#include <stdlib.h>

#define TALLIES 65536 /* size of the hash table of tallies, a power of two */

/* Number of findings with the same rule, verdict and connection. */
struct tally {
    uint64_t key; /* 0: free */
    uint32_t n;
    uint32_t first; /* index of the first of them + 1; 0: none is kept */
};

struct findings {
    struct finding *findings;
    size_t n, cap;
    struct tally *tallies;
    uint32_t n_tallies;
    struct buf strings;
    bool judged[RULE_COUNT], lost[RULE_COUNT];
    uint64_t fails[RULE_COUNT], warns[RULE_COUNT], unsure[RULE_COUNT];
    uint64_t packets;
    uint32_t connections, highest;
    void (*left_out)(void *user, const struct finding *f); /* NULL: no callback */
    void *user;
};

struct findings *findings_new(void)
{
    struct findings *r = calloc(1, sizeof *r);

    if (!r)
        return NULL;
    r->tallies = calloc(TALLIES, sizeof *r->tallies);
    buf_char(&r->strings, '\0');
    if (!r->tallies || r->strings.err) {
        findings_free(r);
        return NULL;
    }
    return r;
}

void findings_free(struct findings *r)
{
    if (!r)
        return;
    free(r->findings);
    free(r->tallies);
    buf_free(&r->strings);
    free(r);
}

void findings_judged(struct findings *r, enum rule rule)
{
    r->judged[rule] = true;
}

void findings_lost(struct findings *r, enum rule rule)
{
    r->lost[rule] = true;
}

/* The tally of findings like `f`; NULL: the table is full. */
static struct tally *tally_of(struct findings *r, const struct finding *f)
{
    uint64_t tap = ((uint64_t)f->file * 31 + f->tap) & 0x7f;
    uint64_t key = UINT64_C(1) << 63 | tap << 56 | (uint64_t)f->conn << 24 | (uint64_t)f->severity << 16 |
                   (uint64_t)f->result << 8 | f->rule;
    uint32_t i = (uint32_t)(key * HASH_MULTIPLIER >> 48) & (TALLIES - 1);

    while (r->tallies[i].key && r->tallies[i].key != key)
        i = (i + 1) & (TALLIES - 1);
    if (!r->tallies[i].key) {
        if (r->n_tallies >= TALLIES / 2)
            return NULL;
        r->n_tallies++;
        r->tallies[i].key = key;
    }
    return &r->tallies[i];
}

/* Count a finding. True if it is to be kept. */
static bool count(struct findings *r, const struct finding *f)
{
    struct tally *t;

    r->judged[f->rule] = true;
    if (f->result == V_INCONCLUSIVE)
        r->unsure[f->rule]++;
    else if (f->result == V_FAIL && f->severity == SEV_E)
        r->fails[f->rule]++;
    else if (f->result == V_FAIL && f->severity == SEV_W)
        r->warns[f->rule]++;
    t = tally_of(r, f);
    if (!t)
        return false;
    t->n++;
    if (t->first && t->n > FINDINGS_EACH)
        r->findings[t->first - 1].times++;
    if (!t->first && r->n < FINDINGS_MAX)
        t->first = (uint32_t)r->n + 1;
    return t->first && t->n <= FINDINGS_EACH && r->n < FINDINGS_MAX;
}

static uint32_t string_put(struct findings *r, const char *s)
{
    uint32_t at = (uint32_t)r->strings.len;

    if (!s || !*s)
        return 0;
    buf_mem(&r->strings, s, strlen(s) + 1);
    return r->strings.err ? 0 : at;
}

/* A new entry for a finding; NULL: out of memory. */
static struct finding *grow(struct findings *r)
{
    size_t cap = r->cap ? r->cap * 2 : 64;
    struct finding *grown;

    if (r->n < r->cap)
        return &r->findings[r->n++];
    grown = realloc(r->findings, cap * sizeof *grown);
    if (!grown)
        return NULL;
    r->findings = grown;
    r->cap = cap;
    return &r->findings[r->n++];
}

void findings_on_left_out(struct findings *r, void (*fn)(void *user, const struct finding *f), void *user)
{
    r->left_out = fn;
    r->user = user;
}

void findings_add(struct findings *r, const struct finding *f, const struct finding_text *t)
{
    struct finding *to = count(r, f) ? grow(r) : NULL;

    if (!to) {
        if (r->left_out)
            r->left_out(r->user, f);
        return;
    }
    *to = *f;
    to->times = 1;
    to->wrong = string_put(r, t->wrong);
    to->expected = string_put(r, t->expected);
    to->seen = string_put(r, t->seen);
    to->text = string_put(r, t->text);
}

void findings_set(struct findings *r, uint64_t packets, uint32_t connections, uint32_t highest)
{
    r->packets = packets;
    r->connections = connections;
    r->highest = highest;
}

/* The worst verdict of a rule. */
enum worst { WORST_NONE, WORST_PASS, WORST_UNSURE, WORST_WARN, WORST_FAIL };

static enum worst worst_of(const struct findings *r, unsigned rule)
{
    if (rule_table[rule].severity == SEV_I || !r->judged[rule])
        return WORST_NONE;
    return r->fails[rule]                     ? WORST_FAIL
           : r->warns[rule]                   ? WORST_WARN
           : r->unsure[rule] || r->lost[rule] ? WORST_UNSURE
                                              : WORST_PASS;
}

struct findings_totals findings_totals(const struct findings *r)
{
    struct findings_totals t = {.packets = r->packets, .connections = r->connections, .highest = r->highest};

    for (unsigned i = 1; i < RULE_COUNT; i++) {
        enum worst w = worst_of(r, i);
        t.rules += w != WORST_NONE;
        t.pass += w == WORST_PASS;
        t.inconclusive += w == WORST_UNSURE;
        t.warnings += w == WORST_WARN;
        t.fail += w == WORST_FAIL;
    }
    return t;
}

size_t findings_n(const struct findings *r)
{
    return r->n;
}
const struct finding *findings_at(const struct findings *r, size_t i)
{
    return &r->findings[i];
}
const char *findings_string(const struct findings *r, uint32_t offset)
{
    return offset < r->strings.len ? r->strings.p + offset : "";
}

/* --- Headlines -------------------------------------------------------------------------------- */

#define SEEN     "{seen}"
#define EXPECTED "{expected}"

/* Length of the part of a headline before its first value: "wrong ICRC". */
static size_t subject_len(const char *wrong)
{
    size_t n = strcspn(wrong, "{");

    while (n && strchr(" :", wrong[n - 1]))
        n--;
    return n;
}

/* Length of the words, with a space, that both end `subject` (of `n` characters) and begin `value`. */
static size_t repeated(const char *subject, size_t n, const char *value)
{
    for (size_t at = 0; at < n; at++) {
        size_t len = n - at;
        if ((at == 0 || subject[at - 1] == ' ') && strncmp(value, subject + at, len) == 0 && value[len] == ' ')
            return len + 1;
    }
    return 0;
}

/* Write a value without the words that end the headline's subject: "ICRC 0x1" after "wrong ICRC" becomes "0x1". */
static void put_value(struct buf *b, const char *wrong, const char *value)
{
    static const char *const limits[] = {"at most ", "at least "};

    for (unsigned i = 0; i < ARRAY_LEN(limits); i++) {
        size_t n = strlen(limits[i]);
        if (strncmp(value, limits[i], n) == 0) {
            buf_puts(b, limits[i]);
            value += n;
            break;
        }
    }
    buf_puts(b, value + repeated(wrong, subject_len(wrong), value));
}

static const char *wrong_of(const struct findings *r, const struct finding *f)
{
    return f->wrong ? findings_string(r, f->wrong) : rule_table[f->rule].wrong;
}

void findings_headline(const struct findings *r, const struct finding *f, struct buf *b)
{
    const char *wrong = wrong_of(r, f);

    for (const char *s = wrong; *s;)
        if (strncmp(s, SEEN, strlen(SEEN)) == 0) {
            put_value(b, wrong, findings_string(r, f->seen));
            s += strlen(SEEN);
        } else if (strncmp(s, EXPECTED, strlen(EXPECTED)) == 0) {
            put_value(b, wrong, findings_string(r, f->expected));
            s += strlen(EXPECTED);
        } else {
            buf_char(b, *s++);
        }
}

/* True if the headline names a value. */
static bool names_value(const struct findings *r, const struct finding *f)
{
    return strchr(wrong_of(r, f), '{') != NULL;
}

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
        return "the requester's direction was not captured";
    case N_RSP:
        return "the responder's direction was not captured";
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
    default:
        return "";
    }
}

/* Write all missing needs; those in `unpaired` are missing because the two directions were paired by PSN only. */
static void lacks_text(struct buf *b, enum rule rule, unsigned missing, unsigned unpaired, bool complete)
{
    const char *sep = "";

    if (unpaired) {
        buf_puts(b, "the two directions were paired by PSN only (--pair)");
        sep = "; ";
    }
    for (unsigned bits = missing & ~unpaired; bits; bits &= bits - 1, sep = "; ")
        buf_printf(b, "%s%s", sep, lack_str(bits & -bits, rule, complete));
}

#define COLUMNS 100
#define INDENT  4

static void frames_text(struct buf *b, const uint64_t *frames, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        buf_printf(b, "%s%llu", i ? ", " : "", (unsigned long long)frames[i]);
}

static const char *file_of(const struct findings_opts *o, const struct finding *f)
{
    return o->n_files > 1 && f->file < o->n_files ? o->files[f->file] : NULL;
}

static void finding_print(const struct findings *r, const struct findings_opts *o, const struct finding *f,
                          struct buf *b)
{
    const struct rule_info *rule = &rule_table[f->rule];

    buf_printf(b, "%s %s%s", rule->id, severity_str(f->severity), f->result == V_INCONCLUSIVE ? ", inconclusive" : "");
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
    buf_puts(b, ": ");
    findings_headline(r, f, b);
    buf_char(b, '\n');
    if (f->severity == SEV_I) {
        buf_paragraph(b, findings_string(r, f->text), INDENT, COLUMNS);
        return;
    }
    buf_printf(b, "    rule: %s [%s]\n", rule->meaning, rule->anchor);
    if (f->expected && !names_value(r, f))
        buf_printf(b, "    expected %s, seen %s\n", findings_string(r, f->expected), findings_string(r, f->seen));
    if (f->text)
        buf_paragraph(b, findings_string(r, f->text), INDENT, COLUMNS);
    if (f->missing) {
        struct buf t = {0};
        buf_puts(&t, "Undecided: ");
        lacks_text(&t, (enum rule)f->rule, f->missing, f->unpaired, o->complete);
        ifaces_text(&t, f->iface);
        buf_char(&t, '.');
        buf_paragraph(b, buf_str(&t), INDENT, COLUMNS);
        buf_free(&t);
    }
    if (f->times > 1)
        buf_printf(b, "    (%llu more like this)\n", (unsigned long long)f->times - 1);
    buf_char(b, '\n');
}

/* Write how many rules would have passed if no flow had been evicted. */
static void lost_print(const struct findings *r, struct buf *b)
{
    unsigned n = 0;

    for (unsigned i = 1; i < RULE_COUNT; i++)
        n += r->lost[i] && !r->unsure[i] && worst_of(r, i) == WORST_UNSURE;
    if (n)
        buf_printf(b, "%s undecided: flows that went on had been forgotten, as there were more than are kept\n",
                   count_str(n, "rule"));
}

/* Write a line for each rule that is inconclusive. */
static void unsure_print(const struct findings *r, const struct findings_opts *o, struct buf *b)
{
    for (unsigned i = 1; i < RULE_COUNT; i++)
        if (r->unsure[i] && worst_of(r, i) == WORST_UNSURE) {
            unsigned missing = 0, unpaired = 0;
            uint64_t ifaces = 0;
            for (size_t k = 0; k < r->n; k++) {
                missing |= r->findings[k].rule == i ? r->findings[k].missing : 0;
                unpaired |= r->findings[k].rule == i ? r->findings[k].unpaired : 0;
                ifaces |= r->findings[k].rule == i ? r->findings[k].iface : 0;
            }
            buf_printf(b, "%s undecided %s: ", rule_table[i].id, count_str(r->unsure[i], "time"));
            lacks_text(b, (enum rule)i, missing, unpaired, o->complete);
            ifaces_text(b, ifaces);
            buf_char(b, '\n');
        }
}

void findings_text(const struct findings *r, const struct findings_opts *o, struct buf *b)
{
    struct findings_totals t = findings_totals(r);

    for (size_t i = 0; !o->quiet && i < r->n; i++)
        if (r->findings[i].result != V_INCONCLUSIVE || o->inconclusive)
            finding_print(r, o, &r->findings[i], b);
    if (!o->quiet && !o->inconclusive)
        unsure_print(r, o, b);
    lost_print(r, b);
    buf_printf(b, "%s, ", count_str(t.packets, "packet"));
    conn_number_put(b, t.connections, t.highest);
    buf_printf(b, "; %s judged: %u pass, %u inconclusive, %u fail, %s\n", count_str(t.rules, "rule"), t.pass,
               t.inconclusive, t.fail, count_str(t.warnings, "warning"));
    buf_printf(b, "(%s)\n", o->assumptions);
}

/* --- JSON ------------------------------------------------------------------------------------- */

static void json_member(struct buf *b, const char *key, const char *value)
{
    buf_printf(b, ",\"%s\":", key);
    buf_json(b, value, strlen(value));
}

static void json_frames(struct buf *b, const char *key, const uint64_t *frames, unsigned n)
{
    buf_printf(b, ",\"%s\":[", key);
    frames_text(b, frames, n);
    buf_char(b, ']');
}

static void json_headline(const struct findings *r, const struct finding *f, struct buf *b)
{
    struct buf t = {0};

    findings_headline(r, f, &t);
    json_member(b, "headline", buf_str(&t));
    buf_free(&t);
}

static void json_tap(struct buf *b, const struct findings_opts *o, const struct finding *f)
{
    struct buf name = {0};

    conn_tap_put(&name, o->files, (uint32_t)f->file << 16 | f->tap);
    json_member(b, "tap", buf_str(&name));
    buf_free(&name);
}

static void json_finding(const struct findings *r, const struct findings_opts *o, const struct finding *f,
                         struct buf *b)
{
    const char *sep = "";

    buf_printf(b, "{\"rule\":\"%s\",\"severity\":\"%s\",\"verdict\":", rule_table[f->rule].id,
               severity_str(f->severity));
    if (f->severity == SEV_I)
        buf_puts(b, "null");
    else
        buf_printf(b, "\"%s\"", result_str(f->result));
    if (f->conn)
        buf_printf(b, ",\"connection\":%u", f->conn);
    else
        buf_puts(b, ",\"connection\":null");
    if (file_of(o, f))
        json_member(b, "file", file_of(o, f));
    json_tap(b, o, f);
    json_frames(b, "frames", f->frames, f->n_frames);
    json_frames(b, "cause_frames", f->causes, f->n_causes);
    buf_puts(b, ",\"needs\":[");
    for (unsigned bits = f->missing; bits; bits &= bits - 1, sep = ",")
        buf_printf(b, "%s\"%s\"", sep, need_str(bits & -bits));
    buf_char(b, ']');
    json_headline(r, f, b);
    json_member(b, "expected", findings_string(r, f->expected));
    json_member(b, "seen", findings_string(r, f->seen));
    json_member(b, "text", findings_string(r, f->text));
    buf_printf(b, ",\"times\":%llu}", (unsigned long long)f->times);
}

void findings_json(const struct findings *r, const struct findings_opts *o, struct buf *b)
{
    struct findings_totals t = findings_totals(r);

    buf_printf(b,
               "{\"summary\":{\"packets\":%llu,\"connections\":%u,\"highest_connection\":%u,\"rules\":%u,\"pass\":%u,"
               "\"inconclusive\":%u,\"fail\":%u,\"warnings\":%u},",
               (unsigned long long)t.packets, t.connections, t.highest, t.rules, t.pass, t.inconclusive, t.fail,
               t.warnings);
    buf_puts(b, "\"assumptions\":");
    buf_json(b, o->assumptions, strlen(o->assumptions));
    buf_puts(b, ",\"findings\":[");
    for (size_t i = 0; i < r->n; i++) {
        buf_puts(b, i ? ",\n" : "\n");
        json_finding(r, o, &r->findings[i], b);
    }
    buf_puts(b, "]}\n");
}

/* --- JUnit ------------------------------------------------------------------------------------ */

static void xml(struct buf *b, const char *s)
{
    for (; *s; s++)
        switch (*s) {
        case '<':
            buf_puts(b, "&lt;");
            break;
        case '>':
            buf_puts(b, "&gt;");
            break;
        case '&':
            buf_puts(b, "&amp;");
            break;
        case '"':
            buf_puts(b, "&quot;");
            break;
        default:
            buf_char(b, (unsigned char)*s < ' ' && *s != '\n' ? '?' : *s);
        }
}

/* Begin the element with a rule's failure: the headline of its first finding with the worst verdict. */
static void junit_message(const struct findings *r, unsigned rule, enum worst w, struct buf *b)
{
    enum severity severity = w == WORST_FAIL ? SEV_E : SEV_W;
    struct buf t = {0};

    for (size_t i = 0; i < r->n && !t.len; i++) {
        const struct finding *f = &r->findings[i];
        if (f->rule == rule && f->severity != SEV_I &&
            (w == WORST_UNSURE ? f->result == V_INCONCLUSIVE : f->result == V_FAIL && f->severity == severity))
            findings_headline(r, f, &t);
    }
    if (w == WORST_UNSURE)
        buf_puts(b, "\"><skipped message=\"inconclusive: ");
    else
        buf_printf(b, "\"><failure type=\"%s\" message=\"%s: ", severity_str(severity), severity_str(severity));
    xml(b, buf_str(&t));
    buf_puts(b, w == WORST_UNSURE ? "\"/><system-out>" : "\">");
    buf_free(&t);
}

static void junit_case(const struct findings *r, const struct findings_opts *o, unsigned rule, struct buf *b)
{
    enum worst w = worst_of(r, rule);
    struct buf t = {0};

    buf_printf(b, "  <testcase classname=\"rdmatrace.check\" name=\"%s ", rule_table[rule].id);
    xml(b, rule_table[rule].meaning);
    if (w == WORST_PASS) {
        buf_puts(b, "\"/>\n");
        return;
    }
    junit_message(r, rule, w, b);
    for (size_t i = 0; i < r->n; i++)
        if (r->findings[i].rule == rule && r->findings[i].severity != SEV_I)
            finding_print(r, o, &r->findings[i], &t);
    xml(b, buf_str(&t));
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
        if (worst_of(r, i) != WORST_NONE)
            junit_case(r, o, i, b);
    buf_puts(b, "</testsuite>\n");
}
