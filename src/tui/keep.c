/* layer 3b (tui): packets kept: an index in memory, rows in a temporary file, bytes in the capture files. */
#include "src/tui/keep.h"

#include "beside.h"

#include "buf.h"
#include "src/tui/far.h"
#include "src/tui/groups.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PENDING     65536 /* bytes of rows not written yet, at most about that many */
#define TAPS_RECENT 256
#define ROW_MAX     1024       /* bytes of a row without texts and bytes, at most */
#define MESSAGE_MAX (1u << 18) /* bytes of a message of an upper protocol that are kept */
#define COMMENT_MAX 4096       /* bytes of a comment that are kept */
#define STREAM_KEYS 65536      /* of iWARP connections */
#define FILES_MAX   64         /* capture files that are kept open; the bytes of others are kept */

/* Rows that are forgotten together: all of them without a ring, else half of its packets. */
struct part {
    uint64_t first;   /* number of its first packet */
    struct far index; /* of each packet: offset of the row << 8 | kind, uint64_t */
    /* by what may be drawn together: numbers of packets, from `first` on */
    struct groups groups;
    FILE *file;
    uint64_t written;   /* bytes in it */
    struct buf pending; /* bytes behind those */
};

struct keep {
    const char *const *files;
    size_t n_files;
    int fds[FILES_MAX]; /* of the capture files; -1: not open */
    uint32_t flows;
    uint64_t ring, memory; /* packets; bytes of an index in memory */
    struct part parts[2];  /* the older one is parts[0], which is empty without a ring */
    struct frame *taps;    /* what all frames of an interface have in common */
    uint32_t n_taps;
    uint32_t recent[TAPS_RECENT]; /* in `taps`: found last, by interface */
    uint8_t *data;                /* of the latest keep_get() */
    char *comment;                /* likewise, COMMENT_MAX bytes */
    struct buf ulp, message;      /* likewise: what pkt_note.ulp and kept.message point to */
    struct buf units;             /* and ladder_seen.units */
};

/* --- Rows ------------------------------------------------------------------------------------- */

/* What is written goes to memory that keep_add() has reserved, ROW_MAX bytes; the value is its end. */
ALWAYS_INLINE char *put(char *q, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        *q++ = (char)(v | 0x80);
    *q++ = (char)v;
    return q;
}

/* A row is read from here; beyond its end there are zeros. */
struct reader {
    const uint8_t *p, *end;
};

static uint64_t take(struct reader *r)
{
    uint64_t v = 0;

    for (unsigned shift = 0; r->p < r->end && shift < 64; shift += 7) {
        uint8_t byte = *r->p++;
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            break;
    }
    return v;
}

/* The members of a note, by the bit that says whether they are there. */
#define NOTE_MEMBERS(MEMBER)                                                                                           \
    MEMBER(NOTE_RETRANS, retransmission, bool)                                                                         \
    MEMBER(NOTE_CONN, conn, uint32_t)                                                                                  \
    MEMBER(NOTE_SRC_QPN, src_qpn, uint32_t)                                                                            \
    MEMBER(NOTE_PMTU, pmtu, uint32_t)                                                                                  \
    MEMBER(NOTE_UPPER, upper, const char *)                                                                            \
    MEMBER(NOTE_MSG, msg, uint32_t)                                                                                    \
    MEMBER(NOTE_MSG, msg_packet, uint32_t)                                                                             \
    MEMBER(NOTE_MSG_PACKETS, msg_packets, uint32_t)                                                                    \
    MEMBER(NOTE_MSG_BYTES, msg_bytes, uint64_t)                                                                        \
    MEMBER(NOTE_REQUEST, request_frame, uint64_t)                                                                      \
    MEMBER(NOTE_ACKED, acked_first, uint64_t)                                                                          \
    MEMBER(NOTE_ACKED, acked_last, uint64_t)                                                                           \
    MEMBER(NOTE_ULP_HOW, ulp_how, const char *)                                                                        \
    MEMBER(NOTE_ULP, ulp_command, uint64_t)                                                                            \
    MEMBER(NOTE_ULP, ulp_command_in, uint64_t)                                                                         \
    MEMBER(NOTE_ULP, ulp_queue, uint32_t)                                                                              \
    MEMBER(NOTE_ULP_DATA, ulp_offset, uint64_t)                                                                        \
    MEMBER(NOTE_ULP_HOLE, ulp_missing, uint64_t)                                                                       \
    MEMBER(NOTE_ULP_DONE, ulp_latency, ns_t)

