/* layer 2b tests: upper protocols: messages, memory, recognition, on packets made here and on a real capture. */
#include "src/ulp/ulp.h"

#include "dissect/ulp/service.h"
#include "src/ulp/cover.h"
#include "tests/unit/nvme_run.h"

#include <malloc.h>

/* --- Bytes seen ------------------------------------------------------------------------------- */

Test(ulp_cover, counts_each_byte_once)
{
    struct cover c = {0};

    cr_expect_eq(cover_add(&c, 10, 20), 10);
    cr_expect_eq(cover_add(&c, 0, 5), 5);
    cr_expect_eq(cover_prefix(&c), 5);
    cr_expect_eq(cover_add(&c, 4, 12), 5);
    cr_expect_eq(cover_prefix(&c), 20);
    cr_expect_eq(cover_add(&c, 0, 20), 0);
    cr_expect_eq(c.n, 1);
}

Test(ulp_cover, agrees_with_a_bitmap)
{
    uint32_t seed = 1;

    for (unsigned round = 0; round < 200; round++) {
        struct cover c = {0};
        bool seen[256] = {false};
        for (unsigned k = 0; k < 12 && c.n < COVER_SPANS; k++) {
            unsigned from = (seed = seed * 1103515245 + 12345) >> 16 & 255,
                     to = from + ((seed = seed * 1103515245 + 12345) >> 16 & 31), fresh = 0;
            to = to > 256 ? 256 : to;
            for (unsigned i = from; i < to; i++) {
                fresh += !seen[i];
                seen[i] = true;
            }
            cr_assert_eq(cover_add(&c, from, to), fresh, "round %u", round);
        }
        unsigned prefix = 0;
        while (prefix < 256 && seen[prefix])
            prefix++;
        cr_assert_eq(cover_prefix(&c), prefix);
    }
}

/* --- Commands and their data ------------------------------------------------------------------ */

Test(ulp, a_write_of_the_target_is_data_of_the_command_whose_memory_holds_it)
{
    struct run *r = run_new("nvme");
    struct pkt *p = acked(r, 5, 0x02, 3, 4096);

    cr_expect(says(p, "NVMe Read cid 0x3 nsid 1 slba 300 nlb 8"), "%s", p->note.ulp);
    cr_expect_str_eq(p->note.ulp_how, "--ulp");
    p = with_reth(r, TARGET, OP_WRITE_ONLY, 100, VA + 1024, RKEY, 1024, 1024);
    cr_expect(says(p, "NVMe Read cid 0x3 data 1024-2047 of 4096"), "%s", p->note.ulp);
    p = with_reth(r, TARGET, OP_WRITE_ONLY, 101, VA + 1024, RKEY, 1024, 1024);
    p = with_reth(r, TARGET, OP_WRITE_ONLY, 102, VA + 3500, RKEY, 1024, 1024);
    cr_expect_not(p->note.have & NOTE_ULP, "it ends behind the memory");
    p = with_reth(r, TARGET, OP_WRITE_ONLY, 103, VA, RKEY + 1, 1024, 1024);
    cr_expect_not(p->note.have & NOTE_ULP, "another key");
    p = with_reth(r, HOST, OP_WRITE_ONLY, 6, VA, RKEY, 1024, 1024);
    cr_expect_not(p->note.have & NOTE_ULP, "the memory is the sender's own");
    p = completion(r, 104, 3, 0x4002);
    cr_expect(says(p, "NVMe Read cid 0x3: Invalid Field in Command, do not retry"), "%s", p->note.ulp);
    run_end(r);
    cr_expect_eq(r->n_over, 1);
    cr_expect_eq(r->over[0].moved[ULP_TO_CLIENT], 1024, "the bytes of the second WRITE are those of the first");
    cr_expect_eq(r->over[0].requested[ULP_TO_CLIENT], 4096);
    cr_expect_eq(r->over[0].again, 1);
    cr_expect(r->over[0].failed);
    cr_expect_eq(r->over[0].status, 0x4002);
    run_free(r);
}

