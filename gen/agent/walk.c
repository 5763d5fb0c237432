/* layer 3 (agent): a random walk: commands drawn by a seed, on objects drawn by it. It expects nothing of the device
 * but that it survives. */
#include "gen/agent/agent.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define WEIGHT_MAX 1000 /* of weights= */
#define ACCESS     "local_write,remote_write,remote_read,remote_atomic,mw_bind"

/* What it does, and how often: `$KIND` is an object of that kind, `#` the number of a queue pair, `~` the key and
 * address of a region, `^` the path that the client gave, `{a|b}` one of several. Without such an object it does
 * another thing. */
static const struct action {
    unsigned weight;
    const char *line;
} actions[] = {
    {2, "pd"},
    {3, "mem len={4096|8192|65536}"},
    {2, "cq n={1|16|200}"},
    {4, "mr pd=$pd mem=$mem access={" ACCESS "|local_write|-}"},
    {2, "mw pd=$pd type={1|2}"},
    {1, "srq pd=$pd max_wr={1|32}"},
    {1, "ah pd=$pd ^"},
    {5, "qp type={rc|rc|uc|ud} pd=$pd cq=$cq max_send_wr={1|32} max_recv_wr=32"},
    {1, "qp type=rc pd=$pd cq=$cq srq=$srq"},
    {6, "qp modify qp=$qp state=INIT pkey_index=0 port=1 access=remote_write,remote_read,remote_atomic"},
    {1, "qp modify qp=$qp state=INIT pkey_index=0 port=1 qkey=1"},
    {6, "qp modify qp=$qp state=RTR path_mtu={256|1024} dest_qpn=# rq_psn=0 max_dest_rd_atomic=4 min_rnr_timer=1 ^"},
    {1, "qp modify qp=$qp state=RTR"},
    {6, "qp modify qp=$qp state=RTS timeout={8|14} retry_cnt=1 rnr_retry=1 sq_psn=0 max_rd_atomic=4"},
    {1, "qp modify qp=$qp state={RTS sq_psn=0|SQD|ERR|RESET}"},
    {8, "post recv qp=$qp wr_id=1 sge=$mr+0:{0|64|4096}"},
    {2, "post srq srq=$srq wr_id=2 sge=$mr+0:64"},
    {8, "post send qp=$qp wr_id=3 op={SEND|SEND_WITH_IMM|RDMA_WRITE|RDMA_READ} sge=$mr+0:{0|1|4096} ~"},
    {3, "post send qp=$qp wr_id=4 op={ATOMIC_CMP_AND_SWP|ATOMIC_FETCH_AND_ADD} sge=$mr+0:8 ~"},
    {2, "post send qp=$qp wr_id=5 op=BIND_MW mw=$mw mr=$mr mw_len=64 access=remote_write ~"},
    {1, "post send qp=$qp wr_id=6 op=SEND ah=$ah dest_qpn=# qkey=1 sge=$mr+0:64"},
    {1, "mw bind qp=$qp mw=$mw mr=$mr mw_len={0|64} access=remote_read"},
    {8, "poll cq=$cq n=16"},
    {1, "qp query qp=$qp"},
    {3, "destroy object={$qp|$mr|$mw|$mem|$cq|$srq|$ah|$pd}"},
};

static const char *const kinds[] = {"pd", "mem", "cq", "mr", "mw", "srq", "ah", "qp"};

struct walk {
    struct agent *agent;
    const char *path; /* arguments of an address vector */
    struct prng random;
    unsigned factor[ARRAY_LEN(actions)]; /* of the weight of each action */
    struct buf line;
    uint64_t done, failed;
};

/* An object of a kind by chance, or NULL. */
static struct object *any(struct walk *w, enum object_kind k)
{
    const struct objects *os = &w->agent->objects;
    uint32_t n = os->count[k] ? prng_below(&w->random, os->count[k]) : 0;
    struct object *o = object_next(os, k, NULL);

    while (o && n--)
        o = object_next(os, k, o);
    return o;
}

static enum object_kind kind_of(const char *p, size_t *len)
{
    for (unsigned i = 0; i < ARRAY_LEN(kinds); i++)
        if (strncmp(p, kinds[i], strlen(kinds[i])) == 0) {
            *len = strlen(kinds[i]);
            for (enum object_kind k = 0; k < OBJECT_KINDS; k++)
                if (strcmp(object_kind_str(k), kinds[i]) == 0)
                    return k;
        }
    *len = 0;
    return OBJECT_KINDS;
}

/* Append what the mark at `p` stands for; *p: behind it. False: there is no such object. */
static bool fill(struct walk *w, const char **p)
{
    struct object *o;
    size_t n = 0;
    char mark = *(*p)++;

    if (mark == '^') {
        buf_puts(&w->line, w->path);
        return true;
    }
    o = any(w, mark == '$' ? kind_of(*p, &n) : mark == '#' ? OBJECT_QP : OBJECT_MR);
    *p += n;
    if (!o)
        return false;
    if (mark == '$')
        buf_printf(&w->line, "%s%u", object_kind_str(o->kind), o->number);
    else if (mark == '#')
        buf_printf(&w->line, "0x%x", o->qpn);
    else
        buf_printf(&w->line, "raddr=0x%llx rkey=0x%x", (unsigned long long)o->addr, o->rkey);
    return true;
}

