/* layer 4 (test): a frame is changed within its own connection, whose state is that of the packets before it. */
#include "dissect/ib/opcode.h"
#include "dissect/ip/ip.h"
#include "src/ulp/ulp.h"
#include "tests/fuzz/print.h"
#include "tests/hostile/hostile.h"

#include <stdlib.h>
#include <string.h>

#define ROOM (UINT64_C(1) << 20) /* memory of the context */

/* Packets that come with the one that is changed: MADs between its two hosts, the first ones of its connection (which
 * MPA's are), the latest before it, and those behind it. */
enum { SETUPS = 6, FIRST = 4, LATEST = 8, BEHIND = 4, MOST = SETUPS + FIRST + LATEST + BEHIND };

struct others {
    const struct kept *before[MOST], *behind[BEHIND];
    unsigned n_before, n_behind;
};

static const struct decode_opts unverified;

static uint32_t hash(const uint8_t *p, size_t n)
{
    uint32_t h = 2166136261u;

    while (n--)
        h = (h ^ *p++) * 16777619u;
    return h;
}

/* `p` is valid until the next call. */
static void note(struct context *c, struct pkt *p, const struct kept *k)
{
    static struct frame f;

    f = k->frame;
    f.data = k->bytes;
    pkt_decode(p, &f, &unverified);
    context_note(c, p);
}

static void take_over(void *user, const struct ulp_command *c)
{
    struct buf *b = user;

    b->len = 0;
    ulp_command_text(b, c);
    ulp_status_text(b, c);
}

static struct context *new_context(void)
{
    static struct buf text;
    struct context *c = context_new(ROOM);

    if (!c || !ulp_of_context(c, &(struct ulp_opts){.user = &text, .over = take_over})) {
        perror("context");
        exit(2);
    }
    return c;
}

static bool is_upper(const struct pkt *p)
{
    return p->note.have & (NOTE_ULP | NOTE_UPPER);
}

void find_connections(struct kept *first)
{
    static struct pkt p;
    struct context *c = new_context();

    for (struct kept *k = first; k; k = k->behind) {
        note(c, &p, k);
        if (p.note.have & NOTE_CONN)
            k->conn = p.note.conn;
        k->upper = is_upper(&p);
        if (p.addr_len > 0)
            k->pair = hash(p.src, p.addr_len) + hash(p.dst, p.addr_len);
        k->setup = p.have & H_BTH && p.bth.dqpn == 1;
    }
    context_free(c);
}

static bool is_of_same(const struct kept *k, const struct kept *other)
{
    return k->pair != 0 && other->pair == k->pair && (other->conn == k->conn || (k->setup && other->setup));
}

static int by_number(const void *a, const void *b)
{
    const struct kept *x = *(const struct kept *const *)a, *y = *(const struct kept *const *)b;

    return x->frame.number < y->frame.number ? -1 : x->frame.number > y->frame.number;
}

static void choose_before(struct others *o, const struct kept *k)
{
    const struct kept *first[FIRST];
    unsigned latest = 0, setups = 0, n_first = 0;

    o->n_before = 0;
    for (const struct kept *b = k->before; b; b = b->before) {
        bool same = is_of_same(k, b), setup = b->setup && b->pair == k->pair;

        if (same ? latest++ < LATEST : setup && setups++ < SETUPS)
            o->before[o->n_before++] = b;
        else if (same || (b->pair == k->pair && b->conn == 0))
            first[n_first++ % FIRST] = b; /* the last ones that are found are the first ones of the file */
    }
    for (unsigned i = 0; i < FIRST && i < n_first; i++)
        o->before[o->n_before++] = first[i];
    qsort(o->before, o->n_before, sizeof *o->before, by_number);
}

static void choose_behind(struct others *o, const struct kept *k)
{
    unsigned left = 64; /* frames that are looked at */

    o->n_behind = 0;
    for (const struct kept *b = k->behind; b && left > 0 && o->n_behind < BEHIND; b = b->behind, left--)
        if (is_of_same(k, b))
            o->behind[o->n_behind++] = b;
}

static const struct others *others_of(const struct kept *k)
{
    static struct others others;
    static const struct kept *of;

    if (of != k) {
        choose_before(&others, k);
        choose_behind(&others, k);
        of = k;
    }
    return &others;
}

static void print_in_turn(struct pkt *p)
{
    static const enum print_format formats[] = {PRINT_NDJSON, PRINT_TEXT, PRINT_FIELDS};
    static struct buf b;
    static unsigned turn;

    print_with(&b, p, formats[turn++ % ARRAY_LEN(formats)], false);
}

/* `n` bytes at `bytes`, in memory of exactly that size, in place of `k`. */
static void play(const struct kept *k, const uint8_t *bytes, uint32_t n, const struct others *o)
{
    static struct pkt p;
    struct context *c = new_context();
    struct frame f = k->frame;
    uint8_t *copy = malloc(n ? n : 1);

    for (unsigned i = 0; i < o->n_before; i++)
        note(c, &p, o->before[i]);
    memcpy(copy, bytes, n);
    f.data = copy;
    f.caplen = n;
    f.len = n < k->frame.caplen ? n : k->frame.len;
    pkt_decode(&p, &f, &unverified);
    context_note(c, &p);
    print_in_turn(&p);
    for (unsigned i = 0; i < o->n_behind; i++) {
        note(c, &p, o->behind[i]);
        print_in_turn(&p);
    }
    context_free(c);
    free(copy);
}

bool is_upper_in_state(const struct kept *k)
{
    static struct pkt p;
    const struct others *o = others_of(k);
    struct context *c = new_context();

    for (unsigned i = 0; i < o->n_before; i++)
        note(c, &p, o->before[i]);
    note(c, &p, k);
    context_free(c);
    return is_upper(&p);
}

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

bool has_state(const struct kept *k)
{
    return k->conn != 0 || k->setup;
}

/* The packet without the bytes of its payload from `i` on; its pad and ICRC follow. Without payload: cut there. */
static void play_cut(const struct kept *k, uint32_t i, const struct others *o)
{
    static struct pkt p;
    struct frame f = k->frame;
    uint8_t *copy = malloc(f.caplen);
    uint32_t end = f.caplen, less;

    f.data = k->bytes;
    pkt_decode(&p, &f, &unverified);
    memcpy(copy, k->bytes, f.caplen);
    if (p.have & H_BTH)
        end = p.payload_off + p.payload_cap;
    less = end > i ? end - i : 0;
    memmove(copy + i, copy + i + less, f.caplen - i - less);
    shorten(copy, &p, less);
    play(k, copy, f.caplen - less, o);
    free(copy);
}

uint64_t disturb_in_state(struct kept *k, uint32_t i)
{
    const struct others *o = others_of(k);
    uint8_t was = k->bytes[i];

    play_cut(k, i, o);
    k->bytes[i] = i % 2 ? (uint8_t)~was : was ^ (uint8_t)(1u << (i / 2 % 8));
    play(k, k->bytes, k->frame.caplen, o);
    k->bytes[i] = was;
    return 2ull * (o->n_before + 1 + o->n_behind);
}
