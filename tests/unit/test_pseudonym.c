/* layer 3 (show) tests: addresses replaced by others. */
#include "src/show/pseudonym.h"

#include <criterion/criterion.h>

#include "bits.h"

static struct pseudonyms with_key(const char *key)
{
    struct pseudonyms s;

    cr_assert_eq(pseudonyms_init(&s, key), 0);
    return s;
}

Test(pseudonym, two_addresses_never_become_one_and_remain_private)
{
    static uint8_t seen[1 << 13];
    struct pseudonyms s = with_key("a");

    for (uint32_t i = 0; i < 1 << 16; i++) {
        uint8_t ip[4] = {192, 168, (uint8_t)(i >> 8), (uint8_t)i};
        uint32_t at;
        pseudonym_ip4(&s, ip);
        cr_assert(ip[0] == 192 && ip[1] == 168, "%u.%u.%u.%u", ip[0], ip[1], ip[2], ip[3]);
        at = load_be16(ip + 2);
        cr_assert(!(seen[at / 8] >> at % 8 & 1), "%u twice", at);
        seen[at / 8] |= (uint8_t)(1u << at % 8);
    }
}

Test(pseudonym, the_key_decides)
{
    struct pseudonyms a = with_key("a"), again = with_key("a"), b = with_key("b"), random[2];
    uint8_t mac[5][6];

    cr_assert_eq(pseudonyms_init(&random[0], NULL), 0);
    cr_assert_eq(pseudonyms_init(&random[1], NULL), 0);
    for (unsigned i = 0; i < 5; i++)
        memcpy(mac[i], "\x02\x11\x22\x33\x44\x55", 6);
    pseudonym_mac(&a, mac[0]);
    pseudonym_mac(&again, mac[1]);
    pseudonym_mac(&b, mac[2]);
    pseudonym_mac(&random[0], mac[3]);
    pseudonym_mac(&random[1], mac[4]);
    cr_expect_arr_eq(mac[0], mac[1], 6);
    cr_expect_arr_neq(mac[0], mac[2], 6);
    cr_expect_arr_neq(mac[3], mac[4], 6);
    cr_expect_eq(mac[0][0] & 3, 2, "individual, locally administered");
}

Test(pseudonym, a_link_local_address_follows_its_mac_address_and_a_gid_its_ipv4_address)
{
    struct pseudonyms s = with_key("a");
    uint8_t mac[6] = {0x52, 0x54, 0, 0x77, 0, 1}, ip[4] = {10, 1, 2, 3};
    uint8_t local[16] = {0xfe, 0x80, [8] = 0x50, 0x54, 0, 0xff, 0xfe, 0x77, 0, 1};
    uint8_t mapped[16] = {[10] = 0xff, 0xff, 10, 1, 2, 3};

    pseudonym_mac(&s, mac);
    pseudonym_ip4(&s, ip);
    pseudonym_ip6(&s, local);
    pseudonym_ip6(&s, mapped);
    cr_expect(local[0] == 0xfe && local[1] == 0x80 && local[11] == 0xff && local[12] == 0xfe);
    cr_expect_eq(local[8], mac[0] ^ 2);
    cr_expect_arr_eq(local + 9, mac + 1, 2);
    cr_expect_arr_eq(local + 13, mac + 3, 3);
    cr_expect(mapped[10] == 0xff && mapped[11] == 0xff);
    cr_expect_arr_eq(mapped + 12, ip, 4);
}

Test(pseudonym, what_names_nobody_remains)
{
    static const uint8_t kept[][4] = {{0, 0, 0, 0}, {255, 255, 255, 255}, {127, 0, 0, 1}, {224, 0, 0, 1}};
    struct pseudonyms s = with_key("a");
    uint8_t mac[6] = {255, 255, 255, 255, 255, 255}, eui64[8] = {0};

    for (unsigned i = 0; i < sizeof kept / sizeof *kept; i++) {
        uint8_t ip[4];
        memcpy(ip, kept[i], 4);
        pseudonym_ip4(&s, ip);
        cr_expect_arr_eq(ip, kept[i], 4);
    }
    pseudonym_mac(&s, mac);
    cr_expect_arr_eq(mac, "\xff\xff\xff\xff\xff\xff", 6);
    pseudonym_eui64(&s, eui64);
    cr_expect_eq(load_be64(eui64), 0);
}

Test(pseudonym, r_keys_keep_their_steps_and_no_two_become_one)
{
    struct pseudonyms s = with_key("a");
    uint32_t last = 0;

    for (uint32_t i = 1; i < 1000; i++) {
        uint8_t key[4];
        store_be32(key, i << 8);
        pseudonym_key(&s, key);
        cr_assert_neq(load_be32(key), i << 8);
        cr_assert(i == 1 || load_be32(key) - last == 0x100);
        last = load_be32(key);
    }
    for (unsigned i = 0; i < 2; i++) { /* the one that would become 0 */
        uint8_t key[4], back[4] = {0};
        store_be32(key, 1);
        pseudonym_key(&s, key);
        store_be32(back, i ? 1 - load_be32(key) : 0);
        pseudonym_key(&s, back);
        cr_assert_eq(load_be32(back), i ? load_be32(key) - 1 : 0);
    }
}

Test(pseudonym, stags_become_others_byte_by_byte)
{
    struct pseudonyms s = with_key("a");
    static uint8_t seen[2][256];

    for (unsigned v = 0; v < 256; v++)
        for (unsigned other = 0; other < 2; other++) {
            uint8_t before[3] = {1, 2, (uint8_t)other};
            uint8_t w = pseudonym_stag_byte(&s, before, 3, (uint8_t)v);
            cr_assert(!seen[other][w], "%u twice", w);
            seen[other][w] = 1;
        }
}

Test(pseudonym, q_keys_that_protocols_prescribe_remain)
{
    static const uint32_t known[] = {0, 0x80010000, 0x01234567};
    struct pseudonyms s = with_key("a");
    uint8_t key[8];

    for (unsigned i = 0; i < 3; i++) {
        store_be32(key, known[i]);
        pseudonym_qkey(&s, key);
        cr_expect_eq(load_be32(key), known[i]);
    }
    store_be32(key, 0x91111111);
    pseudonym_qkey(&s, key);
    cr_expect(load_be32(key) != 0x91111111 && load_be32(key) >> 31);
    memset(key, 0, 8);
    pseudonym_mkey(&s, key);
    cr_expect_eq(load_be64(key), 0);
    key[7] = 1;
    pseudonym_mkey(&s, key);
    cr_expect(load_be64(key) > 1);
}
