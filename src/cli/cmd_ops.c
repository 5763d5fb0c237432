/* layer 4 (tool): `rdmatrace ops`: work requests, derived from the packets. */
#include "dissect/pkt.h"
#include "src/cli/capture_cmd.h"
#include "src/cli/cli.h"
#include "src/cli/nearest.h"
#include "src/cli/runs/host_owners.h"
#include "src/cli/runs/ops_part.h"
#include "src/commands/list.h"
#include "src/measure/request_parts.h"
#include "src/measure/wqe_sort.h"
#include "src/show/print.h"

#include <stdlib.h>

enum {
    KEY_FOLLOW = 256,
    KEY_WHY,
    KEY_COLUMNS,
    KEY_COMMANDS,
    KEY_GROUPS,
    KEY_ULP,
    KEY_SORT,
};

static const struct opt_def defs[] = {
    TRACE_OPTIONS,
    TRACE_CORES,
    TRACE_FILTER("take"),
    {KEY_FOLLOW, "follow", "N", "show work request N with all its packets"},
    {KEY_WHY, "why", "N", "say where the time of work request N went"},
    {KEY_SORT, "sort", "FIELD",
     "order work requests by this field, largest first: a name of -T csv, such as latency_ns, bytes or\n"
     "lost_ns, or a title of the table"},
    {KEY_COLUMNS, "columns", "NAMES",
     "with -T text: these columns, separated by commas; default: those that fit the terminal"},
    {KEY_COMMANDS, "commands", NULL, "show only the commands of upper protocols, not the work requests"},
    {KEY_GROUPS, "groups", NULL,
     "show only sums over the commands: of each protocol, command and size, with percentiles of the latency"},
    {KEY_ULP, "ulp", "END=PROTOCOL", ULP_HELP},
    {'T', "format", "FORMAT", "text (default), json, ndjson or csv"},
    TRACE_OPTIONS_END,
};

void cmd_ops_help(struct buf *b)
{
    buf_puts(b, "Usage: rdmatrace ops [options] FILE...\n\n"
                "Show the verbs behind the packets: a row for each work request, with its status; then a row for "
                "each\ncommand of an upper protocol (NVMe, NFS, iSER ...), and sums over them.\n\n");
    opt_help(b, defs);
    buf_puts(b, "\nExit status: 0, 2 for usage or input that cannot be read.\n");
}

/* A row that is printed at the end. */
struct late_row {
    uint64_t id;
    size_t off, len; /* in job.late_text */
};

struct job {
    struct trace t;
    struct meter *meter;
    struct request_parts *parts;
    struct printer printer; /* of --follow */
    uint64_t follow, why;   /* number of the requested work request; 0: all */
    uint64_t n;             /* rows written */
    struct late_row *late;
    size_t n_late, cap_late;
    struct buf late_text, frames;
    ns_t origin;
    bool have_origin, ending, no_memory;
    enum rows_format format;
    struct column_names columns; /* of --columns; none: the usual ones */
    struct table table;
    struct command_list commands;
    struct wqe_sort sort;       /* --sort */
    struct ops_part part;       /* with t.share */
    struct host_owners *owners; /* with t.in_parts */
};

static struct job *job_of(struct trace *t)
{
    return (struct job *)t;
}

static int no_column(const char *name, const char *names)
{
    return cli_error("--columns: there is no column %s%s; there are %s", name, nearest_is(wqe_text_nearest(name)).text,
                     names);
}

static int take_columns(struct job *job, const char *arg)
{
    struct buf names = {0};
    int status = EXIT_OK;

    wqe_text_names(&names);
    if (!column_names_parse(&job->columns, arg))
        status = cli_error("--columns %s: expected at most %d names, separated by commas", arg, TABLE_COLUMNS);
    for (unsigned i = 0; status == EXIT_OK && i < job->columns.n; i++) {
        job->columns.names[i] = wqe_text_name(job->columns.names[i]);
        if (!wqe_text_has(job->columns.names[i]))
            status = no_column(job->columns.names[i], buf_str(&names));
    }
    buf_free(&names);
    return status;
}

static int take_sort(struct job *job, const char *arg)
{
    const char *near;

    job->sort.by = wqe_sort_column(arg, &near);
    return job->sort.by ? EXIT_OK
                        : cli_error("--sort %s: there is no such field%s; the first line of -T csv names all", arg,
                                    nearest_is(near).text);
}

