/* layer 2b tests: RPC over RDMA and NFS: chunks, long calls and replies, callbacks, damage. */
#include "dissect/file/nfs.h"
#include "tests/unit/ulp_run.h"

#define RKEY 0x1234
#define XID  0x11223344
#define VA   (UINT64_C(0x1122334400000000) + 0x1000)

/* A message in the making: words, big-endian. */
struct words {
    uint8_t b[1024];
    unsigned len;
};

static void add(struct words *w, uint32_t v)
{
    for (unsigned i = 0; i < 4; i++)
        w->b[w->len++] = (uint8_t)(v >> (24 - 8 * i));
}

static void add_all(struct words *w, const uint32_t *v, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        add(w, v[i]);
}
#define ADD(w, ...) add_all(w, (const uint32_t[]){__VA_ARGS__}, ARRAY_LEN(((const uint32_t[]){__VA_ARGS__})))

static void add_segment(struct words *w, uint32_t rkey, uint32_t len, uint64_t va)
{
    ADD(w, rkey, len, (uint32_t)(va >> 32), (uint32_t)va);
}

/* An RPC call of NFS without credentials; `version` of NFS. */
static void add_call(struct words *w, uint32_t program, uint32_t version, uint32_t procedure)
{
    ADD(w, XID, 0, 2, program, version, procedure, 0, 0, 0, 0);
}

/* A file handle of eight bytes, an offset, a count. */
static void add_range(struct words *w, uint32_t count)
{
    ADD(w, 8, 0x01000100, 0, 0, 500, count);
}

static struct pkt *send_words(struct run *r, unsigned from, uint32_t psn, const struct words *w)
{
    return put(r, from, OP_SEND_ONLY, psn, NULL, 0, w->b, w->len);
}

/* The call `w`, acknowledged: its PSN pairs the two flows. Returns what its note says. */
static const char *call(struct run *r, const struct words *w)
{
    static char text[160];
    const uint8_t ack[4] = {0x1f, 0, 0, 1};
    const struct pkt *p = send_words(r, HOST, 5, w);

    snprintf(text, sizeof text, "%s", p->note.have & NOTE_ULP ? p->note.ulp : "");
    put(r, TARGET, OP_ACKNOWLEDGE, 5, ack, 4, NULL, 0);
    return text;
}

/* A WRITE of these bytes. */
static struct pkt *write_bytes(struct run *r, uint32_t psn, uint64_t va, const uint8_t *b, uint32_t n)
{
    struct reth h = {.va = va, .rkey = RKEY, .dmalen = n};
    uint8_t ext[16];

    reth_put(ext, &h);
    return put(r, TARGET, OP_WRITE_ONLY, psn, ext, 16, b, n);
}

/* READ of version 3 with a write list of `segments` pieces of 1000 bytes. */
static struct words read_call(uint32_t segments)
{
    struct words w = {0};

    ADD(&w, XID, 1, 32, RPCRDMA_MSG, 0, 1, segments);
    for (uint32_t i = 0; i < segments; i++)
        add_segment(&w, RKEY, 1000, VA + 1000 * i);
    ADD(&w, 0, 0);
    add_call(&w, RPC_NFS, 3, 6);
    add_range(&w, 1000 * segments);
    return w;
}

Test(rpcrdma, data_of_a_read_are_written_to_its_write_list)
{
    struct run *r = run_new("nfs");
    struct words w = read_call(2), a = {0};
    struct pkt *p;

    cr_expect_str_eq(call(r, &w), "NFS READ xid 0x11223344 fh 0x62d40c52 offset 500 count 2000",
                     "the hash is the one that the kernel prints for this handle");
    p = with_reth(r, TARGET, OP_WRITE_ONLY, 100, VA + 1000, RKEY, 500, 500);
    cr_expect(says(p, "NFS READ xid 0x11223344 data 1000-1499 of 2000"), "%s", p->note.ulp);
    p = with_reth(r, TARGET, OP_WRITE_ONLY, 101, VA + 1900, RKEY, 200, 200);
    cr_expect_not(p->note.have & NOTE_ULP, "it ends behind the memory");
    ADD(&a, XID, 1, 32, RPCRDMA_MSG, 0, 1, 2);
    add_segment(&a, RKEY, 1000, VA);
    add_segment(&a, RKEY, 500, VA + 1000);
    ADD(&a, 0, 0, XID, 1, 0, 0, 0, 0, 0, 0, 1500, 1, 1500);
    p = send_words(r, TARGET, 102, &a);
    cr_expect(says(p, "NFS READ xid 0x11223344: NFS3_OK count 1500"), "%s", p->note.ulp);
    cr_expect_eq(value_of(p, "nfs.count3"), 1500);
    cr_expect_eq(value_of(p, "nfs.read.eof"), 1);
    cr_expect_eq(value_of(p, "nfs.procedure_v3"), 6, "of the call");
    cr_expect_eq(value_of(p, "rpc.repframe"), 1);
    run_end(r);
    cr_expect_eq(r->over[0].moved[ULP_TO_CLIENT], 500);
    cr_expect_eq(r->over[0].requested[ULP_TO_CLIENT], 2000);
    run_free(r);
}

