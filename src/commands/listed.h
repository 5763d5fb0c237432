/* layer 3 (commands): where a command was that is told of by itself. */
#ifndef RDMATRACE_COMMANDS_LISTED_H
#define RDMATRACE_COMMANDS_LISTED_H

#include <stdbool.h>
#include <stdint.h>

/* The connection that carried it, the tap that saw it, and whether it is shown. */
struct listed {
    uint32_t conn; /* number */
    uint32_t tap;
    bool hidden; /* not selected, or another tap shows it */
};

#endif
