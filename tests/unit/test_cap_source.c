/* layer 1 (io) tests: buffers, pipes, compression, and files that are cut, corrupt or shrink. */
#include "tests/unit/capfile.h"

#include <errno.h>
#include <zlib.h>
#include <zstd.h>

enum { PCAP, PCAPNG, ERF, FORMATS };

/* A file of `n` frames, of which frame k is of `size(k)` bytes; at[k] is where its record begins, at[n] the file's
 * end. */
static void make(struct made *m, int format, unsigned n, uint32_t (*size)(unsigned), size_t *at)
{
    if (format != ERF)
        put_ethernet(m, format == PCAPNG);
    for (unsigned k = 0; k < n; k++) {
        at[k] = m->len;
        if (format == PCAP)
            put_pcap_record(m, k, 0, k, size(k), size(k), false);
        else if (format == PCAPNG)
            put_packet(m, 0, k * UINT64_C(1000000000), k, size(k), size(k));
        else
            put_erf(m, (uint64_t)(k + 1) << 32, k, (uint16_t)size(k), 0);
    }
    at[n] = m->len;
}

/* Frame `k` of make(). */
static void expect_made(const struct frame *f, int format, unsigned k, uint32_t size)
{
    const uint8_t *data = f->data + (format == ERF ? 16 : 0);
    cr_assert_eq(f->number, k + 1);
    cr_assert_geq(f->caplen, size);
    cr_assert_eq(f->ts, (ns_t)(format == ERF ? k + 1 : k) * NS_PER_S);
    for (uint32_t i = 0; i < size; i++)
        cr_assert_eq(data[i], (uint8_t)(k * 31 + i), "frame %u byte %u", k, i);
}

static uint32_t all_sizes(unsigned k)
{
    return k * 37 % 3000;
}
static uint32_t small_sizes(unsigned k)
{
    return 20 + k * 5;
}

static struct made big;
static size_t big_at[101];

static void check_whole(const char *name, int format, const struct cap_opts *opts, enum cap_compression packed)
{
    struct cap_error e;
    struct cap *c;
    struct frame f;

    cr_assert_eq(cap_open(&c, name, 0, opts, &e), 0, "%s", e.msg);
    for (unsigned k = 0; k < 100; k++) {
        cr_assert_eq(cap_next(c, &f), 1, "%s", cap_error(c)->msg);
        expect_made(&f, format, k, all_sizes(k));
        cr_assert_eq(f.offset, big_at[k]);
    }
    cr_expect_eq(cap_info(c)->compression, packed);
    expect_end(c);
}

Test(cap_source, frames_straddle_the_buffer_and_exceed_it)
{
    for (int format = 0; format < FORMATS; format++) {
        big = (struct made){0};
        make(&big, format, 100, all_sizes, big_at);
        const char *name = file_of(big.p, big.len);
        for (size_t buffer = 4; buffer <= 65536; buffer *= 2)
            check_whole(name, format, &(struct cap_opts){.buffer = buffer}, CAP_PLAIN);
        check_whole(name, format, NULL, CAP_PLAIN);
        unlink(name);
    }
}

