/* layer 3 (workload): execution traces of Chakra, as its jsonizer writes them: a file for each rank, with an object for
 * the trace and one for each node. A node is computation, a send, a receive, or a collective of all ranks; it begins
 * when those that it depends on are over. */
#include "gen/workload/schedule.h"
#include "gen/workload/workload_impl.h"
#include "grow.h"

#include <jansson.h>
#include <stdlib.h>

#define COLL_TAG (1u << 31) /* tags from here on are those of collectives: their number on each rank */
#define MICROS   1000       /* ns */

/* Node types and kinds of collectives, by their numbers in et_def.proto. */
enum { COMM_SEND = 5, COMM_RECV, COMM_COLL };
enum { ALL_REDUCE, REDUCE, ALL_GATHER, GATHER, SCATTER, BROADCAST, ALL_TO_ALL, REDUCE_SCATTER, RS_BLOCK, BARRIER };

struct node {
    uint64_t id;
    uint32_t first, last; /* its tasks: that which begins it, and that with which it is over */
};
struct dep {
    uint64_t id; /* of the node that must be over */
    uint32_t task;
};

struct chakra {
    struct workload *w;
    struct schedule *s;
    unsigned rank, ranks;
    struct node *node; /* of the rank */
    struct dep *dep;
    uint32_t n_nodes, n_deps, colls;
    char group[64]; /* pg_name of the collectives; "": none was seen */
};

/* What a node says. */
struct said {
    uint64_t id, type, micros, size, tag, src, dst, kind;
    const char *group;
};

/* --- JSON ------------------------------------------------------------------------------------- */

/* A number, or, as protobuf writes those of 64 bits, a string. */
static bool number_of(const json_t *v, uint64_t *n)
{
    struct token t;

    if (json_is_integer(v) && json_integer_value(v) >= 0)
        *n = (uint64_t)json_integer_value(v);
    else if (json_is_boolean(v))
        *n = json_is_true(v);
    else if (json_is_string(v) && (t = token_of(json_string_value(v))).len)
        return token_u64(&t, n);
    else
        return false;
    return true;
}

/* The member by its name in JSON, or by that in the schema. */
static const json_t *member(const json_t *o, const char *name, const char *schema)
{
    const json_t *v = json_object_get(o, name);

    return v ? v : json_object_get(o, schema);
}

/* The number of a name, or a number; 0: neither, as what is 0 is left out. */
static uint64_t type_of(const json_t *v)
{
    static const char *const names[] = {
        [COMM_SEND] = "COMM_SEND_NODE", [COMM_RECV] = "COMM_RECV_NODE", [COMM_COLL] = "COMM_COLL_NODE"};
    uint64_t n = 0;

    for (unsigned i = COMM_SEND; json_is_string(v) && i < ARRAY_LEN(names); i++)
        if (strcmp(json_string_value(v), names[i]) == 0)
            return i;
    return number_of(v, &n) ? n : 0;
}

/* An attribute that matters: {"name": ..., "int64Val": ...}. False: it has no such value. */
static bool attribute(struct said *s, const json_t *a)
{
    const char *name = json_string_value(json_object_get(a, "name")), *key;
    const struct {
        const char *name;
        uint64_t *to;
    } numbers[] = {{"comm_size", &s->size},
                   {"comm_tag", &s->tag},
                   {"comm_src", &s->src},
                   {"comm_dst", &s->dst},
                   {"comm_type", &s->kind}};
    json_t *v;

    for (unsigned i = 0; name && i < ARRAY_LEN(numbers); i++)
        if (strcmp(name, numbers[i].name) == 0) {
            json_object_foreach((json_t *)a, key,
                                v) if (strcmp(key, "name") != 0 && number_of(v, numbers[i].to)) return true;
            return json_object_size(a) == 1; /* a value of 0 is left out */
        }
    if (name && strcmp(name, "pg_name") == 0)
        s->group = json_string_value(member(a, "stringVal", "string_val"));
    return true;
}

static bool read_node(const json_t *o, struct said *s, struct text_error *e)
{
    const json_t *id = json_object_get(o, "id"), *micros = member(o, "durationMicros", "duration_micros");
    const json_t *attrs = json_object_get(o, "attr");

    *s = (struct said){.type = type_of(json_object_get(o, "type"))};
    if ((id && !number_of(id, &s->id)) || (micros && !number_of(micros, &s->micros)))
        return text_fail(e, NULL, "expected numbers for id and durationMicros");
    for (size_t i = 0; i < json_array_size(attrs); i++)
        if (!attribute(s, json_array_get(attrs, i)))
            return text_fail(e, NULL, "node %llu: expected a number for an attribute of its communication",
                             (unsigned long long)s->id);
    if (s->micros > (uint64_t)TOPO_TIME_MAX / MICROS || s->size > WORKLOAD_BYTES || s->tag >= COLL_TAG)
        return text_fail(e, NULL, "node %llu: expected at most 1000000 s, 1G and a tag below 2^31",
                         (unsigned long long)s->id);
    return true;
}

/* --- Tasks ------------------------------------------------------------------------------------ */

