/* layer 3b (export): what the analyses found, as tables of a database. */
#include "src/export/export.h"

#include "dissect/link/macc.h"
#include "dissect/pkt.h"
#include "program.h"
#include "src/export/packet_rows.h"
#include "src/export/split_rows.h"
#include "src/export/store.h"
#include "src/export/tap_rows.h"
#include "src/measure/columns.h"

#include <stdio.h>
#include <stdlib.h>

#define COLUMNS_MAX 128

struct export
{
    struct store *s;
    struct packet_rows *packets;
    struct split_rows *requests;
    struct tap_rows *taps;
    struct store_table *meta, *flow, *flow_time, *request_states, *command, *finding, *incident, *evidence;
    struct store_table *interval, *pause, *counter;
    const char *const *files; /* names of the captures */
    uint64_t flows;           /* rows so far */
    struct buf text;          /* of the value at hand */
};

    /* --- Tables ----------------------------------------------------------------------------------- */

#define INTEGER(name)                                                                                                  \
    {                                                                                                                  \
        name, STORE_INTEGER                                                                                            \
    }
#define TEXT(name)                                                                                                     \
    {                                                                                                                  \
        name, STORE_TEXT                                                                                               \
    }
#define TABLE(x, name, columns, key) store_table((x)->s, name, columns, ARRAY_LEN(columns), key)

static const struct store_column meta_columns[] = {TEXT("key"), TEXT("value")};
static const struct store_column file_columns[] = {INTEGER("file"), TEXT("name")};
static const struct store_column opcode_columns[] = {INTEGER("opcode"), TEXT("name")};
static const struct store_column rule_columns[] = {TEXT("rule"), TEXT("severity"), TEXT("meaning"), TEXT("source")};
static const struct store_column cause_columns[] = {TEXT("cause"), TEXT("meaning"), TEXT("next")};
static const struct store_column flow_time_columns[] = {INTEGER("flow"), TEXT("state"), INTEGER("time_ns")};
static const struct store_column pause_columns[] = {
    INTEGER("file"), INTEGER("interface"), INTEGER("time_ns"), INTEGER("frame"),
    TEXT("source"),  INTEGER("priority"),  INTEGER("quanta"),
};
/* with the names of check -T json */
static const struct store_column counter_columns[] = {
    TEXT("host"), TEXT("counters"), INTEGER("counted"), INTEGER("traced"), TEXT("verdict"),
};
/* before the counts */
static const struct store_column interval_columns[] = {
    INTEGER("file"),     INTEGER("interface"),       INTEGER("connection"), TEXT("source"),
    TEXT("destination"), INTEGER("destination_qpn"), INTEGER("time_ns"),
};
static const struct store_column evidence_columns[] = {
    TEXT("of"), INTEGER("number"), TEXT("role"), INTEGER("file"), INTEGER("frame"),
};

/* Columns of a table whose rows are cells. */
struct cell_columns {
    struct store_column of[COLUMNS_MAX];
    unsigned n;
};

static void add_column(void *user, const struct cell *c)
{
    static const uint8_t types[] = {[CELL_NUMBER] = STORE_INTEGER,
                                    [CELL_MILLI] = STORE_REAL,
                                    [CELL_TIME] = STORE_INTEGER,
                                    [CELL_TEXT] = STORE_TEXT};
    struct cell_columns *k = user;

    if (k->n == COLUMNS_MAX)
        return;
    k->of[k->n] = (struct store_column){c->name, (enum store_type)types[c->kind]};
    k->n++;
}

static void put_cell(void *user, const struct cell *c)
{
    struct store_table *t = user;

    if (!c->known)
        store_null(t);
    else if (c->kind == CELL_TEXT)
        store_text(t, c->text);
    else if (c->kind == CELL_MILLI)
        store_real(t, (double)c->number / 1000);
    else
        store_number(t, c->number);
}

static struct store_table *cells_table(struct export *x, const char *name, const struct cell_columns *k,
                                       const char *key)
{
    return store_table(x->s, name, k->of, k->n, key);
}

