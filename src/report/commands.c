/* layer 3b (report): the slowest commands of upper protocols. */
#include "src/report/report_impl.h"

#include <stdlib.h>

/* How long it took; without a response it is the slowest of all. */
static ns_t latency_of(const struct ulp_command *c)
{
    return c->response && !c->headless ? c->end - c->start : NS_NEVER;
}

/* The place for one more: a free one, or that of the fastest. */
static unsigned fastest(const struct report *r)
{
    unsigned at = 0;

    if (r->commands_kept < REPORT_INCIDENTS)
        return r->commands_kept;
    for (unsigned i = 1; i < REPORT_INCIDENTS; i++)
        if (r->commands[i].latency < r->commands[at].latency)
            at = i;
    return at;
}

void report_command(struct report *r, const struct command_row *q)
{
    struct cell_row to = {.b = NULL};
    struct slow_command *s;
    unsigned at;

    r->n_commands++;
    if (r->commands_kept == REPORT_INCIDENTS && latency_of(q->c) <= r->least_latency)
        return;
    at = fastest(r);
    s = &r->commands[at];
    r->commands_kept += at == r->commands_kept;
    s->latency = latency_of(q->c);
    s->number = q->c->number;
    s->json.len = 0;
    to.b = &s->json;
    command_cells(q, cell_row_json, &to);
    buf_char(&s->json, '}');
    r->least_latency = r->commands[fastest(r) % REPORT_INCIDENTS].latency;
}

static int by_number(const void *a, const void *b)
{
    const struct slow_command *x = a, *y = b;

    return x->number < y->number ? -1 : x->number > y->number;
}

void commands_json(struct report *r, struct buf *b)
{
    if (r->commands_kept)
        qsort(r->commands, r->commands_kept, sizeof *r->commands, by_number);
    buf_printf(b, ",\n\"command_count\":%llu,\"commands\":[", (unsigned long long)r->n_commands);
    for (unsigned i = 0; i < r->commands_kept; i++) {
        buf_puts(b, i ? ",\n" : "\n");
        buf_mem(b, r->commands[i].json.p, r->commands[i].json.len);
        r->failed |= r->commands[i].json.err;
    }
    buf_char(b, ']');
}

void commands_free(struct report *r)
{
    for (unsigned i = 0; i < r->commands_kept; i++)
        buf_free(&r->commands[i].json);
}
