/* layer 2b tests: SCSI over RDMA: CDBs, iSER. */
#include "dissect/ulp/iser.h"
#include "dissect/ulp/service.h"
#include "tests/unit/scsi_run.h"

#define ITT 0x11000000

static const char *arguments(const uint8_t *cdb)
{
    static struct buf b;

    b.len = 0;
    scsi_name_text(&b, cdb);
    scsi_arguments_text(&b, cdb);
    return buf_str(&b);
}

/* --- CDBs ------------------------------------------------------------------------------------- */

Test(scsi, a_cdb_says_its_blocks)
{
    static const struct {
        uint8_t cdb[SCSI_CDB_LEN];
        const char *text;
    } all[] = {
        {{0x08, 0x01, 0x02, 0x03, 0x00}, "READ(6) lba 66051 blocks 256"},
        {{0x2a, 0, 0, 1, 0, 0, 0, 1, 0}, "WRITE(10) lba 65536 blocks 256"},
        {{0xa8, 0, 0, 0, 0, 9, 0, 1, 0, 0}, "READ(12) lba 9 blocks 65536"},
        {{0x88, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 7}, "READ(16) lba 4294967296 blocks 7"},
        {{0x89, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 1}, "COMPARE AND WRITE lba 5 blocks 1"},
        {{0x12, 1, 0x83}, "INQUIRY page 0x83 (Device Identification)"},
        {{0x12, 0, 0x83}, "INQUIRY"},
        {{0x1a, 0, 0xbf}, "MODE SENSE(6) page 0x3f"},
        {{0x9e, 0x10}, "READ CAPACITY(16)"},
        {{0x9e, 0x0f}, "SERVICE ACTION IN(16)"},
        {{0xc5}, "opcode 0xc5"},
    };

    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        cr_expect_str_eq(arguments(all[i].cdb), all[i].text);
}

Test(scsi, sense_data_of_both_formats)
{
    static const uint8_t fixed[18] = {0x70, 0, 5, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x21, 0},
                         descriptors[8] = {0x72, 6, 0x29, 0x7f};
    struct scsi_sense s;
    struct buf b = {0};

    cr_expect(scsi_sense_get(&s, fixed, sizeof fixed));
    scsi_status_text(&b, SCSI_CHECK_CONDITION, &s);
    cr_expect_str_eq(buf_str(&b), "Check Condition (Illegal Request, logical block address out of range)");
    b.len = 0;
    cr_expect(scsi_sense_get(&s, descriptors, sizeof descriptors));
    scsi_status_text(&b, 0x99, &s);
    cr_expect_str_eq(buf_str(&b), "status 0x99 (Unit Attention, ASC 0x29 ASCQ 0x7f)");
    cr_expect_not(scsi_sense_get(&s, fixed, 13));
    cr_expect_not(scsi_sense_get(&s, descriptors, 3));
    cr_expect_not(s.known);
    buf_free(&b);
}

Test(scsi, lun_of_one_level)
{
    cr_expect_eq(scsi_lun(UINT64_C(0x0003000000000000)), 3);
    cr_expect_eq(scsi_lun(UINT64_C(0x4103000000000000)), 0x103, "flat addressing");
    cr_expect_eq(scsi_lun(UINT64_C(0x0003000000000001)), UINT64_C(0x0003000000000001), "two levels");
}

/* --- iSER ------------------------------------------------------------------------------------- */

/* iSER's flags, opcode, flags of the opcode, then `data` in the data segment. */
static void pdu(struct pdu *p, uint8_t iser, uint8_t opcode, uint8_t flags, uint32_t itt, const void *data, unsigned n)
{
    memset(p, 0, sizeof *p);
    p->b[0] = iser;
    p->b[ISER_LEN] = opcode;
    p->b[ISER_LEN + 1] = flags;
    store_be16(p->b + ISER_LEN + 6, (uint16_t)n);
    store_be32(p->b + ISER_LEN + 16, itt);
    if (n)
        memcpy(p->b + ISER_LEN + ISCSI_LEN, data, n);
    p->len = ISER_LEN + ISCSI_LEN + (n + 3) / 4 * 4;
}

