/* layer 3 (cores): a ring of batches of frames, read, dissected and shown by several threads. */
#include "src/cores/cores.h"

#include "scratch.h"
#include "src/cores/batch.h"

#include <malloc.h>
#include <sched.h>
#include <stdlib.h>

/* How a packet is shown. */
enum shows { SHOWS_NOT, SHOWS_LATER, SHOWS_TEXT };

/* A batch of the ring. */
struct page {
    struct batch b;
    uint32_t tags[CORES_FRAMES];
    uint8_t shows[CORES_FRAMES]; /* enum shows */
    uint32_t ends[CORES_FRAMES]; /* of SHOWS_TEXT: where its text ends in `said` */
    struct buf said, text;       /* of SHOWS_TEXT; of all */
    void *scratch;               /* of show() */
    bool ready;                  /* read and dissected */
    bool shown;                  /* `text` is there */
};

struct cores {
    struct cores_opts o;
    /* Of the caller's thread. */
    _Alignas(64) struct longest longest; /* of the packets handed out */
    struct page *page;                   /* of which packets are handed out; NULL: none */
    uint32_t at;                         /* the next one of it */
    struct frame frame;                  /* with one thread: the frame at hand, its tag and its packet */
    uint32_t tag;
    struct pkt pkt;

    _Alignas(64) pthread_mutex_t lock; /* of all that follows, and of page.ready and page.shown */
    pthread_cond_t room;               /* the reader may go on */
    pthread_cond_t work;               /* there is something for a helper */
    pthread_cond_t done;               /* something was done: for the caller */
    struct page **ring;                /* n_ring; batch i is ring[i % n_ring] */
    uint32_t n_ring;
    /* the oldest batch, that is the next one to write; the next ones to show, to hand out, to dissect, and to read */
    uint64_t head, show, given, next, tail;
    bool ended;           /* there are no more frames */
    bool stop;            /* threads are to end */
    struct longest known; /* what the caller knew when it took the latest batch */
    pthread_t thread[CORES_MOST];
    unsigned n_threads; /* started; the first one is the reader */
    bool at_once;       /* start them with the first batch */
    bool started;
};

/* Processors that this process may use. */
static unsigned processors(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;

    return n < 1 ? 1 : min_u32((uint32_t)n, CORES_MAX);
}

bool cores_is_one(unsigned threads)
{
    return (threads ? threads : processors()) == 1;
}

unsigned cores_threads(unsigned asked, unsigned most)
{
    return asked ? asked : max_u32(2, min_u32(processors(), most));
}

bool cores_start(pthread_t *id, void *(*run)(void *user), void *user)
{
    pthread_attr_t a;
    bool done;

    mallopt(M_ARENA_MAX, CORES_ARENAS);
    pthread_attr_init(&a);
    pthread_attr_setstacksize(&a, CORES_STACK);
    done = pthread_create(id, &a, run, user) == 0;
    pthread_attr_destroy(&a);
    return done;
}

/* --- A batch ---------------------------------------------------------------------------------- */

/* Read frames into a batch. False if there are no more. */
static bool fill(struct cores *c, struct page *g)
{
    struct batch *b = &g->b;

    while (!batch_is_full(b)) {
        if (!c->o.read(c->o.reader, &b->frames[b->n], &g->tags[b->n]))
            return false;
        batch_add(b, false);
    }
    return true;
}

/* Make the text of a batch. */
static void show(struct cores *c, struct page *g)
{
    uint32_t at = 0;

    for (uint32_t i = 0; i < g->b.n; i++) {
        if (g->shows[i] == SHOWS_LATER)
            c->o.show(c->o.user, g->scratch, &g->text, &g->b.pkts[i], g->tags[i]);
        if (g->shows[i] == SHOWS_TEXT) {
            buf_mem(&g->text, g->said.p + at, g->ends[i] - at);
            at = g->ends[i];
        }
    }
    g->text.err |= g->said.err;
    g->said.len = 0;
}

/* --- The ring --------------------------------------------------------------------------------- */

static struct page *page_of(const struct cores *c, uint64_t i)
{
    return c->ring[i % c->n_ring];
}

