/* layer 2b tests: RDS, LNet and 9P: messages made by hand, as their sources describe them, in both byte orders, cut and
 * damaged. */
#include "dissect/file/lnet.h"
#include "dissect/file/p9.h"
#include "dissect/socket/rds.h"

#include "le.h"
#include "src/show/print.h"
#include "tests/unit/ulp_run.h"

/* `little`: the byte order. */
static void in(uint8_t *p, unsigned n, uint64_t v, bool little)
{
    uint8_t b[8];

    store_le(b, n, v);
    for (unsigned i = 0; i < n; i++)
        p[i] = b[little ? i : n - 1 - i];
}

static struct pkt *send(struct run *r, unsigned from, uint32_t psn, const uint8_t *b, unsigned n)
{
    return put(r, from, OP_SEND_ONLY, psn, NULL, 0, b, n);
}

static struct pkt *ack(struct run *r, unsigned from, uint32_t psn)
{
    const uint8_t aeth[4] = {0x1f, 0, 0, 1};

    return put(r, from, OP_ACKNOWLEDGE, psn, aeth, 4, NULL, 0);
}

/* A message, cut at each length and with each byte changed, is read without a byte behind its end. */
static void cut_and_change(const char *word, const uint8_t *b, unsigned n)
{
    for (unsigned i = 0; i <= n; i++) {
        struct run *r = run_new(word);
        uint8_t *copy = malloc(n);
        memcpy(copy, b, n);
        send(r, HOST, 1, b, n);
        ack(r, TARGET, 1);
        send(r, HOST, 2, copy, i);
        for (unsigned k = 0; i < n && k < 3; k++) {
            static const uint8_t flips[] = {0xff, 1, 0x80};
            copy[i] ^= flips[k];
            send(r, k & 1 ? TARGET : HOST, 3 + k, copy, n);
        }
        free(copy);
        run_free(r);
    }
}

/* --- RDS -------------------------------------------------------------------------------------- */

static unsigned rds(uint8_t *b, uint64_t seq, uint64_t acked, uint32_t bytes, uint16_t sport, uint16_t dport,
                    uint8_t flags, unsigned payload)
{
    uint32_t sum = 0;

    memset(b, 0, RDS_LEN + payload);
    in(b, 8, seq, false);
    in(b + 8, 8, acked, false);
    in(b + 16, 4, bytes, false);
    in(b + 20, 2, sport, false);
    in(b + 22, 2, dport, false);
    b[24] = flags;
    if (payload) { /* memory of the sender */
        b[32] = 3;
        in(b + 33, 4, 0x1234, false);
        in(b + 37, 4, 64, false);
    }
    for (unsigned i = 0; i < RDS_LEN; i += 2)
        sum += load_be16(b + i);
    sum = (sum & 0xffff) + (sum >> 16);
    in(b + 30, 2, ~(sum + (sum >> 16)) & 0xffff, false);
    return RDS_LEN + payload;
}

Test(rds, a_datagram_is_open_until_it_is_acknowledged)
{
    struct run *r = run_new("rds");
    uint8_t b[1200];
    struct pkt *p;

    p = send(r, HOST, 1, b, rds(b, 7, 0, 1500, 4000, 4001, RDS_FLAG_ACK, 1000));
    cr_expect(says(p, "RDS Datagram seq 7 port 4000 > 4001 len 1500 rkey 0x1234 offset 64"), "%s", p->note.ulp);
    ack(r, TARGET, 1);
    send(r, HOST, 2, b, rds(b, 7, 0, 1500, 4000, 4001, RDS_FLAG_ACK, 500));
    send(r, HOST, 3, b, rds(b, 8, 0, 0, 4000, 0, 0, 0));
    send(r, TARGET, 100, b, rds(b, 0, 7, 0, 0, 0, 0, 0));
    run_end(r);
    cr_expect_eq(r->n_over, 2, "%u", r->n_over);
    cr_expect_eq(r->over[0].moved[ULP_FROM_CLIENT], 1500);
    cr_expect_eq(r->over[0].ended, ULP_COMPLETED);
    cr_expect_neq(r->over[1].ended, ULP_COMPLETED);
    run_free(r);
}

