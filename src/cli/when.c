/* layer 4 (tool): times in options. */
#include "src/cli/when.h"

#include "src/cli/cli.h"
#include "tokens.h"

#include <stdio.h>
#include <stdlib.h>

int when_option(const char *name, const char *text, struct when *w)
{
    return when_parse(text, w) ? EXIT_OK
                               : cli_error("%s %s: expected a time such as 1.25, 1795224551.664, 12:03:07.5, or "
                                           "\"2026-11-21 12:03:07\"",
                                           name, text);
}

int when_format(const char *text, enum print_time *how)
{
    if (opt_choice("-t", text, print_times, how) != EXIT_OK)
        return EXIT_BAD;
    return *how == TIME_DELTA || *how == TIME_DELTA_DISPLAYED ? cli_error("-t %s: expected r, e, a, ad, u or ud", text)
                                                              : EXIT_OK;
}

void when_put(struct buf *b, ns_t t, ns_t first, enum print_time how)
{
    struct buf text = {0};

    print_stamp(&text, t, first, how, 6);
    buf_puts(b, buf_str(&text) + strspn(buf_str(&text), " "));
    buf_free(&text);
}

int when_interval(const char *text, ns_t *interval)
{
    struct token t = token_of(text);

    return token_time(&t, interval) && *interval > 0
               ? EXIT_OK
               : cli_error("--interval %s: expected a time such as 10ms, 500us or 1s", text);
}
