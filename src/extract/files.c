/* layer 3b (extract): files of a directory, written piece by piece. */
#include "src/extract/extract_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

bool files_open(struct files *s, const char *dir)
{
    s->dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return s->dir >= 0;
}

static void fail(struct files *s, const struct piece *p)
{
    if (s->error)
        return;
    s->error = errno;
    snprintf(s->failed, sizeof s->failed, "%s", p->name);
}

static void release(struct files *s, unsigned slot)
{
    if (!s->open[slot].of)
        return;
    if (close(s->open[slot].fd) != 0)
        fail(s, s->open[slot].of);
    s->open[slot].of->slot = -1;
    s->open[slot].of = NULL;
}

/* The descriptor of a file, -1 after an error. */
static int descriptor(struct files *s, struct piece *p)
{
    int flags = O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | (p->made ? 0 : O_TRUNC), fd;
    unsigned slot = s->next % FILES_OPEN;

    if (p->made && p->slot >= 0)
        return s->open[p->slot].fd;
    release(s, slot);
    fd = openat(s->dir, p->name, flags, 0666);
    if (fd < 0) {
        fail(s, p);
        return -1;
    }
    s->next++;
    s->open[slot].fd = fd;
    s->open[slot].of = p;
    p->slot = (int)slot;
    p->made = true;
    return fd;
}

void files_write(struct files *s, struct piece *p, uint64_t at, const uint8_t *b, size_t n)
{
    int fd = s->error ? -1 : descriptor(s, p);

    while (fd >= 0 && n) {
        ssize_t done = pwrite(fd, b, n, (off_t)at);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0) {
            fail(s, p);
            return;
        }
        b += done;
        n -= (size_t)done;
        at += (uint64_t)done;
    }
}

void files_close(struct files *s, struct piece *p, uint64_t len)
{
    int fd = s->error ? -1 : descriptor(s, p);

    if (fd >= 0 && ftruncate(fd, (off_t)len) != 0)
        fail(s, p);
    if (p->slot >= 0) /* after an error, too: `p` may be freed now */
        release(s, (unsigned)p->slot);
}

void files_free(struct files *s)
{
    for (unsigned i = 0; i < FILES_OPEN; i++)
        release(s, i);
    if (s->dir >= 0)
        close(s->dir);
}