static bool has_room(const struct cores *c)
{
    return !c->ended && c->tail - c->head < c->n_ring;
}

/* Read a batch. Called and left with the lock. */
static void read_one(struct cores *c)
{
    struct page *g = page_of(c, c->tail);
    bool more;

    batch_clear(&g->b, &c->known);
    pthread_mutex_unlock(&c->lock);
    more = fill(c, g);
    pthread_mutex_lock(&c->lock);
    c->ended = !more;
    c->tail++;
    pthread_cond_signal(&c->work);
    pthread_cond_signal(&c->done);
}

/* Dissect a batch. Called and left with the lock. */
static void dissect_one(struct cores *c)
{
    struct page *g = page_of(c, c->next++);

    pthread_mutex_unlock(&c->lock);
    batch_dissect(&g->b, &c->o.decode);
    pthread_mutex_lock(&c->lock);
    g->ready = true;
    pthread_cond_signal(&c->done);
}

/* Show a batch. Called and left with the lock. */
static void show_one(struct cores *c)
{
    struct page *g = page_of(c, c->show++);

    pthread_mutex_unlock(&c->lock);
    show(c, g);
    pthread_mutex_lock(&c->lock);
    g->shown = true;
    pthread_cond_signal(&c->done);
}

/* Show or dissect a batch, if there is one. Called and left with the lock. */
static bool help(struct cores *c)
{
    if (c->show < c->given)
        show_one(c);
    else if (c->next < c->tail)
        dissect_one(c);
    else
        return false;
    return true;
}

/* The thread that reads. It leaves a batch for each of the others. */
static void *reader(void *user)
{
    struct cores *c = user;

    pthread_mutex_lock(&c->lock);
    while (!c->stop)
        if (has_room(c) && c->tail - c->next < c->o.threads)
            read_one(c);
        else if (!help(c))
            pthread_cond_wait(&c->room, &c->lock);
    pthread_mutex_unlock(&c->lock);
    scratch_free();
    return NULL;
}

static void *helper(void *user)
{
    struct cores *c = user;

    pthread_mutex_lock(&c->lock);
    while (!c->stop)
        if (!help(c))
            pthread_cond_wait(&c->work, &c->lock);
    pthread_mutex_unlock(&c->lock);
    scratch_free();
    return NULL;
}

/* Start the other threads; with fewer if the system refuses. */
static void start(struct cores *c)
{
    c->started = true;
    while (c->n_threads + 1 < c->o.threads && cores_start(&c->thread[c->n_threads], c->n_threads ? helper : reader, c))
        c->n_threads++;
}

/* All packets of the batch were handed out. */
static void give_on(struct cores *c)
{
    c->page->shown = false;
    c->page = NULL;
    c->given++;
    c->known = c->longest;
    pthread_cond_signal(&c->work);
    pthread_cond_signal(&c->room);
}

/* Write the oldest batch, and give it back. The reader is not woken up for each: it may have to sleep again at once. */
static void write_one(struct cores *c)
{
    struct page *g = page_of(c, c->head);

    if (g->text.len || g->text.err) {
        pthread_mutex_unlock(&c->lock);
        c->o.write(c->o.user, &g->text);
        g->text.len = 0;
        pthread_mutex_lock(&c->lock);
    }
    g->ready = g->shown = false;
    c->head++;
    if (c->tail - c->head <= c->n_ring / 2)
        pthread_cond_signal(&c->room);
}

/* Whether there is a batch to hand out. */
static bool has_next(const struct cores *c)
{
    return c->given < c->tail && page_of(c, c->given)->ready;
}

/* Take the next batch; false at the end. */
static bool take(struct cores *c)
{
    pthread_mutex_lock(&c->lock);
    if (c->page)
        give_on(c);
    if (!c->started && (c->at_once || c->tail > c->n_ring))
        start(c);
    for (;;) {
        if (c->head < c->given && page_of(c, c->head)->shown)
            write_one(c);
        else if (has_next(c) || (c->ended && c->head == c->tail))
            break;
        else if (help(c))
            continue;
        else if (!c->n_threads && has_room(c))
            read_one(c);
        else
            pthread_cond_wait(&c->done, &c->lock);
    }
    c->page = has_next(c) ? page_of(c, c->given) : NULL;
    pthread_mutex_unlock(&c->lock);
    c->at = 0;
    return c->page != NULL;
}

