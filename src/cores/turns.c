/* layer 3 (cores): threads that read, dissect and take batches of frames by turns. */
#include "src/cores/turns.h"

#include "scratch.h"
#include "src/cap/chunks.h"
#include "src/cores/batch.h"
#include "src/cores/cores.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define AHEAD 64   /* packets from ahead() until one is taken */
#define LOOKS 3000 /* how often a thread looks for work before it sleeps: to be woken up takes longer */
#define ALONE 2    /* batches that are taken before other threads are started, if their number was not given */

_Static_assert(TURNS_MOST <= CHUNKS_THREADS, "chunks know who reads");

struct turns;

struct thread {
    _Alignas(64) struct turns *t;
    pthread_t id;
    struct batch *own[TURNS_BATCHES];
    uint64_t number[TURNS_BATCHES];
    unsigned first, n; /* batches that wait for their turn: own[first], ... */
};

struct turns {
    struct turns_opts o;
    struct thread *threads; /* o.threads; the first one is the caller's */
    unsigned n_started;
    /* Of who takes: it writes them for each packet, so no line of the cache has anything of others, too. */
    _Alignas(64) struct longest longest; /* of the packets taken */
    bool enough;
    /* Of who reads. */
    _Alignas(64) atomic_bool reading; /* somebody does */
    atomic_bool ended;                /* there are no more frames */
    uint64_t n_read;
    _Alignas(64) _Atomic uint64_t taken; /* the batch whose turn it is */
    _Alignas(64) atomic_uint sleeping;   /* threads that wait for `change` */
    pthread_mutex_t lock;                /* of what follows */
    pthread_cond_t change;
    struct longest known; /* what the latest batch taken showed */
};

/* --- Work ------------------------------------------------------------------------------------- */

/* What others wait for has changed. */
static void tell(struct turns *t)
{
    if (!atomic_load(&t->sleeping))
        return;
    pthread_mutex_lock(&t->lock);
    pthread_cond_broadcast(&t->change);
    pthread_mutex_unlock(&t->lock);
}

static bool fill(struct turns *t, struct batch *b)
{
    struct longest known;
    bool stays = false;

    pthread_mutex_lock(&t->lock);
    known = t->known;
    pthread_mutex_unlock(&t->lock);
    batch_clear(b, &known);
    while (!batch_is_full(b) && !chunks_are_many(t->o.chunks)) {
        if (!t->o.read(t->o.reader, &b->frames[b->n], &stays))
            return false;
        batch_add(b, stays);
    }
    return true;
}

/* Read and dissect a batch, if nobody else reads. */
static bool read_one(struct thread *me)
{
    struct turns *t = me->t;
    unsigned at = (me->first + me->n) % TURNS_BATCHES;
    struct batch *b = me->own[at];

    if (me->n == TURNS_BATCHES || atomic_load(&t->ended) || atomic_exchange(&t->reading, true))
        return false;
    if (!atomic_load(&t->ended)) {
        me->number[at] = t->n_read;
        chunks_begin(t->o.chunks, t->n_read++, (unsigned)(me - t->threads));
        me->n++;
        if (!fill(t, b))
            atomic_store(&t->ended, true);
    } else {
        b = NULL;
    }
    atomic_store(&t->reading, false);
    tell(t);
    if (b)
        batch_dissect(b, &t->o.decode);
    return true;
}

static void look_ahead(const struct turns *t, const struct batch *b, uint32_t at)
{
    for (uint32_t i = at ? at + AHEAD - 1 : 0; i < b->n && i < at + AHEAD; i++)
        t->o.ahead(t->o.user, &b->frames[i]);
}

static void take_packets(struct turns *t, struct batch *b)
{
    for (uint32_t i = 0; i < b->n && !t->enough; i++) {
        batch_fetch(b, i);
        if (t->o.ahead)
            look_ahead(t, b, i);
        batch_settle(b, i, &t->longest, &t->o.decode);
        t->enough = !t->o.take(t->o.user, &b->pkts[i]);
    }
    if (t->enough)
        atomic_store(&t->ended, true);
}

