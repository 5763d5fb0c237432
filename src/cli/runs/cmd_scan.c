/* layer 4 (tool): `rdmatrace scan`: what analyses need of each of many capture files, for `merge`. */
#include "src/cli/cli.h"
#include "src/cli/runs/parts.h"
#include "src/scan/run.h"
#include "src/scan/scan.h"

#include <errno.h>
#include <stdlib.h>

enum {
    KEY_PART = 256,
    KEY_RESUME,
    KEY_PAYLOAD,
};

static const struct opt_def defs[] = {
    {'o', "output", "RUN", "folder for the run; it is created"},
    {KEY_PART, "part", "K/N", "scan only part K of N of the files, 1/N to N/N; all parts name all files"},
    {KEY_RESUME, "resume", NULL, "skip files that were scanned already, and have not changed since"},
    {KEY_PAYLOAD, "payload", NULL, "keep all payload, also that of WRITEs and READs which no protocol asks for"},
    {'q', "quiet", NULL, "print nothing but errors"},
    {'h', "help", NULL, "show this help"},
    {0, NULL, NULL, NULL},
};

void cmd_scan_help(struct buf *b)
{
    buf_puts(b,
             "Usage: rdmatrace scan [options] FILE... -o RUN\n\n"
             "Keep of each file what analyses look at, with ICRCs verified; `rdmatrace merge RUN COMMAND` prints what\n"
             "COMMAND prints of the files. Parts may run at the same time, on machines that share the folder.\n\n");
    opt_help(b, defs);
    buf_puts(b, "\nExit status: 0, 2 for usage or input that cannot be read; then the other files were scanned.\n");
}

struct job {
    const char *run;
    uint64_t part, parts;
    bool resume, quiet;
    struct scan_opts o;
    struct buf out;
    uint64_t frames, kept, all, written, skipped, again;
};

static int take_option(struct job *job, int key, const char *arg)
{
    switch (key) {
    case 'o':
        job->run = arg;
        return EXIT_OK;
    case KEY_PART:
        return part_option(arg, RUN_SHARDS, &job->part, &job->parts);
    case KEY_RESUME:
        job->resume = true;
        return EXIT_OK;
    case KEY_PAYLOAD:
        job->o.payload = true;
        return EXIT_OK;
    case 'q':
        job->quiet = true;
        return EXIT_OK;
    default:
        return EXIT_BAD;
    }
}

/* Scan one file, unless that is done. */
static int scan_file(struct job *job, const char *file, const char *digest)
{
    struct digest_end e;
    int rc;

    if (job->resume && scan_is_done(file, digest)) {
        job->skipped++;
        return EXIT_OK;
    }
    rc = scan_shard(file, digest, &job->o, &e);
    if (rc < 0)
        return cli_error("%s: %s", digest, strerror(-rc));
    e.error.file = file;
    rc = e.error.err ? cli_cap_error(&e.error) : EXIT_OK;
    job->frames += e.info.frames;
    job->kept += e.bytes_kept;
    job->all += e.bytes_all;
    digest_end_free(&e);
    return rc;
}

static int scan_files(struct job *job, char **files, size_t n)
{
    int status = EXIT_OK;

    for (size_t i = 0; i < n; i++) {
        struct buf digest = {0};
        if (i % job->parts != job->part - 1)
            continue;
        run_digest(job->run, i, &digest);
        if (scan_file(job, files[i], buf_str(&digest)) != EXIT_OK)
            status = EXIT_BAD;
        buf_free(&digest);
        job->written++;
    }
    return status;
}

static void say_sums(struct job *job)
{
    buf_printf(&job->out, "%s scanned", count_str(job->written - job->skipped, "file"));
    if (job->skipped)
        buf_printf(&job->out, ", %s scanned before", count_str(job->skipped, "file"));
    buf_printf(&job->out, ": %s", count_str(job->frames, "packet"));
    buf_printf(&job->out, ", %llu of %llu bytes kept\n", (unsigned long long)job->kept, (unsigned long long)job->all);
}

static int run(struct job *job, char **files, size_t n)
{
    int rc, status;

    if (!job->run)
        return cli_error("scan: -o RUN says where to");
    if (!n)
        return cli_error("scan: no capture file");
    if (n > RUN_SHARDS)
        return cli_error("scan: at most %u files", RUN_SHARDS);
    rc = run_create(job->run, (const char *const *)files, n);
    if (rc == -EEXIST)
        return cli_error("%s: this is a run of other files, or in another order", job->run);
    if (rc == -EINVAL)
        return cli_error("scan: a file's name must have one to 65535 characters, and no line end");
    if (rc < 0)
        return cli_error("%s: %s", job->run, strerror(-rc));
    run_clean(job->run, job->part, job->parts);
    status = scan_files(job, files, n);
    if (!job->quiet)
        say_sums(job);
    return status;
}

int cmd_scan(int argc, char **argv)
{
    struct job job = {.part = 1, .parts = 1};
    struct opt_state s;
    const char *arg;
    int key, operand = argc, status = EXIT_OK;

    opt_start(&s, defs, argc, argv);
    while (status == EXIT_OK && (key = opt_next(&s, &arg, &operand)) != 0 && key != 'h')
        status = take_option(&job, key, arg);
    opt_end(&s);
    if (status == EXIT_OK && key == 'h')
        cmd_scan_help(&job.out);
    else if (status == EXIT_OK)
        status = run(&job, argv + operand, (size_t)(argc - operand));
    if (cli_show(&job.out) != EXIT_OK)
        status = EXIT_BAD;
    return status;
}
