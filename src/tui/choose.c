/* layer 3b (tui): packets that are chosen for saving, and what the colours of packets tell. */
#include "src/tui/tui_impl.h"

#include <stdlib.h>

/* --- Choosing --------------------------------------------------------------------------------- */

/* Where packet `i` is among the chosen ones, or would be. */
static size_t chosen_at(const struct tui *t, uint64_t i)
{
    size_t low = 0, high = t->n_chosen;

    while (low < high) {
        size_t half = low + (high - low) / 2;
        if (t->chosen[half] < i)
            low = half + 1;
        else
            high = half;
    }
    return low;
}

bool is_chosen(const struct tui *t, uint64_t i)
{
    size_t at = chosen_at(t, i);

    return at < t->n_chosen && t->chosen[at] == i;
}

static bool make_room(struct tui *t)
{
    size_t cap = t->cap_chosen ? t->cap_chosen * 2 : 64;
    uint64_t *grown;

    if (t->n_chosen < t->cap_chosen)
        return true;
    grown = t->n_chosen < CHOSEN_MAX ? realloc(t->chosen, cap * sizeof *grown) : NULL;
    if (!grown)
        return false;
    t->chosen = grown;
    t->cap_chosen = cap;
    return true;
}

void on_choose(struct tui *t)
{
    uint64_t i = selected(t), *to;
    size_t at = chosen_at(t, i);
    bool was = i != UINT64_MAX && is_chosen(t, i);

    if (i == UINT64_MAX || (!was && !make_room(t))) {
        tui_say(t, LOOK_NOTE, i == UINT64_MAX ? "There is no packet here." : "No more packets can be chosen.");
        return;
    }
    to = t->chosen + at;
    memmove(to + !was, to + was, (t->n_chosen - at - was) * sizeof *to);
    if (!was)
        *to = i;
    t->n_chosen += was ? -(size_t)1 : 1;
    move_to(t, t->views[t->screen].at + 1);
    tui_say(t, LOOK_KEY, "%s", count_str(t->n_chosen, "packet"));
    buf_puts(&t->status, " chosen: S saves them.");
}

/* --- Colours ---------------------------------------------------------------------------------- */

void on_colors(struct tui *t)
{
    static const char *const names[COLORS_BY] = {"what packets are", "connection", "message"};

    t->color_by = (t->color_by + 1) % COLORS_BY;
    tui_say(t, LOOK_KEY, "colours by %s", names[t->color_by]);
}

enum look color_of(const struct tui *t, const struct pkt_note *note, enum look role)
{
    static const uint8_t colors[] = {LOOK_RESPONSE, LOOK_REQUEST, LOOK_UNSURE, LOOK_CM, LOOK_AGAIN};

    if (t->color_by == COLOR_CONN && note->have & NOTE_CONN)
        return (enum look)colors[note->conn % ARRAY_LEN(colors)];
    if (t->color_by == COLOR_MESSAGE && note->have & NOTE_MSG)
        return (enum look)colors[note->msg % ARRAY_LEN(colors)];
    return t->color_by == COLOR_ROLE ? role : LOOK_NORMAL;
}

enum look ladder_color(struct tui *t, uint64_t row, enum look role)
{
    struct spot p;
    uint64_t i;

    if (t->screen != SCREEN_LADDER || t->color_by == COLOR_ROLE || !row_about(t, row, &p) || !p.frame)
        return role;
    i = keep_find(t->keep, p.file, p.frame);
    return i != UINT64_MAX && keep_get(t->keep, i, &t->stored) ? color_of(t, &t->stored.note, role) : role;
}
