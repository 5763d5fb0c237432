/* layer 5 (test): what conformance tests measure, and whether the tester was in time. */
#include "gen/conform/devices/twin.h"
#include "gen/conform/measures/in_time.h"
#include "gen/conform/measures/scope.h"
#include "gen/net/tap.h"
#include "steps.h"
#include "tests/unit/conform_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct metric *measured(struct metrics *m, const char *name)
{
    for (unsigned i = 0; i < m->n; i++)
        if (strcmp(m->metric[i].name, name) == 0)
            return &m->metric[i];
    return NULL;
}

/* Read the capture at `path` again, with the tester late for `ms` from `from` on, ms; the metrics are in *m. */
static void measure_late(const char *path, const struct late_delay *ms, unsigned n, struct metrics *m)
{
    static struct measure_tester t;
    static struct idle idle;
    struct sim_config c;

    late_begin(&t.late);
    idle_begin(&idle);
    /* It waits up to 10 ms and from 20 to 30 ms; its clock is that of the capture, but for the epoch. */
    for (ns_t ms_now = 0; ms_now <= 60; ms_now += 10) {
        idle_frame(&idle, ms_now * NS_PER_MS);
        if (ms_now == 0 || ms_now == 20)
            idle_waited(&idle, ms_now * NS_PER_MS, (ms_now + 10) * NS_PER_MS);
    }
    t.idle = &idle;
    t.epoch = TAP_EPOCH;
    sim_config_init(&c, 3);
    for (unsigned i = 0; i < n; i++)
        late_note(&t.late, TAP_EPOCH + ms[i].from * NS_PER_MS, TAP_EPOCH + ms[i].to * NS_PER_MS);
    cr_assert_eq(measure_capture(path, c.ep[1].addr.mac, battery.test[0].measures, battery.test[0].n_measures, &t, m),
                 0);
}

/* Play a test against a twin; its metrics; of the capture, with delays, those in *late. */
static void measure_both(const char *text, const struct late_delay *ms, unsigned n, struct metrics *m,
                         struct metrics *late)
{
    struct script_dut dut;
    struct twin_dut *t = twin_dut_new(&dut, 1);
    char dir[] = "/tmp/rdmagen-measure-XXXXXX";
    struct conform_run run = {.seed = 3, .dut = &dut, .metrics = m, .keep = mkdtemp(dir)};
    struct conform_outcome o;

    parses(text, "");
    cr_assert(run.keep && conform_run(&run, &battery.test[0], &o) == 0);
    cr_assert(o.result == CONFORM_PASS, "%s", buf_str(&o.reason));
    if (late)
        measure_late(o.capture, ms, n, late);
    conform_forget(&o);
    conform_outcome_free(&o);
    rmdir(dir);
    twin_dut_free(t);
}

static void measure(const char *text, struct metrics *m)
{
    measure_both(text, NULL, 0, m, NULL);
}

/* Three atomics, 10 ms and 30 ms apart. */
Test(conform_measures, a_rate_leaves_out_the_time_in_which_the_tester_was_late)
{
    static const char text[] = "test a/b I T\nmeasure atomics n\nmeasure window w\nmeasure goodput g\nqp 1 rc\n"
                               "mem a.old 8\nmem b.sum 8\na post faa 1 old at sum add=1\na wc 1 SUCCESS\nwait 10ms\n"
                               "a post faa 1 old at sum add=1\na wc 1 SUCCESS\nwait 30ms\n"
                               "a post faa 1 old at sum add=1\na wc 1 SUCCESS\n";
    static const struct late_delay first = {5, 6}, second = {20, 21}, both[] = {{5, 6}, {20, 21}};
    struct metrics m = {0}, late = {0};

    measure_both(text, &first, 1, &m, &late);
    cr_expect_eq(measured(&m, "n")->sample[0], 49, "2 in 40 ms and what they take");
    cr_expect(measured(&late, "n")->n == 1 && measured(&late, "n")->sample[0] == 33, "1 in the 30 ms that are left");
    struct metric_bound in_time = metric_bound(measured(&m, "n")), busy = metric_bound(measured(&late, "n"));
    cr_expect(in_time.end == END_DEVICE && in_time.permille == 1000, "in virtual time the tester takes none");
    cr_expect(busy.end == END_BOTH && busy.permille == 333, "it waited 10 ms of these 30, and in those left out: %lld",
              (long long)busy.permille);
    metrics_free(&late);
    measure_both(text, &second, 1, &m, &late);
    cr_expect(measured(&late, "n")->n == 0 && measured(&late, "n")->left_out == 1, "less than half is left");
    metrics_free(&late);
    measure_both(text, both, 2, &m, &late);
    cr_expect(measured(&late, "n")->n == 0 && measured(&late, "n")->left_out == 1, "nothing is left");
    cr_expect(metric_bound(measured(&late, "n")).end == END_UNKNOWN, "without a rate nothing bounds it");
    cr_expect(!measured(&late, "g") && !measured(&late, "w"), "nothing of that was seen");
    metrics_free(&m);
    metrics_free(&late);
}

