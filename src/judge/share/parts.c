/* layer 3 (judge): what several processes have found made one (share.c). */
#include "src/judge/share/part.h"

#include "grow.h"
#include <stdlib.h>

/* What a part has at one place. */
struct entry {
    struct place at;
    uint32_t part, index;
    bool numbers; /* a numbering, else a finding */
};

static int order_compare(const struct order *x, const struct order *y)
{
    if (x->phase != y->phase)
        return x->phase < y->phase ? -1 : 1;
    if (x->a != y->a)
        return x->a < y->a ? -1 : 1;
    if (x->b != y->b)
        return x->b < y->b ? -1 : 1;
    return (x->c > y->c) - (x->c < y->c);
}

static int by_place(const void *x, const void *y)
{
    const struct entry *a = x, *b = y;
    int d = order_compare(&a->at.at, &b->at.at);

    d = d ? d : (a->part > b->part) - (a->part < b->part);
    return d ? d : (a->at.n > b->at.n) - (a->at.n < b->at.n);
}

static int by_birth(const void *x, const void *y)
{
    return order_compare(&((const struct flow_fact *)x)->born, &((const struct flow_fact *)y)->born);
}

static int by_frame(const void *x, const void *y)
{
    const struct choice *a = x, *b = y;
    const struct order p = {0, a->ts, a->file, a->frame}, q = {0, b->ts, b->file, b->frame};
    int d = order_compare(&p, &q);

    return d ? d : (a->number > b->number) - (a->number < b->number);
}

/* Whether a tap has clocks that differ by what one part has seen, and what another one found depends on that. */
static bool are_clocks_shared(const struct share *s)
{
    for (uint32_t i = 0; i < s->n_parts; i++)
        for (uint32_t k = 0; k < s->n_parts; k++)
            for (unsigned t = 0; t < JUDGE_TAPS; t++)
                if (i != k && s->part[i].skewed[t] && s->part[k].compares[t])
                    return true;
    return false;
}

/* --- Responses whose requests another part may have ------------------------------------------- */

/* A flow of a part with requests that responses of another part may answer. */
struct asking {
    const struct flow_fact *f;
    uint32_t part;
};

static int by_end(const void *x, const void *y)
{
    const struct flow_fact *a = ((const struct asking *)x)->f, *b = ((const struct asking *)y)->f;

    return a->tap != b->tap ? (a->tap < b->tap ? -1 : 1) : memcmp(&a->src, &b->src, sizeof a->src);
}

#define ANSWER_TRIES 256 /* flows with requests of the same host that are compared, for each flow there is */

/* Whether responses of part `i`, without requests, may answer some of the `n` flows of another one. *tries: so many
 * more are compared; where these do not suffice, they may. */
static bool answers_others(const struct share *s, uint32_t i, const struct asking *asking, size_t n, uint64_t *tries)
{
    for (uint32_t k = 0; k < s->part[i].n_facts; k++) {
        const struct flow_fact *r = &s->part[i].facts[k];
        struct flow_fact end = {.tap = r->tap, .src = r->dst};
        const struct asking key = {&end, i};
        size_t low = 0, high = r->orphan ? n : 0;
        while (low < high) {
            size_t mid = low + (high - low) / 2;
            low = by_end(&asking[mid], &key) < 0 ? mid + 1 : low;
            high = by_end(&asking[mid], &key) < 0 ? high : mid;
        }
        for (; r->orphan && low < n && by_end(&asking[low], &key) == 0; low++)
            if (!(*tries)-- || (asking[low].part != i && judge_may_answer(r, asking[low].f)))
                return true;
    }
    return false;
}

/* Whether responses without requests may answer those of another part; true without memory. */
static bool are_answers_shared(const struct share *s)
{
    size_t n = 0;
    struct asking *asking;
    uint64_t tries;
    bool are = false;

    for (uint32_t i = 0; i < s->n_parts; i++)
        n += s->part[i].n_facts;
    asking = malloc((n + 1) * sizeof *asking);
    tries = ANSWER_TRIES * (n + UINT64_C(1));
    n = 0;
    for (uint32_t i = 0; i < s->n_parts && asking; i++)
        for (uint32_t k = 0; k < s->part[i].n_facts; k++)
            if (s->part[i].facts[k].asks)
                asking[n++] = (struct asking){&s->part[i].facts[k], i};
    if (n)
        qsort(asking, n, sizeof *asking, by_end);
    for (uint32_t i = 0; i < s->n_parts && asking && !are; i++)
        are = answers_others(s, i, asking, n, &tries);
    free(asking);
    return are || !asking;
}

/* --- Marks that are compared with another tap, of another part --------------------------------- */

static int by_way(const void *x, const void *y)
{
    const struct flow_fact *a = ((const struct asking *)x)->f, *b = ((const struct asking *)y)->f;
    int d = memcmp(&a->src, &b->src, sizeof a->src);

    d = d ? d : memcmp(&a->dst, &b->dst, sizeof a->dst);
    return d ? d : (a->dqpn > b->dqpn) - (a->dqpn < b->dqpn);
}

