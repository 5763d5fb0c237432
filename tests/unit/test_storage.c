/* layer 3 (storage) tests: peers that break the protocol although their transport is right. */
#include "dissect/ulp/layout.h"
#include "dissect/ulp/nvme.h"
#include "gen/storage/discovery.h"
#include "gen/storage/iscsi.h"
#include "gen/storage/link.h"
#include "gen/storage/rpc.h"
#include "tests/fuzz/storage_peer.h"

#include <criterion/criterion.h>

/* What a peer does, record after record. */
static uint8_t script[8192];
static size_t used;
static struct storage end;

/* A record: its `len` bytes, which are zero. */
static uint8_t *add(uint8_t what, uint16_t len)
{
    uint8_t *p = script + used;

    cr_assert_leq(used + 3 + len, sizeof script);
    memset(p, 0, 3u + len);
    p[0] = what;
    p[1] = (uint8_t)len;
    p[2] = (uint8_t)(len >> 8);
    used += 3u + len;
    return p + 3;
}

static void play(const char *kind, bool server)
{
    peer_play(&end, storage_kind_find(kind), server, script, used);
}

/* Its bytes are not in the receive that it takes, and there may be more of them than the receive has. */
Test(storage, write_with_immediate_data)
{
    for (unsigned i = 0; storage_kinds[i]; i++) {
        uint8_t *behind;
        used = 0;
        behind = add(PEER_SENDS | PEER_IMM, 0);
        behind[-2] = behind[-1] = 0xff;
        play(storage_kinds[i]->name, false);
        cr_expect(end.failed && strstr(end.why, "a WRITE with immediate data, of 1048560 bytes"), "%s: %s",
                  storage_kinds[i]->name, end.why);
        storage_close(&end);
    }
}

/* A Connect of the admin queue whose data are READ. */
static void add_connect(uint16_t cid)
{
    struct nvme_cmd c = {.opc = NVME_FABRICS, .fctype = NVME_FCTYPE_CONNECT, .cid = cid};
    uint8_t *sqe = add(PEER_SENDS, NVME_SQE_LEN);

    c.sgl = (struct nvme_sgl){.type = NVME_SGL_KEYED, .address = 0x1000, .length = nvme_connect_data_hdr.len, .key = 7};
    nvme_cmd_put(sqe, &c);
    layout_set(&nvme_fabrics_cmd_hdr, sqe, "nvme.fabrics.cmd.connect.sqsize", 31);
}

static void add_connect_data(uint8_t hold)
{
    uint8_t *data = add(PEER_READ_DATA | hold, (uint16_t)nvme_connect_data_hdr.len);

    layout_set(&nvme_connect_data_hdr, data, "nvme.fabrics.cmd.connect.data.cntrlid", 0xffff);
    layout_set_text(&nvme_connect_data_hdr, data, "nvme.fabrics.cmd.connect.data.subnqn", "n", 0);
}

/* Two Connects of one queue, whose data come when both have arrived: the second one must not get a controller. */
Test(storage, nvme_two_connects)
{
    uint8_t *req;

    used = 0;
    req = add(PEER_CONNECTS, (uint16_t)nvme_rdma_req_hdr.len);
    layout_set(&nvme_rdma_req_hdr, req, "nvme-rdma.cm.req.hrqsize", 32);
    layout_set(&nvme_rdma_req_hdr, req, "nvme-rdma.cm.req.hsqsize", 31);
    add_connect_data(PEER_HOLDS);
    add_connect(1);
    add_connect(2);
    add_connect_data(0);
    play("nvme", true);
    cr_expect_not(end.failed, "%s", end.why);
    cr_expect_eq(end.r.commands, 1, "%llu commands", (unsigned long long)end.r.commands);
    cr_expect_eq(end.r.failed, 1, "%llu failed", (unsigned long long)end.r.failed);
    storage_close(&end);
}

/* Any part of the discovery log page; behind its end is nothing. An entry of a peer's as text for a terminal. */
Test(storage, discovery_log_page)
{
    struct storage s = {.c = {.nqn = "nqn.x", .port = 4420}};
    uint8_t page[3 * DISCOVERY_ENTRY], part[600], *entry = page + DISCOVERY_ENTRY;
    struct buf b = {0};

    gid_from_ipv4(s.c.gid, 0x0a090001);
    memset(page, 0xff, sizeof page);
    discovery_page(&s, 0, sizeof page, page);
    cr_expect_eq(discovery_entries(page, 9), 1);
    discovery_text(&b, entry);
    cr_expect_str_eq(buf_str(&b), "NVM subsystem nqn.x by RDMA at 10.9.0.1 port 4420");
    for (uint32_t i = 2 * DISCOVERY_ENTRY; i < sizeof page; i++)
        cr_assert_eq(page[i], 0, "byte %u", i);
    for (uint64_t from = 0; from < sizeof page; from += 100) {
        discovery_page(&s, from, sizeof part, part);
        for (uint32_t i = 0; i < sizeof part; i++)
            cr_assert_eq(part[i], from + i < sizeof page ? page[from + i] : 0, "byte %u from %u", i, (unsigned)from);
    }
    discovery_page(&s, UINT64_MAX, sizeof part, part);
    cr_expect_eq(part[8], 0);
    memset(entry, 0xff, DISCOVERY_ENTRY);
    b.len = 0;
    discovery_text(&b, entry);
    cr_expect(strncmp(buf_str(&b), "unknown subsystem \\xff", 21) == 0, "%s", buf_str(&b));
    memset(page, 0xff, DISCOVERY_ENTRY);
    cr_expect_eq(discovery_entries(page, 9), 9);
    buf_free(&b);
}

