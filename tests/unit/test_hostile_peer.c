/* layer 3 tests: a peer that sends arbitrary packets with right ICRCs: it can neither change nor read memory without
 * permission, all packets are counted, and no memory grows. */
#include "dissect/pkt.h"
#include "gen/cm/cm_agent.h"
#include "gen/endpoint/rewrite.h"

#include <criterion/criterion.h>
#include <malloc.h>
#include <stdlib.h>

#define PACKETS 200000
#define REGION  4096u
#define GAP     8192u
#define QPN     0x4711u

/* Regions with gaps between them; the bytes of each identify it. */
enum { GAP0, READ_WRITE, GAP1, READ_ONLY, GAP2, WRITE_ONLY, GAP3, LOCAL, GAP4, OTHER_PD, GAP5, PLACES };
static const struct {
    uint32_t len;
    uint8_t access; /* 0 and LOCAL_WRITE: no remote access */
    bool registered;
    uint8_t fill;
} places[PLACES] = {
    [GAP0] = {GAP, 0, false, 0xd0}, [READ_WRITE] = {REGION, ACCESS_LOCAL_WRITE | ACCESS_REMOTE, true, 0x11},
    [GAP1] = {GAP, 0, false, 0xd1}, [READ_ONLY] = {REGION, ACCESS_REMOTE_READ, true, 0x22},
    [GAP2] = {GAP, 0, false, 0xd2}, [WRITE_ONLY] = {REGION, ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE, true, 0xd3},
    [GAP3] = {GAP, 0, false, 0xd4}, [LOCAL] = {REGION, ACCESS_LOCAL_WRITE, true, 0xd5},
    [GAP4] = {GAP, 0, false, 0xd6}, [OTHER_PD] = {REGION, ACCESS_LOCAL_WRITE | ACCESS_REMOTE, true, 0xd7},
    [GAP5] = {GAP, 0, false, 0xd8},
};
#define SECRET 0xd0 /* high half of a byte that must not be sent */

static uint8_t memory[6 * GAP + 5 * REGION];
static uint8_t *at[PLACES];
static uint32_t key[PLACES];

static struct endpoint *ep;
static struct prng rng;
static int qp, cq;
static uint32_t pd;
static unsigned connections;

static const uint8_t OWN[16] = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 2},
                     PEER[16] = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 1},
                     STRANGER[16] = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 9};

static struct link_addr address(const uint8_t gid[16])
{
    struct link_addr a = {.encap = ENCAP_ROCEV2, .mac = {2, 0, 0, 0, 0, gid[15]}};

    memcpy(a.gid, gid, 16);
    return a;
}

static void lay_out(void)
{
    uint8_t *p = memory;

    for (unsigned i = 0; i < PLACES; i++) {
        at[i] = p;
        memset(p, places[i].fill, places[i].len);
        p += places[i].len;
    }
}

/* Number of bytes of a place that have changed. */
static unsigned changed(unsigned place)
{
    unsigned n = 0;

    for (uint32_t i = 0; i < places[place].len; i++)
        n += at[place][i] != places[place].fill;
    return n;
}

/* A new connection: the last one is in the error state. */
static void reconnect(enum qp_type type)
{
    struct ep_qp_init init = {
        .type = (uint8_t)type, .qpn = QPN, .send_cq = cq, .recv_cq = cq, .srq = EP_NO_SRQ, .pd = pd};
    struct ep_peer peer = ep_peer_default();
    struct sge sge = {(uintptr_t)at[READ_WRITE], 1000, key[READ_WRITE]};
    struct recv_wr wr = {.sg_list = &sge, .num_sge = 1};
    struct ep_event event;
    struct wc wc;

    if (qp >= 0)
        ep_qp_destroy(ep, qp);
    while (ep_event(ep, &event) || ep_poll(ep, cq, &wc, 1) == 1)
        ;
    qp = ep_qp_create(ep, &init);
    cr_assert_geq(qp, 0);
    memcpy(peer.av.dgid, PEER, 16);
    peer.qpn = 18;
    peer.path_mtu = 256;
    peer.rq_psn = 0xfffff0;
    peer.sq_psn = 0xfffff0;
    cr_assert_eq(ep_qp_connect(ep, qp, &peer, 0), 0);
    for (unsigned i = 0; i < 8; i++)
        ep_post_recv(ep, qp, &wr, 0);
    connections++;
}