/* 60 WRITEs, one each millisecond. */
Test(conform_measures, a_rate_counts_what_came_while_the_tester_was_in_time)
{
    static const char text[] = "test a/b I T\nmeasure requests r\nmeasure goodput g\nqp 1 rc\nmem b.src 1024\n"
                               "mem a.dst 1024\neach 1-60\nb post write 1 src to dst\nb wc 1 SUCCESS\nwait 1ms\nend\n";
    static const struct late_delay some[] = {{10, 14}, {40, 44}}, most = {5, 500};
    struct metrics m = {0}, late = {0};

    measure_both(text, some, 2, &m, &late);
    double r = (double)measured(&late, "r")->sample[0] / (double)measured(&m, "r")->sample[0];
    double g = (double)measured(&late, "g")->sample[0] / (double)measured(&m, "g")->sample[0];
    cr_expect(r > 0.95 && r < 1.05 && g > 0.95 && g < 1.05, "the rate is steady: %g, %g", r, g);
    metrics_free(&late);
    measure_both(text, &most, 1, &m, &late);
    cr_expect(measured(&late, "r")->left_out == 1 && measured(&late, "g")->left_out == 1);
    metrics_free(&m);
    metrics_free(&late);
}

Test(conform_measures, a_capture_is_measured)
{
    struct metrics m = {0};

    /* queue pair 2 begins when half of 64 packets of queue pair 1 are sent: 64 to 32 packets, or one more */
    measure("test a/b I T\nmeasure fairness fair\nmeasure pause pause\nqp 1 rc\nqp 2 rc\nmem b.src 65536\n"
            "mem a.dst 65536\nb post write 1 src to dst\nb > a until WRITE_MIDDLE conn=1 psn=31\n"
            "b post write 2 src to dst\nb wc 1 SUCCESS\nb wc 2 SUCCESS\n",
            &m);
    /* (64 + 32)^2 / (2 (64^2 + 32^2)) = 0.9 */
    cr_expect(measured(&m, "fair")->sample[0] > 880 && measured(&m, "fair")->sample[0] < 920, "%lld",
              (long long)measured(&m, "fair")->sample[0]);
    cr_expect(measured(&m, "fair")->unit == METRIC_PERMILLE && measured(&m, "pause")->sample[0] == 0);
    metrics_free(&m);
    /* every frame is paused for a microsecond: 195 quanta at 100 Gbit/s */
    measure("test a/b I T\nmeasure pause pause\nmeasure requests rate\nnet b>a rate=100G before pause=1/1us\nqp 1 rc\n"
            "mem b.src 65536\nmem a.dst 65536\nb post write 1 src to dst\nb wc 1 SUCCESS\n",
            &m);
    cr_expect(measured(&m, "pause")->sample[0] > 0 && measured(&m, "rate")->sample[0] > 0);
    metrics_free(&m);
    /* the first request of each queue pair, with two retries and none */
    measure("test a/b I T\nmeasure tries t\nevent dir=rsp class=write iter=* drop\nqp 1 rc retry=2 timeout=8\n"
            "qp 2 rc retry=0 timeout=8\nmem b.src 64\nmem a.dst 64\nb post write 1 src to dst\nb wc 1 RETRY_EXC_ERR\n"
            "b post write 2 src to dst\nb wc 2 RETRY_EXC_ERR\n",
            &m);
    cr_expect(measured(&m, "t")->n == 2 && measured(&m, "t")->sample[0] == 3 && measured(&m, "t")->sample[1] == 1);
    metrics_free(&m);
    /* one of three atomics is answered after a wait: a second each */
    measure("test a/b I T\nmeasure atomics n\nmeasure window w\nqp 1 rc\nmem a.old 8\nmem b.sum 8\n"
            "a post faa 1 old at sum add=1\na wc 1 SUCCESS\nwait 1s\na post faa 1 old at sum add=1\na wc 1 SUCCESS\n"
            "wait 1s\na post faa 1 old at sum add=1\na wc 1 SUCCESS\n",
            &m);
    cr_expect(measured(&m, "n")->sample[0] == 0 || measured(&m, "n")->sample[0] == 1, "2 answers in 2 s");
    cr_expect_null(measured(&m, "w"), "the device sends nothing: there is no window");
    metrics_free(&m);
    /* behind PSN 31 and some more comes a NAK of PSN 60, which is not sent yet */
    measure("test a/b I T\nmeasure drain d\nqp 1 rc\nmem b.src 65536\nmem a.dst 65536\nb post write 1 src to dst\n"
            "b > a until WRITE_MIDDLE conn=1 psn=31\ninject a > b ACK psn=60 msn=0 credit=0x60\nb wc 1 SUCCESS\n",
            &m);
    cr_expect(measured(&m, "d")->n == 1 && measured(&m, "d")->sample[0] > 0 && measured(&m, "d")->sample[0] < 28,
              "%lld", (long long)measured(&m, "d")->sample[0]);
    cr_expect_eq(measured(&m, "d")->unit, METRIC_COUNT);
    metrics_free(&m);
    /* of 256 packets, each 64th and the last one ask for an ACK; what is sent again behind a loss does not count again
     */
    measure("test a/b I T\nmeasure ackreq n\nevent dir=rsp class=write psn=100 drop\nqp 1 rc\nmem b.src 262144\n"
            "mem a.dst 262144\nb post write 1 src to dst\nb wc 1 SUCCESS\n",
            &m);
    cr_assert_eq(measured(&m, "n")->n, 3);
    cr_expect_eq(measured(&m, "n")->sample[0], 104, "40 behind the one before the loss it goes back, and counts anew");
    cr_expect(measured(&m, "n")->sample[1] == 64 && measured(&m, "n")->sample[2] == 24);
    metrics_free(&m);
    /* the NAK of the other queue pair, and of a PSN that was sent, is none of a hole */
    measure("test a/b I T\nmeasure nack n\nevent dir=req conn=2 class=send psn=1 drop\nqp 1 rc\nqp 2 rc\n"
            "mem a.src 4096\nmem b.dst 4096\nb post recv 1 dst\nb post recv 2 dst\na post send 1 src\n"
            "a post send 2 src\na wc 1 SUCCESS\na wc 2 SUCCESS\n",
            &m);
    cr_expect(measured(&m, "n")->n == 1 && measured(&m, "n")->sample[0] >= 0 && measured(&m, "n")->sample[0] < 10000);
    metrics_free(&m);
}