/* One of the alternatives up to the closing brace; *p: behind it. */
static const char *choose(struct walk *w, const char **p, size_t *len)
{
    const char *at = *p, *end = strchr(at, '}');
    unsigned n = 1;

    for (const char *c = at; c < end; c++)
        n += *c == '|';
    for (n = prng_below(&w->random, n); n; n--)
        at += strcspn(at, "|") + 1;
    *len = strcspn(at, "|}");
    *p = end + 1;
    return at;
}

static bool write_line(struct walk *w, const char *p, size_t len)
{
    const char *end = p + len;

    while (p < end) {
        if (*p == '{') {
            const char *one;
            size_t n;
            p++;
            one = choose(w, &p, &n);
            if (!write_line(w, one, n))
                return false;
        } else if (strchr("$#~^", *p)) {
            if (!fill(w, &p))
                return false;
        } else {
            buf_char(&w->line, *p++);
        }
    }
    return true;
}

static const struct action *draw(struct walk *w)
{
    unsigned sum = 0, n;

    for (unsigned i = 0; i < ARRAY_LEN(actions); i++)
        sum += actions[i].weight * w->factor[i];
    n = prng_below(&w->random, sum);
    for (unsigned i = 0;; i++) {
        unsigned weight = actions[i].weight * w->factor[i];
        if (n < weight)
            return &actions[i];
        n -= weight;
    }
}

/* Multiply the weights of the actions whose line begins with the word `verb`; false: there is none. */
static bool weigh(struct walk *w, const char *verb, size_t len, unsigned factor)
{
    bool any = false;

    for (unsigned i = 0; i < ARRAY_LEN(actions); i++) {
        if (strcspn(actions[i].line, " ") != len || memcmp(actions[i].line, verb, len) != 0)
            continue;
        w->factor[i] = factor;
        any = true;
    }
    return any;
}

/* weights=VERB:N,...: so many times as often as else; 0: never. */
static bool take_weights(struct walk *w, struct request *r)
{
    const struct token *t = request_arg(r, "weights");
    const char *p = t ? t->p : "", *end = t ? t->p + t->len : p;
    unsigned sum = 0;

    for (unsigned i = 0; i < ARRAY_LEN(actions); i++)
        w->factor[i] = 1;
    while (p < end) {
        size_t n = strcspn(p, ":, "), digits = p[n] == ':' ? strspn(p + n + 1, "0123456789") : 0;
        unsigned factor = digits && digits < 5 ? (unsigned)strtoul(p + n + 1, NULL, 10) : WEIGHT_MAX + 1;
        const char *next = p + n + 1 + digits;
        if (factor > WEIGHT_MAX || (next < end && *next != ',') || !weigh(w, p, n, factor))
            return request_wrong(r, "weights=: expected VERB:N,... such as post:5,destroy:0, with N of 0 to %d",
                                 WEIGHT_MAX);
        p = next + (next < end);
    }
    for (unsigned i = 0; i < ARRAY_LEN(actions); i++)
        sum += actions[i].weight * w->factor[i];
    return sum || request_wrong(r, "weights=: nothing is left to do");
}

/* False: the client has gone. */
static bool step(struct walk *w, uint64_t number, bool log)
{
    struct agent *a = w->agent;
    const struct action *x = draw(w);
    size_t said;

    w->line.len = 0;
    buf_puts(&w->line, "w ");
    if (!write_line(w, x->line, strlen(x->line)))
        return true;
    if (log)
        buf_printf(&a->out, "! walk %llu %s\n", (unsigned long long)number, buf_str(&w->line) + 2);
    /* before it is done, so that the client knows what ended the agent */
    if ((log || number % 256 == 0) && !a->driver.pause(a->driver.user, a, 0))
        return false;
    said = a->out.len;
    if (agent_do(a, buf_str(&w->line)) == 0)
        w->done++;
    else
        w->failed++;
    a->out.len = said;
    agent_events(a);
    return true;
}

static int cmd_walk(struct agent *a, struct request *r)
{
    char path[200] = "";
    struct walk w = {.agent = a, .path = path};
    uint64_t seed = 1, steps = 0, seconds = 0;
    ns_t start = agent_time(a);
    const struct token *dgid = request_arg(r, "dgid");
    uint32_t index = 0;
    uint8_t gid[16];
    bool log = false, here = true;

    if (!request_u64(r, "seed", 0, UINT64_MAX, &seed) || !request_u64(r, "steps", 1, 100000000, &steps) ||
        !request_u64(r, "seconds", 1, 86400, &seconds) || !take_weights(&w, r) || !request_bool(r, "log", &log) ||
        !request_gid(r, "dgid", gid) || !request_u32(r, "sgid_index", 0, 255, &index))
        return -EINVAL;
    snprintf(path, sizeof path, "dgid=%.*s sgid_index=%u", (int)dgid->len, dgid->p, index);
    prng_seed(&w.random, seed);
    for (uint64_t i = 1; i <= steps && here && (!seconds || agent_time(a) - start < (ns_t)seconds * NS_PER_S); i++)
        here = step(&w, i, log);
    buf_free(&w.line);
    buf_printf(&a->reply, " done=%llu failed=%llu", (unsigned long long)w.done, (unsigned long long)w.failed);
    return here ? 0 : -ECANCELED;
}

const struct agent_command agent_walk[] = {
    {"walk", "steps=N dgid=GID [sgid_index=N] [seed=N] [seconds=N] [weights=VERB:N,...] [log=0|1]",
     "so many commands drawn by chance, on what the client has and on what they make", cmd_walk, AGENT_DEVICE},
    {NULL, NULL, NULL, NULL, 0},
};
