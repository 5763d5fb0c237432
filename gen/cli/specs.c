/* layer 4 (tool): events, network nodes and faults in options. */
#include "gen/cli/specs.h"
#include "gen/endpoint/faults.h"
#include "program.h"

/* Split an argument into words: 0, or the exit status after a message. With `dirs`, *text is advanced over a leading
 * "req:" or "rsp:". */
static int split(const char *option, const char *arg, const char **text, unsigned *dirs, struct token t[EVENT_WORDS],
                 unsigned *n)
{
    *text = arg;
    if (dirs && (strncmp(arg, "req:", 4) == 0 || strncmp(arg, "rsp:", 4) == 0)) {
        *dirs = arg[1] == 'e' ? 1 : 2;
        *text += 4;
    }
    *n = text_split(*text, t, EVENT_WORDS);
    return *n > EVENT_WORDS ? cli_error("%s '%s': too many words", option, arg) : 0;
}

static int result(bool good, const char *option, const char *arg, const char *text, const struct text_error *e)
{
    return good ? 0 : cli_error("%s '%s': column %u: %s", option, arg, e->col + (unsigned)(text - arg), e->msg);
}

int specs_event(struct event_list *l, const char *option, const char *arg)
{
    struct token t[EVENT_WORDS];
    struct text_error e;
    const char *text;
    unsigned n;
    int r = split(option, arg, &text, NULL, t, &n);

    return r ? r : result(event_add(l, t, n, arg, &e), option, arg, text, &e);
}

int specs_net(struct net_config *c, const char *option, const char *arg)
{
    struct token t[EVENT_WORDS];
    struct text_error e;
    const char *text;
    unsigned n, dirs = 3;
    int r = split(option, arg, &text, &dirs, t, &n);

    if (r == 0 && n == 0)
        return cli_error("%s '%s': expected a node, such as loss=1%% or delay=5us", option, arg);
    return r ? r : result(net_parse(c, t, n, dirs, &e), option, arg, text, &e);
}

int specs_fault(const char *arg, const char *id, enum rule *rule)
{
    *rule = rule_find(id);
    if (*rule == RULE_NONE)
        return cli_error("--fault %s: there is no rule '%s'; `rdmagen faults` lists those that can be broken", arg, id);
    if (!fault_find(*rule))
        return cli_error("--fault %s: this rule cannot be broken on purpose; `rdmagen faults` lists those that can",
                         arg);
    return 0;
}

int specs_cc(struct specs_cc *c, const char *arg)
{
    struct text_error e;
    int r = result(cc_parse(&c->cc, arg, &e), "--cc", arg, arg, &e);

    c->given = true;
    return r;
}

int specs_cc_lacks(const struct specs_cc *c, bool switches)
{
    const char *lacks = c->given ? ep_cc_lacks(c->cc.scheme, switches) : NULL;

    return lacks ? cli_error("--cc %s: this scheme needs %s: only `rdmagen sim --topology` has them",
                             c->cc.scheme->name, lacks)
                 : 0;
}

int specs_cnp(struct specs_cc *c, const char *arg)
{
    struct text_error e;

    c->cnp = arg;
    return result(np_parse(&(struct np_config){0}, arg, &e), "--cnp", arg, arg, &e);
}

static bool obeys_marks(const struct specs_cc *c)
{
    return c->given && c->cc.scheme->needs & CC_NEEDS_CNP;
}

void specs_cc_settle(const struct specs_cc *c, struct ep_congestion *to)
{
    struct text_error e;

    if (c->given)
        to->cc = c->cc;
    if (!c->cnp && !obeys_marks(c))
        return;
    to->cnps = true;
    to->np = np_config_default();
    if (c->given && c->cc.scheme->np)
        np_parse(&to->np, c->cc.scheme->np, &e);
    if (c->cnp)
        np_parse(&to->np, c->cnp, &e);
}

#define ECN  3
#define ECT0 2

uint8_t specs_cc_tclass(const struct specs_cc *c, uint8_t tclass)
{
    return obeys_marks(c) && !(tclass & ECN) ? tclass | ECT0 : tclass;
}

void specs_print(void *user, const char *line)
{
    (void)user;
    cli_error("%s", line);
}
