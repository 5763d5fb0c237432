/* layer 4 (tool): `rdmatrace decode`: frames in, text out. */
#include "src/cli/decode.h"

#include "dissect/pkt.h"
#include "src/cap/chunks.h"
#include "src/cap/live.h"
#include "src/cap/merge.h"
#include "src/cap/write.h"
#include "src/cli/cli.h"
#include "src/cli/found.h"
#include "src/cli/input/first_frames.h"
#include "src/cli/input/numbers.h"
#include "src/conn/annotate.h"
#include "src/cores/cores.h"
#include "src/cores/turns.h"
#include "src/filter/filter.h"
#include "src/show/anonymize.h"
#include "src/show/summary.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define FLUSH_AT 65536
/* Bytes of a live capture that wait in memory to be written, at most */
#define LIVE_DELAY     ((size_t)32 << 20)
#define PROGRESS_EVERY (UINT64_C(1) << 18) /* frames between two progress reports */

struct run {
    const struct decode_job *job;
    struct decode_opts decode;
    struct cap_merge *in;
    struct cap *live;      /* live capture, one of those in `in`; NULL: none */
    struct chunks *chunks; /* where frames of files stay until all threads are done with them; NULL: as_one */
    struct cap_writer *out;
    struct anonymizer *anonymizer; /* --anonymize; NULL: the packets as they are */
    struct buf icrc;               /* of anonymize_icrc_comment() */
    struct rotation rotation;      /* -b */
    uint64_t files, held;          /* files begun; packets in the one at hand */
    struct cap_filter *capture_filter;
    struct context *context;
    struct context *numbers; /* after the first frames; NULL: they were not read before */
    struct marks marks;      /* from a first pass over the files */
    bool marked;             /* `marks` is filled */
    bool noted;              /* pkt.note is filled: by `context`, or because `marked` */
    struct filter *filter;   /* -Y; NULL: everything passes */
    struct printer printer;
    struct summary summary;
    struct buf text;
    struct first_frames first; /* what was learnt of the first frames */
    struct cores *cores;
    /* -l, or standard output is a terminal: flush after each packet; the output of a live capture is written whenever
     * it waits */
    bool flush_each;
    bool silent;   /* the capture itself is written to stdout, so no text is */
    bool progress; /* show progress: stderr is a terminal and stdout is not written to it */
    bool found;    /* a packet matched --fail-on */
    bool broken;   /* stdout cannot be written any more ... */
    int why;       /* ... because of this errno */
    bool bounded;  /* -c, -b or, but for its duration, -a is given */
    bool as_one;   /* one thread reads, dissects and prints */
    int status;
    /* Of the thread that reads; apart from what is written for each packet. */
    _Alignas(64) uint64_t n; /* frames read */
    uint16_t digits_file;
    uint32_t digits_iface;
    unsigned digits; /* as printer.digits */
    char apart[64];
};

static void flush(struct run *r, struct buf *text)
{
    if (!r->broken && text->err) {
        r->status = cli_error("out of memory: what follows is missing");
        r->broken = true;
    }
    if (!r->broken && !cli_text(text, STDOUT_FILENO)) {
        r->why = errno;
        r->broken = true;
        if (r->why != EPIPE)
            cli_error("standard output: %s", strerror(r->why));
    }
}

static void flush_text(struct run *r)
{
    flush(r, &r->text);
}

static void write_failed(struct run *r)
{
    r->status = cli_cap_error(cap_writer_error(r->out));
    r->broken = true;
}

static int open_output(struct run *r)
{
    const char *path = r->job->write;
    struct cap_writer_opts o = {.anonymous = r->job->anonymize,
                                .comment = r->job->anonymize ? ANONYMIZE_SECTION : NULL};
    struct cap **inputs;
    struct cap_error err;
    int rc;

    if (!r->job->write)
        return 0;
    inputs = calloc(cap_merge_count(r->in), sizeof(struct cap *));
    if (!inputs)
        return cli_error("out of memory");
    o.inputs = inputs;
    while (o.n_inputs < cap_merge_count(r->in)) {
        inputs[o.n_inputs] = cap_merge_file(r->in, o.n_inputs);
        o.n_inputs++;
    }
    if (rotation_limited(&r->rotation))
        path = rotation_next(&r->rotation, path); /* and no delay: all of a file is written when the next one begins */
    else if (r->live)
        o.delay = LIVE_DELAY;
    rc = !path                                          ? cli_error("out of memory")
         : cap_writer_open(&r->out, path, &o, &err) < 0 ? cli_cap_error(&err)
                                                        : EXIT_OK;
    r->files++;
    r->held = 0;
    free(inputs);
    return rc;
}

