/* layer 2 (transport): output of the rule catalogue. */
#include "buf.h"
#include "src/transport/rules.h"

/* Groups of rules, by the prefix of their ids. */
static const struct {
    const char *prefix, *title;
} groups[] = {
    {"FMT", "Formats, links, headers"},
    {"SEQ", "Opcodes and lengths of requests"},
    {"RDA", "READ, atomics, memory"},
    {"ACK", "Acknowledgements, message sequence numbers, credits"},
    {"NAK", "Negative acknowledgements"},
    {"RTX", "Retransmission and timers"},
    {"CC", "Congestion"},
    {"CM", "Connection management"},
    {"SVC", "UD, UC, XRC, multicast"},
    {"SEC", "Security"},
    {"IWP", "iWARP"},
    {"CAP", "Captures"},
};

static bool in_group(unsigned rule, const char *prefix)
{
    size_t n = strlen(prefix);

    return strncmp(rule_table[rule].id, prefix, n) == 0 && rule_table[rule].id[n] == '-';
}

void needs_text(struct buf *b, unsigned needs)
{
    const char *sep = "";

    if (!needs)
        buf_puts(b, "nothing but the packet");
    for (unsigned bits = needs; bits; bits &= bits - 1) {
        buf_puts(b, sep);
        buf_puts(b, need_str(bits & -bits));
        sep = ", ";
    }
}

static void put_row(struct buf *b, const struct rule_info *r)
{
    buf_printf(b, "%-7s %-8s %s [%s]\n", r->id, severity_str(r->severity), r->meaning, r->anchor);
}

void catalog_table(struct buf *b)
{
    for (unsigned i = 1; i < RULE_COUNT; i++)
        put_row(b, &rule_table[i]);
}

bool catalog_family(struct buf *b, const char *family)
{
    size_t n = strlen(family);
    bool any = false;

    for (unsigned i = 1; i < RULE_COUNT; i++)
        if (strncasecmp(rule_table[i].id, family, n) == 0 && rule_table[i].id[n] == '-') {
            put_row(b, &rule_table[i]);
            any = true;
        }
    return any;
}

static void json_pair(struct buf *b, const char *key, const char *value)
{
    buf_printf(b, "\"%s\":", key);
    buf_json(b, value, strlen(value));
    buf_char(b, ',');
}

void catalog_json(struct buf *b)
{
    buf_puts(b, "[\n");
    for (unsigned i = 1; i < RULE_COUNT; i++) {
        const struct rule_info *r = &rule_table[i];
        const char *sep = "";
        buf_puts(b, "{");
        json_pair(b, "rule", r->id);
        json_pair(b, "severity", severity_str(r->severity));
        json_pair(b, "source", r->anchor);
        json_pair(b, "meaning", r->meaning);
        json_pair(b, "how", r->how);
        json_pair(b, "example", r->example);
        buf_puts(b, "\"needs\":[");
        for (unsigned bits = r->needs; bits; bits &= bits - 1, sep = ",")
            buf_printf(b, "%s\"%s\"", sep, need_str(bits & -bits));
        buf_puts(b, i + 1 < RULE_COUNT ? "]},\n" : "]}\n");
    }
    buf_puts(b, "]\n");
}

void catalog_rule(struct buf *b, enum rule rule)
{
    const struct rule_info *r = &rule_table[rule];

    buf_printf(b, "%s: %s\n\n  severity  %s\n  source    %s\n  needs     ", r->id, r->meaning,
               severity_str(r->severity), r->anchor);
    needs_text(b, r->needs);
    buf_printf(b, "\n\n%s\n", r->how);
    buf_printf(b, "\nExample: %s\n", r->example);
    if (r->severity == SEV_I)
        buf_puts(b, "\nThis is an observation: it is shown as a note and never fails.\n");
    else
        buf_puts(b, "\nA failure for which a need is missing is inconclusive.\n");
}

#define MAN_COLUMNS 78

