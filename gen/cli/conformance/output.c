/* layer 4 (tool): `rdmagen conformance`: the directory of a run, its reports, and what was done in it already. */
#include "gen/cli/conformance/conformance_cli.h"
#include "gen/conform/card/progress.h"
#include "gen/sim/traffic.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* --- The directory ---------------------------------------------------------------------------- */

static int path_in(const struct conformance_job *j, const char *name, char *path, size_t size)
{
    return (size_t)snprintf(path, size, "%s/%s", j->out, name) < size ? 0
                                                                      : cli_error("%s: the name is too long", j->out);
}

/* Take what was done before the run was ended. */
static int resume(struct conformance_job *j, const char *path, const char *first)
{
    const char *last;
    struct buf text = {0}, err = {0};
    int e = sim_read_file(path, &text), status = 0;

    if (e < 0)
        status = cli_error("--resume: %s: %s", path, strerror(-e));
    else if (!progress_take(buf_str(&text), text.len, first, j->tests, &j->battery, j->chosen, j->done, &j->metrics,
                            &j->identities, &err))
        status = cli_error("--resume: %s: %s", path, buf_str(&err));
    last = status ? NULL : memrchr(text.p, '\n', text.len);
    if (last && truncate(path, last + 1 - text.p) < 0) /* what was cut off there is written again */
        status = cli_error("--resume: %s: %s", path, strerror(errno));
    buf_free(&text);
    buf_free(&err);
    return status;
}

int conformance_out_open(struct conformance_job *j)
{
    struct buf first = {0};
    char path[4096];
    int status;

    j->progress = -1;
    if (!j->out)
        return 0;
    status = path_in(j, "progress.ndjson", path, sizeof path);
    progress_begin(&first, buf_str(&j->who), j->run.seed, j->run.repeat);
    if (!status && j->resume)
        status = resume(j, path, buf_str(&first));
    if (!status) {
        j->progress = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | (j->resume ? O_APPEND : O_TRUNC), 0666);
        if (j->progress < 0)
            status = cli_error("%s: %s", path, strerror(errno));
        else if (!j->resume)
            status = cli_flush(&first, j->progress) ? 0 : cli_error("%s: %s", path, strerror(errno));
    }
    buf_free(&first);
    return status;
}

static void close_progress(struct conformance_job *j)
{
    if (j->progress >= 0)
        close(j->progress);
    j->progress = -1;
}

void conformance_out_note(struct conformance_job *j, const struct conform_outcome *o, const struct metrics *m,
                          const struct identities *ids)
{
    struct buf b = {0};

    if (j->progress < 0)
        return;
    progress_put(&b, o, m, ids);
    if (!cli_flush(&b, j->progress)) {
        cli_error("%s/progress.ndjson: %s", j->out, strerror(errno));
        close_progress(j);
        j->unwritten = true;
    }
    buf_free(&b);
}

bool conformance_out_keeps(const struct conformance_job *j, const struct conform_outcome *o)
{
    if (*j->temporary || j->which == KEEP_NONE)
        return false;
    return j->which == KEEP_ALL || o->result != CONFORM_PASS;
}

/* Whether a file can be written there. A message says that it cannot. */
static int check_file(const char *option, const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    char folder[4096] = ".";
    struct stat st;
    int e = 0;

    if (!path)
        return 0;
    if (slash)
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - path) + 1, path);
    if (stat(path, &st) == 0)
        e = S_ISDIR(st.st_mode) ? EISDIR : access(path, W_OK) < 0 ? errno : 0;
    else
        e = errno == ENOENT && *path ? access(folder, W_OK) < 0 ? errno : 0 : errno;
    return e ? cli_error("%s %s: %s", option, path, strerror(e)) : 0;
}

int conformance_out_check(const struct conformance_job *j)
{
    int status = check_file("--json", j->json) | check_file("--junit", j->junit) | check_file("--html", j->html);

    if (!status && j->html && !j->run.judge)
        status = cli_error("--html: no rdmatrace beside this program, which makes the page");
    return status;
}

/* --- Reports ---------------------------------------------------------------------------------- */

static int write_file(const char *path, const struct conform_score *s,
                      void (*print)(const struct conform_score *, struct buf *))
{
    struct buf b = {0};
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666), status;

    if (fd < 0)
        return cli_error("%s: %s", path, strerror(errno));
    print(s, &b);
    status = cli_flush(&b, fd) ? 0 : cli_error("%s: %s", path, strerror(errno));
    buf_free(&b);
    if (close(fd) < 0 && !status)
        status = cli_error("%s: %s", path, strerror(errno));
    return status;
}

/* Run rdmatrace, with its output to `to` (NULL: none; "": that of this program). 0, or the exit status after a message.
 */
