/* layer 3 (judge) tests: at which end the tap is, where both hosts turn out to open connections. */
#include "tests/unit/judge_rig.h"

/* A connection that end 1 opens: queue pairs 0x21 there and 0x22 at end 0. */
static void learn_back(struct judge *j)
{
    struct conn_known k = {.qpn = {0x21, 0x22}, .psn = {10, 10}, .pmtu = 1024, .how = PAIR_CM};

    for (int i = 0; i < 2; i++)
        memcpy(k.addr[i].b, end_addr(!i).gid, 16);
    k.params[1] = (struct conn_params){.passive = true};
    conn_learn(judge_conns(j), &k);
}

/* Judge a line, seen at an interface with these bits of ECN. */
static void judge_ecn(struct judge *j, const struct line *l, uint64_t number, uint16_t iface, uint8_t ecn)
{
    uint8_t buf[256], *ip = buf + 14;
    uint32_t len = line_frame(l, buf), sum = 0;
    struct frame f;
    struct pkt p;

    ip[1] = (uint8_t)((ip[1] & ~3) | ecn);
    store_be16(ip + 10, 0);
    for (unsigned i = 0; i < 20; i += 2)
        sum += load_be16(ip + i);
    sum = (sum & 0xffff) + (sum >> 16);
    store_be16(ip + 10, (uint16_t) ~((sum & 0xffff) + (sum >> 16)));
    decode_line(&p, &f, l, buf, len, number, true);
    cr_assert_eq(p.icrc, CRC_GOOD);
    f.iface = iface;
    judge_packet(j, &p);
}

#define NOT_ECT 0
#define ECT     2
#define CE      3

/* What became of `rule`; end and free the judge. */
static enum result result_of(struct judge *j, enum rule rule)
{
    enum result r = V_PASS;

    judge_end(j);
    for (size_t i = 0; i < findings_n(judge_findings(j)); i++)
        if (findings_at(judge_findings(j), i)->rule == rule && findings_at(judge_findings(j), i)->severity != SEV_I)
            r = (enum result)findings_at(judge_findings(j), i)->result;
    judge_free(j);
    return r;
}

static struct judge *judge_at(enum tap_side side)
{
    struct judge *j = judge_new(&(struct judge_opts){.complete = true, .tap = {[0 ... JUDGE_TAPS - 1] = side}});

    learn(j);
    return j;
}

/* End 1 opens a connection as well, and sends a request there. */
static void open_back(struct judge *j, ns_t ts, uint64_t number)
{
    const struct line l = {.ts = ts, .from = 1, .opcode = OP_SEND_ONLY, .psn = 10, .qp = 0x22};

    learn_back(j);
    judge_line(j, &l, number);
}

/* What becomes of a CE mark on a request of end 0, which opened the connection, at the tap of the requester; `back`:
 * end 1 opens a connection as well, later. */
static enum result of_mark(bool back)
{
    static const struct line first = SEND(0, 10, 1);
    struct judge *j = judge_at(TAP_REQUESTER);

    judge_ecn(j, &first, 1, 0, CE);
    if (back)
        open_back(j, US, 2);
    return result_of(j, RULE_FMT_12);
}

Test(judge_sides, a_mark_at_its_sender_is_inconclusive_once_both_hosts_open_connections)
{
    cr_expect_eq(of_mark(false), V_FAIL);
    cr_expect_eq(of_mark(true), V_INCONCLUSIVE);
}

/* What becomes of an ACK beyond a READ whose response has not left, at the tap of `side`. */
static enum result of_early_ack(enum tap_side side, bool back)
{
    static const struct line lines[] = {READ(0, 10, 1), SEND(US, 11, 2), ACK(10 * US, 11, 2, 3),
                                        READ_RESPONSE(20 * US, 10, 1, 4)};
    struct judge *j = judge_at(side);

    for (size_t i = 0; i < ARRAY_LEN(lines); i++)
        judge_line(j, &lines[i], i + 1);
    if (back)
        open_back(j, 30 * US, 5);
    return result_of(j, RULE_RDA_11);
}

