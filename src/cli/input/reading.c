/* layer 4 (tool): the frames of a command's files, and the packets that it gets. */
#include "src/cli/input/reading.h"

#include "src/cap/chunks.h"
#include "src/cap/live.h"
#include "src/cap/reorder.h"
#include "src/cli/cli.h"
#include "src/cli/runs/in_parts.h"
#include "src/conn/annotate.h"
#include "src/cores/cores.h"
#include "src/cores/turns.h"
#include "src/filter/filter.h"
#include "src/show/anonymize.h"

/* --- Packets ---------------------------------------------------------------------------------- */

/* Whether a packet passes the filter; its times since other packets are set, if anything needs them. */
static bool passes(const struct input *i, struct pkt *p)
{
    struct trace *t = i->t;
    bool match;

    if (!t->filter && !i->cmd->times)
        return true;
    frame_times_see(&t->times, p);
    match = !t->filter || filter_match(t->filter, p);
    if (match)
        frame_times_display(&t->times, p);
    return match;
}

/* Fill the findings and incidents of a packet. */
static void mark(const struct trace *t, struct pkt *p)
{
    unsigned n = 0;
    const struct pkt_mark *marks = marks_of(&t->marks, p->frame, &n);

    if (n)
        pkt_marks(p, marks, n);
}

static void deliver(const struct input *i, struct pkt *p)
{
    const struct trace_cmd *cmd = i->cmd;
    struct trace *t = i->t;
    struct frame anonymous;
    bool match;

    t->frames++;
    if (t->anonymizer) {
        anonymize(t->anonymizer, p, &t->decode, &anonymous);
        pkt_decode(p, &anonymous, &t->decode);
    }
    if (!i->judged)
        networks_apply(t->first.networks, p);
    if (UNLIKELY(t->hosts != NULL)) {
        trace_give_part(cmd, t, p);
        return;
    }
    if (t->context) {
        t->decoded = p->n_layers;
        context_note(t->context, p);
    }
    if (t->streams)
        streams_see(t->streams, p);
    if (t->marked)
        mark(t, p);
    match = passes(i, p);
    if (cmd->judge && !i->judged)
        cmd->judge(t, p);
    if (cmd->packet)
        cmd->packet(t, p, match);
    if (t->observer)
        (match || cmd->filter_shows ? observer_packet : observer_teach)(t->observer, p);
}

/* --- Frames ----------------------------------------------------------------------------------- */

/* A live capture waits for frames: those of the window are all that came. */
static void drain(struct input *i)
{
    const struct frame *out;

    while (!i->t->enough && (out = window_get(i->w)))
        deliver(i, cores_dissect(i->cores, out));
}

static bool on_waiting(void *user)
{
    struct input *i = user;

    if (!i->cmd->idle && !i->t->ndjson)
        return false;
    drain(i);
    if (i->t->ndjson && i->t->out.len)
        trace_flush_now(i->t);
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
        deliver(i, p);
    cores_free(i->cores);
    return i->cores != NULL;
}

static bool on_turn(void *user, struct pkt *p, struct turn *turn)
{
    const struct input *i = user;

    (void)turn;
    deliver(i, p);
    return !i->t->enough;
}

/* What deliver() leaves out with i->judged. */
static void on_early(void *user, struct pkt *p)
{
    const struct input *i = user;

    networks_apply(i->t->first.networks, p);
    i->cmd->judge(i->t, p);
}

/* For deliver(); below, for what it leaves out with i->judged. */
static void on_fetch(void *user)
{
    const struct input *i = user;
    const struct trace *t = i->t;

    if (t->judging && !i->judged)
        judge_fetch(t->judging);
    context_fetch(t->context);
    if (t->observer)
        observer_fetch(t->observer);
}

static void on_fetch_early(void *user)
{
    const struct input *i = user;

    if (i->t->judging)
        judge_fetch(i->t->judging);
}

/* Whether the judge takes packets by turns of its own: not if they are changed before it gets them, nor if it is all
 * that the command has. */
static bool has_own_turns(const struct trace_cmd *cmd, const struct trace *t)
{
    return cmd->judge && t->observer && !t->in_parts && !t->anonymizer && !t->share && !t->context && !t->streams &&
           !t->marked;
}

/* Turns of the parts of t->in_parts. */
static uint64_t on_parts_of(void *user, struct pkt *p)
{
    const struct input *i = user;

    networks_apply(i->t->first.networks, p);
    i->t->frames++;
    return i->t->in_parts->parts_of(i->t->in_parts, p);
}

static void on_part(void *user, unsigned part, struct pkt *p)
{
    const struct input *i = user;

    i->t->in_parts->take(i->t->in_parts, part, p);
}

static bool on_part_taken(void *user, unsigned part)
{
    const struct input *i = user;

    return i->t->in_parts->go_on(i->t->in_parts, part);
}

static void on_fetch_part(void *user, unsigned part)
{
    const struct input *i = user;

    i->t->in_parts->fetch(i->t->in_parts, part);
}

static void on_ahead_part(void *user, unsigned part, const struct frame *f)
{
    const struct input *i = user;

    i->t->in_parts->ahead(i->t->in_parts, part, f);
}

static bool by_turns(struct input *i)
{
    const struct in_parts *in = i->t->in_parts;
    bool judged = i->judged = has_own_turns(i->cmd, i->t);
    const struct turns_opts o = {.threads = i->t->cores,
                                 .frames = TURNS_FRAMES,
                                 .decode = i->t->decode,
                                 .longest = i->t->first.longest,
                                 .read = read_for_turns,
                                 .reader = &i->reading,
                                 .in = i->m,
                                 .chunks = i->chunks,
                                 .early = judged ? on_early : NULL,
                                 .fetch_early = on_fetch_early,
                                 .fetch = on_fetch,
                                 .ahead = i->cmd->expect ? on_ahead : NULL,
                                 .take = on_turn,
                                 .parts = in ? in->n : 0,
                                 .parts_of = on_parts_of,
                                 .take_part = on_part,
                                 .part_taken = on_part_taken,
                                 .fetch_part = on_fetch_part,
                                 .ahead_part = in && in->ahead ? on_ahead_part : NULL,
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
    t->again = t->in_parts && (!ok || i->reading.no_memory); /* without the memory of the parts there may be enough */
    if (t->again)
        return EXIT_OK;
    return !ok || i->reading.no_memory ? cli_error("out of memory") : EXIT_OK;
}

/* --- Files ------------------------------------------------------------------------------------ */

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

int input_read(struct input *in)
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

int input_open(struct input *i)
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