/* Whether a flow that was marked is one of a part, and no packet of it is ECN-capable at a tap of another one; true
 * without memory. */
static bool are_marks_compared(const struct share *s)
{
    size_t n = 0, most = 0;
    struct asking *all;
    bool are = false;

    for (uint32_t i = 0; i < s->n_parts; i++)
        most += s->part[i].n_facts;
    all = malloc((most + 1) * sizeof *all);
    for (uint32_t i = 0; i < s->n_parts && all; i++)
        for (uint32_t k = 0; k < s->part[i].n_facts; k++)
            if (s->part[i].facts[k].ce || s->part[i].facts[k].plain)
                all[n++] = (struct asking){&s->part[i].facts[k], i};
    if (n)
        qsort(all, n, sizeof *all, by_way);
    for (size_t i = 0, end; i < n; i = end) {
        bool ce = false, plain = false, several = false;
        for (end = i; end < n && by_way(&all[i], &all[end]) == 0; end++) {
            ce |= all[end].f->ce;
            plain |= all[end].f->plain;
            several |= all[end].part != all[i].part;
        }
        are |= ce && plain && several;
    }
    free(all);
    return are || !all;
}

/* --- Whether they fit together ---------------------------------------------------------------- */

/* Why one process would have found something else; NULL: it would not. */
static const char *why_not_together(struct judge *j)
{
    const struct share *s = j->share;
    struct part sum = {0};
    const char *why;

    for (uint32_t i = 0; i < s->n_parts; i++) {
        for (unsigned k = 0; k < JUDGE_USES; k++)
            sum.used[k] += s->part[i].used[k];
        sum.arrives |= s->part[i].arrives;
        sum.stays |= s->part[i].stays;
    }
    why = judge_room_why(j, sum.used);
    if (why)
        return why;
    if (sum.arrives && sum.stays && s->n_parts > 1)
        return "queue pairs may have migrated";
    if (are_marks_compared(s))
        return "marks are compared between taps";
    if (are_answers_shared(s))
        return "responses to requests that were not captured may be those to another address";
    return are_clocks_shared(s) ? "the clocks of the two directions differ at a tap" : NULL;
}

/* --- All parts -------------------------------------------------------------------------------- */

/* Nothing has happened to the flows of a part yet. */
static bool begin_replay(struct part *p)
{
    uint32_t flows = 0, numbers = 0;

    for (uint32_t i = 0; i < p->n_numbers; i++) {
        flows += p->numbers[i].c.what == FLOW_BEGUN;
        numbers += p->numbers[i].c.what == FLOW_NUMBERED;
    }
    p->then = calloc(findings_n(p->findings) + 1, sizeof *p->then);
    return conn_replayed_new(&p->replayed, flows, numbers) && p->then;
}

/* Read a part. */
static bool read_part(struct part *p, struct pack *k, size_t n_files)
{
    p->findings = findings_new();
    if (!p->findings)
        return false;
    part_pack(k, p);
    for (size_t i = 0; !k->bad && i < findings_n(p->findings); i++)
        k->bad |= findings_at(p->findings, i)->file >= n_files;
    for (uint32_t i = 0; !k->bad && i < p->n_facts; i++)
        k->bad |= p->facts[i].tap >> 16 >= n_files;
    for (uint32_t i = 0; !k->bad && i < p->n_numbers; i++)
        k->bad |= p->numbers[i].c.tap >> 16 >= n_files;
    for (uint32_t i = 0; !k->bad && i < p->n_choices; i++)
        k->bad |= p->choices[i].tap >> 16 >= n_files;
    k->bad |= p->cut && p->cut_file >= n_files;
    return !k->bad && begin_replay(p);
}

/* All that the parts have, in its order. */
static bool collect(struct judge *j)
{
    struct share *s = j->share;
    size_t entries = 0, facts = 0;
    uint32_t flows = 0;

    for (uint32_t i = 0; i < s->n_parts; i++) {
        flows = findings_number_flows(s->part[i].findings, flows);
        entries += s->part[i].n_numbers + findings_n(s->part[i].findings);
        facts += s->part[i].n_facts;
    }
    s->entries = malloc((entries + 1) * sizeof *s->entries);
    s->facts = malloc((facts + 1) * sizeof *s->facts);
    if (!s->entries || !s->facts || entries > UINT32_MAX)
        return false;
    for (uint32_t i = 0; i < s->n_parts; i++) {
        const struct part *p = &s->part[i];
        for (uint32_t k = 0; k < p->n_numbers; k++)
            s->entries[s->n_entries++] = (struct entry){{p->numbers[k].at, p->numbers[k].n}, i, k, true};
        for (uint32_t k = 0; k < findings_n(p->findings); k++)
            s->entries[s->n_entries++] = (struct entry){p->found[k], i, k, false};
    }
    qsort(s->entries, s->n_entries, sizeof *s->entries, by_place);
    return true;
}