Test(rds, a_wrong_checksum_or_too_many_bytes_are_refused)
{
    uint8_t b[200];
    unsigned n = rds(b, 1, 0, 100, 1, 2, 0, 100);
    struct rds r;

    cr_expect(rds_get(&r, b, n));
    cr_expect_eq(rds_looks(b, n, true), LOOKS_CLIENT);
    b[5] ^= 1;
    cr_expect_not(rds_get(&r, b, n));
    n = rds(b, 1, 0, 99, 1, 2, 0, 100);
    cr_expect_not(rds_get(&r, b, n), "more bytes than the datagram has");
    cr_expect_not(rds_get(&r, b, RDS_LEN - 1));
}

Test(rds, an_acknowledgement_of_everything_ends)
{
    struct run *r = run_new("rds");
    uint8_t b[64];

    hangs_after(20);
    send(r, HOST, 1, b, rds(b, UINT64_MAX, 0, 0, 1, 2, 0, 0));
    ack(r, TARGET, 1);
    send(r, HOST, 2, b, rds(b, 1, 0, 0, 1, 2, 0, 0));
    send(r, TARGET, 100, b, rds(b, 0, UINT64_MAX, 0, 0, 0, 0, 0));
    run_end(r);
    cr_expect_eq(r->n_over, 2);
    run_free(r);
}

/* A datagram of 100 bytes with an extension that names `rkey`: type 3, its memory; 2, that is no more. */
static unsigned rds_with_key(uint8_t *b, uint64_t seq, uint8_t type, uint32_t rkey)
{
    unsigned n = rds(b, seq, 0, 100, 1, 2, 0, 100);
    uint32_t sum = 0;

    b[32] = type;
    store_be32(b + 33, rkey);
    store_be16(b + 30, 0);
    for (unsigned i = 0; i < RDS_LEN; i += 2)
        sum += load_be16(b + i);
    sum = (sum & 0xffff) + (sum >> 16);
    store_be16(b + 30, (uint16_t) ~((sum & 0xffff) + (sum >> 16)));
    return n;
}

Test(rds, memory_of_which_a_datagram_names_the_key)
{
    struct run *r = run_new("rds");
    struct pkt *p;
    uint8_t b[200];

    send(r, HOST, 1, b, rds_with_key(b, 1, 3, 0x77));
    ack(r, TARGET, 1);
    p = with_reth(r, TARGET, OP_WRITE_ONLY, 100, 0x40, 0x78, 300, 300);
    cr_expect_not(p->note.have & NOTE_ULP, "no datagram named this key");
    p = with_reth(r, TARGET, OP_WRITE_ONLY, 101, 0x40, 0x77, 300, 300);
    cr_expect(says(p, "RDS Datagram seq 1 data 0-299 of 400"), "its own bytes count, too: %s",
              p->note.have & NOTE_ULP ? p->note.ulp : "");
    send(r, HOST, 2, b, rds_with_key(b, 2, 2, 0x77));
    p = with_reth(r, TARGET, OP_WRITE_ONLY, 102, 0x1040, 0x77, 300, 300);
    cr_expect_not(p->note.have & NOTE_ULP, "the key is no more: %s", p->note.ulp);
    send(r, TARGET, 103, b, rds_with_key(b, 1, 3, 0x99));
    p = with_reth(r, HOST, OP_WRITE_ONLY, 3, 0, 0x99, 200, 200);
    cr_expect(says(p, "RDS Datagram seq 1 data 0-199 of 300"), "of the server: %s",
              p->note.have & NOTE_ULP ? p->note.ulp : "");
    run_end(r);
    cr_expect_eq(r->over[0].moved[ULP_TO_CLIENT], 300);
    run_free(r);
}

Test(rds, messages_cut_and_changed)
{
    uint8_t b[200];

    cut_and_change("rds", b, rds(b, 7, 1, 100, 4000, 4001, 0, 100));
}

Test(rds, private_data_name_both_ends)
{
    uint8_t b[52] = {10, 0, 0, 1, 10, 0, 0, 2, 4, 1, 0, 3};

    cr_expect(rds_private_fits(b, 28));
    cr_expect_not(rds_private_fits(b, 27));
    b[8] = 9;
    cr_expect_not(rds_private_fits(b, 28));
    b[32] = 3;
    b[33] = 1;
    b[35] = 3;
    cr_expect(rds_private_fits(b, 52), "IPv6");
}

/* --- LNet ------------------------------------------------------------------------------------- */

#define KEY    0x4711
#define MEMORY UINT64_C(0x7f0000001000)

