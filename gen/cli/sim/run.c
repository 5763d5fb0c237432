/* layer 4 (tool): `rdmagen sim`: running traffic, and scenario files. */
#include "beside.h"
#include "gen/cli/sim/sim_cli.h"
#include "gen/cli/specs.h"
#include "gen/live/live.h"
#include "gen/script/script.h"
#include "gen/sim/truth.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#define PROGRESS_STEP (100 * NS_PER_MS)

int sim_cap_failed(const struct cap_error *e)
{
    struct buf b = {0};

    cap_error_line(e, &b);
    cli_error("%s", buf_str(&b));
    buf_free(&b);
    return EXIT_BAD;
}

int sim_open_taps(struct sim_job *job, struct tap_set sets[TAP_PLACES])
{
    uint16_t linktype = job->sim.ep[0].addr.encap == ENCAP_IB ? LINK_INFINIBAND : LINK_ETHERNET;
    struct cap_error e;

    for (unsigned p = 0; p < TAP_PLACES; p++)
        sets[p] = (struct tap_set){.place = (uint8_t)p};
    for (unsigned i = 0; i < job->n_files; i++) {
        struct sim_file *f = &job->files[i];
        struct tap_opts o = job->tap;
        o.seed = job->sim.seed * 131 + i;
        if (tap_open(&sets[f->place], f->path, linktype, &o, &e) < 0) {
            sim_close_taps(sets);
            return sim_cap_failed(&e);
        }
        job->sim.taps[f->place] = &sets[f->place];
    }
    return 0;
}

int sim_close_taps(struct tap_set sets[TAP_PLACES])
{
    struct cap_error e;
    int status = 0;

    for (unsigned p = 0; p < TAP_PLACES; p++)
        if (tap_close(&sets[p], &e) < 0)
            status = sim_cap_failed(&e);
    return status;
}

/* Print the progress from time to time. */
static void progress(void *user)
{
    static ns_t next;
    ns_t now = live_now();
    unsigned p;

    if (now < next)
        return;
    next = now + PROGRESS_STEP;
    p = traffic_progress(sim_traffic_flows(user));
    fprintf(stderr, "\r%3u.%u %%", p / 10, p % 10);
}

/* True if a capture is written to standard output. */
static bool writes_stdout(const struct sim_job *job)
{
    for (unsigned i = 0; i < job->n_files; i++)
        if (strcmp(job->files[i].path, "-") == 0)
            return true;
    return false;
}

int sim_show(const struct sim_job *job, struct buf *b)
{
    if (!writes_stdout(job))
        return cli_show(b);
    bool good = !b->err && cli_text(b, STDERR_FILENO);

    if (b->err)
        cli_error("sim: out of memory");
    buf_free(b);
    return good ? 0 : EXIT_BAD;
}

static bool all_good(const struct traffic_result *r)
{
    return !r->failed && !r->recv_failed && !r->mismatches && !r->conn_failed && !r->gave_up;
}

int sim_write_truth(struct sim_job *job, struct truth *t)
{
    struct buf b = {0};
    int status;

    truth_json(&b, t);
    status = b.err ? cli_error("sim: out of memory") : report_file_write(&job->truth, &b);
    buf_free(&b);
    return status;
}

/* Print and write the results: 0, or the exit status after a message. */
static int report(struct sim_job *job, struct sim *s, struct sim_traffic *t, struct truth *truth)
{
    struct buf b = {0};
    int status = 0;

    if (!report_file_alone(&job->json) && !report_file_alone(&job->truth)) {
        report_text(&b, job, s, sim_traffic_flows(t));
        status = sim_show(job, &b);
    }
    if (job->json.wanted && status == 0) {
        b = (struct buf){0};
        report_json(&b, job, s, sim_traffic_flows(t));
        status = report_file_write(&job->json, &b);
        buf_free(&b);
    }
    return truth && status == 0 ? sim_write_truth(job, truth) : status;
}

