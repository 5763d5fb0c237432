/* layer 5 (test): the schemes of congestion control beyond DCQCN's paper: what each does with an event. */
#include "src/cc/cc.h"
#include "src/cc/credit.h"
#include "src/cc/fair.h"

#include <criterion/criterion.h>

#define GBPS UINT64_C(1000000000)
#define MBPS UINT64_C(1000000)

static struct cc_config config;

/* A queue pair on a line of `line` with the scheme `text`, packets of 1000 bytes and an empty round trip of 4.16 us. */
static struct cc begin(const char *text, uint64_t line)
{
    struct text_error e;
    struct cc c;

    cr_assert(cc_parse(&config, text, &e), "%s", e.msg);
    cc_start(&c, &config, &(struct cc_limits){.line = line, .mtu = 1000, .base_rtt = 4160}, 0);
    return c;
}

static void ack(struct cc *c, uint32_t bytes, ns_t rtt, ns_t now)
{
    cc_acked(c, &(struct cc_ack){.bytes = bytes, .rtt = rtt}, now);
}

/* --- dcqcn-cx --------------------------------------------------------------------------------- */

Test(cc_dcqcn_cx, the_first_cnp_halves_the_rate_after_the_period_of_cuts)
{
    struct cc c = begin("dcqcn-cx", 100 * GBPS);

    cc_cnp(&c, 1000);
    cr_assert_eq(cc_rate(&c), 100 * GBPS);
    cr_assert_eq(cc_deadline(&c), 1000 + 1 + 4 * NS_PER_US);
    cc_expire(&c, 1000 + 1 + 4 * NS_PER_US); /* alpha has decayed for 4 periods: 0.5 (1019/1024)^4 */
    cr_assert_float_eq((double)cc_rate(&c), 100e9 * (1 - .4903), 50e6);
    cr_assert_eq(cc_look(&c, "target"), 100 * GBPS); /* rp_clamp_tgt_rate 0 */
}

/* The consequence of the adapters' defaults: alpha is about CNPs/s x 1 us, so a CNP cuts by about 0.3 % at 6300 CNPs/s.
 */
Test(cc_dcqcn_cx, at_a_steady_rate_of_cnps_alpha_is_small)
{
    struct cc c = begin("dcqcn-cx", 25 * GBPS);
    ns_t every = NS_PER_S / 6300;
    double sum = 0;

    for (unsigned i = 1; i <= 2000; i++) {
        cc_expire(&c, (ns_t)i * every - 1);
        if (i > 1000)
            sum += (double)cc_look(&c, "alpha") / (double)CC_ONE;
        cc_cnp(&c, (ns_t)i * every);
        cc_expire(&c, (ns_t)i * every + 5 * NS_PER_US);
        if (i > 1000)
            sum += (double)cc_look(&c, "alpha") / (double)CC_ONE;
    }
    cr_assert_lt(sum / 2000, .01);
    cr_assert_gt(sum / 2000, .001);
}

Test(cc_dcqcn_cx, cuts_are_a_period_apart_and_leave_half_at_least)
{
    struct cc c = begin("dcqcn-cx:rp_gd=10,rp_min_dec_fac=50", 100 * GBPS);

    for (ns_t t = 0; t <= 12 * NS_PER_US; t += 500) { /* alpha nearly 1: to 0, but for rp_min_dec_fac */
        cc_cnp(&c, t);
        cc_expire(&c, t);
    }
    cr_assert_eq(cc_rate(&c), 25 * GBPS); /* cuts at 4.001 and 8.001 us */
    cr_assert_eq(c.cuts, 2);
}

Test(cc_dcqcn_cx, both_spellings_of_g_mean_the_same)
{
    struct cc a = begin("dcqcn-cx:rp_dce_tcp_g=1019", 100 * GBPS), b;
    struct cc_config first = config;

    a.config = &first;
    b = begin("dcqcn-cx:g=5/1024", 100 * GBPS);
    for (unsigned i = 0; i < 100; i++) {
        cc_cnp(&a, i * 10 * NS_PER_US);
        cc_cnp(&b, i * 10 * NS_PER_US);
        cc_expire(&a, (i * 10 + 7) * NS_PER_US);
        cc_expire(&b, (i * 10 + 7) * NS_PER_US);
    }
    cr_assert_eq(cc_rate(&a), cc_rate(&b));
    cr_assert_lt(cc_rate(&a), 50 * GBPS);
}

