/* layer 0 (base): option tables on getopt_long. */
#include "program.h"
#include "tokens.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#define HELP_COLUMN 30

static unsigned defs_count(const struct opt_def *d)
{
    unsigned n = 0;

    while (d[n].key)
        n++;
    return n;
}

static int arg_kind(const struct opt_def *d)
{
    if (!d->arg)
        return no_argument;
    return strncmp(d->arg, "[=", 2) == 0 ? optional_argument : required_argument;
}

static const struct opt_def *def_named(const struct opt_def *defs, const char *name)
{
    for (const struct opt_def *d = defs; d->key; d++)
        if (d->name && strcmp(d->name, name) == 0)
            return d;
    return NULL;
}

/* The command of `defs` has the option by its new name, and no other by the old one. */
static const struct opt_def *renamed_def(const struct opt_def *defs, const struct opt_renamed *r)
{
    return def_named(defs, r->old) ? NULL : def_named(defs, r->now);
}

static unsigned renamed_count(void)
{
    unsigned n = 0;

    for (const struct opt_renamed *r = cli_renamed(); r && r->old; r++)
        n++;
    return n;
}

void opt_start(struct opt_state *s, const struct opt_def *defs, int argc, char **argv)
{
    unsigned n = defs_count(defs), longs = 0;
    struct option *l = calloc(n + renamed_count() + 1, sizeof *l);
    char *shorts = calloc(2 * n + 2, 1), *q = shorts;

    *s = (struct opt_state){defs, calloc(n + 1, sizeof *s->given), argc, argv, shorts, l, .first = 1};
    if (!l || !shorts || !s->given)
        return;
    *q++ = ':'; /* getopt_long() returns ':' for a missing argument, '?' for a wrong option */
    for (unsigned i = 0; i < n; i++) {
        if (defs[i].key < 256) {
            *q++ = (char)defs[i].key;
            if (defs[i].arg)
                *q++ = ':';
        }
        if (defs[i].name)
            l[longs++] = (struct option){defs[i].name, arg_kind(&defs[i]), NULL, defs[i].key};
    }
    for (const struct opt_renamed *r = cli_renamed(); r && r->old; r++) {
        const struct opt_def *d = renamed_def(defs, r);
        if (d)
            l[longs++] = (struct option){r->old, arg_kind(d), NULL, d->key};
    }
}

/* Say that the option has a new name, if the long one that getopt_long() found, `found`, is an old one. */
static void remark_renamed(const struct opt_state *s, const char *found)
{
    for (const struct opt_renamed *r = cli_renamed(); r && r->old; r++)
        if (strcmp(r->old, found) == 0 && renamed_def(s->defs, r))
            cli_error("%s: --%s is called --%s now; the old name goes with the next release", s->argv[0], r->old,
                      r->now);
}

static const struct opt_def *def_of(const struct opt_def *defs, int key)
{
    for (const struct opt_def *d = defs; d->key; d++)
        if (d->key == key)
            return d;
    return NULL;
}

/* Number of long options that `word` ("--name" or "--name=...") may abbreviate. */
static unsigned candidates(const struct opt_state *s, const char *word)
{
    size_t len = strcspn(word + 2, "=");
    unsigned n = 0;

    for (const struct opt_def *d = s->defs; d->key; d++)
        n += d->name && strncmp(d->name, word + 2, len) == 0;
    return n;
}

/* The long option nearest to the mistyped `word` of `len` bytes, "--" included, as "; the nearest is --name"; "" if
 * none is near. */
static const char *nearest(const struct opt_state *s, const char *word, size_t len, char text[OPT_NAME + 32])
{
    struct text_nearest near = text_nearest_to(word + 2, len - 2);

    for (const struct opt_def *d = s->defs; d->key; d++)
        if (d->name)
            text_nearest_try(&near, d->name);
    text[0] = 0;
    if (near.name)
        snprintf(text, OPT_NAME + 32, "; the nearest is --%s", near.name);
    return text;
}

/* True after a message if an option, the letter `c` or, with 0, the long one at the start of `word`, is one that is
 * known from elsewhere. */
static bool report_foreign(const struct opt_state *s, char c, const char *word)
{
    size_t len = strcspn(word, "=");

    for (const struct opt_foreign *f = s->foreign; f && f->of; f++) {
        if (c && c == f->letter) {
            cli_error("%s: -%c is an option of %s%s%s%s%s%s; here %s", s->argv[0], c, f->of, f->name ? " (--" : "",
                      f->name ? f->name : "", f->name ? ")" : "", f->was ? ", and no longer --" : "",
                      f->was ? f->was : "", f->instead);
            return true;
        }
        if (!c && f->name && strlen(f->name) == len - 2 && memcmp(f->name, word + 2, len - 2) == 0) {
            cli_error("%s: --%s is an option of %s; here %s", s->argv[0], f->name, f->of, f->instead);
            return true;
        }
    }
    return false;
}

/* Report the option for which getopt_long() returned `c`. */
static void report_bad_option(const struct opt_state *s, int c)
{
    const char *word = s->argv[optind - 1];
    bool is_long = strncmp(word, "--", 2) == 0;
    int len = is_long ? (int)strcspn(word, "=") : 2;
    const char shorts[] = {'-', (char)optopt, '\0'};
    char near[OPT_NAME + 32];
    const char *what = c == ':'                                       ? "needs an argument"
                       : is_long && optopt && def_of(s->defs, optopt) ? "takes no argument"
                       : is_long && candidates(s, word) > 1           ? "is short for more than one option"
                                                                      : "is no option";

    if (!(is_long && optopt) && report_foreign(s, is_long ? 0 : (char)optopt, word))
        return;
    cli_error("%s: %.*s %s%s; `%s help %s` lists the options", s->argv[0], len, is_long ? word : shorts, what,
              is_long && !optopt && candidates(s, word) == 0 ? nearest(s, word, (size_t)len, near) : "", cli_program(),
              s->argv[0]);
}

