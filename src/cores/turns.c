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
#define LOOKS 20000
#define ALONE 2 /* batches that are taken before other threads are started, if their number was not given */

_Static_assert(TURNS_MOST <= CHUNKS_THREADS, "chunks know who reads");

struct turns;

/* A batch, and what is shown of it. */
struct part {
    struct batch b;
    struct turn *turns; /* of each packet; NULL: nothing is shown */
    struct buf said;    /* of those whose text was appended when they were taken */
    struct buf text;    /* of all */
    uint64_t number;
};

struct thread {
    _Alignas(64) struct turns *t;
    pthread_t id;
    struct part own[TURNS_BATCHES];
    unsigned first, n; /* batches that were read: own[first], ... */
    unsigned n_passed; /* the first ones of them went through early() */
    unsigned n_taken;  /* the first ones of these were taken, shown, and wait to be written */
    void *scratch;     /* of show() */
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
    return t->o.in && batch_is_long(b) && cap_merge_runs_out(t->o.in);
}

static bool fill(struct turns *t, struct part *part)
{
    struct batch *b = &part->b;
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
        if (part->turns)
            part->turns[b->n] = (struct turn){.tag = tag, .said = &part->said};
        batch_add(b, stays);
    }
    return true;
}

/* Read and dissect a batch, if nobody else reads. */
static bool read_one(struct thread *me)
{
    struct turns *t = me->t;
    unsigned at = (me->first + me->n) % TURNS_BATCHES;
    struct part *part = &me->own[at];

    if (me->n == TURNS_BATCHES || atomic_load(&t->ended) || atomic_exchange(&t->reading, true))
        return false;
    if (!atomic_load(&t->ended)) {
        part->number = t->n_read++;
        if (t->o.chunks)
            chunks_begin(t->o.chunks, part->number, (unsigned)(me - t->threads));
        me->n++;
        if (!fill(t, part))
            atomic_store(&t->ended, true);
    } else {
        part = NULL;
    }
    atomic_store(&t->reading, false);
    tell(t);
    if (part)
        batch_dissect(&part->b, &t->o.decode);
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

static void take_packets(struct turns *t, struct part *part)
{
    struct batch *b = &part->b;
    struct turn none = {0};

    t->enough |= atomic_load(&t->broken);
    for (uint32_t i = 0; i < b->n && !t->enough; i++) {
        struct turn *turn = part->turns ? &part->turns[i] : &none;
        batch_fetch(b, i);
        if (t->o.ahead)
            look_ahead(t, b, i);
        if (!t->o.early)
            batch_settle(b, i, &t->longest, &t->o.decode);
        t->enough = !t->o.take(t->o.user, &b->pkts[i], turn);
        turn->end = (uint32_t)part->said.len;
    }
    if (!t->o.early)
        make_known(t);
    if (t->enough)
        atomic_store(&t->ended, true);
}

/* Make the text of a batch. */
static void show(struct thread *me, struct part *part)
{
    struct turns *t = me->t;
    uint32_t at = 0;

    for (uint32_t i = 0; i < part->b.n; i++) {
        const struct turn *turn = &part->turns[i];
        if (turn->later)
            t->o.show(t->o.user, me->scratch, &part->text, &part->b.pkts[i], turn->tag);
        if (turn->end > at) {
            buf_mem(&part->text, part->said.p + at, turn->end - at);
            at = turn->end;
        }
    }
    part->text.err |= part->said.err;
    part->said.len = 0;
}

/* The oldest batch behind `n` others. */
static struct part *behind(struct thread *me, unsigned n)
{
    return &me->own[(me->first + n) % TURNS_BATCHES];
}

/* Whether it is the turn of a batch of the thread: to go through early(), to be taken, to be written. */
static bool can_pass(struct thread *me)
{
    return me->t->o.early && me->n > me->n_passed && atomic_load(&me->t->passed) == behind(me, me->n_passed)->number;
}

static bool can_take(struct thread *me)
{
    unsigned n = me->t->o.early ? me->n_passed : me->n;

    return n > me->n_taken && atomic_load(&me->t->taken) == behind(me, me->n_taken)->number;
}

static bool can_write(const struct thread *me)
{
    return me->n_taken && atomic_load(&me->t->written) == me->own[me->first].number;
}

/* The oldest batch is not needed any more. */
static void give_back(struct thread *me)
{
    struct turns *t = me->t;
    uint64_t next = me->own[me->first].number + 1;

    me->n--;
    if (me->n) /* else the next one is read to where this one is: it is in the caches */
        me->first = (me->first + 1) % TURNS_BATCHES;
    me->n_passed -= me->n_passed != 0;
    me->n_taken--;
    if (t->o.chunks)
        chunks_done(t->o.chunks, next);
}

/* Bring the oldest batch that did not go through early() through it, if it is its turn. */
static bool pass_one(struct thread *me)
{
    struct turns *t = me->t;
    struct part *part;

    if (!can_pass(me))
        return false;
    part = behind(me, me->n_passed++);
    go_on(t, &t->passer, me, t->o.fetch_early);
    pass_packets(t, &part->b);
    atomic_store(&t->passed, part->number + 1);
    tell(t);
    return true;
}

/* Take the packets of the oldest batch that was not taken, if it is its turn, and show them. */
static bool take_one(struct thread *me)
{
    struct turns *t = me->t;
    struct part *part = behind(me, me->n_taken);
    uint64_t next = part->number + 1;

    if (!can_take(me))
        return false;
    if (!t->enough)
        go_on(t, &t->taker, me, t->o.fetch);
    take_packets(t, part);
    me->n_taken++;
    if (!part->turns)
        give_back(me);
    atomic_store(&t->taken, next);
    tell(t);
    if (part->turns)
        show(me, part);
    return true;
}

/* Write the oldest batch, if it is its turn, and give it back. */
static bool write_one(struct thread *me)
{
    struct turns *t = me->t;
    struct part *part = &me->own[me->first];
    uint64_t next = part->number + 1;

    if (!can_write(me))
        return false;
    if ((part->text.len || part->text.err) && !atomic_load(&t->broken) && !t->o.write(t->o.user, &part->text)) {
        atomic_store(&t->broken, true);
        atomic_store(&t->ended, true);
    }
    part->text.len = 0;
    give_back(me);
    atomic_store(&t->written, next);
    tell(t);
    return true;
}

/* --- Threads ---------------------------------------------------------------------------------- */

static bool is_over(const struct thread *me)
{
    return !me->n && atomic_load(&me->t->ended);
}

/* Whether there is something to do, or nothing any more. */
static bool can_go_on(struct thread *me)
{
    const struct turns *t = me->t;

    if (can_take(me) || can_pass(me) || can_write(me))
        return true;
    return is_over(me) || (me->n < TURNS_BATCHES && !atomic_load(&t->ended) && !atomic_load(&t->reading));
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

#define LARGE ((size_t)2 << 20) /* a large page */

/* Bytes of the memory of a batch. */
static size_t batch_bytes(const struct turns_opts *o)
{
    return (o->show ? TURNS_SHOWN : TURNS_FRAMES) * BATCH_FRAME;
}

/* Large pages for all batches. */
static size_t n_pages(const struct turns_opts *o)
{
    return (o->threads * TURNS_BATCHES * batch_bytes(o) + LARGE - 1) / LARGE;
}

static bool part_begin(struct part *part, void *memory, const struct turns_opts *o)
{
    uint32_t frames = o->show ? TURNS_SHOWN : TURNS_FRAMES, bytes = o->show ? TURNS_SHOWN_BYTES : TURNS_BYTES;

    part->turns = o->show ? calloc(frames, sizeof *part->turns) : NULL;
    return batch_begin(&part->b, memory, frames, bytes) && (part->turns || !o->show);
}

static bool thread_new(struct thread *one, struct turns *t, uint8_t *memory)
{
    one->t = t;
    one->scratch = calloc(1, t->o.scratch_size + 1);
    for (unsigned i = 0; i < TURNS_BATCHES; i++)
        if (!part_begin(&one->own[i], memory + i * batch_bytes(&t->o), &t->o))
            return false;
    return one->scratch != NULL;
}

static void thread_free(struct thread *one)
{
    for (unsigned i = 0; i < TURNS_BATCHES; i++) {
        batch_end(&one->own[i].b);
        buf_free(&one->own[i].said);
        buf_free(&one->own[i].text);
        free(one->own[i].turns);
    }
    free(one->scratch);
}

static bool threads_new(struct turns *t)
{
    uint8_t *memory = t->batches = zeros_new(n_pages(&t->o), LARGE);

    t->threads = apart_new(t->o.threads, sizeof *t->threads);
    if (!t->threads || !memory)
        return false;
    zeros_many(memory, n_pages(&t->o), LARGE);
    for (unsigned i = 0; i < t->o.threads; i++)
        if (!thread_new(&t->threads[i], t, memory + i * TURNS_BATCHES * batch_bytes(&t->o)))
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
    zeros_free(t->batches, n_pages(&t->o), LARGE);
    pthread_cond_destroy(&t->change);
    pthread_mutex_destroy(&t->lock);
    free(t);
    return ok;
}