/* Copy the statistics of the inputs' interfaces to the output capture. */
static void write_stats(struct run *r)
{
    for (size_t i = 0; i < cap_merge_count(r->in); i++) {
        const struct cap_info *info = cap_info(cap_merge_file(r->in, i));
        for (uint32_t k = 0; k < info->n_ifaces; k++)
            if (info->ifaces[k].has_drops || info->ifaces[k].received)
                cap_write_stats(r->out, (uint16_t)i, k, &info->ifaces[k]);
    }
}

/* Close the output capture; its error, if there was none before, becomes the exit status. */
static void close_output(struct run *r)
{
    struct cap_live_stats s;
    struct cap_error err;

    if (r->live)
        cap_live_stats(r->live, &s);
    if (r->out)
        write_stats(r);
    if (r->out && cap_writer_close(r->out, &err) < 0 && r->status == EXIT_OK)
        r->status = cli_cap_error(&err);
    r->out = NULL;
}

/* Whether the file at hand is full, as -b says. */
static bool is_full(const struct run *r)
{
    return UNLIKELY(r->bounded) && rotation_limited(&r->rotation) && r->out &&
           rotation_is_full(&r->rotation, cap_writer_size(r->out), r->held);
}

/* As many frames as -c says, or as many bytes or files as -a says, are there. */
static inline bool is_done(const struct run *r)
{
    const struct decode_job *job = r->job;

    if (LIKELY(!r->bounded))
        return false;
    if (job->count && r->n >= job->count)
        return true;
    if (job->stop.kilobytes && !rotation_limited(&r->rotation) && cap_writer_size(r->out) >= job->stop.kilobytes * 1000)
        return true;
    return job->stop.files && r->files >= job->stop.files && is_full(r);
}

/* -b: if the file at hand is full, begin the next one. */
static void turn_file(struct run *r)
{
    if (LIKELY(!is_full(r)) || r->broken || is_done(r))
        return;
    close_output(r);
    if (open_output(r) != EXIT_OK)
        r->broken = true;
}

/* Print what was decoded so far, and flush the output capture. */
static void flush_all(struct run *r)
{
    if (r->text.len)
        flush_text(r);
    if (r->out && !r->broken && cap_writer_flush(r->out) < 0)
        write_failed(r);
}

/* A pipe has nothing to read. */
static bool on_pipe_waiting(void *user)
{
    flush_all(user);
    return cli_pipe_waits();
}

/* A live capture waits for frames: print what was decoded so far, and write a part of the output capture. */
static bool on_idle(void *user)
{
    struct run *r = user;
    int more = 0;

    if (r->text.len)
        flush_text(r);
    if (r->out && !r->broken && (more = cap_writer_flush_some(r->out)) < 0)
        write_failed(r);
    turn_file(r);
    if (r->broken || is_done(r))
        cap_live_break(r->live);
    return more > 0;
}

static int open_live(struct run *r)
{
    struct cap_live_opts o = {.snaplen = r->job->snaplen,
                              .buffer = r->job->buffer,
                              .no_promisc = r->job->no_promisc,
                              .xdp = r->job->xdp,
                              .filter = r->job->capture_filter,
                              .idle = on_idle,
                              .user = r};

    return cli_live_open(&r->job->ifaces, &o, &r->job->stop, &r->live, &r->in);
}

static int open_input(struct run *r)
{
    struct cap_opts opts = {.idle = on_pipe_waiting, .idle_ms = CLI_PIPE_MS, .idle_user = r};
    struct joins joins = {0}; /* interfaces are not joined here */
    struct cap_error err;

    if (r->job->ifaces.n)
        return open_live(r);
    if (!r->as_one && !(opts.chunks = r->chunks = chunks_new(NULL)))
        return cli_error("out of memory");
    cli_pipe_open(r->job->files, r->job->n_files);
    if (cap_merge_open(&r->in, r->job->files, r->job->n_files, &opts, &err) < 0)
        return cli_cap_error(&err);
    first_frames_read(r->job->files, r->job->n_files, &r->decode, &joins, &r->first);
    if (r->job->capture_filter) {
        const struct cap_info *info = cap_info(cap_merge_file(r->in, 0));
        uint16_t linktype = info->n_ifaces ? info->ifaces[0].linktype : LINK_ETHERNET;
        if (cap_filter_compile(&r->capture_filter, r->job->capture_filter, linktype, 0, &err) < 0)
            return cli_cap_error(&err);
    }
    return 0;
}

