/* layer 1 (io): survive SIGBUS when a mapped file shrinks. */
#include "src/cap/guard.h"
#include "types.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#define GUARD_MAX 1024

/* The handler reads the table without a lock: `area` is written last and cleared first. */
static struct guard {
    _Atomic uintptr_t area;
    size_t len;
    volatile sig_atomic_t *gone;
} guards[GUARD_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sigaction before;
static bool installed;
static uintptr_t page_mask;

static struct guard *guard_find(uintptr_t addr)
{
    for (size_t i = 0; i < GUARD_MAX; i++) {
        uintptr_t area = atomic_load(&guards[i].area);
        if (area && addr >= area && addr - area < guards[i].len)
            return &guards[i];
    }
    return NULL;
}

static void on_sigbus(int sig, siginfo_t *info, void *context)
{
    uintptr_t addr = (uintptr_t)info->si_addr;
    struct guard *g = info->si_code > 0 ? guard_find(addr) : NULL;

    if (g) {
        uintptr_t area = atomic_load(&g->area);
        uintptr_t page = addr & page_mask;
        void *p = mmap((void *)page, g->len - (page - area), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        if (p != MAP_FAILED) {
            *g->gone = 1;
            return;
        }
    }
    if (before.sa_flags & SA_SIGINFO) {
        before.sa_sigaction(sig, info, context);
    } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
        before.sa_handler(sig);
    } else {
        /* The faulting instruction runs again and now ends the process as it would have without us. */
        signal(SIGBUS, SIG_DFL);
        if (info->si_code <= 0)
            raise(SIGBUS);
    }
}

bool guard_add(void *area, size_t len, volatile sig_atomic_t *gone)
{
    struct guard *g = NULL;

    pthread_mutex_lock(&lock);
    if (!installed) {
        struct sigaction sa = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO};
        page_mask = ~(uintptr_t)(sysconf(_SC_PAGESIZE) - 1);
        sigemptyset(&sa.sa_mask);
        installed = sigaction(SIGBUS, &sa, &before) == 0;
    }
    for (size_t i = 0; installed && i < GUARD_MAX && !g; i++)
        if (!atomic_load(&guards[i].area))
            g = &guards[i];
    if (g) {
        g->len = len;
        g->gone = gone;
        atomic_store(&g->area, (uintptr_t)area);
    }
    pthread_mutex_unlock(&lock);
    return g != NULL;
}

void guard_remove(void *area)
{
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < GUARD_MAX; i++)
        if (atomic_load(&guards[i].area) == (uintptr_t)area)
            atomic_store(&guards[i].area, 0);
    pthread_mutex_unlock(&lock);
}
