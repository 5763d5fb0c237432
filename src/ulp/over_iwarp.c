/* layer 2b (ulp): upper protocols over iWARP: SENDs put together from FPDUs, WRITEs and READs tied to commands. */
#include "src/iwarp/iwarp.h"

#include "dissect/mad/cm.h"
#include "dissect/ulp/service.h"
#include "src/iwarp/again.h"
#include "src/ulp/streams/sending.h"
#include "src/ulp/ulp_impl.h"

#include <stdlib.h>

#define READS      64                           /* READ requests of an end whose responses are to come */
#define MARKED     8                            /* guesses per connection */
#define SPANS      32                           /* pieces of the stream of an end of which the command is known */
#define HELD       64                           /* FPDUs that are kept until the protocol is known, */
#define HELD_BYTES (128u << 10)                 /* and bytes of them */
#define PS_TCP     UINT64_C(0x0000000001060000) /* service ids of RDMA-CM for TCP ports */

/* A READ request. */
struct read_asked {
    uint32_t sink_stag, source_stag, size;
    uint64_t sink_to, source_to;
};

/* What one end sends. */
struct stream_side {
    struct sending send;
    struct again again; /* retransmitted segments */
    struct {
        struct seq_span at;
        struct command_ref command;
    } span[SPANS];    /* the latest ones */
    uint32_t n_spans; /* so far */
    struct read_asked read[READS];
    unsigned first_read, n_reads;
    struct ulp_looked last; /* of the latest SEND, while the protocol is not known */
};

/* An FPDU that is kept. */
struct held {
    struct held *next;
    struct iwarp_unit unit;
    uint8_t b[];
};

/* An iWARP connection. */
struct ulp_stream {
    const struct iwarp_conn *conn;
    struct ulp_conn *c;     /* NULL: it carries no known protocol */
    enum iwarp_side client; /* with `c` */
    unsigned tries;         /* messages that were looked at; above MARKED * 4 no more are */
    bool given_up;
    struct stream_trips trips;
    struct stream_side side[IWARP_SIDES];
    struct held *held; /* without `c`: from the first SEND on that looks like a protocol, newest first */
    uint32_t n_held, held_bytes;
    bool held_again; /* they are being taken again */
    struct ulp_stream *next;
};

/* --- Connections ------------------------------------------------------------------------------ */

/* By its ends, of which it may become known only later which one is the initiator; not by where it is in memory, as the
 * order in which connections end depends on it. */
static struct ulp_stream **bucket_of(struct ulp *u, const struct iwarp_conn *c)
{
    uint64_t sum = c->tap;

    for (unsigned i = 0; i < IWARP_SIDES; i++)
        sum += load_le64(c->addr[i]) + load_le64(c->addr[i] + 8) + c->port[i];
    return &u->streams[sum * HASH_MULTIPLIER >> 32 & (STREAM_BUCKETS - 1)];
}

static struct ulp_stream *stream_of(struct ulp *u, const struct iwarp_conn *c)
{
    struct ulp_stream **bucket = bucket_of(u, c), *s = *bucket;

    while (s && s->conn != c)
        s = s->next;
    if (s || !(s = room_new(u, sizeof *s)))
        return s;
    s->conn = c;
    s->next = *bucket;
    *bucket = s;
    return s;
}

static void held_free(struct ulp *u, struct held *h)
{
    for (struct held *next; h; h = next) {
        next = h->next;
        room_free(u, h, sizeof *h + h->unit.body.len);
    }
}

static void held_drop(struct ulp *u, struct ulp_stream *s)
{
    held_free(u, s->held);
    s->held = NULL;
    s->n_held = s->held_bytes = 0;
}

static void stream_free(struct ulp *u, struct ulp_stream *s, enum ulp_end why)
{
    if (s->c)
        ulp_conn_free(s->c, why);
    held_drop(u, s);
    for (unsigned i = 0; i < IWARP_SIDES; i++)
        room_free(u, s->side[i].send.bytes, s->side[i].send.cap);
    trips_give(u, s->trips.of);
    room_free(u, s, sizeof *s);
}

