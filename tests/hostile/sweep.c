/* layer 4 (test): a frame is changed within its own connection: the capture is played up to it, and some packets on.
 *
 * One pass plays a capture once and changes every GAP-th frame or so of it, another byte in each pass: most of what
 * lies between two of them is as it was, so that each meets the state of its connection. Frames that set up a
 * connection, and its first ones, are changed alone: nothing behind them would be as it was. A pass ends soon behind
 * the last frame that it changes. Of long payloads only some bytes are changed: passes are as many as the longest frame
 * has changes. */
#include "dissect/ib/opcode.h"
#include "dissect/ip/ip.h"
#include "src/ulp/ulp.h"
#include "tests/fuzz/print.h"
#include "tests/hostile/hostile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROOM    (UINT64_C(16) << 20) /* memory of the context */
#define GAP     4                    /* frames between two that are changed in a pass */
#define BEHIND  8                    /* frames that a pass goes on behind the last one */
#define PRINTED 4                    /* frames behind a changed one that are printed, too */
#define FIRST   6                    /* frames of a connection that are changed alone */
#define WHOLE   320                  /* bytes of a payload that are all changed, */
#define DATA    64                   /* of READs and WRITEs these, */
#define SPARSE  8                    /* and of the rest every so many */

enum change { CUT, ALL_BITS, ONE_BIT, CHANGES };

static const struct decode_opts unverified;

static struct context *new_context(struct ulp_opts *opts)
{
    struct context *c = context_new(ROOM);

    if (!c || !ulp_of_context(c, opts)) {
        perror("context");
        exit(2);
    }
    return c;
}

static void take_over(void *user, const struct ulp_command *c)
{
    struct buf *b = user;

    b->len = 0;
    ulp_command_text(b, c);
    ulp_status_text(b, c);
}

/* `n` bytes at `bytes`, of which the wire carried `len`, in place of `k`; `p` is valid until the next call. */
static void note(struct context *c, struct pkt *p, const struct kept *k, const uint8_t *bytes, uint32_t n, uint32_t len)
{
    static struct frame f;

    f = k->frame;
    f.data = bytes;
    f.caplen = n;
    f.len = len;
    pkt_decode(p, &f, &unverified);
    context_note(c, p);
}

static bool is_upper(const struct pkt *p)
{
    return p->note.have & (NOTE_ULP | NOTE_UPPER);
}

/* --- Which bytes of which frames -------------------------------------------------------------- */

/* Data of READs and WRITEs: no decoder reads most of them. */
static bool has_data(const struct pkt *p)
{
    return p->have & H_BTH && p->op && p->op->flags & (OPF_WRITE | OPF_READ_RESP);
}

/* The byte that is changed `i`-th. */
static uint32_t byte_of(const struct kept *k, uint32_t i)
{
    return i < k->sparse_from ? i : k->sparse_from + (i - k->sparse_from) * SPARSE;
}

static uint32_t n_bytes(const struct kept *k)
{
    return k->sparse_from + (k->frame.caplen - k->sparse_from) / SPARSE;
}

void sweep_begin(struct sweep *s, struct kept *first)
{
    enum { CONNS = 4096 };
    static uint8_t seen[CONNS];
    static struct pkt p;
    struct ulp_opts none = {0};
    struct context *c = new_context(&none);

    memset(seen, 0, sizeof seen);
    *s = (struct sweep){.first = first};
    for (struct kept *k = first; k; k = k->behind) {
        note(c, &p, k, k->bytes, k->frame.caplen, k->frame.len);
        k->upper = is_upper(&p);
        k->sparse_from = min_u32(k->frame.caplen, p.payload_off + (has_data(&p) ? DATA : WHOLE));
        if (p.have & H_BTH && p.bth.dqpn == 1)
            k->alone = k->swept = true;
        if (p.note.have & NOTE_CONN) {
            k->swept = true;
            k->alone |= seen[p.note.conn % CONNS] < FIRST;
            seen[p.note.conn % CONNS] += seen[p.note.conn % CONNS] < FIRST;
        }
        k->all = k->swept ? CHANGES * n_bytes(k) : 0;
        s->all += k->all;
    }
    context_free(c);
}

/* --- Changes ---------------------------------------------------------------------------------- */

static void put16(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}

/* Make the packet `less` bytes shorter by the lengths of its IP and UDP headers. */
static void shorten(uint8_t *b, const struct pkt *p, uint32_t less)
{
    uint8_t *ip = b + p->ip_off + (p->have & H_IP4 ? 2 : 4), *udp = b + p->udp_off + 4;

    if (p->have & (H_IP4 | H_IP6))
        put16(ip, (uint32_t)(ip[0] << 8 | ip[1]) - less);
    if (p->have & H_UDP)
        put16(udp, (uint32_t)(udp[0] << 8 | udp[1]) - less);
}

