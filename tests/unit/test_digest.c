/* layer 5 (test): digests: what is written is read again; four bytes that stand in for a payload keep the ICRC. */
#include "dissect/ib/icrc.h"
#include "prng.h"
#include "src/cap/digest.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

Test(digest, stand_in_has_the_effect_of_the_payload_on_the_icrc)
{
    uint8_t with[1100], without[1100], stand_in[4];
    struct prng r = {7};

    for (unsigned n = 4; n <= 1024; n += 1 + n / 7) {
        for (unsigned i = 0; i < sizeof with; i++)
            with[i] = (uint8_t)prng_next(&r);
        memcpy(without, with, sizeof with);
        icrc_stand_in(with + 40, n, stand_in);
        memset(without + 40, 0, n);
        memcpy(without + 40 + n - 4, stand_in, 4);
        cr_assert_eq(crc32_of(with, 40 + n + 9), crc32_of(without, 40 + n + 9), "%u bytes", n);
        with[40]++;
        cr_assert_neq(crc32_of(with, 40 + n + 9), crc32_of(without, 40 + n + 9), "%u bytes", n);
    }
}

#define FRAMES 9000

/* Frame `i`: of any length, now and then like an earlier one, with a gap. */
static void make_frame(struct prng *r, unsigned i, uint8_t *bytes, struct frame *f, struct digest_part *part)
{
    static const uint32_t lens[] = {0, 1, 60, 61, 64, 1500, 4200};
    uint32_t n = lens[prng_next(r) % ARRAY_LEN(lens)];

    for (uint32_t k = 0; k < n; k++)
        bytes[k] = (uint8_t)(k < 40 ? k : prng_next(r));
    *f = (struct frame){.ts = (ns_t)i * 1000 - (i % 10 == 3 ? 5000 : 0),
                        .data = bytes,
                        .caplen = n,
                        .len = n + i % 3,
                        .number = i + 1,
                        .linktype = LINK_ETHERNET,
                        .iface = i % 2,
                        .iface_id = i % 2,
                        .has_ts = i % 5 != 0,
                        .has_iface = true,
                        .drops = i == 77 ? UINT64_C(1) << 40 : 0,
                        .flags = i,
                        .fcs_len = 4};
    f->ts = f->has_ts ? f->ts : 0;
    *part = (struct digest_part){.owner = (uint16_t)(i * 7 % (DIGEST_OWNERS + 1)), .like = i, .icrc_good = i % 3 == 0};
    if (n > 100) {
        part->gap_at = 50;
        part->gap = n - 70;
        memset(bytes + part->gap_at, 0, part->gap);
    }
}

static void expect_frame(const struct frame *got, const struct frame *want, const struct digest_part *part)
{
    cr_assert_eq(got->number, want->number);
    cr_assert_eq(got->ts, want->ts);
    cr_assert_eq(got->caplen, want->caplen);
    cr_assert_eq(got->len, want->len);
    cr_assert_eq(got->linktype, want->linktype);
    cr_assert_eq(got->iface, want->iface);
    cr_assert_eq(got->iface_id, want->iface_id);
    cr_assert_eq(got->has_ts, want->has_ts);
    cr_assert_eq(got->has_iface, want->has_iface);
    cr_assert_eq(got->drops, want->drops);
    cr_assert_eq(got->flags, want->flags);
    cr_assert_eq(got->fcs_len, want->fcs_len);
    cr_assert_eq(got->icrc_good, part->icrc_good);
    cr_assert(memcmp(got->data, want->data, want->caplen) == 0, "frame %u", (unsigned)want->number);
}

