/* layer 5 (test): counters that a cause asks for. */
#include "src/counters/cause_counters.h"

#include <criterion/criterion.h>

Test(cause_counters, a_cause_asks_for_those_of_each_driver)
{
    const struct counter_info *found[4];
    struct buf b = {0};

    cr_assert_eq(counters_for_cause(CAUSE_RNR, DRIVER_IRDMA, true, found, 4), 1);
    cr_assert_str_eq(found[0]->name, "RNR sent");
    cr_assert_eq(counters_for_cause(CAUSE_MIGREQ_MISMATCH, DRIVER_MLX5, true, found, 4), 0);
    cr_assert_eq(counters_for_cause(CAUSE_PACKET_LOSS, DRIVER_MLX5, true, found, 1), 1, "no more than there is room");
    counters_for_cause_put(&b, CAUSE_REORDER, true);
    cr_assert_str_eq(buf_str(&b), "mlx5 out_of_sequence; bnxt_re oos_drop_count; irdma Rcvd Out of order packets; "
                                  "rxe out_of_seq_request; mana responder_oos");
    b.len = 0;
    counters_for_cause_put(&b, CAUSE_SILENT_PEER, true);
    cr_assert(strstr(buf_str(&b), "hns rx_pkt; efa rx_pkts"), "%s: none that are part of another one", buf_str(&b));
    b.len = 0;
    counters_for_cause_put(&b, CAUSE_MIGREQ_MISMATCH, false);
    cr_assert_eq(b.len, 0);
    buf_free(&b);
}