/* A message: header, LNet header of the types that have one, cookies, memory of 2,048 bytes. */
static unsigned lnet(uint8_t *b, bool little, uint8_t type, uint64_t cookie, uint64_t cookie2, int32_t status)
{
    bool head = type == LNET_PUT_REQ || type == LNET_GET_REQ, memory = type == LNET_PUT_ACK || type == LNET_GET_REQ;
    unsigned at = head ? 120 : 48;

    memset(b, 0, 200);
    in(b, 4, 0x0be91b91, little);
    in(b + 4, 2, 0x12, little);
    b[6] = type;
    in(b + 72, 4, type == LNET_GET_REQ ? 2 : 1, little);
    in(b + 76, 4, 2048, little);
    in(b + at, 8, cookie, little);
    at += 8;
    if (type == LNET_PUT_ACK) {
        in(b + at, 8, cookie2, little);
        at += 8;
    } else if (!head) {
        in(b + at, 4, (uint32_t)status, little);
        at += 4;
    }
    if (memory) {
        in(b + at, 4, KEY, little);
        in(b + at + 4, 4, 1, little);
        in(b + at + 8, 4, 2048, little);
        in(b + at + 12, 8, MEMORY, little);
        at += 20;
    }
    in(b + 8, 4, at, little);
    return at;
}

static void put_and_get(bool little)
{
    struct run *r = run_new("lnet");
    struct pkt *p;
    uint8_t b[200];

    p = send(r, HOST, 1, b, lnet(b, little, LNET_PUT_REQ, 0xa1, 0, 0));
    cr_expect(says(p, "LNet PUT cookie 0xa1 len 2048"), "%s", p->note.ulp);
    ack(r, TARGET, 1);
    send(r, TARGET, 100, b, lnet(b, little, LNET_PUT_ACK, 0xa1, 0xb1, 0));
    p = with_reth(r, HOST, OP_WRITE_ONLY, 2, MEMORY + 1024, KEY, 1024, 1024);
    cr_expect(says(p, "LNet PUT cookie 0xa1 data 1024-2047 of 2048"), "%s", p->note.ulp);
    p = send(r, HOST, 3, b, lnet(b, little, LNET_PUT_DONE, 0xb1, 0, 0));
    cr_expect(says(p, "LNet PUT cookie 0xa1 len 2048"), "%s", p->note.ulp);
    p = send(r, HOST, 4, b, lnet(b, little, LNET_GET_REQ, 0xa2, 0, 0));
    p = with_reth(r, TARGET, OP_WRITE_ONLY, 101, MEMORY, KEY, 1000, 1000);
    cr_expect(says(p, "LNet GET cookie 0xa2 data 0-999 of 2048"), "%s", p->note.ulp);
    p = send(r, TARGET, 102, b, lnet(b, little, LNET_GET_DONE, 0xa2, 0, -5));
    cr_expect(says(p, "LNet GET cookie 0xa2: error -5"), "%s", p->note.ulp);
    send(r, HOST, 5, b, lnet(b, little, LNET_GET_REQ, 0xa3, 0, 0));
    p = send(r, TARGET, 103, b, lnet(b, little, LNET_GET_DONE, 0xa3, 0, INT32_MIN));
    cr_expect(says(p, "LNet GET cookie 0xa3: error -2147483648"), "%s", p->note.ulp);
    run_end(r);
    cr_expect_eq(r->n_over, 3);
    cr_expect_eq(r->over[0].moved[ULP_FROM_CLIENT], 1024);
    cr_expect_eq(r->over[1].moved[ULP_TO_CLIENT], 1000);
    cr_expect(r->over[1].failed);
    cr_expect(r->over[2].failed);
    run_free(r);
}

Test(lnet, a_put_and_a_get_in_either_byte_order)
{
    put_and_get(true);
    put_and_get(false);
}

/* Values as libcfs_nid2str() of Lustre prints them. */
Test(lnet, a_nid_is_an_address_in_a_network)
{
    static const struct {
        uint64_t nid;
        const char *text;
    } nids[] = {{UINT64_C(0x00050000c0a84d01), "192.168.77.1@o2ib"},
                {UINT64_C(0x000500030a000001), "10.0.0.1@o2ib3"},
                {UINT64_C(0x00020001ffffffff), "255.255.255.255@tcp1"},
                {UINT64_C(0x0009000000000000), "0@lo"},
                {UINT64_C(0x000d0000000004d2), "1234@gni"},
                {UINT64_C(0x0011000200000abc), "abc@<17:2>"}};

    for (unsigned i = 0; i < ARRAY_LEN(nids); i++)
        for (unsigned little = 0; little < 2; little++) {
            struct run *r = run_new("lnet");
            struct buf out = {0};
            struct pkt *p;
            uint8_t b[256];
            unsigned n = lnet(b, little, LNET_PUT_REQ, 0xa1, 0, 0);
            for (unsigned k = 0; k < 8; k++)
                b[16 + k] = (uint8_t)(nids[i].nid >> 8 * (little ? k : 7 - k));
            p = send(r, HOST, 1, b, n);
            print_tree(&(struct print_opts){0}, &out, p);
            buf_char(&out, '\0');
            cr_expect(strstr(out.p, nids[i].text), "%s: %s", nids[i].text, out.p);
            buf_free(&out);
            run_free(r);
        }
}