static void command(struct pdu *p, const uint8_t *cdb, uint32_t expected, const void *data, unsigned n)
{
    bool write = cdb[0] == 0x2a;

    pdu(p, write ? 0x18 : 0x14, ISCSI_COMMAND, write ? 0xa1 : 0xc1, ITT, data, n);
    store_be32(p->b + (write ? 4 : 16), RKEY);
    store_be64(p->b + (write ? 8 : 20), VA);
    store_be32(p->b + ISER_LEN + 20, expected);
    memcpy(p->b + ISER_LEN + 32, cdb, SCSI_CDB_LEN);
}

static struct pkt *respond(struct run *r, uint32_t psn, uint8_t status, const void *sense, unsigned n)
{
    struct pdu p;

    pdu(&p, 0x10, ISCSI_RESPONSE, 0x80, ITT, sense, n);
    p.b[ISER_LEN + 3] = status;
    return say(r, TARGET, psn, &p);
}

Test(iser, the_target_writes_what_a_command_reads)
{
    static const uint8_t sense[20] = {0, 18, 0x70, 0, 5, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x24, 0};
    struct run *r = run_new("iser");
    struct pdu c;
    struct pkt *p;

    command(&c, read10, 4096, NULL, 0);
    cr_expect_str_eq(first(r, &c), "iSER READ(10) itt 0x11000000 lun 0 lba 300 blocks 8");
    p = with_reth(r, TARGET, OP_WRITE_ONLY, 100, VA + 1024, RKEY, 1024, 1024);
    cr_expect(says(p, "iSER READ(10) itt 0x11000000 data 1024-2047 of 4096"), "%s", p->note.ulp);
    p = respond(r, 101, 2, sense, sizeof sense);
    cr_expect(says(p, "iSER READ(10) itt 0x11000000: Check Condition (Illegal Request, invalid field in CDB)"), "%s",
              p->note.ulp);
    run_end(r);
    cr_expect_eq(r->n_over, 1);
    cr_expect(r->over[0].failed);
    cr_expect_eq(r->over[0].moved[ULP_TO_CLIENT], 1024);
    run_free(r);
}

/* A READ(10) whose CDB has 10 bytes or more, one with fewer; the data and the response of the first. */
Test(iser, a_command_that_was_cut_in_its_header_is_told)
{
    struct run *r = run_new(NULL);
    struct pdu c;
    struct pkt *p;

    r->snap = 40 + ISER_LEN + 32 + 14;
    command(&c, read10, 4096, NULL, 0);
    first(r, &c);
    with_reth(r, TARGET, OP_WRITE_ONLY, 100, VA, RKEY, 1024, 1024);
    p = respond(r, 101, 2, NULL, 0);
    cr_expect(says(p, "iSER READ(10) itt 0x11000000: Check Condition"), "%s", p->note.ulp);
    r->snap = 40 + ISER_LEN + 32 + 9;
    p = say(r, HOST, 6, &c);
    cr_expect(says(p, "iSER READ(10) itt 0x11000000 lun 0"), "%s", p->note.ulp);
    r->snap = 40 + ISER_LEN + 32;
    p = say(r, HOST, 7, &c);
    cr_expect(says(p, "iSER SCSI Command (read) itt 0x11000000 lun 0"), "all but the CDB is there: %s", p->note.ulp);
    run_end(r);
    cr_expect_eq(r->n_over, 3);
    cr_expect_eq(r->over[0].moved[ULP_TO_CLIENT], 1024);
    cr_expect_eq(r->over[0].requested[ULP_TO_CLIENT], 4096);
    run_free(r);
}

/* A response of which the tag is cut; `rkey`: that it invalidates, 0: none. */
static struct pkt *respond_cut(struct run *r, uint32_t psn, uint8_t status, uint32_t rkey)
{
    uint8_t ieth[4];
    struct pdu p;