static void open_endpoint(enum ep_profile profile, enum qp_type type)
{
    struct ep_config c = {.addr = address(OWN), .mtu = 256, .profile = (uint8_t)profile, .seed = 7};

    prng_seed(&rng, 1);
    lay_out();
    ep = ep_new(&c);
    pd = ep_pd_alloc(ep);
    cq = ep_cq_create(ep, 1024);
    for (unsigned i = 0; i < PLACES; i++)
        if (places[i].registered)
            cr_assert_eq(ep_mr_reg(ep, i == OTHER_PD ? ep_pd_alloc(ep) : pd, at[i], places[i].len, (uintptr_t)at[i],
                                   places[i].access, &key[i]),
                         0);
    qp = -1;
    connections = 0;
    reconnect(type);
}

static void close_endpoint(void)
{
    ep_free(ep);
    ep = NULL;
}

/* An address in or near a region, a key that may belong to it, a length that may fit. */
static void attack_memory(uint8_t reth[16])
{
    static const uint32_t sizes[] = {0,    1,    8,    255,        256,        257,       1000,
                                     4095, 4096, 4097, 0x7fffffff, 0x80000000, 0xffffffff};
    unsigned place = prng_below(&rng, PLACES), of = prng_below(&rng, 3) ? place : prng_below(&rng, PLACES);
    uint64_t va = (uintptr_t)at[place] + prng_below(&rng, places[place].len);
    uint32_t size = sizes[prng_below(&rng, ARRAY_LEN(sizes))];

    if (prng_below(&rng, 2))
        va = (uintptr_t)at[place] + (prng_below(&rng, 2) ? places[place].len : 0) + prng_below(&rng, 17) - 8;
    if (prng_below(&rng, 3) == 0) { /* as it should be */
        of = place;
        va = (uintptr_t)at[place] + prng_below(&rng, places[place].len / 2);
        size = 1 + prng_below(&rng, 256);
    }
    if (prng_below(&rng, 50) == 0)
        va = UINT64_MAX - prng_below(&rng, 300);
    store_be64(reth, va);
    store_be32(reth + 8, prng_below(&rng, 8) ? key[of] : key[of] ^ 1u << prng_below(&rng, 32));
    store_be32(reth + 12, size);
}

/* Write a frame with `n` bytes from the BTH on: its length. */
static uint32_t put_frame(uint8_t *frame, const uint8_t source[16], const uint8_t *body, uint32_t n)
{
    struct link_addr from = address(source);
    struct av av = {.dmac = {2, 0, 0, 0, 0, 2}};
    struct path path;
    uint32_t len;

    memcpy(av.dgid, OWN, 16);
    path_init(&path, &from, &av);
    len = path.head_len + n + 4;
    memcpy(frame, path.head, path.head_len);
    memcpy(frame + path.head_len, body, n);
    store_be16(frame + path.net_off + 2, (uint16_t)(len - path.net_off));
    store_be16(frame + path.head_len - 4, (uint16_t)(n + 12));
    frame_fix_ip(frame, len, LINK_ETHERNET);
    build_fix_crc(frame, len, LINK_ETHERNET);
    return len;
}

