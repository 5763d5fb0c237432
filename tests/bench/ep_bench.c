/* layer 4 (tool) bench: two endpoints joined in memory on one core, ICRCs made and verified. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "gen/endpoint/endpoint.h"

#define IOVA  UINT64_C(0x10000000)
#define MEM   (UINT32_C(1) << 20)
#define DEPTH 64u

struct end {
    struct endpoint *ep;
    int cq, qp;
    uint32_t key;
    uint8_t *mem;
};

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void end_init(struct end *e, int side, uint32_t window)
{
    struct ep_config c = {.mtu = 4096, .seed = (uint64_t)side + 1};
    struct ep_qp_init init = {.type = QPT_RC, .max_send_wr = 2 * DEPTH, .max_recv_wr = 16, .srq = EP_NO_SRQ};

    c.addr.encap = ENCAP_ROCEV2;
    c.addr.mac[5] = (uint8_t)(side + 1);
    gid_from_ipv4(c.addr.gid, 0x32323201u + (uint32_t)side);
    c.policies.window = &window_fixed;
    c.policies.window_arg = window;
    e->ep = ep_new(&c);
    init.pd = ep_pd_alloc(e->ep);
    e->cq = init.send_cq = init.recv_cq = ep_cq_create(e->ep, 4096);
    e->mem = calloc(1, MEM);
    ep_mr_reg(e->ep, init.pd, e->mem, MEM, IOVA, ACCESS_LOCAL_WRITE | ACCESS_REMOTE, &e->key);
    e->qp = ep_qp_create(e->ep, &init);
}

static void end_connect(struct end *e, int side, const struct end *peer)
{
    struct ep_peer p = ep_peer_default();

    gid_from_ipv4(p.av.dgid, 0x32323201u + (uint32_t)!side);
    p.av.dmac[5] = (uint8_t)(!side + 1);
    p.qpn = ep_qp(peer->ep, peer->qp)->qpn;
    p.path_mtu = 4096;
    p.sq_psn = p.rq_psn = 100;
    ep_qp_connect(e->ep, e->qp, &p, 0);
}

/* Carry frames from `a` to `b` until there are none. */
static void pump(struct end *a, struct end *b, ns_t now)
{
    uint8_t buf[EP_FRAME_MAX];
    int n;

    while ((n = ep_tx(a->ep, buf, sizeof buf, now)) > 0)
        ep_rx(b->ep, buf, (uint32_t)n, now);
}

/* WRITEs of `size` bytes for `secs` seconds of real time; messages a second. Every 16th is signalled. */
static double run(uint32_t size, double secs)
{
    struct end e[2];
    struct sge sge;
    struct send_wr wr = {.opcode = WR_RDMA_WRITE, .remote_addr = IOVA, .sg_list = &sge, .num_sge = 1};
    double start, took;
    uint64_t posted = 0;
    struct wc wc[64];
    ns_t now = 0;

    end_init(&e[0], 0, 128);
    end_init(&e[1], 1, 128);
    end_connect(&e[0], 0, &e[1]);
    end_connect(&e[1], 1, &e[0]);
    sge = (struct sge){IOVA, size, e[0].key};
    wr.rkey = e[1].key;
    start = seconds();
    do {
        for (int i = 0; i < 2000; i++) {
            do {
                wr.flags = posted % 16 ? 0 : SEND_SIGNALED;
            } while (ep_post_send(e[0].ep, e[0].qp, &wr, now) == 0 && ++posted);
            pump(&e[0], &e[1], now);
            pump(&e[1], &e[0], now);
            while (ep_poll(e[0].ep, e[0].cq, wc, 64) > 0)
                ;
            now += 1000;
        }
        took = seconds() - start;
    } while (took < secs);
    if (ep_stats(e[0].ep)->messages + 2 * DEPTH < posted || ep_stats(e[0].ep)->own_check_failures)
        printf("bench: %llu of %llu messages\n", (unsigned long long)ep_stats(e[0].ep)->messages,
               (unsigned long long)posted);
    for (int i = 0; i < 2; i++) {
        ep_free(e[i].ep);
        free(e[i].mem);
    }
    return (double)posted / took;
}

int main(void)
{
    double rate = run(4096, 1), small = run(64, 1), huge = run(1 << 20, 1);

    printf("RDMA WRITE of 4096 B, MTU 4096: %6.2f Gbit/s\n", rate * 4096 * 8 / 1e9);
    printf("RDMA WRITE of 1 MiB, MTU 4096:  %6.2f Gbit/s\n", huge * (1 << 20) * 8 / 1e9);
    printf("RDMA WRITE of 64 B:             %6.2f M messages/s\n", small / 1e6);
    printf("Idle RC queue pair, 16 sends and 16 receives of one piece: %zu bytes\n", ep_qp_memory(16, 1, 16, 1));
    return 0;
}
