/* layer 4 (test) property: seeded conversations of two endpoints. */
#include "tests/property/play.h"

#include "gen/script/script.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define PLAY_PACKETS   120        /* of payload, about, in a conversation */
#define PLAY_LARGE     100        /* of so many one is large */
#define PLAY_PATHS     13         /* of so many one has two paths, if it is reliable */
#define PLAY_PLACED    11         /* of so many one has data placed out of order, unless it is that of soft-RoCE */
#define PLAY_CONGESTED 17         /* of so many one has a congested network */
#define PLAY_BYTES     (8u << 20) /* of payload in it, at most */

static void *fail(const char *what, const char *words)
{
    fprintf(stderr, "property: %s '%s'\n", what, words);
    exit(2);
}

void play_init(struct play *p, uint64_t seed)
{
    *p = (struct play){0};
    sim_config_init(&p->sim, seed);
    sim_conn_config_init(&p->conn, QPT_RC, 1024);
    p->sim.events = event_list_new();
    p->traffic.seed = seed;
    p->traffic.op = TRAFFIC_MIXED;
    p->traffic.size = 4000;
    p->traffic.iters = 10;
    p->traffic.qps = 1;
    p->traffic.tx_depth = 8;
    p->traffic.disconnect = true;
    p->traffic.time_limit = 1000 * NS_PER_S;
}

/* --- By chance -------------------------------------------------------------------------------- */

static uint32_t pick(struct prng *r, const uint32_t *of, unsigned n)
{
    return of[prng_below(r, n)];
}
#define PICK(r, ...) pick(r, (const uint32_t[]){__VA_ARGS__}, ARRAY_LEN(((const uint32_t[]){__VA_ARGS__})))

static bool percent(struct prng *r, uint32_t n)
{
    return prng_below(r, 100) < n;
}

void play_net(struct play *p, const char *words, unsigned dirs)
{
    struct token t[EVENT_WORDS];
    struct text_error e;
    unsigned n = text_split(words, t, ARRAY_LEN(t));

    if (n > ARRAY_LEN(t) || !net_parse(&p->sim.net, t, n, dirs, &e))
        fail("the network does not know", words);
}

void play_event(struct play *p, const char *words)
{
    struct token t[EVENT_WORDS];
    struct text_error e;
    unsigned n = text_split(words, t, ARRAY_LEN(t));

    if (n > ARRAY_LEN(t) || !event_add(p->sim.events, t, n, words, &e))
        fail("no event", words);
}

PRINTF_LIKE(2, 3) static void about(struct play *p, const char *fmt, ...)
{
    size_t n = strlen(p->about);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(p->about + n, sizeof p->about - n, fmt, ap);
    va_end(ap);
}

static void random_service(struct play *p, struct prng *r)
{
    struct traffic_config *t = &p->traffic;
    uint32_t dice = prng_below(r, 100);
    uint16_t mtu = (uint16_t)PICK(r, 256, 256, 512, 1024, 1024, 2048, 4096);

    t->type = dice < 12 ? QPT_XRC_INI : dice < 75 ? QPT_RC : dice < 88 ? QPT_UC : QPT_UD;
    sim_conn_config_init(&p->conn, (enum qp_type)t->type, mtu);
    for (unsigned h = 0; h < NET_HOSTS; h++)
        p->sim.ep[h].mtu = mtu;
    t->op = t->type == QPT_UD ? TRAFFIC_SEND : (uint8_t)prng_below(r, t->type == QPT_UC ? 2 : TRAFFIC_OPS);
    if ((qp_is_reliable(t->type) && percent(r, 40)) || ~traffic_of_service((enum qp_type)t->type) & 1u << t->op)
        t->op = TRAFFIC_MIXED;
    if (t->op == TRAFFIC_MIXED && qp_is_reliable(t->type) && percent(r, 40))
        t->mix = traffic_of_service((enum qp_type)t->type) & ((1u << TRAFFIC_OPS) - 1);
    t->size = PICK(r, 0, 5, mtu - 1u, mtu, mtu + 1u, 2u * mtu, 4u * mtu + 9, 9u * mtu + 1);
    if (t->type == QPT_UD)
        t->size = min_u32(t->size, mtu);
    t->vary = percent(r, 50);
    t->with_imm = percent(r, 20);
    t->solicited = percent(r, 10) && (t->op == TRAFFIC_SEND || t->with_imm);
    p->traffic.bidirectional = percent(r, 40);
    t->qps = PICK(r, 1, 1, 1, 2, 3);
    t->iters = 1 + prng_below(r, PLAY_PACKETS / (t->size / mtu + 1) / t->qps / (1 + p->traffic.bidirectional));
    t->tx_depth = PICK(r, 1, 2, 5, 16);
    t->signal_every = PICK(r, 1, 1, 4);
    if (percent(r, 30))
        t->rx_depth = 1 + prng_below(r, 3); /* RNR NAKs */
    about(p, "%s size=%u%s n=%u q=%u mtu=%u%s%s rx=%u", qp_type_str((enum qp_type)t->type), t->size, t->vary ? "-" : "",
          (unsigned)t->iters, t->qps, mtu, p->traffic.bidirectional ? " both" : "", t->with_imm ? " imm" : "",
          t->rx_depth);
    about(p, " op=%s", traffic_op_str((enum traffic_op)t->op));
}

