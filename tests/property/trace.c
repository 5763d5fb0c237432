/* layer 4 (test) property: recordings of taps in memory. */
#include "tests/property/trace.h"

#include "dissect/mad/cm.h"
#include "dissect/pkt.h"
#include "gen/endpoint/endpoint.h"
#include "gen/endpoint/rewrite.h"
#include "src/cap/reorder.h"
#include "src/taps/longest.h"

#include <stdio.h>
#include <stdlib.h>

#define SWAP_WINDOW 8
#define PSNS_NEAR   2048 /* twice what the judge remembers, which is more than a conversation sends */
#define SWAP_TIME   (20 * NS_PER_US)

static void *grown(void *p, size_t size)
{
    p = realloc(p, size);
    if (!p) {
        fputs("property: out of memory\n", stderr);
        exit(2);
    }
    return p;
}

static size_t store_put(struct store *s, const void *data, uint32_t len)
{
    if (s->n + len > s->cap) {
        s->cap = (s->n + len) * 2;
        s->b = grown(s->b, s->cap);
    }
    memcpy(s->b + s->n, data, len);
    s->n += len;
    return s->n - len;
}

static void trace_fit(struct trace *t, size_t n)
{
    if (n <= t->cap)
        return;
    t->cap = 2 * n + 64;
    t->shot = grown(t->shot, t->cap * sizeof *t->shot);
}

void trace_add(struct trace *t, const uint8_t *data, uint32_t len, ns_t ts)
{
    trace_fit(t, t->n + 1);
    t->shot[t->n++] = (struct shot){.ts = ts, .off = store_put(t->store, data, len), .len = len};
}

void trace_copy(struct trace *to, const struct trace *from)
{
    trace_fit(to, from->n + 1);
    if (from->n)
        memcpy(to->shot, from->shot, from->n * sizeof *to->shot);
    to->n = from->n;
    to->store = from->store;
    to->linktype = from->linktype;
}

void trace_free(struct trace *t)
{
    free(t->shot);
    *t = (struct trace){0};
}

/* --- Mutations -------------------------------------------------------------------------------- */

static const char *const names[MUTATIONS] = {"as it was", "frames dropped",     "one direction", "cut",
                                             "doubled",   "directions swapped", "disordered"};

const char *mutation_str(enum mutation m)
{
    return names[m];
}

bool mutation_is_complete(enum mutation m)
{
    return m != DROPPED && m != ONE_WAY && m != SWAPPED;
}

/* A number that tells the direction of a frame: the source MAC address, or the source LID of native InfiniBand. */
static uint64_t direction(const struct trace *t, size_t i)
{
    const uint8_t *p = trace_data(t, i);

    if (t->linktype == LINK_INFINIBAND)
        return t->shot[i].len >= 8 ? load_be16(p + 6) : 0;
    return t->shot[i].len >= 14 ? (uint64_t)load_be32(p + 6) << 16 | load_be16(p + 10) : 0;
}

static void drop_frames(struct trace *t, struct prng *r)
{
    static const uint8_t percent[] = {1, 5, 30};
    uint32_t rate = percent[prng_below(r, ARRAY_LEN(percent))];
    size_t n = 0;

    for (size_t i = 0; i < t->n; i++)
        if (prng_below(r, 100) >= rate)
            t->shot[n++] = t->shot[i];
    t->n = n;
}

static void one_way(struct trace *t, struct prng *r)
{
    uint64_t keep = t->n ? direction(t, prng_below(r, (uint32_t)t->n)) : 0;
    size_t n = 0;

    for (size_t i = 0; i < t->n; i++)
        if (direction(t, i) == keep)
            t->shot[n++] = t->shot[i];
    t->n = n;
}

static void cut(struct trace *t, struct prng *r)
{
    uint32_t what = prng_below(r, 3);
    size_t a = what == 0 ? 0 : prng_below(r, (uint32_t)t->n + 1),
           b = what == 1 ? t->n : prng_below(r, (uint32_t)t->n + 1), swap = a;

    if (a > b) {
        a = b;
        b = swap;
    }
    memmove(t->shot, t->shot + a, (b - a) * sizeof *t->shot);
    t->n = b - a;
}

