/* layer 1 (io) tests: bytes of files that stay where they are until the batches with their frames are done. */
#include "src/cap/chunks.h"
#include "src/cap/merge.h"
#include "tests/unit/capfile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <zlib.h>

#define FRAMES 600
#define BATCH  9  /* frames of a batch */
#define LATE   11 /* batches that are not done at a time */

/* Frames read through a window, in batches, the oldest of which are looked at, and done, LATE batches later. */
struct reading {
    struct window *w;
    struct chunks *c;
    struct cap_merge *m;
    struct frame frames[FRAMES];
    unsigned n, done; /* frames */
    bool ended;
};

static uint32_t size_of(uint64_t number)
{
    return 1 + (uint32_t)number * 37 % 3000;
}

/* Times run back within the window: frame 4 comes before 3, and so on. */
static const struct made *capture(bool pcapng)
{
    static struct made m;

    m.len = 0;
    put_ethernet(&m, pcapng);
    for (unsigned k = 1; m.len + 4000 < sizeof m.p; k++)
        if (pcapng)
            put_packet(&m, 0, 1000 + (k ^ 7), k, size_of(k), size_of(k));
        else
            put_pcap_record(&m, 1, k ^ 7, k, size_of(k), size_of(k), false);
    return &m;
}

static void moving(void *window)
{
    window_own(window);
}

static void begin(struct reading *r, const char *const *names, size_t n, size_t buffer)
{
    struct cap_opts o = {.buffer = buffer, .moving = moving};
    struct cap_error e;

    *r = (struct reading){.w = window_new()};
    o.user = r->w;
    o.chunks = r->c = chunks_new(r->w);
    cr_assert(r->w && r->c);
    cr_assert_eq(cap_merge_open(&r->m, names, n, &o, &e), 0, "%s", e.msg);
}

static void end(struct reading *r)
{
    cap_merge_close(r->m);
    chunks_free(r->c);
    window_free(r->w);
}

static const struct frame *next(struct reading *r)
{
    struct frame f;

    while (!r->ended && !window_full(r->w)) {
        r->ended = cap_merge_next(r->m, &f) != 1;
        if (!r->ended)
            cr_assert(window_put(r->w, &f));
    }
    return window_get(r->w);
}

/* A copy in the window does not stay: then the frame is looked at now. */
static void expect_data(const struct frame *f)
{
    cr_assert_eq(f->caplen, size_of(f->number));
    for (uint32_t i = 0; i < f->caplen; i++)
        cr_assert_eq(f->data[i], (uint8_t)(f->number * 31 + i), "frame %u byte %u", (unsigned)f->number, i);
}

/* Look at the frames before frame `end`, and tell that their batches are done. */
static void look(struct reading *r, unsigned end)
{
    for (; r->done < end; r->done++)
        if (r->frames[r->done].data)
            expect_data(&r->frames[r->done]);
    chunks_done(r->c, r->done / BATCH);
}

/* Frames that go into batches without a window: of three files, one of them packed. */
Test(chunks, frames_stay_without_a_window)
{
    const struct made *m = capture(true);
    const char *names[3] = {file_of(m->p, m->len), file_of(m->p, m->len), file_of("", 0)};
    gzFile z = gzopen(names[2], "wb1");
    struct cap_error e;

    cr_assert(z && gzwrite(z, m->p, 50000) == 50000 && gzclose(z) == Z_OK);
    for (size_t buffer = 512; buffer <= 131072; buffer *= 4) {
        struct reading r = {.c = chunks_new(NULL)};
        struct cap_opts o = {.buffer = buffer, .chunks = r.c};
        struct frame *f = r.frames;
        cr_assert_eq(cap_merge_open(&r.m, names, 3, &o, &e), 0, "%s", e.msg);
        for (;; r.n++, f++) {
            if (r.n % BATCH == 0) {
                chunks_begin(r.c, r.n / BATCH, r.n / BATCH % 3);
                look(&r, r.n > LATE * BATCH ? r.n - LATE * BATCH : 0);
            }
            if (cap_merge_next(r.m, f) != 1)
                break;
            cr_assert_lt(r.n, FRAMES);
            cr_assert(cap_keeps(cap_merge_file(r.m, f->file)), "file %u", f->file);
        }
        cr_expect_gt(r.n, 200);
        look(&r, r.n);
        cap_merge_close(r.m);
        chunks_free(r.c);
    }
    for (unsigned i = 0; i < 3; i++)
        unlink(names[i]);
}

