/* layer 3 (gen) tests: every deliberate mistake is made, and the checks name the rule that it breaks. */
#include "dissect/pkt.h"
#include "tests/unit/ep_pair.h"
#include "tests/unit/mkpkt.h"

#include <criterion/criterion.h>

#include "gen/endpoint/fault_changes.h"
#include "gen/endpoint/rewrite.h"

/* Every so many frames one is lost. */
static int lossy(struct pair *p, int from, uint8_t *frame, uint32_t len, ns_t *extra)
{
    (void)from, (void)frame, (void)len, (void)extra;
    return prng_below(&p->rng, 12) ? 1 : 0;
}

enum variant {
    CLEAN,
    LOSSY,
    FATAL,     /* ends with a WRITE that the responder refuses */
    NOT_READY, /* receives are posted late */
    PMTU_256,
    CREDITS,
    RETRIES,     /* nothing arrives */
    RNR_RETRIES, /* no receive at all */
    V_XRC,
    V_UC,
    V_UD,
    V_ROCEV1,
    V_IB,
    V_MULTICAST,
    MARKED, /* all packets are marked CE */
    VARIANTS
};

static struct pair_opts options(enum variant v, const enum rule *rule)
{
    struct pair_opts o = pair_defaults();

    o.peer.timeout = 8;
    o.peer.min_rnr_timer = v == NOT_READY && *rule == RULE_RTX_15 ? 20 : 5; /* 10.24 ms, 80 us */
    o.type = v == V_XRC ? QPT_XRC_INI : v == V_UC ? QPT_UC : v == V_UD || v == V_MULTICAST ? QPT_UD : QPT_RC;
    o.peer.path_mtu = v == PMTU_256 ? 256 : 1024;
    o.cfg[0].mtu = o.cfg[1].mtu = 1024;
    if (v == RETRIES || v == RNR_RETRIES)
        o.peer.retry_cnt = o.peer.rnr_retry = 2;
    o.peer.max_rd_atomic = o.peer.max_dest_rd_atomic = 2;
    for (int i = 0; i < 2; i++) {
        o.cfg[i].credits = v == CREDITS;
        o.cfg[i].congestion = (struct ep_congestion){.cnps = v == MARKED, .np = np_config_default()};
        o.cfg[i].addr.encap = v == V_ROCEV1 ? ENCAP_ROCEV1 : v == V_IB ? ENCAP_IB : ENCAP_ROCEV2;
        o.cfg[i].faults = rule;
        o.cfg[i].n_faults = 1;
    }
    return o;
}

static int nothing_arrives(struct pair *p, int from, uint8_t *frame, uint32_t len, ns_t *extra)
{
    (void)p, (void)from, (void)frame, (void)len, (void)extra;
    return 0;
}

static int marks(struct pair *p, int from, uint8_t *frame, uint32_t len, ns_t *extra)
{
    (void)p, (void)from, (void)extra;
    frame_mark_ce(frame, len, LINK_ETHERNET, false);
    return 1;
}

static void rc_work(struct pair *p, int round)
{
    uint64_t remote = PAIR_IOVA(1) + 65536;
    uint32_t rkey = p->key[1];

    pair_post(p, 0, (struct send_wr){.opcode = WR_SEND}, 0, 5000);
    pair_post(p, 0, (struct send_wr){.opcode = WR_SEND}, 0, 77);
    pair_post(p, 0, (struct send_wr){.opcode = WR_RDMA_WRITE, .remote_addr = remote, .rkey = rkey}, 0, 5001);
    pair_post(p, 0, (struct send_wr){.opcode = WR_RDMA_WRITE, .remote_addr = remote, .rkey = rkey}, 0, 99);
    for (int i = 0; i < 4; i++)
        pair_post(p, 0, (struct send_wr){.opcode = WR_RDMA_READ, .remote_addr = remote, .rkey = rkey}, 0, 4000);
    pair_post(
        p, 0,
        (struct send_wr){.opcode = WR_ATOMIC_FETCH_AND_ADD, .remote_addr = remote, .rkey = rkey, .compare_add = 1}, 0,
        8);
    pair_post(p, 0, (struct send_wr){.opcode = WR_ATOMIC_WRITE, .remote_addr = remote, .rkey = rkey}, 0, 8);
    pair_post(p, 0, (struct send_wr){.opcode = WR_SEND_WITH_IMM, .imm_data = (uint32_t)round}, 0, 100);
}

