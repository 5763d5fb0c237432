/* layer 1 (io) tests: merging and writing. */
#include "src/cap/merge.h"
#include "src/cap/write.h"
#include "tests/unit/capfile.h"
#include "tests/unit/patience.h"

#include <errno.h>
#include <signal.h>
#include <sys/stat.h>

static const char *pcap_of_times(const ns_t *ts, unsigned n)
{
    struct made m = {0};
    put_pcap_header(&m, 0xa1b23c4d, LINK_ETHERNET);
    for (unsigned i = 0; i < n; i++)
        put_pcap_record(&m, 0, (uint32_t)ts[i], i, 20, 20, false);
    return file_of(m.p, m.len);
}

Test(cap_merge, frames_come_by_time_and_ties_by_file)
{
    /* The second file's time runs backwards once: its own order is kept. */
    const char *paths[] = {pcap_of_times((ns_t[]){10, 30, 50, 50}, 4), pcap_of_times((ns_t[]){10, 60, 20, 70}, 4),
                           pcap_of_times((ns_t[]){5}, 1)};
    static const struct {
        uint16_t file;
        uint64_t number;
    } want[] = {{2, 1}, {0, 1}, {1, 1}, {0, 2}, {0, 3}, {0, 4}, {1, 2}, {1, 3}, {1, 4}};
    struct cap_merge *m;
    struct cap_error e;
    struct frame f;

    cr_assert_eq(cap_merge_open(&m, paths, 3, NULL, &e), 0, "%s", e.msg);
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        cr_assert_eq(cap_merge_next(m, &f), 1);
        cr_expect_eq(f.file, want[i].file, "frame %zu: file %u", i, f.file);
        cr_expect_eq(f.number, want[i].number);
        cr_expect_eq(f.data[3], (uint8_t)((f.number - 1) * 31 + 3));
    }
    cr_expect_eq(cap_merge_next(m, &f), 0);
    cr_expect_eq(cap_merge_next(m, &f), 0);
    cr_expect_eq(cap_merge_count(m), 3);
    cap_merge_close(m);
    for (int i = 0; i < 3; i++)
        unlink(paths[i]);
}

/* How many of 100 frames of each of `n` files, of 1,000 bytes each and read in pieces of 16 KiB into so large a buffer,
 * are followed by one that is not in memory yet. */
static unsigned count_running_out(const char *const *paths, unsigned n, size_t buffer)
{
    const struct cap_opts opts = {.buffer = buffer};
    struct cap_merge *m;
    struct cap_error e;
    struct frame f;
    unsigned of = 0;

    cr_assert_eq(cap_merge_open(&m, paths, n, &opts, &e), 0);
    cap_merge_read_at_a_time(m, 16 << 10);
    for (unsigned i = 0; i < 100 * n; i++) {
        cr_assert_eq(cap_merge_next(m, &f), 1);
        of += cap_merge_runs_out(m);
    }
    cap_merge_close(m);
    return of;
}

Test(cap_merge, one_file_runs_out_before_it_is_read_on)
{
    struct made m = {0};
    const char *paths[2];

    for (unsigned pcapng = 0; pcapng < 2; pcapng++) {
        m.len = 0;
        put_ethernet(&m, pcapng);
        for (unsigned i = 0; i < 100; i++)
            if (pcapng)
                put_packet(&m, 0, i, i, 1000, 1000);
            else
                put_pcap_record(&m, 0, i, i, 1000, 1000, false);
        paths[0] = file_of(m.p, m.len);
        paths[1] = file_of(m.p, m.len);
        unsigned n = count_running_out(paths, 1, 16 << 10);
        cr_assert_eq(n, 7, "of 100 KB in pieces of 16 KiB, the end of the file included: %u", n);
        cr_assert_eq(count_running_out(paths, 2, 16 << 10), 0, "which of several is read on is not known");
        n = count_running_out(paths, 1, 32 << 10);
        cr_assert(n >= 6 && n <= 8, "a larger buffer, but no more is read at a time: %u", n);
        for (int i = 0; i < 2; i++)
            unlink(paths[i]);
    }
}

