/* layer 3b (tui): curses. */
#include "src/tui/term.h"

#include "src/tui/keys.h"
#include "src/tui/layout.h"

#include <limits.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>
#define NCURSES_NOMACROS
#define NCURSES_WIDECHAR 1
#include <ncurses.h>
#include <termcap.h>

static struct {
    bool on, color, ascii, none;
    SCREEN *screen;
    FILE *in, *out;
    bool cursor; /* is shown */
    struct termios before;
    bool have_before;
    MEVENT mouse;
    cchar_t cells[LOOKS][0x80]; /* of ASCII */
    bool made[LOOKS][0x80];     /* those that are */
} term;

static volatile sig_atomic_t caught_signal; /* signal */

/* --- Roles ------------------------------------------------------------------------------------ */

static const struct {
    char letter;             /* in term_dump() */
    short color, with_256;   /* -1: that of the terminal */
    attr_t attr, attr_plain; /* with colours, without */
} roles[LOOKS] = {
    [LOOK_NORMAL] = {' ', -1, -1, A_NORMAL, A_NORMAL},
    [LOOK_TITLE] = {'T', -1, -1, A_REVERSE, A_REVERSE},
    [LOOK_SELECTED] = {'S', -1, -1, A_REVERSE | A_BOLD, A_REVERSE | A_BOLD},
    [LOOK_FIELD] = {'B', COLOR_CYAN, COLOR_CYAN, A_REVERSE, A_REVERSE | A_UNDERLINE},
    [LOOK_KEY] = {'k', COLOR_CYAN, COLOR_CYAN, A_BOLD, A_BOLD},
    [LOOK_REQUEST] = {'q', COLOR_BLUE, 75, A_NORMAL, A_NORMAL},
    [LOOK_RESPONSE] = {'r', COLOR_GREEN, COLOR_GREEN, A_NORMAL, A_NORMAL},
    [LOOK_CM] = {'c', COLOR_CYAN, COLOR_CYAN, A_NORMAL, A_NORMAL},
    [LOOK_AGAIN] = {'a', COLOR_MAGENTA, COLOR_MAGENTA, A_BOLD, A_BOLD},
    [LOOK_NAK] = {'n', COLOR_RED, COLOR_RED, A_NORMAL, A_UNDERLINE},
    [LOOK_LOST] = {'l', COLOR_RED, COLOR_RED, A_BOLD, A_BOLD | A_UNDERLINE},
    [LOOK_FAIL] = {'f', COLOR_RED, COLOR_RED, A_BOLD | A_UNDERLINE, A_BOLD | A_UNDERLINE},
    [LOOK_UNSURE] = {'u', COLOR_YELLOW, 208, A_NORMAL, A_NORMAL},
    [LOOK_NOTE] = {'d', -1, -1, A_DIM, A_DIM},
    [LOOK_GOOD] = {'g', COLOR_GREEN, COLOR_GREEN, A_NORMAL, A_NORMAL},
};

static attr_t attr_of(enum look r)
{
    return term.color ? roles[r].attr : roles[r].attr_plain;
}

static short pair_of(enum look r)
{
    return term.color ? (short)r : 0;
}

static void start_colors(void)
{
    term.color = term.color && has_colors();
    if (!term.color)
        return;
    start_color();
    use_default_colors();
    for (short i = 1; i < LOOKS; i++)
        init_pair(i, COLORS >= 256 ? roles[i].with_256 : roles[i].color, -1);
}

/* --- Start and end ---------------------------------------------------------------------------- */

static void on_signal(int sig)
{
    caught_signal = sig;
}

/* A crash: leave the terminal usable, then crash. Only calls that a signal handler may make. */
static void on_crash(int sig)
{
    static const char leave[] = "\x1b[?1000l\x1b[?25h\x1b[0m\x1b[?1049l\r\n";

    if (term.on && !term.none) {
        ssize_t n = write(STDOUT_FILENO, leave, sizeof leave - 1);
        (void)n;
        if (term.have_before)
            tcsetattr(STDOUT_FILENO, TCSANOW, &term.before);
    }
    signal(sig, SIG_DFL);
    raise(sig);
}

