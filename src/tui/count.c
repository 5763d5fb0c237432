/* layer 3b (tui): counts before motions: 123g, 20j. A digit opens its screen at once, too; a motion takes that back. */
#include "src/tui/tui_impl.h"

#define COUNT_MAX    1000000000        /* a larger one counts as this one */
#define TOGETHER     (350 * NS_PER_MS) /* digits of a count, and the motion, follow each other within */
#define MOST_AT_ONCE 1000              /* times that a motion is done, which is not of lines */

/* Motions by lines or pages, and those that are done several times. */
static const struct {
    enum action action;
    int lines; /* 0: it is done so often */
    enum { OF_LINES, OF_PAGES, OF_HALVES } of;
} motions[] = {
    {ACTION_UP, -1, OF_LINES},        {ACTION_DOWN, 1, OF_LINES},      {ACTION_PAGE_UP, -1, OF_PAGES},
    {ACTION_PAGE_DOWN, 1, OF_PAGES},  {ACTION_HALF_UP, -1, OF_HALVES}, {ACTION_HALF_DOWN, 1, OF_HALVES},
    {ACTION_LEFT, 0, OF_LINES},       {ACTION_RIGHT, 0, OF_LINES},     {ACTION_NEXT_EVENT, 0, OF_LINES},
    {ACTION_PREV_EVENT, 0, OF_LINES},
};

/* Whether what was typed before goes on: in a script always. */
static bool goes_on(const struct tui *t)
{
    return t->count.digits && (t->script || now_ns() - t->count.latest < (uint64_t)TOGETHER);
}

static void remember(struct tui *t)
{
    struct count *c = &t->count;

    c->screen = (uint8_t)t->screen;
    c->pane = (uint8_t)t->pane;
    c->n_back = t->n_back;
    memcpy(c->back, t->back, sizeof c->back);
    for (unsigned i = 0; i < SCREENS; i++) {
        c->at[i] = t->views[i].at;
        c->top[i] = t->views[i].top;
    }
    c->ladder_conn = t->ladder_conn;
    c->ladder_at = t->ladder_at;
    c->ladder_in_run = t->ladder_in_run;
}

/* As it was before the digits. */
static void restore(struct tui *t)
{
    struct count *c = &t->count;
    const struct spot *at = &c->ladder_at;
    bool other = t->ladder_conn != c->ladder_conn || t->ladder_at.frame != at->frame || t->ladder_at.file != at->file;

    if (other)
        ladder_ask(t, c->ladder_conn, at->frame ? at : NULL, c->ladder_in_run);
    go_to(t, (enum screen_id)c->screen, false);
    t->pane = (enum pane)c->pane;
    t->n_back = c->n_back;
    memcpy(t->back, c->back, sizeof c->back);
    for (unsigned i = 0; i < SCREENS; i++)
        if (i != SCREEN_LADDER || !other) {
            t->views[i].at = c->at[i];
            t->views[i].top = c->top[i];
        }
    prepare(t);
}

void count_digit(struct tui *t, uint32_t key, enum action a)
{
    struct count *c = &t->count;

    if (!goes_on(t)) {
        remember(t);
        c->digits = 0;
        c->n = 0;
        c->plain = a == ACTION_NONE;
    }
    c->digits++;
    c->n = c->n * 10 + (key - '0');
    c->n = c->n < COUNT_MAX ? c->n : COUNT_MAX;
    c->latest = now_ns();
    perform(t, a);
    if (c->plain)
        tui_say(t, LOOK_KEY, "%llu: a motion, such as j, is done so often; g goes to that frame",
                (unsigned long long)c->n);
}

/* Frame `n`, of the file of the selected one; elsewhere line `n`. */
static void go_to_number(struct tui *t, uint64_t n)
{
    struct spot p = {.frame = 0};

    if (t->pane != PANE_LIST) {
        move_by(t, -(INT64_C(1) << 40));
        move_by(t, (int64_t)n - (n > 0));
    } else if (!(screens[t->screen].place & IN_PACKETS)) {
        move_to(t, n - (n > 0));
    } else {
        row_about(t, t->views[t->screen].at, &p);
        p = (struct spot){.frame = n, .file = p.file};
        if (t->screen == SCREEN_LADDER && ladder_conn_of(t, &p))
            show_place(t, &p);
        else
            show_frame(t, p.file, n);
    }
}

bool count_taken(struct tui *t, enum action a)
{
    struct count *c = &t->count;
    bool counts = goes_on(t) && (c->digits > 1 || c->plain);
    uint64_t n = c->n;
    unsigned i = 0;

    c->digits = 0;
    while (i < ARRAY_LEN(motions) && motions[i].action != a)
        i++;
    if (!counts || (i == ARRAY_LEN(motions) && a != ACTION_TOP && a != ACTION_BOTTOM))
        return false;
    restore(t);
    if (i == ARRAY_LEN(motions))
        go_to_number(t, n);
    else if (motions[i].lines)
        move_by(t, motions[i].lines * (int64_t)n *
                       (motions[i].of == OF_LINES   ? 1
                        : motions[i].of == OF_PAGES ? page(t)
                                                    : (page(t) + 1) / 2));
    else
        for (uint64_t k = 0; k < n && k < MOST_AT_ONCE; k++)
            perform(t, a);
    return true;
}
