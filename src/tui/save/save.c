/* layer 3b (tui): packets that are chosen or shown, as a capture file; rows of a screen. */
#include "src/cap/write.h"
#include "src/tui/tui_impl.h"

#include <errno.h>
#include <sys/stat.h>
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
    uint64_t i = t->n_chosen ? t->chosen[row] : packets_at(t, row);
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
    const struct task task = {
        .rows = true, .doing = "saving", .to = t->n_chosen ? t->n_chosen : packets_rows(t), .step = step, .done = end};
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

/* --- Rows of a screen ------------------------------------------------------------------------- */

static bool row_step(struct tui *t, uint64_t row)
{
    t->row.len = 0;
    if (t->save_format != ROWS_TEXT) {
        save_rows_put(t, row, &t->row);
    } else {
        text_of_row(t, row, &t->row);
        buf_char(&t->row, '\n');
        t->saved++;
    }
    return fwrite(t->row.p, 1, t->row.len, t->save_lines) == t->row.len;
}

static void rows_end_of_file(struct tui *t)
{
    bool bad;

    t->row.len = 0;
    save_rows_end(t, &t->row);
    fwrite(t->row.p, 1, t->row.len, t->save_lines);
    bad = ferror(t->save_lines);
    if (fclose(t->save_lines) == 0 && !bad)
        tui_say(t, LOOK_GOOD, "%s: %s.", buf_str(&t->save_as),
                count_str(t->saved, t->save_format == ROWS_TEXT ? "line" : "row"));
    else
        tui_say(t, LOOK_FAIL, "%s: %s", buf_str(&t->save_as), strerror(errno));
    t->save_lines = NULL;
}

/* Whether `path` is a pipe or a device: to write there may wait for ever, for a reader. */
static bool is_special(const char *path)
{
    struct stat s;

    return stat(path, &s) == 0 && !S_ISREG(s.st_mode);
}

/* Save to save_as: "wx": only if there is no such file. */
static void save_rows(struct tui *t, const char *how)
{
    const struct task task = {.rows = true,
                              .after_ladder = t->screen == SCREEN_LADDER,
                              .doing = "saving",
                              .to = row_count(t),
                              .step = row_step,
                              .done = rows_end_of_file};
    const char *path = buf_str(&t->save_as);

    t->saved = 0;
    t->save_format = save_format_of(path);
    t->save_lines = fopen(path, how);
    if (!t->save_lines && errno == EEXIST && is_special(path)) {
        tui_say(t, LOOK_FAIL, "%s is no file: nothing is written there.", path);
        return;
    }
    if (!t->save_lines && errno == EEXIST) {
        t->prompt = PROMPT_OVERWRITE;
        t->input.len = 0;
        return;
    }
    if (!t->save_lines) {
        tui_say(t, LOOK_FAIL, "%s: %s", path, strerror(errno));
        return;
    }
    t->row.len = 0;
    save_rows_begin(t, &t->row);
    fwrite(t->row.p, 1, t->row.len, t->save_lines);
    task_start(t, TASK_SAVE, &task);
}

void save_lines_as(struct tui *t, const char *path)
{
    if (!*path)
        return;
    save_stop(t);
    t->save_as.len = 0;
    buf_puts(&t->save_as, path);
    save_rows(t, "wxe");
}

/* Whether a file is one of the captures that are shown. */
static bool is_capture(const struct tui *t, const char *path)
{
    struct stat s, of;

    if (stat(path, &s) != 0)
        return false;
    for (size_t i = 0; i < t->o.n_files; i++)
        if (stat(t->o.files[i], &of) == 0 && s.st_dev == of.st_dev && s.st_ino == of.st_ino)
            return true;
    return false;
}

void overwrite_key(struct tui *t, uint32_t key)
{
    t->prompt = PROMPT_NONE;
    if (key != 'y' && key != 'Y')
        tui_say(t, LOOK_NOTE, "%s: not overwritten.", buf_str(&t->save_as));
    else if (is_capture(t, buf_str(&t->save_as)))
        tui_say(t, LOOK_FAIL, "%s is the capture that is shown: not overwritten.", buf_str(&t->save_as));
    else
        save_rows(t, "we");
}

static void cut(struct tui *t, const char *why)
{
    if (!t->save_lines)
        return;
    tui_say(t, LOOK_UNSURE, "%s: not whole, %s at %.0f %%.", buf_str(&t->save_as), why,
            100 * (double)t->tasks[TASK_SAVE].at / (double)(t->tasks[TASK_SAVE].to + 1));
    save_stop(t);
}

void save_left(struct tui *t)
{
    cut(t, "this screen was left");
}

void save_changed(struct tui *t, enum screen_id s)
{
    if (t->screen == s)
        cut(t, "its rows became others");
}

void save_remade(struct tui *t)
{
    struct task *k = &t->tasks[TASK_SAVE];

    if (t->save_lines && !k->at)
        k->to = row_count(t);
    else
        save_changed(t, t->screen);
}

void save_stop(struct tui *t)
{
    if (t->save_lines)
        fclose(t->save_lines);
    t->save_lines = NULL;
    t->tasks[TASK_SAVE].active = false;
    cap_writer_close(t->save, NULL);
    t->save = NULL;
}
