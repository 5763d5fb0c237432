/* layer 4 (tool): common part of the commands that read whole captures. */
#include "src/cli/capture_cmd.h"

#include "src/cap/chunks.h"
#include "src/cap/merge.h"
#include "src/cap/reorder.h"
#include "src/cli/cli.h"
#include "src/cli/found.h"
#include "src/cli/input/arguments.h"
#include "src/cli/input/links.h"
#include "src/cli/input/reading.h"
#include "src/cli/runs/hosts_part.h"
#include "src/conn/annotate.h"
#include "src/cores/cores.h"
#include "src/cores/turns.h"
#include "src/filter/filter.h"

#include <stdlib.h>
#include <sys/stat.h>

/* trace_flush() writes from this many bytes on. */
#define FLUSH_AT 65536
/* Files of so many bytes are worth several parts, if no number of threads is given. */
#define APART_FROM (16u << 20)

/* --- Output ----------------------------------------------------------------------------------- */

void trace_flush_now(struct trace *t)
{
    if (t->ndjson)
        json_lines_take(&t->lines, &t->out, false);
    if (t->spool && !t->broken) {
        t->broken = fwrite(t->out.p, 1, t->out.len, t->spool) != t->out.len;
        t->out.len = 0;
    } else if (t->broken) {
        t->out.len = 0;
    } else {
        t->broken = cli_show(&t->out) != EXIT_OK;
    }
}

void trace_flush(struct trace *t)
{
    if (t->out.len >= FLUSH_AT)
        trace_flush_now(t);
}

static void write_out(struct trace *t)
{
    if (t->again)
        t->out.len = 0;
    if (t->ndjson && !t->answered)
        json_lines_take(&t->lines, &t->out, true);
    if (t->broken)
        buf_free(&t->out);
    else
        t->broken = cli_show(&t->out) != EXIT_OK;
}

/* --- The command ------------------------------------------------------------------------------ */

/* A line for each file that could not be read to its end, or not decoded. */
static int report_file_errors(const struct cap_merge *m, int status)
{
    for (size_t i = 0; i < cap_merge_count(m); i++) {
        const struct cap_error *e = cap_error(cap_merge_file(m, i));
        if (e->err)
            status = cli_cap_error(e);
        if (!links_decoded(cap_merge_file(m, i)))
            status = EXIT_BAD;
    }
    return status;
}

static struct conn_table *conns_of(const struct trace_cmd *cmd, struct trace *t)
{
    return cmd->conns ? cmd->conns(t) : observer_conns(t->observer);
}

struct analyses_opts trace_analyses(const struct trace *t)
{
    return (struct analyses_opts){.n_files = t->n_files,
                                  .memory = t->memory,
                                  .no_icrc = !t->decode.verify,
                                  .pairs = t->pairs,
                                  .n_pairs = t->n_pairs,
                                  .meter = {.files = t->files}};
}

/* Read the files a first time, for a filter that asks what was found. Returns an exit status. */
static int find_marks(struct trace *t)
{
    t->marked = !t->iface;
    return found_for_fields(t->iface ? NULL : t->files, t->n_files, &t->decode, t->cores, &t->marks);
}

int trace_no_memory(const struct trace *t)
{
    return t->share && t->share->found && t->share->silent ? EXIT_BAD : cli_error("out of memory");
}

static int prepare(const struct trace_cmd *cmd, struct trace *t)
{
    const struct observer_opts opts = {.memory = t->memory, .per_flow = cmd->per_flow};

    if (t->filter_text && cli_filter(&t->filter, t->filter_text) != EXIT_OK)
        return EXIT_BAD;
    if (t->filter && filter_needs(t->filter) & FILTER_NEEDS_MARKS && find_marks(t) != EXIT_OK)
        return EXIT_BAD;
    if (!cmd->conns && !(t->observer = observer_new(&opts)))
        return trace_no_memory(t);
    if (cmd->start && cmd->start(t) != EXIT_OK)
        return EXIT_BAD;
    t->notes |= t->filter && filter_needs(t->filter) & (FILTER_NEEDS_NOTE | FILTER_NEEDS_COLUMN);
    if (t->notes && (!(t->context = context_new(t->memory)) || !ulp_of_context(t->context, &t->ulp)))
        return trace_no_memory(t);
    if (t->filter && filter_needs(t->filter) & FILTER_NEEDS_STREAM && !(t->streams = streams_new()))
        return trace_no_memory(t);
    conn_learn_all(conns_of(cmd, t), t->pairs, t->n_pairs);
    if (t->context)
        conn_learn_all(context_conns(t->context), t->pairs, t->n_pairs);
    return EXIT_OK;
}

