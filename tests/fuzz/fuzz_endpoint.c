/* layer 3 (gen) fuzz: an endpoint whose peer sends anything, with right ICRCs; it must survive, keep the rules itself,
 * and neither read nor write a byte that no valid key reaches.
 *
 * Input: a byte of options, then records: a length byte, that many bytes from the BTH on. A length of 0 lets time
 * pass. Options: bits 0 and 1 the service, 2 profile rxe, 3 credits, 4 an XRC target.
 *
 * With bit 7 of the options: an end of a storage protocol (bits 0 and 1: which, 2: the serving one), whose peer sends
 * anything over right transport: the records of storage_peer.h. */
#include <assert.h>
#include <stdlib.h>

#include "frame.h"
#include "gen/endpoint/endpoint.h"
#include "gen/endpoint/rewrite.h"
#include "tests/fuzz/storage_peer.h"

/* What a part of the memory is registered as. */
enum part {
    OPEN,     /* remote rights: the peer may do anything */
    CLOSED,   /* no remote right */
    OTHER_PD, /* remote rights, for another protection domain */
    GONE,     /* was registered with remote rights */
    INVALID,  /* likewise, and invalidated */
    BEHIND,   /* no remote right, but a window reaches its first WINDOW bytes: type 2, bound (RC) */
    BEHIND1,  /* likewise, of type 1, bound again: its key before that is dead */
    FAST,     /* no remote right; fast registration reaches its first WINDOW bytes (RC), the key before that is dead */
    FOREIGN,  /* no remote right; a receive of a shared receive queue of another XRC domain */
    PARTS
};
#define PART   1024 /* bytes of a part, and of the canaries behind it */
#define WINDOW 256
#define IOVA   UINT64_C(0x1000) /* of part 0; the others follow, as their memory does */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t mem[PARTS][2][PART];
static const uint8_t canary[8] = {0x8e, 0x3b, 0xc7, 0x14, 0xf2, 0x69, 0xa5, 0xd0};

/* The fuzzer must not learn the canary from comparisons. */
#ifdef __clang__
#define UNSEEN __attribute__((no_sanitize("coverage")))
#else
#define UNSEEN
#endif

static UNSEEN void fill(void)
{
    uint8_t *p = &mem[0][0][0];

    for (size_t i = 0; i < sizeof mem; i++)
        p[i] = canary[i % sizeof canary];
    memset(mem[OPEN][0], 0, PART);
    for (unsigned i = BEHIND; i <= FAST; i++)
        memset(mem[i][0], 0, WINDOW);
}

/* Whether the peer may have written byte `i` of the memory. */
static bool is_reached(size_t i)
{
    size_t part = i / (2 * PART);

    return i < PART || (part >= BEHIND && part <= FAST && i % (2 * PART) < WINDOW);
}

/* Nothing was written but what a key reaches. */
static UNSEEN void untouched(void)
{
    const uint8_t *p = &mem[0][0][0];

    for (size_t i = 0; i < sizeof mem; i++)
        assert(is_reached(i) || p[i] == canary[i % sizeof canary]);
}

/* A frame to the peer holds no canary, whole, at any place. */
static UNSEEN void not_told(const uint8_t *frame, size_t n)
{
    size_t same = 0;

    for (size_t shift = 0; shift < sizeof canary; shift++, same = 0)
        for (size_t i = 0; i < n; i++) {
            same = frame[i] == canary[(i + shift) % sizeof canary] ? same + 1 : 0;
            assert(same < sizeof canary);
        }
}

static struct link_addr own_addr(unsigned side)
{
    struct link_addr a = {.encap = ENCAP_ROCEV2, .mac = {2, 0, 0, 0, 0, (uint8_t)side}};

    gid_from_ipv4(a.gid, 0x32323201u + side);
    return a;
}

