/* layer 4 (test): hostile input in one process: every frame of every capture cut and changed, every file cut. Run it
 * under ASan.
 *
 * usage: hostile SECONDS SCRATCH-FILE JSON-FILE FILE...
 *
 * Files are read cut at each record's start and around it (files.c). Frames are decoded and printed cut at each length
 * (as by a snap length, and as if the wire had carried no more) and with each byte changed (all bits, and one bit), one
 * behind the other: each meets what the ones before have left of all connections; each format prints one of these four
 * at least. Then each byte of each frame is changed within its own connection (states.c). These three parts have a
 * third of SECONDS of CPU time each; what was done is then a sample spread evenly over all frames. If they are 0, all
 * is done. Some of the packets are written to JSON-FILE, one a line, for another program to check. Exit status 1 if a
 * cut file gives other frames than the whole one, or if more than a twentieth of the packets of commands are not known
 * as such within their own connection: then that state is not what it should be. Of fewer than 100 such packets the
 * share says nothing: what a protocol needs of messages long before (perftest counts its own) may be all that they
 * lack.
 */
#include "tests/hostile/hostile.h"
#include "src/ulp/ulp.h"
#include "tests/fuzz/print.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define JSON_MAX  30000000
#define UPPER_MIN 100 /* packets of commands whose share is judged */

static struct {
    struct kept *frames, **last;
    struct kept *latest;               /* of the file that is read; NULL: none yet */
    uint64_t n_frames, n_bytes, n_own; /* frames; their bytes; those of frames of connections */
    uint64_t tried;                    /* bytes at which frames were cut and changed */
    uint64_t in_state;                 /* likewise, each within its own connection */
    uint64_t packets;                  /* decoded for that */
    uint64_t upper, upper_in_state;    /* frames of commands; those that are known as such in that state */
    struct context *context;           /* number of all frames, as cut and changed */
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

/* Are frames of commands known as such within the state that their connection has there? A sixteenth of them, unless
 * there is no deadline. */
static void compare_states(bool all)
{
    unsigned at = 0;

    for (struct kept *k = state.frames; k; k = k->next) {
        state.n_own += has_state(k) ? k->frame.caplen : 0;
        if (k->upper && (all || at++ % 16 == 0)) {
            state.upper++;
            state.upper_in_state += is_upper_in_state(k);
        }
    }
}

/* A third of the time, from now on. */
static struct share share_of(double seconds)
{
    return (struct share){seconds > 0 ? spent() + (ns_t)(seconds * 1e9 / 3) : 0};
}

static void disturb_own(struct kept *k, uint32_t i)
{
    if (!has_state(k))
        return;
    state.packets += disturb_in_state(k, i);
    state.in_state++;
}

/* Every byte of every frame, in an order that is spread evenly if there is a deadline: PASSES times over all frames,
 * another part of the bytes each time, so that it may end at any time. */
static void disturb_all(const struct share *s, void (*disturb_at)(struct kept *k, uint32_t i))
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
                disturb_at(k, i);
            }
    }
}

/* Of the packets of commands, were enough known as such? */
static bool states_are_right(void)
{
    return state.upper < UPPER_MIN || state.upper_in_state * 20 >= state.upper * 19;
}

static void say(const struct file_cuts *c, const char *seconds)
{
    typedef unsigned long long ull;
    ull all = state.n_bytes;

    printf("%llu of %llu cuts of %llu files\n", (ull)c->cuts, (ull)(c->cuts + c->left), (ull)c->files);
    printf("%llu of %llu bytes of %llu frames: cut there twice, changed twice\n", (ull)state.tried, all,
           (ull)state.n_frames);
    printf("%llu of %llu bytes of connections: cut there and changed, each within its own, %llu packets (%.1f s)\n",
           (ull)state.in_state, (ull)state.n_own, (ull)state.packets, (double)spent() / 1e9);
    printf("%llu of %llu packets of commands are known as such there\n", (ull)state.upper_in_state, (ull)state.upper);
    if (c->left || state.tried < all || state.in_state < state.n_own)
        printf("a sample only: %s s were over (HOSTILE_SECONDS sets them, 0 for all)\n", seconds);
}

int main(int argc, char **argv)
{
    if (argc < 5) {
        fprintf(stderr, "usage: hostile SECONDS SCRATCH-FILE JSON-FILE FILE...\n");
        return 2;
    }
    double seconds = atof(argv[1]);
    struct share share = share_of(seconds);
    struct file_cuts cuts = {0};
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
        find_connections(*first);
    }
    close(fd);
    unlink(argv[2]);
    share = share_of(seconds);
    disturb_all(&share, disturb);
    compare_states(seconds <= 0);
    share = share_of(seconds);
    disturb_all(&share, disturb_own);
    fclose(state.json);
    context_free(state.context);
    say(&cuts, argv[1]);
    for (struct kept *k = state.frames, *next; k; k = next) {
        next = k->next;
        free(k);
    }
    return cuts.failed > 0 || state.n_frames == 0 || !states_are_right();
}