static int option(struct trace *t, int key, const char *arg)
{
    struct job *job = job_of(t);

    if (key == KEY_COLUMNS)
        return take_columns(job, arg);
    if (key == KEY_SORT)
        return take_sort(job, arg);
    if (key == KEY_ULP)
        return ulp_option(&job->commands.users, arg);
    if (key == KEY_COMMANDS || key == KEY_GROUPS) {
        job->commands.only = true;
        job->commands.groups |= key == KEY_GROUPS;
        return EXIT_OK;
    }
    if (key == KEY_WHY)
        return opt_number(arg, 1, UINT64_MAX, &job->why)
                   ? EXIT_OK
                   : cli_error("--why %s: expected the number of a work request", arg);
    if (key == KEY_FOLLOW)
        return opt_number(arg, 1, UINT64_MAX, &job->follow)
                   ? EXIT_OK
                   : cli_error("--follow %s: expected the number of a work request", arg);
    return opt_choice("-T", arg, rows_formats, &job->format);
}

static void put_row(void *user, const char *p, size_t n)
{
    struct job *job = user;

    if (job->format == ROWS_JSON)
        buf_puts(&job->t.out, job->n ? ",\n" : "\n");
    buf_mem(&job->t.out, p, n);
    job->n++;
    trace_flush(&job->t);
}

/* Keep a row to the end, where rows are sorted by their numbers. */
static void put_late(struct job *job, uint64_t id, size_t off)
{
    if (job->n_late == job->cap_late) {
        size_t cap = job->cap_late ? job->cap_late * 2 : 256;
        struct late_row *grown = realloc(job->late, cap * sizeof *grown);
        if (!grown) {
            job->no_memory = true;
            return;
        }
        job->late = grown;
        job->cap_late = cap;
    }
    job->late[job->n_late++] = (struct late_row){id, off, job->late_text.len - off};
}

/* The states of JSON and of --why: from its first packet to the response that completed it, or to its last packet. */
static void put_states(struct job *job, const ns_t states[TIME_STATES], ns_t all)
{
    struct buf *b = &job->late_text;

    if (job->format == ROWS_JSON) {
        b->len -= 1; /* the closing brace: one more member follows */
        buf_puts(b, ",\"states\":");
        states_json(b, states);
        buf_char(b, '}');
        return;
    }
    for (unsigned i = 0; job->why && i < TIME_STATES; i++)
        if (states[i]) {
            buf_printf(b, "%28s  ", time_state_words((enum time_state)i));
            buf_duration(b, states[i]);
            buf_printf(b, ", %.3g %%\n", 100.0 * (double)states[i] / (double)all);
        }
}

/* Its row, and where its time went. */
static void put_request(struct job *job, const struct ops_row *r)
{
    const struct wqe_row q = {
        .w = &r->w, .row = r->row, .origin = job->origin, .accounted = r->accounted, .lost = states_lost(r->states)};
    size_t off = job->late_text.len;

    if (job->why && job->format != ROWS_JSON)
        wqe_print_head(&job->late_text, job->format, &job->table);
    wqe_print(&job->late_text, job->format, &job->table, &q);
    if (job->format != ROWS_CSV)
        put_states(job, r->states, r->length);
    if (job->sort.by) {
        wqe_sort_put(&job->sort, &q, job->late_text.p + off, job->late_text.len - off);
        job->late_text.len = off;
    }
}

/* Whether the row of request `id`, of connection `conn`, is written. */
static bool is_selected(const struct job *job, uint64_t id, uint64_t conn)
{
    bool right_id = (!job->follow || id == job->follow) && (!job->why || id == job->why);

    return !job->commands.only && right_id && (!job->t.conn || conn == job->t.conn);
}

/* A work request is over, or was it when another process followed it. */
static void put_over(void *user, const struct ops_row *r)
{
    struct job *job = user;
    size_t off;

    if (!is_selected(job, r->w.id, r->row->conn))
        return;
    if (!job->ending || job->part.taken)
        job->late_text.len = 0;
    off = job->late_text.len;
    put_request(job, r);
    if (job->follow && job->format == ROWS_JSON) {
        job->late_text.len -= 1; /* the closing brace: one more member follows */
        buf_printf(&job->late_text, ",\"frames\":[%s]}", buf_str(&job->frames));
    }
    if (job->ending && !job->part.taken && !job->sort.by)
        put_late(job, r->w.id, off);
    else if (!job->sort.by)
        put_row(job, job->late_text.p, job->late_text.len);
}

