/* layer 3 (gen) tests: path migration of an endpoint: states, MigReq, and what makes a queue pair change its path. */
#include "dissect/ib/ib.h"
#include "dissect/pkt.h"
#include "tests/unit/ep_pair.h"

#include <errno.h>

#define BTH_FLAGS 43
#define TIMEOUT   8 /* 1.05 ms */
#define RETRIES   2

/* What the network does, and what passed. */
static struct {
    bool down[3]; /* by path */
    unsigned frames[3];
    bool last_migreq[2]; /* by sender */
} wire;

static int on_wire(struct pair *p, int from, uint8_t *frame, uint32_t len, ns_t *extra)
{
    int path = pair_port_of(frame);

    (void)p, (void)len, (void)extra;
    wire.frames[path]++;
    wire.last_migreq[from] = frame[BTH_FLAGS] >> 6 & 1;
    return !wire.down[path];
}

static struct pair *two_paths(uint8_t type)
{
    struct pair_opts o = pair_defaults();
    struct pair *p;

    memset(&wire, 0, sizeof wire);
    o.type = type;
    o.peer.timeout = TIMEOUT;
    o.peer.retry_cnt = RETRIES;
    pair_two_ports(&o);
    p = pair_new(&o);
    p->hook = on_wire;
    return p;
}

static void load(struct pair *p, int side)
{
    struct av av = pair_av2(!side);

    cr_assert_eq(ep_qp_load_path(p->ep[side], p->qp[side], &av, TIMEOUT, p->now), 0);
}

static unsigned state_of(const struct pair *p, int side)
{
    return ep_qp(p->ep[side], p->qp[side])->attr.mig_state;
}

static void write_once(struct pair *p, int side)
{
    struct send_wr wr = {
        .opcode = WR_RDMA_WRITE, .flags = SEND_SIGNALED, .remote_addr = PAIR_IOVA(!side), .rkey = p->key[!side]};

    cr_assert_eq(pair_post(p, side, wr, 0, 64), 0);
}

/* A WRITE that succeeds. */
static void exchange(struct pair *p, int side)
{
    write_once(p, side);
    pair_run(p, p->now + NS_PER_S);
    cr_expect_eq(pair_wc(p, side).status, WC_SUCCESS);
}

static bool next_event(struct pair *p, int side, enum ep_event_type type)
{
    struct ep_event e;

    return ep_event(p->ep[side], &e) && e.type == type;
}

/* Both ends have loaded the second path and are armed. */
static struct pair *armed(uint8_t type)
{
    struct pair *p = two_paths(type);

    load(p, 0);
    load(p, 1);
    cr_expect_eq(state_of(p, 0), MIG_REARM);
    exchange(p, 0);
    if (type == QPT_UC) /* nothing came back that could arm the first side */
        exchange(p, 1);
    cr_expect_eq(state_of(p, 0), MIG_ARMED);
    cr_expect_eq(state_of(p, 1), MIG_ARMED);
    cr_expect_not(wire.last_migreq[0]);
    cr_expect_not(wire.last_migreq[1]);
    cr_expect_eq(wire.frames[2], 0);
    return p;
}

static void is_migrated(struct pair *p)
{
    for (int i = 0; i < 2; i++) {
        cr_expect_eq(state_of(p, i), MIG_MIGRATED, "side %d", i);
        cr_expect(wire.last_migreq[i], "side %d", i);
        cr_expect_eq(ep_stats(p->ep[i])->migrated, 1);
        cr_expect(next_event(p, i, EP_EV_PATH_MIG), "side %d", i);
    }
    no_own_failures(p);
}

static int modify(struct pair *p, int side, struct qp_attr a, uint32_t mask)
{
    return ep_qp_modify(p->ep[side], p->qp[side], &a, mask, p->now);
}

Test(migrate, a_loaded_path_is_armed_by_the_first_packet_with_migreq_0)
{
    pair_free(armed(QPT_RC));
}

