/* layer 5 (test): the figures that the model has measured. */
#include "tests/experiments/model_impl.h"

#include <math.h>

static double seconds(const struct model *m)
{
    return (double)(m->now - m->from) / (double)NS_PER_S;
}

double model_rate(const struct model *m, unsigned flow)
{
    return (double)m->c->flow[flow].bytes * 8 / seconds(m);
}

double model_queue_mean(const struct model *m, unsigned queue)
{
    return m->c->queue[queue].area / (double)(m->now - m->from);
}

double model_queue_deviation(const struct model *m, unsigned queue)
{
    double mean = model_queue_mean(m, queue);

    return sqrt(fmax(m->c->queue[queue].square / (double)(m->now - m->from) - mean * mean, 0));
}

double model_use(const struct model *m, unsigned queue)
{
    return (double)m->c->queue[queue].left_bytes * 8 / seconds(m) / (double)m->c->queue[queue].link;
}

double model_marked(const struct model *m, unsigned queue)
{
    const struct model_queue *q = &m->c->queue[queue];

    return q->left ? (double)q->marks / (double)q->left : 0;
}

double model_jain(const struct model *m)
{
    double sum = 0, squares = 0;

    for (unsigned i = 0; i < m->c->n_flow; i++) {
        double r = model_rate(m, i);
        sum += r;
        squares += r * r;
    }
    return squares > 0 ? sum * sum / ((double)m->c->n_flow * squares) : 0;
}

uint64_t model_pauses(const struct model *m)
{
    return m->pauses;
}
