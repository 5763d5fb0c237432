/* layer 3b (tui): connections, verdicts and incidents: the text of flows, check and explain. */
#include "src/tui/tui_impl.h"

#include <stdlib.h>

#define BAR_MIN 20 /* columns of the bar of an account, at least */
/* Rows of connections, and incidents, at most, while packets come: the screen is made often, and a key is not to wait.
 */
#define ROWS_SO_FAR      300
#define INCIDENTS_SO_FAR 100

static void put_time(void *user, struct buf *b, ns_t ts)
{
    const struct tui *t = user;
    struct buf text = {0};

    print_stamp(&text, ts, t->first, t->printer.opts.time == TIME_ABSOLUTE_DATE ? TIME_ABSOLUTE_DATE : TIME_RELATIVE,
                6);
    buf_puts(b, buf_str(&text) + strspn(buf_str(&text), " "));
    buf_puts(b, t->printer.opts.time == TIME_ABSOLUTE_DATE ? "" : " s");
    buf_free(&text);
}

/* --- Connections ------------------------------------------------------------------------------ */

/* Byte behind the `n`-th line end of a text. */
static size_t behind_line(const struct buf *b, size_t n)
{
    size_t at = 0;

    while (n-- && at < b->len) {
        const char *end = memchr(b->p + at, '\n', b->len - at);
        at = end ? (size_t)(end - b->p) + 1 : b->len;
    }
    return at;
}

/* What connections can be sorted by; NULL: as flows lists them. */
static const char *const conn_orders[] = {
    NULL, "bytes", "lost_ns", "retransmitted_packets", "message_latency_p99_ns", "goodput_bps"};

struct meter_row **conns_rows(struct tui *t, size_t *n)
{
    const struct view *v = &t->views[SCREEN_CONNS];
    struct meter_row **rows = malloc((t->n_rows + 1) * sizeof *rows), *other;

    if (!rows)
        return NULL;
    *n = t->n_rows;
    for (size_t i = 0; i < t->n_rows; i++)
        rows[i] = t->rows[i];
    if (conn_orders[v->order])
        rows_sort(rows, t->n_rows, column_find(conn_orders[v->order]));
    for (size_t i = 0; v->inverted && i < t->n_rows / 2; i++) {
        other = rows[i];
        rows[i] = rows[t->n_rows - 1 - i];
        rows[t->n_rows - 1 - i] = other;
    }
    return rows;
}

/* Rows while packets come. */
struct rows_so_far {
    struct meter_row of[ROWS_SO_FAR], *at[ROWS_SO_FAR];
    size_t left_out; /* which had no packets lately */
};

void rows_so_far_free(struct rows_so_far *r)
{
    free(r);
}

static int by_last(const void *a, const void *b)
{
    const struct meter_row *x = *(struct meter_row *const *)a, *y = *(struct meter_row *const *)b;

    return x->last > y->last ? -1 : x->last < y->last;
}

void conns_so_far(struct tui *t)
{
    size_t n;
    struct meter_row **rows = meter_rows(t->analyses.meter, &n);
    ns_t since = 0;

    t->n_rows = 0;
    if (!t->so_far && !(t->so_far = malloc(sizeof *t->so_far)))
        return;
    if (rows && n > ROWS_SO_FAR) {
        qsort(rows, n, sizeof(struct meter_row *), by_last);
        since = rows[ROWS_SO_FAR - 1]->last;
        rows = meter_rows(t->analyses.meter, &n);
    }
    for (size_t i = 0; rows && i < n && t->n_rows < ROWS_SO_FAR; i++)
        if (rows[i]->last >= since) {
            t->so_far->at[t->n_rows] = &t->so_far->of[t->n_rows];
            meter_row_so_far(t->analyses.meter, rows[i], &t->so_far->of[t->n_rows++]);
        }
    t->rows = t->so_far->at;
    t->so_far->left_out = n - t->n_rows;
}

bool none_so_far(const struct tui *t)
{
    const struct meter_totals sums = meter_totals(t->analyses.meter);

    return !t->ended && !sums.counted && !sums.malformed && !conn_counts(observer_conns(t->observer)).conns;
}

void put_so_far(const struct tui *t, struct buf *b, const char *what)
{
    struct buf text = {0};

    if (none_so_far(t))
        buf_puts(&text, t->o.live ? "No RoCE, InfiniBand or iWARP packet has come on this interface so far."
                                  : "No RoCE, InfiniBand or iWARP packet has been read so far.");
    else
        buf_printf(&text, "So far; %s when %s.", what, t->o.live ? "the capture has ended" : "all packets were read");
    buf_paragraph(b, buf_str(&text), 0, t->columns);
    buf_free(&text);
}