Test(cap_merge, a_bad_file_does_not_stop_the_others)
{
    const char *paths[] = {pcap_of_times((ns_t[]){10, 20}, 2), pcap_of_times((ns_t[]){11, 21, 31}, 3)};
    struct cap_merge *m;
    struct cap_error e;
    struct frame f;
    unsigned n = 0;
    int rc;

    cr_assert_eq(truncate(paths[0], 24 + 36 + 35), 0);
    cr_assert_eq(cap_merge_open(&m, paths, 2, NULL, &e), 0);
    while ((rc = cap_merge_next(m, &f)) == 1)
        n++;
    cr_expect_eq(rc, -EINVAL);
    cr_expect_eq(n, 4);
    cr_expect_eq(cap_error(cap_merge_file(m, 0))->offset, 24 + 36);
    cr_expect_eq(cap_error(cap_merge_file(m, 1))->err, 0);
    cap_merge_close(m);
    unlink(paths[0]);
    const char *missing[] = {paths[1], "/nonexistent"};
    cr_expect_eq(cap_merge_open(&m, missing, 2, NULL, &e), -ENOENT);
    cr_expect_str_eq(e.file, "/nonexistent");
    unlink(paths[1]);
}

/* A pcapng file with everything that the writer keeps. */
static void put_rich(struct made *m)
{
    put_section(m);
    put_interface(m, LINK_ETHERNET, 0, "first", -1, 0);
    put_interface(m, LINK_ETHERNET, 200, "eth0", -1, 0);
    put_interface(m, LINK_INFINIBAND, 0, "ib0", 9, 7);
    put_simple(m, 1, 40, 40);
    size_t at = packet_open(m, 2, UINT64_C(1700000000123456789), 2, 61, 100);
    put_option(m, 1, "a comment", 9);
    put_option(m, 1, "another", 7);
    put_option32(m, 2, 1);
    put_option64(m, 4, 99);
    block_close(m, at);
    put_packet(m, 1, 1700000000000001, 3, 62, 62);
}

static void same_frames(const char *a, const char *b, unsigned n)
{
    struct cap *x, *y;
    struct cap_error e;
    struct frame f, g;

    cr_assert_eq(cap_open(&x, a, 0, NULL, &e), 0, "%s", e.msg);
    cr_assert_eq(cap_open(&y, b, 0, NULL, &e), 0, "%s", e.msg);
    for (unsigned i = 0; i < n; i++) {
        cr_assert_eq(cap_next(x, &f), 1);
        cr_assert_eq(cap_next(y, &g), 1);
        cr_expect_eq(f.ts, g.ts);
        cr_expect_eq(f.has_ts, g.has_ts);
        cr_assert_eq(f.caplen, g.caplen);
        cr_expect_eq(f.len, g.len);
        cr_expect_arr_eq(f.data, g.data, f.caplen);
        cr_expect_eq(f.flags, g.flags);
        cr_expect_eq(f.drops, g.drops);
        cr_expect_eq(f.linktype, g.linktype);
        cr_assert_eq(f.comment_len, g.comment_len);
        cr_expect(!f.comment == !g.comment && (!f.comment || memcmp(f.comment, g.comment, f.comment_len) == 0));
        const struct cap_iface *i1 = &cap_info(x)->ifaces[f.iface], *i2 = &cap_info(y)->ifaces[g.iface];
        cr_expect_str_eq(i1->name, i2->name);
        cr_expect_eq(i1->snaplen, i2->snaplen);
    }
    cr_expect_eq(cap_next(x, &f), 0);
    cr_expect_eq(cap_next(y, &g), 0);
    cap_close(x);
    cap_close(y);
}

/* Copy all frames; the writer's result. */
static int copy(const char *from, const char *to, const struct cap_writer_opts *o, struct cap_error *e)
{
    struct cap_writer *w;
    struct cap *c;
    struct frame f;

    cr_assert_eq(cap_open(&c, from, 0, NULL, e), 0);
    int rc = cap_writer_open(&w, to, o, e);
    while (rc == 0 && cap_next(c, &f) == 1)
        rc = cap_write(w, &f, &cap_info(c)->ifaces[f.iface]);
    if (w)
        rc = cap_writer_close(w, e);
    cap_close(c);
    return rc;
}

