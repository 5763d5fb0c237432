/* layer 0 (base): how much memory the evidence about connections may take, counted where its tables grow. */
#ifndef RDMATRACE_ROOM_H
#define RDMATRACE_ROOM_H

#include "types.h"

#define ROOM_DEFAULT   (UINT64_C(1) << 30) /* bytes, if nothing else is said */
#define ROOM_PER_FLOW  65536               /* bytes: one flow is kept for each */
#define ROOM_JUDGED    8192                /* likewise where flows are judged only */
#define ROOM_EXPLAINED 24576               /* likewise where they are explained only */
#define ROOM_FLOWS_MIN 64                  /* flows kept, however little memory there is */
#define ROOM_FLOWS_MAX (UINT32_C(1) << 24)
#define ROOM_IS_SHORT  "more --memory is needed" /* why something was not kept, or not shared out */

/* Half of the memory is for tables that are larger than at first: the first half of that for whatever makes them grow,
 * the second one only for what is outstanding. */
struct room {
    uint64_t used;  /* bytes of tables beyond the size that they begin with */
    uint64_t most;  /* the most that `used` was */
    uint64_t limit; /* bytes: half of all memory */
    bool refused;   /* a table did not grow, so something outstanding was forgotten */
    bool declined;  /* likewise, and something else was */
};

/* What `memory` bytes leave for tables that grow. */
static inline struct room room_of(uint64_t memory)
{
    return (struct room){.limit = memory / 2};
}

/* Number of flows that are kept in `memory` bytes, `per_flow` for each. */
static inline uint32_t room_flows(uint64_t memory, uint32_t per_flow)
{
    uint64_t n = memory / per_flow;

    return n < ROOM_FLOWS_MIN ? ROOM_FLOWS_MIN : n > ROOM_FLOWS_MAX ? ROOM_FLOWS_MAX : (uint32_t)n;
}

/* Whether a table may grow by `bytes`, which are then counted. `outstanding`: else it would forget something that is
 * still outstanding, not only the past. NULL: no limit. */
static inline bool room_take(struct room *r, uint64_t bytes, bool outstanding)
{
    if (!r)
        return true;
    if (r->used + bytes > (outstanding ? r->limit : r->limit / 2)) {
        r->refused |= outstanding;
        r->declined |= !outstanding;
        return false;
    }
    r->used += bytes;
    if (r->used > r->most)
        r->most = r->used;
    return true;
}

/* `bytes` that room_take() counted are free again. */
static inline void room_give(struct room *r, uint64_t bytes)
{
    if (r)
        r->used -= bytes;
}

#endif
