/* layer 2b tests: upper protocols over iWARP: commands, and the memory that they name. */
#include "tests/unit/iwarp_run.h"

#include "src/commands/waits.h"
#include "src/ulp/ulp.h"

#include <stdio.h>

static struct ulp_command the_command;
static unsigned commands_over;
static struct ulp_shares the_shares;
static struct waited waited_of[2]; /* of commands 1 and 2 */
static uint64_t again_of[2];       /* likewise */

static void on_command(void *user, const struct ulp_command *c)
{
    (void)user;
    the_command = *c;
    the_shares = waits_shares(c);
    if (c->number <= ARRAY_LEN(waited_of)) {
        waited_of[c->number - 1] = waits_of(c);
        again_of[c->number - 1] = c->again;
    }
    commands_over++;
}

static void on_timed(void *user, struct ulp_command *c)
{
    waits_timed(user, c);
}

/* A SEND with these bytes. */
static void send_bytes(struct tcp_run *r, unsigned from, uint32_t msn, const void *bytes, uint32_t n)
{
    static uint8_t b[512];
    struct ddp d = a_send(msn, 0, true);
    uint32_t all = make_fpdu(b, &d, n, false);

    memcpy(b + 2 + DDP_UNTAGGED_LEN, bytes, n);
    store_be32(b + all - 4, mpa_crc(b, all - 4));
    tcp_send(r, from, b, all, 200);
}

/* The READ of the controller, and its response in two segments. */
static void read_data(struct tcp_run *r, uint32_t key, uint64_t addr, uint32_t len)
{
    struct ddp d = {.last = true, .version = 1, .rdmap_version = 1, .opcode = RDMAP_READ_REQUEST, .qn = 1, .msn = 1},
               answer = a_write(0x55, 0x900, false);
    static uint8_t b[256];
    uint32_t n = make_fpdu(b, &d, RDMAP_READ_LEN, false);
    uint8_t *q = b + 2 + DDP_UNTAGGED_LEN;

    store_be32(q, 0x55);
    store_be64(q + 4, 0x900);
    store_be32(q + 12, len);
    store_be32(q + 16, key);
    store_be64(q + 20, addr);
    store_be32(b + n - 4, mpa_crc(b, n - 4));
    tcp_send(r, SERVER, b, n, 4096);
    answer.opcode = RDMAP_READ_RESPONSE;
    send_fpdu(r, CLIENT, &answer, len / 2);
    answer.to += len / 2;
    answer.last = true;
    send_fpdu(r, CLIENT, &answer, len - len / 2);
}

/* A connection of an NVMe queue. */
static void nvme_start(struct tcp_run *r)
{
    uint8_t start[64];

    commands_over = 0;
    make_start(start, false, FLAG_CRC, 1);
    store_be16(start + 18, 32);
    memset(start + 20, 0, 32);
    start[22] = 1;  /* queue 1 */
    start[24] = 32; /* its sizes */
    start[26] = 31;
    tcp_send(r, CLIENT, start, 52, 1000);
    tcp_send(r, SERVER, start, make_start(start, true, FLAG_CRC, 1), 1000);
}

/* The host asks for 1024 bytes to be read or written, at 0x4000, key 0x99. */
static void nvme_ask(struct tcp_run *r, uint8_t opcode, uint32_t msn)
{
    uint8_t capsule[64] = {opcode, 0x40, 7, 0, 1};

    capsule[24 + 1] = 0x40; /* keyed data: address 0x4000, 1024 bytes, key 0x99 */
    capsule[32 + 1] = 0x04;
    capsule[35] = 0x99;
    capsule[39] = 0x40;
    capsule[48] = 1; /* blocks - 1 */
    send_bytes(r, CLIENT, msn, capsule, 64);
}

static void nvme_write(struct tcp_run *r)
{
    nvme_start(r);
    nvme_ask(r, 1, 1);
}

static struct ulp *timed_commands(struct tcp_run *r)
{
    return ulp_new(r->observer,
                   &(struct ulp_opts){.over = on_command, .timed = on_timed, .user = timeline_of(r->observer)}, false);
}