/* The decimals of the time column: as many as the file's time stamps have, 6 or 9. */
static unsigned digits_of(struct run *r, const struct frame *f)
{
    const struct cap_iface *iface;

    if (LIKELY(r->digits && r->digits_file == f->file && r->digits_iface == f->iface))
        return r->digits;
    iface = cap_iface_of(cap_merge_file(r->in, f->file), f);
    r->digits_file = f->file;
    r->digits_iface = f->iface;
    r->digits = iface && iface->tsresol == 6 ? 6 : 9;
    return r->digits;
}

/* Write the packet to the output capture. */
static void write_packet(struct run *r, const struct pkt *p)
{
    const char *icrc = r->anonymizer ? anonymize_icrc_comment(&r->icrc, p) : NULL;
    struct frame f;

    if (r->anonymizer)
        anonymize(r->anonymizer, p, &r->decode, &f);
    if (icrc)
        cap_write_comment(r->out, icrc, strlen(icrc));
    if (cap_write(r->out, r->anonymizer ? &f : p->frame,
                  cap_iface_of(cap_merge_file(r->in, p->frame->file), p->frame)) < 0)
        write_failed(r);
}

#define NOT_THE_FIRST 0x100u /* of the tag of a packet: others are shown before it; the rest of it are the digits */

/* Print a packet: now, or, of those taken by turns, once the thread has taken its batch. */
static void print(struct run *r, const struct pkt *p, struct turn *turn)
{
    if (!turn || print_now(p)) {
        r->printer.digits = turn ? turn->tag : cores_tag(r->cores);
        print_packet(&r->printer, turn ? turn->said : &r->text, p);
        return;
    }
    turn->later = true;
    turn->tag |= r->printer.n_shown ? NOT_THE_FIRST : 0;
    print_elsewhere(&r->printer, p);
}

/* `turn`: NULL if one thread does all. */
static void show(struct run *r, struct pkt *p, struct turn *turn)
{
    r->found |= (r->job->fail_bad_icrc && p->icrc == CRC_BAD) || (r->job->fail_malformed && p->flags & PKT_MALFORMED);
    turn_file(r);
    if (r->out)
        write_packet(r, p);
    r->held++;
    if (r->silent)
        return;
    if (r->job->quiet) {
        summary_add(&r->summary, p);
        return;
    }
    print(r, p, turn);
    if (!turn && UNLIKELY(r->text.len >= FLUSH_AT || r->flush_each))
        flush_text(r);
}

static void show_progress(struct run *r)
{
    uint64_t size = 0, consumed = 0;

    for (size_t i = 0; i < cap_merge_count(r->in); i++) {
        const struct cap_info *info = cap_info(cap_merge_file(r->in, i));
        size += info->size;
        consumed += info->consumed;
    }
    if (size)
        fprintf(stderr, "\r%3.0f %%, %s", 100.0 * (double)consumed / (double)size, count_str(r->n, "packet"));
    else
        fprintf(stderr, "\r%s", count_str(r->n, "packet"));
}

/* Whether a frame passes -f. False also if the filter fails; then the run ends. */
static bool captured(struct run *r, const struct frame *f)
{
    int m;

    if (LIKELY(!r->capture_filter))
        return true;
    m = cap_filter_match(r->capture_filter, f);
    if (m < 0) {
        r->status = cli_cap_error(cap_filter_error(r->capture_filter));
        r->broken = true;
    }
    return m > 0;
}

/* Fill p->note from other packets: context and marks. */
static inline void note(struct run *r, struct pkt *p)
{
    unsigned n = 0;
    const struct pkt_mark *marks = r->marked ? marks_of(&r->marks, p->frame, &n) : NULL;

    if (r->context)
        context_note(r->context, p);
    if (r->numbers && p->note.have & NOTE_CONN)
        p->note.conn = conn_number_now(context_conns(r->numbers), p->note.conn);
    if (n)
        pkt_marks(p, marks, n);
}

