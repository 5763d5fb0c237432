/* layer 5 (test): counters of adapters. */
#include "src/counters/counters.h"
#include "src/judge/judge.h"

#include <criterion/criterion.h>

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
                     "packet_seq_err 12, out_of_sequence 3");
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
        cr_expect_str_eq(counter_find(c->name, strlen(c->name))->name, c->name);
        cr_expect(c->bits == 32 || c->bits == 64);
        for (const struct counter_info *o = counter_table; o < c; o++)
            if (strcmp(o->name, c->name) == 0)
                cr_expect(o->concept == c->concept && o->driver != c->driver, "%s", c->name);
    }
}

Test(counters, narrow_counters_wrap)
{
    struct judge_host h = {0};
    const char *before = "packet_seq_err 4294967290 sent_pkts 100", *after = "packet_seq_err 5 sent_pkts 150";

    cr_assert(judge_counters(&h, before, strlen(before), true));
    cr_assert(judge_counters(&h, after, strlen(after), false));
    cr_assert_eq(h.value[0], 50, "sent");
    cr_assert_eq(h.value[6], 11, "sequence NAKs received");
    cr_assert(h.have[6]);
}

Test(counters, what_the_wire_does_not_show_is_not_compared)
{
    struct judge_host h = {0};
    const char *text = "out_of_buffer 5 roce_adp_retrans 7 rx_drops 3";

    cr_assert(judge_counters(&h, text, strlen(text), false), "known");
    for (unsigned i = 0; i < JUDGE_COUNTS; i++)
        cr_assert_not(h.have[i]);
    cr_assert_not(judge_counters(&h, "nothing 5", 9, false));
}
