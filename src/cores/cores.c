/* layer 3 (cores): a ring of batches of frames, read, dissected and shown by several threads. */
#include "src/cores/cores.h"

#include "scratch.h"
#include "src/cap/source.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#define FETCH     4  /* packets from fetch() until one is handed out */
#define PKT_LINES 8  /* lines of struct pkt that are fetched: those before the upper protocols' */
#define AHEAD     64 /* packets from ahead() until one is handed out */

/* Bytes for the copies of a batch: it may be all but full when the longest record comes, with its options and a comment
 * among them. Pages that no frame needs are not touched. */
#define COPIES_MAX (CORES_BYTES + 2 * SOURCE_PEEK_MAX)

/* How a packet is shown. */
enum shows { SHOWS_NOT, SHOWS_LATER, SHOWS_TEXT };

struct batch {
    struct frame frames[CORES_FRAMES];
    struct pkt pkts[CORES_FRAMES];
    uint32_t tags[CORES_FRAMES];
    uint8_t shows[CORES_FRAMES]; /* enum shows */
    uint32_t ends[CORES_FRAMES]; /* of SHOWS_TEXT: where its text ends in `said` */
    struct longest longest;      /* what was known when the batch was read */
    uint8_t *copies;             /* what the frames point to */
    uint32_t used;               /* bytes of it */
    uint32_t n;
    struct buf said, text; /* of SHOWS_TEXT; of all */
    void *scratch;         /* of show() */
    bool ready;            /* read and dissected */
    bool shown;            /* `text` is there */
};

struct cores {
    struct cores_opts o;
    /* Of the caller's thread. */
    _Alignas(64) struct longest longest; /* of the packets handed out */
    struct batch *batch;                 /* of which packets are handed out; NULL: none */
    uint32_t at;                         /* the next one of it */
    struct frame frame;                  /* with one thread: the frame at hand, its tag and its packet */
    uint32_t tag;
    struct pkt pkt;

    _Alignas(64) pthread_mutex_t lock; /* of all that follows, and of batch.ready and batch.shown */
    pthread_cond_t room;               /* the reader may go on */
    pthread_cond_t work;               /* there is something for a helper */
    pthread_cond_t done;               /* something was done: for the caller */
    struct batch **ring;               /* n_ring; batch i is ring[i % n_ring] */
    uint32_t n_ring;
    /* the oldest batch, that is the next one to write; the next ones to show, to hand out, to dissect, and to read */
    uint64_t head, show, given, next, tail;
    bool ended;           /* there are no more frames */
    bool stop;            /* threads are to end */
    struct longest known; /* what the caller knew when it took the latest batch */
    pthread_t thread[CORES_MAX];
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

/* --- A batch ---------------------------------------------------------------------------------- */

static const void *copy(struct batch *b, const void *p, uint32_t n)
{
    void *to = b->copies + b->used;

    if (n)
        memcpy(to, p, n);
    b->used += n;
    return to;
}

/* Copy what the frame points to into the batch. Options that do not fit are those of no reader. */
static void keep(struct batch *b, struct frame *f)
{
    f->data = copy(b, f->data, f->caplen);
    if (!f->comment || f->comment_len > COPIES_MAX - b->used)
        f->comment_len = 0;
    f->comment = f->comment_len ? copy(b, f->comment, f->comment_len) : NULL;
    if (!f->options || f->options_len > COPIES_MAX - b->used)
        f->options_len = 0;
    f->options = f->options_len ? copy(b, f->options, f->options_len) : NULL;
}

/* Read frames into a batch. False if there are no more. */
static bool fill(struct cores *c, struct batch *b)
{
    b->n = b->used = 0;
    while (b->n < CORES_FRAMES && b->used < CORES_BYTES) {
        struct frame *f = &b->frames[b->n];
        if (!c->o.read(c->o.reader, f, &b->tags[b->n]))
            return false;
        keep(b, f);
        b->n++;
    }
    return true;
}

static void dissect(struct cores *c, struct batch *b)
{
    for (uint32_t i = 0; i < b->n; i++) {
        longest_apply(&b->longest, &b->frames[i]);
        pkt_decode(&b->pkts[i], &b->frames[i], &c->o.decode);
    }
}

/* Make the text of a batch. */
static void show(struct cores *c, struct batch *b)
{
    uint32_t at = 0;

    for (uint32_t i = 0; i < b->n; i++) {
        if (b->shows[i] == SHOWS_LATER)
            c->o.show(c->o.user, b->scratch, &b->text, &b->pkts[i], b->tags[i]);
        if (b->shows[i] == SHOWS_TEXT) {
            buf_mem(&b->text, b->said.p + at, b->ends[i] - at);
            at = b->ends[i];
        }
    }
    b->text.err |= b->said.err;
    b->said.len = 0;
}

/* --- The ring --------------------------------------------------------------------------------- */

static struct batch *batch_of(const struct cores *c, uint64_t i)
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
    struct batch *b = batch_of(c, c->tail);
    bool more;