Test(cap_write, pcapng_keeps_times_interfaces_comments_flags_and_drops)
{
    struct cap_error e;
    struct cap *c;
    struct frame f;
    for (int be = 0; be < 2; be++) {
        struct made m = {.be = be};
        put_rich(&m);
        const char *from = file_of(m.p, m.len), *to = file_of("old", 3);
        cr_assert_eq(copy(from, to, NULL, &e), 0, "%s", e.msg);
        same_frames(from, to, 3);
        cr_assert_eq(cap_open(&c, to, 0, NULL, &e), 0);
        cr_expect_str_eq(cap_info(c)->app, "rdmatrace");
        cr_assert_eq(cap_next(c, &f), 1);
        cr_assert_eq(cap_next(c, &f), 1);
        cr_assert_not_null(f.options);
        cr_expect(memmem(f.options, f.options_len, "another", 8), "the second comment is kept");
        cap_close(c);
        unlink(from);
        unlink(to);
    }
}

Test(cap_write, comments_on_file_and_interface_and_drop_counts_are_kept)
{
    struct made m = {0};
    struct cap_error e;
    struct cap_writer *w;
    struct cap *c;
    struct frame f;

    size_t at = block_open(&m, 0x0a0d0d0a);
    put32(&m, 0x1a2b3c4d);
    put32(&m, 1);
    put64(&m, UINT64_MAX);
    put_option(&m, 1, "on the file", 11);
    block_close(&m, at);
    at = block_open(&m, 1);
    put32(&m, LINK_ETHERNET);
    put32(&m, 0);
    put_option(&m, 1, "on the interface", 16);
    block_close(&m, at);
    put_packet(&m, 0, 5, 1, 20, 20);
    const char *from = file_of(m.p, m.len), *to = file_of("", 0);
    cr_assert_eq(cap_open(&c, from, 0, NULL, &e), 0);
    cr_assert_eq(cap_writer_open(&w, to, &(struct cap_writer_opts){.inputs = &c, .n_inputs = 1}, &e), 0);
    cr_assert_eq(cap_next(c, &f), 1);
    cr_assert_eq(cap_write(w, &f, &cap_info(c)->ifaces[0]), 0);
    cr_assert_eq(cap_write_stats(w, 0, 0, &(struct cap_iface){.received = 9, .os_dropped = 4, .has_drops = true}), 0);
    cr_assert_eq(cap_writer_close(w, &e), 0);
    cap_close(c);
    cr_assert_eq(cap_open(&c, to, 0, NULL, &e), 0);
    cr_assert_eq(cap_next(c, &f), 1);
    cr_expect_eq(cap_next(c, &f), 0);
    cr_expect_str_eq(cap_info(c)->comment, "on the file");
    cr_expect_str_eq(cap_info(c)->ifaces[0].comment, "on the interface");
    cr_expect_eq(cap_info(c)->ifaces[0].received, 9);
    cr_expect_eq(cap_info(c)->ifaces[0].os_dropped, 4);
    cap_close(c);
    unlink(from);
    unlink(to);
}

/* Two sections; the second begins with a packet that has a time, on the same interface. */
static const char *sections_without_times(void)
{
    struct made m = {0};

    put_section(&m);
    put_interface(&m, LINK_ETHERNET, 0, "old", 9, 0);
    put_packet(&m, 0, 5, 1, 20, 20);
    size_t at = block_open(&m, 5);
    put32(&m, 0);
    put64(&m, 0);
    put_option64(&m, 5, 7);
    block_close(&m, at);
    put_section(&m);
    put_interface(&m, LINK_ETHERNET, 0, "new", 9, 0);
    put_packet(&m, 0, 6, 2, 20, 20);
    put_simple(&m, 3, 40, 40);
    put_interface(&m, LINK_ETHERNET, 0, "other", 9, 0);
    put_packet(&m, 1, 8, 4, 20, 20);
    return file_of(m.p, m.len);
}

/* Copy all frames of files to `to`, with their drop counts at the end. */
static void copy_all(struct cap **c, size_t n, const char *to)
{
    struct cap_error e;
    struct cap_writer *w;
    struct frame f;

    cr_assert_eq(cap_writer_open(&w, to, &(struct cap_writer_opts){.inputs = c, .n_inputs = n}, &e), 0);
    for (size_t i = 0; i < n; i++)
        while (cap_next(c[i], &f) == 1)
            cr_assert_eq(cap_write(w, &f, &cap_info(c[i])->ifaces[f.iface]), 0);
    for (uint32_t i = 0; i < cap_info(c[0])->n_ifaces; i++)
        if (cap_info(c[0])->ifaces[i].has_drops)
            cap_write_stats(w, 0, i, &cap_info(c[0])->ifaces[i]);
    cr_assert_eq(cap_writer_close(w, &e), 0);
}

