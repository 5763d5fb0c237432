/* layer 3 (live): frames are forwarded between two ports. */
#include "gen/live/forward.h"
#include "clock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define RX_BATCH     64
#define BLOCKED_WAIT (100 * NS_PER_US)
#define HOLD         (100 * NS_PER_MS)

/* --- The bridge's callbacks ------------------------------------------------------------------- */

static bool send_frame(void *user, unsigned port, const uint8_t *data, uint32_t len)
{
    struct backend *k = ((struct forward *)user)->backend[port];

    if (backend_send(k, data, len) == 0)
        return true;
    k->ops->flush(k);
    return backend_send(k, data, len) == 0;
}

static void record(void *user, unsigned port, bool in, const uint8_t *data, uint32_t len, const char *note)
{
    struct forward *w = user;
    struct frame f = {
        .data = data, .caplen = min_u32(len, FRAME_MAX), .len = len, .linktype = LINK_ETHERNET, .has_ts = true};

    if (!w->record || w->record_err)
        return;
    f.flags = in ? 1 : 2;
    f.ts = w->epoch + w->now;
    f.iface = port;
    f.comment = *note ? note : NULL;
    f.comment_len = (uint32_t)strlen(note);
    w->record_err = cap_write(w->record, &f, &w->iface[port]);
}

static void matched(void *user, unsigned port, const char *note)
{
    struct forward *w = user;

    if (w->matched)
        w->matched(w->user, port, note);
}

/* --- Opening and closing ---------------------------------------------------------------------- */

int forward_open(struct forward *w, struct backend_error *err)
{
    int r = 0;

    w->now = w->start = live_now();
    w->epoch = clock_ns(CLOCK_REALTIME) - w->now;
    for (unsigned i = 0; i < NET_HOSTS && r == 0; i++) {
        bool spec = strchr(w->name[i], ':') != NULL;
        r = backend_open(&w->backend[i], spec ? w->name[i] : "packet:bridge", spec ? NULL : w->name[i], err);
        if (r == 0)
            w->backend[i]->say = w->say;
    }
    return r;
}

/* Forget what came in while nothing was forwarded. */
static void forget(struct forward *w, unsigned port)
{
    struct backend_frame f;

    if (backend_check(w->backend[port]) >= 0)
        while (w->backend[port]->ops->rx(w->backend[port], &f) > 0)
            continue;
}

bool forward_begin(struct forward *w, struct event_list *events, uint64_t seed)
{
    struct bridge_config c = {.events = events,
                              .seed = seed,
                              .mtu = min_u32(w->backend[0]->mtu, w->backend[1]->mtu),
                              .hold = HOLD,
                              .send = send_frame,
                              .record = record,
                              .matched = matched,
                              .user = w};

    for (unsigned i = 0; i < NET_HOSTS; i++)
        forget(w, i);
    bridge_free(w->bridge);
    w->bridge = bridge_new(&c);
    return w->bridge != NULL;
}

static int flush(struct forward *w, bool *blocked)
{
    *blocked = bridge_blocked(w->bridge);
    for (unsigned i = 0; i < NET_HOSTS; i++) {
        int r = w->backend[i]->ops->flush(w->backend[i]);
        if (r == -EAGAIN)
            *blocked = true;
        else if (r < 0)
            return backend_why(w->backend[i], r);
    }
    return 0;
}

void forward_end(struct forward *w)
{
    bool blocked;

    w->now = live_now();
    bridge_end(w->bridge, w->now);
    flush(w, &blocked);
}

void forward_close(struct forward *w)
{
    bridge_free(w->bridge);
    w->bridge = NULL;
    for (unsigned i = 0; i < NET_HOSTS; i++)
        backend_close(w->backend[i]);
}

/* --- The capture ------------------------------------------------------------------------------ */