/* Whether the packet passes --conn and -Y. */
static inline bool is_shown(struct run *r, struct pkt *p)
{
    uint32_t conn = r->job->conn;

    if (UNLIKELY(conn) && (!(p->note.have & NOTE_CONN) || p->note.conn != conn))
        return false;
    return !r->filter || filter_match(r->filter, p);
}

/* The next frame that passes -f. */
static bool read_frame(void *run, struct frame *f, uint32_t *tag)
{
    struct run *r = run;

    if (is_done(r) || cap_merge_next(r->in, f) <= 0)
        return false;
    while (!captured(r, f)) { /* then one thread does all */
        frame_times_pass(&r->printer.times, f->ts);
        if (cap_merge_next(r->in, f) <= 0)
            return false;
    }
    r->n++;
    *tag = digits_of(r, f);
    if (UNLIKELY(r->progress && r->n % PROGRESS_EVERY == 0))
        show_progress(r);
    return true;
}

/* Print a packet that was put off, by any thread. */
static void show_later(void *run, void *scratch, struct buf *text, const struct pkt *p, uint32_t tag)
{
    const struct run *r = run;
    struct printer *own = scratch;

    if (!own->digits)
        own->opts = r->printer.opts;
    own->digits = tag & ~NOT_THE_FIRST;
    own->n_shown = tag & NOT_THE_FIRST;
    print_packet(own, text, p);
}

/* Write what was printed of some packets. False: no more of it. */
static bool write_text(void *run, struct buf *text)
{
    struct run *r = run;

    flush_text(r);
    flush(r, text);
    return !r->broken;
}

/* A reading of the first frames. */
struct first_pass {
    struct run *r;
    struct cap_merge *in;
};

/* cores_opts.read: the next frame that passes -f. */
static bool read_first(void *user, struct frame *f, uint32_t *tag)
{
    struct first_pass *s = user;

    *tag = 0;
    do
        if (cap_merge_next(s->in, f) <= 0)
            return false;
    while (!captured(s->r, f));
    return true;
}

/* Read the first frames for the numbers of connections. Errors are told by those who read the rest. */
static void find_numbers(struct run *r)
{
    struct first_pass s = {.r = r};
    const struct cores_opts o = {.decode = r->decode, .longest = r->first.longest, .read = read_first, .reader = &s};
    struct cap_error err;

    if (!r->context || r->job->ifaces.n || !files_are_regular(r->job->files, r->job->n_files) ||
        cap_merge_open(&s.in, r->job->files, r->job->n_files, NULL, &err) < 0)
        return;
    r->numbers = numbers_first(&o, r->first.networks);
    cap_merge_close(s.in);
}

static void take(struct run *r, struct pkt *p, struct turn *turn)
{
    networks_apply(r->first.networks, p);
    if (r->noted)
        note(r, p);
    print_seen(&r->printer, p);
    if (is_shown(r, p))
        show(r, p, turn);
}

/* By this thread alone. */
static bool alone(struct run *r)
{
    const struct cores_opts o = {.decode = r->decode, .longest = r->first.longest, .read = read_frame, .reader = r};
    struct pkt *p;

    if (!(r->cores = cores_new(&o)))
        return false;
    while (!r->broken && (p = cores_next(r->cores)))
        take(r, p, NULL);
    cores_free(r->cores);
    return true;
}

static bool read_for_turns(void *run, struct frame *f, uint32_t *tag, bool *stays)
{
    const struct run *r = run;
    bool got = read_frame(run, f, tag);

    *stays = got && cap_keeps(cap_merge_file(r->in, f->file));
    return got;
}

static bool on_turn(void *run, struct pkt *p, struct turn *turn)
{
    take(run, p, turn);
    return true;
}

static void on_fetch(void *run)
{
    context_fetch(((const struct run *)run)->context);
}

static bool by_turns(struct run *r)
{
    const struct turns_opts o = {.threads = r->job->cores,
                                 .frames = print_is_line(&r->printer.opts) ? TURNS_LINES : TURNS_TREES,
                                 .decode = r->decode,
                                 .longest = r->first.longest,
                                 .read = read_for_turns,
                                 .reader = r,
                                 .in = r->in,
                                 .chunks = r->chunks,
                                 .fetch = on_fetch,
                                 .take = on_turn,
                                 .show = show_later,
                                 .scratch_size = sizeof(struct printer),
                                 .write = write_text,
                                 .user = r};

    return turns_run(&o);
}

