/* layer 4 (tool): settings and results of storage protocols, live and in the simulation. */
#include "gen/cli/storage_cli.h"

#include "gen/cli/gen_cli.h"

struct storage_config storage_defaults(void)
{
    return (struct storage_config){.iters = 100,
                                   .size = 65536,
                                   .depth = 16,
                                   .queues = 1,
                                   .queue_size = 128,
                                   .room = STORAGE_ROOM,
                                   .timeout = 10 * NS_PER_S,
                                   .seed = 1,
                                   .nqn = STORAGE_NQN,
                                   .hostnqn = STORAGE_HOSTNQN,
                                   .file = "data",
                                   .targetname = STORAGE_TARGET};
}

int storage_settle(const char *what, const struct storage_kind *kind, struct storage_config *c)
{
    if (c->size == 0 || c->size > STORAGE_SIZE_MAX || c->size % kind->block)
        return cli_error("%s: blocks of %u bytes: expected a multiple of %u, up to 1M", what, c->size, kind->block);
    if (c->depth >= STORAGE_DEPTH_MAX)
        return cli_error("%s: -t %u: at most %u commands outstanding", what, c->depth, STORAGE_DEPTH_MAX - 1);
    if (kind->queues && c->depth >= c->queue_size)
        return cli_error("%s: -t %u: a queue of %u entries has at most %u commands outstanding", what, c->depth,
                         c->queue_size, c->queue_size - 1);
    if (c->room < c->size)
        return cli_error("%s: --room: less than a block of %u bytes", what, c->size);
    return 0;
}

static double ms(ns_t t)
{
    return (double)t / 1e6;
}

void storage_text(struct buf *b, const struct storage *s)
{
    const struct storage_result *r = &s->r;
    uint64_t n = r->reads + r->writes;
    double seconds = (double)(r->end - r->start) / 1e9;

    buf_printf(b, "%s %s: ", s->kind->name, s->c.server ? "server" : "client");
    buf_printf(b, "%s of %s, ", count_str(r->writes, "write"), count_str(r->written, "byte"));
    buf_printf(b, "%s of %s, ", count_str(r->reads, "read"), count_str(r->read, "byte"));
    buf_printf(b, "%s, %llu failed\n", count_str(r->commands, "other command"), (unsigned long long)r->failed);
    if (s->c.server || n == 0)
        return;
    buf_printf(b, "%llu compared, %llu differed; latency min/avg/max = %.3f/%.3f/%.3f ms; %.2f MB/sec\n",
               (unsigned long long)r->compared, (unsigned long long)r->differed, ms(r->min),
               ms((ns_t)(r->sum / (unsigned __int128)n)), ms(r->max),
               seconds > 0 ? (double)(r->written + r->read) / (1 << 20) / seconds : 0.0);
}

int storage_status(const struct storage *s)
{
    bool done = s->c.server ? s->r.sessions > 0 : work_over(s);

    return done && !s->failed && !s->r.differed && (s->c.server || !s->r.failed) ? EXIT_OK : EXIT_FOUND;
}