#define NUMBER_MAX             10 /* bytes of a number, at most; 5 if it has 32 bits */
#define ONE(bit, member, type) +1
_Static_assert(sizeof(ns_t) + NUMBER_MAX * (20 + (0 NOTE_MEMBERS(ONE))) + KEEP_LAYERS * (NUMBER_MAX + 2 * 5) <= ROW_MAX,
               "a row with all its notes and layers, and 20 other numbers");
#undef ONE

static char *note_put(char *q, const struct pkt_note *n)
{
#define PUT(bit, member, type)                                                                                         \
    if (n->have & (bit))                                                                                               \
        q = put(q, (uint64_t)n->member);
    q = put(q, n->have);
    NOTE_MEMBERS(PUT)
#undef PUT
    return q;
}

static void note_take(struct reader *r, struct pkt_note *n)
{
#define TAKE(bit, member, type)                                                                                        \
    if (n->have & (bit))                                                                                               \
        n->member = (type)take(r);
    *n = (struct pkt_note){.have = (uint32_t)take(r)};
    NOTE_MEMBERS(TAKE)
#undef TAKE
}

/* --- Layers of upper protocols ---------------------------------------------------------------- */

/* Bytes of the message that the layers from `from` on need. */
static uint32_t message_len(const struct pkt *p, unsigned from)
{
    uint32_t n = 0;

    for (unsigned i = from; i < p->n_layers; i++)
        if (p->layers[i].off & LAYER_MESSAGE)
            n = max_u32(n, (p->layers[i].off & ~LAYER_MESSAGE) + p->layers[i].len);
    return n <= MESSAGE_MAX ? n : 0;
}

/* The layers from `from` on, but those in a message if that is not kept; then the lengths of two texts behind the row:
 * of the command, and of the message. */
static char *upper_put(char *q, const struct pkt *p, unsigned from, uint32_t ulp, uint32_t message)
{
    unsigned n = p->n_layers > from ? min_u32(p->n_layers - from, KEEP_LAYERS) : 0;

    for (unsigned i = 0; i < n; i++)
        if (p->layers[from + i].off & LAYER_MESSAGE && !message)
            n = i;
    q = put(q, n);
    for (unsigned i = from; i < from + n; i++) {
        q = put(q, (uint64_t)(uintptr_t)p->layers[i].hdr);
        q = put(q, p->layers[i].off);
        q = put(q, p->layers[i].len);
    }
    q = put(q, ulp);
    return put(q, message);
}

static void layers_take(struct reader *r, struct kept *out)
{
    out->n_layers = min_u32((uint32_t)take(r), KEEP_LAYERS);
    for (unsigned i = 0; i < out->n_layers; i++) {
        out->layers[i].hdr = (const struct hdr *)(uintptr_t)take(r);
        out->layers[i].off = (uint32_t)take(r);
        out->layers[i].len = (uint32_t)take(r);
    }
}

/* --- The ladder ------------------------------------------------------------------------------- */

#define SEEN_DRAWN   1u
#define SEEN_REPEAT  2u
#define SEEN_MISSING 4u
#define SEEN_UNITS   8u
#define SEEN_BITS    4

static char *seen_put(char *q, const struct ladder_seen *s)
{
    uint64_t flow = (uint32_t)(s->flow + 1); /* FLOW_NONE becomes 0 */

    q = put(q, (s->drawn ? flow << SEEN_BITS | SEEN_DRAWN : 0) | (s->again ? SEEN_REPEAT : 0) |
                   (s->missing ? SEEN_MISSING : 0) | (s->units_len ? SEEN_UNITS : 0));
    if (s->missing)
        q = put(q, s->missing);
    return s->units_len ? put(q, s->units_len) : q;
}

static void seen_take(struct reader *r, struct ladder_seen *s)
{
    uint64_t v = take(r);

    *s = (struct ladder_seen){.flow = (uint32_t)(v >> SEEN_BITS) - 1,
                              .drawn = v & SEEN_DRAWN,
                              .again = v & SEEN_REPEAT,
                              .missing = v & SEEN_MISSING ? (uint32_t)take(r) : 0,
                              .units_len = v & SEEN_UNITS ? (uint32_t)take(r) : 0};
}

/* --- Interfaces ------------------------------------------------------------------------------- */

static bool same_tap(const struct frame *a, const struct frame *b)
{
    bool place = a->file == b->file && a->iface == b->iface && a->counts_for == b->counts_for;

    return place && a->linktype == b->linktype && a->fcs_len == b->fcs_len && a->iface_name == b->iface_name &&
           a->has_ts == b->has_ts && a->longer == b->longer;
}

