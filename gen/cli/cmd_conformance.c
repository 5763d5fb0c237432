/* layer 4 (tool): `rdmagen conformance`: plays the battery against a device under test, and prints its score card. */
#include "gen/agent/server.h"
#include "gen/cli/live_options.h"
#include "gen/conform/between.h"
#include "gen/conform/card.h"
#include "gen/conform/conform.h"
#include "gen/conform/known.h"
#include "gen/conform/remote.h"
#include "gen/conform/twin.h"
#include "gen/endpoint/faults.h"
#include "gen/peers/perftest.h"
#include "gen/sim/traffic.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATIENCE   (10 * NS_PER_S)
#define TOLERANCE  (1 * NS_PER_MS)
#define LIMIT      (120 * NS_PER_S)
#define REPEAT_MAX 1000

static const struct opt_def defs[] = {
    {OPT_TWIN, "test the twin of a device, which is an endpoint of ours, in virtual time"},
    {OPT_TWINS, "two twins play against each other"},
    {OPT_BETWEEN, "two devices play against each other, and this host forwards what passes between them; to be\n"
                  "given twice: the interface towards the first HOST, and that towards the second one"},
    {OPT_EXCHANGE, "HOST has no agent, but runs perftest (ib_write_bw), pingpong (ibv_rc_pingpong) or rping (-s):\n"
                   "the tests that can be played with it"},
    {OPT_LIST, "list the tests, and run none"},
    {OPT_COVERAGE, "list what can be asked of a device, the tests that ask it, and what is not asked"},
    {OPT_STORED, "run no test: a score card that was stored with -T json, for --baseline"},
    {OPT_BASELINE, "say what has changed since this score card; only a test that came out worse is a failure then"},
    {OPT_LEVEL, "run tests of these levels only: M (must), S (should), I (information), such as MS"},
    {OPT_QUICK, "leave out the tests that take long on a real network"},
    {OPT_FULL, "run them, too (which is done without --quick)"},
    {OPT_REPEAT, "run each test so often, each time with the next seed (1); the worst run counts"},
    {OPT_SEED, "seed of starting PSNs and the like (1)"},
    {OPT_FAULT, "the twin breaks this rule (repeatable), see `rdmagen faults`"},
    {OPT_PROFILE, "deviations of the device that are known: rxe (Linux soft-RoCE), mlx5, mlx4, irdma, bnxt_re,\n"
                  "efa, or a file of them"},
    {OPT_KEEP, "keep the capture and the scenario of each test in this directory"},
    {OPT_FORMAT, "text, json or junit (text)"},
    {OPT_TOKEN_FILE, "file with the token of the agent, which only its owner may read"},
    {OPT_TCP, "the agent listens at this address instead of HOST"},
    {OPT_TIMEOUT, "longest wait of an expectation (10)"},
    {OPT_INTERFACE, "the interface to use (that of the route to HOST)"},
    {OPT_BACKEND, "how frames are sent and received: see `rdmagen backends` (packet)"},
    {OPT_ADDR, "an IPv4 or IPv6 address of your own, which this host does not have"},
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
    {KEY_EXCHANGE, KEY_BETWEEN, 0, NULL},
    {KEY_EXCHANGE, KEY_TOKEN_FILE, 0, NULL},
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
    {KEY_FAULT, 0, WITH_DEVICE | WITH_STORED, "is for --twin"},
    {KEY_TOKEN_FILE, 0, WITH_TWIN | WITH_LIST, "is for a device: give HOST"},
    {KEY_TCP, 0, WITH_TWIN | WITH_LIST, "is for a device: give HOST"},
    {KEY_TIMEOUT, 0, WITH_TWIN | WITH_LIST, "is for a device: give HOST"},
    {'I', 0, WITH_TWIN | WITH_LIST, "is for a device: give HOST"},
    {KEY_BACKEND, 0, WITH_TWIN | WITH_LIST, "is for a device: give HOST"},
    {KEY_ADDR, 0, WITH_TWIN | WITH_LIST, "is for a device: give HOST"},
    {KEY_MAC, 0, WITH_TWIN | WITH_LIST, "is for a device: give HOST"},
    {KEY_PEER_MAC, 0, WITH_TWIN | WITH_LIST, "is for a device: give HOST"},
    {KEY_VLAN, 0, WITH_TWIN | WITH_LIST, "is for a device: give HOST"},
    {KEY_VIA, 0, WITH_TWIN | WITH_LIST, "is for a device: give HOST"},
    {'m', 0, WITH_TWIN | WITH_LIST, "is for a device: give HOST"},
    {KEY_MAC, -KEY_ADDR, 0, NULL},
    {0, 0, 0, NULL},
};

