/* layer 3 tests: what CM messages and parameter exchanges teach. The texts are those of real captures (perftest 4.5,
 * rdma-core 44). */
#include "dissect/ulp/service.h"
#include "src/conn/setup.h"

#include <criterion/criterion.h>

static bool parse(struct exchange *e, const char *text)
{
    return exchange_parse(e, (const uint8_t *)text, strlen(text) + 1);
}

Test(learn, pingpong_line)
{
    static const uint8_t gid[16] = {[10] = 0xff, [11] = 0xff, 192, 168, 77, 1};
    struct exchange e;

    cr_assert(parse(&e, "0000:000014:656571:00000000000000000000ffffc0a84d01"));
    cr_expect_eq(e.qpn, 0x14);
    cr_expect_eq(e.psn, 0x656571);
    cr_expect(e.have_addr);
    cr_expect_arr_eq(e.addr, gid, 16);
}

Test(learn, perftest_line)
{
    static const uint8_t gid[16] = {[10] = 0xff, [11] = 0xff, 192, 168, 77, 2};
    struct exchange e;

    cr_assert(parse(
        &e,
        "0000:0001:00001f:cc1722:0000130a:000055988c254000:00:00:00:00:00:00:00:00:00:00:ff:ff:c0:a8:4d:02:00000000:"));
    cr_expect_eq(e.qpn, 0x1f);
    cr_expect_eq(e.psn, 0xcc1722);
    cr_expect_arr_eq(e.addr, gid, 16);
}

Test(learn, a_lid_stands_in_for_a_gid)
{
    struct exchange e;

    cr_assert(parse(&e, "0012:000014:656571:00000000000000000000000000000000"));
    cr_expect_eq(e.addr[15], 0x12);
}

Test(learn, other_text_is_not_an_exchange)
{
    struct exchange e;

    cr_expect_not(parse(&e, "GET / HTTP/1.1\r\nHost: example.org\r\n\r\n"));
    cr_expect_not(parse(&e, "0000:000014:656571"));
    cr_expect_not(parse(&e, ""));
    cr_expect_not(
        parse(&e, "0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0"));
}

Test(learn, service_ids_name_upper_protocols)
{
    cr_expect_str_eq(ulp_of_service(UINT64_C(0x0000000001061144)), "NVMe/RDMA");
    cr_expect_str_eq(ulp_of_service(UINT64_C(0x0000000001064e51)), "NFS/RDMA");
    cr_expect_str_eq(ulp_of_service(UINT64_C(0x0000000001060001)), "RDMA-CM application");
    cr_expect_str_eq(ulp_of_service(UINT64_C(0x1000000000000404)), "IPoIB connected mode");
    cr_expect_null(ulp_of_service(UINT64_C(0x0002c90300a0b0c0)));
}