static void on_gone(void *user, const struct iwarp_conn *c)
{
    struct ulp *u = user;

    for (struct ulp_stream **at = bucket_of(u, c); *at; at = &(*at)->next)
        if ((*at)->conn == c) {
            struct ulp_stream *s = *at;
            *at = s->next;
            stream_free(u, s, ULP_LEFT);
            return;
        }
}

void ulp_streams_drop(struct ulp *u)
{
    for (unsigned i = 0; i < STREAM_BUCKETS; i++)
        while (u->streams[i]) {
            struct ulp_stream *s = u->streams[i];
            u->streams[i] = s->next;
            stream_free(u, s, ULP_OPEN);
        }
}

static void attach(struct ulp *u, struct ulp_stream *s, const struct ulp_proto *proto, enum ulp_how how,
                   enum iwarp_side client, const uint8_t *greeting, uint32_t n)
{
    if (!proto || s->c || !(s->c = ulp_conn_make(u, proto, how)))
        return;
    s->client = client;
    s->c->conn = s->conn->number;
    s->c->stream = client == IWARP_INITIATOR ? 1 : 2;
    s->c->iwarp = s->conn;
    s->c->sided = true;
    s->c->trips = &s->trips;
    if (proto->open)
        proto->open(s->c, greeting, n);
}

/* --ulp: the address and port of either end, or the port alone. */
static const struct ulp_proto *by_user(const struct ulp *u, const struct iwarp_conn *c)
{
    for (unsigned i = 0; u->opts.users && i < u->opts.users->n; i++)
        for (unsigned k = 0; k < IWARP_SIDES; k++) {
            struct conn_addr end = {0};
            memcpy(end.b, c->addr[k], 16);
            if (ulp_user_means(&u->opts.users->user[i], &end, c->port[k]))
                return u->opts.users->user[i].proto;
        }
    return NULL;
}

/* An MPA request: its private data, its port and the user say what the connection carries. */
static void take_request(struct ulp *u, struct ulp_stream *s, const struct iwarp_unit *w)
{
    const struct mpa_start *m = &s->conn->sent[IWARP_INITIATOR].start;
    uint32_t skip = MPA_START_LEN + (m->enhanced ? 4 : 0), n = w->body.len > skip ? w->body.len - skip : 0;
    const uint8_t *b = w->body.b + min_u32(skip, w->body.len);
    struct ulp_named named = ulp_of_req(PS_TCP | s->conn->port[IWARP_RESPONDER], b, n);
    const struct ulp_proto *user = by_user(u, s->conn);

    if (user)
        attach(u, s, user, ULP_BY_USER, IWARP_INITIATOR, b, n);
    else if (named.name)
        attach(u, s, ulp_named(named.name, strlen(named.name)), named.by_private ? ULP_BY_MPA : ULP_BY_PORT,
               IWARP_INITIATOR, b, n);
    s->given_up = named.name && !named.vague && !s->c;
}

static void detach(struct ulp_stream *s)
{
    ulp_conn_free(s->c, ULP_LEFT);
    s->c = NULL;
}

static bool is_send(unsigned opcode)
{
    return opcode >= RDMAP_SEND && opcode <= RDMAP_SEND_SE_INV;
}

/* What a message looks like to the protocol. */
static enum ulp_looks looks_of(const struct ulp_proto *proto, const struct ulp_message *m)
{
    if (m->cut && proto->looks_cut)
        return proto->looks_cut(m->body.b, m->body.len, m->body.len + m->body.more, true);
    return proto->looks ? proto->looks(m->body.b, m->body.len, !m->cut) : LOOKS_OTHER;
}

/* The protocol of which a message of `side` that looks like none is a response to what the other end sent last; NULL:
 * none. */
