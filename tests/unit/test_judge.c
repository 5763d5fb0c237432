/* layer 3 (gen) tests: the checks of the transport applied to endpoints that keep the rules, over a bad network and at
 * three taps. A packet may be lost after a tap, and one that the tap did not see may have arrived: no check may report
 * a failure. */
#include "dissect/pkt.h"
#include "src/shadow/shadow.h"
#include "tests/unit/ep_pair.h"

#include <criterion/criterion.h>

struct seen {
    ns_t at;
    uint64_t order;
    int from;
    uint32_t len;
    uint8_t *data;
};

enum tap {
    TAP_0, /* at side 0 */
    TAP_MIDDLE,
    TAP_1,
    TAPS
};

struct record {
    struct seen *s;
    uint32_t n, cap;
};

static struct record records[TAPS];
static uint64_t order;

static void record(enum tap tap, ns_t at, int from, const uint8_t *frame, uint32_t len)
{
    struct record *r = &records[tap];

    if (r->n == r->cap) {
        r->cap = r->cap ? 2 * r->cap : 1024;
        r->s = realloc(r->s, r->cap * sizeof *r->s);
    }
    r->s[r->n] = (struct seen){at, order++, from, len, malloc(len)};
    memcpy(r->s[r->n++].data, frame, len);
}

/* Of a hundred frames one is lost before the tap in the middle and one after it; one is duplicated, one is delayed. */
static int tapped_pipe(struct pair *p, int from, uint8_t *frame, uint32_t len, ns_t *extra)
{
    uint32_t dice = prng_below(&p->rng, 100);
    int copies = dice == 2 ? 2 : 1;

    if (dice == 3)
        *extra = prng_below(&p->rng, 3000);
    record(from ? TAP_1 : TAP_0, p->now, from, frame, len);
    if (dice == 0)
        return 0;
    for (int i = 0; i < copies; i++)
        record(TAP_MIDDLE, p->now + PAIR_DELAY / 2 + *extra / 2 + i, from, frame, len);
    if (dice == 1)
        return 0;
    for (int i = 0; i < copies; i++)
        record(from ? TAP_0 : TAP_1, p->now + PAIR_DELAY + *extra + i, from, frame, len);
    return copies;
}

static int by_time(const void *a, const void *b)
{
    const struct seen *x = a, *y = b;

    return x->at != y->at ? (x->at < y->at ? -1 : 1) : x->order < y->order ? -1 : 1;
}

/* The requester of one side and the responder of the other. */
struct one_way {
    struct shadow_req req;
    struct req_msg msgs[256];
    struct shadow_rsp rsp;
    struct rsp_res res[32];
};

static void flow_init(struct one_way *f, const struct qp *requester, const struct qp *responder, bool at_responder)
{
    struct req_params p = requester->req.p;
    struct rsp_params q = responder->rsp.p;
    const struct req_unknown u = {.complete = true, .from_start = true};
    const struct rsp_unknown w = {.from_start = true, .all_seen = at_responder};

    memset(f, 0, sizeof *f);
    shadow_req_init(&f->req, &p, &u, f->msgs, 256);
    shadow_rsp_init(&f->rsp, &q, &w, f->res, 32);
}

/* With a fault: the rules that were reported. Without: none may be. */
static bool expecting, accused[RULE_COUNT];

static void accuse(struct verdict v, unsigned have, uint64_t seed, int tap, uint32_t n, const struct pkt *k)
{
    v = verdict_weigh(v, have);
    if (expecting && v.result == V_FAIL)
        accused[v.rule] = true;
    else if (v.result == V_FAIL && rule_table[v.rule].severity == SEV_E)
        cr_assert_fail("seed %llu, tap %d, frame %u: %s at opcode %u PSN %u: expected %llu, seen %llu",
                       (unsigned long long)seed, tap, n, rule_str((enum rule)v.rule), k->bth.opcode, k->bth.psn,
                       (unsigned long long)v.expected, (unsigned long long)v.seen);
}

static void judge(const struct pair *p, const uint32_t psn[2], enum tap tap, uint64_t seed)
{
    static struct one_way flow[2];
    static struct pkt k;
    static const struct decode_opts opts = {.verify = true};
    const unsigned base = N_REQ | N_RSP | N_START | N_COMPLETE | N_PAYLOAD | N_CM | N_CLOCK;
    struct record *r = &records[tap];

    for (int i = 0; i < 2; i++) {
        flow_init(&flow[i], ep_qp(p->ep[i], p->qp[i]), ep_qp(p->ep[!i], p->qp[!i]), tap == (i ? TAP_0 : TAP_1));
        cr_assert(flow[i].req.r.psn_next == psn[i] && flow[i].rsp.r.epsn_hi == psn[i]);
    }
    qsort(r->s, r->n, sizeof *r->s, by_time);
    for (uint32_t i = 0; i < r->n; i++) {
        const struct seen *s = &r->s[i];
        struct frame f = {.data = s->data, .caplen = s->len, .len = s->len, .linktype = LINK_ETHERNET};
        struct one_way *w;
        struct verdict v[8];
        unsigned have, n;
        int requester;
        pkt_decode(&k, &f, &opts);
        if (expecting && (k.flags & PKT_MALFORMED || !(k.have & H_BTH)))
            continue;
        cr_assert_eq(k.icrc, CRC_GOOD);
        requester = k.op->flags & OPF_RESPONSE ? !s->from : s->from;
        have = base | (tap == TAP_MIDDLE ? 0 : (int)(tap == TAP_1) == requester ? N_TAP_REQ : N_TAP_RSP);
        w = &flow[requester];
        n = k.op->flags & OPF_RESPONSE ? rsp_tx_check_all(&w->rsp.r, &w->rsp.u, &k, s->at, v, ARRAY_LEN(v))
                                       : req_tx_check_all(&w->req.r, &w->req.u, &k, s->at, v, ARRAY_LEN(v));
        for (unsigned m = 0; m < n; m++)
            accuse(v[m], have, seed, tap, i, &k);
        if (!(k.op->flags & OPF_RESPONSE)) {
            shadow_req_tx(&w->req, &k, s->at);
            shadow_rsp_rx(&w->rsp, &k, s->at);
        } else {
            shadow_rsp_tx(&w->rsp, &k);
            shadow_req_rx(&w->req, &k, s->at);
        }
    }
}

