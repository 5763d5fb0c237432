/* layer 4 (test): capture files cut at each record: what they give then is what lies before the cut. */
#include "tests/hostile/hostile.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Records that are read again for each cut: a cut file begins with the file's header and the window's first record. */
#define WINDOW     32
#define FRAMES_MAX 65536

/* A file that is cut. */
struct cutting {
    const char *name, *scratch;
    int fd; /* of the scratch file */
    const struct share *share;
    const uint8_t *bytes; /* the whole file */
    uint64_t size;
    const uint64_t *offsets; /* of its records */
    uint64_t n;
    uint64_t first;   /* record at which the scratch file goes on behind the header */
    uint64_t skipped; /* bytes that it lacks for that */
};

/* Frames that the file gives, read so many bytes at once (0: as many as usual); `offsets` (if not NULL) receives the
 * offset of each, up to `max`; so does `keep`. */
static uint64_t count_frames(const char *name, size_t buffer, uint64_t *offsets, uint64_t max, keep_frame *keep)
{
    struct cap_opts o = {.buffer = buffer};
    struct cap_error e;
    struct cap *c;
    struct frame f;
    uint64_t n = 0;

    if (cap_open(&c, name, 0, &o, &e) < 0)
        return 0;
    for (; cap_next(c, &f) == 1; n++) {
        if (n < max)
            offsets[n] = f.offset;
        if (keep)
            keep(&f);
    }
    cap_close(c);
    return n;
}

static void fail(const struct cutting *c)
{
    perror(c->scratch);
    exit(2);
}

/* The scratch file ends where the whole one has `end` bytes: it must give the frames that lie before its end, at least
 * `min` and at most `max` of the whole file. */
static void read_cut(struct file_cuts *cuts, const struct cutting *c, uint64_t end, uint64_t min, uint64_t max)
{
    if (is_over(c->share)) {
        cuts->left++;
        return;
    }
    if (ftruncate(c->fd, (off_t)(end - c->skipped)) < 0)
        fail(c);
    uint64_t got = c->first + count_frames(c->scratch, end % 2 ? 64 : 0, NULL, 0, NULL);
    if ((got < min || got > max) && cuts->failed++ < 20)
        printf("%s cut after %llu bytes: %llu frames, %llu lie before the cut\n", c->name, (unsigned long long)end,
               (unsigned long long)got, (unsigned long long)max);
    cuts->cuts++;
}

/* The scratch file: the header of the file, and what lies between record `first` and byte `end`. */
static void write_from(struct cutting *c, uint64_t first, uint64_t end)
{
    uint64_t header = c->offsets[0], from = c->offsets[first];

    c->first = first;
    c->skipped = from - header;
    if (ftruncate(c->fd, 0) < 0 || pwrite(c->fd, c->bytes, header, 0) != (ssize_t)header ||
        pwrite(c->fd, c->bytes + from, end - from, (off_t)header) != (ssize_t)(end - from))
        fail(c);
}

/* Cut from record `last` backward down to record `first`, from the end of the scratch file. */
static void cut_window(struct file_cuts *cuts, struct cutting *c, uint64_t first, uint64_t last)
{
    uint64_t end = last + 1 < c->n ? c->offsets[last + 1] : c->size;

    write_from(c, first, end);
    if (count_frames(c->scratch, 0, NULL, 0, NULL) != last + 1 - first)
        write_from(c, 0, end); /* blocks before it are needed, as those of pcapng that describe an interface */
    for (uint64_t i = last + 1; i-- > first;) {
        read_cut(cuts, c, c->offsets[i] + 9, i, i);
        read_cut(cuts, c, c->offsets[i] + 1, i, i);
        read_cut(cuts, c, c->offsets[i], i, i);
        if (i > 0)
            read_cut(cuts, c, c->offsets[i] - 1, i - 1, i); /* another block may lie between the two records */
    }
}

/* Map the file; false: it is none that can be cut. */
static bool map_file(struct cutting *c)
{
    int fd = open(c->name, O_RDONLY);
    struct stat st;
    void *bytes = MAP_FAILED;

    if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 0)
        bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (fd >= 0)
        close(fd);
    if (bytes == MAP_FAILED)
        return false;
    c->bytes = bytes;
    c->size = (uint64_t)st.st_size;
    return true;
}

void read_frames(const char *name, keep_frame *frame)
{
    count_frames(name, 0, NULL, 0, frame);
}

void cut_file(struct file_cuts *cuts, const char *name, const char *scratch, int fd, const struct share *s,
              keep_frame *keep)
{
    static uint64_t offsets[FRAMES_MAX];
    struct cutting c = {.name = name, .scratch = scratch, .fd = fd, .share = s, .offsets = offsets};

    cuts->files++;
    c.n = count_frames(name, 0, offsets, FRAMES_MAX, keep);
    if (c.n == 0 || c.n > FRAMES_MAX || !map_file(&c))
        return;
    if (offsets[c.n - 1] < c.size) /* else it is compressed: the offsets are not those of its bytes */
        for (uint64_t last = c.n; last > 0; last = last > WINDOW ? last - WINDOW : 0)
            cut_window(cuts, &c, last > WINDOW ? last - WINDOW : 0, last - 1);
    munmap((void *)(uintptr_t)c.bytes, c.size);
}