    b->longest = c->known;
    pthread_mutex_unlock(&c->lock);
    more = fill(c, b);
    pthread_mutex_lock(&c->lock);
    c->ended = !more;
    c->tail++;
    pthread_cond_signal(&c->work);
    pthread_cond_signal(&c->done);
}

/* Dissect a batch. Called and left with the lock. */
static void dissect_one(struct cores *c)
{
    struct batch *b = batch_of(c, c->next++);

    pthread_mutex_unlock(&c->lock);
    dissect(c, b);
    pthread_mutex_lock(&c->lock);
    b->ready = true;
    pthread_cond_signal(&c->done);
}

/* Show a batch. Called and left with the lock. */
static void show_one(struct cores *c)
{
    struct batch *b = batch_of(c, c->show++);

    pthread_mutex_unlock(&c->lock);
    show(c, b);
    pthread_mutex_lock(&c->lock);
    b->shown = true;
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
    while (c->n_threads + 1 < c->o.threads &&
           pthread_create(&c->thread[c->n_threads], NULL, c->n_threads ? helper : reader, c) == 0)
        c->n_threads++;
}

/* All packets of the batch were handed out. */
static void give_on(struct cores *c)
{
    c->batch->shown = !c->o.show;
    c->show += !c->o.show;
    c->batch = NULL;
    c->given++;
    c->known = c->longest;
    if (c->o.show) {
        pthread_cond_signal(&c->work);
        pthread_cond_signal(&c->room);
    }
}

/* Write the oldest batch, and give it back. The reader is not woken up for each: it may have to sleep again at once. */
static void write_one(struct cores *c)
{
    struct batch *b = batch_of(c, c->head);

    if (c->o.write && b->text.len) {
        pthread_mutex_unlock(&c->lock);
        c->o.write(c->o.user, &b->text);
        b->text.len = 0;
        pthread_mutex_lock(&c->lock);
    }
    b->ready = b->shown = false;
    c->head++;
    if (c->tail - c->head <= c->n_ring / 2)
        pthread_cond_signal(&c->room);
}

/* Whether there is a batch to hand out. */
static bool has_next(const struct cores *c)
{
    return c->given < c->tail && batch_of(c, c->given)->ready;
}