static const struct ulp_proto *by_response(const struct ulp_stream *s, enum iwarp_side side,
                                           const struct ulp_message *m)
{
    const struct stream_side *other = &s->side[iwarp_other(side)];
    const struct ulp_proto *proto = m->cut ? NULL : ulp_responds_to(other->last.proto, other->last.looks);
    const struct held *h = s->held;

    while (h && (h->unit.side == side || !is_send(h->unit.ddp.opcode) || h->unit.ddp.mo))
        h = h->next;
    if (!proto || !h || !h->unit.payload)
        return NULL;
    return proto->responds(m->body.b, m->body.len, &(struct ulp_body){h->unit.payload, h->unit.captured, 0, 0}) ? proto
                                                                                                                : NULL;
}

/* The client, if `side` sent a message that looks so: the initiator, if both ends send such messages. */
static enum iwarp_side client_of(enum iwarp_side side, enum ulp_looks looks)
{
    if (!ulp_looks_sided(looks))
        return IWARP_INITIATOR;
    return ulp_looks_side(looks) == ULP_SERVER ? iwarp_other(side) : side;
}

/* A SEND of a connection whose protocol is not known, or not sure: two in a row of one end, or of both ends, must
 * agree, unless one tells. */
static void guess(struct ulp *u, struct ulp_stream *s, enum iwarp_side side, const struct ulp_message *m)
{
    struct stream_side *d = &s->side[side];
    enum iwarp_side other = iwarp_other(side);
    enum ulp_looks looks = LOOKS_OTHER;
    const struct ulp_proto *user = by_user(u, s->conn);
    unsigned i = 0;
    bool told;

    if (s->given_up || s->held_again || s->tries++ > 4 * MARKED)
        return;
    for (; ulp_protos[i]; i++)
        if ((!user || user == ulp_protos[i]) && (looks = looks_of(ulp_protos[i], m)))
            break;
    told = looks != LOOKS_OTHER &&
           (user || ulp_looks_first(looks) || ulp_agrees(d->last, s->side[other].last, i + 1, looks));
    if (s->c && (told || ulp_doubted(s->c)))
        detach(s);
    if (told)
        attach(u, s, ulp_protos[i], user ? ULP_BY_USER : ULP_BY_BYTES, client_of(side, looks), NULL, 0);
    else if (looks == LOOKS_OTHER && !s->c && !user)
        attach(u, s, by_response(s, side, m), ULP_BY_BYTES, other, NULL, 0);
    d->last = (struct ulp_looked){looks == LOOKS_OTHER ? 0 : (uint8_t)(i + 1), (uint8_t)looks};
}

/* --- Messages --------------------------------------------------------------------------------- */

static enum ulp_side side_of(const struct ulp_stream *s, enum iwarp_side side)
{
    return side == s->client ? ULP_CLIENT : ULP_SERVER;
}

/* Whether a message agrees with what the setup of the connection said, or says nothing. */
static bool believe(struct ulp_stream *s, enum iwarp_side side, const struct ulp_message *m)
{
    return s->c->sure || m->cut || ulp_confirm(s->c, side_of(s, side), m->body.b, m->body.len, true);
}

/* Whether one is delivered that looks like none of the protocol. */
static bool is_taken(const struct ulp_stream *s, enum iwarp_side side)
{
    return !s->side[side].last.proto && ulp_trusted(s->c, side_of(s, side));
}

/* A whole message, or what there is of it. */
static struct command *deliver(struct ulp_stream *s, const struct iwarp_unit *w, struct ulp_message *m)
{
    struct ulp_conn *c = s->c;
    bool taken;

    m->side = side_of(s, w->side);
    m->frame = w->frame;
    m->now = w->now;
    if (ulp_is_zeroed(c->ulp, m))
        return NULL;
    taken = c->proto->message(c, m);
    message_say(c->ulp, m);
    c->ulp->sums.holes += m->hole;
    c->ulp->sums.cut += m->cut && !m->hole && !m->command && m->body.len < ULP_MESSAGE_MAX;
    if (taken || !(m->hole || m->cut)) {
        c->ulp->sums.messages += !taken;
        ulp_judge(c, taken);
    }
    early_message(c, m, taken);
    return (struct command *)m->command;
}

/* Whether the layers of the packet have bytes of their own: those of an upper protocol would take their place. */
static bool has_message(const struct pkt *p)
{
    for (unsigned i = 0; i < p->n_layers; i++)
        if (p->layers[i].off & LAYER_MESSAGE)
            return true;
    return false;
}

