/* layer 3 (commands): which commands of upper protocols took long, and what they waited for. */
#include "src/commands/delays.h"

#include "src/commands/failures.h"
#include "src/commands/refusals.h"
#include "src/commands/waits.h"

#include <stdlib.h>

#define SHOWN      5                /* commands in text */
#define DELAY_MIN  (10 * NS_PER_US) /* a shorter wait is not reported */
#define USUAL_MIN  8                /* commands of a kind before its usual time is known */
#define SLOW_TIMES 8                /* slow is what takes so many times the usual time */
#define AS_USUAL   20               /* as usual is what takes longer by less than this part of the usual time */

/* A command that is kept. */
struct delay {
    struct ulp_command c; /* only its numbers, frames and times are valid */
    struct waited waited;
    ns_t timer; /* waits_like_loss() */
    ns_t cost;  /* by which it is kept */
    uint32_t conn, tap;
    const struct hist *usual;
    const struct incident *incident; /* that explains it; NULL: none */
    char *text;                      /* protocol and command; NULL: the place is free */
};

struct kept {
    struct delay of[DELAYS_KEPT];
    unsigned n;
};

struct delays {
    struct observer *observer;
    struct explainer *explainer;
    struct timeline *timeline;
    const struct delays_opts *opts;
    struct ulp *ulp;
    struct command_sums sums;
    struct kept lost, slow;
    struct refusals refusals;
    struct failures failures;
    struct delay *worst[2 * DELAYS_KEPT]; /* after delays_end() */
    unsigned n_worst;
    unsigned shown_failures;
    uint64_t n, failed, unanswered, unseen, delayed; /* unseen: of those unanswered */
    ns_t lost_ns;
    struct waited lost_for; /* of `lost_ns`: what they waited for */
    uint32_t first_tap;     /* with n */
    bool taps;              /* there are commands of several taps */
    bool no_memory;
};

/* --- While packets pass ----------------------------------------------------------------------- */

static void on_timed(void *user, struct ulp_command *c)
{
    const struct delays *d = user;

    waits_timed(d->timeline, c);
}

/* Until its response came again, if it did. */
static ns_t repeat_of(const struct ulp_command *c)
{
    return c->response_again && c->end_again > c->end ? c->end_again - c->end : 0;
}

/* Keep a command if it costs more than the cheapest one that is kept. */
static void keep(struct delays *d, struct kept *k, const struct delay *one)
{
    struct buf text = {0};
    unsigned at = 0;

    if (k->n < DELAYS_KEPT) {
        at = k->n++;
    } else {
        for (unsigned i = 1; i < k->n; i++)
            at = k->of[i].cost < k->of[at].cost ? i : at;
        if (k->of[at].cost >= one->cost)
            return;
    }
    free(k->of[at].text);
    k->of[at] = *one;
    buf_printf(&text, "%s ", ulp_name(one->c.proto));
    ulp_command_text(&text, &one->c);
    d->no_memory |= !(k->of[at].text = strdup(buf_str(&text)));
    buf_free(&text);
}

static bool is_selected(const struct delays *d, const struct ulp_command *c, uint32_t conn)
{
    ns_t end = c->response ? c->end + repeat_of(c) : c->start;

    return (!d->opts->conn || conn == d->opts->conn) && (!*d->opts->since || end >= *d->opts->since) &&
           (!*d->opts->until || c->start <= *d->opts->until);
}

