/* layer 2b tests: RTRS and RNBD: requests that are WRITEs, their data and responses, damage. */
#include "dissect/ulp/rtrs.h"

#include "le.h"
#include "tests/unit/ulp_run.h"

#define CHUNK_RKEY 0x2154
#define CHUNK      UINT64_C(0xffff888006140000)
#define RKEY       0x2b77
#define VA         UINT64_C(0xffff888027392000)

/* An RNBD IO message. */
static void io(uint8_t *b, unsigned rw, uint32_t size)
{
    memset(b, 0, 32);
    store_le(b, 2, RNBD_IO);
    store_le(b + 8, 8, 64);
    store_le(b + 16, 4, rw);
    store_le(b + 20, 4, size);
}

/* A packet of a WRITE of the client, with RETH and with immediate data, if they are wanted. */
static struct pkt *packet(struct run *r, uint8_t opcode, uint32_t psn, bool reth, uint32_t dmalen, bool imm,
                          uint32_t data, const uint8_t *b, unsigned n)
{
    struct reth h = {.va = CHUNK, .rkey = CHUNK_RKEY, .dmalen = dmalen};
    uint8_t ext[20];
    unsigned len = 0;

    if (reth) {
        reth_put(ext, &h);
        len = 16;
    }
    if (imm) {
        store_be32(ext + len, data);
        len += 4;
    }
    return put(r, HOST, opcode, psn, ext, len, b, n);
}

/* The client asks for 4096 bytes by chunk 0; the ACK pairs the two flows. */
static struct pkt *ask(struct run *r, uint32_t psn)
{
    const uint8_t ack[4] = {0x1f, 0, 0, 1};
    static struct pkt p;
    static char text[128];
    uint8_t b[56];

    io(b, 0, 4096);
    store_le(b + 32, 8, RTRS_READ | 32 << 16 | UINT64_C(1) << 32 | UINT64_C(1) << 48);
    store_le(b + 40, 8, VA);
    store_le(b + 48, 4, RKEY);
    store_le(b + 52, 4, 4096);
    p = *packet(r, OP_WRITE_ONLY_IMM, psn, true, sizeof b, true, 32, b, sizeof b);
    snprintf(text, sizeof text, "%s", p.note.have & NOTE_ULP ? p.note.ulp : "");
    p.note.ulp = text;
    put(r, TARGET, OP_ACKNOWLEDGE, psn, ack, 4, NULL, 0);
    return &p;
}

/* The flows are known by the SENDs before the first request. */
static struct run *session(void)
{
    uint8_t info[272] = {0};
    struct run *r = run_new("rtrs");

    memcpy(info + 2, "sess1", 5);
    put(r, HOST, OP_SEND_ONLY, 4, NULL, 0, info, sizeof info);
    return r;
}

static struct pkt *respond(struct run *r, uint32_t psn, uint32_t imm)
{
    uint8_t ext[4];

    store_be32(ext, imm);
    return put(r, TARGET, OP_SEND_ONLY_IMM, psn, ext, 4, NULL, 0);
}

Test(rtrs, a_read_is_a_write_that_offers_memory)
{
    struct run *r = session();
    struct pkt *p = ask(r, 5);

    cr_expect(says(p, "RTRS Read chunk 0 device 0 sector 64 size 4096"), "%s", p->note.ulp);
    p = with_reth(r, TARGET, OP_WRITE_ONLY, 100, VA + 1024, RKEY, 1024, 1024);
    cr_expect(says(p, "RTRS Read chunk 0 data 1024-2047 of 4096"), "%s", p->note.ulp);
    p = respond(r, 101, 0x20000000 | 5 << 19);
    cr_expect(says(p, "RTRS Read chunk 0: error 5 (EIO)"), "%s", p->note.ulp);
    run_end(r);
    cr_expect(r->over[1].failed || r->over[0].failed);
    run_free(r);
}

