/* layer 3 (conform): this program between two devices under test. */
#include "gen/conform/devices/between.h"

#include <errno.h>

static void seen(void *user, unsigned port, const uint8_t *data, uint32_t len, ns_t when)
{
    script_live_passed(((struct between *)user)->peer, port, data, len, when);
}

static int begin(void *user, struct event_list *events)
{
    struct between *b = user;

    return forward_begin(&b->forward, events, b->seed) ? 0 : -ENOMEM;
}

static int step(void *user, ns_t until)
{
    return forward_step(&((struct between *)user)->forward, until);
}

static void end(void *user)
{
    forward_end(&((struct between *)user)->forward);
}

static int record(void *user, const char *path, uint32_t snaplen)
{
    struct cap_error err;

    return forward_record(&((struct between *)user)->forward, path, snaplen, &err);
}

static int record_end(void *user, uint64_t *lost)
{
    struct cap_error err;

    return forward_record_end(&((struct between *)user)->forward, lost, &err);
}

static struct late *late(void *user)
{
    return &((struct between *)user)->forward.late;
}

static struct idle *idle(void *user)
{
    return &((struct between *)user)->forward.idle;
}

static ns_t epoch(void *user)
{
    return ((struct between *)user)->forward.epoch;
}

void between_init(struct between *b, struct script_live *peer)
{
    b->middle = (struct script_middle){.begin = begin,
                                       .step = step,
                                       .end = end,
                                       .record = record,
                                       .record_end = record_end,
                                       .late = late,
                                       .idle = idle,
                                       .epoch = epoch,
                                       .user = b};
    b->forward.seen = seen;
    b->forward.user = b;
    b->peer = peer;
    peer->middle = &b->middle;
}
