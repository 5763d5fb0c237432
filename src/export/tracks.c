/* layer 3b (export): the packets and tracks of a trace for Perfetto. */
#include "src/export/tracks.h"

#include "bits.h"
#include "dissect/link/macc.h"
#include "program.h"
#include "src/conn/conn.h"
#include "src/export/proto.h"

#include <errno.h>
#include <stdlib.h>

#define FLUSH_AT   65536
#define TRACKS_MAX (1u << 20) /* events of further ones are left out */
#define LANES_MAX  4096       /* of a track; slices that would need more are left out */
#define SEQUENCE   1          /* trusted_packet_sequence_id: all packets are from one writer */

/* Numbers of fields: Trace; TracePacket; TrackDescriptor and ProcessDescriptor; TrackEvent; DebugAnnotation. */
enum { TRACE_PACKET = 1 };
enum { PACKET_TIMESTAMP = 8, PACKET_SEQUENCE = 10, PACKET_EVENT = 11, PACKET_TRACK = 60 };
enum { TRACK_UUID = 1, TRACK_NAME = 2, TRACK_PROCESS = 3, TRACK_PARENT = 5, TRACK_COUNTER = 8 };
enum { PROCESS_PID = 1, PROCESS_NAME = 6 };
enum {
    EVENT_ANNOTATION = 4,
    EVENT_TYPE = 9,
    EVENT_TRACK = 11,
    EVENT_CATEGORY = 22,
    EVENT_NAME = 23,
    EVENT_VALUE = 30,
    EVENT_FLOW = 47
};
enum { NOTE_UINT = 3, NOTE_TEXT = 6, NOTE_NAME = 10 };
/* By kind: what follows the name of the direction in the name of a track, and whether it holds a counter. */
static const struct {
    const char *suffix;
    bool counter;
} kinds[] = {{"", false},
             {"", false},
             {" answers", false},
             {" events", false},
             {" lost time", false},
             {" payload bit/s", true},
             {" outstanding PSNs", true},
             {" paused", false},
             {"check", false}};

/* --- Packets of the trace --------------------------------------------------------------------- */

void tracks_flush(struct tracks *x)
{
    if (!x->error && x->out.len && !cli_flush(&x->out, x->fd))
        x->error = errno;
    x->error = x->error ? x->error : x->out.err || x->event.err ? ENOMEM : 0;
    x->out.len = 0;
}

bool tracks_are(const uint8_t *p, size_t n)
{
    static const uint8_t begin[] = {PACKET_SEQUENCE << 3, SEQUENCE}; /* of the first packet, a description */
    size_t at = 1;

    if (!n || p[0] != (TRACE_PACKET << 3 | 2)) /* its length follows */
        return false;
    while (at < n && p[at] & 0x80)
        at++;
    return at + sizeof begin < n && memcmp(p + at + 1, begin, sizeof begin) == 0;
}

/* Append the packet whose content, field `field`, is in x->event. */
static void put_packet(struct tracks *x, unsigned field, bool timed, ns_t at)
{
    struct buf packet = {0};

    if (timed)
        proto_number(&packet, PACKET_TIMESTAMP, (uint64_t)at);
    proto_number(&packet, PACKET_SEQUENCE, SEQUENCE);
    proto_message(&packet, field, &x->event);
    proto_message(&x->out, TRACE_PACKET, &packet);
    buf_free(&packet);
    if (x->out.len >= FLUSH_AT)
        tracks_flush(x);
}

void event_begin(struct tracks *x, enum event_type type, uint64_t track)
{
    x->event.len = 0;
    proto_number(&x->event, EVENT_TYPE, type);
    proto_number(&x->event, EVENT_TRACK, track);
}

void event_name(struct tracks *x, const char *category, const char *name)
{
    proto_text(&x->event, EVENT_CATEGORY, category);
    proto_text(&x->event, EVENT_NAME, name);
}

