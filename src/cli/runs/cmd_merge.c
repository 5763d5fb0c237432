/* layer 4 (tool): `rdmatrace merge`: what a command prints of the files of a run. */
#include "src/cli/capture_cmd.h"
#include "src/cli/cli.h"
#include "src/cli/input/arguments.h"
#include "src/scan/run.h"
#include "src/scan/scan.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct opt_def defs[] = {
    {'l', "list", NULL,
     "list the files of the run: packets, bytes, bytes of the digest a packet, whether it is scanned"},
    {'h', "help", NULL, "show this help"},
    {0, NULL, NULL, NULL},
};

#define COMMAND_ROW(name, run, what)                                                                                   \
    {                                                                                                                  \
        name, run                                                                                                      \
    }

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} merged[] = {MERGED_COMMANDS(COMMAND_ROW)};

void cmd_merge_help(struct buf *b)
{
    buf_puts(
        b, "Usage: rdmatrace merge RUN check|explain|flows|ops [options]\n"
           "       rdmatrace merge --list RUN\n\n"
           "Print what the command prints of all files that `rdmatrace scan` read into RUN, to the byte; the options\n"
           "are those of the command. `rdmatrace COMMAND RUN` does the same.\n\n");
    opt_help(b, defs);
    buf_puts(
        b, "\nExit status: that of the command; 2 also if a file of the run was not scanned, or parts of it need more\n"
           "--memory.\n");
}

/* The words of a command line: the command, its `n` options, and `run` unless it is NULL; NULL: no memory. */
static char **words_of(const char *name, char *const *options, size_t n, const char *run)
{
    char **words = calloc(n + 3, sizeof *words);

    if (!words)
        return NULL;
    words[0] = (char *)name;
    memcpy(words + 1, options, n * sizeof *words);
    words[n + 1] = (char *)run;
    return words;
}

int merge_run(const char *name, char *const *options, size_t n, const char *run)
{
    char **words = words_of(name, options, n, run);
    int status = EXIT_BAD;
    unsigned i = 0;

    while (i < ARRAY_LEN(merged) && strcmp(merged[i].name, name) != 0)
        i++;
    if (!words)
        status = cli_error("out of memory");
    else if (i == ARRAY_LEN(merged))
        status = cli_error("merge: %s is none of check, explain, flows, ops", name);
    else
        status = merged[i].run((int)n + 2, words);
    free(words);
    return status;
}

int merge_options(const char *name, char *const *options, size_t n, bool *answered)
{
    static const struct trace_cmd *const cmds[] = {&check_cmd, &explain_cmd, &flows_cmd, &ops_cmd};
    char **words = words_of(name, options, n, NULL);
    int status = EXIT_OK;

    if (!words)
        return cli_error("out of memory");
    for (unsigned i = 0; i < ARRAY_LEN(cmds); i++)
        if (strcmp(cmds[i]->name, name) == 0)
            status = capture_options(cmds[i], (int)n + 1, words, answered);
    free(words);
    return status;
}

/* Whether a file of the run, of whose digest `e` is the end, is scanned. */
static const char *state_of(const char *shard, const char *digest, const struct digest_end *e)
{
    struct stat st;

    if (stat(shard, &st) < 0 && errno == ENOENT)
        return "gone";
    if (e->error.err)
        return "torn";
    return scan_is_done(shard, digest) ? "yes" : "old";
}

/* "      33280   37018012  22.8  yes  a.pcapng" */
static void put_shard(struct buf *b, const char *folder, size_t i, const char *shard)
{
    struct buf path = {0};
    struct digest_end e;
    struct stat st = {0};
    const char *state = "no";

    run_digest(folder, i, &path);
    if (digest_end_read(&e, buf_str(&path)) == 0) {
        state = state_of(shard, buf_str(&path), &e);
        stat(buf_str(&path), &st);
    }
    buf_printf(b, "%10llu %15llu %15.1f  %-7s  %s\n", (unsigned long long)e.info.frames, (unsigned long long)e.size,
               e.info.frames ? (double)st.st_size / (double)e.info.frames : 0, state, shard);
    digest_end_free(&e);
    buf_free(&path);
}

static int list(const char *folder)
{
    struct buf out = {0};
    struct run r;

    if (access(folder, F_OK) < 0)
        return cli_error("%s: %s", folder, strerror(errno));
    if (run_open(&r, folder) < 0)
        return cli_error("%s: this is no run of `rdmatrace scan`", folder);
    buf_printf(&out, "%10s %15s %15s  %-7s  %s\n", "packets", "bytes", "bytes a packet", "scanned", "file");
    for (size_t i = 0; i < r.n; i++)
        put_shard(&out, folder, i, r.shards[i]);
    run_close(&r);
    return cli_show(&out);
}

static bool is_word(const char *arg, char letter, const char *name)
{
    return (arg[0] == '-' && arg[1] == letter && !arg[2]) || (strncmp(arg, "--", 2) == 0 && strcmp(arg + 2, name) == 0);
}

int cmd_merge(int argc, char **argv)
{
    struct buf out = {0};

    if (argc > 1 && is_word(argv[1], 'h', "help")) {
        cmd_merge_help(&out);
        return cli_show(&out);
    }
    if (argc == 3 && is_word(argv[1], 'l', "list"))
        return list(argv[2]);
    if (argc < 3 || argv[1][0] == '-')
        return cli_error("merge: expected RUN and a command: check, explain, flows or ops");
    if (access(argv[1], F_OK) < 0)
        return cli_error("%s: %s", argv[1], strerror(errno));
    if (!run_is(argv[1]))
        return cli_error("%s: this is no run of `rdmatrace scan`", argv[1]);
    return merge_run(argv[2], argv + 3, (size_t)argc - 3, argv[1]);
}
