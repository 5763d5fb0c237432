/* layer 4 (tool): `rdmatrace top`: what the connections do now. */
#include "beside.h"
#include "clock.h"
#include "dissect/pkt.h"
#include "src/cap/live.h"
#include "src/cli/capture_cmd.h"
#include "src/cli/cli.h"
#include "src/top/screen.h"
#include "src/top/top.h"
#include "tokens.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

enum { KEY_SORT = 256, KEY_RING, KEY_DEVICE };
enum { FORMAT_TEXT, FORMAT_NDJSON, FORMAT_PROM };
static const char *const formats[] = {"text", "ndjson", "prom", NULL};

static const struct opt_def defs[] = {
    TRACE_OPTIONS,
    TRACE_FILTER("count"),
    {'b', "batch", NULL, "print one table below the other, as if standard output were no terminal"},
    {'n', "iterations", "N", "end after N tables"},
    {'d', "delay", "SECONDS", "time between two tables: 0.1 to 3600, default 1"},
    {KEY_SORT, "sort", "FIELD", "order by this field of -T ndjson, largest first; default payload_1s_bps"},
    {'T', "format", "FORMAT", "text (default), ndjson or prom (OpenMetrics)"},
    {'w', "write", "FILE", "write each table to FILE, which always holds the latest one"},
    {KEY_RING, "ring", "SIZE", "with -i: size of the kernel's ring of packets that were not read yet (16M)"},
    {KEY_DEVICE, "device", "DEVICE",
     "an RDMA device of this host, such as mlx5_0: compare its counters with the packets at the end"},
    TRACE_OPTIONS_END,
};

void cmd_top_help(struct buf *b)
{
    buf_puts(b,
             "Usage: rdmatrace top [options] -i IFACE\n"
             "       rdmatrace top [options] FILE...\n\n"
             "Show what the connections do now: rates, retransmissions, NAKs, CNPs, latencies. Of a file, now is the\n"
             "time of its packets. Keys: q quit, p pause, < > sort by another column, h help.\n\n");
    opt_help(b, defs);
    buf_puts(b, "\nExit status: 0, 2 for usage or input that cannot be read.\n");
}

#define FINE_NS    (50 * NS_PER_MS)  /* intervals of the meter, if tables come more often than each second */
#define PAINT_NS   (50 * NS_PER_MS)  /* of a file on a terminal: least time between two tables */
#define LATE_NS    (200 * NS_PER_MS) /* live: all packets that are older have arrived */
#define KEYS_EVERY 4096              /* packets after which a key is looked for */

struct job {
    struct trace t;
    unsigned format;
    bool batch;
    uint64_t tables, shown; /* -n, 0: any; so far */
    ns_t delay;             /* -d */
    const char *sort, *write;
    struct meter *meter;
    struct rates *rates;
    struct top top;
    struct buf source;
    bool unwritten; /* -w failed */
    bool device;    /* --device: */
    struct device of;
    struct adapter adapter;
    bool screen, paused, help; /* a terminal is painted; p; h */
    unsigned column;           /* by which the terminal's table is sorted */
    ns_t painted;              /* by the monotonic clock */
    /* time of the packets */
    bool begun;
    ns_t origin, latest;  /* of the first packet; ns since then */
    ns_t next;            /* of the next table, ns since `origin` */
    ns_t read;            /* of the packet that was read last */
    uint64_t second, sum; /* second at hand and its bytes */
};

static const struct opt_clash clashes[] = {
    {KEY_RING, -'i', 0, NULL},
    {0, 0, 0, NULL},
};

static struct job *job_of(struct trace *t)
{
    return (struct job *)t;
}

static void init(struct trace *t)
{
    job_of(t)->delay = NS_PER_S;
    job_of(t)->sort = "payload_1s_bps";
}

/* --- Options ---------------------------------------------------------------------------------- */