static unsigned read_all(struct reading *r)
{
    const struct frame *f;
    unsigned stay = 0;

    for (;; r->n++) {
        if (r->n % BATCH == 0) {
            chunks_begin(r->c, r->n / BATCH, r->n / BATCH % 3);
            look(r, r->n > LATE * BATCH ? r->n - LATE * BATCH : 0);
        }
        f = next(r);
        if (!f)
            break;
        cr_assert_lt(r->n, FRAMES);
        expect_data(f);
        r->frames[r->n] = *f;
        stay += !window_copied(r->w);
        if (window_copied(r->w))
            r->frames[r->n].data = NULL;
    }
    look(r, r->n);
    return stay;
}

Test(chunks, frames_stay_until_their_batch_is_done)
{
    for (unsigned pcapng = 0; pcapng < 2; pcapng++) {
        const struct made *m = capture(pcapng);
        const char *name = file_of(m->p, m->len);
        for (size_t buffer = 256; buffer <= 65536; buffer *= 16) {
            struct reading r;
            begin(&r, &name, 1, buffer);
            unsigned stay = read_all(&r);
            cr_expect_gt(r.n, 150);
            cr_expect(buffer < 65536 || stay == r.n, "%u of %u frames stay", stay, r.n);
            end(&r);
        }
        unlink(name);
    }
}

Test(chunks, frames_of_several_files_stay_packed_or_not)
{
    const struct made *m = capture(true);
    const char *names[3] = {file_of(m->p, m->len), NULL, NULL};
    struct reading r;
    gzFile z;

    names[1] = file_of(m->p, 60000);
    names[2] = file_of("", 0);
    z = gzopen(names[2], "wb1");
    cr_assert(z && gzwrite(z, m->p, 50000) == 50000 && gzclose(z) == Z_OK);
    for (size_t buffer = 512; buffer <= 32768; buffer *= 8) {
        begin(&r, names, 3, buffer);
        read_all(&r);
        cr_expect_gt(r.n, 200);
        cr_expect_eq(cap_error(cap_merge_file(r.m, 0))->err, 0);
        cr_expect_eq(cap_error(cap_merge_file(r.m, 1))->err, -EINVAL, "the file that was cut");
        end(&r);
    }
    for (unsigned i = 0; i < 3; i++)
        unlink(names[i]);
}

/* A file of `n` times the same bytes between its head and a last packet. */
static const char *much(const void *p, size_t len, unsigned n)
{
    static struct made m;
    const char *name;
    int fd;

    m.len = 0;
    put_section(&m);
    put_interface(&m, LINK_ETHERNET, 0, NULL, 9, 0);
    name = file_of(m.p, m.len);
    fd = open(name, O_WRONLY | O_APPEND);
    while (n--)
        cr_assert_eq(write(fd, p, len), (ssize_t)len);
    m.len = 0;
    put_packet(&m, 0, 1, 1, size_of(1), size_of(1));
    cr_assert_eq(write(fd, m.p, m.len), (ssize_t)m.len);
    close(fd);
    return name;
}

Test(chunks, what_is_between_frames_takes_no_memory)
{
    static struct made m;
    size_t at = block_open(&m, 0x0bad);
    struct reading r;
    const char *name;

    put_data(&m, 0, 60000);
    block_close(&m, at);
    name = much(m.p, m.len, 200);
    begin(&r, &name, 1, 0);
    chunks_begin(r.c, 0, 0);
    cr_assert_not_null(next(&r));
    cr_expect(!chunks_are_many(r.c), "12 MB were kept, without a frame among them");
    end(&r);
    unlink(name);
}

/* Long records fill the window before a frame leaves it. */
Test(chunks, a_window_that_fills_holds_no_more_memory_than_its_frames)
{
    static struct made m;
    size_t at = packet_open(&m, 0, 1, 1, size_of(1), size_of(1));
    static uint8_t comment[60000];
    struct reading r;
    const char *name;
    size_t before = mallinfo2().uordblks;

    for (unsigned i = 0; i < 4; i++)
        put_option(&m, 2988, comment, sizeof comment);
    block_close(&m, at);
    name = much(m.p, m.len, 300);
    begin(&r, &name, 1, 0);
    chunks_begin(r.c, 0, 0);
    cr_assert_not_null(next(&r));
    size_t held = mallinfo2().uordblks + mallinfo2().hblkhd - before;
    cr_expect_lt(held, (size_t)16 << 20, "%zu bytes", held);
    end(&r);
    unlink(name);
}