Test(iwarp, an_nvme_write_whose_data_the_controller_reads)
{
    struct tcp_run *r = tcp_run_new();
    struct ulp *u = timed_commands(r);
    uint8_t done[16] = {[12] = 7};

    cr_assert(u != NULL);
    nvme_write(r);
    read_data(r, 0x99, 0x4000, 1024);
    send_bytes(r, SERVER, 1, done, 16);
    ulp_finish(u);
    cr_assert_eq(commands_over, 1, "%u", commands_over);
    cr_expect_eq(the_command.ended, ULP_COMPLETED);
    cr_expect_eq(the_command.requested[ULP_FROM_CLIENT], 1024);
    cr_expect_eq(the_command.moved[ULP_FROM_CLIENT], 1024);
    cr_expect_eq(the_command.stream, 1);
    cr_expect(the_shares.known);
    cr_expect_eq(the_shares.server + the_shares.client + the_shares.network + the_shares.transfer,
                 the_command.end - the_command.start);
    cr_expect_gt(the_shares.network, 0, "the ACK of a segment shows how long the way is");
    cr_expect_eq(ulp_sums(u)->untied, 0);
    cr_expect_eq(all_faults(r), 0);
    ulp_free(u);
    tcp_run_free(r);
}

/* The response to the first command is lost before the tap, and comes again behind that to the second one: the first
 * waits for it, the second for nothing that TCP lost before its own response. */
/* A Write of 64 bytes of which 42 are captured, then data of which only the headers are: nothing can be in between. */
Test(iwarp, a_command_and_data_that_were_cut_leave_the_response_to_it)
{
    struct tcp_run *r = tcp_run_new();
    struct ulp *u = timed_commands(r);
    uint8_t capsule[64] = {2, 0x40, 7, 0, 1, [25] = 0x40, [33] = 4, [35] = 0x99, [39] = 0x40}, done[16] = {[12] = 7};
    static uint8_t b[2048];
    struct ddp d = a_send(1, 0, true), data = a_write(0x99, 0x4000, true);
    uint32_t n = make_fpdu(b, &d, 64, false);

    cr_assert(u != NULL);
    nvme_start(r);
    memcpy(b + 2 + DDP_UNTAGGED_LEN, capsule, 64);
    tcp_segment(r, CLIENT, r->seq[CLIENT], b, n, 2 + DDP_UNTAGGED_LEN + 42);
    r->seq[CLIENT] += n;
    n = make_fpdu(b, &data, 1024, true);
    tcp_segment(r, SERVER, r->seq[SERVER], b, n, 62);
    r->seq[SERVER] += n;
    send_bytes(r, SERVER, 1, done, 16);
    ulp_finish(u);
    cr_assert_eq(commands_over, 1, "%u", commands_over);
    cr_expect_eq(the_command.ended, ULP_COMPLETED);
    cr_expect_eq(the_command.moved[ULP_TO_CLIENT], 1024);
    ulp_free(u);
    tcp_run_free(r);
}

Test(iwarp, a_command_waits_for_what_tcp_lost)
{
    struct tcp_run *r = tcp_run_new();
    struct ulp *u = timed_commands(r);
    uint8_t flush[64] = {[1] = 0x40, [2] = 8, [4] = 1}, done[16] = {[12] = 7}, next[16] = {[12] = 8};
    uint32_t lost, end, len = mpa_fpdu_len(DDP_UNTAGGED_LEN + 16);

    cr_assert(u != NULL);
    nvme_write(r);
    read_data(r, 0x99, 0x4000, 1024);
    flush[25 + 14] = 0x40;
    send_bytes(r, CLIENT, 2, flush, 64);
    lost = r->seq[SERVER];
    r->seq[SERVER] += len;
    send_bytes(r, SERVER, 2, next, 16);
    end = r->seq[SERVER];
    r->sent_to[SERVER] = lost;
    for (unsigned i = 0; i < 3; i++)
        tcp_ack(r, CLIENT);
    r->seq[SERVER] = lost;
    send_bytes(r, SERVER, 1, done, 16);
    r->seq[SERVER] = r->sent_to[SERVER] = end;
    tcp_ack(r, CLIENT);
    ulp_finish(u);
    cr_assert_eq(commands_over, 2, "%u", commands_over);
    cr_expect_gt(waited_of[0].of[WAIT_LOSS], 0);
    cr_expect_eq(waited_of[0].of[WAIT_TIMEOUT], 0, "three duplicate ACKs asked for it");
    cr_expect_eq(waited_of[0].way[ULP_AFTER_DATA], waited_of[0].of[WAIT_LOSS], "the way took it");
    cr_expect_eq(again_of[0], 1, "%llu", (unsigned long long)again_of[0]);
    cr_expect_eq(again_of[1], 0, "what waited behind it was sent once");
    ulp_free(u);
    tcp_run_free(r);
}

