/* layer 2b tests: SMC-R: rings and the data in them, LLC requests, CLC messages, damage. */
#include "dissect/socket/smc.h"

#include "tests/unit/ulp_run.h"

#define RKEY 0x37b
#define VA   UINT64_C(0xffff888000000000)

/* A message of 44 bytes. */
static uint8_t *message(uint8_t type, uint8_t flags)
{
    static uint8_t b[SMC_LEN];

    memset(b, 0, sizeof b);
    b[0] = type;
    b[1] = SMC_LEN;
    b[3] = flags;
    return b;
}

static struct pkt *say(struct run *r, unsigned from, uint32_t psn, const uint8_t *b)
{
    return put(r, from, OP_SEND_ONLY, psn, NULL, 0, b, SMC_LEN);
}

/* The target's ring is known: it confirms its key, and the host answers, whose ACKs pair the flows. */
static void ring(struct run *r)
{
    const uint8_t ack[4] = {0x1f, 0, 0, 1};
    uint8_t *b;

    say(r, HOST, 5, message(SMC_TEST_LINK, 0));
    put(r, TARGET, OP_ACKNOWLEDGE, 5, ack, 4, NULL, 0);
    b = message(SMC_CONFIRM_RKEY, 0);
    store_be32(b + 5, RKEY);
    store_be64(b + 9, VA);
    say(r, TARGET, 100, b);
}

static struct pkt *cdc(struct run *r, uint32_t psn, uint32_t token, uint32_t count, uint8_t closing)
{
    uint8_t *b = message(SMC_CDC, 0);

    b[3] = 1;
    store_be32(b + 4, token);
    store_be32(b + 12, count);
    b[25] = closing;
    return say(r, HOST, psn, b);
}

static void acknowledge(struct run *r, unsigned from, uint32_t psn)
{
    const uint8_t ack[4] = {0x1f, 0, 0, 1};

    put(r, from, OP_ACKNOWLEDGE, psn, ack, 4, NULL, 0);
}

Test(smc, what_a_cursor_announces_was_written_before)
{
    struct run *r = run_new("smcr");
    struct pkt *p;

    ring(r);
    p = with_reth(r, HOST, OP_WRITE_ONLY, 6, VA, RKEY, 100, 100);
    cr_expect(p->note.have & NOTE_ULP_DATA);
    p = cdc(r, 7, 1, 100, 0);
    cr_expect(says(p, "SMC-R Data token 0x1 of the receiver cursor 0:0 to 0:100"), "%s", p->note.ulp);
    with_reth(r, HOST, OP_WRITE_ONLY, 8, VA + 100, RKEY, 50, 50);
    p = cdc(r, 9, 1, 150, 0x80);
    cr_expect(says(p, "SMC-R Data token 0x1 of the receiver cursor 0:100 to 0:150"), "%s", p->note.ulp);
    run_end(r);
    cr_expect_eq(r->n_over, 4, "two of data, two requests of LLC, and not what is empty");
    run_free(r);
}

Test(smc, a_retransmitted_write_stays_with_what_it_was)
{
    struct run *r = run_new("smcr");
    unsigned data = 0;

    ring(r);
    with_reth(r, HOST, OP_WRITE_ONLY, 6, VA, RKEY, 100, 100);
    cdc(r, 7, 1, 100, 0);
    r->frame += 5000; /* 5 ms */
    with_reth(r, HOST, OP_WRITE_ONLY, 6, VA, RKEY, 100, 100);
    cdc(r, 7, 1, 100, 0);
    run_end(r);
    for (unsigned i = 0; i < r->n_over; i++)
        if (r->over[i].moved[ULP_FROM_CLIENT]) {
            data++;
            cr_expect_eq(r->over[i].moved[ULP_FROM_CLIENT], 100);
            cr_expect_eq(r->over[i].requested[ULP_FROM_CLIENT], 100);
            cr_expect_gt(r->over[i].again, 0);
        }
    cr_expect_eq(data, 1);
    run_free(r);
}

