/* layer 4 (tool): common part of the commands that read whole captures. */
#include "src/cli/capture_cmd.h"

#include "dissect/pkt.h"
#include "src/cap/chunks.h"
#include "src/cap/live.h"
#include "src/cap/merge.h"
#include "src/cap/reorder.h"
#include "src/cli/cli.h"
#include "src/cli/found.h"
#include "src/cli/input/arguments.h"
#include "src/cli/input/links.h"
#include "src/cli/runs/hosts_part.h"
#include "src/conn/annotate.h"
#include "src/cores/cores.h"
#include "src/cores/turns.h"
#include "src/filter/filter.h"
#include "src/show/anonymize.h"
#include "tokens.h"

#include <stdlib.h>

/* trace_flush() writes from this many bytes on. */
#define FLUSH_AT 65536

/* --- Reading ---------------------------------------------------------------------------------- */

/* Fill the findings and incidents of a packet. */
static void mark(const struct trace *t, struct pkt *p)
{
    unsigned n = 0;
    const struct pkt_mark *marks = marks_of(&t->marks, p->frame, &n);

    if (n)
        pkt_marks(p, marks, n);
}

static void deliver(const struct trace_cmd *cmd, struct trace *t, struct pkt *p)
{
    struct frame anonymous;
    bool match;

    t->frames++;
    if (t->anonymizer) {
        anonymize(t->anonymizer, p, &t->decode, &anonymous);
        pkt_decode(p, &anonymous, &t->decode);
    }
    if (!t->early)
        networks_apply(t->first.networks, p);
    if (UNLIKELY(t->share && cmd->by_hosts && t->share->found) && hosts_part_skips(t->share, p)) {
        observer_early(t->observer, p);
        t->share->passed++;
        return;
    }
    if (t->context) {
        t->decoded = p->n_layers;
        context_note(t->context, p);
    }
    frame_times_see(&t->times, p);
    if (t->streams)
        streams_see(t->streams, p);
    if (t->marked)
        mark(t, p);
    match = !t->filter || filter_match(t->filter, p);
    if (match)
        frame_times_display(&t->times, p);
    if (cmd->early && !t->early)
        cmd->early(t, p);
    if (cmd->packet)
        cmd->packet(t, p, match);
    if (t->observer)
        (match || cmd->filter_shows ? observer_packet : observer_teach)(t->observer, p);
}

static void flush_now(struct trace *t)
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
        flush_now(t);
}

/* The frames of the files in their order, and the packets made of them. */
struct input {
    const struct trace_cmd *cmd;
    struct trace *t;
    struct cap_merge *m;
    struct window *w;      /* sorts the frames by time */
    struct cores *cores;   /* with `as_one` */
    struct chunks *chunks; /* else */
    bool as_one;           /* one thread reads, dissects and analyses */
    /* Of the thread that reads, which uses nothing that the one that takes writes for each packet: a cache line that
     * two threads write costs each of them more than the packet. */
    struct reading {
        _Alignas(64) struct cap_merge *m;
        struct window *w;
        struct input *as_one; /* NULL: another thread takes the packets */
        struct joins joins;
        uint64_t most;  /* frames, at most */
        uint64_t read;  /* frames */
        bool own;       /* a frame is overwritten by the next one */
        bool ended;     /* there are no more frames but those of the window */
        bool no_memory; /* of the window */
        char apart[64];
    } reading;
};

/* A live capture waits for frames: those of the window are all that came. */
static void drain(struct input *i)
{
    const struct frame *out;

    while (!i->t->enough && (out = window_get(i->w)))
        deliver(i->cmd, i->t, cores_dissect(i->cores, out));
}

static bool on_waiting(void *user)
{
    struct input *i = user;

    if (!i->cmd->idle && !i->t->ndjson)
        return false;
    drain(i);
    if (i->t->ndjson && i->t->out.len)
        flush_now(i->t);
    if (i->cmd->idle)
        i->cmd->idle(i->t);
    if (i->t->enough && i->t->live)
        cap_live_break(i->t->live);
    return false;
}

