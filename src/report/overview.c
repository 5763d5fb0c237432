/* layer 3b (report): what the first reading found, as members of the page's data, and what is to be drawn. */
#include "src/measure/hosts.h"
#include "src/report/report_impl.h"

#include <stdlib.h>

/* --- The verdict, the account, the incidents -------------------------------------------------- */

static void verdict_json(const struct report *r, struct explainer *x, struct buf *b)
{
    const struct explain_opts o = {.files = r->o.files, .n_files = r->o.n_files, .conn = r->o.conn};
    struct buf text = {0};

    explain_verdict(x, &o, &text);
    buf_puts(b, "\"verdict\":");
    buf_json(b, text.p, text.len);
    b->err |= text.err;
    buf_free(&text);
}

/* The JSON string of where a cause is, in the words of explain. */
static void where_json(const struct cause_place *p, struct buf *b)
{
    struct buf text = {0};
    const char *where;

    place_put(&text, (enum place)p->place, p->passed, p->missed);
    place_tap_put(&text, p->at);
    where = buf_str(&text);
    where += *where == ' ';
    buf_json(b, where, strlen(where));
    b->err |= text.err;
    buf_free(&text);
}

struct causes_to {
    struct buf *b;
    unsigned n;
};

static void cause_json(void *user, const struct cause_place *p)
{
    struct causes_to *to = user;
    const char *meaning = cause_table[p->cause].meaning;

    buf_printf(to->b, "%s\n{\"cause\":\"%s\",\"where\":", to->n++ ? "," : "", cause_table[p->cause].name);
    where_json(p, to->b);
    buf_printf(to->b, ",\"count\":%llu,\"bill_ns\":%lld,\"meaning\":", (unsigned long long)p->count,
               (long long)p->bill);
    buf_json(to->b, meaning, strlen(meaning));
    buf_char(to->b, '}');
}

static void causes_json(const struct report *r, struct explainer *x, struct buf *b)
{
    const struct explain_opts o = {.files = r->o.files, .n_files = r->o.n_files, .conn = r->o.conn};
    struct causes_to to = {b, 0};

    buf_puts(b, ",\n\"causes\":[");
    b->err |= !explain_cause_places(x, &o, cause_json, &to);
    buf_char(b, ']');
}

/* Accounts of what the page is about. */
static size_t accounts(const struct report *r, const struct timeline *t)
{
    size_t n = 0;

    for (size_t i = 0; i < timeline_n(t); i++)
        n += !r->o.conn || timeline_row(t, i)->conn == r->o.conn;
    return n;
}

/* Of the accounts and the incidents only the first ones. */
static struct explain_opts explain_some(const struct report *r, const struct report_found *f)
{
    return (struct explain_opts){.files = r->o.files,
                                 .n_files = r->o.n_files,
                                 .conn = r->o.conn,
                                 .unread = f->unread,
                                 .top = REPORT_INCIDENTS,
                                 .accounts = REPORT_INCIDENTS};
}

/* What explain -T json prints, but for the work requests. */
static void explain_member(const struct report *r, const struct report_found *f, struct buf *b)
{
    const struct explain_opts o = explain_some(r, f);

    buf_printf(b, ",\n\"account_count\":%zu,\"explain\":", accounts(r, f->timeline));
    explain_json(f->explainer, &o, b);
}

/* --- check, flows ----------------------------------------------------------------------------- */

/* At most REPORT_INCIDENTS findings; notes give way to what is wrong. */
struct chosen {
    uint32_t conn; /* 0: all */
    bool notes;
    unsigned n;
};

static bool is_wanted(void *user, const struct finding *f)
{
    struct chosen *c = user;

    return (!c->conn || f->conn == c->conn) && (c->notes || f->severity != SEV_I) && c->n++ < REPORT_INCIDENTS;
}

