/* layer 4 (tool): times in options, as `decode -t` prints them. */
#ifndef RDMATRACE_CLI_WHEN_H
#define RDMATRACE_CLI_WHEN_H

#include "moment.h"
#include "src/show/print.h"

/* Parse the argument `text` of option `name`. EXIT_OK, or EXIT_BAD after a message. */
int when_option(const char *name, const char *text, struct when *w);
/* Parse the argument of -t of a command that does not show frames one by one: r, e, a, ad, u or ud. EXIT_OK, or
 * EXIT_BAD after a message. */
int when_format(const char *text, enum print_time *how);
/* Append the time `t` in that format, without spaces before it; `first`: time of the first frame. */
void when_put(struct buf *b, ns_t t, ns_t first, enum print_time how);
/* Parse the argument of --interval, such as 10ms, 500us or 1s. EXIT_OK, or EXIT_BAD after a message. */
int when_interval(const char *text, ns_t *interval);
/* The row of this option. */
#define WHEN_FORMAT_OPTION                                                                                             \
    {                                                                                                                  \
        't', "time", "FORMAT", "r since the first frame, e epoch, a or ad (default) local time, u or ud UTC"           \
    }

#endif
