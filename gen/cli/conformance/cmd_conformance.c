/* layer 4 (tool): `rdmagen conformance`: plays the battery against a device under test, and prints its score card. */
#include "gen/agent/server.h"
#include "gen/cli/conformance/conformance_cli.h"
#include "gen/endpoint/faults.h"
#include "gen/peers/perftest.h"
#include "gen/sim/traffic.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PATIENCE      (10 * NS_PER_S)
#define ANSWER        (30 * NS_PER_S) /* of the agent: a command of a device's firmware may take long */
#define REPEAT_MAX    1000
#define ADDRESSES_MAX 16

static const struct opt_def defs[] = {
    {OPT_TWIN, "test the twin of a device, which is an endpoint of ours, in virtual time"},
    {OPT_TWINS, "two twins play against each other"},
    {OPT_BETWEEN, "two devices play against each other, and this host forwards what passes between them; to be\n"
                  "given twice: the interface towards the first HOST, and that towards the second one"},
    {OPT_EXCHANGE, "HOST has no agent, but runs perftest (ib_write_bw), pingpong (ibv_rc_pingpong) or rping (-s):\n"
                   "the tests that can be played with it"},
    {OPT_LIST, "list the tests, and run none"},
    {OPT_DRY_RUN, "the same"},
    {OPT_COVERAGE, "list what can be asked of a device, the tests that ask it, and what is not asked"},
    {OPT_STORED, "run no test: a score card that was stored with -T json, for --baseline"},
    {OPT_BASELINE, "say what has changed since this score card; only a test that came out worse is a failure then"},
    {OPT_LEVEL, "run tests of these levels only: must, should (both of these) or all; or letters: M, S, "
                "I\n(information), such as MS"},
    {OPT_QUICK, "leave out the tests that take long on a real network"},
    {OPT_FULL, "run also those that take minutes"},
    {OPT_REPEAT, "run each test so often, each time with the next seed (1); the worst run counts"},
    {OPT_SEED, "seed of starting PSNs and the like (1)"},
    {OPT_FAULT, "the twin breaks this rule (repeatable), see `rdmagen faults`"},
    {OPT_PROFILE, "deviations of the device that are known: rxe (Linux soft-RoCE), mlx5, mlx4, irdma, bnxt_re,\n"
                  "efa, or a file of them"},
    {OPT_KEEP, "keep the capture and the scenario of each test in this directory; with -o: failed (of those that did\n"
               "not pass), all or none (all)"},
    {OPT_OUT_DIR, "write report.txt, .json, .xml and .html to this directory, and what is kept of the tests to tests/\n"
                  "in it, with a ladder of each that did not pass"},
    {OPT_RESUME, "go on with a run that ended before its end, in its directory"},
    {OPT_EXPECTED, "the results that are expected, a test and a result a line: any other one is a failure"},
    {OPT_FORMAT, "text, json or junit (text)"},
    {OPT_CARD, "write the score card to this file, too: as JSON"},
    {OPT_JUNIT, "as XML of JUnit"},
    {OPT_HTML, "as an HTML page"},
    {OPT_PING_QUIET, "no line for a test that passed"},
    {OPT_VERBOSE, "of each test its source, rules, time and packets, too"},
    {OPT_TOKEN_FILE, "file with the token of the agent, which only its owner may read"},
    {OPT_TCP, "the agent listens at this address instead of HOST"},
    {OPT_ANSWER, "longest wait for an answer of the agent (30)"},
    {OPT_TIMEOUT, "longest wait of an expectation (10)"},
    {OPT_INTERFACE, "the interface to use (that of the route to HOST)"},
    {OPT_BACKEND, "how frames are sent and received: see `rdmagen backends` (packet)"},
    {OPT_ADDR, "an IPv4 or IPv6 address of your own, which this host does not have"},
    {OPT_ADDRESSES,
     "with --addr: so many addresses of your own, that and those behind it (1), for tests that need two"},
    {OPT_MAC, "with --addr: its MAC address (made from ADDR)"},
    {OPT_PEER_MAC, "the MAC address of the device, or of the router to it (it is asked for)"},
    {OPT_VLAN, "802.1Q tag"},
    {OPT_VIA, "the router to HOST (none: HOST is a neighbour)"},
    {OPT_MTU, "path MTU: 256, 512, 1024, 2048 or 4096 (the largest that the interface carries)"},
    {OPT_HELP, "show this help"},
    {0, NULL, NULL, NULL},
};

