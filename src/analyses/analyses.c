/* layer 3b (analyses): judge, explainer and meter together. */
#include "src/analyses/analyses.h"

#include "src/account/timeline.h"

static bool begin_judge(struct analyses *a, const struct analyses_opts *opts)
{
    const struct judge_opts o = {.ack_timeout = -1, .retry_cnt = -1, .memory = opts->memory, .no_icrc = opts->no_icrc};

    if (!(a->judge = judge_new(&o)))
        return false;
    conn_learn_all(judge_conns(a->judge), opts->pairs, opts->n_pairs);
    return true;
}

bool analyses_begin(struct analyses *a, struct observer *o, const struct analyses_opts *opts)
{
    struct timeline *timeline = timeline_of(o);

    *a = (struct analyses){.judge = NULL};
    if (!timeline || !begin_judge(a, opts))
        return false;
    a->explainer = explain_new(o);
    a->meter = meter_new(o, &opts->meter);
    a->parts = request_parts_new(timeline);
    return a->explainer && a->meter && a->parts && (opts->n_files < 2 || explain_align(a->explainer));
}

void analyses_packet(struct analyses *a, const struct pkt *p)
{
    judge_packet(a->judge, p);
}

void analyses_drops(struct analyses *a, uint16_t file, uint64_t n)
{
    judge_drops(a->judge, file, n);
}

void analyses_end(struct analyses *a)
{
    judge_end(a->judge);
    explain_end(a->explainer);
    meter_end(a->meter);
}

void analyses_free(struct analyses *a)
{
    request_parts_free(a->parts);
    meter_free(a->meter);
    explain_free(a->explainer);
    judge_free(a->judge);
    *a = (struct analyses){.judge = NULL};
}