static int take_delay(struct job *job, const char *arg)
{
    char *end;
    double v = strtod(arg, &end);

    if (end == arg || *end || !(v >= 0.1 && v <= 3600))
        return cli_error("-d %s: expected seconds from 0.1 to 3600", arg);
    job->delay = (ns_t)(v * 1e9);
    return EXIT_OK;
}

static int take_sort(struct job *job, const char *arg)
{
    static const struct rate none;

    if (strcmp(arg, "state") != 0 && strcmp(arg, "connection") != 0 && rate_number(&none, arg) == METER_NONE)
        return cli_error("--sort %s: there is no such field of numbers; -T ndjson names them", arg);
    job->sort = arg;
    return EXIT_OK;
}

static int take_ring(struct job *job, const char *arg)
{
    const struct token size = {arg, (uint32_t)strlen(arg), 0};
    uint64_t v;

    if (!token_size(&size, &v) || v < 1 << 16 || v > 1u << 30)
        return cli_error("--ring %s: expected a size from 64K to 1G", arg);
    job->t.ring = (uint32_t)v;
    return EXIT_OK;
}

static int take_device(struct job *job, const char *arg)
{
    int error = device_open(&job->of, arg);

    job->device = true;
    return error
               ? cli_error("--device %s: %s", arg, error == -ENOENT ? "there is no such RDMA device" : strerror(-error))
               : EXIT_OK;
}

static int option(struct trace *t, int key, const char *arg)
{
    struct job *job = job_of(t);

    switch (key) {
    case 'n':
        return opt_number(arg, 1, UINT32_MAX, &job->tables) ? EXIT_OK : cli_error("-n %s: expected a number", arg);
    case 'd':
        return take_delay(job, arg);
    case KEY_SORT:
        return take_sort(job, arg);
    case KEY_RING:
        return take_ring(job, arg);
    case 'T':
        return opt_choice("-T", arg, formats, &job->format);
    case KEY_DEVICE:
        return take_device(job, arg);
    case 'w':
        job->write = arg;
        return EXIT_OK;
    default: /* -b */
        job->batch = true;
        return EXIT_OK;
    }
}

/* --- Tables ----------------------------------------------------------------------------------- */

static void see_capture(struct job *job)
{
    struct cap_live_stats s;
    struct top *top = &job->top;
    ns_t behind = clock_ns(CLOCK_REALTIME) - job->read;

    top->live = job->t.live && cap_live_stats(job->t.live, &s) == 0;
    if (!top->live)
        return;
    top->received = s.received;
    top->dropped = s.dropped;
    top->if_dropped = s.if_dropped;
    top->ring = job->t.ring ? job->t.ring : CLI_LIVE_BUFFER;
    top->behind = job->read && behind > LATE_NS ? behind : 0;
}

/* The connections as they were computed last, sorted. */
static void list(struct job *job)
{
    job->top.rates = rates_list(job->rates, &job->top.n);
    if (job->t.conn)
        job->top.n = rates_of_conn(job->top.rates, job->top.n, job->t.conn);
    job->top.connections = rates_connections(job->top.rates, job->top.n, &job->top.datagrams);
    rates_sort(job->top.rates, job->top.n, job->sort);
}

static ns_t interval_of(const struct job *job)
{
    return job->delay < NS_PER_S ? FINE_NS : NS_PER_S;
}

/* Compute what is shown, at `since`. */
static void see(struct job *job, ns_t since, bool ended)
{
    struct top *top = &job->top;
    ns_t part = since % NS_PER_S;

    rates_at(job->rates, since, ended ? part : part / interval_of(job) * interval_of(job));
    list(job);
    top->since = since;
    top->at = job->origin + since;
    top->packets = meter_totals(job->meter).packets;
    top->refused = rates_refused(job->rates);
    see_capture(job);
}

