/* layer 4 (tool): `rdmagen backends`. */
#include "gen/cli/live_options.h"

static const struct opt_def defs[] = {
    {OPT_JSON_LINES, "one JSON object a line"},
    {OPT_HELP, "show this help"},
    {0, NULL, NULL, NULL},
};

void cmd_backends_help(struct buf *b)
{
    buf_puts(b, "Usage: rdmagen backends [options]\n\nList the ways of sending and receiving frames that are built in, "
                "the default first.\n\n");
    opt_help(b, defs);
}

static void backend_line(struct buf *b, const struct backend_ops *k, bool json)
{
    size_t from = b->len;

    if (json) {
        buf_printf(b, "{\"name\":\"%s\",\"args\":\"%s\",\"interface\":%s,\"summary\":", k->name, k->args,
                   k->needs_iface ? "true" : "false");
        buf_json(b, k->summary, strlen(k->summary));
        buf_puts(b, "}\n");
        return;
    }
    buf_printf(b, "%s%s", k->name, k->args);
    buf_fill(b, ' ', b->len - from < 23 ? 23 - (b->len - from) : 1);
    buf_printf(b, "%s\n", k->summary);
}

int cmd_backends(int argc, char **argv)
{
    struct buf b = {0};
    struct opt_state s;
    int key, operand = argc;
    const char *arg;
    bool json = false;

    opt_start(&s, defs, argc, argv);
    while ((key = opt_next(&s, &arg, &operand)) == 256)
        json = true;
    opt_end(&s);
    if (key == 'h') {
        cmd_backends_help(&b);
        return cli_show(&b);
    }
    if (key < 0)
        return EXIT_BAD;
    if (operand < argc)
        return cli_error("backends takes no operands");
    for (const struct backend_ops *const *k = backends; *k; k++)
        backend_line(&b, *k, json);
    return cli_show(&b);
}