Test(digest, frames_are_read_as_they_were)
{
    static struct cap_iface ifaces[2] = {{.linktype = LINK_ETHERNET, .name = (char *)"eth7", .dropped = 5}, {0}};
    struct digest_end e = {.shard = (char *)"some.pcap", .size = 99, .info = {.n_ifaces = 2, .ifaces = ifaces}}, again;
    char path[] = "/tmp/digest.XXXXXX";
    struct prng r = {3};
    uint8_t bytes[5000];
    struct digest_writer *w;
    struct digest_part part;
    struct cap_error err;
    struct frame f, g;
    struct cap *c;
    int fd = mkstemp(path);

    cr_assert_geq(fd, 0);
    close(fd);
    w = digest_create(path);
    cr_assert(w);
    for (unsigned i = 0; i < FRAMES; i++) {
        make_frame(&r, i, bytes, &f, &part);
        digest_put(w, &f, &part);
    }
    e.error = (struct cap_error){.err = -22, .offset = 1234, .has_offset = true, .msg = "torn"};
    digest_pairs_add(&e.asked, 5);
    cr_assert_eq(digest_finish(w, &e), 0);
    free(e.asked.of);
    cr_assert_eq(digest_end_read(&again, path), 0);
    cr_assert_str_eq(again.shard, "some.pcap");
    cr_assert(digest_pairs_has(&again.asked, 5) && !digest_pairs_has(&again.asked, 6));
    digest_end_free(&again);
    cr_assert_eq(cap_open(&c, path, 3, NULL, &err), 0);
    prng_seed(&r, 3);
    for (unsigned i = 0; i < FRAMES; i++) {
        make_frame(&r, i, bytes, &f, &part);
        cr_assert_eq(cap_next(c, &g), 1);
        expect_frame(&g, &f, &part);
        cr_assert_eq(g.file, 3);
        cr_assert_str_eq(g.file_name, "some.pcap");
    }
    cr_assert_eq(cap_next(c, &g), -22);
    cr_assert_str_eq(cap_error(c)->msg, "torn");
    cr_assert_eq(cap_info(c)->ifaces[0].dropped, 5);
    cap_close(c);
    unlink(path);
}

/* A copy for the owners of the lower half, with the first block whole: their frames and those of all, as in the digest;
 * for somebody who names no owner it is damaged. */
Test(digest, a_copy_has_the_frames_of_some_owners)
{
    const uint64_t owners[DIGEST_OWNERS / 64] = {UINT64_MAX, UINT64_MAX, 0, 0};
    struct digest_end e = {.shard = (char *)"some.pcap", .info = {.n_ifaces = 2, .ifaces = (struct cap_iface[2]){{0}}}};
    const struct cap_opts opts = {.owners = owners};
    char path[] = "/tmp/digest.XXXXXX", copy[] = "/tmp/digest.XXXXXX";
    struct digest_writer *w = NULL;
    struct digest_part part;
    struct cap_error err;
    struct prng r = {3};
    uint8_t bytes[5000];
    struct frame f, g;
    struct cap *c[2];
    unsigned n = 0;

    cr_assert(close(mkstemp(path)) == 0 && close(mkstemp(copy)) == 0 && (w = digest_create(path)));
    for (unsigned i = 0; i < FRAMES; i++) {
        make_frame(&r, i, bytes, &f, &part);
        digest_put(w, &f, &part);
    }
    cr_assert_eq(digest_finish(w, &e), 0);
    cr_assert_eq(digest_copy(path, copy, owners, 0, 1), 0);
    cr_assert_eq(cap_open(&c[0], path, 0, &opts, &err), 0);
    cr_assert_eq(cap_open(&c[1], copy, 0, &opts, &err), 0);
    for (; cap_next(c[0], &f) > 0; n++) {
        cr_assert_eq(cap_next(c[1], &g), 1);
        cr_assert_eq(g.number, f.number);
        cr_assert(g.ts == f.ts && g.caplen == f.caplen && memcmp(g.data, f.data, f.caplen) == 0);
    }
    cr_assert_eq(cap_next(c[1], &g), 0);
    cr_assert(n > FRAMES / 3 && n < FRAMES);
    cap_close(c[0]);
    cap_close(c[1]);
    cr_assert_eq(cap_open(&c[1], copy, 0, NULL, &err), 0);
    for (n = 0; cap_next(c[1], &g) > 0; n++)
        cr_assert_eq(g.number, n + 1);
    cr_assert(n > 0 && n < FRAMES && strstr(cap_error(c[1])->msg, "is damaged"), "%u frames: %s", n,
              cap_error(c[1])->msg);
    cap_close(c[1]);
    cr_assert_eq(digest_copy("/dev/null", copy, owners, 0, 1), -EINVAL);
    unlink(path);
    unlink(copy);
}

