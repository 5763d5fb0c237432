/* layer 5 (test): the battery of conformance tests as text, and scenarios played against the agent's twin. */
#include "gen/conform/devices/twin.h"
#include "tests/unit/conform_rig.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>

Test(conform, a_battery_is_read_with_its_rules_and_scenarios)
{
    parses("# said first\n\ntest a/b S A title of words\nanchor C9-1, 9.6\nrules NAK-01 RTX-02\nqp 1 rc\nrun\n"
           "test a/c M Another\nrun\n",
           "");
    cr_assert_eq(battery.n, 2);
    cr_assert_str_eq(battery.test[0].id, "a/b");
    cr_assert_eq(battery.test[0].level, CONFORM_SHOULD);
    cr_assert(token_is(&battery.test[0].title, "A title of words"));
    cr_assert(token_is(&battery.test[0].anchor, "C9-1, 9.6"));
    cr_assert_eq(battery.test[0].n_rules, 2);
    cr_assert_eq(battery.test[0].rules[1], RULE_RTX_02);
    cr_assert(token_is(&battery.test[0].script, "qp 1 rc\nrun\n"));
    cr_assert(token_is(&battery.test[1].script, "run\n"));
}

Test(conform, a_long_test_is_long_wherever_it_is_said_to_be_slow_too)
{
    parses("test a/b S Title\nanchor 9.6\nlong\nslow\nrun\ntest a/c S Title\nanchor 9.6\nslow\nrun\n", "");
    cr_expect(battery.test[0].is_long && battery.test[0].slow);
    cr_expect(!battery.test[1].is_long && battery.test[1].slow);
}

Test(conform, what_is_wrong_with_a_battery_is_said_with_its_line)
{
    parses("", "there is no test");
    parses("qp 1 rc\n", "line 1: expected a test");
    parses("test a/b M T\nrun\ntest a/b M T\n", "line 3: there is a test of this id already");
    parses("test ab M T\n", "line 1: expected: test GROUP/NAME");
    parses("test a/b X T\n", "line 1: expected: test GROUP/NAME");
    parses("test a/b M\n", "line 1: expected: test GROUP/NAME");
    parses("test a/b M T\nrules NAK-99\n", "line 2: rules");
    parses("group a\ntest a/b M T\nrun\n# of that group\ngroup b\n# of this one\ntest b/c M T\nrun\n", "");
    cr_expect(token_is(&battery.test[0].script, "run\n# of that group\n"));
    parses("group a\ntest a/b M T\nrun\ngroup b\nrun\n", "line 2: expected a test, in group b");
    parses("group a\ntest a/b M T\nrun\ngroup b\n# T\ntest a/c M T\n",
           "line 3: the test is of another group, in group b");
    parses("group\ntest a/b M T\n", "line 1: expected: group NAME");
    parses("test a/0123456789012345678901234567890123456789 M T\n", "line 1: expected: test GROUP/NAME");
}

static const char *script_of(const char *text)
{
    static struct buf b;

    parses(text, "");
    b.len = 0;
    conform_script(&battery.test[0], &b);
    return buf_str(&b);
}

Test(conform, lines_are_repeated_with_a_number)
{
    cr_expect_str_eq(script_of("test a/b M T\neach 1-3\nqp {} rc timeout={}\nend\nrun\n"),
                     "qp 1 rc timeout=1\nqp 2 rc timeout=2\nqp 3 rc timeout=3\nrun\n");
    cr_expect_str_eq(script_of("test a/b M T\neach 7-7\na {}\nb {\nend\neach 0-1\n}{}\nend\n"), "a 7\nb {\n}0\n}1\n");
    /* what is none stands as it is, and the scenario refuses it */
    cr_expect_str_eq(script_of("test a/b M T\neach 1-3\nrun\n"), "each 1-3\nrun\n");
    cr_expect_str_eq(script_of("test a/b M T\neach 1-100000\nx\nend\n"), "each 1-100000\nx\nend\n");
    cr_expect_str_eq(script_of("test a/b M T\neach 3-1\nx\nend\ny\n"), "y\n");
    cr_expect_str_eq(script_of("test a/b M T\nrun"), "run");
}

