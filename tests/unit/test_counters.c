/* layer 5 (test): counters of adapters. */
#include "src/counters/counters.h"
#include "src/judge/judge.h"

#include <criterion/criterion.h>
#include <stdio.h>

/* "name value, name value": the counters that a text names. */
static const char *taken(const char *text)
{
    static struct buf b;
    const char *s = text;
    struct counter_value v;

    b.len = 0;
    while (counter_next(&s, text + strlen(text), &v))
        buf_printf(&b, "%s%s %llu", b.len ? ", " : "", v.counter->name, (unsigned long long)v.value);
    return buf_str(&b);
}

Test(counters, of_all_tools)
{
    cr_expect_str_eq(taken("link mlx5_0/1 rx_write_requests 7 packet_seq_err 12 out_of_sequence 3\n"),
                     "rx_write_requests 7, packet_seq_err 12, out_of_sequence 3");
    cr_expect_str_eq(taken("NIC statistics:\n     rx_discards_phy: 17\n     x_rx_discards_phy: 18\n"),
                     "rx_discards_phy 17");
    cr_expect_str_eq(taken("/sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts:44\nhw_counters/lifespan:10\n"),
                     "sent_pkts 44");
    cr_expect_str_eq(taken("[{\"ifname\":\"mlx5_0\",\"np_cnp_sent\":5,\"rp_cnp_handled\":6}]"),
                     "np_cnp_sent 5, rp_cnp_handled 6");
}

Test(counters, names_with_spaces_are_the_longest_known)
{
    cr_expect_str_eq(taken("Nak Sequence Error 4 Nak Sequence Error Implied 9 RNR sent 2 RNR received 0 RTO 1"),
                     "Nak Sequence Error 4, Nak Sequence Error Implied 9, RNR sent 2, RNR received 0, RTO 1");
    cr_expect_str_eq(taken("RNR sentinel 5 RTO1 6"), "");
}

Test(counters, values_that_are_no_numbers_are_passed_over)
{
    cr_expect_str_eq(taken("packet_seq_err:N/A (no PMA)\nrcvd_pkts:5"), "rcvd_pkts 5");
    cr_expect_str_eq(taken("packet_seq_err 0x15 rcvd_pkts"), "");
    cr_expect_str_eq(taken("packet_seq_err"), "");
    cr_expect_str_eq(taken(""), "");
}

Test(counters, each_name_is_found_and_means_one_thing)
{
    for (const struct counter_info *c = counter_table; c->name; c++) {
        size_t n;
        char name[64];
        snprintf(name, sizeof name, "%s", c->name);
        for (char *p = name; *p; p++)
            *p = *p == '#' ? '3' : *p;
        cr_expect_str_eq(counter_find(name, strlen(name), &n)->name, c->name);
        cr_expect_eq(n, strlen(name));
        cr_expect(c->bits == 32 || c->bits == 64);
        for (const struct counter_info *o = counter_table; o < c; o++)
            if (strcmp(o->name, c->name) == 0)
                cr_expect(o->concept == c->concept && o->driver != c->driver, "%s", c->name);
    }
}

/* What the counters of a concept have added between two texts: "NAMES: N", "NAMES: at least N". */
static const char *added(const char *before, const char *after, enum counter_concept concept)
{
    static struct counter_reading from, to;
    static struct buf b;
    struct counter_sum sum;

    counter_read(&from, before, strlen(before));
    counter_read(&to, after, strlen(after));
    counter_added(*before ? &from : NULL, &to, concept, &sum);
    b.len = 0;
    buf_printf(&b, "%s: %s%llu", buf_str(&sum.names), sum.exact ? "" : "at least ", (unsigned long long)sum.added);
    buf_free(&sum.names);
    return buf_str(&b);
}

Test(counters, narrow_counters_wrap)
{
    const char *before = "packet_seq_err 4294967290 rdma_tx_packets 100",
               *after = "packet_seq_err 5 rdma_tx_packets 150";

    cr_expect_str_eq(added(before, after, COUNTED_SENT), "rdma_tx_packets: 50");
    cr_expect_str_eq(added(before, after, COUNTED_SEQ_NAK_RECEIVED), "packet_seq_err: 11");
    cr_expect_str_eq(added("", after, COUNTED_SEQ_NAK_RECEIVED), "packet_seq_err: 5");
    cr_expect_str_eq(added("sent_pkts 9", after, COUNTED_SEQ_NAK_RECEIVED), ": at least 0", "not in both");
}

