/* layer 3 (live): backend: a link within one process: two openers of a name exchange frames. */
#include "gen/live/backend.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define QUEUE      256
#define MEMORY_MTU 9000

/* Frames in transit in one direction. */
struct queue {
    unsigned head, n; /* n from head are in transit */
    uint32_t len[QUEUE];
    uint8_t frame[QUEUE][BACKEND_FRAME_MAX];
};

/* A link; its two ends are opened one after the other. */
struct memory_link {
    struct memory_link *next;
    char name[32];
    struct memory_backend *end[2];
    struct queue to[2]; /* towards end 0, towards end 1 */
};

struct memory_backend {
    struct backend b;
    struct memory_link *link;
    unsigned side;
    bool taken; /* the frame at the head of the own queue was handed out by rx() */
};

static struct memory_link *links;

static struct memory_link *link_find(const char *name)
{
    struct memory_link *l;

    for (l = links; l && strcmp(l->name, name) != 0; l = l->next)
        ;
    if (l || !(l = calloc(1, sizeof *l)))
        return l;
    snprintf(l->name, sizeof l->name, "%s", name);
    l->next = links;
    links = l;
    return l;
}

static void link_free(struct memory_link *l)
{
    struct memory_link **p = &links;

    while (*p != l)
        p = &(*p)->next;
    *p = l->next;
    free(l);
}

static int memory_open(struct backend **out, const char *args, const char *iface, struct backend_error *err)
{
    struct memory_backend *m;
    struct memory_link *l;

    (void)iface;
    if (strlen(args) >= sizeof l->name)
        return backend_fail(err, -EINVAL, "backend memory: a name has at most %zu bytes", sizeof l->name - 1);
    l = link_find(args);
    if (!l)
        return backend_fail(err, -ENOMEM, "out of memory");
    if (l->end[0] && l->end[1])
        return backend_fail(err, -EBUSY, "backend memory: both ends of '%s' are in use", args);
    m = calloc(1, sizeof *m);
    if (!m) {
        if (!l->end[0] && !l->end[1])
            link_free(l);
        return backend_fail(err, -ENOMEM, "out of memory");
    }
    m->b = (struct backend){.ops = &backend_memory, .fd = -1, .mtu = MEMORY_MTU};
    m->link = l;
    m->side = l->end[0] ? 1 : 0;
    l->end[m->side] = m;
    *out = &m->b;
    return 0;
}

static uint8_t *memory_room(struct backend *b)
{
    struct memory_backend *m = (struct memory_backend *)b;
    struct queue *q = &m->link->to[1 - m->side];

    return q->n < QUEUE ? q->frame[(q->head + q->n) % QUEUE] : NULL;
}

static void memory_push(struct backend *b, uint32_t len)
{
    struct memory_backend *m = (struct memory_backend *)b;
    struct queue *q = &m->link->to[1 - m->side];

    if (!m->link->end[1 - m->side]) {
        b->stats.unsent++;
        return;
    }
    q->len[(q->head + q->n++) % QUEUE] = len;
    b->stats.sent++;
}

static int memory_flush(struct backend *b)
{
    (void)b; /* the other end has it already */
    return 0;
}

static int memory_rx(struct backend *b, struct backend_frame *f)
{
    struct memory_backend *m = (struct memory_backend *)b;
    struct queue *q = &m->link->to[m->side];

    if (m->taken) {
        q->head = (q->head + 1) % QUEUE;
        q->n--;
        m->taken = false;
    }
    if (!q->n)
        return 0;
    m->taken = true;
    *f = (struct backend_frame){.data = q->frame[q->head], .len = q->len[q->head]};
    b->stats.received++;
    return 1;
}

static bool memory_alone(const struct backend *b)
{
    const struct memory_backend *m = (const struct memory_backend *)b;

    return !m->link->end[1 - m->side];
}

static void memory_close(struct backend *b)
{
    struct memory_backend *m = (struct memory_backend *)b;

    m->link->end[m->side] = NULL;
    m->link->to[m->side].n = 0;
    if (!m->link->end[1 - m->side])
        link_free(m->link);
    free(m);
}

const struct backend_ops backend_memory = {
    .name = "memory",
    .args = "[:NAME]",
    .summary = "a link within one process: the two that open the same name are connected",
    .open = memory_open,
    .alone = memory_alone,
    .room = memory_room,
    .push = memory_push,
    .flush = memory_flush,
    .rx = memory_rx,
    .close = memory_close,
};
