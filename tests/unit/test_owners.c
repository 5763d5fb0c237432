/* layer 5 (test): pairs of addresses shared out among parts of a process find what one judge finds. */
#include "src/cli/runs/owners.h"

#include "src/cap/cap.h"
#include "src/cores/turns.h"
#include "src/findings/findings.h"
#include "src/judge/judge_impl.h"

#include <criterion/criterion.h>
#include <glob.h>
#include <stdlib.h>

#define MOST 3 /* parts */
#define TAPS 2 /* files, at most */

static const struct decode_opts decode = {.verify = true};

/* A capture, and how its frames are changed. */
struct capture {
    const char *path; /* NULL: read_cut() */
    uint32_t snap;    /* bytes that are left of each frame; 0: all */
    uint32_t wrong;   /* number of a frame whose last byte is wrong; 0: none */
    uint32_t early;   /* number of a frame that is one second earlier; 0: none */
};

/* Call `take` for a packet between two hosts, of RC, whose ICRC was not captured: an ACK, or a SEND of one packet. */
static void give_cut(void (*take)(void *user, struct pkt *p), void *user, ns_t ts, uint16_t tap, bool back, bool ack,
                     uint32_t psn)
{
    uint8_t data[62] = {[12] = 8,    [14] = 0x45, [17] = 48,   [22] = 64, [23] = 17,   [26] = 10,   [30] = 10,
                        [34] = 0xc0, [36] = 0x12, [37] = 0xb7, [39] = 28, [44] = 0xff, [45] = 0xff, [48] = 1};
    struct frame f = {.data = data, .caplen = 58, .len = 62, .ts = ts, .has_ts = true, .linktype = LINK_ETHERNET};
    struct pkt p;

    f.number = (uint64_t)ts + 1;
    f.file = tap;
    data[29] = back ? 2 : 1;
    data[33] = back ? 1 : 2;
    data[42] = ack ? OP_ACKNOWLEDGE : OP_SEND_ONLY;
    data[49] = back;
    store_be32(data + 50, psn);
    if (ack)
        store_be32(data + 54, psn + 1);
    pkt_decode(&p, &f, &decode);
    cr_assert(p.flags & PKT_CUT && p.icrc == CRC_UNKNOWN);
    take(user, &p);
}

#define SENDS 20

/* Two hosts send each other something; two taps see that, the second one some packets later. */
static void read_cut(void (*take)(void *user, struct pkt *p), void *user)
{
    ns_t ts = 0;

    for (uint32_t i = 0; i < 2 * SENDS + 10; i++)
        for (unsigned back = 0; back < 2; back++) {
            if (i < SENDS)
                give_cut(take, user, ts++, 0, back, false, i);
            else if (i < 2 * SENDS)
                give_cut(take, user, ts++, 0, back, true, i - SENDS);
            if (i >= 10 && i < SENDS + 10)
                give_cut(take, user, ts++, 1, back, false, i - 10);
            else if (i >= SENDS + 10)
                give_cut(take, user, ts++, 1, back, true, i - SENDS - 10);
        }
}

/* Call `take` for each packet. */
static void read_all(const struct capture *c, void (*take)(void *user, struct pkt *p), void *user)
{
    struct cap *in;
    struct cap_error err;
    struct frame f;
    struct pkt p;

    if (!c->path) {
        read_cut(take, user);
        return;
    }
    cr_assert_eq(cap_open(&in, c->path, 0, NULL, &err), 0, "%s", c->path);
    while (cap_next(in, &f) > 0) {
        uint8_t *own = memcpy(malloc(f.caplen + 1), f.data, f.caplen);
        f.caplen = c->snap && f.caplen > c->snap ? c->snap : f.caplen;
        if (f.number == c->wrong)
            own[f.caplen - 1] ^= 1;
        if (f.number == c->early)
            f.ts -= NS_PER_S;
        f.data = own;
        pkt_decode(&p, &f, &decode);
        take(user, &p);
        free(own);
    }
    cap_close(in);
}

static void take_one(void *user, struct pkt *p)
{
    judge_packet(user, p);
}

/* What is found, as text. */
static void tell(struct judge *j, const char *path, struct buf *b)
{
    const char *const paths[TAPS] = {path, path};
    const struct findings_opts o = {
        .files = (const char **)paths, .n_files = ARRAY_LEN(paths), .ifaces = 1, .assumptions = "", .verbose = true};

    findings_text(judge_findings(j), &o, b);
}