static bool is_part(const struct job *job)
{
    return job->t.share && job->t.share->found;
}

static void on_over(void *user, const struct wqe *w, uint32_t flow)
{
    struct job *job = user;
    struct ops_row r = {.w = *w, .row = meter_row_of(job->meter, flow), .late = job->ending};

    if (!is_part(job) && !is_selected(job, w->id, r.row->conn))
        return;
    r.length = request_account_over(job->parts, job->meter, w, flow, r.states, &r.accounted) - w->start;
    if (is_part(job))
        ops_part_over(&job->part, job->t.share, &r, job->meter);
    else
        put_over(job, &r);
}

/* A packet of a work request. */
static void on_work_packet(void *user, const struct wqe *w, const struct pkt *p, uint32_t flow)
{
    struct job *job = user;

    if (is_part(job) || is_selected(job, w->id, meter_row_of(job->meter, flow)->conn))
        request_parts_packet(job->parts, w, p, flow);
    if (w->id != job->follow)
        return;
    if (job->format == ROWS_JSON)
        buf_printf(&job->frames, "%s%llu", job->frames.len ? "," : "", (unsigned long long)p->frame->number);
    else if (job->format == ROWS_TEXT)
        print_packet(&job->printer, &job->t.out, p);
}

/* Subscribe before the meter does, so that the timeline is up to date when the meter reports a work request. */
static bool create_parts(struct job *job)
{
    struct timeline *t = timeline_of(job->t.observer);

    job->parts = t ? request_parts_new(t) : NULL;
    return job->parts != NULL;
}

/* The commands of upper protocols, before the meter for the same reason. */
static bool create_commands(struct job *job)
{
    struct command_list *m = &job->commands;

    if (job->follow || job->why)
        return true;
    m->format = job->format;
    m->conn = is_part(job) ? 0 : job->t.conn;
    m->meter = &job->meter;
    m->origin = &job->origin;
    m->put = put_row;
    m->user = job;
    job->t.ulp.users = &m->users;
    if (m->only && job->t.ndjson)
        job->t.lines.rows = m->groups ? "group" : "command";
    return command_list_start(m, job->t.observer, terminal_size().columns);
}

static void put_head(struct job *job)
{
    if (job->follow || (job->why && job->format != ROWS_JSON) || (job->commands.only && job->format == ROWS_TEXT))
        return; /* it comes before the first row */
    if (job->commands.groups && job->format == ROWS_CSV)
        command_sums_head(&job->t.out);
    else if (job->commands.only)
        command_print_head(&job->t.out, job->format, &job->commands.table);
    else
        wqe_print_head(&job->t.out, job->format, &job->table);
}

static bool needs_all(const struct job *job)
{
    return job->why || job->follow || job->commands.users.n;
}

static int start(struct trace *t)
{
    struct job *job = job_of(t);
    struct meter_opts o = {.files = t->files, .work = {job, on_work_packet, on_over}};

    if (job->commands.groups && (job->why || job->follow))
        return cli_error("ops: --groups is about all commands, --why and --follow about one work request");
    trace_tell_filter(t);
    if (!create_parts(job) || !create_commands(job))
        return trace_no_memory(t);
    wqe_table(&job->table, job->columns.n ? &job->columns : NULL, terminal_size().columns);
    job->table.folds = true;
    job->meter = meter_new(t->observer, &o);
    if (!job->meter)
        return trace_no_memory(t);
    t->notes = job->follow != 0;
    if (t->share)
        ops_part_begin(&job->part, t, needs_all(job));
    else
        job->owners = host_owners_new(&ops_cmd, t, needs_all(job));
    t->in_parts = host_owners_in(job->owners);
    if (is_part(job))
        return EXIT_OK;
    put_head(job);
    if (job->format == ROWS_JSON)
        buf_char(&t->out, '[');
    return EXIT_OK;
}