Test(migrate, a_peer_that_did_not_rearm_does_not_arm)
{
    struct pair *p = two_paths(QPT_RC);

    cr_assert_eq(modify(p, 1, (struct qp_attr){.mig_state = MIG_MIGRATED}, QPA_PATH_MIG_STATE), 0);
    load(p, 0);
    exchange(p, 0);
    cr_expect(wire.last_migreq[1], "it is in Migrated");
    cr_expect_eq(state_of(p, 0), MIG_REARM);
    pair_free(p);
}

Test(migrate, exhausted_retries_lead_to_the_other_path_with_all_retries_left)
{
    struct pair *p = armed(QPT_RC);
    unsigned before = wire.frames[1];

    wire.down[1] = true;
    exchange(p, 0);
    cr_expect_eq(wire.frames[1] - before, 1 + RETRIES, "the first time, and the retries");
    cr_expect_eq(wire.frames[2], 2, "WRITE and ACK");
    is_migrated(p);
    pair_free(p);
}

Test(migrate, when_both_paths_are_down_the_retries_are_spent_twice)
{
    struct pair *p = armed(QPT_RC);
    unsigned before = wire.frames[1];

    wire.down[1] = wire.down[2] = true;
    write_once(p, 0);
    pair_run(p, p->now + NS_PER_S);
    cr_expect_eq(pair_wc(p, 0).status, WC_RETRY_EXC_ERR);
    cr_expect_eq(wire.frames[1] - before, 1 + RETRIES);
    cr_expect_eq(wire.frames[2], 1 + RETRIES);
    pair_free(p);
}

Test(migrate, software_migrates_an_armed_queue_pair)
{
    static const uint8_t types[] = {QPT_RC, QPT_UC};

    for (unsigned i = 0; i < ARRAY_LEN(types); i++) {
        struct pair *p = armed(types[i]);
        cr_assert_eq(modify(p, 1, (struct qp_attr){.mig_state = MIG_MIGRATED}, QPA_PATH_MIG_STATE), 0);
        exchange(p, 1);
        if (types[i] == QPT_UC)
            exchange(p, 0);
        is_migrated(p);
        pair_free(p);
    }
}

Test(migrate, software_does_not_migrate_before_the_peer_is_ready)
{
    struct pair *p = two_paths(QPT_RC);

    load(p, 0);
    cr_assert_eq(modify(p, 0, (struct qp_attr){.mig_state = MIG_MIGRATED}, QPA_PATH_MIG_STATE), 0);
    exchange(p, 0);
    cr_expect_eq(wire.frames[2], 0);
    cr_expect_eq(ep_stats(p->ep[0])->migrated, 0);
    pair_free(p);
}

Test(migrate, a_request_to_migrate_along_another_path_is_dropped_and_told_once)
{
    struct pair *p = armed(QPT_RC);
    struct qp_attr wrong = {.alt_av = pair_av2(0), .alt_timeout = TIMEOUT, .alt_pkey = 0xffff};

    gid_from_ipv4(wrong.alt_av.dgid, 0x32323309u); /* the second side waits for somebody else there */
    cr_assert_eq(modify(p, 1, wrong, QPA_ALT_PATH), 0);
    wire.down[1] = true;
    write_once(p, 0);
    pair_run(p, p->now + NS_PER_S);
    cr_expect_eq(pair_wc(p, 0).status, WC_RETRY_EXC_ERR);
    cr_expect_eq(state_of(p, 1), MIG_ARMED);
    cr_expect(next_event(p, 1, EP_EV_PATH_MIG_ERR));
    cr_expect_not(next_event(p, 1, EP_EV_PATH_MIG_ERR));
    cr_expect_eq(ep_stats(p->ep[1])->other_source, 1 + RETRIES);
    pair_free(p);
}