/* A column that is no cell. */
static void add_other(struct cell_columns *k, struct store_column c)
{
    k->of[k->n++] = c;
}

/* Of a work request what others of its flow have, too. */
static const char *const request_common[] = {
    "file",    "interface", "tap",    "connection", "source", "source_qpn", "destination", "destination_qpn",
    "service", "operation", "status", "reason",     NULL};

static void request_cells(const void *row, cell_take *take, void *user)
{
    if (row)
        wqe_cells(row, take, user);
    else
        wqe_columns(take, user);
}

/* A row for each work request, with a column for each state, and what shows it as request_time. */
static void create_request_states(struct export *x)
{
    struct store_column columns[TIME_STATES + 1] = {INTEGER("request")};
    const char *sep = "CREATE VIEW request_time AS";

    x->text.len = 0;
    for (unsigned i = 0; i < TIME_STATES; i++) {
        const char *name = time_state_str((enum time_state)i);
        columns[i + 1] = (struct store_column)INTEGER(name);
        buf_printf(&x->text, "%s SELECT request, '%s' AS state, \"%s\" AS time_ns FROM request_states WHERE \"%s\" > 0",
                   sep, name, name, name);
        sep = " UNION ALL";
    }
    x->request_states = TABLE(x, "request_states", columns, "request");
    store_sql(x->s, buf_str(&x->text));
}

/* The tables of what the other commands print: the names of the columns are those of JSON and CSV. */
static void create_measures(struct export *x)
{
    static const struct meter_row none;
    struct cell_columns k = {.n = 0};

    add_other(&k, (struct store_column)INTEGER("flow"));
    row_cells(&none, add_column, &k);
    x->flow = cells_table(x, "flow", &k, "flow");
    k.n = 0;
    command_columns(add_column, &k);
    x->command = cells_table(x, "command", &k, "number");
    k.n = 0;
    finding_columns(add_column, &k);
    add_other(&k, (struct store_column)TEXT("needs"));
    x->finding = cells_table(x, "finding", &k, "number");
    k.n = 0;
    incident_columns(add_column, &k);
    add_other(&k, (struct store_column)INTEGER("shown"));
    x->incident = cells_table(x, "incident", &k, "number");
    create_request_states(x);
    k.n = 0;
    for (unsigned i = 0; i < ARRAY_LEN(interval_columns); i++)
        add_other(&k, interval_columns[i]);
    for (unsigned i = 0; count_name(i); i++)
        add_other(&k, (struct store_column)INTEGER(count_name(i)));
    x->interval = cells_table(x, "interval", &k, NULL);
    x->pause = TABLE(x, "pause", pause_columns, NULL);
    x->counter = TABLE(x, "counter", counter_columns, NULL);
    x->flow_time = TABLE(x, "flow_time", flow_time_columns, "flow, state");
}

/* --- What does not depend on the captures ----------------------------------------------------- */

static void put_rules(struct export *x)
{
    struct store_table *t = TABLE(x, "rule", rule_columns, "rule");

    for (unsigned i = RULE_NONE + 1; i < RULE_COUNT; i++) {
        store_word(t, rule_table[i].id);
        store_word(t, severity_str((enum severity)rule_table[i].severity));
        store_word(t, rule_table[i].meaning);
        store_word(t, rule_table[i].anchor);
        store_insert(t);
    }
}

static void put_causes(struct export *x)
{
    struct store_table *t = TABLE(x, "cause", cause_columns, "cause");

    for (unsigned i = 0; i < CAUSE_COUNT; i++) {
        store_word(t, cause_table[i].name);
        store_word(t, cause_table[i].meaning);
        store_word(t, cause_table[i].next);
        store_insert(t);
    }
}

static void put_opcodes(struct export *x)
{
    struct store_table *t = TABLE(x, "opcode", opcode_columns, "opcode");

    for (unsigned i = 0; i < ARRAY_LEN(opcode_table); i++)
        if (opcode_table[i].name) {
            store_number(t, i);
            store_word(t, opcode_table[i].name);
            store_insert(t);
        }
}