/* The reply to a READ of version 3 with `xid`, which wrote `n` bytes at `va`. */
static struct words read_reply(uint32_t xid, uint64_t va, uint32_t n)
{
    struct words a = {0};

    ADD(&a, xid, 1, 32, RPCRDMA_MSG, 0, 1, 1);
    add_segment(&a, RKEY, n, va);
    ADD(&a, 0, 0, xid, 1, 0, 0, 0, 0, 0, 0, n, 1, n);
    return a;
}

Test(rpcrdma, writes_of_a_call_that_was_not_captured_belong_to_its_xid)
{
    const uint64_t va = (uint64_t)(XID + 1) << 32;
    struct run *r = run_new("nfs");
    struct words w = read_call(1), a = read_reply(XID, VA, 1000);
    struct pkt *p;

    p = with_reth(r, TARGET, OP_WRITE_ONLY, 99, va, RKEY, 500, 500);
    cr_expect_not(p->note.have & NOTE_ULP, "no call has told so far that addresses have the xid");
    call(r, &w);
    send_words(r, TARGET, 100, &a);
    p = with_reth(r, TARGET, OP_WRITE_ONLY, 101, va, RKEY, 500, 500);
    cr_expect(says(p, "NFS call xid 0x11223345 data 0-499 of 500"), "%s", p->note.have & NOTE_ULP ? p->note.ulp : "");
    with_reth(r, TARGET, OP_WRITE_ONLY, 102, va + 500, RKEY, 500, 500);
    a = read_reply(XID + 1, va, 1000);
    p = send_words(r, TARGET, 103, &a);
    cr_expect(says(p, "NFS call xid 0x11223345: accepted, the call is not known"), "%s",
              p->note.have & NOTE_ULP ? p->note.ulp : "");
    run_end(r);
    cr_expect_eq(r->n_over, 2);
    cr_expect_eq(r->over[1].moved[ULP_TO_CLIENT], 1000);
    cr_expect_eq(r->over[1].requested[ULP_TO_CLIENT], 1000);
    cr_expect(r->over[1].headless && !r->over[0].headless);
    cr_expect_str_eq(buf_str(&r->text),
                     "call xid 0x11223345, its message was not captured: accepted, the call is not known");
    run_free(r);
}

Test(rpcrdma, a_call_that_is_captured_behind_its_data_has_them)
{
    const uint64_t va = (uint64_t)(XID + 1) << 32;
    struct run *r = run_new("nfs");
    struct words w = read_call(1), a = read_reply(XID, VA, 1000), late = {0};
    struct pkt *p;

    call(r, &w);
    send_words(r, TARGET, 100, &a);
    with_reth(r, TARGET, OP_WRITE_ONLY, 101, va, RKEY, 500, 500);
    ADD(&late, XID + 1, 1, 32, RPCRDMA_MSG, 0, 1, 1);
    add_segment(&late, RKEY, 1000, va);
    ADD(&late, 0, 0, XID + 1, 0, 2, RPC_NFS, 3, 6, 0, 0, 0, 0);
    add_range(&late, 1000);
    send_words(r, HOST, 6, &late);
    with_reth(r, TARGET, OP_WRITE_ONLY, 102, va + 500, RKEY, 500, 500);
    a = read_reply(XID + 1, va, 1000);
    p = send_words(r, TARGET, 103, &a);
    cr_expect(says(p, "NFS READ xid 0x11223345: NFS3_OK count 1000"), "%s", p->note.have & NOTE_ULP ? p->note.ulp : "");
    run_end(r);
    cr_expect_eq(r->over[1].moved[ULP_TO_CLIENT], 1000);
    cr_expect_eq(r->over[1].requested[ULP_TO_CLIENT], 1000);
    cr_expect_not(r->over[1].headless);
    run_free(r);
}