static void put_help(struct buf *b, unsigned columns)
{
    buf_puts(
        b, "q      quit\np      pause, and go on\n<, >   sort by the column to the left, right\nh      this help\n\n");
    buf_paragraph(b, "1 s, 10 s, 60 s: payload of both directions.", 0, columns);
    buf_paragraph(b, "retrans, NAK, RNR, CNP: since the first packet.", 0, columns);
    buf_paragraph(b, "p50, p99: latency of the messages that were completed since the last table.", 0, columns);
    buf_paragraph(b, "state: the worst of the last ten seconds.", 0, columns);
    buf_puts(b, "\nany key goes back\n");
}

static void paint(struct job *job)
{
    struct terminal size = terminal_size();
    const struct top_look look = {size.columns, size.rows, job->sort, job->paused};
    struct buf b = {0};

    if (job->help)
        put_help(&b, size.columns);
    else
        top_text(&b, &job->top, &look);
    screen_paint(&b);
    buf_free(&b);
    job->painted = clock_ns(CLOCK_MONOTONIC);
}

static void print(struct job *job)
{
    static void (*const print_as[])(struct buf * b,
                                    const struct top *t) = {[FORMAT_NDJSON] = top_ndjson, [FORMAT_PROM] = top_prom};
    const struct top_look look = {.width = terminal_size().columns};
    struct buf b = {0};

    if (job->format == FORMAT_TEXT)
        top_text(&b, &job->top, &look);
    else
        print_as[job->format](&b, &job->top);
    if (job->write) {
        if (!beside_write(job->write, &b)) {
            cli_error("%s: %s", job->write, strerror(errno));
            job->t.enough = job->unwritten = true;
        }
    } else {
        if (job->shown && job->format == FORMAT_TEXT)
            buf_char(&job->t.out, '\n');
        buf_mem(&job->t.out, b.p, b.len);
    }
    buf_free(&b);
    if (!job->t.broken && job->t.out.len)
        job->t.broken = cli_show(&job->t.out) != EXIT_OK;
    job->t.enough |= job->t.broken;
}

static void show(struct job *job, ns_t since, bool ended)
{
    bool soon = job->screen && !job->t.live && !ended && clock_ns(CLOCK_MONOTONIC) - job->painted < PAINT_NS;

    if (job->paused || job->help || soon)
        return;
    see(job, since, ended);
    (job->screen ? paint : print)(job);
    rates_shown(job->rates);
    if (job->tables && ++job->shown >= job->tables)
        job->t.enough = true;
    job->shown += !job->tables;
}

/* --- Keys ------------------------------------------------------------------------------------- */

/* Sort by the column that is `step` further. */
static void other_column(struct job *job, int step)
{
    unsigned n = 0, at = 0;

    while (top_column(n)) {
        at = strcmp(top_column(n), job->sort) == 0 ? n : at;
        n++;
    }
    job->sort = top_column((at + n + (unsigned)step) % n);
}

/* Look for a key for at most `wait_ms` ms, and do what it means. */
static void take_key(struct job *job, int wait_ms)
{
    int key = job->screen ? screen_key(wait_ms) : 0;

    if (!key)
        return;
    job->t.enough |= key == 'q';
    if (job->help || key == 'h' || key == '?')
        job->help = !job->help;
    else if (key == 'p')
        job->paused = !job->paused;
    else if (key == '<' || key == '>')
        other_column(job, key == '<' ? -1 : 1);
    list(job);
    paint(job);
}

/* --- Time ------------------------------------------------------------------------------------- */

/* No packet before `now` follows. A time without packets has one table, however long it is. */
static void clock_to(struct job *job, ns_t now)
{
    if (!job->begun) {
        job->begun = true;
        job->origin = now;
        job->next = job->delay;
        meter_time(job->meter, now);
    }
    if (now < job->origin || (uint64_t)now - (uint64_t)job->origin > INT64_MAX / 2)
        return;
    if (now - job->origin > job->latest)
        job->latest = now - job->origin;
    if (job->latest < job->next)
        return;
    meter_time(job->meter, now);
    show(job, job->next, false);
    job->next += job->delay * (1 + (job->latest - job->next) / job->delay);
}

