/* layer 3 (judge): one of several processes that share out the pairs of addresses of a capture, and what all have found
 * made one, equal to what one process finds that reads all.
 *
 * Each process follows the connections of its owners (conn_owner()). It also gets all packets that concern more than
 * two hosts, such as CM, CNPs, pause frames and damaged ones: the same in each process, so that what is known by them
 * is the same, too; what such a packet breaks is reported by the owner of its addresses, or by the process that leads.
 * What the judge keeps in bounded tables is bounded for each owner, so that it does not depend on who follows the
 * others.
 *
 * What is found has its place in the order of one process (struct order), and so have the changes of the numbers of
 * connections: they are replayed in this order. What compares all connections -- ECN of one class, fairness, what hosts
 * choose -- is judged from facts of each flow. Where that does not do, judge_share_not() or why_not_together() says
 * why, and one process judges all; rdmatrace-reduce(1) lists the reasons. */
#include "grow.h"
#include "pack.h"
#include "src/judge/judge_impl.h"

#include "zeros.h"
#include <stdlib.h>

#define ENTRIES_MAX (1u << 30) /* numbers, flows and choices of a part that are read, at most */

/* A number of a connection changes. */
struct numbering {
    struct order at;
    uint32_t n; /* what happens at one place of the order is numbered */
    uint32_t what, a, b;
};

struct place {
    struct order at;
    uint32_t n;
};

struct share {
    struct conn_owners owners;
    bool leads, parts; /* parts: what several processes have found was read, nothing is judged */
    struct order at;
    uint32_t n;
    struct place *found; /* of each finding */
    uint32_t n_found;
    struct numbering *numbers;
    uint32_t n_numbers;
    struct order *born; /* by flow */
    uint32_t n_born;
    const char *why_not; /* why it cannot be shared out; NULL: it can */
    bool arrives, stays; /* the first request of a flow had MigReq set; a request had it clear */
    bool compares[JUDGE_TAPS];
    bool no_memory;
    /* of parts */
    struct part *part;
    uint32_t n_parts;
    struct entry *entries;
    uint32_t n_entries, at_entry;
    struct flow_fact *facts;
    uint32_t n_facts;
};

/* What one process has found. */
struct part {
    struct findings *findings;
    struct place *found;
    struct numbering *numbers;
    uint32_t n_numbers, n_facts, n_choices;
    struct flow_fact *facts;
    struct choice *choices;
    uint32_t *number; /* by its numbers of connections: those of one process */
    uint32_t most;    /* of `number` */
    uint64_t foreign, flows, room, sights, cnps;
    bool arrives, stays, skewed[JUDGE_TAPS], compares[JUDGE_TAPS];
};

/* What a part has at one place. */
struct entry {
    struct place at;
    uint32_t part, index;
    bool numbers; /* a numbering, else a finding */
};

int order_compare(const struct order *x, const struct order *y)
{
    if (x->phase != y->phase)
        return x->phase < y->phase ? -1 : 1;
    if (x->a != y->a)
        return x->a < y->a ? -1 : 1;
    if (x->b != y->b)
        return x->b < y->b ? -1 : 1;
    return (x->c > y->c) - (x->c < y->c);
}

/* --- A part ----------------------------------------------------------------------------------- */

static void on_numbered(void *user, enum conn_numbered what, uint32_t a, uint32_t b)
{
    struct share *s = ((struct judge *)user)->share;

    if (what == NUMBER_TAKEN)
        judge_share_not(user, "there are connections of TCP");
    if (grow((void **)&s->numbers, s->n_numbers, sizeof *s->numbers))
        s->numbers[s->n_numbers++] = (struct numbering){s->at, s->n++, what, a, b};
    else
        s->no_memory = true;
}

bool judge_share(struct judge *j, const struct conn_owners *owners, bool leads)
{
    struct share *s = calloc(1, sizeof *s);

    if (!s)
        return false;
    s->owners = *owners;
    s->leads = leads;
    s->n_born = observer_flows(j->observer);
    s->born = zeros_new(s->n_born, sizeof *s->born);
    j->share = s;
    conn_on_numbered(j->conns, on_numbered, j);
    return s->born != NULL;
}

