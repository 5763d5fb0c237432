/* layer 2b tests: SMB Direct: SMB2 requests in one or several messages, the memory that they offer, damage. */
#include "dissect/file/smbd.h"

#include "le.h"
#include "tests/unit/ulp_run.h"

#define TOKEN 0x480
#define VA    UINT64_C(0xffff888000001000)

/* A message in the making. */
struct msg {
    uint8_t b[1024];
    unsigned len;
};

/* Append an SMB2 header and a body of `n` zeros. Returns the body. */
static uint8_t *smb2(struct msg *m, uint16_t command, uint64_t id, uint32_t flags, uint32_t status, unsigned n)
{
    uint8_t *p = m->b + m->len;

    memset(p, 0, SMB2_LEN + n);
    memcpy(p, "\xfeSMB", 4);
    store_le(p + 4, 2, SMB2_LEN);
    store_le(p + 8, 4, status);
    store_le(p + 12, 2, command);
    store_le(p + 16, 4, flags);
    store_le(p + 24, 8, id);
    m->len += SMB2_LEN + n;
    return p + SMB2_LEN;
}

/* A request to read or write over RDMA: its memory is described behind the body. */
static void over_rdma(struct msg *m, bool write, uint64_t id, uint32_t len)
{
    uint8_t *p = smb2(m, write ? SMB2_WRITE : SMB2_READ, id, 0, 0, 48 + 16);

    if (!write)
        store_le(p + 4, 4, len);
    store_le(p + 8, 8, 8192);
    store_le(p + (write ? 32 : 36), 4, 2);
    if (write)
        store_le(p + 36, 4, len);
    store_le(p + (write ? 40 : 44), 2, SMB2_LEN + 48);
    store_le(p + (write ? 42 : 46), 2, 16);
    store_le(p + 48, 8, VA);
    store_le(p + 56, 4, TOKEN);
    store_le(p + 60, 4, len);
}

/* Bytes [from, to) of `m` in one message. */
static struct pkt *part(struct run *r, unsigned from, uint32_t psn, const struct msg *m, unsigned at, unsigned to)
{
    uint8_t b[SMBD_DATA_LEN + sizeof m->b] = {255, 0, 1};

    store_le(b + 8, 4, m->len - to);
    store_le(b + 12, 4, SMBD_DATA_LEN);
    store_le(b + 16, 4, to - at);
    memcpy(b + SMBD_DATA_LEN, m->b + at, to - at);
    return put(r, from, OP_SEND_ONLY, psn, NULL, 0, b, SMBD_DATA_LEN + to - at);
}

static struct pkt *say(struct run *r, unsigned from, uint32_t psn, const struct msg *m)
{
    return part(r, from, psn, m, 0, m->len);
}

/* What the client says first. */
static const char *first(struct run *r, const struct msg *m)
{
    return acknowledged(r, say(r, HOST, 5, m));
}

Test(smbd, the_server_writes_what_is_read)
{
    struct run *r = run_new("smbdirect");
    struct msg m = {.len = 0};
    struct pkt *p;

    over_rdma(&m, false, 24, 4096);
    cr_expect_str_eq(first(r, &m), "SMB Direct Read mid 24 offset 8192 length 4096");
    p = with_reth(r, TARGET, OP_WRITE_ONLY, 100, VA, TOKEN, 11, 11);
    cr_expect(says(p, "SMB Direct Read mid 24 data 0-10 of 4096"), "%s", p->note.ulp);
    m.len = 0;
    store_le(smb2(&m, SMB2_READ, 24, 1, 0, 16) + 8, 4, 11);
    p = say(r, TARGET, 101, &m);
    cr_expect(says(p, "SMB Direct Read mid 24: STATUS_SUCCESS"), "%s", p->note.ulp);
    run_end(r);
    cr_expect_eq(r->n_over, 1);
    cr_expect_eq(r->over[0].moved[ULP_TO_CLIENT], 11);
    run_free(r);
}