static struct findings_opts check_some(const struct report *r, const struct report_found *f, struct chosen *chosen)
{
    *chosen = (struct chosen){.notes = findings_n(f->findings) <= REPORT_INCIDENTS, .conn = r->o.conn};
    return (struct findings_opts){.files = r->o.files,
                                  .n_files = r->o.n_files,
                                  .ifaces = f->ifaces,
                                  .assumptions = "profile strict; tap unknown; capture not declared complete",
                                  .user = chosen,
                                  .wanted = is_wanted};
}

static void check_member(const struct report *r, const struct report_found *f, struct buf *b)
{
    struct chosen chosen;
    const struct findings_opts o = check_some(r, f, &chosen);

    buf_printf(b, ",\n\"finding_count\":%zu,\"check\":", findings_n(f->findings));
    findings_json(f->findings, &o, b);
}

/* The rows in tables: of many those with most bytes, which come first then. */
static size_t flows_some(const struct report_found *f)
{
    if (f->n_rows <= REPORT_INCIDENTS)
        return f->n_rows;
    rows_sort(f->rows, f->n_rows, column_find("bytes"));
    return REPORT_INCIDENTS;
}

static void flows_member(const struct report_found *f, struct buf *b)
{
    const struct rows_opts o = {.format = ROWS_JSON};
    size_t n = flows_some(f);

    buf_printf(b, ",\n\"flow_count\":%zu,\"flows\":", f->n_rows);
    rows_print(b, &o, f->rows, n, &f->totals);
}

/* What all rows of flows, and all accounts, come to. */
static const struct {
    const char *name;
    size_t off;
} totals_table[] = {
    {"packets", offsetof(struct meter_row, c.packets)},
    {"bytes", offsetof(struct meter_row, c.bytes)},
    {"messages", offsetof(struct meter_row, messages)},
    {"message_bytes", offsetof(struct meter_row, message_bytes)},
    {"failed", offsetof(struct meter_row, failed)},
    {"retransmitted_packets", offsetof(struct meter_row, c.again)},
    {"packet_seq_err", offsetof(struct meter_row, c.seq_naks)},
    {"implied_nak_seq_err", offsetof(struct meter_row, implied_naks)},
    {"rnr_nak_retry_err", offsetof(struct meter_row, c.rnr_naks)},
    {"local_ack_timeout_err", offsetof(struct meter_row, c.timeouts)},
    {"np_ecn_marked_roce_packets", offsetof(struct meter_row, c.ce)},
    {"np_cnp_sent", offsetof(struct meter_row, c.cnps)},
};

static void totals_member(const struct report *r, const struct report_found *f, struct buf *b)
{
    ns_t states[TIME_STATES] = {0};

    buf_puts(b, ",\n\"totals\":{");
    for (unsigned i = 0; i < ARRAY_LEN(totals_table); i++) {
        uint64_t sum = 0, v;
        for (size_t k = 0; k < f->n_rows; k++) {
            memcpy(&v, (const uint8_t *)f->rows[k] + totals_table[i].off, sizeof v);
            sum += v;
        }
        buf_printf(b, "%s\"%s\":%llu", i ? "," : "", totals_table[i].name, (unsigned long long)sum);
    }
    for (size_t i = 0; i < timeline_n(f->timeline); i++)
        for (unsigned k = 0; k < TIME_STATES && (!r->o.conn || timeline_row(f->timeline, i)->conn == r->o.conn); k++)
            states[k] = ns_sum(states[k], timeline_row(f->timeline, i)->states[k]);
    buf_puts(b, "},\"states\":");
    states_json(b, states);
}

/* --- Host by host ----------------------------------------------------------------------------- */

void tap_json(const struct report *r, uint32_t tap, struct buf *b)
{
    struct buf name = {0};

    conn_tap_put(&name, r->o.files, tap);
    buf_json(b, name.p, name.len);
    b->err |= name.err;
    buf_free(&name);
}