static void on_over(void *user, const struct ulp_command *c)
{
    struct delays *d = user;
    struct delay one = {.c = *c, .conn = conn_number_now(observer_conns(d->observer), c->conn)};
    ns_t took = c->end - c->start;

    if (!is_selected(d, c, one.conn))
        return;
    if (c->flow != FLOW_NONE && !c->stream)
        one.tap = conn_flow_at(observer_conns(d->observer), c->flow)->tap;
    d->first_tap = d->n++ ? d->first_tap : one.tap;
    d->taps |= one.tap != d->first_tap;
    d->failed += c->ended == ULP_COMPLETED && c->failed;
    d->unanswered += !c->response;
    d->unseen += c->unseen;
    refusals_add(&d->refusals, c, one.conn, one.tap);
    failures_add(&d->failures, c, one.conn, one.tap);
    d->no_memory |= !(one.usual = command_sums_add(&d->sums, c));
    if (!one.usual || !c->response || took < 0 || c->headless)
        return;
    one.waited = waits_of(c);
    one.timer = waits_like_loss(observer_conns(d->observer), c);
    one.cost = ns_sum(waits_lost(&one.waited), repeat_of(c));
    if (one.cost >= DELAY_MIN) {
        d->delayed++;
        d->lost_ns = ns_sum(d->lost_ns, one.cost);
        for (unsigned i = 0; i < WAITS_LOST; i++)
            d->lost_for.of[i] = ns_sum(d->lost_for.of[i], one.waited.of[i]);
        keep(d, &d->lost, &one);
    }
    one.cost = took - (one.usual->n < USUAL_MIN ? 0 : hist_permille(one.usual, 500));
    if (one.cost >= DELAY_MIN)
        keep(d, &d->slow, &one);
}

struct delays *delays_new(struct observer *o, struct explainer *x, const struct delays_opts *opts)
{
    struct delays *d = calloc(1, sizeof *d);
    struct ulp_opts u = {.users = &opts->users, .user = d, .over = on_over, .timed = on_timed};

    if (!d)
        return NULL;
    d->observer = o;
    d->explainer = x;
    d->opts = opts;
    if (!(d->timeline = timeline_of(o)) || !(d->ulp = ulp_new(o, &u, false))) {
        delays_free(d);
        return NULL;
    }
    return d;
}

void delays_free(struct delays *d)
{
    if (!d)
        return;
    ulp_free(d->ulp);
    command_sums_free(&d->sums);
    refusals_free(&d->refusals);
    failures_free(&d->failures);
    for (unsigned i = 0; i < DELAYS_KEPT; i++) {
        free(d->lost.of[i].text);
        free(d->slow.of[i].text);
    }
    free(d);
}

/* --- At the end ------------------------------------------------------------------------------- */

/* The usual time of its kind; 0: not known. */
static ns_t usual_of(const struct delay *one)
{
    return one->usual->n < USUAL_MIN ? 0 : hist_permille(one->usual, 500);
}

/* How much of [from, to) an incident explains that is about this connection, or about several: what it covers, at most
 * what it costs. One that gathers short waits covers long times between them. */
static ns_t overlap(const struct incident *i, uint32_t conn, ns_t from, ns_t to)
{
    ns_t a = i->episodes ? i->from : i->start, b = i->stop > a ? i->stop : a;

    if ((i->conn && i->conn != conn) || !i->bill)
        return 0;
    a = a > from ? a : from;
    b = b < to ? b : to;
    return b - a < i->bill ? b - a : i->bill;
}

static void find_incident(const struct delays *d, struct delay *one)
{
    ns_t to = one->c.end + repeat_of(&one->c), most = 0;

    for (size_t i = 0; i < explain_n(d->explainer); i++) {
        const struct incident *at = explain_at(d->explainer, i);
        ns_t part = overlap(at, one->conn, one->c.start, to);
        if (part > most && explain_is_shown(at, d->opts->conn)) {
            most = part;
            one->incident = at;
        }
    }
}

/* Whether it took as long as others of its kind: what it waited for, they do, too. */
static bool is_as_usual(const struct delay *one)
{
    ns_t took = ns_sum(one->c.end - one->c.start, repeat_of(&one->c)), usual = usual_of(one);

    return usual && took < usual + usual / AS_USUAL;
}

static bool is_kept(const struct delays *d, uint64_t number)
{
    for (unsigned i = 0; i < d->n_worst; i++)
        if (d->worst[i]->c.number == number)
            return true;
    return false;
}

