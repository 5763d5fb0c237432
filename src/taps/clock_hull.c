/* layer 2b (taps): the offset of two clocks: hulls, lines between them, windows. */
#include "src/taps/clock_hull.h"

#define WINDOW   (10 * NS_PER_S)
#define SKEW_MAX (CLOCK_DRIFT_PPM / 1e6)

enum { FORWARD, BACKWARD };

void clock_hull_init(struct clock_hull *h)
{
    memset(h, 0, sizeof *h);
    h->length = WINDOW;
}

/* --- Hulls ------------------------------------------------------------------------------------ */

/* True if b lies on the outer side of the line from a to c, or on it: then it is no corner of the hull. Both hulls are
 * handled as lower hulls: that of b with y negated. */
static bool is_outside(const struct clock_point *a, const struct clock_point *b, const struct clock_point *c, int sign)
{
    __int128 left = (__int128)(b->y - a->y) * sign * (c->x - a->x),
             right = (__int128)(c->y - a->y) * sign * (b->x - a->x);

    return left >= right;
}

/* Twice the area of the triangle with corner `i`: the loss of precision without that corner. */
static __int128 area(const struct clock_points *s, uint32_t i)
{
    const struct clock_point *a = &s->p[i - 1], *b = &s->p[i], *c = &s->p[i + 1];
    __int128 v = (__int128)(b->x - a->x) * (c->y - a->y) - (__int128)(b->y - a->y) * (c->x - a->x);

    return v < 0 ? -v : v;
}

static void point_remove(struct clock_points *s, uint32_t i)
{
    memmove(&s->p[i], &s->p[i + 1], (s->n - i - 1) * sizeof s->p[0]);
    s->n--;
}

/* Drop the inner corner that matters least. */
static void thin(struct clock_points *s)
{
    uint32_t least = 1;

    for (uint32_t i = 2; i + 1 < s->n; i++)
        if (area(s, i) < area(s, least))
            least = i;
    point_remove(s, least);
}

/* Drop the corners next to `at` that its point made superfluous, `at` itself included. */
static void restore(struct clock_points *s, uint32_t at, int sign)
{
    if (at && at + 1 < s->n && is_outside(&s->p[at - 1], &s->p[at], &s->p[at + 1], sign)) {
        point_remove(s, at);
        return;
    }
    while (at >= 2 && is_outside(&s->p[at - 2], &s->p[at - 1], &s->p[at], sign))
        point_remove(s, --at);
    while (at + 2 < s->n && is_outside(&s->p[at], &s->p[at + 1], &s->p[at + 2], sign))
        point_remove(s, at + 1);
}

/* Pairs arrive nearly in the order of time: search the place from the end. */
static void points_add(struct clock_points *s, struct clock_point p, int sign)
{
    uint32_t at = s->n;

    s->pairs++;
    while (at && s->p[at - 1].x > p.x)
        at--;
    if (at && s->p[at - 1].x == p.x) {
        if ((p.y - s->p[at - 1].y) * sign >= 0)
            return;
        s->p[--at] = p;
    } else {
        memmove(&s->p[at + 1], &s->p[at], (s->n - at) * sizeof s->p[0]);
        s->p[at] = p;
        s->n++;
    }
    restore(s, at, sign);
    if (s->n > CLOCK_HULL_POINTS)
        thin(s);
}

/* --- Lines ------------------------------------------------------------------------------------ */

/* The hulls of a window relative to its start, in ns. */
struct frame_of {
    const struct clock_hull *h;
    ns_t y0; /* subtracted from y */
};

/* min over f, or max over b, of y - skew * (x - at): the upper, or lower, limit at `at` of a line with this slope. */
static double limit(const struct frame_of *w, unsigned side, double skew, ns_t at)
{
    const struct clock_points *s = &w->h->side[side];
    double best = 0;

    for (uint32_t i = 0; i < s->n; i++) {
        double v = (double)(s->p[i].y - w->y0) - skew * (double)(s->p[i].x - at);
        if (!i || (side == FORWARD ? v < best : v > best))
            best = v;
    }
    return best;
}

static double margin(const struct frame_of *w, double skew)
{
    return limit(w, FORWARD, skew, w->h->from) - limit(w, BACKWARD, skew, w->h->from);
}

/* The slope of edge `i` of a hull. The margin is a concave function of the slope, which bends at the edges of both
 * hulls. */
static double edge(const struct clock_points *s, uint32_t i)
{
    double v = (double)(s->p[i + 1].y - s->p[i].y) / (double)(s->p[i + 1].x - s->p[i].x);

    return v > SKEW_MAX ? SKEW_MAX : v < -SKEW_MAX ? -SKEW_MAX : v;
}

