/* layer 1 (wire): parsing the TCP parameter exchange of test programs: hexadecimal words joined by colons. */
#include "dissect/ip/tcp_exchange.h"

#define TOKENS 32

static int hex_value(uint8_t c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* The hexadecimal words of a line: offset and number of digits of each. */
struct words {
    unsigned n;
    unsigned at[TOKENS], len[TOKENS];
};

/* Split the line, which ends after `len` bytes or at a NUL. False if it has anything but hexadecimal words and colons,
 * or more than TOKENS words. */
static bool words_split(struct words *w, const uint8_t *p, size_t len)
{
    w->n = 0;
    for (size_t i = 0; i < len && p[i];) {
        size_t start = i;
        while (i < len && hex_value(p[i]) >= 0)
            i++;
        if (i > start) {
            if (w->n == TOKENS)
                return false;
            w->at[w->n] = (unsigned)start;
            w->len[w->n++] = (unsigned)(i - start);
        }
        if (i < len && p[i] == ':')
            i++;
        else if (i < len && p[i])
            return false;
    }
    return true;
}

static uint32_t word_value(const struct words *w, unsigned i, const uint8_t *p)
{
    uint32_t v = 0;

    for (unsigned k = 0; k < w->len[i]; k++)
        v = v << 4 | (uint32_t)hex_value(p[w->at[i] + k]);
    return v;
}

/* Take the GID: 32 hexadecimal digits from word `first` on, with or without colons between them. A GID of zeros is no
 * address. */
static void take_gid(struct exchange *e, const struct words *w, unsigned first, const uint8_t *p)
{
    unsigned digits = 0;
    uint8_t gid[16] = {0}, any = 0;

    for (unsigned i = first; i < w->n && digits < 32; i++)
        for (unsigned k = 0; k < w->len[i] && digits < 32; k++, digits++)
            gid[digits / 2] = (uint8_t)(gid[digits / 2] << 4 | hex_value(p[w->at[i] + k]));
    for (unsigned i = 0; i < 16; i++)
        any |= gid[i];
    e->have_addr = digits == 32 && any;
    if (e->have_addr)
        memcpy(e->addr, gid, 16);
}

static void take_lid(struct exchange *e, uint32_t lid)
{
    memset(e->addr, 0, 16);
    store_be16(e->addr + 14, (uint16_t)lid);
    e->have_addr = true;
}

/* True if the first `n` words have these numbers of digits. */
static bool has_lengths(const struct words *w, const uint8_t *lengths, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (i >= w->n || w->len[i] != lengths[i])
            return false;
    return true;
}

bool exchange_parse(struct exchange *e, const uint8_t *p, size_t len)
{
    static const uint8_t pingpong[] = {4, 6, 6, 32}, perftest[] = {4, 4, 6, 6, 8, 16};
    struct words w;
    unsigned qpn;

    e->srqn = 0;
    if (len < 24 || len > 256 || !words_split(&w, p, len))
        return false;
    if (w.n == ARRAY_LEN(pingpong) && has_lengths(&w, pingpong, ARRAY_LEN(pingpong))) {
        qpn = 1;
        take_gid(e, &w, 3, p);
        if (!e->have_addr && !word_value(&w, 0, p))
            return false; /* a slot that the program has not filled */
    } else if (w.n > ARRAY_LEN(perftest) && has_lengths(&w, perftest, ARRAY_LEN(perftest))) {
        qpn = 2;
        e->have_addr = false;
        if (w.n >= 22)
            take_gid(e, &w, 6, p);
        if (w.n == ARRAY_LEN(perftest) + 1 || w.n == ARRAY_LEN(perftest) + 17)
            e->srqn = word_value(&w, w.n - 1, p);
    } else {
        return false;
    }
    if (!e->have_addr && word_value(&w, 0, p))
        take_lid(e, word_value(&w, 0, p));
    e->qpn = word_value(&w, qpn, p);
    e->psn = word_value(&w, qpn + 1, p);
    return e->qpn != 0;
}