/* Write a packet of any kind; its length. */
static uint32_t attack(uint8_t *frame, enum qp_type type)
{
    static uint8_t body[512];
    const struct qp *q = ep_qp(ep, qp);
    uint32_t n = prng_below(&rng, 4) ? 12 + 16 + prng_below(&rng, 2) * 256 : 12 + prng_below(&rng, 300);
    uint32_t psn = prng_below(&rng, 8) ? q->rsp.epsn_lo : q->rsp.epsn_lo + prng_below(&rng, 8) - 4;

    for (uint32_t i = 0; i < n; i++)
        body[i] = 0x33;
    body[0] =
        prng_below(&rng, 8) ? (uint8_t)((type == QPT_UC ? 0x20 : 0) + prng_below(&rng, 24)) : (uint8_t)prng_next(&rng);
    body[1] = (uint8_t)((0u - (n - 12)) & 3) << 4;
    store_be16(body + 2, 0xffff);
    store_be32(body + 4, prng_below(&rng, 32) ? QPN : (uint32_t)prng_next(&rng) & 0xffffff);
    store_be32(body + 8, (psn & 0xffffff) | (prng_below(&rng, 2) ? 0x80000000 : 0));
    attack_memory(body + 12);
    return put_frame(frame, prng_below(&rng, 16) ? PEER : STRANGER, body, (n + 3) & ~3u);
}

/* Whether a packet holds eight bytes of a place that the peer must not read. */
static bool tells_secret(const uint8_t *frame, uint32_t len)
{
    uint32_t run = 0;

    for (uint32_t i = 42; i < len; i++) {
        run = (frame[i] & 0xf0) == SECRET && run && frame[i] == frame[i - 1] ? run + 1 : (frame[i] & 0xf0) == SECRET;
        if (run >= 8)
            return true;
    }
    return false;
}

static void besiege(enum ep_profile profile, enum qp_type type)
{
    static uint8_t frame[EP_FRAME_MAX], out[EP_FRAME_MAX];
    static const unsigned untouched[] = {GAP0, GAP1, GAP2, GAP3, GAP4, GAP5, READ_ONLY, LOCAL, OTHER_PD};
    unsigned read = 0, half = 0, now_bytes;
    int n;

    open_endpoint(profile, type);
    for (unsigned i = 0; i < PACKETS; i++) {
        uint32_t len = attack(frame, type);
        ep_rx(ep, frame, len, (ns_t)i * 1000);
        while ((n = ep_tx(ep, out, sizeof out, (ns_t)i * 1000)) > 0) {
            cr_assert_not(tells_secret(out, (uint32_t)n), "packet %u", i);
            read += n > 66; /* data, not only an acknowledgement */
        }
        if (ep_qp(ep, qp)->state == QPS_ERR || i % 64 == 63)
            reconnect(type);
        if (i == PACKETS / 2)
            half = (unsigned)mallinfo2().uordblks;
    }
    now_bytes = (unsigned)mallinfo2().uordblks;
    for (unsigned i = 0; i < ARRAY_LEN(untouched); i++)
        cr_assert_eq(changed(untouched[i]), 0, "place %u", untouched[i]);
    cr_assert_gt(changed(READ_WRITE), 100); /* permitted requests succeed: so the attack reached the memory */
    cr_assert_gt(changed(WRITE_ONLY), 100);
    cr_assert(type != QPT_RC || read > 100, "%u", read);
    cr_assert_gt(connections, 1000);
    cr_assert_eq(ep_stats(ep)->rx_packets, PACKETS);
    cr_assert_gt(ep_stats(ep)->dropped, PACKETS / 100);
    cr_assert_leq(ep_stats(ep)->malformed + ep_stats(ep)->unknown_qp + ep_stats(ep)->other_source +
                      ep_stats(ep)->bad_pkey,
                  ep_stats(ep)->dropped);
    cr_assert_gt(ep_stats(ep)->unknown_qp, 0);
    cr_assert(type != QPT_RC || ep_stats(ep)->nak_sent > PACKETS / 100);
    cr_assert_eq(ep_stats(ep)->own_check_failures, 0);
    cr_assert_leq(now_bytes, half + 100000, "%u bytes in use, then %u", half, now_bytes);
    close_endpoint();
}