/* At byte 512 of the 1024 that follow the command. */
Test(ulp, data_in_a_capsule_begin_at_the_offset_of_their_descriptor)
{
    struct run *r = run_new("nvme");
    uint8_t b[NVME_SQE_LEN + 1024] = {0};

    memcpy(b, sqe(0x01, 3, 1, 1024), NVME_SQE_LEN);
    store_le(b + 24, 8, 512);
    cr_expect_eq(nvme_looks(b, sizeof b, true), LOOKS_OTHER, "they end behind the capsule");
    command(r, 5, 0x02, 9, 4096); /* that is the host */
    put(r, HOST, OP_SEND_ONLY, 6, NULL, 0, b, sizeof b);
    run_end(r);
    cr_expect_eq(r->n_over, 2);
    cr_expect_eq(r->over[1].moved[ULP_FROM_CLIENT], 512);
    cr_expect_eq(r->over[1].requested[ULP_FROM_CLIENT], 1024);
    run_free(r);
}

Test(ulp, an_offset_that_wraps_around_is_outside_of_the_capsule)
{
    struct run *r = run_new("nvme");
    uint8_t b[NVME_SQE_LEN + 1024] = {0};
    struct pkt *p;

    memcpy(b, sqe(NVME_FABRICS, 3, 1, 1024), NVME_SQE_LEN);
    b[4] = NVME_FCTYPE_CONNECT;
    store_le(b + 24, 8, UINT64_MAX - 63);
    p = put(r, HOST, OP_SEND_ONLY, 5, NULL, 0, b, sizeof b);
    for (unsigned i = 0; i < p->n_layers; i++)
        cr_expect_neq(p->layers[i].hdr, &nvme_connect_data_hdr);
    run_end(r);
    cr_expect_eq(r->over[0].moved[ULP_FROM_CLIENT], 0);
    run_free(r);
}

Test(ulp, responses_captured_before_their_read_are_data_of_its_command)
{
    struct run *r = run_new("nvme");
    uint8_t aeth[4] = {0x1f, 0, 0, 1};

    acked(r, 5, 0x01, 3, 2500);
    with_reth(r, TARGET, OP_READ_REQUEST, 98, VA, RKEY, 512, 0);
    put(r, HOST, OP_READ_RESP_ONLY, 98, aeth, 4, NULL, 512);
    put(r, HOST, OP_READ_RESP_FIRST, 99, aeth, 4, NULL, 1024);
    put(r, HOST, OP_READ_RESP_LAST, 100, aeth, 4, NULL, 964);
    with_reth(r, TARGET, OP_READ_REQUEST, 99, VA + 512, RKEY, 1988, 0);
    run_end(r);
    cr_expect_eq(r->over[0].moved[ULP_FROM_CLIENT], 2500, "%llu",
                 (unsigned long long)r->over[0].moved[ULP_FROM_CLIENT]);
    cr_expect_eq(r->over[0].data_last, 7, "the READ request, the latest packet");
    run_free(r);
}

Test(ulp, responses_to_a_read_are_data_of_its_command)
{
    struct run *r = run_new("nvme");
    uint8_t aeth[4] = {0x1f, 0, 0, 1};
    struct pkt *p;

    acked(r, 5, 0x01, 3, 2500);
    p = with_reth(r, TARGET, OP_READ_REQUEST, 100, VA, RKEY, 2500, 0);
    cr_expect(says(p, "NVMe Write cid 0x3 data requested"), "%s", p->note.ulp);
    p = put(r, HOST, OP_READ_RESP_FIRST, 100, aeth, 4, NULL, 1024);
    cr_expect_eq(p->note.ulp_offset, 0);
    p = put(r, HOST, OP_READ_RESP_MIDDLE, 101, NULL, 0, NULL, 1024);
    cr_expect_eq(p->note.ulp_offset, 1024);
    p = put(r, HOST, OP_READ_RESP_LAST, 102, aeth, 4, NULL, 452);
    cr_expect(says(p, "NVMe Write cid 0x3 data 2048-2499 of 2500"), "%s", p->note.ulp);
    run_end(r);
    cr_expect_eq(r->over[0].moved[ULP_FROM_CLIENT], 2500);
    cr_expect_eq(r->over[0].data_first, 3, "the READ request");
    cr_expect_eq(r->over[0].data_last, 6);
    cr_expect_str_eq(buf_str(&r->text), "Write cid 0x3 nsid 1 slba 300 nlb 8: no response seen");
    run_free(r);
}