void judge_last_frame(struct judge *j, uint32_t tap, ns_t ts)
{
    stamps_last(&j->stamps, tap, ts);
}

void judge_share_packet(struct judge *j, const struct pkt *p)
{
    const struct frame *f = p->frame;

    j->share->at = (struct order){PHASE_PACKETS, f->ts, f->file, f->number};
    j->silent = false; /* of a packet that takes the fast path */
    if (p->have & H_LRH)
        judge_share_not(j, "there is native InfiniBand, whose hosts have LIDs and GIDs");
}

bool judge_is_others(struct judge *j, bool of_pair)
{
    j->silent = !conn_owners_has(&j->share->owners, j->owner);
    return of_pair && j->silent;
}

void judge_share_at(struct judge *j, enum phase phase, ns_t a, uint64_t b, uint64_t c)
{
    if (LIKELY(!j->share))
        return;
    j->share->at = (struct order){phase, a, b, c};
    j->silent = !j->share->leads;
}

void judge_share_flow(struct judge *j, enum phase phase, uint32_t flow)
{
    struct order born;

    if (LIKELY(!j->share))
        return;
    born = j->share->born[flow];
    judge_share_at(j, phase, born.a, born.b, born.c);
    j->silent = false;
}

void judge_share_pair(struct judge *j, enum phase phase, ns_t a, const struct conn_addr *x, const struct conn_addr *y)
{
    unsigned owner = conn_owner(x, y);

    j->owner = (uint8_t)owner;
    if (LIKELY(!j->share))
        return;
    judge_share_at(j, phase, a, 0, 0);
    j->silent = !conn_owners_has(&j->share->owners, owner);
}

void judge_share_born(struct judge *j, uint32_t flow)
{
    j->share->born[flow] = j->share->at;
}

void judge_share_found(struct judge *j)
{
    struct share *s = j->share;

    if (s->parts)
        return;
    if (grow((void **)&s->found, s->n_found, sizeof *s->found))
        s->found[s->n_found++] = (struct place){s->at, s->n++};
    else
        s->no_memory = true;
}

void judge_share_not(struct judge *j, const char *why)
{
    if (j->share && !j->share->why_not)
        j->share->why_not = why;
}

void judge_share_compares(struct judge *j, unsigned place)
{
    j->share->compares[place] = true;
}

void judge_share_migreq(struct judge *j, bool is_new, bool migreq)
{
    j->share->arrives |= is_new && migreq;
    j->share->stays |= !migreq;
}

void judge_share_free(struct judge *j)
{
    struct share *s = j->share;

    if (!s)
        return;
    for (uint32_t i = 0; i < s->n_parts; i++) {
        findings_free(s->part[i].findings);
        free(s->part[i].found);
        free(s->part[i].numbers);
        free(s->part[i].facts);
        free(s->part[i].choices);
        free(s->part[i].number);
    }
    zeros_free(s->born, s->n_born, sizeof *s->born);
    free(s->found);
    free(s->numbers);
    free(s->part);
    free(s->entries);
    free(s->facts);
    free(s);
    j->share = NULL;
}

/* --- Flows ------------------------------------------------------------------------------------ */

struct flow_fact *judge_flow_facts(struct judge *j, uint32_t *n)
{
    uint32_t flows = conn_counts(j->conns).flows;
    struct flow_fact *facts;

    *n = 0;
    if (j->share && j->share->parts) {
        facts = j->share->facts;
        *n = j->share->n_facts;
        j->share->facts = NULL;
        return facts;
    }
    facts = flows ? malloc(flows * sizeof *facts) : NULL;
    for (uint32_t i = 0; facts && i < flows; i++) {
        struct flow_fact f = judge_flow_fact(j, i);
        if (!f.has_ecn && !f.has_share && !f.orphan && !f.asks)
            continue;
        if (j->share)
            f.born = j->share->born[i];
        facts[(*n)++] = f;
    }
    return facts;
}