/* Take the packets of the oldest batch, if it is its turn. */
static bool take_one(struct thread *me)
{
    struct turns *t = me->t;
    uint64_t number = me->number[me->first];

    if (!me->n || atomic_load_explicit(&t->taken, memory_order_acquire) != number)
        return false;
    take_packets(t, me->own[me->first]);
    pthread_mutex_lock(&t->lock);
    t->known = t->longest;
    pthread_mutex_unlock(&t->lock);
    me->first = (me->first + 1) % TURNS_BATCHES;
    me->n--;
    chunks_done(t->o.chunks, number + 1);
    atomic_store(&t->taken, number + 1);
    tell(t);
    return true;
}

/* --- Threads ---------------------------------------------------------------------------------- */

static bool is_over(const struct thread *me)
{
    return !me->n && atomic_load(&me->t->ended);
}

/* Whether there is something to do, or nothing any more. */
static bool can_go_on(const struct thread *me)
{
    const struct turns *t = me->t;

    if (me->n && atomic_load(&t->taken) == me->number[me->first])
        return true;
    return is_over(me) || (me->n < TURNS_BATCHES && !atomic_load(&t->ended) && !atomic_load(&t->reading));
}

static inline void look_away(void)
{
#ifdef __x86_64__
    __builtin_ia32_pause();
#endif
}

static void wait_for_work(const struct thread *me)
{
    struct turns *t = me->t;

    for (unsigned i = 0; i < LOOKS; i++) {
        if (can_go_on(me))
            return;
        look_away();
    }
    pthread_mutex_lock(&t->lock);
    atomic_fetch_add(&t->sleeping, 1);
    while (!can_go_on(me))
        pthread_cond_wait(&t->change, &t->lock);
    atomic_fetch_sub(&t->sleeping, 1);
    pthread_mutex_unlock(&t->lock);
}

static void work(struct thread *me)
{
    while (!is_over(me))
        if (!take_one(me) && !read_one(me))
            wait_for_work(me);
}

static void *other(void *user)
{
    work(user);
    scratch_free();
    return NULL;
}

/* Start the other threads; fewer if the system refuses. */
static void start(struct turns *t)
{
    while (t->n_started + 1 < t->o.threads &&
           cores_start(&t->threads[t->n_started + 1].id, other, &t->threads[t->n_started + 1]))
        t->n_started++;
}

/* --- All of it -------------------------------------------------------------------------------- */

static bool thread_new(struct thread *one, struct turns *t)
{
    one->t = t;
    for (unsigned i = 0; i < TURNS_BATCHES; i++) {
        one->own[i] = calloc(1, sizeof(struct batch));
        if (!one->own[i] || !batch_begin(one->own[i], TURNS_FRAMES, TURNS_BYTES))
            return false;
    }
    return true;
}

static void thread_free(struct thread *one)
{
    for (unsigned i = 0; i < TURNS_BATCHES; i++) {
        if (one->own[i])
            batch_end(one->own[i]);
        free(one->own[i]);
    }
}

static bool threads_new(struct turns *t)
{
    t->threads = aligned_alloc(64, t->o.threads * sizeof *t->threads);
    if (t->threads)
        memset(t->threads, 0, t->o.threads * sizeof *t->threads);
    for (unsigned i = 0; t->threads && i < t->o.threads; i++)
        if (!thread_new(&t->threads[i], t))
            return false;
    return t->threads != NULL;
}

static void run(struct turns *t, bool at_once)
{
    struct thread *me = &t->threads[0];

    while (!at_once && atomic_load(&t->taken) < ALONE && !is_over(me))
        if (!take_one(me))
            read_one(me);
    if (!is_over(me))
        start(t);
    work(me);
    for (unsigned i = 1; i <= t->n_started; i++)
        pthread_join(t->threads[i].id, NULL);
}

bool turns_run(const struct turns_opts *o)
{
    struct turns *t = aligned_alloc(64, sizeof *t);
    bool ok;

    if (!t)
        return false;
    memset(t, 0, sizeof *t);
    t->o = *o;
    t->o.threads = min_u32(cores_threads(o->threads, TURNS_THREADS), TURNS_MOST);
    t->longest = t->known = o->longest;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->change, NULL);
    ok = threads_new(t);
    if (ok)
        run(t, o->threads != 0);
    for (unsigned i = 0; t->threads && i < t->o.threads; i++)
        thread_free(&t->threads[i]);
    free(t->threads);
    pthread_cond_destroy(&t->change);
    pthread_mutex_destroy(&t->lock);
    free(t);
    return ok;
}