Test(smc, an_answer_ends_the_request_of_the_other_side)
{
    struct run *r = run_new("smcr");
    struct pkt *p;

    ring(r);
    p = say(r, HOST, 6, message(SMC_CONFIRM_RKEY, 0xa0));
    cr_expect(says(p, "SMC-R Confirm RKey rkey 0x37b: refused"), "%s", p->note.ulp);
    p = say(r, TARGET, 101, message(SMC_TEST_LINK, 0x80));
    cr_expect(says(p, "SMC-R Test Link: answered"), "%s", p->note.ulp);
    run_free(r);
}

/* The capture begins when two connections of a link are there: no message told of their rings. The CDC message behind
 * what is written tells which token a ring has, one that announces nothing tells nothing. */
Test(smc, rings_of_which_only_writes_tell)
{
    struct run *r = run_new("smcr");
    struct pkt *p;

    cdc(r, 5, 1, 500, 0);
    acknowledge(r, TARGET, 5);
    p = with_reth(r, HOST, OP_WRITE_ONLY, 6, VA + 0x700, RKEY, 100, 100);
    cr_expect(says(p, "SMC-R Data of the receiver data 0-99"), "%s", p->note.ulp);
    p = cdc(r, 7, 1, 600, 0);
    cr_expect(says(p, "SMC-R Data token 0x1 of the receiver cursor 0:500 to 0:600"), "%s", p->note.ulp);
    with_reth(r, HOST, OP_WRITE_ONLY, 8, VA + 0x10300, RKEY + 1, 50, 50);
    p = cdc(r, 9, 1, 600, 0);
    cr_expect(says(p, "SMC-R CDC token 0x1 cursor 0:600"), "the consumer's cursor moved: %s", p->note.ulp);
    p = cdc(r, 10, 2, 7000, 0);
    cr_expect(says(p, "SMC-R Data token 0x2 of the receiver up to cursor 0:7000"), "%s", p->note.ulp);
    p = with_reth(r, HOST, OP_WRITE_ONLY, 11, VA + 0x10000, RKEY + 1, 30, 30);
    cr_expect(says(p, "SMC-R Data token 0x2 of the receiver data 0-29"), "%s", p->note.ulp);
    p = cdc(r, 12, 2, 7030, 0);
    cr_expect(says(p, "SMC-R Data token 0x2 of the receiver cursor 0:7000 to 0:7030"), "below the first: %s",
              p->note.ulp);
    run_end(r);
    cr_assert_eq(r->n_over, 3);
    for (unsigned i = 0; i < 3; i++)
        cr_expect_eq(r->over[i].moved[ULP_FROM_CLIENT], r->over[i].requested[ULP_FROM_CLIENT]);
    run_free(r);
}

/* A connection is closed, and its ring is that of another one. */
Test(smc, a_ring_of_two_connections_one_after_the_other)
{
    struct run *r = run_new("smcr");
    struct pkt *p;

    ring(r);
    with_reth(r, HOST, OP_WRITE_ONLY, 6, VA, RKEY, 100, 100);
    cdc(r, 7, 1, 100, 0);
    cdc(r, 8, 1, 100, 0x40);
    with_reth(r, HOST, OP_WRITE_ONLY, 9, VA, RKEY, 70, 70);
    p = cdc(r, 10, 2, 70, 0);
    cr_expect(says(p, "SMC-R Data token 0x2 of the receiver cursor 0:0 to 0:70"), "%s", p->note.ulp);
    run_free(r);
}

/* Tokens are told by what was written: one that was wrong gives way to the one that fits what is written next. */
Test(smc, a_token_that_was_supposed_is_corrected)
{
    struct run *r = run_new("smcr");
    struct pkt *p;

    cdc(r, 5, 9, 1, 0);
    acknowledge(r, TARGET, 5);
    with_reth(r, HOST, OP_WRITE_ONLY, 6, VA, RKEY, 100, 100);
    p = cdc(r, 7, 2, 5000, 0);
    cr_expect(says(p, "SMC-R Data token 0x2 of the receiver up to cursor 0:5000"), "it may be that of another: %s",
              p->note.ulp);
    p = cdc(r, 8, 1, 100, 0);
    cr_expect(says(p, "SMC-R CDC token 0x1 cursor 0:100"), "%s", p->note.ulp);
    with_reth(r, HOST, OP_WRITE_ONLY, 9, VA + 100, RKEY, 20, 20);
    p = cdc(r, 10, 1, 120, 0);
    cr_expect(says(p, "SMC-R Data token 0x1 of the receiver cursor 0:100 to 0:120"), "%s", p->note.ulp);
    p = cdc(r, 11, 2, 5000, 0);
    cr_expect(says(p, "SMC-R CDC token 0x2 cursor 0:5000"), "%s", p->note.ulp);
    run_free(r);
}

