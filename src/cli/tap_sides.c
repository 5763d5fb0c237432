/* layer 4 (tool): `rdmatrace check --tap`: at which end of the connections interfaces were captured. */
#include "src/cli/tap_sides.h"

#include "src/cli/cli.h"

/* Set the side of an interface; iface < 0: of all interfaces that --tap does not name. */
static void set_tap(struct tap_sides *s, struct judge_opts *o, int iface, enum tap_side side)
{
    if (iface < 0) {
        s->all = side;
        s->given = true;
    } else {
        o->tap[iface] = side;
        s->named[iface] = true;
    }
    for (unsigned i = 0; i < JUDGE_TAPS && iface < 0; i++)
        if (!s->named[i])
            o->tap[i] = side;
}

/* Parse "FILE:IFACE", files from 1; `colon`: the colon in it. False if it is not that. */
static bool parse_file_tap(char *item, char *colon, uint32_t *tap)
{
    uint64_t file, iface;

    *colon = '\0';
    if (!opt_number(item, 1, UINT16_MAX, &file) || !opt_number(colon + 1, 0, JUDGE_TAPS - 1, &iface))
        return false;
    *tap = (uint32_t)(file - 1) << 16 | (uint32_t)iface;
    return true;
}

/* Set the side of one interface of one file. */
static int set_file_tap(struct judge_opts *o, const char *arg, uint32_t tap, enum tap_side side)
{
    for (unsigned i = 0; i < o->n_taps; i++)
        if (o->taps[i].tap == tap)
            return cli_error("--tap %s: a second side of interface %u of file %u", arg, tap & 0xffff, (tap >> 16) + 1);
    if (o->n_taps == JUDGE_TAPS)
        return cli_error("--tap %s: at most %d interfaces of files", arg, JUDGE_TAPS);
    o->taps[o->n_taps++] = (struct judge_tap){tap, side};
    return EXIT_OK;
}

/* Parse "SIDE", "IFACE=SIDE" or "FILE:IFACE=SIDE". */
static int parse_tap_item(struct tap_sides *s, struct judge_opts *o, const char *arg, char *item)
{
    char *eq = strchr(item, '='), *colon = eq ? strchr(item, ':') : NULL;
    enum tap_side side;
    uint64_t iface = 0;
    uint32_t tap;

    if (eq)
        *eq = '\0';
    if (tap_parse(eq ? eq + 1 : item, &side)) {
        if (colon && parse_file_tap(item, colon, &tap))
            return set_file_tap(o, arg, tap, side);
        if (!colon && (!eq || opt_number(item, 0, JUDGE_TAPS - 1, &iface))) {
            if (eq ? s->named[iface] : s->given)
                return cli_error("--tap %s: a second side of %s%s", arg, eq ? "interface " : "all interfaces",
                                 eq ? item : "");
            set_tap(s, o, eq ? (int)iface : -1, side);
            return EXIT_OK;
        }
    }
    return cli_error(
        "--tap %s: expected requester, responder, middle or unknown, IFACE=SIDE or FILE:IFACE=SIDE with IFACE below %d",
        arg, JUDGE_TAPS);
}

int tap_sides_option(struct tap_sides *s, struct judge_opts *o, const char *arg)
{
    const char *at = arg;
    int status = EXIT_OK;
    bool more = true;

    while (more && status == EXIT_OK) {
        size_t n = strcspn(at, ",");
        char item[64];
        if (n >= sizeof item)
            return cli_error("--tap %s: expected SIDE, IFACE=SIDE or FILE:IFACE=SIDE", arg);
        memcpy(item, at, n);
        item[n] = '\0';
        status = parse_tap_item(s, o, arg, item);
        more = at[n] == ',';
        at += n + more;
    }
    return status;
}

/* Whether --tap names the side of each interface of the only file. */
static bool is_each_named(const struct tap_sides *s, const struct trace *t)
{
    uint32_t named = 0;

    while (named < JUDGE_TAPS && s->named[named])
        named++;
    return t->n_files == 1 && t->ifaces && named >= t->ifaces;
}

void tap_sides_put(const struct tap_sides *s, const struct judge_opts *o, const struct trace *t, struct buf *b)
{
    bool each = is_each_named(s, t);
    const char *sep = each ? "" : ", ";

    if (!each)
        buf_puts(b, tap_str(s->all));
    for (unsigned i = 0; i < JUDGE_TAPS; i++)
        if (each ? i < t->ifaces : o->tap[i] != s->all) {
            buf_printf(b, "%s%u=%s", sep, i, tap_str(o->tap[i]));
            sep = ", ";
        }
    for (unsigned i = 0; i < o->n_taps; i++, sep = ", ")
        buf_printf(b, "%s%u:%u=%s", sep, (o->taps[i].tap >> 16) + 1, o->taps[i].tap & 0xffff, tap_str(o->taps[i].side));
}

bool tap_sides_exist(const struct tap_sides *s, const struct judge_opts *o, const struct trace *t)
{
    for (uint32_t i = t->ifaces; i < JUDGE_TAPS; i++)
        if (s->named[i])
            return !(t->ifaces == 1 ? cli_error("--tap: there is no interface %u, only interface 0", i)
                                    : cli_error("--tap: there is no interface %u, only 0 to %u", i, t->ifaces - 1));
    for (unsigned i = 0; i < o->n_taps; i++) {
        uint32_t file = o->taps[i].tap >> 16, iface = o->taps[i].tap & 0xffff;
        if (file >= t->n_files)
            return !cli_error("--tap: there is no file %u, only %s", file + 1, count_str(t->n_files, "file"));
        if (iface >= t->file_ifaces[file])
            return !cli_error("--tap: there is no interface %u in file %u", iface, file + 1);
    }
    return true;
}
