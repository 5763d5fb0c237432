/* layer 2b tests: rping known by its messages: memory of a program, and zeros. */
#include "dissect/ulp/rping.h"

#include "tests/unit/ulp_run.h"

#define VA   UINT64_C(0x55f94b39b8b0)
#define RKEY 0x548

static const uint8_t *memory(uint64_t va, uint32_t rkey, uint32_t len)
{
    static uint8_t b[RPING_LEN];

    store_be64(b, va);
    store_be32(b + 8, rkey);
    store_be32(b + 12, len);
    return b;
}

static struct pkt *say(struct run *r, unsigned from, uint32_t psn, const uint8_t *b)
{
    return put(r, from, OP_SEND_ONLY, psn, NULL, 0, b, RPING_LEN);
}

static void acknowledge(struct run *r, unsigned from, uint32_t psn)
{
    const uint8_t ack[4] = {0x1f, 0, 0, 1};

    put(r, from, OP_ACKNOWLEDGE, psn, ack, 4, NULL, 0);
}

Test(ulp_rping, memory_of_a_program)
{
    static const struct {
        uint64_t va;
        uint32_t rkey, len;
        enum ulp_looks looks;
    } cases[] = {{VA, RKEY, 100, LOOKS_CLIENT}, {VA, RKEY, 65536, LOOKS_CLIENT}, {VA, RKEY, 65537, LOOKS_OTHER},
                 {VA, RKEY, 0, LOOKS_OTHER},    {VA, 0, 100, LOOKS_OTHER},       {0, RKEY, 100, LOOKS_OTHER},
                 {5, RKEY, 100, LOOKS_OTHER},   {~VA, RKEY, 100, LOOKS_OTHER}};

    for (unsigned i = 0; i < ARRAY_LEN(cases); i++)
        cr_expect_eq(rping_looks(memory(cases[i].va, cases[i].rkey, cases[i].len), RPING_LEN, true), cases[i].looks,
                     "%u", i);
    cr_expect_eq(rping_looks(memory(VA, RKEY, 100), RPING_LEN, false), LOOKS_OTHER);
    cr_expect_eq(rping_looks(memory(VA, RKEY, 100), RPING_LEN - 1, true), LOOKS_OTHER);
}

/* The capture begins when the client names what is to be written. */
Test(ulp_rping, a_message_and_its_response_tell)
{
    struct run *r = run_new(NULL);
    struct pkt *p;

    say(r, HOST, 5, memory(VA, RKEY, 100));
    acknowledge(r, TARGET, 5);
    with_reth(r, TARGET, OP_WRITE_ONLY, 100, VA, RKEY, 100, 100);
    acknowledge(r, HOST, 100);
    p = say(r, TARGET, 101, memory(0, 0, 0));
    cr_expect(says(p, "rping Write rkey 0x548: done"), "%s", p->note.ulp);
    run_end(r);
    cr_assert_eq(r->n_over, 1);
    cr_expect_eq(r->over[0].moved[ULP_TO_CLIENT], 100);
    run_free(r);
}

Test(ulp_rping, two_messages_of_the_client_tell)
{
    struct run *r = run_new(NULL);

    say(r, HOST, 5, memory(VA, RKEY, 100));
    cr_expect(say(r, HOST, 6, memory(VA + 0x2000, RKEY + 1, 100))->note.have & NOTE_ULP);
    run_end(r);
    cr_expect_eq(r->n_over, 2);
    run_free(r);
}

/* Other messages of 16 bytes. */
Test(ulp_rping, what_names_no_memory_is_none)
{
    struct run *r = run_new(NULL);

    for (unsigned i = 0; i < 8; i++) {
        say(r, HOST, 5 + i, memory(UINT64_C(0x3031323334353637), 0x38396162, 100));
        acknowledge(r, TARGET, 5 + i);
        say(r, TARGET, 100 + i, memory(0, 0, 0));
    }
    run_end(r);
    cr_expect_eq(r->n_over, 0);
    run_free(r);
}