Test(conform, what_a_test_measures_is_read)
{
    const struct conform_ratio *ratio = battery.test[0].ratios;

    parses("test a/b I T\nmeasure window w\nmeasure cnps c\nratio r of over\nratio s of over most 2000\nratio t of "
           "over least 1100\nrun\n",
           "");
    cr_assert_eq(battery.test[0].n_measures, 2);
    cr_assert_eq(battery.test[0].n_ratios, 3);
    cr_assert(token_is(&battery.test[0].measures[1].metric, "c") && token_is(&ratio[0].over, "over"));
    cr_assert(!ratio[0].most && !ratio[0].least && ratio[1].most == 2000 && !ratio[1].least && ratio[2].least == 1100);
    parses("test a/b I T\nmeasure windows w\n", "line 2: expected: measure");
    parses("test a/b I T\nmeasure window\n", "line 2: expected: measure");
    for (const char *const *t = (const char *const[]){"of", "of over most", "of over most 999", "of over at 2000",
                                                      "of over least 1100 x", "of over least 1/2", NULL};
         *t; t++) {
        char text[64];
        snprintf(text, sizeof text, "test a/b I T\nratio r %s\n", *t);
        parses(text, "line 2: expected: ratio");
    }
}

Test(conform, the_battery_of_the_program_is_good)
{
    parses(conform_text(), "");
    cr_assert_gt(battery.n, 30);
    for (unsigned i = 0; i < battery.n; i++) {
        /* A test is about rules, or expects packets or data, or measures. */
        cr_assert(battery.test[i].n_rules || battery.test[i].level == CONFORM_INFORM ||
                      memmem(battery.test[i].script.p, battery.test[i].script.len, "\nb > a ", 7) ||
                      memmem(battery.test[i].script.p, battery.test[i].script.len, "\nb mem ", 7) ||
                      memmem(battery.test[i].script.p, battery.test[i].script.len, "\na mem ", 7) ||
                      memmem(battery.test[i].script.p, battery.test[i].script.len, "\na pause ", 9),
                  "%s", battery.test[i].id);
        cr_assert(battery.test[i].anchor.len, "%s", battery.test[i].id);
    }
}

Test(conform, a_pattern_names_a_test_a_group_or_some_of_both)
{
    cr_assert(conform_matches("nak/gap", "nak/gap"));
    cr_assert(conform_matches("nak/gap", "nak"));
    cr_assert(conform_matches("nak/gap", "*ap"));
    cr_assert(!conform_matches("nak/gap", "na"));
    cr_assert(!conform_matches("nak/gap", "nak/ga"));
}

/* A session that ends in the middle: after so many lines, or with an answer that is none. */
static struct script_dut twin;
static unsigned left;
static const char *wrong;

static bool broken_start(void *user, struct sim *sim)
{
    return twin.start(user, sim);
}
static bool broken_ask(void *user, const char *line, const uint8_t *data, size_t n, struct buf *said, struct buf *bulk)
{
    if (left--)
        return twin.ask(user, line, data, n, said, bulk);
    buf_puts(said, wrong);
    return *wrong != '\0';
}
static void broken_stop(void *user)
{
    twin.stop(user);
}

static enum script_result play(const char *name, const char *text, const struct script_dut *dut, struct buf *out)
{
    struct script_opts o = {.dut = {NULL, dut}};

    sim_config_init(&o.sim, 5);
    o.sim.no_cm = true;
    o.sim.events = event_list_new();
    return script_run(name, text, &o, out);
}

Test(conform, a_session_that_breaks_at_any_line_ends_the_scenario)
{
    static const char text[] = "qp 1 rc\nmem b.dst 64 fill=seq\nmem a.src 64\nb post recv 1 dst\na post send 1 src\n"
                               "b wc 1 SUCCESS RECV len=64\nb mem dst == a.src\nb event none 1ms\nb state 1 RTS\n";
    static const char *const answers[] = {"", "nonsense\n", "1\n", "! wc\n", "! event\n", "999 ok\n", "\n\n\n"};
    struct twin_dut *t = twin_dut_new(&twin, 1);
    struct script_dut broken = {.start = broken_start, .ask = broken_ask, .stop = broken_stop, .user = twin.user};
    enum script_result r = SCRIPT_BROKEN;
    unsigned n = 0;

    for (; r != SCRIPT_OK && n < 1000; n++)
        for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
            struct buf out = {0};
            left = n;
            wrong = answers[i];
            r = play("x", text, &broken, &out);
            cr_assert(r == SCRIPT_OK || (r == SCRIPT_BROKEN && strstr(buf_str(&out), "agent")), "%u %s: %d %s", n,
                      wrong, r, buf_str(&out));
            buf_free(&out);
        }
    cr_assert_gt(n, 12);
    cr_assert_eq(r, SCRIPT_OK);
    twin_dut_free(t);
}

/* An agent that answers one kind of line in its own way. */
static const char *altered, *instead;