/* True if a flow goes from one of the two queue pairs to the other. */
static bool pair_seen(struct conn_table *conns, const struct conn_known *k)
{
    uint32_t n = conn_counts(conns).flows;

    for (const struct flow *f = conn_flows(conns), *end = f + n; f < end; f++)
        for (unsigned to = 0; to < 2; to++)
            if (f->dqpn == k->qpn[to] && conn_addr_alike(&f->dst, &k->addr[to]) &&
                conn_addr_alike(&f->src, &k->addr[!to]))
                return true;
    return false;
}

/* Lines on standard error about evicted flows, and about each --pair without a packet. */
static void report_notes(const struct trace *t, struct conn_table *conns)
{
    uint64_t evicted = conn_counts(conns).evicted;

    if (evicted)
        cli_error("%s evicted, the longest unused: more were active at a time than are kept",
                  count_str(evicted, "flow"));
    if (t->observer && observer_room(t->observer)->refused)
        cli_error("not all that was known of the connections was kept: " ROOM_IS_SHORT);
    for (unsigned i = 0; i < t->n_pairs && !evicted && !t->failed; i++)
        if (!pair_seen(conns, &t->pairs[i]))
            cli_error("--pair %s: no packet between these queue pairs in the capture", t->pair_args[i]);
}

/* Report the results; nothing but a message if connection --conn does not exist: one of several processes does not know
 * which there are. */
static int report(const struct trace_cmd *cmd, struct trace *t)
{
    bool part = t->share && t->share->found;

    if (!t->failed && joins_check(&t->joins, t->iface ? 1 : t->n_files, t->file_ifaces) != EXIT_OK) {
        t->out.len = 0;
        return EXIT_BAD;
    }
    if (!t->conn || part || conn_exists(conns_of(cmd, t), t->conn))
        return cmd->end(t);
    t->out.len = 0;
    return t->failed ? EXIT_OK : cli_no_conn(t->conn);
}

/* First the results of what could be read, then the errors. Without any frame there are no results. */
static int conclude(const struct trace_cmd *cmd, struct trace *t, int status)
{
    int end = EXIT_BAD;

    if (t->failed && !t->frames)
        t->out.len = 0;
    else if ((end = report(cmd, t)) != EXIT_OK && status == EXIT_OK)
        status = end;
    write_out(t);
    if (!t->silent && (end == EXIT_OK || end == EXIT_FOUND))
        report_notes(t, conns_of(cmd, t));
    return t->silent ? status : report_file_errors(t->in, status);
}

/* Read the files and report. */
static int run_files(const struct trace_cmd *cmd, struct trace *t, struct window *w)
{
    struct input in = {.cmd = cmd, .t = t, .w = w, .as_one = t->iface || cmd->pipes || cores_is_one(trace_threads(t))};
    int status;

    if (!in.as_one && !(in.chunks = chunks_new(w)))
        return cli_error("out of memory");
    if (input_open(&in) != EXIT_OK) {
        t->out.len = 0;
        chunks_free(in.chunks);
        return EXIT_BAD;
    }
    t->in = in.m;
    status = input_read(&in);
    t->again |= t->in_parts && cmd->join(t);
    if (!t->again)
        status = conclude(cmd, t, status);
    if (t->live)
        cli_live_report(t->live, t->ring ? t->ring : CLI_LIVE_BUFFER);
    cap_merge_close(in.m);
    chunks_free(in.chunks);
    return status;
}

/* Release what prepare() made, and what was learnt since. */
static void clear(const struct trace_cmd *cmd, struct trace *t)
{
    if (cmd->stop)
        cmd->stop(t);
    buf_free(&t->unread_text);
    observer_free(t->observer);
    context_free(t->context);
    streams_free(t->streams);
    filter_free(t->filter);
    marks_free(&t->marks);
    networks_free(t->first.networks);
}

static int run(const struct trace_cmd *cmd, struct trace *t)
{
    struct window *w = window_new();
    int status = prepare(cmd, t);

    if (status == EXIT_OK && !(t->share && t->share->why))
        status = w ? run_files(cmd, t, w) : cli_error("out of memory");
    clear(cmd, t);
    window_free(w);
    return status;
}

struct trace *trace_new(const struct trace_cmd *cmd)
{
    struct trace *t = calloc(1, cmd->size);

    if (t && cmd->init)
        cmd->init(t);
    return t;
}

/* `paths`: what is read of `files`. */
static int run_on(const struct trace_cmd *cmd, struct trace *t, const char **files, const char **paths, size_t n)
{
    int status;

    t->files = files;
    t->paths = paths;
    t->n_files = n;
    t->file_ifaces = calloc(n, sizeof *t->file_ifaces);
    status = t->file_ifaces ? run(cmd, t) : cli_error("out of memory");
    free(t->file_ifaces);
    return status;
}

