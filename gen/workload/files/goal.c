/* layer 3 (workload): schedules of a file in GOAL, the text that LogGOPSim takes:
 *
 *     num_ranks 2
 *     rank 0 {
 *     l1: calc 100
 *     l2: send 4096b to 1 tag 7
 *     l2 requires l1
 *     }
 *     rank 1 { l1: recv 4096b from 0 tag 7; }
 *
 * A statement ends with its line, or with a semicolon or a brace before that. */
#include "gen/workload/schedule.h"
#include "gen/workload/workload_impl.h"
#include "grow.h"

#include <stdlib.h>

#define LABEL 24 /* bytes, with its NUL */

/* A label of the rank being read, and its task; found by a hash. */
struct label {
    char name[LABEL];
    uint32_t task, next; /* next: of the same hash, + 1 */
};

struct goal {
    bool ranks; /* num_ranks was read */
    uint64_t n;
    int rank; /* being read; -1: none */
    struct label *label;
    uint32_t n_labels, first[1024]; /* by hash: number of a label + 1 */
};

static uint32_t hash(const struct token *t)
{
    uint32_t h = 2166136261u;

    for (uint32_t i = 0; i < t->len; i++)
        h = (h ^ (uint8_t)t->p[i]) * 16777619u;
    return h % ARRAY_LEN(((struct goal *)0)->first);
}

static uint32_t task_of(const struct goal *g, const struct token *t)
{
    for (uint32_t i = g->first[hash(t)]; i; i = g->label[i - 1].next)
        if (token_is(t, g->label[i - 1].name))
            return g->label[i - 1].task;
    return WORKLOAD_NONE;
}

static bool add_label(struct goal *g, const struct token *t, uint32_t task, struct text_error *e)
{
    uint32_t h = hash(t);
    struct label *l;

    if (t->len >= LABEL || !t->len || task_of(g, t) != WORKLOAD_NONE)
        return text_fail(e, t,
                         t->len && t->len < LABEL ? "the rank has this label already"
                                                  : "expected a label of 1 to 23 characters");
    if (!grow((void **)&g->label, g->n_labels, sizeof *g->label))
        return text_fail(e, NULL, "out of memory");
    l = &g->label[g->n_labels++];
    memcpy(l->name, t->p, t->len);
    l->name[t->len] = '\0';
    l->task = task;
    l->next = g->first[h];
    g->first[h] = g->n_labels;
    return true;
}

/* "8b", "8" */
static bool parse_bytes(const struct token *t, uint64_t *bytes)
{
    struct token n = *t;

    if (n.len && n.p[n.len - 1] == 'b')
        n.len--;
    return token_u64(&n, bytes) && *bytes <= WORKLOAD_BYTES;
}

/* Words behind the label: "send 8b to 1 tag 0", "recv 8b from 1 tag 0", "calc 100"; "cpu" and "nic" do not count. */
static bool parse_task(const struct workload *w, const struct goal *g, const struct token *t, unsigned n,
                       struct task *k, struct text_error *e)
{
    bool send = token_is(&t[0], "send"), recv = token_is(&t[0], "recv"), message;
    uint64_t v = 0, tag = 0;

    *k = (struct task){.kind = send ? TASK_SEND : recv ? TASK_RECV : TASK_CALC, .rank = (uint16_t)g->rank};
    if (token_is(&t[0], "calc") && n >= 2 && token_u64(&t[1], &v) && v <= (uint64_t)TOPO_TIME_MAX) {
        k->time = (ns_t)v;
        return true;
    }
    message = (send || recv) && n >= 4 && parse_bytes(&t[1], &k->bytes);
    if (!message || !token_is(&t[2], send ? "to" : "from") || !token_u64(&t[3], &v))
        return text_fail(e, &t[0], "expected 'send Nb to RANK tag N', 'recv Nb from RANK tag N' or 'calc NS'");
    if (v >= w->n || v >= g->n || v == (uint64_t)g->rank)
        return text_fail(e, &t[3], "there is no such rank");
    for (unsigned i = 4; i + 1 < n; i += 2)
        if (token_is(&t[i], "tag") && (!token_u64(&t[i + 1], &tag) || tag > UINT32_MAX))
            return text_fail(e, &t[i + 1], "expected a tag, a number of 32 bits");
    k->peer = (uint16_t)v;
    k->tag = (uint32_t)tag;
    return true;
}

