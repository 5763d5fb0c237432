/* layer 4 (tool): `rdmagen sim FILE`: scenario files. */
#include "gen/cli/sim_cli.h"
#include "gen/script/script.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int sim_read_file(const char *path, struct buf *b)
{
    FILE *f = fopen(path, "rb");
    size_t n;

    if (!f)
        return -errno;
    do {
        if (!buf_need(b, 65536)) {
            fclose(f);
            return -ENOMEM;
        }
        n = fread(b->p + b->len, 1, 65536, f);
        b->len += n;
    } while (n > 0);
    n = (size_t)ferror(f);
    fclose(f);
    return n ? -EIO : 0;
}

static int run(struct sim_job *job, const char *text)
{
    struct tap_set sets[TAP_PLACES];
    struct script_opts o = {.has_psn = job->has_psn, .psn = job->psn, .verbose = job->verbose};
    struct buf out = {0};
    enum script_result r;
    int status = sim_open_taps(job, sets);

    if (status) {
        event_list_free(job->sim.events);
        return status;
    }
    o.sim = job->sim;
    r = script_run(job->scenario, text, &o, &out);
    cli_flush(&out, r == SCRIPT_OK ? STDOUT_FILENO : STDERR_FILENO);
    buf_free(&out);
    status = sim_close_taps(sets);
    if (status || r == SCRIPT_BAD)
        return EXIT_BAD;
    return r == SCRIPT_OK ? EXIT_OK : EXIT_FOUND;
}

/* Whether the text has a statement; without one no captures are created. */
static bool has_statement(const char *text)
{
    for (;;) {
        text += strspn(text, " \t\r\n");
        if (*text != '#')
            return *text != '\0';
        text += strcspn(text, "\n");
    }
}

int sim_scenario(struct sim_job *job)
{
    struct buf text = {0};
    int status = sim_read_file(job->scenario, &text);

    if (status < 0) {
        event_list_free(job->sim.events);
        buf_free(&text);
        return cli_error(
            "sim: %s: %s (write, send, read, cas, faa and mixed are traffic, all else the file of a scenario)",
            job->scenario, strerror(-status));
    }
    if (!has_statement(buf_str(&text))) {
        event_list_free(job->sim.events);
        buf_free(&text);
        return cli_error("sim: %s: the scenario does nothing", job->scenario);
    }
    for (unsigned h = 0; h < NET_HOSTS; h++) {
        job->sim.ep[h].faults = job->faults[h];
        job->sim.ep[h].n_faults = job->n_faults[h];
    }
    status = run(job, buf_str(&text));
    buf_free(&text);
    return status;
}