static void random_connection(struct play *p, struct prng *r)
{
    struct sim_conn_config *c = &p->conn;
    uint8_t timeout = (uint8_t)PICK(r, 8, 10, 14, 18), rnr = (uint8_t)PICK(r, 1, 5, 12),
            depth = (uint8_t)PICK(r, 1, 2, 4, 16);
    uint8_t retry = (uint8_t)PICK(r, 1, 3, 7, 7), rnr_retry = (uint8_t)PICK(r, 7, 7, 7, 3);

    for (unsigned h = 0; h < NET_HOSTS; h++) {
        c->peer[h].timeout = timeout;
        c->peer[h].retry_cnt = retry;
        c->peer[h].rnr_retry = rnr_retry;
        c->peer[h].min_rnr_timer = rnr;
        c->peer[h].max_rd_atomic = c->peer[h].max_dest_rd_atomic = depth;
    }
    if (percent(r, 40)) {
        p->traffic.psn_given = true;
        for (unsigned h = 0; h < NET_HOSTS; h++)
            c->psn[h] = (1u << 24) - 1 - prng_below(r, 40);
    }
    p->sim.no_cm = percent(r, 35);
    p->traffic.disconnect = percent(r, 80);
    if (p->traffic.qps == 1 && p->traffic.type == QPT_RC && percent(r, 10))
        p->traffic.srq = true;
    about(p, " timeout=%u retry=%u rnr=%u/%u depth=%u%s%s%s", timeout, retry, rnr, rnr_retry, depth,
          p->traffic.psn_given ? " wrap" : "", p->sim.no_cm ? " no-cm" : "", p->traffic.srq ? " srq" : "");
}

static void random_hosts(struct play *p, struct prng *r)
{
    uint32_t encap = prng_below(r, 100);
    bool credits = percent(r, 20), vlan = percent(r, 5);
    uint32_t ack = prng_below(r, 4), window = PICK(r, 1, 3, 16, 128), every = PICK(r, 1, 4, 64);
    uint32_t arg = ack == 1 ? PICK(r, 2, 4, 16) : PICK(r, 500, 20000);

    p->rxe = percent(r, 30);
    for (unsigned h = 0; h < NET_HOSTS; h++) {
        struct ep_config *c = &p->sim.ep[h];
        c->profile = p->rxe ? EP_RXE : EP_STRICT;
        c->credits = credits;
        c->policies.ack = ack == 1 ? &ack_coalesce : ack == 2 ? &ack_delay : &ack_every;
        c->policies.ack_arg = arg;
        c->policies.window_arg = window;
        c->policies.ackreq_every = every;
        c->addr.has_vlan = vlan;
        c->addr.vlan = 3;
        c->addr.encap = encap >= 95 ? ENCAP_IB : encap >= 90 ? ENCAP_ROCEV1 : ENCAP_ROCEV2;
        if (encap >= 65 && encap < 95)
            memcpy(c->addr.gid, (uint8_t[16]){0x20, 0x01, 0x0d, 0xb8, [15] = (uint8_t)(h + 1)}, 16);
        p->conn.peer[h].av.grh = encap >= 98;
    }
    if (encap >= 95)
        for (unsigned h = 0; h < NET_HOSTS; h++)
            p->sim.ep[h].addr.has_vlan = false;
    about(p, "%s %s%s ack=%s,%u window=%u every=%u%s", p->rxe ? " rxe" : "",
          encap >= 95   ? "IB"
          : encap >= 90 ? "v1"
          : encap >= 65 ? "v2/6"
                        : "v2",
          vlan ? " vlan" : "", p->sim.ep[0].policies.ack->name, arg, window, every, credits ? " credits" : "");
}