Test(cap_write, a_packet_without_a_time_of_a_later_section_has_none_in_the_output)
{
    const char *from = sections_without_times(), *to = file_of("", 0);
    struct cap_error e;
    struct cap *c;
    struct frame f;

    cr_assert_eq(cap_open(&c, from, 0, NULL, &e), 0);
    copy_all(&c, 1, to);
    cap_close(c);
    same_frames(from, to, 4);
    cr_assert_eq(cap_open(&c, to, 0, NULL, &e), 0);
    while (cap_next(c, &f) == 1)
        ;
    cr_expect_eq(cap_info(c)->n_sections, 2);
    cr_expect_eq(cap_info(c)->n_ifaces, 3);
    cr_expect_eq(cap_info(c)->ifaces[0].dropped, 7, "drops of the section before are kept");
    cr_expect_eq(cap_info(c)->ifaces[2].section, 1);
    cap_close(c);
    unlink(from);
    unlink(to);
}

Test(cap_write, a_packet_without_a_time_that_must_get_one_says_so)
{
    const char *from[] = {sections_without_times(), sections_without_times()}, *to = file_of("", 0);
    struct cap_error e;
    struct cap *c[2];
    struct frame f;
    static const char no_time[] = "this packet had no time";
    unsigned n = 0, said = 0;

    for (uint16_t i = 0; i < 2; i++)
        cr_assert_eq(cap_open(&c[i], from[i], i, NULL, &e), 0);
    copy_all(c, 2, to);
    for (int i = 0; i < 2; i++) {
        cap_close(c[i]);
        unlink(from[i]);
    }
    cr_assert_eq(cap_open(&c[0], to, 0, NULL, &e), 0);
    for (; cap_next(c[0], &f) == 1; n++) {
        bool says = f.comment && f.comment_len == strlen(no_time) && memcmp(f.comment, no_time, strlen(no_time)) == 0;
        cr_expect_eq(says, n % 4 == 2, "frame %u", n + 1);
        said += says;
    }
    cr_expect_eq(n, 8);
    cr_expect_eq(said, 2);
    cap_close(c[0]);
    unlink(to);
}

Test(cap_write, snaplen_cuts_frames)
{
    struct made m = {0};
    struct cap_error e;
    struct cap *c;
    put_section(&m);
    put_interface(&m, LINK_ETHERNET, 0, "eth0", 9, 0);
    put_packet(&m, 0, 5, 1, 100, 120);
    put_packet(&m, 0, 6, 2, 30, 30);
    const char *from = file_of(m.p, m.len), *to = file_of("", 0);
    cr_assert_eq(copy(from, to, &(struct cap_writer_opts){.snaplen = 64}, &e), 0);
    cr_assert_eq(cap_open(&c, to, 7, NULL, &e), 0);
    expect_frame(c, 1, 64, 120, 5);
    expect_frame(c, 2, 30, 30, 6);
    cr_expect_eq(cap_info(c)->ifaces[0].snaplen, 64);
    expect_end(c);
    unlink(from);
    unlink(to);
}

Test(cap_write, pcap_keeps_nanoseconds_and_refuses_a_second_link_type)
{
    struct made m = {0};
    struct cap_error e;
    struct cap *c;
    struct cap_writer_opts o = {.format = CAP_WRITE_PCAP};
    put_section(&m);
    put_interface(&m, LINK_INFINIBAND, 0, NULL, 9, 0);
    put_packet(&m, 0, UINT64_C(1700000000123456789), 1, 33, 40);
    const char *from = file_of(m.p, m.len), *to = file_of("", 0);
    cr_assert_eq(copy(from, to, &o, &e), 0);
    cr_assert_eq(cap_open(&c, to, 7, NULL, &e), 0);
    expect_frame(c, 1, 33, 40, INT64_C(1700000000123456789));
    cr_expect_eq(cap_info(c)->ifaces[0].linktype, LINK_INFINIBAND);
    expect_end(c);
    unlink(from);
    put_interface(&m, LINK_ETHERNET, 0, NULL, 9, 0);
    put_packet(&m, 1, 1, 1, 4, 4);
    from = file_of(m.p, m.len);
    cr_expect_eq(copy(from, to, &o, &e), -EINVAL);
    cr_expect_str_eq(e.msg, "a pcap file holds one link type, these frames have 247 and 1: write pcapng");
    unlink(from);
    unlink(to);
}

