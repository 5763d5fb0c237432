/* layer 5 (test): work that a thread of its own does: every piece, in order, few of them in advance. */
#include "src/cores/worker.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <unistd.h>

#define PIECES 1000

struct log {
    int seen[PIECES];
    int n;
    useconds_t slow; /* us for each piece */
};

static void note(void *user, void *piece)
{
    struct log *l = user;

    if (l->slow)
        usleep(l->slow);
    l->seen[l->n++] = (int)(intptr_t)piece;
}

/* Put pieces first .. last - 1. */
static void put(struct worker *w, int first, int last)
{
    for (int i = first; i < last; i++)
        worker_put(w, (void *)(intptr_t)i);
}

static void expect_in_order(const struct log *l, int n)
{
    cr_assert_eq(l->n, n, "%d of %d pieces", l->n, n);
    for (int i = 0; i < n; i++)
        cr_assert_eq(l->seen[i], i, "piece %d was done as number %d", l->seen[i], i);
}

Test(worker, every_piece_in_order)
{
    for (unsigned threads = 1; threads <= 2; threads++) {
        struct log l = {.n = 0};
        struct worker *w = worker_new(threads, note, &l);
        worker_wait(w); /* nothing was put */
        put(w, 0, PIECES / 2);
        worker_wait(w);
        expect_in_order(&l, PIECES / 2);
        put(w, PIECES / 2, PIECES);
        worker_free(w); /* does the rest first */
        expect_in_order(&l, PIECES);
    }
    worker_free(NULL);
}

Test(worker, all_but_the_latest_pieces_are_done)
{
    struct log l = {.slow = 100};
    struct worker *w = worker_new(2, note, &l);

    for (int i = 0; i < 4 * WORKER_PIECES; i++) {
        worker_put(w, (void *)(intptr_t)i);
        cr_assert_geq(__atomic_load_n(&l.n, __ATOMIC_ACQUIRE), i + 1 - WORKER_PIECES);
    }
    worker_free(w);
    expect_in_order(&l, 4 * WORKER_PIECES);
}
