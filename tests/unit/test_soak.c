/* layer 3 (gen) tests: random conversations over a pipe that loses, duplicates, delays and corrupts frames. */
#include "dissect/pkt.h"
#include "tests/unit/ep_pair.h"

#include <criterion/criterion.h>

#define SLOT      16384u /* bytes of memory that one operation uses */
#define SLOTS     32u    /* operations outstanding at most */
#define ATOMIC_AT (SLOT * 62)
#define CONST_AT  (SLOT * 40) /* never written: what READs fetch */

/* 1.5 % of all frames suffer each kind of trouble. */
static int bad_pipe(struct pair *p, int from, uint8_t *frame, uint32_t len, ns_t *extra)
{
    uint32_t dice = prng_below(&p->rng, 1000);

    (void)from;
    if (dice < 15)
        return 0;
    if (dice < 30)
        return 2;
    if (dice < 45)
        frame[prng_below(&p->rng, len)] ^= (uint8_t)(1 + prng_below(&p->rng, 255));
    else if (dice < 60)
        *extra = prng_below(&p->rng, 20000);
    return 1;
}

/* Likewise, of two paths, of which one may be down. */
static int down;
static uint64_t migrations;

static int bad_pipes(struct pair *p, int from, uint8_t *frame, uint32_t len, ns_t *extra)
{
    return pair_port_of(frame) == down ? 0 : bad_pipe(p, from, frame, len, extra);
}

struct op {
    uint8_t opcode;
    uint32_t len, slot;
    uint32_t imm;
};

struct soak {
    struct pair *p;
    struct prng rng;
    uint32_t pmtu;
    uint64_t seed;
    uint32_t receives; /* posted at a time: few of them provoke RNR NAKs */
    uint64_t posted[2], done[2], recv_done[2], recv_due[2];
    struct op op[2][SLOTS]; /* by wr_id modulo SLOTS */
    struct op due[2][4096]; /* messages that the receives of that side must deliver, in order */
    uint64_t sum[2];        /* what FETCH & ADDs of side i have added */
    uint64_t expect_atomic[2];
};

static uint64_t word(const uint8_t *p)
{
    uint64_t v;

    memcpy(&v, p, 8);
    return v;
}

/* A message's bytes depend on who sent it and its number only. */
static void message(struct pair *p, int side, uint64_t id, uint32_t off, uint32_t len)
{
    pair_fill(p, side, off, len, id * 2 + (uint64_t)side + 1);
}

static void check_message(struct pair *p, int from, uint64_t id, int at, uint32_t off, uint32_t len)
{
    struct prng r;
    uint32_t bad = 0;

    prng_seed(&r, id * 2 + (uint64_t)from + 1);
    for (uint32_t i = 0; i < len; i++)
        bad += p->mem[at][off + i] != (uint8_t)prng_next(&r);
    cr_assert_eq(bad, 0, "%u bytes of message %llu are wrong", bad, (unsigned long long)id);
}

static uint8_t pick_opcode(struct soak *s, uint8_t type)
{
    static const uint8_t rc[] = {WR_SEND,      WR_SEND_WITH_IMM,       WR_RDMA_WRITE, WR_RDMA_WRITE_WITH_IMM,
                                 WR_RDMA_READ, WR_ATOMIC_FETCH_AND_ADD};

    return rc[prng_below(&s->rng, type == QPT_UC ? 4 : type == QPT_UD ? 2 : 6)];
}