Test(cap_write, the_name_decides_the_format)
{
    struct cap_error e;
    struct cap_writer *w;
    struct cap *c;
    char name[64];
    snprintf(name, sizeof name, "/tmp/rdmatrace-test-%d.pcap", (int)getpid());
    cr_assert_eq(cap_writer_open(&w, name, NULL, &e), 0);
    cr_assert_eq(cap_writer_close(w, &e), 0);
    cr_assert_eq(cap_open(&c, name, 0, NULL, &e), 0);
    cr_expect_eq(cap_info(c)->format, CAP_PCAP);
    cr_expect_eq(cap_info(c)->ifaces[0].linktype, LINK_ETHERNET);
    expect_end(c);
    unlink(name);
}

Test(cap_write, interfaces_of_several_files_stay_apart)
{
    struct cap_error e;
    struct cap_writer *w;
    struct cap *c;
    struct frame f = {.data = (const uint8_t *)"abcd", .caplen = 4, .len = 4, .has_ts = true};
    const char *to = file_of("", 0);
    cr_assert_eq(cap_writer_open(&w, to, NULL, &e), 0);
    for (unsigned i = 0; i < 12; i++) {
        char name[8];
        f.file = (uint16_t)(i % 3);
        f.iface = i % 2;
        f.ts = i;
        snprintf(name, sizeof name, "f%ui%u", f.file, f.iface);
        cr_assert_eq(cap_write(w, &f, &(struct cap_iface){.linktype = LINK_ETHERNET, .name = name}), 0);
    }
    cr_assert_eq(cap_write_stats(w, 2, 1, &(struct cap_iface){.received = 9, .dropped = 4, .has_drops = true}), 0);
    cr_assert_eq(cap_writer_close(w, &e), 0);
    cr_assert_eq(cap_open(&c, to, 7, NULL, &e), 0);
    for (unsigned i = 0; i < 12; i++) {
        char name[8];
        cr_assert_eq(cap_next(c, &f), 1);
        snprintf(name, sizeof name, "f%ui%u", i % 3, i % 2);
        cr_expect_str_eq(cap_info(c)->ifaces[f.iface].name, name);
    }
    cr_expect_eq(cap_next(c, &f), 0);
    cr_expect_eq(cap_info(c)->n_ifaces, 6);
    cr_expect_eq(cap_info(c)->ifaces[5].dropped, 4);
    cr_expect_str_eq(cap_info(c)->ifaces[5].name, "f2i1");
    cap_close(c);
    unlink(to);
}

Test(cap_write, an_input_file_is_not_overwritten)
{
    struct made m = {0};
    struct cap_error e;
    struct cap_writer *w;
    struct cap *c;
    struct stat st;
    char link_name[80];
    put_rich(&m);
    const char *name = file_of(m.p, m.len);
    snprintf(link_name, sizeof link_name, "%s.link", name);
    cr_assert_eq(link(name, link_name), 0);
    cr_assert_eq(cap_open(&c, name, 0, NULL, &e), 0);
    cr_expect_eq(cap_writer_open(&w, link_name, &(struct cap_writer_opts){.inputs = &c, .n_inputs = 1}, &e), -EEXIST);
    cr_expect_str_eq(e.file, link_name);
    cr_assert_eq(stat(name, &st), 0);
    cr_expect_eq(st.st_size, (off_t)m.len);
    cap_close(c);
    unlink(name);
    unlink(link_name);
}

Test(cap_write, a_full_disk_and_a_closed_pipe_are_reported)
{
    struct cap_error e;
    struct cap_writer *w;
    int fds[2];
    cr_assert_eq(cap_writer_open(&w, "/dev/full", NULL, &e), 0);
    cr_expect_eq(cap_writer_close(w, &e), -ENOSPC);
    cr_expect_str_eq(e.file, "/dev/full");
    cr_expect_str_eq(e.msg, "write: No space left on device");
    signal(SIGPIPE, SIG_IGN);
    cr_assert_eq(pipe(fds), 0);
    close(fds[0]);
    int old = dup(STDOUT_FILENO);
    dup2(fds[1], STDOUT_FILENO);
    cr_assert_eq(cap_writer_open(&w, "-", NULL, &e), 0);
    int rc = cap_writer_flush(w);
    dup2(old, STDOUT_FILENO);
    cr_expect_eq(rc, -EPIPE);
    cr_expect_str_eq(cap_writer_error(w)->file, "standard output");
    cr_expect_eq(cap_writer_close(w, NULL), -EPIPE, "the error stays");
}