/* The number of what `f` has in common with others; UINT32_MAX without memory. */
static uint32_t tap_of(struct keep *s, const struct frame *f)
{
    uint32_t *recent = &s->recent[(f->iface * 31u + f->file) % TAPS_RECENT];
    struct frame *grown;

    if (*recent < s->n_taps && same_tap(&s->taps[*recent], f))
        return *recent;
    for (uint32_t i = s->n_taps; i-- > 0;)
        if (same_tap(&s->taps[i], f))
            return *recent = i;
    grown = realloc(s->taps, (s->n_taps + 1) * sizeof *grown);
    if (!grown)
        return UINT32_MAX;
    s->taps = grown;
    s->taps[s->n_taps] = *f;
    s->taps[s->n_taps].comment = NULL;
    s->taps[s->n_taps].comment_len = 0;
    s->taps[s->n_taps].options = NULL;
    s->taps[s->n_taps].options_len = 0;
    return s->n_taps++;
}

/* --- Parts ------------------------------------------------------------------------------------ */

static void part_end(struct part *p)
{
    far_free(&p->index);
    groups_free(&p->groups);
    buf_free(&p->pending);
    if (p->file)
        fclose(p->file);
    *p = (struct part){.first = 0};
}

/* `memory`: bytes; a quarter is for the numbers by key. */
static bool part_begin(struct part *p, uint64_t first, uint32_t keys, uint64_t memory)
{
    *p = (struct part){.first = first, .file = beside_nameless()};
    far_init(&p->index, sizeof(uint64_t), memory - memory / 4);
    return groups_init(&p->groups, keys, memory / 4) && p->file;
}

#define NO_KEY UINT32_MAX