/* Whether another tap saw commands of the same connection, and counts: the first one does. */
static bool is_second(const struct kept *k, const struct delay *one)
{
    for (unsigned i = 0; i < k->n; i++)
        if (k->of[i].conn == one->conn && k->of[i].tap < one->tap)
            return true;
    return false;
}

static void set_numbers(const struct delays *d, struct kept *k)
{
    for (unsigned i = 0; i < k->n; i++)
        k->of[i].conn = conn_number_now(observer_conns(d->observer), k->of[i].conn);
}

static bool is_wanted(const struct delays *d, const struct delay *one)
{
    return one->text && !is_second(&d->lost, one) && !is_second(&d->slow, one) &&
           (!d->opts->wanted || d->opts->wanted(d->opts->user, one->conn));
}

/* Number the connections of `n` commands, each `size` bytes behind the one before, and hide those that were not
 * selected; of a connection that several taps saw, the first one tells. Returns how many are shown. */
static unsigned select_listed(const struct delays *d, struct listed *first, unsigned n, size_t size)
{
    unsigned shown = n;

#define LISTED(i) ((struct listed *)((char *)first + (i)*size))
    for (unsigned i = 0; i < n; i++)
        LISTED(i)->conn = conn_number_now(observer_conns(d->observer), LISTED(i)->conn);
    for (unsigned i = 0; i < n; i++) {
        struct listed *one = LISTED(i);
        one->hidden = d->opts->wanted && !d->opts->wanted(d->opts->user, one->conn);
        for (unsigned k = 0; k < n; k++)
            one->hidden |= LISTED(k)->conn == one->conn && LISTED(k)->tap < one->tap;
        shown -= one->hidden;
    }
#undef LISTED
    return shown;
}

static int by_cost(const void *a, const void *b)
{
    const struct delay *x = *(struct delay *const *)a, *y = *(struct delay *const *)b;

    if (x->cost != y->cost)
        return x->cost < y->cost ? 1 : -1;
    return x->c.number < y->c.number ? -1 : 1;
}

void delays_end(struct delays *d)
{
    ulp_finish(d->ulp);
    set_numbers(d, &d->lost);
    set_numbers(d, &d->slow);
    d->refusals.shown = select_listed(d, &d->refusals.of[0].at, d->refusals.n, sizeof d->refusals.of[0]);
    d->shown_failures = select_listed(d, &d->failures.of[0].at, d->failures.n, sizeof d->failures.of[0]);
    for (unsigned i = 0; i < d->lost.n; i++)
        if (is_wanted(d, &d->lost.of[i]) && !is_as_usual(&d->lost.of[i])) {
            d->worst[d->n_worst++] = &d->lost.of[i];
            find_incident(d, &d->lost.of[i]);
        }
    for (unsigned i = 0; i < d->slow.n; i++) {
        struct delay *one = &d->slow.of[i];
        ns_t took = one->c.end - one->c.start, usual = usual_of(one);
        if (!usual || took < SLOW_TIMES * usual || took - usual < DELAY_MIN || !is_wanted(d, one) ||
            is_kept(d, one->c.number))
            continue;
        one->cost = took - usual;
        d->worst[d->n_worst++] = one;
    }
    if (d->n_worst)
        qsort(d->worst, d->n_worst, sizeof(struct delay *), by_cost);
}

/* What it waited for longest. */
static enum wait longest(const struct delay *one)
{
    unsigned at = 0;

    for (unsigned i = 1; i < WAITS; i++)
        if (one->waited.of[i] > one->waited.of[at])
            at = i;
    return (enum wait)at;
}

/* The first frame of the incident that lies within the command's time; 0: none does. */
static uint32_t frame_within(const struct delay *one)
{
    const struct incident *i = one->incident;

    for (unsigned k = 0; k < i->n_frames; k++)
        if (i->frames[k] >= one->c.frame && i->frames[k] <= one->c.response)
            return i->frames[k];
    return 0;
}

