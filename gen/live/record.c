/* layer 3 (live): the capture of an endpoint on a real network: every frame that the interface sent or received. */
#include "clock.h"
#include "gen/live/live.h"

#include <stdio.h>
#include <stdlib.h>

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

void live_record_end(struct live *l)
{
    struct cap_error e = {0};
    int r;

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

/* `ts`: its time of the day; 0: now. */
static void write_frame(struct live *l, struct frame *f, ns_t ts)
{
    if (!l->record || l->record_err)
        return;
    f->has_ts = true;
    f->ts = ts ? ts : clock_ns(CLOCK_REALTIME);
    f->linktype = LINK_ETHERNET;
    f->number = ++l->frames;
    l->record_err = cap_write(l->record, f, &l->record_iface);
}

void live_record(struct live *l, const uint8_t *data, uint32_t len, bool inbound, const char *comment)
{
    struct frame f = {.data = data,
                      .caplen = len,
                      .len = len,
                      .flags = inbound ? 1 : 2,
                      .comment = comment,
                      .comment_len = comment ? (uint32_t)strlen(comment) : 0};

    write_frame(l, &f, 0);
}

void live_record_in(struct live *l, const uint8_t *data, uint32_t len, ns_t ts)
{
    struct frame f = {.data = data, .caplen = len, .len = len, .flags = 1};

    write_frame(l, &f, ts);
}