static const char *const formats[] = {"text", "json", "junit", NULL};

enum { WITH_TWIN = 1, WITH_LIST = 2, WITH_DEVICE = 4, WITH_STORED = 8 };

static const struct opt_clash clashes[] = {
    {KEY_TWIN, KEY_LIST, 0, NULL},
    {KEY_TWIN, KEY_TWINS, 0, NULL},
    {KEY_QUICK, KEY_FULL, 0, NULL},
    {'v', 'q', 0, NULL},
    {'v', 'T', 0, NULL},
    {'v', 0, WITH_LIST | WITH_STORED, "is for a run"},
    {KEY_EXCHANGE, KEY_BETWEEN, 0, NULL},
    {KEY_EXCHANGE, KEY_TOKEN_FILE, 0, NULL},
    {KEY_EXCHANGE, KEY_ANSWER, 0, NULL},
    {KEY_EXCHANGE, 0, WITH_TWIN | WITH_STORED, "is for a program without an agent: give HOST"},
    {KEY_TWINS, KEY_LIST, 0, NULL},
    {KEY_TWINS, KEY_STORED, 0, NULL},
    {KEY_TWINS, KEY_COVERAGE, 0, NULL},
    {KEY_BETWEEN, 0, WITH_TWIN | WITH_LIST | WITH_STORED, "is for two devices: give two HOSTs"},
    {KEY_TWIN, KEY_STORED, 0, NULL},
    {KEY_TWIN, KEY_COVERAGE, 0, NULL},
    {KEY_LIST, KEY_COVERAGE, 0, NULL},
    {KEY_STORED, KEY_COVERAGE, 0, NULL},
    {KEY_BASELINE, KEY_COVERAGE, 0, NULL},
    {KEY_LIST, KEY_STORED, 0, NULL},
    {KEY_LIST, KEY_BASELINE, 0, NULL},
    {KEY_STORED, -KEY_BASELINE, 0, NULL},
    {'T', KEY_BASELINE, 0, NULL},
    {'o', KEY_RESUME, 0, NULL},
    {KEY_EXPECTED, KEY_BASELINE, 0, NULL},
    {'o', 0, WITH_LIST | WITH_STORED, "is for a run"},
    {KEY_RESUME, 0, WITH_LIST | WITH_STORED, "is for a run"},
    {KEY_EXPECTED, 0, WITH_LIST | WITH_STORED, "is for a run"},
    {KEY_JSON, 0, WITH_LIST | WITH_STORED, "is for a run"},
    {KEY_JUNIT, 0, WITH_LIST | WITH_STORED, "is for a run"},
    {KEY_HTML, 0, WITH_LIST | WITH_STORED, "is for a run"},
    {KEY_FAULT, 0, WITH_DEVICE | WITH_STORED, "is for --twin"},
    {KEY_TOKEN_FILE, 0, WITH_TWIN | WITH_LIST, "is for a device: give HOST"},
    {KEY_TCP, 0, WITH_TWIN | WITH_LIST, "is for a device: give HOST"},
    {KEY_ANSWER, 0, WITH_TWIN | WITH_LIST, "is for a device: give HOST"},
    {KEY_TIMEOUT, 0, WITH_TWIN | WITH_LIST, "is for a device: give HOST"},
    {'I', 0, WITH_TWIN | WITH_LIST, "is for a device: give HOST"},
    {KEY_BACKEND, 0, WITH_TWIN | WITH_LIST, "is for a device: give HOST"},
    {KEY_ADDR, 0, WITH_TWIN | WITH_LIST, "is for a device: give HOST"},
    {KEY_ADDRESSES, 0, WITH_TWIN | WITH_LIST, "is for a device: give HOST"},
    {KEY_MAC, 0, WITH_TWIN | WITH_LIST, "is for a device: give HOST"},
    {KEY_PEER_MAC, 0, WITH_TWIN | WITH_LIST, "is for a device: give HOST"},
    {KEY_VLAN, 0, WITH_TWIN | WITH_LIST, "is for a device: give HOST"},
    {KEY_VIA, 0, WITH_TWIN | WITH_LIST, "is for a device: give HOST"},
    {'m', 0, WITH_TWIN | WITH_LIST, "is for a device: give HOST"},
    {KEY_MAC, -KEY_ADDR, 0, NULL},
    {KEY_ADDRESSES, -KEY_ADDR, 0, NULL},
    {0, 0, 0, NULL},
};

