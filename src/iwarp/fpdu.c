/* layer 2b (iwarp): MPA: requests, replies and FPDUs out of a stream; FPDUs found again where their place was lost. */
#include "src/iwarp/iwarp_impl.h"

#include <stdio.h>

#define SEEK_CRCS   64 /* candidates of one packet whose CRCs are calculated */
#define NONSENSE    2  /* FPDUs in a row that are not right: their place was lost */
#define PROBE_TRIES 16 /* segments of a stream that looked like FPDUs and were not */
#define HEAD        (MPA_LENGTH_LEN + DDP_TAGGED_LEN)

/* --- Bytes of the stream ---------------------------------------------------------------------- */

/* A reader of a stream. */
struct place {
    struct iwarp *w;
    struct tcp_conn *t;
    enum iwarp_side of;
    struct side *s;
    uint32_t at; /* offset of the next byte in s->stream.b */
    unsigned crcs;
};

static uint32_t left(const struct place *f)
{
    return f->s->stream.len - f->at;
}

static bool has_markers(const struct place *f)
{
    return f->t->c.markers[f->of];
}

/* Bytes of the stream that hold `n` bytes of an FPDU from offset `at` on, with the markers in between. */
static uint32_t raw_len(const struct place *f, uint32_t at, uint32_t n)
{
    uint64_t rel = f->s->stream.at + at - f->s->frames_at;
    uint32_t raw = 0;

    if (!has_markers(f))
        return n;
    while (n) {
        uint32_t in = (uint32_t)(rel % MPA_MARKER_EVERY), chunk;
        if (in == 0) {
            raw += MPA_MARKER_LEN;
            rel += MPA_MARKER_LEN;
            in = MPA_MARKER_LEN;
        }
        chunk = min_u32(n, MPA_MARKER_EVERY - in);
        raw += chunk;
        rel += chunk;
        n -= chunk;
    }
    return raw;
}

static bool lacks(const struct place *f, uint32_t at, uint32_t n)
{
    uint64_t from = f->s->stream.at + at;

    return f->s->stream.n_holes && stream_lacks(&f->s->stream, from, from + n);
}

/* Whether the marker at offset `at` points to the first byte of the FPDU that begins at offset `begin`, with a marker
 * or without. */
static bool marker_fits(const struct place *f, uint32_t begin, uint32_t at)
{
    uint64_t rel = f->s->stream.at + begin - f->s->frames_at;
    uint32_t length_at = begin + (rel % MPA_MARKER_EVERY == 0 ? MPA_MARKER_LEN : 0);
    uint32_t back = at > length_at ? at - length_at : 0;

    return load_be16(f->s->stream.b + at + 2) == (uint16_t)back;
}

/* Copy `n` bytes of the FPDU at offset `at`, without its markers, behind the others in w->scratch; `u` gets the
 * markers. *fits: they all point to its beginning. Returns where the copy is. */
static uint32_t copy_out(const struct place *f, uint32_t at, uint32_t n, struct iwarp_unit *u, bool *fits)
{
    const struct stream *s = &f->s->stream;
    uint64_t rel = s->at + at - f->s->frames_at;
    uint32_t to = (uint32_t)f->w->scratch.len, begin = at;

    if (!has_markers(f)) {
        buf_mem(&f->w->scratch, s->b + at, n);
        return to;
    }
    while (n) {
        uint32_t in = (uint32_t)(rel % MPA_MARKER_EVERY), chunk;
        if (in == 0) {
            *fits &= marker_fits(f, begin, at);
            if (u->n_markers < IWARP_MARKERS)
                memcpy(u->marker[u->n_markers].b, s->b + at, MPA_MARKER_LEN);
            u->n_markers++;
            at += MPA_MARKER_LEN;
            rel += MPA_MARKER_LEN;
            in = MPA_MARKER_LEN;
        }
        chunk = min_u32(n, MPA_MARKER_EVERY - in);
        buf_mem(&f->w->scratch, s->b + at, chunk);
        at += chunk;
        rel += chunk;
        n -= chunk;
    }
    return to;
}

