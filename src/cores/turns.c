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
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#define AHEAD 64 /* packets from ahead() until one is taken */
#define FETCH 4  /* packets from batch_fetch() until one is used */
/* How often a thread looks for work before it sleeps, for some milliseconds, which is more than a batch takes; after
 * the first looks it lets others have its processor between them. To be woken up takes long, on a virtual machine most
 * of all: there the woken thread may begin on the processor of who woke it, and that one waits. Where there are more
 * threads than processors, it would look while others have to wait for its processor. */
#define LOOKS       20000
#define LOOKS_ALONE 10000
#define READ_LEAST  32768 /* bytes that are read of a file at once, at least */
#define ALONE       2     /* batches that are taken before other threads are started, if their number was not given */

_Static_assert(TURNS_FRAMES <= UINT16_MAX, "lists of parts have numbers of packets");
_Static_assert(TURNS_MOST <= CHUNKS_THREADS, "chunks know who reads");

struct turns;

/* What was done with a batch. */
enum progress {
    FREE, /* there is none: the next one may be read */
    READ, /* and dissected; it goes through the stages */
    TAKEN /* and its text was made */
};

/* What all batches go through in their order, one at a time: early(), take(); or parts_of(), and each part. */
struct stage {
    _Alignas(64) _Atomic uint64_t next; /* the batch that goes through it next */
    const struct thread *last;          /* who brought the latest batch through it */
};
#define STAGES (TURNS_PARTS + 1)

/* The packets of a batch that are of a part, by their numbers. */
struct part_list {
    uint32_t n;
    uint16_t *of;
};

/* A thread, its batch, and what is shown of it. */
struct thread {
    _Alignas(64) struct turns *t;
    pthread_t id;
    struct batch b;
    enum progress at;
    unsigned stage;          /* the one that the batch goes through next */
    uint64_t number;         /* of the batch */
    bool has_next, fetched;  /* it has a turn to read, `next`; the bytes that it claimed for that were read */
    uint64_t next;           /* number of the batch that it reads then */
    struct part_list *parts; /* with parts: of each */
    struct turn *turns;      /* of each packet; NULL: nothing is shown */
    struct buf said;         /* of those whose text was appended when they were taken */
    struct buf text;         /* of all */
    void *scratch;           /* of show() */
};