static off_t size_of(const char *path)
{
    struct stat st;

    cr_assert_eq(stat(path, &st), 0);
    return st.st_size;
}

Test(cap_write, frames_wait_in_memory_up_to_the_delay_and_keep_their_order)
{
    enum { DELAY = 3 * 65536, LEN = 1000, N = 1000 };
    static uint8_t data[LEN];
    const struct cap_iface iface = {.linktype = LINK_ETHERNET, .tsresol = 9};
    const char *to = file_of("", 0);
    struct cap_error e;
    struct cap_writer *w;
    struct cap *c;
    struct frame f = {.data = data, .caplen = LEN, .len = LEN, .has_ts = true};
    int more;

    cr_assert_eq(cap_writer_open(&w, to, &(struct cap_writer_opts){.delay = DELAY}, &e), 0);
    for (unsigned i = 0; i < N; i++) {
        f.ts = i;
        data[0] = (uint8_t)i;
        cr_assert_eq(cap_write(w, &f, &iface), 0);
        off_t kept = (off_t)cap_writer_size(w) - size_of(to);
        cr_assert(kept < DELAY + 2 * 65536, "frame %u: %lld bytes wait", i, (long long)kept);
        cr_assert(size_of(to) == 0 || kept >= DELAY, "frame %u: %lld bytes wait, and some are written", i,
                  (long long)kept);
    }
    off_t before = size_of(to);
    cr_expect_eq(cap_writer_flush_some(w), 1);
    cr_expect(size_of(to) > before && size_of(to) - before < 2 * 65536, "one part is written");
    while ((more = cap_writer_flush_some(w)) == 1)
        ;
    cr_expect_eq(more, 0);
    cr_expect_eq(size_of(to), (off_t)cap_writer_size(w), "all is written");
    cr_assert_eq(cap_write(w, &f, &iface), 0);
    cr_assert_eq(cap_writer_close(w, &e), 0);
    cr_assert_eq(cap_open(&c, to, 0, NULL, &e), 0);
    for (unsigned i = 0; i < N; i++) {
        cr_assert_eq(cap_next(c, &f), 1);
        cr_assert_eq(f.ts, i);
        cr_assert_eq(f.data[0], (uint8_t)i);
    }
    cr_expect_eq(cap_next(c, &f), 1);
    cr_expect_eq(cap_next(c, &f), 0);
    cap_close(c);
    unlink(to);
    /* A failure is reported by whichever call meets it, and stays. */
    cr_assert_eq(cap_writer_open(&w, "/dev/full", &(struct cap_writer_opts){.delay = DELAY}, &e), 0);
    cr_expect_eq(cap_writer_flush_some(w), -ENOSPC);
    cr_expect_eq(cap_writer_close(w, &e), -ENOSPC);
}

Test(cap_write, tshark_reads_what_was_written)
{
    static const char *const want[] = {
        "1\t\t40\t40\tfirst\t\n",
        "2\t1700000007.123456789\t100\t61\tib0\ta comment,another\n",
        "3\t1700000000.000001000\t62\t62\teth0\t\n",
    };
    struct made m = {0};
    struct cap_error e;
    char command[300], line[200];
    if (system("tshark -v >/dev/null 2>&1") != 0)
        cr_skip_test("tshark is not installed");
    hangs_after(60);
    put_rich(&m);
    const char *from = file_of(m.p, m.len), *to = file_of("", 0);
    cr_assert_eq(copy(from, to, NULL, &e), 0);
    snprintf(command, sizeof command,
             "tshark -n -r %s -T fields -e frame.number -e frame.time_epoch -e frame.len -e frame.cap_len "
             "-e frame.interface_name -e frame.comment 2>/dev/null",
             to);
    FILE *p = popen(command, "r");
    cr_assert_not_null(p);
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        cr_assert(fgets(line, sizeof line, p), "row %zu", i);
        cr_expect_str_eq(line, want[i], "%s", line);
    }
    cr_expect_null(fgets(line, sizeof line, p));
    pclose(p);
    unlink(from);
    unlink(to);
}