Test(conform_measures, a_ratio_of_medians)
{
    struct token r = {"r", 1, 0}, of = {"of", 2, 0}, over = {"over", 4, 0};
    struct metrics m = {0};

    cr_expect_eq(metrics_ratio(&m, &r, &of, &over).permille, 0);
    cr_expect_eq(m.n, 0, "without samples there is none");
    for (int i = 0; i < 3; i++)
        cr_assert(metrics_add(&m, &of, METRIC_NS, 3000 + i) && metrics_add(&m, &over, METRIC_NS, 2000));
    cr_expect(metrics_ratio(&m, &r, &of, &over).above);
    cr_expect(measured(&m, "r")->n == 1 && measured(&m, "r")->sample[0] == 1501 &&
              measured(&m, "r")->unit == METRIC_PERMILLE);
    metrics_free(&m);
    cr_assert(metrics_add(&m, &r, METRIC_NS, METRIC_MOST) && metrics_add(&m, &r, METRIC_NS, -METRIC_MOST));
    cr_expect(!metrics_add(&m, &r, METRIC_NS, METRIC_MOST + 1) && !metrics_add(&m, &of, METRIC_NS, INT64_MIN));
    cr_expect(m.n == 1 && m.metric[0].n == 2, "clocks of agents may be as far off as they like");
    metrics_free(&m);
}