/* A segment with the end of the first half of the data, and the beginning of the second, comes again: with all of them
 * before it, or as long as the FPDU of the second half is not complete. */
Test(iwarp, retransmitted_segments_count_for_their_command)
{
    for (unsigned whole = 0; whole < 2; whole++) {
        struct tcp_run *r = tcp_run_new();
        struct ulp *u = timed_commands(r);
        struct ddp d = a_write(0x99, 0x4000, false), rest = a_write(0x99, 0x4200, true);
        uint8_t b[1200], done[16] = {[12] = 7};
        uint32_t half = make_fpdu(b, &d, 512, false), n, from;
        cr_assert(u != NULL);
        store_be32(b + half - 4, mpa_crc(b, half - 4));
        n = half + make_fpdu(b + half, &rest, 512, false);
        store_be32(b + n - 4, mpa_crc(b + half, n - half - 4));
        nvme_start(r);
        nvme_ask(r, 2, 1);
        from = r->seq[SERVER];
        tcp_segment(r, SERVER, from, b, 400, 400);
        tcp_segment(r, SERVER, from + 400, b + 400, 400, 400);
        if (whole)
            tcp_segment(r, SERVER, from + 800, b + 800, n - 800, n - 800);
        r->frame += 5000; /* a timeout */
        tcp_segment(r, SERVER, from + 400, b + 400, 400, 400);
        if (!whole)
            tcp_segment(r, SERVER, from + 800, b + 800, n - 800, n - 800);
        r->seq[SERVER] = r->sent_to[SERVER] = from + n;
        send_bytes(r, SERVER, 1, done, 16);
        ulp_finish(u);
        cr_assert_eq(commands_over, 1, "%u", commands_over);
        cr_expect_eq(the_command.moved[ULP_TO_CLIENT], 1024);
        cr_expect_eq(the_command.again, 1, "whole %u: %llu", whole, (unsigned long long)the_command.again);
        cr_expect_eq(the_command.packets, 5, "its message, two FPDUs, the segment, the response: %llu",
                     (unsigned long long)the_command.packets);
        ulp_free(u);
        iwarp_finish(observer_iwarp(r->observer), r);
        for (unsigned i = 0; i < r->n_over; i++)
            cr_expect_eq(r->over[i].again, r->over[i].opcode == RDMAP_WRITE, "operation %u: %u", i, r->over[i].again);
        tcp_run_free(r);
    }
}

/* The tap sees the controller before the host: the data of a Read, and its response, come before the command. */
Test(iwarp, data_and_a_response_before_their_command)
{
    const unsigned late[] = {500, 2000}; /* microseconds */

    for (unsigned i = 0; i < ARRAY_LEN(late); i++) {
        struct tcp_run *r = tcp_run_new();
        struct ulp *u = timed_commands(r);
        struct ddp d = a_write(0x99, 0x4000, false), rest = a_write(0x99, 0x4200, true);
        uint8_t done[16] = {[12] = 7};
        cr_assert(u != NULL);
        nvme_start(r);
        send_fpdu(r, SERVER, &d, 512);
        send_fpdu(r, SERVER, &rest, 512);
        send_bytes(r, SERVER, 1, done, 16);
        r->frame += late[i];
        nvme_ask(r, 2, 1);
        ulp_finish(u);
        cr_assert_eq(commands_over, 1, "%u", commands_over);
        cr_expect_eq(the_command.ended, i ? ULP_OPEN : ULP_COMPLETED, "%u", the_command.ended);
        cr_expect_eq(the_command.moved[ULP_TO_CLIENT], i ? 0 : 1024);
        cr_expect_eq(ulp_sums(u)->untied, i ? 1024 : 0);
        cr_expect_eq(ulp_sums(u)->tied, i ? 0 : 1024);
        ulp_free(u);
        tcp_run_free(r);
    }
}