Test(counters, of_a_concept_are_summed_up_but_not_those_of_another_name)
{
    cr_expect_str_eq(added("", "rp_cnp_handled 4 rp_cnp_ignored 3", COUNTED_CNP_RECEIVED),
                     "rp_cnp_handled + rp_cnp_ignored: 7");
    cr_expect_str_eq(added("", "rp_cnp_handled 4 cc_rx_cnp_pkts 4", COUNTED_CNP_RECEIVED), "rp_cnp_handled: 4");
    cr_expect_str_eq(added("", "cc_rx_cnp_pkts 4", COUNTED_CNP_RECEIVED), "cc_rx_cnp_pkts: 4");
    cr_expect_str_eq(added("", "rx_prio0_pause 1 rx_prio3_pause 5 rx_prio3_pause_duration 70", COUNTED_PAUSE),
                     "rx_prio#_pause: at least 6");
    cr_expect_str_eq(added("", "link a/1 packet_seq_err 4\nlink b/1 packet_seq_err 5", COUNTED_SEQ_NAK_RECEIVED),
                     "packet_seq_err: 9", "several ports");
    cr_expect_str_eq(added("", "rx_pkt 100\nrx_rc_pkt 60\nrx_uc_pkt 30\nrx_ud_pkt 10", COUNTED_RECEIVED),
                     "rx_pkt: at least 100", "parts of it are no further packets");
    cr_expect_str_eq(added("", "rx_rc_pkt 60\nrx_ud_pkt 10", COUNTED_RECEIVED), "rx_rc_pkt + rx_ud_pkt: at least 70");
}

Test(counters, a_name_of_several_drivers_is_that_of_the_driver_that_knows_the_others)
{
    cr_expect_str_eq(added("duplicate_request 4294967290 sent_pkts 1 rcvd_pkts 1",
                           "duplicate_request 4294967300 sent_pkts 5 rcvd_pkts 1", COUNTED_DUPLICATE_REQUEST),
                     "duplicate_request: at least 10", "of rxe: 64 bits");
    cr_expect_str_eq(added("duplicate_request 4294967290 packet_seq_err 1", "duplicate_request 4 packet_seq_err 1",
                           COUNTED_DUPLICATE_REQUEST),
                     "duplicate_request: at least 10", "of mlx5: 32 bits");
    cr_expect_str_eq(added("", "rx_read_requests 5 requester_oos_nak 1 received_ecns 2", COUNTED_READ_RECEIVED),
                     "rx_read_requests: at least 5", "of mana");
    cr_expect_str_eq(added("", "rx_write_requests 7 rx_send_requests 3 requester_oos_nak 1", COUNTED_SEND_RECEIVED),
                     "rx_send_requests: at least 3", "of mana");
    cr_expect_str_eq(added("rdma_read_wrs 4 retrans_pkts 3", "rdma_read_wrs 9 retrans_pkts 3", COUNTED_READ_SENT),
                     "rdma_read_wrs: at least 5", "of efa");
    cr_expect_str_eq(added("", "rx_bytes 7 rdma_write_wr_err 1 retrans_pkts 3", COUNTED_BYTES_RECEIVED),
                     "rx_bytes: at least 7", "of efa");
    cr_expect_str_eq(added("", "rx_read_requests 5 packet_seq_err 0", COUNTED_READ_RECEIVED), "rx_read_requests: 5");
}

Test(counters, what_passes_an_interface_is_not_all_rdma)
{
    static struct counter_reading r;

    cr_expect_str_eq(added("", "tx_packets: 900 rx_bytes: 5 tx_vport_rdma_unicast_packets: 3", COUNTED_SENT),
                     "tx_vport_rdma_unicast_packets: 3", "of ethtool -S, mlx5");
    cr_expect_str_eq(added("", "tx_packets: 900 rx_bytes: 5 sent_pkts 4", COUNTED_SENT), "sent_pkts: 4",
                     "of soft-RoCE and its interface");
    cr_expect_str_eq(added("", "tx_packets 900 requester_timeout 2", COUNTED_SENT), "tx_packets: 900", "of mana");
    cr_expect_str_eq(added("", "tx_bytes 900 rx_packets 2 to_retransmits 1", COUNTED_BYTES_SENT),
                     "tx_bytes: at least 900", "of bnxt_re");
    cr_expect_str_eq(added("", "tx_bytes 900 rx_packets 2 to_retransmits 1", COUNTED_RECEIVED), ": at least 0");
    cr_expect_not(counter_read(&r, "tx_packets 9 rx_packets 8", 25));
}

