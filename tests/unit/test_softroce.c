/* layer 3 (gen) tests: the packets of real soft-RoCE conversations (Linux 6.1, captured), and those of our endpoints
 * for the same work.
 *
 * Where they differ: soft-RoCE resends a whole WRITE with immediate after an RNR NAK of its last packet; ours resumes
 * at that packet, as the rules have it. */
#include "dissect/pkt.h"
#include "tests/unit/ep_pair.h"

#include <criterion/criterion.h>
#include <stdio.h>

/* From, opcode, PSN less the first one, AckReq, syndrome, MSN (0 where there is no AETH). */
struct row {
    uint8_t from, opcode;
    uint32_t psn;
    uint8_t ackreq, syndrome;
    uint32_t msn;
};

#define FIRST_PSN 0x123456

static struct pair *soft_pair(uint32_t psn)
{
    struct pair_opts o = pair_defaults();

    o.cfg[0].profile = o.cfg[1].profile = EP_RXE;
    o.own_psn = true;
    o.psn[0] = o.psn[1] = psn;
    o.peer.retry_cnt = 3;
    o.peer.timeout = 12;
    return pair_new(&o);
}

static void compare(const struct pair *p, uint32_t psn, const struct row *rows, unsigned n)
{
    char want[80], got[80];

    for (unsigned i = 0; i < n && i < p->n_log; i++) {
        snprintf(want, sizeof want, "from %u op %u psn %u a %u syndrome %u msn %u", rows[i].from, rows[i].opcode,
                 rows[i].psn, rows[i].ackreq, rows[i].syndrome, rows[i].msn);
        snprintf(got, sizeof got, "from %d op %u psn %u a %u syndrome %u msn %u", p->log[i].from, p->log[i].opcode,
                 (p->log[i].psn - psn) & PSN_MASK, p->log[i].ackreq, p->log[i].syndrome, p->log[i].msn);
        cr_expect_str_eq(got, want, "packet %u", i);
    }
    cr_expect_eq(p->n_log, n);
    for (int i = 0; i < 2; i++)
        cr_expect_eq(ep_stats(p->ep[i])->own_check_failures, 0);
}

static void act(struct pair *p, struct send_wr wr, uint32_t len)
{
    if (wr.opcode >= WR_RDMA_WRITE && !wr.rkey) {
        wr.rkey = p->key[1];
        wr.remote_addr = PAIR_IOVA(1);
    }
    cr_assert_eq(pair_post(p, 0, wr, 0, len), 0);
    pair_run(p, p->now + NS_PER_S);
}

Test(softroce, all_kinds_of_requests_look_alike)
{
    static const struct row rows[] = {
        {0, 4, 0, 1, 0, 0},     {1, 17, 0, 0, 31, 1},   {0, 5, 1, 1, 0, 0},     {1, 17, 1, 0, 31, 2},
        {0, 0, 2, 0, 0, 0},     {0, 1, 3, 0, 0, 0},     {0, 3, 4, 1, 0, 0},     {1, 17, 4, 0, 31, 3},
        {0, 4, 5, 1, 0, 0},     {1, 17, 5, 0, 31, 4},   {0, 11, 6, 1, 0, 0},    {1, 17, 6, 0, 31, 5},
        {0, 11, 7, 1, 0, 0},    {1, 17, 7, 0, 31, 6},   {0, 6, 8, 0, 0, 0},     {0, 7, 9, 0, 0, 0},
        {0, 7, 10, 0, 0, 0},    {0, 7, 11, 0, 0, 0},    {0, 9, 12, 1, 0, 0},    {1, 17, 12, 0, 31, 7},
        {0, 10, 13, 1, 0, 0},   {1, 17, 13, 0, 31, 8},  {0, 12, 14, 1, 0, 0},   {1, 16, 14, 0, 31, 9},
        {0, 12, 15, 1, 0, 0},   {1, 16, 15, 0, 31, 10}, {0, 10, 16, 1, 0, 0},   {1, 17, 16, 0, 31, 11},
        {0, 6, 17, 0, 0, 0},    {0, 8, 18, 1, 0, 0},    {1, 17, 18, 0, 31, 12}, {0, 0, 19, 0, 0, 0},
        {0, 1, 20, 0, 0, 0},    {0, 2, 21, 1, 0, 0},    {1, 17, 21, 0, 31, 13}, {0, 20, 22, 1, 0, 0},
        {1, 18, 22, 0, 31, 14}, {0, 19, 23, 1, 0, 0},   {1, 18, 23, 0, 31, 15},
    };
    static const struct {
        uint8_t opcode, flags;
        uint32_t len;
    } ops[] = {{WR_SEND, 0, 64},
               {WR_SEND_WITH_IMM, 0, 100},
               {WR_SEND_WITH_IMM, 0, 3000},
               {WR_SEND, 0, 0},
               {WR_RDMA_WRITE_WITH_IMM, 0, 0},
               {WR_RDMA_WRITE_WITH_IMM, 0, 513},
               {WR_RDMA_WRITE_WITH_IMM, SEND_SOLICITED, 5000},
               {WR_RDMA_WRITE, 0, 0},
               {WR_RDMA_READ, 0, 0},
               {WR_RDMA_READ, 0, 5},
               {WR_RDMA_WRITE, 0, 1023},
               {WR_RDMA_WRITE, 0, 1025},
               {WR_SEND, SEND_SOLICITED, 2049},
               {WR_ATOMIC_FETCH_AND_ADD, 0, 8},
               {WR_ATOMIC_CMP_AND_SWP, 0, 8}};
    struct pair *p = soft_pair(FIRST_PSN);

    for (int i = 0; i < 10; i++)
        pair_recv(p, 1, 0, 0, 8192);
    for (unsigned i = 0; i < ARRAY_LEN(ops); i++)
        act(p, (struct send_wr){.opcode = ops[i].opcode, .flags = ops[i].flags}, ops[i].len);
    compare(p, FIRST_PSN, rows, ARRAY_LEN(rows));
    pair_free(p);
}

