/* layer 3 (live): the clock of an interface against that of this host. */
#include "gen/live/clock_sync.h"

static ns_t delay_of(const struct stamps *s)
{
    return s->least < s->before ? s->least : s->before;
}

bool stamps_in_step(const struct stamps *s)
{
    return !s->known || (delay_of(s) >= 0 && delay_of(s) < STAMPS_STEP);
}

ns_t stamps_time(struct stamps *s, ns_t ts, ns_t now)
{
    ns_t delay = now - ts;

    if (!s->known || now >= s->end) {
        s->before = s->known && now < s->end + STAMPS_WINDOW ? s->least : delay;
        s->least = delay;
        s->end = now + STAMPS_WINDOW;
        s->known = true;
    }
    if (delay < s->least)
        s->least = delay;
    return stamps_in_step(s) ? ts : ts + delay_of(s);
}