static int run_rdmatrace(const struct conformance_job *j, char *const argv[], const char *to)
{
    posix_spawn_file_actions_t act;
    int e, status = 0;
    pid_t pid;

    posix_spawn_file_actions_init(&act);
    if (!to || *to)
        posix_spawn_file_actions_addopen(&act, STDOUT_FILENO, to ? to : "/dev/null", O_WRONLY | O_CREAT | O_TRUNC,
                                         0666);
    e = posix_spawn(&pid, j->run.judge, &act, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&act);
    while (e == 0 && waitpid(pid, &status, 0) < 0)
        e = errno == EINTR ? 0 : errno;
    if (e || !WIFEXITED(status) || WEXITSTATUS(status) > 1)
        return cli_error("conformance: rdmatrace %s: %s", argv[1], e ? strerror(e) : "it failed");
    return 0;
}

void conformance_out_packets(const struct conformance_job *j, const struct conform_outcome *o)
{
    char *const argv[] = {(char *)"rdmatrace", (char *)"decode", (char *)"--", (char *)o->capture, NULL};

    if (j->run.judge && *o->capture && access(o->capture, R_OK) == 0)
        run_rdmatrace(j, argv, "");
}

/* The page of the card at `card`. */
static int write_page(const struct conformance_job *j, const char *card, const char *page)
{
    char *const argv[] = {(char *)"rdmatrace", (char *)"report", (char *)"-o", (char *)page,
                          (char *)"--from",    (char *)card,     NULL};

    return run_rdmatrace(j, argv, NULL);
}

/* The ladder of each test that did not pass, beside its capture: of both hosts, as a test may end before its packets
 * show which queue pairs belong together. */
static int write_ladders(const struct conformance_job *j)
{
    int status = 0;

    for (unsigned i = 0; i < j->n && !status; i++) {
        const char *capture = j->outcome[i].capture;
        char *const argv[] = {(char *)"rdmatrace", (char *)"ladder", (char *)"--hosts",
                              (char *)"--",        (char *)capture,  NULL};
        char to[sizeof j->outcome[i].capture + 8];
        if (!*capture || j->outcome[i].result == CONFORM_PASS || access(capture, R_OK) < 0)
            continue;
        snprintf(to, sizeof to, "%.*s.ladder", (int)(strrchr(capture, '.') - capture), capture);
        status = run_rdmatrace(j, argv, to);
    }
    return status;
}

/* The page of --html: its card, if it is written nowhere else, is a file for this moment. */
static int write_html(const struct conformance_job *j, const struct conform_score *s, const char *page)
{
    char card[4096];
    int status;

    if ((size_t)snprintf(card, sizeof card, "%s.json.part", page) >= sizeof card)
        return cli_error("--html %s: the name is too long", page);
    status = write_file(card, s, conform_print_json);
    if (!status)
        status = write_page(j, card, page);
    unlink(card);
    return status;
}

static int write_directory(const struct conformance_job *j, const struct conform_score *s)
{
    static const struct {
        const char *name;
        void (*print)(const struct conform_score *, struct buf *);
    } reports[] = {{"report.txt", conform_print_text},
                   {"report.json", conform_print_json},
                   {"report.xml", conform_print_junit},
                   {"expected.txt", expected_print}};
    char path[4096], page[4096];
    int status = 0;

    for (unsigned i = 0; i < ARRAY_LEN(reports) && !status; i++) {
        status = path_in(j, reports[i].name, path, sizeof path);
        if (!status)
            status = write_file(path, s, reports[i].print);
    }
    if (status || !j->run.judge)
        return status;
    status = path_in(j, "report.json", path, sizeof path) || path_in(j, "report.html", page, sizeof page)
                 ? EXIT_BAD
                 : write_page(j, path, page);
    return status ? status : write_ladders(j);
}

int conformance_out_write(struct conformance_job *j, const struct conform_score *s)
{
    bool good = !j->out || write_directory(j, s) == 0; /* one that cannot be written keeps none of the others back */

    if (j->json)
        good &= write_file(j->json, s, conform_print_json) == 0;
    if (j->junit)
        good &= write_file(j->junit, s, conform_print_junit) == 0;
    if (j->html)
        good &= write_html(j, s, j->html) == 0;
    close_progress(j);
    return good && !j->unwritten ? 0 : EXIT_BAD;
}

/* --- What is expected ------------------------------------------------------------------------- */

bool conformance_is_failure(const struct conformance_job *j, const struct conform_outcome *o)
{
    if (j->expected_file)
        return o->result != j->expected.result[o->test - j->battery.test];
    return o->result == CONFORM_FAIL || o->result == CONFORM_INCONCLUSIVE || o->result == CONFORM_ERROR ||
           o->result == CONFORM_CRASH;
}
