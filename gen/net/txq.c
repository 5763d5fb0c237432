/* layer 3 (net): frames that wait for a port. */
#include "gen/net/txq.h"

#include <stdlib.h>

bool outbox_put(struct outbox *o, uint32_t max, const uint8_t *data, uint32_t len, const char *note)
{
    struct outbox_frame *f = o->n < max ? malloc(sizeof *f + len) : NULL;

    if (!f)
        return false;
    *f = (struct outbox_frame){.note = *note ? strdup(note) : NULL, .len = len};
    memcpy(f->data, data, len);
    if (o->tail)
        o->tail->next = f;
    else
        o->head = f;
    o->tail = f;
    o->n++;
    return true;
}

void outbox_pop(struct outbox *o)
{
    struct outbox_frame *f = o->head;

    o->head = f->next;
    if (!o->head)
        o->tail = NULL;
    o->n--;
    free(f->note);
    free(f);
}

void outbox_clear(struct outbox *o)
{
    while (o->head)
        outbox_pop(o);
}