Test(rpcrdma, a_reply_in_the_reply_chunk_is_decoded_from_the_writes)
{
    struct run *r = run_new("nfs");
    struct words w = {0}, a = {0}, n = {0};
    struct pkt *p;

    ADD(&w, XID, 1, 32, RPCRDMA_MSG, 0, 0, 1, 2);
    add_segment(&w, RKEY, 16, VA);
    add_segment(&w, RKEY, 1000, VA + 0x1000);
    add_call(&w, RPC_NFS, 3, 3);
    ADD(&w, 8, 0x01000100, 0, 5, 0x68656c6c, 0x6f000000);
    cr_expect_str_eq(call(r, &w), "NFS LOOKUP xid 0x11223344 fh 0x62d40c52 \"hello\"");
    ADD(&a, XID, 1, 0, 0, 0, 0, 2);
    write_bytes(r, 100, VA, a.b, 16);
    write_bytes(r, 101, VA + 0x1000, a.b + 16, a.len - 16);
    ADD(&n, XID, 1, 32, RPCRDMA_NOMSG, 0, 0, 1, 2);
    add_segment(&n, RKEY, 16, VA);
    add_segment(&n, RKEY, a.len - 16, VA + 0x1000);
    p = send_words(r, TARGET, 102, &n);
    cr_expect(says(p, "NFS LOOKUP xid 0x11223344: NFS3ERR_NOENT"), "%s", p->note.ulp);
    cr_expect_eq(value_of(p, "nfs.status3"), 2);
    cr_expect_eq(value_of(p, "rpc.procedure"), 3);
    run_end(r);
    cr_expect(r->over[0].failed);
    cr_expect_eq(r->over[0].status, 2);
    run_free(r);
}

Test(rpcrdma, a_reply_whose_writes_are_missing_is_known_as_one_only)
{
    struct run *r = run_new("nfs");
    struct words w = {0}, n = {0};

    ADD(&w, XID, 1, 32, RPCRDMA_MSG, 0, 0, 1, 1);
    add_segment(&w, RKEY, 1000, VA);
    add_call(&w, RPC_NFS, 3, 1);
    ADD(&w, 8, 0x01000100, 0);
    call(r, &w);
    ADD(&n, XID, 1, 32, RPCRDMA_NOMSG, 0, 0, 1, 1);
    add_segment(&n, RKEY, 112, VA);
    send_words(r, TARGET, 102, &n);
    run_end(r);
    cr_expect_eq(r->over[0].ended, ULP_COMPLETED);
    cr_expect_str_eq(buf_str(&r->text), "GETATTR xid 0x11223344 fh 0x62d40c52: answered, the reply is not known");
    run_free(r);
}

Test(rpcrdma, a_call_in_a_read_chunk_is_decoded_when_it_was_read)
{
    struct run *r = run_new("nfs");
    struct words w = {0}, c = {0};
    const uint8_t aeth[4] = {0x1f, 0, 0, 1};
    struct pkt *p;

    add_call(&c, RPC_NFS, 3, 12);
    ADD(&c, 8, 0x01000100, 0, 3, 0x61626300);
    ADD(&w, XID, 1, 32, RPCRDMA_NOMSG, 1, 0, RKEY, c.len, (uint32_t)(VA >> 32), (uint32_t)VA, 0, 0, 0);
    cr_expect_str_eq(call(r, &w), "NFS call xid 0x11223344");
    with_reth(r, TARGET, OP_READ_REQUEST, 100, VA, RKEY, c.len, 0);
    p = put(r, HOST, OP_READ_RESP_ONLY, 100, aeth, 4, c.b, c.len);
    cr_expect_eq(value_of(p, "rpc.procedure"), 12);
    run_end(r);
    cr_expect_str_eq(buf_str(&r->text), "REMOVE xid 0x11223344 fh 0x62d40c52 \"abc\": no response seen");
    run_free(r);
}