Test(rtrs, the_end_of_a_write_of_several_packets_says_what_it_is)
{
    struct run *r = session();
    uint8_t data[1024] = {0}, end[1024] = {0};
    struct pkt *p;

    ask(r, 5);
    packet(r, OP_WRITE_FIRST, 6, true, 1536 + 36, false, 0, data, 1024);
    io(end + 512, 1, 1536);
    store_le(end + 544, 4, RTRS_WRITE | 32 << 16);
    p = packet(r, OP_WRITE_LAST_IMM, 7, false, 0, true, 1 << 19 | (1024 + 544), end, 548);
    cr_expect(says(p, "RTRS Write chunk 1 device 0 sector 64 size 1536"), "%s", p->note.ulp);
    p = respond(r, 100, 0x10000001);
    cr_expect(says(p, "RTRS Write chunk 1: done"), "%s", p->note.ulp);
    run_end(r);
    for (unsigned i = 0; i < r->n_over; i++)
        if (r->over[i].moved[ULP_FROM_CLIENT])
            cr_expect_eq(r->over[i].moved[ULP_FROM_CLIENT], 1536);
    run_free(r);
}

Test(rtrs, a_write_that_lacks_a_packet_is_no_request)
{
    struct run *r = session();
    uint8_t data[1024] = {0}, end[1024] = {0};
    struct pkt *p;

    ask(r, 5);
    packet(r, OP_WRITE_FIRST, 6, true, 2048 + 36, false, 0, data, 1024);
    io(end, 1, 2048);
    store_le(end + 32, 4, RTRS_WRITE | 32 << 16);
    p = packet(r, OP_WRITE_LAST_IMM, 8, false, 0, true, 1 << 19 | (2048 + 32), end, 36);
    cr_expect_not(p->note.have & NOTE_ULP);
    run_free(r);
}

/* The end of a request says what it is; where that was cut, its immediate data tell that there is one, and the place of
 * its header which one. A request to read begins with what is to be read. */
Test(rtrs, a_request_whose_end_was_cut)
{
    struct run *r = session();

    r->snap = 40 + 40;
    cr_expect_str_eq(ask(r, 5)->note.ulp, "RTRS Read chunk 0 device 0 sector 64 size not captured");
    respond(r, 100, 1u << 28);
    r->snap = 40 + 39;
    cr_expect_str_eq(ask(r, 6)->note.ulp, "RTRS RTRS Read chunk 0", "it is cut in the operation");
    respond(r, 101, 1u << 28);
    run_end(r);
    cr_assert_eq(r->n_over, 3);
    cr_expect(r->over[0].untold[ULP_TO_CLIENT] && !r->over[0].untold[ULP_FROM_CLIENT]);
    cr_expect_eq(r->over[0].ended, ULP_COMPLETED);
    run_free(r);
}

/* Its header is where no request has one; a request to write, that begins as one to read would. */
Test(rtrs, a_write_whose_end_was_cut_is_told_by_the_place_of_its_header)
{
    struct run *r = session();
    uint8_t data[512] = {0};
    struct pkt *p;

    ask(r, 5);
    r->snap = 96 - 14;
    io(data, 0, 4096);
    p = packet(r, OP_WRITE_ONLY_IMM, 6, true, 512, true, 1 << 19 | 508, data, 512);
    cr_expect(says(p, "RTRS RTRS Write chunk 1"), "%s", p->note.ulp);
    p = packet(r, OP_WRITE_ONLY_IMM, 7, true, 512, true, 2 << 19 | 509, data, 512);
    cr_expect(says(p, "RTRS request chunk 2"), "%s", p->note.ulp);
    run_free(r);
}

/* 96 bytes of a frame: two requests to read tell the protocol, and others do not. */
Test(rtrs, requests_to_read_that_were_cut_tell_the_protocol)
{
    uint8_t b[56];

    io(b, 0, 4096);
    cr_expect_eq(rtrs_looks_write(b, 22, 56, CHUNK, 32), LOOKS_CLIENT);
    cr_expect_eq(rtrs_looks_write(b, 19, 56, CHUNK, 32), LOOKS_OTHER, "cut in the operation");
    cr_expect_eq(rtrs_looks_write(b, 22, 56, CHUNK, 33), LOOKS_OTHER, "no header there");
    cr_expect_eq(rtrs_looks_write(b, 22, 56, CHUNK, 32 | 1u << 28), LOOKS_OTHER, "a response");
    cr_expect_eq(rtrs_looks_write(b, 22, 36, CHUNK, 32), LOOKS_OTHER, "a request to write");
    io(b, 1, 4096);
    cr_expect_eq(rtrs_looks_write(b, 22, 56, CHUNK, 32), LOOKS_OTHER, "a write that reads");
}