static int run(struct sim_job *job, struct sim *s, struct sim_traffic *t)
{
    static const char *const who[NET_HOSTS] = {"the requester", "the responder"};
    struct truth *truth = job->truth.wanted ? truth_new(s) : NULL;
    bool show = isatty(STDERR_FILENO);
    unsigned idle;
    int status;

    if (job->truth.wanted && !truth)
        return cli_error("sim: out of memory");
    s->app = sim_traffic_app(t);
    sim_traffic_run(t, show ? progress : NULL, t);
    if (show)
        fputs("\r       \r", stderr);
    status = report(job, s, t, truth);
    truth_free(truth);
    idle = sim_idle(s, who, specs_print, NULL);
    if (status)
        return status;
    return all_good(&sim_traffic_flows(t)->r) && !idle ? EXIT_OK : EXIT_FOUND;
}

static int play(struct sim_job *job)
{
    struct tap_set sets[TAP_PLACES];
    struct sim_app none = {0};
    struct sim_traffic *t = NULL;
    struct sim s;
    int status, err;

    status = sim_open_taps(job, sets);
    if (status) {
        event_list_free(job->sim.events);
        return status;
    }
    for (unsigned h = 0; h < NET_HOSTS; h++) {
        job->sim.ep[h].faults = job->faults[h];
        job->sim.ep[h].n_faults = job->n_faults[h];
        job->sim.ep[h].max_mr = sim_traffic_keys(&job->traffic) + 64;
        job->sim.ep[h].max_qp = sim_traffic_conns(&job->traffic) + 16;
        if (job->has_psn)
            job->conn.psn[h] = job->psn;
    }
    job->traffic.seed = job->sim.seed;
    job->traffic.psn_given = job->has_psn;
    if (job->completions && (err = ledger_open(&job->ledger, job->completions)) < 0) {
        sim_close_taps(sets);
        event_list_free(job->sim.events);
        return cli_error("%s: %s", job->completions, strerror(-err));
    }
    err = sim_init(&s, &job->sim, &none);
    if (err == 0)
        t = sim_traffic_new(&s, &job->traffic, &job->conn, job->ledger, &err);
    status = t ? run(job, &s, t) : cli_error("sim: %s", strerror(-err));
    sim_traffic_free(t);
    sim_free(&s);
    if ((err = ledger_close(job->ledger)) < 0)
        status = cli_error("%s: %s", job->completions, strerror(-err));
    err = sim_close_taps(sets);
    return err ? err : status;
}

int sim_traffic(struct sim_job *job)
{
    int r = report_file_open(&job->json);

    if (!r)
        r = report_file_open(&job->truth);
    if (r) {
        event_list_free(job->sim.events);
        return r;
    }
    r = play(job);
    if (r)
        report_file_fail(&job->json);
    if (r)
        report_file_fail(&job->truth);
    return r;
}

/* --- Scenarios -------------------------------------------------------------------------------- */

#define FILE_MAX (64u << 20)

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
    } while (n > 0 && b->len <= FILE_MAX);
    n = (size_t)ferror(f);
    fclose(f);
    return n ? -EIO : b->len > FILE_MAX ? -EFBIG : 0;
}

static int run_scenario(struct sim_job *job, const char *text)
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
    cli_text(&out, r == SCRIPT_OK && !writes_stdout(job) ? STDOUT_FILENO : STDERR_FILENO);
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
            "sim: %s: %s (`rdmagen sim --help` lists the kinds of traffic; all else is the file of a scenario)",
            job->scenario, strerror(-status));
    }
    if (!has_statement(buf_str(&text)))
        status = cli_error("sim: %s: the scenario does nothing", job->scenario);
    for (unsigned i = 0; status == 0 && i < job->n_files; i++)
        if (beside_replaces(job->files[i].path, (const char *const[]){job->scenario}, 1))
            status = cli_error("sim: -w %s is the scenario", job->files[i].path);
    if (status != 0) {
        event_list_free(job->sim.events);
        buf_free(&text);
        return status;
    }
    for (unsigned h = 0; h < NET_HOSTS; h++) {
        job->sim.ep[h].faults = job->faults[h];
        job->sim.ep[h].n_faults = job->n_faults[h];
    }
    status = run_scenario(job, buf_str(&text));
    buf_free(&text);
    return status;
}