/* PUTFH, WRITE, GETATTR: the data belong between their length and GETATTR. */
Test(rpcrdma, operations_behind_data_in_a_chunk_are_decoded)
{
    struct run *r = run_new("nfs");
    struct words w = {0}, c = {0};
    uint32_t position;
    struct pkt *p;

    add_call(&c, RPC_NFS, 4, 1);
    ADD(&c, 0, 0, 3, 22, 8, 0x01000100, 0, 38, 1, 2, 3, 4, 0, 700, 2, 5001);
    position = c.len;
    ADD(&c, 9, 1, 0x18);
    ADD(&w, XID, 1, 32, RPCRDMA_MSG, 1, position, RKEY, 5001, (uint32_t)(VA >> 32), (uint32_t)VA, 0, 0, 0);
    memcpy(w.b + w.len, c.b, c.len);
    w.len += c.len;
    p = send_words(r, HOST, 5, &w);
    cr_expect(says(p, "NFS WRITE xid 0x11223344 fh 0x62d40c52 offset 700 count 5001 FILE_SYNC"), "%s", p->note.ulp);
    cr_expect_eq(value_of(p, "nfs.write.data_length"), 5001);
    cr_expect_eq(p->layers[p->n_layers - 1].hdr, &nfs4_op_hdr, "GETATTR is there");
    cr_expect_eq(load_be32(layer_bytes(p, &p->layers[p->n_layers - 1])), 9);
    run_end(r);
    cr_expect_eq(r->over[0].requested[ULP_FROM_CLIENT], 5001);
    cr_expect_eq(r->over[0].moved[ULP_FROM_CLIENT], 0);
    run_free(r);
}

/* Of version 3, and of a compound: ACCESS, or OPEN with ACCESS behind it. */
Test(rpcrdma, access_tells_the_rights_that_are_asked_for_and_given)
{
    struct run *r = run_new("nfs");
    struct words w = {0}, o = {0}, a = {0}, b = {0};
    struct pkt *p;

    ADD(&w, XID, 1, 32, RPCRDMA_MSG, 0, 0, 0);
    add_call(&w, RPC_NFS, 3, 4);
    ADD(&w, 8, 0x01000100, 0, 0x2d);
    cr_expect_str_eq(call(r, &w), "NFS ACCESS xid 0x11223344 fh 0x62d40c52 access READ MODIFY EXTEND EXECUTE");
    ADD(&a, XID, 1, 32, RPCRDMA_MSG, 0, 0, 0, XID, 1, 0, 0, 0, 0, 0, 0, 0);
    p = send_words(r, TARGET, 100, &a);
    cr_expect(says(p, "NFS ACCESS xid 0x11223344: NFS3_OK access none"), "%s", p->note.ulp);
    cr_expect_eq(value_of(p, "nfs.access_rights"), 0);
    run_free(r);
    r = run_new("nfs");
    ADD(&o, XID, 1, 32, RPCRDMA_MSG, 0, 0, 0);
    add_call(&o, RPC_NFS, 4, 1);
    ADD(&o, 0, 0, 2, 15, 1, 0x61000000, 3, 0x1f);
    cr_expect_str_eq(call(r, &o), "NFS LOOKUP xid 0x11223344 \"a\"");
    ADD(&b, XID, 1, 32, RPCRDMA_MSG, 0, 0, 0, XID, 1, 0, 0, 0, 0, 0, 0, 2, 15, 0, 3, 0, 0x1f, 0x03);
    p = send_words(r, TARGET, 100, &b);
    cr_expect(says(p, "NFS LOOKUP xid 0x11223344: NFS4_OK"), "%s", p->note.ulp);
    cr_expect_eq(value_of(p, "nfs.access_rights"), 3);
    cr_expect_eq(value_of(p, "nfs.access_supported"), 0x1f);
    run_free(r);
}

/* PUTFH and READ, of which the snap length cuts the READ away. */
Test(rpcrdma, a_compound_that_was_cut_is_named_by_its_reply)
{
    struct run *r = run_new("nfs");
    struct words w = {0}, a = {0};

    ADD(&w, XID, 1, 32, RPCRDMA_MSG, 0, 0, 0);
    add_call(&w, RPC_NFS, 4, 1);
    ADD(&w, 0, 0, 2, 22, 8, 0x01000100, 0);
    r->snap = 40 + w.len;
    ADD(&w, 25, 0, 0, 0, 0, 0, 500, 20);
    cr_expect_str_eq(call(r, &w), "NFS COMPOUND xid 0x11223344 fh 0x62d40c52", "PUTFH is not what it is for");
    r->snap = 0;
    ADD(&a, XID, 1, 32, RPCRDMA_MSG, 0, 0, 0, XID, 1, 0, 0, 0, 0, 0, 0, 2, 22, 0, 25, 0, 1, 0);
    send_words(r, TARGET, 100, &a);
    run_end(r);
    cr_expect_str_eq(buf_str(&r->text), "READ xid 0x11223344 fh 0x62d40c52: NFS4_OK");
    run_free(r);
}