/* A digest without frames, with the `n` bytes at `block` in front of its end. */
static void make_digest(char *path, const char *block, size_t n, struct digest_end *e)
{
    uint8_t bytes[4096];
    struct digest_writer *w;
    size_t len;
    FILE *f;
    int fd = mkstemp(path);

    cr_assert_geq(fd, 0);
    close(fd);
    cr_assert((w = digest_create(path)));
    cr_assert_eq(digest_finish(w, e), 0);
    cr_assert((f = fopen(path, "r+")));
    cr_assert_gt((len = fread(bytes, 1, sizeof bytes, f)), 16);
    cr_assert_lt(len, sizeof bytes);
    rewind(f);
    cr_assert_eq(fwrite(bytes, 1, 16, f) + fwrite(block, 1, n, f) + fwrite(bytes + 16, 1, len - 16, f), len + n);
    cr_assert_eq(fclose(f), 0);
}

Test(digest, a_block_without_frames_is_refused)
{
    struct digest_end e = {.shard = (char *)"some.pcap"};
    char path[] = "/tmp/digest.XXXXXX";
    struct cap_error err;
    struct frame f;
    struct cap *c;

    make_digest(path, "\4\0\0\0\0\0\0\0", 8, &e);
    cr_assert_eq(cap_open(&c, path, 0, NULL, &err), 0);
    cr_assert_lt(cap_next(c, &f), 0);
    cr_assert(strstr(cap_error(c)->msg, "0 frames"), "%s", cap_error(c)->msg);
    cap_close(c);
    unlink(path);
}

Test(digest, an_error_that_no_kernel_has_is_refused)
{
    static const int errors[] = {INT_MIN, -4096, 1};

    for (unsigned i = 0; i < ARRAY_LEN(errors); i++) {
        struct digest_end e = {.shard = (char *)"some.pcap", .error = {.err = errors[i]}}, again;
        char path[] = "/tmp/digest.XXXXXX";
        make_digest(path, "", 0, &e);
        cr_assert_lt(digest_end_read(&again, path), 0, "%d", errors[i]);
        unlink(path);
    }
}

/* Also that the time for many does not grow with their square: this test would take hours. */
Test(digest, pairs_are_kept_up_to_a_number, .timeout = 60)
{
    struct digest_pairs s = {0}, other = {0};

    for (uint64_t i = 0; i < UINT64_C(20) * DIGEST_PAIRS; i++)
        digest_pairs_add(&s, i % DIGEST_PAIRS * 3);
    digest_pairs_sort(&s);
    cr_assert_eq(s.n, DIGEST_PAIRS);
    cr_assert(!s.any && digest_pairs_has(&s, 3 * DIGEST_PAIRS - 3) && !digest_pairs_has(&s, 4));
    digest_pairs_add(&other, 4);
    cr_assert(!digest_pairs_meet(&s, &other) && !digest_pairs_meet(&other, &s));
    for (uint64_t i = 0; i < UINT64_C(20) * DIGEST_PAIRS; i++)
        digest_pairs_add(&s, i * 5 + 1);
    digest_pairs_sort(&s);
    cr_assert(s.any && s.n == 0 && digest_pairs_has(&s, 4));
    cr_assert(digest_pairs_meet(&s, &other) && digest_pairs_meet(&other, &s));
    free(s.of);
    free(other.of);
}

Test(digest, a_time_beyond_those_of_captures_is_noted)
{
    struct stat st = {.st_size = 7, .st_mtim = {.tv_sec = INT64_MAX / 2, .tv_nsec = 5}};
    struct digest_end e = {.size = 0};

    digest_stamp(&e, &st);
    cr_assert(digest_is_of(&e, &st));
    st.st_mtim.tv_nsec++;
    cr_assert(!digest_is_of(&e, &st));
}