static void work(struct pair *p, struct prng *r, int side)
{
    static const uint8_t ops[] = {WR_SEND, WR_RDMA_WRITE, WR_RDMA_WRITE_WITH_IMM, WR_RDMA_READ,
                                  WR_ATOMIC_FETCH_AND_ADD};
    uint8_t op = ops[prng_below(r, 5)];
    uint32_t len = op == WR_ATOMIC_FETCH_AND_ADD ? 8 : prng_below(r, 3000);

    pair_post(p, side, (struct send_wr){.opcode = op, .remote_addr = PAIR_IOVA(!side) + 4096, .rkey = p->key[!side]}, 0,
              len);
}

static void conversation(uint64_t seed, const enum rule *fault)
{
    struct pair_opts o = pair_defaults();
    struct pair *p;
    struct prng r;

    prng_seed(&r, seed);
    o.own_psn = true;
    o.psn[0] = (0xfffff0 + prng_below(&r, 30)) & PSN_MASK;
    o.psn[1] = prng_below(&r, 1 << 24);
    o.peer.path_mtu = 256;
    for (int i = 0; i < 2 && fault; i++) {
        o.cfg[i].faults = fault;
        o.cfg[i].n_faults = 1;
    }
    o.peer.timeout = 6;
    o.peer.min_rnr_timer = 2;
    o.peer.max_rd_atomic = o.peer.max_dest_rd_atomic = fault && *fault == RULE_RDA_06 ? 1 : 4;
    p = pair_new(&o);
    prng_seed(&p->rng, seed);
    p->hook = tapped_pipe;
    for (int round = 0; round < 10; round++)
        for (int side = 0; side < 2; side++) {
            for (unsigned n = prng_below(&r, 4); n-- > 0;)
                pair_recv(p, side, 0, 8192, 4096);
            for (unsigned n = prng_below(&r, 4); n-- > 0;)
                work(p, &r, side);
            pair_run(p, p->now + 3000 + prng_below(&r, 300000));
        }
    for (int i = 0; i < 40; i++)
        for (int side = 0; side < 2; side++)
            pair_recv(p, side, 0, 8192, 4096);
    pair_run(p, p->now + NS_PER_S);
    for (int tap = 0; tap < TAPS; tap++) {
        judge(p, o.psn, (enum tap)tap, seed);
        for (uint32_t i = 0; i < records[tap].n; i++)
            free(records[tap].s[i].data);
        free(records[tap].s);
        records[tap] = (struct record){0};
    }
    pair_free(p);
}

Test(judge, endpoints_that_keep_the_rules_are_never_accused)
{
    const char *s = getenv("SOAK_SEEDS");
    uint64_t n = s ? strtoull(s, NULL, 10) * 4 : 200;

    for (uint64_t seed = 1; seed <= n; seed++)
        conversation(seed, NULL);
}

/* Faults that the checks of RC requests and responses can see; the others are below the transport, or another
 * service's. */
static const enum rule visible[] = {
    RULE_FMT_02, RULE_FMT_03, RULE_FMT_04, RULE_FMT_05, RULE_SEQ_01, RULE_SEQ_02, RULE_SEQ_03, RULE_SEQ_04, RULE_SEQ_06,
    RULE_SEQ_07, RULE_SEQ_08, RULE_SEQ_10, RULE_SEQ_11, RULE_RDA_01, RULE_RDA_02, RULE_RDA_03, RULE_RDA_04, RULE_RDA_05,
    RULE_RDA_06, RULE_RDA_08, RULE_RDA_09, RULE_RDA_11, RULE_ACK_01, RULE_ACK_02, RULE_ACK_06, RULE_NAK_01, RULE_NAK_02,
    RULE_RTX_01, RULE_RTX_02, RULE_RTX_05, RULE_RTX_11, RULE_CM_08,  RULE_CM_11,
};

Test(judge, faults_are_found_from_some_tap)
{
    expecting = true;
    for (unsigned i = 0; i < ARRAY_LEN(visible); i++) {
        memset(accused, 0, sizeof accused);
        for (uint64_t seed = 1; seed <= 60 && !accused[visible[i]]; seed++)
            conversation(seed, &visible[i]);
        cr_expect(accused[visible[i]], "%s was never found", rule_str(visible[i]));
    }
    expecting = false;
}
