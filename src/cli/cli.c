/* layer 4 (tool): messages and output, for all subcommands. */
#include "src/cli/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

int cli_error(const char *fmt, ...)
{
    va_list ap;

    fflush(stdout);
    fputs("rdmatrace: ", stderr);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    return EXIT_BAD;
}

int cli_cap_error(const struct cap_error *e)
{
    struct buf b = {0};

    cap_error_line(e, &b);
    cli_error("%s", buf_str(&b));
    buf_free(&b);
    return EXIT_BAD;
}

bool cli_flush(struct buf *b, int fd)
{
    size_t done = 0;

    while (done < b->len) {
        ssize_t n = write(fd, b->p + done, b->len - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    b->len = 0;
    return true;
}

int cli_show(struct buf *b)
{
    bool done = cli_flush(b, STDOUT_FILENO);

    buf_free(b);
    return done ? EXIT_OK : EXIT_BAD;
}
