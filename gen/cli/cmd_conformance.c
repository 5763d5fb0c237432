/* layer 4 (tool): `rdmagen conformance`: plays the battery against a device under test, and prints its score card. */
#include "gen/cli/gen_cli.h"
#include "gen/conform/conform.h"
#include "gen/conform/twin.h"
#include "gen/endpoint/faults.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct opt_def defs[] = {
    {OPT_TWIN, "test the twin of a device, which is an endpoint of ours, in virtual time"},
    {OPT_LIST, "list the tests, and run none"},
    {OPT_LEVEL, "run tests of these levels only: M (must), S (should), I (information), such as MS"},
    {OPT_SEED, "seed of starting PSNs and the like (1)"},
    {OPT_FAULT, "the twin breaks this rule (repeatable), see `rdmagen faults`"},
    {OPT_KEEP, "keep the capture and the scenario of each test in this directory"},
    {OPT_FORMAT, "text, json or junit (text)"},
    {OPT_HELP, "show this help"},
    {0, NULL, NULL, NULL},
};

static const char *const formats[] = {"text", "json", "junit", NULL};

struct job {
    struct conform_battery battery;
    bool chosen[CONFORM_TESTS];
    bool twin, list, level[CONFORM_LEVELS];
    unsigned format;
    struct conform_run run;
    char judge[4096], temporary[300];
    struct conform_outcome outcome[CONFORM_TESTS];
    unsigned n;
};

void cmd_conformance_help(struct buf *b)
{
    buf_puts(b, "Usage: rdmagen conformance --twin [options] [TEST|GROUP|GLOB ...]\n"
                "       rdmagen conformance --list [options] [TEST|GROUP|GLOB ...]\n\n"
                "Test how a device follows the rules of the transport, and print its score card.\n\n");
    opt_help(b, defs);
    buf_puts(b, "\nExit status: 0 if no test failed, 1 if one did or met an error, 2 for usage or files that cannot be "
                "written.\n");
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

    if (!f || f->hook == FAULT_CM || j->run.n_faults == FAULTS_MAX)
        return cli_error("--fault %s: no rule of this name that a device can break here; see `rdmagen faults`", arg);
    j->run.faults[j->run.n_faults++] = f->rule;
    return 0;
}

static int option(struct job *j, int key, const char *arg)
{
    switch (key) {
    case KEY_TWIN:
        j->twin = true;
        return 0;
    case KEY_LIST:
        j->list = true;
        return 0;
    case KEY_LEVEL:
        return option_level(j, arg);
    case KEY_SEED:
        return opt_number(arg, 0, UINT64_MAX, &j->run.seed) ? 0 : cli_error("--seed %s: expected a number", arg);
    case KEY_FAULT:
        return option_fault(j, arg);
    case KEY_KEEP:
        j->run.keep = arg;
        return 0;
    default:
        return opt_choice("-T", arg, formats, &j->format);
    }
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
        j->chosen[k] = (j->chosen[k] || n == 0) && j->level[j->battery.test[k].level];
    return 0;
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

/* Remove what a test has left in the temporary directory. */
static void forget(struct job *j, struct conform_outcome *o)
{
    char *dot = strrchr(o->capture, '.');

    if (!*j->temporary || !dot)
        return;
    unlink(o->capture);
    strcpy(dot, ".rdma");
    unlink(o->capture);
    *o->capture = '\0';
}

static int show(const struct job *j)
{
    static void (*const print[])(const struct conform_score *, struct buf *) = {conform_print_text, conform_print_json,
                                                                                conform_print_junit};
    struct conform_score s = {.o = j->outcome,
                              .n = j->n,
                              .seed = j->run.seed,
                              .dut = "twin of a device: rdmagen " RDMATRACE_VERSION ", virtual time",
                              .judged = j->run.judge != NULL};
    struct buf b = {0};
    int status;

    print[j->format](&s, &b);
    status = cli_show(&b);
    if (status)
        return status;
    return conform_count(&s, CONFORM_LEVELS, CONFORM_FAIL) + conform_count(&s, CONFORM_LEVELS, CONFORM_ERROR)
               ? EXIT_FOUND
               : EXIT_OK;
}

static int run(struct job *j)
{
    struct script_dut dut;
    struct twin_dut *twin = twin_dut_new(&dut);
    int e = twin ? 0 : -ENOMEM, status = make_directory(j);

    j->run.dut = &dut;
    find_judge(j);
    for (unsigned i = 0; i < j->battery.n && e == 0 && !status; i++) {
        if (!j->chosen[i])
            continue;
        struct conform_outcome *o = &j->outcome[j->n++];
        e = conform_run(&j->run, &j->battery.test[i], o);
        forget(j, o);
    }
    if (*j->temporary)
        rmdir(j->temporary);
    twin_dut_free(twin);
    if (!status)
        status = e ? cli_error("conformance: %s: %s", j->run.keep, strerror(-e)) : show(j);
    for (unsigned i = 0; i < j->n; i++)
        conform_outcome_free(&j->outcome[i]);
    return status;
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
    if (status < 0 && !conform_parse(&j->battery, conform_text(), &b))
        status = cli_error("conformance: the battery, %s", buf_str(&b));
    if (status < 0 && choose(j, s.argv + operand, s.argc - operand))
        status = EXIT_BAD;
    if (status < 0 && !j->list && !j->twin)
        status = cli_error("conformance: expected --twin, or --list");
    opt_end(&s);
    if (status < 0)
        status = j->list ? list(j) : run(j);
    buf_free(&b);
    free(j);
    return status;
}