Test(cc_dcqcn_cx, one_step_of_fast_recovery_then_additive_then_hyper)
{
    struct cc c = begin("dcqcn-cx:rp_byte_reset=0,rp_clamp_tgt_rate=1", 100 * GBPS);
    uint64_t target;

    cc_cnp(&c, 0);
    cc_expire(&c, 5 * NS_PER_US);
    cc_cnp(&c, 6 * NS_PER_US);
    cc_expire(&c, 9 * NS_PER_US);
    target = cc_look(&c, "target");
    for (unsigned step = 1; step <= 3; step++) {
        static const uint64_t more[] = {0, 5 * MBPS, 50 * MBPS};
        uint64_t before = cc_rate(&c);
        target += more[step - 1];
        cc_expire(&c, 8002 + step * 300 * NS_PER_US);
        cr_assert_float_eq((double)cc_rate(&c), (double)(before + target) / 2, 2, "step %u", step);
    }
}

/* --- TIMELY ----------------------------------------------------------------------------------- */

Test(cc_timely, the_rate_follows_thresholds_and_gradient)
{
    struct cc c = begin("timely:start=1G", 10 * GBPS);
    ns_t rtt = 100 * NS_PER_US;

    ack(&c, 8 * 1024, rtt, 0); /* half a segment */
    cr_assert_eq(cc_rate(&c), GBPS);
    ack(&c, 8 * 1024, 40 * NS_PER_US, 0); /* below tlow */
    cr_assert_eq(cc_rate(&c), GBPS + 10 * MBPS);
    ack(&c, 16 * 1024, 1000 * NS_PER_US, 0); /* above thigh: 1 - 0.8 (1 - 500/1000) */
    cr_assert_float_eq((double)cc_rate(&c), 1010e6 * .6, 10);
    ack(&c, 16 * 1024, 400 * NS_PER_US, 0); /* falls: gradient below 0 */
    cr_assert_float_eq((double)cc_rate(&c), 1010e6 * .6 + 10e6, 10);
}

Test(cc_timely, five_rises_in_a_row_count_fivefold)
{
    struct cc c = begin("timely:start=1G", 10 * GBPS);

    for (unsigned i = 1; i <= 6; i++)
        ack(&c, 16 * 1024, 100 * NS_PER_US, 0);
    cr_assert_eq(cc_rate(&c), GBPS + 4 * 10 * MBPS + 2 * 50 * MBPS);
}

/* Fixed point: delta (1 - w) = R beta w e with w = 1/2 at gradient 0: e = (rtt - Tlow) / Tlow = delta / (R beta). */
Test(cc_timely, the_patched_form_rests_at_its_fixed_point)
{
    struct cc c = begin("timely-patched:start=5G", 10 * GBPS);
    ns_t rtt = 50 * NS_PER_US + 50 * NS_PER_US * 10 / 40; /* 10 Mbit/s / (5 Gbit/s x 0.008) = 1/4 */

    for (unsigned i = 0; i < 100; i++)
        ack(&c, 16 * 1024, rtt, 0);
    cr_assert_float_eq((double)cc_rate(&c), 5e9, 1e4);
    for (unsigned i = 0; i < 100; i++)
        ack(&c, 16 * 1024, rtt + 5 * NS_PER_US, 0);
    cr_assert_lt(cc_rate(&c), 4900 * MBPS);
}

/* --- Swift ------------------------------------------------------------------------------------ */

Test(cc_swift, the_target_grows_as_the_window_shrinks)
{
    struct cc c = begin("swift:base=4160ns", 100 * GBPS);

    /* 52 packets: 4160 + 635 + 6.79 us / sqrt(52) - 679 = 5058 ns */
    cr_assert_eq(cc_look(&c, "window"), 52 * CC_ONE);
    cr_assert_float_eq((double)cc_look(&c, "target"), 5058, 10);
    c = begin("swift:base=4160ns,fs_max=0", 100 * GBPS);
    cr_assert_eq(cc_look(&c, "target"), 4795);
}