/* The same for a pipe. */
static bool on_pipe_waiting(void *user)
{
    const struct input *i = user;

    on_waiting(user);
    return !i->t->enough;
}

/* Of a command that does nothing meanwhile. */
static bool wait_for_pipe(void *user)
{
    (void)user;
    return cli_pipe_waits();
}

/* Put the next frame of the files into the window; without one, reading has ended. */
static void put_next(struct reading *r)
{
    struct input *one = r->as_one;
    struct frame *f = window_room(r->w);

    r->no_memory = !f;
    r->ended = !f || (one && one->t->enough) || r->read == r->most || cap_merge_next(r->m, f) <= 0;
    if (r->ended)
        return;
    r->read++;
    joins_apply(&r->joins, f);
    r->no_memory = r->ended = !window_put(r->w, f);
    if (one && one->cmd->expect)
        one->cmd->expect(one->t, f);
    if (r->own)
        window_own(r->w);
}

/* The next frame in the order of time. */
static const struct frame *next_frame(struct reading *r)
{
    while (!r->ended && !window_full(r->w))
        put_next(r);
    return window_get(r->w);
}

static bool read_frame(void *user, struct frame *f, uint32_t *tag)
{
    const struct frame *out = next_frame(user);

    (void)tag;
    if (out)
        *f = *out;
    return out != NULL;
}

static bool read_for_turns(void *user, struct frame *f, uint32_t *tag, bool *stays)
{
    const struct reading *r = user;
    const struct frame *out = next_frame(user);

    (void)tag;
    if (!out)
        return false;
    *f = *out;
    *stays = !window_copied(r->w) && cap_keeps(cap_merge_file(r->m, f->file));
    return true;
}

static void on_ahead(void *user, const struct frame *f)
{
    const struct input *i = user;

    i->cmd->expect(i->t, f);
}

/* By this thread alone. */
static bool as_one(struct input *i)
{
    const struct cores_opts o = {
        .decode = i->t->decode, .longest = i->t->first.longest, .read = read_frame, .reader = &i->reading};
    struct pkt *p;

    i->cores = cores_new(&o);
    while (i->cores && !i->t->enough && (p = cores_next(i->cores)))
        deliver(i->cmd, i->t, p);
    cores_free(i->cores);
    return i->cores != NULL;
}

static bool on_turn(void *user, struct pkt *p, struct turn *turn)
{
    const struct input *i = user;

    (void)turn;
    deliver(i->cmd, i->t, p);
    return !i->t->enough;
}

/* What deliver() leaves out with t->early. */
static void on_early(void *user, struct pkt *p)
{
    const struct input *i = user;

    networks_apply(i->t->first.networks, p);
    i->cmd->early(i->t, p);
}

/* Whether packets go through the command's early() by a turn of its own: not if they are changed before, nor if there
 * is nothing else to be done. */
static bool is_early(const struct trace_cmd *cmd, const struct trace *t)
{
    return cmd->early && t->observer && !t->anonymizer && !t->share && !t->context && !t->streams && !t->marked;
}

static bool by_turns(struct input *i)
{
    bool early = i->t->early = is_early(i->cmd, i->t);
    const struct turns_opts o = {.threads = i->t->cores,
                                 .decode = i->t->decode,
                                 .longest = i->t->first.longest,
                                 .read = read_for_turns,
                                 .reader = &i->reading,
                                 .chunks = i->chunks,
                                 .early = early ? on_early : NULL,
                                 .ahead = i->cmd->expect ? on_ahead : NULL,
                                 .take = on_turn,
                                 .user = i};

    return turns_run(&o);
}

/* Deliver all frames. */
static int read_frames(struct input *i)
{
    struct trace *t = i->t;
    bool ok;

    i->reading = (struct reading){.m = i->m,
                                  .w = i->w,
                                  .as_one = i->as_one ? i : NULL,
                                  .joins = t->joins,
                                  .most = t->stop.packets ? t->stop.packets : UINT64_MAX,
                                  .own = t->iface != NULL};
    ok = i->as_one ? as_one(i) : by_turns(i);
    return !ok || i->reading.no_memory ? cli_error("out of memory") : EXIT_OK;
}

