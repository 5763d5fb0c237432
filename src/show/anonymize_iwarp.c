/* layer 3 (show): what remains of iWARP in anonymized packets. */
#include "src/show/anonymize_iwarp.h"

#include "dissect/ip/tcp.h"
#include "dissect/iwarp/iwarp.h"
#include "src/conn/addr.h"

#define START_KEPT 24 /* bytes of an MPA request or reply: in revision 2 with IRD and ORD */
#define TERM_KEPT  64 /* bytes of a Terminate's payload: it quotes headers */

/* Bytes of payload that are headers themselves. */
static uint32_t kept_payload(const struct ddp *d)
{
    switch (d->opcode) {
    case RDMAP_READ_REQUEST:
        return RDMAP_READ_LEN;
    case RDMAP_TERMINATE:
        return TERM_KEPT;
    case RDMAP_ATOMIC_REQUEST:
        return RDMAP_ATOMIC_REQUEST_LEN;
    case RDMAP_ATOMIC_RESPONSE:
        return RDMAP_ATOMIC_RESPONSE_LEN;
    default:
        return 0;
    }
}

static void unit_begin(struct iwarp_place *s)
{
    s->at = s->len = s->keep = 0;
    s->was = s->now = mpa_crc_begin();
    s->wrong = s->none = false;
}

/* The first bytes of the unit are in s->head: how long it is, and how much of it remains. */
static void unit_known(struct iwarp_place *s)
{
    struct mpa_start m;
    struct ddp d;

    if (s->start && s->at == MPA_START_LEN) {
        s->len = mpa_start_get(&m, s->head, MPA_START_LEN) ? MPA_START_LEN + (uint32_t)m.private_len : 0;
        s->keep = s->head[17] >= 2 && s->head[16] & 0x10 ? START_KEPT : MPA_START_LEN;
        s->unknown = s->len == 0;
    } else if (!s->start && s->at == MPA_LENGTH_LEN) {
        s->len = mpa_fpdu_len(load_be16(s->head));
        s->keep = MPA_LENGTH_LEN + 2;
    } else if (!s->start && s->at == MPA_LENGTH_LEN + 2) {
        uint32_t head = s->head[2] & 0x80 ? DDP_TAGGED_LEN : DDP_UNTAGGED_LEN, ulpdu = load_be16(s->head);
        d.opcode = s->head[3] & 15;
        s->keep = MPA_LENGTH_LEN + min_u32(ulpdu, head + kept_payload(&d));
    }
}

/* The CRC begins with `n` of its bytes at `b`: whether there is one, and it is right. */
static void crc_begin(struct iwarp_place *s, const uint8_t *b, uint32_t n)
{
    uint8_t want[MPA_CRC_LEN];

    store_be32(want, mpa_crc_end(s->was));
    s->none = true;
    for (uint32_t i = 0; i < n; i++)
        s->none &= !b[i];
    s->wrong = memcmp(want, b, n) != 0;
    s->none &= s->wrong;
}

/* Whether the DDP header whose two bytes of control are at `c` begins with an STag. */
static bool has_stag(const uint8_t *c)
{
    return c[0] & 0x80 || (c[1] & 15) == RDMAP_SEND_INV || (c[1] & 15) == RDMAP_SEND_SE_INV;
}

/* Where the STags begin that the `len` bytes of a Terminate at `b` quote. Returns how many there are. */
static unsigned quoted_stags(const uint8_t *b, uint32_t len, uint32_t stags[3])
{
    struct rdmap_terminate t;
    unsigned n = 0;

    if (!rdmap_terminate_get(&t, b, len))
        return 0;
    if (t.ddp_len > 2 && has_stag(b + t.ddp_at))
        stags[n++] = t.ddp_at + 2;
    if (t.rdmap_len) {
        stags[n++] = t.rdmap_at;
        stags[n++] = t.rdmap_at + 16;
    }
    return n;
}