static void post(struct soak *s, int side, uint8_t type)
{
    struct pair *p = s->p;
    uint64_t id = s->posted[side];
    struct op *o = &s->op[side][id % SLOTS];
    struct send_wr wr = {.wr_id = id,
                         .rkey = p->key[!side],
                         .remote_qkey = PAIR_QKEY,
                         .remote_qpn = ep_qp(p->ep[!side], p->qp[!side])->qpn};

    o->opcode = wr.opcode = pick_opcode(s, type);
    o->slot = (uint32_t)(id % 16);
    o->len = prng_below(&s->rng, 4) == 0 ? prng_below(&s->rng, SLOT - 64) : prng_below(&s->rng, 2 * s->pmtu);
    if (type == QPT_UD)
        o->len = prng_below(&s->rng, s->pmtu + 1);
    wr.imm_data = o->imm = (uint32_t)id;
    wr.remote_addr = PAIR_IOVA(!side) + SLOT * (16 + o->slot);
    if (wr.opcode == WR_RDMA_READ)
        wr.remote_addr = PAIR_IOVA(!side) + CONST_AT + prng_below(&s->rng, 64);
    if (wr.opcode == WR_ATOMIC_FETCH_AND_ADD) {
        wr.remote_addr = PAIR_IOVA(!side) + ATOMIC_AT;
        wr.compare_add = 1 + prng_below(&s->rng, 100);
        o->imm = (uint32_t)wr.compare_add;
        o->len = 8;
    }
    if (wr.opcode <= WR_RDMA_WRITE_WITH_IMM)
        message(p, side, id, SLOT * o->slot, o->len);
    if (prng_below(&s->rng, 4) == 0)
        wr.flags |= SEND_FENCE;
    if (wr.opcode == WR_RDMA_READ)
        o->imm = (uint32_t)(wr.remote_addr - PAIR_IOVA(!side));
    cr_assert_eq(pair_post(p, side, wr, SLOT * o->slot, o->len), 0);
    if (wr.opcode == WR_SEND || wr.opcode == WR_SEND_WITH_IMM || wr.opcode == WR_RDMA_WRITE_WITH_IMM) {
        s->due[!side][s->recv_due[!side] % 4096] = *o;
        s->due[!side][s->recv_due[!side]++ % 4096].imm = (uint32_t)id;
    }
    s->posted[side]++;
}

/* Completions of both kinds, in order, with the right bytes. `reliable`: none may be missing. */
static void reap(struct soak *s, int side, bool reliable)
{
    struct pair *p = s->p;
    struct wc wc;

    while (ep_poll(p->ep[side], p->cq[side], &wc, 1) == 1) {
        const struct op *o;
        cr_assert_eq(wc.status, WC_SUCCESS, "seed %llu, side %d: %s after %llu", (unsigned long long)s->seed, side,
                     wc_status_str((enum wc_status)wc.status), (unsigned long long)s->done[side]);
        if (wc.opcode < WC_RECV) {
            cr_assert_eq(wc.wr_id, s->done[side]);
            o = &s->op[side][wc.wr_id % SLOTS];
            if (wc.opcode == WC_RDMA_READ)
                cr_assert_arr_eq(p->mem[side] + SLOT * o->slot, p->mem[!side] + o->imm, o->len);
            if (wc.opcode == WC_FETCH_ADD) {
                cr_assert_eq(word(p->mem[side] + SLOT * o->slot), s->sum[side], "an atomic was executed twice or lost");
                s->sum[side] += o->imm;
            }
            s->done[side]++;
            continue;
        }
        if (reliable) {
            o = &s->due[side][s->recv_done[side] % 4096];
            cr_assert_eq(wc.byte_len, o->len);
            if (o->opcode == WR_RDMA_WRITE_WITH_IMM)
                check_message(p, !side, o->imm, side, SLOT * (16 + o->slot), o->len);
            else
                check_message(p, !side, o->imm, side, SLOT * 44 + SLOT * (uint32_t)(wc.wr_id % 16), o->len);
            if (wc.flags & WC_WITH_IMM)
                cr_assert_eq(wc.imm_data, o->imm);
        } else if (wc.opcode == WC_RECV && wc.flags & WC_WITH_IMM) {
            uint32_t head = wc.flags & WC_GRH ? 40 : 0;
            check_message(p, !side, wc.imm_data, side, SLOT * 44 + SLOT * (uint32_t)(wc.wr_id % 16) + head,
                          wc.byte_len - head);
        }
        s->recv_done[side]++;
        cr_assert_eq(pair_recv(p, side, wc.wr_id + s->receives,
                               SLOT * 44 + SLOT * (uint32_t)((wc.wr_id + s->receives) % 16), SLOT),
                     0);
    }
}