/* The ULPDU length of the FPDU at offset `at`; false: it is not there, or not yet. */
static bool length_at(const struct place *f, uint32_t at, uint16_t *ulpdu)
{
    const struct stream *s = &f->s->stream;
    uint32_t skip = raw_len(f, at, MPA_LENGTH_LEN) - MPA_LENGTH_LEN;

    if (s->len - at < skip + MPA_LENGTH_LEN || lacks(f, at + skip, MPA_LENGTH_LEN))
        return false;
    *ulpdu = load_be16(s->b + at + skip);
    return true;
}

/* --- Requests and replies --------------------------------------------------------------------- */

/* What the two ends have agreed on so far. */
static void agree(struct iwarp_conn *c)
{
    const struct iwarp_sent *i = &c->sent[IWARP_INITIATOR], *r = &c->sent[IWARP_RESPONDER];

    c->crc = (i->have_start && i->start.crc) || (r->have_start && r->start.crc);
    c->markers[IWARP_RESPONDER] = i->have_start && i->start.markers;
    c->markers[IWARP_INITIATOR] = r->have_start && r->start.markers;
    c->refused |= r->have_start && r->start.rejected;
}

/* Fill what follows for a unit from the segments of [at, at + n); whether its bytes are in the packet at hand. */
static void locate(const struct place *f, struct iwarp_unit *u, uint32_t at, uint32_t n)
{
    const struct stream *s = &f->s->stream;
    const struct iwarp *w = f->w;
    uint64_t place = s->at + at;
    const struct origin *first = stream_origin(s, place), *last = stream_origin(s, place + n - 1);

    u->conn = &f->t->c;
    u->side = f->of;
    u->first_frame = first ? first->frame : w->p->frame->number;
    u->first = first ? first->ts : w->p->frame->ts;
    u->frame = last ? last->frame : w->p->frame->number;
    u->now = last ? last->ts : w->p->frame->ts;
    if (last && first && last->ts < first->ts)
        u->now = w->p->frame->ts;
    u->end = s->next - (s->len - at - n);
    u->seq = u->end - n;
    u->body.off = LAYER_MESSAGE;
    if (w->payload_cap && place >= w->payload_at && place + n <= w->payload_at + w->payload_cap)
        u->body.off = w->payload_off + (uint32_t)(place - w->payload_at);
}

/* The stream begins with a request or reply? False: wait for more bytes. */
static bool read_start(struct place *f)
{
    struct side *s = f->s;
    const uint8_t *b = s->stream.b + f->at;
    struct iwarp_sent *sent = &f->t->c.sent[f->of];
    struct iwarp_unit u = {.start = true, .whole = true};
    enum mpa_key key = left(f) ? mpa_key_of(b, left(f)) : MPA_PART;
    struct mpa_start m;
    uint32_t n;

    if (key == MPA_PART)
        return false;
    if (key == MPA_OTHER || lacks(f, f->at, min_u32(left(f), MPA_START_LEN))) {
        s->framing = FRAMING_NONE;
        return true;
    }
    if (!mpa_start_get(&m, b, left(f)))
        return false;
    n = MPA_START_LEN + m.private_len;
    if (m.private_len > MPA_PRIVATE_MAX || m.reply != (f->of == IWARP_RESPONDER)) {
        s->framing = FRAMING_NONE;
        return true;
    }
    if (left(f) < n)
        return false;
    iwarp_recognised(f->w, f->t, IWARP_BY_START);
    mpa_start_get(&sent->start, b, n);
    sent->have_start = true;
    agree(&f->t->c);
    u.body = (struct ulp_body){b, n, 0};
    locate(f, &u, f->at, n);
    f->at += n;
    s->frames_at = s->stream.at + f->at;
    s->framing = FRAMING_FPDUS;
    iwarp_hand_out(f->w, &u);
    return true;
}

/* --- FPDUs ------------------------------------------------------------------------------------ */