static uint32_t number_of(const struct judge *j, const struct part *p, uint32_t number)
{
    return conn_replayed_number(j->conns, &p->replayed, number);
}

/* What happened to a flow happens here. */
static void replay_change(struct judge *j, struct part *p, const struct numbering *e)
{
    struct share *s = j->share;
    bool same = order_compare(&e->at, &s->replayed) == 0;

    s->damaged |= !conn_replay(j->conns, &p->replayed, &e->c, same);
    s->replayed = e->at;
}

static void replay_finding(struct judge *j, struct part *p, uint32_t index)
{
    p->then[index] = number_of(j, p, findings_at(p->findings, index)->conn);
    findings_take(j->findings, p->findings, index, p->then[index]);
}

/* Whether findings that a part has only counted, of no flow, may be of a connection that had several numbers then in
 * one process, as other parts follow it at other taps: there they count as those of several. */
static bool are_counts_of_several(const struct judge *j)
{
    const struct share *s = j->share;

    for (uint32_t i = 0; i < s->n_parts; i++)
        for (uint32_t k = 0; k < findings_n(s->part[i].findings); k++) {
            const struct part *p = &s->part[i];
            const struct finding *f = findings_at(p->findings, k);
            if (f->times > 1 && !f->flow && p->then[k] && p->then[k] != number_of(j, p, f->conn))
                return true;
        }
    return false;
}

void judge_parts_replay(struct judge *j, enum phase phase)
{
    struct share *s = j->share;

    for (; s->at_entry < s->n_entries && !s->damaged && s->entries[s->at_entry].at.at.phase <= phase; s->at_entry++) {
        const struct entry *e = &s->entries[s->at_entry];
        struct part *p = &s->part[e->part];
        if (e->numbers)
            replay_change(j, p, &p->numbers[e->index]);
        else
            replay_finding(j, p, e->index);
    }
}

void judge_parts_sum(struct judge *j)
{
    for (uint32_t i = 0; i < j->share->n_parts; i++) {
        const struct part *p = &j->share->part[i];
        findings_sum(j->findings, p->findings);
        for (uint32_t k = 0; k < findings_n(p->findings); k++)
            findings_count_more(j->findings, p->findings, k, p->then[k]);
    }
}

/* Flows and choices in the order of one process; their numbers are known once those of the packets were replayed. */
static bool gather(struct judge *j)
{
    struct share *s = j->share;

    for (uint32_t i = 0; i < s->n_parts; i++) {
        const struct part *p = &s->part[i];
        for (uint32_t k = 0; k < p->n_facts; k++) {
            s->facts[s->n_facts] = p->facts[k];
            s->facts[s->n_facts++].conn = number_of(j, p, p->facts[k].conn);
        }
        for (uint32_t k = 0; k < p->n_choices; k++) {
            if (!grow((void **)&j->chosen.of, j->chosen.n, sizeof *j->chosen.of))
                return false;
            j->chosen.of[j->chosen.n++] = p->choices[k];
        }
    }
    qsort(s->facts, s->n_facts, sizeof *s->facts, by_birth);
    if (j->chosen.n)
        qsort(j->chosen.of, j->chosen.n, sizeof *j->chosen.of, by_frame);
    for (uint32_t i = 0; i < j->chosen.n; i++)
        j->chosen.of[i].number = i;
    return true;
}

/* Packets that were cut, and the first of them. */
static void sum_cut(struct judge *j)
{
    for (uint32_t i = 0; i < j->share->n_parts; i++) {
        const struct part *p = &j->share->part[i];
        const struct order at = {0, p->cut_ts, p->cut_file, p->cut_frame};
        const struct order first = {0, j->cut_ts, j->cut_file, j->cut_frame};
        if (p->cut && (!j->cut || order_compare(&at, &first) < 0)) {
            j->cut_frame = p->cut_frame;
            j->cut_file = p->cut_file;
            j->cut_ts = p->cut_ts;
        }
        j->cut += p->cut;
    }
}

const char *judge_absorb(struct judge *j, struct pack *parts, uint32_t n, uint64_t packets, size_t n_files)
{
    struct share *s = calloc(1, sizeof *s);
    const char *why = NULL;

    if (!s)
        return "out of memory";
    j->share = s;
    s->parts = true;
    s->part = calloc(n, sizeof *s->part);
    for (uint32_t i = 0; s->part && i < n; i++) {
        s->n_parts++;
        if (!read_part(&s->part[i], &parts[i], n_files))
            return "it is damaged";
    }
    if (!s->part || (why = why_not_together(j)))
        return s->part ? why : "out of memory";
    if (!collect(j))
        return "out of memory";
    judge_parts_replay(j, PHASE_FLOWS);
    if (s->damaged)
        return "it is damaged";
    if (are_counts_of_several(j))
        return "a connection has several numbers at several taps";
    j->packets = packets;
    j->foreign = s->part[0].foreign;
    sum_cut(j);
    return gather(j) ? NULL : "out of memory";
}