static void double_frames(struct trace *t, struct prng *r)
{
    ns_t later = prng_below(r, 2) ? 0 : 100;

    trace_fit(t, 2 * t->n + 1);
    for (size_t i = t->n; i-- > 0;) {
        t->shot[2 * i + 1] = t->shot[2 * i] = t->shot[i];
        t->shot[2 * i + 1].ts += i + 1 < t->n && t->shot[i].ts + later <= t->shot[2 * i + 2].ts ? later : 0;
    }
    t->n *= 2;
}

/* Merge the two directions of frames `a` to `a` + SWAP_WINDOW anew; the times stay where they are if `times`. */
static void mix(struct trace *t, size_t a, bool times, struct prng *r)
{
    struct shot lane[2][SWAP_WINDOW];
    ns_t when[SWAP_WINDOW];
    uint32_t len[2] = {0, 0}, at[2] = {0, 0};
    uint64_t first = direction(t, a);

    for (size_t i = 0; i < SWAP_WINDOW; i++) {
        unsigned d = direction(t, a + i) != first;
        lane[d][len[d]++] = t->shot[a + i];
        when[i] = t->shot[a + i].ts;
    }
    for (size_t i = 0; i < SWAP_WINDOW; i++) {
        unsigned d = prng_below(r, len[0] - at[0] + len[1] - at[1]) >= len[0] - at[0];
        t->shot[a + i] = lane[d][at[d]++];
        if (times)
            t->shot[a + i].ts = when[i];
    }
}

/* Whether time alone tells the order of the window, and what is next to it; nobody writes a frame a second late. */
static bool all_differ(const struct trace *t, size_t a)
{
    if (t->shot[a + SWAP_WINDOW - 1].ts - t->shot[a].ts >= WINDOW_BACK)
        return false;
    for (size_t i = a ? a - 1 : a; i < a + SWAP_WINDOW && i + 1 < t->n; i++)
        if (t->shot[i].ts == t->shot[i + 1].ts)
            return false;
    return true;
}

/* Whether the window is so short that its packets may have been taken by several processors at the same time. */
static bool is_short(const struct trace *t, size_t a)
{
    return t->shot[a + SWAP_WINDOW - 1].ts - t->shot[a].ts <= SWAP_TIME;
}

static bool is_sorted(const struct trace *t)
{
    for (size_t i = 1; i < t->n; i++)
        if (t->shot[i].ts < t->shot[i - 1].ts)
            return false;
    return true;
}

static void swap_directions(struct trace *t, struct prng *r, bool times)
{
    if (times && !is_sorted(t))
        return; /* packets of one direction would change places */
    for (size_t i = prng_below(r, SWAP_WINDOW); i + SWAP_WINDOW < t->n; i += SWAP_WINDOW)
        if (prng_below(r, 2) && (times ? is_short(t, i) : all_differ(t, i)))
            mix(t, i, times, r);
}

void trace_mutate(struct trace *t, enum mutation m, struct prng *r)
{
    switch (m) {
    case DROPPED:
        drop_frames(t, r);
        break;
    case ONE_WAY:
        one_way(t, r);
        break;
    case CUT:
        cut(t, r);
        break;
    case DOUBLED:
        double_frames(t, r);
        break;
    case SWAPPED:
        swap_directions(t, r, true);
        break;
    case DISORDERED:
        swap_directions(t, r, false);
        break;
    default:
        break;
    }
}

bool trace_opens(const struct trace *t, const struct link_addr *host)
{
    uint64_t from =
        t->linktype == LINK_INFINIBAND ? host->lid : (uint64_t)load_be32(host->mac) << 16 | load_be16(host->mac + 4);

    for (size_t i = 0; i < t->n; i++) {
        struct cm_msg m;
        struct frame f;
        struct pkt p;
        frame_decode(&p, &f, trace_data(t, i), t->shot[i].len, t->linktype);
        if (direction(t, i) == from && cm_msg_of(&m, &p) && m.mad.attr_id == CM_REQ)
            return true;
    }
    return false;
}

