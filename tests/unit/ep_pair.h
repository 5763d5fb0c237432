/* layer 3 (gen) tests: two endpoints joined by a pipe in memory, in virtual time. */
#ifndef RDMATRACE_TEST_EP_PAIR_H
#define RDMATRACE_TEST_EP_PAIR_H

#include <criterion/criterion.h>
#include <stdlib.h>

#include "gen/endpoint/endpoint.h"

#define PAIR_MEM        (1u << 20)
#define PAIR_QKEY       0x11111111
#define PAIR_DELAY      1000 /* ns one way */
#define PAIR_IOVA(side) (UINT64_C(0x10000000) * ((side) + 1))

struct pair_frame {
    ns_t at;
    uint64_t order;
    int to;
    uint32_t len;
    uint8_t data[EP_FRAME_MAX];
};

/* What happens to a frame on its way: returns the number of copies that arrive, `*extra` ns later. */
struct pair;
typedef int (*pair_hook)(struct pair *p, int from, uint8_t *frame, uint32_t len, ns_t *extra);

#define PAIR_LOG 4096
struct pair {
    struct endpoint *ep[2];
    int cq[2], qp[2];
    int srq[2]; /* XRC: of the second side */
    uint32_t pd[2], key[2];
    uint8_t *mem[2];
    ns_t now;
    pair_hook hook;
    struct prng rng;
    struct pair_frame *queue; /* frames in flight, unordered */
    uint32_t n_queue, cap_queue;
    uint64_t order;
    uint64_t frames;
    /* Every frame sent: sender, opcode, PSN, AETH. */
    struct {
        int from;
        uint8_t opcode, syndrome;
        bool ackreq;
        uint32_t psn, msn, len;
        ns_t at;
    } log[PAIR_LOG];
    unsigned n_log;
};

struct pair_opts {
    struct ep_config cfg[2]; /* addresses are filled in */
    struct ep_qp_init init;  /* handles are filled in */
    struct ep_peer peer;     /* numbers and addresses are filled in; all zero: defaults */
    uint32_t psn[2];         /* starting PSN of each side */
    uint8_t type;            /* enum qp_type; QPT_XRC_INI: the second side has the target */
    bool own_psn;            /* psn[] is given */
};

static inline struct ep_config pair_config(int side)
{
    struct ep_config c = {.mtu = 4096, .seed = (uint64_t)side + 1};

    c.addr.encap = ENCAP_ROCEV2;
    c.addr.mac[5] = (uint8_t)(side + 1);
    c.addr.lid = (uint16_t)(side + 1);
    gid_from_ipv4(c.addr.gid, 0x32323201u + (uint32_t)side);
    return c;
}

static inline struct pair_opts pair_defaults(void)
{
    struct pair_opts o = {.type = QPT_RC};

    o.cfg[0] = pair_config(0);
    o.cfg[1] = pair_config(1);
    o.init = (struct ep_qp_init){.max_send_wr = 64,
                                 .max_recv_wr = 64,
                                 .max_send_sge = 4,
                                 .max_recv_sge = 4,
                                 .srq = EP_NO_SRQ,
                                 .sq_sig_all = true,
                                 .max_inline = 256};
    o.peer = ep_peer_default();
    return o;
}

static inline struct av pair_av(const struct pair_opts *o, int to)
{
    struct av av = {.dlid = o->cfg[to].addr.lid};

    memcpy(av.dgid, o->cfg[to].addr.gid, 16);
    memcpy(av.dmac, o->cfg[to].addr.mac, 6);
    return av;
}

#define PAIR_IP2(side) (0x32323301u + (uint32_t)(side)) /* 50.50.51.1 and 50.50.51.2 */

/* Give both sides a second port, over RoCEv2. */
static inline void pair_two_ports(struct pair_opts *o)
{
    for (int i = 0; i < 2; i++) {
        o->cfg[i].two_ports = true;
        o->cfg[i].port2 = o->cfg[i].addr;
        o->cfg[i].port2.mac[4] = 1;
        gid_from_ipv4(o->cfg[i].port2.gid, PAIR_IP2(i));
    }
}

/* The path to the second port of `to`, from the own second port. */
static inline struct av pair_av2(int to)
{
    struct av av = {.port = 2, .dmac = {0, 0, 0, 0, 1, (uint8_t)(to + 1)}};

    gid_from_ipv4(av.dgid, PAIR_IP2(to));
    return av;
}

/* The port, 1 or 2, that a frame over IPv4 without a VLAN tag comes from. */
static inline int pair_port_of(const uint8_t *frame)
{
    return frame[28] == 51 ? 2 : 1;
}