/* Which byte of an STag byte `at` of an FPDU is, whose bytes up to it are in s->head; -1: none. */
static int stag_byte(const struct iwarp_place *s, uint32_t at)
{
    static const uint32_t of_read[] = {0, 16}, of_atomic[] = {8};
    const uint8_t *c = s->head + MPA_LENGTH_LEN, *payload = c + DDP_UNTAGGED_LEN;
    uint32_t quoted[3], own[] = {2}, n = 0, from = MPA_LENGTH_LEN;
    const uint32_t *stags = own;

    if (s->start || at < MPA_LENGTH_LEN + 2 || at >= s->keep || at >= sizeof s->head)
        return -1;
    if (at < MPA_LENGTH_LEN + DDP_UNTAGGED_LEN) {
        n = has_stag(c);
    } else {
        from += DDP_UNTAGGED_LEN;
        switch (c[1] & 15) {
        case RDMAP_READ_REQUEST:
            stags = of_read;
            n = ARRAY_LEN(of_read);
            break;
        case RDMAP_ATOMIC_REQUEST:
            stags = of_atomic;
            n = ARRAY_LEN(of_atomic);
            break;
        case RDMAP_TERMINATE:
            stags = quoted;
            n = quoted_stags(payload, at + 1 - from, quoted);
            break;
        }
    }
    while (n--)
        if (at - from >= stags[n] && at - from < stags[n] + 4)
            return (int)(at - from - stags[n]);
    return -1;
}

/* One byte of the unit: what is written. */
static uint8_t unit_byte(struct iwarp_place *s, const struct pseudonyms *names, uint8_t v)
{
    uint8_t crc[MPA_CRC_LEN], w;
    uint32_t at = s->at++;
    int of_key;

    if (!s->start && s->len && at >= s->len - MPA_CRC_LEN) {
        store_be32(crc, s->none ? 0 : mpa_crc_end(s->now) ^ s->wrong);
        return crc[at - (s->len - MPA_CRC_LEN)];
    }
    if (at < sizeof s->head) {
        s->head[at] = v;
        unit_known(s);
    }
    of_key = stag_byte(s, at);
    w = at < s->keep || at < (s->start ? MPA_START_LEN : MPA_LENGTH_LEN + 2) ? v : 0;
    if (of_key >= 0)
        w = pseudonym_stag_byte(names, s->head + at - of_key, (unsigned)of_key, v);
    s->was = mpa_crc_add(s->was, &v, 1);
    s->now = mpa_crc_add(s->now, &w, 1);
    return w;
}

/* Of the `n` bytes that follow, payload that is zeroed. */
static uint32_t zeroed(const struct iwarp_place *s, uint32_t n)
{
    if (s->start || !s->len || s->at < s->keep || s->at < sizeof s->head || s->at >= s->len - MPA_CRC_LEN)
        return 0;
    return min_u32(n, s->len - MPA_CRC_LEN - s->at);
}

/* `n` bytes that follow those before. */
static void take(struct iwarp_place *s, const struct pseudonyms *names, bool markers, const uint8_t *b, uint32_t n,
                 uint8_t *to)
{
    for (uint32_t i = 0, more; i < n && !s->unknown; i++) {
        more = zeroed(s, n - i);
        s->was = mpa_crc_add(s->was, b + i, more);
        s->now = mpa_crc_add(s->now, to + i, more);
        s->at += more;
        i += more;
        if (i == n)
            break;
        if (!s->start && s->len && s->at == s->len - MPA_CRC_LEN)
            crc_begin(s, b + i, min_u32(n - i, MPA_CRC_LEN));
        to[i] = unit_byte(s, names, b[i]);
        if (s->len && s->at == s->len) {
            unit_begin(s);
            s->unknown |= s->start && markers;
            s->start = false;
        }
    }
}

/* Whether a segment may begin with an FPDU. */
static bool begins_fpdu(const uint8_t *b, uint32_t n)
{
    struct ddp d;

    return n >= MPA_LENGTH_LEN + DDP_TAGGED_LEN && load_be16(b) >= DDP_TAGGED_LEN &&
           ddp_get(&d, b + MPA_LENGTH_LEN, n - MPA_LENGTH_LEN) &&
           ddp_check(&d, load_be16(b) - min_u32(d.head, load_be16(b))) == DDP_RIGHT && !d.reserved;
}