/* Connections of a link come and go: the rings of those that are over make room for others. */
Test(smc, a_deleted_rkey_is_memory_no_more)
{
    struct run *r = run_new("smcr");
    uint32_t psn = 6, other = 101;
    char deleted[64];
    struct pkt *p;
    uint8_t *b;

    ring(r);
    cdc(r, psn++, 1, 0, 0);
    for (uint32_t i = 0; i < 40; i++) {
        b = message(SMC_CONFIRM_RKEY, 0);
        store_be32(b + 5, 0x1000 + i);
        store_be64(b + 9, VA + (UINT64_C(1) << 32));
        say(r, TARGET, other++, b);
        p = with_reth(r, HOST, OP_WRITE_ONLY, psn++, VA + (UINT64_C(1) << 32), 0x1000 + i, 100, 100);
        cr_expect(p->note.have & NOTE_ULP_DATA, "ring %u", i);
        p = cdc(r, psn++, 2 + i, 100, 0x80);
        cr_expect(p->note.have & NOTE_ULP && strstr(p->note.ulp, "cursor 0:0 to 0:100"), "ring %u: %s", i, p->note.ulp);
        b = message(SMC_DELETE_RKEY, 0);
        b[4] = 1;
        store_be32(b + 8, 0x1000 + i);
        say(r, TARGET, other++, b);
        b = message(SMC_DELETE_RKEY, 0x80);
        b[4] = 1;
        store_be32(b + 8, 0x1000 + i);
        p = say(r, HOST, psn++, b);
        snprintf(deleted, sizeof deleted, "SMC-R Delete RKey rkey 0x%x: answered", 0x1000 + i);
        cr_expect(says(p, deleted), "%s", p->note.ulp);
    }
    with_reth(r, HOST, OP_WRITE_ONLY, psn++, VA, RKEY, 10, 10);
    p = cdc(r, psn, 1, 10, 0);
    cr_expect(says(p, "SMC-R Data token 0x1 of the receiver cursor 0:0 to 0:10"), "the other ring is there: %s",
              p->note.ulp);
    run_free(r);
}

/* The values of a field of a packet, one after the other: "1 2". */
static const char *values_of(const struct pkt *p, const char *name)
{
    static struct buf b;
    struct value v;

    b.len = 0;
    for (unsigned l = 0; l < p->n_layers; l++)
        for (unsigned i = 0; i < p->layers[l].hdr->nfields; i++)
            if (strcmp(p->layers[l].hdr->fields[i].abbrev, name) == 0 &&
                field_value(&p->layers[l].hdr->fields[i], p, &p->layers[l], &v))
                buf_printf(&b, "%s%llx", b.len ? " " : "", (unsigned long long)v.u);
    return buf_str(&b);
}