void event_number(struct tracks *x, const char *name, uint64_t v)
{
    x->part.len = 0;
    proto_text(&x->part, NOTE_NAME, name);
    proto_number(&x->part, NOTE_UINT, v);
    proto_message(&x->event, EVENT_ANNOTATION, &x->part);
}

void event_text(struct tracks *x, const char *name, const char *text)
{
    if (!text || !*text)
        return;
    x->part.len = 0;
    proto_text(&x->part, NOTE_NAME, name);
    proto_text(&x->part, NOTE_TEXT, text);
    proto_message(&x->event, EVENT_ANNOTATION, &x->part);
}

void event_put(struct tracks *x, ns_t at)
{
    put_packet(x, PACKET_EVENT, true, at);
}

void event_flow(struct tracks *x, uint64_t flow)
{
    proto_fixed64(&x->event, EVENT_FLOW, flow);
}

void event_value(struct tracks *x, struct track *t, ns_t at, uint64_t v)
{
    t->value = v;
    event_begin(x, COUNTER, t->uuid);
    proto_number(&x->event, EVENT_VALUE, v);
    event_put(x, at);
}

/* --- Tracks ----------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t hash, uint64_t v)
{
    hash = (hash ^ v) * HASH_MULTIPLIER;
    return hash ^ hash >> 29;
}

static uint64_t mix_address(uint64_t hash, const struct conn_addr *a)
{
    uint64_t words[CONN_ADDR_WORDS];

    conn_addr_words(a, words);
    return mix(mix(hash, words[0]), words[1]);
}

static uint64_t uuid_of(enum track_kind kind, const struct ends *e)
{
    uint64_t hash = mix_address(mix(mix(1, kind), e->tap), e->src);

    if (kind != OF_HOST)
        hash = mix(mix(mix_address(hash, e->dst), e->conn), e->dqpn);
    return hash | 1;
}

uint64_t flow_of_message(const struct ends *e, uint32_t psn)
{
    const struct ends anywhere = {0, e->conn, e->src, e->dst, e->dqpn};

    return mix(uuid_of(OF_REQUESTS, &anywhere), psn) | FLOW_OF_MESSAGE;
}

static struct track *place_of(struct track *tracks, uint32_t cap, uint64_t uuid)
{
    uint32_t i = (uint32_t)(uuid >> 20) & (cap - 1);

    while (tracks[i].uuid && tracks[i].uuid != uuid)
        i = (i + 1) & (cap - 1);
    return &tracks[i];
}

/* Room for one more track; false: there is none. */
static bool make_room(struct tracks *x)
{
    uint32_t cap = x->cap ? x->cap * 2 : 256;
    struct track *more;

    if (x->n < x->cap / 2)
        return true;
    if (x->n >= TRACKS_MAX || !(more = calloc(cap, sizeof *more)))
        return false;
    for (uint32_t i = 0; i < x->cap; i++)
        if (x->rows[i].uuid)
            *place_of(more, cap, x->rows[i].uuid) = x->rows[i];
    free(x->rows);
    x->rows = more;
    x->cap = cap;
    return true;
}

/* The track with this number, to be described if *fresh; NULL: there is no room. */
static struct track *track_at(struct tracks *x, enum track_kind kind, uint64_t uuid, bool *fresh)
{
    struct track *t;

    *fresh = false;
    if (!make_room(x))
        return NULL;
    t = place_of(x->rows, x->cap, uuid);
    *fresh = !t->uuid;
    x->n += *fresh;
    t->uuid = uuid;
    t->kind = (uint8_t)kind;
    return t;
}

static void describe(struct tracks *x, uint64_t uuid, uint64_t parent, const char *name, bool counter)
{
    x->event.len = x->part.len = 0;
    proto_number(&x->event, TRACK_UUID, uuid);
    if (parent)
        proto_number(&x->event, TRACK_PARENT, parent);
    proto_text(&x->event, TRACK_NAME, name);
    if (counter)
        proto_message(&x->event, TRACK_COUNTER, &x->part);
    put_packet(x, PACKET_TRACK, false, 0);
}

