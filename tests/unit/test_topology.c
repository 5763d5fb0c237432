/* layer 5 (test): networks as lines of text; ports by name; how long a message takes at best. */
#include "gen/endpoint/endpoint.h"
#include "gen/fabric/fabric.h"

#include <criterion/criterion.h>
#include <stdio.h>

static const uint64_t rate = UINT64_C(40000000000);

static void deliver(void *user, unsigned host, const uint8_t *data, uint32_t len, ns_t now)
{
    (void)data, (void)len, (void)now;
    ((unsigned *)user)[host]++;
}
static void resumed(void *user, unsigned host, ns_t now)
{
    (void)user, (void)host, (void)now;
}

static struct fabric *made(struct topology *t, unsigned *arrived)
{
    const struct fabric_user user = {.deliver = deliver, .resumed = resumed, .user = arrived};
    struct text_error e;
    int err;
    struct fabric *f;

    cr_assert(topology_check(t, &e), "%s", e.msg);
    f = fabric_new(t, &user, 1, &err);
    cr_assert(f);
    topology_free(t);
    return f;
}

Test(topology, built_in_networks_have_their_nodes_and_links)
{
    struct topology t;
    struct text_error e;

    topology_init(&t, rate, 1000);
    cr_assert(topology_make(&t, "leafspine:3,2,4", &e));
    cr_expect_eq(t.n_hosts, 12);
    cr_expect_eq(t.n_nodes, 17);
    cr_expect_eq(t.n_links, 18);
    cr_expect(topology_find(&t, "spine2", 6) >= 0);
    cr_expect(topology_find(&t, "spine3", 6) < 0);
    topology_free(&t);
    topology_init(&t, rate, 1000);
    cr_expect_not(topology_make(&t, "leafspine:1024,1024,1", &e));
    topology_free(&t);
}

Test(topology, an_error_names_the_word)
{
    static const struct {
        const char *line, *what;
        uint32_t col;
    } cases[] = {
        {"switch s buffer=0", "'0' is no value of buffer", 10},
        {"switch s red=5/4/1%", "no value of red", 10},
        {"switch s weight=8:1", "no value of weight", 10},
        {"switch s colour=red", "a switch has no 'colour'", 10},
        {"host 1h", "a name has letters", 6},
        {"host s s", "there is a 's' already", 8},
        {"link s", "expected the two ends", 1},
        {"link rate=0", "'0' is no value of rate", 6},
        {"switch s mark=kmin=9K,kmax=1K", "no value of mark", 10},
        {"hosts a", "expected host, switch or link", 1},
    };
    struct text_error e;

    for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
        struct topology t;
        topology_init(&t, rate, 1000);
        cr_expect_not(topology_line(&t, cases[i].line, &e), "%s", cases[i].line);
        cr_expect(strstr(e.msg, cases[i].what), "%s: %s", cases[i].line, e.msg);
        cr_expect_eq(e.col, cases[i].col, "%s: column %u", cases[i].line, e.col);
        topology_free(&t);
    }
}

Test(topology, damaged_lines_do_no_harm)
{
    static const char *const lines[] = {
        "host a b c", "switch s buffer=12M alpha=1/8 pfc=3,4 xoff=1/8 xon=3K quanta=9 watchdog=1ms/2ms",
        "switch s red=5K/200K/1% mark=kind=pi strict=6,7 weight=0:1,1:3 paths=spray reroute=1us",
        "link a s rate=40G delay=1us reaction=1us loss=1% down=1ms/2ms storm=1ms/2ms"};
    struct prng r;

    prng_seed(&r, 5);
    for (unsigned run = 0; run < 2000; run++) {
        struct topology t;
        struct text_error e;
        topology_init(&t, rate, 1000);
        for (unsigned i = 0; i < ARRAY_LEN(lines); i++) {
            char line[200];
            snprintf(line, sizeof line, "%s", lines[i]);
            for (unsigned k = prng_below(&r, 3); k > 0; k--)
                line[prng_below(&r, (uint32_t)strlen(line))] = (char)(1 + prng_below(&r, 255));
            topology_line(&t, line, &e);
        }
        topology_check(&t, &e);
        topology_free(&t);
    }
}

