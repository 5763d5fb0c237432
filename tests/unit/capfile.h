/* layer 1 (io) tests: capture files built byte by byte. */
#ifndef RDMATRACE_TEST_CAPFILE_H
#define RDMATRACE_TEST_CAPFILE_H

#include "src/cap/cap.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* A file that is being built; `be` selects the byte order of integers. */
struct made {
    uint8_t p[1 << 18];
    size_t len;
    bool be;
};

static inline void put16(struct made *m, uint16_t v)
{
    uint8_t b[2] = {(uint8_t)(m->be ? v >> 8 : v), (uint8_t)(m->be ? v : v >> 8)};
    memcpy(m->p + m->len, b, 2);
    m->len += 2;
}
static inline void put32(struct made *m, uint32_t v)
{
    put16(m, (uint16_t)(m->be ? v >> 16 : v));
    put16(m, (uint16_t)(m->be ? v : v >> 16));
}
static inline void put64(struct made *m, uint64_t v)
{
    put32(m, (uint32_t)(m->be ? v >> 32 : v));
    put32(m, (uint32_t)(m->be ? v : v >> 32));
}
/* Append `n` bytes that identify frame `seed`. */
static inline void put_data(struct made *m, unsigned seed, size_t n)
{
    for (size_t i = 0; i < n; i++)
        m->p[m->len++] = (uint8_t)(seed * 31 + i);
}
static inline void put_pad(struct made *m)
{
    while (m->len % 4)
        m->p[m->len++] = 0;
}

static inline void put_pcap_header(struct made *m, uint32_t magic, uint32_t link)
{
    put32(m, magic);
    put16(m, 2);
    put16(m, 4);
    put64(m, 0);
    put32(m, 65535);
    put32(m, link);
}
static inline void put_pcap_record(struct made *m, uint32_t sec, uint32_t frac, unsigned seed, uint32_t caplen,
                                   uint32_t len, bool modified)
{
    put32(m, sec);
    put32(m, frac);
    put32(m, caplen);
    put32(m, len);
    if (modified)
        put64(m, 0x1122334455667788);
    put_data(m, seed, caplen);
}

/* Blocks: open one, fill it, close it. */
static inline size_t block_open(struct made *m, uint32_t type)
{
    put32(m, type);
    put32(m, 0);
    return m->len - 8;
}
static inline void block_close(struct made *m, size_t at)
{
    put_pad(m);
    uint32_t len = (uint32_t)(m->len - at + 4);
    size_t end = m->len;
    m->len = at + 4;
    put32(m, len);
    m->len = end;
    put32(m, len);
}
static inline void put_option(struct made *m, uint16_t code, const void *p, uint16_t len)
{
    put16(m, code);
    put16(m, len);
    if (len)
        memcpy(m->p + m->len, p, len);
    m->len += len;
    put_pad(m);
}
static inline void put_option32(struct made *m, uint16_t code, uint32_t v)
{
    put16(m, code);
    put16(m, 4);
    put32(m, v);
}
static inline void put_option64(struct made *m, uint16_t code, uint64_t v)
{
    put16(m, code);
    put16(m, 8);
    put64(m, v);
}
static inline void put_section(struct made *m)
{
    size_t at = block_open(m, 0x0a0d0d0a);
    put32(m, 0x1a2b3c4d);
    put16(m, 1);
    put16(m, 0);
    put64(m, UINT64_MAX);
    put_option(m, 2, "switch", 6);
    put_option(m, 4, "test", 4);
    put_option(m, 0, NULL, 0);
    block_close(m, at);
}
/* Resolution -1 and offset 0: the options are left out. */
static inline void put_interface(struct made *m, uint16_t link, uint32_t snaplen, const char *name, int tsresol,
                                 int64_t tsoffset)
{
    size_t at = block_open(m, 1);
    put16(m, link);
    put16(m, 0);
    put32(m, snaplen);
    if (name)
        put_option(m, 2, name, (uint16_t)strlen(name));
    if (tsresol >= 0)
        put_option(m, 9, &(uint8_t){(uint8_t)tsresol}, 1);
    if (tsoffset)
        put_option64(m, 14, (uint64_t)tsoffset);
    block_close(m, at);
}
/* What precedes the frames of a capture of Ethernet, with times in ns. */
static inline void put_ethernet(struct made *m, bool pcapng)
{
    if (pcapng) {
        put_section(m);
        put_interface(m, LINK_ETHERNET, 0, "eth0", 9, 0);
    } else {
        put_pcap_header(m, 0xa1b23c4d, LINK_ETHERNET);
    }
}
static inline size_t packet_open(struct made *m, uint32_t iface, uint64_t ts, unsigned seed, uint32_t caplen,
                                 uint32_t len)
{
    size_t at = block_open(m, 6);
    put32(m, iface);
    put32(m, (uint32_t)(ts >> 32));
    put32(m, (uint32_t)ts);
    put32(m, caplen);
    put32(m, len);
    put_data(m, seed, caplen);
    put_pad(m);
    return at;
}
static inline void put_packet(struct made *m, uint32_t iface, uint64_t ts, unsigned seed, uint32_t caplen, uint32_t len)
{
    block_close(m, packet_open(m, iface, ts, seed, caplen, len));
}
static inline void put_simple(struct made *m, unsigned seed, uint32_t caplen, uint32_t len)
{
    size_t at = block_open(m, 3);
    put32(m, len);
    put_data(m, seed, caplen);
    block_close(m, at);
}

