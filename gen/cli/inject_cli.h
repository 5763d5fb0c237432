/* layer 4 (tool): `rdmagen inject`: what its files share. */
#ifndef RDMATRACE_INJECT_CLI_H
#define RDMATRACE_INJECT_CLI_H

#include "gen/cli/live_options.h"
#include "gen/cli/report_file.h"
#include "gen/net/bridge.h"

struct inject {
    const char *name[NET_HOSTS]; /* of the ports: operands */
    struct backend *backend[NET_HOSTS];
    struct bridge *bridge;
    struct event_list *events;
    const char *file; /* capture; NULL: none */
    struct cap_writer *record;
    struct cap_iface iface[NET_HOSTS];
    int record_err;    /* first error of the capture */
    ns_t start, now;   /* monotonic */
    ns_t flush_at;     /* when the capture is next handed to the system */
    ns_t epoch;        /* time of the day at monotonic 0 */
    ns_t duration;     /* 0: without end */
    uint64_t count;    /* frames to take */
    uint64_t received; /* frames taken */
    uint64_t seed;
    bool verbose, quiet;
    struct report_file json;
};

/* Say that frames are forwarded from now on. */
void inject_begin(const struct inject *j);
/* Print the result: 0, EXIT_FOUND if an event never matched or could never be applied, or EXIT_BAD. */
int inject_report(struct inject *j);

#endif
