/* layer 3 (agent): a client's agent: it takes requests line by line, finds their commands, and answers. */
#include "gen/agent/agent.h"
#include "clock.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

ns_t agent_clock(void)
{
    return clock_ns(CLOCK_MONOTONIC_RAW);
}

ns_t agent_now(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

ns_t agent_time(const struct agent *a)
{
    return a->driver.now ? a->driver.now(a->driver.user) : agent_clock();
}

/* The time of limits. */
static ns_t limit_time(const struct agent *a)
{
    return a->driver.now ? a->driver.now(a->driver.user) : agent_now();
}

void agent_begin(struct agent *a, struct rnic *r, const struct agent_limits *limits, const struct agent_driver *driver)
{
    *a = (struct agent){.rnic = r, .limits = *limits, .driver = *driver};
    a->objects.limits = &a->limits;
    prng_seed(&a->random, (uint64_t)agent_clock());
}

void agent_end(struct agent *a)
{
    objects_end(&a->objects, a->rnic);
    buf_free(&a->out);
    buf_free(&a->reply);
    buf_free(&a->counters);
    buf_free(&a->batch.lines);
}

/* --- Answers ---------------------------------------------------------------------------------- */

static void answer(struct agent *a, const char *id, int e, const char *why)
{
    const char *name = e < 0 ? strerrorname_np(-e) : NULL;

    if (e == 0) {
        buf_printf(&a->out, "%s ok", id);
        buf_mem(&a->out, a->reply.p, a->reply.len);
        if (a->n_bulk)
            buf_printf(&a->out, " data=%zu", a->n_bulk);
        buf_char(&a->out, '\n');
        buf_mem(&a->out, a->bulk, a->n_bulk);
        return;
    }
    buf_printf(&a->out, "%s err %s %s", id, name ? name : "EIO", why && *why ? why : strerror(-e));
    if (a->reply.len) { /* what was done before it failed */
        buf_puts(&a->out, ";");
        buf_mem(&a->out, a->reply.p, a->reply.len);
    }
    buf_char(&a->out, '\n');
}

static int run(struct agent *a, const struct agent_command *c, struct request *r)
{
    if (!agent_command_args(c, r))
        return -EINVAL;
    if ((c->flags & AGENT_DEVICE) && !a->open)
        return request_wrong(r, "no device is open: `dev open`"), -ENODEV;
    return c->run(a, r);
}

int agent_do(struct agent *a, const char *line)
{
    size_t kept = a->reply.len;
    struct request r;
    const struct agent_command *c = request_parse(&r, line, strlen(line)) ? agent_command_find(&r) : NULL;
    int e = c ? run(a, c, &r) : -ENOSYS;

    a->reply.len = kept;
    a->n_bulk = 0;
    return e;
}

/* --- Batches ---------------------------------------------------------------------------------- */

/* Post what the batch has, so that nothing else is done between the posts. */
static void batch_run(struct agent *a)
{
    const char *line = a->batch.lines.p, *end = line + a->batch.lines.len;
    struct request *r = malloc(sizeof *r);
    unsigned n = 0;
    int e = r ? 0 : -ENOMEM;

    a->reply.len = 0;
    a->n_bulk = 0;
    for (; e == 0 && line < end; line += strlen(line) + 1) {
        const struct agent_command *c = request_parse(r, line, strlen(line)) ? agent_command_find(r) : NULL;
        if (c && (c->flags & AGENT_POST)) {
            size_t kept = a->reply.len;
            e = run(a, c, r);
            a->reply.len = kept;
        } else {
            if (!r->why[0])
                request_wrong(r, "a batch has posts only");
            e = -EINVAL;
        }
        n += e == 0;
    }
    a->reply.len = 0;
    buf_printf(&a->reply, " posted=%u t=%lld", n, (long long)agent_time(a));
    answer(a, a->batch.id, e, r ? r->why : NULL);
    free(r);
    a->batch.lines.len = 0;
}

static void batch_line(struct agent *a, const char *line, size_t len)
{
    if (a->batch.lines.len + len + 1 <= LINE_DATA) {
        buf_mem(&a->batch.lines, line, len);
        buf_char(&a->batch.lines, '\0');
    } else if (a->batch.lines.len <= LINE_DATA) { /* too much of it: a line that fails */
        a->batch.lines.len = 0;
        buf_mem(&a->batch.lines, "0 too-long", sizeof "0 too-long");
    }
    if (--a->batch.left == 0)
        batch_run(a);
}

static int cmd_batch(struct agent *a, struct request *r)
{
    uint32_t n = 0;

    if (!request_u32(r, "n", 1, AGENT_BATCH, &n))
        return -EINVAL;
    a->batch.left = n;
    strcpy(a->batch.id, r->id);
    return -EINPROGRESS; /* answered with its last line */
}

void agent_line(struct agent *a, const char *line, size_t len, const uint8_t *data, size_t n_data)
{
    struct request r;
    const struct agent_command *c;
    int e;

    if (a->batch.left) {
        batch_line(a, line, len);
        return;
    }
    a->reply.len = 0;
    a->n_bulk = 0;
    if (!request_parse(&r, line, len)) {
        answer(a, r.id, -EINVAL, r.why);
        return;
    }
    r.data = data;
    r.data_len = n_data;
    c = agent_command_find(&r);
    if (!c)
        request_wrong(&r, "unknown verb: `help` lists them");
    e = c ? run(a, c, &r) : -ENOSYS;
    if (e != -EINPROGRESS)
        answer(a, r.id, e, r.why);
}

/* --- Waiting ---------------------------------------------------------------------------------- */

int agent_wait(struct agent *a, uint64_t ms, bool (*done)(struct agent *a, void *arg), void *arg)
{
    ns_t begin = limit_time(a), end = begin + (ns_t)ms * NS_PER_MS, now;
    ns_t spin =
        a->driver.now ? 0 : 2 * NS_PER_MS; /* without a pause, so that stamps of completions are near the truth */

    for (;;) {
        agent_events(a);
        if (done(a, arg))
            return 0;
        now = limit_time(a);
        if (now >= end)
            return -ETIMEDOUT;
        if (now >= begin + spin && !a->driver.pause(a->driver.user, a, now + 50 * NS_PER_US))
            return -ECANCELED;
    }
}

/* --- Objects ---------------------------------------------------------------------------------- */

bool agent_object(struct agent *a, struct request *r, const char *key, enum object_kind kind, struct object **o)
{
    const struct token *t = request_arg(r, key);

    *o = t ? object_find(&a->objects, kind, t->p, t->len) : NULL;
    if (t && !*o)
        return request_wrong(r, "%s=%.*s: there is no such %s", key, (int)(t->len < 40 ? t->len : 40), t->p,
                             object_kind_str(kind));
    return true;
}

static void say_object(struct agent *a, const struct object *o)
{
    buf_printf(&a->reply, " %s=%s%u", object_kind_str(o->kind), object_kind_str(o->kind), o->number);
}

int agent_made(struct agent *a, struct object *o, int e)
{
    if (e < 0)
        object_free(&a->objects, o);
    else
        say_object(a, o);
    return e;
}

static struct object *any_object(struct agent *a, const struct token *t)
{
    struct object *o = NULL;

    for (enum object_kind k = 0; !o && k < OBJECT_KINDS; k++)
        o = object_find(&a->objects, k, t->p, t->len);
    return o;
}

static int cmd_destroy(struct agent *a, struct request *r)
{
    struct object *o = any_object(a, request_arg(r, "object"));

    if (!o)
        return request_wrong(r, "there is no such object"), -EINVAL;
    return object_destroy(&a->objects, a->rnic, o);
}

static int cmd_objects(struct agent *a, struct request *r)
{
    (void)r;
    for (enum object_kind k = 0; k < OBJECT_KINDS; k++)
        for (struct object *o = object_next(&a->objects, k, NULL); o; o = object_next(&a->objects, k, o))
            say_object(a, o);
    buf_printf(&a->reply, " n=%u bytes=%llu", a->objects.total, (unsigned long long)a->objects.mem);
    return 0;
}

/* --- The session ------------------------------------------------------------------------------ */

static int cmd_clock(struct agent *a, struct request *r)
{
    uint64_t ticks = 0;
    int (*clock)(struct rnic *, uint64_t *) = a->open ? a->rnic->ops->device_clock : NULL;

    (void)r;
    buf_printf(&a->reply, " t=%lld", (long long)agent_time(a));
    if (clock && clock(a->rnic, &ticks) == 0)
        buf_printf(&a->reply, " stamp=%llu until=%lld", (unsigned long long)ticks, (long long)agent_time(a));
    return 0;
}

/* One line for each command. */
static int cmd_help(struct agent *a, struct request *r)
{
    unsigned n = 0;

    (void)r;
    for (unsigned i = 0; agent_commands(i); i++)
        for (const struct agent_command *c = agent_commands(i); c->name; c++, n++)
            buf_printf(&a->out, "! help %s%s%s: %s\n", c->name, *c->args ? " " : "", c->args, c->help);
    buf_printf(&a->reply, " n=%u", n);
    return 0;
}

static int cmd_quit(struct agent *a, struct request *r)
{
    (void)r;
    a->ended = true;
    return 0;
}

const struct agent_command agent_session[] = {
    {"help", "", "list the commands", cmd_help, 0},
    {"clock", "", "the agent's time, and that of the stamps of completions", cmd_clock, 0},
    {"batch", "n=LINES", "post what the next lines say, and answer once", cmd_batch, 0},
    {"objects", "", "list the client's objects", cmd_objects, 0},
    {"destroy", "object=NAME", "destroy an object", cmd_destroy, 0},
    {"quit", "", "end; all objects are destroyed", cmd_quit, 0},
    {NULL, NULL, NULL, NULL, 0},
};