/* Report the error of each file that could not be read to its end. */
static void report_errors(struct run *r)
{
    for (size_t i = 0; i < cap_merge_count(r->in); i++) {
        const struct cap_error *e = cap_error(cap_merge_file(r->in, i));
        if (e->err)
            r->status = cli_cap_error(e);
    }
}

static void finish(struct run *r)
{
    if (r->progress && r->n >= PROGRESS_EVERY)
        fputs("\r\033[K", stderr);
    if (r->job->quiet && !r->silent)
        summary_print(&r->text, &r->summary);
    else if (!r->silent)
        print_end(&r->printer, &r->text);
    flush_text(r);
    report_errors(r);
    if (r->job->conn && r->status == EXIT_OK && !conn_exists(context_conns(r->context), r->job->conn))
        r->status = cli_no_conn(r->job->conn);
    if (r->live)
        cli_live_report(r->live, r->job->buffer);
    close_output(r);
    if (r->status == EXIT_OK && r->broken && r->why != EPIPE)
        r->status = EXIT_BAD;
    if (r->status == EXIT_OK && r->found)
        r->status = EXIT_FOUND;
}

/* Read the files a first time, if `marked`. Returns an exit status. */
static int find_marks(struct run *r)
{
    const struct decode_job *job = r->job;

    if (!r->marked)
        return EXIT_OK;
    return found_for_fields(job->ifaces.n ? NULL : job->files, job->n_files, &job->decode, job->cores, &r->marks);
}

/* Prepare --anonymize. Returns an exit status. */
static int open_anonymizer(struct run *r)
{
    if (!r->job->anonymize)
        return EXIT_OK;
    r->anonymizer = calloc(1, sizeof *r->anonymizer);
    if (!r->anonymizer)
        return cli_error("out of memory");
    if (pseudonyms_init(&r->anonymizer->names, r->job->anonymize_key) < 0)
        return cli_error("--anonymize: libsodium does not start");
    return EXIT_OK;
}

int decode_run(const struct decode_job *job)
{
    static int (*const steps[])(struct run *) = {find_marks, open_input, open_output, open_anonymizer};
    static struct run r; /* zero, and too large for some stacks */
    struct decode_needs needs;

    r.job = job;
    r.rotation = job->rotation;
    r.bounded = job->count || job->stop.kilobytes || job->stop.files || rotation_limited(&job->rotation);
    r.printer.opts = job->print;
    r.printer.opts.files = job->files;
    r.printer.opts.n_files = job->n_files;
    r.decode = job->decode;
    r.flush_each = job->line_buffered || (!job->ifaces.n && isatty(STDOUT_FILENO));
    r.silent = job->write && strcmp(job->write, "-") == 0;
    r.as_one = decode_as_one(job, r.flush_each);
    r.progress = isatty(STDERR_FILENO) && !job->ifaces.n && (job->quiet || !isatty(STDOUT_FILENO));
    r.status = job->display_filter ? cli_filter(&r.filter, job->display_filter) : EXIT_OK;
    needs = decode_needs(job, r.filter, r.silent);
    r.decode.verify = needs.crc;
    r.marked = needs.marks;
    for (size_t i = 0; i < ARRAY_LEN(steps) && r.status == EXIT_OK; i++)
        r.status = steps[i](&r);
    if (r.status == EXIT_OK && needs.context) {
        r.context = context_new(0);
        if (!r.context || !ulp_of_context(r.context, &(struct ulp_opts){.users = &job->ulp}))
            r.status = cli_error("out of memory");
    }
    if (r.status == EXIT_OK && needs.streams && !(r.printer.streams = streams_new()))
        r.status = cli_error("out of memory");
    r.noted = r.context || r.marked;
    r.decode.headers_only = needs.headers_only;
    if (r.status == EXIT_OK)
        find_numbers(&r);
    if (r.status == EXIT_OK) {
        if (!job->quiet && !r.silent)
            print_begin(&r.printer, &r.text);
        if (!(r.as_one ? alone(&r) : by_turns(&r)))
            r.status = cli_error("out of memory");
        finish(&r);
    }
    cap_filter_free(r.capture_filter);
    free(r.anonymizer);
    buf_free(&r.icrc);
    context_free(r.context);
    context_free(r.numbers);
    streams_free(r.printer.streams);
    marks_free(&r.marks);
    filter_free(r.filter);
    networks_free(r.first.networks);
    cap_merge_close(r.in);
    chunks_free(r.chunks);
    rotation_free(&r.rotation);
    buf_free(&r.text);
    return r.status;
}
