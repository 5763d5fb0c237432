/* layer 3 (live): backend: writes sent frames to a capture file; nothing is received. */
#include "clock.h"
#include "gen/live/backend.h"
#include "src/cap/write.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define FILE_MTU 9000

struct file_backend {
    struct backend b;
    struct cap_writer *w;
    char *path;
    bool failed;
    uint64_t frames;
    uint8_t frame[BACKEND_FRAME_MAX];
};

static int file_open(struct backend **out, const char *args, const char *iface, struct backend_error *err)
{
    struct cap_writer_opts opts = {.linktype = LINK_ETHERNET, .app = "rdmagen"};
    struct cap_error e = {0};
    struct file_backend *f;
    int r;

    (void)iface;
    if (!*args)
        return backend_fail(err, -EINVAL, "backend file needs a path: file:PATH");
    f = calloc(1, sizeof *f);
    if (!f || !(f->path = strdup(args))) {
        free(f);
        return backend_fail(err, -ENOMEM, "out of memory");
    }
    f->b = (struct backend){.ops = &backend_file, .fd = -1, .mtu = FILE_MTU};
    r = cap_writer_open(&f->w, f->path, &opts, &e);
    if (r < 0) {
        free(f->path);
        free(f);
        return backend_fail(err, r, "%s: %s", args, e.msg);
    }
    *out = &f->b;
    return 0;
}

static bool file_alone(const struct backend *b)
{
    (void)b;
    return true;
}

static uint8_t *file_room(struct backend *b)
{
    return ((struct file_backend *)b)->frame;
}

static void file_push(struct backend *b, uint32_t len)
{
    struct file_backend *f = (struct file_backend *)b;
    struct cap_iface iface = {.linktype = LINK_ETHERNET};
    struct frame frame = {
        .data = f->frame, .caplen = len, .len = len, .linktype = LINK_ETHERNET, .has_ts = true, .flags = 2};

    frame.ts = clock_ns(CLOCK_REALTIME);
    frame.number = ++f->frames;
    f->failed |= cap_write(f->w, &frame, &iface) < 0;
    f->b.stats.sent += !f->failed;
}

static int file_flush(struct backend *b)
{
    struct file_backend *f = (struct file_backend *)b;
    int r = cap_writer_flush(f->w);

    return f->failed ? -EIO : r;
}

static int file_rx(struct backend *b, struct backend_frame *f)
{
    (void)b;
    (void)f;
    return 0;
}

static void file_close(struct backend *b)
{
    struct file_backend *f = (struct file_backend *)b;

    cap_writer_close(f->w, NULL);
    free(f->path);
    free(f);
}

const struct backend_ops backend_file = {
    .name = "file",
    .args = ":PATH",
    .summary = "a capture file (pcapng, or pcap by its name) of what would be sent; nothing is received",
    .open = file_open,
    .alone = file_alone,
    .room = file_room,
    .push = file_push,
    .flush = file_flush,
    .rx = file_rx,
    .close = file_close,
};
