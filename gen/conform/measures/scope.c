/* layer 3 (conform): the scope of a device's CNPs by a fit. */
#include "gen/conform/measures/scope.h"

#define CNPS_MIN 3 /* with fewer of them every model is right */

void scope_add(struct scope *s, ns_t t, uint32_t qpn, bool cnp)
{
    if (s->n < SCOPE_EVENTS)
        s->event[s->n++] = (struct scope_event){.t = t, .qpn = qpn, .cnp = cnp};
}

/* The latest event of this kind before event `i`, which the model has for the same interval; NULL: none. */
static const struct scope_event *before(const struct scope *s, unsigned i, enum scope_model model)
{
    const struct scope_event *e = &s->event[i];

    while (i--)
        if (s->event[i].cnp == e->cnp && (model != SCOPE_QP || s->event[i].qpn == e->qpn))
            return &s->event[i];
    return NULL;
}

/* The shortest time between two CNPs; NS_NEVER: there are no two. */
static ns_t interval(const struct scope *s, enum scope_model model)
{
    ns_t least = NS_NEVER;

    for (unsigned i = 0; i < s->n; i++) {
        const struct scope_event *last = s->event[i].cnp ? before(s, i, model) : NULL;
        if (last && s->event[i].t - last->t < least)
            least = s->event[i].t - last->t;
    }
    return least;
}

/* How many CNPs the marks to one queue pair, or to all, would get. */
static int64_t expected(const struct scope *s, bool all, uint32_t qpn, ns_t least)
{
    const struct scope_event *last = NULL;
    int64_t n = 0;

    for (unsigned i = 0; i < s->n; i++) {
        const struct scope_event *e = &s->event[i];
        if (e->cnp || (!all && e->qpn != qpn) || (last && e->t - last->t < least))
            continue;
        last = e;
        n++;
    }
    return n;
}

int64_t scope_off(const struct scope *s, enum scope_model model)
{
    ns_t least = model == SCOPE_PACKET ? 0 : interval(s, model);
    int64_t cnps = 0, by_qp = 0;
    unsigned qps = 0;

    for (unsigned i = 0; i < s->n; i++) {
        const struct scope_event *e = &s->event[i];
        cnps += e->cnp;
        if (e->cnp || before(s, i, SCOPE_QP))
            continue;
        qps++;
        by_qp += expected(s, false, e->qpn, least);
    }
    if (qps < 2 || cnps < CNPS_MIN)
        return -1;
    int64_t n = model == SCOPE_QP ? by_qp : expected(s, true, 0, least);
    return n > cnps ? n - cnps : cnps - n;
}
