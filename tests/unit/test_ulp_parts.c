/* layer 2b tests: upper protocols: messages of several packets, with holes, sent again and out of order. */
#include "tests/unit/nvme_run.h"

#include <stdio.h>

/* A Write of 2000 bytes in its capsule, in three packets of at most 1024 bytes. */
static struct pkt *capsule_packet(struct run *r, uint32_t psn, unsigned i)
{
    static const uint8_t opcodes[] = {OP_SEND_FIRST, OP_SEND_MIDDLE, OP_SEND_LAST};
    uint8_t b[3 * 1024] = {0};

    memcpy(b, sqe(0x01, 3, 1, 2000), NVME_SQE_LEN);
    return put(r, HOST, opcodes[i], psn + i, NULL, 0, b + 1024 * i, i < 2 ? 1024 : 16);
}

Test(ulp, a_capsule_is_put_together)
{
    struct run *r = run_new("nvme");
    struct pkt *p;

    capsule_packet(r, 5, 0);
    p = capsule_packet(r, 5, 1);
    cr_expect(says(p, "NVMe/RDMA Write cid 0x3 nsid 1 slba 300 nlb 8: part"), "%s", p->note.ulp);
    p = capsule_packet(r, 5, 2);
    cr_expect(says(p, "NVMe Write cid 0x3 nsid 1 slba 300 nlb 8"), "%s", p->note.ulp);
    cr_expect_eq(p->note.ulp_command_in, 3);
    run_end(r);
    cr_expect_eq(r->over[0].moved[ULP_FROM_CLIENT], 2000);
    cr_expect_eq(r->over[0].packets, 3);
    cr_expect_eq(r->over[0].start, NS_PER_US, "the time of the first packet");
    run_free(r);
}

Test(ulp, a_capsule_with_a_hole_is_decoded_up_to_it)
{
    struct run *r = run_new("nvme");
    struct pkt *p;

    capsule_packet(r, 5, 0);
    p = capsule_packet(r, 5, 2);
    cr_expect(says(p, "NVMe Write cid 0x3 nsid 1 slba 300 nlb 8 (packets missing from byte 1024)"), "%s", p->note.ulp);
    run_end(r);
    cr_expect_eq(r->over[0].moved[ULP_FROM_CLIENT], 960, "1024 bytes without the command");
    cr_expect_eq(r->over[0].requested[ULP_FROM_CLIENT], 2000);
    run_free(r);
}

Test(ulp, what_was_missing_may_come_later)
{
    struct run *r = run_new("nvme");

    capsule_packet(r, 5, 0);
    capsule_packet(r, 5, 2);
    capsule_packet(r, 5, 1);
    capsule_packet(r, 5, 2);
    run_end(r);
    cr_expect_eq(r->n_over, 1, "one command");
    run_free(r);
}

/* The tap sees ACKs: a message with a hole may still get its packets, and what comes behind a hole of two packets may
 * be of the next message. */
Test(ulp, a_capsule_interrupted_by_go_back_n_is_put_together)
{
    struct run *r = run_new("nvme");
    uint8_t nak[4] = {0x60, 0, 0, 1}, ack[4] = {0x1f, 0, 0, 2};
    struct pkt *p;

    acked(r, 4, 0x02, 9, 4096);
    capsule_packet(r, 5, 0);
    p = capsule_packet(r, 5, 2);
    cr_expect(says(p, "NVMe/RDMA message (packets missing from byte 1024)"), "%s", p->note.ulp);
    put(r, TARGET, OP_ACKNOWLEDGE, 6, nak, 4, NULL, 0);
    p = capsule_packet(r, 5, 1);
    cr_expect(says(p, "NVMe Write cid 0x3 nsid 1 slba 300 nlb 8"), "%s", p->note.ulp);
    capsule_packet(r, 5, 2);
    put(r, TARGET, OP_ACKNOWLEDGE, 7, ack, 4, NULL, 0);
    run_end(r);
    cr_expect_eq(r->n_over, 2);
    cr_expect_eq(r->over[1].moved[ULP_FROM_CLIENT], 2000);
    cr_expect_eq(r->over[1].start, r->over[0].start + 2 * NS_PER_US, "the time of its first packet");
    run_free(r);
}