/* --- A part as bytes -------------------------------------------------------------------------- */

static void pack_place(struct pack *k, struct place *at)
{
    PACK(k, at->at.phase);
    PACK(k, at->at.a);
    PACK(k, at->at.b);
    PACK(k, at->at.c);
    PACK(k, at->n);
}

static void pack_numbering(struct pack *k, struct numbering *e)
{
    struct place at = {e->at, e->n};

    pack_place(k, &at);
    e->at = at.at;
    e->n = at.n;
    PACK(k, e->what);
    PACK(k, e->a);
    PACK(k, e->b);
    k->bad |= e->what > NUMBER_CHANGED;
}

static void pack_addr(struct pack *k, struct conn_addr *a)
{
    pack_bytes(k, a->b, sizeof a->b);
    PACK(k, a->network);
}

static void pack_fact(struct pack *k, struct flow_fact *f)
{
    struct place born = {f->born, 0};

    pack_place(k, &born);
    f->born = born.at;
    pack_addr(k, &f->src);
    pack_addr(k, &f->dst);
    PACK(k, f->tap);
    PACK(k, f->dqpn);
    PACK(k, f->conn);
    PACK(k, f->first_frame);
    PACK(k, f->first_frame_ts);
    PACK(k, f->dscp);
    PACK(k, f->has_ecn);
    PACK(k, f->capable);
    PACK(k, f->has_share);
    PACK(k, f->first);
    PACK(k, f->last);
    PACK(k, f->bytes);
    PACK(k, f->orphan);
    PACK(k, f->asks);
    PACK(k, f->have_sqpn);
    PACK(k, f->sqpn);
    PACK(k, f->paired);
    PACK(k, f->by_cm);
    PACK(k, f->have_una);
    PACK(k, f->una);
    PACK(k, f->psn);
    PACK(k, f->psn_to);
}

static void pack_choice(struct pack *k, struct choice *c)
{
    PACK(k, c->tap);
    PACK(k, c->value);
    PACK(k, c->what);
    pack_addr(k, &c->by);
    PACK(k, c->ts);
    PACK(k, c->file);
    PACK(k, c->frame);
    PACK(k, c->number);
    k->bad |= c->what > CHOSE_PSN;
}

/* `*n` entries of `size` bytes at *of, which are allocated when they are read. */
static void pack_all(struct pack *k, void **of, uint32_t *n, size_t size, void (*one)(struct pack *k, void *entry))
{
    *n = (uint32_t)pack_count(k, *n, ENTRIES_MAX, 8);
    if (!k->out && !k->bad && !(*of = calloc(*n + (size_t)1, size)))
        k->bad = true;
    for (uint32_t i = 0; i < *n && !k->bad; i++)
        one(k, (char *)*of + i * size);
}
#define PACK_ALL(k, of, n, one) pack_all(k, (void **)&(of), &(n), sizeof *(of), (void (*)(struct pack *, void *))(one))

static void pack_flags(struct pack *k, bool flags[JUDGE_TAPS])
{
    for (unsigned i = 0; i < JUDGE_TAPS; i++)
        PACK(k, flags[i]);
}

/* All of a part. */
static void pack_part(struct pack *k, struct part *p)
{
    uint32_t n = (uint32_t)findings_n(p->findings);

    findings_pack(p->findings, k);
    n = k->out ? n : (uint32_t)findings_n(p->findings);
    PACK_ALL(k, p->found, n, pack_place);
    k->bad |= n != findings_n(p->findings);
    PACK_ALL(k, p->numbers, p->n_numbers, pack_numbering);
    PACK_ALL(k, p->facts, p->n_facts, pack_fact);
    PACK_ALL(k, p->choices, p->n_choices, pack_choice);
    PACK(k, p->foreign);
    PACK(k, p->flows);
    PACK(k, p->room);
    PACK(k, p->sights);
    PACK(k, p->cnps);
    PACK(k, p->arrives);
    PACK(k, p->stays);
    pack_flags(k, p->skewed);
    pack_flags(k, p->compares);
}