struct turns {
    struct turns_opts o;
    struct thread *threads; /* o.threads; the first one is the caller's */
    void *batches;          /* memory of all batches, each after the other */
    unsigned n_started, n_stages;
    unsigned looks; /* of who waits, before it sleeps */
    bool sorts;     /* the first stage is early() or parts_of(), which settles the packets */
    /* Of who settles, or takes: it writes them for each packet, so no line of the cache has anything of others, too. */
    _Alignas(64) struct longest longest; /* of the packets settled */
    _Alignas(64) bool enough;
    /* Of who reads. */
    _Alignas(64) atomic_bool reading; /* somebody does */
    atomic_bool ended;                /* there are no more frames */
    uint64_t n_given;                 /* batches whose turns to read were given away */
    bool claims;                      /* threads claim their next turns, to read the bytes meanwhile */
    _Atomic uint64_t n_read;          /* the batch that is read next */
    struct stage stages[STAGES];
    _Alignas(64) _Atomic uint64_t written; /* the batch whose text is written next */
    atomic_bool broken;                    /* write() wants no more, or a part */
    _Alignas(64) atomic_uint sleeping;     /* threads that wait for `change` */
    pthread_mutex_t lock;                  /* of what follows */
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

static unsigned number_of(const struct thread *me)
{
    return (unsigned)(me - me->t->threads);
}

/* Give the thread the next turn to read that nobody has; `now`: the number of the batch whose turn it is. */
static void give_next(struct thread *me, uint64_t now)
{
    struct turns *t = me->t;

    me->has_next = true;
    me->fetched = !t->claims;
    me->next = t->n_given++;
    if (t->claims)
        cap_merge_claim(t->o.in, (unsigned)(me->next - now));
}

/* The thread's turn to read. */
static void read_batch(struct thread *me)
{
    struct turns *t = me->t;

    me->number = me->next;
    me->has_next = false;
    me->at = READ;
    me->stage = 0;
    if (!fill(me))
        atomic_store(&t->ended, true);
    else if (t->claims)
        give_next(me, me->number + 1);
    atomic_store(&t->n_read, me->number + 1);
}

/* Whether it is the thread's turn to read, or it has none and may get one; nobody else reads. */
static bool can_read(const struct thread *me)
{
    const struct turns *t = me->t;
    bool is_next = !me->has_next || atomic_load(&t->n_read) == me->next;

    return me->at == FREE && is_next && !atomic_load(&t->ended) && !atomic_load(&t->reading);
}

/* Read and dissect a batch, if it is the thread's turn and nobody else reads; or get a turn. */
static bool read_one(struct thread *me)
{
    struct turns *t = me->t;

    if (!can_read(me) || atomic_exchange(&t->reading, true))
        return false;
    if (!atomic_load(&t->ended)) {
        if (t->o.chunks)
            chunks_begin(t->o.chunks, atomic_load(&t->n_read), number_of(me));
        if (!me->has_next)
            give_next(me, atomic_load(&t->n_read));
        if (me->next == atomic_load(&t->n_read))
            read_batch(me);
    }
    atomic_store(&t->reading, false);
    tell(t);
    if (me->at == READ)
        batch_dissect(&me->b, &t->o.decode);
    return true;
}

static bool can_fetch(const struct thread *me)
{
    return me->at == FREE && me->has_next && !me->fetched && !atomic_load(&me->t->ended);
}

/* Read the bytes for the thread's next turn, while others have theirs. */
static bool fetch_one(struct thread *me)
{
    if (!can_fetch(me))
        return false;
    cap_merge_fetch(me->t->o.in, number_of(me));
    me->fetched = true;
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

static void pass_packets(struct thread *me)
{
    struct turns *t = me->t;
    struct batch *b = &me->b;

    for (uint32_t i = 0; i < b->n; i++) {
        batch_fetch(b, i + FETCH);
        batch_settle(b, i, &t->longest, &t->o.decode);
        t->o.early(t->o.user, &b->pkts[i]);
    }
    make_known(t);
}

static void add_to(struct part_list *l, uint32_t i)
{
    l->of[l->n++] = (uint16_t)i;
}

/* Which packets of the batch are whose. */
static void sort_packets(struct thread *me)
{
    struct turns *t = me->t;
    struct batch *b = &me->b;

    const uint64_t all = UINT64_MAX >> (TURNS_PARTS - t->o.parts);

    for (unsigned k = 0; k < t->o.parts; k++)
        me->parts[k].n = 0;
    t->enough |= atomic_load(&t->broken);
    for (uint32_t i = 0; i < b->n && !t->enough; i++) {
        uint64_t parts;
        batch_fetch(b, i + FETCH);
        batch_settle(b, i, &t->longest, &t->o.decode);
        parts = t->o.parts_of(t->o.user, &b->pkts[i]) & all;
        t->enough = parts == TURNS_ENOUGH;
        for (; parts; parts &= parts - 1)
            add_to(&me->parts[__builtin_ctzll(parts)], i);
    }
    make_known(t);
    if (t->enough)
        atomic_store(&t->ended, true);
}

static void take_part(struct thread *me, unsigned part)
{
    struct turns *t = me->t;
    const struct batch *b = &me->b;
    const struct part_list *l = &me->parts[part];

    for (uint32_t i = 0; i < l->n; i++) {
        if (i + FETCH < l->n)
            batch_fetch(b, l->of[i + FETCH]);
        for (uint32_t k = i ? i + AHEAD - 1 : 0; t->o.ahead_part && k < l->n && k < i + AHEAD; k++)
            t->o.ahead_part(t->o.user, part, &b->frames[l->of[k]]);
        t->o.take_part(t->o.user, part, &b->pkts[l->of[i]]);
    }
    if (!t->o.part_taken(t->o.user, part)) {
        atomic_store(&t->broken, true);
        atomic_store(&t->ended, true);
    }
}

static void take_packets(struct thread *me)
{
    struct turns *t = me->t;
    struct batch *b = &me->b;
    struct turn none = {0};

    t->enough |= atomic_load(&t->broken);
    for (uint32_t i = 0; i < b->n && !t->enough; i++) {
        struct turn *turn = me->turns ? &me->turns[i] : &none;
        batch_fetch(b, i + FETCH);
        if (t->o.ahead)
            look_ahead(t, b, i);
        if (!t->sorts)
            batch_settle(b, i, &t->longest, &t->o.decode);
        t->enough = !t->o.take(t->o.user, &b->pkts[i], turn);
        turn->end = (uint32_t)me->said.len;
    }
    if (!t->sorts)
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

/* Whether it is the turn of the thread's batch: to go through its next stage, to be written. */
static bool can_go_through(const struct thread *me)
{
    return me->at == READ && atomic_load(&me->t->stages[me->stage].next) == me->number;
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

/* This thread goes on where another one has ended its turn: fetch what that one has written. */
static void fetch_stage(struct thread *me, unsigned stage)
{
    struct turns *t = me->t;
    const struct thread *last = t->stages[stage].last;

    t->stages[stage].last = me;
    if (!last || last == me)
        return;
    if (!stage && t->sorts) {
        if (t->o.early && t->o.fetch_early)
            t->o.fetch_early(t->o.user);
    } else if (t->o.parts) {
        if (t->o.fetch_part)
            t->o.fetch_part(t->o.user, stage - 1);
    } else if (!t->enough && t->o.fetch) {
        t->o.fetch(t->o.user);
    }
}

static void do_stage(struct thread *me, unsigned stage)
{
    const struct turns *t = me->t;

    fetch_stage(me, stage);
    if (!stage && t->sorts)
        (t->o.parts ? sort_packets : pass_packets)(me);
    else if (t->o.parts)
        take_part(me, stage - 1);
    else
        take_packets(me);
}

/* Bring the batch through its next stage, if it is its turn; show its packets behind the last one. */
static bool go_through(struct thread *me)
{
    struct turns *t = me->t;
    unsigned stage = me->stage;
    bool last = stage + 1 == t->n_stages;

    if (!can_go_through(me))
        return false;
    do_stage(me, stage);
    me->stage++;
    if (last && me->turns)
        me->at = TAKEN;
    else if (last)
        give_back(me);
    atomic_store(&t->stages[stage].next, me->number + 1);
    tell(t);
    if (last && me->turns)
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
    return can_go_through(me) || can_write(me) || can_fetch(me) || can_read(me) || is_over(me);
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

    for (unsigned i = 0; i < t->looks; i++) {
        if (can_go_on(me))
            return;
        if (i < LOOKS_ALONE)
            look_away();
        else
            sched_yield();
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
        if (!write_one(me) && !go_through(me) && !fetch_one(me) && !read_one(me))
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

/* Lists that have room for a batch each. */
static bool lists_new(struct thread *one, const struct turns_opts *o)
{
    one->parts = calloc(o->parts, sizeof *one->parts);
    for (unsigned i = 0; one->parts && i < o->parts; i++)
        if (!(one->parts[i].of = calloc(o->frames, sizeof *one->parts[i].of)))
            return false;
    return one->parts != NULL;
}

static bool thread_new(struct thread *one, struct turns *t, void *memory)
{
    uint32_t frames = t->o.frames;

    one->t = t;
    if (t->o.parts && !lists_new(one, &t->o))
        return false;
    one->scratch = calloc(1, t->o.scratch_size + 1);
    one->turns = t->o.show ? calloc(frames, sizeof *one->turns) : NULL;
    return batch_begin(&one->b, memory, frames, frames << 10) && one->scratch && (one->turns || !t->o.show);
}

static void thread_free(struct thread *one)
{
    for (unsigned i = 0; one->parts && i < one->t->o.parts; i++)
        free(one->parts[i].of);
    free(one->parts);
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

    while (!at_once && atomic_load(&t->stages[t->n_stages - 1].next) < ALONE && !is_over(me))
        if (!write_one(me) && !go_through(me) && !fetch_one(me))
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
    t->o.threads = min_u32(cores_threads(o->threads, o->show || o->parts ? TURNS_MOST : TURNS_THREADS), TURNS_MOST);
    t->claims = o->in && o->chunks && !o->show && t->o.threads > 2 && cap_merge_claims(o->in);
    t->sorts = o->early || o->parts;
    t->n_stages = t->sorts + max_u32(o->parts, 1);
    t->looks = t->o.threads > cores_processors() ? 0 : LOOKS;
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
