/* layer 3 (live): monotonic time, and waiting until a signal ends the program. */
#include "clock.h"
#include "gen/live/live.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <time.h>

static volatile sig_atomic_t stopped;

ns_t live_now(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

void live_stop(void)
{
    stopped = 1;
}

bool live_stopped(void)
{
    return stopped;
}

void live_go_on(void)
{
    stopped = 0;
}

static void on_signal(int sig)
{
    (void)sig;
    stopped = 1;
}

void live_catch_signals(void)
{
    struct sigaction a = {.sa_handler = on_signal};

    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
}

void live_catch_ends(void)
{
    static const int others[] = {SIGHUP, SIGPIPE};
    struct sigaction a = {.sa_handler = on_signal}, is;

    live_catch_signals();
    for (unsigned i = 0; i < ARRAY_LEN(others); i++)
        if (sigaction(others[i], NULL, &is) == 0 && is.sa_handler == SIG_DFL) /* not under nohup */
            sigaction(others[i], &a, NULL);
}

int live_wait(struct pollfd *fds, unsigned n, ns_t when)
{
    ns_t left = when - live_now();
    struct timespec t;
    sigset_t open, old;
    int r;

    if (left <= 0)
        return stopped ? -EINTR : 0;
    if (left > NS_PER_S)
        left = NS_PER_S;
    t = (struct timespec){.tv_sec = left / NS_PER_S, .tv_nsec = left % NS_PER_S};
    /* A signal between the test and the wait must end the wait: only ppoll() unblocks it. */
    sigemptyset(&open);
    sigaddset(&open, SIGINT);
    sigaddset(&open, SIGTERM);
    sigprocmask(SIG_BLOCK, &open, &old);
    r = stopped ? 0 : ppoll(fds, n, &t, &old);
    r = r < 0 && errno != EINTR ? -errno : 0;
    sigprocmask(SIG_SETMASK, &old, NULL);
    return r < 0 ? r : stopped ? -EINTR : 0;
}