/* What cannot be shared out by what the end shows. */
static const char *why_not_alone(struct judge *j)
{
    struct conn_counts n = conn_counts(j->conns);

    if (j->share->no_memory)
        return "out of memory";
    if (conn_has_paths(j->conns))
        return "connections have alternate paths";
    if (n.evicted || j->flows_lost || j->room->refused)
        return "more --memory is needed";
    if (j->n_bad_icrc == BAD_ICRCS)
        return "there are too many wrong ICRCs";
    for (unsigned i = 0; i < ICRC_SOURCES; i++)
        if (j->icrc_sources.of[i].bad && !j->icrc_sources.of[i].good)
            return "no ICRC of some senders is right";
    return j->share->why_not;
}

const char *judge_save(struct judge *j, struct pack *k)
{
    struct share *s = j->share;
    struct conn_counts n = conn_counts(j->conns);
    struct part p = {.findings = j->findings,
                     .found = s->found,
                     .numbers = s->numbers,
                     .n_numbers = s->n_numbers,
                     .choices = j->choices,
                     .n_choices = j->n_choices,
                     .foreign = j->foreign,
                     .flows = n.flows,
                     .room = j->room->most,
                     .sights = n.sights,
                     .cnps = j->n_unknown_cnp,
                     .arrives = s->arrives,
                     .stays = s->stays};
    const char *why = why_not_alone(j);

    if (why)
        return why;
    p.facts = judge_flow_facts(j, &p.n_facts);
    memcpy(p.skewed, j->skewed, sizeof p.skewed);
    memcpy(p.compares, s->compares, sizeof p.compares);
    pack_part(k, &p);
    free(p.facts);
    return NULL;
}

/* --- Parts made one --------------------------------------------------------------------------- */

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

/* Whether responses of part `i`, without requests, may answer some of the `n` flows of another one. */
static bool answers_others(const struct share *s, uint32_t i, const struct asking *asking, size_t n)
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
            if (asking[low].part != i && judge_may_answer(r, asking[low].f))
                return true;
    }
    return false;
}

/* Whether responses without requests may answer those of another part; true without memory. */
static bool are_answers_shared(const struct share *s)
{
    size_t n = 0;
    struct asking *asking;
    bool are = false;

    for (uint32_t i = 0; i < s->n_parts; i++)
        n += s->part[i].n_facts;
    asking = malloc((n + 1) * sizeof *asking);
    n = 0;
    for (uint32_t i = 0; i < s->n_parts && asking; i++)
        for (uint32_t k = 0; k < s->part[i].n_facts; k++)
            if (s->part[i].facts[k].asks)
                asking[n++] = (struct asking){&s->part[i].facts[k], i};
    if (n)
        qsort(asking, n, sizeof *asking, by_end);
    for (uint32_t i = 0; i < s->n_parts && asking && !are; i++)
        are = answers_others(s, i, asking, n);
    free(asking);
    return are || !asking;
}

/* Why one process would have found something else; NULL: it would not. */
static const char *why_not_together(struct judge *j)
{
    const struct share *s = j->share;
    struct part sum = {0};
    const struct findings **all = calloc(s->n_parts, sizeof *all);
    bool fit;

    for (uint32_t i = 0; all && i < s->n_parts; i++) {
        all[i] = s->part[i].findings;
        sum.flows += s->part[i].flows;
        sum.room += s->part[i].room;
        sum.sights += s->part[i].sights;
        sum.cnps += s->part[i].cnps;
        sum.arrives |= s->part[i].arrives;
        sum.stays |= s->part[i].stays;
    }
    fit = all && findings_fit(all, s->n_parts);
    free(all);
    if (!fit || sum.flows > observer_flows(j->observer) || sum.room > j->room->limit / 2 || sum.sights > CONN_SIGHTS)
        return "more --memory is needed";
    if (sum.cnps > UNKNOWN_CNPS)
        return "there are too many CNPs for unknown queue pairs";
    if (sum.arrives && sum.stays && s->n_parts > 1)
        return "queue pairs may have migrated";
    if (are_answers_shared(s))
        return "responses to requests that were not captured may be those to another address";
    return are_clocks_shared(s) ? "the clocks of the two directions differ at a tap" : NULL;
}

