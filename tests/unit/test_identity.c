/* layer 3 tests: ARP and neighbour discovery, against frames made by scapy. */
#include "gen/endpoint/policy.h"
#include "gen/live/neigh.h"

#include <criterion/criterion.h>
#include <stdlib.h>

/* 52:54:00:77:00:01 has 10.77.0.1 and fd77::1; 02:00:00:00:00:09, which is us, has 10.77.0.9 and fd77::9. */
#define ARP_REQ     "ffffffffffff525400770001080600010800060400015254007700010a4d00010000000000000a4d0009"
#define ARP_REP     "525400770001020000000009080600010800060400020200000000090a4d00095254007700010a4d0001"
#define ARP_TAG     "ffffffffffff5254007700018100002a080600010800060400015254007700010a4d00010000000000000a4d0009"
#define ARP_REP_TAG "5254007700010200000000098100602a080600010800060400020200000000090a4d00095254007700010a4d0001"
#define ARP_ASK     "ffffffffffff020000000009080600010800060400010200000000090a4d00090000000000000a4d0001"
#define ARP_ANSWER  "020000000009525400770001080600010800060400025254007700010a4d00010200000000090a4d0009"
#define NS                                                                                                             \
    "3333ff00000952540077000186dd6000000000203afffd770000000000000000000000000001ff0200000000000000000001ff000009"     \
    "87002bd000000000fd7700000000000000000000000000090101525400770001"
#define NA                                                                                                             \
    "52540077000102000000000986dd6000000000203afffd770000000000000000000000000009fd770000000000000000000000000001"     \
    "88001b2060000000fd7700000000000000000000000000090201020000000009"
#define NS_ASK                                                                                                         \
    "3333ff00000102000000000986dd6000000000203afffd770000000000000000000000000009ff0200000000000000000001ff000001"     \
    "87007c9b00000000fd7700000000000000000000000000010101020000000009"
#define NA_ANSWER                                                                                                      \
    "02000000000952540077000186dd6000000000203afffd770000000000000000000000000001fd770000000000000000000000000009"     \
    "8800ca6460000000fd7700000000000000000000000000010201525400770001"
#define NS_DAD                                                                                                         \
    "3333ff00000952540077000186dd6000000000183aff00000000000000000000000000000000ff0200000000000000000001ff000009"     \
    "87007d1e00000000fd770000000000000000000000000009"
#define NA_DAD                                                                                                         \
    "33330000000102000000000986dd6000000000203afffd770000000000000000000000000009ff020000000000000000000000000001"     \
    "8800599520000000fd7700000000000000000000000000090201020000000009"
#define NS_HOP64                                                                                                       \
    "3333ff00000952540077000186dd6000000000203a40fd770000000000000000000000000001ff0200000000000000000001ff000009"     \
    "87002bd000000000fd7700000000000000000000000000090101525400770001"
#define UDP4                                                                                                           \
    "02000000000952540077000108004500002c000100004011661d0a4d00010a4d0009c35012b7001800003031323334353637383961626364" \
    "6566"
#define UDP6                                                                                                           \
    "02000000000952540077000186dd6000000000181140fd770000000000000000000000000001fd770000000000000000000000000009c350" \
    "12b70018ff8530313233343536373839616263646566"

static const uint8_t OWN_MAC[6] = {2, 0, 0, 0, 0, 9}, PEER_MAC[6] = {0x52, 0x54, 0, 0x77, 0, 1};
static const uint8_t OWN4[16] = {[10] = 0xff, [11] = 0xff, 10, 77, 0, 9},
                     PEER4[16] = {[10] = 0xff, [11] = 0xff, 10, 77, 0, 1};
static const uint8_t OWN6[16] = {0xfd, 0x77, [15] = 9}, PEER6[16] = {0xfd, 0x77, [15] = 1};

static struct identity id;
static uint8_t out[IDENTITY_FRAME_MAX], mac[6];

static uint32_t bytes(const char *hex, uint8_t *q)
{
    uint32_t n = 0;

    for (; hex[2 * n]; n++)
        q[n] = (uint8_t)strtoul((char[]){hex[2 * n], hex[2 * n + 1], 0}, NULL, 16);
    return n;
}

static uint32_t give(const char *hex)
{
    uint8_t frame[200];

    return identity_rx(&id, frame, bytes(hex, frame), out);
}

