/* layer 3 (gen) tests: the bridge and its events: which frames pass, in which order, how they are changed, and which
 * are recorded. */
#include "dissect/pkt.h"
#include "tests/unit/bridge_rig.h"

static struct rig rig;

/* The PSNs sent at `port` after the first `skip`, as text. */
static const char *psns(unsigned port, unsigned skip)
{
    static char text[400];
    unsigned seen = 0;
    size_t n = 0;

    text[0] = '\0';
    for (unsigned i = 0; i < rig.n && n < sizeof text - 12; i++)
        if (rig.out[i].port == port && seen++ >= skip)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%u", n ? " " : "", rig.out[i].psn);
    return text;
}

static void arp(unsigned port)
{
    uint8_t frame[60] = {255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 1, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1};

    rig_rx(&rig, port, frame, sizeof frame);
}

/* Requests with PSNs 100 to 100 + n - 1, relative 0 to n - 1, over connection 1. */
static void play(const char *spec, unsigned n)
{
    RIG(&rig, spec);
    rig_connect(&rig, 100, 200);
    for (unsigned i = 0; i < n; i++, rig.now += 10 * NS_PER_US)
        rig_request(&rig, 100 + i);
}

Test(bridge, all_frames_pass_both_ways_in_order_and_unchanged)
{
    static uint8_t frame[NET_FRAME_MAX];

    RIG(&rig, "psn=77 drop");
    for (uint32_t len = BRIDGE_FRAME_MIN; len <= NET_FRAME_MAX; len += 92) {
        for (uint32_t i = 0; i < len; i++)
            frame[i] = (uint8_t)(i * 7 + len);
        rig_rx(&rig, len & 1, frame, len);
        cr_assert_eq(rig.out[rig.n - 1].len, len);
        cr_assert_eq(rig.out[rig.n - 1].port, (len & 1) ^ 1);
        cr_assert_arr_eq(rig.out[rig.n - 1].head, frame, min_u32(len, 64));
    }
    cr_expect_eq(rig.n, rig.n_recorded / 2);
    cr_expect_eq(rig.matched, 0);
    rig_close(&rig);
}

Test(bridge, what_cannot_be_forwarded_is_counted)
{
    static uint8_t frame[NET_FRAME_MAX + 1];
    struct bridge_stats s, t;

    RIG(&rig, "psn=77 drop");
    rig_rx(&rig, 0, frame, NET_FRAME_MAX + 1);
    rig_rx(&rig, 0, frame, BRIDGE_FRAME_MIN - 1);
    bridge_rx(rig.b, 0, frame, 1000, 64000, 0);
    bridge_stats(rig.b, 0, &s);
    bridge_stats(rig.b, 1, &t);
    cr_expect_eq(rig.n, 0);
    cr_expect_eq(s.received, 3);
    cr_expect_eq(s.too_long, 2);
    cr_expect_eq(t.too_short, 1);
    cr_expect_eq(rig.n_recorded, 3);
    cr_expect(strstr(rig.recorded[0].note, "not forwarded"));
    rig_close(&rig);
}

static void never(void *user, const char *line)
{
    (void)user;
    cr_expect(false, "%s", line);
}

Test(bridge, drops_exactly_one_packet)
{
    play("conn=1 psn=2 drop", 5);
    cr_expect_str_eq(psns(1, 1), "100 101 103 104");
    rig_request(&rig, 102);
    cr_expect_eq(rig.out[rig.n - 1].psn, 102, "the repetition passes");
    cr_expect_eq(event_used(rig.events, 1), 1);
    cr_expect_eq(events_idle(rig.events, never, NULL), 0);
    rig_close(&rig);
}

Test(bridge, the_iteration_counts_repetitions)
{
    play("psn=1 iter=2-3 drop", 3);
    for (unsigned i = 0; i < 3; i++)
        rig_request(&rig, 101);
    cr_expect_str_eq(psns(1, 1), "100 101 102 101");
    rig_close(&rig);
}

Test(bridge, relative_psns_wrap)
{
    RIG(&rig, "psn=3 drop", "dir=rsp psn=4 drop");
    rig_connect(&rig, 0xfffffe, 0);
    for (unsigned i = 0; i < 6; i++)
        rig_request(&rig, 0xfffffe + i);
    cr_expect_str_eq(psns(1, 1), "16777214 16777215 0 2 3");
    rig_ack(&rig, 1);
    rig_ack(&rig, 2);
    cr_expect_str_eq(psns(0, 1), "1");
    rig_close(&rig);
}