/* Append the lines of `text`: a head, a line for each of `rows`, totals; before each row what is wrong with its
 * connection. */
static void put_letters(struct tui *t, struct buf *b, const struct buf *text, struct meter_row *const *rows)
{
    const char *s = text->p, *end = text->p + text->len;
    uint32_t n_letters;
    char *letters = conn_letters(t, &n_letters);

    for (size_t i = 0; s < end; i++) {
        const char *nl = memchr(s, '\n', (size_t)(end - s));
        size_t n = nl ? (size_t)(nl - s) + 1 : (size_t)(end - s);
        char letter = i == 0 ? 'V' : i > t->n_rows ? ' ' : conn_letter(letters, n_letters, rows[i - 1]->conn);
        if (i <= t->n_rows)
            buf_printf(b, "%c ", letter);
        buf_mem(b, s, n);
        s += n;
    }
    free(letters);
}

/* A head, a line for each row, and totals. */
static void conns_print(struct tui *t)
{
    struct lines *l = &t->views[SCREEN_CONNS].lines;
    const struct rows_opts o = {.format = ROWS_TEXT, .width = t->columns - 2};
    struct meter_totals sums = meter_totals(t->analyses.meter);
    size_t at, n;
    struct meter_row **rows = conns_rows(t, &n);
    struct buf text = {0};

    if (!rows)
        return;
    rows_print(&text, &o, rows, t->n_rows, &sums);
    put_letters(t, &l->text, &text, rows);
    buf_free(&text);
    lines_item(l, 0, NULL, LOOK_KEY, false);
    at = behind_line(&l->text, 1);
    for (size_t i = 0; i < t->n_rows; i++) {
        const struct meter_row *r = rows[i];
        const struct spot p = {
            .frame = r->first_frame, .file = (uint16_t)r->file, .conn = (uint32_t)r->conn, .ts = r->first};
        bool trouble = (r->accounted && r->lost) || (!t->ended && r->c.again);
        const char *end = memchr(l->text.p + at, '\n', l->text.len - at);
        lines_item(l, at, &p, trouble ? LOOK_UNSURE : LOOK_NORMAL, trouble);
        at = end ? (size_t)(end - l->text.p) + 1 : l->text.len;
    }
    lines_item(l, at, NULL, LOOK_NOTE, false);
    free(rows);
}

void conns_make(struct tui *t)
{
    if (!t->ended)
        conns_so_far(t);
    conns_print(t);
    if (t->ended)
        return;
    if (t->n_rows && t->so_far->left_out)
        buf_printf(&t->views[SCREEN_CONNS].lines.text, "%s had no packet lately.\n",
                   count_str(t->so_far->left_out, "further row"));
    put_so_far(t, &t->views[SCREEN_CONNS].lines.text, "the time lost is final");
}

/* --- Order ------------------------------------------------------------------------------------- */

/* What is sorted: the connections beside the packets, too. */
static enum screen_id sorted_screen(const struct tui *t)
{
    return t->pane == PANE_CONNS ? SCREEN_CONNS : t->screen;
}

static void sorted(struct tui *t)
{
    enum screen_id s = sorted_screen(t);
    struct view *v = &t->views[s];

    v->made = t->sides[SIDE_CONNS].made = false;
    if (s == SCREEN_CONNS)
        tui_say(t, LOOK_KEY, "sorted by %s%s", conn_orders[v->order] ? conn_orders[v->order] : "connection",
                v->inverted ? ", the other way around" : "");
    else
        tui_say(t, LOOK_KEY, "sorted by %s%s", requests_order_name(v->order),
                v->inverted ? ", the other way around" : "");
    save_changed(t, s);
}

static bool can_sort(struct tui *t)
{
    enum screen_id s = sorted_screen(t);

    if (s == SCREEN_CONNS || s == SCREEN_REQUESTS)
        return true;
    tui_say(t, LOOK_NOTE, "Only connections and requests can be sorted.");
    return false;
}

static void sort_by(struct tui *t, bool back)
{
    enum screen_id s = sorted_screen(t);
    unsigned n = (unsigned)(s == SCREEN_CONNS ? ARRAY_LEN(conn_orders) : REQUEST_ORDERS);
    struct view *v = &t->views[s];

    if (!can_sort(t))
        return;
    v->order = (v->order + (back ? n - 1 : 1)) % n;
    sorted(t);
}

void sort_by_next(struct tui *t)
{
    sort_by(t, false);
}

void sort_by_last(struct tui *t)
{
    sort_by(t, true);
}

void sort_other_way(struct tui *t)
{
    if (!can_sort(t))
        return;
    t->views[sorted_screen(t)].inverted = !t->views[sorted_screen(t)].inverted;
    sorted(t);
}