Test(softroce, wrap_of_the_psn_looks_alike)
{
    static const struct row rows[] = {
        {0, 0, 0, 0, 0, 0},   {0, 1, 1, 0, 0, 0},    {0, 1, 2, 0, 0, 0},    {0, 1, 3, 0, 0, 0},    {0, 2, 4, 1, 0, 0},
        {1, 17, 4, 0, 31, 1}, {0, 12, 5, 1, 0, 0},   {1, 13, 5, 0, 31, 2},  {1, 14, 6, 0, 0, 0},   {1, 14, 7, 0, 0, 0},
        {1, 14, 8, 0, 0, 0},  {1, 14, 9, 0, 0, 0},   {1, 15, 10, 0, 31, 2}, {0, 6, 11, 0, 0, 0},   {0, 7, 12, 0, 0, 0},
        {0, 8, 13, 1, 0, 0},  {1, 17, 13, 0, 31, 3}, {0, 5, 14, 1, 0, 0},   {1, 17, 14, 0, 31, 4},
    };
    struct pair *p = soft_pair(0xfffffd);

    for (int i = 0; i < 4; i++)
        pair_recv(p, 1, 0, 0, 8192);
    act(p, (struct send_wr){.opcode = WR_SEND}, 5000);
    act(p, (struct send_wr){.opcode = WR_RDMA_READ}, 6000);
    act(p, (struct send_wr){.opcode = WR_RDMA_WRITE}, 3000);
    act(p, (struct send_wr){.opcode = WR_SEND_WITH_IMM}, 1);
    compare(p, 0xfffffd, rows, ARRAY_LEN(rows));
    pair_free(p);
}

/* Loses the first frame that carries `pair_drop`. */
static uint8_t drop_opcode;
static unsigned drop_nth;
static int drop_one(struct pair *p, int from, uint8_t *frame, uint32_t len, ns_t *extra)
{
    (void)from, (void)frame, (void)len, (void)extra;
    return !(p->log[p->n_log - 1].opcode == drop_opcode && drop_nth && --drop_nth == 0);
}

