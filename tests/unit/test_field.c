/* layer 1 tests: properties that hold for every described header. */
#include "dissect/ib/ib.h"
#include "dissect/ip/ip.h"
#include "dissect/ip/tcp.h"
#include "dissect/link/eth.h"

#include <criterion/criterion.h>

/* Bits of a header's fixed part that its members cover. */
static void check_tiles(const struct hdr *h)
{
    uint8_t covered[4096] = {0};
    unsigned members = 0;

    for (unsigned i = 0; i < h->nfields; i++) {
        const struct field *f = &h->fields[i];
        if (!(f->flags & FLD_MEMBER))
            continue;
        members++;
        cr_assert_lt(f->bit + f->width, sizeof covered, "%s", f->abbrev);
        for (unsigned b = f->bit; b < (unsigned)f->bit + f->width; b++)
            cr_expect_eq(covered[b]++, 0, "%s: bit %u belongs to two members", f->abbrev, b);
    }
    for (unsigned b = 0; members && b < h->len * 8u; b++)
        cr_expect_eq(covered[b], 1, "%s: bit %u belongs to no member", h->abbrev, b);
    for (unsigned b = h->len * 8u; b < sizeof covered; b++)
        cr_assert_eq(covered[b], 0, "%s: a member lies beyond its end", h->abbrev);
}

Test(field, members_tile_every_header_exactly)
{
    for (const struct hdr *const *h = all_headers; *h; h++)
        check_tiles(*h);
}

Test(field, every_field_is_documented_and_sane)
{
    for (const struct hdr *const *h = all_headers; *h; h++)
        for (unsigned i = 0; i < (*h)->nfields; i++) {
            const struct field *f = &(*h)->fields[i];
            cr_expect(f->abbrev && f->label && f->blurb && *f->blurb, "%s field %u", (*h)->abbrev, i);
            cr_expect(f->get || f->width <= 64 || !ftype_is_number(f->type), "%s: too wide for a number", f->abbrev);
            cr_expect(f->get || f->width % 8 == 0 || ftype_is_number(f->type), "%s: bytes that are not aligned",
                      f->abbrev);
            cr_expect(f->get || f->type != FT_ETHER || f->width == 48, "%s", f->abbrev);
            cr_expect(f->get || f->type != FT_IPV4 || f->width == 32, "%s", f->abbrev);
            cr_expect(f->get || f->type != FT_IPV6 || f->width == 128, "%s", f->abbrev);
            cr_expect(f->get || f->type != FT_EUI64 || f->width == 64, "%s", f->abbrev);
        }
}

Test(field, a_misspelt_name_finds_its_neighbour)
{
    struct field_ref ref[4];

    cr_expect_eq(field_find("infiniband.bth.psn", 18, ref, 4), 1);
    cr_expect_eq(field_find("udp.port", 8, ref, 4), 2);
    cr_expect_eq(field_find("infiniband.bth.pns", 18, ref, 4), 0);
    cr_expect_str_eq(field_nearest("infiniband.bth.pns", 18), "infiniband.bth.psn");
}

static uint8_t random_byte(uint32_t *seed)
{
    *seed = *seed * 1103515245u + 12345u;
    return (uint8_t)(*seed >> 16);
}

/* Every member of every fixed header set from random bytes, then written back. */
#define ROUND_TRIP(name, len)                                                                                          \
    do {                                                                                                               \
        uint8_t in[len], out[len];                                                                                     \
        struct name h;                                                                                                 \
        for (unsigned i = 0; i < (len); i++)                                                                           \
            in[i] = random_byte(&seed);                                                                                \
        memset(out, 0x5a, sizeof out);                                                                                 \
        name##_get(&h, in);                                                                                            \
        name##_put(out, &h);                                                                                           \
        cr_assert_arr_eq(in, out, len, #name);                                                                         \
    } while (0)

Test(field, decode_then_encode_is_the_identity)
{
    uint32_t seed = 7;

    for (unsigned round = 0; round < 200; round++) {
        ROUND_TRIP(lrh, 8);
        ROUND_TRIP(grh, 40);
        ROUND_TRIP(bth, 12);
        ROUND_TRIP(rdeth, 4);
        ROUND_TRIP(deth, 8);
        ROUND_TRIP(xrceth, 4);
        ROUND_TRIP(feth, 4);
        ROUND_TRIP(reth, 16);
        ROUND_TRIP(atomiceth, 28);
        ROUND_TRIP(aeth, 4);
        ROUND_TRIP(atomicacketh, 8);
        ROUND_TRIP(immdt, 4);
        ROUND_TRIP(ieth, 4);
        ROUND_TRIP(eth, 14);
        ROUND_TRIP(vlan, 4);
        ROUND_TRIP(ip4, 20);
        ROUND_TRIP(ip6, 40);
        ROUND_TRIP(udp, 8);
        ROUND_TRIP(tcp, 20);
    }
}
