/* layer 4 (test): hostile input in one process: every frame of every capture cut and changed, every file cut. Run it
 * under ASan.
 *
 * usage: hostile SECONDS SCRATCH-FILE JSON-FILE FILE...
 *        hostile sweep FILE...
 *
 * Files are read cut at each record's start and around it (files.c). Frames are decoded and printed cut at each length
 * (as by a snap length, and as if the wire had carried no more) and with each byte changed (all bits, and one bit), one
 * behind the other: each meets what the ones before have left of all connections; each format prints one of these four
 * at least. Then each byte of each frame is changed within its own connection (sweep.c). These three parts have a third
 * of SECONDS of CPU time each; what was done is then a sample spread evenly over all frames. If they are 0, all is
 * done. `sweep` does all of the third part only, and says of each file how long it took. Some of the packets are
 * written to JSON-FILE, one a line, for another program to check. Exit status 1 if a cut file gives other frames than
 * the whole one, or if many packets of upper protocols that were not changed are not known as such: then changes are
 * not made within the state that the connection has.
 */
#include "tests/hostile/hostile.h"
#include "src/ulp/ulp.h"
#include "tests/fuzz/print.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

#define JSON_MAX  30000000
#define UPPER_MIN 100 /* packets of upper protocols whose share is judged */
#define FILES_MAX 1024

static struct {
    struct kept *frames, **last;
    struct kept *latest;           /* of the file that is read; NULL: none yet */
    uint64_t n_frames, n_bytes;    /* frames; their bytes */
    uint64_t tried;                /* bytes at which frames were cut and changed */
    struct sweep sweep[FILES_MAX]; /* of the files */
    unsigned n_sweeps;
    struct context *context; /* number of all frames, as cut and changed */
    FILE *json;
    uint64_t json_bytes; /* written to it */
} state = {.last = &state.frames};

ns_t spent(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * NS_PER_S + t.tv_nsec;
}

bool is_over(const struct share *s)
{
    return s->deadline > 0 && spent() > s->deadline;
}

