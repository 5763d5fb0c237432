/* layer 3 (conform): the judge: `rdmatrace check` as a separate process, and its findings about one host. */
#include "gen/conform/conform.h"
#include "src/cap/cap.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define OUTPUT_MAX (16u << 20) /* bytes that the judge may print */

extern char **environ;

/* Read what is printed, to the end. */
static int read_all(int fd, struct buf *b)
{
    ssize_t n = 1;

    while (n > 0 && b->len < OUTPUT_MAX) {
        if (!buf_need(b, 65536))
            return -ENOMEM;
        n = read(fd, b->p + b->len, 65536);
        if (n > 0)
            b->len += (size_t)n;
        else if (n < 0 && errno == EINTR)
            n = 1;
    }
    return n < 0 ? -errno : n == 0 ? 0 : -EFBIG;
}

/* Run the program with its output to *b. 0, or a negative errno; -EPROTO: it failed. */
static int run(const char *program, const char *capture, const char *counters, struct buf *b)
{
    char *argv[12] = {(char *)"rdmatrace",  (char *)"check", (char *)"-T",       (char *)"ndjson",
                      (char *)"--complete", (char *)"--tap", (char *)"responder"};
    unsigned n = 7;
    posix_spawn_file_actions_t act;
    int fd[2], e, status = 0;
    pid_t pid;

    if (counters) {
        argv[n++] = (char *)"--counters";
        argv[n++] = (char *)counters;
    }
    argv[n++] = (char *)"--";
    argv[n] = (char *)capture;
    if (pipe2(fd, O_CLOEXEC) < 0)
        return -errno;
    posix_spawn_file_actions_init(&act);
    posix_spawn_file_actions_adddup2(&act, fd[1], STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&act, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    e = -posix_spawn(&pid, program, &act, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&act);
    close(fd[1]);
    if (e == 0) {
        e = read_all(fd[0], b);
        if (e < 0)
            kill(pid, SIGKILL);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            continue;
        if (e == 0 && (!WIFEXITED(status) || WEXITSTATUS(status) > 1))
            e = -EPROTO;
    }
    close(fd[0]);
    return e;
}

struct token conform_member(const char *line, size_t len, const char *name)
{
    const char *p = memmem(line, len, name, strlen(name));
    struct token t = {0};

    if (!p)
        return t;
    t.p = p + strlen(name);
    t.len = (uint32_t)strcspn(t.p, ",]}\"\n");
    return t;
}

/* --- Findings --------------------------------------------------------------------------------- */

#define FRAMES_MAX 20 /* frames of a rule that are named */

struct finding {
    char rule[16];
    uint64_t frame;
    unsigned number; /* in the order in which they were found */
    bool ours;       /* the frame was sent by the device */
};

struct findings {
    struct finding *f;
    unsigned n, room;
};

static int take_finding(const char *line, size_t len, struct findings *all)
{
    struct token rule = conform_member(line, len, "\"rule\":\""), frame = conform_member(line, len, "\"frames\":[");
    struct token verdict = conform_member(line, len, "\"verdict\":\"");
    struct finding *more, f = {.number = all->n};

    if (!rule.len || rule.len >= sizeof f.rule || !token_is(&verdict, "fail") || !token_u64(&frame, &f.frame))
        return 0;
    if (all->n == all->room) {
        more = realloc(all->f, (all->room * 2 + 16) * sizeof *more);
        if (!more)
            return -ENOMEM;
        all->f = more;
        all->room = all->room * 2 + 16;
    }
    memcpy(f.rule, rule.p, rule.len);
    all->f[all->n++] = f;
    return 0;
}

static int by_frame(const void *a, const void *b)
{
    const struct finding *x = a, *y = b;

    return x->frame < y->frame ? -1 : x->frame > y->frame;
}

static int by_number(const void *a, const void *b)
{
    const struct finding *x = a, *y = b;

    return x->number < y->number ? -1 : x->number > y->number;
}

/* Read the capture once, and mark the findings whose frame was sent by `mac`. 0 or a negative errno. */
static int find_senders(const char *capture, const uint8_t mac[6], struct findings *all)
{
    struct cap_error err;
    struct frame f = {0};
    struct cap *c;
    uint64_t at = 0;
    int e = all->n ? cap_open(&c, capture, 0, NULL, &err) : 0;

    if (!all->n || e < 0)
        return e;
    qsort(all->f, all->n, sizeof *all->f, by_frame);
    for (unsigned i = 0; i < all->n && e >= 0; i++) {
        for (; at < all->f[i].frame && (e = cap_next(c, &f)) == 1; at++)
            continue;
        all->f[i].ours = at && at == all->f[i].frame && f.caplen >= 12 && memcmp(f.data + 6, mac, 6) == 0;
    }
    cap_close(c);
    qsort(all->f, all->n, sizeof *all->f, by_number);
    return e < 0 ? e : 0;
}

/* Append the rules that the device broke, with the first frames of each. */
static void put_findings(const struct findings *all, struct buf *found)
{
    unsigned named[RULE_COUNT + 1] = {0};

    for (unsigned i = 0; i < all->n; i++) {
        const struct finding *f = &all->f[i];
        if (f->ours && named[rule_find(f->rule)]++ < FRAMES_MAX)
            buf_printf(found, "%s%s in frame %llu", found->len ? ", " : "", f->rule, (unsigned long long)f->frame);
    }
}

static bool begins(const char *line, const char *with)
{
    return strncmp(line, with, strlen(with)) == 0;
}

#define COUNTER_ROW "{\"type\":\"counter\","

/* Append a line about counters as a row. */
static void take_counter(const char *line, size_t len, struct buf *verdicts)
{
    buf_puts(verdicts, verdicts->len ? ",{" : "{");
    buf_mem(verdicts, line + sizeof COUNTER_ROW - 1, len - (sizeof COUNTER_ROW - 1));
}

int conform_judge(const char *program, const char *capture, const uint8_t mac[6], const char *counters,
                  struct buf *found, struct buf *verdicts)
{
    struct findings all = {0};
    struct buf b = {0};
    int e = run(program, capture, counters, &b);
    bool whole = false;

    for (const char *line = e == 0 ? buf_str(&b) : ""; e == 0 && *line;) {
        size_t n = strcspn(line, "\n");
        if (begins(line, "{\"type\":\"finding\""))
            e = take_finding(line, n, &all);
        whole = begins(line, "{\"type\":\"check\"");
        if (begins(line, COUNTER_ROW))
            take_counter(line, n, verdicts);
        line += n + (line[n] == '\n');
    }
    if (e == 0)
        e = find_senders(capture, mac, &all);
    if (e == 0)
        put_findings(&all, found);
    free(all.f);
    buf_free(&b);
    return e < 0 ? e : whole ? 0 : -EPROTO;
}
