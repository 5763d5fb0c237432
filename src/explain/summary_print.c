/* layer 3 (explain): the ten lines above the statements, and the heading of a statement about several incidents. */
#include "src/explain/congestion/congestion.h"
#include "src/explain/explain_impl.h"

#include <ctype.h>

#define TABLE_ROWS  6
#define WORST_SHOWN 3
#define WORST_LEAST (10 * NS_PER_US) /* shorter incidents are not listed as worst */
/* Columns of the table. */
#define LOST_WIDTH  10
#define SHARE_WIDTH 9
#define COUNT_WIDTH 8
#define CAUSE_WIDTH 36 /* of a cause and its place, where there is room */
#define WORST_HEAD  "worst connection"

static double percent(ns_t part, ns_t all)
{
    return all > 0 ? 100.0 * (double)part / (double)all : 0;
}

/* " (12.3 %)"; nothing for a negligible part. */
static void put_share(struct buf *b, ns_t part, ns_t all)
{
    double p = percent(part, all);

    if (p >= 0.1)
        buf_printf(b, " (%.*f %%)", p < 99.95 ? 1 : 0, p);
}

/* "85 %"; "almost 100 %" if other causes took the rest. */
static void put_part(struct buf *b, ns_t part, ns_t all)
{
    double p = percent(part < all ? part : all, all);

    buf_printf(b, "%s%.0f %%", part < all && p >= 99.5 ? "almost " : "", p);
}

/* How certain the cause is, by the worst incident: "most likely "; nothing if it is certain. */
static const char *certainty_of(const struct group *g, const struct explainer *x)
{
    static const char *const words[] = {[CERTAIN] = "", [PROBABLE] = "most likely ", [POSSIBLE] = "possibly "};

    return words[x->incidents[g->of[0]].certainty];
}

static void put_cause(struct buf *b, const struct group *g)
{
    buf_puts(b, cause_table[g->cause].name);
    place_put(b, (enum place)g->place, g->passed, g->missed);
    place_tap_put(b, g->at);
}

/* The host that an incident about no connection is about: who refuses one, or who does not answer. */
static const struct conn_addr *host_of(const struct incident *i)
{
    return i->cause == CAUSE_NO_SUCH_SERVICE || i->cause == CAUSE_CM_REJECT ? &i->src : &i->dst;
}

/* " on 3 connections"; or the host, if a failure is about several at once. */
static void put_where(struct buf *b, const struct group *g, const struct explainer *x)
{
    const struct conn_addr *host = host_of(&x->incidents[g->of[0]]);

    if (g->conns) {
        buf_printf(b, " on %s", count_str(g->conns, "connection"));
    } else if (explain_has_address(host)) {
        buf_puts(b, ": ");
        conn_addr_put(b, host);
    }
}

/* "17 s of 17.1 s of 6 connections together (99.4 %) were lost on 2 of them, 85 % of that most likely to packet-loss.";
 * "of the 12 directions of 6 connections together (99.4 %) were lost on 2 of them".
 * `part`: a part of the time was selected. */
static void put_lost(const struct summary *s, const struct explainer *x, const struct group *worst, bool part,
                     struct buf *b)
{
    bool several = !part && s->conns > 1, both = !part && s->both;

    buf_rounded(b, s->lost);
    if (!part) {
        buf_puts(b, " of ");
        buf_rounded(b, s->time);
        if (both)
            buf_printf(b, " of the %u directions of %s together", s->conns + s->both,
                       count_str(s->conns, "connection"));
        else if (several)
            buf_printf(b, " of %u connections together", s->conns);
        put_share(b, s->lost, s->time);
    }
    buf_puts(b, " were lost");
    if (several)
        buf_printf(b, " on %u of them", s->hit);
    if (worst->bill) {
        buf_puts(b, ", ");
        put_part(b, worst->bill, s->lost);
        buf_printf(b, " of that %sto ", certainty_of(worst, x));
        put_cause(b, worst);
    }
    buf_char(b, '.');
}

/* Nothing waits for what unreliable connections lose. */
static void put_messages(const struct group *g, const struct explainer *x, struct buf *b)
{
    buf_printf(b, "No time was lost, but at least %s of unreliable connections, which repeat nothing: %s",
               count_str(g->messages ? g->messages : 1, "message"), certainty_of(g, x));
    put_cause(b, g);
    put_where(b, g, x);
    buf_char(b, '.');
}

/* What was noticed cost nothing. */
static void put_harmless(const struct summary *s, const struct explainer *x, struct buf *b)
{
    buf_printf(b, "Neither a failure nor lost time was seen, but %s", certainty_of(&s->groups[0], x));
    put_cause(b, &s->groups[0]);
    put_where(b, &s->groups[0], x);
    if (s->n > 1)
        buf_printf(b, ", and %s", count_str(s->n - 1, "more kind"));
    buf_char(b, '.');
}