Test(cc_swift, one_decrease_in_a_round_trip_of_half_at_most)
{
    struct cc c = begin("swift:base=4160ns,fs_max=0", 100 * GBPS);
    uint64_t before = cc_look(&c, "window");

    ack(&c, 1000, 9590, NS_PER_MS); /* twice the target: 1 - 0.8 / 2 */
    cr_assert_float_eq((double)cc_look(&c, "window"), (double)before * .6, (double)before / 1000);
    ack(&c, 1000, 9590, NS_PER_MS + 9000);
    cr_assert_eq(c.cuts, 1);
    ack(&c, 1000, 959000, 2 * NS_PER_MS); /* 0.8 x 0.995, but half at most */
    cr_assert_float_eq((double)cc_look(&c, "window"), (double)before * .3, (double)before / 1000);
    cr_assert_eq(cc_rate(&c), 100 * GBPS);
    for (unsigned i = 3; i < 20; i++)
        ack(&c, 1000, 959000, i * NS_PER_MS);
    cr_assert_eq(cc_window(&c), 1000); /* below a packet: one in rtt / window */
    cr_assert_lt(cc_rate(&c), 8 * MBPS);
    for (unsigned i = 20; i < 40; i++)
        ack(&c, 1000, 959000, i * NS_PER_MS);
    cr_assert_eq(cc_rate(&c), MBPS); /* min */
}

/* --- RoCC ------------------------------------------------------------------------------------- */

Test(cc_rocc, the_lowest_rate_counts_and_its_point_may_raise_it)
{
    struct cc c = begin("rocc", 40 * GBPS);

    cc_fair_rate(&c, 10 * GBPS, 1, 0);
    cc_fair_rate(&c, 20 * GBPS, 2, 0); /* another point, not lower */
    cr_assert_eq(cc_rate(&c), 10 * GBPS);
    cc_fair_rate(&c, 12 * GBPS, 1, 0);
    cr_assert_eq(cc_rate(&c), 12 * GBPS);
    cc_fair_rate(&c, 5 * GBPS, 2, 0);
    cc_fair_rate(&c, 13 * GBPS, 1, 0);
    cr_assert_eq(cc_rate(&c), 5 * GBPS);
    cc_expire(&c, 160 * NS_PER_US); /* no message: twice, up to the line */
    cr_assert_eq(cc_rate(&c), 10 * GBPS);
    cc_expire(&c, NS_PER_S);
    cr_assert_eq(cc_rate(&c), 40 * GBPS);
    cr_assert_eq(cc_deadline(&c), NS_NEVER);
}

Test(cc_rocc, the_congestion_point_resets_halves_and_corrects)
{
    struct fair_config f = fair_config_for(40 * GBPS);
    struct fair p;

    fair_init(&p, &f, 0);
    cr_assert_eq(fair_step(&p, 400000), 100 * MBPS); /* above max */
    fair_init(&p, &f, 0);
    cr_assert_eq(fair_step(&p, 320000), 20 * GBPS); /* risen by more than mid */
    /* Units of 600 bytes and 10 Mbit/s, at half the rate: 2000 - (0.3 x (320000 - 150000) / 600 + 0) / 1 ... */
    cr_assert_float_eq((double)fair_step(&p, 320000), 20e9 - .3 * 170000 / 600 * 10e6 / 1, 20e6);
    f = fair_config_for(100 * GBPS);
    cr_assert_eq(f.reference, 300000);
    cr_assert_eq(f.middle, 600000);
    cr_assert_eq(f.top, 660000);
    cr_assert_float_eq((double)f.alpha / (double)CC_ONE, .45, 1e-6);
    cr_assert_float_eq((double)f.beta / (double)CC_ONE, 2.25, 1e-6);
}

/* --- RTT -------------------------------------------------------------------------------------- */

Test(cc_rttcc, one_sample_in_a_round_trip_raises_or_lowers_the_rate)
{
    struct cc c = begin("rttcc", 100 * GBPS);

    ack(&c, 1000, 5000, 5000); /* the least one: 5 us; base 10 us; the rate is the line's already */
    ack(&c, 1000, 11000, 17000);
    cr_assert_float_eq((double)cc_rate(&c), 90e9, 100);
    ack(&c, 1000, 11000, 18000); /* sent before the latest sample */
    cr_assert_float_eq((double)cc_rate(&c), 90e9, 100);
    ack(&c, 1000, 9000, 27000); /* + 0.5 % of the line */
    cr_assert_float_eq((double)cc_rate(&c), 90.5e9, 1000);
    ack(&c, 1000, 151 * NS_PER_US, NS_PER_MS); /* above max: twice u */
    cr_assert_float_eq((double)cc_rate(&c), 90.5e9 * .8, 1000);
    cc_acked(&c, &(struct cc_ack){.nack = true}, NS_PER_MS); /* and five times, if packets are lost then */
    cr_assert_float_eq((double)cc_rate(&c), 90.5e9 * .4, 1000);
}

