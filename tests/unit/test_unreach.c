/* layer 5 (test): ICMP errors about packets of our own. */
#include "gen/endpoint/unreach.h"
#include "src/cap/cap.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#define CAPTURE "captures/host_peer_noudp_icmp.pcap"

Test(unreach, errors_of_a_real_host)
{
    static const uint8_t other[16] = {1};
    uint8_t own[16] = {[10] = 0xff, [11] = 0xff};
    struct cap_error err;
    struct frame f;
    struct cap *c;
    unsigned told = 0, frames = 0;

    cr_assert_eq(cap_open(&c, CAPTURE, 0, NULL, &err), 0);
    while (cap_next(c, &f) == 1) {
        struct unreachable u = {.known = false};
        bool icmp = f.caplen > 42 && f.data[23] == 1 && f.data[34] == 3;
        if (icmp)
            memcpy(own + 12, f.data + 42 + 12, 4); /* whom it is sent to: the source of the packet quoted */
        cr_assert_eq(unreachable_rx(&u, own, f.data, f.caplen), icmp);
        cr_assert_eq(u.known, icmp);
        if (icmp) {
            cr_assert_str_eq(unreachable_str(&u), "port unreachable");
            cr_assert_eq(memcmp(u.gid, u.from, 16), 0, "the host itself says so");
            u.known = false;
            cr_assert(unreachable_rx(&u, other, f.data, f.caplen));
            cr_assert_not(u.known, "it is about a packet of another");
        }
        for (uint32_t len = 0; len < f.caplen; len++) { /* cut anywhere, in memory of its own */
            uint8_t *copy = malloc(len + 1);
            memcpy(copy, f.data, len);
            u.known = false;
            unreachable_rx(&u, own, copy, len);
            cr_assert(!u.known || len >= 14 + 20 + 8 + 20 + 4);
            free(copy);
        }
        if (icmp) { /* the same in a VLAN */
            uint8_t *tagged = malloc(f.caplen + 4);
            memcpy(tagged, f.data, 12);
            memcpy(tagged + 12, (const uint8_t[]){0x81, 0, 0, 5}, 4);
            memcpy(tagged + 16, f.data + 12, f.caplen - 12);
            cr_assert(unreachable_rx(&u, own, tagged, f.caplen + 4) && u.known);
            free(tagged);
        }
        told += icmp;
        frames++;
    }
    cap_close(c);
    cr_assert(told > 0 && told < frames, "%u of %u", told, frames);
}

Test(unreach, ipv6)
{
    static const uint8_t own[16] = {0xfd, 9, [15] = 1}, host[16] = {0xfd, 9, [15] = 2},
                         router[16] = {0xfd, 9, [15] = 3};
    uint8_t frame[14 + 40 + 8 + 40 + 8] = {[12] = 0x86, [13] = 0xdd, [14] = 0x60, [14 + 6] = 58};
    uint8_t *icmp = frame + 14 + 40, *quoted = icmp + 8;
    struct unreachable u = {.known = false};

    memcpy(frame + 14 + 8, router, 16);
    memcpy(frame + 14 + 24, own, 16);
    icmp[0] = 1;
    icmp[1] = 3;
    quoted[0] = 0x60;
    quoted[6] = 17;
    memcpy(quoted + 8, own, 16);
    memcpy(quoted + 24, host, 16);
    quoted[40 + 2] = 4791 >> 8;
    quoted[40 + 3] = 4791 & 0xff;
    cr_assert(unreachable_rx(&u, own, frame, sizeof frame));
    cr_assert(u.known && memcmp(u.gid, host, 16) == 0 && memcmp(u.from, router, 16) == 0);
    cr_assert_str_eq(unreachable_str(&u), "host unreachable");
    icmp[0] = 135;
    cr_assert_not(unreachable_rx(&u, own, frame, sizeof frame), "a neighbour solicitation");
}

Test(unreach, codes)
{
    cr_assert_str_eq(unreachable_str(&(struct unreachable){.code = 1}), "host unreachable");
    cr_assert_str_eq(unreachable_str(&(struct unreachable){.code = 4, .v6 = true}), "port unreachable");
    cr_assert_str_eq(unreachable_str(&(struct unreachable){.code = 8}), "destination unreachable");
    cr_assert_str_eq(unreachable_str(&(struct unreachable){.code = 255, .v6 = true}), "destination unreachable");
}