static void put_origin(struct export *x, const char *const *files, size_t n)
{
    struct store_table *meta = x->meta = TABLE(x, "meta", meta_columns, "key");
    struct store_table *file = TABLE(x, "file", file_columns, "file");

    store_text(meta, "program");
    store_text(meta, "rdmatrace " RDMATRACE_VERSION);
    store_insert(meta);
    for (size_t i = 0; i < n; i++) {
        store_number(file, i);
        store_text(file, files[i]);
        store_insert(file);
    }
}

struct export *export_new(const char *path, const char *const *files, size_t n, unsigned threads)
{
    struct export *x = calloc(1, sizeof *x);

    if (!x || !(x->s = store_new(path, threads))) {
        free(x);
        return NULL;
    }
    x->files = files;
    store_sql(x->s, "PRAGMA application_id=0x52444d41; PRAGMA user_version=" EXPORT_VERSION); /* "RDMA" */
    put_origin(x, files, n);
    put_opcodes(x);
    put_rules(x);
    put_causes(x);
    x->packets = packet_rows_new(x->s, n > 1);
    if (!x->packets) {
        export_free(x);
        return NULL;
    }
    x->requests = split_rows_new(x->s, "request", request_cells, request_common);
    x->taps = tap_rows_new(x->s, files);
    if (!x->requests || !x->taps) {
        export_free(x);
        return NULL;
    }
    x->evidence = TABLE(x, "evidence", evidence_columns, NULL);
    create_measures(x);
    return x;
}

void export_free(struct export *x)
{
    if (!x)
        return;
    store_free(x->s);
    packet_rows_free(x->packets);
    split_rows_free(x->requests);
    tap_rows_free(x->taps);
    buf_free(&x->text);
    free(x);
}

const char *export_error(const struct export *x)
{
    return store_error(x->s);
}

/* --- Packets ---------------------------------------------------------------------------------- */

const char *export_kind_str(const struct export_packet *e)
{
    static const char *const names[] = {[EVENT_OTHER] = NULL,
                                        [EVENT_BAD_ICRC] = NULL,
                                        [EVENT_CNP] = "cnp",
                                        [EVENT_REQUEST] = "request",
                                        [EVENT_RESPONSE] = "response"};

    return names[e->kind];
}

const char *export_seen_str(const struct export_packet *e)
{
    static const char *const names[] = {
        [SEEN_NEW] = "first",           [SEEN_GAP] = "out_of_sequence", [SEEN_LATE] = "out_of_order",
        [SEEN_AGAIN] = "retransmitted", [SEEN_COPY] = "duplicate",      [SEEN_RESTART] = "restart",
        [SEEN_OLD] = "retransmitted"};

    return e->kind == EVENT_REQUEST ? names[e->as] : NULL;
}

const char *export_event_str(const struct export_packet *e)
{
    const struct pkt *p = e->p;
    bool aeth = e->kind == EVENT_RESPONSE && p->have & H_AETH;

    if (e->kind == EVENT_REQUEST && (e->as == SEEN_AGAIN || e->as == SEEN_OLD))
        return "retransmission";
    if (aeth && response_type(p) == AETH_RNR)
        return "RNR NAK";
    if (aeth && response_type(p) == AETH_NAK)
        return "NAK";
    if (e->kind == EVENT_CNP)
        return "CNP";
    return p->have & (H_IP4 | H_IP6) && (p->tos & 3) == 3 ? "CE" : NULL;
}

bool export_is_flagged(const struct export_packet *e)
{
    return (e->kind == EVENT_REQUEST && e->as != SEEN_NEW) || e->p->icrc == CRC_BAD || export_event_str(e);
}

void export_packet(struct export *x, const struct export_packet *e)
{
    packet_rows_put(x->packets, e);
}

/* --- Measurements ----------------------------------------------------------------------------- */

/* The states in which a flow spent time. */
static void put_states(struct store_table *t, uint64_t number, const ns_t states[TIME_STATES])
{
    for (unsigned i = 0; i < TIME_STATES; i++)
        if (states[i]) {
            store_number(t, number);
            store_word(t, time_state_str((enum time_state)i));
            store_number(t, (uint64_t)states[i]);
            store_insert(t);
        }
}

