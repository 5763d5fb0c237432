/* layer 3 (cores): threads that read, dissect, take and show batches of frames by turns. */
#include "src/cores/turns.h"

#include "apart.h"
#include "scratch.h"
#include "src/cap/chunks.h"
#include "src/cap/merge.h"
#include "src/cores/batch.h"
#include "src/cores/cores.h"
#include "zeros.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define AHEAD 64 /* packets from ahead() until one is taken */
/* How often a thread looks for work before it sleeps, some 0.4 ms: about what a batch takes. To be woken up takes long,
 * on a virtual machine most of all. */
#define LOOKS      20000
#define READ_LEAST 32768 /* bytes that are read of a file at once, at least */
#define ALONE      2     /* batches that are taken before other threads are started, if their number was not given */

_Static_assert(TURNS_MOST <= CHUNKS_THREADS, "chunks know who reads");

struct turns;

/* What was done with a batch. */
enum progress {
    FREE,   /* there is none: the next one may be read */
    READ,   /* and dissected */
    PASSED, /* through early() */
    TAKEN   /* and its text was made */
};

/* A thread, its batch, and what is shown of it. */
struct thread {
    _Alignas(64) struct turns *t;
    pthread_t id;
    struct batch b;
    enum progress at;
    uint64_t number;    /* of the batch */
    struct turn *turns; /* of each packet; NULL: nothing is shown */
    struct buf said;    /* of those whose text was appended when they were taken */
    struct buf text;    /* of all */
    void *scratch;      /* of show() */
};

