/* layer 4 (tool): the hosts of a capture shared out among parts of this process. */
#include "src/cli/runs/host_owners.h"

#include "apart.h"
#include "room.h"
#include "src/cli/runs/hosts_part.h"
#include "src/cli/runs/in_parts.h"
#include "src/cores/turns.h"
#include "src/scan/first.h"

#include <stdlib.h>

/* Packets after which it is asked, once, how evenly they are shared out. If a part follows more than so many percent of
 * them, parts are of no use: one host talks to all others, there are few hosts, or many packets are of all parts, such
 * as datagrams. */
#define LOOK_AT        16384
#define FOLLOWED_MOST  75
#define KEPT_OF_MEMORY 8 /* what all parts have found takes as much of --memory as 1 / this, at most */

/* A part, and what its thread writes. */
struct host_part {
    _Alignas(64) struct trace *t;
    struct trace_share share;
    struct buf found;
    uint64_t used[HOSTS_USES], kept;
    const char *why; /* it cannot be one of several */
};

struct host_owners {
    struct in_parts in; /* first */
    const struct trace_cmd *cmd;
    struct trace *whole;
    uint64_t room; /* bytes of what may be found */
    struct host_part of[HOST_OWNERS_MOST];
    struct digest_end *ends; /* by file: when the last frame of each tap was captured */
    struct trace_share all;  /* host_owners_join() */
    struct pack parts[HOST_OWNERS_MOST];
    /* Of who sorts. */
    _Alignas(64) struct number_place latest;
    struct first *first; /* by file */
    uint64_t packets, given[HOST_OWNERS_MOST];
    const char *why;                                /* packets cannot be shared out */
    _Alignas(64) _Atomic uint64_t used[HOSTS_USES]; /* by all */
    _Atomic uint64_t kept;
};

/* --- Packets ---------------------------------------------------------------------------------- */

static uint64_t not_shared(struct host_owners *o, const char *why)
{
    o->why = why;
    return TURNS_ENOUGH;
}

/* Whether a part follows so many packets that the others are of no use. */
static bool are_uneven(const struct host_owners *o)
{
    for (unsigned i = 0; i < o->in.n; i++)
        if (o->given[i] * 100 > o->packets * FOLLOWED_MOST)
            return true;
    return false;
}

static uint64_t parts_of(struct in_parts *in, const struct pkt *p)
{
    struct host_owners *o = (struct host_owners *)in;
    const struct frame *f = p->frame;
    struct conn_addr src, dst;
    unsigned a, b;
    bool tells;

    if (UNLIKELY(!in_parts_follows(&o->latest, f)))
        return not_shared(o, "packets do not follow each other in time");
    conn_addr_of(p, &src, &dst);
    tells = first_seen(&o->first[f->file], p, conn_addr_hash(&src));
    if (UNLIKELY(++o->packets == LOOK_AT && are_uneven(o)))
        return not_shared(o, "a part would follow most packets");
    if (UNLIKELY(!hosts_part_is_theirs(p))) {
        for (unsigned i = 0; i < in->n; i++)
            o->given[i]++;
        return TURNS_ALL;
    }
    a = hosts_part_owner(&src, f->file) * in->n / CONN_OWNERS;
    b = hosts_part_owner(&dst, f->file) * in->n / CONN_OWNERS;
    o->given[a]++;
    o->given[b] += a != b;
    return UNLIKELY(tells) ? TURNS_ALL : TURNS_PART(a) | TURNS_PART(b);
}

static void take(struct in_parts *in, unsigned part, struct pkt *p)
{
    struct host_owners *o = (struct host_owners *)in;

    trace_give_part(o->cmd, o->of[part].t, p);
}

static void fetch(struct in_parts *in, unsigned part)
{
    observer_fetch(((struct host_owners *)in)->of[part].t->observer);
}

/* Whether there is room for what all parts use, once this part's use is counted. */
static const char *count_use(struct host_owners *o, struct host_part *mine)
{
    uint64_t used[HOSTS_USES], kept = hosts_part_kept(mine->t->hosts);

    hosts_part_used(mine->t, used);
    in_parts_count(&o->kept, &mine->kept, &kept, 1);
    if (atomic_load(&o->kept) > o->room)
        return ROOM_IS_SHORT;
    if (!in_parts_count(o->used, mine->used, used, HOSTS_USES))
        return NULL;
    for (unsigned i = 0; i < HOSTS_USES; i++)
        used[i] = atomic_load(&o->used[i]);
    return hosts_part_room_why(o->whole, used);
}