int forward_record(struct forward *w, const char *path, uint32_t snaplen, struct cap_error *err)
{
    struct cap_writer_opts o = {
        .format = CAP_WRITE_PCAPNG, .snaplen = snaplen, .linktype = LINK_ETHERNET, .app = "rdmagen"};

    for (unsigned i = 0; i < NET_HOSTS; i++) {
        const struct backend_stats *s = w->backend[i] ? backend_stats(w->backend[i]) : NULL;
        w->iface[i] =
            (struct cap_iface){.linktype = LINK_ETHERNET, .tsresol = 9, .name = (char *)(uintptr_t)w->name[i]};
        w->record_from[i] = s ? s->received : 0;
        w->dropped_from[i] = s ? s->dropped : 0;
    }
    w->record_err = cap_writer_open(&w->record, path, &o, err);
    if (w->record_err < 0)
        return w->record_err;
    for (unsigned i = 0; i < NET_HOSTS && w->record_err == 0; i++)
        w->record_err = cap_write_iface(w->record, 0, i, &w->iface[i]);
    return 0;
}

int forward_record_end(struct forward *w, uint64_t *lost, struct cap_error *err)
{
    int r;

    *lost = 0;
    if (!w->record)
        return 0;
    for (unsigned i = 0; i < NET_HOSTS; i++) {
        const struct backend_stats *s = w->backend[i] ? backend_stats(w->backend[i]) : NULL;
        if (!s)
            continue;
        w->iface[i].os_dropped = s->dropped - w->dropped_from[i];
        w->iface[i].received = s->received - w->record_from[i] + w->iface[i].os_dropped;
        w->iface[i].has_drops = true;
        *lost += w->iface[i].os_dropped;
        cap_write_stats(w->record, 0, i, &w->iface[i]);
    }
    r = cap_writer_close(w->record, err);
    w->record = NULL;
    return r;
}

/* --- The loop --------------------------------------------------------------------------------- */

/* Receive frames on a port. Returns their number, or a negative errno. */
static int take(struct forward *w, unsigned port)
{
    struct backend_frame f;
    int n = 0, r = 0;

    for (; n < RX_BATCH && w->received < w->count && bridge_ready(w->bridge, port); n++) {
        r = w->backend[port]->ops->rx(w->backend[port], &f);
        if (r <= 0)
            break;
        w->received++;
        w->now = live_now();
        idle_frame(&w->idle, w->now);
        if (w->seen)
            w->seen(w->user, port, f.data, f.len, w->now);
        bridge_rx(w->bridge, port, f.data, f.len, f.lost, w->now);
    }
    return r < 0 ? backend_why(w->backend[port], r) : n;
}

static int wait_for_work(struct forward *w, bool blocked, ns_t end)
{
    struct pollfd fds[NET_HOSTS];
    ns_t next = bridge_next(w->bridge), now;
    int r;

    for (unsigned i = 0; i < NET_HOSTS; i++) /* poll() ignores a negative descriptor */
        fds[i] = (struct pollfd){.fd = bridge_ready(w->bridge, i) ? w->backend[i]->fd : -1, .events = POLLIN};
    if (blocked && w->now + BLOCKED_WAIT < next)
        next = w->now + BLOCKED_WAIT;
    next = next < end ? next : end;
    late_mark(&w->late, w->now);
    if (next > w->now)
        late_caught_up(&w->late, w->now); /* frames are stamped when they are taken */
    r = live_wait(fds, NET_HOSTS, next);
    now = live_now();
    late_waited(&w->late, w->now, next, now);
    late_mark_waited(&w->late, now);
    if (!blocked && next > w->now) /* else it has frames to send, or looks for more */
        idle_waited(&w->idle, w->now, now);
    for (unsigned i = 0; i < NET_HOSTS; i++)
        backend_polled(w->backend[i], fds[i].revents);
    return r;
}

int forward_step(struct forward *w, ns_t end)
{
    bool blocked;
    int n[NET_HOSTS], r;

    w->now = live_now();
    late_mark(&w->late, w->now);
    bridge_run(w->bridge, w->now);
    for (unsigned i = 0; i < NET_HOSTS; i++)
        if ((n[i] = backend_check(w->backend[i])) < 0 || (n[i] = take(w, i)) < 0)
            return n[i];
    r = flush(w, &blocked);
    if (r < 0)
        return r;
    w->now = live_now();
    if (w->record && !w->record_err && w->now >= w->flush_at) {
        w->record_err = cap_writer_flush(w->record);
        w->flush_at = w->now + NS_PER_S;
    }
    r = wait_for_work(w, blocked, n[0] || n[1] ? w->now : end);
    late_mark(&w->late, live_now());
    return r;
}