/* Layers of the packet may have bytes of their own: those of an upper protocol go behind them. False: no room. */
static bool make_room(struct ulp *u, struct pkt *p)
{
    uint32_t n = 0;

    for (unsigned i = 0; i < p->n_layers; i++)
        if (p->layers[i].off & LAYER_MESSAGE)
            n = max_u32(n, (p->layers[i].off & ~LAYER_MESSAGE) + p->layers[i].len);
    if (n && p->message != u->shown_bytes) {
        if (n > ULP_SHOWN_MAX)
            return false;
        memcpy(u->shown_bytes, p->message, n);
        p->message = u->shown_bytes;
    }
    u->n_shown = max_u32(u->n_shown, n);
    return true;
}

/* Whether the unit is a segment of the SEND that `of` is one of. */
static bool same_send(const struct iwarp_unit *of, const struct iwarp_unit *u)
{
    return u->side == of->side && is_send(u->ddp.opcode) && u->ddp.msn == of->ddp.msn;
}

/* The protocol is not known yet: keep the unit. Nothing is kept before a SEND that may tell, but its own segments. */
static void hold(struct ulp *u, struct ulp_stream *s, const struct iwarp_unit *w)
{
    size_t n = sizeof(struct held) + w->body.len;
    bool may_tell = s->side[0].last.proto || s->side[1].last.proto;
    struct held *h;

    if (s->held_again)
        return;
    if (s->given_up || s->tries > 4 * MARKED || (!may_tell && (w->ddp.last || !is_send(w->ddp.opcode)))) {
        held_drop(u, s);
        return;
    }
    if (s->n_held == HELD || s->held_bytes + w->body.len > HELD_BYTES)
        held_drop(u, s);
    if (!(h = room_new(u, n)))
        return;
    h->unit = *w;
    memcpy(h->b, w->body.b, w->body.len);
    h->unit.body = (struct ulp_body){h->b, w->body.len, LAYER_MESSAGE};
    if (w->payload)
        h->unit.payload = h->b + (w->payload - w->body.b);
    h->next = s->held;
    s->held = h;
    s->n_held++;
    s->held_bytes += w->body.len;
}

static void take(struct ulp *u, const struct iwarp_unit *w, struct pkt *show);

/* The protocol is known by the SEND at hand: what was kept before it comes first. */
static void take_held(struct ulp *u, struct ulp_stream *s, const struct iwarp_unit *w)
{
    struct sending *d = &s->side[w->side].send, own = *d;
    struct held *list = NULL;

    for (struct held *h; (h = s->held); list = h) { /* oldest first */
        s->held = h->next;
        h->next = list;
    }
    held_drop(u, s);
    *d = (struct sending){.begun = false};
    s->held_again = true;
    for (const struct held *h = list; h && s->c; h = h->next)
        if (!same_send(w, &h->unit))
            take(u, &h->unit, NULL);
    s->held_again = false;
    room_free(u, d->bytes, d->cap);
    *d = own;
    held_free(u, list);
}

/* A segment of a SEND. */
static struct command *take_send(struct ulp *u, struct ulp_stream *s, const struct iwarp_unit *w, struct pkt *show)
{
    struct sending *d = &s->side[w->side].send;
    bool only = w->ddp.mo == 0 && w->ddp.last && w->whole;
    struct ulp_message m = {.packets = 1, .start = w->first};