Test(smbd, a_request_in_parts_is_put_together)
{
    struct run *r = run_new("smbdirect");
    struct msg m = {.len = 0};
    struct pkt *p;

    smb2(&m, 13, 23, 0, 0, 4);
    first(r, &m);
    m.len = 0;
    over_rdma(&m, true, 24, 1000);
    p = part(r, HOST, 6, &m, 0, 70);
    cr_expect(says(p, "SMB Direct 70 bytes of a message, 58 follow"), "%s", p->note.ulp);
    part(r, HOST, 7, &m, 70, 100);
    p = part(r, HOST, 8, &m, 100, m.len);
    cr_expect(says(p, "SMB Direct Write mid 24 offset 8192 length 1000"), "%s", p->note.ulp);
    p = with_reth(r, TARGET, OP_READ_REQUEST, 100, VA, TOKEN, 1000, 0);
    cr_expect(says(p, "SMB Direct Write mid 24 data requested"), "%s", p->note.ulp);
    run_end(r);
    cr_expect_eq(r->over[1].packets, 4, "three of the request, and the READ");
    cr_expect_eq(r->over[1].start, 3 * NS_PER_US, "with the first part");
    run_free(r);
}

/* A directory, too long for one SEND: each of its parts belongs to the request, and the last one ends it. */
Test(smbd, a_response_in_parts_is_that_of_its_request)
{
    struct run *r = run_new("smbdirect");
    struct msg m = {.len = 0};
    struct pkt *p;

    smb2(&m, 14, 24, 0, 0, 32);
    first(r, &m);
    m.len = 0;
    smb2(&m, 14, 24, 1, 0, 600);
    p = part(r, TARGET, 100, &m, 0, 300);
    cr_expect(says(p, "SMB Direct Query Directory mid 24; 300 bytes of the response, 364 follow"), "%s", p->note.ulp);
    p = part(r, TARGET, 101, &m, 300, 600);
    cr_expect(says(p, "SMB Direct Query Directory mid 24; 300 bytes of the response, 64 follow"), "%s", p->note.ulp);
    p = part(r, TARGET, 102, &m, 600, m.len);
    cr_expect(says(p, "SMB Direct Query Directory mid 24: STATUS_SUCCESS"), "%s", p->note.ulp);
    p = part(r, TARGET, 101, &m, 300, 600);
    cr_expect(p->note.ulp_command == 1, "retransmitted: %s", p->note.ulp);
    run_end(r);
    cr_assert_eq(r->n_over, 1);
    cr_expect_eq(r->over[0].packets, 5, "the request, three of the response, one of them again");
    cr_expect_eq(r->over[0].response, 5);
    cr_expect_eq(r->over[0].again, 1);
    run_free(r);
}

/* A snap length leaves the header of the first part, and of the others nothing. */
Test(smbd, a_response_in_parts_that_were_cut)
{
    struct run *r = run_new("smbdirect");
    struct msg m = {.len = 0};
    struct pkt *p;

    smb2(&m, SMB2_READ, 24, 0, 0, 48);
    store_le(m.b + SMB2_LEN + 4, 4, 600);
    cr_expect_str_eq(first(r, &m), "SMB Direct Read mid 24 offset 0 length 600");
    r->snap = 40 + SMBD_DATA_LEN + SMB2_LEN + 16;
    m.len = 0;
    store_le(smb2(&m, SMB2_READ, 24, 1, 0, 16 + 600) + 4, 4, 600);
    p = part(r, TARGET, 100, &m, 0, 300);
    cr_expect(says(p, "SMB Direct Read mid 24; 300 bytes of the response, 380 follow"), "%s", p->note.ulp);
    p = part(r, TARGET, 101, &m, 300, m.len);
    cr_expect(says(p, "SMB Direct Read mid 24: STATUS_SUCCESS"), "%s", p->note.ulp);
    run_end(r);
    cr_assert_eq(r->n_over, 1);
    cr_expect_eq(r->over[0].moved[ULP_TO_CLIENT], 600);
    run_free(r);
}