static bool head_line(struct workload *w, struct goal *g, const struct token *t, unsigned n, struct text_error *e)
{
    bool rank = (n == 2 || n == 3) && token_is(&t[0], "rank");
    uint64_t v;

    if (!g->ranks && n == 2 && token_is(&t[0], "num_ranks") && token_u64(&t[1], &g->n)) {
        g->ranks = true;
        return g->n <= w->n || text_fail(e, &t[1], "more ranks than hosts, of which there are %u", w->n);
    }
    if (!g->ranks || !rank || !token_u64(&t[1], &v) || v >= g->n)
        return text_fail(e, NULL, g->ranks ? "expected 'rank N {'" : "expected 'num_ranks N'");
    g->rank = (int)v;
    g->n_labels = 0;
    memset(g->first, 0, sizeof g->first);
    return true;
}

static bool goal_statement(struct workload *w, unsigned number, const struct token *t, unsigned n, struct text_error *e)
{
    struct goal *g = w->goal;
    bool labelled = t[0].len > 1 && t[0].p[t[0].len - 1] == ':', begun = n == 3 && token_is(&t[1], "irequires");
    struct token label = t[0];
    struct task k;
    uint32_t i;

    (void)number;
    if (g->rank < 0)
        return head_line(w, g, t, n, e);
    if (token_is(&t[0], "}")) {
        g->rank = -1;
        return true;
    }
    if (n == 3 && (begun || token_is(&t[1], "requires"))) {
        uint32_t task = task_of(g, &t[0]), other = task_of(g, &t[2]);
        if (task == WORKLOAD_NONE || other == WORKLOAD_NONE || task == other)
            return text_fail(e, task == WORKLOAD_NONE ? &t[0] : &t[2], "there is no such label before");
        return schedule_after(w->schedule, task, other, begun) || text_fail(e, NULL, "out of memory");
    }
    if (n - labelled < 2 || !parse_task(w, g, t + labelled, n - labelled, &k, e))
        return n - labelled < 2 ? text_fail(e, NULL, "expected a task, or 'LABEL requires LABEL'") : false;
    i = schedule_add(w->schedule, &k);
    label.len--;
    return i != WORKLOAD_NONE ? !labelled || add_label(g, &label, i, e) : text_fail(e, NULL, "out of memory");
}

/* Take all statements: each ends with its line, a semicolon or a brace. */
static bool take_all(struct workload *w, struct text_error *e)
{
    const char *text = w->c.text;

    for (unsigned number = 1; *text;) {
        size_t len = strcspn(text, "#\n;{}");
        bool closes = text[len] == '}', opens = text[len] == '{';
        if (!workload_statement(w, number, text, len + opens, goal_statement, e) ||
            (closes && !workload_statement(w, number, "}", 1, goal_statement, e)))
            return false;
        text += len;
        text += *text == '#' ? strcspn(text, "\n") : 0;
        number += *text == '\n';
        text += *text != '\0';
    }
    return true;
}

bool goal_tasks(struct workload *w, struct schedule *s, const char *args, struct text_error *e)
{
    struct goal g = {.rank = -1};
    bool good;

    (void)s;
    (void)args;
    w->goal = &g;
    good = take_all(w, e);
    w->goal = NULL;
    free(g.label);
    if (good && g.rank >= 0)
        return text_fail(e, NULL, "the last rank has no '}'");
    return good;
}
