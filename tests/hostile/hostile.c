/* layer 4 (test): hostile input in one process: every frame of every capture cut and changed, every file cut. Run it
 * under ASan.
 *
 * usage: hostile SECONDS SCRATCH-FILE JSON-FILE FILE...
 *
 * Frames are decoded and printed cut at each length (as by a snap length, and as if the wire had carried no more) and
 * with each byte changed (all bits, and one bit); each format prints one of these four at least. Files are read cut at
 * each record's start and around it. When SECONDS are over, what was done is a sample spread evenly over all frames.
 * Some of the packets are written to JSON-FILE, one a line, for another program to check. Exit status 1 if a cut file
 * gives other frames than the whole one.
 */
#include "src/cap/cap.h"
#include "src/ulp/ulp.h"
#include "tests/fuzz/print.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define JSON_MAX 30000000

/* A frame of a file, kept in memory. */
struct kept {
    struct frame frame;
    struct kept *next;
    uint8_t bytes[];
};

static struct {
    struct kept *frames, **last;
    uint64_t n_frames, n_bytes, n_files;
    uint64_t tried;     /* cuts and changes of frames that were decoded */
    uint64_t cuts;      /* cuts of files that were read */
    uint64_t cuts_left; /* cuts of files that were skipped for lack of time */
    ns_t deadline;
    struct context *context; /* number of all frames, as cut and changed */
    FILE *json;
    uint64_t json_bytes; /* written to it */
    uint64_t failed;     /* cut files that gave wrong frames */
} state = {.last = &state.frames};

static ns_t now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * NS_PER_S + t.tv_nsec;
}

static void keep(const struct frame *f)
{
    struct kept *k = malloc(sizeof *k + f->caplen);

    k->frame = *f;
    k->frame.comment = NULL;
    k->next = NULL;
    memcpy(k->bytes, f->data, f->caplen);
    *state.last = k;
    state.last = &k->next;
    state.n_frames++;
    state.n_bytes += f->caplen;
}

/* --- Frames ----------------------------------------------------------------------------------- */

/* Decode and note the frame; print it in one format, the next one each time: the four cases of a byte come in all
 * three. Printing it in all of them takes most of the time. */
static void print_in_turn(struct buf *b, struct pkt *p, const struct frame *f, const struct decode_opts *o)
{
    static const enum print_format formats[] = {PRINT_TEXT, PRINT_FIELDS, PRINT_NDJSON};
    static unsigned turn;

    pkt_decode(p, f, o);
    context_note(state.context, p);
    print_as(b, p, formats[turn++ % ARRAY_LEN(formats)]);
}

/* `n` bytes at `bytes`, of which the wire carried `len`, in memory of exactly that size. */
static void decode(const struct kept *k, const uint8_t *bytes, uint32_t n, uint32_t len)
{
    static struct pkt p;
    static struct buf b;
    static const struct decode_opts o = {.verify = true};
    struct frame f = k->frame;
    uint8_t *copy = malloc(n ? n : 1);

    memcpy(copy, bytes, n);
    f.data = copy;
    f.caplen = n;
    f.len = len;
    if (state.tried % 16 == 0) {
        print_everything(&b, &p, &f, &o, state.context);
        if (state.json_bytes < JSON_MAX)
            state.json_bytes += fwrite(b.p, 1, b.len, state.json);
    } else {
        print_in_turn(&b, &p, &f, &o);
    }
    free(copy);
}

/* Cut the frame at byte `i`, and change byte `i`. */
static void disturb(struct kept *k, uint32_t i)
{
    uint8_t was = k->bytes[i];

    decode(k, k->bytes, i, k->frame.len);
    decode(k, k->bytes, i, i);
    k->bytes[i] = (uint8_t)~was;
    decode(k, k->bytes, k->frame.caplen, k->frame.len);
    k->bytes[i] = was ^ (uint8_t)(1u << (i * 5 % 8));
    decode(k, k->bytes, k->frame.caplen, k->frame.len);
    k->bytes[i] = was;
    state.tried++;
}

/* Every byte of every frame, in an order that is spread evenly: PASSES times over all frames, another part of the bytes
 * each time, so that it may end at any time. */
static void disturb_all(void)
{
    enum { PASSES = 64 };
    uint32_t at = 0;

    for (unsigned pass = 0; pass < PASSES; pass++) {
        at = 0;
        for (struct kept *k = state.frames; k; k = k->next) {
            if (now() > state.deadline)
                return;
            for (uint32_t i = 0; i < k->frame.caplen; i++, at++)
                if ((at * UINT32_C(2654435761)) >> 26 == pass)
                    disturb(k, i);
        }
    }
}