/* XRC: the second side's target, and its shared receive queue. */
static inline void pair_xrc_target(struct pair *p, int side, struct ep_qp_init *init)
{
    init->type = QPT_XRC_TGT;
    init->xrcd = ep_xrcd_alloc(p->ep[side]);
    p->srq[side] = ep_srq_create(p->ep[side], p->pd[side], init->max_recv_wr, init->max_recv_sge);
    ep_srq_to_xrc(p->ep[side], p->srq[side], init->xrcd, p->cq[side]);
}

static inline struct pair *pair_new(const struct pair_opts *o)
{
    struct pair *p = calloc(1, sizeof *p);
    uint32_t psn[2];

    prng_seed(&p->rng, 99);
    for (int i = 0; i < 2; i++) {
        struct ep_qp_init init = o->init;
        p->ep[i] = ep_new(&o->cfg[i]);
        p->pd[i] = ep_pd_alloc(p->ep[i]);
        p->cq[i] = ep_cq_create(p->ep[i], 4096);
        p->mem[i] = calloc(1, PAIR_MEM);
        ep_mr_reg(p->ep[i], p->pd[i], p->mem[i], PAIR_MEM, PAIR_IOVA(i),
                  ACCESS_LOCAL_WRITE | ACCESS_REMOTE | ACCESS_MW_BIND, &p->key[i]);
        init.type = o->type;
        init.pd = p->pd[i];
        init.send_cq = init.recv_cq = p->cq[i];
        if (init.srq != EP_NO_SRQ)
            init.srq = ep_srq_create(p->ep[i], p->pd[i], 64, 4);
        p->srq[i] = EP_NO_SRQ;
        if (i && o->type == QPT_XRC_INI)
            pair_xrc_target(p, i, &init);
        p->qp[i] = ep_qp_create(p->ep[i], &init);
        psn[i] = o->own_psn ? o->psn[i] : ep_pick_psn(p->ep[i]);
    }
    for (int i = 0; i < 2; i++) {
        struct ep_peer peer = o->peer;
        peer.av = pair_av(o, !i);
        peer.qpn = ep_qp(p->ep[!i], p->qp[!i])->qpn;
        peer.sq_psn = psn[i];
        peer.rq_psn = psn[!i];
        if (o->type == QPT_UD) {
            peer.qkey = PAIR_QKEY;
            ep_ah_create(p->ep[i], p->pd[i], &peer.av); /* address handle 0: the other side */
        }
        ep_qp_connect(p->ep[i], p->qp[i], &peer, 0);
    }
    return p;
}

static inline void pair_free(struct pair *p)
{
    for (int i = 0; i < 2; i++) {
        ep_free(p->ep[i]);
        free(p->mem[i]);
    }
    free(p->queue);
    free(p);
}

static inline void pair_log(struct pair *p, int from, const uint8_t *frame, uint32_t len)
{
    static const struct decode_opts opts;
    struct frame f = {.data = frame, .caplen = len, .len = len, .linktype = ep_linktype(p->ep[0])};
    static struct pkt k;

    pkt_decode(&k, &f, &opts);
    if (!(k.have & H_BTH) || p->n_log == PAIR_LOG)
        return;
    p->log[p->n_log].from = from;
    p->log[p->n_log].opcode = k.bth.opcode;
    p->log[p->n_log].psn = k.bth.psn;
    p->log[p->n_log].ackreq = k.bth.ackreq;
    p->log[p->n_log].syndrome = k.have & H_AETH ? k.aeth.syndrome : 0;
    p->log[p->n_log].msn = k.have & H_AETH ? k.aeth.msn : 0;
    p->log[p->n_log].len = k.payload_len;
    p->log[p->n_log].at = p->now;
    p->n_log++;
}

static inline void pair_put(struct pair *p, int to, const uint8_t *frame, uint32_t len, ns_t at)
{
    struct pair_frame *f;

    if (p->n_queue == p->cap_queue) {
        p->cap_queue = p->cap_queue ? p->cap_queue * 2 : 64;
        p->queue = realloc(p->queue, p->cap_queue * sizeof *p->queue);
    }
    f = &p->queue[p->n_queue++];
    f->at = at;
    f->order = p->order++;
    f->to = to;
    f->len = len;
    memcpy(f->data, frame, len);
}

/* Take all frames that both endpoints send now; returns their number. */
static inline unsigned pair_collect(struct pair *p)
{
    uint8_t buf[EP_FRAME_MAX];
    unsigned n = 0;
    int len;

    for (int i = 0; i < 2; i++)
        while ((len = ep_tx(p->ep[i], buf, sizeof buf, p->now)) > 0) {
            ns_t extra = 0;
            int copies;
            pair_log(p, i, buf, (uint32_t)len);
            p->frames++;
            n++;
            copies = p->hook ? p->hook(p, i, buf, (uint32_t)len, &extra) : 1;
            for (int k = 0; k < copies; k++)
                pair_put(p, !i, buf, (uint32_t)len, p->now + PAIR_DELAY + extra + k);
        }
    return n;
}

