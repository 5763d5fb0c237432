/* layer 4 (tool): pairs of addresses shared out among parts of this process. */
#include "src/cli/runs/owners.h"

#include "apart.h"
#include "pack.h"
#include "src/cli/runs/parts.h"
#include "src/conn/addr.h"
#include "src/cores/turns.h"
#include "src/scan/first.h"

#include <stdatomic.h>
#include <stdlib.h>

/* Each part looks at packets of all, which is of use while all parts together look at less than twice as many packets
 * as there are. Packets after which that is asked first; then after twice as many, and so on. */
#define LOOK_AT_FROM 4096

/* A part, and what its thread writes. */
struct owner {
    _Alignas(64) struct judge *judge;
    const char *why; /* it cannot be one of several */
    uint64_t used[JUDGE_USES];
    struct buf found;
};

struct owners {
    struct in_parts in; /* first */
    const struct judge *whole;
    size_t n_files;
    struct owner of[TURNS_PARTS];
    /* Of who sorts. */
    _Alignas(64) struct first *first; /* by file */
    struct number_place latest;
    ns_t first_ts;
    uint64_t packets, of_all, look_at;
    _Alignas(64) atomic_bool arrives, stays; /* judge_share_moves() of any part */
    _Atomic uint64_t used[JUDGE_USES];       /* by all */
    const char *why;                         /* packets cannot be shared out */
};

/* --- Packets ---------------------------------------------------------------------------------- */

static uint64_t not_shared(struct owners *o, const char *why)
{
    o->why = why;
    return TURNS_ENOUGH;
}

static bool are_too_many_of_all(struct owners *o)
{
    if (LIKELY(o->packets < o->look_at))
        return false;
    o->look_at *= 2;
    return o->of_all * o->in.n > o->packets;
}

static uint64_t parts_of(struct in_parts *in, const struct pkt *p)
{
    struct owners *o = (struct owners *)in;
    const struct frame *f = p->frame;
    struct conn_addr src, dst;
    bool tells;

    if (UNLIKELY(!in_parts_follows(&o->latest, f)))
        return not_shared(o, "packets do not follow each other in time");
    conn_addr_of(p, &src, &dst);
    o->first_ts = o->packets ? o->first_ts : f->ts;
    tells = first_seen(&o->first[f->file], p, conn_addr_hash(&src));
    o->packets++;
    if (LIKELY(is_of_pair(p) && !tells))
        return TURNS_PART(conn_owner_in(&src, &dst, f->file) * in->n / CONN_OWNERS);
    o->of_all += !is_of_pair(p);
    return are_too_many_of_all(o) ? not_shared(o, "most packets concern all connections") : TURNS_ALL;
}

static struct judge *judge_of(const struct in_parts *in, unsigned part)
{
    return ((const struct owners *)in)->of[part].judge;
}

static void take(struct in_parts *in, unsigned part, struct pkt *p)
{
    judge_packet(judge_of(in, part), p);
}

static void fetch(struct in_parts *in, unsigned part)
{
    judge_fetch(judge_of(in, part));
}

static void ahead(struct in_parts *in, unsigned part, const struct frame *f)
{
    judge_expect(judge_of(in, part), f);
}

/* Whether there is room for what all parts use, once this part's use is counted. */
static const char *count_use(struct owners *o, struct owner *mine)
{
    uint64_t used[JUDGE_USES];

    judge_used(mine->judge, used);
    if (!in_parts_count(o->used, mine->used, used, JUDGE_USES))
        return NULL;
    for (unsigned i = 0; i < JUDGE_USES; i++)
        used[i] = atomic_load(&o->used[i]);
    return judge_room_why(o->whole, used);
}