Test(cc_rttcc, a_probe_is_asked_for_at_a_time_and_given_up_later)
{
    struct cc c = begin("rttcc", 100 * GBPS);

    cr_assert_not(c.want_probe);
    cc_start(&c, &config, &(struct cc_limits){.line = 100 * GBPS, .probes = true}, 0);
    cr_assert(c.want_probe);
    cc_probe_sent(&c, 0);
    cr_assert_not(c.want_probe);
    cr_assert_eq(cc_deadline(&c), 300 * NS_PER_US);
    cc_expire(&c, 300 * NS_PER_US);
    cr_assert(c.want_probe);
    cc_probe_sent(&c, 300 * NS_PER_US);
    cr_assert_eq(cc_deadline(&c), 900 * NS_PER_US);
    cc_probe_reply(&c, 300 * NS_PER_US, 7, 1007, 306 * NS_PER_US); /* 6 us, 1 us of it in the receiver */
    cr_assert_eq(cc_look(&c, "least"), 5000);
    cr_assert(c.want_probe);
    cr_assert_eq(cc_deadline(&c), NS_NEVER);
}

/* --- Shaped-Quota ----------------------------------------------------------------------------- */

Test(cc_sq, the_first_quota_then_what_is_granted)
{
    struct cc c = begin("sq:quota=2000", 100 * GBPS);

    cr_assert_eq(cc_budget(&c), 2000);
    cc_demand(&c, 10000, 0);
    cr_assert(c.want_ask);
    cr_assert_eq(cc_look(&c, "demand"), 8000);
    cc_asked(&c, 0);
    cr_assert_not(c.want_ask);
    cc_sent(&c, 1000, 0);
    cc_sent(&c, 1000, 0);
    cr_assert_eq(cc_budget(&c), 0);
    cc_credit(&c, 500, 1000);
    cc_credit(&c, 400, 1000); /* an older grant */
    cc_sent(&c, 1000, 1000);  /* more than was granted: the next grant pays */
    cc_credit(&c, 1500, 2000);
    cr_assert_eq(cc_budget(&c), 500);
    cc_expire(&c, 2000 + 200 * NS_PER_US); /* no grant: it asks again */
    cr_assert(c.want_ask);
}

Test(cc_sq, a_receiver_that_never_grants_has_no_quotas)
{
    struct cc c = begin("sq:quota=2000,repeat=10us", 100 * GBPS);
    unsigned asks = 0;

    cc_demand(&c, 10000, 0);
    while (cc_deadline(&c) != NS_NEVER) {
        asks += c.want_ask;
        cc_asked(&c, cc_deadline(&c) - 1);
        cc_expire(&c, cc_deadline(&c));
    }
    cr_assert_eq(asks, 17);
    cr_assert_eq(cc_budget(&c), CC_NO_LIMIT);
}

static struct credit_config sq_receiver(void)
{
    struct cc_config sq;
    struct text_error e;

    cr_assert(cc_parse(&sq, "sq", &e));
    return credit_config_of(&sq);
}

Test(cc_sq, the_receiver_grants_in_turn_at_the_rate_of_its_link)
{
    struct credit_config f = sq_receiver();
    struct credit_sender s[3] = {{0}};
    uint64_t granted, total = 0;
    struct credit c;
    ns_t now = 0;

    credit_init(&c, &f, s, 3, 100 * GBPS, 1000);
    cr_assert_eq(c.next, NS_NEVER);
    for (unsigned i = 0; i < 3; i++)
        credit_asked(&c, i, 1000000, 0, 0);
    for (unsigned i = 0; i < 600; i++) {
        now = c.next;
        cr_assert_eq(credit_grant(&c, &granted, now), (int)(i % 3));
        credit_arrived(&c, i % 3, 4000, now);
        total += 4000;
    }
    cr_assert_float_eq((double)(total - 4000) * 8 / (double)now, 97, .01); /* Gbit/s */
    cr_assert_eq(c.open, 0);
}