static bool altered_ask(void *user, const char *line, const uint8_t *data, size_t n, struct buf *said, struct buf *bulk)
{
    const char *verb = strchr(line, ' ') + 1;

    if (strncmp(verb, altered, strlen(altered)) != 0)
        return twin.ask(user, line, data, n, said, bulk);
    buf_printf(said, "%.*s%s\n", (int)(verb - line), line, instead);
    return true;
}

Test(conform, what_the_device_lacks_is_unsupported_and_what_the_set_up_lacks_is_no_failure_of_the_device)
{
    static const char faa[] = "qp 1 rc\nmem a.old 8\nmem b.c 8\na post faa 1 old at b.c add=1\n";
    static const char injected[] = "qp 1 rc\nmem b.c 8\ninject a > b FAA psn=0 va=c\n";
    static const char recv[] = "qp 1 rc\nmem b.d 64\nb post recv 1 d\n";
    static const char windows[] = "qp 1 rc\nmw b.one 1\n", windows2[] = "qp 1 rc\nmw b.two 2\n";
    static const struct {
        const char *line, *answer, *text;
        enum script_result result;
        const char *said;
    } rows[] = {
        {"dev query", "ok atomic_cap=0", faa, SCRIPT_UNSUPPORTED, "it has no atomics"},
        {"dev query", "ok atomic_cap=0", injected, SCRIPT_UNSUPPORTED, "it has no atomics"},
        {"dev query", "ok atomic_cap=1", faa, SCRIPT_OK, ""},
        {"dev query", "ok phys_port_cnt=99 device_cap_flags=0x20000", windows, SCRIPT_OK, ""},
        {"dev query", "ok device_cap_flags=0x20000", windows2, SCRIPT_UNSUPPORTED, "no memory windows of this type"},
        {"dev query", "ok device_cap_flags=0x1000000", windows2, SCRIPT_OK, ""},
        {"dev query", "ok device_cap_flags=0x1000000", windows, SCRIPT_UNSUPPORTED, "no memory windows of this type"},
        {"dev open", "err ENODEV none", recv, SCRIPT_BROKEN, "ENODEV none"},
        {"pd", "err ENOMEM no room", recv, SCRIPT_BROKEN, "ENOMEM no room"},
        {"cq", "err EOPNOTSUPP no", recv, SCRIPT_UNSUPPORTED, "EOPNOTSUPP"},
        {"mem write", "err EIO no", recv, SCRIPT_BROKEN, "EIO"},
        {"qp modify", "err EINVAL no", recv, SCRIPT_BROKEN, "EINVAL"},
        {"post recv", "err EINVAL no", recv, SCRIPT_FAILED, "EINVAL"},
        {"post recv", "err ENOSYS no", recv, SCRIPT_UNSUPPORTED, "ENOSYS"},
    };
    struct twin_dut *t = twin_dut_new(&twin, 1);
    struct script_dut dut = twin;

    dut.ask = altered_ask;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf out = {0};
        altered = rows[i].line;
        instead = rows[i].answer;
        enum script_result r = play("x", rows[i].text, &dut, &out);
        cr_expect(r == rows[i].result && strstr(buf_str(&out), rows[i].said), "%zu: %d %s", i, r, buf_str(&out));
        buf_free(&out);
    }
    twin_dut_free(t);
}

static char *whole_file(const char *path)
{
    char *text = calloc(1, 65536);
    FILE *f = fopen(path, "r");

    cr_assert(f && text && fread(text, 1, 65535, f) > 0, "%s", path);
    fclose(f);
    return text;
}

/* Scenarios between two endpoints hold as well if one of them is behind its agent: the device answers as before. */
Test(conform, scenarios_hold_with_the_twin_as_host_b)
{
    struct twin_dut *t = twin_dut_new(&twin, 1);
    unsigned good = 0, lacking = 0;
    glob_t g;

    cr_assert_eq(glob("tests/scenarios/*.rdma", 0, NULL, &g), 0);
    for (size_t i = 0; i < g.gl_pathc; i++) {
        char *text = whole_file(g.gl_pathv[i]);
        struct buf out = {0};
        enum script_result r = play("x", text, &twin, &out);
        cr_expect(r == SCRIPT_OK || r == SCRIPT_UNSUPPORTED, "%s: %d %s", g.gl_pathv[i], r, buf_str(&out));
        good += r == SCRIPT_OK;
        lacking += r == SCRIPT_UNSUPPORTED;
        buf_free(&out);
        free(text);
    }
    cr_assert(good > 150 && lacking > 20, "%u hold, %u need what agents lack", good, lacking);
    globfree(&g);
    twin_dut_free(t);
}