Test(counters, labels_end_soon)
{
    struct buf b = {0};

    buf_puts(&b, "packet_seq_err{a=\"");
    for (unsigned i = 0; i < 2000; i++)
        buf_char(&b, 'x');
    buf_puts(&b, "\"} 5 sent_pkts{b=\"1\"} 4");
    cr_expect_str_eq(taken(buf_str(&b)), "sent_pkts 4");
    buf_free(&b);
}

Test(counters, of_node_exporter)
{
    cr_expect_str_eq(
        taken("# HELP node_infiniband_packet_sequence_errors_total The number of received NAK sequence error packets.\n"
              "# TYPE node_infiniband_packet_sequence_errors_total counter\n"
              "node_infiniband_packet_sequence_errors_total{device=\"mlx5_0\",port=\"1\"} 1.234567e+06\n"
              "node_infiniband_np_cnp_packets_sent_total{device=\"mlx5_0\",port=\"1\"} 7\n"
              "node_infiniband_unknown_total{device=\"mlx5_0\",port=\"1\"} 3\n"),
        "packet_seq_err 1234567, np_cnp_sent 7");
    cr_expect_str_eq(taken("node_infiniband_out_of_buffer_drops_total{device=\"a\"} 1.8446744073709552e+19 "), "",
                     "more than 64 bits");
    cr_expect_str_eq(taken("packet_seq_err 4.2e+1 rcvd_pkts 1.5 sent_pkts 2."),
                     "packet_seq_err 42, rcvd_pkts 1, sent_pkts 2");
    cr_expect_str_eq(taken("packet_seq_err{"), "");
}

Test(counters, of_all_drivers)
{
    cr_expect_str_eq(taken("tx_vport_rdma_unicast_packets: 3\n rx_prio5_cong_discard: 4\n rx_prio8x_pause: 5\n"),
                     "tx_vport_rdma_unicast_packets 3, rx_prio#_cong_discard 4");
    cr_expect_str_eq(taken("rx_roce_good_pkts:1\nrx_send_req:2"), "rx_roce_good_pkts 1, rx_send_req 2");
    cr_expect_str_eq(taken("Rx atomics 5 iwInRdmaReads 6 TxUDP 7"), "Rx atomics 5, iwInRdmaReads 6, TxUDP 7");
    cr_expect_str_eq(taken("received_cnp_count 1 dup_rx_requests 2"), "received_cnp_count 1, dup_rx_requests 2");
    cr_expect_str_eq(taken("rdma_read_wr_err:1\nrx_rc_pkt:2"), "rdma_read_wr_err 1, rx_rc_pkt 2");
}

/* Of a host without a trace: "NAMES VERDICT, ...". */
static void put_verdict(void *user, const struct judge_counted *c)
{
    struct buf *b = user;

    buf_printf(b, "%s%s %s", b->len ? ", " : "", c->names, c->verdict);
}

Test(counters, each_gets_a_verdict)
{
    static struct judge_host h = {.seen = {[0] = 50, [1] = 7, [3] = 4, [6] = 2}};
    const char *text = "rdma_tx_packets 50 rdma_rx_packets 9 rp_cnp_handled 0 packet_seq_err 1 out_of_buffer 5";
    struct buf b = {0};

    cr_assert(counter_read(&h.after, text, strlen(text)));
    judge_counted(&h, put_verdict, &b);
    cr_expect_str_eq(buf_str(&b),
                     "rdma_tx_packets exact, rdma_rx_packets over, packet_seq_err under, out_of_buffer not "
                     "compared, rp_cnp_handled stuck");
    buf_free(&b);
}

Test(counters, what_the_wire_does_not_show_is_not_compared)
{
    static struct judge_host h;
    const char *text = "out_of_buffer 5 roce_adp_retrans 7 rx_drops 3";
    struct buf b = {0};

    cr_assert(counter_read(&h.after, text, strlen(text)), "known");
    judge_counted(&h, put_verdict, &b);
    cr_expect(!strstr(buf_str(&b), "over") && !strstr(buf_str(&b), "exact"), "%s", buf_str(&b));
    cr_assert_not(counter_read(&h.after, "nothing 5", 9));
    buf_free(&b);
}
