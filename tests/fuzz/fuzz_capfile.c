/* layer 1 (io) fuzzing: any bytes as a capture file; it reads the same through a buffer that is full at every frame. */
#include "src/cap/cap.h"
#include "src/cap/write.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What reading a file came to. */
struct outcome {
    uint64_t frames, sum, offset;
    int end;
    bool damaged; /* packed, and not to be unpacked or read to its end: how far it is depends on the buffer */
};

/* Whether a frame's comment is the one that the writer gives to a frame without a time: the frame that was read first
 * had none then. */
static bool says_no_time(const struct frame *f)
{
    return f->comment_len == strlen(CAP_NO_TIME) && memcmp(f->comment, CAP_NO_TIME, f->comment_len) == 0;
}

static struct outcome read_all(const char *path, const struct cap_opts *opts, struct cap_writer *w)
{
    struct outcome o = {0};
    struct cap_error e;
    struct cap *c;
    struct frame f;

    o.end = cap_open(&c, path, 0, opts, &e);
    if (o.end < 0) {
        o.offset = e.offset;
        o.damaged = e.unpacked;
        return o;
    }
    while ((o.end = cap_next(c, &f)) == 1) {
        assert(f.caplen <= FRAME_MAX && f.number == o.frames + 1);
        assert(f.iface < cap_info(c)->n_ifaces);
        for (uint32_t i = 0; i < f.caplen; i++)
            o.sum += f.data[i];
        for (uint32_t i = 0; i < f.comment_len && !says_no_time(&f); i++)
            o.sum += (uint8_t)f.comment[i];
        if (w)
            assert(cap_write(w, &f, &cap_info(c)->ifaces[f.iface]) == 0);
        o.frames++;
    }
    o.offset = o.end < 0 ? cap_error(c)->offset : 0;
    o.damaged = o.end < 0 && cap_error(c)->unpacked;
    cap_close(c);
    return o;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int in = memfd_create("in", 0), out = memfd_create("out", 0);
    char in_path[40], out_path[40];
    struct cap_writer *w;
    struct cap_error e;

    assert(in >= 0 && out >= 0 && write(in, data, size) == (ssize_t)size);
    snprintf(in_path, sizeof in_path, "/proc/self/fd/%d", in);
    snprintf(out_path, sizeof out_path, "/proc/self/fd/%d", out);
    assert(cap_writer_open(&w, out_path, NULL, &e) == 0);
    struct outcome whole = read_all(in_path, NULL, w),
                   small = read_all(in_path, &(struct cap_opts){.buffer = 16}, NULL);
    assert(whole.damaged || (whole.frames == small.frames && whole.sum == small.sum));
    assert(whole.damaged || (whole.end == small.end && whole.offset == small.offset));
    /* What was written is read again whole. */
    assert(cap_writer_close(w, &e) == 0);
    struct outcome again = read_all(out_path, NULL, NULL);
    assert(again.end == 0 && again.frames == whole.frames && again.sum == whole.sum);
    close(in);
    close(out);
    return 0;
}