/* An end that is interrupted waits for the answer to its DREQ, but not for long: also one that serves client after
 * client. */
Test(storage, a_server_leaves_a_silent_client)
{
    const ns_t now = 30 * NS_PER_S;

    used = 0;
    add(PEER_CONNECTS, 0);
    play("iser", true);
    cr_expect_eq(end.n_links, 1);
    cr_expect_not(storage_done(&end, now));
    storage_leave(&end, now);
    cr_expect_not(storage_done(&end, now + NS_PER_S));
    cr_expect(storage_done(&end, now + 2 * NS_PER_S));
    storage_close(&end);
}

/* A SCSI command of the initiator's; `stag`: it lends memory to be written. */
static void add_scsi(uint32_t itt, uint8_t opcode, uint32_t expected, bool stag)
{
    uint8_t *b = add(PEER_SENDS, ISCSI_HEAD);

    iscsi_begin(b, ISCSI_COMMAND, itt);
    b[0] |= stag ? 4 : 0;
    store_be32(b + 16, 0x77);
    b[ISER_LEN + 1] = 0xc0; /* final, a read */
    store_be32(b + ISER_LEN + 20, expected);
    b[ISER_LEN + 32] = opcode;
    b[ISER_LEN + 32 + 4] = opcode == SCSI_INQUIRY ? SCSI_INQUIRY_LEN : 0;
    b[ISER_LEN + 32 + 8] = opcode == SCSI_READ;
}

/* What has no place for what it reads is refused, and moves nothing; what reads nothing needs none. */
Test(storage, iser_reads_without_a_stag)
{
    uint8_t *login;

    used = 0;
    add(PEER_CONNECTS, 0);
    login = add(PEER_SENDS, ISCSI_HEAD + 16);
    iscsi_begin(login, ISCSI_LOGIN, 1);
    iscsi_add_key(login, "TargetName", "t");
    add_scsi(2, SCSI_READ, SCSI_BLOCK, false);
    add_scsi(3, SCSI_INQUIRY, SCSI_INQUIRY_LEN, false);
    add_scsi(4, SCSI_TEST_UNIT_READY, 0, false);
    add_scsi(5, SCSI_READ, SCSI_BLOCK, true);
    play("iser", true);
    cr_expect_not(end.failed, "%s", end.why);
    cr_expect_eq(end.r.failed, 2, "%llu failed", (unsigned long long)end.r.failed);
    cr_expect_eq(end.r.reads, 1, "%llu reads", (unsigned long long)end.r.reads);
    cr_expect_eq(end.r.read, SCSI_BLOCK);
    storage_close(&end);
}

/* A WRITE(10) of one block. */
static void add_write(uint32_t itt)
{
    uint8_t *b;

    add_scsi(itt, SCSI_WRITE, SCSI_BLOCK, false);
    b = script + used - ISCSI_HEAD;
    b[0] |= 8;
    store_be32(b + 4, 0x78);
    b[ISER_LEN + 1] = 0xa0; /* final, a write */
    b[ISER_LEN + 32 + 8] = 1;
}

/* A PDU of this opcode, immediate; `function` and `itt` of the task that it is about: of task management. */
static void add_pdu(uint8_t opcode, uint8_t function, uint32_t about)
{
    uint8_t *b = add(PEER_SENDS, ISCSI_HEAD);

    iscsi_begin(b, opcode, (uint32_t)function << 8 | about);
    iscsi_set(b, "iscsi.I", 1);
    b[ISER_LEN + 1] = 0x80 | function;
    store_be32(b + ISER_LEN + 20, about);
    store_be32(b + ISER_LEN + 32, about); /* RefCmdSN: as the commands are numbered here */
}

/* The code of the PDU with this opcode and tag that the end sent last; -1: it sent none. */
static int sent(uint8_t opcode, uint32_t itt)
{
    const struct link *l = end.link[0];

    for (unsigned slot = 0; slot < l->want.slots; slot++) {
        const uint8_t *b = link_out(l, slot);
        if (iscsi_value(b, "iscsi.opcode") == opcode && iscsi_value(b, "iscsi.initiatortasktag") == itt)
            return b[ISER_LEN + 2];
    }
    return -1;
}

static void begin_iser(void)
{
    uint8_t *login;

    used = 0;
    add(PEER_CONNECTS, 0);
    login = add(PEER_SENDS, ISCSI_HEAD + 16);
    iscsi_begin(login, ISCSI_LOGIN, 1);
    iscsi_set(login, "iscsi.I", 1);
    iscsi_set(login, "iscsi.cmdsn", 2);
    iscsi_add_key(login, "TargetName", "t");
}

