/* layer 3b (tui): the packets that are shown, as a capture file. */
#include "src/cap/write.h"
#include "src/tui/tui_impl.h"

#include <stdlib.h>
#include <unistd.h>

static void end(struct tui *t)
{
    struct cap_error err;
    struct buf text = {0};
    bool good = cap_writer_close(t->save, &err) == 0;

    t->save = NULL;
    if (good) {
        tui_say(t, LOOK_GOOD, "%s: %s.", buf_str(&t->save_as), count_str(t->saved, "packet"));
        return;
    }
    cap_error_line(&err, &text);
    tui_say(t, LOOK_FAIL, "%s", buf_str(&text));
    buf_free(&text);
}

static bool step(struct tui *t, uint64_t row)
{
    uint64_t i = packets_at(t, row);
    const struct frame *f = &t->stored.frame;
    struct cap_iface iface;

    if (i == UINT64_MAX || !keep_get(t->keep, i, &t->stored))
        return true; /* a ring has forgotten it */
    iface = (struct cap_iface){.linktype = f->linktype, .fcs_len = f->fcs_len, .name = (char *)f->iface_name};
    t->saved++;
    return cap_write(t->save, f, &iface) == 0;
}

void on_save_as(struct tui *t, const char *path)
{
    const struct task task = {.rows = true, .doing = "saving", .to = packets_rows(t), .step = step, .done = end};
    const struct cap_writer_opts o = {.format = CAP_WRITE_BY_NAME};
    struct cap_error err;
    struct buf text = {0};

    if (!*path)
        return;
    if (access(path, F_OK) == 0) {
        tui_say(t, LOOK_FAIL, "There is a file %s: nothing is overwritten here.", path);
        return;
    }
    save_stop(t);
    t->saved = 0;
    t->save_as.len = 0;
    buf_puts(&t->save_as, path);
    if (cap_writer_open(&t->save, buf_str(&t->save_as), &o, &err) == 0) {
        task_start(t, TASK_SAVE, &task);
        return;
    }
    t->save = NULL;
    cap_error_line(&err, &text);
    tui_say(t, LOOK_FAIL, "%s", buf_str(&text));
    buf_free(&text);
}

void save_stop(struct tui *t)
{
    t->tasks[TASK_SAVE].active = false;
    cap_writer_close(t->save, NULL);
    t->save = NULL;
}
