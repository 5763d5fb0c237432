/* layer 3 (gen) tests: nodes of the simulated network, exact events, words and numbers of scenario lines. */
#include "dissect/pkt.h"
#include "gen/net/net.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#define MAX 4096

/* What arrived at host 1. */
struct arrived {
    ns_t when[MAX];
    uint32_t len[MAX];
    uint32_t psn[MAX];
    uint8_t tos[MAX];
    bool good[MAX]; /* ICRC */
    unsigned n;
};
static struct arrived got;

static void arrive(void *user, unsigned to, const uint8_t *data, uint32_t len, ns_t now)
{
    static const struct decode_opts verify = {.verify = true};
    struct frame f = {.data = data, .caplen = len, .len = len, .linktype = LINK_ETHERNET};
    struct pkt p;

    (void)user;
    cr_assert_eq(to, 1);
    cr_assert_lt(got.n, MAX);
    pkt_decode(&p, &f, &verify);
    got.when[got.n] = now;
    got.len[got.n] = len;
    got.psn[got.n] = p.have & H_BTH ? p.bth.psn : UINT32_MAX;
    got.tos[got.n] = p.addr_len ? p.tos : 0;
    got.good[got.n++] = p.icrc == CRC_GOOD;
}

/* A SEND Only with `psn` and 1000 bytes of payload: 1058 bytes, ECT(0). */
static uint32_t frame_make(uint8_t *buf, uint32_t psn)
{
    struct link_addr own = {.encap = ENCAP_ROCEV2, .mac = {2, 0, 0, 0, 0, 1}};
    struct av av = {.dmac = {2, 0, 0, 0, 0, 2}, .sport = 0xc000, .tclass = 2};
    struct build_tweak none = {0};
    struct frame_out out = {.buf = buf, .cap = EP_FRAME_MAX};
    struct path path;
    struct pkt p;

    memset(&p, 0, sizeof p);
    gid_from_ipv4(own.gid, 0x32323201);
    gid_from_ipv4(av.dgid, 0x32323202);
    p.op = &opcode_table[OP_SEND_ONLY];
    p.have = H_BTH;
    p.bth.opcode = OP_SEND_ONLY;
    p.bth.pkey = 0xffff;
    p.bth.dqpn = 0x22;
    p.bth.psn = psn;
    cr_assert_eq(path_init(&path, &own, &av), 0);
    cr_assert_eq(build_begin(&out, &path, &p, 1000, 0, &none), 0);
    memset(out.payload, 'x', 1000);
    build_end(&out, &path, &p, 1000, &none);
    return out.len;
}

static struct net_config config;

static void words(const char *text)
{
    struct token t[16];
    struct text_error e;
    unsigned n = text_split(text, t, ARRAY_LEN(t));

    cr_assert(net_parse(&config, t, n, 1, &e), "%s: column %u: %s", text, e.col, e.msg);
}

/* Send `n` frames `gap` ns apart through the nodes of `text`, after `spec` (NULL: no event), and let all arrive. */
static void play(const char *text, const char *spec, unsigned n, ns_t gap)
{
    static struct net net;
    struct tap_set *const no_taps[3] = {NULL, NULL, NULL};
    struct event_list *events = event_list_new();
    uint8_t buf[EP_FRAME_MAX];
    struct token t[EVENT_WORDS];
    struct text_error e;
    ns_t now = 0;

    got.n = 0;
    memset(&config, 0, sizeof config);
    conns_add(event_conns(events), &(struct conn_id){.qpn = {0x11, 0x22}, .psn = {100, 200}});
    if (text)
        words(text);
    if (spec)
        cr_assert(event_add(events, t, text_split(spec, t, EVENT_WORDS), spec, &e), "%s: column %u: %s", spec, e.col,
                  e.msg);
    cr_assert_eq(net_build(&net, &config, no_taps, events, LINK_ETHERNET, 42), 0);
    net.deliver = arrive;
    for (unsigned i = 0; i < n; i++, now += gap) {
        net_run(&net, now);
        cr_assert(net_send(&net, 0, buf, frame_make(buf, 100 + i), now));
    }
    for (ns_t next; (next = net_next(&net)) != NS_NEVER;)
        net_run(&net, next);
    net_free(&net);
    event_list_free(events);
}