static void expect_out(uint32_t len, const char *hex)
{
    uint8_t want[200];

    cr_assert_eq(len, bytes(hex, want));
    cr_assert_arr_eq(out, want, len);
}

static void be4(void)
{
    identity_init(&id, OWN_MAC, OWN4);
}
static void be6(void)
{
    identity_init(&id, OWN_MAC, OWN6);
}

Test(identity, arp_request_is_answered, .init = be4)
{
    expect_out(give(ARP_REQ), ARP_REP);
    cr_assert_eq(id.answered, 1);
}

Test(identity, arp_request_for_others_or_with_answering_off_is_not_answered, .init = be4)
{
    id.gid[15] = 8;
    cr_assert_eq(give(ARP_REQ), 0);
    id.gid[15] = 9;
    id.answer = false;
    cr_assert_eq(give(ARP_REQ), 0);
    cr_assert_eq(id.answered, 0);
}

Test(identity, each_own_address_is_answered_with_its_mac_address, .init = be4)
{
    uint8_t second[6], first[6];

    identity_own_mac(&id, 0, first);
    identity_own_mac(&id, 1, second);
    cr_assert_arr_eq(first, OWN_MAC, 6);
    cr_assert_eq(second[5], (uint8_t)(OWN_MAC[5] + 1));
    id.gid[15] = 8; /* the request is for the address behind it */
    id.more = 1;
    cr_assert_gt(give(ARP_REQ), 0);
    cr_assert_arr_eq(out + 6, second, 6);
    cr_assert_arr_eq(out + 22, second, 6);
    cr_assert_eq(out[31], 9);
    id.gid[15] = 7;
    cr_assert_eq(give(ARP_REQ), 0, "two behind it");
    id.more = 2;
    cr_assert_gt(give(ARP_REQ), 0);
    id.gid[15] = 10;
    cr_assert_eq(give(ARP_REQ), 0, "before it");
}

Test(identity, only_the_own_vlan_is_answered_with_its_tag, .init = be4)
{
    cr_assert_eq(give(ARP_TAG), 0);
    id.has_vlan = true;
    id.vlan = 42;
    id.pcp = 3;
    cr_assert_eq(give(ARP_REQ), 0);
    expect_out(give(ARP_TAG), ARP_REP_TAG);
    id.vlan = 43;
    cr_assert_eq(give(ARP_TAG), 0);
}

Test(identity, arp_asks_and_learns_the_answer, .init = be4)
{
    cr_assert_not(identity_lookup(&id, PEER4, mac));
    cr_assert_eq(give(ARP_ANSWER), 0);
    cr_assert_not(identity_lookup(&id, PEER4, mac), "an answer that nobody asked for is not believed");
    expect_out(identity_ask(&id, PEER4, out), ARP_ASK);
    cr_assert_not(identity_lookup(&id, PEER4, mac));
    cr_assert_eq(give(ARP_ANSWER), 0);
    cr_assert(identity_lookup(&id, PEER4, mac));
    cr_assert_arr_eq(mac, PEER_MAC, 6);
}

Test(identity, neighbour_solicitation_is_answered, .init = be6)
{
    expect_out(give(NS), NA);
    expect_out(give(NS_DAD), NA_DAD);
    cr_assert_eq(id.answered, 2);
}

Test(identity, forged_neighbour_solicitations_are_ignored, .init = be6)
{
    uint8_t frame[200];
    uint32_t n = bytes(NS, frame);

    cr_assert_eq(give(NS_HOP64), 0, "it came through a router");
    frame[60] ^= 1;
    cr_assert_eq(identity_rx(&id, frame, n, out), 0, "its checksum is wrong");
}

Test(identity, neighbour_is_solicited_and_its_advertisement_learnt, .init = be6)
{
    cr_assert_eq(give(NA_ANSWER), 0);
    cr_assert_not(identity_lookup(&id, PEER6, mac));
    expect_out(identity_ask(&id, PEER6, out), NS_ASK);
    cr_assert_eq(give(NA_ANSWER), 0);
    cr_assert(identity_lookup(&id, PEER6, mac));
    cr_assert_arr_eq(mac, PEER_MAC, 6);
}

