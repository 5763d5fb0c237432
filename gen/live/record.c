/* layer 3 (live): the capture of an endpoint on a real network: every frame that the interface sent or received.
 *
 * A frame received was stamped by the kernel, before it was read; meanwhile others were sent. So that the capture has
 * them in the order of their time stamps, those sent wait until what was received before them has been read. */
#include "clock.h"
#include "gen/live/live.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define WAITING_MAX ((size_t)16 << 20) /* bytes that wait, at most */
/* A frame can be read so long after it was stamped, at most, if no other has to be read before it. */
#define ON_ITS_WAY (10 * NS_PER_MS)

int live_record_to(struct live *l, const char *path, uint32_t snaplen, struct live_error *err)
{
    struct cap_writer_opts opts = {.snaplen = snaplen, .linktype = LINK_ETHERNET, .app = "rdmagen"};
    const struct backend *b = l->backend;
    struct cap_error e = {0};
    char times[120];
    int r;

    snprintf(times, sizeof times, "frames received are stamped with the time by %s, frames sent by the program",
             backend_stamps_str((enum backend_stamps)b->stamps));
    l->record_iface = (struct cap_iface){.linktype = LINK_ETHERNET,
                                         .tsresol = 9,
                                         .name = strdup(*b->iface ? b->iface : b->ops->name),
                                         .comment = strdup(times)};
    l->record_from = backend_stats(l->backend)->received;
    l->dropped_from = backend_stats(l->backend)->dropped;
    l->frames = 0;
    l->record_err = 0;
    r = cap_writer_open(&l->record, path, &opts, &e);
    if (r < 0)
        snprintf(err->msg, sizeof err->msg, "%.150s: %.140s", path, e.msg);
    return r;
}

static void write_frame(struct live *l, struct frame *f)
{
    f->has_ts = true;
    f->linktype = LINK_ETHERNET;
    f->number = ++l->frames;
    if (!l->record_err)
        l->record_err = cap_write(l->record, f, &l->record_iface);
}

/* A frame that waits for those received before it; its data and its comment follow. */
struct waiting {
    ns_t ts;
    uint32_t len, comment_len;
    uint8_t flags;
};

/* Write the waiting frames that are no later than `until`, and more if they are too many. */
static void release(struct live *l, ns_t until)
{
    struct buf *b = &l->waiting;
    struct waiting w;

    while (l->waiting_from < b->len) {
        const uint8_t *p = (const uint8_t *)b->p + l->waiting_from;
        memcpy(&w, p, sizeof w);
        if (w.ts > until && b->len - l->waiting_from <= WAITING_MAX)
            break;
        p += sizeof w;
        write_frame(l, &(struct frame){.ts = w.ts,
                                       .data = p,
                                       .caplen = w.len,
                                       .len = w.len,
                                       .flags = w.flags,
                                       .comment = w.comment_len ? (const char *)p + w.len : NULL,
                                       .comment_len = w.comment_len});
        l->waiting_from += sizeof w + w.len + w.comment_len;
    }
    if (l->waiting_from && l->waiting_from >= b->len / 2) {
        b->len -= l->waiting_from;
        memmove(b->p, b->p + l->waiting_from, b->len);
        l->waiting_from = 0;
    }
}

void live_record(struct live *l, const uint8_t *data, uint32_t len, bool inbound, const char *comment)
{
    struct waiting w = {.len = len, .comment_len = comment ? (uint32_t)strlen(comment) : 0, .flags = inbound ? 1 : 2};

    if (!l->record || l->record_err)
        return;
    w.ts = clock_ns(CLOCK_REALTIME);
    if (!buf_need(&l->waiting, sizeof w + len + w.comment_len)) {
        l->record_err = -ENOMEM;
        return;
    }
    buf_mem(&l->waiting, &w, sizeof w);
    buf_mem(&l->waiting, data, len);
    buf_mem(&l->waiting, comment, w.comment_len);
    release(l, INT64_MIN);
}

void live_record_in(struct live *l, const uint8_t *data, uint32_t len, ns_t ts)
{
    if (!ts) {
        live_record(l, data, len, true, NULL);
        return;
    }
    if (!l->record || l->record_err)
        return;
    release(l, ts);
    write_frame(l, &(struct frame){.ts = ts, .data = data, .caplen = len, .len = len, .flags = 1});
}

void live_record_caught_up(struct live *l)
{
    if (l->record && l->waiting.len)
        release(l, clock_ns(CLOCK_REALTIME) - ON_ITS_WAY);
}

void live_record_end(struct live *l)
{
    struct cap_error e = {0};
    int r;

    if (l->record)
        release(l, INT64_MAX);
    buf_free(&l->waiting);
    l->waiting_from = 0;
    if (l->backend && l->record) {
        const struct backend_stats *s = backend_stats(l->backend);
        l->record_iface.os_dropped = s->dropped - l->dropped_from;
        l->record_iface.received = s->received - l->record_from + l->record_iface.os_dropped;
        cap_write_stats(l->record, 0, 0, &l->record_iface);
    }
    r = l->record ? cap_writer_close(l->record, &e) : 0;
    if (!l->record_err)
        l->record_err = r;
    l->record = NULL;
    free(l->record_iface.name);
    free(l->record_iface.comment);
    l->record_iface.name = l->record_iface.comment = NULL;
}