static void play(struct pair *p, enum variant v)
{
    p->hook = v == LOSSY || v == PMTU_256 ? lossy : v == RETRIES ? nothing_arrives : v == MARKED ? marks : NULL;
    for (int round = 0; round < 6; round++) {
        for (int i = 0; i < (v == CREDITS ? 1 : 4) && v != NOT_READY && v != RNR_RETRIES; i++)
            pair_recv(p, 1, 0, 0, 8192);
        if (v == V_UC || v == V_UD || v == V_MULTICAST) {
            uint32_t qpn = v == V_MULTICAST ? 0xffffff : ep_qp(p->ep[1], p->qp[1])->qpn;
            for (int i = 0; i < 3; i++)
                pair_post(p, 0, (struct send_wr){.opcode = WR_SEND, .remote_qpn = qpn, .remote_qkey = PAIR_QKEY}, 0,
                          v == V_UC ? 3000 : 100);
            if (v == V_UC)
                pair_post(p, 0, (struct send_wr){.opcode = WR_SEND}, 0, 100);
        } else {
            for (int i = 0; i < 4 && v == CREDITS; i++)
                pair_post(p, 0, (struct send_wr){.opcode = WR_SEND}, 0, 77);
            if (v == NOT_READY) { /* the others are posted while the requester waits */
                pair_post(p, 0, (struct send_wr){.opcode = WR_SEND}, 0, 77);
                pair_run(p, p->now + 50000);
            }
            rc_work(p, round);
        }
        pair_run(p, p->now + 100000);
        for (int i = 0; i < 4 && (v == NOT_READY || v == CREDITS); i++)
            pair_recv(p, 1, 0, 0, 8192);
        pair_run(p, p->now + 100 * NS_PER_MS);
        if (v == FATAL)
            pair_post(p, 0, (struct send_wr){.opcode = WR_RDMA_WRITE, .remote_addr = 0, .rkey = 0x99}, 0, 10);
    }
    pair_run(p, p->now + NS_PER_S);
}

/* Faults that only the bytes of the frame, or only time, show: the checks of the transport do not see them. */
static bool below_the_transport(enum rule rule)
{
    static const enum rule rules[] = {
        RULE_FMT_01, RULE_FMT_06, RULE_FMT_07, RULE_FMT_08, RULE_FMT_09, RULE_FMT_10, RULE_FMT_11, RULE_FMT_12,
        RULE_FMT_14, RULE_FMT_15, RULE_FMT_16, RULE_FMT_17, RULE_FMT_18, RULE_FMT_19, RULE_SEQ_12, RULE_SVC_05,
        RULE_CC_01,  RULE_CC_02,  RULE_RTX_04, RULE_RTX_08, RULE_ACK_04, RULE_FMT_21, RULE_SEQ_13, RULE_SEQ_14,
        RULE_RDA_14, RULE_FMT_24, RULE_FMT_25, RULE_NAK_09, RULE_NAK_10, RULE_SVC_04, RULE_RDA_12, RULE_RTX_15,
        RULE_NAK_08, RULE_SEC_02, RULE_SEC_03, RULE_CC_03,  RULE_CC_04};

    for (unsigned i = 0; i < ARRAY_LEN(rules); i++)
        if (rules[i] == rule)
            return true;
    return false;
}

Test(faults, each_is_committed_and_breaks_the_rule_that_it_names)
{
    for (unsigned i = 0; i < fault_count; i++) {
        enum rule rule = fault_table[i].rule, found = RULE_NONE;
        uint64_t committed = 0;
        if (fault_table[i].hook == FAULT_CM || (i && fault_table[i - 1].rule == rule))
            continue;
        for (int v = 0; v < VARIANTS; v++) {
            struct pair_opts o = options((enum variant)v, &rule);
            struct pair *p = pair_new(&o);
            play(p, (enum variant)v);
            for (int side = 0; side < 2; side++) {
                uint64_t n = ep_stats(p->ep[side])->faults;
                enum rule seen = (enum rule)ep_first_refused(p->ep[side]).rule;
                committed += n;
                cr_expect_eq(ep_stats(p->ep[side])->own_check_failures, 0, "%s, variant %d: %s", rule_str(rule), v,
                             rule_str(seen));
                if (n && !below_the_transport(rule))
                    cr_expect_eq(seen, rule, "fault %s, variant %d: the check says %s", rule_str(rule), v,
                                 rule_str(seen));
                if (seen == rule)
                    found = rule;
            }
            pair_free(p);
        }
        cr_expect(committed, "%s was never committed: %s", rule_str(rule), fault_table[i].what);
        if (!below_the_transport(rule))
            cr_expect_eq(found, rule, "%s was never noticed", rule_str(rule));
    }
}

