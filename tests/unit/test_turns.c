/* layer 5 (test): frames that several threads take and show by turns: each one once, in order, whoever shows it. */
#include "src/cores/cores.h"
#include "src/cores/turns.h"

#include "src/cap/cap.h"
#include "src/conn/annotate.h"
#include "src/show/print.h"
#include "src/ulp/ulp.h"

#include <criterion/criterion.h>
#include <glob.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#define FRAMES  5000
#define MANY    40000 /* frames in some dozens of batches that are not shown */
#define THREADS 4

struct log {
    uint32_t frames; /* that there are */
    pthread_t slow;  /* the thread that takes the first packet ... */
    uint32_t n_slow; /* ... and how many it took, */
    uint32_t n_fast; /* and how many others did */
    uint32_t n_read, n_taken, n_written;
    uint32_t most;       /* of write(): no more than that */
    atomic_uint n_shown; /* by show(), not by take() */
    pthread_t last;      /* who took the latest packet */
    uint32_t n_fetched;  /* calls of fetch() */
    bool foreign;        /* a text was written by another thread than the one that made it */
};

static const uint8_t zeros[60];

static bool read_frame(void *user, struct frame *f, uint32_t *tag, bool *stays)
{
    struct log *l = user;

    if (l->n_read == l->frames)
        return false;
    *f = (struct frame){.data = zeros, .caplen = sizeof zeros, .len = sizeof zeros, .number = ++l->n_read};
    *tag = l->n_read;
    *stays = true;
    return true;
}

static void append(struct buf *b, uint32_t number)
{
    pthread_t by = pthread_self();

    buf_mem(b, &number, sizeof number);
    buf_mem(b, &by, sizeof by);
}

/* Two of three are shown; every fifth at once. */
static bool take(void *user, struct pkt *p, struct turn *turn)
{
    struct log *l = user;

    cr_assert_eq(turn->tag, ++l->n_taken);
    cr_assert_eq(p->frame->number, l->n_taken);
    if (l->n_taken % 3 && l->n_taken % 5 == 0)
        append(turn->said, turn->tag);
    else if (l->n_taken % 3)
        turn->later = true;
    return true;
}

static void show(void *user, void *scratch, struct buf *text, const struct pkt *p, uint32_t tag)
{
    struct log *l = user;

    (void)scratch;
    cr_assert_eq(p->frame->number, tag);
    atomic_fetch_add(&l->n_shown, 1);
    append(text, tag);
    if (tag % 7 == 0)
        usleep(50);
}

static bool write_text(void *user, struct buf *text)
{
    struct log *l = user;
    pthread_t by;
    uint32_t number;

    for (size_t at = 0; at < text->len; at += sizeof number + sizeof by) {
        memcpy(&number, text->p + at, sizeof number);
        memcpy(&by, text->p + at + sizeof number, sizeof by);
        l->foreign |= !pthread_equal(by, pthread_self());
        l->n_written++;
        l->n_written += (l->n_written % 3 == 0);
        cr_assert_eq(number, l->n_written, "frame %u is written in place of %u", number, l->n_written);
    }
    return l->n_written < l->most;
}

static struct log run(unsigned threads, uint32_t most)
{
    struct log l = {.frames = FRAMES, .most = most};
    const struct turns_opts o = {.threads = threads,
                                 .frames = TURNS_TREES,
                                 .read = read_frame,
                                 .reader = &l,
                                 .take = take,
                                 .show = show,
                                 .write = write_text,
                                 .user = &l};

    cr_assert(turns_run(&o));
    return l;
}

Test(turns, what_is_shown_is_written_in_order_by_the_thread_that_made_it)
{
    for (unsigned threads = 2; threads <= THREADS; threads++) {
        struct log l = run(threads, UINT32_MAX);
        cr_assert_eq(l.n_taken, FRAMES);
        cr_assert_eq(l.n_written, FRAMES);
        cr_assert_gt(atomic_load(&l.n_shown), FRAMES / 2);
        cr_assert_not(l.foreign);
    }
}

Test(turns, when_nothing_more_can_be_written_no_more_is_read)
{
    struct log l = run(THREADS, 10);

    cr_assert_leq(l.n_written, TURNS_TREES);
    cr_assert_leq(l.n_read, TURNS_TREES * (THREADS + 1));
}

/* The first thread takes its time with some packets, longer than others look for work before they sleep. */
static bool take_slowly(void *user, struct pkt *p, struct turn *turn)
{
    struct log *l = user;

    (void)turn;
    if (!l->n_taken)
        l->slow = pthread_self();
    l->last = pthread_self();
    cr_assert_eq(p->frame->number, ++l->n_taken);
    if (!pthread_equal(l->slow, pthread_self())) {
        l->n_fast++;
    } else if (++l->n_slow % (TURNS_FRAMES / 3) == 0) {
        usleep(2000);
    }
    return l->n_taken < l->most;
}

