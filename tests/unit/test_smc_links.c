/* layer 2b tests: SMC-R: a link group of three links, added at once: their messages are mixed, their memory is one. */
#include "dissect/socket/smc.h"

#include "tests/unit/ulp_run.h"

#include <stdio.h>

#define RKEY 0x300u
#define VA   UINT64_C(0xffff888000000000)
#define LINK 16u /* queue pairs of link n have numbers higher by this than those of link n - 1 */

/* Next PSN of each end on each link. */
struct psns {
    uint32_t of[4][3];
};

/* The end says it on the link, and the other end acknowledges it. */
static struct pkt *say(struct run *r, struct psns *n, unsigned link, unsigned from, const uint8_t *b, uint32_t len)
{
    static struct pkt p;
    const uint8_t ack[4] = {0x1f, 0, 0, 1};
    static char note[128];
    uint32_t psn = n->of[link][from]++;

    r->qp = LINK * (link - 1);
    p = *put(r, from, OP_SEND_ONLY, psn, NULL, 0, b, len);
    if (p.note.have & NOTE_ULP) {
        snprintf(note, sizeof note, "%s", p.note.ulp);
        p.note.ulp = note;
    }
    put(r, from == HOST ? TARGET : HOST, OP_ACKNOWLEDGE, psn, ack, 4, NULL, 0);
    return &p;
}

static void put_end(uint8_t *gid, uint8_t *qpn, unsigned from, unsigned link)
{
    gid[15] = (uint8_t)(0x70 + from);
    qpn[2] = (uint8_t)(0x20 + LINK * link + from);
}

static struct pkt *confirm_link(struct run *r, struct psns *n, unsigned from, unsigned link, uint8_t flags)
{
    uint8_t b[SMC_LEN] = {SMC_CONFIRM_LINK, SMC_LEN, 0, flags, [29] = (uint8_t)link};

    put_end(b + 10, b + 26, from, link);
    return say(r, n, link, from, b, sizeof b);
}

/* R_Key of a piece of memory of an end on a link. */
static uint32_t key_on(unsigned owner, unsigned link, unsigned piece)
{
    return RKEY + 0x1000 * link + 0x100 * owner + piece;
}

static uint64_t va_on(unsigned owner, unsigned link, unsigned piece)
{
    return VA + ((uint64_t)key_on(owner, link, piece) << 20);
}

static void put_pair(uint8_t *b, unsigned from, unsigned on, unsigned link, unsigned piece)
{
    store_be32(b, key_on(from, on, piece));
    store_be32(b + 4, key_on(from, link, piece));
    store_be64(b + 8, va_on(from, link, piece));
}

/* Add Link on link `on`; of version 2 with two pieces of memory. */
static struct pkt *add_link(struct run *r, struct psns *n, unsigned from, unsigned on, unsigned link, uint8_t flags,
                            bool v2)
{
    uint8_t b[104] = {[0] = SMC_ADD_LINK | (v2 ? 0x20 : 0), [1] = v2 ? sizeof b : SMC_LEN, [3] = flags};

    put_end(b + 12, b + 28, from, link);
    b[31] = (uint8_t)link;
    b[70] = 2;
    for (unsigned i = 0; i < 2; i++)
        put_pair(b + 72 + 16 * i, from, on, link, i);
    return say(r, n, on, from, b, v2 ? sizeof b : SMC_LEN);
}

/* The memory of version 1. */
static struct pkt *go_on(struct run *r, struct psns *n, unsigned from, unsigned on, unsigned link, uint8_t flags)
{
    uint8_t b[SMC_LEN] = {SMC_ADD_LINK_CONT, SMC_LEN, 0, flags, (uint8_t)link, 2};

    for (unsigned i = 0; i < 2; i++)
        put_pair(b + 8 + 16 * i, from, on, link, i);
    return say(r, n, on, from, b, sizeof b);
}

static struct pkt *cdc(struct run *r, struct psns *n, unsigned link, uint32_t token, uint32_t count, uint8_t flags)
{
    uint8_t b[SMC_LEN] = {SMC_CDC, SMC_LEN, 0, 1};