/* --- A part ----------------------------------------------------------------------------------- */

struct trace *trace_begin_part(const struct trace_cmd *cmd, const struct trace *t, struct trace_share *share)
{
    struct trace *part = trace_new(cmd);

    if (!part)
        return NULL;
    part->files = t->files;
    part->paths = t->paths;
    part->n_files = t->n_files;
    part->decode = t->decode;
    part->memory = t->memory;
    part->share = share;
    part->silent = true;
    if (prepare(cmd, part) == EXIT_OK)
        return part;
    trace_free_part(cmd, part);
    return NULL;
}

void trace_give_part(const struct trace_cmd *cmd, struct trace *part, struct pkt *p)
{
    if (hosts_part_skips(part->share, p)) {
        observer_early(part->observer, p);
        part->share->passed++;
        return;
    }
    cmd->packet(part, p, true);
    observer_packet(part->observer, p);
}

int trace_finish_part(const struct trace_cmd *cmd, struct trace *part, bool unread)
{
    part->failed = unread;
    return cmd->end(part);
}

void trace_free_part(const struct trace_cmd *cmd, struct trace *part)
{
    if (!part)
        return;
    clear(cmd, part);
    buf_free(&part->out);
    free(part);
}

/* --- Runs of commands ------------------------------------------------------------------------- */

int trace_other_files(const struct trace_cmd *cmd, struct trace *t, const char **files, size_t n,
                      const struct decode_opts *decode)
{
    t->decode = *decode;
    return run_on(cmd, t, files, files, n);
}

int trace_first_pass(const struct trace_cmd *cmd, struct trace *t, const char **files, size_t n,
                     const struct decode_opts *decode)
{
    int status;

    t->silent = true;
    status = trace_other_files(cmd, t, files, n, decode);
    return t->failed ? EXIT_OK : status;
}

/* Of a run of which several processes have found something: that. */
static int open_parts(const struct trace_cmd *cmd, struct trace *t, struct parts *parts)
{
    const struct run *r = t->shards.runs;
    int status;

    if (!cmd->shares || t->shards.n_runs != 1 || t->shards.n != r->n)
        return EXIT_OK;
    status = parts_open(parts, r, cmd->name);
    if (status == EXIT_OK && parts->share.n_parts)
        t->share = &parts->share;
    return status;
}

unsigned trace_may_apart(const struct trace *t)
{
    bool may = t->may_apart && !t->share && !t->iface && !t->shards.n_runs && files_are_regular(t->paths, t->n_files);
    uint64_t bytes = 0;

    if (!may || cores_is_one(t->cores))
        return 0;
    for (size_t i = 0; i < t->n_files; i++) {
        struct stat st;
        bytes += stat(t->paths[i], &st) == 0 ? (uint64_t)st.st_size : 0;
    }
    return t->cores || bytes >= APART_FROM ? min_u32(cores_threads(t->cores, TURNS_MOST), TURNS_MOST) : 0;
}

/* `share` NULL: one process, or what several have found. `again` not NULL: in this process packets may be
 * shared out, if *again is false; it becomes true if all is to be read once more. */
static int run_arguments(const struct trace_cmd *cmd, int argc, char **argv, struct trace_share *share, uint64_t *read,
                         bool *again)
{
    struct trace *t = trace_new(cmd);
    struct parts parts = {0};
    int status;

    if (!t)
        return cli_error("out of memory");
    t->decode.verify = true;
    t->share = share;
    t->silent = share != NULL;
    t->once_more = again && *again;
    t->may_apart = again && !*again;
    status = capture_arguments(cmd, t, argc, argv);
    if (status == EXIT_OK && !t->answered && !share)
        status = open_parts(cmd, t, &parts);
    if (status == EXIT_OK && !t->answered)
        status = run_on(cmd, t, t->shards.files, t->shards.paths, t->shards.n);
    write_out(t);
    if (read)
        *read = t->frames;
    if (again)
        *again = t->again;
    free(t->anonymizer);
    status = t->broken || parts.share.passed_over ? EXIT_BAD : status;
    parts_close(&parts, t->shards.runs);
    shards_free(&t->shards);
    free(t);
    return status;
}

int trace_part(const struct trace_cmd *cmd, int argc, char **argv, struct trace_share *share, uint64_t *read)
{
    return run_arguments(cmd, argc, argv, share, read, NULL);
}

int trace_main(const struct trace_cmd *cmd, int argc, char **argv)
{
    bool again = false;
    int status = run_arguments(cmd, argc, argv, NULL, NULL, &again);

    return again ? run_arguments(cmd, argc, argv, NULL, NULL, &again) : status;
}