/* Packets that the interfaces of a file dropped, as the file states. */
static uint64_t file_drops(struct cap *c)
{
    const struct cap_info *info = cap_info(c);
    uint64_t n = 0;

    for (uint32_t i = 0; i < info->n_ifaces; i++)
        n += info->ifaces[i].dropped + info->ifaces[i].os_dropped;
    return n;
}

static void files_moving(void *window)
{
    window_own(window);
}

static void note_unread(struct trace *t, const struct cap_error *e)
{
    if (!e->err)
        return;
    t->failed = true;
    buf_puts(&t->unread_text, t->unread_text.len ? "; " : "");
    cap_error_line(e, &t->unread_text);
    t->unread = buf_str(&t->unread_text);
}

/* Deliver all frames of the open files, then the drops that the files state. */
static int read_files(struct input *in)
{
    const struct trace_cmd *cmd = in->cmd;
    struct trace *t = in->t;
    struct cap_merge *m = in->m;
    int status = read_frames(in);

    t->ifaces = 1;
    for (size_t i = 0; i < cap_merge_count(m); i++) {
        uint64_t drops = file_drops(cap_merge_file(m, i));
        note_unread(t, cap_error(cap_merge_file(m, i)));
        t->file_ifaces[i] = max_u32(1, cap_info(cap_merge_file(m, i))->n_ifaces);
        t->ifaces = max_u32(t->ifaces, t->file_ifaces[i]);
        if (drops && cmd->drops)
            cmd->drops(t, (uint16_t)i, drops);
    }
    t->failed |= status != EXIT_OK;
    return status;
}

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

/* --- The command ------------------------------------------------------------------------------ */

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

static int prepare(const struct trace_cmd *cmd, struct trace *t)
{
    const struct observer_opts opts = {.memory = t->memory, .per_flow = cmd->per_flow};

    if (t->filter_text && cli_filter(&t->filter, t->filter_text) != EXIT_OK)
        return EXIT_BAD;
    if (t->filter && filter_needs(t->filter) & FILTER_NEEDS_MARKS && find_marks(t) != EXIT_OK)
        return EXIT_BAD;
    if (!cmd->conns && !(t->observer = observer_new(&opts)))
        return cli_error("out of memory");
    if (cmd->start && cmd->start(t) != EXIT_OK)
        return EXIT_BAD;
    t->notes |= t->filter && filter_needs(t->filter) & (FILTER_NEEDS_NOTE | FILTER_NEEDS_COLUMN);
    if (t->notes && (!(t->context = context_new(t->memory)) || !ulp_of_context(t->context, &t->ulp)))
        return cli_error("out of memory");
    if (t->filter && filter_needs(t->filter) & FILTER_NEEDS_STREAM && !(t->streams = streams_new()))
        return cli_error("out of memory");
    conn_learn_all(conns_of(cmd, t), t->pairs, t->n_pairs);
    if (t->context)
        conn_learn_all(context_conns(t->context), t->pairs, t->n_pairs);
    return EXIT_OK;
}