void cmd_conformance_help(struct buf *b)
{
    buf_puts(b,
             "Usage: rdmagen conformance [options] HOST[:PORT] [TEST|GROUP|GLOB ...]\n"
             "       rdmagen conformance --between IFACE --between IFACE [options] HOST[:PORT] HOST[:PORT] [TEST ...]\n"
             "       rdmagen conformance --twin|--twins [options] [TEST|GROUP|GLOB ...]\n"
             "       rdmagen conformance --list [options] [TEST|GROUP|GLOB ...]\n"
             "       rdmagen conformance --coverage\n"
             "       rdmagen conformance diff CARD CARD\n"
             "       rdmagen conformance matrix -o FILE CARD...\n\n"
             "Test how a device follows the rules of the transport, and print its score card. The device is that of "
             "HOST,\nwhere `rdmagen agent` runs.\n\n");
    opt_help(b, defs);
    buf_puts(b,
             "\nExit status: 0 if no test failed, 1 if one did, met an error, was inconclusive or was not run,\n2 for "
             "usage, or files that cannot be written, 3 for an interface that cannot be used, or an agent that is not "
             "reached.\n");
}

/* --- Options ---------------------------------------------------------------------------------- */

static int option_level(struct conformance_job *j, const char *arg)
{
    static const char *const words[] = {"must", "should", "all"}; /* each with those before it */

    memset(j->level, 0, sizeof j->level);
    for (unsigned i = 0; i < ARRAY_LEN(words); i++)
        if (strcmp(arg, words[i]) == 0) {
            memset(j->level, 1, i + 1);
            return 0;
        }
    for (const char *p = arg; *p; p++) {
        unsigned l = 0;
        while (l < CONFORM_LEVELS && *conform_level_str((enum conform_level)l) != *p)
            l++;
        if (l == CONFORM_LEVELS)
            return cli_error("--level %s: expected must, should, all, or letters of M, S and I", arg);
        j->level[l] = true;
    }
    return *arg ? 0 : cli_error("--level: expected must, should, all, or letters of M, S and I");
}

/* Neither a rule nor a flaw has this name. */
static int no_fault(const char *arg)
{
    struct buf b = {0};
    int status;

    for (unsigned i = 0; i < FLAW_COUNT; i++)
        buf_printf(&b, "%s%s", i ? ", " : "", flaw_table[i].name);
    status = cli_error("--fault %s: no rule of this name that a device can break here; see `rdmagen faults`. "
                       "Other faults: %s",
                       arg, buf_str(&b));
    buf_free(&b);
    return status;
}

static int option_fault(struct conformance_job *j, const char *arg)
{
    const struct fault_info *f = fault_find(rule_find(arg));
    int flaw = flaw_find(arg);

    if (flaw >= 0) {
        j->run.flaws |= 1u << flaw;
        return 0;
    }
    if (!f || j->run.n_faults == FAULTS_MAX)
        return no_fault(arg);
    j->run.faults[j->run.n_faults++] = f->rule;
    return 0;
}

/* Deviations that are known: a name, or a file. */
static int option_profile(struct conformance_job *j, const char *arg)
{
    struct buf err = {0};
    const char *text = known_text(arg);
    int e = text ? 0 : sim_read_file(arg, &j->known_text), status = 0;

    if (e < 0)
        return cli_error("--profile %s: expected rxe, mlx5, mlx4, irdma, bnxt_re, efa, or a file: %s", arg,
                         strerror(-e));
    if (!known_parse(&j->known, text ? text : buf_str(&j->known_text), &err))
        status = cli_error("--profile %s: %s", arg, buf_str(&err));
    buf_free(&err);
    j->run.known = &j->known;
    return status;
}

/* A number from 1 to `most`. */
static int number_of(const char *option, const char *arg, unsigned most, uint64_t *n)
{
    return opt_number(arg, 1, most, n) ? 0 : cli_error("--%s %s: expected a number from 1 to %u", option, arg, most);
}

static int option_addresses(struct conformance_job *j, const char *arg)
{
    uint64_t n = 0;
    int status = number_of("addresses", arg, ADDRESSES_MAX, &n);

    j->config.addresses = (uint8_t)n;
    return status;
}