void export_request(struct export *x, const struct wqe_row *q, const ns_t states[TIME_STATES])
{
    split_rows_put(x->requests, q);
    if (!states)
        return;
    store_number(x->request_states, q->w->id);
    for (unsigned i = 0; i < TIME_STATES; i++)
        store_if(x->request_states, states[i] > 0, (uint64_t)states[i]);
    store_insert(x->request_states);
}

void export_command(struct export *x, const struct command_row *q)
{
    command_cells(q, put_cell, x->command);
    store_insert(x->command);
}

void export_flow(struct export *x, const struct meter_row *r)
{
    store_number(x->flow, ++x->flows);
    row_cells(r, put_cell, x->flow);
    store_insert(x->flow);
    if (r->accounted)
        put_states(x->flow_time, x->flows, r->states);
}

/* The text of an address. */
static const char *addr_str(struct export *x, const struct conn_addr *a)
{
    x->text.len = 0;
    conn_addr_put(&x->text, a);
    return buf_str(&x->text);
}

void export_interval(struct export *x, const struct meter_row *r, ns_t begin, const struct meter_counts *added)
{
    struct store_table *t = x->interval;

    store_number(t, r->file);
    store_number(t, r->iface);
    store_number(t, r->conn);
    store_text(t, addr_str(x, &r->src));
    store_text(t, addr_str(x, &r->dst));
    store_number(t, r->dqpn);
    store_number(t, (uint64_t)begin);
    for (unsigned i = 0; count_name(i); i++)
        store_number(t, count_value(added, i));
    store_insert(t);
}

void export_frame(struct export *x, const struct pkt *p)
{
    struct pause_frame f;
    struct store_table *t = x->pause;

    tap_rows_frame(x->taps, p->frame);
    if (!pause_frame_of(&f, p) || !f.whole)
        return;
    for (unsigned i = 0; i < PAUSE_CLASSES; i++) {
        if (!(f.classes >> i & 1) || (f.opcode == MACC_PAUSE && i))
            continue;
        x->text.len = 0;
        buf_mac(&x->text, p->data + 6);
        store_number(t, p->frame->file);
        store_number(t, p->frame->iface);
        store_if(t, p->frame->has_ts, (uint64_t)p->frame->ts);
        store_number(t, p->frame->number);
        store_text(t, buf_str(&x->text));
        store_if(t, f.opcode != MACC_PAUSE, i);
        store_number(t, f.quanta[i]);
        store_insert(t);
    }
}

void export_taps(struct export *x, const struct taps *clocks, const struct cap_merge *in)
{
    tap_rows_end(x->taps, clocks, in);
}

/* Rows of one host, whose address is in x->text. */
static void put_counted(void *user, const struct judge_counted *c)
{
    struct export *x = user;

    store_text(x->counter, buf_str(&x->text));
    store_text(x->counter, c->names);
    store_number(x->counter, c->counted);
    store_if(x->counter, c->comparable, c->seen);
    store_word(x->counter, c->verdict);
    store_insert(x->counter);
}

void export_counters(struct export *x, const struct judge_host *h)
{
    addr_str(x, &h->addr);
    judge_counted(h, put_counted, x);
}

/* --- Findings and incidents ------------------------------------------------------------------- */

static void put_evidence(struct export *x, const char *of, uint64_t number, const char *role, uint64_t file,
                         uint64_t frame)
{
    store_word(x->evidence, of);
    store_number(x->evidence, number);
    store_word(x->evidence, role);
    store_number(x->evidence, file);
    store_number(x->evidence, frame);
    store_insert(x->evidence);
}

/* The needs of a verdict that the capture does not provide, separated by commas. */
static const char *needs_str(struct export *x, unsigned needs)
{
    x->text.len = 0;
    for (unsigned bits = needs; bits; bits &= bits - 1)
        buf_printf(&x->text, "%s%s", x->text.len ? ", " : "", need_str(bits & -bits));
    return buf_str(&x->text);
}