    if (only) {
        m.body = (struct ulp_body){w->payload, w->payload_len, w->body.off + MPA_LENGTH_LEN + DDP_UNTAGGED_LEN};
        d->begun = false;
    } else {
        sending_keep(u, d, w);
        if (!w->ddp.last)
            return NULL;
        d->begun = false;
        m = (struct ulp_message){.body = {d->bytes, d->len, LAYER_MESSAGE, d->total > d->len ? d->total - d->len : 0},
                                 .packets = d->fpdus,
                                 .start = d->start,
                                 .cut = d->cut};
    }
    if (!s->c || !believe(s, w->side, &m))
        guess(u, s, w->side, &m);
    if (s->c && s->held)
        take_held(u, s, w);
    if (!s->c || (!m.body.len && m.cut) || !(s->c->sure || is_taken(s, w->side))) {
        u->sums.cut_unknown += m.cut || w->captured < w->payload_len; /* what would tell may have been cut */
        return NULL;
    }
    if (show && make_room(u, show))
        m.show = show;
    if (m.show && !only) {
        struct ulp_body shown = shown_put(u, show, m.body.b, m.body.len);
        m.show = shown.len ? show : NULL;
        shown.more = m.body.more;
        m.body = shown.len ? shown : m.body;
    }
    return deliver(s, w, &m);
}

/* --- Data ------------------------------------------------------------------------------------- */

/* Bytes that `side` moves to or from the other end's memory at (stag, to). */
static struct command *moved(struct ulp_stream *s, enum iwarp_side of, uint32_t stag, uint64_t to,
                             const struct iwarp_unit *w, struct pkt *show)
{
    const struct moved m = {.b = iwarp_payload(w),
                            .len = w->payload_len,
                            .cap = w->captured,
                            .frame = w->frame,
                            .now = w->now,
                            .by = side_of(s, w->side)};
    struct segment *g = segment_find(s->c, side_of(s, of), stag, to, w->payload_len);
    struct ulp_sums *sums = &s->c->ulp->sums;

    if (!g) {
        sums->untied += w->payload_len;
        early_data_keep(s->c, &(struct early_data){.m = m, .of = side_of(s, of), .stag = stag, .to = to});
        return NULL;
    }
    settle_way(s->c, g, w->ddp.opcode == RDMAP_WRITE);
    sums->tied += w->payload_len;
    s->c->ulp->stream_data = true;
    s->c->ulp->stream_at = g->base + (to - g->va);
    s->c->ulp->stream_len = w->payload_len;
    data_take(s->c, g, g->base + (to - g->va), &m, show && !has_message(show) ? show : NULL);
    return g->command;
}

/* A Terminate that refuses memory of its sender. */
static struct command *take_terminate(struct ulp_stream *s, const struct iwarp_unit *w)
{
    struct ulp_refusal r;

    return refusal_of_terminate(&r, w) ? refuse_access(s->c, side_of(s, w->side), &r, 0) : NULL;
}

static struct command *take_read_request(struct ulp_stream *s, const struct iwarp_unit *w)
{
    struct stream_side *d = &s->side[w->side];
    enum iwarp_side other = iwarp_other(w->side);
    struct segment *g;
    struct rdmap_read r;

    if (!w->payload)
        return NULL;
    rdmap_read_get(&r, w->payload);
    if (d->n_reads == READS) {
        d->first_read++;
        d->n_reads--;
    }
    d->read[(d->first_read + d->n_reads++) % READS] =
        (struct read_asked){r.sink_stag, r.source_stag, r.size, r.sink_to, r.source_to};
    g = segment_find(s->c, side_of(s, other), r.source_stag, r.source_to, r.size);
    if (!g)
        return NULL;
    settle_way(s->c, g, false);
    g->command->c.packets++;
    data_time(&g->command->c, side_of(s, w->side), w->frame, w->now);
    return g->command;
}

static struct command *take_read_response(struct ulp_stream *s, const struct iwarp_unit *w, struct pkt *show)
{
    struct stream_side *d = &s->side[iwarp_other(w->side)];
    struct command *cmd = NULL;

    for (unsigned i = 0; i < d->n_reads; i++) {
        const struct read_asked r = d->read[(d->first_read + i) % READS];
        if (r.sink_stag != w->ddp.stag || w->ddp.to < r.sink_to || w->ddp.to - r.sink_to > r.size)
            continue;
        cmd = moved(s, w->side, r.source_stag, r.source_to + (w->ddp.to - r.sink_to), w, show);
        if (w->ddp.last) { /* those before it have no response in the capture */
            d->first_read += i + 1;
            d->n_reads -= i + 1;
        }
        break;
    }
    return cmd;
}