/* Read a part. */
static bool read_part(struct part *p, struct pack *k, size_t n_files)
{
    p->findings = findings_new();
    if (!p->findings)
        return false;
    pack_part(k, p);
    for (size_t i = 0; !k->bad && i < findings_n(p->findings); i++)
        k->bad |= findings_at(p->findings, i)->file >= n_files;
    for (uint32_t i = 0; !k->bad && i < p->n_facts; i++)
        k->bad |= p->facts[i].tap >> 16 >= n_files;
    for (uint32_t i = 0; !k->bad && i < p->n_choices; i++)
        k->bad |= p->choices[i].tap >> 16 >= n_files;
    p->most = p->n_numbers + 1;
    p->number = calloc(p->most, sizeof *p->number);
    return !k->bad && p->number;
}

/* All that the parts have, in its order. */
static bool collect(struct judge *j)
{
    struct share *s = j->share;
    size_t entries = 0, facts = 0;

    for (uint32_t i = 0; i < s->n_parts; i++) {
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

static uint32_t number_of(const struct part *p, uint32_t number)
{
    return number < p->most ? p->number[number] : 0;
}

static void replay_number(struct judge *j, struct part *p, const struct numbering *e)
{
    uint32_t now = conn_number_replay(j->conns, (enum conn_numbered)e->what, number_of(p, e->a), number_of(p, e->b));

    if (e->what == NUMBER_GIVEN && e->a < p->most)
        p->number[e->a] = now;
}

void judge_parts_replay(struct judge *j, enum phase phase)
{
    struct share *s = j->share;

    for (; s->at_entry < s->n_entries && s->entries[s->at_entry].at.at.phase <= phase; s->at_entry++) {
        const struct entry *e = &s->entries[s->at_entry];
        struct part *p = &s->part[e->part];
        if (e->numbers)
            replay_number(j, p, &p->numbers[e->index]);
        else
            findings_take(j->findings, p->findings, e->index, number_of(p, findings_at(p->findings, e->index)->conn));
    }
}

void judge_parts_sum(struct judge *j)
{
    for (uint32_t i = 0; i < j->share->n_parts; i++) {
        const struct part *p = &j->share->part[i];
        findings_sum(j->findings, p->findings);
        for (uint32_t k = 0; k < findings_n(p->findings); k++)
            findings_count_more(j->findings, p->findings, k, number_of(p, findings_at(p->findings, k)->conn));
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
            s->facts[s->n_facts++].conn = number_of(p, p->facts[k].conn);
        }
        for (uint32_t k = 0; k < p->n_choices; k++) {
            if (!grow((void **)&j->choices, j->n_choices, sizeof *j->choices))
                return false;
            j->choices[j->n_choices++] = p->choices[k];
        }
    }
    qsort(s->facts, s->n_facts, sizeof *s->facts, by_birth);
    if (j->n_choices)
        qsort(j->choices, j->n_choices, sizeof *j->choices, by_frame);
    for (uint32_t i = 0; i < j->n_choices; i++)
        j->choices[i].number = i;
    return true;
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
    j->packets = packets;
    j->foreign = s->part[0].foreign;
    return gather(j) ? NULL : "out of memory";
}

void judge_pack_options(struct pack *k, const struct judge_opts *o)
{
    const uint64_t v[] = {
        o->profile, o->complete, o->no_icrc, o->memory, (uint64_t)o->ack_timeout, (uint64_t)o->retry_cnt};

    for (unsigned i = 0; i < ARRAY_LEN(v); i++)
        pack_number(k, v[i]);
    for (unsigned i = 0; i < RULE_COUNT; i++)
        pack_number(k, o->off[i]);
    for (unsigned i = 0; i < JUDGE_TAPS; i++)
        pack_number(k, o->tap[i]);
}