static int option_repeat(struct conformance_job *j, const char *arg)
{
    uint64_t n = 0;
    int status = number_of("repeat", arg, REPEAT_MAX, &n);

    j->run.repeat = (unsigned)n;
    return status;
}

/* Options whose argument is kept as it is, and those without one that are remembered: where in the job. */
struct plain_option {
    int key;
    size_t at;
};
#define AT(member) offsetof(struct conformance_job, member)
static const struct plain_option texts[] = {
    {KEY_BASELINE, AT(baseline)},      {KEY_STORED, AT(stored)}, {KEY_KEEP, AT(kept)},   {'o', AT(out)},
    {KEY_EXPECTED, AT(expected_file)}, {KEY_JSON, AT(json)},     {KEY_JUNIT, AT(junit)}, {KEY_HTML, AT(html)},
    {KEY_TOKEN_FILE, AT(token_file)},  {KEY_TCP, AT(tcp)}};
static const struct plain_option flags[] = {
    {KEY_TWIN, AT(twin)},   {KEY_LIST, AT(list)}, {KEY_DRY_RUN, AT(list)}, {KEY_COVERAGE, AT(coverage)},
    {KEY_QUICK, AT(quick)}, {KEY_FULL, AT(full)}, {'q', AT(quiet)},        {'v', AT(verbose)}};

/* False: it is none of these. */
static bool option_plain(struct conformance_job *j, int key, const char *arg)
{
    for (unsigned i = 0; i < ARRAY_LEN(texts); i++)
        if (texts[i].key == key)
            return *(const char **)((char *)j + texts[i].at) = arg, true;
    for (unsigned i = 0; i < ARRAY_LEN(flags); i++)
        if (flags[i].key == key)
            return *(bool *)((char *)j + flags[i].at) = true;
    return false;
}

static int option_between(struct conformance_job *j, const char *arg)
{
    if (j->between[1])
        return cli_error("--between %s: two interfaces are given already", arg);
    j->between[j->between[0] != NULL] = arg;
    return 0;
}

static int option_exchange(struct conformance_job *j, const char *arg)
{
    j->exchange = arg;
    j->with = conform_peer_find(arg);
    return j->with >= 0 ? 0 : cli_error("--exchange %s: expected perftest, pingpong or rping", arg);
}

static int option(struct conformance_job *j, int key, const char *arg)
{
    bool mine;

    if (option_plain(j, key, arg))
        return 0;
    switch (key) {
    case KEY_TWINS:
        j->twins = j->twin = true;
        return 0;
    case KEY_RESUME:
        j->resume = j->out = arg;
        return 0;
    case KEY_BETWEEN:
        return option_between(j, arg);
    case KEY_LEVEL:
        return option_level(j, arg);
    case KEY_EXCHANGE:
        return option_exchange(j, arg);
    case KEY_ADDRESSES:
        return option_addresses(j, arg);
    case KEY_REPEAT:
        return option_repeat(j, arg);
    case KEY_SEED:
        return opt_number(arg, 0, INT64_MAX, &j->run.seed)
                   ? 0
                   : cli_error("--seed %s: expected a number up to 2^63 - 1", arg);
    case KEY_FAULT:
        return option_fault(j, arg);
    case KEY_PROFILE:
        return option_profile(j, arg);
    case KEY_ANSWER:
        return live_time("--agent-timeout", arg, false, &j->answer);
    case KEY_TIMEOUT:
        return live_time("--timeout", arg, false, &j->peer.patience);
    case 'T':
        return opt_choice("-T", arg, formats, &j->format);
    default:
        return live_option(&j->config, key, arg, &mine);
    }
}

/* --keep: a directory, or with -o which tests' files. */
static int take_keep(struct conformance_job *j)
{
    static const char *const which[] = {"all", "failed", "none", NULL};
    unsigned chosen = KEEP_ALL;

    if (j->kept && j->out && opt_choice("--keep", j->kept, which, &chosen))
        return EXIT_BAD;
    j->which = (uint8_t)chosen;
    j->run.keep = j->out ? NULL : j->kept;
    return 0;
}

