/* layer 3b (analyses): judge, explainer and meter together. */
#include "src/analyses/analyses.h"

#include "src/commands/waits.h"

static bool begin_judge(struct analyses *a, const struct analyses_opts *opts)
{
    struct judge_opts o = {.ack_timeout = -1, .retry_cnt = -1, .memory = opts->memory, .no_icrc = opts->no_icrc};

    o.n_hosts = opts->n_hosts;
    for (unsigned i = 0; i < opts->n_hosts; i++)
        o.hosts[i] = opts->hosts[i];
    if (!(a->judge = judge_new(&o)))
        return false;
    conn_learn_all(judge_conns(a->judge), opts->pairs, opts->n_pairs);
    return true;
}

static void on_command(void *user, const struct ulp_command *c)
{
    const struct analyses *a = user;
    const struct command_row q = {.c = c,
                                  .row = c->stream ? meter_row_of_stream(a->meter, c->conn, c->stream == 1)
                                                   : meter_row_of(a->meter, c->flow),
                                  .origin = a->first};

    meter_command(a->meter, c);
    a->command(a->user, &q);
}

static void on_timed(void *user, struct ulp_command *c)
{
    const struct analyses *a = user;

    waits_timed(a->timeline, c);
}

/* Before the meter: when a connection ends, its commands do while the meter still has its row. */
static bool begin_commands(struct analyses *a, struct observer *o, const struct analyses_opts *opts)
{
    const struct ulp_opts u = {.user = a, .over = on_command, .timed = on_timed};

    a->command = opts->command;
    a->user = opts->user;
    return !a->command || (a->ulp = ulp_new(o, &u, false));
}

bool analyses_begin(struct analyses *a, struct observer *o, const struct analyses_opts *opts)
{
    struct timeline *timeline = timeline_of(o);

    *a = (struct analyses){.timeline = timeline};
    if (!timeline || !begin_judge(a, opts) || !begin_commands(a, o, opts))
        return false;
    a->explainer = explain_new(o);
    a->meter = meter_new(o, &opts->meter);
    a->parts = request_parts_new(timeline);
    return a->explainer && a->meter && a->parts && (opts->n_files < 2 || explain_align(a->explainer));
}

void analyses_packet(struct analyses *a, const struct pkt *p)
{
    if (UNLIKELY(!a->begun)) {
        a->begun = true;
        a->first = p->frame->ts;
    }
    judge_packet(a->judge, p);
}

void analyses_drops(struct analyses *a, uint16_t file, uint64_t n)
{
    judge_drops(a->judge, file, n);
    explain_drops(a->explainer, file, n);
}

void analyses_end(struct analyses *a)
{
    if (a->ulp)
        ulp_finish(a->ulp);
    judge_end(a->judge);
    explain_end(a->explainer);
    meter_end(a->meter);
}

void analyses_free(struct analyses *a)
{
    ulp_free(a->ulp);
    request_parts_free(a->parts);
    meter_free(a->meter);
    explain_free(a->explainer);
    judge_free(a->judge);
    *a = (struct analyses){.judge = NULL};
}