/* Another thread has taken the latest packet. */
static void fetch(void *user)
{
    struct log *l = user;

    cr_assert(l->n_taken && !pthread_equal(l->last, pthread_self()));
    l->n_fetched++;
}

static struct log run_slowly(unsigned threads, uint32_t most)
{
    struct log l = {.frames = MANY, .most = most};
    const struct turns_opts o = {.threads = threads,
                                 .frames = TURNS_FRAMES,
                                 .read = read_frame,
                                 .reader = &l,
                                 .take = take_slowly,
                                 .fetch = fetch,
                                 .user = &l};

    cr_assert(turns_run(&o));
    return l;
}

/* Nobody misses that it is its turn: else the run would not end. */
Test(turns, what_is_not_shown_is_taken_in_order_however_slow_one_thread_is, .timeout = 60)
{
    for (unsigned threads = 2; threads <= THREADS; threads++) {
        struct log l = run_slowly(threads, UINT32_MAX);
        cr_assert_eq(l.n_taken, MANY);
        cr_assert_gt(l.n_slow, 0);
        cr_assert_gt(l.n_fast, 0);
        cr_assert_gt(l.n_fetched, 0);
    }
}

Test(turns, when_one_has_taken_enough_all_threads_end, .timeout = 60)
{
    for (unsigned threads = 2; threads <= THREADS; threads++) {
        struct log l = run_slowly(threads, MANY / 2);
        cr_assert_eq(l.n_taken, MANY / 2);
        cr_assert_leq(l.n_read, MANY / 2 + TURNS_FRAMES * (threads + 1));
    }
}

/* A thread begins on another processor than who starts it, and may use all that the process may. */
static void *note_processors(void *set)
{
    cr_assert_eq(sched_getaffinity(0, sizeof(cpu_set_t), set), 0);
    return NULL;
}

Test(turns, a_thread_may_use_all_processors)
{
    cpu_set_t mine, its;
    pthread_t id;

    cr_assert_eq(sched_getaffinity(0, sizeof mine, &mine), 0);
    CPU_ZERO(&its);
    cr_assert(cores_start(&id, note_processors, &its));
    pthread_join(id, NULL);
    cr_expect(CPU_EQUAL(&mine, &its));
}

/* --- Parts ------------------------------------------------------------------------------------- */

#define PARTS    3
#define ALL_EACH 10 /* one frame in so many is of all parts */

/* What parts have taken. */
struct shares {
    struct log l;       /* for read_frame() */
    uint32_t n_sorted;  /* packets that parts_of() got */
    uint32_t enough_at; /* the packet that is enough; 0: none */
    uint32_t stop_at;   /* the packet with which part 1 has enough; 0: none */
    struct {
        _Alignas(64) uint32_t last, n; /* its latest packet, and how many it took */
        atomic_uint inside;            /* threads that are in it */
        uint32_t n_fetched;
        pthread_t by; /* who took the latest one */
        bool stopped;
    } of[PARTS];
};

/* Every third packet is of two parts. */
static uint64_t whose(uint32_t number)
{
    unsigned one = number * 7 / 5 % PARTS, other = number % 3 ? one : (one + 1) % PARTS;

    return number % ALL_EACH ? TURNS_PART(one) | TURNS_PART(other) : TURNS_ALL;
}

static uint64_t parts_of(void *user, struct pkt *p)
{
    struct shares *s = user;
    uint32_t number = (uint32_t)p->frame->number;

    cr_assert_eq(number, ++s->n_sorted);
    return number == s->enough_at ? TURNS_ENOUGH : whose(number);
}

static void take_part(void *user, unsigned part, struct pkt *p)
{
    struct shares *s = user;
    uint32_t number = (uint32_t)p->frame->number;

    cr_assert_eq(atomic_fetch_add(&s->of[part].inside, 1), 0);
    cr_assert(whose(number) & TURNS_PART(part));
    cr_assert_gt(number, s->of[part].last);
    s->of[part].last = number;
    s->of[part].by = pthread_self();
    s->of[part].n++;
    s->of[part].stopped |= part == 1 && number == s->stop_at;
    atomic_fetch_sub(&s->of[part].inside, 1);
}

static bool part_taken(void *user, unsigned part)
{
    const struct shares *s = user;

    return !s->of[part].stopped;
}

static void fetch_part(void *user, unsigned part)
{
    struct shares *s = user;

    cr_assert(!s->of[part].n || !pthread_equal(s->of[part].by, pthread_self()));
    s->of[part].n_fetched++;
}

static void share_out(struct shares *s, unsigned threads)
{
    const struct turns_opts o = {.threads = threads,
                                 .frames = TURNS_TREES,
                                 .read = read_frame,
                                 .reader = &s->l,
                                 .parts = PARTS,
                                 .parts_of = parts_of,
                                 .take_part = take_part,
                                 .part_taken = part_taken,
                                 .fetch_part = fetch_part,
                                 .user = s};

    cr_assert(turns_run(&o));
}