/* The target asks for memory, and the host refuses it. Returns the NAK. */
static struct pkt *refuse(struct run *r, uint8_t opcode, uint32_t psn, uint64_t va, uint32_t rkey, uint32_t len)
{
    uint8_t nak[4] = {0x62, 0, 0, 1};

    with_reth(r, TARGET, opcode, psn, va, rkey, len, opcode == OP_READ_REQUEST ? 0 : len);
    return put(r, HOST, OP_ACKNOWLEDGE, psn, nak, 4, NULL, 0);
}

/* Command 3 is a Read: it offers 4096 bytes for WRITEs. */
Test(ulp, a_nak_names_the_command_and_what_of_its_memory_is_wrong)
{
    static const struct {
        uint64_t va;
        uint32_t rkey, len;
        uint8_t opcode, fault;
        const char *says;
    } refusals[] = {
        {VA, RKEY, 512, OP_WRITE_ONLY, ULP_AS_OFFERED,
         "NVMe Read cid 0x3 refused, WRITE of 512 bytes at 0xffff888000001000 with R_Key 0x1234: as the command "
         "offered it"},
        {VA + 3, RKEY + 1, 512, OP_WRITE_ONLY, ULP_WRONG_RKEY,
         "NVMe Read cid 0x3 refused, WRITE of 512 bytes at 0xffff888000001003 with R_Key 0x1235: wrong R_Key, the "
         "command offered 0x1234"},
        {VA + 4095, RKEY, 2, OP_WRITE_ONLY, ULP_RANGE,
         "NVMe Read cid 0x3 refused, WRITE of 2 bytes at 0xffff888000001fff with R_Key 0x1234: wrong range, the "
         "command offered 4096 bytes at 0xffff888000001000"},
        {VA - 1, RKEY, 1, OP_WRITE_ONLY, ULP_RANGE,
         "NVMe Read cid 0x3 refused, WRITE of 1 byte at 0xffff888000000fff with R_Key 0x1234: wrong range, the "
         "command offered 4096 bytes at 0xffff888000001000"},
        {VA, RKEY, 512, OP_READ_REQUEST, ULP_DIRECTION,
         "NVMe Read cid 0x3 refused, READ of 512 bytes at 0xffff888000001000 with R_Key 0x1234: wrong direction, the "
         "command offered it for WRITEs"},
        {7, RKEY + 1, 512, OP_WRITE_ONLY, ULP_UNKNOWN_RKEY,
         "NVMe/RDMA refused, WRITE of 512 bytes at 0x7 with R_Key 0x1235: no command offered such memory"},
        {VA, RKEY + 1, 512, OP_READ_REQUEST, ULP_UNKNOWN_RKEY,
         "NVMe/RDMA refused, READ of 512 bytes at 0xffff888000001000 with R_Key 0x1235: no command offered such "
         "memory"},
    };

    for (unsigned i = 0; i < ARRAY_LEN(refusals); i++) {
        struct run *r = run_new("nvme");
        bool known = refusals[i].fault != ULP_UNKNOWN_RKEY;
        struct pkt *p;
        acked(r, 5, 0x02, 3, 4096);
        p = refuse(r, refusals[i].opcode, 100, refusals[i].va, refusals[i].rkey, refusals[i].len);
        cr_expect(says(p, refusals[i].says), "%u: %s", i, p->note.have & NOTE_ULP ? p->note.ulp : "nothing");
        run_end(r);
        cr_expect_eq(r->over[0].naks, known, "%u", i);
        cr_expect_eq(r->over[0].refusal.frame, known ? 4 : 0, "%u", i);
        cr_expect_eq(r->over[0].refusal.fault, known ? refusals[i].fault : ULP_NO_FAULT, "%u", i);
        run_free(r);
    }
}

Test(ulp, memory_of_a_command_that_had_ended_is_stale)
{
    struct run *r = run_new("nvme");
    struct pkt *p;

    acked(r, 5, 0x02, 3, 4096);
    completion(r, 100, 3, 0);
    p = refuse(r, OP_WRITE_ONLY, 101, VA, RKEY, 512);
    cr_expect(says(p, "NVMe Read cid 0x3 refused, WRITE of 512 bytes at 0xffff888000001000 with R_Key 0x1234: stale "
                      "R_Key, the command ended in frame 3"),
              "%s", p->note.ulp);
    run_free(r);
}