static void packet(struct trace *t, struct pkt *p, bool match)
{
    struct job *job = job_of(t);
    uint64_t second;

    (void)match;
    if (!p->frame->has_ts)
        return;
    clock_to(job, p->frame->ts);
    second = (uint64_t)(job->latest / NS_PER_S);
    if (second != job->second) {
        job->top.bytes_per_s = job->sum;
        job->second = second;
        job->sum = 0;
    }
    job->sum += p->frame->caplen;
    job->read = p->frame->ts;
    if (UNLIKELY(t->frames % KEYS_EVERY == 0))
        take_key(job, 0);
}

static void idle(struct trace *t)
{
    struct job *job = job_of(t);

    job->read = 0;
    clock_to(job, clock_ns(CLOCK_REALTIME) - LATE_NS);
    take_key(job, 0);
}

/* --- The command ------------------------------------------------------------------------------ */

static void on_tick(void *user, struct meter_row *row, ns_t begin, ns_t since, const struct meter_counts *added)
{
    (void)begin;
    rates_tick(((struct job *)user)->rates, row, since, added);
}

static void on_work_packet(void *user, const struct wqe *w, const struct pkt *p, uint32_t flow)
{
    struct job *job = user;

    if (w->done_frame == p->frame->number)
        rates_packet(job->rates, meter_row_of(job->meter, flow), w, p);
}

static int start(struct trace *t)
{
    struct job *job = job_of(t);
    const struct meter_opts o = {.interval = interval_of(job),
                                 .tick = on_tick,
                                 .files = t->files,
                                 .work = {job, on_work_packet, NULL},
                                 .user = job};

    if (job->write && beside_replaces(job->write, t->files, t->n_files))
        return cli_error("top: -w %s is one of the captures", job->write);
    job->meter = meter_new(t->observer, &o);
    job->rates = rates_new();
    if (!job->meter || !job->rates)
        return cli_error("out of memory");
    for (size_t i = 0; i < t->n_files; i++)
        buf_printf(&job->source, "%s%s", i ? ", " : "", t->files[i]);
    job->top.source = buf_str(&job->source);
    if (job->device)
        device_read(&job->of, &job->adapter.before);
    job->screen = !job->batch && job->format == FORMAT_TEXT && !job->write && screen_open();
    return EXIT_OK;
}

static void drops(struct trace *t, uint16_t file, uint64_t n)
{
    (void)file;
    job_of(t)->top.file_drops += n;
}

/* The counters of the device beside the packets: what the driver returns may be as old as its lifespan. */
static void compare(struct job *job)
{
    ns_t wait = 2 * job->of.lifespan;

    nanosleep(&(struct timespec){wait / NS_PER_S, wait % NS_PER_S}, NULL);
    device_read(&job->of, &job->adapter.after);
    job->adapter.device = &job->of;
    job->adapter.rows = meter_rows(job->meter, &job->adapter.n_rows);
    if (job->format == FORMAT_TEXT) {
        buf_puts(&job->t.out, job->shown ? "\n" : "");
        adapter_text(&job->t.out, &job->adapter);
    } else if (job->format == FORMAT_NDJSON) {
        top_counters_ndjson(&job->t.out, &job->adapter);
    }
}

static int end(struct trace *t)
{
    struct job *job = job_of(t);

    meter_end(job->meter);
    if (!t->enough)
        show(job, job->latest, true);
    while (job->screen && !t->live && !t->enough)
        take_key(job, -1);
    if (job->screen)
        screen_close();
    if (job->device && !t->broken)
        compare(job);
    return job->unwritten ? EXIT_BAD : EXIT_OK;
}

static void stop(struct trace *t)
{
    struct job *job = job_of(t);

    if (job->screen)
        screen_close();
    rates_free(job->rates);
    meter_free(job->meter);
    buf_free(&job->adapter.before);
    buf_free(&job->adapter.after);
    buf_free(&job->source);
}

TRACE_CMD(top, .init = init, .option = option, .packet = packet, .drops = drops, .idle = idle, .stop = stop,
          .clashes = clashes)
