/* layer 5 (test): congestion control: parameters, pacer, notification and marking point, what each scheme does. */
#include "src/cc/cc.h"
#include "src/cc/mp.h"
#include "src/cc/np.h"

#include <criterion/criterion.h>

#define GBPS UINT64_C(1000000000)

static struct cc_config config;

/* A queue pair on a line of `line` with the scheme `text`. */
static struct cc begin(const char *text, uint64_t line)
{
    struct text_error e;
    struct cc c;

    cr_assert(cc_parse(&config, text, &e), "%s", e.msg);
    cc_start(&c, &config, &(struct cc_limits){.line = line}, 0);
    return c;
}

static void expect_error(const char *text, const char *msg, uint32_t col)
{
    struct cc_config c;
    struct text_error e = {0};

    cr_assert_not(cc_parse(&c, text, &e), "%s", text);
    cr_assert_str_eq(e.msg, msg);
    cr_assert_eq(e.col, col, "%s: column %u", text, e.col);
}

/* --- Parameters ------------------------------------------------------------------------------- */

Test(cc, every_default_lies_within_its_range_and_says_where_it_is_from)
{
    for (unsigned i = 0; cc_schemes[i]; i++) {
        const struct cc_scheme *s = cc_schemes[i];
        cr_assert_eq(cc_scheme_find(s->name, strlen(s->name)), s);
        for (unsigned k = 0; s->params[k].name; k++) {
            const struct cc_param *p = &s->params[k];
            struct token def = token_of(p->def);
            struct text_error e;
            uint64_t v;
            cr_assert_lt(k, CC_PARAMS_MAX);
            cr_assert(cc_param_parse(p, &def, &v, &e), "%s: %s", s->name, e.msg);
            cr_assert(p->help && p->source && p->source[0], "%s:%s", s->name, p->name);
        }
    }
}

Test(cc, a_wrong_parameter_is_named_with_the_values_that_it_takes)
{
    expect_error("dcqnc", "there is no scheme 'dcqnc'; is 'dcqcn' meant? (`rdmagen cc` lists them)", 1);
    expect_error("dcqcn:", "'': expected PARAM=VALUE", 7);
    expect_error("dcqcn:g=2", "g=2: expected a share from 1/65536 to 1", 9);
    expect_error("dcqcn:g=1/0", "g=1/0: expected a share from 1/65536 to 1", 9);
    expect_error("dcqcn:k=55,f=5", "k=55: expected a time from 1us to 1s", 9);
    expect_error("dcqcn:k=55us,f=0", "f=0: expected a number from 1 to 1000 steps", 16);
    expect_error("dcqcn:haj=5M", "there is no parameter 'haj'; is 'hai' meant?", 7);
    expect_error("dcqcn:scaled=si", "scaled=si: expected one of no,yes", 14);
}

Test(cc, shares_are_fractions_decimals_or_percent)
{
    static const struct cc_param p = {"x", CC_SHARE, "0", "0", "4", NULL, "", ""};
    static const struct {
        const char *text;
        uint64_t v;
    } good[] = {{"1/256", CC_ONE / 256}, {"5/1024", CC_ONE * 5 / 1024}, {"0.5", CC_ONE / 2}, {"25%", CC_ONE / 4},
                {"1", CC_ONE},           {".125", CC_ONE / 8},          {"0.8", 858993459},  {"400%", CC_ONE * 4}};
    static const char *const bad[] = {"",  ".",  "1/",  "/2",           "1.0.0",
                                      "5", "-1", "1e3", "0.1234567890", "99999999999999999999"};
    struct text_error e;
    uint64_t v;

    for (unsigned i = 0; i < ARRAY_LEN(good); i++) {
        struct token t = token_of(good[i].text);
        cr_assert(cc_param_parse(&p, &t, &v, &e), "%s", good[i].text);
        cr_assert_eq(v, good[i].v, "%s: %llu", good[i].text, (unsigned long long)v);
    }
    for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
        struct token t = token_of(bad[i]);
        cr_assert_not(cc_param_parse(&p, &t, &v, &e), "%s", bad[i]);
    }
}

/* --- The pacer -------------------------------------------------------------------------------- */

