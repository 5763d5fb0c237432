/* layer 3 (cores): a ring of pieces of work, and the thread that does them. */
#include "src/cores/worker.h"

#include "scratch.h"
#include "src/cores/cores.h"

#include <pthread.h>
#include <stdlib.h>

struct worker {
    void (*work)(void *user, void *piece);
    void *user;
    bool alone; /* no thread was started: worker_put() does the work */
    bool started;
    pthread_t thread;
    pthread_mutex_t lock; /* of all that follows */
    pthread_cond_t more;  /* there is a piece, or the end */
    pthread_cond_t done;  /* pieces were done: for who waits */
    void *pieces[WORKER_PIECES];
    uint64_t n_put, n_done;
    uint64_t wanted; /* number of done pieces that is waited for; 0: nobody waits */
    bool sleeps;     /* the thread waits for `more` */
    bool stop;
};

/* The next piece; false at the end. */
static bool has_piece(struct worker *w)
{
    while (w->n_put == w->n_done && !w->stop) {
        w->sleeps = true;
        pthread_cond_wait(&w->more, &w->lock);
        w->sleeps = false;
    }
    return w->n_put > w->n_done;
}

static void *run(void *user)
{
    struct worker *w = user;

    pthread_mutex_lock(&w->lock);
    while (has_piece(w)) {
        void *piece = w->pieces[w->n_done % WORKER_PIECES];
        pthread_mutex_unlock(&w->lock);
        w->work(w->user, piece);
        pthread_mutex_lock(&w->lock);
        w->n_done++;
        if (w->wanted && w->n_done >= w->wanted)
            pthread_cond_signal(&w->done);
    }
    pthread_mutex_unlock(&w->lock);
    scratch_free();
    return NULL;
}

/* Wait until `n` pieces are done; the lock is held. */
static void await(struct worker *w, uint64_t n)
{
    w->wanted = n;
    while (w->n_done < n)
        pthread_cond_wait(&w->done, &w->lock);
    w->wanted = 0;
}

void worker_put(struct worker *w, void *piece)
{
    if (!w->started && !w->alone)
        w->started = !(w->alone = !cores_start(&w->thread, run, w));
    if (w->alone) {
        w->work(w->user, piece);
        return;
    }
    pthread_mutex_lock(&w->lock);
    /* who had to wait goes on with half of the ring free: not to sleep again at once */
    if (w->n_put - w->n_done == WORKER_PIECES)
        await(w, w->n_put - WORKER_PIECES / 2);
    w->pieces[w->n_put++ % WORKER_PIECES] = piece;
    if (w->sleeps)
        pthread_cond_signal(&w->more);
    pthread_mutex_unlock(&w->lock);
}

void worker_wait(struct worker *w)
{
    pthread_mutex_lock(&w->lock);
    await(w, w->n_put);
    pthread_mutex_unlock(&w->lock);
}

struct worker *worker_new(unsigned threads, void (*work)(void *user, void *piece), void *user)
{
    struct worker *w = calloc(1, sizeof *w);

    if (!w)
        return NULL;
    w->work = work;
    w->user = user;
    w->alone = cores_is_one(threads);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->more, NULL);
    pthread_cond_init(&w->done, NULL);
    return w;
}

void worker_free(struct worker *w)
{
    if (!w)
        return;
    if (w->started) {
        pthread_mutex_lock(&w->lock);
        w->stop = true;
        pthread_cond_signal(&w->more);
        pthread_mutex_unlock(&w->lock);
        pthread_join(w->thread, NULL);
    }
    pthread_cond_destroy(&w->done);
    pthread_cond_destroy(&w->more);
    pthread_mutex_destroy(&w->lock);
    free(w);
}
