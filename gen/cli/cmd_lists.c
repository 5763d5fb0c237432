/* layer 4 (tool): the commands that list: `rdmagen faults`, the rules that can be broken on purpose; `rdmagen
 * backends`; `rdmagen workloads`; `rdmagen cc`. */
#include "gen/cli/live_options.h"
#include "gen/endpoint/endpoint.h"
#include "gen/endpoint/faults.h"
#include "gen/workload/workload.h"
#include "src/cc/cc.h"
#include "src/cc/fair.h"
#include "src/cc/mp.h"
#include "src/cc/np.h"

#include <stdio.h>

static const struct opt_def defs[] = {
    {OPT_JSON_LINES, "one JSON object a line"},
    {OPT_HELP, "show this help"},
    {0, NULL, NULL, NULL},
};

/* Run one of them. `one_line`: append the line of row `i`, or as JSON; false: there is no such row. */
static int list(int argc, char **argv, void help(struct buf *b), bool one_line(struct buf *b, unsigned i, bool json))
{
    struct opt_state s;
    struct buf b = {0};
    const char *arg;
    int key, operand;
    bool json = false;

    opt_start(&s, defs, argc, argv);
    while ((key = opt_next(&s, &arg, &operand)) == KEY_JSON)
        json = true;
    opt_end(&s);
    if (key == 'h') {
        help(&b);
        return cli_show(&b);
    }
    if (key < 0)
        return EXIT_BAD;
    if (operand < argc)
        return cli_error("%s takes no operands", argv[0]);
    for (unsigned i = 0; one_line(&b, i, json); i++)
        continue;
    return cli_show(&b);
}

/* --- faults ----------------------------------------------------------------------------------- */

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

static bool fault_line(struct buf *b, unsigned i, bool json)
{
    const struct fault_info *f = fault_table + i;
    const struct rule_info *r;
    const char *severity;

    if (i >= fault_count)
        return false;
    r = &rule_table[f->rule];
    severity = severity_str(f->mild ? SEV_W : r->severity);
    if (!json) {
        buf_printf(b, "%-7s %-8s %-10s %s\n", r->id, severity, who(r), f->what);
        return true;
    }
    buf_printf(b, "{\"rule\":\"%s\",\"severity\":\"%s\",\"who\":\"%s\",\"what\":", r->id, severity, who(r));
    buf_json(b, f->what, strlen(f->what));
    buf_puts(b, ",\"meaning\":");
    buf_json(b, r->meaning, strlen(r->meaning));
    buf_puts(b, "}\n");
    return true;
}

int cmd_faults(int argc, char **argv)
{
    return list(argc, argv, cmd_faults_help, fault_line);
}

/* --- backends --------------------------------------------------------------------------------- */

void cmd_backends_help(struct buf *b)
{
    buf_puts(b, "Usage: rdmagen backends [options]\n\nList the ways of sending and receiving frames that are built in, "
                "the default first.\n\n");
    opt_help(b, defs);
}

static bool backend_line(struct buf *b, unsigned i, bool json)
{
    const struct backend_ops *k = backends[i];
    size_t from = b->len;

    if (!k)
        return false;
    if (json) {
        buf_printf(b, "{\"name\":\"%s\",\"args\":\"%s\",\"interface\":%s,\"summary\":", k->name, k->args,
                   k->needs_iface ? "true" : "false");
        buf_json(b, k->summary, strlen(k->summary));
        buf_puts(b, "}\n");
        return true;
    }
    buf_printf(b, "%s%s", k->name, k->args);
    buf_fill(b, ' ', b->len - from < 23 ? 23 - (b->len - from) : 1);
    buf_printf(b, "%s\n", k->summary);
    return true;
}

int cmd_backends(int argc, char **argv)
{
    return list(argc, argv, cmd_backends_help, backend_line);
}

/* --- workloads -------------------------------------------------------------------------------- */

void cmd_workloads_help(struct buf *b)
{
    buf_puts(
        b,
        "Usage: rdmagen workloads [options]\n\nList what hosts can send each other by `rdmagen sim --workload`.\n\n");
    opt_help(b, defs);
}