static void write_out(struct trace *t)
{
    if (t->ndjson && !t->answered)
        json_lines_take(&t->lines, &t->out, true);
    if (t->broken)
        buf_free(&t->out);
    else
        t->broken = cli_show(&t->out) != EXIT_OK;
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

/* Open the live capture or the files. EXIT_OK, or EXIT_BAD after a message. */
static int open_input(struct input *i)
{
    struct trace *t = i->t;
    const struct cap_live_opts o = {.buffer = t->ring ? t->ring : CLI_LIVE_BUFFER, .idle = on_waiting, .user = i};
    const struct cap_opts opts = {.moving = files_moving,
                                  .user = i->w,
                                  .chunks = i->chunks,
                                  .idle = i->cmd->pipes ? on_pipe_waiting : wait_for_pipe,
                                  .idle_ms = i->cmd->pipes ? CLI_KEYS_MS : CLI_PIPE_MS,
                                  .idle_user = i,
                                  .owners =
                                      t->share && !(t->share->found && i->cmd->by_hosts) ? t->share->owners.of : NULL};
    struct cap_error err;

    if (t->iface)
        return cli_live_open(&t->ifaces_given, &o, &t->stop, &t->live, &i->m);
    if (!i->cmd->pipes)
        cli_pipe_open(t->files, t->n_files);
    if (!t->share && t->shards.n_runs && run_complete && run_complete() != EXIT_OK)
        return EXIT_BAD;
    if (cap_merge_open(&i->m, t->paths, t->n_files, &opts, &err) < 0)
        return cli_cap_error(&err);
    first_frames_read(t->paths, t->n_files, &t->decode, &t->joins, &t->first);
    if (t->share && t->share->found && t->first.torn) {
        t->share->why = "the beginning of a file cannot be read";
        t->enough = true;
    }
    return EXIT_OK;
}

/* Read the files and report: first the results of what could be read, then the errors. Without any frame there are no
 * results. */
static int run_files(const struct trace_cmd *cmd, struct trace *t, struct window *w)
{
    struct input in = {.cmd = cmd, .t = t, .w = w, .as_one = t->iface || cmd->pipes || cores_is_one(trace_threads(t))};
    int status, end = EXIT_BAD;

    if (!in.as_one && !(in.chunks = chunks_new(w)))
        return cli_error("out of memory");
    if (open_input(&in) != EXIT_OK) {
        t->out.len = 0;
        chunks_free(in.chunks);
        return EXIT_BAD;
    }
    t->in = in.m;
    status = read_files(&in);
    if (t->failed && !t->frames)
        t->out.len = 0;
    else if ((end = report(cmd, t)) != EXIT_OK && status == EXIT_OK)
        status = end;
    write_out(t);
    if (!t->silent && (end == EXIT_OK || end == EXIT_FOUND))
        report_notes(t, conns_of(cmd, t));
    if (!t->silent)
        status = report_file_errors(in.m, status);
    if (t->live)
        cli_live_report(t->live, t->ring ? t->ring : CLI_LIVE_BUFFER);
    cap_merge_close(in.m);
    chunks_free(in.chunks);
    return status;
}

static int run(const struct trace_cmd *cmd, struct trace *t)
{
    struct window *w = window_new();
    int status = prepare(cmd, t);

    if (status == EXIT_OK && !(t->share && t->share->why))
        status = w ? run_files(cmd, t, w) : cli_error("out of memory");
    if (cmd->stop)
        cmd->stop(t);
    buf_free(&t->unread_text);
    observer_free(t->observer);
    window_free(w);
    context_free(t->context);
    streams_free(t->streams);
    filter_free(t->filter);
    marks_free(&t->marks);
    networks_free(t->first.networks);
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

/* `share` NULL: one process, or what several have found. */
static int run_arguments(const struct trace_cmd *cmd, int argc, char **argv, struct trace_share *share, uint64_t *read)
{
    struct trace *t = trace_new(cmd);
    struct parts parts = {0};
    int status;

    if (!t)
        return cli_error("out of memory");
    t->decode.verify = true;
    t->share = share;
    t->silent = share != NULL;
    status = capture_arguments(cmd, t, argc, argv);
    if (status == EXIT_OK && !t->answered && !share)
        status = open_parts(cmd, t, &parts);
    if (status == EXIT_OK && !t->answered)
        status = run_on(cmd, t, t->shards.files, t->shards.paths, t->shards.n);
    write_out(t);
    if (read)
        *read = t->frames;
    free(t->anonymizer);
    status = t->broken || parts.share.passed_over ? EXIT_BAD : status;
    parts_close(&parts, t->shards.runs);
    shards_free(&t->shards);
    free(t);
    return status;
}

int trace_part(const struct trace_cmd *cmd, int argc, char **argv, struct trace_share *share, uint64_t *read)
{
    return run_arguments(cmd, argc, argv, share, read);
}

int trace_main(const struct trace_cmd *cmd, int argc, char **argv)
{
    return run_arguments(cmd, argc, argv, NULL, NULL);
}