Test(bridge, directions_and_classes_are_told_apart)
{
    RIG(&rig, "dir=rsp class=ack nth=2 drop", "class=nak drop", "dir=req class=cm nth=1 dup=1");
    rig_connect(&rig, 100, 200);
    cr_expect_eq(rig.n, 3, "the REQ comes twice");
    rig_request(&rig, 100);
    rig_ack(&rig, 100);
    rig_request(&rig, 101);
    rig_ack(&rig, 101);
    rig_packet(&rig,
               &(struct rig_packet){.from = 1, .opcode = OP_ACKNOWLEDGE, .dqpn = 0x11, .psn = 102, .syndrome = 0x60});
    rig_ack(&rig, 102);
    cr_expect_str_eq(psns(0, 1), "100 102");
    rig_close(&rig);
}

Test(bridge, ce_leaves_the_checksums_right)
{
    play("psn=1 ce", 3);
    for (unsigned i = 2; i < 5; i++) {
        cr_expect_eq(rig.out[i].tos & 3, i == 3 ? 3 : 2);
        cr_expect(rig.out[i].good && rig.out[i].ip_good);
    }
    rig_close(&rig);
}

Test(bridge, damage_spoils_the_icrc_of_one_packet)
{
    static const char *const specs[] = {"psn=1 corrupt", "psn=1 corrupt=icrc", "psn=1 corrupt=infiniband.bth.psn",
                                        "psn=1 set infiniband.bth.destqp=5 raw"};

    for (unsigned k = 0; k < ARRAY_LEN(specs); k++) {
        play(specs[k], 3);
        for (unsigned i = 2; i < 5; i++)
            cr_expect_eq(rig.out[i].good, i != 3, "%s, packet %u", specs[k], i - 2);
        rig_close(&rig);
    }
}

Test(bridge, rewriting_makes_the_checksums_right_again)
{
    play("psn=1 set infiniband.bth.p_key=0x8001 set ip.ttl=3", 2);
    cr_expect(rig.out[3].good && rig.out[3].ip_good);
    cr_expect_eq(rig.out[3].head[22], 3);
    cr_expect_eq(load_be16(rig.out[3].head + 44), 0x8001);
    rig_close(&rig);
}

Test(bridge, delay_is_exact_and_others_pass)
{
    play("psn=1 delay=5ms", 3);
    cr_expect_eq(bridge_next(rig.b), 10 * NS_PER_US + 5 * NS_PER_MS);
    rig_until(&rig, 20 * NS_PER_MS);
    cr_expect_str_eq(psns(1, 1), "100 102 101");
    cr_expect_eq(rig.out[rig.n - 1].when, 10 * NS_PER_US + 5 * NS_PER_MS);
    cr_expect_eq(bridge_next(rig.b), NS_NEVER);
    rig_close(&rig);
}

Test(bridge, only_rdma_packets_pass_one_held_back)
{
    play("psn=1 reorder=2", 2);
    arp(0);
    rig_request(&rig, 102);
    arp(0);
    rig_request(&rig, 103);
    rig_request(&rig, 104);
    cr_expect_str_eq(psns(1, 1), "100 4294967295 102 4294967295 103 101 104");
    rig_close(&rig);
    play("psn=1 reorder=2", 3);
    rig_until(&rig, NS_PER_S);
    cr_expect_str_eq(psns(1, 1), "100 102 101", "too few come: it leaves all the same");
    cr_expect_eq(rig.out[rig.n - 1].when, 10 * NS_PER_US + 100 * NS_PER_MS);
    rig_close(&rig);
}

Test(bridge, copies_and_cuts)
{
    play("psn=1 dup=2", 3);
    cr_expect_str_eq(psns(1, 1), "100 101 101 101 102");
    rig_close(&rig);
    play("psn=1 truncate=30", 3);
    cr_expect_eq(rig.out[3].len, rig.out[2].len - 30);
    rig_close(&rig);
    play("psn=1 truncate=9999", 3);
    struct bridge_stats s;
    bridge_stats(rig.b, 1, &s);
    cr_expect_eq(s.too_short, 1, "a frame without Ethernet header cannot be sent");
    bridge_stats(rig.b, 0, &s);
    cr_expect_eq(s.dropped, 1);
    cr_expect_str_eq(psns(1, 1), "100 102");
    rig_close(&rig);
}

Test(bridge, both_sides_are_recorded_with_what_was_done)
{
    play("conn=1 psn=1 drop", 2);
    cr_assert_eq(rig.n_recorded, 2 * 3 + 1);
    cr_expect_str_eq(rig.recorded[6].note, "rdmagen: dropped by event 1 (conn=1 psn=1 drop); conn 1 req psn 1 iter 1");
    cr_expect(rig.recorded[6].in && rig.recorded[6].port == 0);
    for (unsigned i = 0; i < 6; i++) {
        cr_expect_str_eq(rig.recorded[i].note, "");
        cr_expect_eq(rig.recorded[i].in, !(i & 1));
    }
    cr_expect_eq(rig.matched, 1);
    rig_close(&rig);
    play("psn=1 corrupt=icrc dup=1", 2);
    cr_assert_eq(rig.n_recorded, 2 * 3 + 3);
    cr_expect(rig.recorded[6].good, "as it came");
    cr_expect(!rig.recorded[7].good && !rig.recorded[8].good, "as it left");
    cr_expect_str_eq(rig.recorded[7].note, "rdmagen: copy 1 of 1: corrupted in the ICRC, duplicated 1 time by event 1 "
                                           "(psn=1 corrupt=icrc dup=1); conn 1 req psn 1 iter 1");
    rig_close(&rig);
}

