/* layer 4 (tool): `rdmagen inject`: shared by its files. */
#ifndef RDMATRACE_INJECT_CLI_H
#define RDMATRACE_INJECT_CLI_H

#include "gen/cli/live_options.h"
#include "gen/cli/report_file.h"
#include "gen/net/bridge.h"

/* Options and state of `rdmagen inject`. */
struct inject {
    const char *name[NET_HOSTS];        /* names of the ports, the operands */
    struct backend *backend[NET_HOSTS]; /* of the ports */
    struct bridge *bridge;
    struct event_list *events;         /* of --event, owned */
    const char *file;                  /* path of the output capture; NULL: none */
    struct cap_writer *record;         /* writer of `file`; NULL: none */
    struct cap_iface iface[NET_HOSTS]; /* the ports as interfaces of the capture */
    int record_err;                    /* first error in writing the capture, a negative errno */
    ns_t start, now;                   /* live_now(): at the start, and now */
    ns_t flush_at;                     /* live_now() of the next flush of the capture */
    ns_t epoch;                        /* ns since 1970 at live_now() = 0 */
    ns_t duration;                     /* ns; 0: no limit */
    uint64_t count;                    /* frames to receive; 0: no limit */
    uint64_t received;                 /* frames received */
    uint64_t seed;                     /* of all random numbers */
    bool verbose, quiet;               /* print each event; print only errors */
    struct report_file json;           /* the result as JSON */
};

/* Print that forwarding begins. */
void inject_begin(const struct inject *j);
/* Print the result. 0; EXIT_FOUND if an event never matched or could never be applied; EXIT_BAD if the JSON file cannot
 * be written. */
int inject_report(struct inject *j);

#endif