static bool workload_line(struct buf *b, unsigned i, bool json)
{
    const struct workload_kind *k = &workload_kinds[i];
    size_t from = b->len;

    if (!k->name)
        return false;
    if (json) {
        buf_printf(b, "{\"name\":\"%s\",\"args\":\"%s\",\"collective\":%s,\"what\":", k->name, k->args,
                   k->collective ? "true" : "false");
        buf_json(b, k->what, strlen(k->what));
        buf_puts(b, "}\n");
        return true;
    }
    buf_printf(b, "%s%s", k->name, k->args);
    buf_fill(b, ' ', b->len - from < 23 ? 23 - (b->len - from) : 1);
    buf_printf(b, "%s\n", k->what);
    return true;
}

int cmd_workloads(int argc, char **argv)
{
    return list(argc, argv, cmd_workloads_help, workload_line);
}

/* --- cc --------------------------------------------------------------------------------------- */

void cmd_cc_help(struct buf *b)
{
    buf_puts(b,
             "Usage: rdmagen cc [options]\n\nList the schemes of congestion control (--cc NAME:PARAM=VALUE,...) and "
             "the notification point (--cnp\nPARAM=VALUE,...) with every parameter: its default, range, unit, meaning, "
             "and where the default is from.\n\n");
    opt_help(b, defs);
}

static void pad(struct buf *b, size_t from, size_t width)
{
    buf_fill(b, ' ', b->len - from < width ? width - (b->len - from) : 1);
}

static void text_row(struct buf *b, const struct cc_param *p)
{
    size_t from = b->len;

    buf_printf(b, "    %s", p->name);
    pad(b, from, 36);
    buf_puts(b, p->def);
    pad(b, from, 48);
    if (p->form == CC_WORD)
        buf_puts(b, p->max);
    else
        buf_printf(b, "%s to %s", p->min, p->max);
    pad(b, from, 72);
    buf_puts(b, cc_param_unit(p));
    pad(b, from, 84);
    buf_printf(b, "%s [%s]\n", p->help, p->source);
}

static void text_table(struct buf *b, const char *name, const char *help, const struct cc_param *table)
{
    buf_printf(b, "%s: %s\n", name, help);
    for (; table->name; table++)
        text_row(b, table);
    buf_puts(b, "\n");
}

static void member(struct buf *b, const char *name, const char *value)
{
    buf_printf(b, ",\"%s\":", name);
    buf_json(b, value, strlen(value));
}

static void json_table(struct buf *b, const char *name, const char *help, const struct cc_param *p)
{
    do {
        buf_printf(b, "{\"scheme\":\"%s\"", name);
        member(b, "summary", help);
        if (p->name) {
            member(b, "parameter", p->name);
            member(b, "unit", cc_param_unit(p));
            member(b, "default", p->def);
            member(b, p->form == CC_WORD ? "words" : "most", p->max);
            if (p->form != CC_WORD)
                member(b, "least", p->min);
            member(b, "meaning", p->help);
            member(b, "source", p->source);
            p++;
        }
        buf_puts(b, "}\n");
    } while (p->name);
}

/* A scheme; behind them the parameters that all have, and the notification point. */
static bool cc_lines(struct buf *b, unsigned i, bool json)
{
    static const struct {
        const char *name, *help;
        const struct cc_param *params;
    } more[] = {{"all", "of every scheme", cc_common_params},
                {"cnp", "the notification point: --cnp", np_params},
                {"mark", "the marking point of a switch's queue: --fabric 'switch mark=PARAM=VALUE,...'", mp_params},
                {"fair", "the congestion point of rocc: --fabric 'switch fair=PARAM=VALUE,...'", fair_params}};
    void (*table)(struct buf *, const char *, const char *, const struct cc_param *) = json ? json_table : text_table;
    unsigned n = 0;
    char help[160];

    while (cc_schemes[n])
        n++;
    if (i < n && ep_cc_lacks(cc_schemes[i], false))
        snprintf(help, sizeof help, "%s; sim --topology only, which has %s", cc_schemes[i]->help,
                 ep_cc_lacks(cc_schemes[i], false));
    else if (i < n)
        snprintf(help, sizeof help, "%s", cc_schemes[i]->help);
    if (i < n)
        table(b, cc_schemes[i]->name, help, cc_schemes[i]->params);
    else if (i < n + ARRAY_LEN(more))
        table(b, more[i - n].name, more[i - n].help, more[i - n].params);
    return i < n + ARRAY_LEN(more);
}

int cmd_cc(int argc, char **argv)
{
    return list(argc, argv, cmd_cc_help, cc_lines);
}
