/* layer 2b (conn): what happens to flows, and so to the numbers of connections, noted by several processes, made one.
 */
#include "src/conn/numbers_log.h"

#include "grow.h"

#define CHANGES_MAX (1u << 30) /* of a log that is read, at most */

static void on_changed(void *user, const struct conn_change *c)
{
    struct numbers_log *l = user;

    l->failed |= !grow((void **)&l->of, l->n, sizeof *l->of);
    if (!l->failed)
        l->of[l->n++] = (struct number_change){l->now, *c};
}

static void on_numbered(void *user, enum conn_numbered what, uint32_t a, uint32_t b)
{
    struct numbers_log *l = user;

    (void)a;
    (void)b;
    l->failed |= what == NUMBER_TAKEN;
}

void numbers_note(struct numbers_log *l, struct conn_table *t)
{
    conn_on_numbered(t, on_numbered, l);
    conn_on_changed(t, on_changed, l);
}

void numbers_pack(struct pack *k, struct numbers_log *l)
{
    l->n = (uint32_t)pack_count(k, l->n, CHANGES_MAX, 80);
    if (!k->out && !k->bad && !(l->of = calloc(l->n + (size_t)1, sizeof *l->of)))
        k->bad = true;
    for (uint32_t i = 0; i < l->n && !k->bad; i++) {
        struct number_change *c = &l->of[i];
        PACK(k, c->at.ts);
        PACK(k, c->at.file);
        PACK(k, c->at.frame);
        conn_change_pack(k, &c->c);
    }
    l->n = k->bad ? 0 : l->n;
}

/* --- Replay ----------------------------------------------------------------------------------- */

/* A change of one of the logs. */
struct entry {
    const struct number_change *c;
    uint32_t log, index;
};

static int by_place(const void *x, const void *y)
{
    return number_place_compare(&((const struct entry *)x)->c->at, &((const struct entry *)y)->c->at);
}

static int by_log(const void *x, const void *y)
{
    const struct entry *a = x, *b = y;
    int d = by_place(x, y);

    d = d ? d : (a->log > b->log) - (a->log < b->log);
    return d ? d : (a->index > b->index) - (a->index < b->index);
}

uint32_t numbers_of(const struct numbers_log *l, uint64_t number, const struct number_place *at)
{
    const struct numbers_now *w = l->now_in;
    uint32_t n = number < l->replayed.n_numbers ? l->number[number] : 0;

    while (n < w->n && w->over[n].to && (!at || number_place_compare(&w->over[n].at, at) <= 0))
        n = w->over[n].to;
    return n;
}

static void end_replay(struct numbers_log *l)
{
    conn_replayed_free(&l->replayed);
    free(l->number);
    l->number = NULL;
}

static bool begin_replay(struct numbers_log *l)
{
    uint32_t flows = 0, numbers = 0;

    end_replay(l);
    for (uint32_t i = 0; i < l->n; i++) {
        flows += l->of[i].c.what == FLOW_BEGUN;
        numbers += l->of[i].c.what == FLOW_NUMBERED;
    }
    l->number = calloc(numbers + (size_t)1, sizeof *l->number);
    return conn_replayed_new(&l->replayed, flows, numbers) && l->number;
}

/* It happens: a connection gets the number that it has in one process. */
static bool replay(struct numbers_log *l, struct conn_table *t, const struct conn_change *c, bool same)
{
    if (!conn_replay(t, &l->replayed, c, same))
        return false;
    if (c->what == FLOW_NUMBERED)
        l->number[c->number] = conn_replayed_number(t, &l->replayed, c->number);
    return true;
}

/* A number is none any more, in one process. */
static void on_over(void *user, enum conn_numbered what, uint32_t a, uint32_t b)
{
    struct numbers_now *w = user;

    if (what == NUMBER_CHANGED && a < w->n && b < a)
        w->over[a] = (struct number_over){w->at, b};
}

void numbers_now_free(struct numbers_now *w)
{
    free(w->over);
    *w = (struct numbers_now){.n = 0};
}

bool numbers_replay(struct numbers_log *logs, uint32_t n, struct conn_table *t, struct numbers_now *w)
{
    struct entry *all;
    size_t count = 0, at = 0;
    bool ok = true;

    for (uint32_t i = 0; i < n; i++) {
        count += logs[i].n;
        ok &= begin_replay(&logs[i]);
        logs[i].now_in = w;
        w->n += logs[i].replayed.n_numbers;
    }
    w->over = calloc(w->n + (size_t)1, sizeof *w->over);
    ok &= w->over != NULL;
    conn_on_numbered(t, on_over, w);
    all = malloc((count + 1) * sizeof *all);
    for (uint32_t i = 0; ok && all && i < n; i++)
        for (uint32_t k = 0; k < logs[i].n; k++)
            all[at++] = (struct entry){&logs[i].of[k], i, k};
    ok &= all && count <= UINT32_MAX;
    if (ok && count)
        qsort(all, count, sizeof *all, by_log);
    for (size_t i = 0; ok && i < count; i++) {
        w->at = all[i].c->at;
        ok = replay(&logs[all[i].log], t, &all[i].c->c, i && by_place(&all[i - 1], &all[i]) == 0);
    }
    conn_on_numbered(t, NULL, NULL);
    free(all);
    return ok;
}

void numbers_free(struct numbers_log *l)
{
    end_replay(l);
    free(l->of);
    *l = (struct numbers_log){.n = 0};
}