/* The file of --expected. */
static int read_expected(struct conformance_job *j)
{
    struct buf text = {0}, err = {0};
    int e = j->expected_file ? sim_read_file(j->expected_file, &text) : 0, status = 0;

    if (e < 0)
        status = cli_error("--expected %s: %s", j->expected_file, strerror(-e));
    else if (j->expected_file && !expected_parse(&j->expected, buf_str(&text), &j->battery, &err))
        status = cli_error("--expected %s: %s", j->expected_file, buf_str(&err));
    buf_free(&text);
    buf_free(&err);
    return status;
}

/* Whether the options leave a test; a long one may also be called by its name. */
static bool is_wanted(const struct conformance_job *j, const struct conform_test *t, bool called)
{
    if (t->is_long && !j->full && !called)
        return false;
    return j->level[t->level] && !(j->quick && t->slow) && !(j->exchange && !(t->peers >> j->with & 1));
}

/* Choose the tests that the operands name; all without one. */
static int choose(struct conformance_job *j, char **names, int n)
{
    bool called[CONFORM_TESTS] = {false}, left = false;

    for (int i = 0; i < n; i++) {
        bool any = false;
        for (unsigned k = 0; k < j->battery.n; k++)
            if (conform_matches(j->battery.test[k].id, names[i])) {
                any = j->chosen[k] = true;
                called[k] |= strcmp(j->battery.test[k].id, names[i]) == 0;
            }
        if (!any)
            return cli_error("conformance: there is no test '%s': --list shows them", names[i]);
    }
    for (unsigned k = 0; k < j->battery.n; k++)
        left |= j->chosen[k] = (j->chosen[k] || n == 0) && is_wanted(j, &j->battery.test[k], called[k]);
    return left ? 0 : cli_error("conformance: the options leave no test (long ones need --full, or their names)");
}

/* HOST, HOST:PORT, [ADDR6] or [ADDR6]:PORT. */
static int take_host(struct conformance_end *e, const char *arg)
{
    const char *colon = strrchr(arg, ':');
    bool six = *arg == '[';
    uint64_t port = e->port;
    size_t len;

    if (six ? colon && colon < strchr(arg, ']') : colon && strchr(arg, ':') != colon)
        colon = NULL; /* of an IPv6 address */
    len = colon ? (size_t)(colon - arg) : strlen(arg);
    if (six && (len < 2 || arg[len - 1] != ']'))
        return cli_error("conformance: %s: expected HOST, or [ADDR]:PORT", arg);
    if (colon && !opt_number(colon + 1, 1, 65535, &port))
        return cli_error("conformance: %s: expected a port behind the colon", arg);
    len -= six ? 2 : 0;
    if (len >= sizeof e->host)
        return cli_error("conformance: %s: the name is too long", arg);
    snprintf(e->host, sizeof e->host, "%.*s", (int)len, arg + six);
    e->port = (uint16_t)port;
    if (!live_parse_host(e->host, e->gid))
        return cli_error("%s is no address, and no host of this name is known", e->host);
    return 0;
}

static int read_token(struct conformance_job *j)
{
    bool made;
    int e;

    if (!j->token_file)
        return cli_error("conformance: expected --token-file, with the token that the agent of %s has", j->end[1].host);
    e = access(j->token_file, F_OK) < 0 ? -errno : auth_token_file(&j->token, j->token_file, &made);
    if (e == -EACCES)
        return cli_error("--token-file %s: expected a file that only its owner may read (chmod 600)", j->token_file);
    if (e == -EINVAL)
        return cli_error("--token-file %s: expected %d to %d characters without a blank", j->token_file, AUTH_TOKEN_MIN,
                         AUTH_TOKEN_MAX);
    return e < 0 ? cli_error("--token-file %s: %s", j->token_file, strerror(-e)) : 0;
}

/* Append a word of a command, quoted for the shell if need be. */
static void put_word(struct buf *b, const char *word)
{
    bool plain =
        *word && !word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=.,:/@%+")];

    buf_char(b, ' ');
    if (plain) {
        buf_puts(b, word);
        return;
    }
    buf_char(b, '\'');
    for (; *word; word++)
        if (*word == '\'')
            buf_puts(b, "'\\''");
        else
            buf_printable(b, word, 1);
    buf_char(b, '\'');
}

/* Add an option to the command that repeats a test, but for those that say what is written where, and what the whole
 * run is compared with. */
