/* layer 3 (gen) fuzz: an endpoint whose peer sends anything, with right ICRCs; it must survive and keep the rules
 * itself.
 *
 * Input: a byte of options, then records: a length byte, that many bytes from the BTH on. A length of 0 lets time
 * pass. */
#include <assert.h>
#include <stdlib.h>

#include "frame.h"
#include "gen/endpoint/endpoint.h"

#define MEM  4096
#define IOVA UINT64_C(0x1000)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t mem[MEM];

static struct link_addr own_addr(unsigned side)
{
    struct link_addr a = {.encap = ENCAP_ROCEV2, .mac = {2, 0, 0, 0, 0, (uint8_t)side}};

    gid_from_ipv4(a.gid, 0x32323201u + side);
    return a;
}

static struct endpoint *set_up(unsigned options, int *qp, uint32_t *key)
{
    struct ep_config c = {
        .addr = own_addr(1), .profile = options & 4 ? EP_RXE : EP_STRICT, .credits = options & 8, .seed = 1};
    struct ep_qp_init init = {.type = (uint8_t)(options & 3 ? (options & 3) - 1 : 0), .qpn = 17, .srq = EP_NO_SRQ};
    struct ep_peer peer = ep_peer_default();
    struct endpoint *ep = ep_new(&c);
    struct recv_wr wr = {0};
    struct sge sge = {IOVA, 600, 0};

    init.pd = ep_pd_alloc(ep);
    init.send_cq = init.recv_cq = ep_cq_create(ep, 64);
    ep_mr_reg(ep, init.pd, mem, MEM, IOVA, ACCESS_LOCAL_WRITE | ACCESS_REMOTE, key);
    *qp = ep_qp_create(ep, &init);
    memcpy(peer.av.dgid, own_addr(0).gid, 16);
    peer.qpn = 18;
    peer.path_mtu = 256;
    peer.qkey = 0x11111111;
    ep_ah_create(ep, init.pd, &peer.av);
    ep_qp_connect(ep, *qp, &peer, 0);
    sge.lkey = *key;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    for (int i = 0; i < 8; i++)
        ep_post_recv(ep, *qp, &wr, 0);
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t frame[EP_FRAME_MAX], out[EP_FRAME_MAX];
    struct link_addr peer = own_addr(0), own = own_addr(1);
    struct av av = {.dmac = {2, 0, 0, 0, 0, 1}};
    struct path path;
    struct endpoint *ep;
    ns_t now = 0;
    uint32_t key;
    int qp;

    if (size < 1)
        return 0;
    ep = set_up(data[0], &qp, &key);
    memcpy(av.dgid, own.gid, 16);
    path_init(&path, &peer, &av);
    for (size_t i = 1; i < size;) {
        size_t n = data[i++];
        uint32_t len;
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
        build_fix_crc(frame, len, LINK_ETHERNET);
        ep_rx(ep, frame, len, now);
        while (ep_tx(ep, out, sizeof out, now) > 0)
            ;
        i += n;
    }
    assert(ep_stats(ep)->own_check_failures == 0);
    ep_free(ep);
    return 0;
}