/* An FPDU passed whose headers are not known: neither are the numbers and offsets of what follows. */
static void forget_messages(struct side *s)
{
    s->unsure = true;
    memset(s->have_msn, 0, sizeof s->have_msn);
    memset(s->message, 0, sizeof s->message);
    memset(s->tagged, 0, sizeof s->tagged);
}

void fpdu_lost(struct side *s)
{
    forget_messages(s);
    s->seek = 0;
    if (s->framing == FRAMING_FPDUS)
        s->framing = FRAMING_SEEK;
    else if (s->framing != FRAMING_SEEK && s->framing != FRAMING_OFF)
        s->framing = FRAMING_NONE;
}

static void report(const struct place *f, const struct iwarp_unit *u, enum iwarp_fault fault, const char *seen,
                   const char *expected)
{
    iwarp_report(f->w, &(struct iwarp_bad){.fault = fault, .unit = u, .seen = seen, .expected = expected});
}

static void report_headers(const struct place *f, const struct iwarp_unit *u)
{
    char seen[64];
    const struct ddp *d = &u->ddp;

    switch (u->wrong) {
    case DDP_VERSION:
    case DDP_RDMAP_VERSION:
        snprintf(seen, sizeof seen, "%s version %u", u->wrong == DDP_VERSION ? "DDP" : "RDMAP",
                 u->wrong == DDP_VERSION ? d->version : d->rdmap_version);
        report(f, u, IWARP_BAD_VERSION, seen, "1");
        break;
    case DDP_OPCODE:
        snprintf(seen, sizeof seen, "opcode %u", d->opcode);
        report(f, u, IWARP_BAD_OPCODE, seen, "a defined one");
        break;
    case DDP_MODEL:
        snprintf(seen, sizeof seen, "%s in %s segment", rdmap_opcode_str(d->opcode),
                 d->tagged ? "a tagged" : "an untagged");
        report(f, u, IWARP_BAD_OPCODE, seen, d->tagged ? "an untagged one" : "a tagged one");
        break;
    case DDP_QUEUE:
        snprintf(seen, sizeof seen, "%s on queue %u", rdmap_opcode_str(d->opcode), d->qn);
        report(f, u, IWARP_BAD_OPCODE, seen, "the queue of its opcode");
        break;
    case DDP_SHORT:
        snprintf(seen, sizeof seen, "%s with %u bytes", rdmap_opcode_str(d->opcode), u->payload_len);
        report(f, u, IWARP_BAD_LENGTH, seen, "its whole header");
        break;
    default:
        break;
    }
}

/* Bytes of the payload of the FPDU at offset `at` that were captured, from its first one up to the first hole. */
static uint32_t captured_of(const struct place *f, const struct iwarp_unit *u, uint32_t at)
{
    const struct stream *s = &f->s->stream;
    uint64_t from = s->at + at + MPA_LENGTH_LEN + u->ddp.head;

    if (u->whole)
        return u->payload_len;
    for (unsigned i = 0; i < s->n_holes && !has_markers(f); i++)
        if (s->hole[i].to > from)
            return s->hole[i].from > from ? min_u32(u->payload_len, (uint32_t)(s->hole[i].from - from)) : 0;
    return 0;
}

/* Fill the headers of the FPDU, if they are there. */
static void read_headers(const struct place *f, struct iwarp_unit *u, uint32_t at, uint16_t ulpdu)
{
    uint32_t known = MPA_LENGTH_LEN + (ulpdu < 80 ? ulpdu : 80);

    u->readable = ddp_get(&u->ddp, u->body.b + MPA_LENGTH_LEN, ulpdu);
    if (!u->readable)
        return;
    if (!u->whole && lacks(f, at, raw_len(f, at, MPA_LENGTH_LEN + u->ddp.head))) {
        u->readable = false;
        return;
    }
    u->payload_len = ulpdu - u->ddp.head;
    u->wrong = ddp_check(&u->ddp, u->payload_len);
    u->captured = captured_of(f, u, at);
    if (u->whole || !lacks(f, at, raw_len(f, at, known)))
        u->payload = u->body.b + MPA_LENGTH_LEN + u->ddp.head;
}