/* Medians may differ by chance: a single sample each, or samples that lie among each other. */
Test(conform_measures, a_ratio_above_one_by_chance)
{
    struct token r = {"r", 1, 0}, of = {"of", 2, 0}, over = {"over", 4, 0};
    struct metrics m = {0};
    struct metric_ratio is;

    cr_assert(metrics_add(&m, &of, METRIC_NS, 3000) && metrics_add(&m, &over, METRIC_NS, 2000));
    is = metrics_ratio(&m, &r, &of, &over);
    cr_expect(is.permille == 1500 && !is.above);
    metrics_free(&m);
    for (int i = 0; i < 9; i++)
        cr_assert(metrics_add(&m, &of, METRIC_NS, 1000 + 500 * i) && metrics_add(&m, &over, METRIC_NS, 500 + 400 * i));
    is = metrics_ratio(&m, &r, &of, &over);
    cr_expect(is.permille == 1429 && !is.above);
    metrics_free(&m);
}

static struct steps of_values(const uint32_t *v, unsigned n)
{
    struct identities all = {0};
    struct steps s;

    for (unsigned i = 0; i < n; i++)
        identities_add(&all, SCRIPT_CHOSE_QPN, v[i]);
    steps_of(all.of[SCRIPT_CHOSE_QPN].v, all.of[SCRIPT_CHOSE_QPN].n, 0xffffff, &s);
    identities_free(&all);
    return s;
}

Test(conform_measures, entropy_of_steps)
{
    const uint32_t even[] = {0xfffffe, 0xffffff, 0, 1, 2}, turns[] = {0, 1, 3, 4, 6, 7, 9}, two[] = {1, 2};
    const uint32_t four[] = {0, 1, 3, 4, 7, 8, 12, 13, 13}; /* steps 1 2 1 3 1 4 1 0 */
    struct steps s = of_values(even, 5);

    cr_expect(s.n == 5 && s.distinct == 5 && s.step == 1 && s.share == 1 && s.min_entropy == 0 && s.conditional == 0);
    s = of_values(turns, 7);
    cr_expect(s.min_entropy == 1 && s.conditional == 0, "1 and 2 in turn: %g, %g", s.min_entropy, s.conditional);
    s = of_values(four, 9);
    cr_expect(s.distinct == 8 && s.step == 1 && s.min_entropy == 1, "half of the steps are 1: %g", s.min_entropy);
    /* of 7 pairs, 4 have 1 before: each other step once, 2 bits; the other 3 are followed by 1 */
    cr_expect(s.conditional > 2 * 4 / 7. - 1e-9 && s.conditional < 2 * 4 / 7. + 1e-9, "%g", s.conditional);
    cr_expect_eq(of_values(two, 2).n, 0, "too few");
}

/* The device waits `times` the nominal time with codes 8 to 20, but at least `least`; the first time `early` permille
 * of that. */
static struct metric_timeouts timeouts_of(ns_t least, unsigned times, unsigned early)
{
    struct metrics m = {.n = 0};
    struct metric_timeouts t;

    for (unsigned code = 8; code <= 20; code++) {
        int64_t time = (INT64_C(4096) << code) * times < least ? least : (INT64_C(4096) << code) * times;
        char name[METRIC_NAME];
        snprintf(name, sizeof name, "rto_%u", code);
        metrics_add(&m, &(struct token){.p = name, .len = (uint32_t)strlen(name)}, METRIC_NS, time);
        snprintf(name, sizeof name, "rto_first_%u", code);
        metrics_add(&m, &(struct token){.p = name, .len = (uint32_t)strlen(name)}, METRIC_NS, time * early / 1000);
    }
    t = metrics_timeouts(&m, 1);
    metrics_free(&m);
    return t;
}

