/* layer 2b (iwarp): the bytes that one end of a TCP connection sends, in their order.
 *
 *     segment -> (behind a gap: kept) -> bytes in order -> whoever reads them
 *
 * Bytes that were not captured, because a packet is missing or was cut, are filled with zeros, and marked: what is
 * around them can still be read. A gap is given up once the other end has acknowledged the bytes in it.
 *
 * Bounds: STREAM_BYTES in order and not yet read, STREAM_LATE_BYTES in at most STREAM_LATE segments behind a gap. */
#ifndef RDMATRACE_IWARP_STREAM_H
#define RDMATRACE_IWARP_STREAM_H

#include "src/iwarp/again.h"

#define STREAM_BYTES      (256u << 10)
#define STREAM_LATE       256
#define STREAM_LATE_BYTES (256u << 10)
#define STREAM_FILL       (64u << 10) /* bytes of a gap that are filled; a longer one loses the place in the stream */
#define STREAM_HOLES      16          /* stretches without bytes among those not yet read */
#define STREAM_ORIGINS    64          /* segments with unread bytes that are kept separately */

struct late;

/* Zero-initialise; release it with stream_free(). */
struct stream {
    bool begun;
    uint32_t next; /* sequence number behind the last byte in order */
    uint64_t at;   /* place in the stream of b[0]: bytes since its first one */
    uint8_t *b;    /* bytes not yet read */
    uint32_t len, cap;
    struct late *late; /* segments behind a gap, in their order */
    uint32_t n_late, late_bytes;
    uint32_t acked; /* with have_acked: the other end has everything before this sequence number */
    bool have_acked;
    uint32_t waited;                     /* segments since the other end acknowledged the first gap */
    uint32_t strange;                    /* segments in a row that are far from `next` */
    uint64_t segments, again, reordered; /* with payload; of them seen before; of them behind a gap at first */
    uint64_t lacking;                    /* bytes that were not captured */
    uint64_t broken; /* how often the place was lost: what follows is not where the bytes before ended */
    struct {
        uint64_t from, to; /* [from, to): places without bytes */
    } hole[STREAM_HOLES];
    unsigned n_holes;
    struct origin {
        uint64_t at; /* place of its first byte */
        uint64_t frame;
        ns_t ts;
    } origin[STREAM_ORIGINS]; /* ascending */
    unsigned n_origins;
};

/* A segment with payload. */
struct segment {
    uint32_t seq; /* of its first byte */
    uint32_t len; /* bytes on the wire */
    uint32_t cap; /* of them captured */
    const uint8_t *b;
    uint64_t frame;
    ns_t ts;
};

/* Whether the other end has acknowledged everything before `seq`. */
static inline bool stream_is_acked(const struct stream *s, uint32_t seq)
{
    return s->have_acked && seq_diff(s->acked, seq) >= 0;
}

void stream_free(struct stream *s);
/* The stream begins at sequence number `seq`: what was kept of an earlier one is forgotten. */
void stream_begin(struct stream *s, uint32_t seq);
/* What a segment is. STREAM_BROKEN: it could not be taken; the place is lost, and the stream begins again with it. */
enum stream_got { STREAM_NEW, STREAM_AGAIN, STREAM_BEHIND, STREAM_BROKEN };
/* Take a segment. After STREAM_NEW and STREAM_BROKEN there are new bytes in order: *from is the place of the first one
 * that came from this segment. */
enum stream_got stream_take(struct stream *s, const struct segment *g, uint64_t *from);
/* Sequence number of the first segment behind the gap; false: there is no gap. */
bool stream_behind(const struct stream *s, uint32_t *seq);
/* The other end has acknowledged everything before `ack`. */
void stream_ack(struct stream *s, uint32_t ack);
/* Whether the first gap will not be filled any more; `end`: there are no more packets. If so it is filled with zeros,
 * or if it is too long the place is lost (`broken` counts), and there are new bytes in order. */
bool stream_give_up(struct stream *s, bool end);
/* The first `n` bytes are read. */
void stream_read(struct stream *s, uint32_t n);
/* Whether bytes in [from, to), places in the stream, were not captured. */
bool stream_lacks(const struct stream *s, uint64_t from, uint64_t to);
/* How many of them are. */
uint64_t stream_lacking(const struct stream *s, uint64_t from, uint64_t to);
/* The segment that brought the byte at this place; NULL: not known. */
const struct origin *stream_origin(const struct stream *s, uint64_t at);

#endif