Test(hostile_peer, reads_and_writes_only_what_it_was_given)
{
    besiege(EP_STRICT, QPT_RC);
}

Test(hostile_peer, reads_and_writes_only_what_it_was_given_by_the_habits_of_soft_roce)
{
    besiege(EP_RXE, QPT_RC);
}

Test(hostile_peer, writes_only_what_it_was_given_over_uc)
{
    besiege(EP_STRICT, QPT_UC);
}

/* --- Answers that are none -------------------------------------------------------------------- */

/* Write a response with `n` bytes of data to the request of the queue pair; returns its length. */
static uint32_t answer(uint8_t *frame, const uint8_t from[16], uint32_t qpn, uint8_t opcode, uint32_t psn, uint32_t n)
{
    uint8_t body[16 + 256] = {opcode, 0, 0xff, 0xff};

    store_be32(body + 4, qpn);
    store_be32(body + 8, psn & 0xffffff);
    store_be32(body + 12, 0x1f000001);
    memset(body + 16, 0x66, n);
    return put_frame(frame, from, body, 16 + n);
}

Test(hostile_peer, takes_answers_only_from_its_peer_to_its_queue_pair_within_its_window)
{
    enum { ACK = 0x11, READ_ONLY_RESPONSE = 0x10, PSN = 0xfffff0 };
    static const struct {
        const uint8_t *from;
        uint32_t qpn, psn;
    } wrong[] = {{STRANGER, QPN, PSN},  {PEER, QPN ^ 1, PSN},        {PEER, QPN, PSN - 1},      {PEER, QPN, PSN + 2},
                 {PEER, QPN, PSN + 64}, {PEER, QPN, PSN + 0x7fffff}, {PEER, QPN, PSN - 0x7fff}, {PEER, 1, PSN}};
    static uint8_t frame[EP_FRAME_MAX];
    struct send_wr wr = {.opcode = WR_RDMA_READ, .flags = SEND_SIGNALED, .num_sge = 1, .rkey = 1};
    struct sge sge;
    struct wc wc;
    uint32_t n;

    open_endpoint(EP_STRICT, QPT_RC);
    sge = (struct sge){(uintptr_t)at[LOCAL], 256, key[LOCAL]};
    wr.sg_list = &sge;
    cr_assert_eq(ep_post_send(ep, qp, &wr, 0), 0);
    cr_assert_gt(ep_tx(ep, frame, sizeof frame, 0), 0);
    for (unsigned i = 0; i < 2 * ARRAY_LEN(wrong); i++) {
        uint32_t len = answer(frame, wrong[i / 2].from, wrong[i / 2].qpn, i % 2 ? ACK : READ_ONLY_RESPONSE,
                              wrong[i / 2].psn, i % 2 ? 0 : 256);
        ep_rx(ep, frame, len, 1000);
        cr_assert_eq(ep_poll(ep, cq, &wc, 1), 0, "%u", i);
        cr_assert_eq(ep_qp(ep, qp)->state, QPS_RTS, "%u", i);
        cr_assert_eq(changed(LOCAL), 0, "%u", i);
    }
    cr_assert_eq(ep_stats(ep)->rx_packets, 2 * ARRAY_LEN(wrong));
    n = answer(frame, PEER, QPN, READ_ONLY_RESPONSE, PSN, 256);
    frame[14 + 10] ^= 1; /* checksum of the IPv4 header, which no ICRC covers */
    ep_rx(ep, frame, n, 1000);
    cr_assert_eq(ep_poll(ep, cq, &wc, 1), 0);
    cr_assert_eq(ep_stats(ep)->malformed, 1);
    frame[14 + 10] ^= 1;
    memmove(frame + 16, frame + 12, n - 12);
    store_be16(frame + 12, 0x8100);
    store_be16(frame + 14, 0xe002); /* a VLAN that this end is not in */
    ep_rx(ep, frame, n + 4, 1000);
    cr_assert_eq(ep_poll(ep, cq, &wc, 1), 0);
    cr_assert_eq(ep_stats(ep)->malformed, 2);
    ep_rx(ep, frame, answer(frame, PEER, QPN, READ_ONLY_RESPONSE, PSN, 256), 2000);
    cr_assert_eq(ep_poll(ep, cq, &wc, 1), 1);
    cr_assert_eq(wc.status, WC_SUCCESS);
    cr_assert_eq(changed(LOCAL), 256);
    close_endpoint();
}