/* Write a word of a manual page: escape backslashes, and a dot or quote at the beginning of a line. */
static void man_word(struct buf *b, const char *w, size_t n, bool first)
{
    if (first && (*w == '.' || *w == '\''))
        buf_puts(b, "\\&");
    for (size_t i = 0; i < n; i++)
        if (w[i] == '\\')
            buf_puts(b, "\\e");
        else
            buf_char(b, w[i]);
}

/* Write text of a manual page: short lines, each sentence begins on a new one. */
static void man_text(struct buf *b, const char *s)
{
    size_t column = 0;

    while (*s) {
        size_t n = strcspn(s, " ");
        bool end = n && strchr(".:;?", s[n - 1]);
        if (column && column + 1 + n > MAN_COLUMNS) {
            buf_char(b, '\n');
            column = 0;
        }
        if (column)
            buf_char(b, ' ');
        man_word(b, s, n, column == 0);
        column += n + 1;
        s += n;
        s += *s == ' ';
        if (end && *s) {
            buf_char(b, '\n');
            column = 0;
        }
    }
    buf_char(b, '\n');
}

static void man_rule(struct buf *b, unsigned i)
{
    const struct rule_info *r = &rule_table[i];
    struct buf t = {0};

    buf_printf(b, ".It Sy %s Pq %s\n", r->id, severity_str(r->severity));
    buf_printf(&t, "%s.", r->meaning);
    man_text(b, buf_str(&t));
    t.len = 0;
    buf_printf(&t, "Source: %s. Needs: ", r->anchor);
    needs_text(&t, r->needs);
    buf_char(&t, '.');
    man_text(b, buf_str(&t));
    man_text(b, r->how);
    buf_puts(b, "For example:\n");
    man_text(b, r->example);
    buf_free(&t);
}

static const char man_head[] =
    ".\\\" Written by `rdmatrace rules -T man`.\n"
    ".Dd November 21, 2026\n.Dt RDMATRACE-RULES 7\n.Os\n.Sh NAME\n.Nm rdmatrace-rules\n"
    ".Nd the rules that captures of RDMA traffic are judged by\n.Sh DESCRIPTION\n"
    "These are the rules of\n.Xr rdmatrace-check 1 .\n"
    "A rule has a severity: a failure of an\n.Em error\nproves that an end misbehaves;\na\n.Em warning\n"
    "rests on a recommendation, a heuristic or on timing;\na\n.Em note\nis an observation, which has a value and no "
    "verdict.\n"
    ".Pp\nA verdict is pass, fail or inconclusive.\n"
    "A rule states what it needs; a failure for which a need is missing is\ninconclusive, "
    "because what the capture does not show may explain it.\n"
    "The needs are:\n.Bl -bullet -compact\n";
static const char man_middle[] =
    ".El\n.Pp\nA capture is complete, and its tap is at an end, if\n.Xr rdmatrace-check 1\nis told so.\n"
    "Sources named C9-, C10-, C13-, CA17- and the like are compliance statements of\n"
    "the InfiniBand Architecture Specification, volume 1, numbers with dots its\nsections, A11, A14, A16, A17 and A19 "
    "its annexes.\n"
    "The list says of each rule what holds when it is kept, how it is judged, and\nwhat breaks it.\n";

void catalog_man(struct buf *b)
{
    buf_puts(b, man_head);
    for (unsigned n = N_REQ; n <= N_CLOCK; n <<= 1)
        buf_printf(b, ".It\n%s\n", need_str(n));
    buf_puts(b, man_middle);
    for (unsigned g = 0; g < ARRAY_LEN(groups); g++) {
        buf_printf(b, ".Ss %s\n.Bl -tag -width Ds\n", groups[g].title);
        for (unsigned i = 1; i < RULE_COUNT; i++)
            if (in_group(i, groups[g].prefix))
                man_rule(b, i);
        buf_puts(b, ".El\n");
    }
    buf_puts(b, ".Sh SEE ALSO\n.Xr rdmatrace-check 1 ,\n.Xr rdmatrace-rules 1\n");
}