struct job {
    struct conform_battery battery;
    bool chosen[CONFORM_TESTS];
    const char *baseline, *stored; /* files; NULL: not given */
    bool twin, twins, list, coverage, quick, level[CONFORM_LEVELS];
    unsigned format;
    struct conform_run run;
    struct known_profile known;
    struct buf known_text;
    struct script_live peer;
    struct live live;
    struct live_config config;
    struct auth_token token;
    const char *token_file, *tcp;
    const char *between[NET_HOSTS]; /* interfaces towards two devices; NULL: there is one */
    struct end {
        char host[256]; /* as given, without the port */
        uint16_t port;
        uint8_t gid[16];
        struct script_dut dut;
    } end[NET_HOSTS]; /* the device is the second one, host b of the tests; the first one only if there are two */
    struct between middle;
    const char *exchange; /* name of the program without an agent; NULL: there is an agent */
    int with;             /* enum conform_peer */
    struct buf who;       /* what is tested */
    struct buf again;     /* the command without tests: what repeats one, with its id behind */
    char judge[4096], temporary[300];
    struct conform_outcome outcome[CONFORM_TESTS];
    unsigned n;
    struct metrics metrics;
    struct identities identities;
};

void cmd_conformance_help(struct buf *b)
{
    buf_puts(b,
             "Usage: rdmagen conformance [options] HOST[:PORT] [TEST|GROUP|GLOB ...]\n"
             "       rdmagen conformance --between IFACE --between IFACE [options] HOST[:PORT] HOST[:PORT] [TEST ...]\n"
             "       rdmagen conformance --twin|--twins [options] [TEST|GROUP|GLOB ...]\n"
             "       rdmagen conformance --list [options] [TEST|GROUP|GLOB ...]\n"
             "       rdmagen conformance --coverage\n"
             "       rdmagen conformance --stored CARD --baseline CARD\n\n"
             "Test how a device follows the rules of the transport, and print its score card. The device is that of "
             "HOST,\nwhere `rdmagen agent` runs.\n\n");
    opt_help(b, defs);
    buf_puts(
        b, "\nExit status: 0 if no test failed, 1 if one did, met an error, was inconclusive or was not run,\n2 for "
           "usage, files that cannot be written, an interface that cannot be used, or an agent that is not reached.\n");
}

/* --- Options ---------------------------------------------------------------------------------- */

static int option_level(struct job *j, const char *arg)
{
    memset(j->level, 0, sizeof j->level);
    for (const char *p = arg; *p; p++) {
        unsigned l = 0;
        while (l < CONFORM_LEVELS && *conform_level_str((enum conform_level)l) != *p)
            l++;
        if (l == CONFORM_LEVELS)
            return cli_error("--level %s: expected letters of M, S and I", arg);
        j->level[l] = true;
    }
    return *arg ? 0 : cli_error("--level: expected letters of M, S and I");
}

static int option_fault(struct job *j, const char *arg)
{
    const struct fault_info *f = fault_find(rule_find(arg));

    if (!f || j->run.n_faults == FAULTS_MAX)
        return cli_error("--fault %s: no rule of this name that a device can break here; see `rdmagen faults`", arg);
    j->run.faults[j->run.n_faults++] = f->rule;
    return 0;
}

