/* layer 3b (tui): jumps: marks, and from a frame to its work request and to what is said of it. */
#include "src/tui/tui_impl.h"

#define LAST MARKED_LETTERS /* in `marked`: the place before the latest jump */

/* The frame of the present line. False after saying that there is none. */
static bool here(struct tui *t, struct spot *p)
{
    if (row_about(t, t->views[t->screen].at, p) && p->frame)
        return true;
    tui_say(t, LOOK_NOTE, "This line is about no frame.");
    return false;
}

/* --- Marks ------------------------------------------------------------------------------------ */

void on_mark(struct tui *t)
{
    t->awaits = ACTION_MARK;
    tui_say(t, LOOK_KEY, "mark this frame: a letter from a to z");
}

void on_to_mark(struct tui *t)
{
    t->awaits = ACTION_TO_MARK;
    tui_say(t, LOOK_KEY, "go to a marked frame: its letter; ' goes to where the latest jump began");
}

/* Show a marked frame in the ladder, if that is the screen and has it, else among the packets. */
static void jump(struct tui *t, unsigned letter)
{
    struct spot to = t->marked[letter], p;

    if (!to.frame) {
        tui_say(t, LOOK_NOTE, "There is no such mark.");
        return;
    }
    if (row_about(t, t->views[t->screen].at, &p) && p.frame)
        t->marked[LAST] = p;
    if (t->screen == SCREEN_LADDER && to.conn) {
        show_place(t, &to);
    } else {
        show_frame(t, to.file, to.frame);
    }
}

void letter_key(struct tui *t, uint32_t key)
{
    enum action a = t->awaits;
    bool is_letter = key >= 'a' && key < 'a' + MARKED_LETTERS;
    struct spot p;

    t->awaits = ACTION_NONE;
    if (a == ACTION_TO_MARK && (is_letter || key == '\'')) {
        jump(t, is_letter ? key - 'a' : LAST);
    } else if (!is_letter) {
        tui_say(t, LOOK_NOTE, "Marks are letters from a to z.");
    } else if (here(t, &p)) {
        t->marked[key - 'a'] = p;
        tui_say(t, LOOK_GOOD, "Frame %llu is marked %c.", (unsigned long long)p.frame, (int)key);
    }
}

/* --- What is said of a frame ------------------------------------------------------------------ */

/* Go to the line of a screen that is about a frame. */
static void to_line(struct tui *t, enum screen_id s, uint16_t file, uint64_t frame)
{
    go_to(t, s, true);
    prepare(t);
    move_to(t, lines_find(&t->views[s].lines, file, frame));
}

void on_to_cause(struct tui *t)
{
    const struct pkt_mark *m;
    const struct incident *i;
    const struct finding *f;
    struct spot p;
    unsigned n;

    if (!here(t, &p))
        return;
    m = marks_of(&t->marks, &(struct frame){.file = p.file, .number = p.frame}, &n);
    for (unsigned k = 0; k < n; k++)
        if (m[k].cause) {
            i = explain_at(t->analyses.explainer, m[k].number - 1);
            to_line(t, SCREEN_INCIDENTS, i->files[0], i->frames[0]);
            return;
        }
    if (!n) {
        tui_say(t, LOOK_NOTE,
                t->ended ? "No incident and no verdict names frame %llu."
                         : "What is said of frame %llu is known when the capture has ended.",
                (unsigned long long)p.frame);
        return;
    }
    f = m->number ? findings_at(judge_findings(t->analyses.judge), m->number - 1) : NULL; /* 0: it is only counted */
    to_line(t, SCREEN_VERDICTS, p.file, f && f->n_frames ? f->frames[0] : p.frame);
}

/* The marks of the row's frame, *n of them. */
static const struct pkt_mark *row_marks(struct tui *t, uint64_t row, unsigned *n)
{
    struct spot p;

    *n = 0;
    if (!row_about(t, row, &p) || !p.frame)
        return NULL;
    return marks_of(&t->marks, &(struct frame){.file = p.file, .number = p.frame}, n);
}

/* Whether an incident names the row's frame. */
static bool in_incident(struct tui *t, uint64_t row)
{
    unsigned n;
    const struct pkt_mark *m = row_marks(t, row, &n);

    while (n && !m[n - 1].cause)
        n--;
    return n;
}

/* Whether a verdict names it: a rule that was broken, or may have been. */
static bool in_verdict(struct tui *t, uint64_t row)
{
    const struct findings *r = judge_findings(t->analyses.judge);
    unsigned n;
    const struct pkt_mark *m = row_marks(t, row, &n);

    while (n && (!m[n - 1].finding || (m[n - 1].number && findings_at(r, m[n - 1].number - 1)->severity == SEV_I)))
        n--;
    return n;
}