static unsigned count_bad(void)
{
    unsigned n = 0;
    for (unsigned i = 0; i < got.n; i++)
        n += !got.good[i];
    return n;
}

Test(net, without_nodes_frames_pass_at_once_and_unchanged)
{
    play(NULL, NULL, 3, 10);
    cr_assert_eq(got.n, 3);
    for (unsigned i = 0; i < 3; i++) {
        cr_expect_eq(got.when[i], i * 10);
        cr_expect_eq(got.psn[i], 100 + i);
        cr_expect_eq(got.len[i], 1058);
    }
    cr_expect_eq(count_bad(), 0);
}

Test(net, delay_is_exact_and_jitter_keeps_the_order)
{
    play("delay=5us", NULL, 2, 10);
    cr_expect_eq(got.when[0], 5000);
    cr_expect_eq(got.when[1], 5010);
    play("jitter=5us", NULL, 500, 10);
    ns_t most = 0;
    cr_assert_eq(got.n, 500);
    for (unsigned i = 0; i < 500; i++) {
        cr_expect_eq(got.psn[i], 100 + i);
        cr_expect_geq(got.when[i], i * 10);
        if (got.when[i] - i * 10 > most)
            most = got.when[i] - i * 10;
    }
    cr_expect(most > 4000 && most <= 5000 * 2, "largest delay %lld", (long long)most);
}

Test(net, rate_serialises_and_the_queue_drops_its_tail)
{
    /* 1058 bytes at 1 Gbit/s take 8464 ns. */
    play("rate=1G", NULL, 3, 0);
    cr_expect_eq(got.when[0], 8464);
    cr_expect_eq(got.when[1], 2 * 8464);
    cr_expect_eq(got.when[2], 3 * 8464);
    play("rate=1G queue=5000", NULL, 10, 0);
    cr_expect_eq(got.n, 4, "4 frames of 1058 bytes fit in 5000, not %u", got.n);
    cr_expect_eq(got.psn[3], 103);
}

Test(net, a_queue_beyond_its_threshold_marks_ce)
{
    play("rate=1G ecn=2000", NULL, 5, 0);
    for (unsigned i = 0; i < 5; i++)
        cr_expect_eq(got.tos[i] & 3, i < 2 ? 2 : 3, "frame %u", i);
    cr_expect_eq(count_bad(), 0);
    play("rate=1G red=1000/100000/100%", NULL, 80, 0);
    unsigned marked = 0;
    for (unsigned i = 0; i < got.n; i++)
        marked += (got.tos[i] & 3) == 3;
    cr_expect(marked > 15 && marked < 60, "RED marks some, not %u of 80", marked);
    cr_expect_neq(got.tos[0] & 3, 3);
}

Test(net, loss_by_chance_by_count_and_in_bursts)
{
    play("loss=100%", NULL, 10, 10);
    cr_expect_eq(got.n, 0);
    play("loss=10%", NULL, 1000, 10);
    cr_expect(got.n > 850 && got.n < 950, "%u of 1000 are left", got.n);
    play("every=4", NULL, 12, 10);
    cr_expect_eq(got.n, 9);
    cr_expect_eq(got.psn[3], 104, "the fourth is lost");
    play("burst=1%/20%", NULL, 2000, 10);
    unsigned runs = 0, lost = 2000 - got.n;
    for (unsigned i = 1; i < got.n; i++)
        runs += got.psn[i] != got.psn[i - 1] + 1;
    cr_expect(lost > 40 && lost < 250 && lost > 2 * runs, "%u lost in %u bursts", lost, runs);
}

