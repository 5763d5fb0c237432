/* layer 3 (explain): output as JSON, and the cells of an incident that views and exports take. */
#include "src/account/streams.h"
#include "src/explain/compare/taps.h"
#include "src/explain/congestion/congestion.h"
#include "src/explain/explain_impl.h"
#include "src/explain/security/security.h"

static void flush(const struct explain_opts *o, struct buf *b)
{
    if (o->flush)
        o->flush(o->user, b);
}

static void json_string(struct buf *b, const char *key, const char *s)
{
    buf_printf(b, "\"%s\":", key);
    buf_json(b, s, strlen(s));
    buf_char(b, ',');
}

/* The file of each frame, if there are several files. */
static void files_json(struct buf *b, const struct explain_opts *o, const struct incident *s)
{
    if (o->n_files < 2)
        return;
    buf_puts(b, "\"files\":[");
    for (unsigned i = 0; i < s->n_frames; i++) {
        const char *name = conn_file_name(o->files, s->files[i]);
        buf_puts(b, i ? "," : "");
        buf_json(b, name, strlen(name));
    }
    buf_puts(b, "],");
}

static void also_json(struct explainer *x, const struct explain_opts *opts, const struct incident *s, struct buf *b)
{
    const struct incident *o;
    struct buf tap = {0};
    const char *sep = "";

    buf_puts(b, "\"elsewhere\":[");
    for (uint32_t i = UINT32_MAX; (o = explain_also(x, s, &i)) != NULL; sep = ",") {
        buf_printf(b, o->conn ? "%s{\"connection\":%u," : "%s{\"connection\":null,", sep, o->conn);
        tap.len = 0;
        conn_tap_put(&tap, opts->files, o->tap);
        json_string(b, "tap", buf_str(&tap));
        buf_puts(b, "\"frames\":[");
        incident_frames_put(b, o, o->own);
        buf_puts(b, "]}");
    }
    buf_puts(b, "],");
    buf_free(&tap);
}

/* Every cause that it may have, its own first. */
static void causes_json(struct buf *b, const struct incident *s)
{
    buf_printf(b, "\"causes\":[\"%s\"", cause_table[s->cause].name);
    for (unsigned i = 1; i < s->n_causes; i++)
        buf_printf(b, ",\"%s\"", cause_table[s->causes[i]].name);
    buf_puts(b, "],");
}

/* Members of an incident that other commands do not write. */
static void more_json(struct explainer *x, const struct explain_opts *o, const struct incident *s, struct buf *b)
{
    buf_puts(b, ",");
    causes_json(b, s);
    buf_puts(b, "\"frame_list\":[");
    incident_frames_put(b, s, s->n_frames);
    buf_printf(b, "],\"more_frames\":%u,", s->times);
    files_json(b, o, s);
    also_json(x, o, s, b);
    congestion_json(b, s, o->files);
    b->p[b->len - 1] = '}';
}

void explain_row(const struct incident *s, struct incident_row *row)
{
    *row = (struct incident_row){.number = s->number,
                                 .conn = s->conn,
                                 .cause = s->cause,
                                 .certainty = s->certainty,
                                 .place = s->place ? place_str((enum place)s->place) : NULL,
                                 .start = s->episodes ? s->from : s->start,
                                 .end = s->stop > s->start ? s->stop : s->start,
                                 .bill = s->bill > 0 ? s->bill : 0,
                                 .n_frames = s->n_frames,
                                 .next = cause_table[s->cause].next};
    memcpy(row->frames, s->frames, sizeof row->frames);
    memcpy(row->roles, s->roles, sizeof row->roles);
}

/* The texts of an incident that are made of it, but those of its row. */
struct incident_texts {
    const char *tap, *source, *destination, *counters, *tools;
    const char *passed, *missed; /* taps; NULL: none */
};

static void give_incident(const struct incident *s, const struct incident_row *row, const struct incident_texts *x,
                          cell_take *take, void *user)
{
    const struct cell_to t = {take, user};

    incident_cells(row, take, user);
    cell_text(&t, "meaning", cause_table[s->cause].meaning);
    cell_text(&t, "counters", x->counters);
    cell_text(&t, "tools", x->tools);
    cell_number(&t, "file", s->tap >> 16, true);
    cell_number(&t, "interface", s->tap & 0xffff, true);
    cell_text(&t, "tap", x->tap);
    cell_text(&t, "passed_tap", x->passed);
    cell_text(&t, "missed_tap", x->missed);
    cell_text(&t, "source", x->source);
    cell_text(&t, "destination", x->destination);
    cell_number(&t, "destination_qpn", s->qpn, true);
    cell_number(&t, "retransmitted_packets", s->again, true);
    cell_time(&t, "without_progress_ns", s->lost > 0 ? s->lost : 0, true);
    cell_number(&t, "superseded_by", s->superseded_by, true);
}

void explain_cells(struct explainer *x, const struct incident *s, const char *const *files, cell_take *take, void *user)
{
    struct buf passed = {0}, missed = {0}, text = {0}, setting = {0}, tap = {0}, src = {0}, dst = {0}, counters = {0},
               type = {0};
    struct incident_texts texts;
    struct incident_row row;

    explain_row(s, &row);
    explain_text_of(s, &text);
    explain_setting(x, s, &setting);
    row.text = buf_str(&text);
    row.setting = buf_str(&setting);
    conn_tap_put(&tap, files, s->tap);
    conn_addr_put(&src, &s->src);
    conn_addr_put(&dst, &s->dst);
    explain_counters(s, &counters);
    explain_tools(s, &type);
    texts = (struct incident_texts){.tap = buf_str(&tap),
                                    .source = explain_has_address(&s->src) ? buf_str(&src) : NULL,
                                    .destination = explain_has_address(&s->dst) ? buf_str(&dst) : NULL,
                                    .counters = buf_str(&counters),
                                    .tools = buf_str(&type)};
    if (s->passed && s->missed) {
        conn_tap_put(&passed, files, s->passed - 1);
        conn_tap_put(&missed, files, s->missed - 1);
        texts.passed = buf_str(&passed);
        texts.missed = buf_str(&missed);
    }
    give_incident(s, &row, &texts, take, user);
    buf_free(&text);
    buf_free(&setting);
    buf_free(&tap);
    buf_free(&src);
    buf_free(&dst);
    buf_free(&counters);
    buf_free(&type);
    buf_free(&passed);
    buf_free(&missed);
}