/* Lost messages of connection management: that time is none of a connection yet. */
static void put_setup(const struct summary *s, struct buf *b)
{
    buf_puts(b, "Connection management waited ");
    buf_rounded(b, s->setup);
    buf_printf(b, " for answers to messages that it retransmitted (%s).", cause_table[CAUSE_CM_TIMEOUT].name);
}

/* Refusals that are told behind the time that was lost: "Besides, no-such-service: 10.0.0.1.". */
static void put_minor(const struct group *g, const struct explainer *x, struct buf *b)
{
    buf_puts(b, "Besides, ");
    put_cause(b, g);
    put_where(b, g, x);
    buf_char(b, '.');
}

/* A sentence follows others. */
static void put_space(struct buf *b, size_t begin)
{
    if (b->len > begin && b->p[b->len - 1] != ' ')
        buf_char(b, ' ');
}

void summary_verdict(const struct summary *s, const struct explainer *x, const struct explain_opts *o, struct buf *b)
{
    const struct group *worst = &s->groups[0], *failed = &s->groups[0];
    size_t begin = b->len;
    bool setup_first;

    for (uint32_t i = 1; i < s->n; i++) {
        if (s->groups[i].bill > worst->bill)
            worst = &s->groups[i];
        if (s->groups[i].failure > failed->failure)
            failed = &s->groups[i];
    }
    setup_first = s->setup > worst->bill && !failed->failure;
    if (failed->failure) {
        buf_puts(b, certainty_of(failed, x));
        put_cause(b, failed);
        if (*certainty_of(failed, x) && b->len > begin)
            b->p[begin] = (char)toupper(b->p[begin]);
        put_where(b, failed, x);
        buf_puts(b, s->lost ? "; " : ".");
    }
    if (setup_first)
        put_setup(s, b);
    put_space(b, begin);
    if (s->lost)
        put_lost(s, x, worst, o->since || o->until, b);
    else if (s->groups[0].missing && !failed->failure)
        put_messages(&s->groups[0], x, b);
    else if (!failed->failure && !s->setup)
        put_harmless(s, x, b);
    for (uint32_t i = 0; i < s->n; i++)
        if (x->incidents[s->groups[i].of[0]].minor) {
            put_space(b, begin);
            put_minor(&s->groups[i], x, b);
        }
    if (s->setup && !setup_first) {
        put_space(b, begin);
        put_setup(s, b);
    }
}

/* "1: 10.0.0.1 > 10.0.0.2"; the addresses alone if it is not about one connection; the port that sends pause frames. */
static void put_end(struct buf *b, const struct incident *i)
{
    bool pauses = i->cause == CAUSE_PAUSE || i->cause == CAUSE_PAUSE_STORM;

    if (!explain_has_address(&i->dst) && pauses && i->n_facts) {
        explain_mac_put(b, i->facts[0].address);
        return;
    }
    if (!explain_has_address(&i->dst)) {
        buf_char(b, '-');
        return;
    }
    if (i->conn)
        buf_printf(b, "%u: ", i->conn);
    conn_addr_put(b, explain_has_address(&i->src) ? &i->src : &i->dst);
    if (!explain_has_address(&i->src))
        return;
    buf_puts(b, " > ");
    conn_addr_put(b, &i->dst);
}

/* --- The table -------------------------------------------------------------------------------- */

/* Columns of the table: those that fit the terminal. */
struct layout {
    unsigned cause; /* width */
    bool share, count, worst;
};

static unsigned cell_width(void (*put)(struct buf *b, const struct group *g, const struct explainer *x),
                           const struct summary *s, const struct explainer *x, uint32_t rows, const char *head)
{
    unsigned width = (unsigned)strlen(head);
    struct buf cell = {0};

    for (uint32_t i = 0; i < rows; i++) {
        cell.len = 0;
        put(&cell, &s->groups[i], x);
        width = cell.len > width ? (unsigned)cell.len : width;
    }
    buf_free(&cell);
    return width;
}

static void put_cause_cell(struct buf *b, const struct group *g, const struct explainer *x)
{
    (void)x;
    put_cause(b, g);
}

static void put_worst_cell(struct buf *b, const struct group *g, const struct explainer *x)
{
    put_end(b, &x->incidents[g->of[0]]);
}

static unsigned table_width(const struct layout *l, unsigned worst)
{
    return LOST_WIDTH + (l->share ? SHARE_WIDTH : 0) + (l->count ? COUNT_WIDTH : 0) + 2 + l->cause +
           (l->worst ? 1 + worst : 0);
}