struct shared {
    struct owners *o;
    uint64_t packets;
    unsigned taken[MOST]; /* by each part */
    bool over;
};

static void share(void *user, struct pkt *p)
{
    struct shared *s = user;
    struct in_parts *in = owners_in(s->o);
    uint64_t parts = s->over ? TURNS_ENOUGH : in->parts_of(in, p);

    s->packets++;
    s->over |= parts == TURNS_ENOUGH;
    for (unsigned i = 0; i < in->n && !s->over; i++) {
        if (!(parts & TURNS_PART(i)))
            continue;
        in->take(in, i, p);
        s->taken[i]++;
        s->over |= !in->go_on(in, i);
    }
}

/* Why `n` parts do not serve; NULL: they have found the same as one judge. *apart: parts that got some packets, and not
 * all. */
static const char *compare(const struct capture *c, unsigned n, unsigned *apart)
{
    const struct judge_opts opts = {.ack_timeout = -1, .retry_cnt = -1};
    struct judge *one = judge_new(&opts), *whole = judge_new(&opts);
    struct shared s = {.o = owners_new(whole, &opts, n, TAPS)};
    struct buf said = {0}, together = {0};
    const char *why;

    read_all(c, take_one, one);
    judge_end(one);
    tell(one, c->path, &said);
    read_all(c, share, &s);
    why = owners_join(s.o, whole, s.packets, false);
    *apart = 0;
    for (unsigned i = 0; i < n; i++)
        *apart += s.taken[i] > 0 && s.taken[i] < s.packets;
    if (!why) {
        judge_parts_end(whole);
        tell(whole, c->path, &together);
        cr_expect_str_eq(buf_str(&together), buf_str(&said), "%s in %u parts, frames cut to %u", c->path, n, c->snap);
    }
    owners_free(s.o);
    judge_free(one);
    judge_free(whole);
    buf_free(&said);
    buf_free(&together);
    return why;
}

/* Of cut frames a finding is counted for each: those of a flow before its connection is known, and after. */
Test(owners, parts_find_what_one_judge_finds)
{
    unsigned joined = 0, apart = 0, all = 0, some;
    glob_t files;

    cr_assert_eq(glob("captures/*.pcap*", 0, NULL, &files), 0);
    for (size_t i = 0; i < files.gl_pathc; i++)
        for (unsigned n = 2; n <= MOST; n++)
            for (unsigned cut = 0; cut < 2; cut++, all++)
                if (!compare(&(struct capture){files.gl_pathv[i], .snap = cut ? 80 : 0}, n, &some)) {
                    joined++;
                    apart += some;
                }
    globfree(&files);
    cr_expect_gt(joined * 4, all * 3, "%u of %u", joined, all);
    cr_expect_gt(apart, 50, "in few captures parts had packets of their own: %u of %u", apart, all);
}

/* What is only counted of a flow is its own, whatever number its connection gets when another tap, of another part,
 * sees that its two directions are one connection. */
Test(owners, cut_captures_of_several_taps_are_shared_out)
{
    for (unsigned n = 2; n <= MOST; n++) {
        unsigned apart;
        const char *why = compare(&(struct capture){.path = NULL}, n, &apart);
        cr_expect_null(why, "%s", why);
        cr_expect_gt(apart, n - 2, "%u parts: %u", n, apart);
    }
}

/* One damaged packet concerns all parts: nobody knows whose it was. */
Test(owners, a_damaged_packet_does_not_end_the_parts)
{
    unsigned apart;

    cr_expect_null(compare(&(struct capture){"captures/rping_ipv4.pcap", .wrong = 20}, 2, &apart));
}

Test(owners, frames_that_do_not_follow_each_other_in_time_are_not_shared_out)
{
    unsigned apart;
    const char *why = compare(&(struct capture){"captures/rping_ipv4.pcap", .early = 20}, 2, &apart);

    cr_assert_not_null(why);
    cr_expect_str_eq(why, "packets do not follow each other in time");
}

/* --- What all parts must have room for --------------------------------------------------------- */

Test(owners, all_parts_together_have_the_room_of_one_judge)
{
    struct judge *j = judge_new(&(struct judge_opts){.memory = UINT64_C(1) << 20});
    uint64_t used[JUDGE_USES] = {0};

    cr_expect_null(judge_room_why(j, used));
    used[USED_FLOWS] = 128; /* of 8192 bytes each */
    cr_expect_null(judge_room_why(j, used));
    used[USED_FLOWS]++;
    cr_expect_not_null(judge_room_why(j, used));
    used[USED_FLOWS] = 0;
    for (unsigned i = 0; i < JUDGE_USES; i++) {
        used[i] = UINT32_MAX;
        cr_expect_not_null(judge_room_why(j, used), "use %u", i);
        used[i] = 0;
    }
    judge_free(j);
}