/* A node of the network that loses, doubles, reorders, delays or damages packets. */
static void random_node(struct play *p, struct prng *r)
{
    static const char *const nodes[] = {"loss=0.5%",
                                        "loss=3%",
                                        "loss=10%",
                                        "burst=1%/40%",
                                        "dup=1%",
                                        "dup=5%",
                                        "reorder=1%/3",
                                        "reorder=5%/1",
                                        "reorder=5%/8",
                                        "jitter=3us",
                                        "rate=10G queue=64K ecn=4K",
                                        "corrupt=1%",
                                        "corrupt=1%/icrc",
                                        "truncate=1%/5"};
    char words[64];
    unsigned i = prng_below(r, ARRAY_LEN(nodes)), dirs = PICK(r, 1, 2, 3, 3);
    bool bad = nodes[i][0] == 'c' || nodes[i][0] == 't';

    p->corrupts |= bad;
    p->truncates |= nodes[i][0] == 't';
    snprintf(words, sizeof words, "%s%s", nodes[i], percent(r, 30) ? " before" : "");
    play_net(p, words, dirs);
    about(p, " %s (%u)", words, dirs);
    for (unsigned h = 0; h < NET_HOSTS && nodes[i][1] == 'a'; h++) {
        p->conn.peer[h].av.tclass = ECN_CAPABLE; /* who is marked sends CNPs, but for rxe */
        p->sim.ep[h].congestion.cnps = !p->rxe;
        p->sim.ep[h].congestion.np = np_config_default();
    }
}

static void random_net(struct play *p, struct prng *r)
{
    p->sim.net.delay = (ns_t)PICK(r, 200, 1000, 5000, 50000);
    about(p, " delay=%u", (unsigned)p->sim.net.delay);
    for (unsigned n = prng_below(r, 4); n > 0; n--)
        random_node(p, r);
}

/* Two paths, of which the first one fails, for a time or for good. */
static void random_migration(struct play *p, struct prng *r)
{
    unsigned at = prng_below(r, 300), time = PICK(r, 0, 0, 2000, 20000);
    char words[64], until[24] = "";

    p->conn.alternate = p->sim.ep[0].two_ports = p->sim.ep[1].two_ports = true;
    if (time)
        snprintf(until, sizeof until, "/%uus", time);
    snprintf(words, sizeof words, "path=1 down=%uus%s", at, until);
    play_net(p, words, PICK(r, 1, 2, 3, 3, 3));
    about(p, " %s", words);
}

/* Thousands of packets, as many in flight as possible: more are retransmitted than the judge remembers. */
static void random_large(struct play *p, struct prng *r)
{
    struct traffic_config *t = &p->traffic;

    t->size = t->type == QPT_UD ? t->size : 40u * p->sim.ep[0].mtu + 9;
    t->iters = min_u32(40 + prng_below(r, 100), PLAY_BYTES / (t->size + 1) / t->qps);
    t->tx_depth = 128;
    for (unsigned h = 0; h < NET_HOSTS; h++)
        p->sim.ep[h].policies.window_arg = 8192;
    about(p, "; large: size=%u n=%u window=8192", t->size, (unsigned)t->iters);
}