/* The target asked before it responded: the NAK comes behind the response. */
Test(ulp, a_nak_behind_the_response_refuses_no_stale_memory)
{
    static const struct {
        uint64_t va;
        uint32_t rkey;
        const char *says;
    } asked[] = {{VA + 4096, RKEY, "wrong range"}, {VA, RKEY + 1, "wrong R_Key"}, {VA, RKEY, "as the command offered"}};

    for (unsigned i = 0; i < ARRAY_LEN(asked); i++) {
        struct run *r = run_new("nvme");
        uint8_t nak[4] = {0x62, 0, 0, 1};
        struct pkt *p;
        acked(r, 5, 0x02, 3, 4096);
        with_reth(r, TARGET, OP_WRITE_ONLY, 100, asked[i].va, asked[i].rkey, 512, 512);
        completion(r, 101, 3, 0);
        p = put(r, HOST, OP_ACKNOWLEDGE, 100, nak, 4, NULL, 0);
        cr_expect(p->note.have & NOTE_ULP && strstr(p->note.ulp, asked[i].says), "%s", p->note.ulp);
        run_free(r);
    }
}

/* Two commands offer memory at the same address: which of them is meant, no one can tell. */
Test(ulp, a_wrong_key_names_no_command_if_several_offer_the_range)
{
    struct run *r = run_new("nvme");
    struct pkt *p;

    acked(r, 5, 0x02, 3, 4096);
    command(r, 6, 0x02, 4, 4096);
    p = refuse(r, OP_WRITE_ONLY, 100, VA, RKEY + 1, 512);
    cr_expect(p->note.have & NOTE_ULP && strstr(p->note.ulp, "no command offered"), "%s", p->note.ulp);
    run_free(r);
}

/* The response invalidates a key that its command did not offer. */
Test(ulp, a_nak_of_an_invalidation_tells_the_key)
{
    struct run *r = run_new("nvme");
    uint8_t nak[4] = {0x62, 0, 0, 1}, key[4] = {0, 0, 0x12, 0x35}, b[NVME_CQE_LEN] = {[12] = 3};
    struct pkt *p;

    acked(r, 5, 0x02, 3, 4096);
    put(r, TARGET, OP_SEND_ONLY_INV, 100, key, 4, b, sizeof b);
    p = put(r, HOST, OP_ACKNOWLEDGE, 100, nak, 4, NULL, 0);
    cr_expect(says(p, "NVMe Read cid 0x3 refused, invalidation of R_Key 0x1235: wrong R_Key, the command offered "
                      "0x1234"),
              "%s", p->note.have & NOTE_ULP ? p->note.ulp : "nothing");
    run_free(r);
}

/* The response to a command that offered none. */
Test(ulp, a_nak_of_an_invalidation_of_nothing_offered_says_so)
{
    struct run *r = run_new("nvme");
    uint8_t nak[4] = {0x62, 0, 0, 1}, key[4] = {0, 0, 0x12, 0x35}, b[NVME_CQE_LEN] = {[12] = 3};
    struct pkt *p;

    acked(r, 5, 0x00, 3, 0);
    put(r, TARGET, OP_SEND_ONLY_INV, 100, key, 4, b, sizeof b);
    p = put(r, HOST, OP_ACKNOWLEDGE, 100, nak, 4, NULL, 0);
    cr_expect(says(p, "NVMe Flush cid 0x3 refused, invalidation of R_Key 0x1235: no command offered such memory"), "%s",
              p->note.have & NOTE_ULP ? p->note.ulp : "nothing");
    run_free(r);
}

Test(ulp, a_retransmitted_command_is_the_same_one)
{
    struct run *r = run_new("nvme");
    struct pkt *p;

    acked(r, 5, 0x02, 3, 4096);
    command(r, 6, 0x02, 4, 4096);
    r->frame += 5000; /* 5 ms */
    p = command(r, 5, 0x02, 3, 4096);
    cr_expect_eq(p->note.ulp_command, 1);
    cr_expect(p->note.have & NOTE_RETRANS);
    completion(r, 100, 3, 0);
    run_end(r);
    cr_expect_eq(r->n_over, 2);
    cr_expect_eq(r->over[0].ended, ULP_COMPLETED);
    cr_expect_eq(r->over[0].again, 1);
    run_free(r);
}