/* gzip of `n` bytes at `p`, appended to out. */
static size_t gzip_to(uint8_t *out, size_t cap, const void *p, size_t n)
{
    z_stream z = {0};
    cr_assert_eq(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (Bytef *)p;
    z.avail_in = (uInt)n;
    z.next_out = out;
    z.avail_out = (uInt)cap;
    cr_assert_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return cap - z.avail_out;
}
static size_t zstd_to(uint8_t *out, size_t cap, const void *p, size_t n)
{
    size_t len = ZSTD_compress(out, cap, p, n, 3);
    cr_assert_not(ZSTD_isError(len));
    return len;
}

static uint8_t packed[1 << 18];

Test(cap_source, gzip_and_zstd_equal_plain_also_in_several_members)
{
    for (int format = 0; format < FORMATS; format++) {
        big = (struct made){0};
        make(&big, format, 100, all_sizes, big_at);
        for (int zstd = 0; zstd < 2; zstd++) {
            size_t (*pack)(uint8_t *, size_t, const void *, size_t) = zstd ? zstd_to : gzip_to;
            size_t n = pack(packed, sizeof packed, big.p, 1001);
            n += pack(packed + n, sizeof packed - n, big.p + 1001, 0);
            n += pack(packed + n, sizeof packed - n, big.p + 1001, big.len - 1001);
            const char *name = file_of(packed, n);
            check_whole(name, format, NULL, zstd ? CAP_ZSTD : CAP_GZIP);
            unlink(name);
        }
    }
}

Test(cap_source, compressed_data_that_end_early_or_are_damaged_are_reported)
{
    struct cap_error e;
    struct frame f;
    struct cap *c;

    big = (struct made){0};
    make(&big, PCAP, 100, all_sizes, big_at);
    for (int zstd = 0; zstd < 2; zstd++) {
        size_t n = (zstd ? zstd_to : gzip_to)(packed, sizeof packed, big.p, big.len);
        for (int damage = 0; damage < 2; damage++) {
            if (damage)
                memset(packed + n / 2, 0x5a, 16);
            const char *name = file_of(packed, damage ? n : n - 10);
            int rc = cap_open(&c, name, 0, NULL, &e);
            if (rc == 0) {
                unsigned k = 0;
                while ((rc = cap_next(c, &f)) == 1)
                    k++;
                e = *cap_error(c);
                cr_expect(e.unpacked);
                cr_expect_eq(e.frame, k + 1);
                cap_close(c);
            }
            cr_expect_lt(rc, 0);
            /* Corrupt gzip data may unpack to garbage before the checksum shows it. */
            if (!damage)
                cr_expect_str_eq(e.msg, zstd ? "zstd: the compressed data end in the middle"
                                             : "gzip: the compressed data end in the middle");
            unlink(name);
        }
    }
}

/* Cut a small file at every byte: all complete frames are read, then the error with the offset of the cut record. */
static void check_cuts(int format, size_t buffer)
{
    struct made m = {0};
    size_t at[6];
    struct frame f;

    make(&m, format, 5, small_sizes, at);
    for (size_t cut = 0; cut <= m.len; cut++) {
        struct cap_error e;
        struct cap *c;
        const char *name = file_of(m.p, cut);
        unsigned whole = 0;
        while (whole < 5 && at[whole + 1] <= cut)
            whole++;
        int rc = cap_open(&c, name, 0, &(struct cap_opts){.buffer = buffer}, &e);
        unlink(name);
        if (rc < 0) {
            cr_expect(cut < at[format == ERF], "cut at %zu: %s", cut, e.msg);
            continue;
        }
        for (unsigned k = 0; k < whole; k++) {
            cr_assert_eq(cap_next(c, &f), 1, "cut at %zu frame %u: %s", cut, k, cap_error(c)->msg);
            expect_made(&f, format, k, small_sizes(k));
        }
        rc = cap_next(c, &f);
        if (cut == at[whole]) {
            cr_expect_eq(rc, 0, "cut at %zu", cut);
        } else if (cut > at[0]) {
            char want[64];
            snprintf(want, sizeof want, "the file ends after %zu", cut - at[whole]);
            cr_expect_eq(rc, -EINVAL);
            cr_expect_eq(cap_error(c)->offset, at[whole]);
            cr_expect_eq(cap_error(c)->frame, whole + 1);
            cr_expect(strstr(cap_error(c)->msg, want), "cut at %zu: %s", cut, cap_error(c)->msg);
        }
        cap_close(c);
    }
}

Test(cap_source, truncated_record_is_reported_with_its_offset)
{
    for (int format = 0; format < FORMATS; format++) {
        check_cuts(format, 0);
        check_cuts(format, 16);
    }
}

Test(cap_source, an_error_is_one_line_with_file_byte_and_expectation)
{
    struct made m = {0};
    struct frame f;
    struct buf line = {0};
    put_pcap_header(&m, 0xa1b2c3d4, LINK_ETHERNET);
    put_pcap_record(&m, 0, 0, 1, 1500, 1500, false);
    m.len = 24 + 16 + 812;
    struct cap *c = open_made(&m, NULL);
    cr_expect_eq(cap_next(c, &f), -EINVAL);
    cap_error_line(cap_error(c), &line);
    cr_expect(strstr(buf_str(&line), ": byte 24, frame 1: packet record of 1516 bytes, the file ends after 828"), "%s",
              buf_str(&line));
    buf_free(&line);
    cap_close(c);
}

Test(cap_source, an_error_at_opening_has_no_frame_and_a_missing_file_no_byte)
{
    struct cap_error e;
    struct cap *c;
    struct buf line = {0};
    char want[100];
    const char *name = file_of("", 0);
    cr_expect_eq(cap_open(&c, name, 0, NULL, &e), -EINVAL);
    cap_error_line(&e, &line);
    snprintf(want, sizeof want, "%s: byte 0: the file is empty, not a capture", name);
    cr_expect_str_eq(buf_str(&line), want);
    unlink(name);
    line.len = 0;
    cr_expect_eq(cap_open(&c, "/nonexistent", 0, NULL, &e), -ENOENT);
    cap_error_line(&e, &line);
    cr_expect_str_eq(buf_str(&line), "/nonexistent: No such file or directory");
    buf_free(&line);
}

Test(cap_source, too_many_interfaces_are_an_error)
{
    static struct made m;
    struct cap_error e;
    struct cap *c;
    struct frame f;
    put_section(&m);
    size_t head = m.len;
    for (unsigned i = 0; i < 8192; i++)
        put_interface(&m, LINK_ETHERNET, 0, NULL, -1, 0);
    const char *name = file_of(m.p, m.len);
    int fd = open(name, O_WRONLY | O_APPEND);
    for (unsigned i = 1; i < 9; i++)
        cr_assert_eq(write(fd, m.p + head, m.len - head), (ssize_t)(m.len - head));
    close(fd);
    cr_assert_eq(cap_open(&c, name, 0, NULL, &e), 0);
    cr_expect_eq(cap_next(c, &f), -EINVAL);
    cr_expect_str_eq(cap_error(c)->msg, "interface number 65537, at most 65536 are read");
    cr_expect_eq(cap_error(c)->offset, head + 65536 * 20);
    cap_close(c);
    unlink(name);
}

/* The error of the second frame after 32 bits at `where` of its record (or of the end of a block) were changed. */
static void expect_lie(int format, long where, uint32_t value, const char *want)
{
    struct made m = {0};
    size_t at[4];
    struct frame f;
    make(&m, format, 3, small_sizes, at);
    store_le32(m.p + (long)at[1] + where, value);
    for (size_t buffer = 0; buffer <= 16; buffer += 16) {
        struct cap *c = open_made(&m, &(struct cap_opts){.buffer = buffer});
        cr_assert_eq(cap_next(c, &f), 1);
        cr_expect_eq(cap_next(c, &f), -EINVAL);
        cr_expect_eq(cap_next(c, &f), -EINVAL, "the error stays");
        cr_expect_eq(cap_error(c)->offset, at[1]);
        cr_expect_str_eq(cap_error(c)->msg, want, "%s", cap_error(c)->msg);
        cap_close(c);
    }
}

Test(cap_source, lengths_that_lie_are_errors_at_their_record)
{
    expect_lie(PCAP, 8, FRAME_MAX + 1, "captured length of 262145 bytes, at most 262144 can be");
    expect_lie(PCAP, 8, UINT32_MAX, "captured length of 4294967295 bytes, at most 262144 can be");
    expect_lie(PCAP, 8, FRAME_MAX, "packet record of 262160 bytes, the file ends after 87");
    expect_lie(PCAPNG, 4, 0, "block of type 0x6 with a length of 0: too short");
    expect_lie(PCAPNG, 4, 31, "block of type 0x6 with a length of 31: not a multiple of 4");
    expect_lie(PCAPNG, 4, 56, "block of 56 bytes ends with a length of 55");
    expect_lie(PCAPNG, 4, 0xfffffffc, "block of type 0x6 with a length of 4294967292, at most 2097152 are read");
    expect_lie(PCAPNG, 4, 0x1ffffc, "block of 2097148 bytes, the file ends after 124");
    expect_lie(PCAPNG, 8, 1, "packet of interface 1, the section has 1");
    expect_lie(PCAPNG, 20, 29, "captured length of 29 bytes in a block that has room for 28");
    expect_lie(PCAPNG, 20, UINT32_MAX, "captured length of 4294967295 bytes, at most 262144 can be");
}

Test(cap_source, false_option_lengths_are_errors)
{
    struct made m = {0};
    struct frame f;
    put_section(&m);
    put_interface(&m, LINK_ETHERNET, 0, NULL, 9, 0);
    size_t at = packet_open(&m, 0, 1, 1, 4, 4);
    put16(&m, 1);
    put16(&m, 9);
    put_data(&m, 1, 8);
    block_close(&m, at);
    struct cap *c = open_made(&m, NULL);
    cr_expect_eq(cap_next(c, &f), -EINVAL);
    cr_expect_str_eq(cap_error(c)->msg, "option 1 of 9 bytes, only 8 left in its block");
    cap_close(c);
}

Test(cap_source, a_block_of_other_type_may_be_longer_than_memory)
{
    /* 3 GiB of zeros inside a custom block, as a sparse file. */
    struct made m = {0};
    struct cap_error e;
    struct cap *c;
    struct frame f;
    uint32_t len = UINT32_C(3) << 30;
    put_section(&m);
    put_interface(&m, LINK_ETHERNET, 0, NULL, 9, 0);
    put32(&m, 0x0bad);
    put32(&m, len);
    const char *name = file_of(m.p, m.len);
    int fd = open(name, O_WRONLY);
    off_t end = (off_t)(m.len - 8 + len);
    m.len = 0;
    put32(&m, len);
    put_packet(&m, 0, 77, 5, 10, 10);
    cr_assert_eq(pwrite(fd, m.p, m.len, end - 4), (ssize_t)m.len);
    close(fd);
    cr_assert_eq(cap_open(&c, name, 7, NULL, &e), 0);
    expect_frame(c, 5, 10, 10, 77);
    cr_expect_eq(cap_next(c, &f), 0);
    cap_close(c);
    unlink(name);
}

/* A pcap file of `n` records of 1000 bytes, each of which counts its frame. */
static const char *long_file(unsigned n)
{
    static struct made m;
    char *name = (char *)file_of("", 0);
    int fd = open(name, O_WRONLY);
    m.len = 0;
    put_pcap_header(&m, 0xa1b2c3d4, LINK_ETHERNET);
    for (unsigned k = 0; k < n; k++) {
        put_pcap_record(&m, k, 0, k, 984, 984, false);
        if (m.len > 100000 || k == n - 1) {
            cr_assert_eq(write(fd, m.p, m.len), (ssize_t)m.len);
            m.len = 0;
        }
    }
    close(fd);
    return name;
}

/* A file of 1000 records, read 64 KiB at once, that is cut to `size` bytes after its first frame: so many frames come,
 * then an error at that byte. */
static void check_shrinking(off_t size, uint64_t frames, uint64_t offset)
{
    char want[80];
    struct cap_error e;
    struct cap *c;
    struct frame f;
    const char *name = long_file(1000);
    uint64_t n = 0;
    int rc;

    cr_assert_eq(cap_open(&c, name, 0, &(struct cap_opts){.buffer = 65536}, &e), 0);
    for (; (rc = cap_next(c, &f)) == 1; n++) {
        expect_made(&f, PCAP, (unsigned)n, 984);
        if (n == 0)
            cr_assert_eq(truncate(name, size), 0);
    }
    snprintf(want, sizeof want, "the file shrank to %lld bytes while it was read", (long long)size);
    cr_expect_eq(rc, -EIO);
    cr_expect_eq(n, frames, "%llu", (unsigned long long)n);
    cr_expect_eq(cap_next(c, &f), -EIO, "the error stays");
    cr_expect_eq(cap_error(c)->offset, offset);
    cr_expect_eq(cap_error(c)->frame, frames + 1);
    cr_expect_str_eq(cap_error(c)->msg, want, "%s", cap_error(c)->msg);
    cap_close(c);
    unlink(name);
}

Test(cap_source, a_file_that_shrinks_gives_what_it_still_has_and_an_error)
{
    check_shrinking(500000, 499, 24 + 499 * 1000);          /* in the middle of a record */
    check_shrinking(24 + 500 * 1000, 500, 24 + 500 * 1000); /* between two */
    check_shrinking(0, 65, 24 + 65 * 1000);                 /* frames that were read before remain valid */
}

Test(cap_source, a_packed_file_that_shrinks_is_an_error)
{
    struct cap_error e;
    struct cap *c;
    struct frame f;
    int rc;
    unsigned n = 0;

    big = (struct made){0};
    make(&big, PCAP, 100, all_sizes, big_at);
    const char *name = file_of(packed, gzip_to(packed, sizeof packed, big.p, big.len));
    cr_assert_eq(cap_open(&c, name, 0, &(struct cap_opts){.buffer = 512}, &e), 0);
    cr_assert_eq(truncate(name, 1024), 0);
    while ((rc = cap_next(c, &f)) == 1)
        expect_made(&f, PCAP, n, all_sizes(n)), n++;
    cr_expect_eq(rc, -EIO);
    cr_expect_gt(n, 0);
    cr_expect_str_eq(cap_error(c)->msg, "the file shrank to 1024 bytes while it was read", "%s", cap_error(c)->msg);
    cap_close(c);
    unlink(name);
}

/* Frames since the bytes moved last. */
static struct held {
    struct frame f[100];
    unsigned n, most, moves;
} held;

static void check_held(void *user)
{
    struct held *h = user;

    for (unsigned i = 0; i < h->n; i++)
        expect_made(&h->f[i], PCAP, (unsigned)h->f[i].number - 1, all_sizes((unsigned)h->f[i].number - 1));
    h->most = h->n > h->most ? h->n : h->most;
    h->moves++;
    h->n = 0;
}

Test(cap_source, frames_stay_where_they_are_until_they_are_said_to_move)
{
    struct cap_opts o = {.buffer = 16384, .moving = check_held, .user = &held};

    big = (struct made){0};
    make(&big, PCAP, 100, all_sizes, big_at);
    struct cap *c = open_made(&big, &o);
    while (cap_next(c, &held.f[held.n]) == 1)
        held.n++;
    check_held(&held);
    cr_expect_gt(held.most, 5);
    cr_expect_gt(held.moves, 5);
    cap_close(c);
}

Test(cap_source, a_file_that_grows_is_read_to_its_new_end)
{
    struct made m = {0};
    struct cap_error e;
    struct cap *c;
    struct frame f;
    put_pcap_header(&m, 0xa1b2c3d4, LINK_ETHERNET);
    put_pcap_record(&m, 1, 0, 1, 100, 100, false);
    const char *name = file_of(m.p, m.len);
    cr_assert_eq(cap_open(&c, name, 7, NULL, &e), 0);
    expect_frame(c, 1, 100, 100, NS_PER_S);
    m.len = 0;
    put_pcap_record(&m, 2, 0, 2, 50, 50, false);
    int fd = open(name, O_WRONLY | O_APPEND);
    cr_assert_eq(write(fd, m.p, m.len), (ssize_t)m.len);
    close(fd);
    expect_frame(c, 2, 50, 50, 2 * NS_PER_S);
    cr_expect_eq(cap_next(c, &f), 0);
    cap_close(c);
    unlink(name);
}

Test(cap_source, standard_input_is_read_from_a_pipe_as_it_comes)
{
    struct made m = {0};
    struct cap_error e;
    struct cap *c;
    struct frame f;
    int fds[2];
    put_pcap_header(&m, 0xa1b2c3d4, LINK_ETHERNET);
    put_pcap_record(&m, 1, 0, 1, 100, 100, false);
    cr_assert_eq(pipe(fds), 0);
    cr_assert_eq(dup2(fds[0], STDIN_FILENO), STDIN_FILENO);
    cr_assert_eq(write(fds[1], m.p, m.len), (ssize_t)m.len);
    /* The writer keeps the pipe open: frames that have arrived must be delivered nevertheless. */
    cr_assert_eq(cap_open(&c, "-", 7, NULL, &e), 0, "%s", e.msg);
    expect_frame(c, 1, 100, 100, NS_PER_S);
    m.len = 0;
    put_pcap_record(&m, 2, 0, 2, 60, 60, false);
    cr_assert_eq(write(fds[1], m.p, m.len - 1), (ssize_t)m.len - 1);
    close(fds[1]);
    cr_expect_eq(cap_next(c, &f), -EINVAL);
    cr_expect_str_eq(cap_error(c)->file, "standard input");
    cr_expect_eq(cap_error(c)->offset, 24 + 116);
    cap_close(c);
}