/* Until so much is open that the receiver waits. */
static void grant_all(struct credit *c, uint64_t *granted)
{
    while (c->next < c->moved + 100 * NS_PER_US)
        cr_assert_eq(credit_grant(c, granted, c->next), 0);
}

Test(cc_sq, the_receiver_stops_when_too_much_is_open_and_charges_what_comes_unasked)
{
    struct credit_config f = sq_receiver();
    struct credit_sender s[1] = {{0}};
    uint64_t granted = 0;
    struct credit c;

    credit_init(&c, &f, s, 1, 100 * GBPS, 1000);
    credit_asked(&c, 0, 1000000, 52000, 0);
    credit_arrived(&c, 0, 52000, 0);
    cr_assert_float_eq((double)c.next, 52000 * 8 / 97., 2);
    grant_all(&c, &granted);
    cr_assert_eq(granted, 76000); /* 78000 at most, in steps of 4000 */
    credit_arrived(&c, 0, 4000, 10000);
    cr_assert_lt(c.next, 20000);
    grant_all(&c, &granted);
    cr_assert_eq(granted, 80000);
    credit_grant(&c, &granted, c.next); /* nothing comes for long */
    cr_assert_eq(c.open, 4000);
    cr_assert_eq(granted, 84000);
}

Test(cc_sq, what_was_sent_before_and_has_not_arrived_is_lost)
{
    struct credit_config f = sq_receiver();
    struct credit_sender s[2] = {{0}};
    uint64_t granted = 0;
    struct credit c;

    credit_init(&c, &f, s, 2, 100 * GBPS, 1000);
    credit_asked(&c, 0, 1000000, 0, 0);
    grant_all(&c, &granted);
    cr_assert_eq(c.open, 76000);
    credit_arrived(&c, 0, 6000, 10000); /* 70000 bytes are lost */
    grant_all(&c, &granted);
    cr_assert_eq(c.open, 78000);
    credit_sent(&c, 0, 84000, 20000);
    cr_assert_eq(c.open, 0);
    cr_assert_lt(c.next, 30000);
    credit_arrived(&c, 0, 4000, 30000); /* late, by another path */
    cr_assert_eq(c.open, 0);
    credit_forget(&c, 0, 30000);
    cr_assert_eq(c.wanting, 0);
    cr_assert_eq(c.next, NS_NEVER);
}

/* --- HPCC ------------------------------------------------------------------------------------- */

/* ACKs of a hop that was busy to `use`, with `queue` bytes, every microsecond. */
static void busy(struct cc *c, double use, uint32_t queue, unsigned n)
{
    static struct cc_hop hop;

    hop.line = 100 * GBPS;
    hop.queue = queue;
    for (unsigned i = 0; i < n; i++) {
        hop.ts += NS_PER_US;
        hop.tx_bytes += (uint64_t)(use * 12500);
        cc_telemetry(c, &hop, 1, 4160, hop.ts);
    }
}

Test(cc_hpcc, the_window_is_divided_by_the_use_over_eta)
{
    struct cc c = begin("hpcc:ai=1M", 100 * GBPS);

    cr_assert_eq(cc_window(&c), 52000);
    busy(&c, .95, 0, 200); /* at eta: only the additive increase, up to the line's */
    cr_assert_float_eq((double)cc_look(&c, "use") / (double)CC_ONE, .95, .001);
    cr_assert_geq(cc_window(&c), 51900);
    busy(&c, 1, 52000, 5); /* a queue of a round trip: use 2 */
    cr_assert_lt(cc_window(&c), 40000);
    busy(&c, 1, 52000, 15);
    cr_assert_lt(cc_window(&c), 20000);
    cr_assert_float_eq((double)cc_rate(&c), (double)cc_window(&c) * 8 / 4160 * 1e9, 3e6);
}

Test(cc_hpcc, the_reference_is_replaced_once_in_a_round_trip)
{
    struct cc c = begin("hpcc:ai=1M", 100 * GBPS);
    uint64_t once;

    busy(&c, 1, 52000, 2);
    busy(&c, 1, 52000, 30);
    once = cc_window(&c);
    cr_assert_gt(once, 200); /* 28 multiplications by 0.475 would leave nothing */
}