_Static_assert(RULE_COUNT <= UINT8_MAX && CAUSE_COUNT < UINT8_MAX, "they fit into struct spot");

/* --- Verdicts --------------------------------------------------------------------------------- */

enum look verdict_look(const struct finding *f)
{
    return f->severity == SEV_I                                  ? LOOK_NOTE
           : f->result == V_INCONCLUSIVE || f->severity == SEV_W ? LOOK_UNSURE
                                                                 : LOOK_FAIL;
}

/* What follows in the text is about this finding; `event` as of lines_item(). */
static void add_finding(struct tui *t, const struct finding *f, bool event)
{
    struct lines *l = &t->views[SCREEN_VERDICTS].lines;
    struct spot p = {.file = f->file, .conn = f->conn, .ts = f->ts == FINDING_NO_TIME ? 0 : f->ts};

    p.frame = f->n_frames ? f->frames[0] : f->n_causes ? f->causes[0] : 0;
    p.rule = (uint8_t)f->rule;
    lines_item(l, l->text.len, &p, verdict_look(f), event);
}

bool verdict_is_listed(const struct tui *t, const struct finding *f)
{
    return t->verbose || verdict_look(f) == LOOK_FAIL || (f->severity == SEV_W && f->result == V_FAIL);
}

static bool on_finding(void *user, const struct finding *f)
{
    struct shown_findings *a = user;

    if (!verdict_is_listed(a->t, f) || (a->last && f <= a->last))
        return true;
    a->last = f;
    add_finding(a->t, f, true);
    return true;
}

static void on_undecided(void *user, const struct finding *f)
{
    struct shown_findings *a = user;
    struct lines *l = &a->t->views[SCREEN_VERDICTS].lines;

    a->totals = l->text.len;
    if (f)
        add_finding(a->t, f, false);
    else
        lines_item(l, l->text.len, NULL, LOOK_NORMAL, false);
}

static void put_finding_time(void *user, struct buf *b, ns_t ts)
{
    put_time(((struct shown_findings *)user)->t, b, ts);
}

struct findings_opts verdicts_opts(struct tui *t, struct shown_findings *a)
{
    *a = (struct shown_findings){.t = t};
    return (struct findings_opts){
        .files = t->o.files,
        .n_files = t->o.n_files,
        .ifaces = t->ifaces,
        .assumptions = t->verbose ? "profile strict; tap unknown; a hides notes and inconclusive verdicts"
                                  : "profile strict; tap unknown; a shows notes and inconclusive verdicts",
        .verbose = t->verbose,
        .shows = "the key a",
        .columns = t->columns,
        .user = a,
        .put_time = put_finding_time,
        .wanted = on_finding,
        .undecided = on_undecided};
}

void verdicts_make(struct tui *t)
{
    struct lines *l = &t->views[SCREEN_VERDICTS].lines;
    struct shown_findings a;
    const struct findings_opts o = verdicts_opts(t, &a);

    l->wrap = t->columns;
    if (!none_so_far(t))
        findings_text(judge_findings(t->analyses.judge), &o, &l->text);
    if (t->ended)
        return;
    l->text.len = a.totals; /* nothing is counted yet */
    lines_item(l, a.totals, NULL, LOOK_NOTE, false);
    put_so_far(t, &l->text, "verdicts that need the end, and the totals, come");
}

/* --- Incidents -------------------------------------------------------------------------------- */

/* Called by explain_text() several times for each incident, the last time before it appends the incident. */
static bool on_incident(void *user, const struct incident *i)
{
    struct tui *t = user;
    struct lines *l = &t->views[SCREEN_INCIDENTS].lines;
    struct spot p = {.conn = i->conn, .ts = i->start, .cause = (uint8_t)(i->cause + 1)};
    bool failed = cause_table[i->cause].weight >= WEIGHT_FAILED;

    if (i->number && i->number == t->first_incident)
        l->n_marks = t->marks_above;
    if (i->n_frames) {
        p.frame = i->frames[0];
        p.file = i->files[0];
    }
    lines_item(l, l->text.len, &p, failed ? LOOK_FAIL : i->certainty == CERTAIN ? LOOK_LOST : LOOK_UNSURE, true);
    return true;
}