    store_be32(ieth, rkey);
    pdu(&p, 0x10, ISCSI_RESPONSE, 0x80, ITT, NULL, 0);
    p.b[ISER_LEN + 3] = status;
    return put(r, TARGET, rkey ? OP_SEND_ONLY_INV : OP_SEND_ONLY, psn, ieth, rkey ? 4 : 0, p.b, p.len);
}

/* What 96 bytes of a frame have of a command: neither tag, length nor CDB; but its memory. */
#define SNAP_96 (96 - 14)

/* A READ and a WRITE are open: the data, and the key that a response invalidates, tell which of them is meant. */
Test(iser, commands_that_were_cut_before_their_tags_are_told_by_their_memory)
{
    struct run *r = run_new(NULL);
    struct pdu c, d;
    struct pkt *p;

    r->snap = SNAP_96;
    command(&c, read10, 4096, NULL, 0);
    command(&d, write10, 1024, NULL, 0);
    store_be32(d.b + 4, RKEY + 1);
    first(r, &c);
    p = say(r, HOST, 6, &d);
    cr_expect(says(p, "iSER SCSI Command (write) itt not captured lun 0"), "%s", p->note.ulp);
    cr_expect(p->layers[p->n_layers - 2].hdr == &iser_hdr && p->layers[p->n_layers - 2].len == ISER_LEN);
    cr_expect(p->layers[p->n_layers - 1].hdr == &iscsi_hdr && p->layers[p->n_layers - 1].len == 14);
    with_reth(r, TARGET, OP_READ_REQUEST, 100, VA, RKEY + 1, 1024, 0);
    p = with_reth(r, TARGET, OP_WRITE_ONLY, 101, VA + 1024, RKEY, 1024, 1024);
    cr_expect(says(p, "iSER SCSI Command (read) itt not captured data 1024-2047"), "%s", p->note.ulp);
    p = respond_cut(r, 102, 0, RKEY + 1);
    cr_expect(says(p, "iSER SCSI Command (write) itt not captured: Good"), "%s", p->note.ulp);
    p = respond_cut(r, 103, 2, RKEY);
    cr_expect(says(p, "iSER SCSI Command (read) itt not captured: Check Condition"), "%s", p->note.ulp);
    run_end(r);
    cr_expect_eq(r->n_over, 2);
    cr_expect_eq(r->over[1].moved[ULP_TO_CLIENT], 1024);
    cr_expect_not(ulp_asked_known(&r->over[1], ULP_TO_CLIENT));
    run_free(r);
}

/* Responses that invalidate nothing: one to one open command is its own; two to two open ones leave it open which is
 * whose, and tell nothing of a third; then all is known again. */
Test(iser, responses_that_were_cut_before_their_tags_may_be_of_several_commands)
{
    struct run *r = run_new(NULL);
    struct pdu c;
    struct pkt *p;

    r->snap = SNAP_96;
    command(&c, read10, 4096, NULL, 0);
    first(r, &c);
    p = respond_cut(r, 100, 0, 0);
    cr_expect(says(p, "iSER SCSI Command (read) itt not captured: Good"), "%s", p->note.ulp);
    say(r, HOST, 6, &c);
    say(r, HOST, 7, &c);
    p = respond_cut(r, 101, 2, 0);
    cr_expect(says(p, "iSER response itt not captured, its command is not known"), "%s", p->note.ulp);
    cr_expect_eq(r->n_over, 0, "completed ones are kept");
    p = respond_cut(r, 102, 0, 0);
    cr_expect(says(p, "iSER response itt not captured, its command is not known"), "%s", p->note.ulp);
    say(r, HOST, 8, &c);
    p = respond_cut(r, 103, 0, 0);
    cr_expect(says(p, "iSER SCSI Command (read) itt not captured: Good"), "%s", p->note.ulp);
    run_end(r);
    cr_expect_eq(r->n_over, 4);
    for (unsigned i = 0; i < 4; i++) {
        cr_expect_eq(r->over[i].ended, i == 1 || i == 2 ? ULP_CUT : ULP_COMPLETED, "command %u", i);
        cr_expect_not(r->over[i].failed);
    }
    run_free(r);
}