/* Register the parts of the memory: keys[]. */
static void set_up_memory(struct endpoint *ep, uint32_t pd, uint32_t keys[PARTS])
{
    uint32_t other = ep_pd_alloc(ep);

    fill();
    for (unsigned i = 0; i < PARTS; i++) {
        bool closed = i == CLOSED || i >= BEHIND;
        uint8_t access = closed ? ACCESS_LOCAL_WRITE | ACCESS_MW_BIND : ACCESS_LOCAL_WRITE | ACCESS_REMOTE;
        int r = ep_mr_reg(ep, i == OTHER_PD ? other : pd, mem[i][0], PART, IOVA + i * 2 * PART, access, &keys[i]);
        assert(r == 0);
    }
    ep_mr_dereg(ep, keys[GONE]);
    mr_invalidate(ep_mr_table(ep), keys[INVALID], pd, 0, false);
}

/* The first WINDOW bytes of a part, to be bound or registered with `region`'s rights to READ and WRITE. */
static struct send_wr reach(enum part part, enum wr_opcode op, uint32_t region)
{
    return (struct send_wr){.opcode = (uint8_t)op,
                            .remote_addr = IOVA + part * 2 * PART,
                            .mr_key = region,
                            .mw_length = WINDOW,
                            .reg_mem = mem[part][0],
                            .mw_access = ACCESS_REMOTE_READ | ACCESS_REMOTE_WRITE};
}

/* A local operation was posted, with result `r`: carry it out. */
static void run(struct endpoint *ep, int r)
{
    static uint8_t frame[EP_FRAME_MAX];
    int sent = r == 0 ? ep_tx(ep, frame, sizeof frame, 0) : -1;

    assert(sent == 0);
}

/* Windows of both types, and a fast registration. */
static void set_up_windows(struct endpoint *ep, uint32_t pd, int qp, const uint32_t keys[PARTS])
{
    struct send_wr one = reach(BEHIND1, WR_BIND_MW, keys[BEHIND1]), two = reach(BEHIND, WR_BIND_MW, keys[BEHIND]),
                   fast = reach(FAST, WR_REG_MR, 0);
    uint32_t key;

    ep_mw_alloc(ep, pd, MR_WINDOW2, &key); /* not bound */
    ep_mw_alloc(ep, pd, MR_WINDOW2, &two.inv_rkey);
    two.rkey = two.inv_rkey + 1;
    run(ep, ep_post_send(ep, qp, &two, 0));
    ep_mw_alloc(ep, pd, MR_WINDOW1, &key);
    for (int i = 0; i < 2; i++) {
        one.inv_rkey = key;
        run(ep, ep_mw_bind(ep, qp, &one, &key, 0));
    }
    ep_mr_alloc(ep, pd, WINDOW, &fast.inv_rkey);
    fast.mw_access |= ACCESS_LOCAL_WRITE;
    fast.rkey = fast.inv_rkey + 1;
    run(ep, ep_post_send(ep, qp, &fast, 0));
}

/* A shared receive queue of another XRC domain. */
static void set_up_foreign(struct endpoint *ep, uint32_t pd, int cq, uint32_t key)
{
    struct sge sge = {IOVA + FOREIGN * 2 * PART, PART, key};
    struct recv_wr wr = {.sg_list = &sge, .num_sge = 1};
    int srq = ep_srq_create(ep, pd, 16, 1);

    ep_srq_to_xrc(ep, srq, ep_xrcd_alloc(ep), cq);
    ep_post_srq_recv(ep, srq, &wr, 0);
}

/* Receives of the open part, for the queue pair, or for an XRC target's shared receive queue. */
static void set_up_receives(struct endpoint *ep, int qp, int srq, uint32_t key)
{
    struct sge sge = {IOVA, 600, key};
    struct recv_wr wr = {.sg_list = &sge, .num_sge = 1};

    for (int i = 0; i < 8; i++) {
        if (srq >= 0)
            ep_post_srq_recv(ep, srq, &wr, 0);
        else
            ep_post_recv(ep, qp, &wr, 0);
    }
}