static bool no_memory(struct text_error *e)
{
    return text_fail(e, NULL, "out of memory");
}

static uint32_t add(struct chakra *c, enum task_kind kind, unsigned peer, uint64_t bytes, uint32_t tag, ns_t time)
{
    const struct task t = {
        .kind = kind, .rank = (uint16_t)c->rank, .peer = (uint16_t)peer, .bytes = bytes, .tag = tag, .time = time};

    return schedule_add(c->s, &t);
}

/* A step of a collective: whom this rank sends to, from whom it receives; -1: nobody. */
struct step {
    int to, from;
    uint64_t bytes;
};

static bool ring_step(const struct chakra *c, unsigned i, unsigned steps, uint64_t bytes, struct step *s)
{
    *s = (struct step){(int)((c->rank + 1) % c->ranks), (int)((c->rank + c->ranks - 1) % c->ranks), bytes};
    return i < steps;
}

/* A step of a gather or scatter, between ranks that are `far` apart: the farther one has the blocks of so many ranks.
 */
static struct step tree_step(const struct chakra *c, unsigned far, bool gather, uint64_t block)
{
    unsigned r = c->rank, leaf = r % (2 * far) == far ? r : r % (2 * far) == 0 && r + far < c->ranks ? r + far : 0;
    unsigned blocks = far < c->ranks - leaf ? far : c->ranks - leaf;
    int peer = !leaf ? -1 : leaf == r ? (int)(r - far) : (int)leaf;
    bool sends = (leaf == r) == gather;

    return (struct step){sends ? peer : -1, sends ? -1 : peer, blocks * block};
}

/* Step `i` of a collective over `size` bytes; false: there are fewer. */
static bool step_of(const struct chakra *c, uint64_t kind, uint64_t size, unsigned i, struct step *s)
{
    unsigned n = c->ranks, r = c->rank, far = i < 31 ? 1u << i : n, tree = coll_log2(n);
    uint64_t block = (size + n - 1) / n;

    switch (kind) {
    case ALL_REDUCE:
        return ring_step(c, i, 2 * (n - 1), block, s);
    case ALL_GATHER:
    case REDUCE_SCATTER:
    case RS_BLOCK:
        return ring_step(c, i, n - 1, block, s);
    case ALL_TO_ALL:
        *s = (struct step){(int)((r + i + 1) % n), (int)((r + n - (i + 1) % n) % n), block};
        return i < n - 1;
    case BROADCAST: /* a binomial tree from rank 0 */
        *s = (struct step){r < far && r + far < n ? (int)(r + far) : -1, r >= far && r < 2 * far ? (int)(r - far) : -1,
                           size};
        return far < n;
    case REDUCE: /* the same tree, to rank 0 */
        far = i < tree ? 1u << (tree - 1 - i) : n;
        *s = (struct step){r >= far && r < 2 * far ? (int)(r - far) : -1, r < far && r + far < n ? (int)(r + far) : -1,
                           size};
        return i < tree;
    case GATHER: /* a tree to rank 0: each sends the blocks of all that it has */
    case SCATTER:
        far = i >= tree ? n : kind == GATHER ? 1u << i : 1u << (tree - 1 - i);
        *s = tree_step(c, far, kind == GATHER, block);
        return i < tree;
    default: /* BARRIER, by dissemination */
        *s = (struct step){(int)((r + far) % n), (int)((r + n - far % n) % n), 0};
        return far < n;
    }
}

/* A collective: each step waits for what the one before brings; it is over when all is sent and received. */
static bool add_collective(struct chakra *c, const struct said *s, struct node *n, struct text_error *e)
{
    uint32_t tag = COLL_TAG + c->colls++, before, t;
    struct step step;

    if (s->kind > BARRIER)
        return text_fail(e, NULL, "node %llu: collective %llu is not played", (unsigned long long)s->id,
                         (unsigned long long)s->kind);
    if (s->group && c->group[0] && strcmp(s->group, c->group) != 0)
        return text_fail(e, NULL, "node %llu: collectives of several groups are not played", (unsigned long long)s->id);
    if (s->group)
        snprintf(c->group, sizeof c->group, "%s", s->group);
    n->first = before = add(c, TASK_CALC, 0, 0, 0, 0);
    n->last = add(c, TASK_CALC, 0, 0, 0, 0);
    if (n->first == WORKLOAD_NONE || n->last == WORKLOAD_NONE || !schedule_after(c->s, n->last, n->first, false))
        return no_memory(e);
    for (unsigned i = 0; step_of(c, s->kind, s->size, i, &step); i++) {
        uint32_t next = before;
        for (unsigned k = 0; k < 2; k++) {
            int peer = k ? step.from : step.to;
            if (peer < 0)
                continue;
            t = add(c, k ? TASK_RECV : TASK_SEND, (unsigned)peer, step.bytes, tag, 0);
            if (t == WORKLOAD_NONE || !schedule_after(c->s, t, before, false) ||
                !schedule_after(c->s, n->last, t, false))
                return no_memory(e);
            next = t;
        }
        before = next;
    }
    return true;
}