Test(ulp, an_identifier_used_again_ends_the_command_before)
{
    struct run *r = run_new("nvme");

    acked(r, 5, 0x02, 3, 4096);
    command(r, 6, 0x02, 3, 4096);
    completion(r, 100, 3, 0);
    run_end(r);
    cr_expect_eq(r->over[0].ended, ULP_REUSED);
    cr_expect_eq(r->over[1].ended, ULP_COMPLETED);
    cr_expect_eq(r->over[1].number, 2);
    run_free(r);
}

/* The capture lacks PSN 6 of the host and 101 of the target, both acknowledged: the response of command 3, and a
 * command with the same identifier. */
Test(ulp, a_response_behind_missing_packets_may_be_that_of_another_command)
{
    struct run *r = run_new("nvme");
    uint8_t ack[4] = {0x1f, 0, 0, 1};

    acked(r, 5, 0x02, 3, 4096);
    completion(r, 100, 9, 0);
    command(r, 7, 0x02, 4, 4096);
    put(r, TARGET, OP_ACKNOWLEDGE, 7, ack, 4, NULL, 0);
    completion(r, 102, 3, 6);
    completion(r, 103, 4, 0);
    run_end(r);
    cr_expect_eq(r->n_over, 2);
    cr_expect_eq(r->over[0].ended, ULP_DOUBTFUL);
    cr_expect_not(r->over[0].failed);
    cr_expect_eq(r->over[1].ended, ULP_COMPLETED);
    run_free(r);
}

Test(ulp, a_response_behind_a_packet_missing_in_one_direction_is_that_of_its_command)
{
    struct run *r = run_new("nvme");

    acked(r, 5, 0x02, 3, 4096);
    completion(r, 100, 9, 0);
    completion(r, 102, 3, 6);
    run_end(r);
    cr_expect_eq(r->over[0].ended, ULP_COMPLETED);
    cr_expect(r->over[0].failed);
    run_free(r);
}

/* Messages of authentication in capsules: their numbers are shown, what they carry is not. */
Test(ulp, messages_of_authentication_are_named)
{
    struct run *r = run_new("nvme");
    const uint8_t reply[24] = {1, 2, 0, 0, 0x34, 0x12, 4,    0,    1, 0, 4, 0,
                               9, 0, 0, 0, 0xaa, 0xbb, 0xcc, 0xdd, 1, 2, 3, 4},
                  failure[8] = {0, 0xf1, 0, 0, 0x34, 0x12, 1, 5};
    uint8_t b[NVME_SQE_LEN + sizeof reply];
    struct pkt *p;

    memcpy(b, sqe(NVME_FABRICS, 3, 1, sizeof reply), NVME_SQE_LEN);
    b[4] = NVME_FCTYPE_AUTH_SEND;
    memcpy(b + NVME_SQE_LEN, reply, sizeof reply);
    p = put(r, HOST, OP_SEND_ONLY, 5, NULL, 0, b, sizeof b);
    cr_expect_eq(value_of(p, "rdma.nvme.auth.id"), 2);
    cr_expect_eq(value_of(p, "rdma.nvme.auth.t_id"), 0x1234);
    cr_expect_eq(value_of(p, "rdma.nvme.auth.hl"), 4);
    cr_expect_eq(value_of(p, "rdma.nvme.auth.dhvlen"), 4);
    cr_expect_eq(value_of(p, "rdma.nvme.auth.seqnum"), 9);
    memcpy(b, sqe(NVME_FABRICS, 4, 1, sizeof failure), NVME_SQE_LEN);
    b[4] = NVME_FCTYPE_AUTH_SEND;
    memcpy(b + NVME_SQE_LEN, failure, sizeof failure);
    p = put(r, HOST, OP_SEND_ONLY, 6, NULL, 0, b, NVME_SQE_LEN + sizeof failure);
    cr_expect_eq(value_of(p, "rdma.nvme.auth.id"), 0xf1);
    cr_expect_eq(value_of(p, "rdma.nvme.auth.explanation"), 5);
    run_free(r);
}