static void put_again(struct conformance_job *j, int key, const char *arg)
{
    static const int files[] = {'o',          'q',      'T',      KEY_RESUME, KEY_EXPECTED,
                                KEY_BASELINE, KEY_KEEP, KEY_JSON, KEY_JUNIT,  KEY_HTML};
    char name[OPT_NAME];

    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        if (key == files[i])
            return;
    put_word(&j->again, opt_name(defs, key, name));
    if (arg)
        put_word(&j->again, arg);
}

/* The operands: the device, unless it is simulated, and the tests. */
static int operands(struct conformance_job *j, char **arg, int n)
{
    int hosts = j->twin || j->list || j->stored || j->coverage ? 0 : j->between[0] ? 2 : 1, status = 0;

    if (hosts > n)
        return cli_error("conformance: expected %s",
                         hosts == 2 ? "two HOSTs" : "HOST, --twin, --list, --stored or --coverage");
    if (hosts == 2 && !j->between[1])
        return cli_error("--between %s: a second interface is expected, towards the second device", j->between[0]);
    if ((j->stored || j->coverage) && n)
        return cli_error("conformance: %s: with --%s no test is run", *arg, j->stored ? "stored" : "coverage");
    for (int i = 0; i < hosts; i++)
        j->end[NET_HOSTS - hosts + i].port = j->exchange ? PERFTEST_PORT : AGENT_PORT;
    for (int i = 0; i < hosts && status == 0; i++)
        status = take_host(&j->end[NET_HOSTS - hosts + i], arg[i]);
    if (status == 0 && hosts && !j->exchange)
        status = read_token(j);
    j->config.peer = j->end[1].gid;
    for (int i = 0; i < hosts; i++)
        put_word(&j->again, arg[i]);
    return status ? status : choose(j, arg + hosts, n - hosts);
}

/* --- Running ---------------------------------------------------------------------------------- */

static int list(const struct conformance_job *j)
{
    struct buf b = {0};

    for (unsigned i = 0; i < j->battery.n; i++) {
        const struct conform_test *t = &j->battery.test[i];
        if (!j->chosen[i])
            continue;
        buf_printf(&b, "%s  %-24s  %.*s [%.*s]", conform_level_str((enum conform_level)t->level), t->id,
                   (int)t->title.len, t->title.p, (int)t->anchor.len, t->anchor.p);
        conform_needs(t, &b, "; needs ", "", ", ");
        buf_char(&b, '\n');
    }
    return cli_show(&b);
}

static int coverage(void)
{
    struct buf b = {0};

    conform_print_coverage(&b);
    return cli_show(&b);
}

static unsigned mode(const struct conformance_job *j)
{
    return j->twin ? WITH_TWIN : j->list || j->coverage ? WITH_LIST : j->stored ? WITH_STORED : WITH_DEVICE;
}

int cmd_conformance(int argc, char **argv)
{
    struct conformance_job *j = calloc(1, sizeof *j);
    struct opt_state s;
    struct buf b = {0};
    const char *arg;
    int key, operand, status = -1;

    if (!j)
        return cli_error("out of memory");
    if (conformance_subcommand(j, argc, argv, &status)) {
        free(j);
        return status;
    }
    j->run.seed = 1;
    j->peer.patience = PATIENCE;
    j->answer = ANSWER;
    memset(j->level, 1, sizeof j->level);
    buf_puts(&j->again, "rdmagen conformance");
    opt_start(&s, defs, argc, argv);
    while (status < 0 && (key = opt_next(&s, &arg, &operand)) != 0) {
        if (key == 'h') {
            cmd_conformance_help(&b);
            status = cli_show(&b);
        } else if (key < 0 || option(j, key, arg) != 0) {
            status = EXIT_BAD;
        } else {
            put_again(j, key, arg);
        }
    }
    if (status < 0 && opt_refuse(&s, clashes, mode(j)))
        status = EXIT_BAD;
    if (status < 0 && !conform_parse(&j->battery, conform_text(), &b))
        status = cli_error("conformance: the battery, %s", buf_str(&b));
    if (status < 0 && (take_keep(j) || read_expected(j)))
        status = EXIT_BAD;
    if (status < 0 && operands(j, s.argv + operand, s.argc - operand))
        status = EXIT_BAD;
    opt_end(&s);
    if (status < 0)
        status = j->list       ? list(j)
                 : j->coverage ? coverage()
                 : j->stored   ? conformance_compare_stored(j)
                               : conformance_run(j);
    buf_free(&b);
    buf_free(&j->known_text);
    buf_free(&j->again);
    free(j);
    return status;
}
