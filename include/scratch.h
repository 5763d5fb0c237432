/* layer 0 (base): text buffers of a thread, for functions that return text which they make. */
#ifndef RDMATRACE_SCRATCH_H
#define RDMATRACE_SCRATCH_H

#include "buf.h"

/* Whose text it is: it stays valid until the same thread asks for the same one again. */
enum scratch {
    SCRATCH_PROTOCOLS, /* frame.protocols */
    SCRATCH_INFO,      /* the Info column */
    SCRATCH_TERMINATE, /* the error of a Terminate message of iWARP */
    SCRATCHES,
};

/* The buffer, empty. */
struct buf *scratch_of(enum scratch which);
/* Release those of the calling thread, which ends. */
void scratch_free(void);

#endif