/* --- Files ------------------------------------------------------------------------------------ */

/* Frames that the file gives, read so many bytes at once (0: as many as usual); `offsets` (if not NULL) receives the
 * offset of each, up to `max`. */
static uint64_t count_frames(const char *name, size_t buffer, uint64_t *offsets, uint64_t max, bool keep_them)
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
        if (keep_them)
            keep(&f);
    }
    cap_close(c);
    return n;
}

static bool copy_file(const char *from, int to)
{
    char block[65536];
    int fd = open(from, O_RDONLY);
    ssize_t n;

    if (fd < 0 || ftruncate(to, 0) < 0 || lseek(to, 0, SEEK_SET) < 0)
        return false;
    while ((n = read(fd, block, sizeof block)) > 0)
        if (write(to, block, (size_t)n) != n)
            break;
    close(fd);
    return n == 0;
}

/* The scratch file ends after `size` bytes: it must give the frames that lie before its end, at least `min` and at most
 * `max`. */
static void read_cut(const char *scratch, int fd, const char *name, uint64_t size, uint64_t min, uint64_t max)
{
    if (now() > state.deadline) {
        state.cuts_left++;
        return;
    }
    if (ftruncate(fd, (off_t)size) < 0) {
        perror(scratch);
        exit(2);
    }
    uint64_t got = count_frames(scratch, size % 2 ? 64 : 0, NULL, 0, false);
    if ((got < min || got > max) && state.failed++ < 20)
        printf("%s cut after %llu bytes: %llu frames, %llu lie before the cut\n", name, (unsigned long long)size,
               (unsigned long long)got, (unsigned long long)max);
    state.cuts++;
}

/* Cut the file from its end backward at each record's start, one byte before and behind it, and within its header. */
static void cut_file(const char *name, const char *scratch, int fd)
{
    enum { MAX = 4096 };
    static uint64_t offsets[MAX];
    struct stat st;
    uint64_t n = count_frames(name, 0, offsets, MAX, true);

    state.n_files++;
    if (n == 0 || n > MAX || !copy_file(name, fd) || fstat(fd, &st) < 0 || offsets[n - 1] >= (uint64_t)st.st_size)
        return; /* the offsets of a compressed file are not those of its bytes */
    for (uint64_t i = n; i-- > 0;) {
        read_cut(scratch, fd, name, offsets[i] + 9, i, i);
        read_cut(scratch, fd, name, offsets[i] + 1, i, i);
        read_cut(scratch, fd, name, offsets[i], i, i);
        if (i > 0)
            read_cut(scratch, fd, name, offsets[i] - 1, i - 1, i); /* another block may lie between the two records */
    }
}

int main(int argc, char **argv)
{
    if (argc < 5) {
        fprintf(stderr, "usage: hostile SECONDS SCRATCH-FILE JSON-FILE FILE...\n");
        return 2;
    }
    ns_t start = now(), budget = (ns_t)(atof(argv[1]) * 1e9);
    int fd = open(argv[2], O_RDWR | O_CREAT | O_TRUNC, 0600);
    state.json = fopen(argv[3], "wb");
    state.context = context_new(0);
    if (fd < 0 || !state.json || !state.context || !ulp_of_context(state.context, NULL)) {
        perror(argv[fd < 0 ? 2 : 3]);
        return 2;
    }
    state.deadline = start + budget / 3;
    for (int i = 4; i < argc; i++)
        cut_file(argv[i], argv[2], fd);
    close(fd);
    unlink(argv[2]);
    state.deadline = start + budget;
    disturb_all();
    fclose(state.json);
    context_free(state.context);
    printf("%llu of %llu cuts of %llu files\n", (unsigned long long)state.cuts,
           (unsigned long long)(state.cuts + state.cuts_left), (unsigned long long)state.n_files);
    printf("%llu of %llu bytes of %llu frames: cut there twice, changed twice (%.1f s)\n",
           (unsigned long long)state.tried, (unsigned long long)state.n_bytes, (unsigned long long)state.n_frames,
           (double)(now() - start) / 1e9);
    if (state.cuts_left || state.tried < state.n_bytes)
        printf("a sample only: %s s were over (HOSTILE_SECONDS sets them)\n", argv[1]);
    for (struct kept *k = state.frames, *next; k; k = next) {
        next = k->next;
        free(k);
    }
    return state.failed > 0 || state.n_frames == 0;
}
