/* layer 4 (tool): messages of rdmatrace about captures and filters. */
#include "src/cli/cli.h"

#include "src/filter/filter.h"

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