/* A response of no request asks for what is held back: of that nothing is put behind the message at hand. */
Test(smbd, a_joined_message_stays_what_it_is)
{
    struct run *r = run_new("smbdirect");
    const uint8_t ack[4] = {0x1f, 0, 0, 1};
    uint8_t held[1024] = {255, 0, 1};
    struct msg m = {.len = 0};

    smb2(&m, 13, 23, 0, 0, 4);
    first(r, &m);
    put(r, TARGET, OP_SEND_ONLY, 99, NULL, 0, held, SMBD_DATA_LEN);
    put(r, HOST, OP_ACKNOWLEDGE, 99, ack, 4, NULL, 0);
    store_le(held + 8, 4, 5000);
    store_le(held + 12, 4, SMBD_DATA_LEN);
    store_le(held + 16, 4, 900);
    put(r, TARGET, OP_SEND_FIRST, 100, NULL, 0, held, sizeof held);
    put(r, TARGET, OP_SEND_LAST, 102, NULL, 0, held, 64);
    m.len = 0;
    store_le(smb2(&m, 13, 99, 1, 0, 8) - SMB2_LEN + 20, 4, SMB2_LEN + 8);
    smb2(&m, 13, 23, 1, 0, 8);
    part(r, TARGET, 103, &m, 0, 100);
    part(r, TARGET, 104, &m, 100, m.len);
    run_end(r);
    cr_expect_eq(r->n_over, 1);
    cr_expect_eq(r->over[0].response, r->frame);
    run_free(r);
}

/* A snap length of 128 bytes leaves 50 bytes of the SMB2 header: neither offset nor length of a READ. */
Test(smbd, a_request_that_was_cut_in_its_header_says_no_lengths)
{
    struct run *r = run_new("smbdirect");
    const uint8_t key[4] = {0, 0, 4, 0x80};
    uint8_t b[SMBD_DATA_LEN + sizeof(struct msg)] = {255, 0, 1};
    struct msg m = {.len = 0};

    r->snap = 40 + SMBD_DATA_LEN + 50;
    over_rdma(&m, false, 24, 4096);
    cr_expect_str_eq(first(r, &m), "SMB Direct Read mid 24");
    m.len = 0;
    smb2(&m, SMB2_READ, 24, 1, 0, 16);
    store_le(b + 12, 4, SMBD_DATA_LEN);
    store_le(b + 16, 4, m.len);
    memcpy(b + SMBD_DATA_LEN, m.b, m.len);
    put(r, TARGET, OP_SEND_ONLY_INV, 100, key, 4, b, SMBD_DATA_LEN + m.len);
    m.len = 0;
    over_rdma(&m, true, 25, 4096);
    r->snap--;
    say(r, HOST, 6, &m);
    r->snap -= 2;
    say(r, HOST, 7, &m);
    run_end(r);
    cr_assert_eq(r->n_over, 3, "the third request is cut in its session, behind its MessageId");
    cr_expect(r->over[0].untold[ULP_TO_CLIENT] && r->over[1].untold[ULP_FROM_CLIENT]);
    cr_expect(r->over[2].untold[ULP_FROM_CLIENT]);
    cr_expect_eq(r->over[0].ended, ULP_COMPLETED);
    cr_expect_eq(r->over[1].ended, ULP_REUSED);
    cr_expect_str_eq(buf_str(&r->text), "Write mid 25: no response seen");
    run_free(r);
}

Test(smbd, a_request_that_lacks_a_part_is_none)
{
    struct run *r = run_new("smbdirect");
    struct msg m = {.len = 0};
    const uint8_t ack[4] = {0x1f, 0, 0, 3};
    struct pkt *p;

    smb2(&m, 13, 23, 0, 0, 4);
    first(r, &m);
    m.len = 0;
    over_rdma(&m, true, 24, 1000);
    part(r, HOST, 6, &m, 0, 70);
    p = part(r, HOST, 8, &m, 100, m.len);
    cr_expect(says(p, "SMB Direct 28 bytes of a message, 0 follow"), "%s", p->note.ulp);
    put(r, TARGET, OP_ACKNOWLEDGE, 8, ack, 4, NULL, 0);
    m.len = 0;
    smb2(&m, 13, 25, 0, 0, 4);
    p = say(r, HOST, 9, &m);
    cr_expect(says(p, "SMB Direct Echo mid 25"), "the next one is whole: %s", p->note.ulp);
    run_free(r);
}