Test(chunks, a_batch_ends_before_its_frames_hold_much_memory)
{
    static struct made m;
    size_t at = packet_open(&m, 0, 1, 1, size_of(1), size_of(1));
    static uint8_t comment[60000];
    struct reading r;
    const char *name;
    unsigned n = 0;

    put_option(&m, 1, comment, sizeof comment);
    block_close(&m, at);
    name = much(m.p, m.len, 300);
    begin(&r, &name, 1, 0);
    for (chunks_begin(r.c, 0, 0); next(&r); n++)
        if (chunks_are_many(r.c))
            break;
    cr_expect(n < 60, "a batch of %u frames, with 60 KB around each", n);
    end(&r);
    unlink(name);
}

/* Who reads on where another thread has read does so to memory of its own, though there is room behind what that one
 * has read; a thread goes on where it has read itself. */
Test(chunks, a_thread_reads_to_memory_of_its_own)
{
    const struct made *m = capture(true);
    const char *name = file_of(m->p, m->len);
    struct chunks *c = chunks_new(NULL);
    const struct cap_opts o = {.buffer = 32 << 10, .chunks = c};
    const uint8_t *last = NULL;
    struct cap_merge *in;
    struct cap_error e;
    struct frame f;

    cr_assert_eq(cap_merge_open(&in, &name, 1, &o, &e), 0, "%s", e.msg);
    cap_merge_read_at_a_time(in, 8192);
    for (unsigned batch = 0; batch < 12; batch++) {
        bool changes = batch / 2 * 2 == batch;
        chunks_begin(c, batch, batch / 2 % 2);
        for (unsigned n = 0; n == 0 || !cap_merge_runs_out(in); n++) {
            cr_assert_eq(cap_merge_next(in, &f), 1);
            if (n == 0 && batch >= 2)
                cr_expect_eq(f.data > last && f.data < last + 8192, !changes, "batch %u", batch);
            last = f.data;
        }
        chunks_done(c, batch + 1);
    }
    cap_merge_close(in);
    chunks_free(c);
    unlink(name);
}

/* --- Bytes that are read between turns --------------------------------------------------------- */

/* Threads that take turns: each reads the records that are in memory, and before its turn the bytes that it claimed in
 * the last one. */
struct turns {
    const char *name;
    struct chunks *c;
    struct cap_merge *in;
    unsigned batch;
    uint64_t frames;
};

static void begin_turns(struct turns *t, const char *name, size_t step)
{
    const struct cap_opts o = {.buffer = 136 << 10, .chunks = chunks_new(NULL)};
    struct cap_error e;

    *t = (struct turns){.name = name, .c = o.chunks};
    cr_assert_eq(cap_merge_open(&t->in, &name, 1, &o, &e), 0, "%s", e.msg);
    cap_merge_read_at_a_time(t->in, step);
}

static void end_turns(struct turns *t)
{
    cap_merge_close(t->in);
    chunks_free(t->c);
}

/* Thread `who` reads a batch, of `least` to `most` frames, and claims what it reads `threads` turns later. False at the
 * end. */
static bool take_turn(struct turns *t, unsigned who, unsigned threads, unsigned least, unsigned most)
{
    struct frame f;
    int rc = 1;

    chunks_begin(t->c, t->batch++, who);
    for (unsigned n = 0; n < most && (n < least || !cap_merge_runs_out(t->in)); n++) {
        rc = cap_merge_next(t->in, &f);
        if (rc != 1)
            break;
        cr_assert_eq(f.number, ++t->frames);
        expect_data(&f);
    }
    cap_merge_claim(t->in, threads - 1);
    chunks_done(t->c, t->batch);
    return rc == 1;
}

/* Records longer than what is claimed, claims that were not read in time, batches that are full before, and threads
 * that miss a turn. */
Test(chunks, threads_read_for_their_next_turns)
{
    for (unsigned pcapng = 0; pcapng < 2; pcapng++) {
        const struct made *m = capture(pcapng);
        const char *name = file_of(m->p, m->len);
        for (size_t step = 1000; step < 300000; step *= 3)
            for (unsigned kind = 0; kind < 4; kind++) {
                struct turns t;
                unsigned who = 0;
                begin_turns(&t, name, step);
                do {
                    who = kind == 3 && t.batch % 7 == 3 ? 2 : t.batch % 3;
                    if (kind != 1 || t.batch % 5)
                        cap_merge_fetch(t.in, who);
                } while (take_turn(&t, who, 3, 1, kind == 2 ? 3 : UINT_MAX));
                cr_expect_gt(t.frames, 150);
                cr_expect_eq(cap_error(cap_merge_file(t.in, 0))->err, 0);
                cr_expect_eq(cap_info(cap_merge_file(t.in, 0))->consumed, m->len);
                end_turns(&t);
            }
        unlink(name);
    }
}