Test(conform_measures, ack_timeouts_have_a_class)
{
    struct metric_timeouts t = timeouts_of(0, 2, 1000);

    cr_assert(t.class == TIMEOUTS_IBTA && t.codes == 13 && t.least == 2000 && t.most == 2000 && t.floor == 0);
    /* ConnectX-6: 536.9 ms for codes up to 16, twice the nominal time above; earlier retries before */
    t = timeouts_of(536870912, 2, 1000);
    cr_assert(t.class == TIMEOUTS_FLOORED && t.floor == 16 && t.least == 2000 && t.most == 512000);
    cr_assert_eq(timeouts_of(536870912, 2, 16).class, TIMEOUTS_ADAPTIVE);
    cr_assert_eq(timeouts_of(0, 5, 1000).class, TIMEOUTS_LONG);
    cr_assert_eq(metrics_timeouts(&(struct metrics){.n = 0}, 1).class, TIMEOUTS_UNKNOWN);
    cr_assert_eq(timeouts_of(METRIC_MOST, 1, 0).class, TIMEOUTS_FLOORED); /* as long as a sample may be */
    cr_assert_str_eq(metric_timeouts_str(TIMEOUTS_FLOORED), "floored");
}

/* 60 marks, 10 us apart, for two queue pairs in turn, and the CNPs of a device with this interval, ns, for each of them
 * or for both. */
static void play_marks(struct scope *s, ns_t interval, bool shared)
{
    ns_t last[2] = {-NS_PER_S, -NS_PER_S};

    *s = (struct scope){0};
    for (unsigned i = 0; i < 60; i++) {
        ns_t t = i * INT64_C(10000);
        unsigned qp = i & 1, key = shared ? 0 : qp;
        scope_add(s, t, 2 + qp, false);
        if (t - last[key] < interval)
            continue;
        last[key] = t;
        scope_add(s, t + 1000, 4 + qp, true);
    }
}

Test(conform_measures, the_scope_of_cnps_is_the_model_that_accounts_for_them)
{
    static struct scope s;

    play_marks(&s, 0, false);
    cr_expect(scope_off(&s, SCOPE_PACKET) == 0);
    for (ns_t interval = 20001; interval < 100000; interval += 10000) {
        play_marks(&s, interval, true);
        cr_expect(scope_off(&s, SCOPE_PACKET) > 0 && scope_off(&s, SCOPE_SHARED) == 0, "%lld", (long long)interval);
        play_marks(&s, interval, false);
        cr_expect(scope_off(&s, SCOPE_PACKET) > 0 && scope_off(&s, SCOPE_SHARED) > 0 && scope_off(&s, SCOPE_QP) == 0);
    }
    s.n = 3;
    cr_expect(scope_off(&s, SCOPE_QP) == -1, "too few CNPs to tell");
}

Test(conform_measures, a_scenario_tells_how_late_the_tester_may_be)
{
    static const struct {
        const char *script;
        ns_t least;
    } all[] = {{"qp 1 rc\na post send 1 src\nb > a ACK psn=0 msn=1\n", (INT64_C(4096) << 18) / 2},
               {"qp 1 rc timeout=14\n", (INT64_C(4096) << 14) / 2},
               {"qp 1 rc timeout=14\n# qp 2 rc timeout=9\n", (INT64_C(4096) << 14) / 2},
               {"qp 1 rc timeout=0\n", (INT64_C(4096) << 18) / 2},
               {"b > a none 50ms\n", 5 * NS_PER_MS},
               {"b > a SEND_ONLY psn=0 after=40ms-\n", 4 * NS_PER_MS},
               {"b > a SEND_ONLY psn=0 after=0-30ms\n", 3 * NS_PER_MS},
               {"+20ms a post send 1 src\n", 2 * NS_PER_MS},
               {"wait 100us\n", LATE_LEAST},
               {"qp 1 rc timeout=8\n", LATE_LEAST}};

    for (unsigned i = 0; i < ARRAY_LEN(all); i++)
        cr_expect_eq(in_time_least(all[i].script), all[i].least, "%s: %lld", all[i].script,
                     (long long)in_time_least(all[i].script));
}