Test(migrate, a_damaged_packet_does_not_make_a_queue_pair_migrate)
{
    struct pair *p = armed(QPT_RC);
    uint8_t frame[EP_FRAME_MAX];
    int n;

    cr_assert_eq(modify(p, 0, (struct qp_attr){.mig_state = MIG_MIGRATED}, QPA_PATH_MIG_STATE), 0);
    write_once(p, 0);
    n = ep_tx(p->ep[0], frame, sizeof frame, p->now);
    cr_assert_gt(n, 0);
    frame[n - 8] ^= 1;
    ep_rx(p->ep[1], frame, (uint32_t)n, p->now);
    cr_expect_eq(state_of(p, 1), MIG_ARMED);
    frame[n - 8] ^= 1;
    ep_rx(p->ep[1], frame, (uint32_t)n, p->now);
    cr_expect_eq(state_of(p, 1), MIG_MIGRATED);
    pair_free(p);
}

Test(migrate, without_a_path_nothing_is_rearmed)
{
    struct pair *p = two_paths(QPT_RC);
    struct qp_attr a = {.mig_state = MIG_REARM, .alt_av = pair_av2(1)};

    cr_expect_eq(modify(p, 0, a, QPA_PATH_MIG_STATE), -EINVAL);
    a.mig_state = MIG_ARMED;
    cr_expect_eq(modify(p, 0, a, QPA_PATH_MIG_STATE | QPA_ALT_PATH), -EINVAL, "armed it becomes by itself");
    a.alt_timeout = 32;
    cr_expect_eq(modify(p, 0, a, QPA_ALT_PATH), -EINVAL);
    a.alt_timeout = 0;
    a.alt_av.port = 3;
    cr_expect_eq(modify(p, 0, a, QPA_ALT_PATH), -EINVAL, "there is no third port");
    pair_free(p);
}

Test(migrate, a_queue_pair_goes_back_once_the_old_path_is_loaded_again)
{
    struct pair *p = armed(QPT_RC);
    struct pair_opts o = pair_defaults();

    wire.down[1] = true;
    exchange(p, 0);
    is_migrated(p);
    cr_expect_eq(modify(p, 0, (struct qp_attr){.mig_state = MIG_REARM}, QPA_PATH_MIG_STATE), -EINVAL,
                 "the path is used up");
    wire.down[1] = false;
    for (int i = 0; i < 2; i++) {
        struct av av = pair_av(&o, !i);
        cr_assert_eq(ep_qp_load_path(p->ep[i], p->qp[i], &av, TIMEOUT, p->now), 0);
    }
    exchange(p, 1);
    wire.down[2] = true;
    exchange(p, 1);
    cr_expect_eq(state_of(p, 0), MIG_MIGRATED);
    cr_expect_eq(ep_stats(p->ep[0])->migrated, 2);
    no_own_failures(p);
    pair_free(p);
}

/* Every frame from the first side is for a third host, and a queue pair of that. */
static int to_a_third_host(struct pair *p, int from, uint8_t *frame, uint32_t len, ns_t *extra)
{
    (void)p, (void)len, (void)extra;
    if (from == 0)
        frame[33] = frame[BTH_FLAGS + 6] = 9;
    wire.frames[pair_port_of(frame)]++;
    return 1;
}

Test(migrate, a_packet_for_neither_port_is_not_taken)
{
    struct pair_opts o = pair_defaults();
    struct pair *p;

    memset(&wire, 0, sizeof wire);
    o.peer.timeout = TIMEOUT;
    o.peer.retry_cnt = RETRIES;
    o.cfg[1].no_verify = true; /* its ICRC is another one */
    pair_two_ports(&o);
    p = pair_new(&o);
    p->hook = to_a_third_host;
    write_once(p, 0);
    pair_run(p, p->now + NS_PER_S);
    cr_expect_eq(wire.frames[1], 1 + RETRIES);
    cr_expect_eq(pair_wc(p, 0).status, WC_RETRY_EXC_ERR);
    cr_expect_eq(ep_stats(p->ep[1])->unknown_qp, 0, "that is not its business");
    pair_free(p);
}