/* Take the next batch; false at the end. */
static bool take(struct cores *c)
{
    pthread_mutex_lock(&c->lock);
    if (c->batch)
        give_on(c);
    if (!c->started && (c->at_once || c->tail > c->n_ring))
        start(c);
    for (;;) {
        if (c->head < c->given && batch_of(c, c->head)->shown)
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
    c->batch = has_next(c) ? batch_of(c, c->given) : NULL;
    pthread_mutex_unlock(&c->lock);
    c->at = 0;
    return c->batch != NULL;
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

/* What is known of longer frames is what the packets before this one show, not what was known when it was read. */
static void settle(struct cores *c, struct pkt *p, struct frame *f)
{
    bool longer = f->longer;

    longest_apply(&c->longest, f);
    if (UNLIKELY(f->longer != longer))
        pkt_decode(p, f, &c->o.decode);
    longest_note(&c->longest, p);
}

static void tell_ahead(const struct cores *c)
{
    const struct batch *b = c->batch;

    for (uint32_t i = c->at ? c->at + AHEAD - 1 : 0; i < b->n && i < c->at + AHEAD; i++)
        c->o.ahead(c->o.user, &b->frames[i]);
}

/* Another thread has written them: fetch what most packets need ahead. */
static inline void fetch(const struct batch *b, uint32_t i)
{
    const char *p, *f;

    if (UNLIKELY(i >= b->n))
        return;
    p = (const char *)&b->pkts[i];
    f = (const char *)&b->frames[i];
    for (unsigned line = 0; line < PKT_LINES; line++)
        __builtin_prefetch(p + line * 64);
    __builtin_prefetch(f);
    __builtin_prefetch(f + 64);
    __builtin_prefetch(b->frames[i].data);
}

uint32_t cores_tag(const struct cores *c)
{
    return c->o.threads == 1 ? c->tag : c->batch->tags[c->at - 1];
}

void cores_show(struct cores *c, uint32_t tag)
{
    c->batch->tags[c->at - 1] = tag;
    c->batch->shows[c->at - 1] = SHOWS_LATER;
}

struct buf *cores_text(struct cores *c)
{
    c->batch->shows[c->at - 1] = SHOWS_TEXT;
    return &c->batch->said;
}

struct pkt *cores_next(struct cores *c)
{
    struct batch *b = c->batch;

    if (c->o.threads == 1)
        return c->o.read(c->o.reader, &c->frame, &c->tag) ? cores_dissect(c, &c->frame) : NULL;
    if (b && c->at)
        b->ends[c->at - 1] = (uint32_t)b->said.len;
    while (!c->batch || c->at == c->batch->n)
        if (!take(c))
            return NULL;
    b = c->batch;
    fetch(b, c->at + FETCH);
    if (c->o.ahead)
        tell_ahead(c);
    settle(c, &b->pkts[c->at], &b->frames[c->at]);
    b->shows[c->at] = SHOWS_NOT;
    return &b->pkts[c->at++];
}

/* --- Memory ----------------------------------------------------------------------------------- */

static void batch_free(struct batch *b)
{
    if (!b)
        return;
    buf_free(&b->said);
    buf_free(&b->text);
    free(b->copies);
    free(b->scratch);
    free(b);
}

/* NULL without memory. Pages of what a batch does not need are not touched. */
static struct batch *batch_new(const struct cores_opts *o)
{
    struct batch *b = calloc(1, sizeof *b);

    if (!b)
        return NULL;
    b->copies = malloc(COPIES_MAX);
    b->scratch = calloc(1, o->scratch_size + 1);
    if (b->copies && b->scratch)
        return b;
    batch_free(b);
    return NULL;
}

static bool ring_new(struct cores *c)
{
    c->n_ring = c->o.threads + CORES_SPARE;
    c->ring = calloc(c->n_ring, sizeof(struct batch *));
    for (uint32_t i = 0; c->ring && i < c->n_ring; i++)
        if (!(c->ring[i] = batch_new(&c->o)))
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
    if (!o->threads)
        c->o.threads = max_u32(2, o->show ? processors() : min_u32(processors(), CORES_TAKE));
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
        batch_free(c->ring[i]);
    free(c->ring);
    pthread_cond_destroy(&c->done);
    pthread_cond_destroy(&c->work);
    pthread_cond_destroy(&c->room);
    pthread_mutex_destroy(&c->lock);
    free(c);
}