Test(smc, fields_of_llc_messages)
{
    struct run *r = run_new("smcr");
    const struct pkt *p;
    uint8_t *b;

    ring(r);
    b = message(SMC_CONFIRM_RKEY, 0xb0);
    for (unsigned i = 4; i < SMC_LEN; i++)
        b[i] = (uint8_t)(i - 3);
    p = say(r, HOST, 6, b);
    cr_expect_str_eq(values_of(p, "smc.confirm.rkey.negative.response"), "1");
    cr_expect_str_eq(values_of(p, "smc.confirm.rkey.retry.rkey.set"), "1");
    cr_expect_str_eq(values_of(p, "smc.confirm.rkey.new.rkey"), "2030405 f101112", "this link, and one other");
    cr_expect_str_eq(values_of(p, "smc.confirm.rkey.link.number"), "e");
    cr_expect_str_eq(values_of(p, "smc.delete.link.all"), "");
    b = message(SMC_DELETE_LINK, 0x60);
    b[4] = 3;
    p = say(r, HOST, 7, b);
    cr_expect_str_eq(values_of(p, "smc.delete.link.all"), "1");
    cr_expect_str_eq(values_of(p, "smc.delete.link.orderly"), "1");
    cr_expect_str_eq(values_of(p, "smc.delete.link.number"), "3");
    b = message(SMC_ADD_LINK_CONT, 0);
    b[4] = 2;
    b[5] = 2;
    store_be32(b + 8, 0x11);
    store_be32(b + 12, 0x12);
    store_be64(b + 16, 0x13);
    store_be32(b + 24, 0x21);
    p = say(r, HOST, 8, b);
    cr_expect_str_eq(values_of(p, "smc.add.link.cont.rmb.RTok1.Rkey1"), "11");
    cr_expect_str_eq(values_of(p, "smc.add.link.cont.rmb.RTok1.virt"), "13 0");
    cr_expect_str_eq(values_of(p, "smc.add.link.cont.rmb.RTok2.Rkey1"), "21");
    for (unsigned n = 0; n < 5; n++) { /* a continuation has three links at most */
        static const char *const rkeys[] = {"", "3040506", "3040506 10111213", "3040506 10111213 1d1e1f20",
                                            "3040506 10111213 1d1e1f20"};
        b = message(SMC_CONFIRM_RKEY_CONT, 0x20);
        for (unsigned i = 5; i < SMC_LEN; i++)
            b[i] = (uint8_t)(i - 3);
        b[4] = (uint8_t)n;
        p = say(r, HOST, 9 + n, b);
        cr_expect_str_eq(values_of(p, "rdma.smc.confirm_rkey_cont.new.rkey"), rkeys[n]);
        cr_expect_str_eq(values_of(p, "rdma.smc.confirm_rkey_cont.negative"), "1");
    }
    cr_expect_str_eq(values_of(p, "rdma.smc.confirm_rkey_cont.link.number"), "2 f 1c");
    cr_expect_str_eq(values_of(p, "rdma.smc.confirm_rkey_cont.new.virt"),
                     "708090a0b0c0d0e 1415161718191a1b 2122232425262728");
    b = message(SMC_DELETE_RKEY, 0xa0);
    b[4] = 255;
    b[5] = 0x80;
    store_be32(b + 8, 0x31);
    p = say(r, HOST, 14, b);
    cr_expect_str_eq(values_of(p, "smc.delete.rkey.error.mask"), "80");
    cr_expect_str_eq(values_of(p, "smc.delete.rkey.deleted"), "31 0 0 0 0 0 0 0");
    run_free(r);
}

Test(smc, lengths_of_version_2_in_either_order)
{
    uint8_t b[88] = {0x22, 88, 0};
    struct smc m;

    cr_expect(smc_get(&m, b, sizeof b) && m.v2 && m.type == SMC_ADD_LINK);
    b[1] = 0;
    b[2] = 88;
    cr_expect(smc_get(&m, b, sizeof b));
    b[2] = 87;
    cr_expect_not(smc_get(&m, b, sizeof b));
    b[2] = 88;
    b[0] = 0x23;
    cr_expect_not(smc_get(&m, b, sizeof b), "version 2 has no continuations");
    b[0] = 0x22;
    for (uint32_t n = 0; n < SMC_LEN; n++)
        cr_expect_not(smc_get(&m, b, n));
}

/* The server asks for a new link, and names its memory. */
static struct pkt *add_link(struct run *r, unsigned from, uint32_t psn)
{
    uint8_t b[88] = {0x22, 88, 0, 0};

    store_be32(b + 72, RKEY);
    store_be32(b + 76, 0x999);
    store_be64(b + 80, VA);
    b[70] = 1; /* as Linux writes it */
    return put(r, from, OP_SEND_ONLY, psn, NULL, 0, b, sizeof b);
}

