/* layer 4 (tool): `rdmagen inject`: shared by its files. */
#ifndef RDMATRACE_INJECT_CLI_H
#define RDMATRACE_INJECT_CLI_H

#include "gen/cli/live_options.h"
#include "gen/cli/report_file.h"
#include "gen/live/forward.h"

/* Options and state of `rdmagen inject`. */
struct inject {
    struct forward f;          /* its ports have the names of the operands */
    struct event_list *events; /* of --event, owned */
    const char *file;          /* path of the output capture; NULL: none */
    ns_t duration;             /* ns; 0: no limit */
    uint64_t count;            /* frames to receive; UINT64_MAX: no limit */
    uint64_t seed;             /* of all random numbers */
    bool verbose, quiet;       /* print each event; print only errors */
    struct report_file json;   /* the result as JSON */
};

/* Print that forwarding begins. */
void inject_begin(const struct inject *j);
/* Print the result. 0; EXIT_FOUND if an event never matched or could never be applied; EXIT_BAD if the JSON file cannot
 * be written. */
int inject_report(struct inject *j);

#endif
