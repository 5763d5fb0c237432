/* layer 3 (judge): one of several processes that share out the pairs of addresses of a capture, and what all have found
 * made one, equal to what one process finds that reads all.
 *
 * Each process follows the connections of its owners (conn_owner_in()), what is captured of them in each file: what is
 * kept of a flow is that of its tap. It also gets all packets that concern more than
 * two hosts, such as CM, CNPs, pause frames and damaged ones: the same in each process, so that what is known by them
 * is the same, too; what such a packet breaks is reported by the owner of its addresses, or by the process that leads.
 * What the judge keeps in bounded tables is bounded for each owner, so that it does not depend on who follows the
 * others.
 *
 * What is found has its place in the order of one process (struct order), and so have the flows, as far as the numbers
 * of their connections depend on them: they begin, and are joined, again in this order. What compares all connections
 * -- ECN of one class, fairness, what hosts choose -- is judged from facts of each flow. Where that does not do,
 * judge_share_not() or why_not_together() says why, and one process judges all; rdmatrace-reduce(1) lists the reasons.
 */
#include "src/judge/share/part.h"

#include "grow.h"
#include "zeros.h"
#include <stdlib.h>

/* --- A part ----------------------------------------------------------------------------------- */

static void on_numbered(void *user, enum conn_numbered what, uint32_t a, uint32_t b)
{
    (void)a;
    (void)b;
    if (what == NUMBER_TAKEN)
        judge_share_not(user, "there are connections of TCP");
}

static void on_changed(void *user, const struct conn_change *c)
{
    struct share *s = ((struct judge *)user)->share;

    if (grow((void **)&s->numbers, s->n_numbers, sizeof *s->numbers))
        s->numbers[s->n_numbers++] = (struct numbering){s->at, s->n++, *c};
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
    conn_on_changed(j->conns, on_changed, j);
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

void judge_share_pair(struct judge *j, enum phase phase, ns_t a, const struct cm_ends *e)
{
    unsigned owner = conn_owner_in(&e->addr[0], &e->addr[1], e->tap >> 16);

    j->owner = (uint8_t)owner;
    if (LIKELY(!j->share))
        return;
    judge_share_at(j, phase, a, 0, 0);
    j->silent = !conn_owners_has(&j->share->owners, owner);
}

void judge_share_born(struct judge *j, uint32_t flow)
{
    if (j->share->born) /* else it is one of a part */
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
        conn_replayed_free(&s->part[i].replayed);
        free(s->part[i].then);
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
        if (!f.has_ecn && !f.has_share && !f.orphan && !f.asks && !f.ce && !f.plain)
            continue;
        if (j->share)
            f.born = j->share->born[i];
        facts[(*n)++] = f;
    }
    return facts;
}

/* --- The end ---------------------------------------------------------------------------------- */

const char *judge_share_why(const struct judge *j)
{
    if (j->share->no_memory)
        return "out of memory";
    if (conn_has_paths(j->conns))
        return "connections have alternate paths";
    if (conn_counts(j->conns).evicted || j->flows_lost || j->room->refused || j->room->declined)
        return ROOM_IS_SHORT;
    if (j->n_bad_icrc == BAD_ICRCS)
        return "there are too many wrong ICRCs";
    return j->share->why_not;
}

void judge_share_moves(const struct judge *j, bool *arrives, bool *stays)
{
    *arrives = j->share->arrives;
    *stays = j->share->stays;
}

void judge_used(const struct judge *j, uint64_t used[JUDGE_USES])
{
    struct conn_counts n = conn_counts(j->conns);

    used[USED_FLOWS] = n.flows;
    used[USED_ROOM] = j->room->most;
    used[USED_KINDS] = findings_kinds(j->findings);
    used[USED_SIGHTS] = n.sights;
    used[USED_CNPS] = j->n_unknown_cnp;
}

const char *judge_room_why(const struct judge *j, const uint64_t used[JUDGE_USES])
{
    if (used[USED_KINDS] >= FINDINGS_KINDS)
        return "there are more kinds of findings than are kept";
    if (used[USED_SIGHTS] > CONN_SIGHTS)
        return "there are more PSNs than are kept";
    if (used[USED_FLOWS] > observer_flows(j->observer) || used[USED_ROOM] > j->room->limit / 2)
        return ROOM_IS_SHORT;
    return used[USED_CNPS] > UNKNOWN_CNPS ? "there are too many CNPs for unknown queue pairs" : NULL;
}

/* What cannot be shared out by what the end shows. */
static const char *why_not_alone(const struct judge *j)
{
    for (unsigned i = 0; i < ICRC_SOURCES; i++)
        if (j->icrc_sources.of[i].bad && !j->icrc_sources.of[i].good)
            return "no ICRC of some senders is right";
    return judge_share_why(j);
}

const char *judge_save(struct judge *j, struct pack *k)
{
    struct share *s = j->share;
    struct part p = {.findings = j->findings,
                     .found = s->found,
                     .numbers = s->numbers,
                     .n_numbers = s->n_numbers,
                     .choices = j->chosen.of,
                     .n_choices = j->chosen.n,
                     .foreign = j->foreign,
                     .cut = j->cut,
                     .cut_frame = j->cut_frame,
                     .cut_file = j->cut_file,
                     .cut_ts = j->cut_ts,
                     .arrives = s->arrives,
                     .stays = s->stays};
    const char *why = why_not_alone(j);

    if (why)
        return why;
    judge_used(j, p.used);
    p.facts = judge_flow_facts(j, &p.n_facts);
    memcpy(p.skewed, j->skewed, sizeof p.skewed);
    memcpy(p.compares, s->compares, sizeof p.compares);
    part_pack(k, &p);
    free(p.facts);
    return NULL;
}