/* An FPDU that is wrong. Returns false if the place is taken for lost. */
static bool wrong_fpdu(const struct place *f, const struct iwarp_unit *u, uint16_t ulpdu)
{
    char seen[32];

    if (f->s->unsure || f->s->nonsense++ >= NONSENSE)
        return false;
    if (!u->readable) {
        snprintf(seen, sizeof seen, "%u bytes", ulpdu);
        report(f, u, IWARP_BAD_LENGTH, seen, "at least the headers of DDP and RDMAP");
    } else {
        report_headers(f, u);
    }
    return true;
}

/* Take the FPDU, `raw` bytes of the stream: what it says, if it can be trusted. False: the place is lost. */
static bool take_fpdu(struct place *f, struct iwarp_unit *u, uint16_t ulpdu, uint32_t raw)
{
    struct iwarp_sent *sent = &f->t->c.sent[f->of];
    char seen[16], want[16];

    if (f->s->stream.at + f->at <= f->s->told) {
        iwarp_show_late(f->w, u);
        return true;
    }
    if (u->crc && !u->crc_good && u->whole) {
        sent->bad_crc++;
        sent->fpdus++;
        snprintf(seen, sizeof seen, "0x%08x", load_be32(u->body.b + u->body.len - MPA_CRC_LEN));
        snprintf(want, sizeof want, "0x%08x", u->crc_want);
        iwarp_hand_out(f->w, u);
        report(f, u, IWARP_BAD_CRC, seen, want);
        if (u->readable && !u->wrong && rdmap_continues(f->s, &u->ddp)) {
            rdmap_take(f->w, f->t, u);
            return true;
        }
        fpdu_lost(f->s);
        f->s->framing = FRAMING_FPDUS;
        return true;
    }
    if (u->whole && (!u->readable || u->wrong))
        return wrong_fpdu(f, u, ulpdu);
    f->s->nonsense = 0;
    sent->fpdus++;
    sent->lacking = f->s->stream.lacking;
    if (u->readable && !u->wrong && u->ddp.tagged)
        sent->lacking_data += stream_lacking(&f->s->stream, f->s->stream.at + f->at - raw, f->s->stream.at + f->at);
    sent->payload += u->readable ? u->payload_len : 0;
    iwarp_hand_out(f->w, u);
    if (u->readable && !u->wrong)
        rdmap_take(f->w, f->t, u);
    else
        forget_messages(f->s);
    return true;
}

/* The next FPDU. False: wait for more bytes. */
static bool read_fpdu(struct place *f)
{
    struct side *s = f->s;
    struct iwarp_unit u = {.crc = f->t->c.crc};
    uint32_t begin = f->at, n, raw;
    uint16_t ulpdu;
    bool fits = true;

    if (!length_at(f, begin, &ulpdu)) {
        if (left(f) < MPA_LENGTH_LEN + MPA_MARKER_LEN)
            return false;
        fpdu_lost(s);
        return true;
    }
    n = mpa_fpdu_len(ulpdu);
    raw = raw_len(f, begin, n);
    if (left(f) < raw)
        return false;
    u.whole = !lacks(f, begin, raw);
    locate(f, &u, begin, raw);
    u.body = (struct ulp_body){s->stream.b + begin, n, u.body.off};
    if (has_markers(f)) {
        uint32_t to = copy_out(f, begin, n, &u, &fits);
        if (f->w->scratch.len < to + n) { /* no memory */
            s->framing = FRAMING_OFF;
            return true;
        }
        u.body = (struct ulp_body){(const uint8_t *)f->w->scratch.p + to, n, LAYER_MESSAGE};
    }
    if (u.crc && u.whole) {
        u.crc_want = mpa_crc(u.body.b, n - MPA_CRC_LEN);
        u.crc_good = u.crc_want == load_be32(u.body.b + n - MPA_CRC_LEN);
    }
    read_headers(f, &u, begin, ulpdu);
    f->at += raw;
    if (!take_fpdu(f, &u, ulpdu, raw)) {
        f->at = begin;
        fpdu_lost(s);
    } else if (!fits && u.whole && !s->unsure) {
        report(f, &u, IWARP_BAD_MARKER, "another place", "the first byte of its FPDU");
    }
    return true;
}