static void packet(struct trace *t, struct pkt *p, bool match)
{
    struct job *job = job_of(t);

    (void)match;
    if (UNLIKELY(t->share != NULL)) {
        job->part.hosts.why = job->commands.n ? HOSTS_CARRY : job->part.hosts.why;
        ops_part_packet(&job->part, p, job->meter);
    }
    if (!job->have_origin) {
        job->have_origin = true;
        job->origin = p->frame->ts;
    }
    if (job->follow) {
        job->printer.digits = 9;
        print_seen(&job->printer, p);
    }
}

static int by_id(const void *a, const void *b)
{
    const struct late_row *x = a, *y = b;

    return x->id < y->id ? -1 : x->id > y->id;
}

/* Where connections migrated. */
static void put_migrations(struct job *job, struct buf *b)
{
    size_t n;
    struct meter_row **rows = meter_rows(job->meter, &n);

    n = rows_of_conn(rows, n, job->t.conn);
    meter_migrations_put(b, rows, n, terminal_size().columns);
}

static const char *join(struct trace *t)
{
    struct job *job = job_of(t);
    const char *why;

    t->share = host_owners_join(job->owners, &why);
    if (t->share)
        ops_part_begin(&job->part, t, false);
    return t->share ? NULL : why;
}

/* What one of several processes has found. */
static int end_part(struct job *job)
{
    if (!command_list_end(&job->commands, &job->t.out))
        return trace_no_memory(&job->t);
    if (job->commands.n)
        job->part.hosts.why = HOSTS_CARRY;
    return ops_part_save(&job->part, &job->t);
}

static int end(struct trace *t)
{
    struct job *job = job_of(t);

    job->ending = true;
    job->late_text.len = 0;
    if (is_part(job))
        hosts_part_last_frames(t, job->meter);
    if (observer_timeline(t->observer))
        timeline_end(observer_timeline(t->observer));
    meter_end(job->meter);
    if (is_part(job))
        return end_part(job);
    job->origin = job->part.taken ? job->part.first : job->origin;
    job->no_memory |= !ops_part_replay(&job->part, t, put_over, job);
    if (job->n_late)
        qsort(job->late, job->n_late, sizeof *job->late, by_id);
    for (size_t i = 0; i < job->n_late; i++)
        put_row(job, job->late_text.p + job->late[i].off, job->late[i].len);
    wqe_sort_end(&job->sort, put_row, job);
    if (job->sort.left_out && job->format == ROWS_TEXT)
        buf_printf(&t->out, "%llu more come behind them\n", (unsigned long long)job->sort.left_out);
    job->no_memory |= job->sort.failed;
    if (job->format == ROWS_TEXT && !job->why && !job->follow && !job->commands.only)
        put_migrations(job, &t->out);
    job->no_memory |= !command_list_end(&job->commands, &t->out);
    if (job->format == ROWS_JSON)
        buf_puts(&t->out, "\n]\n");
    else if (job->format == ROWS_TEXT)
        cli_unread(t->unread, &t->out);
    if (job->no_memory)
        return cli_error("out of memory");
    if (job->why && !job->n && !t->failed)
        return cli_error("--why %llu: there is no such work request", (unsigned long long)job->why);
    if (job->follow && !job->n && !t->failed)
        return cli_error("--follow %llu: there is no such work request", (unsigned long long)job->follow);
    return EXIT_OK;
}

static void stop(struct trace *t)
{
    struct job *job = job_of(t);

    ops_part_free(&job->part);
    host_owners_free(job->owners);
    command_list_stop(&job->commands);
    meter_free(job->meter);
    request_parts_free(job->parts);
    wqe_sort_free(&job->sort);
    free(job->late);
    buf_free(&job->late_text);
    buf_free(&job->frames);
}

static const struct opt_clash clashes[] = {
    {KEY_COMMANDS, KEY_FOLLOW, 0, NULL},  {KEY_COMMANDS, KEY_WHY, 0, NULL},
    {KEY_COMMANDS, KEY_COLUMNS, 0, NULL}, {KEY_SORT, KEY_COMMANDS, 0, NULL},
    {KEY_SORT, KEY_GROUPS, 0, NULL},      {KEY_SORT, KEY_FOLLOW, 0, NULL},
    {KEY_SORT, KEY_WHY, 0, NULL},         {0, 0, 0, NULL},
};

TRACE_CMD(ops, .digests = true, .shares = true, .by_hosts = true, .rows = "request", .option = option, .packet = packet,
          .join = join, .stop = stop, .clashes = clashes)
