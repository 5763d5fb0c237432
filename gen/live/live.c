/* layer 3 (live): the event loop of an endpoint on a real network. */
#include "gen/live/live.h"
#include "clock.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>

#define RX_BATCH     64
#define TX_BATCH     256
#define BLOCKED_WAIT (100 * NS_PER_US)

bool live_can_send(struct live *l)
{
    if (l->backend->ops->room(l->backend))
        return true;
    l->blocked = l->backend->ops->flush(l->backend) == -EAGAIN;
    return !l->blocked && l->backend->ops->room(l->backend);
}

bool live_net_out(struct live *l, const uint8_t *data, uint32_t len)
{
    int r = backend_send(l->backend, data, len);

    if (r == -EAGAIN) {
        l->backend->ops->flush(l->backend);
        r = backend_send(l->backend, data, len);
    }
    if (r == -EAGAIN)
        return false;
    if (r < 0) {
        l->unsent++;
        return true;
    }
    idle_frame(&l->idle, live_now());
    live_record(l, data, len, false, NULL);
    return true;
}

void live_send(struct live *l, const uint8_t *data, uint32_t len)
{
    l->unsent += !live_net_out(l, data, len);
}

void live_send_link(struct live *l, const uint8_t *frame, uint32_t len)
{
    if (len && backend_send(l->backend, frame, len) == 0)
        live_record(l, frame, len, false, NULL);
}

void live_net_in(struct live *l, const uint8_t *data, uint32_t len, ns_t now)
{
    ep_rx(l->ep, data, len, now);
    l->progressed = true;
}

/* Convert the frame's time of arrival to the time of day, whatever clock stamped it, and note how late it is taken.
 * Returns it on the clock of live_now(). */
static ns_t when_taken(struct live *l, struct backend_frame *f)
{
    ns_t now = live_now(), today = clock_ns(CLOCK_REALTIME), age;

    if (f->ts && f->stamp == BACKEND_STAMPS_HARDWARE)
        f->ts = stamps_time(&l->stamps, f->ts, today);
    age = f->ts ? today - f->ts : 0;
    age = age > 0 && age < NS_PER_S ? age : 0;
    late_mark(&l->late, now);
    late_note(&l->late, now - age, now);
    idle_frame(&l->idle, now);
    return now - age;
}

const char *live_stamps_str(const struct live *l)
{
    enum backend_stamps by = (enum backend_stamps)l->backend->stamps;
    static char text[160];
    uint64_t late = l->backend->stats.late_stamps;

    snprintf(text, sizeof text, "%s%s", backend_stamps_str(by),
             stamps_in_step(&l->stamps) ? "" : ", whose clock is not this host's and was brought into step");
    if (late)
        snprintf(text + strlen(text), sizeof text - strlen(text), "; of %s by the kernel", count_str(late, "frame"));
    return text;
}

static int take_frames(struct live *l, bool *busy)
{
    uint8_t answer[IDENTITY_FRAME_MAX];
    unsigned most = l->burst && l->burst < RX_BATCH ? l->burst : RX_BATCH;
    struct backend_frame f;
    int r = 0;

    for (unsigned i = 0; i < most && (r = l->backend->ops->rx(l->backend, &f)) > 0; i++) {
        ns_t when = l->record || l->frame ? when_taken(l, &f) : 0;
        live_record_in(l, f.data, f.len, f.ts);
        *busy = true;
        if (unreachable_rx(&l->unreachable, l->id.gid, f.data, f.len)) /* an error quotes a packet, and is none */
            continue;
        live_send_link(l, answer, identity_rx(&l->id, f.data, f.len, answer));
        if (l->frame)
            l->frame(l->user, f.data, f.len, when);
        else if (l->net)
            live_net_pass(l->net, l, false, f.data, f.len, live_now());
        else
            ep_rx(l->ep, f.data, f.len, live_now());
    }
    if (r == 0)
        live_record_caught_up(l);
    if (l->net)
        live_net_run(l->net, l, live_now());
    return r < 0 ? r : 0;
}