/* --- FPDUs ------------------------------------------------------------------------------------ */

/* The bytes of an end from `seq` up to those of the unit belong to the command: segments of them that were
 * retransmitted do, too. */
static void tie(struct stream_side *d, uint32_t seq, const struct iwarp_unit *w, struct command *cmd)
{
    uint32_t latest = (d->n_spans - 1) % SPANS, n;
    struct seq_span at = {seq, w->end};

    if (d->n_spans && d->span[latest].command.number == cmd->c.number && d->span[latest].at.to == seq) {
        d->span[latest].at.to = w->end;
    } else {
        d->span[d->n_spans % SPANS].at = at;
        d->span[d->n_spans++ % SPANS].command = command_ref(&cmd->c);
    }
    n = again_count(&d->again, &at, cmd->c.number);
    cmd->c.again += n;
    cmd->c.packets += n;
}

static void on_again(void *user, const struct iwarp_conn *c, enum iwarp_side side, uint32_t seq, uint32_t end)
{
    struct ulp_stream *s = stream_of(user, c);
    struct stream_side *d = s ? &s->side[side] : NULL;

    if (!d)
        return;
    again_add(&d->again, &(struct seq_span){seq, end});
    for (uint32_t i = 0; s->c && i < d->n_spans && i < SPANS; i++) {
        struct command *cmd = command_of(s->c, d->span[i].command);
        if (!cmd || !again_latest(&d->again, &d->span[i].at, cmd->c.number))
            continue;
        cmd->c.again++;
        cmd->c.packets++;
    }
}

/* An FPDU that is no SEND. */
static struct command *take_other(struct ulp_stream *s, const struct iwarp_unit *w, struct pkt *show)
{
    switch (w->ddp.opcode) {
    case RDMAP_WRITE:
        return moved(s, iwarp_other(w->side), w->ddp.stag, w->ddp.to, w, show);
    case RDMAP_READ_REQUEST:
        return take_read_request(s, w);
    case RDMAP_READ_RESPONSE:
        return take_read_response(s, w, show);
    case RDMAP_TERMINATE:
        return take_terminate(s, w);
    }
    return NULL;
}

/* A unit, and the packet that shows it or NULL. */
static void take(struct ulp *u, const struct iwarp_unit *w, struct pkt *show)
{
    struct ulp_stream *s = stream_of(u, w->conn);
    struct command *d = NULL;

    if (!s)
        return;
    trip_note_stream(u, s->conn, &s->trips);
    if (w->start) {
        if (w->side == IWARP_INITIATOR)
            take_request(u, s, w);
        return;
    }
    if (!w->readable || w->wrong || (w->crc && w->whole && !w->crc_good))
        return;
    u->stream_data = false;
    if (is_send(w->ddp.opcode))
        d = take_send(u, s, w, show);
    else if (s->c)
        d = take_other(s, w, show);
    if (!s->c)
        hold(u, s, w);
    if (d)
        tie(&s->side[w->side], is_send(w->ddp.opcode) && w->ddp.mo ? s->side[w->side].send.seq : w->seq, w, d);
    if (show && s->c)
        ulp_note_stream(s->c, show, d, side_of(s, w->side), is_send(w->ddp.opcode));
    if (s->c && s->c->wrong) {
        s->given_up = s->c->how == ULP_BY_BYTES;
        detach(s);
    }
}

static void on_fpdu(void *user, const struct pkt *p, const struct iwarp_unit *w)
{
    (void)p;
    take(user, w, NULL);
}

void ulp_stream_packet(struct ulp *u, struct pkt *p)
{
    const struct iwarp *w = observer_iwarp(u->observer);
    struct iwarp_unit unit;

    u->n_shown = 0;
    for (unsigned i = 0; iwarp_shown(w, p, i, &unit); i++)
        take(u, &unit, p);
}

bool ulp_streams_begin(struct ulp *u, bool shown)
{
    const struct iwarp_sub s = {.user = u, .fpdu = shown ? NULL : on_fpdu, .again = on_again, .gone = on_gone};

    return iwarp_subscribe(observer_iwarp(u->observer), &s);
}
