/* layer 4 (tool): `rdmatrace rules`: the rule catalogue. */
#include "src/cli/cli.h"
#include "src/cli/nearest.h"
#include "src/judge/judge.h"
#include "tokens.h"

static const struct opt_def defs[] = {
    {'T', "format", "FORMAT", "text (default), json, or man: the source of rdmatrace-rules(7)"},
    {'h', "help", NULL, "show this help"},
    {0, NULL, NULL, NULL},
};

void cmd_rules_help(struct buf *b)
{
    buf_puts(b, "Usage: rdmatrace rules [options] [ID | FAMILY...]\n\n"
                "List the rules that `rdmatrace check` judges a capture by, or those of a family\nsuch as SEQ, or "
                "explain those named.\n\n");
    opt_help(b, defs);
}

static int no_rule(const char *id)
{
    struct text_nearest near = text_nearest_to(id, strlen(id));

    for (unsigned i = 1; i < RULE_COUNT; i++)
        text_nearest_try(&near, rule_table[i].id);
    return cli_error("rules: there is no rule '%s'%s; `rdmatrace rules` lists them", id, nearest_is(near.name).text);
}

static int print_named(struct buf *b, char **ids, int n)
{
    for (int i = 0; i < n; i++) {
        enum rule rule = rule_find(ids[i]);
        if (rule == RULE_NONE && catalog_family(b, ids[i]))
            continue;
        if (rule == RULE_NONE)
            return no_rule(ids[i]);
        if (i)
            buf_char(b, '\n');
        catalog_rule(b, rule);
    }
    return EXIT_OK;
}

static int print_all(struct buf *b, const char *format)
{
    if (strcmp(format, "text") == 0)
        catalog_table(b);
    else if (strcmp(format, "json") == 0)
        catalog_json(b);
    else if (strcmp(format, "man") == 0)
        catalog_man(b);
    else
        return cli_error("-T %s: expected text, json or man", format);
    return EXIT_OK;
}

int cmd_rules(int argc, char **argv)
{
    struct buf b = {0};
    struct opt_state s;
    const char *arg, *format = "text";
    int key, operand, status = EXIT_OK;
    bool help = false;

    opt_start(&s, defs, argc, argv);
    while (status == EXIT_OK && (key = opt_next(&s, &arg, &operand)) != 0) {
        if (key < 0)
            status = EXIT_BAD;
        else if (key == 'T')
            format = arg;
        else
            help = true;
    }
    opt_end(&s);
    if (help)
        cmd_rules_help(&b);
    else if (status == EXIT_OK)
        status = operand < argc ? print_named(&b, argv + operand, argc - operand) : print_all(&b, format);
    if (cli_show(&b) != EXIT_OK)
        status = EXIT_BAD;
    return status;
}