/* Of a command that is lost before the tap nothing is known: a response may be its own. */
Test(iser, a_response_without_a_tag_behind_a_gap_is_not_tied)
{
    struct run *r = run_new(NULL);
    struct pdu c;

    r->snap = SNAP_96;
    command(&c, read10, 4096, NULL, 0);
    first(r, &c);
    respond_cut(r, 100, 0, 0);
    say(r, HOST, 7, &c);
    respond_cut(r, 101, 0, 0);
    run_end(r);
    cr_expect_eq(r->n_over, 2);
    cr_expect_str_eq(
        buf_str(&r->text),
        "SCSI Command (read) itt not captured lun 0: not known, the snap length cut what tells its response");
    run_free(r);
}

Test(iser, what_is_read_follows_the_data_in_the_message)
{
    struct run *r = run_new("iser");
    uint8_t data[512] = {1}, aeth[4] = {0x1f, 0, 0, 1};
    struct pdu c;
    struct pkt *p;

    command(&c, write10, 1536, data, sizeof data);
    cr_expect_str_eq(first(r, &c), "iSER WRITE(10) itt 0x11000000 lun 0 lba 300 blocks 24");
    with_reth(r, TARGET, OP_READ_REQUEST, 100, VA, RKEY, 1024, 0);
    p = put(r, HOST, OP_READ_RESP_ONLY, 100, aeth, 4, NULL, 1024);
    cr_expect(says(p, "iSER WRITE(10) itt 0x11000000 data 512-1535 of 1536"), "%s", p->note.ulp);
    respond(r, 101, 0, NULL, 0);
    run_end(r);
    cr_expect_eq(r->over[0].moved[ULP_FROM_CLIENT], 1536);
    cr_expect_not(r->over[0].failed);
    run_free(r);
}

Test(iser, a_ping_of_the_target_is_answered_by_its_tag)
{
    struct run *r = run_new("iser");
    struct pdu c;
    struct pkt *p;

    command(&c, read10, 4096, NULL, 0);
    first(r, &c);
    pdu(&c, 0x10, ISCSI_NOP_IN, 0x80, ISCSI_NO_TAG, NULL, 0);
    store_be32(c.b + ISER_LEN + 20, 77);
    p = say(r, TARGET, 100, &c);
    cr_expect(says(p, "iSER NOP-In ttt 0x4d"), "%s", p->note.ulp);
    pdu(&c, 0x10, 0x40 | ISCSI_NOP_OUT, 0x80, ISCSI_NO_TAG, NULL, 0);
    store_be32(c.b + ISER_LEN + 20, 77);
    p = say(r, HOST, 6, &c);
    cr_expect(says(p, "iSER NOP-In ttt 0x4d: answered"), "%s", p->note.ulp);
    run_free(r);
}

Test(iser, a_rejected_pdu_ends_its_task)
{
    struct run *r = run_new("iser");
    struct pdu c, reject;
    struct pkt *p;

    command(&c, read10, 4096, NULL, 0);
    first(r, &c);
    pdu(&reject, 0x10, ISCSI_REJECT, 0x80, ISCSI_NO_TAG, c.b + ISER_LEN, ISCSI_LEN);
    reject.b[ISER_LEN + 2] = 9;
    p = say(r, TARGET, 100, &reject);
    cr_expect(says(p, "iSER READ(10) itt 0x11000000: rejected: Invalid PDU field"), "%s", p->note.ulp);
    run_free(r);
}

Test(iser, a_login_says_which_target)
{
    static const char keys[] = "InitiatorName=iqn.a\0SessionType=Normal\0TargetName=iqn.b";
    struct run *r = run_new("iser");
    struct pdu c;
    struct pkt *p;

    pdu(&c, 0x10, ISCSI_LOGIN, 0x87, ITT, keys, sizeof keys);
    cr_expect_str_eq(first(r, &c), "iSER Login itt 0x11000000 TargetName=iqn.b");
    pdu(&c, 0x10, ISCSI_LOGIN_RESPONSE, 0x87, ITT, NULL, 0);
    store_be16(c.b + ISER_LEN + 36, 0x203);
    p = say(r, TARGET, 100, &c);
    cr_expect(says(p, "iSER Login itt 0x11000000: Target not found"), "%s", p->note.ulp);
    run_free(r);
}

