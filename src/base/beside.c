/* layer 0 (base): a file that is written beside its name, and renamed when it is complete. */
#include "beside.h"

#include "program.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- Unfinished files go when a signal ends the program -------------------------------------------- */

#define UNFINISHED_MAX 64

static char *volatile unfinished[UNFINISHED_MAX];

static void on_end(int sig)
{
    for (unsigned i = 0; i < UNFINISHED_MAX; i++)
        if (unfinished[i])
            unlink(unfinished[i]);
    raise(sig); /* its action is the default one by now */
}

/* Where nobody else takes the signal. */
static void catch_ends(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ};
    struct sigaction sa = {.sa_handler = on_end, .sa_flags = (int)SA_RESETHAND | SA_NODEFER}, is;

    for (unsigned i = 0; i < ARRAY_LEN(signals); i++)
        if (sigaction(signals[i], NULL, &is) == 0 && !(is.sa_flags & SA_SIGINFO) && is.sa_handler == SIG_DFL)
            sigaction(signals[i], &sa, NULL);
}

/* Note that `name`, which the caller owns, is unfinished, or no longer: put it in the place of `of`. */
static void note(const char *of, char *name)
{
    for (unsigned i = 0; i < UNFINISHED_MAX; i++)
        if (unfinished[i] == of) {
            unfinished[i] = name;
            return;
        }
}

/* --- The file ----------------------------------------------------------------------------------- */

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
    note(NULL, name);
    catch_ends();
    return name;
}

bool beside_done(char *name, const char *path)
{
    bool good = is_special(name) || rename(name, path) == 0;
    int error = errno;

    note(name, NULL);
    if (good)
        free(name);
    else
        beside_drop(name);
    errno = error;
    return good;
}

void beside_drop(char *name)
{
    if (!name)
        return;
    note(name, NULL);
    if (!is_special(name))
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

bool beside_replaces(const char *path, const char *const *files, size_t n)
{
    struct stat out, in;

    for (size_t i = 0; stat(path, &out) == 0 && i < n; i++)
        if (stat(files[i], &in) == 0 && in.st_dev == out.st_dev && in.st_ino == out.st_ino)
            return true;
    return false;
}

/* --- Files of a folder that several processes write ------------------------------------------------ */

void beside_name(struct buf *b, const char *path)
{
    buf_printf(b, "%s.%ld", path, (long)getpid());
}

#define HOLD_TRIES 100

/* Whether beside_clean() of another process has removed the file, or is about to: it asks for the only lock. Where
 * there are no locks nobody removes it. */
static bool is_removed(int fd)
{
    struct stat st;

    if (flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK)
        return true;
    return fstat(fd, &st) == 0 && st.st_nlink == 0;
}

int beside_hold(const char *name)
{
    /* NFS gives no lock that is shared to a descriptor that cannot read */
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

    for (unsigned i = 0; i < HOLD_TRIES && fd >= 0 && is_removed(fd); i++) {
        close(fd);
        usleep(1000);
        fd = open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    }
    return fd;
}

/* Where ".PID" begins in a name; NULL: it is none of these. */
static char *pid_of(char *name)
{
    char *dot = strrchr(name, '.');

    return dot && dot > name && dot[1] && dot[1 + strspn(dot + 1, "0123456789")] == '\0' ? dot : NULL;
}

static bool is_held(int fd)
{
    struct stat st;

    return fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || flock(fd, LOCK_EX | LOCK_NB) < 0;
}

void beside_clean(const char *folder, bool (*fits)(const void *user, const char *name), const void *user)
{
    DIR *d = opendir(folder);

    for (struct dirent *e; d && (e = readdir(d));) {
        char *dot = pid_of(e->d_name);
        int fd = -1;
        if (!dot)
            continue;
        *dot = '\0';
        if (fits(user, e->d_name)) {
            *dot = '.';
            fd = openat(dirfd(d), e->d_name, O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
        }
        if (fd >= 0 && !is_held(fd))
            unlinkat(dirfd(d), e->d_name, 0);
        if (fd >= 0)
            close(fd);
    }
    if (d)
        closedir(d);
}

FILE *beside_nameless(void)
{
    const char *dir = getenv("TMPDIR");
    int fd = dir && *dir ? open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) : -1;
    FILE *file = fd >= 0 ? fdopen(fd, "w+") : NULL;

    if (fd >= 0 && !file)
        close(fd);
    return file ? file : tmpfile();
}
