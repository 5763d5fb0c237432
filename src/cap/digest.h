/* layer 1 (io): digests: what a scan keeps of a capture file. cap_open() reads them like the file itself: frames have
 * their number, time and length there, and bytes that were left out are zeros.
 *
 *     magic | block | block | ... | 0 (4) | end: the shard, its interfaces, how its reading ended | length of it (8) |
 *     magic of the end
 *
 *     block: bytes that follow (4) | frames (4) | section | section | ...
 *     section: owner (4) | frames (4) | bytes (4) | record | record | ...
 *     record: numbers of variable length: frames since the one before of this section (its number), ns since it
 *     (zigzag), slot, bytes of its string; then what of the string differs from the one that the slot had before
 *
 * A string is what struct frame has of the frame (META bytes), and the bytes that were kept. Integers are
 * little-endian. The frames of a block follow each other in the file; its sections, in the order of owners, can be
 * read without each other: whoever follows some owners reads theirs, and those of DIGEST_CONTROL. Memory of a writer or
 * reader: DIGEST_STRINGS plus a frame, and DIGEST_FRAMES records; a reader also has DIGEST_RING frames of the longest
 * captured length. */
#ifndef RDMATRACE_CAP_DIGEST_H
#define RDMATRACE_CAP_DIGEST_H

#include "src/cap/cap.h"
#include "src/cap/reorder.h"

struct stat;

#define DIGEST_OWNERS  256           /* packets of an owner are in a section of a block ... */
#define DIGEST_CONTROL DIGEST_OWNERS /* ... and what concerns all owners is in another one */
/* In file number n of those that are read together an owner has number (owner + n * DIGEST_STEP) % DIGEST_OWNERS. */
#define DIGEST_STEP    159
#define DIGEST_FRAMES  4096                  /* of a block, at most */
#define DIGEST_STRINGS (UINT32_C(512) << 10) /* a block is full once its strings have so many bytes */
#define DIGEST_SLOTS   64                    /* of a section: strings that later ones are compared with */
/* Frames of a reader that are valid at a time: those of a window, the one taken out of it, and the next one. The window
 * copies those that are held longer, as later ones overtake them. */
#define DIGEST_RING (WINDOW_FRAMES + 2)

/* A set of numbers: pairs of addresses by hash. Zero-initialise; release with free(of). */
#define DIGEST_PAIRS 65536 /* numbers of a sorted set, at most */
struct digest_pairs {
    uint64_t *of; /* room for twice DIGEST_PAIRS; in ascending order once sorted */
    size_t n;
    bool any; /* there were more than could be kept: any may be meant, and none is kept */
};
/* Add a number. On the average of many it takes the same time, however many there are. */
void digest_pairs_add(struct digest_pairs *s, uint64_t pair);
/* Sort, and keep each number once. */
void digest_pairs_sort(struct digest_pairs *s);
/* Whether `pair` is in a sorted set, and whether two sorted sets have one in common. */
bool digest_pairs_has(const struct digest_pairs *s, uint64_t pair);
bool digest_pairs_meet(const struct digest_pairs *a, const struct digest_pairs *b);

/* The end of a digest. Texts and arrays belong to it. */
struct digest_end {
    char *shard;                    /* path of the capture file, as it was given */
    uint64_t size, mtime;           /* of it: bytes; ns since the epoch, as a 64-bit number */
    struct cap_info info;           /* of the whole file; `ifaces` may be changed */
    struct cap_error error;         /* why it was not read to its end; err 0: it was. `file` is not set */
    uint32_t longest;               /* captured bytes of the longest frame */
    struct digest_pairs asked;      /* pairs whose payload an upper protocol may ask for */
    struct digest_pairs left_out;   /* pairs with packets whose payload was left out */
    uint64_t bytes_kept, bytes_all; /* captured bytes that are in the digest, and all of the shard */
    /* The frames follow each other in time, all have one, and DIGEST_CONTROL has all that tells of a whole tap. */
    bool may_share;
    int64_t *last; /* by interface: time of its latest frame; INT64_MIN: it has none. NULL: none has any */
};
/* Note the size and the time of the shard; whether they are still the same. */
void digest_stamp(struct digest_end *e, const struct stat *st);
bool digest_is_of(const struct digest_end *e, const struct stat *st);
/* Read the end of the digest `path`. 0, or a negative errno: -EINVAL if it is no digest. */
int digest_end_read(struct digest_end *e, const char *path);
void digest_end_free(struct digest_end *e);

/* Write a copy of a digest to `to`, for somebody who follows some of the owners (a bit each) of file number `file`: the
 * sections of others are empty, but for the blocks with the first `whole` frames, so whoever reads it must name these
 * owners, or finds it damaged. Memory: a block. 0, or a negative errno: -EINVAL if it is no digest. */
int digest_copy(const char *path, const char *to, const uint64_t *owners, uint16_t file, uint64_t whole);

/* What is kept of a frame. */
struct digest_part {
    uint32_t gap_at, gap; /* `gap` bytes from gap_at on are left out: they are zeros when they are read */
    /* the four bytes behind the gap, in place of those of the frame (icrc_stand_in()); NULL: those of the frame */
    const uint8_t *stand_in;
    bool icrc_good; /* the ICRC of the frame was verified: it is right */
    uint16_t owner; /* 0 to DIGEST_OWNERS - 1, or DIGEST_CONTROL */
    uint32_t like;  /* a number that frames with similar headers share */
};

struct digest_writer;
/* Create the file, and hold it (beside_hold()). NULL with errno set. */
struct digest_writer *digest_create(const char *path);
/* Add the next frame of the shard; frames have the numbers 1, 2, ... */
void digest_put(struct digest_writer *w, const struct frame *f, const struct digest_part *part);
/* Write the end, and close the file: 0, or the negative errno of the first failure. `e` NULL: the digest is given up.
 */
int digest_finish(struct digest_writer *w, struct digest_end *e);

#endif