/* What was not captured is acknowledged: the message is what there is of it. */
Test(ulp, a_capsule_with_a_hole_that_is_acknowledged_begins_its_command)
{
    for (unsigned lost = 1; lost <= 2; lost++) {
        struct run *r = run_new("nvme");
        uint8_t ack[4] = {0x1f, 0, 0, 2};
        acked(r, 4, 0x02, 9, 4096);
        capsule_packet(r, 5, 0);
        capsule_packet(r, 5, 3 - lost);
        command(r, 8, 0x02, 4, 4096);
        put(r, TARGET, OP_ACKNOWLEDGE, 8, ack, 4, NULL, 0);
        completion(r, 100, 3, 0);
        run_end(r);
        cr_expect_eq(r->over[0].ended, ULP_COMPLETED);
        cr_expect_eq(r->over[0].moved[ULP_FROM_CLIENT], lost == 1 ? 960 : 1984, "%u: %llu", lost,
                     (unsigned long long)r->over[0].moved[ULP_FROM_CLIENT]);
        run_free(r);
    }
}

/* The last packet of a capsule and the first one of the next are lost, and come later. */
Test(ulp, packets_behind_a_hole_belong_to_their_own_message)
{
    static const uint8_t order[] = {0, 1, 4, 5, 2, 3};
    struct run *r = run_new("nvme");

    acked(r, 4, 0x02, 9, 4096);
    for (unsigned i = 0; i < sizeof order; i++)
        capsule_packet(r, 5 + 3 * (order[i] / 3), order[i] % 3);
    run_end(r);
    cr_expect_eq(r->n_over, 3);
    for (unsigned i = 0; i < 3; i++)
        cr_expect_eq(r->over[i].moved[ULP_FROM_CLIENT], r->over[i].key == 3 ? 2000 : 0, "%u: %llu", i,
                     (unsigned long long)r->over[i].moved[ULP_FROM_CLIENT]);
    run_free(r);
}

Test(ulp, a_write_whose_first_packet_comes_last_is_data_of_its_command)
{
    struct run *r = run_new("nvme");

    acked(r, 5, 0x02, 3, 2500);
    put(r, TARGET, OP_WRITE_MIDDLE, 101, NULL, 0, NULL, 1024);
    put(r, TARGET, OP_WRITE_LAST, 102, NULL, 0, NULL, 452);
    with_reth(r, TARGET, OP_WRITE_FIRST, 100, VA, RKEY, 2500, 1024);
    completion(r, 103, 3, 0);
    run_end(r);
    cr_expect_eq(r->over[0].moved[ULP_TO_CLIENT], 2500);
    cr_expect_eq(r->over[0].data_first, 3);
    cr_expect_eq(r->over[0].data_last, 5);
    run_free(r);
}

/* The capture begins between a READ request and its response: the connection's protocol is known, the command not. */
Test(ulp, a_read_response_before_any_request)
{
    const uint8_t aeth[4] = {0x1f, 0, 0, 1};
    const char *const words[] = {"nvme", "nfs", NULL}, *const names[] = {"NVMe/RDMA", "NFS/RDMA", NULL};

    for (unsigned i = 0; i < ARRAY_LEN(words); i++) {
        struct run *r = run_new(words[i]);
        struct pkt *p = put(r, HOST, OP_READ_RESP_ONLY, 98, aeth, 4, NULL, 512);
        char text[80];
        snprintf(text, sizeof text, "%s READ response, its request was not seen", names[i] ? names[i] : "");
        cr_expect_eq(says(p, text), words[i] != NULL, "%s", p->note.have & NOTE_ULP ? p->note.ulp : "nothing");
        put(r, HOST, OP_ACKNOWLEDGE, 99, aeth, 4, NULL, 0);
        cr_expect_not(p->note.have & NOTE_ULP, "an ACK");
        run_free(r);
    }
}