/* A stall of 20 ms, which 64 frames wait through; then another delay. */
Test(conform_measures, a_delay_that_many_frames_wait_through_is_one)
{
    static struct late l;

    late_begin(&l);
    late_mark(&l, NS_PER_S);
    late_mark(&l, NS_PER_S + 20 * NS_PER_MS);
    cr_expect(l.n == 1 && l.sum == 20 * NS_PER_MS);
    for (unsigned i = 0; i < 64; i++)
        late_note(&l, NS_PER_S + i * NS_PER_US, NS_PER_S + 20 * NS_PER_MS);
    late_note(&l, NS_PER_S + 19 * NS_PER_MS, NS_PER_S + 22 * NS_PER_MS);
    cr_expect(l.n == 1 && l.sum == 22 * NS_PER_MS && l.most == 20 * NS_PER_MS, "%u delays, %lld ns", l.n,
              (long long)l.sum);
    late_note(&l, NS_PER_S + 30 * NS_PER_MS, NS_PER_S + 31 * NS_PER_MS);
    late_note(&l, NS_PER_S + 40 * NS_PER_MS, NS_PER_S + 40 * NS_PER_MS + LATE_LEAST - 1);
    cr_expect(l.n == 2 && l.sum == 23 * NS_PER_MS, "%u delays, %lld ns", l.n, (long long)l.sum);
}

static void samples(struct metrics *m, const char *name, enum metric_unit u, unsigned n, int64_t value)
{
    struct token t = token_of(name);

    while (n--)
        cr_assert(metrics_add(m, &t, u, value));
}

/* A delay of 20 ms from 1 s on, two of 1 ms from 2 s on. */
static const struct late *three_delays(void)
{
    static struct late l;

    late_begin(&l);
    late_note(&l, NS_PER_S, NS_PER_S + 20 * NS_PER_MS);
    late_note(&l, 2 * NS_PER_S, 2 * NS_PER_S + NS_PER_MS);
    late_note(&l, 2 * NS_PER_S + 5 * NS_PER_MS, 2 * NS_PER_S + 6 * NS_PER_MS);
    return &l;
}

Test(conform_measures, a_sample_counts_unless_a_delay_lies_in_its_own_time)
{
    static const struct {
        ns_t from, to, value;
        bool in_time;
    } all[] = {{0, 900, 900, true},     {1000, 1001, 1, false},  {999, 1000, 1, true}, /* it ended as the delay began */
               {1020, 1021, 1, true},                                                  /* and this began as it ended */
               {1019, 1021, 2, false},  {900, 1100, 200, false},                       /* a tenth of it */
               {900, 1200, 300, true},                                                 /* less than a tenth */
               {1990, 2010, 20, false},                                                /* two delays together */
               {1990, 2003, 13, true},                                                 /* one of them */
               {0, 3000, 0, true}, /* no time: 22 ms of three seconds */
               {1900, 2010, 0, true},   {1999, 2010, 0, false}};

    for (unsigned i = 0; i < ARRAY_LEN(all); i++)
        cr_expect_eq(
            in_time_during(three_delays(), all[i].from * NS_PER_MS, all[i].to * NS_PER_MS, all[i].value * NS_PER_MS),
            all[i].in_time, "%lld to %lld ms", (long long)all[i].from, (long long)all[i].to);
}

Test(conform_measures, a_timer_of_the_device_is_told_by_its_two_packets)
{
    static const struct {
        ns_t from, to;
        bool in_time;
    } all[] = {{900, 1100, true},                       /* a delay of a tenth, but when neither packet came */
               {1020, 1220, false},                     /* the first one may have come up to a tenth earlier */
               {820, 1020, false},                      /* or the second one */
               {1020, 1230, true},                      /* a little less than a tenth */
               {1020, 5000, true},  {1041, 1241, true}, /* the delay had ended a tenth before */
               {1990, 2003, true},  {1995, 2001, false}};

    for (unsigned i = 0; i < ARRAY_LEN(all); i++)
        cr_expect_eq(in_time_at_ends(three_delays(), all[i].from * NS_PER_MS, all[i].to * NS_PER_MS), all[i].in_time,
                     "%lld to %lld ms", (long long)all[i].from, (long long)all[i].to);
}