/* A message as long as the part that is missing is none of its parts. */
Test(smbd, a_request_is_not_completed_by_another_one_as_long_as_the_lost_part)
{
    struct run *r = run_new("smbdirect");
    const uint8_t ack[4] = {0x1f, 0, 0, 3};
    struct msg m = {.len = 0};
    struct pkt *p;

    smb2(&m, 13, 23, 0, 0, 4);
    first(r, &m);
    m.len = 0;
    smb2(&m, SMB2_READ, 24, 0, 0, 48 + 20);
    part(r, HOST, 6, &m, 0, m.len - SMB2_LEN - 4);
    m.len = 0;
    smb2(&m, 13, 25, 0, 0, 4);
    p = say(r, HOST, 8, &m);
    put(r, TARGET, OP_ACKNOWLEDGE, 8, ack, 4, NULL, 0);
    m.len = 0;
    smb2(&m, 13, 25, 1, 0, 4);
    p = say(r, TARGET, 100, &m);
    cr_expect(says(p, "SMB Direct Echo mid 25: STATUS_SUCCESS"), "%s", p->note.ulp);
    run_end(r);
    cr_expect_eq(r->n_over, 2);
    run_free(r);
}

/* A Create, MessageId 7, and behind it a Close, MessageId 8: the status and the bytes of the body of each. */
static void compound(struct msg *m, uint32_t flags, uint32_t status, unsigned create, uint32_t then, unsigned close)
{
    m->len = 0;
    smb2(m, 5, 7, flags, status, create);
    store_le(m->b + 20, 4, m->len);
    smb2(m, 6, 8, flags | 4, then, close);
}

Test(smbd, each_message_of_a_compound_is_a_request)
{
    struct run *r = run_new("smbdirect");
    struct msg m = {.len = 0};
    struct pkt *p;

    compound(&m, 0, 0, 64, 0, 24);
    cr_expect_str_eq(first(r, &m), "SMB Direct Create mid 7; Close");
    compound(&m, 1, 0xc0000034, 8, 0xc000000d, 8);
    p = say(r, TARGET, 100, &m);
    cr_expect(says(p, "SMB Direct Create mid 7: STATUS_OBJECT_NAME_NOT_FOUND; Close: STATUS_INVALID_PARAMETER"), "%s",
              p->note.ulp);
    run_end(r);
    cr_expect_eq(r->n_over, 2);
    cr_expect(r->over[0].failed && r->over[1].failed);
    cr_expect_str_eq(buf_str(&r->text), "Close mid 8: STATUS_INVALID_PARAMETER");
    run_free(r);
}

/* What 96 bytes of a frame have of a message: the command, of a response the status, and not the MessageId. */
#define SNAP_96 (96 - 14)

static struct pkt *request_cut(struct run *r, uint32_t psn, uint16_t command, unsigned body)
{
    struct msg m = {.len = 0};

    smb2(&m, command, psn, 0, 0, body);
    return say(r, HOST, psn, &m);
}

static struct pkt *response_cut(struct run *r, uint32_t psn, uint16_t command, uint32_t status)
{
    struct msg m = {.len = 0};

    smb2(&m, command, 0, 1, status, 16);
    return say(r, TARGET, psn, &m);
}

/* A client's request, and a Close behind it, which is *p. */
static struct run *run_cut(uint16_t command, unsigned body, struct pkt **p)
{
    struct run *r = run_new(NULL);
    struct msg m = {.len = 0};

    r->snap = SNAP_96;
    smb2(&m, command, 1, 0, 0, body);
    first(r, &m);
    *p = request_cut(r, 6, 6, 24);
    return r;
}

/* A response belongs to the only request with its command; an interim one ends nothing. */
Test(smbd, requests_that_were_cut_before_their_message_ids)
{
    struct pkt *p;
    struct run *r = run_cut(14, 32, &p);

    cr_expect(says(p, "SMB Direct Close mid not captured"), "%s", p->note.ulp);
    response_cut(r, 100, 14, SMB2_STATUS_PENDING);
    p = response_cut(r, 101, 6, UINT32_C(0xc0000128));
    cr_expect(says(p, "SMB Direct Close mid not captured: STATUS_FILE_CLOSED"), "%s", p->note.ulp);
    p = response_cut(r, 102, 14, 0);
    cr_expect(says(p, "SMB Direct Query Directory mid not captured: STATUS_SUCCESS"), "%s", p->note.ulp);
    run_end(r);
    cr_assert_eq(r->n_over, 2);
    cr_expect_eq(r->over[0].failed + 2 * r->over[1].failed, 1, "the Close, which was answered first");
    run_free(r);
}