Test(softroce, lost_middle_is_recovered_alike)
{
    static const struct row rows[] = {
        {0, 0, 0, 0, 0, 0}, {0, 1, 1, 0, 0, 0},   {0, 1, 2, 0, 0, 0}, {0, 1, 3, 0, 0, 0},   {0, 1, 4, 0, 0, 0},
        {0, 2, 5, 1, 0, 0}, {1, 17, 2, 0, 96, 0}, {0, 1, 2, 0, 0, 0}, {0, 1, 3, 0, 0, 0},   {0, 1, 4, 0, 0, 0},
        {0, 2, 5, 1, 0, 0}, {1, 17, 5, 0, 31, 1}, {0, 4, 6, 1, 0, 0}, {1, 17, 6, 0, 31, 2},
    };
    struct pair *p = soft_pair(FIRST_PSN);

    drop_opcode = 1;
    drop_nth = 2;
    p->hook = drop_one;
    for (int i = 0; i < 4; i++)
        pair_recv(p, 1, 0, 0, 8192);
    act(p, (struct send_wr){.opcode = WR_SEND}, 6000);
    act(p, (struct send_wr){.opcode = WR_SEND}, 10);
    compare(p, FIRST_PSN, rows, ARRAY_LEN(rows));
    pair_free(p);
}

Test(softroce, lost_read_answer_is_recovered_alike)
{
    static const struct row rows[] = {
        {0, 12, 0, 1, 0, 0},  {1, 13, 0, 0, 31, 1}, {1, 14, 1, 0, 0, 0},  {1, 14, 2, 0, 0, 0},  {1, 14, 3, 0, 0, 0},
        {1, 14, 4, 0, 0, 0},  {1, 14, 5, 0, 0, 0},  {1, 14, 6, 0, 0, 0},  {1, 15, 7, 0, 31, 1}, {0, 12, 2, 1, 0, 0},
        {1, 14, 2, 0, 0, 0},  {1, 14, 3, 0, 0, 0},  {1, 14, 4, 0, 0, 0},  {1, 14, 5, 0, 0, 0},  {1, 14, 6, 0, 0, 0},
        {1, 15, 7, 0, 31, 1}, {0, 4, 8, 1, 0, 0},   {1, 17, 8, 0, 31, 2},
    };
    struct pair *p = soft_pair(FIRST_PSN);

    drop_opcode = 14;
    drop_nth = 2;
    p->hook = drop_one;
    pair_recv(p, 1, 0, 0, 100);
    act(p, (struct send_wr){.opcode = WR_RDMA_READ}, 8000);
    act(p, (struct send_wr){.opcode = WR_SEND}, 16);
    compare(p, FIRST_PSN, rows, ARRAY_LEN(rows));
    cr_expect_eq(ep_stats(p->ep[0])->local_ack_timeout_err, 1);
    pair_free(p);
}

Test(softroce, udp_source_ports_are_those_of_linux)
{
    cr_expect_eq(sport_flow.pick(NULL, 1, 0, 0, 0), 55410, "QP 1");
    cr_expect_eq(sport_flow.pick(NULL, 0x3c, 0x3e, 0, 0), 52872, "product of the QPNs");
    cr_expect_eq(sport_flow.pick(NULL, 0x3c, 0x3e, 0x7f000, 0), 61471, "flow label of the REQ");
}

Test(softroce, lost_atomic_answer_is_recovered_alike)
{
    static const struct row rows[] = {
        {0, 20, 0, 1, 0, 0}, {1, 18, 0, 0, 31, 1}, {0, 20, 0, 1, 0, 0}, {1, 18, 0, 0, 31, 1},
        {0, 20, 1, 1, 0, 0}, {1, 18, 1, 0, 31, 2}, {0, 19, 2, 1, 0, 0}, {1, 18, 2, 0, 31, 3},
    };
    struct pair *p = soft_pair(FIRST_PSN);
    uint64_t v;

    drop_opcode = 18;
    drop_nth = 1;
    p->hook = drop_one;
    act(p, (struct send_wr){.opcode = WR_ATOMIC_FETCH_AND_ADD, .compare_add = 7}, 8);
    act(p, (struct send_wr){.opcode = WR_ATOMIC_FETCH_AND_ADD, .compare_add = 1}, 8);
    act(p, (struct send_wr){.opcode = WR_ATOMIC_CMP_AND_SWP, .compare_add = 8, .swap = 1}, 8);
    compare(p, FIRST_PSN, rows, ARRAY_LEN(rows));
    memcpy(&v, p->mem[1], 8);
    cr_expect_eq(v, 1, "the lost answer's atomic was not executed again");
    pair_free(p);
}

