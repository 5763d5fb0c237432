/* layer 4 (test): how far two processors are from each other, for the benchmark: two threads, each on one of them,
 * write a cache line by turns. Prints the ns of a turn of both; 0 with one processor. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

enum { TURNS = 100000 };

static _Alignas(128) atomic_uint turn;

/* Run on processor number `k` of those that the process may use. False: there are not so many. */
static bool run_on(const cpu_set_t *all, unsigned k)
{
    cpu_set_t one;

    for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, all) || k--)
            continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        return pthread_setaffinity_np(pthread_self(), sizeof one, &one) == 0;
    }
    return false;
}

/* Each waits for its turn, and gives the other one its turn. */
static void take_turns(unsigned first)
{
    for (unsigned i = 0; i < TURNS; i++) {
        while (atomic_load_explicit(&turn, memory_order_acquire) != 2 * i + first)
            continue;
        atomic_store_explicit(&turn, 2 * i + first + 1, memory_order_release);
    }
}

static void *other(void *all)
{
    run_on(all, 1);
    take_turns(1);
    return NULL;
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(void)
{
    pthread_t thread;
    cpu_set_t all;
    double begin;

    if (sched_getaffinity(0, sizeof all, &all) || CPU_COUNT(&all) < 2) {
        puts("0");
        return 0;
    }
    if (pthread_create(&thread, NULL, other, &all) || !run_on(&all, 0))
        return 1;
    begin = now();
    take_turns(0);
    pthread_join(thread, NULL);
    printf("%.0f\n", (now() - begin) / TURNS);
    return 0;
}