/* A Close may be behind the Create, in its compound: the response to a Close is not known to be that of the other. */
Test(smbd, a_request_that_was_cut_may_hide_others)
{
    struct pkt *p;
    struct run *r = run_cut(5, 120, &p);

    p = response_cut(r, 100, 6, 0);
    cr_expect(says(p, "SMB Direct response, its MessageId was cut: its request is not known"), "%s", p->note.ulp);
    run_end(r);
    cr_assert_eq(r->n_over, 2);
    cr_expect_eq(r->over[0].ended, ULP_CUT);
    cr_expect_eq(r->over[1].ended, ULP_CUT);
    run_free(r);
}

/* The snap length leaves the first response of two, of which the first says that another one is behind it. */
Test(smbd, a_response_that_was_cut_behind_another_one_is_there)
{
    struct run *r = run_new("smbdirect");
    struct msg m = {.len = 0};

    compound(&m, 0, 0, 64, 0, 24);
    first(r, &m);
    compound(&m, 1, 0, 88, 0, 60);
    r->snap = 40 + SMBD_DATA_LEN + SMB2_LEN + 88;
    say(r, TARGET, 100, &m);
    run_end(r);
    cr_assert_eq(r->n_over, 2);
    cr_expect_eq(r->over[0].response, r->over[1].response);
    cr_expect(!r->over[0].unread && r->over[1].unread && !r->over[1].failed);
    cr_expect_str_eq(buf_str(&r->text), "Close mid 8: answered, the response was cut by the snap length");
    run_free(r);
}

/* Behind the first request others are that were not captured; of their responses it is not known whose they are. */
Test(smbd, requests_that_were_cut_behind_another_one_are_told)
{
    struct run *r = run_new("smbdirect");
    struct msg m = {.len = 0};

    compound(&m, 0, 0, 64, 0, 24);
    r->snap = 40 + SMBD_DATA_LEN + SMB2_LEN + 64 + 20;
    first(r, &m);
    compound(&m, 1, 0, 88, 0, 60);
    say(r, TARGET, 100, &m);
    run_end(r);
    cr_expect_eq(r->n_over, 1);
    cr_expect_str_eq(buf_str(&r->text), "Create mid 7 (requests behind it were cut): STATUS_SUCCESS");
    run_free(r);
}

Test(smbd, an_interim_response_ends_nothing)
{
    struct run *r = run_new("smbdirect");
    struct msg m = {.len = 0};
    struct pkt *p;

    smb2(&m, 15, 7, 0, 0, 32);
    first(r, &m);
    m.len = 0;
    smb2(&m, 15, 7, 3, SMB2_STATUS_PENDING, 8);
    p = say(r, TARGET, 100, &m);
    cr_expect(says(p, "SMB Direct 72 bytes of a message, 0 follow"), "%s", p->note.ulp);
    m.len = 0;
    smb2(&m, 15, 7, 3, 0xc0000120, 8);
    p = say(r, TARGET, 101, &m);
    cr_expect(says(p, "SMB Direct Change Notify mid 7: STATUS_CANCELLED"), "%s", p->note.ulp);
    run_free(r);
}

Test(smbd, data_in_the_messages)
{
    struct run *r = run_new("smbdirect");
    struct msg m = {.len = 0};
    uint8_t *p = smb2(&m, SMB2_WRITE, 9, 0, 0, 48 + 100);

    store_le(p + 4, 4, 100);
    first(r, &m);
    m.len = 0;
    store_le(smb2(&m, SMB2_WRITE, 9, 1, 0, 16) + 4, 4, 100);
    say(r, TARGET, 100, &m);
    run_end(r);
    cr_expect_eq(r->over[0].moved[ULP_FROM_CLIENT], 100);
    run_free(r);
}

