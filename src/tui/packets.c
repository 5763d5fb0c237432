/* layer 3b (tui): the list of packets, as decode prints them, under a display filter. */
#include "src/tui/tui_impl.h"

enum look role_of_kind(enum kind k)
{
    static const uint8_t role[] = {
        [KIND_OTHER] = LOOK_NOTE, [KIND_REQUEST] = LOOK_NORMAL, [KIND_RESPONSE] = LOOK_RESPONSE,
        [KIND_CM] = LOOK_CM,      [KIND_AGAIN] = LOOK_AGAIN,    [KIND_NAK] = LOOK_NAK,
        [KIND_GAP] = LOOK_LOST,   [KIND_CNP] = LOOK_UNSURE,     [KIND_BAD] = LOOK_FAIL};

    return (enum look)role[k];
}

/* The letter in front of a line: the second sign of its role. */
static char sign_of(enum kind k)
{
    static const char sign[] = {
        [KIND_OTHER] = ' ', [KIND_REQUEST] = ' ', [KIND_RESPONSE] = ' ', [KIND_CM] = ' ', [KIND_AGAIN] = '=',
        [KIND_NAK] = 'N',   [KIND_GAP] = 'X',     [KIND_CNP] = 'C',      [KIND_BAD] = '!'};

    return sign[k];
}

/* --- Rows ------------------------------------------------------------------------------------- */

static uint64_t end_shown(const struct tui *t)
{
    uint64_t end = keep_end(t->keep);

    return t->paused && t->stopped < end ? t->stopped : end;
}

/* The `i`-th packet that passed. */
static uint32_t passing(const struct tui *t, uint64_t i)
{
    return *(const uint32_t *)far_at(&t->passing, i);
}

/* Of a ring, the first ones that passed may be forgotten. */
static uint64_t passing_first(const struct tui *t)
{
    uint64_t low = 0, high = t->passing.n, first = keep_first(t->keep);

    while (low < high) {
        uint64_t half = low + (high - low) / 2;
        if (passing(t, half) < first)
            low = half + 1;
        else
            high = half;
    }
    return low;
}

uint64_t packets_rows(struct tui *t)
{
    uint64_t first = keep_first(t->keep), end = end_shown(t);

    if (t->filter)
        return t->passing.n - passing_first(t);
    return end > first ? end - first : 0;
}

uint64_t packets_at(struct tui *t, uint64_t row)
{
    if (row >= packets_rows(t))
        return UINT64_MAX;
    return t->filter ? passing(t, passing_first(t) + row) : keep_first(t->keep) + row;
}

uint64_t packets_row(struct tui *t, uint64_t i)
{
    uint64_t first = keep_first(t->keep), from = t->filter ? passing_first(t) : 0, low = from, high = t->passing.n;

    if (!t->filter)
        return i > first ? i - first : 0;
    while (low < high) {
        uint64_t half = low + (high - low) / 2;
        if (passing(t, half) <= i)
            low = half + 1;
        else
            high = half;
    }
    return low > from ? low - from - 1 : 0;
}

/* The packet from which the time of packet `i` is counted; UINT64_MAX: none. */
static uint64_t packet_before(struct tui *t, uint64_t i)
{
    enum print_time how = t->printer.opts.time;
    uint64_t row;

    if (how == TIME_DELTA || (how == TIME_DELTA_DISPLAYED && !t->filter))
        return i > keep_first(t->keep) ? i - 1 : UINT64_MAX;
    if (how != TIME_DELTA_DISPLAYED)
        return UINT64_MAX;
    row = packets_row(t, i);
    return row && packets_at(t, row) == i ? packets_at(t, row - 1) : UINT64_MAX;
}

static void put_line(struct tui *t, uint64_t i, struct buf *b)
{
    uint64_t last = packet_before(t, i);
    ns_t before = 0;

    if (last != UINT64_MAX && keep_get(t->keep, last, &t->stored))
        before = t->stored.frame.ts;

    if (!load(t, i)) {
        buf_puts(b, "this packet cannot be read again");
        return;
    }
    t->pkt.since = t->pkt.frame->ts - t->first;
    t->pkt.delta = t->pkt.delta_displayed = before ? t->pkt.frame->ts - before : 0;
    print_line(&t->printer, b, &t->pkt);
    b->len -= b->len && b->p[b->len - 1] == '\n';
}