static void pair_json(const struct report *r, const struct host_pair *p, struct buf *b)
{
    buf_puts(b, "{\"tap\":");
    tap_json(r, row_tap(p->row), b);
    buf_puts(b, ",\"source\":");
    conn_addr_json(b, &p->row->src);
    buf_puts(b, ",\"destination\":");
    conn_addr_json(b, &p->row->dst);
    buf_printf(b,
               ",\"packets\":%llu,\"bytes\":%llu,\"retransmitted_packets\":%llu,\"np_ecn_marked_roce_packets\":%llu,"
               "\"lost_ns\":%llu,\"message_latency_p99_ns\":%llu}",
               (unsigned long long)p->packets, (unsigned long long)p->bytes, (unsigned long long)p->again,
               (unsigned long long)p->ce, (unsigned long long)p->lost, (unsigned long long)p->p99);
}

/* The host that most others send to. */
static void choose_receiver(struct report *r, const struct host_pair *all, unsigned n)
{
    unsigned most = 1;

    for (unsigned i = 0; i < n; i++) {
        unsigned senders = 0;
        for (unsigned k = 0; k < n; k++)
            senders += row_tap(all[k].row) == row_tap(all[i].row) && conn_addr_eq(&all[k].row->dst, &all[i].row->dst);
        if (senders <= most)
            continue;
        most = senders;
        r->have_receiver = true;
        r->receiver = all[i].row->dst;
        r->receiver_tap = row_tap(all[i].row);
    }
}

static void hosts_member(struct report *r, const struct report_found *f, struct buf *b)
{
    struct host_pairs *all = calloc(1, sizeof *all);

    if (!all) {
        b->err = true;
        return;
    }
    host_pairs_add(all, f->rows, f->n_rows);
    buf_printf(b, ",\n\"host_bytes_left_out\":%llu,\"hosts\":[", (unsigned long long)all->left_out);
    for (unsigned i = 0; i < all->n; i++) {
        buf_puts(b, i ? ",\n" : "\n");
        pair_json(r, &all->of[i], b);
    }
    buf_char(b, ']');
    choose_receiver(r, all->of, all->n);
    free(all);
}

/* --- Episodes --------------------------------------------------------------------------------- */

#define EPISODES_DRAWN 1000

static const char *const trouble_names[TROUBLES] = {
    [TROUBLE_SEQ_NAK] = "sequence NAK", [TROUBLE_IMPLIED] = "implied NAK", [TROUBLE_RNR] = "RNR",
    [TROUBLE_TIMEOUT] = "ACK timeout",  [TROUBLE_DEAD] = "peer dead",      [TROUBLE_REFUSED] = "refused",
    [TROUBLE_SLOW] = "peer slow",       [TROUBLE_PAUSE] = "paused",        [TROUBLE_THROTTLED] = "throttled",
    [TROUBLE_CREDIT] = "no credits",    [TROUBLE_DEPTH] = "READ depth",    [TROUBLE_STOPPED] = "message stopped",
};

/* The cost from which on an episode is drawn, so that there are not too many. */
static ns_t least_drawn(struct report *r, const struct timeline *t)
{
    for (ns_t least = 1;; least *= 2) {
        unsigned n = 0;
        for (uint32_t i = 0; i < timeline_episodes(t); i++) {
            const struct episode *e = timeline_episode(t, i);
            n += e->bill >= least && report_drawn(r, e->conn, e->tap);
        }
        if (n <= EPISODES_DRAWN)
            return least;
    }
}

static void episodes_member(struct report *r, const struct timeline *t, struct buf *b)
{
    ns_t least = least_drawn(r, t);
    const char *sep = "";

    buf_printf(b, ",\n\"episode_count\":%u,\"episode_least_ns\":%lld,\"episodes\":[", timeline_episodes(t),
               (long long)least);
    for (uint32_t i = 0; i < timeline_episodes(t); i++) {
        const struct episode *e = timeline_episode(t, i);
        struct drawn *d = report_drawn(r, e->conn, e->tap);
        if (!d || e->bill < least)
            continue;
        buf_printf(b, "%s\n{\"connection\":%u,\"tap\":", sep, d->conn);
        tap_json(r, e->tap, b);
        buf_printf(b, ",\"why\":\"%s\",\"start\":%lld,\"end\":%lld,\"bill_ns\":%lld,\"frame\":%u}",
                   trouble_names[e->why], (long long)report_time(r, e->start), (long long)report_time(r, e->end),
                   (long long)e->bill,
                   e->back     ? e->back
                   : e->nak    ? e->nak
                   : e->answer ? e->answer
                               : e->sent);
        sep = ",";
    }
    buf_char(b, ']');
}