/* While packets come: what they have shown. */
static void incidents_so_far(struct tui *t, const struct explain_opts *o)
{
    struct lines *l = &t->views[SCREEN_INCIDENTS].lines;
    uint32_t n;

    put_so_far(t, &l->text, "what incidents cost, and what only the end shows, is known");
    if (none_so_far(t))
        return;
    buf_char(&l->text, '\n');
    lines_item(l, 0, NULL, LOOK_NOTE, false);
    n = explain_so_far(t->analyses.explainer, o, INCIDENTS_SO_FAR, &l->text);
    lines_item(l, l->text.len, NULL, LOOK_NOTE, false);
    if (n > INCIDENTS_SO_FAR)
        buf_printf(&l->text, "These are the latest %u of %s.\n", INCIDENTS_SO_FAR, count_str(n, "incident"));
    else if (!n)
        buf_puts(&l->text, "No incident.\n");
}

void incidents_make(struct tui *t)
{
    struct lines *l = &t->views[SCREEN_INCIDENTS].lines;
    const struct explain_opts o = {.all = true,
                                   .columns = t->columns,
                                   .rows = t->lines,
                                   .files = t->o.files,
                                   .n_files = t->o.n_files,
                                   .once = true,
                                   .user = t,
                                   .put_time = put_time,
                                   .wanted = on_incident};

    if (!t->ended) {
        incidents_so_far(t, &o);
        return;
    }
    account_bar(t, &l->text, t->columns);
    lines_item(l, 0, NULL, LOOK_KEY, false);
    t->marks_above = l->n_marks;
    t->first_incident = 0;
    for (size_t i = 0; i < explain_n(t->analyses.explainer) && !t->first_incident; i++)
        if (explain_is_shown(explain_at(t->analyses.explainer, i), 0))
            t->first_incident = explain_at(t->analyses.explainer, i)->number;
    explain_text(t->analyses.explainer, &o, &l->text);
}

/* The letter of a state in the bar. */
static char letter_of(enum time_state s)
{
    static const char letters[TIME_STATES] = {
        [TIME_IDLE] = '.',        [TIME_TRANSFER] = '=',    [TIME_RESPONSE] = '-',
        [TIME_PEER_SLOW] = 'S',   [TIME_READ_DEPTH] = 'D',  [TIME_CREDIT] = 'C',
        [TIME_THROTTLED] = 'T',   [TIME_LOSS_NAK] = 'N',    [TIME_LOSS_RETRANSMISSION] = 'R',
        [TIME_LOSS_RESEND] = 'A', [TIME_ACK_TIMEOUT] = 'O', [TIME_RNR] = 'W',
        [TIME_PAUSED] = 'P',      [TIME_PEER_DEAD] = 'X',   [TIME_GIVEN_UP] = 'G',
        [TIME_CM] = 'm',
    };

    return letters[s] ? letters[s] : '?';
}

/* The bar of an account in `width` columns; append what its letters mean to `legend`. */
static void put_bar(struct buf *b, const struct timeline_row *r, unsigned width, struct buf *legend)
{
    ns_t all = r->last - r->first, so_far = 0;
    unsigned drawn = 0;

    buf_char(b, '[');
    for (unsigned s = 0; s < TIME_STATES && all > 0; s++) {
        unsigned upto;
        so_far += r->states[s];
        upto = (unsigned)((double)width * (double)so_far / (double)all + 0.5);
        for (; drawn < upto && drawn < width; drawn++)
            buf_char(b, letter_of((enum time_state)s));
        if (r->states[s] <= 0)
            continue;
        buf_printf(legend, "%s%c %s ", legend->len ? ", " : "", letter_of((enum time_state)s),
                   time_state_words((enum time_state)s));
        buf_rounded(legend, r->states[s]);
    }
    buf_puts(b, "]\n");
}

/* The account with the most lost time; NULL: there is none. */
static const struct timeline_row *worst_account(const struct timeline *line)
{
    const struct timeline_row *worst = NULL;

    for (size_t i = 0; i < timeline_n(line); i++) {
        const struct timeline_row *r = timeline_row(line, i);
        if (!worst || states_lost(r->states) > states_lost(worst->states))
            worst = r;
    }
    return worst;
}

void account_bar(struct tui *t, struct buf *b, unsigned columns)
{
    const struct timeline *line = observer_timeline(t->observer);
    const struct timeline_row *r = line ? worst_account(line) : NULL;
    struct buf legend = {0};

    if (!r || r->last <= r->first)
        return;
    buf_printf(b, "Connection %u, ", r->conn);
    conn_addr_put(b, &r->src);
    buf_puts(b, " > ");
    conn_addr_put(b, &r->dst);
    buf_puts(b, timeline_n(line) > 1 ? ", the account with the most lost time:\n" : ":\n");
    put_bar(b, r, columns > BAR_MIN + 2 ? columns - 2 : BAR_MIN, &legend);
    buf_paragraph(b, buf_str(&legend), 1, columns);
    buf_char(b, '\n');
    buf_free(&legend);
}