/* --- Directions ------------------------------------------------------------------------------- */

static void ends_of(const struct pkt *p, const struct tcp *h, bool reverse, uint8_t ends[36])
{
    struct conn_addr src, dst;

    conn_addr_of(p, &src, &dst);
    memcpy(ends, reverse ? dst.b : src.b, 16);
    memcpy(ends + 16, reverse ? src.b : dst.b, 16);
    store_be16(ends + 32, reverse ? h->dport : h->sport);
    store_be16(ends + 34, reverse ? h->sport : h->dport);
}

static struct iwarp_names *find(struct iwarp_names_table *t, const uint8_t ends[36])
{
    for (unsigned i = 0; i < IWARP_NAMES; i++)
        if (t->of[i].used && memcmp(t->of[i].ends, ends, 36) == 0) {
            t->of[i].used = ++t->clock;
            return &t->of[i];
        }
    return NULL;
}

/* A direction begins, in place of the one unused for longest. */
static struct iwarp_names *begin(struct iwarp_names_table *t, const uint8_t ends[36], uint32_t seq)
{
    struct iwarp_names *s = find(t, ends);

    for (unsigned i = 0; !s && i < IWARP_NAMES; i++)
        s = t->of[i].used ? s : &t->of[i];
    for (unsigned i = 0; !s && i < IWARP_NAMES; i++)
        s = i == 0 || t->of[i].used < s->used ? &t->of[i] : s;
    *s = (struct iwarp_names){.used = ++t->clock, .front = {.next = seq, .start = true}, .again = {.unknown = true}};
    memcpy(s->ends, ends, 36);
    unit_begin(&s->front);
    return s;
}

/* The receiver of these bytes wants markers, or does not: in what it receives, the other direction. */
static void set_markers(struct iwarp_names_table *t, const struct pkt *p, const struct tcp *h, const uint8_t *b,
                        uint32_t n)
{
    struct iwarp_names *other;
    struct mpa_start m;
    uint8_t ends[36];

    ends_of(p, h, true, ends);
    if (!mpa_start_get(&m, b, n) || !m.markers)
        return;
    other = find(t, ends);
    if (!other)
        other = begin(t, ends, h->ack);
    other->markers = true;
    other->front.unknown |= !other->front.start;
}

/* A segment that does not follow the latest bytes: a retransmission, or one behind a gap. */
static void take_other(struct iwarp_names *s, const struct pseudonyms *names, uint32_t seq, const uint8_t *b,
                       uint32_t n, uint8_t *to)
{
    struct iwarp_place p = s->again;
    int32_t ahead;

    if (p.next != seq || p.unknown) {
        p.unknown = s->markers || !begins_fpdu(b, n);
        p.start = false;
        unit_begin(&p);
    }
    take(&p, names, s->markers, b, n, to);
    p.next = seq + n;
    ahead = (int32_t)(p.next - s->front.next);
    *(ahead > 0 || (ahead == 0 && s->front.unknown) ? &s->front : &s->again) = p;
}

void anonymize_iwarp(struct iwarp_names_table *t, const struct pseudonyms *names, const struct pkt *p, uint8_t *to)
{
    struct iwarp_names *s;
    uint8_t ends[36];
    struct tcp h;
    uint32_t n;
    const uint8_t *b = tcp_payload(p, &h, &n);

    if (!b)
        return;
    ends_of(p, &h, false, ends);
    s = find(t, ends);
    if (n >= MPA_START_LEN && mpa_key_of(b, n) != MPA_OTHER) {
        bool markers = s && s->markers;
        if (!s || s->front.next != h.seq || !s->front.start) {
            s = begin(t, ends, h.seq);
            s->markers = markers;
        }
        set_markers(t, p, &h, b, n);
        s = find(t, ends);
    }
    if (!s)
        return;
    to += b - p->data;
    if (h.seq == s->front.next && !s->front.unknown) {
        take(&s->front, names, s->markers, b, n, to);
        s->front.next = h.seq + n;
    } else {
        take_other(s, names, h.seq, b, n, to);
    }
}