/* What the program prints is for other programs, if the option says so. */
static void mark_format(const struct opt_def *d, const char *arg)
{
    static const char *const texts[] = {"text", "tree"};
    bool text = !d->name || (strcmp(d->name, "json") != 0 && strcmp(d->name, "format") != 0);

    for (unsigned i = 0; i < ARRAY_LEN(texts) && !text; i++)
        text = arg && strcmp(arg, texts[i]) == 0;
    if (!text)
        cli_for_programs();
}

int opt_next(struct opt_state *s, const char **arg, int *operand)
{
    int c, found = -1;

    *arg = NULL;
    *operand = s->argc;
    if (!s->short_opts || !s->long_opts || !s->given) {
        cli_error("out of memory");
        return -1;
    }
    if (s->first) {
        optind = 0;
        opterr = 0; /* its messages would name the subcommand as the program */
        s->first = 0;
    }
    c = getopt_long(s->argc, s->argv, s->short_opts, s->long_opts, &found);
    *arg = optarg;
    *operand = optind;
    if (c == -1)
        return 0;
    if (c == '?' || c == ':') {
        report_bad_option(s, c);
        return -1;
    }
    if (found >= 0)
        remark_renamed(s, ((const struct option *)s->long_opts)[found].name);
    s->given[def_of(s->defs, c) - s->defs] = true;
    mark_format(def_of(s->defs, c), optarg);
    return c;
}

bool opt_given(const struct opt_state *s, int key)
{
    return s->given[def_of(s->defs, key) - s->defs];
}

bool opt_named_given(const struct opt_state *s, const char *name)
{
    for (const struct opt_def *d = s->defs; d->key; d++)
        if (d->name && strcmp(d->name, name) == 0 && s->given[d - s->defs])
            return true;
    return false;
}

const char *opt_name(const struct opt_def *defs, int key, char name[OPT_NAME])
{
    const struct opt_def *d = def_of(defs, key);

    if (key < 256)
        snprintf(name, OPT_NAME, "-%c", key);
    else
        snprintf(name, OPT_NAME, "--%s", d->name);
    return name;
}

int opt_refuse(const struct opt_state *s, const struct opt_clash *table, unsigned cases)
{
    char name[OPT_NAME], other[OPT_NAME];

    for (const struct opt_clash *c = table; c && c->key; c++) {
        if (!opt_given(s, c->key))
            continue;
        opt_name(s->defs, c->key, name);
        if (c->cases & cases)
            return cli_error("%s: %s %s", s->argv[0], name, c->why);
        if (c->other > 0 && opt_given(s, c->other))
            return cli_error("%s: %s and %s exclude each other", s->argv[0], name, opt_name(s->defs, c->other, other));
        if (c->other < 0 && !opt_given(s, -c->other))
            return cli_error("%s: %s needs %s", s->argv[0], name, opt_name(s->defs, -c->other, other));
    }
    return 0;
}

void opt_end(struct opt_state *s)
{
    free(s->short_opts);
    free(s->long_opts);
    free(s->given);
    s->short_opts = s->long_opts = NULL;
    s->given = NULL;
}

void opt_help(struct buf *b, const struct opt_def *defs)
{
    for (const struct opt_def *d = defs; d->key; d++) {
        size_t start = b->len;
        if (d->key < 256)
            buf_printf(b, "  -%c%s", d->key, d->name ? ", " : "");
        else
            buf_puts(b, "      ");
        if (d->name)
            buf_printf(b, "--%s", d->name);
        if (d->arg)
            buf_printf(b, "%s%s", strncmp(d->arg, "[=", 2) == 0 ? "" : " ", d->arg);
        if (b->len - start >= HELP_COLUMN) {
            buf_char(b, '\n');
            start = b->len;
        }
        for (const char *h = d->help; *h; h++) {
            if (h == d->help || h[-1] == '\n') {
                buf_fill(b, ' ', HELP_COLUMN - (b->len - start));
            }
            buf_char(b, *h);
            if (*h == '\n')
                start = b->len;
        }
        buf_char(b, '\n');
    }
}

int opt_choice(const char *option, const char *arg, const char *const names[], unsigned *choice)
{
    char list[160] = "";
    size_t len = 0;

    for (unsigned i = 0; names[i]; i++) {
        if (strcmp(arg, names[i]) == 0) {
            *choice = i;
            return EXIT_OK;
        }
        if (len < sizeof list)
            len += (size_t)snprintf(list + len, sizeof list - len, "%s%s",
                                    !i             ? ""
                                    : names[i + 1] ? ", "
                                                   : " or ",
                                    names[i]);
    }
    return cli_error("%s %s: expected %s", option, arg, list);
}

bool opt_number(const char *text, uint64_t min, uint64_t max, uint64_t *value)
{
    char *end;

    errno = 0;
    *value = strtoull(text, &end, 0);
    return *text >= '0' && *text <= '9' && *end == '\0' && errno == 0 && *value >= min && *value <= max;
}