Test(cc, the_pacer_keeps_the_remainder_of_size_by_rate)
{
    struct cc c = begin("none", 3 * GBPS);
    ns_t now = 0;

    for (unsigned i = 0; i < 300000; i++) {
        cr_assert_leq(cc_next_send(&c), now + 3000);
        now = cc_next_send(&c) > now ? cc_next_send(&c) : now;
        cc_sent(&c, 1000, now); /* 2666.67 ns */
    }
    cr_assert(now > 799997333 - 20 && now < 799997333 + 20, "%lld", (long long)now);
}

Test(cc, a_new_rate_gives_the_waiting_packet_a_new_time)
{
    struct cc c = begin("dcqcn:line=10G,min=1M", 0);

    cc_sent(&c, 1000, 0);
    cr_assert_eq(cc_next_send(&c), 800);
    cc_cnp(&c, 10); /* alpha 1: half */
    cr_assert_eq(cc_rate(&c), 5 * GBPS);
    cr_assert_eq(cc_next_send(&c), 1600);
    cr_assert_eq(cc_next_send_at_line(&c), 800);
    for (unsigned i = 0; i < 30; i++)
        cc_cnp(&c, 20);
    cr_assert_eq(cc_rate(&c), 1000000);
    cr_assert_eq(cc_next_send(&c), 8000000);
    cr_assert_eq(c.cuts, 14);
    cc_expire(&c, 20 + 55 * NS_PER_US * 40);
    cr_assert_lt(cc_next_send(&c), 8000000);
}

Test(cc, a_late_sender_makes_up_no_more_than_the_slack)
{
    struct cc c = begin("none", 8 * GBPS);

    cc_sent(&c, 1000, 0);
    cc_sent(&c, 1000, 5000); /* 4 us late: more than a packet's time */
    cr_assert_eq(cc_next_send(&c), 6000);
    cc_sent(&c, 1000, 6900); /* 0.9 us late */
    cr_assert_eq(cc_next_send(&c), 7000);
    cc_start(&c, &config, &(struct cc_limits){.line = 8 * GBPS, .slack = 10000}, 0);
    cc_sent(&c, 1000, 0);
    cc_sent(&c, 1000, 100000);
    cr_assert_eq(cc_next_send(&c), 91000);
}

Test(cc, the_cap_can_shrink_with_the_rate)
{
    struct cc c = begin("dcqcn:cap=100000,scaled=yes", 40 * GBPS);

    cr_assert_eq(cc_window(&c), 100000);
    cc_cnp(&c, 0);
    cr_assert_eq(cc_window(&c), 50000);
    for (unsigned i = 0; i < 20; i++)
        cc_cnp(&c, 0);
    cr_assert_eq(cc_window(&c), 1106); /* one packet */
    c = begin("dcqcn", 40 * GBPS);
    cr_assert_eq(cc_window(&c), CC_NO_LIMIT);
}

/* --- Notification point ----------------------------------------------------------------------- */

static const uint8_t host_a[16] = {[15] = 1}, host_b[16] = {[15] = 2}, host_c[16] = {[15] = 3};

static unsigned cnps(struct np *np, const uint8_t *src, ns_t *qp, ns_t now)
{
    return np_marked(np, src, host_c, qp, false, now) != NS_NEVER;
}

/* CNPs for marks of two hosts at once, two queue pairs each, then 50 us later. */
static unsigned in_scope(const char *text)
{
    struct np_config c = np_config_default();
    struct np_slot slot[64] = {{0}};
    struct text_error e;
    ns_t qp[4] = {0};
    struct np np;
    unsigned n = 0;

    cr_assert(np_parse(&c, text, &e), "%s", e.msg);
    np_init(&np, &c, slot, ARRAY_LEN(slot));
    for (ns_t t = 0; t <= 50 * NS_PER_US; t += NS_PER_US)
        for (unsigned i = 0; i < 4; i++)
            n += cnps(&np, i < 2 ? host_a : host_b, &qp[i], t);
    cr_assert_eq(np.crowded, 0);
    return n;
}

