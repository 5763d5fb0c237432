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

/* Judge a line marked CE. */
static void judge_marked(struct judge *j, const struct line *l, uint64_t number)
{
    uint8_t buf[256], *ip = buf + 14;
    uint32_t len = line_frame(l, buf), sum = 0;
    struct frame f;
    struct pkt p;

    ip[1] |= 3;
    store_be16(ip + 10, 0);
    for (unsigned i = 0; i < 20; i += 2)
        sum += load_be16(ip + i);
    sum = (sum & 0xffff) + (sum >> 16);
    store_be16(ip + 10, (uint16_t) ~((sum & 0xffff) + (sum >> 16)));
    decode_line(&p, &f, l, buf, len, number, true);
    cr_assert_eq(p.icrc, CRC_GOOD);
    judge_packet(j, &p);
}

/* What becomes of a CE mark on a request of end 0, which opened the connection, at the tap of the requester; `back`:
 * end 1 opens a connection as well, later. */
static enum result of_mark(bool back)
{
    static const struct line first = SEND(0, 10, 1),
                             second = {.ts = US, .from = 1, .opcode = OP_SEND_ONLY, .psn = 10, .qp = 0x22};
    struct judge *j =
        judge_new(&(struct judge_opts){.complete = true, .tap = {[0 ... JUDGE_TAPS - 1] = TAP_REQUESTER}});
    enum result r = V_PASS;

    learn(j);
    judge_marked(j, &first, 1);
    if (back) {
        learn_back(j);
        judge_line(j, &second, 2);
    }
    judge_end(j);
    for (size_t i = 0; i < findings_n(judge_findings(j)); i++)
        if (findings_at(judge_findings(j), i)->rule == RULE_FMT_12)
            r = (enum result)findings_at(judge_findings(j), i)->result;
    judge_free(j);
    return r;
}

Test(judge_sides, a_mark_at_its_sender_is_inconclusive_once_both_hosts_open_connections)
{
    cr_expect_eq(of_mark(false), V_FAIL);
    cr_expect_eq(of_mark(true), V_INCONCLUSIVE);
}