    store_be32(b + 4, token);
    store_be32(b + 12, count);
    b[24] = flags;
    return say(r, n, link, HOST, b, sizeof b);
}

/* The host writes into a piece of memory of the target; whether that is known. */
static bool is_written(struct run *r, struct psns *n, unsigned link, unsigned piece, uint32_t at, uint32_t len)
{
    uint32_t psn = n->of[link][HOST]++;

    r->qp = LINK * (link - 1);
    return with_reth(r, HOST, OP_WRITE_ONLY, psn, va_on(TARGET, link, piece) + at, key_on(TARGET, link, piece), len,
                     len)
               ->note.have &
           NOTE_ULP_DATA;
}

/* The target's piece of memory, by its R_Key on link `on`; unless that is 1, also by those on the others. */
static void confirm_rkey(struct run *r, struct psns *n, unsigned on, unsigned piece)
{
    uint8_t b[SMC_LEN] = {SMC_CONFIRM_RKEY, SMC_LEN, 0, 0, on == 1 ? 0 : 2};

    store_be32(b + 5, key_on(TARGET, on, piece));
    store_be64(b + 9, va_on(TARGET, on, piece));
    for (unsigned i = 0, link = 1; on != 1 && link <= 3; link++)
        if (link != on) {
            b[17 + i] = (uint8_t)link;
            store_be32(b + 18 + i, key_on(TARGET, link, piece));
            store_be64(b + 22 + i, va_on(TARGET, link, piece));
            i += 13;
        }
    say(r, n, on, TARGET, b, sizeof b);
}

/* Links 2 and 3 are added on link 1, the messages of both in turn. */
static struct run *three_links(struct psns *n, bool v2)
{
    struct run *r = run_new(NULL);

    for (unsigned link = 1; link <= 3; link++)
        n->of[link][HOST] = 100 * link, n->of[link][TARGET] = 1000 * link;
    confirm_link(r, n, TARGET, 1, 0);
    confirm_link(r, n, HOST, 1, 0x80);
    confirm_rkey(r, n, 1, 0);
    confirm_rkey(r, n, 1, 1);
    cr_expect(says(add_link(r, n, TARGET, 1, 2, 0, v2), v2 ? "SMC-R Add Link (v2) link 2" : "SMC-R Add Link link 2"));
    add_link(r, n, TARGET, 1, 3, 0, v2);
    cr_expect(says(add_link(r, n, HOST, 1, 2, 0x80, v2),
                   v2 ? "SMC-R Add Link (v2) link 2: answered" : "SMC-R Add Link link 2: answered"));
    cr_expect(says(add_link(r, n, HOST, 1, 3, 0x80, v2),
                   v2 ? "SMC-R Add Link (v2) link 3: answered" : "SMC-R Add Link link 3: answered"));
    for (unsigned link = 2; link <= 3 && !v2; link++)
        go_on(r, n, TARGET, 1, link, 0);
    for (unsigned link = 2; link <= 3 && !v2; link++)
        cr_expect(says(go_on(r, n, HOST, 1, link, 0x80), link == 2 ? "SMC-R Add Link Continuation link 2: answered"
                                                                   : "SMC-R Add Link Continuation link 3: answered"));
    for (unsigned link = 3; link >= 2; link--) {
        confirm_link(r, n, TARGET, link, 0);
        confirm_link(r, n, HOST, link, 0x80);
    }
    return r;
}

