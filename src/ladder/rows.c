/* layer 3 (ladder): the packets of the connection, the same packet at two taps, lines. */
#include "bits.h"
#include "dissect/ib/ib.h"
#include "dissect/ib/opcode.h"
#include "src/ladder/ladder_impl.h"

#include <stdlib.h>

#define TAPS_MAX    16 /* taps of a connection that are counted */
#define FOLD_MIN    4  /* similar packets in a row that are folded: the first is drawn, the rest is one line */
#define SILENCE_MIN (10 * NS_PER_US)
#define SILENCE     10 /* times the 90th percentile of the gaps: far longer than usual */
#define GAPS_MIN    8  /* gaps needed for that percentile */

/* --- Packets of the connection ---------------------------------------------------------------- */

/* The end that sent a CM message, for the connection with flow `c` from the left: 0 left, 1 right; 2: neither. */
static unsigned end_of(const struct rung *r, const struct flow *c)
{
    if (conn_addr_eq(&r->src, &c->src) && conn_addr_eq(&r->dst, &c->dst))
        return 0;
    return conn_addr_eq(&r->src, &c->dst) && conn_addr_eq(&r->dst, &c->src) ? 1 : 2;
}

/* True if a message from end `end` names a queue pair of the connection. */
static bool names_qp(const struct rung *r, const struct flow *c, unsigned end)
{
    const uint32_t qpn[2] = {c->have_sqpn ? c->sqpn : 0, c->dqpn};

    return (r->qpn && r->qpn == qpn[end]) || (r->to_qpn && r->to_qpn == qpn[!end]);
}

/* True if a message from end `end` has the ids of exchange `e`. */
static bool ids_fit(const struct rung *r, const struct cm_ids *e, unsigned end)
{
    uint32_t own = e->id[end], other = e->id[!end];
    bool own_matches = r->id && r->id == own, other_matches = r->peer_id && r->peer_id == other;
    bool own_differs = r->id && own && r->id != own, other_differs = r->peer_id && other && r->peer_id != other;

    return (own_matches || other_matches) && !own_differs && !other_differs;
}

/* Find the exchanges that set up and closed the connection: their messages name its queue pairs. */
static void find_exchanges(struct ladder *l, const struct flow *c)
{
    for (uint32_t i = 0; i < l->n; i++) {
        const struct rung *r = &l->rungs[i];
        unsigned end = r->attr ? end_of(r, c) : 2;
        uint32_t k = 0;
        if (end == 2 || !names_qp(r, c, end))
            continue;
        while (k < l->n_exchanges && !(l->exchanges[k].id[end] == r->id && l->exchanges[k].id[!end] == r->peer_id))
            k++;
        if (k == l->n_exchanges && k < CM_EXCHANGES) {
            l->exchanges[k].id[end] = r->id;
            l->exchanges[k].id[!end] = r->peer_id;
            l->n_exchanges++;
        }
    }
}

/* True if a rung belongs to the connection with flow `c` (in either direction). */
static bool belongs(struct ladder *l, const struct rung *r, const struct flow *c)
{
    unsigned end = end_of(r, c);
    uint32_t flow = r->flow;

    if (r->stream)
        return r->stream == c->conn;
    if (!r->attr) {
        if (flow == FLOW_NONE) /* a CNP or a packet with a bad ICRC, before the first other packet */
            flow = conn_flow_named(observer_conns(l->observer), r->tap, &r->src, &r->dst, r->dqpn);
        return flow != FLOW_NONE && conn_flow_at(observer_conns(l->observer), flow)->conn == c->conn;
    }
    for (uint32_t i = 0; end < 2 && i < l->n_exchanges; i++)
        if (ids_fit(r, &l->exchanges[i], end))
            return true;
    return false;
}

static void keep_own(struct ladder *l, const struct flow *c)
{
    uint32_t n = 0;

    find_exchanges(l, c);
    for (uint32_t i = 0; i < l->n; i++) {
        l->rungs[i].named = l->o.hosts && !l->rungs[i].attr;
        if (l->o.hosts ? end_of(&l->rungs[i], c) < 2 : belongs(l, &l->rungs[i], c))
            l->rungs[n++] = l->rungs[i];
    }
    l->n = n;
}

/* --- Taps ------------------------------------------------------------------------------------- */