/* Mean distance between the pairs of a direction and the line of this slope that touches their hull, plus 1 ns. */
static double spread(const struct frame_of *w, unsigned side, double skew)
{
    const struct clock_points *s = &w->h->side[side];
    double x = s->x / s->pairs + (double)(w->h->base.x - w->h->from), y = s->y / s->pairs;
    double d = y + (double)(w->h->base.y - w->y0) - skew * x - limit(w, side, skew, w->h->from);

    return (side == FORWARD ? d : -d) + 1;
}

/* The slope that fits best; false: none fits. */
static bool best_slope(const struct frame_of *w, double *slope)
{
    double least = 0;
    bool any = false;

    for (unsigned side = 0; side < 2; side++)
        for (uint32_t i = 0; i < w->h->side[side].n; i++) {
            const struct clock_points *s = &w->h->side[side];
            double skew = i + 1 < s->n ? edge(s, i) : 0, v;
            if (margin(w, skew) < 0)
                continue;
            v = spread(w, FORWARD, skew) * spread(w, BACKWARD, skew);
            if (!any || v < least) {
                least = v;
                *slope = skew;
            }
            any = true;
        }
    return any;
}

/* The outermost slope, between `from` (whose margin is not negative) and `to`, with which a line still fits. */
static double outermost(const struct frame_of *w, double from, double to)
{
    if (margin(w, to) >= 0)
        return to;
    for (unsigned i = 0; i < 50; i++) {
        double half = (from + to) / 2;
        if (margin(w, half) >= 0)
            from = half;
        else
            to = half;
    }
    return from;
}

/* Largest distance of theta from `offset` at `at`, over all lines that fit: the limits bend at the slopes of edges,
 * too. */
static double error_at(const struct frame_of *w, double skew, double offset, ns_t at)
{
    double slopes[2 * CLOCK_HULL_POINTS + 3], worst = 0;
    double low = outermost(w, skew, -SKEW_MAX), high = outermost(w, skew, SKEW_MAX);
    uint32_t n = 0;

    slopes[n++] = low;
    slopes[n++] = high;
    slopes[n++] = skew;
    for (unsigned side = 0; side < 2; side++)
        for (uint32_t i = 0; i + 1 < w->h->side[side].n; i++)
            slopes[n++] = edge(&w->h->side[side], i);
    for (uint32_t i = 0; i < n; i++) {
        double above, below;
        if (slopes[i] < low || slopes[i] > high)
            continue;
        above = limit(w, FORWARD, slopes[i], at) - offset;
        below = offset - limit(w, BACKWARD, slopes[i], at);
        worst = above > worst ? above : worst;
        worst = below > worst ? below : worst;
    }
    return worst;
}

static bool has_enough(const struct clock_hull *h)
{
    return h->side[FORWARD].pairs >= CLOCK_PAIRS_MIN && h->side[BACKWARD].pairs >= CLOCK_PAIRS_MIN;
}

static ns_t round_up(double v)
{
    return (ns_t)v + (v > (double)(ns_t)v);
}

/* The line of the present window; false: none fits, or there are too few pairs. */
static bool fit(const struct clock_hull *h, struct clock_window *to)
{
    const struct frame_of w = {h, h->side[FORWARD].p[0].y};
    double skew = 0, offset, ends[3];
    ns_t at = h->from + (h->to - h->from) / 2, times[3] = {h->from, at, h->to};

    if (!has_enough(h) || !best_slope(&w, &skew))
        return false;
    offset = (limit(&w, FORWARD, skew, at) + limit(&w, BACKWARD, skew, at)) / 2;
    for (unsigned i = 0; i < 3; i++)
        ends[i] = error_at(&w, skew, offset + skew * (double)(times[i] - at), times[i]);
    ends[1] = ends[0] > ends[1] ? ends[0] : ends[1];
    *to = (struct clock_window){.from = h->from,
                                .to = h->to,
                                .at = at,
                                .offset = w.y0 + (ns_t)(offset + (offset < 0 ? -0.5 : 0.5)),
                                .skew = skew,
                                .bound = round_up(ends[1] > ends[2] ? ends[1] : ends[2])};
    return true;
}

/* --- Windows ---------------------------------------------------------------------------------- */

static void window_keep(struct clock_hull *h, const struct clock_window *w)
{
    if (h->n == CLOCK_WINDOWS) {
        for (uint32_t i = 1; i < h->n; i += 2)
            h->windows[i / 2] = h->windows[i];
        h->n /= 2;
        h->length *= 2;
    }
    h->windows[h->n++] = *w;
}