/* A bottleneck that marks early, and hosts that send CNPs and mostly heed them. */
static void random_congestion(struct play *p, struct prng *r)
{
    static const char *const schemes[] = {"none", "dcqcn", "dcqcn-cx", "timely", "swift", "rttcc"};
    static const char *const cnps[] = {"interval=50us", "interval=4us,scope=port", "per_ce=yes",
                                       "interval=10us,delay=55us"};
    const char *scheme = schemes[prng_below(r, ARRAY_LEN(schemes))], *cnp = cnps[prng_below(r, ARRAY_LEN(cnps))];
    struct text_error e;

    play_net(p, percent(r, 50) ? "rate=5G queue=256K ecn=2K" : "rate=5G queue=32K ecn=2K", PICK(r, 1, 2, 3));
    for (unsigned h = 0; h < NET_HOSTS; h++) {
        struct ep_congestion *c = &p->sim.ep[h].congestion;
        c->cnps = true;
        c->np = np_config_default();
        if (!cc_parse(&c->cc, scheme, &e) || !np_parse(&c->np, cnp, &e))
            fail("no congestion control", e.msg);
        p->conn.peer[h].av.tclass = ECN_CAPABLE;
    }
    about(p, "; congested: %s, CNPs %s", scheme, cnp);
}

static bool harsh; /* play_harshly() */

void play_harshly(void)
{
    harsh = true;
}

#define HARSH_MTU 512 /* with more, conversations of thousands of packets take too long */

/* What is rare, often: paths that fail, PSNs of both directions near each other, more packets outstanding than the
 * judge remembers, more that the network does to them. */
static void random_harsh(struct play *p, struct prng *r)
{
    bool stays = p->rxe && p->conn.peer[0].retry_cnt == 7; /* it retries for ever, and never migrates */

    if (qp_is_reliable(p->traffic.type) && !stays && !p->conn.alternate && percent(r, 40))
        random_migration(p, r);
    if (p->sim.ep[0].mtu <= HARSH_MTU && percent(r, 15))
        random_large(p, r);
    if (percent(r, 50)) {
        p->traffic.psn_given = true;
        p->conn.psn[0] = prng_below(r, 1u << 24);
        p->conn.psn[1] = (p->conn.psn[0] + prng_below(r, 8)) & PSN_MASK;
        about(p, " near");
    }
    for (unsigned n = 1 + prng_below(r, 2); n > 0; n--)
        random_node(p, r);
}

void play_random(struct play *p, uint64_t seed)
{
    struct prng r;

    play_init(p, seed);
    prng_seed(&r, seed * 7919 + 17);
    random_service(p, &r);
    random_connection(p, &r);
    random_hosts(p, &r);
    p->nv = !p->rxe && seed % PLAY_PLACED == 4;
    for (unsigned h = 0; h < NET_HOSTS && p->nv; h++)
        p->sim.ep[h].profile = EP_NV;
    random_net(p, &r);
    if (seed % PLAY_PATHS == 11 && qp_is_reliable(p->traffic.type) && !(p->rxe && p->conn.peer[0].retry_cnt == 7))
        random_migration(p, &r);
    if (seed % PLAY_LARGE == 77)
        random_large(p, &r);
    if (seed % PLAY_CONGESTED == 5)
        random_congestion(p, &r);
    if (harsh)
        random_harsh(p, &r);
}

/* --- Playing ---------------------------------------------------------------------------------- */

static void on_frame(void *user, const uint8_t *data, uint32_t len, ns_t now)
{
    trace_add(user, data, len, now);
}

static void keep_result(struct play *p, const struct sim *s, struct sim_traffic *t)
{
    p->result = sim_traffic_flows(t)->r;
    for (unsigned h = 0; h < NET_HOSTS; h++) {
        p->own_failures += ep_stats(s->ep[h])->own_check_failures;
        p->faults += ep_stats(s->ep[h])->faults;
    }
}

/* The taps that record it; they live as long as the simulation. */
static void tap_all(struct play *p, struct tap_set sets[TAP_PLACES])
{
    for (unsigned i = 0; i < TAP_PLACES; i++) {
        sets[i] = (struct tap_set){.place = (uint8_t)i, .frame = on_frame, .user = &p->tap[i]};
        p->tap[i].store = &p->store;
        p->tap[i].linktype = p->sim.ep[0].addr.encap == ENCAP_IB ? LINK_INFINIBAND : LINK_ETHERNET;
        p->sim.taps[i] = &sets[i];
    }
}

bool play_run(struct play *p)
{
    struct tap_set sets[TAP_PLACES];
    struct sim_app none = {0};
    struct sim s;
    struct sim_traffic *t = NULL;
    int err;

    tap_all(p, sets);
    err = sim_init(&s, &p->sim, &none);
    p->sim.events = NULL;
    if (err == 0)
        t = sim_traffic_new(&s, &p->traffic, &p->conn, NULL, &err);
    if (t) {
        s.app = sim_traffic_app(t);
        sim_traffic_run(t, NULL, NULL);
        keep_result(p, &s, t);
    } else {
        fprintf(stderr, "property: %s: %s\n", p->about, strerror(-err));
    }
    sim_traffic_free(t);
    sim_free(&s);
    return t != NULL;
}