Test(conform_measures, delays_are_known_by_another_clock)
{
    static struct late other;

    late_on_clock(three_delays(), NS_PER_S, NS_PER_S, &other);
    cr_expect(other.n == 3 && other.sum == 22 * NS_PER_MS);
    cr_expect_eq(late_within(&other, 2 * NS_PER_S - 5 * NS_PER_MS, 2 * NS_PER_S + 5 * NS_PER_MS), 5 * NS_PER_MS);
    late_on_clock(three_delays(), NS_PER_S, NS_PER_S + 5 * NS_PER_MS, &other);
    cr_expect(other.n == 2 && other.sum == 36 * NS_PER_MS, "a clock that moves by 5 ms meanwhile: %u, %lld", other.n,
              (long long)other.sum);
}

Test(conform_measures, more_delays_than_are_told_apart_become_one)
{
    static struct late l;

    late_begin(&l);
    for (unsigned i = 0; i < LATE_DELAYS + 10; i++)
        late_note(&l, i * 10 * NS_PER_MS, i * 10 * NS_PER_MS + NS_PER_MS);
    cr_expect(l.n == LATE_DELAYS && l.sum == LATE_DELAYS * NS_PER_MS + 10 * 10 * NS_PER_MS, "%u, %lld", l.n,
              (long long)l.sum);
    cr_expect(!late_within(&l, 5 * NS_PER_MS, 6 * NS_PER_MS), "between two that are told apart");
    cr_expect(late_within(&l, (LATE_DELAYS + 5) * 10 * NS_PER_MS + 5 * NS_PER_MS,
                          (LATE_DELAYS + 5) * 10 * NS_PER_MS + 6 * NS_PER_MS));
}

Test(conform_measures, what_waited_through_a_delay_without_a_stamp_seems_to_come_behind_it)
{
    static struct late l;

    late_begin(&l);
    late_note(&l, NS_PER_S, NS_PER_S + 2 * NS_PER_MS);
    late_caught_up(&l, NS_PER_S + 3 * NS_PER_MS);
    late_caught_up(&l, NS_PER_S + 9 * NS_PER_MS);
    cr_expect(l.n == 1 && l.sum == 3 * NS_PER_MS, "%lld", (long long)l.sum);
}

Test(conform_measures, tries_add_up_until_half_the_samples_of_one_run_are_there)
{
    struct token a = token_of("a"), b = token_of("b");
    struct metrics all = {0}, run = {0}, to = {0};

    cr_expect(in_time_enough(&all, 1), "nothing was measured");
    samples(&run, "a", METRIC_NS, 1, 5);
    for (unsigned i = 0; i < 3; i++)
        metrics_leave_out(&run, &a, METRIC_NS);
    metrics_leave_out(&run, &b, METRIC_COUNT);
    metrics_gather(&all, &run);
    cr_expect_not(in_time_enough(&all, 1), "1 of 4, and none of 1");
    samples(&run, "a", METRIC_NS, 1, 5);
    for (unsigned i = 0; i < 3; i++)
        metrics_leave_out(&run, &a, METRIC_NS);
    metrics_leave_out(&run, &b, METRIC_COUNT);
    metrics_gather(&all, &run);
    cr_expect_not(in_time_enough(&all, 2), "2 of the 4 of a run, but still none of 1");
    for (unsigned i = 0; i < 4; i++)
        metrics_leave_out(&run, &a, METRIC_NS);
    samples(&run, "b", METRIC_COUNT, 1, 7);
    metrics_gather(&all, &run);
    cr_expect(in_time_enough(&all, 3));
    cr_expect(in_time_sum(&all).there == 3 && in_time_sum(&all).left_out == 12);
    metrics_leave_out(&all, &(struct token){.p = "c", .len = 1}, METRIC_NS);
    metrics_move(&to, &all);
    cr_expect(to.n == 2 && to.metric[0].left_out == 10 && to.metric[1].unit == METRIC_COUNT,
              "what has no samples is no metric");
    metrics_free(&to);
}

/* What `b` has of a metric whose samples took `taken`, in which the tester waited `idle`. */
static const char *bound_said(ns_t taken, ns_t idle, bool json, struct buf *b)
{
    static int64_t sample = 9000000000;
    struct metric m = {.unit = METRIC_BPS, .n = 1, .sample = &sample, .taken = taken, .idle = idle};

    b->len = 0;
    if (json)
        metric_bound_json(&m, b);
    else
        metric_bound_text(&m, sample, b);
    return buf_str(b);
}