void trace_drop_cm(struct trace *t)
{
    size_t n = 0;

    for (size_t i = 0; i < t->n; i++) {
        struct frame f;
        struct pkt p;
        frame_decode(&p, &f, trace_data(t, i), t->shot[i].len, t->linktype);
        if (!(p.have & H_BTH) || p.bth.dqpn != 1)
            t->shot[n++] = t->shot[i];
    }
    t->n = n;
}

/* The PSN of frame `i`, if it is a request from `from` to queue pair `qpn`; UINT32_MAX if not. */
static uint32_t request_psn(const struct trace *t, size_t i, uint64_t *from, uint32_t *qpn)
{
    struct frame f;
    struct pkt p;

    frame_decode(&p, &f, trace_data(t, i), t->shot[i].len, t->linktype);
    if (!(p.have & H_BTH) || !(p.op->flags & OPF_REQUEST) || (*qpn && (direction(t, i) != *from || p.bth.dqpn != *qpn)))
        return UINT32_MAX;
    *from = direction(t, i);
    *qpn = p.bth.dqpn;
    return p.bth.psn;
}

bool trace_psns_differ(const struct trace *t, const struct trace *later)
{
    if (t->n > PSNS_NEAR || later->n > PSNS_NEAR)
        return false;
    for (size_t i = 0; i < later->n; i++) {
        uint64_t from = 0;
        uint32_t qpn = 0, first = request_psn(later, i, &from, &qpn), old;
        for (size_t k = 0; k < t->n && first != UINT32_MAX; k++)
            if ((old = request_psn(t, k, &from, &qpn)) != UINT32_MAX &&
                psn_in(first, psn_add(old, (uint32_t)-PSNS_NEAR), 2 * PSNS_NEAR))
                return false;
    }
    return true;
}

#define CM_ID_COUNTS 8 /* numbers that communication ids count from, of a capture */

/* The numbers that the communication ids of both hosts count from: how many. */
static unsigned cm_id_counts(const struct trace *t, uint32_t from[CM_ID_COUNTS])
{
    unsigned n = 0, k;

    for (size_t i = 0; i < t->n && n < CM_ID_COUNTS; i++) {
        struct cm_msg m;
        struct frame f;
        struct pkt p;
        frame_decode(&p, &f, trace_data(t, i), t->shot[i].len, t->linktype);
        if (!cm_msg_of(&m, &p) || (m.mad.attr_id != CM_REQ && m.mad.attr_id != CM_REP))
            continue;
        from[n] = (m.mad.attr_id == CM_REQ ? m.req.local_id : m.rep.local_id) & 0xfff00000;
        for (k = 0; from[k] != from[n]; k++)
            ;
        n += k == n;
    }
    return n;
}

bool trace_cm_ids_meet(const struct trace *t, const struct trace *later)
{
    uint32_t a[CM_ID_COUNTS], b[CM_ID_COUNTS];
    unsigned n = cm_id_counts(t, a), m = cm_id_counts(later, b);

    for (unsigned i = 0; i < n * m; i++)
        if (a[i / m] == b[i % m])
            return true;
    return !n && !m;
}

void trace_round(struct trace *t, ns_t step)
{
    for (size_t i = 0; i < t->n; i++)
        t->shot[i].ts -= t->shot[i].ts % step;
}

void trace_set_back(struct trace *t, size_t at, ns_t by)
{
    for (; at < t->n; at++)
        t->shot[at].ts -= by;
}

void trace_delay(struct trace *t, ns_t by)
{
    for (size_t i = 0; i < t->n; i++)
        t->shot[i].ts += by;
}

