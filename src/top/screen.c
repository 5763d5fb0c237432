/* layer 3b (top): a terminal that is repainted periodically, and its keys. */
#include "src/top/screen.h"

#include "program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#define ENTER "\033[?1049h\033[?25l"
#define LEAVE "\033[?25h\033[?1049l"

static int tty = -1; /* open while the alternate screen is shown */
static struct termios before;

/* Also from signal handlers. */
static void leave(void)
{
    ssize_t n;

    if (tty < 0)
        return;
    n = write(STDOUT_FILENO, LEAVE, sizeof LEAVE - 1);
    (void)n;
    tcsetattr(tty, TCSANOW, &before);
    tty = -1;
}

static void on_fatal(int sig)
{
    leave();
    raise(sig); /* its action is the default one by now */
}

static void catch_fatal(void)
{
    static const int signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGPIPE};
    struct sigaction sa = {.sa_handler = on_fatal, .sa_flags = SA_RESETHAND | SA_NODEFER};

    for (unsigned i = 0; i < ARRAY_LEN(signals); i++)
        sigaction(signals[i], &sa, NULL);
}

bool screen_open(void)
{
    static bool registered;
    struct termios raw;

    if (!isatty(STDOUT_FILENO) || (tty = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)) < 0)
        return false;
    if (tcgetattr(tty, &before) < 0) {
        close(tty);
        tty = -1;
        return false;
    }
    if (!registered)
        atexit(leave);
    registered = true;
    catch_fatal();
    raw = before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    raw.c_cc[VSUSP] = _POSIX_VDISABLE; /* ^Z would leave the shell on the alternate screen */
    tcsetattr(tty, TCSANOW, &raw);
    return write(STDOUT_FILENO, ENTER, sizeof ENTER - 1) > 0;
}

void screen_close(void)
{
    leave();
}

void screen_paint(const struct buf *text)
{
    struct buf b = {0};

    buf_puts(&b, "\033[H");
    for (size_t i = 0; i < text->len; i++) {
        bool last = i + 1 == text->len;
        if (text->p[i] != '\n')
            buf_char(&b, text->p[i]);
        else
            buf_puts(&b, last ? "\033[K" : "\033[K\r\n"); /* no line end after the last line: it would scroll */
    }
    buf_puts(&b, "\033[J");
    cli_flush(&b, STDOUT_FILENO);
    buf_free(&b);
}

int screen_key(int wait_ms)
{
    struct pollfd p = {.fd = tty, .events = POLLIN};
    unsigned char c;

    if (tty < 0)
        return 'q';
    if (poll(&p, 1, wait_ms) <= 0)
        return 0;
    return read(tty, &c, 1) == 1 ? c : 'q';
}