Test(bridge, what_an_event_cannot_do_is_told)
{
    play("psn=1 set tcp.srcport=7", 2);
    cr_expect(strstr(rig.recorded[6].note, "tcp.srcport could not be set to 0x7"), "%s", rig.recorded[6].note);
    cr_expect(rig.out[3].good);
    rig_close(&rig);
}

/* Ends as a line that events_idle() is to tell. */
static void told_once(void *user, const char *line)
{
    cr_expect(strstr(line, user), "%s", line);
}

Test(bridge, an_event_that_could_not_be_applied_is_idle)
{
    static const struct {
        const char *spec;
        char says[80];
    } cases[] = {
        {"psn=1 set infiniband.reth.r_key=5", "matched 1 packet, but infiniband.reth.r_key could not be set to 0x5"},
        {"psn=0-1 corrupt=arp.opcode", "matched 2 packets, but they could not be corrupted in arp.opcode"},
        {"psn=1 drop delay=5ms", "matched 1 packet, but it could not be delayed by 5 ms"},
        {"psn=1 delay=5ms dup=2", "matched 1 packet, but it could not be duplicated 2 times"},
        {"psn=9 drop", "never matched a packet"}};

    for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
        play(cases[i].spec, 2);
        cr_expect_eq(events_idle(rig.events, told_once, (void *)(uintptr_t)cases[i].says), 1, "%s", cases[i].spec);
        cr_expect_eq(event_applied(rig.events, 1), 0);
        rig_close(&rig);
    }
    play("psn=0-1 corrupt=infiniband.bth.psn", 2);
    cr_expect_eq(events_idle(rig.events, never, NULL), 0);
    cr_expect_eq(event_applied(rig.events, 1), 2);
    rig_close(&rig);
}

/* A note says this. */
static void noted(unsigned i, const char *text)
{
    cr_expect(strstr(rig.recorded[i].note, text), "record %u: '%s' instead of '%s'", i, rig.recorded[i].note, text);
}

Test(bridge, what_is_held_back_is_told_as_it_came_to_be)
{
    play("psn=1 delay=30s", 2);
    noted(6, "rdmagen: to be delayed by 30 s by event 1");
    bridge_end(rig.b, rig.now + 68 * NS_PER_MS);
    noted(7, "rdmagen: delayed by 68.01 ms only, instead of 30 s by event 1");
    rig_close(&rig);
    play("psn=1 delay=5ms", 2);
    rig_until(&rig, 20 * NS_PER_MS);
    noted(7, "rdmagen: delayed by 5 ms by event 1");
    rig_close(&rig);
    play("psn=1 reorder=5000", 4);
    noted(6, "rdmagen: to be held back behind 5000 others by event 1");
    rig_until(&rig, NS_PER_S);
    noted(11, "rdmagen: held back behind 2 others only, instead of 5000, and delayed by 100 ms by event 1");
    rig_close(&rig);
    play("psn=1 reorder=2", 4);
    noted(11, "rdmagen: held back behind 2 others by event 1");
    rig_close(&rig);
    play("psn=1 truncate=2000", 2);
    noted(6, "truncated by 157 bytes by event 1 (psn=1 truncate=2000), too short to be sent");
    rig_close(&rig);
}

Test(bridge, a_port_without_room_makes_frames_wait_in_order)
{
    RIG(&rig, "dir=req psn=2 dup=3");
    rig_connect(&rig, 100, 200);
    rig.room[1] = 1;
    cr_expect(bridge_ready(rig.b, 0));
    rig_request(&rig, 100);
    cr_expect(bridge_ready(rig.b, 0));
    rig_request(&rig, 101);
    cr_expect(!bridge_ready(rig.b, 0) && bridge_ready(rig.b, 1) && bridge_blocked(rig.b));
    rig_request(&rig, 102);
    rig_ack(&rig, 100);
    cr_expect_str_eq(psns(0, 1), "100", "the other direction goes on");
    cr_expect_str_eq(psns(1, 1), "100");
    rig.room[1] = 2;
    bridge_run(rig.b, rig.now);
    cr_expect_str_eq(psns(1, 1), "100 101 102");
    rig.room[1] = -1;
    bridge_run(rig.b, rig.now);
    cr_expect_str_eq(psns(1, 1), "100 101 102 102 102 102");
    cr_expect(bridge_ready(rig.b, 0) && !bridge_blocked(rig.b));
    rig_close(&rig);
}

