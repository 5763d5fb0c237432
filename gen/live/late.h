/* layer 3 (live): how late the program was: on a busy host the scheduler lets it wait, and then it neither sees frames
 * nor answers them in time. What a peer does meanwhile, it does because of this host. */
#ifndef RDMATRACE_GEN_LIVE_LATE_H
#define RDMATRACE_GEN_LIVE_LATE_H

#include "types.h"

#define LATE_LEAST (1 * NS_PER_MS) /* less counts as in time */

/* Since late_begin(). Times are those of live_now(). Many frames may wait through the same delay, which is one. */
struct late {
    ns_t most, sum; /* longest delay; time within delays of LATE_LEAST and more, ns, */
    unsigned n;     /* of so many */
    ns_t until;     /* end of the latest one of them; 0: there was none */
    ns_t left;      /* end of the latest turn of the loop; 0: there was none */
};

static inline void late_begin(struct late *l)
{
    *l = (struct late){0};
}

/* Something that could have happened at `from` happens at `now`. */
static inline void late_note(struct late *l, ns_t from, ns_t now)
{
    ns_t delay = now - from;

    l->most = delay > l->most ? delay : l->most;
    if (delay < LATE_LEAST)
        return;
    l->n += from >= l->until;
    l->sum += now - (from > l->until ? from : l->until);
    l->until = now;
}

/* From `begin` on it waited for a frame, but not beyond `when`, a second at most; it goes on at `now`. */
static inline void late_waited(struct late *l, ns_t begin, ns_t when, ns_t now)
{
    ns_t until = when < begin + NS_PER_S ? when : begin + NS_PER_S;

    if (until > begin && now > until)
        late_note(l, until, now);
}

/* A turn of the loop begins; it ends. What is between two turns is a delay. */
static inline void late_enter(struct late *l, ns_t now)
{
    if (l->left)
        late_note(l, l->left, now);
}

static inline void late_leave(struct late *l, ns_t now)
{
    l->left = now;
}

#endif