void packets_text(struct tui *t, uint64_t row, struct buf *b)
{
    put_line(t, packets_at(t, row), b);
}

void packets_draw(struct tui *t, uint64_t row, const struct area *a)
{
    uint64_t i = packets_at(t, row);
    const struct view *v = &t->views[SCREEN_PACKETS];
    enum look role;
    char sign;

    if (i == UINT64_MAX)
        return;
    role = role_of_kind(keep_kind(t->keep, i));
    sign = is_chosen(t, i) ? '*' : sign_of(keep_kind(t->keep, i));
    t->row.len = 0;
    put_line(t, i, &t->row);
    term_put(a->y, a->x, 1, &sign, 1, 0, sign == '*' ? LOOK_KEY : role);
    term_put(a->y, a->x + 1, a->columns - 1, t->row.p, t->row.len, v->left, color_of(t, &t->pkt.note, role));
}

bool packets_about(struct tui *t, uint64_t row, struct spot *p)
{
    uint64_t i = packets_at(t, row);

    if (i == UINT64_MAX || !keep_get(t->keep, i, &t->stored))
        return false;
    *p = (struct spot){.frame = t->stored.frame.number,
                       .file = t->stored.frame.file,
                       .conn = t->stored.note.have & NOTE_CONN ? t->stored.note.conn : 0,
                       .ts = t->stored.frame.ts};
    return true;
}

bool packets_event(struct tui *t, uint64_t row)
{
    uint64_t i = packets_at(t, row);

    return i != UINT64_MAX && kind_is_event(keep_kind(t->keep, i));
}

void packets_go(struct tui *t, uint16_t file, uint64_t number)
{
    uint64_t i = keep_find(t->keep, file, number);

    if (i == UINT64_MAX)
        return;
    move_to(t, packets_row(t, i));
    if (!keep_get(t->keep, packets_at(t, packets_row(t, i)), &t->stored) || t->stored.frame.number != number)
        tui_say(t, LOOK_UNSURE,
                t->filter ? "Frame %llu does not pass the filter, or is not kept."
                          : "There is no frame %llu among those kept.",
                (unsigned long long)number);
}

/* --- The filter ------------------------------------------------------------------------------- */

static bool filter_step(struct tui *t, uint64_t i)
{
    if (i > UINT32_MAX || !load(t, i) || !filter_match(t->filter, &t->pkt))
        return i <= UINT32_MAX;
    if (far_add(&t->passing, &(uint32_t){(uint32_t)i}))
        return true;
    tui_say(t, LOOK_UNSURE, "No memory for more packets that pass.");
    return false;
}

static void filter_done(struct tui *t)
{
    tui_say(t, LOOK_GOOD, "%s", count_str(t->passing.n, "packet"));
    buf_puts(&t->status, " pass.");
}

bool packets_filter(struct tui *t, const char *text)
{
    static const struct task task = {.doing = "filtering", .to = UINT64_MAX, .step = filter_step, .done = filter_done};
    struct filter_error e;
    struct filter *f = NULL;
    uint64_t was = selected(t);

    if (*text && !(f = filter_compile(text, &e))) {
        tui_say(t, LOOK_FAIL, "Column %zu: %s", e.pos + 1, e.msg);
        return false;
    }
    if (f && filter_needs(f) & FILTER_NEEDS_STREAM) {
        tui_say(t, LOOK_FAIL, "Streams are known to `rdmatrace decode` only.");
        filter_free(f);
        return false;
    }
    filter_free(t->filter);
    t->filter = f;
    far_clear(&t->passing);
    save_changed(t, SCREEN_PACKETS);
    t->filter_text.len = 0;
    buf_puts(&t->filter_text, text);
    t->tasks[TASK_FILTER].active = false;
    if (f)
        task_start(t, TASK_FILTER, &task);
    t->views[SCREEN_PACKETS].at = t->views[SCREEN_PACKETS].top = 0;
    if (!f && was != UINT64_MAX)
        t->views[SCREEN_PACKETS].at = packets_row(t, was);
    return true;
}

void packets_marked(struct tui *t)
{
    struct buf text = {0};

    if (!t->filter || !(filter_needs(t->filter) & FILTER_NEEDS_MARKS))
        return;
    buf_puts(&text, buf_str(&t->filter_text));
    packets_filter(t, buf_str(&text));
    buf_free(&text);
}