static void window_end(struct clock_hull *h, bool stepped)
{
    struct clock_window w;

    if (fit(h, &w)) {
        w.stepped = stepped;
        window_keep(h, &w);
    }
    h->side[FORWARD] = h->side[BACKWARD] = (struct clock_points){.n = 0};
}

void clock_hull_end(struct clock_hull *h)
{
    window_end(h, false);
}

static void take(struct clock_hull *h, unsigned side, struct clock_point p)
{
    bool first = !h->side[FORWARD].pairs && !h->side[BACKWARD].pairs;

    h->from = first || p.x < h->from ? p.x : h->from;
    h->to = first || p.x > h->to ? p.x : h->to;
    h->base = first ? p : h->base;
    h->side[side].x += (double)(p.x - h->base.x);
    h->side[side].y += (double)(p.y - h->base.y);
    points_add(&h->side[side], p, side == FORWARD ? 1 : -1);
}

/* True if no offset theta fits both `p` and some pair of the other direction, at any permitted drift. */
static bool contradicts(const struct clock_hull *h, unsigned side, const struct clock_point *p)
{
    const struct clock_points *other = &h->side[!side];

    for (uint32_t i = 0; i < other->n; i++) {
        ns_t apart = p->x > other->p[i].x ? p->x - other->p[i].x : other->p[i].x - p->x;
        ns_t room = side == FORWARD ? p->y - other->p[i].y : other->p[i].y - p->y;
        if ((double)room < -(double)apart * SKEW_MAX)
            return true;
    }
    return false;
}

/* End the window: enough pairs in a row contradict it. They begin the next one. */
static void step(struct clock_hull *h, unsigned side)
{
    uint32_t n = h->n_suspects[side];

    h->n_suspects[FORWARD] = h->n_suspects[BACKWARD] = 0;
    h->steps++;
    window_end(h, true);
    for (uint32_t i = 0; i < n; i++)
        take(h, side, h->suspects[side][i]);
}

void clock_hull_add(struct clock_hull *h, ns_t t1, ns_t t2, bool forward)
{
    unsigned side = forward ? FORWARD : BACKWARD;
    struct clock_point p = {t1, t2 - t1};

    if (h->side[!side].n && contradicts(h, side, &p)) {
        h->suspects[side][h->n_suspects[side]++] = p;
        if (h->n_suspects[side] == CLOCK_SUSPECTS)
            step(h, side);
        return;
    }
    h->dropped += h->n_suspects[side];
    h->n_suspects[side] = 0;
    if (has_enough(h) && t1 - h->from >= h->length)
        window_end(h, false);
    take(h, side, p);
}

/* --- Estimates -------------------------------------------------------------------------------- */

static double value(const struct clock_window *w, ns_t t)
{
    return (double)w->offset + w->skew * (double)(t - w->at);
}

/* The estimate of one window. Outside of it the bound grows with the greatest drift of the two clocks. */
static struct clock_estimate by_line(const struct clock_window *w, ns_t t)
{
    ns_t away = t < w->from ? w->from - t : t > w->to ? t - w->to : 0;

    return (struct clock_estimate){true, w->offset + (ns_t)(w->skew * (double)(t - w->at)),
                                   w->bound + round_up((double)away * SKEW_MAX), w->skew * 1e6};
}

/* Between two windows: the offset is interpolated from the end of the first to the start of the second. */
static struct clock_estimate between(const struct clock_window *a, const struct clock_window *b, ns_t t)
{
    double part = (double)(t - a->to) / (double)(b->from - a->to), u = value(a, a->to), v = value(b, b->from);
    double change = (v - u) / (double)(b->from - a->to);
    ns_t bound = a->bound > b->bound ? a->bound : b->bound;
    ns_t near = t - a->to < b->from - t ? t - a->to : b->from - t;

    return (struct clock_estimate){true, (ns_t)(u + part * (v - u)), bound + round_up((double)near * SKEW_MAX),
                                   change * 1e6};
}

struct clock_estimate clock_hull_at(const struct clock_hull *h, ns_t t)
{
    struct clock_window last;
    bool have_last = fit(h, &last);
    uint32_t n = h->n + have_last;

    for (uint32_t i = 0; i < n; i++) {
        const struct clock_window *w = i < h->n ? &h->windows[i] : &last;
        const struct clock_window *next = i + 1 < h->n ? &h->windows[i + 1] : i + 1 < n ? &last : NULL;
        if (t <= w->to || !next)
            return by_line(w, t);
        if (t < next->from)
            return w->stepped ? by_line(w, t) : between(w, next, t);
    }
    return (struct clock_estimate){.known = false};
}