/* Of its write list two of three pieces are there, of that in the reply as well. */
Test(rpcrdma, a_call_whose_lists_were_cut_has_its_data_and_its_reply)
{
    struct run *r = run_new("nfs");
    struct words w = read_call(3), a = {0}, null = {0};
    struct pkt *p;

    ADD(&null, XID + 1, 1, 32, RPCRDMA_MSG, 0, 0, 0, XID + 1, 0, 2, RPC_NFS, 3, 0, 0, 0, 0, 0);
    call(r, &null);
    r->snap = 40 + 28 + 2 * 16;
    p = send_words(r, HOST, 6, &w);
    cr_expect(says(p, "NFS call xid 0x11223344"), "%s", p->note.ulp);
    with_reth(r, TARGET, OP_WRITE_ONLY, 100, VA, RKEY, 1000, 1000);
    with_reth(r, TARGET, OP_WRITE_ONLY, 101, VA + 2000, RKEY, 700, 700);
    ADD(&a, XID, 1, 32, RPCRDMA_MSG, 0, 1, 3);
    for (unsigned i = 0; i < 3; i++)
        add_segment(&a, RKEY, i < 2 ? 1000 : 700, VA + 1000 * i);
    ADD(&a, 0, 0, XID, 1, 0, 0, 0, 0, 0);
    send_words(r, TARGET, 102, &a);
    run_end(r);
    cr_assert_eq(r->n_over, 2);
    cr_expect(r->over[0].untold[ULP_TO_CLIENT]);
    cr_expect_eq(r->over[0].moved[ULP_TO_CLIENT], 1700);
    cr_expect_eq(r->over[0].ended, ULP_COMPLETED);
    run_free(r);
}

/* 74 bytes of a reply with a write list: the words behind its verifier are not there, or that of NFS is not. */
Test(rpcrdma, a_status_that_was_cut_is_none)
{
    for (unsigned n = 72; n <= 80; n += 4) {
        struct run *r = run_new("nfs");
        struct words w = read_call(1), a = read_reply(XID, VA, 1000);
        call(r, &w);
        r->snap = 40 + n;
        send_words(r, TARGET, 100, &a);
        run_end(r);
        cr_assert_eq(r->n_over, 1);
        cr_expect_eq(r->over[0].ended, ULP_COMPLETED);
        cr_expect_eq(r->over[0].unread, n < 80);
        cr_expect_eq(strstr(buf_str(&r->text), "NFS3_OK") != NULL, n == 80, "%u: %s", n, buf_str(&r->text));
        run_free(r);
    }
}

Test(rpcrdma, a_callback_is_a_call_of_the_server)
{
    struct run *r = run_new("nfs");
    struct words w = read_call(1), b = {0}, a = {0};
    struct pkt *p;

    call(r, &w);
    ADD(&b, XID, 1, 32, RPCRDMA_MSG, 0, 0, 0);
    add_call(&b, RPC_NFS_CB, 1, 1);
    p = send_words(r, TARGET, 100, &b);
    cr_expect(says(p, "NFS CB_COMPOUND xid 0x11223344"), "%s", p->note.ulp);
    ADD(&a, XID, 1, 32, RPCRDMA_MSG, 0, 0, 0, XID, 1, 0, 0, 0, 0);
    p = send_words(r, HOST, 6, &a);
    cr_expect(says(p, "NFS CB_COMPOUND xid 0x11223344: SUCCESS"), "%s", p->note.ulp);
    run_end(r);
    cr_expect_eq(r->n_over, 2);
    cr_expect(r->over[0].by_server, "its xid is that of a call of the client, which is open");
    cr_expect_eq(r->over[1].ended, ULP_OPEN);
    run_free(r);
}

