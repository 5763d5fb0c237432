/* layer 3 (verbs) tests: XRC, windows of type 1 and fast registration over a provider that is not an endpoint itself.
 */
#include "tests/unit/provider_rig.h"

#include <errno.h>

/* Host 0 sends requests; host 1 has the memory, and an own queue pair to bind and register by. */
static struct bed {
    uint8_t mem[NET_HOSTS][256];
    uint32_t pd[NET_HOSTS], key[NET_HOSTS];
    int cq[NET_HOSTS], qp[NET_HOSTS];
} bed;

static void open_bed(void)
{
    open_hosts();
    memset(&bed, 0, sizeof bed);
    for (unsigned h = 0; h < NET_HOSTS; h++) {
        struct verbs *v = verbs(h);
        memset(bed.mem[h], h ? 0 : 0xa5, sizeof bed.mem[h]);
        bed.pd[h] = verbs_pd_alloc(v);
        bed.cq[h] = verbs_cq_create(v, 16);
        cr_assert_eq(verbs_mr_reg_iova(v, bed.pd[h], bed.mem[h], sizeof bed.mem[h], 0x1000,
                                       ACCESS_LOCAL_WRITE | ACCESS_MW_BIND, &bed.key[h]),
                     0);
    }
}

static void close_bed(void)
{
    for (unsigned h = 0; h < NET_HOSTS; h++) {
        cr_expect_eq(verbs_qp_destroy(verbs(h), bed.qp[h]), 0);
        cr_expect_eq(verbs_mr_dereg(verbs(h), bed.key[h]), 0);
    }
    close_hosts();
}

static void create(unsigned h, enum qp_type type, uint32_t xrcd)
{
    struct verbs_qp_init init = {.type = (uint8_t)type,
                                 .max_send_wr = 16,
                                 .max_recv_wr = 16,
                                 .sq_sig_all = true,
                                 .srq = EP_NO_SRQ,
                                 .send_cq = bed.cq[h],
                                 .recv_cq = bed.cq[h],
                                 .pd = bed.pd[h],
                                 .xrcd = xrcd};

    bed.qp[h] = verbs_qp_create(verbs(h), &init);
    cr_assert_geq(bed.qp[h], 0);
}

static void open_rc(void)
{
    open_bed();
    for (unsigned h = 0; h < NET_HOSTS; h++)
        create(h, QPT_RC, 0);
    join(bed.qp);
}

/* The only completion of a host, once all is quiet. */
static struct wc only(unsigned h)
{
    struct wc wc[2];

    go(NULL);
    cr_assert_eq(verbs_poll(verbs(h), bed.cq[h], wc, 2), 1);
    return wc[0];
}

/* Post a work request at a host; how it ends. */
static enum wc_status post(unsigned h, const struct send_wr *wr)
{
    cr_assert_eq(verbs_post_send(verbs(h), bed.qp[h], wr, rig.s.now), 0);
    return (enum wc_status)only(h).status;
}

/* Host 0 WRITEs 8 bytes. */
static enum wc_status write_8(uint32_t rkey, uint64_t va)
{
    struct sge sge = {0x1000, 8, bed.key[0]};

    return post(
        0, &(struct send_wr){.opcode = WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1, .rkey = rkey, .remote_addr = va});
}

/* How many bytes of host 1's memory were written. */
static unsigned written(void)
{
    unsigned n = 0;

    for (unsigned i = 0; i < sizeof bed.mem[1]; i++)
        n += bed.mem[1][i] == 0xa5;
    return n;
}

/* --- XRC -------------------------------------------------------------------------------------- */

static uint32_t xrcd;

static int new_queue(uint32_t domain, int cq)
{
    struct verbs_xrc_srq_init init = {.pd = bed.pd[1], .depth = 4, .max_sge = 1, .xrcd = domain, .cq = cq};

    return verbs_xrc_srq_create(verbs(1), &init);
}

static void open_xrc(void)
{
    open_bed();
    xrcd = verbs_xrcd_alloc(verbs(1));
    create(0, QPT_XRC_INI, 0);
    create(1, QPT_XRC_TGT, xrcd);
    join(bed.qp);
}