/* A narrow terminal first narrows the causes, then drops the worst connections, the counts and the shares. */
static struct layout layout_of(const struct summary *s, const struct explainer *x, uint32_t rows, unsigned columns)
{
    unsigned worst = cell_width(put_worst_cell, s, x, rows, WORST_HEAD),
             cause = cell_width(put_cause_cell, s, x, rows, "cause");
    struct layout l = {
        .cause = cause >= CAUSE_WIDTH ? cause + 1 : CAUSE_WIDTH, .share = true, .count = true, .worst = true};

    if (table_width(&l, worst) > columns)
        l.cause = cause;
    l.worst = table_width(&l, worst) <= columns;
    l.count = table_width(&l, worst) <= columns;
    l.share = table_width(&l, worst) <= columns;
    return l;
}

/* The cause, with its place in a line of its own if both do not fit one line. */
static void put_cause_wrapped(struct buf *b, const struct group *g, const struct layout *l, unsigned columns)
{
    struct buf cell = {0};
    size_t name = strlen(cause_table[g->cause].name);

    put_cause(&cell, g);
    if (l->worst)
        buf_printf(b, "%-*s ", (int)l->cause, buf_str(&cell));
    else if (cell.len > name && table_width(l, 0) - l->cause + cell.len > columns)
        buf_printf(b, "%s\n%*s%s", cause_table[g->cause].name, LOST_WIDTH + 2, "", buf_str(&cell) + name + 1);
    else
        buf_puts(b, buf_str(&cell));
    buf_free(&cell);
}

static void put_row(const struct group *g, const struct explainer *x, const struct layout *l, ns_t all,
                    unsigned columns, struct buf *b)
{
    struct buf cell = {0};

    buf_rounded(&cell, g->bill ? g->bill : g->setup);
    buf_printf(b, "%*s", LOST_WIDTH, g->bill || g->setup ? buf_str(&cell) : "-");
    if (l->share && g->setup) /* of no connection's time */
        buf_printf(b, " %*s", SHARE_WIDTH - 1, "-");
    else if (l->share)
        buf_printf(b, " %*.1f %%", SHARE_WIDTH - 3, percent(g->bill, all));
    if (l->count)
        buf_printf(b, " %*llu", COUNT_WIDTH - 1, (unsigned long long)g->count);
    buf_puts(b, "  ");
    put_cause_wrapped(b, g, l, columns);
    if (l->worst)
        put_worst_cell(b, g, x);
    buf_char(b, '\n');
    buf_free(&cell);
}

static void put_table(const struct summary *s, const struct explainer *x, const struct explain_opts *o, struct buf *b)
{
    unsigned columns = explain_columns(o);
    uint32_t rows = o->verbose || s->n < TABLE_ROWS ? s->n : TABLE_ROWS;
    struct layout l = layout_of(s, x, rows, columns);
    ns_t all = o->since || o->until ? s->lost : s->time;

    buf_printf(b, "\n%*s", LOST_WIDTH, "lost");
    if (l.share)
        buf_printf(b, " %*s", SHARE_WIDTH - 1, "share");
    if (l.count)
        buf_printf(b, " %*s", COUNT_WIDTH - 1, "count");
    buf_printf(b, l.worst ? "  %-*s %s\n" : "  cause\n", (int)l.cause, "cause", WORST_HEAD);
    for (uint32_t i = 0; i < rows; i++)
        put_row(&s->groups[i], x, &l, all, columns, b);
    if (s->n > rows)
        buf_printf(b, "%*s%s: -v shows %s\n", (int)(table_width(&l, 0) - l.cause - l.worst), "",
                   count_str(s->n - rows, "more kind"), s->n - rows == 1 ? "it" : "them");
}

/* Put `m` among the worst ones, in their order. */
static void take_moment(struct moment *worst, struct moment m)
{
    for (unsigned k = 0; k < WORST_SHOWN; k++)
        if (m.bill > worst[k].bill) {
            struct moment moved = worst[k];
            worst[k] = m;
            m = moved;
        }
}

static void put_moment(const struct moment *m, const struct explain_opts *o, struct buf *b)
{
    struct buf line = {0};

    o->put_time(o->user, &line, m->at);
    buf_puts(&line, "  ");
    buf_rounded(&line, m->bill);
    buf_printf(&line, ", %s", cause_table[m->of->cause].name);
    if (m->of->n_frames)
        buf_printf(&line, ", frame %u", m->of->frames[0]);
    if (m->of->n_frames && o->n_files > 1)
        buf_printf(&line, " in file %u", m->of->files[0] + 1u);
    buf_paragraph(b, buf_str(&line), 2, explain_columns(o));
    buf_free(&line);
}