Test(smbd, lengths_that_do_not_fit_are_refused)
{
    uint8_t b[SMBD_DATA_LEN + 8] = {0};
    struct msg m = {.len = 0};
    struct smbd d;
    struct smb2 s;

    store_le(b + 12, 4, SMBD_DATA_LEN);
    store_le(b + 16, 4, 9);
    cr_expect_not(smbd_get(&d, b, sizeof b, false, true), "data that are not there");
    cr_expect(smbd_get(&d, b, sizeof b, false, false), "they may follow");
    store_le(b + 12, 4, UINT32_MAX & ~7u);
    cr_expect_not(smbd_get(&d, b, sizeof b, false, false));
    over_rdma(&m, false, 1, 4096);
    cr_expect(smb2_get(&s, m.b, m.len, 0, 0) && s.n_info == 1);
    store_le(m.b + SMB2_LEN + 46, 2, 17);
    cr_expect(smb2_get(&s, m.b, m.len, 0, 0) && s.n_info == 0, "descriptors that are not there");
    store_le(m.b + 20, 4, UINT32_MAX - 7);
    cr_expect(smb2_get(&s, m.b, m.len, 0, 0) && !smb2_next(&s, m.b, m.len), "an offset that wraps");
    cr_expect_not(smb2_get(&s, m.b, SMB2_LEN - 1, 0, 0));
    m.b[0] = 0xfd;
    cr_expect_not(smb2_get(&s, m.b, m.len, 0, 0), "encrypted");
}

Test(smbd, a_real_capture_cut_and_damaged_at_each_byte)
{
    cut_and_damage("captures/smbdirect_1.pcap", 15, 400, 400, 1);
}

/* A negotiation of 20 bytes is one only if its values make sense. */
Test(smbd, a_negotiation_tells_the_protocol)
{
    uint8_t b[20] = {0, 1, 0, 1};

    store_le(b + 6, 2, 255);
    store_le(b + 8, 4, 1364);
    store_le(b + 12, 4, 8192);
    store_le(b + 16, 4, 1 << 20);
    cr_expect_eq(smbd_looks(b, sizeof b, true), LOOKS_FIRST);
    store_le(b + 12, 4, 64);
    cr_expect_eq(smbd_looks(b, sizeof b, true), LOOKS_CLIENT);
    store_le(b + 12, 4, 8192);
    store_le(b + 16, 4, UINT32_MAX);
    cr_expect_eq(smbd_looks(b, sizeof b, true), LOOKS_CLIENT);
}

/* How many interfaces the packet shows, and with RDMA. */
static unsigned interfaces(const struct pkt *p, unsigned *rdma)
{
    unsigned n = 0;

    *rdma = 0;
    for (unsigned l = 0; l < p->n_layers; l++)
        if (p->layers[l].hdr == &smb2_interface_hdr) {
            n++;
            *rdma += layer_bytes(p, &p->layers[l])[8] >> 1 & 1;
        }
    return n;
}

Test(smbd, an_ioctl_is_named_and_interfaces_are_shown)
{
    static const struct {
        uint32_t at, n, next;
        unsigned shown, rdma;
    } cases[] = {{112, 304, 152, 2, 1},        {112, 303, 152, 1, 0}, {112, 151, 152, 0, 0},
                 {112, 304, 0, 1, 0},          {112, 304, 1, 1, 0},   {112, UINT32_MAX, 152, 2, 1},
                 {UINT32_MAX, 304, 152, 0, 0}, {0, 304, 152, 0, 0},   {112, 304, UINT32_MAX, 1, 0}};
    struct msg m = {.len = 0};

    for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
        struct run *r = run_new("smbdirect");
        unsigned rdma, shown;
        struct pkt *p;
        uint8_t *body;
        m.len = 0;
        store_le(smb2(&m, SMB2_IOCTL, 6, 0, 0, 56) + 4, 4, 0x1401fc);
        cr_expect_str_eq(first(r, &m), "SMB Direct Ioctl mid 6 FSCTL_QUERY_NETWORK_INTERFACE_INFO");
        m.len = 0;
        body = smb2(&m, SMB2_IOCTL, 6, 1, 0, 48 + 304);
        store_le(body + 4, 4, 0x1401fc);
        store_le(body + 32, 4, cases[i].at);
        store_le(body + 36, 4, cases[i].n);
        store_le(body + 48, 4, cases[i].next);
        store_le(body + 48 + 152 + 8, 4, 2); /* the second one has RDMA */
        p = say(r, TARGET, 101, &m);
        cr_expect(says(p, "SMB Direct Ioctl mid 6: STATUS_SUCCESS"), "%s", p->note.ulp);
        shown = interfaces(p, &rdma);
        cr_expect(shown == cases[i].shown && rdma == cases[i].rdma, "%u: %u interfaces, %u with RDMA", i, shown, rdma);
        run_free(r);
    }
    m.len = 0;
    store_le(smb2(&m, SMB2_IOCTL, 6, 0, 0, 56) + 4, 4, 0x12345678);
    struct run *r = run_new("smbdirect");
    cr_expect_str_eq(first(r, &m), "SMB Direct Ioctl mid 6 code 0x12345678");
    run_free(r);
}