Test(net, a_path_that_is_down_loses_all_its_frames)
{
    play("down=20ns/30ns", NULL, 10, 10);
    cr_assert_eq(got.n, 7);
    cr_expect_eq(got.psn[1], 101);
    cr_expect_eq(got.psn[2], 105, "it is up again");
    play("down=50ns", NULL, 10, 10);
    cr_expect_eq(got.n, 5);
    play("path=2 down=0ns", NULL, 10, 10);
    cr_expect_eq(got.n, 10, "these frames take path 1");
    play("path=1 every=2", NULL, 10, 10);
    cr_expect_eq(got.n, 5);
}

Test(net, places_of_nodes_that_are_wrong_are_told)
{
    static const char *const wrong[] = {"path=3 loss=1%", "path=x loss=1%", "path=1 path=2 loss=1%",
                                        "down=x",         "down=1us/0ns",   "down=1us/x"};
    struct token t[4];
    struct text_error e;

    for (unsigned i = 0; i < ARRAY_LEN(wrong); i++)
        cr_expect_not(net_parse(&config, t, text_split(wrong[i], t, ARRAY_LEN(t)), 1, &e), "%s", wrong[i]);
}

Test(net, reordered_frames_are_passed_by_so_many_others)
{
    play("reorder=5%/3", NULL, 300, 10);
    cr_assert_eq(got.n, 300);
    unsigned late = 0;
    for (unsigned i = 1; i < 300; i++)
        if (got.psn[i] < got.psn[i - 1]) {
            cr_expect_leq(got.psn[i - 1] - got.psn[i], 6);
            late++;
        }
    cr_expect(late > 3 && late < 40, "%u frames came late", late);
}

Test(net, doubled_cut_and_damaged)
{
    play("dup=100%", NULL, 5, 10);
    cr_expect_eq(got.n, 10);
    cr_expect_eq(got.psn[1], 100);
    play("truncate=100%/58", NULL, 2, 10);
    cr_expect_eq(got.len[0], 1000);
    play("mtu=1000", NULL, 2, 10);
    cr_expect_eq(got.n, 0);
    play("mtu=1058", NULL, 2, 10);
    cr_expect_eq(got.n, 2);
    play("corrupt=100%", NULL, 20, 10);
    cr_expect_eq(count_bad(), 20);
    cr_expect_eq(got.psn[7], 107, "the payload is hit, not the headers");
    play("corrupt=100%/icrc", NULL, 20, 10);
    cr_expect_eq(count_bad(), 20);
    play("corrupt=100%/infiniband.bth.psn", NULL, 4, 10);
    cr_expect_eq(got.psn[0], 101);
    cr_expect_eq(count_bad(), 4);
}

Test(net, the_same_seed_does_the_same)
{
    static struct arrived first;

    play("loss=5% reorder=5%/2 jitter=100ns", NULL, 500, 10);
    first = got;
    play("loss=5% reorder=5%/2 jitter=100ns", NULL, 500, 10);
    cr_expect_eq(first.n, got.n);
    cr_expect_eq(memcmp(first.psn, got.psn, sizeof got.psn), 0);
    cr_expect_eq(memcmp(first.when, got.when, sizeof got.when), 0);
}

Test(event, addresses_one_packet_by_relative_psn)
{
    play(NULL, "conn=1 dir=req class=send psn=2 drop", 5, 10);
    cr_assert_eq(got.n, 4);
    cr_expect_eq(got.psn[2], 103);
    play(NULL, "psn=1-3 drop", 5, 10);
    cr_assert_eq(got.n, 2);
    play(NULL, "conn=2 psn=1 drop", 5, 10);
    cr_expect_eq(got.n, 5, "there is no second connection");
    play(NULL, "class=write drop", 5, 10);
    cr_expect_eq(got.n, 5);
    play(NULL, "dir=rsp psn=1 drop", 5, 10);
    cr_expect_eq(got.n, 5);
    play(NULL, "nth=3- drop", 5, 10);
    cr_expect_eq(got.n, 2);
}