/* A host of SPDK names several pieces of memory by a list in the capsule. */
Test(ulp, a_list_in_the_capsule_names_pieces_of_memory)
{
    uint8_t b[NVME_SQE_LEN + 3 * NVME_SGL_LEN];

    for (unsigned more = 0; more < 3;
         more++) { /* 0: it is whole; 1: it ends behind the capsule; 2: within a descriptor */
        struct run *r = run_new("nvme");
        struct pkt *p = acked(r, 4, 0x00, 1, 0);
        memcpy(b, sqe(0x02, 3, 0x31, 0), NVME_SQE_LEN);
        store_le(b + 24, 8, 0);
        store_le(b + 32, 4, 3 * NVME_SGL_LEN + (more == 1 ? NVME_SGL_LEN : more == 2 ? 1 : 0));
        store_le(b + 36, 4, 0x31000000);
        for (unsigned i = 0; i < 3; i++) {
            uint8_t *d = b + NVME_SQE_LEN + NVME_SGL_LEN * i;
            store_le(d, 8, VA + 0x10000 * i);
            store_le(d + 8, 3, 1000);
            store_le(d + 11, 4, RKEY + i);
            d[15] = i == 1 ? 0x4f : 0x40;
        }
        p = put(r, HOST, OP_SEND_ONLY, 5, NULL, 0, b, sizeof b);
        cr_expect(says(p, "NVMe Read cid 0x3 nsid 1 slba 300 nlb 8"), "%s", p->note.ulp);
        p = with_reth(r, TARGET, OP_WRITE_ONLY, 100, VA + 0x20000, RKEY + 2, 1000, 1000);
        cr_expect(more ? !(p->note.have & NOTE_ULP) : says(p, "NVMe Read cid 0x3 data 2000-2999 of 3000"), "%u: %s",
                  more, p->note.have & NOTE_ULP ? p->note.ulp : "nothing");
        p = with_reth(r, TARGET, OP_WRITE_ONLY, 101, VA + 0x10000, RKEY + 1, 1000, 1000);
        cr_expect(more ? !(p->note.have & NOTE_ULP) : says(p, "NVMe Read cid 0x3 data 1000-1999 of 3000"), "%u", more);
        completion(r, 102, 3, 0);
        run_end(r);
        cr_assert_eq(r->n_over, 2);
        cr_expect_eq(r->over[0].requested[ULP_TO_CLIENT], more ? 0 : 3000);
        cr_expect_eq(r->over[0].moved[ULP_TO_CLIENT], more ? 0 : 2000);
        run_free(r);
        cr_expect_eq(nvme_looks(b, sizeof b, true), more ? LOOKS_OTHER : LOOKS_CLIENT);
    }
}

/* --- A capture that begins in the middle ------------------------------------------------------ */

Test(ulp, what_came_before_its_protocol_was_known_belongs_to_the_first_command)
{
    struct run *r = run_new(NULL);
    struct pkt *p = acked(r, 5, 0x02, 3, 4096);

    cr_expect_not(p->note.have & NOTE_ULP, "nothing is known so far");
    with_reth(r, TARGET, OP_WRITE_ONLY, 100, VA, RKEY, 1024, 1024);
    with_reth(r, TARGET, OP_WRITE_ONLY, 101, VA + 1024, RKEY, 1024, 1024);
    p = completion(r, 102, 3, 0);
    cr_expect(says(p, "NVMe Read cid 0x3: Successful Completion"), "%s", p->note.ulp);
    cr_expect_eq(p->note.ulp_command_in, 1);
    cr_expect_str_eq(p->note.ulp_how, "first bytes");
    run_end(r);
    cr_expect_eq(r->n_over, 1);
    cr_expect_eq(r->over[0].moved[ULP_TO_CLIENT], 2048);
    cr_expect_eq(r->over[0].packets, 4);
    run_free(r);
}

Test(ulp, two_commands_in_a_row_tell_of_the_first_one)
{
    struct run *r = run_new(NULL);

    acked(r, 5, 0x02, 3, 1024);
    command(r, 6, 0x02, 4, 1024);
    completion(r, 100, 3, 0x4002);
    run_end(r);
    cr_expect_eq(r->n_over, 2);
    cr_expect_eq(r->over[0].key, 3);
    cr_expect(r->over[0].failed);
    run_free(r);
}