/* The packet without the bytes of its payload from `i` on; its pad and ICRC follow. Without payload: cut there. Returns
 * its length. */
static uint32_t cut_at(const struct kept *k, uint8_t *copy, uint32_t i)
{
    static struct pkt p;
    struct frame f = k->frame;
    uint32_t end = f.caplen, less;

    f.data = k->bytes;
    pkt_decode(&p, &f, &unverified);
    if (p.have & H_BTH)
        end = p.payload_off + p.payload_cap;
    less = end > i ? end - i : 0;
    memmove(copy + i, copy + i + less, f.caplen - i - less);
    shorten(copy, &p, less);
    return f.caplen - less;
}

/* Change number `n` of the frame; in this order few of them are spread over all. Returns its length. */
static uint32_t change(const struct kept *k, uint8_t *copy, uint32_t n)
{
    uint32_t at = (uint32_t)((uint64_t)n * 2654435761u % k->all), i = byte_of(k, at / CHANGES);

    sweep_now = (struct sweep_now){k->frame.number, i, at % CHANGES};
    if (at % CHANGES == CUT)
        return cut_at(k, copy, i);
    copy[i] ^= at % CHANGES == ALL_BITS ? 0xff : (uint8_t)(1u << (i * 5 % 8));
    return k->frame.caplen;
}

/* --- Passes ----------------------------------------------------------------------------------- */

struct sweep_now sweep_now;

static bool is_left(const struct kept *k, bool alone)
{
    return k->swept && k->alone == alone && k->done < k->all;
}

/* One that is changed alone; NULL: none is left. */
static struct kept *choose_alone(struct sweep *s)
{
    for (struct kept *k = s->first; k; k = k->behind)
        if (is_left(k, true) && k->done <= s->rounds) {
            k->chosen = true;
            return k;
        }
    s->rounds++;
    for (struct kept *k = s->first; k; k = k->behind)
        if (is_left(k, true)) {
            k->chosen = true;
            return k;
        }
    return NULL;
}

/* Those that are changed in the next pass; the last one, NULL: none are left. */
static struct kept *choose(struct sweep *s)
{
    unsigned since = (unsigned)(s->passes / 2 % GAP); /* others in each pass */
    struct kept *last = NULL;

    for (struct kept *k = s->first; k; k = k->behind, since++)
        if (since >= GAP && is_left(k, false)) {
            k->chosen = true;
            last = k;
            since = 0;
        }
    if (last)
        return last;
    for (struct kept *k = s->first; k && !last; k = k->behind)
        if (is_left(k, false))
            (last = k)->chosen = true;
    return last;
}

static void print_in_turn(struct pkt *p)
{
    static const enum print_format formats[] = {PRINT_NDJSON, PRINT_TEXT, PRINT_FIELDS};
    static struct buf b;
    static unsigned turn;

    print_with(&b, p, formats[turn++ % ARRAY_LEN(formats)], false);
}

/* A frame that is changed, in memory of exactly its size. */
static void play_changed(struct context *c, struct kept *k)
{
    static struct pkt p;
    uint8_t *copy = malloc(k->frame.caplen), *fit;
    uint32_t n;

    memcpy(copy, k->bytes, k->frame.caplen);
    n = change(k, copy, k->done++);
    k->chosen = false;
    fit = malloc(n ? n : 1);
    memcpy(fit, copy, n);
    free(copy);
    note(c, &p, k, fit, n, n < k->frame.caplen ? n : k->frame.len);
    print_in_turn(&p);
    free(fit);
}

bool sweep_pass(struct sweep *s)
{
    static struct buf text;
    static struct pkt p;
    struct ulp_opts opts = {.user = &text, .over = take_over};
    struct kept *last = s->passes % 2 ? choose_alone(s) : choose(s);
    unsigned behind = PRINTED;
    struct context *c;

    if (!last)
        last = s->passes % 2 ? choose(s) : choose_alone(s);
    s->passes++;
    if (!last)
        return false;
    c = new_context(&opts);
    for (struct kept *k = s->first; k && !(last == NULL && behind >= BEHIND); k = k->behind, s->packets++) {
        if (k->chosen) {
            last = k == last ? NULL : last;
            play_changed(c, k);
            s->done++;
            behind = 0;
            continue;
        }
        note(c, &p, k, k->bytes, k->frame.caplen, k->frame.len);
        s->upper += k->upper;
        s->upper_now += k->upper && is_upper(&p);
        if (behind++ < PRINTED)
            print_in_turn(&p);
    }
    context_free(c);
    return true;
}
