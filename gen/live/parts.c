/* layer 3 (live): several processes share an interface: they begin, meet, and end. */
#include "gen/live/parts.h"

#include "gen/live/live.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LOOK (NS_PER_MS / 2) /* interval at which a process looks for the others */

/* Memory of all processes. */
struct meeting {
    atomic_uint turn, met, over, failed;
    atomic_ullong gone; /* a bit for each that has ended */
};

struct parts {
    unsigned n;
    size_t size; /* of the results of one */
    struct meeting *all;
    uint8_t *results;
    struct backend_shared shared;
    pid_t pid[PARTS_MAX]; /* 0: it has ended */
};

static size_t bytes_of(const struct parts *p)
{
    return sizeof *p->all + p->n * p->size;
}

struct parts *parts_new(unsigned n, size_t size)
{
    struct parts *p = calloc(1, sizeof *p);
    void *m;

    if (!p)
        return NULL;
    p->n = n;
    p->size = (size + 63) / 64 * 64;
    p->shared = (struct backend_shared){.map = -1, .program = -1, .link = -1};
    m = mmap(NULL, bytes_of(p), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (m == MAP_FAILED) {
        free(p);
        return NULL;
    }
    p->results = m;
    p->all = (struct meeting *)(void *)(p->results + n * p->size);
    return p;
}

void parts_free(struct parts *p)
{
    if (!p)
        return;
    backend_unshare(&p->shared);
    munmap(p->results, bytes_of(p));
    free(p);
}

unsigned parts_count(const struct parts *p)
{
    return p->n;
}

void *parts_result(struct parts *p, unsigned i)
{
    return p->results + i * p->size;
}

int parts_share(struct parts *p, const char *backend, const char *iface, struct backend_error *err)
{
    return backend_share(&p->shared, backend, iface, p->n, err);
}

struct backend_part parts_of(const struct parts *p, unsigned i)
{
    return (struct backend_part){.part = i, .parts = p->n, .map = p->shared.map};
}

/* --- Processes -------------------------------------------------------------------------------- */

/* The process of a part. A signal of the terminal comes from the first process alone, so once. */
static void begin(struct parts *p, unsigned i, const struct parts_work *w, const sigset_t *mask, pid_t parent)
{
    int status;

    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        live_stop();
    live_catch_signals();
    sigprocmask(SIG_SETMASK, mask, NULL);
    status = w->run(w->user, i);
    fflush(NULL);
    atomic_fetch_add(&p->all->failed, status != 0);
    atomic_fetch_add(&p->all->over, 1);
    _exit(status);
}

static void signal_all(const struct parts *p, int sig)
{
    for (unsigned i = 0; i < p->n; i++)
        if (p->pid[i] > 0)
            kill(p->pid[i], sig);
}

/* Part `i` was ended by a signal. */
static void was_lost(struct parts *p, const struct parts_work *w, unsigned i, int sig)
{
    atomic_fetch_add(&p->all->failed, 1);
    atomic_fetch_add(&p->all->over, 1);
    w->lost(w->user, i, sig);
    if (i == 0)
        signal_all(p, SIGTERM);
}

/* Take leave of the processes that have ended; their number. A process that was killed has failed; `w` NULL: we killed
 * it. */
static unsigned reap(struct parts *p, const struct parts_work *w, int *worst)
{
    unsigned n = 0;
    int status;

    for (unsigned i = 0; i < p->n; i++) {
        if (p->pid[i] <= 0 || waitpid(p->pid[i], &status, WNOHANG) != p->pid[i])
            continue;
        p->pid[i] = 0;
        n++;
        atomic_fetch_or(&p->all->gone, 1ull << i);
        if (w && WIFSIGNALED(status))
            was_lost(p, w, i, WTERMSIG(status));
        status = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
        *worst = status > *worst ? status : *worst;
    }
    return n;
}

int parts_run(struct parts *p, const struct parts_work *w)
{
    pid_t self = getpid();
    sigset_t wanted, mask;
    unsigned running = 0;
    int worst = 0, failed = 0, sig;

    sigemptyset(&wanted);
    sigaddset(&wanted, SIGINT);
    sigaddset(&wanted, SIGTERM);
    sigaddset(&wanted, SIGCHLD);
    sigprocmask(SIG_BLOCK, &wanted, &mask);
    fflush(NULL);
    for (; running < p->n && !failed; running += p->pid[running] > 0) {
        p->pid[running] = fork();
        if (p->pid[running] == 0)
            begin(p, running, w, &mask, self);
        if (p->pid[running] < 0)
            failed = -errno;
    }
    if (failed)
        signal_all(p, SIGKILL);
    while (running && sigwait(&wanted, &sig) == 0)
        if (sig == SIGCHLD)
            running -= reap(p, failed ? NULL : w, &worst);
        else
            signal_all(p, sig);
    sigprocmask(SIG_SETMASK, &mask, NULL);
    return failed ? failed : worst;
}

/* --- Meeting ---------------------------------------------------------------------------------- */

bool parts_turn(const struct parts *p, unsigned i)
{
    unsigned turn = atomic_load(&p->all->turn);
    unsigned long long gone = atomic_load(&p->all->gone);

    for (unsigned k = 0; k < p->n && gone >> turn % p->n & 1; k++)
        turn++;
    return turn % p->n == i;
}

void parts_next(struct parts *p)
{
    atomic_fetch_add(&p->all->turn, 1);
}

static void look_later(void)
{
    nanosleep(&(struct timespec){.tv_nsec = LOOK}, NULL);
}

static bool goes_on(const struct parts *p)
{
    return !atomic_load(&p->all->failed) && !live_stopped();
}

bool parts_await_turn(const struct parts *p, unsigned i)
{
    while (!parts_turn(p, i) && goes_on(p))
        look_later();
    return goes_on(p);
}

bool parts_meet(struct parts *p)
{
    atomic_fetch_add(&p->all->met, 1);
    while (atomic_load(&p->all->met) < p->n && goes_on(p))
        look_later();
    return goes_on(p);
}

void parts_fail(struct parts *p)
{
    atomic_fetch_add(&p->all->failed, 1);
}

void parts_await_others(const struct parts *p, unsigned i)
{
    while (i == 0 && atomic_load(&p->all->over) + 1 < p->n)
        look_later();
}
