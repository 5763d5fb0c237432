/* layer 2b (conn) tests: why a requester goes back, from what is known of its requests and the responses to them. */
#include "src/conn/go_back.h"
#include "tests/unit/mkpkt.h"

#include <criterion/criterion.h>

/* Requests 10 to 19, of which no response is known; a READ of 4 responses at 10. */
struct known {
    struct sent sent;
    struct read_req read;
    struct req_dir h;
};

static void know(struct known *k, bool read)
{
    *k = (struct known){.sent.psn = UINT32_MAX, .read = {.psn = 10, .span = read ? 4 : 0, .len = 4096}};
    k->h = (struct req_dir){.sent = &k->sent,
                            .slots = 1,
                            .reads = &k->read,
                            .read_slots = 1,
                            .reads_at = 1,
                            .next = 20,
                            .cursor = 20,
                            .start = 10,
                            .una = 10,
                            .have_next = true,
                            .have_una = true,
                            .timeout = 14};
}

static enum why_back why(struct known *k, uint32_t psn, ns_t now)
{
    struct go_backs g = {0};
    struct pkt p = mk(OP_SEND_ONLY, psn, 8);
    struct frame f = {.ts = now};

    p.frame = &f;
    return go_back_why(&g, &k->h, &p);
}

Test(go_back, the_response_behind_the_one_that_is_missing_shows_that_it_was_lost)
{
    struct known k;

    for (uint32_t skipped = 0; skipped < 4; skipped++)
        for (uint32_t proves = 10; proves <= 14; proves++) {
            know(&k, true);
            k.h.rsp_packets = 1;
            k.h.proves = proves;
            cr_expect_eq(why(&k, 10 + skipped, NS_PER_US), proves > 10 + skipped ? BACK_IMPLIED : BACK_SILENCE,
                         "PSN %u, %u proved", 10 + skipped, proves);
        }
    know(&k, true);
    k.read.rsps = k.h.rsp_packets = 1;
    k.h.proves = 14;
    cr_expect_eq(why(&k, 10, NS_PER_US), BACK_SILENCE, "that response came before the request");
}

Test(go_back, it_goes_to_the_psn_of_the_nak_or_to_the_lowest_that_is_missing)
{
    struct known k;

    for (uint32_t psn = 10; psn < 15; psn++) {
        know(&k, false);
        k.h.seq = (struct nak){.have = true, .psn = 13};
        k.h.seq_low = 11;
        cr_expect_eq(why(&k, psn, NS_PER_S), psn == 11 || psn == 13 ? BACK_SEQ_NAK : BACK_SILENCE, "PSN %u", psn);
    }
}