Test(smc, one_message_tells_where_no_clc_was_captured)
{
    const uint8_t ack[4] = {0x1f, 0, 0, 1};
    struct run *r = run_new(NULL);
    struct pkt *p;

    p = say(r, TARGET, 100, message(SMC_CONFIRM_LINK, 0));
    cr_expect(says(p, "SMC-R Confirm Link link 0"), "%s", p->note.have & NOTE_ULP ? p->note.ulp : "nothing");
    put(r, HOST, OP_ACKNOWLEDGE, 100, ack, 4, NULL, 0);
    p = say(r, HOST, 5, message(SMC_CONFIRM_LINK, 0x80));
    cr_expect(says(p, "SMC-R Confirm Link link 0: answered"), "%s", p->note.have & NOTE_ULP ? p->note.ulp : "nothing");
    put(r, TARGET, OP_ACKNOWLEDGE, 5, ack, 4, NULL, 0);
    add_link(r, TARGET, 101);
    p = with_reth(r, HOST, OP_WRITE_ONLY, 6, VA, RKEY, 100, 100);
    cr_expect(p->note.have & NOTE_ULP_DATA, "memory that Add Link names");
    p = cdc(r, 7, 1, 100, 0);
    cr_expect(says(p, "SMC-R Data token 0x1 of the server cursor 0:0 to 0:100"), "%s", p->note.ulp);
    run_free(r);
}

/* A message about an end of the second link, from its owner. */
static struct pkt *second_end(struct run *r, unsigned from, uint32_t psn, uint8_t type, uint8_t flags, uint32_t rkey)
{
    uint8_t b[88] = {(uint8_t)(0x20 | type), type == SMC_ADD_LINK ? 88 : SMC_LEN, 0, flags};
    unsigned add = type == SMC_ADD_LINK ? 2 : 0;

    b[25 + add] = (uint8_t)(0x70 + from); /* GID */
    b[28 + add] = (uint8_t)(0x20 + from); /* QPN */
    b[29 + add] = 2;                      /* link */
    if (!add)
        return put(r, from, OP_SEND_ONLY, psn, NULL, 0, b, SMC_LEN);
    store_be32(b + 72, rkey);
    store_be32(b + 76, rkey + 0x1000);
    store_be64(b + 80, VA + rkey);
    b[70] = 1;
    return put(r, from, OP_SEND_ONLY, psn, NULL, 0, b, sizeof b);
}

/* Add Link on the first link tells the memory of both ends on the second one. It takes over, and Confirm RKey on the
 * first one tells of more memory there. */
Test(smc, the_second_link_of_a_group_has_memory_that_the_first_told)
{
    struct run *r = run_new(NULL);
    struct pkt *p;
    uint8_t *b;

    say(r, TARGET, 100, message(SMC_CONFIRM_LINK, 0));
    acknowledge(r, HOST, 100);
    say(r, HOST, 5, message(SMC_CONFIRM_LINK, 0x80));
    acknowledge(r, TARGET, 5);
    second_end(r, TARGET, 101, SMC_ADD_LINK, 0, RKEY);
    second_end(r, HOST, 6, SMC_ADD_LINK, 0x80, 0x500);
    with_reth(r, HOST, OP_WRITE_ONLY, 7, VA + RKEY, RKEY, 100, 100);
    p = cdc(r, 8, 1, 100, 0);
    cr_expect(says(p, "SMC-R Data token 0x1 of the server cursor 0:0 to 0:100"), "%s", p->note.ulp);

    r->qp = 16;
    second_end(r, TARGET, 300, SMC_CONFIRM_LINK, 0, 0);
    acknowledge(r, HOST, 300);
    second_end(r, HOST, 200, SMC_CONFIRM_LINK, 0x80, 0);
    acknowledge(r, TARGET, 200);
    b = message(SMC_CDC, 0);
    b[7] = 1;
    b[15] = 100;
    b[24] = 0x08;
    say(r, HOST, 201, b);
    p = with_reth(r, HOST, OP_WRITE_ONLY, 202, VA + RKEY + 100, RKEY + 0x1000, 50, 50);
    cr_expect(p->note.have & NOTE_ULP_DATA);
    p = cdc(r, 203, 1, 150, 0);
    cr_expect(says(p, "SMC-R Data token 0x1 of the server cursor 0:100 to 0:150"), "%s", p->note.ulp);
    p = with_reth(r, TARGET, OP_WRITE_ONLY, 301, VA + 0x500, 0x1500, 10, 10);
    cr_expect(p->note.have & NOTE_ULP_DATA, "memory of the client, from the response");

    r->qp = 0;
    b = message(SMC_CONFIRM_RKEY, 0);
    b[4] = 1;
    store_be32(b + 5, 0x700);
    store_be64(b + 9, VA);
    b[17] = 2;
    store_be32(b + 18, 0x701);
    store_be64(b + 22, VA + 0x10000);
    say(r, TARGET, 102, b);
    r->qp = 16;
    p = with_reth(r, HOST, OP_WRITE_ONLY, 204, VA + 0x10000, 0x701, 30, 30);
    cr_expect(p->note.have & NOTE_ULP_DATA, "memory that Confirm RKey names on another link");
    run_end(r);
    for (unsigned i = 0, n = 0; i < r->n_over; i++)
        if (r->over[i].moved[ULP_FROM_CLIENT] && r->over[i].ended == ULP_COMPLETED)
            cr_expect_eq(r->over[i].moved[ULP_FROM_CLIENT], r->over[i].requested[ULP_FROM_CLIENT], "data %u", n++);
    run_free(r);
}

