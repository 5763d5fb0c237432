/* layer 4 (tool): `rdmatrace reduce`: one of several processes that share out the connections of a run. */
#include "src/cli/capture_cmd.h"
#include "src/cli/runs/parts.h"

#include <stdlib.h>

enum {
    KEY_PART = 256,
    KEY_RESUME,
};

static const struct opt_def defs[] = {
    {KEY_PART, "part", "K/N",
     "follow part K of N of all pairs of addresses, or of all hosts, 1/N to N/N; N at most 256"},
    {KEY_RESUME, "resume", NULL, "do nothing if this part is there, of these scans and with these options"},
    {'q', "quiet", NULL, "print nothing but errors"},
    {'h', "help", NULL, "show this help"},
    {0, NULL, NULL, NULL},
};

void cmd_reduce_help(struct buf *b)
{
    buf_puts(
        b, "Usage: rdmatrace reduce [options] RUN --part K/N check|flows|ops [options of the command]\n\n"
           "Follow one part of a run of `rdmatrace scan`: of check the connections of some of all pairs of addresses,\n"
           "of flows and ops those of some hosts. Parts may run at the same time, on machines that share the folder;\n"
           "`rdmatrace merge RUN COMMAND` with the same options then prints what one process would, to the byte.\n\n");
    opt_help(b, defs);
    buf_puts(b, "\nExit status: 0, 2 for usage or input that cannot be read.\n");
}

/* The commands that are shared out. */
static const struct trace_cmd *const shared[] = {&check_cmd, &flows_cmd, &ops_cmd};

struct job {
    const char *folder;
    uint64_t k, n, followed; /* packets */
    bool resume, quiet;
    const struct trace_cmd *cmd;
    struct buf words, out;
};

static int take_option(struct job *job, int key, const char *arg)
{
    switch (key) {
    case KEY_PART:
        return part_option(arg, PARTS_MAX, &job->k, &job->n);
    case KEY_RESUME:
        job->resume = true;
        return EXIT_OK;
    case 'q':
        job->quiet = true;
        return EXIT_OK;
    default:
        return EXIT_BAD;
    }
}

static const struct trace_cmd *shared_cmd(const char *name)
{
    for (unsigned i = 0; i < ARRAY_LEN(shared); i++)
        if (strcmp(shared[i]->name, name) == 0)
            return shared[i];
    return NULL;
}

/* The first word that is a command, behind at least one that names the run; `argc`: there is none. */
static int find_command(struct job *job, int argc, char **argv)
{
    for (int i = 2; i < argc; i++)
        if ((job->cmd = shared_cmd(argv[i])))
            return i;
    return argc;
}

/* Whether the part is there already. */
static bool is_done(const struct job *job, const char *path, const struct part_head *now)
{
    struct part_head h;
    struct buf bytes = {0};
    struct pack body;
    bool is = job->resume && part_read(path, &h, &bytes, &body);

    if (job->resume) {
        is = is && h.scans == now->scans && h.words && strcmp(h.words, now->words) == 0;
        free(h.words);
        free(h.why);
    }
    buf_free(&bytes);
    return is;
}

static void say(struct job *job, const struct trace_share *s, uint64_t read)
{
    double mean = s->packets ? 100.0 * (double)read * (double)job->n / (double)s->packets : 0;

    buf_printf(&job->out, "part %u of %u: ", (unsigned)job->k, (unsigned)job->n);
    if (s->why)
        buf_printf(&job->out, "%s: merge follows the connections in one process\n", s->why);
    else
        buf_printf(&job->out, "%s followed of %llu, %.0f %% of the mean; %zu bytes found\n", count_str(read, "packet"),
                   (unsigned long long)s->packets, mean, s->found->len);
}

/* Whether all shards can be shared out, and their packets. */
static void look_at_shards(struct trace_share *s)
{
    for (size_t i = 0; i < s->n_ends; i++) {
        s->packets += s->ends[i].info.frames;
        if (!s->ends[i].may_share)
            s->why = "the packets of a file do not follow each other in time";
    }
}