Test(softroce, retry_count_three_makes_four_transmissions)
{
    static const struct row rows[] = {{0, 4, 0, 1, 0, 0}, {0, 4, 0, 1, 0, 0}, {0, 4, 0, 1, 0, 0}, {0, 4, 0, 1, 0, 0}};
    struct pair *p = soft_pair(FIRST_PSN);

    ep_qp_destroy(p->ep[1], p->qp[1]);
    act(p, (struct send_wr){.opcode = WR_SEND}, 16);
    compare(p, FIRST_PSN, rows, ARRAY_LEN(rows));
    for (int i = 1; i < 4; i++)
        cr_expect_eq(p->log[i].at - p->log[i - 1].at, ack_timeout(12));
    cr_expect_eq(pair_wc(p, 0).status, WC_RETRY_EXC_ERR);
    pair_free(p);
}

Test(softroce, receive_posted_late_looks_alike)
{
    static const struct row rows[] = {
        {0, 0, 0, 0, 0, 0}, {0, 2, 1, 1, 0, 0}, {1, 17, 0, 0, 44, 0}, {1, 17, 0, 0, 96, 0},
        {0, 0, 0, 0, 0, 0}, {0, 2, 1, 1, 0, 0}, {1, 17, 1, 0, 31, 1},
    };
    struct pair *p = soft_pair(FIRST_PSN);
    uint8_t buf[EP_FRAME_MAX];
    int len;

    pair_post(p, 0, (struct send_wr){.opcode = WR_SEND}, 0, 2000);
    for (int i = 0; i < 2; i++) { /* one at a time, as they arrived there */
        len = ep_tx(p->ep[0], buf, sizeof buf, 0);
        pair_log(p, 0, buf, (uint32_t)len);
        pair_put(p, 1, buf, (uint32_t)len, 1000 + i);
    }
    pair_run(p, 100 * NS_PER_US);
    pair_recv(p, 1, 0, 0, 8192);
    pair_run(p, NS_PER_S);
    compare(p, FIRST_PSN, rows, ARRAY_LEN(rows));
    pair_free(p);
}

Test(softroce, message_too_long_looks_alike)
{
    static const struct row rows[] = {{0, 4, 0, 1, 0, 0}, {1, 17, 0, 0, 31, 1}, {0, 0, 1, 0, 0, 0},
                                      {0, 1, 2, 0, 0, 0}, {0, 2, 3, 1, 0, 0},   {1, 17, 1, 0, 99, 1}};
    struct pair *p = soft_pair(FIRST_PSN);

    pair_recv(p, 1, 0, 0, 1000);
    pair_recv(p, 1, 0, 0, 1000);
    act(p, (struct send_wr){.opcode = WR_SEND}, 1000);
    act(p, (struct send_wr){.opcode = WR_SEND}, 3000);
    compare(p, FIRST_PSN, rows, ARRAY_LEN(rows));
    pair_free(p);
}

Test(softroce, window_invalidated_by_a_send_refuses_the_next_write_alike)
{
    static const struct row rows[] = {{0, 10, 0, 1, 0, 0},  {1, 17, 0, 0, 31, 1}, {0, 23, 1, 1, 0, 0},
                                      {1, 17, 1, 0, 31, 2}, {0, 10, 2, 1, 0, 0},  {1, 17, 2, 0, 98, 2}};
    struct pair *p = soft_pair(FIRST_PSN);
    uint32_t mw;

    ep_mw_alloc(p->ep[1], p->pd[1], MR_WINDOW2, &mw);
    pair_recv(p, 1, 0, 0, 1000);
    pair_post(p, 1,
              (struct send_wr){.opcode = WR_BIND_MW,
                               .inv_rkey = mw,
                               .rkey = mw + 1,
                               .mr_key = p->key[1],
                               .remote_addr = PAIR_IOVA(1),
                               .mw_length = 100,
                               .mw_access = ACCESS_REMOTE_WRITE},
              0, 0);
    pair_run(p, NS_PER_MS);
    cr_assert_eq(pair_wc(p, 1).opcode, WC_BIND_MW);
    act(p, (struct send_wr){.opcode = WR_RDMA_WRITE, .rkey = mw + 1, .remote_addr = PAIR_IOVA(1)}, 10);
    act(p, (struct send_wr){.opcode = WR_SEND_WITH_INV, .inv_rkey = mw + 1}, 33);
    act(p, (struct send_wr){.opcode = WR_RDMA_WRITE, .rkey = mw + 1, .remote_addr = PAIR_IOVA(1)}, 10);
    compare(p, FIRST_PSN, rows, ARRAY_LEN(rows));
    cr_expect(pair_wc(p, 1).flags & WC_WITH_INV);
    pair_free(p);
}
