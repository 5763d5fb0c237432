/* layer 0 (base): shared by the command line programs. */
#include "program.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tokens.h"

#define FOLD_LEAST 40 /* columns of a terminal; diagrams and tables are not laid out for less */

static const struct program *program;
static char said[400];
static bool for_programs;

const char *cli_program(void)
{
    return program ? program->name : "rdmatrace";
}

const struct opt_renamed *cli_renamed(void)
{
    return program ? program->renamed : NULL;
}

/* Write a buffer, its lines folded if it goes to a terminal. */
static bool folded_write(struct buf *b, int fd)
{
    struct buf folded = {0};
    struct winsize w;
    bool good = false;

    if (ioctl(fd, TIOCGWINSZ, &w) < 0 || w.ws_col < FOLD_LEAST)
        return cli_flush(b, fd);
    buf_fold(&folded, b->p, b->len, w.ws_col);
    good = cli_flush(folded.err ? b : &folded, fd);
    buf_free(&folded);
    b->len = 0;
    return good;
}

int cli_error(const char *fmt, ...)
{
    struct buf b = {0};
    va_list ap;

    fflush(stdout);
    fflush(stderr);
    buf_printf(&b, "%s: ", cli_program());
    va_start(ap, fmt);
    buf_vprintf(&b, fmt, ap);
    va_end(ap);
    buf_char(&b, '\n');
    folded_write(&b, STDERR_FILENO);
    buf_free(&b);
    va_start(ap, fmt);
    vsnprintf(said, sizeof said, fmt, ap);
    va_end(ap);
    return EXIT_BAD;
}

const char *cli_said(void)
{
    return said;
}

bool cli_flush(struct buf *b, int fd)
{
    size_t done = 0;

    while (done < b->len) {
        ssize_t n = write(fd, b->p + done, b->len - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    b->len = 0;
    return true;
}

bool cli_text(struct buf *b, int fd)
{
    return for_programs ? cli_flush(b, fd) : folded_write(b, fd);
}

void cli_for_programs(void)
{
    for_programs = true;
}

int cli_show(struct buf *b)
{
    bool good = !b->err && cli_text(b, STDOUT_FILENO);

    if (!good && (b->err || errno != EPIPE))
        cli_error("standard output: %s", b->err ? "out of memory" : strerror(errno));
    buf_free(b);
    return good ? EXIT_OK : EXIT_BAD;
}

static const struct command *command_find(const char *name)
{
    for (const struct command *c = program->commands; c->name; c++)
        if (strcmp(c->name, name) == 0)
            return c;
    return NULL;
}

static void program_help(struct buf *b)
{
    buf_printf(b, "%s\nCommands:\n", program->usage);
    for (const struct command *c = program->commands; c->name; c++)
        buf_printf(b, "  %-10s %s\n", c->name, c->summary);
    buf_printf(b, "  %-10s %s\n", "help", "explain a subcommand");
    buf_printf(b, "\n`%s help COMMAND` or `%s COMMAND --help` lists the options of a command.\n", program->name,
               program->name);
}

static int no_command(const char *name)
{
    struct text_nearest near = text_nearest_to(name, strlen(name));

    if (program->for_file && access(name, F_OK) == 0)
        return cli_error("no command '%s', but a file: `%s %s %s`", name, program->name, program->for_file, name);
    if (*name == '-')
        return cli_error("%s comes behind a command%s%s%s; `%s help` lists them", name,
                         program->for_file ? ", such as `decode " : "", program->for_file ? name : "",
                         program->for_file ? "`" : "", program->name);
    for (const struct command *c = program->commands; c->name; c++)
        if (!text_nearest_try(&near, c->name) && strstr(name, c->name))
            near.name = c->name; /* ib_write_bw: write */
    if (near.name)
        return cli_error("no command '%s'; the nearest is '%s', and `%s help` lists them", name, near.name,
                         program->name);
    return cli_error("no command '%s'; `%s help` lists them", name, program->name);
}

static int help(const char *name)
{
    const struct command *c = name ? command_find(name) : NULL;
    struct buf b = {0};

    if (name && !c && strcmp(name, "help") != 0)
        return no_command(name);
    (c ? c->help : program_help)(&b);
    return cli_show(&b);
}

int cli_main(const struct program *p, int argc, char **argv)
{
    const struct command *c;

    program = p;
    if (argc < 2) {
        struct buf b = {0};
        program_help(&b);
        cli_text(&b, STDERR_FILENO);
        buf_free(&b);
        return EXIT_BAD;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return help(NULL);
    if (strcmp(argv[1], "help") == 0)
        return help(argc > 2 ? argv[2] : NULL);
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-v") == 0) {
        struct buf b = {0};
        buf_printf(&b, "%s " RDMATRACE_VERSION "\n", p->name);
        return cli_show(&b);
    }
    c = command_find(argv[1]);
    return c ? c->run(argc - 1, argv + 1) : no_command(argv[1]);
}