struct turns {
    struct turns_opts o;
    struct thread *threads; /* o.threads; the first one is the caller's */
    void *batches;          /* memory of all batches, each after the other */
    unsigned n_started;
    /* Of who settles, or takes: it writes them for each packet, so no line of the cache has anything of others, too. */
    _Alignas(64) struct longest longest; /* of the packets settled */
    _Alignas(64) bool enough;
    const struct thread *passer, *taker; /* who passed, or took, the latest batch */
    /* Of who reads. */
    _Alignas(64) atomic_bool reading; /* somebody does */
    atomic_bool ended;                /* there are no more frames */
    uint64_t n_read;
    _Alignas(64) _Atomic uint64_t passed; /* with early(): the batch that goes through it next */
    _Atomic uint64_t taken;               /* the batch that is taken next */
    _Atomic uint64_t written;             /* the batch whose text is written next */
    atomic_bool broken;                   /* write() wants no more */
    _Alignas(64) atomic_uint sleeping;    /* threads that wait for `change` */
    pthread_mutex_t lock;                 /* of what follows */
    pthread_cond_t change;
    struct longest known; /* what the latest batch settled showed */
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

/* Whether no frame is added to a batch any more. */
static bool is_full(const struct turns *t, const struct batch *b)
{
    if (batch_is_full(b) || (t->o.chunks && chunks_are_many(t->o.chunks)))
        return true;
    return t->o.in && batch_may_end(b) && cap_merge_runs_out(t->o.in);
}

/* By the records of this batch: read so much of the file at once that the next one is half full. */
static void plan_reading(struct turns *t, const struct batch *b)
{
    uint64_t from = b->n ? b->frames[0].offset : 0, to = b->n ? b->frames[b->n - 1].offset : 0;
    uint64_t bytes = to > from ? (to - from) / b->n * t->o.frames / 2 : 0;

    if (t->o.in && bytes)
        cap_merge_read_at_a_time(t->o.in, bytes > READ_LEAST ? bytes : READ_LEAST);
}

static bool fill(struct thread *me)
{
    struct turns *t = me->t;
    struct batch *b = &me->b;
    struct longest known;
    bool stays = false;

    pthread_mutex_lock(&t->lock);
    known = t->known;
    pthread_mutex_unlock(&t->lock);
    batch_clear(b, &known);
    while (!is_full(t, b)) {
        uint32_t tag = 0;
        if (!t->o.read(t->o.reader, &b->frames[b->n], &tag, &stays))
            return false;
        if (me->turns)
            me->turns[b->n] = (struct turn){.tag = tag, .said = &me->said};
        batch_add(b, stays);
    }
    plan_reading(t, b);
    return true;
}

/* Read and dissect a batch, if nobody else reads. */
static bool read_one(struct thread *me)
{
    struct turns *t = me->t;

    if (me->at != FREE || atomic_load(&t->ended) || atomic_exchange(&t->reading, true))
        return false;
    if (!atomic_load(&t->ended)) {
        me->number = t->n_read++;
        if (t->o.chunks)
            chunks_begin(t->o.chunks, me->number, (unsigned)(me - t->threads));
        me->at = READ;
        if (!fill(me))
            atomic_store(&t->ended, true);
    }
    atomic_store(&t->reading, false);
    tell(t);
    if (me->at == READ)
        batch_dissect(&me->b, &t->o.decode);
    return true;
}

static void look_ahead(const struct turns *t, const struct batch *b, uint32_t at)
{
    for (uint32_t i = at ? at + AHEAD - 1 : 0; i < b->n && i < at + AHEAD; i++)
        t->o.ahead(t->o.user, &b->frames[i]);
}

/* What the packets of a batch have shown is known to those who read from now on. */
static void make_known(struct turns *t)
{
    pthread_mutex_lock(&t->lock);
    t->known = t->longest;
    pthread_mutex_unlock(&t->lock);
}

/* This thread goes on where another one has ended its turn. */
static void go_on(struct turns *t, const struct thread **last, const struct thread *me, void (*fetch)(void *user))
{
    if (fetch && *last && *last != me)
        fetch(t->o.user);
    *last = me;
}

static void pass_packets(struct turns *t, struct batch *b)
{
    for (uint32_t i = 0; i < b->n; i++) {
        batch_fetch(b, i);
        batch_settle(b, i, &t->longest, &t->o.decode);
        t->o.early(t->o.user, &b->pkts[i]);
    }
    make_known(t);
}

static void take_packets(struct thread *me)
{
    struct turns *t = me->t;
    struct batch *b = &me->b;
    struct turn none = {0};

    t->enough |= atomic_load(&t->broken);
    for (uint32_t i = 0; i < b->n && !t->enough; i++) {
        struct turn *turn = me->turns ? &me->turns[i] : &none;
        batch_fetch(b, i);
        if (t->o.ahead)
            look_ahead(t, b, i);
        if (!t->o.early)
            batch_settle(b, i, &t->longest, &t->o.decode);
        t->enough = !t->o.take(t->o.user, &b->pkts[i], turn);
        turn->end = (uint32_t)me->said.len;
    }
    if (!t->o.early)
        make_known(t);
    if (t->enough)
        atomic_store(&t->ended, true);
}

/* Make the text of the batch. */
static void show(struct thread *me)
{
    struct turns *t = me->t;
    uint32_t at = 0;

    for (uint32_t i = 0; i < me->b.n; i++) {
        const struct turn *turn = &me->turns[i];
        if (turn->later)
            t->o.show(t->o.user, me->scratch, &me->text, &me->b.pkts[i], turn->tag);
        if (turn->end > at) {
            buf_mem(&me->text, me->said.p + at, turn->end - at);
            at = turn->end;
        }
    }
    me->text.err |= me->said.err;
    me->said.len = 0;
}

/* Whether it is the turn of the thread's batch: to go through early(), to be taken, to be written. */
static bool can_pass(const struct thread *me)
{
    return me->at == READ && me->t->o.early && atomic_load(&me->t->passed) == me->number;
}

static bool can_take(const struct thread *me)
{
    return me->at == (me->t->o.early ? PASSED : READ) && atomic_load(&me->t->taken) == me->number;
}

static bool can_write(const struct thread *me)
{
    return me->at == TAKEN && atomic_load(&me->t->written) == me->number;
}

/* The batch is not needed any more. */
static void give_back(struct thread *me)
{
    me->at = FREE;
    if (me->t->o.chunks)
        chunks_done(me->t->o.chunks, me->number + 1);
}

/* Bring the batch through early(), if it is its turn. */
static bool pass_one(struct thread *me)
{
    struct turns *t = me->t;

    if (!can_pass(me))
        return false;
    go_on(t, &t->passer, me, t->o.fetch_early);
    pass_packets(t, &me->b);
    me->at = PASSED;
    atomic_store(&t->passed, me->number + 1);
    tell(t);
    return true;
}

/* Take the packets of the batch, if it is its turn, and show them. */
static bool take_one(struct thread *me)
{
    struct turns *t = me->t;

    if (!can_take(me))
        return false;
    if (!t->enough)
        go_on(t, &t->taker, me, t->o.fetch);
    take_packets(me);
    if (me->turns)
        me->at = TAKEN;
    else
        give_back(me);
    atomic_store(&t->taken, me->number + 1);
    tell(t);
    if (me->turns)
        show(me);
    return true;
}

/* Write the text of the batch, if it is its turn. */
static bool write_one(struct thread *me)
{
    struct turns *t = me->t;

    if (!can_write(me))
        return false;
    if ((me->text.len || me->text.err) && !atomic_load(&t->broken) && !t->o.write(t->o.user, &me->text)) {
        atomic_store(&t->broken, true);
        atomic_store(&t->ended, true);
    }
    me->text.len = 0;
    give_back(me);
    atomic_store(&t->written, me->number + 1);
    tell(t);
    return true;
}

/* --- Threads ---------------------------------------------------------------------------------- */

static bool is_over(const struct thread *me)
{
    return me->at == FREE && atomic_load(&me->t->ended);
}

/* Whether there is something to do, or nothing any more. */
static bool can_go_on(const struct thread *me)
{
    const struct turns *t = me->t;

    if (can_take(me) || can_pass(me) || can_write(me))
        return true;
    return is_over(me) || (me->at == FREE && !atomic_load(&t->ended) && !atomic_load(&t->reading));
}

static inline void look_away(void)
{
#ifdef __x86_64__
    __builtin_ia32_pause();
#endif
}

static void wait_for_work(struct thread *me)
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
        if (!write_one(me) && !take_one(me) && !pass_one(me) && !read_one(me))
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

static bool thread_new(struct thread *one, struct turns *t, void *memory)
{
    uint32_t frames = t->o.frames;

    one->t = t;
    one->scratch = calloc(1, t->o.scratch_size + 1);
    one->turns = t->o.show ? calloc(frames, sizeof *one->turns) : NULL;
    return batch_begin(&one->b, memory, frames, frames << 10) && one->scratch && (one->turns || !t->o.show);
}

static void thread_free(struct thread *one)
{
    batch_end(&one->b);
    buf_free(&one->said);
    buf_free(&one->text);
    free(one->turns);
    free(one->scratch);
}

/* What a batch does not use of its memory is never touched. */
static bool threads_new(struct turns *t)
{
    size_t frames = t->o.frames;
    uint8_t *memory = t->batches = zeros_new(t->o.threads * frames, BATCH_FRAME);

    t->threads = apart_new(t->o.threads, sizeof *t->threads);
    if (!t->threads || !memory)
        return false;
    for (unsigned i = 0; i < t->o.threads; i++)
        if (!thread_new(&t->threads[i], t, memory + i * frames * BATCH_FRAME))
            return false;
    return true;
}

static void run(struct turns *t, bool at_once)
{
    struct thread *me = &t->threads[0];

    while (!at_once && atomic_load(&t->taken) < ALONE && !is_over(me))
        if (!write_one(me) && !take_one(me) && !pass_one(me))
            read_one(me);
    if (!is_over(me))
        start(t);
    work(me);
    for (unsigned i = 1; i <= t->n_started; i++)
        pthread_join(t->threads[i].id, NULL);
}

bool turns_run(const struct turns_opts *o)
{
    struct turns *t = apart_new(1, sizeof *t);
    bool ok;

    if (!t)
        return false;
    t->o = *o;
    t->o.threads = min_u32(cores_threads(o->threads, o->show ? TURNS_MOST : TURNS_THREADS), TURNS_MOST);
    t->longest = t->known = o->longest;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->change, NULL);
    ok = threads_new(t);
    if (ok)
        run(t, o->threads != 0);
    for (unsigned i = 0; t->threads && i < t->o.threads; i++)
        thread_free(&t->threads[i]);
    free(t->threads);
    zeros_free(t->batches, (size_t)t->o.threads * t->o.frames, BATCH_FRAME);
    pthread_cond_destroy(&t->change);
    pthread_mutex_destroy(&t->lock);
    free(t);
    return ok;
}