/* --- Connection management -------------------------------------------------------------------- */

static bool path_to(void *user, const uint8_t gid[16], struct av *av)
{
    (void)user;
    *av = (struct av){.dmac = {2, 0, 0, 0, 0, gid[15]}};
    memcpy(av->dgid, gid, 16);
    return true;
}

static unsigned connected, given_up;

static void on_event(void *user, int handle, enum cm_event e, const struct cm_conn *c)
{
    (void)user;
    (void)handle;
    (void)c;
    connected += e == CM_EV_CONNECTED;
    given_up += e == CM_EV_UNREACHABLE;
}

/* Write a message of the connection manager; its length. */
static uint32_t put_mad(uint8_t *frame, const uint8_t from[16], const struct cm_msg *m)
{
    uint8_t body[12 + 8 + MAD_LEN] = {0x64, 0, 0xff, 0xff};

    store_be32(body + 4, 1);
    store_be32(body + 12, 0x80010000);
    store_be32(body + 16, 1);
    cm_msg_encode(body + 20, m);
    return put_frame(frame, from, body, sizeof body);
}

/* The REQ that the agent sends, taken by a peer that accepts it: the REP. */
static void reply_to(struct cm_agent *a, struct cm_msg *rep)
{
    static uint8_t frame[EP_FRAME_MAX];
    struct decode_opts opts = {.verify = true};
    struct cm_conn peer = {0};
    struct cm_params own;
    struct pkt *p = calloc(1, sizeof *p);
    struct cm_msg req;
    int n;

    cm_agent_run(a, 0);
    n = ep_tx(ep, frame, sizeof frame, 0);
    cr_assert_gt(n, 0);
    struct frame f = {.data = frame, .caplen = (uint32_t)n, .len = (uint32_t)n, .linktype = LINK_ETHERNET};
    pkt_decode(p, &f, &opts);
    cr_assert(cm_msg_of(&req, p));
    cm_listen(&peer, 99);
    cm_rx(&peer, &req, 0);
    cm_params_linux(&own);
    own.qpn = 18;
    cr_assert(cm_accept(&peer, &own, 0));
    cr_assert(cm_tx(&peer, rep));
    free(p);
}

Test(hostile_peer, is_connected_by_the_reply_of_whom_it_asked_only)
{
    static uint8_t frame[EP_FRAME_MAX];
    struct cm_agent_config c = {.path = path_to, .event = on_event, .seed = 3};
    struct ep_peer peer = ep_peer_default();
    struct ep_qp_init init = {.type = QPT_RC, .srq = EP_NO_SRQ};
    struct cm_params own;
    struct cm_agent *a;
    struct cm_msg rep;

    open_endpoint(EP_STRICT, QPT_RC);
    c.ep = ep;
    a = cm_agent_new(&c);
    init.pd = pd;
    init.send_cq = init.recv_cq = cq;
    int handle = ep_qp_create(ep, &init);
    cm_params_linux(&own);
    cm_params_ip(&own, OWN, PEER, CM_PS_TCP, 40000, 7174);
    own.qpn = ep_qp(ep, handle)->qpn;
    cr_assert(cm_agent_connect(a, handle, &own, &peer, 0));
    reply_to(a, &rep);
    ep_rx(ep, frame, put_mad(frame, STRANGER, &rep), 1000);
    cm_agent_run(a, 1000);
    cr_assert_eq(cm_agent_ignored(a), 1);
    cr_assert_eq(ep_qp(ep, handle)->state, QPS_RESET);
    ep_rx(ep, frame, put_mad(frame, PEER, &rep), 2000);
    cm_agent_run(a, 2000);
    while (ep_tx(ep, frame, sizeof frame, 2000) > 0)
        cm_agent_run(a, 2000);
    cr_assert_eq(ep_qp(ep, handle)->state, QPS_RTS);
    cr_assert_eq(connected, 1);
    cr_assert_eq(cm_agent_ignored(a), 1);
    cm_agent_free(a);
    close_endpoint();
}