static void take_signals(void)
{
    static const int asking[] = {SIGINT, SIGTERM, SIGHUP}, crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGABRT};
    struct sigaction sa = {.sa_handler = on_signal}, crash = {.sa_handler = on_crash};

    for (unsigned i = 0; i < ARRAY_LEN(asking); i++)
        sigaction(asking[i], &sa, NULL);
    for (unsigned i = 0; i < ARRAY_LEN(crashes); i++)
        sigaction(crashes[i], &crash, NULL);
}

int term_signal(void)
{
    return caught_signal;
}

/* The terminal for keys: standard input, or if that is the capture the terminal itself. */
static bool open_files(void)
{
    const char *path = term.none ? "/dev/null" : "/dev/tty";

    term.in = term.none || !isatty(STDIN_FILENO) ? fopen(path, "re") : stdin;
    term.out = term.none ? fopen(path, "we") : stdout;
    return term.in && term.out;
}

bool term_is_there(void)
{
    const char *name = getenv("TERM");

    return name && *name && strcmp(name, "dumb") != 0 && isatty(STDOUT_FILENO) && tgetent(NULL, name) == 1;
}

bool term_start(const struct term_opts *o)
{
    const char *name = getenv("TERM");

    term.none = o->none;
    term.color = o->color;
    term.ascii = o->ascii;
    memset(term.made, 0, sizeof term.made);
    if (o->none && (!name || !*name || strcmp(name, "dumb") == 0))
        name = "xterm-256color";
    if (!open_files())
        return false;
    setlocale(LC_CTYPE, "");
    term.have_before = !o->none && tcgetattr(STDOUT_FILENO, &term.before) == 0;
    term.screen = newterm(name, term.out, term.in);
    if (!term.screen)
        return false;
    term.on = true;
    if (o->none)
        resizeterm((int)o->rows, (int)o->columns);
    else
        take_signals();
    cbreak();
    noecho();
    nonl();
    set_escdelay(25);
    keypad(stdscr, true);
    meta(stdscr, true);
    start_colors();
    if (o->mouse)
        mousemask(BUTTON1_PRESSED | BUTTON1_CLICKED | BUTTON4_PRESSED | BUTTON5_PRESSED, NULL);
    mouseinterval(0);
    curs_set(0);
    return true;
}

void term_end(void)
{
    if (!term.on)
        return;
    term.on = false;
    endwin();
    delscreen(term.screen);
    if (term.in != stdin)
        fclose(term.in);
    if (term.out != stdout)
        fclose(term.out);
}

unsigned term_columns(void)
{
    return (unsigned)COLS;
}

unsigned term_rows(void)
{
    return (unsigned)LINES;
}

void term_resize(unsigned columns, unsigned rows)
{
    resizeterm((int)rows, (int)columns);
}

/* --- Drawing ---------------------------------------------------------------------------------- */

void term_clear(void)
{
    werase(stdscr);
    if (term.cursor)
        curs_set(0);
    term.cursor = false;
}

void term_show(bool repaint)
{
    if (repaint)
        clearok(curscr, true);
    wnoutrefresh(stdscr);
    doupdate();
}