static const struct qp_attr *attr_of(const struct soak *s, int side)
{
    return &ep_qp(s->p->ep[side], s->p->qp[side])->attr;
}

/* Both sides have migrated: the other path becomes the alternate one, and is up. */
static void rearm(struct soak *s, const struct pair_opts *o)
{
    for (int side = 0; side < 2; side++) {
        struct av av = attr_of(s, side)->av.port == 2 ? pair_av(o, !side) : pair_av2(!side);
        cr_assert_eq(ep_qp_load_path(s->p->ep[side], s->p->qp[side], &av, o->peer.timeout, s->p->now), 0);
    }
    down = 0;
}

/* Once both sides are armed, software or a path that fails makes them migrate. */
static void migrate(struct soak *s, const struct pair_opts *o)
{
    const struct qp_attr *a = attr_of(s, 0), *b = attr_of(s, 1);
    struct qp_attr now = {.mig_state = MIG_MIGRATED};
    int side = (int)prng_below(&s->rng, 2);

    if (a->mig_state == MIG_MIGRATED && b->mig_state == MIG_MIGRATED && (a->av.port == 2) == (b->av.port == 2))
        rearm(s, o);
    if (a->mig_state != MIG_ARMED || b->mig_state != MIG_ARMED || prng_below(&s->rng, 4))
        return;
    if (prng_below(&s->rng, 2))
        down = a->av.port == 2 ? 2 : 1;
    else
        ep_qp_modify(s->p->ep[side], s->p->qp[side], &now, QPA_PATH_MIG_STATE, s->p->now);
}

/* What is special about a conversation. */
enum special { NOTHING, TWO_PATHS, PLACED };

static void soak(uint64_t seed, uint8_t type, uint32_t operations, enum special special)
{
    static const uint16_t mtus[] = {256, 512, 1024, 2048, 4096};
    struct pair_opts o = pair_defaults();
    struct soak *s = calloc(1, sizeof *s);
    bool reliable = qp_is_reliable(type), two_paths = special == TWO_PATHS;
    int senders = type == QPT_XRC_INI ? 1 : 2;

    s->seed = seed;
    prng_seed(&s->rng, seed);
    o.type = type;
    s->receives = 1 + prng_below(&s->rng, 16);
    s->pmtu = o.peer.path_mtu = mtus[prng_below(&s->rng, 5)];
    o.cfg[0].mtu = o.cfg[1].mtu = (uint16_t)s->pmtu;
    o.peer.timeout = 6;
    o.peer.min_rnr_timer = 1;
    o.peer.max_rd_atomic = o.peer.max_dest_rd_atomic = (uint8_t)(1 + prng_below(&s->rng, 16));
    o.cfg[0].credits = o.cfg[1].credits = prng_below(&s->rng, 2);
    o.cfg[0].policies.window = o.cfg[1].policies.window = &window_fixed;
    o.cfg[0].policies.window_arg = 1 + prng_below(&s->rng, 100);
    o.cfg[0].profile = prng_below(&s->rng, 4) ? EP_STRICT : EP_RXE;
    o.cfg[1].profile = prng_below(&s->rng, 4) ? EP_STRICT : EP_RXE;
    if (prng_below(&s->rng, 2)) {
        o.cfg[1].policies.ack = &ack_coalesce;
        o.cfg[1].policies.ack_arg = 4;
    }
    o.own_psn = true;
    o.psn[0] = (0xffffff - prng_below(&s->rng, 2000)) & PSN_MASK;
    o.psn[1] = prng_below(&s->rng, 1 << 24);
    if (two_paths) {
        pair_two_ports(&o);
        o.cfg[0].profile = o.cfg[1].profile = EP_STRICT; /* the other one retries for ever */
    }
    if (special == PLACED)
        o.cfg[0].profile = o.cfg[1].profile = EP_NV;
    down = 0;
    s->p = pair_new(&o);
    s->p->hook = two_paths ? bad_pipes : bad_pipe;
    prng_seed(&s->p->rng, seed);
    for (int side = 0; side < 2; side++) {
        pair_fill(s->p, side, CONST_AT, SLOT * 2, 77);
        for (uint32_t i = 0; i < s->receives && (side || senders == 2); i++)
            pair_recv(s->p, side, i, SLOT * 44 + SLOT * i, SLOT);
    }
    while (s->done[0] + s->done[1] < (uint32_t)senders * operations) {
        uint64_t before = s->done[0] + s->done[1];
        for (int side = 0; side < senders; side++)
            while (s->posted[side] < operations && s->posted[side] - s->done[side] < 8)
                post(s, side, type);
        pair_run(s->p, s->p->now + 50000);
        if (two_paths)
            migrate(s, &o);
        reap(s, 0, reliable);
        reap(s, 1, reliable);
        if (before == s->done[0] + s->done[1] && s->p->now > 3600 * NS_PER_S)
            cr_assert(false, "seed %llu: no progress", (unsigned long long)seed);
    }
    pair_run(s->p, s->p->now + NS_PER_S);
    reap(s, 0, reliable);
    reap(s, 1, reliable);
    for (int side = 0; side < 2; side++) {
        migrations += ep_stats(s->p->ep[side])->migrated;
        cr_assert_eq(ep_stats(s->p->ep[side])->own_check_failures, 0, "seed %llu: side %d broke %s",
                     (unsigned long long)seed, side, rule_str(ep_first_refused(s->p->ep[side]).rule));
        if (reliable)
            cr_assert_eq(s->recv_done[side], s->recv_due[side]);
        cr_assert_eq(word(s->p->mem[side] + ATOMIC_AT), s->sum[!side]);
    }
    pair_free(s->p);
    free(s);
}