Test(smc, what_one_message_does_not_tell)
{
    uint8_t *b = message(SMC_CONFIRM_LINK, 0);

    cr_expect_eq(smc_looks(b, SMC_LEN, true), LOOKS_FIRST_SERVER);
    b[40] = 1;
    cr_expect_eq(smc_looks(b, SMC_LEN, true), LOOKS_OTHER, "these bytes are reserved");
    b = message(SMC_TEST_LINK, 0);
    cr_expect_eq(smc_looks(b, SMC_LEN, true), LOOKS_EITHER, "both ends send it");
    b = message(SMC_CDC, 0);
    cr_expect_eq(smc_looks(b, SMC_LEN, true), LOOKS_OTHER, "it has no token");
    b[7] = 1;
    cr_expect_eq(smc_looks(b, SMC_LEN, true), LOOKS_FIRST_EITHER, "both ends send it");
    b[8] = 1;
    cr_expect_eq(smc_looks(b, SMC_LEN, true), LOOKS_OTHER);
}

Test(smc, who_adds_links_tells_the_server)
{
    static const struct {
        uint8_t type, flags;
        enum ulp_looks looks;
    } cases[] = {{SMC_ADD_LINK, 0, LOOKS_EITHER},          {SMC_ADD_LINK, 0x80, LOOKS_CLIENT},
                 {SMC_ADD_LINK_CONT, 0, LOOKS_SERVER},     {SMC_ADD_LINK_CONT, 0x80, LOOKS_CLIENT},
                 {SMC_REQUEST_ADD_LINK, 0, LOOKS_CLIENT},  {SMC_REQUEST_ADD_LINK, 0x80, LOOKS_SERVER},
                 {SMC_DELETE_RKEY, 0, LOOKS_EITHER},       {0x20 | SMC_ADD_LINK, 0, LOOKS_SERVER},
                 {0x20 | SMC_ADD_LINK, 0x80, LOOKS_CLIENT}};

    for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
        uint8_t *b = message(cases[i].type, cases[i].flags);
        if (cases[i].type & 0x20)
            store_be16(b + 1, SMC_LEN);
        cr_expect_eq(smc_looks(b, SMC_LEN, true), cases[i].looks, "%u", i);
    }
}

