/* layer 4 (tool): `rdmagen sim --workload`: many hosts in a fabric. */
#include "gen/cli/sim/sim_cli.h"
#include "gen/sim/truth.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* --- The network ------------------------------------------------------------------------------ */

/* Read the lines of a topology file. 0, or the exit status after a message. */
static int read_topology(struct topology *t, const char *path)
{
    struct buf text = {0};
    struct text_error e;
    unsigned number;
    int r = sim_read_file(path, &text);

    buf_str(&text); /* ends it with a NUL */
    if (r == -ENOENT)
        r = cli_error("--topology %s: neither star:HOSTS nor leafspine:LEAVES,SPINES,HOSTS, nor a file: %s", path,
                      strerror(-r));
    else if (r < 0)
        r = cli_error("--topology %s: %s", path, strerror(-r));
    else if (!topology_read(t, text.p, &number, &e))
        r = cli_error("%s:%u:%u: %s", path, number, e.col, e.msg);
    buf_free(&text);
    return r;
}

static int make_topology(const struct sim_job *job, struct topology *t)
{
    struct text_error e;
    int r = 0;

    topology_init(t, job->sim.port_rate, job->sim.net.delay);
    if (!topology_is_built_in(job->topology))
        r = read_topology(t, job->topology);
    else if (!topology_make(t, job->topology, &e))
        r = cli_error("--topology %s: %s", job->topology, e.msg);
    for (unsigned i = 0; i < job->n_lines && r == 0; i++)
        if (!topology_line(t, job->lines[i], &e))
            r = cli_error("--fabric '%s': column %u: %s", job->lines[i], e.col, e.msg);
    if (r == 0 && !topology_check(t, &e))
        r = cli_error("--topology %s: %s", job->topology, e.msg);
    return r;
}

/* --- Files ------------------------------------------------------------------------------------ */

/* The name of a port, to be freed; NULL: no memory. */
static char *port_name(const struct fabric *f, const struct fabric_port *p)
{
    struct buf b = {0};
    char *name;

    fabric_port_name(&b, f, p);
    name = strdup(buf_str(&b));
    buf_free(&b);
    return name;
}

/* The port where a capture is made, by default the first host's; NULL: there is no such port. */
static struct fabric_port *port_of(struct fabric *f, const struct sim_file *file)
{
    const char *first = fabric_host_name(f, 0);

    return file->port ? fabric_port_find(f, file->port, file->port_len) : fabric_port_find(f, first, strlen(first));
}

/* Open the captures, if each has a port; files of one port share a tap. 0 or the exit status. */
static int open_taps(struct sim_job *job, struct fabric *f, struct tap_set *sets, struct fabric_port **at)
{
    const struct sim_file *file;
    struct cap_error e;

    for (file = job->files; file < job->files + job->n_files; file++)
        if (!port_of(f, file))
            return cli_error("-w %.*s:%s: there is no such port: expected HOST, SWITCH.NEIGHBOUR or SWITCH.NUMBER",
                             (int)file->port_len, file->port, file->path);
    for (unsigned i = 0; i < job->n_files; i++) {
        struct fabric_port *p;
        struct tap_opts o = job->tap;
        unsigned k = 0;
        file = &job->files[i];
        p = port_of(f, file);
        while (at[k] && at[k] != p)
            k++;
        at[k] = p;
        if (!sets[k].name)
            sets[k].name = port_name(f, p);
        o.seed = job->sim.seed * 131 + i;
        if (tap_open(&sets[k], file->path, LINK_ETHERNET, &o, &e) < 0)
            return sim_cap_failed(&e);
        fabric_port_tap(p, &sets[k]);
    }
    return 0;
}

static int close_taps(struct tap_set *sets)
{
    struct cap_error e;
    int status = 0;

    for (unsigned i = 0; i < SIM_FILES_MAX; i++) {
        if (tap_close(&sets[i], &e) < 0)
            status = sim_cap_failed(&e);
        free(sets[i].name);
    }
    return status;
}

