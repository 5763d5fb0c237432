/* layer 3b (tui): prompts: filter, search, command. */
#include "src/tui/tui_impl.h"

#include "opt.h"

#include <ctype.h>
#include <stdlib.h>

#define INPUT_MAX 4096 /* bytes of a prompt */

/* --- Search ----------------------------------------------------------------------------------- */

void text_of_row(struct tui *t, uint64_t row, struct buf *b)
{
    const struct lines *l = &view(t)->lines;

    b->len = 0;
    if (screens[t->screen].text)
        screens[t->screen].text(t, row, b);
    else if (row < l->n)
        buf_mem(b, l->text.p + l->v[row].at, l->v[row].len);
}

/* `at` rows from where the search began, around the end if need be. */
static bool search_step(struct tui *t, uint64_t at)
{
    uint64_t n = row_count(t), row = n ? (t->search_from + (t->search_up ? n - at % n : at)) % n : 0;

    text_of_row(t, row, &t->row);
    if (!n || !strcasestr(buf_str(&t->row), buf_str(&t->search)))
        return true;
    t->found = true;
    move_to(t, row);
    return false;
}

static void search_done(struct tui *t)
{
    if (!t->found)
        tui_say(t, LOOK_UNSURE, "There is no \"%s\" here.", buf_str(&t->search));
}

static void search(struct tui *t, bool up)
{
    const struct task task = {
        .rows = true, .doing = "searching", .at = 1, .to = row_count(t) + 1, .step = search_step, .done = search_done};

    if (!t->search.len)
        return;
    t->search_from = view(t)->at;
    t->search_up = up;
    t->found = false;
    t->pane = PANE_LIST;
    task_start(t, TASK_SEARCH, &task);
}

void on_search_next(struct tui *t)
{
    search(t, false);
}

void on_search_previous(struct tui *t)
{
    search(t, true);
}

/* --- Prompts ---------------------------------------------------------------------------------- */

static void ask(struct tui *t, enum prompt_kind kind, const char *text)
{
    t->prompt = kind;
    t->input.len = 0;
    buf_puts(&t->input, text);
}

void on_filter(struct tui *t)
{
    ask(t, PROMPT_FILTER, buf_str(&t->filter_text));
}

void on_search(struct tui *t)
{
    ask(t, PROMPT_SEARCH, "");
}

void on_save(struct tui *t)
{
    ask(t, PROMPT_SAVE, "");
}

void on_save_lines(struct tui *t)
{
    ask(t, PROMPT_SAVE_LINES, "");
}

void on_command(struct tui *t)
{
    ask(t, PROMPT_COMMAND, "");
}

/* The commands that take an argument. False: it is wrong, or there is no such command. */
static bool command_with(struct tui *t, const char *name, size_t n, const char *arg)
{
    uint64_t number;
    char *end;

    if (n == 1 && *name == 't') {
        double s = strtod(arg, &end);
        if (end == arg || *end || !(s >= 0 && s < 1e9))
            return false;
        go_to_time(t, t->first + (ns_t)(s * 1e9));
        return true;
    }
    if (n == 1 && *name == 'f' && opt_number(arg, 1, UINT32_MAX, &number)) {
        show_frame(t, 0, number);
        return true;
    }
    if (n == 4 && memcmp(name, "conn", n) == 0 && opt_number(arg, 1, UINT32_MAX, &number)) {
        ladder_ask(t, (uint32_t)number, NULL, false);
        go_to(t, SCREEN_LADDER, true);
        return true;
    }
    if (n != 6 || memcmp(name, "filter", n) != 0)
        return false;
    if (packets_filter(t, arg))
        go_to(t, SCREEN_PACKETS, true);
    return true;
}

static void command(struct tui *t, const char *text)
{
    size_t n = strcspn(text, " ");
    const char *arg = text + n + strspn(text + n, " ");
    enum action a = action_named(text, n);
    uint64_t number;

    if (opt_number(text, 1, UINT32_MAX, &number)) {
        show_frame(t, 0, number);
    } else if (strcmp(text, "q") == 0) {
        t->quit = true;
    } else if (a != ACTION_NONE && !*arg) {
        perform(t, a);
    } else if (*text && !(*arg && command_with(t, text, n, arg))) {
        tui_say(
            t, LOOK_FAIL,
            "There is no command \"%s\": a number of a frame, f NUMBER, t SECONDS, conn N, filter TEXT, or an action.",
            text);
    }
}

