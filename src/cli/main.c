/* layer 4 (tool): rdmatrace, which dispatches to its subcommands. */
#include "src/cli/cli.h"

#include <stdio.h>
#include <unistd.h>

const struct command commands[] = {
    {"decode", "show the packets of captures: lines, trees, JSON or columns", cmd_decode, cmd_decode_help},
    {"check", "judge captures by the rules of the transport", cmd_check, cmd_check_help},
    {"rules", "list the rules of check, or explain one", cmd_rules, cmd_rules_help},
    {"help", "explain a subcommand", cmd_help, cmd_help_help},
    {NULL, NULL, NULL, NULL},
};

static const struct command *command_find(const char *name)
{
    for (const struct command *c = commands; c->name; c++)
        if (strcmp(c->name, name) == 0)
            return c;
    return NULL;
}

void cmd_help_help(struct buf *b)
{
    buf_puts(b, "Usage: rdmatrace COMMAND [options] FILE...\n\n"
                "Analyzer for captures of RoCEv1, RoCEv2 and InfiniBand traffic.\n\nCommands:\n");
    for (const struct command *c = commands; c->name; c++)
        buf_printf(b, "  %-10s %s\n", c->name, c->summary);
    buf_puts(b, "\n`rdmatrace help COMMAND` or `rdmatrace COMMAND --help` lists the options of a command.\n");
}

int cmd_help(int argc, char **argv)
{
    const struct command *c = argc > 1 ? command_find(argv[1]) : NULL;
    struct buf b = {0};

    if (argc > 1 && !c)
        return cli_error("no command '%s'; `rdmatrace help` lists them", argv[1]);
    (c ? c->help : cmd_help_help)(&b);
    return cli_show(&b);
}

int main(int argc, char **argv)
{
    const struct command *c;

    if (argc < 2) {
        struct buf b = {0};
        cmd_help_help(&b);
        cli_flush(&b, STDERR_FILENO);
        buf_free(&b);
        return EXIT_BAD;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return cmd_help(1, argv);
    if (strcmp(argv[1], "--version") == 0) {
        puts("rdmatrace " RDMATRACE_VERSION);
        return EXIT_OK;
    }
    c = command_find(argv[1]);
    if (!c)
        return cli_error("no command '%s'; `rdmatrace help` lists them", argv[1]);
    return c->run(argc - 1, argv + 1);
}