/* What is not served is rejected, and the session goes on. */
Test(storage, iser_rejects_what_it_does_not_serve)
{
    begin_iser();
    add_pdu(0x1c, 0, 0); /* of a vendor */
    add_pdu(ISCSI_SNACK, 0, 0);
    add_scsi(2, SCSI_READ, SCSI_BLOCK, true);
    play("iser", true);
    cr_expect_not(end.failed, "%s", end.why);
    cr_expect_eq(end.r.reads, 1, "%llu reads", (unsigned long long)end.r.reads);
    cr_expect_eq(end.r.failed, 2, "%llu failed", (unsigned long long)end.r.failed);
    for (unsigned slot = 0, n = 0; slot < end.link[0]->want.slots; slot++) {
        const uint8_t *b = link_out(end.link[0], slot);
        if (iscsi_value(b, "iscsi.opcode") != ISCSI_REJECT)
            continue;
        cr_expect_eq(iscsi_value(b, "iscsi.initiatortasktag"), ISCSI_NO_TAG);
        cr_expect_eq(iscsi_value(b, "iscsi.datasegmentlength"), ISCSI_LEN);
        cr_expect_eq(b[ISER_LEN + 2], n == 0 ? 5 : 3, "reason %u of Reject %u", b[ISER_LEN + 2], n);
        cr_expect_eq(b[ISCSI_HEAD] & 0x3f, n++ == 0 ? 0x1c : ISCSI_SNACK, "the rejected PDU's header");
    }
    storage_close(&end);
}

/* A task that waits for its data ends without a response when they have come, and then the function that aborted it. */
Test(storage, iser_task_management)
{
    begin_iser();
    add(PEER_READ_DATA | PEER_HOLDS, SCSI_BLOCK);
    add_write(2);
    add_write(3);
    add_pdu(ISCSI_TASK_MANAGEMENT, 1, 2); /* ABORT TASK */
    add_pdu(ISCSI_TASK_MANAGEMENT, 1, 9); /* of a command that never came */
    add_pdu(ISCSI_TASK_MANAGEMENT, 8, 3); /* TASK REASSIGN */
    add_pdu(ISCSI_TASK_MANAGEMENT, 6, 0); /* TARGET WARM RESET */
    play("iser", true);
    cr_expect_not(end.failed, "%s", end.why);
    cr_expect_eq(sent(ISCSI_TASK_MANAGEMENT_RESPONSE, 0x102), -1, "the task still has to end");
    cr_expect_eq(sent(ISCSI_TASK_MANAGEMENT_RESPONSE, 0x109), 1, "it does not exist");
    cr_expect_eq(sent(ISCSI_TASK_MANAGEMENT_RESPONSE, 0x803), 4);
    cr_expect_eq(sent(ISCSI_TASK_MANAGEMENT_RESPONSE, 0x600), 5);
    storage_close(&end);
    add(PEER_READ_DATA, SCSI_BLOCK);
    add_pdu(ISCSI_TASK_MANAGEMENT, 1, 3); /* it has ended */
    play("iser", true);
    cr_expect_not(end.failed, "%s", end.why);
    cr_expect_eq(sent(ISCSI_TASK_MANAGEMENT_RESPONSE, 0x102), 0);
    cr_expect_eq(sent(ISCSI_TASK_MANAGEMENT_RESPONSE, 0x103), 0);
    cr_expect_eq(sent(ISCSI_RESPONSE, 2), -1, "an aborted task has no response");
    cr_expect_eq(sent(ISCSI_RESPONSE, 3), 0);
    cr_expect_eq(end.r.writes, 1, "%llu writes", (unsigned long long)end.r.writes);
    storage_close(&end);
}

/* A reply to the client's first call (NULL) or second one (LOOKUP); `accepted`: enum accept_stat. */
static void add_reply(uint32_t xid, uint32_t accepted, uint32_t status)
{
    const uint32_t words[] = {xid, 1, 2, 0, 0, 0, 0, xid, 1, 0, 0, 0, accepted, status};
    uint8_t *b = add(PEER_SENDS, sizeof words);

    for (unsigned i = 0; i < ARRAY_LEN(words); i++)
        store_be32(b + 4 * i, words[i]);
}

/* Calls other than READ and WRITE that fail are counted. */
Test(storage, nfs_calls_that_fail)
{
    for (unsigned denied = 0; denied < 2; denied++) {
        used = 0;
        add_reply(0x52440000, denied ? RPC_PROC_UNAVAIL : RPC_SUCCESS, 0);
        add_reply(0x52440100, RPC_SUCCESS, NFS3ERR_NOENT);
        play("nfs", false);
        cr_expect(end.failed && strstr(end.why, denied ? "not accepted" : "LOOKUP: NFS3ERR_NOENT"), "%s", end.why);
        cr_expect_eq(end.r.failed, 1, "%llu failed", (unsigned long long)end.r.failed);
        cr_expect_eq(end.r.commands, denied ? 1 : 2, "%llu commands", (unsigned long long)end.r.commands);
        storage_close(&end);
    }
}
