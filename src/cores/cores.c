/* layer 3 (cores): threads are started; frames read and dissected by one thread. */
#include "src/cores/cores.h"

#include <malloc.h>
#include <sched.h>
#include <stdlib.h>

struct cores {
    struct cores_opts o;
    struct longest longest; /* of the packets handed out */
    struct frame frame;     /* the frame at hand, its tag and its packet */
    uint32_t tag;
    struct pkt pkt;
};

unsigned cores_processors(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;

    return n < 1 ? 1 : min_u32((uint32_t)n, CORES_MAX);
}

bool cores_is_one(unsigned threads)
{
    return (threads ? threads : cores_processors()) == 1;
}

unsigned cores_threads(unsigned asked, unsigned most)
{
    return asked ? asked : max_u32(2, min_u32(cores_processors(), most));
}

/* What a thread does once it has started, and the processors that it may use then. */
struct begun {
    void *(*run)(void *user);
    void *user;
    cpu_set_t all; /* none: not known */
};

static void *begin(void *user)
{
    struct begun b = *(struct begun *)user;

    free(user);
    if (CPU_COUNT(&b.all))
        sched_setaffinity(0, sizeof b.all, &b.all);
    return b.run(b.user);
}

/* A thread that begins on the processor of who starts it, as is usual on virtual machines, waits there until that one
 * has had its time: some milliseconds. So it begins on another one, if there is one, and may use all then. */
static void begin_elsewhere(pthread_attr_t *a, const cpu_set_t *all)
{
    cpu_set_t others = *all;
    int here = sched_getcpu();

    if (here < 0 || here >= CPU_SETSIZE)
        return;
    CPU_CLR(here, &others);
    if (CPU_COUNT(&others))
        pthread_attr_setaffinity_np(a, sizeof others, &others);
}

bool cores_start(pthread_t *id, void *(*run)(void *user), void *user)
{
    struct begun *b = malloc(sizeof *b);
    pthread_attr_t a;
    bool done;

    if (!b)
        return false;
    *b = (struct begun){.run = run, .user = user};
    mallopt(M_ARENA_MAX, CORES_ARENAS);
    pthread_attr_init(&a);
    pthread_attr_setstacksize(&a, CORES_STACK);
    if (sched_getaffinity(0, sizeof b->all, &b->all) < 0)
        CPU_ZERO(&b->all);
    begin_elsewhere(&a, &b->all);
    done = pthread_create(id, &a, begin, b) == 0;
    if (!done && pthread_attr_setaffinity_np(&a, 0, &b->all) == 0) /* again, without a choice of processors */
        done = pthread_create(id, &a, begin, b) == 0;
    pthread_attr_destroy(&a);
    if (!done)
        free(b);
    return done;
}

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
    return c->tag;
}

struct pkt *cores_next(struct cores *c)
{
    return c->o.read(c->o.reader, &c->frame, &c->tag) ? cores_dissect(c, &c->frame) : NULL;
}

struct cores *cores_new(const struct cores_opts *o)
{
    struct cores *c = calloc(1, sizeof *c);

    if (!c)
        return NULL;
    c->o = *o;
    c->longest = o->longest;
    return c;
}

void cores_free(struct cores *c)
{
    free(c);
}