/* The two taps with the most packets of the connection; the first of them is that of the first packet. */
static void choose_taps(struct ladder *l, const struct flow *left)
{
    uint32_t tap[TAPS_MAX], n[TAPS_MAX] = {0}, taps = 0, most[2] = {0, UINT32_MAX};

    for (uint32_t i = 0; i < l->n; i++) {
        uint32_t k = 0;
        while (k < taps && tap[k] != l->rungs[i].tap)
            k++;
        if (k == taps && taps < TAPS_MAX)
            tap[taps++] = l->rungs[i].tap;
        if (k < taps)
            n[k]++;
    }
    for (uint32_t k = 1; k < taps; k++)
        most[0] = n[k] > n[most[0]] ? k : most[0];
    for (uint32_t k = 0; k < taps; k++)
        if (k != most[0] && (most[1] == UINT32_MAX || n[k] > n[most[1]]))
            most[1] = k;
    l->n_taps = taps;
    l->tap[0] = taps ? tap[most[0]] : 0;
    l->tap[1] = taps > 1 ? tap[most[1]] : l->tap[0];
    if (taps > 1 && taps_order(l->taps, l->tap[0], l->tap[1], &left->src, &left->dst) == TAPS_B_FIRST) {
        uint32_t swap = l->tap[0];
        l->tap[0] = l->tap[1];
        l->tap[1] = swap;
    }
}

/* The time of a packet on the clock of the first tap. */
static ns_t aligned(const struct ladder *l, const struct rung *r)
{
    if (l->o.unaligned)
        return r->ts - (l->o.ahead ? l->o.ahead[r->tap >> 16] : 0);
    return r->tap == l->tap[0] ? r->ts : r->ts + taps_offset(l->taps, r->tap, l->tap[0], r->ts).offset;
}

/* --- The same packet at two taps -------------------------------------------------------------- */

static bool same_packet(const struct rung *a, const struct rung *b)
{
    bool named = a->opcode == b->opcode && a->psn == b->psn && a->dqpn == b->dqpn && a->attr == b->attr;
    bool stamped = a->ip_id == b->ip_id && a->icrc == b->icrc;

    return named && stamped && conn_addr_eq(&a->src, &b->src) && conn_addr_eq(&a->dst, &b->dst);
}

static uint32_t bucket(const struct rung *r, uint32_t mask)
{
    uint64_t h = ((uint64_t)r->icrc << 24 ^ r->psn ^ (uint64_t)r->ip_id << 40 ^ (uint64_t)r->opcode << 32);

    return (uint32_t)(h * HASH_MULTIPLIER >> 40) & mask;
}

/* Rungs by hash, later ones of a bucket last. */
struct index_of {
    uint32_t *heads, *next;
    uint32_t mask;
    uint32_t *pair; /* by rung: the same packet at the other tap; UINT32_MAX: none */
    ns_t *ts;       /* aligned() */
    ns_t slack;     /* a packet may seem to arrive so much before it was sent */
};

static void index_fill(const struct ladder *l, struct index_of *x)
{
    memset(x->heads, 0xff, (x->mask + 1) * sizeof *x->heads);
    for (uint32_t i = l->n; i-- > 0;) {
        uint32_t *head = &x->heads[bucket(&l->rungs[i], x->mask)];
        x->next[i] = *head;
        *head = i;
        x->pair[i] = UINT32_MAX;
        x->ts[i] = aligned(l, &l->rungs[i]);
    }
}

/* The rung at tap `to` of the packet that rung `i` shows: the first unused copy after it. */
static uint32_t copy_of(const struct ladder *l, const struct index_of *x, uint32_t i, uint32_t to)
{
    const struct rung *r = &l->rungs[i];

    for (uint32_t k = x->heads[bucket(r, x->mask)]; k != UINT32_MAX; k = x->next[k])
        if (l->rungs[k].tap == to && x->pair[k] == UINT32_MAX && x->ts[k] >= x->ts[i] - x->slack &&
            same_packet(r, &l->rungs[k]))
            return k;
    return UINT32_MAX;
}

static bool goes_right(const struct rung *r, const struct flow *left)
{
    return conn_addr_eq(&r->src, &left->src);
}

static void match(const struct ladder *l, struct index_of *x, const struct flow *left)
{
    for (uint32_t i = l->n; i-- > 0;) {
        const struct rung *r = &l->rungs[i];
        bool right = goes_right(r, left);
        uint32_t k = r->tap == l->tap[!right] ? copy_of(l, x, i, l->tap[right]) : UINT32_MAX;
        if (k != UINT32_MAX) {
            x->pair[i] = k;
            x->pair[k] = i;
        }
    }
}

/* --- Rows ------------------------------------------------------------------------------------- */

