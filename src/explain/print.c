/* layer 3 (explain): output as text. */
#include "src/explain/compare/taps.h"
#include "src/explain/explain_impl.h"

#include "color.h"

#define ROWS 24 /* of a terminal of unknown height */

/* A sentence, in lines that fit the terminal. */
static void put_lines(const struct explain_opts *o, struct buf *text, unsigned indent, struct buf *b)
{
    buf_paragraph(b, buf_str(text), indent, explain_columns(o));
}

void incident_frames_put(struct buf *b, const struct incident *s, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        buf_printf(b, "%s%u", i ? ", " : "", s->frames[i]);
}

/* "12, 14 in file 1, 9 in file 2". */
static void frames_by_file(struct buf *b, const struct incident *s)
{
    for (unsigned i = 0; i < s->n_frames; i++) {
        buf_printf(b, "%s%u", i ? ", " : "", s->frames[i]);
        if (i + 1 == s->n_frames || s->files[i + 1] != s->files[i])
            buf_printf(b, " in file %u", s->files[i] + 1u);
    }
}

/* The frames of `o`, the same event at another tap, that `s` does not name; false if there are none. */
static bool also_frames(const struct incident *s, const struct incident *o, struct buf *b)
{
    const char *sep = "";

    for (unsigned i = 0; i < o->own; i++)
        if (!incident_has(s, o->tap, o->frames[i])) {
            buf_printf(b, "%s%u", sep, o->frames[i]);
            sep = ", ";
        }
    return *sep;
}

static void also_print(struct explainer *x, const struct explain_opts *opts, const struct incident *s, struct buf *b)
{
    const struct incident *o;

    for (uint32_t i = UINT32_MAX; (o = explain_also(x, s, &i)) != NULL;) {
        struct buf frames = {0}, line = {0};
        if (also_frames(s, o, &frames)) {
            buf_puts(&line, "The same ");
            tap_put(&line, s->tap, o->tap);
            if (o->conn)
                buf_printf(&line, ", connection %u", o->conn);
            buf_printf(&line, ": frame%s %s.", strchr(buf_str(&frames), ',') ? "s" : "", buf_str(&frames));
            put_lines(opts, &line, 4, b);
        }
        buf_free(&frames);
        buf_free(&line);
    }
}

static void cost_print(const struct explain_opts *o, const struct incident *s, struct buf *b)
{
    struct buf text = {0};

    if (!s->again && s->bill <= 0)
        return;
    buf_puts(&text, "Cost: ");
    if (s->bill > 0)
        bill_put(&text, s->bill, s->states);
    if (s->again)
        buf_printf(&text, "%s%s retransmitted", s->bill > 0 ? "; " : "", count_str(s->again, "packet"));
    buf_char(&text, '.');
    put_lines(o, &text, 4, b);
    buf_free(&text);
}

/* "packet-loss after the tap, connection 1, likely, frames 14, 18". */
static void heading_print(const struct explain_opts *o, const struct incident *s, bool example, struct buf *b)
{
    struct buf line = {0};

    buf_printf(&line, "%s%s", example ? "for example " : "", cause_table[s->cause].name);
    place_put(&line, (enum place)s->place, s->passed, s->missed);
    if (s->conn)
        buf_printf(&line, ", connection %u", s->conn);
    if (s->certainty != CERTAIN)
        buf_printf(&line, ", %s", certainty_str((enum certainty)s->certainty));
    if (s->n_frames)
        buf_printf(&line, ", frame%s ", s->n_frames == 1 ? "" : "s");
    if (o->n_files > 1)
        frames_by_file(&line, s);
    else
        incident_frames_put(&line, s, s->n_frames);
    if (s->times)
        buf_printf(&line, " and %u more", s->times);
    if (o->color)
        buf_puts(b, s->certainty == CERTAIN ? COLOR_ALERT : COLOR_YELLOW);
    put_lines(o, &line, example ? 2 : 0, b);
    if (o->color) {
        b->len -= b->len && b->p[b->len - 1] == '\n';
        buf_puts(b, COLOR_RESET "\n");
    }
    buf_free(&line);
}

/* The first sentence of the incident that explains this one. */
static void reason_print(const struct explainer *x, const struct explain_opts *o, const struct incident *s,
                         struct buf *b)
{
    struct buf text = {0};
    struct incident by;

    if (!s->superseded_by)
        return;
    by = x->incidents[s->superseded_by - 1];
    by.n_facts = by.n_facts ? 1 : 0;
    buf_printf(&text, "Explained by %s: ", cause_table[by.cause].name);
    explain_text_of(&by, &text);
    put_lines(o, &text, 4, b);
    buf_free(&text);
}

static void incident_print(struct explainer *x, const struct explain_opts *o, const struct incident *s, bool example,
                           struct buf *b)
{
    struct buf setting = {0}, text = {0};
    size_t at;