Test(cc, the_scope_of_the_interval_between_cnps)
{
    cr_assert_eq(in_scope("scope=qp"), 8);
    cr_assert_eq(in_scope("scope=ip_pair"), 4);
    cr_assert_eq(in_scope("scope=dest_ip"), 4);
    cr_assert_eq(in_scope("scope=port"), 2);
    cr_assert_eq(in_scope("per_ce=yes"), 4 * 51);
    cr_assert_eq(in_scope("interval=10us,scope=port"), 6);
}

Test(cc, a_cnp_is_delayed_and_reads_may_have_none)
{
    struct np_config c = np_config_default();
    struct text_error e;
    ns_t qp[2] = {0};
    struct np np;

    cr_assert(np_parse(&c, "delay=55us,reads=no", &e));
    np_init(&np, &c, NULL, 0);
    cr_assert_eq(np_marked(&np, host_a, host_b, &qp[0], false, 1000), 56000);
    cr_assert_eq(np_marked(&np, host_a, host_b, &qp[1], true, 1000), NS_NEVER);
    cr_assert_not(np_parse(&c, "scope=all", &e));
    cr_assert_str_eq(e.msg, "scope=all: expected one of qp,ip_pair,dest_ip,port");
}

Test(cc, few_slots_cost_a_cnp_too_early_and_are_counted)
{
    struct np_config c = np_config_default();
    struct np_slot slot[8] = {{0}};
    struct text_error e;
    struct np np;

    cr_assert(np_parse(&c, "scope=dest_ip", &e));
    np_init(&np, &c, slot, ARRAY_LEN(slot));
    for (uint8_t i = 0; i < 9; i++)
        cr_assert_eq(np_marked(&np, (uint8_t[16]){i}, host_b, NULL, false, 0), 0);
    cr_assert_eq(np.crowded, 1);
    cr_assert_eq(np_marked(&np, (uint8_t[16]){100}, host_b, NULL, false, 50 * NS_PER_US), 50 * NS_PER_US);
    cr_assert_eq(np.crowded, 1);
}

/* --- Marking point ---------------------------------------------------------------------------- */

static double marked_share(const char *text, uint64_t queue, uint64_t seed)
{
    struct mp_config c = mp_config_default();
    struct text_error e;
    struct mp mp;

    cr_assert(mp_parse(&c, text, &e), "%s", e.msg);
    mp_init(&mp, &c, seed, 0);
    for (unsigned i = 0; i < 1000000; i++)
        mp_marks(&mp, queue, 0);
    return (double)mp.marked / 1e6;
}

Test(cc, red_marks_by_the_length_of_the_queue)
{
    cr_assert_eq(marked_share("kmin=5000,kmax=200000,pmax=1%", 5000, 1), 0);
    cr_assert_float_eq(marked_share("kmin=5000,kmax=200000,pmax=1%", 102500, 1), .005, .0003);
    cr_assert_float_eq(marked_share("kmin=5000,kmax=200000,pmax=1%", 200000, 2), .01, .0004);
    cr_assert_eq(marked_share("kmin=5000,kmax=200000,pmax=1%", 200001, 1), 1);
    cr_assert_float_eq(marked_share("kmin=100K,kmax=400K,pmax=20%", 250 * 1024, 3), .1, .001);
    cr_assert_eq(marked_share("kind=off", 1 << 30, 3), 0);
}

Test(cc, the_same_seed_marks_the_same_packets)
{
    struct mp_config c = mp_config_default();
    struct mp a, b, other;
    unsigned differ = 0;

    mp_init(&a, &c, 7, 0);
    mp_init(&b, &c, 7, 0);
    mp_init(&other, &c, 8, 0);
    for (unsigned i = 0; i < 10000; i++) {
        bool m = mp_marks(&a, 199000, 0);
        cr_assert_eq(m, mp_marks(&b, 199000, 0));
        differ += m != mp_marks(&other, 199000, 0);
    }
    cr_assert_gt(differ, 100);
}