/* Where it was seen, if there are several taps. */
static void put_tap(struct tracks *x, const struct ends *e)
{
    if (e->tap || x->files[1]) {
        buf_puts(&x->text, " at ");
        conn_tap_put(&x->text, x->files, e->tap);
    }
}

/* The process of a host, as a tap sees it. */
static uint64_t host_of(struct tracks *x, const struct ends *e)
{
    bool fresh;
    struct track *t = track_at(x, OF_HOST, uuid_of(OF_HOST, e), &fresh);

    if (!t || !fresh)
        return t ? t->uuid : 0;
    x->text.len = x->event.len = x->part.len = 0;
    conn_addr_put(&x->text, e->src);
    put_tap(x, e);
    proto_number(&x->part, PROCESS_PID, ++x->pids);
    proto_text(&x->part, PROCESS_NAME, buf_str(&x->text));
    proto_number(&x->event, TRACK_UUID, t->uuid);
    proto_message(&x->event, TRACK_PROCESS, &x->part);
    put_packet(x, PACKET_TRACK, false, 0);
    return t->uuid;
}

static void put_track_name(struct tracks *x, enum track_kind kind, const struct ends *e)
{
    x->text.len = 0;
    if (kind == OF_PAUSES) {
        buf_puts(&x->text, "port ");
        buf_mac(&x->text, e->src->b + 10);
        put_tap(x, e);
        if (e->dqpn < PAUSE_CLASSES)
            buf_printf(&x->text, " priority %u", e->dqpn);
    } else if (kind != OF_CHECK) {
        buf_printf(&x->text, "conn %u > ", e->conn);
        conn_addr_put(&x->text, e->dst);
        buf_printf(&x->text, " QP 0x%x", e->dqpn);
    }
    buf_puts(&x->text, kinds[kind].suffix);
}

struct track *track_of(struct tracks *x, enum track_kind kind, const struct ends *e)
{
    bool fresh, hosted = kind != OF_CHECK && kind != OF_PAUSES;
    const struct ends far = {e->tap, e->conn, e->dst, e->src, e->dqpn};
    uint64_t host = hosted ? host_of(x, kind == OF_ANSWERS ? &far : e) : 0;
    struct track *t = track_at(x, kind, uuid_of(kind, e), &fresh);

    if (t && fresh) {
        put_track_name(x, kind, e);
        describe(x, t->uuid, host, buf_str(&x->text), kinds[kind].counter);
    }
    return t;
}

/* The track for a slice that begins at `start`: the first lane that is free; 0: there is no memory. */
uint64_t track_lane(struct tracks *x, enum track_kind kind, const struct ends *e, ns_t start, ns_t end)
{
    struct track *t = track_of(x, kind, e);
    unsigned i = 0;
    ns_t *more;

    while (t && i < t->n_lanes && t->lanes[i] > start)
        i++;
    if (i == LANES_MAX)
        return 0;
    if (t && i == t->n_lanes) {
        more = realloc(t->lanes, (i + 1) * sizeof *more);
        if (!more)
            return 0;
        t->lanes = more;
        t->n_lanes++;
        if (i) {
            put_track_name(x, kind, e);
            describe(x, mix(t->uuid, i), host_of(x, e), buf_str(&x->text), false);
            t = track_of(x, kind, e); /* the table may have grown */
        }
    }
    if (!t)
        return 0;
    t->lanes[i] = end;
    return i ? mix(t->uuid, i) : t->uuid;
}

void tracks_free(struct tracks *x)
{
    for (uint32_t i = 0; i < x->cap; i++)
        free(x->rows[i].lanes);
    free(x->rows);
    buf_free(&x->out);
    buf_free(&x->event);
    buf_free(&x->part);
    buf_free(&x->text);
}