Test(judge_sides, the_order_of_responses_is_judged_at_the_responder_of_a_connection_that_only_its_peer_opens)
{
    cr_expect_eq(of_early_ack(TAP_RESPONDER, false), V_FAIL);
    cr_expect_neq(of_early_ack(TAP_REQUESTER, false), V_FAIL);
    cr_expect_eq(of_early_ack(TAP_RESPONDER, true), V_INCONCLUSIVE);
}

/* A pause frame of 65535 quanta for all classes, from the station with this MAC address. */
static void judge_pause_of(struct judge *j, const uint8_t *mac, ns_t ts, uint64_t number)
{
    uint8_t b[60] = {0x01, 0x80, 0xc2, 0, 0, 1, [12] = 0x88, 0x08, 1, 1, 0, 0xff};
    struct frame f = {.ts = NS_PER_S + ts,
                      .has_ts = true,
                      .data = b,
                      .caplen = sizeof b,
                      .len = sizeof b,
                      .number = number,
                      .linktype = LINK_ETHERNET};
    struct pkt p;

    memcpy(b + 6, mac, 6);
    memset(b + 18, 0xff, 16);
    pkt_decode(&p, &f, &(struct decode_opts){.verify = true});
    judge_packet(j, &p);
}

/* What becomes of a request that end 0 sends 15 us after a switch, its neighbour or that of the other end, has paused
 * the port. At 800 Gbit/s 65535 quanta are 42 us. */
static enum result of_paused(enum tap_side side, bool back, ns_t after)
{
    static const uint8_t port[6] = {2, 0, 0, 0, 0, 0x99};
    static const struct line first = SEND(0, 10, 1), answer = ACK(US, 10, 1, 2);
    struct judge *j = judge_at(side);

    judge_line(j, &first, 1);
    judge_line(j, &answer, 2);
    judge_pause_of(j, port, 2 * US, 3);
    judge_line(j, &(struct line)SEND(2 * US + after, 11, 3), 4);
    if (back)
        open_back(j, 100 * US, 5);
    return result_of(j, RULE_CC_07);
}

Test(judge_sides, a_host_whose_neighbour_has_paused_it_is_silent)
{
    cr_expect_eq(of_paused(TAP_REQUESTER, false, 15 * US), V_FAIL);
    cr_expect_eq(of_paused(TAP_REQUESTER, false, 5 * US), V_PASS, "packets were on their way");
    cr_expect_eq(of_paused(TAP_REQUESTER, false, 50 * US), V_PASS, "the pause is over");
    cr_expect_eq(of_paused(TAP_RESPONDER, false, 15 * US), V_PASS, "it is not the link of the sender");
    cr_expect_eq(of_paused(TAP_UNKNOWN, false, 15 * US), V_PASS);
}

Test(judge_sides, a_packet_of_a_paused_neighbour_is_inconclusive_once_both_hosts_open_connections)
{
    cr_expect_eq(of_paused(TAP_REQUESTER, true, 15 * US), V_INCONCLUSIVE);
}

/* Request 10 is not ECN-capable at interface 0, nor is what follows it: request 10 `again`, or request 11 with bits
 * `next`. What becomes of it if it is marked at interface 1. */
static enum result of_mark_between(bool again, uint8_t next)
{
    static const struct line first = SEND(0, 10, 1), resent = SEND(US, 10, 2), second = SEND(US, 11, 3);
    struct judge *j = judge_at(TAP_UNKNOWN);

    judge_ecn(j, &first, 1, 0, NOT_ECT);
    judge_ecn(j, again ? &resent : &second, 2, 0, next);
    judge_ecn(j, &first, 3, 1, CE);
    return result_of(j, RULE_CC_11);
}

Test(judge_sides, a_mark_is_wrong_on_what_surely_is_the_same_packet_and_not_capable_at_another_tap)
{
    cr_expect_eq(of_mark_between(false, NOT_ECT), V_FAIL);
    cr_expect_eq(of_mark_between(true, NOT_ECT), V_PASS, "which of the two was marked is not known");
    cr_expect_eq(of_mark_between(false, ECT), V_PASS, "whether the sender is capable is not known");
}