Test(bridge, queues_are_bounded_and_what_they_lose_is_counted)
{
    struct bridge_stats s;

    RIG(&rig, "psn=1 dup=5000", "psn=3- iter=* delay=1s");
    rig_connect(&rig, 100, 200);
    rig.room[1] = 0;
    rig_request(&rig, 101);
    bridge_stats(rig.b, 1, &s);
    cr_expect_eq(s.overflow, 5001 - BRIDGE_QUEUE);
    rig.room[1] = -1;
    bridge_run(rig.b, rig.now);
    cr_expect_eq(rig.n, 2 + BRIDGE_QUEUE);
    rig.n = rig.n_recorded = 0;
    for (unsigned i = 0; i < BRIDGE_HELD + 100; i++, rig.n_recorded = 0)
        rig_request(&rig, 103 + i);
    bridge_stats(rig.b, 1, &s);
    cr_expect_eq(s.overflow, 5001 - BRIDGE_QUEUE + 100);
    rig_close(&rig); /* while frames are held back */
}

Test(bridge, survives_frames_that_lie)
{
    uint8_t frame[EP_FRAME_MAX], copy[EP_FRAME_MAX];
    uint32_t x = 1, len;

    RIG(&rig, "class=any nth=* set ip.ttl=9", "class=any nth=* ce corrupt",
        "nth=* corrupt=infiniband.bth.psn truncate=3 dup=1");
    for (unsigned round = 0; round < 3000; round++, rig.n = rig.n_recorded = 0) {
        len = round % 3 == 0 ? rig_build_cm(frame, round & 1, round & 2, round, round - 1, round % 7, round)
                             : rig_build(frame, &(struct rig_packet){.from = round & 1,
                                                                     .opcode = (uint8_t)(round % 0x18),
                                                                     .dqpn = round % 9,
                                                                     .psn = round,
                                                                     .len = round % 200});
        for (unsigned k = 0; k < 4; k++) {
            memcpy(copy, frame, len);
            for (unsigned i = 0; i < k; i++) {
                x = x * 1664525 + 1013904223;
                copy[(x >> 8) % len] ^= (uint8_t)(x >> 24);
            }
            x = x * 1664525 + 1013904223;
            rig_rx(&rig, round & 1, copy, k & 1 ? (x >> 8) % (len + 1) : len);
        }
    }
    rig_close(&rig);
}

/* Frames that Linux sent (captures/ibv_rc_pingpong.pcap): their checksums are corrupted, and restored. */
Test(rewrite, checksums_of_tcp_and_udp)
{
    struct cap_error err;
    struct cap *cap;
    struct frame f;
    unsigned n = 0;

    cr_assert_eq(cap_open(&cap, "captures/ibv_rc_pingpong.pcap", 0, NULL, &err), 0, "%s", err.msg);
    while (cap_next(cap, &f) > 0) {
        uint8_t copy[2000];
        if (f.caplen < 54 || load_be16(f.data + 12) != 0x0800 || f.data[23] != 6)
            continue;
        cr_assert_lt(f.caplen, sizeof copy);
        memcpy(copy, f.data, f.caplen);
        store_be16(copy + 50, 0xbeef);
        frame_fix_l4(copy, f.caplen);
        cr_expect_arr_eq(copy, f.data, f.caplen, "frame %llu", (unsigned long long)f.number);
        memmove(copy + 16, copy + 12, f.caplen - 12); /* a tag */
        store_be16(copy + 12, 0x8100);
        store_be16(copy + 54, 0);
        frame_fix_l4(copy, f.caplen + 4);
        cr_expect_arr_eq(copy + 16, f.data + 12, f.caplen - 12);
        for (uint32_t len = 0; len < f.caplen; len++)
            frame_fix_l4(copy, len);
        n++;
    }
    cap_close(cap);
    cr_expect_gt(n, 4);
}

Test(rewrite, only_a_number_that_the_frame_holds_as_it_is_can_be_set)
{
    static const char *const can[] = {"infiniband.bth.psn", "infiniband.reth.va", "ip.ttl", "ip.dst", "eth.dst"};
    static const char *const cannot[] = {"lnet.rdma_frag.size", /* little-endian */
                                         "frame.number",        /* not in the frame */
                                         "infiniband.grh.sgid", /* wider than a number */
                                         "no.such_field"};
    struct frame_field f;

    for (unsigned i = 0; i < ARRAY_LEN(can); i++)
        cr_expect(frame_field_find(&f, can[i], strlen(can[i])), "%s", can[i]);
    for (unsigned i = 0; i < ARRAY_LEN(cannot); i++)
        cr_expect_not(frame_field_find(&f, cannot[i], strlen(cannot[i])), "%s", cannot[i]);
}