/* No CLC: the server is who asks for a link, also if the client's data come first. */
Test(smc, the_server_is_who_adds_a_link)
{
    struct run *r = run_new(NULL);
    uint8_t *b = message(0x20 | SMC_ADD_LINK, 0);
    struct pkt *p;

    store_be16(b + 1, SMC_LEN);
    say(r, TARGET, 100, b);
    acknowledge(r, HOST, 100);
    say(r, HOST, 5, message(SMC_TEST_LINK, 0));
    acknowledge(r, TARGET, 5);
    with_reth(r, HOST, OP_WRITE_ONLY, 6, VA, RKEY, 100, 100);
    p = cdc(r, 7, 1, 100, 0);
    cr_expect(says(p, "SMC-R Data token 0x1 of the server up to cursor 0:100"), "%s", p->note.ulp);
    run_free(r);
}

/* Two requests of both ends that both may send: together they tell the protocol. */
Test(smc, messages_of_both_ends_agree)
{
    struct run *r = run_new(NULL);

    say(r, HOST, 5, message(SMC_TEST_LINK, 0));
    acknowledge(r, TARGET, 5);
    say(r, TARGET, 100, message(SMC_TEST_LINK, 0x80));
    acknowledge(r, HOST, 100);
    run_end(r);
    cr_expect_eq(r->n_over, 1);
    cr_expect_eq(r->over[0].ended, ULP_COMPLETED);
    run_free(r);
}

Test(smc, a_number_of_keys_beyond_the_message)
{
    uint8_t b[88] = {0x22, 88, 0, 0};

    b[70] = b[71] = 2;
    cr_expect_eq(smc_rkeys(b, sizeof b), 0);
    b[70] = 0;
    b[71] = 1;
    cr_expect_eq(smc_rkeys(b, sizeof b), 1);
    b[0] = 0x24;
    cr_expect_eq(smc_rkeys(b, sizeof b), 0, "another message");
}

Test(smc, a_clc_message_ends_with_its_eyecatcher)
{
    uint8_t b[68] = {0xe2, 0xd4, 0xc3, 0xd9, SMC_ACCEPT, 0, 68, 0x18};
    const uint8_t *gid, *end;
    struct smc_end e;

    memcpy(b + 64, b, 4);
    b[40] = 0x11;
    b[50] = 0x23;
    end = smc_clc_end(b, sizeof b, &gid);
    cr_assert_eq(end, b + 38);
    smc_end_get(&e, end);
    cr_expect(e.qpn == 0x11 && e.size == 65536 && e.mtu == 1024);
    store_be64(b + 52, 0x70000);
    for (unsigned index = 0; index < 4; index++) { /* the first element has index 1 */
        b[45] = (uint8_t)index;
        smc_end_get(&e, end);
        cr_expect_eq(e.va, 0x70000 + (index ? index - 1 : 0) * UINT64_C(65536), "index %u", index);
    }
    cr_expect_not(smc_clc_end(b, 67, &gid), "it is cut");
    b[7] = 0x10;
    cr_expect_not(smc_clc_end(b, sizeof b, &gid), "the link is there already");
    b[6] = 67;
    cr_expect_eq(smc_clc_type(b, sizeof b), 0);
}

Test(smc, a_real_capture_cut_and_damaged_at_each_byte)
{
    cut_and_damage("captures/smcr_v2_3.pcap", 60, 250, 100, 23);
}

/* The first packet of a WRITE and an ACK are missing: the CDC message behind it waits, and when it is delivered it
 * tells what the WRITE was, whose packets waited, too. */
Test(smc, a_message_that_waited_takes_packets_that_waited)
{
    static struct kept k, all;
    struct run *r = run_new(NULL);

    keep(&all, "captures/smcr_v2_3.pcap");
    for (unsigned i = 0; i < all.n; i++)
        if (i + 1 != 24 && i + 1 != 90) {
            k.f[k.n] = all.f[i];
            memcpy(k.bytes[k.n++], all.bytes[i], sizeof k.bytes[0]);
        }
    cr_expect_gt(play(&k, UINT32_MAX / 2, 0, r), 10);
    run_end(r);
    for (unsigned i = 0; i < r->n_over; i++)
        if (r->over[i].ended == ULP_COMPLETED)
            cr_expect_leq(r->over[i].moved[ULP_FROM_CLIENT], r->over[i].requested[ULP_FROM_CLIENT],
                          "command %u: its message does not wait for an ACK of its own", i);
    run_free(r);
}