/* ", 2 ms of it waiting for lost packets to be retransmitted (packet-loss, frame 14)". */
static void put_wait(struct buf *b, const struct delay *one)
{
    ns_t took = one->c.end - one->c.start, lost = waits_lost(&one->waited);
    enum wait w = longest(one);

    /* of a delayed command say what the transport lost, even if other waits were longer */
    if (lost >= DELAY_MIN)
        for (unsigned i = w = WAIT_LOSS; i < WAITS_LOST; i++)
            w = one->waited.of[i] > one->waited.of[w] ? (enum wait)i : w;
    if (took <= 0 || !one->waited.of[w])
        return;
    buf_puts(b, ", ");
    buf_rounded(b, one->waited.of[w]);
    buf_printf(b, " of it waiting %s", wait_table[w].text);
    if (w == WAIT_RESPONSE && one->timer) {
        buf_puts(b, "; the ACK timeout of its sender is ");
        buf_rounded(b, one->timer);
        buf_puts(b, ": it may have been lost before the tap, and retransmitted");
    }
    if (one->incident && w < WAITS_LOST) {
        uint32_t frame = frame_within(one);
        buf_printf(b, " (%s", cause_table[one->incident->cause].name);
        if (frame)
            buf_printf(b, ", frame %u", frame);
        buf_char(b, ')');
    }
}

/* "NVMe/RDMA Write cid 0x3 nsid 1 slba 300 nlb 8 (connection 1, frames 38 40-43 44) took 3.1 ms, usually 90 us, ..." */
static void put_delay(struct buf *b, const struct delay *one)
{
    const struct ulp_command *c = &one->c;
    ns_t usual = usual_of(one);

    buf_printf(b, "%s (connection %u, frames ", one->text, one->conn);
    command_frames_put(b, c);
    buf_puts(b, ") took ");
    buf_rounded(b, c->end - c->start);
    if (usual) {
        buf_puts(b, ", its kind usually ");
        buf_rounded(b, usual);
    }
    put_wait(b, one);
    buf_char(b, '.');
    if (!repeat_of(c))
        return;
    buf_printf(b, " Its response was retransmitted in frame %llu, ", (unsigned long long)c->response_again);
    buf_rounded(b, repeat_of(c));
    buf_puts(b, " later.");
}

/* "Commands of upper protocols: 34, 1 failed, 2 without a response. The transport delayed 3 of them, by 9.1 ms
 * together, 8.8 ms of it waiting for an ACK timeout." */
static void put_head(const struct delays *d, struct buf *b)
{
    unsigned most = 0;

    buf_printf(b, "Commands of upper protocols%s: %llu", d->taps ? " at all taps" : "", (unsigned long long)d->n);
    if (d->failed)
        buf_printf(b, ", %llu failed", (unsigned long long)d->failed);
    if (d->unanswered)
        buf_printf(b, ", %llu without a response", (unsigned long long)d->unanswered);
    if (d->unseen)
        buf_printf(b, " (%llu may have one, among packets that are missing)", (unsigned long long)d->unseen);
    if (d->refusals.all)
        buf_printf(b, ", %llu refused by the responder of the transport", (unsigned long long)d->refusals.all);
    buf_char(b, '.');
    if (!d->delayed)
        return;
    buf_printf(b, " The transport delayed %llu of them, by ", (unsigned long long)d->delayed);
    buf_rounded(b, d->lost_ns);
    buf_puts(b, d->delayed == 1 ? "" : " together");
    for (unsigned i = 1; i < WAITS_LOST; i++)
        most = d->lost_for.of[i] > d->lost_for.of[most] ? i : most;
    if (d->lost_for.of[most]) {
        buf_puts(b, ", ");
        if (d->lost_for.of[most] == d->lost_ns)
            buf_puts(b, "all");
        else
            buf_rounded(b, d->lost_for.of[most]);
        buf_printf(b, " of it waiting %s", wait_table[most].text);
    }
    buf_char(b, '.');
}