Test(rtrs, messages_about_chunks_that_were_cut)
{
    uint8_t b[272] = {0, 0, 's', 'e', 's', 's'};

    cr_expect_eq(rtrs_looks_cut(b, 42, 272, true), LOOKS_CLIENT);
    cr_expect_eq(rtrs_looks_cut(b, 42, 271, true), LOOKS_OTHER);
    cr_expect_eq(rtrs_looks_cut(b, 42, 272, false), LOOKS_OTHER);
    b[41] = 1;
    cr_expect_eq(rtrs_looks_cut(b, 42, 272, true), LOOKS_OTHER, "a byte behind the name");
    memset(b, 0, sizeof b);
    store_le(b, 8, RTRS_INFO_RSP | 512 << 16);
    store_le(b + 20, 4, 4096);
    cr_expect_eq(rtrs_looks_cut(b, 42, 1024, false), LOOKS_SERVER);
    cr_expect_eq(rtrs_looks_cut(b, 42, 8 + 512 * 16, true), LOOKS_SERVER);
    cr_expect_eq(rtrs_looks_cut(b, 42, 1024, true), LOOKS_OTHER, "not as long as it says");
    cr_expect_eq(rtrs_looks_cut(b, 23, 1024, false), LOOKS_OTHER);
}

Test(rtrs, heartbeats_are_answered)
{
    struct run *r = session();
    uint8_t ext[20] = {0};
    struct pkt *p;

    ask(r, 5);
    store_be32(ext + 16, 0x80000000);
    p = put(r, HOST, OP_WRITE_ONLY_IMM, 6, ext, 20, NULL, 0);
    cr_expect(says(p, "RTRS Heartbeat of the client"), "%s", p->note.ulp);
    store_be32(ext + 16, 0x90000000);
    p = put(r, TARGET, OP_WRITE_ONLY_IMM, 100, ext, 20, NULL, 0);
    cr_expect(says(p, "RTRS Heartbeat of the client: answered"), "%s", p->note.ulp);
    run_free(r);
}

Test(rtrs, lengths_that_do_not_fit_are_refused)
{
    uint8_t b[64] = {0};
    struct rnbd m;
    struct rtrs r;

    store_le(b + 60, 4, RTRS_WRITE | 61u << 16);
    cr_expect_not(rtrs_get(&r, b, sizeof b, CHUNK, 60), "a user message longer than the WRITE");
    store_le(b + 60, 4, RTRS_WRITE | 60u << 16);
    cr_expect(rtrs_get(&r, b, sizeof b, CHUNK, 60) && r.user == 0 && r.at == 60);
    cr_expect_not(rtrs_get(&r, b, sizeof b, CHUNK, 61), "not where the immediate data say");
    cr_expect_not(rtrs_get(&r, b, 0, CHUNK, 0));
    store_le(b, 2, RNBD_IO);
    rnbd_get(&m, b, 25);
    cr_expect_not(m.known);
}

Test(rtrs, a_real_capture_cut_and_damaged_at_each_byte)
{
    cut_and_damage("captures/rnbd_1.pcap", 60, 400, 120, 37);
}

#ifdef __GLIBC__
/* The names are those of the machine, which is Linux. */
Test(rtrs, errors_have_the_names_of_linux)
{
    unsigned named = 0;

    for (uint32_t i = 1; i < 200; i++) {
        struct buf b = {0};
        char want[64];
        const char *name = strerrorname_np((int)i);
        snprintf(want, sizeof want, "error %u (%s)", i, name ? name : "");
        ulp_error_text(&b, i);
        if (strchr(buf_str(&b), '(')) {
            cr_expect_str_eq(buf_str(&b), want);
            named++;
        }
        buf_free(&b);
    }
    cr_expect(named > 50, "%u", named);
}
#endif