static uint8_t mac_now;

static bool path_by_mac(void *user, const uint8_t gid[16], struct av *av)
{
    path_to(user, gid, av);
    av->dmac[5] = mac_now;
    return true;
}

/* The last byte of the MAC address that the next message of the agent goes to. */
static unsigned next_mac(struct cm_agent *a, ns_t now)
{
    static uint8_t frame[EP_FRAME_MAX];

    cm_agent_run(a, now);
    cr_assert_gt(ep_tx(ep, frame, sizeof frame, now), 0);
    return frame[5];
}

Test(hostile_peer, a_message_is_sent_again_to_the_mac_address_that_its_peer_has_by_then)
{
    struct cm_agent_config c = {.path = path_by_mac, .event = on_event, .seed = 3};
    struct ep_peer peer = ep_peer_default();
    struct ep_qp_init init = {.type = QPT_RC, .srq = EP_NO_SRQ};
    struct cm_params own;
    struct cm_agent *a;

    open_endpoint(EP_STRICT, QPT_RC);
    c.ep = ep;
    a = cm_agent_new(&c);
    init.pd = pd;
    init.send_cq = init.recv_cq = cq;
    int handle = ep_qp_create(ep, &init);
    cm_params_linux(&own);
    cm_params_ip(&own, OWN, PEER, CM_PS_TCP, 40000, 7174);
    own.qpn = ep_qp(ep, handle)->qpn;
    mac_now = 7;
    cr_assert(cm_agent_connect(a, handle, &own, &peer, 0));
    cr_expect_eq(next_mac(a, 0), 7);
    mac_now = 8;
    cr_expect_eq(next_mac(a, 20 * NS_PER_S), 8);
    mac_now = 7;
    cr_expect_eq(next_mac(a, 40 * NS_PER_S), 7);
    cm_agent_free(a);
    close_endpoint();
}

/* A server for one client at a time. */
static int only = -1;
static bool taken;

static void on_request(void *user, const struct cm_conn *c, struct cm_answer *a)
{
    struct ep_qp_init init = {.type = QPT_RC, .srq = EP_NO_SRQ, .pd = pd, .send_cq = cq, .recv_cq = cq};

    (void)user, (void)c;
    a->reason = CM_REJ_NO_QP;
    if (taken)
        return;
    if (only >= 0)
        ep_qp_destroy(ep, only);
    only = ep_qp_create(ep, &init);
    a->qp = only;
    cm_params_linux(&a->own);
    a->own.qpn = ep_qp(ep, only)->qpn;
    cr_assert(path_to(NULL, c->peer.path.sgid, &a->peer.av));
    taken = true;
}

/* The first message of a peer; `n` distinguishes its connection from others. The peer states the longest possible
 * response timeout. */
static void ask(struct cm_conn *c, struct cm_agent *a, uint32_t n, ns_t now)
{
    static uint8_t frame[EP_FRAME_MAX];
    struct cm_params own;
    struct cm_msg m;

    memset(c, 0, sizeof *c);
    cm_params_linux(&own);
    cm_params_ip(&own, PEER, OWN, CM_PS_TCP, 40000, 7174);
    own.qpn = 100 + n;
    own.tid = n;
    own.local_timeout = 31;
    cr_assert(cm_connect(c, 1000 + n, &own, now) && cm_tx(c, &m));
    ep_rx(ep, frame, put_mad(frame, PEER, &m), now);
    cm_agent_run(a, now);
}

