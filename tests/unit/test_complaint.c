/* layer 5 (test): complaints of applications, as their logs have them. */
#include "src/cli/capture_cmd.h"
#include "src/complaint/complaint.h"
#include "src/transport/verbs.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static struct complaints all;

static void setup(void)
{
    memset(&all, 0, sizeof all);
}

TestSuite(complaint, .init = setup);

static void line(const char *s)
{
    complaint_line(&all, s, strlen(s));
}

static const char *told(unsigned i)
{
    static struct buf b;

    b.len = 0;
    complaint_put(&b, &all.of[i]);
    return buf_str(&b);
}

static struct conn_addr address(const char *text)
{
    struct conn_addr a;

    cr_assert(conn_addr_parse(text, &a));
    return a;
}

Test(complaint, of_nccl)
{
    line("hostname-test:984:1357 [4] ib_plugin.c:1615 NCCL WARN NET/IB : Got completion from peer 172.36.143.59<44206> "
         "with status=12 opcode=129 len=65536 vendor err 129 (Recv) localGid ::ffff:29.87.88.182 "
         "remoteGids::ffff:29.87.4.221");
    line("hostname-test:984:1357 [4] NCCL INFO transport/net.cc:1298 -> 6");
    line("kp-ddp-worker-0:3468:3905 [4] ib_plugin.c:1615 NCCL WARN NET/IB : Got completion from peer "
         "10.216.210.236<54862> with status=12 opcode=0 len=0 vendor err 129 (Recv) localGid "
         "fd00:1148:9000:5000:4:200:3:ff22 remoteGidsfd00:1148:9000:5000:4:200:3:ff1f");
    cr_assert_eq(all.n, 2);
    cr_expect_str_eq(told(0), "NCCL: RETRY_EXC_ERR from peer 172.36.143.59, 29.87.88.182 to 29.87.4.221 (line 1)");
    cr_expect_str_eq(told(1), "NCCL: RETRY_EXC_ERR from peer 10.216.210.236, fd00:1148:9000:5000:4:200:3:ff22 to "
                              "fd00:1148:9000:5000:4:200:3:ff1f (line 3)");
    cr_expect_eq(all.of[0].vendor_err, 129);
    cr_expect_not(all.of[0].have_ts);
}

Test(complaint, of_nccl_with_names_of_states_and_times)
{
    setenv("TZ", "UTC", 1);
    tzset();
    line("[2026-09-09 10:46:33] ubuntu2:319733:319761 [1] transport/net_ib/p2p.cc:648 NCCL WARN NET/IB: Got completion "
         "from peer 10.153.235.13<40554> with status=IBV_WC_RETRY_EXC_ERR(12) "
         "opcode=IBV_WC_RECV_RDMA_WITH_IMM(129) vendor_err=129 localGid ::ffff:1.1.2.2 remoteGids::ffff:1.1.1.4 hca "
         "mlx5_1");
    cr_assert_eq(all.n, 1);
    cr_expect_str_eq(told(0), "NCCL: RETRY_EXC_ERR from peer 10.153.235.13, 1.1.2.2 to 1.1.1.4, mlx5_1 (line 1)");
    cr_expect(all.of[0].have_ts);
    cr_expect_eq(all.of[0].ts, INT64_C(1788950793) * NS_PER_S);
    cr_expect_eq(all.of[0].vendor_err, 129);
}

Test(complaint, of_older_nccl_and_of_a_peer_with_a_name)
{
    line("node-2:5776:5902 [0] transport/net_ib.cc:1296 NCCL WARN NET/IB : Got completion from peer 10.2.0.5<33092> "
         "with error 12, opcode 0, len 0, vendor err 129 (Recv)");
    line("NET/IB: Got completion from peer node20<57713> with status=4 opcode=0 len=0 vendor err 81 (Send) hca mlx5_0");
    cr_assert_eq(all.n, 2);
    cr_expect_str_eq(told(0), "NCCL: RETRY_EXC_ERR from peer 10.2.0.5 (line 1)");
    cr_expect_str_eq(told(1), "NCCL: LOC_PROT_ERR, mlx5_0 (line 2)");
}

