/* layer 3 (judge): what one of several processes has found, as bytes, and the options that all must share. */
#include "src/judge/share/part.h"

#include <stdlib.h>

#define ENTRIES_MAX (1u << 30) /* numbers, flows and choices of a part that are read, at most */

static void pack_place(struct pack *k, struct place *at)
{
    PACK(k, at->at.phase);
    PACK(k, at->at.a);
    PACK(k, at->at.b);
    PACK(k, at->at.c);
    PACK(k, at->n);
}

static void pack_addr(struct pack *k, struct conn_addr *a)
{
    pack_bytes(k, a->b, sizeof a->b);
    PACK(k, a->network);
}

static void pack_numbering(struct pack *k, struct numbering *e)
{
    struct place at = {e->at, e->n};

    pack_place(k, &at);
    e->at = at.at;
    e->n = at.n;
    conn_change_pack(k, &e->c);
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
    PACK(k, f->ce);
    PACK(k, f->plain);
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

void part_pack(struct pack *k, struct part *p)
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
    for (unsigned i = 0; i < JUDGE_USES; i++)
        PACK(k, p->used[i]);
    PACK(k, p->cut);
    PACK(k, p->cut_frame);
    PACK(k, p->cut_file);
    PACK(k, p->cut_ts);
    PACK(k, p->arrives);
    PACK(k, p->stays);
    pack_flags(k, p->skewed);
    pack_flags(k, p->compares);
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