Test(conform_measures, which_end_bounds_a_rate_is_told_by_the_time_in_which_the_tester_waits)
{
    struct token name = {.p = "goodput", .len = 7};
    struct metrics all = {0}, more = {0};
    struct buf b = {0};

    cr_expect_str_eq(bound_said(1000, 900, false, &b),
                     "    bounded by the device or the way to it: the tester waited 90.0 % of the time\n");
    cr_expect_str_eq(bound_said(1000, 100, false, &b), "    bounded by the tester, so that the device may do more: "
                                                       "the tester waited 10.0 % of the time\n");
    cr_expect_str_eq(bound_said(1000, 450, false, &b), "    bounded by both ends: the tester waited 45.0 % of the "
                                                       "time; if it took none, at most 20 Gb/s\n");
    cr_expect_str_eq(bound_said(1000, 899, true, &b), ",\"idle_permille\":899,\"bound\":\"both\"");
    cr_expect_str_eq(bound_said(1000, 0, true, &b), ",\"idle_permille\":0,\"bound\":\"tester\"");
    cr_expect_str_eq(bound_said(0, 0, true, &b), "");
    cr_expect_str_eq(bound_said(0, 0, false, &b), "");
    buf_free(&b);
    /* runs are added up by their time; what cannot be is passed over */
    cr_assert(metrics_add(&all, &name, METRIC_BPS, 1) && metrics_add(&more, &name, METRIC_BPS, 2));
    metrics_bound(&all, &name, 3000, 3000);
    metrics_bound(&all, &name, 0, 0);
    metrics_bound(&all, &name, 10, 11);
    metrics_bound(&all, &name, -5, -6);
    metrics_bound(&all, &name, INT64_MAX, 0);
    metrics_bound(&more, &name, 1000, 200);
    metrics_move(&all, &more);
    cr_expect(all.metric[0].n == 2 && all.metric[0].taken == 4000 && all.metric[0].idle == 3200);
    metrics_free(&all);
}

Test(conform_measures, time_waited_is_told_between_frames)
{
    static struct idle l;

    idle_begin(&l);
    cr_expect_eq(idle_within(&l, 0, 100), 0);
    for (ns_t t = 100; t <= 500; t += 100) { /* from 200 on it waits half of the time */
        if (t > 200)
            idle_waited(&l, t - 50, t);
        idle_frame(&l, t);
    }
    idle_waited(&l, 510, 600); /* no frame came */
    idle_waited(&l, 600, 590);
    cr_expect_eq(idle_within(&l, 100, 200), 0);
    cr_expect_eq(idle_within(&l, 100, 500), 150);
    cr_expect_eq(idle_within(&l, 300, 400), 50);
    cr_expect_eq(idle_within(&l, 250, 350), 50, "evenly between two frames");
    cr_expect_eq(idle_within(&l, 0, 200), 0, "before the first frame");
    cr_expect_eq(idle_within(&l, 500, 540), 40, "behind the last one");
    cr_expect_eq(idle_within(&l, 500, 900), 90, "no more than it has waited");
    cr_expect(!idle_within(&l, 400, 300) && !idle_within(&l, 400, 400));
}

Test(conform_measures, time_waited_is_told_between_more_frames_than_are_kept)
{
    static struct idle l;
    ns_t end = 5 * IDLE_MARKS;

    idle_begin(&l);
    for (ns_t i = 0; i <= end; i++) { /* of each ten ns it waits three, until the half */
        if (i && i <= end / 2)
            idle_waited(&l, 10 * i - 3, 10 * i);
        idle_frame(&l, 10 * i);
    }
    cr_expect(l.n <= IDLE_MARKS && l.each == 8, "%u", l.each);
    cr_expect_eq(idle_within(&l, 0, 10 * end), 3 * end / 2);
    cr_expect(llabs(idle_within(&l, end, 3 * end) - 6 * end / 10) <= 3 * 8);
    cr_expect(idle_within(&l, 6 * end, 9 * end) == 0);
}