static bool add_message(struct chakra *c, const struct said *s, struct node *n, struct text_error *e)
{
    bool send = s->type == COMM_SEND;
    uint64_t peer = send ? s->dst : s->src;

    if (peer >= c->ranks || peer == c->rank)
        return text_fail(e, NULL, "node %llu: there is no rank %llu to talk to", (unsigned long long)s->id,
                         (unsigned long long)peer);
    n->first = n->last = add(c, send ? TASK_SEND : TASK_RECV, (unsigned)peer, s->size, (uint32_t)s->tag, 0);
    return n->first != WORKLOAD_NONE || no_memory(e);
}

static bool add_deps(struct chakra *c, const json_t *deps, uint32_t task, struct text_error *e)
{
    for (size_t i = 0; i < json_array_size(deps); i++) {
        if (!grow((void **)&c->dep, c->n_deps, sizeof *c->dep))
            return no_memory(e);
        c->dep[c->n_deps].task = task;
        if (!number_of(json_array_get(deps, i), &c->dep[c->n_deps++].id))
            return text_fail(e, NULL, "expected numbers of nodes that another depends on");
    }
    return true;
}

static bool add_node(struct chakra *c, const json_t *o, struct text_error *e)
{
    struct node *n;
    struct said s;

    if (!read_node(o, &s, e))
        return false;
    if (!grow((void **)&c->node, c->n_nodes, sizeof *c->node))
        return no_memory(e);
    n = &c->node[c->n_nodes++];
    n->id = s.id;
    if (s.type == COMM_COLL) {
        if (!add_collective(c, &s, n, e))
            return false;
    } else if (s.type == COMM_SEND || s.type == COMM_RECV) {
        if (!add_message(c, &s, n, e))
            return false;
    } else if ((n->first = n->last = add(c, TASK_CALC, 0, 0, 0, (ns_t)(s.micros * MICROS))) == WORKLOAD_NONE) {
        return no_memory(e);
    }
    return add_deps(c, member(o, "ctrlDeps", "ctrl_deps"), n->first, e) &&
           add_deps(c, member(o, "dataDeps", "data_deps"), n->first, e);
}

/* --- Ranks ------------------------------------------------------------------------------------ */

static int by_id(const void *a, const void *b)
{
    const struct node *n = a, *m = b;

    return n->id < m->id ? -1 : n->id > m->id;
}

/* All nodes of the rank are known: each waits for those that it depends on. */
static bool join(struct chakra *c, struct text_error *e)
{
    if (c->n_nodes)
        qsort(c->node, c->n_nodes, sizeof *c->node, by_id);
    for (uint32_t i = 1; i < c->n_nodes; i++)
        if (c->node[i].id == c->node[i - 1].id)
            return text_fail(e, NULL, "there are two nodes %llu", (unsigned long long)c->node[i].id);
    for (uint32_t i = 0; i < c->n_deps; i++) {
        struct node key = {.id = c->dep[i].id};
        const struct node *n = c->n_nodes ? bsearch(&key, c->node, c->n_nodes, sizeof key, by_id) : NULL;
        if (!n)
            return text_fail(e, NULL, "there is no node %llu, on which another depends", (unsigned long long)key.id);
        if (!schedule_after(c->s, c->dep[i].task, n->last, false))
            return no_memory(e);
    }
    return true;
}

/* The objects of a file, `len` bytes, one behind the other; the first is about the trace. */
static bool read_rank(struct chakra *c, const char *text, size_t len, struct text_error *e)
{
    size_t at = strspn(text, " \t\r\n");
    bool first = true, good = true;

    while (good && at < len) {
        json_error_t error;
        json_t *o = json_loadb(text + at, len - at, JSON_DISABLE_EOF_CHECK, &error);
        if (!o || !json_is_object(o))
            good = text_fail(e, NULL, "expected objects of JSON: %s", o ? "something else" : error.text);
        else if (!first)
            good = add_node(c, o, e);
        first = false;
        at += (size_t)error.position;
        at += strspn(text + at, " \t\r\n");
        json_decref(o);
    }
    return good && join(c, e);
}

bool chakra_tasks(struct workload *w, struct schedule *s, const char *args, struct text_error *e)
{
    struct chakra c = {.w = w, .s = s};
    bool good = true;

    (void)args;
    for (const char *p = w->c.text; *p; p++)
        c.ranks += *p == WORKLOAD_NEXT_FILE;
    if (c.ranks < 2 || c.ranks > w->n)
        return text_fail(e, NULL, "%u ranks: expected 2 or more, but no more than hosts, of which there are %u",
                         c.ranks, w->n);
    for (const char *p = w->c.text, *end; good && c.rank < c.ranks; p = end + 1, c.rank++) {
        struct text_error own;
        end = strchr(p, WORKLOAD_NEXT_FILE);
        c.n_nodes = c.n_deps = c.colls = 0;
        good = read_rank(&c, p, (size_t)(end - p), &own) || text_fail(e, NULL, "rank %u: %.200s", c.rank, own.msg);
    }
    free(c.node);
    free(c.dep);
    return good;
}