/* --- Credits ---------------------------------------------------------------------------------- */

static void take_left(void *user, const struct ulp_value *v)
{
    if (strcmp(v->name, "messages_left") == 0 && v->known)
        *(uint64_t *)user = v->number;
}

static uint64_t left_of(const struct ulp_command *c)
{
    uint64_t left = UINT64_MAX;

    ulp_command_values(c, take_left, &left);
    return left;
}

/* The server grants three messages when it answers the negotiation. */
static void negotiate(struct run *r)
{
    const uint8_t ack[4] = {0x1f, 0, 0, 1};
    uint8_t b[32] = {0, 1, 0, 1};

    store_le(b + 6, 2, 10);
    store_le(b + 8, 4, 1024);
    store_le(b + 12, 4, 8192);
    store_le(b + 16, 4, 65536);
    put(r, HOST, OP_SEND_ONLY, 4, NULL, 0, b, 20);
    put(r, TARGET, OP_ACKNOWLEDGE, 4, ack, 4, NULL, 0);
    store_le(b + 4, 2, 0x100);
    store_le(b + 6, 2, 0);
    store_le(b + 8, 2, 10);
    store_le(b + 10, 2, 3);
    store_le(b + 12, 4, 0);
    put(r, TARGET, OP_SEND_ONLY, 99, NULL, 0, b, sizeof b);
}

Test(smbd, each_message_takes_a_credit)
{
    struct run *r = run_new("smbdirect");
    uint8_t grant[SMBD_DATA_LEN] = {0};
    struct msg m = {.len = 0};
    struct pkt *p;

    negotiate(r);
    for (unsigned i = 0; i < 3; i++) {
        m.len = 0;
        smb2(&m, 13, i, 0, 0, 4);
        say(r, HOST, 5 + i, &m);
    }
    grant[2] = 2;
    p = put(r, TARGET, OP_SEND_ONLY, 100, NULL, 0, grant, SMBD_DATA_LEN);
    cr_expect(says(p, "SMB Direct credits: 0 requested, 2 granted, 2 left"), "it has 3 of the client's: %s",
              p->note.ulp);
    m.len = 0;
    smb2(&m, 13, 3, 0, 0, 4);
    say(r, HOST, 8, &m);
    run_end(r);
    cr_assert_eq(r->n_over, 5);
    cr_expect_eq(left_of(&r->over[0]), UINT64_MAX, "the negotiation");
    for (unsigned i = 0; i < 3; i++)
        cr_expect_eq(left_of(&r->over[1 + i]), 2 - i, "%u", i);
    cr_expect_eq(left_of(&r->over[4]), 1);
    run_free(r);
}

/* One more than were granted: what granted it was not captured. */
Test(smbd, credits_that_do_not_suffice_are_not_known)
{
    struct run *r = run_new("smbdirect");
    struct msg m = {.len = 0};

    negotiate(r);
    for (unsigned i = 0; i < 5; i++) {
        m.len = 0;
        smb2(&m, 13, i, 0, 0, 4);
        say(r, HOST, 5 + i, &m);
    }
    run_end(r);
    cr_expect_eq(left_of(&r->over[3]), 0);
    cr_expect_eq(left_of(&r->over[4]), UINT64_MAX);
    cr_expect_eq(left_of(&r->over[5]), UINT64_MAX);
    run_free(r);
}
