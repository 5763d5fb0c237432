/* layer 1 (io): memory for the bytes of capture files that stays until nobody uses it. */
#include "src/cap/chunks.h"

#include "apart.h"

#include <stdatomic.h>
#include <stdlib.h>

/* Chunks of one size are kept for the next bytes: what was used last is in the caches of the processor whose thread
 * used it. So each has OWN_MAX chunks before it gets those of others. */
#define KEPT_MAX 64
#define OWN_MAX  4
/* Bytes of chunks that the window may hold: beyond that its frames are copied. */
#define HELD_MAX ((size_t)4 << 20)
/* Bytes of chunks that are got for a batch, at most, but for the last one. */
#define BATCH_MAX ((size_t)2 << 20)

struct chunk {
    struct chunk *next;
    size_t size;
    uint64_t since; /* frames that had been taken out of the window when it was got: those are elsewhere */
    uint64_t until; /* of `left`: the last batch that may have frames here */
    unsigned owner; /* the thread that reads here */
    _Alignas(64) uint8_t bytes[];
};

struct chunks {
    struct window *w;   /* NULL: frames go into batches as they are read */
    struct chunk *held; /* no longer read to, the window may have frames there; the latest one first */
    struct chunk *left; /* batches may have frames there */
    struct chunk *kept; /* unused, the one used last first */
    size_t held_bytes;
    unsigned n_kept;
    unsigned who;                  /* the thread that reads */
    unsigned n_of[CHUNKS_THREADS]; /* by thread: chunks that it owns */
    uint64_t batch;
    size_t got;  /* bytes of those got for the batch */
    size_t size; /* of those in `kept` */
    _Alignas(64) _Atomic uint64_t done;
};

static struct chunk *chunk_of(uint8_t *bytes)
{
    return (struct chunk *)(void *)(bytes - offsetof(struct chunk, bytes));
}

static void push(struct chunk **list, struct chunk *k)
{
    k->next = *list;
    *list = k;
}

/* Nobody uses it. */
static void keep(struct chunks *c, struct chunk *k)
{
    if (k->size != c->size || c->n_kept >= KEPT_MAX) {
        c->n_of[k->owner]--;
        free(k);
        return;
    }
    push(&c->kept, k);
    c->n_kept++;
}

/* Those that the window does not hold any more are left to the batches; no batch has any frame of those that were got
 * after the window gave the latest one away. */
static void leave(struct chunks *c)
{
    if (c->w && c->held_bytes > HELD_MAX)
        window_own(c->w);
    for (struct chunk **at = &c->held, *k; (k = *at);)
        if (c->w && window_holds(c->w, k->bytes, k->size)) {
            at = &k->next;
        } else {
            *at = k->next;
            c->held_bytes -= k->size;
            k->until = c->batch;
            if (c->w && k->since == window_taken(c->w))
                keep(c, k);
            else
                push(&c->left, k);
        }
}

/* Those whose batches are done are kept. */
static void collect(struct chunks *c)
{
    uint64_t done = atomic_load_explicit(&c->done, memory_order_acquire);

    for (struct chunk **at = &c->left, *k; (k = *at);)
        if (k->until >= done) {
            at = &k->next;
        } else {
            *at = k->next;
            keep(c, k);
        }
}

/* Of those kept: one of the thread's own, else, if `any`, the one used last. */
static struct chunk *take_kept(struct chunks *c, bool any)
{
    struct chunk **at = &c->kept, *k;

    while (*at && (*at)->owner != c->who)
        at = &(*at)->next;
    if (!*at && any)
        at = &c->kept;
    k = *at;
    if (k) {
        *at = k->next;
        c->n_kept--;
    }
    return k;
}

static struct chunk *chunk_new(size_t n)
{
    struct chunk *k = aligned_alloc(64, sizeof *k + (n + 63) / 64 * 64);

    if (k)
        k->size = n;
    return k;
}

static struct chunk *fresh(struct chunks *c, size_t n)
{
    struct chunk *k = NULL;

    if (!c->size)
        c->size = n;
    if (n <= c->size)
        k = take_kept(c, c->n_of[c->who] >= OWN_MAX);
    if (k) {
        c->n_of[k->owner]--;
    } else {
        k = chunk_new(n > c->size ? n : c->size);
        if (!k)
            return NULL;
    }
    k->owner = c->who;
    c->n_of[c->who]++;
    return k;
}

uint8_t *chunks_get(struct chunks *c, uint8_t *old, size_t n, size_t *size)
{
    struct chunk *k;

    leave(c);
    collect(c);
    k = fresh(c, n);
    if (!k)
        return NULL;
    chunks_put(c, old);
    c->got += k->size;
    k->since = c->w ? window_taken(c->w) : 0;
    *size = k->size;
    return k->bytes;
}

void chunks_use(struct chunks *c, uint8_t *old, uint8_t *bytes)
{
    struct chunk *k = chunk_of(bytes);

    chunks_put(c, old);
    c->got += k->size;
    k->since = c->w ? window_taken(c->w) : 0;
}

unsigned chunks_reader(const struct chunks *c)
{
    return c->who;
}

bool chunks_are_others(const struct chunks *c, uint8_t *bytes)
{
    return chunk_of(bytes)->owner != c->who;
}

void chunks_put(struct chunks *c, uint8_t *old)
{
    if (!old)
        return;
    push(&c->held, chunk_of(old));
    c->held_bytes += chunk_of(old)->size;
}

void chunks_begin(struct chunks *c, uint64_t batch, unsigned thread)
{
    if (c->w && c->who != thread)
        window_fetch(c->w);
    c->batch = batch;
    c->who = thread;
    c->got = 0;
}

bool chunks_are_many(const struct chunks *c)
{
    return c->got > BATCH_MAX;
}

void chunks_done(struct chunks *c, uint64_t batch)
{
    atomic_store_explicit(&c->done, batch, memory_order_release);
}

struct chunks *chunks_new(struct window *w)
{
    struct chunks *c = apart_new(1, sizeof *c);

    if (!c)
        return NULL;
    c->w = w;
    return c;
}

static void free_all(struct chunk *k)
{
    while (k) {
        struct chunk *next = k->next;
        free(k);
        k = next;
    }
}

void chunks_free(struct chunks *c)
{
    if (!c)
        return;
    free_all(c->held);
    free_all(c->left);
    free_all(c->kept);
    free(c);
}
