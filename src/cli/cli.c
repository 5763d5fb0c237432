/* layer 4 (tool): messages of rdmatrace about captures and filters. */
#include "src/cli/cli.h"
#include "src/cli/capture_cmd.h"

#include "src/filter/filter.h"

#include "src/cap/live.h"
#include "src/cap/merge.h"
#include "src/cap/xdp.h"
#include "src/cores/cores.h"

#include "clock.h"

#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

int cli_cap_error(const struct cap_error *e)
{
    struct buf b = {0};

    cap_error_line(e, &b);
    cli_error("%s", buf_str(&b));
    buf_free(&b);
    return EXIT_BAD;
}

void trace_tell_filter(const struct trace *t)
{
    if (t->filter && !(t->share && t->share->found))
        cli_error("-Y: packets that do not match count as not captured; --conn takes whole connections");
}

int cli_filter(struct filter **f, const char *text)
{
    struct filter_error e;
    struct buf b = {0};

    *f = filter_compile(text, &e);
    if (*f)
        return EXIT_OK;
    cli_error("-Y, column %zu: %s", e.pos + 1, e.msg);
    filter_error_show(&b, text, &e);
    cli_flush(&b, STDERR_FILENO);
    buf_free(&b);
    return EXIT_BAD;
}

int cli_conn_option(const char *arg, uint32_t *conn)
{
    uint64_t v;

    if (!opt_number(arg, 1, UINT32_MAX, &v))
        return cli_error("--conn %s: expected the number of a connection", arg);
    *conn = (uint32_t)v;
    return EXIT_OK;
}

int cli_cores_option(const char *arg, unsigned *cores)
{
    uint64_t n;

    if (!opt_number(arg, 1, CORES_MAX, &n))
        return cli_error("-j %s: expected a number of threads from 1 to %d", arg, CORES_MAX);
    *cores = (unsigned)n;
    return EXIT_OK;
}

int cli_no_conn(uint32_t conn)
{
    return cli_error("--conn %u: there is no such connection; `rdmatrace flows` lists them", conn);
}

/* Whether the terminal shows colours, and they are wanted. */
static bool is_coloured(void)
{
    const char *term = getenv("TERM"), *unwanted = getenv("NO_COLOR");

    return term && *term && strcmp(term, "dumb") != 0 && (!unwanted || !*unwanted);
}

int cli_color(const char *when, bool *color)
{
    static const char *const whens[] = {"auto", "always", "never", NULL};
    enum { WHEN_AUTO, WHEN_ALWAYS, WHEN_NEVER };
    unsigned i;

    if (opt_choice("--color", when, whens, &i) != EXIT_OK)
        return EXIT_BAD;
    *color = i == WHEN_ALWAYS || (i == WHEN_AUTO && isatty(STDOUT_FILENO) && is_coloured());
    return EXIT_OK;
}

struct terminal terminal_size(void)
{
    const char *columns = getenv("COLUMNS");
    struct winsize w;
    uint64_t v;

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col)
        return (struct terminal){w.ws_col, w.ws_row};
    return (struct terminal){.columns = columns && opt_number(columns, 1, UINT32_MAX, &v) ? (unsigned)v : 0};
}

bool cli_utf8(void)
{
    locale_t l = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
    bool utf8 = l && strcmp(nl_langinfo_l(CODESET, l), "UTF-8") == 0;

    if (l)
        freelocale(l);
    return utf8;
}

/* --- Live capture ----------------------------------------------------------------------------- */

bool limit_take(const struct limit *limits, unsigned n, const char *arg)
{
    for (unsigned i = 0; i < n; i++) {
        size_t len = strlen(limits[i].what);
        if (strncmp(arg, limits[i].what, len) == 0)
            return opt_number(arg + len, 1, limits[i].max, limits[i].to);
    }
    return false;
}

int cli_stop_option(const char *arg, struct cli_stop *stop)
{
    const struct limit limits[] = {{"duration:", UINT32_MAX, &stop->seconds},
                                   {"packets:", UINT64_MAX, &stop->packets},
                                   {"filesize:", UINT32_MAX, &stop->kilobytes},
                                   {"files:", UINT32_MAX, &stop->files}};

    if (limit_take(limits, ARRAY_LEN(limits), arg))
        return EXIT_OK;
    return cli_error("-a %s: expected duration:SECONDS, packets:N, or of `decode -w` filesize:KB or files:N", arg);
}

int cli_iface_option(struct cli_ifaces *i, const char *arg)
{
    size_t len = strlen(i->all);

    for (unsigned k = 0; k < i->n; k++)
        if (strcmp(i->names[k], arg) == 0)
            return cli_error("-i %s: given twice", arg);
    if (i->n == CLI_IFACES || len + strlen(arg) + 2 > sizeof i->all)
        return cli_error("-i %s: at most %d interfaces", arg, CLI_IFACES);
    snprintf(i->all + len, sizeof i->all - len, "%s%s", i->n ? "," : "", arg);
    i->names[i->n++] = arg;
    return EXIT_OK;
}

static struct cap *live_capture; /* for the signal handler */

static void on_signal(int sig)
{
    (void)sig;
    cap_live_break(live_capture);
}