/* Time of the last packet at tap `k`, on the clock of the first tap: a later packet cannot be called lost. */
static ns_t last_of(const struct ladder *l, const struct index_of *x, unsigned k)
{
    ns_t last = INT64_MIN;

    for (uint32_t i = 0; i < l->n; i++)
        if (l->rungs[i].tap == l->tap[k] && x->ts[i] > last)
            last = x->ts[i];
    return last;
}

static void row_add(struct ladder *l, const struct index_of *x, uint32_t i, const struct flow *left, const ns_t last[2])
{
    const struct rung *r = &l->rungs[i];
    struct row *row = &l->rows[l->n_rows];
    unsigned own = l->n_taps > 1 && r->tap == l->tap[1];
    bool right = goes_right(r, left), after = false;

    if (l->n_taps > 1 && r->tap != l->tap[own])
        return; /* of a third tap */
    if (x && x->pair[i] != UINT32_MAX && own == right)
        return; /* part of the row of its first tap */
    *row = (struct row){.r = r, .ts = x ? x->ts[i] : r->ts, .right = right};
    row->at[own] = r;
    if (x && x->pair[i] != UINT32_MAX)
        row->at[!own] = &l->rungs[x->pair[i]];
    row->what = r->bad ? cause_table[CAUSE_BAD_ICRC].name : incidents_cause(l, r, &after);
    if (!row->what && row->at[!own])
        row->what = incidents_cause(l, row->at[!own], &after);
    row->lost = after ? LOST_AFTER : LOST_NOT;
    if (x && x->pair[i] == UINT32_MAX)
        row->lost = own != right && row->ts + x->slack < last[!own] ? LOST_BETWEEN : LOST_NOT;
    l->n_rows++;
}

static int by_time(const void *a, const void *b)
{
    const struct row *x = a, *y = b;

    if (x->ts != y->ts)
        return x->ts < y->ts ? -1 : 1;
    return x->r < y->r ? -1 : x->r > y->r;
}

/* Make the rows of two taps. */
static bool rows_of_two(struct ladder *l, const struct flow *left)
{
    struct index_of x = {.mask = 1023, .slack = 2 * l->clock.bound + NS_PER_US};
    ns_t last[2];
    bool ok;

    if (l->o.unaligned || !l->clock.known)
        x.slack = 100 * NS_PER_US;
    while (x.mask < l->n)
        x.mask = x.mask * 2 + 1;
    x.heads = malloc((x.mask + 1) * sizeof *x.heads);
    x.next = malloc(l->n * sizeof *x.next);
    x.pair = malloc(l->n * sizeof *x.pair);
    x.ts = malloc(l->n * sizeof *x.ts);
    ok = x.heads && x.next && x.pair && x.ts;
    if (ok) {
        index_fill(l, &x);
        match(l, &x, left);
        last[0] = last_of(l, &x, 0);
        last[1] = last_of(l, &x, 1);
        for (uint32_t i = 0; i < l->n; i++)
            row_add(l, &x, i, left, last);
        qsort(l->rows, l->n_rows, sizeof *l->rows, by_time);
    }
    free(x.heads);
    free(x.next);
    free(x.pair);
    free(x.ts);
    return ok;
}

static bool rows_fill(struct ladder *l, const struct flow *left)
{
    static const ns_t none[2];

    l->rows = malloc((l->n ? l->n : 1) * sizeof *l->rows);
    if (!l->rows)
        return false;
    if (l->n_taps > 1)
        return rows_of_two(l, left);
    for (uint32_t i = 0; i < l->n; i++)
        row_add(l, NULL, i, left, none);
    return true;
}

/* --- Lines ------------------------------------------------------------------------------------ */

static int by_length(const void *a, const void *b)
{
    ns_t x = *(const ns_t *)a, y = *(const ns_t *)b;

    return x < y ? -1 : x > y;
}

/* Shortest gap that is a silence; NS_NEVER: none is. */
static ns_t silence_from(const struct ladder *l)
{
    uint32_t n = l->n_rows ? l->n_rows - 1 : 0;
    ns_t *gaps = n < GAPS_MIN ? NULL : malloc(n * sizeof *gaps), usual = NS_NEVER / SILENCE;

    for (uint32_t i = 0; gaps && i < n; i++)
        gaps[i] = l->rows[i + 1].ts - l->rows[i].ts;
    if (gaps) {
        qsort(gaps, n, sizeof *gaps, by_length);
        usual = gaps[n * 9 / 10];
    }
    free(gaps);
    return usual >= NS_NEVER / SILENCE ? NS_NEVER : usual * SILENCE < SILENCE_MIN ? SILENCE_MIN : usual * SILENCE;
}