static void receive_into(int srq, uint64_t id)
{
    struct sge sge = {0x1000 + 16 * id, 16, bed.key[1]};
    struct recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1};

    cr_assert_eq(verbs(1)->ops->post_srq_recv(verbs(1), srq, &wr, 0), 0);
}

static enum wc_status send_8(uint32_t srqn)
{
    struct sge sge = {0x1000, 8, bed.key[0]};

    return post(0, &(struct send_wr){.opcode = WR_SEND, .sg_list = &sge, .num_sge = 1, .remote_srqn = srqn});
}

Test(provider, xrc_requests_take_the_receives_of_the_queue_that_they_name, .init = open_xrc, .fini = close_bed)
{
    int srq[2] = {new_queue(xrcd, bed.cq[1]), new_queue(xrcd, bed.cq[1])};
    uint32_t srqn[2];
    struct wc wc;

    for (unsigned i = 0; i < 2; i++) {
        cr_assert_neq(srqn[i] = verbs_srq_num(verbs(1), srq[i]), 0);
        receive_into(srq[i], i);
    }
    cr_assert_neq(srqn[0], srqn[1]);
    for (unsigned i = 2; i-- > 0;) {
        cr_expect_eq(send_8(srqn[i]), WC_SUCCESS);
        wc = only(1);
        cr_expect_eq(wc.wr_id, i);
        cr_expect_eq(wc.status, WC_SUCCESS);
        cr_expect_eq(wc.byte_len, 8);
        cr_expect_eq(wc.qpn, verbs_qp_num(verbs(1), bed.qp[1]), "the target, not the queue");
        cr_expect_eq(written(), 8 * (2 - i));
    }
    for (unsigned i = 0; i < 2; i++)
        cr_expect_eq(verbs_srq_destroy(verbs(1), srq[i]), 0);
}

Test(provider, an_xrc_queue_needs_its_domain_and_completion_queue, .init = open_xrc, .fini = close_bed)
{
    struct sge sge = {0x1000, 8, bed.key[0]};
    struct send_wr wr = {.opcode = WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1, .remote_addr = 0x1000};
    struct verbs_qp_init init = {.type = QPT_XRC_TGT, .srq = EP_NO_SRQ, .pd = bed.pd[1], .xrcd = xrcd + 1};

    init.send_cq = init.recv_cq = bed.cq[1];
    cr_expect_eq(new_queue(xrcd + 1, bed.cq[1]), -EINVAL);
    cr_expect_eq(new_queue(0, bed.cq[1]), -EINVAL);
    cr_expect_eq(new_queue(xrcd, bed.cq[1] + 1), -EINVAL);
    cr_expect_eq(verbs_qp_create(verbs(1), &init), -EINVAL);
    cr_expect_eq(verbs_post_send(verbs(1), bed.qp[1], &wr, 0), -EINVAL, "a target sends no request");
    cr_expect_eq(post(0, &wr), WC_REM_ACCESS_ERR);
}

Test(provider, the_number_of_a_destroyed_xrc_queue_is_refused, .init = open_xrc, .fini = close_bed)
{
    int srq = new_queue(xrcd, bed.cq[1]);
    uint32_t srqn = verbs_srq_num(verbs(1), srq);

    receive_into(srq, 0);
    cr_expect_eq(send_8(srqn), WC_SUCCESS);
    cr_expect_eq(only(1).status, WC_SUCCESS);
    receive_into(srq, 1);
    cr_expect_eq(verbs_srq_destroy(verbs(1), srq), 0);
    cr_expect_eq(verbs_srq_destroy(verbs(1), srq), -EINVAL);
    cr_expect_eq(verbs_srq_num(verbs(1), srq), 0);
    cr_expect_neq(send_8(srqn), WC_SUCCESS);
    cr_expect_eq(written(), 8);
    cr_expect_eq(new_queue(xrcd, bed.cq[1]), srq, "its place is used again");
    cr_expect_eq(verbs_srq_destroy(verbs(1), srq), 0);
}