/* More seeds than usual, as the environment asks. */
static uint64_t seeds(uint64_t n)
{
    const char *s = getenv("SOAK_SEEDS");

    return s ? strtoull(s, NULL, 10) : n;
}

Test(soak, rc_delivers_everything_exactly_once_and_in_order)
{
    for (uint64_t seed = 1; seed <= seeds(40); seed++)
        soak(seed, QPT_RC, 150, NOTHING);
}

Test(soak, data_placed_out_of_order_are_delivered_in_order)
{
    for (uint64_t seed = 1; seed <= seeds(25); seed++)
        soak(seed, seed % 5 ? QPT_RC : QPT_XRC_INI, 150, PLACED);
}

Test(soak, nothing_is_lost_or_doubled_when_queue_pairs_migrate)
{
    for (uint64_t seed = 1; seed <= seeds(25); seed++)
        soak(seed, seed % 5 ? QPT_RC : QPT_XRC_INI, 150, TWO_PATHS);
    cr_expect_gt(migrations, 2 * seeds(25), "%llu", (unsigned long long)migrations);
}

Test(soak, xrc_delivers_everything_exactly_once_and_in_order)
{
    for (uint64_t seed = 1; seed <= seeds(15); seed++)
        soak(seed, QPT_XRC_INI, 150, NOTHING);
}

Test(soak, uc_never_delivers_a_broken_message)
{
    for (uint64_t seed = 1; seed <= seeds(15); seed++)
        soak(seed, QPT_UC, 150, NOTHING);
}

Test(soak, ud_never_delivers_a_broken_message)
{
    for (uint64_t seed = 1; seed <= seeds(15); seed++)
        soak(seed, QPT_UD, 150, NOTHING);
}

/* --- A peer that sends whatever it likes, with right ICRCs ------------------------------------ */

static uint32_t near_psn(struct prng *r, const struct qp *q)
{
    uint32_t around[] = {q->rsp.epsn_hi, q->req.una_hi, q->req.psn_next, prng_below(r, 1 << 24)};

    return psn_add(around[prng_below(r, 4)], prng_below(r, 9) - 4);
}

