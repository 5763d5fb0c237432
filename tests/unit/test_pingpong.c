/* layer 3 tests: the addresses that libibverbs' examples exchange. */
#include "gen/peers/pingpong.h"

#include <criterion/criterion.h>

/* As ibv_rc_pingpong on Linux soft-RoCE sent it. */
#define CAPTURED "0000:000014:656571:00000000000000000000ffffc0a84d01"

Test(pingpong, address_of_ibv_rc_pingpong_is_read_and_written)
{
    static const uint8_t gid[16] = {[10] = 0xff, [11] = 0xff, 192, 168, 77, 1};
    struct pingpong_addr a;
    char text[PINGPONG_TEXT];

    cr_assert_eq(sizeof CAPTURED, PINGPONG_TEXT);
    cr_assert(pingpong_addr_get(&a, CAPTURED));
    cr_assert_eq(a.lid, 0);
    cr_assert_eq(a.qpn, 0x14);
    cr_assert_eq(a.psn, 0x656571);
    cr_assert_arr_eq(a.gid, gid, 16);
    pingpong_addr_put(text, &a);
    cr_assert_str_eq(text, CAPTURED);
}

Test(pingpong, addresses_with_any_wrong_character_are_refused)
{
    struct pingpong_addr a;
    char text[PINGPONG_TEXT];

    for (unsigned i = 0; i < PINGPONG_TEXT; i++) {
        memcpy(text, CAPTURED, sizeof text);
        text[i] = i == 4 || i == 11 || i == 18 || i == 51 ? '0' : 'g';
        cr_expect_not(pingpong_addr_get(&a, text), "%u", i);
        text[i] = i == 51 ? 'a' : ' ';
        cr_expect_not(pingpong_addr_get(&a, text), "%u", i);
    }
}