static void keep(const struct frame *f)
{
    struct kept *k = calloc(1, sizeof *k + f->caplen);

    k->frame = *f;
    k->frame.comment = NULL;
    k->frame.data = NULL;
    memcpy(k->bytes, f->data, f->caplen);
    k->before = state.latest;
    if (k->before)
        k->before->behind = k;
    state.latest = k;
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

/* A third of the time, from now on. */
static struct share share_of(double seconds)
{
    return (struct share){seconds > 0 ? spent() + (ns_t)(seconds * 1e9 / 3) : 0};
}

/* Every byte of every frame, in an order that is spread evenly if there is a deadline: PASSES times over all frames,
 * another part of the bytes each time, so that it may end at any time. */
static void disturb_all(const struct share *s)
{
    enum { PASSES = 64 };
    unsigned passes = s->deadline > 0 ? PASSES : 1;

    for (unsigned pass = 0; pass < passes; pass++) {
        uint32_t at = 0;
        for (struct kept *k = state.frames; k; k = k->next)
            for (uint32_t i = 0; i < k->frame.caplen; i++, at++) {
                if (passes > 1 && (at * UINT32_C(2654435761)) >> 26 != pass)
                    continue;
                if (is_over(s))
                    return;
                disturb(k, i);
            }
    }
}

/* Sweeps of all files, a pass of each in turn. */
static void sweep_all(const struct share *s)
{
    bool left = true;

    while (left) {
        left = false;
        for (unsigned i = 0; i < state.n_sweeps; i++) {
            if (is_over(s))
                return;
            left |= sweep_pass(&state.sweep[i]);
        }
    }
}

static struct sweep sum_of_sweeps(void)
{
    struct sweep sum = {0};

    for (unsigned i = 0; i < state.n_sweeps; i++) {
        const struct sweep *s = &state.sweep[i];
        sum.all += s->all;
        sum.done += s->done;
        sum.packets += s->packets;
        sum.upper += s->upper;
        sum.upper_now += s->upper_now;
    }
    return sum;
}

/* Of the packets of upper protocols, were enough known as such? Behind a segment of TCP that was cut, some are not. */
static bool states_are_right(const struct sweep *s)
{
    return s->upper < UPPER_MIN || s->upper_now * 4 >= s->upper * 3;
}

static void say(const struct file_cuts *c, const struct sweep *s, const char *seconds)
{
    typedef unsigned long long ull;
    ull all = state.n_bytes;

    printf("%llu of %llu cuts of %llu files\n", (ull)c->cuts, (ull)(c->cuts + c->left), (ull)c->files);
    printf("%llu of %llu bytes of %llu frames: cut there twice, changed twice\n", (ull)state.tried, all,
           (ull)state.n_frames);
    printf("%llu of %llu changes of frames of connections, each within its own, %llu packets (%.1f s)\n", (ull)s->done,
           (ull)s->all, (ull)s->packets, (double)spent() / 1e9);
    printf("%llu of %llu packets of upper protocols are known as such there\n", (ull)s->upper_now, (ull)s->upper);
    if (c->left || state.tried < all || s->done < s->all)
        printf("a sample only: %s s were over (HOSTILE_SECONDS sets them, 0 for all)\n", seconds);
}

static void free_all(void)
{
    for (struct kept *k = state.frames, *next; k; k = next) {
        next = k->next;
        free(k);
    }
    state.frames = NULL;
    state.last = &state.frames;
}

#ifdef __SANITIZE_ADDRESS__
static void say_where(void)
{
    fprintf(stderr, "the latest change of a sweep: frame %llu, byte %u, kind %u\n", (unsigned long long)sweep_now.frame,
            sweep_now.byte, sweep_now.change);
}
#endif

/* All changes of one file after the other. */
static int sweep_files(char **files, int n)
{
    int status = 0;

    for (int i = 0; i < n; i++) {
        ns_t since = spent();
        struct sweep s;
        state.latest = NULL;
        read_frames(files[i], keep);
        sweep_begin(&s, state.frames);
        while (sweep_pass(&s))
            ;
        printf("%s: %llu changes, %llu packets, %.1f s; %llu of %llu packets of upper protocols are known as such\n",
               files[i], (unsigned long long)s.done, (unsigned long long)s.packets, (double)(spent() - since) / 1e9,
               (unsigned long long)s.upper_now, (unsigned long long)s.upper);
        fflush(stdout);
        status |= !states_are_right(&s);
        free_all();
    }
    return status;
}

int main(int argc, char **argv)
{
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_set_death_callback(say_where);
#endif
    if (argc > 2 && strcmp(argv[1], "sweep") == 0)
        return sweep_files(argv + 2, argc - 2);
    if (argc < 5) {
        fprintf(stderr, "usage: hostile SECONDS SCRATCH-FILE JSON-FILE FILE...\n       hostile sweep FILE...\n");
        return 2;
    }
    double seconds = atof(argv[1]);
    struct share share = share_of(seconds);
    struct file_cuts cuts = {0};
    struct sweep sum;
    int fd = open(argv[2], O_RDWR | O_CREAT | O_TRUNC, 0600);
    state.json = fopen(argv[3], "wb");
    state.context = context_new(0);
    if (fd < 0 || !state.json || !state.context || !ulp_of_context(state.context, NULL)) {
        perror(argv[fd < 0 ? 2 : 3]);
        return 2;
    }
    for (int i = 4; i < argc; i++) {
        state.latest = NULL;
        struct kept **first = state.last;
        cut_file(&cuts, argv[i], argv[2], fd, &share, keep);
        if (state.n_sweeps < FILES_MAX)
            sweep_begin(&state.sweep[state.n_sweeps++], *first);
    }
    close(fd);
    unlink(argv[2]);
    share = share_of(seconds);
    disturb_all(&share);
    share = share_of(seconds);
    sweep_all(&share);
    fclose(state.json);
    context_free(state.context);
    sum = sum_of_sweeps();
    say(&cuts, &sum, argv[1]);
    free_all();
    return cuts.failed > 0 || state.n_frames == 0 || !states_are_right(&sum);
}