/* A token that link 1 shows is known on the others, though two rings there may have it. */
Test(smc_links, memory_and_tokens_of_one_link_are_those_of_all)
{
    for (unsigned v2 = 0; v2 < 2; v2++) {
        struct psns n = {0};
        struct run *r = three_links(&n, v2);
        struct pkt *p;
        cr_expect(is_written(r, &n, 1, 1, 0, 100));
        p = cdc(r, &n, 1, 7, 100, 0);
        cr_expect(says(p, "SMC-R Data token 0x7 of the server cursor 0:0 to 0:100"), "%u: %s", v2, p->note.ulp);
        for (unsigned link = 3; link >= 2; link--) {
            uint32_t at = link == 3 ? 100 : 150;
            cr_expect(is_written(r, &n, link, 0, 0, 10), "link %u", link);
            cdc(r, &n, link, 7, at, 0x08);
            cr_expect(is_written(r, &n, link, 1, at, 50), "link %u", link);
            p = cdc(r, &n, link, 7, at + 50, 0);
            cr_expect(says(p, link == 3 ? "SMC-R Data token 0x7 of the server cursor 0:100 to 0:150"
                                        : "SMC-R Data token 0x7 of the server cursor 0:150 to 0:200"),
                      "%u: %s", v2, p->note.have & NOTE_ULP ? p->note.ulp : "nothing");
        }
        run_end(r);
        cr_assert(r->n_over <= ARRAY_LEN(r->over), "%u", r->n_over);
        for (unsigned i = 0; i < r->n_over; i++)
            if (r->over[i].requested[ULP_FROM_CLIENT] && r->over[i].ended == ULP_COMPLETED)
                cr_expect_eq(r->over[i].moved[ULP_FROM_CLIENT], r->over[i].requested[ULP_FROM_CLIENT], "data %u", i);
        run_free(r);
    }
}

/* Confirm RKey and Delete RKey on one link are about all: more pieces than a link has places for come and go. */
Test(smc_links, an_rkey_is_confirmed_and_deleted_for_all_links)
{
    struct psns n = {0};
    struct run *r = three_links(&n, false);
    struct pkt *p;
    char text[64];

    for (unsigned piece = 2; piece < 42; piece++) {
        uint8_t b[SMC_LEN] = {SMC_DELETE_RKEY, SMC_LEN, 0, 0, 1};
        confirm_rkey(r, &n, 2, piece);
        for (unsigned link = 1; link <= 3; link++)
            cr_expect(is_written(r, &n, link, piece, 0, 10), "link %u, piece %u", link, piece);
        store_be32(b + 8, key_on(TARGET, 3, piece));
        p = say(r, &n, 3, TARGET, b, sizeof b);
        snprintf(text, sizeof text, "SMC-R Delete RKey rkey 0x%x", key_on(TARGET, 3, piece));
        cr_expect(says(p, text), "%s", p->note.ulp);
        b[3] = 0x80;
        say(r, &n, 3, HOST, b, sizeof b);
    }
    run_free(r);
}

/* Of more links than Confirm RKey has room for its continuation tells. */
Test(smc_links, a_continuation_tells_of_more_links)
{
    struct psns n = {0};
    struct run *r = three_links(&n, false);
    uint8_t b[SMC_LEN] = {SMC_CONFIRM_RKEY_CONT, SMC_LEN, 0, 0, 2};

    confirm_rkey(r, &n, 1, 5);
    for (unsigned link = 2; link <= 3; link++) {
        uint8_t *at = b + 5 + 13 * (link - 2);
        at[0] = (uint8_t)link;
        store_be32(at + 1, key_on(TARGET, link, 5));
        store_be64(at + 5, va_on(TARGET, link, 5));
    }
    say(r, &n, 1, TARGET, b, sizeof b);
    cr_expect(is_written(r, &n, 1, 5, 0, 100));
    cr_expect(says(cdc(r, &n, 1, 9, 100, 0), "SMC-R Data token 0x9 of the server cursor 0:0 to 0:100"));
    for (unsigned link = 2; link <= 3; link++) {
        cr_expect(is_written(r, &n, link, 5, link == 2 ? 100 : 200, 50), "link %u", link);
        cr_expect(says(cdc(r, &n, link, 9, 100 + 50 * link, 0),
                       link == 2 ? "SMC-R Data token 0x9 of the server cursor 0:100 to 0:200"
                                 : "SMC-R Data token 0x9 of the server cursor 0:200 to 0:250"),
                  "link %u", link);
    }
    run_free(r);
}