/* Frames of the endpoint pass the events and nodes first, which may hold them. */
static void send_through_net(struct live *l, bool *busy)
{
    uint8_t frame[EP_FRAME_MAX];
    int len;

    live_net_learn(l->net, l->ep);
    live_net_run(l->net, l, live_now());
    for (unsigned i = 0;
         i < TX_BATCH && live_net_ready(l->net) && (len = ep_tx(l->ep, frame, sizeof frame, live_now())) > 0; i++) {
        live_net_pass(l->net, l, true, frame, (uint32_t)len, live_now());
        *busy = true;
    }
    live_net_run(l->net, l, live_now());
}

static int send_frames(struct live *l, bool *busy)
{
    int r = 0, len;

    if (l->net)
        send_through_net(l, busy);
    for (unsigned i = 0; i < TX_BATCH && !l->net; i++) {
        uint8_t *room = l->backend->ops->room(l->backend);
        if (!room) {
            r = l->backend->ops->flush(l->backend);
            if (r < 0)
                break;
            continue;
        }
        ns_t now = live_now();
        late_mark(&l->late, now);
        len = ep_tx(l->ep, room, BACKEND_FRAME_MAX, now);
        if (len <= 0)
            break;
        idle_frame(&l->idle, now);
        live_record(l, room, (uint32_t)len, false, NULL);
        l->backend->ops->push(l->backend, (uint32_t)len);
        *busy = true;
    }
    if (r == 0)
        r = l->backend->ops->flush(l->backend);
    l->blocked = r == -EAGAIN || (l->net && !live_net_ready(l->net));
    return r == -EAGAIN ? 0 : r;
}

/* Wait for a frame, until `when`; at `due` something is to be done. */
static int wait_until(struct live *l, ns_t when, ns_t due)
{
    struct pollfd p = {.fd = l->backend->fd, .events = POLLIN};
    ns_t begin = live_now(), end;
    int r;

    late_mark(&l->late, begin);
    if (l->backend->stamps == BACKEND_STAMPS_NONE)
        late_caught_up(&l->late, begin);
    r = live_wait(&p, p.fd >= 0, when);
    end = live_now();
    late_waited(&l->late, begin, due, end);
    late_mark_waited(&l->late, end);
    if (!l->blocked) /* else it has frames to send, which its interface does not take */
        idle_waited(&l->idle, begin, end);
    backend_polled(l->backend, p.revents);
    return r;
}

static int step(struct live *l, ns_t deadline, ns_t due)
{
    bool busy = false;
    ns_t next, now;
    int r;

    l->progressed = false;
    if (live_stopped())
        return -EINTR;
    if ((r = backend_check(l->backend)) < 0)
        return r;
    if (l->net)
        live_net_learn(l->net, l->ep);
    if ((r = take_frames(l, &busy)) < 0)
        return backend_why(l->backend, r);
    now = live_now();
    if (ep_next_expiry(l->ep) <= now) {
        ep_expire(l->ep, now);
        busy = true;
    }
    cm_agent_run(l->cm, now);
    if ((r = send_frames(l, &busy)) < 0)
        return backend_why(l->backend, r);
    if (cm_agent_raised(l->cm) != l->raised)
        l->progressed = true;
    l->raised = cm_agent_raised(l->cm);
    if (busy || l->progressed)
        return 0;
    next = ep_next_expiry(l->ep);
    if (cm_agent_next(l->cm) < next)
        next = cm_agent_next(l->cm);
    if (l->net && live_net_next(l->net) < next)
        next = live_net_next(l->net);
    if (l->blocked && now + BLOCKED_WAIT < next)
        next = now + BLOCKED_WAIT;
    return wait_until(l, next < deadline ? next : deadline, next < due ? next : due);
}

int live_step(struct live *l, ns_t deadline)
{
    return live_look(l, deadline, deadline);
}

int live_look(struct live *l, ns_t deadline, ns_t due)
{
    int r;

    late_mark(&l->late, live_now());
    r = step(l, deadline, due);
    late_mark(&l->late, live_now());
    return r;
}

int live_cm_event(struct live *l, int channel, struct rdmacm_event *e, ns_t end)
{
    int r = 0;

    while (r == 0 && !rdmacm_get_event(ep_verbs(l->ep)->cm, channel, e))
        r = live_now() > end ? -ETIMEDOUT : live_step(l, end);
    return r;
}