bool play_scenario(struct play *p, const char *text)
{
    struct tap_set sets[TAP_PLACES];
    struct script_opts o = {0};
    struct buf out = {0};
    enum script_result r;

    tap_all(p, sets);
    o.sim = p->sim;
    p->sim.events = NULL;
    r = script_run("scenario", text, &o, &out);
    if (r == SCRIPT_BAD)
        fprintf(stderr, "property: %s", buf_str(&out));
    buf_free(&out);
    return r != SCRIPT_BAD;
}

/* Send four datagrams to a group, one after another. */
static int send_to_group(struct sim *s, const struct sim_conn *c, uint32_t pd)
{
    static uint8_t data[64];
    struct av av = sim_path(s, 0, 1);
    struct sge sge = {0, sizeof data, 0};
    struct send_wr wr = {.opcode = WR_SEND,
                         .flags = SEND_SIGNALED,
                         .sg_list = &sge,
                         .num_sge = 1,
                         .remote_qpn = 0xffffff,
                         .remote_qkey = c->remote_qkey[0]};
    int r = ep_mr_reg(s->ep[0], pd, data, sizeof data, 0, ACCESS_LOCAL_WRITE, &sge.lkey);

    gid_from_ipv4(av.dgid, 0xe0010203);
    memcpy(av.dmac, (uint8_t[]){0x01, 0, 0x5e, 1, 2, 3}, 6);
    int ah = ep_ah_create(s->ep[0], pd, &av);
    if (r < 0 || ah < 0)
        return -1;
    wr.ah = (uint32_t)ah;
    for (unsigned i = 0; i < 4; i++) {
        if (ep_post_send(s->ep[0], c->qp[0], &wr, s->now) < 0)
            return -1;
        while (sim_step(s, s->now + NS_PER_MS))
            ;
    }
    return 0;
}

bool play_multicast(struct play *p)
{
    struct tap_set sets[TAP_PLACES];
    struct sim_app none = {0};
    struct sim_conn_config conn;
    struct sim_conn *c = NULL;
    struct sim s;
    int err;

    sim_conn_config_init(&conn, QPT_UD, 1024);
    p->sim.no_cm = true;
    tap_all(p, sets);
    err = sim_init(&s, &p->sim, &none);
    p->sim.events = NULL;
    for (unsigned h = 0; h < NET_HOSTS && err == 0; h++)
        conn.pd[h] = ep_pd_alloc(s.ep[h]);
    if (err == 0)
        c = sim_conn_add(&s, &conn, &err);
    if (c && sim_conn_join(&s, c) == 0)
        err = send_to_group(&s, c, conn.pd[0]);
    sim_free(&s);
    return c && err == 0;
}

#define JUDGE_MEMORY (UINT64_C(32) << 20) /* bytes: arrays that pages.c keeps */

struct judge_opts play_judge_opts(const struct play *p, enum tap_place place)
{
    static const enum tap_side sides[] = {
        [TAP_AT_REQUESTER] = TAP_REQUESTER, [TAP_AT_MIDDLE] = TAP_MIDDLE, [TAP_AT_RESPONDER] = TAP_RESPONDER};
    struct judge_opts o = {.profile = p->rxe  ? PROFILE_RXE
                                      : p->nv ? PROFILE_NV
                                              : PROFILE_STRICT,
                           .memory = JUDGE_MEMORY,
                           .ack_timeout = -1,
                           .retry_cnt = -1};

    for (unsigned i = 0; i < JUDGE_TAPS; i++)
        o.tap[i] = sides[place];
    o.ack_timeout = p->conn.peer[0].timeout; /* CM states that of one end only */
    o.retry_cnt = p->conn.peer[0].retry_cnt;
    return o;
}

void play_free(struct play *p)
{
    event_list_free(p->sim.events);
    for (unsigned i = 0; i < TAP_PLACES; i++)
        trace_free(&p->tap[i]);
    free(p->store.b);
}