Test(ulp, a_message_of_another_identifier_is_no_response)
{
    struct run *r = run_new(NULL);
    struct pkt *p;

    acked(r, 5, 0x02, 3, 1024);
    p = completion(r, 100, 4, 0);
    cr_expect_not(p->note.have & NOTE_ULP);
    run_end(r);
    cr_expect_eq(r->n_over, 0);
    run_free(r);
}

Test(ulp, of_much_data_before_its_protocol_is_known_the_lengths_are_kept)
{
    struct run *r = run_new(NULL);

    acked(r, 5, 0x02, 3, 100 * 1024);
    for (uint32_t i = 0; i < 100; i++)
        with_reth(r, TARGET, OP_WRITE_ONLY, 100 + i, VA + 1024 * i, RKEY, 1024, 1024);
    completion(r, 200, 3, 0);
    run_end(r);
    cr_expect_eq(r->n_over, 1);
    cr_expect_eq(r->over[0].moved[ULP_TO_CLIENT], 100 * 1024);
    run_free(r);
}

/* They take the room of 1000 packets at most, and none once the flow is gone. */
Test(ulp, what_is_kept_until_the_protocol_is_known_is_bounded)
{
    struct run *r = run_new(NULL);
    struct pkt *p = NULL;

    acked(r, 5, 0x02, 3, 1024);
    for (uint32_t i = 0; i < 1000; i++)
        with_reth(r, TARGET, OP_WRITE_ONLY, 100 + i, VA, RKEY, 1024, 1024);
    p = completion(r, 1100, 3, 0);
    cr_expect_not(p->note.have & NOTE_ULP_DONE, "its command is forgotten");
    run_end(r);
    run_free(r);
}

Test(ulp, set_features_of_a_namespace_is_no_dataset_management)
{
    struct run *r = run_new("nvme");
    uint8_t b[NVME_SQE_LEN];
    struct pkt *p;

    memcpy(b, sqe(0x09, 3, 0x40, 0), sizeof b);
    store_le(b + 40, 4, 0x84); /* of write protection; of a Dataset Management 133 ranges, without their 2128 bytes */
    p = put(r, HOST, OP_SEND_ONLY, 5, NULL, 0, b, sizeof b);
    cr_expect(strstr(p->note.ulp, "NVMe Set Features (Namespace Write Protection Config) cid 0x3"), "%s", p->note.ulp);
    run_end(r);
    run_free(r);
}

/* 40 + 42 bytes: the command lacks its arguments, of a response nothing is missing. */
Test(ulp, a_command_that_was_cut_behind_its_descriptor_has_its_data_and_its_response)
{
    struct run *r = run_new(NULL);
    struct pkt *p;

    r->snap = 40 + 42;
    acked(r, 5, 0x02, 3, 4096);
    p = command(r, 6, 0x02, 4, 1024);
    cr_expect(says(p, "NVMe Read cid 0x4 nsid 1"), "%s", p->note.ulp);
    with_reth(r, TARGET, OP_WRITE_ONLY, 100, VA, RKEY, 1024, 1024);
    completion(r, 101, 4, 0);
    run_end(r);
    cr_expect_eq(r->n_over, 2);
    cr_expect_eq(r->over[0].key, 4, "the other one has no response");
    cr_expect_eq(r->over[0].moved[ULP_TO_CLIENT], 1024);
    cr_expect_eq(r->over[0].requested[ULP_TO_CLIENT], 1024);
    cr_expect_eq(strncmp(r->text.p, "Read cid 0x3 nsid 1: ", 21), 0, "%s", r->text.p);
    run_free(r);
}

Test(ulp, a_command_that_was_cut_before_its_descriptor_is_none)
{
    struct run *r = run_new("nvme");

    command(r, 5, 0x02, 3, 1024);
    r->snap = 40 + 39;
    command(r, 6, 0x02, 4, 1024);
    run_end(r);
    cr_expect_eq(r->n_over, 1);
    run_free(r);
}