Test(provider, a_shared_receive_queue_in_use_is_not_destroyed, .init = open_rc, .fini = close_bed)
{
    int srq = verbs_srq_create(verbs(1), bed.pd[1], 4, 1), qp;
    struct verbs_qp_init init = {
        .type = QPT_RC, .srq = srq, .pd = bed.pd[1], .send_cq = bed.cq[1], .recv_cq = bed.cq[1]};
    struct recv_wr wr = {.wr_id = 7};

    cr_assert_geq(qp = verbs_qp_create(verbs(1), &init), 0);
    cr_expect_eq(verbs_srq_destroy(verbs(1), srq), -EBUSY);
    cr_expect_eq(verbs_qp_destroy(verbs(1), qp), 0);
    cr_expect_eq(verbs_srq_destroy(verbs(1), srq), 0);
    cr_expect_eq(verbs(1)->ops->post_srq_recv(verbs(1), srq, &wr, 0), -EINVAL);
    cr_expect_eq(verbs_qp_create(verbs(1), &init), -EINVAL);
    cr_expect_eq(write_8(0, 0x1000), WC_REM_ACCESS_ERR);
}

/* --- Windows and fast registration ------------------------------------------------------------ */

Test(provider, a_type_1_window_is_valid_under_the_key_of_its_last_bind, .init = open_rc, .fini = close_bed)
{
    struct send_wr bind = {.mr_key = bed.key[1], .remote_addr = 0x1010, .mw_length = 8, .mw_access = 0};
    uint32_t key, first, two;

    bind.mw_access = ACCESS_REMOTE_WRITE;
    cr_expect_eq(verbs_mw_alloc(verbs(1), bed.pd[1], 3, &key), -EINVAL);
    cr_assert_eq(verbs_mw_alloc(verbs(1), bed.pd[1], 2, &two), 0);
    cr_expect_eq(verbs_mw_bind(verbs(1), bed.qp[1], &bind, &two, 0), -EINVAL, "of type 2");
    cr_assert_eq(verbs_mw_alloc(verbs(1), bed.pd[1], 1, &key), 0);
    first = key;
    for (unsigned i = 0; i < 2; i++) {
        cr_assert_eq(verbs_mw_bind(verbs(1), bed.qp[1], &bind, &key, rig.s.now), 0);
        cr_expect_eq(only(1).status, WC_SUCCESS);
        cr_expect_neq(key, first);
        cr_expect_eq(write_8(key, 0x1010), WC_SUCCESS);
        cr_expect_eq(written(), 8);
        memset(bed.mem[1], 0, sizeof bed.mem[1]);
        first = i ? first : key;
    }
    cr_expect_eq(verbs_mr_dereg(verbs(1), bed.key[1]), -EBUSY);
    cr_expect_eq(write_8(first, 0x1010), WC_REM_ACCESS_ERR);
    cr_expect_eq(written(), 0);
    cr_expect_eq(verbs_mw_dealloc(verbs(1), bed.key[1]), -EINVAL, "no window");
    cr_expect_eq(verbs_mw_dealloc(verbs(1), key), 0);
    cr_expect_eq(verbs_mw_dealloc(verbs(1), two), 0);
}

Test(provider, a_fast_registration_grants_access_until_it_is_invalidated, .init = open_rc, .fini = close_bed)
{
    struct send_wr reg = {.opcode = WR_REG_MR, .remote_addr = 0x9000, .mw_length = 8, .reg_mem = bed.mem[1] + 40};
    struct send_wr inv = {.opcode = WR_LOCAL_INV};
    uint32_t key;

    cr_expect_eq(verbs_mr_alloc(verbs(1), bed.pd[1], 0, &key), -EINVAL);
    cr_assert_eq(verbs_mr_alloc(verbs(1), bed.pd[1], 64, &key), 0);
    reg.mw_access = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE;
    reg.inv_rkey = key;
    reg.rkey = inv.inv_rkey = key + 1;
    cr_expect_eq(post(1, &reg), WC_SUCCESS);
    cr_expect_eq(write_8(key + 1, 0x9000), WC_SUCCESS);
    cr_expect_eq(written(), 8);
    cr_expect_eq(bed.mem[1][40], 0xa5);
    cr_expect_eq(post(1, &inv), WC_SUCCESS);
    memset(bed.mem[1], 0, sizeof bed.mem[1]);
    cr_expect_eq(write_8(key + 1, 0x9000), WC_REM_ACCESS_ERR);
    cr_expect_eq(written(), 0);
    cr_expect_eq(verbs_mr_dereg(verbs(1), key + 1), 0);
}
