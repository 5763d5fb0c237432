/* layer 3 (cores): frames that are read together, and the packets that one thread makes of them. */
#ifndef RDMATRACE_CORES_BATCH_H
#define RDMATRACE_CORES_BATCH_H

#include "dissect/pkt.h"
#include "src/taps/longest.h"

/* Bytes of the memory of a batch, for each of its frames. */
#define BATCH_FRAME (sizeof(struct frame) + sizeof(struct pkt))

struct batch {
    struct frame *frames;
    struct pkt *pkts;
    uint32_t most_frames, most_bytes;
    struct longest longest; /* what was known when the batch was read */
    uint8_t *copies;        /* of what does not stay where it is */
    uint32_t copied;        /* bytes of it */
    uint32_t bytes;         /* of the frames */
    uint32_t n;
};

/* The batch is full with so many frames, or once they have so many bytes. `memory`: zeroed bytes for so many frames,
 * until batch_end(). False without memory for anything else; batch_end() is allowed then, too. */
bool batch_begin(struct batch *b, void *memory, uint32_t frames, uint32_t bytes);
void batch_end(struct batch *b);
/* Forget the frames; `known`: the longest frames so far, as far as the reader knows. */
void batch_clear(struct batch *b, const struct longest *known);

static inline bool batch_is_full(const struct batch *b)
{
    return b->n == b->most_frames || b->bytes >= b->most_bytes;
}

/* Whether it may end where more of the file has to be read: it is full to a quarter. */
static inline bool batch_may_end(const struct batch *b)
{
    return b->n >= b->most_frames / 4 || b->bytes >= b->most_bytes / 4;
}

/* Add the frame that was written to frames[n]. `stays`: its data stay where they are until the batch is done. */
void batch_add(struct batch *b, bool stays);
void batch_dissect(struct batch *b, const struct decode_opts *o);
/* What is known of longer frames is what the packets before this one show, not what was known when it was read: `l` is
 * what they showed, and what this one shows afterwards. */
void batch_settle(struct batch *b, uint32_t i, struct longest *l, const struct decode_opts *o);
/* Packet `i`, if there is one, is used soon: fetch what most packets need of it, which this thread has written some
 * time ago. */
void batch_fetch(const struct batch *b, uint32_t i);

#endif