Test(rpcrdma, an_error_of_the_transport_ends_the_call)
{
    struct run *r = run_new("nfs");
    struct words w = read_call(1), a = {0};
    struct pkt *p;

    call(r, &w);
    ADD(&a, XID, 1, 32, RPCRDMA_ERROR, RPCRDMA_ERR_CHUNK);
    p = send_words(r, TARGET, 100, &a);
    cr_expect(says(p, "NFS READ xid 0x11223344: RDMA_ERR_CHUNK"), "%s", p->note.ulp);
    cr_expect_eq(value_of(p, "rpcordma.errcode"), RPCRDMA_ERR_CHUNK);
    run_end(r);
    cr_expect(r->over[0].failed);
    run_free(r);
}

Test(rpcrdma, calls_that_are_refused)
{
    static const struct {
        uint32_t words[4];
        const char *text;
    } refused[] = {{{0, 0, 0, 1}, "PROG_UNAVAIL"}, {{0, 0, 0, 4}, "GARBAGE_ARGS"}, {{1, 1, 1, 0}, "AUTH_ERROR"}};

    for (unsigned i = 0; i < ARRAY_LEN(refused); i++) {
        struct run *r = run_new("nfs");
        struct words w = read_call(1), a = {0};
        call(r, &w);
        ADD(&a, XID, 1, 32, RPCRDMA_MSG, 0, 0, 0, XID, 1);
        add_all(&a, refused[i].words, 4);
        send_words(r, TARGET, 100, &a);
        run_end(r);
        cr_expect(r->over[0].failed);
        cr_expect(strstr(buf_str(&r->text), refused[i].text), "%s", buf_str(&r->text));
        run_free(r);
    }
}

/* --- Recognition ------------------------------------------------------------------------------ */

Test(rpcrdma, a_call_of_nfs_tells_the_protocol)
{
    struct run *r = run_new(NULL);
    struct words w = read_call(1);
    struct pkt *p = send_words(r, HOST, 5, &w);

    cr_expect(p->note.have & NOTE_ULP_HOW);
    run_free(r);
}

Test(rpcrdma, two_other_messages_tell_the_protocol)
{
    struct run *r = run_new(NULL);
    struct words w = read_call(1);
    struct pkt *p;

    for (unsigned i = 0; i + 4 <= w.len; i += 4)
        if (load_be32(w.b + i) == RPC_NFS)
            store_be32(w.b + i, RPC_MOUNT);
    p = send_words(r, HOST, 5, &w);
    cr_expect_not(p->note.have & NOTE_ULP_HOW);
    p = send_words(r, HOST, 6, &w);
    cr_expect(p->note.have & NOTE_ULP_HOW);
    cr_expect_str_eq(p->note.ulp_how, "first bytes");
    cr_expect_str_eq(p->note.upper, "NFS/RDMA");
    run_free(r);
}

Test(rpcrdma, messages_that_are_damaged_are_not_recognised)
{
    struct words w = read_call(2);
    uint32_t header = 7 * 4 + 32 + 8;

    cr_assert_eq(rpcrdma_looks(w.b, w.len, true), LOOKS_FIRST);
    for (unsigned i = 4; i < header + 12; i++) {
        struct words bad = w;
        bool free_byte = (i >= 8 && i < 12) || (i >= 28 && i < 60); /* credits; memory */
        bad.b[i] ^= 0x80;
        if (!free_byte)
            cr_expect_eq(rpcrdma_looks(bad.b, bad.len, true), LOOKS_OTHER, "byte %u", i);
    }
    for (unsigned n = 0; n < header + RPC_CALL_LEN; n++)
        cr_expect_eq(rpcrdma_looks(w.b, n, true), LOOKS_OTHER, "%u bytes", n);
}

/* --- Hostile counts --------------------------------------------------------------------------- */

Test(rpcrdma, counts_beyond_the_message_end_there)
{
    static const uint32_t counts[] = {0, 2, 0x0fffffff, 0x7fffffff, UINT32_MAX};

    for (unsigned i = 0; i < ARRAY_LEN(counts); i++) {
        struct words w = read_call(1), *exact;
        struct rpcrdma h;
        w.b[24] = (uint8_t)(counts[i] >> 24);
        w.b[25] = (uint8_t)(counts[i] >> 16);
        w.b[26] = (uint8_t)(counts[i] >> 8);
        w.b[27] = (uint8_t)counts[i];
        exact = malloc(w.len);
        memcpy(exact, w.b, w.len);
        if (rpcrdma_get(&h, (const uint8_t *)exact, w.len))
            cr_expect_leq(h.len, w.len);
        cr_expect_not(h.whole && counts[i] > 10);
        free(exact);
    }
}

