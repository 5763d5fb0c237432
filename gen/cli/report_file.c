/* layer 4 (tool): files of results. */
#include "gen/cli/report_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

void report_file_option(struct report_file *f, const char *arg)
{
    f->wanted = true;
    f->name = arg && strcmp(arg, "-") != 0 ? arg : NULL;
    f->fd = -1;
}

bool report_file_alone(const struct report_file *f)
{
    return f->wanted && !f->name;
}

int report_file_open(struct report_file *f)
{
    if (!f->wanted)
        return 0;
    f->fd = f->name ? open(f->name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666) : STDOUT_FILENO;
    return f->fd >= 0 ? 0 : cli_error("%s: %s", f->name, strerror(errno));
}

int report_file_write(struct report_file *f, struct buf *b)
{
    bool good;

    if (!f->wanted)
        return 0;
    errno = 0;
    good = f->fd >= 0 && !b->err && cli_flush(b, f->fd);
    if (f->fd >= 0 && f->name && close(f->fd) < 0)
        good = false;
    f->fd = -1;
    f->written = true;
    return good
               ? 0
               : cli_error("%s: %s", f->name ? f->name : "standard output", b->err ? "out of memory" : strerror(errno));
}

void report_file_fail(struct report_file *f)
{
    struct buf b = {0};

    if (!f->wanted || f->written || f->fd < 0)
        return;
    buf_puts(&b, "{\"error\":");
    buf_json(&b, cli_said(), strlen(cli_said()));
    buf_puts(&b, "}\n");
    report_file_write(f, &b);
    buf_free(&b);
}
