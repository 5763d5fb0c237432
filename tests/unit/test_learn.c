/* layer 3 tests: learning connections from CM messages and parameter exchanges. The texts are those of real captures
 * (perftest 4.5, rdma-core 44). */
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

Test(learn, perftest_line_over_xrc)
{
    struct exchange e;

    cr_assert(parse(
        &e,
        "0000:0001:00001f:cc1722:0000130a:000055988c254000:00:00:00:00:00:00:00:00:00:00:ff:ff:c0:a8:4d:02:00000123:"));
    cr_expect_eq(e.qpn, 0x1f);
    cr_expect_eq(e.srqn, 0x123);
    cr_assert(parse(&e, "0012:0001:00001f:cc1722:0000130a:000055988c254000:00000123:"));
    cr_expect_eq(e.srqn, 0x123);
    cr_assert(parse(&e, "0012:000014:656571:00000000000000000000000000000000"));
    cr_expect_eq(e.srqn, 0);
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
    cr_expect_str_eq(ulp_of_service(UINT64_C(0x0000000000010050)), "SDP");
    cr_expect_null(ulp_of_service(UINT64_C(0x0000000000020050)));
    cr_expect_null(ulp_of_service(UINT64_C(0x0002c90300a0b0c0)));
}

/* The half of an exchange that host 0 or 1 sends over one TCP connection. */
static struct setup_half half(unsigned host, uint32_t qpn)
{
    struct setup_half h = {.kind = SETUP_EXCHANGE, .qpn = qpn, .psn = qpn * 16};

    h.src.b[15] = (uint8_t)(1 + host);
    h.dst.b[15] = (uint8_t)(2 - host);
    h.id = host ? 18515u << 16 | 5000 : 5000u << 16 | 18515;
    h.peer_id = host ? 5000u << 16 | 18515 : 18515u << 16 | 5000;
    return h;
}

Test(learn, a_half_sent_again_is_no_new_half)
{
    static const struct {
        unsigned host;
        uint32_t qpn, first; /* first: queue pair of the half that it answers; 0: none */
    } steps[] = {
        {0, 0x11, 0}, {0, 0x11, 0}, {1, 0x21, 0x11}, {1, 0x21, 0}, {0, 0x12, 0}, {1, 0x22, 0x12}, {0, 0x11, 0},
    };
    struct setup_exchanges x = {0};

    for (unsigned i = 0; i < ARRAY_LEN(steps); i++) {
        struct setup_half h = half(steps[i].host, steps[i].qpn), first = {0};
        cr_expect_eq(setup_exchange_join(&x, &h, &first), steps[i].first != 0, "step %u", i);
        cr_expect_eq(first.qpn, steps[i].first, "step %u: 0x%x", i, first.qpn);
    }
}

Test(learn, the_other_half_comes_from_the_other_port)
{
    struct setup_half first = half(0, 0x11), second = half(1, 0x21);

    cr_expect(setup_answers(&second, &first));
    first.tap = 1;
    cr_expect_not(setup_answers(&second, &first));
    second.peer_tap = 1;
    cr_expect(setup_answers(&second, &first));
    second.kind = SETUP_REP;
    cr_expect_not(setup_answers(&second, &first));
}