/* Write a file whole, or to standard output if `path` is "-". 0 or the exit status. */
static int write_file(const char *path, struct buf *b)
{
    struct report_file f;
    int r;

    report_file_option(&f, path);
    r = report_file_open(&f);
    if (!r)
        r = report_file_write(&f, b);
    buf_free(b);
    return r;
}

/* --- The run ---------------------------------------------------------------------------------- */

/* A report of its own file, if `path` is not NULL. 0 or the exit status. */
static int report_to(const char *path, void put(struct buf *b, const struct workload *w), const struct workload *w)
{
    struct buf b = {0};

    if (!path)
        return 0;
    put(&b, w);
    return write_file(path, &b);
}

/* The path in --stats FILE[:TIME], to be freed; NULL: no memory. */
static char *stats_path(const struct sim_job *job)
{
    const char *colon = strrchr(job->stats, ':');

    return strndup(job->stats, colon ? (size_t)(colon - job->stats) : strlen(job->stats));
}

/* Whether a file of results can be written, asked before the run that makes them. 0 or the exit status. */
static int check_file(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    char *dir;
    int r;

    if (!path || strcmp(path, "-") == 0)
        return 0;
    if (access(path, F_OK) == 0)
        return access(path, W_OK) == 0 ? 0 : cli_error("%s: %s", path, strerror(errno));
    dir = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    r = !dir ? cli_error("out of memory") : access(dir, W_OK) < 0 ? cli_error("%s: %s", path, strerror(errno)) : 0;
    free(dir);
    return r;
}

static int check_files(const struct sim_job *job)
{
    const char *const files[] = {job->completions, job->summary, job->fct, job->pfc};
    char *stats = job->stats ? stats_path(job) : NULL;
    int status = job->stats && !stats ? cli_error("out of memory") : check_file(stats);

    for (unsigned i = 0; i < ARRAY_LEN(files) && status == 0; i++)
        status = check_file(files[i]);
    free(stats);
    return status;
}

/* The statistics over time. 0 or the exit status. */
static int report_stats(const struct sim_job *job, struct buf *stats)
{
    char *path = stats_path(job);
    int status = path ? write_file(path, stats) : cli_error("out of memory");

    free(path);
    return status;
}

/* What is gathered while the workload runs. */
struct gathered {
    struct buf stats, pauses;
    struct truth *truth; /* NULL: not wanted */
};

/* What was asked for and cannot have had an effect. */
static void remarks(struct buf *b, const struct sim_job *job)
{
    const struct topology *t = job->sim.topology;
    const char *scheme = job->cc.given ? job->cc.cc.scheme->name : "none";
    bool marks = false, capable = (job->conn.peer[0].av.tclass & 3) != 0;

    for (uint32_t i = 0; i < t->n_nodes; i++) {
        const struct mp_config *m = &t->node[i].sw.mark;
        marks |= t->node[i].is_switch && m->kind != MP_OFF && !m->drop;
        capable |= m->all != 0;
    }
    if (!marks && strncmp(scheme, "dcqcn", 5) == 0)
        buf_printf(b, " no switch marks packets, so that %s does nothing: --fabric 'switch red=KMIN/KMAX/P'\n", scheme);
    if (marks && !capable)
        buf_puts(b, " packets are not ECN-capable, so that no switch marks them: -T 2\n");
    for (uint32_t i = 0; i < t->n_links; i++) {
        const struct topo_link *l = &t->link[i];
        const struct topo_node *a = &t->node[l->end[0]], *host = a->is_switch ? &t->node[l->end[1]] : a;
        const struct topo_node *at = a->is_switch ? a : &t->node[l->end[1]];
        if (l->storm != NS_NEVER && !host->is_switch && !at->sw.lossless)
            buf_printf(b, " the storm of %s pauses nothing: %s has no lossless class: --fabric 'switch pfc=CLASSES'\n",
                       host->name, at->name);
    }
}