Test(cc, the_pi_controller_moves_until_the_queue_is_at_its_reference)
{
    struct mp_config c = mp_config_default();
    struct text_error e;
    struct mp mp;

    cr_assert(mp_parse(&c, "kind=pi,ref=200000,step=10us", &e));
    mp_init(&mp, &c, 1, 0);
    mp_marks(&mp, 200000, 10 * NS_PER_US); /* the queue has risen by 200 units: k1 x 200 */
    cr_assert_float_eq((double)mp.p / (double)(CC_ONE << 16), .0036, 1e-5);
    mp_marks(&mp, 300000, NS_PER_S + 10 * NS_PER_US); /* + k1 x 100; k2 x 100 units in the 10 ms that are made up */
    cr_assert_float_eq((double)mp.p / (double)(CC_ONE << 16), .0036 + .0018 + .0006, 1e-5);
    mp_marks(&mp, 0, NS_PER_S + 20 * NS_PER_US);
    cr_assert_float_eq((double)mp.p / (double)(CC_ONE << 16), .006 - .0054, 1e-5);
    mp_marks(&mp, 0, 2 * NS_PER_S); /* k2 x -200 units in 10 ms: never below 0 */
    cr_assert_eq(mp.p, 0);
}

/* --- DCQCN ------------------------------------------------------------------------------------ */

Test(cc_dcqcn, the_first_cnp_halves_the_rate_and_later_ones_cut_by_half_of_alpha)
{
    struct cc c = begin("dcqcn", 40 * GBPS);
    ns_t now = 0;

    cr_assert_eq(cc_deadline(&c), NS_NEVER); /* nothing runs before the first CNP */
    cc_cnp(&c, now);
    cr_assert_eq(cc_rate(&c), 20 * GBPS);
    cr_assert_eq(cc_look(&c, "alpha"), CC_ONE);
    cc_expire(&c, now = 55 * NS_PER_US); /* alpha x 255/256; fast recovery: half way to 40G */
    cr_assert_eq(cc_look(&c, "alpha"), CC_ONE / 256 * 255);
    cr_assert_eq(cc_rate(&c), 30 * GBPS);
    cc_cnp(&c, now);
    cr_assert_float_eq((double)cc_rate(&c), 30e9 * (1 - 255. / 512), 100);
}

Test(cc_dcqcn, fast_recovery_then_additive_then_hyper_increase)
{
    struct cc c = begin("dcqcn:f=5,b=10000000,min=1M", 100 * GBPS);
    uint64_t target = 0;

    for (unsigned i = 0; i < 3; i++)
        cc_cnp(&c, 0); /* RT 25G, RC 12.5G, alpha 1 */
    for (unsigned step = 1; step <= 4; step++)
        cc_expire(&c, step * 55 * NS_PER_US);
    cr_assert_float_eq((double)cc_rate(&c), 25e9 - 12.5e9 / 16, 10); /* four halves of the distance */
    target = 25 * GBPS;
    for (unsigned step = 5; step <= 7; step++) {
        uint64_t before = cc_rate(&c);
        target += 40000000;
        cc_expire(&c, step * 55 * NS_PER_US);
        cr_assert_float_eq((double)cc_rate(&c), (double)(before + target) / 2, 2);
    }
    for (unsigned i = 0; i < 6 * 1000; i++) /* the byte counter: six steps, the last of them hyper: min(7, 6) - 5 */
        cc_sent(&c, 10000, 7 * 55 * NS_PER_US);
    cr_assert_gt(cc_rate(&c), target - GBPS / 4 + 5 * 20000000);
    cr_assert_lt(cc_rate(&c), target + 5 * 40000000 + 400000000);
}

Test(cc_dcqcn, alpha_decays_by_g_in_each_period_even_if_the_call_is_late)
{
    struct cc one = begin("dcqcn:g=1/16", 40 * GBPS), many;

    cc_cnp(&one, 0);
    many = one;
    for (ns_t t = 0; t <= 5 * NS_PER_MS; t += NS_PER_US)
        cc_expire(&many, t);
    cc_expire(&one, 5 * NS_PER_MS);
    cr_assert_eq(memcmp(&one, &many, sizeof one), 0);
    cr_assert_float_eq((double)cc_look(&one, "alpha") / (double)CC_ONE, .0030, 1e-5); /* (15/16)^90 */
}

Test(cc_dcqcn, at_the_rate_of_the_line_no_timer_is_left)
{
    struct cc c = begin("dcqcn", 40 * GBPS);

    cc_cnp(&c, 0);
    cc_expire(&c, NS_PER_S);
    cr_assert_eq(cc_rate(&c), 40 * GBPS);
    cr_assert_eq(cc_deadline(&c), NS_NEVER);
}
