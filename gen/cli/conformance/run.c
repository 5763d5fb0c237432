/* layer 4 (tool): `rdmagen conformance`: the tests are played, against a device, between two, a program without an
 * agent, or a twin; the score card. */
#include "gen/cli/conformance/conformance_cli.h"
#include "gen/conform/card/card.h"
#include "gen/conform/devices/twin.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TOLERANCE (1 * NS_PER_MS)
#define LIMIT     (120 * NS_PER_S)
#define NICE      (-15) /* of the tester: on a busy host it is not to be late for the device */

void conformance_find_judge(struct conformance_job *j)
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

static int make_directory(struct conformance_job *j)
{
    const char *tmp = getenv("TMPDIR");

    if (j->out) {
        if ((size_t)snprintf(j->tests, sizeof j->tests, "%s/tests", j->out) >= sizeof j->tests)
            return cli_error("%s: the name is too long", j->out);
        if (!j->resume && mkdir(j->out, 0777) < 0 && errno != EEXIST)
            return cli_error("%s: %s", j->out, strerror(errno));
        j->run.keep = j->tests;
    }
    if (j->run.keep)
        return mkdir(j->run.keep, 0777) == 0 || errno == EEXIST
                   ? 0
                   : cli_error("%s%s: %s", j->out ? "" : "--keep ", j->run.keep, strerror(errno));
    snprintf(j->temporary, sizeof j->temporary, "%s/rdmagen-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(j->temporary))
        return cli_error("%s: %s", j->temporary, strerror(errno));
    j->run.keep = j->temporary;
    return 0;
}

/* How the tester is on the network. */
static const char *tester(const struct conformance_job *j)
{
    return j->twin ? "virtual time" : j->peer.live ? j->live.backend->ops->name : "forwarded";
}

/* Who stamps the frames. */
static const char *clock_of(const struct conformance_job *j)
{
    if (j->twin)
        return "virtual time";
    return j->peer.live ? script_live_times(&j->peer) : "this host, when it forwards a frame";
}

static int show(struct conformance_job *j)
{
    struct conform_score s = {.o = j->outcome,
                              .n = j->n,
                              .seed = j->run.seed,
                              .dut = buf_str(&j->who),
                              .device = {buf_str(&j->end[0].told), buf_str(&j->end[1].told)},
                              .again = buf_str(&j->again),
                              .backend = tester(j),
                              .clock = clock_of(j),
                              .live = !j->twin,
                              .begun = j->begun,
                              .judged = j->run.judge != NULL,
                              .battery = &j->battery,
                              .metrics = &j->metrics,
                              .identities = &j->identities};
    static void (*const print[])(const struct conform_score *, struct buf *) = {conform_print_sums, conform_print_json,
                                                                                conform_print_junit};
    struct buf b = {0};
    int status, written;

    print[j->format](&s, &b);
    status = cli_show(&b);
    written = conformance_out_write(j, &s); /* also if nobody reads what is printed */
    status = status == EXIT_OK ? written : status;
    if (status == EXIT_OK && j->baseline)
        return conformance_compare_run(j, &s);
    if (status != EXIT_OK)
        return status;
    for (unsigned i = 0; i < j->n; i++) {
        const struct conform_outcome *o = &j->outcome[i];
        if (!conformance_is_failure(j, o))
            continue;
        status = EXIT_FOUND;
        if (j->expected_file)
            cli_error("%s: %s, expected %s", o->test->id, conform_result_str((enum conform_result)o->result),
                      conform_result_str((enum conform_result)j->expected.result[o->test - j->battery.test]));
    }
    return status;
}

/* A test was run: with text output its result is printed at once. */
static void tell(struct conformance_job *j, struct conform_outcome *o)
{
    bool shown = j->format == 0 && !(j->quiet && o->result == CONFORM_PASS);
    struct buf b = {0};

    if (shown) {
        conform_print_outcome(o, &b);
        if (conformance_is_failure(j, o) || conform_is_missed((enum conform_result)o->result))
            conform_print_again(o, buf_str(&j->again), &b);
        if (o->result != CONFORM_PASS && *o->capture && conformance_out_keeps(j, o))
            buf_printf(&b, "              capture: %s\n", o->capture);
        if (j->verbose)
            conform_print_source(o, &b);
        cli_text(&b, STDOUT_FILENO);
    }
    if (j->verbose)
        conformance_out_packets(j, o);
    if (!conformance_out_keeps(j, o))
        conform_forget(o);
    buf_free(&b);
}

/* Run a test, or take what it came to before the run was resumed. 0, or a negative errno: it was not run. */
static int run_test(struct conformance_job *j, unsigned number, struct conform_outcome *o)
{
    struct identities chosen = {0};
    struct metrics measured = {0};
    int e;

    if (j->done[number].test) {
        *o = j->done[number];
        j->done[number] = (struct conform_outcome){0};
        tell(j, o);
        return 0;
    }
    j->run.metrics = &measured;
    j->run.identities = &chosen;
    e = conform_run(&j->run, &j->battery.test[number], o);
    if (e == 0) {
        tell(j, o);
        conformance_out_note(j, o, &measured, &chosen);
    } else {
        conform_forget(o);
        conform_outcome_free(o);
    }
    metrics_move(&j->metrics, &measured);
    identities_move(&j->identities, &chosen);
    return e;
}

/* Run the chosen tests, and show how they came out. */
static int run_tests(struct conformance_job *j)
{
    unsigned left = 0;
    int e = 0, status = conformance_out_open(j);

    if (status)
        return status;
    for (unsigned i = 0; i < j->battery.n; i++) {
        struct conform_outcome *o = &j->outcome[j->n];
        if (!j->chosen[i])
            continue;
        if (e == 0 && !(j->n && o[-1].result == CONFORM_CRASH))
            e = run_test(j, i, o);
        else
            o->test = NULL;
        if (e == 0 && o->test)
            j->n++;
        else
            left++;
    }
    if (e < 0 && e != -EINTR)
        return cli_error("conformance: %s: %s", j->run.keep, strerror(-e));
    status = show(j);
    if (left)
        cli_error("%s not run: %s", count_str(left, "test"), e ? "interrupted" : "the device serves nothing any more");
    return status == EXIT_OK && left ? EXIT_FOUND : status;
}

static int run_twin(struct conformance_job *j)
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
static int run_remote(struct conformance_job *j, unsigned from)
{
    struct remote_config c[NET_HOSTS];
    struct remote_dut *device[NET_HOSTS] = {NULL};
    int status = 0;

    for (unsigned h = from; h < NET_HOSTS && status == 0; h++) {
        struct conformance_end *e = &j->end[h];
        c[h] = (struct remote_config){.live = j->peer.live,
                                      .side = h,
                                      .host = j->tcp ? j->tcp : e->host,
                                      .port = e->port,
                                      .token = &j->token,
                                      .answer = j->answer};
        device[h] = remote_dut_new(&e->dut, &c[h]);
        buf_printf(&j->who, "%s%s: ", h > from ? " against " : "", live_addr_str(e->gid));
        if (!device[h])
            status = cli_error("out of memory");
        else if (remote_dut_tell(device[h], &j->who, &e->told) < 0)
            status = (cli_error("%s, TCP port %u: %s", c[h].host, e->port, e->dut.why(device[h])), EXIT_SETUP);
    }
    if (status == 0)
        status = run_tests(j);
    for (unsigned h = 0; h < NET_HOSTS; h++)
        remote_dut_free(device[h]);
    return status;
}

/* Two devices, and this host between them. */
static int run_between(struct conformance_job *j)
{
    struct forward *f = &j->middle.forward;
    struct backend_error err;
    int status;

    between_init(&j->middle, &j->peer);
    j->middle.seed = j->run.seed;
    f->say = live_cli_say;
    f->count = UINT64_MAX;
    for (unsigned h = 0; h < NET_HOSTS; h++) {
        f->name[h] = j->between[h];
        memcpy(j->peer.ends[h], j->end[h].gid, 16);
    }
    status = forward_open(f, &err) < 0 ? (cli_error("%s", err.msg), EXIT_SETUP) : run_remote(j, 0);
    forward_close(f);
    return status;
}

/* A program without an agent. */
static int run_foreign(struct conformance_job *j)
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
static int run_device(struct conformance_job *j)
{
    int status;

    if (j->config.backend && !backend_find(j->config.backend))
        return cli_error("there is no backend '%s'", j->config.backend);
    j->config.frame = script_live_frame;
    j->config.user = &j->peer;
    j->config.seed = j->run.seed;
    status = live_cli_open(&j->live, &j->config);
    if (status)
        return EXIT_SETUP;
    j->peer.live = &j->live;
    memcpy(j->peer.peer, j->end[1].gid, 16);
    return live_cli_close(&j->live, &j->config, j->exchange ? run_foreign(j) : run_remote(j, 1));
}

static int run_on_network(struct conformance_job *j)
{
    if (sodium_init() < 0)
        return cli_error("no random numbers");
    setpriority(PRIO_PROCESS, 0, NICE); /* without the right to it: as it was */
    j->peer.tolerance = TOLERANCE;
    j->run.live = &j->peer;
    j->run.limit = LIMIT;
    return j->between[0] ? run_between(j) : run_device(j);
}

int conformance_run(struct conformance_job *j)
{
    int status;

    live_catch_ends();
    j->begun = time(NULL);
    conformance_find_judge(j);
    status = conformance_out_check(j);
    if (!status && j->baseline)
        status = conformance_compare_open(j);
    if (!status)
        status = make_directory(j);
    j->run.dut = &j->end[1].dut;
    j->run.requester = j->twins || j->between[0] ? &j->end[0].dut : NULL;
    if (!status)
        status = j->twin ? run_twin(j) : run_on_network(j);
    if (*j->temporary)
        rmdir(j->temporary);
    for (unsigned i = 0; i < j->n; i++)
        conform_outcome_free(&j->outcome[i]);
    for (unsigned i = 0; i < j->battery.n; i++)
        conform_outcome_free(&j->done[i]);
    metrics_free(&j->metrics);
    identities_free(&j->identities);
    buf_free(&j->who);
    for (unsigned h = 0; h < NET_HOSTS; h++)
        buf_free(&j->end[h].told);
    card_free(j->before);
    return status;
}
