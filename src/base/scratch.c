/* layer 0 (base): text buffers of a thread. */
#include "scratch.h"

static _Thread_local struct buf texts[SCRATCHES];

struct buf *scratch_of(enum scratch which)
{
    texts[which].len = 0;
    return &texts[which];
}

void scratch_free(void)
{
    for (unsigned i = 0; i < SCRATCHES; i++)
        buf_free(&texts[i]);
}