/* --- What is drawn ---------------------------------------------------------------------------- */

static void draw(struct report *r, struct conn_table *c, uint32_t conn, uint32_t tap)
{
    struct drawn *d;

    conn = conn ? conn_number_now(c, conn) : 0;
    if (!conn || (r->o.conn && conn != r->o.conn) || r->n_drawn == REPORT_CONNS || report_drawn(r, conn, tap))
        return;
    if (!(d = calloc(1, sizeof *d))) {
        r->failed = true;
        return;
    }
    d->conn = conn;
    d->tap = tap;
    r->drawn[r->n_drawn++] = d;
}

/* Connections with the worst incidents, then those with most bytes. */
static void choose_drawn(struct report *r, const struct report_found *f)
{
    struct meter_row **rows = malloc((f->n_rows + 1) * sizeof *rows);

    for (size_t i = 0; i < explain_n(f->explainer) && i < REPORT_INCIDENTS; i++) {
        const struct incident *s = explain_at(f->explainer, i);
        if (explain_is_shown(s, r->o.conn))
            draw(r, f->conns, s->conn, s->tap);
    }
    r->failed |= !rows;
    for (size_t i = 0; rows && i < f->n_rows; i++)
        rows[i] = f->rows[i];
    if (rows && f->n_rows)
        rows_sort(rows, f->n_rows, column_find("bytes"));
    for (size_t i = 0; rows && i < f->n_rows; i++)
        draw(r, f->conns, (uint32_t)rows[i]->conn, row_tap(rows[i]));
    if (rows)
        shares_choose(r, rows, f->n_rows);
    free(rows);
    for (uint32_t n = 1; r->n_aliases < ALIASES && n <= conn_counts(f->conns).conns; n++)
        for (unsigned i = 0; i < r->n_drawn; i++)
            if (conn_number_now(f->conns, n) == r->drawn[i]->conn && n != r->drawn[i]->conn && r->n_aliases < ALIASES) {
                r->alias[r->n_aliases].conn = n;
                r->alias[r->n_aliases++].now = r->drawn[i]->conn;
            }
}

#define NEAR       (20 * NS_PER_US) /* before and behind an incident, where every point is kept */
#define ROOM_LEAST 50               /* packets of an incident, however many there are */

/* The incidents of a connection at a tap share the points that are kept as they are. */
static void share_room(struct report *r)
{
    for (unsigned i = 0; i < r->n_windows; i++) {
        struct window *w = &r->windows[i];
        uint32_t n = 0, all = THIN_EXACT * r->o.detail;
        for (unsigned k = 0; k < r->n_windows; k++)
            n += r->windows[k].conn == w->conn && r->windows[k].tap == w->tap;
        w->room = all / n > ROOM_LEAST ? all / n : ROOM_LEAST;
    }
}

static void choose_windows(struct report *r, const struct explainer *x)
{
    for (size_t i = 0; i < explain_n(x) && r->n_windows < REPORT_INCIDENTS; i++) {
        const struct incident *s = explain_at(x, i);
        struct incident_row row;
        explain_row(s, &row);
        if (explain_is_shown(s, r->o.conn))
            r->windows[r->n_windows++] = (struct window){.number = s->number,
                                                         .conn = s->conn,
                                                         .tap = s->tap,
                                                         .from = report_time(r, row.start - NEAR),
                                                         .to = report_time(r, row.end + NEAR)};
    }
    share_room(r);
}