/* No request of MPA: what passed before the second command tells the protocol is told, too. */
Test(iwarp, the_first_command_of_a_capture_that_begins_later)
{
    const uint32_t sizes[] = {512, 40000}; /* of each of the READs; four of the larger ones are not kept */

    for (unsigned i = 0; i < ARRAY_LEN(sizes); i++) {
        struct tcp_run *r = tcp_run_new();
        struct ulp *u = timed_commands(r);
        struct ddp d = a_write(0x99, 0x4000, true), none = a_write(0x98, 0x4000, true);
        uint8_t done[16] = {[12] = 7};
        commands_over = 0;
        send_fpdu(r, CLIENT, &none, 100);
        send_fpdu(r, CLIENT, &none, 100);
        send_fpdu(r, CLIENT, &none, 100);
        for (uint32_t k = 1; k < 4; k++) {
            nvme_ask(r, 2, k);
            send_fpdu(r, SERVER, &d, 1024);
            for (unsigned more = 0; i && more < 4; more++)
                send_fpdu(r, SERVER, &none, sizes[i]);
            send_bytes(r, SERVER, k, done, 16);
        }
        ulp_finish(u);
        cr_expect_eq(commands_over, i ? 2 : 3, "%u", commands_over);
        cr_expect_eq(the_command.ended, ULP_COMPLETED);
        cr_expect_eq(ulp_sums(u)->tied, commands_over * 1024);
        cr_expect_eq(all_faults(r), 0);
        ulp_free(u);
        tcp_run_free(r);
    }
}

/* The host terminates the connection: the controller asked for more than it was offered. `write`: by a WRITE of 512
 * bytes, the Terminate quotes its DDP header; else by a READ, whose RDMAP header comes with it. */
static void terminate(struct tcp_run *r, bool write)
{
    struct ddp d = {.last = true, .version = 1, .rdmap_version = 1, .opcode = RDMAP_TERMINATE, .qn = 2, .msn = 1};
    uint8_t b[256], *q = b + 2 + DDP_UNTAGGED_LEN;
    uint32_t n = make_fpdu(b, &d, write ? 4 + 2 + 14 : 4 + 2 + 18 + RDMAP_READ_LEN, false);
    uint8_t *head = q + 6, *read = head + 18;

    memset(q, 0, n - 4 - 2 - DDP_UNTAGGED_LEN);
    store_be16(q, write ? 0x1101 : 0x0101); /* DDP tagged buffer error, or RDMAP remote protection error: bounds */
    q[2] = write ? 0xc0 : 0xe0;
    store_be16(q + 4, 512 + 14);
    head[0] = write ? 0xc1 : 0x41;
    head[1] = write ? 0x40 : 0x41;
    if (write) {
        store_be32(head + 2, 0x99);
        store_be64(head + 6, 0x4000);
    } else {
        store_be32(read + 12, 2048);
        store_be32(read + 16, 0x99);
        store_be64(read + 20, 0x4000);
    }
    store_be32(b + n - 4, mpa_crc(b, n - 4));
    tcp_send(r, CLIENT, b, n, 4096);
}

Test(iwarp, a_terminate_names_the_command_whose_memory_it_refuses)
{
    for (unsigned write = 0; write < 2; write++) {
        struct tcp_run *r = tcp_run_new();
        struct ulp *u = ulp_new(r->observer, &(struct ulp_opts){.over = on_command}, false);
        nvme_write(r);
        terminate(r, write);
        ulp_finish(u);
        cr_assert_eq(commands_over, 1, "%u", commands_over);
        cr_expect_eq(the_command.refusal.fault, write ? ULP_DIRECTION : ULP_RANGE, "%u", the_command.refusal.fault);
        cr_expect_eq(the_command.refusal.len, write ? 512 : 2048);
        cr_expect_eq(the_command.refusal.va, 0x4000);
        ulp_free(u);
        tcp_run_free(r);
    }
}