void trace_skew(struct trace *t, ns_t by, struct prng *r)
{
    uint64_t ahead = t->n ? direction(t, prng_below(r, (uint32_t)t->n)) : 0;

    for (size_t i = 0; i < t->n; i++) {
        struct shot s = t->shot[i];
        size_t at = i;
        s.ts += direction(t, i) == ahead ? by : 0;
        for (; at && t->shot[at - 1].ts > s.ts; at--)
            t->shot[at] = t->shot[at - 1];
        t->shot[at] = s;
    }
}

void trace_merge(struct trace *t, struct store *store, const struct trace *const in[], unsigned n, bool taps)
{
    size_t at[TAP_PLACES] = {0};

    *t = (struct trace){.store = store, .linktype = in[0]->linktype};
    for (;;) {
        unsigned next = n;
        for (unsigned i = 0; i < n; i++)
            if (at[i] < in[i]->n && (next == n || in[i]->shot[at[i]].ts < in[next]->shot[at[next]].ts))
                next = i;
        if (next == n)
            return;
        const struct shot *s = &in[next]->shot[at[next]];
        trace_add(t, trace_data(in[next], at[next]++), s->len, s->ts);
        t->shot[t->n - 1].iface = taps ? next : 0;
    }
}

/* --- Judging, writing ------------------------------------------------------------------------- */

static struct frame frame_of(const struct trace *t, size_t i)
{
    const struct shot *s = &t->shot[i];

    return (struct frame){.ts = t->untimed ? 0 : TAP_EPOCH + s->ts,
                          .data = trace_data(t, i),
                          .caplen = t->snap ? min_u32(t->snap, s->len) : s->len,
                          .len = s->len,
                          .number = i + 1,
                          .linktype = t->linktype,
                          .has_ts = !t->untimed,
                          .iface = s->iface};
}

/* As the program reads a stream: whether a mirror can have cut a frame is told by those before it. */
static void judge_frame(struct judge *j, struct longest *l, struct frame f)
{
    static const struct decode_opts verify = {.verify = true};
    struct pkt p;

    longest_apply(l, &f);
    pkt_decode(&p, &f, &verify);
    longest_note(l, &p);
    judge_packet(j, &p);
}

/* As the reading loop of the program does: in the order of time as far as the window allows. */
static void judge_frames(struct judge *j, struct longest *l, const struct trace *t)
{
    struct window *w = window_new();
    const struct frame *out;
    struct frame f;
    bool ok = w != NULL;

    for (size_t i = 0; ok && i < t->n; i++) {
        f = frame_of(t, i);
        ok = window_put(w, &f);
        while (window_full(w) && (out = window_get(w)))
            judge_frame(j, l, *out);
    }
    while (w && (out = window_get(w)))
        judge_frame(j, l, *out);
    window_free(w);
    if (!ok) {
        fputs("property: out of memory\n", stderr);
        exit(2);
    }
}

struct judge *trace_judge(const struct trace *t, const struct judge_opts *o)
{
    struct judge *j = judge_new(o);
    struct longest l = {0};

    if (!j) {
        fputs("property: out of memory\n", stderr);
        exit(2);
    }
    if (is_sorted(t)) {
        for (size_t i = 0; i < t->n; i++)
            judge_frame(j, &l, frame_of(t, i));
    } else {
        judge_frames(j, &l, t);
    }
    judge_end(j);
    return j;
}

bool trace_write(const struct trace *t, const char *path)
{
    struct cap_iface iface = {.linktype = t->linktype, .tsresol = 9};
    struct cap_writer_opts o = {.linktype = t->linktype, .app = "property"};
    struct cap_writer *w;
    struct cap_error e;
    struct buf b = {0};
    bool good = cap_writer_open(&w, path, &o, &e) == 0;

    for (size_t i = 0; good && i < t->n; i++) {
        struct frame f = frame_of(t, i);
        cap_write(w, &f, &iface);
    }
    good = good && cap_writer_close(w, &e) == 0;
    if (!good) {
        cap_error_line(&e, &b);
        fprintf(stderr, "property: %s\n", buf_str(&b));
        buf_free(&b);
    }
    return good;
}