/* An ERF record of type InfiniBand, padded to 8 bytes. */
static inline void put_erf(struct made *m, uint64_t ts, unsigned seed, uint16_t wlen, unsigned ext)
{
    uint16_t body = (uint16_t)(16 + 8 * ext + wlen), rlen = (uint16_t)((body + 7) & ~7);
    m->be = false;
    put64(m, ts);
    m->be = true;
    m->p[m->len++] = ext ? 0x80 | 21 : 21;
    m->p[m->len++] = 4;
    put16(m, rlen);
    put16(m, 0);
    put16(m, wlen);
    for (unsigned i = 1; i <= ext; i++)
        put64(m, i < ext ? UINT64_C(0x85) << 56 : UINT64_C(0x05) << 56);
    put_data(m, seed, wlen);
    while (m->len % 8)
        m->p[m->len++] = 0;
}

/* A new temporary file with `n` bytes; its name in static memory. */
static inline const char *file_of(const void *p, size_t n)
{
    static char names[4][64];
    static unsigned turn;
    char *name = names[turn++ % 4];
    snprintf(name, sizeof names[0], "/tmp/rdmatrace-test-%d-XXXXXX", (int)getpid());
    int fd = mkstemp(name);
    cr_assert(fd >= 0 && write(fd, p, n) == (ssize_t)n);
    close(fd);
    return name;
}
static inline struct cap *open_made(const struct made *m, const struct cap_opts *opts)
{
    struct cap_error e;
    struct cap *c = NULL;
    const char *name = file_of(m->p, m->len);
    cr_assert_eq(cap_open(&c, name, 7, opts, &e), 0, "%s", e.msg);
    unlink(name);
    return c;
}
/* The next frame must be frame `seed`, of `caplen` bytes, at time `ts`. */
static inline void expect_frame(struct cap *c, unsigned seed, uint32_t caplen, uint32_t len, ns_t ts)
{
    struct frame f;
    int rc = cap_next(c, &f);
    cr_assert_eq(rc, 1, "%d %s", rc, cap_error(c)->msg);
    cr_expect_eq(f.caplen, caplen);
    cr_expect_eq(f.len, len);
    cr_expect_eq(f.ts, ts, "%lld, want %lld", (long long)f.ts, (long long)ts);
    cr_expect_eq(f.file, 7);
    cr_expect(f.has_ts);
    for (uint32_t i = 0; i < f.caplen && i < caplen; i++)
        cr_assert_eq(f.data[i], (uint8_t)(seed * 31 + i), "byte %u", i);
}
static inline void expect_end(struct cap *c)
{
    struct frame f;
    cr_expect_eq(cap_next(c, &f), 0, "%s", cap_error(c)->msg);
    cr_expect_eq(cap_next(c, &f), 0);
    cap_close(c);
}

#endif