Test(faults, every_error_that_an_end_can_make_has_one)
{
    for (int i = 1; i < RULE_COUNT; i++)
        if (rule_table[i].severity == SEV_E && rule_table[i].fault & F_ANY)
            cr_expect(fault_find((enum rule)i) != NULL, "%s: %s", rule_table[i].id, rule_table[i].meaning);
}

Test(faults, each_fault_is_allowed_by_its_rule)
{
    for (unsigned i = 0; i < fault_count; i++) {
        unsigned who = rule_table[fault_table[i].rule].fault;
        cr_expect(who != F_NONE, "%s", rule_str(fault_table[i].rule));
        cr_expect((fault_table[i].hook == FAULT_CHOICE || fault_table[i].hook == FAULT_CM) ==
                  (fault_table[i].change == NULL));
        cr_expect((fault_table[i].hook == FAULT_CHOICE) == (fault_table[i].choice != CHOICE_NONE));
        cr_expect((fault_table[i].hook == FAULT_CM) == (fault_table[i].change_cm != NULL));
    }
}

/* A path MTU of 2048 bytes can be doubled, one of 4096 cannot; of 512 it can be halved, of 256 not. */
Test(faults, a_packet_of_another_path_mtu_has_one_that_exists)
{
    static const struct {
        bool (*change)(struct fault_ctx *c);
        uint16_t pmtu;
        uint32_t len;
    } t[] = {{fault_double_pmtu, 2048, 4096},
             {fault_double_pmtu, 4096, 0},
             {fault_half_pmtu, 512, 256},
             {fault_half_pmtu, 256, 0}};

    for (size_t i = 0; i < ARRAY_LEN(t); i++) {
        struct requester r = {.p.pmtu = t[i].pmtu};
        struct pkt p = {.op = &opcode_table[OP_WRITE_MIDDLE], .payload_len = t[i].pmtu};
        struct fault_ctx c = {.p = &p, .req = &r};
        cr_expect_eq(t[i].change(&c), t[i].len != 0, "%u", t[i].pmtu);
        cr_expect_eq(p.payload_len, t[i].len ? t[i].len : t[i].pmtu);
        c.repeat = true;
        cr_expect_not(t[i].change(&c), "what is sent again is as it was");
    }
}

Test(faults, a_payload_is_changed_only_when_it_is_sent_again)
{
    struct build_tweak tweak = {0};
    struct pkt p = mk(OP_SEND_ONLY, 10, 8), empty = mk(OP_SEND_ONLY, 10, 0), read = mk_read(10, 0, 8);
    struct fault_ctx c = {.p = &p, .tweak = &tweak};

    cr_expect_not(fault_changed_payload(&c));
    c.repeat = true;
    cr_expect(fault_changed_payload(&c) && tweak.payload_xor);
    c.p = &empty;
    cr_expect_not(fault_changed_payload(&c), "there is none");
    c.p = &read;
    cr_expect_not(fault_changed_payload(&c), "there is none");
}

static void count_line(void *user, const char *line)
{
    (void)line;
    ++*(unsigned *)user;
}

Test(faults, only_what_was_committed_has_been_triggered)
{
    static const enum rule rules[] = {RULE_FMT_01, RULE_SEQ_13};
    struct pair_opts o = pair_defaults();
    struct pair *p;
    unsigned lines = 0;

    o.cfg[0].n_faults = 2;
    o.cfg[0].faults = rules;
    p = pair_new(&o);
    cr_expect_eq(ep_faults_idle(p->ep[0], NULL, "it", count_line, &lines), 2);
    for (unsigned i = 0; i < ARRAY_LEN(rules); i++) {
        ep_count_fault(p->ep[0], rules[i]);
        cr_expect_eq(ep_faults_idle(p->ep[0], NULL, "it", count_line, &lines), 1 - i);
    }
    cr_expect_eq(lines, 3);
    pair_free(p);
}
