/* layer 2b (conn): what happens to the numbers of connections, noted by several processes, made one. */
#include "src/conn/numbers_log.h"

#include "grow.h"

#define CHANGES_MAX (1u << 30) /* of a log that is read, at most */

static void on_numbered(void *user, enum conn_numbered what, uint32_t a, uint32_t b)
{
    struct numbers_log *l = user;

    l->failed |= what == NUMBER_TAKEN || !grow((void **)&l->of, l->n, sizeof *l->of);
    if (!l->failed)
        l->of[l->n++] = (struct number_change){l->now, what, a, b};
}

void numbers_note(struct numbers_log *l, struct conn_table *t)
{
    conn_on_numbered(t, on_numbered, l);
}

void numbers_pack(struct pack *k, struct numbers_log *l)
{
    l->n = (uint32_t)pack_count(k, l->n, CHANGES_MAX, 48);
    if (!k->out && !k->bad && !(l->of = calloc(l->n + (size_t)1, sizeof *l->of)))
        k->bad = true;
    for (uint32_t i = 0; i < l->n && !k->bad; i++) {
        struct number_change *c = &l->of[i];
        PACK(k, c->at.ts);
        PACK(k, c->at.file);
        PACK(k, c->at.frame);
        PACK(k, c->what);
        PACK(k, c->a);
        PACK(k, c->b);
        k->bad |= c->what > NUMBER_CHANGED || c->what == NUMBER_TAKEN;
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
    const struct number_place *a = &((const struct entry *)x)->c->at, *b = &((const struct entry *)y)->c->at;

    if (a->ts != b->ts)
        return a->ts < b->ts ? -1 : 1;
    if (a->file != b->file)
        return a->file < b->file ? -1 : 1;
    return (a->frame > b->frame) - (a->frame < b->frame);
}

static int by_log(const void *x, const void *y)
{
    const struct entry *a = x, *b = y;
    int d = by_place(x, y);

    d = d ? d : (a->log > b->log) - (a->log < b->log);
    return d ? d : (a->index > b->index) - (a->index < b->index);
}

uint32_t numbers_of(const struct numbers_log *l, uint64_t number)
{
    return number <= l->n ? l->number[number] : 0;
}

static void set_number(struct numbers_log *l, const struct number_change *c, uint32_t now)
{
    if (c->what == NUMBER_GIVEN && c->a <= l->n)
        l->number[c->a] = now;
}

/* What the first log tells of a packet happens; each further one has to tell the same of the `n` changes. */
static bool replay_packet(struct numbers_log *logs, struct conn_table *t, const struct entry *e, uint32_t n)
{
    uint32_t first = 0;

    while (first < n && e[first].log == e[0].log)
        first++;
    if (n % first)
        return false;
    for (uint32_t i = 0; i < first; i++) {
        const struct number_change *c = e[i].c;
        struct numbers_log *l = &logs[e[i].log];
        uint32_t now = conn_number_replay(t, (enum conn_numbered)c->what, numbers_of(l, c->a), numbers_of(l, c->b));
        set_number(l, c, now);
        for (uint32_t k = i + first; k < n; k += first) {
            if (e[k].c->what != c->what || e[k].log != e[k - i].log)
                return false;
            set_number(&logs[e[k].log], e[k].c, now);
        }
    }
    return true;
}

bool numbers_replay(struct numbers_log *logs, uint32_t n, struct conn_table *t)
{
    struct entry *all;
    size_t count = 0, at = 0;
    bool ok = true;

    for (uint32_t i = 0; i < n; i++) {
        count += logs[i].n;
        free(logs[i].number);
        logs[i].number = calloc(logs[i].n + (size_t)1, sizeof *logs[i].number);
        ok &= logs[i].number != NULL;
    }
    all = malloc((count + 1) * sizeof *all);
    for (uint32_t i = 0; ok && all && i < n; i++)
        for (uint32_t k = 0; k < logs[i].n; k++)
            all[at++] = (struct entry){&logs[i].of[k], i, k};
    ok &= all && count <= UINT32_MAX;
    if (ok && count)
        qsort(all, count, sizeof *all, by_log);
    for (size_t i = 0, next; ok && i < count; i = next) {
        for (next = i + 1; next < count && by_place(&all[i], &all[next]) == 0; next++)
            ;
        ok = replay_packet(logs, t, &all[i], (uint32_t)(next - i));
    }
    free(all);
    return ok;
}

void numbers_free(struct numbers_log *l)
{
    free(l->of);
    free(l->number);
    *l = (struct numbers_log){.n = 0};
}
