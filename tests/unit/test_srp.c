/* layer 2b tests: SRP. */
#include "dissect/ulp/srp.h"

#include "dissect/ulp/service.h"
#include "tests/unit/scsi_run.h"

#define TAG UINT64_C(0x4000000000000000)

static void srp_command(struct pdu *p, const uint8_t *cdb, uint8_t formats, uint8_t outs, uint8_t ins)
{
    memset(p, 0, sizeof *p);
    p->b[0] = SRP_CMD;
    p->b[5] = formats;
    p->b[6] = outs;
    p->b[7] = ins;
    store_be64(p->b + 8, TAG);
    memcpy(p->b + 32, cdb, SCSI_CDB_LEN);
    p->len = SRP_CMD_LEN;
}

static void srp_descriptor(struct pdu *p, uint64_t va, uint32_t rkey, uint32_t len)
{
    store_be64(p->b + p->len, va);
    store_be32(p->b + p->len + 8, rkey);
    store_be32(p->b + p->len + 12, len);
    p->len += 16;
}

static void srp_response(struct pdu *p, uint8_t status, const void *sense, unsigned n)
{
    memset(p, 0, sizeof *p);
    p->b[0] = SRP_RSP;
    store_be64(p->b + 8, TAG);
    p->b[18] = n ? 2 : 0;
    p->b[19] = status;
    store_be32(p->b + 28, n);
    if (n)
        memcpy(p->b + 36, sense, n);
    p->len = 36 + n;
}

Test(srp, an_indirect_list_names_pieces_of_memory)
{
    static const uint8_t sense[18] = {0x70, 0, 6, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x29, 0};
    struct run *r = run_new("srp");
    struct pdu c;
    struct pkt *p;

    srp_command(&c, read10, SRP_INDIRECT, 0, 2);
    srp_descriptor(&c, 0x9000, 9, 32);
    store_be32(c.b + c.len, 4096);
    c.len += 4;
    srp_descriptor(&c, VA, RKEY, 1024);
    srp_descriptor(&c, 2 * VA, RKEY + 1, 3072);
    cr_expect_str_eq(first(r, &c), "SRP READ(10) tag 0x4000000000000000 lun 0 lba 300 blocks 8");
    p = with_reth(r, TARGET, OP_WRITE_ONLY, 100, 2 * VA + 100, RKEY + 1, 500, 500);
    cr_expect(says(p, "SRP READ(10) tag 0x4000000000000000 data 1124-1623 of 4096"), "%s", p->note.ulp);
    srp_response(&c, 2, sense, sizeof sense);
    p = say(r, TARGET, 101, &c);
    cr_expect(says(p, "SRP READ(10) tag 0x4000000000000000: Check Condition (Unit Attention, power on, reset, or bus "
                      "device reset occurred)"),
              "%s", p->note.ulp);
    run_free(r);
}

Test(srp, immediate_data_are_in_the_command)
{
    struct run *r = run_new("srp");
    struct pdu c;

    srp_command(&c, write10, SRP_IMMEDIATE << 4, 0, 0);
    store_be32(c.b + c.len, 512);
    c.len = 68 + 512;
    first(r, &c);
    srp_response(&c, 0, NULL, 0);
    say(r, TARGET, 100, &c);
    run_end(r);
    cr_expect_eq(r->over[0].moved[ULP_FROM_CLIENT], 512);
    cr_expect_eq(r->over[0].requested[ULP_FROM_CLIENT], 512);
    cr_expect_str_eq(buf_str(&r->text), "WRITE(10) tag 0x4000000000000000 lun 0 lba 300 blocks 24: Good");
    run_free(r);
}

/* 42 bytes of a command: its CDB, and not how much it moves. Of 9000 bytes in ten packets each lacks its end. */
Test(srp, a_command_that_was_cut_before_its_descriptors_says_no_lengths)
{
    static uint8_t more[1024];
    struct run *r = run_new("srp");
    struct pdu c;

    r->snap = 40 + 42;
    srp_command(&c, read10, SRP_DIRECT, 0, 0);
    c.b[5] = SRP_DIRECT;
    srp_descriptor(&c, VA, RKEY, 4096);
    cr_expect_str_eq(first(r, &c), "SRP READ(10) tag 0x4000000000000000 lun 0 lba 300 blocks 8");
    srp_response(&c, 0, NULL, 0);
    say(r, TARGET, 100, &c);
    srp_command(&c, write10, SRP_IMMEDIATE << 4, 0, 0);
    store_be32(c.b + c.len, 9000);
    put(r, HOST, OP_SEND_FIRST, 6, NULL, 0, c.b, 1000);
    for (unsigned i = 0; i < 10; i++)
        put(r, HOST, i < 9 ? OP_SEND_MIDDLE : OP_SEND_LAST, 7 + i, NULL, 0, more, i < 9 ? 1000 : 68);
    srp_response(&c, 0, NULL, 0);
    say(r, TARGET, 101, &c);
    run_end(r);
    cr_assert_eq(r->n_over, 2);
    cr_expect(r->over[0].untold[ULP_TO_CLIENT] && !r->over[0].untold[ULP_FROM_CLIENT]);
    cr_expect(r->over[1].untold[ULP_FROM_CLIENT]);
    cr_expect_eq(r->over[1].moved[ULP_FROM_CLIENT], 0);
    cr_expect_str_eq(buf_str(&r->text), "WRITE(10) tag 0x4000000000000000 lun 0 lba 300 blocks 24: Good");
    run_free(r);
}