/* --- FPDUs are looked for --------------------------------------------------------------------- */

enum answer { NO, YES, MORE };

/* Whether the first bytes of a ULPDU of `ulpdu` bytes, 14 of which are at `b`, may be right. */
static bool headers_fit(const uint8_t *b, uint16_t ulpdu)
{
    struct ddp d;

    if (ulpdu < DDP_TAGGED_LEN)
        return false;
    d.tagged = b[0] >> 7;
    if (!d.tagged && ulpdu < DDP_UNTAGGED_LEN)
        return false;
    d = (struct ddp){.tagged = b[0] >> 7,
                     .version = b[0] & 3,
                     .rdmap_version = b[1] >> 6,
                     .opcode = b[1] & 15,
                     .qn = load_be32(b + 6)};
    return !(b[0] & 0x3c) && !(b[1] & 0x30) &&
           !ddp_check(&d, ulpdu - (uint32_t)(d.tagged ? DDP_TAGGED_LEN : DDP_UNTAGGED_LEN));
}

bool fpdu_looks_right(const uint8_t *b, uint32_t n)
{
    return n >= HEAD && headers_fit(b + MPA_LENGTH_LEN, load_be16(b));
}

/* Whether there is an FPDU at offset `at`: its headers, pad and CRC (a right one, or with `zero` one of zeros) are
 * right. *raw: its bytes in the stream. */
static enum answer is_fpdu(struct place *f, uint32_t at, bool zero, uint32_t *raw)
{
    uint8_t head[HEAD];
    struct iwarp_unit u = {.start = false};
    uint32_t mark = (uint32_t)f->w->scratch.len, n, to;
    uint16_t ulpdu;
    const uint8_t *b;
    bool fits = true;

    if (f->s->stream.len - at < raw_len(f, at, HEAD))
        return MORE;
    if (lacks(f, at, raw_len(f, at, HEAD)))
        return NO;
    to = copy_out(f, at, HEAD, &u, &fits);
    if (f->w->scratch.len < to + HEAD)
        return NO; /* no memory */
    memcpy(head, f->w->scratch.p + to, HEAD);
    f->w->scratch.len = mark;
    ulpdu = load_be16(head);
    if (!headers_fit(head + MPA_LENGTH_LEN, ulpdu))
        return NO;
    n = mpa_fpdu_len(ulpdu);
    *raw = raw_len(f, at, n);
    if (f->s->stream.len - at < *raw)
        return MORE;
    if (lacks(f, at, *raw) || f->crcs == 0)
        return NO;
    f->crcs--;
    to = copy_out(f, at, n, &u, &fits);
    if (f->w->scratch.len < to + n)
        return NO;
    b = (const uint8_t *)f->w->scratch.p + to;
    f->w->scratch.len = mark;
    for (uint32_t i = MPA_LENGTH_LEN + ulpdu; i < n - MPA_CRC_LEN; i++)
        if (b[i])
            return NO;
    return load_be32(b + n - MPA_CRC_LEN) == (zero ? 0 : mpa_crc(b, n - MPA_CRC_LEN)) ? YES : NO;
}

/* Whether `sure` FPDUs follow each other from offset `at` on. */
static enum answer is_chain(struct place *f, uint32_t at, unsigned sure, bool zero)
{
    enum answer a = YES;
    uint32_t raw = 0;

    for (unsigned i = 0; i < sure && a == YES; i++) {
        a = is_fpdu(f, at, zero, &raw);
        at += raw;
    }
    return a;
}