Test(lnet, pieces_of_memory_are_bounded)
{
    uint8_t b[200];
    unsigned n = lnet(b, true, LNET_GET_REQ, 1, 0, 0);
    struct lnet m;

    cr_expect(lnet_get(&m, b, n) && m.frags == 1);
    store_le(b + 132, 4, 2);
    cr_expect_not(lnet_get(&m, b, n), "more pieces than there are bytes");
    store_le(b + 132, 4, UINT32_MAX);
    cr_expect_not(lnet_get(&m, b, n));
}

Test(lnet, messages_cut_and_changed)
{
    uint8_t b[200];

    cut_and_change("lnet", b, lnet(b, true, LNET_GET_REQ, 0xa2, 0, 0));
    cut_and_change("lnet", b, lnet(b, false, LNET_PUT_ACK, 0xa2, 0xb2, 0));
    cut_and_change("lnet", b, lnet(b, true, LNET_PUT_NAK, 0xa2, 0, -1));
}

/* --- 9P --------------------------------------------------------------------------------------- */

static unsigned p9(uint8_t *b, uint8_t type, uint16_t tag, unsigned body)
{
    store_le(b, 4, P9_LEN + body);
    b[4] = type;
    store_le(b + 5, 2, tag);
    return P9_LEN + body;
}

/* A request with a file, an offset and a count. */
static unsigned p9_io(uint8_t *b, uint8_t type, uint16_t tag, uint32_t count, unsigned data)
{
    store_le(b + 7, 4, 3);
    store_le(b + 11, 8, 4096);
    store_le(b + 19, 4, count);
    return p9(b, type, tag, 16 + data);
}

Test(p9, requests_and_responses)
{
    struct run *r = run_new("9p");
    uint8_t b[1200] = {0};
    struct pkt *p;

    p = send(r, HOST, 1, b, p9_io(b, P9_TREAD, 5, 1000, 0));
    cr_expect(says(p, "9P read tag 5 fid 3 offset 4096 count 1000"), "%s", p->note.ulp);
    ack(r, TARGET, 1);
    store_le(b + 7, 4, 600);
    p = send(r, TARGET, 100, b, p9(b, P9_RREAD, 5, 4 + 600));
    cr_expect(says(p, "9P read tag 5: done"), "%s", p->note.ulp);
    send(r, HOST, 2, b, p9_io(b, P9_TWRITE, 6, 500, 500));
    store_le(b + 7, 4, 28);
    p = send(r, TARGET, 101, b, p9(b, P9_RLERROR, 6, 4));
    cr_expect(says(p, "9P write tag 6: error 28 (ENOSPC)"), "%s", p->note.ulp);
    run_end(r);
    cr_expect_eq(r->n_over, 2, "%u", r->n_over);
    cr_expect_eq(r->over[0].moved[ULP_TO_CLIENT], 600);
    cr_expect_eq(r->over[1].moved[ULP_FROM_CLIENT], 500);
    cr_expect(r->over[1].failed && !r->over[0].failed);
    run_free(r);
}

Test(p9, its_size_and_type_tell_a_message)
{
    uint8_t b[64] = {0};
    unsigned n = p9(b, 100, 0xffff, 14);

    cr_expect_eq(p9_looks(b, n, true), LOOKS_CLIENT);
    cr_expect_eq(p9_looks(b, n - 1, true), LOOKS_OTHER);
    cr_expect_eq(p9_looks(b, p9(b, 101, 0xffff, 14), true), LOOKS_SERVER);
    cr_expect_eq(p9_looks(b, p9(b, 99, 1, 14), true), LOOKS_OTHER);
}

Test(p9, messages_cut_and_changed)
{
    uint8_t b[64] = {0};

    cut_and_change("9p", b, p9_io(b, P9_TWRITE, 6, 20, 20));
    store_le(b + 7, 4, 9);
    cut_and_change("9p", b, p9(b, P9_RLERROR, 6, 4));
}
