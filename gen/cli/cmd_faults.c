/* layer 4 (tool): `rdmagen faults`: the rules that can be broken on purpose. */
#include "gen/cli/gen_cli.h"
#include "gen/endpoint/faults.h"

static const struct opt_def defs[] = {
    {OPT_JSON_LINES, "one JSON object a line"},
    {OPT_HELP, "show this help"},
    {0, NULL, NULL, NULL},
};

void cmd_faults_help(struct buf *b)
{
    buf_puts(b, "Usage: rdmagen faults [options]\n\nList the faults: rules that `rdmagen sim --fault RULE` can break, "
                "who breaks them and how.\n\n");
    opt_help(b, defs);
}

static const char *who(const struct rule_info *r)
{
    if (r->fault == F_CM)
        return "cm";
    return r->fault == F_REQ ? "requester" : r->fault == F_RSP ? "responder" : "either";
}

static void fault_line(struct buf *b, const struct fault_info *f, bool json)
{
    const struct rule_info *r = &rule_table[f->rule];
    const char *severity = severity_str(f->mild ? SEV_W : r->severity);

    if (!json) {
        buf_printf(b, "%-7s %-8s %-10s %s\n", r->id, severity, who(r), f->what);
        return;
    }
    buf_printf(b, "{\"rule\":\"%s\",\"severity\":\"%s\",\"who\":\"%s\",\"what\":", r->id, severity, who(r));
    buf_json(b, f->what, strlen(f->what));
    buf_puts(b, ",\"meaning\":");
    buf_json(b, r->meaning, strlen(r->meaning));
    buf_puts(b, "}\n");
}

int cmd_faults(int argc, char **argv)
{
    struct opt_state s;
    struct buf b = {0};
    const char *arg;
    int key, operand;
    bool json = false;

    opt_start(&s, defs, argc, argv);
    while ((key = opt_next(&s, &arg, &operand)) != 0) {
        if (key < 0 || key == 'h') {
            opt_end(&s);
            if (key < 0)
                return EXIT_BAD;
            cmd_faults_help(&b);
            return cli_show(&b);
        }
        json = true;
    }
    opt_end(&s);
    if (operand < s.argc)
        return cli_error("faults: unexpected '%s'", s.argv[operand]);
    for (unsigned i = 0; i < fault_count; i++)
        fault_line(&b, &fault_table[i], json);
    return cli_show(&b);
}