Test(event, psns_have_24_bits)
{
    static const struct {
        const char *spec;
        bool good;
    } cases[] = {{"psn=16777215 drop", true},       {"psn=3-16777215 drop", true},   {"psn=16777216 drop", false},
                 {"psn=3-99999999999 drop", false}, {"psn=99999999999 drop", false}, {"psn=16777216- drop", false},
                 {"nth=99999999999 drop", true}};
    struct token t[EVENT_WORDS];
    struct text_error e;

    for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
        struct event_list *l = event_list_new();
        cr_expect_eq(event_add(l, t, text_split(cases[i].spec, t, EVENT_WORDS), cases[i].spec, &e), cases[i].good, "%s",
                     cases[i].spec);
        event_list_free(l);
    }
}

Test(event, does_what_it_says)
{
    play(NULL, "psn=1 delay=5us", 3, 10);
    cr_expect_eq(got.psn[2], 101);
    cr_expect_eq(got.when[2], 5010);
    play(NULL, "psn=0 reorder=2", 4, 10);
    cr_expect_eq(got.psn[2], 100);
    play(NULL, "psn=0 dup=3", 1, 10);
    cr_expect_eq(got.n, 4);
    play(NULL, "psn=0 truncate=100", 1, 10);
    cr_expect_eq(got.len[0], 958);
    play(NULL, "psn=0 ce", 1, 10);
    cr_expect_eq(got.tos[0] & 3, 3);
    cr_expect(got.good[0]);
    play(NULL, "psn=0 corrupt", 1, 10);
    cr_expect_not(got.good[0]);
    play(NULL, "psn=0 set infiniband.bth.psn=7", 1, 10);
    cr_expect_eq(got.psn[0], 7);
    cr_expect(got.good[0], "the ICRC is made right again");
    play(NULL, "psn=0 set infiniband.bth.psn=7 raw", 1, 10);
    cr_expect_not(got.good[0]);
}

Test(text, numbers_have_units)
{
    static const struct {
        const char *text;
        uint64_t v;
    } sizes[] = {{"8K", 8192}, {"1.5K", 1536}, {"2M", 2097152}, {"0x10", 16}, {"7", 7}},
      rates[] = {{"10G", 10000000000}, {"1.5M", 1500000}, {"9", 9}},
      times[] = {{"5us", 5000}, {"1.5ms", 1500000}, {"2s", 2000000000}, {"7ns", 7}, {"0", 0}},
      chances[] = {{"1%", 10000000}, {"0.01", 10000000}, {"1e-6", 1000}, {"1", 1000000000}, {"0", 0}};
    static const char *const bad_times[] = {"5", "us", "5 us", "1.5ns", "99999999999s", "-5us", ""};
    uint64_t u;
    uint32_t ppb;
    ns_t t;

    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        struct token w = token_of(sizes[i].text);
        cr_expect(token_size(&w, &u) && u == sizes[i].v, "%s", sizes[i].text);
    }
    for (size_t i = 0; i < ARRAY_LEN(rates); i++) {
        struct token w = token_of(rates[i].text);
        cr_expect(token_rate(&w, &u) && u == rates[i].v, "%s", rates[i].text);
    }
    for (size_t i = 0; i < ARRAY_LEN(times); i++) {
        struct token w = token_of(times[i].text);
        cr_expect(token_time(&w, &t) && (uint64_t)t == times[i].v, "%s", times[i].text);
    }
    for (size_t i = 0; i < ARRAY_LEN(chances); i++) {
        struct token w = token_of(chances[i].text);
        cr_expect(token_ppb(&w, &ppb) && ppb == chances[i].v, "%s", chances[i].text);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad_times); i++) {
        struct token w = token_of(bad_times[i]);
        cr_expect_not(token_time(&w, &t), "%s", bad_times[i]);
    }
    struct token two = token_of("2"), huge = token_of("99999999999999999999");
    cr_expect_not(token_ppb(&two, &ppb));
    cr_expect_not(token_u64(&huge, &u));
}