/* Packets of `part` up to number `n`. */
static uint32_t n_of(unsigned part, uint32_t n)
{
    uint32_t sum = 0;

    for (uint32_t i = 1; i <= n; i++)
        sum += (whose(i) & TURNS_PART(part)) != 0;
    return sum;
}

Test(turns, each_part_takes_its_packets_in_order, .timeout = 60)
{
    uint32_t n_fetched = 0;

    for (unsigned threads = 2; threads <= THREADS; threads++) {
        struct shares s = {.l.frames = MANY};
        share_out(&s, threads);
        cr_assert_eq(s.n_sorted, MANY);
        for (unsigned i = 0; i < PARTS; i++) {
            cr_assert_eq(s.of[i].n, n_of(i, MANY), "part %u", i);
            n_fetched += s.of[i].n_fetched;
        }
    }
    cr_assert_gt(n_fetched, 0);
}

Test(turns, parts_get_no_packet_behind_the_one_that_is_enough, .timeout = 60)
{
    for (unsigned threads = 2; threads <= THREADS; threads++) {
        struct shares s = {.l.frames = MANY, .enough_at = MANY / 3};
        share_out(&s, threads);
        cr_assert_eq(s.n_sorted, MANY / 3);
        for (unsigned i = 0; i < PARTS; i++)
            cr_assert_eq(s.of[i].n, n_of(i, MANY / 3 - 1), "part %u", i);
    }
}

Test(turns, when_a_part_has_enough_no_more_is_read, .timeout = 60)
{
    for (unsigned threads = 2; threads <= THREADS; threads++) {
        struct shares s = {.l.frames = MANY, .stop_at = MANY / 2};
        while (whose(s.stop_at) != TURNS_PART(1))
            s.stop_at++;
        share_out(&s, threads);
        cr_assert_geq(s.l.n_read, s.stop_at);
        cr_assert_leq(s.l.n_read, s.stop_at + TURNS_TREES * (threads + 1));
    }
}

/* --- What a note points to --------------------------------------------------------------------- */

/* Packets that are kept until the capture was taken to its end, and their text when they were taken. */
struct kept {
    struct frame f;
    struct pkt p;
    struct buf text;
};

static void as_text(struct buf *b, const struct pkt *p)
{
    static const struct print_opts o = {.tree = true};

    print_tree(&o, b, p);
    print_json(b, p);
}

/* Take all frames of a capture as decode does: those whose text may be made later have the same one when all are
 * taken. Returns how many of them have a note. */
static unsigned compare_later(const char *path)
{
    static const struct decode_opts opts = {.verify = true};
    struct context *c = context_new(0);
    struct kept **kept = NULL;
    struct cap *in;
    struct cap_error err;
    struct frame f;
    struct buf again = {0};
    unsigned n = 0, noted = 0;

    cr_assert(c && ulp_of_context(c, &(struct ulp_opts){0}));
    cr_assert_eq(cap_open(&in, path, 0, NULL, &err), 0, "%s", path);
    while (cap_next(in, &f) > 0) {
        struct kept *k = calloc(1, sizeof *k);
        kept = realloc(kept, (n + 1) * sizeof(struct kept *));
        kept[n++] = k;
        k->f = f;
        k->f.data = memcpy(malloc(f.caplen + 1), f.data, f.caplen);
        k->f.comment_len = k->f.options_len = 0;
        pkt_decode(&k->p, &k->f, &opts);
        context_note(c, &k->p);
        if (!print_now(&k->p))
            as_text(&k->text, &k->p);
        noted += k->text.len && k->p.note.have & (NOTE_CONN | NOTE_MSG | NOTE_UPPER);
    }
    for (unsigned i = 0; i < n; i++) {
        again.len = 0;
        if (kept[i]->text.len)
            as_text(&again, &kept[i]->p);
        cr_expect_str_eq(buf_str(&again), buf_str(&kept[i]->text), "%s frame %u", path, i + 1);
        buf_free(&kept[i]->text);
        free((void *)kept[i]->f.data);
        free(kept[i]);
    }
    free(kept);
    buf_free(&again);
    cap_close(in);
    context_free(c);
    return noted;
}

Test(turns, the_text_of_a_packet_is_the_same_once_all_packets_were_taken)
{
    unsigned noted = 0;
    glob_t files;

    cr_assert_eq(glob("captures/*.pcap*", 0, NULL, &files), 0, "run from the root of the tree");
    for (size_t i = 0; i < files.gl_pathc; i++)
        noted += compare_later(files.gl_pathv[i]);
    globfree(&files);
    cr_expect_gt(noted, 500);
}