static bool part_write(struct part *p)
{
    size_t done = 0;

    while (done < p->pending.len) {
        ssize_t n = pwrite(fileno(p->file), p->pending.p + done, p->pending.len - done, (off_t)(p->written + done));
        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    p->written += done;
    p->pending.len = 0;
    return true;
}

/* Index the packet whose row was appended at `offset`; `key`: NO_KEY, or with which others it may be drawn. */
static bool part_index(struct part *p, uint64_t offset, enum kind kind, uint32_t key)
{
    uint64_t number = p->index.n;

    if (key != NO_KEY && number <= UINT32_MAX && !groups_add(&p->groups, key, (uint32_t)number))
        return false;
    return far_add(&p->index, &(uint64_t){offset << 8 | (uint64_t)kind});
}

/* As keep_near(). */
static size_t part_near(const struct part *p, uint32_t key, uint64_t at, uint32_t each, uint64_t *to)
{
    uint64_t from = at > p->first ? at - p->first : 0;
    size_t n = groups_near(&p->groups, key, from < UINT32_MAX ? (uint32_t)from : UINT32_MAX, each, each, to);

    for (size_t i = 0; i < n; i++)
        to[i] += p->first;
    return n;
}

static uint64_t part_entry(const struct part *p, uint64_t i)
{
    return *(const uint64_t *)far_at(&p->index, i - p->first);
}

/* --- All of it -------------------------------------------------------------------------------- */

static uint32_t keys_of(const struct keep *s)
{
    return 1 + s->flows + STREAM_KEYS;
}

uint32_t keep_key_of_flow(const struct keep *s, uint32_t flow)
{
    return flow < s->flows ? 1 + flow : 0;
}

uint32_t keep_key_of_stream(const struct keep *s, uint32_t conn)
{
    return 1 + s->flows + conn % STREAM_KEYS;
}

static uint32_t key_of(const struct keep *s, const struct ladder_seen *seen)
{
    if (seen->drawn)
        return keep_key_of_flow(s, seen->flow);
    return seen->units_len ? keep_key_of_stream(s, ladder_units_conn(seen->units, seen->units_len)) : NO_KEY;
}

struct keep *keep_new(const char *const *files, size_t n_files, uint32_t flows, uint64_t ring, uint64_t memory)
{
    struct keep *s = calloc(1, sizeof *s);

    if (!s)
        return NULL;
    s->files = files;
    s->n_files = n_files;
    s->flows = flows;
    s->ring = ring;
    s->memory = ring ? memory / 2 : memory; /* of a ring there are two indexes */
    for (unsigned i = 0; i < FILES_MAX; i++)
        s->fds[i] = -1;
    s->data = malloc(FRAME_MAX);
    s->comment = malloc(COMMENT_MAX);
    if (!s->data || !s->comment || !part_begin(&s->parts[1], 0, keys_of(s), s->memory)) {
        keep_free(s);
        return NULL;
    }
    return s;
}

void keep_free(struct keep *s)
{
    if (!s)
        return;
    part_end(&s->parts[0]);
    part_end(&s->parts[1]);
    for (unsigned i = 0; i < FILES_MAX; i++)
        if (s->fds[i] >= 0)
            close(s->fds[i]);
    free(s->taps);
    free(s->data);
    free(s->comment);
    buf_free(&s->ulp);
    buf_free(&s->message);
    buf_free(&s->units);
    free(s);
}

/* The ring's newer part is full: forget the older one. */
static bool turn(struct keep *s)
{
    uint64_t next = keep_end(s);

    if (!s->ring || s->parts[1].index.n < s->ring)
        return true;
    part_end(&s->parts[0]);
    s->parts[0] = s->parts[1];
    return part_begin(&s->parts[1], next, keys_of(s), s->memory);
}

bool keep_add(struct keep *s, const struct pkt *packet, unsigned decoded, enum kind kind, uint64_t at,
              const struct ladder_seen *seen)
{
    const struct frame *f = packet->frame;
    const struct pkt_note *note = &packet->note;
    uint32_t ulp = note->have & NOTE_ULP ? (uint32_t)strlen(note->ulp) : 0, message = message_len(packet, decoded);
    uint32_t tap = tap_of(s, f);
    bool keep = at == KEEP_BYTES || f->file >= FILES_MAX;
    struct part *p = &s->parts[1];
    struct buf *b = &p->pending;
    uint32_t comment = f->comment ? min_u32(f->comment_len, COMMENT_MAX) : 0;
    uint64_t offset;
    char *q;

    if (tap == UINT32_MAX || !turn(s) || !buf_need(b, ROW_MAX))
        return false;
    offset = p->written + b->len;
    q = (char *)memcpy(b->p + b->len, &f->ts, sizeof f->ts) + sizeof f->ts;
    q = put(q, tap);
    q = put(q, f->number);
    q = put(q, f->len);
    q = put(q, f->caplen);
    q = put(q, f->flags);
    q = put(q, f->drops);
    q = put(q, keep ? 0 : at + 1);
    q = put(q, comment);
    q = note_put(q, note);
    q = upper_put(q, packet, decoded, ulp, message);
    b->len = (size_t)(seen_put(q, seen) - b->p);
    buf_mem(b, f->comment, comment);
    buf_mem(b, note->ulp, ulp);
    buf_mem(b, packet->message, message);
    buf_mem(b, seen->units, seen->units_len);
    if (keep)
        buf_mem(b, f->data, f->caplen);
    return !b->err && (b->len < PENDING || part_write(p)) && part_index(p, offset, kind, key_of(s, seen));
}

uint64_t keep_first(const struct keep *s)
{
    return s->parts[0].index.n ? s->parts[0].first : s->parts[1].first;
}

uint64_t keep_end(const struct keep *s)
{
    return s->parts[1].first + s->parts[1].index.n;
}

static const struct part *part_of(const struct keep *s, uint64_t i)
{
    return &s->parts[i >= s->parts[1].first];
}

enum kind keep_kind(const struct keep *s, uint64_t i)
{
    return (enum kind)(part_entry(part_of(s, i), i) & 0xff);
}

/* The capture file of a frame; -1: it cannot be opened again. */
static int fd_of(struct keep *s, uint16_t file)
{
    if (file >= FILES_MAX || file >= s->n_files)
        return -1;
    if (s->fds[file] < 0)
        s->fds[file] = open(s->files[file], O_RDONLY | O_CLOEXEC);
    return s->fds[file];
}

/* Fill s->data with `n` bytes of a file; what is not there is zero. */
static bool read_at(struct keep *s, int fd, uint64_t at, size_t n)
{
    ssize_t got = fd < 0 ? -1 : pread(fd, s->data, n, (off_t)at);

    if (got < 0)
        return false;
    memset(s->data + got, 0, n - (size_t)got);
    return true;
}

/* Read `n` bytes of the rows at *offset into `to`, and move behind them. */
static bool text_get(const struct part *p, uint64_t *offset, uint32_t n, void *to)
{
    bool good = pread(fileno(p->file), to, n, (off_t)*offset) == (ssize_t)n;

    *offset += n;
    return good;
}

/* The same into a buffer, with a NUL behind them. */
static bool text_into(const struct part *p, uint64_t *offset, uint32_t n, struct buf *b)
{
    b->len = 0;
    if (!buf_need(b, n + 1) || !text_get(p, offset, n, b->p))
        return false;
    b->p[n] = '\0';
    b->len = n;
    return true;
}

/* Fill in the frame, the note and the layers from a row. False: its interface is not known. */
static bool row_take(const struct keep *s, struct reader *r, const uint8_t *row, struct kept *out, uint64_t *at)
{
    uint32_t tap = (uint32_t)take(r);

    if (tap >= s->n_taps)
        return false;
    out->frame = s->taps[tap];
    memcpy(&out->frame.ts, row, sizeof out->frame.ts);
    out->frame.number = take(r);
    out->frame.len = (uint32_t)take(r);
    out->frame.caplen = min_u32((uint32_t)take(r), FRAME_MAX);
    out->frame.flags = (uint32_t)take(r);
    out->frame.drops = take(r);
    *at = take(r);
    out->frame.comment_len = min_u32((uint32_t)take(r), COMMENT_MAX);
    note_take(r, &out->note);
    layers_take(r, out);
    return true;
}

/* Read the texts behind a row. */
static bool texts_get(struct keep *s, const struct part *p, uint64_t *offset, struct kept *out, uint32_t ulp,
                      uint32_t message)
{
    s->ulp.len = s->message.len = s->units.len = 0;
    if (out->frame.comment_len) {
        out->frame.comment = s->comment;
        if (!text_get(p, offset, out->frame.comment_len, s->comment))
            return false;
    }
    if ((ulp && !text_into(p, offset, ulp, &s->ulp)) || (message && !text_into(p, offset, message, &s->message)))
        return false;
    if (out->seen.units_len && !text_into(p, offset, out->seen.units_len, &s->units))
        return false;
    out->seen.units = buf_str(&s->units);
    out->note.ulp = buf_str(&s->ulp);
    out->message = (const uint8_t *)buf_str(&s->message);
    return true;
}

bool keep_get(struct keep *s, uint64_t i, struct kept *out)
{
    struct part *p = (struct part *)part_of(s, i);
    uint8_t row[ROW_MAX];
    struct reader r = {row + sizeof out->frame.ts, row};
    uint64_t entry, offset, at;
    uint32_t ulp, message;
    ssize_t got;

    if (i < keep_first(s) || i >= keep_end(s) || !part_write(p))
        return false;
    entry = part_entry(p, i);
    got = pread(fileno(p->file), row, sizeof row, (off_t)(entry >> 8));
    if (got < (ssize_t)sizeof out->frame.ts)
        return false;
    r.end = row + got;
    if (!row_take(s, &r, row, out, &at))
        return false;
    ulp = (uint32_t)take(&r);
    message = (uint32_t)take(&r);
    seen_take(&r, &out->seen);
    offset = (entry >> 8) + (uint64_t)(r.p - row);
    if (!texts_get(s, p, &offset, out, ulp, message))
        return false;
    out->frame.data = s->data;
    out->kind = (enum kind)(entry & 0xff);
    return at ? read_at(s, fd_of(s, out->frame.file), at - 1, out->frame.caplen)
              : read_at(s, fileno(p->file), offset, out->frame.caplen);
}

size_t keep_near(const struct keep *s, uint32_t key, uint64_t at, uint32_t each, uint64_t *to)
{
    size_t n = s->parts[0].index.n ? part_near(&s->parts[0], key, at, each, to) : 0, below = 0, from;

    n += part_near(&s->parts[1], key, at, each, to + n);
    while (below < n && to[below] < at)
        below++;
    from = below > each ? below - each : 0; /* both parts may have so many */
    n = (n - below > each ? below + each : n) - from;
    memmove(to, to + from, n * sizeof *to);
    return n;
}

/* The nearest packet of `file` at `i` or before. */
static uint64_t back_to(struct keep *s, uint16_t file, uint64_t i, struct kept *p)
{
    while (keep_get(s, i, p) && p->frame.file != file && i > keep_first(s))
        i--;
    return i;
}

#define NEAR 256u /* packets around, that may have changed places */

uint64_t keep_find(struct keep *s, uint16_t file, uint64_t number)
{
    uint64_t low = keep_first(s), high = keep_end(s);
    struct kept p;

    if (low == high)
        return UINT64_MAX;
    while (high - low > 1) {
        uint64_t half = low + (high - low) / 2, at = back_to(s, file, half, &p);
        if (at <= low && p.frame.file != file)
            low = half;
        else if (p.frame.number <= number)
            low = half;
        else
            high = half;
    }
    if (keep_get(s, low, &p) && p.frame.file == file && p.frame.number == number)
        return low;
    high = low;
    for (uint64_t i = high > NEAR ? high - NEAR : 0; i < high + NEAR; i++)
        if (i >= keep_first(s) && keep_get(s, i, &p) && p.frame.file == file && p.frame.number == number)
            return i;
    return low;
}