void delays_text(struct delays *d, const struct explain_opts *o, struct buf *b)
{
    unsigned columns = o->columns ? o->columns : 100, n = o->all || d->n_worst <= SHOWN ? d->n_worst : SHOWN;
    struct buf line = {0};

    if (!d->n || (d->opts->wanted && !n && !d->refusals.shown && !d->shown_failures))
        return;
    if (d->opts->wanted)
        buf_puts(&line, "Commands of upper protocols:");
    else
        put_head(d, &line);
    buf_paragraph(b, buf_str(&line), 0, columns);
    for (unsigned i = 0; i < n; i++) {
        line.len = 0;
        put_delay(&line, d->worst[i]);
        buf_paragraph(b, buf_str(&line), 4, columns);
    }
    refusals_text(&d->refusals, d->explainer, columns, b);
    failures_text(&d->failures, o->all ? FAILURES_KEPT : SHOWN, columns, b);
    explain_next_command(o, "ops", "--commands", b);
    buf_char(b, '\n');
    b->err |= line.err || d->no_memory;
    buf_free(&line);
}

/* --- JSON ------------------------------------------------------------------------------------- */

static void put_number(struct cell_row *to, const char *name, uint64_t v, bool known)
{
    cell_row_json(to, &(struct cell){.name = name, .kind = CELL_NUMBER, .known = known, .number = v});
}

static void put_waits(struct buf *b, const struct waited *w)
{
    const char *sep = "";

    buf_puts(b, ",\"waits\":{");
    for (unsigned i = 0; i < WAITS; i++)
        if (w->of[i] > 0) {
            buf_printf(b, "%s\"%s\":%lld", sep, wait_table[i].name, (long long)w->of[i]);
            sep = ",";
        }
    buf_puts(b, "}}");
}

static void put_json(struct buf *b, const struct delay *one)
{
    struct cell_row to = {.b = b};
    const struct ulp_command *c = &one->c;
    struct buf text = {0};

    put_delay(&text, one);
    put_number(&to, "number", c->number, true);
    put_number(&to, "connection", one->conn, true);
    cell_row_json(&to, &(struct cell){.name = "command", .kind = CELL_TEXT, .known = true, .text = one->text});
    put_number(&to, "command_frame", c->frame, true);
    put_number(&to, "data_first_frame", c->data_first, c->data_first != 0);
    put_number(&to, "data_last_frame", c->data_last, c->data_last != 0);
    put_number(&to, "response_frame", c->response, true);
    put_number(&to, "response_retransmitted_frame", c->response_again, c->response_again != 0);
    put_number(&to, "start_ns", (uint64_t)c->start, true);
    put_number(&to, "end_ns", (uint64_t)c->end, true);
    put_number(&to, "usual_ns", (uint64_t)usual_of(one), usual_of(one) != 0);
    put_number(&to, "lost_ns", (uint64_t)waits_lost(&one->waited), true);
    put_number(&to, "incident", one->incident ? one->incident->number : 0, one->incident != NULL);
    cell_row_json(&to, &(struct cell){.name = "text", .kind = CELL_TEXT, .known = true, .text = buf_str(&text)});
    put_waits(b, &one->waited);
    buf_free(&text);
}

void delays_json(struct delays *d, struct buf *b)
{
    buf_puts(b, "\"commands\":[");
    for (unsigned i = 0; i < d->n_worst; i++) {
        buf_puts(b, i ? ",\n" : "\n");
        put_json(b, d->worst[i]);
    }
    buf_printf(b, "],\"command_count\":%llu,\"commands_failed\":%llu,\"commands_without_response\":%llu,",
               (unsigned long long)d->n, (unsigned long long)d->failed, (unsigned long long)d->unanswered);
    refusals_json(&d->refusals, d->explainer, b);
    buf_char(b, ',');
    failures_json(&d->failures, b);
    buf_printf(b, ",\"commands_delayed\":%llu,\"commands_lost_ns\":%lld", (unsigned long long)d->delayed,
               (long long)d->lost_ns);
    b->err |= d->no_memory;
}
