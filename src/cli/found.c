/* layer 4 (tool): findings and incidents as marks of frames, and a first pass over the files that finds them. */
#include "src/cli/found.h"

#include "dissect/frame_fields.h"
#include "src/cli/capture_cmd.h"
#include "src/cli/cli.h"

#include <stdlib.h>
#include <sys/stat.h>

#define EXPLAINED_MAX 16 /* incidents in a row that supersede each other */

/* --- Marks ------------------------------------------------------------------------------------ */

static void mark_finding(struct marks *m, const struct finding *f, uint32_t number)
{
    for (unsigned i = 0; i < f->n_frames; i++)
        marks_add(
            m, &(struct pkt_mark){
                   .frame = f->frames[i], .file = f->file, .finding = rule_str((enum rule)f->rule), .number = number});
}

static void on_left_out(void *user, const struct finding *f)
{
    if (f->result == V_FAIL)
        mark_finding(user, f, 0);
}

void found_listen(struct marks *m, struct findings *r)
{
    findings_on_left_out(r, on_left_out, m);
}

void found_findings(struct marks *m, const struct findings *r, bool unsure)
{
    for (size_t i = 0; i < findings_n(r); i++) {
        const struct finding *f = findings_at(r, i);
        if (f->result == V_FAIL || (unsure && f->result == V_INCONCLUSIVE))
            mark_finding(m, f, (uint32_t)i + 1);
    }
}

void found_incidents(struct marks *m, const struct explainer *x, uint32_t conn)
{
    for (size_t i = 0; i < explain_n(x); i++) {
        const struct incident *s = explain_at(x, i);
        uint32_t number = (uint32_t)i + 1;
        for (unsigned n = 0; n < EXPLAINED_MAX && explain_at(x, number - 1)->superseded_by; n++)
            number = explain_at(x, number - 1)->superseded_by;
        for (unsigned k = 0; k < s->n_frames && (!conn || s->conn == conn); k++)
            marks_add(m, &(struct pkt_mark){.frame = s->frames[k],
                                            .file = s->files[k],
                                            .cause = cause_table[explain_at(x, number - 1)->cause].name,
                                            .number = number});
    }
}

bool found_readable_twice(const char *what, const char *const *files, size_t n)
{
    struct stat st;

    for (size_t i = 0; i < n; i++)
        if (strcmp(files[i], "-") == 0 || (stat(files[i], &st) == 0 && !S_ISREG(st.st_mode)))
            return !cli_error("%s: the capture is read twice, so it must be a file: %s is none", what,
                              strcmp(files[i], "-") == 0 ? "standard input" : files[i]);
    return true;
}

/* --- The first pass --------------------------------------------------------------------------- */

struct pass {
    struct trace t; /* first */
    const struct found_opts *o;
    struct marks *marks;
    struct judge *judge;
    struct explainer *explainer;
};

static int start(struct trace *t)
{
    struct pass *s = (struct pass *)t;
    const struct judge_opts judge = {.ack_timeout = -1, .retry_cnt = -1, .memory = t->memory};

    if (s->o->findings && !(s->judge = judge_new(&judge)))
        return cli_error("out of memory");
    if (s->judge) {
        t->judging = s->judge;
        found_listen(s->marks, judge_findings(s->judge));
    }
    if (s->o->incidents && !(s->explainer = explain_new(t->observer)))
        return cli_error("out of memory");
    return EXIT_OK;
}

static void judge(struct trace *t, const struct pkt *p)
{
    struct pass *s = (struct pass *)t;

    if (s->judge)
        judge_packet(s->judge, p);
}

static void drops(struct trace *t, uint16_t file, uint64_t n)
{
    struct pass *s = (struct pass *)t;

    if (s->judge)
        judge_drops(s->judge, file, n);
    if (s->explainer)
        explain_drops(s->explainer, file, n);
}

static int end(struct trace *t)
{
    struct pass *s = (struct pass *)t;

    if (s->judge) {
        judge_end(s->judge);
        found_findings(s->marks, judge_findings(s->judge), false);
    }
    if (s->explainer) {
        explain_end(s->explainer);
        found_incidents(s->marks, s->explainer, 0);
    }
    return EXIT_OK;
}

static void stop(struct trace *t)
{
    struct pass *s = (struct pass *)t;

    judge_free(s->judge);
    explain_free(s->explainer);
}

int found_first_pass(const struct found_opts *o, struct marks *m)
{
    static const struct trace_cmd cmd = {.name = "decode",
                                         .size = sizeof(struct pass),
                                         .start = start,
                                         .judge = judge,
                                         .drops = drops,
                                         .end = end,
                                         .stop = stop};
    struct pass *s;
    int status;

    if (!found_readable_twice(o->what, o->files, o->n_files))
        return EXIT_BAD;
    s = (struct pass *)trace_new(&cmd);
    if (!s)
        return cli_error("out of memory");
    s->o = o;
    s->marks = m;
    s->t.cores = o->cores;
    status = trace_first_pass(&cmd, &s->t, o->files, o->n_files, &o->decode);
    free(s);
    marks_sort(m);
    if (status == EXIT_OK && m->left_out)
        cli_error("%s: %llu marks of frames were left out, more than %u are not kept", o->what,
                  (unsigned long long)m->left_out, MARKS_MAX);
    return status;
}

int found_for_fields(const char **files, size_t n, const struct decode_opts *decode, unsigned cores, struct marks *m)
{
    const struct found_opts o = {.what = "rdma.finding, rdma.incident and rdma.cause",
                                 .files = files,
                                 .n_files = n,
                                 .decode = *decode,
                                 .cores = cores,
                                 .findings = true,
                                 .incidents = true};

    return files ? found_first_pass(&o, m) : cli_error("%s: not in a live capture, which cannot be read twice", o.what);
}
