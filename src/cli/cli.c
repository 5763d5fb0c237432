/* layer 4 (tool): messages of rdmatrace about captures and filters. */
#include "src/cli/cli.h"

#include "src/filter/filter.h"

#include "src/cap/live.h"
#include "src/cap/merge.h"

#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

int cli_cap_error(const struct cap_error *e)
{
    struct buf b = {0};

    cap_error_line(e, &b);
    cli_error("%s", buf_str(&b));
    buf_free(&b);
    return EXIT_BAD;
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

int cli_color(const char *when, bool *color)
{
    static const char *const whens[] = {"auto", "always", "never", NULL};
    enum { WHEN_AUTO, WHEN_ALWAYS, WHEN_NEVER };
    unsigned i;

    if (opt_choice("--color", when, whens, &i) != EXIT_OK)
        return EXIT_BAD;
    *color = i == WHEN_ALWAYS || (i == WHEN_AUTO && isatty(STDOUT_FILENO) && !getenv("NO_COLOR"));
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

int cli_stop_option(const char *arg, struct cli_stop *stop)
{
    const struct {
        const char *what;
        uint64_t max, *to;
    } kinds[] = {{"duration:", UINT32_MAX, &stop->seconds},
                 {"packets:", UINT64_MAX, &stop->packets},
                 {"filesize:", UINT32_MAX, &stop->kilobytes}};

    for (unsigned i = 0; i < ARRAY_LEN(kinds); i++) {
        size_t n = strlen(kinds[i].what);
        if (strncmp(arg, kinds[i].what, n) == 0 && opt_number(arg + n, 1, kinds[i].max, kinds[i].to))
            return EXIT_OK;
    }
    return cli_error("-a %s: expected duration:SECONDS, packets:N or filesize:KB", arg);
}

static struct cap *live_capture; /* for the signal handler */

static void on_signal(int sig)
{
    (void)sig;
    cap_live_break(live_capture);
}

int cli_live_open(const char *iface, const struct cap_live_opts *o, const struct cli_stop *stop, struct cap **live,
                  struct cap_merge **in)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGALRM};
    struct sigaction sa = {.sa_handler = on_signal};
    struct cap_error err;

    if (cap_live_open(live, iface, 0, o, &err) < 0)
        return cli_cap_error(&err);
    live_capture = *live;
    for (unsigned i = 0; i < ARRAY_LEN(signals); i++)
        sigaction(signals[i], &sa, NULL);
    if (stop->seconds)
        alarm((unsigned)stop->seconds);
    return cap_merge_caps(in, live, 1) < 0 ? cli_error("out of memory") : EXIT_OK;
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
            "try a larger one (-B), a capture filter (-f) or a shorter snap length (-s)",
            count_str(s.dropped, "frame"), buffer >> 10);
    else if (s.if_dropped)
        cli_error("WARNING: THE CAPTURE IS INCOMPLETE: the interface dropped %s", count_str(s.if_dropped, "frame"));
}