void incident_columns(cell_take *take, void *user)
{
    static const struct incident none;
    static const struct incident_row row;

    give_incident(&none, &row, &(struct incident_texts){.tap = NULL}, take, user);
}

static void incident_json(struct explainer *x, const struct explain_opts *o, uint32_t i, struct buf *b)
{
    const struct incident *s = &x->incidents[i];
    struct incident_row row;

    explain_row(s, &row);
    explain_cells(x, s, o->files, cell_row_json, &(struct cell_row){.b = b});
    incident_frames_json(b, &row);
    more_json(x, o, s, b);
}

static void row_json(struct buf *b, const struct explain_opts *o, const struct timeline_row *r)
{
    struct buf tap = {0}, from = {0}, to = {0};
    struct account a = {.conn = r->conn, .first = r->first, .last = r->last};

    memcpy(a.states, r->states, sizeof a.states);
    conn_tap_put(&tap, o->files, r->tap);
    conn_end_put(&from, &r->src, r->have_sqpn, r->sqpn);
    conn_end_put(&to, &r->dst, true, r->dqpn);
    a.tap = buf_str(&tap);
    a.from = buf_str(&from);
    a.to = buf_str(&to);
    account_json(b, &a);
    buf_free(&tap);
    buf_free(&from);
    buf_free(&to);
}

static void put_port(struct buf *b, const struct iwarp_conn *c, enum iwarp_side side)
{
    struct conn_addr a = {.network = c->network};

    memcpy(a.b, c->addr[side], sizeof a.b);
    conn_addr_put(b, &a);
    buf_printf(b, " port %u", c->port[side]);
}

/* What one end of an iWARP connection sends. */
static void stream_json(struct buf *b, const struct explain_opts *o, const struct iwarp_conn *c, enum iwarp_side side)
{
    struct buf tap = {0}, from = {0}, to = {0};
    struct account a = {.conn = c->number, .first = c->first, .last = c->last > c->first ? c->last : c->first};

    stream_account(c, side, a.states);
    conn_tap_put(&tap, o->files, c->tap);
    put_port(&from, c, side);
    put_port(&to, c, iwarp_other(side));
    a.tap = buf_str(&tap);
    a.from = buf_str(&from);
    a.to = buf_str(&to);
    account_json(b, &a);
    buf_free(&tap);
    buf_free(&from);
    buf_free(&to);
}

/* Behind `n` accounts. */
static void streams_json(const struct explainer *x, const struct explain_opts *o, uint32_t n, struct buf *b)
{
    const struct iwarp *w = observer_iwarp(x->observer);
    const struct iwarp_conn *c;

    for (uint32_t i = 0; (c = iwarp_at(w, i)) != NULL; i++)
        for (unsigned side = 0; side < IWARP_SIDES && (n < o->accounts || !o->accounts); side++) {
            if (o->conn && c->number != o->conn)
                continue;
            buf_puts(b, n++ ? ",\n" : "\n");
            stream_json(b, o, c, (enum iwarp_side)side);
            flush(o, b);
        }
}

static void accounts_json(const struct explainer *x, const struct explain_opts *o, struct buf *b)
{
    uint32_t n = 0;

    for (size_t i = 0; i < timeline_n(x->timeline) && (n < o->accounts || !o->accounts); i++) {
        const struct timeline_row *r = timeline_row(x->timeline, i);
        if (o->conn && r->conn != o->conn)
            continue;
        buf_puts(b, n++ ? ",\n" : "\n");
        row_json(b, o, r);
        flush(o, b);
    }
    streams_json(x, o, n, b);
}

/* The selected incidents, worst first, and their number; --top limits how many of them are written. */
static void incidents_json(struct explainer *x, const struct explain_opts *o, struct buf *b)
{
    uint32_t n = 0;

    buf_puts(b, "\"incidents\":[");
    for (uint32_t i = 0; i < x->n; i++)
        if (explain_is_selected(&x->incidents[i], o) && (n++ < o->top || !o->top)) {
            buf_puts(b, n == 1 ? "\n" : ",\n");
            incident_json(x, o, i, b);
            flush(o, b);
        }
    buf_printf(b, "],\"incident_count\":%u,", n);
}

void explain_json(struct explainer *x, const struct explain_opts *o, struct buf *b)
{
    struct buf remarks = {0};

    buf_printf(b, "{\"packets\":%llu,\"rdma_packets\":%llu,\"account\":[", (unsigned long long)x->packets,
               (unsigned long long)x->rdma_packets);
    accounts_json(x, o, b);
    buf_puts(b, "],\n");
    incidents_json(x, o, b);
    explain_marking_json(x, o, b);
    buf_puts(b, "\"choices\":[");
    guessable_json(x, o, b);
    buf_puts(b, "],\n");
    explain_early_put(x, &remarks);
    explain_remarks_put(x, o, &remarks);
    json_string(b, "remarks", buf_str(&remarks));
    buf_printf(b, "\"forgotten_flows\":%llu}\n", (unsigned long long)conn_counts(observer_conns(x->observer)).evicted);
    buf_free(&remarks);
}