Test(fabric, a_port_has_a_name_and_a_number)
{
    unsigned arrived[4] = {0};
    struct topology t;
    struct text_error e;
    struct fabric *f;

    topology_init(&t, rate, 1000);
    cr_assert(topology_make(&t, "star:4", &e));
    f = made(&t, arrived);
    cr_expect(fabric_port_find(f, "h3", 2));
    cr_expect_eq(fabric_port_find(f, "s.h3", 4), fabric_port_find(f, "s.3", 3));
    cr_expect_null(fabric_port_find(f, "s", 1));
    cr_expect_null(fabric_port_find(f, "s.5", 3));
    cr_expect_null(fabric_port_find(f, "s.0", 3));
    cr_expect_null(fabric_port_find(f, "h3.s", 4));
    cr_expect_null(fabric_port_find(f, ".", 1));
    fabric_free(f);
}

/* A frame that a link's rate, its delay, and the switch's store-and-forward make arrive at this time. */
Test(fabric, a_frame_arrives_whole_behind_two_links)
{
    unsigned arrived[2] = {0};
    uint8_t frame[100] = {0};
    struct link_addr to = fabric_addr(1, false);
    struct topology t;
    struct text_error e;
    struct fabric *f;
    const ns_t time = 25; /* (100 + 24) bytes at 40 Gbit/s, rounded up */

    topology_init(&t, rate, 1000);
    cr_assert(topology_make(&t, "star:2", &e));
    f = made(&t, arrived);
    memcpy(frame, to.mac, 6);
    cr_expect_eq(fabric_send(f, 0, frame, sizeof frame, 0), time);
    cr_expect_eq(fabric_next(f), time + 1000);
    fabric_run(f, time + 1000);
    cr_expect_eq(fabric_next(f), 2 * (time + 1000));
    fabric_run(f, 2 * (time + 1000));
    cr_expect_eq(arrived[1], 1);
    cr_expect_eq(fabric_next(f), NS_NEVER);
    cr_expect_eq(fabric_ideal(f, 0, 1, 42, 1024, 58, 0), 2 * (time - 1 + 1000)); /* rounded down */
    memset(frame, 0xff, 6);                                                      /* to nobody */
    fabric_send(f, 0, frame, sizeof frame, 5000);
    fabric_run(f, 10000);
    cr_expect_eq(fabric_total(f, 10000).dropped, 1);
    for (ns_t i = 1, at = 20000; i <= 10; i++) { /* 24.8 ns each: the port sends at its rate */
        at = fabric_send(f, 0, frame, sizeof frame, at);
        cr_expect_eq(at, 20000 + (248 * i + 9) / 10);
    }
    fabric_free(f);
}

struct last_frame {
    uint8_t data[2000];
    uint32_t len;
};

static void keep_frame(void *user, unsigned host, const uint8_t *data, uint32_t len, ns_t now)
{
    struct last_frame *l = user;

    (void)host, (void)now;
    memcpy(l->data, data, len);
    l->len = len;
}

/* A frame arrives as it was written, in the draft or elsewhere, whether its memory suits its length or not. */
Test(fabric, a_draft_is_sent)
{
    static const uint32_t lens[] = {60, 128, 129, 1100, 1280, 60, 1100};
    struct last_frame last = {0};
    struct link_addr to = fabric_addr(1, false);
    struct topology t;
    struct text_error e;
    uint8_t copy[1280];
    struct fabric *f;
    int err;

    topology_init(&t, rate, 1000);
    cr_assert(topology_make(&t, "star:2", &e));
    f = fabric_new(&t, &(struct fabric_user){keep_frame, resumed, &last}, 1, &err);
    topology_free(&t);
    cr_assert(f && fabric_draft_open(f, 1280));
    for (unsigned i = 0; i < 2 * ARRAY_LEN(lens); i++) {
        memset(copy, (int)i + 1, lens[i / 2]);
        memcpy(copy, to.mac, 6);
        memcpy(fabric_draft(f), copy, lens[i / 2]);
        fabric_send(f, 0, i % 2 ? copy : fabric_draft(f), lens[i / 2], i * NS_PER_MS);
        while (fabric_next(f) != NS_NEVER)
            fabric_run(f, fabric_next(f));
        cr_expect_eq(last.len, lens[i / 2]);
        cr_expect_eq(memcmp(last.data, copy, last.len), 0);
    }
    fabric_free(f);
}