/* `at` rows from the one where it began. */
static uint64_t row_from(const struct tui *t, uint64_t at)
{
    return t->search_up ? t->search_from - at : t->search_from + at;
}

static bool step_to(struct tui *t, uint64_t row, bool is_one)
{
    if (is_one)
        move_to(t, row);
    t->found |= is_one;
    return !is_one;
}

static bool incident_step(struct tui *t, uint64_t at)
{
    return step_to(t, row_from(t, at), in_incident(t, row_from(t, at)));
}

static bool verdict_step(struct tui *t, uint64_t at)
{
    return step_to(t, row_from(t, at), in_verdict(t, row_from(t, at)));
}

static void none_found(struct tui *t)
{
    if (!t->found)
        tui_say(t, LOOK_NOTE, t->ended ? "None %s this one." : "None %s this one so far.",
                t->search_up ? "before" : "after");
}

/* The next row (up: the one before) for which `step` ends the search; on a screen without packets the next one of
 * screen `s`. */
static void to_next(struct tui *t, bool up, enum screen_id s, bool (*step)(struct tui *t, uint64_t at))
{
    uint64_t at = t->views[t->screen].at, n = row_count(t);
    const struct task task = {.rows = true,
                              .doing = "searching",
                              .at = 1,
                              .to = up       ? at + 1
                                    : n > at ? n - at
                                             : 1,
                              .step = step,
                              .done = none_found};

    if (screens[t->screen].place == IN_TEXT) {
        go_to(t, s, true);
        to_event(t, up);
        return;
    }
    t->search_from = at;
    t->search_up = up;
    t->found = false;
    t->pane = PANE_LIST;
    task_start(t, TASK_SEARCH, &task);
}

void on_next_incident(struct tui *t)
{
    to_next(t, false, SCREEN_INCIDENTS, incident_step);
}

void on_next_verdict(struct tui *t)
{
    to_next(t, false, SCREEN_VERDICTS, verdict_step);
}

void on_previous_verdict(struct tui *t)
{
    to_next(t, true, SCREEN_VERDICTS, verdict_step);
}

void on_rule(struct tui *t)
{
    const struct pkt_mark *m;
    struct spot p = {.frame = 0};
    unsigned n = 0;

    if (cursor_about(t, &p) && !p.rule && !p.cause && p.frame) {
        m = marks_of(&t->marks, &(struct frame){.file = p.file, .number = p.frame}, &n);
        for (unsigned k = 0; k < n && !p.rule && !p.cause; k++) {
            if (m[k].finding)
                p.rule = (uint8_t)rule_find(m[k].finding);
            else
                p.cause = (uint8_t)(explain_at(t->analyses.explainer, m[k].number - 1)->cause + 1);
        }
    }
    if (!p.rule && !p.cause) {
        tui_say(t, LOOK_NOTE, "No rule and no cause is named here.");
        return;
    }
    t->ruled = p;
    t->help = true;
    t->help_top = 0;
}

/* The text of `rdmatrace rules RULE`, with lines that fit. */
static void put_rule(const struct tui *t, struct buf *b)
{
    struct buf text = {0};

    catalog_rule(&text, (enum rule)t->ruled.rule);
    for (char *s = text.len ? (char *)buf_str(&text) : NULL, *end; s && *s; s = end + 1) {
        end = s + strcspn(s, "\n");
        if (!*end)
            break;
        *end = '\0';
        if (strlen(s) < t->columns)
            buf_printf(b, "%s\n", s);
        else
            buf_paragraph(b, s + strspn(s, " "), (unsigned)strspn(s, " "), t->columns - 1);
    }
    buf_free(&text);
}

void rule_put(struct tui *t, struct buf *b)
{
    const struct cause_info *c = t->ruled.cause ? &cause_table[t->ruled.cause - 1] : NULL;

    if (!c) {
        put_rule(t, b);
        return;
    }
    buf_printf(b, "%s\n\n", c->name);
    buf_paragraph(b, c->meaning, 2, t->columns - 1);
    buf_printf(b, "\nLook at:\n\n");
    buf_paragraph(b, c->next, 2, t->columns - 1);
}

void on_to_request(struct tui *t)
{
    struct spot p;
    uint64_t i, first;

    if (!here(t, &p))
        return;
    i = keep_find(t->keep, p.file, p.frame);
    first = i != UINT64_MAX && load(t, i) && t->pkt.frame->number == p.frame ? requests_first_of(t, p.conn) : 0;
    t->views[SCREEN_REQUESTS].made &= !t->commands;
    t->commands = false;
    if (first)
        to_line(t, SCREEN_REQUESTS, p.file, first);
    else
        tui_say(t, LOOK_NOTE,
                t->ended ? "Frame %llu belongs to no work request that is kept."
                         : "Frame %llu belongs to no work request that is over.",
                (unsigned long long)p.frame);
}
