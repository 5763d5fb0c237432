/* layer 0 (base): a file that is written beside its name, and renamed when it is complete. */
#include "beside.h"

#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* A device or pipe is written itself: to replace it would remove it. */
static bool is_special(const char *path)
{
    struct stat s;

    return stat(path, &s) == 0 && !S_ISREG(s.st_mode);
}

char *beside_new(const char *path, int *fd)
{
    char *name = NULL;
    mode_t mask = umask(0);

    umask(mask);
    if (is_special(path)) {
        *fd = open(path, O_WRONLY | O_CLOEXEC);
        if (*fd >= 0 && !(name = strdup(path)))
            close(*fd);
        return name;
    }
    *fd = asprintf(&name, "%s.XXXXXX", path) < 0 ? -1 : mkstemp(name);
    if (*fd < 0) {
        int error = errno;
        free(name);
        errno = error;
        return NULL;
    }
    fchmod(*fd, 0666 & ~mask);
    return name;
}

bool beside_done(char *name, const char *path)
{
    bool good = is_special(name) || rename(name, path) == 0;
    int error = errno;

    if (good)
        free(name);
    else
        beside_drop(name);
    errno = error;
    return good;
}

void beside_drop(char *name)
{
    if (name && !is_special(name))
        unlink(name);
    free(name);
}

bool beside_write(const char *path, struct buf *text)
{
    int fd, error;
    char *name = beside_new(path, &fd);
    bool good;

    if (!name)
        return false;
    good = cli_flush(text, fd);
    error = errno;
    good &= close(fd) == 0;
    if (good)
        return beside_done(name, path);
    beside_drop(name);
    errno = error;
    return false;
}