Test(complaint, of_ucx)
{
    line("[lxbk1127:2330856:0:2330856] ib_mlx5_log.c:177  Transport retry count exceeded on mlx5_0:1/RoCE (synd 0x15 "
         "vend 0x81 hw_synd 0/0)");
    line("[lxbk1127:2330856:0:2330856] ib_mlx5_log.c:177  DCI QP 0xd16 wqe[6168]: SEND s-e [rqpn 0x17de rlid 1037] [va "
         "0x7f9f745cea80 len 5770 lkey 0x15de4]");
    line(
        "[ast1815:6807 :0:6807] ib_mlx5_log.c:115  FATAL: Error on mlx5_3:1 QP 0xe6d7 wqe[7821]: Transport retry count "
        "exceeded (synd 0x15 vend 0x81) opcode SEND");
    cr_assert_eq(all.n, 2);
    cr_expect_str_eq(told(0), "UCX: RETRY_EXC_ERR, QP 0x000d16, mlx5_0 (line 1)");
    cr_expect_eq(all.of[0].remote_qpn, 0x17de);
    cr_expect(all.of[0].have_remote_qpn);
    cr_expect_eq(all.of[0].vendor_err, 0x81);
    cr_expect_str_eq(told(1), "UCX: RETRY_EXC_ERR, QP 0x00e6d7, mlx5_3 (line 3)");
}

Test(complaint, of_ucx_with_a_gid)
{
    struct conn_addr a = address("10.0.0.1"), b = address("10.0.0.2"), c = address("10.0.0.3");

    line("[1612345678.123456] [node1:1234 :0]      ib_mlx5_log.c:177  UCX  ERROR Transport retry count exceeded on "
         "mlx5_0:1/RoCE (synd 0x15 vend 0x81 hw_synd 0/0)");
    line("[1612345678.123460] [node1:1234 :0]      ib_mlx5_log.c:177  UCX  ERROR RC QP 0x13 wqe[3]: RDMA_WRITE s-- "
         "[rqpn 0x3c5 dlid=0 sl=0 port=1 src_path_bits=0 dgid=::ffff:10.0.0.2 sgid_index=3 traffic_class=0] [rva 0x7f "
         "rkey 0x1] [va 0x7f len 8192 lkey 0x1]");
    cr_assert_eq(all.n, 1);
    cr_expect(all.of[0].have_ts);
    cr_expect(complaint_matches(&all.of[0], &a, &b));
    cr_expect_not(complaint_matches(&all.of[0], &a, &c), "another GID");
    cr_expect(complaint_is_about(&all.of[0], 0x3c5));
    cr_expect(complaint_is_about(&all.of[0], 0x13), "what the peer asks of it");
    cr_expect_not(complaint_is_about(&all.of[0], 0x14), "another queue pair");
    cr_expect(complaint_names(&all.of[0], &b));
    cr_expect_not(complaint_names(&all.of[0], &a));
}

Test(complaint, of_nccl_with_the_name_of_a_status)
{
    struct conn_addr a = address("10.0.0.1"), b = address("10.0.0.2");

    line("[2026-03-03 12:11:38] gpu2:881:1020 [0] transport/net_ib/p2p.cc:333 NCCL WARN NET/IB: Got completion from "
         "peer "
         "10.9.0.2<49414> with status=IBV_WC_WR_FLUSH_ERR(5) opcode=IBV_WC_RDMA_WRITE(1) reqSize=0 vendor_err=249 "
         "req_type=Recv localGid ::ffff:10.0.0.1 remoteGid ::ffff:10.0.0.2 hca mlx5_0");
    cr_assert_eq(all.n, 1);
    cr_expect_str_eq(told(0), "NCCL: WR_FLUSH_ERR from peer 10.9.0.2, 10.0.0.1 to 10.0.0.2, mlx5_0 (line 1)");
    cr_expect(all.of[0].have_ts);
    cr_expect_eq(all.of[0].vendor_err, 249);
    cr_expect(complaint_matches(&all.of[0], &b, &a));
}