static void random_packet(struct prng *r, const struct pair *p, struct pkt *k, uint8_t service, uint32_t *len)
{
    const struct qp *q = ep_qp(p->ep[1], p->qp[1]);
    uint8_t opcode = OPCODE(service, prng_below(r, 24));

    memset(k, 0, sizeof *k);
    k->op = &opcode_table[opcode];
    k->bth = (struct bth){.opcode = opcode,
                          .pkey = 0xffff,
                          .dqpn = q->qpn,
                          .psn = near_psn(r, q),
                          .ackreq = (uint8_t)prng_below(r, 2),
                          .se = (uint8_t)prng_below(r, 2)};
    *len = !(k->op->flags & OPF_PAYLOAD) ? 0 : prng_below(r, 2) ? q->attr.path_mtu : prng_below(r, 1500);
    k->reth = (struct reth){PAIR_IOVA(1) + prng_below(r, PAIR_MEM), prng_below(r, 4) ? p->key[1] : prng_below(r, 1024),
                            prng_below(r, 3) ? *len : prng_below(r, 100000)};
    k->atomiceth = (struct atomiceth){PAIR_IOVA(1) + prng_below(r, 1000) * 4, p->key[1], 1, 2};
    k->aeth = (struct aeth){(uint8_t)prng_below(r, 256), prng_below(r, 10)};
    k->ieth.rkey = prng_below(r, 2) ? p->key[1] : prng_below(r, 2000);
    k->deth = (struct deth){.qkey = PAIR_QKEY, .srcqp = 5};
}

static void harass(uint64_t seed, uint8_t type)
{
    static struct pkt k;
    struct pair_opts o = pair_defaults();
    struct pair *p;
    struct prng r;
    struct path path;
    struct av av = pair_av(&o, 1);
    uint8_t buf[EP_FRAME_MAX];

    prng_seed(&r, seed);
    o.type = type;
    o.peer.path_mtu = 256;
    o.peer.max_rd_atomic = o.peer.max_dest_rd_atomic = 4;
    o.cfg[1].profile = prng_below(&r, 2);
    o.cfg[1].credits = prng_below(&r, 2);
    p = pair_new(&o);
    path_init(&path, &o.cfg[0].addr, &av);
    for (int i = 0; i < 40; i++) {
        pair_recv(p, 1, 0, 0, 1000);
        pair_post(p, 1,
                  (struct send_wr){.opcode = (uint8_t)(type == QPT_RC ? prng_below(&r, 8) : 0),
                                   .remote_addr = PAIR_IOVA(0),
                                   .rkey = p->key[0],
                                   .remote_qpn = 17,
                                   .remote_qkey = PAIR_QKEY},
                  0, 8 + 600 * prng_below(&r, 2) * (type != QPT_UD));
        for (unsigned n = prng_below(&r, 6); n-- > 0;) {
            struct frame_out out = {.buf = buf, .cap = sizeof buf};
            uint32_t len;
            random_packet(&r, p, &k,
                          (const uint8_t[]){SVC_RC, SVC_UC, SVC_UD}[prng_below(&r, 8) ? type : prng_below(&r, 3)],
                          &len);
            if (build_begin(&out, &path, &k, len, 0, NULL))
                continue;
            memset(out.payload, 0x33, len);
            build_end(&out, &path, &k, len, NULL);
            ep_rx(p->ep[1], buf, out.len, p->now);
        }
        while (ep_tx(p->ep[1], buf, sizeof buf, p->now) > 0)
            ;
        p->now += 5000;
        ep_expire(p->ep[1], p->now);
    }
    cr_expect_eq(ep_stats(p->ep[1])->own_check_failures, 0, "seed %llu: a peer made it break %s",
                 (unsigned long long)seed, rule_str(ep_first_refused(p->ep[1]).rule));
    pair_free(p);
}

Test(soak, no_peer_can_make_an_endpoint_break_a_rule)
{
    for (uint64_t seed = 1; seed <= seeds(40) * 20; seed++)
        harass(seed, (uint8_t)(seed % 3));
}