/* The commands with their status, after a capture of these packets of the target: completions of cid 9, 3 or 4. */
static struct run *answered(const uint16_t *psn, const uint16_t *cid, unsigned n)
{
    struct run *r = run_new("nvme");

    for (uint16_t i = 0; i < 3; i++)
        acked(r, 5 + i, 0x02, (uint16_t[]){9, 3, 4}[i], 4096);
    for (unsigned i = 0; i < n; i++)
        completion(r, psn[i], cid[i], 0);
    run_end(r);
    return r;
}

Test(ulp, a_response_may_be_among_packets_that_the_capture_lacks)
{
    struct run *r = answered((uint16_t[]){100, 102}, (uint16_t[]){9, 4}, 2);

    cr_expect_eq(r->over[2].key, 3);
    cr_expect_eq(r->over[2].ended, ULP_OPEN);
    cr_expect(r->over[2].unseen);
    cr_expect_str_eq(buf_str(&r->text),
                     "Read cid 0x3 nsid 1 slba 300 nlb 8: no response seen; packets of the server are missing");
    run_free(r);
    r = answered((uint16_t[]){100, 101}, (uint16_t[]){9, 4}, 2);
    cr_expect_not(r->over[2].unseen, "the capture is whole");
    run_free(r);
    r = answered((uint16_t[]){100, 102, 101}, (uint16_t[]){9, 4, 3}, 3);
    cr_expect_eq(r->over[2].ended, ULP_COMPLETED, "it came late");
    cr_expect_not(r->over[2].unseen);
    run_free(r);
}

/* Opcodes of both kinds of queues, where neither CM nor Connect was captured: of no namespace they are admin commands,
 * and Get Log Page moves bytes that are no blocks. */
Test(ulp, a_command_tells_its_queue)
{
    const struct {
        uint8_t opc;
        uint32_t nsid, len;
        const char *text;
    } told[] = {
        {0x02, UINT32_MAX, 512, "Get Log Page"},
        {0x02, 1, 8208, "Get Log Page"},
        {0x09, 0, 0, "Set Features"},
        {0x0c, 0, 0, "Asynchronous Event Request"},
        {0x08, 0, 0, "Abort"},
        {0x02, 1, 4096, "Read"},
        {0x08, 1, 0, "Write Zeroes"},
        {0x01, 1, 4096, "Write"},
    };
    for (unsigned i = 0; i < ARRAY_LEN(told); i++) {
        struct run *r = run_new("nvme");
        uint8_t b[NVME_SQE_LEN];
        memcpy(b, sqe(told[i].opc, 3, 0x40, told[i].len), sizeof b);
        store_le(b + 4, 4, told[i].nsid);
        struct pkt *p = put(r, HOST, OP_SEND_ONLY, 5, NULL, 0, b, sizeof b);
        cr_expect(p->note.have & NOTE_ULP && strstr(p->note.ulp, told[i].text), "%s: %s", told[i].text,
                  p->note.have & NOTE_ULP ? p->note.ulp : "nothing");
        run_end(r);
        run_free(r);
    }
}

/* --- Recognition ------------------------------------------------------------------------------ */

Test(ulp, two_capsules_tell_the_protocol)
{
    struct run *r = run_new(NULL);
    struct pkt *p = command(r, 5, 0x02, 3, 4096);

    cr_expect_not(p->note.have & NOTE_ULP_HOW);
    p = command(r, 6, 0x02, 4, 4096);
    cr_expect(p->note.have & NOTE_ULP_HOW);
    cr_expect_str_eq(p->note.ulp_how, "first bytes");
    cr_expect_str_eq(p->note.upper, "NVMe/RDMA");
    cr_expect(says(p, "NVMe Read cid 0x4 nsid 1 slba 300 nlb 8"), "%s", p->note.ulp);
    run_free(r);
}

Test(ulp, a_wrong_guess_is_given_up)
{
    struct run *r = run_new(NULL);
    uint8_t other[40] = {0xff};
    struct pkt *p = NULL;

    command(r, 5, 0x02, 3, 4096);
    command(r, 6, 0x02, 4, 4096);
    for (uint32_t i = 0; i < 4; i++)
        p = put(r, HOST, OP_SEND_ONLY, 7 + i, NULL, 0, other, sizeof other);
    cr_expect_not(p->note.have & (NOTE_ULP_HOW | NOTE_ULP));
    cr_expect_not(p->flags & PKT_MALFORMED);
    p = command(r, 11, 0x02, 5, 4096);
    cr_expect_not(p->note.have & NOTE_ULP);
    run_free(r);
}