static int report(struct sim_job *job, const struct workload *w, struct gathered *g)
{
    struct buf b = {0};
    int status = 0;

    if (!report_file_alone(&job->json) && !report_file_alone(&job->truth)) {
        workload_text(&b, w);
        remarks(&b, job);
        status = sim_show(job, &b);
    }
    if (job->json.wanted && status == 0) {
        b = (struct buf){0};
        workload_json(&b, w);
        status = report_file_write(&job->json, &b);
        buf_free(&b);
    }
    if (status == 0)
        status = report_to(job->completions, workload_messages_csv, w);
    if (status == 0)
        status = report_to(job->summary, workload_summary_csv, w);
    if (status == 0)
        status = report_to(job->fct, workload_fct, w);
    if (job->pfc && status == 0)
        status = write_file(job->pfc, &g->pauses);
    if (job->stats && status == 0)
        status = report_stats(job, &g->stats);
    return g->truth && status == 0 ? sim_write_truth(job, g->truth) : status;
}

static bool all_good(const struct workload_result *r)
{
    return !r->failed && !r->wrong && !r->gave_up;
}

static int run(struct sim_job *job, struct sim *s, const struct workload_config *c)
{
    struct gathered g = {.truth = job->truth.wanted ? truth_new(s) : NULL};
    struct text_error e;
    struct workload *w;
    int status;

    if (job->truth.wanted && !g.truth)
        return cli_error("sim: out of memory");
    w = workload_new(s, c, &e);
    if (!w) {
        truth_free(g.truth);
        return cli_error("--workload %s: %s", job->workload, e.msg);
    }
    s->app = workload_app(w);
    if (job->stats)
        workload_stats(w, &g.stats, job->stats_every);
    if (job->pfc)
        fabric_log_pauses(s->fabric, &g.pauses);
    workload_run(w);
    status = report(job, w, &g);
    if (!status && !all_good(workload_result(w)))
        status = EXIT_FOUND;
    fabric_log_pauses(s->fabric, NULL);
    buf_free(&g.stats);
    buf_free(&g.pauses);
    truth_free(g.truth);
    workload_free(w);
    return status;
}

/* Read a file of a workload, as text. 0 or a negative errno; -EBADMSG: it is not what it should be. */
static int read_as_text(const char *name, bool text(const struct buf *file, struct buf *text), struct buf *list)
{
    struct buf file = {0};
    int r = sim_read_file(name, text ? &file : list);

    if (r == 0 && text && !text(&file, list))
        r = -EBADMSG;
    buf_free(&file);
    return r;
}

/* Whether there is a first one of the files that are numbered and end like this. */
static bool is_there(const char *path, const char *end)
{
    struct buf name = {0};
    bool there;

    buf_printf(&name, "%s.0%s", path, end);
    there = access(buf_str(&name), F_OK) == 0;
    buf_free(&name);
    return there;
}

/* Read the file of a workload, or its numbered files up to the first one that is not there. 0, or the exit status after
 * a message. */
static int read_list(const struct sim_job *job, const struct workload_kind *k, const char *path, struct buf *list)
{
    struct buf name = {0};
    bool binary = k->binary && !is_there(path, k->numbered) && is_there(path, k->binary);
    int r = 0;

    for (unsigned n = 0; r == 0 && (n == 0 || k->numbered); n++) {
        name.len = 0;
        buf_puts(&name, path);
        if (k->numbered)
            buf_printf(&name, ".%u%s", n, binary ? k->binary : k->numbered);
        r = read_as_text(buf_str(&name), binary ? k->to_text : NULL, list);
        if (r == -ENOENT && n)
            break;
        if (r < 0)
            r = cli_error("--workload %s: %s: %s", job->workload, buf_str(&name),
                          r == -EBADMSG ? "it is damaged" : strerror(-r));
        else if (k->numbered)
            buf_char(list, WORKLOAD_NEXT_FILE);
    }
    buf_free(&name);
    return r == -ENOENT ? 0 : r;
}