/* Marks that separate lines, or turn the direction of the text behind them. */
static bool is_hidden_mark(wchar_t c)
{
    return (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

/* The next character of a text, as it may be shown; *used: its bytes. */
static wchar_t printable(const char *s, size_t n, size_t *used, int *columns)
{
    mbstate_t state = {0};
    wchar_t c = 0;
    size_t got = mbrtowc(&c, s, n, &state);

    bool valid = got > 0 && got <= n;

    *used = valid ? got : 1;
    *columns = 1;
    if (!valid || c < 0x20 || (c >= 0x7f && (term.ascii || c < 0xa0)))
        return L'.';
    if (c < 0x7f)
        return c;
    *columns = wcwidth(c);
    if (*columns > 0 && !is_hidden_mark(c))
        return c;
    *columns = 1;
    return L'.';
}

/* A byte below 0x80 as it is shown in a role. Made once: that costs more than to draw it. */
static cchar_t ascii_cell(char c, enum look role)
{
    unsigned i = c >= 0x20 && c < 0x7f ? (unsigned)c : '.';
    cchar_t *cell = &term.cells[role][i];

    if (!term.made[role][i]) {
        const wchar_t text[2] = {(wchar_t)i, 0};
        setcchar(cell, text, attr_of(role), pair_of(role), NULL);
        term.made[role][i] = true;
    }
    return *cell;
}

/* Write the bytes below 0x80 that a text begins with, a column each. Returns how many. */
static unsigned put_ascii(unsigned y, unsigned x, const char *s, size_t n, enum look role)
{
    cchar_t cells[128];
    unsigned k = 0;

    for (; k < n && k < ARRAY_LEN(cells) && (uint8_t)s[k] < 0x80; k++)
        cells[k] = ascii_cell(s[k], role);
    mvwadd_wchnstr(stdscr, (int)y, (int)x, cells, (int)k);
    return k;
}

unsigned term_put(unsigned y, unsigned x, unsigned width, const char *s, size_t n, unsigned skip, enum look role)
{
    unsigned at = 0;

    for (size_t i = 0, used; i < n && at < width + skip; i += used) {
        int columns;
        if (at >= skip && (uint8_t)s[i] < 0x80) {
            used = put_ascii(y, x + at - skip, s + i, n - i < width + skip - at ? n - i : width + skip - at, role);
            at += (unsigned)used;
            continue;
        }
        wchar_t text[2] = {printable(s + i, n - i, &used, &columns), 0};
        cchar_t cell;
        if (at + (unsigned)columns > width + skip)
            break;
        setcchar(&cell, text, attr_of(role), pair_of(role), NULL);
        if (at >= skip)
            mvwadd_wch(stdscr, (int)y, (int)(x + at - skip), &cell);
        at += (unsigned)columns;
    }
    return at > skip ? at - skip : 0;
}

void term_mark(unsigned y, unsigned x, unsigned width, enum look role)
{
    mvwchgat(stdscr, (int)y, (int)x, (int)width, attr_of(role), pair_of(role), NULL);
}

void term_rule(unsigned y, unsigned x, unsigned width)
{
    for (unsigned i = 0; i < width; i++)
        term_put(y, x + i, 1, term.ascii ? "-" : "\xe2\x94\x80", term.ascii ? 1 : 3, 0, LOOK_NOTE);
}

void term_cursor(unsigned y, unsigned x)
{
    curs_set(1);
    term.cursor = true;
    wmove(stdscr, (int)y, (int)x);
}

/* --- Keys ------------------------------------------------------------------------------------- */

static uint32_t special(int key)
{
    static const struct {
        int curses;
        uint32_t key;
    } table[] = {
        {KEY_UP, KEYS_UP},
        {KEY_DOWN, KEYS_DOWN},
        {KEY_LEFT, KEYS_LEFT},
        {KEY_RIGHT, KEYS_RIGHT},
        {KEY_PPAGE, KEYS_PGUP},
        {KEY_NPAGE, KEYS_PGDN},
        {KEY_HOME, KEYS_HOME},
        {KEY_END, KEYS_END},
        {KEY_DC, KEYS_DELETE},
        {KEY_BTAB, KEYS_STAB},
        {KEY_RESIZE, KEYS_RESIZE},
        {KEY_MOUSE, KEYS_MOUSE},
        {KEY_BACKSPACE, KEYS_BACKSPACE},
        {KEY_ENTER, KEYS_ENTER},
    };

    for (unsigned i = 0; i < ARRAY_LEN(table); i++)
        if (table[i].curses == key)
            return table[i].key;
    return key >= KEY_F(1) && key <= KEY_F(12) ? KEYS_F0 + (uint32_t)(key - KEY_F(0)) : KEY_NOTHING;
}

#define SEQUENCE_MAX 32 /* characters of a sequence */

/* The next character, if it is there. */
static bool at_once(wint_t *c)
{
    wtimeout(stdscr, 0);
    return wget_wch(stdscr, c) == OK;
}

/* After an Esc: skip the rest of a key, or of a click, that the description of the terminal does not have. False: it
 * was an Esc. */
static bool skip_unknown(void)
{
    wint_t c, first;
    unsigned n = 0;

    if (!at_once(&first))
        return false;
    if ((first != '[' && first != 'O') || !at_once(&c)) {
        unget_wch((wchar_t)first);
        return false;
    }
    for (bool click = c == 'M'; n < SEQUENCE_MAX && (click ? n < 3 : c < 0x40 || c > 0x7e); n++)
        if (!at_once(&c))
            break;
    return true;
}

uint32_t term_key(int ms)
{
    wint_t c;
    int kind;

    wtimeout(stdscr, ms);
    kind = wget_wch(stdscr, &c);
    if (kind == KEY_CODE_YES) {
        uint32_t key = special((int)c);
        return key == KEYS_MOUSE && getmouse(&term.mouse) != OK ? KEY_NOTHING : key;
    }
    if (kind != OK) {
        struct pollfd in = {.fd = fileno(term.in), .events = POLLIN};
        if (!term.none && poll(&in, 1, 0) > 0 && in.revents & (POLLHUP | POLLERR | POLLNVAL))
            caught_signal = SIGHUP; /* the terminal was closed */
        return KEY_NOTHING;
    }
    if (c == 27 && skip_unknown())
        return KEY_NOTHING;
    return c == '\n' ? KEYS_ENTER : c == 127 || c == 8 ? KEYS_BACKSPACE : c < KEYS_SPECIAL ? (uint32_t)c : KEY_NOTHING;
}

void term_mouse(unsigned *y, unsigned *x, int *wheel)
{
    *y = (unsigned)term.mouse.y;
    *x = (unsigned)term.mouse.x;
    *wheel = term.mouse.bstate & BUTTON4_PRESSED ? -1 : term.mouse.bstate & BUTTON5_PRESSED ? 1 : 0;
}

void term_copy(const char *text, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    struct buf b = {0};

    buf_puts(&b, "\x1b]52;c;");
    for (size_t i = 0; i < n; i += 3) {
        uint32_t v = (uint32_t)(uint8_t)text[i] << 16;
        v |= i + 1 < n ? (uint32_t)(uint8_t)text[i + 1] << 8 : 0;
        v |= i + 2 < n ? (uint32_t)(uint8_t)text[i + 2] : 0;
        for (unsigned k = 0; k < 4; k++)
            buf_char(&b, k > n - i ? '=' : digits[v >> (18 - 6 * k) & 63]);
    }
    buf_char(&b, '\a');
    fflush(term.out);
    for (size_t done = 0; !term.none && done < b.len;) {
        ssize_t w = write(fileno(term.out), b.p + done, b.len - done);
        if (w <= 0)
            break;
        done += (size_t)w;
    }
    buf_free(&b);
}

/* --- For tests -------------------------------------------------------------------------------- */

static char letter_of(attr_t attr, short pair)
{
    attr &= A_REVERSE | A_BOLD | A_UNDERLINE | A_DIM;
    for (unsigned i = 0; i < LOOKS; i++)
        if (attr_of((enum look)i) == attr && pair_of((enum look)i) == pair)
            return roles[i].letter;
    return '?';
}

/* Append a row of the screen to `text`, and the letters of its roles to `letters`. */
static void dump_row(int y, struct buf *text, struct buf *letters)
{
    for (int x = 0; x < COLS; x++) {
        wchar_t wide[CCHARW_MAX];
        char bytes[MB_LEN_MAX * 2];
        cchar_t cell;
        attr_t attr;
        short pair;
        mvwin_wch(curscr, y, x, &cell);
        getcchar(&cell, wide, &attr, &pair, NULL);
        int n = wctomb(bytes, wide[0]);
        buf_mem(text, n > 0 ? bytes : "?", n > 0 ? (size_t)n : 1);
        buf_char(letters, letter_of(attr, pair));
        if (wcwidth(wide[0]) > 1)
            buf_char(letters, ' '), x++;
    }
}

static void put_trimmed(struct buf *b, const char *mark, struct buf *row)
{
    while (row->len && row->p[row->len - 1] == ' ')
        row->len--;
    if (!row->len && *mark == '~')
        return;
    buf_puts(b, mark);
    buf_mem(b, row->p, row->len);
    buf_char(b, '\n');
}

void term_dump(struct buf *b)
{
    struct buf text = {0}, letters = {0};

    for (int y = 0; y < LINES; y++) {
        text.len = letters.len = 0;
        dump_row(y, &text, &letters);
        put_trimmed(b, "|", &text);
        put_trimmed(b, "~", &letters);
    }
    buf_free(&text);
    buf_free(&letters);
}