/* Each word of a compound as a number that is too large. */
Test(rpcrdma, words_of_a_compound_that_are_too_large)
{
    struct words c = {0};

    add_call(&c, RPC_NFS, 4, 1);
    ADD(&c, 0, 2, 5, 53, 1, 2, 3, 4, 1, 0, 0, 0, 22, 8, 0x01000100, 0, 18, 0, 1, 0, 0, 0, 4, 0x61626364, 1, 0, 2, 1, 2,
        4, 5, 0, 2, 0x6162, 43, 0, 0, 0, 0);
    for (unsigned at = 40; at < c.len; at += 4)
        for (unsigned i = 0; i < 3; i++) {
            const uint32_t big[] = {UINT32_MAX, 0x80000000, 0x3fffffff};
            struct words bad = c;
            uint8_t *exact = malloc(c.len);
            struct ulp_body m = {exact, c.len, 0};
            struct nfs_call n;
            struct rpc r;
            bad.len = at;
            add(&bad, big[i]);
            memcpy(exact, bad.b, c.len);
            cr_assert(rpc_get(&r, exact, c.len));
            nfs_call_read(&n, &r, &m, NULL, NULL);
            cr_expect_leq(n.known, NFS_OPS_MAX);
            free(exact);
        }
}

/* --- A real capture, damaged ------------------------------------------------------------------ */

Test(rpcrdma, a_real_capture_cut_and_damaged_at_each_byte)
{
    cut_and_damage("captures/nfs_rdma_v42_1.pcap", 60, 400, 140, 7);
}

Test(rpcrdma, version_2_is_named_and_left)
{
    struct run *r = run_new("nfs");
    struct words w = read_call(1), two = {0};
    struct pkt *p;

    call(r, &w);
    ADD(&two, XID + 1, 2, 32, 7, 1, 2, 3);
    for (unsigned i = 0; i < 5; i++) {
        p = send_words(r, HOST, 6 + i, &two);
        cr_expect(says(p, "NFS/RDMA version 2, xid 0x11223345: not decoded"), "%s",
                  p->note.have & NOTE_ULP ? p->note.ulp : "");
    }
    run_free(r);
}

/* Packets with word `at` of their payload replaced, each in memory of its own size; every field of them is read. */
static void play_word(const struct kept *k, uint32_t at, uint32_t value)
{
    static const struct decode_opts opts = {0};
    struct run *r = run_new(NULL);
    struct pkt p;

    for (unsigned i = 0; i < k->n; i++) {
        struct frame f = k->f[i];
        uint8_t *copy = malloc(f.caplen);
        struct value v;
        memcpy(copy, k->bytes[i], f.caplen);
        f.data = copy;
        pkt_decode(&p, &f, &opts);
        if (p.have & H_BTH && !(p.have & H_MAD) && at + 4 <= p.payload_cap) {
            store_be32(copy + p.payload_off + at, value);
            pkt_decode(&p, &f, &opts);
        }
        context_note(r->context, &p);
        for (unsigned l = 0; l < p.n_layers; l++)
            for (unsigned n = 0; n < p.layers[l].hdr->nfields; n++)
                field_value(&p.layers[l].hdr->fields[n], &p, &p.layers[l], &v);
        free(copy);
    }
    run_end(r);
    cr_expect_leq(r->n_over, k->n, "commands that none began");
    run_free(r);
}

/* Counts, lengths and discriminants: each word of XDR is a bound that may be wrong. Under ASan no byte outside is read.
 */
Test(rpcrdma, each_word_of_a_real_capture_replaced)
{
    static const uint32_t values[] = {0, 1, 0x7fffffff, 0x80000000, 0xfffffffc, 0xffffffff};
    static struct kept k;

    hangs_after(120);
    keep(&k, "captures/nfs_rdma_v42_1.pcap");
    for (uint32_t at = 0; at < 400; at += at < 160 ? 4 : 24)
        for (unsigned i = 0; i < ARRAY_LEN(values); i++)
            play_word(&k, at, values[i]);
}