/* The most expensive episodes, of each incident one. */
static void put_worst(const struct summary *s, const struct explainer *x, const struct explain_opts *o, struct buf *b)
{
    struct moment worst[WORST_SHOWN] = {0};
    unsigned n = 0;

    for (uint32_t g = 0; g < s->n; g++)
        for (uint32_t i = 0; i < s->groups[g].n; i++)
            take_moment(worst, incident_worst(&x->incidents[s->groups[g].of[i]], o));
    while (n < WORST_SHOWN && worst[n].bill >= WORST_LEAST)
        n++;
    if (!n || !o->put_time)
        return;
    buf_printf(b, "Worst moment%s:\n", n == 1 ? "" : "s");
    for (unsigned k = 0; k < n; k++)
        put_moment(&worst[k], o, b);
}

void summary_put(const struct summary *s, const struct explainer *x, const struct explain_opts *o, struct buf *b)
{
    struct buf verdict = {0};

    if (!s->n)
        return;
    summary_verdict(s, x, o, &verdict);
    buf_paragraph(b, buf_str(&verdict), 0, explain_columns(o));
    buf_free(&verdict);
    put_table(s, x, o, b);
    put_worst(s, x, o, b);
    buf_char(b, '\n');
}

/* "20.5 ms", or "3 us to 20.5 ms", if the two do not read alike. */
static void put_range(struct buf *b, ns_t least, ns_t most)
{
    struct buf first = {0}, last = {0};

    buf_rounded(&first, least);
    buf_rounded(&last, most);
    buf_puts(b, buf_str(&first));
    if (strcmp(buf_str(&first), buf_str(&last)) != 0)
        buf_printf(b, " to %s", buf_str(&last));
    buf_free(&first);
    buf_free(&last);
}

/* ", 10.0.0.1 > 10.0.0.2", ", between 10.0.0.1 and 10.0.0.2", ", all from 10.0.0.1 to 3 hosts", ", all to 10.0.0.2 from
 * 12 hosts (10 of them within 1 ms, as in an incast)", ", from 12 hosts to 3".
 */
static void put_spread(struct buf *b, const struct group *g, const struct incident *one)
{
    if (!g->srcs || !g->dsts)
        return;
    if (g->two) {
        buf_puts(b, ", between ");
        conn_addr_put(b, &one->src);
        buf_puts(b, " and ");
        conn_addr_put(b, &one->dst);
        return;
    }
    buf_puts(b, g->srcs > 1 && g->dsts > 1 ? ", " : g->dsts > 1 ? ", all from " : g->srcs > 1 ? ", all to " : ", ");
    if (g->srcs > 1 && g->dsts > 1) {
        buf_printf(b, "from %u hosts to %u", g->srcs, g->dsts);
        return;
    }
    conn_addr_put(b, g->srcs > 1 ? &one->dst : &one->src);
    if (g->srcs == 1 && g->dsts == 1) {
        buf_puts(b, " > ");
        conn_addr_put(b, &one->dst);
    } else {
        buf_printf(b, g->srcs > 1 ? " from %u hosts" : " to %u hosts", g->srcs > 1 ? g->srcs : g->dsts);
        if (g->met >= INCAST_HOSTS)
            buf_printf(b, " (%u of them within 1 ms, as in an incast)", g->met);
    }
}

void group_put(const struct group *g, const struct explainer *x, const struct explain_opts *o, struct buf *b)
{
    struct buf line = {0};

    put_cause(&line, g);
    buf_printf(&line, ": %s", count_str(g->count, "time"));
    if (g->conns)
        buf_printf(&line, " on %s", count_str(g->conns, "connection"));
    put_spread(&line, g, &x->incidents[g->of[0]]);
    if (g->bill) {
        buf_puts(&line, ", ");
        buf_rounded(&line, g->bill);
        buf_puts(&line, " lost (");
        put_range(&line, g->least, g->most);
        buf_puts(&line, " each)");
    }
    buf_paragraph(b, buf_str(&line), 0, explain_columns(o));
    if (o->put_time) {
        line.len = 0;
        buf_puts(&line, "from ");
        o->put_time(o->user, &line, g->first);
        buf_puts(&line, " to ");
        o->put_time(o->user, &line, g->last);
        buf_paragraph(b, buf_str(&line), 2, explain_columns(o));
    }
    buf_free(&line);
}

void bill_put(struct buf *b, ns_t all, const ns_t states[TIME_STATES])
{
    const char *sep = ": ";

    buf_rounded(b, all);
    for (unsigned i = 0; i < TIME_STATES; i++)
        if (states[i] > 0) {
            buf_puts(b, sep);
            buf_rounded(b, states[i]);
            buf_printf(b, " %s", time_state_words((enum time_state)i));
            sep = ", ";
        }
}
