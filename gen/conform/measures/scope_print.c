/* layer 3 (conform): the scope of a device's CNPs, named by the model that accounts for their number. */
#include "gen/conform/measures/metrics.h"

#include <string.h>

#define MODELS 3

/* The first one that is right counts: a CNP for each mark is right for all of them if each mark gets one. */
static const struct {
    const char *metric, *name, *says;
} models[MODELS] = {
    {"cnp_off_packet", "packet", "a CNP for each marked packet, without an interval"},
    {"cnp_off_shared", "shared",
     "queue pairs share an interval, of the address or the port: cnp_addresses tells, with a second address of the "
     "tester"},
    {"cnp_off_qp", "queue_pair", "each queue pair has an interval of its own"},
};

/* The number of the model; MODELS: none is right; -1: nothing was measured. */
static int fit(const struct metrics *m, uint64_t seed)
{
    bool any = false;

    for (int i = 0; i < MODELS; i++)
        for (unsigned k = 0; k < m->n; k++) {
            struct metric_summary s;
            if (strcmp(m->metric[k].name, models[i].metric) != 0)
                continue;
            metric_summarise(&m->metric[k], seed, &s);
            any |= s.n > 0;
            if (s.n && s.median == 0)
                return i;
        }
    return any ? MODELS : -1;
}

const char *metrics_cnp_scope(const struct metrics *m, uint64_t seed)
{
    int i = fit(m, seed);

    return i < 0 ? NULL : i < MODELS ? models[i].name : "none";
}

void metrics_cnp_scope_text(const struct metrics *m, uint64_t seed, struct buf *b)
{
    int i = fit(m, seed);

    if (i >= 0)
        buf_printf(b, "scope of CNPs: %s\n",
                   i < MODELS ? models[i].says : "no model accounts for their number, see cnp_off_packet and so on");
}

void metrics_cnp_scope_json(const struct metrics *m, uint64_t seed, struct buf *b)
{
    const char *name = metrics_cnp_scope(m, seed);

    if (name)
        buf_printf(b, ",\"cnp_scope\":\"%s\"", name);
}