/* Something that is remembered only while there is room was forgotten: one judge may have room when the part has not.
 */
Test(owners, a_part_that_has_forgotten_the_past_is_none)
{
    struct judge *j = judge_new(&(struct judge_opts){.memory = UINT64_C(1) << 20});

    cr_assert(judge_share(j, &(struct conn_owners){{1}}, true));
    cr_expect_null(judge_share_why(j));
    cr_expect(room_take(j->room, 1000, false));
    cr_expect_null(judge_share_why(j));
    cr_expect_not(room_take(j->room, 1 << 19, false));
    cr_expect_str_eq(judge_share_why(j), ROOM_IS_SHORT);
    judge_free(j);
}

/* A packet between two hosts, of a connection or to queue pair 1. */
static void between_two(struct pkt *p, struct frame *f, uint8_t data[60], unsigned n, uint32_t qpn)
{
    static const uint8_t head[60] = {
        [12] = 8, [14] = 0x45, [17] = 46,   [22] = 64,   [23] = 17, [26] = 10,           [29] = 1,    [30] = 10,
        [33] = 2, [34] = 0xc0, [36] = 0x12, [37] = 0xb7, [39] = 26, [42] = OP_SEND_ONLY, [44] = 0xff, [45] = 0xff};

    memcpy(data, head, sizeof head);
    store_be32(data + 46, qpn);
    *f = (struct frame){
        .data = data, .caplen = 60, .len = 60, .number = n + 1, .ts = n, .has_ts = true, .linktype = LINK_ETHERNET};
    pkt_decode(p, f, &(struct decode_opts){.verify = false});
    cr_assert(p->have & H_BTH);
}

/* Packets, each on another queue pair; the parts go on until all together have used up the room of one judge. */
Test(owners, parts_end_early_where_memory_is_short)
{
    const struct judge_opts opts = {.memory = UINT64_C(64) * 8192, .ack_timeout = -1, .retry_cnt = -1};
    for (unsigned parts = 2; parts <= MOST; parts++) {
        struct judge *whole = judge_new(&opts);
        struct owners *o = owners_new(whole, &opts, parts, 1);
        struct in_parts *in = owners_in(o);
        uint8_t data[60];
        unsigned n = 0;
        bool go_on = true;
        for (; n < 1000 && go_on; n++) {
            struct frame f;
            struct pkt p;
            uint64_t of;
            between_two(&p, &f, data, n, 0x100 + n);
            of = in->parts_of(in, &p);
            for (unsigned i = 0; i < parts; i++)
                if (of & TURNS_PART(i)) {
                    in->take(in, i, &p);
                    go_on &= in->go_on(in, i);
                }
        }
        cr_expect_not(go_on);
        cr_expect_lt(n, 100, "%u flows", n);
        cr_expect_not_null(owners_join(o, whole, n, false));
        owners_free(o);
        judge_free(whole);
    }
}

/* Packets until the parts are told that there are enough; `every`: one in so many, not the first, is for all parts. */
static unsigned until_enough(unsigned parts, unsigned every)
{
    const struct judge_opts opts = {.ack_timeout = -1, .retry_cnt = -1};
    struct judge *whole = judge_new(&opts);
    struct owners *o = owners_new(whole, &opts, parts, 1);
    uint64_t of = TURNS_ALL;
    unsigned n = 0;

    for (; n < 40000 && of != TURNS_ENOUGH; n++) {
        uint8_t data[60];
        struct frame f;
        struct pkt p;
        between_two(&p, &f, data, n, n % every == 1 ? 1 : 0x100);
        of = owners_in(o)->parts_of(owners_in(o), &p);
    }
    owners_free(o);
    judge_free(whole);
    return n;
}

/* Half of the packets are those of all, and the numbers of these are no powers of two: three parts would look at twice
 * as many as there are. */
Test(owners, parts_are_of_no_use_where_many_packets_concern_all)
{
    cr_expect_eq(until_enough(3, 4), 40000);
    cr_expect_geq(until_enough(3, 2), 4096);
    cr_expect_leq(until_enough(3, 2), 4110);
    cr_expect_leq(until_enough(16, 10), 4110);
    cr_expect_eq(until_enough(2, 2), 40000);
}