static struct endpoint *set_up(unsigned options, int *qp, uint32_t *key)
{
    struct ep_config c = {
        .addr = own_addr(1), .profile = options & 4 ? EP_RXE : EP_STRICT, .credits = options & 8, .seed = 1};
    bool xrc = options & 16;
    struct ep_qp_init init = {
        .type = xrc ? QPT_XRC_TGT : (uint8_t)(options & 3 ? (options & 3) - 1 : 0), .qpn = 17, .srq = EP_NO_SRQ};
    struct ep_peer remote = ep_peer_default();
    struct endpoint *ep = ep_new(&c);
    uint32_t keys[PARTS];
    int srq = -1;

    init.pd = ep_pd_alloc(ep);
    init.send_cq = init.recv_cq = ep_cq_create(ep, 64);
    set_up_memory(ep, init.pd, keys);
    *key = keys[OPEN];
    if (xrc) {
        init.xrcd = ep_xrcd_alloc(ep);
        srq = ep_srq_create(ep, init.pd, 16, 1);
        ep_srq_to_xrc(ep, srq, init.xrcd, init.recv_cq);
        set_up_foreign(ep, init.pd, init.recv_cq, keys[FOREIGN]);
    }
    *qp = ep_qp_create(ep, &init);
    memcpy(remote.av.dgid, own_addr(0).gid, 16);
    remote.qpn = 18;
    remote.path_mtu = 256;
    remote.qkey = 0x11111111;
    ep_ah_create(ep, init.pd, &remote.av);
    ep_qp_connect(ep, *qp, &remote, 0);
    if (init.type == QPT_RC)
        set_up_windows(ep, init.pd, *qp, keys);
    set_up_receives(ep, *qp, srq, *key);
    return ep;
}

static void post(struct endpoint *ep, int qp, uint32_t key, unsigned what)
{
    struct sge sge = {IOVA, 8 + 300 * (what & 1), key};
    struct send_wr wr = {.opcode = (uint8_t)(what % 8),
                         .sg_list = &sge,
                         .num_sge = 1,
                         .remote_addr = IOVA,
                         .rkey = 0x100,
                         .remote_qpn = 18,
                         .remote_qkey = 0x11111111};

    ep_post_send(ep, qp, &wr, 0);
}

static void storage(unsigned options, const uint8_t *data, size_t size)
{
    static struct storage s;
    unsigned kinds = 0;

    while (storage_kinds[kinds])
        kinds++;
    peer_discover = options & 8;
    peer_play(&s, storage_kinds[(options & 3) % kinds], options & 4, data, size);
    storage_close(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t frame[EP_FRAME_MAX], out[EP_FRAME_MAX];
    struct link_addr remote = own_addr(0), own = own_addr(1);
    struct av av = {.dmac = {2, 0, 0, 0, 0, 1}};
    struct path path;
    struct endpoint *ep;
    ns_t now = 0;
    uint32_t key;
    int qp;

    if (size < 1)
        return 0;
    if (data[0] & 0x80) {
        storage(data[0], data + 1, size - 1);
        return 0;
    }
    ep = set_up(data[0], &qp, &key);
    memcpy(av.dgid, own.gid, 16);
    path_init(&path, &remote, &av);
    for (size_t i = 1; i < size;) {
        size_t n = data[i++];
        uint32_t len;
        int sent;
        if (n > size - i)
            n = size - i;
        if (n == 0) {
            now += NS_PER_MS;
            ep_expire(ep, now);
            post(ep, qp, key, (unsigned)(i + data[0]));
        }
        len = path.head_len + (uint32_t)n + 4;
        memcpy(frame, path.head, path.head_len);
        memcpy(frame + path.head_len, data + i, n);
        store_be16(frame + path.net_off + 2, (uint16_t)(len - path.net_off));
        store_be16(frame + path.head_len - 4, (uint16_t)(n + 12));
        frame_fix_ip(frame, len, LINK_ETHERNET);
        build_fix_crc(frame, len, LINK_ETHERNET);
        ep_rx(ep, frame, len, now);
        while ((sent = ep_tx(ep, out, sizeof out, now)) > 0)
            not_told(out, (size_t)sent);
        i += n;
    }
    untouched();
    assert(ep_stats(ep)->own_check_failures == 0);
    ep_free(ep);
    return 0;
}