static bool go_on(struct in_parts *in, unsigned part)
{
    struct host_owners *o = (struct host_owners *)in;
    struct host_part *mine = &o->of[part];

    if (!mine->why)
        mine->why = hosts_part_why(mine->t->hosts, mine->t);
    if (!mine->why)
        mine->why = count_use(o, mine);
    return !mine->why;
}

/* --- From start to end ------------------------------------------------------------------------ */

static bool begin_part(struct host_owners *o, unsigned i)
{
    struct host_part *mine = &o->of[i];

    mine->share = (struct trace_share){
        .owners = part_owners(i + 1, o->in.n), .leads = i == 0, .found = &mine->found, .silent = true};
    mine->t = trace_begin_part(o->cmd, o->whole, &mine->share);
    return mine->t && !mine->share.why;
}

struct host_owners *host_owners_new(const struct trace_cmd *cmd, struct trace *t, bool all)
{
    unsigned n = all || hosts_part_needs_all(t) ? 0 : min_u32(trace_may_apart(t), HOST_OWNERS_MOST);
    struct host_owners *o = n >= HOST_OWNERS_LEAST ? apart_new(1, sizeof *o) : NULL;

    if (!o)
        return NULL;
    o->in = (struct in_parts){.n = n, .parts_of = parts_of, .take = take, .go_on = go_on, .fetch = fetch};
    o->cmd = cmd;
    o->whole = t;
    o->room = (t->memory ? t->memory : ROOM_DEFAULT) / KEPT_OF_MEMORY;
    o->first = calloc(t->n_files, sizeof *o->first);
    o->ends = calloc(t->n_files, sizeof *o->ends);
    for (unsigned i = 0; i < n; i++)
        if (!o->first || !o->ends || !begin_part(o, i)) {
            host_owners_free(o);
            return NULL;
        }
    return o;
}

void host_owners_free(struct host_owners *o)
{
    if (!o)
        return;
    for (unsigned i = 0; i < o->in.n; i++) {
        trace_free_part(o->cmd, o->of[i].t);
        buf_free(&o->of[i].found);
    }
    for (size_t i = 0; i < o->whole->n_files; i++) {
        if (o->first)
            first_free(&o->first[i]);
        if (o->ends)
            free(o->ends[i].last);
    }
    free(o->first);
    free(o->ends);
    free(o);
}

struct in_parts *host_owners_in(struct host_owners *o)
{
    return o ? &o->in : NULL;
}

/* What is known of the taps when all packets were read. */
static const char *end_taps(struct host_owners *o)
{
    for (size_t i = 0; i < o->whole->n_files; i++) {
        uint32_t n = first_taps(&o->first[i]);
        if (o->first[i].lost)
            return "there are more senders or interfaces than are kept";
        o->ends[i].info.n_ifaces = n;
        o->ends[i].last = first_last(&o->first[i], n);
        if (!o->ends[i].last)
            return "out of memory";
    }
    return NULL;
}

/* What a part has found, as bytes; then the part is of no more use. */
static const char *end_part(struct host_owners *o, struct host_part *mine)
{
    int status;

    if (mine->why)
        return mine->why;
    mine->share.ends = o->ends;
    mine->share.n_ends = o->whole->n_files;
    status = trace_finish_part(o->cmd, mine->t, o->whole->failed);
    trace_free_part(o->cmd, mine->t);
    mine->t = NULL;
    return status == EXIT_OK ? mine->share.why : "out of memory";
}

struct trace_share *host_owners_join(struct host_owners *o, const char **why)
{
    *why = o->why ? o->why : end_taps(o);
    for (unsigned i = 0; i < o->in.n && !*why; i++) {
        const struct buf *found = &o->of[i].found;
        *why = end_part(o, &o->of[i]);
        o->parts[i] = (struct pack){.p = (const uint8_t *)found->p, .end = (const uint8_t *)found->p + found->len};
    }
    o->all = (struct trace_share){.packets = o->whole->frames, .parts = o->parts, .n_parts = o->in.n, .silent = true};
    if (*why)
        return NULL;
    *why = "what the parts have found cannot be made one";
    return &o->all;
}