static void windows_json(const struct report *r, struct buf *b)
{
    buf_puts(b, ",\n\"windows\":[");
    for (unsigned i = 0; i < r->n_windows; i++) {
        const struct window *w = &r->windows[i];
        buf_printf(b, "%s\n{\"incident\":%u,\"connection\":%u,\"from\":%lld,\"to\":%lld,\"tap\":", i ? "," : "",
                   w->number, w->conn, (long long)w->from, (long long)w->to);
        tap_json(r, w->tap, b);
        buf_char(b, '}');
    }
    buf_char(b, ']');
}

static void choose_taps(struct report *r, const struct report_found *f)
{
    for (size_t i = 0; i < f->n_rows; i++) {
        unsigned k = 0;
        while (k < r->n_taps && r->tap_list[k] != row_tap(f->rows[i]))
            k++;
        if (k == r->n_taps && k < ARRAY_LEN(r->tap_list))
            r->tap_list[r->n_taps++] = row_tap(f->rows[i]);
    }
}

/* The shortest length of 1, 2 or 5 times a power of ten that needs no more than REPORT_INTERVALS. */
static ns_t interval_of(ns_t length)
{
    static const ns_t steps[] = {1, 2, 5};

    for (ns_t ten = 1000;; ten *= 10)
        for (unsigned i = 0; i < ARRAY_LEN(steps); i++)
            if (length / (ten * steps[i]) < REPORT_INTERVALS)
                return ten * steps[i];
}

static void files_json(const struct report *r, struct buf *b)
{
    buf_puts(b, ",\n\"files\":[");
    for (size_t i = 0; i < r->o.n_files; i++) {
        buf_puts(b, i ? "," : "");
        buf_json(b, r->o.files[i], strlen(r->o.files[i]));
    }
    buf_printf(b, "],\n\"start\":\"%lld\",\"duration_ns\":%lld", (long long)r->first, (long long)r->length);
}

/* --- Without JavaScript ----------------------------------------------------------------------- */

/* A heading, and the text of a command below it, which is taken away. */
static void plain_part(struct report *r, const char *heading, struct buf *text)
{
    buf_printf(&r->plain, "<h2>%s</h2>\n<pre tabindex=\"0\">", heading);
    buf_markup(&r->plain, buf_str(text));
    buf_puts(&r->plain, "</pre>\n");
    r->plain.err |= text->err;
    text->len = 0;
}

static void plain_text(struct report *r, const struct report_found *f)
{
    const struct explain_opts e = explain_some(r, f);
    const struct rows_opts rows = {.format = ROWS_TEXT};
    struct chosen chosen;
    const struct findings_opts c = check_some(r, f, &chosen);
    struct buf text = {0};

    explain_text(f->explainer, &e, &text);
    plain_part(r, "What went wrong, and what it cost", &text);
    findings_text(f->findings, &c, &text);
    plain_part(r, "Rules of the transport", &text);
    rows_print(&text, &rows, f->rows, flows_some(f), &f->totals);
    plain_part(r, "Connections", &text);
    buf_free(&text);
}

void report_overview(struct report *r, const struct report_found *f)
{
    struct buf *b = &r->overview;

    r->first = f->totals.first;
    r->length = f->totals.last > f->totals.first ? f->totals.last - f->totals.first : 1;
    r->interval = interval_of(r->length);
    choose_drawn(r, f);
    choose_windows(r, f->explainer);
    choose_taps(r, f);
    ladders_choose(r, f->explainer);
    verdict_json(r, f->explainer, b);
    files_json(r, b);
    causes_json(r, f->explainer, b);
    explain_member(r, f, b);
    check_member(r, f, b);
    flows_member(f, b);
    totals_member(r, f, b);
    hosts_member(r, f, b);
    episodes_member(r, f->timeline, b);
    windows_json(r, b);
    commands_json(r, b);
    plain_text(r, f);
}