static void put_finding(struct export *x, const struct findings *r, size_t at)
{
    const struct finding *f = findings_at(r, at);

    finding_cells(r, at, x->files, put_cell, x->finding);
    store_text(x->finding, needs_str(x, f->missing));
    store_insert(x->finding);
    for (unsigned i = 0; i < f->n_frames; i++)
        put_evidence(x, "finding", at + 1, "frame", f->file, f->frames[i]);
    for (unsigned i = 0; i < f->n_causes; i++)
        put_evidence(x, "finding", at + 1, "cause", f->file, f->causes[i]);
}

void export_findings(struct export *x, const struct findings *r, uint32_t conn)
{
    for (size_t i = 0; i < findings_n(r); i++)
        if (!conn || findings_at(r, i)->conn == conn)
            put_finding(x, r, i);
}

static void put_incident(struct export *x, struct explainer *e, const struct incident *s)
{
    explain_cells(e, s, x->files, put_cell, x->incident);
    store_number(x->incident, explain_is_shown(s, 0));
    store_insert(x->incident);
    for (unsigned i = 0; i < s->n_frames; i++)
        put_evidence(x, "incident", s->number, frame_role_str((enum frame_role)s->roles[i]), s->files[i], s->frames[i]);
}

void export_incidents(struct export *x, struct explainer *e, uint32_t conn)
{
    for (size_t i = 0; i < explain_n(e); i++)
        if (!conn || explain_at(e, i)->conn == conn)
            put_incident(x, e, explain_at(e, i));
}

/* --- The end ---------------------------------------------------------------------------------- */

void export_renumber(struct export *x, uint32_t number, uint32_t now)
{
    static const char *const tables[] = {"request_kind", "command", "interval"};

    packet_rows_renumber(x->packets, number, now);
    x->text.len = 0;
    for (unsigned i = 0; i < ARRAY_LEN(tables); i++)
        buf_printf(&x->text, "UPDATE %s SET connection = %u WHERE connection = %u;", tables[i], now, number);
    store_sql(x->s, buf_str(&x->text));
}

void export_meta(struct export *x, const char *key, const char *value)
{
    store_text(x->meta, key);
    store_text(x->meta, value);
    store_insert(x->meta);
}

bool export_end(struct export *x)
{
    store_sql(x->s,
              "CREATE INDEX request_row_kind ON request_row(kind, start_ns);"
              "CREATE INDEX command_connection ON command(connection, start_ns);"
              "CREATE INDEX flow_connection ON flow(connection);"
              "CREATE INDEX interval_connection ON interval(connection, time_ns);"
              "CREATE INDEX evidence_of ON evidence(of, number);"
              "CREATE INDEX evidence_frame ON evidence(file, frame);"
              /* as each tap saw it; the ends are those of the direction that was seen first */
              "CREATE VIEW connection AS SELECT f.connection, f.file, f.interface, f.tap, f.service, f.source,"
              " f.source_qpn, f.destination, f.destination_qpn, f.upper, f.setup, f.certainty,"
              " f.pmtu_negotiated_bytes, f.depth_negotiated, f.timeout_negotiated_ns, f.retry_negotiated,"
              " f.rnr_retry_negotiated, s.first_time_ns, s.last_time_ns, s.packets, s.bytes, s.retransmitted_packets, "
              "s.lost_ns FROM"
              " (SELECT connection, file, interface, min(first_time_ns) AS first_time_ns,"
              " max(last_time_ns) AS last_time_ns, sum(packets) AS packets, sum(bytes) AS bytes,"
              " sum(retransmitted_packets) AS retransmitted_packets, sum(lost_ns) AS lost_ns"
              " FROM flow WHERE connection > 0 GROUP BY connection, file, interface) AS s"
              " JOIN flow AS f ON f.flow = (SELECT flow FROM flow WHERE connection = s.connection AND file = s.file"
              " AND interface = s.interface ORDER BY first_time_ns, flow LIMIT 1)");
    return store_commit(x->s);
}