/* Deviations that are known: a name, or a file. */
static int option_profile(struct job *j, const char *arg)
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

static int option_repeat(struct job *j, const char *arg)
{
    uint64_t n;

    if (!opt_number(arg, 1, REPEAT_MAX, &n))
        return cli_error("--repeat %s: expected a number from 1 to %d", arg, REPEAT_MAX);
    j->run.repeat = (unsigned)n;
    return 0;
}

static int option(struct job *j, int key, const char *arg)
{
    bool mine;

    switch (key) {
    case KEY_TWINS:
        j->twins = true;
        __attribute__((fallthrough));
    case KEY_TWIN:
        j->twin = true;
        return 0;
    case KEY_BETWEEN:
        if (j->between[1])
            return cli_error("--between %s: two interfaces are given already", arg);
        j->between[j->between[0] != NULL] = arg;
        return 0;
    case KEY_LIST:
        j->list = true;
        return 0;
    case KEY_COVERAGE:
        j->coverage = true;
        return 0;
    case KEY_BASELINE:
        j->baseline = arg;
        return 0;
    case KEY_STORED:
        j->stored = arg;
        return 0;
    case KEY_LEVEL:
        return option_level(j, arg);
    case KEY_QUICK:
        j->quick = true;
        return 0;
    case KEY_FULL:
        return 0;
    case KEY_EXCHANGE:
        j->exchange = arg;
        j->with = conform_peer_find(arg);
        return j->with >= 0 ? 0 : cli_error("--exchange %s: expected perftest, pingpong or rping", arg);
    case KEY_REPEAT:
        return option_repeat(j, arg);
    case KEY_SEED:
        return opt_number(arg, 0, UINT64_MAX, &j->run.seed) ? 0 : cli_error("--seed %s: expected a number", arg);
    case KEY_FAULT:
        return option_fault(j, arg);
    case KEY_PROFILE:
        return option_profile(j, arg);
    case KEY_KEEP:
        j->run.keep = arg;
        return 0;
    case KEY_TOKEN_FILE:
        j->token_file = arg;
        return 0;
    case KEY_TCP:
        j->tcp = arg;
        return 0;
    case KEY_TIMEOUT:
        return live_time("--timeout", arg, false, &j->peer.patience);
    case 'T':
        return opt_choice("-T", arg, formats, &j->format);
    default:
        return live_option(&j->config, key, arg, &mine);
    }
}

/* Whether the options leave a test. */
static bool is_wanted(const struct job *j, const struct conform_test *t)
{
    return j->level[t->level] && !(j->quick && t->slow) && !(j->exchange && !(t->peers >> j->with & 1));
}

/* Choose the tests that the operands name; all without one. */
static int choose(struct job *j, char **names, int n)
{
    for (int i = 0; i < n; i++) {
        bool any = false;
        for (unsigned k = 0; k < j->battery.n; k++)
            if (conform_matches(j->battery.test[k].id, names[i]))
                any = j->chosen[k] = true;
        if (!any)
            return cli_error("conformance: there is no test '%s': --list shows them", names[i]);
    }
    for (unsigned k = 0; k < j->battery.n; k++)
        j->chosen[k] = (j->chosen[k] || n == 0) && is_wanted(j, &j->battery.test[k]);
    return 0;
}

/* HOST, HOST:PORT, [ADDR6] or [ADDR6]:PORT. */
static int take_host(struct end *e, const char *arg)
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

static int read_token(struct job *j)
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