static inline int pair_next(const struct pair *p)
{
    int best = -1;

    for (uint32_t i = 0; i < p->n_queue; i++)
        if (best < 0 || p->queue[i].at < p->queue[best].at ||
            (p->queue[i].at == p->queue[best].at && p->queue[i].order < p->queue[best].order))
            best = (int)i;
    return best;
}

/* Deliver all frames that arrive at the same time as frame `i`, before either side sends anything. */
static inline void pair_deliver(struct pair *p, int i)
{
    do {
        struct pair_frame f = p->queue[i];
        p->queue[i] = p->queue[--p->n_queue];
        p->now = f.at > p->now ? f.at : p->now;
        ep_rx(p->ep[f.to], f.data, f.len, p->now);
        i = pair_next(p);
    } while (i >= 0 && p->queue[i].at <= p->now);
}

/* Run until no frame is in flight and no timer expires before `until`. */
static inline void pair_run(struct pair *p, ns_t until)
{
    for (;;) {
        ns_t t[2], next;
        int i;
        pair_collect(p);
        i = pair_next(p);
        t[0] = ep_next_expiry(p->ep[0]);
        t[1] = ep_next_expiry(p->ep[1]);
        next = t[0] < t[1] ? t[0] : t[1];
        if (i >= 0 && p->queue[i].at <= next) {
            if (p->queue[i].at > until)
                break;
            pair_deliver(p, i);
        } else if (next <= until && next != NS_NEVER) {
            p->now = next > p->now ? next : p->now;
            ep_expire(p->ep[0], p->now);
            ep_expire(p->ep[1], p->now);
        } else {
            break;
        }
    }
    if (until != NS_NEVER && until > p->now)
        p->now = until;
}

static inline struct sge pair_sge(const struct pair *p, int side, uint32_t off, uint32_t len)
{
    return (struct sge){PAIR_IOVA(side) + off, len, p->key[side]};
}

/* Post `wr` at `side` with one scatter/gather entry at `off` of its memory. */
static inline int pair_post(struct pair *p, int side, struct send_wr wr, uint32_t off, uint32_t len)
{
    struct sge sge = pair_sge(p, side, off, len);

    wr.sg_list = &sge;
    wr.num_sge = len ? 1 : 0;
    wr.remote_srqn = ep_srq_number(p->ep[!side], p->srq[!side]);
    return ep_post_send(p->ep[side], p->qp[side], &wr, p->now);
}

static inline int pair_recv(struct pair *p, int side, uint64_t wr_id, uint32_t off, uint32_t len)
{
    struct sge sge = pair_sge(p, side, off, len);
    struct recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = len ? 1 : 0};

    return p->srq[side] == EP_NO_SRQ ? ep_post_recv(p->ep[side], p->qp[side], &wr, p->now)
                                     : ep_post_srq_recv(p->ep[side], p->srq[side], &wr, p->now);
}

static inline void pair_fill(struct pair *p, int side, uint32_t off, uint32_t len, uint64_t seed)
{
    struct prng r;

    prng_seed(&r, seed);
    for (uint32_t i = 0; i < len; i++)
        p->mem[side][off + i] = (uint8_t)prng_next(&r);
}

/* The next completion of `side`; status -1 converted to 0xff when there is none. */
static inline struct wc pair_wc(struct pair *p, int side)
{
    struct wc wc;

    if (ep_poll(p->ep[side], p->cq[side], &wc, 1) != 1)
        wc = (struct wc){.status = 0xff};
    return wc;
}

/* Frames in the log from `side` with operation `op` (lower five bits). */
static inline unsigned pair_count(const struct pair *p, int side, unsigned op)
{
    unsigned n = 0;

    for (unsigned i = 0; i < p->n_log; i++)
        n += p->log[i].from == side && (p->log[i].opcode & 31) == op;
    return n;
}

/* By its own checks neither endpoint broke a rule. */
static inline void no_own_failures(const struct pair *p)
{
    for (int i = 0; i < 2; i++)
        cr_expect_eq(ep_stats(p->ep[i])->own_check_failures, 0, "side %d broke %s", i,
                     rule_str(ep_first_refused(p->ep[i]).rule));
}

/* Connected queue pairs with the defaults. */
static inline struct pair *rc_pair(void)
{
    struct pair_opts o = pair_defaults();

    return pair_new(&o);
}

/* A WRITE to offset `off` of the second side's memory. */
static inline struct send_wr write_wr(const struct pair *p, uint32_t off)
{
    return (struct send_wr){.opcode = WR_RDMA_WRITE, .remote_addr = PAIR_IOVA(1) + off, .rkey = p->key[1]};
}

/* The next completion's status; 0xff: there is none. */
static inline enum wc_status status(struct pair *p, int side)
{
    return (enum wc_status)pair_wc(p, side).status;
}

#endif