/* Say before the capture begins what it cannot see. */
static void tell_too_long(const struct cli_ifaces *i)
{
    for (unsigned k = 0; k < i->n; k++) {
        unsigned mtu = xdp_mtu_too_large(i->names[k]);
        if (mtu)
            cli_error("%s: its MTU is %u, but AF_XDP takes frames of up to %u bytes: longer ones will be dropped",
                      i->names[k], mtu, XDP_FRAME_MAX);
    }
}

int cli_live_open(const struct cli_ifaces *ifaces, const struct cap_live_opts *o, const struct cli_stop *stop,
                  struct cap **live, struct cap_merge **in)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGALRM};
    struct sigaction sa = {.sa_handler = on_signal};
    struct cap_error err;

    if (o->xdp)
        tell_too_long(ifaces);
    if (cap_live_open_all(live, ifaces->names, ifaces->n, 0, o, &err) < 0)
        return cli_cap_error(&err);
    live_capture = *live;
    for (unsigned i = 0; i < ARRAY_LEN(signals); i++)
        sigaction(signals[i], &sa, NULL);
    if (stop->seconds)
        alarm((unsigned)stop->seconds);
    return cap_merge_caps(in, live, 1) < 0 ? cli_error("out of memory") : EXIT_OK;
}

static volatile sig_atomic_t interrupted;
static const int interrupts[] = {SIGINT, SIGTERM};
static struct sigaction before_pipe[ARRAY_LEN(interrupts)];

static void on_interrupt(int sig)
{
    interrupted = 1;
    sigaction(sig, &before_pipe[sig == interrupts[1]], NULL);
}

void cli_pipe_open(const char *const *files, size_t n)
{
    struct sigaction sa = {.sa_handler = on_interrupt};
    bool pipe = false;
    struct stat st;

    for (size_t i = 0; i < n; i++)
        pipe |= (strcmp(files[i], "-") ? stat(files[i], &st) : fstat(STDIN_FILENO, &st)) == 0 && !S_ISREG(st.st_mode);
    if (!pipe)
        return;
    for (unsigned i = 0; i < ARRAY_LEN(interrupts); i++) {
        sigaction(interrupts[i], &sa, &before_pipe[i]);
        if (before_pipe[i].sa_handler == SIG_IGN) /* of a job in the background */
            signal(interrupts[i], SIG_IGN);
    }
}

bool cli_pipe_waits(void)
{
    static ns_t since;
    ns_t now;

    if (!interrupted)
        return true;
    now = clock_ns(CLOCK_MONOTONIC);
    since = since ? since : now;
    return now - since < NS_PER_S;
}

void cli_live_report(struct cap *live, uint32_t buffer)
{
    struct cap_live_stats s;

    if (cap_live_stats(live, &s) < 0)
        return;
    fprintf(stderr, "%s received, %llu dropped by the kernel, %llu by the interface\n", count_str(s.received, "frame"),
            (unsigned long long)s.dropped, (unsigned long long)s.if_dropped);
    if (s.dropped)
        cli_error(
            "WARNING: THE CAPTURE IS INCOMPLETE: the kernel dropped %s, for which its buffer of %u KiB had no room; "
            "try a larger one (-B; of top: --ring), a capture filter (-f) or a shorter snap length (-s)",
            count_str(s.dropped, "frame"), buffer >> 10);
    else if (s.if_dropped)
        cli_error("WARNING: THE CAPTURE IS INCOMPLETE: the interface dropped %s", count_str(s.if_dropped, "frame"));
}

void cli_unread(const char *why, struct buf *b)
{
    if (why)
        buf_printf(b, "Not read to the end: %s\n", why);
}

void cli_written(const char *path)
{
    struct stat s;

    if (isatty(STDERR_FILENO) && stat(path, &s) == 0 && S_ISREG(s.st_mode))
        fprintf(stderr, "%s: %.1f kB written\n", path, (double)s.st_size / 1000);
    else if (isatty(STDERR_FILENO))
        fprintf(stderr, "%s: written\n", path);
}

static int unknown_protocol(const char *arg)
{
    struct buf words = {0};
    int status;

    ulp_words(&words);
    status = cli_error("--ulp %s: no such protocol; there are: %s", arg, buf_str(&words));
    buf_free(&words);
    return status;
}

/* "ADDRESS:NUMBER", or "PORT" of any address. */
static bool ulp_end_parse(const char *arg, size_t n, struct ulp_user *s)
{
    char text[8];
    uint64_t port;

    if (conn_end_parse(arg, n, &s->addr, &s->number))
        return true;
    if (n >= sizeof text)
        return false;
    memcpy(text, arg, n);
    text[n] = '\0';
    s->any = opt_number(text, 1, UINT16_MAX, &port);
    s->number = s->any ? (uint32_t)port : 0;
    return s->any;
}

int ulp_option(struct ulp_users *u, const char *arg)
{
    const char *equal = strchr(arg, '=');
    struct ulp_user *s = &u->user[u->n];

    if (u->n == ULP_USERS)
        return cli_error("--ulp %s: at most %d", arg, ULP_USERS);
    *s = (struct ulp_user){0};
    if (!equal || !ulp_end_parse(arg, (size_t)(equal - arg), s))
        return cli_error("--ulp %s: expected ADDRESS:QPN=PROTOCOL, such as 10.0.0.2:0x15=nvme, or PORT=PROTOCOL", arg);
    s->proto = ulp_named(equal + 1, strlen(equal + 1));
    if (!s->proto)
        return unknown_protocol(arg);
    u->n++;
    return EXIT_OK;
}