static int reduce(struct job *job, const struct run *r, const struct digest_end *ends, char **words, int n_words)
{
    struct buf found = {0}, path = {0};
    struct trace_share s = {.ends = ends, .n_ends = r->n, .leads = job->k == 1, .found = &found};
    struct part_head h = {.scans = part_scans(ends, r->n), .k = (unsigned)job->k, .n = (unsigned)job->n};
    uint64_t read = 0;
    int status = EXIT_OK, rc;

    h.words = (char *)buf_str(&job->words);
    part_path(r, job->cmd->name, h.k, h.n, &path);
    part_clean(r, buf_str(&path));
    s.owners = part_owners(h.k, h.n);
    look_at_shards(&s);
    if (is_done(job, buf_str(&path), &h)) {
        buf_printf(&job->out, "part %u of %u is there\n", h.k, h.n);
    } else {
        if (!s.why)
            status = trace_part(job->cmd, n_words, words, &s, &read);
        read -= s.passed;
        job->followed = s.why ? 0 : read;
        if (s.why)
            found.len = part_lacks_memory(s.why) ? s.options : 0;
        h.why = (char *)s.why;
        rc = status == EXIT_OK ? part_write(buf_str(&path), &h, &found) : 0;
        if (rc < 0)
            status = cli_error("%s: %s", buf_str(&path), strerror(-rc));
        if (status == EXIT_OK)
            say(job, &s, read);
    }
    buf_free(&found);
    buf_free(&path);
    return status;
}

/* The part, by the options of the command behind its name. */
static int run(struct job *job, int argc, char **argv)
{
    char **words = calloc((size_t)argc + 2, sizeof *words);
    struct digest_end *ends = NULL;
    struct run r = {0};
    int status = EXIT_OK;

    if (!words)
        return cli_error("out of memory");
    for (int i = 0; i < argc; i++) {
        words[i] = argv[i];
        buf_printf(&job->words, "%s%s", i ? "\n" : "", argv[i]);
    }
    words[argc] = (char *)job->folder;
    if (run_open(&r, job->folder) < 0)
        status = cli_error("%s: this is no run of `rdmatrace scan`", job->folder);
    if (status == EXIT_OK)
        status = part_ends(&r, &ends);
    for (size_t i = 0; i < r.n && status == EXIT_OK; i++)
        status = shards_unchanged(r.shards[i], &ends[i]); /* also where the part is there */
    if (status == EXIT_OK)
        status = reduce(job, &r, ends, words, argc + 1);
    part_ends_free(&r, ends);
    run_close(&r);
    free(words);
    return status;
}

bool reduce_can(const char *name, unsigned parts)
{
    return parts <= PARTS_MAX && shared_cmd(name);
}

bool reduce_reads_all(const char *name)
{
    const struct trace_cmd *cmd = shared_cmd(name);

    return cmd && cmd->by_hosts;
}

int reduce_run(const char *name, char *const *options, size_t n, const char *folder, unsigned k, unsigned parts,
               uint64_t *followed)
{
    struct job job = {.folder = folder, .k = k, .n = parts, .resume = true};
    int status = EXIT_OK;

    job.cmd = reduce_can(name, parts) ? shared_cmd(name) : NULL;
    if (job.cmd) {
        char **words = calloc(n + 1, sizeof *words);
        if (!words)
            return cli_error("out of memory");
        words[0] = (char *)name;
        memcpy(words + 1, options, n * sizeof *words);
        status = run(&job, (int)n + 1, words);
        free(words);
    }
    *followed = job.followed;
    buf_free(&job.out);
    buf_free(&job.words);
    return status;
}

int cmd_reduce(int argc, char **argv)
{
    struct job job = {.n = 0};
    struct opt_state s;
    const char *arg;
    int at = find_command(&job, argc, argv), key, operand = at, status = EXIT_OK;

    opt_start(&s, defs, at, argv);
    while (status == EXIT_OK && (key = opt_next(&s, &arg, &operand)) != 0 && key != 'h')
        status = take_option(&job, key, arg);
    opt_end(&s);
    if (status == EXIT_OK && key == 'h') {
        cmd_reduce_help(&job.out);
    } else if (status == EXIT_OK) {
        job.folder = operand < at ? argv[operand] : NULL;
        if (!job.folder || operand + 1 < at || !job.cmd || !job.n)
            status = cli_error(
                "reduce: expected RUN, --part K/N and the command: check, flows or ops; merge does explain alone");
        else
            status = run(&job, argc - at, argv + at);
        job.out.len = job.quiet ? 0 : job.out.len;
    }
    if (cli_show(&job.out) != EXIT_OK)
        status = EXIT_BAD;
    buf_free(&job.words);
    return status;
}