static bool go_on(struct in_parts *in, unsigned part)
{
    struct owners *o = (struct owners *)in;
    struct owner *mine = &o->of[part];
    bool arrives, stays;

    judge_share_moves(mine->judge, &arrives, &stays);
    if (arrives && !atomic_load(&o->arrives))
        atomic_store(&o->arrives, true);
    if (stays && !atomic_load(&o->stays))
        atomic_store(&o->stays, true);
    if (!mine->why)
        mine->why = judge_share_why(mine->judge);
    if (!mine->why)
        mine->why = count_use(o, mine);
    if (!mine->why && atomic_load(&o->arrives) && atomic_load(&o->stays))
        mine->why = "queue pairs may have migrated";
    return !mine->why;
}

/* --- From start to end ------------------------------------------------------------------------ */

struct owners *owners_new(const struct judge *whole, const struct judge_opts *opts, unsigned n, size_t n_files)
{
    struct owners *o = apart_new(1, sizeof *o);
    bool ok;

    if (!o)
        return NULL;
    o->in =
        (struct in_parts){.n = n, .parts_of = parts_of, .take = take, .go_on = go_on, .fetch = fetch, .ahead = ahead};
    o->whole = whole;
    o->n_files = n_files;
    o->look_at = LOOK_AT_FROM;
    o->first = calloc(n_files, sizeof *o->first);
    ok = o->first != NULL;
    for (unsigned i = 0; i < n && ok; i++) {
        struct conn_owners mine = part_owners(i + 1, n);
        o->of[i].judge = judge_new(opts);
        ok = o->of[i].judge && judge_share(o->of[i].judge, &mine, i == 0);
    }
    if (ok)
        return o;
    owners_free(o);
    return NULL;
}

void owners_free(struct owners *o)
{
    if (!o)
        return;
    for (unsigned i = 0; i < o->in.n; i++) {
        judge_free(o->of[i].judge);
        buf_free(&o->of[i].found);
    }
    for (size_t i = 0; o->first && i < o->n_files; i++)
        first_free(&o->first[i]);
    free(o->first);
    free(o);
}

struct in_parts *owners_in(struct owners *o)
{
    return o ? &o->in : NULL;
}

ns_t owners_first(const struct owners *o)
{
    return o->first_ts;
}

void owners_drops(struct owners *o, uint16_t file, uint64_t drops)
{
    for (unsigned i = 0; i < o->in.n; i++)
        judge_drops(o->of[i].judge, file, drops);
}

/* All parts know when the last frame of each tap was captured. False without memory. */
static bool tell_last_frames(const struct owners *o, struct judge *j)
{
    bool ok = true;

    for (size_t i = 0; i < o->n_files && ok; i++) {
        uint32_t n = first_taps(&o->first[i]);
        int64_t *last = first_last(&o->first[i], n);
        for (uint32_t k = 0; last && k < n; k++)
            judge_last_frame(j, (uint32_t)i << 16 | k, last[k]);
        ok = last != NULL;
        free(last);
    }
    return ok;
}

/* What a part has found, as bytes; then its judge is of no more use. */
static const char *end_part(const struct owners *o, struct owner *mine, bool unread)
{
    struct pack k = {.out = &mine->found};
    const char *why;

    if (mine->why)
        return mine->why;
    if (unread)
        judge_unread(mine->judge);
    if (!tell_last_frames(o, mine->judge))
        return "out of memory";
    judge_part_end(mine->judge);
    why = judge_save(mine->judge, &k);
    judge_free(mine->judge);
    mine->judge = NULL;
    return mine->found.err ? "out of memory" : why;
}

const char *owners_join(struct owners *o, struct judge *whole, uint64_t packets, bool unread)
{
    struct pack parts[TURNS_PARTS];
    const char *why = o->why;

    for (size_t i = 0; i < o->n_files && !why; i++)
        if (o->first[i].lost)
            why = "there are more senders or interfaces than are kept";
    for (unsigned i = 0; i < o->in.n && !why; i++) {
        why = end_part(o, &o->of[i], unread);
        parts[i] = (struct pack){.p = (const uint8_t *)o->of[i].found.p,
                                 .end = (const uint8_t *)o->of[i].found.p + o->of[i].found.len};
    }
    return why ? why : judge_absorb(whole, parts, o->in.n, packets, o->n_files);
}