/* --- Packets ---------------------------------------------------------------------------------- */

struct pkt *cores_dissect(struct cores *c, const struct frame *f)
{
    c->frame = *f;
    longest_apply(&c->longest, &c->frame);
    pkt_decode(&c->pkt, &c->frame, &c->o.decode);
    longest_note(&c->longest, &c->pkt);
    return &c->pkt;
}

uint32_t cores_tag(const struct cores *c)
{
    return c->o.threads == 1 ? c->tag : c->page->tags[c->at - 1];
}

void cores_show(struct cores *c, uint32_t tag)
{
    c->page->tags[c->at - 1] = tag;
    c->page->shows[c->at - 1] = SHOWS_LATER;
}

struct buf *cores_text(struct cores *c)
{
    c->page->shows[c->at - 1] = SHOWS_TEXT;
    return &c->page->said;
}

struct pkt *cores_next(struct cores *c)
{
    struct page *g = c->page;

    if (c->o.threads == 1)
        return c->o.read(c->o.reader, &c->frame, &c->tag) ? cores_dissect(c, &c->frame) : NULL;
    if (g && c->at)
        g->ends[c->at - 1] = (uint32_t)g->said.len;
    while (!c->page || c->at == c->page->b.n)
        if (!take(c))
            return NULL;
    g = c->page;
    batch_fetch(&g->b, c->at);
    batch_settle(&g->b, c->at, &c->longest, &c->o.decode);
    g->shows[c->at] = SHOWS_NOT;
    return &g->b.pkts[c->at++];
}

/* --- Memory ----------------------------------------------------------------------------------- */

static void page_free(struct page *g)
{
    if (!g)
        return;
    buf_free(&g->said);
    buf_free(&g->text);
    batch_end(&g->b);
    free(g->scratch);
    free(g);
}

/* NULL without memory. Pages that a batch does not need are not touched. */
static struct page *page_new(const struct cores_opts *o)
{
    struct page *g = calloc(1, sizeof *g);

    if (!g)
        return NULL;
    g->scratch = calloc(1, o->scratch_size + 1);
    if (batch_begin(&g->b, CORES_FRAMES, CORES_BYTES) && g->scratch)
        return g;
    page_free(g);
    return NULL;
}

static bool ring_new(struct cores *c)
{
    c->n_ring = c->o.threads + CORES_SPARE;
    c->ring = calloc(c->n_ring, sizeof(struct page *));
    for (uint32_t i = 0; c->ring && i < c->n_ring; i++)
        if (!(c->ring[i] = page_new(&c->o)))
            return false;
    return c->ring != NULL;
}

struct cores *cores_new(const struct cores_opts *o)
{
    struct cores *c = aligned_alloc(64, sizeof *c);

    if (!c)
        return NULL;
    memset(c, 0, sizeof *c);
    c->o = *o;
    c->at_once = o->threads;
    c->o.threads = min_u32(cores_threads(o->threads, CORES_MOST), CORES_MOST);
    c->longest = c->known = o->longest;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->room, NULL);
    pthread_cond_init(&c->work, NULL);
    pthread_cond_init(&c->done, NULL);
    if (c->o.threads == 1 || ring_new(c))
        return c;
    cores_free(c);
    return NULL;
}

void cores_free(struct cores *c)
{
    if (!c)
        return;
    pthread_mutex_lock(&c->lock);
    c->stop = true;
    pthread_cond_broadcast(&c->room);
    pthread_cond_broadcast(&c->work);
    pthread_mutex_unlock(&c->lock);
    while (c->n_threads)
        pthread_join(c->thread[--c->n_threads], NULL);
    for (uint32_t i = 0; c->ring && i < c->n_ring; i++)
        page_free(c->ring[i]);
    free(c->ring);
    pthread_cond_destroy(&c->done);
    pthread_cond_destroy(&c->work);
    pthread_cond_destroy(&c->room);
    pthread_mutex_destroy(&c->lock);
    free(c);
}