/* The text of field `name` of key number `i` of the packet; "": it has none. */
static const char *key_text(const struct pkt *p, unsigned i, const char *name)
{
    static char text[64];
    struct value v;

    for (unsigned l = 0; l < p->n_layers; l++) {
        const struct layer *at = &p->layers[l];
        if (at->hdr != &iscsi_key_hdr || i--)
            continue;
        for (unsigned f = 0; f < at->hdr->nfields; f++) {
            if (strcmp(at->hdr->fields[f].abbrev, name) != 0 || !field_value(&at->hdr->fields[f], p, at, &v))
                continue;
            snprintf(text, sizeof text, "%.*s", v.type == FT_STRING ? (int)v.len : 3,
                     v.type == FT_STRING ? (const char *)v.p : "yes");
            return text;
        }
        break;
    }
    return "";
}

Test(iser, a_key_is_a_name_and_a_value)
{
    static const char keys[] = "MaxBurstLength=262144\0A=b=c\0Alias=\0=none\0nothing";
    static const struct {
        const char *name, *value, *invalid;
    } cases[] = {
        {"MaxBurstLength", "262144", ""}, {"A", "b=c", ""}, {"Alias", "", ""}, {"", "", "yes"}, {"", "", "yes"}};
    struct run *r = run_new("iser");
    struct pdu c;
    struct pkt *p;

    pdu(&c, 0x10, ISCSI_LOGIN, 0x87, ITT, keys, sizeof keys - 1); /* without the last zero */
    p = say(r, HOST, 5, &c);
    for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
        cr_expect_str_eq(key_text(p, i, "rdma.iscsi.key.name"), cases[i].name);
        cr_expect_str_eq(key_text(p, i, "rdma.iscsi.key.value"), cases[i].value);
        cr_expect_str_eq(key_text(p, i, "iscsi.keyvalue.invalid"), cases[i].invalid, "%u", i);
    }
    run_free(r);
}

Test(iser, lengths_that_do_not_fit_are_refused)
{
    struct pdu c;
    struct iser m;

    command(&c, read10, 4096, NULL, 0);
    cr_expect(iser_get(&m, c.b, c.len, true));
    cr_expect_eq(iser_looks(c.b, c.len, true), LOOKS_CLIENT);
    c.b[ISER_LEN + 7] = 1; /* a data segment that is not there */
    cr_expect_not(iser_get(&m, c.b, c.len, true));
    cr_expect(iser_get(&m, c.b, c.len, false), "it may follow");
    c.b[ISER_LEN + 7] = 0;
    c.b[ISER_LEN + 4] = 255; /* additional header segments that are not there */
    cr_expect_not(iser_get(&m, c.b, c.len, true));
    cr_expect_eq(iser_looks(c.b, c.len, true), LOOKS_OTHER);
    for (uint32_t n = 0; n < ISER_LEN + ISCSI_LEN; n++)
        cr_expect_not(iser_get(&m, c.b, n, false));
}

Test(iser, zeros_at_its_port_are_its_private_data_and_tell_nothing)
{
    static const uint8_t zeros[56] = {0x80};
    const uint64_t tcp = UINT64_C(0x1060000);

    cr_expect_str_eq(ulp_of_req(tcp | 3260, zeros, sizeof zeros).name, "iSER");
    cr_expect_not(ulp_of_req(tcp | 3260, zeros, sizeof zeros).by_private);
    cr_expect(ulp_of_req(tcp | 3260, zeros, sizeof zeros).fits);
    cr_expect_str_eq(ulp_of_req(tcp | 9999, zeros, sizeof zeros).name, "RDMA-CM application");
}

Test(iser, a_real_capture_cut_and_damaged_at_each_byte)
{
    cut_and_damage("captures/iser_1.pcap", 100, 400, 120, 37);
}
