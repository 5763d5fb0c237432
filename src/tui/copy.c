/* layer 3b (tui): what is selected, copied or made the filter. */
#include "src/tui/tui_impl.h"

#include <signal.h>

/* A filter for what is selected: the field, else the frame. */
static bool selected_filter(struct tui *t, struct buf *b)
{
    struct spot p;

    if (t->pane == PANE_TREE || t->pane == PANE_BYTES)
        return detail_filter(t, b);
    if (!cursor_about(t, &p) || (!p.frame && !p.conn))
        return false;
    if (p.frame)
        buf_printf(b, "frame.number == %llu", (unsigned long long)p.frame);
    else
        buf_printf(b, "rdma.conn == %u", p.conn);
    return true;
}

/* Give the text to the user's command, else to the terminal. */
static void copy(struct tui *t, struct buf *text)
{
    void (*was)(int);
    struct buf command = {0};
    FILE *to;

    if (!t->o.copy) {
        term_copy(text->p, text->len);
        tui_say(t, LOOK_GOOD, "copied: %s", buf_str(text));
        return;
    }
    was = signal(SIGPIPE, SIG_IGN);
    buf_printf(&command, "{ %s\n} >/dev/null 2>&1", t->o.copy);
    to = popen(buf_str(&command), "we");
    if (to)
        fwrite(text->p, 1, text->len, to);
    if (to && pclose(to) == 0)
        tui_say(t, LOOK_GOOD, "copied: %s", buf_str(text));
    else
        tui_say(t, LOOK_FAIL, "%s failed: nothing was copied.", t->o.copy);
    signal(SIGPIPE, was);
    buf_free(&command);
}

void on_copy(struct tui *t)
{
    struct buf text = {0};

    if (selected_filter(t, &text))
        copy(t, &text);
    else
        tui_say(t, LOOK_NOTE, "There is no filter for this line.");
    buf_free(&text);
}

void on_copy_line(struct tui *t)
{
    if (t->pane == PANE_TREE && t->detail.n) {
        t->row.len = 0;
        fold_text(&t->detail, t->detail.at, &t->row);
    } else if (view(t)->at < row_count(t)) {
        text_of_row(t, view(t)->at, &t->row);
    } else {
        return;
    }
    copy(t, &t->row);
}

void on_field_filter(struct tui *t)
{
    struct buf text = {0};

    if (t->o.live && !t->ended && t->pane == PANE_LIST) {
        on_follow(t);
        return;
    }
    t->pane = t->pane == PANE_LIST ? PANE_TREE : t->pane;
    if (!selected_filter(t, &text)) {
        tui_say(t, LOOK_NOTE, "There is no filter for this line.");
    } else if (packets_filter(t, buf_str(&text))) {
        t->pane = PANE_LIST;
        go_to(t, SCREEN_PACKETS, true);
    }
    buf_free(&text);
}