Test(identity, roce_packets_show_their_senders)
{
    be4();
    cr_assert_eq(give(UDP4), 0);
    cr_assert(identity_lookup(&id, PEER4, mac));
    cr_assert_arr_eq(mac, PEER_MAC, 6);
    be6();
    cr_assert_eq(give(UDP6), 0);
    cr_assert(identity_lookup(&id, PEER6, mac));
    cr_assert_arr_eq(mac, PEER_MAC, 6);
}

Test(identity, floods_of_senders_do_not_push_out_a_neighbour_that_was_asked_for, .init = be4)
{
    uint8_t frame[200];
    uint32_t n = bytes(UDP4, frame);

    identity_ask(&id, PEER4, out);
    give(ARP_ANSWER);
    memset(frame + 6, 0x66, 6);
    for (unsigned i = 0; i < 100000; i++) {
        store_be32(frame + 26, 0x0a4d0001 + i * 7);
        identity_rx(&id, frame, n, out);
    }
    cr_assert(identity_lookup(&id, PEER4, mac));
    cr_assert_arr_eq(mac, PEER_MAC, 6);
}

Test(identity, another_station_with_our_address_is_counted, .init = be4)
{
    uint8_t frame[200];
    uint32_t n = identity_announce(&id, frame);

    cr_assert_eq(identity_rx(&id, frame, n, out), 0);
    cr_assert_eq(id.conflicts, 0);
    frame[22 + 5] ^= 1;
    cr_assert_eq(identity_rx(&id, frame, n, out), 0, "an announcement is not a question");
    cr_assert_eq(id.conflicts, 1);
}

Test(identity, as_many_neighbours_as_there_is_room_for_can_be_asked_for, .init = be4)
{
    uint8_t gid[16];

    memcpy(gid, PEER4, 16);
    for (unsigned i = 0; i < IDENTITY_NEIGHBOURS; i++, gid[14]++) {
        cr_assert_neq(identity_ask(&id, gid, out), 0);
        cr_assert_neq(identity_ask(&id, gid, out), 0, "again");
    }
    cr_assert_neq(identity_ask(&id, gid, out), 0, "one that never answered makes room");
    for (unsigned i = 0; i < IDENTITY_NEIGHBOURS; i++)
        id.neighbours[i].known = true;
    gid[14]++;
    cr_assert_eq(identity_ask(&id, gid, out), 0);
    cr_assert_eq(identity_ask(&id, PEER6, out), 0, "of the other family");
}

Test(identity, multicast_addresses_need_no_asking, .init = be4)
{
    static const uint8_t group4[16] = {[10] = 0xff, [11] = 0xff, 239, 129, 2, 3}, mac4[6] = {0x01, 0, 0x5e, 1, 2, 3};
    static const uint8_t group6[16] = {0xff, 0x0e, [12] = 1, 2, 3, 4}, mac6[6] = {0x33, 0x33, 1, 2, 3, 4};

    cr_assert(identity_lookup(&id, group4, mac));
    cr_assert_arr_eq(mac, mac4, 6);
    cr_assert(identity_lookup(&id, group6, mac));
    cr_assert_arr_eq(mac, mac6, 6);
    cr_assert_eq(identity_ask(&id, group4, out), 0);
}

Test(identity, any_bytes_are_survived)
{
    static const char *seeds[] = {ARP_REQ, ARP_TAG, NS, NA_ANSWER, NS_DAD, UDP4, UDP6};
    struct prng r;

    prng_seed(&r, 7);
    for (unsigned i = 0; i < 200000; i++) {
        uint8_t *frame, whole[200];
        uint32_t n = bytes(seeds[i % ARRAY_LEN(seeds)], whole);
        if (i % 1000 == 0)
            i / 1000 % 2 ? be4() : be6();
        for (unsigned k = prng_below(&r, 4); k-- > 0;)
            whole[prng_below(&r, n)] = (uint8_t)prng_next(&r);
        n = prng_below(&r, n + 1);
        frame = malloc(n ? n : 1); /* so that a sanitizer sees reads past the end */
        memcpy(frame, whole, n);
        cr_assert_leq(identity_rx(&id, frame, n, out), sizeof out);
        free(frame);
    }
}

Test(identity, random_numbers_are_of_24_bits)
{
    struct prng r;
    uint32_t any = 0;

    prng_seed(&r, 1);
    for (unsigned i = 0; i < 1000; i++)
        any |= number_random.pick(&r, i, 0);
    cr_expect_eq(any, 0xffffff);
}