/* The operands: the device, unless it is simulated, and the tests. */
static int operands(struct job *j, char **arg, int n)
{
    int hosts = j->twin || j->list || j->stored || j->coverage ? 0 : j->between[0] ? 2 : 1, status = 0;

    if (hosts > n)
        return cli_error("conformance: expected %s", hosts == 2 ? "two HOSTs" : "HOST, --twin, or --list");
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

static int list(const struct job *j)
{
    struct buf b = {0};

    for (unsigned i = 0; i < j->battery.n; i++) {
        const struct conform_test *t = &j->battery.test[i];
        if (!j->chosen[i])
            continue;
        buf_printf(&b, "%s  %-22s  %.*s [%.*s]\n", conform_level_str((enum conform_level)t->level), t->id,
                   (int)t->title.len, t->title.p, (int)t->anchor.len, t->anchor.p);
    }
    return cli_show(&b);
}

static int coverage(void)
{
    struct buf b = {0};

    conform_print_coverage(&b);
    return cli_show(&b);
}

/* The program rdmatrace beside this one; none: captures are not judged. */
static void find_judge(struct job *j)
{
    ssize_t n = readlink("/proc/self/exe", j->judge, sizeof j->judge - sizeof "rdmatrace");
    char *slash;

    j->judge[n < 0 ? 0 : n] = '\0';
    slash = strrchr(j->judge, '/');
    if (!slash)
        return;
    strcpy(slash + 1, "rdmatrace");
    j->run.judge = access(j->judge, X_OK) == 0 ? j->judge : NULL;
}

static int make_directory(struct job *j)
{
    const char *tmp = getenv("TMPDIR");

    if (j->run.keep)
        return mkdir(j->run.keep, 0777) == 0 || errno == EEXIST
                   ? 0
                   : cli_error("--keep %s: %s", j->run.keep, strerror(errno));
    snprintf(j->temporary, sizeof j->temporary, "%s/rdmagen-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(j->temporary))
        return cli_error("%s: %s", j->temporary, strerror(errno));
    j->run.keep = j->temporary;
    return 0;
}

/* --- Comparing -------------------------------------------------------------------------------- */

/* NULL: what is wrong was said. */
static struct card *read_card(const char *path)
{
    struct buf text = {0}, err = {0};
    int e = sim_read_file(path, &text);
    struct card *c = e < 0 ? NULL : card_parse(buf_str(&text), text.len, &err);

    if (!c)
        cli_error("%s: %s", path, e < 0 ? strerror(-e) : buf_str(&err));
    buf_free(&text);
    buf_free(&err);
    return c;
}

/* Show what has changed from --baseline to `now`, and free that. */
static int compare(const struct job *j, struct card *now)
{
    struct card *before = now ? read_card(j->baseline) : NULL;
    struct buf b = {0};
    int status = EXIT_BAD;

    if (before) {
        bool worse = card_compare(before, now, &b) > 0;
        status = cli_show(&b);
        status = status == EXIT_OK && worse ? EXIT_FOUND : status;
    }
    card_free(before);
    card_free(now);
    return status;
}

static int compare_stored(const struct job *j)
{
    return compare(j, read_card(j->stored));
}

static int compare_run(const struct job *j, const struct conform_score *s)
{
    struct buf card = {0}, err = {0};
    struct card *now;

    conform_print_json(s, &card);
    now = card_parse(buf_str(&card), card.len, &err);
    if (!now)
        cli_error("conformance: %s", buf_str(&err));
    buf_free(&card);
    buf_free(&err);
    return compare(j, now);
}

static bool is_failure(enum conform_result r)
{
    return r == CONFORM_FAIL || r == CONFORM_INCONCLUSIVE || r == CONFORM_ERROR || r == CONFORM_CRASH;
}

static int show(struct job *j)
{
    struct conform_score s = {.o = j->outcome,
                              .n = j->n,
                              .seed = j->run.seed,
                              .dut = buf_str(&j->who),
                              .judged = j->run.judge != NULL,
                              .metrics = &j->metrics,
                              .identities = &j->identities};
    static void (*const print[])(const struct conform_score *, struct buf *) = {conform_print_sums, conform_print_json,
                                                                                conform_print_junit};
    struct buf b = {0};
    int status;

    print[j->format](&s, &b);
    status = cli_show(&b);
    if (status == EXIT_OK && j->baseline)
        return compare_run(j, &s);
    for (unsigned i = 0; i < j->n && status == EXIT_OK; i++)
        if (is_failure(j->outcome[i].result))
            status = EXIT_FOUND;
    return status;
}

/* A test was run: with text output its result is printed at once. */
static void tell(struct job *j, struct conform_outcome *o)
{
    struct buf b = {0};

    if (*j->temporary)
        conform_forget(o);
    if (j->format != 0)
        return;
    conform_print_outcome(o, &b);
    if (is_failure(o->result) || conform_is_missed(o->result))
        buf_printf(&b, "              again: %s %s\n", buf_str(&j->again), o->test->id);
    cli_flush(&b, STDOUT_FILENO);
    buf_free(&b);
}

/* Run the chosen tests, and show how they came out. */
static int run_tests(struct job *j)
{
    unsigned left = 0;
    int e = 0, status;

    for (unsigned i = 0; i < j->battery.n; i++) {
        struct conform_outcome *o = &j->outcome[j->n];
        if (!j->chosen[i])
            continue;
        if (e < 0 || (j->n && o[-1].result == CONFORM_CRASH)) {
            left++;
            continue;
        }
        e = conform_run(&j->run, &j->battery.test[i], o);
        if (e == 0)
            tell(j, o);
        else
            conform_forget(o);
        j->n += e == 0;
        left += e < 0;
        if (e < 0)
            conform_outcome_free(o);
    }
    if (e < 0 && e != -EINTR)
        return cli_error("conformance: %s: %s", j->run.keep, strerror(-e));
    status = show(j);
    if (left)
        cli_error("%s not run: %s", count_str(left, "test"), e ? "interrupted" : "the device serves nothing any more");
    return status == EXIT_OK && left ? EXIT_FOUND : status;
}

static int run_twin(struct job *j)
{
    struct twin_dut *twin[NET_HOSTS] = {NULL, twin_dut_new(&j->end[1].dut, 1)};
    int status;

    if (j->twins)
        twin[0] = twin_dut_new(&j->end[0].dut, 0);
    buf_printf(&j->who, "%s: rdmagen " RDMATRACE_VERSION ", virtual time",
               j->twins ? "twins of two devices" : "twin of a device");
    status = twin[1] && (twin[0] || !j->twins) ? run_tests(j) : cli_error("out of memory");
    twin_dut_free(twin[0]);
    twin_dut_free(twin[1]);
    return status;
}

/* With the network open: take the devices `from` and behind it, and run the tests. */
static int run_remote(struct job *j, unsigned from)
{
    struct remote_config c[NET_HOSTS];
    struct remote_dut *device[NET_HOSTS] = {NULL};
    int status = 0;

    for (unsigned h = from; h < NET_HOSTS && status == 0; h++) {
        struct end *e = &j->end[h];
        c[h] = (struct remote_config){
            .live = j->peer.live, .side = h, .host = j->tcp ? j->tcp : e->host, .port = e->port, .token = &j->token};
        device[h] = remote_dut_new(&e->dut, &c[h]);
        buf_printf(&j->who, "%s%s: ", h > from ? " against " : "", live_addr_str(e->gid));
        if (!device[h])
            status = cli_error("out of memory");
        else if (remote_dut_tell(device[h], &j->who) < 0)
            status = cli_error("%s, TCP port %u: %s", c[h].host, e->port, e->dut.why(device[h]));
    }
    if (status == 0)
        status = run_tests(j);
    for (unsigned h = 0; h < NET_HOSTS; h++)
        remote_dut_free(device[h]);
    return status;
}

/* Two devices, and this host between them. */
static int run_between(struct job *j)
{
    struct forward *f = &j->middle.forward;
    struct backend_error err;
    int status;

    live_catch_signals();
    between_init(&j->middle, &j->peer);
    j->middle.seed = j->run.seed;
    f->say = live_cli_say;
    f->count = UINT64_MAX;
    for (unsigned h = 0; h < NET_HOSTS; h++) {
        f->name[h] = j->between[h];
        memcpy(j->peer.ends[h], j->end[h].gid, 16);
    }
    status = forward_open(f, &err) < 0 ? cli_error("%s", err.msg) : run_remote(j, 0);
    forward_close(f);
    return status;
}

/* A program without an agent. */
static int run_foreign(struct job *j)
{
    j->run.dut = NULL;
    j->peer.lenient = true;
    j->peer.perftest = j->peer.has_memory = j->with == CONFORM_PERFTEST;
    j->peer.host = j->tcp ? j->tcp : j->end[1].host;
    j->peer.port = j->end[1].port;
    buf_printf(&j->who, "%s: %s, without an agent", live_addr_str(j->end[1].gid), j->exchange);
    return run_tests(j);
}

/* One device, and this host as the other end. */
static int run_device(struct job *j)
{
    int status;

    j->config.frame = script_live_frame;
    j->config.user = &j->peer;
    j->config.seed = j->run.seed;
    status = live_cli_open(&j->live, &j->config);
    if (status)
        return status;
    j->peer.live = &j->live;
    memcpy(j->peer.peer, j->end[1].gid, 16);
    return live_cli_close(&j->live, &j->config, j->exchange ? run_foreign(j) : run_remote(j, 1));
}

static int run_on_network(struct job *j)
{
    if (sodium_init() < 0)
        return cli_error("no random numbers");
    j->peer.tolerance = TOLERANCE;
    j->run.live = &j->peer;
    j->run.limit = LIMIT;
    return j->between[0] ? run_between(j) : run_device(j);
}

static int run(struct job *j)
{
    int status = make_directory(j);

    j->run.dut = &j->end[1].dut;
    j->run.requester = j->twins || j->between[0] ? &j->end[0].dut : NULL;
    j->run.metrics = &j->metrics;
    j->run.identities = &j->identities;
    find_judge(j);
    if (!status)
        status = j->twin ? run_twin(j) : run_on_network(j);
    if (*j->temporary)
        rmdir(j->temporary);
    for (unsigned i = 0; i < j->n; i++)
        conform_outcome_free(&j->outcome[i]);
    metrics_free(&j->metrics);
    identities_free(&j->identities);
    buf_free(&j->who);
    return status;
}

static unsigned mode(const struct job *j)
{
    return j->twin ? WITH_TWIN : j->list || j->coverage ? WITH_LIST : j->stored ? WITH_STORED : WITH_DEVICE;
}

int cmd_conformance(int argc, char **argv)
{
    struct job *j = calloc(1, sizeof *j);
    struct opt_state s;
    struct buf b = {0};
    const char *arg;
    int key, operand, status = -1;

    if (!j)
        return cli_error("out of memory");
    j->run.seed = 1;
    j->peer.patience = PATIENCE;
    memset(j->level, 1, sizeof j->level);
    opt_start(&s, defs, argc, argv);
    while (status < 0 && (key = opt_next(&s, &arg, &operand)) != 0) {
        if (key == 'h') {
            cmd_conformance_help(&b);
            status = cli_show(&b);
        } else if (key < 0 || option(j, key, arg) != 0) {
            status = EXIT_BAD;
        }
    }
    if (status < 0 && opt_refuse(&s, clashes, mode(j)))
        status = EXIT_BAD;
    if (status < 0 && !conform_parse(&j->battery, conform_text(), &b))
        status = cli_error("conformance: the battery, %s", buf_str(&b));
    buf_puts(&j->again, "rdmagen conformance");
    for (int i = 1; i < operand; i++)
        put_word(&j->again, s.argv[i]);
    if (status < 0 && operands(j, s.argv + operand, s.argc - operand))
        status = EXIT_BAD;
    opt_end(&s);
    if (status < 0)
        status = j->list ? list(j) : j->coverage ? coverage() : j->stored ? compare_stored(j) : run(j);
    buf_free(&b);
    buf_free(&j->known_text);
    buf_free(&j->again);
    free(j);
    return status;
}
