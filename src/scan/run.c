/* layer 3 (scan): the folder of a run, and its list of shards. */
#include "src/scan/run.h"

#include "beside.h"
#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_LINE "rdmatrace run 1\n"
#define LIST_MAX   ((size_t)256 << 20) /* bytes */

int (*run_complete)(void);

static void list_path(const char *folder, struct buf *path)
{
    buf_printf(path, "%s/shards", folder);
}

void run_digest(const char *folder, size_t i, struct buf *path)
{
    buf_printf(path, "%s/%04zu.scan", folder, i + 1);
}

/* The whole list; NULL with errno set. */
static char *list_read(const char *folder, size_t *n)
{
    struct buf path = {0};
    struct stat st;
    char *text = NULL;
    int fd;

    list_path(folder, &path);
    fd = open(buf_str(&path), O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* a pipe of that name is no list */
    buf_free(&path);
    if (fd < 0)
        return NULL;
    errno = EINVAL;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (size_t)st.st_size <= LIST_MAX)
        text = malloc((size_t)st.st_size + 1);
    if (text && read(fd, text, (size_t)st.st_size) != st.st_size) {
        free(text);
        text = NULL;
    }
    close(fd);
    if (text) {
        *n = (size_t)st.st_size;
        text[*n] = 0;
    }
    return text;
}

static bool is_list(const char *text, size_t n)
{
    return n > strlen(FIRST_LINE) && strncmp(text, FIRST_LINE, strlen(FIRST_LINE)) == 0 && text[n - 1] == '\n' &&
           strlen(text) == n;
}

bool run_is(const char *path)
{
    size_t n;
    char *text = list_read(path, &n);
    bool is = text && is_list(text, n);

    free(text);
    return is;
}

int run_write(const char *path, struct buf *b)
{
    struct buf aside = {0};
    int fd, held, rc;

    beside_name(&aside, path);
    rc = b->err || aside.err ? -ENOMEM : 0;
    fd = rc ? -1 : beside_hold(buf_str(&aside));
    held = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0); /* closing reports what could not be written */
    if (!rc && (held < 0 || !cli_flush(b, fd)))
        rc = -errno;
    if (fd >= 0 && close(fd) < 0 && rc == 0)
        rc = -errno;
    if (rc == 0 && rename(buf_str(&aside), path) < 0)
        rc = -errno;
    if (rc < 0 && fd >= 0)
        unlink(buf_str(&aside));
    if (held >= 0)
        close(held);
    buf_free(&aside);
    return rc;
}

/* Which files of a run: the list, or the digests of one of several parts. */
struct which {
    uint64_t part, parts;
};

static bool is_of(const void *user, const char *name)
{
    const struct which *w = user;
    char *end;
    unsigned long i = strtoul(name, &end, 10);

    return strcmp(name, "shards") == 0 || (i > 0 && strcmp(end, ".scan") == 0 && (i - 1) % w->parts == w->part - 1);
}

void run_clean(const char *folder, uint64_t part, uint64_t parts)
{
    beside_clean(folder, is_of, &(struct which){part, parts});
}

static int list_write(const char *folder, struct buf *list)
{
    struct buf path = {0};
    int rc;

    list_path(folder, &path);
    rc = run_write(buf_str(&path), list);
    buf_free(&path);
    return rc;
}

int run_create(const char *folder, const char *const *shards, size_t n)
{
    struct buf list = {0};
    size_t there_n;
    char *there;
    int rc = 0;

    buf_puts(&list, FIRST_LINE);
    for (size_t i = 0; i < n; i++) {
        rc = strchr(shards[i], '\n') || !*shards[i] ? -EINVAL : rc;
        buf_puts(&list, shards[i]);
        buf_char(&list, '\n');
    }
    if (rc == 0 && mkdir(folder, 0777) < 0 && errno != EEXIST)
        rc = -errno;
    there = rc == 0 ? list_read(folder, &there_n) : NULL;
    if (there)
        rc = there_n == list.len && memcmp(there, list.p, list.len) == 0 ? 0 : -EEXIST;
    else if (rc == 0)
        rc = list_write(folder, &list);
    free(there);
    buf_free(&list);
    return rc;
}

int run_open(struct run *r, const char *folder)
{
    size_t n, lines = 0;
    char *text = list_read(folder, &n);

    *r = (struct run){.text = text};
    if (!text)
        return -errno;
    if (!is_list(text, n)) {
        run_close(r);
        return -EINVAL;
    }
    for (const char *c = text + strlen(FIRST_LINE); *c; c++)
        lines += *c == '\n';
    if (!lines || lines > RUN_SHARDS) {
        run_close(r);
        return -EINVAL;
    }
    r->shards = calloc(lines, sizeof *r->shards);
    r->folder = strdup(folder);
    for (char *line = text + strlen(FIRST_LINE); r->shards && *line;) {
        char *end = strchr(line, '\n');
        *end = 0;
        r->shards[r->n++] = line;
        line = end + 1;
    }
    if (r->shards && r->folder)
        return 0;
    run_close(r);
    return -ENOMEM;
}

void run_close(struct run *r)
{
    free(r->folder);
    free(r->shards);
    free(r->text);
    *r = (struct run){0};
}