/* A CDB of 16 bytes that was cut has no arguments. */
Test(srp, a_command_that_was_cut_in_its_cdb)
{
    static const uint8_t read16[SCSI_CDB_LEN] = {0x88, [9] = 1, [13] = 8};
    struct run *r = run_new("srp");
    struct pdu c;

    r->snap = 40 + 42;
    srp_command(&c, read16, SRP_DIRECT, 0, 0);
    srp_descriptor(&c, VA, RKEY, 4096);
    cr_expect_str_eq(first(r, &c), "SRP READ(16) tag 0x4000000000000000 lun 0");
    run_free(r);
}

Test(srp, task_management_and_what_became_of_it)
{
    struct run *r = run_new("srp");
    struct pdu c;
    struct pkt *p;

    memset(&c, 0, sizeof c);
    c.b[0] = SRP_TSK_MGMT;
    store_be64(c.b + 8, TAG);
    c.b[30] = 8;
    c.len = 48;
    cr_expect_str_eq(first(r, &c), "SRP LUN Reset tag 0x4000000000000000 lun 0");
    srp_response(&c, 0, NULL, 0);
    c.b[18] = 1;
    store_be32(c.b + 32, 4);
    store_be32(c.b + 36, 5);
    c.len = 40;
    p = say(r, TARGET, 100, &c);
    cr_expect(says(p, "SRP LUN Reset tag 0x4000000000000000: response code 5"), "%s", p->note.ulp);
    run_free(r);
}

Test(srp, a_request_of_the_target_has_tags_of_its_own)
{
    struct run *r = run_new("srp");
    struct pdu c;
    struct pkt *p;

    srp_command(&c, read10, SRP_DIRECT, 0, 0);
    srp_descriptor(&c, VA, RKEY, 4096);
    first(r, &c);
    memset(&c, 0, sizeof c);
    c.b[0] = SRP_CRED_REQ;
    store_be64(c.b + 8, TAG);
    c.len = 16;
    p = say(r, TARGET, 100, &c);
    cr_expect(says(p, "SRP SRP_CRED_REQ tag 0x4000000000000000"), "%s", p->note.ulp);
    c.b[0] = SRP_CRED_RSP;
    p = say(r, HOST, 6, &c);
    cr_expect(says(p, "SRP SRP_CRED_REQ tag 0x4000000000000000: answered"), "%s", p->note.ulp);
    run_end(r);
    cr_expect_eq(r->n_over, 2);
    run_free(r);
}

Test(srp, descriptors_that_do_not_fit_are_refused)
{
    struct pdu c;
    struct srp s;

    srp_command(&c, read10, SRP_INDIRECT, 0, 255);
    cr_expect_not(srp_get(&s, c.b, c.len, true));
    cr_expect(srp_get(&s, c.b, c.len, false), "they may follow");
    cr_expect_eq(srp_data_len(&s, c.b, c.len, 1), 0);
    c.b[5] = 0x0f;
    cr_expect_not(srp_get(&s, c.b, c.len, false), "a format that does not exist");
    c.b[5] = 0;
    c.b[31] = 0xfc;
    cr_expect_not(srp_get(&s, c.b, c.len, true), "an additional CDB that is not there");
    srp_response(&c, 0, NULL, 0);
    c.b[18] = 2;
    store_be32(c.b + 28, UINT32_MAX);
    cr_expect_not(srp_get(&s, c.b, c.len, true));
    for (uint32_t n = 0; n < 36; n++)
        cr_expect_not(srp_get(&s, c.b, n, false));
}

Test(srp, a_login_is_known_on_any_port)
{
    uint8_t login[56] = {[9] = 6, [14] = 0x20, [31] = 1};
    const uint64_t tcp = UINT64_C(0x1060000);

    cr_expect_str_eq(ulp_of_req(tcp | 5555, login, sizeof login).name, "SRP");
    cr_expect(ulp_of_req(tcp | 5555, login, sizeof login).by_private);
    cr_expect_str_eq(ulp_of_req(tcp | 20049, login, sizeof login).name, "SRP");
    login[11] = 1;
    cr_expect_str_eq(ulp_of_req(tcp | 5555, login, sizeof login).name, "RDMA-CM application");
}

Test(srp, a_real_capture_cut_and_damaged_at_each_byte)
{
    cut_and_damage("captures/srp_1.pcap", 100, 300, 120, 37);
}