Test(ulp, other_messages_are_no_capsules)
{
    struct run *r = run_new(NULL);
    uint8_t b[64];
    struct pkt *p = NULL;

    for (unsigned fill = 0; fill < 256; fill++) {
        memset(b, (int)fill, sizeof b);
        p = put(r, HOST, OP_SEND_ONLY, 5 + fill, NULL, 0, b, sizeof b);
        cr_expect_not(p->note.have & NOTE_ULP_HOW, "filled with 0x%x", fill);
    }
    run_free(r);
}

Test(ulp, private_data_decide_before_ports)
{
    const uint8_t nvme[56] = {0, 0, 1, 0, 0x20, 0, 0x1f, 0}, nfs[56] = {0xf6, 0xab, 0x0e, 0x18, 1, 1, 3, 3},
                  none[56] = {0};
    uint64_t any = UINT64_C(0x0000000001060000) | 999;
    struct ulp_named n = ulp_of_req(any, nvme, sizeof nvme);

    cr_expect_str_eq(n.name, "NVMe/RDMA");
    cr_expect(n.by_private);
    n = ulp_of_req(any + 4420 - 999, none, sizeof none);
    cr_expect_str_eq(n.name, "NVMe/RDMA");
    cr_expect_not(n.by_private);
    n = ulp_of_req(any + 3260 - 999, nfs, sizeof nfs);
    cr_expect_str_eq(n.name, "NFS/RDMA", "a magic number is stronger than a port");
    n = ulp_of_req(any + 3260 - 999, nvme, sizeof nvme);
    cr_expect_str_eq(n.name, "NVMe/RDMA", "so are bytes that only NVMe sends");
    cr_expect(n.by_private);
    n = ulp_of_req(any + 3260 - 999, none, sizeof none);
    cr_expect_str_eq(n.name, "iSER");
    n = ulp_of_req(any, none, sizeof none);
    cr_expect(n.vague);
}

/* --- A real capture, damaged ------------------------------------------------------------------ */

Test(ulp, a_real_capture_cut_and_damaged_at_each_byte)
{
    cut_and_damage("captures/nvme_discover_1.pcap", 50, 1100, 100, 37);
}

/* --- Memory ----------------------------------------------------------------------------------- */

#define CONNECTIONS 10000
#define MEMORY      (UINT64_C(24) << 20)

/* Commands of each that are told by their bytes, stay open, and one whose capsule has no end. */
static void open_commands(struct run *r)
{
    uint8_t b[1024] = {0};

    command(r, 5, 0x01, 3, 4096);
    command(r, 6, 0x01, 4, 4096);
    memcpy(b, sqe(0x01, 5, 1, 8192), NVME_SQE_LEN);
    put(r, HOST, OP_SEND_FIRST, 7, NULL, 0, b, sizeof b);
    put(r, HOST, OP_SEND_MIDDLE, 8, NULL, 0, b, sizeof b);
}

Test(ulp, ten_thousand_connections_take_no_more_than_the_memory_that_is_stated)
{
    struct run *r = run_new(NULL);
    size_t before, most = 0;
    unsigned named = 0;

    context_free(r->context);
    before = mallinfo2().uordblks + mallinfo2().hblkhd;
    r->context = context_new(MEMORY);
    cr_assert(ulp_of_context(r->context, &(struct ulp_opts){.users = &r->users, .user = r, .over = on_over}));
    for (r->qp = 0; r->qp < 16 * CONNECTIONS; r->qp += 16) {
        size_t now;
        open_commands(r);
        named += r->p.note.have & NOTE_ULP || r->p.note.have & NOTE_UPPER;
        now = mallinfo2().uordblks + mallinfo2().hblkhd;
        most = now > most ? now : most;
    }
    cr_expect_leq(most - before, MEMORY, "%zu bytes", most - before);
    cr_expect_gt(named, 100);
    cr_expect_lt(named, CONNECTIONS, "there is room for all of them: the bound was not reached");
    run_end(r);
    cr_expect_gt(r->n_over, 300);
    run_free(r);
}