/* Set up what the workload is told. `list`: the text of a file that it names. 0 or the exit status. */
static int config(struct sim_job *job, struct workload_config *c, struct buf *list)
{
    const char *colon = strchr(job->workload, ':'), *path;
    int r;

    *c = (struct workload_config){.kind = workload_find(job->workload),
                                  .args = colon ? colon + 1 : "",
                                  .size = job->traffic.size,
                                  .iters = job->iters_given ? job->traffic.iters : 1,
                                  .qps = job->traffic.qps,
                                  .depth = job->traffic.tx_depth,
                                  .conn = job->conn,
                                  .seed = job->sim.seed,
                                  .time_limit = job->traffic.time_limit};
    path = c->kind->file ? c->kind->file(c->args) : NULL;
    if (!path)
        return 0;
    if (!*path)
        return cli_error("--workload %s: expected %s%s", job->workload, c->kind->name, c->kind->args);
    r = read_list(job, c->kind, path, list);
    c->text = buf_str(list);
    return r;
}

/* The rules that every host of a workload breaks, in faults[0]; returns their number. */
static unsigned faults_of_all(struct sim_job *job)
{
    unsigned n = job->n_faults[0];

    for (unsigned i = 0; i < job->n_faults[1] && n < FAULTS_MAX; i++)
        job->faults[0][n++] = job->faults[1][i];
    return n;
}

/* Report a fault that no host has committed: 0 or the exit status. */
static int idle_faults(const struct sim_job *job, const struct sim *s)
{
    uint64_t faults = 0;

    for (unsigned h = 0; h < s->n_hosts; h++)
        faults += ep_stats(s->ep[h])->faults;
    if (!job->sim.ep[0].n_faults || faults)
        return 0;
    fprintf(stderr, "rdmagen: sim: no host has committed the fault\n");
    return EXIT_FOUND;
}

static int play(struct sim_job *job, struct topology *t, const struct workload_config *c)
{
    struct tap_set *sets = calloc(SIM_FILES_MAX, sizeof *sets);
    struct fabric_port *at[SIM_FILES_MAX + 1] = {NULL};
    struct sim_app none = {0};
    struct sim s;
    int r, err;

    if (!sets) {
        event_list_free(job->sim.events);
        return cli_error("out of memory");
    }
    job->sim.topology = t;
    job->sim.ipv6 = job->ipv6;
    job->sim.ep[0].policies.refill = &refill_full;
    job->sim.ep[0].faults = job->faults[0]; /* that of all hosts */
    job->sim.ep[0].n_faults = faults_of_all(job);
    job->sim.ep[0].no_icrc = job->n_files == 0 && !job->sim.ep[0].n_faults;
    job->sim.ep[0].no_payload = job->sim.ep[0].no_icrc && !workload_reads_data(c->kind);
    err = sim_init(&s, &job->sim, &none);
    if (err == -ENOBUFS)
        r = cli_error(
            "--topology %s: the headroom and the reserves of the ports of a switch leave nothing of its buffer",
            job->topology);
    else
        r = err < 0 ? cli_error("sim: %s", strerror(-err)) : open_taps(job, s.fabric, sets, at);
    if (r == 0)
        r = run(job, &s, c);
    if (r == 0)
        r = idle_faults(job, &s);
    sim_free(&s);
    err = close_taps(sets);
    free(sets);
    return err ? err : r;
}

int sim_workload(struct sim_job *job)
{
    struct workload_config c;
    struct topology t;
    struct buf list = {0};
    int r = make_topology(job, &t);

    if (!r)
        r = config(job, &c, &list);
    if (!r)
        r = check_files(job);
    if (!r)
        r = report_file_open(&job->json);
    if (!r)
        r = report_file_open(&job->truth);
    if (r)
        event_list_free(job->sim.events);
    else
        r = play(job, &t, &c);
    if (r) {
        report_file_fail(&job->json);
        report_file_fail(&job->truth);
    }
    buf_free(&list);
    topology_free(&t);
    return r;
}