static bool has_frame_around(const struct ladder *l, const struct row *row)
{
    for (unsigned k = 0; k < 2; k++)
        if (row->at[k] && l->o.around && row->at[k]->frame == l->o.around && row->at[k]->tap >> 16 == l->o.around_file)
            return true;
    return false;
}

/* True if a packet needs no remark. */
static bool is_plain(const struct ladder *l, const struct row *row)
{
    bool event = row->what || row->lost || row->r->attr || row->r->missing || row->r->bad;
    bool nak = row->r->aeth && aeth_type(row->r->syndrome) != AETH_ACK;
    bool seen = l->n_taps < 2 || (row->at[0] && row->at[1]);

    bool alone = !l->o.around_in_run && has_frame_around(l, row);

    return !event && !nak && seen && !alone && !row->r->bad_crc &&
           (row->r->stream || !(opcode_table[row->r->opcode].flags & OPF_CNP));
}

/* True if `b` continues the run of `a`. */
static bool is_like(const struct ladder *l, const struct row *a, const struct row *b)
{
    bool same =
        a->right == b->right && a->r->opcode == b->r->opcode && a->r->again == b->r->again && a->r->dqpn == b->r->dqpn;

    return same && is_plain(l, a) && is_plain(l, b) && psn_diff(b->r->psn, a->r->psn) > 0;
}

/* True if the user wants to see each packet of the run that `row` belongs to. */
static bool is_opened(const struct ladder *l, const struct row *row)
{
    for (unsigned i = 0; i < l->o.n_opened; i++) {
        const struct ladder_run *run = &l->o.opened[i];
        if (row->r->tap >> 16 == run->file && row->r->frame >= run->first && row->r->frame <= run->last)
            return true;
    }
    return false;
}

/* Packets that are drawn as one line and a folded run behind it, from row `i` on. */
static uint32_t run_length(const struct ladder *l, uint32_t i, ns_t silence)
{
    uint32_t run = 1;

    while (!l->o.unfolded && i + run < l->n_rows && is_like(l, &l->rows[i + run - 1], &l->rows[i + run]) &&
           l->rows[i + run].ts - l->rows[i + run - 1].ts < silence && !is_opened(l, &l->rows[i + run]))
        run++;
    return run;
}

static bool lines_fill(struct ladder *l)
{
    ns_t silence = silence_from(l);

    l->lines = malloc((l->n_rows ? l->n_rows : 1) * sizeof *l->lines);
    for (uint32_t i = 0, run; l->lines && i < l->n_rows; i += run) {
        ns_t gap = i ? l->rows[i].ts - l->rows[i - 1].ts : 0;
        run = run_length(l, i, silence);
        l->lines[l->n_lines++] = (struct line){i, 1, gap >= silence ? gap : 0};
        if (run >= FOLD_MIN)
            l->lines[l->n_lines++] = (struct line){i + 1, run - 1, 0};
        else
            run = 1;
    }
    return l->lines != NULL;
}

bool ladder_has_around(const struct ladder *l)
{
    for (uint32_t i = 0; i < l->n_rows; i++)
        if (has_frame_around(l, &l->rows[i]))
            return true;
    return false;
}

uint32_t ladder_middle(const struct ladder *l)
{
    uint32_t near = 0;

    for (uint32_t i = 0; i < l->n_lines; i++) {
        const struct row *row = &l->rows[l->lines[i].row];
        if (has_frame_around(l, row))
            return i;
        near = row->ts <= l->around_ts ? i : near;
    }
    return near;
}

/* True if two different times would be equal in microseconds. */
static bool needs_nanoseconds(const struct ladder *l)
{
    for (uint32_t i = 1; i < l->n_rows; i++)
        if (l->rows[i].ts != l->rows[i - 1].ts && l->rows[i].ts / 1000 == l->rows[i - 1].ts / 1000)
            return true;
    return false;
}

bool ladder_arrange(struct ladder *l, const struct flow *left)
{
    keep_own(l, left);
    if (l->own)
        taps_end(l->taps);
    choose_taps(l, left);
    if (l->n)
        l->clock = taps_offset(l->taps, l->tap[0], l->tap[1], l->rungs[l->n / 2].ts);
    if (!incidents_index(l) || !rows_fill(l, left) || !lines_fill(l))
        return false;
    l->nanoseconds = needs_nanoseconds(l);
    return true;
}