/* Deliver the messages of the agent to `c`; drop those to others. */
static void listen_for(struct cm_conn *c, struct cm_agent *a, ns_t now)
{
    static uint8_t frame[EP_FRAME_MAX];
    struct decode_opts opts = {.verify = true};
    struct pkt *p = calloc(1, sizeof *p);
    struct cm_msg m;
    int n;

    while ((n = ep_tx(ep, frame, sizeof frame, now)) > 0) {
        struct frame f = {.data = frame, .caplen = (uint32_t)n, .len = (uint32_t)n, .linktype = LINK_ETHERNET};
        pkt_decode(p, &f, &opts);
        if (c && cm_msg_of(&m, p))
            cm_rx(c, &m, now);
        cm_agent_run(a, now);
    }
    free(p);
    if (c && cm_tx(c, &m)) {
        ep_rx(ep, frame, put_mad(frame, PEER, &m), now);
        cm_agent_run(a, now);
    }
}

/* Open an agent with such limits, and flood it with `n` requests, at time 0. */
static struct cm_agent *flooded(ns_t half_open, ns_t half_open_short, uint32_t n)
{
    struct cm_agent_config c = {.path = path_to,
                                .request = on_request,
                                .event = on_event,
                                .seed = 3,
                                .max_conns = 64,
                                .half_open = half_open,
                                .half_open_short = half_open_short};
    struct cm_conn lost;
    struct cm_agent *a;

    open_endpoint(EP_STRICT, QPT_RC);
    taken = false;
    only = -1;
    connected = given_up = 0;
    c.ep = ep;
    a = cm_agent_new(&c);
    for (uint32_t i = 0; i < n; i++) {
        ask(&lost, a, i, 0);
        listen_for(NULL, a, 0);
    }
    cr_assert(taken);
    return a;
}

Test(hostile_peer, lets_a_client_in_soon_after_a_flood_of_requests_to_connect)
{
    struct cm_agent *a = flooded(70 * NS_PER_S, 2 * NS_PER_S, 20000);
    struct cm_conn client;

    ask(&client, a, 50000, NS_PER_S);
    listen_for(&client, a, NS_PER_S);
    cr_assert_eq(client.rej_reason, CM_REJ_NO_QP);
    cr_assert_eq(given_up, 0);
    cr_assert_leq(cm_agent_next(a), 2 * NS_PER_S);
    cm_agent_run(a, 2 * NS_PER_S);
    cr_assert_eq(given_up, 1);
    taken = false;
    ask(&client, a, 50001, 2 * NS_PER_S);
    listen_for(&client, a, 2 * NS_PER_S);
    cr_assert_eq(connected, 1);
    for (ns_t t = 3 * NS_PER_S; t < 200 * NS_PER_S; t += NS_PER_S)
        cm_agent_run(a, t);
    cr_assert_eq(given_up, 1, "an open connection stays open");
    cm_agent_free(a);
    close_endpoint();
}

Test(hostile_peer, waits_for_the_rest_of_a_connection_no_longer_than_it_wants_to)
{
    struct cm_agent *a = flooded(70 * NS_PER_S, 2 * NS_PER_S, 1);

    for (ns_t t = 0; t < 70 * NS_PER_S; t += NS_PER_S) {
        cm_agent_run(a, t);
        cr_assert_eq(given_up, 0, "nobody else has asked");
    }
    cr_assert_leq(cm_agent_next(a), 70 * NS_PER_S);
    cm_agent_run(a, 70 * NS_PER_S);
    cr_assert_eq(given_up, 1);
    cm_agent_free(a);
    close_endpoint();
}