    heading_print(o, s, example, b);
    explain_text_of(s, &text);
    put_lines(o, &text, 4, b);
    buf_free(&text);
    also_print(x, o, s, b);
    reason_print(x, o, s, b);
    cost_print(o, s, b);
    buf_puts(&setting, "Setting: ");
    at = setting.len;
    explain_setting(x, s, &setting);
    buf_char(&setting, '.');
    if (setting.len > at + 1)
        put_lines(o, &setting, 4, b);
    buf_free(&setting);
    explain_next(o, s, b);
    buf_char(b, '\n');
}

/* Whether an incident is reported before the end of the capture. */
static bool is_reportable(const struct incident *s)
{
    return s->n_facts && !s->moot;
}

void explain_remarks_put(struct explainer *x, const struct explain_opts *o, struct buf *b)
{
    struct buf more = {0};

    if (o->unread)
        buf_printf(b, "%sNot read to the end: %s.", b->len ? " " : "", o->unread);
    if (!o->conn)
        explain_remarks(x, " ", &more);
    if (more.len)
        buf_printf(b, "%s%s", b->len ? " " : "", buf_str(&more));
    buf_free(&more);
}

static void remarks_print(struct explainer *x, const struct explain_opts *o, struct buf *b)
{
    struct buf text = {0};

    explain_remarks_put(x, o, &text);
    if (text.len)
        put_lines(o, &text, 0, b);
    buf_free(&text);
}

/* Each incident, worst first. */
static void print_all(struct explainer *x, const struct explain_opts *o, struct buf *b)
{
    for (uint32_t i = 0; i < x->n; i++)
        if (explain_is_selected(&x->incidents[i], o))
            incident_print(x, o, &x->incidents[i], false, b);
}

uint32_t explain_so_far(struct explainer *x, const struct explain_opts *o, uint32_t max, struct buf *b)
{
    uint32_t n = 0, at = 0;

    for (uint32_t i = 0; i < x->n; i++)
        n += is_reportable(&x->incidents[i]);
    for (uint32_t i = 0; i < x->n; i++) {
        struct incident now;
        if (!is_reportable(&x->incidents[i]) || at++ + max < n)
            continue;
        now = x->incidents[i];
        now.conn = conn_number_now(observer_conns(x->observer), now.conn);
        if (!o->wanted || o->wanted(o->user, &now))
            incident_print(x, o, &now, false, b);
    }
    return n;
}

static unsigned lines_in(const struct buf *b, size_t from)
{
    unsigned n = 0;

    for (size_t i = from; i < b->len; i++)
        n += b->p[i] == '\n';
    return n;
}

static void print_group(struct explainer *x, const struct explain_opts *o, const struct group *g, struct buf *b)
{
    if (g->n > 1)
        group_put(g, x, o, b);
    incident_print(x, o, &x->incidents[g->of[0]], g->n > 1, b);
}

/* One statement for similar incidents; as many statements as were selected, or fit on the screen. */
static void print_groups(struct explainer *x, const struct explain_opts *o, const struct summary *s, size_t begin,
                         struct buf *b)
{
    unsigned fit = 2 * (o->rows ? o->rows : ROWS), told = 0;
    struct buf text = {0};
    uint32_t n = 0;

    for (; n < s->n && (o->top ? n < o->top : n == 0 || lines_in(b, begin) < fit); n++) {
        size_t at = b->len;
        print_group(x, o, &s->groups[n], b);
        if (!o->top && n && lines_in(b, begin) > fit) {
            b->len = at;
            break;
        }
        told++;
    }
    if (told < s->n)
        buf_printf(&text, "%s: --top %u shows them, --all each incident.", count_str(s->n - told, "more kind"), s->n);
    else if (s->incidents > s->n)
        buf_puts(&text, "--all shows each incident.");
    if (text.len) {
        put_lines(o, &text, 0, b);
        buf_char(b, '\n');
    }
    buf_free(&text);
}

/* Report packets that were not analysed first: whether something went wrong in them is not known. */
static void early_print(const struct explainer *x, const struct explain_opts *o, struct buf *b)
{
    struct buf text = {0};

    explain_early_put(x, &text);
    if (text.len) {
        put_lines(o, &text, 0, b);
        buf_char(b, '\n');
    }
    buf_free(&text);
}

/* Report that the selection (time, filter) matches nothing, and what the capture has. False if that is not the reason.
 */