/* The packet that completes the next FPDU; false: none does so far. */
static bool next_frame(const struct place *f, uint64_t *frame)
{
    const struct origin *o;
    uint16_t ulpdu;
    uint32_t raw;

    if (f->s->framing != FRAMING_FPDUS || !length_at(f, f->at, &ulpdu))
        return false;
    raw = raw_len(f, f->at, mpa_fpdu_len(ulpdu));
    o = left(f) < raw ? NULL : stream_origin(&f->s->stream, f->s->stream.at + f->at + raw - 1);
    *frame = o ? o->frame : 0;
    return o != NULL;
}

static bool probe(struct place *f);

/* The connection was recognised by what one end sent: FPDUs of the other end that wait are taken with those of this one
 * in the order in which they were completed. The next packet of the other end shows its own. */
static void merge(struct place *f)
{
    enum iwarp_side other = iwarp_other(f->of);
    struct place g = {.w = f->w, .t = f->t, .of = other, .s = &f->t->side[other], .crcs = SEEK_CRCS};
    uint32_t payload_cap = f->w->payload_cap;
    uint64_t theirs, ours;

    if (g.s->framing != FRAMING_PROBE || !probe(&g))
        return;
    while (next_frame(&g, &theirs)) {
        while (next_frame(f, &ours) && ours < theirs)
            read_fpdu(f);
        f->w->payload_cap = 0;
        f->w->hidden = true;
        read_fpdu(&g);
        f->w->hidden = false;
        f->w->payload_cap = payload_cap;
    }
    g.s->told = g.s->stream.at + g.at;
}

/* The stream may be iWARP from b[0] on. False: wait for more bytes. */
static bool probe(struct place *f)
{
    struct tcp_conn *t = f->t;
    unsigned sure = t->known ? 1 : IWARP_SURE;
    bool zero = t->known && !t->c.crc;
    enum answer a = is_chain(f, f->at, sure, zero);
    bool first = !t->known;

    if (a == NO && !t->known) {
        zero = true;
        a = is_chain(f, f->at, sure, zero);
    }
    if (a == MORE)
        return false;
    if (a == NO) {
        f->s->framing = ++f->s->tries < PROBE_TRIES ? FRAMING_NONE : FRAMING_OFF;
        return true;
    }
    if (!t->known) {
        t->c.crc = !zero;
        iwarp_recognised(f->w, t, IWARP_BY_FPDUS);
    }
    f->s->framing = FRAMING_FPDUS;
    f->s->unsure = true;
    if (first && t->known)
        merge(f);
    return true;
}

/* The place was lost: look for two FPDUs in a row, which begin at a multiple of 4. False: wait for more bytes. */
static bool seek(struct place *f)
{
    struct side *s = f->s;

    for (;;) {
        uint64_t rel = s->stream.at + f->at - s->frames_at;
        uint32_t skip = (uint32_t)(-rel & 3);
        enum answer a;
        if (left(f) < skip)
            return false;
        f->at += skip;
        a = is_chain(f, f->at, 2, !f->t->c.crc);
        if (a == MORE && left(f) >= HEAD && f->t->c.crc && is_chain(f, f->at, 1, false) == YES)
            a = YES;
        if (a == MORE)
            return false;
        if (a == YES) {
            s->framing = FRAMING_FPDUS;
            s->nonsense = 0;
            return true;
        }
        if (f->crcs == 0)
            return false;
        if (left(f) < 4)
            return false;
        f->at += 4;
    }
}

void fpdu_read(struct iwarp *w, struct tcp_conn *t, enum iwarp_side side)
{
    struct place f = {.w = w, .t = t, .of = side, .s = &t->side[side], .crcs = SEEK_CRCS};
    bool more = true;

    while (more && left(&f)) {
        switch (f.s->framing) {
        case FRAMING_START:
            more = read_start(&f);
            break;
        case FRAMING_FPDUS:
            more = read_fpdu(&f);
            break;
        case FRAMING_PROBE:
            more = probe(&f);
            break;
        case FRAMING_SEEK:
            more = seek(&f);
            break;
        default:
            f.at = f.s->stream.len;
        }
    }
    stream_read(&f.s->stream, f.at);
}