/* A pcapng file of more than `bytes` bytes. */
static const char *long_file(size_t bytes)
{
    static struct made m;
    const char *name;
    int fd;

    m.len = 0;
    put_ethernet(&m, true);
    name = file_of(m.p, m.len);
    fd = open(name, O_WRONLY | O_APPEND);
    for (unsigned k = 1; bytes > m.len;) {
        bytes -= m.len;
        for (m.len = 0; m.len + 4000 < sizeof m.p; k++)
            put_packet(&m, 0, 1000 + k, k, size_of(k), size_of(k));
        cr_assert_eq(write(fd, m.p, m.len), (ssize_t)m.len);
    }
    close(fd);
    return name;
}

/* What is read before a turn is not read again: it is what the file was then. `missed`: a thread has read beyond what
 * it had claimed, amid what the next one has. */
static void expect_used(size_t step, unsigned missed)
{
    static const uint8_t other[20000];
    const char *name = long_file(2 << 20);
    struct turns t;
    int fd;

    begin_turns(&t, name, step);
    for (unsigned i = 0; i < 6; i++) {
        cap_merge_fetch(t.in, i % 2);
        take_turn(&t, i % 2, 2, i == missed ? 50 : 1, UINT_MAX);
    }
    cap_merge_fetch(t.in, 0);
    fd = open(name, O_WRONLY);
    cr_assert_eq(pwrite(fd, other, sizeof other, (off_t)cap_info(cap_merge_file(t.in, 0))->consumed + 4000), 20000);
    cr_expect(take_turn(&t, 0, 2, 1, 8), "step %zu: frames that were read before the file was changed", step);
    close(fd);
    end_turns(&t);
    unlink(name);
}

/* Also with more bytes a time than there is memory for, and once somebody has read too much. */
Test(chunks, what_was_read_between_turns_is_used)
{
    expect_used(30000, UINT_MAX);
    expect_used(300000, UINT_MAX);
    expect_used(30000, 2);
}

Test(chunks, a_file_that_shrinks_between_turns_ends_there)
{
    const struct made *m = capture(true);
    const char *name = file_of(m->p, m->len);
    struct turns t;
    bool more = true;

    begin_turns(&t, name, 8192);
    for (unsigned i = 0; i < 4; i++)
        take_turn(&t, i % 2, 2, 1, UINT_MAX);
    cr_assert_eq(truncate(name, 200000), 0);
    for (unsigned i = 0; i < 100 && more; i++) {
        cap_merge_fetch(t.in, i % 2);
        more = take_turn(&t, i % 2, 2, 1, UINT_MAX);
    }
    cr_expect_not(more);
    cr_expect_eq(cap_error(cap_merge_file(t.in, 0))->err, -EIO, "%s", cap_error(cap_merge_file(t.in, 0))->msg);
    end_turns(&t);
    unlink(name);
}

/* What a thread has used is in its processor's caches: it gets that again, and not what another one has used, unless it
 * has enough of its own. */
Test(chunks, a_thread_gets_the_memory_that_it_has_used)
{
    struct window *w = window_new();
    struct chunks *c = chunks_new(w);
    uint8_t *first, *of_other, *more, *again, *third, *last = NULL, *used[100];
    size_t n = 1000;
    unsigned got = 0;

    chunks_begin(c, 0, 0);
    first = chunks_get(c, NULL, n, &n);
    chunks_begin(c, 1, 1);
    of_other = chunks_get(c, first, n, &n);
    more = chunks_get(c, of_other, n, &n);
    cr_expect(more != first && more != of_other, "it has one chunk only");
    chunks_begin(c, 2, 0);
    again = chunks_get(c, more, n, &n);
    cr_expect_eq(again, first, "the thread's own chunk");
    chunks_begin(c, 3, 1);
    third = chunks_get(c, again, n, &n);
    cr_expect_neq(third, first, "the other thread's own chunk");
    for (chunks_begin(c, 4, 2); got < 100 && last != first; got++)
        last = used[got] = chunks_get(c, NULL, n, &n);
    cr_expect_lt(got, 20, "what others have used is never taken, in %u chunks", got);
    for (unsigned i = 0; i < got; i++)
        chunks_put(c, used[i]);
    chunks_put(c, third);
    chunks_free(c);
    window_free(w);
}