static void answer(struct tui *t)
{
    enum prompt_kind kind = t->prompt;
    struct buf text = t->input;

    t->input = (struct buf){0};
    t->prompt = PROMPT_NONE;
    if (kind == PROMPT_FILTER) {
        if (packets_filter(t, buf_str(&text)))
            go_to(t, SCREEN_PACKETS, true);
    } else if (kind == PROMPT_SEARCH) {
        if (text.len) {
            t->search.len = 0;
            buf_mem(&t->search, text.p, text.len);
        }
        search(t, false);
    } else if (kind == PROMPT_SAVE) {
        on_save_as(t, buf_str(&text));
    } else if (kind == PROMPT_SAVE_LINES) {
        save_lines_as(t, buf_str(&text));
    } else {
        command(t, buf_str(&text));
    }
    buf_free(&text);
}

/* Append a character in UTF-8. */
static void put_char(struct buf *b, uint32_t c)
{
    if (c < 0x80) {
        buf_char(b, (char)c);
        return;
    }
    if (c >= 0x10000)
        buf_char(b, (char)(0xf0 | c >> 18));
    if (c >= 0x800)
        buf_char(b, (char)(c >= 0x10000 ? 0x80 | (c >> 12 & 0x3f) : 0xe0 | c >> 12));
    buf_char(b, (char)(c >= 0x800 ? 0x80 | (c >> 6 & 0x3f) : 0xc0 | c >> 6));
    buf_char(b, (char)(0x80 | (c & 0x3f)));
}

/* Where the name begins that the input ends with. */
static size_t name_begin(struct tui *t)
{
    const char *text = buf_str(&t->input);
    size_t begin = t->prompt == PROMPT_FILTER ? t->input.len : 0;

    while (begin && (isalnum((unsigned char)text[begin - 1]) || strchr("._", text[begin - 1])))
        begin--;
    return begin;
}

void prompt_hints(struct tui *t, struct buf *b, unsigned width)
{
    size_t begin = name_begin(t), n = t->input.len - begin;

    if (t->prompt == PROMPT_COMMAND && !n)
        buf_puts(b, "NUMBER of a frame  f NUMBER  t SECONDS  conn N  filter TEXT");
    if (t->prompt == PROMPT_COMMAND)
        action_names(b, buf_str(&t->input), n, width);
    else if (t->prompt == PROMPT_FILTER && n)
        field_parts(b, buf_str(&t->input) + begin, n, width);
    if (!b->len)
        buf_printf(b, "Enter %s%s  Esc leaves",
                   t->prompt == PROMPT_FILTER    ? "filters"
                   : t->prompt == PROMPT_SEARCH  ? "searches"
                   : t->prompt == PROMPT_COMMAND ? "does it"
                                                 : "saves",
                   t->prompt == PROMPT_FILTER ? "  Tab completes" : "");
}

/* The name at the end of a filter is completed, up to where names of fields differ. */
static void complete(struct tui *t)
{
    const char *text = buf_str(&t->input), *name = NULL;
    size_t begin = name_begin(t), n = t->input.len - begin;

    if (t->prompt == PROMPT_COMMAND)
        name = action_complete(text, &n);
    else if (t->prompt == PROMPT_FILTER && n)
        name = field_complete(text + begin, &n);
    if (name && n > t->input.len - begin) {
        t->input.len = begin;
        buf_mem(&t->input, name, n);
    }
}

void prompt_key(struct tui *t, uint32_t key)
{
    struct buf *b = &t->input;

    if (t->prompt == PROMPT_OVERWRITE) {
        overwrite_key(t, key);
    } else if (key == KEYS_ENTER) {
        answer(t);
    } else if (key == KEYS_ESC || key == 3) {
        t->prompt = PROMPT_NONE;
    } else if (key == KEYS_BACKSPACE) {
        while (b->len && (b->p[b->len - 1] & 0xc0) == 0x80)
            b->len--;
        b->len -= b->len > 0;
    } else if (key == 'U' - 'A' + 1) {
        b->len = 0;
    } else if (key == KEYS_TAB) {
        complete(t);
    } else if (key >= ' ' && key < KEYS_SPECIAL && b->len < INPUT_MAX) {
        put_char(b, key);
    }
}
