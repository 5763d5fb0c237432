/* layer 3b (tui): the packets read so far, to be read again in any order.
 *
 * A packet takes 8 bytes of the index: its kind, and where its row begins in a temporary file without a name. The row
 * has the time, the lengths, what earlier packets tell of it with the layers of upper protocols, what the ladder needs,
 * and where its bytes are: in the capture file itself if that is a plain file, else behind the row. Of each flow it is
 * known which packets it has, in a byte or two each. A ring forgets the oldest packets. */
#ifndef RDMATRACE_TUI_KEEP_H
#define RDMATRACE_TUI_KEEP_H

#include "dissect/pkt.h"
#include "frame.h"
#include "src/ladder/ladder.h"

/* What a packet is, for its colour and for the next event. */
enum kind {
    KIND_OTHER, /* of no connection */
    KIND_REQUEST,
    KIND_RESPONSE,
    KIND_CM,
    /* from here on events */
    KIND_AGAIN, /* a retransmitted request */
    KIND_NAK,   /* of any kind, RNR NAKs too */
    KIND_GAP,   /* requests before it were not seen */
    KIND_CNP,
    KIND_BAD, /* a bad ICRC, or malformed */
};
static inline bool kind_is_event(enum kind k)
{
    return k >= KIND_AGAIN;
}

#define KEEP_BYTES UINT64_MAX /* keep_add(): the bytes cannot be read again, keep them */

#define KEEP_LAYERS 24 /* layers of upper protocols that are kept of a packet */

/* A packet read again; valid until the next call of keep_get(). */
struct kept {
    struct frame frame;
    struct pkt_note note;
    enum kind kind;
    /* what stands behind the layers of pkt_decode(), because of earlier packets; the offsets with LAYER_MESSAGE are in
     * `message` */
    struct layer layers[KEEP_LAYERS];
    unsigned n_layers;
    const uint8_t *message;
    struct ladder_seen seen;
};

struct keep;

/* `files`: paths of the capture files, by frame.file, which must outlive it; `flows`: their indexes are lower;
 * `ring`: keep at least so many of the latest packets and forget older ones, 0: keep all; `memory`: bytes for the
 * index, beyond which it goes on in a file. NULL without memory or temporary file. */
struct keep *keep_new(const char *const *files, size_t n_files, uint32_t flows, uint64_t ring, uint64_t memory);
void keep_free(struct keep *s);
/* Keep a packet; `at`: where its bytes begin in its file, or KEEP_BYTES; `decoded`: its layers that pkt_decode() makes,
 * further ones are kept. False without memory or room on the disk. */
bool keep_add(struct keep *s, const struct pkt *p, unsigned decoded, enum kind kind, uint64_t at,
              const struct ladder_seen *seen);
/* The packets kept have the numbers from keep_first() to before keep_end(); the first packet read is number 0. */
uint64_t keep_first(const struct keep *s);
uint64_t keep_end(const struct keep *s);
/* Kind of packet `i`, which is kept. */
enum kind keep_kind(const struct keep *s, uint64_t i);
/* Read packet `i` again. False if it is not kept, or cannot be read. */
bool keep_get(struct keep *s, uint64_t i, struct kept *out);
/* The packet that was frame `number` of `file`, or the one before it; frames of a file are nearly in the order of their
 * numbers. UINT64_MAX: none is kept. */
uint64_t keep_find(struct keep *s, uint16_t file, uint64_t number);

/* Which packets may be drawn together: those of a flow (FLOW_NONE: of none, such as CM messages); FPDUs of an iWARP
 * connection, by its number, maybe with those of others. */
uint32_t keep_key_of_flow(const struct keep *s, uint32_t flow);
uint32_t keep_key_of_stream(const struct keep *s, uint32_t conn);
/* Write the numbers of packets with this key that are nearest to `at` to `to`, ascending: at most `each` below it, and
 * `each` from it on. Returns how many; `to` has room for KEEP_ROOM(each). */
size_t keep_near(const struct keep *s, uint32_t key, uint64_t at, uint32_t each, uint64_t *to);
#define KEEP_ROOM(each) (4 * (size_t)(each) + 512)

#endif