Test(complaint, of_perftest)
{
    line(" Completion with error at client");
    line(" Failed status 10: wr_id 0 syndrom 0x88");
    line("scnt=128, ccnt=0");
    cr_assert_eq(all.n, 1);
    cr_expect_str_eq(told(0), "perftest: REM_ACCESS_ERR (line 2)");
    cr_expect_eq(all.of[0].vendor_err, 0x88);
}

Test(complaint, those_alike_are_counted)
{
    for (unsigned i = 0; i < 5; i++)
        line("NET/IB : Got completion from peer 10.0.0.2<1> with status=5 opcode=0 len=0 vendor err 249 (Send)");
    cr_assert_eq(all.n, 1);
    cr_expect_str_eq(told(0), "NCCL: WR_FLUSH_ERR from peer 10.0.0.2 (line 1, 5 times)");
}

Test(complaint, matches_by_gids_or_else_by_the_peer)
{
    struct conn_addr a = address("1.1.2.2"), b = address("1.1.1.4"), c = address("10.0.0.2"), d = address("10.0.0.9");

    line("Got completion from peer 10.0.0.2<1> with status=12 localGid ::ffff:1.1.2.2 remoteGids::ffff:1.1.1.4 hca x");
    line("Got completion from peer 10.0.0.2<1> with status=12 opcode=0");
    line(" Failed status 12: wr_id 0 syndrom 0x81");
    cr_assert_eq(all.n, 3);
    cr_expect(complaint_matches(&all.of[0], &a, &b));
    cr_expect(complaint_matches(&all.of[0], &b, &a));
    cr_expect_not(complaint_matches(&all.of[0], &a, &c), "the peer's address is not that of the adapter");
    cr_expect(complaint_matches(&all.of[1], &d, &c));
    cr_expect_not(complaint_matches(&all.of[1], &a, &b));
    cr_expect(complaint_matches(&all.of[2], &a, &d), "names no address");
}

Test(complaint, hostile_lines_are_bounded)
{
    static char long_line[100000];
    char text[200];

    memset(long_line, 'a', sizeof long_line);
    complaint_line(&all, long_line, sizeof long_line);
    memcpy(long_line, "Got completion from peer ", 25);
    complaint_line(&all, long_line, sizeof long_line);
    line("Got completion from peer ");
    line("Got completion from peer 1.2.3.4.5.6.7<> with status=99999999999999999999 localGid :::: remoteGids");
    line("Got completion from peer <> with status=( vendor err x hca \x1b[31m");
    line("(synd 0xfffffffff) on QP 0x");
    line("[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]Failed status -1: wr_id");
    for (uint32_t i = 0; i < all.n; i++) {
        cr_expect_eq(all.of[i].status, STATUS_UNKNOWN);
        cr_expect_eq(all.of[i].hca[0], '\0');
        cr_expect_not(all.of[i].have_peer || all.of[i].have_local || all.of[i].have_remote);
    }
    for (unsigned i = 0; i < 1000; i++) {
        snprintf(text, sizeof text, "Got completion from peer 10.0.%u.%u<1> with status=12", i / 250, i % 250);
        line(text);
    }
    cr_assert_eq(all.n, COMPLAINTS_MAX);
    cr_assert_gt(all.left_out, 900);
}

Test(complaint, a_file_is_read_line_by_line)
{
    char path[] = "/tmp/complaint-XXXXXX";
    int fd = mkstemp(path);
    FILE *f = fdopen(fd, "w");

    fputs("noise\n", f);
    for (unsigned i = 0; i < 20000; i++)
        fputc('x', f);
    fputs("\nGot completion from peer 10.0.0.2<1> with status=12", f);
    fclose(f);
    cr_assert_eq(complaint_read(path, &all), 0);
    unlink(path);
    cr_assert_eq(all.n, 1);
    cr_assert_eq(all.of[0].line, 3);
    cr_assert_lt(complaint_read("/nonexistent", &all), 0);
}