static bool unselected_put(const struct explainer *x, const struct explain_opts *o, struct buf *b)
{
    bool beyond = x->last && ((o->since && o->since > x->last) || (o->until && o->until < x->first));

    if (!beyond && !o->none_passes)
        return false;
    buf_puts(b, o->none_passes ? "Nothing was selected: no packet of a connection passes the filter. The capture has "
                               : "Nothing was selected: the capture has nothing at that time. It has ");
    conn_number_put(b, conn_number(observer_conns(x->observer)), conn_counts(observer_conns(x->observer)).conns);
    if (o->put_time && x->last) {
        buf_puts(b, " and lasts from ");
        o->put_time(o->user, b, x->first);
        buf_puts(b, " to ");
        o->put_time(o->user, b, x->last);
    }
    buf_char(b, '.');
    return true;
}

/* What explain finds nothing of; whether a host breaks a rule is not asked here. */
#define NOTHING "no failed connection, lost time or lost message; rdmatrace check judges the rules."

static void nothing_put(struct explainer *x, const struct explain_opts *o, struct buf *b)
{
    uint32_t failed = explain_iwarp_failed(x);

    if (!x->rdma_packets)
        explain_foreign_put(x, b);
    else if (x->unknown == x->rdma_packets)
        buf_printf(b, "None of %s has an opcode that is defined: nothing in them was analysed.",
                   count_str(x->unknown, "RDMA packet"));
    else if (failed && !x->n)
        buf_printf(b, "%s failed, as the remarks say; otherwise the capture shows " NOTHING,
                   count_str(failed, "iWARP connection"));
    else if (!unselected_put(x, o, b))
        buf_printf(b, "%s shows " NOTHING,
                   x->n && (o->since || o->until || o->wanted) ? "What was asked for"
                   : x->early.packets                          ? "The rest of the capture"
                                                               : "The capture");
}

/* True if no packet of the capture had its ICRC inserted yet: nothing else is reported then. */
static bool is_early(const struct explainer *x)
{
    return x->early.packets && x->early.packets == x->rdma_packets;
}

static void nothing_print(struct explainer *x, const struct explain_opts *o, struct buf *b)
{
    struct buf text = {0};

    if (is_early(x))
        return;
    nothing_put(x, o, &text);
    put_lines(o, &text, 0, b);
    buf_free(&text);
}

/* "File 1 is a.pcapng, 2 b.pcapng." */
static void files_print(const struct explain_opts *o, struct buf *b)
{
    struct buf text = {0};

    if (o->n_files < 2)
        return;
    for (size_t i = 0; i < o->n_files; i++) {
        buf_printf(&text, i ? ", %zu " : "File %zu is ", i + 1);
        buf_printable(&text, o->files[i], strlen(o->files[i]));
    }
    buf_char(&text, '.');
    put_lines(o, &text, 0, b);
    buf_free(&text);
}

/* The last line: what was read, and found. */
static void end_print(struct explainer *x, const struct explain_opts *o, const struct summary *s, struct buf *b)
{
    struct buf text = {0};

    files_print(o, b);
    buf_printf(&text, "%s, %llu of them RDMA, ", count_str(x->packets, "packet"), (unsigned long long)x->rdma_packets);
    conn_number_put(&text, conn_number(observer_conns(x->observer)), conn_counts(observer_conns(x->observer)).conns);
    buf_printf(&text, "; %s", count_str(s->incidents, "incident"));
    if (s->count != s->incidents)
        buf_printf(&text, ", %s in all", count_str(s->count, "time"));
    put_lines(o, &text, 0, b);
    buf_free(&text);
}

void explain_text(struct explainer *x, const struct explain_opts *o, struct buf *b)
{
    size_t begin = b->len;
    struct summary s;

    if (!summary_make(&s, x, o)) {
        summary_free(&s);
        buf_puts(b, "Out of memory.\n");
        return;
    }
    early_print(x, o, b);
    summary_put(&s, x, o, b);
    if (o->all)
        print_all(x, o, b);
    else
        print_groups(x, o, &s, begin, b);
    if (x->more)
        buf_printf(b, "%llu more were not kept.\n", (unsigned long long)x->more);
    if (!s.incidents)
        nothing_print(x, o, b);
    remarks_print(x, o, b);
    explain_clocks_put(x, o, b);
    explain_marking_put(x, o, b);
    if (o->more)
        o->more(o->user, b);
    end_print(x, o, &s, b);
    summary_free(&s);
}

void explain_verdict(struct explainer *x, const struct explain_opts *o, struct buf *b)
{
    struct summary s;

    if (!summary_make(&s, x, o))
        b->err = true;
    else if (s.n)
        summary_verdict(&s, x, o, b);
    else if (is_early(x))
        explain_early_put(x, b);
    else
        nothing_put(x, o, b);
    summary_free(&s);
}

void explain_causes(struct buf *b)
{
    for (unsigned i = 0; i < CAUSE_COUNT; i++) {
        buf_printf(b, "%s\n", cause_table[i].name);
        buf_paragraph(b, cause_table[i].meaning, 4, 100);
        buf_puts(b, "    Look at: ");
        buf_printf(b, "%s.\n", cause_table[i].next);
    }
}
